"""Thresholds by condition, such as the laboratory, with partial pooling.

A laboratory has its own criteria, but often few bouts of a behavior. Its threshold is therefore a compromise between the one that fits its
own recordings best and the one shared by all, weighted by its number of bouts. An unknown laboratory has the shared one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core.targets import overlapping_targets
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.postprocess import THRESHOLDS

PRIOR_BOUTS = 10.0
"""Bouts that the shared threshold counts as."""

DEFAULT = 0.5
"""Threshold of a behavior that never occurs."""


class Labeled(NamedTuple):
    """Out-of-fold probabilities of one behavior in one recording.

    Attributes
    ----------
    probabilities : array (n_rows,)
    occurs : array of bool (n_rows,)
    weights : array (n_rows,)
        Frames that each row stands for.
    bouts : int
    """

    probabilities: NDArray[np.floating]
    occurs: NDArray[np.bool_]
    weights: NDArray[np.floating]
    bouts: int


def fit_weighted_threshold(labeled: Labeled) -> float:
    """Return the threshold with the best F1 of frames; among equals, that nearest to 0.5.

    Examples
    --------
    >>> values = Labeled(np.array([0.1, 0.2, 0.3, 0.9]), np.array([False, False, True, True]), np.ones(4), 2)
    >>> 0.2 < fit_weighted_threshold(values) <= 0.3
    True
    """
    if not labeled.occurs.any():
        return DEFAULT
    bins = np.searchsorted(THRESHOLDS, labeled.probabilities, side="right")  # number of thresholds that a row reaches
    size = len(THRESHOLDS) + 1
    total = np.bincount(bins, labeled.weights, size)[::-1].cumsum()[::-1][1:]
    hits = np.bincount(bins, labeled.weights * labeled.occurs, size)[::-1].cumsum()[::-1][1:]
    f1 = 2 * hits / np.maximum(total + labeled.weights[labeled.occurs].sum(), 1e-12)
    best = np.flatnonzero(f1 >= f1.max() - 1e-9)
    return float(THRESHOLDS[best[np.abs(THRESHOLDS[best] - 0.5).argmin()]])


def pool_threshold(own_value: float, shared: float, bouts: int, prior_bouts: float = PRIOR_BOUTS) -> float:
    """Return the mean of two thresholds on the log-odds scale, weighted by the number of bouts.

    Examples
    --------
    >>> round(pool_threshold(0.2, 0.5, bouts=0), 6), pool_threshold(0.2, 0.5, bouts=10) < 0.5
    (0.5, True)
    """
    weighted = (bouts * _log_odds(own_value) + prior_bouts * _log_odds(shared)) / (bouts + prior_bouts)
    return float(1 / (1 + np.exp(-weighted)))


def pooled_thresholds(
    labeled: Mapping[str, Mapping[str, Labeled]], decoder: Decoder | None = None
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Choose the shared threshold of each behavior, and that of each condition and behavior.

    Parameters
    ----------
    labeled : mapping of behavior to mapping of condition to Labeled
    decoder : Decoder, optional
        Whose thresholds are the shared ones. Those of conditions differ from them as much as the best ones of single frames do.

    Returns
    -------
    shared : dict of behavior to float
    by_condition : dict of condition to dict of behavior to float
    """
    shared: dict[str, float] = {}
    by_condition: dict[str, dict[str, float]] = {}
    for behavior, of_condition in labeled.items():
        best = fit_weighted_threshold(join_labeled(list(of_condition.values())))
        shared[behavior] = best if decoder is None else decoder.thresholds.get(behavior, DEFAULT)
        for condition, values in of_condition.items():
            own_value = fit_weighted_threshold(values) if values.occurs.any() else best
            moved = 1 / (1 + np.exp(-(_log_odds(own_value) - _log_odds(best) + _log_odds(shared[behavior]))))
            by_condition.setdefault(condition, {})[behavior] = pool_threshold(float(moved), shared[behavior], values.bouts)
    return shared, by_condition


def label_predictions(
    predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], conditions: Mapping[str, str], decoder: Decoder | None = None
) -> dict[str, dict[str, Labeled]]:
    """Return the observed frames of out-of-fold predictions of overlapping behaviors, by behavior and condition.

    Parameters
    ----------
    predictions : mapping of recording to Prediction
    truths : mapping of recording to Annotation
    conditions : mapping of recording to str
    decoder : Decoder, optional
        Whose priors and smoothing are applied first.
    """
    parts: dict[str, dict[str, list[Labeled]]] = {}
    for name, prediction in predictions.items():
        columns, behaviors = (decoder or Decoder()).prepare(prediction)
        targets = overlapping_targets(truths[name])[: len(columns)]
        for code, behavior in enumerate(behaviors[: targets.shape[1]]):
            usable = (targets[:, code] >= 0) & ~np.isnan(columns[: len(targets), code])
            if code == prediction.ethogram.background or not usable.any():
                continue
            occurs = targets[:, code] == 1
            bouts = int((np.diff(occurs.astype(np.int8), prepend=0) == 1).sum())
            values = Labeled(columns[: len(targets), code][usable], occurs[usable], np.ones(int(usable.sum())), bouts)
            parts.setdefault(behavior, {}).setdefault(conditions[name], []).append(values)
    return {behavior: {key: join_labeled(each) for key, each in of.items()} for behavior, of in parts.items()}


def join_labeled(parts: list[Labeled]) -> Labeled:
    """Return the rows of several recordings as one."""
    return Labeled(
        np.concatenate([component.probabilities for component in parts]),
        np.concatenate([component.occurs for component in parts]),
        np.concatenate([component.weights for component in parts]),
        sum(component.bouts for component in parts),
    )


def _log_odds(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))


def checked_thresholds(saved: Any) -> dict[str, dict[str, float]]:
    """Return thresholds by condition and behavior from JSON.

    Raises
    ------
    ValueError
        If one does not lie between 0 and 1.
    """
    thresholds = {str(key): {str(behavior): float(value) for behavior, value in each.items()} for key, each in saved.items()}
    if not all(0 < value < 1 for each in thresholds.values() for value in each.values()):
        raise ValueError("a threshold does not lie between 0 and 1")
    return thresholds
