"""Figures of pages on methods: files, videos, streams, benchmarks, runs and scores; see `_figures`."""

from __future__ import annotations

import csv
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from _figure_data import BLUE, BROWN, INK, MUTED, PALE, RESULTS, TEAL, WIDE, box, mice, people, plain

import ethobench as eb
from ethobench.datasets.synthetic import make_dataset

STREAMED, THRESHOLD, SHOWN_SECONDS = "feed", 0.5, (60, 100)


def stream() -> Any:
    """Show the probability of a behavior as a causal model returns it frame by frame, and what a threshold makes of it."""
    data = make_dataset("tag", individuals=5, seconds=100)
    *others, last = data
    network: dict[str, Any] = {"past": 25, "future": 0, "frame_stride": 1, "layers": (32, 32), "learning_rate": 0.003}
    model = eb.create_model("conv1d", **network, epochs=6, frames_per_example=50, batch=8).fit(
        data.select(recordings=[r.id for r in others])
    )
    online = model.stream()
    n_frames = int(SHOWN_SECONDS[1] * last.rate)
    probability = np.array([online.push(values) for values in last.signals.values[:n_frames]])[:, model.ethogram.code(STREAMED)]
    truth = last.annotation().to_codes()[:n_frames] == last.annotation().ethogram.code(STREAMED)
    above = probability > THRESHOLD
    held_frames = int(last.rate / 2)
    held = np.convolve(above, np.ones(held_frames))[:n_frames] == held_frames
    seconds = np.arange(n_frames) / last.rate
    figure = eb.plot.figure(WIDE, 60)
    top, bottom = figure.subplots(2, 1, height_ratios=(2, 1.3), sharex=True)
    top.plot(seconds, probability, color=BLUE, linewidth=0.9)
    top.axhline(THRESHOLD, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))
    top.set_ylabel(f"probability of\n{STREAMED}", fontsize=7)
    top.set_yticks([0, THRESHOLD, 1])
    rows = {"truth": (truth, TEAL), f"above {THRESHOLD}": (above, BLUE), f"above {THRESHOLD} for 0.5 s": (held, BROWN)}
    for row, (frames, color) in enumerate(rows.values()):
        bottom.axhspan(row - 0.35, row + 0.35, color=PALE, linewidth=0)
        bottom.fill_between(seconds, row - 0.35, row + 0.35, where=frames, step="post", color=color, linewidth=0)
    bottom.set_yticks(range(3), list(rows))
    bottom.set_ylim(2.5, -0.5)
    bottom.set_xlim(*SHOWN_SECONDS)
    bottom.set_xlabel("time (s)", fontsize=7)
    plain(top, bottom)
    bottom.tick_params(axis="y", length=0)
    bottom.spines["left"].set_visible(False)
    return figure


