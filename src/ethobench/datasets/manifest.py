"""Your own data: a folder with ``recordings.csv``, and optionally ``ethogram.csv`` and ``keypoints.csv``."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from ethobench.core import Annotation, Behavior, ClockOrigin, Dataset, Ethogram, Keypoint, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, Note, ReadWarning
from ethobench.core.ethogram import check_renames
from ethobench.core.recording import DEFAULT_ANNOTATOR, match_length
from ethobench.datasets.signals import open_signals, stated_rate
from ethobench.datasets.video_clock import VideoClock, fit_to_video, read_video_clock
from ethobench.formats import detect, read_at_rate
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.formats.tables import Table, read_table
from ethobench.formats.text import parse_number

MANIFEST = "recordings.csv"
ETHOGRAM = "ethogram.csv"
KEYPOINTS = "keypoints.csv"
CORRECTIONS = "corrections"
COLUMNS = ("recording", "individual", "rate", "signals", "annotations", "annotator", "channel", "video", "subject", "split", "fold")
NUMBERS = ("width", "height", "pixels_per_cm")
TRUE = {"yes", "y", "true", "1", "x"}


@dataclass
class _Row:
    """One line of the manifest; paths are relative to `root`."""

    place: str
    root: Path
    cells: dict[str, str]
    rate: float | None = None
    fold: int | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    is_correction: bool = False

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "")

    def path(self, name: str) -> Path | None:
        """Return the path in a cell; Windows separators work everywhere."""
        return self.root / self[name].replace("\\", "/") if self[name] else None


class _Problems:
    """All that is wrong with a manifest, to be told at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[str] = []

    def add(self, place: str, message: object) -> None:
        self.found.append(f"{place}: {message}")

    def raise_if_any(self) -> None:
        if self.found:
            count = f"{len(self.found)} problems" if len(self.found) > 1 else "a problem"
            raise EthobenchError(f"{self.path} has {count}:\n  " + "\n  ".join(self.found))


def load_manifest(path: Path, *, rename: Mapping[str, str] | None = None, check_rename: bool = True) -> Dataset:
    """Load the recordings that a ``recordings.csv`` lists; everything wrong with it is told at once.

    Corrections that the viewer saved beside it are merged as further annotators; one that cannot be used is left out with a warning or
    a note. Behaviors are renamed as `rename` says and as the column ``alias`` of ``ethogram.csv`` says; with `check_rename`, an old
    name in `rename` that no annotation has is an error.
    """
    if not path.is_file():
        raise FormatError(path, "there is no such file")
    problems = _Problems(path)
    rows = _read_rows(path, problems)
    corrected = path.parent / CORRECTIONS / path.name
    if corrected.is_file():
        rows += _read_corrections(corrected)
    problems.raise_if_any()
    ethogram, aliases = _read_ethogram(path.parent / ETHOGRAM, {row["channel"] for row in rows})
    grouped: dict[str, list[_Row]] = {}
    for row in rows:
        grouped.setdefault(row["recording"], []).append(row)
    recordings = [r for name, group in grouped.items() if (r := _recording(name, group, problems)) is not None]
    if rename and check_rename:
        check_renames(rename, [ethogram or Ethogram([]), *(a.ethogram for r in recordings for a in r.annotations.values())])
    recordings = _rename(recordings, aliases, rename or {})
    if ethogram is None:
        ethogram = _joined(recordings)
    elif rename:
        ethogram = ethogram.rename({old: new for old, new in rename.items() if old in ethogram})
    for recording in recordings:
        _fit_ethogram(recording, ethogram, grouped[recording.id], problems)
    problems.raise_if_any()
    _tell(path, recordings)
    fold_of = {name: _first(group, "fold").fold for name, group in grouped.items()}
    split_of = {name: _first(group, "split")["split"] for name, group in grouped.items()}
    return Dataset(
        recordings=tuple(recordings),
        ethogram=ethogram,
        name=path.parent.resolve().name,
        folds={name: fold for name, fold in fold_of.items() if fold is not None},
        splits={name: split for name, split in split_of.items() if split},
        source=str(path),
        version=_version(path, rows, recordings),
        keypoints=_read_keypoints(path.parent / KEYPOINTS),
    )


def _read_rows(path: Path, problems: _Problems) -> list[_Row]:
    table = _lower(read_table(path))
    twice = sorted({name for name in table.header if name and table.header.count(name) > 1})
    if twice:
        raise FormatError(path, f"these columns stand twice: {', '.join(twice)}", "header")
    for name in table.header:
        near = get_close_matches(name, (*COLUMNS, *NUMBERS), n=1, cutoff=0.8)
        if near and name not in (*COLUMNS, *NUMBERS):
            warnings.warn(f"{path}: column {name!r} is kept as metadata; did you mean {near[0]!r}?", ReadWarning, stacklevel=5)
    if "recording" not in table:
        raise FormatError(path, f"no column 'recording'; a manifest has: {', '.join(COLUMNS)}", "header")
    rows = []
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        row = _Row(f"row {line}", path.parent, {k: v.strip() for k, v in zip(table.header, cells, strict=True)})
        _check(row, problems)
        rows.append(row)
    if not rows:
        problems.add("header", "no recordings are listed")
    return rows


