"""The report of a comparison of groups: budgets of groups, zones, differences and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ethobench
from ethobench.analysis.budgets import budgets, mean_budgets
from ethobench.analysis.comparison import Comparison
from ethobench.analysis.group_values import CELLS
from ethobench.analysis.groups import SHARES
from ethobench.analysis.zones import ZoneOptions
from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.ethogram import join_ethograms
from ethobench.core.occurrence import Occurrence
from ethobench.core.wording import join_names
from ethobench.datasets.zones import zones_of
from ethobench.reports.methods import describe_methods
from ethobench.reports.report_data import Figure, Group, Report, describe_behaviors, make_figure

LABELS = {
    "share": "share of observed time",
    "total_s": "seconds per recording",
    "n_bouts": "bouts per recording",
    "rate_per_min": "bouts per minute",
    "rate_per_hour": "bouts per hour",
    "mean_duration_s": "mean bout duration (s)",
    "median_duration_s": "median bout duration (s)",
    "latency_s": "latency to the first bout (s)",
    "inter_bout_s": "time between bouts (s)",
}


def summarize_comparison(
    result: Comparison, recordings: Iterable[Recording] = (), *, title: str = "", zone_options: ZoneOptions | None = None
) -> Report:
    """Return the report of a comparison of groups.

    Parameters
    ----------
    result : Comparison
        As `compare_groups` returns it.
    recordings : iterable of Recording
        What was compared; for behavior by zone, if there are zones.
    title : str
        Title of the page.
    zone_options : ZoneOptions, optional
        Body point and animal of zones.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/tag", individuals=6, seconds=60)
    >>> recordings = [r.copy(metadata={"sex": "fm"[k % 2]}) for k, r in enumerate(data)]
    >>> report = summarize_comparison(eb.compare_groups(recordings, "sex"), recordings)
    >>> [figure["id"] for figure in report["groups"][0]["figures"]]
    ['budgets', 'differences', 'individuals']
    """
    recordings = list(recordings)
    annotations = [a for r in recordings for a in r.annotations.values()]
    ethogram = join_ethograms(a.ethogram for a in annotations) if annotations else None
    sources = _sources(result)
    figures = [_budgets(result), _differences(result), *([sources] if sources is not None else []), _individuals(result)]
    notes = list(result["notes"])
    try:
        zones = _zones(result, recordings, zone_options)
    except EthobenchError as error:
        zones = None
        notes.append(f"behavior by zone is not shown: {error}")
    group: Group = {
        "id": "comparison",
        "title": f"Groups by {result['column']}",
        "behaviors": [] if ethogram is None else describe_behaviors(ethogram, Occurrence.count(ethogram, annotations, [])),
        "figures": [*figures, *([zones] if zones is not None else [])],
        "absent": [f"never annotated: {', '.join(result['never_annotated'])}"] if result["never_annotated"] else [],
    }
    paragraphs, references = describe_methods(comparison=result)
    counts = ", ".join(
        f"{name} {count['individuals']}{f' ({labeled} labeled)' if (labeled := count.get('labeled')) is not None else ''}"
        for name, count in result["n"].items()
    )
    return {
        "title": title or f"{join_names(result['groups'])} compared" if len(result["groups"]) < 4 else f"Groups by {result['column']}",
        "lead": f"{counts}; {result['design']}; unit of analysis: {result['unit']}",
        "warning": " ".join(result["warnings"]),
        "facts": [],
        "notes": notes,
        "groups": [group],
        "methods": {"paragraphs": paragraphs, "references": references},
        "version": ethobench.__version__,
    }


def _name(row: Mapping[str, Any]) -> str:
    strata = ", ".join(map(str, row.get("by", {}).values()))
    return f"{row['behavior']} ({strata})" if strata else str(row["behavior"])


def _with_interval(pair: Mapping[str, Any], value: str, low: str, high: str, scale: float = 1.0) -> str:
    """Return a value and its interval as text, such as "0.091 (0.02 to 0.163)"."""
    if pair[value] is None:
        return "–"
    if pair[low] is None:
        return f"{scale * pair[value]:.3g}"
    end = "infinite" if pair[high] is None else f"{scale * pair[high]:.3g}"
    return f"{scale * pair[value]:.3g} ({scale * pair[low]:.3g} to {end})"


def _p_text(p: float | None) -> str:
    return "–" if p is None else "<\u00a00.001" if p < 0.001 else f"{p:.3f}"


def _budgets(result: Comparison) -> Figure:
    rows = [
        (LABELS.get(row["measure"], row["measure"]), _name(row), name, group["mean"], group["low"], group["high"], group["n"])
        for row in result["rows"]
        for name, group in row["groups"].items()
        if group["mean"] is not None
    ]
    return make_figure(
        "budgets",
        "dots",
        "Budgets of groups",
        "Mean over individuals, and its 95 % interval.",
        ["measure", "behavior", "group", "mean", "low", "high", "n"],
        rows,
        {"choose": ["measure"], "y": "behavior", "x": "mean", "low": "low", "high": "high", "series": "group"},
    )


def _differences(result: Comparison) -> Figure:
    rows = [
        (
            f"{LABELS.get(row['measure'], row['measure'])}{' (%)' if row['measure'] in SHARES else ''}",
            _name(row),
            f"{pair['groups'][1]} - {pair['groups'][0]}",
            _with_interval(pair, "difference", "low", "high", 100.0 if row["measure"] in SHARES else 1.0),
            _with_interval(pair, "ratio", "ratio_low", "ratio_high"),
            _with_interval(pair, "effect_size", "effect_low", "effect_high"),
            _p_text(pair["p_corrected"]),
        )
        for row in result["rows"]
        for pair in row["pairs"]
    ]
    return make_figure(
        "differences",
        "table",
        "Differences",
        f"With 95 % intervals; effect size: Hedges' g; p corrected over the behaviors of a measure ({result['correction']}).",
        ["measure", "behavior", "groups", "difference", "ratio", "effect size", "p"],
        rows,
    )


def _sources(result: Comparison) -> Figure | None:
    """Return the differences from human labels, model labels, and both; None without model labels."""
    sources = {"both": None, "human labels alone": "human_labels_alone", "model labels alone": "model_labels_alone"}
    has_several_groups = len(result["groups"]) > 2
    rows = []
    for row in result["rows"]:
        for pair in (pair for pair in row["pairs"] if "relative_width" in pair):
            name = f"{_name(row)}, {pair['groups'][1]} - {pair['groups'][0]}" if has_several_groups else _name(row)
            for label, key in sources.items():
                estimate = pair if key is None else pair[key]
                if estimate["difference"] is not None:
                    values = (estimate["difference"], estimate["low"], estimate["high"])
                    rows.append((LABELS.get(row["measure"], row["measure"]), name, label, *values))
    if not rows:
        return None
    contrast = f" ({result['groups'][1]} - {result['groups'][0]})" if not has_several_groups else ""
    return make_figure(
        "sources",
        "dots",
        "Differences by labels",
        f"Difference of the groups{contrast} and its 95 % interval. Model labels alone keep the errors of the model; human labels correct "
        "them.",
        ["measure", "behavior", "labels", "difference", "low", "high"],
        rows,
        {"choose": ["measure"], "y": "behavior", "x": "difference", "low": "low", "high": "high", "series": "labels"},
    )


def _individuals(result: Comparison) -> Figure:
    rows = [
        (LABELS.get(row["measure"], row["measure"]), _name(row), name, unit, value)
        for row in result["rows"]
        for name, group in row["groups"].items()
        for unit, value in group["values"].items()
        if value is not None
    ]
    return make_figure(
        "individuals",
        "dots",
        "Individuals",
        "One mark for each individual.",
        ["measure", "behavior", "group", "individual", "value"],
        rows,
        {"choose": ["measure"], "y": "behavior", "x": "value", "series": "group"},
    )


def _zones(result: Comparison, recordings: Sequence[Recording], options: ZoneOptions | None) -> Figure | None:
    """Return the mean share of behaviors in each zone by group; None without zones, poses or a column of groups."""
    in_zones = [r for r in recordings if r.has_signals and r.annotations and zones_of(r, None)]
    if not in_zones or result["column"] in CELLS:
        return None
    table = mean_budgets(budgets(in_zones, by=("individual", result["column"]), zones=True, zone_options=options), result["column"])
    rows = [
        (row["zone"], row["behavior"], str(row[result["column"]]), row["share"], row["n_individuals"]) for row in table.to_dict("records")
    ]
    return make_figure(
        "zones",
        "dots",
        "Behavior by zone",
        "Share of the observed time in a zone that each behavior takes, mean over individuals.",
        ["zone", "behavior", "group", "share", "n"],
        rows,
        {"choose": ["zone"], "y": "behavior", "x": "share", "series": "group"},
        percent=True,
    )
