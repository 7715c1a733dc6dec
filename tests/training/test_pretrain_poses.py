"""Pre-training on poses without labels."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Dataset
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.training.pretrain_poses import hide, pretext_loss, pretrain_poses
from ethobench.training.tensors import read_tensors

pytestmark = pytest.mark.slow

SHAPE = {"past": 6, "future": 6, "frame_stride": 1, "layers": (8, 4), "kernel": 3}


@pytest.fixture(scope="module")
def mice() -> Dataset:
    data = eb.load_dataset("synthetic/pose", individuals=5, seconds=20)
    return Dataset(tuple(r.copy(annotations={}) for r in data), data.ethogram, "mice")


@pytest.fixture(scope="module")
def learnt(mice, tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrained") / "encoder"
    card = pretrain_poses(mice, out, **SHAPE, epochs=6, batch=32, learning_rate=3e-3)
    return out, card


def test_a_stretch_and_whole_keypoints_are_hidden():
    hidden = hide((200, 40, 28), np.random.default_rng(0))
    pairs = hidden.reshape(200, 40, 14, 2)
    assert np.array_equal(pairs[..., 0], pairs[..., 1])
    points = hidden.all(axis=1)
    assert 0.12 < points.mean() < 0.18
    frames = hidden.all(axis=2)
    runs = np.diff(frames, axis=1, prepend=False).sum(axis=1)
    assert runs.max() <= 2
    assert frames.sum(axis=1).min() >= 4
    assert frames.sum(axis=1).max() <= 14
    rest = ~points[:, None, :] & ~frames[:, :, None]
    assert not hidden[rest].any()


def test_the_loss_counts_only_what_was_hidden_and_known():
    outputs, targets = torch.zeros(1, 2 + 30), torch.full((1, 2 + 10), -1.0)
    targets[0, :2] = torch.tensor([3.0, torch.nan])
    targets[0, 2] = 2
    outputs[0, 2:5] = torch.tensor([0.0, 0.0, 1.0])
    loss = pretext_loss(("masked", "attributes"), 2, np.array([4.5, 1.0], dtype=np.float32))
    assert loss(outputs, targets).item() == pytest.approx(9 / 4.5 + np.log(2 + np.e) - 1, rel=1e-5)


def test_it_learns_and_tells_what_it_did(learnt):
    out, card = learnt
    assert card["losses"][-1] < 0.8 * card["losses"][0]
    assert min(card["validation"]) < card["validation"][0]
    assert json.loads((out / "encoder.json").read_text(encoding="utf-8"))["params"]["past"] == 6
    assert not [name for name in read_tensors(out / "encoder.safetensors")[0] if name.startswith("head")]


def test_conv1d_begins_with_it(learnt):
    out, _ = learnt
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=20, seed=3)
    model = eb.create_model("conv1d", **SHAPE, init=str(out), head_epochs=1, epochs=0, samples_per_epoch=200).fit(data)
    weights = read_tensors(out / "encoder.safetensors")[0]
    assert torch.equal(model.module.body[0].weight, weights["body.0.weight"])
    assert model.predict(data.recordings[0]).probabilities.shape == (600, 4)


@pytest.mark.parametrize("task", ["masked", "arrow", "attributes"])
def test_either_task_alone(task, mice, tmp_path):
    card = pretrain_poses(mice, tmp_path / "out", **SHAPE, tasks=[task], augment=["rotation"], inputs="egocentric", epochs=1, samples_per_epoch=100)
    assert card["tasks"] == [task]
    assert np.isfinite(card["losses"]).all()


def test_time_is_turned_in_half_of_the_windows(mice):
    from ethobench.training.pretrain_poses import PosePretexts, _windows
    from ethobench.training.trajectories import Reach
    from ethobench.training.trajectory_inputs import learn_preparation

    how = learn_preparation(mice.recordings, "coordinates", 30.0, causal=False)
    windows = _windows(mice.recordings, how, Reach(10, 10, 1), 64, None, ())
    plan = windows.draw(np.random.default_rng(0))[0]
    seen, targets = PosePretexts(windows, ("arrow", "attributes")).gather(plan)
    whole, levels = windows.gather(plan)
    turned = targets[:, 0] == 1
    assert 0.2 < turned.mean() < 0.8
    assert np.array_equal(seen[turned], whole[turned][:, ::-1])
    assert np.array_equal(seen[~turned], whole[~turned])
    assert np.array_equal(targets[:, 1:], levels)


def test_one_animal_will_do_where_no_attributes_are_told(mice, tmp_path):
    alone = tuple(r.copy(signals=dataclasses.replace(r.signals, **_first(r.signals))) for r in mice)
    data = dataclasses.replace(mice, recordings=alone)
    card = pretrain_poses(data, tmp_path / "one", **SHAPE, epochs=1, batch=32, tasks=["arrow", "masked"])
    assert card["tasks"] == ["masked", "arrow"]
    with pytest.raises(EthobenchError, match="reach as far ahead as back"):
        pretrain_poses(data, tmp_path / "two", **{**SHAPE, "past": SHAPE["past"] + 1}, tasks=["arrow"])


def _first(poses):
    return {"positions": poses.positions[:, :1], "confidence": poses.confidence[:, :1], "individuals": poses.individuals[:1]}


def test_the_same_seed_gives_the_same(mice, tmp_path):
    first, again = (pretrain_poses(mice, tmp_path / name, **SHAPE, epochs=1, samples_per_epoch=200, seed=1) for name in ("a", "b"))
    assert first == again


def test_what_cannot_be_is_refused(mice, learnt, tmp_path):
    out, _ = learnt
    with pytest.raises(EthobenchError, match="already exists"):
        pretrain_poses(mice, out)
    with pytest.raises(EthobenchError, match="tasks are some of masked, arrow, attributes, not guess"):
        pretrain_poses(mice, tmp_path / "x", tasks=["guess"])
    with pytest.raises(EthobenchError, match="not 'features'"):
        pretrain_poses(mice, tmp_path / "x", inputs="features")
    with pytest.raises(EthobenchError, match="no poses of 2 animals"):
        pretrain_poses(eb.load_dataset("synthetic/tag", individuals=2, seconds=5), tmp_path / "x")
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=5)
    with pytest.raises(MismatchError, match="holds layers for model 'conv1d', not for 'dense'"):
        eb.create_model("dense", init=str(out)).fit(data)
    with pytest.raises(MismatchError, match="has past=6, this one 9"):
        eb.create_model("conv1d", **{**SHAPE, "past": 9}, init=str(out)).fit(data)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "encoder.safetensors").write_bytes((out / "encoder.safetensors").read_bytes())
    (broken / "encoder.json").write_text('{"config": "conv1d"}', encoding="utf-8")
    with pytest.raises(FormatError, match="damaged"):
        eb.create_model("conv1d", **SHAPE, init=str(broken)).fit(data)
