"""The viewer in a real browser, served by a real process."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, load_dataset, read_recordings, write_annotation
from tests.app.browsing import RATE, N, begin_correction, behavior_color, go_to, in_browser, keys, lane_colors, saved, settle

pytestmark = in_browser


def test_the_raster_is_drawn_and_zooms(lab, serve, visit):
    page = visit(serve(lab))
    rest, run = behavior_color(page, "rest"), behavior_color(page, "run")
    assert lane_colors(page, 1, 25 / N) == rest
    assert lane_colors(page, 1, 75 / N) == run
    assert lane_colors(page, 2, 52 / N) == rest, "the second annotator is five frames late"
    assert lane_colors(page, 1, 52 / N) == run
    ground = lane_colors(page, 1, 175 / N)
    assert ground not in (rest, run), "the background is the lane's own ground"
    assert lane_colors(page, 0, 2 / N) != ground, "they disagree at the beginning"
    keys(page, "+", "+", "+")
    settle(page)
    assert lane_colors(page, 1, 0.9) == run, "an eighth of the recording: frames 0 to 75"
    box = page.locator("canvas.lanes").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    page.mouse.wheel(0, 2000)
    page.mouse.wheel(0, 2000)
    page.mouse.wheel(0, 2000)
    page.mouse.wheel(0, 2000)
    settle(page)
    assert lane_colors(page, 1, 75 / N) == run, "zoomed out, the complete recording is visible"
    page.mouse.down()
    page.mouse.up()
    keys(page, "+", "+")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 30)
    page.mouse.up()
    settle(page)
    assert page.evaluate("() => document.querySelector('output.frame').textContent") == f"frame {N // 2} of {N}"


def test_disagreements_and_suggestions_are_found(lab, serve, visit):
    page = visit(serve(lab))
    keys(page, "d")
    page.wait_for_function("() => document.querySelector('output.frame').textContent.startsWith('frame 50 ')")
    keys(page, "d")
    page.wait_for_function("() => document.querySelector('output.frame').textContent.startsWith('frame 100 ')")
    keys(page, "Shift+D")
    page.wait_for_function("() => document.querySelector('output.frame').textContent.startsWith('frame 50 ')")
    keys(page, "n")
    page.wait_for_selector("eb-panel .next .viewed")
    page.select_option("eb-recordings select", "most disagreement")
    assert page.locator("eb-recordings li").first.text_content().startswith("m1")
    page.fill("eb-recordings input", "mouse2")
    assert page.locator("eb-recordings li").count() == 1
    keys(page, "Enter")
    page.wait_for_function("() => document.querySelector('eb-recordings [aria-current]')?.textContent.startsWith('m2')")


def test_export(lab, serve, visit, tmp_path):
    page = visit(serve(lab), accept_downloads=True)
    page.click("#export")
    page.select_option("dialog select[name=track]", "ben")
    page.select_option("dialog select[name=format]", "boris")
    with page.expect_download() as caught:
        page.keyboard.press("Tab")
        page.click("dialog .primary")
    assert caught.value.suggested_filename == "m1.ben.boris"
    caught.value.save_as(tmp_path / "m1.boris")
    annotation = read_recordings(tmp_path / "m1.boris", rate=RATE)[0].annotation()
    ben = load_dataset(lab)["m1"].annotation("ben")
    assert (annotation.to_frames() == ben.with_ethogram(annotation.ethogram).to_frames()).all()


HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "../../etc/passwd")


def test_the_visible_part_of_the_timeline_is_downloaded_as_svg(lab, serve, visit, tmp_path):
    page = visit(serve(lab))
    files = []
    for name in ("all.svg", "part.svg"):
        with page.expect_download() as download:
            page.click("eb-timeline button:text-is('Download SVG')")
        download.value.save_as(tmp_path / name)
        files.append((tmp_path / name).read_text(encoding="utf-8"))
        keys(page, "+", "+")
    assert all("<svg" in text and "anna" in text for text in files)
    assert files[0] != files[1]


def test_hostile_names_are_shown_as_text_and_never_become_paths(tmp_path, serve, visit):
    root = tmp_path / "lab"
    root.mkdir()
    ethogram = Ethogram([HOSTILE[0], HOSTILE[1], "other"], "other")
    annotation = Annotation.from_frames(np.arange(N) // 50 % 3, ethogram, RATE)
    write_annotation(annotation, root / "a.csv", "tidy")
    rows = "\n".join(f'"{name.replace(chr(34), chr(34) * 2)}",{i},{RATE},a.csv,"{HOSTILE[0]}"' for i, name in enumerate(HOSTILE))
    (root / "recordings.csv").write_text(f"recording,individual,rate,annotations,annotator\n{rows}\n", encoding="utf-8")
    text = (root / "a.csv").read_text(encoding="utf-8")
    before = {*tmp_path.iterdir()}
    page = visit(serve(root))
    for index, name in enumerate(HOSTILE):
        page.locator("eb-recordings li button").nth(index).click()
        settle(page)
        assert page.locator("eb-recordings .id").nth(index).text_content() == name
    begin_correction(page, '"><img src=x onerror=alert(3)>')
    go_to(page, 10)
    keys(page, "i")
    go_to(page, 20)
    keys(page, "o", "2")
    saved(page, 1)
    for title in ("Export", "Keys"):
        keys(page, "x" if title == "Export" else "?")
        page.wait_for_selector("dialog")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # main.js and first_requests.js
    assert sorted(p.name for p in (root / "corrections").iterdir()) == ["etc_passwd.img_src_x_onerror_alert_3.csv", "recordings.csv"]
    assert {*tmp_path.iterdir()} == before
    assert (root / "a.csv").read_text(encoding="utf-8") == text
    assert load_dataset(root)[HOSTILE[2]].annotation('"><img src=x onerror=alert(3)>').to_codes()[15] == 1


def test_a_video_plays_in_step(lab, serve, visit):
    av = pytest.importorskip("av", reason="making a video needs av")
    with av.open(str(lab / "m1.webm"), "w") as container:
        stream = container.add_stream("libvpx", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for i in range(60):
            for packet in stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), i * 4, np.uint8), format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    manifest = lab / "recordings.csv"
    rows = manifest.read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([f"{rows[0]},video", f"{rows[1]},m1.webm"]) + "\n", encoding="utf-8")
    page = visit(serve(lab))
    page.wait_for_function("() => document.querySelector('video').readyState >= 2")
    go_to(page, 31)
    page.wait_for_function("() => !document.querySelector('video').seeking")
    assert page.evaluate("() => document.querySelector('video').currentTime") == pytest.approx(3.15, abs=0.01)
    keys(page, " ")
    page.wait_for_function("() => Number(document.querySelector('output.frame').textContent.split(' ')[1]) > 36")
    keys(page, " ")
    page.wait_for_function("() => !document.querySelector('video').seeking")
    frame = int(page.text_content("output.frame").split()[1])
    assert int(page.evaluate("() => document.querySelector('video').currentTime") * RATE) == frame


def test_poses_are_animated(serve, visit):
    page = visit(serve("synthetic/pose"))
    look = "() => document.querySelector('eb-stage canvas').toDataURL()"
    first = page.evaluate(look)
    keys(page, "Control+ArrowRight")
    settle(page)
    second = page.evaluate(look)
    assert first != second
    keys(page, "Home")
    settle(page)
    assert page.evaluate(look) == first


def test_dark_and_light_and_keys(lab, serve, visit):
    page = visit(serve(lab), color_scheme="dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    in_dark = lane_colors(page, 1, 75 / N)
    assert in_dark == behavior_color(page, "run")
    page.click("#theme")
    settle(page)
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != dark
    assert lane_colors(page, 1, 75 / N) == behavior_color(page, "run") != in_dark
    keys(page, "?")
    assert "next disagreement" in page.text_content("dialog")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def test_a_million_frames_are_drawn_from_small_tiles(tmp_path, serve, visit):
    n = 1_000_000
    codes = np.repeat(np.random.default_rng(0).integers(0, 4, n // 50), 50)
    codes[:100] = 1
    ethogram = Ethogram(["rest", "run", "groom", "other"], "other")
    for who, shift in (("anna", 0), ("ben", 7)):
        write_annotation(Annotation.from_frames(np.roll(codes, shift), ethogram, 25), tmp_path / f"{who}.csv", "tidy")
    page = visit(serve(tmp_path / "anna.csv", tmp_path / "ben.csv"))
    sizes: list[int] = []
    page.on("response", lambda r: sizes.append(int(r.headers.get("content-length", 0))) if "/tiles" in r.url else None)
    colors = {lane_colors(page, 1, share) for share in np.linspace(0.01, 0.99, 60)}
    assert {behavior_color(page, name) for name in ("rest", "run", "groom")} & colors, "columns are stacked from their shares"
    keys(page, *["+"] * 14)
    settle(page)
    assert lane_colors(page, 1, 0.5) == behavior_color(page, "run"), "61 frames are visible"
    assert max(sizes) < 60_000
    keys(page, "e")
    page.fill("dialog input[name=annotator]", "zoe")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    keys(page, "i", "Shift+ArrowRight", "o", "1")
    saved(page, 1)
    annotation = read_recordings(tmp_path / "corrections" / tmp_path.name / "anna.zoe.csv")[0].annotation("zoe")
    assert annotation.to_codes()[:26].tolist() == [0] * 26


def test_the_report_uses_the_same_colours():
    static = resources.files("ethobench")
    report = static / "reports" / "static" / "report.css"
    if not report.is_file():
        pytest.skip("there is no report yet")
    palette = (static / "app" / "static" / "palette.js").read_text(encoding="utf-8")
    pairs = re.findall(r"--behavior-\d+: light-dark\((#\w+), (#\w+)\)", report.read_text(encoding="utf-8"))
    for theme, expected in zip(("light", "dark"), zip(*pairs, strict=True), strict=True):
        listed = re.search(rf"{theme}: \[([^\]]*)\]", palette)
        assert listed is not None
        assert tuple(re.findall(r"#\w+", listed.group(1))) == expected


def test_the_page_preloads_every_module():
    folder = Path(str(resources.files("ethobench.app") / "static"))
    page = (folder / "viewer.html").read_text(encoding="utf-8")
    assert {*re.findall(r"static/(\w+\.js)", page)} == {path.name for path in folder.glob("*.js")}
