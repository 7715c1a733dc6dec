"""Post-processing of frame-wise predictions: thresholds, smoothing, minimum durations of bouts and gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.features.windows import window_frames

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
UNPREDICTED = -1  # code of frames without a prediction
UNLIMITED = np.iinfo(np.int64).max
LOG_WEIGHTS = np.linspace(-2.5, 2.5, 21)  # candidates for the log weight of an exclusive behavior
THRESHOLDS = 1 / (1 + np.exp(-np.linspace(-4, 4, 81)))  # candidates for the threshold of an overlapping behavior
MAX_PASSES = 3
MIN_GAIN, MIN_PASS_GAIN = 1e-6, 1e-4  # of the mean F1, by one weight and by one pass over all behaviors


def smooth(columns: Array, n_frames: int, statistic: str) -> Array:
    """Return the moving mean or median of each column, ignoring NaN.

    Parameters
    ----------
    columns : array (n_frames, n_columns)
    n_frames : int
        Length of the centered window, rounded to an odd number. Windows below 2 frames change nothing.
    statistic : {"mean", "median"}
    """
    import bottleneck as bn

    if n_frames < 2 or not len(columns):
        return columns
    half = window_frames(n_frames, 1.0) // 2
    move = bn.move_mean if statistic == "mean" else bn.move_median
    padded = np.concatenate([columns, np.full((half, columns.shape[1]), np.nan)])
    return np.asarray(move(padded, min(2 * half + 1, len(padded)), min_count=1, axis=0)[half:])


def majority_vote(codes: Codes, n_codes: int, n_frames: int, unpredicted: NDArray[np.bool_]) -> Codes:
    """Replace each code by the most frequent one in its window; where codes tie, a frame keeps its code."""
    if n_frames < 2 or not len(codes):
        return codes
    one_hot = (codes[:, None] == np.arange(n_codes)).astype(np.float64)
    one_hot[unpredicted] = np.nan
    share = smooth(one_hot, n_frames, "mean") + 1e-6 * np.nan_to_num(one_hot)
    return np.asarray(np.where(unpredicted, codes, np.nan_to_num(share, nan=-1.0).argmax(axis=1)))


def close_short_gaps(codes: Codes, min_frames: list[int], no_behavior: int) -> Codes:
    """Fill gaps between two bouts of one behavior that are shorter than the minimum gap of that behavior.

    Parameters
    ----------
    codes : array of int (n_frames,)
    min_frames : list of int
        Minimum duration of a gap for each code.
    no_behavior : int
        The code of frames without a behavior; only these form gaps.
    """
    runs = iv.encode_runs(codes)
    if len(runs.start) < 3:
        return codes
    values = runs.values.astype(np.int64)
    before, after, length = values[:-2], values[2:], (runs.stop - runs.start)[1:-1]
    is_gap = (values[1:-1] == no_behavior) & (before == after) & (before != UNPREDICTED)
    short = is_gap & (length < np.array([*min_frames, 0])[before])
    values[1:-1] = np.where(short, before, values[1:-1])
    return np.repeat(values, runs.stop - runs.start)


def remove_short_bouts(codes: Codes, min_frames: list[int], no_behavior: int) -> Codes:
    """Remove bouts below the minimum duration of their behavior, the shortest first.

    The first half of a removed bout gets the code before it, the second half the code after it.

    Parameters
    ----------
    codes : array of int (n_frames,)
    min_frames : list of int
        Minimum duration of a bout for each code; that of `no_behavior` is ignored.
    no_behavior : int
        The code of frames without a behavior.
    """
    minimum = np.array([0 if code == no_behavior else frames for code, frames in enumerate(min_frames)] + [0])  # the last: unpredicted
    while True:
        runs = iv.encode_runs(codes)
        values, length = runs.values.astype(np.int64), runs.stop - runs.start
        short = length < minimum[values] if len(values) else np.zeros(0, dtype=bool)
        if not short.any():
            return codes
        size = np.concatenate([[UNLIMITED], np.where(short, length, UNLIMITED), [UNLIMITED]])
        shortest = short & (size[1:-1] < size[:-2]) & (size[1:-1] <= size[2:])
        before, after = (np.append([UNPREDICTED], values[:-1]), np.append(values[1:], UNPREDICTED))
        before, after = (np.where(before == UNPREDICTED, after, before), np.where(after == UNPREDICTED, before, after))
        before, after = (np.where(side == UNPREDICTED, no_behavior, side) for side in (before, after))
        codes = codes.copy()
        for run in np.flatnonzero(shortest):
            middle = (runs.start[run] + runs.stop[run] + 1) // 2
            codes[runs.start[run] : middle], codes[middle : runs.stop[run]] = before[run], after[run]


def apply_thresholds(columns: Array, thresholds: Array, exclusive: bool) -> Array:
    """Rescale probabilities so that the largest one (exclusive) or 0.5 (overlapping) decides.

    Parameters
    ----------
    columns : array (n_frames, n_columns)
    thresholds : array (n_columns,)
    exclusive : bool
    """
    if exclusive:
        return normalize_rows(columns / thresholds)
    present, absent = columns * (1 - thresholds), (1 - columns) * thresholds
    return np.asarray(present / (present + absent))


def normalize_rows(columns: Array) -> Array:
    """Divide each row by its sum; rows of zeros are unchanged."""
    total = columns.sum(axis=1, keepdims=True)
    return np.asarray(columns / np.where(total > 0, total, 1))


def fit_exclusive_thresholds(probabilities: Array, truth: Codes, names: tuple[str, ...], scored: list[int]) -> dict[str, float]:
    """Choose thresholds of exclusive behaviors by coordinate ascent on the mean F1 of frames.

    Parameters
    ----------
    probabilities : array (n_frames, n_behaviors)
    truth : array of int (n_frames,)
        The column of each frame's reference label.
    names : tuple of str
        Of the columns.
    scored : list of int
        Columns whose F1 counts; those that never occur are ignored.

    Returns
    -------
    dict of str to float
        Empty where no scored behavior occurs.
    """
    n = len(names)
    scored = [code for code in scored if (truth == code).any()]
    if not scored:
        return {}
    logs, offsets = np.log(np.maximum(probabilities, 1e-9)), np.zeros(n)
    best = _mean_f1(logs.argmax(axis=1), truth, n, scored)
    for _ in range(MAX_PASSES):
        before = best
        for code in range(n):
            others = logs + offsets
            others[:, code] = -np.inf
            best_other, best_other_score = others.argmax(axis=1), others.max(axis=1)
            for offset in LOG_WEIGHTS:
                value = _mean_f1(np.where(logs[:, code] + offset > best_other_score, code, best_other), truth, n, scored)
                if value > best + MIN_GAIN:
                    best, offsets[code] = value, offset
        if best < before + MIN_PASS_GAIN:
            break
    weights = np.exp(-(offsets - offsets.max()))
    return {name: float(0.5 * weight / weights.max()) for name, weight in zip(names, weights, strict=True)}


def fit_threshold(probabilities: Array, truth: NDArray[np.integer]) -> float:
    """Return the threshold with the best F1 of frames for one behavior; among equals, that nearest to 0.5.

    Parameters
    ----------
    probabilities : array (n_frames,)
    truth : array of int (n_frames,)
        1 where the behavior occurs. Where it never does, the threshold is 0.5.
    """
    if not truth.any():
        return 0.5
    predicted = probabilities[:, None] >= THRESHOLDS
    hits = (predicted & (truth == 1)[:, None]).sum(axis=0)
    f1 = 2 * hits / (predicted.sum(axis=0) + truth.sum())
    best = np.flatnonzero(f1 >= f1.max() - 1e-9)
    return float(THRESHOLDS[best[np.abs(THRESHOLDS[best] - 0.5).argmin()]])


def _mean_f1(predicted: Codes, truth: Codes, n_codes: int, scored: list[int]) -> float:
    confusion = np.bincount(truth * n_codes + predicted, minlength=n_codes * n_codes).reshape(n_codes, n_codes)
    n_both = confusion.sum(axis=0) + confusion.sum(axis=1)
    return float(np.mean([2 * confusion[code, code] / n_both[code] for code in scored]))
