"""SimBA ``targets_inserted`` and ``machine_results`` CSV: poses, features, then a 0/1 column per behavior.

Body parts have columns ``*_x, *_y, *_p``; with several animals their names end in ``_1``, ``_2``. In machine results, each behavior
``X`` comes with ``Probability_X``, so the names are certain, and the mean probability over a bout is its confidence. Elsewhere
the behaviors are the last columns that hold only 0 and 1; ``behaviors=`` names them where that guess is wrong.

The first column numbers the frames. Rows go to the frames that they name; frames without a row are missing and not observed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import arrow_tables, per_frame
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.frame_clock import FrameClock, clock_of
from ethobench.formats.size_limits import check_size, check_table
from ethobench.formats.text import Head, duplicates, without_empty_end

if TYPE_CHECKING:
    import pandas as pd

AXES = ("x", "y", "p")
PROBABILITY = "Probability_"
NUMBERED = re.compile(r"(.+)_(\d+)")
FEATURE = re.compile(
    r"feature_\d+|low_prob_detections.*|sum_prob.*|.*_(in_zone|facing|distance|deviation|percentile_rank|percent|time)|.*_in_zone_.*|.*_(mean|median|sum)_[\d.]+",
    re.IGNORECASE,
)
MOST_GUESSED = 64


@dataclass
class _Layout:
    """Which columns are what, by their places in the header."""

    path: Path
    source: Path | bytes
    encoding: str
    delimiter: str
    first_row: int
    width: int
    header: list[str]
    parts: list[str]
    probabilities: dict[str, int]

    @property
    def has_index(self) -> bool:
        """Whether the first column numbers the frames or gives their times."""
        return per_frame.is_index(self.header[0])

    @property
    def rest(self) -> list[int]:
        """Columns that are neither index, pose nor probability."""
        first = 1 if self.has_index else 0
        taken = {self.header.index(f"{part}_{axis}") for part in self.parts for axis in AXES} | {*self.probabilities.values()}
        return [i for i in range(first, len(self.header)) if i not in taken]

    def load(self, columns: Sequence[int]) -> pd.DataFrame:
        """Read some columns, in the order given."""
        import pandas as pd

        try:
            cells = pd.read_csv(
                arrow_tables.opened(self.source),
                sep=self.delimiter,
                header=None,
                names=list(range(self.width)),
                usecols=list(columns),
                index_col=False,
                skiprows=self.first_row - 1,
                encoding=self.encoding,
                low_memory=False,
                keep_default_na=False,
                na_values=list(per_frame.MISSING),
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
            raise FormatError(self.path, f"the table is damaged ({str(error).strip()})") from None
        return cells[list(columns)]

    def numbers(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Read some columns as numbers."""
        cells = self.load(columns)
        for column in columns:
            if cells[column].dtype.kind not in "biuf":
                raise FormatError(self.path, f"column {self.header[column]!r} holds text, where numbers were expected")
        return cells.to_numpy(dtype=np.float64)


