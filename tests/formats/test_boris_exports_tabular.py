from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench import Annotation, Behavior, Ethogram, Recording
from ethobench.core import Track
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ReadWarning
from ethobench.formats import detect, formats, read_recordings, write_recordings

OLD = """Observation id,day 1,,,,,,,
,,,,,,,,
Media file(s),,,,,,,,
,,,,,,,,
Player #1,C:\\videos\\a.avi,,,,,,,
,,,,,,,,
Observation date,2021-06-15 13:39:34,,,,,,,
,,,,,,,,
Description,"first, day",,,,,,,
,,,,,,,,
Time offset (s),0.0,,,,,,,
,,,,,,,,
independent variables,,,,,,,,
variable,value,,,,,,,
cage,7,,,,,,,
,,,,,,,,
Time,Media file path,Total length,FPS,Subject,Behavior,Behavioral category,Modifier 1,Comment,Status
1.000,C:\\videos\\a.avi,20.000,10.0,adult,attack,,hard,begin,START
2.000,C:\\videos\\a.avi,20.000,10.0,No focal subject,bite,,,,POINT
3.500,C:\\videos\\a.avi,20.000,10.0,adult,attack,,hard,end,STOP
"""
HEADER = (
    "Observation id,Observation date,Description,Observation duration,Observation type,Source,Time offset (s),Media duration (s),FPS,cage,"
    "Subject,Behavior,Behavioral category,Modifier #1,Modifier #2,Behavior type,Time,Media file name,Image index,Image file path,Comment\n"
)


def row(time: object, kind: str, behavior: str = "attack", id: str = "one", **cells: str) -> str:
    about = {"date": "2024-01-01 10:00:00", "length": "20.000;5.500|99.000", "fps": "10.000;10.000|25.000", "offset": "0.0", "index": "NA"}
    about |= {"subject": "adult", "modifier": "", "type": "Media file(s)", **cells}
    return (
        f"{id},{about['date']},,12.5,{about['type']},player #1:a.avi;b.avi|player #2:c.avi,{about['offset']},{about['length']},"
        f"{about['fps']},7,{about['subject']},{behavior},,{about['modifier']},,{kind},{time},a.avi,{about['index']},NA,\n"
    )


