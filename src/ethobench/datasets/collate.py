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
   poses or signals, their lengths agree, and they do not name different media files.

Every match that does not rest on equal names is reported in a note.

Clocks and lengths
------------------
A file that states no frame rate (`ClockOrigin.ASSUMED`) is read at the rate of the files it is matched with. An annotation that ends
with its last bout, as files do that state no length, is as long as the recording. Other annotations that are shorter than the
recording are unobserved in the remaining frames.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path, PurePath
from typing import TypeAlias

from ethobench.core import Annotation, ClockOrigin, Dataset, Ethogram, Observed, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note, ReadWarning
from ethobench.core.ethogram import check_renames
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.core.video import probe
from ethobench.datasets.manifest import MANIFEST
from ethobench.formats import detect, read_at
from ethobench.formats.bebe import METADATA as BEBE_METADATA

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".ogv", ".avi")
LONG_SUFFIXES = (".bebe.csv", ".calms21.json")
TRACKER_SUFFIX = re.compile(r"(?<=[^_\W])DLC_.*|[_.](analysis|predictions|keypoints|pose_est_v\d+)$", re.IGNORECASE)
LENGTH_TOLERANCE = 0.01  # of a recording, by which lengths of the same recording may differ; and never less than a second


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
    """

    pairs: Mapping[str, RecordingPair]
    only_predictions: tuple[str, ...] = ()
    only_references: tuple[str, ...] = ()
    reader_notes: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()


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
) -> Collation:
    """Match loose files as `collate` does, leaving the notes to the caller."""
    sources = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    matcher = _Matcher(sources, rate, annotations_only=annotations_only)
    groups = matcher.match(same_recording)
    names = _annotator_names([group.items for group in groups], sources)
    recordings = [_merge(group, names, rate, matcher.notes) for group in groups]
    return Collation(tuple(rename_behaviors(recordings, rename or {})), tuple(matcher.notes))


def collate_pairs(
    predictions: str | Path, references: str | Path | Dataset, *, rate: float | None = None, rename: Mapping[str, str] | None = None
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
    """
    dataset = references if isinstance(references, Dataset) else None
    sources = [Path(predictions), Path(references.source or references.name) if isinstance(references, Dataset) else Path(references)]
    matcher = _Matcher(sources, rate, annotations_only=True, datasets={} if dataset is None else {1: dataset})
    for side, path in enumerate(sources):
        if not any(item.source == side for item in matcher.items):
            raise EthobenchError(f"{path} holds no annotation")
    groups = matcher.match(same_recording=True)
    names: AnnotatorNames = {}
    for side in range(2):
        names |= _annotator_names([[item for item in group.items if item.source == side] for group in groups], sources)
    pairs: dict[str, RecordingPair] = {}
    unmatched: tuple[list[str], list[str]] = ([], [])
    for group in groups:
        sides = [[item for item in group.items if item.source == side] for side in range(2)]
        name = sides[1][0].name if sides[1] else group.name
        if not (sides[0] and sides[1]):
            unmatched[0 if sides[0] else 1].append(name)
            continue
        pairs[name] = RecordingPair(*(_named_annotations(items, names) for items in sides))
    if rename:
        check_renames(rename, (a.ethogram for item in matcher.items for a in item.annotations.values()))
        pairs = {
            name: RecordingPair(*({who: a.rename_known(rename) for who, a in side.items()} for side in (pair.predictions, pair.references)))
            for name, pair in pairs.items()
        }
    reader_notes = tuple(note for group in groups for item in group.items for note in item.notes)
    return CollatedPairs(pairs, tuple(unmatched[0]), tuple(unmatched[1]), reader_notes, tuple(matcher.notes))


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
    return [r.copy(annotations={who: a.rename_known(names) for who, a in r.annotations.items()}) for r in recordings]


