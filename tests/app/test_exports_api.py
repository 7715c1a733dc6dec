"""Clips and timelines from the viewer."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from ethobench import Annotation, write_annotation
from ethobench.app.opening import open_project
from tests.app.conftest import TOKEN
from tests.app.test_video_api import finished
from tests.video_files import decode, write_numbered_video

RATE, N = 10, 60


@pytest.fixture
def client(tmp_path, serving):
    write_numbered_video(tmp_path / "m1.mp4", np.arange(N) / RATE)
    labels = Annotation.from_bouts([10, 30, 45], [20, 33, 50], ["rear", "groom", "rear"], ["rear", "groom"], RATE, N)
    write_annotation(labels, tmp_path / "m1.csv", "tidy")
    table = "recording,rate,video,annotations,annotator\nm1,10,m1.mp4,m1.csv,anna\nm2,10,,m1.csv,anna\n"
    (tmp_path / "recordings.csv").write_text(table, encoding="utf-8")
    return serving(open_project([str(tmp_path)]))


def exported(client, body, recording=0):
    job = finished(client, client.post(f"recordings/{recording}/clips", {"track": "anna", **body}))
    assert job["state"] == "done", job
    status, headers, content = client.request(f"/{TOKEN}/api/jobs/{job['job']}/file")
    assert status == 200
    return headers["content-disposition"].partition("''")[2], content


def test_the_selected_bout(client, tmp_path):
    bout = {"start": 30, "stop": 33, "behavior": "groom", "subject": None}
    name, content = exported(client, {"what": "bout", "bout": bout, "margin": 0.5})
    (tmp_path / "got.mp4").write_bytes(content)
    assert name == "m1.30.mp4"
    assert len(decode(tmp_path / "got.mp4")) == 13


def test_all_bouts_of_a_behavior(client, tmp_path):
    name, content = exported(client, {"what": "clips", "behavior": "rear", "margin": 0, "all": True})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert sorted(archive.namelist()) == ["clips.csv", "rear/m1.anna.0001.mp4", "rear/m1.anna.0002.mp4"]
        archive.extractall(tmp_path / "zip")
    assert name.endswith(".clips.zip")
    assert [len(decode(path)) for path in sorted((tmp_path / "zip" / "rear").iterdir())] == [10, 5]


@pytest.mark.slow
def test_grid_and_overlay(client, tmp_path):
    for body, name, count in (
        ({"what": "grid", "behavior": "rear", "margin": 0}, "m1.grid.mp4", 10),
        ({"what": "overlay"}, "m1.overlay.mp4", N),
    ):
        file, content = exported(client, body)
        (tmp_path / file).write_bytes(content)
        assert (file, len(decode(tmp_path / file))) == (name, count)


@pytest.mark.slow
def test_timelines(client):
    status, headers, content = client.request(f"/{TOKEN}/api/recordings/0/timeline?format=svg&track=anna")
    assert (status, headers["content-type"].partition(";")[0]) == (200, "image/svg+xml")
    assert b"<svg" in content
    assert client.request(f"/{TOKEN}/api/recordings/1/timeline?format=pdf")[2].startswith(b"%PDF")
    cropped = client.request(f"/{TOKEN}/api/recordings/0/timeline?format=svg&track=anna&start=1&stop=2.5")[2]
    assert b"<svg" in cropped
    assert cropped != content
    assert "stop must be a number of seconds" in client.get("recordings/0/timeline?format=svg&stop=soon", 400)["error"]
    client.get("recordings/0/timeline?format=exe", 400)
    client.get("recordings/0/timeline?format=svg&track=nobody", 400)


def test_wrong_requests_are_refused(client):
    for body in (
        {"what": "everything"},
        {"what": "clips", "track": None},
        {"what": "clips", "behavior": 3},
        {"what": "bout", "bout": 5},
        {"what": "clips", "margin": -1},
        {"what": "clips", "margin": True, "max": "all"},
        {"what": "clips", "height": 10**9},
    ):
        client.post("recordings/0/clips", {"track": "anna", **body}, 400)
    client.post("recordings/0/clips", {"what": "clips", "track": "nobody"}, 404)
    client.post("recordings/9/clips", {"what": "clips", "track": "anna"}, 404)
    gone = {"start": 1, "stop": 2, "behavior": "groom"}
    job = finished(client, client.post("recordings/0/clips", {"what": "bout", "track": "anna", "bout": gone}))
    assert (job["state"], job["error"]) == ("failed", "the selected bout is not in the track any more; select it again")
    client.get(f"jobs/{job['job']}/file", 409)
    client.get("jobs/77", 404)
    bare = finished(client, client.post("recordings/1/clips", {"what": "clips", "track": "anna"}))
    assert "neither a video nor poses" in bare["error"]


@pytest.mark.slow
def test_labels_of_each_annotator_are_exported_in_every_writable_format(client, tmp_path):
    described = client.get("project")
    assert {"boris", "tidy"} <= {format["name"] for format in described["formats"]}
    for format in described["formats"]:
        status, headers, content = client.request(f"/{TOKEN}/api/recordings/0/export?track=anna&format={format['name']}")
        reason = {"bebe_predictions": b"need a behavior for each observed frame", "simba": b"needs poses"}.get(format["name"])
        if reason is not None:
            assert (status, reason in content) == (400, True), "these labels cannot be stored in this format, and the page says why"
            continue
        assert status == 200, (format, content[:300])
        assert headers["content-disposition"].endswith(format["suffix"])
        assert content


@pytest.mark.slow
def test_a_conversion_can_be_cancelled(tmp_path, serving):
    write_numbered_video(tmp_path / "long.avi", np.arange(240) / 30, "mpeg4", size=(320, 240))
    (tmp_path / "recordings.csv").write_text("recording,video\nm1,long.avi\n", encoding="utf-8")
    client = serving(open_project([str(tmp_path)]))
    job = client.post("recordings/0/convert", {"camera": 0})
    client.post(f"jobs/{job['job']}/cancel", {})
    assert finished(client, job)["state"] == "cancelled"
    assert not client.get("recordings/0/cameras")["cameras"][0]["converted"]
    client.get(f"jobs/{job['job']}/file", 409)
