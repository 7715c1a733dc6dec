"""Check that a folder from elsewhere is self-contained: nothing in it leads to files outside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ethobench.core.errors import FormatError


def check_folder(path: str | Path) -> None:
    """Refuse a folder with links that lead out of it, with anything but files and folders, or with unsafe names.

    A downloaded folder must not decide which of the user's files are read. Links to files within the folder are accepted; `path`
    itself may be a link, since the user named it.

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
    >>> check_folder(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ethobench.core.errors.FormatError: ...example0.mp4: refused: this link leads out of the folder
    """
    root = Path(path).resolve()
    for folder, folder_names, file_names in os.walk(root, followlinks=False):
        for name in sorted([*folder_names, *file_names]):
            _check_entry(Path(folder) / name, root)


def _check_entry(path: Path, root: Path) -> None:
    if "\\" in path.name or not path.name.isprintable():
        raise FormatError(path.parent, f"refused: the name {path.name!r} has a separator or a character that cannot be printed")
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # it leads nowhere, or to itself
            raise FormatError(path, "refused: this link leads to no file") from None
        if not target.is_relative_to(root):
            raise FormatError(path, "refused: this link leads out of the folder")
        if not target.is_file():
            raise FormatError(path, "refused: this is a link to a folder")
    elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FormatError(path, "refused: this is neither a file nor a folder")
