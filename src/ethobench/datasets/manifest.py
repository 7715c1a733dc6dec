"""A study of your own: a folder with ``recordings.csv``, and optionally ``ethogram.csv``, ``keypoints.csv`` and ``zones.csv``."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Dataset, Ethogram, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, Note, NotFoundError, ReadWarning
from ethobench.core.ethogram import check_renames, join_ethograms
from ethobench.core.observation_period import OBSERVED_TO
from ethobench.core.recording import DEFAULT_ANNOTATOR, align_start, match_length
from ethobench.datasets.frame_features import open_features
from ethobench.datasets.labeled_behaviors import StudyLists, select_observed
from ethobench.datasets.manifest_tables import (
    COLUMNS,
    CORRECTIONS,
    ETHOGRAM,
    KEYPOINTS,
    NUMBERS,
    ManifestRow,
    Problems,
    read_correction_rows,
    read_ethogram,
    read_keypoints,
    read_rows,
)
from ethobench.datasets.signals import OpenedSignals, open_signals
from ethobench.datasets.video_clock import VideoClock, fit_to_video, read_video_clock
from ethobench.datasets.zones import ZONES, Zone, check_recordings, read_zones, zones_of
from ethobench.formats import Format, detect, read_at_rate
from ethobench.formats.channel_units import note_different_units
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.formats.reader_options import check_options, entries_with, options_for

PER_RECORDING = ("individual", "signals", "rate", "split", "fold", "video", "video_offset", "features", "features_rate", *NUMBERS)
"""Columns that must agree in all rows of a recording."""


def load_manifest(path: Path, *, rename: Mapping[str, str] | None = None, check_rename: bool = True) -> Dataset:
    """Load the recordings listed in a ``recordings.csv``.

    Corrections that the viewer saved beside it are added as further annotators; a correction that cannot be used is skipped with a warning
    or a note. Aliases in ``ethogram.csv`` are renamed first.

    Parameters
    ----------
    path : Path
    rename : mapping of str to str, optional
        Behaviors to rename, old name to new name.
    check_rename : bool
        Whether an unknown old name is an error.

    Raises
    ------
    EthobenchError
        Lists all problems of the manifest at once.
    """
    problems = Problems(path)
    data = read_study(path, problems, rename=rename, check_rename=check_rename)
    problems.raise_if_any()
    _warn_of_notes(path, data)
    return data


def read_study(
    path: Path,
    problems: Problems,
    *,
    rename: Mapping[str, str] | None = None,
    check_rename: bool = True,
    keep_going: bool = False,
) -> Dataset:
    """Read the recordings listed in a manifest that have no problems; the others are described in `problems`.

    Parameters
    ----------
    path, rename, check_rename
        See `load_manifest`.
    problems : Problems
        Extended by all problems.
    keep_going : bool
        Whether to read the other recordings if some rows are wrong. By default, wrong rows are an error, and nothing else is read.
    """
    if not path.is_file():
        raise FormatError(path, f"no such file; `ethobench study make {path.parent}` drafts one from the files in a folder")
    rows = read_rows(path, problems)
    corrections = path.parent / CORRECTIONS / path.name
    if corrections.is_file():
        rows += read_correction_rows(corrections)
    if keep_going:
        wrong = {location for location, _ in problems.problems}
        wrong_recordings = {row["recording"] for row in rows if row.location in wrong}
        rows = [row for row in rows if row["recording"] not in wrong_recordings]
    else:
        problems.raise_if_any()
    ethogram, aliases = _read_ethogram(path.parent / ETHOGRAM, rows, problems, keep_going=keep_going)
    session, session_aliases = _read_session_ethogram(path.parent / CORRECTIONS / ETHOGRAM)
    aliases = {**{alias: session_aliases.get(name, name) for alias, name in aliases.items()}, **session_aliases}
    if ethogram is not None:
        ethogram = ethogram.rename({old: new for old, new in session_aliases.items() if old in ethogram}).join(session)
    rows_of: dict[str, list[ManifestRow]] = {}
    for row in rows:
        rows_of.setdefault(row["recording"], []).append(row)
    lists, files = StudyLists(problems.add), AnnotationFiles()
    recordings = [r for name, group in rows_of.items() if (r := _read_recording(name, group, problems, lists, files)) is not None]
    if rename and check_rename:
        check_renames(rename, [ethogram or Ethogram([]), *(a.ethogram for r in recordings for a in r.annotations.values())])
    recordings = _rename(recordings, aliases, rename or {})
    lists.rename(aliases, rename or {})
    recordings = _with_zones(recordings, path.parent, rows_of, problems, keep_going=keep_going)
    note_different_units(recordings)
    _note_missing_scale(recordings, rows)
    ethogram = _study_ethogram(ethogram, session, recordings, lists, rename or {})
    for recording in recordings:
        _use_ethogram(recording, ethogram, rows_of[recording.id], problems)
        lists.apply(recording, ethogram)
    fold_of = {name: _first(group, "fold").fold for name, group in rows_of.items()}
    split_of = {name: _first(group, "split")["split"] for name, group in rows_of.items()}
    return Dataset(
        recordings=tuple(recordings),
        ethogram=ethogram,
        name=path.parent.resolve().name,
        folds={name: fold for name, fold in fold_of.items() if fold is not None},
        splits={name: split for name, split in split_of.items() if split},
        source=str(path),
        version=_version(path, rows, recordings),
        keypoints=read_keypoints(path.parent / KEYPOINTS),
    )


def _read_ethogram(
    path: Path, rows: Iterable[ManifestRow], problems: Problems, *, keep_going: bool
) -> tuple[Ethogram | None, dict[str, str]]:
    try:
        return read_ethogram(path, {row["entry"] for row in rows})
    except FormatError as error:
        if not keep_going:
            raise
        problems.add(ETHOGRAM, f"{error.location}: {error.message}" if error.location else error.message)
        return None, {}


def _with_zones(
    recordings: list[Recording], folder: Path, rows_of: Mapping[str, list[ManifestRow]], problems: Problems, *, keep_going: bool
) -> list[Recording]:
    """Add the zones of each recording to its metadata: those of ``zones.csv``, and those that were drawn in the viewer."""
    zones: tuple[Zone, ...] = ()
    if (folder / ZONES).is_file():
        try:
            zones = read_zones(folder / ZONES)
            if any(row["signals"] for rows in rows_of.values() for row in rows):  # a folder of corrections may have zones of others
                check_recordings(zones, list(rows_of), folder / ZONES)
        except FormatError as error:
            if not keep_going:
                raise
            problems.add(ZONES, f"{error.location}: {error.message}" if error.location else error.message)
            return recordings
    zones += _read_drawn_zones(folder / CORRECTIONS / ZONES, zones)
    if not zones:
        return recordings
    with_zones = []
    errors: dict[tuple[Zone, ...], list[EthobenchError]] = {}  # recordings with the same zones have the same problem
    for recording in recordings:
        try:
            fields = [zone.to_dict() for zone in zones_of(recording, zones)]
        except EthobenchError as error:
            errors.setdefault(tuple(zone for zone in zones if zone.recording in ("", recording.id)), []).append(error)
            fields = []
        with_zones.append(recording.copy(metadata={**recording.metadata, "zones": fields}) if fields else recording)
    for same_errors in errors.values():
        problems.add(ZONES, f"{same_errors[0]}{f' ({len(same_errors)} recordings)' if len(same_errors) > 1 else ''}")
    return with_zones


def _read_drawn_zones(path: Path, zones: Sequence[Zone]) -> tuple[Zone, ...]:
    """Read the zones that were drawn in the viewer, without names of the user's own file; unreadable ones are skipped."""
    if not path.is_file():
        return ()
    try:
        drawn = read_zones(path)
    except (EthobenchError, OSError) as error:
        warnings.warn(f"the drawn zones are skipped: {error}", ReadWarning, stacklevel=5)
        return ()
    listed = {(zone.name, zone.recording) for zone in zones}
    return tuple(zone for zone in drawn if (zone.name, zone.recording) not in listed)


