"""Caltech Behavior Annotator text: streams with one label per frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Behavior, Ethogram, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation, write_recordings

HEAD = "Caltech Behavior Annotator - Annotation File\n\nConfiguration file:\nbase\tz\nsocial\ts\nbite b\n\n"
S1 = "S1:\tstart\tend\ttype\n-----------------------------\n   \t1\t10\tbase\n   \t11\t15\tsocial\n   \t16\t20\tbase\n  \n"
S2 = "S2:\tstart\tend\ttype\n-----------------------------\n   \t1\t18\tbase\n   \t19\t20\tbite\n  \n"


def put(folder: Path, text: str, name: str = "07.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def notes_of(path: Path) -> str:
    return "; ".join(str(n) for r in read_recordings(path, "caltech", rate=30, warn=False) for n in r.notes)


@pytest.mark.parametrize("change", [("\n", "\n"), ("\n", "\r\n"), ("Caltech", "\ufeffCaltech"), ("\t", "    ")])
def test_streams(tmp_path: Path, change: tuple[str, str]) -> None:
    path = put(tmp_path, (HEAD + S1 + S2).replace(*change))
    assert detect(path).name == "caltech"
    assert formats["caltech"].entries(path) == ["S1", "S2"]
    first, second = read_recordings(path, rate=25)
    assert (first.id, second.id, second.individual) == ("07/S1", "07/S2", "07")
    a, b = first.annotation(), second.annotation()
    assert a.ethogram == Ethogram([Behavior("base", key="z"), Behavior("social", key="s"), Behavior("bite", key="b")], "base")
    assert (a.start.tolist(), a.stop.tolist(), a.behavior.tolist()) == ([0, 10, 15], [10, 15, 20], [0, 1, 0])
    assert b.stop.tolist() == [18, 20]
    assert (a.rate, a.n_frames, b.n_frames) == (25, 20, 20)
    assert a.observed.is_complete(20)
    assert read_annotation(path, entry="S2", rate=25) == b


def test_one_stream_has_the_files_name(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + S1)
    with pytest.warns(ReadWarning, match="no frame rate"):
        (recording,) = read_recordings(path)
    assert recording.id == "07"
    assert formats["caltech"].entries(path) == ["S1"]
    assert read_annotation(path, entry="S1", rate=30) == recording.annotation()


def test_frames_without_a_label_were_not_observed(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + S1.replace("\t11\t15\tsocial", "\t13\t15\tsocial") + S2.replace("   \t19\t20\tbite\n", ""))
    notes = notes_of(path)
    assert "stream S1 has no label for 2 of 20 frames" in notes
    assert "stream S2 has no label for 2 of 20 frames" in notes
    a = read_recordings(path, entry="S1", rate=30, warn=False)[0].annotation()
    assert np.flatnonzero(a.to_codes() == -1).tolist() == [10, 11]


def test_overlaps_are_reported_and_kept(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + S1.replace("\t11\t15", "\t9\t15"))
    assert "line 11: stream S1 has two labels for some frames (1 overlaps)" in notes_of(path)
    assert read_recordings(path, rate=30, warn=False)[0].annotation().start.tolist() == [0, 8, 15]


def test_odd_rows_are_reported(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + S1.replace("\t11\t15\tsocial", "\t11\t15\trear up") + "   \t25\t24\tbase\n")
    notes = notes_of(path)
    assert "line 11: 'rear up' is not in the configuration; added" in notes
    assert "line 14: 'base' stops at 23, before its start at 24" in notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("Bento annotation file\n", "line 1: not a Caltech Behavior Annotator file"),
        (HEAD, "no stream"),
        (HEAD + S1 + S1, "line 14: duplicate stream S1"),
        (HEAD + S1.replace("\t16\t20\tbase", "\t16\t2"), "line 12: expected start, end and type"),
        (HEAD + S1.replace("\t16\t20", "\t16\tend"), "line 12: expected start, end and type"),
        (HEAD + S1.replace("\t1\t10", "\t0\t10"), "line 10: frames are counted from 1"),
        (HEAD + S1.replace("\t16\t20", "\t16\t99999999999999999999"), "line 12: implausible frame number 99999999999999999999"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path, text), "caltech", rate=30, warn=False)


def test_streams_survive(tmp_path: Path) -> None:
    result = read_recordings(put(tmp_path, HEAD + S1 + S2), rate=30)
    write_recordings(result, tmp_path / "again.txt")
    again = read_recordings(tmp_path / "again.txt", rate=30)
    assert [r.annotation() for r in again] == [r.annotation() for r in result]


def test_what_is_lost_or_refused(tmp_path: Path) -> None:
    plain = Annotation.from_bouts([2, 6], [4, 8], ["a", "a"], ["a"], 30, 10, observed=np.arange(10) < 8)
    notes = str(write_annotation(plain, tmp_path / "a.txt", "caltech"))
    for words in ("written as 'other'", "will be read as shorter", "read it with rate=30"):
        assert words in notes
    back = read_recordings(tmp_path / "a.txt", rate=30, warn=False)[0].annotation()
    assert back.ethogram.names == ("a", "other")
    assert back.n_frames == 8
    over = Annotation.from_bouts([0, 1], [3, 4], ["a", "b"], ["a", "b"], 30, 5)
    with pytest.raises(MismatchError, match="one behavior at a time"):
        write_annotation(over, tmp_path / "b.txt", "caltech")
    with pytest.raises(EthobenchError, match="such as 'a b'"):
        write_annotation(plain.rename({"a": "a b"}), tmp_path / "b.txt", "caltech")
    two = [Recording("x", annotations={"me": plain}), Recording("y", annotations={"me": plain.crop(0, 5)})]
    with pytest.raises(EthobenchError, match="share one length"):
        write_recordings(two, tmp_path / "b.txt", "caltech")
    assert not (tmp_path / "b.txt").exists()


@given(codes=st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=60))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, codes: list[int]) -> None:
    a = Annotation.from_frames(np.array([*codes, 0]), Ethogram(["base", "a", "bb"], "base"), 30, unobserved=-1)
    path = tmp_path_factory.mktemp("round") / "a.txt"
    write_annotation(a, path, "caltech")
    assert read_recordings(path, rate=30, warn=False)[0].annotation().to_codes().tolist() == a.to_codes().tolist()


@pytest.mark.data
def test_rats(data: Path) -> None:
    paths = sorted(data.glob("rats/annotations/*.txt"))
    assert len(paths) == 46
    streams = [read_recordings(path, rate=30, warn=False) for path in paths]
    assert all(detect(path).name == "caltech" for path in paths)
    assert sum(len(s) == 2 for s in streams) == 38
    assert {note.message for s in streams for r in s for note in r.notes} == set()
    first = streams[0][0].annotation()
    assert (first.n_frames, len(first), first.ethogram.background_name) == (14_734, 70, "base")
    assert len(first.ethogram) == 11
    for pair in streams:
        for recording in pair:
            assert recording.annotation().is_exclusive
