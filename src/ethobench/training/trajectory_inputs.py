"""What networks on trajectories see of a recording: coordinates, features or channels as float32, read a piece at a time."""

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
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.body import Scene, estimate_scene, to_egocentric
from ethobench.features.missing_data import MAX_GAP_SECONDS, interpolate_gaps, max_gap_frames, valid_positions
from ethobench.features.pose import pose_context, pose_features
from ethobench.formats.calms21 import KEYPOINTS as CALMS21_KEYPOINTS
from ethobench.training.augmentation import Layout

Array = NDArray[np.float64]
GIVEN = "coordinates+given"
KINDS = ("coordinates", "egocentric", "features", GIVEN)
CHANNELS = "channels"
CALMS21_ARENA = (0.0, 0.0, 1024.0, 570.0)
UNIT_ARENA = (0.0, 0.0, 1.0, 1.0)
PIECE = 1 << 14


@dataclass(frozen=True)
class Preparation:
    """How recordings become inputs, with all that has to be learnt for it; saved with the model, so nothing but plain values.

    Attributes
    ----------
    kind : str
        One of `KINDS` for poses, ``channels`` for tags.
    rate : float
        Frames per second.
    causal : bool
        Nothing is taken from frames to come: a lost keypoint stays where it was, instead of moving straight to where it is next.
    individuals, keypoints : tuple of str
        Of the poses, in the order in which they are laid out.
    channels : tuple of str
        Names of the inputs, or before `learn` has seen them, of a tag's channels.
    min_confidence : float
        Keypoints below it count as missing.
    arena : (left, top, right, bottom)
        Where the animals of the training were; for recordings that do not tell theirs, where it cannot be estimated.
    unit : float
        The median body length of the training.
    zeros_missing : bool
        Whether keypoints at exactly (0, 0) were not found in the training.
    mean, scale : tuple of float
        What is taken from each input, and what it is divided by then.
    roles, mirrors : tuple of str
        Of the keypoints, where they are stated; empty where their names tell.
    """

    kind: str
    rate: float
    causal: bool = False
    individuals: tuple[str, ...] = ()
    keypoints: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    min_confidence: float = 0.0
    arena: tuple[float, float, float, float] = UNIT_ARENA
    unit: float = 1.0
    zeros_missing: bool = False
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    roles: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Preparation:
        """Make one from what `dataclasses.asdict` gave, after it was written and read as JSON."""
        plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
        return cls(**plain)

    @property
    def most_frames(self) -> int:
        """How many frames a lost keypoint is guessed for."""
        return max_gap_frames(MAX_GAP_SECONDS, self.rate)

    @property
    def n_inputs(self) -> int:
        """How many inputs a frame has."""
        return len(self.channels)

    @cached_property
    def stated(self) -> dict[str, Keypoint]:
        """What is stated of the keypoints."""
        told = zip(self.keypoints, self.roles, self.mirrors, strict=False)
        return {name: Keypoint(name, role, mirror) for name, role, mirror in told if role or mirror}

    @property
    def is_causal(self) -> bool:
        """Whether inputs are known as soon as their frame is; features of poses look a little ahead."""
        return self.kind == CHANNELS or (self.causal and self.kind in ("coordinates", "egocentric"))

    def layout(self) -> Layout:
        """Tell augmentations what the inputs are."""
        if self.kind in (CHANNELS, "features"):
            return Layout(self.channels, mean=self.mean, scale=self.scale)
        left, top, right, bottom = self.arena
        centered = self.kind == "egocentric"
        middle, aspect = ((0.0, 0.0), 1.0) if centered else ((0.5, 0.5), (right - left) / (bottom - top))
        mirrors = {name: point.mirror for name, point in self.stated.items() if point.mirror in self.keypoints} or None
        return Layout(self.channels, self.individuals, self.keypoints, middle, aspect, self.mean, self.scale, mirrors)

    def open(self, recording: Recording) -> Prepared:
        """Open a recording for reading."""
        data = recording.signals
        if data is None:
            raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
        if isinstance(data, Signals) is not (self.kind == CHANNELS):
            told, wanted = ("channels", "poses") if isinstance(data, Signals) else ("poses", "channels")
            raise MismatchError(f"recording {recording.id!r} has {told}, and the model learnt from {wanted}")
        given = recording.features if self.kind == GIVEN else None
        if self.kind == GIVEN and (given is None or len(given) != len(data)):
            raise MismatchError(f"recording {recording.id!r} brings no features of its own for every frame; inputs={GIVEN!r} need them")
        return Prepared(self, data, self._scene(recording, data), given)

    def frame(self, values: Array, scene: Scene) -> NDArray[np.float32]:
        """Prepare one frame as it comes: positions (animal, keypoint, axis) with gaps held, or channels."""
        placed = values[None] if self.kind == CHANNELS else self.place(values[None], scene)
        return np.asarray(self.standardized(placed)[0])

    def known_scene(self, arena: tuple[float, float, float, float] | None = None) -> Scene:
        """Return the scene of the training, in an arena of its own where one is told."""
        left, top, right, bottom = arena or self.arena
        return Scene(self.unit, (left, top), (right, bottom), self.zeros_missing)

    def place(self, positions: Array, scene: Scene) -> Array:
        """Lay positions out in the arena, or as the first animal sees them."""
        if self.kind == "egocentric":
            sure = np.broadcast_to(np.nan, positions.shape[:3])
            poses = Poses(positions, sure, self.individuals, self.keypoints, self.rate)
            with np.errstate(invalid="ignore", divide="ignore"):  # an animal that is not there has no direction
                seen = to_egocentric(poses, self.individuals[0], keypoints=self.stated)
            return seen.positions.reshape(len(positions), -1) / scene.body_length
        low, high = np.array(scene.low), np.array(scene.high)
        return np.asarray(((positions - low) / (high - low)).reshape(len(positions), -1))

    def standardized(self, values: Array) -> NDArray[np.float32]:
        """Take off the training's means, divide by its spreads; what is missing becomes 0."""
        if self.mean:
            values = (values - np.array(self.mean)) / np.array(self.scale)
        return np.where(np.isfinite(values), values, 0.0).astype(np.float32)

    def _scene(self, recording: Recording, data: Data) -> Scene:
        if isinstance(data, Signals):
            return self.known_scene()
        arena = stated_arena(recording)
        if self.causal or not len(data):
            return self.known_scene(arena)
        scene = estimate_scene(data, keypoints=self.stated, arena=arena, min_confidence=self.min_confidence)
        if np.all(np.array(scene.high) - np.array(scene.low) > 0):
            return scene
        return dataclasses.replace(scene, low=self.arena[:2], high=self.arena[2:])


