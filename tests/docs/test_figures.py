"""Pages ask for figures that exist, and every figure is asked for; the test of the site draws them."""

from __future__ import annotations

import sys

from tests.docs.blocks import PAGES, ROOT

sys.path.insert(0, str(ROOT / "docs"))
import _figures


def test_pages_and_figures_belong_together():
    requested = {name for page in PAGES for name in _figures.requested(page.read_text(encoding="utf-8"))}
    assert requested == {*_figures.FIGURES}


def test_comments_become_images_with_a_description():
    text = _figures.with_figures("before\n\n<!-- figure: budget -->\n\nafter", depth=1)
    assert "![Shares of the time of each behavior, for six animals](../images/figures/budget.svg)" in text


def test_a_figure_is_the_same_when_it_is_drawn_again():
    first = _figures.drawn("fragments")
    assert first.startswith("<?xml")
    assert first == _figures.drawn("fragments")
