"""Figures of annotations: ethogram, raster, time budget, transitions, bout durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.figures.colors import LANE, Color, behavior_colors
from ethobench.figures.plots import style, tables
from ethobench.figures.plots.matrices import draw_matrix
from ethobench.figures.plots.tables import Source, Table
from ethobench.figures.text_drawing import clock_text
from ethobench.figures.timelines import STEPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SPANS = 4000
"""Bouts of a row that are drawn separately; of more, those that no printed figure could separate are drawn as one."""
MAX_ROWS = 100
HEIGHT = 0.8


def ethogram(
    source: Source,
    ax: Axes | None = None,
    *,
    behaviors: Sequence[str] | None = None,
    annotator: str | None = None,
    start: float = 0.0,
    stop: float | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw when each behavior occurs: one row for each behavior. Unobserved time is hatched, point events are ticks.

    Parameters
    ----------
    source : Annotation, Recording, or mapping of names to annotations
        Several annotators are drawn below each other within the row of each behavior.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    behaviors : sequence of str, optional
        Which behaviors, from top to bottom. Default: all that occur, except the background.
    annotator : str, optional
        Only this annotator of a recording.
    start, stop : float
        Section in seconds; by default the complete recording.
    colors : mapping, optional
        Color of each behavior, or of each annotator if there are several.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import ethobench as eb
    >>> axes = eb.plot.ethogram(annotation)
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['attack', 'mount']
    """
    annotations = tables.named_annotations(source, annotator)
    names = _occurring(annotations, behaviors)
    ax = style.get_axes(ax, height_mm=14 + (4.6 if len(annotations) == 1 else 3.4 * len(annotations) + 1.2) * len(names))
    has_several = len(annotations) > 1
    by_annotator = style.series_colors(annotations)
    shades = {**{n: style.hex_color(c) for n, c in behavior_colors(annotations.values(), "light").items()}, **by_annotator}
    shades |= {name: style.hex_color(color) for name, color in (colors or {}).items()}
    height = HEIGHT / len(annotations)
    end = _end(annotations, start, stop)
    for row, behavior in enumerate(names):
        for line, (source_name, a) in enumerate(annotations.items()):
            low = row - HEIGHT / 2 + line * height
            _lane(ax, a, low, height * (0.9 if has_several else 1.0))
            if behavior in a.ethogram:
                _bouts(
                    ax,
                    a,
                    behavior,
                    low,
                    height * (0.9 if has_several else 1.0),
                    shades[source_name if has_several else behavior],
                    end - start,
                )
    _time_axis(ax, start, end)
    _name_rows(ax, names)
    legend = style.add_legend(ax, style.patches({source_name: shades[source_name] for source_name in annotations}) if has_several else [])
    return style.finish(ax, spines=("bottom",), legend=legend)


