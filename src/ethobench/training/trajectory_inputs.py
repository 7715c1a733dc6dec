"""Network inputs from poses (coordinates or features) or channels, standardized by the training data and read in chunks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, ParameterError
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.body import Scene, estimate_scene, to_egocentric
from ethobench.features.missing_data import MAX_GAP_SECONDS, interpolate_gaps, max_gap_frames, valid_positions
from ethobench.features.pose import pose_context, pose_features
from ethobench.formats.calms21 import KEYPOINTS as CALMS21_KEYPOINTS
from ethobench.training.augmentation import Layout
from ethobench.training.joined_recordings import Chunk

Array = NDArray[np.float64]
Arena = tuple[float, float, float, float]
WITH_FEATURES = "coordinates+given"
POSE_INPUTS = ("coordinates", "egocentric", "features", WITH_FEATURES)
CHANNELS = "channels"
CALMS21_ARENA = (0.0, 0.0, 1024.0, 570.0)
UNIT_ARENA = (0.0, 0.0, 1.0, 1.0)
CHUNK_FRAMES = 1 << 14


@dataclass(frozen=True)
class InputTransform:
    """Transforms recordings into network inputs; fitted to the training data, and saved with the model as JSON.

    Attributes
    ----------
    kind : str
        One of `POSE_INPUTS` for poses, ``channels`` for tags.
    rate : float
        Frames per second.
    causal : bool
        Use no later frames: a lost keypoint keeps its last position, instead of being interpolated.
    individuals, keypoints : tuple of str
        Of the poses, in the order of the inputs.
    channels : tuple of str
        Names of the inputs.
    min_confidence : float
        Keypoints with a lower confidence count as missing.
    arena : (left, top, right, bottom)
        Median arena of the training recordings; used where a recording states none and it cannot be estimated.
    unit : float
        Median body length of the training recordings.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) count as missing.
    mean, scale : tuple of float
        Subtracted from each input, and divided by; empty for inputs that are not standardized.
    roles, mirrors : tuple of str
        Of the keypoints, where stated; empty where they follow from the names.
    """

    kind: str
    rate: float
    causal: bool = False
    individuals: tuple[str, ...] = ()
    keypoints: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    min_confidence: float = 0.0
    arena: Arena = UNIT_ARENA
    unit: float = 1.0
    zeros_missing: bool = False
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    roles: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> InputTransform:
        """Make one from the result of `dataclasses.asdict`, after it was written and read as JSON."""
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**values)

    @property
    def max_gap_frames(self) -> int:
        """Longest gap of a keypoint that is filled, in frames."""
        return max_gap_frames(MAX_GAP_SECONDS, self.rate)

    @property
    def n_inputs(self) -> int:
        """Number of inputs per frame."""
        return len(self.channels)

    @cached_property
    def stated_keypoints(self) -> dict[str, Keypoint]:
        """Keypoints whose role or mirror partner is stated."""
        points = zip(self.keypoints, self.roles, self.mirrors, strict=False)
        return {name: Keypoint(name, role, mirror) for name, role, mirror in points if role or mirror}

    @property
    def is_causal(self) -> bool:
        """Whether the inputs of a frame depend on no later frame; features of poses always do."""
        return self.kind == CHANNELS or (self.causal and self.kind in ("coordinates", "egocentric"))

    def layout(self) -> Layout:
        """Describe the inputs for augmentations."""
        if self.kind in (CHANNELS, "features"):
            return Layout(self.channels, mean=self.mean, scale=self.scale)
        left, top, right, bottom = self.arena
        center, aspect = ((0.0, 0.0), 1.0) if self.kind == "egocentric" else ((0.5, 0.5), (right - left) / (bottom - top))
        mirrors = {name: point.mirror for name, point in self.stated_keypoints.items() if point.mirror in self.keypoints} or None
        return Layout(self.channels, self.individuals, self.keypoints, center, aspect, self.mean, self.scale, mirrors)

    def open(self, recording: Recording) -> TransformedRecording:
        """Open a recording for reading."""
        data = recording.signals
        if data is None:
            raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
        if isinstance(data, Signals) is not (self.kind == CHANNELS):
            actual, expected = ("channels", "poses") if isinstance(data, Signals) else ("poses", "channels")
            raise MismatchError(f"recording {recording.id!r} has {actual}, but the model was trained on {expected}")
        features = recording.features if self.kind == WITH_FEATURES else None
        if self.kind == WITH_FEATURES and (features is None or len(features) != len(data)):
            raise MismatchError(
                f"recording {recording.id!r} does not come with features for every frame; inputs={WITH_FEATURES!r} needs them"
            )
        return TransformedRecording(self, data, self._scene(recording, data), features)

    def transform_frame(self, values: Array, scene: Scene) -> NDArray[np.float32]:
        """Return the inputs of one frame: of positions (animal, keypoint, axis) with gaps filled, or of channels."""
        measured = values[None] if self.kind == CHANNELS else self.normalize_positions(values[None], scene)
        return np.asarray(self.standardize(measured)[0])

    def training_scene(self, arena: Arena | None = None) -> Scene:
        """Return the scene of the training recordings, with another arena if one is stated."""
        left, top, right, bottom = arena or self.arena
        return Scene(self.unit, (left, top), (right, bottom), self.zeros_missing)

    def normalize_positions(self, positions: Array, scene: Scene) -> Array:
        """Return positions as fractions of the arena, or in body lengths relative to the first animal (n_frames, n_coordinates)."""
        if self.kind == "egocentric":
            confidence = np.broadcast_to(np.nan, positions.shape[:3])
            poses = Poses(positions, confidence, self.individuals, self.keypoints, self.rate)
            with np.errstate(invalid="ignore", divide="ignore"):  # an animal that is not tracked has no direction
                centered = to_egocentric(poses, self.individuals[0], keypoints=self.stated_keypoints)
            return centered.positions.reshape(len(positions), -1) / scene.body_length
        low, high = np.array(scene.low), np.array(scene.high)
        return np.asarray(((positions - low) / (high - low)).reshape(len(positions), -1))

    def standardize(self, values: Array) -> NDArray[np.float32]:
        """Subtract the training mean, divide by the training standard deviation, and replace missing values by 0."""
        if self.mean:
            values = (values - np.array(self.mean)) / np.array(self.scale)
        return np.where(np.isfinite(values), values, 0.0).astype(np.float32)

    def _scene(self, recording: Recording, data: Data) -> Scene:
        if isinstance(data, Signals):
            return self.training_scene()
        arena = stated_arena(recording)
        if self.causal or not len(data):
            return self.training_scene(arena)
        scene = estimate_scene(data, keypoints=self.stated_keypoints, arena=arena, min_confidence=self.min_confidence)
        if np.all(np.array(scene.high) - np.array(scene.low) > 0):
            return scene
        return dataclasses.replace(scene, low=self.arena[:2], high=self.arena[2:])


@dataclass(frozen=True, eq=False)
class TransformedRecording:
    """The inputs of one recording, of which only the requested frames are in memory."""

    transform: InputTransform
    data: Data
    scene: Scene
    features: Signals | None

    @cached_property
    def _indices(self) -> tuple[list[int], list[int]]:
        """Indices of the channels, or of the animals and the keypoints, in the data."""
        if isinstance(self.data, Signals):
            return _indices_of(self.transform.channels, self.data.channels), []
        return _indices_of(self.transform.individuals, self.data.individuals), _indices_of(self.transform.keypoints, self.data.keypoints)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def n_channels(self) -> int:
        """Number of inputs per frame."""
        return self.transform.n_inputs

    def read(self, start: int, stop: int) -> NDArray[np.float32]:
        """Read the frames ``[start, stop)``; frames beyond the ends of the recording are zeros, as in the published code."""
        inside = slice(min(max(start, 0), len(self)), max(min(stop, len(self)), 0))
        values = np.zeros((stop - start, self.n_channels), dtype=np.float32)
        if inside.start < inside.stop:
            values[inside.start - start : inside.stop - start] = self.transform.standardize(self.measure(inside.start, inside.stop)[0])
        return values

    def chunks(self) -> Iterator[Chunk]:
        """Yield all frames in order; missing values are zeros, so no frame is incomplete."""
        for start, stop in self.spans():
            complete = np.zeros(stop - start, dtype=bool)
            yield Chunk(start, self.read(start, stop), complete, complete)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield the start and stop of each chunk."""
        return ((start, min(start + CHUNK_FRAMES, len(self))) for start in range(0, len(self), CHUNK_FRAMES))

    def measure(self, start: int, stop: int) -> tuple[Array, tuple[str, ...]]:
        """Return the inputs of frames within the recording before standardization, and their names."""
        transform = self.transform
        if isinstance(self.data, Signals):
            return np.asarray(self.data.values[start:stop], dtype=np.float64)[:, self._indices[0]], transform.channels
        if transform.kind == "features":
            margin = pose_context(transform.rate)
            first, last = max(start - margin, 0), min(stop + margin, len(self))
            poses = self._select(self.data, first, last)
            features, names = pose_features(
                poses, transform.rate, keypoints=transform.stated_keypoints, scene=self.scene, min_confidence=transform.min_confidence
            )
            return features[start - first : stop - first].astype(np.float64), names
        values = transform.normalize_positions(self._positions(self.data, start, stop), self.scene)
        names = tuple(f"{animal}/{point}/{axis}" for animal in transform.individuals for point in transform.keypoints for axis in "xy")
        if self.features is None:
            return values, names
        return np.concatenate([values, self.features.values[start:stop]], axis=1), (*names, *self.features.channels)

    def _select(self, poses: Poses, start: int, stop: int) -> Poses:
        animals, points = self._indices
        selection = (slice(start, stop), np.array(animals)[:, None], points)
        positions = np.asarray(poses.positions[selection][..., :2], dtype=np.float64)
        confidence = np.asarray(poses.confidence[selection])
        return Poses(positions, confidence, self.transform.individuals, self.transform.keypoints, self.transform.rate)

    def _positions(self, poses: Poses, start: int, stop: int) -> Array:
        """Return positions with short gaps interpolated, or filled with the last position if the model is causal."""
        max_gap, causal = self.transform.max_gap_frames, self.transform.causal
        first, last = max(start - max_gap - 1, 0), min(stop + (0 if causal else max_gap + 1), len(self))
        positions = valid_positions(self._select(poses, first, last), self.transform.min_confidence, self.scene.zeros_missing)
        (hold_gaps if causal else interpolate_gaps)(positions, max_gap)
        return positions[start - first : stop - first]


