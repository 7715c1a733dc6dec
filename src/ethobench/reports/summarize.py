"""From scores to a report: what is shown, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

import ethobench
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.occurrence import Occurrence
from ethobench.metrics import Ceiling, Scores, ceiling
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.rater_agreement import Recordings, as_recordings
from ethobench.reports.comparisons import budgets, ceiling_figure, confusion, error_kinds
from ethobench.reports.distributions import borders, durations, precision_recall, reliabilities
from ethobench.reports.measures import every_measure, headline, label, spread
from ethobench.reports.rasters import in_ethogram, raster
from ethobench.reports.shape import Fact, Figure, Group, Report, describe_behaviors, without_behaviors
from ethobench.reports.tables import DASH, number

if TYPE_CHECKING:
    from ethobench.models.audit import TrainingAudit

MOST_RECORDINGS = 20
MOST_FACTS = 4
SCORE_FIGURES = ("scores", "individuals", "measures")  # some suites define scores of behaviors that never occur


def summarize_scores(
    scores: Mapping[str, Scores],
    *,
    truth: str = "truth",
    annotations: Mapping[str, Annotation] | Recordings | Dataset | None = None,
    title: str = "",
    recordings: int = MOST_RECORDINGS,
    training: TrainingAudit | None = None,
) -> Report:
    """Bring everything together that a page on the scores of one or more predictions shows.

    Parameters
    ----------
    scores : mapping
        Names of models or annotators to their scores, as `score` gives them, of the same recordings and behaviors.
    truth : str
        What to call the truth: the annotator's name, where there is one.
    annotations : mapping or Dataset, optional
        All annotators of the recordings. Those who are not the truth are drawn beside it, and with two or more every
        model is compared with the human ceiling.
    title : str
        Of the page.
    recordings : int
        How many recordings are drawn at most; all of them are scored.
    training : TrainingAudit, optional
        Which of the recordings a model was trained on, as `audit_scores` tells; the page says so above the scores.

    Examples
    --------
    >>> from ethobench import score
    >>> report = summarize_scores({"model": score(annotation, annotation)})
    >>> [figure["id"] for figure in report["groups"][0]["figures"]][:2]
    ['scores', 'ethograms']
    """
    first = _checked(scores)
    truth = f"{truth} (truth)" if truth in scores else truth
    owner, people = _annotators(first, {} if annotations is None else as_recordings(annotations))
    ceilings, told = _ceilings(scores, owner, people)
    others = {pair: {who: a for who, a in people[rec].items() if who not in (truth, *scores)} for pair, rec in owner.items()}
    pairs = {name: scored.pairs for name, scored in scores.items()}
    group = score_group(scores, pairs, truth=truth, others=others, ceilings=ceilings, recordings=recordings)
    names = " and ".join(scores) if len(scores) < 3 else f"{len(scores)} predictions"
    if len(first.pairs) > recordings:
        told.append(f"ethograms are drawn for the first {recordings} of {len(first.pairs)} recordings")
    notes = dict.fromkeys(f"{name}: {note}" if len(scores) > 1 else str(note) for name, s in scores.items() for note in s.notes)
    if training is not None:
        told = [*training.messages(), *_unseen_scores(first, training), *told]
    return {
        "title": title or f"{names} against {truth}",
        "lead": _lead(first),
        "warning": "" if training is None else training.warning,
        "facts": _facts(first, ceilings) if len(scores) == 1 else [],
        "notes": [*notes, *told],
        "groups": [group],
        "version": ethobench.__version__,
    }


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
    """Make all figures of some scores; those that need what is not at hand are left out.

    Parameters
    ----------
    scores : mapping
        Names of predictions to their scores.
    pairs : mapping
        Names of predictions to the recordings as they were compared; empty where they are not at hand.
    truth : str
        What to call the truth.
    others : mapping, optional
        Cases' names to further annotators to draw.
    ceilings : mapping, optional
        Names of predictions to their human ceilings.
    recordings : int
        How many are drawn at most.
    id, title : str
        Of the group.
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
        borders(scores),
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
    """Count the behaviors in all that is shown: the truth once, the other annotators, every prediction; None where nothing tells."""
    first = next(iter(scores.values()))
    if pairs:
        by_id = {pair.id: pair for several in pairs.values() for pair in several}
        annotated = [*(pair.truth for pair in by_id.values()), *(a for group in others.values() for a in group.values())]
        return Occurrence.count(first.ethogram, annotated, (pair.pred for several in pairs.values() for pair in several))
    found = [scored.occurrence for scored in scores.values()]
    known = [each for each in found if each is not None]
    predicted = [Occurrence(each.ethogram, {}, each.predicted) for each in known[1:]]
    return reduce(Occurrence.join, predicted, known[0]) if known else None


