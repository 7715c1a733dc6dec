"""Features at several scales: literal windows, how a tag sits, blocks that do not show, and slow or broken recordings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ethobench as eb
from ethobench import Signals
from ethobench.features import multiscale
from ethobench.features.multiscale import compute_baseline, multiscale_context, multiscale_features
from ethobench.features.spectral import spectral_features
from ethobench.features.windows import axis_correlations, window_lengths, window_statistics

ACC = ("AccX", "AccY", "AccZ")


def tag(seconds: float = 60, rate: float = 25.0, seed: int = 0, channels: tuple[str, ...] = (*ACC, "GyrX", "GyrY", "GyrZ")) -> Signals:
    random = np.random.default_rng(seed)
    n = int(seconds * rate)
    values = random.normal(0, 0.3, (n, len(channels))) * (1 + np.sin(np.arange(n) / 40)[:, None])
    values[:, 0] += 0.6
    values[:, 2] += np.where(np.arange(n) < n // 2, 0.8, -0.8)
    return Signals(values, channels, rate)


def named(features: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    assert len({*names}) == len(names) == features.shape[1]
    return dict(zip(names, features.T, strict=True))


@given(st.integers(1, 40), st.integers(1, 6), st.booleans())
def test_windows_are_what_they_say(n, half, gaps):
    random = np.random.default_rng(n * 10 + half)
    row = random.normal(5, 2, n)
    if gaps:
        row[random.random(n) < 0.2] = np.nan
    found = {statistic: columns[0] for statistic, columns in window_statistics(row[None], 2 * half + 1, slice(None))}
    for t in range(n):
        window = row[max(t - half, 0) : t + half + 1]
        window = window[~np.isnan(window)]
        before, after = row[max(t - half, 0) : t + 1], row[t : t + half + 1]
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        if not len(window):
            assert np.isnan(found["mean"][t])
            continue
        for statistic in ("mean", "std", "min", "max"):
            assert found[statistic][t] == pytest.approx(getattr(np, statistic)(window), abs=1e-5)
        if window.std() > 1e-3:
            third = ((window - window.mean()) ** 3).mean() / window.std() ** 3
            assert found["skew"][t] == pytest.approx(third, abs=1e-3)
        if len(before) and len(after):
            assert found["mean_rise"][t] == pytest.approx(after.mean() - before.mean(), abs=1e-5)
            assert found["std_rise"][t] == pytest.approx(after.std() - before.std(), abs=1e-4)


def test_axes_are_correlated_in_the_window():
    axes = np.random.default_rng(0).normal(size=(3, 200))
    axes[1] += axes[0]
    found = dict(axis_correlations(axes, 51, slice(None)))
    assert list(found) == ["xy", "xz", "yz"]
    assert found["xy"][100] == pytest.approx(np.corrcoef(axes[0, 75:126], axes[1, 75:126])[0, 1], abs=1e-5)


@pytest.mark.parametrize("rate", [25.0, 200.0])
def test_the_strongest_frequency_is_found_where_it_is(rate):
    time = np.arange(0, 40, 1 / rate)
    waves = np.where(time < 20, np.sin(2 * np.pi * 2 * time), np.sin(2 * np.pi * 6 * time))[None]
    frames = np.array([int(10 * rate), int(30 * rate)])
    columns, names = spectral_features([("w", waves)], rate, frames, [int(4 * rate)])
    found = dict(zip(names, columns, strict=True))
    strongest = next(values for name, values in found.items() if "strongest" in name)
    assert 2**strongest == pytest.approx([2, 6], rel=0.1)
    for low, high, place in ((1.5, 2.5, 0), (5, 7.5, 1)):
        name = max((n for n in found if "Hz" in n), key=lambda n: found[n][place])
        edges = name.split("/")[1].removesuffix("Hz").split("-")
        assert float(edges[0]) < high
        assert float(edges[1]) > low


def test_how_the_tag_sits_does_not_matter_to_most_columns():
    signals = tag()
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    turned = np.concatenate([signals.values[:, :3] @ turn.T, signals.values[:, 3:] @ turn.T], axis=1)
    before = named(*multiscale_features(signals, 25.0, every=3))
    after = named(*multiscale_features(Signals(turned, signals.channels, 25.0), 25.0, every=3))
    invariant = [n for n in before if n.startswith(("Acc|", "Gyr|", "Acc/0", "Acc/1", "Gyr/0")) and "odba" not in n and "/own/" not in n]
    assert len(invariant) > 200
    skewed = [n for n in invariant if "skew" in n or "strongest" in n or "upright" in n]
    for name in {*invariant} - {*skewed}:
        np.testing.assert_allclose(after[name], before[name], atol=2e-3, rtol=2e-3, err_msg=name)
    assert after["AccX/mean/2.04s"] != pytest.approx(before["AccX/mean/2.04s"], abs=0.01)


def test_units_of_acceleration_do_not_matter():
    signals = tag(channels=ACC)
    before, names = multiscale_features(signals, 25.0, every=5)
    after, _ = multiscale_features(Signals(9.81 * signals.values, ACC, 25.0), 25.0, every=5)
    for place, name in enumerate(names):
        if "skew" not in name and "strongest" not in name:
            np.testing.assert_allclose(after[:, place], before[:, place], atol=1e-3, rtol=1e-3, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tag", "pose"])
def test_blocks_and_thinning_do_not_show(kind, monkeypatch):
    recording = eb.load_dataset(f"synthetic/{kind}", individuals=1, seconds=90).recordings[0]
    whole, names = multiscale_features(recording.signals, recording.rate)
    monkeypatch.setattr(multiscale, "BLOCK", 100)
    parts, again = multiscale_features(recording.signals, recording.rate, every=4)
    assert names == again
    assert len(recording.signals) > 2 * multiscale_context(recording.rate)
    steady = [place for place, name in enumerate(names) if "skew" not in name and "strongest" not in name]
    np.testing.assert_allclose(parts[:, steady], whole[::4][:, steady], atol=1e-3, rtol=1e-3)


def test_single_rows_are_those_of_the_whole(monkeypatch):
    recording = eb.load_dataset("synthetic/tag", individuals=1, seconds=120).recordings[0]
    monkeypatch.setattr(multiscale, "BLOCK", 500)
    monkeypatch.setattr(multiscale, "multiscale_context", lambda rate: 100)
    whole, names = multiscale_features(recording.signals, recording.rate, every=5)
    rows = np.array([3, 4, 150, 151, len(whole) - 1])
    computed = []
    block = multiscale._block
    monkeypatch.setattr(multiscale, "_block", lambda *told: computed.append(told) or block(*told))
    some, same = multiscale_features(recording.signals, recording.rate, every=5, rows=rows)
    np.testing.assert_array_equal(some, whole[rows])
    assert same == names
    assert len(computed) == 3 < len(whole) * 5 // 505
    nothing, _ = multiscale_features(recording.signals, recording.rate, every=5, rows=rows[:0])
    assert not len(nothing)


def test_a_stretch_is_told_relative_to_its_recording():
    signals = tag(120)
    usual = compute_baseline(signals, 25.0)
    margin = multiscale_context(25.0)
    whole, names = multiscale_features(signals, 25.0, baseline=usual)
    part, _ = multiscale_features(signals[1000 - margin : 1200 + margin], 25.0, baseline=usual)
    steady = [place for place, name in enumerate(names) if "skew" not in name and "strongest" not in name]
    np.testing.assert_allclose(part[margin : margin + 200][:, steady], whole[1000:1200][:, steady], atol=1e-3, rtol=1e-3)
    own = named(whole, names)["Acc|vedba/own/2.04s"]
    assert abs(np.median(own)) < 0.5


def test_gaps_are_left_out():
    signals = tag()
    values = signals.values.copy()
    values[300:400] = np.nan
    values[700:720, 1] = np.inf
    features, names = multiscale_features(Signals(values, signals.channels, 25.0), 25.0)
    assert not np.isinf(features).any()
    found, clean = named(features, names), named(*multiscale_features(signals, 25.0))
    assert np.isnan(found["AccX/mean/0.52s"][350])
    assert np.isfinite(found["AccX/mean/32s"][350])
    assert found["AccX/mean/2.04s"][1200] == pytest.approx(clean["AccX/mean/2.04s"][1200], rel=0.01)  # gravity is measured anew


@pytest.mark.parametrize("rate", [0.2, 1.0, 400.0])
def test_any_rate_will_do(rate):
    signals = Signals(np.random.default_rng(0).normal(size=(700, 4)), (*ACC, "Depth"), rate)
    features, names = multiscale_features(signals, rate, every=7)
    assert features.shape == (100, len(names))
    assert np.isfinite(features).all()
    assert window_lengths(rate, 4) == sorted({*window_lengths(rate, 4)})


def test_any_channels_will_do():
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
