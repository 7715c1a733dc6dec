from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Recording
from ethobench.core import Track
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import detect, formats, read_recordings, write_recordings

OLD_HEADER = (
    "Observation id,Observation date,Description,Media file,Total length,FPS,cage,Subject,Behavior,Behavioral category,Modifiers,"
    "Behavior type,Start (s),Stop (s),Duration (s),Comment start,Comment stop\n"
)
OLD = (
    OLD_HEADER + "one,2016-12-01 23:01:31,,C:\\v\\a.avi,20.000,10.0,7,No focal subject,attack,,,STATE,1.000,3.500,2.500,begin,end\n"
    "one,2016-12-01 23:01:31,,C:\\v\\a.avi,20.000,10.0,7,adult,attack,,hard|left,STATE,2.000,5.000,3.000,,\n"
    "one,2016-12-01 23:01:31,,C:\\v\\a.avi,20.000,10.0,7,adult,bite,,,POINT,4.200,4.200,NA,ouch,\n"
    "two,2016-12-02 23:01:31,,C:\\v\\b.avi,30.000,25.0,8,adult,attack,,,STATE,0.000,1.000,1.000,,\n"
)
NEW = (
    "Observation id,Observation date,Description,Observation type,Source,Time offset (s),Coding duration,Media duration (s),FPS (frame/s),"
    "Subject,Observation duration by subject by observation,Behavior,Behavioral category,Modifier #1,Modifier #2,Behavior type,Start (s),"
    "Stop (s),Duration (s),Media file name,Image index start,Image index stop,Image file path start,Image file path stop,Comment start,"
    "Comment stop\n"
    "one,2024-01-01 10:00:00,,Media file,player #1:a.avi;b.avi|player #2:c.avi,100.0,2.500,20.000;5.500|99.000,10.000;10.000|25.000,"
    "adult,2.5,attack,Not defined,hard,left,STATE,101.000,103.500,2.500,a.avi,10,35,NA,NA,,\n"
)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(text: str, name: str = "events.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return to_file


def messages(recording: Recording) -> str:
    return "\n".join(map(str, recording.notes))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_old_layout(write: Any, delimiter: str) -> None:
    path = write("\ufeff" + OLD.replace(",", delimiter).replace("\n", "\r\n"))
    assert detect(path).name == "boris_aggregated"
    assert formats["boris_aggregated"].entries(path) == ["one", "two"]
    one, two = read_recordings(path, warn=False)
    a = one.annotation()
    assert (a.rate, a.n_frames, one.notes) == (10.0, 200, ())
    assert (a.start.tolist(), a.stop.tolist()) == ([10, 20, 42], [35, 50, 42])
    assert a.names(a.subject) == [None, "adult", "adult"]
    assert list(a.modifiers) == ["", "hard|left", ""]
    assert list(a.comment) == ["begin / end", "", "ouch"]
    assert [(b.name, b.point) for b in a.ethogram] == [("attack", False), ("bite", True)]
    assert one.metadata["independent_variables"] == {"cage": "7"}
    assert (two.rate, two.n_frames, two.annotation().stop.tolist()) == (25.0, 750, [25])


def test_the_new_layout(write: Any) -> None:
    path = write(NEW)
    assert detect(path).name == "boris_aggregated"
    (recording,) = read_recordings(path, warn=False)
    a = recording.annotation()
    assert (a.rate, a.n_frames, recording.notes) == (10.0, 255, ())
    assert (a.start.tolist(), a.stop.tolist(), list(a.modifiers)) == ([10], [35], ["hard|left"])


def test_images_are_frames(write: Any) -> None:
    text = NEW.replace("101.000,103.500,2.500", "NA,NA,NA").replace("20.000;5.500|99.000", "NA").replace("10.000;10.000|25.000", "NA")
    a = read_recordings(write(text), warn=False)[0].annotation()
    assert (a.start.tolist(), a.stop.tolist(), a.n_frames, a.rate) == ([10], [35], 36, 30.0)


def test_a_table_without_header_is_read_by_position(write: Any) -> None:
    path = write(OLD.removeprefix(OLD_HEADER).replace(",", "\t"), "x.tsv")
    assert detect(path).name == "boris_aggregated"
    one, two = read_recordings(path, warn=False)
    with_header, _ = read_recordings(write(OLD), warn=False)
    assert one.annotation() == with_header.annotation()
    assert (two.rate, two.n_frames) == (25.0, 750)
    assert "no header row" in messages(one)


def test_the_requested_rate_is_used(write: Any) -> None:
    assert read_recordings(write(OLD), entry="two", rate=100, warn=False)[0].annotation().stop.tolist() == [100]


# ---------------------------------------------------------------------- bad input


def test_a_bout_without_stop(write: Any) -> None:
    (one, _) = read_recordings(write(OLD.replace("2.000,5.000,3.000", "2.000,NA,NA")), warn=False)
    assert "row 3: 'attack' has no stop" in messages(one)
    assert len(one.annotation()) == 2
    assert one.annotation().observed.tracks.keys() == {Track("attack", "adult")}
    assert one.annotation().observed.of("attack", "adult").stop.tolist() == [20]


def test_a_bout_that_stops_before_it_starts(write: Any) -> None:
    (one, _) = read_recordings(write(OLD.replace("2.000,5.000,3.000", "5.000,2.000,3.000")), warn=False)
    assert "row 3: 'attack' stops at 2, before its start at 5" in messages(one)
    assert one.annotation().stop.tolist() == [35, 42, 50]


@pytest.mark.parametrize("label", ["", "nan"])
def test_a_bout_without_label(write: Any, label: str) -> None:
    (one, _) = read_recordings(write(OLD.replace("7,adult,attack", f"7,adult,{label}")), warn=False)
    assert "row 3: bout without a behavior" in messages(one)
    assert (one.annotation().observed.frames.start.tolist(), one.annotation().observed.frames.stop.tolist()) == ([0, 50], [20, 200])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("POINT", "PONIT", "row 4: expected behavior type STATE or POINT, got 'PONIT'"),
        ("1.000,3.500", "early,3.500", r"row 2: 'early' in column 'Start \(s\)' is not a number"),
        ("1.000,3.500", "NA,3.500", "row 2: an event of 'attack' has no time"),
        ("1.000,3.500", "1.000,1e300", r"row 2: implausible time 1e\+300 of 'attack'"),
        ("two,2016-12-02", "one,2016-12-02", "row 5: duplicate observation 'one'"),
        (OLD[len(OLD_HEADER) :], "", "no events"),
        ("Start (s)", "Begin", "no header row with the columns"),
    ],
)
def test_unknown_tables_are_refused(write: Any, old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(write(OLD.replace(old, new)), "boris_aggregated", warn=False)


def test_a_row_that_is_cut_off(write: Any) -> None:
    with pytest.raises(FormatError, match=r"row 5.*truncated"):
        read_recordings(write(OLD[: OLD.rindex("attack,,,STATE")]), warn=False)


def test_unknown_columns_are_noted(write: Any) -> None:
    text = OLD.replace("Comment stop\n", "Comment stop,Mood\n").replace("begin,end\n", "begin,end,bad\n")
    assert "ignored unknown columns: Mood" in messages(read_recordings(write(text), warn=False)[0])


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_observations_survive_writing(write: Any, tmp_path: Path, suffix: str) -> None:
    before = read_recordings(write(OLD), warn=False)
    path = tmp_path / f"again{suffix}"
    assert [str(n) for n in write_recordings(before, path, "boris_aggregated")] == []
    assert detect(path).name == "boris_aggregated"
    for a, b in zip(before, read_recordings(path, warn=False), strict=True):
        assert (a.id, b.notes) == (b.id, ())
        assert a.annotation() == b.annotation()


def test_spreadsheets_are_written_so_by_default(tmp_path: Path) -> None:
    a = Annotation.from_bouts([1], [5], ["a"], ["a"], 25, 20)
    write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.xlsx")
    assert detect(tmp_path / "x.xlsx").name == "boris_aggregated"


def test_recordings_without_bouts_are_refused(tmp_path: Path) -> None:
    empty = Annotation.from_bouts([], [], [], ["a"], 25, 20)
    with pytest.raises(EthobenchError, match="without bouts"):
        write_recordings([Recording("r", annotations={"me": empty})], tmp_path / "x.csv", "boris_aggregated")


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 99), st.sampled_from("ab"), st.sampled_from(["", "c"])), min_size=1, max_size=15
    ),
    st.sampled_from([1.0, 24.97, 29.97002997, 59.94, 1000.0]),
)
def test_every_bout_survives_at_any_rate(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str, str]], rate: float
) -> None:
    names = list(dict.fromkeys(r[2] for r in rows))
    a = Annotation.from_bouts(
        [r[0] for r in rows], [r[0] + r[1] for r in rows], [r[2] for r in rows], names, rate, 1000, subject=[r[3] for r in rows]
    )
    path = tmp_path_factory.mktemp("p") / "x.tsv"
    assert write_recordings([Recording("r", annotations={"me": a})], path, "boris_aggregated") == []
    (again,) = read_recordings(path, warn=False)
    assert again.annotation() == a


