"""Arrays, lists, Series and DataFrames in `score`: the same scores as the equivalent annotations, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import ETHOGRAM, FRAME_KINDS, NAMES, random_annotation, random_pairs

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, ParameterError

RATE = 5.0
codes = st.lists(st.integers(-1, 2), min_size=20, max_size=60).map(np.array)


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of a prediction and of a truth, equally long; some behavior is observed in the truth."""
    truth = draw(codes.filter(lambda array: (array >= 0).any()))
    return np.array(draw(st.lists(st.integers(-1, 2), min_size=len(truth), max_size=len(truth)))), truth


def annotate(frames: np.ndarray) -> Annotation:
    return Annotation.from_frames(frames, NAMES, RATE, unobserved=-1)


@given(two_sides(), st.sampled_from(sorted(FRAME_KINDS)), st.sampled_from(sorted(FRAME_KINDS)))
def test_arrays_have_the_scores_of_the_equivalent_annotations(sides, pred_kind, true_kind):
    pred, truth = sides
    expected = eb.score(annotate(pred), annotate(truth), resamples=0)
    scores = eb.score(FRAME_KINDS[pred_kind](pred), FRAME_KINDS[true_kind](truth), rate=RATE, behaviors=NAMES, resamples=0)
    assert scores.ethogram == expected.ethogram
    assert scores.overall == pytest.approx(expected.overall, nan_ok=True, abs=0)
    assert scores.behaviors == {name: pytest.approx(values, nan_ok=True, abs=0) for name, values in expected.behaviors.items()}


@given(two_sides(), st.integers(0, 2**32 - 1), st.booleans())
def test_probabilities_have_the_scores_of_a_prediction(sides, seed, as_table):
    pred, truth = sides
    values = np.random.default_rng(seed).dirichlet(np.ones(3), len(pred))
    values[pred < 0] = np.nan
    expected = eb.score(Prediction(values, Ethogram(NAMES), RATE, exclusive=True), annotate(truth), resamples=0)
    scores = eb.score(pd.DataFrame(values, columns=NAMES) if as_table else values, truth, rate=RATE, behaviors=NAMES, resamples=0)
    assert scores.overall == pytest.approx(expected.overall, nan_ok=True, abs=0)
    assert "map" in scores.overall


@given(st.integers(0, 2**32 - 1))
def test_overlapping_behaviors(seed):
    generator = np.random.default_rng(seed)
    truth, values = generator.random((40, 3)) < 0.5, generator.random((40, 3))
    truth[0] = True  # so that behaviors overlap, and rows need not sum to 1
    expected = eb.score(Prediction(values, Ethogram(NAMES), RATE, exclusive=False), Annotation.from_frames(truth, NAMES, RATE), resamples=0)
    scores = eb.score(values, truth, rate=RATE, behaviors=NAMES, resamples=0)
    assert scores.overall == pytest.approx(expected.overall, nan_ok=True, abs=0)
    assert eb.score(values >= 0.5, truth, rate=RATE, behaviors=NAMES).overall["f1"] == pytest.approx(scores.overall["f1"], nan_ok=True)


@pytest.mark.slow
def test_dicts_of_arrays_have_intervals_over_individuals():
    pairs = random_pairs()
    arrays = [{name: pair[side].to_codes() for name, pair in pairs.items()} for side in range(2)]
    expected = eb.score(pairs)
    for pred, truth in ((*arrays,), ({name: (arrays[0][name], arrays[1][name]) for name in pairs}, None)):
        scores = eb.score(pred, truth, rate=10, behaviors=ETHOGRAM)
        assert scores.intervals == expected.intervals
        assert scores.intervals["overall"]["f1"] is not None
        assert scores.to_latex() == expected.to_latex()
    owners = {name: f"mouse{int(name[1:]) // 2}" for name in pairs}
    assert eb.score(*arrays, rate=10, behaviors=ETHOGRAM, individuals=owners).individuals == ("mouse0", "mouse1", "mouse2")


def test_rate_and_names_are_those_of_the_other_side():
    pairs = random_pairs()
    pred = {name: p.to_codes() for name, (p, _) in pairs.items()}
    data = Dataset(tuple(Recording(n, annotations={"me": t}) for n, (_, t) in pairs.items()), ETHOGRAM)
    expected = eb.score(pairs).overall
    assert eb.score(pred, data).overall == pytest.approx(expected, nan_ok=True)
    assert eb.score(pred, {name: t for name, (_, t) in pairs.items()}).overall == pytest.approx(expected, nan_ok=True)
    single = Dataset(data.recordings[:1], ETHOGRAM)
    assert eb.score(pred["r0"], single).overall == pytest.approx(eb.score(pairs["r0"][0], single).overall, nan_ok=True)


