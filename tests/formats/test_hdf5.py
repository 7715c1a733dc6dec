from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.fuzz.corpus import make_corpus

from ethobench.core.errors import FormatError
from ethobench.formats import detect, hdf5, read_recordings
from ethobench.formats.text import Head


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "x.h5"
    with h5py.File(result, "w") as file:
        file["group/inner/numbers"] = np.arange(4.0)
        file["group/words"] = ["a", "ä"]
        file["group/fixed"] = np.array([b"a", b"b"])
        file["soft"] = h5py.SoftLink("/group/inner")
        file["group/relative"] = h5py.SoftLink("inner/numbers")
        file["nowhere"] = h5py.SoftLink("/not/there")
        file["loop"] = h5py.SoftLink("/loop")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["through"] = h5py.SoftLink("/outside/x")
    return result


def test_links_inside_the_file_are_followed(path: Path) -> None:
    with hdf5.open_file(path) as file:
        assert hdf5.array(path, file, "soft/numbers").tolist() == [0, 1, 2, 3]
        assert hdf5.array(path, file["group"], "relative").tolist() == [0, 1, 2, 3]
        assert hdf5.member(path, file, "nowhere") is None
        assert hdf5.member(path, file, "group/inner/numbers/deeper") is None


@pytest.mark.parametrize(
    ("name", "message"), [("loop", "circular"), ("outside", "another file"), ("through", "another file"), ("outside/x", "another file")]
)
def test_links_that_lead_out_or_in_circles_are_refused(name: str, message: str, path: Path) -> None:
    with pytest.raises(FormatError, match=message), hdf5.open_file(path) as file:
        hdf5.member(path, file, name)


def test_a_file_can_be_checked_for_links(path: Path) -> None:
    with pytest.raises(FormatError, match="outside: refused: link to another file"), hdf5.open_file(path) as file:
        hdf5.refuse_external_links(path, file)
    with h5py.File(path, "a") as file:
        del file["outside"]
        hdf5.refuse_external_links(path, file)
        file.create_dataset("raw", (4,), "f8", external=[("raw.bin", 0, 32)])
        with pytest.raises(FormatError, match="raw"):
            hdf5.refuse_external_links(path, file)


def test_texts_of_any_kind(path: Path) -> None:
    with hdf5.open_file(path) as file:
        assert hdf5.texts(path, file, "group/words") == ["a", "ä"]
        assert hdf5.texts(path, file, "group/fixed") == ["a", "b"]
        assert hdf5.texts(path, file, "group/inner/numbers") == ["0.0", "1.0", "2.0", "3.0"]
        assert hdf5.texts(path, file, "missing") == []


def test_text_is_not_a_number_and_a_group_not_a_dataset(path: Path) -> None:
    with pytest.raises(FormatError, match=r"expected numbers in .* got objects"), hdf5.open_file(path) as file:
        hdf5.array(path, file, "group/words")
    with pytest.raises(FormatError, match="no dataset 'group'"), hdf5.open_file(path) as file:
        hdf5.array(path, file, "group")
    with pytest.raises(FormatError, match="expected 2 axes in /group/inner/numbers, got 1"), hdf5.open_file(path) as file:
        hdf5.array(path, file, "group/inner/numbers", 2)


HEAPS = {
    "one text": ["a"],
    "full": ["abc"] * 170,
    "8 bytes left": [*["abc"] * 168, "a" * 20],
    "two heaps": ["abc"] * 171,
    "long": ["a" * 9000] * 3,
}


@pytest.mark.parametrize("size_width", [4, 8])
@pytest.mark.parametrize("words", HEAPS.values(), ids=HEAPS)
def test_heaps_of_texts_are_read_at_any_fill(words: list[str], size_width: int, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(size_width, size_width)
    with h5py.File(h5py.h5f.create(str(path).encode(), fcpl=plist)) as file:
        file["words"] = words
    with h5py.File(path, "a") as file:
        del file["words"]
        file["others"], file["words"] = ["a"], words
    with hdf5.open_file(path) as file:
        assert hdf5.texts(path, file, "words") == words


def test_the_signature_of_a_heap_in_numbers_is_not_a_heap(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["numbers"] = np.frombuffer(b"GCOLUMNS" * 4 + b"GCOL", dtype=np.uint8)
    with hdf5.open_file(tmp_path / "x.h5") as file:
        assert len(hdf5.array(tmp_path / "x.h5", file, "numbers")) == 36


def test_names_for_sniffing(path: Path, tmp_path: Path) -> None:
    assert {"group", "soft", "outside"} <= hdf5.top_names(Head(path))
    broken = tmp_path / "broken.h5"
    broken.write_bytes(path.read_bytes()[:60])
    with pytest.raises(FormatError, match="not a valid HDF5 file"):
        detect(broken)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jabs", "sleap"])
def test_a_damaged_object_header_is_named(name: str, tmp_path: Path) -> None:
    """No damaged byte after the table of names gives a message that only names an exception."""
    (seed,) = (s for s in make_corpus([name]) if next(iter(s.files)).endswith((".h5", ".nwb")))
    ((file, content),) = seed.files.items()
    offset = content.index(b"SNOD") if b"SNOD" in content else 0
    for i in range(offset, min(len(content), offset + 640), 16):
        path = tmp_path / file
        path.write_bytes(content[:i] + b"\xfe" + content[i + 1 :])
        try:
            read_recordings(path, name, warn=False)
        except FormatError as error:
            assert "KeyError" not in str(error)
