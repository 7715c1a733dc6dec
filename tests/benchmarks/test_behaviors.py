"""Behaviors under two settings, and claims of papers beside what a store shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

from ethobench.benchmarks import results_table
from ethobench.benchmarks.behaviors import behaviors_table, compare_settings, summarize_comparison
from ethobench.benchmarks.claims import claims_table
from ethobench.benchmarks.folds import all_others, fold_plan, one_before
from ethobench.benchmarks.own import with_folds
from ethobench.cli import app
from ethobench.core.errors import NotFoundError
from ethobench.datasets import load_dataset
from ethobench.runs import Engine, Store

pytestmark = pytest.mark.slow

OPTIONS = {"individuals": 4, "seconds": 60.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Hold two settings of one model, as BEBE's protocol names them."""
    found = Store(tmp_path_factory.mktemp("store"))
    data = with_folds(load_dataset("synthetic/tag", **OPTIONS), 4)
    shared = {"dataset": "synthetic/tag", "options": OPTIONS, "suites": ("bebe", "ethobench")}
    plans = [
        fold_plan("bebe", data, "rf", params={"trees": 5, "seconds": 1.0}, train_folds=folds, setting=setting, **shared)
        for setting, folds in (("full", all_others), ("reduced", one_before))
    ]
    outcome = Engine(found, lambda: ThreadPoolExecutor(1), 1).run(plans)
    assert (outcome.done, outcome.failed) == (8, {})
    return found


def test_every_behavior_has_its_row(store):
    rows = behaviors_table(store, ["f1"])
    data = load_dataset("synthetic/tag", **OPTIONS)
    found = [row for row in rows if (row["setting"], row["suite"]) == ("full", "bebe")]
    assert [row["behavior"] for row in found] == list(data.ethogram.names)
    overall = next(r["mean"] for r in results_table(store) if (r["setting"], r["suite"], r["metric"]) == ("full", "bebe", "f1"))
    assert np.mean([row["value"] for row in found]) == pytest.approx(overall)


def test_settings_are_compared_behavior_by_behavior(store):
    rows = [row for row in compare_settings(store) if row["suite"] == "bebe"]
    values = {(r["setting"], r["behavior"]): r["value"] for r in behaviors_table(store, ["f1"]) if r["suite"] == "bebe"}
    assert len(rows) == len(values) / 2
    for row in rows:
        assert row["difference"] == pytest.approx(values["full", row["behavior"]] - values["reduced", row["behavior"]])
    (summary,) = summarize_comparison(rows)
    pairs = np.array([[row["reduced"], row["full"]] for row in rows])
    assert summary["correlation"] == pytest.approx(np.corrcoef(pairs.T)[0, 1])
    assert summary["median_difference"] == pytest.approx(np.median(pairs[:, 1] - pairs[:, 0]))


def test_settings_that_are_not_there(store):
    with pytest.raises(NotFoundError, match="under both 'full' and 'tiny'"):
        compare_settings(store, ("full", "tiny"))


def test_tables_of_the_command(store):
    for table, told in (("behaviors", "value"), ("settings", "correlation"), ("claims", "0.069")):
        shown = CliRunner().invoke(app, ["results", str(store.root), "--table", table])
        assert shown.exit_code == 0, shown.output
        assert told in shown.output
    with pytest.raises(NotFoundError, match="holds nothing for the table 'styles'"):
        CliRunner().invoke(app, ["results", str(store.root), "--table", "styles"], catch_exceptions=False)
    assert CliRunner().invoke(app, ["results", str(store.root), "--table", "nonsense"]).exit_code == 2


def test_claims_stand_beside_what_the_store_shows(store):
    claims = {row["claim"]: row for row in claims_table(store)}
    figures = {r["setting"]: r["mean"] for r in results_table(store) if (r["suite"], r["metric"]) == ("bebe", "f1")}
    loss = claims["F1 lost with little data: rf"]
    assert loss["published"] == "0.069"
    assert float(loss["ours"]) == pytest.approx(figures["full"] - figures["reduced"], abs=5e-4)
    assert loss["datasets"] == 1
    assert claims["F1 lost with little data: crnn"]["ours"] is None
    assert claims["F1 of crnn on HAR fold 1"]["ours"] is None
    assert all(row["source"] for row in claims.values())
