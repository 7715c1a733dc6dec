"""What the viewer has open: recordings with all their tracks, and the corrections made of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from ethobench.app.corrections import Corrections, check_annotator
from ethobench.app.editing import Edit, add_observed, apply_edits
from ethobench.app.entries import MODEL, Entry, Track
from ethobench.app.history import History
from ethobench.core import Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.intervals import Intervals
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
MOST_SPANS = 1000


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
            entry = _labelable(self.entry(place))
            taken = {t.name for e in self.entries for t in e.originals if t.name not in e.corrections} | {*entry.corrections}
            annotator = check_annotator(name, taken)
            annotation = entry.nothing() if copy is None else entry.track(copy).annotation
            self.corrections.save(entry.recording, annotator, annotation)
            entry.corrections[annotator] = History(annotation)
            return entry.track(annotator)

    def edit(self, place: int, name: str, revision: int, edits: Sequence[Edit]) -> Track:
        """Change a correction and save it.

        Parameters
        ----------
        place : int
        name : str
        revision : int
            The one that the change was made to.
        edits : sequence of mapping
            See `apply_edits`. They are applied without the lock, so that a large change does not keep others waiting.

        Raises
        ------
        MismatchError
            If the correction has another revision by now.
        """
        while True:
            with self._lock:
                entry, history = self._correction(place, name, revision)
                base = history.annotation
            changed = apply_edits(base, edits)
            with self._lock:
                self._correction(place, name, revision)
                if history.annotation is not base:  # frames were watched meanwhile
                    continue
                if changed != base:
                    self.corrections.save(entry.recording, name, changed)
                    history.change(changed)
                return entry.track(name)

    def watch(self, place: int, name: str, spans: object, subject: str | None = None) -> Track:
        """Count what was played or stepped through as observed in a correction, and save it.

        Parameters
        ----------
        place : int
        name : str
        spans : list of [start, stop]
            Half-open frames as the page reports them; duplicates, overlaps and any order are fine.
        subject : str, optional
            The subject that was labelled meanwhile; all unless given.
        """
        with self._lock:
            entry, history = self._correction(place, name)
            frames = _check_spans(spans, entry.n_frames)
            if subject is not None and subject not in entry.subjects:
                raise NotFoundError(f"recording {entry.recording.id!r} has no subject {subject!r}")
            watched = add_observed(history.annotation, frames, subject)
            if watched is not history.annotation:
                self.corrections.save(entry.recording, name, watched)
            history.watch(frames, subject)
            return entry.track(name)

    def undo(self, place: int, name: str, revision: int) -> Track:
        """Take the last change of a correction back; `revision` is the one that the user sees, as for `edit`."""
        with self._lock:
            entry, history = self._correction(place, name, revision)
            if history.previous is not None:
                self.corrections.save(entry.recording, name, history.previous)
                history.undo()
            return entry.track(name)

    def redo(self, place: int, name: str, revision: int) -> Track:
        """Repeat the last change that was taken back; `revision` is the one that the user sees, as for `edit`."""
        with self._lock:
            entry, history = self._correction(place, name, revision)
            if history.following is not None:
                self.corrections.save(entry.recording, name, history.following)
                history.redo()
            return entry.track(name)

    def progress(self) -> list[str]:
        """Tell of each correction that this session changed how many bouts it has and how much of the recording was observed."""
        lines = []
        for entry in self.entries:
            for name, history in entry.corrections.items():
                if history.revision or history.watches:
                    a = history.annotation
                    named = entry.subjects if any(track.subject is not None for track in a.observed.tracks) else (None,)
                    observed = [(who, iv.total(a.observed.of_all(a.ethogram.names, who)) / entry.n_frames) for who in named]
                    shares = ", ".join(f"{f'{who} ' if who else ''}{int(share * 1000) / 10:g} %" for who, share in observed)
                    lines.append(f"{entry.recording.id}, {name}: bouts: {len(a)}, observed: {shares}")
        return lines

    def video(self, place: int) -> Path | None:
        """Return a recording's video if it lies in one of the folders that are open, links followed."""
        path = self.entry(place).recording.video
        if path is None or not path.is_file():
            return None
        real = path.resolve()
        inside = any(real.is_relative_to(root.resolve()) for root in self.roots)
        return real if inside and real.suffix.lower() in VIDEO_TYPES else None

    def _correction(self, place: int, name: str, revision: int | None = None) -> tuple[Entry, History]:
        """Return a correction; an error if it has another revision than the one named."""
        entry = _labelable(self.entry(place))
        if name not in entry.corrections:
            raise EthobenchError(f"{name!r} is no correction, and only corrections can be changed")
        history = entry.corrections[name]
        if revision is not None and revision != history.revision:
            raise MismatchError(f"{name!r} has changed in the meantime (perhaps in another window); look again and repeat the change")
        return entry, history


def _labelable(entry: Entry) -> Entry:
    if entry.locked:
        raise EthobenchError(entry.locked)
    return entry


def _check_spans(spans: object, n_frames: int) -> Intervals:
    """Return reported spans as a disjoint set of frames."""
    if not isinstance(spans, list) or len(spans) > MOST_SPANS:
        raise EthobenchError(f"watched frames are a list of at most {MOST_SPANS} spans")
    for span in spans:
        is_pair = isinstance(span, list) and len(span) == 2 and all(type(edge) is int for edge in span)
        if not is_pair or not 0 <= span[0] < span[1] <= n_frames:
            raise MismatchError(f"watched frames go from one of {n_frames} frames to a later one, not {span!r}")
    return iv.union(iv.intervals([start for start, _ in spans], [stop for _, stop in spans]))
