"""Mixed models of recordings with random intercepts of individuals, by statsmodels.

A mixed model uses all recordings, also of individuals that are not in all groups, and several recordings of an individual in one group.
Tests are of Student's t distribution; its degrees of freedom are the number of individuals less the number of groups and covariates, since
the normal distribution of statsmodels is too narrow for few individuals.

References
----------
Laird and Ware (1982), Random-effects models for longitudinal data, Biometrics 38, 963-974. Seabold and Perktold (2010), statsmodels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ethobench.analysis.comparison import rounded
from ethobench.analysis.group_values import GroupValues, ValueOptions, joined_units, recording_table
from ethobench.analysis.prediction_powered import Estimate
from ethobench.analysis.units import Annotated, as_recordings
from ethobench.core.errors import EthobenchError


def add_mixed_models(
    rows: Sequence[dict[str, Any]], data: Annotated, options: ValueOptions, values: GroupValues, annotator: str | None
) -> None:
    """Add the entry ``mixed_model`` to each pair of groups: difference, its interval and p value.

    Raises
    ------
    EthobenchError
        If statsmodels is not installed.
    """
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM
    except ImportError:
        raise EthobenchError('mixed models need statsmodels: pip install "ethobench[stats]"') from None
    recordings, _ = joined_units(as_recordings(data))
    table = recording_table(recordings, options, annotator)
    for row in rows:
        chosen = table[table["behavior"] == row["behavior"]]
        for name, value in row.get("by", {}).items():
            chosen = chosen[chosen[name].astype(str) == str(value)]
        chosen = chosen[chosen[row["measure"]].notna()]
        for pair in row["pairs"]:
            pair["mixed_model"] = _fit(MixedLM, chosen, row["measure"], pair["groups"], values)


def _fit(model_class: Any, table: pd.DataFrame, measure: str, groups: Sequence[str], values: GroupValues) -> dict[str, Any]:
    """Fit the difference of two groups; without a fit, the entries are None and a note says why."""
    rows = table[table["group"].isin(groups)]
    n_individuals = rows["individual"].nunique()
    empty: dict[str, Any] = {"difference": None, "low": None, "high": None, "p": None, "n_recordings": len(rows)}
    if len(rows) <= n_individuals:
        return {**empty, "note": "each individual has one recording, so there is nothing to model within individuals"}
    indicator = (rows["group"] == groups[1]).to_numpy(dtype=float)
    covariates = values.covariates.reindex(rows["individual"]).to_numpy(dtype=float) if len(values.covariates.columns) else None
    design = np.column_stack([np.ones(len(rows)), indicator, *([] if covariates is None else [covariates])])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a random variance of 0 is a warning of statsmodels, and a result here
            fit = model_class(rows[measure].to_numpy(dtype=float), design, groups=rows["individual"].to_numpy()).fit(reml=True)
        variance = float(fit.cov_params()[1, 1])
    except (np.linalg.LinAlgError, ValueError) as error:
        return {**empty, "note": f"the model could not be fitted: {error}"}
    if not np.isfinite(variance) or variance <= 0:
        return {**empty, "note": "the model could not be fitted: the variance is not defined"}
    within = rows.groupby("individual")["group"].nunique().gt(1).any()
    df = max(n_individuals - (1 if within else 2) - (0 if covariates is None else covariates.shape[1]), 1)
    estimate = Estimate(float(fit.fe_params[1]), variance, float(df))
    low, high = estimate.interval()
    return {
        "difference": rounded(estimate.value),
        "low": rounded(low),
        "high": rounded(high),
        "p": rounded(estimate.p_value()),
        "n_recordings": len(rows),
    }
