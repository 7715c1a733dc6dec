from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ReadWarning
from ethobench.formats import detect, formats, read_recordings, write_recordings

SHEET = """Time,Light,Behaviour
0,,
0.2,Off,Rear
0.4,Off,Rear
0.6,Off,
0.8,,Attack
1,On,Attack
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(text: str = SHEET, name: str = "mouse.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return to_file


def messages(recording: Recording) -> str:
    return "\n".join(map(str, recording.notes))


def test_each_category_is_an_entry(write: Any) -> None:
    path = write()
    assert detect(path).name == "solomon"
    assert formats["solomon"].entries(path) == ["Light", "Behaviour"]
    light, behaviour = read_recordings(path, warn=False)
    assert (light.id, behaviour.id, behaviour.individual) == ("mouse/Light", "mouse/Behaviour", "mouse")
    a = behaviour.annotation()
    assert (a.rate, a.n_frames, behaviour.notes) == (5.0, 6, ())
    assert (a.start.tolist(), a.stop.tolist(), a.ethogram.names) == ([1, 4], [3, 6], ("Rear", "Attack"))
    assert a.observed.is_complete(6)
    assert [r.id for r in read_recordings(path, entry="Light", warn=False)] == ["mouse/Light"]
    with pytest.raises(NotFoundError, match="available: Light, Behaviour"):
        read_recordings(path, entry="Sound", warn=False)


def test_a_sheet_with_one_category_is_named_after_the_file(write: Any) -> None:
    path = write("Time,Behaviour\n0,Rear\n0.2,Rear\n")
    assert [r.id for r in read_recordings(path, warn=False)] == ["mouse"]
    assert formats["solomon"].entries(path) == ["Behaviour"]


def test_rows_that_stay_blank_to_the_end_are_unobserved(write: Any) -> None:
    path = write(SHEET + "1.2,,\n1.4,,\n")
    with pytest.warns(ReadWarning, match="row 8: the last 2 rows are blank in every column"):
        light, behaviour = read_recordings(path)
    assert behaviour.n_frames == 8
    assert behaviour.annotation().observed.frames.stop.tolist() == [6]
    assert light.annotation().observed.frames.stop.tolist() == [6]


def test_a_sheet_without_any_code_is_unobserved(write: Any) -> None:
    (recording,) = read_recordings(write("Time,Behaviour\n0,\n0.2,\n"), "solomon", warn=False)
    assert iv.total(recording.annotation().observed.frames) == 0


def test_semicolons_decimal_commas_bom_and_crlf(write: Any) -> None:
    path = write("\ufeff" + SHEET.replace(",", ";").replace(".", ",").replace("\n", "\r\n"))
    assert detect(path).name == "solomon"
    a = read_recordings(path, entry="Behaviour", warn=False)[0].annotation()
    assert (a.rate, a.start.tolist()) == (5.0, [1, 4])


@pytest.mark.parametrize(("rate", "digits"), [(25, 2), (30, 3), (30, 2), (29.97, 3), (12.5, 2), (1, 0), (0.1, 0), (1000, 3)])
def test_the_time_grid_gives_the_rate(write: Any, rate: float, digits: int) -> None:
    rows = "".join(f"{i / rate:.{digits}f},Rear\n" for i in range(400))
    (recording,) = read_recordings(write("Time,Behaviour\n" + rows), warn=False)
    assert (recording.rate, recording.n_frames) == (rate, 400)


def test_another_rate_resamples(write: Any) -> None:
    recording = read_recordings(write(), entry="Behaviour", rate=10, warn=False)[0]
    assert recording.annotation().start.tolist() == [2, 8]
    assert "resampled from 5 Hz to 10 Hz" in messages(recording)


def test_missing_rows_are_unobserved(write: Any) -> None:
    recording = read_recordings(write(SHEET.replace("0.4,Off,Rear\n", "")), entry="Behaviour", warn=False)[0]
    observed = recording.annotation().observed.frames
    assert (observed.start.tolist(), observed.stop.tolist()) == ([0, 3], [2, 6])
    assert "row 4: 1 rows of the time grid are missing" in messages(recording)


def test_many_missing_rows_do_not_change_the_rate(write: Any) -> None:
    kept = [i for i in range(300) if not 40 <= i < 90]
    (recording,) = read_recordings(write("Time,Behaviour\n" + "".join(f"{i / 30:.2f},Rear\n" for i in kept)), warn=False)
    observed = recording.annotation().observed.frames
    assert (recording.rate, observed.start.tolist(), observed.stop.tolist()) == (30.0, [0, 90], [40, 300])


def test_cells_marked_as_missing_are_unobserved(write: Any) -> None:
    light, behaviour = read_recordings(write(SHEET.replace("0.6,Off,", "0.6,Off,NaN")), warn=False)
    observed = behaviour.annotation().observed.frames
    assert (observed.start.tolist(), observed.stop.tolist()) == ([0, 4], [3, 6])
    assert "1 cells are marked as missing" in messages(behaviour)
    assert light.annotation().observed.is_complete(6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHEET.replace("0.4,", "0.1,"), "row 4: time '0.1' is not later than in the previous row"),
        (SHEET.replace("0.4,", "soon,"), "row 4: 'soon' in column 'Time' is not a number"),
        (SHEET.replace("0.4,", ","), "row 4: time '' is not later"),
        (SHEET.replace("0.4,", "0.47,"), "row 4: time 0.47 is not on a regular grid of 5 Hz"),
        (SHEET.replace("Light", "Behaviour"), "duplicate column"),
        (SHEET.replace("Light", ""), "column 2 has no name"),
        (SHEET.replace("Time", "Frame"), "no column 'Time'"),
        (SHEET.replace("0,,", "0,,,Rear", 1), "row 2: 4 cells, but the header has 3"),
        ("Time,Behaviour\n", "at least one category and at least one row"),
        ("", "empty"),
    ],
)
def test_unknown_sheets_are_refused(write: Any, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(write(text), "solomon", warn=False)


@pytest.mark.parametrize("text", ["Time,x,y\n0,1.5,2\n0.1,1.6,2\n", "Time,Behaviour\n0,a\n5,b\n1,c\n", "time,Behaviour\n0,a\n1,b\n"])
def test_other_tables_are_not_detected(write: Any, text: str) -> None:
    path = write(text)
    from ethobench.formats.text import Head

    assert formats["solomon"].sniff(path, Head(path)) == 0.0


# ---------------------------------------------------------------------- writing


def test_sheets_survive_writing(write: Any, tmp_path: Path) -> None:
    before = read_recordings(write(), warn=False)
    path = tmp_path / "mouse.csv"
    notes = write_recordings(before, path, "solomon", overwrite=True)
    assert notes == []
    assert path.read_text().splitlines()[:3] == ["Time,Light,Behaviour", "0,,", "0.2,Off,Rear"]
    for a, b in zip(before, read_recordings(path, warn=False), strict=True):
        assert (a.id, a.annotation()) == (b.id, b.annotation())


def test_what_a_sheet_cannot_store_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    hidden = np.ones(20, dtype=bool)
    hidden[3:6] = False
    a = Annotation.from_bouts([0, 8], [2, 9], ["a", "b"], ["a", "b", "c"], 25, 20, observed=hidden, subject=["x", "y"])
    notes = "\n".join(map(str, write_recordings([Recording("r", annotations={"me": a})], path, "solomon")))
    for what in (
        "does not store subjects",
        "before the last bout; they will be read as frames without behavior",
        "after the last bout",
        "lost: c",
    ):
        assert what in notes


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ([Annotation.from_bouts([0, 1], [2, 9], ["a", "b"], ["a", "b"], 25, 20)], "one behavior at a time"),
        ([Annotation.from_bouts([0], [2], ["a"], ["a"], 25, n) for n in (20, 30)], "share one clock"),
        ([Annotation.from_bouts([0], [20], ["NaN"], ["NaN"], 25, 20)], "rename that behavior"),
        ([Annotation.from_bouts([0], [1], ["a"], ["a"], 25, 1)], "at least two frames .*, got 1"),
    ],
)
def test_what_a_sheet_would_change_is_refused(tmp_path: Path, annotations: list[Annotation], message: str) -> None:
    recordings = [Recording(f"r{i}", annotations={"me": a}) for i, a in enumerate(annotations)]
    with pytest.raises(EthobenchError, match=message):
        write_recordings(recordings, tmp_path / "x.csv", "solomon")


@pytest.mark.parametrize("id", ["/", "mouse/"])
def test_a_recording_without_a_channel_gets_the_default_column(id: str, tmp_path: Path) -> None:
    annotation = Annotation.from_frames([0, 0, 0], ["rear"], 10)
    write_recordings([Recording(id, annotations={"me": annotation})], tmp_path / "sheet.csv", "solomon")
    (read,) = read_recordings(tmp_path / "sheet.csv", warn=False)
    assert (read.id, read.metadata["channel"]) == ("sheet", "Behaviour")


def test_a_channel_named_like_the_time_column_is_refused(tmp_path: Path) -> None:
    annotation = Annotation.from_frames([0, 0, 0], ["rear"], 10)
    with pytest.raises(EthobenchError, match="holds the times; rename the channel of recording 'mouse/Time'"):
        write_recordings([Recording("mouse/Time", annotations={"me": annotation})], tmp_path / "sheet.csv", "solomon")


def test_a_rate_that_times_cannot_represent_is_noted(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0], [3], ["a"], ["a"], 29.97002997, 3)
    (note,) = write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.csv", "solomon")
    (recording,) = read_recordings(tmp_path / "x.csv", warn=False)
    assert f"will be read as {recording.rate:.9g} Hz" in str(note)
    assert (recording.annotation().to_frames() == a.to_frames()).all()


@given(
    st.lists(st.sampled_from(["", "a", "b c", 'd,"e"', "ü;"]), min_size=3, max_size=60),
    st.sampled_from([1.0, 5.0, 25.0, 29.97, 30.0, 59.94, 1000.0]),
)
def test_frames_survive_at_any_rate(tmp_path_factory: pytest.TempPathFactory, labels: list[str], rate: float) -> None:
    labels = [*labels, "a"]
    names = [name for name in dict.fromkeys(labels) if name]
    a = Annotation.from_frames([names.index(name) if name else len(names) for name in labels], names, rate)
    path = tmp_path_factory.mktemp("p") / "x.csv"
    write_recordings([Recording("r", annotations={"me": a})], path, "solomon")
    (again,) = read_recordings(path, warn=False)
    assert (again.id, again.metadata["channel"], again.n_frames) == ("x", "Behaviour", len(labels))
    assert again.annotation().ethogram == a.ethogram
    assert (again.annotation().to_codes() == a.to_codes()).all()


# ---------------------------------------------------------------------- real files


@pytest.mark.slow
@pytest.mark.data
def test_a_sample_of_solomon_coder(data: Path) -> None:
    path = data / "formats/solomon/Together_1.csv"
    assert detect(path).name == "solomon"
    light, location, behaviour = read_recordings(path, warn=False)
    assert [r.id for r in (light, location, behaviour)] == ["Together_1/Light", "Together_1/Location", "Together_1/Behaviour"]
    a = behaviour.annotation()
    assert (a.rate, a.n_frames, len(a), len(a.ethogram)) == (25.0, 19350, 234, 10)
    assert int(a.to_frames()[:, a.ethogram.code("Attack")].sum()) == 4166
    assert light.annotation().to_frames().sum(axis=0).tolist() == [8162, 4730]
    assert a.observed.frames.stop.tolist() == [19340]
    assert "row 19342: the last 10 rows are blank" in messages(location)


@pytest.mark.slow
@pytest.mark.data
def test_the_sample_survives_writing(data: Path, tmp_path: Path) -> None:
    before = read_recordings(data / "formats/solomon/Together_1.csv", warn=False)
    assert write_recordings(before, tmp_path / "Together_1.csv", "solomon") == []
    for a, b in zip(before, read_recordings(tmp_path / "Together_1.csv", warn=False), strict=True):
        assert (a.id, a.annotation()) == (b.id, b.annotation())
