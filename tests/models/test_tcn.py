"""The temporal convolutional network: how far it sees, what it learns, and following along."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.models import base
from ethobench.training.augmentation import Layout
from ethobench.training.clips import make_clips
from ethobench.training.device import own_random_state
from ethobench.training.steps import (
    UPDATES,
    Steps,
    predict_steps,
    smooth_exclusive_loss,
    smooth_overlapping_loss,
    tempered_weights,
)
from ethobench.training.streams import Stream
from ethobench.training.temporal import TemporalNetwork
from ethobench.training.temporal_live import LiveSteps

pytestmark = pytest.mark.slow

QUICK = {"updates": 25, "width": 16, "levels": 4, "batch": 8}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(stir, **changes) -> TemporalNetwork:
    with own_random_state(0):
        return stir(TemporalNetwork(**{"n_inputs": 2, "n_outputs": 3, "stride": 2, "levels": 3, "width": 8, **changes}))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("stride", [1, 3])
def test_it_sees_as_far_as_it_says(stir, causal, stride):
    net = network(stir, stride=stride, causal=causal)
    still = torch.randn(1, 50 * stride, 2, generator=torch.Generator().manual_seed(0))
    struck = still.clone()
    at = 25 * stride
    struck[0, at] += 100.0
    with torch.no_grad():
        changed = (net(still) != net(struck)).any(dim=-1)[0].nonzero().ravel() * stride
    assert net(still).shape == (1, 50, 3)
    if causal:
        assert changed.min() == at
        assert at <= changed.max() <= at + net.reach
    else:
        assert at - changed.min() <= net.reach
        assert changed.max() - at <= net.reach
        assert changed.max() - at > net.reach - 3 * stride


def test_pieces_of_a_recording_do_not_show(stir, monkeypatch):
    from ethobench.training import steps

    net = network(stir)
    values = np.random.default_rng(0).normal(size=(501, 2)).astype(np.float32)
    with torch.no_grad():
        expected = torch.softmax(net(torch.from_numpy(values)[None]), dim=-1)[0].numpy()
    monkeypatch.setattr(steps, "CHUNK", 100)
    found = predict_steps(net, lambda a, b: values[a:b], len(values), 2, net.reach, exclusive=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("stride", [1, 4])
def test_single_frames_give_what_a_batch_gives(stir, stride):
    net = network(stir, stride=stride, causal=True)
    values = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    with torch.no_grad():
        expected = net(torch.from_numpy(values)[None])[0].numpy()
    live = LiveSteps(net)
    for _ in range(2):
        said = np.array([live.push(row) for row in values])
        np.testing.assert_allclose(said, np.repeat(expected, stride, axis=0)[:90], atol=1e-5)
        live.reset()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tag", "pose"])
def test_a_causal_model_follows_along(kind, tmp_path):
    data = eb.load_dataset(f"synthetic/{kind}", individuals=2, seconds=40)
    model = eb.create_model("tcn", causal=True, **QUICK).fit(data)
    model.save(tmp_path / "m")
    model = eb.load_model(tmp_path / "m")
    recording = data.recordings[0]
    live, signals = model.stream(), recording.signals
    frames = signals.values if kind == "tag" else signals.positions
    sure = [None] * len(frames) if kind == "tag" else signals.confidence
    said = np.array([live.push(frame, confidence) for frame, confidence in zip(frames, sure, strict=True)])
    np.testing.assert_allclose(said, model.predict(recording).probabilities, atol=1e-5)
    later = recording.copy(signals=signals[:300], n_frames=300, annotations={})
    np.testing.assert_allclose(model.predict(later).probabilities, said[:300], atol=1e-5)


def test_others_cannot_follow_along():
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30)
    with pytest.raises(EthobenchError, match="causal=True"):
        eb.create_model("tcn", **QUICK).fit(data).stream()


@pytest.mark.slow
def test_it_tells_behaviors_of_animals_never_seen():
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=120, folds=4)
    model = eb.create_model("tcn", width=32, levels=5, batch=8, updates=75).fit(data.select(fold=[0, 1, 2]))
    test = data.select(fold=3)
    assert eb.score({r.id: model.predict(r) for r in test}, test, resamples=0).overall["f1"] > 0.85
    assert model.history.losses[-1] < 0.6 * model.history.losses[0]


@pytest.mark.slow
def test_pieces_of_an_annotation_do_not_show(monkeypatch):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=120)
    model = eb.create_model("tcn", **QUICK).fit(data)
    whole = model.predict(data.recordings[0]).annotation
    monkeypatch.setattr(base, "MAX_PIECE_FRAMES", 700)
    pieces = model.annotate(data.recordings[0])
    assert len(data.recordings[0].signals) > 2 * model.context(25.0)
    assert (pieces.to_codes() == whole.to_codes()).mean() > 0.999


def test_overlapping_behaviors_are_learnt_each_on_its_own():
    ethogram = Ethogram(["move", "call"])
    random = np.random.default_rng(0)
    both = np.repeat(random.integers(0, 2, (60, 2)), 20, axis=0).astype(bool)
    truth = Annotation.from_frames(both, ethogram, 10.0)
    signals = Signals(both + random.normal(0, 0.2, both.shape), ("a", "b"), 10.0)
    one = Recording("r", signals=signals, annotations={"me": truth})
    prediction = eb.create_model("tcn", **{**QUICK, "updates": 75}).fit(Dataset((one,), ethogram)).predict(one)
    assert not prediction.exclusive
    assert (prediction.annotation.to_frames() == both).mean() > 0.9


def test_missing_values_do_no_harm():
    ethogram = Ethogram(["rest", "run"])
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 60), 20)
    values = np.stack([codes + random.normal(0, 0.2, 1200), random.normal(0, 1, 1200)], axis=1)
    values[200:260] = np.nan
    values[600:, 1] = np.nan
    one = Recording("r", signals=Signals(values, ("a", "b"), 10.0), annotations={"me": Annotation.from_frames(codes, ethogram, 10.0)})
    with pytest.warns(UserWarning, match=r"6.0 s of annotations in 1 of 1 recordings are not used for training"):
        prediction = eb.create_model("tcn", **{**QUICK, "updates": 75}).fit(Dataset((one,), ethogram)).predict(one)
    assert np.flatnonzero(~prediction.predictable).tolist() == [*range(200, 260)]
    assert (prediction.annotation.to_codes() == codes)[300:].mean() > 0.85


def test_an_epoch_is_the_same_for_the_same_seed():
    values = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    stream = Stream(values, range(3), ("AccX", "AccY", "AccZ"), 10.0)
    clips = make_clips([stream], [np.zeros(400, dtype=np.int16)], 60, 4)
    batches = Steps(clips, 3, Layout(("AccX", "AccY", "AccZ")), ("rotate_axes", "scale"), 0.1)
    plans = batches.draw(np.random.default_rng(1))
    assert len(plans) == UPDATES
    one, again, other = batches.gather(plans[0]), batches.gather(plans[0]), batches.gather(plans[1])
    assert one[0].shape == (4, 60, 3)
    assert one[1].shape == (4, 20)
    assert np.array_equal(one[0], again[0])
    assert not np.array_equal(one[0], other[0])


def test_losses_are_what_they_say():
    logits = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [5.0, 0.0]]])
    targets = torch.tensor([[0, 1, -1]])
    weights = np.array([1.0, 3.0], dtype=np.float32)
    chances = torch.log_softmax(logits, dim=-1)[0]
    first, second = (0.9 * chances[i, c] + 0.1 * chances[i].mean() for i, c in ((0, 0), (1, 1)))
    jumps = torch.clamp((chances[1:] - chances[:-1]).abs(), max=4.0).square().mean()
    expected = -(first + 3 * second) / 4 + 0.5 * jumps
    found = smooth_exclusive_loss(weights, smoothing=0.1, steadiness=0.5)(logits, targets)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    one_on = torch.tensor([[[1, -1], [0, 1], [-1, -1]]])
    plain = smooth_overlapping_loss(steadiness=0.0)(logits, one_on)
    terms = [np.log1p(np.exp(-2.0)), np.log(2.0), np.log1p(np.exp(-1.0))]
    assert plain.item() == pytest.approx(np.mean(terms), rel=1e-5)


def test_weights_are_tempered():
    targets = np.repeat([0, 1, -1], [900, 100, 50]).astype(np.int16)
    assert tempered_weights(targets, 3, 0.0).tolist() == pytest.approx([1.0, 1.0, 0.0])
    balanced = tempered_weights(targets, 3, 1.0)
    assert (balanced[0] * 900, balanced[2]) == (pytest.approx(balanced[1] * 100), 0.0)
    between = tempered_weights(targets, 3, 0.5)
    assert between[1] / between[0] == pytest.approx(3.0)


def test_damaged_weights_are_named(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30)
    eb.create_model("tcn", **QUICK).fit(data).save(tmp_path / "m")
    (tmp_path / "m" / "weights.safetensors").write_bytes(b"no weights")
    model = eb.create_model("tcn", **QUICK)
    with pytest.raises(FormatError, match="safetensors"):
        model._load(tmp_path / "m")


def test_senseless_settings_are_refused():
    with pytest.raises(EthobenchError, match="at least one of each"):
        eb.create_model("tcn", levels=0)
    with pytest.raises(EthobenchError, match="temper"):
        eb.create_model("tcn", smoothing=1.0)
