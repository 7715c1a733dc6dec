"""Figures of pages of the reference: objects, files, suites, models and MATLAB; see `_figures`."""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
from _figure_data import BLUE, BROWN, INK, MUTED, PALE, RESULTS, TEAL, WIDE, box, forest, mice, people, plain

import ethobench as eb
from ethobench.core import intervals as iv
from ethobench.datasets.synthetic import make_dataset

SUITES = (
    ("rodentbench", "macro_f1", "seconds"),
    ("ethobench", "f1", "frames"),
    ("calms21", "macro_f1", "frames"),
    ("bebe", "f1", "frames"),
    ("mabe2025", "f1", "frames"),
    ("banos", "f1_score", "bouts"),
    ("ethobench", "bout_f1", "bouts"),
    ("ethobench", "segment_f1_50", "bouts"),
)


def objects() -> Any:
    """Show what a recording and a prediction hold, on one time axis."""
    data = make_dataset("tag", individuals=4, seconds=60)
    *others, last = data
    model = eb.create_model("rf", trees=20, seconds=1.0).fit(data.select(recordings=[recording.id for recording in others]))
    prediction = model.predict(last)
    seconds = np.arange(last.n_frames) / last.rate
    figure = eb.plot.figure(WIDE, 88)
    signals, labels, probabilities, decoded = figure.subplots(4, 1, height_ratios=(1.3, 1, 1, 1), sharex=True)
    for k, color in enumerate((BLUE, TEAL, BROWN)):
        signals.plot(seconds, last.signals.values[:, k], color=color, linewidth=0.5)
    names = model.ethogram.names
    probabilities.imshow(
        np.array(prediction.probabilities)[:, : len(names)].T, aspect="auto", cmap="Blues", vmin=0, vmax=1, extent=(0, 60, len(names), 0)
    )
    for ax, annotation in ((labels, last.annotation()), (decoded, prediction.annotation)):
        for y in range(len(names)):
            ax.axhspan(y + 0.08, y + 0.92, color=PALE, linewidth=0)
        for start, stop, code in zip(annotation.start, annotation.stop, annotation.behavior, strict=True):
            ax.add_patch(box(start / last.rate, code + 0.08, (stop - start) / last.rate, 0.84, TEAL if ax is labels else BLUE))
    for ax in (labels, probabilities, decoded):
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.set_ylim(len(names), 0)
        ax.tick_params(axis="y", length=0)
    titles = {
        signals: "recording.signals",
        labels: "recording.annotation()",
        probabilities: "prediction.probabilities",
        decoded: "prediction.annotation",
    }
    for ax, title in titles.items():
        ax.set_title(title, fontsize=7, loc="left", family="monospace", color=INK, pad=3)
        plain(ax)
    signals.set_xlim(0, 60)
    decoded.set_xlabel("time (s)", fontsize=7)
    return figure


def bout() -> Any:
    """Show the frames of a bout and of a part that was not observed, and how files state its end."""
    annotation = eb.Annotation.from_bouts([3], [7], ["groom"], ["groom"], rate=10, n_frames=14).mark_unobserved(iv.intervals([10], [13]))
    start, stop = int(annotation.start[0]), int(annotation.stop[0])
    observed = np.zeros(annotation.n_frames, dtype=bool)
    for first, end in zip(*annotation.observed.of("groom"), strict=True):
        observed[first:end] = True
    figure = eb.plot.figure(WIDE, 40)
    ax = figure.subplots()
    for frame in range(annotation.n_frames):
        is_bout = start <= frame < stop
        if not observed[frame]:
            ax.add_patch(box(frame + 0.04, 0, 0.92, 1, "white", MUTED)).set_hatch("////")
        else:
            ax.add_patch(box(frame + 0.04, 0, 0.92, 1, BLUE if is_bout else PALE))
            ax.text(frame + 0.5, 0.5, str(frame), fontsize=7, ha="center", va="center", color="white" if is_bout else MUTED)
    ax.text((start + stop) / 2, -0.3, "groom", fontsize=7, ha="center", va="bottom", color=BLUE, weight="bold")
    ax.text(1, -0.3, "not groom", fontsize=7, ha="center", va="bottom", color=MUTED)
    ax.text(11.5, -0.3, "unobserved", fontsize=7, ha="center", va="bottom", color=MUTED)
    pointers = (
        (start, start + 0.5, f"start = {start}\n{start / annotation.rate:g} s", INK, "right"),
        (stop - 1, stop - 0.5, f"last frame: {stop - 1}\n(as in SLEAP)", MUTED, "center"),
        (stop, stop + 0.5, f"stop = {stop}\n{stop / annotation.rate:g} s", INK, "left"),
    )
    for _, x, text, color, side in pointers:
        shift = {"right": -0.9, "center": -0.6, "left": 0.9}[side]
        ax.annotate(
            text,
            (x, 1.05),
            (x + shift, 1.75),
            fontsize=7,
            ha=side,
            va="top",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkA": 2, "shrinkB": 1},
        )
    ax.set_xlim(0, annotation.n_frames)
    ax.set_ylim(2.7, -0.8)
    ax.set_axis_off()
    return figure


