"""What the MABe 2021 networks share: a window of poses (or channels) around a frame in, that frame's behavior out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.signals import Keypoint
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.models.base import Model
from ethobench.models.live import Live, LiveFrames, LiveNetwork, corners_of
from ethobench.models.saving import load_model
from ethobench.models.trajectory_params import SHAPE, TrajectoryParams
from ethobench.training.augmentation import check_layout
from ethobench.training.device import PACKAGES, choose_device, own_random_state
from ethobench.training.encoder_files import CARD as ENCODER
from ethobench.training.encoder_files import read_card, read_encoder
from ethobench.training.fine_tuning import Phase, plan_phases, take_over
from ethobench.training.live import live_scorer
from ethobench.training.loop import Batches, History, Progress, Training, train
from ethobench.training.losses import Loss
from ethobench.training.sliding import is_convolutional, predict_frames
from ethobench.training.stretches import Stretches, longest_stretch, of_known_frames
from ethobench.training.tensors import load_weights, read_tensors, write_tensors
from ethobench.training.trajectories import Reach, Trajectories, lay_out, shares_of, weigh_classes, weighted_loss
from ethobench.training.trajectory_inputs import Preparation, learn_preparation

if TYPE_CHECKING:
    import torch

    from ethobench.training.trajectory_networks import TrajectoryNetwork

WEIGHTS, CHECKPOINT, ENTRY = "weights.safetensors", "training{}.safetensors", "network"


class TrajectoryModel(Model):
    """A network that reads a window around each frame; subclasses write `build`.

    If `checkpoint` names a folder, the training keeps its state there, and goes on from what is there.

    Attributes
    ----------
    progress : callable, optional
        Told after every step of a training.
    histories : list of History
        What came of each phase of the training.
    style : str, optional
        The annotator to predict like, for a model that learnt from several (``condition="annotator"``). Unless it is set, a
        recording's metadata may name one as ``annotator`` or ``group``; else the read-out is the mean of all.
    """

    packages = PACKAGES
    Params = TrajectoryParams
    supports_deadline = True
    progress: Callable[[Progress], None] | None = None
    histories: list[History]
    style: str | None = None
    module: TrajectoryNetwork
    preparation: Preparation
    styles: tuple[str, ...] = ()

    def build(self, n_inputs: int, n_outputs: int, styles: int = 0) -> TrajectoryNetwork:
        """Build the network: (batch, frames, inputs) to (batch, outputs)."""
        raise NotImplementedError

    @property
    def reach(self) -> Reach:
        """Which frames a window holds."""
        return Reach(self.params.past, self.params.future, self.params.gap)

    def stream(self, arena: Sequence[float] | None = None) -> Live:
        """Follow along frame by frame; only for models that look at nothing to come.

        Parameters
        ----------
        arena : (width, height), optional
            In the tracker's units; that of the training unless given.
        """
        self.check_is_fitted()
        if self.params.future or not self.preparation.is_causal:
            what = "future=0" if self.params.future else "inputs='coordinates' or 'egocentric'"
            raise EthobenchError(f"model {self.name!r} looks at frames to come, and cannot follow along; train it with {what}")
        frames = LiveFrames(self.preparation, self.preparation.known_scene(corners_of(arena)))
        scorer = live_scorer(self._network(self.style), self.reach)
        return LiveNetwork(scorer, frames, exclusive=self.exclusive, required_input=self.required_input)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        if self.directed is not None and "swap" in self.params.augment:
            raise EthobenchError("animals whose roles are learnt (who does it to whom) cannot be swapped: leave augment=swap out")
        before = self._before()
        self.preparation = self._prepare(data) if before is None else before.preparation
        check_layout(self.params.augment, self.preparation.layout())
        examples = self._examples(data, truths)
        with own_random_state(self.seed):
            self.module = self.build(self.preparation.n_inputs, self.n_outputs, len(self.styles))
        phases = [Phase(self.params.epochs, self.params.learning_rate)] if before is None else self._go_on(before)
        weights = weigh_classes(examples.targets, self.n_outputs, self._background, self.params.class_weight)
        module, batches, loss = self._set_up(examples, weighted_loss(weights, exclusive=self.exclusive))
        identity = {"model": self.name, "revision": self.revision, "data": examples.checksum, **dataclasses.asdict(self.params)}
        self.histories = []
        for place, phase in enumerate(phases):
            self.module.freeze(phase.head_only)
            settings = Training(phase.epochs, phase.learning_rate, amsgrad=False, schedule="none", seed=self.seed, epsilon=1e-7)
            self.histories.append(
                train(
                    module,
                    batches,
                    loss,
                    settings,
                    checkpoint=None if self.checkpoint is None else Path(self.checkpoint) / CHECKPOINT.format(place or ""),
                    identity={**identity, "phase": place, "head_only": phase.head_only},
                    progress=self.progress,
                    deadline=self.deadline.share(1 / (len(phases) - place)),
                )
            )
        self.note_epochs(sum(len(history.losses) for history in self.histories), sum(phase.epochs for phase in phases))
        self.module.freeze(False)
        self.module.to(choose_device()).eval()

    @property
    def keypoints(self) -> Mapping[str, Keypoint]:
        """The stated roles of the keypoints that it learnt from."""
        return self.preparation.stated

    def _prepare(self, data: Dataset) -> Preparation:
        return learn_preparation(
            data.recordings,
            self.params.inputs,
            float(self.rate or 1.0),
            causal=self.params.future == 0,
            min_confidence=self.params.min_confidence,
            keypoints=data.keypoints,
        )

    def _examples(self, data: Dataset, truths: Mapping[str, Annotation]) -> Trajectories:
        """Lay out the recordings, and take every frame that was observed for an example."""
        opened = [self.preparation.open(recording) for recording in data]
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        targets = [targets_of(truths[recording.id]) for recording in data]
        values, centers, known, owners = lay_out(opened, targets, self.reach)
        styles = None
        if self.params.condition == "annotator":
            who = [annotator_of(recording) for recording in data]
            self.styles = tuple(dict.fromkeys(who))
            styles = np.array([self.styles.index(name) for name in who], dtype=np.int16)[owners]
        return Trajectories(
            values,
            centers,
            known,
            self.reach,
            self.params.batch,
            self.params.samples,
            self.params.augment,
            self.preparation.layout(),
            styles,
            len(self.styles),
        )

    def _set_up(self, examples: Trajectories, loss: Loss) -> tuple[torch.nn.Module, Batches, Loss]:
        """Return what learns, from what, and by which loss: window by window, or stretches of frames at once."""
        if self.params.together == 1:
            return self.module, examples, loss
        from ethobench.training.trajectory_networks import StretchNetwork

        if not is_convolutional(self.module) or self.styles:
            raise EthobenchError("only convolutions for one annotator learn frames in a row: give together=1")
        length = longest_stretch(examples, self.params.together)
        return StretchNetwork(self.module, self.reach), Stretches(examples, length), of_known_frames(loss)

    def _before(self) -> TrajectoryModel | None:
        """Load the model to begin with, and refuse one that sees other things."""
        if not self.params.init:
            return None
        folder = Path(self.params.init)
        before = self._pretrained(folder) if (folder / ENCODER).is_file() else load_model(folder)
        if before.name != self.name or not isinstance(before, TrajectoryModel):
            raise MismatchError(f"{self.params.init} is a saved {before.name!r}; model {self.name!r} begins only with its own kind")
        for name in SHAPE:
            mine, theirs = getattr(self.params, name, None), getattr(before.params, name, None)
            if mine != theirs:
                raise MismatchError(f"the model in {self.params.init} has {name}={theirs!r}, this one {mine!r}: give {name}={theirs!r}")
        if before.inputs != self.inputs:
            raise MismatchError(f"the model in {self.params.init} learnt from other animals, keypoints or channels than these")
        if self.rate and abs(before.preparation.rate - self.rate) > 1e-6 * self.rate:
            rates = f"{before.preparation.rate:g} Hz, these recordings run at {self.rate:g} Hz"
            raise MismatchError(f"the model in {self.params.init} learnt at {rates}: its windows would have another length")
        return before

    def _pretrained(self, folder: Path) -> TrajectoryModel:
        """Read layers that were pre-trained without labels, as a model that has no behaviors yet."""
        card, weights = read_card(folder), read_encoder(folder)
        try:
            if card["config"] != self.name:
                raise MismatchError(f"{folder} holds layers for model {card['config']!r}, not for {self.name!r}")
            before = type(self)(**dict(card["params"]))  # type: ignore[call-overload]
            before.preparation = Preparation.from_dict(card["preparation"])  # type: ignore[arg-type]
            before.exclusive = self.exclusive
            before.module = before.build(before.preparation.n_inputs, 1)
            who = before.preparation
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError):
            raise FormatError(folder / ENCODER, "the card of what was pre-trained is damaged") from None
        before.inputs = tuple(f"{animal}/{point}" for animal in who.individuals for point in who.keypoints)
        take_over(before.module, weights, read_out=False, whose=str(folder))
        return before

    def _go_on(self, before: TrajectoryModel) -> list[Phase]:
        same = before.ethogram is not None and self.ethogram is not None and before.ethogram.names == self.ethogram.names
        same &= before.exclusive == self.exclusive and before.styles in ((), self.styles)
        take_over(self.module, before.module.state_dict(), read_out=same, whose=self.params.init)
        chosen = self.params
        return plan_phases(
            chosen.recipe,
            epochs=chosen.epochs,
            learning_rate=chosen.learning_rate,
            head_epochs=chosen.head_epochs,
            head_learning_rate=chosen.head_learning_rate,
            kept=before.params.learning_rate if same else None,
        )

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        told = (recording.metadata.get(name) for name in ("annotator", "group"))
        style = self.style or next((name for name in told if name in self.styles), None)
        opened = self.preparation.open(recording)
        probabilities = predict_frames(self._network(style), opened, self.reach, exclusive=self.exclusive)
        return Prediction(probabilities, ethogram, self.rate_of(recording), exclusive=self.exclusive)

    def _network(self, style: str | None) -> TrajectoryNetwork:
        if not self.styles:
            return self.module
        return self.module.of_style(shares_of(style, self.styles))

    @property
    def _background(self) -> int:
        told = self.ethogram.background if self.ethogram is not None else None
        return self.n_outputs - 1 if told is None else told

    def _save(self, folder: Path) -> None:
        facts = {"preparation": dataclasses.asdict(self.preparation), "exclusive": self.exclusive, "styles": list(self.styles)}
        write_tensors(folder / WEIGHTS, self.module.state_dict(), {ENTRY: json.dumps(facts)})

    def _load(self, folder: Path) -> None:
        weights, notes = read_tensors(folder / WEIGHTS)
        try:
            facts = json.loads(notes[ENTRY])
            self.preparation = Preparation.from_dict(facts["preparation"])
            self.exclusive, self.styles = bool(facts["exclusive"]), tuple(facts["styles"])
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError):
            raise FormatError(folder / WEIGHTS, "these are not the weights of a saved model") from None
        n_inputs, n_styles = self.preparation.n_inputs, len(self.styles)
        self.module = load_weights(lambda: self.build(n_inputs, self.n_outputs, n_styles), weights, folder / WEIGHTS)
        self.module.to(choose_device()).eval()


def annotator_of(recording: Recording) -> str:
    """Return whose annotation is learnt; after `fit` took the annotators apart, there is one."""
    if len(recording.annotations) != 1:
        raise EthobenchError(
            f"recording {recording.id!r} has several annotators: to learn from each in their own style, fit with annotator='all'"
        )
    return next(iter(recording.annotations))
