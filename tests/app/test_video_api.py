"""Videos in the viewer: clocks, cameras, conversion, motion energy."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ethobench import Annotation, write_annotation
from ethobench.app.opening import open_project
from ethobench.core.video import presentation_times, probe
from ethobench.features.motion_energy import motion_energy
from tests.app.conftest import TOKEN
from tests.video_files import decode, picture_number, write_numbered_video

RATE, N = 10, 60


@pytest.fixture
def filmed(tmp_path):
    """A study with two cameras of one recording."""
    root = tmp_path / "films"
    root.mkdir()
    write_numbered_video(root / "top.avi", np.arange(N) / 30, "mpeg4")
    write_numbered_video(root / "side.mp4", np.arange(N) / 30)
    labels = Annotation.from_bouts([10, 30], [20, 33], ["rear", "groom"], ["rear", "groom"], 30, N)
    write_annotation(labels, root / "m1.csv", "tidy")
    table = "recording,video,video_offset,annotations,annotator\nm1,top.avi;side.mp4,0;-0.5,m1.csv,anna\n"
    (root / "recordings.csv").write_text(table, encoding="utf-8")
    return root


def finished(client, job):
    while job["state"] in ("waiting", "running"):
        time.sleep(0.05)
        job = client.get(f"jobs/{job['job']}")
    return job


def test_cameras_are_described(filmed, serving):
    client = serving(open_project([str(filmed)]))
    assert client.get("recordings/0")["cameras"] == [{"name": "top.avi", "offset": 0.0}, {"name": "side.mp4", "offset": -0.5}]
    described = client.get("recordings/0/cameras")
    assert [(c["codec"], c["converted"], c["error"]) for c in described["cameras"]] == [("mpeg4", False, ""), ("h264", False, "")]
    assert (described["rate"], described["irregular"]) == (30.0, False)
    client.get("recordings/0/frame_times", 404)
    client.get("recordings/0/video?camera=2", 404)
    client.get("recordings/0/video?camera=0&converted=1", 404)
    (filmed / "side.mp4").write_bytes(b"\0" * 100)
    assert "side.mp4" in client.get("recordings/0/cameras")["cameras"][1]["error"]


def test_a_video_is_converted_into_the_cache_once(filmed, serving, tmp_path):
    client = serving(open_project([str(filmed)]))
    before = (filmed / "top.avi").read_bytes()
    job = finished(client, client.post("recordings/0/convert", {"camera": 0}))
    assert (job["state"], job["error"]) == ("done", "")
    status, headers, content = client.request(f"/{TOKEN}/api/recordings/0/video?camera=0&converted=1")
    assert (status, headers["content-type"]) == (200, "video/mp4")
    converted = tmp_path / "converted.mp4"
    converted.write_bytes(content)
    assert probe(converted).codec == "h264"
    assert np.allclose(presentation_times(converted), presentation_times(filmed / "top.avi"), atol=1e-3)
    assert [picture_number(p.mean(), i) for i, p in enumerate(decode(converted))] == [*range(N)]
    assert (filmed / "top.avi").read_bytes() == before
    assert sorted(p.name for p in filmed.iterdir()) == ["m1.csv", "recordings.csv", "side.mp4", "top.avi"]
    assert client.get("recordings/0/cameras")["cameras"][0]["converted"]
    client.post("recordings/0/convert", {"camera": "0"}, 400)
    client.post("recordings/0/convert", {"camera": 7}, 404)


def test_rows_of_poses_are_pictures_of_a_video_with_a_variable_rate(tmp_path, serving):
    times = np.round(np.concatenate((np.arange(20) / 25, 1.1 + np.arange(20) / 10)), 3)
    write_numbered_video(tmp_path / "a.mp4", times)
    header = "scorer,x,x,x,x,x,x\nbodyparts,nose,nose,nose,tail,tail,tail\ncoords,x,y,likelihood,x,y,likelihood\n"
    rows = "\n".join(f"{i},{i},1,1,{i},2,1" for i in range(40))
    (tmp_path / "a.csv").write_text(f"{header}{rows}\n", encoding="utf-8")
    (tmp_path / "recordings.csv").write_text("recording,rate,signals,video\na,25,a.csv,a.mp4\n", encoding="utf-8")
    client = serving(open_project([str(tmp_path)]))
    described = client.get("recordings/0/cameras")
    assert described["irregular"]
    assert "varies" in described["notes"][0]
    status, _, content = client.request(f"/{TOKEN}/api/recordings/0/frame_times")
    assert status == 200
    assert np.allclose(np.frombuffer(content, "<f8"), times, atol=1e-3)


def test_motion_energy_becomes_a_lane(filmed, serving):
    client = serving(open_project([str(filmed)]))
    assert client.get("recordings/0/signals")["motion"] is None
    client.get("recordings/0/tiles?level=0&index=0&lane=motion", 404)
    assert finished(client, client.post("recordings/0/motion", {}))["state"] == "done"
    assert client.get("recordings/0/signals")["motion"]["label"] == "motion"
    assert "mean" in client.get("recordings/0/tiles?level=0&index=0&lane=motion")[0]


def test_motion_energy_is_the_difference_of_consecutive_pictures(tmp_path):
    path = write_numbered_video(tmp_path / "a.mp4", np.arange(20) / 10)
    energy = motion_energy(path, (np.arange(25) + 0.5) / 10)
    grays = np.array([picture.mean() for picture in decode(path)])
    assert energy[0] == 0
    assert np.allclose(energy[1:20], np.abs(np.diff(grays)), atol=3)
    assert np.isnan(energy[21:]).all()
    twice = motion_energy(path, (np.arange(40) + 0.5) / 20)
    assert (twice[1::2] == 0).all(), "a picture that is displayed twice does not move"


def test_an_unreadable_video_is_an_error_of_the_job(tmp_path, serving):
    (tmp_path / "a.mp4").write_bytes(b"\0" * 1000)
    labels = Annotation.from_bouts([10], [20], ["rear"], ["rear"], 30, N)
    write_annotation(labels, tmp_path / "m1.csv", "tidy")
    (tmp_path / "recordings.csv").write_text("recording,video,annotations\nm1,a.mp4,m1.csv\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"a\.mp4"):
        project = open_project([str(tmp_path)])
    client = serving(project)
    for path in ("convert", "motion"):
        job = finished(client, client.post(f"recordings/0/{path}", {}))
        assert job["state"] == "failed"
        assert "a.mp4" in job["error"]
