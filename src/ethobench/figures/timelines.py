"""Timelines: the bouts of each annotator of a recording over time, as SVG, PDF or PNG."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.files import atomic_path, check_new_path
from ethobench.figures.colors import LANE, Color, behavior_colors
from ethobench.figures.text_drawing import clock_text, font_families

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "pdf", "png")
ROW_HEIGHT = 0.8
MIN_WIDTH, MAX_ROWS = 1e-9, 200
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)


def plot_timeline(
    axes: Axes,
    recording: Recording,
    annotators: Sequence[str] | None = None,
    *,
    start: float = 0.0,
    stop: float | None = None,
    colors: Mapping[str, Color] | None = None,
) -> Axes:
    """Draw the bouts of a recording over time, one row per annotator and subject.

    If behaviors overlap, each row is divided into one line per behavior. Unobserved frames are hatched, point events are ticks.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    recording : Recording
    annotators : sequence of str, optional
        All by default.
    start, stop : float
        Section in seconds; by default the complete recording.
    colors : mapping of str to color, optional
        Red, green and blue (0 to 255) by behavior.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> recording = Recording("day 1", annotations={"anna": annotation, "ben": annotation})
    >>> axes = plot_timeline(Figure().add_subplot(), recording)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['anna', 'ben']
    """
    rows = _rows(recording, annotators)
    shades = {name: tuple(c / 255 for c in color) for name, color in _colors(recording, colors).items()}
    end = max(a.duration for _, _, a in rows) if stop is None else stop
    if not 0 <= start < end:
        raise ParameterError(f"the timeline must have a length: `start` is {start:g} s, `stop` {end:g} s")
    overlapping = [name for name in shades if any(name in a.ethogram and _occurs(a, name) for _, _, a in rows)]
    stacked = any(not a.is_exclusive for _, _, a in rows)
    background = {a.ethogram.background_name for _, _, a in rows}
    lines = [name for name in overlapping if name not in background] if stacked else []
    for number, (_, subject, annotation) in enumerate(rows):
        _draw_row(axes, number, annotation, subject, shades, lines)
    axes.set(xlim=(start, end), ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)))
    axes.set_yticklabels([" · ".join(text for text in (name, subject) if text) for name, subject, _ in rows], parse_math=False)
    step = next((s for s in STEPS if (end - start) / s <= 9), STEPS[-1] * np.ceil((end - start) / 9 / STEPS[-1]))
    ticks = np.arange(np.ceil(start / step - 1e-9), end / step + 1e-9) * step
    axes.set_xticks(ticks, [clock_text(t, 1 if step < 1 else 0) for t in ticks])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time (min:s)" if end < 3600 else "time (h:min:s)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return axes


def write_timeline(
    recording: Recording,
    path: str | Path,
    annotators: Sequence[str] | None = None,
    *,
    start: float = 0.0,
    stop: float | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the timeline of a recording to an SVG, PDF or PNG file, with a legend; parameters as for `plot_timeline`.

    Raises
    ------
    ParameterError
        If the suffix of the file is none of these.
    PathExistsError
        If the file exists and `overwrite` is False.

    Examples
    --------
    >>> recording = Recording("day 1", annotations={"anna": annotation})
    >>> write_timeline(recording, folder / "timeline.svg").name
    'timeline.svg'
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ParameterError(f"a timeline is written as {', '.join(FORMATS)}, got {path.name!r}")
    check_new_path(path, overwrite=overwrite)
    rows = _rows(recording, annotators)
    colors = _colors(recording, None)
    names = [name for name in colors if any(name in a.ethogram and _occurs(a, name) for _, _, a in rows)]
    stacked = any(not a.is_exclusive for _, _, a in rows)
    row_height = max(0.3, 0.09 * len(names)) if stacked else 0.3
    texts = [recording.id, *colors, *(text for name, subject, _ in rows for text in (name, subject))]
    options: dict[Any, Any] = {
        "font.family": font_families(texts),
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "font.size": 9,
        "hatch.linewidth": 0.6,
        "svg.hashsalt": "ethobench",
    }
    with rc_context(options), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # SVG contains text, which the viewer draws with fonts of its machine
        figure = Figure(figsize=(10, min(row_height * len(rows), 40) + 1.3), layout="constrained")
        FigureCanvasAgg(figure)
        axes = plot_timeline(figure.add_subplot(), recording, annotators, start=start, stop=stop, colors=colors)
        axes.set_title(recording.id, loc="left", parse_math=False)
        handles = [Patch(color="#{:02x}{:02x}{:02x}".format(*colors[name]), label=name) for name in names]
        if handles:
            legend = figure.legend(handles=handles, loc="outside lower left", ncols=min(len(handles), 6), frameon=False)
            for text in legend.get_texts():
                text.set_parse_math(False)
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
        with atomic_path(path, overwrite=overwrite) as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata, dpi=150)
    return path


def _rows(recording: Recording, annotators: Sequence[str] | None) -> list[tuple[str, str, Annotation]]:
    """Return annotator, subject and annotation of each row."""
    names = [*recording.annotations] if annotators is None else annotators
    rows = []
    for name in names:
        annotation = recording.annotation(name)
        codes = sorted({int(code) for code in annotation.subject})
        if len(codes) < 2:
            rows.append((name, "" if not codes or codes[0] < 0 else annotation.subjects[codes[0]], annotation))
        for code in codes if len(codes) > 1 else ():
            subject = "" if code < 0 else annotation.subjects[code]
            rows.append((name, subject, annotation.take(np.flatnonzero(annotation.subject == code))))
    if not rows:
        raise EthobenchError(f"recording {recording.id!r} has no annotation, so there is no timeline")
    return rows[:MAX_ROWS]


def _colors(recording: Recording, colors: Mapping[str, Color] | None) -> Mapping[str, Color]:
    return behavior_colors(recording.annotations.values(), "light") if colors is None else colors


def _occurs(annotation: Annotation, name: str) -> bool:
    return bool((annotation.behavior == annotation.ethogram.code(name)).any())


def _draw_row(axes: Axes, row: int, annotation: Annotation, subject: str, shades: Mapping[str, Any], lines: list[str]) -> None:
    rate, top = annotation.rate, row - ROW_HEIGHT / 2
    axes.broken_barh([(0, annotation.duration)], (top, ROW_HEIGHT), facecolor=LANE["light"])
    hidden = iv.complement(annotation.observed.of_all(annotation.ethogram.names, subject or None), annotation.n_frames)
    if len(hidden.start):
        spans = np.stack((hidden.start, hidden.stop - hidden.start), axis=1) / rate
        axes.broken_barh(spans.tolist(), (top, ROW_HEIGHT), facecolor="white", edgecolor="#b4bac1", hatch="////", linewidth=0)
    for code in np.unique(annotation.behavior):
        behavior = annotation.ethogram[int(code)]
        chosen = annotation.behavior == code
        start, stop = annotation.start[chosen] / rate, annotation.stop[chosen] / rate
        height = ROW_HEIGHT / max(len(lines), 1)
        low = top + lines.index(behavior.name) * height if behavior.name in lines else top
        height = height if behavior.name in lines else ROW_HEIGHT
        if code == annotation.ethogram.background and lines:
            continue
        is_point = stop <= start
        if is_point.any():
            axes.vlines(start[is_point], low, low + height, color=shades[behavior.name], linewidth=1.2)
        spans = np.stack((start, stop - start), axis=1)[~is_point]
        if len(spans):
            axes.broken_barh(spans.tolist(), (low, height), facecolor=shades[behavior.name], linewidth=0)
