"""The banos package's calls, answered by Ethobench: the same names, objects and numbers, thousands of times faster.

``import ethobench.banos as banos`` is all that existing code needs. Two things are mended: frames are taken by position, so a
DataFrame with any index works, and a column that is left out is told in a warning.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import ReadWarning
from ethobench.core.intervals import Intervals
from ethobench.metrics._matching import count_matches
from ethobench.metrics.suites.banos import NAMES, Timeline, continuity, detection, overlap_scores, score_timeline

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "aggregate_metrics",
    "calculate_banos_for_each_file",
    "calculate_ic",
    "calculate_precision_recall_f1",
    "calculate_so",
    "calculate_tiou",
    "calculate_tp_fp_fn",
    "calculate_tp_metric",
    "compute_behavior_metrics",
    "count_switches_within_bout",
    "drop_non_logical_columns",
    "identify_bouts",
    "is_logical_column",
    "match_headers",
    "preprocess_data",
    "score",
]

Bout: TypeAlias = tuple[int, int]
Pair: TypeAlias = "tuple[pd.DataFrame, pd.DataFrame]"
Figures: TypeAlias = dict[str, float]
Frames: TypeAlias = np.ndarray[Any, Any]


def score(data: Any, gt: Any = None, *, matching: str = "greedy") -> Any:
    """Score one pair of DataFrames, or several.

    Parameters
    ----------
    data : DataFrame or mapping
        Predictions (frames by behaviours, 0 or 1) of one recording; or names to ``(prediction, truth)``.
    gt : DataFrame, optional
        The truth that belongs to a single prediction.
    matching : {"greedy", "optimal"}
        Both give the same counts, since the bouts of one behaviour do not overlap.

    Returns
    -------
    dict, or tuple of two dicts
        ``{behavior: {precision, recall, f1_score, so, tp, ic}}``; for several recordings the means by behaviour and overall.

    Examples
    --------
    >>> import pandas as pd
    >>> truth, pred = pd.DataFrame({"attack": [0, 1, 1, 0]}), pd.DataFrame({"attack": [0, 1, 0, 0]})
    >>> score(pred, truth)["attack"]["so"]
    0.5
    """
    import pandas as pd

    _check_matching(matching)
    if isinstance(data, pd.DataFrame):
        if gt is None:
            raise ValueError("When 'data' is a DataFrame, 'gt' must be provided.")
        return _score_each({"single": (data, gt)})["single"]
    return aggregate_metrics(_score_each(dict(data)))


def _score_each(data: Mapping[str, Pair]) -> dict[str, dict[str, Figures]]:
    """Score all pairs in one go; those that need cleaning are cleaned first, and what that leaves out is told."""
    ready: dict[str, tuple[list[str], Frames, Frames]] = {}
    for name, (pred, gt) in data.items():
        columns = list(pred.columns)
        sides = [_frames(side) for side in (pred, gt)] if columns == list(gt.columns) and len({*columns}) == len(columns) else [None]
        if any(side is None for side in sides):
            cleaned, dropped = preprocess_data({name: (pred, gt)})
            _warn_of_dropped(dropped)
            columns, sides = list(cleaned[name][0].columns), [_frames(side) for side in cleaned[name]]
        ready[name] = columns, np.asarray(sides[0]), np.asarray(sides[1])
    return _score_frames(ready)


def _frames(matrix: pd.DataFrame) -> Any:
    """Return a row for each column, with a frame without behaviour added at both ends; None if more than 0 and 1 is there."""
    values = matrix.to_numpy().T
    if values.dtype.kind not in "biuf":
        return None
    frames = np.zeros((values.shape[0], values.shape[1] + 2), dtype=bool)
    np.equal(values, 1, out=frames[:, 1:-1])
    return frames if np.count_nonzero(values) == np.count_nonzero(frames) else None


def _score_frames(data: Mapping[str, tuple[Sequence[str], Frames, Frames]]) -> dict[str, dict[str, Figures]]:
    """Lay all columns of all recordings out on one timeline and score them together."""
    truth_edges: list[Frames] = []
    pred_edges: list[Frames] = []
    ends, offset = [np.zeros(0, dtype=np.int64)], 0
    for _, pred, gt in data.values():
        width = max(pred.shape[1], gt.shape[1])
        for side, edges in ((gt, truth_edges), (pred, pred_edges)):
            found = np.flatnonzero(side[:, 1:] != side[:, :-1])
            if side.shape[1] != width:
                found += (found // (side.shape[1] - 1)) * (width - side.shape[1])
            edges.append(found + offset)
        ends.append(offset + (np.arange(len(gt)) + 1) * (width - 1))
        offset += len(gt) * (width - 1)
    sides = [np.concatenate([np.zeros(0, dtype=np.int64), *edges]) for edges in (truth_edges, pred_edges)]
    truth, guess = (Intervals(edges[::2], edges[1::2]) for edges in sides)
    cells = iter(score_timeline(Timeline(truth, guess, np.concatenate(ends))))
    return {name: {column: dict(zip(NAMES, next(cells), strict=True)) for column in columns} for name, (columns, *_) in data.items()}


def preprocess_data(data_dict: Mapping[str, Pair]) -> tuple[dict[str, Pair], dict[str, dict[str, list[str]]]]:
    """Fill NaN with 0, leave out columns that hold more than 0 and 1, keep those that both sides have.

    Returns
    -------
    data : dict
        Names to cleaned pairs.
    dropped : dict
        Names to what was left out: ``pred_dropped``, ``gt_dropped``, ``header_dropped``.
    """
    cleaned, dropped = {}, {}
    for name, (pred, gt) in data_dict.items():
        pred_kept, pred_dropped = drop_non_logical_columns(pred.fillna(0))
        gt_kept, gt_dropped = drop_non_logical_columns(gt.fillna(0))
        pred_common, gt_common, header_dropped = match_headers(pred_kept, gt_kept)
        cleaned[name] = (pred_common, gt_common)
        dropped[name] = {"pred_dropped": pred_dropped, "gt_dropped": gt_dropped, "header_dropped": header_dropped}
    return cleaned, dropped


def drop_non_logical_columns(matrix: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without the columns that hold more than 0 and 1, and their names."""
    dropped = [str(column) for column in matrix if not is_logical_column(matrix[column])]
    kept = [column for column in matrix if str(column) not in dropped]
    return matrix[kept], dropped


