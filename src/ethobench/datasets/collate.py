"""Match loose files: which files belong to the same recording, on which clock, and how long it is.

`score`, `agreement`, `budget` and `view` take files and folders that no manifest ties together. All of them follow the rules below.

Matching
--------
1. **Name.** Files and entries (observations of a BORIS project, rows of a table) of the same name are one recording. A file that
   holds several recordings, or could, is matched by the names inside; any other by its file name. In a folder whose subfolders hold
   files of the same names, lengths decide whether a subfolder is a recording or an annotator.
2. **Media file.** Observations that name the same media file are one recording, and so is the video file of that name.
3. **Name but for an affix.** ``m1_anna`` and ``m1_ben`` belong to ``m1`` if there is an ``m1``; ``DLC1_brett`` in one folder and
   ``DLC1_donnie`` in another are one recording if every name in each folder has the same affix. An affix that is only a number is
   none: ``m1_2`` is another recording than ``m1``.
4. **Only one recording.** Files that hold one recording each are the same recording if at most one is a video and at most one holds
   poses or signals, their lengths agree, they do not name different media files, and their names differ in more than a number.
   ``agreement anna.csv ben.csv`` and ``score model.csv human.csv`` say that the two are the same recording.

Every match that does not rest on equal names is reported in a note.

Clocks and lengths
------------------
A file that states no frame rate (`ClockOrigin.ASSUMED`) is read at the rate of the files it is matched with. An annotation that ends
with its last bout, as files do that state no length, is as long as the recording. Other annotations that are shorter than the
recording are unobserved in the remaining frames.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ethobench.core import Annotation, ClockOrigin, Dataset, Ethogram, Observed, Recording
from ethobench.core.errors import EthobenchError, Note, ReadWarning
from ethobench.core.ethogram import check_renames
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.core.video import probe
from ethobench.datasets.matching import LENGTH_TOLERANCE, Group, Item, Matcher, ends_with_last_bout, is_dataset, list_files, recording_name

__all__ = [
    "CollatedPairs",
    "Collation",
    "RecordingPair",
    "collate",
    "collate_pairs",
    "collate_quietly",
    "equalize_lengths",
    "is_dataset",
    "list_files",
    "recording_name",
    "rename_behaviors",
]

AnnotatorNames: TypeAlias = dict[tuple[int, str], str]


@dataclass(frozen=True)
class Collation:
    """Recordings put together from loose files.

    Attributes
    ----------
    recordings : tuple of Recording
        Each with all its annotators, its poses or signals and its video. What readers noted is in their `notes`.
    notes : tuple of Note
        What was matched other than by equal names, and what was skipped.
    """

    recordings: tuple[Recording, ...]
    notes: tuple[Note, ...] = ()

    def to_dataset(self) -> Dataset:
        """Return the recordings as a dataset; its ethogram has the behaviors of all annotators."""
        ethogram = Ethogram([])
        for recording in self.recordings:
            for annotation in recording.annotations.values():
                ethogram = ethogram.join(annotation.ethogram)
        return Dataset(self.recordings, ethogram)


@dataclass(frozen=True)
class RecordingPair:
    """The annotations of one recording on two sides, by annotator, on one clock."""

    predictions: Mapping[str, Annotation]
    references: Mapping[str, Annotation]
    stated_lengths: tuple[bool, bool] = (False, False)  # whether the files of either side state the length


@dataclass(frozen=True)
class CollatedPairs:
    """Recordings that two sides have in common.

    Attributes
    ----------
    pairs : mapping of str to RecordingPair
        By recording, as the second side names it.
    only_predictions, only_references : tuple of str
        Recordings that one side lacks.
    reader_notes, notes : tuple of Note
        What the readers repaired; what was matched other than by equal names, and what was skipped.
    labels : tuple of str
        All behaviors of both sides, before any were renamed.
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
) -> Dataset:
    """Match loose files by recording: annotations of several people, poses or signals, videos.

    Parameters
    ----------
    paths : paths
        Files, folders of files, or studies with a ``recordings.csv``.
    rate : float, optional
        Frames per second of files that do not state it.
    same_recording : bool, optional
        Whether paths that hold one recording each are the same recording although their names differ: yes (True), no (False), or if
        nothing in the files contradicts it (None).
    annotations_only : bool
        Leave out videos, and files with only poses or signals.
    rename : mapping of str to str, optional
        Behaviors to rename, old name to new name.

    Returns
    -------
    Dataset
        One recording for each that was found, with its annotators. Notes are issued as `ReadWarning`.

    See Also
    --------
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
    collation = collate_quietly(paths, rate=rate, same_recording=same_recording, annotations_only=annotations_only, rename=rename)
    for note in (*collation.notes, *(note for recording in collation.recordings for note in recording.notes)):
        warnings.warn(str(note), ReadWarning, stacklevel=2)
    return collation.to_dataset()


def collate_quietly(
    paths: Iterable[str | Path] | str | Path,
    *,
    rate: float | None = None,
    same_recording: bool | None = None,
    annotations_only: bool = False,
    rename: Mapping[str, str] | None = None,
    name_by_file: bool = False,
) -> Collation:
    """Match loose files as `collate` does, leaving the notes to the caller.

    With `name_by_file`, the only annotator of a recording is called by the file where that names none, else "annotator".
    """
    sources = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    matcher = Matcher(sources, rate, annotations_only=annotations_only)
    groups = matcher.match(same_recording)
    names = _annotator_names([group.items for group in groups], sources, name_by_file=name_by_file)
    recordings = [_merge(group, names, rate, matcher.notes) for group in groups]
    return Collation(tuple(rename_behaviors(recordings, rename or {})), tuple(matcher.notes))


def collate_pairs(
    predictions: str | Path,
    references: str | Path | Dataset,
    *,
    rate: float | None = None,
    rename: Mapping[str, str] | None = None,
    check_rename: bool = True,
) -> CollatedPairs:
    """Match the recordings of two sides: files, folders of files, or studies.

    Parameters
    ----------
    predictions : path
    references : path or Dataset
        Where both sides hold a single recording, the two are taken to be the same.
    rate : float, optional
        Frames per second of files that do not state it.
    rename : mapping of str to str, optional
        Behaviors to rename on either side, old name to new name.
    check_rename : bool
        Whether an old name that neither side has is an error.
    """
    dataset = references if isinstance(references, Dataset) else None
    sources = [Path(predictions), Path(references.source or references.name) if isinstance(references, Dataset) else Path(references)]
    matcher = Matcher(sources, rate, annotations_only=True, datasets={} if dataset is None else {1: dataset})
    for side, path in enumerate(sources):
        if not any(item.source == side for item in matcher.items):
            raise EthobenchError(f"{path} holds no annotation")
    groups = matcher.match(same_recording=True)
    names: AnnotatorNames = {}
    for side in range(2):
        names |= _annotator_names([[item for item in group.items if item.source == side] for group in groups], sources)
    pairs: dict[str, RecordingPair] = {}
    unmatched: tuple[list[str], list[str]] = ([], [])
    named = Counter(name for group in groups for name in {item.name for item in group.items if item.source == 1})
    for group in groups:
        sides = [[item for item in group.items if item.source == side] for side in range(2)]
        name = sides[1][0].name if sides[1] and named[sides[1][0].name] == 1 else group.name
        if not (sides[0] and sides[1]):
            unmatched[0 if sides[0] else 1].append(name)
            continue
        stated = (all(item.length_stated for item in sides[0]), all(item.length_stated for item in sides[1]))
        pairs[name] = RecordingPair(_named_annotations(sides[0], names), _named_annotations(sides[1], names), stated)
    if rename:
        if check_rename:
            check_renames(rename, (a.ethogram for item in matcher.items for a in item.annotations.values()))
        pairs = {
            name: replace(pair, predictions=_renamed(pair.predictions, rename), references=_renamed(pair.references, rename))
            for name, pair in pairs.items()
        }
    reader_notes = tuple(note for group in groups for item in group.items for note in item.notes)
    labels = tuple(dict.fromkeys(name for item in matcher.items for a in item.annotations.values() for name in a.ethogram.names))
    return CollatedPairs(pairs, tuple(unmatched[0]), tuple(unmatched[1]), reader_notes, tuple(matcher.notes), labels)


def rename_behaviors(recordings: Iterable[Recording], names: Mapping[str, str]) -> list[Recording]:
    """Rename behaviors in the annotations of recordings; behaviors that get the same name become one.

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


