"""Name the files of a study, before they are matched by name: what one folder with everything in it says beyond the names of its files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names
from ethobench.datasets.folder_scan import Scan
from ethobench.datasets.loose_files import TRACKER_SUFFIX, Item, recording_name
from ethobench.datasets.name_guesses import names_recording
from ethobench.formats import formats

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Tokens = tuple[str, ...]

PREFERRED_POSES = (".h5", ".hdf5", ".parquet", ".csv", ".slp")
PREFERRED_VIDEOS = (".mp4", ".m4v", ".webm", ".mov", ".mkv", ".avi", ".ogv")
RATER = re.compile(r"[^\W\d_]+|(rater|coder|observer|annotator|scorer|human|person|pass)\d+", re.IGNORECASE)
"""Words that can name a person or a pass: those with a number usually name a recording."""
PROCESSED = re.compile(r"[_.\-](filtered|labeled|interpolated)$", re.IGNORECASE)


def name_items(scan: Scan, entry: str | None, guesses: list[str]) -> None:
    """Name the items of a folder so that items of the same recording have the same name, or names that differ in an affix.

    Parameters
    ----------
    scan : Scan
        Its items are renamed; those that are not needed are moved to its unused files.
    entry : str or None
        Stream or channel to use of annotation files with several.
    guesses : list of str
        Extended by what was chosen.
    """
    _select_streams(scan, entry, guesses)
    _use_same_poses_once(scan)
    _name_by_folder(scan)
    _name_by_file(scan)
    _name_by_raters(scan)
    _name_by_subject(scan, guesses)


def name_tokens(name: str) -> Tokens:
    """Split a name at ``_``, ``-``, ``.`` and spaces, in lower case and without what pose trackers append."""
    return tuple(token for token in re.split(r"[_\-.\s]+", TRACKER_SUFFIX.sub("", name).casefold()) if token)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return items by key, in the order of their first item."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _core(item: Item) -> Tokens:
    """Return the tokens of the name of a file, without what pose trackers and filters append."""
    return name_tokens(PROCESSED.sub("", PROCESSED.sub("", recording_name(item.path))))


def _select_streams(scan: Scan, entry: str | None, guesses: list[str]) -> None:
    """Keep one stream (channel) of each annotation file with several: the one that is named, else the one with the most bouts of all."""
    streams = [item for item in scan.items if is_stream(item)]
    bouts: Counter[str] = Counter()
    for item in streams:
        bouts[_stream(item)] += sum(map(len, item.annotations.values()))
    if entry is not None and entry not in bouts:
        raise EthobenchError(f"no annotation file has a stream or channel {entry!r}; there are: {', '.join(bouts) or 'none'}")
    ranked = sorted(bouts, key=lambda name: (name != entry, -bouts[name]))
    kept: list[Item] = []
    n_several = 0
    for of_file in grouped(streams, lambda item: item.path).values():
        best = min(of_file, key=lambda item: ranked.index(_stream(item)))
        best.name = recording_name(best.path)
        n_several += len(of_file) > 1
        kept.append(best)
    if n_several:
        listed = ", ".join(f"{name} ({bouts[name]:,} bouts)" for name in ranked)
        why = "as set" if entry is not None else "the one with the most bouts"
        text = f"{n_several} annotation files have several streams: {listed}; used: {ranked[0]}, {why}"
        guesses.append(Message(text, " (choose another with ", Option("entry"), ")"))
    dropped = {id(item) for item in streams} - {id(item) for item in kept}
    scan.items = [item for item in scan.items if id(item) not in dropped]


def is_stream(item: Item) -> bool:
    """Whether an item is a stream or channel of its file, not a recording of its own."""
    return bool(_stream(item))


def _stream(item: Item) -> str:
    return str(item.recording.metadata.get("channel", "")) if item.recording is not None else ""


def _use_same_poses_once(scan: Scan) -> None:
    """Keep one of several files with the same poses, and one of several copies of a video."""
    dropped: set[int] = set()
    signals = [item for item in scan.items if item.has_signals and not item.annotations and not item.named_inside]
    for same in grouped(signals, lambda item: (item.path.parent, _run(item), formats[scan.formats[item.path]].contents)).values():
        best, *others = sorted(same, key=_pose_rank)
        for other in others:
            scan.skip(other.path, f"the same poses as {best.path.name}, which is used")
            dropped.add(id(other))
    videos = [item for item in scan.items if item.is_video]
    for same in grouped(videos, lambda item: (item.path.parent, _core(item))).values():
        best, *others = sorted(same, key=_video_rank)
        for other in others:
            scan.skip(other.path, f"another video of the same name as {best.path.name}, which is used")
            dropped.add(id(other))
    scan.items = [item for item in scan.items if id(item) not in dropped]


def _run(item: Item) -> str:
    """Return the name of a pose file without the suffixes of filters and file types: files of one tracking run have the same."""
    name = PROCESSED.sub("", recording_name(item.path))
    return (name if "DLC_" in name or "DeepCut_" in name else TRACKER_SUFFIX.sub("", name)).casefold()


def _pose_rank(item: Item) -> tuple[bool, int, str]:
    name = recording_name(item.path)
    return not name.lower().endswith("filtered"), _rank(item.path.suffix.lower(), PREFERRED_POSES), item.path.name


def _video_rank(item: Item) -> tuple[bool, int, str]:
    """Rank videos that a pose tracker has drawn its points into last."""
    name = recording_name(item.path)
    is_labeled = name.lower().endswith("labeled") or TRACKER_SUFFIX.search(name) is not None
    return is_labeled, _rank(item.path.suffix.lower(), PREFERRED_VIDEOS), item.path.name


def _rank(value: str, order: Sequence[str]) -> int:
    return order.index(value) if value in order else len(order)


# Folders that tell recordings apart


def _name_by_folder(scan: Scan) -> None:
    """Name files by their folders, too, if files of the same name are in several folders that tell recordings apart."""
    free = [item for item in scan.items if not item.named_inside or item.index == 0]
    media = [item for item in free if item.is_video or (item.has_signals and not item.annotations)]
    cores_in_folder = {folder: {_core(i) for i in items} for folder, items in grouped(media, scan.folders).items()}
    repeated = {
        core: items
        for core, items in grouped(media, _core).items()
        if len({scan.folders(i) for i in items if not i.is_video}) > 1 or len({scan.folders(i) for i in items if i.is_video}) > 1
    }
    of_folder: dict[tuple[str, ...], list[Item]] = grouped(free, scan.folders)
    for core, items in repeated.items():
        folders = list(dict.fromkeys(scan.folders(item) for item in items))
        if all(len(cores_in_folder[folder]) == 1 for folder in folders) and all(
            any(item.annotations for item in of_folder[folder]) for folder in folders
        ):
            _name_whole_folders(folders, of_folder)
        else:
            _qualify(scan, [item for item in free if _core(item) == core or _extends(_core(item), core)], media_only=items)
    annotated = [item for item in free if item.annotations and not item.has_signals and item.matched_by == "name"]
    media_cores = {_core(item) for item in media}
    for core, items in grouped(annotated, _core).items():
        if core not in media_cores and len({scan.folders(item) for item in items}) > 1:
            _qualify(scan, items, media_only=[])


def _extends(tokens: Tokens, core: Tokens) -> bool:
    n = len(core)
    return len(tokens) > n and core in (tokens[:n], tokens[-n:]) and all(re.search(r"[^\W\d]", t) for t in (*tokens[n:], *tokens[:-n])[:1])


def _name_whole_folders(folders: Sequence[tuple[str, ...]], of_folder: dict[tuple[str, ...], list[Item]]) -> None:
    """Take all files of each folder as one recording, named after the folder."""
    parts = _distinguishing_parts(folders)
    for folder in folders:
        annotations = [item for item in of_folder[folder] if item.annotations]
        for item in of_folder[folder]:
            if item.annotations and len(annotations) > 1:
                item.annotator = recording_name(item.path)
            item.name, item.matched_by, item.named_inside = "_".join(parts[folder]), "folder", False


def _qualify(scan: Scan, items: Sequence[Item], media_only: Sequence[Item]) -> None:
    """Add the folders that tell recordings apart to the names of files with the same name."""
    references = media_only or items
    parts = _distinguishing_parts(list(dict.fromkeys(scan.folders(item) for item in references)))
    annotation_folders = {component for item in items if item.annotations for component in scan.folders(item)}
    identifying: dict[tuple[str, ...], tuple[str, ...]] = {}
    for folder, distinct in parts.items():
        named = tuple(component for component in distinct if names_recording(component))
        shared = tuple(component for component in distinct if media_only and component in annotation_folders)
        identifying[folder] = named or shared
    if not all(identifying.values()) or len({*identifying.values()}) < 2:
        return
    for item in items:
        folders = scan.folders(item)
        overlaps = Counter({qualifier: len({*qualifier} & {*folders}) for qualifier in identifying.values()})
        ranked = overlaps.most_common(2)
        if ranked[0][1] and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]):
            item.name, item.matched_by = "_".join([*ranked[0][0], item.name]), "folder"


def _distinguishing_parts(folders: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the parts of each folder that not all folders have."""
    common = set(folders[0]).intersection(*folders) if folders else set()
    return {folder: tuple(component for component in folder if component not in common) for folder in folders}


