"""Reading of untrusted pickles that contain only NumPy arrays and plain containers, and of untrusted NPY headers.

Two formats contain pickles: the NPY form of CalMS21 and the column index of DeepLabCut H5 files. Both need only arrays, numbers, text and
containers, so nothing else is looked up, called or built. Not even the constructors of NumPy run: placeholders collect the description of
an array, and the array is built from it after a check.

A pickle can refer to one object many times, so a few hundred bytes can expand to any number of values. A `_Budget` counts values as they
are copied and refuses the pickle beyond a multiple of its size. Keys of dictionaries and members of sets must be text or numbers, because
hashing nested tuples follows all their references.
"""

from __future__ import annotations

import io
import mmap
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError

MAX_DEPTH = 50
MIN_BUDGET = 1 << 22  # values that any pickle may have
_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMERIC_MODULES = ("numpy.core.numeric", "numpy._core.numeric")
_CONTAINERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): dict,
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in (set, frozenset)},
}


def load_plain(path: Path, source: bytes | IO[bytes], location: str = "") -> Any:
    """Unpickle arrays, numbers, text and plain containers.

    Parameters
    ----------
    path : Path
        For error messages.
    source : bytes or binary file
    location : str
        Location of the pickle in the file, for error messages.

    Raises
    ------
    FormatError
        If the pickle is damaged or contains anything else; the message names it.
    """
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    stored = len(source) if isinstance(source, (bytes, mmap.mmap)) else path.stat().st_size
    budget = _Budget(max(MIN_BUDGET, 2 * stored))
    try:
        value = _PlainUnpickler(stream, budget).load()
        _check_expanded_size(value, budget.limit)
        return _replace_placeholders(value)
    except _RefusedError as refusal:
        raise FormatError(path, f"refused: its pickle contains {refusal}; only arrays and plain values are allowed", location) from None
    except Exception:
        raise FormatError(path, "its pickle is damaged or truncated; save or download the file again", location) from None


class _RefusedError(Exception):
    """Content that a pickle of data may not have; the message names it."""


class _Budget:
    """A limit on the number of values that are copied while a pickle is read."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0

    def spend(self, count: int) -> None:
        self.spent += count
        if self.spent > self.limit:
            raise _too_many_references(self.limit)


def _too_many_references(limit: int) -> _RefusedError:
    return _RefusedError(f"more than {limit:,} values by references to the same objects")


def _check_expanded_size(value: Any, limit: int) -> None:
    """Refuse a value that would have more than `limit` elements if every reference were a copy."""
    sizes: dict[int, int] = {}

    def size_of(item: Any, depth: int) -> int:
        if id(item) in sizes:
            return sizes[id(item)]
        if depth > MAX_DEPTH:
            raise _RefusedError(f"containers nested more than {MAX_DEPTH} deep")
        size = 1
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, (_Array, np.ndarray)):
            array = item.array if isinstance(item, _Array) else item
            size += array.size if array.dtype.kind in "biuf" else array.nbytes
            if array.dtype.kind == "O":
                sizes[id(item)] = limit
                size += sum(size_of(element, depth + 1) for element in array.reshape(-1))
        elif isinstance(item, dict):
            sizes[id(item)] = limit  # a container that contains itself is infinite
            size += sum(size_of(element, depth + 1) for pair in item.items() for element in pair)
        elif isinstance(item, (list, tuple, set, frozenset)):
            sizes[id(item)] = limit
            size += sum(size_of(element, depth + 1) for element in item)
        if size > limit:
            raise _too_many_references(limit)
        sizes[id(item)] = size
        return size

    size_of(value, 0)


class _AllowedName:
    """An allowed global name; it has no attributes that a pickle could set."""

    __slots__ = ("__call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.__call = call

    def __call__(self, *args: Any) -> Any:
        return self.__call(*args)


class _DType:
    """Placeholder for a NumPy data type."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: Any) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: Any) -> None:
        if any(field is not None for field in state[2:5]):
            raise _RefusedError("an array of records")
        self.order = state[1]

    def to_numpy(self) -> np.dtype[Any]:
        code = self.code.decode("ascii") if isinstance(self.code, bytes) else self.code
        if not isinstance(code, str) or code[:1] not in "biufSUO":
            raise _RefusedError(f"an array of {code!r}")
        dtype = np.dtype(code)
        return dtype.newbyteorder(">") if self.order == ">" else dtype.newbyteorder("<") if self.order == "<" else dtype


class _Array:
    """Placeholder for a NumPy array."""

    __slots__ = ("array", "budget")

    def __init__(self, budget: _Budget, *_: Any) -> None:
        self.budget = budget
        self.array: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        shape, dtype, fortran, content = state[-4:]
        self.array = _make_array(self.budget, content, dtype, shape, "F" if fortran else "C")


