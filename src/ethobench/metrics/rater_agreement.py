"""Agreement of several annotators: Cohen's kappa, Fleiss' kappa, Krippendorff's alpha, intraclass correlation.

Conventions
-----------
A frame counts if both (Cohen), all (Fleiss) or at least two (Krippendorff) annotators observed it. Each behavior is a separate
binary problem; "all behaviors" is one nominal variable and requires that behaviors exclude each other. With a tolerance, frames within
that many seconds of any annotator's start or stop of the behavior do not count, and there are no scores of all behaviors. Subjects
are pooled. The intraclass correlation is ICC(2,1), two-way random effects, absolute agreement of a single annotator, over
recordings, in the frames that all annotators observed. Confidence intervals are over individuals, or over recordings if no individuals
are named, as defined in `ethobench.metrics.bootstrap`; they are withheld below five of them. That of the intraclass correlation is by the F
distribution, and withheld if individuals have several recordings, which are not independent.

References
----------
Cohen (1960), Educational and Psychological Measurement 20, 37-46. Fleiss (1971), Psychological Bulletin 76, 378-382. Krippendorff
(2019), Content Analysis, 4th edition. McGraw and Wong (1996), Forming inferences about some intraclass correlation coefficients,
Psychological Methods 1, 30-46. Shrout and Fleiss (1979), Intraclass correlations, Psychological Bulletin 86, 420-428.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.core.occurrence import Occurrence
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.bootstrap import LEVEL, Resampled, confidence_interval, sample_weights, too_few
from ethobench.metrics.frames import accuracy, f1, kappa, kappa_all
from ethobench.metrics.label_mismatches import label_notes

if TYPE_CHECKING:
    import pandas as pd

Recordings: TypeAlias = Mapping[str, Mapping[str, Annotation]]
ALL_BEHAVIORS = ""
PAIR_METRICS = ("kappa", "f1", "agreement")


@dataclass(frozen=True)
class Agreement:
    """Agreement of annotators, as `agreement` returns it.

    Attributes
    ----------
    annotators, behaviors : tuple of str
    pairs : list of dict
        For each pair of annotators and each behavior (empty name: all together): kappa, f1, agreement (share of equal frames), frames;
        and the ends of 95 % intervals, such as ``kappa_low`` and ``kappa_high``, which are None where the interval is withheld.
    recordings : list of dict
        The same for each recording, without intervals.
    fleiss, alpha : dict of str to float
        Fleiss' kappa and Krippendorff's alpha by behavior (empty name: all together).
    icc_count, icc_duration : dict of str to float
        Intraclass correlation of bout counts and of total durations over recordings; NaN with fewer than two.
    intervals : dict
        ``fleiss``, ``alpha``, ``icc_count`` and ``icc_duration`` have the 95 % interval of each behavior, ``(low, high)`` or None. ``n``
        is the number of individuals, or of recordings (``unit``); ``reason`` states why there are no intervals at all, or is None.
    never_annotated : tuple of str
        The behaviors that no annotator marked.
    notes : tuple of Note
        Labels that only some annotators use: probably different names of the same behaviors.
    """

    annotators: tuple[str, ...]
    behaviors: tuple[str, ...]
    pairs: list[dict[str, Any]]
    recordings: list[dict[str, Any]]
    fleiss: dict[str, float]
    alpha: dict[str, float]
    icc_count: dict[str, float]
    icc_duration: dict[str, float]
    intervals: dict[str, Any]
    never_annotated: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def table(self, *, recordings: bool = False) -> pd.DataFrame:
        """Return the pairwise scores as a table.

        Parameters
        ----------
        recordings : bool
            Add the scores of each recording. The column ``recording`` is empty for those of all recordings together.
        """
        import pandas as pd

        return pd.DataFrame([*({"recording": "", **row} for row in self.pairs), *self.recordings] if recordings else self.pairs)

    @property
    def interval_note(self) -> str:
        """What intervals are based on, or why there are none; to print once with a table."""
        n, unit, reason = (self.intervals[key] for key in ("n", "unit", "reason"))
        return f"n = {n} {unit if n != 1 else unit.removesuffix('s')}; {reason or f'95 % intervals over {unit}'}"

    def kappa(self, first: str, second: str, behavior: str = ALL_BEHAVIORS) -> float:
        """Return Cohen's kappa of two annotators; of all behaviors together unless one is named."""
        for row in self.pairs:
            if {row["annotator_1"], row["annotator_2"]} == {first, second} and row["behavior"] == behavior:
                return float(row["kappa"])
        scope = repr(behavior) if behavior else "all behaviors together (undefined with a tolerance, or if behaviors overlap)"
        raise EthobenchError(f"no kappa of {first!r} and {second!r} for {scope}")

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as plain values for JSON; undefined ones are None."""
        by_behavior = {"fleiss": self.fleiss, "alpha": self.alpha, "icc_count": self.icc_count, "icc_duration": self.icc_duration}
        return {
            "annotators": list(self.annotators),
            "behaviors": list(self.behaviors),
            "pairs": [{k: _plain(v) for k, v in row.items()} for row in self.pairs],
            "recordings": [{k: _plain(v) for k, v in row.items()} for row in self.recordings],
            **{name: {behavior or "all": _plain(value) for behavior, value in values.items()} for name, values in by_behavior.items()},
            "intervals": {
                key: {behavior or "all": ends and list(ends) for behavior, ends in value.items()} if isinstance(value, dict) else value
                for key, value in self.intervals.items()
            },
            "never_annotated": list(self.never_annotated),
            "notes": [str(note) for note in self.notes],
        }


def agreement(
    annotations: Mapping[str, Annotation] | Recordings | Dataset,
    *,
    tolerance: float = 0.0,
    behaviors: Sequence[str] | None = None,
    individuals: Mapping[str, str] | None = None,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Measure how well several annotators agree.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators to annotations of one recording; or recordings to such mappings; or a Dataset.
    tolerance : float
        Seconds around starts and stops that do not count.
    behaviors : sequence of str, optional
        Only these behaviors; frames with others count as without behavior. All by default.
    individuals : mapping, optional
        Recordings to individuals, over which intervals are computed; those of a Dataset by default, else each recording is one.
    resamples, seed : int
        Number of bootstrap resamples for intervals, and the seed of their random draw.

    See Also
    --------
    ceiling : compare a model with the agreement of annotators.
    consensus : majority vote of annotators.

    Examples
    --------
    >>> a, b = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1, 1], [0, 1, 1, 1]))
    >>> result = agreement({"ann1": a, "ann2": b})
    >>> round(result.kappa("ann1", "ann2"), 3), result.interval_note
    (0.5, 'n = 1 recording; no interval below 5 recordings')
    """
    if not np.isfinite(tolerance) or tolerance < 0:
        raise EthobenchError(f"`tolerance` must be a number of seconds >= 0, got {tolerance!r}")
    recordings = as_recordings(annotations)
    if isinstance(annotations, Dataset):
        individuals = annotations.groups()
    names = tuple(dict.fromkeys(name for group in recordings.values() for name in group))
    if len(names) < 2:
        raise EthobenchError(f"agreement needs at least two annotators of the same recording, got {len(names)}")
    for group in recordings.values():
        _check_group(group)
    groups, ethogram = _in_one_ethogram(recordings, behaviors)
    scored = [code for code in range(len(ethogram)) if not ethogram[code].point]
    sample = _Sample.of({rec: (individuals or {}).get(rec, rec) for rec, group in groups.items() if len(group) > 1}, resamples, seed)
    pairs: list[dict[str, Any]] = []
    by_recording: list[dict[str, Any]] = []
    for first, second in combinations(names, 2):
        counts = _pair_counts(groups, sample.recordings, first, second, scored, tolerance)
        if counts is not None:
            labels = {code: ethogram[code].name if code is not None else ALL_BEHAVIORS for code in counts}
            pairs += [_pair_row(first, second, labels[code], statistics, sample) for code, statistics in counts.items()]
            by_recording += _recording_rows(first, second, {labels[code]: s for code, s in counts.items()}, groups, sample.recordings)
    several = [list(groups[name].values()) for name in sample.recordings]
    cells: dict[str, list[tuple[Array, Array]]] = {
        ethogram[code].name: [_binary_cells(group, code, tolerance) for group in several] for code in scored
    }
    if tolerance == 0 and all(a.without_subjects().is_exclusive for group in several for a in group):
        cells[ALL_BEHAVIORS] = [_nominal_cells(group) for group in several]
    matrices = {
        name: {ethogram[code].name: _matrix([groups[r] for r in sample.recordings], names, code, durations=is_duration) for code in scored}
        for name, is_duration in (("icc_count", False), ("icc_duration", True))
    }
    intervals: dict[str, Any] = {
        "level": LEVEL,
        "n": len(sample.membership),
        "unit": sample.unit,
        "reason": sample.reason or None,
        "fleiss": {name: _fleiss_interval(pieces, sample) for name, pieces in cells.items()},
        "alpha": {name: _alpha_interval(pieces, sample) for name, pieces in cells.items()},
        **{
            name: {b: icc_interval(table) if sample.are_independent else None for b, table in tables.items()}
            for name, tables in matrices.items()
        },
    }
    return Agreement(
        names,
        tuple(ethogram[code].name for code in scored),
        pairs,
        by_recording,
        {name: fleiss(*_stack(pieces)) for name, pieces in cells.items()},
        {name: krippendorff(*_stack(pieces)) for name, pieces in cells.items()},
        {name: icc(table) for name, table in matrices["icc_count"].items()},
        {name: icc(table) for name, table in matrices["icc_duration"].items()},
        intervals,
        tuple(
            n for n in Occurrence.count(ethogram, (a for g in groups.values() for a in g.values())).never_annotated if not ethogram[n].point
        ),
        tuple(label_notes(recordings)),
    )


