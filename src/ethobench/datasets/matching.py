"""Match the items of loose files by recording; the rules are described in `ethobench.datasets.collate`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from ethobench.core.errors import Note
from ethobench.core.wording import join_names
from ethobench.datasets.loose_files import LENGTH_TOLERANCE, TRACKER_SUFFIX, Item
from ethobench.datasets.match_file import apply_match
from ethobench.datasets.name_core import match_by_core

T = TypeVar("T")


@dataclass
class Group:
    """The items of one recording."""

    name: str
    items: list[Item] = field(default_factory=list)

    @property
    def sources(self) -> set[int]:
        """Indices of the sources that have the recording."""
        return {item.source for item in self.items}

    @property
    def annotating_sources(self) -> set[int]:
        """Indices of the sources with annotations of the recording."""
        return {item.source for item in self.items if item.annotations}

    @property
    def has_signals_or_video(self) -> bool:
        """Whether a file of the recording is a video, or has poses or signals."""
        return any(item.is_video or item.has_signals for item in self.items)

    @property
    def media(self) -> frozenset[str]:
        """Names of all media files."""
        return frozenset[str]().union(*(item.media for item in self.items))


def match_items(
    items: Sequence[Item],
    sources: Sequence[Path],
    notes: list[Note],
    same_recording: bool | None,
    match: Sequence[tuple[str, str]] = (),
) -> list[Group]:
    """Group items by recording.

    Parameters
    ----------
    items : sequence of Item
    sources : sequence of Path
        The paths that the user passed.
    notes : list of Note
        Extended by what was matched other than by equal names, and what was skipped.
    same_recording : bool or None
        See `ethobench.datasets.collate.collate`.
    match : sequence of (str, str)
        Names that the user stated to be of the same recording.
    """
    _name_by_subfolder(items, sources, notes)
    if match:
        apply_match(items, sources, match, notes)
    groups = _group_by_name(items, sources, notes)
    _drop_copies(groups, notes)
    groups = _join_by_media(groups, notes)
    if same_recording is not False:
        groups = _join_by_affix(groups, sources, notes)
        groups = _join_by_core(groups, sources, notes)
        groups = _join_single_recordings(groups, sources, notes, intended=bool(same_recording))
    _make_names_unique(groups, sources)
    return groups


# By name


def _name_by_subfolder(items: Sequence[Item], sources: Sequence[Path], notes: list[Note]) -> None:
    """Name files that have the same names in several subfolders by the subfolder, if lengths show that subfolders are recordings.

    Example: ``Recording_1/human_1.csv`` and ``Recording_1/human_2.csv`` are equally long, and ``Recording_2/human_1.csv`` is not.
    """
    for number, source in enumerate(sources):
        files = [i for i in items if i.source == number and not i.named_inside and i.annotations]
        by_name, by_folder = _grouped(files, lambda i: i.name), _grouped(files, lambda i: str(i.path.parent))
        if all(len(group) == 1 for group in by_name) or len(by_folder) < 2:
            continue
        if all(_lengths_agree(group) for group in by_folder) and not all(_lengths_agree(group) for group in by_name):
            for item in files:
                item.annotator, item.name, item.matched_by = item.name, item.path.parent.name, "subfolder"
            message = "files in the same subfolder are equally long, so each subfolder is treated as one recording"
            notes.append(Note(message, str(source), "matched-by-subfolder"))


def _group_by_name(items: Sequence[Item], sources: Sequence[Path], notes: list[Note]) -> list[Group]:
    """Group items of the same name, unless they contradict each other."""
    groups: list[Group] = []
    for same_name in _grouped(items, lambda item: (item.match_key, "" if item.match_key else item.name)):
        clusters: list[Group] = []
        for item in same_name:
            cluster = next((group for group in clusters if not any(_contradict(item, other) for other in group.items)), None)
            if cluster is None:
                clusters.append(cluster := Group(item.name))
            cluster.items.append(item)
        if len(clusters) > 1:
            paths = Counter(_path_in_source(group.items[0], sources) for group in clusters)
            for group in clusters:
                path = _path_in_source(group.items[0], sources)
                group.name = path if paths[path] == 1 else f"{path} ({group.items[0].path.name})"
            files = ", ".join(str(group.items[0]) for group in clusters[:5])
            message = f"different recordings, since lengths or media files differ: {files}"
            notes.append(Note(message, same_name[0].name, "not-matched"))
        groups += clusters
    for group in groups:
        _note_doubts(group, notes)
    return groups


def _path_in_source(item: Item, sources: Sequence[Path]) -> str:
    """Name an item by its folder within its source, and by the source if there are several."""
    source = sources[item.source]
    folders = item.path.parent.relative_to(source).parts if source.is_dir() and not item.of_dataset else ()
    return "/".join([*([source.stem] if len(sources) > 1 else []), *folders, item.name])


def _note_doubts(group: Group, notes: list[Note]) -> None:
    """Note what speaks against a match by name."""
    with_media = [item for item in group.items if item.media and not item.is_video]
    for first, second in combinations(with_media, 2):
        if not _media_agree(first.media, second.media):
            message = f"matched by name, although the media files differ: {_listed([first, second])}"
            notes.append(Note(message, group.name, "media-differ"))
            break
    for number in group.sources:
        folders = {item.path.parent for item in group.items if item.source == number and item.annotations}
        if len(folders) > 1:
            names = ", ".join(sorted(folder.name for folder in folders))
            message = f"files of the same name are taken as annotators of one recording, named by folder: {names}"
            notes.append(Note(message, group.name, "annotators-by-folder"))


def _contradict(first: Item, second: Item) -> bool:
    """Whether two items of the same name cannot be one recording.

    Within a source, lengths and media files must both agree. Between two sources, one of them may differ, since the names were chosen
    on purpose.
    """
    if not (first.annotations and second.annotations) or (first.match_key is not None and first.match_key == second.match_key):
        return False
    lengths = first.n_frames > 0 and second.n_frames > 0 and not _same_length(first, second)
    media = bool(first.media and second.media) and not (first.is_video or second.is_video) and not _media_agree(first.media, second.media)
    return (lengths or media) if first.source == second.source else (lengths and media)


def _drop_copies(groups: list[Group], notes: list[Note]) -> None:
    """Keep one of several files of a folder with the same bouts, such as a BORIS project and the tables exported from it."""
    for group in groups:
        kept: list[Item] = []
        for item in group.items:
            original = next((other for other in kept if _is_copy(item, other)), None)
            if original is None:
                kept.append(item)
            else:
                notes.append(Note(f"{item.path} has the same bouts as {original.path}; used once", group.name, "copy"))
        group.items = kept


def _is_copy(first: Item, second: Item) -> bool:
    """Whether two items of the same name have the same bouts. Two annotators may well agree that nothing happened."""
    if (first.source, first.path.parent) != (second.source, second.path.parent) or first.annotator:
        return False
    if first.has_signals or second.has_signals or len(first.annotations) != 1 or len(second.annotations) != 1:
        return False
    annotations = [next(iter(item.annotations.values())) for item in (first, second)]
    bouts = [
        sorted(
            zip(a.start.tolist(), a.stop.tolist(), (a.ethogram[int(c)].name for c in a.behavior), a.names(a.subject), strict=True), key=str
        )
        for a in annotations
    ]
    is_evidence = bool(bouts[0]) or first.path.suffix != second.path.suffix
    return is_evidence and annotations[0].rate == annotations[1].rate and bouts[0] == bouts[1]


# By media file


def _join_by_media(groups: list[Group], notes: list[Note]) -> list[Group]:
    """Join groups that are about the same media file, if each source has only one of them."""
    groups_of: dict[str, list[Group]] = {}
    n_tracked = Counter(item.tracked_video for group in groups for item in group.items)
    for group in groups:
        for media in group.media | {
            item.tracked_video for item in group.items if item.tracked_video and n_tracked[item.tracked_video] == 1
        }:
            groups_of.setdefault(media, []).append(group)
    joined_into: dict[int, Group] = {}

    def current(group: Group) -> Group:
        while id(group) in joined_into:
            group = joined_into[id(group)]
        return group

    for media in sorted(groups_of):
        sharing = list({id(group): group for group in map(current, groups_of[media])}.values())
        if len(sharing) < 2:
            continue
        annotated = Counter(number for group in sharing for number in group.annotating_sources)
        names = ", ".join(repr(group.name) for group in sharing)
        if max(annotated.values(), default=0) > 1:
            if len(annotated) > 1:
                message = f"{names} are about the same media file {media!r}; not matched, since one side has several of them"
                notes.append(Note(message, code="not-matched"))
            continue
        message = f"{names} are about the same media file {media!r}; treated as one recording"
        notes.append(Note(message, sharing[0].name, "matched-by-media"))
        _join(sharing, "media file")
        joined_into |= {id(group): sharing[0] for group in sharing[1:]}
    return _not_empty(groups)


def _media_agree(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether a media name of one side starts with one of the other side, as those of re-encoded videos do."""
    return any(a.startswith(b) or b.startswith(a) for a in first for b in second)


