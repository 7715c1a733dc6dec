"""Coding sheets of Solomon Coder as CSV: a time column on a regular grid, and one column per category.

Behaviors of a category exclude each other; behaviors that can occur simultaneously are in different categories. Each category is an
entry: an exclusive annotation at the rate of the grid. A blank cell is an observed frame without a behavior. If all categories are blank
from some row to the end, the coder had stopped, and those rows are unobserved. So are NaN cells and rows that are missing from the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_logs
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import frames_rate, origin_of
from ethobench.formats.frame_clock import at_rate
from ethobench.formats.size_limits import is_too_large
from ethobench.formats.tables import Table, format_time, read_table, write_table
from ethobench.formats.text import Head, duplicates, parse_number

TITLE = "Solomon Coder sheet"
TIME = "Time"
ONLY_CATEGORY = "Behaviour"
MISSING = ("nan", "na", "n/a")
MAX_JITTER = 0.25  # frames
BYTES_PER_FRAME = 16  # memory needed to build an annotation


@register_format("solomon")
class Solomon(Format):
    """One row per time step, one column per category."""

    title = TITLE
    suffixes = (".csv",)
    keeps = ("observed", "length")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        if len(head.header) < 2 or TIME not in head.header:
            return 0.0
        i = head.header.index(TIME)
        rows = [[row[i], *row[:i], *row[i + 1 :]] for row in head.body if len(row) == len(head.header)]
        steps = np.diff([_number(row[0]) for row in rows])
        if not len(steps) or not (steps > MAX_JITTER * np.median(steps)).all():
            return 0.0
        cells = {cell.strip() for row in rows for cell in row[1:]} - {""}
        if any(np.isfinite(_number(cell)) for cell in cells):
            return 0.0
        return 0.85 if cells else 0.6

    def entries(self, path: Path) -> list[str]:
        return _categories(_table(path))

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        table = _table(path)
        categories = _categories(table)
        columns = {name: table.column(name) for name in categories}
        frames, clock, n_frames, notes = _grid(table, rate)
        coded = np.zeros(len(table), dtype=bool)
        for cells in columns.values():
            coded |= np.array([bool(cell.strip()) for cell in cells])
        last = int(np.flatnonzero(coded)[-1]) + 1 if coded.any() else 0
        if last < len(table):
            message = f"the last {len(table) - last} rows are blank in every column; read as unobserved"
            notes.append(Note(message, _row(table, last), "unobserved-rows"))
        stem = path.name.split(".")[0]
        recordings = []
        for name in select_entries(path, entry, categories):
            annotation, more_notes = _annotation(columns[name], frames, clock, n_frames, last)
            annotation, resampling = at_rate(annotation, rate)
            id = stem if len(categories) == 1 else f"{stem}/{name}"
            metadata = {"channel": name}
            recordings.append(
                Recording(
                    id,
                    individual=stem,
                    annotations={DEFAULT_ANNOTATOR: annotation},
                    metadata=metadata,
                    notes=(*notes, *more_notes, *resampling),
                    clock_origin=origin_of(clock if len(table) > 1 else None),
                )
            )
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotations = [r.annotation() for r in recordings]
        names = [_category(r, alone=len(recordings) == 1) for r in recordings]
        event_logs.check_ids(TITLE, names)
        first = annotations[0]
        if any((a.rate, a.n_frames) != (first.rate, first.n_frames) for a in annotations):
            raise MismatchError(f"the columns of a {TITLE} share one clock, but these recordings differ in rate or length")
        event_logs.check_rate(TITLE, first.rate)
        if first.n_frames < 2:
            raise EthobenchError(f"a {TITLE} needs at least two frames to state its rate, got {first.n_frames}")
        columns = [_cells(a) for a in annotations]
        notes = [note for a in annotations for note in event_logs.ethogram_losses(TITLE, [a])]
        last = max((int(np.flatnonzero(column != "")[-1]) + 1 for column in columns if (column != "").any()), default=0)
        if any(iv.total(iv.clip(a.observed.of_any(), last, a.n_frames)) for a in annotations):
            message = f"a {TITLE} does not store observed frames without a behavior after the last bout; they will be read as unobserved"
            notes.append(Note(message, code="lost-observed"))
        if any(iv.total(iv.clip(a.observed.of_all(a.ethogram.names), 0, last)) < last for a in annotations):
            message = f"a {TITLE} does not store unobserved frames before the last bout; they will be read as frames without behavior"
            notes.append(Note(message, code="lost-observed"))
        times = [format_time(i / first.rate) for i in range(first.n_frames)]
        clock = _rate(np.array(times, dtype=float), max(len(time.partition(".")[2]) for time in times))
        if clock != first.rate:
            message = f"a {TITLE} states its rate by rounded times; {first.rate:.9g} Hz will be read as {clock:.9g} Hz"
            notes.append(Note(message, code="rounded-rate"))
        write_table(path, [TIME, *names], zip(times, *columns, strict=True))
        return notes


def _table(path: Path) -> Table:
    table = read_table(path)
    if TIME not in table.header:
        raise FormatError(path, f"no column {TIME!r}; columns: {', '.join(table.header)}", "header")
    i = table.header.index(TIME)
    table.header, *table.rows = [[row[i], *row[:i], *row[i + 1 :]] for row in (table.header, *table.rows)]
    repeated = duplicates(table.header)
    if repeated:
        raise FormatError(path, f"duplicate column {repeated[0]!r}", "header")
    if len(table.header) < 2 or not len(table):
        raise FormatError(path, f"a {TITLE} needs a time column, at least one category and at least one row")
    return table


def _categories(table: Table) -> list[str]:
    """Return the category columns; a column without a name is skipped if all its cells are blank."""
    for i, name in enumerate(table.header):
        if not name and any(row[i].strip() for row in table.rows):
            raise FormatError(table.path, f"column {i + 1} has no name", "header")
    return [name for name in table.header[1:] if name]


def _grid(table: Table, rate: float | None) -> tuple[NDArray[np.int64], float, int, list[Note]]:
    """Return the frame of each row, the rate of the grid, the number of frames, and notes on missing rows."""
    times = table.numbers(TIME)
    bad = np.flatnonzero(~np.isfinite(times) | (np.diff(times, prepend=-np.inf) <= 0))
    if bad.size:
        i = int(bad[0])
        raise FormatError(table.path, f"time {table.rows[i][0]!r} is not later than in the previous row", _row(table, i))
    if times[0] < 0:
        raise FormatError(table.path, f"negative time {times[0]:g}", _row(table, 0))
    if len(times) == 1:
        clock, notes = frames_rate(rate)
        return np.zeros(1, dtype=np.int64), clock, 1, notes
    clock = _rate(times, max(len(row[0].strip().replace(",", ".").partition(".")[2]) for row in table.rows))
    exact = times * clock
    frames = np.floor(exact + 0.5).astype(np.int64)
    off = np.abs(exact - frames)
    if (off > MAX_JITTER).any() or (np.diff(frames) < 1).any():
        i = int(np.argmax(off))
        raise FormatError(table.path, f"time {times[i]:g} is not on a regular grid of {clock:g} Hz", _row(table, i))
    n_frames = int(frames[-1]) + 1
    if is_too_large(n_frames * BYTES_PER_FRAME, table.path.stat().st_size):
        i = int(np.argmax(np.diff(frames))) + 1
        raise FormatError(table.path, f"refused: the time {table.rows[i][0].strip()} would make {n_frames:,} frames", _row(table, i))
    notes = []
    if n_frames > len(times):
        jump = int(np.argmax(np.diff(frames, prepend=-1) > 1))
        message = f"{n_frames - len(times)} rows of the time grid are missing; read as unobserved"
        notes.append(Note(message, _row(table, jump), "missing-frames"))
    return frames, clock, n_frames, notes


def _rate(times: NDArray[np.float64], digits: int) -> float:
    """Return the rate with the fewest decimals that agrees with times written with this number of decimals."""
    elapsed, jumps = times - times[0], np.diff(times)
    step = jumps[jumps < 1.5 * np.median(jumps)].mean()
    steps = np.concatenate(([0.0], np.cumsum(np.floor(jumps / step + 0.5))))
    rate = float(steps[-1] / elapsed[-1])
    for slack in (0.51, 1.01):
        for rounded in (round(rate, n) for n in range(7)):
            if rounded > 0 and (np.abs(steps / rounded - elapsed) <= slack * 10.0**-digits).all():
                return float(rounded)
    return rate


def _annotation(cells: Sequence[str], frames: NDArray[np.int64], rate: float, n_frames: int, last: int) -> tuple[Annotation, list[Note]]:
    missing = np.array([cell.strip().lower() in MISSING for cell in cells])
    labels = [name for name in dict.fromkeys(cells) if name.strip() and name.strip().lower() not in MISSING]
    code_of = {name: i for i, name in enumerate(labels)}
    codes = np.full(n_frames, len(labels), dtype=np.int64)
    codes[frames] = [code_of.get(cell, len(labels)) for cell in cells]
    unobserved = np.ones(n_frames, dtype=bool)
    unobserved[frames[:last]] = missing[:last]
    ethogram = Ethogram(labels, guess_background(labels))
    message = f"{int(missing.sum())} cells are marked as missing; read as unobserved"
    notes = [Note(message, code="missing-labels")] if missing.any() else []
    return Annotation.from_frames(codes, ethogram, rate, unobserved=unobserved if unobserved.any() else None), notes


def _cells(a: Annotation) -> NDArray[np.object_]:
    """Return the label of each frame."""
    cells = np.full(a.n_frames, "", dtype=object)
    unclear = [b.name for b in a.ethogram if not b.name.strip() or b.name.strip().lower() in MISSING]
    if unclear:
        raise EthobenchError(f"in a {TITLE} {unclear[0]!r} means unobserved; rename that behavior")
    for i in np.flatnonzero(a.stop > a.start):
        cells[a.start[i] : a.stop[i]] = a.ethogram[int(a.behavior[i])].name
    return cells


def _category(recording: Recording, *, alone: bool) -> str:
    channel = str(recording.metadata.get("channel") or recording.id.rpartition("/")[2])
    has_channel = "channel" in recording.metadata or "/" in recording.id
    if channel.strip() == TIME:
        raise EthobenchError(f"the column {TIME!r} of a {TITLE} holds the times; rename the channel of recording {recording.id!r}")
    return channel if channel.strip() and (has_channel or not alone) else ONLY_CATEGORY


def _row(table: Table, i: int) -> str:
    return f"row {table.row_numbers[i]}"


def _number(cell: str) -> float:
    try:
        return parse_number(cell.replace(",", "."))
    except ValueError:
        return float("nan")
