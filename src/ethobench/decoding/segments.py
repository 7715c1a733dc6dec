"""Segment rescoring: candidate segments, the probability that each is a true bout, and the best segmentation of a recording.

A frame-wise model predicts each frame. Whether a span of frames is one bout, several bouts or a part of one depends on the whole span
and its surroundings, so a logistic regression scores candidate segments by features of both.

Candidates lie between boundaries: frames where the probabilities, smoothed over several windows, cross one of several levels. The
strength of a boundary is the number of these crossings. Candidates connect each boundary to the next few ones and, across weak
boundaries, to the next few stronger ones, so that there are short and long candidates. Dynamic programming then finds the sequence of
candidates with the highest total score. Where a model predicts onsets and offsets of bouts as such (`Prediction.boundaries`), their
probabilities at both ends of a candidate are features, too. All lengths are relative to the typical bout, and recordings with a higher
frame rate than the training recordings are subsampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.decoding.postprocess import smooth

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
BOUNDARY_WINDOWS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # smoothing before boundaries are detected, in typical bouts
BOUNDARY_LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8)  # a crossing of one of these probabilities is a boundary
MIN_BOUNDARY_DISTANCE = 1 / 32  # typical bouts; closer boundaries are merged
STRENGTHS = (1, 2, 4, 8, 16)  # minimum strengths of boundaries that candidates connect
MAX_BOUNDARIES_AHEAD = 8  # of each strength
MIN_MEAN_PROBABILITY = 0.2  # of a candidate's behavior, unless it is the most probable one
N_FEATURES, N_BOUNDARY_FEATURES = 40, 4
BOUNDARY_REACH = 1 / 8  # around the ends of a candidate, in which the highest probability of an onset or offset counts, in typical bouts
CONTEXT_WINDOWS = (1 / 16, 1 / 4, 1, 2)  # before and after a candidate, in typical bouts
MINIMUM_WINDOWS = (1 / 8, 1 / 2)  # smoothing before the lowest probability inside a candidate is taken, in typical bouts
LOW_PROBABILITY, MIN_PROBABILITY, MIN_STD = 0.3, 1e-3, 1e-3
MIN_IOU = 0.5  # intersection over union with a true bout, from which on a candidate counts as a bout
MAX_TRAINING_ROWS = 100_000
CHUNK = 20_000  # candidates scored at a time, to limit memory in long recordings
INVERSE_REGULARIZATION = 0.01  # `C` of the logistic regression
MAX_DEVIATION = 5.0  # standard deviations at which features are clipped
MIN_SCORE, FRAME_REWARD = 0.2, 0.5


class CandidateSegments(NamedTuple):
    """Segments that could be bouts.

    Attributes
    ----------
    first, last : array of int (n_segments,)
        Indices of the boundaries at which each segment starts and stops.
    behavior : array of int (n_segments,)
        The column of the segment's behavior.
    boundaries : array of int (n_boundaries,)
        Frames, from 0 to the number of frames.
    sums : array (n_frames + 1, n_states)
        Cumulative sums of the probabilities.
    """

    first: Codes
    last: Codes
    behavior: Codes
    boundaries: Codes
    sums: Array

    @property
    def start(self) -> Codes:
        """First frame of each segment."""
        return self.boundaries[self.first]

    @property
    def stop(self) -> Codes:
        """Frame after the last one of each segment."""
        return self.boundaries[self.last]

    def mean_probability(self) -> Array:
        """Return the mean probability of each segment's behavior."""
        start, stop = self.start, self.stop
        return np.asarray((self.sums[stop, self.behavior] - self.sums[start, self.behavior]) / (stop - start))


class ScoredSegments(NamedTuple):
    """Candidate segments with their scores.

    Attributes
    ----------
    segments : CandidateSegments
    probability : array (n_segments,)
        That each is a true bout.
    correct_frames : array (n_segments,)
        Expected number of correct frames, in bouts of typical duration.
    """

    segments: CandidateSegments
    probability: Array
    correct_frames: Array


