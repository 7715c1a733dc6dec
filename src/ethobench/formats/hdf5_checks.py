"""Checks an HDF5 file for damage on which the HDF5 library (2.0) loops without end or takes gigabytes of memory.

Texts of variable length lie in global heaps: collections that begin with ``GCOL`` and hold one object after another, each with its
size. The library moves from object to object by these sizes and never ends where one of them is zero, in a loop that no Python code
can interrupt. A heap that the library can reach begins with the signature, so all heaps are found by searching for it.

A text is stored as its length, the address of a heap and the number of an object there. The library takes memory for the length, up to
4 GB, before it compares it with the object.

A superblock of version 0 or 1 can name a block with information for a storage driver, and the library reads as many bytes as this block
claims to have, up to 4 GB, when it opens the file. Only files that are split into several have such a block.
"""

from __future__ import annotations

import mmap
from functools import lru_cache
from pathlib import Path

import numpy as np

from ethobench.core.errors import FormatError
from ethobench.formats.size_limits import SMALL_FILE

LARGEST_SEARCHED = 1 << 28  # bytes; searching larger files for heaps would delay reading by more than half a second
FILE_SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP_SIGNATURE = b"GCOL"
HEAP_VERSION = 1
ALIGNMENT = 8
LONGEST_TEXT = 1 << 26  # bytes
WIDTHS = (2, 4, 8, 16, 32)  # bytes of a size or an address


def check_structure(path: Path) -> None:
    """Refuse an HDF5 file that the HDF5 library cannot read within bounds; what the library itself refuses is left to it.

    Raises
    ------
    FormatError
        If a heap of texts is damaged, or the superblock names a driver.
    """
    status = path.stat()
    if not status.st_size:
        return
    damage = _find_damage(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    if damage is not None:
        offset, message = damage
        raise FormatError(path, f"the HDF5 file is damaged: {message}; copy or export it again", f"byte {offset}")


@lru_cache(maxsize=256)
def _find_damage(path: Path, _identity: tuple[int, ...]) -> tuple[int, str] | None:
    """Return where and what the first damage is; kept while the file is unchanged, as detection opens it several times."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = _superblock_offset(content)
        if start is None:
            return None
        superblock = content[start : start + 128].ljust(128, b"\xff")  # a cut one is refused by the library
        if superblock[8] <= 1 and _names_driver(superblock):
            return start, "its superblock names a storage driver, as only files split into several parts have one"
        size_width = superblock[14] if superblock[8] <= 1 else superblock[10]
        if size_width not in WIDTHS or len(content) > LARGEST_SEARCHED:
            return None
        heaps: dict[int, set[int]] = {}
        offset = content.find(HEAP_SIGNATURE)
        while offset >= 0:
            objects = _heap_objects(content, offset, size_width)
            if objects is None:
                return offset, "the sizes of its stored texts do not add up"
            heaps[offset - start] = objects
            offset = content.find(HEAP_SIGNATURE, offset + 1)
        return _find_long_text(content, heaps) if len(content) < SMALL_FILE else None


def _superblock_offset(content: mmap.mmap) -> int | None:
    """Return where the library finds the superblock: at 0, 512, 1024, 2048 and so on."""
    offset = 0
    while offset + len(FILE_SIGNATURE) <= len(content):
        if content[offset : offset + len(FILE_SIGNATURE)] == FILE_SIGNATURE:
            return offset
        offset = 2 * offset or 512
    return None


def _names_driver(superblock: bytes) -> bool:
    """Tell whether the fourth address of a superblock of version 0 or 1 is defined."""
    width = superblock[13]
    offset = (24 if superblock[8] == 0 else 28) + 3 * width
    return width in WIDTHS and superblock[offset : offset + width] != b"\xff" * width


def _heap_objects(content: mmap.mmap, start: int, size_width: int) -> set[int] | None:
    """Return the numbers of the objects in the heap at `start`, None if their sizes do not fit; what the library refuses has none."""
    header = content[start : start + 8 + size_width]
    stop = start + int.from_bytes(header[8:], "little")
    if len(header) < 8 + size_width or header[4] != HEAP_VERSION or stop > len(content):
        return set()
    objects = set()
    header_size = _aligned(8 + size_width)
    position = start + header_size
    while position + header_size <= stop:  # a shorter rest is padding
        index = int.from_bytes(content[position : position + 2], "little")
        size = int.from_bytes(content[position + 8 : position + 8 + size_width], "little")
        step = header_size + _aligned(size) if index else size  # index 0 is free space, whose size includes the header
        if step < header_size or position + step > stop:
            return None
        objects.add(index)
        position += step
    return objects - {0}


def _find_long_text(content: mmap.mmap, heaps: dict[int, set[int]]) -> tuple[int, str] | None:
    """Find the length of a text in one of the heaps that is larger than the file by far; it may begin at any byte."""
    for shift in range(4 if heaps else 0):
        words = np.frombuffer(content[shift : shift + (len(content) - shift) // 4 * 4], dtype="<u4")
        length, address, high_address, index = words[:-3], words[1:-2], words[2:-1], words[3:]
        candidates = np.flatnonzero((length > LONGEST_TEXT) & (address < len(content)) & (high_address == 0) & (index > 0))
        for i in candidates.tolist():
            if int(index[i]) in heaps.get(int(address[i]), ()):
                return shift + 4 * i, f"a text of {length[i]:,} bytes is longer than the file"
    return None


def _aligned(size: int) -> int:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
