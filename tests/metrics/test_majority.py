"""Consensus of annotators."""

from __future__ import annotations

import ethobench as eb
from ethobench import Annotation, Behavior, Ethogram
from ethobench.core import intervals as iv
from ethobench.core.observed import Observed, Track

of = Annotation.from_bouts


def test_consensus_keeps_points_and_partial_observation():
    ethogram = Ethogram([Behavior("bite", point=True), "a", "b"])
    a = of([10, 20], [10, 40], [0, 1], ethogram, 10, 100)
    b = of([12, 22], [12, 40], [0, 1], ethogram, 10, 100)
    agreed = eb.consensus({"x": a, "y": b})
    assert agreed.spans("bite").start.tolist() == [11]
    assert agreed.spans("a").start.tolist() == [22]
    hidden = Observed(iv.full(100), {Track("b"): iv.empty()})
    partly = eb.consensus({"x": a.with_observed(hidden), "y": b.with_observed(hidden)})
    assert iv.total(partly.observed.of("a")) == 100
    assert iv.total(partly.observed.of("b")) == 0
