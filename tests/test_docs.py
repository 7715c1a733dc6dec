"""Every Python example in the README and the guide runs, and generated pages are up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(page), "exec"), names)  # noqa: S102
    assert page.name == "design.md" or "eb" in names


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_generated_pages_are_up_to_date():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "_generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    hint = "run: python docs/_generate.py"
    assert (ROOT / "docs" / "formats.md").read_text(encoding="utf-8") == generate.formats_page(), hint
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == generate.metrics_page(), hint


def test_commands_in_the_readme_exist():
    from typer.main import get_command

    from ethobench.cli import app

    known = {*get_command(app).commands}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^ethobench (\w+)", text, re.MULTILINE)} <= known
