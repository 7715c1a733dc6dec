"""Label CSV: one word or code per frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core import Annotation, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation
from ethobench.formats.text import Head

WORDS = "label\nattack\nattack\nother\n\nmount\n"


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_words(tmp_path: Path) -> None:
    path = put(tmp_path, WORDS)
    assert detect(path).name == "labels"
    a = read_annotation(path, rate=30)
    assert a.ethogram == Ethogram(["attack", "other", "mount"], "other")
    assert a.to_codes().tolist() == [0, 0, 1, -1, 2]


@pytest.mark.parametrize(
    "text",
    [
        WORDS.replace("\n", "\r\n"),
        "\ufeff" + WORDS,
        WORDS.replace("label", "Behaviour"),
        "frame,label\n0,attack\n1,attack\n2,other\n3,NaN\n4,mount\n",
        "frame;label\n1;attack\n2;attack\n3;other\n4;\n5;mount\n",
        "frame\tlabel\n1\t attack\n2\tattack \n3\tother\n5\tmount\n",
    ],
)
def test_dialects_read_alike(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert detect(path).name == "labels"
    assert read_recordings(path, rate=30, warn=False)[0].annotation() == read_annotation(put(tmp_path, WORDS, "plain.csv"), rate=30)


def test_codes_need_names(tmp_path: Path) -> None:
    path = put(tmp_path, "label\n0\n2\n-1\n1.0\n\n")
    with pytest.warns(ReadWarning) as warned:
        a = read_annotation(path, rate=30)
    assert {str(w.message).partition(": ")[2] for w in warned} == {
        "labels are numbers without names; name them with behaviors=",
        "ignored 1 empty lines at the end",
    }
    assert a.ethogram.names == ("0", "1", "2")
    named = read_recordings(path, rate=30, behaviors="rest, walk, run, fly", warn=False)[0].annotation()
    assert named.ethogram.names == ("rest", "walk", "run", "fly")
    assert named.to_codes().tolist() == [0, 2, -1, 1]


def test_given_behaviors_fix_the_ethogram(tmp_path: Path) -> None:
    path = put(tmp_path, "label\nb\nnone\na\n")
    a = read_annotation(path, rate=30, behaviors=["a", "b", "c"])
    assert a.ethogram.names == ("a", "b", "c")
    assert a.to_codes().tolist() == [1, 3, 0]
    named = read_annotation(path, rate=30)
    assert named.ethogram == Ethogram(["b", "none", "a"], "none")


def test_words_for_missing_values_are_labels_here(tmp_path: Path) -> None:
    a = read_annotation(put(tmp_path, "label\nNone\nnull\nN/A\nNA\n"), rate=30)
    assert a.ethogram.names == ("None", "null", "N/A")
    assert a.to_codes().tolist() == [0, 1, 2, -1]


def test_other_columns_are_reported(tmp_path: Path) -> None:
    path = put(tmp_path, "frame,label,who\n0,a,x\n1,b,x\n")
    with pytest.warns(ReadWarning, match="ignored unknown columns: who"):
        read_annotation(path, "labels", rate=30)
    assert read_recordings(path, "labels", rate=30, column="who", warn=False)[0].annotation().ethogram.names == ("x",)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "empty"),
        ("label\n", {}, "no rows"),
        ("label\na\nb\n", {"behaviors": ["a"]}, r"row 3: 'b' is not one of the behaviors \(a\)"),
        ("label\n0\n3\n", {"behaviors": ["a", "b"]}, r"row 3: '3' is not one of the behaviors"),
        ("attack\nattack\nmount\n", {}, "row 1: no header row: the first line, 'attack', is also a label"),
        ("a,b\nx,y\n", {}, "cannot determine the column with labels"),
        ("a,b\nx,y\n", {"column": "c"}, "no column 'c'; columns: a, b"),
        ("time,label\n0,a\nsoon,b\n", {}, "row 3: 'soon' in column 'time' is not a number"),
        ("time,label\n0,a\n0.1,a,b\n", {}, "row 3: 3 cells"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_recordings(put(tmp_path, text), "labels", rate=30, **options, warn=False)


@pytest.mark.parametrize("text", ["attack\nmount\n", "label,score\na,1\n", "label\n", "time,start,label\n0,0,a\n"])
def test_does_not_detect_other_files(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert formats["labels"].sniff(path, Head(path)) == 0


def test_overlaps_are_refused(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0, 1], [3, 4], ["a", "b"], ["a", "b"], 30, 5)
    with pytest.raises(MismatchError, match="one behavior at a time"):
        write_annotation(a, tmp_path / "x.csv", "labels")
    assert not (tmp_path / "x.csv").exists()
    with pytest.raises(EthobenchError, match="`index` must be none, frame or time"):
        write_annotation(a.restrict(["a"]), tmp_path / "x.csv", "labels", index="row")


def test_losses_are_reported(tmp_path: Path) -> None:
    a = Annotation.from_bouts([1], [3], ["b"], ["a", "b"], 25, 5)
    notes = " ".join(map(str, write_annotation(a, tmp_path / "x.csv", "labels")))
    assert "lost unless the file is read with behaviors=: a" in notes
    assert "written as 'none'" in notes
    assert read_annotation(tmp_path / "x.csv", behaviors=["a", "b"]) == a


@given(codes=st.lists(st.sampled_from([-1, 0, 1, 2, 3]), min_size=2, max_size=40), index=st.sampled_from(["none", "frame", "time"]))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, codes: list[int], index: str) -> None:
    ethogram = Ethogram(["Wäsche", "b, c", "d"])
    array = np.array(codes)
    a = Annotation.from_frames(array, ethogram, 25, unobserved=-1)
    path = tmp_path_factory.mktemp("round") / "a.csv"
    write_annotation(a, path, "labels", index=index)
    back = read_recordings(path, "labels", rate=25, behaviors=ethogram.names, warn=False)[0].annotation()
    assert back.to_codes().tolist() == codes
    assert back == a


@pytest.mark.slow
@pytest.mark.data
def test_banos(data: Path, tmp_path: Path) -> None:
    paths = sorted(data.glob("banos/Recording_*/humanAnnotation_*.csv"))
    assert len(paths) == 20
    for i, path in enumerate(paths):
        a = read_annotation(path, "onehot", rate=30)
        write_annotation(a, tmp_path / f"{i}.csv", "labels")
        assert detect(tmp_path / f"{i}.csv").name == "labels"
        back = read_annotation(tmp_path / f"{i}.csv", behaviors=a.ethogram.names)
        assert back.rate == 30
        assert np.array_equal(back.to_frames(), a.to_frames())
