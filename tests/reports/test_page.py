"""HTML files of reports: atomic, escaped, small, with a content security policy that fits their script and style; bundling of scripts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, score
from ethobench.core.errors import EthobenchError
from ethobench.reports import page, render_report, summarize_scores, write_report
from ethobench.reports.page import join_modules
from tests.reports.conftest import ETHOGRAM, HOSTILE, make_prediction, make_truth


class Elements(HTMLParser):
    """Elements of a page with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.is_open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.elements[-1][2].append(data)

    def named(self, tag: str, **attributes: str) -> list[tuple[dict[str, str | None], str]]:
        return [(a, "".join(text)) for t, a, text in self.elements if t == tag and attributes.items() <= a.items()]


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
    assert not [a for _, a, _ in elements.elements if any(name.startswith("on") or name == "style" for name in a)]


def test_page_requests_nothing_from_the_network(scores):
    elements = Elements(render_report(summarize_scores({"model": scores})))
    addresses = [a[name] for _, a, _ in elements.elements for name in ("src", "href", "action", "data", "srcset") if name in a]
    assert [address for address in addresses if not address.startswith("#")] == ["data:,"]
    ((_, style),) = elements.named("style")
    assert not re.search(r"url\(|@import", style)


def test_hostile_names_create_no_elements(hostile_scores):
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


def test_invalid_unicode_is_replaced(tmp_path, scores):
    write_report(tmp_path / "r.html", summarize_scores({"model": scores}, title="bad \udc80 name"))
    assert "<h1>bad ? name</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_an_existing_page_is_only_replaced_on_request(tmp_path, scores):
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


def test_pages_are_written_atomically(tmp_path, scores, monkeypatch):
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
    """Even if the prediction changes in a third of the frames."""
    truths = {f"rec{k}": make_truth(k, n_frames=20_010, rate=30) for k in range(10)}
    guesses = {name: make_prediction(truth, k, certainty=1.5) for k, (name, truth) in enumerate(truths.items())}
    assert sum(len(g.annotation) for g in guesses.values()) > 60_000
    write_report(tmp_path / "r.html", summarize_scores({"model": score(guesses, truths, resamples=100)}))
    assert (tmp_path / "r.html").stat().st_size < 3e6


@pytest.mark.parametrize("n_frames", [1, 2])
def test_the_smallest_recordings_have_a_page(n_frames):
    truth = Annotation.from_frames(np.zeros(n_frames, dtype=int), ETHOGRAM, 10)
    assert "Ethograms" in render_report(summarize_scores({"model": score(truth, truth)}))


def test_a_recording_without_any_bout_has_a_page():
    empty = Annotation.from_bouts([], [], [], ["a", "b"], rate=10, n_frames=50)
    assert "<h1>model against truth</h1>" in render_report(summarize_scores({"model": score(empty, empty)}))


MODULES = {
    "main": 'import { one, two } from "./numbers.js";\nimport { one as x } from "./numbers.js";\n',
    "good": 'import { one, two } from "./numbers.js";\nconst hidden = one + two;\nconsole.log(hidden);\n',
    "numbers": "const hidden = 1;\nexport const one = hidden;\nexport function two() { return 2; }\nexport class Three {}\n",
    "a": 'import { b } from "./b.js";\nexport const a = 1;\n',
    "b": 'import { a } from "./a.js";\nexport const b = 1;\n',
    "default": "export default 3;\n",
}


def test_imports_become_names_and_scopes_stay_separate():
    text = join_modules("good", MODULES.__getitem__)
    assert text.index("numbers_module = ") < text.index("good_module = ")
    assert "const { one, two } = numbers_module;" in text
    assert "return { one, two, Three };" in text
    assert "import" not in text
    assert "export" not in text


@pytest.mark.parametrize(("entry", "message"), [("main", "does not support"), ("default", "does not support"), ("a", "circular import")])
def test_unsupported_modules_are_refused(entry, message):
    with pytest.raises(ValueError, match=message):
        join_modules(entry, MODULES.__getitem__)


def test_every_module_is_used():
    folder = files("ethobench.reports") / "static"
    read = []

    def read_module(name: str) -> str:
        read.append(name)
        return (folder / f"{name}.js").read_text(encoding="utf-8")

    join_modules("main", read_module)
    assert sorted(read) == sorted(p.name.removesuffix(".js") for p in folder.iterdir() if p.name.endswith(".js"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node on the path")
def test_the_bundled_script_runs(tmp_path):
    (tmp_path / "joined.mjs").write_text(join_modules("good", MODULES.__getitem__).replace("one + two", "one + two()"), encoding="utf-8")
    done = subprocess.run(["node", tmp_path / "joined.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
