"""Make the pictures of the README: a report and the viewer, on synthetic data, in Chromium.

    python docs/_pictures.py [report] [viewer]

Needs the extras ``boost``, ``app`` and ``dev``, and Chromium. Run it when the look of the report or the viewer changes.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
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
REPORT, VIEWER = (1360, 1150), (1440, 873)


def main() -> None:
    """Take the pictures that are named on the command line, or all."""
    chosen = sys.argv[1:] or ["report", "viewer"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in chosen:
            {"report": take_report, "viewer": take_viewer}[name](browser, Path(folder))
        browser.close()


def take_report(browser: Any, folder: Path) -> None:
    """Cross-validate a model, and show the report of its scores."""
    data = make_dataset("pose", individuals=6, seconds=45, folds=N_FOLDS, annotators=ANNOTATORS)
    first = ANNOTATORS[0].name
    predictions: dict[str, Prediction] = {}
    for fold in range(N_FOLDS):
        model = eb.create_model("auto").fit(data.select(fold=[f for f in range(N_FOLDS) if f != fold]), annotator=first)
        predictions |= {recording.id: model.predict(recording) for recording in data.select(fold=fold)}
    report = folder / "report.html"
    scores = eb.score(predictions, data, annotator=first)
    write_report(report, summarize_scores({"auto": scores}, truth=first, annotations=data))
    page = open_page(browser, report.as_uri(), REPORT)
    page.wait_for_selector(".time-axis svg")
    save(page, "report.png")


def take_viewer(browser: Any, folder: Path) -> None:
    """Show the viewer with a recording that is labeled in part, a trained teacher, and one of its suggestions."""
    data = make_dataset("pose", individuals=6, seconds=90, folds=N_FOLDS)
    project = label(data, write_study(data, folder / "my_study"))
    page = open_page(browser, serve(project), VIEWER)
    page.wait_for_selector("eb-recordings [aria-current]")
    page.keyboard.press("e")
    page.click("dialog button:has-text('Continue as carla')")
    page.keyboard.press("t")
    page.wait_for_function("() => document.querySelector('eb-teacher').textContent.includes('held out')", timeout=240_000)
    page.wait_for_timeout(1500)
    page.keyboard.press("q")
    page.wait_for_selector(".review:not([hidden]) strong")
    page.keyboard.press("f")
    page.wait_for_timeout(3000)  # until tiles are drawn
    save(page, "viewer.png", page.evaluate("document.querySelector('footer').getBoundingClientRect().top"))


def write_study(data: Dataset, folder: Path) -> Path:
    """Write poses as a study."""
    rows = ["recording,individual,rate,signals"]
    for recording in data:
        eb.write_recordings([recording], folder / "poses" / f"{recording.id}.csv", "deeplabcut")
        rows.append(f"{recording.id},{recording.individual},{recording.rate:g},poses/{recording.id}.csv")
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


def open_page(browser: Any, address: str, size: tuple[int, int]) -> Any:
    """Open an address in a window of this size."""
    page = browser.new_context(viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme="light").new_page()
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
