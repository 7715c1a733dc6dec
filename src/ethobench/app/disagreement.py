"""Where annotators differ, and how sure a model is of its bouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals


def disagreement(annotations: Sequence[Annotation]) -> Intervals:
    """Return the frames in which of two annotators who both looked for a behavior one saw it and one did not.

    Subjects are compared one by one where every annotation names some, else pooled. The background is what is left when all
    other behaviors are told, so it is not compared itself. Point events hold no frame.

    Parameters
    ----------
    annotations : sequence of Annotation
        Of the same recording, on the same clock, in the same ethogram. Fewer than two never disagree.
    """
    if len(annotations) < 2:
        return iv.empty()
    ethogram = annotations[0].ethogram
    by_subject = all(a.subjects for a in annotations)
    subjects: list[str | None] = [*dict.fromkeys(s for a in annotations for s in a.subjects)] if by_subject else [None]
    found = []
    for code in range(len(ethogram)):
        if code == ethogram.background or ethogram[code].point:
            continue
        name = ethogram[code].name
        for subject in subjects:
            seen, unseen = [], []
            for a in annotations:
                looked = a.observed.of(name, subject)
                known = subject is None or subject in a.subjects
                said = iv.intersection(iv.union(a.spans(code, subject)), looked) if known else iv.empty()
                seen.append(said)
                unseen.append(iv.difference(looked, said))
            found.append(iv.intersection(iv.union_all(seen), iv.union_all(unseen)))
    return iv.union_all(found)


class CertainBouts(NamedTuple):
    """Places of bouts in an annotation, the least certain first, and how certain each is (0 to 1)."""

    places: IntArray
    certainty: NDArray[np.float64]


def least_certain(annotation: Annotation, prediction: Prediction | None = None) -> CertainBouts:
    """Sort the bouts of an annotation by certainty: the mean probability of the bout's behavior, or its stated confidence.

    The background's bouts, and those of which nothing is known, are left out.
    """
    certainty = np.full(len(annotation), np.nan)
    if annotation.confidence is not None:
        certainty[:] = annotation.confidence
    if prediction is not None:
        for code in np.unique(annotation.behavior):
            name = annotation.ethogram[int(code)].name
            places = np.flatnonzero((annotation.behavior == code) & (annotation.stop > annotation.start))
            if name in prediction.ethogram and places.size:
                column = np.nan_to_num(prediction.probabilities[:, prediction.ethogram.code(name)].astype(np.float64))
                sums = np.concatenate(([0.0], np.cumsum(column)))
                start, stop = (np.minimum(edge[places], len(column)) for edge in (annotation.start, annotation.stop))
                certainty[places] = (sums[stop] - sums[start]) / np.maximum(stop - start, 1)
    known = ~np.isnan(certainty)
    if annotation.ethogram.background is not None:
        known &= annotation.behavior != annotation.ethogram.background
    places = np.flatnonzero(known)
    order = places[np.argsort(certainty[places], kind="stable")]
    return CertainBouts(order, certainty[order])


def next_span(spans: Intervals, frame: int, *, forward: bool) -> tuple[int, int] | None:
    """Return the first of a disjoint set's intervals that begins after a frame, or the last that begins before it."""
    place = int(np.searchsorted(spans.start, frame, side="right" if forward else "left")) - (0 if forward else 1)
    return (int(spans.start[place]), int(spans.stop[place])) if 0 <= place < len(spans.start) else None
