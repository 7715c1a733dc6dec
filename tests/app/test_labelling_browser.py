"""Labelling from nothing in a real browser: by keys only, from the ethogram to a file for BORIS."""

from __future__ import annotations

import pytest

from ethobench import read_recordings
from tests.app.browsing import in_browser, keys, saved, settle
from tests.video_files import write_video

pytestmark = in_browser


@pytest.fixture
def video(tmp_path):
    path = tmp_path / "arena.webm"
    write_video(path, 300, 30)
    return path


def type_ethogram(page):
    page.wait_for_selector("dialog input.name")
    for i, (name, key) in enumerate((("groom", "g"), ("走る", "r"), ("bite", "b"))):
        page.keyboard.type(name)
        keys(page, "Tab")
        page.keyboard.type(key)
        if i < 2:
            keys(page, "Enter")
    keys(page, "Tab", "ArrowDown")  # the type of the last one: point
    keys(page, "Control+Enter")


def frame(page, target):
    """Step to a frame from the beginning, at 30 frames per second."""
    keys(page, "Home", *["Shift+ArrowRight"] * (target // 30), *["ArrowRight"] * (target % 30))
    assert f"frame {target} of" in page.text_content("output.frame")


def bouts(annotation):
    names = annotation.names(annotation.subject), annotation.names(annotation.target)
    rows = zip(annotation.start.tolist(), annotation.stop.tolist(), annotation.behavior.tolist(), *names, strict=True)
    return [(start, stop, annotation.ethogram[code].name, who, whom) for start, stop, code, who, whom in rows]


def test_a_video_is_labelled_from_nothing_by_keys_only(video, tmp_path, serve, visit):
    page = visit(serve(video))
    type_ethogram(page)
    page.wait_for_selector("dialog input[name=annotator]")
    page.keyboard.type("zoe")
    keys(page, "Tab")
    page.keyboard.type("ann, bob")
    keys(page, "Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    frame(page, 30)
    keys(page, "g")
    frame(page, 60)
    keys(page, "g")
    saved(page, 1)
    keys(page, "Shift+Digit2")
    frame(page, 45)
    keys(page, "r", "r")
    saved(page, 2)
    keys(page, "Alt+r")  # the next target; without Alt, r marks a behavior
    frame(page, 90)
    keys(page, "i")
    frame(page, 119)
    keys(page, "o", "r")
    saved(page, 3)
    keys(page, "b")
    saved(page, 4)
    expected = [(30, 60, "groom", "ann", None), (45, 46, "走る", "bob", None), (90, 120, "走る", "bob", "ann")]
    expected.append((119, 119, "bite", "bob", "ann"))
    file = tmp_path / "corrections" / "arena" / "arena.zoe.csv"
    assert bouts(read_recordings(file)[0].annotation("zoe")) == expected
    page.reload()
    page.wait_for_selector("eb-recordings [aria-current]")
    settle(page)
    lanes = page.evaluate("() => document.querySelector('eb-timeline').lanes.filter((l) => l.track).map((l) => l.sublabel)")
    assert lanes == ["ann", "bob"]
    keys(page, "x")
    page.select_option("dialog select[name=format]", "boris")
    with page.expect_download() as download:
        page.locator("dialog button.primary").press("Enter")
    download.value.save_as(tmp_path / "out.boris")
    without_targets = [(*bout[:4], None) for bout in expected]  # which BORIS cannot store, as the page says
    assert "target" in page.text_content("#message")
    assert bouts(read_recordings(tmp_path / "out.boris", warn=False)[0].annotation()) == without_targets
    assert not (tmp_path / "ethogram.csv").exists()
    assert (tmp_path / "corrections" / "arena" / "ethogram.csv").is_file()
