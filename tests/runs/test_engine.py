"""The engine with real processes: no job is run twice or lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ethobench import load_dataset
from ethobench.benchmarks import fold_plan, results_table
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.progress import progress_listener, report_progress
from ethobench.runs import Engine, GridSearch, Job, RunControl, StopRun, Store, StoreError, WorkerOptions
from ethobench.runs.leases import Leases
from ethobench.runs.worker import DONE, FAILED, ProgressFile, run_job

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


def test_keys_depend_on_everything_that_changes_the_result():
    job = some_job()
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))).key == job.key
    others = [some_job(seed=9), some_job(model="rf"), some_job(version="2"), some_job(params={"kind": "random"}), some_job(revision=99)]
    assert len({job.key, *(other.key for other in others)}) == 6


def test_the_content_of_an_initial_model_is_part_of_the_key(tmp_path):
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
    assert run_job(job.to_dict(), str(store.root)) == (DONE, "")
    names = {p.name for p in store.folder(job.key).iterdir()}
    assert names == {"job.json", "scores.json", "predictions.parquet", "timing.json", "log.txt", "manifest.json"}
    before = (store.folder(job.key) / "timing.json").read_bytes()
    assert run_job(job.to_dict(), str(store.root)) == (DONE, "")
    assert (store.folder(job.key) / "timing.json").read_bytes() == before
    assert not list((store.root / "tmp").iterdir())
    assert not list((store.root / "leases").iterdir())


def test_a_job_that_is_finished_just_before_it_is_claimed_is_not_done_again(tmp_path, monkeypatch):
    store, job = Store(tmp_path / "s"), some_job()
    acquire = Leases.acquire

    def acquire_late(leases: Leases, key: str, run: str = "") -> int | None:
        with monkeypatch.context() as patched:
            patched.setattr(Leases, "acquire", acquire)
            assert run_job(job.to_dict(), str(store.root)) == (DONE, "")
        return acquire(leases, key, run)

    monkeypatch.setattr(Leases, "acquire", acquire_late)
    finish, stored = Store.finish, []
    monkeypatch.setattr(Store, "finish", lambda *arguments: stored.append(finish(*arguments)))
    assert run_job(job.to_dict(), str(store.root)) == (DONE, "")
    assert stored == [True]
    assert not list((store.root / "leases").iterdir())


def test_failures_are_kept_and_tried_again(tmp_path):
    store = Store(tmp_path / "s")
    job = some_job(params={"kind": "luck"})
    state, error = run_job(job.to_dict(), str(store.root))
    assert state == FAILED
    assert "luck" in error
    assert "Traceback" in store.failures()[job.key].traceback
    changed = some_job(version="another")
    assert "has changed since" in run_job(changed.to_dict(), str(store.root))[1]
    assert not store.has(job.key)


def test_search_first_then_the_other_folds_with_the_winner(tmp_path):
    store = Store(tmp_path / "s")
    summary = run(store, plan(search=GridSearch(), grid={"kind": ["majority", "renewal", "nonsense"]}))
    assert summary.done == 2 + 3
    assert len(summary.failed) == 1
    jobs = [store.job(key) for key in list(store.finished())]
    final = [job for job in jobs if job.stage == "final"]
    assert {job.fold for job in final} == {1, 2, 3}
    assert len({job.params["kind"] for job in final}) == 1
    again = run(store, plan(search=GridSearch(), grid={"kind": ["majority", "renewal", "nonsense"]}))
    assert (again.done, again.reused) == (0, 5)


def test_results_are_the_same_bytes_whatever_the_order(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    run(first, plan(), plan("rf", params={"trees": 5}))
    run(second, plan("rf", params={"trees": 5}), plan(), workers=1)
    tables = [json.dumps(results_table(store)) for store in (first, second)]
    assert tables[0] == tables[1]
    rows = {(r["model"], r["metric"]): r for r in json.loads(tables[0])}
    assert rows["rf", "f1"]["mean"] > rows["chance", "f1"]["mean"]
    assert rows["rf", "f1"]["n"] == 4


def test_damaged_results_are_moved_to_quarantine_and_repeated(tmp_path):
    store = Store(tmp_path / "s")
    run(store, plan())
    expected = results_table(store)
    key = next(iter(store.finished()))
    (store.folder(key) / "scores.json").write_text('{"suites": ', encoding="utf-8")
    summary = run(store, plan())
    assert (summary.done, summary.reused) == (1, 3)
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert results_table(store) == expected
    log = "".join(path.read_text(encoding="utf-8") for path in (store.root / "logs").iterdir())
    assert f"{key} is damaged" in log
    (store.folder(key) / "job.json").unlink()
    assert len(results_table(store)) == len(expected)
    assert key in str(store.damage[0].path)


def test_probabilities_and_models_are_stored_on_request(tmp_path):
    import pyarrow.parquet as pq

    from ethobench import load_model

    store, job = Store(tmp_path / "s"), some_job(model="rf", params={"trees": 5})
    assert run_job(job.to_dict(), str(store.root), WorkerOptions(keep=("probabilities", "model")))[0] == DONE
    kept = pq.read_table(store.folder(job.key) / "probabilities.parquet")
    data = load_dataset("synthetic/tag", **OPTIONS)
    assert kept.num_rows == sum(data[name].n_frames for name in job.test)
    assert kept.column_names[: 1 + len(data.ethogram)] == ["recording", *data.ethogram.names]
    again = load_model(store.folder(job.key) / "model").predict(data[job.test[0]])
    first = kept.column(data.ethogram.names[0]).to_numpy()[: again.n_frames]
    assert abs(again.probabilities[:, 0] * 255 - first).max() <= 0.51


def test_a_plan_that_cannot_continue_does_not_stop_the_others(tmp_path):
    summary = run(Store(tmp_path / "s"), plan(search=GridSearch(), grid={"kind": ["nonsense"]}), plan())
    assert summary.done == 4
    assert "could be scored" in summary.failed_plans[0]
    assert summary.best.job.model == "chance"


def test_the_path_of_the_data_is_not_part_of_the_key():
    assert some_job(source="/one/place").key == some_job(source="/another").key


def test_no_space_leaves_no_broken_job(tmp_path, monkeypatch):
    store = Store(tmp_path / "s")

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        store.finish(some_job(), full)
    assert not store.has(some_job().key)
    assert not list((store.root / "tmp").iterdir())


def test_folders_that_are_not_a_store_are_refused(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file" / "s")
    Store(tmp_path / "s")
    for content, version in (('{"format_version": 99}', "99"), ('{"layout": 2}', "None")):
        (tmp_path / "s" / "store.json").write_text(content, encoding="utf-8")
        with pytest.raises(StoreError, match=f"has format_version {version}, but this version of ethobench reads 3"):
            Store(tmp_path / "s")
    (tmp_path / "s" / "store.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match=r"its store\.json is damaged"):
        Store.open(tmp_path / "s")
    with pytest.raises(NotFoundError, match="is not the store of a run"):
        Store.open(tmp_path)
    assert not (tmp_path / "jobs").exists()


def test_datasets_without_folds_are_refused():
    data = load_dataset("synthetic/tag", individuals=1, seconds=5.0)
    with pytest.raises(EthobenchError, match="no folds"):
        next(fold_plan("x", data, "chance", dataset="synthetic/tag"))


def test_a_control_decides_which_jobs_start(tmp_path):
    class First(RunControl):
        one_at_a_time = True

        def admits(self, job, summary):
            return job.fold < 2

    store = Store(tmp_path / "s")
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1, control=First()).run([plan()])
    jobs = next(plan())
    assert summary.done == 2
    assert summary.skipped == {job.key for job in jobs[2:]}
    assert [store.has(job.key) for job in jobs] == [True, True, False, False]
    assert Engine(store, lambda: ThreadPoolExecutor(1), 1).run([plan()]).done == 2  # the others, later


def test_a_control_ends_a_run_and_keeps_what_is_done(tmp_path):
    class Impatient(RunControl):
        one_at_a_time = True

        def observe(self, running, summary):
            if summary.done:
                raise StopRun

    store = Store(tmp_path / "s")
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1, control=Impatient()).run([plan()])
    jobs = next(plan())
    assert 1 <= sum(store.has(job.key) for job in jobs) < len(jobs)
    assert summary.skipped == {job.key for job in jobs if not store.has(job.key)}


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
    run_job(some_job().to_dict(), str(store.root))
    assert not store.progress_file(key).exists()
