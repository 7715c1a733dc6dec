"""Human ceiling: scores of a model against each annotator, compared with those of the annotators against each other.

References
----------
Comparison of a model with the agreement of annotators: Segalin et al. (2021), The Mouse Action Recognition System (MARS), eLife 10,
e63720.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ethobench.core import Annotation, Dataset, Ethogram, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import BoolArray
from ethobench.metrics.alignment import ALL, Unaligned, align
from ethobench.metrics.annotator_inputs import convert_annotator_arrays, in_one_ethogram
from ethobench.metrics.array_inputs import as_ethogram
from ethobench.metrics.base import Array, Measure
from ethobench.metrics.bootstrap import MIN_GROUPS, Resampled, confidence_interval, too_few
from ethobench.metrics.scores import Scores
from ethobench.metrics.scoring import score_pairs
from ethobench.metrics.suites import suites

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("f1", "kappa", "bout_f1", "so", "tp")


@dataclass(frozen=True)
class Ceiling:
    """Scores of a model against each annotator, beside those of the annotators against each other.

    Attributes
    ----------
    rows : list of dict
        For each annotator (empty: mean over them), behavior (empty: mean over them) and measure: ``human``, ``model``, their
        ``difference`` (model minus human) with ``low`` and ``high`` of its 95 % interval over ``n`` individuals, and ``reached``:
        False if the model is significantly worse. With fewer than five individuals all three are None, and ``reason`` states why.
    """

    rows: list[dict[str, Any]]

    def table(self) -> pd.DataFrame:
        """Return all rows as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def of(self, measure: str, behavior: str = "", annotator: str = "") -> dict[str, Any]:
        """Return the row of one measure."""
        for row in self.rows:
            if (row["measure"], row["behavior"], row["annotator"]) == (measure, behavior, annotator):
                return row
        raise EthobenchError(f"no row for measure {measure!r}, behavior {behavior!r} and annotator {annotator!r}")


def ceiling(
    annotations: Mapping[str, Annotation | ArrayLike] | Mapping[str, Mapping[str, Annotation | ArrayLike]] | Dataset,
    model: Annotation | Prediction | ArrayLike | Mapping[str, Annotation | Prediction | ArrayLike],
    *,
    individuals: Mapping[str, str] | None = None,
    measures: tuple[str, ...] = MEASURES,
    resamples: int = 2_000,
    seed: int = 0,
    rate: float | None = None,
    behaviors: Ethogram | Iterable[str] | str | None = None,
    exclusive: bool | None = None,
) -> Ceiling:
    """Compare the scores of a model against each annotator with those of the annotators against each other.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators to annotations of one recording; or recordings to such mappings; or a Dataset.
        All annotators must have annotated all recordings. Any annotation may be an array of frames, as in `agreement`.
    model : Annotation, Prediction, array or mapping
        The model's prediction of the recording, or recordings to predictions. Arrays may also hold probabilities, as in `score`.
    individuals : mapping, optional
        Recordings to individuals; those of a Dataset are used by default.
    measures : tuple of str
        Measures of the `ethobench` suite.
    resamples, seed : int
        Number of bootstrap resamples, and the seed of their random draw.
    rate : float, optional
        Frames per second of arrays. Default: that of another annotation of the recording.
    behaviors : iterable of str or Ethogram, optional
        Only these behaviors. All by default. For arrays of codes, 0 and 1, or probabilities: the names, in the order of codes or columns.
    exclusive : bool, optional
        Whether the behaviors of arrays of probabilities exclude each other. Default: yes if all rows sum to 1.

    Examples
    --------
    >>> a, b, m = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]))
    >>> result = ceiling({"ann1": a, "ann2": b}, model=m)
    >>> row = result.of("f1", annotator="ann1")
    >>> round(row["difference"], 2), row["reached"], row["reason"]
    (0.27, None, 'no interval below 5 recordings')
    >>> people = {"ann1": [0, 0, 1, 1], "ann2": [0, 1, 1, 1]}
    >>> result = ceiling(people, model=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]], rate=10, behaviors=["rest", "run"])
    >>> round(result.of("f1", annotator="ann1")["difference"], 2)
    0.27
    """
    chosen = as_ethogram(behaviors)
    recordings, converted = convert_annotator_arrays(annotations, model, rate=rate, behaviors=chosen, exclusive=exclusive)
    if chosen is not None:
        recordings, _ = in_one_ethogram(recordings, chosen.names)
    if not recordings:
        raise EthobenchError("a ceiling needs recordings with at least two annotators, got none")
    if isinstance(annotations, Dataset):
        individuals = annotations.groups()
    predictions = converted if isinstance(converted, Mapping) else {next(iter(recordings)): converted}
    missing = sorted({*recordings} - {*predictions})
    if missing:
        raise EthobenchError(f"recordings without a prediction of the model: {', '.join(missing)}")
    names = list(dict.fromkeys(name for group in recordings.values() for name in group))
    absent = [f"{name} in {rec}" for rec, group in recordings.items() for name in names if name not in group]
    if len(names) < 2 or absent:
        raise EthobenchError(
            f"a ceiling needs at least two annotators of every recording; missing: {', '.join(absent) or 'a second annotator'}"
        )
    suite = suites["ethobench"]

    def score_against(truth: str, other: str | None) -> Scores:
        """Score another annotator, or the model (None), against the annotator `truth`."""
        recordings_to_score = [
            Unaligned(rec, (individuals or {}).get(rec, rec), predictions[rec] if other is None else group[other], group[truth])
            for rec, group in recordings.items()
        ]
        shown = ALL if chosen is None else chosen.names
        pairs = [align(r, suite, behaviors=shown, tracks="merge", observed_by_both=True) for r in recordings_to_score]
        return score_pairs(pairs, suite, resamples=resamples, seed=seed)

    human_scores = {truth: [score_against(truth, other) for other in names if other != truth] for truth in names}
    model_scores = {truth: score_against(truth, None) for truth in names}
    all_scores = [*model_scores.values(), *chain.from_iterable(human_scores.values())]
    names_of_rows = tuple(dict.fromkeys(name for scores in all_scores for name in scores.ethogram.names))
    rows: list[dict[str, Any]] = []
    for measure in (m for m in suite.measures if m.name in measures):
        human = {
            truth: _Values.mean([_Values.of(s, measure, names_of_rows) for s in truth_scores])
            for truth, truth_scores in human_scores.items()
        }
        machine = {truth: _Values.of(scores, measure, names_of_rows) for truth, scores in model_scores.items()}
        human[""], machine[""] = _Values.mean(list(human.values())), _Values.mean(list(machine.values()))
        for truth in ["", *names]:
            rows += _rows(measure, truth, names_of_rows, human[truth], machine[truth], all_scores[0].unit)
    return Ceiling(rows)