def _in_one_ethogram(recordings: Recordings, behaviors: Sequence[str] | None) -> tuple[dict[str, dict[str, Annotation]], Ethogram]:
    """Return the annotations in the ethogram of all behaviors, or of the chosen ones."""
    ethogram = Ethogram([])
    for annotation in (a for group in recordings.values() for a in group.values()):
        ethogram = ethogram.join(annotation.ethogram)
    if behaviors is not None:
        unknown = [name for name in behaviors if name not in ethogram]
        if unknown or not behaviors:
            raise NotFoundError(f"no behavior {', '.join(map(repr, unknown))}. Available: {', '.join(ethogram.names)}")
        ethogram = ethogram.restrict([name for name in ethogram.names if name in behaviors])

    def convert(annotation: Annotation) -> Annotation:
        chosen = annotation if behaviors is None else annotation.restrict([n for n in annotation.ethogram.names if n in ethogram])
        return chosen.with_ethogram(ethogram)

    return {name: {who: convert(a) for who, a in group.items()} for name, group in recordings.items()}, ethogram


def as_recordings(annotations: Mapping[str, Annotation] | Recordings | Dataset) -> dict[str, dict[str, Annotation]]:
    """Return annotations by recording and annotator, for one recording, several, or a dataset."""
    if isinstance(annotations, Dataset):
        return {r.id: dict(r.annotations) for r in annotations if len(r.annotations) > 1}
    if all(isinstance(value, Annotation) for value in annotations.values()):
        return {"recording": {str(k): v for k, v in annotations.items() if isinstance(v, Annotation)}}
    groups: dict[str, dict[str, Annotation]] = {}
    for name, group in annotations.items():
        if not isinstance(group, Mapping) or not all(isinstance(a, Annotation) for a in group.values()):
            raise EthobenchError(f"recording {name!r}: expected a mapping of annotators to annotations")
        groups[name] = dict(group)
    return groups


