"""The path of each animal: one body point or the centroid, in pixels, with the scale of the recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.analysis.units import metadata_columns, recording_columns
from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, NotFoundError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.datasets.zones import pixels_per_cm
from ethobench.features.missing_data import (
    MAX_GAP_SECONDS,
    MIN_CONFIDENCE,
    interpolate_gaps,
    max_gap_frames,
    nan_mean,
    valid_positions,
    zeros_are_missing,
)

CENTROID = "centroid"


@dataclass(frozen=True)
class AnimalTrack:
    """The path of one animal in one recording.

    Attributes
    ----------
    recording : Recording
    subject : str
        The animal; empty if the recording has only one.
    positions : array (n_frames, 2)
        In pixels; NaN where the animal was not tracked.
    rate : float
        Frames per second.
    pixels_per_cm : float or None
    columns : mapping
        Identifying columns of tables.
    """

    recording: Recording
    subject: str
    positions: NDArray[np.float64]
    rate: float
    pixels_per_cm: float | None
    columns: Mapping[str, Any]

    @property
    def unit(self) -> str:
        """The unit of lengths in tables: cm where the scale is known."""
        return "px" if self.pixels_per_cm is None else "cm"

    @property
    def per_unit(self) -> float:
        """Pixels per `unit`."""
        return self.pixels_per_cm or 1.0

    @property
    def tracked(self) -> NDArray[np.bool_]:
        """Whether the animal was tracked in each frame."""
        return ~np.isnan(self.positions[:, 0])

    def steps(self) -> NDArray[np.float64]:
        """Return the distance from the previous frame, in `unit`; NaN where either frame was not tracked, and in the first."""
        steps = np.full(len(self.positions), np.nan)
        change = np.diff(self.positions, axis=0)
        steps[1:] = np.hypot(change[:, 0], change[:, 1]) / self.per_unit
        return steps


def animal_tracks(
    recordings: Sequence[Recording],
    *,
    point: str = CENTROID,
    min_confidence: float = MIN_CONFIDENCE,
    max_gap_seconds: float = MAX_GAP_SECONDS,
) -> list[AnimalTrack]:
    """Return the path of each animal of recordings; those without poses are skipped.

    Parameters
    ----------
    recordings : sequence of Recording
    point : str
        A keypoint, or ``"centroid"``: the mean of all tracked keypoints.
    min_confidence : float
        Keypoints with a lower confidence are missing.
    max_gap_seconds : float
        Longest gap of a keypoint that is interpolated. Longer ones are untracked.

    Raises
    ------
    EthobenchError
        If no recording has poses, or one has no frame rate.
    NotFoundError
        If there is no such keypoint.
    """
    metadata = metadata_columns(recordings)
    tracks: list[AnimalTrack] = []
    for recording in recordings:
        poses = recording.signals if recording.has_signals else None
        if not isinstance(poses, Poses):
            continue
        rate = poses.rate or recording.rate
        if rate is None:
            raise EthobenchError(Message(f"recording {recording.id!r} has no frame rate (set it with ", Option("rate"), ")"))
        if point != CENTROID and point not in poses.keypoints:
            raise NotFoundError(
                f"recording {recording.id!r} has no keypoint {point!r}; available: {CENTROID}, {', '.join(poses.keypoints)}"
            )
        positions = valid_positions(poses, min_confidence, zeros_are_missing(poses.positions))
        if point != CENTROID:
            positions = np.ascontiguousarray(positions[:, :, [poses.keypoints.index(point)]])
        interpolate_gaps(positions, max_gap_frames(max_gap_seconds, rate))
        centers = nan_mean(positions[..., :2], axis=2)
        for k, name in enumerate(poses.individuals):
            subject = name if len(poses.individuals) > 1 else ""
            columns = {**recording_columns(recording, metadata), "subject": subject}
            tracks.append(AnimalTrack(recording, subject, centers[:, k], rate, pixels_per_cm(recording), columns))
    if not tracks:
        raise EthobenchError("no recording has poses, so positions are not known; state them in column 'signals' of recordings.csv")
    return tracks


def track_of(tracks: Sequence[AnimalTrack], subject: str) -> AnimalTrack:
    """Return the path of the animal that annotations call `subject`, of the tracks of one recording.

    Raises
    ------
    ParameterError
        If the recording has several animals and none of this name.
    """
    if len(tracks) == 1:
        return tracks[0]
    for track in tracks:
        if track.subject == subject:
            return track
    names = ", ".join(track.subject for track in tracks)
    location = f"recording {tracks[0].recording.id!r}"
    if subject:
        raise ParameterError(f"{location}: the animal {subject!r} is not tracked; tracked animals: {names}")
    raise ParameterError(Message(f"{location}: bouts without a subject; choose whose position counts ({names}) with ", Option("animal")))
