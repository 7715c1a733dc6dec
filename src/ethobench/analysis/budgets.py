"""Time budgets in long form: how much, how often, how long, how soon, by recording, individual, subject and time bin.

Conventions
-----------
Shares are of the observed time; unobserved frames belong to no behavior. Overlapping bouts of one behavior of one subject are joined, and
bouts are cut where frames are unobserved. A bout is counted in the time bin in which it starts, with its full duration, so counts
add up over bins; time is that within the bin. The interval between bouts is from the end of a bout to the start of the next one of the same
behavior, and is only known if all frames between them are observed. The latency is that of the first observed bout; unobserved frames
before it count as time without the behavior.

References
----------
Martin and Bateson (2007), Measuring Behaviour, 3rd edition, Cambridge University Press.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.time_bins import TimeBins
from ethobench.analysis.tracks import AnimalTrack, animal_tracks, track_of
from ethobench.analysis.units import Annotated, Unit, as_recordings, list_units, metadata_columns, pooled_by, shared_columns
from ethobench.analysis.zones import INSIDE, ZoneOptions, recording_zones, resolve_zones, zone_states
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.intervals import Intervals
from ethobench.datasets.zones import ELSEWHERE, Zone
from ethobench.metrics.budgets import observed_bouts

MEASURES = (
    "n_bouts",
    "total_s",
    "share",
    "rate_per_min",
    "median_duration_s",
    "mean_duration_s",
    "latency_s",
    "inter_bout_s",
    "observed_s",
    "coverage",
)


def budgets(
    data: Annotated,
    *,
    by: Sequence[str] | str | None = None,
    bin: str | float | TimeBins | None = None,
    zones: bool | str | Path | Sequence[Zone] | None = None,
    annotator: str | None = None,
    zone_options: ZoneOptions | None = None,
) -> pd.DataFrame:
    """Return time budgets as a table, one row for each unit and behavior.

    Parameters
    ----------
    data : Dataset, Recording, Annotation, mapping of str to Annotation, or iterable of recordings or annotations
    by : str or sequence of str, optional
        Columns by which recordings are pooled, such as ``"individual"`` or ``("individual", "treatment")``. Default: one unit for each
        recording. Annotators and subjects are never pooled.
    bin : str, float or TimeBins, optional
        Time bins: seconds, ``"5m"``, ``"thirds"``, ``"parts:6"``, ``"clock:1h"`` (time of day) or ``"event:BEHAVIOR:5m"`` (time since the
        first bout of a behavior; recordings without it have no rows).
    zones : True, path or sequence of Zone, optional
        Separate rows for the frames in each zone, and ``"elsewhere"`` for those in none. True: the zones of the study. Frames in which the
        animal was not tracked are unobserved. A bout is counted in the zone in which it starts.
    annotator : str, optional
        Only this annotator. Default: all, in separate rows.
    zone_options : ZoneOptions, optional
        Body point and hysteresis of zones.

    Returns
    -------
    pandas.DataFrame
        ``recording``, ``individual``, ``annotator``, ``subject``, one column for each scalar metadata of the recordings,
        ``n_recordings`` (pooled), ``zone``, ``bin``, ``bin_start``, ``bin_stop`` (seconds), ``behavior``, ``n_bouts``, ``total_s``,
        ``share`` of the observed time, ``rate_per_min`` (bouts per observed minute), ``median_duration_s``, ``mean_duration_s``,
        ``latency_s`` (of the first bout from the start of the recording or bin; of several recordings the median), ``inter_bout_s``
        (median), ``observed_s``, and ``coverage`` (observed share of the time of the recording or bin; in zones,
        the share in which the animal was tracked and the behavior observed). Undefined values are NaN. Columns that differ between
        pooled recordings are empty.

    See Also
    --------
    transitions : which behavior follows which.
    bout_table : one row for each bout, for distributions of durations.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/tag", individuals=2, seconds=60)
    >>> table = eb.budgets(data, by="individual", bin="thirds")
    >>> len(table) == 2 * 3 * len(data.ethogram)
    True
    >>> share = table.groupby(["individual", "bin"])["share"].sum()
    >>> share.round(6).unique().tolist()
    [1.0]
    """
    recordings = as_recordings(data)
    bins = None if bin is None else TimeBins.parse(bin)
    units = list_units(recordings, annotator)
    _, groups = pooled_by(units, by)
    in_zones = _ZoneFrames(zones, zone_options)
    rows: list[dict[str, Any]] = []
    for group in groups.values():
        columns = shared_columns(group)
        sums: dict[tuple[Any, ...], _Sums] = {}
        for unit in group:
            for cell in in_zones.divide(unit, _cells(unit, bins)):
                for behavior in unit.annotation.ethogram.names:
                    sums.setdefault((*cell[:4], behavior), _Sums()).add(unit, behavior, cell)
        ordered = sorted(sums, key=lambda key: key[1]) if bins is not None else list(sums)
        rows += [{**columns, **dict(zip(_CELL_COLUMNS, key, strict=True)), **sums[key].measures()} for key in ordered]
    names = ["recording", "individual", "annotator", "subject", *metadata_columns(recordings), "n_recordings", *_CELL_COLUMNS, *MEASURES]
    return pd.DataFrame(rows, columns=names)


def mean_budgets(table: pd.DataFrame, by: Sequence[str] | str) -> pd.DataFrame:
    """Return the mean time budget of each group, over individuals.

    Parameters
    ----------
    table : DataFrame
        As `budgets` returns it, with one row for each individual: ``by=("individual", *by)``.
    by : str or sequence of str
        Columns of groups, such as ``"treatment"``. Subjects of one individual (a pair, a cage) are averaged first.

    Returns
    -------
    pandas.DataFrame
        `by`, ``annotator``, ``zone``, ``bin``, ``behavior``, ``n_individuals``, the means of ``bin_start``, ``bin_stop`` and of all
        measures, and ``share_sd``, the standard deviation of the share between individuals (NaN for a single one).

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/tag", individuals=4, seconds=60)
    >>> recordings = [r.copy(metadata={"sex": "fm"[k % 2]}) for k, r in enumerate(data)]
    >>> table = mean_budgets(eb.budgets(recordings, by=("individual", "sex")), "sex")
    >>> table["n_individuals"].unique().tolist(), table["sex"].unique().tolist()
    ([2], ['f', 'm'])
    """
    groups = [by] if isinstance(by, str) else list(by)
    keys = [*dict.fromkeys([*groups, "annotator", "zone", "bin", "behavior"])]
    values = ["bin_start", "bin_stop", *MEASURES]
    single = table.groupby([*keys, "individual"], sort=False, dropna=False)[values].mean().reset_index()
    grouped = single.groupby(keys, sort=False, dropna=False)
    means = grouped[values].mean()
    means.insert(0, "n_individuals", grouped["individual"].nunique())
    means["share_sd"] = grouped["share"].std()
    return means.reset_index()


_CELL_COLUMNS = ("zone", "bin", "bin_start", "bin_stop", "behavior")


class _Cell(NamedTuple):
    """Frames of a recording that are one row of each behavior: a time bin, or those of it in a zone.

    `all_frames` are those of the time bin; `known_values` are those in which it is known whether the animal is in the zone.
    """

    zone: str
    bin: float
    bin_start: float
    bin_stop: float
    frames: Intervals
    known_values: Intervals
    all_frames: Intervals


def _cells(unit: Unit, bins: TimeBins | None) -> Iterator[_Cell]:
    annotation = unit.annotation
    if bins is None:
        frames = iv.full(annotation.n_frames)
        yield _Cell("", np.nan, np.nan, np.nan, frames, frames, frames)
        return
    for piece in bins.divide(annotation, unit.recording.start_time, unit.recording.id, unit.subject):
        yield _Cell("", *piece, piece.frames, piece.frames)


class _ZoneFrames:
    """Frames in each zone for each animal, computed once for each recording."""

    def __init__(self, zones: bool | str | Path | Sequence[Zone] | None, options: ZoneOptions | None) -> None:
        self.is_used = zones is not None and zones is not False
        self.zones = resolve_zones(zones) if self.is_used and zones is not None else None
        self.options = options or ZoneOptions()
        self._tracks: dict[str, list[AnimalTrack]] = {}

    def divide(self, unit: Unit, cells: Iterable[_Cell]) -> Iterator[_Cell]:
        """Divide cells by zone; without zones, return them as they are."""
        if not self.is_used:
            yield from cells
            return
        recording, n_frames = unit.recording, unit.annotation.n_frames
        if recording.id not in self._tracks:
            self._tracks = {recording.id: animal_tracks([recording], point=self.options.point)}
        track = track_of(self._tracks[recording.id], unit.subject or self.options.animal)
        if (len(track.positions), track.rate) != (n_frames, unit.annotation.rate):
            raise MismatchError(
                f"recording {recording.id!r}: the annotation has {n_frames} frames at {unit.annotation.rate:g} Hz, "
                f"the poses have {len(track.positions)} at {track.rate:g} Hz"
            )
        states = {zone.name: zone_states(track, zone, self.options) for zone in recording_zones(recording, self.zones)}
        inside = {name: state == INSIDE for name, state in states.items()}
        inside[ELSEWHERE] = track.tracked & ~np.any(list(inside.values()), axis=0)
        tracked = iv.from_mask(track.tracked)
        masks = {name: iv.from_mask(mask) for name, mask in inside.items()}
        for cell in cells:
            known_values = iv.intersection(tracked, cell.all_frames)
            for name, frames in masks.items():
                yield cell._replace(zone=name, frames=iv.intersection(frames, cell.all_frames), known_values=known_values)


@dataclass
class _Sums:
    """What a row is computed from, summed over recordings."""

    total_s: float = 0.0
    observed_s: float = 0.0
    known_s: float = 0.0
    available_s: float = 0.0
    is_point: bool = False
    durations: list[NDArray[np.float64]] = field(default_factory=list)
    gaps: list[NDArray[np.float64]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def add(self, unit: Unit, behavior: str, cell: _Cell) -> None:
        """Add the bouts of a behavior that start in the frames of a cell, and the time within them."""
        annotation, frames = unit.annotation, cell.frames
        rate = annotation.rate
        spans, observed = observed_bouts(annotation, behavior, unit.subject)
        self.is_point |= annotation.ethogram[behavior].point
        self.available_s += iv.total(cell.all_frames) / rate
        self.known_s += iv.overlap(cell.known_values, observed) / rate
        self.observed_s += iv.overlap(frames, observed) / rate
        self.total_s += iv.overlap(frames, spans) / rate
        first = np.minimum(spans.start, annotation.n_frames - 1)
        inside = iv.covered_before(frames, first + 1) > iv.covered_before(frames, first)
        self.durations.append((spans.stop - spans.start)[inside] / rate)
        self.gaps.append(gaps_after(spans, observed, rate)[inside])
        self.gaps[-1] = self.gaps[-1][~np.isnan(self.gaps[-1])]
        if inside.any():
            self.latencies.append(float(spans.start[inside][0] - cell.all_frames.start[0]) / rate)

    def measures(self) -> dict[str, float]:
        """Return the measures of the row."""
        durations, gaps = np.concatenate(self.durations), np.concatenate(self.gaps)
        has_durations = len(durations) > 0 and not self.is_point
        return {
            "n_bouts": len(durations),
            "total_s": self.total_s,
            "share": self.total_s / self.observed_s if self.observed_s else np.nan,
            "rate_per_min": len(durations) / self.observed_s * 60 if self.observed_s else np.nan,
            "median_duration_s": float(np.median(durations)) if has_durations else np.nan,
            "mean_duration_s": float(durations.mean()) if has_durations else np.nan,
            "latency_s": float(np.median(self.latencies)) if self.latencies else np.nan,
            "inter_bout_s": float(np.median(gaps)) if len(gaps) else np.nan,
            "observed_s": self.observed_s,
            "coverage": self.known_s / self.available_s if self.available_s else np.nan,
        }


def gaps_after(spans: Intervals, observed: Intervals, rate: float) -> NDArray[np.float64]:
    """Return the seconds from the end of each bout to the start of the next; NaN after the last and where frames between are unobserved.

    Parameters
    ----------
    spans : Intervals
        Bouts of one behavior, sorted.
    observed : Intervals
        Observed frames, as a disjoint set.
    rate : float
        Frames per second.

    Examples
    --------
    >>> gaps_after(iv.intervals([0, 20, 60], [10, 30, 70]), iv.intervals([0, 50], [40, 100]), 10.0).tolist()
    [1.0, nan, nan]
    """
    gaps = np.full(len(spans.start), np.nan)
    between = Intervals(spans.stop[:-1], spans.start[1:])
    frames = between.stop - between.start
    is_known = iv.overlap_with(between, observed) == frames
    gaps[:-1] = np.where(is_known, frames / rate, np.nan)
    return gaps