def _make_array(budget: _Budget, content: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    if not isinstance(dtype, _DType):
        raise _RefusedError(f"an array of {type(dtype).__name__}")
    kind = dtype.to_numpy()
    if isinstance(content, (str, list)):
        budget.spend(len(content))
    if kind.kind == "O":
        if not isinstance(content, list):
            raise _RefusedError("an array of objects that is not a list")
        array = np.empty(len(content), dtype=object)
        for i, item in enumerate(content):
            array[i] = item
    else:
        array = np.frombuffer(content.encode("latin-1") if isinstance(content, str) else content, dtype=kind)
    return array.reshape(tuple(int(n) for n in shape), order="F" if order == "F" else "C")


def _make_scalar(budget: _Budget, dtype: Any, content: Any = b"") -> Any:
    budget.spend(len(content) if isinstance(content, (str, bytes)) else 1)
    return _make_array(budget, content, dtype, (1,), "C")[0]


def _make_container(budget: _Budget, kind: Callable[..., Any], items: Any = ()) -> Any:
    if not isinstance(items, (list, tuple, set, frozenset)):
        raise _RefusedError(f"a container made of {type(items).__name__}")
    budget.spend(1 + len(items))
    for item in items:
        _check_key(item[0] if kind is dict and isinstance(item, (list, tuple)) and item else item)
    return kind(items)


def _check_key(key: Any) -> None:
    if not isinstance(key, (str, bytes, int, float, np.generic)) and key is not None:
        raise _RefusedError(f"{type(key).__name__} as a key")


def _encode(budget: _Budget, text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise _RefusedError(f"the encoding {encoding!r}")
    budget.spend(len(text))
    return text.encode(encoding)


def _no_bytes(*args: Any) -> bytes:
    """Replace ``bytes()``, with which old pickles write empty bytes; with a number it could allocate any amount of memory."""
    if args:
        raise _RefusedError("bytes of a stated length")
    return b""


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler written in Python, which unlike the one in C does not allocate memory for stated sizes."""

    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: IO[bytes], budget: _Budget) -> None:
        super().__init__(file, encoding="latin1")
        self.budget = budget
        self.stack: list[Any]
        self.metastack: list[list[Any]]

    def _check_keys(self, items: list[Any], step: int) -> None:
        for key in items[::step]:
            _check_key(key)

    def _load_dict(self) -> None:
        self._check_keys(self.stack, 2)
        super().load_dict()  # type: ignore[misc]

    def _load_setitem(self) -> None:
        self._check_keys(self.stack[-2:-1], 1)
        super().load_setitem()  # type: ignore[misc]

    def _load_setitems(self) -> None:
        self._check_keys(self.stack, 2)
        super().load_setitems()  # type: ignore[misc]

    def _load_members(self) -> None:
        self._check_keys(self.stack, 1)
        super().load_additems()  # type: ignore[misc]

    def _load_frozenset(self) -> None:
        self._check_keys(self.stack, 1)
        super().load_frozenset()  # type: ignore[misc]

    dispatch |= {
        pickle.DICT[0]: _load_dict,
        pickle.SETITEM[0]: _load_setitem,
        pickle.SETITEMS[0]: _load_setitems,
        pickle.ADDITEMS[0]: _load_members,
        pickle.FROZENSET[0]: _load_frozenset,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module in _ARRAY_MODULES and name == "_reconstruct":
            return _AllowedName(partial(_Array, self.budget))
        if module in _ARRAY_MODULES and name == "scalar":
            return _AllowedName(partial(_make_scalar, self.budget))
        if module in _NUMERIC_MODULES and name == "_frombuffer":
            return _AllowedName(partial(_make_array, self.budget))
        if module == "numpy" and name in ("ndarray", "dtype"):
            return _AllowedName(partial(_Array, self.budget) if name == "ndarray" else _DType)
        if (module, name) == ("_codecs", "encode"):
            return _AllowedName(partial(_encode, self.budget))
        if module in ("builtins", "__builtin__") and name == "bytes":
            return _AllowedName(_no_bytes)
        if (module, name) in _CONTAINERS:
            return _AllowedName(partial(_make_container, self.budget, _CONTAINERS[module, name]))
        raise _RefusedError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise _RefusedError("a reference to something outside the file")

    def get_extension(self, code: int) -> Any:
        raise _RefusedError(f"extension {code}")


def _replace_placeholders(value: Any, depth: int = 0, done: dict[int, Any] | None = None) -> Any:
    """Return the value with arrays instead of their placeholders."""
    done = {} if done is None else done
    if depth > MAX_DEPTH:
        raise _RefusedError(f"containers nested more than {MAX_DEPTH} deep")
    if id(value) in done:
        return done[id(value)]
    result: Any = value
    if isinstance(value, (_Array, np.ndarray)):
        result = value.array if isinstance(value, _Array) else value
        if result.dtype.kind == "O":
            done[id(value)] = result
            for i, item in enumerate(result.reshape(-1)):
                result.reshape(-1)[i] = _replace_placeholders(item, depth + 1, done)
    elif isinstance(value, (_DType, _AllowedName)):
        raise _RefusedError("a type, not a value")
    elif isinstance(value, dict):
        result = done[id(value)] = {}
        result.update({_replace_placeholders(k, depth + 1, done): _replace_placeholders(v, depth + 1, done) for k, v in value.items()})
    elif isinstance(value, list):
        result = done[id(value)] = []
        result.extend(_replace_placeholders(item, depth + 1, done) for item in value)
    elif isinstance(value, (tuple, set, frozenset)):
        result = type(value)(_replace_placeholders(item, depth + 1, done) for item in value)
    done[id(value)] = result
    return result


def read_npy_header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and type of the array in an NPY file, up to the beginning of its data.

    Raises
    ------
    FormatError
        If the header is damaged or claims to be longer than the file.
    """
    start = file.read(12)
    width = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(start[8 : 8 + width], "little")
    if length > path.stat().st_size:  # NumPy allocates the length before it reads
        raise FormatError(path, f"invalid NPY header (it claims {length:,} bytes)")
    file.seek(0)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # the header is Python text, so parsing a damaged one fails in many ways
        raise FormatError(path, f"invalid NPY header ({str(error).partition(chr(10))[0]})") from None
    return shape, dtype
