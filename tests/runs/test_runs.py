"""Runs with real processes: nothing is done twice, nothing is lost, whatever dies."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ethobench import load_dataset
from ethobench.benchmarks import fold_plan, results_table
from ethobench.core.errors import EthobenchError
from ethobench.core.progress import progress_listener, report_progress
from ethobench.runs import Engine, GridSearch, How, Job, RunControl, StopRun, Store, StoreError
from ethobench.runs.claims import Claims
from ethobench.runs.perform import DONE, FAILED, ProgressFile, perform

pytestmark = pytest.mark.slow

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
    others = [some_job(seed=9), some_job(model="rf"), some_job(version="2"), some_job(params={"kind": "random"}), some_job(revision=99)]
    assert len({job.key, *(other.key for other in others)}) == 6


def test_files_to_begin_with_count_by_their_content(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "weights").write_text("1", encoding="utf-8")
    keys = [next(plan("conv1d", params={"init": str(tmp_path / "m")}))[0].key]
    (tmp_path / "m" / "weights").write_text("2", encoding="utf-8")
    keys.append(next(plan("conv1d", params={"init": str(tmp_path / "m")}))[0].key)
    (tmp_path / "m" / "weights").write_text("1", encoding="utf-8")
    keys.append(next(plan("conv1d", params={"init": str(tmp_path / "m")}))[0].key)
    assert keys[0] == keys[2] != keys[1]


def test_a_finished_job_is_complete_and_not_done_again(tmp_path):
    store = Store(tmp_path / "s")
    job = some_job()
    assert perform(job.to_dict(), str(store.root)) == (DONE, "")
    names = {p.name for p in store.folder(job.key).iterdir()}
    assert names == {"job.json", "scores.json", "predictions.parquet", "timing.json", "log.txt", "manifest.json"}
    before = (store.folder(job.key) / "timing.json").read_bytes()
    assert perform(job.to_dict(), str(store.root)) == (DONE, "")
    assert (store.folder(job.key) / "timing.json").read_bytes() == before
    assert not list((store.root / "tmp").iterdir())
    assert not list((store.root / "claims").iterdir())


def test_a_job_that_is_finished_just_before_it_is_claimed_is_not_done_again(tmp_path, monkeypatch):
    store, job = Store(tmp_path / "s"), some_job()
    take = Claims.take

    def take_late(claims: Claims, key: str, run: str = "") -> int | None:
        with monkeypatch.context() as patched:
            patched.setattr(Claims, "take", take)
            assert perform(job.to_dict(), str(store.root)) == (DONE, "")
        return take(claims, key, run)

    monkeypatch.setattr(Claims, "take", take_late)
    finish, stored = Store.finish, []
    monkeypatch.setattr(Store, "finish", lambda *arguments: stored.append(finish(*arguments)))
    assert perform(job.to_dict(), str(store.root)) == (DONE, "")
    assert stored == [True]
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
    outcome = run(store, plan(search=GridSearch(), grid={"kind": ["majority", "renewal", "nonsense"]}))
    assert outcome.done == 2 + 3
    assert len(outcome.failed) == 1
    jobs = [store.read(key)["job"] for key in list(store.finished())]
    final = [j for j in jobs if j["stage"] == "final"]
    assert {j["fold"] for j in final} == {1, 2, 3}
    assert len({j["params"]["kind"] for j in final}) == 1
    again = run(store, plan(search=GridSearch(), grid={"kind": ["majority", "renewal", "nonsense"]}))
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
    log = "".join(path.read_text(encoding="utf-8") for path in (store.root / "logs").iterdir())
    assert f"{key} is damaged" in log
    (store.folder(key) / "job.json").unlink()
    assert len(results_table(store)) == len(expected)
    assert key in store.damaged[0]


def test_more_is_kept_on_request(tmp_path):
    import pyarrow.parquet as pq

    from ethobench import load_model

    store, job = Store(tmp_path / "s"), some_job(model="rf", params={"trees": 5})
    assert perform(job.to_dict(), str(store.root), How(keep=("probabilities", "model")))[0] == DONE
    kept = pq.read_table(store.folder(job.key) / "probabilities.parquet")
    data = load_dataset("synthetic/tag", **OPTIONS)
    assert kept.num_rows == sum(data[name].n_frames for name in job.test)
    assert kept.column_names[: 1 + len(data.ethogram)] == ["recording", *data.ethogram.names]
    again = load_model(store.folder(job.key) / "model").predict(data[job.test[0]])
    first = kept.column(data.ethogram.names[0]).to_numpy()[: again.n_frames]
    assert abs(again.probabilities[:, 0] * 255 - first).max() <= 0.51


def test_a_plan_that_cannot_go_on_does_not_stop_the_others(tmp_path):
    outcome = run(Store(tmp_path / "s"), plan(search=GridSearch(), grid={"kind": ["nonsense"]}), plan())
    assert outcome.done == 4
    assert "could be scored" in outcome.broken[0]
    assert outcome.best.job.model == "chance"


def test_where_data_lie_is_no_part_of_what_a_job_is():
    assert some_job(source="/one/place").key == some_job(source="/another").key


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


def test_a_control_decides_which_jobs_start(tmp_path):
    class First(RunControl):
        one_at_a_time = True

        def admits(self, job, outcome):
            return job.fold < 2

    store = Store(tmp_path / "s")
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1, control=First()).run([plan()])
    jobs = next(plan())
    assert outcome.done == 2
    assert outcome.skipped == {job.key for job in jobs[2:]}
    assert [store.has(job.key) for job in jobs] == [True, True, False, False]
    assert Engine(store, lambda: ThreadPoolExecutor(1), 1).run([plan()]).done == 2  # the others, later


def test_a_control_ends_a_run_and_keeps_what_is_done(tmp_path):
    class Impatient(RunControl):
        one_at_a_time = True

        def look(self, under_way, outcome):
            if outcome.done:
                raise StopRun

    store = Store(tmp_path / "s")
    outcome = Engine(store, lambda: ThreadPoolExecutor(1), 1, control=Impatient()).run([plan()])
    jobs = next(plan())
    assert 1 <= sum(store.has(job.key) for job in jobs) < len(jobs)
    assert outcome.skipped == {job.key for job in jobs if not store.has(job.key)}


def test_workers_keep_their_latest_report_in_a_file(tmp_path):
    store, key = Store(tmp_path / "s"), some_job().key
    assert store.progress(key) is None
    with progress_listener(ProgressFile(store.progress_file(key), every=0.0)):
        report_progress("boosted trees", 0.25)
        assert store.progress(key) == ("boosted trees", 0.25)
        report_progress("scoring", 0.5)
    assert store.progress(key) == ("scoring", 0.5)
    store.progress_file(key).write_text("{", encoding="utf-8")  # killed while it wrote
    assert store.progress(key) is None
    perform(some_job().to_dict(), str(store.root))
    assert not store.progress_file(key).exists()
