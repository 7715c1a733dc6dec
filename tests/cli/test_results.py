"""The command `results` on the store of a small run: published scores below measured ones, CSV and JSON."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench import load_dataset
from ethobench.benchmarks.folds import fold_plan, with_folds
from ethobench.benchmarks.published import published
from ethobench.runs import Engine, Store
from tests.cli.running import ethobench

pytestmark = pytest.mark.slow  # the store is that of a run
DATA, OPTIONS = "synthetic/tag", {"individuals": 5, "seconds": 20.0}
F1_OF_RF = published("bebe").query("dataset == 'bebe/HAR' and model == 'rf' and metric == 'f1'")["value"].item()


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Return a store of the model rf under the name of BEBE's HAR, for which a score of rf is published, and of dt, for which none is."""
    created = Store(tmp_path_factory.mktemp("results") / "store")
    data = with_folds(load_dataset(DATA, **OPTIONS))
    shared = {"dataset": "bebe/HAR", "source": DATA, "options": OPTIONS, "suites": ("bebe",), "skip_first": True}
    plans = [fold_plan("bebe", data, "rf", params={"trees": 5}, **shared), fold_plan("bebe", data, "dt", **shared)]
    assert not Engine(created, lambda: ThreadPoolExecutor(1), 1).run(plans).failed
    return created


def test_published_scores_are_below_measured_ones(store):
    done = ethobench("results", store.root, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    models = [line.split()[0] for line in lines if line.strip().startswith(("rf", "dt", "published"))]
    assert models.index("published") == models.index("rf") + 1
    assert models.count("published") == 1
    row = next(line for line in lines if line.strip().startswith("published"))
    assert f"{F1_OF_RF:.3f}".lstrip("0") in row


def test_csv_and_json_have_the_published_score(store, tmp_path):
    path = tmp_path / "results.csv"
    done = ethobench("results", store.root, "--json", "--csv", path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(row["model"], row["metric"]) for row in lines] == [(row["model"], row["metric"]) for row in rows]
    for line, row in zip(lines, rows, strict=True):
        is_published = (row["model"], row["metric"]) == ("rf", "f1")
        assert row["published"] == (F1_OF_RF if is_published else None)
        assert line["published"] == (str(F1_OF_RF) if is_published else "")
        assert float(line["mean"]) == pytest.approx(row["mean"])
