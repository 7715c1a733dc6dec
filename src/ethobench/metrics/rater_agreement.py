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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ethobench.core import Annotation, Dataset, Ethogram
from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.occurrence import Occurrence
from ethobench.core.wording import count_units
from ethobench.metrics.agreement_coefficients import fleiss, icc, icc_interval, krippendorff
from ethobench.metrics.agreement_counts import binary_cells, nominal_cells, pair_counts, recording_totals, stack_cells
from ethobench.metrics.agreement_intervals import AnnotatedSample, alpha_interval, fleiss_interval
from ethobench.metrics.annotator_inputs import Recordings, convert_annotator_arrays, in_one_ethogram
from ethobench.metrics.array_inputs import as_ethogram
from ethobench.metrics.base import Array, ratio
from ethobench.metrics.bootstrap import LEVEL
from ethobench.metrics.frames import accuracy, f1, kappa, kappa_all
from ethobench.metrics.label_mismatches import label_notes

if TYPE_CHECKING:
    import pandas as pd

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
        return f"n = {count_units(n, unit)}; {reason or f'95 % intervals over {unit}'}"

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
    annotations: Mapping[str, Annotation | ArrayLike] | Mapping[str, Mapping[str, Annotation | ArrayLike]] | Dataset,
    *,
    tolerance: float = 0.0,
    behaviors: Ethogram | Iterable[str] | str | None = None,
    individuals: Mapping[str, str] | None = None,
    resamples: int = 2_000,
    seed: int = 0,
    rate: float | None = None,
) -> Agreement:
    """Measure how well several annotators agree.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators to annotations of one recording; or recordings to such mappings; or a Dataset.

        Any annotation may be an array, list, pandas Series or DataFrame with one row for each frame: integer codes or names of behaviors
        ``(n_frames,)``, or 0 and 1 ``(n_frames, n_behaviors)``. -1, NaN and None (in all columns) are unobserved frames, and empty text
        is a frame without behavior. The columns of a DataFrame are behaviors.
    tolerance : float
        Seconds around starts and stops that do not count.
    behaviors : iterable of str or Ethogram, optional
        Only these behaviors; frames with others count as without behavior. All by default. For arrays of codes, or of 0 and 1: the names,
        in the order of codes or columns.
    individuals : mapping, optional
        Recordings to individuals, over which intervals are computed; those of a Dataset by default, else each recording is one.
    resamples, seed : int
        Number of bootstrap resamples for intervals, and the seed of their random draw.
    rate : float, optional
        Frames per second of arrays. Default: that of another annotation of the recording.

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

    Arrays need a frame rate, and the names of their codes or columns:

    >>> result = agreement({"anna": [0, 0, 1, 1], "ben": [0, 1, 1, 1], "carla": [0, 0, 1, -1]}, rate=10, behaviors=["rest", "run"])
    >>> round(result.kappa("anna", "ben"), 3), result.kappa("anna", "carla")
    (0.5, 1.0)
    >>> day1 = {"anna": ["rest", "rest", "run", ""], "ben": ["rest", "run", "run", ""]}
    >>> day2 = {"anna": ["rest", "run", "run", "run"], "ben": ["rest", "run", "run", "run"]}
    >>> result = agreement({"day1": day1, "day2": day2}, rate=10)
    >>> result.behaviors, [round(row["kappa"], 2) for row in result.recordings if row["behavior"] == "run"]
    (('rest', 'run'), [0.5, 1.0])
    """
    if not np.isfinite(tolerance) or tolerance < 0:
        raise EthobenchError(f"`tolerance` must be a number of seconds >= 0, got {tolerance!r}")
    chosen = as_ethogram(behaviors)
    recordings, _ = convert_annotator_arrays(annotations, rate=rate, behaviors=chosen)
    if isinstance(annotations, Dataset):
        individuals = annotations.groups()
    names = tuple(dict.fromkeys(name for group in recordings.values() for name in group))
    if len(names) < 2:
        raise EthobenchError(f"agreement needs at least two annotators of the same recording, got {len(names)}")
    for group in recordings.values():
        _check_group(group)
    groups, ethogram = in_one_ethogram(recordings, None if chosen is None else chosen.names)
    scored = [code for code in range(len(ethogram)) if not ethogram[code].point]
    owners = {name: (individuals or {}).get(name, name) for name, group in groups.items() if len(group) > 1}
    sample = AnnotatedSample.of(owners, resamples, seed)
    pairs, by_recording = _compare_pairs(groups, names, scored, tolerance, sample)
    resampled_groups = [groups[name] for name in sample.recordings]
    cells: dict[str, list[tuple[Array, Array]]] = {
        ethogram[code].name: [binary_cells([*group.values()], code, tolerance) for group in resampled_groups] for code in scored
    }
    if tolerance == 0 and all(a.without_subjects().is_exclusive for group in resampled_groups for a in group.values()):
        cells[ALL_BEHAVIORS] = [nominal_cells([*group.values()]) for group in resampled_groups]
    totals = {
        name: {ethogram[code].name: recording_totals(resampled_groups, names, code, durations=is_duration) for code in scored}
        for name, is_duration in (("icc_count", False), ("icc_duration", True))
    }
    occurrence = Occurrence.count(ethogram, (a for group in groups.values() for a in group.values()))
    return Agreement(
        names,
        tuple(ethogram[code].name for code in scored),
        pairs,
        by_recording,
        {name: fleiss(*stack_cells(pieces)) for name, pieces in cells.items()},
        {name: krippendorff(*stack_cells(pieces)) for name, pieces in cells.items()},
        {name: icc(table) for name, table in totals["icc_count"].items()},
        {name: icc(table) for name, table in totals["icc_duration"].items()},
        _intervals(cells, totals, sample),
        tuple(name for name in occurrence.never_annotated if not ethogram[name].point),
        tuple(label_notes(recordings)),
    )


