"""Reading of untrusted MATLAB files as plain Python values: versions 5 to 7, and version 7.3 through h5py.

Versions 5 to 7 are read here rather than by scipy, whose reader allocates what a damaged file claims and can end the process. The parser
follows "MAT-File Format" by MathWorks; tests compare it with scipy. Nothing in a file is executed: objects and functions are skipped.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core.errors import FormatError
from ethobench.formats import hdf5
from ethobench.formats.size_limits import check_size

if TYPE_CHECKING:
    import h5py

MatValue: TypeAlias = "np.ndarray[Any, Any] | str | list[Any] | dict[str, Any]"
"""Numbers are arrays without axes of length 1, texts `str`, cells lists, structs dicts, arrays of structs lists of dicts."""

HEADER = 128
MAGIC = b"MATLAB 5.0 MAT-file"
MAGIC_HDF5 = b"MATLAB 7.3 MAT-file"
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR, SPARSE = 1, 2, 4, 5
NUMERIC = range(6, 16)
OBJECTS = (3, 16, 17)  # objects of classes, functions, and tables, strings or categorical arrays
DTYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
UTF8 = 16
ENCODINGS = {UTF8: "utf-8", 17: "utf-16", 18: "utf-32"}
MAX_FIELD_NAME = 256  # bytes
MAX_DEPTH = 12
MAX_ELEMENTS = 2_000_000
MAX_RATIO = 1100  # of zlib


def is_mat(raw: bytes) -> bool:
    """Return whether a file begins like a MATLAB file of version 5 to 7.3."""
    return raw.startswith((MAGIC, MAGIC_HDF5)) and raw[126:128] in (b"IM", b"MI")


def read_mat(path: Path) -> dict[str, MatValue]:
    """Return the variables of a MATLAB file that hold numbers, text, cells and structs; others are skipped.

    Raises
    ------
    FormatError
        If the file is damaged, not a MATLAB file of version 5 to 7.3, or claims implausible sizes.
    """
    with path.open("rb") as file:
        head = file.read(HEADER)
    if not is_mat(head):
        if not head:
            raise FormatError(path, "the file is empty (0 bytes)")
        raise FormatError(path, "not a MATLAB file of version 5 to 7.3 (save it with: save -v7)")
    return _read_hdf5(path) if head.startswith(MAGIC_HDF5) else _read_mat5(path)


class _Mat5Parser:
    """Parses the elements of a MATLAB file of version 5 to 7, and checks the sizes that they claim.

    Parameters
    ----------
    path : Path
        Named in errors.
    order : str
        Byte order, ``"<"`` or ``">"``.
    """

    def __init__(self, path: Path, order: str) -> None:
        self.path, self.order = path, order
        self.n_elements = 0

    def fail(self, message: str) -> FormatError:
        return FormatError(self.path, f"damaged MATLAB file: {message}")

    def tag(self, data: bytes, at: int) -> tuple[int, int, int, int]:
        """Return type, size, offset of the content, and offset of the next element."""
        if at + 8 > len(data):
            raise self.fail("it ends within an element")
        kind, size = struct.unpack_from(self.order + "II", data, at)
        if kind >> 16:  # a small element: its size is in the upper half of the type
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise self.fail("a small element is too long")
            return kind, size, at + 4, at + 8
        if at + 8 + size > len(data):
            raise self.fail("an element is longer than the file")
        return kind, size, at + 8, at + 8 + size + (-size % 8 if kind != COMPRESSED else 0)

    def matrix(self, data: bytes, depth: int = 0) -> tuple[str, Any]:
        """Return name and value of a matrix element; the value of an object is None."""
        self.n_elements += 1
        if depth > MAX_DEPTH or self.n_elements > MAX_ELEMENTS:
            raise FormatError(self.path, f"refused: nested deeper than {MAX_DEPTH} levels, or more than {MAX_ELEMENTS:,} values")
        if not data:  # an empty matrix
            return "", np.zeros(0)
        _, size, at, rest = self.tag(data, 0)
        if size < 8:
            raise self.fail("a matrix has no class")
        kind = struct.unpack_from(self.order + "I", data, at)[0] & 0xFF
        if kind in OBJECTS:
            return "", None
        if not (CELL <= kind <= SPARSE or kind in NUMERIC):
            raise self.fail(f"a matrix of unknown class {kind}")
        _, size, at, rest = self.tag(data, rest)
        dims = struct.unpack_from(f"{self.order}{size // 4}i", data, at)
        if not 2 <= len(dims) <= 8 or min(dims) < 0:
            raise self.fail("a matrix of impossible shape")
        count = int(np.prod(dims, dtype=object))
        _, size, at, rest = self.tag(data, rest)
        name = data[at : at + size].decode("latin-1")
        if kind == SPARSE:
            return name, None
        if count > len(data) - rest:
            raise self.fail(f"a matrix claims {count:,} values, but has {len(data) - rest:,} bytes")
        if kind == CELL:
            return name, self._children(data, rest, count, depth)
        if kind == STRUCT:
            return name, self._struct(data, rest, count, depth)
        return name, self._text(data, rest, dims) if kind == CHAR else self._numbers(data, rest, dims)

    def _struct(self, data: bytes, at: int, count: int, depth: int) -> Any:
        _, size, start, at = self.tag(data, at)
        width = struct.unpack_from(self.order + "i", data, start)[0] if size >= 4 else 0
        _, size, start, at = self.tag(data, at)
        if not 0 < width <= MAX_FIELD_NAME:
            raise self.fail("a struct with impossible field names")
        names = [data[i : i + width].split(b"\0")[0].decode("latin-1") for i in range(start, start + size - width + 1, width)]
        values = self._children(data, at, count * len(names), depth)
        structs = [dict(zip(names, values[i * len(names) : (i + 1) * len(names)], strict=True)) for i in range(count if names else 0)]
        return structs[0] if len(structs) == 1 else structs

    def _children(self, data: bytes, at: int, count: int, depth: int) -> list[Any]:
        values = []
        for _ in range(count):
            kind, size, start, next_at = self.tag(data, at)
            if kind != MATRIX:
                raise self.fail("expected a matrix in a cell or struct")
            values.append(self.matrix(data[start : start + size], depth + 1)[1])
            at = next_at
        return values

    def _elements(self, data: bytes, at: int, dims: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return the stored numbers of a matrix in its shape."""
        kind, size, start, _ = self.tag(data, at)
        if kind not in DTYPES:
            raise self.fail(f"numbers of unknown type {kind}")
        dtype = np.dtype(self.order + DTYPES[kind])
        count = int(np.prod(dims, dtype=object))
        if count * dtype.itemsize != size:
            raise self.fail(f"a matrix claims {count:,} values, but stores {size:,} bytes")
        values = np.frombuffer(data, dtype=dtype, count=count, offset=start)
        return values.astype(dtype.newbyteorder("=")).reshape(tuple(dims), order="F")

    def _numbers(self, data: bytes, at: int, dims: Sequence[int]) -> np.ndarray[Any, Any]:
        return np.squeeze(self._elements(data, at, dims)) if 0 not in dims else np.zeros(0)

    def _text(self, data: bytes, at: int, dims: Sequence[int]) -> Any:
        if 0 in dims:
            return ""
        kind, size, start, _ = self.tag(data, at)
        if kind in ENCODINGS:
            encoding = ENCODINGS[kind] + ("" if kind == UTF8 else "-le" if self.order == "<" else "-be")
            letters = data[start : start + size].decode(encoding, errors="replace")
            if len(letters) == dims[1] and dims[0] == 1:
                return letters
            if len(letters) != dims[0] * dims[1]:
                raise self.fail(f"a text claims {dims[0] * dims[1]:,} letters, but has {len(letters):,}")
            return ["".join(letters[row :: dims[0]]).rstrip() for row in range(dims[0])]
        return text_of_codes(self._elements(data, at, dims[:2]))