def _read_session_ethogram(path: Path) -> tuple[Ethogram, dict[str, str]]:
    """Read the ethogram that was edited in the viewer, if any; one that cannot be read is skipped with a warning."""
    try:
        ethogram, aliases = read_ethogram(path, {""})
    except (EthobenchError, OSError) as error:
        warnings.warn(f"the ethogram of the corrections is skipped: {error}", ReadWarning, stacklevel=4)
        return Ethogram([]), {}
    return ethogram or Ethogram([]), aliases


def _study_ethogram(
    ethogram: Ethogram | None, session: Ethogram, recordings: Sequence[Recording], lists: StudyLists, rename: Mapping[str, str]
) -> Ethogram:
    """Return the ethogram of the study; without ``ethogram.csv`` it has what the annotations and the lists of labeled behaviors have."""
    if ethogram is not None:
        return ethogram.rename({old: new for old, new in rename.items() if old in ethogram})
    if len(session):
        ethogram = session.join(_used_behaviors(recordings))
        ethogram = ethogram.rename({old: new for old, new in rename.items() if old in ethogram})
    else:
        ethogram = join_ethograms(a.ethogram for recording in recordings for a in recording.annotations.values())
    return lists.extend(ethogram, recordings)


def _used_behaviors(recordings: Iterable[Recording]) -> Ethogram:
    """Return the behaviors that occur in annotations."""
    annotations = [a for recording in recordings for a in recording.annotations.values()]
    return join_ethograms(a.ethogram.restrict(a.ethogram[int(code)].name for code in np.unique(a.behavior)) for a in annotations)


