"""Generated data and predictions that several figures of the guide show."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import ethobench as eb
from ethobench.datasets.synthetic import ANNOTATORS, make_dataset

WIDE = 150  # mm
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
INK, MUTED, PALE = "#1b2129", "#5b6570", "#e7e9ec"
BLUE, TEAL, BROWN = "#1d5fc4", "#00796b", "#b1491a"  # blue and brown as in `eb.plot`


@cache
def mice() -> Any:
    """Return poses of two mice, annotated by two simulated people."""
    return make_dataset("pose", individuals=6, seconds=90, annotators=ANNOTATORS)


@cache
def tags() -> Any:
    """Return tags of six animals."""
    return make_dataset("tag", individuals=6, seconds=240)


@cache
def forest() -> Any:
    """Return the predictions of a small forest for half of the mice, trained on the other half."""
    data = mice()
    first = ANNOTATORS[0].name
    names = [recording.id for recording in data]
    model = eb.create_model("rf", trees=20, seconds=1.0).fit(data.select(recordings=names[:3]), annotator=first)
    return {recording.id: model.predict(recording) for recording in data.select(recordings=names[3:])}


def people() -> tuple[str, str]:
    """Return the names of the two simulated annotators."""
    first, second = (annotator.name for annotator in ANNOTATORS)
    return first, second


def plain(*axes: Any, size: float = 6) -> None:
    """Remove the frame above and to the right of axes, and make the numbers small."""
    for ax in axes:
        ax.tick_params(labelsize=size)
        ax.spines[["top", "right"]].set_visible(False)


def box(x: float, y: float, width: float, height: float, color: str, edge: str = "none") -> Any:
    """Return a rectangle to add to axes."""
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=color, edgecolor=edge, linewidth=0.7)
