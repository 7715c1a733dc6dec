"""Movement of animals against walks whose measures are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.running import ethobench

import ethobench as eb
from ethobench import Poses, Recording


def recording_of(path: np.ndarray, rate: float = 30.0, **fields) -> Recording:
    """Return a recording of animals with one keypoint each; `path` has the shape (n_frames, n_animals, 2)."""
    names = tuple(f"m{k + 1}" for k in range(path.shape[1]))
    poses = Poses(path[:, :, None].astype(float), np.ones((*path.shape[:2], 1)), names, ("body",), rate)
    return Recording("r1", signals=poses, **fields)


def test_a_walk_with_a_pause():
    x = np.concatenate([np.arange(90) * 2.0, np.full(90, 178.0), 178 - np.arange(1, 46) * 4.0])
    recording = recording_of(np.stack([x + 10, np.full(len(x), 20.0)], axis=1)[:, None], metadata={"pixels_per_cm": 10.0})
    row = eb.movement(recording).iloc[0]
    assert row["unit"] == "cm"
    assert row["distance"] == pytest.approx((178 + 180) / 10)
    assert row["mean_speed"] == pytest.approx(35.8 / (224 / 30))
    assert row["max_speed"] == pytest.approx(12.0)
    assert row["n_immobile"] == 1
    assert row["immobile_s"] == pytest.approx(3.0, abs=0.2)
    assert row["mean_course_deg"] == pytest.approx(180)
    assert row["coverage"] == 1
    assert np.isnan(row["nearest_animal"])
    without_scale = eb.movement(recording.copy(metadata={})).iloc[0]
    assert (without_scale["unit"], without_scale["distance"]) == ("px", pytest.approx(358))
    assert np.isnan(without_scale["immobile_s"])
    assert eb.movement(recording.copy(metadata={}), immobile_speed=20).iloc[0]["n_immobile"] == 1
    with pytest.raises(eb.ParameterError, match="immobile_speed"):
        eb.movement(recording, immobile_speed=-1)


@given(seed=st.integers(0, 2**32 - 1))
def test_bins_add_up_and_equal_loops_over_frames(seed):
    random = np.random.default_rng(seed)
    path = np.cumsum(random.normal(0, 3, size=(150, 2, 2)), axis=0) + 500
    path[40:80, 0] = np.nan
    recording = recording_of(path, rate=10)
    full_range, bins = eb.movement(recording).set_index("subject"), eb.movement(recording, bin="4s")
    for k, name in enumerate(("m1", "m2")):
        steps = [np.hypot(*(path[t, k] - path[t - 1, k])) for t in range(1, 150)]
        assert full_range.loc[name, "distance"] == pytest.approx(np.nansum(steps))
        assert full_range.loc[name, "coverage"] == pytest.approx(np.mean(~np.isnan(path[:, k, 0])))
        chosen = bins[bins["subject"] == name]
        assert chosen["distance"].sum() == pytest.approx(np.nansum(steps))
        assert chosen["tracked_s"].sum() == pytest.approx(full_range.loc[name, "tracked_s"])
        assert full_range.loc[name, "nearest_animal"] == pytest.approx(np.nanmean(np.hypot(*(path[:, 0] - path[:, 1]).T)))
    pair = eb.animal_distances(recording, close=10.0).iloc[0]
    distances = np.hypot(*(path[:, 0] - path[:, 1]).T)
    distances = distances[~np.isnan(distances)]
    assert (pair["subject"], pair["other"]) == ("m1", "m2")
    assert pair["mean_distance"] == pytest.approx(distances.mean())
    assert pair["min_distance"] == pytest.approx(distances.min())
    assert pair["close_share"] == pytest.approx((distances <= 10).mean())
    assert pair["coverage"] == pytest.approx(len(distances) / 150)


def test_turning_of_a_circle():
    angle = np.arange(300) * 2 * np.pi / 300
    recording = recording_of(np.stack([100 + 50 * np.cos(angle), 100 + 50 * np.sin(angle)], axis=1)[:, None])
    assert eb.movement(recording).iloc[0]["turning_deg_per_s"] == pytest.approx(36.0)


def test_a_lost_animal_has_no_distance():
    path = np.full((60, 1, 2), 50.0)
    path[30:] = np.nan
    table = eb.movement(recording_of(path, metadata={"pixels_per_cm": 1.0}), bin="1s")
    assert table["coverage"].tolist() == [1.0, 0.0]
    assert table["distance"].tolist()[0] == 0
    assert np.isnan(table["distance"].tolist()[1])
    assert np.isnan(table["immobile_share"].tolist()[1])


def test_command(tmp_path):
    path = np.stack([np.linspace(1, 199, 100), np.full(100, 50.0)], axis=1)[:, None]
    eb.write_recordings([recording_of(path, rate=10)], tmp_path / "m1.csv", "deeplabcut")
    (tmp_path / "recordings.csv").write_text("recording,rate,signals,sex,pixels_per_cm\nm1,10,m1.csv,f,2\n")
    (row,) = json.loads(ethobench("movement", tmp_path, "--json", "--csv", tmp_path / "table.csv").stdout)
    assert (row["sex"], row["unit"], row["distance"]) == ("f", "cm", pytest.approx(99))
    assert (tmp_path / "table.csv").read_text().startswith("recording,individual,subject,pixels_per_cm,sex")
    assert "has no zones" in ethobench("movement", tmp_path, "--zones").stderr
    (tmp_path / "zones.csv").write_text("name,shape,coordinates,unit\nright,rectangle,50 0; 100 50,cm\n")
    (row,) = json.loads(ethobench("movement", tmp_path, "--zones", "--json").stdout)
    assert (row["n_entries"], row["time_s"]) == (1, 5.0)
    printed = ethobench("movement", tmp_path, "--zones", "--bin", "5s").stdout
    assert "0:00:05-0:00:10" in printed
    assert "distances are in cm" in printed
    assert ethobench("movement", tmp_path, "--margin", "3").returncode == 2
    assert ethobench("movement", tmp_path, "--zones", "--immobile-speed", "3").returncode == 2
    assert "no keypoint 'nose'" in ethobench("movement", tmp_path, "--point", "nose").stderr