def _pictures_of_a_mouse(positions: Any, n_frames: int) -> list[Any]:
    """Draw a mouse as a dark body with a tail on a light floor."""
    from PIL import Image, ImageDraw

    points = positions[:n_frames]
    low, high = points.min(axis=(0, 1)) - 75, points.max(axis=(0, 1)) + 75
    points = (points - low) * 480 / (high - low)[0]
    size = (480, int(480 * (high - low)[1] / (high - low)[0]) // 2 * 2)
    pictures = []
    for nose, left_ear, right_ear, neck, left_hip, right_hip, tail_base in points:
        picture = Image.new("RGB", (2 * size[0], 2 * size[1]), "#c9c5bc")
        draw = ImageDraw.Draw(picture)
        width = 0.9 * float(np.linalg.norm(left_hip - right_hip))
        tail = tail_base + 1.6 * (tail_base - (left_hip + right_hip) / 2)
        body = ((nose, neck, 0.7), (neck, tail_base, 1.25), (tail_base, tail, 0.2))
        sides = ((left_ear, right_ear, 0.45), (left_hip, right_hip, 0.7))
        for start, stop, share in (*body, *sides):
            ends = [tuple((2 * end).tolist()) for end in (start, stop)]
            draw.line(ends, "#3a3631", width=max(int(2 * share * width), 2))
            for x, y in ends:
                draw.ellipse([x - share * width, y - share * width, x + share * width, y + share * width], "#3a3631")
        pictures.append(picture.resize(size))
    return pictures


def motion() -> Any:
    """Show pictures of a video with the window of the encoder `motion`, and two of the features that it computes."""
    from ethobench.features.video_motion import NAMES, MotionEncoder, estimate_background, reduced_size
    from ethobench.figures.video_writing import video_writer

    recording = make_dataset("pose", individuals=4, seconds=20, missing=0).recordings[0]
    pictures = _pictures_of_a_mouse(np.array(recording.signals.positions[:, 0]), recording.n_frames)
    size = reduced_size(*pictures[0].size)
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder, "m1.mp4")
        with video_writer(video, recording.rate) as append:
            for picture in pictures:
                append(picture)
        encoder = MotionEncoder(estimate_background(video, len(pictures) / recording.rate, size), recording.rate)
    features, windows = [], []
    for picture in pictures:
        features.append(encoder.encode(np.asarray(picture.convert("L").resize(size), dtype=np.float32)))
        windows.append((*encoder.center, float(encoder.side)))
    values, seconds = np.array(features), np.arange(len(pictures)) / recording.rate
    figure = eb.plot.figure(WIDE, 82)
    grid = figure.add_gridspec(3, 3, height_ratios=(2.4, 1, 1))
    shown = [int((k + 0.5) * len(pictures) / 3) for k in range(3)]
    for k, frame in enumerate(shown):
        ax = figure.add_subplot(grid[0, k])
        y, x, side = (value * pictures[0].width / size[0] for value in windows[frame])
        ax.imshow(np.asarray(pictures[frame]))
        ax.add_patch(box(x - side / 2, y - side / 2, side, side, "none", BROWN))
        ax.set_xlim(0, pictures[0].width)
        ax.set_ylim(pictures[0].height, 0)
        ax.set_title(f"{seconds[frame]:.1f} s", fontsize=7, color=MUTED, pad=3)
        ax.set_axis_off()
    for row, (name, text) in enumerate((("speed_0.5s", "speed (windows per second)"), ("turning", "turning (radians in 0.1 s)")), 1):
        ax = figure.add_subplot(grid[row, :])
        for second in seconds[shown]:
            ax.axvline(second, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))
        ax.plot(seconds, values[:, NAMES.index(name)], color=BLUE, linewidth=0.9)
        ax.set_title(text, fontsize=7, loc="left", pad=2)
        ax.set_xlim(0, 20)
        ax.set_xticks(range(0, 21, 5))
        ax.set_ylim(0, 1.1 * values[30:, NAMES.index(name)].max())
        ax.tick_params(labelbottom=row == 2)
        plain(ax)
    ax.set_xlabel("time (s)", fontsize=7)
    return figure


def study() -> Any:
    """Show files of a folder, and the recordings that the draft of the study makes of them."""
    from ethobench.datasets.discover import discover_study

    recording = mice().recordings[0]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = Path(folder)
        for name in ("mouse1_day1", "mouse2_day1"):
            eb.write_recordings([recording], root / f"{name}DLC_resnet50.csv", "deeplabcut")
            for person in people():
                eb.write_annotation(recording.annotations[person], root / person / f"{name}.csv")
        (root / "notes.txt").write_text("fed at nine\n", encoding="utf-8")
        draft = discover_study(root, rate=30)
    files = [(str(match.path), match.recording, match.role) for match in draft.matches]
    files = list(dict.fromkeys(files)) + [(str(file.path), "", "") for file in draft.unused]
    rows = list(dict.fromkeys(row["recording"] for row in draft.rows))
    files.sort(key=lambda file: (rows.index(file[1]) if file[1] else len(rows), file[2] != "signals", file[0]))
    figure = eb.plot.figure(WIDE, 62)
    ax = figure.subplots()
    colors = dict(zip(rows, (BLUE, BROWN), strict=True))
    middles = {name: np.mean([y for y, file in enumerate(files) if file[1] == name]) for name in rows}
    for y, (path, name, role) in enumerate(files):
        kind = {"signals": "poses", "": "not used"}.get(role, role)
        ax.text(0, y, path, fontsize=7, va="center", family="monospace", color=INK if name else MUTED)
        ax.text(0.33, y, kind, fontsize=7, va="center", color=MUTED)
        if name:
            ax.plot([0.46, 0.53, 0.6], [y, middles[name], middles[name]], color=colors[name], linewidth=0.9)
    for name, y in middles.items():
        lines = [row for row in draft.rows if row["recording"] == name]
        annotators = ", ".join(dict.fromkeys(row["annotator"] for row in lines))
        ax.add_patch(box(0.6, y - 1.2, 0.39, 2.4, "white", colors[name]))
        ax.text(0.62, y - 0.7, name, fontsize=8, va="center", color=colors[name], weight="bold")
        ax.text(0.62, y + 0.05, f"individual {lines[0]['individual']}, {lines[0]['rate']} Hz", fontsize=7, va="center", color=INK)
        ax.text(0.62, y + 0.7, f"annotators {annotators}", fontsize=7, va="center", color=INK)
    for x, text in ((0, "files in the folder"), (0.6, "recordings")):
        ax.text(x, -1, text, fontsize=7, color=MUTED)
    ax.set_xlim(0, 1)
    ax.set_ylim(len(files) - 0.4, -1.5)
    ax.set_axis_off()
    return figure


