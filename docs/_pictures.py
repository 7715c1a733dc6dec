"""Make the pictures of the README and the guide: a report, the viewer, and the steps to label, train and report, in Chromium.

    python docs/_pictures.py [report] [viewer] [steps]

Needs the extras ``boost``, ``app`` and ``dev``, and Chromium. Run it when the look of the report or the viewer changes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import ethobench as eb
from ethobench.app.opening import open_project
from ethobench.app.project import Project
from ethobench.app.server import make_app
from ethobench.core import Dataset, Prediction
from ethobench.core import intervals as iv
from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
from ethobench.reports import summarize_scores, write_report

IMAGES = Path(__file__).parent / "images"
N_FOLDS, TOKEN = 3, "pictures"
LABELED = (0.5, 1.0, 0.7, 0.6)  # shares of the first recordings that are labeled before the teacher is trained
REPORT, VIEWER, STEPS = (1360, 1150), (1440, 873), (1280, 470)
NARROW_REPORT, SMALL_VIEWER = (660, 900), (1360, 740)  # windows for the parts of the steps
WORKPLACE = """() => {
  const { left: x, top: y } = document.querySelector("main").getBoundingClientRect();
  return { x, y, width: innerWidth - x, height: document.querySelector("footer").getBoundingClientRect().top - y };
}"""  # without the list of recordings and the bars at the top and bottom
SHARP = 2  # pixels per CSS pixel in the picture of the steps, which the README shows smaller than it is
TRAIN = ["train", "my_study/", "--out", "models/first"]
PAGE = """<!doctype html><style>
body {{ margin: 0; padding: 8px; width: 1264px; height: 454px; display: flex; gap: 20px; background: #fff; color: #17202a;
  font: 16px "DejaVu Sans", sans-serif }}
