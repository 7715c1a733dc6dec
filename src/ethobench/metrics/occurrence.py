"""How often behaviors occur in what was scored, also where only the stored statistics are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core.occurrence import Amount, Occurrence
from ethobench.metrics.base import Array

if TYPE_CHECKING:
    from ethobench.metrics.scores import Scores


def occurrence_of(scores: Scores) -> Occurrence | None:
    """Count behaviors on both sides: from the annotations, else from statistics; None where a suite stores none that tell.

    Stored statistics cover the observed frames. Suites ``ethobench``, ``calms21`` and ``bebe`` have them.
    """
    if scores.cases:
        return Occurrence.count(scores.ethogram, (c.truth for c in scores.cases), (c.pred for c in scores.cases))
    from ethobench.metrics import bouts, budgets, frames
    from ethobench.metrics.suites import bebe

    measures = {m.of.statistics: m for m in scores.suite.measures}
    if budgets.sums in measures and bouts.counts in measures:  # durations from the one, point events from the other
        seconds, counts = (scores.statistics(measures[function]).sum(axis=0) for function in (budgets.sums, bouts.counts))
        return _from_columns(scores, seconds[:, 1], counts[:, 0], seconds[:, 2], counts[:, 1])
    for function in (frames.counts, bebe.counts):  # true positives, false positives, false negatives; frames, which rank as seconds do
        if function in measures:
            table = scores.statistics(measures[function]).sum(axis=0)
            true, predicted = table[:, 0] + table[:, 2], table[:, 0] + table[:, 1]
            return _from_columns(scores, true, true, predicted, predicted)
    return None


def _from_columns(scores: Scores, true: Array, true_bouts: Array, predicted: Array, predicted_bouts: Array) -> Occurrence:
    def amounts(seconds: Array, counts: Array) -> dict[str, Amount]:
        rows = zip(scores.ethogram.names, seconds, counts, strict=True)
        return {name: Amount(float(length), int(count)) for name, length, count in rows if count > 0}

    return Occurrence(scores.ethogram, amounts(true, true_bouts), amounts(predicted, predicted_bouts))