def bebe() -> Any:
    """Show the roles of the five folds, and the scores of individuals that were measured on the seals."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    with (RESULTS / "tags_individuals.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["dataset"] == "bebe/ladds_seals" and row["suite"] == "bebe" and row["fold"] != "0":
                values[row["model"]][row["individual"]] = float(row["value"])
    figure = eb.plot.figure(WIDE, 55)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    for run in range(5):
        for fold in range(5):
            is_test = fold == run
            color = (BROWN if run == 0 else TEAL) if is_test else PALE
            left.add_patch(box(fold + 0.05, run + 0.08, 0.9, 0.84, color))
            text = ("select" if run == 0 else "test") if is_test else "train"
            left.text(fold + 0.5, run + 0.5, text, fontsize=6, ha="center", va="center", color="white" if is_test else MUTED)
    left.set_xlim(0, 5)
    left.set_ylim(5, 0)
    left.set_xticks(np.arange(5) + 0.5, [f"fold {k}" for k in range(5)])
    left.set_yticks([0.5, 1.5, 2.5, 3.5, 4.5], ["hyper-parameters", "test 1", "test 2", "test 3", "test 4"])
    left.tick_params(length=0, labelsize=6, labeltop=True, labelbottom=False)
    left.spines[:].set_visible(False)
    models = ("chance", "rf", "boost")
    for y, name in enumerate(models):
        scores = np.array(list(values[name].values()))
        right.plot(scores, np.full(len(scores), y), "o", color=BLUE, markersize=3.2, alpha=0.6, markeredgewidth=0)
        right.plot([scores.mean()] * 2, [y - 0.28, y + 0.28], color=INK, linewidth=1.4)
    right.set_yticks(range(len(models)), models)
    right.set_ylim(len(models) - 0.4, -0.6)
    right.set_xlim(0, 1)
    right.set_xlabel(f"F1 of each of {len(values['rf'])} seals, and mean", fontsize=7)
    plain(right)
    return figure


def styles() -> Any:
    """Show published scores of CalMS21: what fine-tuning on an annotator brings, and how new behaviors differ."""
    rows = [row for row in eb.published("calms21").to_dict("records") if row["metric"] == "macro_f1"]
    figure = eb.plot.figure(WIDE, 52)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1), gridspec_kw={"wspace": 0.08})
    before, after = (
        [float(row["value"]) for k in range(1, 6) for row in rows if row["setting"] == f"annotator-id_{k}, {way}"]
        for way in ("zero-shot", "fine-tuned")
    )
    ys = np.arange(5)
    left.hlines(ys, before, after, color=MUTED, linewidth=1)
    left.plot(before, ys, "o", color="white", markeredgecolor=BLUE, markersize=4.5, label="network of task 1")
    left.plot(after, ys, "o", color=BLUE, markersize=4.5, label="after fine-tuning")
    left.set_yticks(ys, [f"annotator {k}" for k in range(1, 6)])
    left.set_xlim(0.5, 0.9)
    left.set_title("task 2: styles of annotators", fontsize=7, loc="left")
    left.set_xticks([0.5, 0.6, 0.7, 0.8, 0.9])
    left.legend(fontsize=6, frameon=False, loc="lower center", ncols=2, handletextpad=0.2, columnspacing=1)
    suffix = ", fine-tuned"
    behaviors = {
        row["setting"].removesuffix(suffix): float(row["value"])
        for row in rows
        if row["dataset"] == "calms21/task3" and row["setting"].endswith(suffix) and not row["setting"].startswith("all")
    }
    behaviors = dict(sorted(behaviors.items(), key=lambda item: item[1]))
    bars = right.barh(list(behaviors), list(behaviors.values()), color=TEAL)
    right.bar_label(bars, fmt="%.2f", padding=2, fontsize=6)
    right.set_xlim(0, 0.9)
    right.set_title("task 3: behaviors with few examples", fontsize=7, loc="left")
    for ax in (left, right):
        ax.set_xlabel("F1 (published)", fontsize=7)
        plain(ax)
    left.set_ylim(5.3, -0.5)
    return figure


def labs() -> Any:
    """Show which actions each laboratory of MABe 2025 labeled."""
    from ethobench.datasets.lab_profiles import BUILT_IN

    actions = {profile.name: {*profile.directed.split(), *profile.on_self.split()} for profile in BUILT_IN}
    count = {action: sum(action in own for own in actions.values()) for own in actions.values() for action in own}
    columns = sorted(count, key=lambda action: (-count[action], action))
    rows = sorted(actions, key=lambda lab: (-len(actions[lab]), lab))
    figure = eb.plot.figure(WIDE, 82)
    ax = figure.subplots()
    for y, lab in enumerate(rows):
        for x, action in enumerate(columns):
            ax.add_patch(box(x + 0.06, y + 0.06, 0.88, 0.88, TEAL if action in actions[lab] else PALE))
    ax.set_xlim(0, len(columns))
    ax.set_ylim(len(rows), 0)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=90)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.tick_params(length=0, labelsize=5.5)
    ax.spines[:].set_visible(False)
    return figure


def answer() -> Any:
    """Show an answer of a language model that was cut off, beside the annotation of a person."""
    from ethobench.mllm import parse_answer

    ethogram = eb.Ethogram(["groom", "rear"])
    text = """Sure! ```json
    {"segments": [{"start_time": "00:02", "end_time": "00:14", "behavior": "Groom"},
                  {"start_time": "00:19", "end_time": "00:26", "behavior": "rear"},
                  {"start_time": "00:31", "end_time": "00:38", "behavior": "groom"},
                  {"start_time": "00:44", "end"""
    parsed = parse_answer(text, ethogram, duration=60, rate=30)
    truth = eb.Annotation.from_bouts(
        [45, 560, 900, 1330, 1560], [400, 800, 1150, 1480, 1700], [0, 1, 0, 1, 0], ethogram, rate=30, n_frames=1800
    )
    figure = eb.plot.figure(WIDE, 42)
    eb.plot.ethogram({"person": truth, "answer": parsed.annotation}, figure.subplots())
    return figure


def errors() -> Any:
    """Show predictions with one kind of error each, and the scores that they get."""
    truth = eb.Annotation.from_bouts([40, 150, 260], [110, 190, 340], [0, 0, 0], ["groom"], rate=10, n_frames=400)

    def bouts(*spans: tuple[int, int]) -> Any:
        return eb.Annotation.from_bouts([a for a, _ in spans], [b for _, b in spans], [0] * len(spans), ["groom"], rate=10, n_frames=400)

    rows = {
        "truth": truth,
        "late": truth.shift(12),
        "broken": bouts((40, 60), (64, 86), (90, 110), (150, 168), (172, 190), (260, 284), (288, 312), (316, 340)),
        "joined": bouts((40, 190), (260, 340)),
        "a bout missed": bouts((40, 110), (260, 340)),
        "short bouts added": bouts((10, 14), (40, 110), (126, 130), (150, 190), (215, 219), (260, 340), (370, 374)),
    }
    metrics = {"f1": "frame F1", "bout_f1": "bout F1", "so": "overlap", "ic": "continuity"}
    figure = eb.plot.figure(WIDE, 55)
    left, right = figure.subplots(1, 2, width_ratios=(1.9, 1.5))
    for y, (name, annotation) in enumerate(rows.items()):
        left.axhspan(y - 0.32, y + 0.32, color=PALE, linewidth=0)
        for start, stop in zip(annotation.start, annotation.stop, strict=True):
            left.add_patch(box(start / 10, y - 0.32, (stop - start) / 10, 0.64, TEAL if name == "truth" else BLUE))
        if name == "truth":
            continue
        scores = eb.score(annotation, truth, resamples=0).behaviors["groom"]
        for x, metric in enumerate(metrics):
            value = scores[metric]
            weight = "bold" if value < 0.8 else "normal"
            right.text(x, y, f"{value:.2f}", fontsize=7, ha="center", va="center", weight=weight, color=BROWN if value < 0.8 else INK)
    for x, text in enumerate(metrics.values()):
        right.text(x, 0, text, fontsize=6.5, ha="center", va="center", color=MUTED)
    left.set_yticks(range(len(rows)), list(rows))
    for ax in (left, right):
        ax.set_ylim(len(rows) - 0.4, -0.6)
    left.set_xlim(0, 40)
    left.set_xlabel("time (s)", fontsize=7)
    plain(left)
    left.tick_params(axis="y", length=0, labelsize=7)
    left.spines["left"].set_visible(False)
    right.set_xlim(-0.6, len(metrics) - 0.4)
    right.set_axis_off()
    return figure
