"""Disagreement between annotators, and certainty of bouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals


def disagreement(annotations: Sequence[Annotation]) -> Intervals:
    """Return the frames in which two annotators observed a behavior and only one of them marked it.

    Subjects are compared separately if every annotation names subjects, else together. The background is not compared, because it follows
    from the other behaviors. Point events have no frames.

    Parameters
    ----------
    annotations : sequence of Annotation
        Of one recording, with the same clock and ethogram. Fewer than two never disagree.
    """
    if len(annotations) < 2:
        return iv.empty()
    ethogram = annotations[0].ethogram
    by_subject = all(a.subjects for a in annotations)
    subjects: list[str | None] = [*dict.fromkeys(s for a in annotations for s in a.subjects)] if by_subject else [None]
    differences = []
    for code in range(len(ethogram)):
        if code == ethogram.background or ethogram[code].point:
            continue
        name = ethogram[code].name
        for subject in subjects:
            present, absent = [], []
            for a in annotations:
                observed = a.observed.of(name, subject)
                has_subject = subject is None or subject in a.subjects
                marked = iv.intersection(iv.union(a.spans(code, subject)), observed) if has_subject else iv.empty()
                present.append(marked)
                absent.append(iv.difference(observed, marked))
            differences.append(iv.intersection(iv.union_all(present), iv.union_all(absent)))
    return iv.union_all(differences)


class CertainBouts(NamedTuple):
    """Indices of bouts in an annotation, least certain first, and the certainty of each (0 to 1)."""

    indices: IntArray
    certainty: NDArray[np.float64]


def least_certain(annotation: Annotation, prediction: Prediction | None = None) -> CertainBouts:
    """Sort the bouts of an annotation by certainty: the mean probability of the bout's behavior, or its stated confidence.

    Background bouts and bouts without probability or confidence are left out.
    """
    certainty = np.full(len(annotation), np.nan)
    if annotation.confidence is not None:
        certainty[:] = annotation.confidence
    if prediction is not None:
        for code in np.unique(annotation.behavior):
            name = annotation.ethogram[int(code)].name
            indices = np.flatnonzero((annotation.behavior == code) & (annotation.stop > annotation.start))
            if name in prediction.ethogram and indices.size:
                column = np.nan_to_num(prediction.probabilities[:, prediction.ethogram.code(name)].astype(np.float64))
                sums = np.concatenate(([0.0], np.cumsum(column)))
                start, stop = (np.minimum(edge[indices], len(column)) for edge in (annotation.start, annotation.stop))
                certainty[indices] = (sums[stop] - sums[start]) / np.maximum(stop - start, 1)
    ranked = ~np.isnan(certainty)
    if annotation.ethogram.background is not None:
        ranked &= annotation.behavior != annotation.ethogram.background
    indices = np.flatnonzero(ranked)
    order = indices[np.argsort(certainty[indices], kind="stable")]
    return CertainBouts(order, certainty[order])


def next_span(spans: Intervals, frame: int, *, forward: bool) -> tuple[int, int] | None:
    """Return the first interval that starts after a frame, or the last that starts before it."""
    index = int(np.searchsorted(spans.start, frame, side="right" if forward else "left")) - (0 if forward else 1)
    return (int(spans.start[index]), int(spans.stop[index])) if 0 <= index < len(spans.start) else None
