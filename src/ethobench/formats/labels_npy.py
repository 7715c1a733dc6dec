"""Per-frame labels as NPY: codes, names, one-hot columns, or (as written by default) a structured array with a field per behavior.

Codes and one-hot columns have no names; ``behaviors=`` sets them. A negative code, NaN, an empty name or -1 in a column means that the
frame is unobserved. Files with pickled objects are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import background_notes, frames_rate, named_ethogram
from ethobench.formats.safe_pickle import read_npy_header
from ethobench.formats.text import Head

MAGIC = b"\x93NUMPY"
MOST_BEHAVIORS = 1000
LAYOUTS = ("named", "codes", "onehot")

Names: TypeAlias = Sequence[str] | str | None


@register_format("labels_npy")
class LabelsNpy(Format):
    """One label, or one 0/1 per behavior, for each frame.

    Options for reading: ``rate``, because the file does not state it; ``behaviors``, the names of the codes or columns.
    Option for writing: ``layout``, "named" (a structured array with a field per behavior), "codes" (-1 = unobserved) or "onehot".
    """

    title = "label NPY"
    suffixes = (".npy",)
    keeps = ("overlaps", "observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        if not head.raw.startswith(MAGIC):
            return 0.0
        try:
            with path.open("rb") as file:
                shape, dtype = _header(path, file)
            kind = _kind(path, shape, dtype)
            if kind != "columns":
                return {"fields": 0.9, "names": 0.8, "codes": 0.7}[kind]
            sample = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)[:2000], dtype=np.float64)
        except (EthobenchError, OSError, ValueError):
            return 0.0
        return 0.7 if (np.isnan(sample) | np.isin(sample, (-1, 0, 1))).all() else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None, behaviors: Names = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        with path.open("rb") as file:
            shape, dtype = _header(path, file)
        kind = _kind(path, shape, dtype)
        clock, notes = frames_rate(rate)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        names = None if behaviors is None else per_frame.behavior_names(behaviors)
        convert = {"fields": _from_fields, "columns": _from_columns, "names": _from_names, "codes": _from_codes}[kind]
        annotation, more_notes = convert(path, array, names, clock)
        return [
            Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=(*notes, *more_notes), clock_origin=ClockOrigin.ASSUMED)
        ]

    def write(self, recordings: Sequence[Recording], path: Path, *, layout: str = "named") -> list[Note]:
        annotation = recordings[0].annotation()
        ethogram = annotation.ethogram
        notes = [*per_frame.rate_notes(self.title, "none", annotation.rate), *background_notes(self.title, ethogram)]
        if layout not in LAYOUTS:
            raise EthobenchError(f"`layout` must be one of {', '.join(LAYOUTS)}, got {layout!r}")
        array: NDArray[Any]
        if layout == "codes":
            array = annotation.without_subjects().to_codes()
            if (array == len(ethogram)).any():
                raise EthobenchError("frames without a behavior have no code, because the ethogram has no background; use layout=named")
        else:
            array = per_frame.frames_of(annotation)
            if not (array == per_frame.UNOBSERVED).any():
                array = array.astype(bool)
        if layout == "named":
            fields = np.empty(len(array), dtype=[(name, array.dtype) for name in ethogram.names])
            for code, name in enumerate(ethogram.names):
                fields[name] = array[:, code]
            array = fields
        else:
            names = ReaderOption("behaviors", ",".join(ethogram.names))
            message = Message(f"{self.title} in this layout does not store names; read it with ", names)
            notes.append(Note(message, code="lost-names"))
        latin = all(ord(letter) < 256 for name in ethogram.names for letter in name)
        with path.open("wb") as file:
            np.lib.format.write_array(file, array, version=None if latin else (3, 0), allow_pickle=False)
        return notes


def _header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and type of the array, checked against the size of the file before anything is allocated."""
    shape, dtype = read_npy_header(path, file)
    if dtype.hasobject:
        raise FormatError(path, "refused: pickled Python objects could run any code when loaded")
    size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
    available = path.stat().st_size - file.tell()
    if size != available:
        problem = "the file is truncated" if size > available else "other data follow the array"
        raise FormatError(path, f"the header states {size:,} bytes, but {available:,} follow; {problem}")
    return shape, dtype


