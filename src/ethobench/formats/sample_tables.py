"""Content of tables with one row per sample (`ethobench.formats.table_columns` finds out what each column is).

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
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.messages import Message, ReaderOption
from ethobench.formats import per_frame
from ethobench.formats.arrow_tables import opened, plain_source, read_schema
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.sample_times import TimeParser, join_date_and_time
from ethobench.formats.size_limits import MAX_BEHAVIORS, check_size, check_table
from ethobench.formats.table_columns import MISSING_NUMBERS, MISSING_WORDS, Columns, Roles, TableOptions, first_columns
from ethobench.formats.tables import SHEET_SUFFIXES, read_table
from ethobench.formats.text import encoding_of, guess_delimiter, parse_number

if TYPE_CHECKING:
    import pandas as pd

PARSER = "samples-1"
CHUNK = 1 << 17  # rows
LARGE = 1 << 26  # bytes of a file whose channels are kept on disk
MIN_CACHED = 1 << 17  # bytes of a file whose parsed content is cached
MAX_IDS = 20_000


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
    if roles.label_candidates:
        listed = ", ".join(roles.label_candidates)
        message = Message(f"several columns may have the labels: {listed}; choose one with ", ReaderOption("label"))
        raise FormatError(path, message, "header")
    if roles.unclear:
        names = ", ".join(map(repr, roles.unclear))
        chosen, nothing = ReaderOption("label", roles.unclear[0]), ReaderOption("label", "none")
        advice = Message("if it has the labels, call it label, or set ", chosen, "; else remove it, or set ", nothing)
        raise FormatError(path, Message(f"column {names} has neither numbers nor a known name; ", advice), "header")
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
        import pandas as pd

        roles, before = self.roles, self.n_rows
        self.n_rows += len(table)
        if roles.time:
            stamps = table[roles.time]
            if roles.date:
                pairs = zip(table[roles.date].astype(str), stamps.astype(str), strict=True)
                stamps = pd.Series([join_date_and_time(date, time) for date, time in pairs], index=stamps.index, dtype=object)
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
                raise FormatError(self.path, Message(message, "; set ", ReaderOption(option)))
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
        message = f"{values[row]:g} in column {name!r} is neither 0 nor 1; if this is a signal, name the behaviors with "
        raise FormatError(path, Message(message, ReaderOption("label")), f"row {before + row + 2}")
    return np.where(np.isnan(values), per_frame.UNOBSERVED, values).astype(np.int8)


def recognized(table: SampleTable) -> dict[str, Any]:
    """Return the columns by role, for metadata and messages."""
    roles = {
        name: value for name, value in asdict(table.roles).items() if value and name in ("time", "animal", "recording", "label", "one_hot")
    }
    return roles | ({"channels": list(table.channels)} if table.channels else {})
