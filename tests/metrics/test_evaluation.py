"""Statistics of recordings, stored and combined."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Ethogram, Prediction
from ethobench.core import Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError


def test_states_restore_all_scores():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(4) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "bebe"):
        complete = eb.score(pairs, suite=suite)
        halves = [eb.score({n: pairs[n] for n in names}, suite=suite).to_state() for names in (["r0", "r1"], ["r2", "r3"])]
        restored = eb.Scores.from_states(halves)
        assert restored.overall == pytest.approx(complete.overall, nan_ok=True)
        assert restored.intervals["overall"].keys() == complete.intervals["overall"].keys()


def test_scores_of_other_suites_are_not_combined():
    annotation = Annotation.from_frames(np.repeat([0, 1, 2], 10), ["x", "y", "z"], 5)
    states = [eb.score(annotation, annotation, resamples=0, **choice).to_state() for choice in ({}, {"suite": "bebe"})]
    with pytest.raises(MismatchError, match="same suite and background"):
        eb.Scores.from_states(states)


@pytest.mark.parametrize("suite", ["ethobench", "calms21", "mabe2025"])
@pytest.mark.parametrize("labeled", [("xz", "xz", "yz", "yz"), ("x", "x", "y", "y"), ("xyz", "xyz", "z", "z"), ("x", "xyz", "y", "yz")])
def test_folds_with_other_observed_behaviors_are_combined(suite, labeled):
    """Behaviors that no recording of a fold observes are not scored there; together the folds have the scores of one scoring."""
    names = ["w", "x", "y", "z"]
    pairs = {}
    for k, letters in enumerate(labeled):
        truth, pred = (np.random.default_rng([k, side]).integers(0, 4, 12).repeat(6) for side in range(2))
        observed = Observed(iv.empty(), dict.fromkeys(map(Track, ["w", *letters]), iv.full(72)))
        pairs[f"r{k}"] = (Annotation.from_frames(pred, names, 5), Annotation.from_frames(truth, names, 5).with_observed(observed))
    complete = eb.score(pairs, suite=suite, resamples=0)
    states = [eb.score({n: pairs[n] for n in half}, suite=suite, resamples=0).to_state() for half in (["r0", "r1"], ["r2", "r3"])]
    for order in (states, states[::-1]):
        combined = eb.Scores.from_states(order, resamples=0)
        assert {*combined.ethogram.names} == {*complete.ethogram.names}
        assert combined.overall == pytest.approx(complete.overall, nan_ok=True)
        for name, values in complete.behaviors.items():
            assert combined.behaviors[name] == pytest.approx(values, nan_ok=True)


def test_a_recording_without_probabilities_leaves_their_scores_undefined():
    ethogram = Ethogram(["x", "y"])
    truth = Annotation.from_frames([0, 0, 1, 1], ethogram, 5)
    prediction = Prediction([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]], ethogram, 5, exclusive=True)
    assert np.isfinite(eb.score({"a": (prediction, truth)}, resamples=0).overall["map"])
    mixed = eb.score({"a": (prediction, truth), "b": (truth, truth)}, resamples=0)
    assert np.isnan(mixed.overall["map"])
    assert np.isnan(mixed.behaviors["x"]["map"])
    assert np.isfinite(mixed.overall["f1"])


def test_means_over_recordings_are_added_one_by_one():
    """As the published code does, so that results are equal to the last bit."""
    rng = np.random.default_rng(0)
    truths = [np.repeat(rng.integers(0, 3, 30), 7) for _ in range(23)]
    pairs = {f"r{k}": tuple(Annotation.from_frames(c, ["x", "y", "z"], 5) for c in (np.roll(t, k), t)) for k, t in enumerate(truths)}
    scores = eb.score(pairs, suite="rodentbench", resamples=0)
    averaged = [measure.name for measure in scores.suite.measures if measure.over == "recordings"]
    by_recording = scores.overall_per("recording")
    assert len(averaged) >= 4
    for name in averaged:
        cells = [value for value in by_recording[name].tolist() if not np.isnan(value)]
        assert scores.overall[name] == sum(cells) / len(cells)