def fit_input_transform(
    recordings: Sequence[Recording],
    kind: str,
    rate: float,
    *,
    causal: bool,
    min_confidence: float = 0.0,
    keypoints: Mapping[str, Keypoint] | None = None,
) -> InputTransform:
    """Fit an input transform to the training recordings.

    Parameters
    ----------
    recordings : sequence of Recording
        All with poses, or all with channels. Animals, keypoints or channels have the order of the first recording.
    kind : str
        One of `POSE_INPUTS`; ignored for channels.
    rate : float
    causal : bool
    min_confidence : float
    keypoints : mapping of name to Keypoint, optional
        Stated roles and mirror partners; guessed from the names by default.
    """
    first = recordings[0].signals
    if isinstance(first, Signals):
        return _fit_statistics(InputTransform(CHANNELS, rate, causal, channels=first.channels), recordings)
    if not isinstance(first, Poses):
        raise MismatchError(f"recording {recordings[0].id!r} has no signals to learn from")
    if kind not in POSE_INPUTS:
        raise ParameterError(f"`inputs` must be one of {', '.join(POSE_INPUTS)}, got {kind!r}")
    stated = [(keypoints or {}).get(name, Keypoint(name)) for name in first.keypoints]
    roles, mirrors = tuple(point.role for point in stated), tuple(point.mirror for point in stated)
    transform = InputTransform(
        kind, rate, causal, first.individuals, first.keypoints, min_confidence=min_confidence, roles=roles, mirrors=mirrors
    )
    scenes = [
        estimate_scene(r.signals, keypoints=transform.stated_keypoints, arena=stated_arena(r), min_confidence=min_confidence)
        for r in recordings
        if isinstance(r.signals, Poses)
    ]
    corners = np.array([(*scene.low, *scene.high) for scene in scenes])
    corners = corners[np.isfinite(corners).all(axis=1) & (corners[:, 2:] > corners[:, :2]).all(axis=1)]
    left, top, right, bottom = np.median(corners, axis=0).tolist() if len(corners) else UNIT_ARENA
    unit = float(np.median([scene.body_length for scene in scenes]))
    zeros_missing = 2 * sum(scene.zeros_missing for scene in scenes) > len(scenes)
    transform = dataclasses.replace(transform, arena=(left, top, right, bottom), unit=unit, zeros_missing=zeros_missing)
    return _fit_statistics(transform, recordings)


