"""Tables with signals and labels, of one or many animals, in the dialects that people write."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import detect, formats, read_recordings, regular_clock, sample_tables

START = pd.Timestamp("2015-08-29 09:00:00")
N = 50


def example(animals: tuple[str, ...] = ("bella", "teiko"), rate: float = 25.0, n: int = N) -> pd.DataFrame:
    """Gravity of 1 g, and a label that changes every ten samples; each animal starts a minute later than the one before."""
    random = np.random.default_rng(3)
    tables = []
    for number, animal in enumerate(animals):
        vectors = random.normal(size=(n, 3))
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        labels = np.array(["rest", "walk", "", "dive"], dtype=object)[np.arange(n) // 10 % 4]
        time = START + pd.to_timedelta(60 * number + np.arange(n) / rate, unit="s")
        columns = {"animal": animal, "timestamp": time, "ax": vectors[:, 0], "ay": vectors[:, 1], "az": vectors[:, 2]}
        tables.append(pd.DataFrame({**columns, "depth": random.uniform(0, 30, n), "label": labels}))
    return pd.concat(tables, ignore_index=True)


def write(path: Path, table: pd.DataFrame) -> Path:
    suffix = path.suffix
    if suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif suffix == ".xlsx":
        table.to_excel(path, index=False)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return path


def codes(note_source: Any) -> set[str]:
    return {note.code for note in note_source.notes}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx"])
def test_one_file_with_all_animals_gives_a_recording_per_animal(tmp_path, suffix):
    table = example()
    path = write(tmp_path / f"seals{suffix}", table)
    assert detect(path).name == "labeled_signals"
    assert formats["labeled_signals"].entries(path) == ["bella", "teiko"]
    recordings = read_recordings(path, warn=False)
    assert [(r.id, r.individual, r.rate, r.n_frames) for r in recordings] == [("bella", "bella", 25, N), ("teiko", "teiko", 25, N)]
    assert [r.start_time for r in recordings] == [datetime(2015, 8, 29, 9, 0), datetime(2015, 8, 29, 9, 1)]
    teiko = recordings[1]
    np.testing.assert_allclose(teiko.signals.values, table[["ax", "ay", "az", "depth"]].to_numpy()[N:], rtol=1e-12)
    annotation = teiko.annotation()
    assert annotation.ethogram.names == ("rest", "walk", "dive")
    assert annotation.ethogram.exclusive
    unobserved = annotation.to_codes() == -1
    assert np.flatnonzero(unobserved).tolist() == [*range(20, 30)]  # a missing label is unobserved, not absent
    assert teiko.metadata["units"] == {"ax": "g", "ay": "g", "az": "g"}
    note = next(str(n) for n in teiko.notes if n.code == "recognized-columns")
    assert all(word in note for word in ("'timestamp'", "'animal'", "'label'", "ax (g)", "depth"))
    (single,) = read_recordings(path, entry="teiko", warn=False)
    np.testing.assert_array_equal(single.signals.values, teiko.signals.values)


TIME_STYLES = {
    "iso": lambda time: time.dt.strftime("%Y-%m-%dT%H:%M:%S.%f"),
    "iso, zone": lambda time: time.dt.strftime("%Y-%m-%d %H:%M:%S.%f+00:00"),
    "german": lambda time: time.dt.strftime("%d.%m.%Y %H:%M:%S.%f"),
    "american": lambda time: time.dt.strftime("%m/%d/%Y %H:%M:%S.%f"),
    "slashes": lambda time: time.dt.strftime("%Y/%m/%d %H:%M:%S.%f"),
    "s": lambda time: [f"{t:.3f}" for t in (time - pd.Timestamp(0)).dt.total_seconds()],
    "ms": lambda time: (time - pd.Timestamp(0)) // pd.Timedelta("1ms"),
    "us": lambda time: (time - pd.Timestamp(0)) // pd.Timedelta("1us"),
    "ns": lambda time: (time - pd.Timestamp(0)) // pd.Timedelta("1ns"),
    "excel": lambda time: [f"{t:.10f}" for t in (time - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D")],
    "datenum": lambda time: [f"{t:.10f}" for t in (time - pd.Timestamp(0)) / pd.Timedelta("1D") + 719_529],
}
MISSING = ["", "NA", "NaN", "nan", "n/a", "null", "#N/A"]


@given(
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    comma=st.booleans(),
    style=st.sampled_from(sorted(TIME_STYLES)),
    order=st.permutations(range(7)),
    missing=st.sampled_from(MISSING),
    names=st.tuples(
        st.sampled_from(["timestamp", "Time", "datetime", "Date_Time"]),
        st.sampled_from(["animal", "individual", "ID", "Subject", "tag", "bird_id", "SealID", "individual-local-identifier"]),
        st.sampled_from(["label", "Behavior", "behaviour", "activity", "class"]),
    ),
    quoting=st.sampled_from([0, 1]),
    ids=st.lists(st.sampled_from(["bella", "007", "7", "Möwe 3", "a,b", "x;y"]), min_size=1, max_size=3, unique=True),
    interleaved=st.booleans(),
    gap=st.integers(0, 3),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
)
def test_any_dialect_reads_back_equal(
    tmp_path_factory, delimiter, comma, style, order, missing, names, quoting, ids, interleaved, gap, encoding
):
    table = example(tuple(ids))
    truth = {name: group.reset_index(drop=True) for name, group in table.groupby("animal", sort=False)}
    channel = table["ay"].to_numpy(copy=True)
    channel[3] = np.nan
    table["ay"] = truth[ids[0]]["ay"] = channel[: len(table)] if len(ids) == 1 else table["ay"]
    written = pd.DataFrame({names[0]: TIME_STYLES[style](table["timestamp"]), names[1]: table["animal"]})
    for name in ("ax", "ay", "az", "depth"):
        texts = [missing if np.isnan(value) else repr(float(value)) for value in table[name]]
        written[name] = [text.replace(".", ",") if comma and delimiter != "," else text for text in texts]
    written[names[2]] = [label or missing for label in table["label"]]
    written = written.iloc[:, list(order)]
    if gap:
        written = written.drop(index=range(5, 5 + gap))
    if interleaved:
        written = written.iloc[np.argsort(written.index.to_numpy() % N, kind="stable")]
    path = tmp_path_factory.mktemp("dialect") / "tags.csv"
    path.write_bytes(written.to_csv(index=False, sep=delimiter, quoting=quoting, lineterminator="\r\n").encode(encoding))
    assert detect(path).name == "labeled_signals"
    recordings = {r.id: r for r in read_recordings(path, warn=False)}
    assert {*recordings} == {*ids}
    for name, recording in recordings.items():
        expected = truth[name]
        assert (recording.individual, recording.n_frames) == (name, N)
        assert recording.rate == pytest.approx(25, abs=1e-3)
        start = recording.start_time.replace(tzinfo=None)
        assert abs(start - expected["timestamp"][0].to_pydatetime()).total_seconds() < 1e-3
        values = expected[["ax", "ay", "az", "depth"]].to_numpy(copy=True)
        labels = expected["label"].tolist()
        if gap and name == ids[0]:
            values[5 : 5 + gap], labels[5 : 5 + gap] = np.nan, [""] * gap
        got = recording.signals.values[:, [recording.signals.channels.index(c) for c in ("ax", "ay", "az", "depth")]]
        np.testing.assert_allclose(got, values, rtol=1e-12)
        annotation = recording.annotation()
        words = [*annotation.ethogram.names, "none", ""]
        assert [words[code] for code in annotation.to_codes()] == labels


def test_the_unit_comes_from_the_name_or_the_signal_or_must_be_specified(tmp_path):
    table = example(("a", "b")).drop(columns="timestamp")
    table["time"] = np.tile(np.arange(N) / 25, 2)
    for axis in "xyz":
        table.loc[N:, f"a{axis}"] *= 9.81
    (a, b) = read_recordings(write(tmp_path / "mixed.csv", table), warn=False)
    assert (a.metadata["units"]["ax"], b.metadata["units"]["ax"]) == ("g", "m/s²")
    assert "different-units" in codes(a) & codes(b)
    named = table[:N].rename(columns={f"a{axis}": f"acc_{axis}_g" for axis in "xyz"})
    (c,) = read_recordings(write(tmp_path / "named.csv", named), warn=False)
    assert c.signals.channels == ("acc_x", "acc_y", "acc_z", "depth")
    assert c.metadata["units"]["acc_x"] == "g"
    stated = table[:N].rename(columns={f"a{axis}": f"a{axis} (m/s2)" for axis in "xyz"})
    (d,) = read_recordings(write(tmp_path / "stated.csv", stated), warn=False)
    assert "unlikely-units" in codes(d)
    table[["ax", "ay", "az"]] *= 50
    path = write(tmp_path / "raw.csv", table[:N])
    (e,) = read_recordings(path, warn=False)
    assert any(n.code == "unknown-units" and "units=" in str(n) for n in e.notes)
    (f,) = read_recordings(path, units="m/s2", warn=False)
    assert "unknown-units" not in codes(f)
    assert f.metadata["units"]["ax"] == "m/s²"
    with pytest.raises(EthobenchError, match="`units` must be g, mg, m/s2"):
        read_recordings(path, units="furlongs", warn=False)


def test_labels_in_columns_of_zeros_and_ones_beside_the_channels(tmp_path):
    table = example(("a",))
    for name in ("rest", "walk", "dive"):
        table[name] = (table["label"] == name).astype(float).where(table["label"] != "", np.nan)
    path = write(tmp_path / "onehot.csv", table.drop(columns="label"))
    assert detect(path).name == "labeled_signals"
    (recording,) = read_recordings(path, warn=False)
    assert recording.signals.channels == ("ax", "ay", "az", "depth")
    frames = recording.annotation().to_frames()
    assert frames.argmax(axis=1)[:20].tolist() == [0] * 10 + [1] * 10
    assert recording.annotation().observed.of("rest").start.tolist() == [0, 30]
    (chosen,) = read_recordings(path, label=["rest", "walk"], channels=["ax", "ay", "az"], warn=False)
    assert chosen.annotation().ethogram.names == ("rest", "walk")
    assert chosen.signals.channels == ("ax", "ay", "az")


def test_a_column_with_an_unknown_name_must_be_specified(tmp_path):
    table = example().rename(columns={"label": "what", "animal": "who"})
    path = write(tmp_path / "odd.csv", table)
    with pytest.raises(FormatError, match=r"set label='wh(at|o)'"):
        read_recordings(path, "labeled_signals", warn=False)
    recordings = read_recordings(path, "labeled_signals", label="what", id="who", warn=False)
    assert [r.id for r in recordings] == ["bella", "teiko"]
    with pytest.raises(FormatError, match=r"no column 'nope' \(option id\)"):
        read_recordings(path, "labeled_signals", label="what", id="nope", warn=False)
    two = example().assign(behavior="rest")
    with pytest.raises(FormatError, match="several columns may have the labels: label, behavior; choose one with label="):
        read_recordings(write(tmp_path / "two.csv", two), "labeled_signals", warn=False)


def test_ambiguous_dates_must_be_specified(tmp_path):
    table = example(("a",))
    table["timestamp"] = (table["timestamp"] - pd.Timedelta("21D")).dt.strftime("%d/%m/%Y %H:%M:%S.%f")
    path = write(tmp_path / "dates.csv", table)
    with pytest.raises(FormatError, match="may begin with the day or the month; set date_format="):
        read_recordings(path, warn=False)
    (recording,) = read_recordings(path, date_format="%d/%m/%Y %H:%M:%S.%f", warn=False)
    assert recording.start_time == datetime(2015, 8, 8, 9)
    (recording,) = read_recordings(path, date_format="day_first", warn=False)
    assert recording.start_time == datetime(2015, 8, 8, 9)


def test_date_and_time_of_day_in_two_columns_and_past_midnight(tmp_path):
    table = example(("a",))
    moments = table["timestamp"] + pd.Timedelta("14h") + pd.Timedelta("59min") + pd.Timedelta("59s")
    two = table.drop(columns="timestamp").assign(Date=moments.dt.strftime("%Y-%m-%d"), Time=moments.dt.strftime("%H:%M:%S.%f"))
    (recording,) = read_recordings(write(tmp_path / "two.csv", two), warn=False)
    assert (recording.start_time, recording.n_frames, recording.rate) == (datetime(2015, 8, 29, 23, 59, 59), N, 25)
    (clock,) = read_recordings(write(tmp_path / "clock.csv", two.drop(columns="Date")), warn=False)
    assert (clock.n_frames, clock.rate, clock.start_time) == (N, 25, None)


def test_milliseconds_by_the_name_of_the_column(tmp_path):
    table = example(("a",)).drop(columns="timestamp")
    for name in ("time_ms", "timestamp (ms)", "millis"):
        (recording,) = read_recordings(write(tmp_path / "ms.csv", table.assign(**{name: np.arange(N) * 40})), warn=False)
        assert (recording.rate, recording.n_frames, recording.start_time) == (25, N, None)
    path = write(tmp_path / "ms.csv", table.assign(time=np.arange(N) * 40))
    assert read_recordings(path, time_unit="ms", warn=False)[0].rate == 25
    with pytest.raises(FormatError, match="time_unit must be one of"):
        read_recordings(path, time_unit="weeks", warn=False)


def test_integer_seconds_at_a_higher_rate_are_spread(tmp_path):
    table = example(("a",), n=100)
    table["timestamp"] = (table["timestamp"] + pd.Timedelta("0.4s")).dt.floor("s").dt.strftime("%Y-%m-%d %H:%M:%S")
    (recording,) = read_recordings(write(tmp_path / "coarse.csv", table), warn=False)
    assert (recording.rate, recording.n_frames) == (25, 100)
    assert recording.start_time == datetime(2015, 8, 29, 9, 0, 0, 400_000)
    assert "repeated-times" in codes(recording)


def test_jitter_is_noted_and_irregular_times_must_be_specified(tmp_path):
    table = example(("a",), n=400).drop(columns="timestamp")
    random = np.random.default_rng(0)
    path = write(tmp_path / "jitter.csv", table.assign(time=np.arange(400) / 25 + random.uniform(-0.004, 0.004, 400) + 0.01))
    (recording,) = read_recordings(path, warn=False)
    assert (recording.n_frames, recording.rate) == (400, pytest.approx(25, rel=1e-3))
    assert "irregular-times" in codes(recording)
    time = np.cumsum(random.uniform(0.02, 0.06, 400))
    path = write(tmp_path / "irregular.csv", table.assign(time=time, label=np.where(time < 5, "rest", "walk")))
    with pytest.raises(FormatError, match=r"irregular times .* set rate= to resample"):
        read_recordings(path, warn=False)
    (recording,) = read_recordings(path, rate=20, warn=False)
    assert recording.rate == recording.annotation().rate == 20
    assert recording.annotation().spans("rest").stop.tolist() == [pytest.approx((5 - time[0]) * 20, abs=1)]


def test_a_long_gap_begins_a_new_recording_and_a_short_one_is_unobserved(tmp_path):
    table = example(("a",), n=300)
    table.loc[100:, "timestamp"] += pd.Timedelta("2s")
    table.loc[200:, "timestamp"] += pd.Timedelta("1D")
    path = write(tmp_path / "days.csv", table)
    first, second = read_recordings(path, warn=False)
    assert (first.id, second.id, first.individual, second.individual) == ("a_1", "a_2", "a", "a")
    assert (first.n_frames, second.n_frames) == (250, 100)
    assert np.isnan(first.signals.values[100:150]).all()
    assert (first.annotation().to_codes()[100:150] == -1).all()
    assert second.start_time == datetime(2015, 8, 30, 9, 0, 10)
    assert [r.id for r in read_recordings(path, entry="a", warn=False)] == ["a_1", "a_2"]
    assert len(read_recordings(path, split=1, warn=False)) == 3
    table.loc[:100, "timestamp"] += pd.Timedelta("2D")  # the first block is now the last
    assert "sorted-rows" in codes(read_recordings(write(tmp_path / "blocks.csv", table), warn=False)[0])


def test_recordings_of_an_animal_in_a_column(tmp_path):
    table = example(("a", "b"), n=60).drop(columns="timestamp")
    table["time"] = np.tile(np.arange(30) / 25, 4)
    table["session"] = np.repeat(["d1", "d2", "d1", "d2"], 30)
    recordings = read_recordings(write(tmp_path / "sessions.csv", table), warn=False)
    assert [(r.id, r.individual) for r in recordings] == [("a_d1", "a"), ("a_d2", "a"), ("b_d1", "b"), ("b_d2", "b")]
    table["session"] = np.repeat(["d1", "d2", "d3", "d4"], 30)
    recordings = read_recordings(write(tmp_path / "sessions.csv", table), warn=False)
    assert [(r.id, r.individual) for r in recordings] == [("d1", "a"), ("d2", "a"), ("d3", "b"), ("d4", "b")]


def test_bursts_of_a_movebank_table(tmp_path):
    samples = np.arange(3 * 20 * 4).reshape(4, 20, 3) + 1900
    table = pd.DataFrame(
        {
            "event-id": range(4),
            "visible": "true",
            "timestamp": (pd.Timestamp("2014-06-01") + pd.to_timedelta([0, 300, 600, 900], unit="s")).astype(str),
            "eobs:acceleration-axes": "XYZ",
            "eobs:acceleration-sampling-frequency-per-axis": 10.0,
            "eobs:accelerations-raw": [" ".join(map(str, burst.ravel())) for burst in samples],
            "individual-local-identifier": ["stork 1", "stork 1", "stork 1", "stork 2"],
            "behaviour": ["fly", "", "walk", "fly"],
        }
    )
    path = write(tmp_path / "movebank.csv", table)
    assert detect(path).name == "labeled_signals"
    recordings = read_recordings(path, warn=False)
    assert [(r.id, r.individual, r.rate, r.n_frames) for r in recordings][:2] == [
        ("stork 1_1", "stork 1", 10, 20),
        ("stork 1_2", "stork 1", 10, 20),
    ]
    assert recordings[-1].id == "stork 2"
    assert recordings[2].signals.channels == ("AccX", "AccY", "AccZ")
    np.testing.assert_array_equal(recordings[2].signals.values, samples[2])
    assert not recordings[1].annotations
    assert "no-labels" in codes(recordings[1])
    (unlabeled, *_) = read_recordings(write(tmp_path / "acc.csv", table.drop(columns="behaviour")), "signals_csv", warn=False)
    assert detect(tmp_path / "acc.csv").name == "signals_csv"
    np.testing.assert_array_equal(unlabeled.signals.values, samples[0])


def test_bursts_as_numbered_columns(tmp_path):
    samples = np.random.default_rng(0).normal(size=(6, 10, 3))
    columns = {f"{axis}{k + 1}": samples[:, k, i] for i, axis in enumerate("xyz") for k in range(10)}
    table = pd.DataFrame({"time": np.arange(6) * 1.0, **columns, "label": ["a", "a", "b", "b", "", "a"]})
    (recording,) = read_recordings(write(tmp_path / "wide.csv", table), warn=False)
    assert (recording.rate, recording.n_frames, recording.signals.channels) == (10, 60, ("x", "y", "z"))
    np.testing.assert_allclose(recording.signals.values, samples.reshape(60, 3))
    assert recording.annotation().spans("b").start.tolist() == [20]
    table["time"] = [0, 60, 120, 180, 240, 3600]
    path = write(tmp_path / "gaps.csv", table)
    with pytest.raises(FormatError, match="no sampling rate; set rate="):
        read_recordings(path, warn=False)
    assert {r.n_frames for r in read_recordings(path, rate=10, warn=False)} == {10}


def test_labels_with_dates_but_without_channels(tmp_path):
    table = example()[["animal", "timestamp", "label"]]
    path = write(tmp_path / "labels.csv", table)
    assert detect(path).name == "labeled_signals"
    recordings = read_recordings(path, warn=False)
    assert [(r.id, r.signals, r.start_time.minute) for r in recordings] == [("bella", None, 0), ("teiko", None, 1)]


def test_numeric_labels_are_named_and_a_label_can_mean_unobserved(tmp_path):
    table = example(("a",))
    table["label"] = np.arange(N) // 10 - 1
    path = write(tmp_path / "codes.csv", table)
    (recording,) = read_recordings(path, warn=False)
    assert "numeric-labels" in codes(recording)
    assert recording.annotation().ethogram.names == ("0", "1", "2", "3")
    assert (recording.annotation().to_codes()[:10] == -1).all()
    (named,) = read_recordings(path, behaviors="rest,walk,dive,fly", unobserved="0", warn=False)
    assert named.annotation().ethogram.names == ("rest", "walk", "dive", "fly")
    assert (named.annotation().to_codes()[:20] == -1).all()
    with pytest.raises(EthobenchError, match="has no label nope"):
        read_recordings(path, unobserved="nope", warn=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(animal=t["animal"].where(t.index != 7, "")), "row 9: no name in column 'animal'"),
        (lambda t: t.assign(timestamp=t["timestamp"].astype(str).where(t.index != 7, "soon")), "row 9: 'soon' is not a time"),
        (lambda t: t.assign(timestamp=t["timestamp"].astype(str).where(t.index != 7, "")), "row 9: missing or impossible time"),
        (lambda t: t.assign(ax=t["ax"].astype(str).where(t.index != 7, "oops")), "row 9: 'oops' in channel 'ax' is not a number"),
        (lambda t: t.drop(columns="timestamp"), "no sampling rate; set rate="),
        (lambda t: t.assign(animal="one"), "row 52: times of 'one' must increase"),
    ],
)
def test_damage_is_located(tmp_path, change, message):
    table = example()
    table.loc[N:, "timestamp"] -= pd.Timedelta("60s")
    with pytest.raises(FormatError, match=re.escape(message)):
        read_recordings(write(tmp_path / "bad.csv", change(table)), "labeled_signals", warn=False)


@pytest.mark.slow
def test_a_large_table_is_parsed_once_for_all_animals(tmp_path, monkeypatch):
    path = write(tmp_path / "many.csv", example(tuple(f"a{i}" for i in range(20)), n=300))
    assert path.stat().st_size > sample_tables.MIN_CACHED
    calls = []
    parse = sample_tables._parse
    monkeypatch.setattr(sample_tables, "_parse", lambda *args: calls.append(1) or parse(*args))
    for entry in formats["labeled_signals"].entries(path):
        (recording,) = read_recordings(path, entry=entry, warn=False)
        assert isinstance(recording.signals.values, np.memmap)
    assert calls == [1]


def test_epoch_times_have_a_zone(tmp_path):
    table = example(("a",))
    table["timestamp"] = TIME_STYLES["ms"](table["timestamp"])
    (recording,) = read_recordings(write(tmp_path / "epoch.csv", table), warn=False)
    assert recording.start_time == datetime(2015, 8, 29, 9, tzinfo=UTC)


def test_a_gap_cannot_exhaust_memory(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("time,ax,label\n" + "".join(f"{i * 1e-8:.9f},1.5,a\n" for i in range(20)) + "3000,1.5,b\n", encoding="utf-8")
    assert sum(r.n_frames for r in read_recordings(path, "labeled_signals", rate=1e8, warn=False)) < 100
    with pytest.raises(FormatError, match="refused: its data would take"):
        read_recordings(path, "labeled_signals", rate=1e8, split=3600, warn=False)


def test_tables_that_describe_animals_are_not_signals(tmp_path):
    path = tmp_path / "animals.csv"
    path.write_text("animal,sex,weight,tag\na,f,1.5,7\nb,m,2.5,8\nc,f,3.5,9\n", encoding="utf-8")
    with pytest.raises(FormatError, match="unknown format"):
        detect(path)
    path.write_text("behavior,bouts,seconds,share\nrest,1,2.5,0.5\nwalk,2,2.5,0.5\n", encoding="utf-8")
    with pytest.raises(FormatError, match="unknown format"):
        detect(path)


def test_repeated_stamps_are_spread_evenly():
    time, notes = regular_clock.spread_repeated(np.repeat([0.0, 1.0, 2.0], 4)[1:-1])
    np.testing.assert_allclose(time, np.arange(1, 11) / 4)
    assert [note.code for note in notes] == ["repeated-times"]
    assert regular_clock.spread_repeated(np.array([0.0, 0.0, 1.0]))[1] == []


@pytest.mark.slow
@pytest.mark.data
def test_three_seals_in_one_table_are_the_seals_of_bebe(tmp_path, data):
    """As an ecologist would have them: one file, an animal column, dates, and blank labels."""
    clips = [
        r
        for r in read_recordings(data / "bebe" / "ladds_seals", warn=False)
        if r.id.rpartition("-")[0].startswith(("bella", "groucho", "teiko"))
    ]
    tables = []
    for clip in clips:
        animal, day = clip.id.split("-", 1)
        time = pd.to_datetime(day, format="%d-%m-%y") + pd.to_timedelta(np.arange(clip.n_frames) / clip.rate, unit="s")
        names = np.array([*clip.annotation().ethogram.names, "none", ""], dtype=object)
        columns = dict(zip(("ax", "ay", "az", "depth"), clip.signals.values.T, strict=True))
        tables.append(pd.DataFrame({"animal": animal, "timestamp": time, **columns, "label": names[clip.annotation().to_codes()]}))
    path = tmp_path / "seals.csv"
    pd.concat(tables).to_csv(path, index=False, date_format="%Y-%m-%d %H:%M:%S.%f")
    recordings = read_recordings(path, warn=False)
    assert {r.individual for r in recordings} == {"bella", "groucho", "teiko"}
    by_start = {(r.individual, f"{r.start_time:%d-%m-%y}"): r for r in recordings}
    assert len(by_start) == len(clips)
    for clip in clips:
        recording = by_start[tuple(clip.id.split("-", 1))]
        assert recording.rate == clip.rate
        np.testing.assert_array_equal(recording.signals.values, clip.signals.values)
        read = recording.annotation().with_ethogram(clip.annotation().ethogram)
        np.testing.assert_array_equal(read.to_codes(), clip.annotation().to_codes())
        assert recording.metadata["units"]["ax"] == "g"
