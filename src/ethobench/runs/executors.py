"""Executors: worker processes on this machine or on a Dask cluster, behind `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError
from ethobench.core.files import temporary_folder
from ethobench.core.processes import usable_cores

CLUSTERS = ("local", "slurm", "pbs", "sge")
CERTIFICATES = "certificates"
"""Folder in a store for the certificates of running clusters."""
CERTIFICATE_SECONDS = 60 * 24 * 3600.0
"""Age beyond which the cluster of a run on another machine has certainly ended."""

CONNECT_TIMEOUT = "10s"
"""How long a running scheduler may take to respond."""

QUIET_DASK = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.scheduler.work-stealing": False,
}
"""Dask configuration without the self-monitoring for its dashboard, which costs time."""


@dataclass(frozen=True)
class WorkerPool:
    """A pool of workers.

    Attributes
    ----------
    make_executor : callable
        Creates an executor; called again when an executor breaks.
    count : callable
        Returns the current number of workers.
    """

    make_executor: Callable[[], Executor]
    count: Callable[[], int]


@dataclass(frozen=True)
class ClusterNodes:
    """Resources requested from the batch system of a cluster.

    Attributes
    ----------
    nodes : int
        Number of batch jobs.
    cores : int
        Cores per batch job; one worker runs on each core.
    memory : str
        Memory per batch job, such as ``"16GB"``.
    walltime : str
        Time limit per batch job; batch jobs that end are replaced as long as the run needs them.
    queue, account : str
        Names of the queue (or partition) and of the account (or project).
    """

    nodes: int = 1
    cores: int = 1
    memory: str = "8GB"
    walltime: str = "12:00:00"
    queue: str = ""
    account: str = ""


class ThisProcess(Executor):
    """An executor without workers: each job runs in this process when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job to its end. Ctrl-C interrupts it and is passed on."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""How worker processes start. A server that has only imported modules is forked, which is safe: it has no threads and has computed nothing,
unlike this process. On macOS, system libraries do not support that."""


def process_pool(workers: int) -> Executor:
    """Create a pool of processes, each of which uses an equal share of the cores."""
    preload_workers(["ethobench.runs.worker"])
    threads = max(1, usable_cores() // workers)
    return ProcessPoolExecutor(workers, mp_context=get_context(START_METHOD), initializer=_initialize, initargs=(threads, dict(os.environ)))


def preload_workers(modules: Sequence[str]) -> None:
    """Start the server that worker processes are forked from, so that it imports modules while this process does something else.

    Has no effect if the server already runs, or on systems where each worker is a new interpreter.

    Parameters
    ----------
    modules : sequence of str
        Modules that all workers need. Those that do not exist are skipped.
    """
    if START_METHOD != "forkserver":
        return
    from multiprocessing import forkserver, resource_tracker

    forkserver.set_forkserver_preload(list(modules))
    resource_tracker.ensure_running()  # before signals are blocked, since it unblocks them
    search_path = os.environ.get("PYTHONPATH")
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the server inherits it: Ctrl-C is handled by the run
    try:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # as workers will have, so that the same modules are imported
        forkserver.ensure_running()
    finally:
        if search_path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = search_path
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)


def _initialize(threads: int, environment: dict[str, str]) -> None:
    """Initialize a worker process: numerical libraries must not use all cores in every process.

    The environment of the run may have changed since the server of the workers started.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the run
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    limit_threads(threads)


def limit_threads(threads: int) -> None:
    """Limit the number of threads of numerical libraries in this process, loaded now or later."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = str(threads)


def _end_with_parent() -> None:
    """End this worker when the process that started it has died."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def local_pool(count: int) -> Iterator[WorkerPool]:
    """Use worker processes on this machine."""
    yield WorkerPool(lambda: process_pool(count), lambda: count)


@contextmanager
def this_process() -> Iterator[WorkerPool]:
    """Run jobs in this process, one after the other."""
    yield WorkerPool(ThisProcess, lambda: 1)


