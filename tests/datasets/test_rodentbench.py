"""Rodent-Bench's sets as a user's folder holds them."""

from __future__ import annotations

import json

import pytest
from tests.mllm.drawing import plain_video

from ethobench import Annotation, load_dataset, write_annotation
from ethobench.core.errors import EthobenchError, FormatError, MissingDataError, NotFoundError
from ethobench.datasets.rodentbench import SETS, label_shares


def write_segments(path, *rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    segments = [{"segment_number": k, "start_time": a, "end_time": b, "behavior": name} for k, (a, b, name) in enumerate(rows, start=1)]
    path.write_text(json.dumps({"segments": segments}), encoding="utf-8")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path))
    return tmp_path / "rodentbench"


def test_segments_and_videos(root):
    write_segments(root / "grooming/annotations/b.json", ("00:00", "00:04", "other"), ("00:04", "00:05", "Grooming"))
    write_segments(root / "grooming/annotations/a.json", ("00:00", "00:03", "grooming"))
    (root / "grooming/videos").mkdir()
    plain_video(root / "grooming/videos/b.mp4", seconds=6)
    data = load_dataset("rodentbench/grooming")
    assert [r.id for r in data] == ["a", "b"]
    assert data.ethogram.names == ("grooming", "other")
    assert data.ethogram.background_name == "other"
    assert data["a"].video is None
    assert data["b"].video == root / "grooming/videos/b.mp4"
    assert (data["b"].n_frames, data["b"].rate) == (180, 30.0)
    truth = data["b"].annotation()
    assert (truth.start.tolist(), truth.stop.tolist(), truth.behavior.tolist()) == ([0, 120], [120, 150], [1, 0])
    assert truth.observed.of_any().stop.tolist() == [150]  # the last second is unobserved
    assert label_shares(data) == pytest.approx({"grooming": 4 / 8, "other": 4 / 8})


def test_short_ends_at_599_seconds(root):
    rows = [("00:00", "09:30", "Not Freezing"), ("09:30", "10:30", "Freezing"), ("10:30", "20:00", "Not Freezing")]
    write_segments(root / "freezing/annotations/long.json", *rows)
    write_segments(root / "freezing/annotations/brief.json", ("00:00", "01:00", "Freezing"))
    long, short = (load_dataset("rodentbench/freezing", version=version) for version in ("long", "short"))
    assert long["long"].n_frames == 1200 * 30
    assert short["long"].n_frames == 599 * 30
    assert short["long"].annotation().stop.tolist() == [570 * 30, 599 * 30]
    assert short["brief"].annotation() == long["brief"].annotation()
    assert long.version != short.version


def test_several_people_and_other_formats(root):
    ethogram = ["scratching", "licking", "background"]
    for person, shift in (("anna", 0), ("ben", 6)):
        annotation = Annotation.from_bouts([30 + shift, 90], [60, 120], ["scratching", "licking"], ethogram, rate=30, n_frames=300)
        (root / "mouse_ventral2/annotations" / person).mkdir(parents=True)
        write_annotation(annotation, root / "mouse_ventral2/annotations" / person / "m1.csv", "tidy")
    data = load_dataset("rodentbench/mouse_ventral2")
    assert data.annotators == ("anna", "ben")
    assert data["m1"].annotation("ben").start.tolist() == [36, 90]
    assert [data.ethogram[c].name for c in data["m1"].annotation("anna").behavior.tolist()] == ["scratch", "lick"]


def test_annotations_are_resampled_to_the_rate_of_the_dataset(root):
    (root / "mouse_ventral1/annotations").mkdir(parents=True)
    annotation = Annotation.from_bouts([30], [60], ["digging"], ["digging"], rate=30, n_frames=300)
    write_annotation(annotation, root / "mouse_ventral1/annotations/m.csv", "tidy")
    assert load_dataset("rodentbench/mouse_ventral1")["m"].annotation().start.tolist() == [60]


def test_a_manifest_works_instead_of_folders(root):
    folder = root / "grooming"
    write_segments(folder / "x.json", ("00:00", "00:03", "Not Grooming"), ("00:03", "00:09", "Grooming"))
    table = "recording,individual,rate,annotations,annotator\nx,mouse1,30,x.json,anna\n"
    (folder / "recordings.csv").write_text(table, encoding="utf-8")
    data = load_dataset("rodentbench/grooming", version="short")
    assert data["x"].individual == "mouse1"
    assert data["x"].annotation().behavior.tolist() == [1, 0]


def test_the_version_changes_with_the_content(root):
    write_segments(root / "freezing/annotations/a.json", (0, 5, "Freezing"))
    first = load_dataset("rodentbench/freezing").version
    assert load_dataset("rodentbench/freezing").version == first
    write_segments(root / "freezing/annotations/a.json", (0, 6, "Freezing"))
    assert load_dataset("rodentbench/freezing").version != first


def test_mistakes_are_reported(root):
    with pytest.raises(MissingDataError, match=r"put videos into .*freezing/videos and annotations"):
        load_dataset("rodentbench/freezing")
    write_segments(root / "freezing/annotations/a.json", (0, 5, "Sleeping"))
    with pytest.raises(NotFoundError, match="'Sleeping' is not one of the behaviors of this task: Freezing, Not Freezing"):
        load_dataset("rodentbench/freezing")
    with pytest.raises(EthobenchError, match="has the options `version`"):
        load_dataset("rodentbench/freezing", version="tiny")
    write_segments(root / "freezing/annotations/a.json", (0, 5, "Freezing"))
    (root / "freezing/videos").mkdir()
    (root / "freezing/videos/a.mp4").write_bytes(b"no video")
    with pytest.raises(FormatError, match=r"a\.mp4.*damaged"):
        load_dataset("rodentbench/freezing")


def test_all_six_datasets_are_listed():
    from ethobench.datasets import all_names

    assert {f"rodentbench/{name}" for name in SETS} <= {*all_names()}
    assert len(SETS) == 6
