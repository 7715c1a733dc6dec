"""Pre-training without labels, and what it leaves behind."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Dataset, Signals
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.datasets.synthetic import make_dataset
from ethobench.training.encoders import PretextNetwork
from ethobench.training.pretrain import PretextWindows, _windows, pretext_loss, pretrain
from ethobench.training.tensors import read_tensors

pytestmark = pytest.mark.slow

QUICK = {"config": "harnet5", "epochs": 1, "subjects": 2, "per_subject": 4}


@pytest.fixture(scope="module")
def tag() -> Dataset:
    data = make_dataset("tag", individuals=5, seconds=40)
    return Dataset(tuple(r.copy(annotations={}) for r in data), data.ethogram, name="unlabelled", version="1")


def test_an_encoder_is_made_without_labels_and_harnet_takes_it(tag, tmp_path):
    card = pretrain(tag, tmp_path / "encoder", **QUICK)
    assert json.loads((tmp_path / "encoder" / "encoder.json").read_text(encoding="utf-8")) == card
    assert card["individuals"] == [4, 1]
    assert card["windows"] == [4 * 8, 8]
    assert set(card["told_right"]) == {"arrow", "permutation", "warp"}
    labelled = make_dataset("tag", individuals=1, seconds=20)
    model = eb.create_model("harnet", config="harnet5", epochs=1, weights=str(tmp_path / "encoder"), rate=30.0).fit(labelled)
    tensors, _ = read_tensors(tmp_path / "encoder" / "encoder.safetensors")
    used = model.module.encoder.state_dict()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in used.items())


@pytest.mark.slow
def test_the_arrow_of_time_can_be_learnt(tmp_path):
    """Shocks that ring down tell which way time runs, whatever way the tag sits."""
    generator = np.random.default_rng(0)
    base = make_dataset("tag", individuals=5, seconds=150, rate=30.0)
    recordings = []
    for recording in base:
        n = recording.n_frames
        shocks = np.exp(-6 * (np.cumsum(generator.uniform(0.03, 0.05, n)) % 1.0))
        vector = generator.normal(size=3)
        values = shocks[:, None] * vector / np.linalg.norm(vector) + generator.normal(0, 0.02, (n, 3))
        recordings.append(recording.copy(signals=Signals(values, ("AccX", "AccY", "AccZ"), 30.0), annotations={}))
    data = Dataset(tuple(recordings), base.ethogram)
    told = pretrain(
        data, tmp_path / "e", config="harnet5", tasks=["arrow"], epochs=7, learning_rate=1e-3, subjects=1, per_subject=15, patience=7
    )
    assert told["told_right"]["arrow"] > 0.85


@pytest.mark.slow
def test_the_same_seed_gives_the_same_encoder(tag, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        pretrain(tag, tmp_path / name, seed=seed, **QUICK)
    a, b, c = ((tmp_path / name / "encoder.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_held_out_individuals_are_not_learnt_from(tag):
    recordings = list(tag)
    parts = [_windows(some, tag, 150, 30.0, ("arrow",), 2, 4) for some in (recordings[:4], recordings[4:])]
    assert set(parts[0].groups) & set(parts[1].groups) == set()
    assert parts[0].windows.shape == (32, 150, 3)
    lengths = np.linalg.norm(parts[0].windows[:8], axis=2).mean()
    assert lengths == pytest.approx(1.0, abs=0.02)


def test_windows_with_movement_are_drawn_more_often():
    weights = np.array([1.0, 1.0, 8.0, 0.0])
    part = PretextWindows(np.zeros((4, 60, 3), np.float32), np.zeros(4, np.int64), weights, ("arrow",), 1, 1)
    generator = np.random.default_rng(0)
    drawn = np.bincount([part.draw(generator)[0].windows[0] for _ in range(2000)], minlength=4) / 2000
    assert drawn == pytest.approx(weights / 10, abs=0.04)


def test_batches_hold_some_windows_of_some_individuals():
    groups = np.repeat(np.arange(5), 10)
    part = PretextWindows(np.zeros((50, 60, 3), np.float32), groups, np.ones(50), ("arrow",), 2, 4)
    plans = part.draw(np.random.default_rng(0))
    assert [len(plan.windows) for plan in plans] == [8, 8, 4]
    assert sorted(int(g) for plan in plans for g in np.unique(groups[plan.windows])) == list(range(5))
    assert all(len(set(plan.windows)) == len(plan.windows) for plan in plans)


def test_the_loss_is_the_mean_over_tasks():
    scores = torch.tensor([[[0.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 3.0]]])
    labels = torch.tensor([[1, 0], [0, 1]])
    each = [np.log(1 + np.exp(-x)) for x in (1.0, 2.0, 0.0, 3.0)]
    assert pretext_loss(scores, labels).item() == pytest.approx(np.mean(each), rel=1e-5)
    assert PretextNetwork("harnet5", ["arrow", "warp"])(torch.zeros(3, 150, 3)).shape == (3, 2, 2)


def test_gaps_are_left_out(tag):
    first = tag.recordings[0]
    values = first.signals.values.copy()
    values[30:40, 1] = np.nan
    broken = first.copy(signals=Signals(values, first.signals.channels, first.signals.rate))
    part = _windows([broken], tag, 150, 30.0, ("arrow",), 2, 4)
    assert len(part.windows) == 7
    assert np.isfinite(part.windows).all()


def test_what_cannot_be_pretrained_on_is_refused_in_words(tag, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(EthobenchError, match="already exists"):
        pretrain(tag, tmp_path / "there", **QUICK)
    with pytest.raises(EthobenchError, match="one of harnet5, harnet10, harnet30, small, not 'large'"):
        pretrain(tag, tmp_path / "x", config="large")
    with pytest.raises(EthobenchError, match="not jump"):
        pretrain(tag, tmp_path / "x", tasks=["arrow", "jump"])
    with pytest.raises(EthobenchError, match="only one individual"):
        pretrain(tag.select(individual="animal01"), tmp_path / "x", **QUICK)
    with pytest.raises(EthobenchError, match="a window takes 30 s"):
        pretrain(make_dataset("tag", individuals=3, seconds=20), tmp_path / "x", config="small", epochs=1)
    with pytest.raises(EthobenchError, match="no accelerometer"):
        pretrain(make_dataset("pose", individuals=3, seconds=20), tmp_path / "x", **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    with pytest.raises(FormatError, match="no pre-trained encoder"):
        eb.create_model("harnet", weights=str(tmp_path / "there"), epochs=1).fit(make_dataset("tag", individuals=1, seconds=20))
