"""Tables of the MABe 2025 challenge in columns: solutions and submissions with one row per bout, tracking, and the metadata of videos.

`BoutTable` holds the bouts of all videos as arrays of integer codes, so that a table of any size is scored without a loop over its rows.
Ids are read in any of their spellings: 1, "1" and "mouse1" are the same mouse, and a target that is "self", blank or the agent itself
is "self".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Track
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.intervals import BoolArray, IntArray
from ethobench.formats.arrow_tables import plain_columns, read_parquet
from ethobench.formats.size_limits import check_size
from ethobench.formats.tables import read_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BOUT_COLUMNS = ("agent_id", "target_id", "action", "start_frame", "stop_frame")
FRAME = "video_frame"
TRACKING_COLUMNS = (FRAME, "mouse_id", "bodypart", "x", "y")
LAB, LABELED = "lab_id", "behaviors_labeled"
SELF = "self"
PARQUET = b"PAR1"
MAX_FRAME = 1 << 40
"""Largest frame number; one of a video of a thousand years is a mistake."""

Source: TypeAlias = "str | Path | pd.DataFrame"
Labeled: TypeAlias = Sequence[str] | str


@dataclass(frozen=True, eq=False)
class Names:
    """A column of names as codes.

    Attributes
    ----------
    codes : array of int (n_rows,)
        Indices into `values`.
    values : tuple of str
        The different names.
    """

    codes: IntArray
    values: tuple[str, ...]

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]


@dataclass(frozen=True, eq=False)
class BoutTable:
    """Bouts of several videos in columns.

    Attributes
    ----------
    name : str
        File name, or what the table is, for messages.
    video, agent, target, action : Names
    start, stop : array of int (n_bouts,)
        Half-open frames.
    metadata : mapping of str to VideoMetadata
        From the columns ``lab_id`` and ``behaviors_labeled`` of the table, by video; empty if it has none.
    """

    name: str
    video: Names
    agent: Names
    target: Names
    action: Names
    start: IntArray
    stop: IntArray
    metadata: Mapping[str, VideoMetadata]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class VideoMetadata:
    """The lab of a video, and its labeled behaviors.

    Attributes
    ----------
    lab : str
    labeled : tuple of Track or None
        Empty if nothing was labeled; None if the metadata do not say, so that everything counts as labeled.
    """

    lab: str
    labeled: tuple[Track, ...] | None = None

    @property
    def entries(self) -> list[str] | None:
        """The labeled behaviors as text, such as "mouse1,self,rear"."""
        return None if self.labeled is None else [f"{t.subject},{t.target or SELF},{t.behavior}" for t in self.labeled]


def is_bout_table(source: Any) -> bool:
    """Return whether a file or DataFrame is a table of bouts of several videos: a solution or a submission."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        return path.is_file() and path.suffix.lower() in (".csv", ".parquet")
    return hasattr(source, "columns") and {"start_frame", "stop_frame"} <= {*map(str, source.columns)}


def mouse_name(value: Any) -> str:
    """Return the name of a mouse: "mouse1" for 1, "1", 1.0 and "mouse1".

    >>> mouse_name(1), mouse_name("2.0"), mouse_name("mouse3"), mouse_name("self")
    ('mouse1', 'mouse2', 'mouse3', 'self')
    """
    text = id_text(value)
    return f"mouse{text}" if text.isdecimal() else text


