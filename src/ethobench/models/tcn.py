"""A temporal convolutional network over whole recordings: dilated, residual, and quick."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.features.cache import cached
from ethobench.features.multiscale import Baseline, signal_context
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import SignalModel, between, held, plain_keypoints, stated_keypoints
from ethobench.models.live import Live, LiveFrames, LiveNetwork, corners_of
from ethobench.models.scaled import Inputs, Scaling, read_inputs
from ethobench.training.augmentation import Layout
from ethobench.training.clips import make_clips
from ethobench.training.device import PACKAGES, choose_device, own_random_state
from ethobench.training.loop import History, Progress, Training, train
from ethobench.training.steps import UPDATES, Steps, predict_steps, smooth_exclusive_loss, smooth_overlapping_loss, tempered_weights
from ethobench.training.streams import Stream
from ethobench.training.tensors import load_weights, read_tensors, write_tensors
from ethobench.training.trajectory_inputs import Preparation, learn_preparation

if TYPE_CHECKING:
    import torch

WEIGHTS, CHECKPOINT, ENTRY = "weights.safetensors", "training.safetensors", "tcn"
NOISE = 0.05
CAUSAL_POSES = "coordinates"


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    step_rate : float
        Steps per second of the network, where recordings are faster; probabilities between steps lie on straight lines.
    levels : int
        Residual layers: with 7, the network sees 127 steps to each side.
    width : int
        Channels inside.
    seconds : float
        Length of the stretches that are learnt from; 500 steps where recordings are slow.
    passes : int
        How often every frame is seen, about.
    updates : int
        At most; large datasets are seen less often.
    batch : int
        Stretches of an update.
    learning_rate : float
        At the beginning; it falls along a cosine.
    temper : float
        How far behaviors are balanced: 0 as frequent as they are, 1 all the same.
    smoothing, steadiness : float
        Of the labels; of the probabilities in time.
    causal : bool
        Look at the past only, so that the model can follow along (`stream`): at channels or coordinates as they come, relative to
        the training alone. Frames between two steps have the probabilities of the last one.
    """

    step_rate: float = 12.5
    levels: int = 7
    width: int = 64
    seconds: float = 40.0
    passes: int = 120
    updates: int = 300
    batch: int = 16
    learning_rate: float = 0.003
    temper: float = 0.5
    smoothing: float = 0.05
    steadiness: float = 0.15
    causal: bool = False

    def __post_init__(self) -> None:
        if min(self.levels, self.width, self.passes, self.updates, self.batch) < 1 or min(self.step_rate, self.seconds) <= 0:
            raise EthobenchError("a tcn needs layers, channels, passes, updates and stretches: at least one of each, of some length")
        if not (0 <= self.temper <= 1 and 0 <= self.smoothing < 1 and self.steadiness >= 0):
            raise EthobenchError("temper and smoothing lie between 0 and 1, steadiness is 0 or more")


