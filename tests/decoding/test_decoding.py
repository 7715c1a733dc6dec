"""Decoders against plain loops, and the choice of one on recordings that noise was added to."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clock import Clock

from ethobench import score
from ethobench.core import Annotation, Behavior, Ethogram, Prediction
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.datasets.semi_markov import State, sample_codes
from ethobench.decoding import viterbi
from ethobench.decoding.decoder import Decoder, prior_factors
from ethobench.decoding.search import DecoderConfig, fit_decoder
from ethobench.decoding.training_data import fit_thresholds
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, fit_transition_models

AB = Ethogram(["a", "b"])
WITH_OTHER = Ethogram(["a", "b", "other"], background="other")


def as_text(annotation):
    """Write an annotation as letters, one for each frame; a dot where nothing was predicted, a dash where nothing goes on."""
    names = [*(b.name[0] for b in annotation.ethogram), "-", "."]
    codes = annotation.to_codes()
    return "".join(names[code] for code in codes)


def sure(text, names="ab", p=0.8):
    """Make probabilities of which the named behavior has `p`, and the others share the rest; NaN for a dot."""
    rows = []
    for letter in text:
        row = [(1 - p) / (len(names) - 1)] * len(names) if letter != "." else [math.nan] * len(names)
        if letter in names:
            row[names.index(letter)] = p
        rows.append(row)
    return np.array(rows)


# -- the most probable sequence -------------------------------------------------------------------------------------------------


def literal_viterbi(evidence, transition_models, rate):
    """Search frame by frame over all stages, with one matrix of steps between them."""
    stages = [min(k, max(int(s * rate), 1)) for k, s in zip(transition_models.stages, transition_models.seconds, strict=True)]
    places = [(c, k) for c in range(len(stages)) for k in range(stages[c])]
    step = np.full((len(places), len(places)), -np.inf)
    for i, (c, k) in enumerate(places):
        leave = min(stages[c] / (transition_models.seconds[c] * rate), 1 - 1e-3)
        step[i, i] = math.log(1 - leave)
        for j, (d, m) in enumerate(places):
            if d == c and m == k + 1:
                step[i, j] = math.log(leave)
            if d != c and k == stages[c] - 1 and m == 0 and transition_models.follow[c][d] > 0:
                step[i, j] = math.log(leave) + math.log(transition_models.follow[c][d])
    best, sources = np.array([evidence[0][c] for c, _ in places]), []
    for row in evidence[1:]:
        ways = best[:, None] + step
        sources.append(ways.argmax(axis=0))
        best = ways.max(axis=0) + [row[c] for c, _ in places]
    path = [int(best.argmax())]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return [places[i][0] for i in reversed(path)]


def random_dynamics(random, n):
    follow = random.random((n, n)) * (1 - np.eye(n)) + 0.01 * (1 - np.eye(n))
    follow /= follow.sum(axis=1, keepdims=True)
    rows = tuple(tuple(map(float, row)) for row in follow)
    return TransitionModel(tuple("abcde"[:n]), tuple(random.uniform(0.05, 3, n).tolist()), tuple(random.integers(1, 5, n).tolist()), rows)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 150), st.sampled_from([0.05, 1.0, 4.0]), st.sampled_from([1, 3, 16]))
def test_search_in_blocks_equals_the_search_frame_by_frame(seed, n, frames, strength, block):
    random = np.random.default_rng(seed)
    transition_models, evidence = random_dynamics(random, n), strength * random.normal(size=(frames, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viterbi, "SHORTEST_BLOCK", block)
        patch.setattr(viterbi, "GROWTH", (1, 2))
        found = viterbi.viterbi_path(evidence, transition_models, 10.0)
    assert found.tolist() == literal_viterbi(evidence, transition_models, 10.0)


def test_search_of_a_longer_recording():
    random = np.random.default_rng(1)
    transition_models, evidence = random_dynamics(random, 4), random.normal(size=(5000, 4))
    assert viterbi.viterbi_path(evidence, transition_models, 10.0).tolist() == literal_viterbi(evidence, transition_models, 10.0)


def test_the_path_is_the_best_of_all_paths():
    random = np.random.default_rng(2)
    transition_models = TransitionModel(("a", "b"), (0.4, 0.7), (1, 1), ((0.0, 1.0), (1.0, 0.0)))
    evidence = random.normal(size=(10, 2))
    leave = [1 / 4, 1 / 7]

    def value(path):
        steps = sum(math.log(leave[x] if x != y else 1 - leave[x]) for x, y in pairwise(path))
        return steps + sum(evidence[t][state] for t, state in enumerate(path))

    assert tuple(viterbi.viterbi_path(evidence, transition_models, 10.0).tolist()) == max(product((0, 1), repeat=10), key=value)


def test_no_inner_bout_is_shorter_than_its_stages():
    random = np.random.default_rng(3)
    transition_models = TransitionModel(("a", "b"), (1.0, 2.0), (3, 6), ((0.0, 1.0), (1.0, 0.0)))
    path = viterbi.viterbi_path(3 * random.normal(size=(2000, 2)), transition_models, 10.0)
    edges = np.flatnonzero(np.diff(path)) + 1
    for start, stop in pairwise(edges):
        assert stop - start >= (3, 6)[path[start]]


def test_one_state_and_no_frames():
    alone = TransitionModel(("a",), (1.0,), (1,), ((0.0,),))
    assert viterbi.viterbi_path(np.zeros((3, 1)), alone, 1.0).tolist() == [0, 0, 0]
    assert viterbi.viterbi_path(np.zeros((0, 1)), alone, 1.0).tolist() == []


@pytest.mark.parametrize(
    ("states", "seconds", "stages", "follow"),
    [
        (("a", "a"), (1.0, 1.0), (1, 1), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 0.0), (1, 1), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 0), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 1), ((0.5, 0.5), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 1), ((0.0, 0.7), (1.0, 0.0))),
        ((), (), (), ()),
    ],
)
def test_impossible_dynamics_are_refused(states, seconds, stages, follow):
    with pytest.raises(EthobenchError):
        TransitionModel(states, seconds, stages, follow)


# -- decoding -------------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([AB, WITH_OTHER]), st.booleans(), st.integers(0, 30))
def test_without_settings_it_decides_as_a_prediction_does(seed, ethogram, exclusive, n):
    random = np.random.default_rng(seed)
    values = random.dirichlet(np.ones(len(ethogram)), n) if exclusive else random.random((n, len(ethogram)))
    values = values * 0.9 if exclusive and ethogram is AB else values
    values[random.random(n) < 0.1] = np.nan
    expected = Prediction(values, ethogram, 10, exclusive=exclusive).annotation
    found = Decoder().decode(values, ethogram, 10, exclusive=exclusive)
    assert found.observed == expected.observed
    if exclusive or ethogram.background is None:
        np.testing.assert_array_equal(found.to_frames(), expected.to_frames())
    else:  # the background is what is left, whatever its own probability
        np.testing.assert_array_equal(found.to_frames()[:, :2], expected.to_frames()[:, :2])


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


def literal_window(values, half, of):
    return [of([v for v in values[max(t - half, 0) : t + half + 1] if not math.isnan(v)]) for t in range(len(values))]


@pytest.mark.parametrize(("kind", "of"), [("mean", np.mean), ("median", np.median)])
def test_smoothing_of_probabilities(kind, of):
    values = np.random.default_rng(0).random((40, 2))
    values[10:12] = np.nan
    decoder = Decoder(smoothing=kind, smooth_seconds=0.5)
    columns, _ = decoder.prepare(Prediction(values, AB, 10, exclusive=False))
    for c in range(2):
        expected = np.array(literal_window(values[:, c].tolist(), 2, of))
        expected[10:12] = np.nan
        assert columns[:, c] == pytest.approx(expected, nan_ok=True)


def literal_majority(text, half):
    """Take the most frequent letter of each window, the frame's own among equals; dots stay and do not count."""
    found = ""
    for t, own in enumerate(text):
        counts = Counter(text[max(t - half, 0) : t + half + 1].replace(".", ""))
        found += own if own == "." or counts[own] == max(counts.values()) else counts.most_common(1)[0][0]
    return found


