"""The human ceiling."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording
from ethobench.core.errors import EthobenchError

NAMES = ["a", "b"]


def of(codes, **options) -> Annotation:
    return Annotation.from_frames(np.array(codes), Ethogram(NAMES), 10, **options)


def test_ceiling_matches_behaviors_by_name():
    a = Annotation.from_frames([0] * 4 + [1] * 6, ["A", "B"], 10)
    b = Annotation.from_frames([1] * 4 + [0] * 4 + [1] * 2, ["B", "A"], 10)
    m = Annotation.from_frames([0] * 10, ["A", "B"], 10)
    assert eb.ceiling({"x": a, "y": b}, model=m).of("f1", "A", "y")["model"] == pytest.approx(0.75)
    less = Annotation.from_frames([0] * 10, ["A"], 10)
    assert eb.ceiling({"x": less, "y": b}, model=less).of("f1", "A", "x")["model"] == 1
    with pytest.raises(EthobenchError, match="two annotators"):
        eb.ceiling(Dataset((Recording("r", annotations={"x": a}),), a.ethogram), model=m)


@pytest.mark.slow
def test_ceiling_distinguishes_a_good_model_from_a_bad_one():
    generator = np.random.default_rng(0)
    groups, good, bad = {}, {}, {}
    for r in range(6):
        codes = np.repeat(generator.integers(0, 3, 60), 12)
        groups[f"r{r}"] = {"x": of(codes), "y": of(np.roll(codes, 3))}
        good[f"r{r}"], bad[f"r{r}"] = of(np.roll(codes, 1)), of(np.roll(codes, 9))
    assert eb.ceiling(groups, model=good).of("f1")["reached"]
    result = eb.ceiling(groups, model=bad).of("f1")
    assert not result["reached"]
    assert result["high"] < 0
    four = {name: groups[name] for name in ("r0", "r1", "r2", "r3")}
    for model in (good, bad):
        row = eb.ceiling(four, model=model).of("f1")
        assert (row["low"], row["high"], row["reached"]) == (None, None, None)
        assert (row["n"], row["reason"]) == (4, "no interval below 5 recordings")
    rows = eb.ceiling(groups, model=good).table()
    assert set(rows["annotator"]) == {"", "x", "y"}
    assert set(rows["behavior"]) == {"", "a", "b"}
    with pytest.raises(EthobenchError, match="recordings without a prediction of the model: r5"):
        eb.ceiling(groups, model={k: v for k, v in good.items() if k != "r5"})
    with pytest.raises(EthobenchError, match="a second annotator"):
        eb.ceiling({"x": of([0, 1])}, model=of([0, 1]))
