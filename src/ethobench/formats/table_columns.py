"""The role of each column of a table with one row per sample: times, animals, recordings, labels, channels, bursts.

Columns are recognized by name and content, from the header and the first rows. `TableOptions` overrides that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core.errors import FormatError
from ethobench.formats import per_frame
from ethobench.formats.arrow_tables import read_schema
from ethobench.formats.interval_tables import is_no_label
from ethobench.formats.sample_times import is_time_of_day, looks_like_times
from ethobench.formats.size_limits import check_size, check_table
from ethobench.formats.tables import SHEET_SUFFIXES, normalize_name
from ethobench.formats.text import Head, is_number

SNIFFED_ROWS = 100
MIN_BURST = 5  # samples in a row

TIMES = (
    *("timestamp", "datetime", "time", "times", "t", "seconds", "timesec", "timeseconds", "timems", "timeus", "timens"),
    *("timestampms", "timestampus", "timestampns", "timestamps", "millis", "milliseconds", "epoch", "epochms", "unixtime", "posixtime"),
    *("utc", "utctime", "timeutc", "timestamputc", "datetimeutc", "localtime", "timelocal", "dateandtime", "eventtime", "date"),
)
COUNTERS = ("", "frame", "index", "sample", "unnamed: 0", "__index_level_0__")
ANIMALS = (
    *("animal", "animalid", "animalname", "individual", "individualid", "individuallocalidentifier", "subject", "subjectid"),
    *("bird", "birdid", "participant", "participantid", "ring", "ringid", "collar", "collarid", "tag", "tagid", "taglocalidentifier"),
    *("device", "deviceid", "logger", "loggerid", "id"),
)
RECORDINGS = (
    *("recording", "recordingid", "deployment", "deploymentid", "session", "sessionid", "trial", "trialid", "clip", "clipid"),
    *("deploymentlocalidentifier", "file", "filename"),
)
NOT_ANIMALS = ("event", "burst", "sample", "row", "segment", "window", "study", "sensor", "frame", "bout", "behavior", "behaviour", "label")
LABELS = frozenset(
    {normalize_name(name) for name in per_frame.LABEL_NAMES}
    | {"activity", "behaviors", "behaviours", "behaviorlabel", "behaviourlabel", "behaviorname", "behaviourname", "activitylabel"}
    | {"behaviour", "behaviourcode", "category", "groundtruth", "labelname"}
)
CHANNEL_STEMS = ("acc", "gyr", "mag", "temp", "depth", "press", "lat", "lon", "speed", "alt", "light", "volt", "bat", "hum", "wet", "dry")
MISSING_NUMBERS = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>", "-nan"]
MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "#n/a", "<na>"})
BURST_CELL = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?([\s|]+[+-]?\d+(\.\d+)?([eE][+-]?\d+)?){3,}\s*")
NUMBERED = re.compile(r"(.*?)[_ .-]?(\d{1,4})")


@dataclass(frozen=True)
class TableOptions:
    """Columns that the user names.

    Attributes
    ----------
    time, id : str, optional
        Column with times; column with animals. ``"none"``: there is no such column.
    label : str or sequence of str, optional
        Column with labels, or columns of 0 and 1, one per behavior. ``"none"``: there is no such column.
    channels : sequence of str, optional
        Columns with signals. By default all other columns of numbers.
    time_unit : str, optional
        Unit of numeric times: s, ms, us, ns, excel or datenum (days).
    date_format : str, optional
        Format of dates that are not ISO 8601, as in `datetime.strptime`.
    """

    time: str | None = None
    id: str | None = None
    label: str | Sequence[str] | None = None
    channels: Sequence[str] | str | None = None
    time_unit: str | None = None
    date_format: str | None = None


@dataclass
class Roles:
    """The role of each column of a table.

    Attributes
    ----------
    time, date, counter, animal, recording, label : str
        Column names; empty if there is none. `date` is combined with `time`.
    one_hot : list of str
        Columns of 0 and 1, one per behavior.
    channels : list of str
        Columns of numbers.
    bursts : dict of str to list of str
        Columns that hold the samples of a row, by channel; one column if its cells hold all samples.
    axes, frequency : str
        Columns with the axes and the sampling rate of bursts.
    ignored : list of str
    unclear : list of str
        Columns of text without a role, of which one may have the labels.
    label_candidates : list of str
        Columns that all have a name for labels; the user has to choose one.
    """

    time: str = ""
    date: str = ""
    counter: str | None = None
    animal: str = ""
    recording: str = ""
    label: str = ""
    one_hot: list[str] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    bursts: dict[str, list[str]] = field(default_factory=dict)
    axes: str = ""
    frequency: str = ""
    ignored: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    label_candidates: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """Columns that are read as text."""
        one_column_bursts = [columns[0] for columns in self.bursts.values() if len(columns) == 1]
        return [name for name in (self.date, self.animal, self.recording, self.label, self.axes, *one_column_bursts) if name]

    @property
    def used(self) -> list[str]:
        """All columns that are read."""
        names = [self.time, *self.texts, self.frequency, *self.one_hot, *self.channels, *chain(*self.bursts.values())]
        return list(dict.fromkeys([name for name in names if name] + ([] if self.counter is None else [self.counter])))


class Columns:
    """The header of a table and the cells of its first rows, which decide the role of each column.

    Parameters
    ----------
    path : Path
        Named in errors.
    header : sequence of str
    rows : sequence of sequence of str
    """

    def __init__(self, path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.path, self.header = path, list(header)
        width = len(self.header)
        rows = [row for row in rows if len(row) == width][:SNIFFED_ROWS]
        self._filled: dict[str, list[str]] = {}
        self._numeric: dict[str, bool] = {}
        self.cells = {name: [row[i].strip() for row in rows] for i, name in enumerate(self.header)}

    def filled(self, name: str) -> list[str]:
        """Return the cells of a column that are not missing."""
        if name not in self._filled:
            self._filled[name] = [cell for cell in self.cells[name] if cell not in MISSING_NUMBERS]
        return self._filled[name]

    @cached_property
    def has_decimal_comma(self) -> bool:
        """Whether numbers are written like ``3,25``."""
        cells = [cell for name in self.header for cell in self.filled(name)]
        comma = sum(is_number(cell.replace(",", ".", 1)) for cell in cells if "," in cell)
        return comma > sum(is_number(cell) for cell in cells if "." in cell)

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers (or nothing); single texts among them are errors of a column of numbers."""
        if name not in self._numeric:
            cells = [cell.replace(",", ".", 1) for cell in self.filled(name)] if self.has_decimal_comma else self.filled(name)
            numbers = [is_number(cell) for cell in cells]
            self._numeric[name] = all(numbers[:1]) and sum(numbers) >= len(numbers) / 2
        return self._numeric[name]

    def is_binary(self, name: str) -> bool:
        """Return whether a column holds only 0 and 1, or true and false."""
        cells = [cell.lower() for cell in self.filled(name)]
        return bool(cells) and all(cell in ("0", "1", "0.0", "1.0", "true", "false") for cell in cells)

    def is_burst(self, name: str) -> bool:
        """Return whether the cells of a column hold several numbers each."""
        cells = self.filled(name)
        return bool(cells) and all(BURST_CELL.fullmatch(cell) for cell in cells)

    def roles(self, options: TableOptions) -> Roles:
        """Return the role of each column.

        Raises
        ------
        FormatError
            If a column that `options` name does not exist.
        """
        roles = Roles()
        self._find_bursts(roles)
        rest = [name for name in self.header if name not in roles.used]
        roles.time, roles.date = self._time_columns(rest, options)
        rest = [name for name in rest if name not in roles.used]
        self._find_ids(roles, rest, options)
        rest = [name for name in rest if name not in roles.used]
        self._find_labels(roles, rest, options)
        rest = [name for name in rest if name not in (*roles.used, *roles.label_candidates)]
        if not roles.time:
            roles.counter = next((name for name in rest if name.strip().lower() in COUNTERS), None)
        chosen = None if options.channels is None else per_frame.behavior_names(options.channels)
        for name in chosen or ():
            self._check(name, "channels")
        for name in rest:
            if name.strip().lower() in COUNTERS or name == roles.counter:
                continue
            if chosen is not None:
                (roles.channels if name in chosen else roles.ignored).append(name)
            elif self._is_row_number(name) or normalize_name(name) in TIMES:
                roles.ignored.append(name)
            elif self.is_numeric(name) or self.is_binary(name):
                roles.channels.append(name)
            else:
                (roles.ignored if roles.label or roles.one_hot or options.label or roles.label_candidates else roles.unclear).append(name)
        return roles

    def _check(self, name: str, option: str) -> str:
        if name not in self.header:
            raise FormatError(self.path, f"no column {name!r} (option {option}); columns: {', '.join(self.header)}", "header")
        return name

    def _is_row_number(self, name: str) -> bool:
        """Return whether a column numbers the rows or the bursts, such as event-id."""
        normal = normalize_name(name)
        return normal.endswith("id") and normal[:-2].startswith(NOT_ANIMALS)

    def _time_columns(self, names: Sequence[str], options: TableOptions) -> tuple[str, str]:
        """Return the column with times, and a column with dates if the former has only times of day."""
        if options.time is not None:
            return ("", "") if options.time == "none" else (self._check(options.time, "time"), "")
        normal = {normalize_name(name): name for name in reversed(list(names)) if name}
        named = [normal[name] for name in TIMES if name in normal]
        time = next((name for name in named if self.is_numeric(name) or self._is_time(name)), next(iter(named), ""))
        date = normal.get("date", "")
        if time and date and time != date and is_time_of_day(self.filled(time)) and not is_time_of_day(self.filled(date)):
            return time, date
        return time, ""

    def _is_time(self, name: str) -> bool:
        return looks_like_times(self.filled(name)[:20])

    def _find_bursts(self, roles: Roles) -> None:
        """Find rows of several samples."""
        stems: dict[str, dict[int, str]] = {}
        for name in self.header:
            if match := NUMBERED.fullmatch(name):
                stems.setdefault(match[1], {})[int(match[2])] = name
        numbered = {
            stem: columns for stem, columns in stems.items() if len(columns) >= MIN_BURST and max(columns) - min(columns) < len(columns)
        }
        if numbered and len({len(columns) for columns in numbered.values()}) == 1 and all(min(c) in (0, 1) for c in numbered.values()):
            roles.bursts = {stem or "x": [columns[i] for i in sorted(columns)] for stem, columns in numbered.items()}
        else:
            roles.bursts = {name: [name] for name in self.header if self.is_burst(name)}
        if roles.bursts:
            normal = {normalize_name(name): name for name in self.header}
            roles.frequency = next((normal[name] for name in normal if "samplingfrequency" in name or name == "samplingrate"), "")
            roles.axes = next((normal[name] for name in normal if name.endswith("axes")), "")

    def _find_ids(self, roles: Roles, names: Sequence[str], options: TableOptions) -> None:
        """Find the columns with animals and with recordings."""
        if options.id is not None:
            roles.animal = "" if options.id == "none" else self._check(options.id, "id")
            return
        normal = {normalize_name(name): name for name in reversed(list(names)) if name}
        for name in names:
            key = normalize_name(name)
            if re.search(r"([a-z][_ .-]?(id|ID|Id)|[_ .-](id|ID))$", name.strip()) and not key[:-2].startswith(NOT_ANIMALS):
                normal.setdefault(key, name)
        others = [key for key in normal if key.endswith("id") and key not in (*ANIMALS, *RECORDINGS) and self._is_id(normal[key])]
        order = [*ANIMALS[:8], *others, *ANIMALS[8:]]
        roles.animal = next((normal[key] for key in order if key in normal and self._may_be_id(normal[key])), "")
        roles.recording = next((normal[key] for key in RECORDINGS if key in normal and self._may_be_id(normal[key])), "")
        for key in (*ANIMALS, *others, *RECORDINGS):
            if key in normal and normal[key] not in (roles.animal, roles.recording) and key != "id":
                roles.ignored.append(normal[key])
        if roles.recording and not roles.animal:
            roles.animal, roles.recording = roles.recording, ""

    def _is_id(self, name: str) -> bool:
        key = normalize_name(name)
        has_separator = bool(re.search(r"([_ .-](id|ID|Id)|[a-z](ID|Id))$", name.strip()))
        return has_separator and not key[:-2].startswith(NOT_ANIMALS) and self._may_be_id(name)

    def _may_be_id(self, name: str) -> bool:
        """Return whether values of a column repeat, unlike a number for each row; fractions are no ids."""
        cells = self.filled(name)
        repeats = len(cells) < 3 or len({*cells}) < len(cells)
        return repeats and not any("." in cell and is_number(cell) and float(cell) % 1 for cell in cells)

    def _find_labels(self, roles: Roles, names: Sequence[str], options: TableOptions) -> None:
        """Find the column with labels, or the columns of behaviors."""
        if options.label is not None:
            chosen = [options.label] if isinstance(options.label, str) else list(options.label)
            if chosen == ["none"]:
                return
            for name in chosen:
                self._check(name, "label")
            if len(chosen) == 1 and not (self.is_binary(chosen[0]) and normalize_name(chosen[0]) not in LABELS):
                roles.label = chosen[0]
            else:
                roles.one_hot = chosen
            return
        named = [name for name in names if normalize_name(name) in LABELS and name.strip().lower() not in COUNTERS]
        texts = [name for name in named if not self.is_numeric(name)]
        candidates = texts if len(texts) == 1 else named
        if len(candidates) > 1:
            roles.label_candidates = candidates
            roles.ignored += candidates
            return
        if candidates:
            roles.label = candidates[0]
            roles.ignored += [name for name in named if name != roles.label]
            return
        binary = [name for name in names if self.is_binary(name) and not normalize_name(name).startswith(CHANNEL_STEMS)]
        signals = [name for name in names if name not in binary and self.is_numeric(name) and name.strip().lower() not in COUNTERS]
        if len(binary) >= 2 and (signals or roles.bursts) and self._is_one_hot(binary):
            roles.one_hot = binary

    def _is_one_hot(self, names: Sequence[str]) -> bool:
        """Return whether at most one of these columns is 1 in most rows, and some column is."""
        ones = np.array([[cell.lower() in ("1", "1.0", "true") for cell in self.cells[name]] for name in names])
        per_row = ones.sum(axis=0)
        return bool((per_row <= 1).mean() > 0.9 and per_row.any())


