"""Kinds of errors: boundary, fragmentation, confusion, missed, invented.

Conventions
-----------
A frame of a track (a behavior of a subject towards a target) is wrong if exactly one side has the behavior. The
background is not a track here: a frame that should be background is an error of the behavior predicted there. Every wrong
frame of a track belongs to a run of wrong frames of one bout, on the side that has the behavior. Its kind is

- ``boundary`` if the run includes the start or stop of the bout and is not longer than the correct frames of the bout;
- ``fragmentation`` if the run lies between correct frames of the bout, which is split or merges two bouts;
- ``confusion`` otherwise, if another behavior of the subject is predicted in the same frame, or is true there;
- else ``missed`` if the bout is in the truth, ``invented`` if it is in the prediction.

A frame that is wrong for several tracks of a subject has the kind that comes first in `KINDS`. So the wrong frames of
every track, and those of every subject, are partitioned by kind. Point events have no frames.

References
----------
Similar taxonomies: Ward, Lukowicz and Gellersen (2011), Performance metrics for activity recognition, ACM Transactions on Intelligent
Systems and Technology 2, 6.
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
class _Unmatched:
    """The frames of bouts that the other side lacks: short ends, gaps between correct frames, and the rest."""

    ends: Intervals
    inside: Intervals
    rest: Intervals

    @property
    def all(self) -> Intervals:
        return iv.union_all([self.ends, self.inside, self.rest])


def track_errors(pair: AlignedPair) -> list[TrackErrors]:
    """Partition the wrong frames of every track of a recording by kind."""
    tracks = [track for track in pair.tracks if track.behavior != pair.ethogram.background]
    unmatched = [(_unmatched(track.truth, track.pred), _unmatched(track.pred, track.truth)) for track in tracks]
    only_true, only_pred = {}, {}  # frames by subject
    for subject in {track.subject for track in tracks}:
        sides = [both_sides for track, both_sides in zip(tracks, unmatched, strict=True) if track.subject == subject]
        only_true[subject] = iv.union_all([missing.all for missing, _ in sides])
        only_pred[subject] = iv.union_all([extra.all for _, extra in sides])
    return [
        _classify(track, *both_sides, only_true[track.subject], only_pred[track.subject])
        for track, both_sides in zip(tracks, unmatched, strict=True)
    ]


def subject_errors(tracks: Iterable[TrackErrors]) -> dict[str | None, dict[str, Intervals]]:
    """Partition the wrong frames of every subject by kind; None stands for bouts without a subject."""
    groups: dict[str | None, list[TrackErrors]] = {}
    for track in tracks:
        groups.setdefault(track.subject, []).append(track)
    result = {}
    for subject, group in groups.items():
        kinds, assigned = {}, iv.empty()
        for kind in KINDS:
            kinds[kind] = iv.difference(iv.union_all([track.kinds[kind] for track in group]), assigned)
            assigned = iv.union_all([assigned, kinds[kind]])
        result[subject] = kinds
    return result


def _classify(track: TrackPair, missing: _Unmatched, extra: _Unmatched, only_true: Intervals, only_pred: Intervals) -> TrackErrors:
    confused = [iv.intersection(missing.rest, only_pred), iv.intersection(extra.rest, only_true)]
    kinds = {
        BOUNDARY: iv.union_all([missing.ends, extra.ends]),
        FRAGMENTATION: iv.union_all([missing.inside, extra.inside]),
        CONFUSION: iv.union_all(confused),
        MISSED: iv.difference(missing.rest, only_pred),
        INVENTED: iv.difference(extra.rest, only_true),
    }
    return TrackErrors(track.behavior, track.subject, track.target, kinds)


def _unmatched(bouts: Intervals, other: Intervals) -> _Unmatched:
    runs = iv.difference(bouts, other)
    bout = np.searchsorted(bouts.start, runs.start, side="right") - 1
    n_correct = iv.overlap_with(bouts, other)[bout]
    inside = (runs.start > bouts.start[bout]) & (runs.stop < bouts.stop[bout])
    ends = ~inside & (runs.stop - runs.start <= n_correct)
    return _Unmatched(*(Intervals(runs.start[k], runs.stop[k]) for k in (ends, inside, ~inside & ~ends)))
