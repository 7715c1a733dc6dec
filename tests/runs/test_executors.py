"""Executors: real Dask schedulers and workers, and a batch system simulated by small scripts."""

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
from tests.cli.running import ethobench
from tests.runs.test_engine_faults import done_in_logs

from ethobench.benchmarks import results_table
from ethobench.core.errors import EthobenchError
from ethobench.runs import Store, executors
from ethobench.runs.executors import ClusterNodes, cluster_security, dask_pool, make_cluster, preload_workers, process_pool

pytestmark = pytest.mark.slow
RUN = [sys.executable, "-m", "ethobench", "run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=20"]
QUIET = {**os.environ, "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0"}


@pytest.fixture
def cluster(tmp_path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers, each in a separate process."""
    scheduler_file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    log = (tmp_path / "dask.log").open("wb")
    options = {"stdout": log, "stderr": log, "env": QUIET}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(scheduler_file)], **options
    )
    workers = []
    try:
        for _ in range(600):
            if scheduler_file.exists() and scheduler_file.read_text(encoding="utf-8").strip():
                break
            time.sleep(0.1)
        address = json.loads(scheduler_file.read_text(encoding="utf-8"))["address"]
        join = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
        workers = [subprocess.Popen([*dask, *join], **options) for _ in range(2)]
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
        log.close()


def test_worker_processes_have_the_environment_folder_and_signals_of_the_run(tmp_path, monkeypatch):
    """The server that workers are forked from may be older than the settings of the run."""
    preload_workers(["ethobench.runs.worker", "no_such_module"])
    for value in ("one", "two"):
        monkeypatch.setenv("ETHOBENCH_TEST_VALUE", value)
        monkeypatch.chdir(tmp_path)
        with process_pool(2) as pool:
            assert pool.submit(os.getenv, "ETHOBENCH_TEST_VALUE").result() == value
            assert pool.submit(os.getenv, "PYTHONPATH").result() == os.getenv("PYTHONPATH")
            assert pool.submit(os.getcwd).result() == str(tmp_path)
            assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
    monkeypatch.delenv("ETHOBENCH_TEST_VALUE")
    with process_pool(1) as pool:
        assert pool.submit(os.getenv, "ETHOBENCH_TEST_VALUE").result() is None
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def lease_holders(store: Path) -> set[int]:
    """Return the processes that hold a lease on a job."""
    pids = set()
    for path in (store / "leases").glob("*"):
        try:
            pids.add(json.loads(path.read_text(encoding="utf-8"))["pid"])
        except (OSError, ValueError):
            continue
    return pids


def test_a_worker_of_a_cluster_is_lost_in_the_middle_of_a_job(tmp_path, cluster):
    address, workers = cluster
    store, killed = tmp_path / "s", []

    def kill_one() -> None:
        while not killed:
            victims = [w for w in workers if w.pid in lease_holders(store)] if (store / "leases").is_dir() else []
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
    here = ethobench(*RUN[3:], "--store", tmp_path / "t")
    assert here.returncode == 0, here.stderr
    assert results_table(Store(store)) == results_table(Store(tmp_path / "t"))


def test_a_missing_scheduler_is_an_error(monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_TIMEOUT", "0.5s")
    with pytest.raises(EthobenchError, match=r"no Dask scheduler responds at tcp://127\.0\.0\.1:9"), dask_pool("tcp://127.0.0.1:9"):
        pass


def test_batch_scripts_request_the_resources(tmp_path):
    nodes = ClusterNodes(3, 4, "16GB", "02:00:00", "short", "lab7")
    for kind, mark in (("slurm", "#SBATCH -p short"), ("pbs", "#PBS -q short"), ("sge", "#$ -q short")):
        with cluster_security(tmp_path / "c") as security, make_cluster(kind, nodes, security, start=False) as dask_cluster:
            script = dask_cluster.job_script()
        assert f"--tls-key {tmp_path}/c/" in script
        assert "tls://" in script
        assert mark in script
        assert "lab7" in script
        assert re.search(r"--nworkers[= ]4", script)
    with pytest.raises(EthobenchError, match="unknown cluster 'moon'; available: local, slurm"):
        make_cluster("moon", nodes, None)


STRANGER = """
import asyncio, logging, ssl, sys
from distributed import Security
from distributed.core import connect

logging.disable(logging.CRITICAL)
without_certificate = ssl.create_default_context()
without_certificate.check_hostname, without_certificate.verify_mode = False, ssl.CERT_NONE
strangers = {
    "tcp": ("tcp", {}),
    "no certificate": ("tls", {"ssl_context": without_certificate, "require_encryption": True}),
    "another certificate": ("tls", Security.temporary().get_connection_args("client")),
}
if len(sys.argv) > 4:
    mine = Security(require_encryption=True, tls_ca_file=sys.argv[4], tls_client_cert=sys.argv[4], tls_client_key=sys.argv[5])
    strangers = {"the certificate": ("tls", mine.get_connection_args("client"))}


async def attempt(address, arguments):
    comm = await connect(address, timeout=2, **arguments)
    await comm.write({"op": "identity", "reply": True})
    return await comm.read()


for address in sys.argv[1:4]:
    for name, (protocol, arguments) in strangers.items():
        try:
            asyncio.run(attempt(address.replace("tls:", protocol + ":"), arguments))
        except OSError:
            print("refused:", name)
        else:
            print("connected:", name)
"""


def test_clusters_refuse_connections_without_their_certificate(tmp_path):
    from distributed import Client

    with cluster_security(tmp_path) as security, make_cluster("local", ClusterNodes(1, 1), security) as dask_cluster:
        with Client(dask_cluster.scheduler_address, security=security, set_as_default=False) as client:
            ((worker, information),) = client.scheduler_info()["workers"].items()
            assert client.submit(pow, 2, 5).result(timeout=60) == 32
        addresses = [dask_cluster.scheduler_address, worker, information["nanny"]]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        command = [sys.executable, "-c", STRANGER, *addresses]
        refused = subprocess.run(command, capture_output=True, text=True, check=True)
        assert refused.stdout.splitlines() == ["refused: tcp", "refused: no certificate", "refused: another certificate"] * 3
        certificates = [security.tls_worker_cert, security.tls_worker_key]
        connected = subprocess.run([*command, *certificates], capture_output=True, text=True, check=True)
        assert connected.stdout.splitlines() == ["connected: the certificate"] * 3


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_certificates_are_readable_by_the_owner_only_and_removed(tmp_path):
    with cluster_security(tmp_path / "c") as security:
        (folder,) = (tmp_path / "c").iterdir()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
        assert modes == {folder.name: 0o700, "cert.pem": 0o600, "key.pem": 0o600}
        assert "PRIVATE KEY" in Path(security.tls_worker_key).read_text(encoding="ascii")
    assert not folder.exists()
    with pytest.raises(EthobenchError, match="choose another path"), cluster_security(tmp_path / "my runs"):
        pass


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(EthobenchError, match=r"ethobench\[cluster\]"), cluster_security():
        pass


def test_slurm_from_submission_to_results(tmp_path):
    """Replace `sbatch` and `scancel` by scripts that start and end the real batch script on this machine."""
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
    command = [*RUN[:-3], "chance", "--store", str(tmp_path / "s"), "--cluster", "slurm"]
    command += ["--queue", "short", "--nodes", "2", "--memory", "2GB"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=settings, cwd=tmp_path)
    log = (tmp_path / "batch.log").read_text(encoding="utf-8")
    assert ended.returncode == 0, ended.stdout + ended.stderr + log
    assert "4 jobs done" in ended.stdout
    assert re.search(r"Start worker at: +'?tls://", log)
    assert list((tmp_path / "s" / "certificates").iterdir()) == []
    pids = {json.loads(p.read_text(encoding="utf-8"))["pid"] for p in (tmp_path / "s" / "jobs").glob("*/*/timing.json")}
    assert len(pids) >= 1
