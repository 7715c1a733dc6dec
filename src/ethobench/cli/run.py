"""`ethobench run`: benchmarks that can be stopped, resumed and queried."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli._output import echo, secho
from ethobench.core.processes import usable_cores

if TYPE_CHECKING:
    from ethobench.runs import Outcome, Plan, Search, Store
    from ethobench.runs.workers import Nodes, Workers

Fixed = tuple[list[str], str]
HERE, THERE, SCHOOL, ASKED = "On this machine", "On a cluster", "What is done", "Rodent-Bench"


def run(
    benchmark: Annotated[
        str, typer.Argument(help="bebe, calms21, rodentbench, synthetic, or your own dataset: a folder or its recordings.csv.")
    ],
    store: Annotated[Path, typer.Option(help="Folder for what is done; a run that is started again does only what is missing.")],
    datasets: Annotated[str | None, typer.Option(help="Only these, separated by commas.", rich_help_panel=SCHOOL)] = None,
    models: Annotated[str | None, typer.Option(help="Only these, separated by commas.", rich_help_panel=SCHOOL)] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            help="A hyper-parameter: trees=200 for all that have it, rf.trees=200 for one; may be repeated.", rich_help_panel=SCHOOL
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="Try every one of a hyper-parameter's values: frame_stride=1,2,4, or past+future=50,100 together; may be repeated.",
            rich_help_panel=SCHOOL,
        ),
    ] = None,
    decode: Annotated[
        str,
        typer.Option(
            help="Choose how probabilities become bouts, within the training data, for: f1, bout_f1, balanced, ...", rich_help_panel=SCHOOL
        ),
    ] = "",
    suite: Annotated[
        str, typer.Option(help="Your own data: suites to score with, separated by commas.", rich_help_panel=SCHOOL)
    ] = "ethobench",
    published: Annotated[bool, typer.Option("--published", help="Use the papers' hyper-parameters.", rich_help_panel=SCHOOL)] = False,
    search: Annotated[
        str | None,
        typer.Option(
            help="Choose hyper-parameters on the first fold: grid (each model's own), optuna, or none. "
            "Published benchmarks search the grid unless told otherwise, other data use the defaults.",
            rich_help_panel=SCHOOL,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="How many cells optuna tries.", min=1, rich_help_panel=SCHOOL)] = 50,
    settings: Annotated[
        str, typer.Option(help="bebe: full, reduced (train on one fold), or both, separated by commas.", rich_help_panel=SCHOOL)
    ] = "full",
    gyroscope: Annotated[
        bool, typer.Option("--gyroscope/--no-gyroscope", help="bebe: whether to use gyroscopes.", rich_help_panel=SCHOOL)
    ] = True,
    tasks: Annotated[str, typer.Option(help="calms21: which tasks, separated by commas.", rich_help_panel=SCHOOL)] = "1,2,3",
    seeds: Annotated[str, typer.Option(help="calms21: seeds, separated by commas.", rich_help_panel=SCHOOL)] = "42,43,44,45,46",
    share: Annotated[float, typer.Option(help="calms21: share of task 1's training videos to use.", rich_help_panel=SCHOOL)] = 1.0,
    recipe: Annotated[
        str,
        typer.Option(help="calms21: tasks 2 and 3 as the published code did them (code), or as the paper says.", rich_help_panel=SCHOOL),
    ] = "code",
    annotator: Annotated[
        str | None, typer.Option(help="Whom to learn from, where your data have several; or 'consensus'.", rich_help_panel=SCHOOL)
    ] = None,
    split: Annotated[
        str, typer.Option(help="What is never split between training and test: individual or recording.", rich_help_panel=SCHOOL)
    ] = "individual",
    folds: Annotated[
        str, typer.Option(help="Test only these folds, separated by commas; the others can follow later.", rich_help_panel=SCHOOL)
    ] = "",
    few_shot: Annotated[
        str,
        typer.Option(
            help="Your own data: learn each behavior from so many recordings, such as 1,2,4,8; see --before.", rich_help_panel=SCHOOL
        ),
    ] = "",
    before: Annotated[
        str, typer.Option(help="With --few-shot: the same recordings with other labels, to begin with.", rich_help_panel=SCHOOL)
    ] = "",
    keep: Annotated[str, typer.Option(help="Store more of each job: probabilities, model, or both.", rich_help_panel=SCHOOL)] = "",
    seed: Annotated[int, typer.Option(help="Of the first fold; fold k has seed + k.", rich_help_panel=SCHOOL)] = 0,
    provider: Annotated[str, typer.Option(help="gemini, openai or replay; chance alone unless told.", rich_help_panel=ASKED)] = "",
    answers: Annotated[Path | None, typer.Option(help="For replay: folder of answers.", rich_help_panel=ASKED)] = None,
    versions: Annotated[str, typer.Option(help="short, long, or both.", rich_help_panel=ASKED)] = "short,long",
    shots: Annotated[int, typer.Option(help="Worked examples in each question.", min=0, rich_help_panel=ASKED)] = 0,
    reading: Annotated[str, typer.Option(help="How answers are read: repair, or published.", rich_help_panel=ASKED)] = "repair",
    base_url: Annotated[str, typer.Option(help="Another server's address.", metavar="URL", rich_help_panel=ASKED)] = "",
    max_cost: Annotated[float | None, typer.Option(help="Most dollars to spend.", min=0, rich_help_panel=ASKED)] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Ask in batches: cheaper, slower.", rich_help_panel=ASKED)] = False,
    workers: Annotated[int, typer.Option(help="Processes; one for each core unless given.", min=1, rich_help_panel=HERE)] = usable_cores(),
    scheduler: Annotated[
        str | None, typer.Option(help="Use the Dask cluster at this address, such as tls://10.0.0.1:8786.", rich_help_panel=THERE)
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

    For example:

    [bold]ethobench run synthetic --models chance,rf --store runs/first[/bold]

    [bold]ethobench run bebe --datasets HAR --models rf,cnn --published --store runs/bebe[/bold]

    [bold]ethobench run calms21 --tasks 1,2,3 --store runs/calms21[/bold]

    [bold]ethobench run my_study/ --models boost --search optuna --trials 30 --store runs/mine[/bold]

    [bold]ethobench run my_study/ --models conv1d --vary past+future=25,50,100 --vary frame_stride=1,2 --store runs/windows[/bold]

    [bold]ethobench run synthetic --store /shared/runs --cluster slurm --queue short --nodes 20[/bold]
    """
    from ethobench.runs.workers import Nodes

    asked = Nodes(nodes, cores, memory, walltime, queue, account)
    if show_script:
        _show_script(cluster, asked, store)
        return
    from ethobench.cli._options import parse_variations
    from ethobench.cli._progress import shown_progress
    from ethobench.runs import Engine, How, Store
    from ethobench.runs.perform import KEEPABLE

    kept = tuple(_list(keep))
    if wrong := [name for name in kept if name not in KEEPABLE]:
        raise typer.BadParameter(f"there is {' and '.join(KEEPABLE)} to keep, not {', '.join(wrong)}", param_hint="--keep")
    place = Store(store)
    how = How(keep=kept, data=os.environ.get("ETHOBENCH_DATA", ""))
    if published and search not in (None, "none"):
        raise typer.BadParameter("either the papers' hyper-parameters, or a search for others", param_hint="--search")
    kind = "none" if published else search or ("grid" if benchmark == "bebe" else "none")
    found = _search(kind, place, trials, max(workers, nodes * cores if cluster else 1), seed)
    fixed = param or [], decode
    tries: list[Fixed] = [([*fixed[0], *cell], decode) for cell in parse_variations(vary or [])]
    if vary and (benchmark in ("calms21", "rodentbench") or few_shot):
        raise typer.BadParameter("belongs to bebe, synthetic and your own data", param_hint="--vary")
    if folds and benchmark in ("calms21", "rodentbench"):
        raise typer.BadParameter("belongs to bebe, synthetic and your own data", param_hint="--folds")
    if benchmark == "bebe":
        plans = [plan for cell in tries for plan in _bebe(_list(datasets), _list(models), cell, found, _list(settings), gyroscope, seed)]
    elif benchmark == "calms21":
        plans = _calms21(_numbers(tasks, "--tasks"), _list(models), fixed, _numbers(seeds, "--seeds"), share, recipe)
    elif benchmark == "rodentbench":
        from ethobench.benchmarks import rodentbench

        plans = rodentbench.plan_run(
            _list(datasets),
            _list(models),
            provider=provider,
            answers=answers,
            versions=_list(versions),
            shots=shots,
            rule=reading,
            base_url=base_url,
            max_cost=max_cost,
            batch=batch,
            annotator=annotator,
            seed=seed,
            tell=echo,
        )
    elif few_shot:
        curve = _numbers(few_shot, "--few-shot"), _numbers(folds, "--folds")
        plans = _few_shot(benchmark, *curve, before, _list(models), fixed, annotator, seed)
    else:
        plans = [
            plan
            for cell in tries
            for plan in _plans(benchmark, _list(datasets), _list(models), cell, found, annotator, split, _list(suite), seed)
        ]
    if folds and not few_shot:
        from ethobench.benchmarks.folds import only_folds

        plans = [only_folds(plan, _numbers(folds, "--folds")) for plan in plans]
    try:
        with _workers(workers, scheduler, cluster, asked, place) as staff, shown_progress() as watch:
            outcome = Engine(place, staff.make_executor, staff.count, watch, how).run(plans)
    except KeyboardInterrupt:
        secho("stopped; the same command goes on from here", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    _tell(outcome, store)


def _bebe(
    datasets: list[str], models: list[str], fixed: Fixed, search: Search | None, settings: list[str], gyroscope: bool, seed: int
) -> list[Plan]:
    from ethobench.benchmarks import bebe
    from ethobench.cli._options import parse_params

    chosen = models or bebe.MODELS
    params = parse_params(fixed[0], chosen, fixed[1])
    return list(bebe.plans(datasets, chosen, params=params, search=search, settings=settings, without_gyroscope=not gyroscope, seed=seed))


def _calms21(tasks: list[int], models: list[str], fixed: Fixed, seeds: list[int], share: float, recipe: str) -> list[Plan]:
    from ethobench.benchmarks import calms21
    from ethobench.cli._options import parse_params

    chosen = models or list(calms21.MODELS)
    protocol = calms21.Protocol(seeds, share, recipe, parse_params(fixed[0], chosen, fixed[1]))
    return list(calms21.plans(tasks, chosen, protocol))


def _few_shot(
    dataset: str, counts: list[int], folds: list[int], before: str, models: list[str], fixed: Fixed, annotator: str | None, seed: int
) -> list[Plan]:
    from ethobench.benchmarks import few_shot
    from ethobench.cli._options import parse_params

    chosen = models or ["conv1d"]
    params = parse_params(fixed[0], chosen, fixed[1])
    known = {model: {name: value for name, value in told.items() if name in few_shot.SHARED} for model, told in params.items()}
    curve = few_shot.Curve(counts, before=before, params=params, params_before=known, folds=folds)
    return list(few_shot.plans(dataset, chosen, curve, annotator=annotator, seed=seed))


def _plans(
    benchmark: str,
    datasets: list[str],
    models: list[str],
    fixed: Fixed,
    search: Search | None,
    annotator: str | None,
    split: str,
    suites: list[str],
    seed: int,
) -> list[Plan]:
    from ethobench.benchmarks import own, synthetic
    from ethobench.cli._options import parse_params
    from ethobench.core.errors import NotFoundError

    chosen = models or list(own.MODELS)
    params = parse_params(fixed[0], chosen, fixed[1])
    if benchmark == "synthetic":
        found: Iterable[Plan] = synthetic.plans(datasets or synthetic.DATASETS, chosen, params=params, search=search, seed=seed)
    elif Path(benchmark).exists() or "/" in benchmark:
        if datasets:
            raise typer.BadParameter("belongs to benchmarks of several datasets", param_hint="--datasets")
        found = own.plans(benchmark, chosen, params=params, search=search, annotator=annotator, by=split, suites=suites, seed=seed)
    else:
        raise NotFoundError(
            f"no benchmark {benchmark!r}, and no dataset of your own there; benchmarks are: bebe, calms21, rodentbench, synthetic"
        )
    return list(found)


def _search(kind: str, store: Store, trials: int, at_once: int, seed: int) -> Search | None:
    from ethobench.runs import GridSearch, OptunaSearch

    if kind not in ("none", "grid", "optuna"):
        raise typer.BadParameter(f"a search is 'grid', 'optuna' or 'none', not {kind!r}", param_hint="--search")
    if kind == "grid":
        return GridSearch()
    return OptunaSearch(store.root / "search", trials, at_once, seed=seed) if kind == "optuna" else None


def _workers(count: int, scheduler: str | None, cluster: str | None, nodes: Nodes, store: Store) -> AbstractContextManager[Workers]:
    from ethobench.cli._output import print_note
    from ethobench.runs.workers import CERTIFICATES, cluster_workers, dask_workers, local_workers

    if scheduler and cluster:
        raise typer.BadParameter("either a scheduler that runs, or a cluster to start", param_hint="--scheduler")
    if scheduler:
        if not scheduler.startswith("tls://"):
            print_note(f"whoever can reach {scheduler} can run code on its workers; give the scheduler certificates and use tls://")
        return dask_workers(scheduler)
    return cluster_workers(cluster, nodes, store.root / CERTIFICATES) if cluster else local_workers(count)


def _show_script(cluster: str | None, nodes: Nodes, store: Path) -> None:
    from ethobench.runs.workers import CERTIFICATES, cluster_security, make_cluster

    if cluster in (None, "local"):
        raise typer.BadParameter("a batch script belongs to slurm, pbs or sge", param_hint="--show-script")
    with (
        TemporaryDirectory() as folder,
        cluster_security(Path(folder)) as security,
        make_cluster(str(cluster), nodes, security, start=False) as made,
    ):
        certificates = str((store / CERTIFICATES).resolve())  # where the run will put them
        echo(made.job_script().replace(str(Path(folder).resolve()), certificates))


def _tell(outcome: Outcome, store: Path) -> None:
    failed = len(outcome.failed) + len(outcome.broken)
    echo(f"{outcome.done} jobs done, {outcome.there} were there, {failed} failed; see: ethobench results {store}")
    for reason in (*outcome.broken, *dict.fromkeys(outcome.failed.values())):
        secho(f"failed: {reason}", err=True, fg=typer.colors.RED)
    if failed:
        echo(f"where they failed: ethobench status {store} --tracebacks", err=True)
        raise typer.Exit(1)


def _numbers(text: str, hint: str) -> list[int]:
    try:
        return [int(part) for part in _list(text)]
    except ValueError:
        raise typer.BadParameter(f"{text!r} are not whole numbers, separated by commas", param_hint=hint) from None


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []
