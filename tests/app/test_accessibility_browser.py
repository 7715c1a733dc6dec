"""The viewer without a mouse and without eyes: axe-core finds no serious violation, and the keyboard reaches everything."""

from __future__ import annotations

import pytest

from tests.accessibility import violations
from tests.app.browsing import begin_correction, in_browser, keys, settle
from tests.video_files import write_video

pytestmark = in_browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_of_the_page_is_accessible(lab, serve, visit, scheme):
    page = visit(serve(lab), color_scheme=scheme)
    assert violations(page) == []
    begin_correction(page, "zoe", "a copy of anna")
    keys(page, "Enter")
    page.wait_for_selector(".details")
    settle(page)
    assert violations(page) == []
    page.click("text=Compare")
    settle(page)
    assert violations(page) == []
    for key, title in (("b", "Behaviors"), ("x", "Export"), ("?", "Keys"), ("e", "Correct this recording")):
        keys(page, key)
        page.wait_for_selector(f"dialog[aria-label='{title}']")
        assert violations(page) == [], title
        keys(page, "Escape")
        page.wait_for_selector("dialog", state="detached")
    page.set_viewport_size({"width": 390, "height": 844})
    assert violations(page) == []
    page.click("#details")
    assert violations(page) == []


def test_the_first_steps_with_a_video_are_accessible(tmp_path, serve, visit):
    write_video(tmp_path / "arena.webm", 30, 30)
    page = visit(serve(tmp_path / "arena.webm"))
    page.wait_for_selector("dialog input.name")
    assert violations(page) == []
    page.keyboard.type("groom")
    keys(page, "Control+Enter")
    page.wait_for_selector("dialog input[name=annotator]")
    assert violations(page) == []
    keys(page, "Escape")
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_selector("#zones:enabled")  # once the size of the video is known
    keys(page, "z")
    page.wait_for_selector(".zone-tools")
    assert violations(page) == []


REACHED = """() => {
    const focused = document.activeElement;
    return focused === document.body ? "" : focused.id || focused.className || focused.name || focused.tagName;
}"""


def test_the_tab_key_reaches_every_control_and_leaves_it_again(lab, serve, visit):
    page = visit(serve(lab))
    begin_correction(page, "zoe", "a copy of anna")
    page.evaluate("() => document.activeElement.blur()")
    controls = "button:not(:disabled), input:not(:disabled), select:not(:disabled), summary, [tabindex='0']"
    shown = page.locator(controls).evaluate_all("(all) => all.filter((each) => each.checkVisibility({ visibilityProperty: true })).length")
    reached = []
    for _ in range(2 * shown):
        keys(page, "Tab")
        if not (name := page.evaluate(REACHED)) and reached:
            break
        reached.append(name)
    assert len([name for name in reached if name]) == shown
    assert {"correct", "behaviors", "export", "theme", "help", "chip", "lanes"} <= {*reached}
