"""The human ceiling: whether a model is as close to each annotator as they are to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.errors import EthobenchError
from ethobench.metrics._base import Array
from ethobench.metrics._measures import Measure
from ethobench.metrics._pairing import make_case
from ethobench.metrics.agreement import Recordings, as_recordings
from ethobench.metrics.bootstrap import interval
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
        For each annotator (empty: mean over them), behaviour (empty: mean over them) and measure: ``human``, ``model``, their
        ``difference`` (model minus human) with ``low`` and ``high`` of its 95 % interval over individuals (NaN with one), and
        ``reached``: whether the model is not shown to be worse.
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
        raise EthobenchError(f"no figures of measure {measure!r}, behaviour {behavior!r} and annotator {annotator!r}")


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
    >>> result.of("f1", annotator="ann1")["reached"]
    True
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
        humans = {truth: _mean([_values(s, measure, behaviors) for s in scores]) for truth, scores in people.items()}
        models = {truth: _values(scores, measure, behaviors) for truth, scores in machine.items()}
        humans[""], models[""] = _mean(list(humans.values())), _mean(list(models.values()))
        for truth in ["", *names]:
            rows += _rows(measure, truth, behaviors, humans[truth], models[truth])
    return Ceiling(rows)


def _values(scores: Scores, measure: Measure, behaviors: tuple[str, ...]) -> tuple[Array, Array]:
    """Return a measure's value and its resamples: overall first, then behaviours in the order given."""
    value = np.array([scores.overall[measure.name], *(scores.behaviors.get(b, {}).get(measure.name, np.nan) for b in behaviors)])
    if len(scores.individuals) < 2:
        return value, np.full((1, len(value)), np.nan)
    overall, found = scores.resampled(measure)
    columns = [found[:, scores.ethogram.code(b)] if b in scores.ethogram else np.full(len(found), np.nan) for b in behaviors]
    return value, np.column_stack([overall, *columns])


def _mean(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.mean([p[0] for p in parts], axis=0), np.mean([p[1] for p in parts], axis=0)


def _rows(
    measure: Measure, annotator: str, names: tuple[str, ...], human: tuple[Array, Array], model: tuple[Array, Array]
) -> list[dict[str, Any]]:
    low, high = interval(model[1] - human[1])
    rows = []
    for place, behavior in enumerate(["", *names]):
        difference = float(model[0][place] - human[0][place])
        top = float(high[place])
        rows.append(
            {
                "measure": measure.name,
                "annotator": annotator,
                "behavior": behavior,
                "human": float(human[0][place]),
                "model": float(model[0][place]),
                "difference": difference,
                "low": float(low[place]),
                "high": top,
                "reached": bool(difference >= 0 or top >= 0),
            }
        )
    return rows
