"""Blind mode in a real browser: nothing of others reaches the page, and an annotator continues by entering the name."""

from __future__ import annotations

import pytest

from ethobench import load_dataset
from tests.app.browsing import begin_correction, in_browser, keys, saved, settle

pytestmark = in_browser


@pytest.fixture
def received():
    """Collect the text of all answers of the server that a page receives."""

    def collect(page):
        texts = []
        page.on("response", lambda r: texts.append(r) if "/api/" in r.url and "signals" not in r.url else None)
        return lambda: "\n".join(r.text() for r in texts)

    return collect


def test_a_page_becomes_blind_and_gets_nothing_of_others(lab, serve, visit, received):
    page = visit(serve(lab))
    begin_correction(page, "zoe", "nothing (label from scratch)")
    keys(page, "Home", "i", "Shift+ArrowRight", "o", "1")
    saved(page, 1)
    keys(page, "v")
    settle(page)
    texts = received(page)
    page.reload()
    page.wait_for_selector("eb-recordings [aria-current]")
    settle(page)
    keys(page, "e")
    page.locator("dialog button", has_text="Continue as zoe").click()
    keys(page, "Home", "Control+ArrowRight", "i", "Shift+ArrowRight", "o", "2")
    saved(page, 2)
    names = page.evaluate("() => document.querySelector('eb-timeline').lanes.filter((l) => l.track).map((l) => l.track.name)")
    assert set(names) == {"zoe"}
    assert "zoe" in texts()
    assert not any(f'"{name}"' in texts() for name in ("anna", "ben", "teacher"))
    keys(page, "v")
    page.wait_for_function("() => document.querySelector('eb-timeline').lanes.some((l) => l.track?.name === 'anna')")
    page.wait_for_selector("eb-teacher")
    settle(page)
    assert len(load_dataset(lab)["m1"].annotation("zoe")) == 2


def test_two_annotators_label_one_after_the_other_on_a_blind_server(lab, serve, visit, received):
    page = visit(serve(lab, blind=True))
    texts = received(page)
    for name, key in (("zoe", "1"), ("yän", "2"), ("zoe", "3")):
        begin_correction(page, name)
        keys(page, "Home", *["Control+ArrowRight"] * int(key), "i", "Shift+ArrowRight", "o", key)
        page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')")
        settle(page)
        keys(page, "Escape")
    data = load_dataset(lab)["m1"]
    assert [len(data.annotation(name)) for name in ("zoe", "yän")] == [2, 1]
    assert page.evaluate("() => document.querySelector('eb-timeline').lanes.filter((l) => l.track).map((l) => l.track.name)")[0] == "zoe"
    assert not any(f'"{name}"' in texts() for name in ("anna", "ben"))