def text_of_codes(codes: np.ndarray[Any, Any]) -> Any:
    """Return rows of character codes as text, several rows as a list; codes that are not characters are left out."""
    if codes.dtype.kind not in "iu" or codes.ndim > 2:
        return ""
    rows = codes if codes.ndim == 2 else codes.reshape(1, -1)
    texts = ["".join(chr(code) for code in row if 0 < code < 0xD800 or 0xE000 <= code < 0x110000) for row in rows.tolist()]
    return texts[0] if len(texts) == 1 else [text.rstrip() for text in texts]


def _read_mat5(path: Path) -> dict[str, MatValue]:
    data = path.read_bytes()
    parser = _Mat5Parser(path, "<" if data[126:128] == b"IM" else ">")
    variables: dict[str, MatValue] = {}
    at, total = HEADER, 0
    while at < len(data):
        kind, size, start, next_at = parser.tag(data, at)
        content = data[start : start + size]
        if kind == COMPRESSED:
            kind, content = _unpacked(path, parser, content)
        total += len(content)
        check_size(path, 10 * total, len(data))
        if kind != MATRIX:
            raise parser.fail("expected a variable")
        name, value = parser.matrix(content)
        if name and value is not None:
            variables[name] = value
        at = next_at
    return variables


def _unpacked(path: Path, parser: _Mat5Parser, packed: bytes) -> tuple[int, bytes]:
    """Return type and content of a compressed element, whose tag must state its decompressed size."""
    unpacker = zlib.decompressobj()
    try:
        tag = unpacker.decompress(packed, 8)
        if len(tag) < 8:
            raise parser.fail("a compressed variable is too short")
        kind, size = struct.unpack(parser.order + "II", tag)
        check_size(path, size, path.stat().st_size)
        if size > MAX_RATIO * len(packed) + 100:
            raise parser.fail("a compressed variable claims an impossible size")
        content = unpacker.decompress(unpacker.unconsumed_tail, size + 1) if size else b""
    except zlib.error as error:
        raise parser.fail(f"a compressed variable cannot be read ({error})") from None
    if len(content) != size:
        raise parser.fail(f"a compressed variable states {size:,} bytes, but has {len(content):,}")
    return kind, content


