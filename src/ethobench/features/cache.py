"""A cache of features, so that they are computed once for all training runs of a command, or of a project.

Cross-validation trains several times on almost the same recordings. Inside `feature_cache`, features of a recording's signals are kept in
a folder that all processes share. The key is the content of the signals, the settings and the version of the features, so results are the
same with and without the cache.

The folder has arrays only, as NPY files that are memory-mapped when they are used; what is no array is kept in memory. Entries are written
atomically, and an unreadable entry is computed again. Where the cache exceeds its size, entries that were not used for some time are
removed, the least recently used first; if all are in use, nothing is added. The folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ethobench.core import Signals
from ethobench.core.files import atomic_path
from ethobench.core.recording import Data

FEATURE_REVISION = 4  # of all features that are cached; must change whenever their values do
MAX_BYTES = 4 << 30
IN_USE_SECONDS = 3600.0  # since the last use, during which an entry is not removed; otherwise a large study would evict its own features
MAX_IN_MEMORY = 1000  # values that are no arrays, such as baselines
ARRAY_SUFFIX = ".npy"
Value = TypeVar("Value")


_active: ContextVar[Path | None] = ContextVar("feature_cache", default=None)
_in_memory: dict[str, Any] = {}


@contextmanager
def feature_cache(folder: str | Path | None) -> Iterator[None]:
    """Keep computed features in a folder while the context is active.

    Parameters
    ----------
    folder : path or None
        Created if it does not exist. None for no cache.
    """
    if folder is not None:
        with suppress(OSError):
            Path(folder).mkdir(parents=True, exist_ok=True)
    token = _active.set(None if folder is None else Path(folder))
    try:
        yield
    finally:
        _active.reset(token)


def cache_folder() -> Path | None:
    """Return the folder of the active `feature_cache`, or None."""
    return _active.get()


def cached(kind: str, data: Data, settings: Any, compute: Callable[[], Value]) -> Value:
    """Return a value from the cache, or compute it and add it to the cache.

    Parameters
    ----------
    kind : str
        The kind of value, a part of the key.
    data : Signals or Poses
    settings : object
        Everything else that the value depends on; its `repr` is a part of the key.
    compute : callable
    """
    folder = _active.get()
    return compute() if folder is None else _cached_array(_entry(folder, kind, data, settings), compute)


def precompute(kind: str, data: Data, settings: Any, compute: Callable[[], Any]) -> None:
    """Add a value to the active cache, unless it is there already; the parameters are those of `cached`."""
    folder = _active.get()
    if folder is not None and not _entry(folder, kind, data, settings).exists():
        cached(kind, data, settings, compute)


def _entry(folder: Path, kind: str, data: Data, settings: Any) -> Path:
    return folder / f"{kind}-{_digest(data, settings)}{ARRAY_SUFFIX}"


def _cached_array(path: Path, compute: Callable[[], Value]) -> Value:
    """Return a cached value: an array is memory-mapped, anything else is kept in memory."""
    if path.name in _in_memory:
        return _in_memory[path.name]  # type: ignore[no-any-return]
    with suppress(OSError, ValueError, EOFError):  # missing, or damaged
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        with suppress(OSError):
            os.utime(path)  # used now
        return array  # type: ignore[no-any-return]
    value = compute()
    if isinstance(value, np.ndarray):
        _write_array(path, value)
    else:
        while len(_in_memory) >= MAX_IN_MEMORY:
            _in_memory.pop(next(iter(_in_memory)), None)
        _in_memory[path.name] = value
    return value


def _write_array(path: Path, array: np.ndarray) -> None:
    """Write an array atomically, and remove the least recently used ones; write nothing where the disk is full or read-only."""
    with suppress(OSError):
        if _make_room(path.parent, array.nbytes):
            with atomic_path(path, overwrite=True) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)


def _make_room(folder: Path, n_bytes: int) -> bool:
    """Remove entries that are not in use, where the cache would exceed its size; return whether there is room."""
    entries = []
    for entry in folder.glob(f"*{ARRAY_SUFFIX}"):
        with suppress(FileNotFoundError):  # another process may remove it
            if not entry.name.startswith("."):  # no temporary files
                entries.append((entry.stat().st_mtime, entry.stat().st_size, entry))
    total = sum(size for _, size, _ in entries) + n_bytes
    for used, size, entry in sorted(entries):
        if total <= MAX_BYTES or time.time() - used < IN_USE_SECONDS:
            break
        total -= size
        entry.unlink(missing_ok=True)
    return total <= MAX_BYTES


def _digest(data: Data, settings: Any) -> str:
    digest = hashlib.blake2b(repr((_package_version(), FEATURE_REVISION, settings)).encode(), digest_size=16)
    if data.extra is not None:
        digest.update(_digest(data.extra, None).encode())
    names: tuple[str, ...]
    arrays: list[np.ndarray]
    if isinstance(data, Signals):
        names, arrays = data.channels, [data.values]
    else:
        names, arrays = (*data.individuals, *data.keypoints), [data.positions, data.confidence]
    digest.update(repr((names, data.rate, [(array.shape, str(array.dtype)) for array in arrays])).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _package_version() -> str:
    """Return the version of this package, with which features may change."""
    return version("ethobench")
