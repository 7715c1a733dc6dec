"""Poses by role: one skeleton, one rate and one unit of length for recordings of any laboratory.

Keypoints are matched to roles (`ROLES`) by their names or stated roles; flanks (``lateral_left``) and hips have one role. A role without
a keypoint is estimated from its neighbors where possible (`SUBSTITUTES`), and missing otherwise. Positions are divided by a body length:
that of the training animals in cm where all training recordings state a scale (``pixels_per_cm`` in their metadata), else that of the
recording's own animals.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.signals import Keypoint
from ethobench.features.filters import resample
from ethobench.features.frame_features import resample_features
from ethobench.features.keypoints import ROLES, SUBSTITUTES, assign_roles
from ethobench.features.missing_data import MIN_CONFIDENCE, Array, nan_mean, valid_positions, zeros_are_missing

AnyRecording = TypeVar("AnyRecording", bound=Recording)

SCALE = "pixels_per_cm"
"""Metadata of a recording: pixels per cm."""

ESTIMATED_SCALE = "estimated-scale"
"""Code of the note that a recording has no scale, though the training recordings have."""

MAX_RATE = 30.0
"""Frames per second of converted recordings, at most."""

CM, BODY_LENGTHS = "cm", "body lengths"

# Approximate positions along the body, from the tail base (0) to the nose (1), by which a body length is measured between other parts.
FRONT = (("nose", 1.0), ("head", 0.86), ("neck", 0.71), ("center", 0.48))
REAR = (("tail_base", 0.0), ("left_hip", 0.19), ("right_hip", 0.19), ("center", 0.48))
ARENA_BODY_LENGTHS = 10.0  # size of an arena in body lengths, where no body length can be measured
MEASURED, ESTIMATED = 1.0, 0.5
MIN_ANIMALS = 3  # of recordings whose numbers of animals differ, where bouts do not name subjects


def constant_names() -> tuple[str, ...]:
    """Return the names of the inputs that do not change within a recording."""
    return ("log_rate", "n_animals", *(f"{role}/available" for role in ROLES))


def recording_scale(recording: Recording) -> float | None:
    """Return the pixels per cm that the metadata of a recording state; None if they are missing, or not a positive number."""
    try:
        scale = float(recording.metadata.get(SCALE, "nan"))
    except (TypeError, ValueError):
        return None
    return scale if np.isfinite(scale) and scale > 0 else None


class RoleRecording(Recording):
    """A recording whose keypoints are `ROLES`, as `RoleInputs` converts it.

    Attributes
    ----------
    constants : tuple of float
        Inputs that do not change within the recording: the values of `constant_names`.
    """

    constants: tuple[float, ...]

    def __init__(self, id: str, *, constants: tuple[float, ...] = (), **fields: Any) -> None:
        super().__init__(id, **fields)
        self.constants = constants

    @classmethod
    def from_recording(cls, recording: Recording, constants: tuple[float, ...]) -> Self:
        """Return a recording with all fields of another one."""
        return cls(**{name.lstrip("_"): value for name, value in vars(recording).items()}, constants=constants)


@dataclass(frozen=True)
class RoleInputs:
    """How recordings with any skeleton, rate and number of animals become inputs of one model.

    Attributes
    ----------
    rate : float
        Frames per second of converted recordings.
    unit : {"cm", "body lengths"}
        What lengths are measured in.
    body_length : float
        Median body length of the training animals in cm; 1 if the unit is body lengths.
    individuals : tuple of str
        The animals, if all training recordings have the same; empty if animals are told apart by number only.
    keypoints : mapping of name to Keypoint
        Roles that the training data state; others are guessed from the names.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/labs", videos=1, seconds=5, labs=["CRIM13", "JovialSwallow"], metadata=False)
    >>> inputs = RoleInputs.fit(data.recordings)
    >>> inputs.unit, inputs.rate, inputs.convert(data.recordings[0]).signals.keypoints[:3]
    ('cm', 25.0, ('nose', 'head', 'left_ear'))
    """

    rate: float
    unit: str = BODY_LENGTHS
    body_length: float = 1.0
    individuals: tuple[str, ...] = ()
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)

    @classmethod
    def fit(cls, recordings: Sequence[Recording], keypoints: Mapping[str, Keypoint] | None = None) -> Self:
        """Choose rate and unit for training recordings.

        Parameters
        ----------
        recordings : sequence of Recording
            With poses.
        keypoints : mapping of name to Keypoint, optional
            Stated roles; guessed from the names by default.
        """
        rate = min(MAX_RATE, max((float(r.rate) for r in recordings if r.rate), default=MAX_RATE))
        animals = {_poses_of(recording).individuals for recording in recordings}
        individuals = next(iter(animals)) if len(animals) == 1 else ()
        scales = [recording_scale(recording) for recording in recordings]
        if not all(scales):
            _warn_of_invalid_scales(recordings)
            return cls(rate, BODY_LENGTHS, 1.0, individuals, dict(keypoints or {}))
        lengths = [_body_length(*_by_role(_poses_of(r), keypoints)) / (s or 1.0) for r, s in zip(recordings, scales, strict=True)]
        return cls(rate, CM, float(np.median(lengths)), individuals, dict(keypoints or {}))

    @property
    def description(self) -> str:
        """Say what the model sees, for a note about the fit."""
        inputs = "inputs by role: recordings have different skeletons, rates or animals"
        if self.unit == CM:
            lengths = f"lengths in cm (by {SCALE}; the animals are {self.body_length:.3g} cm long)"
            return f"{inputs}; {lengths}, {self.rate:g} frames per second"
        return f"{inputs}; lengths in body lengths, {self.rate:g} frames per second"

    def convert(self, recording: Recording) -> RoleRecording:
        """Return a recording with the keypoints `ROLES`, at the common rate, in the common unit; annotations are resampled.

        Its notes say what was estimated, or is missing.

        Parameters
        ----------
        recording : Recording

        Raises
        ------
        MismatchError
            If no keypoint has a role.
        """
        poses = _poses_of(recording)
        try:
            positions, available = _by_role(poses, self.keypoints)
        except MismatchError as error:
            raise MismatchError(f"recording {recording.id!r}: {error}") from None
        notes = []
        scale = recording_scale(recording) if self.unit == CM else None
        if self.unit == CM and scale is None:
            notes.append(Note(f"no {SCALE}: lengths are relative to the animals' own body length", code=ESTIMATED_SCALE))
        length = _body_length(positions, available) if scale is None else scale * self.body_length
        estimated = [role for role, value in zip(ROLES, available, strict=True) if value == ESTIMATED]
        missing = [role for role, value in zip(ROLES, available, strict=True) if value == 0]
        notes += [
            Note(f"body parts {state}: {', '.join(names)}") for state, names in (("estimated", estimated), ("missing", missing)) if names
        ]
        rate = float(recording.rate or self.rate)
        if abs(rate - self.rate) > 1e-6 * rate:
            flat = resample(positions.reshape(len(positions), -1), rate, self.rate)
            positions = flat.reshape(len(flat), *positions.shape[1:])
        converted = Poses(positions / length, np.full(positions.shape[:3], np.nan), poses.individuals, ROLES, self.rate)
        constants = (float(np.log2(rate)), float(len(poses.individuals)), *available)
        resampled = recording.copy(
            signals=converted,
            rate=self.rate,
            n_frames=len(converted),
            annotations={name: annotation.resample(self.rate) for name, annotation in recording.annotations.items()},
            features=resample_features(recording, self.rate, len(converted)),
            notes=(*recording.notes, *notes),
        )
        return RoleRecording.from_recording(resampled, constants)

    def convert_frame(self, frame: Array, sources: Sequence[Sequence[int]], length: float) -> Array:
        """Return the positions of one frame by role, in body lengths (n_animals, n_roles, 2).

        Parameters
        ----------
        frame : array (n_animals, n_keypoints, 2)
            NaN for missing keypoints.
        sources : sequence of sequences of int
            As `role_sources` returns them.
        length : float
            Body length, in the unit of the frame.
        """
        positions = np.full((len(frame), len(ROLES), 2), np.nan)
        for number, source in enumerate(sources):
            if source:
                positions[:, number] = frame[:, source[0]] if len(source) == 1 else frame[:, source].mean(axis=1)
        return positions / length

    def with_animals(self, recording: AnyRecording) -> AnyRecording:
        """Return a converted recording for a model that does not tell which animal acts.

        Animals keep their names if those of the training recordings are the same. Otherwise they are numbered, and at least three, of
        which some may be missing in all frames, so that minima and maxima over pairs are defined alike.
        """
        poses = _poses_of(recording)
        if len(self.individuals) == len(poses.individuals):
            names = self.individuals
        else:
            poses = pad_animals(poses, MIN_ANIMALS)
            names = tuple(f"animal{i + 1}" for i in range(len(poses.individuals)))
        return recording.copy(signals=Poses(poses.positions, poses.confidence, names, poses.keypoints, poses.rate))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "rate": self.rate,
            "unit": self.unit,
            "body_length": self.body_length,
            "individuals": list(self.individuals),
            "keypoints": {name: [point.role, point.mirror] for name, point in self.keypoints.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Create one from the result of `to_dict`."""
        rate, length, unit = float(fields["rate"]), float(fields["body_length"]), str(fields["unit"])
        if not (0 < rate <= MAX_RATE and 0 < length < np.inf) or unit not in (CM, BODY_LENGTHS):
            raise EthobenchError("the inputs by role are damaged")
        keypoints = {str(name): Keypoint(str(name), str(role), str(mirror)) for name, (role, mirror) in fields["keypoints"].items()}
        return cls(rate, unit, length, tuple(map(str, fields["individuals"])), keypoints)


