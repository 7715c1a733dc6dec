from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram, Recording
from ethobench.core import Track
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import detect, formats, read_recordings, write_recordings

HEADER = ["Date_Time_Absolute_dmy_hmsf", "Time_Relative_sf", "Duration_sf", "Observation", "Event_Log", "Subject", "Behavior"]
HEADER += ["Modifier_1", "Event_Type", "Comment"]
ROWS: list[list[Any]] = [
    [datetime(2017, 10, 10, 12, 0, 1), 1.0, 3.0, "one", "Event log0001", "adult", "sniff", "nose", "State start", "begin"],
    [datetime(2017, 10, 10, 12, 0, 2), 2.0, 0.5, "one", "Event log0001", "adult", "sniff", "nose", "State start", ""],
    [datetime(2017, 10, 10, 12, 0, 2), 2.5, 0, "one", "Event log0001", "adult", "sniff", "nose", "State stop", ""],
    [datetime(2017, 10, 10, 12, 0, 3), 3.2, 0, "one", "Event log0001", "", "bite", "", "Point", ""],
    [datetime(2017, 10, 10, 12, 0, 4), 4.0, 0, "one", "Event log0001", "adult", "sniff", "nose", "State stop", "end"],
    [datetime(2017, 10, 10, 12, 9, 9), 0.5, 1.0, "two", "Event log0001", "adult", "sniff", "", "State start", ""],
    [datetime(2017, 10, 10, 12, 9, 9), 1.5, 0, "two", "Event log0001", "adult", "sniff", "", "State stop", ""],
]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(rows: list[list[Any]] = ROWS, header: list[str] = HEADER, name: str = "log.xlsx") -> Path:
        from openpyxl import Workbook

        path = tmp_path / name
        if path.suffix == ".csv":
            path.write_text("\n".join(";".join(str(cell).replace(".", ",") for cell in row) for row in [header, *rows]))
            return path
        book = Workbook()
        for row in [header, *rows]:
            book.active.append(row)
        book.save(path)
        return path

    return to_file


def changed(row: int, **cells: Any) -> list[list[Any]]:
    rows = [list(r) for r in ROWS]
    for name, value in cells.items():
        rows[row][HEADER.index(name)] = value
    return rows


def messages(recording: Recording) -> str:
    return "\n".join(map(str, recording.notes))


@pytest.mark.parametrize("name", ["log.xlsx", "log.csv"])
def test_durations_pair_stops_with_starts(write: Any, name: str) -> None:
    path = write(name=name)
    assert detect(path).name == "observer"
    assert formats["observer"].entries(path) == ["one", "two"]
    one, two = read_recordings(path, warn=False)
    a = one.annotation()
    assert (a.rate, a.n_frames, one.notes) == (1000.0, 4000, ())
    assert (a.start.tolist(), a.stop.tolist()) == ([1000, 2000, 3200], [4000, 2500, 3200])
    assert a.names(a.subject) == ["adult", "adult", None]
    assert (list(a.modifiers), list(a.comment)) == (["nose", "nose", ""], ["begin / end", "", ""])
    assert [(b.name, b.point) for b in a.ethogram] == [("sniff", False), ("bite", True)]
    assert (two.annotation().start.tolist(), two.annotation().stop.tolist()) == ([500], [1500])


def test_the_start_time_is_read(write: Any) -> None:
    assert read_recordings(write(), entry="one", warn=False)[0].start_time == datetime(2017, 10, 10, 12, 0, 0)


def test_the_requested_rate_is_used(write: Any) -> None:
    assert read_recordings(write(), entry="two", rate=10, warn=False)[0].annotation().stop.tolist() == [15]


def test_several_logs_of_one_observation_are_annotators(write: Any) -> None:
    rows = [list(row) for row in ROWS[-2:]] + [list(row) for row in ROWS[-2:]]
    for row, name, time in zip(rows, ["ann", "ann", "bob", "bob"], [0.5, 1.5, 0.6, 1.9], strict=True):
        row[HEADER.index("Event_Log")], row[HEADER.index("Time_Relative_sf")], row[HEADER.index("Duration_sf")] = name, time, None
    (recording,) = read_recordings(write(rows), warn=False)
    assert {name: (a.start.tolist(), a.stop.tolist(), a.n_frames) for name, a in recording.annotations.items()} == {
        "ann": ([500], [1500], 1900),
        "bob": ([600], [1900], 1900),
    }


