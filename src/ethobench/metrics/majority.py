"""Consensus of several annotators by majority vote."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ethobench.core import Annotation, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.intervals import IntArray

TOLERANCE = 0.5  # seconds within which point events of several annotators are the same event


def consensus(annotations: Mapping[str, Annotation]) -> Annotation:
    """Return the behaviors that more than half of the annotators who observed a frame annotated there.

    Frames that one annotator observed follow that annotator; frames that nobody observed are unobserved. Subjects are
    not distinguished. With two annotators a behavior counts where both annotated it.

    Parameters
    ----------
    annotations : mapping of str to Annotation
        Annotators to annotations of one recording, on one clock.

    Examples
    --------
    >>> a, b, c = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1], [0, 1, 1], [1, 1, 1]))
    >>> consensus({"a": a, "b": b, "c": c}).to_codes().tolist()
    [0, 1, 1]
    """
    sides = list(annotations.values())
    if not sides:
        raise EthobenchError("a consensus needs at least one annotator, got none")
    first = sides[0]
    for name, side in annotations.items():
        if (side.rate, side.n_frames) != (first.rate, first.n_frames):
            raise MismatchError(f"annotators differ in frame rate or length: {name!r} has {side!r}, others {first!r}")
    ethogram = first.ethogram
    for side in sides[1:]:
        ethogram = ethogram.join(side.ethogram)
    n_observed = np.zeros((first.n_frames, len(ethogram)), dtype=np.int32)
    n_positive = np.zeros_like(n_observed)
    for side in sides:
        frames = side.with_ethogram(ethogram).to_frames()
        for code, behavior in enumerate(ethogram):
            observed = iv.to_mask(side.observed.of(behavior.name), first.n_frames)
            n_observed[:, code] += observed
            n_positive[:, code] += frames[:, code] & observed
    majority = 2 * n_positive > n_observed
    if ethogram.background is not None:
        foreground = np.delete(majority, ethogram.background, axis=1).any(axis=1)
        majority[:, ethogram.background] = ~foreground & n_observed.any(axis=1)
    bouts = Annotation.from_frames(majority, ethogram, first.rate)
    start, stop, codes = [bouts.start], [bouts.stop], [bouts.behavior]
    for code, behavior in enumerate(ethogram):
        if behavior.point:
            events = [side.spans(behavior.name).start for side in sides if behavior.name in side.ethogram]
            at = _common_points(events, len(sides), first.rate)
            start, stop, codes = [*start, at], [*stop, at], [*codes, np.full(len(at), code)]
    differs = bool((n_observed.all(axis=1) != n_observed.any(axis=1)).any())  # behaviors were observed in different frames
    tracks = {Track(b.name): iv.from_mask(n_observed[:, code] > 0) for code, b in enumerate(ethogram)} if differs else {}
    return Annotation.from_bouts(
        np.concatenate(start),
        np.concatenate(stop),
        np.concatenate(codes),
        ethogram,
        first.rate,
        first.n_frames,
        observed=Observed(iv.from_mask(n_observed.any(axis=1)), tracks),
    )


def _common_points(events: list[IntArray], n_annotators: int, rate: float) -> IntArray:
    """Return the median of each group of events within half a second that more than half of the annotators marked."""
    at = np.concatenate([np.zeros(0, dtype=np.int64), *events])
    annotator = np.repeat(np.arange(len(events)), [len(e) for e in events])
    order = np.argsort(at, kind="stable")
    medians: list[int] = []
    k = 0
    while k < len(order):
        group = [p for p in order[k:] if at[p] - at[order[k]] <= TOLERANCE * rate]
        if 2 * len({int(annotator[p]) for p in group}) > n_annotators:
            medians.append(int(np.median(at[group])))
        k += len(group)
    return np.array(medians, dtype=np.int64)