def test_labels_need_no_names():
    scores = eb.score(["run", "run", "", "rest"], ["run", "rest", "rest", "rest"], rate=1)
    assert scores.ethogram == Ethogram(["rest", "run"])
    assert scores.behaviors["rest"]["recall"] == pytest.approx(1 / 3)
    assert {*eb.score(["run", "rest"], ["run", "run"], rate=1, behaviors=["run"]).behaviors} == {"run"}
    with pytest.raises(NotFoundError, match="no frame has the behavior 'ruun'; did you mean 'run'"):
        eb.score(["run", "rest"], ["run", "run"], rate=1, behaviors=["ruun"])


def test_one_behavior_is_a_vector_of_zeros_and_ones():
    truth = np.array([0, 1, 1, 1, 0, 0])
    expected = eb.score(Annotation.from_frames(truth[:, None], ["lick"], 1), Annotation.from_frames(truth[:, None], ["lick"], 1)).overall
    for pred in (truth, truth.astype(bool), truth.astype(float)):
        assert eb.score(pred, truth, rate=1, behaviors=["lick"]).overall == pytest.approx(expected, nan_ok=True)
    assert eb.score([0.2, 0.7, 0.9, 0.6, 0.1, 0.3], truth, rate=1, behaviors="lick").overall["f1"] == 1


def test_a_saturated_recording_among_probabilities_keeps_its_probabilities():
    truth = {"a": [0, 1, 1, 0], "b": [0, 1, 0, 0]}
    pred = {"a": np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]]), "b": np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]])}
    assert eb.score(pred, truth, rate=1, behaviors=["x", "y"]).overall["map"] == 1


ROWS = [[0.7, 0.1], [0.2, 0.9]]