def _note_missing_scale(recordings: Iterable[Recording], rows: Sequence[ManifestRow]) -> None:
    """Note recordings without a scale, if the manifest has a column for it."""
    if any("pixels_per_cm" in row.cells for row in rows):
        for recording in recordings:
            if "pixels_per_cm" not in recording.metadata:
                note = Note("no scale: pixels_per_cm is blank, so distances are in pixels", code="no-scale")
                recording.notes = (*recording.notes, note)


def _read_recording(name: str, rows: list[ManifestRow], problems: Problems, lists: StudyLists, files: AnnotationFiles) -> Recording | None:
    """Read one recording from its rows; a correction that cannot be used is skipped with a note. Adds what was labeled to `lists`."""
    first = {column: _first(rows, column) for column in (*COLUMNS, *NUMBERS)}
    for row in rows:
        if not row.is_correction:
            for column in _contradictions(row, first):
                other = first[column]
                problems.add(row.location, f"{column} of {name!r} is {row[column]!r} here, but {other[column]!r} in {other.location}")
    rate, signals = first["rate"].rate, first["signals"].path("signals")
    notes: list[Note] = []
    try:
        opened = _open_data(name, rows, first, rate)
        length = None if opened is None else opened.n_frames
        notes += [] if opened is None else opened.notes
        clock, more_notes = _video_clock(first["video"]) if opened is None else (None, [])
        notes += more_notes
        annotations, origins, annotator_of = _read_annotations(rows, first, rate, opened, clock, notes, files)
    except _RowError as error:
        problems.add(error.row.location, error.reason)
        return None
    tracked = () if opened is None else opened.individuals
    by_row = [(row.location, annotator_of.get(i, row["annotator"] or DEFAULT_ANNOTATOR), row.labeled) for i, row in enumerate(rows)]
    notes += lists.add(name, by_row, tracked, annotations)
    if rate is None and signals is not None and opened is not None and not annotations:
        rate, more_notes = _rate_of_signals(signals, opened, first)
        notes += more_notes
    if clock is not None:
        rate = rate or next((a.rate for a in annotations.values()), clock.rate)
        length = max([clock.frames_at(rate), *(a.n_frames for a in annotations.values() if a.rate == rate)])
        notes += clock.note_on_rate(rate)
    try:
        opened, features, more_notes = _add_features(first, rate, opened, length)
    except _RowError as error:
        problems.add(error.row.location, error.reason)
        return None
    notes += more_notes
    numbers = {column: first[column].numbers[column] for column in NUMBERS if column in first[column].numbers}
    stated_end = first[OBSERVED_TO].observed_to
    numbers |= {} if stated_end is None else {OBSERVED_TO: stated_end}
    other_cells = {k: v for row in reversed(rows) for k, v in row.cells.items() if k not in (*COLUMNS, *NUMBERS) and v}
    return Recording(
        name,
        individual=first["individual"]["individual"],
        rate=rate,
        n_frames=length,
        signals=None if opened is None else opened.load,
        features=features,
        annotations=annotations,
        subjects=tuple(dict.fromkeys(s for a in annotations.values() for s in a.subjects)),
        video=first["video"].path("video"),
        cameras=first["video"].cameras(),
        start_time=None if opened is None else opened.start_time,
        metadata={**({"units": dict(opened.units)} if opened is not None and opened.units else {}), **numbers, **other_cells},
        notes=tuple(notes),
        clock_origin=ClockOrigin.GIVEN if first["rate"].rate is not None else next(iter(origins), ClockOrigin.STATED),
    )


