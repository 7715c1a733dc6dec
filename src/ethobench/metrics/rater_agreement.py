"""Agreement of several annotators: Cohen's kappa, Fleiss' kappa, Krippendorff's alpha, intraclass correlation.

Conventions
-----------
A frame counts if both (Cohen), all (Fleiss) or at least two (Krippendorff) annotators observed it. Each behavior is a separate
binary problem; "all behaviors" is one nominal variable and requires that behaviors exclude each other. With a tolerance, frames within
that many seconds of any annotator's start or stop of the behavior do not count, and there are no scores of all behaviors. Subjects
are pooled. The intraclass correlation is ICC(2,1), two-way random effects, absolute agreement of a single annotator, over
recordings, in the frames that all annotators observed.

References
----------
Cohen (1960), Educational and Psychological Measurement 20, 37-46. Fleiss (1971), Psychological Bulletin 76, 378-382. Krippendorff
(2019), Content Analysis, 4th edition. Shrout and Fleiss (1979), Intraclass correlations, Psychological Bulletin 86, 420-428.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.intervals import Intervals
from ethobench.core.occurrence import Occurrence
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.frames import f1, kappa, kappa_all
from ethobench.metrics.label_mismatches import label_notes

if TYPE_CHECKING:
    import pandas as pd

Recordings: TypeAlias = Mapping[str, Mapping[str, Annotation]]
ALL_BEHAVIORS = ""


@dataclass(frozen=True)
class Agreement:
    """Agreement of annotators, as `agreement` returns it.

    Attributes
    ----------
    annotators, behaviors : tuple of str
    pairs : list of dict
        For each pair of annotators and each behavior (empty name: all together): kappa, f1, agreement (share of equal frames), frames.
    fleiss, alpha : dict of str to float
        Fleiss' kappa and Krippendorff's alpha by behavior (empty name: all together).
    icc_count, icc_duration : dict of str to float
        Intraclass correlation of bout counts and of total durations over recordings; NaN with fewer than two.
    never_annotated : tuple of str
        The behaviors that no annotator marked.
    notes : tuple of Note
        Labels that only some annotators use: probably different names of the same behaviors.
    """

    annotators: tuple[str, ...]
    behaviors: tuple[str, ...]
    pairs: list[dict[str, Any]]
    fleiss: dict[str, float]
    alpha: dict[str, float]
    icc_count: dict[str, float]
    icc_duration: dict[str, float]
    never_annotated: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def table(self) -> pd.DataFrame:
        """Return the pairwise scores as a table."""
        import pandas as pd

        return pd.DataFrame(self.pairs)

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
            **{name: {behavior or "all": _plain(value) for behavior, value in values.items()} for name, values in by_behavior.items()},
            "never_annotated": list(self.never_annotated),
            "notes": [str(note) for note in self.notes],
        }


def agreement(annotations: Mapping[str, Annotation] | Recordings | Dataset, *, tolerance: float = 0.0) -> Agreement:
    """Measure how well several annotators agree.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators to annotations of one recording; or recordings to such mappings; or a Dataset.
    tolerance : float
        Seconds around starts and stops that do not count.

    See Also
    --------
    ceiling : compare a model with the agreement of annotators.
    consensus : majority vote of annotators.

    Examples
    --------
    >>> a, b = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1, 1], [0, 1, 1, 1]))
    >>> round(agreement({"ann1": a, "ann2": b}).kappa("ann1", "ann2"), 3)
    0.5
    """
    if not np.isfinite(tolerance) or tolerance < 0:
        raise EthobenchError(f"`tolerance` must be a number of seconds >= 0, got {tolerance!r}")
    recordings = as_recordings(annotations)
    names = tuple(dict.fromkeys(name for group in recordings.values() for name in group))
    if len(names) < 2:
        raise EthobenchError(f"agreement needs at least two annotators of the same recording, got {len(names)}")
    ethogram = Ethogram([])
    for group in recordings.values():
        _check_group(group)
        for annotation in group.values():
            ethogram = ethogram.join(annotation.ethogram)
    groups = [{n: a.with_ethogram(ethogram) for n, a in group.items()} for group in recordings.values()]
    scored = [code for code in range(len(ethogram)) if not ethogram[code].point]
    pairs: list[dict[str, Any]] = []
    for first, second in combinations(names, 2):
        both = [g for g in groups if first in g and second in g]
        if both:
            pairs += _pair_rows(first, second, both, ethogram, scored, tolerance)
    fleiss_of, alpha_of = {}, {}
    for code in scored:
        lengths, counts = _stack([_binary_cells(list(g.values()), code, tolerance) for g in groups if len(g) > 1])
        fleiss_of[ethogram[code].name] = fleiss(lengths, counts)
        alpha_of[ethogram[code].name] = krippendorff(lengths, counts)
    if tolerance == 0 and all(a.without_subjects().is_exclusive for g in groups for a in g.values()):
        lengths, counts = _stack([_nominal_cells(list(g.values())) for g in groups if len(g) > 1])
        fleiss_of[ALL_BEHAVIORS], alpha_of[ALL_BEHAVIORS] = fleiss(lengths, counts), krippendorff(lengths, counts)
    return Agreement(
        names,
        tuple(ethogram[code].name for code in scored),
        pairs,
        fleiss_of,
        alpha_of,
        {ethogram[code].name: icc(_matrix(groups, names, code, durations=False)) for code in scored},
        {ethogram[code].name: icc(_matrix(groups, names, code, durations=True)) for code in scored},
        tuple(n for n in Occurrence.count(ethogram, (a for g in groups for a in g.values())).never_annotated if not ethogram[n].point),
        tuple(label_notes(recordings)),
    )


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
    raters = counts.sum(axis=1)
    most = raters.max(initial=0)
    keep = (raters == most) & (most > 1)
    lengths, counts = lengths[keep], counts[keep]
    total = lengths.sum()
    if total == 0:
        return float("nan")
    agreed = ((counts**2).sum(axis=1) - most) / (most * (most - 1))
    share = (lengths[:, None] * counts).sum(axis=0) / (total * most)
    chance = (share**2).sum()
    return float(ratio(np.asarray((lengths * agreed).sum() / total - chance), np.asarray(1 - chance)))


def krippendorff(lengths: Array, counts: Array) -> float:
    """Return Krippendorff's alpha (nominal) of the frames that at least two annotators observed; parameters as in `fleiss`."""
    raters = counts.sum(axis=1)
    keep = raters > 1
    lengths, counts, raters = lengths[keep], counts[keep], raters[keep]
    values = (lengths[:, None] * counts).sum(axis=0)
    total = values.sum()
    if total == 0:
        return float("nan")
    agreeing = (lengths * (counts * (counts - 1)).sum(axis=1) / (raters - 1)).sum()
    observed = total - agreeing
    expected = (total**2 - (values**2).sum()) / (total - 1)
    return float(1 - ratio(np.asarray(observed), np.asarray(expected)))


