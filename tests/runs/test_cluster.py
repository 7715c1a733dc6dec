"""Runs on clusters: real Dask schedulers and workers, and batch systems played by small scripts."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runs.test_faults import done_in_logs

from ethobench.benchmarks import results_table
from ethobench.core.errors import EthobenchError
from ethobench.runs import Store
from ethobench.runs.workers import Nodes, dask_workers, make_cluster

pytestmark = pytest.mark.slow
RUN = [sys.executable, "-m", "ethobench", "run", "synthetic", "--datasets", "tag", "--models", "chance,rf"]
QUIET = {**os.environ, "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0"}


@pytest.fixture
def cluster(tmp_path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own."""
    told = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    log = (tmp_path / "dask.log").open("wb")
    options = {"stdout": log, "stderr": log, "env": QUIET}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)], **options
    )
    workers = []
    try:
        for _ in range(600):
            if told.exists() and told.read_text(encoding="utf-8").strip():
                break
            time.sleep(0.1)
        address = json.loads(told.read_text(encoding="utf-8"))["address"]
        join = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
        workers = [subprocess.Popen([*dask, *join], **options) for _ in range(2)]
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
        log.close()


def owners(store: Path) -> set[int]:
    """Return the processes that work on a job."""
    found = set()
    for path in (store / "claims").glob("*"):
        try:
            found.add(json.loads(path.read_text(encoding="utf-8"))["pid"])
        except (OSError, ValueError):
            continue
    return found


def test_a_worker_of_a_cluster_is_lost_in_the_middle_of_a_job(tmp_path, cluster):
    address, workers = cluster
    store, killed = tmp_path / "s", []

    def kill_one() -> None:
        while not killed:
            victims = [w for w in workers if w.pid in owners(store)] if (store / "claims").is_dir() else []
            done = len(list((store / "jobs").glob("*/*"))) if (store / "jobs").is_dir() else 0
            if victims and done >= 3:
                victims[0].send_signal(signal.SIGKILL)
                killed.append(victims[0].pid)
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    ended = subprocess.run([*RUN, "--store", str(store), "--scheduler", address], capture_output=True, text=True, check=False, env=QUIET)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert killed
    assert "8 jobs done" in ended.stdout
    assert set(done_in_logs(store).values()) == {1}
    here = subprocess.run([*RUN, "--store", str(tmp_path / "t")], capture_output=True, text=True, check=False)
    assert here.returncode == 0, here.stderr
    assert results_table(Store(store)) == results_table(Store(tmp_path / "t"))


def test_a_scheduler_that_is_not_there_is_said():
    with pytest.raises(EthobenchError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"), dask_workers("tcp://127.0.0.1:9"):
        pass


def test_batch_scripts_say_what_was_asked():
    nodes = Nodes(3, 4, "16GB", "02:00:00", "short", "lab7")
    for kind, mark in (("slurm", "#SBATCH -p short"), ("pbs", "#PBS -q short"), ("sge", "#$ -q short")):
        with make_cluster(kind, nodes, start=False) as made:
            script = made.job_script()
        assert mark in script
        assert "lab7" in script
        assert re.search(r"--nworkers[= ]4", script)
    with pytest.raises(EthobenchError, match="no cluster 'moon'; there are: local, slurm"):
        make_cluster("moon", nodes)


def test_slurm_from_submission_to_results(tmp_path):
    """`sbatch` and `scancel` are played by scripts that start and end the real batch script here."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text(
        '#!/bin/bash\ncopy=$(mktemp); cat "$1" >"$copy"\nsetsid bash "$copy" >>"$LOG" 2>&1 </dev/null &\necho "Submitted batch job $!"\n',
        encoding="utf-8",
    )
    (tools / "scancel").write_text('#!/bin/bash\nfor id in "$@"; do kill -9 -- "-$id"; done\ntrue\n', encoding="utf-8")
    for tool in tools.iterdir():
        tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
    settings = {**QUIET, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "LOG": str(tmp_path / "batch.log")}
    command = [*RUN, "--store", str(tmp_path / "s"), "--cluster", "slurm", "--queue", "short", "--nodes", "2", "--memory", "2GB"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=settings, cwd=tmp_path)
    log = (tmp_path / "batch.log").read_text(encoding="utf-8")
    assert ended.returncode == 0, ended.stdout + ended.stderr + log
    assert "8 jobs done" in ended.stdout
    assert log.count("Start worker at") >= 1
    pids = {json.loads(p.read_text(encoding="utf-8"))["pid"] for p in (tmp_path / "s" / "jobs").glob("*/*/timing.json")}
    assert len(pids) >= 1
