"""Tutorials: execute the notebooks in docs/tutorials and render them as Markdown pages with their figures.

An own hook of some hundred lines, not mkdocs-jupyter: that needs nbconvert and jupytext with about thirty packages, and brings the style
sheets of JupyterLab, while the pages here need code, text, tables and pictures in the style of the site. Execution needs nbclient and
ipykernel, which the tests use too.

``ETHOBENCH_NOTEBOOKS=0`` renders the pages without executing them, so without outputs.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
TIMEOUT = 1800  # seconds of a cell, for machines that are busy
LONGEST_ROW = 100  # characters; longer lines are sentences


@dataclass
class Rendered:
    """A notebook as Markdown, and the pictures it refers to, by file name."""

    name: str
    title: str
    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def notebooks() -> list[Path]:
    """Return the notebooks by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path) -> Any:
    """Return a notebook with the outputs of all cells; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    options = {"timeout": TIMEOUT, "kernel_name": "python3", "extra_arguments": ["--IPKernelApp.log_level=ERROR"]}
    NotebookClient(notebook, resources={"metadata": {"path": str(FOLDER)}}, **options).execute()
    return notebook


@cache
def rendered_notebooks() -> tuple[Rendered, ...]:
    """Execute and render all notebooks."""
    import nbformat

    is_executed = os.environ.get("ETHOBENCH_NOTEBOOKS", "1") != "0"
    return tuple(render(path.stem, execute(path) if is_executed else nbformat.read(path, as_version=4)) for path in notebooks())


def render(name: str, notebook: Any) -> Rendered:
    """Render a notebook; code is followed by its outputs."""
    page = Rendered(name, name, "")
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += [part for output in cell.outputs for part in _output(output, page)]
    link = f"This page is a notebook: [{name}.ipynb]({name}.ipynb). It runs in seconds on generated data."
    heading, _, rest = "\n\n".join(parts).partition("\n")
    page.title = heading.removeprefix("# ")
    page.text = f"{heading}\n\n{link}\n{rest}\n"
    return page


def _output(output: Any, page: Rendered) -> list[str]:
    """Render an output: a picture, HTML (all of it is made by Ethobench or pandas), or text."""
    if output.output_type == "stream":
        return [_fenced(output.text)] if output.name == "stdout" else []
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{page.name}_{len(page.pictures) + 1}.png"
        page.pictures[file] = b64decode(data["image/png"])
        width = output.get("metadata", {}).get("image/png", {}).get("width")
        size = f' width="{width}"' if width else ""
        return [f'<img src="{file}" alt="Figure {len(page.pictures)} of this page"{size}>']
    if "text/html" in data:
        html = re.sub(r"<style scoped>.*?</style>", "", data["text/html"], flags=re.DOTALL)
        html = re.sub(r'<table[^>]* class="dataframe">', "<table>", html)  # the theme styles tables without a class
        html = re.sub(r" \[([-.\d]+), ([-.\d]+)\]</td>", r"<br>[\1,&nbsp;\2]</td>", html)  # an interval stands below its score
        return [f'<div class="notebook-output" style="overflow-x: auto">{" ".join(html.split())}</div>']
    return [_fenced(data["text/plain"])] if "text/plain" in data else []


def _fenced(text: str) -> str:
    block = f"```text\n{text.rstrip()}\n```"
    is_prose = max(map(len, text.splitlines()), default=0) > LONGEST_ROW
    return f'<div class="notebook-prose" markdown>\n\n{block}\n\n</div>' if is_prose else block
