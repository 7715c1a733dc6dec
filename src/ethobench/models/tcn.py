"""A temporal convolutional network on complete recordings: `tcn`, fast to train on a CPU."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError
from ethobench.features.multiscale import MAX_WHOLE_FRAMES, Baseline, SignalReader, signal_context
from ethobench.features.roles import constant_names
from ethobench.features.shared import shared
from ethobench.models.hyperparameters import Count, hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import interpolate_steps, keypoints_from_json, keypoints_to_json, repeat_steps
from ethobench.models.network_base import LearningRate, NetworkModel
from ethobench.models.registry import register_model
from ethobench.models.signal_model import SignalModel
from ethobench.models.streaming import FrameScorer, StepScorer
from ethobench.training.augmentation import Layout
from ethobench.training.channel_inputs import ChannelReader
from ethobench.training.device import choose_device, isolated_seed
from ethobench.training.inference import predict_steps
from ethobench.training.joined_recordings import Targets
from ethobench.training.loop import TrainingSettings
from ethobench.training.losses import Loss, class_weights, overlapping_loss, smoothed_exclusive_loss, with_boundaries
from ethobench.training.trajectory_inputs import InputTransform, fit_input_transform
from ethobench.training.windows import RandomBatches, sample_sequences

if TYPE_CHECKING:
    from ethobench.models.tcn_modules import TemporalNetwork

UPDATES_PER_EPOCH = 25
CAUSAL_INPUTS = "coordinates"
CAUSAL_ROLE_INPUTS = "egocentric"  # relative to the subject, since arenas of laboratories differ
MIN_STEPS = 500  # of a training sequence, where recordings are slower than the steps of the network
RELATIVE_SUFFIX, FINITE_SHARE = "|relative", "|finite"  # in the names of inputs
BOUNDARY_SECONDS = 0.2  # before and after the start or stop of a bout, in which steps are labeled as an onset or offset
CONSTANT_SCALE = 4.0  # divisor of inputs that do not change within a recording, such as the logarithm of its rate
NO_CONDITION = "no condition"
MAX_DEVIATION = 5.0  # standardized inputs are clipped to this range


@hyperparameters
class TcnParams:
    """Hyper-parameters of `tcn`.

    Attributes
    ----------
    step_rate : float
        Steps of the network per second, for recordings with a higher rate; probabilities between steps are interpolated linearly.
    levels : int
        Residual layers; with 7, a step depends on 127 steps to each side.
    width : int
        Channels of the hidden layers.
    seconds : float
        Length of the sequences in training; 500 steps for slow recordings.
    passes : int
        Approximate number of times that each frame is trained on.
    updates : int
        Maximum number of updates; frames of large datasets are trained on less often.
    batch : int
        Sequences of a batch.
    learning_rate : float
        Initial learning rate; it falls along a half cosine.
    class_weight_exponent : float
        Balance of the behaviors in the loss: 0 as frequent as they are, 1 all equal.
    label_smoothing : float
        Share of a label that is spread over all behaviors.
    temporal_smoothing : float
        Weight of the temporal smoothing loss, on changes of the probabilities from step to step.
    boundary_loss : float
        Weight of the loss of onsets and offsets, which the network predicts beside the behaviors for the decoder
        (`Prediction.boundaries`); 0 to predict behaviors only, as causal networks always do.
    causal : bool
        Use no later frames, so that the model supports streaming (`stream`). Inputs are then channels or coordinates, not relative to the
        complete recording, and frames between two steps have the probabilities of the last one.
    inputs : {"auto", "roles", "keypoints"}
        Poses by role, at a common rate and scale, or the keypoints of the training recordings by name. ``"auto"``: by role where
        recordings differ in skeleton, rate, number of animals, or condition.
    condition : str
        Column of the metadata, such as the laboratory, that is an input of the network where inputs are by role. Half of the training
        sequences are without it, so that other values can be predicted. Empty for none.
    zones : bool
        Use the zones of the study (``zones.csv``) as inputs: whether each animal is inside, and how far away it is.
    """

    step_rate: Annotated[float, Field(gt=0)] = 7.5
    levels: Count = 7
    width: Count = 64
    seconds: Annotated[float, Field(gt=0)] = 20.0
    passes: Count = 120
    updates: Count = 300
    batch: Count = 16
    learning_rate: LearningRate = 0.003
    class_weight_exponent: Annotated[float, Field(ge=0, le=1)] = 0.5
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.05
    temporal_smoothing: Annotated[float, Field(ge=0)] = 0.15
    boundary_loss: Annotated[float, Field(ge=0)] = 1.0
    causal: bool = False
    inputs: Literal["auto", "roles", "keypoints"] = "auto"
    condition: str = "lab"
    zones: bool = False


class SignalValues(NamedTuple):
    """Signals of a recording, as measured and relative to its baseline (n_frames, n_signals)."""

    measured: NDArray[np.float32]
    relative: NDArray[np.float32]
    names: tuple[str, ...]


def read_signals(reader: SignalReader, start: int, stop: int) -> SignalValues:
    """Read the signals of the frames ``[start, stop)`` of a recording; networks that predict a recording together share them."""

    def compute() -> SignalValues:
        rows, names = reader.read(start, stop)
        relative = (rows - np.array(reader.baseline.median)[:, None]) / np.array(reader.baseline.half_range)[:, None]
        return SignalValues(rows.T.astype(np.float32), relative.T.astype(np.float32), names)

    if len(reader.data) > MAX_WHOLE_FRAMES:
        return compute()
    return shared("signal values", (reader.data,), (start, stop, reader.rate, reader.baseline, reader.keypoints), compute)


@dataclass(frozen=True)
class SignalScaling:
    """Means and standard deviations of the signals in the training data.

    Attributes
    ----------
    names : tuple of str
        The signals.
    mean, scale : tuple of float
        Of the signals as measured; relative signals are not standardized again.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, signals: Sequence[SignalValues]) -> Self:
        """Compute the statistics of the training recordings."""
        count = np.zeros(len(signals[0].names))
        total, squares = np.zeros_like(count), np.zeros_like(count)
        shift = np.nan_to_num(signals[0].measured[0].astype(np.float64))
        for recording in signals:
            finite = np.isfinite(recording.measured)
            shifted = np.where(finite, recording.measured - shift, 0.0)
            count += finite.sum(axis=0)
            total += shifted.sum(axis=0)
            squares += np.square(shifted).sum(axis=0)
        mean = total / np.maximum(count, 1)
        scale = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
        scale = np.where(scale > 1e-9, scale, 1.0)
        return cls(signals[0].names, tuple(map(float, mean + shift)), tuple(map(float, scale)))

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of all inputs: measured, relative, and the share of signals that are not missing."""
        return (*self.names, *(f"{name}{RELATIVE_SUFFIX}" for name in self.names), FINITE_SHARE)

    def layout(self) -> Layout:
        """Describe the inputs for augmentations."""
        others = len(self.names) + 1
        return Layout(self.channels, mean=(*self.mean, *[0.0] * others), scale=(*self.scale, *[1.0] * others))

    def apply(self, signals: SignalValues) -> NDArray[np.float32]:
        """Return the inputs (n_frames, n_inputs): clipped, with 0 for missing values."""
        scaled = (signals.measured - np.array(self.mean, dtype=np.float32)) / np.array(self.scale, dtype=np.float32)
        finite_share = np.isfinite(signals.measured).mean(axis=1, dtype=np.float32, keepdims=True)
        joined = np.concatenate([scaled, signals.relative, finite_share], axis=1)
        return np.asarray(np.nan_to_num(np.clip(joined, -MAX_DEVIATION, MAX_DEVIATION), copy=False))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Make one from the result of `dataclasses.asdict`, after it was written and read as JSON."""
        mean, scale = (tuple(map(float, fields[key])) for key in ("mean", "scale"))
        return cls(tuple(map(str, fields["names"])), mean, scale)