# By name without affix


def _join_by_affix(groups: list[Group], sources: Sequence[Path], notes: list[Note]) -> list[Group]:
    """Join groups whose names differ in an affix: one that all names of a source have, or one added to the name of another group."""
    stems = {id(group): _tokens(group.name) for group in groups}
    in_source: dict[int, list[Group]] = {}
    for group in groups:
        if len(group.sources) == 1:
            in_source.setdefault(min(group.sources), []).append(group)
    for of_one_source in in_source.values():
        for group, stem in zip(of_one_source, _without_common_affix([_tokens(group.name) for group in of_one_source]), strict=True):
            stems[id(group)] = stem
    for alike in _grouped(groups, lambda group: stems[id(group)]):
        if len(alike) > 1 and _can_be_one(alike, sources):
            _join_alike(alike, stems[id(alike[0])], notes)
    groups = _not_empty(groups)
    names = _NameIndex(groups)
    for group in sorted(groups, key=lambda group: -len(_tokens(group.name))):
        alike = names.extensions(group)
        folders = Counter(n for other in alike for n in other.annotating_sources if sources[n].is_dir())
        if not group.has_signals_or_video and max(folders.values(), default=0) > 1:
            listed = ", ".join(repr(other.name) for other in alike)
            notes.append(Note(f"not matched, since several names differ from it in an affix only: {listed}", group.name, "not-matched"))
            continue
        for other in alike:
            if _can_be_one([group, other], sources):
                _join_alike([group, other], _tokens(group.name), notes)
    return _not_empty(groups)


