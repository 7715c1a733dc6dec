"""Contents of loose files: one `Item` for each recording in each file, before items are matched by recording."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from ethobench.core import Annotation, ClockOrigin, Dataset, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, Note, NotFoundError, ParameterError
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.core.video import VIDEO_SUFFIXES
from ethobench.core.wording import join_names
from ethobench.datasets.base import all_names
from ethobench.datasets.manifest_tables import MANIFEST
from ethobench.formats import Format, detect, read_at_rate
from ethobench.formats.bebe import METADATA as BEBE_METADATA
from ethobench.formats.reader_options import check_options, entries_with, options_for

LONG_SUFFIXES = (".bebe.csv", ".calms21.json")
TRACKER_SUFFIX = re.compile(
    r"^.*\.slp\.\d+_|(?<=[^_\W])(DLC|DeepCut)_.*|_superanimal_.*|[_.](analysis|predictions|keypoints|pose_est_v\d+)(_(filtered|labeled))?$",
    re.IGNORECASE,
)
"""What pose trackers append to the name of a video; SLEAP also adds the name of its project before it."""

AnnotatorNames: TypeAlias = dict[tuple[int, str], str]
"""Names of annotators by ``(id(item), name in the file)``."""

LENGTH_TOLERANCE = 0.01
"""Relative difference in length up to which files may be the same recording; differences below a second are always tolerated."""


def recording_name(path: Path) -> str:
    """Return the name of a file without the suffix of its format.

    Examples
    --------
    >>> recording_name(Path("study/m1.calms21.json"))
    'm1'
    """
    name = unicodedata.normalize("NFC", path.name)
    suffix = next((suffix for suffix in LONG_SUFFIXES if name.endswith(suffix)), path.suffix)
    return name.removesuffix(suffix)


def is_dataset(path: Path) -> bool:
    """Whether a path is a manifest (``recordings.csv``), a folder with a manifest or with BEBE's metadata, or the name of a dataset."""
    is_study = path.name == MANIFEST or (path / MANIFEST).is_file() or (path / BEBE_METADATA).is_file()
    return is_study or is_dataset_name(path)


def is_dataset_name(path: Path) -> bool:
    """Whether there is no file or folder of this path, but a named dataset, such as ``bebe/HAR``."""
    return not path.exists() and path.as_posix() in all_names()


def check_source(path: Path) -> None:
    """Raise a `NotFoundError` if something is neither a path nor the name of a dataset; it lists similar ones.

    Examples
    --------
    >>> check_source(Path("synthetic/pse"))
    Traceback (most recent call last):
    ...
    ethobench.core.errors.NotFoundError: synthetic/pse: no such file, folder or dataset; did you mean 'synthetic/pose'?
    """
    if path.exists() or is_dataset_name(path):
        return
    siblings = [path.with_name(p.name).as_posix() for p in path.parent.iterdir()] if path.parent.is_dir() else []
    similar = get_close_matches(path.as_posix(), [*siblings, *all_names()], n=1, cutoff=0.75)
    hint = f"; did you mean {similar[0]!r}?" if similar else ". `ethobench datasets list` lists datasets"
    raise NotFoundError(f"{path}: no such file, folder or dataset{hint}")


def list_files(path: Path, *, videos: bool = False) -> tuple[list[Path], list[Note]]:
    """List a file itself, or the files below a folder whose format is recognized; the notes name skipped files.

    Parameters
    ----------
    path : Path
    videos : bool
        Whether to list videos, too.
    """
    if not path.is_dir():
        return [path], []
    files, skipped = [], []
    for file, reader in detect_files(path):
        if isinstance(reader, OSError):
            raise reader
        if isinstance(reader, FormatError):
            skipped.append(file)
        elif reader is not None or videos:
            files.append(file)
    return files, skipped_files_note(path, skipped)


def detect_files(folder: Path) -> Iterator[tuple[Path, Format | FormatError | OSError | None]]:
    """Yield the files below a folder, sorted, each with its format, the error if it has none, or None for a video.

    Hidden files, and files in hidden folders, are skipped.
    """
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and not _is_hidden(p.relative_to(folder))):
        if file.suffix.lower() in VIDEO_SUFFIXES:
            yield file, None
            continue
        try:
            yield file, detect(file)
        except (FormatError, OSError) as error:
            yield file, error


def skipped_files_note(folder: Path, skipped: Sequence[Path]) -> list[Note]:
    """Return a note that names files that were skipped since their format is not recognized; none if there are none."""
    if not skipped:
        return []
    names = join_names((file.name for file in skipped), "", most=5)
    return [Note(f"skipped, since their format is not recognized: {names}", str(folder), "skipped-files")]


def _is_hidden(path: Path) -> bool:
    return any(name.startswith(".") for name in path.parts)


