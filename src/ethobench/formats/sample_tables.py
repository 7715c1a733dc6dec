"""Tables with one row per sample, as people have them: the role of each column, and the parsed content.

A table may have a time column, a column with animals, a column with recordings, a column with labels (or one column of 0 and 1 per
behavior), and channels. Rows may also hold bursts of samples: columns ``x1, ..., x10, y1, ..., z10``, or cells such as
``"21 5 980 22 6 979"`` (e-obs tags on Movebank). Columns are recognized by name and content; `TableOptions` overrides that.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import per_frame
from ethobench.formats.arrow_tables import opened, plain_source, read_schema
from ethobench.formats.interval_tables import is_no_label
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.sample_times import TimeParser, is_time_of_day, looks_like_times
from ethobench.formats.size_limits import MAX_BEHAVIORS, check_size, check_table
from ethobench.formats.tables import SHEET_SUFFIXES, normalize_name, read_table
from ethobench.formats.text import Head, encoding_of, guess_delimiter, is_number, parse_number

if TYPE_CHECKING:
    import pandas as pd

PARSER = "samples-1"
CHUNK = 1 << 17  # rows
LARGE = 1 << 26  # bytes of a file whose channels are kept on disk
MIN_CACHED = 1 << 17  # bytes of a file whose parsed content is cached
SNIFFED_ROWS = 100
MIN_BURST = 5  # samples in a row
MAX_IDS = 20_000

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
            If a column that `options` name does not exist, or several columns could have a role. Names the option to set.
        """
        roles = Roles()
        self._find_bursts(roles)
        rest = [name for name in self.header if name not in roles.used]
        roles.time, roles.date = self._time_columns(rest, options)
        rest = [name for name in rest if name not in roles.used]
        self._find_ids(roles, rest, options)
        rest = [name for name in rest if name not in roles.used]
        self._find_labels(roles, rest, options)
        rest = [name for name in rest if name not in roles.used]
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
                (roles.ignored if roles.label or roles.one_hot or options.label else roles.unclear).append(name)
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
            raise FormatError(self.path, f"several columns may have the labels: {', '.join(candidates)}; choose one with label=", "header")
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


@dataclass
class SampleTable:
    """The content of a table with one row per sample.

    Attributes
    ----------
    path : Path
    roles : Roles
    channels : tuple of str
    values : array (n_rows, n_channels)
    time : array (n_rows,) or None
        In seconds; since `origin` if that is not None.
    origin : int or None
        Nanoseconds since 1970 of time zero, if times are dates.
    time_kind : str
        What times are: "seconds", "ISO dates", "milliseconds since 1970", ...
    has_zone : bool
        Whether dates state their time zone (UTC offset).
    counter : array (n_rows,) or None
        Number of each sample.
    animal, recording : tuple of array (n_rows,) of codes and list of names, or None
    labels : tuple of array (n_rows,) of codes and list of words, or None
        Code -1 is a missing label.
    one_hot : array (n_rows, n_behaviors) of 0, 1 and -1, or None
    burst : int
        Number of samples in a row of the file.
    burst_rate : float or None
        Sampling rate that the table states.
    """

    path: Path
    roles: Roles
    channels: tuple[str, ...]
    values: NDArray[np.float64]
    time: NDArray[np.float64] | None = None
    origin: int | None = None
    time_kind: str = ""
    has_zone: bool = False
    counter: NDArray[np.float64] | None = None
    animal: tuple[NDArray[np.int32], list[str]] | None = None
    recording: tuple[NDArray[np.int32], list[str]] | None = None
    labels: tuple[NDArray[np.int32], list[str]] | None = None
    one_hot: NDArray[np.int8] | None = None
    burst: int = 1
    burst_rate: float | None = None

    def location(self, row: int) -> str:
        """Return the location of a sample in the file, for messages."""
        return f"row {row // self.burst + 2}"


