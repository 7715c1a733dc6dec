"""Drafting a study from the files in a folder."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.video_files import write_video

from ethobench import Annotation, Ethogram, Recording, load_dataset, write_annotation, write_recordings
from ethobench.core.errors import EthobenchError, PathExistsError, ReadWarning
from ethobench.datasets.discover import discover_study

N = 60
DLC = "DLC_resnet50_projectMay1shuffle1_500000"
ETHOGRAM = Ethogram(["rest", "run"])

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


def poses(path: Path, n_frames: int = N) -> None:
    """Write a pose file of DeepLabCut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
    path.write_text(header + "".join(f"{i},{i / 7:.3f},{i / 3:.3f},0.9\n" for i in range(n_frames)), encoding="utf-8")


def labels(path: Path, n_frames: int = N, rate: float = 30, shift: int = 0) -> None:
    """Write an annotation that states rate and length."""
    path.parent.mkdir(parents=True, exist_ok=True)
    codes = np.roll(np.arange(n_frames) // 10 % 2, shift)
    recording = Recording(path.stem, annotations={"annotator": Annotation.from_frames(codes, ETHOGRAM, rate)})
    write_recordings([recording], path, "tidy", overwrite=True)


def frames(path: Path, n_frames: int = N) -> None:
    """Write an annotation with one label per frame, which states no rate and names nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("frame,rest,run\n" + "".join(f"{i},{i // 10 % 2},{1 - i // 10 % 2}\n" for i in range(n_frames)), encoding="utf-8")


def seconds(path: Path) -> None:
    """Write an annotation in seconds, which states no rate."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("behavior,start,stop\nrest,0.0,1.0\nrun,1.0,1.5\n", encoding="utf-8")


def boris(path: Path, observations: dict[str, str], fps: float = 30) -> None:
    """Write a BORIS project: media file by observation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "project_format_version": "7.0",
        "behaviors_conf": {
            "0": {"code": "run", "type": "State event", "key": "r", "description": "runs", "category": "", "modifiers": ""},
        },
        "subjects_conf": {},
        "observations": {
            name: {
                "file": {"1": [media]},
                "type": "MEDIA",
                "date": "2024-05-01T10:00:00",
                "description": "",
                "time offset": 0,
                "events": [[0.1, "", "run", "", ""], [0.5 + 0.1 * i, "", "run", "", ""]],
                "media_info": {"length": {media: N / fps}, "fps": {media: fps}},
            }
            for i, (name, media) in enumerate(observations.items())
        },
    }
    path.write_text(json.dumps(content), encoding="utf-8")


def cells(folder: Path, *columns: str, **options) -> list[tuple[str, ...]]:
    """Draft, write and load a study; return these columns of its rows."""
    draft = discover_study(folder, **options)
    draft.write(overwrite=True)
    data = load_dataset(folder)
    assert tuple(r.id for r in data) == draft.recordings
    return [tuple(row.get(column, "") for column in columns) for row in draft.rows]


def test_long_names_of_deeplabcut(tmp_path):
    for name in ("m1", "m2"):
        poses(tmp_path / f"{name}{DLC}.csv")
        labels(tmp_path / f"{name}.csv")
    assert cells(tmp_path, "recording", "signals", "annotations", "rate") == [
        ("m1", f"m1{DLC}.csv", "m1.csv", "30"),
        ("m2", f"m2{DLC}.csv", "m2.csv", "30"),
    ]


def test_the_manifest_has_the_documented_columns_and_relative_paths(tmp_path):
    poses(tmp_path / "poses" / f"m1{DLC}.csv")
    labels(tmp_path / "labels" / "m1.csv")
    draft = discover_study(tmp_path)
    assert [path.name for path in draft.write()] == ["recordings.csv", "ethogram.csv"]
    assert (tmp_path / "recordings.csv").read_text(encoding="utf-8").splitlines() == [
        "recording,individual,rate,signals,annotations,annotator",
        f"m1,m1,30,poses/m1{DLC}.csv,labels/m1.csv,annotator",
    ]
    assert (tmp_path / "ethogram.csv").read_text(encoding="utf-8").splitlines()[0] == "behavior,definition,background,point,key"
    assert [(match.path.as_posix(), match.role) for match in draft.matches] == [
        ("labels/m1.csv", "annotations"),
        (f"poses/m1{DLC}.csv", "signals"),
    ]


@pytest.mark.parametrize("layout", [
    ["anna/m1.csv", "ben/m1.csv", "anna/m2.csv", "ben/m2.csv"],
    ["m1_anna.csv", "m1_ben.csv", "m2_anna.csv", "m2_ben.csv"],
    ["anna_m1.csv", "ben_m1.csv", "anna_m2.csv", "ben_m2.csv"],
    ["labels/anna/m1.csv", "labels/ben/m1.csv", "labels/anna/m2.csv", "labels/ben/m2.csv"],
])  # fmt: skip
@pytest.mark.parametrize("with_poses", [False, True])
def test_raters_are_folders_or_affixes(tmp_path, layout, with_poses):
    for file in layout:
        frames(tmp_path / file)
    if with_poses:
        for name in ("m1", "m2"):
            poses(tmp_path / "poses" / f"{name}{DLC}.csv")
    assert sorted(cells(tmp_path, "recording", "annotator", rate=30)) == [("m1", "anna"), ("m1", "ben"), ("m2", "anna"), ("m2", "ben")]


def test_passes_of_raters(tmp_path):
    for folder, suffix in (("brett", "_initial"), ("donnie", "_reoffset")):
        for name in ("DLC1", "DLC2"):
            frames(tmp_path / folder / f"{name}{suffix}.csv")
    assert cells(tmp_path, "recording", "annotator") == [("dlc1", "brett"), ("dlc1", "donnie"), ("dlc2", "brett"), ("dlc2", "donnie")]


def test_boris_projects_by_entry_and_media_file(tmp_path):
    boris(tmp_path / "anna.boris", {"first": "C:\\films\\m1.mp4", "second": "C:\\films\\m2.mp4"})
    for name in ("m1", "m2"):
        poses(tmp_path / f"{name}{DLC}.csv")
    draft = discover_study(tmp_path)
    assert {(row["signals"], row["entry"], row["rate"]) for row in draft.rows} == {
        (f"m1{DLC}.csv", "first", "30"),
        (f"m2{DLC}.csv", "second", "30"),
    }
    assert {match.reason for match in draft.matches if match.role == "signals"} == {"media file"}
    draft.write()
    assert all(len(r.annotation()) == 1 and r.has_signals for r in load_dataset(tmp_path))
    assert "run,runs,,,r" in (tmp_path / "ethogram.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("layout", [
    ["mouse1/day1", "mouse1/day2", "mouse2/day1", "mouse2/day2"],
    ["sub-01/ses-01/rec", "sub-01/ses-02/rec", "sub-02/ses-01/rec"],
    ["cage 1/mouse 1/trial1", "cage 1/mouse 2/trial1"],
])  # fmt: skip
def test_folders_of_animals_and_sessions(tmp_path, layout):
    for name in layout:
        poses(tmp_path / f"{name}{DLC}.csv")
        frames(tmp_path / f"{name}.csv")
    rows = cells(tmp_path, "recording", "individual", "signals", "annotations", rate=30)
    assert len({recording for recording, *_ in rows}) == len(layout)
    for _, individual, pose_file, label_file in rows:
        assert pose_file.removesuffix(f"{DLC}.csv") == label_file.removesuffix(".csv")
        animal = next(component for component in label_file.split("/") if component.startswith(("mouse", "sub")))
        assert individual.endswith(animal)


def test_a_folder_for_each_recording(tmp_path):
    for box in ("box3", "box4", "box5"):
        poses(tmp_path / box / "poses.csv")
        frames(tmp_path / box / "labels.csv")
    assert cells(tmp_path, "recording", "signals", "annotations", rate=25) == [
        (box, f"{box}/poses.csv", f"{box}/labels.csv") for box in ("box3", "box4", "box5")
    ]


def test_poses_and_labels_in_parallel_folders(tmp_path):
    for mouse in ("mouse1", "mouse2"):
        poses(tmp_path / "poses" / mouse / "day1.csv")
        frames(tmp_path / "labels" / mouse / "day1.csv")
    assert cells(tmp_path, "individual", "signals", "annotations", rate=30) == [
        (mouse, f"poses/{mouse}/day1.csv", f"labels/{mouse}/day1.csv") for mouse in ("mouse1", "mouse2")
    ]


def test_the_same_poses_in_several_files_are_used_once(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv")
    poses(tmp_path / f"m1{DLC}_filtered.csv")
    labels(tmp_path / "m1.csv")
    draft = discover_study(tmp_path)
    assert [row["signals"] for row in draft.rows] == [f"m1{DLC}_filtered.csv"]
    assert [str(unused) for unused in draft.unused] == [f"m1{DLC}.csv: the same poses as m1{DLC}_filtered.csv, which is used"]


def test_two_candidates_for_one_recording_are_refused(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv")
    poses(tmp_path / f"m1{DLC.replace('shuffle1', 'shuffle2')}.csv")
    labels(tmp_path / "m1.csv")
    with pytest.raises(EthobenchError, match=r"several candidates.*nothing is written") as caught:
        discover_study(tmp_path)
    assert "shuffle1" in str(caught.value)
    assert "shuffle2" in str(caught.value)
    assert "exclude=" in str(caught.value)
    draft = discover_study(tmp_path, exclude=["*shuffle1*"])
    assert [row["signals"] for row in draft.rows] == [f"m1{DLC.replace('shuffle1', 'shuffle2')}.csv"]


def test_copies_of_a_folder_are_not_recordings(tmp_path):
    for folder in ("poses_raw", "poses_new"):
        poses(tmp_path / folder / "m1.csv")
    labels(tmp_path / "m1.csv")
    with pytest.raises(EthobenchError, match=r"poses_new/m1\.csv, poses_raw/m1\.csv"):
        discover_study(tmp_path)


def test_empty_folders_and_folders_without_usable_files(tmp_path):
    with pytest.raises(EthobenchError, match="is empty: there is nothing"):
        discover_study(tmp_path)
    (tmp_path / "notes.txt").write_text("dear diary", encoding="utf-8")
    with pytest.raises(EthobenchError, match=r"has no poses.*notes.txt: format not recognized"):
        discover_study(tmp_path)
    for path in (tmp_path / "none", tmp_path / "notes.txt"):
        with pytest.raises(EthobenchError, match="folder"):
            discover_study(path)


def test_nested_studies_models_and_hidden_files_are_not_scanned(tmp_path):
    labels(tmp_path / "m1.csv")
    labels(tmp_path / "old" / "deep" / "m2.csv")
    (tmp_path / "old" / "recordings.csv").write_text("recording\nm2\n", encoding="utf-8")
    labels(tmp_path / "model" / "m3.csv")
    (tmp_path / "model" / "model.json").write_text("{}", encoding="utf-8")
    labels(tmp_path / ".cache" / "m4.csv")
    (tmp_path / "~$m1.csv").write_text("lock", encoding="utf-8")
    draft = discover_study(tmp_path)
    assert draft.recordings == ("m1",)
    assert [str(unused) for unused in draft.unused] == [
        "model: not scanned, since it is a saved model (model.json)",
        "old: not scanned, since it is a study of its own (recordings.csv)",
    ]


def test_unreadable_files_are_reported_and_the_others_used(tmp_path):
    labels(tmp_path / "m1.csv")
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "cut.boris").write_text('{"project_format_version": "7.0", "observations": {"a"', encoding="utf-8")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(50))
    if os.name == "posix" and os.getuid() != 0:
        labels(tmp_path / "secret.csv")
        (tmp_path / "secret.csv").chmod(0)
    draft = discover_study(tmp_path)
    assert draft.recordings == ("m1",)
    reasons = {unused.path.name: unused.reason for unused in draft.unused}
    assert "empty" in reasons["empty.csv"]
    assert reasons.keys() >= {"cut.boris", "photo.jpg"}
    assert draft.n_files == 4 + ("secret.csv" in reasons)


@pytest.mark.parametrize("forms", [("NFC", "NFC"), ("NFC", "NFD"), ("NFD", "NFC")])
def test_names_with_spaces_and_umlauts(tmp_path, forms):
    name = "Käfig 2 übermütig"
    poses(tmp_path / "Körper" / f"{unicodedata.normalize(forms[0], name)}.csv")
    frames(tmp_path / "Etikett" / f"{unicodedata.normalize(forms[1], name)}.csv")
    ((recording, *files),) = cells(tmp_path, "recording", "signals", "annotations", rate=30)
    assert recording == unicodedata.normalize("NFC", name)
    assert all((tmp_path / file).is_file() for file in files)


def test_mixed_rates(tmp_path):
    for name, rate in (("m1", 25), ("m2", 29.97002997002997)):
        poses(tmp_path / f"{name}{DLC}.csv")
        labels(tmp_path / f"{name}.csv", rate=rate)
    assert cells(tmp_path, "recording", "rate") == [("m1", "25"), ("m2", "29.97002997002997")]
    assert [r.rate for r in load_dataset(tmp_path)] == [25, 29.97002997002997]


def test_annotations_at_another_rate_than_the_others_are_read_at_theirs(tmp_path):
    for who, rate in (("anna", 30), ("ben", 30), ("carla", 25)):
        (tmp_path / who).mkdir()
        path = tmp_path / who / "m1.annot"
        write_annotation(Annotation.from_frames(np.arange(N) // 10 % 2, ETHOGRAM, rate), path, "bento")
    assert cells(tmp_path, "annotator", "rate") == [("anna", "30"), ("ben", "30"), ("carla", "30")]
    assert {a.rate for a in load_dataset(tmp_path)["m1"].annotations.values()} == {30}


def test_rates_of_videos(tmp_path):
    pytest.importorskip("av")
    write_video(tmp_path / "m1.webm", N, 20)
    poses(tmp_path / f"m1{DLC}.csv")
    frames(tmp_path / "m1.csv")
    draft = discover_study(tmp_path)
    assert [(row["rate"], row["video"]) for row in draft.rows] == [("20", "m1.webm")]
    assert any("from videos" in guess for guess in draft.guesses)


def test_seconds_without_a_rate_beside_poses_need_one(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv")
    seconds(tmp_path / "m1.csv")
    with pytest.raises(EthobenchError, match=r"annotations are in seconds \(m1\); state it, such as rate=30"):
        discover_study(tmp_path)
    assert cells(tmp_path, "recording", "rate", rate=40) == [("m1", "40")]


def test_an_unknown_rate_is_stated_as_unknown(tmp_path):
    poses(tmp_path / f"m1{DLC}.csv")
    frames(tmp_path / "m1.csv")
    assert cells(tmp_path, "rate") == [("",)]
    assert any("unknown for 1 recordings" in guess for guess in discover_study(tmp_path).guesses)


def test_recordings_without_poses_are_left_out_with_a_reason(tmp_path):
    for name in ("m1", "m2"):
        poses(tmp_path / f"{name}{DLC}.csv")
    labels(tmp_path / "m1.csv")
    labels(tmp_path / "m2x.csv")
    draft = discover_study(tmp_path)
    assert draft.recordings == ("m1", "m2")
    assert [str(unused) for unused in draft.unused] == ["m2x.csv: no poses or signals of the name 'm2x'; is it of 'm2'?"]


def test_nothing_is_overwritten(tmp_path):
    labels(tmp_path / "m1.csv")
    (tmp_path / "ethogram.csv").write_text("behavior\nrest\nrun\njump\n", encoding="utf-8")
    draft = discover_study(tmp_path)
    assert [path.name for path in draft.write()] == ["recordings.csv"]
    (tmp_path / "recordings.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(PathExistsError):
        draft.write()
    assert (tmp_path / "recordings.csv").read_text(encoding="utf-8") == "mine"
    draft.write(overwrite=True)
    assert load_dataset(tmp_path).ethogram.names == ("rest", "run", "jump")
    draft.write(tmp_path / "draft.csv")
    assert len(load_dataset(tmp_path / "draft.csv")) == 1
    with pytest.raises(EthobenchError, match="must be in"):
        draft.write(tmp_path.parent / "draft.csv")


@pytest.mark.parametrize("lock", ["~$recordings.csv", ".~lock.recordings.csv#"])
def test_a_manifest_that_is_open_in_a_spreadsheet_program_is_not_written(tmp_path, lock):
    labels(tmp_path / "m1.csv")
    draft = discover_study(tmp_path)
    (tmp_path / lock).write_text("anna", encoding="utf-8")
    with pytest.raises(PathExistsError, match="is open in a spreadsheet program"):
        draft.write(overwrite=True)
    assert not (tmp_path / "recordings.csv").exists()
    assert not (tmp_path / "ethogram.csv").exists()


def test_a_manifest_that_another_program_locks(tmp_path, monkeypatch):
    """Windows refuses to replace a file that Excel has open."""
    labels(tmp_path / "m1.csv")
    draft = discover_study(tmp_path)
    (tmp_path / "recordings.csv").write_text("mine", encoding="utf-8")

    def refuse(self, target):
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(EthobenchError, match=r"cannot be written \(Permission denied\): close it in other programs such as Excel"):
        draft.write(overwrite=True)
    assert (tmp_path / "recordings.csv").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m1.csv", "recordings.csv"]


def test_a_folder_that_is_not_writable(tmp_path, monkeypatch):
    labels(tmp_path / "m1.csv")
    draft = discover_study(tmp_path)

    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)  # permissions do not apply to root
    with pytest.raises(EthobenchError, match=r"cannot be written \(Permission denied\)"):
        draft.write()
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["m1.csv"]


def test_labels_twice_as_long_as_the_poses_are_named_by_check_and_load(tmp_path):
    from ethobench.datasets.study_check import check_study

    poses(tmp_path / f"m1{DLC}.csv")
    frames(tmp_path / "m1.csv", 2 * N)
    discover_study(tmp_path, rate=30).write()
    (problem,) = check_study(tmp_path).problems
    assert f"labels for {2 * N} frames, but signals for {N}" in str(problem)


def test_streams(tmp_path):
    text = "Caltech Behavior Annotator - Annotation File\n\nConfiguration file:\nrest\tr\nrun\tu\nbite\tb\n\n"
    text += f"S1:\tstart\tend\ttype\n-----\n1 20 rest\n21 {N} run\n\nS2:\tstart\tend\ttype\n-----\n1 {N} bite\n"
    (tmp_path / "m1.txt").write_text(text, encoding="utf-8")
    draft = discover_study(tmp_path)
    assert ([row["entry"] for row in draft.rows], draft.ethogram.names) == (["S1"], ("rest", "run"))
    assert any("S1 (2 bouts), S2 (1 bouts); used: S1" in guess for guess in draft.guesses)
    other = discover_study(tmp_path, entry="S2")
    assert ([row["entry"] for row in other.rows], other.ethogram.names) == (["S2"], ("bite",))
    other.write()
    assert len(load_dataset(tmp_path)["m1"].annotation()) == 1
    with pytest.raises(EthobenchError, match="no annotation file has a stream or channel 'S3'; there are: S1, S2"):
        discover_study(tmp_path, entry="S3")


def test_one_table_with_the_signals_and_labels_of_many_animals(tmp_path):
    rows = [f"{name},{i / 25:.2f},{i % 7},0.5,9.8,{'rest' if i < 40 else 'run'}" for name in ("s1", "s2") for i in range(100)]
    (tmp_path / "all.csv").write_text("\n".join(["animal,time,ax,ay,az,label", *rows]) + "\n", encoding="utf-8")
    assert cells(tmp_path, "recording", "rate", "signals", "annotations", "entry") == [
        (name, "25", "all.csv", "all.csv", name) for name in ("s1", "s2")
    ]
    assert [len(r.signals) for r in load_dataset(tmp_path)] == [100, 100]
    assert {match.role for match in discover_study(tmp_path).matches} == {"signals and annotations"}


def test_drafts_are_json(tmp_path):
    labels(tmp_path / "m1.csv")
    content = json.loads(json.dumps(discover_study(tmp_path).to_dict()))
    assert content["matches"] == [{"recording": "m1", "path": "m1.csv", "role": "annotations", "reason": "name", "entry": ""}]


FILES = st.lists(
    st.tuples(
        st.sampled_from(["", "anna/", "ben/", "mouse1/", "mouse2/day1/", "poses/"]),
        st.sampled_from(["m1", "m2", "m1_2", "mouse1_day1", "Käfig 1"]),
        st.sampled_from(["", "_anna", "_ben", "_initial", DLC, f"{DLC}_filtered", ".analysis"]),
        st.sampled_from(["poses", "labels", "frames", "seconds", "boris", "junk", "empty"]),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


@given(files=FILES, rate=st.sampled_from([None, 30.0]))
def test_any_files_give_a_draft_that_loads_or_an_error_that_says_why(files, rate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for subfolder, name, suffix, kind in files:
        path = folder / f"{subfolder}{name}{suffix}{'.boris' if kind == 'boris' else f'-{kind[0]}.csv' if kind == 'labels' else '.csv'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "boris":
            boris(path, {f"{name}{suffix}": f"{name}.mp4"})
        elif kind in ("junk", "empty"):
            path.write_text("what is this\n" if kind == "junk" else "", encoding="utf-8")
        else:
            {"poses": poses, "labels": labels, "frames": frames, "seconds": seconds}[kind](path)
    try:
        draft = discover_study(folder, rate=rate)
    except EthobenchError as error:
        assert str(error)
        assert sorted(p.name for p in folder.iterdir() if p.suffix == ".csv" and p.name in ("recordings.csv", "ethogram.csv")) == []
    else:
        draft.write()
        data = load_dataset(folder)
        assert tuple(r.id for r in data) == draft.recordings
        listed = {match.path for match in draft.matches} | {unused.path for unused in draft.unused}
        on_disk = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()} - {Path("recordings.csv"), Path("ethogram.csv")}
        assert listed == on_disk
    finally:
        shutil.rmtree(folder)


@pytest.mark.data
def test_two_raters_with_two_passes(data, tmp_path):
    for source in (data / "boris_two_raters").glob("*/DLC*.csv"):
        suffix = "_initial" if source.parent.name.endswith("initial") else "_reoffset"
        target = tmp_path / source.parent.name / f"{source.stem}{suffix}.csv"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
    rows = cells(tmp_path, "recording", "annotator", "rate")
    assert sorted(rows) == sorted(
        (f"DLC{i}", f"{who}_{which}", "30") for i in range(1, 6) for who in ("brett", "donnie") for which in ("initial", "reannotation")
    )


@pytest.mark.data
@pytest.mark.slow
def test_rats_in_a_flat_folder(data, tmp_path):
    for name in ("01", "02", "04"):
        shutil.copy(data / "rats" / "poses" / f"{name}.csv", tmp_path / f"{name}DLC_resnet50_ratsMay1shuffle1_500000.csv")
        shutil.copy(data / "rats" / "annotations" / f"{name}.txt", tmp_path)
    assert [row[:2] for row in cells(tmp_path, "recording", "rate", rate=30)] == [("01", "30"), ("02", "30"), ("04", "30")]
    reference = load_dataset(data / "rats")
    for recording in load_dataset(tmp_path):
        ours, theirs = recording.annotation(), reference[recording.id].annotation()
        assert (ours.start.tolist(), ours.stop.tolist()) == (theirs.start.tolist(), theirs.stop.tolist())


@pytest.mark.data
@pytest.mark.parametrize(("folder", "n"), [pytest.param("multirater_oft", 20, marks=pytest.mark.slow), ("video", 1)])
def test_other_real_folders(data, tmp_path, folder, n):
    target = tmp_path / folder
    shutil.copytree(data / folder, target)
    draft = discover_study(target)
    assert len(draft.recordings) == n
    draft.write()
    with pytest.warns(ReadWarning) if folder == "multirater_oft" else pytest.MonkeyPatch.context():
        loaded = load_dataset(target)
    assert len(loaded) == n
    if folder == "multirater_oft":
        assert set(loaded.annotators) == {"Jin", "Furkan", "Oliver"}
    else:
        assert loaded[draft.recordings[0]].video is not None
        assert loaded[draft.recordings[0]].rate == pytest.approx(30)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["nwb", "solomon", "simba", "sleap", "jabs", "boris", "bento", "dlc", "deepethogram", "observer"])
def test_sample_files_of_each_format(data, tmp_path, name):
    target = tmp_path / name
    shutil.copytree(data / "formats" / name, target)
    try:
        draft = discover_study(target)
    except EthobenchError as error:
        assert "candidates" in str(error)
        return
    draft.write()
    assert len(load_dataset(target)) == len(draft.recordings)


def test_a_table_of_labels_of_several_animals_is_divided(tmp_path: Path) -> None:
    for name in ("Fox_1", "Fox_2"):
        rows = "".join(f"2024-05-01T10:00:{i / 10:06.3f},0.1,0.2,{0.9 + i % 3}\n" for i in range(N * 5))
        (tmp_path / f"{name}.csv").write_text("timestamp,ax,ay,az\n" + rows, encoding="utf-8")
    bouts = {
        "fox_1": "10:00:10,2024-05-01 10:00:14,rest",
        "fox_2": "10:00:20,2024-05-01 10:00:26,walk",
        "fox_9": "10:00:01,2024-05-01 10:00:09,run",
    }
    (tmp_path / "scores.csv").write_text(
        "animal,start,end,behavior\n" + "".join(f"{a},2024-05-01 {b}\n" for a, b in bouts.items()), encoding="utf-8"
    )
    draft = discover_study(tmp_path)
    assert [(row["recording"], row["annotations"], row["subject"], row["rate"]) for row in draft.rows] == [
        ("Fox_1", "scores.csv", "fox_1", "10"),
        ("Fox_2", "scores.csv", "fox_2", "10"),
    ]
    assert any("fox_9" in guess for guess in draft.guesses)
    draft.write()
    data = load_dataset(tmp_path)
    bout = {r.id: (r.annotation().start.tolist(), r.annotation().stop.tolist()) for r in data}
    assert bout == {"Fox_1": ([100], [140]), "Fox_2": ([200], [260])}
