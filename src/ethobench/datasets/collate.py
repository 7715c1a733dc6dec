"""Collate loose files: find out which files belong to the same recording, on which clock, and how long it is.

`score`, `agreement`, `budget` and `view` take files and folders without a manifest. All of them follow the rules below.

Matching
--------
1. **Name.** Files and entries (observations of a BORIS project, rows of a table) of the same name are one recording. A file that has, or
   could have, several recordings is matched by the names inside; any other by its file name. In a folder whose subfolders have files
   of the same names, lengths decide whether a subfolder is a recording or an annotator.
2. **Media file.** Observations that name the same media file are one recording, and so is the video file of that name.
3. **Affix.** ``m1_anna`` and ``m1_ben`` belong to ``m1`` if there is an ``m1``; ``DLC1_brett`` in one folder and ``DLC1_donnie`` in another
   are one recording if all names in each folder have the same affix. A number is not an affix: ``m1_2`` is another recording than ``m1``.
4. **Common core.** ``2024-05-01_m3_topcam_anna`` and ``m3_topcam`` are one recording if no other name has their common core, and numbers
   agree (`ethobench.datasets.name_core`).
5. **Only recording.** Files with one recording each are the same recording if at most one is a video and at most one has poses or
   signals, their lengths agree, they do not name different media files, and their names differ in more than a number.
   ``agreement anna.csv ben.csv`` and ``score model.csv human.csv`` state that the two are the same recording.

Names that belong together although no rule matches them are stated in a table with the columns ``left`` and ``right`` (`match`, or
``--match FILE.csv``): file names, paths, entries or recordings. What the table names is matched by it alone.

Every match by a rule other than the first is reported in a note, and `Collation.matches` lists all files with the rule that applied.

Clocks and lengths
------------------
A file that states no frame rate (`ClockOrigin.ASSUMED`) is read at the rate of the files it is matched with. An annotation that ends
with its last bout, as in files that state no length, is as long as the recording. Other annotations that are shorter than the
recording are unobserved in the remaining frames.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, ClockOrigin, Dataset, Observed, Recording
from ethobench.core.errors import EthobenchError, Note, NotFoundError, ReadWarning
from ethobench.core.ethogram import check_renames, join_ethograms
from ethobench.core.observation_period import OBSERVED_TO, observation_period_notes
from ethobench.core.video import probe
from ethobench.core.wording import plural
from ethobench.datasets.loose_files import (
    LENGTH_TOLERANCE,
    AnnotatorNames,
    Item,
    annotator_names,
    ends_with_last_bout,
    has_named_annotator,
    name_unnamed,
    named_annotations,
    read_items,
    recording_name,
)
from ethobench.datasets.match_file import Match, read_match
from ethobench.datasets.matching import Group, match_items


@dataclass(frozen=True)
class MatchedFile:
    """One file (or one entry of a file) of a collated recording.

    Attributes
    ----------
    recording : str
        Id of the recording that it was matched with.
    path : Path
    entry : str
        Name of the recording in the file; empty if the file has only one.
    annotators : tuple of str
        Annotators that the file contributes; empty for videos, poses and signals.
    matched_by : str
        The rule: ``"name"``, ``"subfolder"``, ``"media file"``, ``"affix"``, ``"common core"``, ``"only recording"`` or ``"match file"``.
    rate : float or None
        Frames per second at which the file was read.
    clock_origin : ClockOrigin or None
        Where the rate comes from; None for a video.
    """

    recording: str
    path: Path
    entry: str
    annotators: tuple[str, ...]
    matched_by: str
    rate: float | None
    clock_origin: ClockOrigin | None


@dataclass(frozen=True)
class Collation:
    """Recordings collated from loose files.

    Attributes
    ----------
    recordings : tuple of Recording
        Each with all its annotators, its poses or signals and its video. Notes of the readers are in their `notes`.
    notes : tuple of Note
        What was matched other than by equal names, and what was skipped.
    matches : tuple of MatchedFile
        Each file, with the recording it belongs to and why.
    """

    recordings: tuple[Recording, ...]
    notes: tuple[Note, ...] = ()
    matches: tuple[MatchedFile, ...] = ()

    def names_by_source(self, sources: Sequence[str | Path]) -> list[tuple[Path, list[str]]]:
        """Return the recordings of each path that was collated, to list what each of them contains."""
        paths = [Path(source) for source in sources]
        return [(p, list(dict.fromkeys(m.recording for m in self.matches if m.path == p or p in m.path.parents))) for p in paths]

    def to_dataset(self) -> Dataset:
        """Return the recordings as a dataset; its ethogram has the behaviors of all annotators."""
        return Dataset(self.recordings, join_ethograms(a.ethogram for r in self.recordings for a in r.annotations.values()))


@dataclass(frozen=True)
class RecordingPair:
    """Predictions and reference annotations of one recording, by annotator, on one clock.

    Attributes
    ----------
    predictions, references : mapping of str to Annotation
    stated_lengths : tuple of bool
        Whether the files with predictions, and those with references, state the length of the recording.
    """

    predictions: Mapping[str, Annotation]
    references: Mapping[str, Annotation]
    stated_lengths: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class CollatedPairs:
    """Recordings that predictions and references have in common.

    Attributes
    ----------
    pairs : mapping of str to RecordingPair
        By recording, as named by the references.
    only_predictions, only_references : tuple of str
        Recordings that the other side lacks.
    reader_notes, notes : tuple of Note
        Notes of the readers; what was matched other than by equal names, and what was skipped.
    labels : tuple of str
        All behaviors of both sides, before renaming.
    """

    pairs: Mapping[str, RecordingPair]
    only_predictions: tuple[str, ...] = ()
    only_references: tuple[str, ...] = ()
    reader_notes: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    labels: tuple[str, ...] = ()


def collate(
    paths: Iterable[str | Path] | str | Path,
    *,
    rate: float | None = None,
    same_recording: bool | None = None,
    annotations_only: bool = False,
    rename: Mapping[str, str] | None = None,
    match: Match | None = None,
    entry: str | None = None,
    annotators: Iterable[str] | str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Dataset:
    """Collate loose files by recording: annotations of several people, poses or signals, videos.

    Parameters
    ----------
    paths : paths
        Files, folders of files, studies with a ``recordings.csv``, or names of datasets such as ``"banos"``.
    rate : float, optional
        Frames per second of files that do not state it.
    same_recording : bool, optional
        Whether paths with one recording each are the same recording although their names differ: yes (True), no (False), or unless
        something in the files contradicts it (None).
    annotations_only : bool
        Whether to skip videos, and files with only poses or signals.
    rename : mapping of str to str, optional
        Behaviors to rename, old name to new name.
    match : mapping, pairs or path, optional
        Names that belong together although they differ: ``{"m1_final": "mouse 1"}``, or a CSV file with the columns ``left`` and ``right``.
        With two paths, ``left`` is a name in the first and ``right`` one in the second.
    entry : str, optional
        Read only this observation, channel or recording.
    annotators : iterable of str, optional
        Keep only these annotators, as the result names them. If no file names its annotator, one name is the name of the annotator of all
        files, and as many names as there are paths are their annotators, in the same order.
    options : mapping of str to object, optional
        Options of the readers, such as ``{"label": "behaviour", "units": "g"}``. Each is passed to the formats that have it.

    Returns
    -------
    Dataset
        With all annotators of each recording. Notes are issued as `ReadWarning`.

    See Also
    --------
    collate_files : returns notes and the list of matches instead of issuing warnings.
    load_dataset : load a study whose files are listed in a ``recordings.csv``.
    agreement, score : take the dataset.

    Examples
    --------
    Two people annotated the same video, in a folder each:

    >>> from ethobench import write_annotation
    >>> for person in ("anna", "ben"):
    ...     _ = write_annotation(annotation, folder / person / "mouse1.csv")
    >>> data = collate([folder / "anna", folder / "ben"])
    >>> data["mouse1"]
    Recording('mouse1', 100 frames at 30 Hz, annotators: anna, ben)
    """
    collation = collate_files(
        paths,
        rate=rate,
        same_recording=same_recording,
        annotations_only=annotations_only,
        rename=rename,
        match=match,
        entry=entry,
        annotators=annotators,
        options=options,
    )
    for note in (*collation.notes, *(note for recording in collation.recordings for note in recording.notes)):
        warnings.warn(str(note), ReadWarning, stacklevel=2)
    return collation.to_dataset()


def collate_files(
    paths: Iterable[str | Path] | str | Path,
    *,
    rate: float | None = None,
    same_recording: bool | None = None,
    annotations_only: bool = False,
    rename: Mapping[str, str] | None = None,
    match: Match | None = None,
    entry: str | None = None,
    annotators: Iterable[str] | str | None = None,
    name_by_file: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Collation:
    """Collate loose files as `collate` does; return notes and matches instead of issuing warnings.

    Parameters
    ----------
    paths, rate, same_recording, annotations_only, rename, match, entry, annotators, options
        See `collate`.
    name_by_file : bool
        Whether a single annotator without a name is called by the file, not ``"annotator"``.

    Examples
    --------
    >>> from ethobench import write_annotation
    >>> for person in ("carla", "dan"):
    ...     _ = write_annotation(annotation, folder / f"mouse2_{person}.csv")
    >>> collation = collate_files([folder / "mouse2_carla.csv", folder / "mouse2_dan.csv"])
    >>> [(match.path.name, match.recording, match.matched_by) for match in collation.matches]
    [('mouse2_carla.csv', 'mouse2_carla', 'name'), ('mouse2_dan.csv', 'mouse2_carla', 'only recording')]
    """
    sources = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    items, notes = read_items(sources, rate, annotations_only=annotations_only, entry=entry, options=options)
    groups = match_items(items, sources, notes, same_recording, () if match is None else read_match(match))
    _use_one_clock(groups, items, notes)
    names = annotator_names([group.items for group in groups], sources, name_by_file=name_by_file)
    chosen = [annotators] if isinstance(annotators, str) else list(annotators or ())
    if chosen and not {*chosen} & {*names.values()} and name_unnamed([group.items for group in groups], len(sources), chosen):
        names = annotator_names([group.items for group in groups], sources)
    recordings = [_merge(group, names, rate, notes) for group in groups]
    matches = tuple(_matched_file(group, item, names) for group in groups for item in group.items)
    if chosen:
        recordings = select_annotators(recordings, chosen)
    notes += observation_period_notes(r.annotations for r in recordings if OBSERVED_TO not in r.metadata)
    return Collation(tuple(rename_behaviors(recordings, rename or {})), tuple(notes), matches)


def select_annotators(recordings: Iterable[Recording], annotators: Iterable[str] | str) -> list[Recording]:
    """Keep only the annotations of some annotators; recordings that they did not annotate keep none.

    If no recording names its only annotator, a single name is the name of that annotator.

    Raises
    ------
    NotFoundError
        If no recording has an annotator of this name; lists the annotators.
    """
    chosen = [annotators] if isinstance(annotators, str) else list(annotators)
    recordings = list(recordings)
    annotated = [r for r in recordings if r.annotations]
    if len(chosen) == 1 and annotated and all(len(r.annotations) == 1 and not has_named_annotator(r) for r in annotated):
        return [r.copy(annotations=dict(zip(chosen, r.annotations.values(), strict=False))) for r in recordings]
    available = list(dict.fromkeys(name for recording in recordings for name in recording.annotations))
    for name in chosen:
        if name not in available:
            similar = get_close_matches(name, available, n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else "."
            raise NotFoundError(f"no annotator {name!r}{hint} Available: {', '.join(available) or 'none'}")
    return [r.copy(annotations={name: a for name, a in r.annotations.items() if name in chosen}) for r in recordings]


def _matched_file(group: Group, item: Item, names: AnnotatorNames) -> MatchedFile:
    annotators = tuple(names[id(item), annotator] for annotator in item.annotations)
    rate, origin = (None, None) if item.recording is None else (item.recording.rate, item.recording.clock_origin)
    return MatchedFile(group.name, item.path, item.name if item.named_inside else "", annotators, item.matched_by, rate, origin)


def collate_pairs(
    predictions: str | Path,
    references: str | Path | Dataset,
    *,
    rate: float | None = None,
    rename: Mapping[str, str] | None = None,
    check_rename: bool = True,
    match: Match | None = None,
    entry: str | None = None,
    annotator: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> CollatedPairs:
    """Match the recordings of predictions and references: files, folders of files, or studies.

    Parameters
    ----------
    predictions : path
    references : path or Dataset
        If both sides have a single recording, the two are taken to be the same.
    rate : float, optional
        Frames per second of files that do not state it.
    rename : mapping of str to str, optional
        Behaviors to rename on both sides, old name to new name.
    check_rename : bool
        Whether an old name that neither side has is an error.
    match
        See `collate`; ``left`` is a name of the predictions, ``right`` one of the references.
    entry : str, optional
        Read only this observation, channel or recording. A side that does not have it is read completely if each of its files has one
        recording.
    annotator : str, optional
        Name of the annotator of references that name none; without effect on others.
    options : mapping of str to object, optional
        See `collate`.

    Raises
    ------
    EthobenchError
        If a side has no annotation.
    """
    dataset = references if isinstance(references, Dataset) else None
    sources = [Path(predictions), Path(references.source or references.name) if isinstance(references, Dataset) else Path(references)]
    in_memory = {} if dataset is None else {1: dataset}
    items, notes = read_items(sources, rate, annotations_only=True, datasets=in_memory, entry=entry, keep_single=True, options=options)
    for side, path in enumerate(sources):
        if not any(item.source == side for item in items):
            raise EthobenchError(f"{path} has no annotation" if entry is None else f"{path} has no annotation of entry {entry!r}")
    groups = match_items(items, sources, notes, True, () if match is None else read_match(match))
    _use_one_clock(groups, items, notes)
    if annotator is not None:
        name_unnamed([[item for item in group.items if item.source == 1] for group in groups], 1, [annotator])
    names: AnnotatorNames = {}
    for side in range(2):
        names |= annotator_names([[item for item in group.items if item.source == side] for group in groups], sources)
    pairs: dict[str, RecordingPair] = {}
    unstated = []  # pairs whose references do not state the labeled time
    unmatched: tuple[list[str], list[str]] = ([], [])
    name_counts = Counter(name for group in groups for name in {item.name for item in group.items if item.source == 1})
    for group in groups:
        sides = [[item for item in group.items if item.source == side] for side in range(2)]
        reference = next((item.name for item in sides[1]), "")
        name = reference if reference and name_counts[reference] == 1 else group.name
        if not (sides[0] and sides[1]):
            unmatched[0 if sides[0] else 1].append(name)
            continue
        if not any(item.recording is not None and OBSERVED_TO in item.recording.metadata for item in sides[1]):
            unstated.append(name)
        is_stated = (all(item.length_stated for item in sides[0]), all(item.length_stated for item in sides[1]))
        pairs[name] = RecordingPair(named_annotations(sides[0], names), named_annotations(sides[1], names), is_stated)
    if rename:
        if check_rename:
            check_renames(rename, (a.ethogram for item in items for a in item.annotations.values()))
        pairs = {
            name: replace(pair, predictions=_renamed(pair.predictions, rename), references=_renamed(pair.references, rename))
            for name, pair in pairs.items()
        }
    notes += observation_period_notes(pairs[name].references for name in unstated)
    reader_notes = tuple(note for group in groups for item in group.items for note in item.notes)
    labels = tuple(dict.fromkeys(name for item in items for a in item.annotations.values() for name in a.ethogram.names))
    return CollatedPairs(pairs, tuple(unmatched[0]), tuple(unmatched[1]), reader_notes, tuple(notes), labels)


def rename_behaviors(recordings: Iterable[Recording], names: Mapping[str, str]) -> list[Recording]:
    """Rename behaviors in the annotations of recordings, old name to new name; behaviors with the same new name are merged.

    Raises
    ------
    NotFoundError
        If no annotation has a behavior of an old name.
    """
    recordings = list(recordings)
    if not names:
        return recordings
    check_renames(names, (a.ethogram for recording in recordings for a in recording.annotations.values()))
    return [recording.copy(annotations=_renamed(recording.annotations, names)) for recording in recordings]


def _renamed(annotations: Mapping[str, Annotation], names: Mapping[str, str]) -> dict[str, Annotation]:
    return {annotator: a.rename_existing(names) for annotator, a in annotations.items()}


def _use_one_clock(groups: Iterable[Group], items: Iterable[Item], notes: list[Note]) -> None:
    """Read files without a frame rate at the rate of the files they are matched with, else of all files if those agree."""
    clocks_of_all = _clocks(items)
    for group in groups:
        without_clock = [item for item in group.items if item.recording is not None and not item.has_clock and not item.of_dataset]
        if not without_clock:
            continue
        clocks = _clocks(group.items) or _clock_of_video(group, notes) or clocks_of_all
        if len({rate for rate, _, _ in clocks}) != 1:
            continue
        rate, origin, path = clocks[0]
        for item in without_clock:
            if item.recording is not None and item.recording.rate == rate:
                item.recording.clock_origin = origin
            elif item.recording is not None:
                notes.append(Note(f"no frame rate; using {rate:g} Hz, the rate of {path}", str(item.path), "matched-rate"))
                item.read_at(rate, origin)


def _clocks(items: Iterable[Item]) -> list[tuple[float, ClockOrigin, Path]]:
    """Return rate, origin and file of the items with a clock."""
    return [(r.rate, r.clock_origin, item.path) for item in items if item.has_clock and (r := item.recording) is not None and r.rate]


def _clock_of_video(group: Group, notes: list[Note]) -> list[tuple[float, ClockOrigin, Path]]:
    video = next((item for item in group.items if item.is_video), None)
    if video is None:
        return []
    try:
        return [(probe(video.path).rate, ClockOrigin.STATED, video.path)]
    except EthobenchError as error:
        notes.append(Note(f"the frame rate of the video is unknown ({error})", group.name, "video-not-read"))
        return []


def equalize_lengths(
    annotations: Mapping[str, Annotation],
    recording: str = "",
    *,
    n_frames: int | None = None,
    stated: Collection[str] = (),
    any_difference: bool = True,
) -> tuple[dict[str, Annotation], list[Note]]:
    """Extend the annotations of one recording to the same length.

    Parameters
    ----------
    annotations : mapping of str to Annotation
        By annotator.
    recording : str
        Its name, for the notes.
    n_frames : int, optional
        Minimum length.
    stated : collection of str
        Annotators whose files state their length. The length of others may be just the end of the last bout.
    any_difference : bool
        Whether to extend annotations that are shorter by more than 1 % and a second, too.

    Returns
    -------
    annotations : dict of str to Annotation
        One that ends with its last bout is observed to the end of the recording; any other is unobserved in the added frames.
    notes : list of Note
        What was changed.
    """
    length = max([n_frames or 0, *(a.n_frames for a in annotations.values())])
    result, notes = {}, []
    for annotator, a in annotations.items():
        n_missing = length - a.n_frames
        result[annotator] = a
        if n_missing and annotator not in stated and ends_with_last_bout(a):
            result[annotator] = a.extend(length).with_observed(Observed.full(length))
            message = f"{annotator} ends with its last bout; taken to be as long as the recording ({length} frames)"
            notes.append(Note(message, recording, "length"))
        elif n_missing and (any_difference or n_missing <= max(LENGTH_TOLERANCE * length, a.rate)):
            result[annotator] = a.extend(length)
            message = plural(
                n_missing,
                "{annotator} ends {n} frame before the others; the missing frame is unobserved",
                "{annotator} ends {n} frames before the others; the missing frames are unobserved",
                annotator=annotator,
            )
            notes.append(Note(message, recording, "length"))
    return result, notes


def _merge(group: Group, names: AnnotatorNames, rate: float | None, notes: list[Note]) -> Recording:
    """Merge all items of a group into one recording."""
    recordings = [item.recording for item in group.items if item.recording is not None]
    if not recordings:
        return _recording_of_video(group, rate)
    main = next((r for r in recordings if r.has_signals), recordings[0])
    timed = next((r for r in (main, *recordings) if r.rate is not None), main)
    if main.rate is None and timed.rate is not None and timed.clock_origin is ClockOrigin.ASSUMED:
        notes.append(
            Note(f"no file states a frame rate; assuming {timed.rate:g} Hz (set the rate to change this)", group.name, "assumed-rate")
        )
    n_frames = max((n for r in recordings if (n := _frames_at(r, timed.rate)) is not None), default=None)
    annotations = named_annotations(group.items, names)
    stated = {names[id(item), annotator] for item in group.items if item.length_stated for annotator in item.annotations}
    on_clock = {name: a for name, a in annotations.items() if a.rate == timed.rate}
    equal, more_notes = equalize_lengths(on_clock, group.name, n_frames=n_frames, stated=stated)
    notes += more_notes
    default_individuals = {n for item in group.items if item.recording is not None for n in (item.recording.id, recording_name(item.path))}
    return main.copy(
        id=group.name,
        individual=next((r.individual for r in recordings if r.individual not in default_individuals), ""),
        annotations={**annotations, **equal},
        subjects=tuple(dict.fromkeys(subject for r in recordings for subject in r.subjects)),
        rate=timed.rate,
        n_frames=n_frames,
        video=next((item.path for item in group.items if item.is_video), main.video),
        notes=tuple(note for item in group.items for note in item.notes),
        clock_origin=timed.clock_origin,
    )


def _frames_at(recording: Recording, rate: float | None) -> int | None:
    """Return the length of a recording in frames of another clock."""
    if recording.n_frames is None or recording.rate is None or rate is None:
        return recording.n_frames
    return round(recording.n_frames / recording.rate * rate)


def _recording_of_video(group: Group, rate: float | None) -> Recording:
    """Return a recording of a video alone, on the clock of the video unless a rate is set."""
    video = probe(group.items[0].path)
    n_frames = video.n_frames if rate is None else round(video.duration * rate)
    origin = ClockOrigin.STATED if rate is None else ClockOrigin.GIVEN
    return Recording(group.name, rate=rate or video.rate, n_frames=n_frames, video=video.path, clock_origin=origin)