def is_logical_column(column: pd.Series) -> bool:
    """Tell whether a column holds only 0 and 1."""
    values = column.to_numpy()
    if values.dtype.kind == "b":
        return True
    if values.dtype.kind in "iuf":
        return bool(((values == 0) | (values == 1)).all())
    return bool(column.isin([0, 1]).all())


def match_headers(pred_matrix: pd.DataFrame, gt_matrix: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Keep the columns that both tables have, in the prediction's order; return the names of the others too."""
    common = pred_matrix.columns.intersection(gt_matrix.columns)
    return pred_matrix[common], gt_matrix[common], list(set(pred_matrix.columns).symmetric_difference(gt_matrix.columns))


def compute_behavior_metrics(pred_matrix: pd.DataFrame, gt_matrix: pd.DataFrame, matching: str = "greedy") -> dict[str, Figures]:
    """Score every column of a cleaned pair."""
    return calculate_banos_for_each_file({"single": (pred_matrix, gt_matrix)}, matching=matching)["single"]


def calculate_banos_for_each_file(preprocessed_data: Mapping[str, Pair], matching: str = "greedy") -> dict[str, dict[str, Figures]]:
    """Score every recording of cleaned data."""
    _check_matching(matching)
    pairs = preprocessed_data.items()
    return _score_frames({name: (list(pred.columns), _frames(pred), _frames(gt[list(pred.columns)])) for name, (pred, gt) in pairs})


def aggregate_metrics(file_metrics: Mapping[str, Mapping[str, Figures]]) -> tuple[dict[str, Figures], Figures]:
    """Average over recordings by behaviour, and over all cells; undefined values are left out."""
    by_behavior: dict[str, dict[str, list[float]]] = {}
    overall: dict[str, list[float]] = {name: [] for name in NAMES}
    for behaviors in file_metrics.values():
        for behavior, figures in behaviors.items():
            cells = by_behavior.setdefault(behavior, {name: [] for name in NAMES})
            for name in NAMES:
                value = figures.get(name, float("nan"))
                cells[name].append(value)
                overall[name].append(value)
    group = {behavior: {name: _nanmean(values) for name, values in cells.items()} for behavior, cells in by_behavior.items()}
    return group, {name: _nanmean(values) for name, values in overall.items()}


def identify_bouts(sequence: Any) -> list[Bout]:
    """List the runs of 1 as inclusive (first, last) frames."""
    runs = _runs(np.asarray(sequence))
    return [(int(a), int(b) - 1) for a, b in zip(runs.start, runs.stop, strict=True)]


def calculate_tp_fp_fn(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout], matching: str = "greedy") -> tuple[int, int, int]:
    """Count matched, invented and missed bouts."""
    _check_matching(matching)
    i, j = iv.overlapping_pairs(_intervals(gt_bouts), _intervals(pred_bouts))
    matched = count_matches(i, j)
    return matched, len(pred_bouts) - matched, len(gt_bouts) - matched


