"""HDF5 files that are not trusted: nothing outside the file is read, and nothing larger than it can hold.

MERGED: Checks an HDF5 file for damage on which the HDF5 library (2.0) loops without end or takes gigabytes of memory.

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
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats.size_limits import SMALL_FILE, check_size
from ethobench.formats.text import Head

if TYPE_CHECKING:
    import h5py

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


MOST_LINKS = 32
MEMORY_OF_TEXT = 64  # bytes of a Python string beside its letters


@contextmanager
def open_file(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading; damage becomes an error that names the file."""
    try:
        import h5py
    except ImportError:
        raise EthobenchError(f"{path} is an HDF5 file: reading it needs h5py (pip install ethobench[pose])") from None
    check_structure(path)
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise FormatError(path, f"this is no sound HDF5 file, or it is cut off ({str(error).splitlines()[0]})") from None
    with file:
        try:
            yield file
        except EthobenchError:
            raise
        except (OSError, RuntimeError, KeyError) as error:  # h5py raises KeyError for an object whose header is damaged
            raise FormatError(path, f"the HDF5 file is damaged ({' '.join(str(error).splitlines()[:1])})") from None
        except (TypeError, ValueError) as error:  # from h5py: a type, an attribute or a name that it cannot decode
            if not _is_raised_by_h5py(error):
                raise
            raise FormatError(path, f"the HDF5 file is damaged ({' '.join(str(error).split())})") from None


def _is_raised_by_h5py(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "h5py" in Path(frames[-1].filename).parts


def names(group: h5py.Group) -> list[str]:
    """Return the names of a group's members; those of a damaged file that are not UTF-8 have replacement characters."""
    return [name.decode("utf-8", errors="replace") if isinstance(name, bytes) else name for name in group]


def top_names(head: Head) -> frozenset[str]:
    """Return the names at the top of an HDF5 file and of its attributes (as ``@name``) for sniffing; none without h5py."""
    if not head.is_hdf5 or find_spec("h5py") is None:
        return frozenset()
    with open_file(head.path) as file:
        return frozenset([*names(file), *(f"@{name}" for name in file.attrs)])


def member(path: Path, group: h5py.Group, name: str) -> Any:
    """Return a member of a group, None if there is none; links that lead out of the file are refused, never followed."""
    import h5py

    node: Any = group
    parts, steps = [part for part in name.split("/") if part], 0
    while parts:
        part = parts.pop(0)
        if not isinstance(node, h5py.Group):
            return None
        link = node.get(part, getlink=True)
        if link is None:
            return None
        if isinstance(link, h5py.SoftLink):
            steps += 1
            if steps > MOST_LINKS:
                raise FormatError(path, "its links lead in a circle", f"{node.name}/{part}")
            target = [piece for piece in link.path.split("/") if piece]
            node, parts = (node.file["/"] if link.path.startswith("/") else node), target + parts
            continue
        if not isinstance(link, h5py.HardLink):
            raise FormatError(path, "refused: a link leads to another file", f"{node.name}/{part}")
        node = node[part]
    return node


def refuse_outside_links(path: Path, group: h5py.Group) -> None:
    """Refuse a file with any link or dataset that takes its content from another file."""
    import h5py

    def leads_out(name: str, link: Any) -> str | None:
        if isinstance(link, h5py.HardLink):
            node = group[name]
            return name if isinstance(node, h5py.Dataset) and _lies_elsewhere(node) else None
        return None if isinstance(link, h5py.SoftLink) else name

    bad = group.visititems_links(leads_out)  # an exception must not pass through HDF5, so the first bad name is returned
    if bad is not None:
        raise FormatError(path, "refused: a link leads to another file", bad)


def array(path: Path, group: h5py.Group, name: str, ndim: int | None = None) -> NDArray[Any]:
    """Return a dataset of numbers whole, after a check that it lies in this file and is no larger than it can be."""
    import h5py

    node = member(path, group, name)
    if not isinstance(node, h5py.Dataset):
        raise FormatError(path, f"no dataset {name!r}; there are: {', '.join(names(group)) or 'none'}", group.name)
    _refuse_outside(path, node)
    if node.dtype.hasobject:
        raise FormatError(path, f"{node.name} holds objects, where numbers were expected")
    if ndim is not None and node.ndim != ndim:
        raise FormatError(path, f"{node.name} has {node.ndim} axes, where {ndim} were expected")
    check_size(path, int(np.prod(node.shape, dtype=float)) * _memory_per_item(node.dtype), path.stat().st_size)
    return np.asarray(node[()])


def texts(path: Path, group: h5py.Group, name: str) -> list[str]:
    """Return a dataset of text as a list; none if it is not there."""
    import h5py

    node = member(path, group, name)
    if not isinstance(node, h5py.Dataset):
        return []
    _refuse_outside(path, node)
    check_size(path, (node.size or 0) * (node.dtype.itemsize + MEMORY_OF_TEXT), path.stat().st_size)
    if node.dtype.kind not in "SUO" or (node.dtype.kind == "O" and h5py.check_string_dtype(node.dtype) is None):
        return [plain_text(value) for value in np.ravel(node[()]).tolist()] if node.dtype.kind in "biuf" else []
    return [plain_text(value) for value in np.ravel(node[()]).tolist()]


def texts_at(path: Path, file: h5py.File, reference: Any) -> list[str]:
    """Return the dataset of text that an object reference of the same file stands for; none if it stands for nothing."""
    import h5py

    if not isinstance(reference, h5py.Reference) or not reference:
        raise FormatError(path, "refused: text stands where a reference within the file was expected")
    target = file[reference]
    return texts(path, target.parent, target.name.rpartition("/")[2])


def plain_text(value: Any) -> str:
    """Return an HDF5 attribute or string as text."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _memory_per_item(dtype: np.dtype[Any]) -> int:
    """Return the bytes that an item takes once its numbers are 64 bits wide, as readers make them."""
    if dtype.names:
        return sum(_memory_per_item(dtype[name]) for name in dtype.names)
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return _memory_per_item(base) * int(np.prod(shape, dtype=float))
    return max(dtype.itemsize, 8)


def _lies_elsewhere(node: h5py.Dataset) -> bool:
    return bool(node.external or node.is_virtual)


def _refuse_outside(path: Path, node: h5py.Dataset) -> None:
    if _lies_elsewhere(node):
        raise FormatError(path, "refused: its numbers lie in another file", node.name)
