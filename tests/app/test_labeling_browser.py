"""Labeling from nothing in a real browser: by keys only, from the ethogram to a file for BORIS."""

from __future__ import annotations

import errno

import pytest

from ethobench import load_dataset, read_recordings, write_recordings
from ethobench.datasets.synthetic import make_dataset
from tests.app.browsing import at_frame, begin_correction, in_browser, keys, saved, settle
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
    at_frame(page, target)


def bouts(annotation):
    names = annotation.names(annotation.subject), annotation.names(annotation.target)
    rows = zip(annotation.start.tolist(), annotation.stop.tolist(), annotation.behavior.tolist(), *names, strict=True)
    return [(start, stop, annotation.ethogram[code].name, who, whom) for start, stop, code, who, whom in rows]


def test_a_video_is_labeled_from_nothing_by_keys_only(video, tmp_path, serve, visit):
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
    page.wait_for_function("() => document.querySelector('#message').textContent.includes('target')")
    assert bouts(read_recordings(tmp_path / "out.boris", warn=False)[0].annotation()) == without_targets
    assert not (tmp_path / "ethogram.csv").exists()
    assert (tmp_path / "corrections" / "arena" / "ethogram.csv").is_file()


def test_the_teacher_is_trained_after_ten_bouts_and_five_suggestions_are_reviewed(tmp_path, serve, visit):
    data = make_dataset("pose", individuals=2, seconds=40, folds=2)
    for recording in data:
        write_recordings([recording], tmp_path / "poses" / f"{recording.id}.csv", "deeplabcut")
    address = serve(tmp_path / "poses", rate=data.recordings[0].rate)
    page = visit(address)
    type_ethogram(page)
    page.wait_for_selector("dialog input[name=annotator]")
    page.keyboard.type("zoe")
    keys(page, "Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    for i in range(10):
        keys(page, "Home", *["Shift+ArrowRight"] * (2 * i), "i", "Shift+ArrowRight", "o", "gr"[i % 2])
        saved(page, i + 1)
    keys(page, "Escape", "t")
    page.wait_for_function("() => document.querySelector('eb-teacher').textContent.includes('Train again')")
    page.wait_for_function("() => document.querySelector('eb-timeline').lanes.some((lane) => lane.track?.name === 'teacher')")
    settle(page)
    decisions = ["Enter", "Delete", "Enter", "g", "q"]
    keys(page, "q")
    for key in decisions:
        page.wait_for_selector(".review:not([hidden]) strong")
        before = page.text_content(".review")
        keys(page, key)
        page.wait_for_function("(before) => document.querySelector('.review').textContent !== before", arg=before)
        settle(page)
    (origins,) = [path for path in (tmp_path / "corrections").rglob("*") if "origin" in path.name]
    recorded = origins.read_text(encoding="utf-8")
    assert recorded.count("accepted") + recorded.count("adjusted") == 3
    assert recorded.count("rejected") == 1


def test_an_edit_on_a_full_disk_stays_in_the_page_and_is_saved_later(video, tmp_path, serve, visit, monkeypatch):
    page = visit(serve(video), allow=("500 (Internal Server Error)",))
    type_ethogram(page)
    page.wait_for_selector("dialog input[name=annotator]")
    page.keyboard.type("zoe")
    keys(page, "Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("ethobench.app.corrections.write_recordings", fail)
        keys(page, "Home", "i", "Shift+ArrowRight", "o", "g")
        page.wait_for_selector("#retry:not([hidden])")
        assert "No space left on device" in page.text_content("#message")
        keys(page, "i", "Shift+ArrowRight", "o", "r")
        page.wait_for_function(
            "() => document.querySelector('eb-timeline') && document.querySelector('#saved').textContent.includes('2 edits')"
        )
    page.click("#retry")
    saved(page, 2)
    file = tmp_path / "corrections" / "arena" / "arena.zoe.csv"
    assert [bout[:3] for bout in bouts(read_recordings(file)[0].annotation("zoe"))] == [(0, 30, "groom"), (30, 61, "走る")]


def test_behaviors_are_renamed_and_deleted_in_the_page(lab, serve, visit):
    page = visit(serve(lab))
    begin_correction(page, "zoe", "nothing (label from scratch)")
    keys(page, "b")
    page.locator("dialog button", has_text="Add behavior").click()
    page.keyboard.type("dig")
    keys(page, "Control+Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    keys(page, "Home", "i", "Shift+ArrowRight", "o")
    page.locator(".chip", has_text="dig").click()
    page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')")
    settle(page)
    assert load_dataset(lab)["m1"].annotation("zoe").tracks() == [("dig", None, None)]
    keys(page, "b")
    page.locator("dialog input.name").last.fill("burrow")
    keys(page, "Control+Enter")
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    assert page.locator(".chip", has_text="burrow").count() == 1
    assert load_dataset(lab)["m1"].annotation("zoe").tracks() == [("burrow", None, None)]
    keys(page, "b")
    page.get_by_label("Delete burrow").click()
    keys(page, "Control+Enter")
    assert "1 bout of “burrow”" in page.text_content("dialog[aria-label='Delete labels?']")
    page.locator("button.danger").click()
    page.wait_for_selector("dialog", state="detached")
    settle(page)
    assert len(load_dataset(lab)["m1"].annotation("zoe")) == 0