def equalize_lengths(
    annotations: Mapping[str, Annotation],
    recording: str = "",
    *,
    n_frames: int | None = None,
    stated: Collection[str] = (),
    any_difference: bool = True,
) -> tuple[dict[str, Annotation], list[Note]]:
    """Make annotations of one recording equally long.

    Parameters
    ----------
    annotations : mapping of str to Annotation
        By annotator.
    recording : str
        Its name, for the notes.
    n_frames : int, optional
        Length of the recording where it is known otherwise.
    stated : collection of str
        Annotators whose files state their length. That of any other may only be the end of the last bout.
    any_difference : bool
        Whether to extend annotations that are shorter by more than 1 % and a second, too.

    Returns
    -------
    annotations : dict of str to Annotation
        One that ends with its last bout is observed to the end of the recording; any other is unobserved in the added frames.
    notes : list of Note
        What was done.
    """
    length = max([n_frames or 0, *(a.n_frames for a in annotations.values())])
    result, notes = {}, []
    for annotator, a in annotations.items():
        missing = length - a.n_frames
        result[annotator] = a
        if missing and annotator not in stated and ends_with_last_bout(a):
            result[annotator] = a.extend(length).with_observed(Observed.full(length))
            notes.append(Note(f"{annotator} ends with its last bout; taken to be as long as the recording ({length} frames)", recording))
        elif missing and (any_difference or missing <= max(LENGTH_TOLERANCE * length, a.rate)):
            result[annotator] = a.extend(length)
            frames = "1 frame" if missing == 1 else f"{missing} frames"
            notes.append(Note(f"{annotator} ends {frames} before the others; what is missing does not count", recording))
    return result, notes


