"""Observed frames: which frames an annotator observed, and for which behaviors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals


class Track(NamedTuple):
    """A behavior of a subject towards a target; None means any."""

    behavior: str | None = None
    subject: str | None = None
    target: str | None = None


class Observed:
    """Observed frames, as disjoint intervals, with exceptions for single tracks.

    Parameters
    ----------
    frames : Intervals
        Frames that were observed for every track without an exception.
    tracks : mapping of Track to Intervals, optional
        Exceptions. The most specific one applies: behavior, subject and target; then behavior and subject; then behavior; then subject.

    Examples
    --------
    >>> observed = Observed(iv.intervals([0], [100]), {Track("attack"): iv.intervals([0], [50])})
    >>> iv.total(observed.of("attack")), iv.total(observed.of("mount"))
    (50, 100)
    """

    def __init__(self, frames: Intervals, tracks: Mapping[Track, Intervals] | None = None) -> None:
        self.frames = iv.union(frames)
        self.tracks = {Track(*track): iv.union(intervals) for track, intervals in (tracks or {}).items()}

    @classmethod
    def full(cls, n_frames: int) -> Observed:
        """Return that all frames were observed."""
        return cls(iv.full(n_frames))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Observed):
            return NotImplemented
        return (
            _is_equal(self.frames, other.frames)
            and self.tracks.keys() == other.tracks.keys()
            and all(_is_equal(intervals, other.tracks[track]) for track, intervals in self.tracks.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        exceptions = f", {len(self.tracks)} tracks differ" if self.tracks else ""
        return f"Observed({iv.total(self.frames)} frames in {len(self.frames.start)} intervals{exceptions})"

    def of(self, behavior: str, subject: str | None = None, target: str | None = None) -> Intervals:
        """Return the frames observed for one behavior (of one subject, towards one target).

        Without a subject: the frames observed for all subjects that have an exception.
        """
        if not self.tracks:
            return self.frames
        for track in (Track(behavior, subject, target), Track(behavior, subject), Track(behavior), Track(None, subject)):
            if track in self.tracks and (subject is not None or track.behavior is not None):
                return self.tracks[track]
        if subject is None:
            pairs = {(t.subject, t.target) for t in self.tracks if t.behavior in (behavior, None) and t.subject is not None}
            if pairs:
                return _intersection_all([self.of(behavior, performer, receiver) for performer, receiver in sorted(pairs, key=str)])
        return self.frames

    def of_all(self, behaviors: Iterable[str], subject: str | None = None) -> Intervals:
        """Return the frames in which all of these behaviors (of one subject) were observed."""
        sets = [self.of(b, subject) for b in behaviors] if self.tracks else []
        return _intersection_all(sets) if sets else self.frames

    def of_any(self) -> Intervals:
        """Return the frames in which at least one track was observed."""
        return iv.union_all([self.frames, *self.tracks.values()])

    def is_complete(self, n_frames: int) -> bool:
        """Whether all of `n_frames` frames were observed for every track."""
        return all(iv.total(intervals) == n_frames for intervals in (self.frames, *self.tracks.values()))

    def apply(self, function: Callable[[Intervals], Intervals]) -> Observed:
        """Return a copy with a function applied to all intervals."""
        return Observed(function(self.frames), {track: function(intervals) for track, intervals in self.tracks.items()})

    def restrict(self, behaviors: Iterable[str]) -> Observed:
        """Drop the exceptions of all other behaviors."""
        keep = {None, *behaviors}
        return Observed(self.frames, {t: intervals for t, intervals in self.tracks.items() if t.behavior in keep})

    def rename(self, names: Mapping[str, str], behaviors: Iterable[str]) -> Observed:
        """Rename behaviors; a merged behavior is observed in the frames in which all its parts were observed."""
        if not self.tracks:
            return self
        old_names: dict[str, list[str]] = {}
        for name in behaviors:
            old_names.setdefault(names.get(name, name), []).append(name)
        tracks: dict[Track, Intervals] = {t: intervals for t, intervals in self.tracks.items() if t.behavior is None}
        pairs = {(t.subject, t.target) for t in self.tracks if t.behavior is not None}
        for new, olds in old_names.items():
            for subject, target in pairs:
                if any(Track(old, subject, target) in self.tracks for old in olds):
                    tracks[Track(new, subject, target)] = _intersection_all([self.of(old, subject, target) for old in olds])
        return Observed(self.frames, tracks)

    def join(self, other: Observed, offset: int) -> Observed:
        """Return the frames observed here, or in `other` shifted by `offset` frames."""
        tracks = {}
        for track in {**self.tracks, **other.tracks}:
            first, second = (
                side.tracks.get(track, side.frames) if track.behavior is None else side.of(track.behavior, track.subject, track.target)
                for side in (self, other)
            )
            tracks[track] = iv.union_all([first, iv.shift(second, offset)])
        return Observed(iv.union_all([self.frames, iv.shift(other.frames, offset)]), tracks)


def _intersection_all(sets: list[Intervals]) -> Intervals:
    result = sets[0]
    for other in sets[1:]:
        result = iv.intersection(result, other)
    return result


def _is_equal(a: Intervals, b: Intervals) -> bool:
    return np.array_equal(a.start, b.start) and np.array_equal(a.stop, b.stop)
