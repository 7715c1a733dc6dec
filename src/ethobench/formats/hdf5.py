"""Reading of untrusted HDF5 files: no data from other files, and no more data than the file can contain.

`check_structure` finds damage on which the HDF5 library (2.0) would loop forever or allocate gigabytes of memory:

Texts of variable length are in global heaps: collections that begin with ``GCOL`` and hold one object after another, each with its size.
The library steps from object to object by these sizes and never ends if one of them is zero, in a loop that Python cannot interrupt.
A heap that the library can reach begins with the signature, so searching for the signature finds all heaps.

A text is stored as its length, the address of a heap and the number of an object there. The library allocates the length, up to 4 GB,
before it compares it with the object.

A superblock of version 0 or 1 can refer to a block with information for a storage driver. When it opens the file, the library reads as
many bytes as this block claims to have, up to 4 GB. Only files that are split into several have such a block.
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

MAX_SEARCHED = 1 << 28  # bytes; searching larger files for heaps would take more than half a second
FILE_SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP_SIGNATURE = b"GCOL"
HEAP_VERSION = 1
ALIGNMENT = 8
MAX_TEXT = 1 << 26  # bytes
WIDTHS = (2, 4, 8, 16, 32)  # bytes of a size or an address
MAX_LINKS = 32
TEXT_OVERHEAD = 64  # bytes of a Python string besides its characters


def check_structure(path: Path) -> None:
    """Check an HDF5 file for damage that the HDF5 library does not handle safely; the library detects other damage itself.

    Raises
    ------
    FormatError
        If a heap of texts is damaged, or the superblock names a storage driver.
    """
    status = path.stat()
    if not status.st_size:
        return
    damage = _find_damage(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    if damage is not None:
        offset, message = damage
        raise FormatError(path, f"damaged HDF5 file: {message}; copy or export it again", f"byte {offset}")


@lru_cache(maxsize=256)
def _find_damage(path: Path, _identity: tuple[int, ...]) -> tuple[int, str] | None:
    """Return offset and description of the first damage, or None; cached, because detection opens a file several times."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = _superblock_offset(content)
        if start is None:
            return None
        superblock = content[start : start + 128].ljust(128, b"\xff")  # the library refuses a truncated one
        if superblock[8] <= 1 and _names_driver(superblock):
            return start, "its superblock names a storage driver, which only files split into several have"
        size_width = superblock[14] if superblock[8] <= 1 else superblock[10]
        if size_width not in WIDTHS or len(content) > MAX_SEARCHED:
            return None
        heaps: dict[int, set[int]] = {}
        offset = content.find(HEAP_SIGNATURE)
        while offset >= 0:
            objects = _heap_objects(content, offset, size_width)
            if objects is None:
                return offset, "the sizes of its stored texts are inconsistent"
            heaps[offset - start] = objects
            offset = content.find(HEAP_SIGNATURE, offset + 1)
        return _find_long_text(content, heaps) if len(content) < SMALL_FILE else None


def _superblock_offset(content: mmap.mmap) -> int | None:
    """Return the offset of the superblock, which the library searches at 0, 512, 1024, 2048 and so on; None if there is none."""
    offset = 0
    while offset + len(FILE_SIGNATURE) <= len(content):
        if content[offset : offset + len(FILE_SIGNATURE)] == FILE_SIGNATURE:
            return offset
        offset = 2 * offset or 512
    return None


def _names_driver(superblock: bytes) -> bool:
    """Return whether a superblock of version 0 or 1 names a storage driver, that is, whether its fourth address is defined."""
    width = superblock[13]
    offset = (24 if superblock[8] == 0 else 28) + 3 * width
    return width in WIDTHS and superblock[offset : offset + width] != b"\xff" * width


def _heap_objects(content: mmap.mmap, start: int, size_width: int) -> set[int] | None:
    """Return the numbers of the objects in the heap at `start`; None if their sizes are inconsistent; empty if the library refuses it."""
    header = content[start : start + 8 + size_width]
    stop = start + int.from_bytes(header[8:], "little")
    if len(header) < 8 + size_width or header[4] != HEAP_VERSION or stop > len(content):
        return set()
    objects = set()
    header_size = _aligned(8 + size_width)
    position = start + header_size
    while position + header_size <= stop:  # a shorter remainder is padding
        index = int.from_bytes(content[position : position + 2], "little")
        size = int.from_bytes(content[position + 8 : position + 8 + size_width], "little")
        step = header_size + _aligned(size) if index else size  # index 0 is free space, whose size includes the header
        if step < header_size or position + step > stop:
            return None
        objects.add(index)
        position += step
    return objects - {0}


