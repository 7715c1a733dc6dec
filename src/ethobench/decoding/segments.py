"""Bouts judged as wholes: which stretches could be bouts, how likely each is to be one, and the division into the best of them.

Frame by frame, a model says what goes on; whether a stretch is one bout, several, or a part of one shows in the stretch and its
surroundings. CandidateSegments lie between cuts: places where probabilities, smoothed more or less, cross one of some levels. A cut that
many of these agree on is strong. From one cut stretches lead to the next few, and over weak cuts to the next few stronger ones, so
that short bouts and long ones are among them. All lengths are told relative to the typical bout; a faster recording than those that
were learnt from is judged by every n-th frame.
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
SMOOTHED = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # over these parts of the typical bout, for cuts
LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of probability that make a cut where they are crossed
NEAR = 1 / 32  # of the typical bout, within which two cuts are one
N_FEATURES = 40
STRENGTHS = (1, 2, 4, 8, 16)
NEXT = 8  # cuts, of each strength, to which stretches lead
PROBABLE = 0.2  # mean probability below which a behavior is not considered, unless it is the most probable one
AROUND = (1 / 16, 1 / 4, 1, 2)  # typical bouts before and after a stretch that are looked at
DIPS = (1 / 8, 1 / 2)  # smoothed so, how low probability falls inside
LOW, LEAST = 0.3, 1e-3
RIGHT = 0.5  # overlap (intersection over union) with a true bout from which on a stretch is one
MOST_ROWS = 100_000  # that are learnt from
AT_ONCE = 20_000  # stretches, so that long recordings fit into memory
TIGHT = 0.01  # inverse of how strongly large weights are punished
FAR = 5.0  # standard deviations beyond which values are not told apart
PRICE, FILLING = 0.2, 0.5


class CandidateSegments(NamedTuple):
    """What could be bouts: from which cut to which, of which behavior; places of all cuts, and running sums of probabilities."""

    first: Codes
    last: Codes
    behavior: Codes
    cuts: Codes
    sums: Array

    @property
    def start(self) -> Codes:
        """First frames."""
        return self.cuts[self.first]

    @property
    def stop(self) -> Codes:
        """Frames after the last."""
        return self.cuts[self.last]

    def own(self) -> Array:
        """Mean probability of the stretch's behavior."""
        start, stop = self.start, self.stop
        return np.asarray((self.sums[stop, self.behavior] - self.sums[start, self.behavior]) / (stop - start))