def test_times_of_the_clock_are_read_where_seconds_are_missing(write: Any) -> None:
    header = ["Time_Relative_hmsf", "Behavior", "Event_Type"]
    path = write([["0:00:01.500", "sniff", "State start"], ["1:01:02,25", "sniff", "State stop"]], header)
    assert detect(path).name == "observer"
    (recording,) = read_recordings(path, warn=False)
    assert (recording.id, recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ("log", [1500], [3662250])
    with pytest.raises(FormatError, match="row 2: 'soon' is not a time"):
        read_recordings(write([["soon", "sniff", "State start"]], header), warn=False)


# ---------------------------------------------------------------------- bad input


def test_a_missing_stop_is_computed_from_the_duration(write: Any) -> None:
    one = read_recordings(write([row for i, row in enumerate(ROWS) if i != 4]), entry="one", warn=False)[0]
    assert one.annotation().stop.tolist() == [4000, 2500, 3200]
    assert "row 2: 'sniff' has no stop; using its duration" in messages(one)


def test_a_missing_stop_without_duration_leaves_the_rest_unobserved(write: Any) -> None:
    (recording,) = read_recordings(write(changed(0, Duration_sf=None)[:4]), warn=False)
    assert "row 2: 'sniff' starts without a stop" in messages(recording)
    assert recording.annotation().observed.tracks.keys() == {Track("sniff", "adult")}
    assert recording.annotation().observed.of("sniff", "adult").stop.tolist() == [1000]


def test_a_missing_start(write: Any) -> None:
    one = read_recordings(write(ROWS[1:]), entry="one", warn=False)[0]
    assert "row 5: 'sniff' stops without a start" in messages(one)
    assert len(one.annotation()) == 2


def test_points_without_a_behavior_are_dropped(write: Any) -> None:
    one = read_recordings(write(changed(3, Behavior="")), entry="one", warn=False)[0]
    assert "row 5: point event without a behavior; dropped" in messages(one)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"Event_Type": "State begin"}, "row 2: expected event type .*, got 'State begin'"),
        ({"Time_Relative_sf": "x"}, "row 2: 'x' in column 'Time_Relative_sf' is not a number"),
        ({"Time_Relative_sf": None}, "row 2: an event of 'sniff' has no time"),
        ({"Time_Relative_sf": -1.0, "Duration_sf": 5.0}, "row 2: 'sniff' starts at -1, before the recording"),
    ],
)
def test_unknown_events_are_refused(write: Any, cells: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(write(changed(0, **cells)), warn=False)


def test_tables_that_are_not_logs(write: Any, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no column Event_Type"):
        read_recordings(write([["1", "a"]], ["Time_Relative_sf", "Behavior"]), "observer", warn=False)
    with pytest.raises(FormatError, match="no column Time_Relative_sf"):
        read_recordings(write([["1", "a"]], ["Event_Type", "Behavior"]), "observer", warn=False)
    with pytest.raises(FormatError, match="no events"):
        read_recordings(write([]), warn=False)
    (tmp_path / "cut.xlsx").write_bytes(write().read_bytes()[:2000])
    with pytest.raises(FormatError, match="damaged"):
        read_recordings(tmp_path / "cut.xlsx", "observer", warn=False)


def test_unknown_columns_are_noted(write: Any) -> None:
    path = write([[*row, "bad"] for row in ROWS], [*HEADER, "Mood"])
    assert "ignored unknown columns: Mood" in messages(read_recordings(path, warn=False)[0])


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
def test_logs_survive_writing(write: Any, tmp_path: Path, suffix: str) -> None:
    before = read_recordings(write(), warn=False)
    path = tmp_path / f"again{suffix}"
    assert write_recordings(before, path, "observer") == []
    assert detect(path).name == "observer"
    for a, b in zip(before, read_recordings(path, warn=False), strict=True):
        assert (a.id, b.notes) == (b.id, ())
        assert a.annotations == b.annotations


def test_annotators_keep_their_names(tmp_path: Path) -> None:
    a = Annotation.from_bouts([1, 3], [5, 9], ["a", "a"], ["a"], 25, 9)
    both = Recording("r", annotations={"ann": a, "bob": a.take([0])})
    write_recordings([both, Recording("s", annotations={"ann": a})], tmp_path / "x.xlsx", "observer")
    r, s = read_recordings(tmp_path / "x.xlsx", rate=25, warn=False)
    assert {name: len(annotation) for name, annotation in r.annotations.items()} == {"ann": 2, "bob": 1}
    assert [*s.annotations] == ["ann"]


def test_losses_are_reported(tmp_path: Path) -> None:
    a = Annotation.from_bouts([1], [5], ["a"], Ethogram([Behavior("a", key="k"), "b"]), 25, 100, target=["x"])
    notes = "\n".join(map(str, write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.xlsx", "observer")))
    for what in ("does not store targets", "length", "lost: b", "definitions or keys"):
        assert what in notes
    with pytest.raises(EthobenchError, match="without bouts"):
        write_recordings([Recording("r", annotations={"me": a.take(a.start > 5)})], tmp_path / "y.xlsx", "observer")


# ---------------------------------------------------------------------- real files


@pytest.mark.data
def test_a_sample_of_the_observer(data: Path) -> None:
    path = data / "formats/observer/test_1.xlsx"
    assert detect(path).name == "observer"
    (recording,) = read_recordings(path, warn=False)
    a = recording.annotation()
    assert (recording.id, len(a), a.n_frames) == ("Together_1", 172, 595538)
    assert {n: len(a.spans(n).start) for n in a.ethogram.names} == {
        "anogenital Sniffing": 62,
        "Sniffing": 83,
        "Attack": 13,
        "following": 11,
        "grooming": 3,
    }
    assert recording.start_time == datetime(2017, 10, 10, 12, 23, 40, 920830)
    assert "row 52: point event without a behavior; dropped (3 such events)" in messages(recording)


@pytest.mark.data
def test_bouts_of_the_sample_have_the_durations_it_states(data: Path) -> None:
    from openpyxl import load_workbook

    rows = list(load_workbook(data / "formats/observer/test_1.xlsx").worksheets[0].iter_rows(values_only=True))
    stated = sorted((row[7], row[8]) for row in rows[1:] if row[13] == "State start")
    a = read_recordings(data / "formats/observer/test_1.xlsx", warn=False)[0].annotation()
    assert np.allclose(a.start / 1000, [start for start, _ in stated], atol=6e-4)
    assert np.allclose((a.stop - a.start) / 1000, [duration for _, duration in stated], atol=1.2e-3)