@dataclass(frozen=True, eq=False)
class Prepared:
    """One recording as inputs, of which only the piece asked for is in memory."""

    how: Preparation
    data: Data
    scene: Scene
    given: Signals | None

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where the channels, or the animals and the keypoints, lie in the data."""
        if isinstance(self.data, Signals):
            return _places(self.data.channels, self.how.channels), []
        return _places(self.data.individuals, self.how.individuals), _places(self.data.keypoints, self.how.keypoints)

    def __len__(self) -> int:
        return len(self.data)

    def read(self, start: int, stop: int) -> NDArray[np.float32]:
        """Read the frames ``[start, stop)``; those before the first and after the last are 0, as published."""
        inside = slice(min(max(start, 0), len(self)), max(min(stop, len(self)), 0))
        values = np.zeros((stop - start, self.how.n_inputs), dtype=np.float32)
        if inside.start < inside.stop:
            values[inside.start - start : inside.stop - start] = self.how.standardized(self.measure(inside.start, inside.stop)[0])
        return values

    def pieces(self, size: int = PIECE) -> Iterator[tuple[int, int]]:
        """Yield the first and last frames of pieces that make up the recording."""
        return ((start, min(start + size, len(self))) for start in range(0, len(self), size))

    def measure(self, start: int, stop: int) -> tuple[Array, tuple[str, ...]]:
        """Return the inputs of frames inside the recording before they are standardised, and their names."""
        if isinstance(self.data, Signals):
            return np.asarray(self.data.values[start:stop], dtype=np.float64)[:, self._places[0]], self.how.channels
        if self.how.kind == "features":
            margin = pose_context(self.how.rate)
            first, last = max(start - margin, 0), min(stop + margin, len(self))
            cut = self._poses(self.data, first, last)
            found, names = pose_features(
                cut, self.how.rate, keypoints=self.how.stated, scene=self.scene, min_confidence=self.how.min_confidence
            )
            return found[start - first : stop - first].astype(np.float64), names
        values = self.how.place(self._positions(self.data, start, stop), self.scene)
        names = tuple(f"{who}/{point}/{axis}" for who in self.how.individuals for point in self.how.keypoints for axis in "xy")
        if self.given is None:
            return values, names
        return np.concatenate([values, self.given.values[start:stop]], axis=1), (*names, *self.given.channels)

    def _poses(self, poses: Poses, start: int, stop: int) -> Poses:
        animals, points = self._places
        chosen = (slice(start, stop), np.array(animals)[:, None], points)
        positions = np.asarray(poses.positions[chosen][..., :2], dtype=np.float64)
        return Poses(positions, np.asarray(poses.confidence[chosen]), self.how.individuals, self.how.keypoints, self.how.rate)

    def _positions(self, poses: Poses, start: int, stop: int) -> Array:
        """Return positions with short gaps bridged, or held where nothing may be known of what comes."""
        most = self.how.most_frames
        first, last = max(start - most - 1, 0), min(stop + (0 if self.how.causal else most + 1), len(self))
        positions = valid_positions(self._poses(poses, first, last), self.how.min_confidence, self.scene.zeros_missing)
        (hold_gaps if self.how.causal else interpolate_gaps)(positions, most)
        return positions[start - first : stop - first]


def learn_preparation(
    recordings: Sequence[Recording],
    inputs: str,
    rate: float,
    *,
    causal: bool,
    min_confidence: float = 0.0,
    keypoints: Mapping[str, Keypoint] | None = None,
) -> Preparation:
    """Learn from the training's recordings how to prepare any.

    Parameters
    ----------
    recordings : sequence of Recording
        All with poses, or all with channels; the first one's animals, keypoints or channels are laid out, in its order.
    inputs : str
        One of `KINDS`; tags are taken as they are.
    rate : float
    causal : bool
    min_confidence : float
    keypoints : mapping of name to Keypoint, optional
        Stated roles and mirror partners; guessed from the names unless given.
    """
    first = recordings[0].signals
    if isinstance(first, Signals):
        plain = Preparation(CHANNELS, rate, causal, channels=first.channels)
        return _with_statistics(plain, recordings)
    if not isinstance(first, Poses):
        raise MismatchError(f"recording {recordings[0].id!r} has no signals to learn from")
    if inputs not in KINDS:
        raise EthobenchError(f"inputs of poses are one of {', '.join(KINDS)}, not {inputs!r}")
    stated = [(keypoints or {}).get(name, Keypoint(name)) for name in first.keypoints]
    roles, mirrors = tuple(point.role for point in stated), tuple(point.mirror for point in stated)
    plain = Preparation(
        inputs, rate, causal, first.individuals, first.keypoints, min_confidence=min_confidence, roles=roles, mirrors=mirrors
    )
    scenes = [
        estimate_scene(r.signals, keypoints=plain.stated, arena=stated_arena(r), min_confidence=min_confidence)
        for r in recordings
        if isinstance(r.signals, Poses)
    ]
    corners = np.array([(*scene.low, *scene.high) for scene in scenes])
    corners = corners[np.isfinite(corners).all(axis=1) & (corners[:, 2:] > corners[:, :2]).all(axis=1)]
    left, top, right, bottom = np.median(corners, axis=0).tolist() if len(corners) else UNIT_ARENA
    unit = float(np.median([scene.body_length for scene in scenes]))
    zeros = 2 * sum(scene.zeros_missing for scene in scenes) > len(scenes)
    return _with_statistics(dataclasses.replace(plain, arena=(left, top, right, bottom), unit=unit, zeros_missing=zeros), recordings)


def stated_arena(recording: Recording) -> tuple[float, float, float, float] | None:
    """Return the corners that a recording tells, or that all of CalMS21 has; None where nothing is told."""
    try:
        width, height = (float(recording.metadata[name]) for name in ("width", "height"))
    except (KeyError, TypeError, ValueError):
        data = recording.signals
        is_calms21 = isinstance(data, Poses) and data.keypoints == CALMS21_KEYPOINTS and "group" in recording.metadata
        return CALMS21_ARENA if is_calms21 else None
    return (0.0, 0.0, width, height) if 0 < width < math.inf and 0 < height < math.inf else None


def hold_gaps(positions: Array, most: int) -> None:
    """Let keypoints that are lost stay where they were, in place, for at most `most` frames."""
    known = ~np.isnan(positions[..., 0])
    frames = np.arange(len(positions)).reshape(-1, *[1] * (known.ndim - 1))
    last = np.maximum.accumulate(np.where(known, frames, -1), axis=0)
    held = ~known & (last >= 0) & (frames - last <= most)
    _, *places = np.nonzero(held)
    positions[held] = positions[(last[held], *places)]


def _with_statistics(plain: Preparation, recordings: Iterable[Recording]) -> Preparation:
    """Name the inputs, and learn their means and spreads; coordinates are not standardised, as published."""
    total = squares = count = np.zeros(0)
    names: tuple[str, ...] = plain.channels
    for recording in recordings:
        opened = plain.open(recording)
        for start, stop in opened.pieces():
            values, found = opened.measure(start, stop)
            if not total.size:
                names, shift = found, np.nan_to_num(values[0], posinf=0, neginf=0)
                total, squares, count = (np.zeros(len(names)) for _ in range(3))
            if len(found) != len(names):
                raise MismatchError(f"recording {recording.id!r} gives {len(found)} inputs, the first recording {len(names)}")
            there = np.isfinite(values)
            off = np.where(there, values - shift, 0.0)
            total, squares, count = total + off.sum(axis=0), squares + np.square(off).sum(axis=0), count + there.sum(axis=0)
            if plain.kind in ("coordinates", "egocentric"):
                return dataclasses.replace(plain, channels=names)
    if not total.size:
        raise EthobenchError("there is nothing to learn from: the recordings have no frames")
    mean = total / np.maximum(count, 1)
    spread = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
    mean, spread = mean + shift, np.where(spread > 1e-6 * np.maximum(np.abs(mean + shift), 1e-6), spread, 1.0)
    as_they_are = 2 * len(plain.individuals) * len(plain.keypoints) if plain.kind == GIVEN else 0
    mean[:as_they_are], spread[:as_they_are] = 0.0, 1.0
    return dataclasses.replace(plain, channels=names, mean=tuple(mean.tolist()), scale=tuple(spread.tolist()))


def _places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise MismatchError(f"{', '.join(missing)} not found among {', '.join(names)}")
    return [names.index(name) for name in wanted]
