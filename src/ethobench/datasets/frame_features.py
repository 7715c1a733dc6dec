"""Per-frame features of a study from other tools: video embeddings, audio, neural signals; as npy, npz, Parquet, HDF5 or CSV.

A file has one row per sample. Samples are one per frame unless the file, or ``FILE.json`` beside it, states their rate (``rate``, rows per
second), the frames between them (``stride``), or their times (``time`` in seconds, or ``frame``). They are converted to the frames of the
recording: means where they are faster, linear interpolation where they are slower. Frames without samples nearby are missing.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Signals
from ethobench.core.errors import FormatError, MismatchError, Note
from ethobench.core.files import read_json
from ethobench.core.recording import MAX_EXCESS
from ethobench.core.signals import FEATURE_PREFIX
from ethobench.formats import hdf5
from ethobench.formats.arrow_tables import read_parquet, read_wide
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.size_limits import check_size

MAX_WIDTH = 64
"""Features above which a file is reduced to this many random projections, which keep distances between frames."""
MAX_GAP_STEPS = 2.0  # samples further apart than this many steps have a gap between them
CHUNK_ROWS = 1 << 14
PARSER = "features-2"
FORMAT, FORMAT_VERSION = "ethobench-features", 1
"""Format of ``FILE.json`` from `ethobench embed`. One of another tool states neither."""
ARRAY_NAMES = ("features", "values", "embeddings", "data")
TIME_COLUMNS = ("time", "times", "timestamp", "seconds", "time_s")
FRAME_COLUMNS = ("frame", "frames", "frame_index")
INDEX_COLUMN = re.compile(r"|__index_level_\d+__")
"""Names of the row numbers in tables of pandas: none in CSV."""
SUFFIXES = (".npy", ".npz", ".parquet", ".h5", ".hdf5", ".csv", ".tsv")


@dataclass(frozen=True)
class FeatureTable:
    """Features as they are in a file.

    Attributes
    ----------
    path : Path
    values : array (n_samples, n_features)
        Memory-mapped where the format allows it. NaN for missing values.
    names : tuple of str
        Names of the features; numbers if the file states none.
    rate : float, optional
        Samples per second.
    stride : float, optional
        Frames from one sample to the next.
    times : array (n_samples,), optional
        Time of each sample in seconds.
    frames : array (n_samples,), optional
        Frame of each sample.
    """

    path: Path
    values: NDArray[Any]
    names: tuple[str, ...]
    rate: float | None = None
    stride: float | None = None
    times: NDArray[np.float64] | None = None
    frames: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def samples_per_second(self) -> float | None:
        """Samples per second, as stated or computed from the times; None if neither is stated."""
        if self.rate is not None or self.times is None or len(self.times) < 2:
            return self.rate
        return float(1 / np.median(np.diff(self.times)))


def read_features(path: str | Path) -> FeatureTable:
    """Read per-frame features from a file.

    Parameters
    ----------
    path : str or Path
        npy (one row per sample), npz or HDF5 (one array with two axes, or one named ``features``), Parquet or CSV (one column per
        feature). ``path.json`` beside it may state ``names``, ``rate`` and ``stride``.

    Raises
    ------
    FormatError
        If the file is damaged, or is no table of numbers.

    Examples
    --------
    >>> np.save(folder / "m1.npy", np.zeros((100, 3)))
    >>> table = read_features(folder / "m1.npy")
    >>> table.values.shape, table.names
    ((100, 3), ('0', '1', '2'))
    """
    path = Path(path)
    if not path.is_file():
        raise FormatError(path, "no such file")
    readers: dict[str, Callable[[Path], tuple[NDArray[Any], dict[str, Any]]]] = {
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".parquet": _read_parquet,
        ".h5": _read_hdf5,
        ".hdf5": _read_hdf5,
        ".csv": _read_csv,
        ".tsv": _read_csv,
    }
    if path.suffix.lower() not in readers:
        raise FormatError(path, f"features must be a file of one of the formats {', '.join(readers)}")
    values, facts = readers[path.suffix.lower()](path)
    facts |= _sidecar(path)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind not in "fiub":
        raise FormatError(path, f"expected numbers with one row per sample and one column per feature, got {values.dtype} {values.shape}")
    names = tuple(map(str, facts.get("names") or range(values.shape[1])))
    if len(names) != values.shape[1] or len({*names}) < len(names):
        raise FormatError(path, f"{len({*names})} different names for {values.shape[1]} features")
    numbers = {key: _positive(path, key, facts[key]) for key in ("rate", "stride") if facts.get(key) is not None}
    positions = {key: _increasing(path, key, facts[key], len(values)) for key in ("times", "frames") if facts.get(key) is not None}
    return FeatureTable(path, values, names, numbers.get("rate"), numbers.get("stride"), positions.get("times"), positions.get("frames"))


def _sidecar(path: Path) -> dict[str, Any]:
    """Return what ``FILE.json`` states about a file."""
    sidecar = path.with_name(f"{path.name}.json")
    if not sidecar.is_file():
        return {}
    content = read_json(sidecar)
    if not isinstance(content, dict):
        raise FormatError(sidecar, "expected an object with names, rate or stride")
    if content.get("format") == FORMAT and content.get("format_version") != FORMAT_VERSION:
        stated = content.get("format_version")
        raise FormatError(sidecar, f"format version {stated!r} is not supported, only {FORMAT_VERSION}; update ethobench, or embed again")
    return {key: content[key] for key in ("names", "rate", "stride") if content.get(key) is not None}


def embedded_video(path: Path) -> str | None:
    """Return the name of the video that a file of features is from; None if it is not from `ethobench embed`."""
    sidecar = path.with_name(f"{path.name}.json")
    if path.suffix != ".npy" or not sidecar.is_file():
        return None
    content = read_json(sidecar)
    is_embedding = isinstance(content, dict) and content.get("format") == FORMAT
    return str(content.get("video", "")) if is_embedding else None


def _positive(path: Path, key: str, value: object) -> float:
    try:
        number = float(np.asarray(value, dtype=np.float64).reshape(-1)[0])
    except (TypeError, ValueError, IndexError):
        number = np.nan
    if not 0 < number < 1e9:
        raise FormatError(path, f"{key} of the features must be a positive number, got {value!r}")
    return number


def _increasing(path: Path, key: str, value: object, count: int) -> NDArray[np.float64]:
    try:
        positions = np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        positions = np.zeros(0)
    if len(positions) != count or not np.isfinite(positions).all() or (np.diff(positions) <= 0).any():
        raise FormatError(path, f"{key} must be one increasing number for each of the {count} rows")
    return positions


def _read_npy(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False), {}
    except (ValueError, EOFError, OSError) as error:
        raise FormatError(path, f"not a valid NPY file of numbers ({error})") from None


def _read_npz(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(info.file_size for info in archive.infolist()), path.stat().st_size)
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, KeyError) as error:
        raise FormatError(path, f"not a valid NPZ file of numbers ({error})") from None
    name = _main_array(path, {name: array.ndim for name, array in content.items() if array.dtype.kind in "fiub"})
    return content[name], _facts(content)


def _read_hdf5(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    import h5py

    with hdf5.open_file(path) as file:
        hdf5.refuse_external_links(path, file)
        nodes: dict[str, h5py.Dataset] = {}
        file.visititems(lambda name, node: nodes.update({name: node}) if isinstance(node, h5py.Dataset) else None)
        name = _main_array(path, {name: node.ndim for name, node in nodes.items() if node.dtype.kind in "fiub"})
        values = hdf5.array(path, file, name)
        group = nodes[name].parent
        beside = {
            key: hdf5.array(path, group, key) for key in (*TIME_COLUMNS, *FRAME_COLUMNS, "rate", "stride") if key in hdf5.names(group)
        }
        attributes = {key: nodes[name].attrs[key] for key in ("rate", "stride") if key in nodes[name].attrs}
        names = hdf5.texts(path, group, "names") if "names" in hdf5.names(group) else []
    return values, {**_facts(beside), **attributes, **({"names": names} if names else {})}


def _main_array(path: Path, axes: Mapping[str, int]) -> str:
    """Return the array with the features: the one that is named so, or the only one with two axes."""
    named = [name for name in axes if name.rpartition("/")[2] in ARRAY_NAMES]
    tables = [name for name, ndim in axes.items() if ndim == 2]
    candidates = [name for name in named if axes[name] == 2] or tables or named
    if len(candidates) != 1:
        listed = ", ".join(sorted(axes)) or "none"
        raise FormatError(path, f"cannot tell which array has the features; name it 'features', with two axes. Arrays: {listed}")
    return candidates[0]


def _facts(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return names, rate, stride and positions from arrays beside the features."""
    facts: dict[str, Any] = {key: content[key] for key in ("rate", "stride") if key in content}
    if "names" in content:
        facts["names"] = [str(name) for name in np.ravel(content["names"])]
    for key, names in (("times", TIME_COLUMNS), ("frames", FRAME_COLUMNS)):
        for name in names:
            if name in content:
                facts.setdefault(key, content[name])
    return facts


