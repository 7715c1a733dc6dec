"""Comparison of groups of individuals: means, differences, ratios and effect sizes with intervals, and permutation tests.

Conventions
-----------
The individual is the unit of analysis: recordings of one animal are not independent, so they are pooled first (`group_values`). The first
group is the reference; differences are "other - reference", ratios "other / reference". If individuals recur in several groups, values
are compared within individuals. Intervals are t intervals with Satterthwaite's degrees of freedom, those of ratios by
Fieller's theorem; both are cut at the bounds of the measure. The effect size is Hedges' g. p values are of permutation tests by
individual, and are corrected over behaviors (and strata and pairs of groups) within each measure. With model labels,
estimates and p values are prediction-powered (`prediction_powered`).

References
----------
Hedges and Olkin (1985), Statistical Methods for Meta-Analysis, Academic Press: g and its variance. Hurlbert (1984), Pseudoreplication and
the design of ecological field experiments, Ecological Monographs 54, 187-211.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.analysis.comparison import Comparison, rounded
from ethobench.analysis.group_design import GroupDesign, Sample
from ethobench.analysis.group_values import DEFAULT_MEASURES, Cell, GroupValues, Labels, ValueOptions, collect_values, collect_with_model
from ethobench.analysis.label_checks import label_warnings
from ethobench.analysis.permutation import CORRECTIONS, PermutationTest, compare_adjusted, compare_independent, compare_repeated, correct_p
from ethobench.analysis.prediction_powered import Estimate, labels_to_halve, ratio_interval
from ethobench.analysis.time_bins import TimeBins
from ethobench.analysis.units import Annotated
from ethobench.analysis.zones import ZoneOptions
from ethobench.core.errors import NotFoundError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names
from ethobench.datasets.zones import Zone

Array = NDArray[np.float64]
SHARES = ("share", "immobile_share")


def compare_groups(
    data: Annotated,
    groups: str,
    *,
    measures: Sequence[str] | str = DEFAULT_MEASURES,
    behaviors: Sequence[str] | str | None = None,
    by: Sequence[str] | str | None = None,
    reference: str | None = None,
    pair: str | None = None,
    covariates: Sequence[str] | str | None = None,
    correct: str = "holm",
    annotator: str | None = None,
    labels: Labels | None = None,
    model_labels: Labels | None = None,
    trained_on: Collection[str] = (),
    bin: str | float | TimeBins | None = None,
    zones: bool | str | Path | Sequence[Zone] | None = None,
    zone_options: ZoneOptions | None = None,
    mixed: bool = False,
    seed: int = 0,
) -> Comparison:
    """Compare behavior between groups of individuals, from human labels, or from few human and many model labels.

    Parameters
    ----------
    data : Dataset, or iterable of recordings
        With the individual of each recording, and its group as metadata (a column of ``recordings.csv``).
    groups : str
        Column that names the group, such as ``"treatment"``. ``"bin"`` and ``"zone"`` compare time bins and zones within recordings.
    measures : str or sequence of str
        Of ``share``, ``total_s``, ``n_bouts``, ``rate_per_min``, ``rate_per_hour``, ``mean_duration_s``, ``median_duration_s``,
        ``latency_s``, ``inter_bout_s``; with poses also ``distance``, ``mean_speed``, ``immobile_share``, ``nearest_animal``.
    behaviors : str or sequence of str, optional
        Default: all but the background.
    by : str or sequence of str, optional
        Columns of strata: the groups are compared within each value, such as each sex or time bin.
    reference : str, optional
        The group that others are compared with. Default: that of the first recording.
    pair : str, optional
        Column that names matched individuals, such as ``"litter"``, which are compared within it. Individuals that
        recur in several groups are always compared within themselves.
    covariates : str or sequence of str, optional
        Columns to adjust for: numbers, or names such as the sex.
    correct : {"holm", "fdr", "none"}
        Correction of p values over the behaviors of a measure.
    annotator : str, optional
        Which annotator of `data`, if there are several.
    labels, model_labels : str, mapping of str to Annotation, Dataset or recordings, optional
        Human labels of some recordings, and model labels of all: names of annotators of `data`, or annotations by recording. With
        `model_labels`, estimates are prediction-powered: few human labels correct the bias of many model labels.
    trained_on : collection of str
        Recordings whose human labels the model was trained on, without out-of-fold predictions; a warning states it.
    bin, zones, zone_options
        See `budgets`.
    mixed : bool
        Also fit mixed models with statsmodels: recordings as observations, individuals as random intercepts.
    seed : int
        Random seed of permutations, where there are too many to compare all.

    Returns
    -------
    Comparison
        A dict with ``groups``, ``rows`` (one for each measure, stratum and behavior), ``design``, ``unit``, ``notes``, ``warnings`` and
        ``methods`` (text for a paper). `Comparison.table` returns it as a table.

    Raises
    ------
    EthobenchError
        If there are not at least two groups of two individuals each, or individuals recur in some groups only.

    See Also
    --------
    budgets : the values of each individual.
    plot.group_comparison : a figure of the result.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/tag", individuals=8, seconds=60)
    >>> recordings = [r.copy(metadata={"sex": "fm"[k % 2]}) for k, r in enumerate(data)]
    >>> result = eb.compare_groups(recordings, "sex", measures="share")
    >>> result["groups"], result["design"], result["rows"][0]["groups"]["f"]["n"]
    (['f', 'm'], 'independent', 4)
    """
    options = ValueOptions(
        groups, _names(measures), _names(behaviors), _names(by), _names(covariates), pair or "", bin, zones, zone_options
    )
    if correct not in CORRECTIONS:
        raise ParameterError(f"`correct` must be one of {', '.join(CORRECTIONS)}, got {correct!r}")
    if model_labels is None:
        if labels is not None and not isinstance(labels, str):
            raise ParameterError(Message(Option("labels"), " needs ", Option("model_labels"), "; annotations alone are the data"))
        values = collect_values(data, options, annotator=labels if isinstance(labels, str) else annotator)
    else:
        values = collect_with_model(data, options, labels if labels is not None else annotator, model_labels)
    values = _with_reference(values, reference)
    design = GroupDesign.detect(values, options, model_labels is not None)
    rows = [_compare(cell, values, design, seed) for cell in values.cells]
    _correct(rows, correct)
    if mixed:
        from ethobench.analysis.mixed_models import add_mixed_models

        if model_labels is not None:
            raise ParameterError(Message(Option("mixed", True), " cannot be combined with ", Option("model_labels")))
        add_mixed_models(rows, data, options, values, annotator)
    warnings = label_warnings(values, trained_on) if model_labels is not None else []
    return Comparison(
        column=groups,
        groups=values.groups,
        unit=options.pair or "individual",
        design=design.name,
        n=design.counts(values),
        measures=list(options.measures),
        correction=correct,
        rows=rows,
        never_annotated=values.never,
        warnings=warnings,
        notes=[*values.notes, *design.notes(values, rows)],
        methods=design.methods(correct, mixed, [*options.covariates]),
    )


def _names(value: Sequence[str] | str | None) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(value or ())


def _with_reference(values: GroupValues, reference: str | None) -> GroupValues:
    """Put the reference group first."""
    if reference is None:
        return values
    if str(reference) not in values.groups:
        raise NotFoundError(f"no group {str(reference)!r}; available: {', '.join(values.groups)}")
    order = sorted(range(len(values.groups)), key=lambda k: values.groups[k] != str(reference))
    values.cells = [cell.select(slice(None), order) for cell in values.cells]
    values.groups = [values.groups[k] for k in order]
    return values


def _compare(cell: Cell, values: GroupValues, design: GroupDesign, seed: int) -> dict[str, Any]:
    """Return the comparison of one behavior and measure."""
    sample = design.sample(cell, values.covariates)
    human = design.sample(cell, values.covariates, with_model=False) if design.has_model else sample
    groups = {name: _describe_group(cell, k, sample, design) for k, name in enumerate(values.groups)}
    pairs = [_compare_pair(cell, (i, j), values, design, (sample, human), seed) for i, j in combinations(range(len(values.groups)), 2)]
    row: dict[str, Any] = {"behavior": cell.behavior, "measure": cell.measure}
    if cell.stratum:
        row["by"] = cell.stratum
    row |= {"groups": groups, "pairs": pairs}
    if len(values.groups) > 2:
        test = None if design.has_model else _test(cell, range(len(values.groups)), values, design, seed)
        row |= {"p": None if test is None else test.p, "test": _describe_test(test)}
    return row


def _bounds(measure: str) -> tuple[float, float]:
    return (0.0, 1.0) if measure in SHARES else (0.0, np.inf)


def _count(cell: Cell, k: int, design: GroupDesign) -> int:
    """Return the number of units with a value from human labels in a group."""
    rows = cell.is_member.all(axis=1) if design.is_repeated else cell.is_member[:, k]
    return int((rows & ~np.isnan(cell.values[:, k])).sum())


def _weight_of_group(k: int, n_groups: int) -> Array:
    """Return the weights of the group means (n_groups,) that select one of them."""
    return np.asarray(np.eye(n_groups)[k])


def _describe_group(cell: Cell, k: int, sample: Sample, design: GroupDesign) -> dict[str, Any]:
    n = _count(cell, k, design)
    estimate = sample.estimate(_weight_of_group(k, cell.values.shape[1])) if n else None
    low, high = estimate.interval(_bounds(cell.measure)) if estimate and n > 1 else (np.nan, np.nan)
    values = {
        u: rounded(v)
        for u, v, member in zip(cell.units, cell.values[:, k], cell.is_member[:, k], strict=True)
        if member and not np.isnan(v)
    }
    spread = np.array([v for v in values.values() if v is not None])
    described: dict[str, Any] = {
        "n": n,
        "mean": rounded(np.nan if estimate is None else _clip(estimate.value, cell.measure)),
        "low": rounded(low),
        "high": rounded(high),
        "sd": rounded(spread.std(ddof=1) if len(spread) > 1 else np.nan),
        "values": values,
    }
    if cell.model is not None:
        described["n_model"] = int((cell.is_member[:, k] & ~np.isnan(cell.model[:, k])).sum())
        described["model_values"] = {u: rounded(v) for u, v, m in zip(cell.units, cell.model[:, k], cell.is_member[:, k], strict=True) if m}
    return described


def _clip(value: float, measure: str) -> float:
    low, high = _bounds(measure)
    return min(max(value, low), high)


def _compare_pair(
    cell: Cell,
    codes: tuple[int, int],
    values: GroupValues,
    design: GroupDesign,
    samples: tuple[Sample, Sample],
    seed: int,
) -> dict[str, Any]:
    """Return the comparison of two groups; undefined values are None."""
    i, j = codes
    size = len(values.groups)
    first, second = _weight_of_group(i, size), _weight_of_group(j, size)
    if design.is_repeated:  # units with a value in one of the two groups only have no difference
        cell = cell.select(cell.has_both(i, j))
        samples = (design.sample(cell, values.covariates), design.sample(cell, values.covariates, with_model=False))
    n = (_count(cell, i, design), _count(cell, j, design))
    pair: dict[str, Any] = {"groups": [values.groups[i], values.groups[j]], "n": list(n)}
    empty = ("difference", "low", "high", "df", "ratio", "ratio_low", "ratio_high", "effect_size", "effect_low", "effect_high", "p")
    if min(n) < 2:
        absent = [values.groups[k] for k, count in zip(codes, n, strict=True) if count < 2]
        note = f"fewer than two individuals with a value in {join_names(absent)}"
        return {**pair, **dict.fromkeys(empty), "test": None, "note": note}
    sample, human = samples
    estimate = sample.estimate(second - first)
    low_bound, high_bound = _bounds(cell.measure)
    bounds = (low_bound - high_bound, high_bound - low_bound)
    low, high = estimate.interval(bounds)
    ratio, ratio_low, ratio_high = ratio_interval(sample.estimate, second, first)
    effect, effect_low, effect_high = _effect_size(cell, codes, estimate, design)
    test = None if design.has_model else _test(cell, codes, values, design, seed)
    pair |= {
        "difference": rounded(estimate.value),
        "low": rounded(low),
        "high": rounded(high),
        "df": rounded(estimate.df),
        "ratio": rounded(ratio),
        "ratio_low": rounded(ratio_low),
        "ratio_high": rounded(ratio_high),
        "effect_size": rounded(effect),
        "effect_low": rounded(effect_low),
        "effect_high": rounded(effect_high),
        "p": rounded(test.p if test is not None else estimate.p_value() if estimate.has_spread else np.nan),
        "test": {"method": "t test", "exact": False} if test is None else _describe_test(test),
    }
    return pair | _label_summary(cell, codes, values, (sample, human), estimate, design)


def _label_summary(
    cell: Cell,
    codes: tuple[int, int],
    values: GroupValues,
    samples: tuple[Sample, Sample],
    estimate: Estimate,
    design: GroupDesign,
) -> dict[str, Any]:
    """Return how many more labels would halve the interval; with model labels, also the results of each source alone."""
    i, j = codes
    size = len(values.groups)
    contrast = _weight_of_group(j, size) - _weight_of_group(i, size)
    counts = {_count(cell, i, design), _count(cell, j, design)}
    n_labeled = min(counts) if design.is_repeated else _count(cell, i, design) + _count(cell, j, design)
    n_available = None
    if cell.model is not None:
        has_model = cell.is_member & ~np.isnan(cell.model)
        n_available = int(has_model[:, [i, j]].all(axis=1).sum() if design.is_repeated else has_model[:, [i, j]].sum())
    halve = labels_to_halve(estimate, n_labeled, n_available, 1 if design.is_repeated else 2)
    per_unit = np.mean(list(values.recordings.values())) if values.recordings else 1.0
    more = None if halve.individuals is None else int(np.ceil(halve.individuals * per_unit))
    summary: dict[str, Any] = {
        "labels_to_halve": {"individuals": halve.individuals, "recordings": more, "width_if_all_labeled": rounded(halve.relative_width)}
    }
    if cell.model is None:
        return summary
    human = samples[1].estimate(contrast)
    model_cell = Cell(cell.behavior, cell.measure, cell.stratum, cell.units, cell.is_member, cell.model)
    has_model_values = min(_count(model_cell, i, design), _count(model_cell, j, design)) > 1
    alone = design.sample(model_cell, values.covariates).estimate(contrast) if has_model_values else Estimate(np.nan, np.nan, 0.0)
    summary["weight_of_model"] = rounded(estimate.weight)
    for name, source in (("human_labels_alone", human), ("model_labels_alone", alone)):
        low, high = source.interval()
        summary[name] = {"difference": rounded(source.value), "low": rounded(low), "high": rounded(high)}
    summary["relative_width"] = rounded(estimate.half_width() / human.half_width() if human.has_spread else np.nan)
    return summary


def _effect_size(cell: Cell, codes: tuple[int, int], estimate: Estimate, design: GroupDesign) -> tuple[float, float, float]:
    """Return Hedges' g, standardized by the pooled standard deviation of individuals, and its interval."""
    if design.is_repeated:
        rows = cell.is_member.all(axis=1) & ~np.isnan(cell.values[:, list(codes)]).any(axis=1)
        samples = [cell.values[rows, k] for k in codes]
        df = len(samples[0]) - 1
    else:
        samples = [cell.values[cell.is_member[:, k] & ~np.isnan(cell.values[:, k]), k] for k in codes]
        df = sum(map(len, samples)) - 2
    if min(map(len, samples)) < 2:
        return np.nan, np.nan, np.nan
    pooled = sum((len(s) - 1) * s.var(ddof=1) for s in samples) / sum(len(s) - 1 for s in samples)
    if not pooled > 0 or not estimate.has_spread:
        return np.nan, np.nan, np.nan
    small_sample = 1 - 3 / (4 * df - 1)
    d = estimate.value / np.sqrt(pooled)
    variance = small_sample**2 * (estimate.variance / pooled + d**2 / (2 * df))
    g = float(small_sample * d)
    low, high = Estimate(g, float(variance), estimate.df).interval()
    return g, low, high


