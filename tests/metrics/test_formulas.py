"""Formulas of frame counts, recomputed for all small tables: zeros, ones and everything between."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from ethobench.metrics import all_metrics

TABLES = [*product(range(3), repeat=4)]  # correct, falsely predicted, missed, neither


def share(numerator: float, denominator: float, otherwise: float = np.nan) -> float:
    return numerator / denominator if denominator else otherwise


def kappa(tp: int, fp: int, fn: int, tn: int) -> float:
    total = tp + fp + fn + tn
    if not total:
        return np.nan
    chance = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / total**2
    return share((tp + tn) / total - chance, 1 - chance)


def mcc(tp: int, fp: int, fn: int, tn: int) -> float:
    product_of_margins = (tp + fp) * (tp + fn) * (fn + tn) * (fp + tn)
    return share(tp * tn - fp * fn, sqrt(product_of_margins), 0.0) if tp + fp + fn + tn else np.nan


FORMULAS = {
    "frames.precision": lambda tp, fp, fn, tn: share(tp, tp + fp),
    "frames.recall": lambda tp, fp, fn, tn: share(tp, tp + fn),
    "frames.f1": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fp + fn),
    "frames.iou": lambda tp, fp, fn, tn: share(tp, tp + fp + fn),
    "frames.kappa": kappa,
    "frames.mcc": mcc,
    "calms21.precision": lambda tp, fp, fn, tn: share(tp, tp + fp, 0.0 if fn else np.nan),
    "calms21.recall": lambda tp, fp, fn, tn: share(tp, tp + fn, 0.0 if fp else np.nan),
    "bebe.precision": lambda tp, fp, fn, tn: share(tp, tp + fp, 1.0),
    "bebe.recall": lambda tp, fp, fn, tn: share(tp, tp + fn, 1.0),
    "bebe.f1": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fp + fn, 1.0),
    "bebe.f1_present": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fp + fn) if tp + fn else np.nan,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values_of_all_small_tables(name):
    values = all_metrics()[name].value(np.array(TABLES, dtype=float))
    expected = [FORMULAS[name](*table) for table in TABLES]
    np.testing.assert_allclose(values, expected, atol=1e-12)