def _open_data(name: str, rows: Iterable[ManifestRow], first: Mapping[str, ManifestRow], rate: float | None) -> OpenedSignals | None:
    """Open the signals of a recording. Without signals and video, its features are its signals."""
    for row in rows:
        try:
            _check_reader_options(row)
        except EthobenchError as error:
            raise _RowError(row, f"options: {error}") from None
    signals = first["signals"].path("signals")
    if signals is None and first["features"]["features"] and not first["video"]["video"]:
        return _as_signals(*_open_features(first, rate, None))
    try:
        if signals is not None and signals.exists():
            return open_signals(signals, name, rate, entry=first["entry"]["entry"], options=first["signals"].options)
    except EthobenchError as error:
        raise _RowError(first["signals"], error) from None
    return None


def _add_features(
    first: Mapping[str, ManifestRow], rate: float | None, opened: OpenedSignals | None, length: int | None
) -> tuple[OpenedSignals | None, Signals | None, list[Note]]:
    """Return the signals of a recording and its features; the features as signals if a video is all that it has."""
    if not first["features"]["features"] or (opened is not None and not first["signals"]["signals"]):
        return opened, None, []
    features, notes = _open_features(first, rate or (None if opened is None else opened.rate), length)
    return (_as_signals(features, []), None, notes) if opened is None else (opened, features, notes)


def _open_features(first: Mapping[str, ManifestRow], rate: float | None, n_frames: int | None) -> tuple[Signals, list[Note]]:
    try:
        return open_features(first["features"].paths("features"), rate, n_frames, first["features_rate"].features_rate)
    except (EthobenchError, OSError) as error:
        raise _RowError(first["features"], error) from None


def _as_signals(features: Signals, notes: list[Note]) -> OpenedSignals:
    return OpenedSignals(len(features), lambda: features, notes, features.rate, None, {})


def _check_reader_options(row: ManifestRow) -> None:
    """Raise an error if neither the signals nor the annotations of a row have an option that it states."""
    if row.options:
        paths = [path for column in ("signals", "annotations") if (path := row.path(column)) is not None and path.exists()]
        check_options([detect(path) for path in paths], row.options)


def _first(rows: list[ManifestRow], column: str) -> ManifestRow:
    """Return the first row with a value in a column, or the first of all."""
    return next((row for row in rows if row[column]), rows[0])


def _contradictions(row: ManifestRow, first: Mapping[str, ManifestRow]) -> list[str]:
    """Return the columns in which a row differs from the first row of its recording."""
    return [column for column in PER_RECORDING if row[column] and row[column] != first[column][column]]


def _video_clock(row: ManifestRow) -> tuple[VideoClock | None, list[Note]]:
    path = row.path("video")
    return read_video_clock(path, row["video"]) if path is not None and path.exists() else (None, [])


