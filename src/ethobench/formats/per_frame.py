"""What the formats with one row per frame share: reading fast, and telling "absent" from "not looked at"."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.formats.size_limits import check_table
from ethobench.formats.tables import format_time
from ethobench.formats.text import duplicates, guess_delimiter, has_spaced_cells, is_number, read_text, strip_cells

if TYPE_CHECKING:
    import pandas as pd

HIDDEN = -1
MISSING = ("", "NaN", "nan", "NA")
FRAME_NAMES = frozenset({"frame", "frames", "frame number", "frame_number", "frame_id", "frameid", "index", "frame index", "frame_index"})
TIME_NAMES = frozenset({"time", "time_s", "time (s)", "times", "t", "seconds", "sec", "timestamp", "timestamps"})
LABEL_NAMES = frozenset(
    {"label", "labels", "behavior", "behaviour", "annotation", "annotations", "class", "code", "state", "action", "behavior_code"}
)
YES, NO = frozenset({"1", "1.0", "true", "t", "yes"}), frozenset({"0", "0.0", "false", "f", "no"})


@dataclass
class FrameTable:
    """A table with one row per frame.

    Attributes
    ----------
    path : Path
    header : list of str
    cells : DataFrame
        Columns are numbered as in the header; NaN where a cell is blank.
    first : int
        One-based line of the first row.
    notes : list of Note
    lines : array of int, optional
        One-based line of each row, where blank lines lie between them.
    """

    path: Path
    header: list[str]
    cells: pd.DataFrame
    first: int
    notes: list[Note] = field(default_factory=list)
    lines: NDArray[np.int64] | None = None

    def location(self, row: int) -> str:
        """Say where a row stands in the file."""
        return f"row {self.first + row if self.lines is None else self.lines[row]}"

    @property
    def index(self) -> int | None:
        """The column that counts the rows, if the first one does."""
        return 0 if is_index(self.header[0]) else None


def is_index(name: str) -> bool:
    """Tell whether a column of this name counts frames or gives their times."""
    plain = name.strip().lower()
    return not plain or plain.startswith("unnamed:") or plain in FRAME_NAMES or plain in TIME_NAMES


def read_frame_table(path: Path, *, as_text: bool = False) -> FrameTable:
    """Read a delimited table with one row per frame.

    Parameters
    ----------
    path : Path
    as_text : bool
        Keep cells as text, as labels need it.
    """
    import pandas as pd

    text = read_text(path)
    body = text.rstrip(" \n")
    notes = []
    spare = text.count("\n", len(body)) - 1
    if spare > 0:
        notes.append(Note(f"{spare} empty lines at the end are not read as frames"))
    delimiter = guess_delimiter(body)
    if has_spaced_cells(body, delimiter):
        body = _stripped(path, body, delimiter)
    skip, header = _header(path, body, delimiter)
    lines = body.count("\n") + 1 - skip
    width = len(header)
    if body.count(delimiter) != (lines + 1) * (width - 1) or '"' in body:
        width, more = _check_widths(path, body, delimiter, skip, width)
        notes += more
    try:
        cells = pd.read_csv(
            io.StringIO(body + "\n"),
            sep=delimiter,
            header=None,
            names=list(range(width)),
            index_col=False,
            skiprows=skip,
            skip_blank_lines=False,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=list(MISSING),
            decimal="," if delimiter == ";" and _has_decimal_comma(body) else ".",
            dtype=str if as_text else None,
            low_memory=False,
        )
    except pd.errors.EmptyDataError:
        cells = pd.DataFrame()
    except pd.errors.ParserError as error:
        raise FormatError(path, f"the table is damaged ({str(error).strip()})") from None
    if not len(cells):
        raise FormatError(path, "the table has a header, but no rows")
    table = FrameTable(path, header, cells.iloc[:, : len(header)], skip + 1, notes)
    if len(header) > 1 and "\n\n" in body:
        _drop_blank_lines(table, body.split("\n")[skip:])
    return _with_index_first(table)


def index_first(header: Sequence[str]) -> list[str]:
    """Return the names of columns with the one that counts frames or gives their times in front, if exactly one is named so."""
    order = _index_first_order(header)
    return [header[i] for i in order]


def _index_first_order(header: Sequence[str]) -> list[int]:
    order = list(range(len(header)))
    named = [i for i, name in enumerate(header) if name.strip().lower() in FRAME_NAMES | TIME_NAMES]
    if header and len(named) == 1 and not is_index(header[0]):
        order.insert(0, order.pop(named[0]))
    return order


def _with_index_first(table: FrameTable) -> FrameTable:
    """Move the column of frame numbers or times to the front, unless it holds text, or zeros and ones as a behavior's column does."""
    order = _index_first_order(table.header)
    if not order or order[0] == 0:
        return table
    try:
        numbers = table.cells[order[0]].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return table
    if not (np.diff(numbers) > 0).all() and np.isin(numbers[~np.isnan(numbers)], (HIDDEN, 0, 1)).all():
        return table
    cells = table.cells[order]
    cells.columns = list(range(len(order)))
    return FrameTable(table.path, [table.header[i] for i in order], cells, table.first, table.notes, table.lines)


