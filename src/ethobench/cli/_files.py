"""What the scoring commands share: files and folders on the command line become annotations by recording."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ethobench.core import Annotation, Recording
    from ethobench.core.errors import Note
    from ethobench.runs import Store

SECONDS_RATE = 1000.0
OWN_CLOCK = ("tidy", "tidy_parquet", "nwb", "bento")

LITTLE = 0.01  # of a recording, by which two sides may differ in length


def existing_store(path: Path) -> Store:
    """Open the store of a run; a folder that is none is an error, not a new store."""
    from ethobench.core.errors import NotFoundError
    from ethobench.runs import Store

    if not (path / "store.json").is_file():
        raise NotFoundError(f"{path} is no store of a run")
    return Store(path)


def is_dataset(path: Path) -> bool:
    """Whether a path is a list of recordings, or a folder with one."""
    return path.name == "recordings.csv" or (path / "recordings.csv").is_file() or (path / "dataset_metadata.yaml").is_file()


def files_in(path: Path) -> list[Path]:
    """List the file itself, or the files of a folder that a format recognises; the others are told."""
    from ethobench.core.errors import EthobenchError, FormatError
    from ethobench.formats import detect

    if not path.is_dir():
        return [path]
    found, passed_over = [], []
    for file in sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")):
        try:
            detect(file)
        except FormatError:
            passed_over.append(file.name)
            continue
        found.append(file)
    if passed_over:
        more = f" and {len(passed_over) - 5} more" if len(passed_over) > 5 else ""
        tell_line(f"{path}: passed over, as no format recognises them: {', '.join(passed_over[:5])}{more}")
    if not found:
        raise EthobenchError(f"{path} holds no file of a known format")
    return found


def read_annotations(path: Path, rate: float | None, annotator: str | None = None) -> dict[str, dict[str, tuple[Annotation, bool]]]:
    """Read a file or folder: recordings' names to annotators' names to annotations, and whether each tells its own clock.

    A file of a format that holds a single recording is called by its file name, so that files of two folders match.
    """
    from ethobench.core.errors import EthobenchError
    from ethobench.formats import detect, read_at

    result: dict[str, dict[str, tuple[Annotation, bool]]] = {}
    notes = Notes()
    for file in files_in(path):
        reader = detect(file)
        recordings = [r for r in read_at(file, rate, reader.name) if r.annotations]
        for recording in recordings:
            notes.add(recording.notes, file)
            name = recording.id if reader.several or len(recordings) > 1 else stem(file)
            chosen = _chosen(recording, annotator)
            if name in result and {*result[name]} & {*chosen}:
                raise EthobenchError(f"{path} holds two recordings called {name!r}")
            assumed = any("tells no frame rate" in n.message for n in recording.notes)
            for who, a in chosen.items():
                own = rate is not None or not (assumed or (a.rate == SECONDS_RATE and reader.name not in OWN_CLOCK))
                result.setdefault(name, {})[who] = (a, own)
    notes.tell()
    if not result:
        raise EthobenchError(f"{path} holds no annotation")
    return result


def _chosen(recording: Recording, annotator: str | None) -> dict[str, Annotation]:
    """Pick annotators: all, the one named, or what most of them say."""
    if annotator is None:
        return dict(recording.annotations)
    if annotator == "consensus":
        from ethobench.metrics import consensus

        return {annotator: consensus(recording.annotations)}
    return {annotator: recording.annotation(annotator)}


def read_pair(pred: Path, truth: Path, rate: float | None, annotator: str | None) -> dict[str, tuple[Annotation, Annotation]]:
    """Read predictions and truths and match them by name; clocks and lengths that a file does not tell follow the other side."""
    from ethobench.core.errors import EthobenchError

    who = None if annotator == "all" else annotator
    sides = [read_annotations(pred, rate), read_annotations(truth, rate, who)]
    if len(sides[0]) == len(sides[1]) == 1:
        sides[0] = {next(iter(sides[1])): next(iter(sides[0].values()))}
    missing = [sorted({*a} - {*b}) for a, b in ((sides[0], sides[1]), (sides[1], sides[0]))]
    if missing[0] or missing[1]:
        told = [f"only in {where}: {', '.join(names[:5])}" for where, names in zip((pred, truth), missing, strict=True) if names]
        raise EthobenchError(f"names do not match ({'; '.join(told)})")
    again: dict[tuple[int, float], dict[str, dict[str, tuple[Annotation, bool]]]] = {}
    pairs = {}
    for name in sides[0]:
        guess, guess_own = _only(sides[0][name], name, scored=True)
        truths = sides[1][name] if annotator == "all" else {"": _only(sides[1][name], name)}
        for key, (stated, fact_own) in truths.items():
            fact, clocked = stated, guess
            if clocked.rate != fact.rate and rate is None and guess_own != fact_own:
                side, clock = (0, fact.rate) if fact_own else (1, clocked.rate)
                if (side, clock) not in again:
                    tell_line(f"{(pred, truth)[side]} tells no clock of its own; read on that of the other side, {clock:g} Hz")
                    again[side, clock] = read_annotations((pred, truth)[side], clock, who if side else None)
                found = again[side, clock].get(name) or next(iter(again[side, clock].values()))
                if side == 0:
                    clocked = _only(found, name, scored=True)[0]
                else:
                    fact = found[key][0] if key else _only(found, name)[0]
            pairs[f"{name}@{key}" if key else name] = same_length(clocked, fact, name)
    return pairs


def same_length(pred: Annotation, truth: Annotation, name: str) -> tuple[Annotation, Annotation]:
    """Lengthen the side that ends with its last bout, as those of files do that do not tell a recording's length.

    Where lengths differ by a second or 1 %, as those of videos and of poses often do, what only one side has does not count.
    """
    if pred.n_frames == truth.n_frames or pred.rate != truth.rate:
        return pred, truth
    length = max(pred.n_frames, truth.n_frames)
    little = length - min(pred.n_frames, truth.n_frames) <= max(LITTLE * length, truth.rate)
    sides = []
    for side, what in ((pred, "prediction"), (truth, "truth")):
        ends_with_bout = len(side) > 0 and int(side.stop.max()) == side.n_frames
        if side.n_frames < length and ends_with_bout and side.observed.is_whole(side.n_frames):
            tell_line(f"{name}: the {what} ends with its last bout; taken to be as long as the other side ({length} frames)")
            sides.append(side.extend(length).with_observed(_whole(length)))
        elif side.n_frames < length and little:
            tell_line(f"{name}: the {what} ends {length - side.n_frames} frames before the other side; these do not count")
            sides.append(side.extend(length))
        else:
            sides.append(side)
    return sides[0], sides[1]


def stem(path: Path) -> str:
    """Return a file's name without the ending of its format."""
    for ending in (".bebe.csv", ".calms21.json"):
        if path.name.endswith(ending):
            return path.name.removesuffix(ending)
    return path.stem