@dataclass(frozen=True)
class SegmentScorer:
    """Logistic regression that scores candidate segments, and the rewards by which a segmentation is chosen.

    Attributes
    ----------
    states : tuple of str
        Names of behaviors; the empty name is none of them.
    typical_seconds : float
        Typical duration of a bout, the unit of all lengths.
    rate : float
        Frames per second of the training recordings. Faster recordings are subsampled to about this rate.
    mean, scale : tuple of float
        Mean and standard deviation of each feature; the last four are those of boundaries, where the model predicts them.
    weights : tuple of float
        Coefficients of the standardized features, of their squares, of their products with the segment's length, and of the behaviors.
    intercept : float
    min_score : float
        Probability above which a segment improves the total score. In theory the best value is half of the F1 that is reached.
    frame_reward : float
        Reward for the expected number of correct frames, in bouts per typical bout duration.
    """

    states: tuple[str, ...]
    typical_seconds: float
    rate: float
    mean: tuple[float, ...] = field(repr=False)
    scale: tuple[float, ...] = field(repr=False)
    weights: tuple[float, ...] = field(repr=False)
    intercept: float
    min_score: float = MIN_SCORE
    frame_reward: float = FRAME_REWARD

    def __post_init__(self) -> None:
        sizes = len(self.mean), len(self.scale), len(self.weights)
        n = len(self.mean)
        is_consistent = n in (N_FEATURES, N_FEATURES + N_BOUNDARY_FEATURES) and sizes == (n, n, 3 * n + len(self.states))
        if len({*self.states}) < max(len(self.states), 2) or not is_consistent:
            raise EthobenchError("a segment scorer needs two or more different states, and a weight for each feature of a segment")
        numbers = (self.typical_seconds, self.rate, *self.scale, *self.mean, *self.weights, self.intercept)
        if not np.isfinite((*numbers, self.min_score, self.frame_reward)).all() or min(self.typical_seconds, self.rate, *self.scale) <= 0:
            raise EthobenchError("the numbers of a segment scorer must be finite; `typical_seconds`, `rate` and `scale` must be > 0")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Create a scorer from the result of `to_dict`."""
        numbers = ("typical_seconds", "rate", "intercept", "min_score", "frame_reward")
        try:
            values: dict[str, Any] = {name: float(saved[name]) for name in numbers}
            values |= {name: tuple(map(float, saved[name])) for name in ("mean", "scale", "weights")}
            values["states"] = tuple(map(str, saved["states"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"not a valid segment scorer: {error!r}") from None
        return cls(**values)

    def decode(self, columns: Array, names: tuple[str, ...], rate: float, boundaries: NDArray[np.floating] | None = None) -> Codes:
        """Return the column of each frame's behavior in the segmentation with the highest total score.

        Parameters
        ----------
        columns : array (n_frames, n_states)
            Probabilities; rows of NaN where there is no prediction.
        names : tuple of str
            The state of each column.
        rate : float
            Frames per second.
        boundaries : array (n_models, n_frames, 2), optional
            As in `Prediction`. Without them, a scorer that was fitted with boundaries assumes average ones.

        Returns
        -------
        array of int (n_frames,)
        """
        if not len(columns):
            return self._order_of(names)[:0]
        return self.segment(self.score_segments(columns, names, rate, boundaries), names, rate, len(columns))

    def score_segments(
        self, columns: Array, names: tuple[str, ...], rate: float, boundaries: NDArray[np.floating] | None = None
    ) -> ScoredSegments:
        """Return the candidate segments of a recording with their scores, which do not depend on `min_score` and `frame_reward`.

        The parameters are those of `decode`.
        """
        order, step = self._order_of(names), self._step_at(rate)
        values, typical_frames = _fill_unpredicted(columns[::step, order]), self.typical_seconds * rate / step
        segments = propose_segments(values, typical_frames)
        uses_boundaries = len(self.mean) > N_FEATURES
        sampled = boundaries[:, ::step] if boundaries is not None and uses_boundaries else None
        features = SegmentFeatures(values, segments, typical_frames, sampled)
        chunks = [slice(start, start + CHUNK) for start in range(0, len(segments.behavior), CHUNK)]
        probability = np.concatenate([self.probability(features.rows(chunk), segments.behavior[chunk]) for chunk in chunks])
        return ScoredSegments(segments, probability, (segments.stop - segments.start) / typical_frames * segments.mean_probability())

    def segment(self, scored: ScoredSegments, names: tuple[str, ...], rate: float, n_frames: int) -> Codes:
        """Return the column of each frame's behavior in the segmentation with the highest total score."""
        codes = best_segmentation(scored.segments, scored.probability - self.min_score + self.frame_reward * scored.correct_frames)
        return np.repeat(self._order_of(names)[codes], self._step_at(rate))[:n_frames]

    def _order_of(self, names: tuple[str, ...]) -> Codes:
        """Return the column of each state."""
        if {*names} != {*self.states}:
            fitted, requested = (", ".join(repr(s) for s in states) for states in (self.states, names))
            raise MismatchError(f"the decoder was fitted for the behaviors {fitted}, not for {requested}")
        return np.array([names.index(state) for state in self.states])

    def _step_at(self, rate: float) -> int:
        return max(1, round(rate / self.rate))

    def probability(self, rows: Array, behavior: Codes) -> Array:
        """Return the probability that each candidate segment is a true bout.

        Parameters
        ----------
        rows : array (n_segments, n_features)
            As `SegmentFeatures.rows` returns them.
        behavior : array of int (n_segments,)
        """
        missing = self.mean[rows.shape[1] :]
        rows = np.hstack([rows, np.tile(missing, (len(rows), 1))]) if missing else rows
        terms = _regression_terms(rows, behavior, np.array(self.mean), np.array(self.scale), len(self.states))
        return np.asarray(1 / (1 + np.exp(-np.clip(terms @ np.array(self.weights) + self.intercept, -30, 30))))


