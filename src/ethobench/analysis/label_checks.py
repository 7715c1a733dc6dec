"""Checks of prediction-powered inference: labeled individuals are a random sample, and the model was not trained on them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from ethobench.analysis.group_values import GroupValues
from ethobench.analysis.permutation import correct_p
from ethobench.analysis.prediction_powered import IndependentGroups

LEVEL = 0.01
"""Level of the tests whether labeled individuals differ from the others."""


def label_warnings(values: GroupValues, trained_on: Collection[str]) -> list[str]:
    """Return warnings about assumptions of prediction-powered inference that the data visibly contradict."""
    warnings = []
    labeled = values.metadata[values.metadata["is_labeled"]]
    in_sample = [name for name in labeled["recording"] if name in set(trained_on)]
    if in_sample:
        warnings.append(
            f"the model was trained on {len(in_sample)} of the {len(labeled)} recordings with human labels, such as {in_sample[0]!r}. "
            "It errs less on them than on others, so its errors are corrected too little; use out-of-fold predictions, or recordings "
            "it was not trained on"
        )
    differing = _differing_behaviors(values)
    if differing:
        warnings.append(
            f"individuals with human labels are not a random sample: according to the model they differ from the others in "
            f"{', '.join(differing)}. Label individuals that are chosen at random within each group"
        )
    return warnings + [
        f"individuals with human labels are not a random sample: their {column!r} differs from that of the others"
        for column in _differing_columns(values.metadata)
    ]


def _differing_behaviors(values: GroupValues) -> list[str]:
    """Return behaviors whose model values differ between labeled and other individuals of the same groups."""
    names, p_values = [], []
    for cell in values.cells:
        if cell.model is None or cell.measure != values.cells[0].measure:
            continue
        model = np.where(cell.is_member, cell.model, np.nan)
        defined = ~np.isnan(model).all(axis=1)
        model, is_labeled = model[defined], values.is_labeled(cell)[defined].any(axis=1)
        if min(is_labeled.sum(), (~is_labeled).sum()) < 2:
            continue
        codes = cell.is_member[defined].argmax(axis=1)
        indicators = np.eye(len(values.groups))[codes][:, 1:] if not cell.is_member.all() else None
        estimate = IndependentGroups(is_labeled.astype(int), np.nanmean(model, axis=1), indicators).estimate([-1, 1])
        names.append(cell.behavior if not cell.stratum else f"{cell.behavior} ({', '.join(map(str, cell.stratum.values()))})")
        p_values.append(estimate.p_value() if estimate.has_spread else 1.0)
    return [name for name, p in zip(names, correct_p(p_values), strict=True) if p < LEVEL]


def _differing_columns(metadata: pd.DataFrame) -> list[str]:
    """Return columns of the study, with two to ten values, whose values differ between labeled and other individuals."""
    from scipy.stats import chi2_contingency

    def only_value(column: pd.Series[Any]) -> Any:
        return column.iloc[0] if len({*column}) == 1 else None

    single = metadata.groupby("individual").agg(only_value)
    is_labeled = metadata.groupby("individual")["is_labeled"].any()
    differing = []
    for name in single.columns:
        if name in ("recording", "is_labeled") or single[name].isna().any() or not 2 <= single[name].nunique() <= 10:
            continue
        counts = pd.crosstab(single[name], is_labeled.reindex(single.index))
        if counts.shape[1] == 2 and chi2_contingency(counts.to_numpy()).pvalue < LEVEL:
            differing.append(str(name))
    return differing