class Notes:
    """What reading noted, told at the end: notes of one kind once, with how many more there are."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}

    def add(self, notes: Iterable[Note], where: object) -> None:
        """Keep notes; those that differ only in figures are of one kind."""
        for note in notes:
            self._kinds.setdefault(re.sub(r"[\d.,]+", "#", note.message), []).append(f"{where}: {note}")

    def tell(self) -> None:
        """Print the first note of each kind."""
        for found in self._kinds.values():
            tell_line(found[0] + (f" (and {len(found) - 1} more notes like this)" if len(found) > 1 else ""))


def tell_line(message: str) -> None:
    """Print a note to the error stream."""
    typer.secho(f"note: {message}", err=True, fg=typer.colors.YELLOW)


def _only(group: dict[str, tuple[Annotation, bool]], name: str, *, scored: bool = False) -> tuple[Annotation, bool]:
    from ethobench.core.errors import EthobenchError

    if len(group) > 1:
        way_out = "score them one at a time, from files of their own (ethobench convert)" if scored else "name one with --annotator"
        raise EthobenchError(f"{name!r} has several annotators ({', '.join(group)}); {way_out}")
    return next(iter(group.values()))


def _whole(n_frames: int) -> Any:
    from ethobench.core import intervals as iv

    return iv.whole(n_frames)
