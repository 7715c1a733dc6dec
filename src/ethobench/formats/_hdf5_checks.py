"""Checks an HDF5 file for damage on which the HDF5 library (2.0) loops without end or takes gigabytes of memory.

Texts of variable length lie in global heaps: collections that begin with ``GCOL`` and hold one object after another, each with its
size. The library moves from object to object by these sizes and never ends where one of them is zero, in a loop that no Python code
can interrupt. A heap that the library can reach begins with the signature, so all heaps are found by searching for it.

A superblock of version 0 or 1 can name a block with information for a storage driver, and the library reads as many bytes as this block
claims to have, up to 4 GB, when it opens the file. Only files that are split into several have such a block.
"""

from __future__ import annotations

import mmap
from functools import lru_cache
from pathlib import Path

from ethobench.core.errors import FormatError

LARGEST_SEARCHED = 1 << 28  # bytes; searching larger files for heaps would delay reading by more than half a second
FILE_SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP_SIGNATURE = b"GCOL"
HEAP_VERSION = 1
ALIGNMENT = 8
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
        offset = content.find(HEAP_SIGNATURE)
        while offset >= 0:
            if not _is_sound_heap(content, offset, size_width):
                return offset, "the sizes of its stored texts do not add up"
            offset = content.find(HEAP_SIGNATURE, offset + 1)
    return None


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


def _is_sound_heap(content: mmap.mmap, start: int, size_width: int) -> bool:
    """Tell whether the objects of the heap at `start` fill it; what the library would not take for a heap is sound."""
    header = content[start : start + 8 + size_width]
    if len(header) < 8 + size_width or header[4] != HEAP_VERSION:
        return True
    stop = start + int.from_bytes(header[8:], "little")
    if stop > len(content):
        return False
    header_size = _aligned(8 + size_width)
    position = start + header_size
    while position + header_size <= stop:  # a shorter rest is padding
        index = int.from_bytes(content[position : position + 2], "little")
        size = int.from_bytes(content[position + 8 : position + 8 + size_width], "little")
        step = header_size + _aligned(size) if index else size  # index 0 is free space, whose size includes the header
        if step < header_size or position + step > stop:
            return False
        position += step
    return True


def _aligned(size: int) -> int:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
