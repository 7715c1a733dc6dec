"""Where annotators differ: each beside the same model that learnt from somebody else."""

from __future__ import annotations

import numpy as np

from ethobench.benchmarks.results import Row, grouped_scores
from ethobench.metrics import Scores
from ethobench.runs import Store

ZERO_SHOT = ", zero-shot"
SUITE = "ethobench"
TRUE_TIME, MODEL_TIME, TRUE_BOUTS, MODEL_BOUTS = 1, 2, 3, 4  # columns of the statistics of time budgets


def styles_table(store: Store) -> list[Row]:
    """Compare annotators of different videos through a model that none of them has taught.

    Returns
    -------
    list of dict
        Rows of ``dataset, model, annotator, behavior, f1``, how many seconds later than the model the annotator begins
        (``later_onset``) and ends a bout (``later_offset``), and how many times as many bouts (``bouts``) and as much time
        (``time``) the annotator sees. What one annotator's row says against another's is the difference between them.
    """
    rows = []
    for (_, dataset, model, setting, suite), _, scores in grouped_scores(store):
        if not setting.endswith(ZERO_SHOT) or suite != SUITE:
            continue
        budget = _budget(scores)
        for code, (behavior, figures) in enumerate(scores.behaviors.items()):
            if behavior == scores.ethogram.background_name:
                continue
            row: Row = {"dataset": dataset, "model": model, "annotator": setting.removesuffix(ZERO_SHOT), "behavior": behavior}
            row["f1"] = _known(figures["f1"])
            row["later_onset"], row["later_offset"] = (_known(-figures[name]) for name in ("onset_error", "offset_error"))
            row["bouts"] = _known(_ratio(budget[code, TRUE_BOUTS], budget[code, MODEL_BOUTS]))
            row["time"] = _known(_ratio(budget[code, TRUE_TIME], budget[code, MODEL_TIME]))
            rows.append(row)
    return rows


def _budget(scores: Scores) -> np.ndarray:
    """Return time and bouts of truth and model, summed over recordings, for each behavior."""
    measure = next(m for m in scores.suite.measures if m.name == "count_error")
    return np.asarray(scores.statistics(measure).sum(axis=0))


def _ratio(a: float, b: float) -> float:
    return a / b if b else float("nan")


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
