"""The report of scores: which figures it contains, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

import ethobench
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.occurrence import Occurrence
from ethobench.core.wording import count_units, join_names
from ethobench.metrics import Ceiling, Scores, ceiling
from ethobench.metrics.annotator_inputs import Recordings, as_recordings
from ethobench.metrics.base import measure_label
from ethobench.metrics.pairs import AlignedPair
from ethobench.reports.comparisons import budgets, ceiling_figure, confusion, error_kinds
from ethobench.reports.distributions import boundary_errors, durations, precision_recall, reliabilities
from ethobench.reports.methods import describe_methods
from ethobench.reports.rasters import in_ethogram, raster
from ethobench.reports.report_data import Fact, Figure, Group, Methods, Report, describe_behaviors, without_behaviors
from ethobench.reports.score_tables import every_measure, headline, spread
from ethobench.reports.tables import DASH, number

if TYPE_CHECKING:
    from ethobench.models.audit import TrainingAudit

MAX_RECORDINGS = 20
MAX_FACTS = 4
SCORE_FIGURES = ("scores", "individuals", "measures")  # some suites define scores for behaviors that never occur


def summarize_scores(
    scores: Mapping[str, Scores],
    *,
    truth: str = "truth",
    annotations: Mapping[str, Annotation] | Recordings | Dataset | None = None,
    title: str = "",
    recordings: int = MAX_RECORDINGS,
    training: TrainingAudit | None = None,
) -> Report:
    """Return the report of the scores of one or more predictions.

    Parameters
    ----------
    scores : mapping
        Models or annotators to their scores, as `score` returns them, of the same recordings and behaviors.
    truth : str
        Display name of the truth, such as the annotator's name.
    annotations : mapping or Dataset, optional
        All annotators of the recordings. Those who are not the truth are drawn beside it, and with two or more every
        model is compared with the human ceiling.
    title : str
        Title of the page.
    recordings : int
        Maximum number of recordings that are drawn; all of them are scored.
    training : TrainingAudit, optional
        Which of the recordings a model was trained on, as `audit_scores` returns it; the page states it above the scores.

    Examples
    --------
    >>> from ethobench import score
    >>> report = summarize_scores({"model": score(annotation, annotation)})
    >>> [figure["id"] for figure in report["groups"][0]["figures"]][:2]
    ['scores', 'ethograms']
    """
    first = _checked(scores)
    truth = f"{truth} (truth)" if truth in scores else truth
    recording_of, annotators = _annotators(first, {} if annotations is None else as_recordings(annotations))
    ceilings, remarks = _ceilings(scores, recording_of, annotators)
    others = {
        pair: {annotator: a for annotator, a in annotators[rec].items() if annotator not in (truth, *scores)}
        for pair, rec in recording_of.items()
    }
    pairs = {name: scored.pairs for name, scored in scores.items()}
    group = score_group(scores, pairs, truth=truth, others=others, ceilings=ceilings, recordings=recordings)
    names = join_names(scores) if len(scores) < 3 else f"{len(scores)} predictions"
    if len(first.pairs) > recordings:
        remarks.append(f"ethograms are drawn for the first {recordings} of {len(first.pairs)} recordings")
    notes = dict.fromkeys(f"{name}: {note}" if len(scores) > 1 else str(note) for name, s in scores.items() for note in s.notes)
    if training is not None:
        remarks = [*training.messages(), *_unseen_scores(first, training), *remarks]
    return {
        "title": title or f"{names} against {truth}",
        "lead": _lead(first),
        "warning": "" if training is None else training.warning,
        "facts": _facts(first, ceilings) if len(scores) == 1 else [],
        "notes": [*notes, *remarks],
        "groups": [group],
        "methods": _methods(first),
        "version": ethobench.__version__,
    }


def _methods(scores: Scores) -> Methods:
    paragraphs, references = describe_methods(scores)
    return {"paragraphs": paragraphs, "references": references}


def score_group(
    scores: Mapping[str, Scores],
    pairs: Mapping[str, Sequence[AlignedPair]],
    *,
    truth: str,
    others: Mapping[str, Mapping[str, Annotation]] | None = None,
    ceilings: Mapping[str, Ceiling] | None = None,
    recordings: int,
    id: str = "scores",
    title: str = "",
) -> Group:
    """Return all figures of scores; those whose data are not available are omitted.

    Parameters
    ----------
    scores : mapping
        Predictions to their scores.
    pairs : mapping
        Predictions to the recordings as they were compared; empty if the annotations are not available.
    truth : str
        Display name of the truth.
    others : mapping, optional
        Ids of pairs to further annotators to draw.
    ceilings : mapping, optional
        Predictions to their human ceilings.
    recordings : int
        Maximum number of recordings that are drawn.
    id, title : str
        Id and title of the group.
    """
    first = next(iter(scores.values()))
    ceilings, others = ceilings or {}, others or {}
    occurrence = _occurrence(scores, pairs, others)
    figures: list[Figure | None] = [
        headline(scores, ceilings),
        raster(pairs, truth, others, recordings) if pairs and recordings > 0 else None,
        ceiling_figure(ceilings),
        error_kinds(pairs) if pairs else None,
        confusion(scores),
        spread(scores),
        budgets(scores, truth),
        durations(scores, truth),
        boundary_errors(scores),
        precision_recall(scores),
        reliabilities(scores),
        every_measure(scores),
    ]
    never = occurrence.never_annotated if occurrence is not None else ()
    undefined = [name for name in never if all(name in scored.undefined_behaviors for scored in scores.values())]
    kept = [without_behaviors(f, undefined if f["id"] in SCORE_FIGURES else never) for f in figures if f is not None]
    return {
        "id": id,
        "title": title,
        "behaviors": describe_behaviors(first.ethogram, occurrence),
        "figures": [figure for figure in kept if figure["rows"] or figure["kind"] == "raster"],
        "absent": first.occurrence_lines(occurrence),
    }


def _occurrence(
    scores: Mapping[str, Scores], pairs: Mapping[str, Sequence[AlignedPair]], others: Mapping[str, Mapping[str, Annotation]]
) -> Occurrence | None:
    """Count the behaviors in the truth, of other annotators and of every prediction; None if the scores do not contain it."""
    first = next(iter(scores.values()))
    if pairs:
        by_id = {pair.id: pair for pair_list in pairs.values() for pair in pair_list}
        annotated = [*(pair.truth for pair in by_id.values()), *(a for group in others.values() for a in group.values())]
        return Occurrence.count(first.ethogram, annotated, (pair.pred for pair_list in pairs.values() for pair in pair_list))
    occurrences = [scored.occurrence for scored in scores.values() if scored.occurrence is not None]
    predicted = [Occurrence(each.ethogram, {}, each.predicted) for each in occurrences[1:]]
    return reduce(Occurrence.join, predicted, occurrences[0]) if occurrences else None


def _checked(scores: Mapping[str, Scores]) -> Scores:
    """Return the first scores; raise an error unless all are of the same suite, recordings and behaviors."""
    if not scores:
        raise EthobenchError("a report needs the scores of at least one prediction")
    (first_name, first), *rest = scores.items()
    for name, other in rest:
        for attribute in ("suite", "recordings", "ethogram"):
            if getattr(first, attribute) != getattr(other, attribute):
                raise MismatchError(f"{first_name!r} and {name!r} differ in their {attribute}; score both on the same data first")
    return first


def _annotators(
    scores: Scores, annotations: Mapping[str, Mapping[str, Annotation]]
) -> tuple[dict[str, str], dict[str, dict[str, Annotation]]]:
    """Return the recording of each pair, and the annotations of each recording with only the behaviors that are scored.

    A recording that is scored against all its annotators has several pairs, named ``recording@annotator``.
    """
    if len(annotations) == len(scores.pairs) == 1:
        annotations = {scores.pairs[0].id: next(iter(annotations.values()))}
    recording_of = {
        pair.id: next((rec for rec in (pair.id, pair.id.rpartition("@")[0]) if rec in annotations), pair.id) for pair in scores.pairs
    }
    return recording_of, {
        rec: {annotator: in_ethogram(a, scores.ethogram) for annotator, a in annotations.get(rec, {}).items()}
        for rec in recording_of.values()
    }


def _ceilings(
    scores: Mapping[str, Scores], recording_of: Mapping[str, str], annotators: Mapping[str, Mapping[str, Annotation]]
) -> tuple[dict[str, Ceiling], list[str]]:
    """Compare every model with the annotators of all recordings, if there are two or more of them."""
    with_several = [group for group in annotators.values() if len(group) > 1]
    names = [
        annotator for annotator in (with_several[0] if with_several else ()) if all(annotator in group for group in annotators.values())
    ]
    models = {name: scored for name, scored in scores.items() if name not in names}
    if not with_several or not models:
        return {}, []
    if len(names) < 2:
        return {}, ["no human ceiling: it needs two annotators of every recording"]
    chosen = {rec: {annotator: group[annotator] for annotator in names} for rec, group in annotators.items()}
    result = {}
    for name, scored in models.items():
        pairs = {recording_of[pair.id]: pair for pair in scored.pairs}
        individuals = {rec: pair.individual for rec, pair in pairs.items()}
        result[name] = ceiling(chosen, {rec: pair.pred for rec, pair in pairs.items()}, individuals=individuals)
    return result, []


def _unseen_scores(scores: Scores, training: TrainingAudit) -> list[str]:
    """Return the headline scores of the recordings that the model was not trained on, if it was trained on others."""
    if not training.in_sample or not training.held_out:
        return []
    overall = scores.select(training.held_out).overall
    values = ", ".join(f"{measure_label(name)} {number(overall[name])}" for name in scores.suite.headline if np.isfinite(overall[name]))
    return [f"scores of the {count_units(len(training.held_out), 'recordings')} not seen in training: {values or 'undefined'}"]


def _lead(scores: Scores) -> str:
    seconds = sum(pair.truth.duration for pair in scores.pairs)
    rates = {pair.rate for pair in scores.pairs}
    clock = f" at {rates.pop():g} Hz" if len(rates) == 1 else ""
    of_individuals = "" if scores.unit == "recordings" else f" of {count_units(len(scores.individuals), scores.unit)}"
    return (
        f"{count_units(len(scores.recordings), 'recordings')}{of_individuals}, {format_duration(seconds)}{clock}, suite {scores.suite.name}"
    )


def _facts(scores: Scores, ceilings: Mapping[str, Ceiling]) -> list[Fact]:
    """Return the first headline measures as key numbers."""
    facts: list[Fact] = []
    for name in scores.suite.headline[:MAX_FACTS]:
        value = scores.overall[name]
        interval = scores.intervals["overall"][name]
        details = [f"95 %: {number(interval[0])} to {number(interval[1])}"] if interval else []
        details += [f"annotators {number(row['human'])}" for c in ceilings.values() for row in c.rows if _is_overall(row, name)]
        facts.append({"label": measure_label(name), "value": number(value) if np.isfinite(value) else DASH, "details": details})
    return facts


def _is_overall(row: Mapping[str, object], measure: str) -> bool:
    return (row["measure"], row["behavior"], row["annotator"]) == (measure, "", "")


def format_duration(seconds: float) -> str:
    """Return a duration as text.

    >>> format_duration(65), format_duration(600), format_duration(10_000)
    ('65 s', '10 min', '2.8 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
