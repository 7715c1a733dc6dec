"""Times of interval tables: dates, times of day and durations of Excel, time since 1970, midnight, and cells that do not fit."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from ethobench.core import Recording
from ethobench.core.errors import FormatError
from ethobench.formats import detect, read_recordings

NOON = datetime(2024, 5, 1, 12, 0, 0)
BOUTS = [(0.0, 12.5, "rear"), (40.0, 95.0, "groom"), (300.0, 301.25, "rear")]


def read(path: Path, **options: object) -> Recording:
    assert detect(path).name == "intervals"
    (recording,) = read_recordings(path, warn=False, **options)
    return recording


def bouts(recording: Recording) -> list[tuple[float, float, str]]:
    a = recording.annotation()
    return [(int(s) / a.rate, int(e) / a.rate, a.ethogram[int(b)].name) for s, e, b in zip(a.start, a.stop, a.behavior, strict=True)]


def notes(recording: Recording) -> str:
    return "; ".join(map(str, recording.notes))


def sheet(path: Path, header: list[str], rows: list[list[object]], formats: dict[str, str] | None = None, *, epoch: object = None) -> Path:
    """Write rows with openpyxl; `formats` sets number formats by column name."""
    book = Workbook()
    if epoch is not None:
        book.epoch = epoch
    page = book.active
    page.append(header)
    for row in rows:
        page.append(row)
    for name, number_format in (formats or {}).items():
        for line in range(2, len(rows) + 2):
            page.cell(line, header.index(name) + 1).number_format = number_format
    book.save(path)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def serial(seconds: float) -> float:
    return (at(seconds) - datetime(1899, 12, 30)).total_seconds() / 86_400


@pytest.mark.parametrize("epoch", [None, CALENDAR_MAC_1904])
def test_date_cells_of_excel(tmp_path: Path, epoch: object) -> None:
    rows = [[at(start), at(stop), name] for start, stop, name in BOUTS]
    recording = read(sheet(tmp_path / "m1.xlsx", ["start", "stop", "behavior"], rows, epoch=epoch))
    assert bouts(recording) == BOUTS
    assert recording.start_time == NOON
    assert "times are dates; frames are counted from the first bout, at 2024-05-01 12:00:00" in notes(recording)


@pytest.mark.parametrize("suffix", ["xlsx", "csv"])
def test_day_numbers_of_excel(tmp_path: Path, suffix: str) -> None:
    rows = [[serial(start), serial(stop), name] for start, stop, name in BOUTS]
    table = pd.DataFrame(rows, columns=["start", "stop", "behavior"])
    path = tmp_path / f"m1.{suffix}"
    table.to_excel(path, index=False) if suffix == "xlsx" else table.to_csv(path, index=False)
    recording = read(path)
    assert bouts(recording) == BOUTS
    assert recording.start_time == NOON


def test_day_numbers_with_durations_in_seconds(tmp_path: Path) -> None:
    rows = [[serial(start), stop - start, name] for start, stop, name in BOUTS]
    recording = read(sheet(tmp_path / "m1.xlsx", ["start", "duration (s)", "behavior"], rows))
    assert bouts(recording) == BOUTS
    assert recording.start_time == NOON


def test_day_numbers_of_matlab(tmp_path: Path) -> None:
    rows = "".join(f"{serial(start) + 693_960!r},{serial(stop) + 693_960!r},{name}\n" for start, stop, name in BOUTS)
    recording = read(text(tmp_path / "m1.csv", f"start,stop,behavior\n{rows}"))
    assert [(round(a, 2), round(b, 2), name) for a, b, name in bouts(recording)] == BOUTS


def test_numbers_of_that_size_are_seconds_if_bouts_are_long(tmp_path: Path) -> None:
    path = text(tmp_path / "m1.csv", "start,stop,behavior\n45413.5,45420.25,rear\n45500.5,45510,groom\n")
    recording = read(path)
    assert bouts(recording) == [(45413.5, 45420.25, "rear"), (45500.5, 45510.0, "groom")]
    assert recording.start_time is None
    assert read(path, time_unit="excel").start_time == datetime(2024, 5, 1, 12)
    short = text(tmp_path / "m2.csv", "start (s),stop (s),behavior\n45413.5,45413.502,rear\n")
    assert bouts(read(short)) == [(45413.5, 45413.502, "rear")]


def test_time_cells_and_durations_of_excel(tmp_path: Path) -> None:
    rows = [[time(0, 0, 40), time(0, 1, 35, 500_000), "rear"], [time(0, 5), time(1, 0, 0), "groom"]]
    expected = [(40.0, 95.5, "rear"), (300.0, 3600.0, "groom")]
    assert bouts(read(sheet(tmp_path / "times.xlsx", ["start", "stop", "behavior"], rows))) == expected
    elapsed = [[timedelta(seconds=40), timedelta(seconds=95.5), "rear"], [timedelta(hours=25), timedelta(hours=49), "groom"]]
    recording = read(sheet(tmp_path / "elapsed.xlsx", ["start", "stop", "behavior"], elapsed))
    assert bouts(recording) == [(40.0, 95.5, "rear"), (90_000.0, 176_400.0, "groom")]
    assert recording.start_time is None


@pytest.mark.parametrize("epoch", [None, CALENDAR_MAC_1904])
def test_more_than_a_day_in_cells_formatted_as_times_of_day(tmp_path: Path, epoch: object) -> None:
    rows = [[3600 / 86_400, 7200 / 86_400, "rear"], [90_000 / 86_400, 100_000 / 86_400, "groom"]]
    path = sheet(tmp_path / "m1.xlsx", ["start", "stop", "behavior"], rows, {"start": "h:mm:ss", "stop": "h:mm:ss"}, epoch=epoch)
    assert bouts(read(path)) == [(3600.0, 7200.0, "rear"), (90_000.0, 100_000.0, "groom")]


def test_pandas_writes_durations_as_fractions_of_a_day(tmp_path: Path) -> None:
    columns = {
        "start": pd.to_timedelta([s for s, _, _ in BOUTS], unit="s"),
        "stop": pd.to_timedelta([e for _, e, _ in BOUTS], unit="s"),
        "behavior": [name for *_, name in BOUTS],
    }
    pd.DataFrame(columns).to_excel(tmp_path / "m1.xlsx", index=False)
    recording = read(tmp_path / "m1.xlsx")
    assert bouts(recording) == BOUTS
    assert "fractions of a day" in notes(recording)
    columns["start"] = pd.to_datetime([at(s) for s, _, _ in BOUTS])
    columns["duration"] = pd.to_timedelta([e - s for s, e, _ in BOUTS], unit="s")
    del columns["stop"]
    pd.DataFrame(columns).to_excel(tmp_path / "m2.xlsx", index=False)
    recording = read(tmp_path / "m2.xlsx")
    assert bouts(recording) == BOUTS
    assert recording.start_time == NOON
    assert "durations in column 'duration' are read as fractions of a day" in notes(recording)


def test_short_times_in_seconds_stay_seconds(tmp_path: Path) -> None:
    frames = [(3, 9), (12, 21)]  # at 30 Hz
    rows = "".join(f"{start / 30!r},{stop / 30!r},rear\n" for start, stop in frames)
    assert bouts(read(text(tmp_path / "m1.csv", f"start,stop,behavior\n{rows}"), rate=30)) == [(0.1, 0.3, "rear"), (0.4, 0.7, "rear")]
    path = text(tmp_path / "m2.csv", "start,stop,behavior\n0.1234567,0.1256789,pulse\n")
    assert "if these are fractions of a day, set time_unit='days'" in notes(read(path))
    assert bouts(read(path, time_unit="days", rate=1))[0][:2] == (round(0.1234567 * 86_400), round(0.1256789 * 86_400))


@pytest.mark.parametrize("write", ["{:%Y-%m-%dT%H:%M:%S.%f}", "{:%d.%m.%Y %H:%M:%S.%f}", "{:%Y/%m/%d %H:%M:%S.%f}"])
def test_dates_as_text(tmp_path: Path, write: str) -> None:
    rows = "".join(f"{write.format(at(s))},{write.format(at(e))},{name}\n" for s, e, name in BOUTS)
    recording = read(text(tmp_path / "m1.csv", f"start,stop,behavior\n{rows}"))
    assert (bouts(recording), recording.start_time) == (BOUTS, NOON)


@pytest.mark.parametrize("scale", [1, 1000, 1_000_000, 1_000_000_000])
def test_time_since_1970(tmp_path: Path, scale: int) -> None:
    epoch = int(NOON.replace(tzinfo=UTC).timestamp())
    rows = "".join(f"{epoch * scale + round(s * scale)},{epoch * scale + round(e * scale)},{name}\n" for s, e, name in BOUTS)
    recording = read(text(tmp_path / "m1.csv", f"start,stop,behavior\n{rows}"))
    expected = [(float(round(s * scale)) / scale, float(round(e * scale)) / scale, name) for s, e, name in BOUTS]
    assert bouts(recording) == expected
    assert recording.start_time == NOON.replace(tzinfo=UTC)


def test_dates_beside_times_of_day(tmp_path: Path) -> None:
    rows = [[date(2024, 5, 1), time(23, 59, 50), time(0, 0, 20), "rest"], [date(2024, 5, 2), time(0, 1, 0), time(0, 1, 30), "run"]]
    recording = read(sheet(tmp_path / "m1.xlsx", ["date", "start", "stop", "behavior"], rows))
    assert bouts(recording) == [(0.0, 30.0, "rest"), (70.0, 100.0, "run")]
    assert recording.start_time == datetime(2024, 5, 1, 23, 59, 50)
    elapsed = text(tmp_path / "m2.csv", "date,start,stop,behavior\n2024-05-01,0:00:10,0:00:20,rest\n2024-05-01,2:00:00,2:00:10,run\n")
    recording = read(elapsed)
    assert bouts(recording) == [(10.0, 20.0, "rest"), (7200.0, 7210.0, "run")]
    assert recording.start_time is None
    assert "ignored unknown columns: date" in notes(recording)
    assert read(elapsed, columns={"date": "date"}).start_time == datetime(2024, 5, 1, 0, 0, 10)


def test_times_of_day_pass_midnight(tmp_path: Path) -> None:
    rows = ["anna,23:59:50,00:00:20,rest", "anna,00:01:00,00:01:30,run", "ben,00:00:30,00:01:10,run", "anna,02:00:00,02:00:10,run"]
    content = "\n".join(["rater,start,stop,behavior", *rows]) + "\n"
    recording = read(text(tmp_path / "m1.csv", content))
    anna, ben = recording.annotation("anna"), recording.annotation("ben")
    assert (anna.start.tolist(), anna.stop.tolist()) == ([0, 70_000, 7_210_000], [30_000, 100_000, 7_220_000])
    assert (ben.start.tolist(), ben.stop.tolist()) == ([40_000], [80_000])
    assert "times are times of day and pass midnight once" in notes(recording)
    assert "frames are counted from the first bout, at 23:59:50" in notes(recording)


def test_clock_times_are_elapsed_unless_stated_otherwise(tmp_path: Path) -> None:
    path = text(tmp_path / "m1.csv", "start,stop,behavior\n09:15:00,09:15:20,rest\n09:16:00,09:16:30,run\n")
    recording = read(path)
    assert bouts(recording)[0] == (33_300.0, 33_320.0, "rest")
    assert "if they are times of day, set time_unit='time_of_day'" in notes(recording)
    assert bouts(read(path, time_unit="time_of_day")) == [(0.0, 20.0, "rest"), (60.0, 90.0, "run")]
    backward = text(tmp_path / "m2.csv", "start,stop,behavior\n0:20,0:10,rest\n")
    assert "stops at 10, before its start at 20" in notes(read(backward))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["2024-05-01 12:00,2024-05-01 12:01,a", "75.5,2024-05-01 12:03,a"],
            "row 3: '75.5' in column 'start' is a number, but '2024-05-01 12:00'",
        ),
        (
            ["2024-05-01 12:00,12.5,a"],
            r"row 2: '12.5' in column 'stop' is a number, but '2024-05-01 12:00' in column 'start' \(row 2\) is a date",
        ),
        (["0:59,1:05,a", "", "65,1:10,a"], r"row 4: '65' in column 'start' is a number, but '0:59' \(row 2\) is a clock time"),
        (["2024-05-01 12:00,12:01:00,a"], "row 2: '12:01:00' in column 'stop' is a clock time"),
        (["2024-05-01 12:00,2024-05-01 12:01,a", "2024-05-01 12:02,later,a"], "row 3: 'later' in column 'stop' is not a time"),
        (["2024-05-01 12:00,2024-05-01 12:01,a", "", "2024-02-31 12:02,2024-05-01 12:03,a"], "row 4: '2024-02-31 12:02' is not a time"),
        (["01/02/2024 12:00,01/02/2024 12:01,a"], "row 2: .* may begin with the day or the month; set date_format="),
    ],
)
def test_cells_that_do_not_fit(tmp_path: Path, rows: list[str], message: str) -> None:
    path = text(tmp_path / "m1.csv", "\n".join(["start,stop,behavior", *rows]) + "\n")
    with pytest.raises(FormatError, match=message):
        read_recordings(path, "intervals", warn=False)


def test_mixed_cells_of_a_sheet(tmp_path: Path) -> None:
    rows = [[at(0), at(5), "rest"], [time(12, 1), at(65), "rest"]]
    with pytest.raises(FormatError, match=r"row 3: '12:01:00' in column 'start' is a clock time, but '2024-05-01 12:00:00'"):
        read_recordings(sheet(tmp_path / "m1.xlsx", ["start", "stop", "behavior"], rows), "intervals", warn=False)


def test_date_format_and_time_unit(tmp_path: Path) -> None:
    path = text(tmp_path / "m1.csv", "start,stop,behavior\n01/02/2024 12:00,01/02/2024 12:01,a\n")
    assert read(path, date_format="%d/%m/%Y %H:%M").start_time == datetime(2024, 2, 1, 12)
    assert read(path, date_format="day_first").start_time == datetime(2024, 2, 1, 12)
    assert read(path, date_format="month_first").start_time == datetime(2024, 1, 2, 12)
    frames = text(tmp_path / "m2.csv", "start,stop,behavior\n700,730,a\n")
    assert bouts(read(frames, time_unit="frames", rate=10)) == [(70.0, 73.0, "a")]
    with pytest.raises(FormatError, match="time_unit must be one of s, ms, us, ns, days, excel, datenum, frames, time_of_day, got 'h'"):
        read(frames, time_unit="h")
    with pytest.raises(FormatError, match="time_unit is 'time_of_day', but column 'start' has numbers"):
        read(frames, time_unit="time_of_day")
    with pytest.raises(FormatError, match="time_unit is 'ms', but '0:01' in column 'start' is a clock time"):
        read(text(tmp_path / "m3.csv", "start,stop,behavior\n0:01,0:02,a\n"), time_unit="ms")


def test_blank_stops_and_several_recordings_keep_their_dates(tmp_path: Path) -> None:
    rows = [["m1", at(0), at(5), "rest"], ["m1", at(10), None, "rest"], ["m2", at(86_400), at(86_405), "rest"]]
    first, second = read_recordings(sheet(tmp_path / "all.xlsx", ["video", "start", "stop", "behavior"], rows), warn=False)
    assert (first.start_time, second.start_time) == (NOON, NOON + timedelta(days=1))
    assert second.annotation().stop.tolist() == [5000]
    assert "'rest' has no stop" in notes(first)


def test_signals_with_a_date_cell_beside_time_cells(tmp_path: Path) -> None:
    rows = [[date(2024, 5, 1), time(12, 0, s), 0.1 * s, 0.9] for s in range(20)]
    path = sheet(tmp_path / "tag.xlsx", ["date", "time", "ax", "az"], rows)
    (recording,) = read_recordings(path, warn=False)
    assert (recording.start_time, recording.rate, recording.n_frames) == (NOON, 1.0, 20)


@settings(max_examples=25, deadline=None)
@given(
    seconds=st.lists(st.integers(0, 3_000_000), min_size=4, max_size=12, unique=True).map(sorted),
    style=st.sampled_from(["iso", "epoch", "excel"]),
)
def test_every_way_to_write_dates_gives_the_same_bouts(tmp_path_factory: pytest.TempPathFactory, seconds: list[int], style: str) -> None:
    milliseconds = seconds[: len(seconds) // 2 * 2]
    write = {
        "iso": lambda ms: at(ms / 1000).isoformat(timespec="milliseconds"),
        "epoch": lambda ms: str(int(NOON.replace(tzinfo=UTC).timestamp()) * 1000 + ms),
        "excel": lambda ms: repr(serial(ms / 1000)),
    }[style]
    rows = "".join(f"{write(a)},{write(b)},rest\n" for a, b in zip(milliseconds[::2], milliseconds[1::2], strict=True))
    path = text(tmp_path_factory.mktemp("dates") / "m1.csv", f"start,stop,behavior\n{rows}")
    recording = read_recordings(path, "intervals", warn=False, **({"time_unit": "excel"} if style == "excel" else {}))[0]
    a = recording.annotation()
    expected = [ms - milliseconds[0] for ms in milliseconds]
    assert [t for pair in zip(a.start.tolist(), a.stop.tolist(), strict=True) for t in pair] == expected
    assert recording.start_time is not None
    assert recording.start_time.replace(tzinfo=None) == at(milliseconds[0] / 1000)
