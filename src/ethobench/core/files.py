"""Files and folders: atomic writing, JSON, the check for existing paths, and the check of folders from elsewhere.

An atomic write goes to a temporary name in the target folder, is flushed to disk and renamed; the rename is flushed too. After a crash or
a power cut there is the old file or the new one, never a mixture or an empty one. The name of a temporary file identifies the process that
writes it. Files of killed processes are removed when another process first writes to the same folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, FormatError, PathExistsError
from ethobench.core.messages import Message, Option
from ethobench.core.processes import is_alive, machine_digest, start_time

TEMPORARY_PREFIX = ".ethobench-tmp-"
STALE_SECONDS = 24 * 3600.0
"""Age after which a temporary file of another machine is considered stale."""

MAX_JSON_BYTES = 1 << 28

_MAX_SUFFIX_BYTES = 16
_TEMPORARY = re.compile(
    re.escape(TEMPORARY_PREFIX) + r"((?P<machine>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-(?P<started>[0-9]{0,20})-)?[0-9a-f]{16}(\..*)?"
)
_cleaned_folders: set[Path] = set()


def check_new_path(path: str | Path, *, overwrite: bool | None = None) -> None:
    """Raise a `PathExistsError` if a file, folder or link of this name exists and must not be replaced.

    Parameters
    ----------
    path : str or Path
    overwrite : bool, optional
        Whether it may be replaced. None (the default) where no such option exists, so the message does not suggest it.

    Examples
    --------
    >>> check_new_path(folder / "new.csv")
    >>> check_new_path(folder, overwrite=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ethobench.core.errors.PathExistsError: ... already exists (use overwrite=True to replace it)
    """
    if not overwrite and os.path.lexists(path):
        hint = "choose another path" if overwrite is None else Message("use ", Option("overwrite", True), " to replace it")
        raise PathExistsError(Message(f"{path} already exists (", hint, ")"))


@contextmanager
def atomic_path(path: str | Path, *, overwrite: bool = False, durable: bool = True) -> Iterator[Path]:
    """Write a file atomically: yield a new, empty file, which is renamed to `path` if the block ends without an error.

    Parameters
    ----------
    path : str or Path
        Its folder is created if necessary.
    overwrite : bool
        Whether to replace an existing file. Otherwise it is an error, also if the file appears while the block runs.
    durable : bool
        Whether to flush file and folder to disk. Not needed for files that are useless after a power cut.

    Yields
    ------
    Path
        A file in the same folder with the same suffix, to be opened for writing. It must not be deleted or replaced: in a folder that
        others can write to, another user could create a file of that name.

    Raises
    ------
    PathExistsError
        If `path` exists and `overwrite` is False.

    Examples
    --------
    >>> with atomic_path(folder / "notes.txt") as temporary:
    ...     _ = temporary.write_text("day 1: calm", encoding="utf-8")
    >>> (folder / "notes.txt").read_text(encoding="utf-8")
    'day 1: calm'
    """
    path = Path(path)
    check_new_path(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    _clean_once(path.parent)
    temporary = path.parent / temporary_name(path.suffix if len(path.suffix.encode()) <= _MAX_SUFFIX_BYTES else "")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        try:
            yield temporary
            if not os.path.samestat(os.fstat(handle), os.lstat(temporary)):
                raise EthobenchError(f"{path} was not written: its temporary file {temporary.name} was replaced in the meantime")
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        if overwrite:
            temporary.replace(path)
        else:
            rename_to_new(temporary, path)
        if durable:
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
    """Write a file atomically; see `atomic_path`."""
    with atomic_path(path, overwrite=overwrite, durable=durable) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, text: str, *, overwrite: bool = False, durable: bool = True) -> None:
    """Write a UTF-8 text file atomically; see `atomic_path`."""
    write_bytes(path, text.encode(), overwrite=overwrite, durable=durable)


def read_json(path: str | Path, *, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Read a JSON file that Ethobench wrote.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        Larger files are refused before they are parsed.

    Raises
    ------
    FormatError
        If the file is too large or nested too deeply, is not UTF-8 or not JSON, or has a duplicate key.

    Examples
    --------
    >>> write_json(folder / "settings.json", {"rate": 30})
    >>> read_json(folder / "settings.json")
    {'rate': 30}
    """
    path = Path(path)
    if (size := path.stat().st_size) > max_bytes:
        raise FormatError(path, f"the file has {size} bytes, more than the limit of {max_bytes} for JSON")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"the text is not valid UTF-8 (byte {error.start})") from None
    return parse_json(path, text)


def parse_json(path: Path, text: str) -> Any:
    """Parse the text of a JSON file; errors name the file, the line and the column."""
    try:
        return json.loads(text, object_pairs_hook=_object_without_duplicates)
    except json.JSONDecodeError as error:
        truncated = "; the file may be truncated" if error.pos >= len(text.rstrip()) - 1 else ""
        raise FormatError(path, f"not valid JSON ({error.msg}{truncated})", f"line {error.lineno}, column {error.colno}") from None
    except _DuplicateKeyError as error:
        raise FormatError(path, f"duplicate key {str(error)!r} in a JSON object") from None
    except RecursionError:
        raise FormatError(path, "the JSON is nested too deeply") from None


