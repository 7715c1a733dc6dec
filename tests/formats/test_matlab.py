"""Annotations in MATLAB files, and the reader of the files themselves."""

from __future__ import annotations

import io
import struct
import zlib
from itertools import count
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from ethobench import ClockOrigin
from ethobench.core.errors import FormatError, NotFoundError
from ethobench.formats import detect, formats, read_recordings
from ethobench.formats.mat_files import HEADER, read_mat


def vector_of(bouts: list[list[int]], n: int) -> np.ndarray:
    """0 and 1 per frame, as BehaviorDEPOT does: ``Vector(start:stop) = 1``."""
    vector = np.zeros(n)
    for start, stop in bouts:
        vector[start - 1 : stop] = 1
    return vector


def depot(behaviors: dict[str, list[list[int]]], n: int, **fields: Any) -> dict[str, Any]:
    """The struct that BehaviorDEPOT's convertHumanAnnotations_BD writes."""
    struct: dict[str, Any] = {**fields, "TotalFrames": float(n)}
    for name, bouts in behaviors.items():
        array = np.array(bouts, dtype=float).reshape(-1, 2)
        lengths = (array[:, 1] - array[:, 0]).reshape(-1, 1)
        struct[name] = {"Bouts": array, "Length": lengths, "Count": float(len(bouts)), "Vector": vector_of(bouts, n).reshape(1, -1)}
    return struct


def write_hdf5(path: Path, variables: dict[str, Any]) -> None:
    """Write variables as MATLAB does in version 7.3: transposed arrays, structs as groups, cells as references."""
    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as h5:
        cells, numbers = h5.create_group("#refs#"), count()

        def put(group: h5py.Group, name: str, value: Any) -> None:
            if isinstance(value, dict):
                child = group.create_group(name)
                child.attrs["MATLAB_class"] = np.bytes_("struct")
                for key, item in value.items():
                    put(child, key, item)
                return
            if isinstance(value, str):
                node = group.create_dataset(name, data=np.array([[ord(letter)] for letter in value], dtype=np.uint16))
                node.attrs["MATLAB_class"] = np.bytes_("char")
                return
            if isinstance(value, list):
                names = []
                for item in value:
                    names.append(f"r{next(numbers)}")
                    put(cells, names[-1], item)
                references = np.array([[cells[n].ref] for n in names], dtype=h5py.ref_dtype)
                group.create_dataset(name, data=references, dtype=h5py.ref_dtype).attrs["MATLAB_class"] = np.bytes_("cell")
                return
            array = np.atleast_2d(np.asarray(value, dtype=float))
            if array.size:
                group.create_dataset(name, data=array.T).attrs["MATLAB_class"] = np.bytes_("double")
            else:
                node = group.create_dataset(name, data=np.array(array.shape, dtype=np.uint64))
                node.attrs["MATLAB_class"], node.attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)

        for name, value in variables.items():
            put(h5, name, value)
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + file.getvalue()[HEADER:])


def put_cells(value: Any) -> Any:
    """Return lists as object arrays, which scipy writes as cells."""
    if isinstance(value, dict):
        return {name: put_cells(item) for name, item in value.items()}
    if isinstance(value, list):
        cells = np.empty((1, len(value)), dtype=object)
        for i, item in enumerate(value):
            cells[0, i] = put_cells(item)
        return cells
    return value


def write(path: Path, variables: dict[str, Any], version: str = "7") -> Path:
    if version == "7.3":
        write_hdf5(path, variables)
    else:
        savemat(path, {name: put_cells(value) for name, value in variables.items()}, do_compression=version == "7")
    return path


VERSIONS = pytest.mark.parametrize("version", ["5", "7", "7.3"])


