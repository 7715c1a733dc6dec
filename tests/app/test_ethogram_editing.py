"""Editing the ethogram of a session, over HTTP, and what load_dataset reads afterwards."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram, load_dataset, write_annotation
from ethobench.app.ethograms import EthogramChange, entries_of, parse_change, read_entries
from ethobench.app.opening import open_project
from ethobench.core.errors import EthobenchError

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")  # about earlier names


def fields(client, **changes):
    """Return the behaviors as the page would send them unchanged, with changes by name."""
    state = client.get("ethogram")
    behaviors = [{**b, "from": [b["name"]], **changes.get(b["name"], {})} for b in state["behaviors"]]
    return state, behaviors


def save(client, behaviors, revision, status=200, **more):
    return client.post("ethogram", {"revision": revision, "behaviors": behaviors, **more}, status)


@pytest.fixture
def labeled(client):
    """A correction with one bout each of three behaviors."""
    client.post("recordings/0/start", {"name": "zoe", "copy": None})
    edits = [
        {"kind": "mark", "start": 10 * i, "stop": 10 * i + 10, "behavior": name, "subject": None, "target": None}
        for i, name in enumerate(("rest", "run", "groom"))
    ]
    client.post("recordings/0/edit", {"track": "zoe", "revision": 0, "edits": edits})
    return client


def codes(lab, annotator="zoe"):
    data = load_dataset(lab)
    a = data["m1"].annotation(annotator)
    return [(int(s), int(e), a.ethogram[int(b)].name) for s, e, b in zip(a.start, a.stop, a.behavior, strict=True)]


def test_behaviors_are_added_with_all_their_properties(client, lab):
    state, behaviors = fields(client)
    new = {"name": "bite 🐭", "key": "b", "definition": "teeth", "color": "#AA0000", "group": "social", "point": True}
    answer = save(client, [new, *behaviors], state["revision"])
    assert [b["name"] for b in answer["behaviors"]] == ["bite 🐭", "rest", "run", "groom", "other"]
    assert read_entries(lab / "corrections" / "ethogram.csv")[0].color == "#aa0000"
    reopened = open_project([str(lab)]).ethograms.entries
    assert (reopened[0].behavior, reopened[0].group) == (Behavior("bite 🐭", "teeth", True, "b"), "social")
    assert "bite 🐭" in load_dataset(lab).ethogram
    shown = client.get("project")["ethograms"][0]
    assert (shown[0]["custom"], shown[0]["group"], shown[0]["point"]) == ("#aa0000", "social", True)


def test_a_renamed_behavior_is_renamed_in_corrections_and_read_everywhere(labeled, lab):
    contents = {path: path.read_bytes() for path in lab.glob("*.csv")}
    state, behaviors = fields(labeled, run={"name": "走る"})
    save(labeled, behaviors, state["revision"])
    assert "走る" in (lab / "corrections" / "m1.zoe.csv").read_text(encoding="utf-8").splitlines()[-2]
    assert codes(lab) == [(0, 10, "rest"), (10, 20, "走る"), (20, 30, "groom")]
    assert "走る" in {name for _, _, name in codes(lab, "anna")}
    assert {path: path.read_bytes() for path in lab.glob("*.csv")} == contents, "the user's files are never changed"
    (undone,) = [labeled.post("ethogram/undo", {"revision": 1})]
    assert [b["name"] for b in undone["behaviors"]] == ["rest", "run", "groom", "other"]
    assert codes(lab)[1] == (10, 20, "run")


def test_merging_joins_touching_bouts_and_can_be_undone(labeled, lab):
    state, behaviors = fields(labeled)
    merged = [{**behaviors[0], "from": ["rest", "run"], "name": "calm"}, *behaviors[2:]]
    save(labeled, merged, state["revision"])
    assert codes(lab) == [(0, 20, "calm"), (20, 30, "groom")]
    labeled.post("ethogram/undo", {"revision": 1})
    assert codes(lab) == [(0, 10, "rest"), (10, 20, "run"), (20, 30, "groom")]


def test_a_behavior_of_the_session_is_deleted_only_with_the_confirmed_number_of_bouts(labeled, lab):
    state, behaviors = fields(labeled)
    state = save(labeled, [*behaviors, {"name": "dig"}], state["revision"])
    revision = labeled.get("recordings/0")["tracks"][-1]["revision"]
    edit = {"kind": "mark", "start": 50, "stop": 60, "behavior": "dig"}
    labeled.post("recordings/0/edit", {"track": "zoe", "revision": revision, "edits": [edit]})
    state, behaviors = fields(labeled)
    answer = save(labeled, behaviors[:-1], state["revision"], 409)
    assert "'dig' has 1 bouts" in answer["error"]
    state = save(labeled, behaviors[:-1], state["revision"], confirmed={"dig": 1})
    assert (50, 60, "dig") not in codes(lab)
    assert "dig" not in load_dataset(lab).ethogram
    assert "dig" not in open_project([str(lab)]).recordings[0].ethogram
    labeled.post("ethogram/undo", {"revision": state["revision"]})
    assert (50, 60, "dig") in codes(lab)
    answer = save(labeled, [b for b in behaviors if b["name"] != "run"], labeled.get("ethogram")["revision"], 400)
    assert "hide it instead" in answer["error"]


def test_a_stale_revision_is_refused_and_a_newer_file_is_loaded(client, lab):
    state, behaviors = fields(client, run={"key": "r"})
    save(client, behaviors, state["revision"])
    assert "changed in the meantime" in save(client, behaviors, state["revision"], 409)["error"]
    other = open_project([str(lab)])
    entries = [{"name": e.name, "key": e.behavior.key, "from": [e.name], "background": e.background} for e in other.ethograms.entries]
    other.edit_ethogram(0, [*entries, {"name": "dig"}])
    assert [b["name"] for b in client.get("ethogram")["behaviors"]][-1] == "dig"
    assert client.get("project")["ethograms"][0][-1]["name"] == "dig"


def test_a_viewer_that_is_killed_between_the_writes_leaves_a_readable_state(labeled, lab, monkeypatch):
    """Only ethogram.csv has been written: corrections with old names are read with the new ones."""
    state, behaviors = fields(labeled, run={"name": "sprint"})
    before = (lab / "corrections" / "m1.zoe.csv").read_bytes()
    save(labeled, behaviors, state["revision"])
    (lab / "corrections" / "m1.zoe.csv").write_bytes(before)
    assert codes(lab)[1] == (10, 20, "sprint")
    project = open_project([str(lab)])
    assert project.recordings[0].ethogram.names == ("rest", "sprint", "groom", "other")
    assert project.recordings[0].corrections["zoe"].annotation.tracks()[1][0] == "sprint"


def test_labels_can_still_be_undone_after_a_rename(labeled, lab):
    state, behaviors = fields(labeled, run={"name": "sprint"})
    save(labeled, behaviors, state["revision"])
    revision = labeled.get("recordings/0")["tracks"][-1]["revision"]
    labeled.post("recordings/0/undo", {"track": "zoe", "revision": revision})
    assert codes(lab) == []
    labeled.post("recordings/0/redo", {"track": "zoe", "revision": revision + 1})
    assert codes(lab)[1] == (10, 20, "sprint")


@pytest.mark.parametrize(
    ("behaviors", "message"),
    [
        ("rest", "must be a list"),
        ([{"name": " "}], "needs a name"),
        ([{"name": "a"}, {"name": "a"}], "two behaviors have the name"),
        ([{"name": "a", "key": "x"}, {"name": "b", "key": "x"}], "same key"),
        ([{"name": "a", "key": "xy"}], "single character"),
        ([{"name": "a", "color": "red"}], "#rrggbb"),
        ([{"name": "a", "background": True}, {"name": "b", "background": True}], "only one behavior"),
        ([{"name": "a", "background": True, "point": True}], "point event"),
        ([{"name": "a" * 200}], "at most 100"),
        ([{"name": "a;b"}], "semicolon"),
        ([{"name": "a\x07"}], "cannot be displayed"),
        ([{"name": "a", "from": ["fly"]}], "no behavior 'fly'"),
        ([{"name": "a", "from": ["rest"]}, {"name": "b", "from": ["rest"]}], "two behaviors"),
        ([{"name": "run", "from": ["rest"]}, {"name": "rest", "from": ["run"]}], "reuse it"),
        ([{"name": "a", "from": ["rest", "bite"]}], "cannot be merged"),
        ([{"name": str(i)} for i in range(501)], "at most 500"),
    ],
)
def test_invalid_behaviors_are_refused(behaviors, message):
    old = entries_of(Ethogram(["rest", "run", Behavior("bite", point=True)]))
    with pytest.raises(EthobenchError, match=message):
        parse_change(old, behaviors)


@pytest.mark.parametrize("name", ["走る", "جري", "🐁👨‍👩‍👧", "naïve/..\\run", "=1+1", "<b>x</b>"])
def test_names_in_any_script_survive(client, lab, name):
    state, behaviors = fields(client)
    save(client, [*behaviors, {"name": name}], state["revision"])
    assert open_project([str(lab)]).ethograms.entries[-1].name == name
    assert name in load_dataset(lab).ethogram


def test_merged_probabilities_add_up():
    from ethobench.core import Prediction

    values = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    prediction = Prediction(values, Ethogram(["a", "b", "c"]), 10, exclusive=True)
    changed = EthogramChange((), {"a": "c"}).apply_to_prediction(prediction)
    assert changed.ethogram.names == ("c", "b")
    assert np.allclose(changed.probabilities, [[0.7, 0.3], [0.6, 0.4]])


class TestImport:
    def upload(self, client, name, content, status=200):
        return client.post("ethogram/import", {"name": name, "content": base64.b64encode(content).decode()}, status)

    def test_a_boris_project_without_observations(self, client):
        project = {"observations": {}, "behaviors_conf": {"0": {"code": "bite", "type": "Point event", "key": "b", "description": "teeth"}}}
        project |= {"project_format_version": "7.0", "subjects_conf": {}}
        (entry,) = self.upload(client, "lab.boris", json.dumps(project).encode())
        assert (entry["name"], entry["key"], entry["point"], entry["definition"]) == ("bite", "b", True, "teeth")

    def test_labels_and_ethogram_files(self, client, tmp_path):
        write_annotation(Annotation.from_frames([0, 1], ["dig", "hide"], 10), tmp_path / "x.csv", "tidy")
        assert [b["name"] for b in self.upload(client, "x.csv", (tmp_path / "x.csv").read_bytes())] == ["dig", "hide"]
        entries = self.upload(client, "ethogram.csv", b"behavior,key,group,color\ndig,d,g,#00ff00\n")
        assert (entries[0]["key"], entries[0]["group"], entries[0]["color"]) == ("d", "g", "#00ff00")

    def test_invalid_files_are_refused_and_nothing_is_saved(self, client, lab):
        assert "../../evil.boris" in self.upload(client, "../../evil.boris", b"{}", 400)["error"]
        client.post("ethogram/import", {"name": "x.csv", "content": "*"}, 400)
        client.post("ethogram/import", {"name": "x.csv", "content": "A" * 17_000_000}, 413)
        assert not (lab / "corrections" / "ethogram.csv").exists()
