"""Each step of a decoder against a plain loop."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoding.examples import AB, WITH_OTHER, as_text, confident

from ethobench.core import Behavior, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, MismatchError, ParameterError
from ethobench.decoding.decoder import FORMAT_VERSION, ConfidentBouts, Decoder, prior_factors
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel


@given(st.integers(0, 10**6), st.sampled_from([AB, WITH_OTHER]), st.booleans(), st.integers(0, 30))
def test_default_decoder_agrees_with_prediction(seed, ethogram, exclusive, n):
    random = np.random.default_rng(seed)
    values = random.dirichlet(np.ones(len(ethogram)), n) if exclusive else random.random((n, len(ethogram)))
    values = values * 0.9 if exclusive and ethogram is AB else values
    values[random.random(n) < 0.1] = np.nan
    expected = Prediction(values, ethogram, 10, exclusive=exclusive).annotation
    decoded = Decoder().decode(values, ethogram, 10, exclusive=exclusive)
    assert decoded.observed == expected.observed
    if exclusive or ethogram.background is None:
        np.testing.assert_array_equal(decoded.to_frames(), expected.to_frames())
    else:  # the background fills the rest, whatever its probability
        np.testing.assert_array_equal(decoded.to_frames()[:, :2], expected.to_frames()[:, :2])


def test_thresholds_of_exclusive_behaviors():
    values = np.array([[0.5, 0.2, 0.3], [0.3, 0.25, 0.45], [0.1, 0.1, 0.8]])
    decoder = Decoder(thresholds={"a": 0.5, "b": 0.2, "other": 0.5})
    expected = [max(range(3), key=lambda c, row=row: row[c] / (0.5, 0.2, 0.5)[c]) for row in values]
    assert decoder.decode(values, WITH_OTHER, 1).to_codes().tolist() == expected == [0, 1, 2]


def test_thresholds_of_overlapping_behaviors():
    values = np.array([[0.3, 0.65], [0.29, 0.75], [0.31, 0.7]])
    frames = Decoder(thresholds={"a": 0.3, "b": 0.7}).decode(values, AB, 1, exclusive=False).to_frames()
    assert frames.tolist() == [[True, False], [False, True], [True, True]]


@given(st.floats(0.01, 0.99), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_priors_are_bayes_rule(p, trained, true):
    decoder = Decoder(priors=prior_factors({"a": trained, "b": 1 - trained}, {"a": true, "b": 1 - true}))
    columns, _ = decoder.prepare(Prediction([[p, 1 - p]], Ethogram(["a", "b"], background="b"), 1))
    a, b = p / trained * true, (1 - p) / (1 - trained) * (1 - true)
    assert columns[0] == pytest.approx([a / (a + b), b / (a + b)])
    single = Decoder(priors=prior_factors({"a": trained}, {"a": true}, exclusive=False))
    columns, _ = single.prepare(Prediction([[p]], Ethogram(["a"]), 1, exclusive=False))
    assert columns[0, 0] == pytest.approx(a / (a + b))


def moving_statistic(values, half, function):
    return [function([v for v in values[max(t - half, 0) : t + half + 1] if not math.isnan(v)]) for t in range(len(values))]


@pytest.mark.parametrize(("smoothing", "function"), [("mean", np.mean), ("median", np.median)])
def test_smoothing_of_probabilities(smoothing, function):
    values = np.random.default_rng(0).random((40, 2))
    values[10:12] = np.nan
    decoder = Decoder(smoothing=smoothing, smoothing_seconds=0.5)
    columns, _ = decoder.prepare(Prediction(values, AB, 10, exclusive=False))
    for c in range(2):
        expected = np.array(moving_statistic(values[:, c].tolist(), 2, function))
        expected[10:12] = np.nan
        assert columns[:, c] == pytest.approx(expected, nan_ok=True)


def majority_by_counting(text, half):
    """Return the most frequent letter of each window; ties keep the letter, dots stay and do not count."""
    result = ""
    for t, letter in enumerate(text):
        counts = Counter(text[max(t - half, 0) : t + half + 1].replace(".", ""))
        result += letter if letter == "." or counts[letter] == max(counts.values()) else counts.most_common(1)[0][0]
    return result


@given(st.text("ab.", max_size=30), st.sampled_from([3, 5, 7]))
def test_majority_vote(text, frames):
    decoder = Decoder(smoothing="majority", smoothing_seconds=frames)
    values, expected = confident(text).reshape(-1, 2), majority_by_counting(text, frames // 2)
    assert as_text(decoder.decode(values, AB, 1)) == expected
    occurs = decoder.decode(values, AB, 1, exclusive=False).to_frames()[:, 0]
    assert np.flatnonzero(occurs).tolist() == [t for t, letter in enumerate(expected) if letter == "a"]


POSTPROCESSED = [
    ("aa-aa--aa", {"min_gap_seconds": {"a": 2}}, "aaaaa--aa"),
    ("aa-bb", {"min_gap_seconds": {"a": 5, "b": 5}}, "aa-bb"),  # between two behaviors is not a gap
    ("-a-aa-aaa-", {"min_bout_seconds": {"a": 2}}, "---aa-aaa-"),
    ("a--aaa--bb", {"min_bout_seconds": {"a": 2, "b": 3}}, "---aaa----"),
    ("aaabaaa", {"min_bout_seconds": {"b": 2}}, "aaaaaaa"),
    ("aaaabb---", {"min_bout_seconds": {"b": 3}}, "aaaaa----"),  # half to the bout before, half to the one after
    ("aaaababbbb", {"min_bout_seconds": {"a": 2, "b": 2}}, "aaaaaabbbb"),
    ("-a-a-a-", {"min_gap_seconds": {"a": 2}, "min_bout_seconds": {"a": 5}}, "-aaaaa-"),  # gaps are closed first
    ("a.a", {"min_gap_seconds": {"a": 9}, "min_bout_seconds": {"a": 2}}, "-.-"),  # the gap is unobserved
    ("bbb.a.bbb", {"min_bout_seconds": {"a": 2}}, "bbb.-.bbb"),
    ("", {"min_gap_seconds": {"a": 2}, "min_bout_seconds": {"a": 2}}, ""),
    ("a", {"min_bout_seconds": {"a": 2}}, "-"),
]


@pytest.mark.parametrize(("before", "settings", "after"), POSTPROCESSED)
def test_minimum_durations(before, settings, after):
    decoder = Decoder(**settings)
    named = Ethogram(["a", "b", "-"], background="-")
    values = confident(before, "ab-").reshape(-1, 3)
    assert as_text(decoder.decode(values, named, 1)) == after
    assert as_text(decoder.decode(values, AB, 1)) == after  # without a named background


def test_minimum_durations_of_overlapping_behaviors():
    occurs = np.array([[1, 1, 0, 1, 1, 0, 0, 0, 1], [0, 1, 0, 0, 1, 1, 1, 0, 0]]).T
    decoder = Decoder(min_gap_seconds={"a": 2}, min_bout_seconds={"a": 2, "b": 3})
    frames = decoder.decode(0.1 + 0.8 * occurs, AB, 1, exclusive=False).to_frames().T.astype(int)
    assert frames.tolist() == [[1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0, 0]]


@given(st.text("ab-", max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_no_bout_is_shorter_than_its_minimum(text, a, b):
    decoder = Decoder(min_bout_seconds={"a": a, "b": b}, min_gap_seconds={"a": 2})
    decoded = decoder.decode(confident(text, "ab-").reshape(-1, 3), Ethogram(["a", "b", "-"], background="-"), 1)
    for start, stop, code in zip(decoded.start, decoded.stop, decoded.behavior, strict=True):
        assert code == 2 or stop - start >= (a, b)[code]


def decoders():
    transitions = ((0.0, 0.3, 0.7), (0.5, 0.0, 0.5), (0.4, 0.6, 0.0))
    joint = TransitionModel(("b", "", "a"), (2.0, 3.0, 1.0), (2, 1, 3), transitions)
    single = TransitionModel(("a", ""), (1.0, 4.0), (2, 1), ((0.0, 1.0), (1.0, 0.0)))
    return {
        "plain": Decoder(),
        "thresholds": Decoder(thresholds={"a": 0.3, "b": 0.6}, priors={"a": 2.0}),
        "smooth": Decoder(smoothing="median", smoothing_seconds=1.0),
        "durations": Decoder(min_bout_seconds={"a": 1.0, "b": 0.5}, min_gap_seconds={"a": 0.8}),
        "viterbi": Decoder(transition_models={NO_BEHAVIOR: joint, "a": single}, emission_weight=0.3),
    }


@pytest.mark.parametrize("name", decoders())
def test_decoders_round_trip_through_json(name):
    decoder = decoders()[name]
    assert Decoder.from_dict(json.loads(json.dumps(decoder.to_dict()))) == decoder


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"speed": 1}, "unknown fields speed"),
        ({"smoothing": "wild"}, "none, mean, median, majority, got 'wild'"),
        ({"thresholds": {"a": 1.5}}, "between 0 and 1"),
        ({"thresholds": 3}, "not a valid decoder"),
        ({"emission_weight": 0}, "> 0"),
        ({"priors": {"a": -1}}, "> 0"),
        ({"min_bout_seconds": {"a": -1}}, ">= 0"),
        ({"smoothing_seconds": "long"}, "not a valid decoder"),
        ({"transition_models": {"": {"states": ["a"]}}}, "not a valid transition model"),
    ],
)
def test_invalid_decoders_are_refused(fields, match):
    with pytest.raises(EthobenchError, match=match):
        Decoder.from_dict({"format_version": FORMAT_VERSION, **fields})


@pytest.mark.parametrize("version", [None, 0, FORMAT_VERSION + 1])
def test_unknown_format_versions_are_refused(version):
    with pytest.raises(EthobenchError, match=f"has format_version {version}; this version of ethobench reads {FORMAT_VERSION}"):
        Decoder.from_dict({**Decoder().to_dict(), "format_version": version})


@pytest.mark.parametrize("name", ["plain", "thresholds", "durations", "viterbi"])
@pytest.mark.parametrize("exclusive", [True, False])
def test_the_order_of_behaviors_does_not_matter(name, exclusive):
    values = np.random.default_rng(0).dirichlet(np.ones(3), 200)[:, :2]
    decoder, reordered = decoders()[name], Ethogram(["b", "a"])
    decoded = decoder.decode(values, AB, 10, exclusive=exclusive)
    decoded_reordered = decoder.decode(values[:, ::-1], reordered, 10, exclusive=exclusive).with_ethogram(AB)
    np.testing.assert_array_equal(decoded.to_frames(), decoded_reordered.to_frames())
    assert 0 < len(decoded) < 200


def test_durations_are_in_seconds():
    values = np.repeat(np.random.default_rng(0).dirichlet(np.ones(3), 60)[:, :2], 10, axis=0)
    slow = decoders()["durations"].decode(values[::2], AB, 5)
    fast = decoders()["durations"].decode(values, AB, 10)
    assert (2 * slow.start).tolist() == fast.start.tolist()
    assert (2 * slow.stop).tolist() == fast.stop.tolist()


def test_unpredicted_frames_do_not_break_a_bout():
    joint = TransitionModel(("a", "b", ""), (5.0, 5.0, 5.0), (1, 1, 1), ((0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)))
    values = confident("aaab.aaa..bbbb", "ab", 0.9)
    assert as_text(Decoder(transition_models={NO_BEHAVIOR: joint}).decode(values, AB, 1)) == "aaaa.aaa..bbbb"


def test_transition_models_of_other_behaviors_are_refused():
    with pytest.raises(MismatchError, match="'b', '', 'a', not for 'x', 'y', ''"):
        decoders()["viterbi"].decode(np.full((3, 2), 0.4), Ethogram(["x", "y"]), 10)


def test_rows_of_zeros_are_background():
    assert Decoder().decode(np.zeros((3, 3)), WITH_OTHER, 1).to_codes().tolist() == [2, 2, 2]


def test_bouts_have_confidence_subject_and_target():
    values = np.array([[0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    decoded = Decoder().decode(values, AB, 1, subject="resident", target="intruder")
    assert decoded.confidence == pytest.approx([0.7, 0.9])
    assert decoded.names(decoded.subject) == ["resident", "resident"]
    assert decoded.names(decoded.target) == ["intruder", "intruder"]


def test_point_behaviors_become_events():
    ethogram = Ethogram([Behavior("bite", point=True), Behavior("rest")])
    decoded = Decoder().decode([[0.1, 0.9], [0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]], ethogram, 1)
    bite = decoded.take(decoded.behavior == 0)
    assert (bite.start.tolist(), bite.stop.tolist()) == ([2], [2])


def test_apply_keeps_the_probabilities():
    prediction = Prediction(confident("aabaa"), AB, 1)
    decoded = Decoder(min_bout_seconds={"b": 2.0}).apply(prediction)
    assert decoded.probabilities is prediction.probabilities
    assert as_text(decoded.annotation) == "aaaaa"
    assert as_text(prediction.annotation) == "aabaa"


def test_confident_bouts_are_added_to_the_result_of_the_other_steps():
    values = np.tile([0.8, 0.1, 0.1], (40, 1))
    values[10:14], values[20:22], values[30:34] = [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.3, 0.5, 0.2]
    removing = Decoder(min_bout_seconds={"b": 5.0})
    rule = ConfidentBouts(0.7, min_seconds=3.0)
    decoder = dataclasses.replace(removing, confident_bouts={"b": rule})
    assert len(removing.decode(values, WITH_OTHER, 1.0).spans(1).start) == 0
    spans = decoder.decode(values, WITH_OTHER, 1.0).spans(1)
    assert (spans.start.tolist(), spans.stop.tolist()) == ([10], [14])  # one is too short, one not probable enough
    assert Decoder.from_dict(decoder.to_dict()) == decoder
    overlapping = decoder.decode(values, WITH_OTHER, 1.0, exclusive=False)
    assert overlapping.spans(1).start.tolist() == [10]


def test_invalid_confident_bouts_are_refused():
    with pytest.raises(ParameterError, match="min_probability"):
        ConfidentBouts(0.0)
    saved = Decoder(confident_bouts={"b": ConfidentBouts(0.5)}).to_dict()
    saved["confident_bouts"]["b"]["unknown"] = 1
    with pytest.raises(EthobenchError, match="not a valid decoder"):
        Decoder.from_dict(saved)
