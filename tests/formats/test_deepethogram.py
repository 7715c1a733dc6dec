"""DeepEthogram labels: -1 is not labeled yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation
from ethobench.formats.text import Head

FILE = ",background,attack,sniff\n0,1,0,0\n1,0,1,0\n2,0,1,1\n3,-1,-1,-1\n4,1,0,0\n"


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", [FILE, FILE.replace("\n", "\r\n"), "\ufeff" + FILE, FILE.replace("-1", "-1.0")])
def test_plain(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert detect(path).name == "deepethogram"
    a = read_annotation(path, rate=30)
    assert a.ethogram == Ethogram(["background", "attack", "sniff"], "background")
    assert a.to_frames().astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert a.observed == Observed(iv.intervals([0, 4], [3, 5]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (",background,attack\n", "no rows"),
        (",attack,sniff\n0,1,0\n", "first column of DeepEthogram labels must be 'background'"),
        (",background,attack\n0,0,3\n", "row 2: 3 in column 'attack'"),
        (",background,attack\n0,0,0.4\n", "row 2: 0.4 in column 'attack' looks like a probability"),
        (",background,attack\n0,1,0\n0,1,0\n", "row 3: 0 in column 'index' is not larger"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path, text), "deepethogram", rate=30, warn=False)


@pytest.mark.parametrize("text", [",attack,background\n0,1,0\n", ",background,attack\n0,0.5,0.5\n", "background,attack,x\n0,1,0\n"])
def test_does_not_detect_other_files(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert formats["deepethogram"].sniff(path, Head(path)) == 0


def test_background_is_added_or_renamed(tmp_path: Path) -> None:
    bare = Annotation.from_frames([[1, 0], [0, 0], [0, 1]], ["a", "b"], 30)
    assert "'background' is added" in str(write_annotation(bare, tmp_path / "a.csv", "deepethogram"))
    assert (tmp_path / "a.csv").read_text() == ",background,a,b\n0,0,1,0\n1,1,0,0\n2,0,0,1\n"
    named = Annotation.from_frames([0, 1], Ethogram(["a", "other"], "other"), 30)
    assert "'other' is written as 'background'" in str(write_annotation(named, tmp_path / "b.csv", "deepethogram"))
    odd = Annotation.from_frames([0, 1], Ethogram(["background", "other"], "other"), 30)
    with pytest.raises(EthobenchError, match="rename it first"):
        write_annotation(odd, tmp_path / "c.csv", "deepethogram")


@given(cells=st.lists(st.tuples(*[st.sampled_from([-1, 0, 1])] * 2), min_size=1, max_size=30))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[int, int]]) -> None:
    text = ",background,a,b\n" + "".join(
        f"{i},{0 if 1 in row else 1 if row == (0, 0) else -1},{row[0]},{row[1]}\n" for i, row in enumerate(cells)
    )
    folder = tmp_path_factory.mktemp("round")
    a = read_annotation(put(folder, text), "deepethogram", rate=30)
    write_annotation(a, folder / "b.csv", "deepethogram")
    assert (folder / "b.csv").read_text() == text
    assert read_annotation(folder / "b.csv", rate=30) == a


@pytest.mark.slow
@pytest.mark.data
def test_sample(data: Path) -> None:
    path = data / "formats/deepethogram/Together_1.csv"
    assert detect(path).name == "deepethogram"
    (recording,) = read_recordings(path, rate=30, warn=False)
    a = recording.annotation()
    assert (recording.id, a.n_frames) == ("Together_1", 1738)
    frames = a.to_frames()
    assert dict(zip(a.ethogram.names, frames.sum(axis=0).tolist(), strict=True)) == {"background": 5, "Attack": 1037, "Sniffing": 1738}
    assert [str(n) for n in recording.notes] == ["5 frames have 'background' and another behavior; both are kept"]
