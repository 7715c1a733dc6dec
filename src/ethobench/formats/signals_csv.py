"""Signals of bio-loggers as a table: CSV, TSV, XLSX or Parquet with a header, one row per sample (or burst), one column per channel.

``signals_csv`` has signals only. ``labeled_signals`` also has labels: a column with the name or code of a behavior (``timestamp, ax, ay,
az, label``), or one column of 0 and 1 per behavior. A blank or missing label means that the sample is unobserved.

A column with ids (animal, individual, subject, bird_id, tag, ...) makes each animal a recording of its own. A column with recordings
(recording, deployment, session, ...) beside it separates the recordings of an animal.

Times are seconds, milliseconds (by the name of the column or by their size), dates, times of day, time since 1970, or days of Excel or
MATLAB. Regular times determine the rate, also if they jitter by less than a third of a step; irregular times are resampled to `rate`.
Periods without samples become NaN, and are unobserved; after a gap of an hour a new recording begins. Without times, a column called
frame, index or sample numbers the samples: a missing number is a missing sample (NaN).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, Note, NotFoundError
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, Option, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, ignored_columns, register_format
from ethobench.formats.bouts import named_ethogram
from ethobench.formats.channel_units import accelerometer_axes, channel_units, note_different_units, split_unit
from ethobench.formats.labels import decode_words
from ethobench.formats.regular_clock import (
    RegularClock,
    counted_clock,
    estimate_rate,
    find_periods,
    regular_clock,
    spread_repeated,
    unwrap_days,
)
from ethobench.formats.sample_tables import SampleTable, read_sample_table, recognized
from ethobench.formats.sample_times import NANOSECONDS, to_datetime
from ethobench.formats.table_columns import Columns, Roles, TableOptions, first_columns, is_missing_label
from ethobench.formats.tables import SHEET_SUFFIXES
from ethobench.formats.text import Head, is_number

MAX_BLOCKS = 0.01  # of rows; if times go back more often, they are not sorted
RESTARTING = ("sample",)  # may restart in each burst of a tag
Names = Sequence[str] | str | None
_SNIFFED: WeakKeyDictionary[Head, tuple[Columns, Roles | None]] = WeakKeyDictionary()


class _SampleFormat(Format):
    """Reading of tables with one row per sample."""

    suffixes = (".csv", ".tsv", ".parquet", ".xlsx")
    multiple_recordings = True

    def entries(self, path: Path) -> list[str]:
        return [block.id for block in _blocks(read_sample_table(path, TableOptions()), None, None)]

    def read(
        self,
        path: Path,
        entry: str | None = None,
        *,
        rate: float | None = None,
        time: str | None = None,
        id: str | None = None,
        label: Names = None,
        channels: Names = None,
        units: Mapping[str, str] | str | None = None,
        time_unit: str | None = None,
        date_format: str | None = None,
        split: float | None = None,
        behaviors: Names = None,
        unobserved: Names = None,
    ) -> list[Recording]:
        options = TableOptions(time, id, label, channels, time_unit, date_format)
        table = read_sample_table(path, options)
        blocks = _blocks(table, split, rate)
        chosen = [block for block in blocks if entry in (None, block.id, block.animal)]
        if not chosen:
            raise NotFoundError(f"{path} has no entry {entry!r}; available: {', '.join(block.id for block in blocks)}")
        return _Reader(table, rate, units, behaviors, unobserved).recordings(chosen)


@register_format("signals_csv")
class SignalsCsv(_SampleFormat):
    """Channels of a bio-logger in a plain table.

    Options for reading: ``rate``, the sampling rate, if the table has no regular times; ``time``, ``id``, ``label`` and ``channels``, the
    columns with times, animals, labels and signals if they are not recognized ("none": there is no such column); ``units``, the unit of
    the accelerometer (g, mg or m/s2), or the units by channel; ``time_unit``, the unit of numeric times (s, ms, us, ns, excel, datenum);
    ``date_format``, the format of dates that are not ISO 8601, or ``day_first``, ``month_first``; ``split``, the gap in seconds after
    which a new recording begins (an hour; any gap, if samples are less than a tenth of the time); ``behaviors`` and ``unobserved``,
    see ``labeled_signals``.
    """

    title = "table of signals"
    contents = ("signals",)

    def sniff(self, path: Path, head: Head) -> float:
        columns, roles = _sniffed(path, head)
        if roles is None or roles.label or roles.one_hot or roles.unclear or roles.label_candidates:
            return 0.0
        if path.suffix.lower() == ".parquet":
            return _sniff_parquet(path, roles)
        if roles.bursts:
            return 0.4 if roles.time or roles.frequency else 0.0
        filled = [cell for name in roles.channels for cell in columns.filled(name)]
        if not filled or all(cell in ("0", "1", "0.0", "1.0") for cell in filled):
            return 0.0
        return 0.3


@register_format("labeled_signals")
class LabeledSignals(_SampleFormat):
    """Channels of a bio-logger and labels in one table.

    Options for reading: those of ``signals_csv``; ``behaviors``, the names of the behaviors (of the codes 0, 1, ... if labels are numbers);
    ``unobserved``, labels that mean that a sample was not observed, such as "unknown" (besides blank cells and NA).
    """

    title = "table of signals and labels"
    contents = ("signals", "annotations")
    keeps = ("observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        columns, roles = _sniffed(path, head)
        if roles is None:
            return 0.0
        is_sampled = roles.time and len(roles.channels) > 1
        if roles.label_candidates:  # reading it names the option to set
            return 0.2 if is_sampled else 0.0
        if roles.unclear:
            return 0.2 if is_sampled and len(roles.unclear) == 1 and _repeats(columns, roles.unclear[0]) else 0.0
        if not (roles.label or roles.one_hot):
            return 0.0
        if not (roles.channels or roles.bursts):  # labels alone: only if the formats of labels cannot hold them
            is_date = bool(roles.time) and not columns.is_numeric(roles.time)
            return 0.5 if roles.label and roles.time and (is_date or roles.animal) and not roles.ignored else 0.0
        if not (roles.time or roles.counter is not None or roles.bursts or accelerometer_axes(roles.channels)):
            return 0.0
        return 0.45


def _sniffed(path: Path, head: Head) -> tuple[Columns, Roles | None]:
    """Return the first rows and the roles of columns, computed once for both formats.

    There are no roles if the file is not a table with a header of names, or only describes animals.
    """
    if head not in _SNIFFED:
        suffix = path.suffix.lower()
        is_table = not head.is_dir and (suffix == ".parquet" or suffix in SHEET_SUFFIXES or len(head.header) > 1)
        columns = first_columns(path, head) if is_table else Columns(path, [], [])
        _SNIFFED[head] = columns, _sniffed_roles(columns)
    return _SNIFFED[head]


def _sniffed_roles(columns: Columns) -> Roles | None:
    if len(columns.header) < 2 or any(is_number(name) for name in columns.header) or not columns.cells[columns.header[0]]:
        return None
    roles = columns.roles(TableOptions())
    if roles.animal and not roles.time and roles.counter is None and not accelerometer_axes(roles.channels) and not roles.bursts:
        return None
    return roles if _times_increase(columns, roles) else None


def _times_increase(columns: Columns, roles: Roles) -> bool:
    """Return whether numeric times mostly increase from row to row of an animal, unlike, say, durations."""
    if not roles.time or not columns.is_numeric(roles.time):
        return True
    last: dict[str, float] = {}
    steps = []
    names = columns.cells[roles.animal] if roles.animal else [""] * len(columns.cells[roles.time])
    for name, cell in zip(names, columns.cells[roles.time], strict=True):
        text = cell.replace(",", ".", 1) if columns.has_decimal_comma else cell
        if is_number(text):
            if name in last:
                steps.append(float(text) - last[name])
            last[name] = float(text)
    return not steps or (sum(step >= 0 for step in steps) >= 0.9 * len(steps) and max(steps) > 0)


def _repeats(columns: Columns, name: str) -> bool:
    cells = columns.filled(name)
    return 0 < len({*cells}) <= max(1, len(cells) // 3) and not any(cell.count("/") + cell.count("\\") for cell in cells)


def _sniff_parquet(path: Path, roles: Roles) -> float:
    """Return the confidence that a Parquet file holds signals: only numbers, some of them floating point."""
    import pyarrow as pa

    from ethobench.formats.arrow_tables import read_schema

    schema = read_schema(path)
    kinds = [field.type for field in schema if field.name in roles.channels]
    numbers = [pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds]
    return 0.3 if kinds and all(numbers) and any(map(pa.types.is_floating, kinds)) else 0.0


@dataclass
class _Block:
    """The samples of one recording in a table.

    Attributes
    ----------
    id, animal : str
        `animal` is empty if the table has no column with animals.
    rows : slice or array of int64
        Its samples.
    time : array of float64 or None
        Of these samples, in seconds.
    notes : list of Note
    """

    id: str
    animal: str
    rows: slice | NDArray[np.int64]
    time: NDArray[np.float64] | None
    notes: list[Note]


def _blocks(table: SampleTable, split: float | None, rate: float | None) -> list[_Block]:
    """Return the recordings of a table: by animal, by recording, and by periods between long gaps."""
    blocks = []
    times = table.time
    if table.burst > 1 and times is not None and table.burst_rate is None:
        if rate is None:
            raise FormatError(table.path, Message(f"{table.burst} samples in each row, but no sampling rate; set ", Option("rate")))
        times = times + np.tile(np.arange(table.burst) / rate, len(times) // table.burst)
        table.burst_rate = rate
    for name, animal, unsorted in _groups(table):
        time = None if times is None else times[unsorted]
        notes: list[Note] = []
        if time is None:
            blocks.append(_Block(name, animal, unsorted, None, notes))
            continue
        if table.time_kind == "times of day":
            time = unwrap_days(time)
        rows, time, notes = _sorted(unsorted, time)
        time, more_notes = spread_repeated(time)
        notes += more_notes
        periods = find_periods(time, table.burst_rate, split) if not (np.diff(time) <= 0).any() else [slice(0, len(time))]
        if len(periods) > 1:
            message = f"{len(periods)} periods with gaps between them, each read as a recording of its own"
            limit = "gaps longer than an hour" if split is None else f"gaps longer than {split:g} s"
            notes = [*notes, Note(Message(f"{message} ({limit}; see ", ReaderOption("split"), ")"), code="split-recording")]
        for number, period in enumerate(periods, start=1):
            start = rows.start + period.start if isinstance(rows, slice) else 0
            chosen = slice(start, start + period.stop - period.start) if isinstance(rows, slice) else _as_slice(rows[period])
            id = f"{name}_{number}" if len(periods) > 1 else name
            blocks.append(_Block(id, animal, chosen, time[period], notes))
    return blocks


def _sorted(
    rows: slice | NDArray[np.int64], time: NDArray[np.float64]
) -> tuple[slice | NDArray[np.int64], NDArray[np.float64], list[Note]]:
    """Return samples in the order of their times if blocks of rows, such as days, are not in order."""
    backward = np.flatnonzero(np.diff(time) < 0)
    if not len(backward) or len(backward) > MAX_BLOCKS * len(time):
        return rows, time, []
    order = np.argsort(time, kind="stable")
    if (np.diff(time[order]) <= 0).any():
        return rows, time, []
    start = rows.start if isinstance(rows, slice) else 0
    numbers = start + order if isinstance(rows, slice) else rows[order]
    message = (
        f"times go back {len(backward)} times; rows are sorted by time"
        if len(backward) > 1
        else "times go back here; rows are sorted by time"
    )
    return numbers, time[order], [Note(message, f"row {int(backward[0]) + start + 3}", "sorted-rows")]


def _groups(table: SampleTable) -> Iterator[tuple[str, str, slice | NDArray[np.int64]]]:
    """Yield name, animal and samples of each recording that the columns of a table distinguish, in order of appearance."""
    n_rows = len(table.values)
    if table.animal is None:
        yield table.path.stem, "", slice(0, n_rows)
        return
    codes, animals = table.animal
    _check_ids(table, codes, table.roles.animal)
    key, names = codes.astype(np.int64), [(animal, animal) for animal in animals]
    if table.recording is not None:
        others, recordings = table.recording
        _check_ids(table, others, table.roles.recording)
        key = key * len(recordings) + others
        pairs = [divmod(int(k), len(recordings)) for k in dict.fromkeys(key.tolist())]
        shared = len({recording for _, recording in pairs}) < len(pairs)
        number = {animal * len(recordings) + recording: i for i, (animal, recording) in enumerate(pairs)}
        key = np.array([number[k] for k in key.tolist()], dtype=np.int64)
        names = [(f"{animals[a]}_{recordings[r]}" if shared else recordings[r], animals[a]) for a, r in pairs]
    order = np.argsort(key, kind="stable")
    edges = np.searchsorted(key[order], np.arange(len(names) + 1))
    for code, (name, animal) in enumerate(names):
        rows = order[edges[code] : edges[code + 1]]
        if len(rows):
            yield name, animal, _as_slice(rows)


def _as_slice(rows: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return consecutive rows as a slice, which takes no copy."""
    is_contiguous = rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_contiguous else rows