def first_columns(path: Path, head: Head | None = None) -> Columns:
    """Return header and first rows of a CSV, TSV, XLSX or Parquet file."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet_columns(path)
    head = head or Head(path)
    if suffix in SHEET_SUFFIXES:
        filled = [row for row in head.sheet if any(row)]
        header = [cell.strip() for cell in filled[0]] if filled else []
        while header and not header[-1]:
            header.pop()
        return Columns(path, header, [(row + [""] * len(header))[: len(header)] for row in filled[1:]])
    rows = [row for row in head.body[: 2 * SNIFFED_ROWS] if not row[0].startswith("#")][:SNIFFED_ROWS]
    return Columns(path, head.header, [row + [""] * (len(head.header) - len(row)) for row in rows])


def _parquet_columns(path: Path) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = read_schema(path)
    check_table(path, 0, len(schema.names), path.stat().st_size)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, path.stat().st_size)
            batch = next(file.iter_batches(SNIFFED_ROWS), None)
            columns = [] if batch is None else [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(path, f"not a valid Parquet file ({' '.join(str(error).splitlines()[:1])})") from None
    return Columns(path, schema.names, list(zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)[:1000]


def is_missing_label(word: str) -> bool:
    """Return whether a label means that nothing was observed: a placeholder such as "unlabeled"."""
    return is_no_label(word) or word.strip().lower() in MISSING_WORDS
