"""A cache of features, so that they are computed once for all training runs of a command, or of a project.

Cross-validation trains several times on almost the same recordings. Inside `feature_cache`, features of a recording's signals are kept in
a temporary folder that all processes of the command share. The key is the content of the signals, so results are the same with and
without the cache.

A persistent cache survives the command. Its folder has arrays only, as NPY files that are memory-mapped when they are used; what is no
array is kept in memory. Entries are written atomically, an unreadable entry is computed again, and the least recently used entries are
removed where the cache exceeds its size.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ethobench.core import Signals
from ethobench.core.files import atomic_path, write_bytes
from ethobench.core.recording import Data

MAX_BYTES = 4 << 30
MAX_IN_MEMORY = 1000  # values of persistent caches that are no arrays, such as baselines
ARRAY_SUFFIX = ".npy"
Value = TypeVar("Value")


@dataclass(frozen=True)
class _Cache:
    """A folder of cached values, and whether it survives the command."""

    folder: Path
    persistent: bool = False


_active: ContextVar[_Cache | None] = ContextVar("feature_cache", default=None)
_in_memory: dict[str, Any] = {}


@contextmanager
def feature_cache(folder: str | Path | None, *, persistent: bool = False) -> Iterator[None]:
    """Keep computed features in a folder while the context is active.

    Parameters
    ----------
    folder : path or None
        Private to the command, which must delete it, because its files are pickles. None for no cache.
    persistent : bool
        Keep arrays as NPY files instead, which are safe to read back later. The folder is created if it does not exist.
    """
    if folder is not None and persistent:
        with suppress(OSError):
            Path(folder).mkdir(parents=True, exist_ok=True)
    token = _active.set(None if folder is None else _Cache(Path(folder), persistent))
    try:
        yield
    finally:
        _active.reset(token)


def cache_folder() -> Path | None:
    """Return the folder of the active `feature_cache`, or None."""
    active = _active.get()
    return None if active is None else active.folder


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
    active = _active.get()
    if active is None:
        return compute()
    name = f"{kind}-{_digest(data, settings)}"
    if active.persistent:
        return _cached_array(active.folder / f"{name}{ARRAY_SUFFIX}", compute)
    path = active.folder / name
    with suppress(FileNotFoundError):
        return pickle.loads(path.read_bytes())  # type: ignore[no-any-return]  # noqa: S301 - written by this command
    value = compute()
    _write(path, pickle.dumps(value, protocol=5))
    return value


def precompute(kind: str, data: Data, settings: Any, compute: Callable[[], Any]) -> None:
    """Add a value to the active cache, unless it is there already; the parameters are those of `cached`."""
    active = _active.get()
    suffix = ARRAY_SUFFIX if active is not None and active.persistent else ""
    if active is not None and not (active.folder / f"{kind}-{_digest(data, settings)}{suffix}").exists():
        cached(kind, data, settings, compute)


def _cached_array(path: Path, compute: Callable[[], Value]) -> Value:
    """Return a value of a persistent cache: an array is memory-mapped, anything else is kept in memory."""
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
        entries = [entry for entry in path.parent.glob(f"*{ARRAY_SUFFIX}") if not entry.name.startswith(".")]  # no temporary files
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        total = sum(entry.stat().st_size for entry in entries) + array.nbytes
        for entry in entries:
            if total <= MAX_BYTES:
                break
            total -= entry.stat().st_size
            entry.unlink(missing_ok=True)
        if array.nbytes <= MAX_BYTES:
            with atomic_path(path, overwrite=True) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)


def _digest(data: Data, settings: Any) -> str:
    digest = hashlib.blake2b(repr((_package_version(), settings)).encode(), digest_size=16)
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


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; write nothing where the cache or the disk is full."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        if sum(entry.stat().st_size for entry in entries) + len(content) <= MAX_BYTES:
            write_bytes(path, content, overwrite=True, durable=False)