def _name_by_file(scan: Scan) -> None:
    """Name an annotation file with one recording by the file if that is the name of poses or of a video, and the id in it is not."""
    media = {name_tokens(item.name) for item in scan.items if item.is_video or (item.has_signals and not item.annotations)}
    n_items = Counter(item.path for item in scan.items)
    for item in scan.items:
        if item.named_inside and item.annotations and n_items[item.path] == 1 and name_tokens(item.name) not in media:
            core = _core(item)
            if core in media or any(_extends(core, name) for name in _parts(core) & media):
                item.name, item.named_inside = recording_name(item.path), False


def _parts(tokens: Tokens) -> set[Tokens]:
    return {component for n in range(1, len(tokens)) for component in (tokens[:n], tokens[-n:])}


def _name_by_raters(scan: Scan) -> None:
    """Recognize names that are all combinations of recordings and raters, such as ``m1_anna, m1_ben, m2_anna, m2_ben``."""
    names = {name_tokens(item.name) for item in scan.items}
    items = [i for i in scan.items if i.annotations and not i.has_signals and not i.named_inside and i.matched_by == "name"]
    for in_folder in grouped(items, lambda item: item.path.parent).values():
        for position in (-1, 0):
            halves = {id(item): _split(name_tokens(item.name), position) for item in in_folder}
            affixes: dict[Tokens, set[Tokens]] = {}
            for core, affix in halves.values():
                affixes.setdefault(core, set()).add(affix)
            sets = {frozenset(a) for a in affixes.values()}
            is_crossed = len(affixes) > 1 and len(sets) == 1 and len(next(iter(sets))) > 1 and all(affixes) and not names & {*affixes}
            if is_crossed and all(RATER.fullmatch(word) for a in affixes.values() for affix in a for word in affix):
                for item in in_folder:
                    core, affix = halves[id(item)]
                    item.annotator, item.name, item.matched_by = "_".join(affix), "_".join(core), "names times raters"
                break