def id_text(value: Any) -> str:
    """Return an id as text, empty for a missing one; 7.0, as pandas reads a column with gaps, is "7"."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    text = str(value).strip()
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def parse_labeled(labeled: Labeled, option: str = "labeled=", *, plain_names: bool = False) -> tuple[Track, ...]:
    """Return the tracks that a list of labeled behaviors names, without duplicates.

    Parameters
    ----------
    labeled : sequence of str or str
        Entries such as "mouse1,mouse2,sniff" or "mouse1,self,rear", or the JSON text of a list of them. Empty text is an empty
        list.
    option : str
        Where the list is from, for messages.
    plain_names : bool
        Whether an entry may be the name of a behavior, which was labeled for all animals.

    Examples
    --------
    >>> parse_labeled('["mouse1,mouse2,sniff", "mouse1,self,rear"]')
    (Track(behavior='sniff', subject='mouse1', target='mouse2'), Track(behavior='rear', subject='mouse1', target=None))
    """
    items: Sequence[Any] = labeled
    if isinstance(labeled, str):
        items = [labeled] if labeled.strip() else []
        if labeled.lstrip().startswith("["):
            try:
                items = json.loads(labeled)
            except json.JSONDecodeError as error:
                raise EthobenchError(f"{option} is not a valid JSON list ({error.msg})") from None
    tracks = []
    for item in items:
        names = [name.strip() for name in str(item).replace("'", "").replace('"', "").split(",")]
        if plain_names and len(names) == 1 and names[0]:
            tracks.append(Track(names[0]))
            continue
        if len(names) != 3 or not all(names):
            raise EthobenchError(f"{option} needs entries such as 'mouse1,mouse2,sniff', got {item!r}")
        agent, target = mouse_name(names[0]), mouse_name(names[1])
        tracks.append(Track(names[2], agent, None if target in (SELF, agent) else target))
    return tuple(dict.fromkeys(tracks))


def read_bouts(source: Source, name: str = "") -> BoutTable:
    """Read a solution or a submission.

    Parameters
    ----------
    source : path or DataFrame
        CSV or Parquet file, or a table, with the columns ``video_id, agent_id, target_id, action, start_frame, stop_frame``; optionally
        ``lab_id`` and ``behaviors_labeled``. All others, such as ``row_id``, are ignored.
    name : str
        What the table is, for messages; the file name by default.

    Raises
    ------
    FormatError
        If a column is missing, a cell is blank or not a frame number, or a bout ends before it starts. The message names the row.
    """
    table = _read_columns(source, name, ("video_id", *BOUT_COLUMNS))
    text = {column: _factorize(table, column, id_text) for column in ("video_id", "action")}
    agent = _factorize(table, "agent_id", mouse_name)
    target = _factorize(table, "target_id", mouse_name, blank=SELF)
    start, stop = (_frames(table, column) for column in ("start_frame", "stop_frame"))
    reversed_rows = np.flatnonzero(stop < start)
    if reversed_rows.size:
        i = int(reversed_rows[0])
        raise FormatError(table.name, f"stop_frame {stop[i]} is before start_frame {start[i]}", table.location(i))
    metadata: dict[str, VideoMetadata] = {}
    if LAB in table.columns and LABELED in table.columns:
        metadata = _metadata(table, text["video_id"])
    return BoutTable(table.name, text["video_id"], agent, _to_self(agent, target), text["action"], start, stop, metadata)


def read_metadata(source: Source) -> dict[str, VideoMetadata]:
    """Read lab and labeled behaviors of each video from the metadata of the challenge (``train.csv``).

    Parameters
    ----------
    source : path or DataFrame
        With the columns ``video_id``, ``lab_id`` and ``behaviors_labeled``.

    Raises
    ------
    FormatError
        If a column is missing, or two rows of a video differ.
    """
    table = _read_columns(source, "metadata", ("video_id", LAB, LABELED))
    return _metadata(table, _factorize(table, "video_id", id_text))


@dataclass(frozen=True)
class _Columns:
    name: str
    columns: Mapping[str, Any]
    location: Callable[[int], str]


def _read_columns(source: Source, name: str, required: Sequence[str]) -> _Columns:
    """Return the columns of a table by name, and where each row is."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        with path.open("rb") as file:
            parquet = file.read(4) == PARQUET
        if parquet:
            columns: Mapping[str, Any] = plain_columns(path, read_parquet(path))
            table = _Columns(str(path), columns, lambda i: f"row {i + 1}")
        else:
            plain = _read_plain_csv(path, required)
            if plain is not None:
                return plain
            text = read_table(path)
            columns = {column: text.column(column) for column in text.header}
            table = _Columns(str(path), columns, lambda i: f"row {text.row_numbers[i]}")
    else:
        table = _Columns(name or "table", {str(column): source[column] for column in source.columns}, lambda i: f"row {i}")
    missing = [column for column in required if column not in table.columns]
    if missing:
        raise FormatError(table.name, f"no column {', '.join(missing)}; columns: {', '.join(table.columns)}", "header")
    return table


