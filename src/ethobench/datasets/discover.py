"""Draft a study from the files in a folder: which poses, signals, videos and annotations are of the same recording.

Files are matched by the rules of `ethobench.datasets.collate` (name, media file, affix, only recording), after four more that only apply
to one folder with everything in it:

- **Folder.** If files of the same name are in several folders, the folders tell recordings apart: ``mouse1/day1.csv`` and
  ``mouse2/day1.csv``, or ``box3/poses.csv`` and ``box3/labels.csv`` beside ``box4/poses.csv`` and ``box4/labels.csv``.
- **Same poses.** Of the same poses in several files (``.h5`` and ``.csv``, filtered and not), one is used.
- **Names times raters.** ``m1_anna, m1_ben, m2_anna, m2_ben`` are two recordings by two annotators.
- **Subject.** One table with the bouts of several animals is divided if the animals are names of recordings: ``fox1.csv``, ``fox2.csv``,
  and a table of labels in which the column ``animal`` is ``fox1`` or ``fox2``.

Individuals and annotators are guessed from names of files and folders. Every match and every guess has a reason in the draft.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ethobench.core import Ethogram
from ethobench.core.errors import EthobenchError, FormatError, Note, NotFoundError, PathExistsError, summarize_notes
from ethobench.core.ethogram import join_ethograms
from ethobench.core.files import atomic_path, check_new_path
from ethobench.core.messages import Message, Option
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.core.wording import join_names, plural
from ethobench.datasets.draft_lengths import LengthComparison, compare_lengths
from ethobench.datasets.draft_values import AnnotatorLabels, Rates, annotator_labels, number_text
from ethobench.datasets.folder_scan import Scan, UnusedFile, scan_folder
from ethobench.datasets.loose_files import TRACKER_SUFFIX, Item, has_unnamed_annotator, recording_name
from ethobench.datasets.manifest_tables import COLUMNS, ETHOGRAM, MANIFEST
from ethobench.datasets.matching import Group, match_items
from ethobench.datasets.name_guesses import find_words, guess_individual
from ethobench.datasets.study_names import grouped, is_stream, name_items, name_tokens
from ethobench.formats.reader_options import option_text
from ethobench.formats.tables import write_table

ALWAYS = ("recording", "individual", "rate", "signals", "annotations", "annotator")
"""Columns of every draft; the others are written if a row has a value."""

MAX_SOURCES = 50
"""Number of folders with annotations above which folders are not compared with each other."""


@dataclass(frozen=True)
class FileMatch:
    """One file of a draft.

    Attributes
    ----------
    recording : str
        Id of the recording that the file belongs to.
    path : Path
        Relative to the folder.
    role : str
        ``"signals"``, ``"annotations"``, ``"signals and annotations"`` or ``"video"``.
    reason : str
        Rule that matched the file: ``"name"``, ``"folder"``, ``"media file"``, ``"affix"``, ...
    entry : str
        Entry of the file; empty if it has only one.
    """

    recording: str
    path: Path
    role: str
    reason: str
    entry: str = ""


@dataclass(frozen=True)
class StudyDraft:
    """Draft of a study; see `discover_study`.

    Attributes
    ----------
    folder : Path
    rows : tuple of dict
        Rows of ``recordings.csv``: cells by column, with paths relative to the folder.
    ethogram : Ethogram
        Behaviors of all annotations.
    matches : tuple of FileMatch
        Each file that is used, with its recording and the reason.
    unused : tuple of UnusedFile
        Each file that is not used, with the reason.
    guesses : tuple of str
        What was guessed, and from what.
    n_files : int
        Number of files in the folder.
    lengths : LengthComparison
        Lengths of annotations compared with those of poses or signals, in some of the recordings.
    """

    folder: Path
    rows: tuple[dict[str, str], ...]
    ethogram: Ethogram
    matches: tuple[FileMatch, ...] = ()
    unused: tuple[UnusedFile, ...] = ()
    guesses: tuple[str, ...] = ()
    n_files: int = 0
    lengths: LengthComparison = field(default_factory=LengthComparison)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the manifest."""
        return tuple(column for column in COLUMNS if column in ALWAYS or any(row.get(column) for row in self.rows))

    @property
    def recordings(self) -> tuple[str, ...]:
        """Ids of the recordings."""
        return tuple(dict.fromkeys(row["recording"] for row in self.rows))

    def write(self, path: Path | None = None, *, overwrite: bool = False) -> list[Path]:
        """Write ``recordings.csv``, and ``ethogram.csv`` beside it unless there is one or no behavior is known.

        Parameters
        ----------
        path : Path, optional
            Another file name for the manifest. Its folder must be the folder of the study, since paths are relative to it.
        overwrite : bool
            Whether to replace an existing manifest. An existing ``ethogram.csv`` is never replaced.

        Returns
        -------
        list of Path
            The files that were written.

        Raises
        ------
        PathExistsError
            If the manifest exists and `overwrite` is False, or is open in a spreadsheet program.
        """
        manifest = self.folder / MANIFEST if path is None else path
        if manifest.parent.resolve() != self.folder.resolve():
            raise EthobenchError(f"{manifest} must be in {self.folder}: the paths in it are relative to its folder")
        check_not_open(manifest)
        ethogram = self.folder / ETHOGRAM
        written = []
        try:
            check_new_path(manifest, overwrite=overwrite)
            with atomic_path(manifest, overwrite=overwrite) as temporary:
                write_table(temporary, self.columns, [[row.get(column, "") for column in self.columns] for row in self.rows])
            written.append(manifest)
            if len(self.ethogram) and not ethogram.exists():
                with atomic_path(ethogram) as temporary:
                    write_table(temporary, ("behavior", "definition", "background", "point", "key"), _ethogram_rows(self.ethogram))
                written.append(ethogram)
        except PermissionError as error:
            raise EthobenchError(
                f"{manifest} cannot be written ({error.strerror}): close it in other programs such as Excel, "
                f"or ask for permission to write to {self.folder}"
            ) from None
        return written

    def to_dict(self) -> dict[str, Any]:
        """Return the draft as a JSON-compatible dict."""
        return {
            "folder": str(self.folder),
            "files": self.n_files,
            "rows": list(self.rows),
            "behaviors": list(self.ethogram.names),
            "matches": [{**asdict(match), "path": match.path.as_posix()} for match in self.matches],
            "unused": [{"path": unused.path.as_posix(), "reason": unused.reason} for unused in self.unused],
            "guesses": list(self.guesses),
            "lengths": asdict(self.lengths),
        }


