"""Per-frame one-hot CSV, as BANOS takes it: a column per behavior, a row per frame, 0 or 1 in each cell.

A blank cell (or NaN, or -1) means that this frame was not looked at for this behavior. The first column may count the
frames, or give their times in seconds, which also tell the rate. Behaviors may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Recording
from ethobench.core.errors import FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.frame_clock import at_rate, clock_of
from ethobench.formats.numbers import is_number
from ethobench.formats.text import Head

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
