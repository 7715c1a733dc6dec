"""Timelines as SVG and PDF."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Recording
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.figures.timelines import plot_timeline, write_timeline

SVG = "{http://www.w3.org/2000/svg}"


def make_recording(names=("rest", "run", "other"), id: str = "m1") -> Recording:
    ethogram = Ethogram(names, names[-1])
    anna = Annotation.from_bouts([0, 20], [10, 40], [0, 1], ethogram, 10, 100, observed=np.arange(100) < 80)
    ben = Annotation.from_bouts([5, 30, 50], [35, 40, 50], [0, 1, 1], ethogram, 10, 100, subject=["a", "b", "b"])
    return Recording(id, annotations={"anna": anna, "ben": ben})


def test_an_svg_has_one_row_per_annotator_and_subject(tmp_path):
    path = write_timeline(make_recording(), tmp_path / "t.svg")
    texts = ["".join(element.itertext()) for element in ElementTree.parse(path).iter(f"{SVG}text")]  # noqa: S314
    assert [text for text in texts if text.startswith(("anna", "ben"))] == ["anna", "ben · a", "ben · b"]
    assert {"m1", "rest", "run", "0:00", "0:10"} <= {*texts}


def test_bars_cover_exactly_the_bouts():
    from matplotlib.figure import Figure

    axes = plot_timeline(Figure().add_subplot(), make_recording(), ["anna"])
    bars = [[tuple(p.get_extents().intervalx) for p in collection.get_paths()] for collection in axes.collections]
    assert bars == [[(0.0, 10.0)], [(8.0, 10.0)], [(0.0, 1.0)], [(2.0, 4.0)]]


def test_names_are_neither_markup_nor_formulas(tmp_path):
    path = write_timeline(make_recording(("<script>x</script>", "$\\frac{", "other"), "$a$ & <b>"), tmp_path / "t.svg")
    tree = ElementTree.parse(path)  # noqa: S314
    assert not list(tree.iter(f"{SVG}script"))
    texts = ["".join(element.itertext()) for element in tree.iter(f"{SVG}text")]
    assert {"<script>x</script>", "$\\frac{", "$a$ & <b>"} <= {*texts}


@pytest.mark.slow
def test_names_in_any_script(tmp_path):
    names = ("攻撃 🐭", "гонка", "other")
    path = write_timeline(make_recording(names, "実験 1"), tmp_path / "t.svg")
    texts = {"".join(element.itertext()) for element in ElementTree.parse(path).iter(f"{SVG}text")}  # noqa: S314
    assert {"攻撃 🐭", "гонка", "実験 1"} <= texts
    assert write_timeline(make_recording(names), tmp_path / "t.pdf").stat().st_size > 1000


@pytest.mark.slow
def test_pdf_and_png_and_wrong_suffixes(tmp_path):
    assert write_timeline(make_recording(), tmp_path / "t.pdf").read_bytes().startswith(b"%PDF")
    assert write_timeline(make_recording(), tmp_path / "t.png", start=1, stop=3).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ParameterError, match="svg, pdf, png"):
        write_timeline(make_recording(), tmp_path / "t.exe")
    with pytest.raises(EthobenchError, match="already exists"):
        write_timeline(make_recording(), tmp_path / "t.pdf")
    with pytest.raises(EthobenchError, match="has no annotation"):
        write_timeline(Recording("m2"), tmp_path / "u.svg")
    with pytest.raises(ParameterError, match="must have a length"):
        write_timeline(make_recording(), tmp_path / "u.svg", start=5, stop=2)
