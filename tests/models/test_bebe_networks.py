"""The networks of BEBE: published layers, learning, imperfect data, saving."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.models.damage import renew_digests

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Observed, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.observed import Track
from ethobench.datasets.synthetic import make_dataset
from ethobench.models import bebe_networks
from ethobench.models.bebe_modules import FrameNetwork
from ethobench.training.device import isolated_seed

pytestmark = pytest.mark.slow

SMALL = {"cnn": {"epochs": 4, "window": 64}, "crnn": {"epochs": 3, "window": 64, "dilation": 2}, "rnn": {"epochs": 3, "window": 64}}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tag() -> Dataset:
    return make_dataset("tag", individuals=4, seconds=120)


def dataset_of(*recordings: Recording) -> Dataset:
    return Dataset(recordings, next(iter(recordings[0].annotations.values())).ethogram)


def waves(codes: np.ndarray, seed: int = 0) -> Signals:
    """Give each behavior its own level and loudness."""
    generator = np.random.default_rng(seed)
    levels = np.stack([codes * 1.0, (codes == 1) * 2.0, generator.normal(size=len(codes)) * (0.2 + codes)], axis=1)
    return Signals(levels + generator.normal(0, 0.1, levels.shape), ("AccX", "AccY", "AccZ"), 10.0)


def recording_of(codes: np.ndarray, ethogram: Ethogram, name: str = "r", **changes) -> Recording:
    truth = Annotation.from_frames(codes, ethogram, 10.0, unobserved=-1)
    return Recording(name, signals=waves(codes), annotations={"me": truth}).copy(**changes)


def bouts(n: int, behaviors: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.repeat(generator.integers(0, behaviors, n // 20 + 1), 20)[:n]


def test_networks_are_the_published_ones():
    """Weights counted by hand from the published layers: six channels in, seven units out."""
    crnn, cnn, rnn = (eb.create_model(name).build(6, 7) for name in ("crnn", "cnn", "rnn"))
    normalize = 2 * 6
    convolve = 6 * 64 * 7 + 2 * 64 + 64 * 64 * 7 + 2 * 64

    def gru(size: int) -> int:
        return 2 * 3 * (size * 64 + 64 * 64 + 64 + 64)

    expected = [
        normalize + convolve + gru(64) + 128 * 7 + 7,
        normalize + convolve + 64 * 7 + 7,
        normalize + gru(6) + 128 * 7 + 7,
    ]
    assert [sum(p.numel() for p in net.parameters()) for net in (crnn, cnn, rnn)] == expected
    assert [type(layer).__name__ for layer in crnn.convolve] == ["Conv1d", "BatchNorm1d", "ReLU"] * 2
    assert crnn.convolve[0].dilation == crnn.convolve[3].dilation == (5,)


def test_a_convolution_sees_as_far_as_its_dilation_reaches():
    network = FrameNetwork(1, 1, convolutions=2, cell=None, dilation=3).eval()
    still = torch.zeros(1, 101, 1)
    struck = still.clone()
    struck[0, 50] = 1.0
    with torch.no_grad():
        changed = (network(still) != network(struck))[0, :, 0].nonzero().ravel()
    assert changed.min() == 50 - 2 * 3 * 3
    assert changed.max() == 50 + 2 * 3 * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_they_predict_behaviors_of_new_animals(name):
    animals = make_dataset("tag", individuals=5, seconds=240)
    train, test = animals.select(fold=[0, 1, 2]), animals.select(fold=3)
    model = eb.create_model(name, **SMALL[name]).fit(train)
    scores, chance = (
        eb.score({r.id: m.predict(r) for r in test}, test, resamples=0).overall["f1"] for m in (model, eb.create_model("chance").fit(train))
    )
    assert scores > 0.55
    assert scores > 2 * chance
    assert model.history.losses[-1] < model.history.losses[0]


@pytest.mark.slow
def test_they_can_be_trained_on_poses():
    data = make_dataset("pose", individuals=4, seconds=60, missing=0.02)
    model = eb.create_model("cnn", epochs=20, window=64, dilation=2).fit(data.select(fold=[0, 1, 2]))
    prediction = model.predict(data.select(fold=3).recordings[0])
    assert model.n_inputs == 2 * len(data.recordings[0].signals.individuals) * len(data.recordings[0].signals.keypoints)
    assert prediction.probabilities.shape == (1800, len(data.ethogram))
    assert model.history.losses[-1] < 0.6 * model.history.losses[0]


def test_lstm_is_a_named_variant():
    assert type(eb.create_model("crnn", cell="lstm").build(3, 4).recur).__name__ == "LSTM"
    with pytest.raises(EthobenchError, match="one of 'gru' or 'lstm', got 'tanh'"):
        eb.create_model("crnn", cell="tanh")


@pytest.mark.parametrize("frames", [20, 23])
def test_pooled_frames_share_the_output_of_the_recurrent_layer(frames):
    with isolated_seed(0):
        network = FrameNetwork(2, 3, convolutions=1, cell="lstm", width=4, hidden=4, pool=4).eval()
    windows = torch.randn(2, frames, 2, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        signals = network.convolve(network.normalize(windows.transpose(1, 2))).transpose(1, 2)
        means = torch.stack([signals[:, i : i + 4].mean(dim=1) for i in range(0, frames, 4)], dim=1)
        expected = network.head(network.recur(means)[0])
        outputs = network(windows)
    assert outputs.shape == (2, frames, 3)
    for frame in range(frames):
        assert outputs[:, frame].numpy() == pytest.approx(expected[:, frame // 4].numpy(), abs=1e-6)
    with pytest.raises(EthobenchError, match="`pool` must be >= 1, got 0"):
        eb.create_model("crnn", pool=0)


def test_a_frequency_split_doubles_the_acceleration_channels(tag, tmp_path):
    one = tag.select(individual="animal01")
    model = eb.create_model("cnn", epochs=1, window=64, cutoff=1.6).fit(one)
    assert model.n_inputs == 9
    model.save(tmp_path / "m")
    again = eb.load_model(tmp_path / "m")
    recording = one.recordings[0]
    assert np.array_equal(again.predict(recording).probabilities, model.predict(recording).probabilities)


def test_overlapping_behaviors_are_independent():
    ethogram = Ethogram(["move", "call"])
    generator = np.random.default_rng(0)
    onehot = np.stack([np.repeat(generator.integers(0, 2, 60), 20) for _ in range(2)], axis=1)
    signals = Signals(onehot + generator.normal(0, 0.2, onehot.shape), ("a", "b"), 10.0)
    observed = Observed(iv.full(1200), {Track("call"): iv.intervals([0], [600])})
    truth = Annotation.from_frames(onehot, ethogram, 10.0)
    lies = onehot.copy()
    lies[600:, 1] = 1 - lies[600:, 1]
    predictions = []
    for annotation in (truth, Annotation.from_frames(lies, ethogram, 10.0)):
        recording = Recording("r", signals=signals, annotations={"me": annotation.with_observed(observed)})
        model = eb.create_model("cnn", epochs=6, window=50, dilation=1).fit(dataset_of(recording))
        predictions.append(model.predict(recording))
    first, second = predictions
    assert not first.exclusive
    assert (first.annotation.to_frames() == truth.to_frames()).mean() > 0.9
    assert np.array_equal(first.probabilities, second.probabilities)  # unobserved labels are not trained on


def test_a_behavior_without_examples_does_no_harm():
    ethogram = Ethogram(["rest", "run", "fly"])
    codes = bouts(1200, 2, 0)
    recording = recording_of(codes, ethogram)
    prediction = eb.create_model("cnn", epochs=6, window=50, dilation=1).fit(dataset_of(recording)).predict(recording)
    assert prediction.probabilities.shape == (1200, 4)
    assert (prediction.probabilities.argmax(axis=1) == codes).mean() > 0.9
    assert prediction.probabilities[:, 2:].max() < 0.5


def test_a_constant_channel_does_no_harm():
    ethogram = Ethogram(["rest", "run"])
    recording = recording_of(bouts(600, 2, 0), ethogram)
    flat = Signals(np.column_stack([recording.signals.values, np.full(600, 7.0)]), ("AccX", "AccY", "AccZ", "Depth"), 10.0)
    still = recording.copy(signals=flat)
    prediction = eb.create_model("cnn", epochs=4, window=50, dilation=1).fit(dataset_of(still)).predict(still)
    assert (prediction.probabilities.argmax(axis=1) == bouts(600, 2, 0)).mean() > 0.9


def test_missing_values_are_filled_and_not_trained_on():
    ethogram = Ethogram(["rest", "run"])
    codes = bouts(900, 2, 1)
    recording = recording_of(codes, ethogram)
    holes = recording.signals.values.copy()
    holes[200:230, 1], holes[400:450] = np.nan, np.nan
    broken = recording.copy(signals=replace(recording.signals, values=holes))
    with (
        pytest.warns(UserWarning, match="5.0 s of annotations in 1 of 1 recordings are not used for training"),
        pytest.warns(UserWarning, match="30 of 850 annotated frames lack a channel"),
    ):
        model = eb.create_model("cnn", epochs=4, window=50, dilation=1).fit(dataset_of(broken))
    assert np.isfinite(model.history.losses).all()
    prediction = model.predict(broken)
    assert np.flatnonzero(np.isnan(prediction.probabilities).any(axis=1)).tolist() == list(range(400, 450))
    assert prediction.annotation.observed == Observed(iv.intervals([0, 450], [400, 900]))


def test_recordings_shorter_than_the_window_are_padded():
    ethogram = Ethogram(["rest", "run"])
    recordings = [recording_of(bouts(n, 2, n), ethogram, f"r{n}") for n in (40, 300)]
    with pytest.warns(UserWarning, match="1 of 2 recordings are shorter than a window of 100 frames"):
        model = eb.create_model("cnn", epochs=1, window=100).fit(dataset_of(*recordings))
    assert model.predict(recordings[0]).n_frames == 40


def test_the_default_window_fits_the_recordings():
    ethogram = Ethogram(["rest", "run"])
    short, long = (recording_of(bouts(n, 2, 0), ethogram) for n in (80, 6000))
    assert eb.create_model("cnn", epochs=1).fit(dataset_of(short)).window == 40
    model = eb.create_model("cnn", epochs=1, batch=2)
    model.progress = lambda p: None
    assert model.fit(dataset_of(long)).window == 2048
    with pytest.raises(EthobenchError, match="`window` must be >= 1, got 0"):
        eb.create_model("cnn", window=0)
    with pytest.raises(EthobenchError, match="`batch` must be >= 1, got 0"):
        eb.create_model("cnn", batch=0)


def test_channels_are_found_by_name():
    ethogram = Ethogram(["rest", "run"])
    recording = recording_of(bouts(300, 2, 0), ethogram)
    model = eb.create_model("cnn", epochs=1, window=50).fit(dataset_of(recording))
    signals = recording.signals
    turned = Signals(signals.values[:, [2, 0, 1, 1]], ("AccZ", "AccX", "AccY", "Depth"), 10.0)
    assert np.array_equal(model.predict(recording.copy(signals=turned)).probabilities, model.predict(recording).probabilities)


def test_early_stopping_holds_out_individuals(tag):
    model = eb.create_model("cnn", epochs=30, window=100, patience=1, learning_rate=0.05).fit(tag)
    assert len(model.history.validation) == len(model.history.losses)
    assert model.history.best_epoch == int(np.argmin(model.history.validation))
    with pytest.raises(EthobenchError, match="only one recording"):
        eb.create_model("cnn", epochs=2, window=100, patience=1).fit(tag.select(individual="animal01"))


def test_a_training_is_resumed_from_its_checkpoint_and_refuses_another(tag, tmp_path):
    one = tag.select(individual="animal01")
    model = eb.create_model("cnn", epochs=2, window=50, dilation=1)
    model.checkpoint = tmp_path / "c"
    weights = model.fit(one).module.state_dict()
    again = eb.create_model("cnn", epochs=2, window=50, dilation=1)
    again.checkpoint, again.progress = tmp_path / "c", pytest.fail
    assert all(torch.equal(a, b) for a, b in zip(weights.values(), again.fit(one).module.state_dict().values(), strict=True))
    other = eb.create_model("cnn", epochs=2, window=50, dilation=3)
    other.checkpoint = tmp_path / "c"
    with pytest.raises(MismatchError, match=r"another training \(dilation differ\)"):
        other.fit(one)
    with pytest.raises(MismatchError, match=r"another training \(data differ\)"):
        again.fit(tag.select(individual="animal02"))


@pytest.mark.slow
def test_torch_is_imported_only_where_a_network_is_built():
    code = "import sys, ethobench as eb; eb.create_model('harnet'); eb.create_model('crnn'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_damaged_weights_are_refused(tag, tmp_path):
    one = tag.select(individual="animal01")
    model = eb.create_model("cnn", epochs=1, window=50).fit(one)
    for name in ("a", "b", "c"):
        model.save(tmp_path / name)
    (tmp_path / "a" / "weights.safetensors").unlink()
    with pytest.raises(FormatError, match="missing"):
        eb.load_model(tmp_path / "a")
    (tmp_path / "b" / "weights.safetensors").write_bytes(b"x" * 40)
    renew_digests(tmp_path / "b")
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        eb.load_model(tmp_path / "b")
    for version, problem in ((1, "do not fit the network"), (2, "format version 2 is not supported")):
        description = json.dumps({"format_version": version, "window": 5, "n_inputs": 6, "exclusive": True})
        save_file({"x": torch.zeros(1)}, tmp_path / "c" / "weights.safetensors", {"description": description})
        renew_digests(tmp_path / "c")
        with pytest.raises(FormatError, match=problem):
            eb.load_model(tmp_path / "c")


class Endless:
    """A memory-mapped recording of a day: counts how many frames are read at once."""

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, n: int) -> None:
        self.shape, self.most = (n, 3), 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: slice) -> np.ndarray:
        start, stop, _ = key.indices(len(self))
        self.most = max(self.most, stop - start)
        return np.random.default_rng(start).normal(size=(stop - start, 3)).astype(np.float32)


@pytest.mark.parametrize("params", [{}, {"cutoff": 1.6}])
def test_annotating_in_pieces_gives_the_complete_annotation(tag, monkeypatch, params):
    model = eb.create_model("cnn", epochs=1, window=64, batch=4, **params).fit(tag)
    one = tag.recordings[0]
    values = one.signals.values.copy()
    values[300:340] = np.nan
    one = one.copy(signals=Signals(values, one.signals.channels, one.rate), annotations={})
    complete = model.predict(one).annotation
    for frames in (64, 200, 1000):
        monkeypatch.setattr(bebe_networks, "PIECE_FRAMES", frames)
        assert model.annotate(one) == complete


def test_long_recordings_are_read_a_piece_at_a_time():
    ethogram = Ethogram(["rest", "run"])
    model = eb.create_model("cnn", epochs=1, window=50, cutoff=1.0).fit(dataset_of(recording_of(bouts(300, 2, 0), ethogram)))
    values = Endless(150_000)
    prediction = model.predict(Recording("day", rate=10.0, n_frames=150_000, signals=Signals(values, ("AccX", "AccY", "AccZ"), 10.0)))
    assert prediction.n_frames == 150_000
    assert values.most < 40_000


@pytest.mark.slow
def test_real_signals_are_learned(data):
    """A few minutes of two people, tested on two others."""
    if not (data / "bebe" / "HAR").is_dir():
        pytest.skip("real data: no bebe/HAR")
    har = eb.load_dataset("bebe/HAR")
    people = har.individuals
    model = eb.create_model("cnn", epochs=3, window=256, batch=16).fit(har.select(individual=people[:2]))
    test = har.select(individual=people[10:12])
    assert eb.score({r.id: model.predict(r) for r in test}, test, suite="bebe", resamples=0).overall["f1"] > 0.6
