"""The code blocks of a page, and what a reader would do with them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*?) -->\n+)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes
    ----------
    page : Path
    line : int
        Of the page, where the code begins.
    language, code : str
    title : str
        The file that the reader is to write it to; empty for code to run.
    reason : str or None
        Why it is not run, from the comment before it.
    """

    page: Path
    line: int
    language: str
    code: str
    title: str = ""
    reason: str | None = None

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def compiled_source(self) -> str:
        """The code, moved down so that tracebacks name the page's own lines."""
        return "\n" * (self.line - 1) + self.code

    def commands(self) -> list[list[str]]:
        """Return the words of each command; lines ending in a backslash go on, comments are left out."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(page: Path) -> list[Block]:
    """Return all blocks of a page that have a language."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text[: match.start("code")].count("\n") + 1, match["language"], match["code"], match["title"] or "", match["reason"])
        for match in FENCE.finditer(text)
    ]


def page_name(page: Path) -> str:
    """Name a page in the list of tests."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def expanded(words: list[str]) -> list[str]:
    """Do what a shell does with patterns of file names."""
    return [argument for word in words for argument in (sorted(glob(word)) if has_magic(word) else [word])]  # noqa: PTH207