def _compare_pairs(
    groups: Recordings, names: Sequence[str], scored: Sequence[int], tolerance: float, sample: AnnotatedSample
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of each pair of annotators, over all recordings and for each recording."""
    pairs: list[dict[str, Any]] = []
    by_recording: list[dict[str, Any]] = []
    for first, second in combinations(names, 2):
        counts = pair_counts(groups, sample.recordings, first, second, scored, tolerance)
        if counts is not None:
            ethogram = next(a.ethogram for group in groups.values() for a in group.values())
            labeled = {ALL_BEHAVIORS if code is None else ethogram[code].name: statistics for code, statistics in counts.items()}
            pairs += [_pair_row(first, second, behavior, statistics, sample) for behavior, statistics in labeled.items()]
            by_recording += _recording_rows(first, second, labeled, groups, sample.recordings)
    return pairs, by_recording


def _intervals(
    cells: Mapping[str, list[tuple[Array, Array]]], totals: Mapping[str, Mapping[str, Array]], sample: AnnotatedSample
) -> dict[str, Any]:
    """Return the intervals of the coefficients of all annotators, as in `Agreement.intervals`."""
    return {
        "level": LEVEL,
        "n": len(sample.membership),
        "unit": sample.unit,
        "reason": sample.reason or None,
        "fleiss": {name: fleiss_interval(pieces, sample) for name, pieces in cells.items()},
        "alpha": {name: alpha_interval(pieces, sample) for name, pieces in cells.items()},
        **{
            name: {behavior: icc_interval(table) if sample.are_independent else None for behavior, table in tables.items()}
            for name, tables in totals.items()
        },
    }


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


def _pair_row(first: str, second: str, behavior: str, statistics: Array, sample: AnnotatedSample) -> dict[str, Any]:
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


def _check_group(group: Mapping[str, Annotation]) -> None:
    sides = list(group.items())
    for name, side in sides[1:]:
        first, reference = sides[0]
        if (side.rate, side.n_frames) != (reference.rate, reference.n_frames):
            raise MismatchError(f"{name!r} has {side!r}, but {first!r} {reference!r}; resample, crop or extend one of them first")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
