"""Corrections on the disk: whole, never over somebody else's work, and merged by load_dataset."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys

import pytest

from ethobench import Annotation, Recording, load_dataset, read_annotation
from ethobench.app.corrections import Corrections, check_annotator
from ethobench.app.opening import open_project
from ethobench.app.project import export
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, ReadWarning
from ethobench.formats import formats

MARK = {"kind": "mark", "start": 0, "stop": 30, "behavior": "groom"}


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_correction_is_a_new_annotator_that_load_dataset_merges(lab, project):
    before = contents(lab)
    project.start(0, " zoe ", "anna")
    track = project.edit(0, "zoe", 0, [MARK])
    data = load_dataset(lab)
    assert data.annotators == ("anna", "ben", "zoe")
    assert data["m1"].annotation("zoe") == track.annotation
    assert data["m1"].annotation("zoe").to_codes()[:60].tolist() == [2] * 30 + [0] * 20 + [1] * 10
    assert data["m1"].individual == "mouse1"
    assert {name: data for name, data in contents(lab).items() if not name.startswith("corrections/")} == before
    assert sorted(p.name for p in (lab / "corrections").iterdir()) == ["m1.zoe.csv", "recordings.csv"]


def test_the_displayed_state_is_the_saved_state(lab, project):
    file = lab / "corrections" / "m1.zoe.csv"
    project.start(0, "zoe", "anna")
    start = read_annotation(file)
    project.edit(0, "zoe", 0, [MARK])
    changed = read_annotation(file)
    assert changed != start
    assert project.undo(0, "zoe", 1).annotation == start
    assert read_annotation(file) == start
    project.redo(0, "zoe", 2)
    assert read_annotation(file) == changed
    assert project.redo(0, "zoe", 3).revision == 3


def test_a_new_session_continues_the_last_one(lab, project):
    project.start(0, "zoe", "anna")
    project.edit(0, "zoe", 0, [MARK])
    project.start(1, "zoe")
    again = open_project([str(lab)])
    assert [t.name for t in again.recording(0).tracks] == ["anna", "ben", "zoe"]
    assert [t.kind for t in again.recording(0).tracks] == ["annotator", "annotator", "correction"]
    assert again.recording(0).track("zoe").annotation == project.recording(0).track("zoe").annotation
    again.edit(0, "zoe", 0, [{**MARK, "start": 30, "stop": 40}])
    assert load_dataset(lab)["m1"].annotation("zoe").to_codes()[:45].tolist() == [2] * 40 + [0] * 5
    assert len((lab / "corrections" / "recordings.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_labels_from_scratch_are_observed_only_where_watched(lab, project):
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [{**MARK, "start": 100, "stop": 120}, {"kind": "clear", "start": 120, "stop": 150}])
    annotation = load_dataset(lab)["m2"].annotation("zoe")
    assert [*zip(*annotation.observed.frames, strict=True)] == [(100, 150)]


@pytest.mark.parametrize("name", ["anna", "Ben", "", "  ", "a\nb", "x" * 61, "all", "Consensus", None, 5, "a\u0000b"])
def test_names_that_are_refused(lab, project, name):
    with pytest.raises(EthobenchError, match=r"name|annotator"):
        project.start(1, name)
    assert not (lab / "corrections").exists()


def test_a_name_can_be_created_only_once(project):
    project.start(0, "zoe")
    with pytest.raises(EthobenchError, match="already an annotator"):
        project.start(0, "ZOE")


def test_only_corrections_can_be_changed(project):
    for act in (lambda: project.edit(0, "anna", 0, [MARK]), lambda: project.undo(0, "anna", 0), lambda: project.redo(0, "nobody", 0)):
        with pytest.raises(EthobenchError, match="not a correction"):
            act()
    with pytest.raises(NotFoundError):
        project.start(0, "zoe", "nobody")
    with pytest.raises(NotFoundError):
        project.start(9, "zoe")


def test_a_change_of_an_older_state_is_refused(project):
    project.start(0, "zoe", "anna")
    project.edit(0, "zoe", 0, [MARK])
    with pytest.raises(MismatchError, match="in the meantime"):
        project.edit(0, "zoe", 0, [MARK])


def test_a_file_changed_by_another_program_is_loaded_again(lab, project):
    project.start(0, "zoe", "anna")
    file = lab / "corrections" / "m1.zoe.csv"
    mine = file.read_bytes() + b"m1,rest,590,600,,,zoe\n"
    file.write_bytes(mine)
    with pytest.raises(MismatchError, match="changed by another program"):
        project.edit(0, "zoe", 0, [MARK])
    assert file.read_bytes() == mine
    reloaded = project.recording(0).track("zoe")
    assert (reloaded.revision, len(reloaded.annotation)) == (1, len(project.recording(0).track("anna").annotation) + 1)


def test_an_edit_that_cannot_be_saved_is_discarded(project, monkeypatch):
    project.start(0, "zoe", "anna")
    before = project.recording(0).track("zoe").annotation

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ethobench.app.corrections.write_recordings", full)
    with pytest.raises(OSError, match="No space"):
        project.edit(0, "zoe", 0, [MARK])
    assert project.recording(0).track("zoe").annotation == before
    assert project.recording(0).track("zoe").revision == 0


def test_existing_files_are_never_overwritten(lab, project):
    folder = lab / "corrections"
    folder.mkdir()
    (folder / "M1.Zoe.csv").write_text("precious", encoding="utf-8")
    (folder / "recordings.csv").write_text("recording,annotations,annotator,remark\nm2,../m2_anna.csv,anna2,by hand\n", encoding="utf-8")
    again = open_project([str(lab)])
    again.start(0, "zoe", "anna")
    assert (folder / "M1.Zoe.csv").read_text(encoding="utf-8") == "precious"
    assert (folder / "m1.zoe_2.csv").is_file()
    assert (folder / "recordings.csv").read_text(encoding="utf-8").splitlines() == [
        "recording,annotations,annotator,remark",
        "m2,../m2_anna.csv,anna2,by hand",
        "m1,m1.zoe_2.csv,zoe,",
    ]
    assert load_dataset(lab)["m2"].annotations.keys() == {"anna", "anna2"}
    with pytest.raises(EthobenchError, match="not a correction"):
        again.edit(1, "anna2", 0, [MARK])


def test_hostile_names_stay_in_the_folder(tmp_path, project):
    corrections = Corrections(tmp_path / "out")
    recording = project.recording(0).recording.copy(id="../../<script>alert(1)</script>")
    path = corrections.save(recording, 'x"; rm -rf /', project.recording(0).track("anna").annotation)
    assert path.parent == tmp_path / "out"
    assert path.name == "script_alert_1_script.x_rm_-rf.csv"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab", "out"]
    assert {*Corrections(tmp_path / "out").load()} == {("../../<script>alert(1)</script>", 'x"; rm -rf /')}


def test_long_names_of_any_script_are_saved_and_found_again(tmp_path):
    """A Chinese character has three bytes, a smiley four; names of files have at most 255."""
    beginning = "実験室の小鼠" * 40
    corrections = Corrections(tmp_path)
    annotation = Annotation.from_bouts([0], [5], ["rest"], ["rest"], rate=10, n_frames=600)
    keys = [(f"{beginning}{day}", who) for day in range(3) for who in ("観察者" * 20, "🐭" * 60)]
    files = {corrections.save(Recording(recording), who, annotation) for recording, who in keys}
    assert len(files) == len(keys)
    assert all(len(path.name.encode()) <= 255 for path in files)
    assert {*Corrections(tmp_path).load()} == {*keys}


@pytest.mark.parametrize("format", [f.name for f in formats if f.can_write and "annotations" in f.contents and "poses" not in f.contents])
def test_long_names_can_be_exported(lab, project, format):
    entry = project.recording(0)
    entry.recording = entry.recording.copy(id="実験室の小鼠" * 40)
    project.start(0, "観察者" * 20, "anna")
    exported = export(project, [0], "観察者" * 20, format)
    assert exported.content
    assert len(exported.name.encode()) <= 255


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no links")
def test_links_that_lead_out_are_not_followed(lab, tmp_path, project):
    outside = tmp_path / "outside"
    outside.mkdir()
    project.start(0, "zoe", "anna")
    (lab / "corrections" / "m1.zoe.csv").replace(outside / "m1.csv")
    (lab / "corrections" / "m1.zoe.csv").symlink_to(outside / "m1.csv")
    linked = Corrections(lab / "corrections")
    assert linked.load() == {}
    assert "was not saved by the viewer" in linked.notes[0]
    (lab / "corrections").rename(tmp_path / "elsewhere")
    (lab / "corrections").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EthobenchError, match="points outside"):
        open_project([str(lab)])


def test_many_bouts_are_saved_as_parquet(lab, project, monkeypatch):
    monkeypatch.setattr("ethobench.app.corrections.CSV_BOUTS", 3)
    project.start(0, "zoe", "anna")
    project.edit(0, "zoe", 0, [MARK])
    assert (lab / "corrections" / "m1.zoe.parquet").is_file()
    assert load_dataset(lab)["m1"].annotation("zoe") == project.recording(0).track("zoe").annotation


def test_corrections_of_other_recordings_are_noted_and_kept(lab, tmp_path):
    folder = tmp_path / "mine"
    first = open_project([str(lab)], corrections=folder)
    first.start(0, "zoe", "anna")
    first.start(1, "zoe", "anna")
    kept = contents(folder)
    manifest = lab / "recordings.csv"
    rows = manifest.read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([rows[0], rows[3]]) + "\n", encoding="utf-8")
    again = open_project([str(lab)], corrections=folder)
    assert [(entry.recording.id, [*entry.corrections]) for entry in again.recordings] == [("m2", ["zoe"])]
    assert again.notes == [f"{folder / 'recordings.csv'}: corrects 'm1', which is not open"]
    assert contents(folder) == kept


def test_check_annotator_trims():
    assert check_annotator("  Zoë Q.  ", {"anna"}) == "Zoë Q."


SAVE_MANY = """
import sys
from pathlib import Path
from ethobench import Annotation, Recording
from ethobench.app.corrections import Corrections
from ethobench.core.errors import MismatchError