def _checked(scores: Mapping[str, Scores]) -> Scores:
    """Return the first scores; the others must be of the same recordings and behaviors."""
    if not scores:
        raise EthobenchError("a report needs the scores of at least one prediction")
    (first_name, first), *rest = scores.items()
    for name, other in rest:
        for what in ("suite", "recordings", "ethogram"):
            if getattr(first, what) != getattr(other, what):
                raise MismatchError(f"{first_name!r} and {name!r} differ in their {what}; score them on the same before reporting both")
    return first


def _annotators(scores: Scores, people: Mapping[str, Mapping[str, Annotation]]) -> tuple[dict[str, str], dict[str, dict[str, Annotation]]]:
    """Return the recording of each pair, and what the annotators of each recording say of the behaviors that are scored.

    A recording that is scored against all its annotators makes several pairs, called ``recording@annotator``.
    """
    if len(people) == len(scores.pairs) == 1:
        people = {scores.pairs[0].id: next(iter(people.values()))}
    owner = {pair.id: next((rec for rec in (pair.id, pair.id.rpartition("@")[0]) if rec in people), pair.id) for pair in scores.pairs}
    return owner, {rec: {who: in_ethogram(a, scores.ethogram) for who, a in people.get(rec, {}).items()} for rec in owner.values()}


def _ceilings(
    scores: Mapping[str, Scores], owner: Mapping[str, str], people: Mapping[str, Mapping[str, Annotation]]
) -> tuple[dict[str, Ceiling], list[str]]:
    """Compare every model with the annotators who scored all recordings, if there are two or more of them."""
    several = [group for group in people.values() if len(group) > 1]
    names = [who for who in (several[0] if several else ()) if all(who in group for group in people.values())]
    models = {name: scored for name, scored in scores.items() if name not in names}
    if not several or not models:
        return {}, []
    if len(names) < 2:
        return {}, ["there is no human ceiling, which takes two annotators who scored every recording"]
    chosen = {rec: {who: group[who] for who in names} for rec, group in people.items()}
    result = {}
    for name, scored in models.items():
        pairs = {owner[pair.id]: pair for pair in scored.pairs}
        individuals = {rec: pair.individual for rec, pair in pairs.items()}
        result[name] = ceiling(chosen, {rec: pair.pred for rec, pair in pairs.items()}, individuals=individuals)
    return result, []


def _unseen_scores(scores: Scores, training: TrainingAudit) -> list[str]:
    """Give the headline scores of the recordings that the model was not trained on, where it was trained on others."""
    if not training.seen or not training.unseen:
        return []
    overall = scores.select(training.unseen).overall
    values = ", ".join(f"{label(name)} {number(overall[name])}" for name in scores.suite.headline if np.isfinite(overall[name]))
    return [f"scores of the {_count(len(training.unseen), 'recording')} not seen in training: {values or 'undefined'}"]


def _lead(scores: Scores) -> str:
    seconds = sum(pair.truth.duration for pair in scores.pairs)
    rates = {pair.rate for pair in scores.pairs}
    clock = f" at {rates.pop():g} Hz" if len(rates) == 1 else ""
    of_individuals = "" if scores.unit == "recordings" else f" of {_count(len(scores.individuals), 'individual')}"
    return f"{_count(len(scores.recordings), 'recording')}{of_individuals}, {format_card(seconds)}{clock}, suite {scores.suite.name}"


def _facts(scores: Scores, ceilings: Mapping[str, Ceiling]) -> list[Fact]:
    """Pick the first headline measures as large figures."""
    facts: list[Fact] = []
    for name in scores.suite.headline[:MOST_FACTS]:
        value = scores.overall[name]
        between = scores.intervals["overall"][name]
        details = [f"95 %: {number(between[0])} to {number(between[1])}"] if between else []
        details += [f"annotators {number(row['human'])}" for c in ceilings.values() for row in c.rows if _is_overall(row, name)]
        facts.append({"label": label(name), "value": number(value) if np.isfinite(value) else DASH, "details": details})
    return facts


def _is_overall(row: Mapping[str, object], measure: str) -> bool:
    return (row["measure"], row["behavior"], row["annotator"]) == (measure, "", "")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def format_card(seconds: float) -> str:
    """Write a length of time as a person would.

    >>> format_card(65), format_card(600), format_card(10_000)
    ('65 s', '10 min', '2.8 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