@VERSIONS
def test_behaviordepot(tmp_path, version):
    behaviors = {"Freezing": [[1, 10], [21, 30]], "Rearing": [[25, 25]], "Grooming": []}
    variables = {"hBehavior": depot(behaviors, 40, VideoName="mouse1.avi", FrameRate=50.0)}
    path = write(tmp_path / "hB_mouse1.mat", variables, version)
    assert detect(path).name == "matlab"
    assert formats["matlab"].entries(path) == ["hB_mouse1"]
    (recording,) = read_recordings(path, warn=False)
    annotation = recording.annotation()
    assert (recording.rate, recording.n_frames, recording.clock_origin) == (50, 40, ClockOrigin.STATED)
    assert {*annotation.ethogram.names} == {"Freezing", "Rearing", "Grooming"}
    assert annotation.spans("Freezing").start.tolist() == [0, 20]
    assert annotation.spans("Freezing").stop.tolist() == [10, 30]
    assert (annotation.spans("Rearing").start[0], annotation.spans("Rearing").stop[0]) == (24, 25)
    assert recording.metadata["media"] == ["mouse1.avi"]
    assert read_recordings(path, rate=25, warn=False)[0].clock_origin is ClockOrigin.GIVEN


@given(
    bouts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20)), max_size=6),
    version=st.sampled_from(["5", "7", "7.3"]),
)
def test_frames_of_behaviordepot_are_those_of_its_vector(tmp_path_factory, bouts, version):
    pairs = sorted([start, start + length] for start, length in bouts)
    path = write(tmp_path_factory.mktemp("mat") / "b.mat", {"Behavior": depot({"rest": pairs}, 90)}, version)
    (recording,) = read_recordings(path, warn=False)
    np.testing.assert_array_equal(recording.annotation().to_frames()[:, 0], vector_of(pairs, 90) == 1)


def test_bouts_that_differ_from_the_vector_are_noted(tmp_path):
    struct = depot({"rest": [[1, 5]]}, 20)
    struct["rest"]["Vector"][0, 9] = 1
    (recording,) = read_recordings(write(tmp_path / "b.mat", {"Behavior": struct}), warn=False)
    assert recording.annotation().spans("rest").start.tolist() == [0, 9]
    assert {"bouts-differ", "assumed-rate"} <= {note.code for note in recording.notes}


def test_several_variables_are_entries(tmp_path):
    path = write(tmp_path / "two.mat", {"rater1": depot({"rest": [[1, 5]]}, 20), "rater2": depot({"rest": [[2, 5]]}, 20)})
    assert formats["matlab"].entries(path) == ["rater1", "rater2"]
    (recording,) = read_recordings(path, entry="rater2", warn=False)
    assert recording.annotation().start.tolist() == [1]
    with pytest.raises(NotFoundError, match="available: rater1, rater2"):
        read_recordings(path, entry="rater3", warn=False)


@VERSIONS
def test_jaaba_scores(tmp_path, version):
    """``postprocessed`` is 1 from t0 to t1 - 1, and NaN where an animal is not tracked."""
    first, second = np.zeros(30), np.full(30, np.nan)
    first[4:9] = 1
    second[10:20] = 0
    second[12:15] = 1
    scores = {"scores": [first - 0.5, second], "postprocessed": [first, second], "t0s": [[5.0], [13.0]], "t1s": [[10.0], [16.0]]}
    path = write(tmp_path / "scores_chase.mat", {"allScores": scores, "behaviorName": "chase"}, version)
    (recording,) = read_recordings(path, rate=30, warn=False)
    annotation = recording.annotation()
    assert annotation.subjects == ("animal1", "animal2")
    assert (annotation.start + 1).tolist() == [5, 13]
    assert (annotation.stop + 1).tolist() == [10, 16]
    assert annotation.observed.of("chase", "animal2").start.tolist() == [10]
    assert annotation.observed.of("chase", "animal2").stop.tolist() == [20]
    assert annotation.observed.of("chase", "animal1").stop.tolist() == [30]


