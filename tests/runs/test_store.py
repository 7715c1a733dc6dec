"""A store that is read by others: what is sound stays where it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from ethobench.benchmarks import own
from ethobench.benchmarks.results import results_table
from ethobench.cli import app
from ethobench.reports import summarize_store
from ethobench.runs import Engine, Store, perform, store
from ethobench.runs.claims import StoreError

OPTIONS = {"individuals": 2, "seconds": 20.0}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Store:
    place = Store(tmp_path_factory.mktemp("run") / "s")
    rerun(place)
    assert len(list(place.finished())) == 2
    return place


@pytest.fixture
def done(finished_run, tmp_path) -> Store:
    shutil.copytree(finished_run.root, tmp_path / "s")
    return Store(tmp_path / "s")


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


def rerun(place):
    return Engine(place, lambda: ThreadPoolExecutor(1), 1).run(list(own.plans("synthetic/tag", ["chance"], options=OPTIONS)))


def command(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


def test_stray_files_are_ignored(done, tmp_path):
    before = results_table(done)
    folders = [folder for folder in done.root.rglob("*") if folder.is_dir()]
    assert len(folders) > 10
    for folder in [done.root, *folders]:
        for name in (".DS_Store", "Thumbs.db", "._a.json"):
            (folder / name).write_bytes(b"\0\1")
    (done.root / "jobs" / "lost+found").mkdir()
    assert len(list(done.finished())) == 2
    assert results_table(done, timings=True)
    assert results_table(done) == before
    assert json.loads(command("status", done.root, "--json").stdout) == {
        "done": 2, "running": [], "failed": {}, "quarantined": [], "damaged": []
    }  # fmt: skip
    command("results", done.root)
    command("report", done.root, "--out", tmp_path / "report.html")
    assert (rerun(done).there, done.damaged) == (2, [])


def change_a_digit(path):
    text = path.read_text(encoding="utf-8")
    place = text.index("0.") + 2
    path.write_text(f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}", encoding="utf-8")
    json.loads(path.read_text(encoding="utf-8"))


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("scores.json", change_a_digit),
        ("predictions.parquet", flip_a_bit),
        ("predictions.parquet", lambda path: path.write_bytes(b"")),
        ("predictions.parquet", lambda path: path.unlink()),
        ("manifest.json", lambda path: path.write_text("{", encoding="utf-8")),
        ("manifest.json", flip_a_bit),
        ("job.json", lambda path: path.write_text("[]", encoding="utf-8")),
    ],
    ids=["digit of a score", "bit of predictions", "empty predictions", "no predictions", "cut manifest", "bit of manifest", "no job"],
)
def test_a_damaged_job_is_named_and_done_again(done, name, damage):
    expected = results_table(done)
    key = next(iter(done.finished()))
    damage(done.folder(key) / name)
    outcome = rerun(Store(done.root))
    assert (outcome.done, outcome.there) == (1, 1)
    assert [entry[:24] for entry in done.quarantined()] == [key]
    assert results_table(done) == expected


def test_status_and_results_name_a_changed_score_and_do_not_count_it(done):
    first, second = done.finished()
    change_a_digit(done.folder(first) / "scores.json")
    shown = command("results", done.root)
    assert f"{first} is damaged (scores.json does not match its checksum)" in shown.stderr.replace("\n", "")
    change_a_digit(done.folder(second) / "scores.json")
    summary = json.loads(command("status", done.root, "--json").stdout)
    assert summary["done"] == 0
    assert len(summary["quarantined"]) == 2
    assert second in summary["damaged"][0]


def test_a_report_leaves_out_damaged_predictions(done):
    key = next(iter(done.finished()))
    flip_a_bit(done.folder(key) / "predictions.parquet")
    report = summarize_store(done)
    assert any(f"{key} is damaged (predictions.parquet" in note for note in report["notes"])


@pytest.mark.parametrize("content", ["", "[]", '{"host": 3, "fit": "x"}'])
def test_damaged_times_are_named_and_the_scores_stay(done, content):
    before = results_table(done)
    key = next(iter(done.finished()))
    (done.folder(key) / "timing.json").write_text(content, encoding="utf-8")
    assert "timing.json is damaged" in command("results", done.root, "--timings").stderr.replace("\n", "")
    assert results_table(done) == before
    assert summarize_store(done)["notes"]
    assert rerun(Store(done.root)).there == 2


@pytest.mark.parametrize("content", ["", "[]", '{"error": "x", "traceback": "", "job": {}}'])
def test_a_damaged_record_of_a_failure_is_named(done, content):
    job = store.Job.from_dict(done.job(next(iter(done.finished()))))
    done.fail(job, "no luck", "Traceback")
    assert list(done.failures()) == [job.key]
    (done.root / "failed" / f"{job.key}.json").write_text(content, encoding="utf-8")
    shown = command("status", done.root).stdout.replace("\n", "")
    assert f"{job.key}.json is damaged" in shown
    assert "0 failed, 1 found damaged" in shown
    assert done.failures() == {}


def test_jobs_of_earlier_versions_without_checksums_are_read_and_that_is_said(done):
    expected = results_table(done)
    for key in done.finished():
        (done.folder(key) / "manifest.json").unlink()
    assert results_table(done) == expected
    assert "2 jobs were stored without checksums" in done.describe_damage()[0]
    assert rerun(Store(done.root)).there == 2


LEAVE = """
import os, sys
from types import SimpleNamespace
from ethobench.runs import Store
from ethobench.runs.workers import CERTIFICATES, cluster_security

store = Store(sys.argv[1])
store.claims.take(sys.argv[2])
store.progress_file(sys.argv[2]).write_text("{}")
with cluster_security(store.root / CERTIFICATES):
    store.finish(SimpleNamespace(key="ab" * 12, to_dict=dict), lambda _: os._exit(9))
"""


def test_what_killed_processes_left_is_removed_by_the_next_run(done):
    key = next(iter(done.finished()))
    subprocess.run([sys.executable, "-c", LEAVE, str(done.root), key], check=False)
    stray = done.root / "tmp" / "notes.txt"
    stray.write_text("mine", encoding="utf-8")
    assert len([*(done.root / "tmp").iterdir()]) == 3
    assert len([*(done.root / "certificates").iterdir()]) == 1
    rerun(done)
    assert [*(done.root / "tmp").iterdir()] == [stray]
    assert [*(done.root / "certificates").iterdir()] == []
    assert [*(done.root / "claims").iterdir()] == []