def pad_animals(poses: Poses, count: int) -> Poses:
    """Return poses of at least `count` animals; those that are added are missing in all frames."""
    n_more = count - len(poses.individuals)
    if n_more <= 0:
        return poses
    padding = [(0, 0), (0, n_more), (0, 0)]
    positions = np.pad(poses.positions, [*padding, (0, 0)], constant_values=np.nan)
    confidence = np.pad(poses.confidence, padding, constant_values=np.nan)
    names = (*poses.individuals, *(f"missing{i + 1}" for i in range(n_more)))
    return Poses(positions, confidence, names, poses.keypoints, poses.rate)


def needs_roles(recordings: Sequence[Recording], condition: str = "") -> bool:
    """Return whether recordings of poses differ in skeleton, rate, number of animals or the value of a condition.

    Parameters
    ----------
    recordings : sequence of Recording
    condition : str
        Metadata column, such as ``"lab"``.
    """
    data = [recording.signals for recording in recordings]
    poses = [each for each in data if isinstance(each, Poses)]
    if not poses or len(poses) < len(data):
        return False
    rates = [recording.rate for recording in recordings if recording.rate]
    return (
        len({each.keypoints for each in poses}) > 1
        or len({len(each.individuals) for each in poses}) > 1
        or bool(rates and max(rates) - min(rates) > 1e-6 * max(rates))
        or len({str(recording.metadata.get(condition, "")) for recording in recordings}) > 1
    )


