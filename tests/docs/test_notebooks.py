"""The tutorials run from top to bottom, show their figures, and are stored without outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import _notebooks

NOTEBOOKS = _notebooks.notebooks()


def test_each_is_in_the_navigation():
    assert len(NOTEBOOKS) >= 5
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"tutorials/{path.stem}.md" in navigation for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert notebook["cells"][0]["source"][0].startswith("# ")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_their_pages_show_figures(path: Path, monkeypatch):
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    page = _notebooks.render(path.stem, _notebooks.execute(path))
    assert page.pictures
    assert all(picture.startswith(b"\x89PNG") for picture in page.pictures.values())
    assert all(f'<img src="{name}"' in page.text for name in page.pictures)
    assert "Traceback" not in page.text
    assert page.text.startswith(f"# {page.title}\n")