def read_sample_table(path: Path, options: TableOptions) -> SampleTable:
    """Read a table; the content of large files is cached and memory-mapped.

    Raises
    ------
    FormatError
        If the table is damaged, has no samples, or the role of a column is not clear.
    """
    columns = first_columns(path)
    if not columns.header:
        raise FormatError(path, "expected a table with a header", "header")
    roles = columns.roles(options)
    if roles.unclear:
        names = ", ".join(map(repr, roles.unclear))
        advice = f"if it has the labels, set label={roles.unclear[0]!r}; else set label='none', or name the signals with channels="
        raise FormatError(path, f"column {names} has neither numbers nor a known name; {advice}", "header")
    if not (roles.channels or roles.bursts or roles.label or roles.one_hot):
        raise FormatError(path, "no column of signals")
    if path.stat().st_size < MIN_CACHED:
        return _from_arrays(path, roles, _parse(path, columns, roles, options))
    digest = hashlib.blake2b(repr((options, roles)).encode(), digest_size=8).hexdigest()
    return _from_arrays(path, roles, cached_arrays(path, f"{PARSER}-{digest}", lambda: _parse(path, columns, roles, options)))


def _from_arrays(path: Path, roles: Roles, arrays: Mapping[str, NDArray[Any]]) -> SampleTable:
    info = json.loads(str(arrays["info"]))

    def coded(name: str) -> tuple[NDArray[np.int32], list[str]] | None:
        return (arrays[name], info[name]) if name in arrays else None

    return SampleTable(
        path,
        roles,
        tuple(info["channels"]),
        arrays["values"],
        arrays.get("time"),
        info["origin"],
        info["time_kind"],
        info["has_zone"],
        arrays.get("counter"),
        coded("animal"),
        coded("recording"),
        coded("labels"),
        arrays.get("one_hot"),
        info["burst"],
        info["burst_rate"],
    )


class _Words:
    """Codes of the texts in a column, over all chunks of a table."""

    def __init__(self) -> None:
        self.code_of: dict[str, int] = {}
        self.codes: list[NDArray[np.int32]] = []

    def add(self, column: pd.Series) -> None:
        import pandas as pd

        index, words = pd.factorize(column)
        lookup = np.array([*(self._code(word) for word in words), -1], dtype=np.int32)
        self.codes.append(lookup[index])

    def _code(self, word: Any) -> int:
        text = str(word).strip()
        if not text or text.lower() in MISSING_WORDS:
            return -1
        return self.code_of.setdefault(text, len(self.code_of))


def _parse(path: Path, columns: Columns, roles: Roles, options: TableOptions) -> dict[str, NDArray[Any]]:
    """Parse a table in chunks. The values of a large file are on disk, not in memory."""
    large = path.stat().st_size > LARGE
    content = _Content(path, roles, TimeParser(path, roles.time, options.time_unit, options.date_format))
    with tempfile.TemporaryFile() if large else io.BytesIO() as file:
        for table in _chunks(path, columns, roles):
            if len(table):
                file.write(np.ascontiguousarray(content.add(table), dtype=np.float64).tobytes())
        if not content.n_rows:
            raise FormatError(path, "no row of signals")
        shape = (content.n_rows * content.bursts.length, len(content.channels))
        file.seek(0)
        if large and shape[1]:
            values: NDArray[np.float64] = np.memmap(file, np.float64, "r+", shape=shape)
        else:
            values = np.frombuffer(bytearray(file.read()), dtype=np.float64).reshape(shape)
    return {"values": values, **content.arrays()}


