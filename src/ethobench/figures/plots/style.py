"""Look of figures for papers: sizes of journals, fonts, colors, and saving as SVG, PDF or PNG.

Text in PDF is embedded as TrueType (``pdf.fonttype`` 42), so that journals and editors accept and edit it. Text in SVG stays text
(``svg.fonttype`` "none"): it can be edited, and is drawn with a font of the machine that opens the file. Use PDF where letters must not
change. Nothing here uses or changes the state of `matplotlib.pyplot`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.text import Text

from ethobench.core.errors import ParameterError
from ethobench.core.files import atomic_path, check_new_path
from ethobench.figures.colors import BACKGROUND, BEHAVIORS, Color
from ethobench.figures.text_drawing import font_families

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

WIDTHS_MM = (89, 120, 183)
"""Widths of one column, one and a half columns and two columns of common journals."""
FORMATS = ("svg", "pdf", "png")
MM_PER_INCH = 25.4
FONT_SIZE = 7.0
DPI = 300
SCREEN_DPI = 140
MAX_LABEL = 28
INK, MUTED, RULE = "#1b2129", "#5b6570", "#c3c9cf"
SERIES = ("#1d5fc4", "#b1491a", "#6b757f", "#1b2129", *BEHAVIORS["light"][2:])
"""Colors of models, annotators and groups; the first four as in the report."""


class JournalFigure(Figure):
    """A matplotlib figure with the text sizes and line widths of a journal; see `figure`. Notebooks show it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as PNG, with the size at which notebooks show it."""
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=2 * SCREEN_DPI)
        width, height = (round(SCREEN_DPI * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


def figure(width_mm: float = 89, height_mm: float | None = None) -> JournalFigure:
    """Create a figure with the width of a journal column. Text has 7 points, and nothing is cut off.

    Parameters
    ----------
    width_mm : float
        Width in millimeters. Common journals use 89 (one column), 120 (one and a half) and 183 (two columns).
    height_mm : float, optional
        Height in millimeters; by default 0.72 of the width, at most 110 mm.

    Returns
    -------
    matplotlib.figure.Figure
        With constrained layout. It does not belong to `matplotlib.pyplot`, so it need not be closed.

    Examples
    --------
    >>> import ethobench as eb
    >>> both = eb.plot.figure(width_mm=183, height_mm=60)
    >>> left, right = both.subplots(1, 2)
    >>> (both.get_size_inches() * 25.4).round(3).tolist()
    [183.0, 60.0]
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    height = min(0.72 * width_mm, 110.0) if height_mm is None else height_mm
    for name, value in (("width_mm", width_mm), ("height_mm", height)):
        if not 10 <= value <= 2000:
            raise ParameterError(f"`{name}` must be between 10 and 2000 millimeters, got {value:g}")
    created = JournalFigure(figsize=(width_mm / MM_PER_INCH, height / MM_PER_INCH), layout="constrained", dpi=150)
    FigureCanvasAgg(created)
    return created


def save(drawn: Axes | Figure, path: str | Path, *, overwrite: bool = False) -> Path:
    """Save a figure as SVG, PDF or PNG (300 dpi), at its exact size. The file appears when it is complete.

    Parameters
    ----------
    drawn : Axes or Figure
        A figure, or any of its axes.
    path : str or Path
        The suffix is the format.
    overwrite : bool
        Whether to replace an existing file.

    Raises
    ------
    ParameterError
        If the suffix is none of these.
    PathExistsError
        If the file exists and `overwrite` is False.

    Examples
    --------
    >>> import ethobench as eb
    >>> axes = eb.plot.ethogram(annotation)
    >>> eb.plot.save(axes, folder / "ethogram.pdf").name
    'ethogram.pdf'
    """
    from matplotlib import rc_context

    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ParameterError(f"a figure is saved as {', '.join(FORMATS)}; {path.name!r} ends with none of them")
    check_new_path(path, overwrite=overwrite)
    full_range = drawn if isinstance(drawn, Figure) else figure_of(drawn)
    options: dict[Any, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "ethobench", "savefig.bbox": None}
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with rc_context(options), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        with atomic_path(path, overwrite=overwrite) as temporary:
            full_range.savefig(temporary, format=kind, metadata=metadata, dpi=DPI)
    return path


