"""Cleaning of poses: each step against damage that was done on purpose."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.running import ethobench

import ethobench as eb
from ethobench import CleanOptions, Poses, Recording

KEYPOINTS = ("nose", "neck", "tail_base")


def walk(seed: int = 0, n_frames: int = 300, animals: int = 2, rate: float = 30.0) -> Poses:
    """Return animals that walk smoothly, far from each other."""
    random = np.random.default_rng(seed)
    t = np.arange(n_frames)[:, None] / rate
    phase = random.uniform(0, 2 * np.pi, size=animals)
    center = np.stack([200 + 300 * np.arange(animals) + 40 * np.cos(t + phase), 200 + 40 * np.sin(t + phase)], axis=-1)
    body = np.array([[20.0, 0], [8, 0], [-20, 0]])
    return Poses(
        center[:, :, None] + body, np.full((n_frames, animals, 3), 0.95), tuple(f"m{k + 1}" for k in range(animals)), KEYPOINTS, rate
    )


@given(seed=st.integers(0, 2**32 - 1), threshold=st.sampled_from([0.0, 0.3, 0.6, 1.0]))
def test_confidence_filter_keeps_exactly_the_confident_points(seed, threshold):
    random = np.random.default_rng(seed)
    confidence = np.where(random.random((300, 2, 3)) < 0.1, np.nan, random.random((300, 2, 3)))
    poses = replace(walk(), confidence=confidence)
    filtered = eb.filter_by_confidence(poses, threshold)
    missing = np.isnan(filtered.positions[..., 0])
    assert (missing == (confidence < threshold)).all()
    assert (filtered.positions[~missing] == poses.positions[~missing]).all()


@given(seed=st.integers(0, 2**32 - 1), max_frames=st.integers(0, 12))
def test_gaps_are_interpolated_up_to_the_limit(seed, max_frames):
    random = np.random.default_rng(seed)
    poses = walk(animals=1, n_frames=120)
    positions, confidence = poses.positions.copy(), poses.confidence.copy()
    lost = np.repeat(random.random((40, 3)) < 0.3, 3, axis=0)[:, None]
    positions[lost], confidence[lost] = np.nan, 0.01
    filled = eb.interpolate_gaps(replace(poses, positions=positions, confidence=confidence), max_frames / 30)
    frames = np.arange(120)
    for k in range(3):
        track = positions[:, 0, k, 0]
        known_values = np.flatnonzero(~np.isnan(track))
        for t in frames:
            before, after = known_values[known_values <= t], known_values[known_values >= t]
            bridged = len(before) and len(after) and after[0] - before[-1] - 1 <= max_frames
            expected = np.interp(t, known_values, track[known_values]) if bridged else np.nan
            assert filled.positions[t, 0, k, 0] == pytest.approx(expected, nan_ok=True)
            if bridged and np.isnan(track[t]):
                assert filled.confidence[t, 0, k] == pytest.approx(0.95)
            elif np.isnan(track[t]):
                assert filled.confidence[t, 0, k] == 0.01


def test_median_equals_that_of_numpy():
    poses = walk(animals=1, n_frames=60)
    noisy = poses.positions + np.random.default_rng(0).normal(0, 3, size=poses.positions.shape)
    noisy[20:24] = np.nan
    smoothed = eb.smooth_median(replace(poses, positions=noisy), 0.2).positions
    for t in range(60):
        expected = np.nan if 20 <= t < 24 else np.nanmedian(noisy[max(t - 3, 0) : t + 4, 0, 1, 0])
        assert smoothed[t, 0, 1, 0] == pytest.approx(expected, nan_ok=True)


def test_savitzky_golay_reduces_noise_and_keeps_gaps():
    poses = walk()
    noisy = poses.positions + np.random.default_rng(0).normal(0, 2, size=poses.positions.shape)
    noisy[100:110, 0, 0] = np.nan
    smoothed = eb.smooth_savgol(replace(poses, positions=noisy), 0.5).positions
    assert (np.isnan(smoothed) == np.isnan(noisy)).all()
    assert np.nanmean((smoothed - poses.positions) ** 2) < 0.5 * np.nanmean((noisy - poses.positions) ** 2)
    with pytest.raises(eb.ParameterError, match="polyorder"):
        eb.smooth_savgol(poses, 0.1, polyorder=3)


def test_jumps_are_removed_and_fast_movement_is_not():
    poses = walk()
    random = np.random.default_rng(4)
    positions = poses.positions.copy()
    damaged = random.random(positions.shape[:3]) < 0.05
    positions[damaged] += 150
    cleaned = eb.remove_jumps(replace(poses, positions=positions))
    assert (np.isnan(cleaned.positions[..., 0]) == damaged).all()
    assert not np.isnan(eb.remove_jumps(poses).positions).any()
    with pytest.raises(eb.ParameterError, match="max_distance"):
        eb.remove_jumps(poses, 0)


@pytest.mark.parametrize("animals", [2, 3])
@given(seed=st.integers(0, 2**32 - 1))
def test_identity_swaps_are_repaired(animals, seed):
    random = np.random.default_rng(seed)
    poses = walk(seed, animals=animals)
    positions, confidence = poses.positions.copy(), random.uniform(0.7, 1, size=poses.confidence.shape)
    original = confidence.copy()
    for frame in np.sort(random.choice(np.arange(10, 290, 10), size=int(random.integers(0, 5)), replace=False)):
        a, b = random.choice(animals, size=2, replace=False)
        positions[frame:, [a, b]] = positions[frame:, [b, a]]
        confidence[frame:, [a, b]] = confidence[frame:, [b, a]]
    repaired = eb.repair_identity_swaps(replace(poses, positions=positions, confidence=confidence))
    assert (repaired.positions == poses.positions).all()
    assert (repaired.confidence == original).all()


def test_all_steps_and_their_report():
    poses = walk()
    positions, confidence = poses.positions.copy(), poses.confidence.copy()
    positions[50:, [0, 1]] = positions[50:, [1, 0]]
    positions[100, 0, 0] += 200
    confidence[150:155, 1, 2] = 0.1
    confidence[200:260, 0, 1] = 0.1
    cleaned, report = eb.clean_poses(replace(poses, positions=positions, confidence=confidence))
    assert report.n_points == 600
    assert report.counts["nose"]["jumps"] == 1
    assert report.counts["tail_base"]["low_confidence"] == 5
    assert report.counts["tail_base"]["swapped"] > 400
    assert report.counts["tail_base"]["interpolated"] == 5
    assert report.counts["neck"]["missing"] == 60
    assert report.total("missing") == 60
    tracked = ~np.isnan(cleaned.positions[..., 0])
    assert np.abs(cleaned.positions - poses.positions)[tracked].max() < 3
    untouched, nothing = eb.clean_poses(poses, CleanOptions(smooth="none"))
    assert (untouched.positions == poses.positions).all()
    assert {nothing.total(step) for step in ("low_confidence", "swapped", "jumps", "interpolated", "missing")} == {0}


@pytest.mark.parametrize("wrong", [{"smooth": "mean"}, {"min_confidence": 60}, {"max_gap": -1}, {"max_jump": float("nan")}])
def test_invalid_options_are_refused(wrong):
    with pytest.raises(eb.ParameterError, match=next(iter(wrong))):
        CleanOptions(**wrong)


def test_files_are_copied_and_never_replaced(tmp_path):
    poses = walk()
    positions = poses.positions.copy()
    positions[100, 0, 0] += 200
    source = tmp_path / "poses" / "m1.csv"
    source.parent.mkdir()
    eb.write_recordings([Recording("m1", signals=replace(poses, positions=positions))], source, "deeplabcut")
    (source.parent / "notes.txt").write_text("not poses")
    before = source.read_bytes()
    (row,) = json.loads(ethobench("clean", source.parent, "--out", tmp_path / "out", "--rate", 30, "--json").stdout)
    assert row["changed"]["nose"]["jumps"] == 1
    cleaned = eb.read_recordings(tmp_path / "out" / "m1.csv", rate=30)[0].signals
    expected, _ = eb.clean_poses(replace(poses, positions=positions))
    assert np.allclose(cleaned.positions, expected.positions)
    again = ethobench("clean", source, "--out", tmp_path / "out", "--rate", 30)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert "already exists" in ethobench("clean", source, "--out", source.parent, "--rate", 30).stderr
    assert source.read_bytes() == before
    assert "--rate" in ethobench("clean", source, "--out", tmp_path / "other").stderr
    printed = ethobench("clean", source, "--out", tmp_path / "other", "--rate", 30).stdout
    assert "jumps" in printed
    assert str(tmp_path / "other" / "m1.csv") in printed


@pytest.mark.slow
def test_formats_that_cannot_be_written_become_tables(data, tmp_path):
    source = next((data / "formats" / "sleap").rglob("*.h5"))
    (cleaned,) = eb.clean_files([source], tmp_path, rate=30)
    assert cleaned.path.suffix == ".csv"
    assert any("cannot be written" in note.message for note in cleaned.notes)
    assert eb.read_recordings(cleaned.path, rate=30)[0].signals.keypoints == eb.read_recordings(source, rate=30)[0].signals.keypoints
