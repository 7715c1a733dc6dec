"""Behaviors that never occur take no rows, no legend and none of the most distinct colors."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, score
from ethobench.metrics import Scores
from ethobench.reports import summarize_scores
from ethobench.reports.page import render_report
from ethobench.reports.score_report import score_group

ETHOGRAM = Ethogram(["other", "chase", "bite", "rest", "clinch", "run"], "other")
NEVER = ("chase", "clinch")


def make_scores(suite: str = "ethobench") -> Scores:
    """Run takes the most time, then rest; bite is a false alarm; chase and clinch are nowhere."""
    truth = np.repeat([3, 5, 0, 5], 50)
    guess = np.where(np.arange(200) < 10, 2, truth)
    sides = [{name: Annotation.from_frames(codes, ETHOGRAM, 10) for name in ("a", "b")} for codes in (guess, truth)]
    return score(*sides, suite=suite, resamples=20)


def names_in(figure) -> set[str]:
    columns = [figure["columns"].index(c) for c in ("behavior", "truth", "prediction") if c in figure["columns"]]
    return {row[index] for row in figure["rows"] for index in columns}


def test_no_figure_has_rows_of_behaviors_that_never_occur():
    (group,) = summarize_scores({"model": make_scores()})["groups"]
    assert len(group["figures"]) > 7
    for figure in group["figures"]:
        assert not names_in(figure) & {*NEVER}, figure["id"]
    assert {"bite", "rest", "run", "other"} <= names_in(group["figures"][0])
    assert group["absent"] == ["never annotated: chase, clinch", "predicted but never annotated: bite"]


def test_colors_go_to_what_occurs():
    (group,) = summarize_scores({"model": make_scores()})["groups"]
    assert {b["name"]: b["color"] for b in group["behaviors"]} == {
        "other": None, "run": 0, "rest": 1, "bite": 2, "chase": 3, "clinch": 4
    }  # fmt: skip
    assert [b["name"] for b in group["behaviors"] if not b["occurs"]] == [*NEVER]


def test_another_annotator_may_show_a_behavior():
    scores = make_scores()
    chased = Annotation.from_frames(np.ones(200, dtype=int), ETHOGRAM, 10)
    truths = {pair.id: pair.truth for pair in scores.pairs}
    report = summarize_scores({"m": scores}, truth="anna", annotations={n: {"anna": t, "ben": chased} for n, t in truths.items()})
    (group,) = report["groups"]
    assert group["absent"][0] == "never annotated: clinch"
    assert next(b for b in group["behaviors"] if b["name"] == "chase")["color"] == 1  # after run, which is as long but has more bouts


@pytest.mark.parametrize("suite", ["banos", "bebe"])
def test_suites_that_count_them_keep_their_scores(suite):
    (group,) = summarize_scores({"model": make_scores(suite)})["groups"]
    figures = {figure["id"]: figure for figure in group["figures"]}
    assert {*NEVER} <= names_in(figures["scores"])
    assert not names_in(figures["budgets"]) & {*NEVER}
    assert f"the means of suite {suite} include them" in group["absent"][0]


@pytest.mark.parametrize(("suite", "counted"), [("ethobench", True), ("banos", False)])
def test_stored_scores_without_recordings(suite, counted):
    stored = Scores.from_states([make_scores(suite).to_state()], resamples=0)
    group = score_group({"model": stored}, {}, truth="truth", recordings=0)
    assert [b["color"] for b in group["behaviors"]] == ([None, 3, 2, 1, 4, 0] if counted else [None, 0, 1, 2, 3, 4])
    assert bool(group["absent"]) == counted


def test_the_page_names_them_in_one_line():
    page = render_report(summarize_scores({"model": make_scores()}))
    assert '<p class="absent">Never annotated: chase, clinch</p>' in page
    assert '<th scope="row">chase' not in page
    assert 'class="swatch behavior-0"></span>run' in page
