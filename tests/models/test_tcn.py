"""The temporal convolutional network: its context, learning, and streaming."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.models import pieces
from ethobench.models.streaming import StepScorer
from ethobench.models.tcn_modules import TemporalNetwork
from ethobench.training import inference
from ethobench.training.device import isolated_seed
from ethobench.training.inference import predict_steps

pytestmark = pytest.mark.slow

QUICK = {"updates": 25, "width": 16, "levels": 4, "batch": 8}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(stir, **changes) -> TemporalNetwork:
    with isolated_seed(0):
        return stir(TemporalNetwork(**{"n_inputs": 2, "n_outputs": 3, "stride": 2, "levels": 3, "width": 8, **changes}))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("stride", [1, 3])
def test_steps_depend_on_the_stated_context(stir, causal, stride):
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
        assert at <= changed.max() <= at + net.context
    else:
        assert at - changed.min() <= net.context
        assert changed.max() - at <= net.context
        assert changed.max() - at > net.context - 3 * stride


def test_predictions_in_pieces_are_those_of_the_recording(stir, monkeypatch):
    net = network(stir)
    values = np.random.default_rng(0).normal(size=(501, 2)).astype(np.float32)
    with torch.no_grad():
        expected = torch.softmax(net(torch.from_numpy(values)[None]), dim=-1)[0].numpy()
    monkeypatch.setattr(inference, "STEP_PIECE", 100)
    probabilities = predict_steps(net, lambda a, b: values[a:b], len(values), 2, net.context, exclusive=True)
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)


@pytest.mark.parametrize("stride", [1, 4])
def test_single_frames_give_what_a_batch_gives(stir, stride):
    net = network(stir, stride=stride, causal=True)
    values = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    with torch.no_grad():
        expected = net(torch.from_numpy(values)[None])[0].numpy()
    stream = StepScorer(net)
    for _ in range(2):
        streamed = np.array([stream.push(row) for row in values])
        np.testing.assert_allclose(streamed, np.repeat(expected, stride, axis=0)[:90], atol=1e-5)
        stream.reset()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tag", "pose"])
def test_a_causal_model_supports_streaming(kind, tmp_path):
    data = eb.load_dataset(f"synthetic/{kind}", individuals=2, seconds=40)
    model = eb.create_model("tcn", causal=True, **QUICK).fit(data)
    model.save(tmp_path / "m")
    model = eb.load_model(tmp_path / "m")
    recording = data.recordings[0]
    stream, signals = model.stream(), recording.signals
    frames = signals.values if kind == "tag" else signals.positions
    sure = [None] * len(frames) if kind == "tag" else signals.confidence
    streamed = np.array([stream.push(frame, confidence) for frame, confidence in zip(frames, sure, strict=True)])
    np.testing.assert_allclose(streamed, model.predict(recording).probabilities, atol=1e-5)
    later = recording.copy(signals=signals[:300], n_frames=300, annotations={})
    np.testing.assert_allclose(model.predict(later).probabilities, streamed[:300], atol=1e-5)


def test_other_models_do_not_support_streaming():
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30)
    with pytest.raises(EthobenchError, match="causal=True"):
        eb.create_model("tcn", **QUICK).fit(data).stream()


@pytest.mark.slow
def test_it_predicts_behaviors_of_new_animals():
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=120, folds=4)
    model = eb.create_model("tcn", width=32, levels=5, batch=8, updates=150).fit(data.select(fold=[0, 1, 2]))
    test = data.select(fold=3)
    assert eb.score({r.id: model.predict(r) for r in test}, test, resamples=0).overall["f1"] > 0.85
    assert model.history.losses[-1] < 0.6 * model.history.losses[0]


def test_onsets_and_offsets_are_predicted_where_bouts_start_and_stop(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=120, folds=4)
    settings = {"width": 32, "levels": 5, "batch": 8, "updates": 75}
    model, test = eb.create_model("tcn", **settings).fit(data.select(fold=[0, 1, 2])), data.select(fold=3).recordings[0]
    predicted = model.predict(test)
    truth = next(iter(test.annotations.values()))
    frames = np.arange(truth.n_frames)
    for column, edges in enumerate((truth.start, truth.stop)):
        inner = edges[(edges > 0) & (edges < truth.n_frames)]
        distance = np.abs(frames[:, None] - inner).min(axis=1) / truth.rate
        probabilities = predicted.boundaries[0, :, column]
        assert probabilities[distance < 0.1].mean() > 3 * probabilities[distance > 2].mean()
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(eb.load_model(tmp_path / "m").predict(test).boundaries, predicted.boundaries)
    for without in ({"boundary_loss": 0.0}, {"causal": True}):
        network = eb.create_model("tcn", **{**QUICK, **without}).fit(data.select(fold=[0]))
        assert network.predict(test).boundaries is None
        assert network.module.head.out_channels == network.n_outputs


@pytest.mark.slow
def test_annotating_in_pieces_gives_the_same_annotation(monkeypatch):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=120)
    model = eb.create_model("tcn", **QUICK).fit(data)
    complete = model.predict(data.recordings[0]).annotation
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 700)
    joined = model.annotate(data.recordings[0])
    assert len(data.recordings[0].signals) > 2 * model.context(25.0)
    assert (joined.to_codes() == complete.to_codes()).mean() > 0.999


def test_overlapping_behaviors_are_independent():
    ethogram = Ethogram(["move", "call"])
    random = np.random.default_rng(0)
    both = np.repeat(random.integers(0, 2, (60, 2)), 20, axis=0).astype(bool)
    truth = Annotation.from_frames(both, ethogram, 10.0)
    signals = Signals(both + random.normal(0, 0.2, both.shape), ("a", "b"), 10.0)
    one = Recording("r", signals=signals, annotations={"me": truth})
    prediction = eb.create_model("tcn", **{**QUICK, "updates": 75}).fit(Dataset((one,), ethogram)).predict(one)
    assert not prediction.exclusive
    assert (prediction.annotation.to_frames() == both).mean() > 0.9


def test_missing_values_are_tolerated():
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


def test_damaged_weights_are_refused(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30)
    eb.create_model("tcn", **QUICK).fit(data).save(tmp_path / "m")
    (tmp_path / "m" / "weights.safetensors").write_bytes(b"no weights")
    model = eb.create_model("tcn", **QUICK)
    with pytest.raises(FormatError, match="safetensors"):
        model._load(tmp_path / "m")


def test_invalid_settings_are_refused():
    with pytest.raises(EthobenchError, match="`levels` must be >= 1, got 0"):
        eb.create_model("tcn", levels=0)
    with pytest.raises(EthobenchError, match="`label_smoothing` must be < 1, got 1"):
        eb.create_model("tcn", label_smoothing=1.0)
