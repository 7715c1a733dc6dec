"""What is watched while labeling counts as observed: saved with every report, never in the way of undo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, create_model, load_dataset
from ethobench.app.corrections import Corrections
from ethobench.app.editing import add_observed, change_bout, clear, hide, mark, remove_observed
from ethobench.app.history import History
from ethobench.app.opening import open_project
from ethobench.core import Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, ReadWarning
from ethobench.core.targets import exclusive_targets
from ethobench.metrics.budgets import time_budget

N = 30
NAMES = ("rest", "run")
MARK = {"kind": "mark", "start": 100, "stop": 200, "behavior": "groom"}

ranges = st.tuples(st.integers(0, N), st.integers(0, N)).map(sorted).filter(lambda r: r[0] < r[1])
steps = st.one_of(
    st.tuples(st.sampled_from(["watch", "mark", "hide", "unwatch"]), ranges),
    st.tuples(st.sampled_from(["undo", "redo"]), st.just((0, 1))),
)


def observed(annotation: Annotation, subject: str | None = None) -> list[tuple[int, int]]:
    where = annotation.observed.of_all(annotation.ethogram.names, subject)
    return [*zip(where.start.tolist(), where.stop.tolist(), strict=True)]


@given(st.lists(steps, max_size=12))
def test_watching_is_in_every_state_that_undo_and_redo_lead_to(actions):
    """Against masks of frames: a report is added to all states, an edit makes a new one."""
    history = History(Annotation.from_bouts([], [], [], NAMES, 10, N, observed=iv.empty()))
    states, at = [(np.zeros(N, bool), np.zeros(N, bool))], 0  # observed, running
    for action, (start, stop) in actions:
        where = iv.intervals([start], [stop])
        here = slice(start, stop)
        looked, running = (mask.copy() for mask in states[at])
        if action == "watch":
            history.watch(where)
            for mask, _ in states:
                mask[here] = True
        elif action in ("undo", "redo"):
            getattr(history, action)()
            at = max(at - 1, 0) if action == "undo" else min(at + 1, len(states) - 1)
        else:
            if action == "mark":
                history.change(mark(history.annotation, start, stop, "run"))
                running[here] = looked[here] = True
            elif action == "hide":
                history.change(hide(history.annotation, start, stop))
                running[here] = looked[here] = False
            else:
                history.change(remove_observed(history.annotation, where))
                looked[here] &= running[here]
            states[at + 1 :] = [(looked, running)]
            at += 1
        assert iv.to_mask(history.annotation.observed.frames, N).tolist() == states[at][0].tolist()
        assert history.annotation.to_frames()[:, 1].tolist() == states[at][1].tolist()
        assert (history.previous is None, history.following is None) == (at == 0, at == len(states) - 1)


def test_order_and_duplicates_of_reports_do_not_matter(project):
    reports = [[[0, 50]], [[300, 600], [40, 120]], [[0, 50]], [[200, 310]]]
    for name, order in (("zoe", reports), ("yan", reversed(reports))):
        project.start(1, name)
        for spans in order:
            project.watch(1, name, spans)
    assert observed(project.recording(1).track("zoe").annotation) == [(0, 120), (200, 600)]
    assert observed(project.recording(1).track("yan").annotation) == [(0, 120), (200, 600)]


def test_a_budget_from_scratch_is_a_share_of_what_was_watched(lab, project):
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [MARK])
    assert share(lab, "groom") == 1.0, "of what was observed: the bout alone"
    project.watch(1, "zoe", [[0, 600]])
    assert share(lab, "groom") == pytest.approx(10 / 60)
    assert share(lab, "rest") == 0.0


def share(lab, behavior: str) -> float:
    rows = time_budget(load_dataset(lab)["m2"].annotation("zoe"))
    return next(row["share"] for row in rows if row["behavior"] == behavior)


def test_a_recording_that_nobody_watched_stays_unobserved(lab, project):
    project.start(1, "zoe")
    annotation = load_dataset(lab)["m2"].annotation("zoe")
    assert observed(annotation) == []
    assert time_budget(annotation)[0]["share"] is None


def test_what_the_base_covers_is_not_changed_by_watching(lab, project):
    project.start(0, "zoe", "anna")
    file = lab / "corrections" / "m1.zoe.csv"
    before = file.stat().st_mtime_ns
    track = project.watch(0, "zoe", [[0, 600]])
    assert (track.version, file.stat().st_mtime_ns) == ((0, 0), before)


def test_undo_reverts_edits_and_keeps_watched_frames(lab, project):
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [MARK])
    project.watch(1, "zoe", [[0, 50]])
    project.watch(1, "zoe", [[50, 60]])
    track = project.undo(1, "zoe", 1)
    assert (len(track.annotation), observed(track.annotation)) == (0, [(0, 60)])
    project.watch(1, "zoe", [[60, 70]])
    track = project.redo(1, "zoe", 2)
    assert (len(track.annotation), observed(track.annotation)) == (1, [(0, 70), (100, 200)])
    assert load_dataset(lab)["m2"].annotation("zoe") == track.annotation.with_ethogram(load_dataset(lab).ethogram)
    assert track.revision == 3, "watching changes no revision, so edits of another window still fit"


def test_marking_as_watched_and_as_not_watched_are_steps(project):
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [MARK])
    everything = {"start": 0, "stop": 600}
    assert observed(project.edit(1, "zoe", 1, [{"kind": "observe", **everything}]).annotation) == [(0, 600)]
    track = project.edit(1, "zoe", 2, [{"kind": "unobserve", **everything}])
    assert (len(track.annotation), observed(track.annotation)) == (1, [(100, 200)])
    assert observed(project.undo(1, "zoe", 3).annotation) == [(0, 600)]
    assert observed(project.undo(1, "zoe", 4).annotation) == [(100, 200)]


def test_watched_frames_are_restored_in_a_new_session(lab, project):
    project.start(1, "zoe")
    project.watch(1, "zoe", [[0, 150], [400, 410]])
    again = open_project([str(lab)])
    assert observed(again.recording(1).track("zoe").annotation) == [(0, 150), (400, 410)]
    again.watch(1, "zoe", [[150, 400]])
    assert observed(load_dataset(lab)["m2"].annotation("zoe")) == [(0, 410)]
    assert again.progress() == ["m2, zoe: bouts: 0, observed: 68.3 %"]


def test_watched_frames_that_cannot_be_saved_are_discarded(project, monkeypatch):
    project.start(1, "zoe")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ethobench.app.corrections.write_recordings", full)
    with pytest.raises(OSError, match="No space"):
        project.watch(1, "zoe", [[0, 100]])
    assert observed(project.recording(1).track("zoe").annotation) == []


def test_a_bout_is_observed_for_its_subject_only():
    a = Annotation.from_bouts([], [], [], NAMES, 10, N, observed=iv.empty(), subjects=["ann", "bob"])
    marked = mark(a, 10, 20, "run", subject="ann")
    assert (observed(marked, "ann"), observed(marked, "bob")) == ([(10, 20)], [])
    cleared = clear(marked, 15, 30, subject="bob")
    assert (observed(cleared, "ann"), observed(cleared, "bob")) == ([(10, 20)], [(15, 30)])
    moved = change_bout(marked, 0, start=22, stop=28, subject="bob")
    assert (observed(moved, "ann"), observed(moved, "bob")) == ([(10, 20)], [(22, 28)])
    assert observed(mark(a, 10, 20, "run")) == [(10, 20)], "without a subject, for all"
    codes = exclusive_targets(marked)
    assert (codes[10:20].tolist(), set(codes.tolist())) == ([NAMES.index("run")] * 10, {-1, NAMES.index("run")})


def test_watching_counts_for_the_subject_that_is_labeled():
    a = Annotation.from_bouts([], [], [], NAMES, 10, N, observed=iv.empty(), subjects=["ann", "bob"])
    first = add_observed(a, iv.intervals([0], [20]), "bob")
    assert (observed(first, "bob"), observed(first, "ann")) == ([(0, 20)], [])
    both = add_observed(first, iv.intervals([0], [20]), "ann")
    assert both.observed == Observed(iv.intervals([0], [20])), "alike for all, so no exceptions are left"
    less = remove_observed(mark(both, 5, 10, "run", subject="ann"), iv.intervals([0], [N]), "ann")
    assert (observed(less, "ann"), observed(less, "bob")) == ([(5, 10)], [(0, 20)])
    assert remove_observed(less, iv.intervals([20], [N]), "ann") is less
    scored = a.with_observed(Observed(iv.empty(), {Track("run"): iv.intervals([25], [30])}))
    bob_observed = add_observed(scored, iv.intervals([0], [20]), "bob").observed
    assert [bob_observed.of("run", who).stop.tolist() for who in ("ann", "bob")] == [[30], [20, 30]]
    assert [bob_observed.of("rest", who).stop.tolist() for who in ("ann", "bob")] == [[], [20]]


@pytest.mark.parametrize(
    ("spans", "error"),
    [
        (None, EthobenchError),
        ("0-10", EthobenchError),
        ([[0, 1]] * 1001, EthobenchError),
        ([5], MismatchError),
        ([[0, 601]], MismatchError),
        ([[-1, 5]], MismatchError),
        ([[5, 5]], MismatchError),
        ([[0, 1, 2]], MismatchError),
        ([[0.0, 5]], MismatchError),
        ([[False, True]], MismatchError),
    ],
)
def test_reports_that_are_refused(project, spans, error):
    project.start(1, "zoe")
    with pytest.raises(error, match="watched"):
        project.watch(1, "zoe", spans)
    with pytest.raises(NotFoundError, match="no subject"):
        project.watch(1, "zoe", [[0, 5]], "nobody")
    with pytest.raises(EthobenchError, match="not a correction"):
        project.watch(1, "anna", [[0, 5]])
    assert observed(project.recording(1).track("zoe").annotation) == []


@pytest.mark.slow
def test_a_model_trained_on_labels_from_scratch_sees_negatives(lab, project):
    """With bouts alone every training frame is grooming, so every frame is predicted as grooming."""
    project.start(1, "zoe")
    project.edit(1, "zoe", 0, [MARK])
    model = create_model("rf", trees=5)
    assert set(predicted(lab, model)) == {2}
    project.watch(1, "zoe", [[0, 600]])
    assert set(predicted(lab, model)) == {2, 3}


def predicted(lab, model) -> list[int]:
    data = load_dataset(lab)
    zoe = [r.copy(annotations={"zoe": r.annotation("zoe")}) for r in data if "zoe" in r.annotations]
    return model.fit(replace(data, recordings=tuple(zoe))).predict(data["m2"]).annotation.to_codes().tolist()


@pytest.fixture
def unreadable(tmp_path):
    """A manifest of a video that cannot be read."""
    root = tmp_path / "films"
    root.mkdir()
    (root / "m1.mp4").write_bytes(b"not a video")
    (root / "recordings.csv").write_text("recording,video\nm1,m1.mp4\n", encoding="utf-8")
    with pytest.warns(ReadWarning, match="frame rate and length of the video are unknown"):
        return open_project([str(root)], behaviors=["groom"])


def test_a_recording_of_unknown_length_is_never_labeled(unreadable):
    (entry,) = unreadable.recordings
    assert "cannot be labeled because its frame rate and length are unknown" in entry.locked
    with pytest.raises(EthobenchError, match="length are unknown"):
        unreadable.start(0, "zoe")
    with pytest.raises(EthobenchError, match="length are unknown"):
        unreadable.edit(0, "zoe", 0, [MARK])
    with pytest.raises(EthobenchError, match="its length is unknown"):
        unreadable.corrections.save(entry.recording, "zoe", entry.empty_annotation())
    assert not unreadable.corrections.folder.exists()


def test_corrections_without_frames_are_refused_where_they_are_written(tmp_path, project):
    empty = Annotation.from_bouts([], [], [], NAMES, 10, 0)
    with pytest.raises(EthobenchError, match="its length is unknown"):
        Corrections(tmp_path / "out").save(project.recording(0).recording, "zoe", empty)
    assert not (tmp_path / "out").exists()


def test_poses_of_unknown_rate_are_shown_and_not_labeled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"
    (tmp_path / "m1DLC_net.csv").write_text(head + "".join(f"{i},{i},{i},0.9\n" for i in range(50)), encoding="utf-8")
    project = open_project(["m1DLC_net.csv"], behaviors=["run"])
    assert project.recording(0).n_frames == 50
    with pytest.raises(EthobenchError, match=r"frame rate is unknown: state it in column .rate. of recordings.csv, or when you start"):
        project.start(0, "zoe")
    open_project(["m1DLC_net.csv"], behaviors=["run"], rate=25).start(0, "zoe")


@pytest.mark.slow
def test_reports_over_the_wire(client, lab):
    client.post("recordings/1/start", {"name": "zoe"})
    track = client.post("recordings/1/watch", {"track": "zoe", "spans": [[0, 150], [300, 450]]})["track"]
    assert (track["revision"], track["watches"], track["undo"]) == (0, 1, False)
    assert track["observed"] == {"share": 0.5, "spans": [[0, 150], [300, 450]], "subjects": {}}
    assert client.get("project")["recordings"][1]["observed"] == 0.5
    hidden = client.get("recordings/1/tiles?level=1&index=0&lane=track:1")[0]["hidden"]
    assert hidden == [[150, 300], [450, 600]]
    assert "list of at most" in client.post("recordings/1/watch", {"track": "zoe"}, 400)["error"]
    assert "must be text" in client.post("recordings/1/watch", {"track": "zoe", "spans": [], "subject": 5}, 400)["error"]
    assert "<= 600" in client.post("recordings/1/watch", {"track": "zoe", "spans": [[0, 1e9]]}, 409)["error"]
    assert client.request("/open-sesame/api/recordings/1/watch", "POST", {}, Origin="http://evil.example")[0] == 403


@pytest.mark.slow
def test_unknown_length_over_the_wire(unreadable, serving):
    client = serving(unreadable)
    assert "cannot be labeled" in client.get("recordings/0")["locked"]
    assert "cannot be labeled" in client.post("recordings/0/start", {"name": "zoe"}, 400)["error"]