def _read_hdf5(path: Path) -> dict[str, MatValue]:
    with hdf5.open_file(path) as file:
        reader = _Hdf5Reader(path, file)
        values = {name: reader.value(file, name) for name in hdf5.names(file) if not name.startswith("#")}
    return {name: value for name, value in values.items() if value is not None}


class _Hdf5Reader:
    """Reads the variables of a MATLAB file of version 7.3."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self.file = path, file
        self.n_elements = 0

    def value(self, group: h5py.Group, name: str, depth: int = 0) -> Any:
        """Return a variable or a field; None for objects that are skipped."""
        return self._node(hdf5.member(self.path, group, name), depth)

    def _node(self, node: Any, depth: int) -> Any:
        import h5py

        self.n_elements += 1
        if depth > MAX_DEPTH or self.n_elements > MAX_ELEMENTS // 10:
            raise FormatError(self.path, f"refused: nested deeper than {MAX_DEPTH} levels, or too many values")
        if isinstance(node, h5py.Group):
            if "MATLAB_object_decode" in node.attrs or hdf5.plain_text(node.attrs.get("MATLAB_class", "struct")) != "struct":
                return None
            fields = {name: self.value(node, name, depth + 1) for name in hdf5.names(node)}
            return {name: field for name, field in fields.items() if field is not None}
        if not isinstance(node, h5py.Dataset):
            return None
        kind = hdf5.plain_text(node.attrs.get("MATLAB_class", ""))
        if "MATLAB_object_decode" in node.attrs and kind not in ("logical", "char"):
            return None
        if "MATLAB_empty" in node.attrs:
            return "" if kind == "char" else [] if kind == "cell" else np.zeros(0)
        if node.dtype.kind == "O" and h5py.check_ref_dtype(node.dtype) is not None:
            return self._references(node, depth)
        array = hdf5.array(self.path, node.parent, node.name.rpartition("/")[2])
        if kind == "char":
            return text_of_codes(array.T)
        return np.squeeze(array.T) if array.dtype.kind in "biuf" else None

    def _references(self, node: h5py.Dataset, depth: int) -> list[Any]:
        import h5py

        check_size(self.path, 64 * (node.size or 0), self.path.stat().st_size)
        items = []
        for reference in np.asarray(node[()]).T.ravel(order="F").tolist():
            if not isinstance(reference, h5py.Reference) or not reference:
                raise FormatError(self.path, "refused: a cell that does not refer to a value in the file", node.name)
            items.append(self._node(self.file[reference], depth + 1))
        return items


def as_struct(value: MatValue) -> Mapping[str, Any] | None:
    """Return a struct; an array of structs with equal fields as a struct of lists; None for anything else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) and item.keys() == value[0].keys() for item in value):
        return {name: [item[name] for item in value] for name in value[0]}
    return None


def as_numbers(value: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return numbers as float array; None for anything else. A list of single numbers, such as a field of an array of structs, is one."""
    if isinstance(value, list):
        items = [as_numbers(item) for item in value]
        if not items or any(item is None or item.size != 1 for item in items):
            return None
        return np.array([float(item.reshape(-1)[0]) for item in items if item is not None])
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.astype(np.float64)
    return None


def as_texts(value: Any) -> list[str] | None:
    """Return a cell of texts, or a single text, as list; None for anything else."""
    if isinstance(value, str):
        return [value]
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, str) or (isinstance(item, np.ndarray) and not item.size) for item in value)
    ):
        return [item if isinstance(item, str) else "" for item in value]
    return None
