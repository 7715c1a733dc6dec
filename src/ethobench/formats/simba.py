"""SimBA ``targets_inserted`` and ``machine_results`` CSV: poses, features, then a column of 0 and 1 per behavior.

Body parts have columns ``*_x, *_y, *_p``; with several animals their names end in ``_1``, ``_2``. In machine results, each behavior
``X`` has a column ``Probability_X``, and the confidence of a bout is its mean probability. In other files, the behaviors are the last
columns that hold only 0 and 1, unless ``behaviors=`` lists them.

The first column is the frame number. Frames without a row have missing poses and are unobserved.
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
from ethobench.core.messages import Message, ReaderOption, rate_option
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import arrow_tables, per_frame
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import background_notes, named_ethogram
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
MAX_GUESSED = 64


@register_format("simba")
class SimbaCsv(Format):
    """Poses, features and 0/1 columns of behaviors, one row per frame.

    Options for reading: ``rate``, because the file does not state it; ``behaviors``, the columns of behaviors.
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
        select_entries(path, entry, [path.stem])
        layout = _layout(path)
        clock = _clock(layout, rate)
        labels, more_notes = _label_columns(layout, behaviors)
        annotations: dict[str, Annotation] = {}
        if labels:
            annotations[DEFAULT_ANNOTATOR], last = _annotation(layout, labels, clock)
            more_notes += last
        features = [i for i in layout.rest if i not in labels]
        return [
            Recording(
                path.stem,
                rate=clock.rate,
                signals=lambda: _poses(layout, clock),
                features=(lambda: _features(layout, features, clock)) if features else None,
                annotations=annotations,
                n_frames=None if annotations else clock.n_frames,
                notes=(*clock.notes, *more_notes),
                clock_origin=clock.origin,
            )
        ]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        import pandas as pd

        recording = recordings[0]
        poses, annotation = recording.signals, recording.annotation()
        if not isinstance(poses, Poses):
            raise EthobenchError(f"a SimBA file needs poses, but recording {recording.id!r} has none; choose another format")
        if poses.positions.shape[3] != 2:
            raise EthobenchError("a SimBA file stores 2-D poses, but these are 3-D")
        if len(poses) != annotation.n_frames:
            raise EthobenchError(f"{len(poses)} frames of poses, but {annotation.n_frames} frames of labels; crop the longer one first")
        columns: dict[str, NDArray[Any]] = {}
        has_several_animals = len(poses.individuals) > 1
        for i, _ in enumerate(poses.individuals):
            for k, keypoint in enumerate(poses.keypoints):
                body_part = f"{keypoint}_{i + 1}" if has_several_animals else keypoint
                values = (poses.positions[:, i, k, 0], poses.positions[:, i, k, 1], poses.confidence[:, i, k])
                columns |= {f"{body_part}_{axis}": value for axis, value in zip(AXES, values, strict=True)}
        if isinstance(recording.features, Signals):
            columns |= {name: recording.features.channel(name) for name in recording.features.channels}
        repeated = [name for name in annotation.ethogram.names if name in columns]
        if repeated:
            raise EthobenchError(f"{repeated[0]!r} is a behavior and also a column of the poses or features; rename the behavior first")
        frames = annotation.to_frames().astype(np.int8)
        columns |= {name: frames[:, code] for code, name in enumerate(annotation.ethogram.names)}
        pd.DataFrame(columns).to_csv(path, lineterminator="\n", encoding="utf-8")
        return [
            *per_frame.rate_notes(self.title, "none", annotation.rate),
            *background_notes(self.title, annotation.ethogram),
        ]


