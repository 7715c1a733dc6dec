"""Tests of every registered format; a new format is included automatically."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, ClockOrigin, Ethogram, Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import detect, formats, read_recordings, write_recordings
from ethobench.formats.base import DETAILS
from ethobench.formats.text import Head

WRITABLE = [f.name for f in formats if f.can_write]
SLOW_IMPORT = {"nwb", "sleap_events"}


def slow_where_imports_are(names):
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_IMPORT else name for name in names]


WRITERS = slow_where_imports_are(WRITABLE)
NEEDS_POSES = {"simba", "calms21", "deeplabcut"}
NAMES = ["attack", "investigation", "mount", "other"]
FRAMES_ONLY = {"bebe_predictions"}


def example(n: int = 600) -> Recording:
    """An exclusive annotation in which every behavior occurs and the last frame is labeled."""
    codes = np.random.default_rng(0).integers(0, 4, n // 20).repeat(20)
    codes[-20:] = 0
    annotation = Annotation.from_frames(codes, Ethogram(NAMES, "other"), 30)
    positions = np.random.default_rng(1).uniform(10, 500, (n, 2, 7, 2))
    keypoints = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
    poses = Poses(positions, np.full((n, 2, 7), 0.9), ("resident", "intruder"), keypoints, 30.0)
    return Recording("mouse001", annotations={"annotator": annotation}, signals=poses)


@pytest.mark.parametrize("name", formats.names())
def test_a_format_describes_itself(name):
    format = formats[name]
    assert format.title
    assert set(format.keeps) <= set(DETAILS)
    assert set(format.contents) <= {"annotations", "poses", "signals"}
    assert not format.can_write or format.suffixes


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_recognized_and_read_back(name, tmp_path):
    format = formats[name]
    recording = example()
    path = tmp_path / f"mouse001{format.suffixes[0]}"
    write_recordings([recording], path, name)
    assert detect(path).name == name
    result = read_recordings(path, warn=False)
    if "annotations" not in format.contents:
        assert np.allclose(result[0].signals.positions, recording.signals.positions, atol=1e-3)
        return
    options = {"rate": 30.0} if any(r.clock_origin is ClockOrigin.ASSUMED for r in result) else {}
    if name in FRAMES_ONLY:
        options["behaviors"] = NAMES
    again = read_recordings(path, **options, warn=False)
    assert len(again) == 1
    read = again[0].annotations[next(iter(again[0].annotations))]
    truth = recording.annotation()
    renamed = read.rename({"background": "other"}) if "background" in read.ethogram else read
    if read.rate != truth.rate:
        renamed = renamed.resample(truth.rate)
    kept = [n for n in NAMES if n in renamed.ethogram]
    assert {*kept} >= {"attack", "investigation", "mount"}
    assert np.array_equal(renamed.restrict(kept).to_frames(), truth.restrict(kept).to_frames())


BOUT_FORMATS = [name for name in WRITABLE if "touching" in formats[name].keeps and name not in SLOW_IMPORT]  # with tests of their own
RATES = [24.97, 29.97002997, 30.0, 59.94, 1000.0]
EXTRA_RATES = {"bento": [0.5, 7.0, 12345.678], "boris": [1.0, 30_000.0], "intervals": [0.5, 7.0, 48_000.0]}


@pytest.mark.parametrize("name", BOUT_FORMATS)
@given(data=st.data())
def test_bouts_survive_at_any_rate(name, data, tmp_path_factory):
    format = formats[name]
    duration = st.integers(0 if "points" in format.keeps else 1, 99)
    subject = st.sampled_from(["", "c", 'ä, "b"']) if "subjects" in format.keeps else st.just("")
    behavior = st.sampled_from(["a", "b c", 'd,"e"'])
    rows = data.draw(st.lists(st.tuples(st.integers(0, 900), duration, behavior, subject), min_size=1, max_size=12))
    rate = data.draw(st.sampled_from([*RATES, *EXTRA_RATES.get(name, [])]))
    starts, stops, behaviors = [r[0] for r in rows], [r[0] + r[1] for r in rows], [r[2] for r in rows]
    n_frames = 1000 if "length" in format.keeps else max(stops)
    truth = Annotation.from_bouts(
        starts,
        stops,
        behaviors,
        list(dict.fromkeys(behaviors)),
        rate,
        n_frames,
        subject=[r[3] for r in rows] if any(r[3] for r in rows) else None,
    )
    path = tmp_path_factory.mktemp("bouts") / f"r{format.suffixes[0]}"
    write_recordings([Recording("r", annotations={"annotator": truth})], path, name)
    (recording,) = read_recordings(path, name, rate=rate, warn=False)
    read = recording.annotation().with_ethogram(truth.ethogram)
    assert (read.rate, read.n_frames, read.observed) == (truth.rate, truth.n_frames, truth.observed)
    for animal in (None, *read.subjects):
        assert np.array_equal(read.to_frames(subject=animal), truth.to_frames(subject=animal))


STATED, ASSUMED, GIVEN = ClockOrigin
SECONDS = "recording,start,stop,behavior\nmouse001,0.5,1.5,attack\n"
TIDY = "#ethobench-tidy 1\n# unit: {unit}\nrecording,behavior,start,stop,subject,target\nmouse001,attack,1,2,,\n"
AS_WRITTEN = {  # the origin of the clock of what the format's writer writes
    **dict.fromkeys(("bento", "boris", "boris_aggregated", "boris_tabular", "labels", "nwb", "sleap_events"), STATED),
    **dict.fromkeys(("solomon", "tidy", "tidy_parquet"), STATED),
    **dict.fromkeys(("bebe_predictions", "calms21", "caltech", "deepethogram", "intervals", "labels_npy"), ASSUMED),
    **dict.fromkeys(("mabe2025", "observer", "onehot", "segments", "simba"), ASSUMED),
}
NO_CLOCK = {"anipose", "deeplabcut", "jabs", "lightning_pose", "sleap"}  # poses are read without a rate unless one is given
ALWAYS_STATED = {"bebe", "labeled_signals", "signals_csv"}  # a table of signals without times is refused


READ_ONLY = {"matlab"}  # stated or assumed, as its own tests check


def test_every_format_is_in_one_of_these_lists():
    assert {*AS_WRITTEN} | NO_CLOCK | ALWAYS_STATED | READ_ONLY == {*formats.names()}


@pytest.mark.parametrize("name", slow_where_imports_are(AS_WRITTEN))
def test_the_origin_of_the_rate_is_recorded(name, tmp_path):
    path = tmp_path / f"mouse001{formats[name].suffixes[0]}"
    write_recordings([example()], path, name)
    assert {r.clock_origin for r in read_recordings(path, name, warn=False)} == {AS_WRITTEN[name]}
    (given_rate,) = read_recordings(path, name, rate=25.0, warn=False)
    assert (given_rate.clock_origin, given_rate.rate) == (GIVEN, 25)
    assert given_rate.copy(id="other").clock_origin is GIVEN


@pytest.mark.parametrize(
    ("name", "change", "origin"),
    [
        ("bento", lambda text: text.replace("Annotation framerate: 30.0\n", ""), ASSUMED),
        ("boris", lambda text: text.replace('"fps"', '"frames"'), ASSUMED),
        ("boris", lambda text: text.replace("30.0}", "1000.0}"), STATED),
        ("boris_tabular", lambda text: text.replace("FPS", "Frames"), ASSUMED),
        ("boris_tabular", lambda text: text.replace("\t30.0\t", "\t1000.0\t").replace(",30.0,", ",1000.0,"), STATED),
        ("boris_aggregated", lambda text: text.replace("FPS", "Frames"), ASSUMED),
        ("solomon", lambda text: "\n".join(text.splitlines()[:2]) + "\n", ASSUMED),
        ("tidy", lambda text: TIDY.format(unit="frames"), ASSUMED),
        ("tidy", lambda text: TIDY.format(unit="seconds"), ASSUMED),
        ("tidy", lambda text: TIDY.format(unit="seconds\n# rate: 1000"), STATED),
        ("onehot", lambda text: "time,attack\n0,0\n0.001,1\n0.002,1\n", STATED),
        ("labels", lambda text: "frame,label\n0,other\n1,attack\n2,attack\n", ASSUMED),
        ("labels", lambda text: "time,label\n0,other\n0.04,attack\n0.08,attack\n", STATED),
        ("intervals", lambda text: SECONDS, ASSUMED),
    ],
)
def test_the_origin_does_not_depend_on_the_rate(name, change, origin, tmp_path):
    suffix = next((s for s in formats[name].suffixes if s not in (".xlsx",)), formats[name].suffixes[0])
    path = tmp_path / f"mouse001{suffix}"
    write_recordings([example()], path, name)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert {r.clock_origin for r in read_recordings(path, name, warn=False)} == {origin}


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "origin"),
    [
        ("observer/test_1.xlsx", ASSUMED),
        ("bento/bento_example.annot", STATED),
        ("deepethogram/Together_1.csv", ASSUMED),
        ("solomon/Together_1.csv", STATED),
        ("boris/test_export_events_tabular.tsv", STATED),
    ],
)
def test_the_origin_of_the_rate_in_real_files(file, origin, data):
    file = data / "formats" / file
    assert {r.clock_origin for r in read_recordings(file, warn=False)} == {origin}
    assert {r.clock_origin for r in read_recordings(file, rate=20.0, warn=False)} == {GIVEN}


@pytest.mark.parametrize("name", WRITERS)
def test_a_failed_write_leaves_no_file(name, tmp_path):
    overlapping = Annotation.from_bouts([0, 5], [10, 15], ["a", "b"], ["a", "b"], 30, 20)
    recording = Recording("r\x00/../x", annotations={"annotator": overlapping})
    try:
        write_recordings([recording], tmp_path / f"out{formats[name].suffixes[0]}", name)
    except EthobenchError as error:
        assert "\n" not in str(error)
        assert list(tmp_path.iterdir()) == []
    else:
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_truncated_file_is_read_partially_or_refused_in_one_line(name, keep, tmp_path):
    path = tmp_path / f"mouse001{formats[name].suffixes[0]}"
    write_recordings([example()], path, name)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    try:
        recordings = read_recordings(path, name, warn=False)
    except FormatError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
    else:
        assert recordings


@pytest.mark.parametrize("name", formats.names())
@given(
    content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)),
    suffix=st.sampled_from([".csv", ".json", ".h5", ".txt", ".xlsx"]),
)
def test_sniffing_gives_a_score_or_names_the_damage(name, content, suffix, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"sniffed-{name}{suffix}"
    path.write_bytes(content)
    try:
        score = formats[name].sniff(path, Head(path))
    except FormatError as error:
        assert str(path) in str(error)
    else:
        assert 0 <= score <= 1


@pytest.mark.parametrize("name", formats.names())
def test_an_empty_file_is_refused(name, tmp_path):
    path = tmp_path / "empty.csv"
    path.touch()
    with pytest.raises(FormatError):
        read_recordings(path, name, warn=False)
    with pytest.raises(FormatError, match="empty"):
        detect(path)


@pytest.mark.parametrize("name", formats.names())
def test_unknown_options_are_reported(name, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(EthobenchError, match="has no option 'colour'"):
        read_recordings(path, name, colour="red", warn=False)


SAMPLES = {
    "formats/bento": "bento",
    "formats/deepethogram": "deepethogram",
    "formats/dlc": "deeplabcut",
    "formats/jabs": "jabs",
    "formats/nwb": "nwb",
    "formats/observer": "observer",
    "formats/simba": "simba",
    "formats/sleap": "sleap",
    "formats/solomon": "solomon",
    "rats/annotations": "caltech",
    "rats/poses": "deeplabcut",
    "banos": "onehot",
    "multirater_oft": "intervals",
}


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("folder", SAMPLES)
def test_real_files_are_recognized(folder, data):
    files = [p for p in sorted((data / folder).rglob("*")) if p.is_file() and p.name not in ("PROVENANCE.txt", "banos_reference.json")]
    assert files
    assert {detect(p).name for p in files} == {SAMPLES[folder]}


@pytest.mark.data
def test_boris_files_are_recognized(data):
    for path in [*(data / "formats" / "boris").iterdir(), *(data / "boris_two_raters").rglob("*")]:
        if path.is_file() and path.name != "PROVENANCE.txt":
            assert detect(path).name.startswith("boris"), path


SLOW_TO_WRITE = {"boris_aggregated", "deepethogram", "labels", "nwb", "observer", "onehot", "solomon"}


@pytest.fixture(scope="module")
def banos(data: Path) -> list[Annotation]:
    """Read the ten recordings of BANOS as both people annotated them."""
    paths = sorted((data / "banos").glob("Recording_*/humanAnnotation_*.csv"))
    assert len(paths) == 20
    return [read_recordings(path, "onehot", rate=30, warn=False)[0].annotation() for path in paths]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*WRITABLE} - NEEDS_POSES - FRAMES_ONLY))
def test_banos_recordings_survive_every_annotation_format(name, banos, tmp_path):
    """Frames are equal if the format can store the rate; losses are reported."""
    for number, truth in enumerate(banos[::2] if name in SLOW_TO_WRITE else banos):
        path = tmp_path / f"{number}{formats[name].suffixes[0]}"
        notes = write_recordings([Recording(f"recording{number}", annotations={"human": truth})], path, name)
        assert detect(path).name == name
        (recording,) = read_recordings(path, name, rate=30, warn=False)
        read = next(iter(recording.annotations.values()))
        read = read.rename({"background": "other"}) if "background" in read.ethogram else read
        used = {truth.ethogram[int(c)].name for c in np.unique(truth.behavior)}
        lost = {*truth.ethogram.names} - {*read.ethogram.names}
        assert not (lost & used)
        assert not lost or any("never" in str(n) or "occur" in str(n) or "used" in str(n) or "bouts" in str(n) for n in notes), (
            lost,
            notes,
        )
        kept = [n for n in truth.ethogram.names if n in read.ethogram]
        longer = read if read.n_frames == truth.n_frames else read.extend(truth.n_frames)
        assert np.array_equal(longer.restrict(kept).to_frames(), truth.restrict(kept).to_frames()), name


def test_json_of_segments_is_detected_correctly(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"hello": 1}), encoding="utf-8")
    with pytest.raises(FormatError, match="unknown format"):
        detect(path)


def test_unrecognized_folders_are_refused(tmp_path):
    with pytest.raises(FormatError, match="unknown format"):
        detect(Path(tmp_path))