def _can_be_one(groups: Sequence[Group], sources: Sequence[Path]) -> bool:
    """Whether groups of similar names can be one recording.

    Their lengths agree, there is at most one video and one pose file, and no folder has annotations in several of them, unless the first
    group has the video, poses or signals of the recording.
    """
    items = [item for group in groups for item in group.items]
    folders = Counter(n for group in groups for n in group.annotating_sources if sources[n].is_dir())
    is_separate = max(folders.values(), default=0) <= 1 or groups[0].has_signals_or_video
    return is_separate and _has_one_of_each(items) and _lengths_agree(items)


def _join_alike(alike: list[Group], stem: tuple[str, ...], notes: list[Note]) -> None:
    shortest = min((group.name for group in alike), key=len)
    name = shortest if _tokens(shortest) == stem else "_".join(stem)
    names = ", ".join(repr(group.name) for group in alike)
    notes.append(Note(f"{names} differ in an affix only; treated as one recording", name, "matched-by-affix"))
    _join(alike, "affix")
    alike[0].name = name


@lru_cache(maxsize=1 << 16)
def _tokens(name: str) -> tuple[str, ...]:
    """Split a name at ``_``, ``-``, ``.`` and spaces, without what pose trackers append."""
    return tuple(token for token in re.split(r"[_\-.\s]+", TRACKER_SUFFIX.sub("", name).casefold()) if token)


def _is_affix(tokens: Sequence[str]) -> bool:
    """Whether tokens can name a person, a model or a pass; numbers distinguish recordings."""
    return bool(tokens) and all(re.search(r"[^\W\d]", token) for token in tokens)


