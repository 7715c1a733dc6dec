"""Reading pickles that hold only NumPy arrays and plain containers; anything else is refused by name.

Two of the formats have pickles in them: CalMS21's NPY form and the column index of DeepLabCut's H5 files. Neither needs
more than arrays, numbers, text and containers, so nothing else is ever looked up, called or built. Not even NumPy's own
constructors run: stand-ins collect what the pickle says of an array, and the array is made from it after a check.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError

DEEPEST = 50
_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMERIC_MODULES = ("numpy.core.numeric", "numpy._core.numeric")
_CONTAINERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): dict,
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in (set, frozenset)},
}


def load_plain(path: Path, source: bytes | IO[bytes], place: str = "") -> Any:
    """Unpickle arrays, numbers, text and plain containers.

    Parameters
    ----------
    path : Path
        Named in errors.
    source : bytes or binary file
    place : str
        Where in the file the pickle stands; named in errors.

    Raises
    ------
    FormatError
        For a damaged pickle, or one that asks for anything else; the message says what it asked for.
    """
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        return _finish(_PlainUnpickler(stream).load())
    except _RefusedError as refusal:
        raise FormatError(path, f"refused: its pickle asks for {refusal}, where only arrays and plain values may be", place) from None
    except Exception as error:
        raise FormatError(path, f"its pickle is damaged or cut off ({type(error).__name__}: {error})", place) from None


class _RefusedError(Exception):
    """Something that has no place in data."""


class _Known:
    """A name that pickles of arrays use; has no attributes that a pickle could set."""

    __slots__ = ("__call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.__call = call

    def __call__(self, *args: Any) -> Any:
        return self.__call(*args)


class _DType:
    """What a pickle says of a data type."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: Any) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: Any) -> None:
        if any(part is not None for part in state[2:5]):
            raise _RefusedError("an array of records")
        self.order = state[1]

    def to_numpy(self) -> np.dtype[Any]:
        code = self.code.decode("ascii") if isinstance(self.code, bytes) else self.code
        if not isinstance(code, str) or code[:1] not in "biufSUO":
            raise _RefusedError(f"an array of {code!r}")
        dtype = np.dtype(code)
        return dtype.newbyteorder(">") if self.order == ">" else dtype.newbyteorder("<") if self.order == "<" else dtype


class _Array:
    """What a pickle says of an array."""

    __slots__ = ("array",)

    def __init__(self, *_: Any) -> None:
        self.array: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        shape, dtype, fortran, content = state[-4:]
        self.array = _make_array(content, dtype, shape, "F" if fortran else "C")


def _make_array(content: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    if not isinstance(dtype, _DType):
        raise _RefusedError(f"an array of {type(dtype).__name__}")
    kind = dtype.to_numpy()
    if kind.kind == "O":
        if not isinstance(content, list):
            raise _RefusedError("an array of objects that is no list")
        array = np.empty(len(content), dtype=object)
        array[:] = [_finish(item) for item in content]
    else:
        array = np.frombuffer(content.encode("latin-1") if isinstance(content, str) else content, dtype=kind)
    return array.reshape(tuple(int(n) for n in shape), order="F" if order == "F" else "C")


def _make_scalar(dtype: Any, content: Any = b"") -> Any:
    return _make_array(content, dtype, (1,), "C")[0]


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise _RefusedError(f"the encoding {encoding!r}")
    return text.encode(encoding)


def _no_bytes(*args: Any) -> bytes:
    """Stand for ``bytes()``, as old pickles write empty bytes; with a number it could claim any amount of memory."""
    if args:
        raise _RefusedError("bytes of a given length")
    return b""


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler written in Python: unlike the one in C, a claimed size makes it set nothing aside in advance."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        if module in _ARRAY_MODULES and name == "_reconstruct":
            return _Known(_Array)
        if module in _ARRAY_MODULES and name == "scalar":
            return _Known(_make_scalar)
        if module in _NUMERIC_MODULES and name == "_frombuffer":
            return _Known(_make_array)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return _Known(_Array if name == "ndarray" else _DType)
        if (module, name) == ("_codecs", "encode"):
            return _Known(_encode)
        if module in ("builtins", "__builtin__") and name == "bytes":
            return _Known(_no_bytes)
        if (module, name) in _CONTAINERS:
            return _Known(_CONTAINERS[module, name])
        raise _RefusedError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise _RefusedError("something outside the file")

    def get_extension(self, code: int) -> Any:
        raise _RefusedError(f"extension {code}")


def _finish(value: Any, depth: int = 0, done: dict[int, Any] | None = None) -> Any:
    """Put arrays in the place of their stand-ins."""
    done = {} if done is None else done
    if depth > DEEPEST:
        raise _RefusedError(f"containers nested more than {DEEPEST} deep")
    if id(value) in done:
        return done[id(value)]
    made: Any = value
    if isinstance(value, _Array):
        made = value.array
    elif isinstance(value, (_DType, _Known)):
        raise _RefusedError("a type, not a value")
    elif isinstance(value, dict):
        made = done[id(value)] = {}
        made.update({_finish(k, depth + 1, done): _finish(v, depth + 1, done) for k, v in value.items()})
    elif isinstance(value, list):
        made = done[id(value)] = []
        made.extend(_finish(item, depth + 1, done) for item in value)
    elif isinstance(value, (tuple, set, frozenset)):
        made = type(value)(_finish(item, depth + 1, done) for item in value)
    done[id(value)] = made
    return made