def _read_csv(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    table = read_wide(path, 1, ())
    return _from_columns(path, [cell.strip() for cell in table.header[0]], table.values)


def _read_parquet(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    table = read_parquet(path)
    numeric = [name for name, column in zip(table.column_names, table.columns, strict=True) if str(column.type).startswith(_NUMBERS)]
    if len(numeric) < len(table.column_names):
        other = [name for name in table.column_names if name not in numeric]
        raise FormatError(path, f"columns that are not numbers: {', '.join(other[:5])}; remove them")
    columns = [np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in numeric]
    return _from_columns(path, numeric, np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0)))


_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")


def _from_columns(path: Path, header: Sequence[str], values: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Separate the columns of time and frame from those of the features, without the row numbers that pandas writes."""
    numbered = [i for i, name in enumerate(header) if INDEX_COLUMN.fullmatch(name) and _are_row_numbers(values[:, i])]
    has_positions = not {name.lower() for name in header}.isdisjoint((*TIME_COLUMNS, *FRAME_COLUMNS))
    if not has_positions and any(not np.array_equal(values[:, i], np.arange(len(values))) for i in numbered):
        raise FormatError(path, "its row numbers have gaps; name their column 'frame', if they are frames, or remove it")
    header, values = [name for i, name in enumerate(header) if i not in numbered], np.delete(values, numbered, axis=1)
    lower = [name.lower() for name in header]
    facts = _facts({name: values[:, i] for i, name in enumerate(lower) if name in (*TIME_COLUMNS, *FRAME_COLUMNS)})
    kept = [i for i, name in enumerate(lower) if name not in (*TIME_COLUMNS, *FRAME_COLUMNS)]
    return values[:, kept], {**facts, "names": [header[i] or str(i) for i in kept]}


def _are_row_numbers(column: NDArray[Any]) -> bool:
    return bool(np.isfinite(column).all() and (column == np.floor(column)).all() and (np.diff(column) > 0).all())


# Alignment


def open_features(
    paths: Sequence[Path], rate: float | None, n_frames: int | None, features_rate: float | None = None
) -> tuple[Signals, list[Note]]:
    """Return features on the frames of a recording, memory-mapped.

    Parameters
    ----------
    paths : sequence of Path
        Files whose features are joined.
    rate : float, optional
        Frames per second of the recording; that of the features if None and `n_frames` is None.
    n_frames : int, optional
        Length of the recording; that of the first file if None.
    features_rate : float, optional
        Samples per second, where the files do not state it or state it wrongly.

    Raises
    ------
    FormatError
        If a file is no table of numbers, or its rows cannot be assigned to frames.
    """
    tables = [read_features(path) for path in paths]
    if features_rate is not None:
        tables = [replace(table, rate=features_rate, stride=None, times=None, frames=None) for table in tables]
    if n_frames is None:
        rate = rate or tables[0].samples_per_second
        if rate is None:
            raise MismatchError(f"the frame rate is unknown: {paths[0].name} states none; fill in column 'rate' or 'features_rate'")
        n_frames = _length(tables[0], rate)
    notes: list[Note] = []
    blocks, names = [], []
    for number, table in enumerate(tables):
        positions = _positions(table, rate, n_frames)
        uncovered = n_frames - positions[-1] - max(_step(positions), 1.0) if len(positions) else n_frames
        if uncovered > max(1, MAX_EXCESS * n_frames):
            notes.append(
                Note(f"features end {round(uncovered)} frames before the recording; they are missing there", table.path.name, "length")
            )
        blocks.append(_on_frames(table, positions, n_frames))
        names += [f"{number + 1}/{name}" for name in _reduced_names(table)] if len(tables) > 1 else _reduced_names(table)
    values = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Signals(values, tuple(f"{FEATURE_PREFIX}{name}" for name in names), float(rate or 1.0)), notes


def _length(table: FeatureTable, rate: float) -> int:
    """Return the frames that features cover."""
    if table.frames is not None:
        return round(float(table.frames[-1]) + max(_step(table.frames), 1.0))
    if table.stride is not None and table.rate is None:
        return round(len(table) * table.stride)
    if table.times is not None:
        return round(float(table.times[-1] + 1 / (table.samples_per_second or rate)) * rate)
    return round(len(table) * rate / (table.rate or rate))


def _positions(table: FeatureTable, rate: float | None, n_frames: int) -> NDArray[np.float64]:
    """Return the frame of each sample, which may be a fraction."""
    n, path = len(table), table.path
    positions: NDArray[np.float64]
    if table.frames is not None:
        positions = table.frames
    elif table.stride is not None and (rate is None or table.rate is None):
        positions = np.arange(n, dtype=np.float64) * table.stride
    elif table.times is not None or table.rate is not None:
        if rate is None:
            raise FormatError(path, "its times cannot be compared with frames, because the frame rate is unknown; fill in column 'rate'")
        positions = table.times * rate if table.times is not None else np.arange(n, dtype=np.float64) * (rate / float(table.rate or 1.0))
    elif abs(n - n_frames) <= max(1, MAX_EXCESS * n_frames):
        positions = np.arange(n, dtype=np.float64)
    else:
        raise FormatError(
            path, f"{n:,} rows for {n_frames:,} frames, and no rate is stated: fill in column 'features_rate' (rows per second)"
        )
    if len(positions) and positions[-1] > n_frames + max(1, MAX_EXCESS * n_frames) + _step(positions):
        raise FormatError(path, f"the features last {positions[-1]:,.0f} frames, but the recording {n_frames:,}: are they of another one?")
    return positions


def _step(positions: NDArray[np.float64]) -> float:
    return float(np.median(np.diff(positions))) if len(positions) > 1 else 1.0


def _reduced_names(table: FeatureTable) -> list[str]:
    """Return the names of the features; of random projections, names that tell what was projected."""
    if len(table.names) <= MAX_WIDTH:
        return list(table.names)
    digest = hashlib.blake2b("\0".join(table.names).encode(), digest_size=3).hexdigest()
    source = table.names[0].rpartition("/")[0] or "features"
    return [f"{source}/{len(table.names)}-{digest}/{i}" for i in range(MAX_WIDTH)]


def _on_frames(table: FeatureTable, positions: NDArray[np.float64], n_frames: int) -> NDArray[Any]:
    """Return the values of each frame: the file itself if it has them, else from the cache."""
    is_map = isinstance(table.values, np.memmap) and table.values.dtype.kind == "f"
    if is_map and table.values.shape[1] <= MAX_WIDTH and len(positions) == n_frames and np.array_equal(positions, np.arange(n_frames)):
        return table.values
    key = hashlib.blake2b(positions.tobytes() + repr((n_frames, table.names)).encode(), digest_size=8).hexdigest()
    build = partial(_build, table, positions, n_frames)
    return cached_arrays(table.path, f"{PARSER}-{key}", build)["values"]


def _build(table: FeatureTable, positions: NDArray[np.float64], n_frames: int) -> dict[str, NDArray[Any]]:
    return {"values": align_samples(reduce_width(table.values), positions, n_frames)}


def reduce_width(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return at most `MAX_WIDTH` columns: wider arrays are projected onto fixed random directions, the same for every file of this width.

    Examples
    --------
    >>> reduce_width(np.ones((5, 768))).shape, reduce_width(np.ones((5, 3))).shape
    ((5, 64), (5, 3))
    """
    width = values.shape[1]
    if width <= MAX_WIDTH:
        return np.asarray(values, dtype=np.float32)
    directions = np.random.Generator(np.random.PCG64(width)).choice([-1.0, 1.0], size=(width, MAX_WIDTH)) / np.sqrt(width)
    reduced = np.empty((len(values), MAX_WIDTH), dtype=np.float32)
    for start in range(0, len(values), CHUNK_ROWS):
        with np.errstate(invalid="ignore"):
            reduced[start : start + CHUNK_ROWS] = np.asarray(values[start : start + CHUNK_ROWS], dtype=np.float64) @ directions
    return reduced


def align_samples(values: NDArray[Any], positions: NDArray[np.float64], n_frames: int) -> NDArray[np.float32]:
    """Convert samples to frames: means of several samples in a frame, else linear interpolation; NaN where no sample is nearby.

    Parameters
    ----------
    values : array (n_samples, n_features)
    positions : array (n_samples,)
        Frame of each sample, which may be a fraction; increasing.
    n_frames : int

    Returns
    -------
    array of float32 (n_frames, n_features)

    Examples
    --------
    >>> align_samples(np.array([[0.0], [4.0]]), np.array([0.0, 4.0]), 6).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    >>> align_samples(np.array([[1.0], [3.0], [5.0]]), np.array([0.0, 0.5, 1.0]), 2).ravel().tolist()
    [2.0, 5.0]
    """
    result = np.full((n_frames, values.shape[1]), np.nan, dtype=np.float32)
    inside = positions < n_frames
    values, positions = np.asarray(values)[inside], positions[inside]
    if not len(values):
        return result
    step = _step(positions)
    if step < 0.75:
        in_frames, starts = np.unique(np.maximum(positions, 0).astype(np.int64), return_index=True)
        finite = np.isfinite(values)
        count = np.add.reduceat(finite.astype(np.float64), starts, axis=0)
        total = np.add.reduceat(np.where(finite, values, 0.0).astype(np.float64), starts, axis=0)
        with np.errstate(invalid="ignore"):
            result[in_frames] = total / count
        return result
    for first in range(0, n_frames, CHUNK_ROWS):
        frames = np.arange(first, min(first + CHUNK_ROWS, n_frames), dtype=np.float64)
        after = np.clip(np.searchsorted(positions, frames), 0, len(positions) - 1)
        before = np.clip(np.searchsorted(positions, frames, side="right") - 1, 0, len(positions) - 1)
        width = positions[after] - positions[before]
        share = np.clip(np.where(width > 0, (frames - positions[before]) / np.maximum(width, 1e-9), 0.0), 0, 1)[:, None].astype(np.float32)
        exact = share == 0
        low, high = values[before], np.where(exact, values[before], values[after])
        reach = np.minimum(np.abs(frames - positions[before]), np.abs(positions[after] - frames))
        near = (width <= MAX_GAP_STEPS * step) & (reach < max(step, 1.0))
        blocks = np.where(exact, low, low * (1 - share) + high * share)
        result[first : first + len(frames)] = np.where(near[:, None], blocks, np.nan)
    return result