@register_format("simba")
class SimbaCsv(Format):
    """Poses, features and 0/1 columns of behaviors, one row per frame.

    Options for reading: ``rate``, since the file tells none; ``behaviors``, the columns that hold behaviors.
    """

    title = "SimBA CSV"
    suffixes = (".csv",)
    contents = ("annotations", "poses", "signals")
    keeps = ("overlaps", "length")

    def sniff(self, path: Path, head: Head) -> float:
        names = head.header
        first = 1 if names and per_frame.is_index(names[0]) else 0
        ends = [name[-2:] for name in names[first : first + 3]]
        stems = {name[:-2] for name in names[first : first + 3]}
        return 0.95 if ends == ["_x", "_y", "_p"] and len(stems) == 1 else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(
        self, path: Path, entry: str | None = None, *, rate: float | None = None, behaviors: Sequence[str] | str | None = None
    ) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        layout = _layout(path)
        clock = _clock(layout, rate)
        labels, more = _label_columns(layout, behaviors)
        annotations: dict[str, Annotation] = {}
        if labels:
            annotations[DEFAULT_ANNOTATOR], last = _annotation(layout, labels, clock)
            more += last
        features = [i for i in layout.rest if i not in labels]
        return [
            Recording(
                path.stem,
                rate=clock.rate,
                signals=lambda: _poses(layout, clock),
                features=(lambda: _features(layout, features, clock)) if features else None,
                annotations=annotations,
                n_frames=None if annotations else clock.n_frames,
                notes=(*clock.notes, *more),
                clock_origin=clock.origin,
            )
        ]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pandas as pd

        recording = recordings[0]
        poses, annotation = recording.signals, recording.annotation()
        if not isinstance(poses, Poses):
            raise EthobenchError(f"a SimBA file needs tracked body parts, and recording {recording.id!r} has none; choose another format")
        if poses.positions.shape[3] != 2:
            raise EthobenchError("a SimBA file holds positions in a plane, but these have three coordinates")
        if len(poses) != annotation.n_frames:
            raise EthobenchError(f"{len(poses)} frames of poses, but {annotation.n_frames} of labels; crop one to the other first")
        columns: dict[str, NDArray[Any]] = {}
        several = len(poses.individuals) > 1
        for i, _ in enumerate(poses.individuals):
            for k, keypoint in enumerate(poses.keypoints):
                part = f"{keypoint}_{i + 1}" if several else keypoint
                values = (poses.positions[:, i, k, 0], poses.positions[:, i, k, 1], poses.confidence[:, i, k])
                columns |= {f"{part}_{axis}": value for axis, value in zip(AXES, values, strict=True)}
        if isinstance(recording.features, Signals):
            columns |= {name: recording.features.channel(name) for name in recording.features.channels}
        twice = [name for name in annotation.ethogram.names if name in columns]
        if twice:
            raise EthobenchError(f"{twice[0]!r} is a behavior and a column of the poses or features; rename the behavior first")
        frames = annotation.to_frames().astype(np.int8)
        columns |= {name: frames[:, code] for code, name in enumerate(annotation.ethogram.names)}
        pd.DataFrame(columns).to_csv(path, lineterminator="\n", encoding="utf-8")
        return [
            *per_frame.rate_notes(self.title, "none", annotation.rate),
            *per_frame.background_notes(self.title, annotation.ethogram),
        ]


def _layout(path: Path) -> _Layout:
    rows, delimiter, encoding = arrow_tables.first_rows(path, 1)
    header, width = without_empty_end(rows[0]), len(rows[0])
    top = arrow_tables.blank_lines(path, encoding)
    source = arrow_tables.plain_source(path, delimiter, encoding)
    number = 1
    with io.BytesIO(source) if isinstance(source, bytes) else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.count(delimiter.encode()) >= width and b'"' not in line:
                raise FormatError(path, f"more cells than the header's {width}", f"row {number}")
    check_table(path, number - 1, width, path.stat().st_size)
    twice = sorted(duplicates(header))
    if twice:
        raise FormatError(path, f"column {twice[0]!r} stands twice", "header")
    parts = [name[:-2] for name in header if name.endswith("_x") and all(f"{name[:-2]}_{axis}" in header for axis in AXES)]
    if not parts:
        raise FormatError(path, "no body part (columns *_x, *_y, *_p) was found", "header")
    probabilities = {name.removeprefix(PROBABILITY): i for i, name in enumerate(header) if name.startswith(PROBABILITY)}
    encoding = "utf-8" if isinstance(source, bytes) else encoding
    return _Layout(path, source, encoding, delimiter, top + 2, width, header, parts, probabilities)


def _clock(layout: _Layout, rate: float | None) -> FrameClock:
    """Read the frame of each row from the index; a given rate counts, whatever times an index states."""
    column = layout.load([0])
    n_rows = len(column)
    if not n_rows:
        raise FormatError(layout.path, "the table has a header, but no rows")
    header = layout.header[:1] if layout.has_index and column[0].notna().any() else ["rows"]
    clock = clock_of(per_frame.FrameTable(layout.path, header, column, layout.first_row), rate)
    check_size(layout.path, 8 * clock.n_frames * len(layout.header), 8 * n_rows * len(layout.header))
    if rate is not None and clock.rate != rate:
        clock.notes.append(Note(f"column {header[0]!r} states {clock.rate:g} Hz; read at {rate:g} Hz, as given"))
        clock = replace(clock, rate=rate)
    return clock


