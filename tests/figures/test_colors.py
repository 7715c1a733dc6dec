"""Colors of clips and timelines are those of the viewer."""

from __future__ import annotations

import re
from importlib.resources import files

from ethobench import Annotation, Ethogram
from ethobench.figures.colors import ANIMALS, BACKGROUND, BEHAVIORS, behavior_colors

STATIC = files("ethobench.app") / "static"


def test_the_palette_is_that_of_the_viewer():
    script = (STATIC / "palette.js").read_text(encoding="utf-8")
    for theme, colors in BEHAVIORS.items():
        line = next(line for line in script.splitlines() if line.strip().startswith(f"{theme}: ["))
        assert tuple(re.findall(r"#\w{6}", line)) == colors
        assert f'{theme}: "{BACKGROUND[theme]}"' in script
    style = (STATIC / "viewer.css").read_text(encoding="utf-8")
    assert all(color in style for color in ANIMALS)


def test_sixteen_behaviors_have_different_colors():
    names = [f"b{i}" for i in range(16)]
    annotation = Annotation.from_frames(list(range(16)), Ethogram([*names, "other"], "other"), 1)
    assert len(set(behavior_colors([annotation]).values())) == 17
