"""Measure the viewer in Chromium: first paint, frames per second while scrolling and zooming, and key press to visible mark.

Run with ``python benchmarks/viewer.py [--frames 1000000] [--bouts 100000] [--subjects 12] [--behaviors 8] [--save FILE.md]``. The
recording has labels only: a correction with one lane per animal, and as many bouts as stated. Needs the extras ``app`` and ``dev``, and
Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

from ethobench import Annotation, write_annotation
from ethobench.app.opening import open_project
from ethobench.app.server import configure, make_app

RATE, REPEATS = 30, 7
SCRIPTS = ("behavior", "行動", "سلوك", "व्यवहार", "поведение", "🐭")  # names in several scripts
STEPS = 180  # of scrolling and zooming
FRAMES_PER_SECOND = """async () => {
    const timeline = document.querySelector("canvas.lanes");
    const box = timeline.getBoundingClientRect();
    const at = { bubbles: true, cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + 40 };
    const times = [];
    for (let i = 0; i < STEPS; i++) {
        const change = i % 60 < 30 ? { deltaX: 40 } : { deltaY: i % 2 ? 30 : -40 };
        timeline.dispatchEvent(new WheelEvent("wheel", { ...at, ...change }));
        await new Promise((done) => requestAnimationFrame(done));
        times.push(performance.now());
    }
    const steps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
    return { mean: 1000 / (steps.reduce((a, b) => a + b) / steps.length), slowest: 1000 / steps[Math.floor(steps.length * 0.95)] };
}"""
KEY_TO_MARK = r"""async (key) => {
    const cursor = document.querySelector("canvas.cursor");
    const shown = () => {
        const timeline = document.querySelector("eb-timeline");
        const subject = document.querySelector("eb-behaviors select").value;
        const lane = timeline.lanes.find((l) => l.track?.name === "zoe" && l.subject === subject);
        const { data } = cursor.getContext("2d").getImageData(0, (lane.top + 2) * devicePixelRatio, cursor.width, 1);
        let painted = 0;
        for (let i = 0; i < data.length; i += 4) painted += data[i] === color[0] && data[i + 1] === color[1] && data[i + 2] === color[2];
        return painted;
    };
    const dot = document.querySelector(".chip .dot"); // of the first behavior, with key 1
    const color = getComputedStyle(dot).backgroundColor.match(/\d+/g).map(Number);
    const before = shown();
    const start = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code: "Digit1", bubbles: true }));
    for (;;) {
        await new Promise((done) => requestAnimationFrame(done));
        if (shown() > before) return performance.now() - start;
        if (performance.now() - start > 5000) return null;
    }
}"""


def write_recording(folder: Path, frames: int, bouts: int, subjects: int, n_behaviors: int) -> Path:
    """Write signals and the labels of several animals, and return the manifest."""
    rng = np.random.default_rng(0)
    names = [f"animal {i + 1}" for i in range(subjects)]
    per_subject = bouts // subjects
    start, stop, code, subject = [], [], [], []
    for name in names:
        edges = np.sort(rng.choice(frames, 2 * per_subject, replace=False))
        start.append(edges[::2])
        stop.append(edges[1::2])
        code.append(rng.integers(0, n_behaviors, per_subject))
        subject += [name] * per_subject
    behaviors = [f"{SCRIPTS[i % len(SCRIPTS)]} {i + 1}" for i in range(n_behaviors)]
    columns = (np.concatenate(start), np.concatenate(stop), np.concatenate(code))
    annotation = Annotation.from_bouts(*columns, behaviors, RATE, frames, subject=subject, subjects=names)
    write_annotation(annotation, folder / "labels.parquet", "tidy_parquet", recording="long")
    (folder / "recordings.csv").write_text(f"recording,rate,annotations,annotator\nlong,{RATE},labels.parquet,anna\n", encoding="utf-8")
    return folder


def measure(folder: Path) -> dict[str, Any]:
    """Open the recording in a browser, and return times in milliseconds and rates in frames per second."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(configure(make_app(open_project([str(folder)]), port, "benchmark")))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    address = f"http://127.0.0.1:{port}/?token=benchmark"
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        paints, tracks = [], []
        for _ in range(REPEATS):
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.goto(address)
            page.wait_for_function(
                "() => document.querySelector('eb-timeline')?.tiles?.find(document.querySelector('eb-timeline').lanes[0], 0, 0)"
            )
            tracks.append(page.evaluate("() => performance.now()"))
            paints.append(page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
            page.context.close()
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(address)
        page.wait_for_selector("eb-recordings [aria-current]")
        page.keyboard.press("e")
        page.fill("dialog input[name=annotator]", "zoe")
        started = page.evaluate("() => performance.now()")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog", state="detached", timeout=300_000)
        copied = page.evaluate("() => performance.now()") - started
        page.wait_for_timeout(3000)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        busy = _processor_seconds(devtools)
        rates = page.evaluate(FRAMES_PER_SECOND.replace("STEPS", str(STEPS)))
        busy = _processor_seconds(devtools) - busy
        marks, saves = [], []
        for i in range(REPEATS):
            page.evaluate("() => document.querySelector('canvas.lanes').focus()")
            for key in ("f", "Home", *["+"] * 6, *["PageDown"] * (i + 1)):
                page.keyboard.press(key)
            for key in ("i", "Control+ArrowRight", "Control+ArrowRight", "o"):
                page.keyboard.press(key)
            page.wait_for_timeout(200)
            pressed = page.evaluate("() => performance.now()")
            marks.append(page.evaluate(KEY_TO_MARK, "1"))
            page.wait_for_function("() => document.querySelector('#saved').textContent.startsWith('saved')", timeout=300_000)
            saves.append(page.evaluate("() => performance.now()") - pressed)
        browser.close()
    server.should_exit = True
    return {
        "first paint": statistics.median(paints),
        "first tracks": statistics.median(tracks),
        "key to mark": statistics.median(marks),
        "slowest key to mark": max(marks),
        "copied": copied,
        "saved": statistics.median(saves),
        "frames per second": rates["mean"],
        "slowest frames per second": rates["slowest"],
        "processor time per frame": 1000 * busy / STEPS,
    }


def _processor_seconds(devtools: Any) -> float:
    """Return the processor time of the page's main thread so far; other programs on the machine do not change it."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def main() -> None:
    """Measure, print a table, and save it if stated."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--bouts", type=int, default=100_000)
    parser.add_argument("--subjects", type=int, default=12)
    parser.add_argument("--behaviors", type=int, default=8)
    parser.add_argument("--save", type=Path, help="Write the table to this Markdown file.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        values = measure(write_recording(Path(folder), options.frames, options.bouts, options.subjects, options.behaviors))
    sizes = {name: getattr(options, name) for name in ("frames", "bouts", "subjects", "behaviors")}
    command = " ".join(["python benchmarks/viewer.py", *(f"--{name} {value}" for name, value in sizes.items())])
    rows = [
        ("first paint", f"{values['first paint']:.0f} ms", "below 1000 ms"),
        ("tracks are drawn", f"{values['first tracks']:.0f} ms", ""),
        ("key press to visible mark, median", f"{values['key to mark']:.1f} ms", "below 50 ms"),
        ("key press to visible mark, slowest", f"{values['slowest key to mark']:.1f} ms", ""),
        ("all bouts copied to a new correction and saved", f"{values['copied'] / 1000:.1f} s", ""),
        ("key press until the edit is saved, median", f"{values['saved'] / 1000:.1f} s", ""),
        ("scrolling and zooming, mean", f"{values['frames per second']:.0f} frames/s", "at least 30"),
        ("scrolling and zooming, processor time of the page per frame", f"{values['processor time per frame']:.1f} ms", "below 33 ms"),
        ("scrolling and zooming, slowest 5 %", f"{values['slowest frames per second']:.0f} frames/s", ""),
    ]
    load = os.getloadavg()[0]
    size = (
        f"{options.frames:,} frames, {options.bouts:,} bouts of {options.behaviors} behaviors with names in six scripts, "
        f"{options.subjects} animals with a lane each, and the track that was copied."
    )
    lines = [
        "# The viewer in Chromium",
        "",
        f"Command: `{command}`, {os.cpu_count()} cores, load {load:.1f} at the end. {size}",
        "",
        "| what | measured | target |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    print("\n".join(lines))
    if options.save:
        options.save.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
