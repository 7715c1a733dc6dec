"""`ethobench run`: benchmarks that can be stopped, resumed and queried."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ethobench.runs import Outcome, Plan, Search
    from ethobench.runs.workers import Nodes, Workers

HERE, THERE, SCHOOL = "On this machine", "On a cluster", "What is done"


def run(
    benchmark: Annotated[str, typer.Argument(help="A benchmark (synthetic), or your own dataset: a folder or its recordings.csv.")],
    store: Annotated[Path, typer.Option(help="Folder for what is done; a run that is started again does only what is missing.")],
    datasets: Annotated[str | None, typer.Option(help="Only these, separated by commas.", rich_help_panel=SCHOOL)] = None,
    models: Annotated[str | None, typer.Option(help="Only these, separated by commas.", rich_help_panel=SCHOOL)] = None,
    search: Annotated[
        str, typer.Option(help="Choose hyper-parameters on the first fold: grid (the published one) or optuna.", rich_help_panel=SCHOOL)
    ] = "",
    trials: Annotated[int, typer.Option(help="How many cells optuna tries.", min=1, rich_help_panel=SCHOOL)] = 50,
    annotator: Annotated[
        str | None, typer.Option(help="Whom to learn from, where your data have several; or 'consensus'.", rich_help_panel=SCHOOL)
    ] = None,
    split: Annotated[
        str, typer.Option(help="What is never split between training and test: individual or recording.", rich_help_panel=SCHOOL)
    ] = "individual",
    keep: Annotated[str, typer.Option(help="Store more of each job: probabilities, model, or both.", rich_help_panel=SCHOOL)] = "",
    seed: Annotated[int, typer.Option(help="Of the first fold; fold k has seed + k.", rich_help_panel=SCHOOL)] = 0,
    workers: Annotated[int, typer.Option(help="Processes; one for each core unless given.", min=1, rich_help_panel=HERE)] = os.cpu_count()
    or 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Use the Dask cluster at this address, such as tcp://10.0.0.1:8786.", rich_help_panel=THERE)
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Start workers through slurm, pbs or sge; or local, to try it here.", rich_help_panel=THERE)
    ] = None,
    nodes: Annotated[int, typer.Option(help="How many batch jobs.", min=1, rich_help_panel=THERE)] = 1,
    cores: Annotated[int, typer.Option(help="Cores of each; one worker runs on each.", min=1, rich_help_panel=THERE)] = 1,
    memory: Annotated[str, typer.Option(help="Memory of each.", rich_help_panel=THERE)] = "8GB",
    walltime: Annotated[str, typer.Option(help="How long each may run, then it is replaced.", rich_help_panel=THERE)] = "12:00:00",
    queue: Annotated[str, typer.Option(help="Queue or partition.", rich_help_panel=THERE)] = "",
    account: Annotated[str, typer.Option(help="Account or project to charge.", rich_help_panel=THERE)] = "",
    show_script: Annotated[
        bool, typer.Option("--show-script", help="Print the batch script that would be submitted, and stop.", rich_help_panel=THERE)
    ] = False,
) -> None:
    """Run a benchmark into a store; what is there already is not done again.

    Stop it with Ctrl-C, or lose the machine: the same command goes on where it was. Several may work on one store.

    Examples
    --------
    [bold]ethobench run synthetic --models chance,rf --store runs/first[/bold]

    [bold]ethobench run my_study/ --models rf --search optuna --trials 30 --store runs/mine[/bold]

    [bold]ethobench run synthetic --store /shared/runs --cluster slurm --queue short --nodes 20[/bold]
    """
    from ethobench.runs.workers import Nodes

    asked = Nodes(nodes, cores, memory, walltime, queue, account)
    if show_script:
        _show_script(cluster, asked)
        return
    from ethobench.cli._progress import shown_progress
    from ethobench.runs import Engine, How, Store
    from ethobench.runs.perform import KEEPABLE

    kept = tuple(_list(keep))
    if wrong := [name for name in kept if name not in KEEPABLE]:
        raise typer.BadParameter(f"there is {' and '.join(KEEPABLE)} to keep, not {', '.join(wrong)}", param_hint="--keep")
    place = Store(store)
    how = How(keep=kept, data=os.environ.get("ETHOBENCH_DATA", ""))
    found = _search(search, place, trials, max(workers, nodes * cores if cluster else 1), seed)
    plans = _plans(benchmark, _list(datasets), _list(models), found, annotator, split, seed)
    try:
        with _workers(workers, scheduler, cluster, asked) as staff, shown_progress() as watch:
            outcome = Engine(place, staff.make_executor, staff.count, watch, how).run(plans)
    except KeyboardInterrupt:
        typer.secho("stopped; the same command goes on from here", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    _tell(outcome, store)


def _plans(
    benchmark: str, datasets: list[str], models: list[str], search: Search | None, annotator: str | None, split: str, seed: int
) -> list[Plan]:
    from ethobench.benchmarks import own, synthetic
    from ethobench.core.errors import NotFoundError

    if benchmark == "synthetic":
        found: Iterable[Plan] = synthetic.plans(datasets or synthetic.DATASETS, models or synthetic.MODELS, search=search, seed=seed)
    elif Path(benchmark).exists() or "/" in benchmark:
        if datasets:
            raise typer.BadParameter("belongs to benchmarks of several datasets", param_hint="--datasets")
        found = own.plans(benchmark, models or own.MODELS, search=search, annotator=annotator, by=split, seed=seed)
    else:
        raise NotFoundError(f"no benchmark {benchmark!r}, and no dataset of your own there; benchmarks are: synthetic")
    return list(found)


def _search(kind: str, store: object, trials: int, at_once: int, seed: int) -> Search | None:
    from ethobench.runs import GridSearch, OptunaSearch, Store

    if kind not in ("", "grid", "optuna"):
        raise typer.BadParameter(f"a search is 'grid' or 'optuna', not {kind!r}", param_hint="--search")
    if kind == "grid":
        return GridSearch()
    return OptunaSearch(store.root / "search", trials, at_once, seed=seed) if kind and isinstance(store, Store) else None


def _workers(count: int, scheduler: str | None, cluster: str | None, nodes: Nodes) -> AbstractContextManager[Workers]:
    from ethobench.runs.workers import cluster_workers, dask_workers, local_workers

    if scheduler and cluster:
        raise typer.BadParameter("either a scheduler that runs, or a cluster to start", param_hint="--scheduler")
    if scheduler:
        return dask_workers(scheduler)
    return cluster_workers(cluster, nodes) if cluster else local_workers(count)


def _show_script(cluster: str | None, nodes: Nodes) -> None:
    from ethobench.runs.workers import make_cluster

    if cluster in (None, "local"):
        raise typer.BadParameter("a batch script belongs to slurm, pbs or sge", param_hint="--show-script")
    with make_cluster(str(cluster), nodes, start=False) as made:
        typer.echo(made.job_script())


def _tell(outcome: Outcome, store: Path) -> None:
    failed = len(outcome.failed) + len(outcome.broken)
    typer.echo(f"{outcome.done} jobs done, {outcome.there} were there, {failed} failed; see: ethobench results {store}")
    for reason in (*outcome.broken, *dict.fromkeys(outcome.failed.values())):
        typer.secho(f"failed: {reason}", err=True, fg=typer.colors.RED)
    if failed:
        typer.echo(f"where they failed: ethobench status {store} --tracebacks", err=True)
        raise typer.Exit(1)


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []
