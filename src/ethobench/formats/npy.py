"""Headers of NPY files that are not trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ethobench.core.errors import FormatError


def read_header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and type of an array; the file is then at its data.

    Raises
    ------
    FormatError
        For a damaged header, or one that claims to be longer than the file.
    """
    start = file.read(12)
    width = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(start[8 : 8 + width], "little")
    if length > path.stat().st_size:  # NumPy takes memory for the length before it reads
        raise FormatError(path, f"the NPY header is damaged (it claims {length:,} bytes)")
    file.seek(0)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # the header is Python text, so parsing a damaged one fails in many ways
        raise FormatError(path, f"the NPY header is damaged ({str(error).partition(chr(10))[0]})") from None
    return shape, dtype
