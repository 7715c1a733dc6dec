"""A recording in the viewer: all its tracks on one clock and with one ethogram."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ethobench.app.blinding import blind_annotator
from ethobench.app.disagreement import disagreement
from ethobench.app.ethograms import EthogramChange
from ethobench.app.history import History, HistorySnapshot
from ethobench.app.suggestions import Evidence, corrected_frames
from ethobench.app.tiles import ProbabilityTiles, TrackTiles, share_tile, tile_edges
from ethobench.app.traces import Lane, lanes_of
from ethobench.core import Annotation, Ethogram, Observed, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.core.recording import Data
from ethobench.core.wording import join_names, plural

ANNOTATOR, MODEL, CORRECTION = "annotator", "model", "correction"
STATE_RATE = "state it in column 'rate' of recordings.csv, or when you start the viewer"
MAX_CACHED_LANES = 64


@dataclass(frozen=True)
class Track:
    """The annotation of a recording by an annotator, a model or a correction.

    `revision` grows with every edit, `watches` when watching adds observed frames.
    """

    name: str
    kind: str
    annotation: Annotation
    revision: int = 0
    prediction: Prediction | None = None
    watches: int = 0

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever the annotation does."""
        return self.revision, self.watches


@dataclass(frozen=True)
class TrackSnapshot:
    """The tracks of a recording at one time."""

    originals: tuple[Track, ...]
    corrections: Mapping[str, HistorySnapshot]


