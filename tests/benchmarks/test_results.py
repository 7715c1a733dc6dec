"""Results of a store with several jobs of one model: variations are distinguished, and nothing is counted twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import results_table
from ethobench.benchmarks.results import final_jobs, label_variations
from ethobench.benchmarks.study import study_plan, summarize_cross_validation
from ethobench.models.chance import Chance
from ethobench.runs import Engine, Job, Setting, Store

DATA = "synthetic/tag"
OPTIONS = {"individuals": 4, "seconds": 10.0}


def run(store: Store, **arguments):
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1).run([study_plan(DATA, "chance", options=OPTIONS, **arguments)])
    assert not summary.failed
    return summary


def shown(store: Store) -> dict[str, int]:
    return {row["setting"]: row["n"] for row in results_table(store) if row["metric"] == "f1"}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "s")


def test_a_single_variation_keeps_its_plain_setting(store):
    run(store)
    assert shown(store) == {"full": 4}


@pytest.mark.slow
def test_hyper_parameters_are_distinguished(store):
    run(store)
    run(store, params={"kind": "majority"})
    assert shown(store) == {"full": 4, "full, kind majority": 4}


@pytest.mark.slow
def test_seeds_are_distinguished(store):
    run(store)
    run(store, seed=7)
    assert shown(store) == {"full": 4, "full, seed 7": 4}


@pytest.mark.slow
def test_an_earlier_revision_is_skipped(store, monkeypatch):
    run(store)
    monkeypatch.setattr(Chance, "revision", Chance.revision + 1)
    run(store)
    assert shown(store) == {"full": 4}
    assert {finished.job.revision for finished in final_jobs(store)} == {Chance.revision}


@pytest.mark.slow
def test_versions_of_the_data_are_distinguished(store, monkeypatch):
    run(store)
    first = {finished.job.version for finished in final_jobs(store)}
    monkeypatch.setitem(OPTIONS, "seconds", 40.0)
    run(store)
    assert len(shown(store)) == 2
    assert any(next(iter(first)) in setting for setting in shown(store))


def test_results_of_a_single_run(store):
    run(store)
    summary = run(store, seed=7)
    assert len(summary.keys) == 4
    assert {row["setting"] for row in results_table(store, only=summary.keys)} == {"full"}
    alone = summarize_cross_validation(store, "chance", summary.keys)["scores"]
    rows = {row["metric"]: row["mean"] for row in results_table(store) if row["setting"] == "full, seed 7"}
    assert alone["f1"] == pytest.approx(rows["f1"])


def test_wrong_hyper_parameters_stop_a_plan_before_its_jobs(store):
    summary = run(store, params={"kind": "magic"})
    assert "'magic'" in summary.failed_plans[0]


def test_two_recipes_of_one_benchmark_are_not_pooled():
    setting = Setting("", annotator="annotator-id_1", transfer="fine-tuned")
    jobs = {
        f"{recipe}{seed}{revision}": Job(
            "calms21", "calms21/task2", "v", (), (), "conv1d", revision, {"recipe": recipe}, seed=seed, setting=setting
        )
        for recipe in ("paper", "code")
        for seed in (42, 43)
        for revision in (1, 2)
    }
    labeled = label_variations(jobs)
    assert {key: job.model for key, job in labeled.items()} == {
        f"{recipe}{seed}2": f"conv1d, recipe {recipe}" for recipe in ("paper", "code") for seed in (42, 43)
    }
    assert {job.setting for job in labeled.values()} == {setting}
    assert str(setting) == "annotator-id_1, fine-tuned"
