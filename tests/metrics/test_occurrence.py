"""Behaviors that never occur, in the scores of every suite, fresh and stored."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, agreement, score
from ethobench.metrics import Scores, suites

ETHOGRAM = Ethogram(["other", "rest", "run", "bite", "chase"], "other")
COUNTS_THEM = {"banos", "bebe"}  # as published, a behavior that is neither there nor predicted is fully right


def pair() -> tuple[dict[str, Annotation], dict[str, Annotation]]:
    """Rest and run are annotated, bite is a false alarm, chase is nowhere."""
    truth = np.repeat([1, 2, 0, 1], 50)
    guess = np.where(np.arange(200) < 10, 3, truth)
    names = ("a", "b")
    return tuple({name: Annotation.from_frames(codes, ETHOGRAM, 10) for name in names} for codes in (guess, truth))


def scored(suite: str) -> Scores:
    guesses, truths = pair()
    return score(guesses, truths, suite=suite, behaviors="all" if suite == "rodentbench" else None, resamples=20)


@pytest.mark.parametrize("suite", suites.names())
def test_scores_know_what_never_occurs(suite):
    scores = scored(suite)
    assert scores.occurrence.never_annotated == ("chase",)
    assert scores.occurrence.only_predicted == ("bite",)
    assert scores.undefined_behaviors == ([] if suite in COUNTS_THEM else ["chase"])
    first, second = scores.occurrence_lines()
    assert first == "never annotated: chase" + (f" (the means of suite {suite} include them)" if suite in COUNTS_THEM else "")
    assert second == "predicted but never annotated: bite"


@pytest.mark.parametrize("suite", suites.names())
def test_stored_scores_know_it_too_or_say_nothing(suite):
    scores = scored(suite)
    stored = Scores.from_states([scores.to_state()], resamples=0)
    if suite in ("ethobench", "calms21", "bebe"):
        assert stored.occurrence.never_annotated == ("chase",)
        assert stored.occurrence.only_predicted == ("bite",)
        assert stored.occurrence.color_indices() == scores.occurrence.color_indices()
        assert stored.absent == scores.absent
    else:
        assert stored.occurrence is None
        assert stored.occurrence_lines() == stored.undefined_behaviors == stored.absent == []


@pytest.mark.parametrize("suite", suites.names())
def test_json_keeps_every_behavior(suite):
    scores = scored(suite)
    plain = scores.to_dict()
    assert "chase" in plain["behaviors"]
    assert plain["absent"] == ["chase"]
    assert plain["notes"][-2:] == scores.occurrence_lines()


def test_agreement_knows_what_nobody_marked():
    guesses, truths = pair()
    found = agreement({name: {"anna": truths[name], "ben": guesses[name]} for name in truths})
    assert found.never_annotated == ("chase",)
    assert found.to_dict()["never_annotated"] == ["chase"]
    assert "chase" in found.to_dict()["behaviors"]