def _drop_blank_lines(table: FrameTable, lines: Sequence[str]) -> None:
    """Drop blank lines between rows where an index tells the frame of each row; elsewhere it is unclear whether they are frames."""
    blank = np.array([not line for line in lines])
    if len(blank) != len(table.cells) or not blank.any():  # lengths differ where cells have line ends in them
        return
    if is_index(table.header[_index_first_order(table.header)[0]]):
        table.cells = table.cells[~blank].reset_index(drop=True)
        table.lines = np.flatnonzero(~blank) + table.first
        return
    message = "a blank line between the rows of frames: delete it, or fill in the cells of its frame"
    raise FormatError(table.path, message, table.location(int(np.flatnonzero(blank)[0])))


def _stripped(path: Path, body: str, delimiter: str) -> str:
    try:
        return strip_cells(body, delimiter).removesuffix("\n")
    except csv.Error as error:
        raise FormatError(path, str(error)) from None


def binary(table: FrameTable, column: int) -> NDArray[np.int8]:
    """Return a column of zeros and ones, with `HIDDEN` where a cell is blank; anything else is an error."""
    series = table.cells[column]
    if series.dtype.kind in "biuf":
        values = series.to_numpy(dtype=np.float64)
        bad = ~(np.isnan(values) | (values == 0) | (values == 1) | (values == HIDDEN))
        found = np.where(np.isnan(values), HIDDEN, values)
    else:
        text = [HIDDEN if blank else str(cell).strip().lower() for cell, blank in zip(series.tolist(), series.isna(), strict=True)]
        known: dict[Any, int] = {HIDDEN: HIDDEN, "-1": HIDDEN, **dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0)}
        found = np.array([known.get(cell, 2) for cell in text], dtype=np.float64)
        bad = found == 2
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        value, name = series.iloc[row], table.header[column]
        between = isinstance(value, float) and 0 < value < 1
        what = "looks like a probability; only decisions (0 or 1) can be read as bouts" if between else "is neither 0 nor 1"
        raise FormatError(table.path, f"{value!s} in column {name!r} {what}", table.location(row))
    return found.astype(np.int8)