# ---------------------------------------------------------------------- real files


@pytest.mark.data
def test_a_sample_with_independent_variables(data: Path) -> None:
    path = data / "formats/boris/test_export_aggregated_events_test_full_1.tsv"
    assert detect(path).name == "boris_aggregated"
    (recording,) = read_recordings(path, warn=False)
    a = recording.annotation()
    assert (recording.id, a.n_frames, a.rate, len(a)) == ("observation #2", 13498, 25.0, 18)
    assert {n: len(a.spans(n).start) for n in a.ethogram.names} == {"s": 10, "p": 8}
    assert recording.metadata["independent_variables"] == {"a": "123", "b": "some text", "c": "333"}
    (project,) = read_recordings(data / "formats/boris/test.boris", entry="observation #2", warn=False)
    assert np.array_equal(project.annotation().start, a.start)
    assert np.array_equal(project.annotation().stop, a.stop)


@pytest.mark.data
def test_a_sample_without_header(data: Path) -> None:
    path = data / "formats/boris/test_export_aggregated_events_test_full_3.tsv"
    assert detect(path).name == "boris_aggregated"
    (recording,) = read_recordings(path, warn=False)
    (full,) = read_recordings(path.with_name("test_export_aggregated_events_test_full_1.tsv"), warn=False)
    assert recording.annotation().spans("s").start.tolist() == full.annotation().spans("s").start.tolist()
    assert (recording.n_frames, recording.rate) == (13498, 25.0)
