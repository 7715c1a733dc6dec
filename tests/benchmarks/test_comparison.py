"""Whether one model is better than another: the same recordings on both sides, paired intervals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench import load_dataset
from ethobench.benchmarks import own
from ethobench.benchmarks.comparison import COLUMNS, comparison_table
from ethobench.benchmarks.folds import fold_plan
from ethobench.core.errors import NotFoundError
from ethobench.runs import Engine, Store

DATA, OPTIONS = "synthetic/tag", {"individuals": 8, "seconds": 60.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    place = Store(tmp_path_factory.mktemp("compare") / "s")
    tries = ({}, {"chance": {"kind": "majority"}})
    plans = [plan for params in tries for plan in own.plans(DATA, ["chance"], options=OPTIONS, params=params)]
    data = own.with_folds(load_dataset(DATA, **OPTIONS))
    plans.append(fold_plan("own", data, "dt", dataset=data.name, source=DATA, options=OPTIONS, skip_first=True))
    assert not Engine(place, lambda: ThreadPoolExecutor(1), 1).run(plans).failed
    return place


def test_everything_is_compared_with_the_best(store):
    rows = comparison_table(store, metrics=["f1"])
    assert [tuple(row) for row in rows] == [COLUMNS] * 2
    assert {row["setting"]: row["against"] for row in rows} == {"full": "dt", "full, kind majority": "dt, full"}
    for row in rows:
        assert row["n"] == 6  # the first fold was left out on one side
        assert row["reason"] is None
        assert row["difference"] == pytest.approx(row["value"] - row["other"])
        assert row["low"] <= row["difference"] <= row["high"]
        assert 0 < row["better"] < 1


def test_against_a_model_by_name(store):
    rows = comparison_table(store, "chance", ["f1"])
    assert {(row["model"], row["setting"], row["against"]) for row in rows} == {
        ("dt", "full", "chance"),
        ("dt", "full", "chance, full, kind majority"),
        ("chance", "full", "chance, full, kind majority"),
        ("chance", "full, kind majority", "chance, full"),
    }
    turned = {(row["setting"], row["against"]): row["difference"] for row in rows if row["model"] == "chance"}
    assert turned["full", "chance, full, kind majority"] == pytest.approx(-turned["full, kind majority", "chance, full"])


def test_a_model_that_is_not_there_is_named(store):
    with pytest.raises(NotFoundError, match="no model 'crnn' to compare with"):
        comparison_table(store, "crnn")