def ends_with_last_bout(annotation: Annotation) -> bool:
    """Whether the length of an annotation may be just the end of its last bout: all frames are observed, and a bout ends it."""
    n_frames = annotation.n_frames
    return len(annotation) > 0 and int(annotation.stop.max()) == n_frames and annotation.observed.is_complete(n_frames)


@dataclass
class Item:
    """One recording in one file, or a video file.

    Attributes
    ----------
    source : int
        Index of the path that the user passed.
    path : Path
    name : str
        Name of the recording: its id in a file with several, else the name of the file.
    recording : Recording or None
        None for a video.
    index : int
        Position of the recording in its file.
    named_inside : bool
        Whether `name` is the id in the file.
    entry : str, optional
        The only entry that was read from the file.
    annotator : str
        Name for annotations whose file names no annotator.
    options : mapping of str to object
        Options that the file was read with.
    of_dataset : bool
        Whether the recording is from a study with a manifest.
    length_stated : bool
        Whether the file has a label for every frame, or states its length and labels all of it.
    match_key : int, optional
        The same for items that the user stated to be one recording; None for others.
    matched_by : str
        Rule that put it with the other files of its recording; see `ethobench.datasets.collate`.
    subject : str
        The only subject whose bouts are used; all if empty.
    """

    source: int
    path: Path
    name: str
    recording: Recording | None = None
    index: int = 0
    named_inside: bool = False
    entry: str | None = None
    annotator: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    of_dataset: bool = False
    length_stated: bool = False
    match_key: int | None = None
    matched_by: str = "name"
    subject: str = ""

    @property
    def annotations(self) -> Mapping[str, Annotation]:
        """Annotations by annotator; empty for a video."""
        return {} if self.recording is None else self.recording.annotations

    @property
    def is_video(self) -> bool:
        """Whether this is a video file."""
        return self.recording is None

    @property
    def notes(self) -> list[Note]:
        """Notes of the reader, with the file they are about."""
        notes = () if self.recording is None else self.recording.notes
        return [Note(note.message, f"{self.path}{', ' + note.location if note.location else ''}", note.code) for note in notes]

    @property
    def has_signals(self) -> bool:
        """Whether the file has poses or signals."""
        return self.recording is not None and self.recording.has_signals

    @cached_property
    def media(self) -> frozenset[str]:
        """Names of the media files that the recording is about, without folders and suffixes."""
        if self.recording is None:
            return frozenset([self.name.casefold()])
        names = self.recording.metadata.get("media") or ()
        return frozenset(PurePath(str(name).replace("\\", "/")).stem.casefold() for name in names)

    @cached_property
    def tracked_video(self) -> str:
        """Name of the video that poses were tracked in, if the file is named after it as by pose trackers; empty for other files."""
        name = TRACKER_SUFFIX.sub("", recording_name(self.path)).casefold()
        return name if self.has_signals and not self.annotations and not self.named_inside else ""

    @property
    def has_clock(self) -> bool:
        """Whether the frame rate is known, not assumed by the reader."""
        r = self.recording
        return r is not None and r.rate is not None and (self.of_dataset or r.clock_origin is not ClockOrigin.ASSUMED)

    @property
    def n_frames(self) -> int:
        """Length in frames; 0 if unknown."""
        return (self.recording.n_frames or 0) if self.recording is not None else 0

    @property
    def seconds(self) -> float:
        """Length in seconds; 0 if unknown."""
        return self.n_frames / self.recording.rate if self.recording is not None and self.recording.rate else 0.0

    @cached_property
    def may_be_longer(self) -> bool:
        """Whether the recording may be longer than the item, which ends with its last bout."""
        is_stated = self.length_stated or self.has_signals or not self.annotations
        return not is_stated and all(ends_with_last_bout(a) for a in self.annotations.values())

    def read_at(self, rate: float, origin: ClockOrigin) -> None:
        """Read the recording again, at the frame rate of another file."""
        self.recording = read_at_rate(self.path, rate, entry=self.entry, **self.options)[self.index]
        self.recording.clock_origin = origin

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.named_inside and self.name != recording_name(self.path) else str(self.path)