h2 {{ margin: 0 0 6px; font-size: 19px }}
h2 span {{ font-weight: normal; color: #4a5560 }}
div {{ border: 1px solid #c8ced6; border-radius: 6px; overflow: hidden }}
section {{ display: flex; flex-direction: column }}
section:last-child {{ flex: 1 }}
section:last-child h2 + div {{ margin-bottom: 12px }}
section div:last-child {{ flex: 1; margin-bottom: 0 !important }}
img {{ display: block }}
.label img {{ width: 740px }}
.report {{ position: relative }}
.report img {{ position: absolute; left: 8px; top: -9px; width: 486px }}
.report img + img {{ top: 80px; width: 488px }}
pre {{ margin: 0; padding: 6px 10px; font: 11px/12.4px "DejaVu Sans Mono", monospace }}
</style>
<section><h2>1. Label <span>some bouts in the browser</span></h2><div class="label"><img src="{viewer}"></div></section>
<section><h2>2. Train <span>and test on unseen animals</span></h2><div><pre>{output}</pre></div>
<h2>3. Report <span>scores, ethograms, time budgets</span></h2>
<div class="report"><img src="{facts}"><img src="{raster}"></div></section>"""


def main() -> None:
    """Take the pictures that are named on the command line, or all."""
    chosen = sys.argv[1:] or ["report", "viewer", "steps"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in chosen:
            {"report": take_report, "viewer": take_viewer, "steps": take_steps}[name](browser, Path(folder))
        browser.close()


def take_report(browser: Any, folder: Path) -> None:
    """Show the report of a model."""
    save(open_report(browser, folder, REPORT), "report.png")


def take_viewer(browser: Any, folder: Path) -> None:
    """Show the viewer with a recording that is labeled in part, a trained teacher, and one of its suggestions."""
    page = open_viewer(browser, folder / "viewer", VIEWER)
    save(page, "viewer.png", page.evaluate("document.querySelector('footer').getBoundingClientRect().top"))


def take_steps(browser: Any, folder: Path) -> None:
    """Join the pictures of the viewer and the report with what the command `train` prints for a study."""
    write_study(make_dataset("pose", individuals=6, seconds=90, folds=N_FOLDS), folder / "steps" / "my_study", is_labeled=True)
    command = [sys.executable, "-m", "ethobench", *TRAIN]
    printed = subprocess.run(
        command, cwd=folder / "steps", env={**os.environ, "COLUMNS": "80"}, stdout=subprocess.PIPE, text=True, check=True
    )
    table = printed.stdout.partition("most frequent")[0].rstrip()
    report = open_report(browser, folder, NARROW_REPORT, SHARP)
    viewer = open_viewer(browser, folder / "steps_viewer", SMALL_VIEWER, SHARP)
    pictures = {
        "viewer": viewer.screenshot(clip=viewer.evaluate(WORKPLACE)),
        "facts": report.locator(".facts").screenshot(),
        "raster": report.locator(".raster").screenshot(),
    }
    sources = {name: f"data:image/png;base64,{b64encode(picture).decode()}" for name, picture in pictures.items()}
    page = open_page(browser, "about:blank", STEPS, SHARP)
    page.set_content(PAGE.format(output=escape(f"$ ethobench {' '.join(TRAIN)}\n{table}"), **sources))
    save(page, "steps.png")


def open_report(browser: Any, folder: Path, size: tuple[int, int], scale: float = 1) -> Any:
    """Cross-validate a model, unless that is done, and open the report of its scores."""
    report = folder / "report.html"
    if not report.exists():
        data = make_dataset("pose", individuals=6, seconds=45, folds=N_FOLDS, annotators=ANNOTATORS)
        first = ANNOTATORS[0].name
        predictions: dict[str, Prediction] = {}
        for fold in range(N_FOLDS):
            model = eb.create_model("auto").fit(data.select(fold=[f for f in range(N_FOLDS) if f != fold]), annotator=first)
            predictions |= {recording.id: model.predict(recording) for recording in data.select(fold=fold)}
        scores = eb.score(predictions, data, annotator=first)
        write_report(report, summarize_scores({"auto": scores}, truth=first, annotations=data))
    page = open_page(browser, report.as_uri(), size, scale)
    page.wait_for_selector(".time-axis svg")
    return page


def open_viewer(browser: Any, folder: Path, size: tuple[int, int], scale: float = 1) -> Any:
    """Open the viewer, train the teacher and show its first suggestion."""
    data = make_dataset("pose", individuals=6, seconds=90, folds=N_FOLDS)
    project = label(data, write_study(data, folder / "my_study"))
    page = open_page(browser, serve(project), size, scale)
    page.wait_for_selector("eb-recordings [aria-current]")
    page.keyboard.press("e")
    page.click("dialog button:has-text('Continue as carla')")
    page.keyboard.press("t")
    page.wait_for_function("() => document.querySelector('eb-teacher').textContent.includes('held out')")
    page.wait_for_timeout(1500)
    page.keyboard.press("q")
    page.wait_for_selector(".review:not([hidden]) strong")
    page.keyboard.press("f")
    page.wait_for_timeout(3000)  # until tiles are drawn
    return page


def write_study(data: Dataset, folder: Path, *, is_labeled: bool = False) -> Path:
    """Write poses, and labels if asked for, as a study."""
    rows = ["recording,individual,rate,signals,annotations"]
    for recording in data:
        eb.write_recordings([recording], folder / "poses" / f"{recording.id}.csv", "deeplabcut")
        labels = f"labels/{recording.id}.csv" if is_labeled else ""
        if is_labeled:
            eb.write_annotation(recording.annotation(), folder / labels)
        rows.append(f"{recording.id},{recording.individual},{recording.rate:g},poses/{recording.id}.csv,{labels}")
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def label(data: Dataset, study: Path) -> Project:
    """Open the study, and label the first part of some recordings."""
    project = open_project([str(study)])
    project.edit_ethogram(project.ethograms.revision, [{"name": b.name, "background": b.name == "other"} for b in data.ethogram])
    for index, share in enumerate(LABELED):
        truth = data.recordings[index].annotation().with_ethogram(project.recordings[index].ethogram)
        labels = truth.mark_unobserved(iv.intervals([int(truth.n_frames * share)], [truth.n_frames]))
        project.start(index, "carla")
        project.change(index, "carla", None, lambda _, labels=labels: labels)
    return project


def serve(project: Project) -> str:
    """Serve the viewer in a thread and return its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(project, port, TOKEN, ""), log_level="warning", lifespan="off"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    return f"http://127.0.0.1:{port}/{TOKEN}/"


def open_page(browser: Any, address: str, size: tuple[int, int], scale: float = 1) -> Any:
    """Open an address in a window of this size, in CSS pixels; `scale` is the number of pixels for each of them."""
    viewport = dict(zip(("width", "height"), size, strict=True))
    page = browser.new_context(viewport=viewport, device_scale_factor=scale, color_scheme="light").new_page()
    page.set_default_timeout(240_000)  # for machines that are busy
    page.goto(address)
    return page


def save(page: Any, name: str, height: float | None = None) -> None:
    """Save what a page shows, from the top to a height; with 256 colors, so that the file stays small."""
    path = IMAGES / name
    page.screenshot(path=path)
    with Image.open(path) as picture:
        shown = picture.convert("RGB").crop((0, 0, picture.width, int(height or picture.height)))
    shown.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
