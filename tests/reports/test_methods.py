"""Text for the methods section: complete, citing what it used and nothing else."""

from __future__ import annotations

import re

import pytest

import ethobench as eb
from ethobench.core.errors import ParameterError
from ethobench.reports import render_report, summarize_agreement, summarize_scores
from ethobench.reports.methods import MODELS, REFERENCES, SUITES, describe_methods
from tests.reports.conftest import make_scores, make_truth


def cited(paragraphs: list[str]) -> set[str]:
    """Return the citations in parentheses, such as Cohen 1960."""
    inside = re.findall(r"\(([^()]*)\)", " ".join(paragraphs))
    return {component.strip() for text in inside for component in text.split(";") if re.search(r" (19|20)\d\d$", component)}


def check(paragraphs: list[str], references: list[str]) -> None:
    names = cited(paragraphs)
    assert names <= {*REFERENCES}
    assert {REFERENCES[name] for name in names} == {*references}


def test_scores_name_version_data_and_intervals():
    scores = make_scores(12)
    paragraphs, references = describe_methods(scores)
    check(paragraphs, references)
    (text,) = paragraphs
    assert f"ethobench {eb.__version__} (suite ethobench)" in text
    assert "12 recordings of 6 individuals" in text
    assert "n = 6 individuals" in text
    few = describe_methods(make_scores(4))[0][0]
    assert "no confidence intervals" in few
    assert "Hesterberg" not in few


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_published_suites_are_cited(suite):
    truth = make_truth(0)
    paragraphs, references = describe_methods(eb.score(truth, truth, suite=suite))
    check(paragraphs, references)
    assert SUITES[suite] in paragraphs[0]


def test_agreement_model_and_comparison():
    truth, other = make_truth(0), make_truth(1)
    paragraphs, references = describe_methods(agreement=eb.agreement({"a": truth, "b": other}))
    check(paragraphs, references)
    assert "Fleiss" not in paragraphs[0], "only of three or more"
    check(*describe_methods(agreement=eb.agreement({"a": truth, "b": other, "c": truth})))
    model = eb.create_model("rf", trees=3).fit(eb.load_dataset("synthetic/tag", individuals=2, seconds=20))
    text = eb.methods_text(model=model)
    assert "trained on 2 recordings (" in text
    assert "trees = 3" in text
    assert text.count(REFERENCES[MODELS["rf"]]) == 1
    compared = {"methods": "Groups were compared by permutation tests of individuals with Welch's t as statistic."}
    assert "Permutation p-values should never be zero" in eb.methods_text(comparison=compared)
    with pytest.raises(ParameterError, match="compare_groups"):
        eb.methods_text(comparison={})
    with pytest.raises(ParameterError, match="nothing to describe"):
        eb.methods_text()


def test_reports_end_with_the_text_escaped():
    report = summarize_scores({"model": make_scores()})
    page = render_report(report)
    assert report["methods"]["paragraphs"][0].partition(" (")[0] in page
    report["methods"]["paragraphs"] = ["<script>alert(1)</script>"]
    assert "<p>&lt;script&gt;" in render_report(report)
    truth, other = make_truth(0), make_truth(1)
    result = eb.agreement({"a": truth, "b": other})
    assert "Cohen J (1960)" in render_report(summarize_agreement(result, {"a": truth, "b": other}))