def read_items(
    sources: Sequence[Path],
    rate: float | None,
    *,
    annotations_only: bool,
    datasets: Mapping[int, Dataset] | None = None,
    entry: str | None = None,
    keep_single: bool = False,
    options: Mapping[str, Any] | None = None,
) -> tuple[list[Item], list[Note]]:
    """Read all files of all sources.

    Parameters
    ----------
    sources : sequence of Path
        Files, folders of files, or studies.
    rate : float or None
        Frames per second of files that do not state it.
    annotations_only : bool
        Whether to skip videos, and files with only poses or signals.
    datasets : mapping of int to Dataset, optional
        Sources, by index, that are loaded already.
    entry : str, optional
        Read only this observation, channel or recording; files without it are skipped.
    keep_single : bool
        Whether to read a source without the entry completely if each of its files has one recording, such as predictions to compare with
        one observation of a project.
    options : mapping of str to object, optional
        Options of the readers. Each is passed to the formats that have it; one that no file's format has is an error.

    Raises
    ------
    ParameterError
        If an option is unknown, or all sources are datasets, which state the options of their files themselves.
    NotFoundError
        If a source is neither a path nor the name of a dataset, or if nothing has the entry.
    """
    items: list[Item] = []
    notes: list[Note] = []
    entries: set[str] = set()
    loose = [(number, source) for number, source in enumerate(sources) if _is_loose(source, number, datasets)]
    files_of = {number: list_files(source, videos=not annotations_only) for number, source in loose}
    if options:
        _check_reader_options(sources, [file for files, _ in files_of.values() for file in files], options)
    for number, source in enumerate(sources):
        dataset = (datasets or {}).get(number)
        if dataset is not None or is_dataset(source):
            in_dataset = _items_of_dataset(number, source, dataset, annotations_only)
            entries |= {item.name for item in in_dataset}
            items += [item for item in in_dataset if entry in (None, item.name)]
        else:
            files, skipped = files_of[number]
            notes += skipped
            available = {file: _entries(file, options or {}) if entry is not None else [] for file in files}
            entries |= {name for names in available.values() for name in names}
            is_single = all(len(names) == 1 and entry not in names for names in available.values())
            chosen = None if keep_single and is_single else entry
            for file in files:
                if chosen is None or chosen in available[file]:
                    items += _items_of_file(number, file, rate, annotations_only, chosen, options)
    if entry is not None and entry not in entries:
        similar = get_close_matches(entry, entries, n=1)
        hint = f"; did you mean {similar[0]!r}?" if similar else "."
        listed = ", ".join(sorted(entries)[:10]) + (", ..." if len(entries) > 10 else "")
        raise NotFoundError(f"no file has an entry {entry!r}{hint} Available: {listed}")
    return items, notes


def _is_loose(source: Path, number: int, datasets: Mapping[int, Dataset] | None) -> bool:
    """Whether a source is a file or a folder of files; raises an error if there is none."""
    if number in (datasets or {}) or is_dataset(source):
        return False
    check_source(source)
    return True


def _check_reader_options(sources: Sequence[Path], files: Sequence[Path], options: Mapping[str, Any]) -> None:
    if not files:
        listed = ", ".join(map(str, sources))
        raise ParameterError(f"{listed}: datasets have no options for reading; state them in column 'options' of recordings.csv")
    check_options([detect(file) for file in files if file.suffix.lower() not in VIDEO_SUFFIXES], options)


def _entries(file: Path, options: Mapping[str, Any]) -> list[str]:
    return [file.stem] if file.suffix.lower() in VIDEO_SUFFIXES else entries_with(detect(file), file, options)


def _items_of_dataset(number: int, path: Path, dataset: Dataset | None, annotations_only: bool) -> list[Item]:
    """List the recordings of a study; `load_dataset` has issued its notes as warnings."""
    from ethobench.datasets import load_dataset

    data = load_dataset(path) if dataset is None else dataset
    recordings = [r.copy(notes=()) for r in data if r.annotations or not annotations_only]
    return [Item(number, path, r.id, r, named_inside=True, of_dataset=True) for r in recordings]


def _items_of_file(
    number: int,
    file: Path,
    rate: float | None,
    annotations_only: bool,
    entry: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Item]:
    if file.suffix.lower() in VIDEO_SUFFIXES:
        return [] if annotations_only else [Item(number, file, file.stem)]
    reader = detect(file)
    if annotations_only and "annotations" not in reader.contents:
        return []
    chosen = options_for(reader, options)
    items = items_of_recordings(number, file, read_at_rate(file, rate, reader.name, entry=entry, **chosen), reader, entry)
    for item in items:
        item.options = chosen
    return [item for item in items if item.annotations or not annotations_only]


def items_of_recordings(number: int, file: Path, recordings: Sequence[Recording], reader: Format, entry: str | None = None) -> list[Item]:
    """List the recordings that were read from a file.

    Parameters
    ----------
    number : int
        Index of the source.
    file : Path
    recordings : sequence of Recording
    reader : Format
        The format of the file.
    entry : str, optional
        The only entry that was read.
    """
    has_names = reader.multiple_recordings or len(recordings) > 1
    items = []
    for index, recording in enumerate(recordings):
        named_inside = has_names and (entry is None or recording.id != f"{file.stem}/{entry}")  # one stream of a file is named by the file
        name = recording.id if named_inside else recording_name(file)
        is_stated = reader.per_frame or ("length" in reader.keeps and _labels_every_frame(recording))
        items.append(Item(number, file, name, recording, index, named_inside, entry, length_stated=is_stated))
    return items


