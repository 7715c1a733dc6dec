"""The verb: say how good predictions are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ethobench.core import Annotation, Dataset, Prediction
from ethobench.core.errors import Note
from ethobench.metrics.bootstrap import RESAMPLES
from ethobench.metrics.cases import Case
from ethobench.metrics.labels import label_notes
from ethobench.metrics.pairing import ALL, inferred, join_cases, make_case, make_pairs
from ethobench.metrics.scores import Scores
from ethobench.metrics.suites import Suite, suites


def score(
    pred: Annotation | Prediction | Mapping[str, Any],
    truth: Annotation | Prediction | Mapping[str, Any] | Dataset | None = None,
    *,
    suite: str = "ethobench",
    individuals: Mapping[str, str] | None = None,
    annotator: str | None = None,
    behaviors: Iterable[str] | str | None = None,
    tracks: str = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Scores:
    """Say how good predictions are.

    Parameters
    ----------
    pred : Annotation, Prediction, or mapping
        One prediction; or recordings' names to ``(prediction, truth)``; or recordings' names to predictions, with `truth` a
        Dataset or a mapping of truths.
    truth : Annotation, mapping or Dataset, optional
    suite : str
        Whose definitions: ``"ethobench"``, ``"banos"``, ``"bebe"``, ``"calms21"`` or ``"rodentbench"``.
    individuals : mapping, optional
        Recordings' names to individuals; intervals resample individuals. Each recording is its own unless given.
    annotator : str, optional
        Whose annotations of a Dataset are the truth: a name, ``"consensus"`` or ``"all"``.
    behaviors : iterable of str, optional
        Score only these; ``"all"`` scores every behavior that either side knows.
    tracks : str
        ``"auto"`` scores subjects apart where both sides name them, ``"merge"`` pools them.
    resamples : int
        For the intervals of additive metrics (at most 1,000 for histograms); 0 for none.
    seed : int
        Of the resampling.

    Examples
    --------
    >>> truth = Annotation.from_frames([0, 0, 1, 1], ["rest", "run"], rate=1)
    >>> pred = Annotation.from_frames([0, 0, 0, 1], ["rest", "run"], rate=1)
    >>> scores = score(pred, truth)
    >>> round(scores.overall["f1"], 3), scores.behaviors["run"]["recall"]
    (0.733, 0.5)
    """
    chosen = suites[suite]
    if behaviors is not None and not isinstance(behaviors, str):
        behaviors = list(behaviors)
    pairs, who, metadata = make_pairs(pred, truth, individuals, annotator)
    cases = [
        make_case(name, who[name], p, t, chosen, behaviors=behaviors, tracks=tracks, both=False, metadata=metadata.get(name, {}))
        for name, (p, t) in pairs.items()
    ]
    notes = inferred(pairs, chosen)
    if isinstance(truth, Dataset):
        missing = [r.id for r in truth if r.annotations and r.id not in pairs and f"{r.id}@{next(iter(r.annotations))}" not in pairs]
        if missing:
            notes.append(Note(f"{len(missing)} of {len(truth)} recordings have no prediction: {', '.join(missing[:5])}"))
    notes += _label_notes(pairs, behaviors)
    return score_cases(cases, chosen, resamples=resamples, seed=seed, notes=notes)


def _label_notes(pairs: Mapping[str, tuple[Annotation | Prediction, Annotation]], behaviors: Iterable[str] | str | None) -> list[Note]:
    """Note labels that only the predictions or only the truths use: probably other names of the same behaviors."""
    sides = {
        name: {"the prediction": p.annotation if isinstance(p, Prediction) else p, "the truth": truth} for name, (p, truth) in pairs.items()
    }
    chosen = None if behaviors is None or behaviors == ALL else [behaviors] if isinstance(behaviors, str) else behaviors
    return label_notes(sides, chosen)


def score_cases(cases: list[Case], suite: Suite, *, resamples: int = RESAMPLES, seed: int = 0, notes: Iterable[Note] = ()) -> Scores:
    """Score cases that are already made; ethograms are joined by name, behaviors that nobody looked at are left out."""
    fitted, ethogram, unseen = join_cases(cases, suite)
    owners = {case.id: case.individual for case in fitted}
    scores = Scores(suite, ethogram, owners, cases=fitted, resamples=resamples, seed=seed)
    scores.notes = [*notes, *([Note(f"never looked at, so not scored: {', '.join(unseen)}")] if unseen else []), *scores.notes]
    return scores
