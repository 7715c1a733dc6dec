"""Whether more labels would help."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import learning_curve, own
from ethobench.benchmarks.behaviors import behaviors_table
from ethobench.runs import Engine, Store

PARAMS = {"trees": 5, "seconds": 1.0}


@pytest.mark.slow
def test_curves_grow_by_whole_individuals_and_end_with_all(tmp_path):
    store = Store(tmp_path / "s")
    planned = [*own.plans("synthetic/tag", ["rf"], params={"rf": PARAMS})]
    planned += learning_curve.plans("synthetic/tag", "rf", params=PARAMS, shares=(0.2, 0.5))  # a fifth of six is one of them
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(planned)
    assert (outcome.done, outcome.failed) == (3 * 4, {})
    jobs = [store.job(key) for key in store.finished()]
    for fold in range(4):
        few, half, whole = (
            next({*j["train"]} for j in jobs if j["fold"] == fold and j["setting"].startswith(start))
            for start in ("16.7%", "50.0%", "full")
        )
        assert few < half < whole
    rows = learning_curve.curve_table(store)
    full = {r["behavior"]: r["value"] for r in behaviors_table(store, ["f1"]) if r["setting"] == "full"}
    assert {r["behavior"]: r["f1_100%"] for r in rows} == full
    assert {"f1_16.7%", "f1_50%", "gained", "more_labels"} < {*rows[0]}


def test_a_flat_curve_says_so():
    rising = learning_curve._row("d", "m", "b", {0.25: 0.5, 0.5: 0.6, 1.0: 0.7})
    flat = learning_curve._row("d", "m", "b", {0.25: 0.7, 0.5: 0.7, 1.0: 0.701})
    assert rising["gained"] == pytest.approx(0.1)
    assert (rising["more_labels"], flat["more_labels"]) == ("would help", "would hardly help")
    assert learning_curve._row("d", "m", "b", {1.0: 0.7})["more_labels"] is None
