"""The page in a real browser: it draws, zooms, downloads, stays offline, and runs nothing that came from a file."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ethobench import Annotation, score
from ethobench.reports import summarize_scores, write_report
from tests.accessibility import violations
from tests.reports.conftest import ETHOGRAM, HOSTILE, make_scores

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
SVG = "{http://www.w3.org/2000/svg}"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Write a report and open it; anything odd that the browser tells is an error when the test ends."""
    contexts, events = [], []

    def open_report(report, path: Path | None = None, **options):
        path = path or tmp_path / f"report{len(contexts)}.html"
        write_report(path, report)
        context = browser.new_context(viewport={"width": 1300, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: events.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: events.append(f"error: {error}"))
        page.on("dialog", lambda dialog: events.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: events.append(f"request: {request.url}") if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.wait_for_selector(".time-axis svg")
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert [line for line in events if not line.startswith(("request: data:", "request: blob:"))] == []


def half_and_half():
    """Rest in the first half, run in the third quarter; the model sees the first quarter only."""
    truth = Annotation.from_frames([0] * 500 + [1] * 250 + [2] * 250, ETHOGRAM, 10)
    pred = Annotation.from_frames([0] * 250 + [2] * 750, ETHOGRAM, 10)
    return summarize_scores({"model": score(pred, truth)})


PIXEL = """([x, y]) => {
  const canvas = document.querySelector(".recording canvas");
  const copy = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, -Math.floor(canvas.width * x), -Math.floor(y * devicePixelRatio));
  return [...context.getImageData(0, 0, 1, 1).data];
}"""
COLOR = """(name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed.match(/[\\d.]+/g).map(Number);
}"""


def pixel(page, x: float, y: float) -> list[int]:
    return page.evaluate(PIXEL, [x, y])[:3]


def color(page, name: str) -> list[int]:
    return page.evaluate(COLOR, name)[:3]


def settle(page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown_seconds(page) -> tuple[float, float]:
    text = page.locator(".bar output").inner_text()
    ends = [re.fullmatch(r"(\d+):([\d.]+)", end.strip()) for end in text.split("–")]
    start, stop = (int(end[1]) * 60 + float(end[2]) for end in ends)
    return start, stop


def test_the_raster_draws_behaviors_where_they_are(opened):
    page = opened(half_and_half())
    truth, pred, errors = 8, 29, 41
    assert pixel(page, 0.2, truth) == color(page, "--behavior-0")
    assert pixel(page, 0.6, truth) == color(page, "--behavior-1")
    assert pixel(page, 0.9, truth) == color(page, "--lane")
    assert pixel(page, 0.2, pred) == color(page, "--behavior-0")
    assert pixel(page, 0.4, pred) == color(page, "--lane")
    assert pixel(page, 0.1, errors) == color(page, "--page")
    assert pixel(page, 0.4, errors) == color(page, "--part-0")  # not longer than the correct frames: a boundary error
    assert pixel(page, 0.6, errors) == color(page, "--part-3")  # missed


def test_zoom_and_pan_by_wheel_drag_keys_and_buttons(opened):
    page = opened(half_and_half())
    raster, axis = page.locator(".raster"), page.locator(".time-axis").bounding_box()
    assert shown_seconds(page) == (0, 100)
    page.mouse.move(axis["x"] + 0.6 * axis["width"], axis["y"] + 40)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(100)
    assert shown_seconds(page) == (0, 100), "a wheel that scrolls the page must not zoom"
    page.evaluate("scrollTo(0, 0)")
    page.locator(".raster").scroll_into_view_if_needed()
    axis = page.locator(".time-axis").bounding_box()
    page.mouse.click(axis["x"] + 0.6 * axis["width"], axis["y"] + 40)
    page.mouse.wheel(0, -700)
    page.wait_for_function("document.querySelector('.bar output').textContent !== '0:00 – 1:40'")
    start, stop = shown_seconds(page)
    assert stop - start == pytest.approx(100 * 2.71828 ** (-0.0015 * 700), abs=2)
    assert start + 0.6 * (stop - start) == pytest.approx(60, abs=2), "what is under the pointer stays there"
    assert pixel(page, 0.6, 8) == color(page, "--behavior-1")

    page.mouse.move(axis["x"] + 0.5 * axis["width"], axis["y"] + 40)
    page.mouse.down()
    page.mouse.move(axis["x"] + 0.9 * axis["width"], axis["y"] + 40, steps=4)
    page.mouse.up()
    settle(page)
    moved = shown_seconds(page)
    assert moved[0] == pytest.approx(start - 0.4 * (stop - start), abs=2)

    raster.focus()
    page.keyboard.press("0")
    settle(page)
    assert shown_seconds(page) == (0, 100)
    page.keyboard.press("+")
    settle(page)
    narrow = shown_seconds(page)
    assert narrow[1] - narrow[0] == pytest.approx(70, abs=2)
    page.keyboard.press("ArrowRight")
    settle(page)
    assert shown_seconds(page)[0] > narrow[0]
    page.keyboard.press("Home")
    page.get_by_label("Zoom in", exact=True).click()
    settle(page)
    assert shown_seconds(page)[1] < 60
    for _ in range(40):
        page.get_by_label("Zoom in", exact=True).click()
    settle(page)
    start, stop = shown_seconds(page)
    assert 0.4 <= stop - start <= 0.6, "there is an end to zooming in"
    page.get_by_label("Show everything").click()
    settle(page)
    assert shown_seconds(page) == (0, 100)


def test_tooltip_shows_the_behavior_in_every_lane(opened):
    page = opened(half_and_half())
    canvas = page.locator(".recording canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 8)
    lines = page.locator(".tooltip > div").all_inner_texts()
    assert lines[0].startswith("recording · 0:4")
    assert lines[1:] == ["truth: rest, 50.00 s", "model: no behavior", "error: boundary"]
    page.mouse.move(5, 5)
    assert page.locator(".tooltip").is_hidden()


def downloaded(page, figure: str) -> list[dict[str, str]]:
    page.wait_for_timeout(150)  # Chromium drops downloads beyond ten a second
    with page.expect_download() as caught:
        page.locator(f"#scores-{figure} button.csv").click()
    assert caught.value.suggested_filename == f"{figure}.csv"
    return list(csv.DictReader(io.StringIO(Path(caught.value.path()).read_text(encoding="utf-8"), newline="")))


def test_every_figure_downloads_the_rows_of_the_report(opened, scores):
    report = summarize_scores({"model": scores})
    page = opened(report)
    for figure in report["groups"][0]["figures"]:
        rows = downloaded(page, figure["id"])
        if figure["kind"] == "raster":
            continue
        assert list(rows[0]) == figure["columns"]
        expected = [["" if cell is None else cell for cell in row] for row in figure["rows"]]
        assert len(rows) == len(expected)
        for row, cells in zip(rows, expected, strict=True):
            for text, cell in zip(row.values(), cells, strict=True):
                assert text == cell if isinstance(cell, str) else float(text) == pytest.approx(cell, rel=1e-6)
    pair = scores.pairs[0]
    bouts = [row for row in downloaded(page, "ethograms") if row["recording"] == "rec0" and row["annotator"] == "truth"]
    spans = pair.truth.spans("run")
    assert [int(row["start_frame"]) for row in bouts if row["behavior"] == "run"] == spans.start.tolist()
    assert [float(row["stop_s"]) for row in bouts if row["behavior"] == "run"] == [stop / 10 for stop in spans.stop.tolist()]


def test_hostile_names_are_text_and_nothing_runs(opened, hostile_scores):
    first, second = HOSTILE[:2]
    report = summarize_scores({first: hostile_scores, "model": hostile_scores}, truth=second, title=HOSTILE[2])
    page = opened(report)
    assert page.title() == HOSTILE[2]
    assert page.locator("h1").inner_text() == HOSTILE[2]
    for name in HOSTILE:
        assert page.locator(".pivot th", has_text=name.split("\u2028")[0]).count() > 0
        assert page.evaluate(
            "(name) => [...document.querySelectorAll('.recording-name')].some((e) => e.textContent.startsWith(name))", name
        )
    for summary in page.locator("summary").all():
        summary.click()
    for picture in page.locator(".panel svg").all():
        picture.hover(position={"x": 200, "y": 30}, force=True)
    page.locator(".recording canvas").first.hover()
    assert first in page.locator(".tooltip").inner_text()
    page.locator("#theme").click()
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, b, object, embed').length") == 0
    assert page.evaluate("document.scripts.length") == 2
    rows = downloaded(page, "budgets")
    assert {"'=1+1", "../../etc/passwd"} <= {row["behavior"] for row in rows}


def test_the_policy_blocks_injected_scripts(browser, tmp_path, scores):
    write_report(tmp_path / "report.html", summarize_scores({"model": scores}))
    page = browser.new_page()
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto((tmp_path / "report.html").as_uri())
    page.evaluate(
        """() => {
          document.body.insertAdjacentHTML("beforeend", `<img src="data:," onerror="window.hacked = 1"><b style="color: red">b</b>`);
          const script = document.createElement("script");
          script.textContent = "window.hacked = 2";
          document.body.append(script);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("fetch('https://example.org').then(() => 'fetched', () => 'refused')") == "refused"
    assert sum("Content Security Policy" in text for text in blocked) >= 4
    page.close()


def test_light_dark_and_paper(opened):
    page = opened(half_and_half(), color_scheme="dark")
    dark = color(page, "--page")
    assert sum(dark) < 150
    assert pixel(page, 0.2, 8) == color(page, "--behavior-0")
    page.locator("#theme").click()
    light = color(page, "--page")
    assert light == [255, 255, 255]
    assert pixel(page, 0.2, 8) == color(page, "--behavior-0"), "ethograms are drawn again in the new colours"
    page.locator("#theme").click()
    assert color(page, "--page") == dark
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert pixel(page, 0.9, 8) == color(page, "--lane")
    assert sum(pixel(page, 0.9, 8)) > 600
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("nav").is_hidden()


def test_choices_redraw_the_figure(opened, scores):
    page = opened(summarize_scores({"model": scores}))
    figure = page.locator("#scores-individuals")
    before = figure.locator(".panels").inner_html()
    figure.get_by_label("Measure").select_option("bout_f1")
    assert figure.locator(".panels").inner_html() != before
    assert figure.locator("circle.small").count() > 0


def test_many_models_are_chosen_one_at_a_time(opened):
    scores = {f"model{k}": make_scores(2, certainty=k) for k in range(1, 7)}
    page = opened(summarize_scores(scores))
    matrix = page.locator("#scores-confusion")
    assert matrix.locator("svg").count() == 1
    before = matrix.locator("svg").inner_html()
    matrix.get_by_label("Model").select_option("model6")
    assert matrix.locator("svg").inner_html() != before
    assert page.locator("#scores-durations .legend li").all_inner_texts() == ["truth", "model1"]


@pytest.mark.parametrize("width", [1600, 800, 360])
def test_nothing_is_wider_than_the_window(opened, scores, width):
    page = opened(summarize_scores({"model": scores, "other": scores}))
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_everything_has_an_accessible_name(opened, scores):
    page = opened(summarize_scores({"model": scores}))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("svg[role=img], canvas, button, select, figure, nav, [tabindex]")].filter(
          (e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.labels?.length || e.textContent.trim())
        ).map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert unnamed == []
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    page.keyboard.press("Tab")
    for _ in range(60):
        if page.evaluate("document.activeElement.classList.contains('raster')"):
            break
        page.keyboard.press("Tab")
    else:
        pytest.fail("the ethograms cannot be reached with the keyboard")


def test_the_legend_shows_behaviors_that_occur_in_their_colors(opened):
    from tests.reports.test_score_report_occurrence import make_scores as with_absent

    page = opened(summarize_scores({"model": with_absent()}))
    legend = page.locator(".drawing > .legend").first
    assert legend.locator("li").all_text_contents() == ["other", "bite", "rest", "run"]
    shown = legend.locator("li", has_text="run").locator(".swatch").evaluate("(s) => getComputedStyle(s).backgroundColor")
    assert [float(number) for number in re.findall(r"[\d.]+", shown)] == page.evaluate(COLOR, "--behavior-0")
    assert page.locator(".absent").all_text_contents() == [
        "Never annotated: chase, clinch",
        "Predicted but never annotated: bite",
    ]


def chart(page, figure: str, folder: Path) -> Path:
    page.wait_for_timeout(150)
    with page.expect_download() as caught:
        page.locator(f"#scores-{figure} button.svg").click()
    assert caught.value.suggested_filename == f"{figure}.svg"
    path = folder / f"{figure}.svg"
    caught.value.save_as(path)
    return path


def test_every_chart_downloads_as_svg_that_needs_no_style_sheet(opened, scores, tmp_path):
    report = summarize_scores({"model": scores})
    page = opened(report)
    for figure in report["groups"][0]["figures"]:
        if figure["kind"] in ("pivot", "table"):
            assert page.locator(f"#scores-{figure['id']} button.svg").count() == 0
            continue
        text = chart(page, figure["id"], tmp_path).read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)  # noqa: S314
        assert not re.search(r"var\(|light-dark|class=|style=", text)
        shapes = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert shapes <= {"svg", "g", "rect", "path", "text", "title", "line", "circle", "polyline", "polygon", "image", "tspan"}
        assert {"text", "image" if figure["kind"] == "raster" else "rect"} <= shapes
        filled = {element.get("fill") for element in root.iter() if element.get("fill")}
        assert all(color == "none" or re.fullmatch(r"rgb\(\d+,\d+,\d+\)", color) for color in filled)
    names = "".join(ElementTree.parse(tmp_path / "confusion.svg").getroot().itertext())  # noqa: S314
    assert all(name in names for name in ("rest", "run"))


def test_names_in_a_downloaded_chart_are_text(opened, hostile_scores, tmp_path):
    page = opened(summarize_scores({"model": hostile_scores}))
    for figure in ("ethograms", "confusion"):
        root = ElementTree.parse(chart(page, figure, tmp_path)).getroot()  # noqa: S314
        assert not [element for element in root.iter() if element.tag.removeprefix(SVG) in ("script", "foreignObject", "img")]
        assert any("<script>" in text for text in root.itertext())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(opened, scores, scheme):
    page = opened(summarize_scores({"model": scores, "other": make_scores(certainty=1.0)}), color_scheme=scheme)
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert violations(page) == []
