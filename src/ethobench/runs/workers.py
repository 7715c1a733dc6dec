"""Workers on this machine and on clusters, all behind `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
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
"""Folder in a store for the certificates of clusters that run."""
CERTIFICATE_SECONDS = 60 * 24 * 3600.0
"""Age beyond which the cluster of a run on another machine is not running any more."""

UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.scheduler.work-stealing": False,
}
"""What Dask's workers watch of themselves for its dashboard costs time, and here nobody looks."""


@dataclass(frozen=True)
class Workers:
    """Something that does jobs.

    Attributes
    ----------
    make_executor : callable
        Makes an executor; called again when one breaks.
    count : callable
        How many there are now.
    """

    make_executor: Callable[[], Executor]
    count: Callable[[], int]


@dataclass(frozen=True)
class Nodes:
    """What is asked of a cluster's queue.

    Attributes
    ----------
    nodes : int
        How many batch jobs.
    cores : int
        Of each; one worker runs on each core.
    memory : str
        Of each node, such as ``"16GB"``.
    walltime : str
        How long each may run; workers that end are replaced as long as the run needs them.
    queue, account : str
        As the cluster calls them.
    """

    nodes: int = 1
    cores: int = 1
    memory: str = "8GB"
    walltime: str = "12:00:00"
    queue: str = ""
    account: str = ""


def process_pool(workers: int) -> Executor:
    """Make a pool of processes that share the cores fairly."""
    threads = max(1, usable_cores() // workers)
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_set_up, initargs=(threads,))


def _set_up(threads: int) -> None:
    """Set a worker up: numerical libraries must not take all cores in every process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run as a whole to act on
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(threads)


def limit_threads(threads: int) -> None:
    """Limit the threads of numerical libraries in this process, those already loaded and those to come."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = str(threads)


def _end_with_parent() -> None:
    """End this worker when the run that started it is gone: nobody would tell it to."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def local_workers(count: int) -> Iterator[Workers]:
    """Use processes of this machine."""
    yield Workers(lambda: process_pool(count), lambda: count)


@contextmanager
def dask_workers(address: str) -> Iterator[Workers]:
    """Use a Dask cluster that is running.

    Parameters
    ----------
    address : str
        Of its scheduler, such as ``tls://10.0.0.1:8786``. Certificates are those of Dask's configuration (``distributed.comm.tls``).
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise EthobenchError(f"no Dask scheduler answers at {address} ({error}); start one with: dask scheduler") from None
    with client:
        yield _workers_of(client)


@contextmanager
def cluster_workers(kind: str, nodes: Nodes, certificates: Path | None = None) -> Iterator[Workers]:
    """Start a Dask cluster through a batch system, or on this machine, and end it afterwards.

    Only this process and the workers that it starts can connect: all connections use TLS with a certificate made for this cluster.

    Parameters
    ----------
    kind : {"slurm", "pbs", "sge", "local"}
    nodes : Nodes
    certificates : Path, optional
        Folder on a disk that all nodes see, for the certificates of clusters of a batch system.
    """
    distributed = _distributed()
    with (
        cluster_security(certificates if kind != "local" else None) as security,
        make_cluster(kind, nodes, security) as cluster,
        distributed.Client(cluster, security=security, set_as_default=False) as client,
    ):
        yield _workers_of(client)


@contextmanager
def cluster_security(folder: Path | None = None) -> Iterator[Any]:
    """Make a key and a certificate for one cluster; who does not have them cannot connect to its scheduler and workers.

    Parameters
    ----------
    folder : Path, optional
        Where to keep them for workers on other machines, in files that only the owner can read, until the block ends. In memory
        unless given.

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
        raise EthobenchError(f"{folder.parent}: batch scripts cannot hold blanks or special characters; choose another path for the store")
    with temporary_folder(folder, mode=0o700, stale_after=CERTIFICATE_SECONDS) as private:
        contents = {"cert": security.tls_worker_cert, "key": security.tls_worker_key}
        files = {name: _write_private(private / f"{name}.pem", content) for name, content in contents.items()}
        roles = {f"tls_{role}_{name}": file for role in ("client", "scheduler", "worker") for name, file in files.items()}
        yield security_class(require_encryption=True, tls_ca_file=files["cert"], **roles)


def _write_private(path: Path, content: str) -> str:
    """Write a file that only its owner can read, from the first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return str(path)


def make_cluster(kind: str, nodes: Nodes, security: Any, *, start: bool = True) -> Any:
    """Make a Dask cluster of one of `CLUSTERS`; for batch systems ``.job_script()`` tells what is submitted on start.

    Parameters
    ----------
    kind : {"slurm", "pbs", "sge", "local"}
    nodes : Nodes
    security : distributed.Security
        From `cluster_security`; in files for a batch system.
    start : bool
        Submit batch jobs.
    """
    if kind not in CLUSTERS:
        raise EthobenchError(f"no cluster {kind!r}; there are: {', '.join(CLUSTERS)}")
    distributed = _distributed()
    if kind == "local":
        import dask

        with dask.config.set(UNWATCHED):
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
        cluster.adapt(minimum_jobs=nodes.nodes, maximum_jobs=nodes.nodes)  # nodes whose time runs out are replaced
    return cluster


def _workers_of(client: Any) -> Workers:
    asked: list[float] = [float("-inf"), 0]

    def count() -> int:
        """Ask the scheduler, but not for every job."""
        if time.monotonic() - asked[0] > 1.0:
            asked[:] = time.monotonic(), sum(client.nthreads().values())
        return int(asked[1])

    return Workers(client.get_executor, count)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise EthobenchError('clusters need more packages: pip install "ethobench[cluster]"') from None
    return distributed
