"""The page on phones and tablets: nothing overflows, and a recording is labeled by touch."""

from __future__ import annotations

import pytest

from ethobench import load_dataset
from tests.app.browsing import in_browser, settle

pytestmark = in_browser
OVERFLOW = """() => {
    const clips = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
    const scrolls = (element) => element && (clips(element) || scrolls(element.parentElement));
    const elements = [...document.querySelectorAll("button, input, select, canvas, h2, dialog")];
    const shown = elements.filter((element) => element.checkVisibility({ visibilityProperty: true }));
    const wide = shown.filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element.parentElement));
    return [document.documentElement.scrollWidth - innerWidth, wide.map((element) => element.outerHTML.slice(0, 80))];
}"""


def tap_start(page, name):
    page.tap("#correct")
    page.fill("dialog input[name=annotator]", name)
    page.select_option("dialog select[name=from]", label="nothing (label from scratch)")
    page.tap("dialog button.primary")
    page.wait_for_selector("dialog", state="detached")
    settle(page)


@pytest.mark.parametrize("size", [(390, 844), (820, 1180), (1024, 700)])
def test_nothing_overflows(lab, serve, visit, size):
    page = visit(serve(lab), has_touch=True)
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    tap_start(page, "zoe")
    assert page.evaluate(OVERFLOW) == [0, []]
    for button in ("#behaviors", "#export"):
        page.tap(button)
        page.wait_for_selector("dialog")
        assert page.evaluate(OVERFLOW) == [0, []]
        page.keyboard.press("Escape")
    page.tap("#details")
    page.wait_for_selector("eb-teacher")
    assert page.evaluate(OVERFLOW) == [0, []]
    page.touchscreen.tap(20, 300)
    page.wait_for_selector("eb-teacher", state="hidden")


def test_a_recording_is_labeled_by_touch(lab, serve, visit):
    page = visit(serve(lab), has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    page.tap("#list")
    page.tap("eb-recordings button:has-text('m2')")
    page.wait_for_selector("eb-recordings", state="hidden")
    settle(page)
    tap_start(page, "zoe")
    box = page.locator("canvas.axis").bounding_box()
    page.tap(".chip:has-text('run')")
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 5)
    page.tap(".chip:has-text('run')")
    page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')")
    settle(page)
    (annotation,) = [load_dataset(lab)["m2"].annotation("zoe")]
    assert annotation.tracks() == [("run", None, None)]
    assert annotation.start.tolist() == [0]
    assert abs(int(annotation.stop[0]) - 300) <= 5