def equalize_lengths(
    annotations: Mapping[str, Annotation], recording: str = "", *, n_frames: int | None = None, any_difference: bool = True
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
    any_difference : bool
        Whether to extend annotations that are shorter by more than 1 % and a second, too.

    Returns
    -------
    annotations : dict of str to Annotation
        One that ends with its last bout was observed to the end of the recording; any other is unobserved in the added frames.
    notes : list of Note
        What was done.
    """
    length = max([n_frames or 0, *(a.n_frames for a in annotations.values())])
    result, notes = {}, []
    for annotator, a in annotations.items():
        missing = length - a.n_frames
        result[annotator] = a
        if missing and _ends_with_last_bout(a):
            result[annotator] = a.extend(length).with_observed(Observed.whole(length))
            notes.append(Note(f"{annotator} ends with its last bout; taken to be as long as the recording ({length} frames)", recording))
        elif missing and (any_difference or missing <= max(LENGTH_TOLERANCE * length, a.rate)):
            result[annotator] = a.extend(length)
            notes.append(Note(f"{annotator} ends {missing} frames before the others; these frames do not count", recording))
    return result, notes


def _ends_with_last_bout(a: Annotation) -> bool:
    """Whether the length of an annotation may only be that of its last bout: it was observed throughout, and a bout ends it."""
    return len(a) > 0 and int(a.stop.max()) == a.n_frames and a.observed.is_whole(a.n_frames)


def recording_name(path: Path) -> str:
    """Return the name of a file without the suffix of its format."""
    for suffix in LONG_SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.stem


def is_dataset(path: Path) -> bool:
    """Whether a path is a list of recordings, or a folder with one."""
    return path.name == MANIFEST or (path / MANIFEST).is_file() or (path / BEBE_METADATA).is_file()


def list_files(path: Path, *, videos: bool = False) -> tuple[list[Path], list[Note]]:
    """List a file itself, or the files in a folder that a format recognises (and videos); note those that are skipped."""
    if not path.is_dir():
        return [path], []
    files, skipped = [], []
    for file in sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")):
        if file.suffix.lower() in VIDEO_SUFFIXES:
            files += [file] if videos else []
            continue
        try:
            detect(file)
        except FormatError:
            skipped.append(file.name)
            continue
        files.append(file)
    more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    return files, [Note(f"skipped, as no format recognises them: {', '.join(skipped[:5])}{more}", str(path))] if skipped else []


@dataclass
class _Item:
    """One recording in one file, or a video file."""

    source: int
    path: Path
    name: str
    recording: Recording | None = None
    index: int = 0
    named_inside: bool = False
    annotator: str = ""  # for annotations whose file names no annotator
    of_dataset: bool = False

    @property
    def annotations(self) -> Mapping[str, Annotation]:
        return {} if self.recording is None else self.recording.annotations

    @property
    def is_video(self) -> bool:
        return self.recording is None

    @property
    def notes(self) -> list[Note]:
        """The notes of the reader, with the file they are about."""
        notes = () if self.recording is None else self.recording.notes
        return [Note(note.message, f"{self.path}{', ' + note.place if note.place else ''}") for note in notes]

    @cached_property
    def has_signals(self) -> bool:
        return self.recording is not None and self.recording.signals is not None

    @cached_property
    def media(self) -> frozenset[str]:
        """Names of the media files that the recording is about, without folders and suffixes."""
        if self.recording is None:
            return frozenset([self.name.casefold()])
        return frozenset(_media_name(name) for name in self.recording.metadata.get("media") or ())

    @property
    def has_clock(self) -> bool:
        """Whether the rate is more than an assumption of the reader."""
        r = self.recording
        return r is not None and r.rate is not None and (self.of_dataset or r.clock_origin is not ClockOrigin.ASSUMED)

    def read_again(self, rate: float) -> None:
        """Read the recording on another clock."""
        recordings = read_at(self.path, rate)
        self.recording = recordings[self.index]

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.named_inside and self.name != recording_name(self.path) else str(self.path)


@dataclass
class _Group:
    """The items of one recording."""

    name: str
    items: list[_Item] = field(default_factory=list)

    @property
    def sources(self) -> set[int]:
        return {item.source for item in self.items}

    @property
    def media(self) -> frozenset[str]:
        return frozenset[str]().union(*(item.media for item in self.items))

    def absorb(self, other: _Group) -> None:
        self.items += other.items


class _Matcher:
    """Reads files and sorts what they hold into groups, one for each recording."""

    def __init__(
        self, sources: Sequence[Path], rate: float | None, *, annotations_only: bool, datasets: Mapping[int, Dataset] | None = None
    ) -> None:
        self.sources, self.rate = sources, rate
        self.notes: list[Note] = []
        self.items: list[_Item] = []
        for number, source in enumerate(sources):
            dataset = (datasets or {}).get(number)
            if dataset is not None or is_dataset(source):
                self.items += self._read_dataset(number, source, dataset)
            else:
                self.items += self._read_files(number, source, annotations_only)
        self._name_by_subfolder()

    def match(self, same_recording: bool | None) -> list[_Group]:
        """Return the groups, their items on one clock."""
        groups = self._by_name()
        groups = self._by_media(groups)
        if same_recording is not False:
            groups = self._by_affix(groups)
            groups = self._as_one_recording(groups, certain=bool(same_recording) and len(self.sources) == 2)
        self._drop_copies(groups)
        self._use_one_clock(groups)
        return groups

    def _read_dataset(self, number: int, path: Path, dataset: Dataset | None) -> list[_Item]:
        """List the annotated recordings of a study; `load_dataset` has warned of what was repaired."""
        from ethobench.datasets import load_dataset

        recordings = [r.copy(notes=()) for r in dataset or load_dataset(path) if r.annotations]
        return [_Item(number, path, r.id, r, named_inside=True, of_dataset=True) for r in recordings]

    def _read_files(self, number: int, source: Path, annotations_only: bool) -> list[_Item]:
        files, notes = list_files(source, videos=not annotations_only)
        self.notes += notes
        items = []
        for file in files:
            if file.suffix.lower() in VIDEO_SUFFIXES:
                items.append(_Item(number, file, file.stem))
                continue
            reader = detect(file)
            if annotations_only and "annotations" not in reader.contents:
                continue
            recordings = read_at(file, self.rate, reader.name)
            inside = reader.several or len(recordings) > 1
            for index, recording in enumerate(recordings):
                if recording.annotations or not annotations_only:
                    name = recording.id if inside else recording_name(file)
                    items.append(_Item(number, file, name, recording, index, inside))
        return items

    def _name_by_subfolder(self) -> None:
        """Name files that have the same names in several subfolders by the subfolder, where lengths show that those are the recordings.

        ``Recording_1/human_1.csv`` and ``Recording_1/human_2.csv`` are equally long and ``Recording_2/human_1.csv`` is not.
        """
        for number in range(len(self.sources)):
            items = [i for i in self.items if i.source == number and not i.named_inside and i.annotations]
            by_name, by_folder = _grouped(items, lambda i: i.name), _grouped(items, lambda i: str(i.path.parent))
            if all(len(group) == 1 for group in by_name) or len(by_folder) < 2:
                continue
            if all(_lengths_agree(group) for group in by_folder) and not all(_lengths_agree(group) for group in by_name):
                for item in items:
                    item.annotator, item.name = item.name, item.path.parent.name
                message = "files in the same subfolder are equally long, so each subfolder is taken as one recording"
                self.notes.append(Note(message, str(self.sources[number])))

    def _by_name(self) -> list[_Group]:
        groups: dict[str, _Group] = {}
        for item in self.items:
            groups.setdefault(item.name.casefold(), _Group(item.name)).items.append(item)
        for group in groups.values():
            media = [item.media for item in group.items if item.media and not item.is_video]
            for first, second in combinations(media, 2):
                if not _related(first, second):
                    names = " and ".join(sorted(min(side) for side in (first, second)))
                    self.notes.append(Note(f"matched by name, although the media files differ: {names}", group.name))
                    break
        return list(groups.values())

    def _by_media(self, groups: list[_Group]) -> list[_Group]:
        """Join groups that are about the same media file, if each source has only one of them."""
        for media in sorted({name for group in groups for name in group.media}):
            sharing = [group for group in groups if media in group.media]
            if len(sharing) < 2:
                continue
            annotated = Counter(item.source for group in sharing for item in group.items if item.annotations)
            several_in_a_source = len(annotated) > 0 and max(annotated.values()) > 1 and len(sharing) > 1
            names = ", ".join(repr(group.name) for group in sharing)
            if several_in_a_source:
                self.notes.append(Note(f"{names} are about the same media file {media!r}; kept apart, as one source has several of them"))
                continue
            self.notes.append(Note(f"{names} are about the same media file {media!r}; taken as one recording", sharing[0].name))
            groups = _joined(groups, sharing)
        return groups

    def _by_affix(self, groups: list[_Group]) -> list[_Group]:
        """Join groups whose names are equal but for an affix: that of a source, or one beside the whole name of another group."""
        cores = {id(group): _tokens(group.name) for group in groups}
        for number in range(len(self.sources)):
            inside = [group for group in groups if group.sources == {number}]
            for group, core in zip(inside, _without_common_affix([_tokens(group.name) for group in inside]), strict=True):
                cores[id(group)] = core
        for core in dict.fromkeys(cores.values()):
            alike = [group for group in groups if cores[id(group)] == core]
            if len(alike) > 1 and self._can_be_one(alike):
                groups = self._join_alike(groups, alike, core)
        for group in sorted(groups, key=lambda group: -len(_tokens(group.name))):
            candidates = [other for other in groups if other is not group and _extends(_tokens(group.name), _tokens(other.name))]
            if not candidates:
                continue
            longest = max(len(_tokens(other.name)) for other in candidates)
            nearest = [other for other in candidates if len(_tokens(other.name)) == longest]
            if len(nearest) == 1 and self._can_be_one([nearest[0], group]):
                groups = self._join_alike(groups, [nearest[0], group], _tokens(nearest[0].name))
        return groups

    def _can_be_one(self, groups: Sequence[_Group]) -> bool:
        """Whether groups of similar names can be one recording.

        Their lengths agree, no two videos or pose files are among them, and no file or folder has annotations in several of them, unless
        the first group has the video, poses or signals of the recording.
        """
        items = [item for group in groups for item in group.items]
        files = Counter((item.source, item.path) for item in items)
        kinds = Counter("video" if item.is_video else "signals" for item in items if item.is_video or item.has_signals)
        folders = Counter(n for g in groups for n in {i.source for i in g.items if i.annotations} if self.sources[n].is_dir())
        apart = max(folders.values(), default=0) <= 1 or any(item.is_video or item.has_signals for item in groups[0].items)
        return apart and max(files.values()) == 1 and max(kinds.values(), default=0) <= 1 and _lengths_agree(items)

    def _join_alike(self, groups: list[_Group], alike: list[_Group], core: tuple[str, ...]) -> list[_Group]:
        shortest = min((group.name for group in alike), key=len)
        name = shortest if _tokens(shortest) == core else "_".join(core)
        names = ", ".join(repr(group.name) for group in alike)
        self.notes.append(Note(f"{names} have the same name but for an affix; taken as one recording", name))
        joined = _joined(groups, alike)
        joined[[id(group) for group in joined].index(id(alike[0]))].name = name
        return joined

    def _as_one_recording(self, groups: list[_Group], *, certain: bool) -> list[_Group]:
        """Join all groups if they can only be one recording (or are, for certain, whatever their lengths and media)."""
        items = [item for group in groups for item in group.items]
        if len(groups) < 2:
            return groups
        annotated = [item for item in items if item.annotations]
        per_source = Counter(item.source for item in annotated)
        one_each = all(count == 1 for count in per_source.values()) and all(len(item.annotations) == 1 for item in annotated)
        by_file = Counter((item.source, item.path) for item in items)
        anchors = [item for item in items if item.is_video or item.has_signals]
        if any(count > 1 for count in by_file.values()):
            return groups
        if certain:
            if not (one_each and len(per_source) > 1):
                return groups
        elif not self._is_one_recording(groups, items, anchors, one_each=one_each):
            return groups
        names = ", ".join(str(item) for item in items[:5]) + (f" and {len(items) - 5} more" if len(items) > 5 else "")
        self.notes.append(Note(f"taken as one recording, as each holds only one: {names}"))
        return _joined(groups, groups)

    def _is_one_recording(self, groups: list[_Group], items: list[_Item], anchors: list[_Item], *, one_each: bool) -> bool:
        videos, signals = [i for i in anchors if i.is_video], [i for i in anchors if i.has_signals]
        if len(videos) > 1 or len(signals) > 1:
            return False
        explicit = all(not self.sources[item.source].is_dir() for item in items)
        anchored = bool(anchors) and (explicit or not any(_is_anchored(group) for group in groups))
        if not (anchored or (one_each and len(self.sources) > 1)):
            return False
        named = [item for item in items if item.media and not item.is_video]
        if any(not _related(first.media, second.media) for first, second in combinations(named, 2)):
            self.notes.append(Note("different recordings, as the files name different media files: " + _listed(named)))
            return False
        if not _lengths_agree(items):
            lengths = ", ".join(f"{item} {_length_text(item)}" for item in items if item.recording is not None)
            self.notes.append(Note(f"different recordings, as the lengths differ: {lengths}"))
            return False
        return True

    def _drop_copies(self, groups: list[_Group]) -> None:
        """Keep one of several files of a source that hold the same bouts, such as a BORIS project and the tables exported from it."""
        for group in groups:
            kept: list[_Item] = []
            for item in group.items:
                original = next((other for other in kept if other.source == item.source and _same_bouts(other, item)), None)
                if original is None:
                    kept.append(item)
                else:
                    self.notes.append(Note(f"{item.path} holds the same bouts as {original.path}; used once", group.name))
            group.items = kept

    def _use_one_clock(self, groups: list[_Group]) -> None:
        """Read files without a frame rate of their own at the rate of those they are matched with."""
        everywhere = {item.recording.rate for item in self.items if item.recording is not None and item.has_clock}
        for group in groups:
            without = [item for item in group.items if item.recording is not None and not item.has_clock]
            with_clock = [item for item in group.items if item.has_clock]
            rates = {item.recording.rate for item in with_clock if item.recording is not None}
            origin = f"the rate of {with_clock[0].path}" if with_clock else "the only rate that the other files state"
            if without and not rates:
                rates, origin = self._video_rate(group) or (everywhere, origin)
            if len(rates) != 1:
                continue
            (clock,) = rates
            for item in without:
                if item.recording is not None and clock is not None and item.recording.rate != clock:
                    self.notes.append(Note(f"no frame rate is stated; using {clock:g} Hz, {origin}", str(item.path)))
                    item.read_again(clock)

    def _video_rate(self, group: _Group) -> tuple[set[float | None], str] | None:
        video = next((item for item in group.items if item.is_video), None)
        if video is None:
            return None
        try:
            return {probe(video.path).rate}, f"the rate of {video.path}"
        except EthobenchError as error:
            self.notes.append(Note(f"the frame rate of the video is unknown ({error})", group.name))
            return None


AnnotatorNames: TypeAlias = dict[tuple[int, str], str]


def _annotator_names(groups: Sequence[Sequence[_Item]], sources: Sequence[Path]) -> AnnotatorNames:
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
                    name = "/".join(parts) or DEFAULT_ANNOTATOR
                unique = next(n for n in (name, *(f"{name} {k}" for k in range(2, len(taken) + 3))) if n not in taken)
                taken.add(unique)
                names[id(item), who] = unique
    return names


def _is_named(item: _Item, annotator: str) -> bool:
    """Whether the file names the annotator, rather than the recording or nobody."""
    ids = (item.name, item.recording.id if item.recording is not None else "")
    return annotator != DEFAULT_ANNOTATOR and annotator not in ids


def _names_in_several_sources(items: Sequence[_Item]) -> set[str]:
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


def _name_within(item: _Item, others: Sequence[_Item]) -> str:
    """Name a file of a source by its subfolder, if no other file of the recording has the same; else by its file name."""
    subfolder = item.path.parent
    return recording_name(item.path) if any(other.path.parent == subfolder for other in others) else subfolder.name


def _named_annotations(items: Iterable[_Item], names: AnnotatorNames) -> dict[str, Annotation]:
    return {names[id(item), who]: a for item in items for who, a in item.annotations.items()}


def _merge(group: _Group, names: AnnotatorNames, rate: float | None, notes: list[Note]) -> Recording:
    """Make one recording of all items of a group."""
    video = next((item.path for item in group.items if item.is_video), None)
    items = [item for item in group.items if item.recording is not None]
    if not items:
        return _recording_of_video(group, rate)
    main = next((item for item in items if item.has_signals), items[0]).recording
    assert main is not None  # noqa: S101
    annotations = _named_annotations(items, names)
    clock, origin = main.rate, main.clock_origin
    for item in items:
        if clock is None and item.recording is not None and item.recording.rate is not None:
            clock, origin = item.recording.rate, item.recording.clock_origin
            if origin is ClockOrigin.ASSUMED:
                notes.append(Note(f"no file states a frame rate; assuming {clock:g} Hz (give the rate to change that)", group.name))
    lengths = [_frames_at(item.recording, clock) for item in items if item.recording is not None]
    n_frames = max((n for n in lengths if n is not None), default=None)
    on_clock = {name: a for name, a in annotations.items() if a.rate == clock}
    equal, more = equalize_lengths(on_clock, group.name, n_frames=n_frames)
    notes += more
    individuals = [i.recording.individual for i in items if i.recording is not None]
    plain = {name for i in items if i.recording is not None for name in (i.recording.id, recording_name(i.path))}
    individual = next((name for name in individuals if name not in plain), "")
    return main.copy(
        id=group.name,
        individual=individual,
        annotations={**annotations, **equal},
        subjects=tuple(dict.fromkeys(s for item in items if item.recording is not None for s in item.recording.subjects)),
        rate=clock,
        n_frames=n_frames,
        video=video or main.video,
        notes=tuple(note for item in items for note in item.notes),
        clock_origin=origin,
    )


def _frames_at(recording: Recording, rate: float | None) -> int | None:
    """Return the length of a recording in frames of another clock."""
    if recording.n_frames is None or recording.rate is None or rate is None:
        return recording.n_frames
    return round(recording.n_frames / recording.rate * rate)


def _recording_of_video(group: _Group, rate: float | None) -> Recording:
    """Make a recording of a video alone; its clock is the video's unless a rate is given."""
    video = probe(group.items[0].path)
    n_frames = video.n_frames if rate is None else round(video.duration * rate)
    origin = ClockOrigin.STATED if rate is None else ClockOrigin.GIVEN
    return Recording(group.name, rate=rate or video.rate, n_frames=n_frames, video=video.path, clock_origin=origin)


def _grouped(items: Iterable[_Item], key: Callable[[_Item], str]) -> list[list[_Item]]:
    groups: dict[str, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _joined(groups: list[_Group], together: list[_Group]) -> list[_Group]:
    """Put all items of some groups into the first of them."""
    first, *others = together
    for other in others:
        first.absorb(other)
    return [group for group in groups if group is first or all(group is not other for other in others)]


def _tokens(name: str) -> tuple[str, ...]:
    """Split a name at ``_``, ``-``, ``.`` and spaces; what pose trackers add to the name of a video is left out."""
    plain = TRACKER_SUFFIX.sub("", name)
    return tuple(part for part in re.split(r"[_\-.\s]+", plain.casefold()) if part)


def _is_affix(tokens: Sequence[str]) -> bool:
    """Whether tokens can name a person, a model or a pass; numbers tell recordings apart."""
    return bool(tokens) and all(re.search(r"[^\W\d]", token) for token in tokens)


def _without_common_affix(names: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Remove the tokens with which all of several names begin or end, as long as names remain."""
    if len(names) < 2:
        return list(names)
    shortest = min(map(len, names))
    head = next((k for k in range(shortest) if len({name[k] for name in names}) > 1), shortest)
    tail = next((k for k in range(shortest - head) if len({name[-1 - k] for name in names}) > 1), 0)
    cores = [name[head : len(name) - tail] for name in names]
    affixes = [*names[0][:head], *names[0][len(names[0]) - tail :]]
    return cores if _is_affix(affixes) and all(cores) and len(set(cores)) == len(names) else list(names)


def _extends(longer: tuple[str, ...], shorter: tuple[str, ...]) -> bool:
    """Whether a name is another one with an affix before or after it, or the same."""
    n = len(shorter)
    if not n or len(longer) < n:
        return False
    return longer == shorter or any(
        core == shorter and _is_affix(affix) for core, affix in ((longer[:n], longer[n:]), (longer[-n:], longer[:-n]))
    )


def _is_anchored(group: _Group) -> bool:
    """Whether annotations are matched with a video, poses or signals."""
    return any(item.is_video or item.has_signals for item in group.items) and any(item.annotations for item in group.items)


def _lengths_agree(items: Iterable[_Item]) -> bool:
    recordings = [item.recording for item in items if item.recording is not None and item.recording.n_frames]
    return all(_same_length(first, second) for first, second in combinations(recordings, 2))


def _same_length(first: Recording, second: Recording) -> bool:
    """Whether lengths in seconds, or in frames if one has no clock, agree; one that ends with its last bout may be shorter."""
    clocks = [r.rate is not None and r.clock_origin is not ClockOrigin.ASSUMED for r in (first, second)]
    pairs = [] if all(clocks) else [(float(first.n_frames or 0), float(second.n_frames or 0), 1.0)]
    if first.rate and second.rate:
        pairs.append(((first.n_frames or 0) / first.rate, (second.n_frames or 0) / second.rate, 1.0))
    for one, two, least in pairs:
        shorter = first if one < two else second
        if abs(one - two) <= max(least, LENGTH_TOLERANCE * max(one, two)):
            return True
        if shorter.annotations and shorter.signals is None and all(_ends_with_last_bout(a) for a in shorter.annotations.values()):
            return True
    return False


def _length_text(item: _Item) -> str:
    r = item.recording
    if r is None or not r.n_frames:
        return ""
    return f"{r.n_frames} frames" if r.rate is None or not item.has_clock else f"{r.n_frames / r.rate:g} s"


def _related(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether one of the media names of one side begins with one of the other side, as those of re-encoded videos do."""
    return any(a.startswith(b) or b.startswith(a) for a in first for b in second)


def _media_name(name: str) -> str:
    return PurePath(str(name).replace("\\", "/")).stem.casefold()


def _same_bouts(first: _Item, second: _Item) -> bool:
    if len(first.annotations) != 1 or len(second.annotations) != 1 or first.has_signals or second.has_signals:
        return False
    sides = [next(iter(item.annotations.values())) for item in (first, second)]
    bouts = [
        sorted(
            zip(a.start.tolist(), a.stop.tolist(), (a.ethogram[int(c)].name for c in a.behavior), a.names(a.subject), strict=True), key=str
        )
        for a in sides
    ]
    return sides[0].rate == sides[1].rate and bouts[0] == bouts[1]


def _listed(items: Sequence[_Item]) -> str:
    return ", ".join(f"{item.path} ({min(item.media)})" for item in items[:5])