def _read_corrections(path: Path) -> list[_Row]:
    """Read the manifest of corrections; what cannot be used is left out with a warning, so that it does not keep the rest from opening."""
    try:
        rows = _read_rows(path, _Problems(path))
    except (EthobenchError, OSError) as error:
        warnings.warn(f"the corrections are left out: {error}", ReadWarning, stacklevel=4)
        return []
    usable = []
    for row in rows:
        row.is_correction, row.place = True, f"{CORRECTIONS}, {row.place}"
        problems = _Problems(path)
        _check(row, problems)
        for problem in problems.found:
            warnings.warn(f"{path}: a correction is left out: {problem}", ReadWarning, stacklevel=4)
        if not problems.found:
            usable.append(row)
    return usable


def _check(row: _Row, problems: _Problems) -> None:
    if not row["recording"]:
        problems.add(row.place, "no name in column 'recording'")
    for name, least in (("rate", 1e-9), ("fold", 0), *((n, 1e-9) for n in NUMBERS)):
        if row[name]:
            try:
                if re.fullmatch(r"\d{1,3}(,\d{3})+", row[name]):
                    raise ValueError
                value = parse_number(row[name].replace(",", "."))
                if not least <= value < float("inf") or (name == "fold" and value != int(value)):
                    raise ValueError
            except ValueError:
                problems.add(row.place, f"{name} is {row[name]!r}, which is not a {'positive ' if least else 'whole '}number")
                continue
            if name == "rate":
                row.rate = value
            elif name == "fold":
                row.fold = int(value)
            else:
                row.numbers[name] = value
    for name in ("signals", "annotations", "video"):
        path = row.path(name)
        if path is not None and not path.exists():
            problems.add(row.place, f"{name}: there is no {row[name]}")


def _recording(name: str, rows: list[_Row], problems: _Problems) -> Recording | None:
    """Read all that the rows say of one recording; a correction that cannot be used is left out with a note."""
    said = {column: _first(rows, column) for column in (*COLUMNS, *NUMBERS)}
    for row in rows:
        if row.is_correction:
            continue
        for column in ("individual", "signals", "rate", "split", "fold", "video"):
            if row[column] and row[column] != said[column][column]:
                first = said[column]
                problems.add(row.place, f"{column} of {name!r} is {row[column]!r} here, but {first[column]!r} in {first.place}")
    notes: list[Note] = []
    length, load = None, None
    rate, signals = said["rate"].rate, said["signals"].path("signals")
    try:
        if signals is not None and signals.exists():
            length, load, notes = open_signals(signals, name, rate)
    except EthobenchError as error:
        problems.add(said["signals"].place, error)
        return None
    clock, unread = _video_clock(said["video"]) if load is None else (None, [])
    notes += unread
    annotations: dict[str, Annotation] = {}
    origins: list[ClockOrigin] = []
    for row in rows:
        try:
            if row.is_correction:
                _check_correction(row, said)
            if (path := row.path("annotations")) is not None and path.exists():
                annotator, annotation, origin, more = _annotation(row, path, rate, length, clock)
                _add_annotation(annotations, annotator, annotation, more, notes, name)
                origins.append(origin)
        except EthobenchError as error:
            if row.is_correction:
                notes.append(Note(f"this correction is left out: {error}", row.place))
                continue
            problems.add(row.place, error)
            return None
    extra = {k: v for row in reversed(rows) for k, v in row.cells.items() if k not in (*COLUMNS, *NUMBERS) and v}
    numbers = {column: said[column].numbers[column] for column in NUMBERS if column in said[column].numbers}
    if rate is None and signals is not None and load is not None and not annotations:
        rate, more = _rate_of_signals(signals, name, length, said["video"])
        notes += more
    if clock is not None:
        rate = rate or next((a.rate for a in annotations.values()), clock.rate)
        length = max([clock.frames_at(rate), *(a.n_frames for a in annotations.values() if a.rate == rate)])
        notes += clock.note_on_rate(rate)
    return Recording(
        name,
        individual=said["individual"]["individual"],
        rate=rate,
        n_frames=length,
        signals=load,
        annotations=annotations,
        subjects=tuple(dict.fromkeys(s for a in annotations.values() for s in a.subjects)),
        video=said["video"].path("video"),
        metadata={**numbers, **extra},
        notes=tuple(notes),
        clock_origin=ClockOrigin.GIVEN if said["rate"].rate is not None else next(iter(origins), ClockOrigin.STATED),
    )


