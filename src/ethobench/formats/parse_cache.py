"""A cache of arrays parsed from large files, stored as memory-mapped NPY files keyed by the file's content.

The cache may be deleted at any time and survives a power cut: entries are written atomically and carry checksums; an entry that does not
match them is removed and rebuilt. A damaged entry never changes what is read and is never reported as damage of the source file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.files import sha256_of, sync_folder, sync_tree, temporary_folder, write_text

ENTRY = "entry.json"
SMALL_FILE = 1 << 20  # bytes; hashed in a millisecond, so the hash is not cached
SAMPLED_BLOCKS, BLOCK = 32, 4096
CLOCK_GRAIN = 2_000_000_000  # nanoseconds; a file changed twice within it may keep its time stamps (FAT and some network drives)

_log = logging.getLogger(__name__)
_verified: dict[Path, tuple[int, ...]] = {}


def cache_folder() -> Path:
    """Return the folder for data that can be recomputed: ``$ETHOBENCH_CACHE`` or the user's cache folder."""
    stated = os.environ.get("ETHOBENCH_CACHE")
    if stated:
        return Path(stated)
    import pooch

    return Path(pooch.os_cache("ethobench"))


def cached_arrays(path: Path, kind: str, build: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays that `build` parses from a file, from the cache if they are there.

    Parameters
    ----------
    path : Path
        The source; its content is the key.
    kind : str
        Name and revision of the parser, e.g. ``"calms21-1"``. Must change whenever the arrays do.
    build : callable
        Parses the file and returns arrays by name. Not called if the cache has them.

    Returns
    -------
    dict of str to array
        Memory-mapped and read-only; arrays in memory if the cache cannot be written.
    """
    root = cache_folder() / "arrays"
    source_stamps = _stamps(path)
    key = f"{kind}-{content_hash(path, root)}"
    cached = _load(root / key, key)
    if cached is not None:
        return cached
    arrays = dict(build())
    if _stamps(path) != source_stamps:  # the file changed during parsing, so the arrays may not belong to this hash
        return arrays
    try:
        _store(arrays, root / key, key)
    except OSError:
        return arrays
    return _load(root / key, key) or arrays


def content_hash(path: Path, root: Path) -> str:
    """Return a hash of a file's content, cached for large files until they change.

    Parameters
    ----------
    path : Path
    root : Path
        Folder for cached hashes.
    """
    if path.stat().st_size <= SMALL_FILE:
        return _hash_content(path)
    return cached_text(path, root / "hashes", lambda: _hash_content(path))


def cached_text(path: Path, folder: Path, compute: Callable[[], str]) -> str:
    """Return a text computed from a file, cached in a folder until the file changes.

    The state of the file is its path, size, inode, times of modification and status change, and samples of its content.
    The text is not cached if the file changed in the last seconds, because another change may not alter its time stamps.

    Parameters
    ----------
    path : Path
    folder : Path
        Holds one file with a checksum for each text.
    compute : callable
        Returns the text. Not called if the cache has it.
    """
    identity = _identity(path)
    memo = folder / hashlib.blake2b(identity, digest_size=16).hexdigest()
    text = _read_memo(memo, identity)
    if text is not None:
        return text
    text = compute()
    status = path.stat()
    is_settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > CLOCK_GRAIN
    if is_settled and _identity(path) == identity:
        with suppress(OSError):  # the cache is optional
            write_text(memo, f"{_memo_checksum(identity, text)}\n{text}", overwrite=True)
    return text


def _read_memo(memo: Path, identity: bytes) -> str | None:
    """Return a cached text; None if it does not exist or is damaged."""
    try:
        checksum, _, text = memo.read_text(encoding="utf-8").partition("\n")
    except OSError:
        return None
    except UnicodeDecodeError:
        checksum, text = "", ""
    if checksum == _memo_checksum(identity, text):
        return text
    _log.warning("%s: damaged cache file; recomputing", memo)
    return None


def _memo_checksum(identity: bytes, text: str) -> str:
    return hashlib.sha256(identity + b"\0" + text.encode()).hexdigest()


def _identity(path: Path) -> bytes:
    """Return a digest that identifies a file and its state without reading all of it."""
    size = path.stat().st_size
    digest = hashlib.sha256(repr((str(path.resolve()), _stamps(path))).encode())
    with path.open("rb") as file:
        for position in np.linspace(0, max(0, size - BLOCK), SAMPLED_BLOCKS).astype(int):
            file.seek(int(position))
            digest.update(file.read(BLOCK))
    return digest.digest()


def _stamps(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _hash_content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _load(folder: Path, key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays of an entry; None if it does not exist. A damaged entry is removed."""
    if not folder.is_dir():
        return None
    try:
        checksums = _read_entry(folder, key)
        return {name: _open_array(folder / f"{name}.npy", checksum) for name, checksum in checksums.items()}
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        _log.warning("%s: damaged cache entry; rebuilding (%s)", folder, error)
        _discard(folder)
        return None


def _read_entry(folder: Path, key: str) -> dict[str, str]:
    entry = json.loads((folder / ENTRY).read_text(encoding="utf-8"))
    if entry["key"] != key or entry["checksum"] != _entry_checksum(key, entry["arrays"]):
        raise ValueError(f"{ENTRY} does not match its checksum")
    checksums: dict[str, str] = entry["arrays"]
    return checksums


def _entry_checksum(key: str, checksums: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps([key, dict(checksums)], sort_keys=True).encode()).hexdigest()


def _open_array(file: Path, checksum: str) -> NDArray[Any]:
    """Return a memory-mapped array; its checksum is verified once per process and again if the file changes."""
    stamps = _stamps(file)
    if _verified.get(file) != stamps:
        if sha256_of(file) != checksum:
            raise ValueError(f"{file.name} does not match its checksum")
        _verified[file] = stamps
    array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


def _store(arrays: Mapping[str, NDArray[Any]], folder: Path, key: str) -> None:
    """Write an entry atomically."""
    with temporary_folder(folder.parent) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        checksums = {name: sha256_of(temporary / f"{name}.npy") for name in arrays}
        entry = {"key": key, "arrays": checksums, "checksum": _entry_checksum(key, checksums)}
        (temporary / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
        sync_tree(temporary)
        try:
            temporary.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
            return  # another process wrote the same entry first
        sync_folder(folder.parent)


def _discard(folder: Path) -> None:
    """Remove a damaged entry atomically; processes that have it open keep their view."""
    with suppress(OSError), temporary_folder(folder.parent) as temporary:
        folder.replace(temporary / folder.name)
