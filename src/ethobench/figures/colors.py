"""Colors of behaviors and animals, as in the viewer."""

from __future__ import annotations

from collections.abc import Iterable

from ethobench.core import Annotation
from ethobench.core.ethogram import join_ethograms
from ethobench.core.notebook_html import BACKGROUND, BEHAVIORS, LANE
from ethobench.core.occurrence import Occurrence

__all__ = ["ANIMALS", "BACKGROUND", "BEHAVIORS", "LANE", "Color", "behavior_colors", "palette_color", "rgb"]

Color = tuple[int, int, int]

ANIMALS = ("#7fb0ff", "#ff9f6b", "#5fd6c4", "#d8a4ff")
"""Colors of animals that are legible on a video and on a dark ground."""

PALE = 0.55  # share of the color from the ninth behavior on; the rest is the color of the lane


def rgb(color: str) -> Color:
    """Return red, green and blue of a color such as ``"#244bbf"``."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def behavior_colors(annotations: Iterable[Annotation], theme: str = "dark") -> dict[str, Color]:
    """Assign a color to each behavior of some annotations: the first colors to the behaviors with the longest total duration.

    Parameters
    ----------
    annotations : iterable of Annotation
    theme : {"dark", "light"}
        Whether the colors are drawn on a dark ground (videos) or on white (timelines).

    Examples
    --------
    >>> labels = Annotation.from_frames([0, 0, 1], ["rest", "run"], rate=1)
    >>> behavior_colors([labels], "light")
    {'rest': (36, 75, 191), 'run': (155, 70, 28)}
    """
    annotations = list(annotations)
    ethogram = join_ethograms(annotation.ethogram for annotation in annotations)
    return {name: palette_color(index, theme) for name, index in Occurrence.count(ethogram, annotations, []).color_indices().items()}


def palette_color(index: int | None, theme: str) -> Color:
    """Return the color of the behavior with this index in the palette; None is the background."""
    if index is None:
        return rgb(BACKGROUND[theme])
    base = BEHAVIORS[theme]
    r, g, b = rgb(base[index % len(base)])
    if index < len(base):
        return r, g, b
    red, green, blue = rgb(LANE[theme])
    return round(PALE * r + (1 - PALE) * red), round(PALE * g + (1 - PALE) * green), round(PALE * b + (1 - PALE) * blue)
