"""Self-supervised pre-training of encoders on tags, and of convolutional layers on poses."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Dataset, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.datasets.synthetic import make_dataset
from ethobench.models.bebe_modules import PretextNetwork
from ethobench.models.pretraining import acceleration_windows, pretrain, pretrain_poses
from ethobench.training.pretexts import AccelerationBatches, cut_windows
from ethobench.training.weight_files import read_tensors

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:at chance on held-out individuals")]

QUICK = {"config": "harnet5", "epochs": 1, "subjects": 2, "per_subject": 4, "updates": 2}


@pytest.fixture(scope="module")
def tag() -> Dataset:
    data = make_dataset("tag", individuals=5, seconds=40)
    return Dataset(tuple(r.copy(annotations={}) for r in data), data.ethogram, name="unlabeled", version="1")


def test_a_pretext_network_has_two_scores_per_task():
    assert PretextNetwork("harnet5", ["arrow", "warp"])(torch.zeros(3, 150, 3)).shape == (3, 2, 2)


def test_harnet_uses_an_encoder_that_was_pretrained_without_labels(tag, tmp_path):
    with pytest.warns(UserWarning, match="at chance on held-out individuals"):
        card = pretrain(tag, tmp_path / "encoder", **QUICK)
    written = json.loads((tmp_path / "encoder" / "encoder.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps({"format_version": 1, **card}))
    assert card["individuals"] == [4, 1]
    assert card["windows"] == [4 * 59, 59]  # 40 s at 30 Hz in windows of 150 frames that start every 18 frames
    assert set(card["held_out"]) == {"arrow", "permutation", "warp"}
    assert all(each["chance"] == 0.5 and 0 <= each["value"] <= 1 for each in card["held_out"].values())
    labeled = make_dataset("tag", individuals=1, seconds=20)
    model = eb.create_model("harnet", config="harnet5", epochs=1, weights=str(tmp_path / "encoder"), rate=30.0).fit(labeled)
    tensors, _ = read_tensors(tmp_path / "encoder" / "encoder.safetensors")
    used = model.module.encoder.state_dict()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in used.items())


@pytest.mark.slow
@pytest.mark.parametrize(("rotated", "gravity", "size"), [(True, 0.0, 1.0), (False, 1.0, 0.3)])
def test_the_arrow_of_time_can_be_learned(rotated, gravity, size, tmp_path):
    """Decaying shocks show the direction of time: whatever the orientation of the tag, or beside gravity that is much stronger."""
    generator = np.random.default_rng(0)
    base = make_dataset("tag", individuals=5, seconds=150, rate=30.0)
    recordings = []
    for recording in base:
        n = recording.n_frames
        shocks = np.exp(-6 * (np.cumsum(generator.uniform(0.03, 0.05, n)) % 1.0))
        vector = generator.normal(size=3) if rotated else np.ones(3)
        values = size * shocks[:, None] * vector / np.linalg.norm(vector) + generator.normal(0, 0.02, (n, 3)) + [0, 0, gravity]
        recordings.append(recording.copy(signals=Signals(values, ("AccX", "AccY", "AccZ"), 30.0), annotations={}))
    data = Dataset(tuple(recordings), base.ethogram)
    batches = {"subjects": 1, "per_subject": 15, "updates": 4, "rotated": rotated}
    card = pretrain(data, tmp_path / "e", config="harnet5", tasks=["arrow"], epochs=7, patience=7, learning_rate=1e-3, **batches)
    assert card["rotated"] is rotated
    assert card["held_out"]["arrow"]["value"] > 0.85


@pytest.mark.slow
def test_the_same_seed_gives_the_same_encoder(tag, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        pretrain(tag, tmp_path / name, seed=seed, **QUICK)
    a, b, c = ((tmp_path / name / "encoder.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_training_and_validation_share_no_individual(tag):
    recordings = list(tag)
    training, validation = (acceleration_windows(subset, tag, 150, 30.0) for subset in (recordings[:4], recordings[4:]))
    assert set(training[2]) & set(validation[2]) == set()
    assert training[0].shape == (4 * 1200, 3)
    assert np.linalg.norm(training[0][:1200], axis=1).mean() == pytest.approx(1.0, abs=0.02)


def test_windows_overlap_but_do_not_cross_recordings_or_gaps(tag):
    first = tag.recordings[0]
    values = first.signals.values.copy()
    values[500:510, 1] = np.nan
    broken = first.copy(signals=Signals(values, first.signals.channels, first.signals.rate))
    signal, starts, groups = acceleration_windows([broken, tag.recordings[1]], tag, 150, 30.0)
    windows = cut_windows(signal, starts, 150)
    assert np.isfinite(windows).all()
    assert windows.shape == (len(groups), 150, 3)
    gap = (500 * 30 / 25, 510 * 30 / 25)
    assert not ((starts < gap[1]) & (starts + 150 > gap[0])).any()
    assert not ((starts < 1200) & (starts + 150 > 1200)).any()
    assert len(starts) > 2 * 1200 // 150


def test_an_epoch_has_enough_updates(tag):
    signal, starts, groups = acceleration_windows(list(tag), tag, 150, 30.0)
    batches = AccelerationBatches(signal, starts, 150, groups, np.ones(len(starts)), ("arrow",), subjects=2, per_subject=3, updates=10)
    plans = batches.draw(np.random.default_rng(0))
    assert len(plans) >= 10
    assert all(len(np.unique(groups[plan.anchors])) <= 2 for plan in plans)
    sizes = {len(plan.anchors) for plan in dataclasses.replace(batches, subjects=4).draw(np.random.default_rng(0))}
    assert sizes == {2 * 3, 3 * 3}  # five individuals in two batches: no batch of one
    inputs, labels = batches.gather(plans[0])
    assert inputs.shape == (6, 150, 3)
    assert labels.shape == (6, 1)


def test_invalid_pre_training_on_tags_is_refused(tag, tmp_path):
    (tmp_path / "existing").mkdir()
    with pytest.raises(EthobenchError, match="already exists"):
        pretrain(tag, tmp_path / "existing", **QUICK)
    with pytest.raises(EthobenchError, match="one of harnet5, harnet10, harnet30, small, got 'large'"):
        pretrain(tag, tmp_path / "x", config="large")
    with pytest.raises(EthobenchError, match="got jump"):
        pretrain(tag, tmp_path / "x", tasks=["arrow", "jump"])
    with pytest.raises(EthobenchError, match="only one individual"):
        pretrain(tag.select(individual="animal01"), tmp_path / "x", **QUICK)
    with pytest.raises(EthobenchError, match="a window needs 30 s"):
        pretrain(make_dataset("tag", individuals=3, seconds=20), tmp_path / "x", config="small", epochs=1)
    with pytest.raises(EthobenchError, match="no accelerometer"):
        pretrain(make_dataset("pose", individuals=3, seconds=20), tmp_path / "x", **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["existing"]
    with pytest.raises(FormatError, match="not a pre-trained encoder"):
        eb.create_model("harnet", weights=str(tmp_path / "existing"), epochs=1).fit(make_dataset("tag", individuals=1, seconds=20))


SHAPE = {"past": 6, "future": 6, "frame_stride": 1, "layers": (8, 4), "kernel": 3}


@pytest.fixture(scope="module")
def mice() -> Dataset:
    data = eb.load_dataset("synthetic/pose", individuals=5, seconds=20)
    return Dataset(tuple(r.copy(annotations={}) for r in data), data.ethogram, "mice")


@pytest.fixture(scope="module")
def pretrained(mice, tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrained") / "encoder"
    card = pretrain_poses(mice, out, **SHAPE, epochs=6, batch=32, learning_rate=3e-3)
    return out, card


def test_the_losses_fall_and_the_card_has_them(pretrained):
    out, card = pretrained
    assert card["losses"][-1] < 0.8 * card["losses"][0]
    assert min(card["validation"]) < card["validation"][0]
    assert card["held_out"]["masked"]["metric"] == "explained variance"
    assert 0.4 < card["held_out"]["attributes"]["value"] <= 1
    assert json.loads((out / "encoder.json").read_text(encoding="utf-8"))["params"]["past"] == 6
    assert not [name for name in read_tensors(out / "encoder.safetensors")[0] if name.startswith("head")]


def test_conv1d_is_initialized_from_it(pretrained):
    out, _ = pretrained
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=20, seed=3)
    model = eb.create_model("conv1d", **SHAPE, init=str(out), head_epochs=1, epochs=0, samples_per_epoch=200).fit(data)
    weights = read_tensors(out / "encoder.safetensors")[0]
    assert torch.equal(model.module.body[0].weight, weights["body.0.weight"])
    assert model.predict(data.recordings[0]).probabilities.shape == (600, 4)


@pytest.mark.parametrize("task", ["masked", "arrow", "attributes"])
def test_each_task_alone(task, mice, tmp_path):
    card = pretrain_poses(
        mice, tmp_path / "out", **SHAPE, tasks=[task], augment=["rotation"], inputs="egocentric", epochs=1, samples_per_epoch=100
    )
    assert card["tasks"] == [task]
    assert np.isfinite(card["losses"]).all()


def test_one_animal_is_enough_without_attributes(mice, tmp_path):
    alone = tuple(r.copy(signals=dataclasses.replace(r.signals, **_first(r.signals))) for r in mice)
    data = dataclasses.replace(mice, recordings=alone)
    card = pretrain_poses(data, tmp_path / "one", **SHAPE, epochs=1, batch=32, tasks=["arrow", "masked"])
    assert card["tasks"] == ["masked", "arrow"]
    with pytest.raises(EthobenchError, match="needs symmetric windows"):
        pretrain_poses(data, tmp_path / "two", **{**SHAPE, "past": SHAPE["past"] + 1}, tasks=["arrow"])


def _first(poses):
    return {"positions": poses.positions[:, :1], "confidence": poses.confidence[:, :1], "individuals": poses.individuals[:1]}


def test_the_same_seed_gives_the_same_layers(mice, tmp_path):
    first, again = (pretrain_poses(mice, tmp_path / name, **SHAPE, epochs=1, samples_per_epoch=200, seed=1) for name in ("a", "b"))
    assert first == again


def test_invalid_pre_training_on_poses_is_refused(mice, pretrained, tmp_path):
    out, _ = pretrained
    with pytest.raises(EthobenchError, match="already exists"):
        pretrain_poses(mice, out)
    with pytest.raises(EthobenchError, match="`tasks` must be one or more of masked, arrow, attributes, got guess"):
        pretrain_poses(mice, tmp_path / "x", tasks=["guess"])
    with pytest.raises(EthobenchError, match="got 'features'"):
        pretrain_poses(mice, tmp_path / "x", inputs="features")
    with pytest.raises(EthobenchError, match="no poses of 2 animals"):
        pretrain_poses(eb.load_dataset("synthetic/tag", individuals=2, seconds=5), tmp_path / "x")
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=5)
    with pytest.raises(MismatchError, match="contains layers for model 'conv1d', not for 'dense'"):
        eb.create_model("dense", init=str(out)).fit(data)
    with pytest.raises(MismatchError, match=r"`past` must be 6, .* got 9"):
        eb.create_model("conv1d", **{**SHAPE, "past": 9}, init=str(out)).fit(data)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "encoder.safetensors").write_bytes((out / "encoder.safetensors").read_bytes())
    (broken / "encoder.json").write_text('{"config": "conv1d", "format_version": 1}', encoding="utf-8")
    with pytest.raises(FormatError, match="damaged"):
        eb.create_model("conv1d", **SHAPE, init=str(broken)).fit(data)
