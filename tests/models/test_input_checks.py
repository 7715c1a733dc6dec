"""Out-of-distribution check: recordings unlike the training data give a warning, others do not."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pytest

import ethobench as eb
from ethobench import Signals
from ethobench.features.multiscale import compute_baseline
from ethobench.models.input_checks import TrainingRange

CHANNELS = ("AccX", "AccY", "AccZ", "Depth", "Speed")


def signals(seed: int, scale=1.0, shift=0.0) -> Signals:
    values = np.random.default_rng(seed).normal(size=(2000, 5)) * np.array([0.2, 0.2, 0.2, 10, 1]) + [0, 0, 1, 50, 2]
    return Signals(values * scale + shift, CHANNELS, 20.0)


@pytest.fixture(scope="module")
def training_range() -> TrainingRange:
    return TrainingRange.fit([compute_baseline(signals(seed), 20.0) for seed in range(3)])


def test_another_animal_is_in_distribution(training_range):
    assert training_range.unusual_signals(compute_baseline(signals(9), 20.0)) == []
    assert training_range.warning(compute_baseline(signals(9), 20.0)) == ""


@pytest.mark.parametrize(("scale", "shift"), [(1.0, [0, 0, 0, 5000, 0]), ([1, 1, 1, 1000, 1], 0.0), ([1, 1, 1, 1e-4, 1], 0.0)])
def test_other_units_are_out_of_distribution(training_range, scale, shift):
    odd = training_range.unusual_signals(compute_baseline(signals(9, np.array(scale), np.array(shift)), 20.0))
    assert odd
    assert all(name.startswith("Depth") for name in odd)


def test_units_that_features_normalize_are_in_distribution(training_range):
    assert training_range.unusual_signals(compute_baseline(signals(9, np.array([9.81, 9.81, 9.81, 1, 1])), 20.0)) == []


def test_a_constant_channel_is_out_of_distribution(training_range):
    values = signals(9).values.copy()
    values[:, 4] = np.nan
    odd = training_range.unusual_signals(compute_baseline(Signals(values, CHANNELS, 20.0), 20.0))
    assert odd == ["Speed", "Speed|change"]


def test_the_check_round_trips_through_json(training_range):
    assert TrainingRange.from_dict(json.loads(json.dumps(dataclasses.asdict(training_range)))) == training_range


@pytest.mark.slow
def test_the_warning_is_issued_once(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=60)
    eb.create_model("boost", rounds=5).fit(data.select(individual=["animal01", "animal02"])).save(tmp_path / "m")
    model, recording = eb.load_model(tmp_path / "m"), data.recordings[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(recording)
        model.annotate(recording)
    odd = dataclasses.replace(recording.signals, values=np.where([True] * 3 + [False] * 3, recording.signals.values, 500.0))
    for look in (model.predict, model.annotate):
        with pytest.warns(UserWarning, match=r"is unlike the training data in \d+ of 18 signals \(GyrX, ") as caught:
            look(recording.copy(signals=odd))
        assert len(caught) == 1
