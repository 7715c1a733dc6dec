"""Stores: reading never changes them, damage is reported, and repair moves damaged jobs to quarantine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from ethobench.benchmarks.results import results_table
from ethobench.benchmarks.study import study_plan
from ethobench.cli import app
from ethobench.reports import summarize_store
from ethobench.runs import Engine, Store, StoreError, store, worker
from ethobench.runs.plan import plan_at_once

OPTIONS = {"individuals": 2, "seconds": 20.0}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Store:
    opened = Store(tmp_path_factory.mktemp("run") / "s")
    rerun(opened)
    assert len(list(opened.finished())) == 2
    return opened


@pytest.fixture
def done(finished_run, tmp_path) -> Store:
    shutil.copytree(finished_run.root, tmp_path / "s")
    return Store(tmp_path / "s")


def test_files_without_read_permission_are_not_damaged(done, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "open", refuse, raising=False)
    key = next(iter(done.finished()))
    with pytest.raises(StoreError, match="cannot be read"):
        done.scores(key)
    assert key in set(done.finished())
    assert not done.damage


@pytest.mark.parametrize("version", [2, 99, None])
def test_jobs_of_another_format_version_are_refused_and_stay(done, version):
    key = next(iter(done.finished()))
    path = done.folder(key) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "format_version": version}), encoding="utf-8")
    with pytest.raises(StoreError, match=f"has format_version {version}, but this version of ethobench reads 3"):
        done.job(key)
    with pytest.raises(StoreError, match="use the version of ethobench that wrote it"):
        rerun(Store(done.root))
    assert key in set(done.finished())


def test_damaged_jobs_are_moved_by_repair_only(done):
    first, second = sorted(done.finished())
    (done.folder(first) / "scores.json").write_text("{", encoding="utf-8")
    (done.folder(second) / "job.json").write_text('{"x": 1}', encoding="utf-8")
    assert done.scores(first) is None
    assert done.job(second) is None
    assert [damage.path for damage in done.damage] == [done.folder(first), done.folder(second)]
    assert len(list(done.finished())) == 2
    messages = done.repair()
    assert len(messages) == 2
    assert "moved to" in messages[0]
    assert not list(done.finished())
    assert not done.damage
    assert [entry[:24] for entry in done.quarantine.entries()] == [first, second]


def test_a_worker_with_outdated_data_reads_them_again(tmp_path, monkeypatch):
    job = next(study_plan("synthetic/tag", "chance", options=OPTIONS))[0]
    load = worker.load_cached
    outdated = load("synthetic/tag", json.dumps({**OPTIONS, "seconds": 10.0}, sort_keys=True))
    calls = []

    class Loader:
        def __call__(self, *arguments):
            calls.append(arguments)
            return outdated if len(calls) == 1 else load(*arguments)

        def cache_clear(self) -> None:
            load.cache_clear()

    monkeypatch.setattr(worker, "load_cached", Loader())
    summary = Engine(Store(tmp_path / "s"), lambda: ThreadPoolExecutor(1), 1).run([plan_at_once([job])])
    assert (summary.done, len(calls)) == (1, 2)


def rerun(opened):
    return Engine(opened, lambda: ThreadPoolExecutor(1), 1).run([study_plan("synthetic/tag", "chance", options=OPTIONS)])


def contents(folder):
    """Return all files and folders with their content."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


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
    assert (rerun(done).reused, done.damage) == (2, [])


def change_a_digit(path):
    text = path.read_text(encoding="utf-8")
    opened = text.index("0.") + 2
    path.write_text(f"{text[:opened]}{(int(text[opened]) + 1) % 10}{text[opened + 1 :]}", encoding="utf-8")
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
def test_a_damaged_job_is_repeated(done, name, damage):
    expected = results_table(done)
    key = next(iter(done.finished()))
    damage(done.folder(key) / name)
    summary = rerun(Store(done.root))
    assert (summary.done, summary.reused) == (1, 1)
    assert [entry[:24] for entry in done.quarantine.entries()] == [key]
    assert results_table(done) == expected


def test_results_and_status_report_a_changed_score_and_change_nothing(done, tmp_path):
    first, second = done.finished()
    change_a_digit(done.folder(first) / "scores.json")
    before = contents(done.root)
    for _ in range(2):
        shown = command("results", done.root)
        assert f"{first} is damaged (scores.json does not match its checksum)" in shown.stderr.replace("\n", "")
    command("report", done.root, "--out", tmp_path / "report.html")
    change_a_digit(done.folder(second) / "scores.json")
    before[done.folder(second) / "scores.json"] = (done.folder(second) / "scores.json").read_bytes()
    summary = json.loads(command("status", done.root, "--json").stdout)
    assert (summary["done"], summary["quarantined"], len(summary["damaged"])) == (0, [], 2)
    assert contents(done.root) == before


