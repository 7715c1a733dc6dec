"""Figures of group comparisons: the value of each individual, group means with intervals, and differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.figures.colors import LANE, Color
from ethobench.figures.plots import style
from ethobench.figures.plots.behavior import spread
from ethobench.figures.plots.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_FOR_INTERVAL = 3
Estimates: TypeAlias = dict[tuple[str, str], tuple[float | None, float | None, float | None]]


def group_comparison(
    source: Table | Mapping[str, Any],
    ax: Axes | None = None,
    *,
    measure: str = "share",
    behaviors: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    percent: bool = True,
    xlabel: str = "",
    p_values: Mapping[str, float] | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw the values of individuals by group: a dot for each individual, the group mean and its 95 % interval, by behavior.

    Parameters
    ----------
    source : mapping or list of dict
        The result of `compare_groups`, whose means, intervals and corrected p values are drawn; or rows with ``individual``, ``group``,
        ``behavior`` and ``value``. Several values of an individual in rows are averaged first, because the individual is the unit of
        analysis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    measure : str
        Which measure of a comparison, such as "share" or "rate_per_min".
    behaviors, groups : sequence of str, optional
        Which, and in which order. Default: all, in the order of the rows.
    percent : bool
        Whether values are shares, drawn in percent.
    xlabel : str
        Name of the value. Default: "share of observed time (%)", or "value" if not `percent`.
    p_values : mapping, optional
        A p value for each behavior, written at the right. Default: those of a comparison; of more than two groups that of all groups.
    colors : mapping, optional
        Color of each group.

    Notes
    -----
    Of rows, the interval of a mean is that of Student's t distribution; there is none below three individuals.

    Examples
    --------
    >>> import ethobench as eb
    >>> values = {"control": (0.2, 0.3, 0.25), "treated": (0.1, 0.12, 0.08)}
    >>> rows = [
    ...     {"individual": f"{group}{k}", "group": group, "behavior": "groom", "value": value}
    ...     for group, several in values.items()
    ...     for k, value in enumerate(several)
    ... ]
    >>> axes = eb.plot.group_comparison(rows, p_values={"groom": 0.1})
    >>> axes.get_xlabel(), axes.texts[0].get_text()
    ('share of observed time (%)', 'p = 0.1')
    """
    estimates: Estimates = {}
    labeled_of: dict[str, int] = {}
    if isinstance(source, Mapping):
        labeled_of = {str(name): count["individuals"] for name, count in source.get("n", {}).items() if "labeled" in count}
        means, estimates, tested = _read_comparison(source, measure)
        p_values = tested if p_values is None else p_values
        groups = groups or [str(name) for name in source["groups"]]
        percent, xlabel = percent and measure == "share", xlabel or ("" if measure == "share" else measure.replace("_", " "))
    else:
        means = individual_means(source)
    names = list(behaviors or dict.fromkeys(row["behavior"] for row in means))
    group_names = list(groups or dict.fromkeys(row["group"] for row in means))
    shown = [row for row in means if row["behavior"] in names and row["group"] in group_names]
    if not shown:
        raise EthobenchError("there are no values to compare: no individual has a value of these behaviors and groups")
    shades = {**style.series_colors(group_names), **{n: style.hex_color(c) for n, c in (colors or {}).items()}}
    scale = 100.0 if percent else 1.0
    step = 0.8 / len(group_names)
    ax = style.get_axes(ax, height_mm=20 + max(5.0, 4.2 * len(group_names)) * len(names))
    for row, name in enumerate(names):
        for k, group in enumerate(group_names):
            values = scale * np.array([r["value"] for r in shown if r["behavior"] == name and r["group"] == group])
            y = row + (k - (len(group_names) - 1) / 2) * step
            mean, low, high = (None if v is None else scale * v for v in estimates.get((name, group)) or _t_interval(values / scale))
            ax.scatter(values, y + spread(values) * step * 0.3, s=8, color=shades[group], alpha=0.5, linewidths=0, zorder=2)
            if low is not None and high is not None:
                ax.hlines(y, low, high, color=style.INK, linewidth=1.0, zorder=3)
            if mean is not None:
                ax.scatter([mean], [y], s=20, marker="D", color=shades[group], edgecolors=style.INK, linewidths=0.7, zorder=4)
        if p_values and p_values.get(name) is not None:
            ax.text(
                1.01, row, format_p(p_values[name]), transform=ax.get_yaxis_transform(), va="center", ha="left", color=style.MUTED,
                fontsize=style.text_size(ax, 0.5),
            )  # fmt: skip
    for row in range(1, len(names)):
        ax.axhline(row - 0.5, color=LANE["light"], linewidth=0.6, zorder=0)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), [style.label(name) for name in names])
    if min(scale * row["value"] for row in shown) >= 0:
        ax.set_xlim(left=-0.015 * ax.get_xlim()[1])  # symbols at 0 are complete
    ax.set_xlabel(xlabel or ("share of observed time (%)" if percent else "value"))
    ax.grid(axis="x", color=LANE["light"], linewidth=0.6)
    ax.set_axisbelow(True)
    counts = {group: len({r["individual"] for r in shown if r["group"] == group}) for group in group_names}
    handles = style.patches({group: shades[group] for group in group_names})
    for handle, group in zip(handles, group_names, strict=True):
        of_all = f" of {labeled_of[group]} labeled" if group in labeled_of else ""
        handle.set_label(f"{style.label(group)} (n = {counts[group]}{of_all})")
    legend = style.add_legend(ax, handles)
    return style.finish(ax, spines=("bottom",), legend=legend)


