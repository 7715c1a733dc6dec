"""What kind of error each wrong frame is.

Conventions
-----------
A frame of a track (a behavior of a subject towards a target) is wrong where exactly one side shows the behavior. The
background has no track of its own: a frame that should be background is an error of the behavior shown there. Every wrong
frame of a track belongs to a run of wrong frames of one bout, on the side that shows the behavior. Its kind is

- ``boundary`` where the run reaches the bout's start or stop and is no longer than the part of the bout that is right;
- ``fragmentation`` where the run lies between right parts of the bout, which is broken up or runs two bouts together;
- ``confusion`` elsewhere, where in the same frame the subject is taken for doing one thing while it does another;
- else ``missed`` if the bout is in the truth, ``invented`` if it is in the prediction.

A frame that is wrong for several tracks of a subject has the kind that comes first in `KINDS`. So both the wrong frames of
every track and the wrong frames of every subject are divided without rest or overlap. Point events hold no frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals
from ethobench.metrics.pairs import AlignedPair, TrackPair

BOUNDARY, FRAGMENTATION, CONFUSION, MISSED, INVENTED = KINDS = ("boundary", "fragmentation", "confusion", "missed", "invented")


@dataclass(frozen=True)
class TrackErrors:
    """The wrong frames of one track, a disjoint set for each of `KINDS`."""

    behavior: int
    subject: str | None
    target: str | None
    kinds: dict[str, Intervals]


@dataclass(frozen=True)
class _Lacking:
    """The frames of bouts that the other side lacks: short ends, what lies between right parts, and the rest."""

    ends: Intervals
    inside: Intervals
    rest: Intervals

    @property
    def all(self) -> Intervals:
        return iv.union_all([self.ends, self.inside, self.rest])


def track_errors(pair: AlignedPair) -> list[TrackErrors]:
    """Divide the wrong frames of every track of a recording by kind."""
    tracks = [track for track in pair.tracks if track.behavior != pair.ethogram.background]
    parts = [(_lacking(track.truth, track.pred), _lacking(track.pred, track.truth)) for track in tracks]
    unfound, unfounded = {}, {}
    for subject in {track.subject for track in tracks}:
        mine = [pair for track, pair in zip(tracks, parts, strict=True) if track.subject == subject]
        unfound[subject] = iv.union_all([pair[0].all for pair in mine])
        unfounded[subject] = iv.union_all([pair[1].all for pair in mine])
    return [_of(track, *pair, unfound[track.subject], unfounded[track.subject]) for track, pair in zip(tracks, parts, strict=True)]


def subject_errors(tracks: Iterable[TrackErrors]) -> dict[str | None, dict[str, Intervals]]:
    """Divide the wrong frames of every subject by kind; None stands for a recording that names nobody."""
    groups: dict[str | None, list[TrackErrors]] = {}
    for track in tracks:
        groups.setdefault(track.subject, []).append(track)
    result = {}
    for subject, group in groups.items():
        kinds, taken = {}, iv.empty()
        for kind in KINDS:
            kinds[kind] = iv.difference(iv.union_all([track.kinds[kind] for track in group]), taken)
            taken = iv.union_all([taken, kinds[kind]])
        result[subject] = kinds
    return result


def _of(track: TrackPair, missing: _Lacking, extra: _Lacking, unfound: Intervals, unfounded: Intervals) -> TrackErrors:
    confused = [iv.intersection(missing.rest, unfounded), iv.intersection(extra.rest, unfound)]
    kinds = {
        BOUNDARY: iv.union_all([missing.ends, extra.ends]),
        FRAGMENTATION: iv.union_all([missing.inside, extra.inside]),
        CONFUSION: iv.union_all(confused),
        MISSED: iv.difference(missing.rest, unfounded),
        INVENTED: iv.difference(extra.rest, unfound),
    }
    return TrackErrors(track.behavior, track.subject, track.target, kinds)


def _lacking(bouts: Intervals, other: Intervals) -> _Lacking:
    runs = iv.difference(bouts, other)
    owner = np.searchsorted(bouts.start, runs.start, side="right") - 1
    right = iv.overlap_with(bouts, other)[owner]
    inside = (runs.start > bouts.start[owner]) & (runs.stop < bouts.stop[owner])
    ends = ~inside & (runs.stop - runs.start <= right)
    return _Lacking(*(Intervals(runs.start[k], runs.stop[k]) for k in (ends, inside, ~inside & ~ends)))
