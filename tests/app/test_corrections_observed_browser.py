"""Labeling from scratch in a real browser: what is played or stepped through counts as observed, what is skipped does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from ethobench import create_model, load_dataset
from ethobench.core.errors import ReadWarning
from tests.app.browsing import begin_correction, go_to, in_browser, keys, saved, settle
from tests.app.conftest import SERVE
from tests.video_files import write_video

pytestmark = in_browser

N, RATE = 200, 10
SCRATCH = "nothing (label from scratch)"
BOUT = slice(50, 100)


@pytest.fixture
def film(tmp_path):
    """Two recordings of 20 s: a video and a tag that shakes for 5 s; a video alone."""
    root = tmp_path / "film"
    root.mkdir()
    write_video(root / "m1.webm", N, RATE)
    shaking = np.full(N, 0.1)
    shaking[BOUT] = 3
    rows = "\n".join(f"{i / RATE},{shaking[i] * np.sin(i):.4f},{shaking[i] * np.cos(i):.4f},{i % 7}" for i in range(N))
    (root / "m1.csv").write_text(f"time,AccX,AccY,AccZ\n{rows}\n", encoding="utf-8")
    (root / "ethogram.csv").write_text("behavior,key\ngroom,g\nrun,r\n", encoding="utf-8")
    (root / "recordings.csv").write_text(
        f"recording,individual,rate,signals,video\nm1,mouse1,{RATE},m1.csv,m1.webm\nm2,mouse2,,,m1.webm\n", encoding="utf-8"
    )
    return root


def observed(root, recording: str = "m1") -> list[list[int]]:
    where = load_dataset(root)[recording].annotation("zoe").observed.frames
    return np.stack(where, axis=1).tolist()


def reported(page, text: str) -> None:
    """Wait until the page tells this share of observed frames."""
    page.wait_for_function("(text) => document.querySelector('output.observed').textContent === text", arg=text)
    settle(page)


def band(page, share: float) -> bool:
    """Whether the band of observed frames is drawn at a share of the timeline's width, confirmed by the server."""
    return page.evaluate(
        """(share) => {
            const timeline = document.querySelector("eb-timeline");
            const canvas = timeline.querySelector("canvas.lanes");
            const { top, height } = timeline.lanes.find((lane) => lane.kind === "observed");
            const at = [share * canvas.width, (top + height / 2) * devicePixelRatio].map(Math.floor);
            const found = [...canvas.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
            const style = getComputedStyle(document.documentElement).getPropertyValue("--observed").trim();
            const color = [1, 3, 5].map((i) => parseInt(style.slice(i, i + 2), 16));
            return found.every((value, i) => value === color[i]);
        }""",
        share,
    )


def label_bout(page) -> None:
    go_to(page, BOUT.start)
    keys(page, "i")
    go_to(page, BOUT.stop - 1)
    keys(page, "o", "g")