@VERSIONS
def test_vectors_matrices_codes_and_words_per_frame(tmp_path, version):
    rest, walk = vector_of([[1, 4]], 12), vector_of([[5, 8]], 12)
    walk[11] = np.nan
    (recording,) = read_recordings(write(tmp_path / "v.mat", {"rest": rest, "walk": walk, "fps": 25.0}, version), warn=False)
    annotation = recording.annotation()
    assert (annotation.rate, annotation.ethogram.names, annotation.stop.tolist()) == (25, ("rest", "walk"), [4, 8])
    assert annotation.observed.of("walk").stop.tolist() == [11]
    matrix = {"behaviorState": np.stack([rest, np.nan_to_num(walk)], axis=1), "behaviorLabels": ["rest", "walk"]}
    (recording,) = read_recordings(write(tmp_path / "m.mat", matrix, version), warn=False)
    assert recording.annotation().stop.tolist() == [4, 8]
    coded = {"state": rest * 2 + np.nan_to_num(walk) * 1, "names": ["walk", "rest"]}
    (recording,) = read_recordings(write(tmp_path / "c.mat", coded, version), warn=False)
    assert [recording.annotation().ethogram.names[code] for code in recording.annotation().behavior] == ["rest", "walk"]
    words = {"labels": ["rest"] * 4 + ["walk"] * 4 + [""] * 4}
    (recording,) = read_recordings(write(tmp_path / "w.mat", words, version), warn=False)
    assert recording.annotation().stop.tolist() == [4, 8]
    assert recording.annotation().observed.of_any().stop.tolist() == [8]


@VERSIONS
def test_bout_tables(tmp_path, version):
    struct = {"start_frame": np.array([1.0, 20.0]), "stop_frame": np.array([10.0, 20.0]), "behavior": ["rest", "walk"]}
    (recording,) = read_recordings(write(tmp_path / "s.mat", {"events": struct}, version), warn=False)
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ([0, 19], [10, 20])
    seconds = {"start": np.array([0.5, 2.0]), "stop": np.array([1.0, 2.5]), "label": ["rest", "walk"]}
    (recording,) = read_recordings(write(tmp_path / "t.mat", {"events": seconds}, version), rate=10, warn=False)
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ([5, 20], [10, 25])
    matrices = {"freezing": np.array([[3.0, 5.0], [8.0, 9.0]]), "rearing": np.array([[1.0, 1.0]])}
    path = write(tmp_path / "b.mat", matrices, version)
    assert detect(path).name == "matlab"
    (recording,) = read_recordings(path, warn=False)
    assert recording.annotation().spans("freezing").start.tolist() == [2, 7]
    assert recording.annotation().spans("freezing").stop.tolist() == [5, 9]
    assert read_recordings(path, inclusive=False, warn=False)[0].annotation().spans("freezing").stop.tolist() == [4, 8]


def test_an_array_of_structs_is_a_bout_table(tmp_path):
    events = np.array([(1.0, 4.0, "rest"), (5.0, 9.0, "walk")], dtype=[("start", object), ("stop", object), ("behavior", object)])
    savemat(tmp_path / "a.mat", {"events": events})
    (recording,) = read_recordings(tmp_path / "a.mat", warn=False)
    assert (recording.annotation().start.tolist(), recording.annotation().stop.tolist()) == ([0, 4], [4, 9])
    assert "assumed-unit" in {note.code for note in recording.notes}


def test_other_matlab_files_are_not_annotations(tmp_path):
    path = write(tmp_path / "tracking.mat", {"trx": {"x": np.arange(50.0), "y": np.arange(50.0) * 0.3}})
    with pytest.raises(FormatError, match="unknown format"):
        detect(path)
    with pytest.raises(FormatError, match="no annotation: expected bouts, or a value per frame; variables: trx"):
        read_recordings(path, "matlab", warn=False)


def nested(depth: int) -> bytes:
    """A cell in a cell in a cell..."""
    element = b""
    for _ in range(depth):
        flags = struct.pack("<IIII", 6, 8, 1, 0)
        dims = struct.pack("<IIii", 5, 8, 1, 1)
        content = flags + dims + struct.pack("<II", 1, 0) + (element or struct.pack("<II", 14, 0))
        element = struct.pack("<II", 14, len(content)) + content
    return element


