"""Thresholds and cross-validation splits."""

from __future__ import annotations

import numpy as np
from tests.decoding.examples import WITH_OTHER, draw_noisy_prediction

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.training_data import cross_validation_splits, fit_thresholds


def test_thresholds_maximize_f1():
    random = np.random.default_rng(0)
    truth = (random.random(4000) < 0.1).astype(int)
    values = np.clip(0.15 + 0.25 * truth + 0.07 * random.normal(size=4000), 0, 1)[:, None]
    single = Ethogram(["a"])
    annotation = Annotation.from_frames(truth[:, None], single, 1)
    thresholds = fit_thresholds({"r": Prediction(values, single, 1, exclusive=False)}, {"r": annotation})
    f1 = {
        t: 2 * ((values[:, 0] >= t) & (truth == 1)).sum() / ((values[:, 0] >= t).sum() + truth.sum()) for t in np.linspace(0.05, 0.95, 181)
    }
    predicted = values[:, 0] >= thresholds["a"]
    assert 2 * (predicted & (truth == 1)).sum() / (predicted.sum() + truth.sum()) > max(f1.values()) - 0.01
    rare = Ethogram(["a", "other"], background="other")
    both = np.concatenate([values, 1 - values], axis=1)
    exclusive_thresholds = fit_thresholds({"r": Prediction(both, rare, 1)}, {"r": Annotation.from_frames(1 - truth, rare, 1)})
    decoded = Decoder(thresholds=exclusive_thresholds).decode(both, rare, 1).to_codes() == 0
    assert 2 * (decoded & (truth == 1)).sum() / (decoded.sum() + truth.sum()) > max(f1.values()) - 0.02
    without_bouts = fit_thresholds({"r": Prediction(both, rare, 1)}, {"r": Annotation.from_frames(np.ones(4000), rare, 1)})
    assert without_bouts == {}


def test_recordings_of_one_group_are_never_on_both_sides():
    truths = {str(seed): draw_noisy_prediction(seed, n=200)[1] for seed in range(6)}
    groups = {"0": "x;y", "1": "y", "2": "z", "3": "z", "4": "w", "5": "x"}
    splits = cross_validation_splits(truths, WITH_OTHER, groups, 5)
    assert len(splits) == 3
    assert sorted(name for _, held_out in splits for name in held_out) == sorted(truths)
    for fit_on, held_out in splits:
        assert {*fit_on} == {*truths} - {*held_out}
        for group in ({"0", "1", "5"}, {"2", "3"}, {"4"}):
            assert group <= {*held_out} or not group & {*held_out}


def test_a_single_group_is_fitted_and_evaluated_on_the_same_recordings():
    truths = {str(seed): draw_noisy_prediction(seed, n=200)[1] for seed in range(2)}
    assert cross_validation_splits(truths, WITH_OTHER, dict.fromkeys(truths, "one"), 5) == [(["0", "1"], ["0", "1"])]
    assert cross_validation_splits(truths, WITH_OTHER, {}, 1) == [(["0", "1"], ["0", "1"])]
