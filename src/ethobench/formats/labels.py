"""Per-frame CSV tables: one label per frame (``labels``), or one column of 0 and 1 per behavior (``onehot``, as in BANOS).

A label is the name or the code of a behavior. A blank cell or NaN means that the frame is unobserved; so does a negative code, and -1
in a one-hot column (for its behavior). The first column may hold frame numbers, or times in seconds, which determine the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.bouts import background_notes, named_ethogram
from ethobench.formats.frame_clock import at_rate, clock_of
from ethobench.formats.text import Head, is_number, parse_number

NO_BEHAVIOR = "none"
ONE_HOT_CELLS = {*per_frame.YES, *per_frame.NO, *(cell.lower() for cell in per_frame.MISSING)} - {"t", "f", "yes", "no"}


@register_format("labels")
class LabelsCsv(Format):
    """One label per frame.

    Options for reading: ``rate``, the frame rate if the file has no times; ``behaviors``, the names of the behaviors (of the codes
    0, 1, ... if labels are numbers); ``column``, the column with the labels. If ``behaviors`` is set, a frame labeled "none" or
    similar has no behavior, unless that is one of the names.
    Option for writing: ``index``, the first column: "none", "frame" or "time".
    """

    title = "label CSV"
    suffixes = (".csv",)
    keeps = ("observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = per_frame.index_first(head.header)
        label_columns = names[1:] if names and per_frame.is_index(names[0]) else names
        if len(label_columns) != 1 or label_columns[0].lower() not in per_frame.LABEL_NAMES or not head.body:
            return 0.0
        return 0.6 if all(len(row) <= len(names) for row in head.body) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(
        self,
        path: Path,
        entry: str | None = None,
        *,
        rate: float | None = None,
        behaviors: Sequence[str] | str | None = None,
        column: str | None = None,
    ) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        table = per_frame.read_frame_table(path, as_text=True)
        chosen, notes = _label_column(table, column)
        clock = clock_of(table, rate)
        codes, ethogram, more_notes = _decode(table, chosen, behaviors)
        codes = clock.spread(codes, per_frame.UNOBSERVED)
        annotation = Annotation.from_frames(codes, ethogram, clock.rate, unobserved=codes == per_frame.UNOBSERVED)
        annotation, last = at_rate(annotation, rate)
        notes = [*table.notes, *notes, *clock.notes, *more_notes, *last]
        return [Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=clock.origin)]

    def write(self, recordings: Sequence[Recording], path: Path, *, index: str = "time") -> list[Note]:
        import pandas as pd

        annotation = recordings[0].annotation()
        names = annotation.ethogram.names
        codes = annotation.without_subjects().to_codes()
        words = np.array([*names, NO_BEHAVIOR, ""], dtype=object)
        columns: dict[str, Any] = {**dict(per_frame.index_cells(index, annotation)), "label": words[codes]}
        pd.DataFrame(columns).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        return [*per_frame.rate_notes(self.title, index, annotation.rate), *_loss_notes(self.title, annotation, codes)]


@register_format("onehot")
class OneHotCsv(Format):
    """One column per behavior, one row per frame.

    Option for reading: ``rate``, the frame rate if the file has no times.
    Option for writing: ``index``, the first column: "none", "frame" or "time".
    """

    title = "one-hot CSV"
    suffixes = (".csv",)
    keeps = ("overlaps", "observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = head.header
        skip = 1 if names and per_frame.is_index(names[0]) else 0
        behaviors = names[skip:]
        if not head.body or not behaviors or any(not name or is_number(name) for name in behaviors):
            return 0.0
        cells = [cell.lower() for row in head.body for cell in row[skip:]]
        if not all(cell in ONE_HOT_CELLS for cell in cells) or not any(cells):
            return 0.0
        if len(behaviors) == 1:
            return 0.0 if behaviors[0].lower() in per_frame.LABEL_NAMES else 0.5
        return 0.65

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        table = per_frame.read_frame_table(path)
        clock = clock_of(table, rate)
        columns = list(range(0 if table.index is None else 1, len(table.header)))
        if not columns:
            raise FormatError(path, "no column with the labels of a behavior", "header")
        names = [table.header[c] for c in columns]
        if "" in names:
            raise FormatError(path, "a column of a behavior has no name", "header")
        values = np.stack([per_frame.binary(table, c) for c in columns], axis=1)
        annotation, notes = per_frame.annotation_of(clock.spread(values, per_frame.UNOBSERVED), named_ethogram(names), clock.rate)
        annotation, more_notes = at_rate(annotation, rate)
        return [
            Recording(
                path.stem,
                annotations={DEFAULT_ANNOTATOR: annotation},
                notes=(*table.notes, *clock.notes, *notes, *more_notes),
                clock_origin=clock.origin,
            ),
        ]

    def write(self, recordings: Sequence[Recording], path: Path, *, index: str = "none") -> list[Note]:
        import pandas as pd

        annotation = recordings[0].annotation()
        frames = per_frame.frames_of(annotation)
        columns: dict[str, Any] = dict(per_frame.index_cells(index, annotation))
        for code, name in enumerate(annotation.ethogram.names):
            unobserved = frames[:, code] == per_frame.UNOBSERVED
            columns[name] = np.where(unobserved, "", frames[:, code].astype(str)) if unobserved.any() else frames[:, code]
        pd.DataFrame(columns).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        return [
            *per_frame.rate_notes(self.title, index, annotation.rate),
            *background_notes(self.title, annotation.ethogram),
        ]


def _label_column(table: per_frame.FrameTable, column: str | None) -> tuple[int, list[Note]]:
    """Return the index of the column with labels, and a note on ignored columns."""
    data_columns = [i for i, _ in enumerate(table.header) if i != table.index]
    if column is not None:
        if column not in table.header:
            raise FormatError(table.path, f"no column {column!r}; columns: {', '.join(table.header)}", "header")
        chosen = table.header.index(column)
    else:
        candidates = [i for i in data_columns if table.header[i].lower() in per_frame.LABEL_NAMES] or data_columns
        if len(candidates) != 1:
            header = ", ".join(table.header)
            message = Message("cannot determine the column with labels; specify it with ", ReaderOption("column"), f" (columns: {header})")
            raise FormatError(table.path, message, "header")
        chosen = candidates[0]
    name = table.header[chosen]
    if name.lower() not in per_frame.LABEL_NAMES and (table.cells[chosen] == name).any():
        raise FormatError(table.path, f"no header row: the first line, {name!r}, is also a label", "row 1")
    return chosen, ignored_columns([table.header[i] for i in data_columns if i != chosen])


def _decode(
    table: per_frame.FrameTable, column: int, behaviors: Sequence[str] | str | None
) -> tuple[NDArray[np.int64], Ethogram, list[Note]]:
    """Return one code per row (`UNOBSERVED` = unobserved, ``len(ethogram)`` = no behavior), the ethogram, and notes."""
    import pandas as pd

    label_index, labels_in_file = pd.factorize(table.cells[column].str.strip())

    def location(word: int) -> str:
        return table.location(int(np.flatnonzero(label_index == word)[0]))

    lookup, ethogram, notes = decode_words(table.path, [str(word) for word in labels_in_file], behaviors, location)
    return np.append(lookup, per_frame.UNOBSERVED)[label_index], ethogram, notes


def decode_words(
    path: Path, words: Sequence[str], behaviors: Sequence[str] | str | None, location: Callable[[int], str]
) -> tuple[NDArray[np.int64], Ethogram, list[Note]]:
    """Decode the distinct labels of a file.

    Parameters
    ----------
    path : Path
        Named in errors.
    words : sequence of str
        Names or numeric codes of behaviors. Missing labels and negative codes mean that a frame is unobserved.
    behaviors : sequence of str, or comma-separated str, optional
        Names of the behaviors; of the codes 0, 1, ... if labels are numbers.
    location : callable
        Returns the location of the first occurrence of a word, given its index, for errors.

    Returns
    -------
    codes : array of int64
        One per word: `UNOBSERVED`, the code of a behavior, or ``len(ethogram)`` for "no behavior".
    ethogram : Ethogram
    notes : list of Note
    """
    numbers = [_integer(word) for word in words]
    valid = [i for i, (word, number) in enumerate(zip(words, numbers, strict=True)) if word not in per_frame.MISSING and (number or 0) >= 0]
    expected = None if behaviors is None else per_frame.behavior_names(behaviors)
    numeric = bool(valid) and all(numbers[i] is not None for i in valid) and not all(words[i] in (expected or ()) for i in valid)
    keys: Sequence[Any] = numbers if numeric else words
    notes: list[Note] = []
    if expected is None:
        used = sorted({keys[i] for i in valid}) if numeric else [words[i] for i in valid]
        names, code_of = [str(key) for key in used], {key: code for code, key in enumerate(used)}
        if numeric:
            notes.append(per_frame.NUMERIC_LABELS)
    else:
        names, code_of = expected, {(code if numeric else name): code for code, name in enumerate(expected)}
        for word in words:
            if not numeric and guess_background([word]) is not None:
                code_of.setdefault(word, len(names))
    lookup = np.full(len(words), per_frame.UNOBSERVED, dtype=np.int64)
    for i in valid:
        if keys[i] not in code_of:
            raise FormatError(path, f"{words[i]!r} is not one of the behaviors ({', '.join(names)})", location(i))
        lookup[i] = code_of[keys[i]]
    return lookup, named_ethogram(names), notes


def _integer(word: str) -> int | None:
    try:
        value = parse_number(word)
    except ValueError:
        return None
    return int(value) if np.isfinite(value) and value == np.floor(value) else None


def _loss_notes(title: str, annotation: Annotation, codes: NDArray[np.int64]) -> list[Note]:
    """Return notes on what labels cannot store."""
    ethogram = annotation.ethogram
    notes = []
    unused = [name for code, name in enumerate(ethogram.names) if not (codes == code).any()]
    if unused:
        problem = f"{title} stores only behaviors that occur; lost unless the file is read with "
        message = Message(problem, ReaderOption("behaviors"), f": {', '.join(unused)}")
        notes.append(Note(message, code="lost-behaviors"))
    if (codes == len(ethogram)).any():
        notes.append(Note(f"frames without a behavior are written as {NO_BEHAVIOR!r}", code="renamed-background"))
    return [*notes, *background_notes(title, ethogram)]