def stated_arena(recording: Recording) -> Arena | None:
    """Return the arena from a recording's metadata (``width`` and ``height``), or that of CalMS21; None if unknown."""
    try:
        width, height = (float(recording.metadata[name]) for name in ("width", "height"))
    except (KeyError, TypeError, ValueError):
        data = recording.signals
        is_calms21 = isinstance(data, Poses) and data.keypoints == CALMS21_KEYPOINTS and "group" in recording.metadata
        return CALMS21_ARENA if is_calms21 else None
    return (0.0, 0.0, width, height) if 0 < width < math.inf and 0 < height < math.inf else None


def hold_gaps(positions: Array, max_gap: int) -> None:
    """Fill missing keypoints with their last position, in place, for at most `max_gap` frames."""
    finite = ~np.isnan(positions[..., 0])
    frames = np.arange(len(positions)).reshape(-1, *[1] * (finite.ndim - 1))
    last = np.maximum.accumulate(np.where(finite, frames, -1), axis=0)
    filled = ~finite & (last >= 0) & (frames - last <= max_gap)
    _, *indices = np.nonzero(filled)
    positions[filled] = positions[(last[filled], *indices)]


def _fit_statistics(transform: InputTransform, recordings: Iterable[Recording]) -> InputTransform:
    """Set the names, means and standard deviations of the inputs; coordinates are not standardized, as in the published code."""
    total = squares = count = np.zeros(0)
    names: tuple[str, ...] = transform.channels
    for recording in recordings:
        opened = transform.open(recording)
        for start, stop in opened.spans():
            values, chunk_names = opened.measure(start, stop)
            if not total.size:
                names, shift = chunk_names, np.nan_to_num(values[0], posinf=0, neginf=0)
                total, squares, count = (np.zeros(len(names)) for _ in range(3))
            if len(chunk_names) != len(names):
                raise MismatchError(f"recording {recording.id!r} has {len(chunk_names)} inputs, the first recording {len(names)}")
            finite = np.isfinite(values)
            shifted = np.where(finite, values - shift, 0.0)
            total, squares, count = total + shifted.sum(axis=0), squares + np.square(shifted).sum(axis=0), count + finite.sum(axis=0)
            if transform.kind in ("coordinates", "egocentric"):
                return dataclasses.replace(transform, channels=names)
    if not total.size:
        raise EthobenchError("nothing to train on: the recordings have no frames")
    mean = total / np.maximum(count, 1)
    deviation = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
    mean, scale = mean + shift, np.where(deviation > 1e-6 * np.maximum(np.abs(mean + shift), 1e-6), deviation, 1.0)
    n_coordinates = 2 * len(transform.individuals) * len(transform.keypoints) if transform.kind == WITH_FEATURES else 0
    mean[:n_coordinates], scale[:n_coordinates] = 0.0, 1.0
    return dataclasses.replace(transform, channels=names, mean=tuple(mean.tolist()), scale=tuple(scale.tolist()))


def _indices_of(names: Sequence[str], available: Sequence[str]) -> list[int]:
    missing = [name for name in names if name not in available]
    if missing:
        raise MismatchError(f"{', '.join(missing)} not found among {', '.join(available)}")
    return [available.index(name) for name in names]
