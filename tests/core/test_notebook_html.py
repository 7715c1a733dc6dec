"""How objects show themselves in notebooks: correct, escaped and small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import ethobench as eb
from ethobench.core.notebook_html import WIDTH, html_table

HOSTILE = "</td><script>alert(1)</script><svg onload=x>"
ALLOWED = {"table", "caption", "tr", "th", "td", "svg", "text", "g", "path", "p", "thead", "tbody"}


class Tags(HTMLParser):
    """Collects the names of tags, and fails if one is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def labels(names=(HOSTILE, "run", "other"), n: int = 100) -> eb.Annotation:
    return eb.Annotation.from_bouts([0, 20, 60], [10, 40, 60], [0, 1, 1], eb.Ethogram(names, names[-1]), 10, n)


def objects() -> dict[str, object]:
    annotation = labels()
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    probabilities = np.tile([0.2, 0.7, 0.1], (100, 1))
    recording = eb.Recording(HOSTILE, HOSTILE, annotations={HOSTILE: annotation}, metadata={HOSTILE: HOSTILE})
    return {
        "Ethogram": eb.Ethogram([eb.Behavior(HOSTILE, HOSTILE, key="<")]),
        "Annotation": annotation,
        "Recording": recording,
        "Dataset": eb.Dataset((recording,), annotation.ethogram, name=HOSTILE),
        "Prediction": eb.Prediction(probabilities, annotation.ethogram, 10, exclusive=True),
        "Scores": eb.score(annotation, annotation),
        "model": eb.create_model("chance"),
        "fitted model": eb.create_model("chance").fit(data.rename({data.ethogram.names[0]: HOSTILE})),
    }


KINDS = ("Ethogram", "Annotation", "Recording", "Dataset", "Prediction", "Scores", "model", "fitted model")


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_shows_itself_and_nothing_from_files_is_markup(kind):
    shown = objects()[kind]
    html = shown._repr_html_()
    assert Tags(html).names <= ALLOWED
    assert "<script" not in html
    if kind != "model":
        assert "&lt;script&gt;" in html


def bars(svg: str, color: str) -> list[tuple[int, int]]:
    root = ElementTree.fromstring(svg[: svg.index("</svg>") + 6])  # noqa: S314
    paths = [element for element in root.iter() if element.get("fill") == color]
    return [(int(x), int(x) + int(w)) for path in paths for x, w in re.findall(r"M(\d+) 0h(\d+)", path.get("d"))]


def test_the_raster_shows_the_bouts_at_their_times():
    html = labels(("rest", "run", "other"))._repr_html_()
    scale = WIDTH / 100
    assert bars(html, "#244bbf") == [(round(20 * scale), round(40 * scale)), (round(60 * scale), round(60 * scale) + 1)]
    assert bars(html, "#9b461c") == [(0, round(10 * scale))]
    assert bars(html, "#eaecee") == [(0, WIDTH)] * 2, "everything is observed"
    assert "10 s</text>" in html
    half = labels(("rest", "run", "other")).with_observed(np.arange(100) >= 50)
    assert bars(half._repr_html_(), "#eaecee") == [(WIDTH // 2, WIDTH)] * 2


@pytest.mark.slow
def test_a_million_bouts_and_a_thousand_behaviors_stay_small():
    n = 1_000_000
    names = [f"behavior {k} {'x' * 1000}" for k in range(1000)]
    start = np.arange(n) * 10
    annotation = eb.Annotation.from_bouts(start, start + 1, np.arange(n) % 1000, names, 30, 10 * n)
    for shown in (annotation, eb.Recording("r", annotations={f"a{k}": annotation for k in range(50)}), annotation.ethogram):
        assert len(shown._repr_html_()) < 500_000
    assert len(annotation._repr_html_()) < 100_000
    assert "and 988 more behaviors" in annotation._repr_html_()


def test_an_annotation_without_frames_or_bouts_has_no_raster():
    for annotation in (eb.Annotation.from_bouts([], [], [], ["rest"], 10, 0), eb.Annotation.from_bouts([], [], [], ["rest"], 10, 50)):
        assert "<svg" not in annotation._repr_html_()
        assert "rest" in annotation._repr_html_()


def test_long_tables_are_shortened():
    html = html_table(["n"], [[k] for k in range(100)], "numbers", max_rows=10)
    assert html.count("<tr>") == 12
    assert "and 90 more" in html