@pytest.mark.parametrize(
    ("pred", "truth", "options", "error", "message"),
    [
        ([0, 1], [0, 1], {"behaviors": ["a", "b"]}, EthobenchError, "the truth: an array has no frame rate; pass it as rate="),
        ([0, 1], [0, 1], {"rate": 1}, EthobenchError, "has codes without names; pass behaviors="),
        ([[0, 1], [1, 0]], ["a", "b"], {"rate": 1}, EthobenchError, "the prediction has columns without names"),
        ([0, 3], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, NotFoundError, "code 3, but the 2 behaviors have codes 0 to 1, and -1"),
        ([0, -2], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, NotFoundError, "code -2"),
        ([1, 2], [1, 2], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "codes 1 to 2 for 2 behaviors.*subtract 1 if yours"),
        ([0, 1, 0], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "the prediction has 3 frames, the truth 2"),
        ([0.5, 1], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "must have integer codes"),
        (ROWS, [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, r"sum to 1 in 2 of 2 frames \(frame 0: 0.8\); pass exclusive="),
        (ROWS, [0, 1], {"rate": 1, "behaviors": ["a", "b"], "exclusive": True}, MismatchError, "sum to 1.1; divide each row"),
        ([0, 1], ROWS, {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "the truth has probabilities, which only predictions may have"),
        ([[3.0, -2], [1, 0]], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, ParameterError, "from -2 to 3; .*apply softmax"),
        ([[0, 2], [1, 0]], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, ParameterError, "codes have one axis"),
        ([[np.nan, 1], [1, 0]], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "frame 0 is unobserved in some columns only"),
        (
            np.zeros((2, 5)),
            [0, 1],
            {"rate": 1, "behaviors": ["a", "b"]},
            MismatchError,
            "5 columns for 2 behaviors.*axes seem to be swapped",
        ),
        (np.zeros((2, 2, 2)), [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "3 axes.*dict of arrays"),
        ([[0, 1], [0]], [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, MismatchError, "rows of different lengths.*dict of recording"),
        (["a", 1], ["a", "b"], {"rate": 1}, MismatchError, "the prediction mixes text with other values"),
        ({"m1": [0, 1]}, {"m1": [0, 7]}, {"rate": 1, "behaviors": ["a", "b"]}, NotFoundError, "the truth of recording 'm1' has code 7"),
        (pd.DataFrame({"a": [0, 1]}), [0, 1], {"rate": 1, "behaviors": ["a", "b"]}, NotFoundError, "no column 'b'. Its columns: a"),
        (pd.DataFrame({"a": [0, 1], "b": ["x", "y"]}), [0, 1], {"rate": 1}, MismatchError, "columns with text cannot be behaviors: b"),
        (
            pd.Series([0, 1], index=[1, 0]),
            pd.Series([0, 1]),
            {"rate": 1, "behaviors": ["a", "b"]},
            MismatchError,
            "different pandas indexes",
        ),
        (random_annotation(0), random_annotation(0), {"exclusive": True}, EthobenchError, "`exclusive` is an option for arrays"),
        (random_annotation(0), random_annotation(0), {"rate": 10}, EthobenchError, "`rate` is an option for files and arrays"),
        (np.zeros(300, dtype="datetime64[s]"), random_annotation(0), {}, MismatchError, "must be numbers or text"),
    ],
)
def test_invalid_arrays_are_refused(pred, truth, options, error, message):
    with pytest.raises(error, match=message):
        eb.score(pred, truth, **options)


def test_probabilities_of_exactly_zero_and_one_are_probabilities():
    truth = np.array([0, 1, 1, 0])
    certain = np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0], [0.6, 0.4]])
    assert eb.score(certain, truth, behaviors=["a", "b"], rate=10).overall["map"] == 1
    for wrong in (certain + 0.01, certain - 0.01):
        with pytest.raises(EthobenchError, match="apply softmax or sigmoid"):
            eb.score(wrong, truth, behaviors=["a", "b"], rate=10)


@pytest.mark.parametrize(("background", "accepted"), [(None, (2, 3)), ("b", (2,))])
def test_columns_of_probabilities(background, accepted):
    """One for each behavior, and one for none of them unless a behavior is the background."""
    ethogram, truth = Ethogram(["a", "b"], background), np.array([0, 0, 1, 1])
    for n in (1, 2, 3, 4):
        values = np.full((4, n), 1 / n)
        if n in accepted:
            assert eb.score(values, truth, behaviors=ethogram, rate=1).recordings
        else:
            with pytest.raises(MismatchError, match=f"{n} columns? for 2 behaviors"):
                eb.score(values, truth, behaviors=ethogram, rate=1)


@pytest.mark.parametrize("missing", [-1.0, np.nan])
def test_floating_codes_may_be_unobserved(missing):
    frames = np.array([0.0, 0.0, 1.0, missing, missing, 1.0])
    scores = eb.score(frames, np.array([0, 0, 1, 1, -1, 1]), behaviors=["a", "b"], rate=1, resamples=0)
    assert scores.behaviors["b"]["recall"] == pytest.approx(2 / 3)
    assert scores.overall["accuracy"] == pytest.approx(4 / 5)
    with pytest.raises(EthobenchError, match="-2"):
        eb.score(np.array([0.0, -2.0]), np.array([0, 1]), behaviors=["a", "b"], rate=1)


def test_names_that_no_frame_has_are_refused_only_if_another_label_is_similar():
    labels = ["run", "rest", "groom", "grooming"]
    assert {*eb.score(labels, labels, behaviors=["run", "hide"], rate=1).behaviors} == {"run", "hide"}
    assert {*eb.score(labels, labels, behaviors=["groom", "run"], rate=1).behaviors} == {"groom", "run"}
    with pytest.raises(NotFoundError, match=r"no frame has the behavior 'rests'; did you mean 'rest'\? Labels: groom, grooming, rest, run"):
        eb.score(labels, labels, behaviors=["run", "rests"], rate=1)


def test_codes_that_start_at_one_are_refused():
    """Code n is a frame without behavior, and plausible only beside code 0."""
    for codes, is_valid in (([1, 2, 2], False), ([2, 2, 2], False), ([0, 1, 2], True), ([1, 1, 1], True), ([0, 2, 2], True)):
        if is_valid:
            assert eb.score(codes, codes, behaviors=["a", "b"], rate=1).overall["accuracy"] == 1
        else:
            with pytest.raises(MismatchError, match=f"has codes {min(codes)} to 2 for 2 behaviors, which have codes 0 to 1: subtract 1"):
                eb.score(codes, codes, behaviors=["a", "b"], rate=1)
    with pytest.raises(NotFoundError, match="has code 3, but the 2 behaviors have codes 0 to 1"):
        eb.score([0, 3], [0, 1], behaviors=["a", "b"], rate=1)