class LabeledColumns(NamedTuple):
    """A recording that a segment scorer is fitted to.

    Attributes
    ----------
    columns : array (n_frames, n_states)
        Out-of-fold probabilities.
    codes : array of int (n_frames,)
        The true state of each frame; -1 where unobserved.
    rate : float
        Frames per second.
    boundaries : array (n_models, n_frames, 2), optional
        As in `Prediction`.
    """

    columns: Array
    codes: Codes
    rate: float
    boundaries: NDArray[np.floating] | None = None


def fit_segment_scorer(recordings: Iterable[LabeledColumns], states: tuple[str, ...], typical_seconds: float) -> SegmentScorer | None:
    """Fit the probability that a candidate segment is a true bout.

    Parameters
    ----------
    recordings : iterable of LabeledColumns
        Boundaries are used if all recordings have them.
    states : tuple of str
        The state of each column.
    typical_seconds : float
        Typical duration of a bout.

    Returns
    -------
    SegmentScorer or None
        None where all candidates are bouts, or none is.
    """
    from sklearn.linear_model import LogisticRegression

    recordings = [LabeledColumns(*each) for each in recordings]
    use_boundaries = all(each.boundaries is not None for each in recordings)
    prepared, rates = [], []
    for columns, codes, rate, boundaries in recordings:
        if len(codes) and len(states) > 1:
            values = _fill_unpredicted(columns)
            segments = propose_segments(values, typical_seconds * rate)
            n_unusable = np.concatenate([[0], np.cumsum((codes < 0) | np.isnan(columns).any(axis=1))])
            usable = np.flatnonzero(n_unusable[segments.stop] == n_unusable[segments.start])
            features = SegmentFeatures(values, segments, typical_seconds * rate, boundaries if use_boundaries else None)
            prepared.append((features, codes, usable))
            rates.append(rate)
    step = max(1, -(-sum(len(usable) for *_, usable in prepared) // MAX_TRAINING_ROWS))
    n_features = N_FEATURES + N_BOUNDARY_FEATURES * use_boundaries
    rows, behaviors, labels = [np.zeros((0, n_features))], [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=bool)]
    for features, codes, usable in prepared:
        chosen, segments = usable[::step], features.segments
        rows.append(features.rows(chosen))
        behaviors.append(segments.behavior[chosen])
        labels.append(is_true_bout(segments, codes)[chosen])
    x, behavior, y = np.concatenate(rows), np.concatenate(behaviors), np.concatenate(labels)
    if len({*y.tolist()}) < 2:
        return None
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), MIN_STD)
    terms = _regression_terms(x, behavior, mean, scale, len(states))
    regression = LogisticRegression(C=INVERSE_REGULARIZATION, solver="newton-cholesky").fit(terms, y)
    return SegmentScorer(
        states,
        typical_seconds,
        float(np.median(rates)),
        tuple(map(float, mean)),
        tuple(map(float, scale)),
        tuple(map(float, regression.coef_[0])),
        float(regression.intercept_[0]),
    )


