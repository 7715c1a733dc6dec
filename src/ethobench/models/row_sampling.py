"""Choose and weight training rows where a dataset has more frames than a classifier needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.annotation import UNOBSERVED

Features = NDArray[np.float32]
Indices = NDArray[np.int64]
BINNING = {
    "max_bin": 63,
    "bin_construct_sample_cnt": 5_000,  # rows on which the bins are based; all of them would take as long as the training
    "enable_bundle": False,  # features are dense
    "is_enable_sparse": False,
    "feature_pre_filter": False,  # so that one dataset serves trainings with different minimum leaf sizes
    "verbose": -1,
}
"""Parameters of `lightgbm.Dataset`."""


@dataclass(frozen=True)
class Rows:
    """The training rows of one recording.

    Attributes
    ----------
    features : array (n_rows, n_features)
    targets : array (n_rows,) or (n_rows, n_behaviors)
        Codes, or 0 and 1 for each behavior; -1 where unobserved.
    counts : array (n_codes,) or (n_behaviors, 2)
        Frames of each code, or without and with each behavior, before sampling.
    condition : str
        Such as the laboratory.
    group : str
        The recording that examples of several subjects belong to.
    """

    features: Features
    targets: NDArray[np.int16]
    counts: NDArray[np.int64]
    condition: str = ""
    group: str = ""


@dataclass(frozen=True)
class BinnedRows:
    """The rows of several recordings, binned once by LightGBM for all fits to some of them.

    Attributes
    ----------
    dataset : lightgbm.Dataset
    starts : dict of recording id to int
        Index of the first row of each recording.
    """

    dataset: Any
    starts: dict[str, int]

    @classmethod
    def from_rows(cls, rows: Mapping[str, Rows], threads: int) -> BinnedRows:
        """Bin the features of all rows."""
        import lightgbm

        features = np.concatenate([each.features for each in rows.values()])
        sizes = [len(each.features) for each in rows.values()]
        starts = dict(zip(rows, np.cumsum([0, *sizes]).tolist(), strict=False))
        dataset = lightgbm.Dataset(features, np.zeros(len(features)), params={**BINNING, "num_threads": threads})
        return cls(dataset.construct(), starts)


@dataclass(frozen=True)
class Examples:
    """Observed rows of several recordings for one classifier; features are concatenated only when needed.

    Attributes
    ----------
    rows : mapping of recording id to Rows
    index : array of int (n_examples,)
        Sorted indices into the concatenated rows.
    y : array of int (n_examples,)
        Classes.
    counts : array of int (n_classes,)
        Frames of each class before sampling.
    binned : BinnedRows, optional
        The same rows, among others.
    """

    rows: Mapping[str, Rows]
    index: Indices
    y: Indices
    counts: NDArray[np.int64]
    binned: BinnedRows | None = None

    def dataset(self, weights: NDArray[np.float64], threads: int) -> Any:
        """Return a LightGBM dataset of these examples; of binned rows, a subset."""
        import lightgbm

        if self.binned is None:
            return lightgbm.Dataset(self.features(), self.y, weight=weights, params={**BINNING, "num_threads": threads})
        sizes = [len(rows.targets) for rows in self.rows.values()]
        shifts = [self.binned.starts[name] - first for name, first in zip(self.rows, np.cumsum([0, *sizes]).tolist(), strict=False)]
        positions = self.index + np.repeat(shifts, sizes)[self.index]
        subset = self.binned.dataset.subset(positions.tolist()).construct()
        return subset.set_label(self.y).set_weight(weights)

    def features(self) -> Features:
        """Return the features (n_examples, n_features)."""
        ends = np.cumsum([len(rows.targets) for rows in self.rows.values()])
        blocks, first = [], 0
        for rows, end in zip(self.rows.values(), ends, strict=True):
            chosen = self.index[slice(*np.searchsorted(self.index, [first, end]))] - first
            blocks.append(rows.features if len(chosen) == len(rows.features) else rows.features[chosen])
            first = int(end)
        return np.concatenate(blocks)

    def subsample(self, max_rows: float) -> Examples:
        """Return about `max_rows` examples, evenly spaced within each class, at least one of each class."""
        if max_rows >= len(self.y):
            return self
        chosen = []
        for code in np.unique(self.y):
            members = np.flatnonzero(self.y == code)
            count = max(1, round(len(members) * max_rows / len(self.y)))
            chosen.append(members[(np.arange(count) * (len(members) / count)).astype(np.int64)])
        index = np.sort(np.concatenate(chosen))
        return replace(self, index=self.index[index], y=self.y[index])


def choose_rows(targets: Mapping[str, NDArray[np.int16]], max_rows: int) -> dict[str, Indices]:
    """Choose observed frames for training, evenly spaced; of common behaviors fewer, so that rare ones are kept.

    Parameters
    ----------
    targets : mapping of recording id to array (n_frames,) or (n_frames, n_behaviors)
        Codes, or 0 and 1 for each behavior; -1 where unobserved.
    max_rows : int
        Maximum number of frames in total.

    Returns
    -------
    dict of recording id to array of int
        Sorted frames.
    """
    classes = {name: _classes(target) for name, target in targets.items()}
    joined = np.concatenate(list(classes.values()))
    chosen = np.zeros(len(joined), dtype=bool)
    for code, share in enumerate(_shares(np.bincount(joined[joined >= 0]), max_rows)):
        members = np.flatnonzero(joined == code)
        count = round(share * len(members))
        chosen[members[(np.arange(count) * (len(members) / max(count, 1))).astype(np.int64)]] = True
    frames, first = {}, 0
    for name, codes in classes.items():
        frames[name] = np.flatnonzero(chosen[first : first + len(codes)])
        first += len(codes)
    return frames


def row_weights(target: NDArray[np.integer], counts: NDArray[np.integer], class_weight_exponent: float) -> NDArray[np.float64]:
    """Return the weight of each row (n_rows,), with mean 1.

    The total weight of a class is proportional to ``counts ** (1 - class_weight_exponent)``.

    Parameters
    ----------
    target : array of int (n_rows,)
        Codes of the chosen rows.
    counts : array of int (n_codes,)
        Frames of each code before sampling.
    class_weight_exponent : float
        0: classes are weighted by their frequency; 1: all classes have the same weight.
    """
    rows = np.bincount(target, minlength=len(counts))
    totals = np.where(counts > 0, counts, 1.0) ** (1 - class_weight_exponent)
    weights = np.where(rows > 0, totals / np.maximum(rows, 1), 0.0)[target]
    return np.asarray(weights * (len(target) / weights.sum()))


def _classes(target: NDArray[np.int16]) -> Indices:
    """Return a class for each frame, -1 where unobserved; of overlapping behaviors, whether any occurs."""
    if target.ndim == 1:
        return target.astype(np.int64)
    observed = (target != UNOBSERVED).any(axis=1)
    return np.where(observed, (target == 1).any(axis=1).astype(np.int64), UNOBSERVED)


def _shares(counts: NDArray[np.integer], max_rows: int) -> NDArray[np.float64]:
    """Return the share of each class that is kept: all of the rare ones, the same number of the common ones."""
    if counts.sum() <= max_rows:
        return np.ones(len(counts))
    level, remaining = 0.0, float(max_rows)
    for rank, count in enumerate(np.sort(counts)):
        level = remaining / (len(counts) - rank)
        if count > level:
            break
        remaining -= float(count)
    return np.asarray(np.minimum(1.0, level / np.maximum(counts, 1)))
