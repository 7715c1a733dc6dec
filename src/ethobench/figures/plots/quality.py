"""Figures of scores: confusion matrix, agreement of annotators, learning curve, reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core.errors import EthobenchError
from ethobench.figures.colors import LANE, Color
from ethobench.figures.plots import style, tables
from ethobench.figures.plots.matrices import draw_matrix
from ethobench.figures.plots.tables import Table
from ethobench.metrics import Scores
from ethobench.metrics.rater_agreement import Agreement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL = "all behaviors"
MEASURE_LABELS = {"kappa": "Cohen's kappa", "f1": "frame F1", "agreement": "share of equal frames"}


def confusion(source: Scores | Table, ax: Axes | None = None, *, numbers: bool = True) -> Axes:
    """Draw a confusion matrix: of the frames of a true behavior (row), the share predicted as each behavior (column), in percent.

    Parameters
    ----------
    source : Scores, or table
        As `score` returns them, or rows with ``truth``, ``prediction``, ``frames`` and ``share``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    numbers : bool
        Whether to write the percentages into the cells, if they fit.

    Raises
    ------
    EthobenchError
        If behaviors overlap, so that there is no confusion matrix.

    Examples
    --------
    >>> import ethobench as eb
    >>> eb.plot.confusion(eb.score(annotation, annotation)).get_ylabel()
    'true behavior'
    """
    rows = tables.confusion_table(source) if isinstance(source, Scores) else source
    used = {row[key] for row in rows if row["frames"] for key in ("truth", "prediction")}
    names = [name for name in dict.fromkeys(row["truth"] for row in rows) if name in used]
    if not names:
        raise EthobenchError("no frame was compared, so there is no confusion matrix")
    cells = {(row["truth"], row["prediction"]): row for row in rows}
    totals = [sum(row["frames"] for row in rows if row["truth"] == name) for name in names]
    shares = [[cells[i, j]["share"] for j in names] for i in names]
    values = np.array([[np.nan if share is None else share for share in row] for row in shares], dtype=float)
    ax = style.get_axes(ax, height_mm=28 + 7.5 * len(names))
    draw_matrix(ax, values, names, names, numbers=numbers, right=[f"{n:,}" for n in totals], right_title="frames")
    ax.set(xlabel="predicted behavior", ylabel="true behavior")
    return style.finish(ax, spines=())


def agreement(
    source: Agreement | Table, ax: Axes | None = None, *, measure: str = "kappa", colors: Mapping[str, Color | str] | None = None
) -> Axes:
    """Draw the agreement of annotators by behavior: a dot for each pair, with its 95 % interval where there is one.

    Parameters
    ----------
    source : Agreement, or table
        As `ethobench.agreement` returns it, or rows with ``annotators``, ``behavior``, ``value``, ``low`` and ``high``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    measure : {"kappa", "f1", "agreement"}
        Cohen's kappa, F1 of frames, or the share of equal frames.
    colors : mapping, optional
        Color of each pair.

    Examples
    --------
    >>> import ethobench as eb
    >>> axes = eb.plot.agreement(eb.agreement({"anna": annotation, "ben": annotation}))
    >>> axes.get_xlabel()
    "Cohen's kappa"
    """
    rows = tables.agreement_table(source, measure) if isinstance(source, Agreement) else source
    rows = [row for row in rows if row["value"] is not None and np.isfinite(row["value"])]
    if not rows:
        raise EthobenchError("no agreement is defined: no behavior was annotated")
    names = list(dict.fromkeys(row["behavior"] for row in rows))
    names.sort(key=lambda name: name != ALL)
    pairs = list(dict.fromkeys(row["annotators"] for row in rows))
    shades = {**style.series_colors(pairs), **{n: style.hex_color(c) for n, c in (colors or {}).items()}}
    step = 0.62 / max(len(pairs), 1)
    ax = style.get_axes(ax, height_mm=18 + max(4.6, 2.0 * len(pairs)) * len(names))
    for row in rows:
        y = names.index(row["behavior"]) + (pairs.index(row["annotators"]) - (len(pairs) - 1) / 2) * step
        _dot(ax, row, y, shades[row["annotators"]])
    low = min(0.0, *(row["value"] for row in rows), *(row["low"] for row in rows if row["low"] is not None))
    ax.set_xlim(low - 0.02 if low < 0 else 0.0, 1.02)
    _rows(ax, names)
    ax.set_xlabel(MEASURE_LABELS.get(measure, measure))
    legend = style.add_legend(ax, _lines({pair: shades[pair] for pair in pairs})) if len(pairs) > 1 else None
    return style.finish(ax, spines=("bottom",), legend=legend)


def learning_curve(
    source: Table,
    ax: Axes | None = None,
    *,
    x: str = "recordings",
    y: str = "mean",
    low: str = "low",
    high: str = "high",
    series: str = "model",
    ylabel: str = "F1",
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw scores against the amount of training data, a line for each model; bands between `low` and `high`.

    Parameters
    ----------
    source : list of dict
        Rows with the columns that the other arguments name; `low`, `high` and `series` may be missing.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    x, y, low, high, series : str
        Columns: amount of training data, score, ends of the band, name of the line.
    ylabel : str
        Name of the score.
    colors : mapping, optional
        Color of each line.

    Examples
    --------
    >>> import ethobench as eb
    >>> rows = [{"recordings": n, "mean": 1 - 1 / n, "model": "boost"} for n in (2, 4, 8)]
    >>> axes = eb.plot.learning_curve(rows)
    >>> axes.get_xlabel(), len(axes.lines)
    ('training recordings', 1)
    """
    rows = [row for row in source if row.get(y) is not None and np.isfinite(row[y])]
    if not rows:
        raise EthobenchError("the learning curve has no points")
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault(str(row.get(series, "")), []).append(row)
    shades = {**style.series_colors(curves), **{n: style.hex_color(c) for n, c in (colors or {}).items()}}
    ax = style.get_axes(ax)
    for name, points in curves.items():
        points.sort(key=lambda row: row[x])
        at = [row[x] for row in points]
        ax.plot(at, [row[y] for row in points], color=shades[name], linewidth=1.3, marker="o", markersize=3, zorder=3)
        ends = [(row[x], row[low], row[high]) for row in points if row.get(low) is not None and row.get(high) is not None]
        if ends:
            band_x, band_low, band_high = zip(*ends, strict=True)
            ax.fill_between(band_x, band_low, band_high, color=shades[name], alpha=0.16, linewidth=0, zorder=2)
    sizes = sorted({row[x] for row in rows})
    if sizes[0] > 0 and sizes[-1] / sizes[0] >= 8:
        ax.set_xscale("log")
        ax.minorticks_off()
    if len(sizes) <= 8:
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.set(xlabel=f"training {x}", ylabel=ylabel)
    ax.grid(axis="y", color=LANE["light"], linewidth=0.6)
    ax.set_axisbelow(True)
    legend = style.add_legend(ax, _lines({name: shades[name] for name in curves})) if len(curves) > 1 else None
    return style.finish(ax, legend=legend)


