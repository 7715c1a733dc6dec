"""Zones: time in, entries, exits, latency, distance walked, mean speed and distance to, for each animal, zone and time bin.

Conventions
-----------
An animal enters a zone when its point is inside or on the border, and leaves it when the point is further than `margin` outside.
Absences and visits shorter than `min_dwell` are then ignored, absences first. So jitter at a border is one visit. A recording that
starts inside the zone starts without an entry. Frames without a position are unobserved: neither inside nor outside, and an animal that
is inside after such a gap has not entered. The distance walked in a zone is the sum of the steps that end in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.time_bins import TimeBins
from ethobench.analysis.tracks import CENTROID, AnimalTrack, animal_tracks
from ethobench.analysis.units import Annotated, as_recordings, metadata_columns, pooled_by, shared_columns
from ethobench.core import Annotation, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.intervals import Intervals
from ethobench.datasets.zones import ZONES, Zone, read_zones, zones_of

OUTSIDE, INSIDE, UNTRACKED = 0, 1, -1
MARGIN_SHARE = 0.025
"""Default margin, relative to the square root of the area of a zone."""

MIN_DWELL = 0.25
"""Default minimum duration of visits and absences in seconds."""

MEASURES = (
    "n_entries",
    "n_exits",
    "time_s",
    "share",
    "latency_s",
    "mean_visit_s",
    "distance",
    "mean_speed",
    "mean_distance_to",
    "unit",
    "tracked_s",
    "coverage",
)


@dataclass(frozen=True)
class ZoneOptions:
    """How zones are entered and left.

    Attributes
    ----------
    point : str
        A keypoint, or ``"centroid"``.
    margin : float, optional
        Distance outside the zone, in its unit, at which it is left. Default: 2.5 % of the square root of its area.
    min_dwell : float
        Minimum duration of visits and absences in seconds.
    animal : str
        The tracked animal that bouts without a subject belong to; only needed if there are several.

    Examples
    --------
    >>> ZoneOptions("nose", margin=0)
    ZoneOptions(point='nose', margin=0, min_dwell=0.25, animal='')
    """

    point: str = CENTROID
    margin: float | None = None
    min_dwell: float = MIN_DWELL
    animal: str = ""

    def __post_init__(self) -> None:
        for name in ("margin", "min_dwell"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise ParameterError(f"`{name}` must be >= 0, got {value}")


def zone_states(track: AnimalTrack, zone: Zone, options: ZoneOptions | None = None) -> NDArray[np.int8]:
    """Return for each frame whether an animal is inside a zone (1), outside (0) or untracked (-1), with hysteresis.

    Parameters
    ----------
    track : AnimalTrack
    zone : Zone
    options : ZoneOptions, optional
    """
    options = options or ZoneOptions()
    scale = zone.scale(track.pixels_per_cm)
    margin = (MARGIN_SHARE * np.sqrt(zone.area) if options.margin is None else options.margin) * scale
    inside = zone.contains(track.positions, track.pixels_per_cm)
    decided = np.full(len(inside), UNTRACKED, dtype=np.int8)
    decided[track.tracked] = OUTSIDE
    if margin > 0:
        with np.errstate(invalid="ignore"):
            near = track.tracked & ~inside & (zone.distance(track.positions, track.pixels_per_cm) <= margin)
        decided[near] = _UNDECIDED
    decided[inside] = INSIDE
    return _without_short_runs(_keep_state(decided), options.min_dwell * track.rate)


_UNDECIDED = 2


def _keep_state(decided: NDArray[np.int8]) -> NDArray[np.int8]:
    """Replace undecided frames by the state of the last decided frame; outside after an untracked frame or at the start."""
    last = np.maximum.accumulate(np.where(decided != _UNDECIDED, np.arange(len(decided)), -1))
    states = np.where(last >= 0, decided[np.maximum(last, 0)], OUTSIDE)
    return np.where((decided == _UNDECIDED) & (states == UNTRACKED), OUTSIDE, states).astype(np.int8)


def _without_short_runs(states: NDArray[np.int8], min_frames: float) -> NDArray[np.int8]:
    """Remove absences, then visits, that are shorter than a number of frames and lie between the opposite state."""
    for short, other in ((OUTSIDE, INSIDE), (INSIDE, OUTSIDE)):
        runs = iv.encode_runs(states)
        brief = (runs.values == short) & (runs.stop - runs.start < min_frames)
        brief[:1] = brief[-1:] = False
        brief[1:-1] &= (runs.values[:-2] == other) & (runs.values[2:] == other)
        states = states.copy()
        states[iv.to_mask(Intervals(runs.start[brief], runs.stop[brief]), len(states))] = other
    return states


def resolve_zones(zones: bool | str | Path | Sequence[Zone]) -> tuple[Zone, ...] | None:
    """Return zones from a file or a sequence; None stands for those of each recording's study."""
    if isinstance(zones, bool):
        return None
    return read_zones(zones) if isinstance(zones, (str, Path)) else tuple(zones)


