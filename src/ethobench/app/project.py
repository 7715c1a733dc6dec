"""The project that is open in the viewer: recordings with their tracks, and corrections."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from io import BytesIO
from pathlib import Path

from ethobench.app.corrections import ChangedOnDiskError, Corrections, check_annotator
from ethobench.app.editing import Edit, add_observed, apply_edits, change_subject
from ethobench.app.ethogram_editing import EthogramEditor
from ethobench.app.history import History
from ethobench.app.random_subset import RandomSubset
from ethobench.app.recordings import MODEL, OpenRecording, Track
from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.core.names import file_stem
from ethobench.core.occurrence import Occurrence
from ethobench.core.signals import Keypoint
from ethobench.formats import formats, write_recordings

VIDEO_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".ogv": "video/ogg",
    ".avi": "video/x-msvideo",
}
MAX_SPANS = 1000


@dataclass
class Project:
    """Recordings that are open in the viewer.

    Attributes
    ----------
    name : str
    recordings : list of OpenRecording
        The page addresses them by their index.
    corrections : Corrections
    roots : tuple of Path
        Videos are shown only from inside these folders.
    keypoints : mapping of name to Keypoint
        Roles and mirror partners of keypoints, if known.
    occurrence : Occurrence
        Which behaviors occurred in which tracks when the project was opened.
    colors : dict of str to int or None
        Index into the palette for each behavior; None for the background.
    ethograms : EthogramEditor
    subset : RandomSubset
        What was drawn for agreement between annotators.
    blind : bool
        Show neither other annotators nor models.
    """

    name: str
    recordings: list[OpenRecording]
    corrections: Corrections
    roots: tuple[Path, ...] = ()
    notes: list[str] = field(default_factory=list)
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)
    blind: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self.ethograms = EthogramEditor(self.recordings, self.corrections)
        self.subset = RandomSubset(self.corrections)
        by_id = {recording.recording.id: recording for recording in self.recordings}
        for (recording_id, annotator), annotation in self.corrections.load().items():
            recording = by_id.get(recording_id)
            if recording is None:
                self.notes.append(f"{self.corrections.manifest}: corrects {recording_id!r}, which is not open")
            elif (annotation.rate, annotation.n_frames) != (recording.rate, recording.n_frames):
                self.notes.append(
                    f"{self.corrections.manifest}: {annotator!r} of {recording_id!r} has a different frame rate or length and is not shown"
                )
            else:
                self.ethograms.adopt(recording, annotator, annotation)
        self.ethograms.complete()
        self.notes += [*self.corrections.notes, *self.ethograms.notes]
        self.occurrence = self._count_behaviors()
        self.colors = self.occurrence.color_indices()

    def _count_behaviors(self) -> Occurrence:
        """Count behaviors in all tracks. Colors are assigned by these counts once, so that they do not change while labeling."""
        ethogram = reduce(Ethogram.join, (recording.ethogram for recording in self.recordings), Ethogram([]))
        tracks = [track for recording in self.recordings for track in recording.tracks]
        models = [track.annotation for track in tracks if track.kind == MODEL]
        return Occurrence.count(ethogram, (track.annotation for track in tracks if track.kind != MODEL), models)

    def recording(self, index: int) -> OpenRecording:
        """Return a recording by its index."""
        if not 0 <= index < len(self.recordings):
            raise NotFoundError(f"no recording {index}; there are {len(self.recordings)}")
        return self.recordings[index]

    def edit_ethogram(self, revision: int, behaviors: object, confirmed: object = None) -> list[str]:
        """Change the ethogram of the session; see `EthogramEditor.edit`."""
        with self._lock:
            warnings = self.ethograms.edit(revision, behaviors, confirmed)
            self._color_new_behaviors()
            return warnings

    def undo_ethogram(self, revision: int) -> list[str]:
        """Undo the last change of the ethogram."""
        with self._lock:
            warnings = self.ethograms.undo(revision)
            self._color_new_behaviors()
            return warnings

    def refresh_ethogram(self) -> None:
        """Read the ethogram of the session again if another viewer changed it."""
        with self._lock:
            self.ethograms.reload_if_changed()
            self._color_new_behaviors()

    def _color_new_behaviors(self) -> None:
        """Give new behaviors the next colors; a renamed behavior keeps its color."""
        for entry in self.ethograms.entries:
            earlier = [self.colors[alias] for alias in entry.aliases if alias in self.colors]
            following = max((index + 1 for index in self.colors.values() if index is not None), default=0)
            if entry.background:
                self.colors[entry.name] = None
            elif self.colors.get(entry.name) is None:
                self.colors[entry.name] = next((index for index in earlier if index is not None), following)

    def start(self, index: int, name: object, copy: str | None = None, subjects: Sequence[str] = ()) -> Track:
        """Start a correction under a new annotator name, from a copy of a track or without bouts.

        Parameters
        ----------
        index : int
        name : str
        copy : str, optional
            The track to copy.
        subjects : sequence of str
            Names of the animals, if the recording does not name any.
        """
        with self._lock:
            recording = _labelable(self.recording(index))
            used = {t.name for r in self.recordings for t in r.originals if t.name not in r.corrections} | {*recording.corrections}
            annotator = check_annotator(name, used)
            annotation = recording.empty_annotation() if copy is None else recording.track(copy).annotation
            for subject in () if recording.subjects else subjects:
                annotation = change_subject(annotation, None, subject)
            self.corrections.save(recording.recording, annotator, annotation)
            recording.corrections[annotator] = History(annotation)
            return recording.track(annotator)

    def edit(self, index: int, name: str, revision: int, edits: Sequence[Edit]) -> Track:
        """Edit a correction and save it.

        Parameters
        ----------
        index : int
        name : str
        revision : int
            The revision that the edits apply to.
        edits : sequence of mapping
            See `apply_edits`. They are applied without holding the lock, so that a large edit does not block other requests.

        Raises
        ------
        MismatchError
            If the correction has a different revision.
        """
        return self.change(index, name, revision, lambda annotation: apply_edits(annotation, edits))

    def change(self, index: int, name: str, revision: int | None, change: Callable[[Annotation], Annotation]) -> Track:
        """Change a correction by a function of its annotation, and save it.

        Parameters
        ----------
        index : int
        name : str
        revision : int or None
            The revision that the change applies to; None for the current one.
        change : callable
            Returns the changed annotation. Called without holding the lock, and again if the correction changed in the meantime.

        Raises
        ------
        MismatchError
            If the correction has a different revision.
        """
        while True:
            with self._lock:
                self.refresh_ethogram()
                recording, history = self._correction(index, name, revision)
                base = history.annotation
            changed = change(base)
            with self._lock:
                self._correction(index, name, revision)
                if history.annotation is not base:  # frames were marked as observed in the meantime
                    continue
                if changed != base:
                    self._save(recording, name, changed)
                    history.change(changed)
                return recording.track(name)

    def watch(self, index: int, name: str, spans: object, subject: str | None = None) -> Track:
        """Mark frames that were played or stepped through as observed, and save the correction.

        Parameters
        ----------
        index : int
        name : str
        spans : list of [start, stop]
            Half-open frames as the page reports them; duplicates, overlaps and any order are fine.
        subject : str, optional
            The subject that was being labeled; all subjects if None.
        """
        with self._lock:
            recording, history = self._correction(index, name)
            frames = _check_spans(spans, recording.n_frames)
            if subject is not None and subject not in recording.subjects:
                raise NotFoundError(f"recording {recording.recording.id!r} has no subject {subject!r}")
            watched = add_observed(history.annotation, frames, subject)
            if watched is not history.annotation:
                self._save(recording, name, watched)
            history.watch(frames, subject)
            return recording.track(name)

    def undo(self, index: int, name: str, revision: int) -> Track:
        """Undo the last edit of a correction; `revision` is the displayed one, as for `edit`."""
        with self._lock:
            recording, history = self._correction(index, name, revision)
            if history.previous is not None:
                self._save(recording, name, history.previous)
                history.undo()
            return recording.track(name)

    def redo(self, index: int, name: str, revision: int) -> Track:
        """Redo the last undone edit; `revision` is the displayed one, as for `edit`."""
        with self._lock:
            recording, history = self._correction(index, name, revision)
            if history.following is not None:
                self._save(recording, name, history.following)
                history.redo()
            return recording.track(name)

    def _save(self, recording: OpenRecording, name: str, annotation: Annotation) -> None:
        """Save a correction; if another viewer changed its file, load that state instead and raise an error."""
        try:
            self.corrections.save(recording.recording, name, annotation)
        except ChangedOnDiskError:
            reloaded = self.corrections.reload(recording.recording.id, name)
            if (reloaded.rate, reloaded.n_frames) != (recording.rate, recording.n_frames):
                raise
            recording.corrections[name].change(self.ethograms.express(recording, reloaded))
            raise MismatchError(
                f"{name!r} was changed by another program and has been loaded again; check it and repeat the edit"
            ) from None

    def progress(self) -> list[str]:
        """Return a line for each correction that was changed in this session: bouts, and observed share."""
        lines = []
        for recording in self.recordings:
            for name, history in recording.corrections.items():
                if history.revision or history.watches:
                    a = history.annotation
                    subjects = recording.subjects if any(track.subject is not None for track in a.observed.tracks) else (None,)
                    observed = [
                        (subject, iv.total(a.observed.of_all(a.ethogram.names, subject)) / recording.n_frames) for subject in subjects
                    ]
                    shares = ", ".join(f"{f'{subject} ' if subject else ''}{int(share * 1000) / 10:g} %" for subject, share in observed)
                    lines.append(f"{recording.recording.id}, {name}: bouts: {len(a)}, observed: {shares}")
        return lines

    def video(self, index: int) -> Path | None:
        """Return the path of a recording's video if it lies inside an opened folder after links are resolved."""
        path = self.recording(index).recording.video
        return path.resolve() if path is not None and self.can_show(path) else None

    def can_show(self, video: Path) -> bool:
        """Whether a video exists and lies inside an opened folder after links are resolved."""
        real = video.resolve()
        is_inside = any(real.is_relative_to(root.resolve()) for root in self.roots)
        return video.is_file() and is_inside and real.suffix.lower() in VIDEO_TYPES

    def _correction(self, index: int, name: str, revision: int | None = None) -> tuple[OpenRecording, History]:
        """Return a correction; raise an error if its revision differs from the stated one."""
        recording = _labelable(self.recording(index))
        if name not in recording.shown_corrections:
            raise EthobenchError(f"{name!r} is not a correction; only corrections can be edited")
        history = recording.corrections[name]
        if revision is not None and revision != history.revision:
            raise MismatchError(f"{name!r} has changed in the meantime, perhaps in another window; check it and repeat the edit")
        return recording, history


