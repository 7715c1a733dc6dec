"""The colors: legible on the page, and apart for people who do not see all of them."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

CSS = (files("ethobench.reports") / "static" / "report.css").read_text(encoding="utf-8")
PAIRS = dict(re.findall(r"^  --([\w-]+): light-dark\((#\w{6}, #\w{6})\);$", CSS, re.MULTILINE))

# Machado, Oliveira and Fernandes 2009, severity 1; on linear RGB
EYES = {
    "all colors": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
)
TO_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099], [0.0259040371, 0.7827717662, -0.8086757660]]
)


def linear(name: str, theme: int) -> np.ndarray:
    text = PAIRS[name].split(", ")[theme]
    value = np.array([int(text[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str, theme: int) -> float:
    light, dark = sorted((linear(name, theme) @ [0.2126, 0.7152, 0.0722] for name in (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def distance(first: str, second: str, theme: int, eyes: np.ndarray) -> float:
    perceived = [np.clip(linear(name, theme) @ eyes.T, 0, 1) for name in (first, second)]
    labs = [np.cbrt(rgb @ TO_CONES.T) @ TO_LAB.T for rgb in perceived]
    return float(np.linalg.norm(labs[0] - labs[1]))


BEHAVIORS = [f"behavior-{k}" for k in range(8)]
THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


@THEMES
def test_text_has_a_contrast_of_at_least_4_and_a_half(theme):
    for ground in ("page", "raised"):
        for text in ("ink", "muted", "accent"):
            assert contrast(text, ground, theme) >= 4.5, (text, ground)
    for k in range(5):
        assert contrast(f"on-part-{k}", f"part-{k}", theme) >= 4.5, k


@THEMES
def test_behaviors_have_a_contrast_of_at_least_3_to_the_page_and_stand_out_of_their_lane(theme):
    for name in BEHAVIORS:
        assert contrast(name, "page", theme) >= 3, name
        assert contrast(name, "lane", theme) >= 2, name


@THEMES
@pytest.mark.parametrize("eyes", EYES)
def test_colors_of_behaviors_are_distinguishable_with_color_blindness(theme, eyes):
    """A distance of 0.02 in OKLab is about the least that people notice."""
    least = 0.06 if eyes == "no blue" else 0.1
    for first, second in combinations(BEHAVIORS, 2):
        assert distance(first, second, theme, EYES[eyes]) >= least, (first, second)


@THEMES
@pytest.mark.parametrize("eyes", EYES)
def test_colors_of_error_kinds_are_distinguishable_with_color_blindness(theme, eyes):
    for first, second in combinations([f"part-{k}" for k in range(5)], 2):
        assert distance(first, second, theme, EYES[eyes]) >= 0.06, (first, second)


def least_distance(names) -> float:
    """Return the smallest distance between two of these colors, for the theme and eyes for which it is smallest."""
    scale = {"no blue": 0.6}  # where all colors are closer together
    return min(
        distance(first, second, theme, matrix) / scale.get(eyes, 1)
        for first, second in combinations(names, 2)
        for theme in (0, 1)
        for eyes, matrix in EYES.items()
    )


@pytest.mark.parametrize("count", [3, 4, 5])
def test_the_first_colors_are_those_that_differ_most(count):
    """They go to the behaviors that take the most time (`Occurrence.color_indices`)."""
    assert least_distance(BEHAVIORS[:count]) == max(map(least_distance, combinations(BEHAVIORS, count)))


@THEMES
def test_the_viewer_has_the_same_colors(theme):
    script = (files("ethobench.app") / "static" / "palette.js").read_text(encoding="utf-8")
    (listed,) = re.findall(rf"^  {('light', 'dark')[theme]}: \[(.*)\],$", script, re.MULTILINE)
    assert re.findall(r"#\w{6}", listed) == [PAIRS[name].split(", ")[theme] for name in BEHAVIORS]