def propose_segments(values: Array, typical_frames: float) -> CandidateSegments:
    """Return the candidate segments of a recording.

    Parameters
    ----------
    values : array (n_frames, n_states)
        Probabilities without NaN.
    typical_frames : float
        Typical duration of a bout in frames.
    """
    boundaries, strength = find_boundaries(values, typical_frames)
    pairs = []
    for min_strength in STRENGTHS:
        strong = np.flatnonzero(strength >= min_strength)
        n_ahead = min(MAX_BOUNDARIES_AHEAD, len(strong) - 1)
        pairs += [strong[:-ahead] * len(boundaries) + strong[ahead:] for ahead in range(1, n_ahead + 1)]
    first, last = np.divmod(np.unique(np.concatenate(pairs)), len(boundaries))
    sums = _cumulative_sums(values)
    means = _mean_between(sums, boundaries[first], boundaries[last])
    considered = np.asarray(means >= MIN_MEAN_PROBABILITY)
    considered[np.arange(len(means)), means.argmax(axis=1)] = True
    pair, behavior = np.nonzero(considered)
    return CandidateSegments(first[pair], last[pair], behavior, boundaries, sums)


class SegmentFeatures:
    """Features of candidate segments: length, and probabilities inside, at the ends and around; onsets and offsets at the ends.

    Parameters
    ----------
    values : array (n_frames, n_states)
        Probabilities without NaN.
    segments : CandidateSegments
    typical_frames : float
        Typical duration of a bout in frames.
    boundaries : array (n_models, n_frames, 2), optional
        As in `Prediction`.
    """

    def __init__(
        self, values: Array, segments: CandidateSegments, typical_frames: float, boundaries: NDArray[np.floating] | None = None
    ) -> None:
        self.segments, self.typical_frames, self.n_frames = segments, typical_frames, len(values)
        is_top = values.argmax(axis=1)[:, None] == np.arange(values.shape[1])
        per_frame = (values**2, is_top, values < LOW_PROBABILITY, np.log(np.maximum(values, MIN_PROBABILITY)))
        self._sums = [_cumulative_sums(v.astype(np.float64)) for v in per_frame]
        self._minima = [segment_minima(smooth(values, self._to_frames(window), "mean"), segments) for window in MINIMUM_WINDOWS]
        self._boundaries = None if boundaries is None else _highest_nearby(boundaries, self._to_frames(BOUNDARY_REACH))

    def rows(self, chosen: slice | Codes) -> Array:
        """Return the features of chosen segments, as an array (n_chosen, n_features)."""
        segments, n, typical = self.segments, self.n_frames, self.typical_frames
        first, last, behavior = segments.first[chosen], segments.last[chosen], segments.behavior[chosen]
        start, stop = segments.boundaries[first], segments.boundaries[last]
        index, is_other = np.arange(len(behavior)), np.arange(segments.sums.shape[1]) != behavior[:, None]

        def mean_of(begin: Codes, end: Codes) -> Array:
            """Return the mean probability of the segment's behavior between frames; 0 where there are none."""
            return np.asarray((segments.sums[end, behavior] - segments.sums[begin, behavior]) / np.maximum(end - begin, 1))

        def mean_and_rival(begin: Codes, end: Codes) -> list[Array]:
            """Return the mean probability of the segment's behavior and of the most probable other one."""
            means = _mean_between(segments.sums, begin, end)
            return [means[index, behavior], np.where(is_other, means, 0).max(axis=1)]

        mean, rival = mean_and_rival(start, stop)
        squares, *shares = ((sums[stop, behavior] - sums[start, behavior]) / (stop - start) for sums in self._sums)
        columns = [np.log((stop - start) / typical), mean, rival, np.sqrt(np.maximum(squares - mean**2, 0)), *shares]
        columns += [(last - first).astype(np.float64), (start == 0).astype(np.float64), (stop == n).astype(np.float64)]
        for window in CONTEXT_WINDOWS:
            reach = self._to_frames(window)
            columns += mean_and_rival(np.maximum(start - reach, 0), start) + mean_and_rival(stop, np.minimum(stop + reach, n))
            if window < 1:
                columns += [mean_of(start, np.minimum(start + reach, stop)), mean_of(np.maximum(stop - reach, start), stop)]
        columns += [minima[chosen] for minima in self._minima]
        for n_beyond in (1, 2):
            before = segments.boundaries[np.maximum(first - n_beyond, 0)]
            after = segments.boundaries[np.minimum(last + n_beyond, len(segments.boundaries) - 1)]
            columns += [mean_of(before, start), mean_of(stop, after)]
            columns += [np.log((start - before + 1) / typical), np.log((after - stop + 1) / typical)]
        if self._boundaries is not None:
            columns += [*self._boundaries[np.minimum(start, n - 1)].T, *self._boundaries[np.minimum(stop, n - 1)].T]
        return np.stack(columns, axis=1)

    def _to_frames(self, typical_bouts: float) -> int:
        return max(int(typical_bouts * self.typical_frames), 1)


