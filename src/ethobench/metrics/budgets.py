"""Time-budget scores (durations, counts, transitions, latencies), and the correction of time budgets by a confusion matrix.

Conventions
-----------
Shares are of the observed frames. Distributions of bout durations are compared over 200 bins, evenly spaced in
the logarithm from 10 ms to 10,000 s. A transition leads from a bout to the next one of the same subject, including the
background if it is a behavior of the ethogram. The latency of a behavior that does not occur in a recording is the end of the recording.

References
----------
Time budgets, bouts, transitions and latencies: Martin and Bateson (2007), Measuring Behaviour, 3rd edition, Cambridge University Press.
Distance of distributions: Smirnov (1948), Annals of Mathematical Statistics 19, 279-281. Correction of shares by a confusion
matrix: Hay (1988), International Journal of Remote Sensing 9, 1395-1398; with non-negative least squares, Lawson and Hanson (1974),
Solving Least Squares Problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.intervals import Intervals
from ethobench.metrics.base import Array, ratio, register_metric, sum_tracks, weighted_mean
from ethobench.metrics.bootstrap import MIN_GROUPS, Resampled, confidence_interval
from ethobench.metrics.pairs import AlignedPair, TrackPair

DURATION_BINS = 200
SHORTEST, LONGEST = 0.01, 10_000.0  # seconds


def sums(pair: AlignedPair) -> Array:
    """Sum for each behavior: observed, true and predicted seconds; true and predicted bouts. Shape (n_behaviors, 5)."""

    def count(track: TrackPair) -> list[float]:
        seconds = [iv.total(a) / pair.rate for a in (track.observed, track.truth, track.pred)]
        return [*seconds, len(track.truth.start), len(track.pred.start)]

    return sum_tracks(pair, 5, count)


def durations(pair: AlignedPair) -> Array:
    """Count true, then predicted bouts of each behavior by duration in logarithmic bins, shape (n_behaviors, 2 * DURATION_BINS)."""
    return sum_tracks(
        pair,
        2 * DURATION_BINS,
        lambda track: np.concatenate([_duration_histogram(track.truth, pair.rate), _duration_histogram(track.pred, pair.rate)]),
    )


def _duration_histogram(a: Intervals, rate: float) -> Array:
    seconds = np.clip((a.stop - a.start) / rate, SHORTEST, LONGEST)
    position = np.log(seconds / SHORTEST) / np.log(LONGEST / SHORTEST) * (DURATION_BINS - 1)
    return np.bincount(np.round(position).astype(np.int64), minlength=DURATION_BINS).astype(float)


def transitions(pair: AlignedPair) -> Array:
    """Count which behavior follows which in truth and prediction, shape (2, n_behaviors, n_behaviors)."""
    size = len(pair.ethogram)
    counts = np.zeros((2, size, size))
    for k, side in enumerate(("truth", "pred")):
        for subject in {track.subject for track in pair.tracks}:
            tracks = [track for track in pair.tracks if track.subject == subject]
            spans = [getattr(track, side) for track in tracks]
            start = np.concatenate([np.zeros(0, dtype=np.int64), *(s.start for s in spans)])
            codes = np.repeat([track.behavior for track in tracks], [len(s.start) for s in spans]).astype(np.int64)
            order = codes[np.lexsort((codes, start))]
            changed = order[1:] != order[:-1]
            np.add.at(counts[k], (order[:-1][changed], order[1:][changed]), 1)
    return counts


def latencies(pair: AlignedPair) -> Array:
    """Return for each behavior the difference of its true and predicted latency in seconds, and weight 1; shape (n_behaviors, 2)."""
    table = np.zeros((len(pair.ethogram), 2))
    for code in range(len(pair.ethogram)):
        tracks = [track for track in pair.tracks if track.behavior == code]
        if any(len(t.truth.start) or len(t.pred.start) for t in tracks):
            end = pair.truth.n_frames
            truth = min((int(t.truth.start[0]) for t in tracks if len(t.truth.start)), default=end)
            pred = min((int(t.pred.start[0]) for t in tracks if len(t.pred.start)), default=end)
            table[code] = abs(truth - pred) / pair.rate, 1
    return table


@register_metric(sums, best=0.0, worst=1.0, symmetric=True, distance=True)
def time_error(s: Array) -> Array:
    """Absolute difference of the predicted and the true share of time."""
    present = (s[..., 1] > 0) | (s[..., 2] > 0)
    return np.where(present, np.abs(ratio(s[..., 2] - s[..., 1], s[..., 0])), np.nan)


@register_metric(sums, best=0.0, worst=np.inf, distance=True)
def count_error(s: Array) -> Array:
    """Absolute difference of the predicted and the true number of bouts, relative to the true number."""
    return np.abs(ratio(s[..., 4] - s[..., 3], s[..., 3]))


@register_metric(durations, kind="histogram", best=0.0, worst=1.0, symmetric=True, distance=True)
def duration_distance(s: Array) -> Array:
    """Kolmogorov-Smirnov distance of the durations of true and predicted bouts; undefined if either side has none."""
    histograms = [s[..., :DURATION_BINS], s[..., DURATION_BINS:]]
    shares = [ratio(np.cumsum(h, axis=-1), h.sum(axis=-1, keepdims=True)) for h in histograms]
    return np.asarray(np.abs(shares[0] - shares[1]).max(axis=-1))


@register_metric(transitions, joint=True, best=0.0, worst=1.0, distance=True)
def transition_distance(s: Array) -> Array:
    """Mean total variation distance of the true and predicted transition probabilities, weighted by true transitions."""
    truth, pred = s[..., 0, :, :], s[..., 1, :, :]
    shares = [np.nan_to_num(ratio(counts, counts.sum(axis=-1, keepdims=True))) for counts in (truth, pred)]
    distance = np.abs(shares[0] - shares[1]).sum(axis=-1) / 2
    distance = np.where((truth.sum(axis=-1) > 0) & (pred.sum(axis=-1) == 0), 1.0, distance)
    weight = truth.sum(axis=-1)
    return ratio((distance * weight).sum(axis=-1), weight.sum(axis=-1))


@register_metric(latencies, kind="rows", best=0.0, worst=np.inf, symmetric=True)
def latency_error(s: Array) -> Array:
    """Mean absolute difference in seconds of the starts of the first true and the first predicted bout of a recording."""
    return weighted_mean(s)


def time_budget(*annotations: Annotation) -> list[dict[str, Any]]:
    """Return the time budget of an annotation, or of the annotations of several recordings together.

    Parameters
    ----------
    *annotations : Annotation
        With the same behaviors.

    Returns
    -------
    list of dict
        One row for each behavior of each subject: ``subject`` (empty if the bouts name none), ``behavior``, ``bouts`` (their number),
        ``seconds`` (total duration), ``share`` of the observed time, ``mean`` and ``median`` bout duration, and ``latency`` of the first
        bout, in seconds; of several recordings, the median of their latencies. Undefined values are None.

    Examples
    --------
    >>> annotation = Annotation.from_bouts([10, 50], [20, 60], ["groom", "groom"], ["groom"], rate=10, n_frames=100)
    >>> (row,) = time_budget(annotation)
    >>> row["bouts"], row["seconds"], row["share"], row["latency"]
    (2, 2.0, 0.2, 1.0)
    >>> (row,) = time_budget(annotation, annotation.crop(0, 40))
    >>> row["bouts"], row["seconds"], round(row["share"], 3)
    (3, 3.0, 0.214)
    """
    behaviors = dict.fromkeys(behavior.name for annotation in annotations for behavior in annotation.ethogram)
    subjects = dict.fromkeys(name for annotation in annotations for name in budget_subjects(annotation))
    return [_budget_row(annotations, name, subject) for subject in subjects for name in behaviors]


def budget_subjects(annotation: Annotation) -> list[str]:
    """Return the subjects of the bouts; an empty name if they name none. Without any bout, all animals that bouts could name."""
    named = annotation.subjects if (annotation.subject >= 0).any() or not len(annotation) else ()
    return [*named, *([""] if (annotation.subject < 0).any() or not named else [])]


def _budget_row(annotations: Sequence[Annotation], behavior: str, subject: str) -> dict[str, Any]:
    concerned = [a for a in annotations if behavior in a.ethogram and subject in budget_subjects(a)]
    bouts = [(a.rate, *observed_bouts(a, behavior, subject)) for a in concerned]
    durations = np.concatenate([np.zeros(0), *((spans.stop - spans.start) / rate for rate, spans, _ in bouts)])
    latencies = [float(spans.start[0] / rate) for rate, spans, _ in bouts if len(spans.start)]
    observed = sum(iv.total(frames) / rate for rate, _, frames in bouts)
    has_durations = len(durations) > 0 and not any(a.ethogram[a.ethogram.code(behavior)].point for a in concerned)
    return {
        "subject": subject,
        "behavior": behavior,
        "bouts": len(durations),
        "seconds": float(durations.sum()),
        "share": float(durations.sum() / observed) if observed else None,
        "mean": float(durations.mean()) if has_durations else None,
        "median": float(np.median(durations)) if has_durations else None,
        "latency": float(np.median(latencies)) if latencies else None,
    }


def observed_bouts(annotation: Annotation, behavior: str, subject: str = "") -> tuple[Intervals, Intervals]:
    """Return the observed bouts of a behavior of one subject, and the observed frames, as disjoint intervals.

    Overlapping bouts are joined; unobserved frames are cut out. The background also covers frames without any bout. Point events have
    ``start == stop``; those in unobserved frames are dropped.

    Parameters
    ----------
    annotation : Annotation
    behavior : str
    subject : str
        Empty for the bouts without a subject.

    Examples
    --------
    >>> annotation = Annotation.from_bouts([0, 4], [5, 9], ["groom", "groom"], ["groom"], rate=10, n_frames=20)
    >>> observed_bouts(annotation, "groom")[0].stop.tolist()
    [9]
    """
    code, n_frames = annotation.ethogram.code(behavior), annotation.n_frames
    observed = annotation.observed.of(behavior, subject or None)
    bouts = annotation.select(subject=subject)
    if annotation.ethogram[code].point:
        at = bouts.spans(code).start
        frame = np.minimum(at, n_frames - 1)  # an event at the very end belongs to the last frame
        inside = iv.covered_before(observed, frame + 1) > iv.covered_before(observed, frame)
        return Intervals(at[inside], at[inside]), observed
    spans = iv.union(bouts.spans(code))
    if code == annotation.ethogram.background:
        spans = iv.union_all([spans, iv.complement(iv.union(Intervals(bouts.start, bouts.stop)), n_frames)])
    return iv.intersection(spans, observed), observed


def correct_time_budget(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], confusion: Array) -> list[dict[str, Any]]:
    """Return a time budget with shares corrected by a confusion matrix: ``corrected`` and its 95 % interval, ``low`` to ``high``.

    Parameters
    ----------
    rows : sequence of mappings
        As `time_budget` returns them. Each subject is corrected separately.
    labels : sequence of str
        Behaviors of the confusion matrix; an empty name stands for frames without any behavior.
    confusion : array (n_individuals, n_labels, n_labels)
        Frames by true (row) and predicted (column) behavior.

    See Also
    --------
    corrected_shares : the correction itself.
    """
    corrected: list[dict[str, Any]] = []
    for subject in dict.fromkeys(row["subject"] for row in rows):
        shares = {row["behavior"]: row["share"] or 0.0 for row in rows if row["subject"] == subject}
        unknown = [name for name, share in shares.items() if name not in labels and share]
        if unknown:
            raise MismatchError(f"behaviors that the confusion matrix lacks: {', '.join(unknown)}")
        vector = np.array([shares.get(label, 0.0) for label in labels])
        if "" in labels:
            vector[labels.index("")] = max(0.0, 1 - vector.sum())
        results = np.stack(corrected_shares(vector, confusion))
        for row in (row for row in rows if row["subject"] == subject):
            values = results[:, labels.index(row["behavior"])] if row["behavior"] in labels else (np.nan,) * 3
            names = ("corrected", "low", "high")
            corrected.append({**row, **{name: None if np.isnan(v) else float(v) for name, v in zip(names, values, strict=True)}})
    return corrected


def corrected_shares(shares: Array, confusion: Array, *, resamples: int = 1000, seed: int = 0) -> tuple[Array, Array, Array]:
    """Correct predicted shares of time by a confusion matrix.

    A model that mistakes walking for running inflates running in every recording. If its confusion matrix is
    known from recordings with a truth, the corrected shares are those that, confused in the same way, come closest to the predicted ones.

    Parameters
    ----------
    shares : array (n_behaviors,)
        Predicted shares of time.
    confusion : array (n_individuals, n_behaviors, n_behaviors)
        Frames by true (row) and predicted (column) behavior, for each individual with a truth.
    resamples, seed : int
        Number of resamples of these individuals for the interval, and the random seed.

    Returns
    -------
    value, low, high : arrays (n_behaviors,)
        `low` and `high` are NaN with fewer than five individuals.

    Examples
    --------
    >>> confusion = np.array([[[80, 20], [0, 100]]], dtype=float)
    >>> corrected_shares(np.array([0.4, 0.6]), confusion)[0].round(3).tolist()
    [0.5, 0.5]
    """
    if confusion.ndim != 3 or confusion.shape[1:] != (len(shares), len(shares)):
        raise MismatchError(f"`confusion` must have shape (n_individuals, {len(shares)}, {len(shares)}), got {confusion.shape}")
    value = _correct(shares, confusion.sum(axis=0))
    if len(confusion) < MIN_GROUPS:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)

    def corrected(weights: Array) -> Array:
        return np.stack([_correct(shares, matrix) for matrix in np.tensordot(weights, confusion, axes=1)])

    resampled = Resampled.evaluate(corrected, len(confusion), resamples, seed)
    low, high = confidence_interval(value, resampled, len(confusion), (0.0, 1.0), on_logit=True)
    return value, low, high


def _correct(shares: Array, confusion: Array) -> Array:
    """Return the non-negative true shares that, confused, come closest to the predicted ones; behaviors without true frames are kept."""
    from scipy.optimize import nnls

    rows = ratio(confusion, confusion.sum(axis=1, keepdims=True))
    rows = np.where(np.isnan(rows), np.eye(len(shares)), rows)
    solution, _ = nnls(rows.T, shares)
    total = solution.sum()
    return np.asarray(solution / total * shares.sum() if total > 0 else shares)