class OpenRecording:
    """A recording that is open in the viewer: all tracks have the same clock, length and ethogram.

    Parameters
    ----------
    recording : Recording
    ethogram : Ethogram
    predictions : mapping of str to Prediction or Annotation
        Predictions by model name.
    rate : float
        Frame rate of the display, in Hz.
    n_frames : int
    notes : iterable of str
    missing : sequence of str
        What is unknown, "frame rate" or "length". Such a recording can be viewed, but not labeled.
    listed : iterable of str, optional
        Behaviors that files of the user list; by default those of `ethogram` and of all annotations.
    blind : bool
        Show corrections only, neither other annotators nor models.
    """

    def __init__(
        self,
        recording: Recording,
        ethogram: Ethogram,
        predictions: Mapping[str, Prediction | Annotation],
        rate: float,
        n_frames: int,
        notes: Iterable[str] = (),
        missing: Sequence[str] = (),
        listed: Iterable[str] | None = None,
        *,
        blind: bool = False,
    ) -> None:
        self.missing = tuple(missing)
        self.recording, self.rate, self.n_frames = recording, rate, n_frames
        self.notes = [*notes, *(str(note) for note in recording.notes)]
        self.corrections: dict[str, History] = {}
        for annotation in [*recording.annotations.values(), *(_annotation(p) for p in predictions.values())]:
            ethogram = ethogram.join(annotation.ethogram)
        self.ethogram, self.blind = ethogram, blind
        self._listed = frozenset(ethogram.names if listed is None else listed)
        self.originals = [Track(name, ANNOTATOR, self.fit(a, name)) for name, a in recording.annotations.items()]
        for name, p in predictions.items():
            unique = name if name not in recording.annotations else f"{name} (model)"
            self.originals.append(Track(unique, MODEL, self.fit(_annotation(p), name), prediction=p if isinstance(p, Prediction) else None))
        self.motion: Lane | None = None  # motion energy of the video, once it is computed
        self._lock, self._loading = threading.Lock(), threading.Lock()
        self._differences: dict[tuple[tuple[str, tuple[int, int]], ...], Intervals] = {}

    @property
    def locked(self) -> str:
        """The reason why this recording cannot be labeled, and what to do; empty if it can."""
        if not self.missing:
            return ""
        if "length" not in self.missing:
            remedy = STATE_RATE
        elif self.recording.video is None:
            remedy = "add signals or a video"
        else:
            remedy = "its video cannot be read (see the notes)"
        return plural(
            len(self.missing),
            "{id!r} cannot be labeled because its {missing} is unknown: {remedy}",
            "{id!r} cannot be labeled because its {missing} are unknown: {remedy}",
            id=self.recording.id,
            missing=join_names(self.missing),
            remedy=remedy,
        )

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects of all tracks, also of those that blind mode hides, so that all annotators use the same names."""
        annotations = [*(t.annotation for t in self.originals), *(history.annotation for history in self.corrections.values())]
        named = [*self.recording.subjects, *(subject for annotation in annotations for subject in annotation.subjects)]
        return tuple(dict.fromkeys(named))

    @property
    def tracks(self) -> list[Track]:
        """Annotators, then models, then corrections; corrections only if `blind`; in requests of a blind page only its own correction."""
        corrections = [Track(name, CORRECTION, h.annotation, h.revision, watches=h.watches) for name, h in self.shown_corrections.items()]
        shown = [] if self.blind or blind_annotator() is not None else self.originals
        return [*(t for t in shown if t.name not in self.corrections), *corrections]

    @property
    def shown_corrections(self) -> dict[str, History]:
        """Corrections by annotator; in requests of a blind page only its own."""
        annotator = blind_annotator()
        return {name: history for name, history in self.corrections.items() if annotator is None or name == annotator}

    @property
    def shown_notes(self) -> list[str]:
        """Notes; in requests of a blind page without those about tracks that it does not see."""
        if blind_annotator() is None:
            return self.notes
        hidden = tuple(f"{track.name}: " for track in self.originals)
        return [note for note in self.notes if not note.startswith(hidden)]

    def track(self, name: str) -> Track:
        """Return a track by name."""
        for track in self.tracks:
            if track.name == name:
                return track
        raise NotFoundError(f"recording {self.recording.id!r} has no track {name!r}")

    def compared(self, names: Sequence[str] = ()) -> list[Track]:
        """Return the tracks with these names; by default annotators and models, plus corrections if there are fewer than two."""
        if names:
            return [track for track in self.tracks if track.name in names]
        others = [track for track in self.tracks if track.kind != CORRECTION]
        return others if len(others) > 1 else self.tracks

    def differences(self, names: Sequence[str] = ()) -> Intervals:
        """Return the frames in which tracks disagree."""
        tracks = self.compared(names)
        key = tuple((track.name, track.version) for track in tracks)
        with self._lock:
            if key not in self._differences:
                if len(self._differences) > 32:
                    self._differences.clear()
                self._differences[key] = disagreement([track.annotation for track in tracks])
            return self._differences[key]

    @property
    def disagreement(self) -> float | None:
        """Share of the recording in which tracks disagree; None with fewer than two tracks."""
        return iv.total(self.differences()) / max(self.n_frames, 1) if len(self.compared()) > 1 else None

    def evidence(self) -> Evidence:
        """Return the evidence that suggestions are computed from."""
        tracks = [track for track in self.tracks if track.kind != CORRECTION]
        others = [track.annotation for track in tracks]
        handled = [corrected_frames(history.annotation, others) for history in self.corrections.values()]
        return Evidence(
            individual=self.recording.individual,
            rate=self.rate,
            n_frames=self.n_frames,
            behaviors=self.ethogram.names,
            annotations=others,
            predictions=[t.prediction for t in tracks if t.prediction is not None],
            handled=iv.union_all(handled),
        )

    @cached_property
    def signals(self) -> Data | None:
        """Signals or poses; read on first access."""
        with self._loading:
            return self.recording.signals

    @cached_property
    def lanes(self) -> list[Lane]:
        """The lanes of signals."""
        return [] if self.signals is None else lanes_of(self.signals, self.rate)

    def adopt(self, name: str, annotation: Annotation) -> None:
        """Add a correction that was saved earlier; its behaviors are added to the ethogram."""
        self.ethogram = self.ethogram.join(annotation.ethogram)
        self.originals = [replace(t, annotation=t.annotation.with_ethogram(self.ethogram)) for t in self.originals]
        annotations = {**{other: history.annotation for other, history in self.corrections.items()}, name: annotation}
        self.corrections = {annotator: History(a.with_ethogram(self.ethogram)) for annotator, a in annotations.items()}

    def set_prediction(self, name: str, prediction: Prediction) -> None:
        """Add the track of a model, or replace it by a new prediction of the same name."""
        former = next((track for track in self.originals if track.name == name), None)
        revision = 0 if former is None else former.revision + 1
        track = Track(name, MODEL, self.fit(prediction.annotation, name), revision, prediction)
        if former is None:
            self.originals = [*self.originals, track]
        else:
            self.originals = [track if other is former else other for other in self.originals]

    def source_names(self, aliases: Mapping[str, str]) -> set[str]:
        """Return the behaviors that files of the user contain, by their current names."""
        names = {aliases.get(name, name) for name in self._listed}
        for track in self.originals:
            if track.name not in self.corrections and track.kind == ANNOTATOR:
                names |= {track.annotation.ethogram[int(code)].name for code in np.unique(track.annotation.behavior)}
        return names

    def snapshot(self) -> TrackSnapshot:
        """Return all tracks, to restore them with `change_ethogram`."""
        return TrackSnapshot(tuple(self.originals), {name: history.snapshot() for name, history in self.corrections.items()})

    def change_ethogram(self, change: EthogramChange, ethogram: Ethogram, snapshot: TrackSnapshot | None = None) -> None:
        """Express all tracks in another ethogram.

        Parameters
        ----------
        change : EthogramChange
        ethogram : Ethogram
        snapshot : TrackSnapshot, optional
            Tracks from before a change that is undone. Corrections that were not edited since return to it; to others the change is
            applied.
        """
        self.ethogram = ethogram
        revision = max((track.revision for track in self.originals), default=0) + 1
        earlier_tracks = {} if snapshot is None else {track.name: track for track in snapshot.originals if track.kind == ANNOTATOR}
        originals = []
        for track in self.originals:
            if track.name in earlier_tracks:  # models may have been trained again since
                annotation = earlier_tracks[track.name].annotation.with_ethogram(ethogram)
                originals.append(replace(track, annotation=annotation, revision=revision))
            else:
                originals.append(replace(_changed(track, change, ethogram), revision=revision))
        self.originals = originals
        for name, history in self.corrections.items():
            earlier = None if snapshot is None else snapshot.corrections.get(name)
            if earlier is not None and earlier.revision + 1 == history.revision:
                history.restore(earlier, lambda annotation: annotation.with_ethogram(ethogram))
            else:
                history.convert(lambda annotation: change.apply(annotation, ethogram))
        with self._lock:
            self._differences.clear()

    def empty_annotation(self) -> Annotation:
        """Return an annotation without bouts and without observed frames."""
        return Annotation.from_bouts(
            [], [], [], self.ethogram, self.rate, self.n_frames, observed=Observed(iv.empty()), subjects=self.subjects
        )

    def fit(self, annotation: Annotation, name: str) -> Annotation:
        """Convert an annotation to the displayed clock, length and ethogram; add a note if that changes it."""
        if annotation.rate != self.rate:
            self.notes.append(f"{name}: shown at {self.rate:g} Hz; the annotation has {annotation.rate:g} Hz")
            annotation = annotation.resample(self.rate)
        if annotation.n_frames > self.n_frames:
            self.notes.append(f"{name}: {annotation.n_frames - self.n_frames} frames after the end of the recording are not shown")
            annotation = annotation.crop(0, self.n_frames)
        return annotation.extend(self.n_frames).with_ethogram(self.ethogram)


def _changed(track: Track, change: EthogramChange, ethogram: Ethogram) -> Track:
    """Return a track with other names of behaviors."""
    prediction = None if track.prediction is None else change.apply_to_prediction(track.prediction)
    return replace(track, annotation=change.apply(track.annotation, ethogram), prediction=prediction)


def _annotation(prediction: Prediction | Annotation) -> Annotation:
    return prediction.annotation if isinstance(prediction, Prediction) else prediction


class LaneTiles:
    """Tiles of the lanes of one recording, cached until a track changes.

    Lanes have names such as ``track:2`` (all subjects), ``track:2:0`` (the first subject), ``track:2:-1`` (no subject), ``probability:3``
    (probabilities of a track), ``trace:0`` (a signal), ``motion`` (of the video), or ``disagreement:0,1,3`` (between these tracks).
    """

    def __init__(self, recording: OpenRecording) -> None:
        self.recording = recording
        self._cache: dict[tuple[str, str, tuple[int, int]], TrackTiles | ProbabilityTiles] = {}
        self._lock = threading.Lock()

    def tile(self, lane: str, level: int, index: int) -> dict[str, Any]:
        """Return one tile of one lane."""
        edges = tile_edges(level, index, self.recording.n_frames)
        kind, *numbers = lane.split(":")
        try:
            if kind == "motion" and self.recording.motion is not None:
                return self.recording.motion.tiles.tile(edges)
            if kind == "trace":
                return self.recording.lanes[_parse_number(numbers[0])].tiles.tile(edges)
            tracks = self.recording.tracks
            if kind == "disagreement":
                names = [tracks[_parse_number(number)].name for number in numbers[0].split(",") if number]
                return share_tile(self.recording.differences(names), edges)
            track = tracks[_parse_number(numbers[0])]
            subject = None
            if kind == "track" and len(numbers) > 1:
                subject = "" if numbers[1] == "-1" else self.recording.subjects[_parse_number(numbers[1])]
        except EthobenchError:
            raise
        except (IndexError, ValueError):
            raise NotFoundError(f"recording {self.recording.recording.id!r} has no lane {lane!r}") from None
        tiles = self._tiles(kind, track, subject)
        if tiles is None:
            raise NotFoundError(f"recording {self.recording.recording.id!r} has no lane {lane!r}")
        return tiles.tile(edges)

    def _tiles(self, kind: str, track: Track, subject: str | None) -> TrackTiles | ProbabilityTiles | None:
        key = (kind, f"{track.name}\n{subject}", track.version)
        with self._lock:
            if key not in self._cache:
                if kind == "track":
                    self._cache[key] = TrackTiles(track.annotation, subject)
                elif kind == "probability" and track.prediction is not None:
                    self._cache[key] = ProbabilityTiles(track.prediction, self.recording.ethogram.names)
                while len(self._cache) > MAX_CACHED_LANES:
                    self._cache.pop(next(iter(self._cache)))
            return self._cache.get(key)


def _parse_number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
