"""Which frames an annotator looked at, and for which behaviors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals


class Track(NamedTuple):
    """A behavior of a subject towards a target; None stands for any."""

    behavior: str | None = None
    subject: str | None = None
    target: str | None = None


class Observed:
    """Sorted intervals of frames that were looked at, with exceptions for single tracks.

    Parameters
    ----------
    frames : Intervals
        What was looked at for every track that has no exception of its own.
    tracks : mapping of Track to Intervals, optional
        Exceptions. The most specific one holds: behavior, subject and target; then behavior and subject;
        then behavior; then subject.
    """

    def __init__(self, frames: Intervals, tracks: Mapping[Track, Intervals] | None = None) -> None:
        self.frames = iv.union(frames)
        self.tracks = {Track(*track): iv.union(where) for track, where in (tracks or {}).items()}

    @classmethod
    def full(cls, n_frames: int) -> Observed:
        """Everything was looked at."""
        return cls(iv.full(n_frames))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Observed):
            return NotImplemented
        return (
            _same(self.frames, other.frames)
            and self.tracks.keys() == other.tracks.keys()
            and all(_same(where, other.tracks[track]) for track, where in self.tracks.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        extra = f", {len(self.tracks)} tracks of their own" if self.tracks else ""
        return f"Observed({iv.total(self.frames)} frames in {len(self.frames.start)} intervals{extra})"

    def of(self, behavior: str, subject: str | None = None, target: str | None = None) -> Intervals:
        """Return the frames looked at for one behavior (of one subject, towards one target).

        Without a subject, the frames looked at for every subject that has an exception.
        """
        if not self.tracks:
            return self.frames
        for track in (Track(behavior, subject, target), Track(behavior, subject), Track(behavior), Track(None, subject)):
            if track in self.tracks and (subject is not None or track.behavior is not None):
                return self.tracks[track]
        if subject is None:
            own = {(t.subject, t.target) for t in self.tracks if t.behavior in (behavior, None) and t.subject is not None}
            if own:
                return _intersection_all([self.of(behavior, who, whom) for who, whom in sorted(own, key=str)])
        return self.frames

    def of_all(self, behaviors: Iterable[str], subject: str | None = None) -> Intervals:
        """Return the frames in which every one of these behaviors (of one subject) was looked at."""
        sets = [self.of(b, subject) for b in behaviors] if self.tracks else []
        return _intersection_all(sets) if sets else self.frames

    def of_any(self) -> Intervals:
        """Return the frames in which anything was looked at."""
        return iv.union_all([self.frames, *self.tracks.values()])

    def is_complete(self, n_frames: int) -> bool:
        """Tell whether every track was looked at from beginning to end."""
        return all(iv.total(where) == n_frames for where in (self.frames, *self.tracks.values()))

    def apply(self, change: Callable[[Intervals], Intervals]) -> Observed:
        """Return a copy with every interval set changed in the same way."""
        return Observed(change(self.frames), {track: change(where) for track, where in self.tracks.items()})

    def restrict(self, behaviors: Iterable[str]) -> Observed:
        """Forget the exceptions of behaviors that are not among these."""
        keep = {None, *behaviors}
        return Observed(self.frames, {t: where for t, where in self.tracks.items() if t.behavior in keep})

    def rename(self, names: Mapping[str, str], behaviors: Iterable[str]) -> Observed:
        """Rename behaviors; of several that become one, only what was looked at for all counts."""
        if not self.tracks:
            return self
        parts: dict[str, list[str]] = {}
        for name in behaviors:
            parts.setdefault(names.get(name, name), []).append(name)
        tracks: dict[Track, Intervals] = {t: where for t, where in self.tracks.items() if t.behavior is None}
        pairs = {(t.subject, t.target) for t in self.tracks if t.behavior is not None}
        for new, olds in parts.items():
            for subject, target in pairs:
                if any(Track(old, subject, target) in self.tracks for old in olds):
                    tracks[Track(new, subject, target)] = _intersection_all([self.of(old, subject, target) for old in olds])
        return Observed(self.frames, tracks)

    def join(self, other: Observed, offset: int) -> Observed:
        """Return what was looked at in this stretch and in `other`, which begins at frame `offset`."""
        tracks = {}
        for track in {**self.tracks, **other.tracks}:
            mine, theirs = (
                side.tracks.get(track, side.frames) if track.behavior is None else side.of(track.behavior, track.subject, track.target)
                for side in (self, other)
            )
            tracks[track] = iv.union_all([mine, iv.shift(theirs, offset)])
        return Observed(iv.union_all([self.frames, iv.shift(other.frames, offset)]), tracks)


def _intersection_all(sets: list[Intervals]) -> Intervals:
    result = sets[0]
    for other in sets[1:]:
        result = iv.intersection(result, other)
    return result


def _same(a: Intervals, b: Intervals) -> bool:
    return np.array_equal(a.start, b.start) and np.array_equal(a.stop, b.stop)