class _Content:
    """The content of a table besides the values of its channels, over all chunks."""

    def __init__(self, path: Path, roles: Roles, clock: TimeParser) -> None:
        self.path, self.roles, self.clock = path, roles, clock
        self.words = {name: _Words() for name in ("animal", "recording", "label") if getattr(roles, name)}
        self.lists: dict[str, list[NDArray[Any]]] = {"time": [], "counter": [], "one_hot": []}
        self.bursts = _Bursts(path, roles)
        self.n_rows = 0

    @property
    def channels(self) -> tuple[str, ...]:
        return self.bursts.channels if self.bursts else tuple(self.roles.channels)

    def add(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Add a chunk; return the values of its channels, (n_samples, n_channels)."""
        roles, before = self.roles, self.n_rows
        self.n_rows += len(table)
        if roles.time:
            stamps = table[roles.time]
            if roles.date:
                stamps = table[roles.date].astype(str) + " " + stamps.astype(str)
            self.lists["time"].append(self.clock.parse(stamps, before))
        elif roles.counter is not None:
            self.lists["counter"].append(_index_numbers(table[roles.counter]))
        for name, words in self.words.items():
            words.add(table[getattr(roles, name)])
        if roles.one_hot:
            columns = [_binary(self.path, name, table[name].to_numpy(), before) for name in roles.one_hot]
            self.lists["one_hot"].append(np.column_stack(columns))
        if self.bursts:
            return self.bursts.samples(table, before)
        numbers = [_numbers(self.path, name, table[name].to_numpy(), before) for name in roles.channels]
        return np.column_stack(numbers) if numbers else np.zeros((len(table), 0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return one array per role, with one item per sample, and ``info`` as JSON."""
        arrays: dict[str, NDArray[Any]] = {name: np.concatenate(chunks) for name, chunks in self.lists.items() if chunks}
        info: dict[str, Any] = {}
        for name, words in self.words.items():
            limit = MAX_BEHAVIORS if name == "label" else MAX_IDS
            if len(words.code_of) > limit:
                option = "label" if name == "label" else "id"
                message = f"{len(words.code_of):,} different values in column {getattr(self.roles, name)!r}, more than {limit:,}"
                raise FormatError(self.path, f"{message}; set {option}=")
            key = "labels" if name == "label" else name
            arrays[key], info[key] = np.concatenate(words.codes), [*words.code_of]
        length, rate = self.bursts.length, self.bursts.rate(arrays.get("time"))
        if length > 1:
            arrays = {name: np.repeat(array, length, axis=0) for name, array in arrays.items()}
            if "time" in arrays and rate:
                arrays["time"] = arrays["time"] + np.tile(np.arange(length) / rate, self.n_rows)
        info |= {"channels": self.channels, "burst": length, "burst_rate": rate}
        info |= {"origin": self.clock.origin, "time_kind": self.clock.kind, "has_zone": self.clock.has_zone}
        return {**arrays, "info": np.array(json.dumps(info))}


class _Bursts:
    """Rows that hold several samples of each channel."""

    def __init__(self, path: Path, roles: Roles) -> None:
        self.path, self.columns, self.roles = path, roles.bursts, roles
        self.length = len(next(iter(roles.bursts.values()))) if roles.bursts else 1
        self.channels: tuple[str, ...] = tuple(roles.bursts)
        self.rates: set[float] = set()

    def __bool__(self) -> bool:
        return bool(self.columns)

    def samples(self, table: pd.DataFrame, before: int) -> NDArray[np.float64]:
        """Return the samples of a chunk, (n_rows * length, n_channels)."""
        import pandas as pd

        if self.roles.frequency:
            rates = pd.to_numeric(table[self.roles.frequency], errors="coerce")
            self.rates |= {float(rate) for rate in rates.unique() if rate > 0}
            if len(self.rates) > 1:
                message = f"several sampling rates in column {self.roles.frequency!r}: {', '.join(f'{r:g}' for r in sorted(self.rates))} Hz"
                raise FormatError(self.path, f"{message}; write one table for each")
        if self.length > 1 and all(len(names) > 1 for names in self.columns.values()):
            blocks = [[_numbers(self.path, n, table[n].to_numpy(), before) for n in names] for names in self.columns.values()]
            return np.stack([np.stack(block, axis=1).reshape(-1) for block in blocks], axis=1)
        cells = [self._split(table[names[0]], names[0], before) for names in self.columns.values()]
        if len(cells) == 1:
            axes = self._axes(table, cells[0].shape[1])
            self.channels = tuple(f"Acc{axis}" for axis in axes) if axes != "x" else self.channels
            samples = cells[0].reshape(len(table), -1, len(axes))
        else:
            samples = np.stack(cells, axis=2)
        if before and samples.shape[1] != self.length:
            raise FormatError(self.path, f"{samples.shape[1]} samples in a row, but {self.length} in the first", f"row {before + 2}")
        self.length = samples.shape[1]
        return samples.reshape(-1, samples.shape[2])

    def _split(self, column: pd.Series, name: str, before: int) -> NDArray[np.float64]:
        """Return the numbers in the cells of a column, padded with NaN to the longest cell."""
        cells = [re.split(r"[\s|]+", str(cell).strip()) if isinstance(cell, str) else [] for cell in column.tolist()]
        width = max(map(len, cells), default=0)
        check_table(self.path, len(cells), width, self.path.stat().st_size)
        numbers = np.full((len(cells), max(width, 1)), np.nan)
        for i, words in enumerate(cells):
            try:
                numbers[i, : len(words)] = [parse_number(word) for word in words if word]
            except ValueError as error:
                raise FormatError(self.path, f"{error} in column {name!r}", f"row {before + i + 2}") from None
        return numbers

    def _axes(self, table: pd.DataFrame, width: int) -> str:
        """Return the axes whose samples alternate in a cell."""
        if self.roles.axes:
            axes = {str(cell).strip().upper() for cell in table[self.roles.axes].tolist() if isinstance(cell, str) and cell.strip()}
            if len(axes) == 1 and re.fullmatch(r"[XYZ]{1,3}", next(iter(axes))) and width % len(next(iter(axes))) == 0:
                return next(iter(axes))
            raise FormatError(
                self.path, f"column {self.roles.axes!r} must name the same axes in all rows, got {', '.join(sorted(axes)) or 'none'}"
            )
        if "acc" in self.channels[0].lower() and width % 3 == 0:
            return "XYZ"
        return "x"

    def rate(self, time: NDArray[np.float64] | None) -> float | None:
        """Return the sampling rate within bursts: as stated, else from the times of rows that follow each other without gaps."""
        if self.rates:
            return next(iter(self.rates))
        if self.length > 1 and time is not None and len(time) > 1:
            steps = np.diff(time)
            steps = steps[steps > 0]
            if len(steps) and np.abs(steps - np.median(steps)).max() <= 0.01 * np.median(steps):
                return float(self.length / np.median(steps))
        return None


def _chunks(path: Path, columns: Columns, roles: Roles) -> Iterator[pd.DataFrame]:
    import pandas as pd

    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            yield from _parquet_chunks(path, roles)
        elif suffix in SHEET_SUFFIXES:
            table = read_table(path)
            frame = pd.DataFrame(table.rows, columns=table.header).loc[:, roles.used]
            yield frame.replace(MISSING_NUMBERS, None)
        else:
            yield from _csv_chunks(path, columns, roles)
    except EthobenchError:
        raise
    except (ValueError, OSError) as error:
        raise FormatError(path, f"not a valid table ({' '.join(str(error).split())})") from None


def _parquet_chunks(path: Path, roles: Roles) -> Iterator[pd.DataFrame]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = read_schema(path)
    texts = [f.name for f in schema if f.name in roles.used and (pa.types.is_string(f.type) or pa.types.is_large_string(f.type))]
    with pq.ParquetFile(path, pre_buffer=False, read_dictionary=texts) as file:
        check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, path.stat().st_size)
        for batch in file.iter_batches(CHUNK, columns=roles.used):
            yield batch.to_pandas(ignore_metadata=True)  # the index is read as a column


