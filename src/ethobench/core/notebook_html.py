"""How objects show themselves in notebooks: tables and small rasters as HTML, and the colors of behaviors.

All text is escaped and shortened, and the size of the output is bounded, however many bouts, behaviors or recordings there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals

if TYPE_CHECKING:
    from ethobench.core.annotation import Annotation

BEHAVIORS = {
    "light": ("#244bbf", "#9b461c", "#34a496", "#6b3162", "#b68313", "#b578e8", "#067e93", "#72261f"),
    "dark": ("#6999fd", "#cc6a1a", "#86ecd2", "#9e5c8c", "#e5b71a", "#775ad8", "#72c9ea", "#f1838b"),
}
"""Colors of behaviors, the first for the behavior with the longest total duration; the same in reports, figures and the viewer."""
BACKGROUND = {"light": "#aab2ba", "dark": "#69727c"}
LANE = {"light": "#eaecee", "dark": "#2a2f36"}

MAX_TEXT = 120
MAX_ROWS = 40
WIDTH, ROW, LABELS, AXIS = 480, 14, 120, 16  # pixels
MAX_LANES = 12


def html_table(header: Iterable[str], rows: Iterable[Iterable[object]], caption: str, *, max_rows: int = MAX_ROWS) -> str:
    """Return an HTML table for notebooks; all text is escaped, and long tables and texts are shortened.

    Examples
    --------
    >>> html_table(["name"], [["a < b"]], "Names")
    '<table><caption>Names</caption><tr><th>name</th></tr><tr><td>a &lt; b</td></tr></table>'
    """
    head = "".join(f"<th>{_text(cell)}</th>" for cell in header)
    rows = list(rows)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:max_rows])
    more = f"<tr><td>and {len(rows) - max_rows:,} more</td></tr>" if len(rows) > max_rows else ""
    return f"<table><caption>{_text(caption)}</caption><tr>{head}</tr>{body}{more}</table>"


def raster_svg(annotation: Annotation, colors: Mapping[str, int | None]) -> str:
    """Return a small raster as inline SVG: one row for each behavior that occurs, except the background, over time.

    A pixel is colored if the behavior occurs anywhere in it. The pale band is the observed time. At most twelve rows, of at most 240
    rectangles each, are drawn, so the text stays below 100 kB.

    Parameters
    ----------
    annotation : Annotation
    colors : mapping of str to int or None
        Index into the palette by behavior, as `Occurrence.color_indices` returns it.
    """
    if not annotation.n_frames:
        return ""
    used = [code for code in np.unique(annotation.behavior).tolist() if code != annotation.ethogram.background]
    shown = used[:MAX_LANES]
    if not shown:
        return ""
    scale = WIDTH / annotation.n_frames
    visited = _path(annotation.observed.of_any(), scale)
    rows = []
    for row, code in enumerate(shown):
        name = annotation.ethogram[code].name
        index = colors.get(name) or 0
        fill = BEHAVIORS["light"][index % len(BEHAVIORS["light"])]
        label = f'<text x="{LABELS - 6}" y="{row * ROW + 10}" text-anchor="end">{_text(name, 18)}</text>'
        at = f'transform="translate({LABELS} {row * ROW + 2})"'
        bouts = _path(annotation.spans(code), scale)
        rows.append(f'{label}<g {at}><path d="{visited}" fill="{LANE["light"]}"/><path d="{bouts}" fill="{fill}"/></g>')
    height = len(shown) * ROW + AXIS
    ends = (
        f'<text x="{LABELS}" y="{height - 4}">0 s</text>'
        f'<text x="{LABELS + WIDTH}" y="{height - 4}" text-anchor="end">{annotation.duration:,.6g} s</text>'
    )
    more = f"<p>and {len(used) - len(shown)} more behaviors</p>" if len(used) > len(shown) else ""
    width = LABELS + WIDTH + 4
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="sans-serif" font-size="11" fill="currentColor"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="raster of bouts" {size} {style}>{"".join(rows)}{ends}</svg>{more}'
    )


def _path(spans: Intervals, scale: float) -> str:
    """Return spans as the outline of rectangles, merged where they are less than two pixels apart."""
    start = np.floor(spans.start * scale).astype(np.int64)
    stop = np.maximum(np.ceil(spans.stop * scale).astype(np.int64), start + 1)
    merged = iv.union(Intervals(start, stop + 1))
    edges = zip(merged.start.tolist(), (merged.stop - 1).tolist(), strict=True)
    return "".join(f"M{left} 0h{right - left}v{ROW - 4}h{left - right}z" for left, right in edges)


def _text(value: object, length: int = MAX_TEXT) -> str:
    text = str(value)
    return escape(text if len(text) <= length else f"{text[: length - 1]}…")
