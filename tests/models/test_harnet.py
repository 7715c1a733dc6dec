"""The published encoder: shapes, names, weights from a file, frozen and trained layers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import ethobench as eb
from ethobench import Dataset, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.datasets.synthetic import make_dataset
from ethobench.models.bebe_modules import Downsample, EncodedNetwork, Encoder, ResidualBlock
from ethobench.training.device import isolated_seed
from ethobench.training.weight_files import LicenceNotice

pytestmark = pytest.mark.slow

LENGTHS = {
    "harnet5": [150, 75, 37, 12, 4, 1],
    "harnet10": [300, 150, 75, 15, 3, 1],
    "harnet30": [900, 300, 100, 20, 4, 1],
    "small": [900, 300, 100, 20, 4, 1],
}
WIDTHS = {
    "harnet5": [64, 128, 256, 256, 512],
    "harnet10": [64, 128, 256, 512, 1024],
    "harnet30": [64, 128, 256, 512, 1024],
    "small": [64, 64, 128, 128, 256],
}
BLOCKS = {"harnet5": [2, 2, 2, 2, 0], "harnet10": [2, 2, 2, 2, 0], "harnet30": [2, 2, 2, 2, 0], "small": [2, 2, 2, 2, 2]}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tag() -> Dataset:
    return make_dataset("tag", individuals=2, seconds=20)


def encoder(config: str = "harnet5", seed: int = 0) -> Encoder:
    with isolated_seed(seed):
        return Encoder(config)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Write a file like a published checkpoint: names with a prefix, and heads of the pretext tasks."""
    tensors = {f"module.{name}": tensor for name, tensor in encoder(seed=5).state_dict().items()}
    tensors |= {"module.aot_h.linear1.weight": torch.zeros(2, 512), "module.aot_h.linear1.bias": torch.zeros(2)}
    torch.save(tensors, tmp_path / "mtl_5_best.mdl")
    return tmp_path / "mtl_5_best.mdl"


@pytest.mark.parametrize("config", LENGTHS)
def test_every_layer_is_as_long_and_wide_as_published(config):
    signals, network = torch.zeros(1, 3, LENGTHS[config][0]), encoder(config).eval()
    shapes = []
    with torch.no_grad():
        for layer in network.feature_extractor:
            signals = layer(signals)
            shapes.append(tuple(signals.shape[1:]))
    assert shapes == list(zip(WIDTHS[config], LENGTHS[config][1:], strict=True))


@pytest.mark.parametrize("config", LENGTHS)
def test_parameters_are_counted_as_published(config):
    expected, before = 0, 3
    for width, blocks in zip(WIDTHS[config], BLOCKS[config], strict=True):
        expected += 5 * before * width + blocks * (2 * 5 * width * width + 4 * width) + 2 * width
        before = width
    assert sum(p.numel() for p in encoder(config).parameters()) == expected


def test_weights_have_the_published_names():
    names = set(encoder("harnet30").state_dict())
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    expected = set()
    for layer, blocks in enumerate([2, 2, 2, 2, 0], start=1):
        stem = f"feature_extractor.layer{layer}"
        expected.add(f"{stem}.0.weight")
        for block in range(1, blocks + 1):
            expected |= {f"{stem}.{block}.conv{k}.weight" for k in (1, 2)} | {f"{stem}.{block}.bn{k}.{n}" for k in (1, 2) for n in norm}
        expected |= {f"{stem}.{blocks + 1}.{n}" for n in norm} | {f"{stem}.{blocks + 3}.kernel"}
    assert names == expected