def _csv_chunks(path: Path, columns: Columns, roles: Roles) -> Iterator[pd.DataFrame]:
    import pandas as pd

    with path.open("rb") as raw:
        start = raw.read(1 << 16)
    encoding = encoding_of(start)
    text = start.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    delimiter = guess_delimiter(text)
    with path.open("rb") as raw:
        header = next((line for line in raw if line.strip() and not line.startswith(b"#")), b"")
        check_table(path, sum(1 for _ in raw), header.count(delimiter.encode()) + 1, path.stat().st_size)
    source = plain_source(path, delimiter, encoding)
    index_of = {name: i for i, name in reversed(list(enumerate(columns.header)))}
    used = sorted(index_of[name] for name in roles.used)
    names = [columns.header[i] for i in used]
    as_text = [*roles.texts, *([roles.time] if roles.time and not columns.is_numeric(roles.time) else [])]
    lines = text.lstrip("\ufeff").split("\n")
    above = next(i for i, line in enumerate(lines) if line.strip(" \ufeff") and not line.startswith("#"))
    with pd.read_csv(
        opened(source),
        sep=delimiter,
        encoding=encoding if source is path else "utf-8",
        skiprows=above + 1,
        header=None,
        names=[f"{i}" for i in range(len(columns.header))],
        usecols=used,
        index_col=False,
        dtype={f"{index_of[name]}": str for name in as_text},
        keep_default_na=False,
        na_values={f"{i}": [""] if columns.header[i] in as_text else MISSING_NUMBERS for i in used},
        comment=None if as_text else "#",
        decimal="," if delimiter != "," and columns.has_decimal_comma else ".",
        chunksize=CHUNK,
        skipinitialspace=True,
        low_memory=False,
    ) as tables:
        for table in tables:
            table.columns = names
            yield table


