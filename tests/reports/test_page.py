"""The file itself: whole or not at all, escaped, small, and with a policy that fits its own script and style."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, score
from ethobench.core.errors import EthobenchError
from ethobench.reports import page, render_report, summarize_scores, write_report
from tests.reports.conftest import ETHOGRAM, HOSTILE, make_prediction, make_truth


class Elements(HTMLParser):
    """What a parser finds: elements with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.is_open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.found[-1][2].append(data)

    def named(self, tag: str, **attributes: str) -> list[tuple[dict[str, str | None], str]]:
        return [(a, "".join(text)) for t, a, text in self.found if t == tag and attributes.items() <= a.items()]


def hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_names_exactly_our_script_and_style(scores):
    elements = Elements(render_report(summarize_scores({"model": scores})))
    (policy, _), *_ = elements.named("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy["content"].split(";"))
    ((_, script),) = elements.named("script", type="module")
    ((_, style),) = elements.named("style")
    assert rules == {
        "default-src": "'none'",
        "script-src": hash_of(script),
        "style-src": hash_of(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(elements.named("script")) == 2
    assert not [a for _, a, _ in elements.found if any(name.startswith("on") or name == "style" for name in a)]


def test_nothing_is_asked_for_from_elsewhere(scores):
    elements = Elements(render_report(summarize_scores({"model": scores})))
    addresses = [a[name] for _, a, _ in elements.found for name in ("src", "href", "action", "data", "srcset") if name in a]
    assert [where for where in addresses if not where.startswith("#")] == ["data:,"]
    ((_, style),) = elements.named("style")
    assert not re.search(r"url\(|@import", style)


def test_hostile_names_make_no_elements(hostile_scores):
    report = summarize_scores({HOSTILE[0]: hostile_scores}, truth=HOSTILE[1], title=HOSTILE[2])
    text = render_report(report)
    elements = Elements(text)
    assert len(elements.named("script")) == 2
    assert not elements.named("img")
    assert not elements.named("b")
    ((_, title),) = elements.named("title")
    assert title == HOSTILE[2]
    assert "49" not in [t for _, t in elements.named("th")], "names are not templates"
    ((_, data),) = elements.named("script", id="report-data")
    assert not re.search("[<>&\u2028\u2029]", data)
    assert [b["name"] for b in json.loads(data)["groups"][0]["behaviors"]] == [*HOSTILE, "other"]


@given(st.text())
def test_embedded_json_can_neither_end_nor_begin_a_tag(text):
    embedded = page.embed({text: [text]})
    assert not re.search("[<>&\u2028\u2029]", embedded)
    assert embedded.isascii()
    assert json.loads(embedded) == {text: [text]}


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path, scores):
    write_report(tmp_path / "r.html", summarize_scores({"model": scores}, title="bad \udc80 name"))
    assert "<h1>bad ? name</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_page_that_is_there_is_left_alone_unless_told(tmp_path, scores):
    path = tmp_path / "deep" / "report.html"
    report = summarize_scores({"model": scores})
    write_report(path, report)
    before = path.read_bytes()
    with pytest.raises(EthobenchError, match="already exists"):
        write_report(path, {**report, "title": "new"})
    assert path.read_bytes() == before
    write_report(path, {**report, "title": "new"}, overwrite=True)
    assert b"<h1>new</h1>" in path.read_bytes()
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_a_page_appears_whole_or_not_at_all(tmp_path, scores, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(tmp_path / "report.html", summarize_scores({"model": scores}))
    assert list(tmp_path.iterdir()) == []


def test_the_same_report_gives_the_same_bytes(scores):
    report = summarize_scores({"model": scores})
    assert render_report(report) == render_report(json.loads(json.dumps(report)))


@pytest.mark.slow
def test_ten_recordings_of_20000_frames_stay_below_3_mb(tmp_path):
    """Also where the model changes its mind in a third of the frames."""
    truths = {f"rec{k}": make_truth(k, n_frames=20_010, rate=30) for k in range(10)}
    guesses = {name: make_prediction(truth, k, certainty=1.5) for k, (name, truth) in enumerate(truths.items())}
    assert sum(len(g.annotation) for g in guesses.values()) > 60_000
    write_report(tmp_path / "r.html", summarize_scores({"model": score(guesses, truths, resamples=100)}))
    assert (tmp_path / "r.html").stat().st_size < 3e6


@pytest.mark.parametrize("n_frames", [1, 2])
def test_the_smallest_recordings_make_a_page(n_frames):
    truth = Annotation.from_frames(np.zeros(n_frames, dtype=int), ETHOGRAM, 10)
    assert "Ethograms" in render_report(summarize_scores({"model": score(truth, truth)}))


def test_a_recording_without_any_bout_makes_a_page():
    empty = Annotation.from_bouts([], [], [], ["a", "b"], rate=10, n_frames=50)
    assert "<h1>model against truth</h1>" in render_report(summarize_scores({"model": score(empty, empty)}))