def _find_long_text(content: mmap.mmap, heaps: dict[int, set[int]]) -> tuple[int, str] | None:
    """Return offset and description of a reference to a heap whose text is far longer than the file, or None; it may begin at any byte."""
    for shift in range(4 if heaps else 0):
        words = np.frombuffer(content[shift : shift + (len(content) - shift) // 4 * 4], dtype="<u4")
        length, address, high_address, index = words[:-3], words[1:-2], words[2:-1], words[3:]
        candidates = np.flatnonzero((length > MAX_TEXT) & (address < len(content)) & (high_address == 0) & (index > 0))
        for i in candidates.tolist():
            if int(index[i]) in heaps.get(int(address[i]), ()):
                return shift + 4 * i, f"a text of {length[i]:,} bytes is longer than the file"
    return None


def _aligned(size: int) -> int:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


@contextmanager
def open_file(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading; damage raises `FormatError`."""
    try:
        import h5py
    except ImportError:
        raise EthobenchError(f'{path}: reading HDF5 files requires h5py (pip install "ethobench[pose]")') from None
    check_structure(path)
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise FormatError(path, f"not a valid HDF5 file, or truncated ({str(error).splitlines()[0]})") from None
    with file:
        try:
            yield file
        except EthobenchError:
            raise
        except (OSError, RuntimeError, KeyError) as error:  # h5py raises KeyError for an object whose header is damaged
            raise FormatError(path, f"damaged HDF5 file ({' '.join(str(error).splitlines()[:1])})") from None
        except (TypeError, ValueError) as error:  # from h5py: a type, an attribute or a name that it cannot decode
            if not _is_raised_by_h5py(error):
                raise
            raise FormatError(path, f"damaged HDF5 file ({' '.join(str(error).split())})") from None


def _is_raised_by_h5py(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "h5py" in Path(frames[-1].filename).parts


def names(group: h5py.Group) -> list[str]:
    """Return the names of the members of a group; invalid UTF-8 is replaced."""
    return [name.decode("utf-8", errors="replace") if isinstance(name, bytes) else name for name in group]


def top_names(head: Head) -> frozenset[str]:
    """Return the names at the top level of an HDF5 file and of its attributes (as ``@name``), for detection; empty without h5py."""
    if not head.is_hdf5 or find_spec("h5py") is None:
        return frozenset()
    with open_file(head.path) as file:
        return frozenset([*names(file), *(f"@{name}" for name in file.attrs)])


def member(path: Path, group: h5py.Group, name: str) -> Any:
    """Return a member of a group, None if it does not exist; links to other files are refused, never followed."""
    import h5py

    node: Any = group
    remaining, steps = [child for child in name.split("/") if child], 0
    while remaining:
        child = remaining.pop(0)
        if not isinstance(node, h5py.Group):
            return None
        link = node.get(child, getlink=True)
        if link is None:
            return None
        if isinstance(link, h5py.SoftLink):
            steps += 1
            if steps > MAX_LINKS:
                raise FormatError(path, "circular links", f"{node.name}/{child}")
            target = [child for child in link.path.split("/") if child]
            node, remaining = (node.file["/"] if link.path.startswith("/") else node), target + remaining
            continue
        if not isinstance(link, h5py.HardLink):
            raise FormatError(path, "refused: link to another file", f"{node.name}/{child}")
        node = node[child]
    return node


def refuse_external_links(path: Path, group: h5py.Group) -> None:
    """Raise `FormatError` if any link or dataset takes its content from another file."""
    import h5py

    def external_name(name: str, link: Any) -> str | None:
        if isinstance(link, h5py.HardLink):
            node = group[name]
            return name if isinstance(node, h5py.Dataset) and _is_external(node) else None
        return None if isinstance(link, h5py.SoftLink) else name

    bad = group.visititems_links(external_name)  # an exception must not pass through HDF5, so the first bad name is returned
    if bad is not None:
        raise FormatError(path, "refused: link to another file", bad)


def array(path: Path, group: h5py.Group, name: str, ndim: int | None = None) -> NDArray[Any]:
    """Return a dataset of numbers as an array, after a check that it is in this file and has a plausible size."""
    import h5py

    node = member(path, group, name)
    if not isinstance(node, h5py.Dataset):
        raise FormatError(path, f"no dataset {name!r}; available: {', '.join(names(group)) or 'none'}", group.name)
    _refuse_external(path, node)
    if node.dtype.hasobject:
        raise FormatError(path, f"expected numbers in {node.name}, got objects")
    if ndim is not None and node.ndim != ndim:
        raise FormatError(path, f"expected {ndim} axes in {node.name}, got {node.ndim}")
    check_size(path, int(np.prod(node.shape, dtype=float)) * _memory_per_item(node.dtype), path.stat().st_size)
    return np.asarray(node[()])


def texts(path: Path, group: h5py.Group, name: str) -> list[str]:
    """Return a dataset of text as a list; empty if it does not exist."""
    import h5py

    node = member(path, group, name)
    if not isinstance(node, h5py.Dataset):
        return []
    _refuse_external(path, node)
    check_size(path, (node.size or 0) * (node.dtype.itemsize + TEXT_OVERHEAD), path.stat().st_size)
    if node.dtype.kind not in "SUO" or (node.dtype.kind == "O" and h5py.check_string_dtype(node.dtype) is None):
        return [plain_text(value) for value in np.ravel(node[()]).tolist()] if node.dtype.kind in "biuf" else []
    return [plain_text(value) for value in np.ravel(node[()]).tolist()]


def texts_at(path: Path, file: h5py.File, reference: Any) -> list[str]:
    """Return the dataset of text that an object reference of the same file refers to."""
    import h5py

    if not isinstance(reference, h5py.Reference) or not reference:
        raise FormatError(path, "refused: expected a reference within the file, got text")
    target = file[reference]
    return texts(path, target.parent, target.name.rpartition("/")[2])


def plain_text(value: Any) -> str:
    """Return an HDF5 attribute or string as text."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _memory_per_item(dtype: np.dtype[Any]) -> int:
    """Return the bytes of memory of an item after conversion to 64-bit numbers."""
    if dtype.names:
        return sum(_memory_per_item(dtype[name]) for name in dtype.names)
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return _memory_per_item(base) * int(np.prod(shape, dtype=float))
    return max(dtype.itemsize, 8)


def _is_external(node: h5py.Dataset) -> bool:
    return bool(node.external or node.is_virtual)


def _refuse_external(path: Path, node: h5py.Dataset) -> None:
    if _is_external(node):
        raise FormatError(path, "refused: data in another file", node.name)