def _labelable(recording: OpenRecording) -> OpenRecording:
    if recording.locked:
        raise EthobenchError(recording.locked)
    return recording


def _check_spans(spans: object, n_frames: int) -> Intervals:
    """Validate reported spans; return their union."""
    if not isinstance(spans, list) or len(spans) > MAX_SPANS:
        raise EthobenchError(f"watched frames must be a list of at most {MAX_SPANS} spans")
    for span in spans:
        is_pair = isinstance(span, list) and len(span) == 2 and all(type(edge) is int for edge in span)
        if not is_pair or not 0 <= span[0] < span[1] <= n_frames:
            raise MismatchError(f"a watched span must be [start, stop] with 0 <= start < stop <= {n_frames}, got {span!r}")
    return iv.union(iv.intervals([start for start, _ in spans], [stop for _, stop in spans]))


@dataclass(frozen=True)
class Exported:
    """A file to download, and notes about what its format could not store."""

    name: str
    content: bytes
    notes: list[str]


def export(project: Project, indices: list[int], track: str, format: str) -> Exported:
    """Write one track of one or several recordings to a file; a ZIP file if the format stores each recording in a file of its own.

    Parameters
    ----------
    project : Project
    indices : list of int
        The recordings; those without this track are skipped.
    track : str
    format : str
        Name of a writable format.
    """
    writer = formats[format]
    chosen = [recording for recording in map(project.recording, indices) if any(t.name == track for t in recording.tracks)]
    if not chosen:
        raise EthobenchError(f"{track!r} has annotated none of these recordings")
    with_poses = "poses" in writer.contents
    recordings = [
        Recording(
            recording.recording.id,
            individual=recording.recording.individual,
            rate=recording.rate,
            signals=recording.signals if with_poses else None,
            annotations={track: recording.track(track).annotation},
            video=recording.recording.video,
            start_time=recording.recording.start_time,
            metadata=recording.recording.metadata,
        )
        for recording in chosen
    ]
    suffix = writer.suffixes[0] if writer.suffixes else ""
    is_one_file = len(recordings) == 1 or writer.multiple_recordings
    base = file_stem(recordings[0].id if len(recordings) == 1 else project.name)
    groups = [recordings] if is_one_file else [[recording] for recording in recordings]
    stems = [base] if is_one_file else [file_stem(recording.id) for recording in recordings]
    files: dict[str, bytes] = {}
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for stem, group in zip(stems, groups, strict=True):
            path = Path(folder) / f"{stem}.{file_stem(track)}{suffix}"
            if path.name in files:  # names that differ only in characters that files cannot have
                path = path.with_name(f"{stem}_{len(files) + 1}.{file_stem(track)}{suffix}")
            notes += [str(note) for note in write_recordings(group, path, format)]
            files[path.name] = path.read_bytes()
    if is_one_file:
        return Exported(*next(iter(files.items())), notes)
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return Exported(f"{base}.{file_stem(track)}.zip", packed.getvalue(), list(dict.fromkeys(notes)))