def _read_plain_csv(path: Path, required: Sequence[str]) -> _Columns | None:
    """Read a comma-separated UTF-8 file with a header and complete rows; None if it is none, which `read_table` can repair or explain."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv

    types = dict.fromkeys(("video_id", "agent_id", "target_id", "action", LAB, LABELED), pa.string())
    types |= dict.fromkeys(("start_frame", "stop_frame"), pa.int64())
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
        selected = [name for name in types if name in header]
        if not {*required} <= {*header} or any(header.count(name) > 1 for name in selected):
            return None
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(use_threads=False),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(include_columns=selected, column_types={name: types[name] for name in selected}),
        )
    except (pa.ArrowException, UnicodeDecodeError, csv.Error):
        return None
    if any(column.null_count for column in table.columns):
        return None
    columns = {name: pd.Series(table.column(name), dtype=pd.ArrowDtype(types[name]), copy=False) for name in selected}
    return _Columns(str(path), columns, lambda i: f"row {read_table(path).row_numbers[i]}")


def _factorize(table: _Columns, column: str, normalize: Callable[[Any], str], blank: str = "") -> Names:
    """Return a column as codes of normalized names; a blank cell is `blank`, or an error."""
    import pandas as pd

    cells = table.columns[column]
    codes, uniques = pd.factorize(cells if isinstance(cells, pd.Series) else np.asarray(cells), use_na_sentinel=False)
    names = [normalize(value) or blank for value in uniques.tolist()]
    if "" in names:
        raise FormatError(table.name, f"blank {column}", table.location(int(np.flatnonzero(codes == names.index(""))[0])))
    values = tuple(dict.fromkeys(names))
    merged = np.array([values.index(name) for name in names], dtype=np.int64) if len(values) < len(names) else None
    return Names(codes.astype(np.int64) if merged is None else merged[codes], values)


def _to_self(agent: Names, target: Names) -> Names:
    """Replace targets that are the agent itself by "self"."""
    values = (*(name for name in target.values if name != SELF), SELF)
    recoded = np.array([values.index(name) for name in target.values], dtype=np.int64)[target.codes]
    agents = np.array([values.index(name) if name in values else -1 for name in agent.values], dtype=np.int64)[agent.codes]
    return Names(np.where(recoded == agents, len(values) - 1, recoded), values)


def _frames(table: _Columns, column: str) -> IntArray:
    """Return a column of frame numbers; raise an error that names the first cell that is not one."""
    cells = np.asarray(table.columns[column])
    if cells.dtype.kind not in "iu":
        try:
            numbers = cells.astype(np.float64)
            bad: BoolArray = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
        except (TypeError, ValueError):
            bad = np.array([not _is_frame(cell) for cell in cells.tolist()], dtype=bool)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise FormatError(table.name, f"{column} {cells.tolist()[i]!r} is not a frame number", table.location(i))
        cells = numbers
    too_large = np.flatnonzero(np.abs(cells) > MAX_FRAME)
    if too_large.size:
        raise FormatError(table.name, f"{column} {cells[too_large[0]]:.0f} is not a plausible frame number", table.location(too_large[0]))
    return np.asarray(cells, dtype=np.int64)


def _is_frame(cell: Any) -> bool:
    try:
        return float(cell).is_integer()
    except (TypeError, ValueError, OverflowError):
        return False


def _metadata(table: _Columns, video: Names) -> dict[str, VideoMetadata]:
    """Return lab and list of each video; different values in the rows of one video are an error."""
    labs, lists = ([id_text(cell) for cell in np.asarray(table.columns[column]).tolist()] for column in (LAB, LABELED))
    rows: dict[str, tuple[str, str]] = {}
    for i, cells in enumerate(zip(labs, lists, strict=True)):
        if not cells[0]:
            raise FormatError(table.name, f"blank {LAB}", table.location(i))
        if rows.setdefault(video[i], cells) != cells:
            raise FormatError(table.name, f"{LAB} or {LABELED} of video {video[i]} differs from an earlier row", table.location(i))
    tracks: dict[str, tuple[Track, ...]] = {}
    for name, (_, text) in rows.items():
        if text not in tracks:
            tracks[text] = parse_labeled(text, f"{table.name}: {LABELED} of video {name}")
    return {name: VideoMetadata(lab, tracks[text]) for name, (lab, text) in rows.items()}


def last_frame(path: Path) -> int:
    """Return the last frame of a tracking file from the statistics of its columns; -1 if it has no rows.

    The column is read only if the file has no statistics.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _require_tracking_columns(path, names)
            groups = [file.metadata.row_group(i).column(names.index(FRAME)).statistics for i in range(file.metadata.num_row_groups)]
            if all(group is not None and group.has_min_max for group in groups):
                return max((int(group.max) for group in groups), default=-1)
            column = file.read(columns=[FRAME])[FRAME]
            return int(pc.max(column).as_py()) if len(column) else -1
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(path, f"not a valid Parquet file ({error})") from None


