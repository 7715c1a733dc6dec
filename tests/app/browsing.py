"""What the browser tests share: reading what is drawn, pressing keys, waiting until all is done."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
N, RATE = 600, 10
ASKED: dict[Any, tuple[list[str], list[str]]] = {}  # what each page asked for, and what has come of it

in_browser = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need chromium: apt-get install chromium")]


def settle(page: Any) -> None:
    """Wait until every request is answered and drawn. Time is that of the page, which may be slow on a busy machine."""
    requested, answered = ASKED[page]
    quiet = 0
    while quiet < 3:
        before = len(requested)
        page.evaluate("() => new Promise((done) => setTimeout(done, 60))")
        quiet = quiet + 1 if len(requested) == before == len(answered) else 0
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def lane_colors(page: Any, lane: int, share: float) -> tuple[int, int, int]:
    """Return the colour in the middle of a lane, at a share of the timeline's width."""
    result = page.evaluate(
        """([lane, share]) => {
            const timeline = document.querySelector("eb-timeline");
            const canvas = timeline.querySelector("canvas.lanes");
            const { top, height } = timeline.lanes[lane];
            const ratio = devicePixelRatio;
            const at = [Math.floor(share * canvas.width), Math.floor((top + height - 4) * ratio)];
            return [...canvas.getContext("2d").getImageData(...at, 1, 1).data];
        }""",
        [lane, share],
    )
    return tuple(result[:3])


def behavior_color(page: Any, name: str) -> tuple[int, int, int]:
    style = page.locator(".chip", has_text=name).locator(".dot").evaluate("(dot) => getComputedStyle(dot).backgroundColor")
    r, g, b = map(int, re.findall(r"\d+", style)[:3])
    return r, g, b


def begin_correction(page: Any, name: str, beginning: str | None = None) -> None:
    page.keyboard.press("e")
    page.fill("dialog input[name=annotator]", name)
    if beginning is not None and page.is_visible("dialog select[name=from]"):  # hidden if there is nothing to copy
        page.select_option("dialog select[name=from]", label=beginning)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')")
    settle(page)


def keys(page: Any, *pressed: str) -> None:
    for key in pressed:
        page.keyboard.press(key)


def go_to(page: Any, frame: int) -> None:
    """Step to a frame from the beginning, as a person would."""
    keys(
        page,
        "Home",
        *["Control+ArrowRight"] * (frame // (10 * RATE)),
        *["Shift+ArrowRight"] * (frame // RATE % 10),
        *["ArrowRight"] * (frame % RATE),
    )
    at_frame(page, frame)


def at_frame(page: Any, frame: int) -> None:
    """Wait until the playhead is at a frame; keys may still wait for a request."""
    page.wait_for_function("(text) => document.querySelector('output.frame').textContent.startsWith(text)", arg=f"frame {frame} of")


def saved(page: Any, revision: int) -> None:
    changed = "(wanted) => document.querySelector('eb-timeline').lanes.some((lane) => lane.track?.revision === wanted)"
    page.wait_for_function(changed, arg=revision)
    settle(page)