def _numbers(path: Path, name: str, column: NDArray[Any], before: int) -> NDArray[np.float64]:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    values = np.full(len(column), np.nan)
    has_comma = any("," in cell for cell in column[:200].tolist() if isinstance(cell, str))
    for i, cell in enumerate(column.tolist()):
        if cell is None or cell is True or cell is False or isinstance(cell, float):
            values[i] = np.nan if cell is None else float(cell)
            continue
        text = str(cell).strip()
        try:
            if text.lower() in ("true", "false"):
                values[i] = text.lower() == "true"
            elif text not in MISSING_NUMBERS:
                values[i] = parse_number(text.replace(",", ".", 1) if has_comma else text)
        except ValueError:
            raise FormatError(path, f"{cell!r} in channel {name!r} is not a number", f"row {before + i + 2}") from None
    return values


def _index_numbers(column: pd.Series) -> NDArray[np.float64]:
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def _binary(path: Path, name: str, column: NDArray[Any], before: int) -> NDArray[np.int8]:
    """Return a column of 0 and 1, with -1 for missing values."""
    values = _numbers(path, name, column, before)
    bad = ~(np.isnan(values) | np.isin(values, (-1, 0, 1)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        message = f"{values[row]:g} in column {name!r} is neither 0 nor 1; if this is a signal, name the behaviors with label="
        raise FormatError(path, message, f"row {before + row + 2}")
    return np.where(np.isnan(values), per_frame.UNOBSERVED, values).astype(np.int8)


def is_missing_label(word: str) -> bool:
    """Return whether a label means that nothing was observed: a placeholder such as "unlabeled"."""
    return is_no_label(word) or word.strip().lower() in MISSING_WORDS


def recognized(table: SampleTable) -> dict[str, Any]:
    """Return the columns by role, for metadata and messages."""
    roles = {
        name: value for name, value in asdict(table.roles).items() if value and name in ("time", "animal", "recording", "label", "one_hot")
    }
    return roles | ({"channels": list(table.channels)} if table.channels else {})
