"""Tables with one row per frame: reading, writing, and the distinction between absent and unobserved behaviors."""

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
from ethobench.core.messages import Message, ReaderOption, rate_option
from ethobench.formats.size_limits import check_table
from ethobench.formats.tables import format_time
from ethobench.formats.text import duplicates, guess_delimiter, has_spaced_cells, is_number, read_text, strip_cells

if TYPE_CHECKING:
    import pandas as pd

UNOBSERVED = -1  # label of an unobserved frame
MISSING = ("", "NaN", "nan", "NA")
FRAME_NAMES = frozenset({"frame", "frames", "frame number", "frame_number", "frame_id", "frameid", "index", "frame index", "frame_index"})
TIME_NAMES = frozenset({"time", "time_s", "time (s)", "times", "t", "seconds", "sec", "timestamp", "timestamps"})
LABEL_NAMES = frozenset(
    {"label", "labels", "behavior", "behaviour", "annotation", "annotations", "class", "code", "state", "action", "behavior_code"}
)
NUMERIC_LABELS = Note(Message("labels are numbers without names; name them with ", ReaderOption("behaviors")), code="numeric-labels")
YES, NO = frozenset({"1", "1.0", "true", "t", "yes"}), frozenset({"0", "0.0", "false", "f", "no"})


@dataclass
class FrameTable:
    """A table with one row per frame.

    Attributes
    ----------
    path : Path
    header : list of str
    cells : DataFrame
        Columns are numbered as in the header. Blank cells are NaN.
    first : int
        One-based line of the first row.
    notes : list of Note
    lines : array of int, optional
        One-based line of each row, if there are blank lines between rows.
    """

    path: Path
    header: list[str]
    cells: pd.DataFrame
    first: int
    notes: list[Note] = field(default_factory=list)
    lines: NDArray[np.int64] | None = None

    def location(self, row: int) -> str:
        """Return the location of a row in the file, for messages."""
        return f"row {self.first + row if self.lines is None else self.lines[row]}"

    @property
    def index(self) -> int | None:
        """Index of the column with frame numbers or times: 0 if the first column is one, else None."""
        return 0 if is_index(self.header[0]) else None


def is_index(name: str) -> bool:
    """Return whether a column of this name holds frame numbers or times."""
    lower = name.strip().lower()
    return not lower or lower.startswith("unnamed:") or lower in FRAME_NAMES or lower in TIME_NAMES


def read_frame_table(path: Path, *, as_text: bool = False) -> FrameTable:
    """Read a delimited table with one row per frame.

    Parameters
    ----------
    path : Path
    as_text : bool
        Keep cells as text, for tables of labels.
    """
    import pandas as pd

    text = read_text(path)
    body = text.rstrip(" \n")
    notes = []
    spare = text.count("\n", len(body)) - 1
    if spare > 0:
        notes.append(Note(f"ignored {spare} empty lines at the end", code="ignored-lines"))
    delimiter = guess_delimiter(body)
    if has_spaced_cells(body, delimiter):
        body = _stripped(path, body, delimiter)
    skip, header = _header(path, body, delimiter)
    lines = body.count("\n") + 1 - skip
    width = len(header)
    if body.count(delimiter) != (lines + 1) * (width - 1) or '"' in body:
        width, more_notes = _check_widths(path, body, delimiter, skip, width)
        notes += more_notes
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
        raise FormatError(path, f"not a valid table ({str(error).strip()})") from None
    if not len(cells):
        raise FormatError(path, "the table has a header but no rows")
    table = FrameTable(path, header, cells.iloc[:, : len(header)], skip + 1, notes)
    if len(header) > 1 and "\n\n" in body:
        _drop_blank_lines(table, body.split("\n")[skip:])
    return _with_index_first(table)


def index_first(header: Sequence[str]) -> list[str]:
    """Return column names with the column of frame numbers or times first, if exactly one column is named so."""
    order = _index_first_order(header)
    return [header[i] for i in order]


def _index_first_order(header: Sequence[str]) -> list[int]:
    order = list(range(len(header)))
    named = [i for i, name in enumerate(header) if name.strip().lower() in FRAME_NAMES | TIME_NAMES]
    if header and len(named) == 1 and not is_index(header[0]):
        order.insert(0, order.pop(named[0]))
    return order


