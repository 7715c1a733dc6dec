"""A CalMS21 file as flat arrays, one for each field, with an index that tells where the numbers of each sequence lie."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.formats.json_arrays import JsonScanner
from ethobench.formats.npy import read_header
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.safe_pickle import load_plain

LABELS = "annotations"
FIELDS = {"keypoints": 4, "scores": 3, LABELS: 1, "features": 2}
CACHED_AS = "calms21-1"
NPY_MAGIC = b"\x93NUMPY"


def load(path: Path) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """Return all numbers of a file as flat arrays by field, and for each sequence where its own lie."""
    with path.open("rb") as file:
        is_npy = file.read(len(NPY_MAGIC)) == NPY_MAGIC
    arrays = cached_arrays(path, CACHED_AS, lambda: (parse_npy if is_npy else parse_json)(path))
    return arrays, json.loads(arrays["index"].tobytes())


def values_of(arrays: Mapping[str, NDArray[Any]], record: dict[str, Any], field: str) -> NDArray[Any] | None:
    """Return the numbers of one field of a sequence; None if it has none."""
    part = record["fields"].get(field)
    if part is None:
        return None
    return arrays[field][part["at"] : part["at"] + int(np.prod(part["shape"]))].reshape(part["shape"])


class _Collected:
    """The sequences of a file while it is parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pieces: dict[str, list[NDArray[np.float64]]] = {field: [] for field in FIELDS}
        self.lengths = dict.fromkeys(FIELDS, 0)
        self.index: list[dict[str, Any]] = []
        self.known: set[tuple[str, str]] = set()

    def begin(self, group: str, sequence: str) -> dict[str, Any]:
        if (group, sequence) in self.known:
            raise FormatError(self.path, f"sequence {sequence!r} stands twice in group {group!r}")
        self.known.add((group, sequence))
        entry: dict[str, Any] = {"group": group, "id": sequence, "fields": {}, "metadata": {}, "strange": []}
        self.index.append(entry)
        return entry

    def add(self, entry: dict[str, Any], field: str, pieces: list[NDArray[np.float64]]) -> None:
        shape = (sum(len(piece) for piece in pieces), *pieces[0].shape[1:])
        if len(shape) != FIELDS[field] and shape[0]:
            raise FormatError(self.path, f"{field} of shape {shape}, where {FIELDS[field]} axes were expected", f"sequence {entry['id']!r}")
        entry["fields"][field] = {"at": self.lengths[field], "shape": shape}
        self.pieces[field] += [piece.reshape(-1) for piece in pieces]
        self.lengths[field] += int(np.prod(shape))

    def arrays(self) -> dict[str, NDArray[Any]]:
        if not self.index:
            raise FormatError(self.path, "the file holds no sequence")
        made: dict[str, NDArray[Any]] = {"index": np.frombuffer(json.dumps(self.index).encode(), dtype=np.uint8)}
        for field in FIELDS:
            pieces = self.pieces.pop(field)
            made[field] = np.concatenate(pieces) if pieces else np.empty(0)
        return made


def parse_npy(path: Path) -> dict[str, NDArray[Any]]:
    """Read the NPY form, a pickled dictionary, of which only arrays and plain values are taken."""
    with path.open("rb") as file:
        shape, dtype = read_header(path, file)
        if not dtype.hasobject or shape != ():
            raise FormatError(path, f"an array of shape {shape} and type {dtype}, where CalMS21's NPY form holds one dictionary")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            memory.seek(file.tell())
            content = load_plain(path, memory)  # type: ignore[arg-type]
    content = content[()] if isinstance(content, np.ndarray) and content.shape == () else content
    collected = _Collected(path)
    for group, sequences in _items(path, content, "the file"):
        for sequence, record in _items(path, sequences, f"group {group!r}"):
            entry = collected.begin(group, sequence)
            for field, value in _items(path, record, f"sequence {sequence!r}"):
                if field in FIELDS:
                    try:
                        collected.add(entry, field, [np.asarray(value, dtype=np.float64)])
                    except ValueError as error:
                        raise FormatError(path, f"{field} is no array of numbers ({error})", f"sequence {sequence!r}") from None
                elif field == "metadata":
                    entry["metadata"] = _jsonable(value)
                else:
                    entry["strange"].append(field)
    return collected.arrays()


def _items(path: Path, value: Any, what: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise FormatError(path, f"{what} holds {type(value).__name__}, where names and their content were expected")
    return ((str(name), inner) for name, inner in value.items())


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _jsonable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _jsonable(value.tolist())
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def parse_json(path: Path) -> dict[str, NDArray[Any]]:
    """Read the JSON form in pieces."""
    if path.stat().st_size == 0:
        raise FormatError(path, "the file is empty (0 bytes)")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        scanner = JsonScanner(path, memory, "CalMS21 JSON")
        collected = _Collected(path)
        for group in scanner.members():
            for sequence in scanner.members():
                entry = collected.begin(group, sequence)
                for field in scanner.members():
                    scanner.where = f"sequence {sequence!r}, {field}"
                    if field in FIELDS:
                        collected.add(entry, field, scanner.numbers())
                    elif field == "metadata":
                        entry["metadata"] = scanner.value()
                    else:
                        entry["strange"].append(field)
                        scanner.skip()
                scanner.forget()
        scanner.finish()
        return collected.arrays()