def _rate_of_signals(signals: Path, opened: OpenedSignals, first: Mapping[str, ManifestRow]) -> tuple[float | None, list[Note]]:
    """Return the rate that the signals state, else that of a video of the same length."""
    if opened.rate is not None:
        return opened.rate, []
    clock, notes = _video_clock(first["video"])
    if clock is None or not clock.is_as_long_as(opened.n_frames):
        return None, notes
    return clock.rate, [Note(f"no frame rate; using {clock.rate:g} Hz, the rate of {clock.name}", signals.name, "matched-rate")]


class _RowError(Exception):
    """A row whose annotation cannot be used."""

    def __init__(self, row: ManifestRow, reason: object) -> None:
        super().__init__(row, reason)
        self.row, self.reason = row, reason


def _read_annotations(
    rows: Iterable[ManifestRow],
    first: Mapping[str, ManifestRow],
    rate: float | None,
    opened: OpenedSignals | None,
    clock: VideoClock | None,
    notes: list[Note],
    files: AnnotationFiles,
) -> tuple[dict[str, Annotation], list[ClockOrigin], dict[int, str]]:
    """Read the annotations of a recording, by annotator, and the annotator of each row by index; notes are appended to `notes`."""
    annotations: dict[str, Annotation] = {}
    origins: list[ClockOrigin] = []
    annotator_of: dict[int, str] = {}
    for index, row in enumerate(rows):
        try:
            if row.is_correction:
                for column in _contradictions(row, first):
                    other = first[column]
                    raise MismatchError(f"{column} is {row[column]!r} here, but {other[column]!r} in {other.location}")
            path = row.path("annotations")
            if path is not None and path.exists():
                annotator, annotation, origin, more_notes = _read_annotation(row, path, rate, opened, clock, files)
                notes += more_notes
                annotations[annotator] = _combined(annotations.get(annotator), annotation, annotator, row["recording"])
                origins.append(origin)
                annotator_of[index] = annotator
        except EthobenchError as error:
            if not row.is_correction:
                raise _RowError(row, error) from None
            notes.append(Note(f"this correction is skipped: {error}", row.location, "skipped-correction"))
    return annotations, origins, annotator_of


def _read_annotation(
    row: ManifestRow,
    path: Path,
    rate: float | None,
    opened: OpenedSignals | None,
    clock: VideoClock | None,
    files: AnnotationFiles,
) -> tuple[str, Annotation, ClockOrigin, list[Note]]:
    """Read the annotation of one row and fit it to start and length of the signals, or to the video if there are no signals."""
    recording = _find_recording(row, path, rate, clock.rate if clock is not None else None if opened is None else opened.rate, files)
    annotator = row["annotator"] or (next(iter(recording.annotations)) if len(recording.annotations) == 1 else "")
    annotation = recording.annotations[annotator] if annotator in recording.annotations else recording.annotation()
    file = row["annotations"]
    new_notes = [note for note in recording.notes if opened is None or note not in opened.notes]  # one file may have signals and labels
    notes = [Note(note.message, f"{file}{', ' + note.location if note.location else ''}", note.code) for note in new_notes]
    if rate is not None and annotation.rate != rate:
        raise FormatError(path, f"the file has {annotation.rate:g} Hz, the column rate {rate:g} Hz; correct the wrong one")
    annotation, more_notes = _select_subject(row, annotation, recording, opened)
    notes += more_notes
    if opened is not None:
        try:
            if opened.start_time is not None and recording.start_time is not None:
                annotation, change = align_start(annotation, recording.start_time, opened.start_time, opened.n_frames)
                notes += [Note(change, file, "aligned")] if change else []
            annotation, change = _fit_to_signals(annotation, opened.n_frames, row.observed_to)
        except MismatchError as error:
            slower = "; features with fewer rows than frames need column 'features_rate' (rows per second)"
            is_features = row["features"] and not row["signals"] and not row["features_rate"]
            raise FormatError(path, f"{error}{slower if is_features else ''}") from None
        notes += [Note(change, file, "length")] if change else []
    elif clock is not None:
        annotation, more_notes = fit_to_video(annotation, clock, file)
        notes += more_notes
    annotation = select_observed(annotation, row.observed_from, row.observed_to)
    return annotator or DEFAULT_ANNOTATOR, annotation, recording.clock_origin, notes


