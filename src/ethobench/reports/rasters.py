"""Ethogram rasters: annotations and predictions of each recording as run lengths, and where predictions are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.error_kinds import KINDS, subject_errors, track_errors
from ethobench.reports.report_data import Figure, make_figure

DEFINITION = (
    "Behaviors over time by each annotator and model, on one time axis for all recordings. Gray is background, hatched frames are "
    "unobserved, and the thin line below a prediction marks its errors by kind."
)


def raster(pairs: Mapping[str, Sequence[AlignedPair]], truth: str, others: Mapping[str, Mapping[str, Annotation]], limit: int) -> Figure:
    """Return the truth, the other annotators and every prediction of the first `limit` recordings, one below the other.

    Parameters
    ----------
    pairs : mapping
        Predictions to the recordings as they were compared; a prediction may lack some.
    truth : str
        Display name of the truth.
    others : mapping
        Ids of pairs to further annotators and their annotations, in the ethogram that is scored.
    limit : int
        Maximum number of recordings.
    """
    by_id: dict[str, dict[str, AlignedPair]] = {}
    for name, pair_list in pairs.items():
        for pair in pair_list:
            by_id.setdefault(pair.id, {})[name] = pair
    recordings, overlaps = [], False
    for id, predictions in list(by_id.items())[:limit]:
        first = next(iter(predictions.values()))
        lanes = _lanes(truth, "truth", first.truth, first)
        for name, annotation in others.get(id, {}).items():
            lanes += _lanes(name, "annotator", annotation, first)
        for name, pair in predictions.items():
            lanes += _lanes(name, "prediction", pair.pred, pair, wrong=True)
            overlaps |= not pair.exclusive
        recordings.append({"id": id, "individual": first.individual, "rate": first.rate, "n_frames": first.truth.n_frames, "lanes": lanes})
    figure = make_figure("ethograms", "raster", "Ethograms", DEFINITION, [], [], kinds=list(KINDS), overlaps=overlaps)
    figure["recordings"] = recordings
    return figure


def encode(spans: Intervals) -> list[int]:
    """Return sorted, disjoint spans as gap, length, gap, length, ...

    >>> encode(iv.intervals([5, 20], [10, 21]))
    [5, 5, 10, 1]
    """
    before = np.concatenate(([0], spans.stop[:-1])) if len(spans.start) else spans.start
    return [int(n) for n in np.stack((spans.start - before, spans.stop - spans.start), axis=1).ravel()]


def _lanes(name: str, role: str, annotation: Annotation, pair: AlignedPair, *, wrong: bool = False) -> list[dict[str, Any]]:
    """Return one lane for each subject that is scored separately."""
    errors = subject_errors(track_errors(pair)) if wrong else {}
    lanes = []
    for subject in pair.subjects:
        chosen = annotation if subject is None else annotation.take(_bouts_of(annotation, subject))
        unobserved = iv.complement(annotation.observed.of_all(annotation.ethogram.names, subject or None), annotation.n_frames)
        lanes.append(
            {
                "name": name,
                "role": role,
                "subject": subject or "",
                "tracks": _tracks(chosen),
                "unobserved": encode(unobserved),
                "errors": [encode(errors[subject or None][kind]) for kind in KINDS] if (subject or None) in errors else [],
            }
        )
    return lanes


def _bouts_of(annotation: Annotation, subject: str) -> IntArray:
    names = annotation.names(annotation.subject)
    return np.flatnonzero([(name or "") == subject for name in names])


def _tracks(annotation: Annotation) -> list[dict[str, Any]]:
    tracks = []
    for code in np.unique(annotation.behavior):
        if code == annotation.ethogram.background:
            continue
        for target in np.unique(annotation.target[annotation.behavior == code]):
            chosen = (annotation.behavior == code) & (annotation.target == target)
            if annotation.ethogram[int(code)].point:
                at = np.unique(annotation.start[chosen])
                spans = Intervals(at, at)
            else:
                spans = iv.union(Intervals(annotation.start[chosen], annotation.stop[chosen]))
            target_name = "" if target < 0 else annotation.subjects[int(target)]
            tracks.append({"behavior": int(code), "target": target_name, "runs": encode(spans)})
    return tracks


def in_ethogram(annotation: Annotation, ethogram: Ethogram) -> Annotation:
    """Return an annotation with only the behaviors of an ethogram, in its order."""
    return annotation.restrict([b for b in annotation.ethogram.names if b in ethogram]).with_ethogram(ethogram)