@dataclass(frozen=True)
class SegmentScorer:
    """How likely a stretch is to be a bout, and what that is worth.

    Attributes
    ----------
    states : tuple of str
        Behaviors; an empty name stands for none of them.
    seconds : float
        The typical duration of a bout.
    rate : float
        Frames per second, about, at which it learnt and segment_scorers.
    center, scale, weights : tuple of float
        Of logistic regression: what is usual of each trait of a stretch, and how much traits, their squares, their products with the
        stretch's length, and behaviors speak for a bout.
    bias : float
    min_score : float
        Probability from which on a bout is worth having: half of the F1 that is reached, in theory.
    frame_reward : float
        What a typical bout's worth of rightly named frames is worth, in bouts.
    """

    states: tuple[str, ...]
    seconds: float
    rate: float
    center: tuple[float, ...] = field(repr=False)
    scale: tuple[float, ...] = field(repr=False)
    weights: tuple[float, ...] = field(repr=False)
    bias: float
    min_score: float = PRICE
    frame_reward: float = FILLING

    def __post_init__(self) -> None:
        sizes = len(self.center), len(self.scale), len(self.weights)
        if len({*self.states}) < max(len(self.states), 2) or sizes != (N_FEATURES, N_FEATURES, 3 * N_FEATURES + len(self.states)):
            raise EthobenchError("a scorer has two different behaviors or more, and a weight for each trait of a stretch")
        numbers = (self.seconds, self.rate, *self.scale, *self.center, *self.weights, self.bias, self.min_score, self.frame_reward)
        if not np.isfinite(numbers).all() or min(self.seconds, self.rate, *self.scale) <= 0:
            raise EthobenchError("a scorer's numbers are finite; durations, rates and scales above 0")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make what `to_dict` returned."""
        try:
            center, scale, weights = (tuple(map(float, plain[name])) for name in ("center", "scale", "weights"))
            seconds, rate, bias, min_score, frame_reward = (
                float(plain[name]) for name in ("seconds", "rate", "bias", "min_score", "frame_reward")
            )
            return cls(tuple(map(str, plain["states"])), seconds, rate, center, scale, weights, bias, min_score, frame_reward)
        except (KeyError, TypeError, ValueError) as error:
            raise EthobenchError(f"this is no scorer of bouts: {error!r}") from None

    def divide(self, columns: Array, names: tuple[str, ...], rate: float) -> Codes:
        """Return the code of each frame by the division into the bouts that are worth most.

        Parameters
        ----------
        columns : array (n_frames, n_states)
            Probabilities; rows of NaN where nothing is known.
        names : tuple of str
            What the columns are.
        rate : float
            Frames per second.
        """
        if {*names} != {*self.states}:
            known, wanted = (", ".join(repr(s) for s in some) for some in (self.states, names))
            raise MismatchError(f"the decoder segment_scorers bouts of {known}; these are {wanted}")
        places = np.array([names.index(state) for state in self.states])
        if not len(columns):
            return np.zeros(0, dtype=np.int64)
        every = max(1, round(rate / self.rate))
        values, typical = _filled(columns[::every, places]), self.seconds * rate / every
        found = propose_segments(values, typical)
        told, parts = SegmentFeatures(values, found, typical), range(0, len(found.behavior), AT_ONCE)
        chances = [self.probability(told.rows(slice(k, k + AT_ONCE)), found.behavior[k : k + AT_ONCE]) for k in parts]
        frames = (found.stop - found.start) / typical * found.own()
        codes = _best_division(found, np.concatenate(chances) - self.min_score + self.frame_reward * frames)
        return np.repeat(places[codes], every)[: len(columns)]

    def probability(self, rows: Array, behavior: Codes) -> Array:
        """Return how likely stretches with these traits are to be bouts."""
        terms = _terms(rows, behavior, np.array(self.center), np.array(self.scale), len(self.states))
        return np.asarray(1 / (1 + np.exp(-np.clip(terms @ np.array(self.weights) + self.bias, -30, 30))))


def fit_segment_scorer(tracks: Iterable[tuple[Array, Codes, float]], states: tuple[str, ...], seconds: float) -> SegmentScorer | None:
    """Learn which stretches are bouts.

    Parameters
    ----------
    tracks : iterable of (columns, codes, rate)
        Out-of-fold probabilities of each state, and the true code of each frame, -1 where nobody looked.
    states : tuple of str
    seconds : float
        The typical duration of a bout.

    Returns
    -------
    SegmentScorer or None
        None where all stretches are bouts, or none is.
    """
    from sklearn.linear_model import LogisticRegression

    looked, rates = [], []
    for columns, codes, rate in tracks:
        if len(codes) and len(states) > 1:
            values = _filled(columns)
            found = propose_segments(values, seconds * rate)
            unknown = np.concatenate([[0], np.cumsum((codes < 0) | np.isnan(columns).any(axis=1))])
            looked.append((values, found, codes, seconds * rate, np.flatnonzero(unknown[found.stop] == unknown[found.start])))
            rates.append(rate)
    every = max(1, -(-sum(len(seen) for *_, seen in looked) // MOST_ROWS))
    rows, behaviors, right = [np.zeros((0, N_FEATURES))], [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=bool)]
    for values, found, codes, typical, seen in looked:
        chosen = seen[::every]
        rows.append(SegmentFeatures(values, found, typical).rows(chosen))
        behaviors.append(found.behavior[chosen])
        right.append(_is_bout(found, codes)[chosen])
    x, behavior, y = (np.concatenate(parts) for parts in (rows, behaviors, right))
    if len({*y.tolist()}) < 2:
        return None
    center, scale = x.mean(axis=0), np.maximum(x.std(axis=0), LEAST)
    learnt = LogisticRegression(C=TIGHT, solver="newton-cholesky").fit(_terms(x, behavior, center, scale, len(states)), y)
    usual, spread, weights = (tuple(map(float, part)) for part in (center, scale, learnt.coef_[0]))
    return SegmentScorer(states, seconds, float(np.median(rates)), usual, spread, weights, float(learnt.intercept_[0]))


def propose_segments(values: Array, typical: float) -> CandidateSegments:
    """Return what could be bouts, given probabilities (n_frames, n_states) and the typical length of a bout in frames."""
    cuts, strength = _cuts(values, typical)
    pairs = []
    for least in STRENGTHS:
        strong = np.flatnonzero(strength >= least)
        pairs += [strong[:-ahead] * len(cuts) + strong[ahead:] for ahead in range(1, min(NEXT, len(strong) - 1) + 1)]
    first, last = np.divmod(np.unique(np.concatenate(pairs)), len(cuts))
    sums = _sums(values)
    means = _means(sums, cuts[first], cuts[last])
    likely = np.asarray(means >= PROBABLE)
    likely[np.arange(len(means)), means.argmax(axis=1)] = True
    place, behavior = np.nonzero(likely)
    return CandidateSegments(first[place], last[place], behavior, cuts, sums)


class SegmentFeatures:
    """What can be told of each stretch: its length, probabilities in it, at its ends, and around it."""

    def __init__(self, values: Array, found: CandidateSegments, typical: float) -> None:
        self.found, self.typical, self.n = found, typical, len(values)
        named = values.argmax(axis=1)[:, None] == np.arange(values.shape[1])
        self.marks = [_sums(mark.astype(np.float64)) for mark in (values**2, named, values < LOW, np.log(np.maximum(values, LEAST)))]
        self.dips = [_lowest(smooth(values, self._frames(part), "mean"), found) for part in DIPS]

    def rows(self, part: slice | Codes) -> Array:
        """Return the traits of some stretches."""
        found, n, typical = self.found, self.n, self.typical
        first, last, own = found.first[part], found.last[part], found.behavior[part]
        start, stop = found.cuts[first], found.cuts[last]
        each, others = np.arange(len(own)), np.arange(found.sums.shape[1]) != own[:, None]

        def both(begin: Codes, end: Codes) -> list[Array]:
            """Mean probability of the own behavior, and of the most probable other, of some frames; 0 of none."""
            means = _means(found.sums, begin, end)
            return [means[each, own], np.where(others, means, 0).max(axis=1)]

        def single(begin: Codes, end: Codes) -> Array:
            return np.asarray((found.sums[end, own] - found.sums[begin, own]) / np.maximum(end - begin, 1))

        mean, rival = both(start, stop)
        squares, *shares = ((sums[stop, own] - sums[start, own]) / (stop - start) for sums in self.marks)
        told = [np.log((stop - start) / typical), mean, rival, np.sqrt(np.maximum(squares - mean**2, 0)), *shares]
        told += [(last - first).astype(np.float64), (start == 0).astype(np.float64), (stop == n).astype(np.float64)]
        for width in AROUND:
            reach = self._frames(width)
            told += both(np.maximum(start - reach, 0), start) + both(stop, np.minimum(stop + reach, n))
            if width < 1:
                told += [single(start, np.minimum(start + reach, stop)), single(np.maximum(stop - reach, start), stop)]
        told += [dip[part] for dip in self.dips]
        for beyond in (1, 2):
            before, after = found.cuts[np.maximum(first - beyond, 0)], found.cuts[np.minimum(last + beyond, len(found.cuts) - 1)]
            told += [single(before, start), single(stop, after)]
            told += [np.log((start - before + 1) / typical), np.log((after - stop + 1) / typical)]
        return np.stack(told, axis=1)

    def _frames(self, part: float) -> int:
        return max(int(part * self.typical), 1)


def _terms(rows: Array, behavior: Codes, center: Array, scale: Array, n_states: int) -> Array:
    """Return traits, their squares, their products with the length (the first of them), and the behavior, as regression takes them."""
    usual = np.clip((rows - center) / scale, -FAR, FAR)
    return np.concatenate([usual, usual**2, usual * usual[:, :1], np.equal.outer(behavior, np.arange(n_states))], axis=1)


def _filled(columns: Array) -> Array:
    """Return probabilities with all states alike where nothing is known."""
    return np.where(np.isnan(columns).any(axis=1, keepdims=True), 1 / columns.shape[1], columns)


def _cuts(values: Array, typical: float) -> tuple[Codes, Array]:
    """Return where stretches may begin and end, the two ends of the recording among them, and how strong each place is."""
    n = len(values)
    votes = np.zeros(n + 1)
    for part in SMOOTHED:
        smoothed = smooth(values, max(int(part * typical), 1), "mean")
        named = smoothed.argmax(axis=1)
        votes[1:n] += named[1:] != named[:-1]
        for level in LEVELS:
            above = np.asarray(smoothed >= level)
            votes[1:n] += (above[1:] != above[:-1]).any(axis=1)
    near = int(NEAR * typical)
    total = np.concatenate([np.zeros(near + 1), np.cumsum(votes), np.full(near, votes.sum())])
    around = total[2 * near + 1 :] - total[: n + 1]
    places = np.flatnonzero(votes)
    taken = np.zeros(n + 2 * near + 1, dtype=bool)
    kept = []
    for place in places[np.lexsort((places, -votes[places], -around[places]))].tolist():
        if near <= place <= n - near and not taken[place : place + 2 * near + 1].any():
            taken[place + near] = True
            kept.append(place)
    cuts = np.array([0, *sorted(kept), n])
    strength = around[cuts]
    strength[[0, -1]] = np.inf
    return cuts, strength


def _sums(values: Array) -> Array:
    return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])


def _means(sums: Array, start: Codes, stop: Codes) -> Array:
    return np.asarray((sums[stop] - sums[start]) / np.maximum(stop - start, 1)[:, None])


def _lowest(values: Array, found: CandidateSegments) -> Array:
    """Return the lowest value of its behavior in each stretch, from tables of the lowest of 1, 2, 4, ... frames."""
    start, stop = found.start, found.stop
    power = np.frexp(stop - start)[1] - 1  # the largest power of two that fits
    lowest, result = values, np.empty(len(start))
    for exponent in range(int(power.max(initial=0)) + 1):
        now = np.flatnonzero(power == exponent)
        own = found.behavior[now]
        result[now] = np.minimum(lowest[start[now], own], lowest[stop[now] - (1 << exponent), own])
        lowest = np.minimum(lowest[: -(1 << exponent)], lowest[1 << exponent :])
    return result


def _is_bout(found: CandidateSegments, codes: Codes) -> NDArray[np.bool_]:
    """Tell which stretches overlap a true bout of their behavior well enough."""
    runs = iv.encode_runs(codes)
    start, stop = found.start, found.stop
    middle = np.searchsorted(runs.start, (start + stop) // 2, side="right") - 1
    result = np.zeros(len(start), dtype=bool)
    for shift in (-1, 0, 1):  # half of a stretch and half of a bout can only meet around the middle
        run = np.clip(middle + shift, 0, len(runs.start) - 1)
        shared = np.minimum(stop, runs.stop[run]) - np.maximum(start, runs.start[run])
        spanned = np.maximum(stop, runs.stop[run]) - np.minimum(start, runs.start[run])
        result |= (runs.values[run] == found.behavior) & (shared >= RIGHT * spanned)
    return result


def _best_division(found: CandidateSegments, worth: Array) -> Codes:
    """Return the code of each frame where the stretches that follow each other from end to end are worth most.

    Two of one behavior may follow each other: as one bout they may be longer than any single stretch.
    """
    order = np.argsort(found.last, kind="stable")
    ends = np.searchsorted(found.last[order], np.arange(len(found.cuts) + 1))
    first, worth = found.first[order], worth[order]
    best, chosen = np.zeros(len(found.cuts)), np.zeros(len(found.cuts), dtype=np.int64)
    for cut in range(1, len(found.cuts)):
        here = slice(ends[cut], ends[cut + 1])
        total = best[first[here]] + worth[here]
        top = int(total.argmax())
        best[cut], chosen[cut] = total[top], order[ends[cut] + top]
    codes = np.empty(found.cuts[-1], dtype=np.int64)
    cut = len(found.cuts) - 1
    while cut > 0:
        stretch = chosen[cut]
        codes[found.cuts[found.first[stretch]] : found.cuts[cut]] = found.behavior[stretch]
        cut = int(found.first[stretch])
    return codes
