"""MABe 2025 tables: agents, targets, and what each video was labeled for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation, write_recordings
from ethobench.formats.text import Head

TRAIN: dict[str, list[Any]] = {
    "agent_id": [1, 2, 1],
    "target_id": [2, 2, 2],
    "action": ["sniff", "rear", "attack"],
    "start_frame": [10, 0, 30],
    "stop_frame": [20, 5, 31],
}
SUBMISSION = (
    "row_id,video_id,agent_id,target_id,action,start_frame,stop_frame\n"
    "0,101,mouse1,mouse2,sniff,10,20\n1,101,mouse2,self,rear,0,5\n2,101,mouse1,mouse2,attack,30,31\n3,102,mouse1,self,rear,4,9\n"
)


def put(folder: Path, columns: dict[str, list[Any]], name: str = "101.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def text(folder: Path, content: str, name: str = "submission.csv") -> Path:
    (folder / name).write_bytes(content.encode())
    return folder / name


def test_training_file(tmp_path: Path) -> None:
    path = put(tmp_path, TRAIN)
    assert detect(path).name == "mabe2025"
    (recording,) = read_recordings(path, rate=25)
    a = recording.annotation()
    assert recording.id == "101"
    assert (a.start.tolist(), a.stop.tolist(), a.n_frames) == ([0, 10, 30], [5, 20, 31], 31)
    assert a.names(a.subject) == ["mouse2", "mouse1", "mouse1"]
    assert a.names(a.target) == [None, "mouse2", "mouse2"]
    assert a.order.tolist() == [1, 0, 2]
    assert a.ethogram.names == ("sniff", "rear", "attack")


@pytest.mark.parametrize("change", [("\n", "\n"), ("\n", "\r\n"), ("row_id", "\ufeffrow_id"), (",", ";")])
def test_submission(tmp_path: Path, change: tuple[str, str]) -> None:
    path = text(tmp_path, SUBMISSION.replace(*change))
    assert detect(path).name == "mabe2025"
    assert formats["mabe2025"].entries(path) == ["101", "102"]
    with pytest.warns(ReadWarning, match="no frame rate"):
        first, second = read_recordings(path)
    assert first.annotation() == read_annotation(put(tmp_path, TRAIN), rate=30)
    assert second.annotation().stop.tolist() == [9]
    assert read_annotation(path, entry="102", rate=30) == second.annotation()


@pytest.mark.parametrize(
    "labeled",
    [
        ["mouse1,mouse2,sniff", "mouse1,mouse2,attack", "mouse2,self,rear", "mouse1,self,dig"],
        '["mouse1,mouse2,sniff", "mouse1,mouse2,attack", "mouse2,self,rear", "mouse1,self,dig"]',
        {"101": ["1,2,sniff", "1,2,attack", "2,2,rear", "'mouse1','self','dig'"]},
    ],
)
def test_only_labeled_actions_are_observed(tmp_path: Path, labeled: Any) -> None:
    a = read_annotation(put(tmp_path, TRAIN), rate=30, labeled=labeled)
    assert a.ethogram.names == ("sniff", "attack", "rear", "dig")
    assert {*a.observed.tracks} == {
        Track("sniff", "mouse1", "mouse2"),
        Track("attack", "mouse1", "mouse2"),
        Track("rear", "mouse2"),
        Track("dig", "mouse1"),
    }
    assert iv.total(a.observed.of("dig", "mouse1")) == 31
    assert iv.total(a.observed.of("sniff", "mouse2", "mouse1")) == 0


def test_bouts_that_are_not_labeled_are_reported(tmp_path: Path) -> None:
    with pytest.warns(ReadWarning, match="not in labeled.*: mouse2,self,rear$"):
        read_annotation(put(tmp_path, TRAIN), rate=30, labeled=["mouse1,mouse2,sniff", "mouse1,mouse2,attack"])


@pytest.mark.parametrize(
    ("labeled", "message"),
    [
        (["sniff"], "got 'sniff'"),
        ("sniff", "got 'sniff'"),
        ("[oops", "not (a )?valid JSON"),
        ({"7": []}, "has no entry for video '101'; entries: 7"),
    ],
)
def test_bad_lists(tmp_path: Path, labeled: Any, message: str) -> None:
    with pytest.raises(EthobenchError, match=message):
        read_recordings(put(tmp_path, TRAIN), rate=30, labeled=labeled, warn=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("agent_id,action\n1,a\n", "header: no column target_id, start_frame, stop_frame"),
        (SUBMISSION.replace("30,31", "x,31"), "row 4: 'x' is not a frame number"),
        (SUBMISSION.replace("attack", ""), "row 4: blank action"),
        (SUBMISSION.replace("3,102", "3,"), "row 5: blank video_id"),
        (SUBMISSION.replace("0,5\n", "-3,5\n"), "row 3: 'rear' starts at -3"),
        (SUBMISSION + "9,1,1,1,a,0,1,2\n", "row 6: 8 cells"),
    ],
)
def test_bad_tables(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(text(tmp_path, content), "mabe2025", rate=30, warn=False)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = put(tmp_path, TRAIN)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FormatError, match="may be damaged"):
        detect(path)
    with pytest.raises(FormatError, match="not a valid Parquet file"):
        read_recordings(path, "mabe2025", rate=30, warn=False)


def test_parquet_bomb_is_refused(tmp_path: Path) -> None:
    column = pa.array(np.zeros(3_000_000, dtype=np.int64))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table(dict.fromkeys(TRAIN, column)), path, compression="zstd")
    with pytest.raises(FormatError, match=r"refused: its .* bytes would decompress to 3,000,000 rows"):
        read_recordings(path, "mabe2025", rate=30, warn=False)


def test_repairs_are_reported(tmp_path: Path) -> None:
    columns = {**TRAIN, "stop_frame": [20, None, 29], "mood": ["", "", ""]}
    (recording,) = read_recordings(put(tmp_path, columns), rate=30, warn=False)
    notes = "; ".join(map(str, recording.notes))
    for words in (
        "ignored unknown columns: mood",
        "row 2: 'rear' has no start or stop time; dropped",
        "row 3: 'attack' stops at 29, before its start at 30",
    ):
        assert words in notes


def test_does_not_detect_other_files(tmp_path: Path) -> None:
    for path in (text(tmp_path, "start_frame,stop_frame,action\n0,1,a\n"), put(tmp_path, {"x": [1]})):
        assert formats["mabe2025"].sniff(path, Head(path)) == 0


def test_both_kinds_of_file_survive(tmp_path: Path) -> None:
    result = read_recordings(text(tmp_path, SUBMISSION), rate=30, warn=False)
    write_recordings(result, tmp_path / "again.csv", "mabe2025")
    assert (tmp_path / "again.csv").read_text() == SUBMISSION
    write_recordings(result, tmp_path / "again.parquet", "mabe2025")
    again = read_recordings(tmp_path / "again.parquet", rate=30, warn=False)
    assert [(r.id, r.annotation()) for r in again] == [(r.id, r.annotation()) for r in result]
    write_annotation(result[0].annotation(), tmp_path / "101.parquet", "mabe2025")
    assert pq.read_schema(tmp_path / "101.parquet").names == list(TRAIN)
    assert read_annotation(tmp_path / "101.parquet", rate=30) == result[0].annotation()


def test_losses_are_reported(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 4], [3, 4], ["x", "x"], ["x", "y"], 30, 9, subject=["m", "m"], target=["m", ""])
    notes = str(write_recordings([Recording("v", annotations={"me": a})], tmp_path / "x.csv", "mabe2025"))
    for words in (
        "does not store point events",
        "length of the recording",
        "lost: y",
        "a target equal to the subject",
        "read it with rate=30",
    ):
        assert words in notes
    assert read_annotation(tmp_path / "x.csv", rate=30).target.tolist() == [-1]


MICE = st.sampled_from(["mouse1", "mouse2", "mouse3"])


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 50), st.sampled_from("ab"), MICE, st.none() | MICE), min_size=1, max_size=20
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str, str, str | None]]) -> None:
    stop = [s + d for s, d, *_ in rows]
    target = [t if t != m else None for *_, m, t in rows]
    a = Annotation.from_bouts(
        [r[0] for r in rows], stop, [r[2] for r in rows], ["a", "b"], 30, max(stop), subject=[r[3] for r in rows], target=target
    )
    folder = tmp_path_factory.mktemp("round")
    for name in ("a.csv", "a.parquet"):
        write_annotation(a, folder / name, "mabe2025")
        back = read_annotation(folder / name, rate=30).with_ethogram(a.ethogram)
        bouts = [(x.start.tolist(), x.stop.tolist(), x.names(x.subject), x.names(x.target), x.order.tolist()) for x in (a, back)]
        assert sorted(zip(*bouts[0], strict=True), key=lambda b: b[4]) == sorted(zip(*bouts[1], strict=True), key=lambda b: b[4])
