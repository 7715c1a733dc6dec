"""The guide builds without a network, and nothing in it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "ETHOBENCH_NOTEBOOKS": "0"}  # test_notebooks.py executes them
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert built.returncode == 0, built.stderr
    return folder


class Page(HTMLParser):
    """What a page loads, where it links to, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag in ("script", "img") and "src" in attributes:
            self.loads.append(attributes["src"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loads.append(attributes["href"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_there_is_a_page_for_everything(pages: dict[Path, Page], site: Path) -> None:
    names = {path.relative_to(site).with_suffix("").as_posix() for path in pages}
    expected = {
        "index",
        "guides/train",
        "formats/boris",
        "metrics/bouts.f1",
        "suites/banos",
        "models/rf",
        "api/ethobench",
        "extend/format",
        "tutorials/score_two_raters",
    }
    assert expected <= names


def test_pages_load_nothing_from_other_servers(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for target in page.loads:
            assert not urlsplit(target).netloc, f"{path}: {target}"
            assert (path.parent / unquote(urlsplit(target).path)).exists(), f"{path}: {target}"


def test_links_lead_to_pages_and_anchors_that_exist(pages: dict[Path, Page], site: Path) -> None:
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_relative_to(site), f"{path}: {link}"
            assert target.is_file(), f"{path}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors | {"__"}, f"{path}: {link}"
            checked += 1
    assert checked > 1000


def test_generated_lists_are_in_the_pages(site: Path) -> None:
    text = (site / "models" / "index.html").read_text(encoding="utf-8")
    assert 'href="rf.html"' in text
    assert "list: models" not in text
