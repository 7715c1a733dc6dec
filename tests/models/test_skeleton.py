"""A model reads another lab's skeleton."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ethobench import Poses, Recording, create_model, load_dataset
from ethobench.core.errors import MismatchError

pytestmark = pytest.mark.slow

OTHER = {"nose": "snout", "left_ear": "earL", "right_ear": "earR", "tail_base": "tailbase"}


@pytest.fixture(scope="module")
def data():
    return load_dataset("synthetic/pose", individuals=3, seconds=40.0)


@pytest.fixture(scope="module")
def model(data):
    return create_model("rf", trees=10, seconds=0.5).fit(data.select(recordings=[r.id for r in data][:2]))


def test_other_names_give_the_same_prediction(data, model):
    test = data.recordings[2]
    poses = test.signals
    assert {*OTHER} <= {*poses.keypoints}, poses.keypoints
    order = np.arange(len(poses.keypoints))[::-1]
    other = replace(
        poses,
        positions=poses.positions[:, :, order],
        confidence=poses.confidence[:, :, order],
        keypoints=tuple(OTHER.get(poses.keypoints[k], poses.keypoints[k]) for k in order),
        individuals=("black", "white"),
    )
    adapted = model.adapt(test.copy(signals=other))
    notes = " ".join(str(note) for note in adapted.notes)
    assert "snout as nose" in notes
    assert "black as" in notes
    np.testing.assert_allclose(model.predict(adapted).probabilities, model.predict(test).probabilities)
    assert model.adapt(test) is test


def test_another_number_of_animals_is_refused(data, model):
    test = data.recordings[2]
    poses = test.signals
    alone = replace(poses, positions=poses.positions[:, :1], confidence=poses.confidence[:, :1], individuals=("black",))
    with pytest.raises(MismatchError, match="has 1 animals"):
        model.adapt(test.copy(signals=alone))


def test_missing_keypoints_do_not_affect_their_neighbors():
    from ethobench.models.adapt import resample_recording

    positions = np.full((60, 1, 1, 2), 300.0)
    positions += np.random.default_rng(0).normal(0, 1, positions.shape)
    positions[20:30] = 0.0
    recording = Recording("r", signals=Poses(positions, np.full((60, 1, 1), np.nan), ("a",), ("nose",), 30.0), rate=30.0)
    with pytest.warns(UserWarning, match="resampled"):
        moved = resample_recording(recording, 20.0).signals.positions
    tracked = moved[np.isfinite(moved)]
    assert tracked.min() > 290
    assert np.isnan(moved).any()
