"""Import of behaviors from an uploaded file: an ``ethogram.csv``, a BORIS project, or a file of any format that is read."""

from __future__ import annotations

import re
import tempfile
from functools import reduce
from pathlib import Path, PurePath

from ethobench.app.ethograms import Entry, entries_of, read_entries
from ethobench.core import Ethogram
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.names import file_stem
from ethobench.formats import detect
from ethobench.formats.boris import read_boris_ethogram
from ethobench.formats.io import read_at_rate

ASSUMED_RATE = 30.0  # times do not matter here


def import_entries(name: str, content: bytes) -> tuple[Entry, ...]:
    """Return the behaviors that an uploaded file defines or contains.

    Parameters
    ----------
    name : str
        File name; only its ending is used to detect the format.
    content : bytes
    """
    suffix = PurePath(name.replace("\\", "/")).suffix
    suffix = suffix if re.fullmatch(r"\.\w{1,10}", suffix) else ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{file_stem(PurePath(name).stem) or 'file'}{suffix}"
        path.write_bytes(content)
        try:
            entries = _read(path)
        except EthobenchError as error:
            raise EthobenchError(str(error).replace(str(path), name)) from None
    if not entries:
        raise EthobenchError(f"{name} contains no behaviors")
    return entries


def _read(path: Path) -> tuple[Entry, ...]:
    try:
        format = detect(path)
    except FormatError as error:
        try:
            return read_entries(path)
        except EthobenchError:
            raise error from None
    if format.name == "boris":
        return entries_of(read_boris_ethogram(path))
    ethograms = (a.ethogram for recording in read_at_rate(path, ASSUMED_RATE) for a in recording.annotations.values())
    return entries_of(reduce(Ethogram.join, ethograms, Ethogram([])))