def _with_index_first(table: FrameTable) -> FrameTable:
    """Move the column of frame numbers or times to the front, unless it holds text or, like a column of a behavior, only 0 and 1."""
    order = _index_first_order(table.header)
    if not order or order[0] == 0:
        return table
    try:
        numbers = table.cells[order[0]].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return table
    if not (np.diff(numbers) > 0).all() and np.isin(numbers[~np.isnan(numbers)], (UNOBSERVED, 0, 1)).all():
        return table
    cells = table.cells[order]
    cells.columns = list(range(len(order)))
    return FrameTable(table.path, [table.header[i] for i in order], cells, table.first, table.notes, table.lines)


def _drop_blank_lines(table: FrameTable, lines: Sequence[str]) -> None:
    """Drop blank lines between rows if an index states the frame of each row; otherwise they may be frames, which is an error."""
    blank = np.array([not line for line in lines])
    if len(blank) != len(table.cells) or not blank.any():  # lengths differ if cells contain line breaks
        return
    if is_index(table.header[_index_first_order(table.header)[0]]):
        table.cells = table.cells[~blank].reset_index(drop=True)
        table.lines = np.flatnonzero(~blank) + table.first
        return
    message = "blank line between rows; delete it, or fill in the cells of its frame"
    raise FormatError(table.path, message, table.location(int(np.flatnonzero(blank)[0])))


def _stripped(path: Path, body: str, delimiter: str) -> str:
    try:
        return strip_cells(body, delimiter).removesuffix("\n")
    except csv.Error as error:
        raise FormatError(path, str(error)) from None


def binary(table: FrameTable, column: int) -> NDArray[np.int8]:
    """Return a column of 0 and 1, with `UNOBSERVED` for blank cells and -1; raise `FormatError` for anything else."""
    series = table.cells[column]
    if series.dtype.kind in "biuf":
        values = series.to_numpy(dtype=np.float64)
        bad = ~(np.isnan(values) | (values == 0) | (values == 1) | (values == UNOBSERVED))
        labels = np.where(np.isnan(values), UNOBSERVED, values)
    else:
        text = [UNOBSERVED if blank else str(cell).strip().lower() for cell, blank in zip(series.tolist(), series.isna(), strict=True)]
        label_of: dict[Any, int] = {UNOBSERVED: UNOBSERVED, "-1": UNOBSERVED, **dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0)}
        labels = np.array([label_of.get(cell, 2) for cell in text], dtype=np.float64)
        bad = labels == 2
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        value, name = series.iloc[row], table.header[column]
        is_probability = isinstance(value, float) and 0 < value < 1
        problem = f"{value!s} in column {name!r} is neither 0 nor 1"
        if is_probability:
            problem = f"{value!s} in column {name!r} looks like a probability; only 0 and 1 can be read as bouts"
        raise FormatError(table.path, problem, table.location(row))
    return labels.astype(np.int8)


