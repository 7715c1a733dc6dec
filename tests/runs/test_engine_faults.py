"""Faults during a run, with real processes: no job is lost or run twice."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.running import ethobench

from ethobench import load_dataset
from ethobench.benchmarks import fold_plan, results_table
from ethobench.runs import Engine, Store
from ethobench.runs.executors import process_pool

pytestmark = pytest.mark.slow

OPTIONS = {"individuals": 4, "seconds": 20.0, "folds": 4}
COMMAND = [sys.executable, "-m", "ethobench", "run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=20"]
COMMAND += ["--workers", "2"]


def plans(*shares: float):
    data = load_dataset("synthetic/tag", **OPTIONS)
    params = [{"trees": 20, "max_samples": k} for k in shares]
    return [fold_plan("synthetic", data, "rf", dataset="synthetic/tag", options=OPTIONS, params=p) for p in params]


def start(store: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, "--store", str(store), *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def done_in_logs(store: Path) -> Counter[str]:
    """Count how often each job was finished, in the logs of all runs."""
    lines = [line for path in (store / "logs").iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    return Counter(match.group(1) for line in lines if (match := re.search(r" ([0-9a-f]{24}) .*: done$", line)))


@pytest.fixture(scope="module")
def undisturbed_store(tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("undisturbed") / "s"
    done = ethobench(*COMMAND[3:], "--store", store)
    assert done.returncode == 0, done.stderr
    return store


@pytest.fixture(scope="module")
def undisturbed(undisturbed_store) -> bytes:
    return json.dumps(results_table(Store(undisturbed_store))).encode()


def read_leases(root: Path) -> list[dict]:
    """Read the leases of a store in use; those that are being written or released are skipped."""
    leases = []
    for path in (root / "leases").iterdir():
        with contextlib.suppress(ValueError, FileNotFoundError):
            leases.append(json.loads(path.read_text(encoding="utf-8")))
    return leases


def test_a_killed_worker_loses_nothing(tmp_path):
    store, killed = Store(tmp_path / "s"), []

    def kill_one(event: object) -> None:
        """Kill a worker in the middle of its job, once."""
        leases = read_leases(store.root)
        if leases and not killed:
            killed.append(leases[0]["pid"])
            os.kill(leases[0]["pid"], signal.SIGKILL)

    outcome = Engine(store, lambda: process_pool(2), 2, kill_one).run(plans(0.1, 0.2))
    assert killed
    assert (outcome.done, outcome.failed) == (8, {})
    assert set(done_in_logs(store.root).values()) == {1}


def test_a_job_that_kills_its_workers_fails_and_the_others_continue(tmp_path):
    """A model of an entry point kills its process; other jobs are not affected."""
    (tmp_path / "deadly.py").write_text(
        "import os, signal\n"
        "from ethobench.models import register_model\n"
        "from ethobench.models.chance import Chance\n"
        "@register_model('deadly')\n"
        "class Deadly(Chance):\n"
        "    def _fit(self, data, truths):\n"
        "        if self.seed == 0:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        super()._fit(data, truths)\n",
        encoding="utf-8",
    )
    meta = tmp_path / "deadly-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n", encoding="utf-8")
    (meta / "entry_points.txt").write_text("[ethobench.models]\ndeadly = deadly:Deadly\n", encoding="utf-8")
    command = [*COMMAND, "--models", "deadly,chance,rf", "--store", str(tmp_path / "s")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "11 jobs done, 0 reused, 1 failed" in ended.stdout
    assert "its worker crashed 3 times" in ended.stderr
    assert [(failure.job.model, failure.job.fold) for failure in Store(tmp_path / "s").failures().values()] == [("deadly", 0)]


def test_a_killed_run_is_resumed(tmp_path, undisturbed):
    with start(tmp_path / "s") as process:
        for line in process.stdout:
            if line.startswith("[4/"):
                process.send_signal(signal.SIGKILL)
                break
    time.sleep(0.5)
    resumed = ethobench(*COMMAND[3:], "--store", tmp_path / "s")
    assert resumed.returncode == 0, resumed.stderr
    assert json.dumps(results_table(Store(tmp_path / "s"))).encode() == undisturbed
    counted = done_in_logs(tmp_path / "s")
    assert set(counted.values()) == {1}
    assert len(counted) >= 6  # its two workers may have finished their jobs after the run was killed, which no log records


def test_two_runs_share_one_store(tmp_path, undisturbed):
    with start(tmp_path / "s") as first, start(tmp_path / "s") as second:
        output = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), output
    assert json.dumps(results_table(Store(tmp_path / "s"))).encode() == undisturbed
    timings = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "s" / "jobs").glob("*/*/timing.json")]
    assert len(timings) == 8
    assert not list((tmp_path / "s" / "leases").iterdir())


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 600 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_reported_and_damages_no_job(small_disk, undisturbed):
    (small_disk / "ballast").write_bytes(b"x" * 500_000)
    with start(small_disk / "s") as process:
        output = process.communicate()[0]
    assert process.returncode == 1
    assert "No space left on device" in output
    assert "Traceback" not in output
    assert not (small_disk / "s" / "jobs").is_dir() or all(
        (folder / "scores.json").is_file() and (folder / "log.txt").is_file() for folder in (small_disk / "s" / "jobs").glob("*/*")
    )
    (small_disk / "ballast").unlink()
    again = ethobench(*COMMAND[3:], "--store", small_disk / "s")
    if again.returncode == 0:
        assert json.dumps(results_table(Store(small_disk / "s"))).encode() == undisturbed
    else:
        assert "No space left on device" in again.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_read_only_store(tmp_path, undisturbed_store, undisturbed):
    shutil.copytree(undisturbed_store, tmp_path / "s")
    for path in (tmp_path / "s", *(tmp_path / "s").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for parent in tmp_path.parents:
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    tmp_path.chmod(0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    settings = {**os.environ, "HOME": "/nonexistent", "ETHOBENCH_CACHE": "/nonexistent"}
    call = {"capture_output": True, "text": True, "env": settings}
    ended = subprocess.run([*nobody, *COMMAND, "--store", str(tmp_path / "s")], check=False, **call)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert re.search(r"error: .*the store cannot be written \((Permission denied|Read-only file system)\)", ended.stderr)
    read = subprocess.run([*nobody, sys.executable, "-m", "ethobench", "results", str(tmp_path / "s"), "--json"], check=False, **call)
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout) == json.loads(undisturbed)
