"""A cache of features, so that they are computed once for all training runs of a command.

Cross-validation trains several times on almost the same recordings. Inside `feature_cache`, features of a recording's signals are kept in
a temporary folder that all processes of the command share. The key is the content of the signals, so results are the same with and
without the cache.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ethobench.core import Signals
from ethobench.core.files import write_bytes
from ethobench.core.recording import Data

MAX_BYTES = 4 << 30
_folder: ContextVar[Path | None] = ContextVar("feature_cache", default=None)
Value = TypeVar("Value")


@contextmanager
def feature_cache(folder: str | Path | None) -> Iterator[None]:
    """Keep computed features in a folder while the context is active.

    Parameters
    ----------
    folder : path or None
        Private to the command, which must delete it, because its files are pickles. None for no cache.
    """
    token = _folder.set(None if folder is None else Path(folder))
    try:
        yield
    finally:
        _folder.reset(token)


def cache_folder() -> Path | None:
    """Return the folder of the active `feature_cache`, or None."""
    return _folder.get()


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
    folder = _folder.get()
    if folder is None:
        return compute()
    path = folder / f"{kind}-{_digest(data, settings)}"
    with suppress(FileNotFoundError):
        return pickle.loads(path.read_bytes())  # type: ignore[no-any-return]  # noqa: S301 - written by this command
    value = compute()
    _write(path, pickle.dumps(value, protocol=5))
    return value


def precompute(kind: str, data: Data, settings: Any, compute: Callable[[], Any]) -> None:
    """Add a value to the active cache, unless it is there already; the parameters are those of `cached`."""
    folder = _folder.get()
    if folder is not None and not (folder / f"{kind}-{_digest(data, settings)}").exists():
        cached(kind, data, settings, compute)


def _digest(data: Data, settings: Any) -> str:
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
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


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; write nothing where the cache or the disk is full."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        if sum(entry.stat().st_size for entry in entries) + len(content) <= MAX_BYTES:
            write_bytes(path, content, overwrite=True, durable=False)
