"""Drop-in replacement for the banos package: the same functions, arguments and results, hundreds to thousands of times faster.

``import ethobench.banos as banos`` is the only change that existing code needs. Two defects are fixed: frames are selected by position, so
a DataFrame with any index works, and a dropped column is reported in a warning.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.errors import ReadWarning
from ethobench.core.intervals import Intervals
from ethobench.metrics.matching import count_matches
from ethobench.metrics.suites.banos import NAMES, Timeline, continuity, detection, mean, pair_scores, score_timeline

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
Values: TypeAlias = dict[str, float]
Frames: TypeAlias = np.ndarray[Any, Any]


def score(data: Any, gt: Any = None, *, matching: str = "greedy") -> Any:
    """Score one pair of DataFrames (prediction and truth), or several.

    Parameters
    ----------
    data : DataFrame or mapping
        Predictions (frames by behaviors, 0 or 1) of one recording; or names to ``(prediction, truth)``.
    gt : DataFrame, optional
        The truth of a single prediction.
    matching : {"greedy", "optimal"}
        Both return the same counts, since the bouts of one behavior do not overlap.

    Returns
    -------
    dict, or tuple of two dicts
        ``{behavior: {precision, recall, f1_score, so, tp, ic}}``; for several recordings the means by behavior and overall.

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


class _Concatenation:
    """Columns of all recordings on one time axis, one after the other, so that all are scored at once."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {}
        self.edges: tuple[list[Frames], list[Frames]] = ([], [])
        self.ends: list[Frames] = []
        self.length = 0

    def add(self, name: str, columns: list[str], width: int, gt_edges: Frames, pred_edges: Frames) -> None:
        """Append a recording, whose columns take `width` frames each."""
        for side, edges in zip(self.edges, (gt_edges, pred_edges), strict=True):
            side.append(edges + self.length)
        self.ends.append(self.length + np.arange(1, len(columns) + 1) * width)
        self.columns[name] = columns
        self.length += len(columns) * width

    def score(self) -> dict[str, dict[str, Values]]:
        """Score all columns of all recordings."""
        if not self.columns:
            return {}
        truth, pred = (Intervals(edges[::2], edges[1::2]) for edges in map(np.concatenate, self.edges))
        values = iter(score_timeline(Timeline(truth, pred, np.concatenate(self.ends))))
        return {name: {column: dict(zip(NAMES, next(values), strict=True)) for column in columns} for name, columns in self.columns.items()}


def _score_each(data: Mapping[str, Pair]) -> dict[str, dict[str, Values]]:
    """Score all pairs at once; those that need cleaning are cleaned first, with a warning about dropped columns."""
    cells = _Concatenation()
    for name, (pred, gt) in data.items():
        width = max(len(pred), len(gt)) + 1
        if pred.columns.equals(gt.columns) and pred.columns.is_unique:
            gt_edges, pred_edges = _binary_edges(gt, width), _binary_edges(pred, width)
            if gt_edges is not None and pred_edges is not None:
                cells.add(name, list(pred.columns), width, gt_edges, pred_edges)
                continue
        cleaned, dropped = preprocess_data({name: (pred, gt)})
        _warn_about_dropped(dropped)
        _add_clean(cells, name, *cleaned[name])
    return cells.score()


def _add_clean(cells: _Concatenation, name: str, pred: pd.DataFrame, gt: pd.DataFrame) -> None:
    columns, width = list(pred.columns), max(len(pred), len(gt)) + 1
    sides = [_edges(side.to_numpy() == 1, width) for side in (gt[columns], pred)]
    cells.add(name, columns, width, np.asarray(sides[0]), np.asarray(sides[1]))


def _binary_edges(matrix: pd.DataFrame, width: int) -> Frames | None:
    """Return the edges of a table that contains only the numbers 0 and 1; None for any other."""
    columns = _column_arrays(matrix)
    if columns and all(c.dtype.kind in "biuf" and c.flags.c_contiguous for c in columns):
        return _edges_of_columns(columns, len(matrix), width)
    values = matrix.to_numpy()
    return _edges(values, width) if values.dtype.kind in "biuf" else None


def _column_arrays(matrix: pd.DataFrame) -> list[Frames]:
    """Return the columns of a table without copying them, if this version of pandas can; else an empty list."""
    arrays = getattr(matrix, "_iter_column_arrays", None)
    columns = list(arrays()) if arrays is not None else []
    return columns if all(isinstance(c, np.ndarray) for c in columns) else []


def _edges_of_columns(columns: Sequence[Frames], n: int, width: int) -> Frames | None:
    """Return what `_edges` returns, for columns in separate arrays."""
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    changes = [(c[1:] != c[:-1]).nonzero()[0] for c in columns]
    values = np.concatenate([c[1:][changed] for c, changed in zip(columns, changes, strict=True)])
    ends = [(c[0], c[-1]) for c in columns]
    if not ((values == 0) | (values == 1)).all() or any(first not in (0, 1) for first, _ in ends):
        return None
    outer = [k * width for k, (first, _) in enumerate(ends) if first] + [k * width + n for k, (_, last) in enumerate(ends) if last]
    shift = np.repeat(np.arange(len(columns)) * width + 1, [len(changed) for changed in changes])
    return np.sort(np.concatenate((np.concatenate(changes) + shift, np.array(outer, dtype=np.int64))))


def _edges(frames: Frames, width: int) -> Frames | None:
    """Return starts and stops of bouts in turn, one column after the other, each column taking `width` frames.

    Values are read only where they change, which also reveals values other than 0 and 1: then None is returned.
    """
    n, columns = frames.shape
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    if frames.flags.c_contiguous:
        frame, column = np.divmod(np.flatnonzero(frames[1:] != frames[:-1]), columns)
    else:
        column, frame = np.divmod(np.flatnonzero(frames.T[:, 1:] != frames.T[:, :-1]), max(n - 1, 1))
    frame += 1
    values = np.concatenate((frames[0], frames[frame, column]))
    if values.dtype.kind != "b" and not ((values == 0) | (values == 1)).all():
        return None
    first, last = np.flatnonzero(frames[0]) * width, np.flatnonzero(frames[-1]) * width + n
    return np.sort(np.concatenate((column * width + frame, first, last)))


def preprocess_data(data_dict: Mapping[str, Pair]) -> tuple[dict[str, Pair], dict[str, dict[str, list[str]]]]:
    """Fill NaN with 0, drop columns with values other than 0 and 1, and keep the columns that both sides have.

    Returns
    -------
    data : dict
        Names to cleaned pairs.
    dropped : dict
        Names to dropped columns: ``pred_dropped``, ``gt_dropped``, ``header_dropped``.
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
    """Return a table without the columns that have values other than 0 and 1, and the names of these."""
    if not matrix.columns.is_unique:
        raise ValueError("columns must have unique names")
    dropped = [column for column in matrix if not is_logical_column(matrix[column])]
    return matrix.drop(columns=dropped), cast("list[str]", dropped)


