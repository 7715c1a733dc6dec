"""The networks of CalMS21 (MABe 2021 baselines): `conv1d`, `dense`, `lstm` and `attention`. They predict a frame from the window around it.

Reference: Sun et al., "The Multi-Agent Behavior Dataset: Mouse Dyadic Social Interactions", NeurIPS Datasets and Benchmarks 2021.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ParameterError
from ethobench.core.signals import Keypoint
from ethobench.models.hyperparameters import Count, Integers, Names, hyperparameters
from ethobench.models.network_base import LearningRate, NetworkModel
from ethobench.models.registry import register_model
from ethobench.models.saving import load_model
from ethobench.models.streaming import ConvolutionScorer, FrameScorer, WindowScorer
from ethobench.training.augmentation import check_augmentations, check_layout
from ethobench.training.device import choose_device, isolated_seed
from ethobench.training.fine_tuning import Phase, copy_weights, plan_phases
from ethobench.training.inference import predict_frames
from ethobench.training.loop import TrainingSettings
from ethobench.training.losses import Loss, check_class_weight, class_weights, exclusive_loss, overlapping_loss
from ethobench.training.trajectory_inputs import InputTransform, fit_input_transform
from ethobench.training.weight_files import ENCODER_CARD, read_card, read_encoder
from ethobench.training.windows import WindowSampler, WindowSpan, sample_frames

if TYPE_CHECKING:
    from ethobench.models.calms21_modules import TrajectoryNetwork

FrameCount: TypeAlias = Annotated[int, Field(ge=0)]
EpochCount: TypeAlias = Annotated[int, Field(ge=0)]
ARCHITECTURE = ("past", "future", "frame_stride", "inputs", "layers", "kernel")
"""Hyper-parameters that must equal those of the network in `init`."""


@hyperparameters
class TrajectoryParams:
    """Hyper-parameters of all networks of CalMS21.

    Attributes
    ----------
    past, future : int
        Frames of a window before and after the current one. ``future=0`` makes the model causal.
    frame_stride : int
        Distance between neighboring frames of a window, in frames of the recording.
    inputs : {"coordinates", "egocentric", "features", "coordinates+given"}
        Inputs from poses: coordinates as fractions of the arena, as published; coordinates relative to the first animal, in body lengths;
        pose features; coordinates and the features that come with the data. Channels of a tag are standardized.
    min_confidence : float
        Keypoints with a lower confidence count as missing; 0 uses all, as published.
    layers : tuple of int
        Sizes of the hidden layers.
    dropout : float
    learning_rate : float
    epochs : int
    batch : int
        Examples of a batch.
    samples_per_epoch : int, optional
        Maximum number of frames in an epoch, drawn anew for each; all by default.
    frames_per_example : int
        Consecutive frames in an example: 1 as published. Convolutions train about nine times as fast with 20, since neighboring
        windows share computations; `batch` then counts runs of frames (e.g. 64). Much longer runs make the examples of a batch too
        similar.
    augment : tuple of str
        ``published``, ``rotation``, ``translation``, ``reflection``, ``swap`` and ``dropout`` for coordinates, ``rotate_axes`` and
        ``scale`` for tags.
    class_weight : {"none", "balanced"} or float
        ``balanced`` gives all behaviors the same total weight; a number is the weight of every behavior against the background.
    init : str
        Path of a saved model of the same kind to fine-tune (its output layer too, if the behaviors are the same), or of a folder made
        by ``ethobench pretrain``.
    recipe : {"paper", "code"}
        How to fine-tune `init`: as in the paper, or as its code behaves (see `plan_phases`).
    head_epochs : int
        Epochs in which only the output layer is trained, before the others; with `init` only.
    head_learning_rate : float, optional
        Learning rate of these epochs.
    condition : {"none", "annotator"}
        ``annotator``: one network for all annotators, with an additional output layer for each.
    """

    past: FrameCount = 100
    future: FrameCount = 100
    frame_stride: Count = 2
    inputs: Literal["coordinates", "egocentric", "features", "coordinates+given"] = "coordinates"
    min_confidence: float = 0.0
    layers: Integers = (128, 64, 32)
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    learning_rate: LearningRate = 1e-3
    epochs: EpochCount = 15
    batch: Annotated[int, Field(ge=2)] = 128
    samples_per_epoch: Annotated[int, Field(ge=2)] | None = None
    frames_per_example: Count = 1
    augment: Names = ()
    class_weight: str | float = "none"
    init: str = ""
    recipe: Literal["paper", "code"] = "paper"
    head_epochs: EpochCount = 0
    head_learning_rate: LearningRate | None = None
    condition: Literal["none", "annotator"] = "none"

    def __post_init__(self) -> None:
        check_augmentations(self.augment)
        check_class_weight(self.class_weight)
        if not self.layers or min(self.layers) < 1:
            raise ParameterError(f"`layers` must be one or more integers >= 1, got {self.layers}")
        if not (self.epochs or self.init):
            raise ParameterError("`epochs` must be >= 1 without `init`, got 0")
        if self.head_epochs and not self.init:
            raise ParameterError("`head_epochs` needs a network to fine-tune: set `init`")


class TrajectoryModel(NetworkModel):
    """A network that maps the window around a frame (batch, frames, inputs) to its scores (batch, outputs).

    Attributes
    ----------
    transform : InputTransform
        Transforms recordings into inputs.
    annotators : tuple of str
        Annotators with an output layer of their own (``condition="annotator"``).
    style : str, optional
        The annotator to predict like, for a model with several. If it is not set, the recording's metadata may name one as
        ``annotator`` or ``group``; else the mean of all is predicted.
    """

    Params = TrajectoryParams
    style: str | None = None
    module: TrajectoryNetwork
    transform: InputTransform
    annotators: tuple[str, ...] = ()

    @property
    def n_inputs(self) -> int:
        """Number of inputs per frame."""
        return self.transform.n_inputs

    @property
    def span(self) -> WindowSpan:
        """The frames of a window."""
        return WindowSpan(self.params.past, self.params.future, self.params.frame_stride)

    @property
    def keypoints(self) -> Mapping[str, Keypoint]:
        """Stated roles of the keypoints of the training data."""
        return self.transform.stated_keypoints

    def _open_stream(self) -> tuple[InputTransform, FrameScorer]:
        if self.params.future or not self.transform.is_causal:
            change = "future=0" if self.params.future else "inputs='coordinates' or 'egocentric'"
            raise EthobenchError(f"model {self.name!r} does not support streaming: it is not causal; train it with {change}")
        network = self._network(self.style)
        if network.is_convolutional:
            return self.transform, ConvolutionScorer(network, self.span)
        return self.transform, WindowScorer(network, self.span, self.n_inputs)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        if self.directed is not None and "swap" in self.params.augment:
            raise EthobenchError("animals cannot be swapped where the annotations say who acts towards whom: remove 'swap' from `augment`")
        initial = self._initial_model()
        self.transform = self._fit_transform(data) if initial is None else initial.transform
        check_layout(self.params.augment, self.transform.layout())
        sampler = self._sample(data, truths)
        self.module = self._build_seeded()  # type: ignore[assignment]
        phases = [Phase(self.params.epochs, self.params.learning_rate)] if initial is None else self._fine_tune(initial)
        loss = self._loss(sampler)
        trained = self._trained_module()
        self.histories = []
        for number, phase in enumerate(phases):
            self.module.freeze(phase.head_only)
            self._train(
                sampler,
                loss,
                TrainingSettings(phase.epochs, phase.learning_rate, amsgrad=False, schedule="none", seed=self.seed, epsilon=1e-7),
                identity={"data": sampler.recordings.checksum, "phase": number, "head_only": phase.head_only},
                module=trained,
                phase=number,
                deadline=self.deadline.share(1 / (len(phases) - number)),
            )
        self.note_epochs(sum(len(history.losses) for history in self.histories), sum(phase.epochs for phase in phases))
        self.module.freeze(False)
        self.module.to(choose_device()).eval()

    def _fit_transform(self, data: Dataset) -> InputTransform:
        return fit_input_transform(
            data.recordings,
            self.params.inputs,
            float(self.rate or 1.0),
            causal=self.params.future == 0,
            min_confidence=self.params.min_confidence,
            keypoints=data.keypoints,
        )

    def _sample(self, data: Dataset, truths: Mapping[str, Annotation]) -> WindowSampler:
        """Return a sampler of windows around all observed frames."""
        indices = None
        if self.params.condition == "annotator":
            names = [_annotator_of(recording) for recording in data]
            self.annotators = tuple(dict.fromkeys(names))
            indices = [self.annotators.index(name) for name in names]
        return sample_frames(
            [self.transform.open(recording) for recording in data],
            [self._targets(truths[recording.id]) for recording in data],
            self.span,
            self.params.batch,
            frames_per_example=self.params.frames_per_example,
            samples=self.params.samples_per_epoch,
            augmentations=self.params.augment,
            layout=self.transform.layout(),
            annotators=indices,
            n_annotators=len(self.annotators),
        )

    def _loss(self, sampler: WindowSampler) -> Loss:
        background = self.check_is_fitted().background
        background = self.n_outputs - 1 if background is None else background
        weights = class_weights(sampler.recordings.targets, self.n_outputs, self.params.class_weight, background=background)
        return exclusive_loss(weights, average="frames") if self.exclusive else overlapping_loss(weights)

    def _trained_module(self) -> Any:
        """Return the network, or for runs of consecutive frames a module that scores all of their frames."""
        if self.params.frames_per_example == 1:
            return self.module
        from ethobench.models.calms21_modules import DenseScoring

        if not self.module.is_convolutional or self.annotators:
            raise ParameterError("`frames_per_example` must be 1, except for conv1d without annotators")
        return DenseScoring(self.module, self.span)

    def windows_per_second(self, n_inputs: int, n_outputs: int, *, updates: int = 3) -> float:
        """Measure how many windows per second this network is trained on with this machine, from a few updates on random values.

        Parameters
        ----------
        n_inputs : int
            Inputs per frame.
        n_outputs : int
            Behaviors.
        updates : int
            Measured updates, after one that is not measured.
        """
        import torch

        params = self.params
        with isolated_seed(self.seed):
            self.module = self.build(n_inputs, n_outputs)  # type: ignore[assignment]
            module = self._trained_module().train()
            optimizer = torch.optim.Adam(module.parameters())
            values = torch.randn(params.batch, self.span.before + self.span.after + params.frames_per_example, n_inputs)
            values = values if params.frames_per_example > 1 else values[:, :: params.frame_stride]
            seconds = []
            for _ in range(updates + 1):
                start = time.process_time()
                optimizer.zero_grad()
                module(values).square().mean().backward()
                optimizer.step()
                seconds.append(time.process_time() - start)
        return float(params.batch * params.frames_per_example / max(np.median(seconds[1:]), 1e-9))

    def _initial_model(self) -> TrajectoryModel | None:
        """Load the model to fine-tune, and refuse one with another architecture or other inputs."""
        path = self.params.init
        if not path:
            return None
        initial = self._read_pretrained(Path(path)) if (Path(path) / ENCODER_CARD).is_file() else load_model(path)
        if initial.name != self.name or not isinstance(initial, TrajectoryModel):
            raise MismatchError(f"{path} is a saved {initial.name!r}; model {self.name!r} can only be initialized from its own kind")
        for name in ARCHITECTURE:
            value, required = getattr(self.params, name, None), getattr(initial.params, name, None)
            if value != required:
                raise MismatchError(f"`{name}` must be {required!r}, as in the model in {path}, got {value!r}")
        if initial.inputs != self.inputs:
            raise MismatchError(f"the model in {path} was trained on other animals, keypoints or channels")
        if self.rate and abs(initial.transform.rate - self.rate) > 1e-6 * self.rate:
            rates = f"{initial.transform.rate:g} Hz, these recordings have {self.rate:g} Hz"
            raise MismatchError(f"the model in {path} was trained at {rates}: its windows would have another length")
        return initial

    def _read_pretrained(self, folder: Path) -> TrajectoryModel:
        """Read layers from self-supervised pre-training, as a model without behaviors."""
        card, weights = read_card(folder), read_encoder(folder)
        try:
            if card["config"] != self.name:
                raise MismatchError(f"{folder} contains layers for model {card['config']!r}, not for {self.name!r}")
            initial = type(self)(**dict(card["params"]))
            initial.transform = InputTransform.from_dict(card["input_transform"])
            initial.exclusive = self.exclusive
            initial.module = initial.build(initial.n_inputs, 1)  # type: ignore[assignment]
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError):
            raise FormatError(folder / ENCODER_CARD, "the card of the pre-trained layers is damaged") from None
        transform = initial.transform
        initial.inputs = tuple(f"{animal}/{point}" for animal in transform.individuals for point in transform.keypoints)
        copy_weights(initial.module, weights, head=False, source=str(folder))
        return initial

    def _fine_tune(self, initial: TrajectoryModel) -> list[Phase]:
        """Initialize the network from that of another model, and return the phases of the training."""
        same = initial.ethogram is not None and self.ethogram is not None and initial.ethogram.names == self.ethogram.names
        same &= initial.exclusive == self.exclusive and initial.annotators in ((), self.annotators)
        copy_weights(self.module, initial.module.state_dict(), head=same, source=self.params.init)
        params = self.params
        return plan_phases(
            params.recipe,
            epochs=params.epochs,
            learning_rate=params.learning_rate,
            head_epochs=params.head_epochs,
            head_learning_rate=params.head_learning_rate,
            initial_learning_rate=initial.params.learning_rate if same else None,
        )

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        stated = (recording.metadata.get(name) for name in ("annotator", "group"))
        network = self._network(self.style or next((name for name in stated if name in self.annotators), None)).eval()
        opened = self.transform.open(recording)
        probabilities = predict_frames(
            lambda values: network.score_frames(values, self.span),
            opened.read,
            (len(opened), self.n_outputs),
            before=self.span.before,
            after=self.span.after,
            exclusive=self.exclusive,
            device=network.head.weight.device,
        )
        return Prediction(probabilities, ethogram, self.rate_of(recording), exclusive=self.exclusive)

    def _network(self, style: str | None) -> TrajectoryNetwork:
        """Return the network of an annotator, or of the mean of all."""
        return self.module.for_annotators(annotator_weights(style, self.annotators)) if self.annotators else self.module

    def _describe(self) -> dict[str, Any]:
        return {"input_transform": dataclasses.asdict(self.transform), "annotators": list(self.annotators)}

    def _restore(self, description: Mapping[str, Any]) -> None:
        self.transform = InputTransform.from_dict(description["input_transform"])
        self.annotators = tuple(description["annotators"])


@hyperparameters
class Conv1dParams(TrajectoryParams):
    """Hyper-parameters of `conv1d`, in addition to `TrajectoryParams`.

    The defaults are those of the task 1 baseline. The network that the published ones of tasks 2 and 3 are fine-tuned from has ``past=50,
    future=50, frame_stride=1, epochs=50, augment="published"``; the causal one has ``future=0``.

    Attributes
    ----------
    kernel : int
        Frames of a convolution kernel.
    """

    kernel: Count = 5


@register_model("conv1d")
class Conv1d(TrajectoryModel):
    """CalMS21's convolutional network, the best of the MABe 2021 baselines."""

    title = "convolutions over a trajectory of poses (CalMS21 baseline); tags too"
    Params = Conv1dParams

    def build(self, n_inputs: int, n_outputs: int) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.models.calms21_modules import convolutional

        params = self.params
        return convolutional(self.span.frames, n_inputs, n_outputs, params.layers, params.kernel, params.dropout, len(self.annotators))