def check_not_open(manifest: Path) -> None:
    """Raise a `PathExistsError` if a spreadsheet program has a file open, since it would overwrite what is written now."""
    for lock in (manifest.with_name(f"~${manifest.name}"), manifest.with_name(f".~lock.{manifest.name}#")):
        if lock.exists():
            raise PathExistsError(f"{manifest} is open in a spreadsheet program ({lock.name} exists); close it there, then run this again")


def discover_study(
    folder: str | Path,
    *,
    rate: float | None = None,
    entry: str | None = None,
    exclude: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    annotator: str | None = None,
) -> StudyDraft:
    """Draft a study from the files in a folder and the folders below it. Nothing is written.

    Parameters
    ----------
    folder : str or Path
    rate : float, optional
        Frames per second of all recordings. By default that which annotations, videos or signals state.
    entry : str, optional
        Stream or channel to use of annotation files with several, such as ``"S2"``. By default the one with the most bouts.
    exclude : iterable of str
        Patterns of files to skip, such as ``"*_old*"``.
    options : mapping of str to object, optional
        Options for reading files, such as ``{"label": "behaviour"}``; written to the column ``options``.
    annotator : str, optional
        Name of the annotator of files that name none. By default folders and file names are used.

    Raises
    ------
    EthobenchError
        If there is nothing to list, or if several files fit one recording equally well.

    See Also
    --------
    check_study : check a manifest.
    collate : match files without a manifest.

    Examples
    --------
    >>> from ethobench import write_annotation
    >>> for name in ("mouse1_day1", "mouse1_day2"):
    ...     _ = write_annotation(annotation, folder / "anna" / f"{name}.csv")
    >>> draft = discover_study(folder)
    >>> [(row["recording"], row["individual"], row["annotations"], row["rate"]) for row in draft.rows]
    [('mouse1_day1', 'mouse1', 'anna/mouse1_day1.csv', '30'), ('mouse1_day2', 'mouse1', 'anna/mouse1_day2.csv', '30')]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FormatError(folder, "not a folder" if folder.exists() else "no such folder")
    scan = scan_folder(folder, rate=rate, exclude=exclude, options=options)
    guesses: list[str] = []
    name_items(scan, entry, guesses)
    if not scan.items:
        raise EthobenchError(_nothing_found(scan))
    return _draft(scan, rate, guesses, annotator)


def _nothing_found(scan: Scan) -> str:
    if not scan.n_files and not scan.unused:
        return f"{scan.folder} is empty: there is nothing to make a study of"
    reasons = [text for unused in scan.unused[:3] for text in ("; ", str(unused))][1:]
    more = f"; and {len(scan.unused) - 3} more" if len(scan.unused) > 3 else ""
    problem = f"{scan.folder} has no poses, signals, videos or annotations of a known format ("
    return Message(problem, *reasons, f"{more}). `ethobench formats` lists all")


# Recordings


def _draft(scan: Scan, rate: float | None, guesses: list[str], annotator: str | None) -> StudyDraft:
    notes: list[Note] = []
    groups = _match(scan, notes)
    _check_candidates(scan, groups)
    groups = _without_incomplete(scan, groups)
    names = _unique_names(groups, scan)
    if annotator is not None:
        _name_annotator(groups, annotator)
    annotators = annotator_labels(scan, groups)
    individuals = _individuals(scan, groups, names, guesses)
    rates = Rates(scan, rate)
    rate_of: dict[int, float | None] = {}
    rows: list[dict[str, str]] = []
    matches: list[FileMatch] = []
    for group in groups:
        name = names[id(group)]
        group_rate = rate_of[id(group)] = rates.of(group)
        common = {"recording": name, "individual": individuals[id(group)], "rate": "" if group_rate is None else number_text(group_rate)}
        for item in [item for item in group.items if item.annotations and not rates.fits(item, group_rate)]:
            group.items.remove(item)
            stated = 0.0 if item.recording is None or item.recording.rate is None else item.recording.rate
            scan.skip(item.path, f"states {stated:g} Hz, but other files of {name!r} {group_rate:g} Hz")
        if group.items:
            rows += _rows(scan, group, common, annotators)
            matches += [FileMatch(name, scan.relative(i), _role(i), i.matched_by, scan.entry(i)) for i in group.items]
    rates.check()
    guesses += [*rates.describe(), *_describe_annotators(rows), *summarize_notes(notes)]
    ethogram = _ethogram(item for group in groups for item in group.items)
    unused = sorted({(unused.path, unused.reason): unused for unused in scan.unused}.values(), key=lambda unused: str(unused.path))
    lengths = compare_lengths(scan, groups, rate_of)
    return StudyDraft(scan.folder, tuple(rows), ethogram, tuple(matches), tuple(unused), tuple(guesses), scan.n_files, lengths)


def _name_annotator(groups: Sequence[Group], annotator: str) -> None:
    """Name the annotator of files that name none.

    Raises
    ------
    NotFoundError
        If all files name their annotators.
    EthobenchError
        If several files of a recording name none.
    """
    annotated = [item for group in groups for item in group.items if item.annotations]
    stated = sorted({name for item in annotated for name in item.annotations})
    if annotated and not any(has_unnamed_annotator(item) for item in annotated) and annotator not in stated:
        raise NotFoundError(
            f"no file lacks the name of its annotator, so none can be called {annotator!r}; annotators: {', '.join(stated)}"
        )
    for group in groups:
        unnamed = [item for item in group.items if has_unnamed_annotator(item)]
        if len(unnamed) > 1:
            files = ", ".join(item.path.name for item in unnamed)
            raise EthobenchError(f"several files of {group.name!r} name no annotator ({files}), so they cannot all be called {annotator!r}")
        for item in unnamed:
            item.annotator = annotator


def _without_incomplete(scan: Scan, groups: Sequence[Group]) -> list[Group]:
    """Leave out recordings without poses, signals or features if others have them and annotations, since a model cannot use them."""
    if not any(_is_usable(scan, group) and _has_annotations(group) for group in groups):
        return list(groups)
    for group in groups:
        if not _is_usable(scan, group):
            if _has_annotations(group):
                reason = f"no poses or signals of the name {group.name!r}"
            else:
                reason = f"no poses, signals or annotations of the name {group.name!r}"
            for item in group.items:
                scan.skip(item.path, f"{reason}{_similar(group, groups)}")
    return [group for group in groups if _is_usable(scan, group)]


def _is_usable(scan: Scan, group: Group) -> bool:
    return _has_signals(group) or bool(_features(scan, group))


def _features(scan: Scan, group: Group) -> list[Path]:
    """Return the features of the video of a recording, or, without a video, those named like the recording."""
    video = next((item for item in group.items if item.is_video), None)
    return scan.features.get(recording_name(video.path) if video is not None else group.name, [])


def _match(scan: Scan, notes: list[Note]) -> list[Group]:
    """Match items as `collate` does, with each folder of annotations as one source."""
    folders = sorted({item.path.parent for item in scan.items})
    sources = folders if len(folders) <= MAX_SOURCES else [scan.folder]
    if len(sources) > 1:
        for item in scan.items:
            item.source = sources.index(item.path.parent)
    groups = match_items(scan.items, sources, notes, same_recording=None)
    matched = {id(item) for group in groups for item in group.items}
    copies = grouped((item for item in scan.items if id(item) not in matched), lambda item: item.path)
    for path, items in copies.items():
        if (total := scan.n_recordings[path]) > 1:
            reason = f"{len(items)} of {total} entries have the same bouts as other files in the folder, which are used"
        else:
            reason = "has the same bouts as other files in the folder, which are used"
        scan.skip(path, reason)
    notes[:] = [note for note in notes if note.code != "copy"]
    return groups


def _has_signals(group: Group) -> bool:
    return any(item.has_signals for item in group.items)


def _has_annotations(group: Group) -> bool:
    return any(item.annotations for item in group.items)


def _similar(group: Group, groups: Sequence[Group]) -> str:
    """Return the names of similar recordings that lack annotations."""
    from difflib import get_close_matches

    if len(groups) > 1000:
        return ""
    names = [TRACKER_SUFFIX.sub("", other.name) for other in groups if _has_signals(other) and not _has_annotations(other)]
    similar = get_close_matches(group.name, names, n=1, cutoff=0.7)
    return f"; is it of {similar[0]!r}?" if similar else ""


def _check_candidates(scan: Scan, groups: Iterable[Group]) -> None:
    """Raise an error if a recording has several files with poses or signals, or several videos."""
    lines = []
    example = ""
    for group in groups:
        for kind, items in (
            ("poses or signals", [item for item in group.items if item.has_signals]),
            ("videos", [item for item in group.items if item.is_video]),
        ):
            if len(items) > 1:
                example = scan.relative(items[-1]).as_posix()
                lines.append(f"  {group.name}, {kind}: {', '.join(scan.relative(item).as_posix() for item in items[:4])}")
    by_core = grouped((g for g in groups if any(i.has_signals and not i.annotations for i in g.items)), lambda g: name_tokens(g.name))
    for alike in by_core.values():
        if len(alike) > 1:
            files = [scan.relative(i).as_posix() for g in alike[:4] for i in g.items if i.has_signals]
            example = files[-1]
            lines.append(f"  {TRACKER_SUFFIX.sub('', alike[0].name)}, poses or signals: {', '.join(files)}")
    if lines:
        more = [f"  and {len(lines) - 10} more"] if len(lines) > 10 else []
        listed = "\n".join([*lines[:10], *more])
        problem = plural(
            len(lines),
            "one recording has several candidates, and nothing tells which is right; nothing is written",
            "{n} recordings have several candidates, and nothing tells which is right; nothing is written",
        )
        message = f"{problem}:\n{listed}\n"
        raise EthobenchError(Message(message, "skip the files that are not wanted, such as ", Option("exclude", [example])))


def _unique_names(groups: Sequence[Group], scan: Scan) -> dict[int, str]:
    """Return the id of each recording: the name of its group without what pose trackers append, or the name in a file of signals."""
    names = {}
    for group in groups:
        signals = next((item for item in group.items if item.has_signals), None)
        entry = "" if signals is None else scan.entry(signals)
        names[id(group)] = entry or TRACKER_SUFFIX.sub("", group.name) or group.name
    counts = Counter(names.values())
    used: set[str] = set()
    for group in groups:
        name = names[id(group)]
        if counts[name] > 1:
            name = "_".join([*scan.folders(group.items[0]), name])
        unique = name
        number = 2
        while unique in used:
            unique, number = f"{name}_{number}", number + 1
        used.add(unique)
        names[id(group)] = unique
    return names


def _individuals(scan: Scan, groups: Sequence[Group], names: dict[int, str], guesses: list[str]) -> dict[int, str]:
    """Return the individual of each recording: as the files state, else guessed from names and folders, else the recording itself."""
    individuals: dict[int, str] = {}
    stated = 0
    for group in groups:
        name = names[id(group)]
        default = {name, group.name, *(n for item in group.items for n in (item.name, recording_name(item.path)))}
        recordings = [item.recording for item in group.items if item.recording is not None]
        in_files = {r.individual for r in recordings if r.individual not in default and r.individual != r.id}
        if len(in_files) == 1:
            individuals[id(group)] = in_files.pop()
            stated += 1
        else:
            individuals[id(group)] = guess_individual(name, scan.folders(group.items[0]))
    guessed = {key: text for key, text in individuals.items() if text}
    if len(groups) > 2 and len(set(guessed.values())) == 1 and len(guessed) == len(groups) and not stated:
        guessed = {key: text for key, text in guessed.items() if find_words(text, "animal")}
    individuals = {id(group): guessed.get(id(group), names[id(group)]) for group in groups}
    guesses += _describe_individuals(groups, names, individuals, len(guessed), stated)
    return individuals


def _describe_individuals(
    groups: Sequence[Group], names: dict[int, str], individuals: dict[int, str], guessed: int, stated: int
) -> list[str]:
    if stated == len(groups):
        return ["individuals: as stated in the files"]
    if not guessed:
        text = "individuals: no name tells animals apart, so each recording is taken as another animal; if an animal was recorded twice, "
        return [f"{text}give both recordings the same individual"]
    count = len(set(individuals.values()))
    example = next((group for group in groups if individuals[id(group)] != names[id(group)]), None)
    if example is None:
        return [f"individuals: {count}, since the names of recordings are names of animals; check the column individual"]
    name, individual = names[id(example)], individuals[id(example)]
    return [f"individuals: {count}, guessed from names of files and folders: {name!r} is of {individual!r}; check the column individual"]


def _describe_annotators(rows: Iterable[dict[str, str]]) -> list[str]:
    counts = Counter(row["annotator"] for row in rows if row.get("annotations"))
    if not counts:
        return []
    if set(counts) == {DEFAULT_ANNOTATOR}:
        return [f"annotators: neither files nor folders name them; called {DEFAULT_ANNOTATOR!r}"]
    listed = join_names((f"{name} ({n})" for name, n in counts.most_common()), "", most=6)
    return [f"annotators: {listed}, with their numbers of recordings; named by files or folders, check the column annotator"]


def _role(item: Item) -> str:
    if item.is_video:
        return "video"
    return "signals" if not item.annotations else "signals and annotations" if item.has_signals else "annotations"


def _rows(scan: Scan, group: Group, common: dict[str, str], annotators: AnnotatorLabels) -> list[dict[str, str]]:
    """Return the rows of one recording: one for each annotator."""
    signals = next((item for item in group.items if item.has_signals), None)
    video = next((item for item in group.items if item.is_video), None)
    common = {
        **common,
        "signals": "" if signals is None else scan.relative(signals).as_posix(),
        "video": "" if video is None else scan.relative(video).as_posix(),
        "features": ";".join(path.relative_to(scan.folder).as_posix() for path in _features(scan, group)),
    }
    rows = []
    for item in group.items:
        for annotator in item.annotations:
            label = annotators.get((id(item), annotator))
            if label is None:
                scan.skip(item.path, f"annotator {annotator!r} of {group.name!r} is in another file, too")
                continue
            options = option_text({**({} if signals is None else signals.options), **item.options})
            cells = {"annotations": scan.relative(item).as_posix(), "annotator": label, "entry": scan.entry(item), "options": options}
            rows.append({**common, **cells, "subject": item.subject})
    if rows or signals is None:
        return rows or [{**common, "entry": ""}]
    return [{**common, "entry": scan.entry(signals), "options": option_text(signals.options)}]


def _ethogram(items: Iterable[Item]) -> Ethogram:
    """Join the behaviors of all annotations; of files with several streams, only the behaviors that occur in the one that is used."""
    ethograms: list[Ethogram] = []
    used: set[str] = set()
    optional: set[str] = set()
    for item in items:
        for annotation in item.annotations.values():
            names = {annotation.ethogram[int(code)].name for code in set(annotation.behavior.tolist())}
            used |= names
            if is_stream(item):
                optional |= {*annotation.ethogram.names} - {annotation.ethogram.background_name or ""}
            else:
                used |= {*annotation.ethogram.names}
            ethograms.append(annotation.ethogram)
    joined = join_ethograms(dict.fromkeys(ethograms)) if ethograms else Ethogram([])
    kept = [behavior for behavior in joined if behavior.name in used or behavior.name not in optional]
    background = joined.background_name
    return Ethogram(kept, background if any(behavior.name == background for behavior in kept) else None)


def _ethogram_rows(ethogram: Ethogram) -> list[list[str]]:
    yes = {True: "yes", False: ""}
    return [[b.name, b.definition, yes[b.name == ethogram.background_name], yes[b.point], b.key] for b in ethogram]
