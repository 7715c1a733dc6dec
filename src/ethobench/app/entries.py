"""One recording as the viewer shows it: all tracks on one clock and in one ethogram."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ethobench.app.disagreement import disagreement
from ethobench.app.history import History
from ethobench.app.suggestions import Evidence, corrected_frames
from ethobench.app.traces import Lane, lanes_of
from ethobench.core import Annotation, Ethogram, Observed, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.core.recording import Data

ANNOTATOR, MODEL, CORRECTION = "annotator", "model", "correction"


@dataclass(frozen=True)
class Track:
    """What one annotator, model or correction says of a recording.

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


class Entry:
    """One recording as it is shown: every track on one clock and in one ethogram.

    Parameters
    ----------
    recording : Recording
    ethogram : Ethogram
    predictions : mapping of str to Prediction or Annotation
        What models say, by name.
    rate : float
        The clock that is shown.
    n_frames : int
    notes : iterable of str
    missing : sequence of str
        What is unknown of the clock, "frame rate" or "length"; such a recording can be looked at, not labelled.
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
    ) -> None:
        self.missing = tuple(missing)
        self.recording, self.rate, self.n_frames = recording, rate, n_frames
        self.notes = [*notes, *(str(note) for note in recording.notes)]
        self.corrections: dict[str, History] = {}
        said = [*recording.annotations.values(), *(_annotation(p) for p in predictions.values())]
        for annotation in said:
            ethogram = ethogram.join(annotation.ethogram)
        self.ethogram = ethogram
        self.originals = [Track(name, ANNOTATOR, self.fit(a, name)) for name, a in recording.annotations.items()]
        for name, p in predictions.items():
            unique = name if name not in recording.annotations else f"{name} (model)"
            self.originals.append(Track(unique, MODEL, self.fit(_annotation(p), name), prediction=p if isinstance(p, Prediction) else None))
        self._lock, self._loading = threading.Lock(), threading.Lock()
        self._differences: dict[tuple[tuple[str, tuple[int, int]], ...], Intervals] = {}

    @property
    def locked(self) -> str:
        """Why this recording cannot be labelled, and what to do; empty where it can."""
        if not self.missing:
            return ""
        if "length" not in self.missing:
            remedy = "state it in column 'rate' of recordings.csv or with --rate"
        elif self.recording.video is None:
            remedy = "give it signals or a video"
        else:
            remedy = "its video gives none (see the notes)"
        verb = "are" if len(self.missing) > 1 else "is"
        return f"{self.recording.id!r} cannot be labelled, as its {' and '.join(self.missing)} {verb} unknown: {remedy}"

    @property
    def subjects(self) -> tuple[str, ...]:
        """The animals that any track may name."""
        named = [*self.recording.subjects, *(s for t in self.tracks for s in t.annotation.subjects)]
        return tuple(dict.fromkeys(named))

    @property
    def tracks(self) -> list[Track]:
        """Annotators, then models, then corrections."""
        mine = [Track(name, CORRECTION, h.annotation, h.revision, watches=h.watches) for name, h in self.corrections.items()]
        return [*(t for t in self.originals if t.name not in self.corrections), *mine]

    def track(self, name: str) -> Track:
        """Return a track by name."""
        for track in self.tracks:
            if track.name == name:
                return track
        raise NotFoundError(f"recording {self.recording.id!r} has no track {name!r}")

    def compared(self, names: Sequence[str] = ()) -> list[Track]:
        """Return the tracks named; unless any are, those of annotators and models, and corrections only where they are too few."""
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
        """Share of the recording in which tracks disagree; None with fewer than two."""
        return iv.total(self.differences()) / max(self.n_frames, 1) if len(self.compared()) > 1 else None

    def evidence(self) -> Evidence:
        """Return what is known for suggestions."""
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
        """Signals or poses; read when first asked for."""
        with self._loading:
            return self.recording.signals

    @cached_property
    def lanes(self) -> list[Lane]:
        """The lanes of signals."""
        return [] if self.signals is None else lanes_of(self.signals, self.rate)

    def adopt(self, name: str, annotation: Annotation) -> None:
        """Take up a correction that was saved before; behaviors that it brings along become part of the ethogram."""
        self.ethogram = self.ethogram.join(annotation.ethogram)
        self.originals = [replace(t, annotation=t.annotation.with_ethogram(self.ethogram)) for t in self.originals]
        saved = {**{known: history.annotation for known, history in self.corrections.items()}, name: annotation}
        self.corrections = {known: History(a.with_ethogram(self.ethogram)) for known, a in saved.items()}

    def nothing(self) -> Annotation:
        """Return an annotation by somebody who has not looked at anything yet."""
        unseen = Observed(iv.empty())
        return Annotation.from_bouts([], [], [], self.ethogram, self.rate, self.n_frames, observed=unseen, subjects=self.subjects)

    def fit(self, annotation: Annotation, name: str) -> Annotation:
        """Bring an annotation to the clock, length and ethogram that are shown; what that changes is noted."""
        if annotation.rate != self.rate:
            self.notes.append(f"{name}: shown at {self.rate:g} Hz, its own clock runs at {annotation.rate:g} Hz")
            annotation = annotation.resample(self.rate)
        if annotation.n_frames > self.n_frames:
            self.notes.append(f"{name}: {annotation.n_frames - self.n_frames} frames after the end of the recording are not shown")
            annotation = annotation.crop(0, self.n_frames)
        return annotation.extend(self.n_frames).with_ethogram(self.ethogram)


def _annotation(said: Prediction | Annotation) -> Annotation:
    return said.annotation if isinstance(said, Prediction) else said
