"""What the viewer has open: recordings with all their tracks, and the corrections made of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from ethobench.app.corrections import Corrections, check_annotator
from ethobench.app.editing import Edit, apply_edits
from ethobench.app.entries import MODEL, Entry, Track
from ethobench.app.history import History
from ethobench.core import Ethogram
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.occurrence import Occurrence

VIDEO_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".ogv": "video/ogg",
    ".avi": "video/x-msvideo",
}


@dataclass
class Project:
    """All that is open.

    Attributes
    ----------
    name : str
    entries : list of Entry
        The page addresses them by their place here.
    corrections : Corrections
    roots : tuple of Path
        Videos are shown only from inside these folders.
    occurrence : Occurrence
        How often each behavior occurred in all tracks when the project was opened.
    """

    name: str
    entries: list[Entry]
    corrections: Corrections
    roots: tuple[Path, ...] = ()
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        places = {entry.recording.id: entry for entry in self.entries}
        for (recording, annotator), annotation in self.corrections.load().items():
            entry = places.get(recording)
            if entry is None:
                self.notes.append(f"{self.corrections.manifest}: corrects {recording!r}, which is not open")
            elif (annotation.rate, annotation.n_frames) != (entry.rate, entry.n_frames):
                self.notes.append(f"{self.corrections.manifest}: {annotator!r} of {recording!r} has another clock or length; not shown")
            else:
                entry.adopt(annotator, annotation)
        self.notes += self.corrections.notes
        self.occurrence = self._count_behaviors()

    def _count_behaviors(self) -> Occurrence:
        """Count behaviors in all tracks when the project opens; colors follow from it, and stay as they are while labelling."""
        ethogram = reduce(Ethogram.join, (entry.ethogram for entry in self.entries), Ethogram([]))
        tracks = [track for entry in self.entries for track in entry.tracks]
        models = [track.annotation for track in tracks if track.kind == MODEL]
        return Occurrence.count(ethogram, (track.annotation for track in tracks if track.kind != MODEL), models)

    def entry(self, place: int) -> Entry:
        """Return a recording by its place."""
        if not 0 <= place < len(self.entries):
            raise NotFoundError(f"no recording {place}; there are {len(self.entries)}")
        return self.entries[place]

    def start(self, place: int, name: object, copy: str | None = None) -> Track:
        """Begin to correct a recording under a new annotator's name, with a copy of a track or with nothing."""
        with self._lock:
            entry = self.entry(place)
            taken = {t.name for e in self.entries for t in e.originals if t.name not in e.corrections} | {*entry.corrections}
            annotator = check_annotator(name, taken)
            annotation = entry.nothing() if copy is None else entry.track(copy).annotation
            self.corrections.save(entry.recording, annotator, annotation)
            entry.corrections[annotator] = History(annotation)
            return entry.track(annotator)

    def edit(self, place: int, name: str, revision: int, edits: Iterable[Edit]) -> Track:
        """Change a correction and save it; `revision` is the one that the change was made to."""
        with self._lock:
            entry, history = self._correction(place, name)
            if revision != history.revision:
                raise MismatchError(f"{name!r} has changed in the meantime (perhaps in another window); look again and repeat the change")
            changed = apply_edits(history.annotation, edits)
            if changed != history.annotation:
                self.corrections.save(entry.recording, name, changed)
                history.change(changed)
            return entry.track(name)

    def undo(self, place: int, name: str) -> Track:
        """Take the last change of a correction back."""
        with self._lock:
            entry, history = self._correction(place, name)
            if history.previous is not None:
                self.corrections.save(entry.recording, name, history.previous)
                history.undo()
            return entry.track(name)

    def redo(self, place: int, name: str) -> Track:
        """Repeat the last change that was taken back."""
        with self._lock:
            entry, history = self._correction(place, name)
            if history.following is not None:
                self.corrections.save(entry.recording, name, history.following)
                history.redo()
            return entry.track(name)

    def video(self, place: int) -> Path | None:
        """Return a recording's video if it lies in one of the folders that are open, links followed."""
        path = self.entry(place).recording.video
        if path is None or not path.is_file():
            return None
        real = path.resolve()
        inside = any(real.is_relative_to(root.resolve()) for root in self.roots)
        return real if inside and real.suffix.lower() in VIDEO_TYPES else None

    def _correction(self, place: int, name: str) -> tuple[Entry, History]:
        entry = self.entry(place)
        if name not in entry.corrections:
            raise EthobenchError(f"{name!r} is no correction, and only corrections can be changed")
        return entry, entry.corrections[name]
