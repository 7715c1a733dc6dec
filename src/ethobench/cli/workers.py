"""Where jobs run: the options of `run` and `predict` for processes of this machine and for clusters."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ethobench.cli.output import echo, print_note

if TYPE_CHECKING:
    from ethobench.runs.executors import ClusterNodes, WorkerPool

MACHINE, CLUSTER = "This machine", "Cluster"

SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Address of a running Dask scheduler, such as tls://10.0.0.1:8786.", metavar="ADDRESS", rich_help_panel=CLUSTER),
]
ClusterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Start workers through slurm, pbs or sge; or local, to test it on this machine.", rich_help_panel=CLUSTER),
]
NodesOption: TypeAlias = Annotated[int, typer.Option(help="Number of batch jobs.", min=1, rich_help_panel=CLUSTER)]
CoresOption: TypeAlias = Annotated[int, typer.Option(help="Cores per batch job; one worker runs on each.", min=1, rich_help_panel=CLUSTER)]
MemoryOption: TypeAlias = Annotated[str, typer.Option(help="Memory per batch job.", rich_help_panel=CLUSTER)]
WalltimeOption: TypeAlias = Annotated[
    str, typer.Option(help="Time limit per batch job; batch jobs that reach it are replaced.", rich_help_panel=CLUSTER)
]
QueueOption: TypeAlias = Annotated[str, typer.Option(help="Queue or partition.", rich_help_panel=CLUSTER)]
AccountOption: TypeAlias = Annotated[str, typer.Option(help="Account or project.", rich_help_panel=CLUSTER)]
ShowScriptOption: TypeAlias = Annotated[
    bool, typer.Option("--show-script", help="Print the batch script that would be submitted, and exit.", rich_help_panel=CLUSTER)
]


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a cluster."""

    scheduler: SchedulerOption = None
    cluster: ClusterOption = None
    nodes: NodesOption = 1
    cores: CoresOption = 1
    memory: MemoryOption = "8GB"
    walltime: WalltimeOption = "12:00:00"
    queue: QueueOption = ""
    account: AccountOption = ""
    show_script: ShowScriptOption = False

    def cluster_nodes(self) -> ClusterNodes:
        """Return the resources to request from a cluster."""
        from ethobench.runs.executors import ClusterNodes

        return ClusterNodes(self.nodes, self.cores, self.memory, self.walltime, self.queue, self.account)

    def pool(self, workers: int, certificates: Path) -> AbstractContextManager[WorkerPool]:
        """Return the workers: of a running scheduler, of a cluster that is started, or else processes of this machine.

        Parameters
        ----------
        workers : int
            Number of processes of this machine.
        certificates : Path
            Folder for the certificates of a cluster, on a disk shared by all nodes.
        """
        from ethobench.runs.executors import cluster_pool, dask_pool, local_pool

        if self.scheduler and self.cluster:
            raise typer.BadParameter("use either a running scheduler, or --cluster to start one", param_hint="--scheduler")
        if self.scheduler:
            if not self.scheduler.startswith("tls://"):
                print_note(
                    f"anyone who can reach {self.scheduler} can run code on its workers; give the scheduler certificates and use tls://"
                )
            return dask_pool(self.scheduler)
        if self.cluster:
            return cluster_pool(self.cluster, self.cluster_nodes(), certificates)
        return local_pool(workers)

    def print_script(self, certificates: Path) -> None:
        """Print the batch script that would be submitted.

        Parameters
        ----------
        certificates : Path
            Folder in which the run will put its certificates.
        """
        from ethobench.runs.executors import cluster_security, make_cluster

        if self.cluster in (None, "local"):
            raise typer.BadParameter("needs --cluster slurm, pbs or sge", param_hint="--show-script")
        with (
            TemporaryDirectory() as folder,
            cluster_security(Path(folder)) as security,
            make_cluster(str(self.cluster), self.cluster_nodes(), security, start=False) as cluster,
        ):
            echo(cluster.job_script().replace(str(Path(folder).resolve()), str(certificates.resolve())))