def recording_zones(recording: Recording, zones: Sequence[Zone] | None) -> tuple[Zone, ...]:
    """Return the zones of a recording, which must have some."""
    selected = zones_of(recording, zones)
    if not selected:
        raise EthobenchError(f"recording {recording.id!r} has no zones; describe them in {ZONES} beside recordings.csv")
    return selected


def zone_occupancy(
    data: Annotated,
    zones: bool | str | Path | Sequence[Zone] = True,
    *,
    by: Sequence[str] | str | None = None,
    bin: str | float | TimeBins | None = None,
    options: ZoneOptions | None = None,
) -> pd.DataFrame:
    """Return how animals use zones, one row for each unit, zone and time bin.

    Parameters
    ----------
    data : Dataset, Recording or iterable of recordings
        With poses.
    zones : True, path or sequence of Zone
        True: those of ``zones.csv`` of the study.
    by, bin
        See `budgets`. Time relative to an event needs annotations.
    options : ZoneOptions, optional
        Body point and hysteresis.

    Returns
    -------
    pandas.DataFrame
        The identifying columns of `budgets` (without annotator), ``zone``, ``bin``, ``bin_start``, ``bin_stop``, ``n_entries``,
        ``n_exits``, ``time_s``, ``share`` of the tracked time, ``latency_s`` (to the first frame inside; 0 if it starts inside; of
        several recordings the median), ``mean_visit_s`` (of visits that start in the bin), ``distance`` walked inside, ``mean_speed``
        inside (per second), ``mean_distance_to`` (the border; 0 inside), ``unit`` of lengths (cm where the scale is known, else px),
        ``tracked_s`` and ``coverage`` (tracked share of the time).

    See Also
    --------
    budgets : behaviors in zones, with ``zones=``.

    Examples
    --------
    >>> import ethobench as eb
    >>> positions = np.stack([np.linspace(0, 99, 100), np.full(100, 5.0)], axis=1)[:, None, None]
    >>> poses = eb.Poses(positions, np.ones((100, 1, 1)), ("mouse",), ("body",), rate=10.0)
    >>> zone = eb.Zone("right", "rectangle", ((50, 0), (100, 10)))
    >>> table = eb.zone_occupancy(eb.Recording("m1", signals=poses), [zone])
    >>> table[["n_entries", "time_s", "latency_s", "distance"]].values.tolist()
    [[1.0, 5.0, 5.0, 50.0]]
    """
    recordings = as_recordings(data)
    given_items, bins, options = resolve_zones(zones), None if bin is None else TimeBins.parse(bin), options or ZoneOptions()
    tracks = animal_tracks(recordings, point=options.point)
    _, groups = pooled_by(tracks, by)
    rows: list[dict[str, Any]] = []
    for group in groups.values():
        columns = shared_columns(group)
        cells: dict[tuple[Any, ...], list[dict[str, float]]] = {}
        unit = "cm" if all(track.pixels_per_cm is not None for track in group) else "px"
        for track in group:
            per_unit = track.per_unit if unit == "cm" else 1.0
            for zone in recording_zones(track.recording, given_items):
                for key, measures in _measure(track, zone, options, bins, per_unit):
                    cells.setdefault((zone.name, *key), []).append(measures)
        for (zone_name, number, start, stop), measures_ in cells.items():
            cell = {"zone": zone_name, "bin": number, "bin_start": start, "bin_stop": stop}
            rows.append({**columns, **cell, **_pooled(measures_), "unit": unit})
    names = ["recording", "individual", "subject", *metadata_columns(recordings), "n_recordings", "zone", "bin", "bin_start", "bin_stop"]
    return pd.DataFrame(rows, columns=[*names, *MEASURES])


