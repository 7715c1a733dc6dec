"""Pose features against plain loops, and what must never change them: units, place, mirror, rate, slices, missing points."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import load_dataset
from ethobench.core import Keypoint, Poses
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.features.body import estimate_scene, normalized_coordinates, to_egocentric, with_subject_first
from ethobench.features.identity_swaps import find_identity_swaps, summarize_swaps
from ethobench.features.missing_data import interpolate_poses
from ethobench.features.pose import pose_context, pose_feature_blocks, pose_features, windowed_pose_features
from ethobench.features.treba import programmed_attributes
from ethobench.features.windows import window_features

MOUSE = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
RATE = 30.0


def poses_of(positions, keypoints=MOUSE, rate=RATE, confidence=None, individuals=None):
    positions = np.asarray(positions, dtype=float)
    names = individuals or tuple("abcdefg"[: positions.shape[1]])
    return Poses(positions, np.full(positions.shape[:3], np.nan) if confidence is None else confidence, names, tuple(keypoints), rate)


def walkers(n=200, animals=2, keypoints=MOUSE, seed=0, missing=0.0):
    """Bodies of length 100 that wander and turn; keypoints at random places of the body, front first."""
    random = np.random.default_rng(seed)
    body = np.stack([np.linspace(50, -50, len(keypoints)), random.uniform(-20, 20, len(keypoints))], axis=1)
    positions = np.empty((n, animals, len(keypoints), 2))
    for a in range(animals):
        heading = np.cumsum(random.normal(0, 0.1, n)) + random.uniform(0, 6)
        middle = 500 + np.cumsum(random.normal(0, 6, (n, 2)), axis=0) + random.uniform(-150, 150, 2)
        turn = np.stack([np.stack([np.cos(heading), -np.sin(heading)], -1), np.stack([np.sin(heading), np.cos(heading)], -1)], 1)
        positions[:, a] = middle[:, None] + np.einsum("tij,kj->tki", turn, body) + random.normal(0, 0.5, (n, len(keypoints), 2))
    positions[random.random((n, animals, len(keypoints))) < missing] = np.nan
    return poses_of(positions, keypoints)


def columns(poses, *args, **options):
    values, names = pose_features(poses, *args, **options)
    return dict(zip(names, values.T.astype(float), strict=True))


# -- values ---------------------------------------------------------------------------------------------------------------------


def literal_slope(x, h):
    """Change per second over h frames to both sides, or the one that is there."""
    result = []
    for t in range(len(x)):
        sides = [(x[t + h] - x[t]) * RATE / h] if t + h < len(x) else []
        sides += [(x[t] - x[t - h]) * RATE / h] if t >= h else []
        known = [s for s in sides if not np.isnan(s)]
        result.append(sum(known) / len(known) if known else math.nan)
    return np.array(result)


def literal_angle(u, v):
    cos = (u[0] * v[0] + u[1] * v[1]) / math.hypot(*u) / math.hypot(*v)
    return math.acos(max(-1.0, min(1.0, cos)))


def literal_columns(poses):
    """Compute some features frame by frame, in plain Python, from the definitions in the documentation."""
    p, h, n = poses.positions, 2, len(poses)
    at = {name: k for k, name in enumerate(poses.keypoints)}
    unit = np.median([math.dist(p[t, a, at["nose"]], p[t, a, at["tail_base"]]) for t in range(n) for a in range(2)])
    p = p / unit
    nose, tail, neck = p[:, :, at["nose"]], p[:, :, at["tail_base"]], p[:, :, at["neck"]]
    center = p.mean(axis=2)
    axis = neck - tail
    velocity = np.stack(
        [[np.mean([literal_slope(p[:, a, k, i], h) for k in range(7)], axis=0) for i in range(2)] for a in range(2)]
    )  # (animal, xy, frame)
    found = {}
    for a, who in enumerate("ab"):
        speed = np.hypot(*velocity[a])
        found[f"{who}/speed"] = speed
        found[f"{who}/acceleration"] = literal_slope(speed, h)
        unit_axis = axis[:, a] / np.linalg.norm(axis[:, a], axis=1, keepdims=True)
        found[f"{who}/forward_speed"] = (velocity[a].T * unit_axis).sum(axis=1)
        found[f"{who}/sideways_speed"] = np.abs(velocity[a][0] * -unit_axis[:, 1] + velocity[a][1] * unit_axis[:, 0])
        found[f"{who}/nose_speed"] = np.hypot(*[literal_slope(nose[:, a, i], h) for i in range(2)])
        found[f"{who}/length"] = np.linalg.norm(nose[:, a] - tail[:, a], axis=1)
        found[f"{who}/bend"] = np.array([literal_angle(nose[t, a] - neck[t, a], neck[t, a] - tail[t, a]) for t in range(n)])
        spread = [np.linalg.eigvalsh(np.cov(p[t, a].T, bias=True)) for t in range(n)]
        found[f"{who}/area"] = np.array([4 * math.pi * math.sqrt(max(s[0], 0) * s[1]) for s in spread])
        found[f"{who}/roundness"] = np.array([math.sqrt(max(s[0], 0) / s[1]) for s in spread])
        found[f"{who}/wall_distance"] = np.minimum(center[:, a], np.array([1000, 900]) / unit - center[:, a]).min(axis=1)
        found[f"{who}/seen"] = np.ones(n)
    apart = [[math.dist(p[t, 0, i], p[t, 1, j]) for i in range(7) for j in range(7)] for t in range(n)]
    found["a-b/nearest"] = np.array([min(row) for row in apart])
    found["a-b/contact"] = (found["a-b/nearest"] < 0.25).astype(float)
    found["a-b/distance"] = np.array([math.dist(center[t, 0], center[t, 1]) for t in range(n)])
    found["a-b/distance_change"] = literal_slope(found["a-b/distance"], h)
    found["a-b/nose_nose"] = np.array([math.dist(nose[t, 0], nose[t, 1]) for t in range(n)])
    found["a-b/relative_heading"] = np.array([literal_angle(axis[t, 0], axis[t, 1]) for t in range(n)])
    found["a-b/relative_speed"] = np.hypot(*(velocity[0] - velocity[1]))
    for one, other, who in ((0, 1, "a>b"), (1, 0, "b>a")):
        way = center[:, other] - center[:, one]
        found[f"{who}/nose_tail_base"] = np.array([math.dist(nose[t, one], tail[t, other]) for t in range(n)])
        found[f"{who}/nose_tail_base_change"] = literal_slope(found[f"{who}/nose_tail_base"], h)
        found[f"{who}/nose_center"] = np.array([math.dist(nose[t, one], center[t, other]) for t in range(n)])
        found[f"{who}/nose_nearest"] = np.array([min(math.dist(nose[t, one], q) for q in p[t, other]) for t in range(n)])
        found[f"{who}/facing"] = np.array([literal_angle(way[t], axis[t, one]) for t in range(n)])
        found[f"{who}/approach"] = (velocity[one].T * way).sum(axis=1) / np.linalg.norm(way, axis=1)
        unit_axis = axis[:, one] / np.linalg.norm(axis[:, one], axis=1, keepdims=True)
        to_nose = nose[:, other] - center[:, one]
        found[f"{who}/nose_ahead"] = (to_nose * unit_axis).sum(axis=1)
        found[f"{who}/nose_aside"] = np.abs(to_nose[:, 0] * unit_axis[:, 1] - to_nose[:, 1] * unit_axis[:, 0])
    return found


def test_features_equal_their_definitions():
    poses = walkers(60)
    found = columns(poses, arena=(1000, 900), points=False)
    for name, values in literal_columns(poses).items():
        assert found[name] == pytest.approx(values, rel=1e-4, abs=2e-5), name


def test_names_of_two_animals():
    _, names = pose_features(walkers(10), points=False)
    own = ["speed", "forward_speed", "sideways_speed", "acceleration", "turning", "nose_speed", "tail_base_speed"]
    own += ["length", "bend", "area", "roundness", "wall_distance", "seen"]
    both = ["distance", "distance_change", "nose_nose", "nose_nose_change", "nearest", "nearest_change"]
    both += ["contact", "relative_heading", "relative_speed"]
    towards = ["nose_tail_base", "nose_tail_base_change", "nose_center", "nose_center_change", "nose_nearest", "facing", "approach"]
    towards += [f"{part}_{where}" for part in ("center", "nose", "tail_base") for where in ("ahead", "aside")]
    expected = [f"{who}/{name}" for who in "ab" for name in own] + [f"a-b/{name}" for name in both]
    assert list(names) == expected + [f"{who}/{name}" for who in ("a>b", "b>a") for name in towards]


def test_turning_counts_radians_per_second_across_the_jump_from_pi_to_minus_pi():
    angle = np.linspace(2, 5, 31)  # 3 rad in a second
    body = np.array([[10, 0], [-10, 0]])
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], 1)
    poses = poses_of(np.einsum("tij,kj->tki", turn, body)[:, None] + 100, ("nose", "tail_base"))
    assert columns(poses)["a/turning"] == pytest.approx(np.full(31, 3.0), rel=1e-5)


def test_a_straight_walk():
    steps = np.arange(31)[:, None, None, None] * np.array([10 / 30 * 20, 0])  # ten body lengths of 20 in a second
    poses = poses_of(np.array([[[120.0, 50], [110, 50], [100, 50]]])[None] + steps, ("nose", "body", "tail_base"))
    found = columns(poses)
    for name in ("speed", "forward_speed", "nose_speed", "tail_base_speed"):
        assert found[f"a/{name}"] == pytest.approx(np.full(31, 10.0), rel=1e-5), name
    for name in ("sideways_speed", "acceleration", "turning", "bend"):
        assert found[f"a/{name}"] == pytest.approx(np.zeros(31), abs=1e-4), name
    assert found["a/length"] == pytest.approx(np.ones(31))


# -- what must not change them --------------------------------------------------------------------------------------------------

SAME_EVERYWHERE = {
    "in centimetres": lambda x: x * 0.05,
    "elsewhere": lambda x: x + np.array([300.0, -40.0]),
    "turned": lambda x: x @ np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "in a mirror": lambda x: x * np.array([-1.0, 1.0]),
}


@pytest.mark.parametrize("how", SAME_EVERYWHERE)
def test_the_same_behavior_has_the_same_features(how):
    poses = walkers(300, missing=0.1)
    moved = replace(poses, positions=SAME_EVERYWHERE[how](poses.positions))
    before, after = columns(poses), columns(moved)
    for name in before:
        assert after[name] == pytest.approx(before[name], rel=1e-3, abs=2e-3, nan_ok=True), name


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
def test_a_slice_with_context_has_the_features_of_the_whole(start, length, seed):
    poses = walkers(300, seed=seed % 5, missing=0.3)
    start = min(start, 299)
    stop = min(start + length, 300)
    scene, margin = estimate_scene(poses), pose_context(RATE)
    first, last = max(start - margin, 0), min(stop + margin, 300)
    cut = replace(poses, positions=poses.positions[first:last], confidence=poses.confidence[first:last])
    whole, _ = pose_features(poses)
    part, _ = pose_features(cut, scene=scene)
    np.testing.assert_allclose(part[start - first : stop - first], whole[start:stop], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("frames", [7, 61, 500])
def test_blocks_are_the_whole(frames):
    poses = walkers(500, missing=0.2)
    seconds = (0.2, 1.0)
    blocks = list(pose_feature_blocks(poses, seconds=seconds, frames=frames, points=False))
    assert [b[0].start for b in blocks] == list(range(0, 500, frames))
    whole, names = windowed_pose_features(poses, seconds=seconds)
    assert blocks[0][2] == names
    np.testing.assert_allclose(np.concatenate([b[1] for b in blocks]), whole, rtol=1e-3, atol=2e-3)


def test_windowed_features_are_window_statistics_of_the_features():
    poses = walkers(200, missing=0.1)
    plain, names = pose_features(poses, points=False)
    expected, labels = window_features(plain.astype(float), names, RATE, (0.5,))
    found, found_names = windowed_pose_features(poses, seconds=(0.5,))
    assert found_names == labels
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


# -- animals --------------------------------------------------------------------------------------------------------------------


def test_order_picks_and_arranges_animals():
    poses = walkers(40, animals=3)
    values, names = pose_features(poses, order=["c", 0], points=False)
    expected = columns(replace(poses, positions=poses.positions[:, [2, 0]], confidence=poses.confidence[:, [2, 0]], individuals=("c", "a")))
    assert names[0] == "c/speed"
    assert names[-1].startswith("a>c/")
    scene = estimate_scene(poses)  # the unit is that of all animals
    again = columns(with_subject_first(poses, "c", "a"), order=[0, 1], points=False, scene=scene)
    for k, name in enumerate(names):
        assert values[:, k] == pytest.approx(again[name], nan_ok=True), name
    assert {*expected} >= {*names}


def test_three_animals_have_three_pairs_and_six_directions():
    _, names = pose_features(walkers(5, animals=3), points=False)
    assert sum(name.endswith("/distance") for name in names) == 3
    assert sum(name.endswith("/facing") for name in names) == 6


def test_pooled_features_do_not_know_who_is_who():
    poses = walkers(60, animals=3, missing=0.2)
    values, names = pose_features(poses, pooled=True)
    again, _ = pose_features(with_subject_first(poses, "c", "a"), pooled=True)
    np.testing.assert_allclose(values, again, rtol=1e-6)
    own = columns(poses)
    three = np.stack([own[f"{who}/speed"] for who in "abc"])
    assert values[:, names.index("speed/least")] == pytest.approx(np.nanmin(three, axis=0))
    assert values[:, names.index("speed/most")] == pytest.approx(np.nanmax(three, axis=0))


def test_as_seen_by():
    poses = walkers(5, animals=3)
    seen = with_subject_first(poses, "b", "c")
    assert seen.individuals == ("b", "c", "a")
    np.testing.assert_array_equal(seen.positions, poses.positions[:, [1, 2, 0]])
    assert with_subject_first(poses, "c").individuals == ("c", "a", "b")
    with pytest.raises(NotFoundError, match="no animal 'd'; there are: a, b, c"):
        with_subject_first(poses, "d")
    with pytest.raises(EthobenchError, match="two animals"):
        with_subject_first(poses, "a", "a")


@pytest.mark.parametrize("order", [["x"], [5], [], ["a", 0]])
def test_a_wrong_order_is_refused(order):
    with pytest.raises(EthobenchError):
        pose_features(walkers(5), order=order)


# -- missing keypoints ----------------------------------------------------------------------------------------------------------


def literal_bridge(x, most):
    x = list(x)
    known = [t for t in range(len(x)) if not math.isnan(x[t])]
    for before, after in pairwise(known):
        if 1 < after - before <= most + 1:
            for t in range(before + 1, after):
                x[t] = x[before] + (x[after] - x[before]) * (t - before) / (after - before)
    return np.array(x)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.0, 1 / 30, 0.1, 0.5, 5.0]))
def test_bridge_equals_plain_interpolation(hidden, seconds):
    n = len(hidden)
    positions = np.random.default_rng(n).normal(500, 50, (n, 2, 3, 2))
    positions[np.array(hidden), 0, 1] = np.nan
    positions[~np.array(hidden), 1, 2] = np.nan
    found = interpolate_poses(poses_of(positions, "xyz"), seconds).positions
    for a in range(2):
        for k in range(3):
            for axis in range(2):
                expected = literal_bridge(positions[:, a, k, axis], round(seconds * RATE))
                assert found[:, a, k, axis] == pytest.approx(expected, nan_ok=True)


def test_low_confidence_is_missing_and_unknown_confidence_is_not():
    positions = np.arange(10, 20.0)[:, None, None, None] * np.ones((10, 1, 2, 2))
    positions[5, 0, 0] = 900
    confidence = np.full((10, 1, 2), np.nan)
    confidence[5, 0, 0] = 0.1
    poses = poses_of(positions, ("nose", "tail_base"), confidence=confidence)
    assert interpolate_poses(poses).positions[5, 0, 0].tolist() == [15, 15]
    assert interpolate_poses(poses, min_confidence=0.05).positions[5, 0, 0].tolist() == [900, 900]
    np.testing.assert_array_equal(poses.positions[5, 0, 0], 900)  # the user's array is left alone


def test_zeros_far_from_everything_are_missing():
    poses = walkers(200)
    poses.positions[50:53, 0, 2] = 0
    poses.positions[100:150, 1] = 0
    mended = interpolate_poses(poses)
    assert not (mended.positions == 0).any()
    assert np.isnan(mended.positions[100:150, 1]).all()
    assert not np.isnan(mended.positions[50:53, 0, 2]).any()
    assert any("(0, 0)" in str(note) for note in estimate_scene(poses).notes)
    found = columns(poses)
    assert np.nanmax(found["a/speed"]) < 30
    assert np.isnan(found["a-b/distance"][110:140]).all()


def test_zeros_among_the_other_places_are_places():
    poses = walkers(200)
    centred = to_egocentric(poses)
    poses_at_origin = replace(centred, positions=np.where(np.abs(centred.positions) < 2, 0, centred.positions))
    assert not np.isnan(interpolate_poses(poses_at_origin).positions).any()
    assert not any("(0, 0)" in str(note) for note in estimate_scene(poses_at_origin).notes)


def test_others_stand_in_for_what_is_missing():
    poses = walkers(300)
    poses.positions[:, 0, 0] = np.nan  # no nose at all
    poses.positions[100:200, 0, 3] = np.nan  # no neck for longer than a gap is bridged
    found = columns(poses, points=False)
    unknown = {"a/length", "a/bend"}
    for name, values in found.items():
        known = np.isfinite(values).mean()
        assert known == 1 or name in unknown, name
    assert np.isnan(found["a/length"]).all()


@pytest.mark.parametrize("seen", [(0, 1, 2), (0, 3), (1, 2, 3, 6), (4, 5, 6), (3, 4, 5)])
def test_part_of_a_body_points_where_the_whole_does(seen):
    body = np.array([[55.0, 0], [38, 13], [38, -13], [25, 0], [-30, 16], [-30, -16], [-50, 0]])
    positions = np.tile(np.stack([body, body + np.array([400, 30])])[None], (200, 1, 1, 1))
    hidden = [k for k in range(7) if k not in seen]
    positions[60:140, 0, hidden] = np.nan
    found = columns(poses_of(positions), arena=(1000, 1000))
    assert (found["a>b/facing"] < 0.5).all()
    assert np.nanmax(found["a/bend"]) < 1e-6


def test_one_animal_gone_leaves_the_other_alone():
    poses = walkers(300)
    gone = replace(poses, positions=poses.positions.copy())
    gone.positions[60:240, 1] = np.nan
    scene = estimate_scene(poses)
    before, after = columns(poses, scene=scene), columns(gone, scene=scene)
    for name in before:
        if name.startswith("a/"):
            assert after[name] == pytest.approx(before[name]), name
    for name in ("b/speed", "a-b/distance", "a>b/facing", "b>a/approach"):
        assert np.isnan(after[name][65:235]).all()
        assert after[name][:55] == pytest.approx(before[name][:55])
    assert after["b/seen"][60:240].tolist() == [0] * 180


def test_a_keypoint_that_comes_and_goes_makes_no_speed():
    positions = np.tile(np.array([[[100.0, 50], [90, 60], [70, 50]]])[None], (90, 1, 1, 1))
    positions[30:60, 0, 1] = np.nan
    found = columns(poses_of(positions, ("nose", "left_ear", "tail_base")))
    assert np.nanmax(found["a/speed"]) == 0
    assert np.isfinite(found["a/speed"]).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_very_short_recordings(n):
    values, names = pose_features(
        walkers(max(n, 1)) if n else replace(walkers(1), positions=walkers(1).positions[:0], confidence=np.zeros((0, 2, 7)))
    )
    assert values.shape == (n, len(names))
    assert len(names) == 103


def test_nothing_tracked_at_all():
    poses = poses_of(np.full((20, 2, 7, 2), np.nan))
    found = columns(poses)
    assert found["a/seen"].tolist() == [0] * 20
    assert all(np.isnan(values).all() for name, values in found.items() if not name.endswith("/seen"))
    assert "nothing was tracked" in [note.message for note in estimate_scene(poses).notes]


def test_a_rate_is_needed():
    with pytest.raises(EthobenchError, match="rate in frames per second, not None"):
        pose_features(replace(walkers(5), rate=None))
    assert len(pose_features(replace(walkers(5), rate=None), 25.0)[0]) == 5


@pytest.mark.parametrize("arena", [(5,), (0, 10), (1, 2, 3), (10, 10, 5, 20)])
def test_a_wrong_arena_is_refused(arena):
    with pytest.raises(EthobenchError, match="an arena is"):
        pose_features(walkers(5), arena=arena)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="pooling"):
        pose_features(walkers(5), pooling=True)


# -- skeletons ------------------------------------------------------------------------------------------------------------------


def test_a_skeleton_without_roles_goes_by_its_order():
    poses = walkers(100, keypoints=("p1", "p2", "p3", "p4"))
    notes = [note.message for note in estimate_scene(poses).notes]
    assert any("'p1' is taken for the front and 'p4' for the rear" in note for note in notes)
    stated = {"p1": Keypoint("p1", "nose"), "p4": Keypoint("p4", "tail base")}
    by_order, by_role = columns(poses), columns(poses, keypoints=stated)
    for name in ("a/length", "a/turning", "a-b/nose_nose", "a>b/nose_tail_base"):
        assert by_order[name] == pytest.approx(by_role[name]), name


@pytest.mark.parametrize("names", [("nose", "left_ear", "right_ear"), ("nose", "head", "neck"), ("nose", "tail_base"), ("head", "body")])
def test_every_skeleton_points_to_its_nose(names):
    body = np.array([[30.0, 0], [10, 8], [10, -8]])[: len(names)]
    poses = poses_of(np.tile(np.stack([body, body + np.array([500, 0])])[None], (5, 1, 1, 1)), names)
    found = columns(poses, arena=(600, 100))
    assert (found["a>b/facing"] < 0.7).all()
    assert (found["b>a/facing"] > 2.4).all()


def test_a_nose_alone():
    found = columns(poses_of(np.ones((5, 2, 1, 2)) * [[[10.0, 10]], [[50, 10]]], ("nose",)), arena=(100, 20))
    assert found["a-b/nose_nose"] == pytest.approx(np.full(5, 4.0))
    assert np.isnan(found["a>b/facing"]).all()


def test_a_single_keypoint_points_where_it_goes():
    t = np.arange(60.0)
    positions = np.stack([np.stack([t * 10, 0 * t + 50], -1), np.stack([900 - 0 * t, 0 * t + 50], -1)], axis=1)[:, :, None]
    found = columns(poses_of(positions, ("p",)), arena=(1000, 100))
    assert found["a>b/facing"] == pytest.approx(np.zeros(60), abs=1e-6)
    assert np.isnan(found["b>a/facing"]).all()  # it never moves
    assert found["a>b/approach"] == pytest.approx(np.full(60, 3.0), rel=1e-5)  # of tenths of the arena
    assert "a/length" not in found


def test_three_coordinates_are_seen_from_above():
    flat = walkers(50)
    tall = replace(flat, positions=np.concatenate([flat.positions, np.random.default_rng(0).normal(size=(50, 2, 7, 1))], axis=3))
    a, b = columns(flat), columns(tall)
    assert all(b[name] == pytest.approx(a[name], nan_ok=True) for name in a)


# -- points of view -------------------------------------------------------------------------------------------------------------


def test_normalized_coordinates_as_published():
    keypoints = np.random.default_rng(0).uniform(0, 500, (5, 2, 2, 7))  # frames, mouse, xy, part
    frames = keypoints.transpose(0, 1, 3, 2)
    expected = [[share for mouse in frame for x, y in mouse for share in (x / 1024, y / 570)] for frame in frames]
    values, names = normalized_coordinates(poses_of(keypoints.transpose(0, 1, 3, 2)), 1024, 570)
    np.testing.assert_allclose(values, expected, rtol=1e-15)
    assert names[:3] == ("a/nose/x", "a/nose/y", "a/left_ear/x")
    with pytest.raises(EthobenchError, match="above 0"):
        normalized_coordinates(poses_of(np.zeros((1, 1, 7, 2))), 0, 570)
    with pytest.raises(MismatchError, match="three"):
        normalized_coordinates(poses_of(np.zeros((1, 1, 7, 3))), 10, 570)


def test_egocentric_puts_the_body_along_x():
    poses = walkers(50, keypoints=("nose", "neck", "center", "tail_base"))
    own = to_egocentric(poses).positions
    assert np.abs(own[:, :, 2]).max() < 1e-9
    axis = own[:, :, 1] - own[:, :, 3]
    assert np.abs(axis[..., 1]).max() < 1e-9
    assert (axis[..., 0] > 0).all()
    for frame in (0, 20):  # distances stay
        assert np.linalg.norm(own[frame, 0, 0] - own[frame, 0, 3]) == pytest.approx(
            np.linalg.norm(poses.positions[frame, 0, 0] - poses.positions[frame, 0, 3])
        )
    seen = to_egocentric(poses, "b").positions
    assert np.abs(seen[:, 1, 2]).max() < 1e-9
    apart = np.linalg.norm(poses.positions[:, 0, 0] - poses.positions[:, 1, 0], axis=1)
    assert np.linalg.norm(seen[:, 0, 0] - seen[:, 1, 0], axis=1) == pytest.approx(apart)
    with pytest.raises(NotFoundError, match="there are: a, b"):
        to_egocentric(poses, "z")


# -- swaps ----------------------------------------------------------------------------------------------------------------------


def apart(n=300):
    poses = walkers(n)
    poses.positions[:, 1] += 600
    return poses


def test_swaps_are_found():
    poses = apart()
    poses.positions[100:200] = poses.positions[100:200, ::-1]
    swaps = find_identity_swaps(poses)
    assert [(s.frame, s.one, s.other) for s in swaps] == [(100, "a", "b"), (200, "a", "b")]
    assert [str(note) for note in summarize_swaps(swaps)] == ["a and b seem to change places 2 times: frames 100, 200"]


def test_swaps_are_found_across_short_gaps_only():
    poses = apart()
    poses.positions[100:] = poses.positions[100:, ::-1]
    poses.positions[97:102] = np.nan
    assert [s.frame for s in find_identity_swaps(poses)] == [102]
    poses.positions[80:120] = np.nan
    assert find_identity_swaps(poses) == ()


def test_jumps_that_are_no_exchange_are_no_swaps():
    poses = apart()
    poses.positions[100:, 0] += 900
    poses.positions[150:, 1] -= 900
    poses.positions[200:] += 400  # both jump, neither to the other's place
    assert find_identity_swaps(poses) == ()
    assert find_identity_swaps(walkers(500, seed=3)) == ()
    assert summarize_swaps(()) == ()


# -- programmed attributes ------------------------------------------------------------------------------------------------------


def test_programmed_attributes():
    still = np.array([[300.0, 100], [290, 90], [290, 110], [280, 100], [260, 90], [260, 110], [240, 100]])
    other = still[:, ::-1] + np.array([300.0, 0.0])  # looks along y
    positions = np.tile(np.stack([still, other])[None], (3, 1, 1, 1))
    positions[1:, 0] += [15, 0]
    positions[2:, 0] += [25, 0]
    positions[2, 1, 0] = positions[1, 1, 3] + np.array([30.0, 0])  # the head turns to the side
    found = programmed_attributes(poses_of(positions))
    values, levels = (dict(zip(found.names, part.T, strict=True)) for part in (found.values, found.levels))
    assert len(found.names) == 10
    assert values["a/speed"] == pytest.approx([15, 15, 25])
    assert levels["a/speed"].tolist() == [1, 1, 2]
    assert levels["b/speed"].tolist()[:2] == [0, 0]
    assert levels["a/nose_movement"].tolist() == [2, 2, 2]
    assert values["nose_nose"][0] == pytest.approx(math.dist((300, 100), (400, 300)))
    assert values["nose_tail"][0] == pytest.approx(math.dist((300, 100), (400, 240)))
    assert levels["nose_nose"].tolist()[0] == 2
    assert values["a/head_body_angle"] == pytest.approx([0, 0, 0])
    assert values["b/head_body_angle"][2] == pytest.approx(-math.pi / 2)
    assert levels["b/head_body_angle"].tolist() == [1, 1, 0]
    to_b = positions[0, 1].mean(axis=0) - positions[0, 0].mean(axis=0)
    assert values["a/social_angle"][0] == pytest.approx(math.atan2(to_b[1], to_b[0]))


def test_programmed_attributes_in_other_units_and_rates():
    poses = walkers(90)
    here = programmed_attributes(poses)
    small = programmed_attributes(replace(poses, positions=poses.positions / 7), pixels=7)
    np.testing.assert_array_equal(here.levels, small.levels)
    faster = programmed_attributes(poses, 60.0)
    assert faster.values[:, 0] == pytest.approx(2 * here.values[:, 0])
    gone = poses.positions.copy()
    gone[40, 1] = np.nan
    unknown = programmed_attributes(replace(poses, positions=gone))
    assert (unknown.levels[40] == -1).sum() == 7  # all but the first animal's speed, nose and head
    with pytest.raises(MismatchError, match="two animals"):
        programmed_attributes(walkers(5, animals=1))


# -- real recordings ------------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_rats(data):
    poses = load_dataset(data / "rats")["01"].signals
    found = columns(poses)
    scene = estimate_scene(poses)
    assert 150 < scene.body_length < 200  # pixels from head to tail base
    assert poses.missing > 0.4
    known = {name: np.isfinite(values).mean() for name, values in found.items()}
    there = ~np.isnan(poses.positions[..., 0]).all(axis=2)
    for a, who in enumerate(poses.individuals):
        assert known[f"{who}/speed"] > there[:, a].mean()  # bridged
    assert known["individual1-individual2/distance"] > 0.7
    assert np.nanmedian(found["individual1/length"]) == pytest.approx(1, abs=0.1)
    assert np.nanmin(found["individual1-individual2/nearest"]) >= 0
    assert np.nanpercentile(found["individual1/speed"], 99) < 20
    again = columns(replace(poses, positions=poses.positions * 0.06))
    for name, values in found.items():
        close = np.isclose(again[name], values, rtol=1e-3, atol=1e-3, equal_nan=True)
        assert close.mean() > 0.999, name