def read_tracking(
    path: Path, *, subjects: Sequence[str] = (), parts: Sequence[str] = (), n_frames: int | None = None
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    """Read a tracking file: one row per frame, mouse and body part.

    Parameters
    ----------
    path : Path
        Parquet file with ``video_frame, mouse_id, bodypart, x, y``.
    subjects, parts : sequence of str
        Mice and body parts that come first, in this order; those that only the file names follow.
    n_frames : int, optional
        Length of the recording; by default the last tracked frame ends it.

    Returns
    -------
    positions : array (n_frames, n_mice, n_parts, 2)
        NaN where the file has no row. Of several rows for one keypoint, the last counts.
    mice, parts : tuple of str
    """
    table = read_parquet(path)
    _require_tracking_columns(path, table.column_names)
    frames = _integers(path, table, FRAME)
    mouse, mice = _codes(path, table, "mouse_id", mouse_name, subjects)
    keypoint, keypoints = _codes(path, table, "bodypart", id_text, parts)
    length = int(frames.max()) + 1 if frames.size else 0
    if frames.size and frames.min() < 0:
        raise FormatError(path, f"{FRAME} {frames.min()} is negative", f"row {int(np.argmin(frames)) + 1}")
    if n_frames is not None:
        length = max(length, n_frames)
    size = length * len(mice) * len(keypoints) * 2
    check_size(path, 8 * size, path.stat().st_size)
    positions = np.full((length, len(mice), len(keypoints), 2), np.nan)
    index = (frames * len(mice) + mouse) * len(keypoints) + keypoint
    flat = positions.reshape(-1, 2)
    for axis, column in enumerate("xy"):
        try:
            flat[index, axis] = table[column].to_numpy()
        except (TypeError, ValueError):
            raise FormatError(path, f"column {column} has values that are not numbers") from None
    return positions, mice, keypoints


def _require_tracking_columns(path: Path, names: Sequence[str]) -> None:
    missing = [column for column in TRACKING_COLUMNS if column not in names]
    if missing:
        raise FormatError(path, f"no column {', '.join(missing)}; columns: {', '.join(names)}", "header")


def _integers(path: Path, table: pa.Table, column: str) -> IntArray:
    values = table[column].to_numpy()
    if values.dtype.kind not in "iu":
        numbers = values.astype(np.float64) if values.dtype.kind == "f" else np.full(len(values), np.nan)
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers == np.floor(numbers))))
        if bad.size:
            raise FormatError(path, f"{column} {values[bad[0]].item()!r} is not a frame number", f"row {bad[0] + 1}")
    return np.asarray(values, dtype=np.int64)


def _codes(
    path: Path, table: pa.Table, column: str, normalize: Callable[[Any], str], first: Sequence[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Return a column as codes of names; the names `first` have the lowest codes, the others follow in order."""
    import pyarrow as pa

    encoded = table[column].combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], encoded.type)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    if encoded.null_count:
        raise FormatError(path, f"blank {column}", f"row {int(np.argmax(encoded.is_null().to_numpy(zero_copy_only=False))) + 1}")
    values = [normalize(value) for value in encoded.dictionary.to_pylist()]
    names = tuple(dict.fromkeys([*first, *sorted({*values} - {*first})]))
    lookup = np.array([names.index(value) for value in values], dtype=np.int64)
    return lookup[encoded.indices.to_numpy()] if len(encoded) else np.empty(0, dtype=np.int64), names
