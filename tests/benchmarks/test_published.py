"""Published scores as a table, in Python and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ethobench as eb
from ethobench.benchmarks.base import benchmarks
from ethobench.benchmarks.published import CLAIM_FILE, COLUMNS, FILE, read_rows
from ethobench.cli import app
from ethobench.core.errors import NotFoundError
from ethobench.metrics.suites import suites


@pytest.mark.parametrize("file", [FILE, CLAIM_FILE])
def test_rows_have_a_cell_in_every_column(file):
    for row in read_rows(file):
        assert None not in row, f"more cells than columns (a comma without quotes?): {row}"
        assert None not in row.values(), f"fewer cells than columns: {row}"


def test_every_benchmark_has_a_table():
    everything = eb.published()
    assert tuple(everything.columns) == COLUMNS
    assert not everything.duplicated(["benchmark", "dataset", "model", "setting", "suite", "metric"]).any()
    for name in benchmarks.names():
        assert len(eb.published(name)) == (everything["benchmark"] == name).sum()
    assert {"bebe", "calms21"} <= {*everything["benchmark"]}
    with pytest.raises(NotFoundError, match="no benchmark 'beeb'; did you mean 'bebe'"):
        eb.published("beeb")


def test_values_are_numbers_of_metrics_that_exist():
    scores = eb.published()
    assert scores["value"].between(0, 1).all()
    assert scores["source"].str.len().min() > 0
    measured = scores[scores["dataset"] != ""]
    for row in measured.itertuples():
        name, _, behavior = row.metric.partition(" of ")
        assert name in {m.name for m in suites[row.suite].measures} or (behavior and name in ("f1", "precision", "recall"))


def test_known_values():
    bebe = eb.published("bebe").set_index(["dataset", "model", "metric"])
    assert bebe.loc[("bebe/HAR", "rf", "f1"), ["value", "std"]].tolist() == [0.925, 0.066]
    assert bebe.loc[("", "harnet", "F1 lost with little data: harnet"), "value"] == 0.056
    calms21 = eb.published("calms21").set_index(["dataset", "setting", "suite", "metric"])
    assert calms21.loc[("calms21/task3", "all behaviors, fine-tuned", "calms21", "macro_f1"), ["value", "std"]].tolist() == [0.3378, 0.0042]
    assert calms21.loc[("calms21/task1", "baseline, seed 42 of BANOS", "banos", "so"), "value"] == 0.5378
    assert np.isnan(calms21.loc[("calms21/task1", "baseline, seed 42 of BANOS", "banos", "so"), "std"])


def test_the_command_prints_and_writes_the_same_table(tmp_path):
    expected = eb.published("calms21")
    rows = json.loads(CliRunner().invoke(app, ["published", "calms21", "--json"]).stdout)
    pd.testing.assert_frame_equal(pd.DataFrame(rows).astype(expected.dtypes), expected)
    path = tmp_path / "published.csv"
    printed = CliRunner().invoke(app, ["published", "calms21", "--csv", str(path)]).stdout
    pd.testing.assert_frame_equal(pd.read_csv(path), expected)
    assert ".793 ± .011" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "no scores are published as numbers for rodentbench" in CliRunner().invoke(app, ["published", "rodentbench"]).stdout
    assert CliRunner().invoke(app, ["published", "--csv", str(path)]).exit_code == 1  # exists
