"""Runs with real processes: nothing is done twice, nothing is lost, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ethobench import load_dataset
from ethobench.benchmarks import fold_plan, results_table
from ethobench.core.errors import EthobenchError
from ethobench.runs import Engine, Job, Store
from ethobench.runs.execute import process_pool
from ethobench.runs.perform import BUSY, DONE, FAILED, perform
from ethobench.runs.store import StoreError

OPTIONS = {"individuals": 4, "seconds": 20.0, "folds": 4}


def plan(model: str = "chance", **options):
    data = load_dataset("synthetic/tag", **OPTIONS)
    return fold_plan("synthetic", data, model, dataset="synthetic/tag", options=OPTIONS, **options)


def some_job(**changes) -> Job:
    job = next(plan())[0]
    return Job.from_dict({**job.to_dict(), **changes})


def run(store: Store, *plans, workers: int = 2):
    return Engine(store, lambda: ThreadPoolExecutor(workers), workers).run(plans)


def test_keys_follow_everything_that_matters():
    job = some_job()
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))).key == job.key
    others = [some_job(seed=9), some_job(model="rf"), some_job(version="2"), some_job(params={"kind": "random"}), some_job(revision=2)]
    assert len({job.key, *(other.key for other in others)}) == 6


def test_a_finished_job_is_complete_and_not_done_again(tmp_path):
    store = Store(tmp_path / "s")
    job = some_job()
    assert perform(job.to_dict(), str(store.root)) == (DONE, "")
    names = {p.name for p in store.folder(job.key).iterdir()}
    assert names == {"job.json", "scores.json", "predictions.parquet", "timing.json", "log.txt"}
    before = (store.folder(job.key) / "timing.json").read_bytes()
    assert perform(job.to_dict(), str(store.root)) == (DONE, "")
    assert (store.folder(job.key) / "timing.json").read_bytes() == before
    assert not list((store.root / "tmp").iterdir())
    assert not list((store.root / "claims").iterdir())


def test_failures_are_kept_and_tried_again(tmp_path):
    store = Store(tmp_path / "s")
    job = some_job(params={"kind": "luck"})
    state, told = perform(job.to_dict(), str(store.root))
    assert state == FAILED
    assert "luck" in told
    assert "Traceback" in store.failures()[job.key]["traceback"]
    changed = some_job(version="another")
    assert "has changed since" in perform(changed.to_dict(), str(store.root))[1]
    assert not store.has(job.key)


def test_search_first_then_the_other_folds_with_the_winner(tmp_path):
    store = Store(tmp_path / "s")
    outcome = run(store, plan(grid={"kind": ["majority", "renewal", "nonsense"]}))
    assert outcome.done == 2 + 3
    assert len(outcome.failed) == 1
    jobs = [store.read(key)["job"] for key in list(store.finished())]
    final = [j for j in jobs if j["stage"] == "final"]
    assert {j["fold"] for j in final} == {1, 2, 3}
    assert len({j["params"]["kind"] for j in final}) == 1
    again = run(store, plan(grid={"kind": ["majority", "renewal", "nonsense"]}))
    assert (again.done, again.there) == (0, 5)


def test_results_are_the_same_bytes_whatever_the_order(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    run(first, plan(), plan("rf", params={"trees": 5}))
    run(second, plan("rf", params={"trees": 5}), plan(), workers=1)
    tables = [json.dumps(results_table(store)) for store in (first, second)]
    assert tables[0] == tables[1]
    rows = {(r["model"], r["metric"]): r for r in json.loads(tables[0])}
    assert rows["rf", "f1"]["mean"] > rows["chance", "f1"]["mean"]
    assert rows["rf", "f1"]["n"] == 4


def test_damaged_results_are_put_aside_and_done_again(tmp_path):
    store = Store(tmp_path / "s")
    run(store, plan())
    expected = results_table(store)
    key = next(iter(store.finished()))
    (store.folder(key) / "scores.json").write_text('{"suites": ', encoding="utf-8")
    outcome = run(store, plan())
    assert (outcome.done, outcome.there) == (1, 3)
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert results_table(store) == expected


def test_a_living_claim_is_respected_and_a_dead_one_is_not(tmp_path):
    store = Store(tmp_path / "s")
    job = some_job()
    claim = f"Store({str(store.root)!r}).claim({job.key!r})"
    script = f"from ethobench.runs import Store; import time; {claim}; print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline().strip() == "ready"
        assert perform(job.to_dict(), str(store.root))[0] == BUSY
        assert store.claimed() == [job.key]
        other.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        other.wait()
        assert perform(job.to_dict(), str(store.root))[0] == DONE


def test_leases_of_other_machines_run_out(tmp_path):
    store = Store(tmp_path / "s")
    claim = store.root / "claims" / "k"
    claim.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "1"}), encoding="utf-8")
    assert not store.claim("k")
    os.utime(claim, (time.time() - 1000, time.time() - 1000))
    assert store.claim("k")


def test_no_space_leaves_no_broken_job(tmp_path, monkeypatch):
    store = Store(tmp_path / "s")

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        store.finish(some_job(), full)
    assert not store.has(some_job().key)
    assert not list((store.root / "tmp").iterdir())


def test_what_is_no_store_is_said(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file" / "s")
    Store(tmp_path / "s")
    (tmp_path / "s" / "store.json").write_text('{"layout": 99}', encoding="utf-8")
    with pytest.raises(StoreError, match="layout 99"):
        Store(tmp_path / "s")


def test_datasets_without_folds_are_refused():
    data = load_dataset("synthetic/tag", individuals=1, seconds=5.0)
    with pytest.raises(EthobenchError, match="no folds"):
        next(fold_plan("x", data, "chance", dataset="synthetic/tag"))


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path):
    store = Store(tmp_path / "s")
    killed = []

    def tell(line: str) -> None:
        """Kill a worker in the middle of its job, once."""
        claims = [json.loads(p.read_text(encoding="utf-8")) for p in (store.root / "claims").iterdir()]
        if claims and not killed:
            killed.append(claims[0]["pid"])
            os.kill(claims[0]["pid"], signal.SIGKILL)

    outcome = Engine(store, lambda: process_pool(2), 2, tell).run([plan("rf", params={"trees": 20, "min_leaf": k}) for k in (1, 2)])
    assert killed
    assert (outcome.done, outcome.failed) == (8, {})
    undisturbed = Store(tmp_path / "t")
    run(undisturbed, *[plan("rf", params={"trees": 20, "min_leaf": k}) for k in (1, 2)])
    assert results_table(store) == results_table(undisturbed)
