"""Rodent-Bench segments: both shapes, all kinds of times, no mending."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ethobench.core import Annotation, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation
from ethobench.formats.text import Head


def segment(start: Any, end: Any, behavior: Any = "groom", **more: Any) -> dict[str, Any]:
    return {"segment_number": 1, "start_time": start, "end_time": end, "behavior": behavior, **more}


def put(folder: Path, content: Any, name: str = "a.json") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else json.dumps(content).encode())
    return path


@pytest.mark.parametrize("wrap", [True, False])
def test_both_shapes(tmp_path: Path, wrap: bool) -> None:
    items = [segment("00:05", "00:09"), segment("00:00", "00:05", "background"), segment("61:01", "01:02:03.5", "scratch")]
    path = put(tmp_path, {"segments": items} if wrap else items)
    assert detect(path).name == "segments"
    a = read_annotation(path)
    assert a.rate == 1000
    assert a.ethogram == Ethogram(["groom", "background", "scratch"], "background")
    assert a.start.tolist() == [0, 5000, 3_661_000]
    assert a.stop.tolist() == [5000, 9000, 3_723_500]
    assert a.order.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(7, 7), (7.25, 7.25), ("7.25", 7.25), ("7,5", 7.5), ("0:07", 7), ("120:00", 7200), ("2:00:00", 7200), ("00:07.5", 7.5)],
)
def test_times(tmp_path: Path, written: Any, seconds: float) -> None:
    a = read_annotation(put(tmp_path, [segment(0, written)]))
    assert a.duration == seconds


def test_the_requested_rate_is_used(tmp_path: Path) -> None:
    path = put(tmp_path, [segment(0.5, 1.01)])
    with pytest.warns(ReadWarning, match="1 of 2 times fall between frames at 30 Hz"):
        a = read_annotation(path, rate=30)
    assert (a.start.tolist(), a.stop.tolist()) == ([15], [30])


def test_overlaps_and_order_are_kept(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, [segment(5, 9), segment(0, 7, "dig")]))
    assert a.order.tolist() == [1, 0]
    assert not a.is_exclusive


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ('{"segments": [{"start_time": "00:01"', r"not valid JSON .*truncated"),
        ("[" * 100_000, "nested too deeply|not valid JSON"),
        ({"answer": []}, "expected a list of segments"),
        ({"segments": {}}, "expected a list of segments"),
        (3, "expected a list of segments"),
        ([segment(0, 1), "oops"], 'segment 2: expected an object with .*, got "oops"'),
        (
            [segment(0, 1), {"start_time": 0, "end_long_time": 1, "behavior": "dig"}],
            "segment 2: missing end_time; keys: start_time, end_long_time",
        ),
        ([{}], "segment 1: missing start_time, end_time, behavior; keys: none"),
        ([segment(0, "soon")], 'segment 1, end_time: "soon" is not a time'),
        ([segment(0, "00:75")], "segment 1, end_time"),
        ([segment(0, "1:75:00")], "segment 1, end_time"),
        ([segment(None, 1)], "segment 1, start_time: null is not a time"),
        ([segment(True, 1)], "segment 1, start_time: true is not a time"),
        (
            "[" + json.dumps(segment(0, 1)).replace("1,", "1e999,", 1).replace('"end_time": 1', '"end_time": 1e999') + "]",
            "end_time: Infinity",
        ),
        ([segment(-1, 1)], "segment 1: 'groom' starts at -1"),
        ([segment(0, 1, "")], "segment 1: behavior must be a name"),
        ([segment(0, 1, 4)], "segment 1: behavior must be a name, got 4"),
    ],
)
def test_bad_files(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read_recordings(put(tmp_path, content), "segments", warn=False)
    assert "\n" not in str(error.value)


def test_repairs_are_reported(tmp_path: Path) -> None:
    (recording,) = read_recordings(put(tmp_path, {"segments": [segment(5, 3, sure=1)], "model": "x"}), "segments", warn=False)
    notes = " ".join(map(str, recording.notes))
    assert "segment 1: 'groom' stops at 3, before its start at 5" in notes
    assert "ignored unknown keys: model, sure" in notes


@pytest.mark.parametrize(
    "content", [{"segments": [{"a": 1}]}, {"project": {}}, [1, 2], [{"keypoints": []}], "start_time end_time behavior"]
)
def test_does_not_detect_other_files(tmp_path: Path, content: Any) -> None:
    path = put(tmp_path, content)
    assert formats["segments"].sniff(path, Head(path)) == 0


def test_no_segments_at_all(tmp_path: Path) -> None:
    path = put(tmp_path, {"segments": []})
    assert detect(path).name == "segments"
    a = read_annotation(path)
    assert (len(a), a.n_frames) == (0, 0)


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = put(tmp_path, "\ufeff" + json.dumps([segment(0, 1)], indent=1).replace("\n", "\r\n"))
    assert detect(path).name == "segments"
    assert len(read_annotation(path)) == 1


def test_written_in_the_layout_of_the_prompts(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 40, 110_000], [40, 60, 110_010], ["dig", "lick", "dig"], ["dig", "lick"], 30, 110_010)
    notes = write_annotation(a, tmp_path / "m.json", "segments", times="MM:SS")
    assert "3 of 6 times are rounded" in str(notes)
    segments = json.loads((tmp_path / "m.json").read_text())["segments"]
    assert [s["end_time"] for s in segments] == ["00:01", "00:02", "61:07"]
    write_annotation(a, tmp_path / "h.json", "segments", times="HH:MM:SS")
    assert json.loads((tmp_path / "h.json").read_text())["segments"][2]["end_time"] == "01:01:07"
    with pytest.raises(EthobenchError, match="`times` must be one of seconds, MM:SS, HH:MM:SS"):
        write_annotation(a, tmp_path / "x.json", "segments", times="days")


def test_exact_by_default(tmp_path: Path) -> None:
    a = Annotation.from_bouts([40, 0], [60, 41], ["dig", "lick"], ["dig", "lick"], 30, 60)
    assert write_annotation(a, tmp_path / "x.json", "segments") == []
    assert read_annotation(tmp_path / "x.json", rate=30).order.tolist() == a.order.tolist()
    longer = Annotation.from_bouts([0, 5], [3, 5], ["dig", "lick"], ["dig", "lick", "groom"], 30, 60)
    notes = str(write_annotation(longer, tmp_path / "y.json", "segments"))
    for words in ("length of the recording", "does not store point events", "lost: groom"):
        assert words in notes
