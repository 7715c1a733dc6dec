"""Arrays parsed from large files, kept as memory-mapped copies keyed by the file's content."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def cache_folder() -> Path:
    """Return the folder for things that can be made again: ``$ETHOBENCH_CACHE`` or the user's cache folder."""
    stated = os.environ.get("ETHOBENCH_CACHE")
    if stated:
        return Path(stated)
    import pooch

    return Path(pooch.os_cache("ethobench"))


def cached_arrays(path: Path, kind: str, build: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return what `build` makes from a file, from the cache where it has been built before.

    Parameters
    ----------
    path : Path
        The source; its content is the key.
    kind : str
        Names the parser and its revision, e.g. ``"calms21-1"``; raised when the arrays it makes change.
    build : callable
        Parses the file to plain arrays by name. Not called if the cache has them.

    Returns
    -------
    dict of str to array
        Memory-mapped, read-only. Plain arrays where no cache can be written.
    """
    root = cache_folder() / "arrays"
    folder = root / f"{kind}-{content_hash(path, root)}"
    if not folder.is_dir():
        arrays = dict(build())
        try:
            _store(arrays, folder)
        except OSError:
            return arrays
    return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in sorted(folder.glob("*.npy"))}


def content_hash(path: Path, root: Path) -> str:
    """Hash a file's content; for a file that has not been touched since, remembered."""
    status = path.stat()
    identity = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    memo = root / "known" / hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    try:
        return memo.read_text(encoding="ascii")
    except OSError:
        pass
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=memo.parent)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(digest)
        Path(name).replace(memo)
    except OSError:
        return digest
    return digest


def _store(arrays: Mapping[str, NDArray[Any]], folder: Path) -> None:
    """Write arrays to a folder that appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        temporary.replace(folder)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not folder.is_dir():
            raise
