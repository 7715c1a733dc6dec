"""The networks of the MABe 2021 baselines: their layers as published, their predictions, and what they learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, ReadWarning
from ethobench.training import sliding
from ethobench.training.device import own_random_state
from ethobench.training.sliding import dense_scores, is_convolutional, window_scores
from ethobench.training.trajectories import Reach
from ethobench.training.trajectory_networks import convolutional

pytestmark = pytest.mark.slow

SMALL = {
    "conv1d": {"past": 8, "future": 8, "frame_stride": 2, "layers": (8, 6), "kernel": 3},
    "dense": {"past": 3, "future": 3, "frame_stride": 1, "layers": (16,)},
    "lstm": {"past": 3, "future": 3, "frame_stride": 1, "hidden": 8, "layers": (8,)},
    "attention": {"past": 4, "future": 4, "frame_stride": 1, "layers": (8,)},
}
QUICK = {"epochs": 1, "samples_per_epoch": 256}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def mice() -> Dataset:
    return eb.load_dataset("synthetic/pose", individuals=3, seconds=20)


def count(network: torch.nn.Module) -> int:
    """Count as Keras does: the statistics of batch normalisation too."""
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return sum(t.numel() for name, t in tensors.items() if not name.endswith(("num_batches_tracked", "bias_hh_l0")))


def test_conv1d_is_the_published_one():
    network = eb.create_model("conv1d").build(28, 4).eval()
    assert count(network) == 73_044
    lengths, signals = [], torch.zeros(1, 28, 201)
    for layer in network.body:
        signals = layer(signals)
        if isinstance(layer, (torch.nn.Conv1d, torch.nn.MaxPool1d)):
            lengths.append(signals.shape[2])
    assert lengths == [197, 98, 94, 47, 43, 21]
    assert network.head.in_features == 672
    kinds = [type(layer).__name__ for layer in network.body]
    assert kinds == ["Conv1d", "BatchNorm1d", "ReLU", "MaxPool1d", "Dropout"] * 3
    assert [layer.out_channels for layer in network.body if isinstance(layer, torch.nn.Conv1d)] == [128, 64, 32]
    norms = [layer for layer in network.modules() if isinstance(layer, torch.nn.BatchNorm1d)]
    assert [norm.momentum for norm in norms] == pytest.approx([0.01] * 4)
    assert [norm.eps for norm in norms] == [1e-3] * 4


def test_the_other_networks_are_the_published_ones():
    """Weights counted by hand from the published layers, for 28 coordinates and four behaviors."""
    inputs = 201 * 28
    dense = 4 * inputs + inputs * 512 + 512 + 4 * 512 + 512 * 256 + 256 + 4 * 256 + 256 * 128 + 128 + 4 * 128 + 128 * 4 + 4
    assert count(eb.create_model("dense").build(28, 4)) == dense
    lstm = 4 * 28 + 4 * (28 * 256 + 256 * 256 + 256) + 256 * 256 + 256 + 4 * 256 + 256 * 128 + 128 + 4 * 128 + 128 * 4 + 4
    assert count(eb.create_model("lstm").build(28, 4)) == lstm
    attention, size = 4 * 28, 28
    for channels in (128, 64, 32):
        attention += 2 * (size * channels + channels) + channels * channels + channels + 4 * channels
        size = channels
    attention += 12 * 32 * 4 + 4  # 101 frames, halved three times: 12
    assert count(eb.create_model("attention").build(28, 4)) == attention
    settings = {name: eb.create_model(name).params for name in SMALL}
    windows = {name: (p.past, p.future, p.gap, p.epochs, p.learning_rate) for name, p in settings.items()}
    assert windows == {
        "conv1d": (100, 100, 2, 15, 1e-3),
        "dense": (100, 100, 2, 15, 3e-4),
        "lstm": (50, 50, 1, 20, 1e-3),
        "attention": (50, 50, 1, 20, 1e-3),
    }
    assert {(p.batch, p.dropout, p.augment, p.class_weight) for p in settings.values()} == {(128, 0.5, (), "none")}


def test_weights_begin_where_keras_begins_them():
    with own_random_state(0):
        network = eb.create_model("lstm").build(28, 4)
    recur = network.body[0].recur
    assert recur.weight_ih_l0.abs().max().item() == pytest.approx(np.sqrt(6 / (28 + 4 * 256)), rel=1e-2)
    assert torch.allclose(recur.weight_hh_l0.T @ recur.weight_hh_l0, torch.eye(256), atol=1e-5)
    assert recur.bias_ih_l0[256:512].tolist() == [1.0] * 256
    assert recur.bias_ih_l0.sum() == 256
    assert not recur.bias_hh_l0.requires_grad
    convolution = eb.create_model("conv1d").build(28, 4).body[0]
    assert convolution.weight.abs().max().item() == pytest.approx(np.sqrt(6 / (5 * (28 + 128))), rel=1e-2)
    assert (convolution.bias == 0).all()


def test_attention_is_not_scaled_and_its_keys_are_its_values():
    with own_random_state(1):
        layer = eb.create_model("attention").build(5, 2).body[0]
    signals = torch.randn(1, 5, 7)
    query, value = (
        signals[0].T.numpy() @ part.weight[..., 0].T.detach().numpy() + part.bias.detach().numpy() for part in (layer.query, layer.value)
    )
    scores = query @ value.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mixed = (weights / weights.sum(axis=1, keepdims=True)) @ value
    expected = mixed @ layer.mix.weight[..., 0].T.detach().numpy() + layer.mix.bias.detach().numpy()
    assert layer(signals)[0].T.detach().numpy() == pytest.approx(expected, abs=1e-5)


WINDOWS = [(100, 100, 2, (12, 8, 6), 5), (50, 0, 1, (8, 4, 4), 5), (9, 12, 3, (5,), 3), (20, 21, 1, (4, 4), 4)]


@pytest.mark.parametrize(("past", "future", "frame_stride", "layers", "kernel"), WINDOWS)
def test_the_dense_network_says_what_its_windows_say(past, future, gap, layers, kernel, stir):
    reach = Reach(past, future, gap)
    with own_random_state(2):
        network = stir(convolutional(reach.frames, 6, 3, layers, kernel, 0.5))
        values = torch.randn(150 + reach.before + reach.after, 6)
    assert is_convolutional(network)
    with torch.inference_mode():
        assert torch.allclose(dense_scores(network, values, reach), window_scores(network, values, reach), atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_predictions_in_pieces_are_those_of_the_whole(name, mice, monkeypatch, stir):
    model = eb.create_model(name, **SMALL[name], **QUICK).fit(mice)
    stir(model.module)
    whole = model.predict(mice.recordings[0]).probabilities
    monkeypatch.setattr(sliding, "PIECE", 97)
    assert model.predict(mice.recordings[0]).probabilities == pytest.approx(whole, abs=1e-5)
    reach, opened = model.reach, model.preparation.open(mice.recordings[0])
    for frame in (0, 3, 300, 599):
        window = opened.read(frame - reach.before, frame + reach.after + 1)[:: reach.gap]
        with torch.inference_mode():
            alone = model.module(torch.from_numpy(window[None])).softmax(dim=1)[0].numpy()
        assert whole[frame] == pytest.approx(alone, abs=1e-5)


@pytest.mark.slow
def test_it_learns_what_poses_tell():
    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=60)
    model = eb.create_model("conv1d", past=10, future=10, frame_stride=2, layers=(32, 16), inputs="features", epochs=3, batch=32)
    model.fit(data.select(fold=[0, 1, 2]))
    recording = data.select(fold=3).recordings[0]
    truth = recording.annotation().to_codes()
    right = (model.predict(recording).annotation.to_codes() == truth).mean()
    assert right > 0.2 + np.bincount(truth).max() / len(truth)
    assert model.histories[0].losses[-1] < model.histories[0].losses[0]


def test_overlapping_behaviors_have_a_sigmoid_each_and_unlooked_for_ones_teach_nothing():
    random = np.random.default_rng(0)
    frames = random.random((400, 2)) < 0.5
    values = frames + random.normal(0, 0.1, (400, 2))
    truth = Annotation.from_frames(frames, ["a", "b"], 10.0)
    recording = Recording("r", signals=Signals(values, ("x", "y"), 10.0), annotations={"me": truth})
    model = eb.create_model("dense", past=0, future=0, frame_stride=1, layers=(16,), dropout=0.0, learning_rate=0.02, epochs=8, batch=16)
    found = model.fit(Dataset((recording,), truth.ethogram)).predict(recording)
    assert not found.exclusive
    assert ((found.probabilities >= 0.5) == frames).mean() > 0.95


@pytest.mark.parametrize("inputs", ["egocentric", "features"])
@pytest.mark.parametrize("augment", ["reflection", ""])
def test_other_inputs_and_augmentations(inputs, augment, mice):
    model = eb.create_model("conv1d", inputs=inputs, augment=augment or (), **SMALL["conv1d"], **QUICK)
    if inputs == "features" and augment:
        with pytest.raises(EthobenchError, match="have no coordinates"):
            model.fit(mice)
        return
    assert np.isfinite(model.fit(mice).predict(mice.recordings[0]).probabilities).all()


def test_given_features_are_taken_along(mice):
    given = [Signals(np.random.default_rng(i).normal(3, 2, (600, 4)), tuple("wxyz"), 30.0) for i in range(3)]
    data = dataclasses.replace(mice, recordings=tuple(r.copy(features=g) for r, g in zip(mice, given, strict=True)))
    model = eb.create_model("conv1d", inputs="coordinates+given", augment="published", **SMALL["conv1d"], **QUICK).fit(data)
    assert model.module.normalize.num_features == 28 + 4
    assert model.predict(data.recordings[0]).n_frames == 600
    with pytest.raises(MismatchError, match="brings no features"):
        model.predict(mice.recordings[0])


@pytest.mark.parametrize("model", ["dense", "rf", "tcn", "boost"])
def test_labels_a_little_longer_than_the_poses_are_cut(mice, model):
    first = mice.recordings[0]
    poses = first.signals
    told = {"dense": {**SMALL["dense"], **QUICK}, "rf": {"trees": 3}, "tcn": {"updates": 1}, "boost": {"rounds": 2}}[model]
    for lost, outcome in ((5, "labels end 5 frames after the signals; cropped"), (60, "labels for 600 frames, but signals for 540")):
        short = first.copy(signals=poses[: 600 - lost], n_frames=600 - lost)
        data = dataclasses.replace(mice, recordings=(short, *mice.recordings[1:]))
        if lost == 5:
            with pytest.warns(UserWarning, match=outcome):
                eb.create_model(model, decode="f1", **told).fit(data)
        else:
            with pytest.raises(MismatchError, match=outcome):
                eb.create_model(model, **told).fit(data)


def test_a_killed_training_goes_on(mice, tmp_path):
    def fresh():
        return eb.create_model("dense", **SMALL["dense"], epochs=3, samples_per_epoch=256, seed=4)

    whole = fresh().fit(mice).predict(mice.recordings[0]).probabilities
    stopped = fresh()
    stopped.checkpoint = tmp_path

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    stopped.progress = stop
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(mice)
    again, steps = fresh(), []
    again.checkpoint, again.progress = tmp_path, lambda progress: steps.append(progress.epoch)
    assert np.array_equal(again.fit(mice).predict(mice.recordings[0]).probabilities, whole)
    assert set(steps) == {2}
    other = eb.create_model("dense", **SMALL["dense"], epochs=3, samples_per_epoch=128, seed=4)
    other.checkpoint = tmp_path
    with pytest.raises(MismatchError, match="samples differ"):
        other.fit(mice)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"past": -1}, "a window has"),
        ({"layers": ()}, "at least one layer"),
        ({"dropout": 1.0}, "dropout"),
        ({"batch": 1}, "at least two"),
        ({"samples_per_epoch": 1}, "at least two"),
        ({"epochs": 0}, "at least one epoch"),
        ({"head_epochs": 3}, "need a network to begin with"),
        ({"augment": "spin"}, "no augmentation 'spin'"),
        ({"class_weight": "even"}, "a class weight"),
        ({"inputs": "pixels"}, "inputs is one of"),
        ({"recipe": "guess"}, "recipe is one of"),
        ({"condition": "lab"}, "condition is one of"),
        ({"kernel": 0}, "at least one frame"),
    ],
)
def test_impossible_settings_are_refused(params, words):
    with pytest.raises(EthobenchError, match=words):
        eb.create_model("conv1d", **params)


def test_windows_too_short_for_the_layers_are_refused(mice):
    with pytest.raises(EthobenchError, match="a window of 1 frames is too short"):
        eb.create_model("conv1d", past=0, future=0, **QUICK).fit(mice)


def test_lists_and_single_names_are_taken_for_tuples():
    params = eb.create_model("conv1d", layers=[8, 4], augment="rotation").params
    assert (params.layers, params.augment) == ((8, 4), ("rotation",))


def test_three_animals_and_three_axes_are_taken():
    random = np.random.default_rng(0)
    poses = Poses(random.random((60, 3, 2, 3)), np.full((60, 3, 2), np.nan), ("a", "b", "c"), ("nose", "tail_base"), 30.0)
    ethogram = Ethogram(["rest", "run"])
    truth = Annotation.from_frames(random.integers(0, 2, 60), ethogram, 30.0)
    recording = Recording("r", signals=poses, annotations={"me": truth})
    model = eb.create_model("dense", **SMALL["dense"], epochs=1).fit(Dataset((recording,), ethogram))
    assert model.preparation.n_inputs == 12


@pytest.mark.slow
def test_real_rats_with_many_gaps(data):
    """Two rats of which the tracker lost two keypoints of five: a small network on features tells more than the commonest behavior."""
    with pytest.warns(ReadWarning, match="read with notes"):
        rats = eb.load_dataset(str(data / "rats"))
    names = [recording.id for recording in rats]
    model = eb.create_model("conv1d", past=15, future=15, frame_stride=2, layers=(32, 16), inputs="features", epochs=4, samples_per_epoch=6000, batch=64)
    with pytest.warns(UserWarning, match="6 of 6 recordings are not learnt from: there the input is missing"):
        model.fit(rats.select(recordings=names[:6]))
    tested = rats.select(recordings=names[6:9])
    found = {recording.id: model.predict(recording) for recording in tested}
    figures = eb.score(found, tested, suite="calms21").to_dict()["overall"]
    assert figures["macro_f1"] > 0.4
