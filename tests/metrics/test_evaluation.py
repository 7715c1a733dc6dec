"""Statistics of recordings, stored and combined."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation


@pytest.mark.slow
def test_states_bring_everything_back():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(4) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "bebe"):
        whole = eb.score(pairs, suite=suite)
        halves = [eb.score({n: pairs[n] for n in names}, suite=suite).to_state() for names in (["r0", "r1"], ["r2", "r3"])]
        again = eb.Scores.from_states(halves)
        assert again.overall == pytest.approx(whole.overall, nan_ok=True)
        assert again.intervals["overall"].keys() == whole.intervals["overall"].keys()