FLAT = HEADER + row(1.0, "START") + row(2.0, "POINT", "bite") + row(3.5, "STOP") + row(4.0, "START", id="two") + row(6.0, "STOP", id="two")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(text: str, name: str = "events.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return to_file


def messages(recording: Recording) -> str:
    return "\n".join(map(str, recording.notes))


def check_old(recordings: list[Recording]) -> None:
    (recording,) = recordings
    a = recording.annotation()
    assert (recording.id, a.rate, a.n_frames, recording.notes) == ("day 1", 10.0, 200, ())
    assert (a.start.tolist(), a.stop.tolist()) == ([10, 20], [35, 20])
    assert [b.point for b in a.ethogram] == [False, True]
    assert a.names(a.subject) == ["adult", None]
    assert (list(a.modifiers), list(a.comment)) == (["hard", ""], ["begin / end", ""])
    assert recording.metadata["independent_variables"] == {"cage": "7"}
    assert recording.metadata["description"] == "first, day"


def test_the_old_layout(write: Any) -> None:
    path = write(OLD)
    assert detect(path).name == "boris_tabular"
    check_old(read_recordings(path, warn=False))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(write: Any, delimiter: str) -> None:
    path = write(OLD.replace('"first, day"', "first; day").replace(",", delimiter).replace("first; day", '"first, day"'))
    assert detect(path).name == "boris_tabular"
    check_old(read_recordings(path, warn=False))


def test_bom_crlf_and_decimal_commas(write: Any) -> None:
    text = OLD.replace('"first, day"', "first day").replace(",", ";")
    for number in ("1.000", "2.000", "3.500", "20.000", "10.0"):
        text = text.replace(number, number.replace(".", ","))
    path = write("\ufeff" + text.replace("\n", "\r\n"))
    assert detect(path).name == "boris_tabular"
    a = read_recordings(path, warn=False)[0].annotation()
    assert (a.start.tolist(), a.rate, a.n_frames) == ([10, 20], 10.0, 200)


def test_a_table_without_its_preamble_is_named_after_the_file(write: Any) -> None:
    path = write(OLD[OLD.index("Time,Media") :], "mouse3.csv")
    assert detect(path).name == "boris_tabular"
    assert formats["boris_tabular"].entries(path) == ["mouse3"]
    assert read_recordings(path, warn=False)[0].annotation().start.tolist() == [10, 20]


def test_the_flat_layout_holds_several_observations(write: Any) -> None:
    path = write(FLAT)
    assert detect(path).name == "boris_tabular"
    assert formats["boris_tabular"].entries(path) == ["one", "two"]
    one, two = read_recordings(path, warn=False)
    assert (one.rate, one.n_frames, one.notes) == (10.0, 255, ())
    assert (one.annotation().start.tolist(), one.annotation().stop.tolist()) == ([10, 20], [35, 20])
    assert two.annotation().stop.tolist() == [60]
    assert one.annotation().ethogram == two.annotation().ethogram
    assert one.metadata["independent_variables"] == {"cage": "7"}
    with pytest.raises(NotFoundError, match="available: one, two"):
        read_recordings(path, entry="three", warn=False)


def test_the_requested_rate_is_used(write: Any) -> None:
    a = read_recordings(write(FLAT), entry="two", rate=100, warn=False)[0].annotation()
    assert (a.rate, a.start.tolist(), a.n_frames) == (100.0, [400], 2550)


def test_live_observations_end_with_the_last_event(write: Any) -> None:
    live = {"length": "NA", "fps": "NA", "type": "Live observation"}
    text = HEADER + row(1.2345, "START", **live) + row(3.0, "STOP", **live)
    (recording,) = read_recordings(write(text.replace("a.avi", "NA")), warn=False)
    assert (recording.rate, recording.annotation().stop.tolist()) == (1000.0, [3000])
    assert recording.n_frames == 12500  # the observation duration reaches beyond the last event


def test_a_missing_frame_rate_is_noted(write: Any) -> None:
    path = write(OLD.replace(",10.0,", ",NA,"))
    (recording,) = read_recordings(path, warn=False)
    assert recording.rate == 1000.0
    assert "no frame rate in the file; assuming 1000 Hz" in messages(recording)
    assert read_recordings(path, rate=20, warn=False)[0].notes == ()


def test_the_time_offset_is_subtracted(write: Any) -> None:
    text = HEADER + row(3601.0, "START", offset="3600.0") + row(3602.0, "STOP", offset="3600.0")
    assert read_recordings(write(text), warn=False)[0].annotation().start.tolist() == [10]
    old = OLD.replace("(s),0.0", "(s),0.5")
    assert read_recordings(write(old), warn=False)[0].annotation().start.tolist() == [5, 15]


def test_images_are_frames(write: Any) -> None:
    images = {"length": "NA", "fps": "NA", "type": "From directories of images"}
    (recording,) = read_recordings(
        write(HEADER + row("NA", "START", index="3", **images) + row("NA", "STOP", index="8", **images)), warn=False
    )
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist(), recording.n_frames) == ([3], [8], 9)
    assert "assuming 30 Hz" in messages(recording)


def test_modifiers_are_joined_as_in_boris(write: Any) -> None:
    text = HEADER + row(1.0, "POINT", modifier="x").replace(",x,,", ",x,y,") + row(2.0, "POINT", modifier="x")
    assert list(read_recordings(write(text), warn=False)[0].annotation().modifiers) == ["x|y", "x"]


# ---------------------------------------------------------------------- bad input


def test_a_missing_stop(write: Any) -> None:
    path = write(OLD[: OLD.rindex("3.500")])
    with pytest.warns(ReadWarning, match="row 18: 'attack' starts without a stop"):
        (recording,) = read_recordings(path)
    a = recording.annotation()
    assert a.ethogram.names == ("attack", "bite")
    assert len(a) == 1
    assert a.observed.tracks.keys() == {Track("attack", "adult")}
    assert a.observed.of("attack", "adult").stop.tolist() == [10]


def test_a_missing_start(write: Any) -> None:
    (recording,) = read_recordings(write(OLD.replace("START\n", "STOP\n").replace(",begin", ",").replace("3.500", "4.0")), warn=False)
    assert "stops without a start" in messages(recording)
    assert recording.annotation().observed.of("attack", "adult").start.tolist() == [40]


def test_a_stop_before_its_start(write: Any) -> None:
    (recording,) = read_recordings(write(OLD.replace("3.500", "0.500")), warn=False)
    assert "row 18: 'attack' stops at 0.5, before its start at 1; read as a bout of zero length" in messages(recording)
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ([10, 20], [10, 20])


def test_a_row_that_is_cut_off(write: Any) -> None:
    with pytest.raises(FormatError, match="row 20: expected START, STOP or POINT, got ''"):
        read_recordings(write(OLD[:-12]), warn=False)