def suites() -> Any:
    """Show the scores of one prediction in all suites."""
    colors = {"seconds": BROWN, "frames": BLUE, "bouts": TEAL}
    annotator = people()[0]
    scores = {name: eb.score(forest(), mice(), annotator=annotator, suite=name, resamples=0).overall for name, *_ in SUITES}
    figure = eb.plot.figure(WIDE, 60)
    ax = figure.subplots()
    for unit, color in colors.items():
        rows = [y for y, (_, _, counted) in enumerate(SUITES) if counted == unit]
        values = [scores[SUITES[y][0]][SUITES[y][1]] for y in rows]
        bars = ax.barh(rows, values, height=0.7, color=color, label=f"counts {unit}")
        ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=6.5)
    ax.set_yticks(range(len(SUITES)), [f"{suite}: {metric}" for suite, metric, _ in SUITES])
    ax.set_xlim(0, 1)
    ax.set_ylim(len(SUITES) - 0.4, -0.6)
    ax.set_xlabel("score of one prediction", fontsize=7)
    ax.legend(fontsize=6.5, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    plain(ax, size=6.5)
    ax.tick_params(axis="y", length=0)
    return figure


def models() -> Any:
    """Show measured scores of models on the rats, for frames as they come and for decoded bouts."""
    models = {"chance": "chance", "conv1d": "conv1d", "rf": "rf", "boost": "boost", "tcn": "tcn", "boost+tcn": "boost and tcn,\nblended"}
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with (RESULTS / "rats_recordings.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values[row["metric"], row["model"], row["way"]].append(float(row["value"]))
    figure = eb.plot.figure(WIDE, 55)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (metric, title) in zip(axes, (("macro_f1", "frame F1"), ("bout_f1", "bout F1")), strict=True):
        for y, name in enumerate(models):
            before = np.mean(values[metric, name, "frame by frame"])
            after = np.mean(values.get((metric, name, "decoded"), np.nan))
            ax.hlines(y, before, after, color=MUTED, linewidth=1)
            open_circles = ax.plot(before, y, "o", color="white", markeredgecolor=BLUE, markersize=4.5)
            full_circles = ax.plot(after, y, "o", color=BLUE, markersize=4.5)
        ax.set_xlim(0, 0.8)
        ax.set_xlabel(f"{title}, mean of 46 recordings", fontsize=7)
        plain(ax)
    axes[0].set_yticks(range(len(models)), list(models.values()))
    axes[0].set_ylim(len(models) - 0.5, -0.5)
    texts = ("most probable behavior of each frame", "decoded to bouts")
    figure.legend(
        [*open_circles, *full_circles], texts, fontsize=6.5, frameon=False, ncols=2, loc="outside upper center", handletextpad=0.2
    )
    return figure


def cell_arrays() -> Any:
    """Show the cell arrays of the MATLAB example, and the scores that they get."""
    names = ["attack", "mount"]
    pred, truth = np.array([[0, 0], [1, 0], [1, 0], [0, 1]]), np.array([[0, 0], [1, 0], [0, 1], [0, 1]])
    scores = eb.banos.score(pd.DataFrame(pred, columns=names), pd.DataFrame(truth, columns=names))
    figure = eb.plot.figure(WIDE, 45)
    ax = figure.subplots()
    for left, (title, frames) in zip((0.6, 3.6), (("pred", pred), ("truth", truth)), strict=True):
        ax.text(left, -0.35, title, fontsize=7.5, family="monospace", color=INK)
        for x, name in enumerate(names):
            ax.add_patch(box(left + x, 0, 1, 1, PALE, MUTED))
            ax.text(left + x + 0.5, 0.5, f"'{name}'", fontsize=6.5, family="monospace", ha="center", va="center", color=INK)
            for y, value in enumerate(frames[:, x], 1):
                ax.add_patch(box(left + x, y, 1, 1, BLUE if value else "white", MUTED))
                ax.text(left + x + 0.5, y + 0.5, str(value), fontsize=7, ha="center", va="center", color="white" if value else MUTED)
    for y in range(1, 5):
        ax.text(0.5, y + 0.5, f"frame {y}", fontsize=6.5, ha="right", va="center", color=MUTED)
    ax.annotate("", (6.7, 2.5), (5.8, 2.5), arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 1})
    ax.text(6.9, -0.35, "metrics", fontsize=7.5, family="monospace", color=INK)
    for x, name in enumerate(names):
        ax.text(9.1 + 1.2 * x, 0.5, name, fontsize=6.5, family="monospace", ha="right", va="center", color=MUTED)
        for y, (metric, value) in enumerate(scores[name].items(), 1):
            text = "NaN" if np.isnan(value) else f"{value:.2f}"
            ax.text(6.9, 0.75 * y + 0.5, metric, fontsize=6.5, family="monospace", va="center", color=MUTED)
            ax.text(9.1 + 1.2 * x, 0.75 * y + 0.5, text, fontsize=7, ha="right", va="center", color=INK)
    ax.set_xlim(-0.2, 10.6)
    ax.set_ylim(5.6, -1)
    ax.set_axis_off()
    return figure