def fleiss(lengths: Array, counts: Array) -> float:
    """Return Fleiss' kappa of the frames that all annotators observed.

    Parameters
    ----------
    lengths : array (n,)
        Number of frames in each interval of constant labels.
    counts : array (n, n_categories)
        Number of annotators who chose each category there.
    """
    most = int(counts.sum(axis=1).max(initial=0))
    return float(_fleiss_value(_fleiss_sums(lengths, counts, most), most))


def _fleiss_sums(lengths: Array, counts: Array, most: int) -> Array:
    """Return frames, agreeing shares summed over frames, and choices of each category, where `most` annotators observed."""
    keep = (counts.sum(axis=1) == most) & (most > 1)
    lengths, counts = lengths[keep], counts[keep]
    agreed = ((counts**2).sum(axis=1) - most) / max(most * (most - 1), 1)
    return np.array([lengths.sum(), (lengths * agreed).sum(), *(lengths[:, None] * counts).sum(axis=0)])


def _fleiss_value(s: Array, most: int) -> Array:
    total = s[..., 0]
    chance = (ratio(s[..., 2:], (total * most)[..., None]) ** 2).sum(axis=-1)
    return ratio(ratio(s[..., 1], total) - chance, 1 - chance)


def krippendorff(lengths: Array, counts: Array) -> float:
    """Return Krippendorff's alpha (nominal) of the frames that at least two annotators observed; parameters as in `fleiss`."""
    return float(_alpha_value(_alpha_sums(lengths, counts)))