@pytest.mark.parametrize("text", ["", "   \n", HEADER])
def test_empty_files(write: Any, text: str) -> None:
    with pytest.raises(FormatError, match=r"empty|no events"):
        read_recordings(write(text), "boris_tabular", warn=False)


def test_an_observation_without_events_is_reported(write: Any) -> None:
    (recording,) = read_recordings(write(OLD[: OLD.index("1.000,")]), warn=False)
    assert (recording.id, recording.n_frames) == ("day 1", 0)
    assert "no events" in messages(recording)


def test_other_tables_are_refused(write: Any) -> None:
    with pytest.raises(FormatError, match="no header row with the columns"):
        read_recordings(write("a,b\n1,2\n"), "boris_tabular", warn=False)


def test_times_that_are_not_numbers(write: Any) -> None:
    with pytest.raises(FormatError, match="row 18: 'soon' in column 'Time' is not a number"):
        read_recordings(write(OLD.replace("1.000,", "soon,")), warn=False)
    with pytest.raises(FormatError, match="row 18: an event of 'attack' has no time"):
        read_recordings(write(OLD.replace("1.000,", "NA,")), warn=False)


@pytest.mark.parametrize("label", ["", "NaN"])
def test_bouts_without_a_label_are_unobserved(write: Any, label: str) -> None:
    (recording,) = read_recordings(write(OLD.replace("adult,attack", f"adult,{label}")), warn=False)
    a = recording.annotation()
    assert a.ethogram.names == ("bite",)
    assert (a.observed.frames.start.tolist(), a.observed.frames.stop.tolist()) == ([0, 35], [10, 200])
    assert "bout without a behavior" in messages(recording)


def test_unknown_columns_are_noted(write: Any) -> None:
    table = OLD[OLD.index("Time,Media") :].replace("Status\n", "Status,Mood\n").replace("START\n", "START,bad\n")
    assert "ignored unknown columns: Mood" in messages(read_recordings(write(table), warn=False)[0])


def test_two_observations_of_one_name(write: Any) -> None:
    with pytest.raises(FormatError, match="row 3: duplicate observation 'one'"):
        read_recordings(write(HEADER + row(1.0, "POINT") + row(2.0, "POINT", date="2024-02-02 10:00:00")), warn=False)


def test_lengths_that_contradict_each_other(write: Any) -> None:
    (recording,) = read_recordings(write(OLD.replace("20.000,10.0,No", "30.000,10.0,No")), warn=False)
    assert recording.n_frames == 300
    assert "several lengths (20, 30)" in messages(recording)


def test_events_after_the_end(write: Any) -> None:
    (recording,) = read_recordings(write(OLD.replace("20.000", "3.000")), warn=False)
    assert recording.n_frames == 35
    assert "ends after the last of 30 frames" in messages(recording)


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 30_000_000)
    with pytest.raises(FormatError, match="refused"):
        read_recordings(path, "boris_tabular", warn=False)
    with pytest.raises(FormatError):
        detect(path)


def test_other_sheets_are_noted(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["Time", "Subject", "Behavior", "Status"])
    book.active.append([1.5, "adult", "bite", "POINT"])
    book.create_sheet("day 2")
    book.save(tmp_path / "x.xlsx")
    (recording,) = read_recordings(tmp_path / "x.xlsx", warn=False)
    assert recording.annotation().start.tolist() == [1500]
    assert "other sheets: day 2" in messages(recording)


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_observations_survive_writing(write: Any, tmp_path: Path, suffix: str) -> None:
    before = read_recordings(write(FLAT), warn=False) + read_recordings(write(OLD, "old.csv"), warn=False)
    path = tmp_path / f"again{suffix}"
    assert write_recordings(before, path, "boris_tabular") == []
    assert detect(path).name == "boris_tabular"
    after = read_recordings(path, warn=False)
    assert [r.id for r in after] == ["one", "two", "day 1"]
    for a, b in zip(before, after, strict=True):
        assert b.notes == ()
        for name in ("rate", "n_frames", "subjects"):
            assert getattr(a.annotation(), name) == getattr(b.annotation(), name)
        for name in ("start", "stop", "behavior", "subject", "modifiers", "comment"):
            assert np.array_equal(getattr(a.annotation(), name), getattr(b.annotation(), name))


def test_touching_bouts_stay_separate(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 5, 9], [5, 9, 9], ["a"] * 3, ["a"], 25, 20)
    write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.csv", "boris_tabular")
    again = read_recordings(tmp_path / "x.csv", warn=False)[0].annotation()
    assert (again.start.tolist(), again.stop.tolist()) == ([0, 5, 9], [5, 9, 9])


