"""Suggest windows to label next: uncertain ones that differ from each other.

Every recording is divided into windows of equal length. The uncertainty of a window is the mean of

- the uncertainty of each model: 1 minus the margin between the two most probable behaviors (for overlapping behaviors: the closeness of
  the most uncertain probability to 0.5), averaged over frames;
- the disagreement of annotators: the share of frames in which they differ.

Windows are selected greedily: each time the one with the largest product of its uncertainty and its distance to the nearest selected
window. Half of the distance is the total variation distance of the time budgets, the other half is 0 for the same individual and 1 for
another. Windows that were corrected already are skipped. Ties go to the first recording and the earliest window, so the result is
deterministic.
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
    """A window to label: index of the recording, frames, and uncertainty (0 to 1)."""

    recording: int
    start: int
    stop: int
    uncertainty: float


@dataclass(frozen=True)
class Evidence:
    """All tracks of one recording, with the same clock and ethogram, and the frames that were corrected."""

    individual: str
    rate: float
    n_frames: int
    behaviors: tuple[str, ...]
    annotations: Sequence[Annotation]
    predictions: Sequence[Prediction]
    handled: Intervals


def suggest(recordings: Sequence[Evidence], count: int = 12, seconds: float = 20.0) -> list[Suggestion]:
    """Select up to `count` windows of `seconds` each, the most informative first.

    Parameters
    ----------
    recordings : sequence of Evidence
    count : int
    seconds : float
        Length of a window; a shorter recording is one window.
    """
    owners, windows, uncertainties, profiles = [], [], [], []
    for index, evidence in enumerate(recordings):
        length = max(round(seconds * evidence.rate), 1)
        edges = np.append(np.arange(0, max(evidence.n_frames, 1), length), evidence.n_frames)
        if len(edges) > 2 and edges[-1] - edges[-2] < length / 2:
            edges = np.delete(edges, -2)
        uncertainty = _uncertainty(evidence, edges)
        if uncertainty is None:
            continue
        free = np.diff(iv.covered_before(evidence.handled, edges)) == 0
        owners.append(np.full(int(free.sum()), index))
        windows.append(np.stack((edges[:-1], edges[1:]), axis=1)[free])
        uncertainties.append(uncertainty[free])
        profiles.append(_profile(evidence, edges)[free])
    if not owners:
        return []
    owner, window, uncertainty = np.concatenate(owners), np.concatenate(windows), np.concatenate(uncertainties)
    individuals = np.array([recordings[i].individual for i in owner])
    chosen = _choose(uncertainty, _same_width(profiles), individuals, count)
    return [Suggestion(int(owner[i]), int(window[i, 0]), int(window[i, 1]), float(uncertainty[i])) for i in chosen]


def _choose(uncertainty: Floats, profile: Floats, individuals: NDArray[np.str_], count: int) -> list[int]:
    nearest, chosen = np.ones(len(uncertainty)), []
    for _ in range(min(count, len(uncertainty))):
        gain = uncertainty * nearest
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen.append(best)
        distance = np.abs(profile - profile[best]).sum(axis=1) / 4 + (individuals != individuals[best]) / 2
        nearest = np.minimum(nearest, np.clip(distance, 0, 1))
    return chosen


def _uncertainty(evidence: Evidence, edges: NDArray[np.int64]) -> Floats | None:
    parts = [_means(frame_uncertainty(p), edges) for p in evidence.predictions]
    if len(evidence.annotations) > 1:
        differ = disagreement(evidence.annotations)
        parts.append(np.diff(iv.covered_before(differ, edges)) / np.maximum(np.diff(edges), 1))
    return np.mean(parts, axis=0) if parts else None


def frame_uncertainty(prediction: Prediction) -> NDArray[np.floating]:
    """Return the uncertainty of a model in each frame, from 0 (certain) to 1 (undecided); 0 where it predicts nothing."""
    p = np.nan_to_num(prediction.probabilities)
    if not prediction.exclusive:
        return np.asarray(1 - np.abs(2 * p - 1).min(axis=1))
    if prediction.ethogram.background is None and p.shape[1] == len(prediction.ethogram):
        p = np.column_stack((p, np.clip(1 - p.sum(axis=1), 0, 1)))
    if p.shape[1] < 2:
        return np.zeros(len(p))
    first_two = np.partition(p, -2, axis=1)[:, -2:]
    uncertainty = 1 - (first_two[:, 1] - first_two[:, 0])
    return np.asarray(np.where(np.isnan(prediction.probabilities).any(axis=1), 0, uncertainty))


def _profile(evidence: Evidence, edges: NDArray[np.int64]) -> Floats:
    """Return the time budget of each window, averaged over tracks."""
    length = np.maximum(np.diff(edges), 1)
    tracks = [*evidence.annotations, *(p.annotation for p in evidence.predictions if not evidence.annotations)]
    shares = np.zeros((len(edges) - 1, len(evidence.behaviors)))
    for annotation in tracks:
        for code, name in enumerate(evidence.behaviors):
            if name in annotation.ethogram:
                shares[:, code] += np.diff(iv.covered_before(iv.union(annotation.spans(name)), edges)) / length
    return shares / max(len(tracks), 1)


def corrected_frames(correction: Annotation, others: Sequence[Annotation]) -> Intervals:
    """Return the corrected frames: the observed ones or, if all are observed, those that differ from all other tracks."""
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
