"""Pose features against plain loops, and their invariance to units, position, mirroring, frame rate and slicing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.examples import RATE, columns, make_poses, walkers

from ethobench import load_dataset
from ethobench.core import Keypoint
from ethobench.core.errors import EthobenchError
from ethobench.features.body import estimate_scene, with_subject_first
from ethobench.features.pose import pose_context, pose_feature_blocks, pose_features, windowed_pose_features
from ethobench.features.windows import window_features


def derivative_by_loop(x, h):
    """Return the change per second over h frames to both sides, or to the one that exists."""
    result = []
    for t in range(len(x)):
        sides = [(x[t + h] - x[t]) * RATE / h] if t + h < len(x) else []
        sides += [(x[t] - x[t - h]) * RATE / h] if t >= h else []
        valid = [s for s in sides if not np.isnan(s)]
        result.append(sum(valid) / len(valid) if valid else math.nan)
    return np.array(result)


def angle_by_cosine(u, v):
    cos = (u[0] * v[0] + u[1] * v[1]) / math.hypot(*u) / math.hypot(*v)
    return math.acos(max(-1.0, min(1.0, cos)))


def columns_by_loop(poses):
    """Compute features frame by frame, in plain Python, from their definitions."""
    p, h, n = poses.positions, 2, len(poses)
    at = {name: k for k, name in enumerate(poses.keypoints)}
    unit = np.median([math.dist(p[t, a, at["nose"]], p[t, a, at["tail_base"]]) for t in range(n) for a in range(2)])
    p = p / unit
    nose, tail, neck = p[:, :, at["nose"]], p[:, :, at["tail_base"]], p[:, :, at["neck"]]
    center = p.mean(axis=2)
    axis = neck - tail
    velocity = np.stack(
        [[np.mean([derivative_by_loop(p[:, a, k, i], h) for k in range(7)], axis=0) for i in range(2)] for a in range(2)]
    )  # (animal, xy, frame)
    features = {}
    for a, who in enumerate("ab"):
        speed = np.hypot(*velocity[a])
        features[f"{who}/speed"] = speed
        features[f"{who}/acceleration"] = derivative_by_loop(speed, h)
        unit_axis = axis[:, a] / np.linalg.norm(axis[:, a], axis=1, keepdims=True)
        features[f"{who}/forward_speed"] = (velocity[a].T * unit_axis).sum(axis=1)
        features[f"{who}/sideways_speed"] = np.abs(velocity[a][0] * -unit_axis[:, 1] + velocity[a][1] * unit_axis[:, 0])
        features[f"{who}/nose_speed"] = np.hypot(*[derivative_by_loop(nose[:, a, i], h) for i in range(2)])
        features[f"{who}/length"] = np.linalg.norm(nose[:, a] - tail[:, a], axis=1)
        features[f"{who}/bend"] = np.array([angle_by_cosine(nose[t, a] - neck[t, a], neck[t, a] - tail[t, a]) for t in range(n)])
        spread = [np.linalg.eigvalsh(np.cov(p[t, a].T, bias=True)) for t in range(n)]
        features[f"{who}/area"] = np.array([4 * math.pi * math.sqrt(max(s[0], 0) * s[1]) for s in spread])
        features[f"{who}/roundness"] = np.array([math.sqrt(max(s[0], 0) / s[1]) for s in spread])
        features[f"{who}/wall_distance"] = np.minimum(center[:, a], np.array([1000, 900]) / unit - center[:, a]).min(axis=1)
        features[f"{who}/seen"] = np.ones(n)
    distances = [[math.dist(p[t, 0, i], p[t, 1, j]) for i in range(7) for j in range(7)] for t in range(n)]
    features["a-b/nearest"] = np.array([min(row) for row in distances])
    features["a-b/contact"] = (features["a-b/nearest"] < 0.25).astype(float)
    features["a-b/distance"] = np.array([math.dist(center[t, 0], center[t, 1]) for t in range(n)])
    features["a-b/distance_change"] = derivative_by_loop(features["a-b/distance"], h)
    features["a-b/nose_nose"] = np.array([math.dist(nose[t, 0], nose[t, 1]) for t in range(n)])
    features["a-b/relative_heading"] = np.array([angle_by_cosine(axis[t, 0], axis[t, 1]) for t in range(n)])
    features["a-b/relative_speed"] = np.hypot(*(velocity[0] - velocity[1]))
    for subject, target, who in ((0, 1, "a>b"), (1, 0, "b>a")):
        to_other = center[:, target] - center[:, subject]
        features[f"{who}/nose_tail_base"] = np.array([math.dist(nose[t, subject], tail[t, target]) for t in range(n)])
        features[f"{who}/nose_tail_base_change"] = derivative_by_loop(features[f"{who}/nose_tail_base"], h)
        features[f"{who}/nose_center"] = np.array([math.dist(nose[t, subject], center[t, target]) for t in range(n)])
        features[f"{who}/nose_nearest"] = np.array([min(math.dist(nose[t, subject], q) for q in p[t, target]) for t in range(n)])
        features[f"{who}/facing"] = np.array([angle_by_cosine(to_other[t], axis[t, subject]) for t in range(n)])
        features[f"{who}/approach"] = (velocity[subject].T * to_other).sum(axis=1) / np.linalg.norm(to_other, axis=1)
        unit_axis = axis[:, subject] / np.linalg.norm(axis[:, subject], axis=1, keepdims=True)
        to_nose = nose[:, target] - center[:, subject]
        features[f"{who}/nose_ahead"] = (to_nose * unit_axis).sum(axis=1)
        features[f"{who}/nose_aside"] = np.abs(to_nose[:, 0] * unit_axis[:, 1] - to_nose[:, 1] * unit_axis[:, 0])
    return features


def test_features_equal_their_definitions():
    poses = walkers(60)
    features = columns(poses, arena=(1000, 900), points=False)
    for name, values in columns_by_loop(poses).items():
        assert features[name] == pytest.approx(values, rel=1e-4, abs=2e-5), name


def test_names_of_two_animals():
    _, names = pose_features(walkers(10), points=False)
    animal = ["speed", "forward_speed", "sideways_speed", "acceleration", "turning", "nose_speed", "tail_base_speed"]
    animal += ["length", "bend", "area", "roundness", "wall_distance", "seen"]
    both = ["distance", "distance_change", "nose_nose", "nose_nose_change", "nearest", "nearest_change"]
    both += ["contact", "relative_heading", "relative_speed"]
    towards = ["nose_tail_base", "nose_tail_base_change", "nose_center", "nose_center_change", "nose_nearest", "facing", "approach"]
    towards += [f"{point}_{direction}" for point in ("center", "nose", "tail_base") for direction in ("ahead", "aside")]
    expected = [f"{who}/{name}" for who in "ab" for name in animal] + [f"a-b/{name}" for name in both]
    assert list(names) == expected + [f"{who}/{name}" for who in ("a>b", "b>a") for name in towards]


def test_turning_counts_radians_per_second_across_the_jump_from_pi_to_minus_pi():
    angle = np.linspace(2, 5, 31)  # 3 rad in a second
    body = np.array([[10, 0], [-10, 0]])
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], 1)
    poses = make_poses(np.einsum("tij,kj->tki", turn, body)[:, None] + 100, ("nose", "tail_base"))
    assert columns(poses)["a/turning"] == pytest.approx(np.full(31, 3.0), rel=1e-5)


def test_a_straight_walk():
    steps = np.arange(31)[:, None, None, None] * np.array([10 / 30 * 20, 0])  # ten body lengths of 20 in a second
    poses = make_poses(np.array([[[120.0, 50], [110, 50], [100, 50]]])[None] + steps, ("nose", "body", "tail_base"))
    features = columns(poses)
    for name in ("speed", "forward_speed", "nose_speed", "tail_base_speed"):
        assert features[f"a/{name}"] == pytest.approx(np.full(31, 10.0), rel=1e-5), name
    for name in ("sideways_speed", "acceleration", "turning", "bend"):
        assert features[f"a/{name}"] == pytest.approx(np.zeros(31), abs=1e-4), name
    assert features["a/length"] == pytest.approx(np.ones(31))


TRANSFORMATIONS = {
    "in centimeters": lambda x: x * 0.05,
    "translated": lambda x: x + np.array([300.0, -40.0]),
    "rotated": lambda x: x @ np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "mirrored": lambda x: x * np.array([-1.0, 1.0]),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_the_same_behavior_has_the_same_features(transformation):
    poses = walkers(300, missing=0.1)
    moved = replace(poses, positions=TRANSFORMATIONS[transformation](poses.positions))
    before, after = columns(poses), columns(moved)
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-3, atol=2e-3, err_msg=name)


def test_unscaled_features_keep_the_trackers_units():
    poses = walkers(50)
    unit = estimate_scene(poses).body_length
    scaled, plain = columns(poses), columns(poses, scaled=False)
    assert plain["a-b/distance"] == pytest.approx(scaled["a-b/distance"] * unit, rel=1e-5)
    assert plain["a/area"] == pytest.approx(scaled["a/area"] * unit**2, rel=1e-5)
    assert plain["a-b/contact"].tolist() == scaled["a-b/contact"].tolist()
    assert plain["a/bend"] == pytest.approx(scaled["a/bend"], rel=1e-5)


def test_half_the_rate_gives_the_same_speeds():
    poses = walkers(400)
    smooth = replace(poses, positions=np.cumsum(np.cumsum(poses.positions - 500, axis=0), axis=0) / 3e4)
    slow = replace(smooth, positions=smooth.positions[::2], confidence=smooth.confidence[::2], rate=RATE / 2)
    fast, half = columns(smooth)["a/speed"][::2], columns(slow)["a/speed"]
    assert half[5:-5] == pytest.approx(fast[5:-5], rel=0.02)


@given(st.integers(0, 300), st.integers(1, 120), st.integers(0, 10**6))
def test_a_slice_with_context_has_the_features_of_the_recording(start, length, seed):
    poses = walkers(300, seed=seed % 5, missing=0.3)
    start = min(start, 299)
    stop = min(start + length, 300)
    scene, margin = estimate_scene(poses), pose_context(RATE)
    first, last = max(start - margin, 0), min(stop + margin, 300)
    cut = replace(poses, positions=poses.positions[first:last], confidence=poses.confidence[first:last])
    expected, _ = pose_features(poses)
    features, _ = pose_features(cut, scene=scene)
    np.testing.assert_allclose(features[start - first : stop - first], expected[start:stop], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("frames", [7, 61, 500])
def test_blocks_equal_all_frames_at_once(frames):
    poses = walkers(500, missing=0.2)
    seconds = (0.2, 1.0)
    blocks = list(pose_feature_blocks(poses, seconds=seconds, frames=frames, points=False))
    assert [b[0].start for b in blocks] == list(range(0, 500, frames))
    expected, names = windowed_pose_features(poses, seconds=seconds)
    assert blocks[0][2] == names
    np.testing.assert_allclose(np.concatenate([b[1] for b in blocks]), expected, rtol=1e-3, atol=2e-3)


def test_windowed_features_are_window_statistics_of_the_features():
    poses = walkers(200, missing=0.1)
    plain, names = pose_features(poses, points=False)
    expected, labels = window_features(plain.astype(float), names, RATE, (0.5,))
    features, feature_names = windowed_pose_features(poses, seconds=(0.5,))
    assert feature_names == labels
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=2e-3)


def test_order_picks_and_arranges_animals():
    poses = walkers(40, animals=3)
    values, names = pose_features(poses, order=["c", 0], points=False)
    expected = columns(replace(poses, positions=poses.positions[:, [2, 0]], confidence=poses.confidence[:, [2, 0]], individuals=("c", "a")))
    assert names[0] == "c/speed"
    assert names[-1].startswith("a>c/")
    scene = estimate_scene(poses)  # the body length is that of all animals
    again = columns(with_subject_first(poses, "c", "a"), order=[0, 1], points=False, scene=scene)
    for k, name in enumerate(names):
        assert values[:, k] == pytest.approx(again[name], nan_ok=True), name
    assert {*expected} >= {*names}


def test_three_animals_have_three_pairs_and_six_directions():
    _, names = pose_features(walkers(5, animals=3), points=False)
    assert sum(name.endswith("/distance") for name in names) == 3
    assert sum(name.endswith("/facing") for name in names) == 6


def test_pooled_features_do_not_depend_on_identities():
    poses = walkers(60, animals=3, missing=0.2)
    values, names = pose_features(poses, pooled=True)
    again, _ = pose_features(with_subject_first(poses, "c", "a"), pooled=True)
    np.testing.assert_allclose(values, again, rtol=1e-6)
    by_animal = columns(poses)
    three = np.stack([by_animal[f"{who}/speed"] for who in "abc"])
    assert values[:, names.index("speed/least")] == pytest.approx(np.nanmin(three, axis=0))
    assert values[:, names.index("speed/most")] == pytest.approx(np.nanmax(three, axis=0))


@pytest.mark.parametrize("order", [["x"], [5], [], ["a", 0]])
def test_a_wrong_order_is_refused(order):
    with pytest.raises(EthobenchError):
        pose_features(walkers(5), order=order)


def test_other_keypoints_replace_missing_ones():
    poses = walkers(300)
    poses.positions[:, 0, 0] = np.nan  # no nose at all
    poses.positions[100:200, 0, 3] = np.nan  # no neck for longer than gaps are interpolated
    features = columns(poses, points=False)
    undefined = {"a/length", "a/bend"}
    for name, values in features.items():
        assert np.isfinite(values).all() or name in undefined, name
    assert np.isnan(features["a/length"]).all()


@pytest.mark.parametrize("visible", [(0, 1, 2), (0, 3), (1, 2, 3, 6), (4, 5, 6), (3, 4, 5)])
def test_a_partly_tracked_body_has_the_heading_of_the_complete_one(visible):
    body = np.array([[55.0, 0], [38, 13], [38, -13], [25, 0], [-30, 16], [-30, -16], [-50, 0]])
    positions = np.tile(np.stack([body, body + np.array([400, 30])])[None], (200, 1, 1, 1))
    hidden = [k for k in range(7) if k not in visible]
    positions[60:140, 0, hidden] = np.nan
    features = columns(make_poses(positions), arena=(1000, 1000))
    assert (features["a>b/facing"] < 0.5).all()
    assert np.nanmax(features["a/bend"]) < 1e-6


def test_a_missing_animal_does_not_change_the_other():
    poses = walkers(300)
    partly_missing = replace(poses, positions=poses.positions.copy())
    partly_missing.positions[60:240, 1] = np.nan
    scene = estimate_scene(poses)
    before, after = columns(poses, scene=scene), columns(partly_missing, scene=scene)
    for name in before:
        if name.startswith("a/"):
            assert after[name] == pytest.approx(before[name]), name
    for name in ("b/speed", "a-b/distance", "a>b/facing", "b>a/approach"):
        assert np.isnan(after[name][65:235]).all()
        assert after[name][:55] == pytest.approx(before[name][:55])
    assert after["b/seen"][60:240].tolist() == [0] * 180


def test_keypoints_that_appear_and_vanish_cause_no_speed():
    positions = np.tile(np.array([[[100.0, 50], [90, 60], [70, 50]]])[None], (90, 1, 1, 1))
    positions[30:60, 0, 1] = np.nan
    features = columns(make_poses(positions, ("nose", "left_ear", "tail_base")))
    assert np.nanmax(features["a/speed"]) == 0
    assert np.isfinite(features["a/speed"]).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_very_short_recordings(n):
    values, names = pose_features(
        walkers(max(n, 1)) if n else replace(walkers(1), positions=walkers(1).positions[:0], confidence=np.zeros((0, 2, 7)))
    )
    assert values.shape == (n, len(names))
    assert len(names) == 103


def test_a_recording_without_tracked_keypoints():
    poses = make_poses(np.full((20, 2, 7, 2), np.nan))
    features = columns(poses)
    assert features["a/seen"].tolist() == [0] * 20
    assert all(np.isnan(values).all() for name, values in features.items() if not name.endswith("/seen"))
    assert "nothing was tracked" in [note.message for note in estimate_scene(poses).notes]


def test_a_rate_is_needed():
    with pytest.raises(EthobenchError, match="no valid frame rate"):
        pose_features(replace(walkers(5), rate=None))
    assert len(pose_features(replace(walkers(5), rate=None), 25.0)[0]) == 5


@pytest.mark.parametrize("arena", [(5,), (0, 10), (1, 2, 3), (10, 10, 5, 20)])
def test_a_wrong_arena_is_refused(arena):
    with pytest.raises(EthobenchError, match="`arena` must be"):
        pose_features(walkers(5), arena=arena)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="pooling"):
        pose_features(walkers(5), pooling=True)


def test_a_skeleton_without_roles_is_used_in_its_order():
    poses = walkers(100, keypoints=("p1", "p2", "p3", "p4"))
    notes = [note.message for note in estimate_scene(poses).notes]
    assert any("'p1' is used as the front of the body and 'p4' as the rear" in note for note in notes)
    stated = {"p1": Keypoint("p1", "nose"), "p4": Keypoint("p4", "tail base")}
    by_order, by_role = columns(poses), columns(poses, keypoints=stated)
    for name in ("a/length", "a/turning", "a-b/nose_nose", "a>b/nose_tail_base"):
        assert by_order[name] == pytest.approx(by_role[name]), name


@pytest.mark.parametrize("names", [("nose", "left_ear", "right_ear"), ("nose", "head", "neck"), ("nose", "tail_base"), ("head", "body")])
def test_the_heading_is_towards_the_nose(names):
    body = np.array([[30.0, 0], [10, 8], [10, -8]])[: len(names)]
    poses = make_poses(np.tile(np.stack([body, body + np.array([500, 0])])[None], (5, 1, 1, 1)), names)
    features = columns(poses, arena=(600, 100))
    assert (features["a>b/facing"] < 0.7).all()
    assert (features["b>a/facing"] > 2.4).all()


def test_a_single_nose():
    features = columns(make_poses(np.ones((5, 2, 1, 2)) * [[[10.0, 10]], [[50, 10]]], ("nose",)), arena=(100, 20))
    assert features["a-b/nose_nose"] == pytest.approx(np.full(5, 4.0))
    assert np.isnan(features["a>b/facing"]).all()


def test_the_heading_of_a_single_keypoint_is_its_course():
    t = np.arange(60.0)
    positions = np.stack([np.stack([t * 10, 0 * t + 50], -1), np.stack([900 - 0 * t, 0 * t + 50], -1)], axis=1)[:, :, None]
    features = columns(make_poses(positions, ("p",)), arena=(1000, 100))
    assert features["a>b/facing"] == pytest.approx(np.zeros(60), abs=1e-6)
    assert np.isnan(features["b>a/facing"]).all()  # it never moves
    assert features["a>b/approach"] == pytest.approx(np.full(60, 3.0), rel=1e-5)  # tenths of the arena
    assert "a/length" not in features


def test_the_third_coordinate_is_ignored():
    flat = walkers(50)
    tall = replace(flat, positions=np.concatenate([flat.positions, np.random.default_rng(0).normal(size=(50, 2, 7, 1))], axis=3))
    a, b = columns(flat), columns(tall)
    assert all(b[name] == pytest.approx(a[name], nan_ok=True) for name in a)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_real_rats(data):
    poses = load_dataset(data / "rats")["01"].signals
    features = columns(poses)
    scene = estimate_scene(poses)
    assert 150 < scene.body_length < 200  # pixels from head to tail base
    assert poses.missing > 0.4
    finite = {name: np.isfinite(values).mean() for name, values in features.items()}
    tracked = ~np.isnan(poses.positions[..., 0]).all(axis=2)
    for a, who in enumerate(poses.individuals):
        assert finite[f"{who}/speed"] > tracked[:, a].mean()  # interpolated
    assert finite["individual1-individual2/distance"] > 0.7
    assert np.nanmedian(features["individual1/length"]) == pytest.approx(1, abs=0.1)
    assert np.nanmin(features["individual1-individual2/nearest"]) >= 0
    assert np.nanpercentile(features["individual1/speed"], 99) < 20
    again = columns(replace(poses, positions=poses.positions * 0.06))
    for name, values in features.items():
        close = np.isclose(again[name], values, rtol=1e-3, atol=1e-3, equal_nan=True)
        assert close.mean() > 0.999, name