def _fit_to_signals(annotation: Annotation, n_frames: int, observed_to: float | None) -> tuple[Annotation, str]:
    """Crop or extend an annotation to the length of the signals; return what was changed.

    A table of bouts states no length, so it ends with its last bout although someone may have watched longer: the frames from there to
    the time `observed_to` are observed if the row states it.
    """
    end, is_complete = annotation.n_frames, annotation.observed.is_complete(annotation.n_frames)
    fitted, change = match_length(annotation, n_frames)
    n_labeled = iv.total(iv.union(iv.Intervals(annotation.start, annotation.stop)))
    if end >= n_frames or not (is_complete and len(annotation) and int(annotation.stop.max()) == end and n_labeled < end):
        return fitted, change
    if observed_to is None:
        return fitted, f"{change}; if they were watched, state the end in column 'observed_to'"
    watched = iv.intervals([end], [max(end, min(n_frames, round(observed_to * annotation.rate)))])
    return fitted.with_observed(fitted.observed.apply(lambda frames: iv.union_all([frames, watched]))), ""


def _select_subject(
    row: ManifestRow, annotation: Annotation, recording: Recording, opened: OpenedSignals | None
) -> tuple[Annotation, list[Note]]:
    """Name the subject of an annotation, or select one of its subjects: the stated one, or the animal that wore the tag."""
    stated, subjects = row["subject"], annotation.subjects
    if not subjects:
        return (annotation.with_subject(stated) if stated else annotation), []
    is_tag = opened is not None and not opened.individuals
    if not stated and not (is_tag and len(subjects) > 1):
        return annotation, []
    names = (stated,) if stated else (row["recording"], row["individual"])
    subject = next((name for name in names if name in subjects), None)
    if subject is None:
        listed = ", ".join(map(repr, subjects))
        if stated:
            raise NotFoundError(f"{row['annotations']} has no bout of subject {stated!r}; subjects: {listed}")
        raise MismatchError(
            f"{row['annotations']} has bouts of {len(subjects)} subjects ({listed}), but the signals are of one animal; "
            "name it in column 'subject'"
        )
    selected = annotation.select_subject(subject)
    if recording.start_time is not None and len(selected):  # the length of a table with dates is that of all its bouts, of any animal
        span = iv.intervals([int(selected.start.min())], [int(selected.stop.max())])
        selected = selected.with_observed(selected.observed.apply(lambda frames: iv.intersection(frames, span)))
    note = Note(f"only the bouts of subject {subject!r} are used, of {len(subjects)} subjects", row["annotations"], "subject")
    return selected, [] if stated else [note]


