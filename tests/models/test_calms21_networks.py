"""The networks of CalMS21 (MABe 2021 baselines): published layers, predictions, learning."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, ReadWarning
from ethobench.models.calms21_modules import DenseScoring, convolutional
from ethobench.models.calms21_networks import annotator_weights
from ethobench.training import inference
from ethobench.training.device import isolated_seed
from ethobench.training.losses import exclusive_loss, overlapping_loss
from ethobench.training.windows import WindowSpan

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
    windows = {name: (p.past, p.future, p.frame_stride, p.epochs, p.learning_rate) for name, p in settings.items()}
    assert windows == {
        "conv1d": (100, 100, 2, 15, 1e-3),
        "dense": (100, 100, 2, 15, 3e-4),
        "lstm": (50, 50, 1, 20, 1e-3),
        "attention": (50, 50, 1, 20, 1e-3),
    }
    assert {(p.batch, p.dropout, p.augment, p.class_weight) for p in settings.values()} == {(128, 0.5, (), "none")}


def test_weights_are_initialized_as_in_keras():
    with isolated_seed(0):
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
    with isolated_seed(1):
        layer = eb.create_model("attention").build(5, 2).body[0]
    signals = torch.randn(1, 5, 7)
    query, value = (
        signals[0].T.numpy() @ linear.weight[..., 0].T.detach().numpy() + linear.bias.detach().numpy()
        for linear in (layer.query, layer.value)
    )
    scores = query @ value.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mixed = (weights / weights.sum(axis=1, keepdims=True)) @ value
    expected = mixed @ layer.mix.weight[..., 0].T.detach().numpy() + layer.mix.bias.detach().numpy()
    assert layer(signals)[0].T.detach().numpy() == pytest.approx(expected, abs=1e-5)


WINDOWS = [(100, 100, 2, (12, 8, 6), 5), (50, 0, 1, (8, 4, 4), 5), (9, 12, 3, (5,), 3), (20, 21, 1, (4, 4), 4)]


@pytest.mark.parametrize(("past", "future", "frame_stride", "layers", "kernel"), WINDOWS)
def test_dense_scores_are_those_of_single_windows(past, future, frame_stride, layers, kernel, stir):
    span = WindowSpan(past, future, frame_stride)
    with isolated_seed(2):
        network = stir(convolutional(span.frames, 6, 3, layers, kernel, 0.5))
        values = torch.randn(150 + span.before + span.after, 6)
    assert network.is_convolutional
    with torch.inference_mode():
        assert torch.allclose(network.score_densely(values[None], span)[0], network.score_windows(values, span), atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_predictions_in_pieces_are_those_of_the_recording(name, mice, monkeypatch, stir):
    model = eb.create_model(name, **SMALL[name], **QUICK).fit(mice)
    stir(model.module)
    complete = model.predict(mice.recordings[0]).probabilities
    monkeypatch.setattr(inference, "FRAME_PIECE", 97)
    assert model.predict(mice.recordings[0]).probabilities == pytest.approx(complete, abs=1e-5)
    span, opened = model.span, model.transform.open(mice.recordings[0])
    for frame in (0, 3, 300, 599):
        window = opened.read(frame - span.before, frame + span.after + 1)[:: span.stride]
        with torch.inference_mode():
            alone = model.module(torch.from_numpy(window[None])).softmax(dim=1)[0].numpy()
        assert complete[frame] == pytest.approx(alone, abs=1e-5)


@pytest.mark.slow
def test_it_can_be_trained_on_poses():
    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=60)
    model = eb.create_model("conv1d", past=10, future=10, frame_stride=2, layers=(32, 16), inputs="features", epochs=3, batch=32)
    model.fit(data.select(fold=[0, 1, 2]))
    recording = data.select(fold=3).recordings[0]
    truth = recording.annotation().to_codes()
    accuracy = (model.predict(recording).annotation.to_codes() == truth).mean()
    assert accuracy > 0.2 + np.bincount(truth).max() / len(truth)
    assert model.histories[0].losses[-1] < model.histories[0].losses[0]


def test_overlapping_behaviors_have_a_sigmoid_each():
    random = np.random.default_rng(0)
    frames = random.random((400, 2)) < 0.5
    values = frames + random.normal(0, 0.1, (400, 2))
    truth = Annotation.from_frames(frames, ["a", "b"], 10.0)
    recording = Recording("r", signals=Signals(values, ("x", "y"), 10.0), annotations={"me": truth})
    model = eb.create_model("dense", past=0, future=0, frame_stride=1, layers=(16,), dropout=0.0, learning_rate=0.02, epochs=8, batch=16)
    prediction = model.fit(Dataset((recording,), truth.ethogram)).predict(recording)
    assert not prediction.exclusive
    assert ((prediction.probabilities >= 0.5) == frames).mean() > 0.95


@pytest.mark.parametrize("inputs", ["egocentric", "features"])
@pytest.mark.parametrize("augment", ["reflection", ""])
def test_other_inputs_and_augmentations(inputs, augment, mice):
    model = eb.create_model("conv1d", inputs=inputs, augment=augment or (), **SMALL["conv1d"], **QUICK)
    if inputs == "features" and augment:
        with pytest.raises(EthobenchError, match="have no coordinates"):
            model.fit(mice)
        return
    assert np.isfinite(model.fit(mice).predict(mice.recordings[0]).probabilities).all()


def test_features_of_the_data_are_inputs(mice):
    features = [Signals(np.random.default_rng(i).normal(3, 2, (600, 4)), tuple("wxyz"), 30.0) for i in range(3)]
    data = dataclasses.replace(mice, recordings=tuple(r.copy(features=f) for r, f in zip(mice, features, strict=True)))
    model = eb.create_model("conv1d", inputs="coordinates+given", augment="published", **SMALL["conv1d"], **QUICK).fit(data)
    assert model.module.normalize.num_features == 28 + 4
    assert model.predict(data.recordings[0]).n_frames == 600
    with pytest.raises(MismatchError, match="does not come with features"):
        model.predict(mice.recordings[0])


@pytest.mark.parametrize("model", ["dense", "rf", "tcn", "boost"])
def test_labels_a_little_longer_than_the_poses_are_cut(mice, model):
    first = mice.recordings[0]
    poses = first.signals
    small = {"rf": {"trees": 3}, "tcn": {"updates": 1, "width": 8, "levels": 2}, "boost": {"rounds": 2}}
    params = small.get(model, {**SMALL["dense"], **QUICK})
    for lost, outcome in ((5, "labels end 5 frames after the signals; cropped"), (60, "labels for 600 frames, but signals for 540")):
        short = first.copy(signals=poses[: 600 - lost], n_frames=600 - lost)
        data = dataclasses.replace(mice, recordings=(short, *mice.recordings[1:]))
        if lost == 5:
            with pytest.warns(UserWarning, match=outcome):
                eb.create_model(model, decode="f1", **params).fit(data)
        else:
            with pytest.raises(MismatchError, match=outcome):
                eb.create_model(model, **params).fit(data)


def test_an_interrupted_training_is_resumed(mice, tmp_path):
    def create():
        return eb.create_model("dense", **SMALL["dense"], epochs=3, samples_per_epoch=256, seed=4)

    complete = create().fit(mice).predict(mice.recordings[0]).probabilities
    stopped = create()
    stopped.checkpoint = tmp_path

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    stopped.progress = stop
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(mice)
    resumed, steps = create(), []
    resumed.checkpoint, resumed.progress = tmp_path, lambda progress: steps.append(progress.epoch)
    assert np.array_equal(resumed.fit(mice).predict(mice.recordings[0]).probabilities, complete)
    assert set(steps) == {2}
    other = eb.create_model("dense", **SMALL["dense"], epochs=3, samples_per_epoch=128, seed=4)
    other.checkpoint = tmp_path
    with pytest.raises(MismatchError, match="samples_per_epoch differ"):
        other.fit(mice)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"past": -1}, "`past` must be >= 0, got -1"),
        ({"layers": ()}, "`layers` must be one or more integers"),
        ({"dropout": 1.0}, "`dropout` must be < 1, got 1"),
        ({"batch": 1}, "`batch` must be >= 2, got 1"),
        ({"samples_per_epoch": 1}, "`samples_per_epoch` must be >= 2, got 1"),
        ({"epochs": 0}, "`epochs` must be >= 1 without `init`"),
        ({"head_epochs": 3}, "needs a network to fine-tune: set `init`"),
        ({"augment": "spin"}, "unknown augmentation 'spin'"),
        ({"class_weight": "even"}, "`class_weight` must be"),
        ({"inputs": "pixels"}, "`inputs` must be one of"),
        ({"recipe": "guess"}, "`recipe` must be one of"),
        ({"condition": "lab"}, "`condition` must be one of"),
        ({"kernel": 0}, "`kernel` must be >= 1, got 0"),
        ({"frames_per_example": 0}, "`frames_per_example` must be >= 1, got 0"),
    ],
)
def test_invalid_settings_are_refused(params, words):
    with pytest.raises(EthobenchError, match=words):
        eb.create_model("conv1d", **params)


def test_windows_too_short_for_the_layers_are_refused(mice):
    with pytest.raises(EthobenchError, match="a window of 1 frames is too short"):
        eb.create_model("conv1d", past=0, future=0, **QUICK).fit(mice)


def test_lists_and_single_names_become_tuples():
    params = eb.create_model("conv1d", layers=[8, 4], augment="rotation").params
    assert (params.layers, params.augment) == ((8, 4), ("rotation",))


def test_three_animals_and_three_axes_are_accepted():
    random = np.random.default_rng(0)
    poses = Poses(random.random((60, 3, 2, 3)), np.full((60, 3, 2), np.nan), ("a", "b", "c"), ("nose", "tail_base"), 30.0)
    ethogram = Ethogram(["rest", "run"])
    truth = Annotation.from_frames(random.integers(0, 2, 60), ethogram, 30.0)
    recording = Recording("r", signals=poses, annotations={"me": truth})
    model = eb.create_model("dense", **SMALL["dense"], epochs=1).fit(Dataset((recording,), ethogram))
    assert model.n_inputs == 12


@pytest.mark.slow
def test_real_rats_with_many_gaps(data):
    """Two rats of which the tracker lost two of five keypoints: a small network on features beats the most common behavior."""
    with pytest.warns(ReadWarning, match="read with notes"):
        rats = eb.load_dataset(str(data / "rats"))
    names = [recording.id for recording in rats]
    model = eb.create_model(
        "conv1d", past=15, future=15, frame_stride=2, layers=(32, 16), inputs="features", epochs=4, samples_per_epoch=6000, batch=64
    )
    with pytest.warns(UserWarning, match="6 of 6 recordings are not used for training: the input is missing there"):
        model.fit(rats.select(recordings=names[:6]))
    tested = rats.select(recordings=names[6:9])
    prediction = {recording.id: model.predict(recording) for recording in tested}
    scores = eb.score(prediction, tested, suite="calms21").to_dict()["overall"]
    assert scores["macro_f1"] > 0.4


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_loss_and_gradient_of_runs_of_frames_are_those_of_single_windows(overlapping):
    span, length = WindowSpan(6, 4, 2), 9
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    network = convolutional(span.frames, 3, 2, (5, 4), 3, 0.0).eval()
    weights = np.array([1.0, 3.0], dtype=np.float32)
    loss = overlapping_loss(weights) if overlapping else exclusive_loss(weights, average="frames")
    sequences = torch.from_numpy(random.normal(size=(4, span.before + length + span.after, 3)).astype(np.float32))
    targets = torch.from_numpy(random.integers(-1, 2, (4, length, 2) if overlapping else (4, length)).astype(np.int16))
    dense_loss = loss(DenseScoring(network, span)(sequences), targets)
    dense_loss.backward()
    gradients = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    windows = torch.stack([sequence[span.before + k + torch.from_numpy(span.offsets)] for sequence in sequences for k in range(length)])
    window_loss = loss(network(windows), targets.flatten(0, 1))
    window_loss.backward()
    assert dense_loss.item() == pytest.approx(window_loss.item(), rel=1e-5)
    for gradient, parameter in zip(gradients, network.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_a_network_learns_from_runs_of_frames_and_is_resumed_after_an_interruption(tmp_path):
    mice = eb.load_dataset("synthetic/pose", individuals=3, seconds=60.0)
    settings = {"past": 10, "future": 10, "frame_stride": 1, "layers": (16, 8), "dropout": 0.1, "epochs": 6, "batch": 8}
    settings["frames_per_example"] = 50
    data = mice.select(recordings=[r.id for r in mice][:2])
    complete = eb.create_model("conv1d", **settings).fit(data)
    assert complete.histories[0].losses[-1] < 0.8 * complete.histories[0].losses[0]
    interrupted = eb.create_model("conv1d", **settings)
    interrupted.checkpoint = tmp_path

    def stop(progress) -> None:
        if progress.epoch == 3:
            raise KeyboardInterrupt

    interrupted.progress = stop
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(data)
    interrupted.progress = None
    resumed = interrupted.fit(data).predict(mice.recordings[2]).probabilities
    np.testing.assert_array_equal(resumed, complete.predict(mice.recordings[2]).probabilities)


def test_other_networks_train_on_single_frames(mice):
    with pytest.raises(EthobenchError, match="`frames_per_example` must be 1, except for conv1d"):
        eb.create_model("dense", past=2, future=2, epochs=1, frames_per_example=10).fit(mice)


def test_weights_of_annotators():
    assert annotator_weights(None, ("x", "y")) == [0.5, 0.5]
    assert annotator_weights("y", ("x", "y")) == [0.0, 1.0]
    with pytest.raises(EthobenchError, match="not trained on annotator 'z'; available: x, y"):
        annotator_weights("z", ("x", "y"))