@pytest.mark.parametrize(("factor", "order"), [(2, 2), (3, 1), (5, 1), (4, 0)])
def test_downsampling_is_a_box_smoothed_by_itself(factor, order):
    layer = Downsample(2, factor, order)
    kernel = np.ones(factor) / factor
    smooth = kernel
    for _ in range(order):
        smooth = np.convolve(smooth, kernel)
    assert layer.kernel.shape == (2, 1, (order + 1) * (factor - 1) + 1)
    signal = np.random.default_rng(0).normal(size=60)
    padded = np.pad(signal, order * (factor - 1) // 2)
    literal = [float(padded[i : i + len(smooth)] @ smooth) for i in range(0, len(padded) - len(smooth) + 1, factor)]
    outputs = layer(torch.tensor(np.stack([signal, -signal]), dtype=torch.float32)[None])[0]
    assert outputs[0].tolist() == pytest.approx(literal, abs=1e-6)
    assert torch.equal(outputs[1], -outputs[0])


def test_a_residual_block_is_added_to_its_input_and_wraps_around():
    block = ResidualBlock(2).eval()
    signals = torch.randn(1, 2, 30, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = signals + block.conv2(torch.relu(block.bn2(block.conv1(torch.relu(block.bn1(signals))))))
        assert torch.equal(block(signals), expected)
        turned = block(signals.roll(7, dims=2))
    assert turned.numpy() == pytest.approx(expected.roll(7, dims=2).numpy(), abs=1e-5)


def test_the_output_of_the_second_stage_is_upsampled():
    with isolated_seed(0):
        network = EncodedNetwork("harnet5", [[0, 1, 2], [4, 5, 6]], 8, 3, frozen=True).eval()
    windows = torch.randn(2, 150, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        parts = []
        for axes in ([0, 1, 2], [4, 5, 6]):
            tapped = network.encoder(windows[:, :, axes].transpose(1, 2))
            assert tapped.shape == (2, 128, 37)
            nearest = [int(frame * 37 / 150) for frame in range(150)]
            parts.append(tapped[:, :, nearest].transpose(1, 2))
        joined = torch.cat([*parts, windows[:, :, [3, 7]]], dim=-1)
        expected = network.head(network.recur(joined)[0])
        outputs = network(windows)
    assert outputs.numpy() == pytest.approx(expected.numpy(), abs=1e-5)


def states(model) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in model.module.state_dict().items() if name.startswith("encoder.")}


def fitted(tag: Dataset, **params):
    return eb.create_model("harnet", config="harnet5", epochs=1, batch=4, **params).fit(tag)


@pytest.mark.slow
def test_a_frozen_encoder_is_not_changed_and_an_unfrozen_one_is(tag, checkpoint):
    with pytest.warns(LicenceNotice, match="non-commercial research only"):
        frozen = fitted(tag, weights=str(checkpoint))
    with pytest.warns(LicenceNotice):
        unfrozen = fitted(tag, weights=str(checkpoint), mode="unfrozen")
    published = encoder(seed=5).state_dict()
    for name, tensor in states(frozen).items():
        assert torch.equal(tensor, published[name.removeprefix("encoder.")]), name
    changed = [name for name, tensor in states(unfrozen).items() if not torch.equal(tensor, published[name.removeprefix("encoder.")])]
    assert {name for name in states(unfrozen) if re.search(r"weight|bias|running|tracked", name)} == set(changed)


def test_a_frozen_encoder_keeps_its_normalization_during_training():
    network = EncodedNetwork("harnet5", [[0, 1, 2]], 3, 2, frozen=True).train()
    assert network.recur.training
    assert not any(module.training for module in network.encoder.modules())
    assert not any(p.requires_grad for p in network.encoder.parameters())
    learning = EncodedNetwork("harnet5", [[0, 1, 2]], 3, 2, frozen=False).train()
    assert all(module.training for module in learning.encoder.modules())


def test_a_random_encoder_needs_no_weights_and_is_saved(tag, tmp_path):
    model = fitted(tag, mode="random")
    model.save(tmp_path / "m")
    recording = tag.recordings[0]
    again = eb.load_model(tmp_path / "m")
    assert np.array_equal(again.predict(recording).probabilities, model.predict(recording).probabilities)
    assert model.window == 150


def test_a_saved_model_does_not_need_the_checkpoint(tag, checkpoint, tmp_path):
    with pytest.warns(LicenceNotice):
        model = fitted(tag, weights=str(checkpoint))
    model.save(tmp_path / "m")
    checkpoint.unlink()
    recording = tag.recordings[0]
    assert np.array_equal(eb.load_model(tmp_path / "m").predict(recording).probabilities, model.predict(recording).probabilities)


def test_missing_and_unsuitable_weights_are_refused(tag, tmp_path, checkpoint):
    with pytest.raises(EthobenchError, match=r"download a checkpoint from https://github\.com/OxWearables"):
        fitted(tag)
    with pytest.raises(FormatError, match="no weights here"):
        fitted(tag, weights=str(tmp_path / "none.mdl"))
    with pytest.warns(LicenceNotice), pytest.raises(MismatchError, match="check `config`"):
        eb.create_model("harnet", config="harnet30", epochs=1, weights=str(checkpoint)).fit(tag)
    save_file({"x": torch.zeros(1)}, tmp_path / "x.safetensors")
    with pytest.raises(MismatchError, match=r"lacks feature_extractor\.layer1\.0\.weight"):
        fitted(tag, weights=str(tmp_path / "x.safetensors"))
    with pytest.raises(EthobenchError, match="cannot be used with mode"):
        eb.create_model("harnet", mode="random", weights="x")
    with pytest.raises(EthobenchError, match="must be one of 'frozen', 'unfrozen' or 'random', got 'cold'"):
        eb.create_model("harnet", mode="cold")
    with pytest.raises(EthobenchError, match="`cutoff` must be 0 for harnet"):
        eb.create_model("harnet", cutoff=1.0)


class Bomb:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("content", [{"feature_extractor.x": Bomb()}, [1, 2], {"a": "text"}])
def test_nothing_in_a_checkpoint_is_executed(tag, tmp_path, capsys, content):
    torch.save(content, tmp_path / "bad.pt")
    with pytest.raises(FormatError, match="refused"):
        fitted(tag, weights=str(tmp_path / "bad.pt"))
    assert "executed" not in capsys.readouterr().out
    (tmp_path / "worse.pt").write_bytes(b"not a torch file")
    with pytest.raises(FormatError, match="refused"):
        fitted(tag, weights=str(tmp_path / "worse.pt"))


@pytest.mark.slow
def test_acceleration_is_scaled_to_a_mean_length_of_one(tag):
    model = fitted(tag, mode="random")
    recording = tag.recordings[0]
    values = np.asarray(recording.signals.values)
    stream = model.read_channels(recording)
    length = np.linalg.norm(values[:, :3], axis=1).mean() + 1e-6
    expected = np.hstack([values[:, :3] / length, values[:, 3:]])
    assert stream.read(0, 500).values == pytest.approx(expected[:500], rel=1e-5, abs=1e-6)
    louder = Signals(values * np.array([9.81] * 3 + [1] * 3), recording.signals.channels, recording.signals.rate)
    again = model.predict(recording.copy(signals=louder)).probabilities
    assert again == pytest.approx(model.predict(recording).probabilities, abs=1e-3)


def test_signals_can_be_resampled_to_the_encoders_rate(tag):
    model = fitted(tag, mode="random", rate=30.0)
    recording = tag.recordings[0]
    assert len(model.read_channels(recording)) == 600
    prediction = model.predict(recording)
    assert (prediction.n_frames, prediction.rate) == (500, 25.0)
    truth = recording.annotation().to_codes()
    sampler = model.sample_windows({recording.id: model.read_channels(recording)}, {recording.id: recording.annotation()})
    assert (sampler.recordings.targets[np.arange(500) * 30 // 25] == truth).mean() > 0.99


def test_channels_outside_of_triples_are_inputs_of_the_recurrent_layer(tag):
    depth = Signals(np.column_stack([tag.recordings[0].signals.values, np.zeros(500)]), (*tag.recordings[0].signals.channels, "Depth"), 25)
    model = fitted(Dataset((tag.recordings[0].copy(signals=depth),), tag.ethogram), mode="random")
    assert model.module.triples == [[0, 1, 2], [3, 4, 5]]
    assert model.module.others == [6]
    assert model.module.recur.input_size == 2 * 128 + 1


def test_two_channels_are_enough(tag):
    first = tag.recordings[0]
    flat = Signals(first.signals.values[:, :2], ("AccX", "AccY"), 25)
    recording: Recording = first.copy(signals=flat)
    model = fitted(Dataset((recording,), tag.ethogram), mode="random")
    assert model.module.triples == []
    assert np.isfinite(model.predict(recording).probabilities).all()
