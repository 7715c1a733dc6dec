"""The synthetic labs: conditions of the table, labels of the lists, styles of labs, errors of trackers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench import load_dataset
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, ParameterError
from ethobench.datasets.lab_profiles import BUILT_IN, SKELETONS, built_in_videos, parse_labeled, read_videos, select_videos
from ethobench.datasets.synthetic_labs import BODY, DIRECTED, INCLUDED, ON_SELF, SIZES, lab_style, make_labs

HEADER = (
    "lab_id,video_id,mouse1_strain,mouse1_color,mouse1_id,mouse2_strain,mouse2_color,mouse2_id,mouse3_strain,mouse3_color,mouse3_id,"
    "mouse4_strain,mouse4_color,mouse4_id,frames_per_second,video_duration_sec,pix_per_cm_approx,video_width_pix,video_height_pix,"
    "arena_width_cm,arena_height_cm,arena_shape,body_parts_tracked,behaviors_labeled,tracking_method\n"
)
LISTED = '"[""mouse1,mouse2,sniff"",""mouse1,self,rear""]"'
ROW = f'Lab,1,a,b,1,a,b,2,,,,,,,24.62,20,10,400,300,30,20,square,"[""nose"",""tail_base""]",{LISTED},X\n'


@pytest.fixture(scope="module")
def small():
    return make_labs(videos=2, seconds=20, metadata=False)


@pytest.mark.slow
def test_all_labs_and_skeletons_are_there(small):
    assert {r.metadata["lab"] for r in small} == {profile.name for profile in BUILT_IN}
    assert len({profile.name for profile in BUILT_IN}) == 19
    assert {r.signals.keypoints for r in small} == {*SKELETONS}
    assert {name for names in SKELETONS for name in names} == {*BODY}
    assert {r.signals.positions.shape[1] for r in small} == {2, 3, 4}


def test_exactly_the_listed_behaviors_are_observed(small):
    for recording in small:
        annotation = recording.annotation()
        entries = [entry.split(",") for entry in recording.metadata["behaviors_labeled"]]
        listed = {Track(action, agent, None if target == "self" else target) for agent, target, action in entries}
        assert {*annotation.observed.tracks} == listed
        assert iv.total(annotation.observed.frames) == 0
        assert all(iv.total(frames) == recording.n_frames for frames in annotation.observed.tracks.values())
        assert {Track(*track) for track in annotation.tracks()} <= listed


def test_rate_scale_and_size_are_those_of_the_lab(small):
    for profile in BUILT_IN:
        recordings = [r for r in small if r.metadata["lab"] == profile.name]
        assert {r.rate for r in recordings} <= {*profile.rates}
        assert {r.n_frames for r in recordings} == {round(20 * r.rate) for r in recordings}
        for recording in recordings:
            poses, scale = recording.signals.positions, recording.metadata["pixels_per_cm"]
            names = recording.signals.keypoints
            ears = np.linalg.norm(poses[:, :, names.index("ear_left")] - poses[:, :, names.index("ear_right")], axis=-1) / scale
            assert 1.5 < np.nanmedian(ears) < 3.0, "cm between the ears, whatever the scale"


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    first, again, other = (make_labs(labs=["UppityFerret"], videos=2, seconds=10, seed=s, metadata=False) for s in (1, 1, 2))
    for a, b, c in zip(first, again, other, strict=True):
        assert a.annotation() == b.annotation()
        assert a.annotation() != c.annotation()
        assert np.array_equal(a.signals.positions, b.signals.positions, equal_nan=True)
        assert not np.array_equal(a.signals.positions, c.signals.positions, equal_nan=True)
    assert first.version == again.version != other.version


def test_a_lab_does_not_depend_on_the_other_labs():
    alone = make_labs(labs=["CRIM13"], videos=1, seconds=5, metadata=False)
    both = make_labs(labs=["JovialSwallow", "CRIM13"], videos=1, seconds=5, metadata=False)
    name = alone.recordings[0].id
    assert alone[name].annotation() == both[name].annotation()


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    per_lab, seconds = SIZES[size]
    data = make_labs(size=size, labs=["DeliriousFly"], seconds=seconds / 100, metadata=False)
    assert len(data) == min(per_lab or 6, 6)
    assert {*data.folds.values()} == {*range(min(len(data), 5))}


def test_labels_agree_with_the_true_motion():
    options = {"videos": 3, "seconds": 40, "errors": 0, "metadata": False}
    sniffs, others = [], []
    for recording in make_labs(labs=["ReflectiveManatee"], **options):
        points, annotation = recording.signals.positions / recording.metadata["pixels_per_cm"], recording.annotation()
        nose = points[:, 0, recording.signals.keypoints.index("nose")]
        gap = np.linalg.norm(points[:, 1] - nose[:, None], axis=-1).min(axis=1)
        sniffing = iv.to_mask(annotation.spans("sniff", "mouse1", "mouse2"), recording.n_frames)
        sniffs.append(gap[sniffing])
        others.append(gap[~sniffing])
    assert np.median(np.concatenate(sniffs)) < 2.5 < np.median(np.concatenate(others)), "cm from nose to nearest point"
    runs, walks = [], []
    for recording in make_labs(labs=["GroovyShrew"], **options):
        middle = recording.signals.positions[:, 0].mean(axis=1) / recording.metadata["pixels_per_cm"]
        speed = np.linalg.norm(np.gradient(middle, axis=0), axis=-1) * recording.rate
        running = iv.to_mask(recording.annotation().spans("run", "mouse1"), recording.n_frames)
        runs.append(speed[running])
        walks.append(speed[~running])
    assert np.median(np.concatenate(runs)) > 2 * np.median(np.concatenate(walks))


def test_labs_differ_in_style_and_a_broad_action_includes_what_is_not_listed():
    styles = [lab_style(profile.name) for profile in BUILT_IN]
    assert len({(s.onset, s.delay, s.shortest, s.gap) for s in styles}) == len(styles)
    for style in styles:
        assert {*style.movements("sniff", ["sniff"])} >= {*INCLUDED["sniff"]}
        assert "sniffface" not in style.movements("sniff", ["sniff", "sniffface"])
        assert style.movements("mount", ["mount", "intromit"])[0] == "mount"
    assert len({lab_style(profile.name).movements("attack", ["attack"]) for profile in BUILT_IN}) > 1


def test_every_action_can_be_performed():
    actions = {action for video in built_in_videos() for action in video.actions}
    assert actions <= {*DIRECTED, *ON_SELF, *INCLUDED}
    assert len(actions) == 37


def test_tracking_errors():
    options = {"labs": ["CalMS21_task2"], "videos": 12, "seconds": 30, "metadata": False}
    clean, noisy = make_labs(errors=0, **options), make_labs(errors=3, **options)
    absences, swaps = 0, 0
    for a, b in zip(clean, noisy, strict=True):
        assert a.annotation() == b.annotation(), "errors change what is tracked, not what happens"
        assert a.signals.missing == 0
        assert b.signals.missing > 0
        truth, tracked = a.signals.positions, b.signals.positions
        absences += int(np.isnan(tracked).all(axis=(2, 3)).sum(axis=0).max() > 0.05 * len(tracked))
        error = np.linalg.norm(tracked - truth, axis=-1) / a.metadata["pixels_per_cm"]
        swaps += int(np.nanmax(error) > 3)
        assert np.nanmedian(error) < 1
    assert absences >= 3
    assert swaps >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "huge"}, "`size` must be one of"),
        ({"videos": 0}, "`videos` must be >= 1"),
        ({"seconds": 0}, "`seconds` must be > 0"),
        ({"errors": -1}, "`errors` must be >= 0"),
        ({"errors": float("nan")}, "`errors` must be >= 0"),
        ({"folds": 0}, "`folds` must be >= 1"),
        ({"labs": ["nobody"]}, "unknown names: nobody; available: AdaptableSnail"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ParameterError, match=message):
        load_dataset("synthetic/labs", metadata=False, **options)


# ------------------------------------------------------------- the metadata table


def test_the_table_in_the_data_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mabe2025").mkdir()
    unlabeled = ROW.replace("Lab,1", "Lab,2").replace(LISTED, "")
    absent = ROW.replace("Lab,1", "Lab,3").replace("mouse1,mouse2,sniff", "mouse1,mouse4,sniff")
    (tmp_path / "mabe2025" / "train.csv").write_text(HEADER + ROW + unlabeled + absent, encoding="utf-8")
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path))
    data = load_dataset("synthetic/labs")
    assert [(r.id, r.rate, r.n_frames, [*r.annotations]) for r in data] == [
        ("1", 24.62, 492, ["annotator"]),
        ("2", 24.62, 492, []),
        ("3", 24.62, 492, ["annotator"]),
    ]
    assert data["1"].signals.keypoints == ("nose", "tail_base")
    assert Track("sniff", "mouse1", "mouse4") in data["3"].annotation().observed.tracks, "listed, though there are two mice only"
    assert data["3"].subjects == ("mouse1", "mouse2")
    assert make_labs(metadata=False, labs=["CRIM13"], videos=1, seconds=1).version.endswith("built-in")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",10,400", ",0,400", "row 2: pixels_per_cm must be > 0, got 0"),
        (",10,400", ",,400", "row 2: invalid value"),
        ("24.62", "nan", "row 2: rate must be > 0"),
        ("mouse1,self,rear", "mouse1,rear", "row 2: invalid value .*mouse1,rear"),
        ("pix_per_cm_approx", "scale", "row 2: no column 'pix_per_cm_approx'"),
    ],
)
def test_a_bad_table_is_refused(old: str, new: str, message: str, tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_text((HEADER + ROW).replace(old, new), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_videos(path)


def test_an_empty_table_is_refused(tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_text(HEADER, encoding="utf-8")
    with pytest.raises(FormatError, match="no videos"):
        read_videos(path)


def test_selection_covers_the_conditions_of_a_lab():
    chosen = select_videos(built_in_videos(), 4)
    assert len(chosen) == 4 * 19
    assert {v.keypoints for v in chosen if v.lab == "AdaptableSnail"} == {SKELETONS[7], SKELETONS[8]}
    assert {v.rate for v in chosen if v.lab == "SparklingTapir"} == {30, 50, 60, 120}
    assert select_videos(built_in_videos(), None) == built_in_videos()


def test_lists_of_labeled_behaviors():
    assert parse_labeled(["mouse1,mouse1,rear"]) == (("mouse1", "self", "rear"),)
    with pytest.raises(ValueError, match="expected an entry"):
        parse_labeled(["rear"])


@pytest.mark.data
def test_the_real_table(data: Path):
    videos = read_videos(data / "mabe2025" / "train.csv")
    assert len(videos) == 862
    assert sum(bool(v.labeled) for v in videos) == 847
    assert {v.keypoints for v in videos} == {*SKELETONS}
    assert {v.lab for v in videos} == {profile.name for profile in BUILT_IN}
    pairs = {(v.lab, action) for v in videos for action in v.actions}
    assert (len(pairs), len({action for _, action in pairs})) == (131, 37)
    chosen = select_videos(videos, 4)
    assert {v.keypoints for v in chosen} == {*SKELETONS}
    assert {(v.lab, action) for v in chosen for action in v.actions} == pairs
    counts = {profile.name: profile.videos for profile in BUILT_IN}
    assert counts == {lab: sum(v.lab == lab for v in videos) for lab in counts}