def is_logical_column(column: pd.Series) -> bool:
    """Return whether a column contains only 0 and 1."""
    values = column.to_numpy()
    if values.dtype.kind == "b":
        return True
    if values.dtype.kind in "iuf":
        return bool(((values == 0) | (values == 1)).all())
    return bool(column.isin([0, 1]).all())


def match_headers(pred_matrix: pd.DataFrame, gt_matrix: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return both tables with the columns that both have, in the order of the prediction, and the names of the others."""
    common = pred_matrix.columns.intersection(gt_matrix.columns)
    return pred_matrix[common], gt_matrix[common], list(set(pred_matrix.columns).symmetric_difference(gt_matrix.columns))


def compute_behavior_metrics(pred_matrix: pd.DataFrame, gt_matrix: pd.DataFrame, matching: str = "greedy") -> dict[str, Values]:
    """Score every column of a cleaned pair."""
    return calculate_banos_for_each_file({"single": (pred_matrix, gt_matrix)}, matching=matching)["single"]


def calculate_banos_for_each_file(preprocessed_data: Mapping[str, Pair], matching: str = "greedy") -> dict[str, dict[str, Values]]:
    """Score every recording of cleaned data."""
    _check_matching(matching)
    cells = _Concatenation()
    for name, (pred, gt) in preprocessed_data.items():
        _add_clean(cells, name, pred, gt)
    return cells.score()


def aggregate_metrics(file_metrics: Mapping[str, Mapping[str, Values]]) -> tuple[dict[str, Values], Values]:
    """Return means over recordings by behavior, and over all cells; undefined values are excluded."""
    by_behavior: dict[str, dict[str, list[float]]] = {}
    overall: dict[str, list[float]] = {name: [] for name in NAMES}
    for behaviors in file_metrics.values():
        for behavior, scores in behaviors.items():
            cells = by_behavior.setdefault(behavior, {name: [] for name in NAMES})
            for name in NAMES:
                value = scores.get(name, float("nan"))
                cells[name].append(value)
                overall[name].append(value)
    group = {behavior: {name: _nanmean(values) for name, values in cells.items()} for behavior, cells in by_behavior.items()}
    return group, {name: _nanmean(values) for name, values in overall.items()}


def identify_bouts(sequence: Any) -> list[Bout]:
    """List the runs of 1 as inclusive (first, last) frames."""
    runs = _runs(np.asarray(sequence))
    return [(int(a), int(b) - 1) for a, b in zip(runs.start, runs.stop, strict=True)]


def calculate_tp_fp_fn(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout], matching: str = "greedy") -> tuple[int, int, int]:
    """Return the numbers of true positive, false positive and false negative bouts."""
    _check_matching(matching)
    i, j = _pairs(gt_bouts, pred_bouts)
    if _in_order(gt_bouts) and _in_order(pred_bouts):
        matched = count_matches(i, j)
    else:
        matched = _match_any(i, j, len(gt_bouts), len(pred_bouts), matching)
    return matched, len(pred_bouts) - matched, len(gt_bouts) - matched


def calculate_precision_recall_f1(n_tp: int, n_fp: int, n_fn: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of counts; NaN if a denominator is zero."""
    return detection(n_tp, n_fp, n_fn)


def calculate_tiou(pred_bout: Bout, gt_bout: Bout) -> float:
    """Return the intersection over union of two inclusive bouts."""
    inside = max(min(pred_bout[1], gt_bout[1]) - max(pred_bout[0], gt_bout[0]) + 1, 0)
    together = (pred_bout[1] - pred_bout[0] + 1) + (gt_bout[1] - gt_bout[0] + 1) - inside
    return inside / together if together else 0.0


def calculate_so(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout]) -> float:
    """Return the mean intersection over union of all overlapping pairs; NaN if there are none."""
    return _overlap(pred_bouts, gt_bouts)[0]