def test_a_video_played_and_labeled_from_scratch_gives_true_budgets_and_negatives(film, serve, visit):
    page = visit(serve(film))
    begin_correction(page, "zoe", SCRATCH)
    assert page.text_content("output.observed") == "observed 0 %"
    page.wait_for_function("() => document.querySelector('video').readyState >= 2")
    keys(page, *["ArrowUp"] * 4, " ")
    page.wait_for_function(f"() => document.querySelector('output.frame').textContent.startsWith('frame {N - 1} ')")
    reported(page, "observed 100 %")
    assert band(page, 0.05)
    assert band(page, 0.95)
    label_bout(page)
    saved(page, 1)
    assert observed(film) == [[0, N]]
    command = [sys.executable, "-m", "ethobench", "budget", str(film), "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert {row["behavior"]: row["share"] for row in rows if row["annotator"] == "zoe"} == {"groom": 0.25, "run": 0.0}
    data = load_dataset(film).select(individual="mouse1")
    codes = create_model("rf", trees=5).fit(data).predict(data["m1"]).annotation.to_codes()
    assert (codes[BOUT] == 0).mean() > 0.8
    assert (codes == 2).mean() > 0.5, "frames without a behavior are training frames"


def test_jumps_skip_steps_count_and_signals_play_without_a_video(film, serve, visit):
    (film / "recordings.csv").write_text("recording,signals\nm1,m1.csv\n", encoding="utf-8")
    page = visit(serve(film))
    begin_correction(page, "zoe", SCRATCH)
    keys(page, "End", "Home", "Control+ArrowRight")
    label = page.locator(".label.observed .name")
    keys(page, "ArrowRight", "ArrowRight", "Shift+ArrowRight")
    reported(page, "observed 6 %")
    assert observed(film) == [[100, 113]]
    assert label.text_content() == "observed 6 %"
    assert (band(page, 50 / N), band(page, 106 / N), band(page, 150 / N)) == (False, True, False)
    axis = page.locator("canvas.axis").bounding_box()
    page.mouse.click(axis["x"] + axis["width"] * 0.9, axis["y"] + 5)
    keys(page, "ArrowLeft")
    reported(page, "observed 7 %")
    assert observed(film) == [[100, 113], [179, 181]]
    assert "7 % observed" in page.text_content("eb-recordings [aria-current]")
    keys(page, "Home", *["ArrowUp"] * 5, " ")
    reported(page, "observed 100 %")
    assert observed(film) == [[0, N]]


def test_marking_as_watched_is_undone_and_edits_are_undone_past_what_was_watched(film, serve, visit):
    page = visit(serve(film))
    begin_correction(page, "zoe", SCRATCH)
    keys(page, "i", "Shift+ArrowRight", "o", "g")
    saved(page, 1)
    keys(page, "Shift+ArrowRight", "Shift+ArrowRight")
    reported(page, "observed 15 %")
    keys(page, "Control+z")
    saved(page, 2)
    assert (len(load_dataset(film)["m1"].annotation("zoe")), observed(film)) == (0, [[0, 31]])
    page.locator(".watching button", has_text="all watched").click()
    reported(page, "observed 100 %")
    keys(page, "Control+z")
    reported(page, "observed 15 %")
    keys(page, "Shift+W")
    reported(page, "observed 0 %")
    assert observed(film) == []
    keys(page, "Control+z", "i", "Shift+ArrowRight", "o", "w")
    reported(page, "observed 20 %")
    keys(page, "?")
    assert "as watched; with Shift as not watched" in page.text_content("dialog")


def test_watching_counts_for_the_subject_that_is_chosen(film, serve, visit):
    header = json.dumps({"id": "m1", "annotator": "anna", "n_frames": N, "subjects": ["ann", "bob"]})
    (film / "anna.csv").write_text(
        f"# ethobench bouts 1\n# unit: frames\n# rate: {RATE}\n# recording: {header}\n"
        "recording,behavior,start,stop,subject,target,annotator\nm1,groom,0,10,ann,,anna\nm1,groom,5,10,bob,,anna\n",
        encoding="utf-8",
    )
    (film / "recordings.csv").write_text("recording,video,annotations,annotator\nm1,m1.webm,anna.csv,anna\n", encoding="utf-8")
    page = visit(serve(film))
    begin_correction(page, "zoe", SCRATCH)
    page.select_option("eb-behaviors select >> nth=0", "bob")
    page.locator("canvas.lanes").focus()
    keys(page, *["Shift+ArrowRight"] * 3)
    reported(page, "observed 15 %")
    page.select_option("eb-behaviors select >> nth=0", "ann")
    reported(page, "observed 0 %")
    zoe = load_dataset(film)["m1"].annotation("zoe").observed
    assert (zoe.of("groom", "bob").stop.tolist(), zoe.of("groom", "ann").stop.tolist()) == ([31], [])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_what_was_watched_survives_a_reload_and_a_killed_server(film, visit, tmp_path):
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", SERVE, str(film)], stdout=subprocess.PIPE, text=True, cwd=tmp_path)

    with start() as first:
        page = visit(first.stdout.readline().strip())
        page.click("eb-recordings li:nth-child(2) button")
        settle(page)
        begin_correction(page, "zoe", SCRATCH)
        keys(page, *["Shift+ArrowRight"] * 4)
        page.reload()  # at once: what was not reported yet is reported on leaving
        page.wait_for_selector("eb-recordings [aria-current]")
        settle(page)
        assert observed(film, "m2") == [[0, 41]]
        keys(page, "e")
        page.click("dialog .resume button")
        keys(page, *["Shift+ArrowRight"] * 10)
        reported(page, "observed 50 %")
        page.goto("about:blank")
        os.kill(first.pid, signal.SIGKILL)
    with start() as second:
        page = visit(f"{second.stdout.readline().strip()}#1")
        keys(page, "e")
        page.click("dialog .resume button")
        reported(page, "observed 50 %")
        assert (band(page, 0.1), band(page, 0.45), band(page, 0.55)) == (True, True, False)
        page.goto("about:blank")
        second.terminate()
    assert observed(film, "m2") == [[0, 101]]


def test_a_video_of_unknown_length_takes_no_edit_and_one_that_cannot_be_shown_is_not_watched(tmp_path, serve, visit):
    """MPEG-4 part 2 has a clock that PyAV reads, but browsers do not play it."""
    (tmp_path / "m1.mp4").write_bytes(b"not a video")
    write_video(tmp_path / "m2.avi", 60, RATE, codec="mpeg4")
    (tmp_path / "ethogram.csv").write_text("behavior\ngroom\n", encoding="utf-8")
    (tmp_path / "recordings.csv").write_text("recording,video\nm1,m1.mp4\nm2,m2.avi\n", encoding="utf-8")
    page = visit(serve(tmp_path))
    assert "frame rate and length are unknown" in page.text_content("eb-stage .note")
    assert "unknown length" in page.text_content("eb-recordings [aria-current]")
    keys(page, "e", " ", "ArrowRight", "w")
    assert page.locator("dialog").count() == 0
    assert page.locator("#correct").is_disabled()
    assert not (tmp_path / "corrections").exists()
    keys(page, "m")
    page.wait_for_function("() => document.querySelector('#message').textContent.includes('cannot play this video')")
    begin_correction(page, "zoe", SCRATCH)
    keys(page, *["Shift+ArrowRight"] * 3, "i", "Shift+ArrowRight", "o", "1")
    saved(page, 1)
    with pytest.warns(ReadWarning, match="frame rate and length of the video are unknown"):
        assert observed(tmp_path, "m2") == [[30, 41]]
