"""Videos in a real browser: clips from the page, conversion, variable frame rates, cameras, settings."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, write_annotation
from tests.app.browsing import in_browser, keys, settle
from tests.video_files import decode, picture_number, write_numbered_video

pytestmark = in_browser

N, RATE = 60, 10
COLUMNS = "recording,rate,signals,video,video_offset,annotations,annotator"
HEADER = "scorer,x,x,x,x,x,x\nbodyparts,nose,nose,nose,tail,tail,tail\ncoords,x,y,likelihood,x,y,likelihood\n"
GRAY = """(number) => {
    const video = document.querySelectorAll("eb-stage video")[number];
    const canvas = new OffscreenCanvas(8, 8);
    const context = canvas.getContext("2d");
    context.drawImage(video, 0, 0, 8, 8);
    return [...context.getImageData(4, 4, 1, 1).data][0];
}"""


@pytest.fixture
def study(tmp_path):
    """Return a function that writes a study with videos, and poses if wanted."""

    def write(videos: dict, poses: int = 0, offsets: str = ""):
        root = tmp_path / "study"
        root.mkdir()
        for name, (times, codec) in videos.items():
            write_numbered_video(root / name, times, codec)
        labels = Annotation.from_bouts([10, 30], [20, 33], ["rear", "groom"], ["rear", "groom"], RATE, N)
        write_annotation(labels, root / "m1.csv", "tidy")
        if poses:
            rows = "\n".join(f"{i},{i},5,1,{i},20,1" for i in range(poses))
            (root / "poses.csv").write_text(f"{HEADER}{rows}\n", encoding="utf-8")
        cells = f"m1,{RATE},{'poses.csv' if poses else ''},{';'.join(videos)},{offsets},m1.csv,anna"
        (root / "recordings.csv").write_text(
            f"recording,rate,signals,video,video_offset,annotations,annotator\n{cells}\n", encoding="utf-8"
        )
        return root

    return write


def shown_picture(page, near: int, camera: int = 0) -> int:
    """Return the number of the picture that a video element shows."""
    page.wait_for_function(
        "(n) => { const v = document.querySelectorAll('eb-stage video')[n]; return v && v.readyState >= 2 && !v.seeking; }", arg=camera
    )
    page.wait_for_timeout(80)
    return picture_number(page.evaluate(GRAY, camera), near)


def test_a_clip_is_exported_from_the_page_and_decoded(study, serve, visit, tmp_path):
    page = visit(serve(study({"m1.mp4": (np.arange(N) / RATE, "libx264")})), accept_downloads=True)
    keys(page, "Home", *["Shift+ArrowRight"] * 3, "Enter")
    settle(page)
    keys(page, "x")
    page.click("dialog button[name=clips]")
    page.fill("dialog input[name=margin]", "0.5")
    with page.expect_download() as caught:
        page.click("dialog .primary")
    caught.value.save_as(tmp_path / "clip.mp4")
    assert caught.value.suggested_filename == "m1.30.mp4"
    assert len(decode(tmp_path / "clip.mp4")) == 13
    page.wait_for_selector("dialog", state="detached")
    keys(page, "x")
    page.click("dialog button[name=clips]")
    page.select_option("dialog select[name=what]", "svg")
    with page.expect_download() as caught:
        page.click("dialog .primary")
    caught.value.save_as(tmp_path / "timeline.svg")
    assert "<svg" in (tmp_path / "timeline.svg").read_text(encoding="utf-8")


def test_a_codec_that_the_browser_cannot_play_is_converted(study, serve, visit):
    page = visit(serve(study({"m1.avi": (np.arange(N) / 30, "mpeg4")}, poses=N)))
    page.wait_for_selector("eb-stage .unplayable button")
    assert "mpeg4" in page.text_content("eb-stage .unplayable")
    page.click("eb-stage .unplayable button")
    page.wait_for_selector("eb-stage video")
    page.wait_for_function("() => document.querySelector('eb-stage video').videoWidth === 64")
    keys(page, "Home", *["ArrowRight"] * 7)
    assert shown_picture(page, 7) == 7
    page.reload()
    page.wait_for_function("() => document.querySelector('eb-stage video')?.videoWidth === 64")


def test_each_frame_shows_its_picture_although_the_frame_rate_varies(study, serve, visit):
    times = np.round(np.concatenate((np.arange(20) / 25, 1.1 + np.arange(40) / 10)), 3)
    page = visit(serve(study({"m1.mp4": (times, "libx264")}, poses=N)))
    settle(page)
    keys(page, "Home", *["Shift+ArrowRight"] * 3)
    assert shown_picture(page, 30) == 30
    keys(page, *["ArrowLeft"] * 12)
    assert shown_picture(page, 18) == 18


def test_cameras_are_in_sync_and_settings_are_remembered(study, serve, visit):
    page = visit(serve(study({"a.mp4": (np.arange(N) / RATE, "libx264"), "b.mp4": (np.arange(N) / RATE, "libx264")}, offsets="0;-1")))
    settle(page)
    keys(page, "Home", *["Shift+ArrowRight"] * 3)
    assert shown_picture(page, 30) == 30
    assert shown_picture(page, 20, camera=1) == 20, "it was started one second later"
    keys(page, "Home")
    page.wait_for_function("() => document.querySelectorAll('eb-stage video')[1].classList.contains('outside')")
    page.click(".video-settings summary")
    page.locator(".video-settings input[name=brightness]").fill("150")
    assert "brightness(150%)" in page.locator("eb-stage video").first.evaluate("(video) => video.style.filter")
    page.reload()
    page.wait_for_selector("eb-stage video")
    assert "brightness(150%)" in page.locator("eb-stage video").first.evaluate("(video) => video.style.filter")
    page.wait_for_function("() => document.querySelector('eb-timeline').lanes.some((lane) => lane.id === 'motion')")
    for _ in range(12):
        keys(page, "ArrowUp")
    assert page.input_value("select.speed") == "16", "no browser plays a video faster"
    for _ in range(12):
        keys(page, "ArrowDown")
    assert page.input_value("select.speed") == "0.1"


def test_a_video_shorter_than_its_poses_plays_on_with_the_poses(study, serve, visit):
    page = visit(serve(study({"m1.mp4": (np.arange(20) / RATE, "libx264")}, poses=N)))
    settle(page)
    keys(page, "Home", *["Shift+ArrowRight"] * 5)
    page.wait_for_function("() => document.querySelector('eb-stage video').classList.contains('outside')")
    keys(page, "Home", "ArrowUp", "ArrowUp", "ArrowUp", " ")
    page.wait_for_function(f"() => document.querySelector('output.frame').textContent.startsWith('frame {N - 1} of')")