def _regression_terms(rows: Array, behavior: Codes, mean: Array, scale: Array, n_states: int) -> Array:
    """Return standardized features, their squares, their products with the length (the first feature), and one-hot behaviors."""
    standardized = np.clip((rows - mean) / scale, -MAX_DEVIATION, MAX_DEVIATION)
    one_hot = np.equal.outer(behavior, np.arange(n_states))
    return np.concatenate([standardized, standardized**2, standardized * standardized[:, :1], one_hot], axis=1)


def _highest_nearby(boundaries: NDArray[np.floating], reach: int) -> Array:
    """Return the highest probabilities within some frames of each frame (n_frames, 2), as a mean over models.

    Models place a boundary at slightly different frames, so the mean of the highest values is higher than the highest mean, and as high
    as with the single model that predicts each recording out of fold. Frames without a prediction count as 0.
    """
    from scipy.ndimage import maximum_filter1d

    highest = maximum_filter1d(np.nan_to_num(boundaries).astype(np.float64), 2 * reach + 1, axis=1, mode="nearest")
    return np.asarray(highest.mean(axis=0))


def _fill_unpredicted(columns: Array) -> Array:
    """Give all states the same probability where there is no prediction."""
    return np.where(np.isnan(columns).any(axis=1, keepdims=True), 1 / columns.shape[1], columns)