@dataclass
class _Layout:
    """Roles of the columns of a file."""

    path: Path
    source: Path | bytes
    encoding: str
    delimiter: str
    first_row: int
    width: int
    header: list[str]
    body_parts: list[str]
    probabilities: dict[str, int]

    @property
    def has_index(self) -> bool:
        """Whether the first column holds frame numbers or times."""
        return per_frame.is_index(self.header[0])

    @property
    def rest(self) -> list[int]:
        """Indices of the columns that are neither index, pose nor probability."""
        first = 1 if self.has_index else 0
        used = {self.header.index(f"{body_part}_{axis}") for body_part in self.body_parts for axis in AXES} | {*self.probabilities.values()}
        return [i for i in range(first, len(self.header)) if i not in used]

    def load(self, columns: Sequence[int]) -> pd.DataFrame:
        """Return columns of the table, in the order of `columns`."""
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
            raise FormatError(self.path, f"not a valid table ({str(error).strip()})") from None
        return cells[list(columns)]

    def numbers(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Return columns of the table as numbers of shape (n_rows, n_columns)."""
        cells = self.load(columns)
        for column in columns:
            if cells[column].dtype.kind not in "biuf":
                raise FormatError(self.path, f"expected numbers in column {self.header[column]!r}, got text")
        return cells.to_numpy(dtype=np.float64)


def _layout(path: Path) -> _Layout:
    rows, delimiter, encoding = arrow_tables.first_rows(path, 1)
    header, width = without_empty_end(rows[0]), len(rows[0])
    top = arrow_tables.blank_lines(path, encoding)
    source = arrow_tables.plain_source(path, delimiter, encoding)
    number = 1
    with io.BytesIO(source) if isinstance(source, bytes) else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.count(delimiter.encode()) >= width and b'"' not in line:
                raise FormatError(path, f"more cells than the {width} of the header", f"row {number}")
    check_table(path, number - 1, width, path.stat().st_size)
    repeated = sorted(duplicates(header))
    if repeated:
        raise FormatError(path, f"duplicate column {repeated[0]!r}", "header")
    body_parts = [name[:-2] for name in header if name.endswith("_x") and all(f"{name[:-2]}_{axis}" in header for axis in AXES)]
    if not body_parts:
        raise FormatError(path, "no body part (columns *_x, *_y, *_p)", "header")
    probabilities = {name.removeprefix(PROBABILITY): i for i, name in enumerate(header) if name.startswith(PROBABILITY)}
    encoding = "utf-8" if isinstance(source, bytes) else encoding
    return _Layout(path, source, encoding, delimiter, top + 2, width, header, body_parts, probabilities)


def _clock(layout: _Layout, rate: float | None) -> FrameClock:
    """Return the clock of the index column; `rate` takes precedence over the times of the index."""
    column = layout.load([0])
    n_rows = len(column)
    if not n_rows:
        raise FormatError(layout.path, "the table has a header but no rows")
    header = layout.header[:1] if layout.has_index and column[0].notna().any() else ["rows"]
    clock = clock_of(per_frame.FrameTable(layout.path, header, column, layout.first_row), rate)
    check_size(layout.path, 8 * clock.n_frames * len(layout.header), 8 * n_rows * len(layout.header))
    if rate is not None and clock.rate != rate:
        message = Message(f"column {header[0]!r} states {clock.rate:g} Hz; using ", rate_option(rate))
        clock.notes.append(Note(message, code="different-rate"))
        clock = replace(clock, rate=rate)
    return clock


def _label_columns(layout: _Layout, behaviors: Sequence[str] | str | None) -> tuple[list[int], list[Note]]:
    """Return the indices of the columns of behaviors, and notes on how they were chosen."""
    if behaviors is not None:
        names = per_frame.behavior_names(behaviors)
        missing = [name for name in names if name not in layout.header]
        if missing:
            raise FormatError(layout.path, f"no column {', '.join(missing)}", "header")
        return [layout.header.index(name) for name in names], []
    if layout.probabilities:
        undecided = [name for name in layout.probabilities if name not in layout.header]
        message = f"ignored {PROBABILITY}%s: no column %r of 0 and 1"
        notes = [Note(message % (name, name), code="ignored-columns") for name in undecided]
        return [layout.header.index(name) for name in layout.probabilities if name in layout.header], notes
    tail = [i for i in layout.rest[-MAX_GUESSED:] if not FEATURE.fullmatch(layout.header[i])]
    cells = layout.load(tail) if tail else None
    guessed: list[int] = []
    for i in reversed(layout.rest[-MAX_GUESSED:]):
        if cells is None or i not in tail or not _is_binary(cells[i]):
            break
        guessed.insert(0, i)
    if not guessed:
        problem = "no columns of behaviors (the last columns, with only 0 and 1); list them with "
        message = Message(problem, ReaderOption("behaviors"), " if there are any")
        return [], [Note(message, code="no-behaviors")]
    guessed_names = ", ".join(layout.header[i] for i in guessed)
    guess = f"the last columns with only 0 and 1 are read as behaviors: {guessed_names} (set them with "
    return guessed, [Note(Message(guess, ReaderOption("behaviors"), ")"), code="guessed-behaviors")]


def _is_binary(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "biuf" and bool(column.isin([0, 1]).where(column.notna(), True).all()) and bool(column.notna().any())


def _annotation(layout: _Layout, labels: list[int], clock: FrameClock) -> tuple[Annotation, list[Note]]:
    table = per_frame.FrameTable(layout.path, layout.header, layout.load(labels), layout.first_row)
    names = [layout.header[i] for i in labels]
    values = np.stack([per_frame.binary(table, i) for i in labels], axis=1)
    frames = clock.spread(values, per_frame.UNOBSERVED)
    annotation, notes = per_frame.annotation_of(frames, named_ethogram(names), clock.rate)
    unobserved = (values == per_frame.UNOBSERVED).any(axis=1)
    if unobserved.any():
        location = table.location(int(np.argmax(unobserved)))
        message = f"{int(unobserved.sum())} frames have a missing label; the behavior is read as unobserved there"
        notes.append(Note(message, location, "missing-labels"))
    if layout.probabilities and all(name in layout.probabilities for name in names):
        probabilities = clock.spread(layout.numbers([layout.probabilities[name] for name in names]), 0)
        totals = np.concatenate((np.zeros((1, len(names))), np.cumsum(probabilities, axis=0)))
        confidence = (totals[annotation.stop, annotation.behavior] - totals[annotation.start, annotation.behavior]) / (
            annotation.stop - annotation.start
        )
        annotation = replace(annotation, confidence=confidence)
    return annotation, notes


def _features(layout: _Layout, columns: Sequence[int], clock: FrameClock) -> Signals:
    values = clock.spread(layout.numbers(columns), np.nan)
    return Signals(values, tuple(layout.header[i] for i in columns), clock.rate)


def _poses(layout: _Layout, clock: FrameClock) -> Poses:
    matches = {name: NUMBERED.fullmatch(name) for name in layout.body_parts}
    names_animals = all(matches.values())
    animal_and_keypoint = {name: (match[2], match[1]) if names_animals and match else ("", name) for name, match in matches.items()}
    numbers = list(dict.fromkeys(animal for animal, _ in animal_and_keypoint.values()))
    keypoints = list(dict.fromkeys(keypoint for _, keypoint in animal_and_keypoint.values()))
    columns = [layout.header.index(f"{body_part}_{axis}") for body_part in layout.body_parts for axis in AXES]
    values = clock.spread(layout.numbers(columns), np.nan).reshape(-1, len(layout.body_parts), 3)
    shape = (len(values), len(numbers), len(keypoints))
    positions, confidence = np.full((*shape, 2), np.nan), np.full(shape, np.nan)
    for n, (animal, keypoint) in enumerate(animal_and_keypoint.values()):
        i, k = numbers.index(animal), keypoints.index(keypoint)
        positions[:, i, k], confidence[:, i, k] = values[:, n, :2], values[:, n, 2]
    individuals = tuple(f"animal_{number}" for number in numbers) if names_animals else ("animal",)
    return Poses(positions, confidence, individuals, tuple(keypoints), clock.rate)