def _alpha_sums(lengths: Array, counts: Array) -> Array:
    """Return agreeing pairs of values, and values of each category."""
    raters = counts.sum(axis=1)
    keep = raters > 1
    lengths, counts, raters = lengths[keep], counts[keep], raters[keep]
    agreeing = (lengths * (counts * (counts - 1)).sum(axis=1) / (raters - 1)).sum()
    return np.array([agreeing, *(lengths[:, None] * counts).sum(axis=0)])


def _alpha_value(s: Array) -> Array:
    values, total = s[..., 1:], s[..., 1:].sum(axis=-1)
    expected = ratio(total**2 - (values**2).sum(axis=-1), total - 1)
    return np.where(total > 0, 1 - ratio(total - s[..., 0], expected), np.nan)


def icc(table: Array) -> float:
    """Return ICC(2,1) of a table of recordings by annotators; NaN with fewer than two of either, or no variation at all."""
    n, k, rows, columns, error = _mean_squares(table)
    if np.isnan(error):
        return float("nan")
    return float(ratio(np.asarray(rows - error), np.asarray(rows + (k - 1) * error + k * (columns - error) / n)))


def icc_interval(table: Array) -> tuple[float, float] | None:
    """Return the 95 % interval of ICC(2,1) over recordings by the F distribution (McGraw and Wong 1996); None if it is withheld.

    >>> ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> low, high = icc_interval(ratings.astype(float))
    >>> round(icc(ratings.astype(float)), 2), round(low, 2), round(high, 2)
    (0.29, 0.02, 0.76)
    """
    from scipy.special import fdtri

    n, k, rows, columns, error = _mean_squares(table)
    value = icc(table)
    if too_few(n) or not np.isfinite(value) or value >= 1 or error <= 0:
        return None
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    freedom = (a * columns + b * error) ** 2 / ((a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1)))
    lower, upper = fdtri(n - 1, freedom, (1 + LEVEL) / 2), fdtri(freedom, n - 1, (1 + LEVEL) / 2)
    others = k * columns + (k * n - k - n) * error
    low = n * (rows - lower * error) / (lower * others + n * rows)
    high = n * (upper * rows - error) / (others + n * upper * rows)
    return (float(low), float(high)) if low <= high else None


