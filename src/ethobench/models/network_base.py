"""The base of all network models: training, saving, loading and streaming."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from ethobench.core import Annotation
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.models.base import Model
from ethobench.models.streaming import ActorStream, FramePreparer, FrameScorer, FrameSource, NetworkStream, PredictionStream
from ethobench.training.device import PACKAGES, choose_device, isolated_seed
from ethobench.training.joined_recordings import Targets
from ethobench.training.loop import Batches, History, Progress, TrainingSettings, train
from ethobench.training.losses import Loss
from ethobench.training.trajectory_inputs import InputTransform
from ethobench.training.weight_files import load_weights, read_weights, write_weights

if TYPE_CHECKING:
    import torch

LearningRate: TypeAlias = Annotated[float, Field(gt=0)]
WEIGHTS, CHECKPOINT = "weights.safetensors", "training{}.safetensors"


class NetworkModel(Model):
    """A model that trains a network.

    Subclasses implement `build`, `n_inputs`, `_fit` and `_predict`; `_describe` and `_restore` for fitted values other than weights; and
    `_open_stream` if they can predict frame by frame. If `checkpoint` is a folder, the training keeps its state there and is resumed
    from it.

    Attributes
    ----------
    progress : callable, optional
        Called after every step of a training.
    histories : list of History
        Losses of each phase of the training.
    module : Module
        The network.
    n_inputs : int
        Number of its inputs per frame.
    """

    packages = PACKAGES
    supports_deadline = True
    progress: Callable[[Progress], None] | None = None
    histories: list[History]
    module: Any

    @property
    def history(self) -> History:
        """Losses of the last phase of the training."""
        return self.histories[-1]

    @property
    def n_inputs(self) -> int:
        """Number of inputs per frame."""
        raise NotImplementedError

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network, with random weights."""
        raise NotImplementedError

    def stream(self, arena: Sequence[float] | None = None) -> PredictionStream:
        """Predict frame by frame as frames arrive; only for causal models.

        Parameters
        ----------
        arena : (width, height), optional
            Size of the arena in the tracker's units; that of the training recordings by default.
        """
        self.check_is_fitted()
        transform, scorer = self._open_stream()
        if self.role_inputs is not None:
            raise EthobenchError(f"model {self.name!r} has inputs by role: use `stream_animals`, which takes any skeleton and rate")
        corners = None if arena is None else (0.0, 0.0, float(arena[0]), float(arena[1]))
        frames = FramePreparer(transform, transform.training_scene(corners))
        return NetworkStream(scorer, frames, exclusive=self.exclusive, required_input=self.required_input)

    def stream_animals(
        self,
        animals: Sequence[str],
        keypoints: Sequence[str],
        rate: float,
        *,
        pixels_per_cm: float | None = None,
        animal_length: float | None = None,
    ) -> ActorStream:
        """Predict what each animal does, to whom, frame by frame; only for causal models with inputs by role.

        Parameters
        ----------
        animals, keypoints : sequence of str
            In the order of the frames.
        rate : float
            Frames per second; the model predicts 30 per second at most.
        pixels_per_cm : float, optional
            Scale of the positions.
        animal_length : float, optional
            Distance from the base of the tail to the nose in the unit of the positions, if their scale is unknown.
        """
        self.check_is_fitted()
        transform, _ = self._open_stream()
        if self.role_inputs is None or self.directed is None:
            raise EthobenchError(
                f"model {self.name!r} was not trained on who does what to whom with inputs by role: use `stream`, or train it on "
                "annotations that name their subjects, with inputs='roles'"
            )
        source = FrameSource(tuple(animals), tuple(keypoints), float(rate), pixels_per_cm, animal_length)
        return ActorStream(
            lambda: self._open_stream()[1],
            transform,
            self.role_inputs,
            self.directed,
            self.required_input,
            source,
            exclusive=self.exclusive,
        )

    def _open_stream(self) -> tuple[InputTransform, FrameScorer]:
        """Return the input transform and a scorer of single frames; raise an error if the model is not causal."""
        raise EthobenchError(f"model {self.name!r} does not support streaming: it is not causal")

    def _build_seeded(self) -> torch.nn.Module:
        """Build the network with weights that depend on the model's seed only."""
        with isolated_seed(self.seed):
            return self.build(self.n_inputs, self.n_outputs)

    def _targets(self, truth: Annotation) -> Targets:
        """Return the per-frame labels of an annotation."""
        return exclusive_targets(truth) if self.exclusive else overlapping_targets(truth)

    def _train(
        self,
        batches: Batches,
        loss: Loss,
        settings: TrainingSettings,
        *,
        identity: Mapping[str, Any],
        module: torch.nn.Module | None = None,
        validation: Batches | None = None,
        phase: int = 0,
        deadline: Deadline | None = None,
    ) -> None:
        """Train the network, or a module that contains it, and append to `histories`."""
        about = {"model": self.name, "revision": self.revision, **dataclasses.asdict(self.params), **identity}
        history = train(
            self.module if module is None else module,
            batches,
            loss,
            settings,
            validation=validation,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint) / CHECKPOINT.format(phase or ""),
            identity=about,
            progress=self.progress,
            deadline=deadline or self.deadline,
        )
        self.histories.append(history)

    def note_epochs(self, done: int, planned: int) -> None:
        """Note that a network was trained for fewer epochs than planned because of a deadline."""
        if self.deadline.is_limited and done < planned:
            self.note(f"the network was trained for {done} of {planned} epochs, to keep the time budget")

    def _describe(self) -> dict[str, Any]:
        """Return fitted values other than weights, for JSON."""
        return {}

    def _restore(self, description: Mapping[str, Any]) -> None:
        """Set what `_describe` returned."""

    def _save(self, folder: Path) -> None:
        write_weights(folder / WEIGHTS, self.module.state_dict(), {"exclusive": self.exclusive, **self._describe()})

    def _load(self, folder: Path) -> None:
        path = folder / WEIGHTS
        weights, description = read_weights(path)
        try:
            self.exclusive = bool(description["exclusive"])
            self._restore(description)
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError):
            raise FormatError(path, "not the weights of a saved model: their description is damaged") from None
        self.module = load_weights(lambda: self.build(self.n_inputs, self.n_outputs), weights, path)
        self.module.to(choose_device()).eval()
