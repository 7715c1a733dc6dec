"""What most annotators say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ethobench.core import Annotation, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.intervals import IntArray

TOLERANCE = 0.5


def consensus(annotations: Mapping[str, Annotation]) -> Annotation:
    """Return the frames in which more than half of the annotators that looked see a behavior.

    Frames at which only one annotator looked follow that one; frames at which nobody looked are unobserved. Subjects are
    not told apart. With two annotators a behavior counts where both see it.

    Examples
    --------
    >>> a, b, c = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1], [0, 1, 1], [1, 1, 1]))
    >>> consensus({"a": a, "b": b, "c": c}).to_codes().tolist()
    [0, 1, 1]
    """
    sides = list(annotations.values())
    if not sides:
        raise EthobenchError("a consensus needs at least one annotator")
    first = sides[0]
    for name, side in annotations.items():
        if (side.rate, side.n_frames) != (first.rate, first.n_frames):
            raise MismatchError(f"annotator {name!r} has {side!r}, others {first!r}")
    ethogram = first.ethogram
    for side in sides[1:]:
        ethogram = ethogram.join(side.ethogram)
    looked = np.zeros((first.n_frames, len(ethogram)), dtype=np.int32)
    seen = np.zeros_like(looked)
    for side in sides:
        frames = side.with_ethogram(ethogram).to_frames()
        for code, behavior in enumerate(ethogram):
            there = iv.to_mask(side.observed.of(behavior.name), first.n_frames)
            looked[:, code] += there
            seen[:, code] += frames[:, code] & there
    on = 2 * seen > looked
    if ethogram.background is not None:
        others = np.delete(on, ethogram.background, axis=1).any(axis=1)
        on[:, ethogram.background] = ~others & looked.any(axis=1)
    partly = bool((looked.all(axis=1) != looked.any(axis=1)).any())
    tracks = {Track(b.name): iv.from_mask(looked[:, code] > 0) for code, b in enumerate(ethogram)} if partly else {}
    bouts = Annotation.from_frames(on, ethogram, first.rate)
    start, stop, codes = [bouts.start], [bouts.stop], [bouts.behavior]
    for code, behavior in enumerate(ethogram):
        if behavior.point:
            noted = [s.spans(behavior.name).start for s in sides if behavior.name in s.ethogram]
            at = _common_points(noted, len(sides), first.rate)
            start, stop, codes = [*start, at], [*stop, at], [*codes, np.full(len(at), code)]
    observed = Observed(iv.from_mask(looked.any(axis=1)), tracks)
    times = np.concatenate(start), np.concatenate(stop)
    return Annotation.from_bouts(times[0], times[1], np.concatenate(codes), ethogram, first.rate, first.n_frames, observed=observed)


def _common_points(events: list[IntArray], annotators: int, rate: float) -> IntArray:
    """Return the middle of each group of events within half a second that more than half of the annotators noted."""
    at = np.concatenate([np.zeros(0, dtype=np.int64), *events])
    who = np.repeat(np.arange(len(events)), [len(e) for e in events])
    order = np.argsort(at, kind="stable")
    found: list[int] = []
    k = 0
    while k < len(order):
        group = [p for p in order[k:] if at[p] - at[order[k]] <= TOLERANCE * rate]
        if 2 * len({int(who[p]) for p in group}) > annotators:
            found.append(int(np.median(at[group])))
        k += len(group)
    return np.array(found, dtype=np.int64)
