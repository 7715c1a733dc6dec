"""BEBE predictions: one integer per row and sample, no header; 0 = unknown, 1 = the first behavior."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, register_format
from ethobench.formats.bouts import frames_rate
from ethobench.formats.numbers import parse_integer
from ethobench.formats.size_limits import check_label
from ethobench.formats.text import Head, guess_delimiter, read_text, split_rows, without_empty_end

LOOKED_AT = 50


@register_format("bebe_predictions")
class BebePredictions(Format):
    """What BEBE's models write, and its evaluation reads. It names no behaviors: `behaviors` must."""

    title = "BEBE predictions"
    suffixes = (".bebe.csv",)
    keeps = ("length", "observed")
    names_behaviors = False

    def sniff(self, path: Path, head: Head) -> float:
        if path.parent.name != "predictions" and not path.name.endswith(self.suffixes):
            return 0.0
        cells = [cell for row in head.rows[:LOOKED_AT] for cell in without_empty_end(row)]
        return 0.95 if cells and all(cell.isdecimal() for cell in cells) else 0.0

    def read(
        self, path: Path, entry: str | None = None, *, behaviors: Sequence[str] | None = None, rate: float | None = None
    ) -> list[Recording]:
        text = read_text(path)
        try:
            cells = [cell for _, row in split_rows(text, guess_delimiter(text)) for cell in without_empty_end(row)]
        except csv.Error as error:
            raise FormatError(path, str(error)) from None
        try:
            codes = np.array([parse_integer(cell) for cell in cells])
        except ValueError as error:
            raise FormatError(path, f"one whole number per row is expected ({error})") from None
        if not codes.size:
            raise FormatError(path, "no labels: one whole number per row is expected")
        if behaviors is None:
            check_label(path, int(codes.max()), f"row {int(codes.argmax()) + 1}")
        names = list(behaviors) if behaviors is not None else [f"class_{i}" for i in range(1, int(codes.max()) + 1)]
        if codes.min() < 0 or codes.max() > len(names):
            raise FormatError(path, f"codes run from {codes.min()} to {codes.max()}, but {len(names)} behaviors were named")
        clock, notes = frames_rate(rate)
        if behaviors is None:
            notes.append(Note("the file names no behaviors; they are called class_1, class_2, ... (give behaviors= to name them)"))
        annotation = Annotation.from_frames(codes - 1, Ethogram(names), clock, unobserved=-1)
        name = path.name.split(".")[0]
        return [Recording(name, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=ClockOrigin.ASSUMED)]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotation = recordings[0].annotation()
        codes = annotation.to_codes()
        nothing = codes == len(annotation.ethogram)
        if nothing.any() and annotation.ethogram.background is None:
            raise EthobenchError(f"BEBE predictions give every sample a behavior, but {int(nothing.sum())} observed frames have none")
        path.write_text("\n".join(map(str, codes + 1)) + "\n", encoding="utf-8", newline="\n")
        names = ", ".join(f"{i} {b.name}" for i, b in enumerate(annotation.ethogram, start=1))
        return [Note(f"BEBE predictions name neither behaviors nor rate; here 0 is unknown, {names}")]
