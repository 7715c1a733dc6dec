"""DeepEthogram label CSV: an index, ``background``, then one column per behavior.

Cells are 1 (present), 0 (absent) or -1 (not labeled yet, read as unobserved).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ethobench.core import Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.frame_clock import clock_of
from ethobench.formats.text import Head

BACKGROUND = "background"
CELLS = {"0", "1", "-1", "0.0", "1.0", "-1.0", ""}


@register_format("deepethogram")
class DeepEthogramLabels(Format):
    """An index, ``background``, then one column per behavior; -1 for frames that are not labeled.

    Option for reading: ``rate``, because the file does not state it.
    """

    title = "DeepEthogram labels"
    suffixes = (".csv",)
    keeps = ("overlaps", "observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = head.header
        if len(names) < 3 or names[1] != BACKGROUND or names[0]:
            return 0.0
        return 0.95 if head.body and all(cell in CELLS for row in head.body for cell in row[1:]) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        select_entries(path, entry, [path.stem])
        table = per_frame.read_frame_table(path)
        if BACKGROUND not in table.header[:2]:
            message = f"the first column of DeepEthogram labels must be {BACKGROUND!r}; columns: {', '.join(table.header)}"
            raise FormatError(path, message, "header")
        columns = range(table.header.index(BACKGROUND), len(table.header))
        clock = clock_of(table, rate)
        values = np.stack([per_frame.binary(table, c) for c in columns], axis=1)
        ethogram = Ethogram([table.header[c] for c in columns], BACKGROUND)
        annotation, notes = per_frame.annotation_of(clock.spread(values, per_frame.UNOBSERVED), ethogram, clock.rate)
        return [
            Recording(
                path.stem,
                annotations={DEFAULT_ANNOTATOR: annotation},
                notes=(*table.notes, *clock.notes, *notes),
                clock_origin=clock.origin,
            )
        ]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pandas as pd

        annotation = recordings[0].annotation()
        frames = per_frame.frames_of(annotation)
        names, background = list(annotation.ethogram.names), annotation.ethogram.background
        columns = {name: frames[:, code] for code, name in enumerate(names) if code != background}
        notes = per_frame.rate_notes(self.title, "none", annotation.rate)
        if background is None:
            rest = np.where((frames == 1).any(axis=1), 0, 1)
            first = np.where((frames == per_frame.UNOBSERVED).any(axis=1) & (rest == 1), per_frame.UNOBSERVED, rest)
            notes.append(Note(f"a column {BACKGROUND!r} is added for frames without a behavior", code="added-background"))
        else:
            first = frames[:, background]
            if names[background] != BACKGROUND:
                notes.append(
                    Note(f"{names[background]!r} is written as {BACKGROUND!r}, its name in DeepEthogram", code="renamed-background")
                )
        if BACKGROUND in columns:
            raise EthobenchError(f"{BACKGROUND!r} is an ordinary behavior, but means 'no behavior' in DeepEthogram; rename it first")
        pd.DataFrame({BACKGROUND: first, **columns}).to_csv(path, lineterminator="\n", encoding="utf-8")
        return notes
