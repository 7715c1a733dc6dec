"""Multiscale features: invariance to the orientation of a tag, blocks, gaps, and unusual rates and channels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import ethobench as eb
from ethobench import Poses, Signals
from ethobench.features import multiscale
from ethobench.features.multiscale import SignalReader, base_signals, compute_baseline, multiscale_context, multiscale_features
from ethobench.features.shared import share_values
from ethobench.features.windows import window_lengths

ACC = ("AccX", "AccY", "AccZ")


def make_tag(seconds: float = 60, rate: float = 25.0, seed: int = 0, channels: tuple[str, ...] = (*ACC, "GyrX", "GyrY", "GyrZ")) -> Signals:
    random = np.random.default_rng(seed)
    n = int(seconds * rate)
    values = random.normal(0, 0.3, (n, len(channels))) * (1 + np.sin(np.arange(n) / 40)[:, None])
    values[:, 0] += 0.6
    values[:, 2] += np.where(np.arange(n) < n // 2, 0.8, -0.8)
    return Signals(values, channels, rate)


def by_name(features: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    assert len({*names}) == len(names) == features.shape[1]
    return dict(zip(names, features.T, strict=True))


def test_most_features_do_not_depend_on_the_orientation_of_the_tag():
    signals = make_tag()
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    rotation *= np.sign(np.linalg.det(rotation))
    rotated = np.concatenate([signals.values[:, :3] @ rotation.T, signals.values[:, 3:] @ rotation.T], axis=1)
    before = by_name(*multiscale_features(signals, 25.0, every=3))
    after = by_name(*multiscale_features(Signals(rotated, signals.channels, 25.0), 25.0, every=3))
    invariant = [
        n for n in before if n.startswith(("Acc|", "Gyr|", "Acc/0", "Acc/1", "Gyr/0")) and "odba" not in n and "/standardized/" not in n
    ]
    assert len(invariant) > 200
    unstable = [n for n in invariant if "skew" in n or "strongest" in n or "upright" in n]
    for name in {*invariant} - {*unstable}:
        np.testing.assert_allclose(after[name], before[name], atol=2e-3, rtol=2e-3, err_msg=name)
    assert after["AccX/mean/2.04s"] != pytest.approx(before["AccX/mean/2.04s"], abs=0.01)


def test_features_do_not_depend_on_the_unit_of_acceleration():
    signals = make_tag(channels=ACC)
    before, names = multiscale_features(signals, 25.0, every=5)
    after, _ = multiscale_features(Signals(9.81 * signals.values, ACC, 25.0), 25.0, every=5)
    for column, name in enumerate(names):
        if "skew" not in name and "strongest" not in name:
            np.testing.assert_allclose(after[:, column], before[:, column], atol=1e-3, rtol=1e-3, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tag", "pose"])
def test_features_do_not_depend_on_blocks_and_subsampling(kind, monkeypatch):
    recording = eb.load_dataset(f"synthetic/{kind}", individuals=1, seconds=90).recordings[0]
    complete, names = multiscale_features(recording.signals, recording.rate)
    monkeypatch.setattr(multiscale, "BLOCK_FRAMES", 100)
    subsampled, again = multiscale_features(recording.signals, recording.rate, every=4)
    assert names == again
    assert len(recording.signals) > 2 * multiscale_context(recording.rate)
    stable = [column for column, name in enumerate(names) if "skew" not in name and "strongest" not in name]
    np.testing.assert_allclose(subsampled[:, stable], complete[::4][:, stable], atol=1e-3, rtol=1e-3)


def test_chosen_rows_equal_those_of_all_frames(monkeypatch):
    recording = eb.load_dataset("synthetic/tag", individuals=1, seconds=120).recordings[0]
    monkeypatch.setattr(multiscale, "BLOCK_FRAMES", 500)
    monkeypatch.setattr(multiscale, "multiscale_context", lambda rate: 100)
    complete, names = multiscale_features(recording.signals, recording.rate, every=5)
    rows = np.array([3, 4, 150, 151, len(complete) - 1])
    computed = []
    compute_block = multiscale.compute_block
    monkeypatch.setattr(multiscale, "compute_block", lambda *args: computed.append(args) or compute_block(*args))
    chosen, chosen_names = multiscale_features(recording.signals, recording.rate, every=5, rows=rows)
    np.testing.assert_array_equal(chosen, complete[rows])
    assert chosen_names == names
    assert len(computed) == 3 < len(complete) * 5 // 505
    empty, _ = multiscale_features(recording.signals, recording.rate, every=5, rows=rows[:0])
    assert not len(empty)


def test_a_slice_is_standardized_by_its_recording():
    signals = make_tag(120)
    baseline = compute_baseline(signals, 25.0)
    margin = multiscale_context(25.0)
    complete, names = multiscale_features(signals, 25.0, baseline=baseline)
    features, _ = multiscale_features(signals[1000 - margin : 1200 + margin], 25.0, baseline=baseline)
    stable = [column for column, name in enumerate(names) if "skew" not in name and "strongest" not in name]
    np.testing.assert_allclose(features[margin : margin + 200][:, stable], complete[1000:1200][:, stable], atol=1e-3, rtol=1e-3)
    standardized = by_name(complete, names)["Acc|vedba/standardized/2.04s"]
    assert abs(np.median(standardized)) < 0.5


def test_gaps_are_ignored():
    signals = make_tag()
    values = signals.values.copy()
    values[300:400] = np.nan
    values[700:720, 1] = np.inf
    features, names = multiscale_features(Signals(values, signals.channels, 25.0), 25.0)
    assert not np.isinf(features).any()
    gapped, complete = by_name(features, names), by_name(*multiscale_features(signals, 25.0))
    assert np.isnan(gapped["AccX/mean/0.52s"][350])
    assert np.isfinite(gapped["AccX/mean/32s"][350])
    assert gapped["AccX/mean/2.04s"][1200] == pytest.approx(complete["AccX/mean/2.04s"][1200], rel=0.01)  # gravity is estimated again


@pytest.mark.parametrize("rate", [0.2, 1.0, 400.0])
def test_any_rate(rate):
    signals = Signals(np.random.default_rng(0).normal(size=(700, 4)), (*ACC, "Depth"), rate)
    features, names = multiscale_features(signals, rate, every=7)
    assert features.shape == (100, len(names))
    assert np.isfinite(features).all()
    assert window_lengths(rate, 4) == sorted({*window_lengths(rate, 4)})


def test_any_channels():
    for channels in (("Depth",), ("c0", "c1"), ("GyrX", "GyrY", "GyrZ"), ("AccX_Back", "AccY_Back", "AccZ_Back", "Temp")):
        signals = Signals(np.random.default_rng(0).normal(size=(200, len(channels))), channels, 10.0)
        features, names = multiscale_features(signals, 10.0)
        assert features.shape == (200, len({*names}))
    empty, _ = multiscale_features(Signals(np.zeros((1, 3)), ACC, 10.0), 10.0)
    assert np.isfinite(empty).all()


@pytest.mark.slow
@pytest.mark.data
def test_real_tags(data):
    dataset = eb.load_dataset("bebe/HAR")
    recording = dataset.recordings[0]
    features, names = multiscale_features(recording.signals, recording.rate, every=10)
    assert features.shape == (-(-len(recording.signals) // 10), len(names))
    assert np.isfinite(features).all()


@pytest.mark.parametrize("every", [1, 3])
def test_signals_of_poses_at_once_or_in_pieces_give_the_same_features(monkeypatch, every):
    recording = eb.load_dataset("synthetic/pose", individuals=1, seconds=90).recordings[0]
    at_once = multiscale_features(recording.signals, recording.rate, every=every)
    monkeypatch.setattr(multiscale, "MAX_WHOLE_FRAMES", 0)
    in_pieces = multiscale_features(recording.signals, recording.rate, every=every)
    np.testing.assert_array_equal(at_once[0], in_pieces[0])
    assert at_once[1] == in_pieces[1]
    monkeypatch.setattr(multiscale, "BLOCK_FRAMES", 100)
    monkeypatch.setattr(multiscale, "SAMPLE_PIECE_FRAMES", 100)
    small_blocks = multiscale_features(recording.signals, recording.rate, every=every)[0]
    monkeypatch.setattr(multiscale, "MAX_WHOLE_FRAMES", 1 << 17)
    np.testing.assert_allclose(multiscale_features(recording.signals, recording.rate, every=every)[0], small_blocks, rtol=1e-5, atol=1e-5)


def test_readers_of_the_same_poses_share_signals(monkeypatch):
    recording = eb.load_dataset("synthetic/pose", individuals=1, seconds=20).recordings[0]
    poses, rate = recording.signals, recording.rate
    features = Signals(np.ones((len(poses), 1)), ("features/0",), rate)
    with_features = Poses(poses.positions, poses.confidence, poses.individuals, poses.keypoints, rate, features)
    computed = []
    pose_features = multiscale.pose_features
    monkeypatch.setattr(multiscale, "pose_features", lambda *args, **options: computed.append(args) or pose_features(*args, **options))
    with share_values():
        baseline = compute_baseline(with_features, rate)
        multiscale_features(with_features, rate, every=3, baseline=baseline)
        values, names = SignalReader(with_features, rate, baseline).read(100, 200)
        assert len(computed) == 1
        scaled = dataclasses.replace(baseline, scene=dataclasses.replace(baseline.scene, body_length=1.0))
        SignalReader(with_features, rate, scaled).read(100, 200)
        assert len(computed) == 2
    expected, expected_names = base_signals(with_features, rate, baseline)
    np.testing.assert_array_equal(values, expected[:, 100:200])
    assert names == expected_names
    assert names[-1] == "features/0"