def find_boundaries(values: Array, typical_frames: float) -> tuple[Codes, Array]:
    """Return the frames at which segments may start and stop, with both ends of the recording, and the strength of each."""
    n = len(values)
    votes = np.zeros(n + 1)
    for window in BOUNDARY_WINDOWS:
        smoothed = smooth(values, max(int(window * typical_frames), 1), "mean")
        top = smoothed.argmax(axis=1)
        votes[1:n] += top[1:] != top[:-1]
        by_state = np.ascontiguousarray(smoothed.T)  # faster to compare than a short row for each frame
        for level in BOUNDARY_LEVELS:
            above = by_state >= level
            votes[1:n] += (above[:, 1:] != above[:, :-1]).any(axis=0)
    distance = int(MIN_BOUNDARY_DISTANCE * typical_frames)
    cumulative = np.concatenate([np.zeros(distance + 1), np.cumsum(votes), np.full(distance, votes.sum())])
    nearby_votes = cumulative[2 * distance + 1 :] - cumulative[: n + 1]
    candidates = np.flatnonzero(votes)
    occupied = np.zeros(n + 2 * distance + 1, dtype=bool)
    kept = []
    for frame in candidates[np.lexsort((candidates, -votes[candidates], -nearby_votes[candidates]))].tolist():
        if distance <= frame <= n - distance and not occupied[frame : frame + 2 * distance + 1].any():
            occupied[frame + distance] = True
            kept.append(frame)
    boundaries = np.array([0, *sorted(kept), n])
    strength = nearby_votes[boundaries]
    strength[[0, -1]] = np.inf
    return boundaries, strength


def _cumulative_sums(values: Array) -> Array:
    return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])


def _mean_between(sums: Array, start: Codes, stop: Codes) -> Array:
    return np.asarray((sums[stop] - sums[start]) / np.maximum(stop - start, 1)[:, None])


def segment_minima(values: Array, segments: CandidateSegments) -> Array:
    """Return the minimum of each segment's behavior inside the segment, from a sparse table of minima over 1, 2, 4, ... frames."""
    start, stop = segments.start, segments.stop
    power = np.frexp(stop - start)[1] - 1  # the largest power of two that fits
    table, result = values, np.empty(len(start))
    for exponent in range(int(power.max(initial=0)) + 1):
        index = np.flatnonzero(power == exponent)
        behavior = segments.behavior[index]
        result[index] = np.minimum(table[start[index], behavior], table[stop[index] - (1 << exponent), behavior])
        table = np.minimum(table[: -(1 << exponent)], table[1 << exponent :])
    return result


def is_true_bout(segments: CandidateSegments, codes: Codes) -> NDArray[np.bool_]:
    """Return which segments have an intersection over union of at least `MIN_IOU` with a true bout of their behavior."""
    runs = iv.encode_runs(codes)
    start, stop = segments.start, segments.stop
    middle_run = np.searchsorted(runs.start, (start + stop) // 2, side="right") - 1
    result = np.zeros(len(start), dtype=bool)
    for shift in (-1, 0, 1):  # a bout that overlaps half of the segment contains its middle or is next to it
        run = np.clip(middle_run + shift, 0, len(runs.start) - 1)
        intersection = np.minimum(stop, runs.stop[run]) - np.maximum(start, runs.start[run])
        union = np.maximum(stop, runs.stop[run]) - np.minimum(start, runs.start[run])
        result |= (runs.values[run] == segments.behavior) & (intersection >= MIN_IOU * union)
    return result


def best_segmentation(segments: CandidateSegments, scores: Array) -> Codes:
    """Return the behavior of each frame in the sequence of adjoining segments with the highest total score.

    Adjoining segments may have the same behavior: joined, they form a bout that is longer than any candidate.
    """
    n_boundaries = len(segments.boundaries)
    order = np.argsort(segments.last, kind="stable")
    ends = np.searchsorted(segments.last[order], np.arange(n_boundaries + 1))
    first, scores = segments.first[order], scores[order]
    best, chosen = np.zeros(n_boundaries), np.zeros(n_boundaries, dtype=np.int64)
    for boundary in range(1, n_boundaries):
        ending_here = slice(ends[boundary], ends[boundary + 1])
        total = best[first[ending_here]] + scores[ending_here]
        top = int(total.argmax())
        best[boundary], chosen[boundary] = total[top], order[ends[boundary] + top]
    codes = np.empty(segments.boundaries[-1], dtype=np.int64)
    boundary = n_boundaries - 1
    while boundary > 0:
        segment = chosen[boundary]
        codes[segments.boundaries[segments.first[segment]] : segments.boundaries[boundary]] = segments.behavior[segment]
        boundary = int(segments.first[segment])
    return codes