def _label_columns(layout: _Layout, behaviors: Sequence[str] | str | None) -> tuple[list[int], list[Note]]:
    """Find the columns that hold behaviors, and say how."""
    if behaviors is not None:
        names = per_frame.behavior_names(behaviors)
        missing = [name for name in names if name not in layout.header]
        if missing:
            raise FormatError(layout.path, f"no column {', '.join(missing)}", "header")
        return [layout.header.index(name) for name in names], []
    if layout.probabilities:
        undecided = [name for name in layout.probabilities if name not in layout.header]
        notes = [Note(f"{PROBABILITY}{name} has no column {name!r} of decisions; left out") for name in undecided]
        return [layout.header.index(name) for name in layout.probabilities if name in layout.header], notes
    tail = [i for i in layout.rest[-MOST_GUESSED:] if not FEATURE.fullmatch(layout.header[i])]
    cells = layout.load(tail) if tail else None
    found: list[int] = []
    for i in reversed(layout.rest[-MOST_GUESSED:]):
        if cells is None or i not in tail or not _is_binary(cells[i]):
            break
        found.insert(0, i)
    if not found:
        return [], [Note("no column of a behavior was found (only 0 and 1, at the end); give behaviors= if there are some")]
    names = [layout.header[i] for i in found]
    return found, [Note(f"taken as behaviors, being the last columns that hold only 0 and 1: {', '.join(names)} (else give behaviors=)")]


def _is_binary(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "biuf" and bool(column.isin([0, 1]).where(column.notna(), True).all()) and bool(column.notna().any())


def _annotation(layout: _Layout, labels: list[int], clock: FrameClock) -> tuple[Annotation, list[Note]]:
    table = per_frame.FrameTable(layout.path, layout.header, layout.load(labels), layout.first_row)
    names = [layout.header[i] for i in labels]
    values = np.stack([per_frame.binary(table, i) for i in labels], axis=1)
    frames = clock.spread(values, per_frame.HIDDEN)
    annotation, notes = per_frame.annotation_of(frames, per_frame.named_ethogram(names), clock.rate)
    hidden = (values == per_frame.HIDDEN).any(axis=1)
    if hidden.any():
        location = table.location(int(np.argmax(hidden)))
        notes.append(Note(f"{int(hidden.sum())} frames have a behavior without 0 or 1; it counts as not observed there", location))
    if layout.probabilities and all(name in layout.probabilities for name in names):
        chances = clock.spread(layout.numbers([layout.probabilities[name] for name in names]), 0)
        totals = np.concatenate((np.zeros((1, len(names))), np.cumsum(chances, axis=0)))
        confidence = (totals[annotation.stop, annotation.behavior] - totals[annotation.start, annotation.behavior]) / (
            annotation.stop - annotation.start
        )
        annotation = replace(annotation, confidence=confidence)
    return annotation, notes


def _features(layout: _Layout, columns: Sequence[int], clock: FrameClock) -> Signals:
    values = clock.spread(layout.numbers(columns), np.nan)
    return Signals(values, tuple(layout.header[i] for i in columns), clock.rate)


def _poses(layout: _Layout, clock: FrameClock) -> Poses:
    split = {part: NUMBERED.fullmatch(part) for part in layout.parts}
    several = all(split.values())
    owners = {part: (found[2], found[1]) if several and found else ("", part) for part, found in split.items()}
    numbers = list(dict.fromkeys(owner for owner, _ in owners.values()))
    keypoints = list(dict.fromkeys(name for _, name in owners.values()))
    columns = [layout.header.index(f"{part}_{axis}") for part in layout.parts for axis in AXES]
    values = clock.spread(layout.numbers(columns), np.nan).reshape(-1, len(layout.parts), 3)
    shape = (len(values), len(numbers), len(keypoints))
    positions, confidence = np.full((*shape, 2), np.nan), np.full(shape, np.nan)
    for n, (owner, name) in enumerate(owners.values()):
        i, k = numbers.index(owner), keypoints.index(name)
        positions[:, i, k], confidence[:, i, k] = values[:, n, :2], values[:, n, 2]
    individuals = tuple(f"animal_{number}" for number in numbers) if several else ("animal",)
    return Poses(positions, confidence, individuals, tuple(keypoints), clock.rate)
