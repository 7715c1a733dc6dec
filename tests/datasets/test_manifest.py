"""A user's own recordings.csv."""

from __future__ import annotations

import unicodedata
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, load_dataset, write_annotation
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ReadWarning
from ethobench.datasets import manifest
from ethobench.formats import read_at_rate

N = 100


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two animals with a tag each; the first is annotated by two people."""
    root = tmp_path / "lab"
    for name in ("m1", "m2"):
        rows = "\n".join(f"{i / 10},{np.sin(i):.4f},{np.cos(i):.4f},1.5" for i in range(N))
        write(root / "tags" / f"{name}.csv", f"time,AccX,AccY,AccZ\n{rows}\n")
    ethogram = Ethogram(["rest", "run", "other"], "other")
    for name, shift in (("m1_ann1", 0), ("m1_ann2", 3), ("m2_ann1", 5)):
        codes = np.roll(np.arange(N) // 20 % 3, shift)
        (root / "labels").mkdir(exist_ok=True)
        write_annotation(Annotation.from_frames(codes, ethogram, 10), root / "labels" / f"{name}.csv", "tidy")
    write(
        root / "recordings.csv",
        "recording,individual,rate,signals,annotations,annotator,split,fold,sex\n"
        "m1,mouse1,10,tags/m1.csv,labels/m1_ann1.csv,ann1,train,0,f\n"
        "m1,mouse1,10,tags/m1.csv,labels/m1_ann2.csv,ann2,train,0,f\n"
        "m2,mouse2,10,tags\\m2.csv,labels\\m2_ann1.csv,ann1,test,1,m\n",
    )
    return root


def test_folders_and_files_load(folder):
    data = load_dataset(folder)
    assert load_dataset(folder / "recordings.csv").version == data.version
    assert (len(data), data.individuals, data.annotators) == (2, ("mouse1", "mouse2"), ("ann1", "ann2"))
    assert data.folds == {"m1": 0, "m2": 1}
    assert data.splits == {"m1": "train", "m2": "test"}
    assert data["m1"].metadata["sex"] == "f"
    assert data["m1"].signals.channels == ("AccX", "AccY", "AccZ")
    assert data["m2"].annotation("ann1").to_codes()[5:25].tolist() == [0] * 20
    assert data.name == "lab"


def test_the_version_changes_with_the_content(folder):
    before = load_dataset(folder).version
    path = folder / "labels" / "m2_ann1.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",rest,", ",run,"), encoding="utf-8")
    assert load_dataset(folder).version != before


def test_all_problems_are_reported_at_once_with_their_rows(folder):
    write(
        folder / "recordings.csv",
        "recording,individual,rate,signals,annotations,annotator,fold\n"
        "m1,mouse1,fast,tags/m1.csv,labels/m1_ann1.csv,ann1,0\n"
        ",mouse1,10,tags/m1.csv,labels/m1_ann1.csv,ann1,0\n"
        "m2,mouse2,10,tags/none.csv,labels/none.csv,ann1,x\n",
    )
    with pytest.raises(EthobenchError) as caught:
        load_dataset(folder)
    text = str(caught.value)
    assert "5 problems" in text
    for line in (
        "row 2: rate must be a positive number, got 'fast'",
        "row 3: no name",
        "row 4: signals: tags/none.csv does not exist",
        "row 4: annotations",
        "row 4: fold must be an integer >= 0, got 'x'",
    ):
        assert line in text


def test_rows_of_one_recording_must_agree(folder):
    path = folder / "recordings.csv"
    path.write_text(
        path.read_text(encoding="utf-8").replace("m1,mouse1,10,tags/m1.csv,labels/m1_ann2", "m1,mouse9,10,tags/m1.csv,labels/m1_ann2"),
        encoding="utf-8",
    )
    with pytest.raises(EthobenchError, match="row 3: individual of 'm1' is 'mouse9' here, but 'mouse1' in row 2"):
        load_dataset(folder)


def test_duplicate_annotators_are_refused(folder):
    path = folder / "recordings.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("ann2,train", "ann1,train"), encoding="utf-8")
    with pytest.raises(EthobenchError, match="duplicate annotator 'ann1' of 'm1'"):
        load_dataset(folder)


def test_labels_longer_or_shorter_than_the_signals(folder):
    ethogram = Ethogram(["rest", "run"])
    for name, n in (("m1_ann1", N + 1), ("m2_ann1", N - 9)):
        write_annotation(
            Annotation.from_frames(np.zeros(n, dtype=int), ethogram, 10), folder / "labels" / f"{name}.csv", "tidy", overwrite=True
        )
    with pytest.warns(ReadWarning, match="2 recordings were read with notes"):
        data = load_dataset(folder)
    assert "end 1 frames after the signals; cropped" in str(data["m1"].notes[0])
    assert data["m1"].annotation("ann1").n_frames == N
    assert "end 9 frames before the signals; the remaining frames are unobserved" in str(data["m2"].notes[0])
    assert data["m2"].annotation().to_codes()[-9:].tolist() == [-1] * 9


def test_labels_far_longer_than_the_signals_are_refused(folder):
    labels = Annotation.from_frames(np.zeros(N + N // 50, dtype=int), Ethogram(["rest", "run"]), 10)
    write_annotation(labels, folder / "labels" / "m1_ann1.csv", "tidy", overwrite=True)
    with pytest.raises(EthobenchError, match=rf"labels for {N + N // 50} frames, but signals for {N}: are they from another recording"):
        load_dataset(folder)


def test_ethogram_orders_describes_and_limits_behaviors(folder):
    write(folder / "ethogram.csv", "behavior,definition,background,point,key\nrun,fast,no,no,r\nrest,,no,no,\nother,,yes,no,o\n")
    data = load_dataset(folder)
    assert data.ethogram.names == ("run", "rest", "other")
    assert data.ethogram["run"].definition == "fast"
    assert data["m2"].annotation().ethogram == data.ethogram
    write(folder / "ethogram.csv", "behavior\nrun\nother\n")
    with pytest.raises(EthobenchError, match="uses 'rest', not in the ethogram"):
        load_dataset(folder)
    write(folder / "ethogram.csv", "behavior,background\nrun,yes\nrest,yes\nother,\n")
    with pytest.raises(FormatError, match="two behaviors are background"):
        load_dataset(folder)


def test_keypoints_are_read(folder):
    write(folder / "keypoints.csv", "keypoint,role,mirror\nsnout,nose,\nearL,left_ear,earR\n")
    keypoints = load_dataset(folder).keypoints
    assert (keypoints["snout"].role, keypoints["earL"].mirror) == ("nose", "earR")


def test_corrections_are_added_and_the_manifest_is_unchanged(folder):
    before = (folder / "recordings.csv").read_bytes()
    annotation = Annotation.from_frames(np.ones(N, dtype=int), Ethogram(["rest", "run", "other"], "other"), 10)
    (folder / "corrections").mkdir()
    write_annotation(annotation, folder / "corrections" / "m2.csv", "tidy")
    write(folder / "corrections" / "recordings.csv", "recording,individual,rate,annotations,annotator\nm2,mouse2,10,m2.csv,reviewer\n")
    data = load_dataset(folder)
    assert set(data["m2"].annotations) == {"ann1", "reviewer"}
    assert data["m2"].annotation("reviewer").to_codes().tolist() == [1] * N
    assert (folder / "recordings.csv").read_bytes() == before


def test_recordings_without_labels_or_signals(folder):
    write(
        folder / "recordings.csv",
        "recording,rate,signals,annotations\nunlabeled,10,tags/m1.csv,\nlabels_only,10,,labels/m2_ann1.csv\n",
    )
    data = load_dataset(folder)
    assert not data["unlabeled"].annotations
    assert data["unlabeled"].n_frames == N
    assert data["labels_only"].signals is None
    assert data["labels_only"].individual == "labels_only"


def test_two_subjects_in_two_files_become_one_annotation(folder):
    write(
        folder / "recordings.csv",
        "recording,rate,annotations,annotator,subject\nm,10,labels/m1_ann1.csv,me,left\nm,10,labels/m1_ann2.csv,me,right\n",
    )
    annotation = load_dataset(folder)["m"].annotation("me")
    assert annotation.subjects == ("left", "right")
    assert annotation.is_exclusive


def test_spreadsheet_dialects(folder):
    path = folder / "recordings.csv"
    text = path.read_text(encoding="utf-8").replace(",", ";").replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(load_dataset(folder)) == 2


def test_paths_that_are_not_datasets(tmp_path, folder):
    with pytest.raises(NotFoundError, match="is not a dataset: it has neither"):
        load_dataset(tmp_path)
    with pytest.raises(FormatError, match="no such file"):
        load_dataset(tmp_path / "recordings.csv")
    write(folder / "recordings.csv", "number,where\na,b\n")
    with pytest.raises(FormatError, match="no column 'recording'"):
        load_dataset(folder)
    with pytest.raises(NotFoundError, match="did you mean 'bebe'"):
        load_dataset("bebr/HAR")


def test_any_row_may_have_the_values_of_the_recording(folder):
    write(
        folder / "recordings.csv",
        "recording,individual,rate,signals,annotations,annotator,fold,split\n"
        "m1,,,,labels/m1_ann1.csv,ann1,,\n"
        "m1,mouse7,10,tags/m1.csv,labels/m1_ann2.csv,ann2,2,test\n",
    )
    data = load_dataset(folder)
    assert data["m1"].individual == "mouse7"
    assert len(data["m1"].signals) == N
    assert (data.folds, data.splits) == ({"m1": 2}, {"m1": "test"})


@pytest.mark.parametrize(
    ("column", "name"),
    [
        *(("individual", name) for name in ("animal", "Animal ID", "subject_id", "mouse", "individuals")),
        *(("rate", name) for name in ("fps", "FPS", "frame rate", "framerate", "frame_rate")),
        *(("signals", name) for name in ("poses", "pose", "tracking", "signal")),
        *(("annotations", name) for name in ("labels", "annotation", "labels_file", "annotationss")),
        *(("annotator", name) for name in ("rater", "observer", "coder")),
        *(("recording", name) for name in ("id", "video_id", "name")),
    ],
)
def test_synonyms_and_misspellings_of_columns_are_refused(folder, column, name):
    path = folder / "recordings.csv"
    header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([",".join(name if c == column else c for c in header.split(",")), *rows]), encoding="utf-8")
    with pytest.raises(EthobenchError, match=rf"header: column '{name.lower()}' is not known; did you mean '{column}'\?"):
        load_dataset(folder)


def test_columns_of_the_user_are_metadata(folder):
    path = folder / "recordings.csv"
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    extra = {"treatment": "saline", "weight": "21", "id": "77", "mouse": "b", "date": "2024-05-01", "name": "x"}
    lines = [f"{header},{','.join(extra)}", *(f"{row},{','.join(extra.values())}" for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    data = load_dataset(folder)
    assert {column: data["m1"].metadata[column] for column in extra} == extra


@pytest.mark.parametrize(("before", "after", "suggestion"), [
    ("tags/m1.csv", "tags/m1.cvs", "tags/m1.csv"),
    ("tags/m1.csv", "m1.csv", "tags/m1.csv"),
    ("labels/m1_ann2.csv", "labels/M1_ann2.CSV", "labels/m1_ann2.csv"),
    ("tags/m1.csv", "nothing_like_it.parquet", None),
])  # fmt: skip
def test_similar_paths_are_suggested(folder, before, after, suggestion):
    path = folder / "recordings.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    with pytest.raises(EthobenchError) as caught:
        load_dataset(folder)
    expected = f"{after} does not exist" + (f"; did you mean {suggestion}?" if suggestion else "")
    assert expected in str(caught.value).splitlines()[1]
    assert ("did you mean" in str(caught.value)) == (suggestion is not None)


@pytest.mark.parametrize(("in_table", "on_disk"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_umlauts_may_be_composed_or_not(folder, in_table, on_disk):
    name = "Mäuse über Nacht/kä fig.csv"
    target = folder / unicodedata.normalize(on_disk, name)
    target.parent.mkdir()
    (folder / "tags" / "m1.csv").rename(target)
    path = folder / "recordings.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("tags/m1.csv", unicodedata.normalize(in_table, name)), encoding="utf-8")
    assert len(load_dataset(folder)["m1"].signals) == N


@pytest.mark.parametrize("column", ["entry", "channel"])
def test_entries_of_files_with_several(folder, column):
    rows = "recording,behavior,start,stop\nmorning,rest,0,50\nevening,run,0,100\n"
    write(folder / "labels" / "both.csv", rows)
    write(folder / "recordings.csv", f"recording,rate,annotations,{column}\nm1,10,labels/both.csv,evening\n")
    assert load_dataset(folder)["m1"].annotation().ethogram.names[load_dataset(folder)["m1"].annotation().behavior[0]] == "run"
    write(folder / "recordings.csv", "recording,rate,annotations\nm1,10,labels/both.csv\n")
    with pytest.raises(EthobenchError, match="name one in column 'entry': morning, evening"):
        load_dataset(folder)


def test_a_folder_without_a_manifest_names_the_command_that_drafts_one(tmp_path):
    for name in (tmp_path, tmp_path / "recordings.csv"):
        with pytest.raises(EthobenchError, match=f"`ethobench study make {tmp_path}`"):
            load_dataset(name)


@pytest.mark.parametrize(("column", "value"), [("fold", "1.5"), ("rate", '"1,000"')])
def test_ambiguous_numbers_are_refused(folder, column, value):
    write(folder / "recordings.csv", f"recording,{column},annotations\nm1,{value},labels/m1_ann1.csv\n")
    with pytest.raises(EthobenchError, match=f"{column} must be"):
        load_dataset(folder)


def test_duplicate_columns_and_the_separator_line_of_excel(folder):
    write(folder / "recordings.csv", "recording,recording,annotations\nm1,m2,labels/m1_ann1.csv\n")
    with pytest.raises(FormatError, match="duplicate columns: recording"):
        load_dataset(folder)
    write(folder / "recordings.csv", "sep=;\nrecording;annotations\nm1;labels/m1_ann1.csv\n")
    assert len(load_dataset(folder)) == 1


@pytest.mark.slow
@pytest.mark.data
def test_rats(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        rats = load_dataset(data / "rats" / "recordings.csv")
        threat = load_dataset(data / "rats" / "recordings_s2.csv")
    assert len(rats) == 46
    assert rats["01"].n_frames == 14_734
    assert rats.ethogram.names == ("base", "social", "nonsocial", "aggression")
    assert rats.ethogram.background_name == "base"
    assert rats["01"].annotation().to_codes()[535] == rats.ethogram.code("social")
    assert rats["01"].annotation().to_codes()[534] == rats.ethogram.code("base")
    assert len(rats["01"].signals) == 14_734
    assert (len(threat), len(threat.ethogram)) == (38, 8)


@pytest.mark.slow
@pytest.mark.data
def test_bebe_har(data, monkeypatch):
    har = load_dataset("bebe/HAR")
    assert (len(har), len(har.individuals), har.n_frames) == (61, 30, 1_122_772)
    n_labeled = sum(int((r.annotation().stop - r.annotation().start).sum()) for r in har)
    assert 1 - n_labeled / har.n_frames == pytest.approx(0.334, abs=0.001)
    assert sorted({*har.folds.values()}) == [0, 1, 2, 3, 4]
    assert har["exp01_user01"].signals.values[0, 0] == 0.91806


@pytest.mark.parametrize(
    "text", ["behavior,alias\nrunning,run;r\nrest,\nother,\n", "behavior,alias\nrunning,r\nrunning,run\nrest,\nother,\n"]
)
def test_aliases_of_behaviors(folder, text):
    write(folder / "ethogram.csv", text)
    with pytest.warns(ReadWarning, match="'run' is read as 'running'"):
        data = load_dataset(folder)
    assert data.ethogram.names == ("running", "rest", "other")
    annotation = data["m1"].annotation("ann1")
    assert annotation.ethogram.names == data.ethogram.names
    assert annotation.to_codes()[20:40].tolist() == [0] * 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("behavior,alias\nrunning,run\nrest,run\nother,\n", "'run' is an alias of both 'running' and 'rest'; keep one"),
        ("behavior,alias\nrunning,rest\nrest,\nother,\n", "'rest' is both a behavior and an alias of 'running'"),
        ("behavior,alias\nrun,\nrun,\nother,\n", "duplicate behavior 'run'"),
    ],
)
def test_aliases_that_contradict_each_other(folder, text, message):
    write(folder / "ethogram.csv", text)
    with pytest.raises(FormatError, match=message):
        load_dataset(folder)


def test_behaviors_are_renamed_before_the_ethogram_is_applied(folder):
    write(folder / "ethogram.csv", "behavior\nwalk\nrest\nother\n")
    data = load_dataset(folder, rename={"run": "walk"})
    assert data["m1"].annotation("ann1").to_codes()[20:40].tolist() == [0] * 20
    with pytest.raises(NotFoundError, match=r"no behavior 'jump'.*run"):
        load_dataset(folder, rename={"jump": "walk"})
    tags = load_dataset("synthetic/tag", individuals=1, seconds=30)
    first = tags.ethogram.names[0]
    assert load_dataset("synthetic/tag", individuals=1, seconds=30, rename={first: "x"}).ethogram.names[0] == "x"
    with pytest.raises(NotFoundError, match="no behavior 'jump'"):
        load_dataset("synthetic/tag", individuals=1, seconds=30, rename={"jump": "x"})


def test_the_rate_of_a_manifest_is_given_by_the_user(folder):
    from ethobench import ClockOrigin

    assert {r.clock_origin for r in load_dataset(folder)} == {ClockOrigin.GIVEN}
    text = (folder / "recordings.csv").read_text(encoding="utf-8").replace(",10,", ",,")
    assert {r.clock_origin for r in load_dataset(write(folder / "recordings.csv", text).parent)} == {ClockOrigin.STATED}
    write(folder / "labels" / "seconds.csv", "behavior,start,stop\nrun,1.0,2.0\n")
    write(folder / "recordings.csv", "recording,annotations\nm1,labels/seconds.csv\n")
    assert {r.clock_origin for r in load_dataset(folder)} == {ClockOrigin.ASSUMED}


def dated_study(folder: Path) -> Path:
    """A table with signals and labels of two animals, and bouts of the first with dates; no rate anywhere."""
    rows = [
        f"{animal},2024-05-01T12:0{minute}:{i // 10:02d}.{i % 10}00,{np.sin(i):.4f},{np.cos(i):.4f},0.1,{'rest' if i < 50 else 'run'}"
        for animal, minute in (("a", 0), ("b", 5))
        for i in range(N)
    ]
    write(folder / "tags.csv", "animal,timestamp,ax,ay,az,label\n" + "\n".join(rows) + "\n")
    write(
        folder / "bouts.csv",
        "start,stop,behavior\n2024-05-01 12:00:02,2024-05-01 12:00:04.5,rest\n2024-05-01 12:00:06,2024-05-01 12:00:30,run\n",
    )
    manifest = "recording,individual,signals,annotations,annotator,entry\n"
    write(folder / "recordings.csv", manifest + "one,a,tags.csv,tags.csv,column,a\ntwo,b,tags.csv,tags.csv,column,b\n")
    return folder


def test_one_table_has_the_signals_and_labels_of_all_animals(tmp_path):
    with pytest.warns(ReadWarning, match="2 recordings were read with notes"):
        data = load_dataset(dated_study(tmp_path))
    assert [(r.id, r.individual, r.rate, r.n_frames, r.start_time.minute) for r in data] == [("one", "a", 10, N, 0), ("two", "b", 10, N, 5)]
    assert data["two"].annotation().spans("run").start.tolist() == [50]
    assert data["two"].signals.channels == ("ax", "ay", "az")
    assert data["two"].metadata["units"]["ax"] == "g"
    assert [note.code for note in data["two"].notes] == ["recognized-columns"]


def test_bouts_with_dates_are_aligned_with_signals_that_have_dates(tmp_path):
    folder = dated_study(tmp_path)
    write(folder / "recordings.csv", "recording,individual,signals,annotations,entry\na,a,tags.csv,bouts.csv,\n")
    with pytest.warns(ReadWarning):
        (recording,) = load_dataset(folder)
    annotation = recording.annotation()
    assert (annotation.rate, annotation.n_frames) == (10, N)
    assert (annotation.start.tolist(), annotation.stop.tolist()) == ([20, 60], [45, N])
    assert annotation.observed.of("rest").start.tolist() == [20]  # nothing is known about the time before the first bout
    assert any(note.code == "aligned" for note in recording.notes)
    write(folder / "bouts.csv", "start,stop,behavior\n2023-05-01 12:00:02,2023-05-01 12:00:04.5,rest\n")
    with pytest.raises(EthobenchError, match="they do not overlap"):
        load_dataset(folder)


def test_recordings_in_different_units_are_noted(folder):
    for name, gravity in (("m1", 1.0), ("m2", 9.81)):
        rows = "\n".join(f"{i / 10},{gravity * np.sin(i):.4f},{gravity * np.cos(i):.4f},0" for i in range(N))
        write(folder / "tags" / f"{name}.csv", f"time,AccX,AccY,AccZ\n{rows}\n")
    with pytest.warns(ReadWarning, match="AccX has different units: 'm1' in g, 'm2' in m/s²"):
        data = load_dataset(folder)
    assert all("different-units" in {note.code for note in recording.notes} for recording in data)


def _tags_with_one_table_of_labels(folder: Path, header: str, *rows: str) -> Path:
    for number, name in enumerate(("fox0", "fox1")):
        times = (datetime(2024, 5, 1 + number, 10) + timedelta(seconds=i / 10) for i in range(1000))
        lines = [f"{time.isoformat()},0.1,0.2,{0.9 + i % 3}" for i, time in enumerate(times)]
        (folder / f"{name}.csv").write_text("timestamp,ax,ay,az\n" + "\n".join(lines) + "\n")
    labels = ["fox0,2024-05-01 10:00:10,2024-05-01 10:00:20,rest", "fox1,2024-05-02 10:00:30,2024-05-02 10:00:50,walk"]
    (folder / "labels.csv").write_text("animal,start,end,behaviour\n" + "\n".join(labels) + "\n")
    (folder / "recordings.csv").write_text("\n".join((header, *rows)) + "\n")
    return folder


def test_labels_of_one_animal_are_selected_from_a_table_of_several(tmp_path: Path) -> None:
    header = "recording,individual,rate,signals,annotations,annotator,subject"
    rows = [f"{name},{name},10,{name}.csv,labels.csv,anna,{name}" for name in ("fox0", "fox1")]
    with pytest.warns(ReadWarning, match="times are dates"):
        data = load_dataset(_tags_with_one_table_of_labels(tmp_path, header, *rows))
    first, second = (data[name].annotation() for name in ("fox0", "fox1"))
    assert (first.start.tolist(), first.stop.tolist(), first.subjects) == ([100], [200], ("fox0",))
    assert (second.start.tolist(), second.stop.tolist(), second.subjects) == ([300], [500], ("fox1",))
    assert np.stack(first.observed.frames).tolist() == [[100], [200]]  # not until the last bout of another animal
    assert np.stack(second.observed.frames).tolist() == [[300], [500]]


def test_the_animal_that_wore_the_tag_is_selected_if_its_name_is_a_subject(tmp_path: Path) -> None:
    header = "recording,individual,rate,signals,annotations,annotator"
    rows = ["monday,fox0,10,fox0.csv,labels.csv,anna", "fox1,,10,fox1.csv,labels.csv,anna"]
    with pytest.warns(ReadWarning):
        data = load_dataset(_tags_with_one_table_of_labels(tmp_path, header, *rows))
    assert [data[name].annotation().subjects for name in ("monday", "fox1")] == [("fox0",), ("fox1",)]
    assert "subject" in {note.code for note in data["monday"].notes}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "a,b,10,fox0.csv,labels.csv,anna,",
            "bouts of 2 subjects .'fox0', 'fox1'., but the signals are of one animal; name it in column 'sub",
        ),
        ("a,b,10,fox0.csv,labels.csv,anna,fox2", "no bout of subject 'fox2'; subjects: 'fox0', 'fox1'"),
    ],
)
def test_labels_of_other_animals_are_refused(tmp_path: Path, row: str, message: str) -> None:
    header = "recording,individual,rate,signals,annotations,annotator,subject"
    with pytest.raises(EthobenchError, match=message):
        load_dataset(_tags_with_one_table_of_labels(tmp_path, header, row))


def test_wrong_offsets_and_missing_cameras_are_listed(tmp_path):
    (tmp_path / "top.mp4").write_bytes(b"")
    table = "recording,video,video_offset\nm1,top.mp4;side.mp4,0;1\nm2,top.mp4,0;1\nm3,top.mp4,soon\n"
    (tmp_path / "recordings.csv").write_text(table, encoding="utf-8")
    with pytest.raises(EthobenchError) as caught:
        load_dataset(tmp_path)
    message = str(caught.value)
    assert "side.mp4 does not exist" in message
    assert "row 3: video_offset must have one number of seconds for each of the 1 videos" in message
    assert "got 'soon'" in message


def test_a_file_of_several_annotators_is_read_once_per_recording(tmp_path, monkeypatch):
    write(
        tmp_path / "labels.csv",
        "recording,rater,start,stop,behavior\na,anna,0,1,rest\na,ben,0,2,rest\nb,anna,1,3,run\nb,ben,2,3,run\n",
    )
    rows = "".join(f"{name},10,labels.csv,{rater},{name}\n" for name in "ab" for rater in ("anna", "ben"))
    write(tmp_path / "recordings.csv", f"recording,rate,annotations,annotator,entry\n{rows}")
    entries = []

    def read_and_count(*args, entry, **options):
        entries.append(entry)
        return read_at_rate(*args, entry=entry, **options)

    monkeypatch.setattr(manifest, "read_at_rate", read_and_count)
    data = load_dataset(tmp_path)
    assert entries == ["a", "b"]
    spans = {(r.id, name): (a.start.tolist(), a.stop.tolist()) for r in data for name, a in r.annotations.items()}
    assert spans == {("a", "anna"): ([0], [10]), ("a", "ben"): ([0], [20]), ("b", "anna"): ([10], [30]), ("b", "ben"): ([20], [30])}