class AnnotationFiles:
    """Reads files with annotations; the last file is kept, so that rows of several annotators read it once."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._recordings: list[Recording] = []

    def read(self, path: Path, rate: float | None, reader: Format, entry: str | None, options: Mapping[str, Any]) -> list[Recording]:
        """Return the recordings of a file that have annotations."""
        key = (path, rate, reader.name, entry, repr(sorted(options.items())))
        if key != self._key:
            self._recordings = [r for r in read_at_rate(path, rate, reader.name, entry=entry, **options) if r.annotations]
            self._key = key
        return list(self._recordings)


def _find_recording(row: ManifestRow, path: Path, rate: float | None, other_rate: float | None, files: AnnotationFiles) -> Recording:
    """Return the recording of a file that a row is about; a file without a frame rate is read at that of the video or the signals."""
    reader = detect(path)
    entry = row["entry"] or None
    options = options_for(reader, row.options)
    recordings = files.read(path, rate, reader, entry, options)
    if rate is None and other_rate is not None and any(r.clock_origin is ClockOrigin.ASSUMED for r in recordings):
        recordings = files.read(path, other_rate, reader, entry, options)
        recordings = [r.copy(clock_origin=ClockOrigin.STATED) for r in recordings]  # by the video or the signals
    if len(recordings) > 1:
        recordings = [r for r in recordings if r.id == row["recording"]] or recordings
    if not recordings:
        raise FormatError(path, "the file has no annotation")
    if len(recordings) > 1:
        entries = ", ".join(entries_with(reader, path, options))
        raise FormatError(path, f"the file has {len(recordings)} annotations; name one in column 'entry': {entries}")
    return recordings[0]


def _combined(existing: Annotation | None, annotation: Annotation, annotator: str, recording: str) -> Annotation:
    """Combine annotations of one annotator in several files, which must be about different subjects."""
    if existing is None:
        return annotation
    if {*existing.subjects} & {*annotation.subjects} or not (existing.subjects and annotation.subjects):
        raise EthobenchError(f"duplicate annotator {annotator!r} of {recording!r}; give each row another annotator or subject")
    return existing.overlay(annotation)


def _rename(recordings: Iterable[Recording], aliases: Mapping[str, str], rename: Mapping[str, str]) -> list[Recording]:
    """Rename behaviors in all annotations, aliases first."""
    renamed = []
    for recording in recordings:
        used = {name for a in recording.annotations.values() for name in a.ethogram.names if name in aliases}
        notes = [Note(f"{alias!r} is read as {aliases[alias]!r} ({ETHOGRAM}, column alias)", code="alias") for alias in sorted(used)]
        annotations = {annotator: a.rename_existing(aliases).rename_existing(rename) for annotator, a in recording.annotations.items()}
        renamed.append(recording.copy(annotations=annotations, notes=(*recording.notes, *notes)))
    return renamed


def _use_ethogram(recording: Recording, ethogram: Ethogram, rows: Sequence[ManifestRow], problems: Problems) -> None:
    """Express a recording's annotations in the ethogram of the dataset."""
    annotations = {}
    corrections = {row["annotator"] for row in rows if row.is_correction} - {row["annotator"] for row in rows if not row.is_correction}
    for annotator, annotation in recording.annotations.items():
        try:
            annotations[annotator] = annotation.with_ethogram(ethogram)
        except EthobenchError as error:
            if annotator in corrections:
                message = f"the correction by {annotator!r} is skipped: {error}; add it to {ETHOGRAM}"
                recording.notes = (*recording.notes, Note(message, code="skipped-correction"))
            else:
                problems.add(rows[0].location, f"{recording.id!r}: {error}; add it to {ETHOGRAM}")
    recording.annotations = annotations


def _warn_of_notes(path: Path, recordings: Iterable[Recording]) -> None:
    """Issue one warning for all notes; each is in `Recording.notes`."""
    noted = [r for r in recordings if r.notes]
    if noted:
        first = noted[0]
        message = f"{path}: {len(noted)} recordings were read with notes, e.g. {first.id!r}: {first.notes[0]} (see Recording.notes)"
        warnings.warn(message, ReadWarning, stacklevel=4)


def _version(path: Path, rows: list[ManifestRow], recordings: Iterable[Recording]) -> str:
    """Hash the content of every file that the manifest names; of videos, which are large, only rate and length."""
    digest = hashlib.blake2b(digest_size=8)
    files = {p for row in rows for column in ("signals", "annotations", "features") for p in row.paths(column) if p.is_file()}
    tables = [path, path.parent / ETHOGRAM, path.parent / KEYPOINTS, path.parent / ZONES]
    tables += [path.parent / CORRECTIONS / name for name in (ETHOGRAM, ZONES)]
    for file in [*tables, *sorted(files)]:
        if file.is_file():
            digest.update(content_hash(file, cache_folder() / "arrays").encode())
    with_signals = {row["recording"] for row in rows if row["signals"]}
    for recording in recordings:
        if recording.video is not None and recording.id not in with_signals:
            digest.update(f"{recording.id} {recording.rate} {recording.n_frames}".encode())
    return digest.hexdigest()
