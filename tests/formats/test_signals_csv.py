"""Tables of a tag's channels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ethobench.core.errors import FormatError
from ethobench.formats import detect, io, read_recordings, sample_tables


def test_a_regular_clock_gives_the_rate(tmp_path):
    path = tmp_path / "tag.csv"
    path.write_text("time,AccX,AccY\n" + "\n".join(f"{i / 25:.4f},{i * 0.5},{-i}" for i in range(50)), encoding="utf-8")
    assert detect(path).name == "signals_csv"
    (recording,) = read_recordings(path, warn=False)
    assert (recording.rate, recording.n_frames) == (25, 50)
    assert recording.signals.channel("AccX")[3] == 1.5


def test_dates_semicolons_and_decimal_commas(tmp_path):
    path = tmp_path / "tag.csv"
    rows = [f"2024-05-01T12:00:{i // 10:02d}.{i % 10}00;{i},5;2,0" for i in range(40)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(["Timestamp;AccX;AccY", *rows]).encode())
    (recording,) = read_recordings(path, warn=False)
    assert recording.rate == 10
    assert recording.signals.values[2].tolist() == [2.5, 2.0]


def test_irregular_samples_are_resampled_and_gaps_are_missing(tmp_path):
    time = np.concatenate([np.arange(0, 5, 0.1), np.arange(8, 12, 0.1)]) + np.random.default_rng(0).uniform(0, 0.05, 90)
    path = tmp_path / "tag.csv"
    pd.DataFrame({"time": time, "x": time * 2}).to_csv(path, index=False)
    with pytest.raises(FormatError, match="irregular times"):
        read_recordings(path, warn=False)
    (recording,) = read_recordings(path, rate=10, warn=False)
    values = recording.signals.channel("x")
    assert np.isnan(values[55:75]).all()
    assert not np.isnan(values[:45]).any()
    assert values[20] == pytest.approx(2 * (time[0] + 2.0), abs=0.01)
    assert "to 10 Hz" in str(recording.notes[0])


def test_without_a_clock_the_rate_must_be_given(tmp_path):
    path = tmp_path / "tag.parquet"
    pd.DataFrame({"x": np.arange(5.0), "y": np.arange(5.0)}).to_parquet(path)
    with pytest.raises(FormatError, match="no sampling rate"):
        read_recordings(path, "signals_csv", warn=False)
    assert read_recordings(path, "signals_csv", rate=5, warn=False)[0].n_frames == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,x\n0,1\n1,two\n2,3\n", "row 3.*|not a number"),
        ("time,x\n0,1\n0,2\n1,3\n", "must increase"),
        ("time,frame\n0,1\n1,2\n", "no column of signals"),
        ("time,x\nmonday,1\ntuesday,2\n", "must hold seconds or dates"),
    ],
)
def test_damage_is_named(tmp_path, text, message):
    path = tmp_path / "tag.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_recordings(path, "signals_csv", warn=False)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("irregular", [False, True])
def test_large_tables_are_read_in_pieces_and_kept_on_the_disk(tmp_path, monkeypatch, suffix, irregular):
    random = np.random.default_rng(0)
    time = np.arange(1000) / 10 + (random.uniform(0, 0.04, 1000) if irregular else 0)
    table = pd.DataFrame(
        {"time": pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(time, unit="s"), "x": random.normal(size=1000), "y": 1}
    )
    path = tmp_path / f"tag.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    (full,) = read_recordings(path, "signals_csv", rate=10, warn=False)
    monkeypatch.setattr(sample_tables, "LARGE", 100)
    monkeypatch.setattr(sample_tables, "CHUNK", 64)
    (pieces,) = read_recordings(path, "signals_csv", rate=10, warn=False)
    assert isinstance(pieces.signals.values, np.memmap)
    assert pieces.signals.channels == ("x", "y")
    assert (pieces.rate, pieces.notes) == (full.rate, full.notes)
    np.testing.assert_array_equal(pieces.signals.values, full.signals.values)


def test_a_wrong_cell_in_a_later_piece_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_tables, "CHUNK", 4)
    path = tmp_path / "tag.csv"
    path.write_text("time,x\n" + "".join(f"{i},{i if i != 9 else 'oops'}\n" for i in range(12)), encoding="utf-8")
    with pytest.raises(FormatError, match=r"row 11.*'oops' in channel 'x'"):
        read_recordings(path, "signals_csv", warn=False)


def test_a_table_without_rows_is_refused(tmp_path):
    path = tmp_path / "tag.csv"
    path.write_text("time,x\n", encoding="utf-8")
    with pytest.raises(FormatError, match="no row of signals"):
        read_recordings(path, "signals_csv", warn=False)


def test_parquet_of_numbers_is_recognized_and_other_parquet_is_not(tmp_path):
    path = tmp_path / "tag.parquet"
    pd.DataFrame({"AccX": np.arange(5) / 2, "AccY": np.arange(5), "time": np.arange(5)}).to_parquet(path)
    assert detect(path).name == "signals_csv"
    other = tmp_path / "names.parquet"
    pd.DataFrame({"x": [0.5], "who": ["anna"]}).to_parquet(other)
    with pytest.raises(FormatError, match="unknown format"):
        detect(other)


def test_a_stated_rate_that_drifts_from_the_clock_is_resampled(tmp_path):
    path = tmp_path / "tag.csv"
    time = np.arange(5000) / 49.8
    pd.DataFrame({"time": time, "x": time}).to_csv(path, index=False)
    (recording,) = read_recordings(path, "signals_csv", rate=50, warn=False)
    assert "to 50 Hz" in str(recording.notes[0])
    assert recording.n_frames == pytest.approx(time[-1] * 50, abs=2)
    assert recording.signals.channel("x")[-1] == pytest.approx(time[-1], abs=0.03)


def test_rounded_times_are_regular_and_a_late_start_is_reported(tmp_path):
    path = tmp_path / "tag.csv"
    time = np.round(120 + np.arange(3000) / 30, 3)
    pd.DataFrame({"time": time, "x": np.arange(3000) / 7}).to_csv(path, index=False)
    (recording,) = read_recordings(path, "signals_csv", warn=False)
    assert (recording.rate, recording.n_frames) == (30, 3000)
    assert "the first sample is at 120 s" in str(recording.notes[0])


def test_channels_that_differ_only_in_capitals(tmp_path):
    path = tmp_path / "tag.csv"
    pd.DataFrame({"time": np.arange(5) / 10, "x": np.arange(5) / 2, "X": np.arange(5) / 4}).to_csv(path, index=False)
    (recording,) = read_recordings(path, "signals_csv", warn=False)
    assert recording.signals.channels == ("x", "X")
    assert recording.signals.channel("X")[2] == 0.5


def test_without_h5py_its_files_say_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "poses.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    monkeypatch.setattr(io, "find_spec", lambda name: None)
    with pytest.raises(FormatError, match=r"requires h5py \(pip install .ethobench\[pose\].\)"):
        detect(path)