def individual_means(rows: Table) -> Table:
    """Return one value for each individual, group and behavior: the mean of its recordings. Undefined values are ignored.

    >>> rows = [{"individual": "a", "group": "g", "behavior": "rest", "value": value} for value in (1.0, 2.0, None)]
    >>> individual_means(rows)
    [{'individual': 'a', 'group': 'g', 'behavior': 'rest', 'value': 1.5}]
    """
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row["value"] is not None and np.isfinite(row["value"]):
            values.setdefault((str(row["individual"]), str(row["group"]), str(row["behavior"])), []).append(float(row["value"]))
    return [{"individual": i, "group": g, "behavior": b, "value": float(np.mean(numbers))} for (i, g, b), numbers in values.items()]


def format_p(value: float) -> str:
    """Return a p value as text.

    >>> format_p(0.0371), format_p(0.00002)
    ('p = 0.037', 'p < 0.001')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _t_interval(values: Any) -> tuple[float | None, float | None, float | None]:
    """Return the mean of values and its 95 % interval; None where undefined."""
    from scipy.stats import t

    if not len(values):
        return None, None, None
    mean = float(values.mean())
    if len(values) < MIN_FOR_INTERVAL:
        return mean, None, None
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _read_comparison(result: Mapping[str, Any], measure: str) -> tuple[Table, Estimates, dict[str, float]]:
    """Return the values of individuals, the estimates of groups, and the corrected p values; rows of strata have their names."""
    available = list(dict.fromkeys(row["measure"] for row in result["rows"]))
    if measure not in available:
        raise NotFoundError(f"the comparison has no measure {measure!r}; available: {', '.join(available)}")
    rows: Table = []
    estimates: Estimates = {}
    p_values: dict[str, float] = {}
    for row in (row for row in result["rows"] if row["measure"] == measure):
        name = ", ".join([row["behavior"], *map(str, row.get("by", {}).values())])
        for group, values in row["groups"].items():
            estimates[name, str(group)] = (values["mean"], values["low"], values["high"])
            rows += [
                {"individual": str(unit), "group": str(group), "behavior": name, "value": value}
                for unit, value in values["values"].items()
                if value is not None
            ]
        p = row.get("p_corrected") if len(row["pairs"]) > 1 else row["pairs"][0].get("p_corrected")
        if p is not None:
            p_values[name] = p
    return rows, estimates, p_values
