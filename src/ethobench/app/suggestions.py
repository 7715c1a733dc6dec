"""What to label next: the stretches of which least is certain, and which are least like each other.

Every recording is cut into windows of equal length. A window's doubt is the mean, over what is known of it, of

- the models' doubt: 1 minus the lead of the most probable behavior over the second (behaviors that may overlap: the greatest
  nearness of a probability to 0.5), averaged over its frames;
- the annotators' disagreement: the share of its frames in which they differ.

Windows are then chosen one by one: each time the one with the greatest product of its doubt and its distance to the nearest
window chosen before. The distance is half by behavior (half the summed difference of the shares of time) and half by who is
seen (0 for the same individual, 1 for another). Windows in which a person has corrected something already are passed over. Ties
go to the first recording and the earliest window, so the same data always give the same list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.app.disagreement import disagreement
from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Suggestion:
    """A stretch worth a look: of which recording (its place among those given), which frames, and how doubtful (0 to 1)."""

    recording: int
    start: int
    stop: int
    doubt: float


@dataclass(frozen=True)
class Evidence:
    """What is known of one recording: all tracks in one ethogram and on one clock, and the frames that a person has corrected."""

    individual: str
    rate: float
    n_frames: int
    behaviors: tuple[str, ...]
    annotations: Sequence[Annotation]
    predictions: Sequence[Prediction]
    handled: Intervals


def suggest(recordings: Sequence[Evidence], count: int = 12, seconds: float = 20.0) -> list[Suggestion]:
    """Choose up to `count` windows of `seconds` each, the most worthwhile first.

    Parameters
    ----------
    recordings : sequence of Evidence
    count : int
    seconds : float
        Length of a window; a recording shorter than that is one window.
    """
    owners, windows, doubts, profiles = [], [], [], []
    for place, known in enumerate(recordings):
        length = max(round(seconds * known.rate), 1)
        edges = np.append(np.arange(0, max(known.n_frames, 1), length), known.n_frames)
        if len(edges) > 2 and edges[-1] - edges[-2] < length / 2:
            edges = np.delete(edges, -2)
        doubt = _doubt(known, edges)
        if doubt is None:
            continue
        free = np.diff(iv.covered_before(known.handled, edges)) == 0
        owners.append(np.full(int(free.sum()), place))
        windows.append(np.stack((edges[:-1], edges[1:]), axis=1)[free])
        doubts.append(doubt[free])
        profiles.append(_profile(known, edges)[free])
    if not owners:
        return []
    owner, window, doubt = np.concatenate(owners), np.concatenate(windows), np.concatenate(doubts)
    who = np.array([recordings[i].individual for i in owner])
    chosen = _choose(doubt, _same_width(profiles), who, count)
    return [Suggestion(int(owner[i]), int(window[i, 0]), int(window[i, 1]), float(doubt[i])) for i in chosen]


def _choose(doubt: Floats, profile: Floats, who: NDArray[np.str_], count: int) -> list[int]:
    nearest, chosen = np.ones(len(doubt)), []
    for _ in range(min(count, len(doubt))):
        worth = doubt * nearest
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            break
        chosen.append(best)
        apart = np.abs(profile - profile[best]).sum(axis=1) / 4 + (who != who[best]) / 2
        nearest = np.minimum(nearest, np.clip(apart, 0, 1))
    return chosen


def _doubt(known: Evidence, edges: NDArray[np.int64]) -> Floats | None:
    parts = [_means(frame_doubt(p), edges) for p in known.predictions]
    if len(known.annotations) > 1:
        differ = disagreement(known.annotations)
        parts.append(np.diff(iv.covered_before(differ, edges)) / np.maximum(np.diff(edges), 1))
    return np.mean(parts, axis=0) if parts else None


def frame_doubt(prediction: Prediction) -> NDArray[np.floating]:
    """Return how doubtful a model is in each frame, from 0 (certain) to 1 (a toss-up); 0 where it predicts nothing."""
    p = np.nan_to_num(prediction.probabilities)
    if not prediction.exclusive:
        return np.asarray(1 - np.abs(2 * p - 1).min(axis=1))
    if prediction.ethogram.background is None and p.shape[1] == len(prediction.ethogram):
        p = np.column_stack((p, np.clip(1 - p.sum(axis=1), 0, 1)))
    if p.shape[1] < 2:
        return np.zeros(len(p))
    first_two = np.partition(p, -2, axis=1)[:, -2:]
    doubt = 1 - (first_two[:, 1] - first_two[:, 0])
    return np.asarray(np.where(np.isnan(prediction.probabilities).any(axis=1), 0, doubt))


def _profile(known: Evidence, edges: NDArray[np.int64]) -> Floats:
    """Return the share of each window that each behavior takes, averaged over all who say something."""
    length = np.maximum(np.diff(edges), 1)
    said = [*known.annotations, *(p.annotation for p in known.predictions if not known.annotations)]
    shares = np.zeros((len(edges) - 1, len(known.behaviors)))
    for annotation in said:
        for code, name in enumerate(known.behaviors):
            if name in annotation.ethogram:
                shares[:, code] += np.diff(iv.covered_before(iv.union(annotation.spans(name)), edges)) / length
    return shares / max(len(said), 1)


def corrected_frames(correction: Annotation, others: Sequence[Annotation]) -> Intervals:
    """Return the frames in which a person did something: what they looked at or, where that is all, where they differ from all."""
    if not correction.observed.is_complete(correction.n_frames):
        return correction.observed.of_any()
    changed = iv.full(correction.n_frames) if others else iv.empty()
    for other in others:
        changed = iv.intersection(changed, disagreement([correction, other]))
    return changed


def _means(values: NDArray[np.floating], edges: NDArray[np.int64]) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    inside = np.minimum(edges, len(values))
    return np.asarray(np.diff(sums[inside]) / np.maximum(np.diff(edges), 1))


def _same_width(profiles: list[Floats]) -> Floats:
    width = max(p.shape[1] for p in profiles)
    return np.concatenate([np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in profiles])
