"""BENTO .annot: frames from 1, the stop frame still in the bout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation, write_recordings

HEAD = """Bento annotation file
Movie file(s):  D:\\videos\\mouse 1_Top.seq

Stimulus name:
Annotation start frame: 1
Annotation stop frame: 100
Annotation framerate: 10.000000

"""
LISTS = "List of channels:\nCh1\nCh2\n\nList of annotations:\nattack\nsniff\nother\n\n"
BOUTS = """Ch1----------
>attack
Start\t Stop\t Duration\x20
0.1\t0.3\t0.3
2\t2\t0.1

>sniff
Start\t Stop\t Duration\x20
0.4\t1\t0.7


"""


def put(folder: Path, text: str, name: str = "m.annot") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def notes_of(path: Path, **options: float) -> str:
    return "; ".join(str(n) for r in read_recordings(path, **options, warn=False) for n in r.notes)


@pytest.mark.parametrize("change", [("\n", "\n"), ("\n", "\r\n"), ("Bento", "\ufeffBento"), ("List of channels", "List of Channels")])
def test_plain(tmp_path: Path, change: tuple[str, str]) -> None:
    path = put(tmp_path, (HEAD + LISTS + BOUTS).replace(*change))
    assert detect(path).name == "bento"
    assert formats["bento"].entries(path) == ["Ch1", "Ch2"]
    first, second = read_recordings(path)
    assert (first.id, second.id) == ("m/Ch1", "m/Ch2")
    assert first.individual == second.individual == "m"
    assert first.metadata["movies"] == "D:\\videos\\mouse 1_Top.seq"
    a = first.annotation()
    assert (a.rate, a.n_frames) == (10, 100)
    assert a.ethogram == Ethogram(["attack", "sniff", "other"], "other")
    assert (a.start.tolist(), a.stop.tolist()) == ([0, 3, 19], [3, 10, 20])
    assert a.behavior.tolist() == [0, 1, 0]
    assert a.order.tolist() == [0, 2, 1]
    assert len(second.annotation()) == 0
    assert read_annotation(path, entry="Ch1") == a


def test_older_files_count_frames(tmp_path: Path) -> None:
    text = HEAD.replace("Annotation framerate: 10.000000\n", "") + LISTS
    path = put(tmp_path, text + "Ch1----------\n>attack\nStart\tStop\tDuration\n1\t3\t3\n20\t20\t1\n\n")
    with pytest.warns(ReadWarning, match="no frame rate"):
        a = read_annotation(path, entry="Ch1")
    assert a.rate == 30
    assert (a.start.tolist(), a.stop.tolist()) == ([0, 19], [3, 20])
    assert read_annotation(path, entry="Ch1", rate=25).rate == 25


def test_stop_is_exclusive_where_the_duration_confirms_it(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + LISTS + "Ch1----------\n>attack\nStart\tStop\tDuration\n0.1\t0.3\t0.2\n1.0\t2.0\t1.0\n\n")
    with pytest.warns(ReadWarning, match="Duration is stop - start"):
        a = read_annotation(path, entry="Ch1")
    assert (a.start.tolist(), a.stop.tolist()) == ([0, 9], [2, 19])


def test_counted_from_zero(tmp_path: Path) -> None:
    head = HEAD.replace("start frame: 1", "start time: 0.000000e+00").replace("stop frame: 100", "stop time: 1.000000e+01")
    path = put(tmp_path, head + LISTS + "Ch1----------\n>attack\nStart\tStop\tDuration\n0.0\t0.3\t0.3\n1.0\t2.0\t1.0\n\n")
    a = read_recordings(path, entry="Ch1", warn=False)[0].annotation()
    assert (a.start.tolist(), a.stop.tolist()) == ([0, 10], [3, 20])
    assert "counted from 0" in notes_of(path)


def test_frames_before_the_start_were_not_observed(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, HEAD.replace("start frame: 1", "start frame: 41") + LISTS + BOUTS), entry="Ch2")
    assert (a.observed.frames.start.tolist(), a.observed.frames.stop.tolist()) == ([40], [100])


def test_bouts_beyond_the_end_lengthen_the_recording_with_a_note(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD.replace("stop frame: 100", "stop frame: 15") + LISTS + BOUTS)
    with pytest.warns(ReadWarning, match="line 22: 'attack' ends after the last of 15 frames"):
        assert read_annotation(path, entry="Ch1").n_frames == 20


def test_repairs_are_reported(tmp_path: Path) -> None:
    text = HEAD + LISTS + "Ch3----------\n>jump\nStart\tStop\tDuration\n0.5\t0.2\t0.1\n0.51\t0.8\t0.4\n\n"
    notes = notes_of(put(tmp_path, text))
    for words in (
        "line 18: channel 'Ch3' is not in the list",
        "line 19: 'jump' is not in the list",
        "line 21: 'jump' stops at ",
        "fall between frames",
    ):
        assert words in notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("Something else\n", "line 1: not a BENTO file"),
        (HEAD + LISTS + "Ch1----------\n>attack\nStart\tStop\tDuration\n0.1\n", "line 21: expected a start and a stop"),
        (HEAD + LISTS + "Ch1----------\n>attack\nStart\tStop\tDuration\n0.1\tx\t1\n", "line 21: 'x' is not a number"),
        (HEAD.replace("10.000000", "fast") + LISTS, "line 7: 'fast' is not a number"),
        (HEAD.replace("frame: 100", "frame: 1e300") + LISTS, "line 6: implausible time '1e300'"),
        (HEAD + LISTS + "Ch1----------\n>attack\nStart\tStop\tDuration\n0.1\tnan\t1\n", "line 21: implausible time 'nan'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path, text), "bento", warn=False)


def test_unknown_channel(tmp_path: Path) -> None:
    with pytest.raises(EthobenchError, match="no entry 'Ch9'; available: Ch1, Ch2"):
        read_annotation(put(tmp_path, HEAD + LISTS + BOUTS), entry="Ch9")


def test_requested_rate_resamples(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + LISTS + BOUTS)
    with pytest.warns(ReadWarning, match="resampled from 10 Hz to 20 Hz"):
        assert read_annotation(path, entry="Ch1", rate=20).stop.tolist() == [6, 20, 40]


def test_channels_survive(tmp_path: Path) -> None:
    result = read_recordings(put(tmp_path, HEAD + LISTS + BOUTS))
    assert write_recordings(result, tmp_path / "again.annot") == []
    again = read_recordings(tmp_path / "again.annot")
    assert [r.id for r in again] == ["again/Ch1", "again/Ch2"]
    assert again[0].annotation().to_frames().tolist() == result[0].annotation().to_frames().tolist()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0], [1], ["x"], ["x"], 30, 5)
    two = [Recording("r/a", annotations={"me": a}), Recording("r/b", annotations={"me": a.resample(60)})]
    with pytest.raises(EthobenchError, match="share one clock"):
        write_recordings(two, tmp_path / "x.annot")
    with pytest.raises(EthobenchError, match="need different names"):
        write_recordings([two[0], two[0]], tmp_path / "x.annot")
    with pytest.raises(EthobenchError, match="the behavior ' x' has a leading or trailing space"):
        write_annotation(a.rename({"x": " x"}), tmp_path / "x.annot")
    lossy = Annotation.from_bouts([0, 2], [1, 2], ["x", "x"], ["x"], 30, 5, subject=["m", "m"], observed=np.arange(5) < 3)
    notes = str(write_annotation(lossy, tmp_path / "y.annot"))
    for words in ("does not store subjects", "does not store point events", "which frames are unobserved"):
        assert words in notes


@pytest.mark.data
def test_sample(data: Path) -> None:
    path = data / "formats/bento/bento_example.annot"
    assert detect(path).name == "bento"
    (recording,) = read_recordings(path)
    a = recording.annotation()
    assert (recording.id, a.rate, a.n_frames, len(a)) == ("bento_example", 30, 19_955, 229)
    assert len(a.ethogram) == 9
    attack = a.spans("attack")
    assert (attack.start[0], attack.stop[0]) == (90, 157)
    assert (a.stop - a.start).min() >= 1
