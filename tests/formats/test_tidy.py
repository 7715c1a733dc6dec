"""Tidy bouts, as CSV and Parquet: everything survives."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram, Observed, Recording, read_annotation, write_annotation
from ethobench.core import Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats import detect, read_recordings, write_recordings

names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda t: t.strip() == t and not t.startswith("#")
)
bouts = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 10), st.integers(0, 2), st.sampled_from(["", "m 1", 'm"2,'])), max_size=10)


@pytest.fixture(params=[".csv", ".parquet"])
def suffix(request) -> str:
    return request.param


@given(bouts, st.lists(names, min_size=3, max_size=3, unique=True), st.data())
def test_everything_survives(tmp_path_factory, rows, behaviors, data):
    path = tmp_path_factory.mktemp("tidy") / f"x{data.draw(st.sampled_from(['.csv', '.parquet']))}"
    ethogram = Ethogram([Behavior(behaviors[0], "defined, so"), Behavior(behaviors[1], point=True, key="k"), behaviors[2]], behaviors[2])
    n = len(rows)
    annotation = Annotation.from_bouts(
        [a for a, *_ in rows],
        [a + b for a, b, *_ in rows],
        [c for *_, c, _ in rows],
        ethogram,
        29.97,
        100,
        subject=[s for *_, s in rows],
        target=[s[::-1] for *_, s in rows],
        confidence=data.draw(st.none() | st.lists(st.floats(0, 1), min_size=n, max_size=n)),
        comment=data.draw(st.none() | st.lists(names, min_size=n, max_size=n)),
        observed=Observed(iv.intervals([0, 60], [50, 100]), {Track(behaviors[0], "m 1"): iv.intervals([3], [9])}),
    )
    assert write_annotation(annotation, path) == []
    assert detect(path).name.startswith("tidy")
    assert read_annotation(path) == annotation


def test_blanks_inside_a_name_survive(tmp_path, suffix):
    annotation = Annotation.from_bouts(
        [1, 7], [5, 9], ["rear  up", "rear\N{NO-BREAK SPACE}up"], ["rear  up", "rear\N{NO-BREAK SPACE}up"], 10, 50
    )
    write_annotation(annotation, tmp_path / f"x{suffix}")
    assert read_annotation(tmp_path / f"x{suffix}") == annotation


def test_several_recordings_and_annotators(tmp_path, suffix):
    a = Annotation.from_bouts([1], [5], ["x"], ["x", "y"], 10, 50)
    recordings = [
        Recording("r1", individual="m1", annotations={"ann": a, "ben": a.shift(2)}),
        Recording("r2", annotations={"ann": a.take([])}),
    ]
    path = tmp_path / f"x{suffix}"
    write_recordings(recordings, path)
    read = {r.id: r for r in read_recordings(path, warn=False)}
    assert read["r1"].individual == "m1"
    assert {**read["r1"].annotations} == {"ann": a, "ben": a.shift(2)}
    assert len(read["r2"].annotation()) == 0
    assert [r.id for r in read_recordings(path, entry="r2", warn=False)] == ["r2"]
    with pytest.raises(NotFoundError, match="available: r1, r2"):
        read_recordings(path, entry="r3", warn=False)
    with pytest.raises(EthobenchError, match="select one with entry=: r1, r2"):
        read_annotation(path)


def test_a_hand_written_header_suffices(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "# ethobench bouts 1\n# unit: seconds\nrecording,behavior,start,stop\nr,rest,0.5,1.25\nr,run,1.25,2\n", encoding="utf-8"
    )
    annotation = read_annotation(path)
    assert (annotation.rate, annotation.start.tolist(), annotation.stop.tolist()) == (1000, [500, 1250], [1250, 2000])
    assert read_annotation(path, rate=20).start.tolist() == [10, 25]


def test_repairs_are_noted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        '# ethobench bouts 1\n# unit: frames\n# rate: 10\n# recording: {"id": "r", "n_frames": 20}\n'
        "recording,behavior,start,stop,mood\nr,rest,5,3,good\nr,run,,9,bad\nr,run,10,25,bad\n",
        encoding="utf-8",
    )
    (recording,) = read_recordings(path, warn=False)
    messages = " | ".join(map(str, recording.notes))
    assert "row 6: 'rest' stops at 3, before its start at 5; read as a bout of zero length" in messages
    assert "row 7: 'run' has no start or stop time; dropped" in messages
    assert "ends after the last of 20 frames" in messages
    assert "ignored unknown columns: mood" in messages
    assert recording.annotation().start.tolist() == [5, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# ethobench bouts 1\n# unit: miles\nrecording,behavior,start,stop\n", "frames or seconds"),
        ("# ethobench bouts 2\nrecording,behavior,start,stop\n", "update ethobench"),
        ("# ethobench bouts 1\n# recording: {oops\nrecording,behavior,start,stop\n", "line 2"),
        ("# ethobench bouts 1\nrecording,behavior,start\nr,a,1\n", "no column stop"),
        ("# ethobench bouts 1\n# unit: seconds\nrecording,behavior,start,stop\nr,a,one,2\n", "row 4.*not a number"),
        ("# ethobench bouts 1\n# unit: seconds\nrecording,behavior,start,stop\nr,a,-1,2\n", "before the recording"),
        ("# ethobench bouts 1\n# unit: frames\nrecording,behavior,start,stop\nr,a,1,1e300\n", "longer than any recording"),
        ("# ethobench bouts 1\n# rate: fast\nrecording,behavior,start,stop\n", "header, rate"),
    ],
)
def test_damage_is_reported(tmp_path, text, message):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_recordings(path, warn=False)


def test_a_damaged_parquet_is_reported(tmp_path):
    path = tmp_path / "x.parquet"
    write_annotation(Annotation.from_bouts([1], [5], ["x"], ["x"], 10, 50), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match="not a valid Parquet file"):
        read_recordings(path, "tidy_parquet", warn=False)


@pytest.mark.slow
def test_millions_of_frames_are_small(tmp_path):
    start = np.arange(0, 10_000_000, 100)
    big = Annotation.from_bouts(start, start + 50, np.zeros(len(start), dtype=int), ["x"], 30, 10_000_000)
    path = tmp_path / "big.parquet"
    write_annotation(big, path)
    assert Path(path).stat().st_size < 2_000_000
    assert read_annotation(path) == big


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_file_saved_by_a_spreadsheet_program_keeps_its_content(tmp_path, delimiter):
    path = tmp_path / "x.csv"
    ethogram = Ethogram([Behavior("rear", "on two legs, at the wall"), Behavior("call", point=True), "other"], "other")
    observed = Observed(iv.intervals([0], [250]))
    one = Annotation.from_bouts([10], [40], ["rear"], ethogram, 30.0, 300, observed=observed)
    write_annotation(one, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    width = max(map(len, rows))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\r\n").writerows([row + [""] * (width - len(row)) for row in rows])
    assert path.read_text(encoding="utf-8").count('"# ') >= 3
    again = read_annotation(path, "tidy")
    assert (again.n_frames, again.ethogram, again.observed) == (300, ethogram, observed)
