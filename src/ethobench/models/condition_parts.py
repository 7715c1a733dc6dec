"""The part of boosted trees that belongs to one condition, such as a laboratory: a few trees added to those shared by all.

They are trained on the residuals of the shared trees, in recordings that these were not trained on, and are strongly regularized: where a
laboratory has few labels, or labels like the others, its part changes little. A laboratory without a part has the shared trees only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.annotation import UNOBSERVED
from ethobench.core.processes import thread_count
from ethobench.decoding.pooling import Labeled
from ethobench.models.row_sampling import Features, Rows, row_weights

Margins = NDArray[np.float64]
N_FOLDS = 3
ROUNDS, LEAVES, LEARNING_RATE, L2 = 40, 7, 0.1, 20.0
MIN_POSITIVE_ROWS = 10  # of a behavior in a condition, below which it has no trees of its own
MAX_MARGIN = 30.0


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
    """

    features: Features
    targets: NDArray[np.int16]
    margins: Margins
    weights: Margins
    frames: Margins
    folds: NDArray[np.int64]

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
        return cls(np.concatenate([each.features for each in rows]), targets, np.nan_to_num(joined), weights, frames, numbers)

    def fit(self, seed: int) -> dict[int, Any]:
        """Fit the trees of each behavior that occurs often enough; return them by the code of the behavior."""
        return self._fit_codes(range(self.targets.shape[1]), np.ones(len(self.targets), dtype=bool), seed, self._dataset())

    def cross_fit(self, seed: int) -> Margins:
        """Return log odds by the shared trees and trees that were not fitted to the same recordings (n_rows, n_behaviors)."""
        margins = self.margins.copy()
        numbers = np.unique(self.folds)
        dataset = self._dataset()
        for number in numbers if len(numbers) > 1 else ():
            held_out = self.folds == number
            for code, booster in self._fit_codes(range(self.targets.shape[1]), ~held_out, seed, dataset).items():
                margins[held_out, code] += booster.predict(self.features[held_out], raw_score=True, num_threads=thread_count())
        return margins

    def labeled(self, margins: Margins) -> dict[int, Labeled]:
        """Return the observed rows of each behavior with their probabilities, to choose thresholds by."""
        result = {}
        for code in range(self.targets.shape[1]):
            observed = self.targets[:, code] != UNOBSERVED
            if observed.any():
                occurs = self.targets[:, code] == 1
                starts = int((np.diff(occurs.astype(np.int8), prepend=0) == 1).sum())
                values = to_probabilities(margins[observed, code])
                result[code] = Labeled(values, occurs[observed], self.frames[observed, code], starts)
        return result

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