def icc(table: Array) -> float:
    """Return ICC(2,1) of a table of recordings by annotators; NaN with fewer than two of either, or no variation at all."""
    table = table[~np.isnan(table).any(axis=1)]
    n, k = table.shape
    if n < 2 or k < 2:
        return float("nan")
    grand = table.mean()
    between_rows = k * ((table.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    between_columns = n * ((table.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + grand
    error = (residuals**2).sum() / ((n - 1) * (k - 1))
    return float(ratio(np.asarray(between_rows - error), np.asarray(between_rows + (k - 1) * error + k * (between_columns - error) / n)))


def _pair_rows(
    first: str, second: str, groups: Sequence[Mapping[str, Annotation]], ethogram: Ethogram, scored: Sequence[int], tolerance: float
) -> list[dict[str, Any]]:
    rows = []
    for code in scored:
        lengths, counts = _stack([_pair_cells(g[first], g[second], code, tolerance) for g in groups])
        tp, fp, fn, tn = (float((lengths * counts[:, k]).sum()) for k in range(4))
        rows.append(_row(first, second, ethogram[code].name, np.array([tp, fp, fn, tn])))
    exclusive = all(g[n].without_subjects().is_exclusive for g in groups for n in (first, second))
    if exclusive and tolerance == 0:
        size = len(ethogram) + 1
        table = np.zeros((size, size))
        for group in groups:
            lengths, codes, observed = _codes([group[first], group[second]])
            both = observed.all(axis=1)
            np.add.at(table, (codes[both, 0], codes[both, 1]), lengths[both])
        total = table.sum()
        rows.append(
            {
                "annotator_1": first,
                "annotator_2": second,
                "behavior": ALL_BEHAVIORS,
                "kappa": float(kappa_all(table)),
                "f1": float("nan"),
                "agreement": float(np.trace(table) / total) if total else float("nan"),
                "frames": int(total),
            }
        )
    return rows


def _row(first: str, second: str, behavior: str, counts: Array) -> dict[str, Any]:
    total = counts.sum()
    return {
        "annotator_1": first,
        "annotator_2": second,
        "behavior": behavior,
        "kappa": float(kappa(counts)),
        "f1": float(f1(counts)),
        "agreement": float((counts[0] + counts[3]) / total) if total else float("nan"),
        "frames": int(total),
    }


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
    return np.array(rows, dtype=float)


def _check_group(group: Mapping[str, Annotation]) -> None:
    sides = list(group.items())
    for name, side in sides[1:]:
        first, reference = sides[0]
        if (side.rate, side.n_frames) != (reference.rate, reference.n_frames):
            raise MismatchError(f"{name!r} has {side!r}, but {first!r} {reference!r}; resample, crop or extend one of them first")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