folder, annotator, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
corrections = Corrections(folder)
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    annotation = Annotation.from_bouts([0], [5], ["rest"], ["rest"], rate=10, n_frames=600)
    try:
        corrections.save(Recording(f"r{number}"), annotator, annotation)
        print(number, flush=True)
    except MismatchError:
        pass
"""


def save_at_once(folder, *annotators, count):
    """Start one process per annotator, and let them begin together."""
    command = [sys.executable, "-c", SAVE_MANY, str(folder)]
    processes = [
        subprocess.Popen([*command, name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in annotators
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


def rows_and_files(folder):
    with (folder / "recordings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return rows, {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {"recordings.csv"}


@pytest.mark.slow
def test_two_viewers_at_once_lose_and_double_nothing(tmp_path):
    folder = tmp_path / "corrections"
    for process in save_at_once(folder, "zoe", "yan", count=20):
        process.communicate()
        assert process.returncode == 0
    rows, files = rows_and_files(folder)
    assert sorted((row["recording"], row["annotator"]) for row in rows) == sorted(
        (f"r{n}", who) for n in range(20) for who in ("yan", "zoe")
    )
    assert files == {row["annotations"] for row in rows}
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_one_name_in_two_viewers_is_saved_once(tmp_path):
    folder = tmp_path / "corrections"
    saved = [int(line) for process in save_at_once(folder, "zoe", "zoe", count=20) for line in process.communicate()[0].split()]
    assert sorted(saved) == list(range(20))
    rows, files = rows_and_files(folder)
    assert sorted(row["recording"] for row in rows) == sorted(f"r{n}" for n in range(20))
    assert files == {row["annotations"] for row in rows}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_killed_viewer_leaves_nothing_unlisted_and_blocks_nobody(tmp_path):
    folder = tmp_path / "corrections"
    victim, other = save_at_once(folder, "zoe", "yan", count=25)
    acknowledged = [victim.stdout.readline().strip() for _ in range(5)]
    victim.send_signal(signal.SIGKILL)
    acknowledged += victim.communicate()[0].split()
    other.communicate()
    assert other.returncode == 0
    corrections = Corrections(folder)
    loaded = corrections.load()
    rows, files = rows_and_files(folder)
    assert files == {row["annotations"] for row in rows}
    assert len(rows) == len({(row["recording"], row["annotator"]) for row in rows}) == len(loaded)
    assert {(f"r{number}", "zoe") for number in acknowledged} <= {*loaded}
    assert {(f"r{number}", "yan") for number in range(25)} <= {*loaded}


@pytest.mark.parametrize("moment", ["write_recordings", "Corrections._append_row"])
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_an_interrupted_save_is_finished_by_the_next_session(lab, project, monkeypatch, moment, is_before):
    """Whatever the moment of a power cut, each file that is there is listed once."""
    owner, _, name = f"ethobench.app.corrections.{moment}".rpartition(".")
    module = Corrections if "Corrections" in owner else sys.modules[owner]
    original = getattr(module, name)

    def cut(*arguments, **options):
        if not is_before:
            original(*arguments, **options)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(module, name, cut)
        patched.setattr(Corrections, "_recover", lambda _: None)  # the process is gone
        with pytest.raises(SystemExit):
            project.start(0, "zoe", "anna")
    again = open_project([str(lab)])
    rows, files = rows_and_files(lab / "corrections") if (lab / "corrections" / "recordings.csv").exists() else ([], set())
    assert [row["annotations"] for row in rows] == sorted(files)
    if rows:
        assert again.recording(0).track("zoe").annotation == again.recording(0).track("anna").annotation
        with pytest.raises(EthobenchError, match="already an annotator"):
            again.start(0, "zoe")
    else:
        again.start(0, "zoe", "anna")
        assert len(rows_and_files(lab / "corrections")[0]) == 1
    assert not [path for path in (lab / "corrections").iterdir() if path.name.startswith(".")]


def test_a_name_used_in_another_viewer_is_refused_and_both_continue(lab, project):
    other = open_project([str(lab)])
    project.start(0, "zoe", "anna")
    with pytest.raises(MismatchError, match="another viewer"):
        other.start(0, "Zoe", "ben")
    other.start(0, "yan", "ben")
    project.edit(0, "zoe", 0, [MARK])
    assert load_dataset(lab).annotators == ("anna", "ben", "zoe", "yan")


def damage_file(folder):
    (folder / "m1.zoe.csv").write_bytes(b"\xff\0")


def empty_file(folder):
    (folder / "m1.zoe.csv").write_bytes(b"")


def lose_file(folder):
    (folder / "m1.zoe.csv").unlink()


def list_twice(folder):
    (folder / "again.csv").write_bytes((folder / "m1.zoe.csv").read_bytes())
    with (folder / "recordings.csv").open("a", encoding="utf-8") as file:
        file.write("m1,mouse1,again.csv,zoe\n")


def list_an_original(folder):
    manifest = folder / "recordings.csv"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("zoe.csv,zoe", "zoe.csv,anna"), encoding="utf-8")


def contradict(folder):
    manifest = folder / "recordings.csv"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("mouse1", "mouse7"), encoding="utf-8")


def damage_header(folder):
    (folder / "recordings.csv").write_bytes(b"\xff\xfe\0")


@pytest.mark.parametrize(
    "damage", [damage_file, empty_file, lose_file, list_twice, list_an_original, contradict, damage_header], ids=lambda d: d.__name__
)
def test_an_unreadable_correction_does_not_prevent_opening_the_others(lab, project, damage):
    project.start(0, "zoe", "anna")
    project.start(1, "yan", "anna")
    damage(lab / "corrections")
    with pytest.warns(ReadWarning, match=r"correction"):
        data = load_dataset(lab)
    assert {*data["m1"].annotations} >= {"anna", "ben"}
    assert damage is damage_header or "yan" in data["m2"].annotations
    with pytest.warns(ReadWarning, match=r"correction"):
        again = open_project([str(lab)])
    assert [t.name for t in again.recording(0).tracks][:2] == ["anna", "ben"]
    assert damage in (contradict, list_an_original) or again.notes
