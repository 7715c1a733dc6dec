"""The part of boosted trees that belongs to one condition, such as a laboratory: a few trees added to those shared by all.

They are trained on the residuals of the shared trees, in recordings that these were not trained on, and are strongly regularized: where a
laboratory has few labels, or labels like the others, its part changes little. A laboratory without a part has the shared trees only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core.annotation import UNOBSERVED
from ethobench.core.processes import thread_count
from ethobench.decoding.pooling import Labeled, fit_weighted_threshold, join_labeled, pool_threshold
from ethobench.models.row_sampling import Features, Rows, row_weights

Margins = NDArray[np.float64]
N_FOLDS = 3
ROUNDS, LEAVES, LEARNING_RATE, L2 = 40, 7, 0.1, 20.0
MIN_POSITIVE_ROWS = 10  # of a behavior in a condition, below which it has no trees of its own
MAX_MARGIN = 30.0
N_BLOCKS = 3  # of a single recording, for cross-validation
MAX_LOSS = 0.02  # in F1 on held-out rows, above which a new condition keeps the shared trees and thresholds


class AdaptedPart(NamedTuple):
    """Trees and thresholds of a new condition by the code of the behavior; behaviors without either keep the shared ones."""

    boosters: dict[int, Any]
    thresholds: dict[int, float]


class AdaptedThreshold(NamedTuple):
    """A threshold for new recordings, and the F1 of frames on held-out ones: with thresholds chosen on the others, and with the shared."""

    threshold: float
    f1: float
    shared_f1: float


@dataclass
class ConditionRows:
    """Training rows of one condition.

    Attributes
    ----------
    features : array (n_rows, n_features)
    targets : array of int16 (n_rows, n_behaviors)
        -1 where unobserved.
    margins : array (n_rows, n_behaviors)
        Log odds by the shared trees, which were not trained on these recordings.
    weights : array (n_rows, n_behaviors)
        For training; 0 where unobserved.
    frames : array (n_rows, n_behaviors)
        Frames that each row stands for.
    folds : array of int (n_rows,)
        Recordings of one fold are never split.
    blocks : array of int (n_rows,)
        Third of the recording's time.
    """

    features: Features
    targets: NDArray[np.int16]
    margins: Margins
    weights: Margins
    frames: Margins
    folds: NDArray[np.int64]
    blocks: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Sequence[Rows], margins: Sequence[Margins], folds: Sequence[int], exponent: float) -> ConditionRows:
        """Join the rows of several recordings. Behaviors that the shared trees cannot predict count as unobserved."""
        joined = np.concatenate(margins)
        targets = np.where(np.isnan(joined), UNOBSERVED, np.concatenate([each.targets for each in rows])).astype(np.int16)
        counts = np.sum([each.counts for each in rows], axis=0)
        weights, frames = np.zeros(targets.shape), np.zeros(targets.shape)
        for code in range(targets.shape[1]):
            observed = targets[:, code] != UNOBSERVED
            if observed.any():
                labels = targets[observed, code].astype(np.int64)
                weights[observed, code] = row_weights(labels, counts[code], exponent)
                frames[observed, code] = row_weights(labels, counts[code], 0.0)
        numbers = np.repeat(folds, [len(each.targets) for each in rows])
        blocks = np.concatenate([np.arange(len(each.targets)) * N_BLOCKS // max(len(each.targets), 1) for each in rows])
        return cls(np.concatenate([each.features for each in rows]), targets, np.nan_to_num(joined), weights, frames, numbers, blocks)

    def fit(self, seed: int) -> dict[int, Any]:
        """Fit the trees of each behavior that occurs often enough; return them by the code of the behavior."""
        return self._fit_codes(range(self.targets.shape[1]), np.ones(len(self.targets), dtype=bool), seed, self._dataset())

    def cross_fit(self, seed: int) -> Margins:
        """Return log odds by the shared trees and trees that were not fitted to the same recordings (n_rows, n_behaviors)."""
        margins = self.margins.copy()
        folds = self.held_out_folds
        dataset = self._dataset()
        for number in np.unique(folds):
            held_out = folds == number
            for code, booster in self._fit_codes(range(self.targets.shape[1]), ~held_out, seed, dataset).items():
                margins[held_out, code] += booster.predict(self.features[held_out], raw_score=True, num_threads=thread_count())
        return margins

    @property
    def held_out_folds(self) -> NDArray[np.int64]:
        """Folds for cross-validation (n_rows,): those of the recordings, or thirds of the time if there is only one."""
        return self.folds if len(np.unique(self.folds)) > 1 else self.blocks

    def adapt(self, seed: int, shared: Mapping[int, float]) -> AdaptedPart:
        """Fit the trees and thresholds of a new condition.

        Each behavior gets its own threshold, or trees and a threshold, whichever is better on rows that they were not fitted to: those of
        other recordings, or of other thirds of a single one. It keeps the shared ones where these are better by more than `MAX_LOSS`.

        Parameters
        ----------
        seed : int
        shared : mapping of int to float
            Shared threshold of each behavior.
        """
        boosters = self.fit(seed)
        cross_fitted = self.cross_fit(seed) if boosters else self.margins
        result = AdaptedPart({}, {})
        for code, threshold in shared.items():
            options = [adapt_threshold(self._by_fold(code, self.margins), threshold)]
            if code in boosters:
                options.append(adapt_threshold(self._by_fold(code, cross_fitted), threshold))
            adapted = [each for each in options if each is not None]
            if not adapted or adapted[0].shared_f1 > max(each.f1 for each in adapted) + MAX_LOSS:
                continue
            uses_trees = len(adapted) > 1 and adapted[1].f1 > adapted[0].f1
            result.thresholds[code] = adapted[uses_trees].threshold
            if uses_trees:
                result.boosters[code] = boosters[code]
        return result

    def labeled(self, margins: Margins) -> dict[int, Labeled]:
        """Return the observed rows of each behavior with their probabilities, to choose thresholds by."""
        every = np.ones(len(self.targets), dtype=bool)
        values = {code: self._labeled(code, margins, every) for code in range(self.targets.shape[1])}
        return {code: each for code, each in values.items() if len(each.occurs)}

    def _labeled(self, code: int, margins: Margins, chosen: NDArray[np.bool_]) -> Labeled:
        observed = chosen & (self.targets[:, code] != UNOBSERVED)
        occurs = self.targets[chosen, code] == 1
        starts = int((np.diff(occurs.astype(np.int8), prepend=0) == 1).sum())
        values = to_probabilities(margins[observed, code])
        return Labeled(values, self.targets[observed, code] == 1, self.frames[observed, code], starts)

    def _by_fold(self, code: int, margins: Margins) -> list[Labeled]:
        """Return the observed rows of a behavior by recording; those of a single recording by thirds of its time."""
        folds = self.held_out_folds
        parts = [self._labeled(code, margins, folds == number) for number in np.unique(folds)]
        return [each for each in parts if len(each.occurs)]

    def _dataset(self) -> Any:
        import lightgbm

        settings = {"max_bin": 63, "feature_pre_filter": False, "verbose": -1, "num_threads": thread_count()}
        return lightgbm.Dataset(self.features, np.zeros(len(self.features)), params=settings, free_raw_data=False).construct()

    def _fit_codes(self, codes: Sequence[int] | range, chosen: NDArray[np.bool_], seed: int, dataset: Any) -> dict[int, Any]:
        import lightgbm

        settings = {
            "objective": "binary",
            "num_leaves": LEAVES,
            "learning_rate": LEARNING_RATE,
            "lambda_l2": L2,
            "feature_fraction": 0.1,
            "extra_trees": True,
            "max_bin": 63,
            "feature_pre_filter": False,
            "boost_from_average": False,
            "seed": seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": thread_count(),
            "verbose": -1,
        }
        boosters = {}
        for code in codes:
            used = chosen & (self.targets[:, code] != UNOBSERVED)
            occurs = self.targets[:, code] == 1
            if min((occurs & used).sum(), (~occurs & used).sum()) < MIN_POSITIVE_ROWS:
                continue
            dataset.set_label(occurs.astype(np.float32))
            dataset.set_weight(np.where(used, self.weights[:, code], 0.0))
            dataset.set_init_score(np.ascontiguousarray(self.margins[:, code]))
            booster = lightgbm.train(settings, dataset, ROUNDS)
            boosters[code] = lightgbm.Booster(model_str=booster.model_to_string())
        return boosters


def adapt_threshold(parts: Sequence[Labeled], shared: float) -> AdaptedThreshold | None:
    """Choose the threshold of a behavior for new recordings, and measure by leaving one out whether such a threshold helps.

    Parameters
    ----------
    parts : sequence of Labeled
        One for each recording, or for each part of a single one.
    shared : float
        Threshold so far.

    Returns
    -------
    AdaptedThreshold or None
        None if the behavior does not occur. If it occurs in one part only, its frames are both fitted and scored.

    Examples
    --------
    >>> example = Labeled(np.array([0.1, 0.2, 0.4, 0.45]), np.array([False, False, True, True]), np.ones(4), 20)
    >>> adapted = adapt_threshold([example] * 3, 0.5)
    >>> adapted.threshold < 0.5, adapted.f1 > adapted.shared_f1
    (True, True)
    """
    n_parts = sum(bool(each.occurs.any()) for each in parts)
    if not n_parts:
        return None
    counts, shared_counts = np.zeros(3), np.zeros(3)
    for number, held_out in enumerate(parts):
        others = join_labeled([each for k, each in enumerate(parts) if k != number or n_parts == 1])
        threshold = pool_threshold(fit_weighted_threshold(others), shared, others.bouts) if others.occurs.any() else shared
        counts += _threshold_counts(held_out, threshold)
        shared_counts += _threshold_counts(held_out, shared)
    every = join_labeled(list(parts))
    threshold = pool_threshold(fit_weighted_threshold(every), shared, every.bouts)
    return AdaptedThreshold(threshold, _f1(counts), _f1(shared_counts))


def labeled_by_recording(parts: Mapping[str, Sequence[Labeled]]) -> list[Labeled]:
    """Join the examples of each recording; those of a single recording are joined by thirds of its time."""
    if len(parts) > 1:
        return [join_labeled(list(each)) for each in parts.values()]
    examples = [each for of_recording in parts.values() for each in of_recording]
    return [join_labeled([_third(each, number) for each in examples]) for number in range(N_BLOCKS)]


def _third(values: Labeled, number: int) -> Labeled:
    size = len(values.occurs)
    chosen = slice(number * size // N_BLOCKS, (number + 1) * size // N_BLOCKS)
    occurs = values.occurs[chosen]
    bouts = int((np.diff(occurs.astype(np.int8), prepend=0) == 1).sum())
    return Labeled(values.probabilities[chosen], occurs, values.weights[chosen], bouts)


def _threshold_counts(examples: Labeled, threshold: float) -> NDArray[np.float64]:
    """Return true positive, predicted and true frames."""
    predicted = examples.probabilities >= threshold
    return np.array([examples.weights[each].sum() for each in (predicted & examples.occurs, predicted, examples.occurs)])


def _f1(counts: NDArray[np.float64]) -> float:
    return float(2 * counts[0] / max(counts[1] + counts[2], 1e-12))


def condition_folds(rows: Mapping[str, Rows], n_folds: int = N_FOLDS) -> dict[str, int]:
    """Assign rows to folds: examples of one recording to the same fold, the recordings of a condition to different ones."""
    numbers: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    for each in rows.values():
        if (each.condition, each.group) not in numbers:
            first = counts.setdefault(each.condition, len(counts))  # so that conditions with one recording are in different folds
            numbers[each.condition, each.group] = first % n_folds
            counts[each.condition] += 1
    return {name: numbers[each.condition, each.group] for name, each in rows.items()}


def to_probabilities(margins: Margins) -> Margins:
    """Return the probabilities of log odds."""
    return np.asarray(1 / (1 + np.exp(-np.clip(margins, -MAX_MARGIN, MAX_MARGIN))))