def _poses_of(recording: Recording) -> Poses:
    if not isinstance(recording.signals, Poses):
        raise MismatchError(f"recording {recording.id!r} has no poses; inputs by role need tracked keypoints")
    return recording.signals


def role_sources(names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> list[list[int]]:
    """Return the keypoints whose mean is the position of each role, as indices: one if it is measured, none if it is missing.

    Parameters
    ----------
    names : sequence of str
        Of the keypoints.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names by default.

    Raises
    ------
    MismatchError
        If no keypoint has a role.

    Examples
    --------
    >>> sources = role_sources(["nose", "ear_left", "ear_right", "tail_base"])
    >>> sources[0], [1, 2] in sources
    ([0], True)
    """
    index = {role: list(names).index(name) for name, role in assign_roles(tuple(names), keypoints).items()}
    if not {*index} & {*ROLES}:
        raise MismatchError(
            f"none of its keypoints ({', '.join(names)}) has a known role, so it has nothing in common with other skeletons; "
            f"state their roles in keypoints.csv ({', '.join(ROLES)})"
        )
    sources = []
    for role in ROLES:
        group = next((g for g in SUBSTITUTES.get(role, ()) if all(component in index for component in g)), ())
        sources.append([index[role]] if role in index else [index[component] for component in group])
    return sources


def _by_role(poses: Poses, keypoints: Mapping[str, Keypoint] | None) -> tuple[Array, tuple[float, ...]]:
    """Return positions by role (n_frames, n_animals, n_roles, 2), and whether each role is measured, estimated or missing (0)."""
    sources = role_sources(poses.keypoints, keypoints)
    measured = {*assign_roles(poses.keypoints, keypoints).values()}
    tracked = valid_positions(poses, MIN_CONFIDENCE, zeros_are_missing(poses.positions))[..., :2]
    positions = np.full((*tracked.shape[:2], len(ROLES), 2), np.nan)
    available = []
    for number, (role, source) in enumerate(zip(ROLES, sources, strict=True)):
        if source:
            positions[:, :, number] = tracked[:, :, source[0]] if len(source) == 1 else tracked[:, :, source].mean(axis=2)
        available.append(MEASURED if role in measured else ESTIMATED if source else 0.0)
    return positions, tuple(available)


def _body_length(positions: Array, available: Sequence[float]) -> float:
    """Return the median distance from tail base to nose, measured between other parts where these are missing."""
    measured = {role: k for k, (role, value) in enumerate(zip(ROLES, available, strict=True)) if value == MEASURED}
    front = next(((measured[role], position) for role, position in FRONT if role in measured), None)
    rear = next(((measured[role], position) for role, position in REAR if role in measured), None)
    if front and rear and front[0] != rear[0]:
        distance = np.linalg.norm(positions[:, :, front[0]] - positions[:, :, rear[0]], axis=-1) / abs(front[1] - rear[1] or 1.0)
        distance = distance[np.isfinite(distance) & (distance > 0)]
        if len(distance):
            return float(np.median(distance))
    center = nan_mean(positions, axis=2).reshape(-1, 2)
    center = center[np.isfinite(center).all(axis=1)]
    size = float(np.ptp(center, axis=0).max()) / ARENA_BODY_LENGTHS if len(center) else 0.0
    return size if size > 0 else 1.0


def _warn_of_invalid_scales(recordings: Sequence[Recording]) -> None:
    """Warn about a scale that is stated but not a positive number."""
    invalid = [r for r in recordings if r.metadata.get(SCALE) not in (None, "") and recording_scale(r) is None]
    if invalid:
        warnings.warn(
            f"{len(invalid)} of {len(recordings)} recordings have a {SCALE} that is not a positive number "
            f"({invalid[0].id!r}: {invalid[0].metadata[SCALE]!r}), so lengths are in body lengths for all",
            stacklevel=4,
        )