@contextmanager
def dask_pool(address: str) -> Iterator[WorkerPool]:
    """Use a running Dask cluster.

    Parameters
    ----------
    address : str
        Address of its scheduler, such as ``tls://10.0.0.1:8786``. Certificates are read from Dask's configuration
        (``distributed.comm.tls``).
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EthobenchError(f"no Dask scheduler responds at {address} ({error}); start one with: dask scheduler") from None
    with client:
        yield _pool_of(client)


@contextmanager
def cluster_pool(kind: str, nodes: ClusterNodes, certificates: Path | None = None) -> Iterator[WorkerPool]:
    """Start a Dask cluster through a batch system, or on this machine, and stop it afterwards.

    Only this process and its workers can connect: all connections use TLS with a certificate created for this cluster.

    Parameters
    ----------
    kind : {"slurm", "pbs", "sge", "local"}
    nodes : ClusterNodes
    certificates : Path, optional
        Folder on a disk shared by all nodes, for the certificates of clusters of a batch system.
    """
    distributed = _distributed()
    with (
        cluster_security(certificates if kind != "local" else None) as security,
        make_cluster(kind, nodes, security) as cluster,
        distributed.Client(cluster, security=security, set_as_default=False) as client,
    ):
        yield _pool_of(client)


@contextmanager
def cluster_security(folder: Path | None = None) -> Iterator[Any]:
    """Create a key and a certificate for one cluster; without them nobody can connect to its scheduler and workers.

    Parameters
    ----------
    folder : Path, optional
        Folder for the files that workers on other machines read. Only the owner can read them, and they are removed when the block
        ends. By default key and certificate are kept in memory.

    Yields
    ------
    distributed.Security
    """
    security_class = _distributed().Security
    try:
        security = security_class.temporary()
    except ImportError:
        raise EthobenchError('clusters need the package cryptography: pip install "ethobench[cluster]"') from None
    if folder is None:
        yield security
        return
    folder = folder.resolve()
    if shlex.quote(str(folder)) != str(folder):
        raise EthobenchError(
            f"{folder.parent}: batch scripts cannot contain spaces or special characters in paths; choose another path for the store"
        )
    with temporary_folder(folder, mode=0o700, stale_after=CERTIFICATE_SECONDS) as private:
        contents = {"cert": security.tls_worker_cert, "key": security.tls_worker_key}
        files = {name: _write_private(private / f"{name}.pem", content) for name, content in contents.items()}
        roles = {f"tls_{role}_{name}": file for role in ("client", "scheduler", "worker") for name, file in files.items()}
        yield security_class(require_encryption=True, tls_ca_file=files["cert"], **roles)


def _write_private(path: Path, content: str) -> str:
    """Write a file that only its owner can read, from the first byte."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return str(path)


def make_cluster(kind: str, nodes: ClusterNodes, security: Any, *, start: bool = True) -> Any:
    """Create a Dask cluster of one of `CLUSTERS`; for batch systems ``.job_script()`` returns the script that is submitted.

    Parameters
    ----------
    kind : {"slurm", "pbs", "sge", "local"}
    nodes : ClusterNodes
    security : distributed.Security
        From `cluster_security`; for a batch system, with a folder.
    start : bool
        Submit batch jobs.
    """
    if kind not in CLUSTERS:
        raise EthobenchError(f"unknown cluster {kind!r}; available: {', '.join(CLUSTERS)}")
    distributed = _distributed()
    if kind == "local":
        import dask

        with dask.config.set(QUIET_DASK):
            return distributed.LocalCluster(
                n_workers=nodes.nodes * nodes.cores,
                threads_per_worker=1,
                dashboard_address=None,
                host="127.0.0.1",
                security=security,
            )
    import dask
    import dask_jobqueue

    cluster_class = getattr(dask_jobqueue, f"{kind.upper()}Cluster")
    named: dict[str, Any] = {name: value for name, value in (("queue", nodes.queue), ("account", nodes.account)) if value}
    if kind == "sge" and nodes.account:
        named["project"] = named.pop("account")
    worker_arguments = [*(dask.config.get(f"jobqueue.{kind}.worker-extra-args", None) or ()), "--no-dashboard"]
    scheduler_options = {**(dask.config.get(f"jobqueue.{kind}.scheduler-options", None) or {}), "dashboard": False}
    cluster = cluster_class(
        cores=nodes.cores,
        processes=nodes.cores,
        memory=nodes.memory,
        walltime=nodes.walltime,
        security=security,
        scheduler_options=scheduler_options,
        worker_extra_args=worker_arguments,
        **named,
    )
    if start:
        cluster.adapt(minimum_jobs=nodes.nodes, maximum_jobs=nodes.nodes)  # batch jobs that reach their time limit are replaced
    return cluster


def _pool_of(client: Any) -> WorkerPool:
    last_query: list[float] = [float("-inf"), 0]  # time, number of workers

    def count() -> int:
        """Query the scheduler, but not for every job."""
        if time.monotonic() - last_query[0] > 1.0:
            last_query[:] = time.monotonic(), sum(client.nthreads().values())
        return int(last_query[1])

    return WorkerPool(client.get_executor, count)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise EthobenchError('clusters need additional packages: pip install "ethobench[cluster]"') from None
    return distributed
