"""Movement: distance, speed, immobility, heading and distances between animals, per time bin.

Conventions
-----------
Lengths are in cm where the recording has a scale (``pixels_per_cm``), else in pixels; the column ``unit`` states it. Distance is the sum of
the steps between consecutive tracked frames, so jitter adds to it: clean the poses first (`ethobench clean`). An animal is immobile
while its speed, measured over about 1/7 s, stays below a threshold for a minimum duration. The course is the direction of movement,
clockwise from the x axis as seen in the image; its mean is circular and weighted by distance. Frames without a position are unobserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.time_bins import TimeBins
from ethobench.analysis.tracks import CENTROID, AnimalTrack, animal_tracks
from ethobench.analysis.units import Annotated, as_recordings, metadata_columns, pooled_by, shared_columns
from ethobench.analysis.zones import track_bins
from ethobench.core import intervals as iv
from ethobench.core.errors import ParameterError
from ethobench.core.intervals import Intervals
from ethobench.features.kinematics import step_frames

IMMOBILE_SPEED = 2.0
"""Default threshold of immobility in cm/s, where the scale is known."""

IMMOBILE_SECONDS = 1.0
MEASURES = (
    "distance",
    "mean_speed",
    "max_speed",
    "immobile_s",
    "immobile_share",
    "n_immobile",
    "mean_course_deg",
    "turning_deg_per_s",
    "nearest_animal",
    "unit",
    "tracked_s",
    "coverage",
)


def movement(
    data: Annotated,
    *,
    by: Sequence[str] | str | None = None,
    bin: str | float | TimeBins | None = None,
    point: str = CENTROID,
    immobile_speed: float | None = None,
    immobile_seconds: float = IMMOBILE_SECONDS,
) -> pd.DataFrame:
    """Return how far and how fast animals move, one row for each unit and time bin.

    Parameters
    ----------
    data : Dataset, Recording or iterable of recordings
        With poses.
    by, bin
        See `budgets`.
    point : str
        A keypoint, or ``"centroid"``.
    immobile_speed : float, optional
        Speed in `unit` per second below which an animal is immobile. Default: 2 cm/s where the scale is known; without scale, immobility
        is undefined unless it is stated.
    immobile_seconds : float
        Minimum duration of immobility.

    Returns
    -------
    pandas.DataFrame
        The identifying columns of `budgets` (without annotator), ``bin``, ``bin_start``, ``bin_stop``, ``distance``, ``mean_speed``
        and ``max_speed`` (per second), ``immobile_s``, ``immobile_share`` of the tracked time, ``n_immobile`` (bouts that start in the
        bin), ``mean_course_deg``, ``turning_deg_per_s`` (mean absolute change of the course while moving), ``nearest_animal`` (mean
        distance to the nearest other animal), ``unit`` (cm or px), ``tracked_s`` and ``coverage``.

    See Also
    --------
    animal_distances : distances of each pair of animals.

    Examples
    --------
    >>> import ethobench as eb
    >>> positions = np.stack([np.linspace(0, 99, 100), np.full(100, 5.0)], axis=1)[:, None, None]
    >>> poses = eb.Poses(positions, np.ones((100, 1, 1)), ("mouse",), ("body",), rate=10.0)
    >>> table = eb.movement(eb.Recording("m1", signals=poses, metadata={"pixels_per_cm": 2.0}))
    >>> table[["distance", "mean_speed", "unit"]].values.tolist()
    [[49.5, 5.0, 'cm']]
    """
    for name, value in (("immobile_speed", immobile_speed), ("immobile_seconds", immobile_seconds)):
        if value is not None and not 0 <= value < np.inf:
            raise ParameterError(f"`{name}` must be >= 0, got {value}")
    recordings = as_recordings(data)
    bins = None if bin is None else TimeBins.parse(bin)
    tracks = animal_tracks(recordings, point=point)
    _, groups = pooled_by(tracks, by)
    rows: list[dict[str, Any]] = []
    for group in groups.values():
        unit = "cm" if all(track.pixels_per_cm is not None for track in group) else "px"
        threshold = IMMOBILE_SPEED if immobile_speed is None and unit == "cm" else immobile_speed
        cells: dict[tuple[float, ...], list[dict[str, float]]] = {}
        for track in group:
            others = [other for other in tracks if other.recording is track.recording and other is not track]
            frames = _frame_values(track, others, track.per_unit if unit == "cm" else 1.0, threshold, immobile_seconds)
            for key, mask in track_bins(track, bins):
                if mask.any():
                    cells.setdefault(key, []).append(_sums(frames, mask, track.rate))
        for (number, start, stop), sums in cells.items():
            cell = {"bin": number, "bin_start": start, "bin_stop": stop}
            rows.append({**shared_columns(group), **cell, **_pooled(sums, has_threshold=threshold is not None), "unit": unit})
    names = ["recording", "individual", "subject", *metadata_columns(recordings), "n_recordings", "bin", "bin_start", "bin_stop"]
    return pd.DataFrame(rows, columns=[*names, *MEASURES])


def smooth_speed(track: AnimalTrack) -> NDArray[np.float64]:
    """Return the speed in pixels per second, measured from about 1/15 s before to 1/15 s after each frame; NaN where untracked.

    Near the ends of a recording and of gaps, the shorter available interval is used.
    """
    n, k = len(track.positions), step_frames(track.rate)
    speed = np.full(n, np.nan)
    for step in range(k, 0, -1):
        for before, after in ((step, step), (0, step), (step, 0)):
            first, last = np.arange(n) - before, np.arange(n) + after
            usable = np.isnan(speed) & track.tracked & (first >= 0) & (last < n)
            a, b = track.positions[first[usable]], track.positions[last[usable]]
            speed[usable] = np.hypot(*(b - a).T) * track.rate / (before + after)
    return speed


def _frame_values(
    track: AnimalTrack, others: Sequence[AnimalTrack], per_unit: float, threshold: float | None, immobile_seconds: float
) -> dict[str, NDArray[Any]]:
    """Return what is summed over frames; lengths are in pixels divided by `per_unit`."""
    speed = smooth_speed(track) / per_unit
    immobile = iv.from_mask(speed < threshold) if threshold is not None else iv.empty()
    kept = immobile.stop - immobile.start >= immobile_seconds * track.rate
    immobile = Intervals(immobile.start[kept], immobile.stop[kept])
    starts = np.zeros(len(speed), dtype=bool)
    starts[immobile.start] = True
    change = np.full(len(speed), np.nan, dtype=complex)
    change[1:] = np.diff(track.positions[:, 0] + 1j * track.positions[:, 1]) / per_unit
    turn = np.full(len(speed), np.nan)
    with np.errstate(invalid="ignore"):
        turned = np.abs(np.angle(change[1:] * np.conj(change[:-1])))
    turn[1:] = np.where((change[1:] != 0) & (change[:-1] != 0), turned, np.nan)
    nearest = np.full(len(speed), np.nan)
    for other in others:
        nearest = np.fmin(nearest, np.hypot(*(other.positions - track.positions).T) / per_unit)
    return {
        "tracked": track.tracked,
        "speed": speed,
        "change": change,
        "turn": turn,
        "immobile": iv.to_mask(immobile, len(speed)),
        "immobile_starts": starts,
        "nearest": nearest,
    }


def _sums(frames: dict[str, NDArray[Any]], mask: NDArray[np.bool_], rate: float) -> dict[str, Any]:
    values = {name: column[mask] for name, column in frames.items()}
    steps = np.abs(values["change"])
    return {
        "distance": float(np.nansum(steps)),
        "moved_s": float((~np.isnan(steps)).sum() / rate),
        "course": complex(np.nansum(values["change"])),
        "turned": float(np.nansum(values["turn"])),
        "turned_s": float((~np.isnan(values["turn"])).sum() / rate),
        "max_speed": float(np.nanmax(values["speed"], initial=-np.inf)),
        "immobile_s": float(values["immobile"].sum() / rate),
        "n_immobile": int(values["immobile_starts"].sum()),
        "nearest": float(np.nansum(values["nearest"]) / rate),
        "nearest_s": float((~np.isnan(values["nearest"])).sum() / rate),
        "tracked_s": float(values["tracked"].sum() / rate),
        "available_s": float(mask.sum() / rate),
    }


def _pooled(sums: Sequence[dict[str, Any]], *, has_threshold: bool) -> dict[str, float]:
    total = {name: sum(each[name] for each in sums) for name in sums[0]}

    def ratio(above: str, below: str) -> float:
        return total[above] / total[below] if total[below] else np.nan

    max_speed = max(each["max_speed"] for each in sums)
    is_tracked = total["tracked_s"] > 0
    return {
        "distance": total["distance"] if is_tracked else np.nan,
        "mean_speed": ratio("distance", "moved_s"),
        "max_speed": max_speed if np.isfinite(max_speed) else np.nan,
        "immobile_s": total["immobile_s"] if has_threshold and is_tracked else np.nan,
        "immobile_share": ratio("immobile_s", "tracked_s") if has_threshold else np.nan,
        "n_immobile": total["n_immobile"] if has_threshold and is_tracked else np.nan,
        "mean_course_deg": float(np.degrees(np.angle(total["course"])) % 360) if abs(total["course"]) > 0 else np.nan,
        "turning_deg_per_s": float(np.degrees(ratio("turned", "turned_s"))),
        "nearest_animal": ratio("nearest", "nearest_s"),
        "tracked_s": total["tracked_s"],
        "coverage": ratio("tracked_s", "available_s"),
    }


def animal_distances(
    data: Annotated, *, bin: str | float | TimeBins | None = None, point: str = CENTROID, close: float | None = None
) -> pd.DataFrame:
    """Return the distances of each pair of animals of a recording.

    Parameters
    ----------
    data : Dataset, Recording or iterable of recordings
        With poses of several animals.
    bin, point
        See `movement`.
    close : float, optional
        Distance in `unit` up to which animals are close.

    Returns
    -------
    pandas.DataFrame
        The identifying columns (without annotator), ``subject`` and ``other`` (the animals), ``bin``, ``bin_start``, ``bin_stop``,
        ``mean_distance``, ``min_distance``, ``close_share`` of the time in which both were tracked, ``unit`` and ``coverage`` (share of
        the time in which both were tracked).

    Examples
    --------
    >>> import ethobench as eb
    >>> positions = np.zeros((10, 2, 1, 2)) + np.array([[1.0, 1.0], [4.0, 5.0]])[:, None]
    >>> poses = eb.Poses(positions, np.ones((10, 2, 1)), ("m1", "m2"), ("body",), rate=10.0)
    >>> animal_distances(eb.Recording("pair", signals=poses), close=6)[["mean_distance", "close_share"]].values.tolist()
    [[5.0, 1.0]]
    """
    recordings = as_recordings(data)
    bins = None if bin is None else TimeBins.parse(bin)
    rows: list[dict[str, Any]] = []
    for first, second in combinations(animal_tracks(recordings, point=point), 2):
        if first.recording is not second.recording:
            continue
        distance = np.hypot(*(first.positions - second.positions).T) / first.per_unit
        for (number, start, stop), mask in track_bins(first, bins):
            values = distance[mask][~np.isnan(distance[mask])]
            n = len(values)
            measures = {
                "mean_distance": float(values.mean()) if n else np.nan,
                "min_distance": float(values.min()) if n else np.nan,
                "close_share": float((values <= close).mean()) if n and close is not None else np.nan,
                "unit": first.unit,
                "coverage": n / mask.sum() if mask.any() else np.nan,
            }
            cell = {"other": second.subject, "bin": number, "bin_start": start, "bin_stop": stop}
            rows.append({**first.columns, **cell, **measures})
    names = ["recording", "individual", "subject", "other", *metadata_columns(recordings), "bin", "bin_start", "bin_stop"]
    return pd.DataFrame(rows, columns=[*names, "mean_distance", "min_distance", "close_share", "unit", "coverage"])
