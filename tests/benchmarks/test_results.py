"""One store, several tries of one model: each is told apart, and none is counted twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import own, results, results_table
from ethobench.benchmarks.results import final_jobs
from ethobench.models.chance import Chance
from ethobench.runs import Engine, Store

DATA = "synthetic/tag"
OPTIONS = {"individuals": 4, "seconds": 30.0}


def run(store: Store, **told) -> None:
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(list(own.plans(DATA, ["chance"], options=OPTIONS, **told)))
    assert not outcome.failed


def shown(store: Store) -> dict[str, int]:
    return {row["setting"]: row["n"] for row in results_table(store) if row["metric"] == "f1"}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "s")


def test_one_try_keeps_its_plain_setting(store):
    run(store)
    assert shown(store) == {"full": 4}


def test_other_hyper_parameters_are_told_apart(store):
    run(store)
    run(store, params={"chance": {"kind": "majority"}})
    assert shown(store) == {"full": 4, "full, kind majority": 4}


def test_other_seeds_are_told_apart(store):
    run(store)
    run(store, seed=7)
    assert shown(store) == {"full": 4, "full, seed 7": 4}


def test_an_earlier_revision_is_left_out(store, monkeypatch):
    run(store)
    monkeypatch.setattr(Chance, "revision", Chance.revision + 1)
    run(store)
    assert shown(store) == {"full": 4}
    assert {found["job"]["revision"] for found in final_jobs(store)} == {Chance.revision}


def test_data_that_changed_are_told_apart(store, monkeypatch):
    run(store)
    first = {found["job"]["version"] for found in final_jobs(store)}
    monkeypatch.setitem(OPTIONS, "seconds", 40.0)
    run(store)
    assert len(shown(store)) == 2
    assert any(next(iter(first)) in setting for setting in shown(store))


def test_a_run_can_be_looked_at_alone(store):
    run(store)
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(list(own.plans(DATA, ["chance"], options=OPTIONS, seed=7)))
    assert len(outcome.keys) == 4
    assert {row["setting"] for row in results_table(store, only=outcome.keys)} == {"full"}
    alone = own.evaluation(store, "chance", outcome.keys)["scores"]
    rows = {row["metric"]: row["mean"] for row in results_table(store) if row["setting"] == "full, seed 7"}
    assert alone["f1"] == pytest.approx(rows["f1"])


def test_wrong_hyper_parameters_stop_a_plan_before_its_jobs(store):
    plans = list(own.plans(DATA, ["chance"], options=OPTIONS, params={"chance": {"kind": "magic"}}))
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(plans)
    assert not outcome.failed
    assert "not 'magic'" in outcome.broken[0]


def test_two_recipes_of_one_benchmark_are_not_pooled():
    shared = {"benchmark": "calms21", "dataset": "calms21/task2", "setting": "annotator-id_1, fine-tuned", "fold": 0, "stage": "final"}
    jobs = {
        f"{recipe}{seed}{revision}": {
            **shared, "model": "conv1d", "params": {"recipe": recipe}, "seed": seed, "annotator": None, "version": "v", "revision": revision
        }
        for recipe in ("paper", "code")
        for seed in (42, 43)
        for revision in (1, 2)
    }  # fmt: skip
    told = results._told_apart(jobs)
    assert {key: name["model"] for key, name in told.items()} == {
        f"{recipe}{seed}2": f"conv1d, recipe {recipe}" for recipe in ("paper", "code") for seed in (42, 43)
    }
    assert {name["setting"] for name in told.values()} == {shared["setting"]}