def test_losses_are_reported(tmp_path: Path) -> None:
    ethogram = Ethogram([Behavior("a", "a definition"), "b", "c"])
    a = Annotation.from_bouts([0, 3], [5, 9], ["a", "a"], ethogram, 25, 20, target=["x", "y"], observed=np.arange(20) < 15)
    notes = "\n".join(map(str, write_recordings([Recording("r", annotations={"me": a})], tmp_path / "x.csv", "boris_tabular")))
    for what in ("does not store targets", "which frames are unobserved", "lost: b, c", "definitions", "1 bouts overlap"):
        assert what in notes


def test_recordings_without_bouts(tmp_path: Path) -> None:
    empty = Recording("r", annotations={"me": Annotation.from_bouts([], [], [], ["a"], 25, 20)})
    with pytest.raises(EthobenchError, match="without bouts"):
        write_recordings([empty], tmp_path / "x.csv", "boris_tabular")
    full = Recording("s", annotations={"me": Annotation.from_bouts([1], [5], ["a"], ["a"], 25, 20)})
    notes = write_recordings([empty, full], tmp_path / "x.csv", "boris_tabular")
    assert [str(note) for note in notes] == ["r: a BORIS events table cannot store a recording without bouts; it is lost"]


@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
def test_control_characters_are_refused(suffix: str, tmp_path: Path) -> None:
    name = "a\x01b"
    recording = Recording("r", annotations={"me": Annotation.from_bouts([1], [5], [name], [name], 25, 20)})
    with pytest.raises(EthobenchError, match="control character"):
        write_recordings([recording], tmp_path / f"x{suffix}", "boris_tabular")


def test_text_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    recording = Recording("r", annotations={"me": Annotation.from_bouts([1], [5], ["=1+1"], ["=1+1"], 25, 20)})
    write_recordings([recording], tmp_path / "x.xlsx", "boris_tabular")
    assert read_recordings(tmp_path / "x.xlsx", warn=False)[0].annotation().ethogram.names == ("=1+1",)


# ---------------------------------------------------------------------- real files


@pytest.mark.data
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_sample_of_boris(data: Path, suffix: str) -> None:
    path = data / f"formats/boris/test_export_events_tabular.{suffix}"
    assert detect(path).name == "boris_tabular"
    (recording,) = read_recordings(path, warn=False)
    assert (recording.id, recording.n_frames, recording.rate, len(recording.annotation())) == ("observation #1", 8999, 25.0, 4)
    assert recording.metadata["independent_variables"] == {"a": "12", "b": "text value for b", "c": "111"}


@pytest.mark.data
def test_simultaneous_events(data: Path) -> None:
    (recording,) = read_recordings(data / "formats/boris/test-simultaneous-events.csv", warn=False)
    a = recording.annotation()
    assert (a.start.tolist(), a.stop.tolist(), a.is_exclusive) == ([299, 798, 846], [338, 951, 919], False)


@pytest.mark.data
def test_rows_need_not_be_sorted(data: Path) -> None:
    (recording,) = read_recordings(data / "formats/boris/e3v813a-20210610T120637-121213_reencode_multiple_behaviors.csv", warn=False)
    a = recording.annotation()
    assert {name: len(a.spans(name).start) for name in a.ethogram.names} == {"mount": 2, "interact": 15}


def interact(data: Path, who: str, number: int) -> np.ndarray[Any, Any]:
    (recording,) = read_recordings(data / f"boris_two_raters/{who}/DLC{number}.csv", warn=False)
    assert recording.rate == 30.0
    return recording.annotation().to_frames()[:, recording.annotation().ethogram.code("interact")]


@pytest.mark.slow
@pytest.mark.data
def test_raters_agree_as_published(data: Path) -> None:
    from sklearn.metrics import cohen_kappa_score

    def kappas(first: str, second: str) -> list[float]:
        return [round(cohen_kappa_score(interact(data, first, n), interact(data, second, n)), 2) for n in range(1, 6)]

    between = kappas("brett_initial", "donnie_initial")
    assert all(0.63 <= kappa <= 0.83 for kappa in between)
    both_passes = between + kappas("brett_reannotation", "donnie_reannotation")
    assert (min(both_passes), max(both_passes)) == (0.63, 0.83)
    within = kappas("brett_initial", "brett_reannotation") + kappas("donnie_initial", "donnie_reannotation")
    assert (min(within), max(within)) == (0.71, 0.86)
