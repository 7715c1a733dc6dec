"""All scores of some random annotations, as recorded in recorded_scores.json.

Other tests compare each score with its definition. This one notices any other change: of intervals, notes, tables, or of a score in a case
that no definition covers. After an intended change, record the values again with ``python -m tests.metrics.test_recorded_scores``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Behavior, Dataset, Ethogram, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track
from ethobench.metrics.budgets import correct_time_budget, time_budget
from ethobench.metrics.human_ceiling import score_annotators
from ethobench.metrics.scores import Scores

RECORD = "if the change is intended, run `python -m tests.metrics.test_recorded_scores`"
FILE = Path(__file__).with_name("recorded_scores.json")
EXCLUSIVE = Ethogram(["rest", "walk", "groom", "other"], "other")
SOCIAL = Ethogram([Behavior("chase"), Behavior("sniff"), Behavior("call", point=True)])
INDIVIDUALS = {f"r{k}": f"animal {min(k, 5)}" for k in range(7)}


def codes(rng: np.random.Generator, n: int = 120) -> np.ndarray:
    """Return bouts of one to 19 frames; the last behavior before the background is rare."""
    lengths = rng.integers(1, 20, n)
    return np.repeat(rng.choice(4, n, p=[0.4, 0.3, 0.05, 0.25]), lengths)[:n]


def late(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return codes with shifted and exchanged bouts."""
    changed = np.roll(truth, int(rng.integers(-3, 4)))
    start = int(rng.integers(0, len(truth)))
    changed[start : start + 9] = rng.integers(0, 4)
    return changed


def exclusive(seed: int, rate: float = 7.5) -> tuple[Prediction, Annotation, Annotation]:
    """Return probabilities, their annotation with other observed frames, and a truth that is partly observed."""
    rng = np.random.default_rng(seed)
    truth = codes(rng)
    pred = late(truth, rng)
    logits = rng.normal(0, 1, (len(truth), 4)) + 2 * np.eye(4)[pred]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    probabilities[rng.random(len(truth)) < 0.03] = np.nan
    hidden = np.zeros(len(truth), dtype=bool)
    hidden[int(rng.integers(60, 110)) :][:8] = True
    observed = np.roll(hidden, 20)
    return (
        Prediction(probabilities, EXCLUSIVE, rate),
        Annotation.from_frames(pred, EXCLUSIVE, rate, unobserved=observed),
        Annotation.from_frames(truth, EXCLUSIVE, rate, unobserved=hidden),
    )


