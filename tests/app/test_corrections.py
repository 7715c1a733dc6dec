"""Corrections on the disk: whole, never over somebody else's work, and merged by load_dataset."""

from __future__ import annotations

import os

import pytest

from ethobench import load_dataset, read_annotation
from ethobench.app.corrections import Corrections, check_annotator, plain
from ethobench.app.opening import open_project
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError

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


def test_what_is_seen_is_what_is_on_the_disk(lab, project):
    file = lab / "corrections" / "m1.zoe.csv"
    project.start(0, "zoe", "anna")
    start = read_annotation(file)
    project.edit(0, "zoe", 0, [MARK])
    changed = read_annotation(file)
    assert changed != start
    assert project.undo(0, "zoe").annotation == start
    assert read_annotation(file) == start
    project.redo(0, "zoe")
    assert read_annotation(file) == changed
    assert project.redo(0, "zoe").revision == 3


def test_another_session_goes_on_where_the_last_one_ended(lab, project):
    project.start(0, "zoe", "anna")
    project.edit(0, "zoe", 0, [MARK])
    project.start(1, "zoe")
    again = open_project([str(lab)])
    assert [t.name for t in again.entry(0).tracks] == ["anna", "ben", "zoe"]
    assert [t.kind for t in again.entry(0).tracks] == ["annotator", "annotator", "correction"]
    assert again.entry(0).track("zoe").annotation == project.entry(0).track("zoe").annotation
    again.edit(0, "zoe", 0, [{**MARK, "start": 30, "stop": 40}])
    assert load_dataset(lab)["m1"].annotation("zoe").to_codes()[:45].tolist() == [2] * 40 + [0] * 5
    assert len((lab / "corrections" / "recordings.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_labels_from_scratch_claim_only_what_was_looked_at(lab, project):
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [{**MARK, "start": 100, "stop": 120}, {"kind": "clear", "start": 120, "stop": 150}])
    annotation = load_dataset(lab)["m2"].annotation("zoe")
    assert [*zip(*annotation.observed.frames, strict=True)] == [(100, 150)]


@pytest.mark.parametrize("name", ["anna", "Ben", "", "  ", "a\nb", "x" * 61, "all", "Consensus", None, 5, "a\u0000b"])
def test_names_that_are_refused(lab, project, name):
    with pytest.raises(EthobenchError, match=r"name|annotator"):
        project.start(1, name)
    assert not (lab / "corrections").exists()


def test_a_name_is_started_once(project):
    project.start(0, "zoe")
    with pytest.raises(EthobenchError, match="already an annotator"):
        project.start(0, "ZOE")


def test_only_corrections_can_be_changed(project):
    for act in (lambda: project.edit(0, "anna", 0, [MARK]), lambda: project.undo(0, "anna"), lambda: project.redo(0, "nobody")):
        with pytest.raises(EthobenchError, match="no correction"):
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


def test_a_file_that_another_program_changed_is_left_alone(lab, project):
    project.start(0, "zoe", "anna")
    file = lab / "corrections" / "m1.zoe.csv"
    mine = file.read_bytes() + b"m1,rest,590,600,,,zoe\n"
    file.write_bytes(mine)
    with pytest.raises(MismatchError, match="changed by another program"):
        project.edit(0, "zoe", 0, [MARK])
    assert file.read_bytes() == mine
    assert project.entry(0).track("zoe").revision == 0


def test_what_cannot_be_saved_does_not_happen(project, monkeypatch):
    project.start(0, "zoe", "anna")
    before = project.entry(0).track("zoe").annotation

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ethobench.app.corrections.write_recordings", full)
    with pytest.raises(OSError, match="No space"):
        project.edit(0, "zoe", 0, [MARK])
    assert project.entry(0).track("zoe").annotation == before
    assert project.entry(0).track("zoe").revision == 0


def test_files_that_are_there_are_never_taken(lab, project):
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
    with pytest.raises(EthobenchError, match="no correction"):
        again.edit(1, "anna2", 0, [MARK])


def test_hostile_names_stay_in_the_folder(tmp_path, project):
    corrections = Corrections(tmp_path / "out")
    recording = project.entry(0).recording.copy(id="../../<script>alert(1)</script>")
    path = corrections.save(recording, 'x"; rm -rf /', project.entry(0).track("anna").annotation)
    assert path.parent == tmp_path / "out"
    assert path.name == "script_alert_1_script.x_rm_-rf.csv"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab", "out"]
    assert {*Corrections(tmp_path / "out").load()} == {("../../<script>alert(1)</script>", 'x"; rm -rf /')}
    assert plain("...") == "recording"


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
    with pytest.raises(EthobenchError, match="leads out of"):
        open_project([str(lab)])


def test_many_bouts_are_saved_as_parquet(lab, project, monkeypatch):
    monkeypatch.setattr("ethobench.app.corrections.CSV_BOUTS", 3)
    project.start(0, "zoe", "anna")
    project.edit(0, "zoe", 0, [MARK])
    assert (lab / "corrections" / "m1.zoe.parquet").is_file()
    assert load_dataset(lab)["m1"].annotation("zoe") == project.entry(0).track("zoe").annotation


def test_corrections_that_do_not_fit_are_noted_and_left(lab, tmp_path):
    folder = tmp_path / "mine"
    first = open_project([str(lab)], corrections=folder)
    first.start(0, "zoe", "anna")
    first.start(1, "zoe", "anna")
    kept = contents(folder)
    manifest = lab / "recordings.csv"
    rows = manifest.read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([rows[0], rows[3]]) + "\n", encoding="utf-8")
    again = open_project([str(lab)], corrections=folder)
    assert [(entry.recording.id, [*entry.corrections]) for entry in again.entries] == [("m2", ["zoe"])]
    assert again.notes == [f"{folder / 'recordings.csv'}: corrects 'm1', which is not open"]
    assert contents(folder) == kept


def test_check_annotator_trims():
    assert check_annotator("  Zoë Q.  ", {"anna"}) == "Zoë Q."
