"""Reports of scores: figures contain the values of the scores, and scores that do not belong together are refused."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Dataset, Ethogram, Prediction, Recording, ceiling, load_dataset, score
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.metrics.probabilities import average_precision_of, rank_frames
from ethobench.reports import summarize_scores
from ethobench.reports.rasters import encode
from ethobench.reports.tables import pivot
from tests.reports.conftest import ETHOGRAM, make_prediction, make_scores, make_truth


def figures_of(report, group: int = 0):
    return {figure["id"]: figure for figure in report["groups"][group]["figures"]}


def rows_of(figure):
    return [dict(zip(figure["columns"], row, strict=True)) for row in figure["rows"]]


def one(figure, **cells):
    (row,) = [row for row in rows_of(figure) if cells.items() <= row.items()]
    return row


@pytest.fixture(scope="module")
def report(scores):
    return summarize_scores({"model": scores})


def test_a_report_is_plain_json(report):
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_figures_of_a_model_with_probabilities(report):
    assert list(figures_of(report)) == [
        "scores",
        "ethograms",
        "errors",
        "confusion",
        "individuals",
        "budgets",
        "durations",
        "boundary-errors",
        "precision-recall",
        "reliability",
        "measures",
    ]
    assert all(figure["definition"].endswith(".") for figure in report["groups"][0]["figures"])
    assert report["lead"] == "4 recordings of 2 individuals, 4 min at 10 Hz, suite ethobench"
    assert [fact["label"] for fact in report["facts"]] == ["frame F1", "precision", "recall", "bout F1"]


def test_the_headline_has_the_values_and_intervals_of_the_scores():
    scores = make_scores(12)
    table = figures_of(summarize_scores({"model": scores}))["scores"]
    assert "(n = 6 individuals; in brackets 95 % intervals)" in table["definition"]
    for measure in scores.suite.headline:
        for behavior, values in {"": scores.overall, **scores.behaviors}.items():
            intervals = scores.intervals["behaviors"][behavior] if behavior else scores.intervals["overall"]
            row = one(table, behavior=behavior, measure=measure)
            assert row["value"] == pytest.approx(values[measure], rel=1e-5)
            if intervals[measure] is None:
                assert measure in ("onset_error", "offset_error")  # the same in all
                assert (row["low"], row["high"]) == (None, None)
            else:
                assert (row["low"], row["high"]) == pytest.approx(intervals[measure], rel=1e-5, abs=1e-9)


def test_two_individuals_have_no_intervals_and_the_page_notes_it_once_per_figure(report, scores):
    assert scores.intervals["reason"] == "no interval below 5 individuals"
    for name, columns in (("scores", ("low", "high")), ("individuals", ("low", "high"))):
        figure = figures_of(report)[name]
        assert figure["definition"].count("n = 2 individuals; no interval below 5 individuals") == 1
        assert all(row[column] is None for row in rows_of(figure) for column in columns)
    assert all(fact["details"] == [] for fact in report["facts"])


def test_pivot_table_of_the_scores(report, scores):
    (table,) = pivot(figures_of(report)["scores"], report["groups"][0])
    assert table["columns"][:2] == ["frame F1", "precision"]
    assert [(row["label"], row["style"], row["color"]) for row in table["rows"]] == [
        ("all behaviors", "total", None),
        ("rest", "", 0),
        ("run", "", 1),
        ("other", "quiet", None),
    ]
    cell = table["rows"][0]["cells"][0]
    assert cell["value"] == f"{scores.overall['f1']:.3f}"
    assert cell["gauge"]["at"] == pytest.approx(100 * scores.overall["f1"], abs=0.06)


def test_errors_add_up_to_the_wrong_time(report, scores):
    errors = rows_of(figures_of(report)["errors"])
    wrong = sum((pair.truth.to_codes() != pair.pred.to_codes()).sum() for pair in scores.pairs) / 10
    assert sum(row["seconds"] for row in errors if row["behavior"] == "") == pytest.approx(wrong)
    for name in ("rest", "run"):
        code = ETHOGRAM.code(name)
        expected = sum((pair.truth.to_frames()[:, code] != pair.pred.to_frames()[:, code]).sum() for pair in scores.pairs) / 10
        assert sum(row["seconds"] for row in errors if row["behavior"] == name) == pytest.approx(expected)
        assert sum(row["share"] for row in errors if row["behavior"] == name) == pytest.approx(1, abs=1e-5)


def test_confusion_and_budgets_count_the_frames(report, scores):
    figures = figures_of(report)
    matrix = np.array(scores.confusion()["matrix"])
    for i, true in enumerate(ETHOGRAM.names):
        for j, predicted in enumerate(ETHOGRAM.names):
            row = one(figures["confusion"], truth=true, prediction=predicted)
            assert row["frames"] == matrix[i, j]
            assert row["share"] == pytest.approx(matrix[i, j] / matrix[i].sum(), rel=1e-5)
        assert one(figures["budgets"], source="truth", behavior=true)["share"] == pytest.approx(matrix[i].sum() / matrix.sum(), rel=1e-5)
        assert one(figures["budgets"], source="model", behavior=true)["seconds"] == pytest.approx(matrix[:, i].sum() / 10)


def test_spread_shows_every_individual(report, scores):
    figure = figures_of(report)["individuals"]
    for name, result in scores.per("individual").items():
        row = one(figure, individual=name, measure="f1", behavior="run")
        assert row["value"] == pytest.approx(result["behaviors"]["run"]["f1"], rel=1e-5)


def test_distributions_hold_every_bout(report, scores):
    figures = figures_of(report)
    durations = [row for row in rows_of(figures["durations"]) if row["behavior"] == "run" and row["source"] == "truth"]
    lengths = np.concatenate(
        [(track.truth.stop - track.truth.start) / 10 for c in scores.pairs for track in c.tracks if track.behavior == 1]
    )
    for row in durations:
        assert row["bouts"] == ((lengths >= row["low_s"]) & (lengths < row["high_s"])).sum()
    assert sum(row["bouts"] for row in durations) == len(lengths)
    late = [row for row in rows_of(figures["boundary-errors"]) if row["edge"] == "onset" and row["behavior"] == "run"]
    assert sum(row["bouts"] for row in late) == sum(_matches(pair, 1) for pair in scores.pairs)
    assert (late[0]["low_s"], late[-1]["high_s"]) == (None, None)
    inner = late[1:-1]
    assert all(a["high_s"] == pytest.approx(b["low_s"]) for a, b in pairwise(inner))


def _matches(pair, code: int) -> int:
    from ethobench.metrics.bouts import matched_pairs

    return sum(len(matched_pairs(track)[0]) for track in pair.tracks if track.behavior == code)


def test_curves_follow_the_ranked_scores(report, scores):
    figures = figures_of(report)
    points = [row for row in rows_of(figures["precision-recall"]) if row["behavior"] == "rest"]
    assert points[0]["average_precision"] == pytest.approx(average_precision_of(rank_frames(scores.pairs, 0)), abs=2e-3)
    truth = np.concatenate([c.truth.to_frames()[:, 0] for c in scores.pairs])
    prediction = np.concatenate([c.probabilities[:, 0] for c in scores.pairs])
    for row in points:
        above = prediction >= row["threshold"] - 1e-9
        assert row["recall"] == pytest.approx((above & truth).sum() / truth.sum(), rel=1e-5)
        assert row["precision"] == pytest.approx((above & truth).sum() / above.sum(), rel=1e-5)
    assert points[-1]["recall"] == 1
    for row in [row for row in rows_of(figures["reliability"]) if row["behavior"] == "rest"]:
        inside = np.floor(prediction * 10) == np.floor(row["probability"] * 10)
        assert row["frames"] == inside.sum()
        assert row["share"] == pytest.approx(truth[inside].mean(), rel=1e-5)


def test_without_probabilities_there_are_no_curves_and_for_one_individual_no_spread():
    truth = make_truth(0)
    figures = figures_of(summarize_scores({"model": score(truth.shift(2), truth)}))
    assert not {"precision-recall", "reliability", "individuals", "ceiling"} & {*figures}


@given(st.lists(st.integers(0, 1), max_size=40))
def test_runs_of_a_raster_can_be_decoded(mask):
    spans = iv.from_mask(mask)
    runs = encode(spans)
    ends = np.cumsum(runs)
    assert ends[::2].tolist() == spans.start.tolist()
    assert ends[1::2].tolist() == spans.stop.tolist()


def test_lanes_of_subjects_targets_points_and_unobserved_frames():
    ethogram = Ethogram(["chase", Behavior("bite", point=True)])
    observed = iv.intervals([0], [80])
    truth = Annotation.from_bouts(
        [10, 30, 5],
        [20, 40, 5],
        ["chase", "chase", "bite"],
        ethogram,
        10,
        100,
        subject=["x", "y", "x"],
        target=["y", "x", None],
        observed=observed,
    )
    (recording,) = figures_of(summarize_scores({"model": score(truth, truth)}))["ethograms"]["recordings"]
    assert [(lane["name"], lane["subject"]) for lane in recording["lanes"]] == [
        ("truth", "x"),
        ("truth", "y"),
        ("model", "x"),
        ("model", "y"),
    ]
    lane = recording["lanes"][0]
    assert lane["tracks"] == [{"behavior": 0, "target": "y", "runs": [10, 10]}, {"behavior": 1, "target": "", "runs": [5, 0]}]
    assert lane["unobserved"] == [80, 20]


def test_overlapping_behaviors_are_drawn_separately_and_have_no_confusion_matrix():
    frames = np.zeros((100, 2), dtype=bool)
    frames[10:50, 0] = frames[30:70, 1] = True
    truth = Annotation.from_frames(frames, ["a", "b"], 10)
    figures = figures_of(summarize_scores({"model": score(truth, truth)}))
    assert figures["ethograms"]["options"]["overlaps"]
    assert "confusion" not in figures


@pytest.fixture(scope="module")
def two_annotators():
    first = {f"rec{k}": make_truth(k) for k in range(4)}
    recordings = [Recording(name, annotations={"ann1": a, "ann2": a.shift(3)}) for name, a in first.items()]
    return Dataset(tuple(recordings), ETHOGRAM), {name: make_prediction(a, k) for k, (name, a) in enumerate(first.items())}


@pytest.mark.slow
def test_human_ceiling_beside_the_scores_of_the_model(two_annotators):
    data, predictions = two_annotators
    report = summarize_scores({"model": score(predictions, data, annotator="ann1", resamples=20)}, truth="ann1", annotations=data)
    expected = ceiling(data, {name: prediction.annotation for name, prediction in predictions.items()})
    figures = figures_of(report)
    for behavior in ("", "rest", "run"):
        row = one(figures["scores"], behavior=behavior, measure="f1")
        assert row["human"] == pytest.approx(expected.of("f1", behavior)["human"], rel=1e-5)
        ceiling_row = one(figures["ceiling"], behavior=behavior, measure="f1", between="model")
        assert ceiling_row["difference"] == pytest.approx(expected.of("f1", behavior)["difference"], rel=1e-4, abs=1e-7)
        assert ceiling_row["reached"] is expected.of("f1", behavior)["reached"]
    assert [lane["name"] for lane in figures["ethograms"]["recordings"][0]["lanes"]] == ["ann1", "ann2", "model"]
    assert report["facts"][0]["details"][-1] == f"annotators {expected.of('f1')['human']:.3f}"


@pytest.mark.slow
def test_a_recording_scored_against_all_its_annotators_counts_once_in_the_ceiling(two_annotators):
    data, predictions = two_annotators
    against_all = summarize_scores({"model": score(predictions, data, annotator="all", resamples=20)}, annotations=data)
    against_one = summarize_scores({"model": score(predictions, data, annotator="ann1", resamples=20)}, annotations=data)
    assert figures_of(against_all)["ceiling"]["rows"] == figures_of(against_one)["ceiling"]["rows"]


def test_scores_of_an_annotator_have_no_ceiling(two_annotators):
    data, _ = two_annotators
    second = {r.id: r.annotations["ann2"] for r in data}
    report = summarize_scores({"ann2": score(second, data, annotator="ann1", resamples=20)}, truth="ann1", annotations=data)
    assert "ceiling" not in figures_of(report)
    assert not any("ceiling" in note for note in report["notes"])


def test_a_missing_ceiling_is_noted(two_annotators):
    data, predictions = two_annotators
    incomplete = {r.id: dict(list(r.annotations.items())[: 1 + (k > 0)]) for k, r in enumerate(data)}
    report = summarize_scores({"model": score(predictions, data, annotator="ann1", resamples=20)}, annotations=incomplete)
    assert report["notes"][-1:] == ["no human ceiling: it needs two annotators of every recording"]


def test_several_models_share_the_truth(scores):
    report = summarize_scores({"good": scores, "bad": make_scores(4, certainty=1)})
    figures = figures_of(report)
    assert report["title"] == "good and bad against truth"
    assert {row["source"] for row in rows_of(figures["durations"])} == {"truth", "good", "bad"}
    assert [lane["name"] for lane in figures["ethograms"]["recordings"][0]["lanes"]] == ["truth", "good", "bad"]
    assert figures["errors"]["encode"]["facet"] == "model"


def test_scores_that_do_not_belong_together_are_refused(scores):
    with pytest.raises(MismatchError, match="differ in their recordings"):
        summarize_scores({"a": scores, "b": make_scores(3)})
    with pytest.raises(EthobenchError, match="at least one"):
        summarize_scores({})


def test_a_truth_and_a_model_of_the_same_name_are_distinguished(scores):
    report = summarize_scores({"mouse": scores}, truth="mouse")
    assert report["title"] == "mouse against mouse (truth)"
    assert {row["source"] for row in rows_of(figures_of(report)["budgets"])} == {"mouse", "mouse (truth)"}


def test_limit_of_drawn_recordings_is_noted(scores):
    report = summarize_scores({"model": scores}, recordings=2)
    assert len(figures_of(report)["ethograms"]["recordings"]) == 2
    assert "ethograms are drawn for the first 2 of 4 recordings" in report["notes"]


@pytest.mark.parametrize("suite", ["banos", "bebe", "calms21", "rodentbench"])
def test_every_suite_can_be_reported(suite):
    truths = {f"rec{k}": make_truth(k) for k in range(2)}
    predictions = {name: make_prediction(truth, k) for k, (name, truth) in enumerate(truths.items())}
    scores = score(predictions, truths, suite=suite, resamples=20)
    figures = figures_of(summarize_scores({"model": scores}))
    assert {row["measure"] for row in rows_of(figures["scores"])} == {*scores.suite.headline}
    assert {"ethograms", "errors", "confusion", "durations"} <= {*figures}


def test_frames_without_prediction_are_drawn_as_unobserved():
    truth = make_truth(0)
    probabilities = make_prediction(truth, 0).probabilities.copy()
    probabilities[:100] = np.nan
    scores = score(Prediction(probabilities, ETHOGRAM, 10), truth, resamples=0)
    (recording,) = figures_of(summarize_scores({"model": scores}))["ethograms"]["recordings"]
    assert recording["lanes"][1]["unobserved"] == [0, 100]


@pytest.mark.slow
def test_ten_real_recordings_of_two_annotators(data, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_DATA", str(data))
    banos = load_dataset("banos")
    scores = score({r.id: r.annotations["human2"] for r in banos}, banos, annotator="human1", resamples=100)
    report = summarize_scores({"human2": scores}, truth="human1", annotations=banos)
    figures = figures_of(report)
    wrong = sum((c.truth.to_codes() != c.pred.to_codes()).sum() for c in scores.pairs) / 30
    assert sum(row["seconds"] for row in rows_of(figures["errors"]) if row["behavior"] == "") == pytest.approx(wrong, rel=1e-4)
    assert len(figures["ethograms"]["recordings"]) == 10
