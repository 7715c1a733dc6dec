"""One-hot CSV: what BANOS takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation
from ethobench.formats.text import Head

PLAIN = "attack,mount,other\n1,0,0\n1,0,0\n0,1,0\n0,0,1\n"


def put(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pairs(a: iv.Intervals) -> list[tuple[int, int]]:
    return list(zip(a.start.tolist(), a.stop.tolist(), strict=True))


def notes_of(path: Path, **options: object) -> str:
    return "; ".join(str(n) for r in read_recordings(path, "onehot", rate=30, **options, warn=False) for n in r.notes)


def test_plain(tmp_path: Path) -> None:
    path = put(tmp_path, PLAIN)
    assert detect(path).name == "onehot"
    a = read_annotation(path, rate=25)
    assert a.ethogram == Ethogram(["attack", "mount", "other"], "other")
    assert (a.start.tolist(), a.stop.tolist(), a.behavior.tolist()) == ([0, 2, 3], [2, 3, 4], [0, 1, 2])
    assert (a.rate, a.n_frames) == (25, 4)
    assert a.observed.is_complete(4)


def test_an_assumed_rate_is_noted(tmp_path: Path) -> None:
    with pytest.warns(ReadWarning, match="no frame rate in the file; assuming 30 Hz"):
        (recording,) = read_recordings(put(tmp_path, PLAIN))
    assert recording.rate == 30
    assert recording.id == "a"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("1", "1.0").replace("0", "0.0").replace("1.0.0", "1.0"),
        PLAIN.replace("1", "True").replace("0", "False"),
        PLAIN.replace("1", '"1"'),
        PLAIN.replace("\n", ",\n"),
        PLAIN.encode("utf-16"),
        "frame,attack,mount,other\n0,1,0,0\n1,1,0,0\n2,0,1,0\n3,0,0,1\n",
        ",attack,mount,other\n1,1,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n",
    ],
)
def test_dialects_read_alike(tmp_path: Path, text: str | bytes) -> None:
    path = put(tmp_path, text)
    assert detect(path).name == "onehot"
    read = read_recordings(path, rate=30, warn=False)[0].annotation()
    assert read == read_annotation(put(tmp_path, PLAIN, "plain.csv"), rate=30)


def test_blank_is_not_absent(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, "attack,mount\n1,\n0,NaN\nnan,0\n,1\n0,0\n"), rate=30)
    assert pairs(a.spans("attack")) == [(0, 1)]
    assert iv.to_mask(a.observed.of("attack"), 5).tolist() == [True, True, False, False, True]
    assert iv.to_mask(a.observed.of("mount"), 5).tolist() == [False, False, True, True, True]


def test_unobserved_frames(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, "attack,other\n1,0\n,\n0,1\n"), rate=30)
    assert a.observed == Observed(iv.intervals([0, 2], [1, 3]))
    assert a.to_frames()[1].tolist() == [False, False]


def test_the_time_column_gives_the_rate(tmp_path: Path) -> None:
    rows = "".join(f"{i / 29.97:.3f},{i % 2}\n" for i in range(300))
    a = read_annotation(put(tmp_path, "time,attack\n" + rows))
    assert a.rate == pytest.approx(30 / 1.001, rel=1e-4)
    assert a.n_frames == 300


@pytest.mark.parametrize("rate", [25, 30, 12.5, 30000 / 1001, 1000])
def test_the_rate_survives_in_written_times(tmp_path: Path, rate: float) -> None:
    a = Annotation.from_bouts([0, 700], [5, 999], ["x", "y"], ["x", "y"], rate, 1000)
    assert write_annotation(a, tmp_path / "t.csv", "onehot", index="time") == []
    assert read_annotation(tmp_path / "t.csv") == a


def test_decimal_commas(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, "time;attack;mount\n0,00;1;0\n0,04;1;0\n0,08;0;1\n"))
    assert (a.rate, a.n_frames) == (25, 3)


def test_requested_rate_resamples_a_timed_file(tmp_path: Path) -> None:
    path = put(tmp_path, "time,a,b\n0,1,0\n0.1,1,0\n0.2,0,1\n0.3,0,1\n")
    a = read_recordings(path, rate=20, warn=False)[0].annotation()
    assert (a.rate, a.n_frames, a.start.tolist()) == (20, 8, [0, 4])
    with pytest.warns(ReadWarning, match="resampled from 10 Hz"):
        read_annotation(path, rate=20)


def test_omitted_frames_are_unobserved(tmp_path: Path) -> None:
    path = put(tmp_path, "frame,a,b\n0,1,0\n1,1,0\n5,0,1\n")
    with pytest.warns(ReadWarning, match="row 4: 3 frames have no row"):
        a = read_annotation(path, rate=30)
    assert a.n_frames == 6
    assert pairs(a.observed.frames) == [(0, 2), (5, 6)]


def test_dropped_samples_are_unobserved(tmp_path: Path) -> None:
    times = [i / 25 for i in range(100) if i not in (40, 41)]
    path = put(tmp_path, "time,a,b\n" + "".join(f"{t:.2f},1,0\n" for t in times))
    with pytest.warns(ReadWarning, match="2 frames have no row"):
        a = read_annotation(path)
    assert (a.rate, a.n_frames) == (25, 100)
    assert pairs(iv.complement(a.observed.frames, 100)) == [(40, 42)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("attack,mount\n", "no rows"),
        ("attack,mount\n0,0.37\n", r"row 2: 0.37 in column 'mount' looks like a probability"),
        ("attack,mount\n0,1\n0,2\n", r"row 3: 2 in column 'mount' is neither 0 nor 1"),
        ("attack,mount\n0,1\n0,yess\n", r"row 3: yess in column 'mount' is neither"),
        ("attack,attack\n0,1\n", "header: duplicate column 'attack'"),
        ("0,1\n0,1\n", "row 1: expected a header with column names, got numbers"),
        ("attack,mount\n0,1\n0,1,1\n", "row 3: 3 cells, but the header has 2"),
        ("attack,mount\n0,1,1\n0,1,1\n", "row 2: 3 cells, but the header has 2"),
        ("frame,a\n0,1\n2,0\n1,0\n", "row 4: 1 in column 'frame' is not larger"),
        ("frame,a\n0,1\nx,0\n", "row 3: 'x' in column 'frame' is not a number"),
        ("frame,a\n0,1\n,0\n", "row 3: missing or implausible number in column 'frame'"),
        ("time,a\n0,1\n1e300,0\n", "row 3: missing or implausible number in column 'time'"),
        ("frame,a\n-4,1\n", "row 2: negative frame number -4"),
        ("frame,a\n0,1\n900000000,0\n", "span 900000001 frames"),
        ("frame,a\n900000000000,1\n", "1 rows span 900000000001 frames"),
        ("frame\n0\n1\n", "no column with the labels of a behavior"),
        ("a,,b\n0,1,1\n", "no name"),
        ('a,b\n"0,1\n0,1\n', "a.csv"),
        (b"a,b\n\0\0\0", "binary"),
    ],
)
def test_bad_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read_recordings(put(tmp_path, text), "onehot", rate=30, warn=False)
    assert "\n" not in str(error.value)


def test_cut_off_row_is_reported_and_unobserved(tmp_path: Path) -> None:
    path = put(tmp_path, "a,b,c\n0,0,1\n0,1\n")
    assert "row 3: fewer than 3 cells" in notes_of(path)
    a = read_recordings(path, rate=30, warn=False)[0].annotation()
    assert {track: pairs(where) for track, where in a.observed.tracks.items()} == {Track("c"): [(0, 1)]}


def test_empty_lines(tmp_path: Path) -> None:
    path = put(tmp_path, "a,b\n0,1\n,\n1,0\n\n\n")
    a = read_recordings(path, "onehot", rate=30, warn=False)[0].annotation()
    assert a.n_frames == 3
    assert pairs(a.observed.frames) == [(0, 1), (2, 3)]
    assert "2 empty lines at the end" in notes_of(path)


def test_a_blank_line_is_not_a_frame_if_there_is_an_index(tmp_path: Path) -> None:
    a = read_recordings(put(tmp_path, "frame,a,b\n0,0,1\n\n1,1,0\n"), "onehot", rate=30, warn=False)[0].annotation()
    assert (a.n_frames, a.observed.is_complete(2)) == (2, True)
    with pytest.raises(FormatError, match="row 3: blank line between rows"):
        read_recordings(put(tmp_path, "a,b\n0,1\n\n1,0\n"), "onehot", rate=30, warn=False)
    assert read_recordings(put(tmp_path, "a\n0\n\n1\n"), "onehot", rate=30, warn=False)[0].n_frames == 3


def test_contradictions_are_reported(tmp_path: Path) -> None:
    notes = notes_of(put(tmp_path, "a,other\n1,1\n0,0\n0,1\n"))
    assert "1 frames have 'other' and another behavior" in notes
    assert "1 frames have no behavior" in notes


@pytest.mark.parametrize(
    "text",
    [
        "label\n0\n1\n",
        "start,stop,behavior\n0,1,a\n",
        "a,b\n0.2,0.8\n",
        "0,1,0\n0,0,1\n",
        "scorer,m,m\nbodyparts,nose,nose\ncoords,x,y\n0,1,1\n",
        "a,b\n",
        "just a text",
    ],
)
def test_does_not_detect_other_files(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert formats["onehot"].sniff(path, Head(path)) == 0


def test_unknown_entry(tmp_path: Path) -> None:
    with pytest.raises(EthobenchError, match="no entry 'b'; available: a"):
        read_recordings(put(tmp_path, PLAIN), entry="b", rate=30, warn=False)
    with pytest.raises(EthobenchError, match="`index` must be none, frame or time"):
        write_annotation(read_annotation(put(tmp_path, PLAIN), rate=30), tmp_path / "x.csv", "onehot", index="hours")


def test_losses_are_reported(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 2, 4], [2, 3, 4], ["x", "x", "y"], ["x", "y"], 30, 5, subject=["m", "m", ""])
    notes = " ".join(map(str, write_annotation(a, tmp_path / "x.csv", "onehot")))
    for word in ("does not store subjects", "are merged", "does not store point events", "read it with rate=30"):
        assert word in notes
    hidden = Annotation.from_bouts([0], [1], ["rest"], Ethogram(["rest"], "rest"), 30, 2)
    assert "'rest' will be read as an ordinary behavior" in str(write_annotation(hidden, tmp_path / "y.csv", "onehot"))


@given(data=st.data())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    n, k = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4))
    cells = data.draw(st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=k, max_size=k), min_size=n, max_size=n))
    frames = np.array(cells)
    names = ["groß", "b c", "other", '"d"'][:k]
    observed_frames = {Track(name): iv.from_mask(frames[:, i] >= 0) for i, name in enumerate(names)}
    flat = Annotation.from_frames(frames == 1, names, 30).with_observed(Observed(iv.full(n), observed_frames))
    path = tmp_path_factory.mktemp("round") / "a.csv"
    write_annotation(flat, path, "onehot", index=data.draw(st.sampled_from(["frame", "time"])))
    back = read_recordings(path, "onehot", rate=30, warn=False)[0].annotation()
    for name in names:
        assert pairs(back.spans(name)) == pairs(flat.spans(name))
        assert pairs(back.observed.of(name)) == pairs(flat.observed.of(name))


@pytest.mark.data
@pytest.mark.slow
def test_banos(data: Path, tmp_path: Path) -> None:
    paths = sorted(data.glob("banos/Recording_*/humanAnnotation_*.csv"))
    assert len(paths) == 20
    total = 0
    for i, path in enumerate(paths):
        assert detect(path).name == "onehot"
        a = read_annotation(path, rate=30)
        assert a.ethogram == Ethogram(["attack", "investigation", "mount", "other"], "other")
        assert a.is_exclusive
        total += a.n_frames
        write_annotation(a, tmp_path / f"{i}.csv", "onehot")
        assert (tmp_path / f"{i}.csv").read_text() == path.read_text()
        assert read_annotation(tmp_path / f"{i}.csv", rate=30) == a
    assert total == 2 * 184_499
    first = read_annotation(data / "banos/Recording_1/humanAnnotation_1.csv", rate=30)
    assert (len(first), first.n_frames) == (128, 19_307)