class _DuplicateKeyError(ValueError):
    """A JSON object with a duplicate key."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; refuse duplicate keys, since one of the values would be lost."""
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _DuplicateKeyError(next(key for key, count in counts.items() if count > 1))
    return content


def write_json(path: str | Path, content: Any, *, indent: int | None = 1, overwrite: bool = False, durable: bool = True) -> None:
    """Write a JSON file atomically, as UTF-8; see `atomic_path`."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False), overwrite=overwrite, durable=durable)


def temporary_name(suffix: str = "") -> str:
    """Return a new name for a temporary file or folder of this process; see `remove_stale_temporaries`."""
    pid = os.getpid()
    return f"{TEMPORARY_PREFIX}{machine_digest()}-{pid}-{_start_time(pid) or ''}-{secrets.token_hex(8)}{suffix}"


@contextmanager
def temporary_folder(parent: Path, mode: int = 0o777, stale_after: float = STALE_SECONDS) -> Iterator[Path]:
    """Yield a new folder in `parent`, which is removed when the block ends unless it was renamed.

    Parameters
    ----------
    parent : Path
        Created if necessary.
    mode : int
        Permissions of the new folder, restricted by the user's umask.
    stale_after : float
        Age in seconds after which temporary folders of other machines are removed.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _clean_once(parent, stale_after)
    folder = parent / temporary_name()
    folder.mkdir(mode=mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Write a folder atomically: yield a new folder, which is flushed to disk and renamed to `path` if the block ends without an error.

    Raises
    ------
    PathExistsError
        If `path` exists before or after the block.
    """
    check_new_path(path)
    with temporary_folder(path.parent) as temporary:
        yield temporary
        sync_tree(temporary)
        check_new_path(path)
        temporary.replace(path)
        sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Flush all files of a folder, and the folder itself, to disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            sync_folder(path)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        return
    try:
        with suppress(OSError):  # some network file systems do not flush them
            os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_stale_temporaries(folder: Path, older_than: float = STALE_SECONDS) -> None:
    """Remove temporary files and folders of this user that killed processes left in a folder.

    Those of dead processes of this machine are removed. Of processes of other machines only the age is known.

    Parameters
    ----------
    folder : Path
    older_than : float
        Minimum age in seconds of those of other machines, since the last change.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None:
                continue
            with suppress(OSError):  # another process may be faster
                status = entry.stat(follow_symlinks=False)
                if (user is not None and status.st_uid != user) or not _is_stale(match, time.time() - status.st_mtime, older_than):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink()


def _is_stale(match: re.Match[str], age: float, older_than: float) -> bool:
    if match["machine"] == machine_digest():
        return not is_alive(int(match["pid"]), match["started"] or None)
    return age >= older_than


@lru_cache(maxsize=8)
def _start_time(pid: int) -> str | None:
    """Cache `start_time` by process id, since a forked process has another one."""
    return start_time(pid)


def _clean_once(folder: Path, older_than: float = STALE_SECONDS) -> None:
    """Remove stale temporary files when this process first writes to a folder."""
    if folder not in _cleaned_folders:
        _cleaned_folders.add(folder)
        remove_stale_temporaries(folder, older_than)


def rename_to_new(temporary: Path, path: Path) -> None:
    """Rename a file to a path on the same disk that must not exist, without a race. The old name may remain as a second link.

    Raises
    ------
    PathExistsError
        If `path` exists.
    """
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        check_new_path(path, overwrite=False)
        raise
    except OSError:  # a file system without hard links
        check_new_path(path, overwrite=False)
        temporary.replace(path)


def check_self_contained(path: str | Path) -> None:
    """Refuse a folder with links to files outside it, with special files, or with unsafe names.

    A downloaded folder must not decide which of the user's files are read. Links to files within the folder are accepted; `path`
    itself may be a link, since the user chose it.

    Parameters
    ----------
    path : path
        The folder; all folders below it are checked as well.

    Raises
    ------
    FormatError
        Names the first offending file.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "example0.mp4").symlink_to("/etc/hostname")
    >>> check_self_contained(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ethobench.core.errors.FormatError: ...example0.mp4: refused: this link points outside the folder
    """
    root = Path(path).resolve()
    for folder, folder_names, file_names in os.walk(root, followlinks=False):
        for name in sorted([*folder_names, *file_names]):
            _check_entry(Path(folder) / name, root)


def _check_entry(path: Path, root: Path) -> None:
    if "\\" in path.name or not path.name.isprintable():
        raise FormatError(path.parent, f"refused: the name {path.name!r} has a path separator or an unprintable character")
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # broken, or a loop
            raise FormatError(path, "refused: this link is broken") from None
        if not target.is_relative_to(root):
            raise FormatError(path, "refused: this link points outside the folder")
        if not target.is_file():
            raise FormatError(path, "refused: this is a link to a folder")
    elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FormatError(path, "refused: not a regular file or folder")