def score_annotators(data: Dataset, annotator: str | None = None, measures: tuple[str, ...] = ("f1", "bout_f1")) -> dict[str, Any]:
    """Score annotators against each other: what a model can at most be expected to reach.

    Parameters
    ----------
    data : Dataset
    annotator : str, optional
        Score the others against this annotator; every annotator against every other one if there is none of this name.
    measures : tuple of str
        Measures of the `ethobench` suite.

    Returns
    -------
    dict
        ``annotators``, a list; ``recordings``, the number of recordings with several annotators; ``scores`` and, for each behavior,
        ``behaviors``: means over pairs of annotators. Empty if no recording has several annotators.
    """
    suite = suites["ethobench"]
    groups = [recording for recording in data if len(recording.annotations) > 1]
    names = list(dict.fromkeys(name for recording in groups for name in recording.annotations))
    results: list[Scores] = []
    compared: set[str] = set()
    for truth in [annotator] if annotator in names else names:
        for other in names:
            both = [r for r in groups if truth != other and {truth, other} <= {*r.annotations}]
            sides = [Unaligned(r.id, r.individual, r.annotations[other], r.annotations[str(truth)]) for r in both]
            if sides:
                pairs = [align(side, suite, behaviors="all", tracks="merge", observed_by_both=True) for side in sides]
                results.append(score_pairs(pairs, suite, resamples=0))
                compared |= {r.id for r in both}
    if not results:
        return {}
    behaviors = dict.fromkeys(name for scores in results for name in scores.behaviors)

    def mean(values: Sequence[float]) -> float | None:
        finite = [value for value in values if np.isfinite(value)]
        return float(np.mean(finite)) if finite else None

    return {
        "annotators": names,
        "recordings": len(compared),
        "scores": {m: mean([scores.overall[m] for scores in results]) for m in measures},
        "behaviors": {
            name: {m: mean([scores.behaviors.get(name, {}).get(m, np.nan) for scores in results]) for m in measures} for name in behaviors
        },
    }


@dataclass(frozen=True)
class _Values:
    """Values of a measure (overall first, then of each behavior), their resamples, and the individuals in whom they are defined."""

    value: Array
    resampled: Resampled
    defined: BoolArray

    @classmethod
    def of(cls, scores: Scores, measure: Measure, behaviors: tuple[str, ...]) -> _Values:
        value = np.array([scores.overall[measure.name], *(scores.behaviors.get(b, {}).get(measure.name, np.nan) for b in behaviors)])
        codes = [scores.ethogram.code(b) if b in scores.ethogram else None for b in behaviors]

        def in_order(table: Any, absent: float) -> Any:
            return np.column_stack([table[:, 0], *(np.full(len(table), absent) if c is None else table[:, 1 + c] for c in codes)])

        resampled = scores.resampled(measure)
        resampled = Resampled(in_order(resampled.bootstrap, np.nan), in_order(resampled.jackknife, np.nan))
        return cls(value, resampled, in_order(scores.contributing(measure), False).astype(bool))

    @classmethod
    def mean(cls, members: Sequence[_Values]) -> _Values:
        value, defined = np.mean([v.value for v in members], axis=0), np.all([v.defined for v in members], axis=0)
        return cls(value, Resampled.mean([v.resampled for v in members]), defined)


def _rows(measure: Measure, annotator: str, names: tuple[str, ...], human: _Values, model: _Values, unit: str) -> list[dict[str, Any]]:
    differences = model.value - human.value
    n = (human.defined & model.defined).sum(axis=0)
    lows, highs = confidence_interval(differences, model.resampled - human.resampled, n, measure.difference_bounds)
    rows = []
    for k, behavior in enumerate(["", *names]):
        difference, has_interval = float(differences[k]), bool(lows[k] <= highs[k])
        reason = "undefined" if np.isnan(difference) else too_few(int(n[k]), unit) or f"no spread: the same difference in all {unit}"
        comparable = bool(n[k] >= MIN_GROUPS) and not np.isnan(difference)
        rows.append(
            {
                "measure": measure.name,
                "annotator": annotator,
                "behavior": behavior,
                "human": float(human.value[k]),
                "model": float(model.value[k]),
                "difference": difference,
                "low": float(lows[k]) if has_interval else None,
                "high": float(highs[k]) if has_interval else None,
                "reached": bool(difference >= 0 or (has_interval and highs[k] >= 0)) if comparable else None,
                "n": int(n[k]),
                "reason": None if has_interval else reason,
            }
        )
    return rows
