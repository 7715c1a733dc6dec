"""Rank bouts for review by their expected gain: what a reviewer's decision about them would teach the model.

Candidates are the bouts that a model predicts in frames nobody observed, and bouts that it probably missed: segments in which a behavior is
fairly probable but was not decoded. The weight of a candidate is a product of

- its uncertainty, which is largest where the behavior is as probable as its absence;
- the rarity of its behavior among the labels;
- its duration, up to a typical one, since a longer bout has more frames to learn from.

The candidates with the largest weights are grouped by weighted k-means on the descriptions of their segments (Zhdanov, Diverse mini-batch
active learning, arXiv:1901.05954), into as many groups as bouts are wanted. The candidate that is most typical of each group is chosen, so
that suggestions differ from each other but are no outliers. They are ranked by the total weight of their groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.wording import plural
from ethobench.models.directed import DirectedPrediction
from ethobench.models.discovery import SegmentIndex

PREDICTED, MISSED = "predicted", "missed"
MISSED_PROBABILITY = 0.2  # from which on a behavior that was not decoded may have been missed
MAX_OBSERVED = 0.5  # share of a candidate's frames that may have been observed already
MIN_SECONDS = 0.1
BASE_UNCERTAINTY = 0.1  # so that certain bouts of a rare behavior may be suggested, too
POOL_FACTOR, MIN_POOL = 10, 50  # candidates with the largest weights that are grouped: this many per suggestion, at least so many

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


def rank_candidates(candidates: Sequence[Candidate], index: SegmentIndex, truths: Mapping[str, Annotation], n: int) -> list[Candidate]:
    """Choose the candidates with the largest expected gain, best first.

    Parameters
    ----------
    candidates : sequence of Candidate
    index : SegmentIndex
        By which segments are compared.
    truths : mapping of id to Annotation
        The labels of the last training.
    n : int
        Maximum number.
    """
    if not candidates or n < 1:
        return []
    counts = _labeled_bouts(truths)
    weights = _weights(candidates, counts)
    pool = np.argsort(-weights, kind="stable")[: max(POOL_FACTOR * n, MIN_POOL)]
    descriptions = _descriptions([candidates[i] for i in pool], index)
    described = np.isfinite(descriptions).all(axis=1)
    order = _most_typical(descriptions[described], weights[pool[described]], n)
    ranked = [*pool[described][order], *pool[described][_others(order, int(described.sum()))], *pool[~described]]
    chosen: list[Candidate] = []
    for i in ranked:
        if len(chosen) == n:
            break
        if not any(_overlap(candidates[i], other) for other in chosen):  # the same frames are not suggested twice
            gain = float(np.clip(weights[i], 0, 1))
            chosen.append(replace(candidates[i], gain=gain, reason=_reason(candidates[i], counts)))
    return chosen


def _weights(candidates: Sequence[Candidate], counts: Mapping[str, int]) -> Array:
    """Return the product of uncertainty, rarity and relative duration of each candidate, from 0 to 1."""
    probability = np.array([candidate.probability for candidate in candidates])
    uncertainty = BASE_UNCERTAINTY + (1 - BASE_UNCERTAINTY) * (1 - np.abs(2 * probability - 1))
    rarity = np.array([1 / np.sqrt(1 + counts.get(candidate.behavior, 0)) for candidate in candidates])
    duration = np.array([candidate.stop - candidate.start for candidate in candidates], dtype=np.float64)
    return np.asarray(uncertainty * rarity / rarity.max() * np.sqrt(np.minimum(1.0, duration / np.median(duration))))


def _most_typical(descriptions: Array, weights: Array, n: int) -> list[int]:
    """Group descriptions into `n` groups; return the member nearest to the center of each, groups with the largest weight first."""
    from sklearn.cluster import KMeans

    n_groups = min(n, len(np.unique(descriptions, axis=0))) if len(descriptions) else 0
    if n_groups == 0:
        return []
    groups = KMeans(n_groups, n_init=1, random_state=0).fit(descriptions, sample_weight=weights)
    distance = np.linalg.norm(descriptions - groups.cluster_centers_[groups.labels_], axis=1)
    chosen = []
    for group in np.argsort(-np.bincount(groups.labels_, weights, minlength=n_groups), kind="stable"):
        members = np.flatnonzero(groups.labels_ == group)
        if len(members):
            chosen.append(int(members[distance[members].argmin()]))
    return chosen


def _others(chosen: Sequence[int], count: int) -> list[int]:
    """Return the indices below `count` that are not chosen, in order."""
    return [i for i in range(count) if i not in {*chosen}]


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


def _labeled_bouts(truths: Mapping[str, Annotation]) -> dict[str, int]:
    """Count the labeled bouts of each behavior."""
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


def _overlap(a: Candidate, b: Candidate) -> bool:
    return a.recording == b.recording and a.subject == b.subject and a.start < b.stop and b.start < a.stop


def _reason(candidate: Candidate, counts: Mapping[str, int]) -> str:
    """Return a short explanation of why a candidate is suggested."""
    labeled = counts.get(candidate.behavior, 0)
    if candidate.kind == MISSED:
        return f"perhaps missed: {candidate.behavior} is {candidate.probability:.0%} probable"
    if labeled < 5:
        return plural(labeled, "{name} is rare: {n} labeled bout", "{name} is rare: {n} labeled bouts", name=candidate.behavior)
    if abs(candidate.probability - 0.5) < 0.25:
        return f"uncertain: {candidate.behavior} is {candidate.probability:.0%} probable"
    return "typical of many predicted bouts"
