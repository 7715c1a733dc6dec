"""Which of many files belong to the same recording; the rules are in `ethobench.datasets.collate`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path, PurePath
from typing import TypeAlias

from ethobench.core import Annotation, ClockOrigin, Dataset, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.video import VIDEO_SUFFIXES, probe
from ethobench.datasets.manifest import MANIFEST
from ethobench.formats import detect, read_at_rate
from ethobench.formats.bebe import METADATA as BEBE_METADATA

LONG_SUFFIXES = (".bebe.csv", ".calms21.json")
TRACKER_SUFFIX = re.compile(r"(?<=[^_\W])DLC_.*|[_.](analysis|predictions|keypoints|pose_est_v\d+)$", re.IGNORECASE)
LENGTH_TOLERANCE = 0.01  # of a recording, by which lengths of the same recording may differ; and never less than a second
_Clock: TypeAlias = tuple[float, ClockOrigin, Path]


def ends_with_last_bout(a: Annotation) -> bool:
    """Whether the length of an annotation may only be that of its last bout: it was observed throughout, and a bout ends it."""
    return len(a) > 0 and int(a.stop.max()) == a.n_frames and a.observed.is_complete(a.n_frames)


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
class Item:
    """One recording in one file, or a video file."""

    source: int
    path: Path
    name: str
    recording: Recording | None = None
    index: int = 0
    named_inside: bool = False
    annotator: str = ""  # for annotations whose file names no annotator
    of_dataset: bool = False
    length_stated: bool = False  # the file has a label for every frame, or states its length and labels all of it

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
        return [Note(note.message, f"{self.path}{', ' + note.location if note.location else ''}") for note in notes]

    @property
    def has_signals(self) -> bool:
        return self.recording is not None and self.recording.has_signals

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

    @property
    def n_frames(self) -> int:
        return (self.recording.n_frames or 0) if self.recording is not None else 0

    @property
    def seconds(self) -> float:
        """Length in seconds; 0 where it is unknown."""
        return self.n_frames / self.recording.rate if self.recording is not None and self.recording.rate else 0.0

    @cached_property
    def may_be_longer(self) -> bool:
        """Whether the recording may be longer than the item, which ends with its last bout."""
        stated = self.length_stated or self.has_signals or not self.annotations
        return not stated and all(ends_with_last_bout(a) for a in self.annotations.values())

    def read_again(self, rate: float, origin: ClockOrigin) -> None:
        """Read the recording on the clock of another file."""
        self.recording = read_at_rate(self.path, rate)[self.index]
        self.recording.clock_origin = origin

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.named_inside and self.name != recording_name(self.path) else str(self.path)


@dataclass
class Group:
    """The items of one recording."""

    name: str
    items: list[Item] = field(default_factory=list)

    @property
    def sources(self) -> set[int]:
        return {item.source for item in self.items}

    @property
    def annotating_sources(self) -> set[int]:
        return {item.source for item in self.items if item.annotations}

    @property
    def has_signals_or_video(self) -> bool:
        return any(item.is_video or item.has_signals for item in self.items)

    @property
    def media(self) -> frozenset[str]:
        return frozenset[str]().union(*(item.media for item in self.items))

    def absorb(self, other: Group) -> None:
        self.items += other.items


class Matcher:
    """Reads files and sorts what they hold into groups, one for each recording."""

    def __init__(
        self, sources: Sequence[Path], rate: float | None, *, annotations_only: bool, datasets: Mapping[int, Dataset] | None = None
    ) -> None:
        self.sources, self.rate = sources, rate
        self.notes: list[Note] = []
        self.items: list[Item] = []
        for number, source in enumerate(sources):
            dataset = (datasets or {}).get(number)
            if dataset is not None or is_dataset(source):
                self.items += self._read_dataset(number, source, dataset, annotations_only)
            else:
                self.items += self._read_files(number, source, annotations_only)
        self._name_by_subfolder()

    def match(self, same_recording: bool | None) -> list[Group]:
        """Return the groups, their items on one clock."""
        groups = self._by_name()
        self._drop_copies(groups)
        groups = self._by_media(groups)
        if same_recording is not False:
            groups = self._by_affix(groups)
            groups = self._as_one_recording(groups, intended=bool(same_recording))
        self._use_one_clock(groups)
        return groups

    def _read_dataset(self, number: int, path: Path, dataset: Dataset | None, annotations_only: bool) -> list[Item]:
        """List the recordings of a study; `load_dataset` has warned of what was repaired."""
        from ethobench.datasets import load_dataset

        data = load_dataset(path) if dataset is None else dataset
        recordings = [r.copy(notes=()) for r in data if r.annotations or not annotations_only]
        return [Item(number, path, r.id, r, named_inside=True, of_dataset=True) for r in recordings]

    def _read_files(self, number: int, source: Path, annotations_only: bool) -> list[Item]:
        files, notes = list_files(source, videos=not annotations_only)
        self.notes += notes
        items = []
        for file in files:
            if file.suffix.lower() in VIDEO_SUFFIXES:
                items += [] if annotations_only else [Item(number, file, file.stem)]
                continue
            reader = detect(file)
            if annotations_only and "annotations" not in reader.contents:
                continue
            recordings = read_at_rate(file, self.rate, reader.name)
            inside = reader.several or len(recordings) > 1
            for index, recording in enumerate(recordings):
                if recording.annotations or not annotations_only:
                    name = recording.id if inside else recording_name(file)
                    stated = reader.per_frame or ("length" in reader.keeps and _labels_every_frame(recording))
                    items.append(Item(number, file, name, recording, index, inside, length_stated=stated))
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

    def _by_name(self) -> list[Group]:
        """Group items of the same name, unless they contradict each other."""
        groups: list[Group] = []
        for same in _grouped(self.items, lambda item: item.name):
            clusters: list[Group] = []
            for item in same:
                home = next((group for group in clusters if not any(_contradict(item, other) for other in group.items)), None)
                if home is None:
                    clusters.append(home := Group(item.name))
                home.items.append(item)
            if len(clusters) > 1:
                paths = Counter(self._path_within(group.items[0]) for group in clusters)
                for group in clusters:
                    path = self._path_within(group.items[0])
                    group.name = path if paths[path] == 1 else f"{path} ({group.items[0].path.name})"
                files = ", ".join(str(group.items[0]) for group in clusters[:5])
                self.notes.append(Note(f"different recordings, as lengths or media files differ: {files}", same[0].name))
            groups += clusters
        for group in groups:
            self._note_match_by_name(group)
        return groups

    def _path_within(self, item: Item) -> str:
        """Name an item by its folder within its source, and by the source where there are several."""
        source = self.sources[item.source]
        folders = item.path.parent.relative_to(source).parts if source.is_dir() else ()
        return "/".join([*([source.stem] if len(self.sources) > 1 else []), *folders, item.name])

    def _note_match_by_name(self, group: Group) -> None:
        """Note what speaks against a match by name, or makes it less certain."""
        named = [item for item in group.items if item.media and not item.is_video]
        for first, second in combinations(named, 2):
            if not _related(first.media, second.media):
                self.notes.append(Note(f"matched by name, although the media files differ: {_listed([first, second])}", group.name))
                break
        for number in group.sources:
            folders = {item.path.parent for item in group.items if item.source == number and item.annotations}
            if len(folders) > 1:
                names = ", ".join(sorted(folder.name for folder in folders))
                message = f"files of the same name are taken as annotators of one recording, named by folder: {names}"
                self.notes.append(Note(message, group.name))

    def _by_media(self, groups: list[Group]) -> list[Group]:
        """Join groups that are about the same media file, if each source has only one of them."""
        for media in sorted({name for group in groups for name in group.media}):
            sharing = [group for group in groups if media in group.media]
            if len(sharing) < 2:
                continue
            annotated = Counter(number for group in sharing for number in group.annotating_sources)
            names = ", ".join(repr(group.name) for group in sharing)
            if max(annotated.values(), default=0) > 1:
                if len(annotated) > 1:
                    self.notes.append(Note(f"{names} are about the same media file {media!r}; kept apart, as one side has several of them"))
                continue
            self.notes.append(Note(f"{names} are about the same media file {media!r}; taken as one recording", sharing[0].name))
            groups = _joined(groups, sharing)
        return groups

    def _by_affix(self, groups: list[Group]) -> list[Group]:
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
            tokens = _tokens(group.name)
            alike = [other for other in groups if other is not group and _nearest(other, groups) is group]
            folders = Counter(n for other in alike for n in other.annotating_sources if self.sources[n].is_dir())
            if not group.has_signals_or_video and max(folders.values(), default=0) > 1:
                names = ", ".join(repr(other.name) for other in alike)
                self.notes.append(Note(f"not matched, as several names are the same but for an affix: {names}", group.name))
                continue
            for other in alike:
                if self._can_be_one([group, other]):
                    groups = self._join_alike(groups, [group, other], tokens)
        return groups

    def _can_be_one(self, groups: Sequence[Group]) -> bool:
        """Whether groups of similar names can be one recording.

        Their lengths agree, no two videos or pose files are among them, and no file or folder has annotations in several of them, unless
        the first group has the video, poses or signals of the recording.
        """
        items = [item for group in groups for item in group.items]
        files = Counter((item.source, item.path) for item in items)
        kinds = Counter("video" if item.is_video else "signals" for item in items if item.is_video or item.has_signals)
        folders = Counter(n for group in groups for n in group.annotating_sources if self.sources[n].is_dir())
        apart = max(folders.values(), default=0) <= 1 or groups[0].has_signals_or_video
        return apart and max(files.values()) == 1 and max(kinds.values(), default=0) <= 1 and _lengths_agree(items)

    def _join_alike(self, groups: list[Group], alike: list[Group], core: tuple[str, ...]) -> list[Group]:
        shortest = min((group.name for group in alike), key=len)
        name = shortest if _tokens(shortest) == core else "_".join(core)
        names = ", ".join(repr(group.name) for group in alike)
        self.notes.append(Note(f"{names} have the same name but for an affix; taken as one recording", name))
        joined = _joined(groups, alike)
        joined[[id(group) for group in joined].index(id(alike[0]))].name = name
        return joined

    def _as_one_recording(self, groups: list[Group], *, intended: bool) -> list[Group]:
        """Join all groups if they can only be one recording; `intended` if paths that hold one recording each are meant to be the same."""
        items = [item for group in groups for item in group.items]
        if len(groups) < 2 or not self._may_be_one_recording(groups, items):
            return groups
        annotated = [item for item in items if item.annotations]
        if intended and len(self.sources) == 2:
            differing = any(_contradict(first, second) for first, second in combinations(annotated, 2))
            reason = f"lengths and media files differ: {_listed(annotated)}" if differing else ""
        else:
            reason = _difference(items, numbers=not intended)
        if reason:
            self.notes.append(Note(f"different recordings, as {reason}"))
            return groups
        self.notes.append(Note(f"taken as one recording, as each holds only one: {_listed(items)}"))
        return _joined(groups, groups)

    def _may_be_one_recording(self, groups: Sequence[Group], items: Sequence[Item]) -> bool:
        """Whether each file holds one recording, and there is one video or pose file for all of them or one annotation for each path."""
        files = Counter((item.source, item.path) for item in items)
        kinds = Counter("video" if item.is_video else "signals" for item in items if item.is_video or item.has_signals)
        if max(files.values()) > 1 or max(kinds.values(), default=0) > 1:
            return False
        explicit = all(not self.sources[item.source].is_dir() for item in items)
        anchored = bool(kinds) and (explicit or not any(g.has_signals_or_video and g.annotating_sources for g in groups))
        annotated = [item for item in items if item.annotations]
        sources = Counter(item.source for item in annotated)
        one_each = len(sources) > 1 and max(sources.values()) == 1 and all(len(item.annotations) == 1 for item in annotated)
        return anchored or one_each

    def _drop_copies(self, groups: list[Group]) -> None:
        """Keep one of several files of a folder that hold the same bouts, such as a BORIS project and the tables exported from it."""
        for group in groups:
            kept: list[Item] = []
            for item in group.items:
                original = next((other for other in kept if _is_copy(item, other)), None)
                if original is None:
                    kept.append(item)
                else:
                    self.notes.append(Note(f"{item.path} holds the same bouts as {original.path}; used once", group.name))
            group.items = kept

    def _use_one_clock(self, groups: list[Group]) -> None:
        """Read files without a frame rate of their own at the rate of those they are matched with."""
        stated = _clocks(self.items)
        for group in groups:
            without = [item for item in group.items if item.recording is not None and not item.has_clock and not item.of_dataset]
            if not without:
                continue
            clocks = _clocks(group.items) or self._video_clock(group) or stated
            if len({rate for rate, _, _ in clocks}) != 1:
                continue
            rate, origin, path = clocks[0]
            for item in without:
                if item.recording is not None and item.recording.rate == rate:
                    item.recording.clock_origin = origin
                elif item.recording is not None:
                    self.notes.append(Note(f"no frame rate is stated; using {rate:g} Hz, the rate of {path}", str(item.path)))
                    item.read_again(rate, origin)

    def _video_clock(self, group: Group) -> list[_Clock]:
        video = next((item for item in group.items if item.is_video), None)
        if video is None:
            return []
        try:
            return [(probe(video.path).rate, ClockOrigin.STATED, video.path)]
        except EthobenchError as error:
            self.notes.append(Note(f"the frame rate of the video is unknown ({error})", group.name))
            return []


def _clocks(items: Iterable[Item]) -> list[_Clock]:
    """Return the clocks of the items that have one: rate, origin and file."""
    return [(r.rate, r.clock_origin, item.path) for item in items if item.has_clock and (r := item.recording) is not None and r.rate]


def _grouped(items: Iterable[Item], key: Callable[[Item], str]) -> list[list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _joined(groups: list[Group], together: list[Group]) -> list[Group]:
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


def _nearest(group: Group, groups: Iterable[Group]) -> Group | None:
    """Return the group whose name is the longest that the name of another one extends, if there is only one."""
    tokens = _tokens(group.name)
    shorter = [other for other in groups if other is not group and _extends(tokens, _tokens(other.name))]
    longest = max((len(_tokens(other.name)) for other in shorter), default=0)
    nearest = [other for other in shorter if len(_tokens(other.name)) == longest]
    return nearest[0] if len(nearest) == 1 else None


def _lengths_agree(items: Iterable[Item]) -> bool:
    measured = [item for item in items if item.recording is not None and item.recording.n_frames]
    return all(_same_length(first, second) for first, second in combinations(measured, 2))


def _same_length(first: Item, second: Item) -> bool:
    """Whether lengths in seconds, or in frames if one has no clock, agree; one that ends with its last bout may be shorter."""
    lengths: list[tuple[float, float]] = [] if first.has_clock and second.has_clock else [(first.n_frames, second.n_frames)]
    if first.seconds and second.seconds:
        lengths.append((first.seconds, second.seconds))
    for one, two in lengths:
        shorter = first if one < two else second
        if abs(one - two) <= max(1, LENGTH_TOLERANCE * max(one, two)) or shorter.may_be_longer:
            return True
    return False


def _difference(items: Sequence[Item], *, numbers: bool) -> str:
    """Say why files are not one recording: media files, lengths or, with `numbers` and without a video or poses, numbers in names."""
    named = [item for item in items if item.media and not item.is_video]
    if any(not _related(first.media, second.media) for first, second in combinations(named, 2)):
        return f"media files differ: {_listed(named)}"
    if not _lengths_agree(items):
        texts = [
            f"{item.path} ({f'{item.seconds:g} s' if item.has_clock else f'{item.n_frames} frames'})" for item in items if item.n_frames
        ]
        return f"lengths differ: {', '.join(texts[:5])}"
    patterns = Counter(re.sub(r"\d+", "#", item.name) for item in items)
    if numbers and max(patterns.values()) > 1 and not any(item.is_video or item.has_signals for item in items):
        return f"names differ in a number: {_listed(items)}"
    return ""


def _contradict(first: Item, second: Item) -> bool:
    """Whether two items of the same name cannot be one recording.

    Those of one folder are, if their media files are the same and their lengths agree. Those of two, each of which names its recordings
    once, are even if one of these differs.
    """
    if not (first.annotations and second.annotations):
        return False
    lengths = first.n_frames > 0 and second.n_frames > 0 and not _same_length(first, second)
    media = bool(first.media and second.media) and not (first.is_video or second.is_video) and not _related(first.media, second.media)
    return (lengths or media) if first.source == second.source else (lengths and media)


def _related(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether one of the media names of one side begins with one of the other side, as those of re-encoded videos do."""
    return any(a.startswith(b) or b.startswith(a) for a in first for b in second)


