"""Accessibility of a page in a real browser, checked by axe-core."""

from __future__ import annotations

from typing import Any

import pytest

SERIOUS = ("serious", "critical")


def violations(page: Any) -> list[str]:
    """Return the serious and critical violations of a page as it is now: rule, elements, and what to do."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed: pip install axe-playwright-python"
    )
    results = axe.Axe().run(page).response["violations"]
    return [
        f"{violation['id']} ({violation['impact']}): {node['target']} {node['failureSummary']}"
        for violation in results
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]
