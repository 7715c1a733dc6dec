"""A store that is read by others: what is sound stays where it is."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import own
from ethobench.runs import Engine, Store, perform, store
from ethobench.runs.claims import StoreError

OPTIONS = {"individuals": 2, "seconds": 20.0}


@pytest.fixture
def done(tmp_path) -> Store:
    place = Store(tmp_path / "s")
    Engine(place, lambda: ThreadPoolExecutor(1), 1).run(list(own.plans("synthetic/tag", ["chance"], options=OPTIONS)))
    assert len(list(place.finished())) == 2
    return place


def test_what_may_not_be_read_is_not_put_aside(done, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "open", refuse, raising=False)
    key = next(iter(done.finished()))
    with pytest.raises(StoreError, match="cannot be read"):
        done.scores(key)
    assert key in set(done.finished())
    assert not done.damaged


def test_jobs_of_a_later_version_are_left_alone(done):
    key = next(iter(done.finished()))
    path = done.folder(key) / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "colour": "red"}), encoding="utf-8")
    with pytest.raises(StoreError, match="a later version of ethobench made this job: it tells of colour"):
        done.job(key)
    assert key in set(done.finished())


def test_damaged_jobs_are_still_put_aside(done):
    first, second = sorted(done.finished())
    (done.folder(first) / "scores.json").write_text("{", encoding="utf-8")
    (done.folder(second) / "job.json").write_text('{"x": 1}', encoding="utf-8")
    assert done.scores(first) is None
    assert done.job(second) is None
    assert len(done.damaged) == 2
    assert not list(done.finished())


def test_a_worker_that_has_old_data_reads_them_again(tmp_path, monkeypatch):
    plan = next(own.plans("synthetic/tag", ["chance"], options=OPTIONS))
    job = next(plan)[0]
    stale = perform._load("synthetic/tag", json.dumps({**OPTIONS, "seconds": 10.0}, sort_keys=True))
    asked = []

    class Loader:
        def __call__(self, *place):
            asked.append(place)
            return stale if len(asked) == 1 else real(*place)

        def cache_clear(self) -> None:
            real.cache_clear()

    real = perform._load
    monkeypatch.setattr(perform, "_load", Loader())
    outcome = Engine(Store(tmp_path / "s"), lambda: ThreadPoolExecutor(1), 1).run([iter_of([job])])
    assert (outcome.done, len(asked)) == (1, 2)


def iter_of(jobs):
    yield jobs
