"""The report of the agreement of annotators: tables of agreement, and the first annotator compared with the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ethobench
from ethobench.core import Annotation, Dataset
from ethobench.core.occurrence import Occurrence
from ethobench.metrics import Scores
from ethobench.metrics.alignment import Unaligned, align
from ethobench.metrics.annotator_inputs import Recordings, as_recordings
from ethobench.metrics.rater_agreement import PAIR_METRICS, Agreement
from ethobench.metrics.scoring import score_pairs
from ethobench.metrics.suites import suites
from ethobench.reports.methods import describe_methods
from ethobench.reports.report_data import Figure, Group, Report, describe_behaviors, make_figure
from ethobench.reports.score_report import MAX_RECORDINGS, score_group

LABELS = {"kappa": "Cohen's kappa", "f1": "frame F1", "agreement": "equal frames"}
STATISTICS = {"fleiss": "Fleiss' kappa", "alpha": "Krippendorff's alpha", "icc_count": "ICC of counts", "icc_duration": "ICC of durations"}


def summarize_agreement(
    result: Agreement, annotations: Mapping[str, Annotation] | Recordings | Dataset, *, title: str = "", recordings: int = MAX_RECORDINGS
) -> Report:
    """Return the report of the agreement of annotators.

    Parameters
    ----------
    result : Agreement
        As `agreement` returns it.
    annotations : mapping or Dataset
        The annotations that were compared.
    title : str
        Title of the page.
    recordings : int
        Maximum number of recordings that are drawn.

    Examples
    --------
    >>> from ethobench import agreement
    >>> report = summarize_agreement(agreement({"anna": annotation, "ben": annotation}), {"anna": annotation, "ben": annotation})
    >>> report["title"], [group["id"] for group in report["groups"]]
    ('Agreement of anna and ben', ['agreement', 'scores'])
    """
    by_recording = as_recordings(annotations)
    scores = _scores_against_first(result, by_recording)
    groups = [_agreement_group(result, scores)]
    if scores:
        first = result.annotators[0]
        pairs = {name: scored.pairs for name, scored in scores.items()}
        groups.append(score_group(scores, pairs, truth=first, recordings=recordings, title=f"Compared with {first}"))
    paragraphs, references = describe_methods(agreement=result)
    names = f"{', '.join(result.annotators[:-1])} and {result.annotators[-1]}"
    return {
        "title": title or f"Agreement of {names}",
        "lead": f"{len(by_recording)} recordings; {result.interval_note}",
        "facts": [],
        "notes": [str(note) for note in result.notes],
        "groups": groups,
        "methods": {"paragraphs": paragraphs, "references": references},
        "version": ethobench.__version__,
    }


def _scores_against_first(result: Agreement, recordings: Mapping[str, Mapping[str, Annotation]]) -> dict[str, Scores]:
    """Score the other annotators against the first one, on the recordings that all of them annotated."""
    first, *others = result.annotators
    suite = suites["ethobench"]
    complete = {name: group for name, group in recordings.items() if {*result.annotators} <= {*group}}
    behaviors = list(result.behaviors)
    scores = {}
    for other in others if complete and behaviors else ():
        sides = [Unaligned(name, name, group[other], group[first]) for name, group in complete.items()]
        pairs = [align(side, suite, behaviors=_shared(side, behaviors), tracks="merge", observed_by_both=True) for side in sides]
        scores[other] = score_pairs(pairs, suite, resamples=0)
    return scores


def _shared(side: Unaligned, behaviors: list[str]) -> Any:
    available = {*side.truth.ethogram.names, *side.pred.ethogram.names}
    return [name for name in behaviors if name in available] or "all"


def _agreement_group(result: Agreement, scores: Mapping[str, Scores]) -> Group:
    figures = [_pairs(result), _all_annotators(result)]
    if len({row["recording"] for row in result.recordings}) > 1:
        figures.append(_by_recording(result))
    first = next(iter(scores.values()), None)
    occurrence = None if first is None else first.occurrence
    behaviors = [] if first is None else describe_behaviors(first.ethogram, occurrence or Occurrence(first.ethogram, {}))
    absent = [f"never annotated: {', '.join(result.never_annotated)}"] if result.never_annotated else []
    return {"id": "agreement", "title": "Agreement", "behaviors": behaviors, "figures": figures, "absent": absent}


def _pairs(result: Agreement) -> Figure:
    rows = [
        (_pair(row), row["behavior"], name, row[name], row[f"{name}_low"], row[f"{name}_high"])
        for row in result.pairs
        if row["behavior"] not in result.never_annotated
        for name in PAIR_METRICS
    ]
    encode = {"group": "annotators", "row": "behavior", "column": "measure", "value": "value", "low": "low", "high": "high"}
    measures = [{"name": name, "label": label, "definition": "", "range": [0, 1]} for name, label in LABELS.items()]
    definition = f"Agreement on frames ({result.interval_note})."
    columns = ["annotators", "behavior", "measure", "value", "low", "high"]
    return make_figure("pairs", "pivot", "Pairs of annotators", definition, columns, rows, encode, measures=measures)


def _all_annotators(result: Agreement) -> Figure:
    rows = [
        (behavior, label, values[behavior], *(result.intervals[name].get(behavior) or (None, None)))
        for name, label in STATISTICS.items()
        for values in (getattr(result, name),)
        for behavior in values
        if behavior not in result.never_annotated
    ]
    encode = {"group": [], "row": "behavior", "column": "statistic", "value": "value", "low": "low", "high": "high"}
    definition = "Agreement of all annotators beyond chance; intraclass correlation of bout counts and total durations over recordings."
    return make_figure("annotators", "pivot", "All annotators", definition, ["behavior", "statistic", "value", "low", "high"], rows, encode)


def _by_recording(result: Agreement) -> Figure:
    rows = [
        (_pair(row), row["recording"], row["behavior"] or "all", row["kappa"])
        for row in result.recordings
        if row["behavior"] not in result.never_annotated
    ]
    encode = {"group": "annotators", "row": "recording", "column": "behavior", "value": "kappa"}
    definition = "Cohen's kappa of each recording; a dash where neither annotator marked the behavior."
    return make_figure("recordings", "pivot", "Recordings", definition, ["annotators", "recording", "behavior", "kappa"], rows, encode)


def _pair(row: Mapping[str, Any]) -> str:
    return f"{row['annotator_1']} and {row['annotator_2']}"