def calculate_tp_metric(pred_bouts: Sequence[Bout], gt_bouts: Sequence[Bout]) -> float:
    """Return the mean of 1 / (1 + start error + stop error) of all overlapping pairs; NaN if there are none."""
    return _overlap(pred_bouts, gt_bouts)[1]


def calculate_ic(pred_sequence: Any, gt_bouts: Sequence[Bout]) -> float:
    """Return the mean over true bouts of 1 - switches per frame step; NaN if there are none of two frames or more."""
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
    overlaps, closeness = pair_scores(_intervals(gt_bouts), _intervals(pred_bouts), *_pairs(gt_bouts, pred_bouts))
    return mean(overlaps.tolist()), mean(closeness.tolist())


def _in_order(bouts: Sequence[Bout]) -> bool:
    return all(a[1] < b[0] for a, b in pairwise(bouts))


def _pairs(gt_bouts: Sequence[Bout], pred_bouts: Sequence[Bout]) -> tuple[Frames, Frames]:
    """Return the indices of all pairs of bouts that share a frame, in the order of the lists."""
    order_gt, order_pred = (sorted(range(len(bouts)), key=bouts.__getitem__) for bouts in (gt_bouts, pred_bouts))
    i, j = iv.overlapping_pairs(_intervals([gt_bouts[k] for k in order_gt]), _intervals([pred_bouts[k] for k in order_pred]))
    i, j = np.array(order_gt, dtype=np.int64)[i], np.array(order_pred, dtype=np.int64)[j]
    listed = np.lexsort((j, i))
    return i[listed], j[listed]


def _match_any(i: Frames, j: Frames, n_gt: int, n_pred: int, matching: str) -> int:
    """Count matches of bouts that may overlap each other or be in any order, as the package does."""
    if matching == "optimal":
        from scipy.optimize import linear_sum_assignment

        overlaps = np.zeros((n_pred, n_gt))
        overlaps[j, i] = 1
        return int(overlaps[linear_sum_assignment(1 - overlaps)].sum())
    matched_gt: set[int] = set()
    matched_pred: set[int] = set()
    for pred, gt in sorted(zip(j.tolist(), i.tolist(), strict=True)):
        if pred not in matched_pred and gt not in matched_gt:
            matched_pred.add(pred)
            matched_gt.add(gt)
    return len(matched_gt)


def _nanmean(values: Sequence[float | None]) -> float:
    defined = [v for v in values if v is not None and not math.isnan(v)]
    return sum(defined) / len(defined) if defined else float("nan")


def _check_matching(matching: str) -> None:
    if matching not in ("greedy", "optimal"):
        raise ValueError(f"Unknown matching algorithm: {matching!r}. Use 'greedy' or 'optimal'.")


def _warn_about_dropped(dropped: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    reasons = {
        "pred_dropped": "values other than 0 and 1 in the prediction",
        "gt_dropped": "values other than 0 and 1 in the truth",
        "header_dropped": "only in the prediction or only in the truth",
    }
    for name, groups in dropped.items():
        for key, columns in groups.items():
            if columns:
                warnings.warn(f"{name}: columns dropped ({reasons[key]}): {', '.join(map(str, columns))}", ReadWarning, stacklevel=3)