@hyperparameters
class DenseParams(TrajectoryParams):
    """Hyper-parameters of `dense`: those of `TrajectoryParams`.

    The published network on single frames has ``past=0, future=0, frame_stride=1, layers=(512, 256, 128, 64), learning_rate=0.005,
    dropout=0.2``; in the paper's first version it had this one's layers, learning rate and dropout.
    """

    layers: Integers = (512, 256, 128)
    learning_rate: LearningRate = 3e-4


@register_model("dense")
class Dense(TrajectoryModel):
    """CalMS21's fully connected network, on windows or on single frames."""

    title = "fully connected layers on a trajectory of poses, or on single frames (CalMS21 baseline); tags too"
    Params = DenseParams

    def build(self, n_inputs: int, n_outputs: int) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.models.calms21_modules import fully_connected

        return fully_connected(self.span.frames, n_inputs, n_outputs, self.params.layers, self.params.dropout, len(self.annotators))


@hyperparameters
class LstmParams(TrajectoryParams):
    """Hyper-parameters of `lstm`, in addition to `TrajectoryParams`.

    In the paper's first version it had ``past=100, future=100, frame_stride=2, epochs=15``.

    Attributes
    ----------
    hidden : int
        Units of the recurrent layer; `layers` are the fully connected layers after it.
    """

    past: FrameCount = 50
    future: FrameCount = 50
    frame_stride: Count = 1
    layers: Integers = (256, 128)
    epochs: EpochCount = 20
    hidden: Count = 256


