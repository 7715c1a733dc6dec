"""The Viterbi path against a plain loop, and transition models against counts."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoding.examples import AB, truth_of
from tests.hypothesis_limits import at_most

from ethobench.core import Annotation
from ethobench.core.errors import EthobenchError
from ethobench.decoding import viterbi
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel, fit_transition_models, viterbi_path


def viterbi_frame_by_frame(log_likelihood, model, rate):
    """Search frame by frame over all stages, with one matrix of log transition probabilities."""
    stages = [min(k, max(int(s * rate), 1)) for k, s in zip(model.stages, model.mean_seconds, strict=True)]
    stages_in_order = [(c, k) for c in range(len(stages)) for k in range(stages[c])]
    step = np.full((len(stages_in_order), len(stages_in_order)), -np.inf)
    for i, (c, k) in enumerate(stages_in_order):
        leave = min(stages[c] / (model.mean_seconds[c] * rate), 1 - 1e-3)
        step[i, i] = math.log(1 - leave)
        for j, (d, m) in enumerate(stages_in_order):
            if d == c and m == k + 1:
                step[i, j] = math.log(leave)
            if d != c and k == stages[c] - 1 and m == 0 and model.transitions[c][d] > 0:
                step[i, j] = math.log(leave) + math.log(model.transitions[c][d])
    best, sources = np.array([log_likelihood[0][c] for c, _ in stages_in_order]), []
    for row in log_likelihood[1:]:
        scores = best[:, None] + step
        sources.append(scores.argmax(axis=0))
        best = scores.max(axis=0) + [row[c] for c, _ in stages_in_order]
    path = [int(best.argmax())]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return [stages_in_order[i][0] for i in reversed(path)]


def random_model(random, n):
    transitions = random.random((n, n)) * (1 - np.eye(n)) + 0.01 * (1 - np.eye(n))
    transitions /= transitions.sum(axis=1, keepdims=True)
    rows = tuple(tuple(map(float, row)) for row in transitions)
    return TransitionModel(tuple("abcde"[:n]), tuple(random.uniform(0.05, 3, n).tolist()), tuple(random.integers(1, 5, n).tolist()), rows)


@at_most(60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 150), st.sampled_from([0.05, 1.0, 4.0]), st.sampled_from([1, 3, 16]))
def test_search_in_blocks_equals_search_frame_by_frame(seed, n, frames, strength, block):
    random = np.random.default_rng(seed)
    model, log_likelihood = random_model(random, n), strength * random.normal(size=(frames, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viterbi, "MIN_BLOCK_FRAMES", block)
        patch.setattr(viterbi, "BLOCK_GROWTH", (1, 2))
        path = viterbi_path(log_likelihood, model, 10.0)
    assert path.tolist() == viterbi_frame_by_frame(log_likelihood, model, 10.0)


def test_path_of_a_long_recording():
    random = np.random.default_rng(1)
    model, log_likelihood = random_model(random, 4), random.normal(size=(5000, 4))
    assert viterbi_path(log_likelihood, model, 10.0).tolist() == viterbi_frame_by_frame(log_likelihood, model, 10.0)


def test_path_is_the_most_likely_of_all_paths():
    random = np.random.default_rng(2)
    model = TransitionModel(("a", "b"), (0.4, 0.7), (1, 1), ((0.0, 1.0), (1.0, 0.0)))
    log_likelihood = random.normal(size=(10, 2))
    leave = [1 / 4, 1 / 7]

    def value(path):
        steps = sum(math.log(leave[x] if x != y else 1 - leave[x]) for x, y in pairwise(path))
        return steps + sum(log_likelihood[t][state] for t, state in enumerate(path))

    assert tuple(viterbi_path(log_likelihood, model, 10.0).tolist()) == max(product((0, 1), repeat=10), key=value)


def test_complete_bouts_have_at_least_as_many_frames_as_stages():
    random = np.random.default_rng(3)
    model = TransitionModel(("a", "b"), (1.0, 2.0), (3, 6), ((0.0, 1.0), (1.0, 0.0)))
    path = viterbi_path(3 * random.normal(size=(2000, 2)), model, 10.0)
    edges = np.flatnonzero(np.diff(path)) + 1
    for start, stop in pairwise(edges):
        assert stop - start >= (3, 6)[path[start]]


def test_path_with_one_state_or_no_frames():
    only_state = TransitionModel(("a",), (1.0,), (1,), ((0.0,),))
    assert viterbi_path(np.zeros((3, 1)), only_state, 1.0).tolist() == [0, 0, 0]
    assert viterbi_path(np.zeros((0, 1)), only_state, 1.0).tolist() == []


@pytest.mark.parametrize(
    ("states", "mean_seconds", "stages", "transitions"),
    [
        (("a", "a"), (1.0, 1.0), (1, 1), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 0.0), (1, 1), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 0), ((0.0, 1.0), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 1), ((0.5, 0.5), (1.0, 0.0))),
        (("a", "b"), (1.0, 1.0), (1, 1), ((0.0, 0.7), (1.0, 0.0))),
        ((), (), (), ()),
    ],
)
def test_invalid_transition_models_are_refused(states, mean_seconds, stages, transitions):
    with pytest.raises(EthobenchError):
        TransitionModel(states, mean_seconds, stages, transitions)


def test_transitions_and_durations_are_counted():
    truths = [truth_of("aa-bbb--aaaa-b"), truth_of("bbaa..aab--b")]
    fitted = fit_transition_models(truths, exclusive=True)[NO_BEHAVIOR]
    assert fitted.states == ("a", "b", NO_BEHAVIOR)
    # complete bouts, observed before and after: a 4; b 3, 1; no behavior 1, 2, 1, 2
    assert fitted.mean_seconds == pytest.approx((4.0, 2.0, 1.5))
    # transitions, each plus a pseudocount of 0.5: a to b once, to no behavior twice; b to a and no behavior; no behavior to a and b
    assert np.array(fitted.transitions) == pytest.approx(np.array([[0, 1.5 / 4, 2.5 / 4], [1.5 / 4, 0, 2.5 / 4], [1.5 / 5, 3.5 / 5, 0]]))
    assert fitted.stages == (1, 1, 1)


def test_regular_durations_get_more_stages():
    regular, varied = "a" * 10 + "b" * 10, "a" * 10
    text = varied.join(["b" * k for k in (1, 30, 2, 25, 1, 40, 3)])
    fitted = fit_transition_models([truth_of(regular * 5), truth_of(text)], exclusive=True, max_stages=4)[NO_BEHAVIOR]
    assert fitted.stages[0] == 1  # a has no variance
    text = "-".join(letters * (10 + k % 3) for k, letters in enumerate("abababab"))
    fitted = fit_transition_models([truth_of(f"-{text}-")], exclusive=True, max_stages=4)[NO_BEHAVIOR]
    assert fitted.stages[:2] == (4, 4)


def test_transition_models_of_overlapping_behaviors():
    frames = np.array([[0, 1, 1, 0, 0, 0, 1, 0], [1, 1, 0, 0, 1, 1, 1, 1]]).T
    fitted = fit_transition_models([Annotation.from_frames(frames, AB, 1)], exclusive=False)
    assert fitted["a"].states == (NO_BEHAVIOR, "a")
    assert fitted["a"].mean_seconds == pytest.approx((3.0, 1.5))
    assert fitted["b"].mean_seconds == pytest.approx((2.0, 6.0))  # no complete bout: six seconds in which one ended