def reliability(
    source: Scores | Table,
    ax: Axes | None = None,
    *,
    behaviors: Sequence[str] | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw a reliability diagram: how often a behavior occurs in frames with a given predicted probability.

    A calibrated model follows the diagonal. The area of a dot is proportional to its number of frames.

    Parameters
    ----------
    source : Scores, or table
        Scores of predictions with probabilities, or rows with ``behavior``, ``probability``, ``share`` and ``frames``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    behaviors : sequence of str, optional
        Default: all except the background.
    colors : mapping, optional
        Color of each behavior.

    Raises
    ------
    EthobenchError
        If the predictions have no probabilities.

    Examples
    --------
    >>> import ethobench as eb
    >>> rows = [{"behavior": "rest", "probability": p, "share": p**2, "frames": 100} for p in (0.1, 0.5, 0.9)]
    >>> eb.plot.reliability(rows).get_xlabel()
    'predicted probability'
    """
    rows = tables.reliability_table(source) if isinstance(source, Scores) else source
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if behaviors is None or row["behavior"] in behaviors:
            curves.setdefault(str(row["behavior"]), []).append(row)
    if not curves:
        raise EthobenchError("the reliability diagram has no points")
    shades = _behavior_shades(source, curves) | {n: style.hex_color(c) for n, c in (colors or {}).items()}
    ax = style.get_axes(ax, height_mm=78)
    ax.plot([0, 1], [0, 1], color=style.RULE, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    most = max(row["frames"] for points in curves.values() for row in points)
    for name, points in curves.items():
        at, share = [row["probability"] for row in points], [row["share"] for row in points]
        ax.plot(at, share, color=shades[name], linewidth=1.0, zorder=2)
        sizes = [3 + 27 * row["frames"] / most for row in points]
        ax.scatter(at, share, s=sizes, color=shades[name], edgecolors="white", linewidths=0.4, zorder=3)
    ax.set(
        xlabel="predicted probability", ylabel="share of frames with the behavior", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal"
    )
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    legend = style.add_legend(ax, _lines({name: shades[name] for name in curves}))
    return style.finish(ax, legend=legend)


def _behavior_shades(source: Scores | Table, names: Mapping[str, Any]) -> dict[str, str]:
    """Return the colors of behaviors as in the report, if the source knows how often they occur."""
    from ethobench.figures.colors import palette_color

    occurrence = source.occurrence if isinstance(source, Scores) else None
    indices = {name: k for k, name in enumerate(names)} if occurrence is None else occurrence.color_indices()
    return {name: style.hex_color(palette_color(indices.get(name), "light")) for name in names}


def _dot(ax: Axes, row: Mapping[str, Any], y: float, color: str) -> None:
    if row.get("low") is not None and row.get("high") is not None:
        ax.hlines(y, row["low"], row["high"], color=color, linewidth=1.1, zorder=2)
    ax.scatter([row["value"]], [y], s=16, color=color, edgecolors="white", linewidths=0.4, zorder=3)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_yticks(range(len(names)), [style.label(name) for name in names])
    ax.grid(axis="x", color=LANE["light"], linewidth=0.6)
    ax.set_axisbelow(True)


def _lines(colors: Mapping[str, str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=color, linewidth=1.3, marker="o", markersize=3, label=style.label(name, 40)) for name, color in colors.items()
    ]
