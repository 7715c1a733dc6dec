"""Rank bouts for review by their expected gain: what a reviewer's decision about them would teach the model.

Candidates are the bouts that a model predicts in frames nobody observed, and bouts that it probably missed: segments in which a behavior is
fairly probable but was not decoded. The gain of a candidate is a product of

- its uncertainty, which is largest where the behavior is as probable as its absence;
- the rarity of its behavior among the labels;
- its novelty: the distance to the labelled bouts of the same behavior, and to the candidates that are ranked before it.

The candidates are chosen one after the other, each time the one with the largest gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.models.directed import DirectedPrediction
from ethobench.models.discovery import SegmentIndex

PREDICTED, MISSED = "predicted", "missed"
MISSED_PROBABILITY = 0.2  # from which on a behavior that was not decoded may have been missed
MAX_OBSERVED = 0.5  # share of a candidate's frames that may have been observed already
MIN_SECONDS = 0.1
BASE_UNCERTAINTY = 0.1  # so that certain bouts of a rare behavior may be suggested, too
MAX_POOL = 1500  # candidates with the largest gain that are compared for novelty
MAX_REFERENCES = 400  # labelled bouts that candidates are compared with

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A bout to review.

    Attributes
    ----------
    recording : str
    start, stop : int
        Half-open frames.
    behavior : str
    subject, target : str, optional
    probability : float
        Mean probability of the behavior.
    kind : str
        ``"predicted"``, ``"missed"`` (fairly probable, but not predicted), ``"similar"`` or ``"cluster"``.
    gain : float
        Expected gain, from 0 to 1; comparable within one ranking.
    reason : str
        Why it is suggested.
    """

    recording: str
    start: int
    stop: int
    behavior: str
    subject: str | None = None
    target: str | None = None
    probability: float = 0.5
    kind: str = PREDICTED
    gain: float = 0.0
    reason: str = ""

    @property
    def key(self) -> tuple[str, int, int, str, str | None, str | None]:
        """What identifies the bout."""
        return self.recording, self.start, self.stop, self.behavior, self.subject, self.target


def find_candidates(recording: str, prediction: Prediction, labels: Annotation | None = None) -> list[Candidate]:
    """Return the bouts of one recording that may be reviewed: predicted ones, and fairly probable ones that were not predicted.

    Parameters
    ----------
    recording : str
        Id of the recording.
    prediction : Prediction
    labels : Annotation, optional
        The labels so far. Frames that are observed in them are not suggested.
    """
    candidates = [*_predicted(recording, prediction), *_missed(recording, prediction)]
    if labels is None:
        return candidates
    return [candidate for candidate in candidates if _observed_share(candidate, labels) <= MAX_OBSERVED]


def rank_candidates(
    candidates: Sequence[Candidate], index: SegmentIndex, labels: Mapping[str, Annotation], truths: Mapping[str, Annotation], n: int
) -> list[Candidate]:
    """Choose the candidates with the largest expected gain, best first.

    Parameters
    ----------
    candidates : sequence of Candidate
    index : SegmentIndex
        By which segments are compared.
    labels : mapping of recording id to Annotation
        The labels so far.
    truths : mapping of id to Annotation
        The labels of the last training.
    n : int
        Maximum number.
    """
    if not candidates or n < 1:
        return []
    counts = _labelled_bouts(truths)
    uncertainty = BASE_UNCERTAINTY + (1 - BASE_UNCERTAINTY) * np.array([1 - abs(2 * c.probability - 1) for c in candidates])
    rarity = np.array([1 / np.sqrt(1 + counts.get(c.behavior, 0)) for c in candidates])
    prior = uncertainty * rarity / rarity.max()
    pool = np.argsort(-prior, kind="stable")[:MAX_POOL]
    descriptions = _descriptions([candidates[i] for i in pool], index)
    novelty = _initial_novelty([candidates[i] for i in pool], descriptions, index, labels)
    scale = float(np.median(novelty[np.isfinite(novelty)])) if np.isfinite(novelty).any() else 1.0
    novelty = np.clip(np.where(np.isfinite(novelty), novelty / max(2 * scale, 1e-9), 1.0), 0.0, 1.0)
    chosen: list[Candidate] = []
    available = np.ones(len(pool), dtype=bool)
    for _ in range(min(n, len(pool))):
        gain = np.where(available, prior[pool] * novelty, -1.0)
        best = int(gain.argmax())
        candidate = candidates[pool[best]]
        chosen.append(replace(candidate, gain=float(np.clip(gain[best], 0, 1)), reason=_reason(candidate, counts)))
        for i in np.flatnonzero(available):  # the same frames are not suggested twice
            other = candidates[pool[i]]
            if _same_track(candidate, other) and candidate.start < other.stop and other.start < candidate.stop:
                available[i] = False
        if np.isfinite(descriptions[best, 0]):
            distance = np.linalg.norm(descriptions - descriptions[best], axis=1) / max(2 * scale, 1e-9)
            novelty = np.where(np.isfinite(distance), np.minimum(novelty, np.clip(distance, 0, 1)), novelty)
        if not available.any():
            break
    return chosen


def _predicted(recording: str, prediction: Prediction) -> Iterator[Candidate]:
    annotation = prediction.annotation
    background, shortest = annotation.ethogram.background, MIN_SECONDS * annotation.rate
    subjects, targets = annotation.names(annotation.subject), annotation.names(annotation.target)
    confidence = annotation.confidence
    for i in np.flatnonzero((annotation.behavior != (-1 if background is None else background)) & (annotation.stop > annotation.start)):
        if annotation.stop[i] - annotation.start[i] >= shortest:
            probability = float(confidence[i]) if confidence is not None and np.isfinite(confidence[i]) else 0.5
            behavior = annotation.ethogram[int(annotation.behavior[i])].name
            yield Candidate(recording, int(annotation.start[i]), int(annotation.stop[i]), behavior, subjects[i], targets[i], probability)