def annotation_of(values: NDArray[np.int8], ethogram: Ethogram, rate: float) -> tuple[Annotation, list[Note]]:
    """Return an annotation from an array of 0, 1 and `UNOBSERVED` of shape (n_frames, n_behaviors), and notes on the background."""
    values = np.asfortranarray(values)
    names = ethogram.names
    spans = [iv.from_mask(values[:, code] == 1) for code in range(len(names))]
    start = np.concatenate([s.start for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    stop = np.concatenate([s.stop for s in spans]) if spans else np.zeros(0, dtype=np.int64)
    behavior = np.repeat(np.arange(len(spans)), [len(s.start) for s in spans])
    order = np.lexsort((behavior, start))
    observed = None
    if (values == UNOBSERVED).any():
        observed = _observed({name: iv.from_mask(values[:, code] != UNOBSERVED) for code, name in enumerate(names)})
    annotation = Annotation.from_bouts(start[order], stop[order], behavior[order], ethogram, rate, len(values), observed=observed)
    return annotation, _contradictions(values, ethogram)


def frames_of(annotation: Annotation) -> NDArray[np.int8]:
    """Return an array of 0, 1 and `UNOBSERVED` of shape (n_frames, n_behaviors), the inverse of `annotation_of`."""
    frames = annotation.to_frames().astype(np.int8)
    if not annotation.observed.is_complete(annotation.n_frames):
        for code, name in enumerate(annotation.ethogram.names):
            is_observed = iv.to_mask(annotation.observed.of(name), annotation.n_frames)
            frames[~is_observed & (frames[:, code] == 0), code] = UNOBSERVED
    return frames


def index_cells(kind: str, annotation: Annotation) -> list[tuple[str, list[Any]]]:
    """Return the index column to write, as its name and cells; empty for "none"."""
    if kind == "none":
        return []
    if kind == "frame":
        return [("frame", list(range(annotation.n_frames)))]
    if kind == "time":
        return [("time", [format_time(i / annotation.rate) for i in range(annotation.n_frames)])]
    raise EthobenchError(f"`index` must be none, frame or time, got {kind!r}")


def rate_notes(title: str, kind: str, rate: float) -> list[Note]:
    """Return a note that a file without times does not store its rate; no note if the index is "time"."""
    message = Message(f"{title} does not store the frame rate; read it with ", rate_option(rate))
    return [] if kind == "time" else [Note(message, code="lost-rate")]


def behavior_names(behaviors: Sequence[str] | str) -> list[str]:
    """Return the names in a `behaviors=` option, which is a list or a comma-separated text."""
    names = behaviors.split(",") if isinstance(behaviors, str) else [str(name) for name in behaviors]
    return [name.strip() for name in names]


def _header(path: Path, body: str, delimiter: str) -> tuple[int, list[str]]:
    """Return the number of lines above the first row, and the cells of the header."""
    for number, line in enumerate(body.split("\n", 200)[:200]):
        if not line.strip() or line.startswith("#"):
            continue
        header = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        while len(header) > 1 and not header[-1]:
            header.pop()
        check_table(path, body.count("\n") - number, len(header), len(body))
        repeated = sorted(duplicates(header))
        if repeated:
            raise FormatError(path, f"duplicate column {repeated[0]!r}", "header")
        if all(is_number(cell) for cell in header):
            raise FormatError(path, "expected a header with column names, got numbers", f"row {number + 1}")
        return number + 1, header
    raise FormatError(path, "no header row")


def _check_widths(path: Path, body: str, delimiter: str, skip: int, width: int) -> tuple[int, list[Note]]:
    """Return the number of cells of the longest row; longer rows than the header are an error, shorter ones a note."""
    short: list[int] = []
    widest = width
    reader = csv.reader(io.StringIO(body), delimiter=delimiter)
    try:
        for row in reader:
            if reader.line_num <= skip or len(row) == width or not row:
                continue
            if any(cell.strip() for cell in row[width:]):
                raise FormatError(path, f"{len(row)} cells, but the header has {width}", f"row {reader.line_num}")
            widest = max(widest, len(row))
            if len(row) < width and width > 1:
                short.append(reader.line_num)
    except csv.Error as error:
        raise FormatError(path, str(error), f"row {reader.line_num}") from None
    if not short:
        return widest, []
    more = f" ({len(short)} such rows)" if len(short) > 1 else ""
    message = f"fewer than {width} cells (is the file truncated?); missing cells are read as unobserved{more}"
    return widest, [Note(message, f"row {short[0]}", "short-rows")]


def _has_decimal_comma(body: str) -> bool:
    cells = [cell for line in body.split("\n", 20)[1:20] for cell in line.split(";")]
    return any(is_number(cell.replace(",", ".", 1)) for cell in cells if "," in cell)


def _observed(observed_of: dict[str, iv.Intervals]) -> Observed:
    """Return `Observed` with the frames that most behaviors share, and the other behaviors as exceptions."""
    keys = {name: (frames.start.tobytes(), frames.stop.tobytes()) for name, frames in observed_of.items()}
    counts = list(keys.values())
    common = max(counts, key=counts.count)
    typical = next(name for name, key in keys.items() if key == common)
    return Observed(observed_of[typical], {Track(name): frames for name, frames in observed_of.items() if keys[name] != common})


def _contradictions(values: NDArray[np.int8], ethogram: Ethogram) -> list[Note]:
    """Return notes on frames that contradict the background column."""
    if ethogram.background is None or not len(values):
        return []
    name, column = ethogram.background_name, values[:, ethogram.background]
    active = (values == 1).sum(axis=1, dtype=np.int32)
    both = int(((column == 1) & (active > 1)).sum())
    empty = int(((active == 0) & (values != UNOBSERVED).all(axis=1)).sum())
    notes = []
    if both:
        notes.append(Note(f"{both} frames have {name!r} and another behavior; both are kept", code="ambiguous-background"))
    if empty:
        notes.append(Note(f"{empty} frames have no behavior, not even {name!r}; read as {name!r}", code="ambiguous-background"))
    return notes