def track_bins(track: AnimalTrack, bins: TimeBins | None) -> list[tuple[tuple[float, float, float], NDArray[np.bool_]]]:
    """Return number, start and stop of each time bin of a track, and the mask of its frames; one of all frames without bins."""
    n_frames = len(track.positions)
    if bins is None:
        return [((np.nan, np.nan, np.nan), np.ones(n_frames, dtype=bool))]
    annotations = list(track.recording.annotations.values())
    blank = Annotation.from_bouts([], [], [], [], rate=track.rate, n_frames=n_frames)
    if bins.event:
        with_event = [a for a in annotations if bins.event in a.ethogram and a.rate == track.rate]
        blank = with_event[0] if with_event else annotations[0] if annotations else blank
    pieces = bins.divide(blank, track.recording.start_time, track.recording.id, track.subject)
    return [((piece.number, piece.start, piece.stop), iv.to_mask(piece.frames, n_frames)) for piece in pieces]


def _measure(
    track: AnimalTrack, zone: Zone, options: ZoneOptions, bins: TimeBins | None, per_unit: float
) -> list[tuple[tuple[float, float, float], dict[str, float]]]:
    """Return sums for each time bin; lengths are in pixels divided by `per_unit`."""
    states, rate = zone_states(track, zone, options), track.rate
    inside, tracked = states == INSIDE, states != UNTRACKED
    entered = np.concatenate(([False], (states[:-1] == OUTSIDE) & inside[1:]))
    left_edges = np.concatenate(([False], inside[:-1] & (states[1:] == OUTSIDE)))
    visits = iv.from_mask(inside)
    steps = np.nan_to_num(track.steps() * track.per_unit / per_unit)
    distance = zone.distance(track.positions, track.pixels_per_cm) / per_unit
    cells = []
    for key, mask in track_bins(track, bins):
        if not mask.any():
            continue
        first = np.flatnonzero(mask & inside)
        starts = mask[visits.start]
        cells.append(
            (
                key,
                {
                    "n_entries": float((entered & mask).sum()),
                    "n_exits": float((left_edges & mask).sum()),
                    "time_s": float((inside & mask).sum() / rate),
                    "latency_s": float((first[0] - np.argmax(mask)) / rate) if len(first) else np.nan,
                    "n_visits": float(starts.sum()),
                    "visits_s": float((visits.stop - visits.start)[starts].sum() / rate),
                    "distance": float(steps[inside & mask].sum()),
                    "distance_to": float(distance[tracked & mask].sum() / rate),
                    "tracked_s": float((tracked & mask).sum() / rate),
                    "available_s": float(mask.sum() / rate),
                },
            )
        )
    return cells


def _pooled(cells: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the measures of one row from the sums of its recordings."""
    total = {name: sum(cell[name] for cell in cells) for name in cells[0]}
    latencies = [cell["latency_s"] for cell in cells if not np.isnan(cell["latency_s"])]

    def ratio(above: str, below: str) -> float:
        return total[above] / total[below] if total[below] else np.nan

    return {
        "n_entries": int(total["n_entries"]),
        "n_exits": int(total["n_exits"]),
        "time_s": total["time_s"],
        "share": ratio("time_s", "tracked_s"),
        "latency_s": float(np.median(latencies)) if latencies else np.nan,
        "mean_visit_s": ratio("visits_s", "n_visits"),
        "distance": total["distance"],
        "mean_speed": ratio("distance", "time_s"),
        "mean_distance_to": ratio("distance_to", "tracked_s"),
        "tracked_s": total["tracked_s"],
        "coverage": ratio("tracked_s", "available_s"),
    }