def _without_common_affix(names: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Remove the tokens that all names start or end with, if the names stay distinct and not empty."""
    if len(names) < 2:
        return list(names)
    shortest = min(map(len, names))
    head = next((k for k in range(shortest) if len({name[k] for name in names}) > 1), shortest)
    tail = next((k for k in range(shortest - head) if len({name[-1 - k] for name in names}) > 1), 0)
    stems = [name[head : len(name) - tail] for name in names]
    affixes = [*names[0][:head], *names[0][len(names[0]) - tail :]]
    return stems if _is_affix(affixes) and all(stems) and len(set(stems)) == len(names) else list(names)


class _NameIndex:
    """Groups by the tokens of their names, and by each name that theirs extends with an affix."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._by_name: dict[tuple[str, ...], list[Group]] = {}
        self._by_stem: dict[tuple[str, ...], list[Group]] = {}
        for group in groups:
            tokens = _tokens(group.name)
            self._by_name.setdefault(tokens, []).append(group)
            for stem in {stem for stems in _stems(tokens) for stem in stems}:
                self._by_stem.setdefault(stem, []).append(group)

    def extensions(self, group: Group) -> list[Group]:
        """Return the groups whose names extend that of a group, and no longer one."""
        if not group.items:
            return []
        candidates = self._by_stem.get(_tokens(group.name), [])
        return [other for other in candidates if other is not group and other.items and self._base(other) is group]

    def _base(self, group: Group) -> Group | None:
        """Return the group with the longest name that the name of `group` extends; None if there are several or none."""
        for stems in _stems(_tokens(group.name)):
            bases = [base for stem in stems for base in self._by_name.get(stem, []) if base is not group and base.items]
            if bases:
                return bases[0] if len(bases) == 1 else None
        return None


def _stems(tokens: tuple[str, ...]) -> list[set[tuple[str, ...]]]:
    """Return the names that a name extends, longest first: the name itself, and those without an affix before or after it."""
    stems: list[set[tuple[str, ...]]] = [{tokens} if tokens else set()]
    for n in range(len(tokens) - 1, 0, -1):
        splits = ((tokens[:n], tokens[n:]), (tokens[-n:], tokens[:-n]))
        stems.append({stem for stem, affix in splits if _is_affix(affix)})
    return stems


# By a common core of names


def _join_by_core(groups: list[Group], sources: Sequence[Path], notes: list[Note]) -> list[Group]:
    """Join groups whose names share a core that no other name has; see `ethobench.datasets.name_core`.

    Names of different sources are compared, and within a source those of annotations with those of videos, poses and signals.
    """
    for number in range(len(sources)):
        in_source = [group for group in groups if number in group.sources]
        media = [group for group in in_source if group.has_signals_or_video and not group.annotating_sources]
        _join_two_sides(media, [group for group in in_source if not group.has_signals_or_video], sources, notes)
        for other in range(number):
            first, second = ([group for group in groups if n in group.sources] for n in (other, number))
            _join_two_sides(first, second, sources, notes)
    return _not_empty(groups)


def _join_two_sides(first: Sequence[Group], second: Sequence[Group], sources: Sequence[Path], notes: list[Note]) -> None:
    for match in match_by_core([group.name for group in first], [group.name for group in second]):
        pair = [first[match.first], second[match.second]]
        is_stated = any(item.match_key for group in pair for item in group.items if item.annotations)
        if pair[0] is pair[1] or is_stated or (pair[0].annotating_sources & pair[1].annotating_sources) or not _can_be_one(pair, sources):
            continue
        names = join_names(repr(group.name) for group in pair)
        message = f"{names} share {match.core!r}, which no other name has; treated as one recording"
        name = min((group.name for group in pair), key=len)
        notes.append(Note(message, name, "matched-by-core"))
        _join(pair, "common core")
        pair[0].name = name


def _make_names_unique(groups: Sequence[Group], sources: Sequence[Path]) -> None:
    """Name groups by their folder, too, if another group has the name, as after a match that the user stated."""
    counts = Counter(group.name for group in groups)
    for group in groups:
        if counts[group.name] > 1 and not any(item.match_key for item in group.items):
            group.name = _path_in_source(group.items[0], sources)


# Only one recording


def _join_single_recordings(groups: list[Group], sources: Sequence[Path], notes: list[Note], *, intended: bool) -> list[Group]:
    """Join all groups if they can only be one recording; `intended` if the user passed paths of one recording each."""
    items = [item for group in groups for item in group.items]
    if len(groups) < 2 or not _may_be_one_recording(groups, items, sources):
        return groups
    annotated = [item for item in items if item.annotations]
    if intended and len(sources) == 2:
        is_different = any(_contradict(first, second) for first, second in combinations(annotated, 2))
        reason = f"lengths and media files differ: {_listed(annotated)}" if is_different else ""
    else:
        reason = _difference(items, numbers=not intended)
    if reason:
        notes.append(Note(f"different recordings, since {reason}", code="not-matched"))
        return groups
    notes.append(Note(f"treated as one recording, because each file has only one: {_listed(items)}", code="matched-as-only-recording"))
    _join(groups, "only recording")
    return _not_empty(groups)


def _may_be_one_recording(groups: Sequence[Group], items: Sequence[Item], sources: Sequence[Path]) -> bool:
    """Whether each file has one recording, and there is one video or pose file for all of them or one annotation for each path."""
    if not _has_one_of_each(items):
        return False
    are_files = all(not sources[item.source].is_dir() for item in items)
    has_media = any(item.is_video or item.has_signals for item in items)
    has_common_media = has_media and (are_files or not any(g.has_signals_or_video and g.annotating_sources for g in groups))
    annotated = [item for item in items if item.annotations]
    per_source = Counter(item.source for item in annotated)
    one_each = len(per_source) > 1 and max(per_source.values()) == 1 and all(len(item.annotations) == 1 for item in annotated)
    return has_common_media or one_each


def _difference(items: Sequence[Item], *, numbers: bool) -> str:
    """Return why files are not one recording: media files, lengths or, with `numbers` and without a video or poses, numbers in names."""
    with_media = [item for item in items if item.media and not item.is_video]
    if any(not _media_agree(first.media, second.media) for first, second in combinations(with_media, 2)):
        return f"media files differ: {_listed(with_media)}"
    if not _lengths_agree(items):
        lengths = [
            f"{item.path} ({f'{item.seconds:g} s' if item.has_clock else f'{item.n_frames} frames'})" for item in items if item.n_frames
        ]
        return f"lengths differ: {', '.join(lengths[:5])}"
    patterns = Counter(re.sub(r"\d+", "#", item.name) for item in items)
    if numbers and max(patterns.values()) > 1 and not any(item.is_video or item.has_signals for item in items):
        return f"names differ in a number: {_listed(items)}"
    return ""


# Helpers


def _grouped(members: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return list(groups.values())


def _join(joining: Sequence[Group], rule: str) -> None:
    """Move the items of several groups into the first of them; the others are empty afterwards."""
    first, *others = joining
    for other in others:
        for item in other.items:
            item.matched_by = rule
        first.items += other.items
        other.items = []


def _not_empty(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.items]


def _has_one_of_each(items: Sequence[Item]) -> bool:
    """Whether no file has two of the items, and at most one is a video and at most one has poses or signals."""
    files = Counter((item.source, item.path) for item in items)
    kinds = Counter("video" if item.is_video else "signals" for item in items if item.is_video or item.has_signals)
    return max(files.values()) == 1 and max(kinds.values(), default=0) <= 1


def _lengths_agree(items: Iterable[Item]) -> bool:
    with_length = [item for item in items if item.recording is not None and item.recording.n_frames]
    return all(_same_length(first, second) for first, second in combinations(with_length, 2))


def _same_length(first: Item, second: Item) -> bool:
    """Whether lengths agree in seconds, or in frames if one has no clock; one that ends with its last bout may be shorter."""
    lengths: list[tuple[float, float]] = [] if first.has_clock and second.has_clock else [(first.n_frames, second.n_frames)]
    if first.seconds and second.seconds:
        lengths.append((first.seconds, second.seconds))
    for one, two in lengths:
        shorter = first if one < two else second
        if abs(one - two) <= max(1, LENGTH_TOLERANCE * max(one, two)) or shorter.may_be_longer:
            return True
    return False


def _listed(items: Sequence[Item]) -> str:
    """List the first files, with the media files that they name."""
    media = ["" if item.is_video or not item.media else f" ({min(item.media)})" for item in items]
    texts = [f"{item.path}{name}" for item, name in zip(items, media, strict=True)]
    return join_names(texts, "", most=5)