def _split(tokens: Tokens, position: int) -> tuple[Tokens, Tokens]:
    """Return a name without its first (0) or last (-1) token, and that token."""
    return (tokens[1:], tokens[:1]) if position == 0 else (tokens[:-1], tokens[-1:])


def _name_by_subject(scan: Scan, guesses: list[str]) -> None:
    """Divide a table of bouts of several animals, each of which has poses or signals in a file that is named after it."""
    signals = {name_tokens(item.name): item.name for item in scan.items if item.has_signals and not item.annotations}
    divided: list[Item] = []
    for item in scan.items:
        subjects = dict.fromkeys(name for annotation in item.annotations.values() for name in annotation.subjects)
        named = {subject: signals[name_tokens(subject)] for subject in subjects if name_tokens(subject) in signals}
        if item.recording is None or item.has_signals or len(named) < 2 or name_tokens(item.name) in signals:
            divided.append(item)
            continue
        divided += [_of_subject(item, item.recording, subject, name) for subject, name in named.items()]
        file = item.path.name
        guesses.append(f"{file}: divided by its subjects, which are names of recordings: {_listed(list(named))}")
        if unnamed := [subject for subject in subjects if subject not in named]:
            guesses.append(f"{file}: not used: bouts of subjects without poses or signals of their name: {_listed(unnamed)}")
    scan.items[:] = divided


def _of_subject(item: Item, recording: Recording, subject: str, name: str) -> Item:
    """Return an item with only the bouts of one subject."""
    annotations = {annotator: a.select_subject(subject) for annotator, a in item.annotations.items() if subject in a.subjects}
    return replace(item, name=name, recording=recording.copy(annotations=annotations), named_inside=False, subject=subject)


def _listed(names: Sequence[str], most: int = 6) -> str:
    return join_names(names, "", most=most)
