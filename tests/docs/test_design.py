"""The page on the design names modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_of_the_table_exists():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.partition("## Where is what")[2].partition("## Decisions")[0]
    modules = re.findall(r"`([a-z_/0-9]+\.py)`", table)
    assert len(modules) > 60
    package = ROOT / "src" / "ethobench"
    assert [name for name in modules if not (package / name).exists() and not any(package.rglob(name))] == []