def annotation_of(values: NDArray[np.int8], ethogram: Ethogram, rate: float) -> tuple[Annotation, list[Note]]:
    """Make an annotation from frames of shape (n_frames, n_behaviors) that hold 0, 1 or `HIDDEN`."""
    values = np.asfortranarray(values)
    names = ethogram.names
    spans = [iv.from_mask(values[:, code] == 1) for code in range(len(names))]
    start = np.concatenate([s.start for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    stop = np.concatenate([s.stop for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    behavior = np.repeat(np.arange(len(spans)), [len(s.start) for s in spans])
    order = np.lexsort((behavior, start))
    observed = None
    if (values == HIDDEN).any():
        observed = _observed({name: iv.from_mask(values[:, code] != HIDDEN) for code, name in enumerate(names)})
    made = Annotation.from_bouts(start[order], stop[order], behavior[order], ethogram, rate, len(values), observed=observed)
    return made, _background_notes(values, ethogram)


def frames_of(annotation: Annotation) -> NDArray[np.int8]:
    """Return frames of shape (n_frames, n_behaviors) that hold 0, 1 or `HIDDEN`, as `annotation_of` takes them."""
    frames = annotation.to_frames().astype(np.int8)
    if not annotation.observed.is_complete(annotation.n_frames):
        for code, name in enumerate(annotation.ethogram.names):
            seen = iv.to_mask(annotation.observed.of(name), annotation.n_frames)
            frames[~seen & (frames[:, code] == 0), code] = HIDDEN
    return frames


def index_cells(kind: str, annotation: Annotation) -> list[tuple[str, list[Any]]]:
    """Return the index column to write: "none", "frame" or "time"."""
    if kind == "none":
        return []
    if kind == "frame":
        return [("frame", list(range(annotation.n_frames)))]
    if kind == "time":
        return [("time", [format_time(i / annotation.rate) for i in range(annotation.n_frames)])]
    raise EthobenchError(f"index is none, frame or time, not {kind!r}")


def rate_notes(title: str, kind: str, rate: float) -> list[Note]:
    """Note that a file without times does not tell its rate."""
    return [] if kind == "time" else [Note(f"{title} does not tell the frame rate: give rate={rate:g} when reading it")]


def background_notes(title: str, ethogram: Ethogram) -> list[Note]:
    """Note where readers will guess the background wrongly from the names."""
    name, guess = ethogram.background_name, guess_background(ethogram.names)
    if guess == name:
        return []
    effect = f"{name!r} will read as a behavior like the others" if name else f"{guess!r} will read as background"
    return [Note(f"{title} does not say which behavior is background: {effect}")]


def behavior_names(behaviors: Sequence[str] | str) -> list[str]:
    """Return the names given in a `behaviors=` option, a list or one text with commas."""
    parts = behaviors.split(",") if isinstance(behaviors, str) else [str(name) for name in behaviors]
    return [name.strip() for name in parts]


def named_ethogram(names: Sequence[str]) -> Ethogram:
    """Make an ethogram whose background is guessed from the names."""
    return Ethogram(names, guess_background(names))


def _header(path: Path, body: str, delimiter: str) -> tuple[int, list[str]]:
    """Return how many lines come before the first row, and the header's cells."""
    for number, line in enumerate(body.split("\n", 200)[:200]):
        if not line.strip() or line.startswith("#"):
            continue
        header = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        while len(header) > 1 and not header[-1]:
            header.pop()
        check_table(path, body.count("\n") - number, len(header), len(body))
        twice = sorted(duplicates(header))
        if twice:
            raise FormatError(path, f"column {twice[0]!r} stands twice", "header")
        if all(is_number(cell) for cell in header):
            raise FormatError(path, "the first line holds numbers, where names of columns were expected", f"row {number + 1}")
        return number + 1, header
    raise FormatError(path, "no header was found")


def _check_widths(path: Path, body: str, delimiter: str, skip: int, width: int) -> tuple[int, list[Note]]:
    """Return the widest row's number of cells; refuse rows with more cells than the header names, note shorter ones."""
    short: list[int] = []
    widest = width
    reader = csv.reader(io.StringIO(body), delimiter=delimiter)
    try:
        for row in reader:
            if reader.line_num <= skip or len(row) == width or not row:
                continue
            if any(cell.strip() for cell in row[width:]):
                raise FormatError(path, f"{len(row)} cells where the header has {width}", f"row {reader.line_num}")
            widest = max(widest, len(row))
            if len(row) < width and width > 1:
                short.append(reader.line_num)
    except csv.Error as error:
        raise FormatError(path, str(error), f"row {reader.line_num}") from None
    if not short:
        return widest, []
    more = f" ({len(short)} such rows)" if len(short) > 1 else ""
    return widest, [
        Note(f"fewer than {width} cells: the file may be cut off; what is missing counts as not observed{more}", f"row {short[0]}")
    ]


def _has_decimal_comma(body: str) -> bool:
    cells = [cell for line in body.split("\n", 20)[1:20] for cell in line.split(";")]
    return any(is_number(cell.replace(",", ".", 1)) for cell in cells if "," in cell)


def _observed(seen: dict[str, iv.Intervals]) -> Observed:
    """Take what most behaviors share as the rule, the others as exceptions."""
    keys = {name: (where.start.tobytes(), where.stop.tobytes()) for name, where in seen.items()}
    counts = list(keys.values())
    common = max(counts, key=counts.count)
    rule = next(name for name, key in keys.items() if key == common)
    return Observed(seen[rule], {Track(name): where for name, where in seen.items() if keys[name] != common})


def _background_notes(values: NDArray[np.int8], ethogram: Ethogram) -> list[Note]:
    """Note frames that contradict the background column."""
    if ethogram.background is None or not len(values):
        return []
    name, column = ethogram.background_name, values[:, ethogram.background]
    active = (values == 1).sum(axis=1, dtype=np.int32)
    both = int(((column == 1) & (active > 1)).sum())
    empty = int(((active == 0) & (values != HIDDEN).all(axis=1)).sum())
    notes = []
    if both:
        notes.append(Note(f"{both} frames are {name!r} and something else at once; both are kept"))
    if empty:
        notes.append(Note(f"{empty} frames name no behavior, not even {name!r}; they count as {name!r}"))
    return notes