def _labels_every_frame(recording: Recording) -> bool:
    """Whether bouts cover all frames, so that an end without a bout would have been labeled, too."""
    return all(iv.total(iv.union(iv.Intervals(a.start, a.stop))) == a.n_frames for a in recording.annotations.values())


def annotator_names(groups: Sequence[Sequence[Item]], sources: Sequence[Path], *, name_by_file: bool = False) -> AnnotatorNames:
    """Name the annotators of all items.

    A name in a file is kept, unless several sources have it. An annotator without a name is called by what distinguishes the path of its
    source from the others, or by the subfolder or file within the source.
    """
    labels = _distinct_names(sources)
    is_shared = any(len({item.source for item in items if item.annotations}) > 1 for items in groups)
    ambiguous = {name for items in groups for name in _names_in_several_sources(items)}
    names: AnnotatorNames = {}
    for items in groups:
        used: set[str] = set()
        for item in items:
            siblings = [other for other in items if other is not item and other.source == item.source and other.annotations]
            for annotator in item.annotations:
                if _is_named(item, annotator) and annotator not in ambiguous:
                    name = annotator
                elif _is_named(item, annotator) and len(item.annotations) > 1:
                    name = f"{annotator} ({labels[item.source]})"
                elif item.annotator:
                    name = item.annotator
                else:
                    components = [labels[item.source]] if is_shared else []
                    components += [_name_in_source(item, siblings)] if siblings else []
                    name = "/".join(components) or (recording_name(item.path) if name_by_file else DEFAULT_ANNOTATOR)
                unique = next(n for n in (name, *(f"{name} {k}" for k in range(2, len(used) + 3))) if n not in used)
                used.add(unique)
                names[id(item), annotator] = unique
    return names


def name_unnamed(groups: Sequence[Sequence[Item]], n_sources: int, names: Sequence[str]) -> bool:
    """Name the annotators of files that name none; nothing is changed if that is not possible.

    Parameters
    ----------
    groups : sequence of sequence of Item
        Items of each recording.
    n_sources : int
        Number of paths that the user passed.
    names : sequence of str
        One name for the only annotator of all recordings, or one for each path.

    Returns
    -------
    bool
        Whether the names were used: all files name no annotator, and each recording has one annotation for each name at most.
    """
    annotated = [[item for item in items if item.annotations] for items in groups]
    is_unnamed = all(has_unnamed_annotator(item) for items in annotated for item in items)
    is_single = len(names) == 1 and all(len(items) <= 1 for items in annotated)
    is_per_source = len(names) == n_sources and all(len({i.source for i in items}) == len(items) for items in annotated)
    if not is_unnamed or not (is_single or is_per_source):
        return False
    for items in annotated:
        for item in items:
            item.annotator = names[0] if is_single else names[item.source]
    return True


def has_unnamed_annotator(item: Item) -> bool:
    """Whether an item has one annotation, whose annotator the file does not name."""
    return len(item.annotations) == 1 and not _is_named(item, next(iter(item.annotations)))


def has_named_annotator(recording: Recording) -> bool:
    """Whether an annotator of a recording has a name: not the default one, and not that of the recording."""
    return any(name not in (DEFAULT_ANNOTATOR, recording.id, recording.source_id) for name in recording.annotations)


def _is_named(item: Item, annotator: str) -> bool:
    """Whether the file names the annotator: not the default name, and not the name of the recording."""
    ids = (item.name, item.recording.id if item.recording is not None else "")
    return annotator != DEFAULT_ANNOTATOR and annotator not in ids


def _names_in_several_sources(items: Sequence[Item]) -> set[str]:
    sources: dict[str, set[int]] = {}
    for item in items:
        for annotator in item.annotations:
            sources.setdefault(annotator, set()).add(item.source)
    return {annotator for annotator, numbers in sources.items() if len(numbers) > 1}


def _distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name paths by the last component in which they differ."""
    names = [recording_name(path) if path.is_file() else path.resolve().name for path in paths]
    if len(set(names)) == len(paths):
        return names
    parents = [path.resolve().parent.name for path in paths]
    return parents if len(set(parents)) == len(paths) else [str(path) for path in paths]


def _name_in_source(item: Item, siblings: Sequence[Item]) -> str:
    """Name a file of a source by its subfolder if no other file of the recording is in it, else by its file name."""
    subfolder = item.path.parent
    return recording_name(item.path) if any(other.path.parent == subfolder for other in siblings) else subfolder.name


def named_annotations(items: Iterable[Item], names: AnnotatorNames) -> dict[str, Annotation]:
    """Return the annotations of items under the names of `annotator_names`."""
    return {names[id(item), annotator]: a for item in items for annotator, a in item.annotations.items()}