def claims(rows: int, columns: int, kind: int = 1) -> bytes:
    content = struct.pack("<IIII", 6, 8, kind, 0) + struct.pack("<IIii", 5, 8, rows, columns) + struct.pack("<II", 1, 0)
    return struct.pack("<II", 14, len(content)) + content


def packed(element: bytes) -> bytes:
    content = zlib.compress(element)
    return struct.pack("<II", 15, len(content)) + content


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        (nested(5000), "refused: nested deeper"),
        (claims(50_000, 50_000), "claims 2,500,000,000 values"),
        (claims(50_000, 50_000, kind=2), "claims 2,500,000,000 values"),
        (claims(1 << 30, 4, kind=6), "claims"),
        (claims(1, 1, kind=99), "unknown class 99"),
        (packed(struct.pack("<II", 14, 1 << 31) + bytes(1000)), "refused: its data would take"),
        (packed(struct.pack("<II", 14, 5000) + bytes(1000)), "states 5,000 bytes, but has 1,000"),
        (packed(struct.pack("<II", 14, 1_000_000) + bytes(1000)), "claims an impossible size"),
        (struct.pack("<II", 14, 1 << 30), "longer than the file"),
        (struct.pack("<II", 15, 8) + b"notzlib!", "cannot be read"),
        (b"abc", "ends within an element"),
        (struct.pack("<II", 9, 8) + bytes(8), "expected a variable"),
    ],
)
def test_hostile_files_are_refused(tmp_path, elements, message):
    path = tmp_path / "hostile.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + elements)
    with pytest.raises(FormatError, match=message):
        read_mat(path)


TREES = st.recursive(
    st.one_of(
        st.text("aä_ €", max_size=5),
        st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=4).map(np.array),
        st.lists(st.integers(-100, 100), min_size=1, max_size=6).map(lambda v: np.array(v, dtype=np.int16)),
        st.integers(1, 4).map(lambda n: np.arange(n * 3.0).reshape(n, 3) > 2),
    ),
    lambda children: st.one_of(
        st.lists(children, min_size=1, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "Vector", "x_1"]), children, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def expect_equal(value: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert value.keys() == expected.keys()
        for name, item in expected.items():
            expect_equal(value[name], item)
    elif isinstance(expected, list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            expect_equal(one, other)
    elif isinstance(expected, str):
        assert value == expected
    else:
        np.testing.assert_array_equal(value, np.squeeze(expected))


@given(variables=st.dictionaries(st.sampled_from(["one", "two", "hBehavior"]), TREES, max_size=3), compress=st.booleans())
def test_what_scipy_writes_is_read_back(tmp_path_factory, variables, compress):
    path = tmp_path_factory.mktemp("mat") / "tree.mat"
    savemat(path, {name: put_cells(value) for name, value in variables.items()}, do_compression=compress)
    expect_equal(read_mat(path), variables)


def test_versions_that_cannot_be_read_say_what_to_do(tmp_path):
    path = tmp_path / "old.mat"
    savemat(path, {"x": np.arange(5.0)}, format="4")
    with pytest.raises(FormatError, match="save -v7"):
        read_recordings(path, "matlab", warn=False)


def test_cells_of_other_files_and_circles_are_refused(tmp_path):
    path = tmp_path / "circle.mat"
    write_hdf5(path, {"a": {"b": np.ones(3)}})
    raw = io.BytesIO(path.read_bytes())
    with h5py.File(raw, "r+") as file:
        file["a/self"] = file["a"]
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + raw.getvalue()[HEADER:])
    with pytest.raises(FormatError, match="refused: nested deeper"):
        read_mat(path)
    with h5py.File(raw, "r+") as file:
        del file["a/self"]
        file["a/other"] = h5py.ExternalLink("/etc/passwd", "/x")
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + raw.getvalue()[HEADER:])
    with pytest.raises(FormatError, match="refused: link to another file"):
        read_mat(path)
