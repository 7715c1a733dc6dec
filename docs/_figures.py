"""Figures of the guide, drawn while mkdocs builds the site, from runs on generated data.

A page marks the position of a figure with a comment such as ``<!-- figure: budget -->``. Each function of `FIGURES` draws one with
`ethobench.plot`, as a reader would, and returns it; the description in the table is the text for readers who do not see it.

    python docs/_figures.py FOLDER      # write all figures for inspection
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _figure_data import WIDE, forest, mice, people, tags
from _figures_methods import answer, bebe, errors, labs, motion, stream, study, styles
from _figures_reference import bout, cell_arrays, models, objects, suites

import ethobench as eb
from ethobench.datasets.synthetic import make_dataset

PLACE = re.compile(r"^<!-- figure: (\w+) -->$", re.MULTILINE)
FOLDER = "images/figures"


def two_raters() -> Any:
    recording = mice().recordings[1]
    figure = eb.plot.figure(WIDE, 50)
    eb.plot.ethogram({name: recording.annotations[name] for name in people()}, figure.subplots())
    return figure


def agreement() -> Any:
    figure = eb.plot.figure(WIDE, 50)
    eb.plot.agreement(eb.agreement(mice()), figure.subplots())
    return figure


def confusion() -> Any:
    scores = eb.score(forest(), mice(), annotator=people()[0])
    figure = eb.plot.figure(110, 80)
    eb.plot.confusion(scores, figure.subplots())
    return figure


def prediction() -> Any:
    name = next(iter(forest()))
    labels = {people()[0]: mice()[name].annotations[people()[0]], "rf": forest()[name].annotation}
    figure = eb.plot.figure(WIDE, 50)
    eb.plot.ethogram(labels, figure.subplots())
    return figure


def budget() -> Any:
    figure = eb.plot.figure(WIDE, 60)
    eb.plot.budget(tags(), figure.subplots(), by="individual")
    return figure


def durations() -> Any:
    figure = eb.plot.figure(WIDE, 60)
    eb.plot.durations(tags(), figure.subplots())
    return figure


def transitions() -> Any:
    figure = eb.plot.figure(100, 80)
    eb.plot.transitions(tags(), figure.subplots())
    return figure


def zones() -> Any:
    figure = eb.plot.figure(110, 66)
    center = [(250, 150), (750, 150), (750, 450), (250, 450)]
    eb.plot.occupancy(mice().recordings[0], figure.subplots(), zones={"center": center})
    return figure


def raster() -> Any:
    figure = eb.plot.figure(WIDE, 60)
    eb.plot.raster(tags(), figure.subplots())
    return figure


def clean() -> Any:
    """Show a coordinate of a keypoint with errors of the tracker, before and after cleaning."""
    recording = mice().recordings[0]
    rng = np.random.default_rng(0)
    points = np.array(recording.signals.positions)
    points[rng.choice(290, 10, replace=False), 0, 0] += rng.normal(0, 150, (10, 2))
    tracked = replace(recording.signals, positions=points)
    cleaned, _ = eb.clean_poses(tracked, rate=recording.rate)
    figure = eb.plot.figure(WIDE, 45)
    ax = figure.subplots()
    seconds = np.arange(300) / recording.rate
    ax.plot(seconds, tracked.positions[:300, 0, 0, 0], color="#b0b0b0", linewidth=0.8, label="tracked")
    ax.plot(seconds, cleaned.positions[:300, 0, 0, 0], color="#00796b", linewidth=1, label="cleaned")
    ax.set_xlabel("time (s)", fontsize=7)
    ax.set_ylabel("nose, x (px)", fontsize=7)
    ax.tick_params(labelsize=6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=6)
    return figure


def fragments() -> Any:
    """Show a prediction with a high frame F1 whose bouts are broken."""
    truth = eb.Annotation.from_bouts([60, 400], [300, 640], ["groom", "groom"], ["groom"], rate=30, n_frames=750)
    codes = np.array(truth.to_codes())
    for start in range(75, 640, 30):
        codes[start : start + 3] = 1
    broken = eb.Annotation.from_frames(codes, ["groom"], 30)
    scores = eb.score(broken, truth, resamples=0).overall
    figure = eb.plot.figure(WIDE, 32)
    ax = figure.subplots()
    eb.plot.ethogram({"person": truth, "model": broken}, ax)
    ax.set_title(f"frame F1 {scores['f1']:.2f}, bout F1 {scores['bout_f1']:.2f}", fontsize=7)
    return figure


def leakage() -> Any:
    """Score one random forest on other animals, other parts of the same recordings, and shuffled frames."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import f1_score
    from sklearn.model_selection import GroupKFold, KFold, cross_val_predict

    from ethobench.features.nathan import nathan_features

    data = make_dataset("tag", individuals=5, seconds=80, spread=0.6)
    inputs = np.concatenate([nathan_features(r.signals.values[:, :3], r.signals.channels[:3], r.rate, 1.0)[0] for r in data])
    codes = np.concatenate([r.annotation().to_codes() for r in data])
    animals = np.repeat(np.arange(len(data)), [r.n_frames for r in data])
    parts = animals * 1000 + np.concatenate([np.arange(r.n_frames) // int(20 * r.rate) for r in data])
    rows = {
        "other animals": (GroupKFold(5), animals),
        "other parts of the\nsame recordings": (GroupKFold(5), parts),
        "shuffled frames": (KFold(5, shuffle=True, random_state=0), None),
    }
    forest = RandomForestClassifier(20, random_state=0, min_samples_leaf=5)
    values = {}
    for name, (folds, groups) in rows.items():
        predicted = cross_val_predict(forest, inputs, codes, cv=folds, groups=groups)
        values[name] = f1_score(codes, predicted, average="macro")
    figure = eb.plot.figure(110, 40)
    ax = figure.subplots()
    bars = ax.barh(list(values), list(values.values()), color=["#00796b", "#9e9e9e", "#9e9e9e"])
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=7)
    ax.set_xlim(0, 1.1)
    ax.set_xlabel("frame F1 (macro)", fontsize=7)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.invert_yaxis()
    return figure


def groups() -> Any:
    """Compare simulated tags of two groups that do not differ."""
    data = make_dataset("tag", individuals=16, seconds=60)
    recordings = [recording.copy(metadata={"treatment": ("saline", "drug")[k % 2]}) for k, recording in enumerate(data)]
    result = eb.compare_groups(replace(data, recordings=tuple(recordings)), "treatment", measures="share")
    figure = eb.plot.figure(WIDE, 70)
    eb.plot.group_comparison(result, figure.subplots())
    return figure


def filmstrip() -> Any:
    """Show a bout of two mice as pictures drawn from poses."""
    from ethobench.figures.filmstrips import Filmstrips

    recording = mice().recordings[0]
    truth = recording.annotations[people()[0]]
    attack = np.flatnonzero(truth.behavior == truth.ethogram.code("attack"))
    longest = attack[np.argmax((truth.stop - truth.start)[attack])]
    picture = Filmstrips(recording, size=(180, 135)).draw(int(truth.start[longest]), int(truth.stop[longest]), n=5)
    figure = eb.plot.figure(WIDE, WIDE * picture.height / picture.width)
    ax = figure.subplots()
    ax.imshow(np.asarray(picture))
    ax.set_axis_off()
    return figure


def tag() -> Any:
    """Draw the channels of a tag above the bouts of its label column."""
    recording = tags().recordings[0]
    n_frames = int(60 * recording.rate)
    figure = eb.plot.figure(WIDE, 65)
    top, bottom = figure.subplots(2, 1, height_ratios=(2, 1), sharex=True)
    seconds = np.arange(n_frames) / recording.rate
    for k, (channel, color) in enumerate(zip(recording.signals.channels[:3], ("#1b5e9b", "#00796b", "#a14413"), strict=True)):
        top.plot(seconds, recording.signals.values[:n_frames, k], color=color, linewidth=0.5, label=channel)
    top.tick_params(labelsize=6)
    top.spines[["top", "right"]].set_visible(False)
    top.legend(frameon=False, fontsize=6, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    top.set_ylabel("acceleration (g)", fontsize=7)
    eb.plot.ethogram({"label": recording.annotation().crop(0, n_frames)}, bottom)
    return figure


FIGURES: dict[str, tuple[Callable[[], Any], str]] = {
    "answer": (
        answer,
        "Bouts of a person, and of the answer of a language model, whose last 22 seconds are missing and count as unobserved",
    ),
    "agreement": (agreement, "Cohen's kappa of two annotators for each behavior, with intervals"),
    "bebe": (
        bebe,
        "Left: one fold of five selects hyper-parameters, and each of the others is tested by a model of the remaining folds. "
        "Right: F1 of each seal for four models",
    ),
    "bout": (
        bout,
        "Fourteen frames: a bout of grooming from frame 3 to 6, whose stop is 7, and an unobserved part; both ways to state its end",
    ),
    "budget": (budget, "Shares of the time of each behavior, for six animals"),
    "cell_arrays": (
        cell_arrays,
        "Two cell arrays with a header and four frames of two behaviors, and the six BANOS scores of each behavior",
    ),
    "clean": (clean, "A coordinate of a keypoint before and after cleaning"),
    "confusion": (confusion, "Confusion matrix of a random forest on animals that it has not seen"),
    "durations": (durations, "Durations of bouts of each behavior"),
    "errors": (
        errors,
        "Five predictions that are late, broken, joined, incomplete or have additional short bouts, and the four scores of each",
    ),
    "filmstrip": (filmstrip, "Five pictures of an attack of two mice, drawn from their poses"),
    "fragments": (fragments, "A prediction with a high frame F1 that breaks two bouts into many pieces"),
    "groups": (
        groups,
        "Share of time of each behavior in two groups: each animal, means, 95 % intervals and p values",
    ),
    "labs": (
        labs,
        "Which of 37 actions each of 19 laboratories labeled: most laboratories labeled few, and few actions were labeled by many",
    ),
    "leakage": (leakage, "F1 of one random forest on other animals, other parts of the same recordings, and shuffled frames"),
    "models": (
        models,
        "Frame F1 and bout F1 of five models and of chance on the rats: decoding raises bout F1 much more than frame F1",
    ),
    "motion": (
        motion,
        "Three pictures of a video of a mouse with the window that follows it, and two features: speed and turning",
    ),
    "objects": (
        objects,
        "One recording over a minute: three channels of its signals, its labels, predicted probabilities, and the bouts decoded from them",
    ),
    "prediction": (prediction, "Bouts of a person and of a random forest on an animal that it has not seen"),
    "raster": (raster, "Behaviors of six animals over time"),
    "stream": (
        stream,
        "Probability of feeding as a causal model returns it frame by frame, the true bouts, the frames with a probability above 0.5, "
        "and those at which it has been above 0.5 for half a second",
    ),
    "study": (study, "Files of poses and annotations of a folder, connected to the two recordings of the draft; notes.txt is not used"),
    "styles": (
        styles,
        "Published F1 of CalMS21: for each of five annotators before and after fine-tuning, and for seven behaviors with few examples",
    ),
    "suites": (
        suites,
        "Eight scores of one prediction in six suites: scores that count seconds or frames are about twice those that count bouts",
    ),
    "tag": (tag, "Acceleration of a tag on three axes for a minute, and the behaviors that were labeled"),
    "transitions": (transitions, "Transition probabilities between behaviors"),
    "two_raters": (two_raters, "Bouts of two annotators of one recording"),
    "zones": (zones, "Where a mouse spent its time, and a zone"),
}


def requested(text: str) -> list[str]:
    """Return the figures that a page asks for."""
    return PLACE.findall(text)


def with_figures(text: str, depth: int) -> str:
    """Replace the comments of a page by images that link to themselves, to enlarge them on phones.

    `depth` is how many folders the page is below docs/.
    """

    def image(match: re.Match[str]) -> str:
        file = f"{'../' * depth}{FOLDER}/{match[1]}.svg"
        return f"[![{FIGURES[match[1]][1]}]({file}){{ loading=lazy }}]({file})"

    return PLACE.sub(image, text)


def drawn(name: str) -> str:
    """Draw a figure as SVG."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        FIGURES[name][0]().savefig(buffer, format="svg", metadata={"Date": None}, facecolor="white")
    return buffer.getvalue().decode()


if __name__ == "__main__":
    for figure_name in FIGURES:
        Path(sys.argv[1], f"{figure_name}.svg").write_text(drawn(figure_name), encoding="utf-8")
        print(figure_name)
