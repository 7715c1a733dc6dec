"""Arrays parsed from large files, kept as memory-mapped copies keyed by the file's content.

The cache may be deleted at any time and survives a power cut: an entry appears whole or not at all, carries checksums, and is removed and
built again if they do not match. A damaged entry never changes what is read and is never reported as damage of the source file.
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
SMALL_FILE = 1 << 20  # bytes; hashed in a millisecond, so that nothing needs to be remembered
SAMPLED_BLOCKS, BLOCK = 32, 4096
CLOCK_GRAIN = 2_000_000_000  # nanoseconds; a file changed twice within it may keep its time stamps (FAT and some network drives)

_log = logging.getLogger(__name__)
_verified: dict[Path, tuple[int, ...]] = {}


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
    source_stamps = _stamps(path)
    key = f"{kind}-{content_hash(path, root)}"
    cached = _load(root / key, key)
    if cached is not None:
        return cached
    arrays = dict(build())
    if _stamps(path) != source_stamps:  # changed while it was parsed: the arrays may belong to another content
        return arrays
    try:
        _store(arrays, root / key, key)
    except OSError:
        return arrays
    return _load(root / key, key) or arrays


def content_hash(path: Path, root: Path) -> str:
    """Return a hash of a file's content; remembered for a large file that has not changed since.

    Parameters
    ----------
    path : Path
    root : Path
        Folder in which hashes are remembered.
    """
    if path.stat().st_size <= SMALL_FILE:
        return _hash_content(path)
    return cached_text(path, root / "known", lambda: _hash_content(path))


def cached_text(path: Path, folder: Path, compute: Callable[[], str]) -> str:
    """Return a text that is computed from a file, kept in a folder until the file changes.

    The file is recognized by its path, size, inode, times of modification and of status change, and by samples of its content.
    A file that changed in the last seconds is not remembered, because another change may leave its time stamps as they are.

    Parameters
    ----------
    path : Path
    folder : Path
        One file for each text, with a checksum.
    compute : callable
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
        with suppress(OSError):  # a cache that cannot be written is no reason to fail
            write_text(memo, f"{_memo_checksum(identity, text)}\n{text}", overwrite=True)
    return text


def _read_memo(memo: Path, identity: bytes) -> str | None:
    """Return a remembered text; None if there is none or it is damaged."""
    try:
        checksum, _, text = memo.read_text(encoding="utf-8").partition("\n")
    except OSError:
        return None
    except UnicodeDecodeError:
        checksum, text = "", ""
    if checksum == _memo_checksum(identity, text):
        return text
    _log.warning("%s: damaged, computed again", memo)
    return None


def _memo_checksum(identity: bytes, text: str) -> str:
    return hashlib.sha256(identity + b"\0" + text.encode()).hexdigest()


def _identity(path: Path) -> bytes:
    """Return what tells a file and its state from all others without reading all of it."""
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
    """Return the arrays of an entry; None if there is none. A damaged one is removed."""
    if not folder.is_dir():
        return None
    try:
        checksums = _read_entry(folder, key)
        return {name: _open_array(folder / f"{name}.npy", checksum) for name, checksum in checksums.items()}
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        _log.warning("%s: damaged cache entry, built again (%s)", folder, error)
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
    """Map an array into memory; its checksum is verified once in each process and whenever the file has changed."""
    stamps = _stamps(file)
    if _verified.get(file) != stamps:
        if sha256_of(file) != checksum:
            raise ValueError(f"{file.name} does not match its checksum")
        _verified[file] = stamps
    array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


def _store(arrays: Mapping[str, NDArray[Any]], folder: Path, key: str) -> None:
    """Write an entry that appears whole or not at all."""
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
            return  # another process was faster
        sync_folder(folder.parent)


def _discard(folder: Path) -> None:
    """Remove a damaged entry at once; processes that have it open keep what they see."""
    with suppress(OSError), temporary_folder(folder.parent) as temporary:
        folder.replace(temporary / folder.name)