@register_model("lstm")
class Lstm(TrajectoryModel):
    """CalMS21's recurrent network."""

    title = "a recurrent layer over a trajectory of poses (CalMS21 baseline); tags too"
    Params = LstmParams

    def build(self, n_inputs: int, n_outputs: int) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.models.calms21_modules import recurrent

        return recurrent(n_inputs, n_outputs, self.params.hidden, self.params.layers, self.params.dropout, len(self.annotators))


@hyperparameters
class AttentionParams(TrajectoryParams):
    """Hyper-parameters of `attention`: those of `TrajectoryParams`.

    In the paper's first version it had ``past=100, future=100, frame_stride=2, epochs=15``.
    """

    past: FrameCount = 50
    future: FrameCount = 50
    frame_stride: Count = 1
    epochs: EpochCount = 20


@register_model("attention")
class SelfAttention(TrajectoryModel):
    """CalMS21's self-attention network."""

    title = "self-attention over a trajectory of poses (CalMS21 baseline); tags too"
    Params = AttentionParams

    def build(self, n_inputs: int, n_outputs: int) -> TrajectoryNetwork:
        """Build the network."""
        from ethobench.models.calms21_modules import attentive

        return attentive(self.span.frames, n_inputs, n_outputs, self.params.layers, self.params.dropout, len(self.annotators))


def annotator_weights(style: str | None, annotators: Sequence[str]) -> list[float]:
    """Return the weight of each annotator's output layer: 1 for the one named, or equal weights if none is."""
    if style is None:
        return [1 / len(annotators)] * len(annotators)
    if style not in annotators:
        raise EthobenchError(f"the model was not trained on annotator {style!r}; available: {', '.join(annotators)}")
    return [float(name == style) for name in annotators]


def _annotator_of(recording: Recording) -> str:
    """Return the annotator of a recording; `fit` with annotator="all" makes one recording for each."""
    if len(recording.annotations) != 1:
        raise EthobenchError(f"recording {recording.id!r} has several annotators: condition='annotator' needs fit(..., annotator='all')")
    return next(iter(recording.annotations))