def _missed(recording: str, prediction: Prediction) -> Iterator[Candidate]:
    """Yield segments in which a behavior is fairly probable, but which overlap no predicted bout of it."""
    decoded = prediction.annotation
    for subject, target, behaviors, each in _tracks(prediction):
        for code, behavior in enumerate(each.ethogram):
            if code == each.ethogram.background or behavior.point or behavior.name not in behaviors:
                continue
            probability = np.nan_to_num(each.probabilities[:, code])
            spans = iv.from_mask(probability >= MISSED_PROBABILITY)
            spans = iv.fill_gaps(spans, max(1, round(MIN_SECONDS * each.rate)))
            long_enough = spans.stop - spans.start >= max(2 * MIN_SECONDS * each.rate, 1)
            spans = iv.Intervals(spans.start[long_enough], spans.stop[long_enough])
            covered = iv.covered_before(iv.union(_spans_of(decoded, behavior.name, subject)), np.concatenate([spans.start, spans.stop]))
            n = len(spans.start)
            sums = np.concatenate([[0.0], np.cumsum(probability, dtype=np.float64)])
            for i in np.flatnonzero(covered[n:] == covered[:n]):
                start, stop = int(spans.start[i]), int(spans.stop[i])
                mean = float((sums[stop] - sums[start]) / (stop - start))
                yield Candidate(recording, start, stop, behavior.name, subject, target, mean, MISSED)


def _tracks(prediction: Prediction) -> Iterator[tuple[str | None, str | None, set[str], Prediction]]:
    """Yield subject, target, behaviors and prediction of every track; behaviors without a target once per subject."""
    names = {*prediction.ethogram.names}
    if not isinstance(prediction, DirectedPrediction):
        yield None, None, names, prediction
        return
    targeted, subjects = {*prediction.targeted}, set()
    for (subject, target), each in prediction.by_actors.items():
        if target is not None:
            yield subject, target, targeted, each
        if subject not in subjects:
            subjects.add(subject)
            yield subject, None, names - targeted, each


def _spans_of(annotation: Annotation, behavior: str, subject: str | None) -> iv.Intervals:
    chosen = annotation.behavior == annotation.ethogram.code(behavior)
    if subject is not None:
        chosen = chosen & (annotation.subject == annotation.subjects.index(subject) if subject in annotation.subjects else False)
    return iv.Intervals(annotation.start[chosen], annotation.stop[chosen])


def _observed_share(candidate: Candidate, labels: Annotation) -> float:
    """Return the share of a candidate's frames in which its behavior was observed."""
    observed = labels.observed.of(candidate.behavior, candidate.subject, candidate.target)
    before = iv.covered_before(observed, [candidate.start, candidate.stop])
    return float(before[1] - before[0]) / max(candidate.stop - candidate.start, 1)


def _labelled_bouts(truths: Mapping[str, Annotation]) -> dict[str, int]:
    """Count the labelled bouts of each behavior."""
    counts: dict[str, int] = {}
    for truth in truths.values():
        for code, count in enumerate(np.bincount(truth.behavior, minlength=len(truth.ethogram))):
            name = truth.ethogram[code].name
            counts[name] = counts.get(name, 0) + int(count)
    return counts


def _descriptions(candidates: Sequence[Candidate], index: SegmentIndex) -> Array:
    described = [index.describe(c.recording, c.start, c.stop, c.subject) for c in candidates]
    width = next((len(each) for each in described if each is not None), 1)
    return np.stack([np.full(width, np.nan) if each is None else each for each in described])


def _initial_novelty(candidates: Sequence[Candidate], descriptions: Array, index: SegmentIndex, labels: Mapping[str, Annotation]) -> Array:
    """Return the distance of each candidate to the nearest labelled bout of its behavior; infinite without any."""
    references: dict[str, list[Array]] = {}
    n_bouts = sum(len(annotation) for annotation in labels.values())
    step = max(1, -(-n_bouts // MAX_REFERENCES))
    for recording, annotation in labels.items():
        subjects = annotation.names(annotation.subject)
        for i in range(0, len(annotation), step):
            if annotation.stop[i] > annotation.start[i]:
                described = index.describe(recording, int(annotation.start[i]), int(annotation.stop[i]), subjects[i])
                if described is not None:
                    references.setdefault(annotation.ethogram[int(annotation.behavior[i])].name, []).append(described)
    novelty = np.full(len(candidates), np.inf)
    for behavior, bouts in references.items():
        rows = [i for i, candidate in enumerate(candidates) if candidate.behavior == behavior]
        if rows and descriptions.shape[1] == len(bouts[0]):
            distance = np.linalg.norm(descriptions[rows][:, None] - np.stack(bouts)[None], axis=2)
            novelty[rows] = np.where(np.isfinite(distance).all(axis=1), distance.min(axis=1), np.inf)
    return novelty


def _same_track(a: Candidate, b: Candidate) -> bool:
    return a.recording == b.recording and a.subject == b.subject


def _reason(candidate: Candidate, counts: Mapping[str, int]) -> str:
    """Return a short explanation of why a candidate is suggested."""
    labelled = counts.get(candidate.behavior, 0)
    if candidate.kind == MISSED:
        return f"perhaps missed: {candidate.behavior} is {candidate.probability:.0%} probable"
    if labelled < 5:
        return f"{candidate.behavior} is rare: {labelled} labelled bout{'' if labelled == 1 else 's'}"
    if abs(candidate.probability - 0.5) < 0.25:
        return f"uncertain: {candidate.behavior} is {candidate.probability:.0%} probable"
    return "unlike the labelled bouts"