def _check_correction(row: _Row, stated: Mapping[str, _Row]) -> None:
    """Refuse a correction whose row contradicts what the dataset's own manifest says of the recording."""
    for column in ("individual", "signals", "rate", "split", "fold", "video"):
        if row[column] and row[column] != stated[column][column]:
            raise MismatchError(f"{column} is {row[column]!r} here, but {stated[column][column]!r} in {stated[column].place}")


def _first(rows: list[_Row], column: str) -> _Row:
    """Return the first row that says something in a column, or the first of all."""
    return next((row for row in rows if row[column]), rows[0])


def _video_clock(row: _Row) -> tuple[VideoClock | None, list[Note]]:
    path = row.path("video")
    return read_video_clock(path, row["video"]) if path is not None and path.exists() else (None, [])


def _rate_of_signals(signals: Path, recording: str, length: int | None, row: _Row) -> tuple[float | None, list[Note]]:
    """Return the rate that the signals state, else that of a video of the same length."""
    if (rate := stated_rate(signals, recording)) is not None:
        return rate, []
    clock, notes = _video_clock(row)
    if clock is None or not clock.is_as_long_as(length):
        return None, notes
    return clock.rate, [Note(f"no frame rate is stated; using {clock.rate:g} Hz, the rate of {clock.name}", signals.name)]


def _annotation(
    row: _Row, path: Path, rate: float | None, length: int | None, clock: VideoClock | None
) -> tuple[str, Annotation, ClockOrigin, list[Note]]:
    """Read one row's annotation and fit it to the length of the signals, or of the video where there are no signals."""
    reader = detect(path)
    found = [r for r in read_at_rate(path, rate, reader.name, entry=row["channel"] or None) if r.annotations]
    if rate is None and clock is not None and any(r.clock_origin is ClockOrigin.ASSUMED for r in found):
        found = [r for r in read_at_rate(path, clock.rate, reader.name, entry=row["channel"] or None) if r.annotations]
        found = [r.copy(clock_origin=ClockOrigin.STATED) for r in found]  # by the video
    if len(found) > 1:
        found = [r for r in found if r.id == row["recording"]] or found
    if len(found) != 1:
        there = ", ".join(reader.entries(path))
        raise FormatError(
            path, f"holds {len(found)} annotations; name one in column 'channel': {there}" if found else "holds no annotation"
        )
    inside = found[0].annotations
    annotator = row["annotator"] or (next(iter(inside)) if len(inside) == 1 else "")
    annotation = inside[annotator] if annotator in inside else found[0].annotation()
    notes = [Note(note.message, f"{row['annotations']}{', ' + note.location if note.location else ''}") for note in found[0].notes]
    if rate is not None and annotation.rate != rate:
        raise FormatError(path, f"its clock runs at {annotation.rate:g} Hz, the manifest says {rate:g} Hz")
    if length is not None:
        try:
            annotation, told = match_length(annotation, length)
        except MismatchError as error:
            raise FormatError(path, str(error)) from None
        notes += [Note(told, row["annotations"])] if told else []
    elif clock is not None:
        annotation, more = fit_to_video(annotation, clock, row["annotations"])
        notes += more
    if row["subject"] and not annotation.subjects:
        annotation = annotation.with_subject(row["subject"])
    return annotator or DEFAULT_ANNOTATOR, annotation, found[0].clock_origin, notes


def _add_annotation(
    annotations: dict[str, Annotation], annotator: str, annotation: Annotation, more: Iterable[Note], notes: list[Note], name: str
) -> None:
    notes += more
    if annotator not in annotations:
        annotations[annotator] = annotation
        return
    there = annotations[annotator]
    if {*there.subjects} & {*annotation.subjects} or not (there.subjects and annotation.subjects):
        raise EthobenchError(f"annotator {annotator!r} of {name!r} stands twice; name annotators or subjects apart")
    annotations[annotator] = there.overlay(annotation)


def _rename(recordings: Iterable[Recording], aliases: Mapping[str, str], rename: Mapping[str, str]) -> list[Recording]:
    """Rename behaviors in all annotations, aliases first."""
    changed = []
    for recording in recordings:
        used = {name for a in recording.annotations.values() for name in a.ethogram.names if name in aliases}
        notes = [Note(f"{alias!r} is read as {aliases[alias]!r} ({ETHOGRAM}, column alias)") for alias in sorted(used)]
        annotations = {who: a.rename_existing(aliases).rename_existing(rename) for who, a in recording.annotations.items()}
        changed.append(recording.copy(annotations=annotations, notes=(*recording.notes, *notes)))
    return changed


