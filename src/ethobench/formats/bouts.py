"""Bouts as rows of a file, and their conversion to an annotation on a frame clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Observed
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, Option

SECONDS_RATE = 1000.0
FRAMES_RATE = 30.0
OFF_GRID = 0.01  # frames
MAX_FRAMES = 1e12


@dataclass
class BoutRows:
    """Columns of bouts as a file states them.

    Times are in the unit of the file, seconds or frames. `to_annotation` converts them to frames, repairs what it can and notes it.
    `location` says where in the file each bout is, such as ``"row 12"``.
    """

    path: Path
    start: list[float] = field(default_factory=list)
    stop: list[float] = field(default_factory=list)
    behavior: list[str] = field(default_factory=list)
    subject: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)
    modifiers: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    confidence: list[float] = field(default_factory=list)
    location: list[str] = field(default_factory=list)

    def add(
        self,
        start: float,
        stop: float,
        behavior: str,
        *,
        subject: str = "",
        target: str = "",
        modifiers: str = "",
        comment: str = "",
        confidence: float = np.nan,
        location: str = "",
    ) -> None:
        """Append one bout."""
        self.start.append(start)
        self.stop.append(stop)
        self.behavior.append(behavior)
        self.subject.append(subject)
        self.target.append(target)
        self.modifiers.append(modifiers)
        self.comment.append(comment)
        self.confidence.append(confidence)
        self.location.append(location)

    def __len__(self) -> int:
        return len(self.start)

    def to_annotation(
        self,
        ethogram: Ethogram,
        rate: float,
        *,
        seconds: bool,
        n_frames: int | None = None,
        observed: Observed | None = None,
        subjects: Sequence[str] = (),
    ) -> tuple[Annotation, list[Note]]:
        """Convert the bouts to an annotation.

        Parameters
        ----------
        ethogram : Ethogram
            Must contain every behavior of the bouts.
        rate : float
            Frames per second of the clock.
        seconds : bool
            Whether times are in seconds; otherwise they are frames.
        n_frames : int, optional
            Length stated by the file. Bouts beyond it lengthen the recording, with a note. By default the last bout ends it.
        observed : Observed, optional
            By default all frames.
        subjects : sequence of str
            Animals of the recording, including those without bouts.

        Returns
        -------
        annotation : Annotation
        notes : list of Note
        """
        start, stop, keep, notes = self._checked_times(rate if seconds else 1.0)
        first, last = to_clock(start[keep], rate, seconds), to_clock(stop[keep], rate, seconds)
        notes += off_grid_notes(np.concatenate((start[keep], stop[keep])), rate, seconds)
        end = int(last.max()) if last.size else 0
        length = end if n_frames is None else n_frames
        if end > length:
            over = keep.copy()
            over[keep] = last > length
            message = f"{{name}} ends after the last of {length} frames; the recording is read as {end} frames long"
            notes += self._note_at(over, message, "extended-length")
            length = end
            if observed is None:
                observed = Observed.full(length)
        chosen = np.flatnonzero(keep)
        annotation = Annotation.from_bouts(
            first,
            last,
            [self.behavior[i] for i in chosen],
            ethogram,
            rate,
            length,
            subject=_select(self.subject, chosen),
            target=_select(self.target, chosen),
            modifiers=_select(self.modifiers, chosen),
            comment=_select(self.comment, chosen),
            confidence=None if np.isnan(self.confidence).all() else np.array(self.confidence)[chosen],
            observed=observed,
            subjects=subjects,
            order=chosen,
        )
        return annotation, notes

    def _checked_times(self, scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], list[Note]]:
        """Return starts, stops, which bouts have both, and notes; `scale` converts times to frames.

        Raises
        ------
        FormatError
            If a time is negative or implausibly late.
        """
        notes: list[Note] = []
        start, stop = np.array(self.start, dtype=float), np.array(self.stop, dtype=float)
        keep = np.isfinite(start) & np.isfinite(stop)
        notes += self._note_at(~keep, "{name} has no start or stop time; dropped", "dropped-bouts")
        reverse = keep & (stop < start)
        if reverse.any():
            i = int(np.flatnonzero(reverse)[0])
            message = f"{{name}} stops at {stop[i]:g}, before its start at {start[i]:g}; read as a bout of zero length"
            notes += self._note_at(reverse, message, "reversed-bouts")
        stop = np.where(reverse, start, stop)
        early = keep & (start < 0)
        if early.any():
            i = int(np.flatnonzero(early)[0])
            raise FormatError(self.path, f"{self.behavior[i]!r} starts at {start[i]:g}, before the recording starts", self.location[i])
        late = keep & (stop * scale > MAX_FRAMES)
        if late.any():
            i = int(np.flatnonzero(late)[0])
            raise FormatError(self.path, f"{self.behavior[i]!r} ends at {stop[i]:g}, longer than any recording", self.location[i])
        return start, stop, keep, notes

    def _note_at(self, bad: NDArray[np.bool_], message: str, code: str) -> list[Note]:
        """Return one note with the name and location of the first such bout and their number; none if there are none."""
        rows = np.flatnonzero(bad)
        if rows.size == 0:
            return []
        i = int(rows[0])
        more = f" ({rows.size} such bouts)" if rows.size > 1 else ""
        return [Note(f"{message.format(name=repr(self.behavior[i]))}{more}", self.location[i], code)]


def named_ethogram(names: Sequence[str]) -> Ethogram:
    """Return an ethogram whose background behavior is guessed from the names."""
    return Ethogram(names, guess_background(names))


def background_notes(title: str, ethogram: Ethogram) -> list[Note]:
    """Return a note if readers of a written file will guess the background behavior wrongly from the names; no note otherwise."""
    name, guess = ethogram.background_name, guess_background(ethogram.names)
    if guess == name:
        return []
    effect = f"{name!r} will be read as an ordinary behavior" if name else f"{guess!r} will be read as background"
    return [Note(f"{title} does not store which behavior is background; {effect}", code="lost-background")]


def unused_behavior_notes(title: str, annotation: Annotation, advice: str = "") -> list[Note]:
    """Return a note that lists the behaviors without bouts, which a file without an ethogram loses; no note if there are none."""
    unused = [name for code, name in enumerate(annotation.ethogram.names) if not (annotation.behavior == code).any()]
    if not unused:
        return []
    return [Note(f"{title} stores only behaviors with bouts; lost: {', '.join(unused)}{advice}", code="lost-behaviors")]


def to_clock(times: ArrayLike, rate: float, seconds: bool) -> NDArray[np.int64]:
    """Return times in seconds or frames, rounded to the nearest frame."""
    scaled = np.asarray(times, dtype=float) * (rate if seconds else 1.0)
    return np.floor(scaled + 0.5).astype(np.int64)


def off_grid_notes(times: ArrayLike, rate: float, seconds: bool) -> list[Note]:
    """Return a note with the number of times that fall between two frames; no note if there are none."""
    scaled = np.asarray(times, dtype=float) * (rate if seconds else 1.0)
    off = np.abs(scaled - np.floor(scaled + 0.5))
    count = int((off > OFF_GRID).sum())
    if not count:
        return []
    message = f"{count} of {scaled.size} times fall between frames at {rate:g} Hz (by up to {off.max():.2f} frames); rounded"
    return [Note(message, code="rounded-times")]


def frames_rate(rate: float | None) -> tuple[float, list[Note]]:
    """Return the rate of a file that counts frames without stating their rate: `rate`, or 30 Hz with a note."""
    if rate is not None:
        return rate, []
    message = Message(f"no frame rate in the file; assuming {FRAMES_RATE:g} Hz (set it with ", Option("rate"), ")")
    return FRAMES_RATE, [Note(message, code="assumed-rate")]


def origin_of(stated: float | None) -> ClockOrigin:
    """Return the origin of a clock: stated by the file, or assumed if `stated` is None. `read_recordings` marks rates set by users."""
    return ClockOrigin.ASSUMED if stated is None else ClockOrigin.STATED


def _select(column: list[str], chosen: NDArray[np.int64]) -> list[str] | None:
    return [column[i] for i in chosen] if any(column) else None