@given(st.text("ab.", max_size=30), st.sampled_from([3, 5, 7]))
def test_majority(text, frames):
    decoder = Decoder(smoothing="majority", smooth_seconds=frames)
    values, expected = sure(text).reshape(-1, 2), literal_majority(text, frames // 2)
    assert as_text(decoder.decode(values, AB, 1)) == expected
    on = decoder.decode(values, AB, 1, exclusive=False).to_frames()[:, 0]
    assert np.flatnonzero(on).tolist() == [t for t, letter in enumerate(expected) if letter == "a"]


CLEANED = [
    ("aa-aa--aa", {"min_gap": {"a": 2}}, "aaaaa--aa"),
    ("aa-bb", {"min_gap": {"a": 5, "b": 5}}, "aa-bb"),  # between two behaviors it is no gap
    ("-a-aa-aaa-", {"min_bout": {"a": 2}}, "---aa-aaa-"),
    ("a--aaa--bb", {"min_bout": {"a": 2, "b": 3}}, "---aaa----"),
    ("aaabaaa", {"min_bout": {"b": 2}}, "aaaaaaa"),
    ("aaaabb---", {"min_bout": {"b": 3}}, "aaaaa----"),  # half to what comes before, half to what comes after
    ("aaaababbbb", {"min_bout": {"a": 2, "b": 2}}, "aaaaaabbbb"),
    ("-a-a-a-", {"min_gap": {"a": 2}, "min_bout": {"a": 5}}, "-aaaaa-"),  # gaps are closed first
    ("a.a", {"min_gap": {"a": 9}, "min_bout": {"a": 2}}, "-.-"),  # nothing is known of the gap
    ("bbb.a.bbb", {"min_bout": {"a": 2}}, "bbb.-.bbb"),
    ("", {"min_gap": {"a": 2}, "min_bout": {"a": 2}}, ""),
    ("a", {"min_bout": {"a": 2}}, "-"),
]


@pytest.mark.parametrize(("before", "settings", "after"), CLEANED)
def test_short_gaps_and_bouts(before, settings, after):
    decoder = Decoder(**settings)
    named = Ethogram(["a", "b", "-"], background="-")
    values = sure(before, "ab-").reshape(-1, 3)
    assert as_text(decoder.decode(values, named, 1)) == after
    assert as_text(decoder.decode(values, AB, 1)) == after  # with a background that has no name


def test_short_gaps_and_bouts_of_overlapping_behaviors():
    on = np.array([[1, 1, 0, 1, 1, 0, 0, 0, 1], [0, 1, 0, 0, 1, 1, 1, 0, 0]]).T
    decoder = Decoder(min_gap={"a": 2}, min_bout={"a": 2, "b": 3})
    frames = decoder.decode(0.1 + 0.8 * on, AB, 1, exclusive=False).to_frames().T.astype(int)
    assert frames.tolist() == [[1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0, 0]]


@given(st.text("ab-", max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_no_bout_is_shorter_than_asked(text, a, b):
    decoder = Decoder(min_bout={"a": a, "b": b}, min_gap={"a": 2})
    found = decoder.decode(sure(text, "ab-").reshape(-1, 3), Ethogram(["a", "b", "-"], background="-"), 1)
    for start, stop, code in zip(found.start, found.stop, found.behavior, strict=True):
        assert code == 2 or stop - start >= (a, b)[code]


def decoders():
    follow = ((0.0, 0.3, 0.7), (0.5, 0.0, 0.5), (0.4, 0.6, 0.0))
    joint = TransitionModel(("b", "", "a"), (2.0, 3.0, 1.0), (2, 1, 3), follow)
    single = TransitionModel(("a", ""), (1.0, 4.0), (2, 1), ((0.0, 1.0), (1.0, 0.0)))
    return {
        "plain": Decoder(),
        "thresholds": Decoder(thresholds={"a": 0.3, "b": 0.6}, priors={"a": 2.0}),
        "smooth": Decoder(smoothing="median", smooth_seconds=1.0),
        "lengths": Decoder(min_bout={"a": 1.0, "b": 0.5}, min_gap={"a": 0.8}),
        "viterbi": Decoder(transition_models={NO_BEHAVIOR: joint, "a": single}, emission_weight=0.3),
    }


@pytest.mark.parametrize("name", decoders())
def test_decoders_survive_json(name):
    decoder = decoders()[name]
    assert Decoder.from_dict(json.loads(json.dumps(decoder.to_dict()))) == decoder


@pytest.mark.parametrize(
    ("plain", "match"),
    [
        ({"speed": 1}, "no speed"),
        ({"smoothing": "wild"}, "none, mean, median, majority, not 'wild'"),
        ({"thresholds": {"a": 1.5}}, "between 0 and 1"),
        ({"thresholds": 3}, "no decoder"),
        ({"emission_weight": 0}, "above 0"),
        ({"priors": {"a": -1}}, "above 0"),
        ({"min_bout": {"a": -1}}, "0 or more"),
        ({"smooth_seconds": "long"}, "no decoder"),
        ({"transition_models": {"": {"states": ["a"]}}}, "no transition_models"),
    ],
)
def test_what_is_no_decoder_is_refused(plain, match):
    with pytest.raises(EthobenchError, match=match):
        Decoder.from_dict(plain)


@pytest.mark.parametrize("name", ["plain", "thresholds", "lengths", "viterbi"])
@pytest.mark.parametrize("exclusive", [True, False])
def test_the_order_of_behaviors_does_not_matter(name, exclusive):
    values = np.random.default_rng(0).dirichlet(np.ones(3), 200)[:, :2]
    decoder, turned = decoders()[name], Ethogram(["b", "a"])
    one = decoder.decode(values, AB, 10, exclusive=exclusive)
    other = decoder.decode(values[:, ::-1], turned, 10, exclusive=exclusive).with_ethogram(AB)
    np.testing.assert_array_equal(one.to_frames(), other.to_frames())
    assert 0 < len(one) < 200


def test_decoding_is_in_seconds():
    values = np.repeat(np.random.default_rng(0).dirichlet(np.ones(3), 60)[:, :2], 10, axis=0)
    slow = decoders()["lengths"].decode(values[::2], AB, 5)
    fast = decoders()["lengths"].decode(values, AB, 10)
    assert (2 * slow.start).tolist() == fast.start.tolist()
    assert (2 * slow.stop).tolist() == fast.stop.tolist()


def test_unpredicted_frames_do_not_break_a_bout():
    joint = TransitionModel(("a", "b", ""), (5.0, 5.0, 5.0), (1, 1, 1), ((0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)))
    values = sure("aaab.aaa..bbbb", "ab", 0.9)
    assert as_text(Decoder(transition_models={NO_BEHAVIOR: joint}).decode(values, AB, 1)) == "aaaa.aaa..bbbb"


def test_dynamics_of_other_behaviors_are_refused():
    with pytest.raises(MismatchError, match="'b', '', 'a'; these are 'x', 'y', ''"):
        decoders()["viterbi"].decode(np.full((3, 2), 0.4), Ethogram(["x", "y"]), 10)


def test_rows_that_say_nothing_are_background():
    assert Decoder().decode(np.zeros((3, 3)), WITH_OTHER, 1).to_codes().tolist() == [2, 2, 2]


def test_bouts_carry_confidence_and_names():
    values = np.array([[0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    found = Decoder().decode(values, AB, 1, subject="resident", target="intruder")
    assert found.confidence == pytest.approx([0.7, 0.9])
    assert found.names(found.subject) == ["resident", "resident"]
    assert found.names(found.target) == ["intruder", "intruder"]


def test_point_behaviors_become_events():
    ethogram = Ethogram([Behavior("bite", point=True), Behavior("rest")])
    found = Decoder().decode([[0.1, 0.9], [0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]], ethogram, 1)
    bite = found.take(found.behavior == 0)
    assert (bite.start.tolist(), bite.stop.tolist()) == ([2], [2])


def test_apply_keeps_the_probabilities():
    prediction = Prediction(sure("aabaa"), AB, 1)
    decoded = Decoder(min_bout={"b": 2.0}).apply(prediction)
    assert decoded.probabilities is prediction.probabilities
    assert as_text(decoded.annotation) == "aaaaa"
    assert as_text(prediction.annotation) == "aabaa"


# -- learning -------------------------------------------------------------------------------------------------------------------


def truth_of(text, ethogram=AB, rate=1.0):
    codes = [".ab-".index(letter) - 1 for letter in text]
    return Annotation.from_frames(codes, ethogram, rate, unobserved=-1)


def test_dynamics_are_counted():
    truths = [truth_of("aa-bbb--aaaa-b"), truth_of("bbaa..aab--b")]
    learnt = fit_transition_models(truths, exclusive=True)[NO_BEHAVIOR]
    assert learnt.states == ("a", "b", NO_BEHAVIOR)
    # bouts that are whole, with something known before and after: a 4; b 3, 1; nothing 1, 2, 1, 2
    assert learnt.seconds == pytest.approx((4.0, 2.0, 1.5))
    # followed by, half a time more than seen: a by b once and by nothing twice; b by a and nothing; nothing by a and by b
    assert np.array(learnt.follow) == pytest.approx(np.array([[0, 1.5 / 4, 2.5 / 4], [1.5 / 4, 0, 2.5 / 4], [1.5 / 5, 3.5 / 5, 0]]))
    assert learnt.stages == (1, 1, 1)


def test_regular_durations_get_more_stages():
    regular, varied = "a" * 10 + "b" * 10, "a" * 10
    text = varied.join(["b" * k for k in (1, 30, 2, 25, 1, 40, 3)])
    learnt = fit_transition_models([truth_of(regular * 5), truth_of(text)], exclusive=True, most_stages=4)[NO_BEHAVIOR]
    assert learnt.stages[0] == 1  # no spread at all in a says nothing
    text = "-".join(letters * (10 + k % 3) for k, letters in enumerate("abababab"))
    learnt = fit_transition_models([truth_of(f"-{text}-")], exclusive=True, most_stages=4)[NO_BEHAVIOR]
    assert learnt.stages[:2] == (4, 4)


def test_dynamics_of_overlapping_behaviors():
    frames = np.array([[0, 1, 1, 0, 0, 0, 1, 0], [1, 1, 0, 0, 1, 1, 1, 1]]).T
    learnt = fit_transition_models([Annotation.from_frames(frames, AB, 1)], exclusive=False)
    assert learnt["a"].states == (NO_BEHAVIOR, "a")
    assert learnt["a"].seconds == pytest.approx((3.0, 1.5))
    assert learnt["b"].seconds == pytest.approx((2.0, 6.0))  # no bout is whole: six seconds in which one ended


def noisy(seed, exclusive=True, n=3000, strength=2.0):
    """Draw a truth, and probabilities that are right more often than not, with noise that lasts a few frames."""
    random = np.random.default_rng(seed)
    states = (State("a", 1.5, 3.0, 0.3), State("b", 4.0, 2.0, 0.4), State("other", 5.0, 1.5, 1.0))
    codes = sample_codes(states, n, 30.0, random)
    noise = random.normal(size=(n, 3))
    for t in range(1, n):
        noise[t] = 0.7 * noise[t - 1] + 0.7 * noise[t]
    scores = strength * np.eye(3)[codes] + noise
    values = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) if exclusive else 1 / (1 + np.exp(1 - scores))
    ethogram = WITH_OTHER if exclusive else AB
    return Prediction(values[:, : len(ethogram)], ethogram, 30.0, exclusive=exclusive), Annotation.from_frames(codes, ethogram, 30.0)


def f1s(predictions, truths, decoder):
    decoded = {name: decoder.apply(p).annotation for name, p in predictions.items()}
    overall = score(decoded, truths, resamples=0).overall
    return overall["f1"], overall["bout_f1"]


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [True, False])
def test_a_chosen_decoder_mends_bouts_on_new_recordings(exclusive):
    seen = {str(seed): noisy(seed, exclusive, n=2400) for seed in range(3)}
    new = {str(seed): noisy(seed, exclusive) for seed in range(10, 12)}
    decoder, trials = fit_decoder({k: p for k, (p, _) in seen.items()}, {k: t for k, (_, t) in seen.items()})
    predictions, truths = ({k: pair[i] for k, pair in new.items()} for i in (0, 1))
    before, after = f1s(predictions, truths, Decoder()), f1s(predictions, truths, decoder)
    assert after[1] > before[1] + 0.3
    assert after[0] > before[0] - 0.005
    chosen = [trial for trial in trials if trial.chosen]
    assert len(chosen) == 1
    assert chosen[0].value == pytest.approx((chosen[0].f1 + chosen[0].bout_f1) / 2)
    assert chosen[0].value >= max(trial.value for trial in trials) - 1e-3
    assert trials[0].config == DecoderConfig()


def test_smoothing_alone_looks_for_no_sequences():
    made = {str(seed): noisy(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in made.items()} for i in (0, 1))
    decoder, trials = fit_decoder(predictions, truths, sequences=False)
    assert not decoder.transition_models
    assert {trial.config.stages for trial in trials} == {0}
    assert f1s(predictions, truths, decoder)[1] > f1s(predictions, truths, Decoder())[1]


def test_where_there_is_nothing_to_compare_the_simplest_decoder_is_taken():
    prediction = Prediction(np.tile([0.1, 0.1, 0.8], (100, 1)), WITH_OTHER, 10.0)
    truths = {name: Annotation.from_frames(np.full(100, 2), WITH_OTHER, 10.0) for name in "xy"}
    decoder, trials = fit_decoder(dict.fromkeys("xy", prediction), truths)
    assert all(math.isnan(trial.value) for trial in trials)
    assert decoder == Decoder()


@pytest.mark.slow
def test_the_choice_is_the_same_each_time():
    made = {str(seed): noisy(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in made.items()} for i in (0, 1))
    first = fit_decoder(predictions, truths, metric="f1")
    again = fit_decoder(predictions, truths, metric="f1")
    assert first == again


def test_recordings_of_one_group_are_never_on_both_sides():
    from ethobench.decoding.search import _folds
    from ethobench.decoding.training_data import DecoderTrainingData

    made = {str(seed): noisy(seed, n=200) for seed in range(6)}
    everything = DecoderTrainingData({k: p for k, (p, _) in made.items()}, {k: t for k, (_, t) in made.items()}, {})
    groups = {"0": "x;y", "1": "y", "2": "z", "3": "z", "4": "w", "5": "x"}
    folds = _folds(everything, groups, 5)
    assert len(folds) == 3
    assert sorted(name for _, held_out in folds for name in held_out) == sorted(made)
    for training_data, held_out in folds:
        assert not {*training_data.predictions} & {*held_out}
        for together in ({"0", "1", "5"}, {"2", "3"}, {"4"}):
            assert together <= {*held_out} or not together & {*held_out}
    assert [held_out for _, held_out in _folds(everything, dict.fromkeys(made, "one"), 5)] == [list(made)]


def test_thresholds_are_tuned():
    random = np.random.default_rng(0)
    truth = (random.random(4000) < 0.1).astype(int)
    values = np.clip(0.15 + 0.25 * truth + 0.07 * random.normal(size=4000), 0, 1)[:, None]
    only = Ethogram(["a"])
    annotation = Annotation.from_frames(truth[:, None], only, 1)
    found = fit_thresholds({"r": Prediction(values, only, 1, exclusive=False)}, {"r": annotation})
    f1 = {
        t: 2 * ((values[:, 0] >= t) & (truth == 1)).sum() / ((values[:, 0] >= t).sum() + truth.sum()) for t in np.linspace(0.05, 0.95, 181)
    }
    guessed = values[:, 0] >= found["a"]
    assert 2 * (guessed & (truth == 1)).sum() / (guessed.sum() + truth.sum()) > max(f1.values()) - 0.01
    rare = Ethogram(["a", "other"], background="other")
    both = np.concatenate([values, 1 - values], axis=1)
    tuned = fit_thresholds({"r": Prediction(both, rare, 1)}, {"r": Annotation.from_frames(1 - truth, rare, 1)})
    decoded = Decoder(thresholds=tuned).decode(both, rare, 1).to_codes() == 0
    assert 2 * (decoded & (truth == 1)).sum() / (decoded.sum() + truth.sum()) > max(f1.values()) - 0.02
    nothing = fit_thresholds({"r": Prediction(both, rare, 1)}, {"r": Annotation.from_frames(np.ones(4000), rare, 1)})
    assert nothing == {}


@pytest.mark.slow
def test_an_error_is_made_small():
    made = {str(seed): noisy(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in made.items()} for i in (0, 1))
    _, trials = fit_decoder(predictions, truths, metric="onset_distance")
    assert all(trial.value <= 0 for trial in trials)
    assert next(trial for trial in trials if trial.chosen).value >= max(trial.value for trial in trials) - 1e-3


@pytest.mark.parametrize(("metric", "error"), [("f2", NotFoundError), ("map", EthobenchError), ("auroc", EthobenchError)])
def test_metrics_that_decoding_cannot_serve(metric, error):
    prediction, truth = noisy(0, n=100)
    with pytest.raises(error, match=metric):
        fit_decoder({"r": prediction}, {"r": truth}, metric=metric)


def test_what_does_not_fit_is_refused():
    prediction, truth = noisy(0, n=100)
    with pytest.raises(MismatchError, match="'r' has a prediction but no truth"):
        fit_decoder({"r": prediction}, {})
    with pytest.raises(MismatchError, match="100 frames at 30 Hz were predicted, the truth has 99"):
        fit_decoder({"r": prediction}, {"r": truth.crop(0, 99)})
    with pytest.raises(MismatchError, match="at least one recording"):
        fit_decoder({}, {})
    overlapping, other = noisy(0, exclusive=False, n=100)
    with pytest.raises(MismatchError, match="one ethogram"):
        fit_decoder({"r": prediction, "s": overlapping}, {"r": truth, "s": other})
    with pytest.raises(EthobenchError, match="shares"):
        prior_factors({"a": 0.0}, {"a": 0.5})


@pytest.mark.slow
def test_a_behavior_with_one_bout_and_one_that_never_occurs():
    ethogram = Ethogram(["a", "b", "c", "other"], background="other")
    codes = np.full(300, 3)
    codes[100:140], codes[200:210] = 0, 1
    values = np.full((300, 4), 0.1)
    values[np.arange(300), codes] = 0.7
    truths = {name: Annotation.from_frames(codes, ethogram, 10) for name in "xy"}
    decoder, _ = fit_decoder({name: Prediction(values, ethogram, 10) for name in "xy"}, truths)
    np.testing.assert_array_equal(decoder.decode(values, ethogram, 10).to_codes(), codes)


def test_a_deadline_ends_the_search_with_the_best_so_far():
    seen = {str(seed): noisy(seed) for seed in range(3)}
    predictions, truths = {k: p for k, (p, _) in seen.items()}, {k: t for k, (_, t) in seen.items()}
    clock = Clock()
    late = Deadline(1, clock=clock)
    clock.now += 2
    decoder, trials = fit_decoder(predictions, truths, deadline=late)
    assert [trial.config for trial in trials] == [DecoderConfig(), DecoderConfig(smoothing="mean", window=1 / 4)]
    assert sum(trial.chosen for trial in trials) == 1
    assert decoder.apply(predictions["0"]).annotation.n_frames == truths["0"].n_frames


@pytest.mark.slow
def test_where_time_is_limited_segments_are_tried_early():
    seen = {str(seed): noisy(seed, n=1000) for seed in range(3)}
    predictions, truths = {k: p for k, (p, _) in seen.items()}, {k: t for k, (_, t) in seen.items()}
    _, trials = fit_decoder(predictions, truths, deadline=Deadline(1e9))
    assert trials[3].config.min_score is not None
    _, usual = fit_decoder(predictions, truths)
    assert usual[3].config.min_score is None
    assert {trial.config for trial in usual if trial.config.min_score} == {trial.config for trial in trials if trial.config.min_score}