def _test(cell: Cell, codes: Sequence[int], values: GroupValues, design: GroupDesign, seed: int) -> PermutationTest | None:
    """Return the permutation test of two or more groups; None if a group has fewer than two values."""
    if design.is_repeated:
        rows = cell.is_member.all(axis=1) & ~np.isnan(cell.values[:, list(codes)]).any(axis=1)
        return compare_repeated(cell.values[rows][:, list(codes)], seed) if rows.sum() > 1 else None
    member_of = cell.is_member.argmax(axis=1)
    single = cell.values[np.arange(len(member_of)), member_of]
    rows = np.isin(member_of, list(codes)) & ~np.isnan(single)
    order = {code: k for k, code in enumerate(codes)}
    chosen = np.array([order[int(code)] for code in member_of[rows]], dtype=np.int64)
    if len(chosen) == 0 or np.bincount(chosen, minlength=len(order)).min() < 2:
        return None
    if design.is_adjusted:
        adjusted = values.covariates.reindex(cell.units).to_numpy(dtype=float)[rows]
        return compare_adjusted(single[rows], chosen, adjusted, seed)
    return compare_independent(single[rows], chosen, seed)


def _describe_test(test: PermutationTest | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "method": f"permutation of {test.method}",
        "exact": test.exact,
        "n_permutations": test.n_permutations,
        "smallest_p": rounded(test.smallest_p),
    }


def _correct(rows: list[dict[str, Any]], method: str) -> None:
    """Add corrected p values: over behaviors, strata and pairs of groups within each measure; those of all groups separately."""
    for measure in dict.fromkeys(row["measure"] for row in rows):
        chosen = [row for row in rows if row["measure"] == measure]
        families = [[pair for row in chosen for pair in row["pairs"]], [row for row in chosen if "p" in row]]
        for family in families:
            corrected = correct_p([np.nan if entry["p"] is None else entry["p"] for entry in family], method)
            for entry, p in zip(family, corrected, strict=True):
                entry["p_corrected"] = rounded(p)
