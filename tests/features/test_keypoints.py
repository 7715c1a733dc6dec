"""Roles of keypoints by their names in any tool's spelling, and matches between skeletons."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import load_dataset, read_recordings
from ethobench.core import Keypoint, Poses
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features.keypoints import ROLES, assign_roles, guess_mirrors, guess_roles, match_keypoints

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
CALMS21 = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")

SPELLINGS = {
    "nose": ["nose", "Nose", "snout", "nose_tip", "B_Nose", "mouse1_nose", "NoseTip", "tip of nose"],
    "head": ["head", "implant", "head_midpoint", "HeadF", "top"],
    "left_ear": ["left_ear", "Left_ear", "leftear", "leftEar", "Ear_left", "ear_l", "earL", "EarL", "lear", "L_ear", "W_Left_ear"],
    "right_ear": ["right ear", "rightear", "Ear_right", "earR", "ear-r", "RightEar"],
    "neck": ["neck", "base_neck", "neckBase", "nape"],
    "center": ["center", "Centre", "body_center", "centroid", "body", "mouse_center", "center_spine", "SpineM", "thorax", "bodycentre"],
    "left_hip": ["left_hip", "hip_left", "HipL", "Left_bhip", "Lat_left", "lateral_left"],
    "tail_base": ["tail_base", "Tail_base", "tailbase", "TB", "TTI", "base_tail", "tail base", "TailBase", "tail"],
    "tail_mid": ["tail_mid", "mid_tail", "tail-m", "tail_midpoint"],
    "tail_tip": ["tail_tip", "Tail_end", "tip_tail", "tail-e", "tailTip"],
}
NO_ROLE = [
    "left_front_paw",
    "Spine_1",
    "tail1",
    "Tail_2",
    "wingL",
    "forelegR4",
    "Left_fhip",
    "left_eye",
    "A",
    "point 3",
    "left_nose",
    "knee",
]


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in SPELLINGS.items() for name in names])
def test_spellings_of_roles(role, name):
    assert guess_roles([name]) == {name: role}
    assert role in ROLES


@pytest.mark.parametrize("name", NO_ROLE)
def test_names_without_a_role(name):
    assert guess_roles([name]) == {}


def test_each_role_has_one_keypoint_with_the_best_name():
    names = ["left_ear_tip", "left_ear", "mid_back", "mouse_center", "tail", "tail_base", "head_midpoint", "Nose_1", "Nose_2"]
    roles = guess_roles(names)
    assert {role: name for name, role in roles.items()} == {
        "left_ear": "left_ear",
        "center": "mouse_center",
        "tail_base": "tail_base",
        "head": "head_midpoint",
        "nose": "Nose_1",
    }


@pytest.mark.data
@pytest.mark.parametrize(
    ("path", "roles"),
    [
        (
            "simba/machine_results_Together_1.csv",
            {"nose", "left_ear", "right_ear", "center", "left_hip", "right_hip", "tail_base", "tail_tip"},
        ),
        ("dlc/openfield_dlc_inference_example.csv", {"nose", "left_ear", "right_ear", "tail_base"}),
        ("jabs/sample_pose_est_v5.h5", {"nose", "left_ear", "right_ear", "neck", "center", "tail_base", "tail_mid", "tail_tip"}),
    ],
)
def test_roles_of_real_skeletons(data, path, roles):
    poses = read_recordings(data / "formats" / path)[0].signals
    assert {*assign_roles(poses.keypoints).values()} == roles


@pytest.mark.slow
@pytest.mark.data
def test_roles_of_the_rats(data):
    keypoints = load_dataset(data / "rats")["01"].signals.keypoints
    assert assign_roles(keypoints) == {"top": "head", "body": "center", "tail": "tail_base", "tail-m": "tail_mid", "tail-e": "tail_tip"}


def test_stated_roles_have_priority():
    stated = {
        "p1": Keypoint("p1", "Tail base"),
        "nose": Keypoint("nose", "none"),
        "wing": Keypoint("wing", "wing"),
        "neck": Keypoint("neck"),
    }
    assert assign_roles(["nose", "p1", "tailbase", "wing", "neck"], stated) == {"p1": "tail_base", "wing": "wing", "neck": "neck"}
    with pytest.raises(EthobenchError, match="'a' and 'b' both have the role 'nose'"):
        assign_roles(["a", "b"], {"a": Keypoint("a", "nose"), "b": Keypoint("b", "snout")})


def test_mirrors():
    names = ["nose", "Ear_left", "Ear_right", "wingL", "wingR", "left_hip", "forelegL4", "forelegR4"]
    assert guess_mirrors(names) == {
        "Ear_left": "Ear_right",
        "Ear_right": "Ear_left",
        "wingL": "wingR",
        "wingR": "wingL",
        "forelegL4": "forelegR4",
        "forelegR4": "forelegL4",
    }


def test_the_skeleton_of_another_lab():
    match = match_keypoints(CALMS21, ["Nose", "Ear_left", "Ear_right", "Center", "Lat_left", "Lat_right", "Tail_base", "Tail_end"])
    assert match.read == {
        "nose": "Nose",
        "left_ear": "Ear_left",
        "right_ear": "Ear_right",
        "left_hip": "Lat_left",
        "right_hip": "Lat_right",
        "tail_base": "Tail_base",
    }
    assert match.estimated == {"neck": ("Ear_left", "Ear_right")}
    assert match.missing == ()
    assert match.unused == ("Center", "Tail_end")
    notes = [str(note) for note in match.notes]
    assert notes[0].startswith("keypoints read: Nose as nose, Ear_left as left_ear")
    assert notes[1:] == ["keypoints estimated: neck from Ear_left and Ear_right", "keypoints not used: Center, Tail_end"]


def test_missing_keypoints_are_noted():
    match = match_keypoints(CALMS21, ["snout", "leftear", "rightear", "tailbase"])
    assert match.missing == ("left_hip", "right_hip")
    assert "keypoints missing: left_hip, right_hip" in [str(note) for note in match.notes]


def test_the_same_skeleton_has_no_notes():
    match = match_keypoints(CALMS21, CALMS21)
    assert match.notes == ()
    assert match.read == dict(zip(CALMS21, CALMS21, strict=True))


def test_names_without_roles_match_by_spelling():
    assert match_keypoints(["Spine_1", "x"], ["spine1", "x"]).read == {"Spine_1": "spine1", "x": "x"}


def test_a_stated_role_overrides_the_name():
    match = match_keypoints(["nose", "head"], ["nose", "p"], recorded_roles={"nose": Keypoint("nose", "head"), "p": Keypoint("p", "nose")})
    assert match.read == {"nose": "p", "head": "nose"}
    without_role = match_keypoints(["nose", "neck"], ["nose", "neck"], recorded_roles={"nose": Keypoint("nose", "none")})
    assert without_role.read == {"neck": "neck"}
    unknown_role = match_keypoints(["wing"], ["wing"], recorded_roles={"wing": Keypoint("wing", "flapper")})
    assert unknown_role.read == {"wing": "wing"}


def test_skeletons_without_a_common_keypoint_are_refused():
    with pytest.raises(
        MismatchError, match=r"none of the keypoints nose, neck is among A, B; state the roles of keypoints in keypoints\.csv"
    ):
        match_keypoints(["nose", "neck"], ["A", "B"])


def test_apply_returns_poses_in_the_order_of_the_model():
    random = np.random.default_rng(0)
    recorded = ("tailbase", "rightear", "leftear", "snout")
    poses = Poses(random.normal(size=(4, 2, 4, 2)), random.random((4, 2, 4)), ("a", "b"), recorded, 30.0)
    mapped = match_keypoints(("nose", "neck", "left_hip", "tail_base"), recorded).apply(poses)
    assert mapped.keypoints == ("nose", "neck", "left_hip", "tail_base")
    np.testing.assert_array_equal(mapped.positions[:, :, 0], poses.positions[:, :, 3])
    np.testing.assert_allclose(mapped.positions[:, :, 1], (poses.positions[:, :, 1] + poses.positions[:, :, 2]) / 2)
    np.testing.assert_array_equal(mapped.confidence[:, :, 1], np.minimum(poses.confidence[:, :, 1], poses.confidence[:, :, 2]))
    assert np.isnan(mapped.positions[:, :, 2]).all()
    np.testing.assert_array_equal(mapped.confidence[:, :, 3], poses.confidence[:, :, 0])
    with pytest.raises(MismatchError, match="no keypoint 'snout'"):
        match_keypoints(("nose",), ("snout",)).apply(mapped)