def _check_ids(table: SampleTable, codes: NDArray[np.int32], column: str) -> None:
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        message = Message(f"no name in column {column!r} (set ", ReaderOption("id", "none"), " if it does not name animals)")
        raise FormatError(table.path, message, table.location(row))


class _Reader:
    """Builds recordings from the blocks of a table."""

    def __init__(
        self, table: SampleTable, rate: float | None, units: Mapping[str, str] | str | None, behaviors: Names, unobserved: Names
    ) -> None:
        self.table, self.rate, self.units = table, rate, units
        names = [split_unit(name) for name in table.channels]
        channels = tuple(name for name, _ in names)
        is_distinct = len({*channels}) == len(channels)
        self.channels = channels if is_distinct else table.channels
        self.stated_units = [unit for _, unit in names]
        self.notes: list[Note] = []
        self.ethogram: Ethogram | None = None
        self.lookup: NDArray[np.int64] | None = None
        if table.labels is not None:
            self._decode_labels(behaviors, unobserved)
        elif table.one_hot is not None:
            self.ethogram = named_ethogram(table.roles.one_hot)
        elif behaviors is not None or unobserved is not None:
            problem = f"{table.path} has no column of labels for `behaviors` or `unobserved`; name it with "
            raise EthobenchError(Message(problem, ReaderOption("label")))

    def _decode_labels(self, behaviors: Names, unobserved: Names) -> None:
        codes, words = self.table.labels or (np.zeros(0, dtype=np.int32), [])
        skipped = {*([unobserved] if isinstance(unobserved, str) else unobserved or ())}
        unknown = sorted(skipped - {*words})
        if unknown:
            raise EthobenchError(f"{self.table.path} has no label {', '.join(unknown)} (option unobserved); labels: {', '.join(words)}")

        def location(word: int) -> str:
            return self.table.location(int(np.flatnonzero(codes == word)[0]))

        kept = ["" if word in skipped or is_missing_label(word) else word for word in words]
        lookup, ethogram, self.notes = decode_words(self.table.path, kept, behaviors, location)
        self.lookup = np.append(lookup, per_frame.UNOBSERVED)  # the last one is for missing labels, whose code is -1
        self.ethogram = Ethogram([*ethogram], guess_background(ethogram.names), exclusive=True)

    def recordings(self, blocks: Sequence[_Block]) -> list[Recording]:
        """Return the recordings of some blocks, all at the same rate if their times allow it."""
        common = self.rate or self.table.burst_rate or self._common_rate(blocks)
        recordings = [self._recording(block, common) for block in blocks]
        note_different_units(recordings)
        return recordings

    def _common_rate(self, blocks: Sequence[_Block]) -> float | None:
        rates = [
            estimate_rate(block.time)
            for block in blocks
            if block.time is not None and len(block.time) > 2 and (np.diff(block.time) > 0).all()
        ]
        return float(np.median(rates)) if rates else None

    def _recording(self, block: _Block, common: float | None) -> Recording:
        table = self.table
        values = np.asarray(table.values)[block.rows] if not isinstance(block.rows, slice) else table.values[block.rows]
        clock = self._clock(block, common, len(values))
        signals = clock.signals(table.path, values) if table.channels else None
        units, unit_notes = channel_units(self.channels, self.stated_units, values, self.units) if table.channels else ({}, [])
        annotation, label_notes = self._annotation(block, clock)
        metadata: dict[str, Any] = {"units": units} if units else {}
        notes = [*block.notes, *clock.notes, *self.notes, *label_notes]
        if table.animal is not None or self.ethogram is not None or table.burst > 1:
            notes += [*unit_notes, self._recognized(units), *ignored_columns(table.roles.ignored)]
        return Recording(
            block.id,
            individual=block.animal,
            rate=clock.rate,
            n_frames=clock.n_frames,
            signals=None if signals is None else Signals(signals, self.channels, clock.rate),
            annotations={} if annotation is None else {DEFAULT_ANNOTATOR: annotation},
            start_time=self._start_time(block),
            metadata=metadata,
            notes=tuple(notes),
        )

    def _clock(self, block: _Block, common: float | None, n_rows: int) -> RegularClock:
        table = self.table
        if block.time is not None:
            requested = self.rate or table.burst_rate
            offset = block.rows.start if isinstance(block.rows, slice) else int(block.rows[0])
            location = repr(block.animal) if block.animal else ""
            clock = regular_clock(table.path, block.time, requested, common_rate=common, location=location, offset=offset)
            late = float(block.time[0])
            if table.origin is None and table.time_kind != "times of day" and late > 1.5 / clock.rate:
                clock.notes.append(Note(f"the first sample is at {late:g} s; frames are counted from there", code="late-start"))
            return clock
        if common is None:
            raise FormatError(table.path, Message("no sampling rate; set ", Option("rate"), ", or add a column called time"))
        if table.counter is not None:
            name = (table.roles.counter or "").strip()
            return counted_clock(table.path, name, table.counter[block.rows], common, may_restart=name.lower() in RESTARTING)
        return RegularClock(common, n_rows)

    def _annotation(self, block: _Block, clock: RegularClock) -> tuple[Annotation | None, list[Note]]:
        table = self.table
        if self.ethogram is None:
            return None, []
        if table.one_hot is not None:
            values = np.asarray(clock.labels(table.one_hot[block.rows], per_frame.UNOBSERVED), dtype=np.int8)
            if (values == per_frame.UNOBSERVED).all():
                return None, [Note("no frame is labeled", code="no-labels")]
            return per_frame.annotation_of(values, self.ethogram, clock.rate)
        if table.labels is None or self.lookup is None:
            return None, []
        codes = self.lookup[clock.labels(table.labels[0][block.rows], -1)]
        unobserved = codes == per_frame.UNOBSERVED
        if unobserved.all():
            return None, [Note("no frame is labeled", code="no-labels")]
        annotation = Annotation.from_frames(codes, self.ethogram, clock.rate, unobserved=unobserved)
        n_missing = int(unobserved.sum())
        message = f"{n_missing} of {len(codes)} frames have no label; read as unobserved"
        return annotation, [Note(message, code="unlabeled-frames")] if n_missing else []

    def _start_time(self, block: _Block) -> datetime | None:
        table = self.table
        if table.origin is None or block.time is None:
            return None
        return to_datetime(table.origin + round(float(block.time[0]) * NANOSECONDS), has_zone=table.has_zone)

    def _recognized(self, units: Mapping[str, str]) -> Note:
        """Return a note on the columns that were recognized."""
        table, roles = self.table, recognized(self.table)
        with_units = [f"{name} ({units[name]})" if name in units else name for name in self.channels]
        components = [
            f"times ({table.time_kind}) in {roles['time']!r}" if "time" in roles else "",
            f"animals in {roles['animal']!r}" if "animal" in roles else "",
            f"recordings in {roles['recording']!r}" if "recording" in roles else "",
            f"labels in {roles['label']!r}" if "label" in roles else "",
            f"behaviors in {', '.join(roles['one_hot'])}" if "one_hot" in roles else "",
            f"signals: {', '.join(with_units[:12])}{', ...' if len(with_units) > 12 else ''}" if with_units else "",
            f"{table.burst} samples in each row" if table.burst > 1 else "",
        ]
        return Note(f"recognized columns: {'; '.join(filter(None, components))}", code="recognized-columns")
