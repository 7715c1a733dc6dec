"""Streaming: predictions frame by frame, each before the next frame arrives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.errors import MismatchError, ParameterError
from ethobench.features.body import Scene
from ethobench.features.keypoints import ROLES
from ethobench.features.missing_data import MAX_GAP_SECONDS, MIN_CONFIDENCE, max_gap_frames, nan_mean
from ethobench.features.roles import CM, RoleInputs, role_sources
from ethobench.models.directed import Actors, DirectedExamples
from ethobench.models.input_checks import RequiredInput
from ethobench.training.trajectory_inputs import CHANNELS, InputTransform
from ethobench.training.windows import WindowSpan

if TYPE_CHECKING:
    from torch import Tensor

    from ethobench.models.calms21_modules import TrajectoryNetwork
    from ethobench.models.tcn_modules import TemporalNetwork

Values = NDArray[np.float32]


class PredictionStream(Protocol):
    """Predicts frames as they arrive; returned by `Model.stream`.

    Frames arrive in order at the model's rate. The probabilities are those of `predict` on the complete recording, to 1e-5. Gaps are
    the exception: probabilities become NaN once input has been missing for longer than gaps are bridged, whereas `predict` knows the
    length of a gap and marks all of it as unobserved.
    """

    def push(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Values:
        """Predict the next frame.

        Parameters
        ----------
        frame : array (n_animals, n_keypoints, 2) or (n_channels,)
            In the order of the model's inputs; NaN for missing values.
        confidence : array (n_animals, n_keypoints), optional
            Of the tracker.

        Returns
        -------
        array of float32 (n_outputs,)
            Probabilities.
        """

    def reset(self) -> None:
        """Start a new recording."""


class FrameScorer(Protocol):
    """Scores frames one after the other."""

    def push(self, inputs: Values) -> Values:
        """Return the scores (n_outputs,) of the next frame, from its inputs (n_inputs,)."""

    def reset(self) -> None:
        """Forget all frames."""


class FramePreparer:
    """Transforms single frames into network inputs; a lost keypoint keeps its last position for a while.

    Parameters
    ----------
    transform : InputTransform
        Of a causal model.
    scene : Scene
        The arena.
    """

    def __init__(self, transform: InputTransform, scene: Scene) -> None:
        self.transform, self.scene = transform, scene
        is_tag = transform.kind == CHANNELS
        self.shape = (transform.n_inputs,) if is_tag else (len(transform.individuals), len(transform.keypoints), 2)
        self.reset()

    def reset(self) -> None:
        """Forget the last positions."""
        self._last = np.full(self.shape, np.nan)
        self._age = np.zeros(self.shape[:2], dtype=np.int64)
        self._frames_missing = np.zeros(1 if self.transform.kind == CHANNELS else self.shape[0], dtype=np.int64)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which sources (the tag, or each animal) have input in the last frame, or had it so recently that the gap is bridged."""
        return np.asarray(self._frames_missing <= max(1, max_gap_frames(MAX_GAP_SECONDS, self.transform.rate)))

    def prepare(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Values:
        """Return the inputs (n_inputs,) of the next frame."""
        values = np.asarray(frame, dtype=np.float64)
        if values.shape != self.shape:
            raise MismatchError(f"a frame must have shape {self.shape}, got {values.shape}")
        if self.transform.kind == CHANNELS:
            self._frames_missing = np.where(np.isfinite(values).any(), 0, self._frames_missing + 1)
            return self.transform.transform_frame(values, self.scene)
        missing = np.asarray(~np.isfinite(values).all(axis=2))
        if confidence is not None and self.transform.min_confidence > 0:
            missing |= np.asarray(confidence) < self.transform.min_confidence
        if self.scene.zeros_missing:
            missing |= (values == 0).all(axis=2)
        self._age = np.where(missing, self._age + 1, 0)
        self._frames_missing = np.where(missing.all(axis=1), self._frames_missing + 1, 0)
        self._last = np.where(missing[..., None], self._last, values)
        held = np.where(self._age[..., None] <= self.transform.max_gap_frames, self._last, np.nan)
        return self.transform.transform_frame(held, self.scene)


class NetworkStream:
    """A prediction stream of a network.

    Parameters
    ----------
    scorer : FrameScorer
    frames : FramePreparer
    exclusive : bool
        Behaviors exclude each other (softmax), or may overlap (sigmoid).
    required_input : RequiredInput
        A frame without it has probabilities of NaN.
    """

    def __init__(self, scorer: FrameScorer, frames: FramePreparer, *, exclusive: bool, required_input: RequiredInput) -> None:
        self.scorer, self.frames, self.exclusive, self.required_input = scorer, frames, exclusive, required_input

    def reset(self) -> None:
        """Start a new recording."""
        self.scorer.reset()
        self.frames.reset()

    def push(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Values:
        """Predict the next frame; see `PredictionStream.push`."""
        scores = self.scorer.push(self.frames.prepare(frame, confidence))
        if not self.required_input.met(self.frames.present[None])[0]:
            return np.full(len(scores), np.nan, dtype=np.float32)
        return _to_probabilities(scores, self.exclusive).astype(np.float32)


def _to_probabilities(scores: Values, exclusive: bool) -> Values:
    """Return the softmax of scores (..., n_outputs), or their sigmoid if behaviors may overlap."""
    if not exclusive:
        return np.asarray(1 / (1 + np.exp(-np.maximum(scores, -80.0))))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


class ActorStream:
    """Predicts what each of several animals does, to whom, as frames arrive: for causal models with inputs by role.

    Frames may have any skeleton, rate and number of animals. The model's own frames (30 per second at most) are the last ones that
    arrived, whereas `predict` resamples a recording with a filter; at the model's rate both are equal.

    Parameters
    ----------
    scorers : callable
        Makes the scorer of one subject and target.
    transform : InputTransform
        Of a causal model.
    roles : RoleInputs
    directed : DirectedExamples
    required_input : RequiredInput
    source : FrameSource
        What arrives.
    exclusive : bool
        Behaviors exclude each other (softmax), or may overlap (sigmoid).

    See Also
    --------
    ethobench.models.network_base.NetworkModel.stream
    """

    def __init__(
        self,
        scorers: Callable[[], FrameScorer],
        transform: InputTransform,
        roles: RoleInputs,
        directed: DirectedExamples,
        required_input: RequiredInput,
        source: FrameSource,
        *,
        exclusive: bool,
    ) -> None:
        self.transform, self.roles, self.required_input, self.source, self.exclusive = transform, roles, required_input, source, exclusive
        self._sources = role_sources(source.keypoints, roles.keypoints)
        self._length = source.body_length(roles)
        self._scene = transform.training_scene()
        names = source.animals
        self.actors: list[Actors] = [*permutations(names, 2)] if directed.targeted and len(names) > 1 else [(name, None) for name in names]
        self._pairs = np.array([(names.index(one), len(names) if other is None else names.index(other)) for one, other in self.actors])
        self._of_subject = {name: [k for k, (subject, _) in enumerate(self.actors) if subject == name] for name in names}
        self._scorers = [scorers() for _ in self.actors]
        self.reset()

    def reset(self) -> None:
        """Start a new recording."""
        for scorer in self._scorers:
            scorer.reset()
        shape = (len(self.source.animals) + 1, len(ROLES))  # and one that is always missing: the target of a single animal
        self._last, self._age = np.full((*shape, 2), np.nan), np.zeros(shape, dtype=np.int64)
        self._frames_missing = np.zeros(shape[0], dtype=np.int64)
        self._arrived = self._done = 0
        self._predictions: dict[Actors, Values] = {}

    def push(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> dict[Actors, Values]:
        """Predict the next frame.

        Parameters
        ----------
        frame : array (n_animals, n_keypoints, 2)
            In the unit of the tracker; NaN for missing keypoints.
        confidence : array (n_animals, n_keypoints), optional
            Of the tracker.

        Returns
        -------
        dict of (subject, target) to array of float32 (n_outputs,)
            Probabilities of behaviors towards the target; those of behaviors without target have the target None. NaN where an animal
            has been missing for longer than gaps are bridged.
        """
        values = np.array(frame, dtype=np.float64)
        shape = (len(self.source.animals), len(self.source.keypoints), 2)
        if values.shape != shape:
            raise MismatchError(f"a frame must have shape {shape}, got {values.shape}")
        if confidence is not None:
            values[np.asarray(confidence) < MIN_CONFIDENCE] = np.nan
        due = int(self._arrived * self.roles.rate / self.source.rate + 1e-6) + 1  # frames of the model until now
        if due > self._done:
            inputs = self._inputs(self.roles.convert_frame(values, self._sources, self._length), due - self._done)
            for _ in range(due - self._done):
                scores = np.stack([scorer.push(row) for scorer, row in zip(self._scorers, inputs, strict=True)])
            self._predictions = self._collect(scores)
            self._done = due
        self._arrived += 1
        return self._predictions

    def _inputs(self, positions: NDArray[np.float64], n_frames: int) -> Values:
        """Return the inputs of each subject and target (n_actors, n_inputs); lost keypoints keep their last position for a while."""
        current = np.concatenate([positions, np.full((1, *positions.shape[1:]), np.nan)])
        missing = np.isnan(current).any(axis=2)
        self._age = np.where(missing, self._age + n_frames, 0)
        self._frames_missing = np.where(missing.all(axis=1), self._frames_missing + n_frames, 0)
        self._last = np.where(missing[..., None], self._last, current)
        held = np.where(self._age[..., None] <= self.transform.max_gap_frames, self._last, np.nan)
        return self.transform.standardize(self.transform.normalize_positions(held[self._pairs], self._scene))

    def _collect(self, scores: Values) -> dict[Actors, Values]:
        probabilities = _to_probabilities(scores, self.exclusive)
        present = self._frames_missing <= max(1, max_gap_frames(MAX_GAP_SECONDS, self.transform.rate))
        met = self.required_input.met(present[self._pairs])
        probabilities = np.where(met[:, None], probabilities, np.nan).astype(np.float32)
        result = dict(zip(self.actors, probabilities, strict=True))
        if self.actors[0][1] is not None:
            result |= {(name, None): nan_mean(probabilities[index], axis=0) for name, index in self._of_subject.items()}
            for (subject, target), (_, number) in zip(self.actors, self._pairs, strict=True):
                if not present[number]:
                    result[subject, target] = np.full(scores.shape[1], np.nan, dtype=np.float32)
        return result


@dataclass(frozen=True)
class FrameSource:
    """What the frames of a stream are.

    Attributes
    ----------
    animals, keypoints : tuple of str
        In the order of the frames.
    rate : float
        Frames per second.
    pixels_per_cm : float, optional
        Scale of the positions.
    animal_length : float, optional
        Distance from the base of the tail to the nose in the unit of the positions, if their scale is unknown.
    """

    animals: tuple[str, ...]
    keypoints: tuple[str, ...]
    rate: float
    pixels_per_cm: float | None = None
    animal_length: float | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "pixels_per_cm", "animal_length"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ParameterError(f"`{name}` must be a number > 0, got {value}")
        for name in ("animals", "keypoints"):
            values = getattr(self, name)
            if not values or len({*values}) < len(values):
                raise ParameterError(f"`{name}` must be one or more different names, got {', '.join(values) or 'none'}")

    def body_length(self, roles: RoleInputs) -> float:
        """Return the length of a body in the unit of the positions."""
        if self.pixels_per_cm is not None and roles.unit == CM:
            return self.pixels_per_cm * roles.body_length
        if self.animal_length is None:
            if roles.unit == CM:
                raise ParameterError("the scale of the stream is unknown: set `pixels_per_cm` or `animal_length`")
            raise ParameterError("the scale of the stream is unknown: set `animal_length`, since the model measures in body lengths")
        return self.animal_length


class WindowScorer:
    """Keeps the last frames, and scores the window of them anew for each frame.

    Parameters
    ----------
    network : TrajectoryNetwork
        With a single output layer.
    span : WindowSpan
        Without later frames.
    n_inputs : int
    """

    def __init__(self, network: TrajectoryNetwork, span: WindowSpan, n_inputs: int) -> None:
        self._network, self._span = network.eval(), span
        self._length, self._n_inputs = span.before + 1, n_inputs
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._frames = np.zeros((2 * self._length, self._n_inputs), dtype=np.float32)
        self._next = 0

    def push(self, inputs: Values) -> Values:
        """Return the scores of the next frame."""
        import torch

        # every frame is written twice, a window's length apart, so that the last frames are always contiguous
        self._frames[self._next] = self._frames[self._next + self._length] = inputs
        self._next = (self._next + 1) % self._length
        window = torch.from_numpy(self._frames[self._next : self._next + self._length : self._span.stride][None])
        with torch.inference_mode():
            return np.asarray(self._network(window.to(self._network.head.weight.device))[0].cpu().numpy())


class ConvolutionScorer:
    """Computes only what a new frame adds to each layer of a convolutional network, and keeps the outputs for the frames before.

    The dilation of the layers is that of `TrajectoryNetwork.score_densely`. An output is stored by the first frame that it depends on.

    Parameters
    ----------
    network : TrajectoryNetwork
        Convolutional, with a single output layer.
    span : WindowSpan
        Without later frames.
    """

    def __init__(self, network: TrajectoryNetwork, span: WindowSpan) -> None:
        network.eval()
        layers: list[Any] = [layer for layer in network.body.children() if layer.__class__.__name__ in ("Conv1d", "BatchNorm1d")]
        scale, shift = _affine(network.normalize)
        self._scale, self._shift = _array(scale), _array(shift)
        self._weights, self._biases, self._taps, self._dilations = [], [], [], []
        dilation = span.stride
        for convolution, norm in zip(layers[::2], layers[1::2], strict=True):
            scale, shift = _affine(norm)
            weight = convolution.weight * scale[:, None, None]
            self._weights.append(_array(weight.transpose(1, 2).flatten(1)))
            self._biases.append(_array(convolution.bias * scale + shift))
            self._taps.append(np.arange(weight.shape[2]) * dilation)
            self._dilations.append(dilation)
            dilation *= 2
        channels = len(self._biases[-1])
        head = network.head.weight.reshape(network.head.out_features, channels, -1)
        self._head, self._head_bias = _array(head.transpose(1, 2).flatten(1)), _array(network.head.bias)
        self._head_taps = np.arange(head.shape[2]) * dilation - span.before
        self._length = span.before + 1
        self.reset()

    def reset(self) -> None:
        """Forget all frames; those before the first are zeros, and the layers start with the outputs for zeros."""
        value, self._time = self._shift, 0
        self._inputs, self._convolved, self._pooled = [np.tile(value, (self._length, 1))], [], []
        for weight, bias, taps in zip(self._weights, self._biases, self._taps, strict=True):
            value = np.maximum(weight @ np.tile(value, len(taps)) + bias, 0)
            self._convolved.append(np.tile(value, (self._length, 1)))
            self._pooled.append(np.tile(value, (self._length, 1)))
        self._inputs += self._pooled

    def push(self, inputs: Values) -> Values:
        """Return the scores of the next frame."""
        length, first = self._length, self._time
        self._inputs[0][first % length] = inputs * self._scale + self._shift
        for layer, (weight, bias, taps) in enumerate(zip(self._weights, self._biases, self._taps, strict=True)):
            first -= int(taps[-1])
            value = np.maximum(weight @ self._inputs[layer][(first + taps) % length].ravel() + bias, 0)
            self._convolved[layer][first % length] = value
            first -= self._dilations[layer]
            self._pooled[layer][first % length] = np.maximum(self._convolved[layer][first % length], value)
        scores = self._head @ self._inputs[-1][(self._time + self._head_taps) % length].ravel() + self._head_bias
        self._time += 1
        return np.asarray(scores)


class StepScorer:
    """Scores the steps of a causal temporal network; frames between two steps have the scores of the last one.

    Parameters
    ----------
    network : TemporalNetwork
        Causal.
    """

    def __init__(self, network: TemporalNetwork) -> None:
        network.eval()
        self._stride = network.stride
        self._stem = _CausalConvolution(network.stem, network.normalize, dilation=1)
        self._layers = []
        layers: Any = network.layers
        for layer in layers:
            convolution = _CausalConvolution(layer.dilated, layer.normalize, dilation=layer.dilated.dilation[0])
            self._layers.append((convolution, _array(layer.pointwise.weight[:, :, 0]), _array(layer.pointwise.bias)))
        self._head, self._head_bias = _array(network.head.weight[:, :, 0]), _array(network.head.bias)  # type: ignore[arg-type]
        self.reset()

    def reset(self) -> None:
        """Forget all frames; those before the first are zeros to every layer, as in a batch."""
        self._stem.reset()
        for convolution, _, _ in self._layers:
            convolution.reset()
        self._time, self._scores = 0, np.zeros(len(self._head_bias), dtype=np.float32)

    def push(self, inputs: Values) -> Values:
        """Return the scores of the next frame."""
        self._stem.append(inputs)
        if self._time % self._stride == 0:
            value = self._stem.output()
            for convolution, weight, bias in self._layers:
                convolution.append(value)
                value = value + weight @ convolution.output() + bias
            self._scores = self._head @ value + self._head_bias
        self._time += 1
        return self._scores


class _CausalConvolution:
    """A convolution with batch normalization and ReLU, and the inputs that its next outputs depend on."""

    def __init__(self, convolution: Any, norm: Any, dilation: int) -> None:
        scale, shift = _affine(norm)
        weight = convolution.weight * scale[:, None, None]
        self._weight, self._bias = _array(weight.transpose(1, 2).flatten(1)), _array(shift)
        self._channels, kernel = weight.shape[1], weight.shape[2]
        self._length = (kernel - 1) * dilation + 1
        self._taps = np.arange(1 - kernel, 1) * dilation
        self.reset()

    def reset(self) -> None:
        self._inputs = np.zeros((self._length, self._channels), dtype=np.float32)
        self._last = -1

    def append(self, value: Values) -> None:
        self._last = (self._last + 1) % self._length
        self._inputs[self._last] = value

    def output(self) -> Values:
        window = self._inputs[(self._last + self._taps) % self._length].ravel()
        return np.asarray(np.maximum(self._weight @ window + self._bias, 0))


def _affine(norm: Any) -> tuple[Tensor, Tensor]:
    """Return the scale and the shift that a batch normalization applies in evaluation mode."""
    scale = norm.weight / (norm.running_var + norm.eps) ** 0.5
    return scale, norm.bias - norm.running_mean * scale


def _array(tensor: Tensor) -> Values:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