@register_model("tcn")
class Tcn(SignalModel):
    """Reads a tag's or poses' signals, relative to training and to the recording itself."""

    title = "temporal convolutional network, dilated and residual; tags and poses"
    packages = PACKAGES
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001), "temper": (0.0, 0.5, 1.0)}  # noqa: RUF012
    supports_deadline = True

    module: torch.nn.Module
    scaling: Scaling | Preparation
    history: History
    progress: Callable[[Progress], None] | None = None

    def build(self, n_inputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.training.temporal import TemporalNetwork

        chosen = self.params
        return TemporalNetwork(
            n_inputs, self.n_outputs, stride=self._stride(), levels=chosen.levels, width=chosen.width, causal=chosen.causal
        )

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        layout, inputs = self._learn_inputs(data)
        streams = [Stream(own, range(own.shape[1]), layout.channels, self.rate_of(data[key])) for key, own in inputs.items()]
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        window = self._window([len(stream) for stream in streams])
        clips = make_clips(streams, [targets_of(truths[r.id]) for r in data], window, self.params.batch)
        steps = Steps(clips, self._stride(), layout, _augmentations(layout), NOISE)
        with own_random_state(self.seed):
            self.module = self.build(len(layout.channels))
        updates = min(self.params.updates, self.params.passes * len(clips.values) / (window * self.params.batch))
        identity = {"model": self.name, "revision": self.revision, "data": clips.checksum, "window": window}
        epochs = max(1, round(updates / UPDATES))
        self.history = train(
            self.module,
            steps,
            self._loss(clips.targets),
            Training(epochs, self.params.learning_rate, weight_decay=1e-4, amsgrad=False, seed=self.seed),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint) / CHECKPOINT,
            identity={**dataclasses.asdict(self.params), **identity},
            progress=self.progress,
            deadline=self.deadline,
        )
        self.note_epochs(len(self.history.losses), epochs)

    def _learn_inputs(self, data: Dataset) -> tuple[Layout, dict[str, NDArray[np.float32]]]:
        """Learn how inputs are scaled; return what they stand for, and those of each recording."""
        if self.params.causal:
            how = self.scaling = learn_preparation(
                data.recordings, CAUSAL_POSES, float(self.rate or 1.0), causal=True, keypoints=data.keypoints
            )
            opened = {recording.id: how.open(recording) for recording in data}
            return how.layout(), {name: own.read(0, len(own)) for name, own in opened.items()}
        usual = {recording.id: self.signal_baseline(recording) for recording in data}
        self.training_range = TrainingRange.fit(list(usual.values()))
        read = {r.id: self._read_inputs(r, usual[r.id]) for r in data}
        scaling = self.scaling = Scaling.of(list(read.values()))
        return scaling.layout(), {name: scaling.apply(own) for name, own in read.items()}

    def time_update(self, data: Dataset) -> float:
        """Measure the seconds that an update of the network takes on this machine now, without computing any inputs."""
        import torch

        n_inputs = 2 * len(self.signal_baseline(data.recordings[0]).names) + 1
        window = self._window([recording.n_frames or 0 for recording in data])
        seconds = []
        with own_random_state(self.seed):
            module = self.build(n_inputs).to(choose_device())
            values = torch.zeros(self.params.batch, window, n_inputs, device=next(module.parameters()).device)
            for _ in range(3):
                start = time.perf_counter()
                module(values).sum().backward()
                seconds.append(time.perf_counter() - start)
        return float(np.median(seconds))

    def _read_inputs(self, recording: Recording, baseline: Baseline) -> Inputs:
        data, rate = self._data(recording), self.rate_of(recording)
        return cached("inputs", data, (rate, self.keypoints, baseline), lambda: read_inputs(data, rate, baseline, self.keypoints))

    def _baseline_of(self, recording: Recording) -> Baseline | None:
        return None if self.params.causal else super()._baseline_of(recording)

    def _loss(self, targets: NDArray[np.int16]) -> Any:
        if not self.exclusive:
            return smooth_overlapping_loss(steadiness=self.params.steadiness)
        weights = tempered_weights(targets, self.n_outputs, self.params.temper)
        return smooth_exclusive_loss(weights, smoothing=self.params.smoothing, steadiness=self.params.steadiness)

    def _window(self, lengths: list[int]) -> int:
        """Return the frames of a stretch: whole steps, and no more than the usual recording has."""
        wanted = max(self.params.seconds * float(self.rate or 1.0), 500 * self._stride() if self._stride() == 1 else 0)
        return max(int(min(wanted, np.median(lengths) / 2)) // self._stride(), 1) * self._stride()

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        data, rate = self._data(recording), self.rate_of(recording)
        read = self._reader(recording, baseline)
        found = predict_steps(self.module, read, len(data), self._stride(), self._reach, exclusive=self.exclusive)
        spread = held if self.params.causal else between
        return Prediction(spread(found, self._stride(), len(data)), ethogram, rate, exclusive=self.exclusive)

    def _reader(self, recording: Recording, baseline: Baseline) -> Callable[[int, int], NDArray[np.float32]]:
        """Return what reads the inputs of some frames."""
        scaling = self.scaling
        if isinstance(scaling, Preparation):
            return scaling.open(recording).read
        data, rate = self._data(recording), self.rate_of(recording)
        margin = signal_context(rate)

        def read(start: int, stop: int) -> NDArray[np.float32]:
            first = max(start - margin, 0)
            inputs = read_inputs(data[first : stop + margin], rate, baseline, self.keypoints)
            return scaling.apply(inputs)[start - first : stop - first]

        return read

    def stream(self, arena: Sequence[float] | None = None) -> Live:
        """Follow along frame by frame; only for causal models.

        Parameters
        ----------
        arena : (width, height), optional
            In the tracker's units; that of the training unless given.
        """
        from ethobench.training.temporal import TemporalNetwork
        from ethobench.training.temporal_live import LiveSteps

        self.check_is_fitted()
        if not isinstance(self.scaling, Preparation) or not isinstance(self.module, TemporalNetwork):
            raise EthobenchError(f"model {self.name!r} looks at frames to come, and cannot follow along; train it with causal=True")
        frames = LiveFrames(self.scaling, self.scaling.known_scene(corners_of(arena)))
        return LiveNetwork(LiveSteps(self.module), frames, exclusive=self.exclusive, required_input=self.required_input)

    @property
    def _reach(self) -> int:
        from ethobench.training.temporal import TemporalNetwork

        return self.module.reach if isinstance(self.module, TemporalNetwork) else 0

    def context(self, rate: float) -> int:
        """Return how many frames beside a stretch decide what is predicted in it."""
        return self._reach + signal_context(rate) + 2 * self._stride()

    def _stride(self) -> int:
        return max(1, round(float(self.rate or 1.0) / float(self.params.step_rate)))

    def _save(self, folder: Path) -> None:
        facts = {
            "exclusive": self.exclusive,
            "scaling": dataclasses.asdict(self.scaling),
            "keypoints": plain_keypoints(self.keypoints),
            "training_range": None if self.training_range is None else dataclasses.asdict(self.training_range),
        }
        write_tensors(folder / WEIGHTS, self.module.state_dict(), {ENTRY: json.dumps(facts)})

    def _load(self, folder: Path) -> None:
        weights, notes = read_tensors(folder / WEIGHTS)
        try:
            facts = json.loads(notes[ENTRY])
            self.exclusive, self.keypoints = bool(facts["exclusive"]), stated_keypoints(facts["keypoints"])
            self.training_range = TrainingRange.from_dict(facts["training_range"]) if facts["training_range"] else None
            self.scaling = (Preparation if self.params.causal else Scaling).from_dict(facts["scaling"])
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError):
            raise FormatError(folder / WEIGHTS, "these are not the weights of a saved model") from None
        self.module = load_weights(lambda: self.build(len(self.scaling.channels)), weights, folder / WEIGHTS)
        self.module.to(choose_device()).eval()


def _augmentations(layout: Layout) -> tuple[str, ...]:
    """Choose how stretches may be changed: tags that sit askew, arenas seen from elsewhere."""
    if layout.n_coordinates:
        return ("rotation", "translation", "reflection", "dropout")
    return ("rotate_axes", "scale") if layout.triples else ()
