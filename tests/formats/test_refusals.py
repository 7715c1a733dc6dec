"""Messages for files that cannot be read: what is wrong and where, without names of Python exceptions."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ethobench.core.errors import FormatError
from ethobench.formats import Format, formats, read_recordings
from ethobench.formats.tidy import KEY

NOT_UTF8 = "\udcff".encode("utf-8", "surrogateescape")


def sleap_without_points() -> bytes:
    return b"track,frame_idx,instance.score\na,0,0.9\n"


def sleap_with_a_huge_frame() -> bytes:
    return b"track,frame_idx,instance.score,nose.x,nose.y\na,1e300,0.9,1,2\n"


def poses_with_a_huge_frame() -> bytes:
    return b"scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n0,1,2,0.9\n1e300,1,2,0.9\n"


def undefined_letter() -> bytes:
    return b"scorer,net,net,net\nbodyparts,n\xe9z,n\xe9z,n\xe9z\ncoords,x,y,likelihood\nimg\x8d,1,2,0.9\n"


def sheet_with_a_late_row() -> bytes:
    return b"Time,Behaviour\n0,a\n0.1,a\n0.2,b\n2147483648,b\n"


def no_labels() -> bytes:
    return b",,\n"


def bouts_without_columns() -> bytes:
    return parquet(pa.table({"recording": ["a"], "behavior": ["b"]}))


def bouts_with_damaged_text() -> bytes:
    text = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], dtype=np.int32).tobytes()), pa.py_buffer(b"\xff"))
    return parquet(pa.table({"recording": text, "behavior": ["b"], "start": [0], "stop": [1]}))


def parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({KEY: b'{"unit": "frames", "rate": 10}'}), file)
    return file.getvalue()


def unclosed_header() -> bytes:
    return b"\x93NUMPY\x01\x00\x10\x00{'descr': ('|O'\n" + b"\x80\x04}."


def endless_header() -> bytes:
    return b"\x93NUMPY\x02\x00\x00\xff\xff\xff{'descr': '|O'"


def hdf5(fill: Callable[[h5py.File], Any]) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        fill(h5)
    return file.getvalue()


def name_of_other_encoding() -> bytes:
    return hdf5(lambda h5: h5.create_group(NOT_UTF8 + b"x"))


def points_of_unknown_type() -> bytes:
    def fill(h5: h5py.File) -> None:
        group = h5.create_group("poseest")
        space = h5py.h5s.create_simple((2,))
        h5py.h5d.create(group.id, b"points", h5py.h5t.UNIX_D32LE, space)

    return hdf5(fill)


DAMAGED = [
    (sleap_without_points, "sleap", "no columns of points (such as nose.x and nose.y); columns: track, frame_idx, instance.score"),
    (sleap_with_a_huge_frame, "sleap", "row 2: '1e+300' is not a frame number"),
    (poses_with_a_huge_frame, "lightning_pose", "row 5: '1e300' is not a frame number"),
    (undefined_letter, "lightning_pose", "invalid cp1252 text: byte 0x8d is not a character"),
    (sheet_with_a_late_row, "solomon", "row 5: refused: the time 2147483648 would make 21,474,836,481 frames"),
    (no_labels, "bebe_predictions", "no labels; expected one integer per row"),
    (bouts_without_columns, "tidy_parquet", "no column start and no stop; columns: recording, behavior"),
    (bouts_with_damaged_text, "tidy_parquet", r"column recording: invalid UTF-8 text: b'\xff'"),
    (unclosed_header, "calms21", "invalid NPY header"),
    (endless_header, "calms21", "invalid NPY header (it claims 4,294,967,040 bytes)"),
    (endless_header, "labels_npy", "invalid NPY header (it claims 4,294,967,040 bytes)"),
    (name_of_other_encoding, "jabs", "no group 'poseest'; groups: \ufffdx"),
    (name_of_other_encoding, "deeplabcut", "no table of poses; the file contains: \ufffdx"),
    (points_of_unknown_type, "jabs", "damaged HDF5 file (No NumPy equivalent for TypeTimeID exists)"),
]
SUFFIXES = {
    "tidy_parquet": ".parquet",
    "calms21": ".npy",
    "labels_npy": ".npy",
    "jabs": ".h5",
    "deeplabcut": ".h5",
    "bebe_predictions": ".bebe.csv",
}


@pytest.mark.parametrize(("build", "name", "message"), DAMAGED, ids=lambda value: getattr(value, "__name__", None))
def test_common_damage_is_reported(build: Callable[[], bytes], name: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"some{SUFFIXES.get(name, '.csv')}"
    path.write_bytes(build())
    with pytest.raises(FormatError) as caught:
        read_recordings(path, name, warn=False)
    assert message in str(caught.value)
    assert caught.value.__cause__ is None, "the reader did not foresee it"


ERRORS: list[tuple[Exception, str]] = [
    (KeyError("tracks"), "it has no entry 'tracks'"),
    (KeyError("Unable to open object"), "Unable to open object"),
    (TypeError("'int' object is not subscriptable"), "a value in it has an unexpected type"),
    (AttributeError("'int' object has no attribute 'get'"), "a value in it has an unexpected type"),
    (IndexError("list index out of range"), "a list or table in it is shorter than expected"),
    (ValueError("need at least\none array"), "a value in it is not as expected (need at least one array)"),
    (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"), "its text is not valid UTF-8 (byte 1)"),
    (RecursionError(), "it is nested too deeply"),
    (OverflowError("int too big to convert"), "a number in it is too large"),
    (ZeroDivisionError("division by zero"), "a number in it is 0 where it must not be"),
    (RuntimeError(), "a value in it is not as expected"),
]


@pytest.mark.parametrize(("error", "reason"), ERRORS, ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None)
def test_unforeseen_reader_errors_are_explained(error: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Format, path: Path, entry: str | None = None) -> None:
        raise error

    monkeypatch.setattr(type(formats["bento"]), "read", broken)
    (tmp_path / "a.annot").write_bytes(b"Bento annotation file\n")
    with pytest.raises(FormatError) as caught:
        read_recordings(tmp_path / "a.annot", "bento", warn=False)
    advice = "the file is damaged, or of a version that is not supported (if other software opens it, please report it)"
    assert str(caught.value) == f"{tmp_path / 'a.annot'}: could not be read as {formats['bento'].title}: {reason}; {advice}"
    assert caught.value.__cause__ is error


def test_an_impossible_rate_in_a_file_is_refused_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label\na\nb\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"a\.csv.*`rate` must be"):
        read_recordings(path, "labels", rate=-5)