def raster(
    source: Source,
    ax: Axes | None = None,
    *,
    behaviors: Sequence[str] | None = None,
    annotator: str | None = None,
    start: float = 0.0,
    stop: float | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw the behaviors of several recordings, or of several annotators, on one time axis: one row each, one color per behavior.

    Parameters
    ----------
    source : Dataset, recordings, Recording, or mapping of names to annotations
        One row for each recording; of a single recording, one for each annotator. At most 100 rows are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    behaviors : sequence of str, optional
        Which behaviors. Default: all that occur, except the background.
    annotator : str, optional
        Which annotator of each recording.
    start, stop : float
        Section in seconds.
    colors : mapping, optional
        Color of each behavior.

    Examples
    --------
    >>> import ethobench as eb
    >>> axes = eb.plot.raster({"day 1": annotation, "day 2": annotation}, behaviors=["mount"])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['day 1', 'day 2']
    """
    annotations = dict(list(tables.named_annotations(source, annotator).items())[:MAX_ROWS])
    names = _occurring(annotations, behaviors)
    overlapping = any(not a.is_exclusive for a in annotations.values())
    row_mm = max(4.0, 1.4 * len(names)) if overlapping else 4.0 if len(annotations) < 30 else 2.0
    ax = style.get_axes(ax, height_mm=min(20 + row_mm * len(annotations), 240))
    shades = {n: style.hex_color(c) for n, c in {**behavior_colors(annotations.values(), "light"), **(colors or {})}.items()}
    end = _end(annotations, start, stop)
    for row, a in enumerate(annotations.values()):
        low = row - HEIGHT / 2
        _lane(ax, a, low, HEIGHT)
        for line, behavior in enumerate(name for name in names if name in a.ethogram):
            height = HEIGHT / len(names) if overlapping else HEIGHT
            _bouts(ax, a, behavior, low + (line * height if overlapping else 0.0), height, shades[behavior], end - start)
    _time_axis(ax, start, end)
    _name_rows(ax, annotations)
    legend = style.add_legend(ax, style.patches({name: shades[name] for name in names}))
    return style.finish(ax, spines=("bottom",), legend=legend)


def budget(
    source: Source | Table,
    ax: Axes | None = None,
    *,
    by: str = "recording",
    annotator: str | None = None,
    stacked: bool | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw the share of the observed time that each behavior takes.

    Parameters
    ----------
    source : annotations, or table
        Annotation, Recording, Dataset, recordings, a mapping of names to annotations, or rows with ``unit``, ``behavior`` and ``share``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    by : {"recording", "individual", "all"}
        What a bar or dot stands for.
    annotator : str, optional
        Which annotator of each recording.
    stacked : bool, optional
        True: one stacked bar for each unit. False: a dot for each unit and a bar at their mean, by behavior. Default: stacked, unless
        shares add up to more than 1 because behaviors overlap, or there are more than 20 units.
    colors : mapping, optional
        Color of each behavior.

    See Also
    --------
    ethobench.figures.plots.tables.budget_table : the numbers.

    Examples
    --------
    >>> import ethobench as eb
    >>> axes = eb.plot.budget({"day 1": annotation, "day 2": annotation})
    >>> axes.get_xlabel()
    'share of observed time (%)'
    """
    rows = source if isinstance(source, list) and source and isinstance(source[0], dict) else None
    shades: dict[str, str] = {}
    if rows is None:
        rows = tables.budget_table(source, by=by, annotator=annotator)  # type: ignore[arg-type]
        annotations = tables.named_annotations(source, annotator)  # type: ignore[arg-type]
        shades = {n: style.hex_color(c) for n, c in behavior_colors(annotations.values(), "light").items()}
    shares: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["share"] is not None and np.isfinite(row["share"]):
            shares.setdefault(str(row["behavior"]), {})[str(row["unit"])] = float(row["share"])
    shares = {name: values for name, values in shares.items() if any(values.values())}
    if not shares:
        raise EthobenchError("no behavior occurs in the observed time, so there is no time budget to draw")
    units = list(dict.fromkeys(str(row["unit"]) for row in rows))
    shades = {**style.series_colors(shares), **shades} | {n: style.hex_color(c) for n, c in (colors or {}).items()}
    if stacked is None:
        stacked = len(units) <= 20 and max(sum(values.get(u, 0.0) for values in shares.values()) for u in units) <= 1 + 1e-6
    lines = len(units) if stacked else len(shares)
    ax = style.get_axes(ax, height_mm=min(16 + 4.6 * lines + (5 if stacked else 0), 240))
    draw = _stacked if stacked else _dots
    legend = draw(ax, shares, units, shades)
    ax.set_xlabel("share of observed time (%)")
    return style.finish(ax, spines=("bottom",), legend=legend)


def _stacked(ax: Axes, shares: Mapping[str, Mapping[str, float]], units: Sequence[str], shades: Mapping[str, str]) -> Any:
    at = np.arange(len(units))
    left_edges = np.zeros(len(units))
    for behavior, values in shares.items():
        width = np.array([100 * values.get(unit, 0.0) for unit in units])
        ax.barh(at, width, 0.76, left=left_edges, color=shades[behavior], edgecolor="white", linewidth=0.4)
        left_edges += width
    _name_rows(ax, units)
    ax.set_xlim(0, max(100.0, float(left_edges.max())) if left_edges.max() > 60 else None)
    return style.add_legend(ax, style.patches({name: shades[name] for name in shares}))


def _dots(ax: Axes, shares: Mapping[str, Mapping[str, float]], units: Sequence[str], shades: Mapping[str, str]) -> None:
    size = 9 if len(units) <= 40 else 4
    for row, (behavior, values) in enumerate(shares.items()):
        x = 100 * np.array(list(values.values()))
        ax.scatter(x, row + spread(x) * 0.22, s=size, color=shades[behavior], alpha=0.65, linewidths=0, zorder=2)
        ax.vlines(x.mean(), row - 0.36, row + 0.36, color=style.INK, linewidth=1.2, zorder=3)
    _name_rows(ax, shares)
    ax.set_xlim(left=0)
    ax.grid(axis="x", color=LANE["light"], linewidth=0.6)
    ax.set_axisbelow(True)


def spread(values: Any, bins: int = 30) -> Any:
    """Return offsets between -1 and 1 that keep equal values apart, always the same for the same values (n,)."""
    values = np.asarray(values, dtype=float)
    offsets = np.zeros(len(values))
    if len(values) < 2:
        return offsets
    span = float(np.ptp(values)) or 1.0
    cell = np.floor((values - values.min()) / span * bins).astype(np.int64)
    for k in np.unique(cell):
        members = np.flatnonzero(cell == k)
        if len(members) > 1:
            offsets[members] = np.linspace(-1, 1, len(members)) * min(1.0, len(members) / 6)
    return offsets


def transitions(
    source: Source | Table, ax: Axes | None = None, *, annotator: str | None = None, background: bool = False, numbers: bool = True
) -> Axes:
    """Draw a matrix of transitions: of the bouts of a behavior (row), the share that is followed by each other one (column).

    Parameters
    ----------
    source : annotations, or table
        Annotation, Recording, Dataset, recordings, a mapping, or rows with ``behavior``, ``next``, ``count`` and ``share``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    annotator : str, optional
        Which annotator of each recording.
    background : bool
        Whether the background counts as a behavior.
    numbers : bool
        Whether to write the percentages into the cells, if they fit.

    Examples
    --------
    >>> import ethobench as eb
    >>> labels = eb.Annotation.from_frames([0, 1, 0, 2, 0, 1], ["rest", "walk", "groom"], rate=1)
    >>> eb.plot.transitions(labels).get_xlabel()
    'next behavior'
    """
    rows = source if isinstance(source, list) and source and isinstance(source[0], dict) else None
    if rows is None:
        rows = tables.transition_table(source, annotator=annotator, background=background)  # type: ignore[arg-type]
    used = {row[key] for row in rows if row["count"] for key in ("behavior", "next")}
    names = [name for name in dict.fromkeys(row["behavior"] for row in rows) if name in used]
    if not names:
        raise EthobenchError("there are no transitions: no bout is followed by one of another behavior")
    cells = {(row["behavior"], row["next"]): row["share"] for row in rows}
    values = np.array([[np.nan if i == j else cells.get((i, j)) or 0.0 for j in names] for i in names], dtype=float)
    totals = [sum(row["count"] for row in rows if row["behavior"] == name) for name in names]
    ax = style.get_axes(ax, height_mm=28 + 7.5 * len(names))
    draw_matrix(ax, values, names, names, numbers=numbers, right=[f"{n:,}" for n in totals], right_title="n")
    ax.set(xlabel="next behavior", ylabel="behavior")
    return style.finish(ax, spines=())


def durations(
    source: Source | Table,
    ax: Axes | None = None,
    *,
    behaviors: Sequence[str] | None = None,
    annotator: str | None = None,
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw the distribution of bout durations: for each behavior, the share of bouts that are at most this long.

    Parameters
    ----------
    source : annotations, or table
        Annotation, Recording, Dataset, recordings, a mapping, or rows with ``behavior`` and ``seconds``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    behaviors : sequence of str, optional
        Default: all except the background.
    annotator : str, optional
        Which annotator of each recording.
    colors : mapping, optional
        Color of each behavior.

    Examples
    --------
    >>> import ethobench as eb
    >>> eb.plot.durations(annotation).get_xlabel()
    'bout duration (s)'
    """
    rows = source if isinstance(source, list) and source and isinstance(source[0], dict) else None
    shades: dict[str, str] = {}
    if rows is None:
        rows = tables.duration_table(source, behaviors=behaviors, annotator=annotator)  # type: ignore[arg-type]
        annotations = tables.named_annotations(source, annotator)  # type: ignore[arg-type]
        shades = {n: style.hex_color(c) for n, c in behavior_colors(annotations.values(), "light").items()}
    by_behavior: dict[str, list[float]] = {}
    for row in rows:
        by_behavior.setdefault(str(row["behavior"]), []).append(float(row["seconds"]))
    if not by_behavior:
        raise EthobenchError("there are no bouts with a duration to draw")
    shades = {**style.series_colors(by_behavior), **shades} | {n: style.hex_color(c) for n, c in (colors or {}).items()}
    ax = style.get_axes(ax, height_mm=62)
    from matplotlib.lines import Line2D

    handles = []
    for name, seconds in by_behavior.items():
        x = np.sort(seconds)
        y = np.arange(1, len(x) + 1) / len(x)
        kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), 500)).astype(np.int64))
        ax.step([x[0], *x[kept]], [0, *(100 * y[kept])], where="post", color=shades[name], linewidth=1.2)
        median = f"{np.median(x):.3g} s"
        handles.append(Line2D([], [], color=shades[name], linewidth=1.6, label=f"{style.label(name)} ({median}, n = {len(x):,})"))
    ax.set_xscale("log")
    _log_ticks(ax, [value for seconds in by_behavior.values() for value in (min(seconds), max(seconds))])
    ax.set(xlabel="bout duration (s)", ylabel="cumulative share of bouts (%)", ylim=(0, 102))
    ax.axhline(50, color=style.RULE, linewidth=0.6, linestyle=(0, (3, 2)), zorder=0)
    legend = style.add_legend(ax, handles)
    return style.finish(ax, legend=legend)


def _log_ticks(ax: Axes, values: Sequence[float]) -> None:
    """Label a logarithmic time axis with plain numbers."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    low, high = min(values) / 1.2, max(values) * 1.2
    candidates = [m * 10.0**e for e in range(-4, 7) for m in (1, 2, 5)]
    ticks = [t for t in candidates if low <= t <= high]
    if len(ticks) > 7:
        ticks = [t for t in ticks if f"{t:e}"[0] == "1"]
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(ticks, [f"{t:,.6g}" if t < 1e5 else f"{t:.0e}" for t in ticks])


def _occurring(annotations: Mapping[str, Annotation], behaviors: Sequence[str] | None) -> list[str]:
    joined = tables.joined(annotations.values())
    if behaviors is not None:
        for name in behaviors:
            joined.code(name)
        return list(behaviors)
    background = {a.ethogram.background_name for a in annotations.values()}
    used = {a.ethogram[int(code)].name for a in annotations.values() for code in np.unique(a.behavior)}
    names = [name for name in joined.names if name in used and name not in background]
    return names or [name for name in joined.names if name not in background] or list(joined.names)


def _end(annotations: Mapping[str, Annotation], start: float, stop: float | None) -> float:
    end = max(a.duration for a in annotations.values()) if stop is None else stop
    if not 0 <= start < end:
        raise ParameterError(f"the time axis must have a length: `start` is {start:g} s, `stop` {end:g} s")
    return end


def _lane(ax: Axes, annotation: Annotation, low: float, height: float) -> None:
    """Draw the observed time of a row as a pale band, unobserved time hatched."""
    ax.broken_barh([(0, annotation.duration)], (low, height), facecolor=LANE["light"], zorder=1)
    hidden = tables.unobserved_spans(annotation)
    if len(hidden):
        start, length = merge_spans(hidden[:, 0], hidden.sum(axis=1), annotation.duration)
        spans = np.stack((start, length - start), axis=1).tolist()
        ax.broken_barh(spans, (low, height), facecolor="white", edgecolor="#b4bac1", hatch="//////", linewidth=0, zorder=1)


def _bouts(ax: Axes, annotation: Annotation, behavior: str, low: float, height: float, color: str, shown: float) -> None:
    spans = annotation.spans(behavior)
    start, stop = spans.start / annotation.rate, spans.stop / annotation.rate
    is_point = stop <= start
    if is_point.any():
        at, _ = merge_spans(start[is_point], start[is_point], shown)
        ax.vlines(at, low, low + height, color=color, linewidth=0.8, zorder=2)
    start, stop = merge_spans(start[~is_point], stop[~is_point], shown)
    if len(start):
        # a bout of a frame in an hour is narrower than any printer's dot: a hairline keeps it visible
        ax.broken_barh(
            np.stack((start, stop - start), axis=1).tolist(), (low, height), facecolor=color, edgecolor=color, linewidth=0.15, zorder=2
        )


def merge_spans(start: Any, stop: Any, shown: float, limit: int = MAX_SPANS) -> tuple[Any, Any]:
    """Merge sorted spans whose gaps are too narrow to be seen, if there are more than `limit`; at most about `limit` remain.

    >>> starts, stops = merge_spans(np.arange(0, 10, 0.001), np.arange(0, 10, 0.001) + 0.0005, 10.0, limit=100)
    >>> len(starts) <= 100, float(stops[-1]) >= 9.999
    (True, True)
    """
    if len(start) <= limit:
        return start, stop
    step = shown / limit
    longest = np.maximum.accumulate(stop)
    is_new = np.concatenate(([True], start[1:] - longest[:-1] > step))
    first = np.flatnonzero(is_new)
    return start[first], np.maximum.reduceat(stop, first)


def _time_axis(ax: Axes, start: float, end: float) -> None:
    most = max(2, int(style.axes_width(ax) / (5.0 * style.text_size(ax))))
    step = next((s for s in STEPS if (end - start) / s <= most), STEPS[-1] * np.ceil((end - start) / most / STEPS[-1]))
    ticks = np.arange(np.ceil(start / step - 1e-9), end / step + 1e-9) * step
    ax.set_xlim(start, end)
    ax.set_xticks(ticks, [clock_text(t, 1 if step < 1 else 0) for t in ticks])
    ax.set_xlabel("time (min:s)" if end < 3600 else "time (h:min:s)")


def _name_rows(ax: Axes, names: Any) -> None:
    """Name the rows, the first at the top; of many, as many as fit."""
    names = list(names)
    shown = len(names) <= 60
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_yticks(range(len(names)) if shown else [], [style.label(name) for name in names] if shown else [])
    if not shown:
        ax.set_ylabel(f"{len(names)} rows")