def test_status_moves_damaged_jobs_to_quarantine_on_request(done):
    first, second = done.finished()
    change_a_digit(done.folder(first) / "scores.json")
    flip_a_bit(done.folder(second) / "predictions.parquet")
    assert "1 done, 0 running, 0 failed, 1 damaged, 0 in quarantine" in command("status", done.root).stdout  # of the same size
    summary = json.loads(command("status", done.root, "--repair", "--json").stdout)
    assert (summary["done"], [name[:24] for name in summary["quarantined"]]) == (0, [first, second])
    assert all("moved to" in message for message in summary["damaged"])
    assert "0 done, 0 running, 0 failed, 0 damaged, 2 in quarantine" in command("status", done.root).stdout
    assert rerun(Store(done.root)).done == 2


def test_a_report_excludes_damaged_predictions(done):
    key = next(iter(done.finished()))
    flip_a_bit(done.folder(key) / "predictions.parquet")
    report = summarize_store(done)
    assert any(f"{key} is damaged (predictions.parquet" in note for note in report["notes"])


@pytest.mark.parametrize("content", ["", "[]", '{"host": 3, "fit": "x"}'])
def test_damaged_durations_are_reported_and_the_scores_stay(done, content):
    before = results_table(done)
    key = next(iter(done.finished()))
    (done.folder(key) / "timing.json").write_text(content, encoding="utf-8")
    assert "timing.json is damaged" in command("results", done.root, "--timings").stderr.replace("\n", "")
    assert results_table(done) == before
    assert summarize_store(done)["notes"]
    assert rerun(Store(done.root)).reused == 2


@pytest.mark.parametrize("content", ["", "[]", '{"error": "x", "traceback": "", "job": {}}'])
def test_a_damaged_record_of_a_failure_is_reported(done, content):
    job = done.job(next(iter(done.finished())))
    done.fail(job, "no luck", "Traceback")
    assert done.failures() == {job.key: store.Failure(job, "no luck", "Traceback")}
    (done.root / "failed" / f"{job.key}.json").write_text(content, encoding="utf-8")
    shown = command("status", done.root).stdout.replace("\n", "")
    assert f"{job.key}.json is damaged" in shown
    assert "0 failed, 1 damaged" in shown
    assert done.failures() == {}


def test_jobs_without_checksums_are_damaged(done):
    for key in list(done.finished()):
        (done.folder(key) / "manifest.json").unlink()
    assert results_table(done) == []
    assert "manifest.json is missing" in done.describe_damage()[0]
    assert rerun(Store(done.root)).done == 2


def test_a_damaged_job_that_cannot_be_moved_is_an_error(done, monkeypatch):
    key = next(iter(done.finished()))
    (done.folder(key) / "scores.json").write_text("{", encoding="utf-8")

    def refuse(path, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store.Path, "replace", refuse)
    assert done.scores(key) is None
    with pytest.raises(StoreError, match=r"is damaged .* and cannot be moved to .*Permission denied"):
        done.repair()
    assert key in set(done.finished())


LEAVE = """
import os, sys
from types import SimpleNamespace
from ethobench.runs import Store
from ethobench.runs.executors import CERTIFICATES, cluster_security

store = Store(sys.argv[1])
store.leases.acquire(sys.argv[2])
store.progress_file(sys.argv[2]).write_text("{}")
with cluster_security(store.root / CERTIFICATES):
    store.finish(SimpleNamespace(key="ab" * 12, to_dict=dict), lambda _: os._exit(9))
"""


@pytest.mark.slow
def test_files_of_killed_processes_are_removed_by_the_next_run(done):
    key = next(iter(done.finished()))
    subprocess.run([sys.executable, "-c", LEAVE, str(done.root), key], check=False)
    stray = done.root / "tmp" / "notes.txt"
    stray.write_text("mine", encoding="utf-8")
    assert len([*(done.root / "tmp").iterdir()]) == 3
    assert len([*(done.root / "certificates").iterdir()]) == 1
    rerun(done)
    assert [*(done.root / "tmp").iterdir()] == [stray]
    assert [*(done.root / "certificates").iterdir()] == []
    assert [*(done.root / "leases").iterdir()] == []
