"""Generate the reference pages from the registries and docstrings while mkdocs builds the site.

mkdocs calls the functions ``on_*`` (see ``hooks`` in mkdocs.yml). A hand-written page marks the position of a list with a comment
such as ``<!-- list: formats -->``. ``python docs/_generate.py FOLDER`` writes the pages to a folder for inspection.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from _docstrings import table
from _figures import FOLDER, drawn, requested, with_figures
from _notebooks import rendered_notebooks
from _reference import Page, format_pages, metric_pages, model_pages, suite_pages
from _reference_api import api_pages

COLUMN = {"api": "package"}  # first column of a list, if not the singular of its section
LIST = re.compile(r"^<!-- list: (\w+) -->$", re.MULTILINE)


@cache
def sections() -> dict[str, list[Page]]:
    """Return all generated pages, by folder."""
    return {
        "formats": format_pages(),
        "metrics": metric_pages(),
        "suites": suite_pages(),
        "models": model_pages(),
        "api": api_pages(),
    }


def listing(section: str) -> str:
    """Format the tables of links to a section's pages, one per group."""
    parts = []
    for group, pages in _groups(sections()[section]).items():
        rows = [(f"[{page.label}]({page.name}.md)", *page.facts.values()) for page in pages]
        parts += [*([f"## {group}"] if group else []), table((COLUMN.get(section, section.removesuffix("s")), *pages[0].facts), rows)]
    return "\n\n".join(parts)


def with_lists(text: str) -> str:
    """Replace the list comments of a page."""
    return LIST.sub(lambda match: listing(match[1]), text)


def _groups(pages: list[Page]) -> dict[str, list[Page]]:
    groups: dict[str, list[Page]] = {}
    for page in pages:
        groups.setdefault(page.group, []).append(page)
    return groups


def expanded(nav: Any) -> Any:
    """Add the generated pages of a section to the navigation, after its index."""
    if isinstance(nav, list):
        return [expanded(item) for item in nav]
    if isinstance(nav, dict):
        return {title: expanded(item) for title, item in nav.items()}
    section, _, name = nav.partition("/")
    if name != "index.md" or section not in sections():
        return nav
    items: list[Any] = [nav]
    for group, pages in _groups(sections()[section]).items():
        links = [{page.label.strip("`"): f"{section}/{page.name}.md"} for page in pages]
        items += [{group: links}] if group else links
    return items


def on_config(config: Any) -> Any:
    """List the generated pages in the navigation."""
    config["nav"] = expanded(config["nav"])
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for section, pages in sections().items():
        for page in pages:
            files.append(File.generated(config, f"{section}/{page.name}.md", content=page.text))
    pages_text = [Path(file.abs_src_path).read_text(encoding="utf-8") for file in files.documentation_pages() if file.abs_src_path]
    for name in sorted({name for text in pages_text for name in requested(text)}):
        files.append(File.generated(config, f"{FOLDER}/{name}.svg", content=drawn(name)))
    for notebook in rendered_notebooks():
        files.append(File.generated(config, f"tutorials/{notebook.name}.md", content=notebook.text))
        for name, picture in notebook.pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the lists and figures of hand-written pages."""
    return with_figures(with_lists(markdown), page.file.src_uri.count("/"))


def main(folder: Path) -> None:
    """Write all generated pages to a folder."""
    for section, pages in sections().items():
        (folder / section).mkdir(parents=True, exist_ok=True)
        for page in pages:
            (folder / section / f"{page.name}.md").write_text(page.text, encoding="utf-8")
    print(f"{sum(map(len, sections().values()))} pages in {folder}")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    else:
        print("mkdocs generates the reference pages; pass a folder to write them there")
