"""Tables of the commands: at most as wide as the terminal, and never wider than 80 columns elsewhere.

The width is that of the terminal, or the environment variable ``COLUMNS``, or 80 if the output is not a terminal. Numbers are right-aligned
and never broken. Long names are continued on the next line. A table with too many columns is continued below, with its names
repeated. With ``--wide`` there is no limit.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

from ethobench.cli.output import echo, make_visible, secho
from ethobench.core.messages import text_for_command_line

DEFAULT_WIDTH = 80
MIN_WIDTH = 40
MIN_TEXT_WIDTH = 8
INDENT = "  "
GAP = "  "
BREAK_AFTER = " _-/.,:;|"
UNDEFINED = "-"


class Number(str):
    """A number as text, such as ``.62`` or ``.55-.70``: right-aligned, never broken."""

    __slots__ = ()


def line_width() -> int:
    """Return the number of columns: of the variable COLUMNS, else of the terminal, else 80."""
    return max(MIN_WIDTH, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def format_score(value: float | None, digits: int = 2) -> Number:
    """Format a score without the zero before the decimal point.

    >>> format_score(0.618), format_score(-0.05, 3), format_score(1.0), format_score(float("nan"))
    ('.62', '-.050', '1.00', '-')
    """
    if value is None or not isfinite(value):
        return Number(UNDEFINED)
    text = f"{value:,.{digits}f}"
    text = text.removeprefix("-") if float(text.replace(",", "")) == 0 else text
    return Number(text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text)


def format_interval(interval: Sequence[float] | None, digits: int = 2) -> Number:
    """Format the ends of an interval; empty if there is none.

    >>> format_interval((0.75, 0.884)), format_interval((-0.84, 0.05)), format_interval(None)
    ('.75-.88', '-.84 to .05', '')
    """
    if interval is None:
        return Number("")
    low, high = (format_score(end, digits) for end in interval)
    return Number(f"{low} to {high}" if "-" in low + high else f"{low}-{high}")


def format_with_interval(value: float | None, interval: Sequence[float] | None, *, wide: bool = False) -> Number:
    r"""Format a score with its interval below it; with three digits and beside it in wide tables.

    >>> format_with_interval(0.618, (0.55, 0.7)), format_with_interval(0.618, (0.55, 0.7), wide=True)
    ('.62\n.55-.70', '.618 [.55, .70]')
    """
    text = format_score(value, 3 if wide else 2)
    if interval is None:
        return text
    low, high = (format_score(end) for end in interval)
    return Number(f"{text} [{low}, {high}]" if wide else f"{text}\n{format_interval(interval)}")


def format_number(value: float | None, digits: int = 1) -> Number:
    """Format a number with a fixed number of decimals.

    >>> format_number(1234.56)
    '1,234.6'
    """
    return Number(UNDEFINED if value is None or not isfinite(value) else f"{value:,.{digits}f}")


def format_percent(share: float | None) -> Number:
    """Format a share in percent with one decimal, for columns whose header has the unit.

    >>> format_percent(0.1088)
    '10.9'
    """
    return Number(UNDEFINED if share is None or not isfinite(share) else f"{100 * share:.1f}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", wide: bool = False, n_groups: int = 0) -> None:
    """Print a table.

    Parameters
    ----------
    columns : sequence of str
        Headers. Long ones are broken at spaces.
    rows : iterable of sequence
        Cells: text; `Number` for text that is right-aligned and never broken; numbers, which are formatted; None for undefined values.
    title : str
        A line above the table.
    wide : bool
        Do not limit the width.
    n_groups : int
        Number of columns at the left which become lines between the rows if the table is too wide.
    """
    width = None if wide else line_width()
    if title:
        for line in wrap_text(title, width or len(title) + 1):
            secho(line, bold=True)
        echo()
    for line in layout_table(columns, rows, width, n_groups):
        echo(line)
    echo()


def print_wrapped(lines: Iterable[str], indent: str = INDENT, *, err: bool = False, fg: str | None = None) -> None:
    """Print lines of text within the width of the terminal; continued lines are indented further. `fg` is a color."""
    for line in map(text_for_command_line, lines):
        for number, text in enumerate(wrap_text(line, max(MIN_TEXT_WIDTH, line_width() - len(indent) - 2))):
            secho(f"{indent}{'  ' if number else ''}{text}", err=err, fg=fg)


def layout_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int | None = None, n_groups: int = 0) -> list[str]:
    r"""Return the lines of a table; parameters as of `print_table`, and the maximum width.

    >>> print("\n".join(layout_table(["behavior", "F1"], [["rear", 0.5], ["groom", None]])))
      behavior    F1
      ──────────────
      rear      .500
      groom        -
    """
    body = [[_format_cell(cell) for cell in row] for row in rows]
    columns = [make_visible(column) for column in columns]
    widths = _column_widths(columns, body)
    headings: list[list[str]] = [[] for _ in body]
    if width is not None and n_groups and _total_width(widths) > width:
        headings = _group_headings(columns[:n_groups], [row[:n_groups] for row in body], width)
        columns, body = columns[n_groups:], [row[n_groups:] for row in body]
        widths = _column_widths(columns, body)
    is_number = [_is_number_column(row[k] for row in body) for k in range(len(columns))]
    if width is not None and _total_width(widths) > width:
        widths = _narrow_text(_column_widths(columns, body, break_headers=True), is_number, width)
    blocks = [[*range(len(columns))]] if width is None else _split_columns(widths, is_number, width)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        sizes, right = [widths[k] for k in block], [is_number[k] for k in block]
        lines += _layout_block([columns[k] for k in block], [[row[k] for k in block] for row in body], sizes, right, headings)
    return lines


def _column_widths(columns: Sequence[str], body: Sequence[Sequence[str]], *, break_headers: bool = False) -> list[int]:
    """Return the width of the widest cell or header of each column; of the widest word of headers that are broken."""
    widths = []
    for k, column in enumerate(columns):
        header = max(map(_cell_width, column.split()), default=0) if break_headers else _cell_width(column)
        widths.append(max([header, *(_cell_width(line) for row in body for line in row[k].split("\n"))]))
    return widths


def _group_headings(columns: Sequence[str], names: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return the lines above each row: the names of its group, above the first row of the group."""
    headings: list[list[str]] = []
    previous: Sequence[str] | None = None
    for row in names:
        text = ", ".join(f"{column} {name}" for column, name in zip(columns, row, strict=True) if name)
        lines = [INDENT + line for line in wrap_text(text, width - len(INDENT))]
        headings.append([] if row == previous else lines if previous is None else ["", *lines])
        previous = row
    return headings


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns, after a space or a separator of names where possible.

    >>> wrap_text("investigation of the object", 16), wrap_text("mouse12_day3_camera1", 13)
    (['investigation of', 'the object'], ['mouse12_day3_', 'camera1'])
    """
    lines = []
    rest = make_visible(text)
    while _cell_width(rest) > width:
        size = _prefix_length(rest, width)
        fits_at_space = size < len(rest) and rest[size] == " "
        cut = size if fits_at_space else max((k + 1 for k in range(size) if rest[k] in BREAK_AFTER), default=0)
        at_space = max((k + 1 for k in range(size) if rest[k] == " "), default=0)
        cut = at_space if not fits_at_space and at_space > size // 3 else cut
        cut = cut if cut > size // 3 else size
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*lines, rest]


def _format_cell(cell: Any) -> str:
    if cell is None:
        return Number(UNDEFINED)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return Number(f"{cell:,}")
    if isinstance(cell, float):
        return format_score(cell, 3)
    if isinstance(cell, Number):
        return cell
    return make_visible(str(cell))


def _is_number_column(cells: Iterable[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return all(isinstance(cell, Number) for cell in filled) if filled else True


def _narrow_text(widths: Sequence[int], is_number: Sequence[bool], width: int) -> list[int]:
    """Take the width that is missing from the widest text columns."""
    narrowed = list(widths)
    while _total_width(narrowed) > width:
        candidates = [k for k, number in enumerate(is_number) if not number and narrowed[k] > MIN_TEXT_WIDTH]
        if not candidates:
            break
        narrowed[max(candidates, key=lambda k: narrowed[k])] -= 1
    too_narrow = _total_width(narrowed) > width
    if too_narrow:  # the table is continued below, so that names may be wider again
        names = [k for k, number in enumerate(is_number) if not number]
        limit = max(MIN_TEXT_WIDTH, (width // 2) // max(1, len(names)))
        narrowed = [min(size, limit) if k in names else size for k, size in enumerate(widths)]
    return narrowed


def _split_columns(widths: Sequence[int], is_number: Sequence[bool], width: int) -> list[list[int]]:
    """Distribute columns over tables below each other; the text columns at the left are repeated."""
    n_names = next((k for k, number in enumerate(is_number) if number), min(1, len(widths)))
    while n_names > 1 and _total_width(widths[:n_names]) > width // 2:
        n_names -= 1
    names = list(range(n_names))
    blocks = [names.copy()]
    for k in range(n_names, len(widths)):
        if len(blocks[-1]) > n_names and _total_width([widths[j] for j in (*blocks[-1], k)]) > width:
            blocks.append(names.copy())
        blocks[-1].append(k)
    return blocks


def _layout_block(
    columns: Sequence[str], body: Sequence[Sequence[str]], sizes: Sequence[int], right: Sequence[bool], headings: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Yield the header, a rule and the rows; `right` says which columns are right-aligned."""
    headers = [wrap_text(column, size) for column, size in zip(columns, sizes, strict=True)]
    height = max((len(lines) for lines in headers), default=0)
    yield from _join_cells([[""] * (height - len(lines)) + lines for lines in headers], sizes, right)
    yield INDENT + _rule() * (_total_width(sizes) - len(INDENT))
    for row, heading in zip(body, headings, strict=True):
        yield from heading
        cells = [
            cell.split("\n") if is_right else [line for text in cell.split("\n") for line in wrap_text(text, size)]
            for cell, size, is_right in zip(row, sizes, right, strict=True)
        ]
        yield from _join_cells(cells, sizes, right)


def _join_cells(cells: Sequence[Sequence[str]], sizes: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    for number in range(max((len(lines) for lines in cells), default=0)):
        parts = []
        for lines, size, is_right in zip(cells, sizes, right, strict=True):
            text = lines[number] if number < len(lines) else ""
            padding = " " * (size - _cell_width(text))
            parts.append(padding + text if is_right else text + padding)
        yield (INDENT + GAP.join(parts)).rstrip()


def _total_width(widths: Sequence[int]) -> int:
    return len(INDENT) + sum(widths) + len(GAP) * max(0, len(widths) - 1)


def _cell_width(text: str) -> int:
    """Return the number of columns of a text on a terminal; East Asian characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _prefix_length(text: str, width: int) -> int:
    """Return the number of characters that fit into a width; at least one."""
    if text.isascii():
        return width
    size = total = 0
    for character in text:
        total += _cell_width(character)
        if total > width:
            break
        size += 1
    return max(1, size)


def _rule() -> str:
    """Return the character of horizontal lines that the output can encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        "─".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "-"
    return "─"
