"""Behaviors under two settings, and claims of papers with the numbers of a store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

from ethobench.benchmarks import results_table
from ethobench.benchmarks.bebe_tables import claims_table, compare_settings, summarize_comparison
from ethobench.benchmarks.folds import all_other_folds, fold_plan, previous_fold, with_folds
from ethobench.benchmarks.tables import behaviors_table
from ethobench.cli import app
from ethobench.core.errors import NotFoundError
from ethobench.datasets import load_dataset
from ethobench.runs import Engine, Setting, Store

pytestmark = pytest.mark.slow

OPTIONS = {"individuals": 4, "seconds": 60.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with two settings of one model, named as in BEBE."""
    created = Store(tmp_path_factory.mktemp("store"))
    data = with_folds(load_dataset("synthetic/tag", **OPTIONS), 4)
    shared = {"dataset": "synthetic/tag", "options": OPTIONS, "suites": ("bebe", "ethobench")}
    plans = [
        fold_plan("bebe", data, "rf", params={"trees": 5, "seconds": 1.0}, train_folds=folds, setting=Setting(name), **shared)
        for name, folds in (("full", all_other_folds), ("reduced", previous_fold))
    ]
    summary = Engine(created, lambda: ThreadPoolExecutor(1), 1).run(plans)
    assert (summary.done, summary.failed) == (8, {})
    return created


def test_every_behavior_has_a_row(store):
    data = load_dataset("synthetic/tag", **OPTIONS)
    rows = [row for row in behaviors_table(store, ["f1"]) if (row["setting"], row["suite"]) == ("full", "bebe")]
    assert [row["behavior"] for row in rows] == list(data.ethogram.names)
    overall = next(r["mean"] for r in results_table(store) if (r["setting"], r["suite"], r["metric"]) == ("full", "bebe", "f1"))
    assert np.mean([row["value"] for row in rows]) == pytest.approx(overall)


def test_settings_are_compared_by_behavior(store):
    rows = [row for row in compare_settings(store) if row["suite"] == "bebe"]
    values = {(r["setting"], r["behavior"]): r["value"] for r in behaviors_table(store, ["f1"]) if r["suite"] == "bebe"}
    assert len(rows) == len(values) / 2
    for row in rows:
        assert row["difference"] == pytest.approx(values["full", row["behavior"]] - values["reduced", row["behavior"]])
    (summary,) = summarize_comparison(rows)
    pairs = np.array([[row["reduced"], row["full"]] for row in rows])
    assert summary["correlation"] == pytest.approx(np.corrcoef(pairs.T)[0, 1])
    assert summary["median_difference"] == pytest.approx(np.median(pairs[:, 1] - pairs[:, 0]))


def test_settings_without_results_are_refused(store):
    with pytest.raises(NotFoundError, match="under both 'full' and 'tiny'"):
        compare_settings(store, ("full", "tiny"))


def test_tables_of_the_command(store):
    for table, text in (("behaviors", "value"), ("settings", "correlation"), ("claims", "0.069")):
        shown = CliRunner().invoke(app, ["results", str(store.root), "--table", table])
        assert shown.exit_code == 0, shown.output
        assert text in shown.output
    with pytest.raises(NotFoundError, match="contains nothing for the table 'styles'"):
        CliRunner().invoke(app, ["results", str(store.root), "--table", "styles"], catch_exceptions=False)


def test_claims_are_compared_with_the_results_of_the_store(store):
    claims = {row["claim"]: row for row in claims_table(store)}
    f1 = {r["setting"]: r["mean"] for r in results_table(store) if (r["suite"], r["metric"]) == ("bebe", "f1")}
    loss = claims["F1 lost with little data: rf"]
    assert loss["published"] == "0.069"
    assert float(loss["ours"]) == pytest.approx(f1["full"] - f1["reduced"], abs=5e-4)
    assert loss["datasets"] == 1
    assert claims["F1 lost with little data: crnn"]["ours"] is None
    assert claims["F1 of crnn on HAR fold 1"]["ours"] is None
    assert all(row["source"] for row in claims.values())