def _read_ethogram(path: Path, channels: set[str]) -> tuple[Ethogram | None, dict[str, str]]:
    """Read ``ethogram.csv`` and its aliases; behaviors of channels that no recording uses are left out.

    A behavior may have several aliases, separated by semicolons or in several rows; all but its first row need only these two cells.
    """
    if not path.is_file():
        return None, {}
    table = _lower(read_table(path))
    if "behavior" not in table:
        raise FormatError(path, "no column 'behavior'", "header")
    behaviors: dict[str, Behavior] = {}
    aliases: dict[str, str] = {}
    background = None
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        row = dict(zip(table.header, (c.strip() for c in cells), strict=True))
        if row.get("channel") and row["channel"] not in channels:
            continue
        for alias in filter(None, (text.strip() for text in row.get("alias", "").split(";"))):
            if aliases.setdefault(alias, row["behavior"]) != row["behavior"]:
                raise FormatError(path, f"alias {alias!r} stands for both {aliases[alias]!r} and {row['behavior']!r}", f"row {line}")
        if row["behavior"] in behaviors and row.get("alias"):
            continue
        if row["behavior"] in behaviors:
            raise FormatError(path, f"behavior {row['behavior']!r} is listed twice", f"row {line}")
        point = row.get("point", "").lower() in TRUE
        listed = Behavior(row["behavior"], row.get("definition", ""), point, row.get("key", ""), row.get("channel", ""))
        behaviors[listed.name] = listed
        if row.get("background", "").lower() in TRUE:
            if background is not None:
                raise FormatError(path, f"two behaviors are background: {background!r} and {row['behavior']!r}")
            background = row["behavior"]
    for alias, name in aliases.items():
        if alias in behaviors:
            raise FormatError(path, f"{alias!r} is both a behavior and an alias of {name!r}")
    return Ethogram(behaviors.values(), background), aliases


def _read_keypoints(path: Path) -> dict[str, Keypoint]:
    if not path.is_file():
        return {}
    table = _lower(read_table(path))
    if "keypoint" not in table:
        raise FormatError(path, "no column 'keypoint'", "header")
    rows = [dict(zip(table.header, (c.strip() for c in cells), strict=True)) for cells in table.rows]
    return {row["keypoint"]: Keypoint(row["keypoint"], row.get("role", ""), row.get("mirror", "")) for row in rows}


def _lower(table: Table) -> Table:
    table.header = [name.strip().lower() for name in table.header]
    return table


def _joined(recordings: Iterable[Recording]) -> Ethogram:
    ethogram = Ethogram([])
    for recording in recordings:
        for annotation in recording.annotations.values():
            ethogram = ethogram.join(annotation.ethogram)
    return ethogram


def _fit_ethogram(recording: Recording, ethogram: Ethogram, rows: Sequence[_Row], problems: _Problems) -> None:
    """Express a recording's annotations in the dataset's ethogram."""
    fitted = {}
    corrections = {row["annotator"] for row in rows if row.is_correction} - {row["annotator"] for row in rows if not row.is_correction}
    for annotator, annotation in recording.annotations.items():
        try:
            fitted[annotator] = annotation.with_ethogram(ethogram)
        except EthobenchError as error:
            if annotator in corrections:
                note = Note(f"the correction by {annotator!r} is left out: {error}; add it to {ETHOGRAM}")
                recording.notes = (*recording.notes, note)
            else:
                problems.add(rows[0].place, f"{recording.id!r}: {error}; add it to {ETHOGRAM}")
    recording.annotations = fitted


def _tell(path: Path, recordings: Iterable[Recording]) -> None:
    """Warn once of all repairs; the recordings' notes have each."""
    noted = [r for r in recordings if r.notes]
    if noted:
        first = noted[0]
        message = f"{path}: {len(noted)} recordings were read with notes, e.g. {first.id!r}: {first.notes[0]} (see Recording.notes)"
        warnings.warn(message, ReadWarning, stacklevel=4)


def _version(path: Path, rows: list[_Row], recordings: Iterable[Recording]) -> str:
    """Hash the content of every file that the manifest names; of videos, which are large, only rate and length."""
    digest = hashlib.blake2b(digest_size=8)
    named = {p for row in rows for name in ("signals", "annotations") if (p := row.path(name)) is not None and p.is_file()}
    for file in [path, path.parent / ETHOGRAM, path.parent / KEYPOINTS, *sorted(named)]:
        if file.is_file():
            digest.update(content_hash(file, cache_folder() / "arrays").encode())
    measured = {row["recording"] for row in rows if row["signals"]}
    for recording in recordings:
        if recording.video is not None and recording.id not in measured:
            digest.update(f"{recording.id} {recording.rate} {recording.n_frames}".encode())
    return digest.hexdigest()
