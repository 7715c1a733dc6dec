"""Pairs of a prediction and a truth: which frames count."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track
from ethobench.metrics import all_metrics
from ethobench.metrics.pairs import AlignedPair


def test_frames_that_only_the_truth_observed_count_unless_both_must_observe():
    truth = Annotation.from_frames(np.ones((100, 1), dtype=bool), ["a"], 10)
    pred = truth.crop(0, 60).extend(100)
    assert iv.total(pred.observed.of("a")) == 60
    recall = all_metrics()["frames.recall"]
    values = [
        recall.value(recall.statistics(pair))[0]
        for pair in (AlignedPair("r", "r", pred, truth), AlignedPair("r", "r", pred, truth, observed_by_both=True))
    ]
    assert values == [0.6, 1]


@pytest.mark.parametrize("n_frames", [1, 2, 10])
def test_events_at_the_very_end_belong_to_the_last_frame(n_frames):
    ethogram = Ethogram([Behavior("call", point=True)])
    side = Annotation.from_bouts([n_frames], [n_frames], ["call"], ethogram, 10, n_frames)
    counts = all_metrics()["bouts.f1"].statistics
    assert counts(AlignedPair("r", "r", side, side))[0, :3].tolist() == [1, 1, 1]
    unobserved = side.with_observed(iv.full(n_frames - 1))
    assert counts(AlignedPair("r", "r", side, unobserved))[0, :3].tolist() == [0, 0, 0]


def test_a_pair_is_exclusive_if_both_sides_are():
    single = Annotation.from_frames([0, 1], ["a", "b"], 10)
    overlapping = Annotation.from_frames([[1, 1], [0, 1]], ["a", "b"], 10)
    sides = {True: single, False: overlapping}
    for first, second in itertools.product(sides, sides):
        pair = AlignedPair("r", "r", sides[first], sides[second])
        assert pair.exclusive == (first and second)
        assert np.isnan(pair.confusion).all() == (not pair.exclusive)


def test_frames_count_for_a_behavior_only_where_it_was_observed():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    masks = {"a": rng.random(60) < 0.5, "b": rng.random(60) < 0.5}
    observed = Observed(iv.full(60), {Track(name): iv.from_mask(mask) for name, mask in masks.items()})
    truth = Annotation.from_frames(true, ["a", "b"], 10).with_observed(observed)
    pair = AlignedPair("r", "r", Annotation.from_frames(predicted, ["a", "b"], 10), truth, pool_subjects=True)
    counts = all_metrics()["frames.f1"].statistics(pair)
    for code, mask in enumerate(masks.values()):
        t, p = true[mask] == code, predicted[mask] == code
        assert counts[code].tolist() == [(t & p).sum(), (~t & p).sum(), (t & ~p).sum(), (~t & ~p).sum()]


def frames_of(spans):
    return {k for start, stop in zip(spans.start.tolist(), spans.stop.tolist(), strict=True) for k in range(start, stop)}


def two_animals(rng, background):
    """Return annotations of two animals, of which each has one behavior at a time, with tracks that are partly observed."""
    ethogram = Ethogram(["a", "b", "none"], background)
    starts, codes, who = [], [], []
    for subject in ("m1", "m2"):
        chosen = rng.integers(0, 3 if background is None else 4, 8)
        starts += [5 * k for k in range(8) if chosen[k] < 3]
        codes += [int(code) for code in chosen if code < 3]
        who += [subject] * int((chosen < 3).sum())
    tracks = {Track("a", "m1"): iv.from_mask(rng.random(40) < 0.8), Track(None, "m2"): iv.from_mask(rng.random(40) < 0.7)}
    observed = Observed(iv.from_mask(rng.random(40) < 0.9), tracks if rng.random() < 0.7 else None)
    return Annotation.from_bouts(
        starts, [s + 5 for s in starts], codes, ethogram, 5, 40, subject=who, subjects=["m1", "m2"], observed=observed
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("background", [None, "none"])
@pytest.mark.parametrize("by_both", [False, True])
def test_confusion_and_counts_of_two_animals_equal_counts_of_frames(seed, background, by_both):
    rng = np.random.default_rng(seed)
    truth, pred = two_animals(rng, background), two_animals(rng, background)
    pair = AlignedPair("r", "r", pred, truth, observed_by_both=by_both)
    names, size = pair.ethogram.names, 3 + (background is None)
    confusion, counts = np.zeros((size, size)), np.zeros((3, 4))
    for who in ("m1", "m2"):

        def code(side, frame, who=who):
            for k, name in enumerate(names):
                if frame in frames_of(side.spans(name, who)):
                    return k
            return names.index(background) if background else 3

        def observed(name, who=who):
            frames = frames_of(truth.observed.of(name, who))
            return frames & frames_of(pred.observed.of(name, who)) if by_both else frames

        for frame in set.intersection(*map(observed, names)):
            confusion[code(truth, frame), code(pred, frame)] += 1
        for k, name in enumerate(names):
            for frame in observed(name):
                is_true, is_predicted = code(truth, frame) == k, code(pred, frame) == k
                counts[k, {(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}[is_true, is_predicted]] += 1
    present = {(track.behavior, track.subject) for track in pair.tracks}
    assert pair.confusion.tolist() == confusion.tolist()
    table = all_metrics()["frames.f1"].statistics(pair)
    for k in range(3):
        if {(k, "m1"), (k, "m2")} <= present:
            assert table[k].tolist() == counts[k].tolist()