def get_axes(ax: Axes | None, *, height_mm: float | None = None) -> Axes:
    """Return the axes to draw on: those given, or new ones in a figure 89 mm wide."""
    return figure(height_mm=height_mm).add_subplot() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes belong to."""
    figure = ax.get_figure()
    if figure is None:
        raise ParameterError("`ax` was removed from its figure; pass axes of a figure")
    return figure.figure  # of a subfigure, the figure that contains it


def finish(ax: Axes, *, spines: Sequence[str] = ("left", "bottom"), legend: Legend | None = None) -> Axes:
    """Give axes the common look. Text from files is drawn as it is, never as mathematics, in fonts that have its characters.

    On a `figure`, text has 7 points and lines are thin; on other figures, the user's sizes are kept.
    """
    for side, spine in ax.spines.items():
        spine.set_visible(side in spines)
        spine.set(color=INK, linewidth=0.6)
    if isinstance(figure_of(ax), JournalFigure):
        ax.tick_params(labelsize=FONT_SIZE - 0.5, width=0.6, pad=2)
        ax.tick_params(axis="x", length=2.5 if "bottom" in spines else 0)
        ax.tick_params(axis="y", length=2.5 if "left" in spines else 0)
        for text in (ax.xaxis.label, ax.yaxis.label):
            text.set_fontsize(FONT_SIZE)
        for title in (ax.title, ax._left_title):  # type: ignore[attr-defined]
            title.set_fontsize(FONT_SIZE + 1)
        for text in legend.get_texts() if legend is not None else ():
            text.set_fontsize(FONT_SIZE - 0.5)
    for text in [*ax.findobj(Text), *(legend.findobj(Text) if legend is not None else ())]:
        protect(text)
    return ax


def protect(text: Any) -> None:
    """Draw a text literally, in fonts that have its characters."""
    text.set_parse_math(False)
    if not text.get_text().isascii():
        text.set_fontfamily(font_families([text.get_text()]))


def text_size(ax: Axes, smaller: float = 0.0) -> float:
    """Return the size in points of text inside axes."""
    from matplotlib import rcParams

    return (FONT_SIZE if isinstance(figure_of(ax), JournalFigure) else 0.8 * rcParams["font.size"]) - smaller


def label(name: object, length: int = MAX_LABEL) -> str:
    r"""Return a name from a file as a label: one line without control characters, shortened in the middle.

    >>> label("a\nb"), label("x" * 40, 9)
    ('a b', 'xxxx…xxxx')
    """
    text = " ".join("".join(c if c.isprintable() or c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in str(name)).split())
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def add_legend(ax: Axes, handles: Iterable[Any], *, columns: int = 0, outside: bool = True) -> Legend | None:
    """Add a legend above the axes, without a frame; None if there is nothing to explain."""
    handles = list(handles)
    if not handles:
        return None
    position: dict[str, Any] = {"loc": "best"}
    if outside:
        columns = columns or _legend_columns(ax, [handle.get_label() for handle in handles])
        position = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
    return ax.legend(
        handles=handles, ncols=columns or 1, frameon=False, handlelength=1.0, handletextpad=0.5, columnspacing=1.1, labelspacing=0.3,
        fontsize=text_size(ax, 0.5), **position
    )  # fmt: skip


def _legend_columns(ax: Axes, names: Sequence[str]) -> int:
    """Return how many entries fit beside each other, by the width of the axes and the lengths of the names."""
    available = axes_width(ax)
    widths = [len(name) * 0.58 * text_size(ax, 0.5) + 3.0 * text_size(ax) for name in names]
    return len(names) if sum(widths) <= available else max(1, min(len(names), int(available / max(widths))))


def axes_width(ax: Axes) -> float:
    """Return the approximate width of axes in points, before the layout is known."""
    return float(ax.get_position(original=True).width * figure_of(ax).get_figwidth() * 72)


def patches(colors: dict[str, str]) -> list[Any]:
    """Return legend entries: a colored square for each name."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=color, label=label(name)) for name, color in colors.items()]


def hex_color(color: Color | str) -> str:
    """Return a color as ``"#244bbf"``."""
    return color if isinstance(color, str) else "#{:02x}{:02x}{:02x}".format(*color)


def series_colors(names: Iterable[str]) -> dict[str, str]:
    """Assign a color to each model, annotator or group, in order; colors repeat after ten."""
    return {name: SERIES[k % len(SERIES)] for k, name in enumerate(names)}


BACKGROUND_COLOR = BACKGROUND["light"]
