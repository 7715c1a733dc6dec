"""Which behavior follows which, and the durations of single bouts.

Conventions
-----------
A transition leads from a bout to the next bout of another behavior of the same subject, in order of their starts; the background counts
if it is a behavior of the ethogram. A transition across unobserved frames is not known and not counted. Probabilities are relative to
all transitions from a behavior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.budgets import gaps_after
from ethobench.analysis.units import NAMES, Annotated, Unit, as_recordings, list_units, metadata_columns, pooled_by, shared_columns
from ethobench.core import intervals as iv
from ethobench.metrics.budgets import observed_bouts


def transitions(data: Annotated, *, by: Sequence[str] | str | None = None, annotator: str | None = None) -> pd.DataFrame:
    """Return counts and probabilities of transitions between behaviors.

    Parameters
    ----------
    data, by, annotator
        See `budgets`.

    Returns
    -------
    pandas.DataFrame
        The identifying columns of `budgets`, ``behavior``, ``next_behavior``, ``n_transitions``, ``probability`` (NaN if nothing follows
        `behavior`), and ``coverage``, the share of frames in which all behaviors were observed. One row for each pair of behaviors.

    Examples
    --------
    >>> from ethobench import Annotation
    >>> annotation = Annotation.from_frames([0, 0, 1, 0, 2, 0, 1], ["rest", "walk", "run"], rate=1)
    >>> table = transitions(annotation)
    >>> table[(table["behavior"] == "rest") & (table["next_behavior"] == "walk")][["n_transitions", "probability"]].values.tolist()
    [[2.0, 0.6666666666666666]]
    """
    recordings = as_recordings(data)
    _, groups = pooled_by(list_units(recordings, annotator), by)
    rows: list[dict[str, Any]] = []
    for group in groups.values():
        columns = shared_columns(group)
        names = list(dict.fromkeys(name for unit in group for name in unit.annotation.ethogram.names))
        counts = np.zeros((len(names), len(names)), dtype=np.int64)
        for unit in group:
            np.add.at(counts, _pairs(unit, names), 1)
        observed = sum(iv.total(_observed(unit)) / unit.annotation.rate for unit in group)
        available = sum(unit.annotation.duration for unit in group)
        coverage = observed / available if available else np.nan
        totals = counts.sum(axis=1)
        for i, behavior in enumerate(names):
            for j, following in enumerate(names):
                if i != j:
                    probability = counts[i, j] / totals[i] if totals[i] else np.nan
                    pair = {"behavior": behavior, "next_behavior": following}
                    rows.append({**columns, **pair, "n_transitions": int(counts[i, j]), "probability": probability, "coverage": coverage})
    names = [*NAMES, *metadata_columns(recordings), "n_recordings", "behavior", "next_behavior", "n_transitions", "probability", "coverage"]
    return pd.DataFrame(rows, columns=names)


def _observed(unit: Unit) -> iv.Intervals:
    return unit.annotation.observed.of_all(unit.annotation.ethogram.names, unit.subject or None)


def _pairs(unit: Unit, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes (positions in `names`) of consecutive bouts of different behaviors."""
    spans = {name: observed_bouts(unit.annotation, name, unit.subject)[0] for name in unit.annotation.ethogram.names}
    start = np.concatenate([np.zeros(0, dtype=np.int64), *(s.start for s in spans.values())])
    stop = np.concatenate([np.zeros(0, dtype=np.int64), *(s.stop for s in spans.values())])
    codes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(s.start), names.index(name)) for name, s in spans.items())])
    order = np.lexsort((codes, start))
    start, stop, codes = start[order], stop[order], codes[order]
    between = iv.Intervals(np.minimum(stop[:-1], start[1:]), start[1:])
    is_known = iv.overlap_with(between, _observed(unit)) == between.stop - between.start
    counted = (codes[1:] != codes[:-1]) & is_known
    return codes[:-1][counted], codes[1:][counted]


def bout_table(data: Annotated, *, annotator: str | None = None) -> pd.DataFrame:
    """Return one row for each observed bout: start, stop, duration, and the interval to the next bout of the same behavior.

    Parameters
    ----------
    data, annotator
        See `budgets`.

    Returns
    -------
    pandas.DataFrame
        The identifying columns of `budgets`, ``behavior``, ``start_s``, ``stop_s``, ``duration_s`` and ``inter_bout_s`` (NaN after the last
        bout, and where frames up to the next one are unobserved).

    Examples
    --------
    >>> from ethobench import Annotation
    >>> annotation = Annotation.from_bouts([10, 50], [20, 60], ["groom", "groom"], ["groom"], rate=10, n_frames=100)
    >>> bout_table(annotation)[["start_s", "duration_s", "inter_bout_s"]].values.tolist()
    [[1.0, 1.0, 3.0], [5.0, 1.0, nan]]
    """
    recordings = as_recordings(data)
    names = [*NAMES, *metadata_columns(recordings)]
    tables = []
    for unit in list_units(recordings, annotator):
        rate = unit.annotation.rate
        for behavior in unit.annotation.ethogram.names:
            spans, observed = observed_bouts(unit.annotation, behavior, unit.subject)
            times = {"start_s": spans.start / rate, "stop_s": spans.stop / rate, "duration_s": (spans.stop - spans.start) / rate}
            columns = {name: unit.columns[name] for name in names}
            tables.append(pd.DataFrame({**columns, "behavior": behavior, **times, "inter_bout_s": gaps_after(spans, observed, rate)}))
    tables = [table for table in tables if len(table)]
    empty = pd.DataFrame(columns=[*names, "behavior", "start_s", "stop_s", "duration_s", "inter_bout_s"])
    return pd.concat(tables, ignore_index=True) if tables else empty