def calculate_precision_recall_f1(n_tp: int, n_fp: int, n_fn: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of counts; NaN where a denominator is zero."""
    return detection(n_tp, n_fp, n_fn)


def calculate_tiou(pred_bout: Bout, gt_bout: Bout) -> float:
    """Return the intersection over union of two inclusive bouts."""
    inside = max(min(pred_bout[1], gt_bout[1]) - max(pred_bout[0], gt_bout[0]) + 1, 0)
    together = (pred_bout[1] - pred_bout[0] + 1) + (gt_bout[1] - gt_bout[0] + 1) - inside
    return inside / together if together else 0.0


def calculate_so(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout]) -> float:
    """Return the mean intersection over union of all overlapping pairs; NaN where there are none."""
    return _overlap(pred_bouts, gt_bouts)[0]


def calculate_tp_metric(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout]) -> float:
    """Return the mean of 1 / (1 + start error + stop error) of all overlapping pairs; NaN where there are none."""
    return _overlap(pred_bouts, gt_bouts)[1]


def calculate_ic(pred_sequence: Any, gt_bouts: Sequence[Bout]) -> float:
    """Return the mean over true bouts of 1 - switches per frame step; NaN where there are none of two frames or more."""
    return continuity(_intervals(gt_bouts), _runs(np.asarray(pred_sequence)))


def count_switches_within_bout(pred_sequence: Any, gt_start: int, gt_end: int) -> int:
    """Count label changes between the frames `gt_start` and `gt_end`, both included."""
    frames = np.asarray(pred_sequence)[gt_start : gt_end + 1]
    return int((frames[1:] != frames[:-1]).sum())


def _runs(values: np.ndarray[Any, Any]) -> Intervals:
    return iv.from_mask(values == 1)


def _intervals(bouts: Sequence[Bout]) -> Intervals:
    return iv.intervals([a for a, _ in bouts], [b + 1 for _, b in bouts])


def _overlap(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout]) -> tuple[float, float]:
    return overlap_scores(_intervals(gt_bouts), _intervals(pred_bouts))


def _nanmean(values: Sequence[float | None]) -> float:
    known = [v for v in values if v is not None and not math.isnan(v)]
    return sum(known) / len(known) if known else float("nan")


def _check_matching(matching: str) -> None:
    if matching not in ("greedy", "optimal"):
        raise ValueError(f"Unknown matching algorithm: {matching!r}. Use 'greedy' or 'optimal'.")


def _warn_of_dropped(dropped: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    for name, parts in dropped.items():
        for where, columns in parts.items():
            if columns:
                told = {"pred_dropped": "not only 0 and 1 in the prediction", "gt_dropped": "not only 0 and 1 in the truth"}
                reason = told.get(where, "on one side only")
                warnings.warn(f"{name}: columns left out ({reason}): {', '.join(map(str, columns))}", ReadWarning, stacklevel=3)