def social(seed: int, *, confidence: bool = False) -> Annotation:
    """Return overlapping bouts and point events of two animals towards each other, with tracks that are partly observed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 15))
    behavior = rng.integers(0, 3, n)
    start = rng.integers(0, 90, n)
    stop = np.where(behavior == 2, start, start + rng.integers(1, 12, n))
    who = rng.integers(0, 2, n)
    subject = [["m1", "m2"][k] for k in who]
    target = [["m2", "m1"][k] if k + b < 2 else None for k, b in zip(who, behavior, strict=True)]
    tracks = {Track("sniff"): iv.intervals([0], [80]), Track("chase", "m1"): iv.intervals([10], [100])}
    return Annotation.from_bouts(
        start, stop, behavior, SOCIAL, 4.0, 100, subject=subject, target=target, subjects=["m1", "m2"],
        confidence=rng.random(n) if confidence else None, observed=Observed(iv.intervals([0, 50], [45, 100]), tracks if seed % 2 else None),
    )  # fmt: skip


def scores_of(suite: str, kind: str, **options: Any) -> Scores:
    """Return the scores of seven recordings of one kind of annotations."""
    pairs: dict[str, Any] = {}
    for k in range(7):
        if kind == "social":
            pairs[f"r{k}"] = social(k + 100, confidence=True), social(k)
        else:
            probabilities, annotation, truth = exclusive(k)
            pairs[f"r{k}"] = (probabilities if kind == "probabilities" else annotation), truth
    return eb.score(pairs, suite=suite, individuals=INDIVIDUALS, resamples=40, **options)


def summary(suite: str, kind: str, **options: Any) -> dict[str, Any]:
    """Return the scores as plain values; those of single recordings for the annotations with subjects only, to keep the file short."""
    values = scores_of(suite, kind, **options).to_dict()
    return values if kind == "social" and not options else {name: value for name, value in values.items() if name != "recordings"}


def annotators() -> dict[str, dict[str, Annotation]]:
    """Return seven recordings by three annotators, of whom one is missing in one recording."""
    groups: dict[str, dict[str, Annotation]] = {}
    for k in range(7):
        rng = np.random.default_rng(k)
        truth = codes(rng)
        hidden = [np.arange(len(truth)) < 5 * who for who in range(3)]
        groups[f"r{k}"] = {
            name: Annotation.from_frames(late(truth, rng), EXCLUSIVE, 7.5, unobserved=hidden[who])
            for who, name in enumerate(("ann", "bob", "cy"))
            if (k, name) != (3, "cy")
        }
    return groups


def compared() -> dict[str, Any]:
    first, second = scores_of("ethobench", "probabilities"), scores_of("ethobench", "frames")
    return {"comparison": first.compare(second), "bebe": scores_of("bebe", "probabilities").compare(scores_of("bebe", "frames"))}


def descriptions() -> dict[str, Any]:
    scores = scores_of("ethobench", "frames")
    withheld = eb.score({"r0": exclusive(0)[1:]}, suite="bebe")
    joined = Scores.from_states(
        [scores.select(["r0", "r1", "r2"]).to_state(), scores.select(["r3", "r4", "r5", "r6"]).to_state()], resamples=40
    )
    return {
        "table": json.loads(scores.table().to_json(orient="split")),
        "headline": json.loads(scores.headline_table().to_json(orient="split")),
        "latex": scores.to_latex().splitlines(),
        "repr": [repr(scores), repr(withheld)],
        "html": re.sub("<style>.*</style>", "", scores._repr_html_(), flags=re.DOTALL).splitlines(),
        "intervals": [scores.describe_intervals(), withheld.describe_intervals(), withheld.interval_note],
        "confusions": scores.worst_confusions(limit=4, min_share=0.01),
        "occurrence": scores.occurrence_lines(),
        "joined": joined.to_dict()["overall"],
        "selected": scores.select(["r1", "r4"]).to_dict()["overall"],
    }


def of_annotators() -> dict[str, Any]:
    groups = annotators()
    complete = {name: group for name, group in groups.items() if name != "r3"}
    model = {name: exclusive(k)[0] for k, name in enumerate(groups) if name in complete}
    who = {name: INDIVIDUALS[name] for name in complete}
    data = Dataset([Recording(id=name, individual=INDIVIDUALS[name], annotations=group) for name, group in complete.items()], EXCLUSIVE)
    strict, tolerant = (eb.agreement(groups, individuals=INDIVIDUALS, resamples=40, tolerance=t) for t in (0.0, 0.3))
    return {
        "agreement": strict.to_dict(),
        "tolerant": tolerant.to_dict(),
        "rows": json.loads(strict.table(recordings=True).to_json(orient="split")),
        "notes": [strict.interval_note, tolerant.interval_note],
        "ceiling": json.loads(eb.ceiling(complete, model, individuals=who, resamples=40).table().to_json(orient="split")),
        "annotators": score_annotators(data),
        "consensus": [[*map(int, eb.consensus(group).to_codes())] for group in groups.values()],
        "social": eb.agreement({f"r{k}": {"ann": social(k), "bob": social(k + 100)} for k in range(5)}, resamples=40).to_dict(),
        "events": [[*map(int, eb.consensus({name: social(2 * k) for k, name in enumerate("abc")}).spans(code).start)] for code in range(3)],
    }


def budgets() -> dict[str, Any]:
    rows = time_budget(*(exclusive(k)[1] for k in range(4)))
    confusion = np.stack([np.random.default_rng(k).integers(1, 9, (4, 4)) + 20.0 * np.eye(4) for k in range(6)])
    return {
        "exclusive": rows,
        "social": time_budget(*(social(k) for k in range(4))),
        "corrected": correct_time_budget(rows, EXCLUSIVE.names, confusion),
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    **{
        f"{suite}, {kind}": functools.partial(summary, suite, kind)
        for suite, kinds in {
            "ethobench": ("probabilities", "frames", "social"),
            "banos": ("frames", "social"),
            "bebe": ("frames", "probabilities"),
            "calms21": ("probabilities", "social"),
            "mabe2025": ("social",),
            "rodentbench": ("frames", "probabilities"),
        }.items()
        for kind in kinds
    },
    "ethobench, merged tracks": lambda: summary("ethobench", "social", tracks="merge"),
    "comparison": compared,
    "descriptions": descriptions,
    "annotators": of_annotators,
    "budgets": budgets,
}


def plain(value: Any) -> Any:
    """Return what JSON returns, numbers with seven digits."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_) or value is None:
        return None if value is None else bool(value)
    if isinstance(value, int | float | np.number):
        return float(f"{value:.7g}") if np.isfinite(value) else str(value)
    return str(value)


def differences(value: Any, expected: Any, at: str = "") -> list[str]:
    """Return where two plain values differ."""
    if isinstance(value, dict) and isinstance(expected, dict) and [*value] == [*expected]:
        return [line for key in value for line in differences(value[key], expected[key], f"{at}/{key}")]
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        return [line for k in range(len(value)) for line in differences(value[k], expected[k], f"{at}/{k}")]
    if isinstance(value, float) and isinstance(expected, int | float) and not isinstance(expected, bool):
        return [] if value == pytest.approx(expected, rel=1e-6, abs=1e-9) else [f"{at}: {value}, not {expected}"]
    return [] if value == expected else [f"{at}: {value!r}, not {expected!r}"]


@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
@pytest.mark.parametrize("name", CASES)
def test_all_values_are_those_recorded(name):
    expected = json.loads(FILE.read_text(encoding="utf-8"))
    assert differences(plain(CASES[name]()), expected[name]) == [], RECORD


if __name__ == "__main__":
    recorded = {name: plain(case()) for name, case in CASES.items()}
    FILE.write_text(json.dumps(recorded, separators=(",", ":")).replace('},"', '},\n"') + "\n", encoding="utf-8")
