"""Zones as inputs of models."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench.core import Annotation, Dataset, Ethogram, Poses, Recording
from ethobench.core.errors import MismatchError
from ethobench.datasets.zones import Zone

RATE, N_FRAMES = 20.0, 1200
ETHOGRAM = Ethogram(["other", "nesting"], background="other")


def recording(seed: int, *, has_zones: bool = True) -> Recording:
    """Return an animal that wanders, and is nesting wherever it is inside a zone that has another position in each recording."""
    random = np.random.default_rng(seed)
    corner = random.uniform(0, 60, 2)
    zone = Zone("nest", "rectangle", (tuple(corner), tuple(corner + 40)))
    path = np.cumsum(random.normal(0, 4, (N_FRAMES, 2)), axis=0)
    center = 100 * np.abs(np.mod(path / 100, 2) - 1)  # reflected at the walls of an arena of 100 x 100
    half = np.array([4.0, 0.0])
    positions = np.stack([center + half, center - half], axis=1)[:, None]
    poses = Poses(positions, np.ones((N_FRAMES, 1, 2)), ("mouse",), ("nose", "tail_base"), RATE)
    inside = zone.contains(center, None)
    annotation = Annotation.from_frames(inside.astype(int), ETHOGRAM, RATE)
    metadata = {"zones": [zone.to_dict()]} if has_zones else {}
    return Recording(f"m{seed}", rate=RATE, signals=poses, annotations={"a": annotation}, individual=f"m{seed}", metadata=metadata)


def frame_f1(model: eb.Model, recordings: list[Recording]) -> float:
    predictions = {each.id: model.predict(each).annotation for each in recordings}
    return eb.score(predictions, {each.id: each.annotation() for each in recordings}, resamples=0).overall["f1"]


@pytest.mark.slow
def test_a_behavior_that_depends_on_a_zone_is_learned_with_zones_only(tmp_path):
    data = Dataset(tuple(recording(seed) for seed in range(5)), ETHOGRAM)
    test = [recording(seed) for seed in (11, 12)]
    model = eb.create_model("boost", zones=True, rounds=40).fit(data)
    assert "features/zone/nest/inside/1" in model.inputs
    with_zones = frame_f1(model, test)
    assert with_zones > 0.9
    assert frame_f1(eb.create_model("boost", rounds=40).fit(data), test) < with_zones - 0.1
    model.save(tmp_path / "model")
    loaded = eb.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(test[0]).probabilities, model.predict(test[0]).probabilities)
    other_name = test[0].copy(signals=Poses(**{**vars(test[0].signals), "individuals": ("rat",)}))
    np.testing.assert_array_equal(loaded.predict(loaded.adapt(other_name)).probabilities, model.predict(test[0]).probabilities)
    with pytest.raises(MismatchError, match=r"'m13' has no zones, which the model uses as inputs \(zones=True\)"):
        model.predict(recording(13, has_zones=False))


@pytest.mark.slow
def test_auto_passes_zones_to_its_members():
    data = Dataset(tuple(recording(seed) for seed in range(4)), ETHOGRAM)
    model = eb.create_model("auto", zones=True, budget=5).fit(data)
    assert "features/zone/nest/distance/1" in model.inputs
    assert frame_f1(model, [recording(21)]) > 0.85


def test_training_without_zones_is_refused():
    data = Dataset((recording(0), recording(1, has_zones=False)), ETHOGRAM)
    with pytest.raises(MismatchError, match=r"list them in zones\.csv"):
        eb.create_model("boost", zones=True).fit(data)
