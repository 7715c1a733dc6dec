"""Tables of any store: comparison of models on the same recordings with paired intervals, comparison of stores, and the tables by name."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from inspect import getdoc

import pytest
from typer.testing import CliRunner

from ethobench import load_dataset
from ethobench.benchmarks import results_table
from ethobench.benchmarks.base import benchmark_tables
from ethobench.benchmarks.folds import fold_plan, with_folds
from ethobench.benchmarks.study import study_plan
from ethobench.benchmarks.tables import COMPARISON_COLUMNS, GENERAL_TABLES, compare_stores, comparison_table, find_table
from ethobench.cli import app, results
from ethobench.core.errors import NotFoundError
from ethobench.runs import Engine, Store

DATA, OPTIONS = "synthetic/tag", {"individuals": 8, "seconds": 60.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    created = Store(tmp_path_factory.mktemp("compare") / "s")
    plans = [study_plan(DATA, "chance", options=OPTIONS, params=params) for params in ({}, {"kind": "majority"})]
    data = with_folds(load_dataset(DATA, **OPTIONS))
    plans.append(fold_plan("own", data, "dt", dataset=data.name, source=DATA, options=OPTIONS, skip_first=True))
    assert not Engine(created, lambda: ThreadPoolExecutor(1), 1).run(plans).failed
    return created


@pytest.mark.slow
def test_all_models_are_compared_with_the_best(store):
    rows = comparison_table(store, metrics=["f1"])
    assert [tuple(row) for row in rows] == [COMPARISON_COLUMNS] * 2
    assert {row["setting"]: row["against"] for row in rows} == {"full": "dt", "full, kind majority": "dt, full"}
    for row in rows:
        assert row["n"] == 6  # the first fold was not tested on one side
        assert row["reason"] is None
        assert row["difference"] == pytest.approx(row["value"] - row["other"])
        assert row["low"] <= row["difference"] <= row["high"]
        assert 0 < row["better"] < 1


@pytest.mark.slow
def test_comparison_with_a_named_model(store):
    rows = comparison_table(store, "chance", ["f1"])
    assert {(row["model"], row["setting"], row["against"]) for row in rows} == {
        ("dt", "full", "chance"),
        ("dt", "full", "chance, full, kind majority"),
        ("chance", "full", "chance, full, kind majority"),
        ("chance", "full, kind majority", "chance, full"),
    }
    differences = {(row["setting"], row["against"]): row["difference"] for row in rows if row["model"] == "chance"}
    assert differences["full", "chance, full, kind majority"] == pytest.approx(-differences["full, kind majority", "chance, full"])


@pytest.mark.slow
def test_an_unknown_model_is_refused(store):
    with pytest.raises(NotFoundError, match="no model 'crnn' to compare with"):
        comparison_table(store, "crnn")


@pytest.mark.slow
def test_stores_are_compared(store, tmp_path):
    shutil.copytree(store.root, tmp_path / "other")
    other = Store(tmp_path / "other")
    for key in [key for key in other.finished() if other.job(key).model == "dt"]:
        shutil.rmtree(other.folder(key))
    rows = compare_stores({"a": store, "b": other}, ["f1"])
    expected = {(row["model"], row["setting"]): row["mean"] for row in results_table(store) if row["metric"] == "f1"}
    assert {(row["model"], row["setting"]): row["a"] for row in rows} == expected
    for row in rows:
        is_missing = row["model"] == "dt"
        assert row["b"] == (None if is_missing else row["a"])
        assert row["difference"] == (None if is_missing else 0.0)
    shown = CliRunner().invoke(app, ["results", str(store.root), str(other.root), "--metrics", "f1", "--json"])
    assert shown.exit_code == 0, shown.output
    names = {"a": str(store.root), "b": str(other.root)}
    assert json.loads(shown.stdout) == [{names.get(key, key): value for key, value in row.items()} for row in rows]
    table = CliRunner().invoke(app, ["results", str(store.root), str(other.root), "--table", "behaviors", "--json"])
    assert {row["store"] for row in json.loads(table.stdout)} == {*names.values()}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--sql", "select 1"), ("--latex",), ("--timings",), ("--against", "rf"), ("--table", "nonsense")])
def test_options_that_would_be_ignored_are_refused(store, arguments):
    assert CliRunner().invoke(app, ["results", str(store.root), str(store.root), *arguments]).exit_code == 2


def test_every_table_is_found_by_name_and_described_in_the_help():
    names = [*(table.name for table in GENERAL_TABLES), *benchmark_tables()]
    assert len(names) == len({*names}) == 13
    help_text = " ".join(getdoc(results.run).split())
    for name in names:
        assert find_table(name).title
        assert f"[bold]{name}[/bold]" in help_text
