"""From the times in a file to bouts on a clock, with an account of every repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Observed
from ethobench.core.errors import FormatError, Note

SECONDS_RATE = 1000.0
FRAMES_RATE = 30.0
OFF_GRID = 0.01
MAX_FRAMES = 1e12


@dataclass
class BoutRows:
    """Bouts as a file states them, row by row.

    Times are in seconds or frames as the file has them; `to_annotation` puts them on the clock, mends what can be
    mended and notes it.
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
        """Put the bouts on a clock.

        Parameters
        ----------
        ethogram : Ethogram
            Must hold every behavior named.
        rate : float
            Frames per second of the clock.
        seconds : bool
            Whether times are seconds (else frames).
        n_frames : int, optional
            Length as the file tells it. Bouts beyond it lengthen the recording, with a note. Without it the last bout ends it.
        observed : Observed, optional
        subjects : sequence of str
            Animals that may be named though no bout does.

        Returns
        -------
        annotation : Annotation
        notes : list of Note
        """
        notes: list[Note] = []
        start, stop = np.array(self.start, dtype=float), np.array(self.stop, dtype=float)
        keep = np.isfinite(start) & np.isfinite(stop)
        notes += self._note_at(~keep, "has no start or stop time; dropped")
        reverse = keep & (stop < start)
        notes += self._note_at(reverse, "stops before it starts; read as zero-length at its start")
        stop = np.where(reverse, start, stop)
        early = keep & (start < 0)
        if early.any():
            i = int(np.flatnonzero(early)[0])
            raise FormatError(self.path, f"{self.behavior[i]!r} starts at {start[i]:g}, before the recording", self.location[i])
        late = keep & (stop * (rate if seconds else 1.0) > MAX_FRAMES)
        if late.any():
            i = int(np.flatnonzero(late)[0])
            raise FormatError(self.path, f"{self.behavior[i]!r} ends at {stop[i]:g}, which no recording reaches", self.location[i])
        first, last = to_clock(start[keep], rate, seconds), to_clock(stop[keep], rate, seconds)
        notes += off_grid_notes(np.concatenate((start[keep], stop[keep])), rate, seconds)
        end = int(last.max()) if last.size else 0
        length = end if n_frames is None else n_frames
        if end > length:
            over = keep.copy()
            over[keep] = last > length
            notes += self._note_at(over, f"ends after the last of {length} frames; the recording is taken as {end} frames long")
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
            subject=_chosen(self.subject, chosen),
            target=_chosen(self.target, chosen),
            modifiers=_chosen(self.modifiers, chosen),
            comment=_chosen(self.comment, chosen),
            confidence=None if np.isnan(self.confidence).all() else np.array(self.confidence)[chosen],
            observed=observed,
            subjects=subjects,
            order=chosen,
        )
        return annotation, notes

    def _note_at(self, bad: NDArray[np.bool_], what: str) -> list[Note]:
        """One note per kind of trouble: the first place, and how many there are."""
        found = np.flatnonzero(bad)
        if found.size == 0:
            return []
        i = int(found[0])
        more = f" ({found.size} such bouts)" if found.size > 1 else ""
        return [Note(f"{self.behavior[i]!r} {what}{more}", self.location[i])]


def to_clock(times: ArrayLike, rate: float, seconds: bool) -> NDArray[np.int64]:
    """Bring times to the nearest frame."""
    scaled = np.asarray(times, dtype=float) * (rate if seconds else 1.0)
    return np.floor(scaled + 0.5).astype(np.int64)


def off_grid_notes(times: ArrayLike, rate: float, seconds: bool) -> list[Note]:
    """Note how many times fall between two frames of the clock."""
    scaled = np.asarray(times, dtype=float) * (rate if seconds else 1.0)
    off = np.abs(scaled - np.floor(scaled + 0.5))
    count = int((off > OFF_GRID).sum())
    if not count:
        return []
    return [
        Note(f"{count} of {scaled.size} times fall between frames at {rate:g} Hz (by up to {off.max():.2f} frames); taken to the nearest")
    ]


def frames_rate(rate: float | None) -> tuple[float, list[Note]]:
    """Return the rate of a file that counts frames without telling their rate: as given, or 30 Hz with a note."""
    if rate is not None:
        return rate, []
    return FRAMES_RATE, [Note(f"the file tells no frame rate; read as {FRAMES_RATE:g} Hz (give rate= to change that)")]


def origin_of(stated: float | None) -> ClockOrigin:
    """Return the origin of a clock whose rate the file states, or (None) does not; `read_recordings` marks the rates that users give."""
    return ClockOrigin.ASSUMED if stated is None else ClockOrigin.STATED


def _chosen(column: list[str], chosen: NDArray[np.int64]) -> list[str] | None:
    return [column[i] for i in chosen] if any(column) else None
