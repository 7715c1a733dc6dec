"""Label NPY: codes, names, columns; and no pickles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation
from ethobench.formats.text import Head


def put(folder: Path, array: Any, name: str = "a.npy") -> Path:
    path = folder / name
    np.save(path, np.asarray(array), allow_pickle=True)
    return path


def test_codes(tmp_path: Path) -> None:
    path = put(tmp_path, np.array([0, 0, 2, -1, -5, 1], dtype=np.int8))
    assert detect(path).name == "labels_npy"
    a = read_annotation(path, rate=30, behaviors=["a", "b", "other"])
    assert a.ethogram.background_name == "other"
    assert a.to_codes().tolist() == [0, 0, 2, -1, -1, 1]
    with pytest.warns(ReadWarning, match="name them with behaviors="):
        assert read_annotation(path, rate=30).ethogram.names == ("0", "1", "2")


def test_codes_as_floats_with_nan(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, [0.0, np.nan, 1.0]), rate=30, behaviors="a,b")
    assert a.to_codes().tolist() == [0, -1, 1]


@pytest.mark.parametrize("kind", ["U", "S"])
def test_names(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, np.array(["walk", "", "other", "walk"]).astype(kind))
    assert detect(path).name == "labels_npy"
    a = read_annotation(path, rate=30)
    assert a.ethogram == Ethogram(["other", "walk"], "other")
    assert a.to_codes().tolist() == [1, -1, 0, 1]
    assert read_annotation(path, rate=30, behaviors=["walk", "fly", "other"]).ethogram.names == ("walk", "fly", "other")


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_columns(tmp_path: Path, dtype: Any) -> None:
    path = put(tmp_path, np.array([[1, 0], [1, 1], [0, 0]], dtype=dtype))
    assert detect(path).name == "labels_npy"
    a = read_annotation(path, rate=30, behaviors=["a", "b"])
    assert a.to_frames().tolist() == [[True, False], [True, True], [False, False]]


def test_column_with_holes(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, [[1, np.nan], [0, 1], [-1, 0]]), rate=30, behaviors=["a", "b"])
    assert iv.to_mask(a.observed.of("a"), 3).tolist() == [True, True, False]
    assert iv.to_mask(a.observed.of("b"), 3).tolist() == [False, True, True]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("pickle-was-run"),))


def test_pickles_are_refused_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.npy"
    np.save(path, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match="refused: pickled Python objects"):
        read_recordings(path, "labels_npy", rate=30, warn=False)
    assert formats["labels_npy"].sniff(path, Head(path)) == 0
    assert not (tmp_path / "pickle-was-run").exists()


def header(shape: str, descr: str = "'<i8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "invalid NPY header"),
        (b"\x93NUMPY\x01\x00", "invalid NPY header"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((", "invalid NPY header"),
        (header("(999999999999999,)") + b"\0" * 8, r"states 7,999,999,999,999,992 bytes, but 8 follow; the file is truncated"),
        (header("(99999999999999999999999999,)"), "truncated"),
        (header("(2,)") + b"\0" * 8, "states 16 bytes, but 8 follow; the file is truncated"),
        (header("(1,)") + b"\0" * 9, "other data follow"),
        (header("(1, 1, 1)") + b"\0" * 8, "must have shape"),
        (header("(1,)", "'<c16'") + b"\0" * 16, "must have shape"),
        (header("(1,)", "'|O'") + b"\0" * 8, "refused"),
        (header("(1,)", "[('a', '<U1'), ('b', '<i4')]") + b"\0" * 8, "structured array"),
    ],
)
def test_bad_files(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(raw)
    assert formats["labels_npy"].sniff(path, Head(path)) == 0
    with pytest.raises(FormatError, match=message) as error:
        read_recordings(path, "labels_npy", rate=30, warn=False)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        ([0.5, 1.0], {}, "frame 0: 0.5 is not a code"),
        ([0, 5], {"behaviors": "a,b"}, "frame 1: code 5, but only 2 behaviors"),
        ([0, 99999], {}, "frame 1: code 99999 is too high"),
        ([[0.2, 0.8]], {}, "frame 0: 0.2 for '0' is neither 0 nor 1"),
        ([[0, 1]], {"behaviors": "a"}, "2 columns in the array, but 1 behaviors"),
        ([[0, 1]], {"behaviors": "a,b,c"}, "2 columns in the array, but 3 behaviors"),
        (["x", "y"], {"behaviors": "x"}, "frame 1: the file has behaviors that are not listed in behaviors=: y"),
        (np.array([b"\xff\xfe"]), {}, "not UTF-8"),
    ],
)
def test_bad_content(tmp_path: Path, array: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path, array), "labels_npy", rate=30, **options, warn=False)


def test_features_are_not_labels(tmp_path: Path) -> None:
    path = put(tmp_path, np.random.default_rng(0).normal(size=(50, 3)))
    assert formats["labels_npy"].sniff(path, Head(path)) == 0


def test_layouts(tmp_path: Path) -> None:
    a = Annotation.from_frames([0, 1, -1, 1], Ethogram(["a", "other"], "other"), 25, unobserved=-1)
    for layout in ("codes", "onehot"):
        notes = write_annotation(a, tmp_path / f"{layout}.npy", layout=layout)
        assert "read it with behaviors='a,other'" in " ".join(map(str, notes))
        assert read_annotation(tmp_path / f"{layout}.npy", rate=25, behaviors="a,other") == a
    assert np.load(tmp_path / "codes.npy").tolist() == [0, 1, -1, 1]
    with pytest.raises(EthobenchError, match="`layout` must be one of named, codes, onehot"):
        write_annotation(a, tmp_path / "x.npy", layout="loose")
    both = Annotation.from_frames([[1, 1]], ["a", "b"], 25)
    with pytest.raises(MismatchError, match="two behaviors"):
        write_annotation(both, tmp_path / "x.npy", layout="codes")
    nothing = Annotation.from_frames([[0, 0]], ["a", "b"], 25)
    with pytest.raises(EthobenchError, match="have no code"):
        write_annotation(nothing, tmp_path / "x.npy", layout="codes")
    assert not (tmp_path / "x.npy").exists()


@given(cells=st.lists(st.tuples(*[st.sampled_from([-1, 0, 1])] * 3), min_size=1, max_size=30))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[int, ...]]) -> None:
    frames = np.array(cells)
    names = ["鼠", "b c", "d"]
    observed_frames = {Track(name): iv.from_mask(frames[:, i] >= 0) for i, name in enumerate(names)}
    a = Annotation.from_frames(frames == 1, names, 30).with_observed(Observed(iv.full(len(frames)), observed_frames))
    path = tmp_path_factory.mktemp("round") / "a.npy"
    write_annotation(a, path)
    assert detect(path).name == "labels_npy"
    back = read_annotation(path, rate=30)
    assert np.array_equal(back.to_frames(), a.to_frames())
    for name in names:
        assert iv.to_mask(back.observed.of(name), len(frames)).tolist() == iv.to_mask(a.observed.of(name), len(frames)).tolist()
