"""Per-frame label CSV: one row per frame, with the name (or the code) of what goes on in it.

A blank cell (or NaN) means that the frame was not looked at; so does a negative code. The first column may count the
frames, or give their times in seconds, which also tell the rate.

MERGED: Per-frame one-hot CSV, as BANOS takes it: a column per behavior, a row per frame, 0 or 1 in each cell.

A blank cell (or NaN, or -1) means that this frame was not looked at for this behavior. The first column may count the
frames, or give their times in seconds, which also tell the rate. Behaviors may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.frame_clock import at_rate, clock_of
from ethobench.formats.text import Head, is_number, parse_number

NOTHING = "none"


@register_format("labels")
class LabelsCsv(Format):
    """One label per frame.

    Options for reading: ``rate``, the frame rate where the file has no times; ``behaviors``, the ethogram (what
    the codes 0, 1, ... mean where labels are numbers); ``column``, which column holds the labels. With ``behaviors``
    given, a frame labelled "none" or the like holds no behavior, unless that is one of them.
    Option for writing: ``index``, "none", "frame" or "time": the column to put before the labels.
    """

    title = "label CSV"
    suffixes = (".csv",)
    keeps = ("observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = per_frame.index_first(head.header)
        own = names[1:] if names and per_frame.is_index(names[0]) else names
        if len(own) != 1 or own[0].lower() not in per_frame.LABEL_NAMES or not head.body:
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
        pick_entry(path, entry, [path.stem])
        table = per_frame.read_frame_table(path, as_text=True)
        chosen, notes = _label_column(table, column)
        clock = clock_of(table, rate)
        codes, ethogram, more = _decode(table, chosen, behaviors)
        codes = clock.spread(codes, per_frame.HIDDEN)
        annotation = Annotation.from_frames(codes, ethogram, clock.rate, unobserved=codes == per_frame.HIDDEN)
        annotation, last = at_rate(annotation, rate)
        notes = [*table.notes, *notes, *clock.notes, *more, *last]
        return [Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=clock.origin)]

    def write(self, recordings: Sequence[Recording], path: Path, *, index: str = "time") -> list[Note]:
        import pandas as pd

        annotation = recordings[0].annotation()
        names = annotation.ethogram.names
        codes = annotation.without_subjects().to_codes()
        words = np.array([*names, NOTHING, ""], dtype=object)
        columns: dict[str, Any] = {**dict(per_frame.index_cells(index, annotation)), "label": words[codes]}
        pd.DataFrame(columns).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        return [*per_frame.rate_notes(self.title, index, annotation.rate), *_word_notes(self.title, annotation, codes)]


def _label_column(table: per_frame.FrameTable, column: str | None) -> tuple[int, list[Note]]:
    """Find the column of labels; note the columns that are left out."""
    own = [i for i, _ in enumerate(table.header) if i != table.index]
    if column is not None:
        if column not in table.header:
            raise FormatError(table.path, f"no column {column!r}; there are: {', '.join(table.header)}", "header")
        chosen = table.header.index(column)
    else:
        known = [i for i in own if table.header[i].lower() in per_frame.LABEL_NAMES] or own
        if len(known) != 1:
            raise FormatError(table.path, f"which column holds the labels? Give column= (one of {', '.join(table.header)})", "header")
        chosen = known[0]
    name = table.header[chosen]
    if name.lower() not in per_frame.LABEL_NAMES and (table.cells[chosen] == name).any():
        raise FormatError(table.path, f"the first line, {name!r}, is a label too: the table seems to have no header", "row 1")
    left = [table.header[i] for i in own if i != chosen]
    return chosen, [Note(f"columns not understood and left out: {', '.join(left)}")] if left else []


def _decode(
    table: per_frame.FrameTable, column: int, behaviors: Sequence[str] | str | None
) -> tuple[NDArray[np.int64], Ethogram, list[Note]]:
    """Return one code per row (`HIDDEN` = not observed, ``len(ethogram)`` = none) and what the codes mean."""
    import pandas as pd

    label_index, labels_in_file = pd.factorize(table.cells[column].str.strip())
    words = [str(word) for word in labels_in_file]
    numbers = [_whole(word) for word in words]
    shown = [i for i, (word, number) in enumerate(zip(words, numbers, strict=True)) if word not in per_frame.MISSING and (number or 0) >= 0]
    wanted = None if behaviors is None else per_frame.behavior_names(behaviors)
    numbered = bool(shown) and all(numbers[i] is not None for i in shown) and not all(words[i] in (wanted or ()) for i in shown)
    keys: Sequence[Any] = numbers if numbered else words
    notes: list[Note] = []
    if wanted is None:
        used = sorted({keys[i] for i in shown}) if numbered else [words[i] for i in shown]
        names, code = [str(key) for key in used], {key: location for location, key in enumerate(used)}
        if numbered:
            notes.append(Note("labels are numbers, which name no behavior; give behaviors= to name them"))
    else:
        names, code = wanted, {(location if numbered else name): location for location, name in enumerate(wanted)}
        for word in words:
            if not numbered and _is_nothing(word):
                code.setdefault(word, len(names))
    lookup = np.full(len(words) + 1, per_frame.HIDDEN, dtype=np.int64)
    for i in shown:
        if keys[i] not in code:
            row = int(np.flatnonzero(label_index == i)[0])
            raise FormatError(table.path, f"{words[i]!r} is not among the behaviors ({', '.join(names)})", table.location(row))
        lookup[i] = code[keys[i]]
    return lookup[label_index], per_frame.named_ethogram(names), notes


def _whole(word: str) -> int | None:
    try:
        value = parse_number(word)
    except ValueError:
        return None
    return int(value) if np.isfinite(value) and value == np.floor(value) else None


def _is_nothing(word: str) -> bool:
    return guess_background([word]) is not None


def _word_notes(title: str, annotation: Annotation, codes: NDArray[np.int64]) -> list[Note]:
    """Note what the words alone do not tell."""
    ethogram = annotation.ethogram
    notes = []
    unused = [name for code, name in enumerate(ethogram.names) if not (codes == code).any()]
    if unused:
        notes.append(Note(f"{title} names only what occurs: {', '.join(unused)} will be unknown unless behaviors= is given when reading"))
    if (codes == len(ethogram)).any():
        notes.append(Note(f"frames without a behavior are written as {NOTHING!r}"))
    return [*notes, *per_frame.background_notes(title, ethogram)]


PLAIN = {*per_frame.YES, *per_frame.NO, *(cell.lower() for cell in per_frame.MISSING)} - {"t", "f", "yes", "no"}


@register_format("onehot")
class OneHotCsv(Format):
    """A column per behavior, a row per frame.

    Options: ``rate`` (reading), the frame rate where the file has no times; ``index`` (writing), "none", "frame" or
    "time": the column to put before the behaviors.
    """

    title = "one-hot CSV"
    suffixes = (".csv",)
    keeps = ("overlaps", "observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = head.header
        skip = 1 if names and per_frame.is_index(names[0]) else 0
        own = names[skip:]
        if not head.body or not own or any(not name or is_number(name) for name in own):
            return 0.0
        cells = [cell.lower() for row in head.body for cell in row[skip:]]
        if not all(cell in PLAIN for cell in cells) or not any(cells):
            return 0.0
        if len(own) == 1:
            return 0.0 if own[0].lower() in per_frame.LABEL_NAMES else 0.5
        return 0.65

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        table = per_frame.read_frame_table(path)
        clock = clock_of(table, rate)
        columns = list(range(0 if table.index is None else 1, len(table.header)))
        if not columns:
            raise FormatError(path, "no column of a behavior was found", "header")
        names = [table.header[c] for c in columns]
        if "" in names:
            raise FormatError(path, "a column of a behavior has no name", "header")
        values = np.stack([per_frame.binary(table, c) for c in columns], axis=1)
        annotation, notes = per_frame.annotation_of(clock.spread(values, per_frame.HIDDEN), per_frame.named_ethogram(names), clock.rate)
        annotation, more = at_rate(annotation, rate)
        return [
            Recording(
                path.stem,
                annotations={DEFAULT_ANNOTATOR: annotation},
                notes=(*table.notes, *clock.notes, *notes, *more),
                clock_origin=clock.origin,
            ),
        ]

    def write(self, recordings: Sequence[Recording], path: Path, *, index: str = "none") -> list[Note]:
        import pandas as pd

        annotation = recordings[0].annotation()
        frames = per_frame.frames_of(annotation)
        columns: dict[str, Any] = dict(per_frame.index_cells(index, annotation))
        for code, name in enumerate(annotation.ethogram.names):
            hidden = frames[:, code] == per_frame.HIDDEN
            columns[name] = np.where(hidden, "", frames[:, code].astype(str)) if hidden.any() else frames[:, code]
        pd.DataFrame(columns).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        return [
            *per_frame.rate_notes(self.title, index, annotation.rate),
            *per_frame.background_notes(self.title, annotation.ethogram),
        ]
