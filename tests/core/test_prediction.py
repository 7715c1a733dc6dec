"""Predictions: what is exclusive, what could be predicted."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError

NAMES = ("attack", "mount", "sniff", "other")


def softmax(n: int, columns: int, seed: int, sharpness: float = 1.0) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(0, sharpness, (n, columns))
    powers = np.exp(logits)
    return powers / powers.sum(axis=1, keepdims=True)


def ethogram_of(columns: int, background: bool) -> Ethogram:
    names = [f"b{i}" for i in range(columns)]
    return Ethogram(names, names[-1] if background else None)


@given(
    st.integers(2, 12),
    st.sampled_from([1, 2, 3, 5, None]),
    st.integers(0, 9),
    st.booleans(),
    st.sampled_from(["float64", "float32", "float16"]),
)
def test_rounding_does_not_make_behaviors_overlap(columns, decimals, seed, background, dtype):
    values = softmax(300, columns, seed)
    rounded = (values if decimals is None else values.round(decimals)).astype(dtype)
    prediction = Prediction(rounded, ethogram_of(columns, background), 30)
    assert prediction.exclusive
    assert "exclusive" in prediction.notes[0].message


@given(st.integers(2, 8), st.integers(0, 9))
def test_bytes_do_not_make_behaviors_overlap(columns, seed):
    values = np.rint(softmax(300, columns, seed) * 255) / 255
    assert Prediction(values, ethogram_of(columns, True), 30).exclusive


@given(st.integers(2, 12), st.sampled_from([0, 1, 2, 4, None]), st.integers(0, 9), st.booleans())
def test_independent_probabilities_overlap_however_they_are_rounded(columns, decimals, seed, background):
    values = np.random.default_rng(seed).uniform(0, 1, (300, columns))
    rounded = values if decimals is None else values.round(decimals)
    prediction = Prediction(rounded, ethogram_of(columns, background), 30)
    assert not prediction.exclusive
    assert "overlapping" in prediction.notes[0].message


def test_rounding_is_inferred_from_all_frames():
    """A certain first frame looks rounded; the others show that they are not."""
    certain = np.eye(4)[[0]]
    values = np.concatenate([certain, softmax(300, 4, 0)])
    assert "rounded" not in Prediction(values, NAMES, 30).notes[0].message
    assert "rounded to 0.01" in Prediction(values.round(2), NAMES, 30).notes[0].message
    sums_above_one = np.concatenate([certain, softmax(300, 4, 0) + 0.02])
    assert not Prediction(sums_above_one.clip(0, 1), NAMES, 30).exclusive


def test_a_stated_exclusivity_applies_without_a_note():
    values = softmax(50, 4, 0)
    ethogram = Ethogram(NAMES, "other")
    for exclusive in (True, False):
        stated = [
            Prediction(values, ethogram, 30, exclusive=exclusive),
            Prediction(values, Ethogram(NAMES, "other", exclusive=exclusive), 30),
        ]
        for prediction in stated:
            assert prediction.exclusive is exclusive
            assert prediction.notes == ()
    overlapping = Annotation.from_bouts([0, 5], [10, 15], ["attack", "mount"], ethogram, 30, 50)
    assert Prediction(values, ethogram, 30, annotation=overlapping).exclusive is False


def test_rounded_probabilities_have_the_same_scores():
    rng = np.random.default_rng(1)
    codes = np.repeat(rng.integers(0, 4, 60), 25)
    logits = rng.normal(0, 1, (len(codes), 4)) + 1.5 * np.eye(4)[codes]
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    ethogram = Ethogram(NAMES, "other")
    truth = Annotation.from_frames(codes, ethogram, 30)
    exact = eb.score(Prediction(values, ethogram, 30, exclusive=True), truth)
    rounded = eb.score(Prediction(values.round(2), ethogram, 30), truth)
    assert rounded.overall["f1"] == pytest.approx(exact.overall["f1"], abs=0.01)
    assert any("taken to be exclusive" in str(note) for note in rounded.notes)
    assert not any("taken to be" in str(note) for note in exact.notes)


@pytest.mark.parametrize("suite", ["calms21", "bebe"])
def test_suites_that_are_exclusive_by_definition_declare_it(suite):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, 400)
    values = rng.uniform(0, 1, (400, 3)) + np.eye(3)[codes]
    ethogram = Ethogram(NAMES[:3])
    truth = Annotation.from_frames(codes, ethogram, 30)
    scores = eb.score(Prediction(values / 2, ethogram, 30), truth, suite=suite)
    hard = eb.score(Annotation.from_frames(values.argmax(axis=1), ethogram, 30), truth, suite=suite)
    for key in hard.overall:
        if not key.startswith("map"):
            assert scores.overall[key] == pytest.approx(hard.overall[key], nan_ok=True)
    assert not any("taken to be" in str(note) for note in scores.notes)


def test_frames_that_could_not_be_predicted_are_unobserved():
    values = softmax(20, 4, 3)
    ethogram = Ethogram(NAMES, "other")
    truth = Annotation.from_bouts([2], [18], ["attack"], ethogram, 30, 20)
    mask = (np.arange(20) >= 5) & (np.arange(20) < 9)
    for prediction in (
        Prediction(values, ethogram, 30, exclusive=True).without_frames(mask),
        Prediction(values, ethogram, 30, annotation=truth, exclusive=True).without_frames(mask),
        Prediction(np.where(mask[:, None], np.nan, values), ethogram, 30, annotation=truth),
    ):
        assert np.array_equal(prediction.predictable, ~mask)
        assert np.array_equal(iv.to_mask(prediction.annotation.observed.frames, 20), ~mask)
        assert not prediction.annotation.to_frames()[mask].any()
    untouched = Prediction(values, ethogram, 30)
    assert untouched.without_frames(np.zeros(20, dtype=bool)) is untouched


bouts = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from(NAMES)), max_size=8)


@given(bouts, st.lists(st.booleans(), min_size=42, max_size=42))
def test_hiding_frames_cuts_bouts_there_and_nowhere_else(rows, flags):
    mask = np.array(flags)
    start, length, names = zip(*rows, strict=True) if rows else ((), (), ())
    stop = [a + b for a, b in zip(start, length, strict=True)]
    annotation = Annotation.from_bouts(start, stop, list(names), Ethogram(NAMES), 30, 42, comment=["x"] * len(rows))
    hidden = annotation.mark_unobserved(mask)
    assert np.array_equal(hidden.to_frames(), annotation.to_frames() & ~mask[:, None])
    assert np.array_equal(iv.to_mask(hidden.observed.frames, 42), ~mask)
    events = [int(f) for f in annotation.start[annotation.start == annotation.stop]]
    assert sorted(hidden.start[hidden.start == hidden.stop].tolist()) == sorted(f for f in events if not mask[f])
    assert hidden.mark_unobserved(iv.from_mask(mask)) == hidden


def test_predictions_that_do_not_fit_are_refused():
    with pytest.raises(MismatchError, match="has 3 rows"):
        Prediction(softmax(3, 4, 0), Ethogram(NAMES), 30, annotation=Annotation.from_frames([0, 0], Ethogram(NAMES), 30))
    with pytest.raises(MismatchError, match=r"`boundaries` has shape \(1, 3, 4\), expected \(n_models, 3, 2\)"):
        Prediction(softmax(3, 4, 0), Ethogram(NAMES), 30, boundaries=np.zeros((1, 3, 4)))


def test_predictions_are_decoded():
    ethogram = Ethogram(["rest", "walk"])
    exclusive = Prediction([[0.6, 0.4], [0.2, 0.3], [np.nan, np.nan]], ethogram, 10)
    assert exclusive.exclusive
    assert exclusive.annotation.to_codes().tolist() == [0, 2, -1]
    overlapping = Prediction([[0.9, 0.8], [0.1, 0.6]], ethogram, 10)
    assert not overlapping.exclusive
    assert overlapping.annotation.to_frames().tolist() == [[True, True], [False, True]]
    implicit = Prediction([[0.1, 0.2, 0.7]], ethogram, 10)
    assert implicit.annotation.to_codes().tolist() == [2]
    with pytest.raises(EthobenchError, match="between 0 and 1"):
        Prediction([[2.0, 0.0]], ethogram, 10)
    with pytest.raises(MismatchError):
        Prediction([[0.5]], ethogram, 10)
    with pytest.raises(MismatchError, match="frames"):
        Prediction([[0.5, 0.5]], ethogram, 10, annotation=Annotation.from_frames([0] * 20, ethogram, 10))


def test_probabilities_must_be_numbers():
    with pytest.raises(EthobenchError, match="numbers"):
        Prediction([["a"]], Ethogram(["x"]), 10)


def test_notebooks_show_mean_probabilities():
    prediction = Prediction([[0.9, 0.1], [0.5, 0.5], [np.nan, np.nan]], Ethogram(["rest", "walk"]), 10, exclusive=True)
    assert "<td>rest</td><td>0.700</td><td>0.2</td>" in prediction._repr_html_()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_removing_frames_keeps_the_precision_of_the_others(dtype):
    values = np.random.default_rng(0).dirichlet([1, 1], 20).astype(dtype)
    mask = np.arange(20) < 5
    probabilities = Prediction(values, Ethogram(["a", "b"]), 10, exclusive=True).without_frames(mask).probabilities
    assert probabilities.dtype == dtype
    assert np.isnan(probabilities[:5]).all()
    assert np.array_equal(probabilities[5:], values[5:])
    edges = np.random.default_rng(1).uniform(size=(1, 20, 2))
    assert np.array_equal(
        Prediction(values, Ethogram(["a", "b"]), 10, exclusive=True, boundaries=edges).without_frames(mask).boundaries, edges
    )


@pytest.mark.parametrize(
    ("values", "message"), [([[-0.5, 0.3]], "got -0.5 to 0.3"), ([[0.2, 1.5]], "got 0 to 1.5"), ([[0.5, 1.002]], "got 0 to 1.002")]
)
def test_values_beyond_the_tolerance_are_refused(values, message):
    with pytest.raises(EthobenchError, match=message):
        Prediction(values, Ethogram(["a", "b"]), 10)


def test_values_within_the_tolerance_are_accepted():
    prediction = Prediction([[-0.0009, 1.0009], [1.0, 0.0]], Ethogram(["a", "b"]), 10)
    assert prediction.annotation.to_codes().tolist() == [1, 0]
    assert prediction.n_frames == 2
    assert Prediction(np.zeros((0, 2)), Ethogram(["a", "b"]), 10).annotation.n_frames == 0


@pytest.mark.parametrize(("columns", "background"), [(1, None), (4, None), (1, "b"), (3, "b")])
def test_columns_that_do_not_fit_are_refused(columns, background):
    with pytest.raises(MismatchError, match="for 2 behaviors"):
        Prediction(np.zeros((5, columns)), Ethogram(["a", "b"], background), 10)
    with pytest.raises(MismatchError, match="for 2 behaviors"):
        Prediction(np.zeros(2), Ethogram(["a", "b"], background), 10)


@pytest.mark.parametrize("annotation", [Annotation.from_frames([0], ["a"], 20), Annotation.from_frames([1], ["a", "c"], 10)])
def test_annotations_of_another_rate_or_with_other_behaviors_are_refused(annotation):
    with pytest.raises(MismatchError, match="the rate and the behaviors"):
        Prediction([[0.5, 0.5]], Ethogram(["a", "b"]), 10, annotation=annotation)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, np.nan]), min_size=3, max_size=3), max_size=12),
    st.sampled_from(["none", "named", "column"]),
)
def test_frames_are_decoded_one_by_one(rows, background):
    values = np.array(rows, dtype=float).reshape(-1, 3)
    names = ["a", "b"] if background == "column" else ["a", "b", "c"]
    prediction = Prediction(values, Ethogram(names, "c" if background == "named" else None), 10, exclusive=True)
    codes, frames = [], []
    for row in values:
        if np.isnan(row).any():
            codes.append(-1)
            frames.append([False] * len(names))
            continue
        implicit = [1 - sum(row)] if background == "none" else []
        candidates = [*row, *implicit]
        codes.append(candidates.index(max(candidates)))
        frames.append([bool(value >= 0.5) for value in row[: len(names)]])
        if background == "named" and not any(frames[-1]):
            frames[-1][2] = True
    assert prediction.annotation.to_codes().tolist() == codes
    assert prediction.decoded(exclusive=True).to_codes().tolist() == codes
    assert prediction.decoded(exclusive=False).to_frames().tolist() == frames
    assert prediction.predictable.tolist() == [code >= 0 for code in codes]


def test_the_annotation_is_decoded_again_only_if_it_does_not_fit():
    ethogram, values = Ethogram(["a", "b"]), [[0.9, 0.6], [0.2, 0.7]]
    overlapping = Annotation.from_frames(np.array([[1, 1], [0, 0]]), ethogram, 10)
    prediction = Prediction(values, ethogram, 10, annotation=overlapping)
    assert not prediction.exclusive
    assert prediction.decoded(exclusive=False) == overlapping
    assert prediction.decoded(exclusive=True).to_codes().tolist() == [0, 1]
    single = Annotation.from_frames([2, 1], ethogram, 10)
    for stated in (True, False):
        prediction = Prediction(values, ethogram, 10, annotation=single, exclusive=stated)
        assert prediction.decoded(exclusive=True) == prediction.decoded(exclusive=False) == single


def test_the_reason_for_exclusive_behaviors_is_noted():
    named, unnamed = Ethogram(["a", "b"], "b"), Ethogram(["a", "b"])
    for values, ethogram, reason in (
        ([[0.123456, 0.876544]], named, "exclusive, since rows sum to 1;"),
        ([[0.123456, 0.376544]], unnamed, "exclusive, since no row sums to more than 1;"),
        ([[0.123456, 0.376544]], named, "overlapping, since rows do not sum to 1;"),
        ([[0.13, 0.87]], named, r"rows sum to 1 \(values are rounded to 0.01\);"),
    ):
        assert re.search(reason, Prediction(values, ethogram, 10).notes[0].message)


def test_only_behaviors_above_zero_add_to_the_tolerance_for_rounding():
    """Two values that are rounded to 0.1 may each be 0.05 too high, and zeros may not."""
    names = [f"b{k}" for k in range(10)]
    for values, is_exclusive in (((0.6, 0.5), True), ((0.6, 0.6), False)):
        rows = np.zeros((3, 10))
        rows[:, :2] = values
        rows[1, :3] = 0.1, 0.2, 0.3
        assert Prediction(rows, Ethogram(names), 10).exclusive is is_exclusive
