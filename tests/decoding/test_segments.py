"""Bouts judged as wholes: each step against a plain loop, and what segment_scorers gain on recordings that noise was added to."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ethobench import score
from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.datasets.semi_markov import State, sample_codes
from ethobench.decoding import segments
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import DecoderConfig, fit_decoder
from ethobench.decoding.segments import CandidateSegments, SegmentFeatures, SegmentScorer, fit_segment_scorer, propose_segments
from ethobench.decoding.training_data import DecoderTrainingData
from ethobench.decoding.viterbi import NO_BEHAVIOR

STATES = ("a", "b", "other")
WITH_OTHER = Ethogram(STATES, background="other")
RATE = 10.0


def true_codes(seed, n=1500):
    states = (State("a", 1.5, 3.0, 0.3), State("b", 4.0, 2.0, 0.4), State("other", 5.0, 1.5, 1.0))
    return sample_codes(states, n, RATE, np.random.default_rng(seed))


def noisy(seed, n=1500, strength=2.0, slowness=0.9):
    """Draw a truth, and probabilities with noise that lasts for about a second."""
    codes, random = true_codes(seed, n), np.random.default_rng(seed + 1000)
    noise = random.normal(size=(n, 3))
    for t in range(1, n):
        noise[t] = slowness * noise[t - 1] + np.sqrt(1 - slowness**2) * noise[t]
    scores = strength * np.eye(3)[codes] + noise
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), codes


@cache
def learnt(recordings=3):
    scorer = fit_segment_scorer(((*noisy(seed), RATE) for seed in range(recordings)), STATES, 2.5)
    assert scorer is not None
    return scorer


# -- the steps --------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), n=st.integers(1, 120), typical=st.floats(0.5, 80))
@settings(max_examples=60, deadline=None)
def test_cuts_are_apart_and_every_frame_can_be_reached(seed, n, typical):
    values = np.random.default_rng(seed).dirichlet(np.ones(3), n)
    found = propose_segments(values, typical)
    assert found.cuts[0] == 0
    assert found.cuts[-1] == n
    assert (np.diff(found.cuts)[1:-1] > int(segments.NEAR * typical)).all()
    assert (np.diff(found.cuts) >= 1).all()
    steps = {(int(i), int(j)) for i, j in zip(found.first, found.last, strict=True)}
    assert all((i, i + 1) in steps for i in range(len(found.cuts) - 1))
    rows = SegmentFeatures(values, found, typical).rows(slice(None))
    assert rows.shape == (len(found.behavior), segments.N_FEATURES)
    assert np.isfinite(rows).all()


def test_where_probabilities_are_sure_every_true_bout_is_among_the_stretches():
    codes = true_codes(0)
    values = np.where(np.eye(3)[codes] == 1, 0.9, 0.05)
    found = propose_segments(values, 25.0)
    borders = np.flatnonzero(np.diff(codes)) + 1
    assert {*borders.tolist()} <= {*found.cuts.tolist()}
    told = {(int(s), int(e), int(b)) for s, e, b in zip(found.start, found.stop, found.behavior, strict=True)}
    edges = [0, *borders.tolist(), len(codes)]
    assert {(s, e, int(codes[s])) for s, e in pairwise(edges)} <= told


def test_over_weak_cuts_stretches_lead_far():
    wave = np.where(np.arange(4000) % 40 < 20, 0.02, -0.02)  # across one level all along
    own = wave + np.where((np.arange(4000) >= 1000) & (np.arange(4000) < 3000), 0.8, 0.2)
    found = propose_segments(np.stack([own, 1 - own], axis=1), 40.0)
    assert ((found.cuts > 1010) & (found.cuts < 2990)).sum() > 5 * segments.NEXT
    assert ((abs(found.start - 1000) < 3) & (abs(found.stop - 3000) < 3) & (found.behavior == 0)).any()


def test_single_frames_can_be_bouts():
    codes = np.array([0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 0, 1, 1, 0, 0])
    found = propose_segments(np.where(np.eye(3)[codes] == 1, 0.98, 0.01), 2.0)
    assert {*(np.flatnonzero(np.diff(codes)) + 1).tolist()} <= {*found.cuts.tolist()}


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), typical=st.floats(0.5, 400))
@settings(max_examples=40, deadline=None)
def test_votes_nearby_are_counted(seed, n, typical):
    values = np.random.default_rng(seed).dirichlet(np.ones(3), n)
    cuts, strength = segments._cuts(values, typical)
    votes = np.zeros(n + 1)
    for part in segments.SMOOTHED:
        smoothed = segments.smooth(values, max(int(part * typical), 1), "mean")
        for t in range(1, n):
            votes[t] += smoothed[t].argmax() != smoothed[t - 1].argmax()
            votes[t] += sum(any((smoothed[t] >= level) != (smoothed[t - 1] >= level)) for level in segments.LEVELS)
    near = int(segments.NEAR * typical)
    expected = [votes[max(cut - near, 0) : cut + near + 1].sum() for cut in cuts]
    assert strength[1:-1].tolist() == expected[1:-1]
    assert np.isinf(strength[[0, -1]]).all()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_traits_are_what_they_say(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 90))
    values, typical = random.dirichlet(np.ones(3), n), float(random.uniform(1, 40))
    found = propose_segments(values, typical)
    rows = SegmentFeatures(values, found, typical).rows(slice(None))
    dip = segments._lowest(values, found)
    for k in random.integers(0, len(rows), 5):
        start, stop, own = int(found.start[k]), int(found.stop[k]), int(found.behavior[k])
        inside = values[start:stop]
        others = [c for c in range(3) if c != own]
        assert rows[k, 0] == pytest.approx(np.log((stop - start) / typical))
        assert rows[k, 1] == pytest.approx(inside[:, own].mean())
        assert rows[k, 2] == pytest.approx(inside[:, others].mean(axis=0).max())
        assert rows[k, 3] == pytest.approx(inside[:, own].std(), abs=1e-6)
        assert rows[k, 4] == pytest.approx((inside.argmax(axis=1) == own).mean())
        assert rows[k, 5] == pytest.approx((inside[:, own] < segments.LOW).mean())
        assert rows[k, 6] == pytest.approx(np.log(np.maximum(inside[:, own], segments.LEAST)).mean())
        reach = max(int(typical / 16), 1)
        before = values[max(start - reach, 0) : start, own]
        assert rows[k, 10] == pytest.approx(before.mean() if len(before) else 0.0)
        assert dip[k] == inside[:, own].min()
        assert found.own()[k] == pytest.approx(rows[k, 1])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_stretch_is_a_bout_if_half_of_both_together_is_shared(seed):
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(-1, 3, 12), random.integers(1, 9, 12))
    found = propose_segments(random.dirichlet(np.ones(3), len(codes)), 6.0)
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    bouts = [(s, e, codes[s]) for s, e in pairwise(edges)]
    for right, start, stop, own in zip(segments._is_bout(found, codes), found.start, found.stop, found.behavior, strict=True):
        overlaps = [(min(stop, e) - max(start, s)) / (max(stop, e) - min(start, s)) for s, e, code in bouts if code == own]
        assert right == (max(overlaps, default=0) >= 0.5)


@given(seed=st.integers(0, 10_000), n_cuts=st.integers(2, 7))
@settings(max_examples=60, deadline=None)
def test_the_division_is_the_best_of_all(seed, n_cuts):
    random = np.random.default_rng(seed)
    cuts = np.concatenate([[0], np.cumsum(random.integers(1, 5, n_cuts - 1))])
    pairs = [(i, j, c) for i in range(n_cuts) for j in range(i + 1, n_cuts) for c in range(2) if j == i + 1 or random.random() < 0.6]
    first, last, behavior = np.array(pairs).T
    worth = random.normal(size=len(pairs))
    codes = segments._best_division(CandidateSegments(first, last, behavior, cuts, np.zeros((cuts[-1] + 1, 2))), worth)

    def ways(at):
        if at == n_cuts - 1:
            yield 0.0, []
        for k, (i, j, _) in enumerate(pairs):
            if i == at:
                for rest, path in ways(j):
                    yield worth[k] + rest, [k, *path]

    _, best = max(ways(0))
    expected = np.concatenate([np.full(cuts[pairs[k][1]] - cuts[pairs[k][0]], pairs[k][2]) for k in best])
    np.testing.assert_array_equal(codes, expected)


# -- segment_scorers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_sure_is_left_as_it_is():
    codes = true_codes(50)
    values = np.where(np.eye(3)[codes] == 1, 0.9, 0.05)
    scorer = fit_segment_scorer([(np.where(np.eye(3)[c] == 1, 0.9, 0.05), c, RATE) for c in (true_codes(1), true_codes(2))], STATES, 2.5)
    np.testing.assert_array_equal(scorer.divide(values, STATES, RATE), codes)


@pytest.mark.slow
def test_judges_find_more_bouts_of_new_recordings_than_smoothing():
    scorer = learnt()
    new = {str(seed): noisy(seed) for seed in range(20, 24)}
    truths = {name: Annotation.from_frames(codes, WITH_OTHER, RATE) for name, (_, codes) in new.items()}
    found = {}
    for way, decoder in {
        "judged": Decoder(segment_scorers={NO_BEHAVIOR: scorer}),
        "smoothed": Decoder(smoothing="mean", smooth_seconds=0.6),
        "plain": Decoder(),
    }.items():
        decoded = {name: decoder.decode(values, WITH_OTHER, RATE) for name, (values, _) in new.items()}
        found[way] = score(decoded, truths, resamples=0).overall
    assert found["judged"]["segment_f1_50"] > found["smoothed"]["segment_f1_50"] + 0.05
    assert found["judged"]["bout_f1"] > found["plain"]["bout_f1"] + 0.2
    assert found["judged"]["f1"] > found["plain"]["f1"]


@pytest.mark.slow
def test_a_higher_price_makes_fewer_bouts():
    scorer, (values, _) = learnt(), noisy(30)
    counts = [(np.diff(replace(scorer, min_score=min_score).divide(values, STATES, RATE)) != 0).sum() for min_score in (0.0, 0.4, 3.0)]
    assert counts[0] > counts[1] > counts[2]


def test_the_order_and_names_of_behaviors():
    scorer, (values, _) = learnt(), noisy(31)
    turned = scorer.divide(values[:, [2, 0, 1]], ("other", "a", "b"), RATE)
    np.testing.assert_array_equal(np.array([2, 0, 1])[turned], scorer.divide(values, STATES, RATE))
    with pytest.raises(MismatchError, match="segment_scorers bouts of 'a', 'b', 'other'; these are 'x', 'b', 'other'"):
        scorer.divide(values, ("x", "b", "other"), RATE)


def test_faster_recordings_are_judged_at_the_rate_that_was_learnt():
    scorer, (values, _) = learnt(), noisy(32)
    assert scorer.rate == RATE
    slow = scorer.divide(values, STATES, RATE)
    np.testing.assert_array_equal(scorer.divide(np.repeat(values, 3, axis=0)[:-1], STATES, 3 * RATE), np.repeat(slow, 3)[:-1])
    assert len(scorer.divide(values[::2], STATES, RATE / 2)) == len(values[::2])


def test_parts_make_no_difference(monkeypatch):
    scorer, (values, _) = learnt(1), noisy(34)
    whole = scorer.divide(values, STATES, RATE)
    monkeypatch.setattr(segments, "AT_ONCE", 77)
    np.testing.assert_array_equal(scorer.divide(values, STATES, RATE), whole)


def test_frames_without_predictions():
    scorer, (values, _) = learnt(), noisy(33)
    hidden = values.copy()
    hidden[400:420] = np.nan
    decoded = Decoder(segment_scorers={NO_BEHAVIOR: scorer}).decode(hidden, WITH_OTHER, RATE)
    assert not decoded.to_frames()[400:420].any()
    whole = Decoder(segment_scorers={NO_BEHAVIOR: scorer}).decode(values, WITH_OTHER, RATE)
    np.testing.assert_array_equal(decoded.to_codes()[:300], whole.to_codes()[:300])
    assert scorer.divide(values[:0], STATES, RATE).tolist() == []
    assert len(scorer.divide(values[:1], STATES, RATE)) == 1


def test_stretches_that_nobody_looked_at_teach_nothing():
    values, codes = noisy(3)
    half = len(codes) // 2
    unseen = np.where(np.arange(len(codes)) < half, codes, -1)
    lies = np.concatenate([values[:half], np.random.default_rng(0).dirichlet(np.ones(3), len(codes) - half)])
    one = fit_segment_scorer([(values, unseen, RATE)], STATES, 2.5)
    other = fit_segment_scorer([(lies, unseen, RATE)], STATES, 2.5)
    np.testing.assert_allclose(one.weights, other.weights, atol=0.1)  # what lies around stretches near the border differs


def test_nothing_to_learn_from():
    values, codes = noisy(4)
    assert fit_segment_scorer([(values, np.full_like(codes, -1), RATE)], STATES, 2.5) is None
    assert fit_segment_scorer([], STATES, 2.5) is None
    assert fit_segment_scorer([(values[:0], codes[:0], RATE)], STATES, 2.5) is None
    assert fit_segment_scorer([(np.ones((9, 1)), np.zeros(9, dtype=np.int64), RATE)], ("other",), 2.5) is None


def test_judges_survive_json_and_damaged_ones_are_refused():
    scorer = learnt(1)
    plain = json.loads(json.dumps(scorer.to_dict()))
    assert SegmentScorer.from_dict(plain) == scorer
    decoder = Decoder(segment_scorers={NO_BEHAVIOR: scorer})
    assert Decoder.from_dict(json.loads(json.dumps(decoder.to_dict()))) == decoder
    for change, match in (
        ({"weights": plain["weights"][:-1]}, "a weight for each trait"),
        ({"states": ["a", "a", "b"]}, "two different"),
        ({"scale": [0.0, *plain["scale"][1:]]}, "above 0"),
        ({"bias": float("nan")}, "finite"),
        ({"seconds": "long"}, "no scorer"),
        ({"rate": 0}, "above 0"),
        ({"center": [], "scale": [], "weights": [0.0, 0.0, 0.0]}, "a weight for each trait"),
        ({"center": None}, "no scorer"),
    ):
        with pytest.raises(EthobenchError, match=match):
            SegmentScorer.from_dict(plain | change)
    with pytest.raises(EthobenchError, match="no scorer"):
        Decoder.from_dict({"segment_scorers": {"": {"states": ["a", "b"]}}})


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [True, False])
def test_decoders_learn_judges(exclusive):
    ethogram = WITH_OTHER if exclusive else Ethogram(["a", "b"])
    made = {str(seed): noisy(seed) for seed in range(3)}
    predictions = {k: Prediction(v[:, : len(ethogram)], ethogram, RATE, exclusive=exclusive) for k, (v, _) in made.items()}
    truths = {k: Annotation.from_frames(c, ethogram, RATE) for k, (_, c) in made.items()}  # 2 is other, or none of these
    decoder = DecoderConfig(min_score=0.3, frame_reward=0.7).learn(DecoderTrainingData(predictions, truths, {}))
    assert {*decoder.segment_scorers} == ({NO_BEHAVIOR} if exclusive else {"a", "b"})
    assert {(scorer.min_score, scorer.frame_reward) for scorer in decoder.segment_scorers.values()} == {(0.3, 0.7)}
    decoded = [{k: d.apply(p).annotation for k, p in predictions.items()} for d in (Decoder(), decoder)]
    before, after = (score(part, truths, resamples=0).overall["bout_f1"] for part in decoded)
    assert after > before + 0.2


@pytest.mark.slow
def test_short_behaviors_beside_long_ones():
    """Overlapping ones have their own typical bout each; of exclusive ones, the typical bout lies between the short and the long."""
    random, n = np.random.default_rng(0), 6000
    short, long = (np.repeat(random.integers(0, 2, n // step + 1), step)[:n] for step in (5, 900))
    frames = np.stack([short, long], axis=1)
    ethogram = Ethogram(["twitch", "sleep"])
    values = np.clip(frames * 0.7 + 0.15 + random.normal(0, 0.1, frames.shape), 0.01, 0.99)
    training_data = DecoderTrainingData(
        {"r": Prediction(values, ethogram, RATE, exclusive=False)}, {"r": Annotation.from_frames(frames, ethogram, RATE)}, {}
    )
    assert training_data.segment_scorers["twitch"].seconds < 2
    assert training_data.segment_scorers["sleep"].seconds > 60
    decoded = DecoderConfig(min_score=0.25, frame_reward=0.5).learn(training_data).decode(values, ethogram, RATE, exclusive=False)
    assert score(decoded, training_data.truths["r"], resamples=0).behaviors["twitch"]["bout_f1"] > 0.9
    codes = np.where(short == 1, 0, np.where(long == 1, 1, 2))
    one = DecoderTrainingData(
        {"r": Prediction(np.eye(3)[codes] * 0.7 + 0.1, WITH_OTHER, RATE)}, {"r": Annotation.from_frames(codes, WITH_OTHER, RATE)}, {}
    )
    a, b = (np.median(one.durations[1][name]) for name in ("a", "b"))
    assert one.segment_scorers[NO_BEHAVIOR].seconds == pytest.approx(np.sqrt(a * b))


def test_few_rows_of_many_are_learnt_from(monkeypatch):
    monkeypatch.setattr(segments, "MOST_ROWS", 700)
    taken = []
    rows = segments.SegmentFeatures.rows
    monkeypatch.setattr(segments.SegmentFeatures, "rows", lambda self, part: taken.append(len(part)) or rows(self, part))
    assert learnt.__wrapped__(2).states == STATES
    assert 350 < sum(taken) <= 702


def test_long_bouts_are_decoded_with_more_around_them():
    assert Decoder().context_seconds == 120.0
    assert Decoder(segment_scorers={NO_BEHAVIOR: replace(learnt(1), seconds=250.0)}).context_seconds == 1000.0


@pytest.mark.slow
def test_the_best_decoder_may_be_a_judge():
    made = {str(seed): noisy(seed) for seed in range(4)}
    predictions = {k: Prediction(v, WITH_OTHER, RATE, exclusive=True) for k, (v, _) in made.items()}
    truths = {k: Annotation.from_frames(c, WITH_OTHER, RATE) for k, (_, c) in made.items()}
    decoder, trials = fit_decoder(predictions, truths, metric="segment_f1_50")
    best = {worth: max(t.value for t in trials if (t.config.min_score is not None) == worth) for worth in (False, True)}
    assert (next(t for t in trials if t.chosen).config.min_score is not None) == bool(decoder.segment_scorers) == (best[True] > best[False])
    assert fit_decoder(predictions, truths, sequences=False)[0].segment_scorers == {}