def _annotator_names(groups: Sequence[Sequence[Item]], sources: Sequence[Path], *, name_by_file: bool = False) -> AnnotatorNames:
    """Name the annotators of all items: ``(id of the item, name in its file)`` to name.

    A name inside a file is kept, unless several sources have it. An annotator without a name is called by what tells the paths of its
    source and the others apart, or by the subfolder or file within the source.
    """
    labels = _distinct_names(sources)
    shared = any(len({item.source for item in items if item.annotations}) > 1 for items in groups)
    ambiguous = {name for items in groups for name in _names_in_several_sources(items)}
    names: AnnotatorNames = {}
    for items in groups:
        taken: set[str] = set()
        for item in items:
            beside = [other for other in items if other is not item and other.source == item.source and other.annotations]
            for who in item.annotations:
                if _is_named(item, who) and who not in ambiguous:
                    name = who
                elif _is_named(item, who) and len(item.annotations) > 1:
                    name = f"{who} ({labels[item.source]})"
                elif item.annotator:
                    name = item.annotator
                else:
                    parts = [labels[item.source]] if shared else []
                    parts += [_name_within(item, beside)] if beside else []
                    name = "/".join(parts) or (recording_name(item.path) if name_by_file else DEFAULT_ANNOTATOR)
                unique = next(n for n in (name, *(f"{name} {k}" for k in range(2, len(taken) + 3))) if n not in taken)
                taken.add(unique)
                names[id(item), who] = unique
    return names


def _is_named(item: Item, annotator: str) -> bool:
    """Whether the file names the annotator, rather than the recording or nobody."""
    ids = (item.name, item.recording.id if item.recording is not None else "")
    return annotator != DEFAULT_ANNOTATOR and annotator not in ids


def _names_in_several_sources(items: Sequence[Item]) -> set[str]:
    origins: dict[str, set[int]] = {}
    for item in items:
        for who in item.annotations:
            origins.setdefault(who, set()).add(item.source)
    return {who for who, numbers in origins.items() if len(numbers) > 1}


def _distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name paths by the last part in which they differ."""
    names = [recording_name(path) if path.is_file() else path.resolve().name for path in paths]
    if len(set(names)) == len(paths):
        return names
    parents = [path.resolve().parent.name for path in paths]
    return parents if len(set(parents)) == len(paths) else [str(path) for path in paths]


def _name_within(item: Item, others: Sequence[Item]) -> str:
    """Name a file of a source by its subfolder, if no other file of the recording has the same; else by its file name."""
    subfolder = item.path.parent
    return recording_name(item.path) if any(other.path.parent == subfolder for other in others) else subfolder.name


def _named_annotations(items: Iterable[Item], names: AnnotatorNames) -> dict[str, Annotation]:
    return {names[id(item), who]: a for item in items for who, a in item.annotations.items()}


def _merge(group: Group, names: AnnotatorNames, rate: float | None, notes: list[Note]) -> Recording:
    """Make one recording of all items of a group."""
    recordings = [item.recording for item in group.items if item.recording is not None]
    if not recordings:
        return _recording_of_video(group, rate)
    main = next((r for r in recordings if r.has_signals), recordings[0])
    timed = next((r for r in (main, *recordings) if r.rate is not None), main)
    if main.rate is None and timed.rate is not None and timed.clock_origin is ClockOrigin.ASSUMED:
        notes.append(Note(f"no file states a frame rate; assuming {timed.rate:g} Hz (give the rate to change that)", group.name))
    n_frames = max((n for r in recordings if (n := _frames_at(r, timed.rate)) is not None), default=None)
    annotations = _named_annotations(group.items, names)
    stated = {names[id(item), who] for item in group.items if item.length_stated for who in item.annotations}
    on_clock = {name: a for name, a in annotations.items() if a.rate == timed.rate}
    equal, more = equalize_lengths(on_clock, group.name, n_frames=n_frames, stated=stated)
    notes += more
    defaults = {name for item in group.items if item.recording is not None for name in (item.recording.id, recording_name(item.path))}
    return main.copy(
        id=group.name,
        individual=next((r.individual for r in recordings if r.individual not in defaults), ""),
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
    """Make a recording of a video alone; its clock is the video's unless a rate is given."""
    video = probe(group.items[0].path)
    n_frames = video.n_frames if rate is None else round(video.duration * rate)
    origin = ClockOrigin.STATED if rate is None else ClockOrigin.GIVEN
    return Recording(group.name, rate=rate or video.rate, n_frames=n_frames, video=video.path, clock_origin=origin)