def _mean_squares(table: Array) -> tuple[int, int, float, float, float]:
    """Return the number of rows and columns, and the mean squares between rows, between columns and of the error."""
    table = table[~np.isnan(table).any(axis=1)]
    n, k = table.shape
    if n < 2 or k < 2:
        return n, k, np.nan, np.nan, np.nan
    grand = table.mean()
    rows = k * ((table.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    columns = n * ((table.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + grand
    return n, k, float(rows), float(columns), float((residuals**2).sum() / ((n - 1) * (k - 1)))


@dataclass(frozen=True)
class _Sample:
    """The recordings with several annotators, and resamples of their individuals.

    Attributes
    ----------
    recordings : tuple of str
    membership : array (n_individuals, n_recordings)
    weights : array (n_samples, n_individuals)
        Bootstrap resamples, then the jackknife; empty if there are too few individuals.
    unit : {"individuals", "recordings"}
    """

    recordings: tuple[str, ...]
    membership: Array
    weights: Array
    unit: str

    @classmethod
    def of(cls, individuals: Mapping[str, str], resamples: int, seed: int) -> _Sample:
        names = list(dict.fromkeys(individuals.values()))
        membership = np.zeros((len(names), len(individuals)))
        for column, owner in enumerate(individuals.values()):
            membership[names.index(owner), column] = 1
        is_resampled = resamples > 0 and not too_few(len(names))
        weights = sample_weights(len(names), resamples, seed) if is_resampled else np.empty((0, len(names)))
        unit = "recordings" if all(name == owner for name, owner in individuals.items()) else "individuals"
        return cls(tuple(individuals), membership, weights, unit)

    @property
    def are_independent(self) -> bool:
        """Whether each recording is of another individual."""
        return len(self.recordings) == len(self.membership)

    @property
    def reason(self) -> str:
        """Why there are no intervals; empty if there are."""
        return too_few(len(self.membership), self.unit) or ("" if len(self.weights) else "computed without resampling")

    def interval(
        self, value: Callable[[Array], Array], statistics: Array, bounds: tuple[float, float] = (-1.0, 1.0)
    ) -> tuple[float, float] | None:
        """Return the interval of a statistic, a function of sums over recordings; None if it is withheld.

        Parameters
        ----------
        value : callable
            Returns values (n_samples,) of sums (n_samples, ...).
        statistics : array (n_recordings, ...)
        bounds : (float, float)
            Smallest and largest possible value.
        """
        if not len(self.weights):
            return None
        flat = self.membership @ statistics.reshape(len(statistics), -1)
        shape = statistics.shape[1:]
        n = int(np.isfinite(value(flat.reshape(-1, *shape))).sum())
        resampled = value((self.weights @ flat).reshape(-1, *shape))
        n_bootstrap = len(self.weights) - len(self.membership)
        low, high = confidence_interval(
            value(flat.sum(axis=0).reshape(1, *shape))[0],
            Resampled(resampled[:n_bootstrap], resampled[n_bootstrap:]),
            n,
            bounds,
            on_logit=True,
        )
        return (float(low), float(high)) if low <= high else None


def _pair_counts(
    groups: Recordings, recordings: Sequence[str], first: str, second: str, scored: Sequence[int], tolerance: float
) -> dict[int | None, Array] | None:
    """Count the frames of two annotators by recording; None if they share no recording.

    Returns
    -------
    dict
        Codes of behaviors to arrays (n_recordings, 4): both, second only, first only, neither. None, all behaviors together, to
        arrays (n_recordings, n, n) of frames by behavior, if behaviors exclude each other and there is no tolerance. Zeros where one of the
        annotators is missing.
    """
    both = {k: groups[name] for k, name in enumerate(recordings) if first in groups[name] and second in groups[name]}
    if not both:
        return None
    counts: dict[int | None, Array] = {}
    for code in scored:
        counts[code] = np.zeros((len(recordings), 4))
        for k, group in both.items():
            lengths, cells = _pair_cells(group[first], group[second], code, tolerance)
            counts[code][k] = (lengths[:, None] * cells).sum(axis=0)
    if tolerance == 0 and all(group[name].without_subjects().is_exclusive for group in both.values() for name in (first, second)):
        size = len(next(iter(both.values()))[first].ethogram) + 1
        counts[None] = np.zeros((len(recordings), size, size))
        for k, group in both.items():
            lengths, codes, observed = _codes([group[first], group[second]])
            shared = observed.all(axis=1)
            np.add.at(counts[None][k], (codes[shared, 0], codes[shared, 1]), lengths[shared])
    return counts


def _pair_metrics(statistics: Array) -> dict[str, tuple[Callable[[Array], Array], tuple[float, float]]]:
    """Return the metrics of two annotators by name, each with its bounds."""
    if statistics.ndim > 2:
        return {"kappa": (kappa_all, (-1.0, 1.0)), "agreement": (accuracy, (0.0, 1.0))}
    return {"kappa": (kappa, (-1.0, 1.0)), "f1": (f1, (0.0, 1.0)), "agreement": (_equal_frames, (0.0, 1.0))}


def _equal_frames(s: Array) -> Array:
    return ratio(s[..., 0] + s[..., 3], s.sum(axis=-1))


def _pair_values(first: str, second: str, behavior: str, statistics: Array, total: Array) -> dict[str, Any]:
    metrics = _pair_metrics(statistics)
    values = {name: float(metrics[name][0](total)) if name in metrics else float("nan") for name in PAIR_METRICS}
    return {"annotator_1": first, "annotator_2": second, "behavior": behavior, **values, "frames": int(total.sum())}


def _pair_row(first: str, second: str, behavior: str, statistics: Array, sample: _Sample) -> dict[str, Any]:
    row = _pair_values(first, second, behavior, statistics, statistics.sum(axis=0))
    metrics = _pair_metrics(statistics)
    for name in PAIR_METRICS:
        ends = sample.interval(metrics[name][0], statistics, metrics[name][1]) if name in metrics else None
        row[f"{name}_low"], row[f"{name}_high"] = ends or (None, None)
    return row


def _recording_rows(
    first: str, second: str, counts: Mapping[str, Array], groups: Recordings, recordings: Sequence[str]
) -> list[dict[str, Any]]:
    return [
        {"recording": name, **_pair_values(first, second, behavior, statistics, statistics[k])}
        for k, name in enumerate(recordings)
        if {first, second} <= {*groups[name]}
        for behavior, statistics in counts.items()
    ]


def _fleiss_interval(pieces: Sequence[tuple[Array, Array]], sample: _Sample) -> tuple[float, float] | None:
    most = max((int(counts.sum(axis=1).max(initial=0)) for _, counts in pieces), default=0)
    statistics = np.stack([_fleiss_sums(lengths, counts, most) for lengths, counts in pieces]) if pieces else np.zeros((0, 4))
    return sample.interval(lambda sums: _fleiss_value(sums, most), statistics)


def _alpha_interval(pieces: Sequence[tuple[Array, Array]], sample: _Sample) -> tuple[float, float] | None:
    statistics = np.stack([_alpha_sums(lengths, counts) for lengths, counts in pieces]) if pieces else np.zeros((0, 3))
    return sample.interval(_alpha_value, statistics)


def _spans_and_observed(annotations: Sequence[Annotation], code: int, tolerance: float) -> tuple[list[Intervals], list[Intervals]]:
    """Return the frames with the behavior and the observed frames of each annotator, the latter without those near starts and stops."""
    name = annotations[0].ethogram[code].name
    spans = [_spans(a, code) for a in annotations]
    observed = [a.observed.of(name) for a in annotations]
    if tolerance > 0:
        width = round(tolerance * annotations[0].rate)
        boundaries = np.concatenate([np.concatenate((s.start, s.stop)) for s in spans])
        excluded = iv.union(iv.clip(iv.intervals(boundaries - width, boundaries + width), 0, annotations[0].n_frames))
        observed = [iv.difference(o, excluded) for o in observed]
    return spans, observed


def _spans(annotation: Annotation, code: int) -> Intervals:
    """Return the frames of a behavior; frames without any bout are background."""
    spans = iv.union(annotation.spans(code))
    if code == annotation.ethogram.background:
        everything = iv.union(Intervals(annotation.start, annotation.stop))
        spans = iv.union_all([spans, iv.complement(everything, annotation.n_frames)])
    return spans


def _binary_cells(annotations: Sequence[Annotation], code: int, tolerance: float) -> tuple[Array, Array]:
    """Split time wherever any annotator changes; count the annotators with the behavior, and those who observed and lack it."""
    spans, observed = _spans_and_observed(annotations, code, tolerance)
    lengths, inside = _split(annotations[0].n_frames, [*spans, *observed])
    k = len(annotations)
    positive = (inside[:, :k] & inside[:, k:]).sum(axis=1)
    return lengths, np.stack([positive, inside[:, k:].sum(axis=1) - positive], axis=1).astype(float)


def _pair_cells(a: Annotation, b: Annotation, code: int, tolerance: float) -> tuple[Array, Array]:
    """Split time for two annotators; mark both, second only, first only, neither, in frames that both observed."""
    spans, observed = _spans_and_observed([a, b], code, tolerance)
    lengths, inside = _split(a.n_frames, [*spans, *observed])
    first, second, by_both = inside[:, 0], inside[:, 1], inside[:, 2] & inside[:, 3]
    kinds = [first & second, ~first & second, first & ~second, ~first & ~second]
    return lengths, np.stack([kind & by_both for kind in kinds], axis=1).astype(float)


def _nominal_cells(annotations: Sequence[Annotation]) -> tuple[Array, Array]:
    """Split time wherever any annotator changes; count the annotators who chose each behavior, or none (last column)."""
    lengths, codes, observed = _codes(annotations)
    size = len(annotations[0].ethogram) + 1
    counts = np.zeros((len(lengths), size))
    for column in range(codes.shape[1]):
        np.add.at(counts, (np.flatnonzero(observed[:, column]), codes[observed[:, column], column]), 1)
    return lengths, counts


def _codes(annotations: Sequence[Annotation]) -> tuple[Array, Any, Any]:
    """Split time wherever any annotator changes; return the lengths, each annotator's code, and whether each observed."""
    ethogram = annotations[0].ethogram
    spans = [[_spans(a, code) for code in range(len(ethogram))] for a in annotations]
    observed = [a.observed.of_all(ethogram.names) for a in annotations]
    lengths, inside = _split(annotations[0].n_frames, [*chain.from_iterable(spans), *observed])
    k, size = len(annotations), len(ethogram)
    active = inside[:, : k * size].reshape(-1, k, size)
    codes = np.where(active.any(axis=2), active.argmax(axis=2), size)
    return lengths, codes, inside[:, k * size :]


def _split(n_frames: int, sets: Sequence[Intervals]) -> tuple[Array, Any]:
    """Split time at all starts and stops; return the lengths of the pieces, and which of the sets cover each."""
    bounds = iv.boundaries(np.array([0, n_frames]), *(b for s in sets for b in s))
    bounds = bounds[(bounds >= 0) & (bounds <= n_frames)]
    inside = np.stack([np.diff(iv.covered_before(s, bounds)) > 0 for s in sets], axis=1)
    return np.diff(bounds).astype(float), inside


def _stack(cells: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Concatenate the lengths and counts of several recordings."""
    if not cells:
        return np.zeros(0), np.zeros((0, 2))
    return np.concatenate([lengths for lengths, _ in cells]), np.concatenate([counts for _, counts in cells])


def _matrix(groups: Sequence[Mapping[str, Annotation]], names: Sequence[str], code: int, *, durations: bool) -> Array:
    """Return bout counts or total durations (seconds) of recordings (rows) by annotator (columns), in frames that all observed."""
    rows = []
    for group in groups:
        row = []
        observed = iv.full(next(iter(group.values())).n_frames)
        for side in group.values():
            observed = iv.intersection(observed, side.observed.of(side.ethogram[code].name))
        for name in names:
            spans = iv.intersection(_spans(group[name], code), observed) if name in group else None
            value = np.nan if spans is None else iv.total(spans) / group[name].rate if durations else len(spans.start)
            row.append(value)
        rows.append(row)
    return np.array(rows, dtype=float).reshape(-1, len(names))


def _check_group(group: Mapping[str, Annotation]) -> None:
    sides = list(group.items())
    for name, side in sides[1:]:
        first, reference = sides[0]
        if (side.rate, side.n_frames) != (reference.rate, reference.n_frames):
            raise MismatchError(f"{name!r} has {side!r}, but {first!r} {reference!r}; resample, crop or extend one of them first")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
