"""The teacher of an open project, over HTTP and in Python."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, load_model, write_annotation
from ethobench.app.editing import mark
from ethobench.app.opening import open_project
from ethobench.app.teaching import Teaching, reject
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.models.review import Candidate
from ethobench.models.teacher import SETTINGS
from tests.app.conftest import Client
from tests.video_files import write_video

pytestmark = pytest.mark.slow

N, RATE = 900, 10
ETHOGRAM = Ethogram(["still", "shake", "dive"])


def _truth(number: int) -> np.ndarray:
    return np.random.default_rng(number).permutation(np.arange(18) % 3).repeat(50)


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """Three tags; `anna` labeled the first 40 s of two of them."""
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(SETTINGS, "rounds", 10)
    root = tmp_path / "study"
    root.mkdir()
    rows = ["recording,individual,rate,signals,annotations,annotator"]
    for number in range(3):
        codes, random = _truth(number), np.random.default_rng(number)
        values = random.normal(0, 0.1, (N, 4))
        values[:, :3] += np.where(codes == 1, 2 * np.sin(np.arange(N) * 2.2), 0)[:, None]
        values[:, 3] += np.where(codes == 2, 5, 0)
        lines = "\n".join(f"{i / RATE},{','.join(f'{v:.4f}' for v in row)}" for i, row in enumerate(values))
        (root / f"t{number}.csv").write_text(f"time,AccX,AccY,AccZ,Depth\n{lines}\n", encoding="utf-8")
        labels = Annotation.from_frames(codes, ETHOGRAM, RATE).mark_unobserved(iv.intervals([400], [N]))
        if number < 2:
            write_annotation(labels, root / f"t{number}_anna.csv", "tidy")
        rows.append(
            f"t{number},m{number},{RATE},t{number}.csv,{f't{number}_anna.csv' if number < 2 else ''},{'anna' if number < 2 else ''}"
        )
    (root / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (root / "ethogram.csv").write_text("behavior\nstill\nshake\ndive\n", encoding="utf-8")
    return root


@pytest.fixture
def teaching(study) -> Any:
    teaching = Teaching(open_project([str(study)]))
    yield teaching
    teaching.close()


@pytest.fixture
def trained(teaching) -> Teaching:
    teaching.train()
    teaching.wait(180)
    assert teaching.status()["state"] == "idle", teaching.status()
    return teaching


def test_training_shows_predictions_as_a_track(trained):
    for recording in trained.project.recordings:
        track = recording.track("teacher")
        assert track.kind == "model"
        assert track.annotation.confidence is not None
        assert track.prediction.n_frames == N
    status = trained.status()
    assert (status["trainings"], status["track"], status["state"]) == (1, "teacher", "idle")
    assert status["quality"]["groups"] == 2
    assert [row["training"] for row in status["history"]] == [1]
    first = trained.project.recordings[2].track("teacher")
    trained.train(["anna"])
    trained.wait(180)
    second = trained.project.recordings[2].track("teacher")
    assert second.version != first.version
    assert [t.name for t in trained.project.recordings[2].tracks] == ["teacher"]


def test_the_track_has_another_name_if_an_annotator_is_called_teacher(study):
    text = (study / "recordings.csv").read_text(encoding="utf-8")
    (study / "recordings.csv").write_text(text.replace(",anna", ",teacher").replace("_teacher", "_anna"), encoding="utf-8")
    assert Teaching(open_project([str(study)])).track == "teacher (model)"


def test_a_failure_is_explained_and_leaves_the_former_predictions(trained, monkeypatch):
    former = [recording.track("teacher") for recording in trained.project.recordings]
    trained.train(["nobody"])
    trained.wait(180)
    assert trained.status()["state"] == "failed"
    assert trained.status()["message"].startswith("nothing is labeled yet")
    monkeypatch.setattr("ethobench.models.boost.Boost.fit_rows", lambda *_: 1 / 0)
    trained.train()
    trained.wait(180)
    assert trained.status()["message"].startswith("training failed: ")
    assert [recording.track("teacher") for recording in trained.project.recordings] == former
    monkeypatch.undo()
    trained.train()
    trained.wait(180)
    assert trained.status()["state"] == "idle"


def test_a_training_can_be_cancelled(trained, monkeypatch):
    started, go_on = threading.Event(), threading.Event()
    fit = trained.teacher.fit

    def wait_then_fit(labels, progress):
        started.set()
        assert go_on.wait(30)
        return fit(labels, progress)

    monkeypatch.setattr(trained.teacher, "fit", wait_then_fit)
    trained.train()
    assert started.wait(30)
    with pytest.raises(MismatchError, match="is being trained"):
        trained.train()
    trained.cancel()
    go_on.set()
    trained.wait(180)
    assert trained.status()["state"] == "cancelled"
    assert trained.status()["trainings"] == 1
    assert trained.project.recordings[0].track("teacher").revision == 0


def test_features_are_prepared_in_the_background(teaching, study):
    teaching.prepare()
    deadline = time.monotonic() + 180
    while not teaching.prepared and time.monotonic() < deadline:
        time.sleep(0.02)
    assert teaching.status()["prepared"]
    assert len([*(study.parent / "cache" / "features").glob("*.npy")]) == 3


def _bout(payload: dict[str, Any]) -> Candidate:
    return Candidate(**{**payload, "recording": ""})


def test_an_accepted_bout_is_the_reviewers(trained):
    first = trained.review(5)[0]
    trained.decide(first["recording"], "rita", "accepted", _bout(first))
    recording = trained.project.recordings[first["recording"]]
    a = recording.track("rita").annotation
    assert (a.start.tolist(), a.stop.tolist()) == ([first["start"]], [first["stop"]])
    assert a.ethogram[int(a.behavior[0])].name == first["behavior"]
    assert iv.total(a.observed.frames) == first["stop"] - first["start"]
    (origin,) = trained.recorded_origins(first["recording"])
    assert (origin["annotator"], origin["decision"], origin["origin"], origin["training"]) == ("rita", "accepted", "teacher", 1)
    reopened = open_project([str(trained.project.corrections.folder.parent)])
    assert reopened.recordings[first["recording"]].track("rita").annotation == a
    assert Teaching(reopened).recorded_origins(first["recording"]) == [origin]


def test_an_adjusted_bout_keeps_what_was_suggested(trained):
    first = trained.review(5)[0]
    adjusted = Candidate("", first["start"] + 1, first["stop"], "still")
    trained.decide(first["recording"], "rita", "adjusted", _bout(first), adjusted=adjusted)
    a = trained.project.recordings[first["recording"]].track("rita").annotation
    assert a.spans("still").start.tolist() == [first["start"] + 1]
    (origin,) = trained.recorded_origins(first["recording"])
    assert (origin["start"], origin["decision"]) == (first["start"] + 1, "adjusted")
    assert origin["suggested"] == {"start": first["start"], "stop": first["stop"], "behavior": first["behavior"]}


def test_a_rejected_bout_is_observed_without_that_behavior_only(trained):
    first = trained.review(5)[0]
    trained.decide(first["recording"], "rita", "rejected", _bout(first))
    a = trained.project.recordings[first["recording"]].track("rita").annotation
    length = first["stop"] - first["start"]
    assert len(a) == 0
    assert {name: iv.total(a.observed.of(name)) for name in ETHOGRAM.names} == {
        name: length if name == first["behavior"] else 0 for name in ETHOGRAM.names
    }
    reopened = open_project([str(trained.project.corrections.folder.parent)])
    assert reopened.recordings[first["recording"]].track("rita").annotation.observed == a.observed
    assert first not in trained.review(50, ["rita", "anna"])


def test_a_skipped_bout_is_not_suggested_again(trained):
    first = trained.review(5)[0]
    trained.decide(first["recording"], "rita", "skipped", _bout(first))
    assert [first["recording"], first["start"]] not in [[c["recording"], c["start"]] for c in trained.review(50)]
    assert trained.recorded_origins(first["recording"]) == []
    assert trained.project.recordings[first["recording"]].corrections == {}


def test_reject_cuts_bouts_and_keeps_subjects_apart():
    a = Annotation.from_bouts(
        [0, 0], [30, 30], ["run", "run"], ["rest", "run"], RATE, 60, subject=["a", "b"], observed=iv.intervals([0], [30])
    )
    rejected = reject(a, 20, 40, "run", "a")
    assert sorted(zip(rejected.start.tolist(), rejected.stop.tolist(), rejected.names(rejected.subject), strict=True)) == [
        (0, 20, "a"),
        (0, 30, "b"),
    ]
    observed = rejected.observed
    assert iv.total(observed.of("run", "a")) == 40
    assert iv.total(observed.of("run", "b")) == iv.total(observed.of("rest", "a")) == 30
    everyone = reject(rejected, 50, 60, "run")
    assert [iv.total(everyone.observed.of("run", who)) for who in ("a", "b")] == [50, 40]
    assert reject(a, 0, 10, "rest").observed == a.observed
    assert Track("rest") not in rejected.observed.tracks


def test_similar_segments_show_the_same_behavior(teaching):
    start = int(Annotation.from_frames(_truth(0), ETHOGRAM, RATE).spans("dive").start[0])
    segments = teaching.similar(0, start, start + 30, 8)
    same = [_truth(s["recording"])[(s["start"] + s["stop"]) // 2] == 2 for s in segments]
    assert len(segments) == 8
    assert np.mean(same) > 0.8
    assert segments == sorted(segments, key=lambda s: -s["similarity"])


def test_named_clusters_become_suggestions_or_labels(teaching):
    clusters = teaching.clusters(6)
    assert sum(cluster["share"] for cluster in clusters) == pytest.approx(1, abs=0.01)
    dives = max(clusters, key=lambda cluster: cluster["labeled"].get("dive", 0))
    assert dives["labeled"]["dive"] > 0.7
    number = dives["number"]
    assert teaching.name_clusters(6, [number], "dive", "rita") == {"suggested": dives["segments"]}
    review = teaching.review(100)
    assert {c["kind"] for c in review} == {"cluster"}
    assert {c["behavior"] for c in review} == {"dive"}
    counts = teaching.name_clusters(6, [number], "dive", "rita", as_labels=True)
    labeled = sum(len(teaching.project.recordings[i].track("rita").annotation) for i in range(3))
    assert labeled <= counts["labeled"] <= dives["segments"]
    origins = [origin for i in range(3) for origin in teaching.recorded_origins(i)]
    assert len(origins) == counts["labeled"]
    assert {origin["origin"] for origin in origins} == {"cluster"}


def test_unknown_clusters_and_behaviors_are_refused(teaching):
    with pytest.raises(EthobenchError, match="numbers from 0 to 2"):
        teaching.name_clusters(3, [3], "dive", "rita")
    with pytest.raises(EthobenchError, match="no behavior 'fly'"):
        teaching.name_clusters(3, [0], "fly", "rita")
    with pytest.raises(EthobenchError, match="from 1 to"):
        teaching.clusters(10_000)


def test_the_model_is_saved_next_to_the_corrections(trained):
    folder = trained.save("first: model/../x")
    assert folder.parent == trained.project.corrections.folder / "models"
    assert load_model(folder).name == "boost"
    with pytest.raises(EthobenchError, match="already exists"):
        trained.save("first: model/../x")
    with pytest.raises(EthobenchError, match="1 to 60"):
        trained.save("  ")


# Over HTTP


def test_videos_alone_become_something_to_learn_from(tmp_path, monkeypatch, serving):
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(SETTINGS, "rounds", 10)
    folder = tmp_path / "films"
    folder.mkdir()
    for name in ("a", "b"):
        write_video(folder / f"{name}.mp4", 60, RATE, codec="libx264")
    (folder / "ethogram.csv").write_text("behavior\nstill\nshake\n", encoding="utf-8")
    (folder / "recordings.csv").write_text("recording,video\na,a.mp4\nb,b.mp4\n", encoding="utf-8")
    project = open_project([str(folder)])
    client = serving(project)
    client.post("teacher/prepare", {})
    status = _finish(client, "unavailable")
    assert status["videos"] == 2
    assert "motion in the videos" in status["message"]
    client.post("teacher/videos", {})
    status = _finish(client)
    assert (status["state"], status["videos"], status["prepared"]) == ("idle", 0, True)
    project.start(0, "zoe")
    project.change(0, "zoe", None, lambda a: mark(mark(a, 0, 20, "still"), 20, 40, "shake"))
    client.post("teacher/train", {"annotators": ["zoe"]})
    assert _finish(client)["trainings"] == 1
    assert [recording.track("teacher").annotation.n_frames for recording in project.recordings] == [60, 60]
    again = Teaching(open_project([str(folder)]))
    assert len(again.teacher.recordings) == 2, "the features are kept"


def test_the_features_of_videos_can_be_cancelled_and_damaged_videos_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    write_video(tmp_path / "a.mp4", 60, RATE, codec="libx264")
    (tmp_path / "ethogram.csv").write_text("behavior\nstill\n", encoding="utf-8")
    (tmp_path / "recordings.csv").write_text("recording,video\na,a.mp4\n", encoding="utf-8")
    teaching = Teaching(open_project([str(tmp_path)]))
    teaching._cancel.set()
    teaching._embed_videos()
    assert (teaching.status()["state"], teaching.status()["videos"]) == ("unavailable", 1)
    assert "cancelled" in teaching.status()["message"]
    teaching._cancel.clear()
    (tmp_path / "a.mp4").write_bytes(b"damaged")
    teaching._embed_videos()
    assert "a.mp4: " in teaching.status()["message"]
    teaching.close()


@pytest.fixture
def study_client(study, serving) -> Client:
    return serving(open_project([str(study)]))


def _finish(client: Client, state: str | None = None) -> dict[str, Any]:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        status = client.get("teacher")
        if status["state"] not in ("training", "evaluating", "preparing") and state in (None, status["state"]):
            return status
        time.sleep(0.05)
    raise AssertionError("the training does not end")


def test_label_train_review_over_http(study_client):
    assert study_client.get("teacher")["trainings"] == 0
    assert "label some bouts" in study_client.get("teacher/review?n=5", 400)["error"]
    assert study_client.post("teacher/train", {"annotators": ["anna"]})["state"] == "training"
    status = _finish(study_client)
    assert (status["state"], status["trainings"]) == ("idle", 1), status
    assert "teacher" in [track["name"] for track in study_client.get("recordings/2")["tracks"]]
    first, second, *_ = study_client.get("teacher/review?n=5&annotator=rita&annotator=anna")
    body = {"recording": first["recording"], "annotator": "rita", "decision": "accepted", "bout": first}
    assert study_client.post("teacher/review", body) == {"track": "rita"}
    study_client.post("teacher/review", {**body, "recording": second["recording"], "decision": "rejected", "bout": second})
    origins = [o for i in range(3) for o in study_client.get(f"teacher/origins?recording={i}")]
    assert sorted(o["decision"] for o in origins) == ["accepted", "rejected"]
    tracks = {t["name"]: t for t in study_client.get(f"recordings/{first['recording']}")["tracks"]}
    stale = {**body, "revision": tracks["rita"]["revision"] + 7}
    study_client.post("teacher/review", stale, 409)
    study_client.post("teacher/train", {"annotators": ["rita", "anna"]})
    assert _finish(study_client)["trainings"] == 2
    assert len(study_client.post("teacher/similar", {"recording": 0, "start": 0, "stop": 30, "n": 4})) == 4
    assert len(study_client.get("teacher/clusters?n=4")) == 4
    named = {"n": 4, "clusters": [0, 1], "behavior": "still", "annotator": "rita"}
    assert study_client.post("teacher/clusters", named)["suggested"] > 0
    folder = study_client.post("teacher/save", {"name": "model one"})["folder"]
    assert (Path(folder) / "model.json").is_file()
    assert study_client.post("teacher/cancel", {})["state"] == "idle"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("train", {"annotators": "anna"}, 400),
        ("train", {"annotators": [1]}, 400),
        ("similar", {"recording": 9, "start": 0, "stop": 10}, 404),
        ("similar", {"recording": 0, "start": 10, "stop": 10}, 409),
        ("similar", {"recording": 0, "start": 0, "stop": 10**9}, 409),
        ("similar", {"recording": 0, "start": 0, "stop": 10, "n": 10**6}, 400),
        ("similar", {"recording": 0, "start": 0, "stop": 10, "subject": "nobody"}, 400),
        ("similar", {"recording": "../x", "start": 0, "stop": 10}, 400),
        ("clusters", {"n": 3, "clusters": ["a"], "behavior": "still", "annotator": "rita"}, 404),
        ("clusters", {"n": 3, "clusters": [0], "behavior": "fly", "annotator": "rita"}, 404),
        ("clusters", {"n": 3, "clusters": [0], "behavior": "still", "annotator": "rita", "as": "magic"}, 400),
        ("review", {"recording": 0, "annotator": "rita", "decision": "maybe", "bout": {}}, 400),
        ("review", {"recording": 0, "annotator": "rita", "decision": "accepted", "bout": {"start": 0, "stop": 5, "behavior": "fly"}}, 404),
        ("review", {"recording": 0, "annotator": "rita", "decision": "accepted", "bout": {"start": 5, "stop": 5, "behavior": "dive"}}, 409),
        (
            "review",
            {"recording": 0, "annotator": "rita", "decision": "accepted", "bout": {"start": 0, "stop": 10**6, "behavior": "dive"}},
            409,
        ),
        ("review", {"recording": 0, "annotator": "anna", "decision": "accepted", "bout": {"start": 0, "stop": 9, "behavior": "dive"}}, 400),
        ("save", {"name": "early"}, 400),
        ("save", {"name": "x" * 100}, 400),
        ("save", {}, 400),
    ],
)
def test_bad_requests_are_refused_with_a_message(study_client, study, path, body, status):
    assert study_client.post(f"teacher/{path}", body, status)["error"]
    assert not (study / "corrections" / "origins.jsonl").exists()