def _kind(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return what the array holds: "fields", "columns", "names" or "codes"."""
    if dtype.names:
        if len(shape) == 1 and all(dtype[name].kind in "biuf" and not dtype[name].shape for name in dtype.names):
            return "fields"
        raise FormatError(path, "a structured array of labels must have one number per behavior and frame")
    if len(shape) == 2 and dtype.kind in "biuf" and 1 <= shape[1] <= MOST_BEHAVIORS:
        return "columns"
    if len(shape) == 1 and dtype.kind in "US":
        return "names"
    if len(shape) == 1 and dtype.kind in "biuf":
        return "columns" if dtype.kind == "b" else "codes"
    raise FormatError(path, f"labels must have shape (frames,) or (frames, behaviors); got {dtype} of shape {shape}")


def _not_listed(names: list[str]) -> Message:
    return Message("the file has behaviors that are not listed in ", ReaderOption("behaviors"), f": {', '.join(names)}")


def _from_fields(path: Path, array: NDArray[Any], expected: list[str] | None, rate: float) -> tuple[Annotation, list[Note]]:
    names = list(array.dtype.names or ())
    unknown = [name for name in names if name not in expected] if expected is not None else []
    if unknown:
        raise FormatError(path, _not_listed(unknown))
    columns = [_checked(path, np.asarray(array[name]), name) for name in names]
    return per_frame.annotation_of(np.stack(columns, axis=1), named_ethogram(names), rate)


def _from_columns(path: Path, array: NDArray[Any], expected: list[str] | None, rate: float) -> tuple[Annotation, list[Note]]:
    table = array.reshape(len(array), -1)
    names, notes = _names(table.shape[1], expected)
    if len(names) != table.shape[1]:
        message = Message(f"{table.shape[1]} columns in the array, but {len(names)} behaviors in ", ReaderOption("behaviors"))
        raise FormatError(path, message)
    columns = [_checked(path, np.asarray(table[:, i]), name) for i, name in enumerate(names)]
    annotation, more_notes = per_frame.annotation_of(np.stack(columns, axis=1), named_ethogram(names), rate)
    return annotation, notes + more_notes


def _from_names(path: Path, array: NDArray[Any], expected: list[str] | None, rate: float) -> tuple[Annotation, list[Note]]:
    words, label_index = np.unique(np.asarray(array), return_inverse=True)
    try:
        text = [word.decode("utf-8") if isinstance(word, bytes) else str(word) for word in words.tolist()]
    except UnicodeDecodeError:
        raise FormatError(path, "the names are bytes that are not UTF-8 text") from None
    labels = [word for word in text if word not in per_frame.MISSING]
    ethogram = named_ethogram(labels if expected is None else expected)
    unknown = [word for word in labels if word not in ethogram]
    if unknown:
        frame = int(np.argmax(label_index == text.index(unknown[0])))
        raise FormatError(path, _not_listed(unknown), f"frame {frame}")
    lookup = np.array([ethogram.code(word) if word in ethogram else per_frame.UNOBSERVED for word in text], dtype=np.int64)
    return _from_code_array(lookup[label_index.reshape(-1)] if text else np.zeros(0, dtype=np.int64), ethogram, rate), []


def _from_codes(path: Path, array: NDArray[Any], expected: list[str] | None, rate: float) -> tuple[Annotation, list[Note]]:
    values = np.asarray(array)
    finite = np.isfinite(values)
    codes = np.where(finite, values, per_frame.UNOBSERVED).astype(np.int64)
    off = finite & (codes != values)
    if off.any():
        frame = int(np.argmax(off))
        raise FormatError(path, f"{values[frame]!s} is not a code; codes must be integers", f"frame {frame}")
    codes[codes < 0] = per_frame.UNOBSERVED
    highest = int(codes.max(initial=-1))
    if expected is None and highest >= MOST_BEHAVIORS:
        raise FormatError(path, f"code {highest} is too high for a label", f"frame {int(np.argmax(codes))}")
    if expected is not None and highest >= len(expected):
        message = Message(f"code {highest}, but only {len(expected)} behaviors in ", ReaderOption("behaviors"))
        raise FormatError(path, message, f"frame {int(np.argmax(codes))}")
    names, notes = _names(highest + 1, expected)
    return _from_code_array(codes, named_ethogram(names), rate), notes


def _from_code_array(codes: NDArray[np.int64], ethogram: Ethogram, rate: float) -> Annotation:
    unobserved = codes == per_frame.UNOBSERVED
    return Annotation.from_frames(codes, ethogram, rate, unobserved=unobserved if unobserved.any() else None)


def _names(count: int, expected: list[str] | None) -> tuple[list[str], list[Note]]:
    if expected is not None:
        return expected, []
    return [str(i) for i in range(count)], [per_frame.NUMERIC_LABELS]


def _checked(path: Path, column: NDArray[Any], name: str) -> NDArray[np.int8]:
    values = column.astype(np.float64)
    bad = ~(np.isnan(values) | np.isin(values, (per_frame.UNOBSERVED, 0, 1)))
    if bad.any():
        frame = int(np.argmax(bad))
        message = f"{column[frame]!s} for {name!r} is neither 0 nor 1; probabilities cannot be read as bouts"
        raise FormatError(path, message, f"frame {frame}")
    return np.where(np.isnan(values), per_frame.UNOBSERVED, values).astype(np.int8)
