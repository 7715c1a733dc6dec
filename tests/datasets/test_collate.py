"""Loose files are matched by recording, read on one clock and made equally long, for every command in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.formats.test_boris import observation, project

import ethobench as eb
from ethobench import Annotation, ClockOrigin, Ethogram, Poses, Recording, write_annotation, write_recordings
from ethobench.core.errors import EthobenchError, NotFoundError, ReadWarning
from ethobench.datasets.collate import collate, collate_files, collate_pairs

NAMES = ("a", "b", "other")


def labels(seed: int = 0, n: int = 600, rate: float = 30) -> Annotation:
    codes = np.repeat(np.random.default_rng(seed).integers(0, 3, n // 20), 20)
    return Annotation.from_frames(codes, Ethogram(NAMES, "other"), rate)


def write(path: Path, seed: int = 0, n: int = 600, format: str = "onehot") -> Path:
    write_annotation(labels(seed, n), path, format)
    return path


def write_project(path: Path, observations: dict[str, tuple[str, list[float]]], **media: float) -> Path:
    """Write a BORIS project: observations with a media file and the times at which attack starts and stops."""
    described = {}
    for name, (video, times) in observations.items():
        info = {key: {video: value} for key, value in {"length": 20.0, "fps": 10.0, **media}.items() if value}
        events = [[time, "", "attack", "", ""] for time in times]
        described[name] = observation(events, file={"1": [f"C:\\videos\\{video}"]}, media_info=info)
        described[name]["file"] = {"1": [video]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(project(described)), encoding="utf-8")
    return path


def matched(*paths: Path, **options: object) -> dict[str, list[str]]:
    """Return the annotators of each recording."""
    return {r.id: list(r.annotations) for r in collate_files(paths, **options).recordings}


def notes(*paths: Path, **options: object) -> str:
    return "\n".join(map(str, collate_files(paths, **options).notes))


def test_folders_of_two_people_are_matched_by_file_name(tmp_path):
    for who, seed in (("anna", 1), ("ben", 2)):
        for name in ("m1", "m2"):
            write(tmp_path / who / f"{name}.csv", seed)
    folders = tmp_path / "anna", tmp_path / "ben"
    assert matched(*folders) == {"m1": ["anna", "ben"], "m2": ["anna", "ben"]}
    assert notes(*folders) == ""
    assert matched(tmp_path) == {"m1": ["anna", "ben"], "m2": ["anna", "ben"]}
    assert "named by folder: anna, ben" in notes(tmp_path)


def test_an_affix_of_a_folder_or_beside_the_name_of_another_file_does_not_matter(tmp_path):
    for who in ("anna", "ben"):
        for name in ("day1", "day2"):
            write(tmp_path / who / f"{name}_{who}.csv")
    folders = tmp_path / "anna", tmp_path / "ben"
    assert matched(*folders) == {"day1": ["anna", "ben"], "day2": ["anna", "ben"]}
    assert "differ in an affix only" in notes(*folders)
    for name in ("day1", "day2"):
        write(tmp_path / "truth" / f"{name}.csv")
    pairs = collate_pairs(tmp_path / "anna", tmp_path / "truth")
    assert list(pairs.pairs) == ["day1", "day2"]
    assert "differ in an affix only" in str(pairs.notes[0])


@pytest.mark.parametrize("names", [("m1", "m1_2"), ("baseline", "baseline_drug"), ("day1_control", "day1_drug")])
def test_different_files_of_one_folder_are_different_recordings(names, tmp_path):
    for seed, name in enumerate(names):
        write(tmp_path / f"{name}.csv", seed)
    assert [*matched(tmp_path)] == sorted(names)
    files = [tmp_path / f"{name}.csv" for name in names]
    assert [*matched(*files, same_recording=False)] == list(names)


def test_matches_list_each_file_with_the_rule_that_applied(tmp_path):
    for who in ("anna", "ben"):
        write(tmp_path / who / f"day1_{who}.csv")
        write(tmp_path / who / f"day2_{who}.csv")
    matches = collate_files([tmp_path / "anna", tmp_path / "ben"]).matches
    assert {(m.path.name, m.recording, m.annotators, m.matched_by) for m in matches} == {
        ("day1_anna.csv", "day1", ("anna",), "name"),
        ("day1_ben.csv", "day1", ("ben",), "affix"),
        ("day2_anna.csv", "day2", ("anna",), "name"),
        ("day2_ben.csv", "day2", ("ben",), "affix"),
    }
    anna = write_project(tmp_path / "anna.boris", {"first": ("x.avi", [1, 2]), "second": ("y.avi", [3, 5])})
    ben = write_project(tmp_path / "ben.boris", {"video x": ("x.avi", [1, 3])})
    matches = collate_files([anna, ben]).matches
    assert {m.entry: (m.recording, m.matched_by, m.rate, m.clock_origin) for m in matches} == {
        "first": ("first", "name", 10, ClockOrigin.STATED),
        "second": ("second", "name", 10, ClockOrigin.STATED),
        "video x": ("first", "media file", 10, ClockOrigin.STATED),
    }


def test_a_number_is_not_an_affix(tmp_path):
    for name in ("m1", "m2"):
        write(tmp_path / "truth" / f"{name}.csv")
        write(tmp_path / "pred" / f"{name}_2.csv")
    collated = collate_pairs(tmp_path / "pred", tmp_path / "truth")
    assert (collated.pairs, collated.only_predictions, collated.only_references) == ({}, ("m1_2", "m2_2"), ("m1", "m2"))


def test_several_names_with_an_affix_are_not_matched_with_one_without(tmp_path):
    write(tmp_path / "truth" / "m1.csv")
    for name in ("m1_control", "m1_drug"):
        write(tmp_path / "pred" / f"{name}.csv")
    collated = collate_pairs(tmp_path / "pred", tmp_path / "truth")
    assert collated.pairs == {}
    assert "not matched, since several names differ from it in an affix only: 'm1_control', 'm1_drug'" in str(collated.notes[0])


@pytest.mark.parametrize("format", ["onehot", "tidy"])
def test_labels_of_other_length_belong_to_the_signals_of_the_same_name(format, tmp_path):
    times = "\n".join(f"{i / 30},0.1,0.2,0.9" for i in range(600))
    (tmp_path / "tags").mkdir()
    (tmp_path / "tags" / "m1.csv").write_text(f"time,AccX,AccY,AccZ\n{times}\n", encoding="utf-8")
    write(tmp_path / "labels" / "m1.csv", n=200, format=format)  # all 200 frames are labeled, so the others were not observed
    (recording,) = collate_files(tmp_path).recordings
    assert (recording.n_frames, recording.annotation().n_frames) == (600, 600)
    assert recording.annotation().observed.frames.stop.tolist() == [200]


def test_a_study_and_files(tmp_path):
    """Recordings of a study keep their names and clocks; files follow them."""
    write(tmp_path / "study" / "labels.csv", 1, format="tidy")
    manifest = tmp_path / "study" / "recordings.csv"
    manifest.write_text("recording,individual,rate,annotations,annotator\nm1,mouse,30,labels.csv,anna\n", encoding="utf-8")
    write(tmp_path / "ben" / "m1.csv", 2, format="intervals")
    collation = collate_files([tmp_path / "study", tmp_path / "ben"])
    assert {r.id: (r.individual, r.rate, [*r.annotations]) for r in collation.recordings} == {"m1": ("mouse", 30, ["anna", "ben"])}


def test_observations_of_one_media_file_are_one_recording(tmp_path):
    anna = write_project(tmp_path / "anna.boris", {"first": ("x.avi", [1, 2]), "second": ("y.avi", [3, 5])})
    ben = write_project(tmp_path / "ben.boris", {"video x": ("X.AVI", [1, 3]), "video y": ("y.avi", [4, 5])})
    assert matched(anna, ben) == {"first": ["anna", "ben"], "second": ["anna", "ben"]}
    assert "'first', 'video x' are about the same media file 'x'" in notes(anna, ben)


def test_several_observations_of_one_media_file_on_one_side_are_not_matched(tmp_path):
    anna = write_project(tmp_path / "anna.boris", {"resident": ("x.avi", [1, 2]), "intruder": ("x.avi", [3, 5])})
    ben = write_project(tmp_path / "ben.boris", {"both": ("x.avi", [1, 3])})
    assert len(matched(anna, ben)) == 3
    assert "not matched, since one side has several" in notes(anna, ben)


def test_two_files_are_one_recording_unless_lengths_or_media_files_differ(tmp_path):
    anna, ben = write(tmp_path / "anna.csv", 1), write(tmp_path / "ben.csv", 2)
    longer = write(tmp_path / "carla.csv", 3, n=1200)
    assert matched(anna, ben) == {"anna": ["anna", "ben"]}
    assert "treated as one recording" in notes(anna, ben)
    assert [*matched(anna, longer)] == ["anna", "carla"]
    assert "lengths differ" in notes(anna, longer)
    assert [*matched(anna, ben, longer, same_recording=True)] == ["anna", "ben", "carla"]
    x = write_project(tmp_path / "x.boris", {"one": ("x.avi", [1, 2])})
    y = write_project(tmp_path / "y.boris", {"two": ("y.avi", [1, 2])})
    assert [*matched(x, y)] == ["one", "two"]
    assert "media files differ" in notes(x, y)


def test_numbers_in_names_distinguish_recordings_unless_there_is_one_video_or_paths_are_annotators(tmp_path):
    files = [write(tmp_path / f"m{i}.csv", i) for i in (1, 2, 3)]
    assert len(matched(*files)) == 3
    assert "names differ in a number" in notes(*files)
    assert matched(*files, same_recording=True) == {"m1": ["m1", "m2", "m3"]}
    times = "\n".join(f"{i / 30},0.1,0.2,0.9" for i in range(600))
    (tmp_path / "tag.csv").write_text(f"time,AccX,AccY,AccZ\n{times}\n", encoding="utf-8")
    assert [len(names) for names in matched(*files, tmp_path / "tag.csv").values()] == [3]


def test_the_same_name_for_different_videos_are_not_matched(tmp_path):
    anna = write_project(tmp_path / "anna.boris", {"obs": ("x.avi", [1, 2])}, length=20.0)
    ben = write_project(tmp_path / "ben.boris", {"obs": ("y.avi", [1, 2])}, length=300.0)
    assert matched(anna, ben) == {"anna/obs": ["annotator"], "ben/obs": ["annotator"]}
    assert "different recordings" in notes(anna, ben)
    same_length = write_project(tmp_path / "carla.boris", {"obs": ("z.avi", [1, 2])}, length=20.0)
    assert matched(anna, same_length) == {"obs": ["anna", "carla"]}
    assert "although the media files differ" in notes(anna, same_length)


def test_lengths_decide_whether_subfolders_are_recordings_or_annotators(tmp_path):
    for number, n in enumerate((600, 1200), start=1):
        for who in ("human1", "human2"):
            write(tmp_path / "by_recording" / f"video{number}" / f"{who}.csv", number, n)
            write(tmp_path / "by_person" / who / f"video{number}.csv", number + (who == "human2"), n)
    expected = {"video1": ["human1", "human2"], "video2": ["human1", "human2"]}
    assert matched(tmp_path / "by_recording") == expected
    assert matched(tmp_path / "by_person") == expected


def test_files_of_the_same_name_and_other_lengths_are_other_recordings(tmp_path):
    write(tmp_path / "day1" / "m1.csv", n=600)
    write(tmp_path / "day2" / "m1.csv", n=1200)
    write(tmp_path / "day2" / "m2.csv", n=600)
    assert [*matched(tmp_path)] == ["day1/m1", "day2/m1", "m2"]


def test_a_project_and_its_exports_count_once(tmp_path):
    folder = tmp_path / "anna"
    first = write_project(folder / "project.boris", {"x": ("x.avi", [1, 2]), "y": ("y.avi", [3, 5])})
    exported = eb.read_recordings(first, entry="x")
    write_recordings(exported, folder / "x.tsv", "boris_tabular")
    write_project(tmp_path / "ben" / "project.boris", {"x": ("x.avi", [1, 3])})
    assert matched(folder, tmp_path / "ben") == {"x": ["anna", "ben"], "y": ["anna"]}
    assert "has the same bouts" in notes(folder, tmp_path / "ben")


def test_annotators_that_files_name_keep_their_names_unless_both_sides_have_them(tmp_path):
    write_recordings([Recording("r", annotations={"zoe": labels(1)})], tmp_path / "one.csv", "tidy")
    write_recordings([Recording("r", annotations={"zoe": labels(2)})], tmp_path / "two.csv", "tidy")
    write_recordings([Recording("r", annotations={"ann": labels(3)})], tmp_path / "three.csv", "tidy")
    assert matched(tmp_path / "one.csv", tmp_path / "three.csv") == {"r": ["zoe", "ann"]}
    assert matched(tmp_path / "one.csv", tmp_path / "two.csv") == {"r": ["one", "two"]}


def test_poses_find_the_annotations_of_their_video(tmp_path):
    keypoints = ("nose", "neck", "tail")
    for name in ("m1", "m2"):
        poses = Poses(np.random.default_rng(0).uniform(1, 9, (600, 1, 3, 2)), np.ones((600, 1, 3)), ("individual",), keypoints)
        recording = Recording(name, signals=poses)
        write_recordings([recording], tmp_path / f"{name}DLC_resnet50_openfieldshuffle1_1000.csv", "deeplabcut")
        write(tmp_path / f"{name}.csv")
    contents = {r.id: (r.signals is not None, len(r.annotations)) for r in collate_files(tmp_path).recordings}
    assert contents == {"m1": (True, 1), "m2": (True, 1)}


def test_a_file_without_a_frame_rate_follows_the_one_it_is_matched_with(tmp_path):
    for name, rate in (("m1", 25), ("m2", 50)):
        write_annotation(labels(1, rate=rate), tmp_path / "anna" / f"{name}.annot", "bento")
        write_annotation(labels(2, rate=rate), tmp_path / "ben" / f"{name}.csv", "intervals")
    collation = collate_files([tmp_path / "anna", tmp_path / "ben"])
    assert {r.id: {a.rate for a in r.annotations.values()} for r in collation.recordings} == {"m1": {25}, "m2": {50}}
    assert {r.clock_origin for r in collation.recordings} == {ClockOrigin.STATED}
    assert "no frame rate; using 25 Hz, the rate of" in "\n".join(map(str, collation.notes))


def test_a_boris_project_of_1000_frames_a_second_has_a_clock_and_one_without_frame_rate_has_none(tmp_path):
    """A stated rate of 1000 Hz is a clock, although times in seconds are read at 1000 Hz by default."""
    fast = write_project(tmp_path / "fast.boris", {"x": ("x.avi", [1, 2])}, fps=1000.0)
    unclocked = write_project(tmp_path / "none.boris", {"x": ("x.avi", [1, 2.5])}, fps=0.0)
    slow = write_project(tmp_path / "slow.boris", {"x": ("x.avi", [1, 3])}, fps=10.0)
    pair = collate_pairs(fast, slow).pairs["x"]
    assert ([a.rate for a in pair.predictions.values()], [a.rate for a in pair.references.values()]) == ([1000], [10])
    pair = collate_pairs(unclocked, slow).pairs["x"]
    assert ([a.rate for a in pair.predictions.values()], [a.rate for a in pair.references.values()]) == ([10], [10])
    pair = collate_pairs(unclocked, fast).pairs["x"]
    assert [a.rate for a in pair.predictions.values()] == [1000]


def test_lengths(tmp_path):
    write(tmp_path / "anna.csv", 1, n=600)
    open_ended = Annotation.from_bouts([30], [90], ["a"], NAMES, 30, 90)
    write_annotation(open_ended, tmp_path / "ben.csv", "intervals")
    (recording,) = collate_files([tmp_path / "anna.csv", tmp_path / "ben.csv"], rate=30).recordings
    assert recording.annotations["ben"].observed.is_complete(600)
    write(tmp_path / "carla.csv", 2, n=580)  # a label for every frame: the other 20 were not observed
    (recording,) = collate_files([tmp_path / "anna.csv", tmp_path / "carla.csv"], rate=30).recordings
    assert recording.annotations["carla"].n_frames == 600
    assert not recording.annotations["carla"].observed.is_complete(600)


def test_collate_is_a_dataset_that_other_verbs_take(tmp_path):
    for who, seed in (("anna", 1), ("ben", 1)):
        write(tmp_path / who / "m1.csv", seed, format="tidy")
    data = eb.collate([tmp_path / "anna", tmp_path / "ben"])
    assert eb.agreement(data).kappa("anna", "ben") == 1
    assert data.ethogram.names == NAMES
    with pytest.warns(ReadWarning, match="treated as one recording"):
        collate([write(tmp_path / "x.csv", format="tidy"), write(tmp_path / "y.csv", 1, format="tidy")])


def test_behaviors_are_renamed_and_unknown_names_are_listed(tmp_path):
    path = write(tmp_path / "x.csv", format="tidy")
    assert collate(path, rename={"a": "attack"}).ethogram.names == ("attack", "b", "other")
    with pytest.raises(NotFoundError, match=r"no behavior 'z'.*a, b, other"):
        collate(path, rename={"z": "attack"})


def test_nothing_to_match(tmp_path):
    (tmp_path / "empty").mkdir()
    assert collate_files(tmp_path / "empty").recordings == ()
    with pytest.raises(EthobenchError, match="has no annotation"):
        collate_pairs(tmp_path / "empty", write(tmp_path / "x" / "x.csv"))


@pytest.mark.data
def test_five_videos_of_two_raters_are_five_recordings_in_the_viewer_and_for_agreement(data, tmp_path, monkeypatch):
    """A regression: the viewer showed them as one recording with ten tracks."""
    from ethobench.app.opening import open_project

    monkeypatch.chdir(tmp_path)
    folders = [data / "boris_two_raters" / name for name in ("brett_initial", "donnie_initial")]
    tracks = {e.recording.id: [t.name for t in e.tracks] for e in open_project([str(folder) for folder in folders]).recordings}
    collation = collate_files(folders, same_recording=True, annotations_only=True)
    paired = {r.id: [*r.annotations] for r in collation.recordings if len(r.annotations) > 1}
    assert paired == {f"DLC{i}": ["brett_initial", "donnie_initial"] for i in range(1, 6)}
    assert {name: names for name, names in tracks.items() if len(names) > 1} == paired
    assert len(tracks) == 10  # the project has five more observations


@pytest.mark.slow
@pytest.mark.data
def test_folders_of_real_studies(data):
    banos = matched(data / "banos", annotations_only=True)
    assert banos == {f"Recording_{i}": ["humanAnnotation_1", "humanAnnotation_2"] for i in (1, 10, *range(2, 10))}
    raters = matched(data / "multirater_oft", annotations_only=True)
    assert len(raters) == 20
    assert {tuple(names) for names in raters.values()} == {("Jin", "Furkan", "Oliver")}
