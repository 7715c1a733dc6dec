"""Make the pictures of the README: a report and the viewer, on synthetic data, in Chromium.

    python docs/_pictures.py

Needs the extras ``boost``, ``app`` and ``dev``, and Chromium. Run it when the look of the report or the viewer changes.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import ethobench as eb
from ethobench.app.opening import open_project
from ethobench.app.server import make_app
from ethobench.core import Dataset, Prediction
from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
from ethobench.reports import summarize_scores, write_report

IMAGES = Path(__file__).parent / "images"
N_FOLDS, TOKEN = 3, "pictures"
REPORT, VIEWER = (1360, 1150), (1440, 873)


def main() -> None:
    """Train, score, write what the pages show, and take the pictures."""
    data = make_dataset("pose", individuals=6, seconds=45, folds=N_FOLDS, annotators=ANNOTATORS)
    first = ANNOTATORS[0].name
    predictions: dict[str, Prediction] = {}
    for fold in range(N_FOLDS):
        model = eb.create_model("auto").fit(data.select(fold=[f for f in range(N_FOLDS) if f != fold]), annotator=first)
        predictions |= {recording.id: model.predict(recording) for recording in data.select(fold=fold)}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        report = Path(folder) / "report.html"
        scores = eb.score(predictions, data, annotator=first)
        write_report(report, summarize_scores({"auto": scores}, truth=first, annotations=data))
        page = open_page(browser, report.as_uri(), REPORT)
        page.wait_for_selector(".time-axis svg")
        save(page, "report.png")
        model.save(Path(folder) / "auto")
        page = open_page(browser, serve(write_study(data, Path(folder) / "my_study"), Path(folder) / "auto"), VIEWER)
        page.wait_for_selector("eb-recordings [aria-current]")
        tested = next(iter(data.select(fold=N_FOLDS - 1))).id  # which the model has not seen
        page.click(f"eb-recordings button:has-text('{tested}')")
        page.wait_for_timeout(1000)
        page.keyboard.press("e")
        page.fill("dialog input[name=annotator]", "carla")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog", state="detached")
        for key in ("Control+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
            page.keyboard.press(key)
        page.wait_for_timeout(3000)  # until tiles and suggestions are drawn
        save(page, "viewer.png", page.evaluate("document.querySelector('footer').getBoundingClientRect().top"))
        browser.close()


def write_study(data: Dataset, folder: Path) -> Path:
    """Write poses and the labels of two annotators as a study."""
    rows = ["recording,individual,rate,signals,annotations,annotator"]
    for recording in data:
        poses = f"poses/{recording.id}.csv"
        eb.write_recordings([recording], folder / poses, "deeplabcut")
        for who, annotation in recording.annotations.items():
            labels = f"{who}/{recording.id}.csv"
            eb.write_annotation(annotation, folder / labels, "tidy", recording=recording.id)
            rows.append(f"{recording.id},{recording.individual},{recording.rate:g},{poses},{labels},{who}")
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def serve(study: Path, model: Path) -> str:
    """Serve the viewer in a thread and return its address."""
    project = open_project([str(study)], models=[model])
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
