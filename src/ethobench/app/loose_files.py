"""Files that no manifest ties together: annotations, poses, signals and videos, matched by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

from ethobench.app.project import VIDEO_TYPES
from ethobench.core import Annotation, Observed, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.core.video import probe
from ethobench.formats import detect, read_at

SECONDS_RATE = 1000.0


def gather_files(paths: Iterable[Path], rate: float | None, tell: Callable[[str], None]) -> list[Recording]:
    """Read files and folders of files, and join what belongs to the same recording.

    Recordings are matched by name: the one inside the file where the format holds several, else the file's. Files of one recording
    each are all taken for the same one unless two of them are videos, or hold poses or signals. Annotators are called by their
    name in the file or, where it tells none, by the file's; where files have the same name, by their folder's.

    Parameters
    ----------
    paths : iterable of Path
    rate : float, optional
        Frames per second, where files do not tell.
    tell : callable
        Told which files are passed over.
    """
    videos, read = [], []
    for path in _files(paths, tell):
        if path.suffix.lower() in VIDEO_TYPES:
            videos.append(path)
        else:
            read.append((path, read_at(path, rate)))
    clock = rate or next((r for _, found in read for r in _clocks(found)), None)
    if clock is not None and rate is None:
        read = [(path, read_at(path, clock) if _in_seconds(found) else found) for path, found in read]
    if not read and not videos:
        raise EthobenchError("there is nothing to look at: no file of a known format, and no video")
    with_signals = sum(found[0].signals is not None for _, found in read if found)
    single = len(videos) <= 1 and with_signals <= 1 and all(len(found) == 1 for _, found in read)
    stems = [path.stem for path, _ in read]
    joined: dict[str, Recording] = {}
    for path, found in read:
        annotator = path.stem if stems.count(path.stem) == 1 else path.resolve().parent.name
        for recording in found:
            name = recording.id if len(found) > 1 or detect(path).several else path.stem
            key = next(iter(joined), name) if single else name
            mine = recording.copy(id=key, annotations=_named(recording, annotator))
            joined[key] = _join(joined[key], mine) if key in joined else mine
    for path in videos:
        key = next(iter(joined), path.stem) if single else path.stem
        joined[key] = joined[key].copy(video=path) if key in joined else _of_video(path, rate)
    return [_same_length(recording) for recording in joined.values()]


def _files(paths: Iterable[Path], tell: Callable[[str], None]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        for file in sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")):
            try:
                if file.suffix.lower() not in VIDEO_TYPES:
                    detect(file)
                found.append(file)
            except FormatError:
                tell(f"passed over, as no format recognises it: {file}")
    return found


def _named(recording: Recording, annotator: str) -> dict[str, Annotation]:
    return {annotator if name in (DEFAULT_ANNOTATOR, recording.id) else name: a for name, a in recording.annotations.items()}


def _join(there: Recording, more: Recording) -> Recording:
    annotations = dict(there.annotations)
    for name, annotation in more.annotations.items():
        number = next(n for n in count(1) if (name if n == 1 else f"{name} {n}") not in annotations)
        annotations[name if number == 1 else f"{name} {number}"] = annotation
    lengths = [n for n in (there.n_frames, more.n_frames) if n]
    return there.copy(
        annotations=annotations,
        signals=there.signals if there.signals is not None else more.signals,
        rate=there.rate or more.rate,
        n_frames=max(lengths, default=None),
        notes=(*there.notes, *more.notes),
    )


def _clocks(recordings: Iterable[Recording]) -> list[float]:
    return [r.rate for r in recordings if r.rate and r.rate != SECONDS_RATE]


def _in_seconds(recordings: Iterable[Recording]) -> bool:
    return all(r.rate in (None, SECONDS_RATE) for r in recordings)


def _same_length(recording: Recording) -> Recording:
    """Take an annotation that ends with its last bout to be as long as the recording, as its file does not tell a length."""
    length = recording.n_frames or 0
    annotations = {}
    for name, a in recording.annotations.items():
        cut_short = a.rate == recording.rate and 0 < a.n_frames < length and len(a) and int(a.stop.max()) == a.n_frames
        whole = cut_short and a.observed.is_whole(a.n_frames)
        annotations[name] = a.extend(length).with_observed(Observed.whole(length)) if whole else a
    return recording.copy(annotations=annotations)


def _of_video(path: Path, rate: float | None) -> Recording:
    """Make a recording of a video alone; its clock is the video's own."""
    video = probe(path)
    n_frames = video.n_frames if rate is None else round(video.duration * rate)
    return Recording(path.stem, rate=rate or video.rate, n_frames=n_frames, video=path)
