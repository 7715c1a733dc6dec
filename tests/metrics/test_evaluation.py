"""Statistics of recordings, stored and combined."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation


def test_states_restore_all_scores():
    pairs = {f"r{k}": (Annotation.from_frames(np.roll(c, 2), ["x", "y", "z"], 5), Annotation.from_frames(c, ["x", "y", "z"], 5))
             for k in range(4) for c in [np.random.default_rng(k).integers(0, 3, 12).repeat(6)]}  # fmt: skip
    for suite in ("ethobench", "bebe"):
        complete = eb.score(pairs, suite=suite)
        halves = [eb.score({n: pairs[n] for n in names}, suite=suite).to_state() for names in (["r0", "r1"], ["r2", "r3"])]
        restored = eb.Scores.from_states(halves)
        assert restored.overall == pytest.approx(complete.overall, nan_ok=True)
        assert restored.intervals["overall"].keys() == complete.intervals["overall"].keys()
