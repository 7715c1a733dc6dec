"""Segment rescoring: each step against a plain loop, and the improvement on recordings with added noise."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import maximum_filter1d
from tests.hypothesis_limits import at_most

from ethobench import score
from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.datasets.synthetic import State, sample_codes
from ethobench.decoding import segments
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import DecoderConfig, fit_decoder
from ethobench.decoding.segments import (
    CandidateSegments,
    LabeledColumns,
    SegmentFeatures,
    SegmentScorer,
    fit_segment_scorer,
    propose_segments,
)
from ethobench.decoding.training_data import DecoderTrainingData
from ethobench.decoding.viterbi import NO_BEHAVIOR
from ethobench.features.shared import share_values

STATES = ("a", "b", "other")
WITH_OTHER = Ethogram(STATES, background="other")
RATE = 10.0


def true_codes(seed, n=1500):
    states = (State("a", 1.5, 3.0, 0.3), State("b", 4.0, 2.0, 0.4), State("other", 5.0, 1.5, 1.0))
    return sample_codes(states, n, RATE, np.random.default_rng(seed))


def draw_noisy(seed, n=1500, strength=2.0, slowness=0.9):
    """Draw true codes, and probabilities with noise that is correlated over about a second."""
    codes, random = true_codes(seed, n), np.random.default_rng(seed + 1000)
    noise = random.normal(size=(n, 3))
    for t in range(1, n):
        noise[t] = slowness * noise[t - 1] + np.sqrt(1 - slowness**2) * noise[t]
    logits = strength * np.eye(3)[codes] + noise
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), codes


@cache
def fitted_scorer(recordings=3):
    scorer = fit_segment_scorer(((*draw_noisy(seed), RATE) for seed in range(recordings)), STATES, 2.5)
    assert scorer is not None
    return scorer


# -- the steps --------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), n=st.integers(1, 120), typical=st.floats(0.5, 80))
@at_most(60)
def test_boundaries_are_apart_and_neighbors_are_connected(seed, n, typical):
    values = np.random.default_rng(seed).dirichlet(np.ones(3), n)
    candidates = propose_segments(values, typical)
    assert candidates.boundaries[0] == 0
    assert candidates.boundaries[-1] == n
    assert (np.diff(candidates.boundaries)[1:-1] > int(segments.MIN_BOUNDARY_DISTANCE * typical)).all()
    assert (np.diff(candidates.boundaries) >= 1).all()
    steps = {(int(i), int(j)) for i, j in zip(candidates.first, candidates.last, strict=True)}
    assert all((i, i + 1) in steps for i in range(len(candidates.boundaries) - 1))
    rows = SegmentFeatures(values, candidates, typical).rows(slice(None))
    assert rows.shape == (len(candidates.behavior), segments.N_FEATURES)
    assert np.isfinite(rows).all()


def test_every_true_bout_is_a_candidate_where_probabilities_are_certain():
    codes = true_codes(0)
    values = np.where(np.eye(3)[codes] == 1, 0.9, 0.05)
    candidates = propose_segments(values, 25.0)
    borders = np.flatnonzero(np.diff(codes)) + 1
    assert {*borders.tolist()} <= {*candidates.boundaries.tolist()}
    proposed = {(int(s), int(e), int(b)) for s, e, b in zip(candidates.start, candidates.stop, candidates.behavior, strict=True)}
    edges = [0, *borders.tolist(), len(codes)]
    assert {(s, e, int(codes[s])) for s, e in pairwise(edges)} <= proposed


def test_candidates_extend_across_weak_boundaries():
    wave = np.where(np.arange(4000) % 40 < 20, 0.02, -0.02)  # crosses one level all the time
    probability = wave + np.where((np.arange(4000) >= 1000) & (np.arange(4000) < 3000), 0.8, 0.2)
    candidates = propose_segments(np.stack([probability, 1 - probability], axis=1), 40.0)
    assert ((candidates.boundaries > 1010) & (candidates.boundaries < 2990)).sum() > 5 * segments.MAX_BOUNDARIES_AHEAD
    assert ((abs(candidates.start - 1000) < 3) & (abs(candidates.stop - 3000) < 3) & (candidates.behavior == 0)).any()


def test_single_frames_can_be_candidates():
    codes = np.array([0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 0, 1, 1, 0, 0])
    candidates = propose_segments(np.where(np.eye(3)[codes] == 1, 0.98, 0.01), 2.0)
    assert {*(np.flatnonzero(np.diff(codes)) + 1).tolist()} <= {*candidates.boundaries.tolist()}


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), typical=st.floats(0.5, 400))
@at_most(40)
def test_strength_counts_nearby_crossings(seed, n, typical):
    values = np.random.default_rng(seed).dirichlet(np.ones(3), n)
    boundaries, strength = segments.find_boundaries(values, typical)
    votes = np.zeros(n + 1)
    for window in segments.BOUNDARY_WINDOWS:
        smoothed = segments.smooth(values, max(int(window * typical), 1), "mean")
        for t in range(1, n):
            votes[t] += smoothed[t].argmax() != smoothed[t - 1].argmax()
            votes[t] += sum(any((smoothed[t] >= level) != (smoothed[t - 1] >= level)) for level in segments.BOUNDARY_LEVELS)
    near = int(segments.MIN_BOUNDARY_DISTANCE * typical)
    expected = [votes[max(boundary - near, 0) : boundary + near + 1].sum() for boundary in boundaries]
    assert strength[1:-1].tolist() == expected[1:-1]
    assert np.isinf(strength[[0, -1]]).all()


@given(seed=st.integers(0, 10_000))
@at_most(40)
def test_features_equal_their_definitions(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 90))
    values, typical = random.dirichlet(np.ones(3), n), float(random.uniform(1, 40))
    candidates = propose_segments(values, typical)
    rows = SegmentFeatures(values, candidates, typical).rows(slice(None))
    minima = segments.segment_minima(values, candidates)
    for k in random.integers(0, len(rows), 5):
        start, stop, behavior = int(candidates.start[k]), int(candidates.stop[k]), int(candidates.behavior[k])
        inside = values[start:stop]
        others = [c for c in range(3) if c != behavior]
        assert rows[k, 0] == pytest.approx(np.log((stop - start) / typical))
        assert rows[k, 1] == pytest.approx(inside[:, behavior].mean())
        assert rows[k, 2] == pytest.approx(inside[:, others].mean(axis=0).max())
        assert rows[k, 3] == pytest.approx(inside[:, behavior].std(), abs=1e-6)
        assert rows[k, 4] == pytest.approx((inside.argmax(axis=1) == behavior).mean())
        assert rows[k, 5] == pytest.approx((inside[:, behavior] < segments.LOW_PROBABILITY).mean())
        assert rows[k, 6] == pytest.approx(np.log(np.maximum(inside[:, behavior], segments.MIN_PROBABILITY)).mean())
        reach = max(int(typical / 16), 1)
        before = values[max(start - reach, 0) : start, behavior]
        assert rows[k, 10] == pytest.approx(before.mean() if len(before) else 0.0)
        assert minima[k] == inside[:, behavior].min()
        assert candidates.mean_probability()[k] == pytest.approx(rows[k, 1])


@given(seed=st.integers(0, 10_000))
@at_most(40)
def test_features_of_boundaries_are_the_highest_probabilities_close_to_both_ends(seed):
    random = np.random.default_rng(seed)
    n, typical = int(random.integers(5, 90)), float(random.uniform(1, 80))
    values, edges = random.dirichlet(np.ones(3), n), random.uniform(size=(2, n, 2))
    edges[:, random.integers(0, n)] = np.nan  # not predicted
    candidates = propose_segments(values, typical)
    rows = SegmentFeatures(values, candidates, typical, edges).rows(slice(None))
    np.testing.assert_array_equal(rows[:, :-4], SegmentFeatures(values, candidates, typical).rows(slice(None)))
    reach = max(int(typical / 8), 1)
    for k in random.integers(0, len(rows), 5):
        near = [
            slice(max(min(int(end), n - 1) - reach, 0), min(int(end), n - 1) + reach + 1)
            for end in (candidates.start[k], candidates.stop[k])
        ]
        expected = [np.nan_to_num(edges[:, frames]).max(axis=1).mean(axis=0) for frames in near]
        np.testing.assert_allclose(rows[k, -4:], np.concatenate(expected))


@given(seed=st.integers(0, 10_000))
@at_most(60)
def test_true_bouts_have_an_intersection_over_union_of_one_half(seed):
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(-1, 3, 12), random.integers(1, 9, 12))
    candidates = propose_segments(random.dirichlet(np.ones(3), len(codes)), 6.0)
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    bouts = [(s, e, codes[s]) for s, e in pairwise(edges)]
    for is_bout, start, stop, behavior in zip(
        segments.is_true_bout(candidates, codes), candidates.start, candidates.stop, candidates.behavior, strict=True
    ):
        overlaps = [(min(stop, e) - max(start, s)) / (max(stop, e) - min(start, s)) for s, e, code in bouts if code == behavior]
        assert is_bout == (max(overlaps, default=0) >= 0.5)


@given(seed=st.integers(0, 10_000), n_boundaries=st.integers(2, 7))
@at_most(60)
def test_the_segmentation_has_the_highest_score_of_all(seed, n_boundaries):
    random = np.random.default_rng(seed)
    boundaries = np.concatenate([[0], np.cumsum(random.integers(1, 5, n_boundaries - 1))])
    pairs = [
        (i, j, c) for i in range(n_boundaries) for j in range(i + 1, n_boundaries) for c in range(2) if j == i + 1 or random.random() < 0.6
    ]
    first, last, behavior = np.array(pairs).T
    scores = random.normal(size=len(pairs))
    candidates = CandidateSegments(first, last, behavior, boundaries, np.zeros((boundaries[-1] + 1, 2)))
    codes = segments.best_segmentation(candidates, scores)

    def paths(at):
        if at == n_boundaries - 1:
            yield 0.0, []
        for k, (i, j, _) in enumerate(pairs):
            if i == at:
                for rest, path in paths(j):
                    yield scores[k] + rest, [k, *path]

    _, best = max(paths(0))
    expected = np.concatenate([np.full(boundaries[pairs[k][1]] - boundaries[pairs[k][0]], pairs[k][2]) for k in best])
    np.testing.assert_array_equal(codes, expected)


# -- segment scorers --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_certain_probabilities_are_decoded_exactly():
    codes = true_codes(50)
    values = np.where(np.eye(3)[codes] == 1, 0.9, 0.05)
    scorer = fit_segment_scorer([(np.where(np.eye(3)[c] == 1, 0.9, 0.05), c, RATE) for c in (true_codes(1), true_codes(2))], STATES, 2.5)
    np.testing.assert_array_equal(scorer.decode(values, STATES, RATE), codes)


@pytest.mark.slow
def test_segment_scoring_beats_smoothing_on_new_recordings():
    scorer = fitted_scorer()
    new = {str(seed): draw_noisy(seed) for seed in range(20, 24)}
    truths = {name: Annotation.from_frames(codes, WITH_OTHER, RATE) for name, (_, codes) in new.items()}
    scores = {}
    for method, decoder in {
        "segments": Decoder(segment_scorers={NO_BEHAVIOR: scorer}),
        "smoothed": Decoder(smoothing="mean", smoothing_seconds=0.6),
        "plain": Decoder(),
    }.items():
        decoded = {name: decoder.decode(values, WITH_OTHER, RATE) for name, (values, _) in new.items()}
        scores[method] = score(decoded, truths, resamples=0).overall
    assert scores["segments"]["segment_f1_50"] > scores["smoothed"]["segment_f1_50"] + 0.05
    assert scores["segments"]["bout_f1"] > scores["plain"]["bout_f1"] + 0.2
    assert scores["segments"]["f1"] > scores["plain"]["f1"]


def to_annotation(codes):
    return Annotation.from_frames(codes, WITH_OTHER, RATE)


def draw_boundaries(codes, seed):
    """Draw onset and offset probabilities that are higher, but not always, close to true changes."""
    edges = np.zeros((len(codes), 2))
    changes = np.flatnonzero(np.diff(codes)) + 1
    edges[changes, 0], edges[changes, 1] = codes[changes] != 2, codes[changes - 1] != 2
    nearby = maximum_filter1d(edges, 5, axis=0)
    return np.clip(0.1 + 0.5 * nearby + np.random.default_rng(seed).normal(0, 0.15, edges.shape), 0, 1)[None]


@pytest.mark.slow
def test_boundaries_help_to_find_bouts_of_new_recordings():
    def labeled(seed):
        values, codes = draw_noisy(seed)
        return LabeledColumns(values, codes, RATE, draw_boundaries(codes, seed))

    training, tests = [labeled(seed) for seed in range(3)], [labeled(seed) for seed in range(20, 28)]
    with_them = fit_segment_scorer(training, STATES, 2.5)
    without = fit_segment_scorer([each._replace(boundaries=None) for each in training], STATES, 2.5)
    f1 = {}
    for name, scorer in (("with", with_them), ("without", without)):
        decoded = {f"{k}": to_annotation(scorer.decode(t.columns, STATES, RATE, t.boundaries)) for k, t in enumerate(tests)}
        truths = {f"{k}": to_annotation(t.codes) for k, t in enumerate(tests)}
        f1[name] = score(decoded, truths, resamples=0).overall["segment_f1_50"]
    assert f1["with"] > f1["without"] + 0.03
    neutral = SegmentScorer.from_dict(
        with_them.to_dict() | {"weights": [0.0 if k % 44 >= 40 and k < 132 else w for k, w in enumerate(with_them.weights)]}
    )
    test = tests[0]
    np.testing.assert_array_equal(with_them.decode(test.columns, STATES, RATE), neutral.decode(test.columns, STATES, RATE, test.boundaries))


def test_decoders_are_fitted_with_the_boundaries_of_predictions_and_use_them():
    predictions, truths = {}, {}
    for seed in range(3):
        values, codes = draw_noisy(seed)
        name, edges = f"r{seed}", draw_boundaries(codes, seed)
        predictions[name] = Prediction(values, WITH_OTHER, RATE, exclusive=True, boundaries=edges)
        truths[name] = to_annotation(codes)
    decoder = DecoderConfig(min_score=0.2, frame_reward=0.5).fit(DecoderTrainingData(predictions, truths, {}))
    scorer, new = decoder.segment_scorers[NO_BEHAVIOR], predictions["r0"]
    assert len(scorer.mean) == segments.N_FEATURES + segments.N_BOUNDARY_FEATURES
    decoded = decoder.apply(new)
    np.testing.assert_array_equal(decoded.annotation.to_codes(), scorer.decode(new.probabilities, STATES, RATE, new.boundaries))
    assert decoded.boundaries is new.boundaries
    without = decoder.decode(new.probabilities, WITH_OTHER, RATE, exclusive=True)
    assert (without.to_codes() != decoded.annotation.to_codes()).any()
    only_some = predictions | {"r1": Prediction(predictions["r1"].probabilities, WITH_OTHER, RATE, exclusive=True)}
    plain = DecoderConfig(min_score=0.2, frame_reward=0.5).fit(DecoderTrainingData(only_some, truths, {}))
    assert len(plain.segment_scorers[NO_BEHAVIOR].mean) == segments.N_FEATURES
    assert plain.apply(new).annotation == plain.decode(new.probabilities, WITH_OTHER, RATE, exclusive=True)


def test_decoders_with_other_rewards_share_the_scores_of_segments(monkeypatch):
    values, codes = draw_noisy(0)
    prediction = Prediction(values, WITH_OTHER, RATE, exclusive=True, boundaries=draw_boundaries(codes, 0))
    scorer = fit_segment_scorer([LabeledColumns(values, codes, RATE, prediction.boundaries)], STATES, 2.5)
    decoders = [Decoder(segment_scorers={NO_BEHAVIOR: replace(scorer, min_score=s, frame_reward=r)}) for s, r in ((0.1, 0.2), (0.4, 2.0))]
    separate = [decoder.apply(prediction).annotation for decoder in decoders]
    calls = []
    monkeypatch.setattr(segments, "propose_segments", lambda *args: calls.append(1) or propose_segments(*args))
    with share_values():
        assert [decoder.apply(prediction).annotation for decoder in decoders] == separate
    assert len(calls) == 1
    other = Decoder(segment_scorers={NO_BEHAVIOR: replace(scorer, intercept=scorer.intercept + 1)})
    with share_values():
        decoders[0].apply(prediction)
        assert other.apply(prediction).annotation == other.apply(prediction).annotation
    assert len(calls) == 3


@pytest.mark.slow
def test_a_higher_min_score_makes_fewer_bouts():
    scorer, (values, _) = fitted_scorer(), draw_noisy(30)
    counts = [(np.diff(replace(scorer, min_score=min_score).decode(values, STATES, RATE)) != 0).sum() for min_score in (0.0, 0.4, 3.0)]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.slow
def test_order_and_names_of_behaviors():
    scorer, (values, _) = fitted_scorer(), draw_noisy(31)
    reordered = scorer.decode(values[:, [2, 0, 1]], ("other", "a", "b"), RATE)
    np.testing.assert_array_equal(np.array([2, 0, 1])[reordered], scorer.decode(values, STATES, RATE))
    with pytest.raises(MismatchError, match="fitted for the behaviors 'a', 'b', 'other', not for 'x', 'b', 'other'"):
        scorer.decode(values, ("x", "b", "other"), RATE)


@pytest.mark.slow
def test_faster_recordings_are_subsampled_to_the_training_rate():
    scorer, (values, _) = fitted_scorer(), draw_noisy(32)
    assert scorer.rate == RATE
    slow = scorer.decode(values, STATES, RATE)
    np.testing.assert_array_equal(scorer.decode(np.repeat(values, 3, axis=0)[:-1], STATES, 3 * RATE), np.repeat(slow, 3)[:-1])
    assert len(scorer.decode(values[::2], STATES, RATE / 2)) == len(values[::2])


@pytest.mark.slow
def test_chunks_make_no_difference(monkeypatch):
    scorer, (values, _) = fitted_scorer(1), draw_noisy(34)
    complete = scorer.decode(values, STATES, RATE)
    monkeypatch.setattr(segments, "CHUNK", 77)
    np.testing.assert_array_equal(scorer.decode(values, STATES, RATE), complete)


def test_frames_without_predictions():
    scorer, (values, _) = fitted_scorer(), draw_noisy(33)
    hidden = values.copy()
    hidden[400:420] = np.nan
    decoded = Decoder(segment_scorers={NO_BEHAVIOR: scorer}).decode(hidden, WITH_OTHER, RATE)
    assert not decoded.to_frames()[400:420].any()
    complete = Decoder(segment_scorers={NO_BEHAVIOR: scorer}).decode(values, WITH_OTHER, RATE)
    np.testing.assert_array_equal(decoded.to_codes()[:300], complete.to_codes()[:300])
    assert scorer.decode(values[:0], STATES, RATE).tolist() == []
    assert len(scorer.decode(values[:1], STATES, RATE)) == 1


def test_unobserved_segments_are_not_used_for_training():
    values, codes = draw_noisy(3)
    half = len(codes) // 2
    partly_observed = np.where(np.arange(len(codes)) < half, codes, -1)
    changed = np.concatenate([values[:half], np.random.default_rng(0).dirichlet(np.ones(3), len(codes) - half)])
    original = fit_segment_scorer([(values, partly_observed, RATE)], STATES, 2.5)
    refitted = fit_segment_scorer([(changed, partly_observed, RATE)], STATES, 2.5)
    np.testing.assert_allclose(original.weights, refitted.weights, atol=0.1)  # the surroundings of segments near the border differ


def test_no_scorer_without_bouts():
    values, codes = draw_noisy(4)
    assert fit_segment_scorer([(values, np.full_like(codes, -1), RATE)], STATES, 2.5) is None
    assert fit_segment_scorer([], STATES, 2.5) is None
    assert fit_segment_scorer([(values[:0], codes[:0], RATE)], STATES, 2.5) is None
    assert fit_segment_scorer([(np.ones((9, 1)), np.zeros(9, dtype=np.int64), RATE)], ("other",), 2.5) is None


def test_scorers_round_trip_through_json_and_invalid_ones_are_refused():
    scorer = fitted_scorer(1)
    saved = json.loads(json.dumps(scorer.to_dict()))
    assert SegmentScorer.from_dict(saved) == scorer
    decoder = Decoder(segment_scorers={NO_BEHAVIOR: scorer})
    assert Decoder.from_dict(json.loads(json.dumps(decoder.to_dict()))) == decoder
    values, codes = draw_noisy(0)
    with_boundaries = fit_segment_scorer([LabeledColumns(values, codes, RATE, draw_boundaries(codes, 0))], STATES, 2.5)
    assert SegmentScorer.from_dict(json.loads(json.dumps(with_boundaries.to_dict()))) == with_boundaries
    for change, match in (
        ({"weights": saved["weights"][:-1]}, "a weight for each feature"),
        ({"states": ["a", "a", "b"]}, "two or more different states"),
        ({"scale": [0.0, *saved["scale"][1:]]}, "> 0"),
        ({"intercept": float("nan")}, "finite"),
        ({"typical_seconds": "long"}, "not a valid segment scorer"),
        ({"rate": 0}, "> 0"),
        ({"mean": [], "scale": [], "weights": [0.0, 0.0, 0.0]}, "a weight for each feature"),
        ({"mean": None}, "not a valid segment scorer"),
    ):
        with pytest.raises(EthobenchError, match=match):
            SegmentScorer.from_dict(saved | change)
    with pytest.raises(EthobenchError, match="not a valid segment scorer"):
        Decoder.from_dict({"format_version": 1, "segment_scorers": {"": {"states": ["a", "b"]}}})


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [True, False])
def test_segment_scoring_improves_bouts(exclusive):
    ethogram = WITH_OTHER if exclusive else Ethogram(["a", "b"])
    examples = {str(seed): draw_noisy(seed) for seed in range(3)}
    predictions = {k: Prediction(v[:, : len(ethogram)], ethogram, RATE, exclusive=exclusive) for k, (v, _) in examples.items()}
    truths = {k: Annotation.from_frames(c, ethogram, RATE) for k, (_, c) in examples.items()}  # 2 is other, or none of these
    decoder = DecoderConfig(min_score=0.3, frame_reward=0.7).fit(DecoderTrainingData(predictions, truths, {}))
    assert {*decoder.segment_scorers} == ({NO_BEHAVIOR} if exclusive else {"a", "b"})
    assert {(scorer.min_score, scorer.frame_reward) for scorer in decoder.segment_scorers.values()} == {(0.3, 0.7)}
    decoded = [{k: d.apply(p).annotation for k, p in predictions.items()} for d in (Decoder(), decoder)]
    before, after = (score(annotations, truths, resamples=0).overall["bout_f1"] for annotations in decoded)
    assert after > before + 0.2


@pytest.mark.slow
def test_typical_duration_of_short_and_long_behaviors():
    """Overlapping behaviors have a typical duration each; that of exclusive behaviors is the geometric mean."""
    random, n = np.random.default_rng(0), 6000
    short, long = (np.repeat(random.integers(0, 2, n // step + 1), step)[:n] for step in (5, 900))
    frames = np.stack([short, long], axis=1)
    ethogram = Ethogram(["twitch", "sleep"])
    values = np.clip(frames * 0.7 + 0.15 + random.normal(0, 0.1, frames.shape), 0.01, 0.99)
    training_data = DecoderTrainingData(
        {"r": Prediction(values, ethogram, RATE, exclusive=False)}, {"r": Annotation.from_frames(frames, ethogram, RATE)}, {}
    )
    assert training_data.segment_scorers["twitch"].typical_seconds < 2
    assert training_data.segment_scorers["sleep"].typical_seconds > 60
    decoded = DecoderConfig(min_score=0.25, frame_reward=0.5).fit(training_data).decode(values, ethogram, RATE, exclusive=False)
    assert score(decoded, training_data.truths["r"], resamples=0).behaviors["twitch"]["bout_f1"] > 0.9
    codes = np.where(short == 1, 0, np.where(long == 1, 1, 2))
    exclusive_data = DecoderTrainingData(
        {"r": Prediction(np.eye(3)[codes] * 0.7 + 0.1, WITH_OTHER, RATE)}, {"r": Annotation.from_frames(codes, WITH_OTHER, RATE)}, {}
    )
    a, b = (np.median(exclusive_data.durations[1][name]) for name in ("a", "b"))
    assert exclusive_data.segment_scorers[NO_BEHAVIOR].typical_seconds == pytest.approx(np.sqrt(a * b))


def test_training_rows_are_limited(monkeypatch):
    monkeypatch.setattr(segments, "MAX_TRAINING_ROWS", 700)
    row_counts = []
    rows = segments.SegmentFeatures.rows
    monkeypatch.setattr(segments.SegmentFeatures, "rows", lambda self, chosen: row_counts.append(len(chosen)) or rows(self, chosen))
    assert fitted_scorer.__wrapped__(2).states == STATES
    assert 350 < sum(row_counts) <= 702


def test_long_bouts_need_more_context():
    assert Decoder().context_seconds == 120.0
    assert Decoder(segment_scorers={NO_BEHAVIOR: replace(fitted_scorer(1), typical_seconds=250.0)}).context_seconds == 1000.0


@pytest.mark.slow
def test_the_best_decoder_may_score_segments():
    examples = {str(seed): draw_noisy(seed) for seed in range(4)}
    predictions = {k: Prediction(v, WITH_OTHER, RATE, exclusive=True) for k, (v, _) in examples.items()}
    truths = {k: Annotation.from_frames(c, WITH_OTHER, RATE) for k, (_, c) in examples.items()}
    decoder, trials = fit_decoder(predictions, truths, metric="segment_f1_50")
    best = {scored: max(t.value for t in trials if (t.config.min_score is not None) == scored) for scored in (False, True)}
    assert (next(t for t in trials if t.chosen).config.min_score is not None) == bool(decoder.segment_scorers) == (best[True] > best[False])
    assert fit_decoder(predictions, truths, sequences=False)[0].segment_scorers == {}