@register_model("tcn")
class Tcn(NetworkModel, SignalModel):
    """A network on the signals of a tag or of poses, standardized by the training data and relative to the recording."""

    title = "temporal convolutional network, dilated and residual; tags and poses"
    Params = TcnParams
    grid = {"learning_rate": (0.01, 0.003, 0.001), "class_weight_exponent": (0.0, 0.5, 1.0)}  # noqa: RUF012
    revision = 5

    module: TemporalNetwork
    scaling: SignalScaling | InputTransform
    conditions: tuple[str, ...] = ()

    @property
    def n_inputs(self) -> int:
        """Number of inputs per frame."""
        return len(self.scaling.channels) + len(self._constant_names())

    def _constant_names(self) -> tuple[str, ...]:
        """Return the names of the inputs that do not change within a recording."""
        if self.role_inputs is None or self.params.causal:
            return ()
        return (*constant_names(), *(f"{self.params.condition}={value}" for value in self.conditions))

    def _with_constants(self, values: NDArray[np.float32], recording: Recording, condition: str) -> NDArray[np.float32]:
        """Append the constant inputs of a recording: its rate, animals and body parts, and its condition, one-hot."""
        if not self._constant_names():
            return values
        is_condition = np.array([value == condition for value in self.conditions], dtype=np.float32)
        constants = np.concatenate([self.constant_inputs(recording) / CONSTANT_SCALE, is_condition])
        return np.hstack([values, np.tile(constants, (len(values), 1))]).astype(np.float32)

    def build(self, n_inputs: int, n_outputs: int) -> TemporalNetwork:
        """Build the network."""
        from ethobench.models.tcn_modules import TemporalNetwork

        params, n_outputs = self.params, n_outputs + self.n_boundaries
        return TemporalNetwork(n_inputs, n_outputs, stride=self._stride(), levels=params.levels, width=params.width, causal=params.causal)

    @property
    def n_boundaries(self) -> int:
        """Number of outputs beside those of the behaviors: onsets and offsets, or none."""
        return 2 if self.params.boundary_loss and not self.params.causal else 0

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        layout, inputs = self._fit_inputs(data)
        truth_of = {key: self._targets(truths[key]) for key in inputs}
        if self.conditions:  # each sequence is trained with its condition or without
            truth_of |= {f"{key}|{NO_CONDITION}": target for key, target in truth_of.items()}
            inputs |= {f"{key}|{NO_CONDITION}": self._without_condition(values) for key, values in inputs.items()}
        readers = [ChannelReader(values, range(values.shape[1]), layout.channels, float(self.rate or 1.0)) for values in inputs.values()]
        window = self._window([len(reader) for reader in readers])
        sampler = sample_sequences(
            readers,
            [truth_of[key] for key in inputs],
            window,
            self.params.batch,
            epoch=RandomBatches(UPDATES_PER_EPOCH),
            target_stride=self._stride(),
            augmentations=_augmentations(layout, egocentric=self.params.causal and self.role_inputs is not None),
            layout=layout,
        )
        self.module = self._build_seeded()  # type: ignore[assignment]
        n_frames = len(sampler.recordings.values)
        updates = min(self.params.updates, self.params.passes * n_frames / (window * self.params.batch))
        epochs = max(1, round(updates / UPDATES_PER_EPOCH))
        self.histories = []
        self._train(
            sampler,
            self._loss(sampler.recordings.targets),
            TrainingSettings(epochs, self.params.learning_rate, weight_decay=1e-4, amsgrad=False, seed=self.seed),
            identity={"data": sampler.recordings.checksum, "window": window},
        )
        self.note_epochs(len(self.history.losses), epochs)

    def _fit_inputs(self, data: Dataset) -> tuple[Layout, dict[str, NDArray[np.float32]]]:
        """Fit the scaling of the inputs; return their layout, and the inputs of each recording."""
        if self.params.causal:
            if self._data(data.recordings[0]).extra is not None:
                raise EthobenchError("tcn with causal=True uses poses or channels only: leave column 'features' out, or set causal=False")
            rate = float(self.rate or 1.0)
            kind = CAUSAL_INPUTS if self.role_inputs is None else CAUSAL_ROLE_INPUTS
            transform = self.scaling = fit_input_transform(data.recordings, kind, rate, causal=True, keypoints=data.keypoints)
            opened = {recording.id: transform.open(recording) for recording in data}
            return transform.layout(), {name: reader.read(0, len(reader)) for name, reader in opened.items()}
        baselines = {recording.id: self.signal_baseline(recording) for recording in data}
        self.training_range = TrainingRange.fit(list(baselines.values()))
        signals = {recording.id: self._read_signals(recording, baselines[recording.id]) for recording in data}
        scaling = self.scaling = SignalScaling.fit(list(signals.values()))
        values = {self.condition_of(recording) for recording in data} - {""}
        self.conditions = tuple(sorted(values)) if self.role_inputs is not None and len(values) > 1 else ()
        inputs = {r.id: self._with_constants(scaling.apply(signals[r.id]), r, self.condition_of(r)) for r in data}
        layout, constants = scaling.layout(), self._constant_names()
        more = len(constants)
        return replace(
            layout, channels=(*layout.channels, *constants), mean=(*layout.mean, *[0.0] * more), scale=(*layout.scale, *[1.0] * more)
        ), inputs

    def _without_condition(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return inputs of a recording whose condition is unknown."""
        result = values.copy()
        result[:, values.shape[1] - len(self.conditions) :] = 0
        return result

    def time_update(self, data: Dataset) -> float:
        """Measure the seconds that an update of the network takes on this machine, without computing its inputs."""
        import torch

        n_inputs = 2 * len(self.signal_baseline(data.recordings[0]).names) + 1
        window = self._window([recording.n_frames or 0 for recording in data])
        seconds = []
        with isolated_seed(self.seed):
            module = self.build(n_inputs, self.n_outputs).to(choose_device())
            values = torch.zeros(self.params.batch, window, n_inputs, device=next(module.parameters()).device)
            for _ in range(3):
                start = time.perf_counter()
                module(values).sum().backward()
                seconds.append(time.perf_counter() - start)
        return float(np.median(seconds))

    def _read_signals(self, recording: Recording, baseline: Baseline) -> SignalValues:
        data = self._data(recording)
        return read_signals(SignalReader(data, self.rate_of(recording), baseline, self.keypoints), 0, len(data))

    def _baseline_of(self, recording: Recording) -> Baseline | None:
        return None if self.params.causal else super()._baseline_of(recording)

    def _loss(self, targets: Targets) -> Loss:
        params = self.params
        if self.exclusive:
            weights = class_weights(targets, self.n_outputs, "power", exponent=params.class_weight_exponent)
            loss = smoothed_exclusive_loss(weights, label_smoothing=params.label_smoothing, temporal_smoothing=params.temporal_smoothing)
        else:
            loss = overlapping_loss(temporal_smoothing=params.temporal_smoothing)
        if not self.n_boundaries:
            return loss
        steps_per_second = float(self.rate or 1.0) / self._stride()
        reach = max(1, round(BOUNDARY_SECONDS * steps_per_second))
        ethogram = self.check_is_fitted()
        is_none_added = self.exclusive and ethogram.background is None and self.n_outputs > len(ethogram)
        background = len(ethogram) if is_none_added else ethogram.background
        return with_boundaries(loss, self.n_outputs, weight=params.boundary_loss, reach=reach, background=background)

    def _window(self, lengths: list[int]) -> int:
        """Return the frames of a training sequence: a multiple of the stride, and at most half the median recording."""
        stride = self._stride()
        frames = max(self.params.seconds * float(self.rate or 1.0), MIN_STEPS if stride == 1 else 0)
        return max(int(min(frames, np.median(lengths) / 2)) // stride, 1) * stride

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram, stride = self.check_is_fitted(), self._stride()
        n_frames = len(self._data(recording))
        read = self._reader(recording, baseline)
        n_boundaries, context = self.n_boundaries, self.module.context
        steps = predict_steps(self.module, read, n_frames, stride, context, exclusive=self.exclusive, n_boundaries=n_boundaries)
        values = (repeat_steps if self.params.causal else interpolate_steps)(steps, stride, n_frames)
        probabilities, boundaries = np.split(values, [self.n_outputs], axis=1)
        return Prediction(
            probabilities,
            ethogram,
            self.rate_of(recording),
            exclusive=self.exclusive,
            boundaries=boundaries[None] if n_boundaries else None,
        )

    def _reader(self, recording: Recording, baseline: Baseline) -> Callable[[int, int], NDArray[np.float32]]:
        """Return a function that reads the inputs of the frames ``[start, stop)``."""
        scaling = self.scaling
        if isinstance(scaling, InputTransform):
            return scaling.open(recording).read
        rate = self.rate_of(recording)
        reader = SignalReader(self._data(recording), rate, baseline, self.keypoints)
        margin, condition = signal_context(rate), self.condition_of(recording)

        def read(start: int, stop: int) -> NDArray[np.float32]:
            first = max(start - margin, 0)
            signals = read_signals(reader, first, stop + margin)
            return self._with_constants(scaling.apply(signals)[start - first : stop - first], recording, condition)

        return read

    def _open_stream(self) -> tuple[InputTransform, FrameScorer]:
        if not isinstance(self.scaling, InputTransform):
            raise EthobenchError(f"model {self.name!r} does not support streaming: it is not causal; train it with causal=True")
        return self.scaling, StepScorer(self.module)

    def context(self, rate: float) -> int:
        """Return how many frames before and after a frame influence its prediction."""
        return self.module.context + signal_context(rate) + 2 * self._stride()

    def _stride(self) -> int:
        return max(1, round(float(self.rate or 1.0) / float(self.params.step_rate)))

    def _describe(self) -> dict[str, Any]:
        return {
            "scaling": dataclasses.asdict(self.scaling),
            "keypoints": keypoints_to_json(self.keypoints),
            "conditions": list(self.conditions),
            "training_range": None if self.training_range is None else dataclasses.asdict(self.training_range),
        }

    def _restore(self, description: Mapping[str, Any]) -> None:
        self.keypoints = keypoints_from_json(description["keypoints"])
        self.conditions = tuple(map(str, description.get("conditions", ())))
        training_range = description["training_range"]
        self.training_range = TrainingRange.from_dict(training_range) if training_range else None
        self.scaling = (InputTransform if self.params.causal else SignalScaling).from_dict(description["scaling"])


def _augmentations(layout: Layout, *, egocentric: bool = False) -> tuple[str, ...]:
    """Return the augmentations for these inputs."""
    if layout.n_coordinates and egocentric:
        return ("reflection", "dropout")
    if layout.n_coordinates:
        return ("rotation", "translation", "reflection", "dropout")
    return ("rotate_axes", "scale") if layout.triples else ()