def _media_name(name: str) -> str:
    return PurePath(str(name).replace("\\", "/")).stem.casefold()


def _labels_every_frame(recording: Recording) -> bool:
    """Whether bouts cover all frames, so that an end without a bout would not have been left out."""
    return all(iv.total(iv.union(iv.Intervals(a.start, a.stop))) == a.n_frames for a in recording.annotations.values())


def _is_copy(first: Item, second: Item) -> bool:
    """Whether two items of the same name hold the same bouts; two annotators may well agree that nothing happened."""
    if (first.source, first.path.parent) != (second.source, second.path.parent) or first.annotator:
        return False
    if first.has_signals or second.has_signals:
        return False
    if len(first.annotations) != 1 or len(second.annotations) != 1:
        return False
    sides = [next(iter(item.annotations.values())) for item in (first, second)]
    bouts = [
        sorted(
            zip(a.start.tolist(), a.stop.tolist(), (a.ethogram[int(c)].name for c in a.behavior), a.names(a.subject), strict=True), key=str
        )
        for a in sides
    ]
    occurs = bool(bouts[0]) or first.path.suffix != second.path.suffix
    return occurs and sides[0].rate == sides[1].rate and bouts[0] == bouts[1]


def _listed(items: Sequence[Item]) -> str:
    """List the files of some items, with the media files that they name."""
    media = ["" if item.is_video or not item.media else f" ({min(item.media)})" for item in items]
    texts = [f"{item.path}{name}" for item, name in zip(items, media, strict=True)]
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
