"""The human ceiling: whether a model is as close to each annotator as they are to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import BoolArray
from ethobench.metrics.agreement import Recordings, as_recordings
from ethobench.metrics.base import Array
from ethobench.metrics.bootstrap import MIN_GROUPS, Resampled, confidence_interval, too_few
from ethobench.metrics.measures import Measure
from ethobench.metrics.pairing import make_case
from ethobench.metrics.scores import Scores
from ethobench.metrics.scoring import score_cases
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
        whether the model is not shown to be worse. With fewer than five individuals all three are None, and ``reason`` says so.
    """

    rows: list[dict[str, Any]]

    def table(self) -> pd.DataFrame:
        """Return all figures as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def of(self, measure: str, behavior: str = "", annotator: str = "") -> dict[str, Any]:
        """Return the figures of one measure."""
        for row in self.rows:
            if (row["measure"], row["behavior"], row["annotator"]) == (measure, behavior, annotator):
                return row
        raise EthobenchError(f"no figures of measure {measure!r}, behavior {behavior!r} and annotator {annotator!r}")


def ceiling(
    annotations: Mapping[str, Annotation] | Recordings | Dataset,
    model: Annotation | Prediction | Mapping[str, Annotation | Prediction],
    *,
    individuals: Mapping[str, str] | None = None,
    measures: tuple[str, ...] = MEASURES,
    resamples: int = 2_000,
    seed: int = 0,
) -> Ceiling:
    """Compare a model with the annotators.

    Parameters
    ----------
    annotations : mapping or Dataset
        Annotators' names to annotations of one recording; or recordings' names to such mappings; or a Dataset.
        All annotators must have scored all recordings.
    model : Annotation, Prediction or mapping
        The model's prediction of the recording, or recordings' names to predictions.
    individuals : mapping, optional
        Recordings' names to individuals; a Dataset knows its own.
    measures : tuple of str
        Of the `ethobench` suite.
    resamples, seed : int
        Of the intervals.

    Examples
    --------
    >>> a, b, m = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]))
    >>> result = ceiling({"ann1": a, "ann2": b}, model=m)
    >>> row = result.of("f1", annotator="ann1")
    >>> round(row["difference"], 2), row["reached"], row["reason"]
    (0.27, None, 'no interval below 5 recordings')
    """
    recordings = as_recordings(annotations)
    if not recordings:
        raise EthobenchError("a ceiling needs recordings that two annotators or more have scored")
    if isinstance(annotations, Dataset):
        individuals = annotations.groups()
    predictions = model if isinstance(model, Mapping) else {next(iter(recordings)): model}
    missing = sorted({*recordings} - {*predictions})
    if missing:
        raise EthobenchError(f"the model predicts nothing for: {', '.join(missing)}")
    names = list(dict.fromkeys(name for group in recordings.values() for name in group))
    absent = [f"{name} in {rec}" for rec, group in recordings.items() for name in names if name not in group]
    if len(names) < 2 or absent:
        raise EthobenchError(
            f"a ceiling needs two annotators or more who scored everything; missing: {', '.join(absent) or 'a second annotator'}"
        )
    suite = suites["ethobench"]

    def against(truth: str, other: str | None) -> Scores:
        cases = [
            make_case(
                rec,
                (individuals or {}).get(rec, rec),
                predictions[rec] if other is None else group[other],
                group[truth],
                suite,
                behaviors="all",
                tracks="merge",
                both=True,
                metadata={},
            )
            for rec, group in recordings.items()
        ]
        return score_cases(cases, suite, resamples=resamples, seed=seed)

    chosen = [m for m in suite.measures if m.name in measures]
    people = {truth: [against(truth, other) for other in names if other != truth] for truth in names}
    machine = {truth: against(truth, None) for truth in names}
    scored = [*machine.values(), *(s for several in people.values() for s in several)]
    behaviors = tuple(dict.fromkeys(name for s in scored for name in s.ethogram.names))
    rows: list[dict[str, Any]] = []
    for measure in chosen:
        humans = {truth: _Values.mean([_Values.of(s, measure, behaviors) for s in scores]) for truth, scores in people.items()}
        models = {truth: _Values.of(scores, measure, behaviors) for truth, scores in machine.items()}
        humans[""], models[""] = _Values.mean(list(humans.values())), _Values.mean(list(models.values()))
        for truth in ["", *names]:
            rows += _rows(measure, truth, behaviors, humans[truth], models[truth], scored[0].unit)
    return Ceiling(rows)


@dataclass(frozen=True)
class _Values:
    """Values of a measure, overall first, then of each behavior; resampled; and in which individuals they are defined."""

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
        resampled = Resampled(in_order(resampled.drawn, np.nan), in_order(resampled.without, np.nan))
        return cls(value, resampled, in_order(scores.contributing(measure), False).astype(bool))

    @classmethod
    def mean(cls, parts: Sequence[_Values]) -> _Values:
        value, defined = np.mean([part.value for part in parts], axis=0), np.all([part.defined for part in parts], axis=0)
        return cls(value, Resampled.mean([part.resampled for part in parts]), defined)


def _rows(measure: Measure, annotator: str, names: tuple[str, ...], human: _Values, model: _Values, unit: str) -> list[dict[str, Any]]:
    differences = model.value - human.value
    n = (human.defined & model.defined).sum(axis=0)
    lows, highs = confidence_interval(differences, model.resampled - human.resampled, n, measure.difference_bounds)
    rows = []
    for place, behavior in enumerate(["", *names]):
        difference, given = float(differences[place]), bool(lows[place] <= highs[place])
        why = "undefined" if np.isnan(difference) else too_few(int(n[place]), unit) or f"no spread: the same difference in all {unit}"
        comparable = bool(n[place] >= MIN_GROUPS) and not np.isnan(difference)
        rows.append(
            {
                "measure": measure.name,
                "annotator": annotator,
                "behavior": behavior,
                "human": float(human.value[place]),
                "model": float(model.value[place]),
                "difference": difference,
                "low": float(lows[place]) if given else None,
                "high": float(highs[place]) if given else None,
                "reached": bool(difference >= 0 or (given and highs[place] >= 0)) if comparable else None,
                "n": int(n[place]),
                "reason": None if given else why,
            }
        )
    return rows
