"""Ethograms as run lengths: who saw what when, and where a prediction is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.intervals import IntArray, Intervals
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.errors import KINDS, subject_errors, track_errors
from ethobench.reports.shape import Figure, make_figure

DEFINITION = (
    "What each annotator or model says happened, on one time axis for all recordings; grey is background, hatching was not "
    "looked at, and the thin line below a prediction marks its errors by kind."
)


def raster(pairs: Mapping[str, Sequence[AlignedPair]], truth: str, others: Mapping[str, Mapping[str, Annotation]], limit: int) -> Figure:
    """Draw the truth, the other annotators and every prediction of the first `limit` recordings, one below the other.

    Parameters
    ----------
    pairs : mapping
        Names of predictions to the recordings as they were compared; a prediction may lack some.
    truth : str
        What to call the truth.
    others : mapping
        Cases' names to further annotators and their annotations, in the ethogram that is scored.
    limit : int
    """
    by_id: dict[str, dict[str, AlignedPair]] = {}
    for name, several in pairs.items():
        for pair in several:
            by_id.setdefault(pair.id, {})[name] = pair
    recordings, overlaps = [], False
    for id, found in list(by_id.items())[:limit]:
        first = next(iter(found.values()))
        lanes = _lanes(truth, "truth", first.truth, first)
        for name, annotation in others.get(id, {}).items():
            lanes += _lanes(name, "annotator", annotation, first)
        for name, pair in found.items():
            lanes += _lanes(name, "prediction", pair.pred, pair, wrong=True)
            overlaps |= not pair.exclusive
        recordings.append({"id": id, "individual": first.individual, "rate": first.rate, "n_frames": first.truth.n_frames, "lanes": lanes})
    figure = make_figure("ethograms", "raster", "Ethograms", DEFINITION, [], [], kinds=list(KINDS), overlaps=overlaps)
    figure["recordings"] = recordings
    return figure


def encode(spans: Intervals) -> list[int]:
    """Write sorted spans that do not overlap as gap, length, gap, length, ...

    >>> encode(iv.intervals([5, 20], [10, 21]))
    [5, 5, 10, 1]
    """
    before = np.concatenate(([0], spans.stop[:-1])) if len(spans.start) else spans.start
    return [int(n) for n in np.stack((spans.start - before, spans.stop - spans.start), axis=1).ravel()]


def _lanes(name: str, role: str, annotation: Annotation, pair: AlignedPair, *, wrong: bool = False) -> list[dict[str, Any]]:
    """Make a lane for each subject that is scored apart."""
    errors = subject_errors(track_errors(pair)) if wrong else {}
    lanes = []
    for subject in pair.subjects:
        chosen = annotation if subject is None else annotation.take(_bouts_of(annotation, subject))
        unseen = iv.complement(annotation.observed.of_all(annotation.ethogram.names, subject or None), annotation.n_frames)
        lanes.append(
            {
                "name": name,
                "role": role,
                "subject": subject or "",
                "tracks": _tracks(chosen),
                "unobserved": encode(unseen),
                "errors": [encode(errors[subject or None][kind]) for kind in KINDS] if (subject or None) in errors else [],
            }
        )
    return lanes


def _bouts_of(annotation: Annotation, subject: str) -> IntArray:
    names = annotation.names(annotation.subject)
    return np.flatnonzero([(who or "") == subject for who in names])


def _tracks(annotation: Annotation) -> list[dict[str, Any]]:
    tracks = []
    for code in np.unique(annotation.behavior):
        if code == annotation.ethogram.background:
            continue
        for target in np.unique(annotation.target[annotation.behavior == code]):
            mine = (annotation.behavior == code) & (annotation.target == target)
            if annotation.ethogram[int(code)].point:
                at = np.unique(annotation.start[mine])
                spans = Intervals(at, at)
            else:
                spans = iv.union(Intervals(annotation.start[mine], annotation.stop[mine]))
            whom = "" if target < 0 else annotation.subjects[int(target)]
            tracks.append({"behavior": int(code), "target": whom, "runs": encode(spans)})
    return tracks


def in_ethogram(annotation: Annotation, ethogram: Ethogram) -> Annotation:
    """Keep only the behaviors of an ethogram, in its order."""
    return annotation.restrict([b for b in annotation.ethogram.names if b in ethogram]).with_ethogram(ethogram)
