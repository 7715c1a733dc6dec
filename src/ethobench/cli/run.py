"""`ethobench run`: benchmarks that can be interrupted and resumed; one subcommand for each, generated from its options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer

from ethobench.cli.output import VisibleCommand, VisibleGroup, echo, secho
from ethobench.cli.workers import MACHINE, ClusterOptions
from ethobench.core.messages import Message
from ethobench.core.processes import usable_cores
from ethobench.core.wording import join_names

if TYPE_CHECKING:
    from ethobench.benchmarks import Benchmark
    from ethobench.runs import RunSummary

REPEATED = ("params", "variations")
"""Options that may be repeated; each value is name=value."""


class BenchmarkGroup(VisibleGroup):
    """The group of benchmarks; a benchmark's module is imported when its subcommand, or the help of the group, is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all benchmarks."""
        from ethobench.benchmarks import benchmarks

        return list(benchmarks.names())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the subcommand of a benchmark; None if there is no such benchmark."""
        from ethobench.benchmarks import benchmarks

        if cmd_name not in benchmarks:
            if Path(cmd_name).exists() or "/" in cmd_name:
                raise typer.BadParameter(f"{cmd_name!r} is not a benchmark. To run models on your study: ethobench run study {cmd_name}")
            return None
        return make_command(benchmarks[cmd_name])


app = typer.Typer(
    cls=BenchmarkGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Run a benchmark. Results are kept in a store; jobs that are finished already are not run again.\n\n"
    "After Ctrl-C or a crash, run the same command again to resume. Several runs may share a store.\n\n"
    "Example: [bold]ethobench run synthetic --models chance,rf --store runs/first[/bold]",
)


@dataclass(frozen=True, kw_only=True)
class RunOptions(ClusterOptions):
    """Options of every benchmark: where jobs run, and where results are kept."""

    store: Annotated[Path, typer.Option(help="Folder for the results. A run that is started again runs only the missing jobs.")]
    keep: Annotated[str, typer.Option(help="Also store these for each job, separated by commas: probabilities, model.")] = ""
    workers: Annotated[int, typer.Option(help="Number of processes; one per core by default.", min=1, rich_help_panel=MACHINE)] = (
        usable_cores()
    )

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return max(self.workers, self.nodes * self.cores if self.cluster else 1)


def make_command(benchmark: type[Benchmark]) -> Any:
    """Create the subcommand of a benchmark from its options."""

    def command(**values: Any) -> None:
        from ethobench.runs.executors import CERTIFICATES

        options = RunOptions(**{item.name: values.pop(item.name) for item in fields(RunOptions)})
        if options.show_script:
            options.print_script(options.store / CERTIFICATES)
        else:
            run_benchmark(benchmark(_parse_options(benchmark, values)), options)

    parameters = [*_benchmark_parameters(benchmark), *_run_parameters()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    group = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, add_completion=False)
    group.command(benchmark.name, cls=VisibleCommand, help=benchmark.description, short_help=benchmark.title)(command)
    return typer.main.get_command(group)


def run_benchmark(benchmark: Benchmark, options: RunOptions) -> None:
    """Run a benchmark, and print its progress and a summary."""
    from ethobench.benchmarks.expected_time import estimate_time, peek_all
    from ethobench.cli.progress import show_run_progress
    from ethobench.runs import Engine, Store, WorkerOptions
    from ethobench.runs.executors import CERTIFICATES
    from ethobench.runs.worker import KEEPABLE, preload_for_training

    keep = tuple(_split(options.keep))
    if wrong := [name for name in keep if name not in KEEPABLE]:
        raise typer.BadParameter(f"must be {join_names(KEEPABLE, 'or')}, got {', '.join(wrong)}", param_hint="--keep")
    store = Store(options.store)
    plans = list(benchmark.jobs(store, n_workers=options.n_workers, report=echo))
    jobs, plans = peek_all(plans)
    if expected := estimate_time(jobs, store).describe(options.n_workers):
        echo(expected)
    unfinished = {job.model for job in jobs if not store.has(job.key)}
    if unfinished and not (options.scheduler or options.cluster):
        preload_for_training(sorted(unfinished))
    worker_options = WorkerOptions(keep=keep, data=os.environ.get("ETHOBENCH_DATA", ""))
    try:
        with options.pool(options.workers, store.root / CERTIFICATES) as pool, show_run_progress() as report:
            summary = Engine(store, pool.make_executor, pool.count, report, worker_options).run(plans)
    except KeyboardInterrupt:
        secho("stopped; run the same command again to resume", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    benchmark.finish(store, echo)
    _print_summary(summary, options.store)


def _print_summary(summary: RunSummary, store: Path) -> None:
    n_failed = len(summary.failed) + len(summary.failed_plans)
    echo(f"{summary.done} jobs done, {summary.reused} reused, {n_failed} failed; see: ethobench results {store}")
    for error in (*summary.failed_plans, *dict.fromkeys(summary.failed.values())):
        secho(Message("failed: ", error), err=True, fg=typer.colors.RED)
    if n_failed:
        echo(f"tracebacks: ethobench status {store} --tracebacks", err=True)
        raise typer.Exit(1)


# ------------------------------------------------------------------------------------------- options of a benchmark as parameters


def _option_fields(benchmark: type[Benchmark]) -> list[Field[Any]]:
    """Return the fields of a benchmark's options, its own before those that it shares with others."""
    declared_names = [name for cls in benchmark.Options.__mro__ for name in vars(cls).get("__annotations__", {})]
    by_name = {item.name: item for item in fields(benchmark.Options) if not item.metadata["is_hidden"]}
    return [by_name[name] for name in dict.fromkeys(declared_names) if name in by_name]


def _benchmark_parameters(benchmark: type[Benchmark]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(benchmark.Options)
    for item in _option_fields(benchmark):
        kind, help_text = hints[item.name], item.metadata["help"]
        default: Any = item.default
        name = f"--{(item.metadata['name'] or item.name).replace('_', '-')}"
        names = [f"{name}/--no-{name[2:]}"] if default is True else [name]
        if item.name == "models" and benchmark.models:
            help_text = f"{help_text} Default: {', '.join(benchmark.models)}."
        if item.metadata["is_argument"]:
            yield _parameter(item.name, _annotate(kind, typer.Argument(help=help_text, metavar=item.name.upper())), inspect.Parameter.empty)
            continue
        if item.name in REPEATED:
            kind, default = list[str] | None, None
        elif get_origin(kind) is tuple:
            kind, default = str, ",".join(map(str, default))
        yield _parameter(
            item.name,
            _annotate(kind, typer.Option(*names, help=help_text, metavar="NAME=VALUE" if item.name in REPEATED else None)),
            default,
        )


def _run_parameters() -> Iterator[inspect.Parameter]:
    hints = get_type_hints(RunOptions, include_extras=True)
    for item in sorted(fields(RunOptions), key=lambda item: item.name in ClusterOptions.__dataclass_fields__):  # this machine first
        default = item.default if item.name != "store" else inspect.Parameter.empty
        yield _parameter(item.name, hints[item.name], default)


def _annotate(kind: Any, information: Any) -> Any:
    return cast("Any", Annotated)[kind, information]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parse_options(benchmark: type[Benchmark], values: Mapping[str, Any]) -> Any:
    """Create the options of a benchmark from the values of the command line."""
    from ethobench.cli.options import parse_params, parse_variations
    from ethobench.core.errors import EthobenchError

    hints = get_type_hints(benchmark.Options)
    models = _split(values.get("models")) or list(benchmark.models)
    options: dict[str, Any] = {}
    for name, value in values.items():
        if name == "params":
            options[name] = parse_params(value or [], models)
        elif name == "variations":
            options[name] = tuple(parse_params(pairs, models) for pairs in parse_variations(value)) if value else ()
        elif get_origin(hints[name]) is tuple:
            options[name] = tuple(_parse_elements(value, get_args(hints[name])[0], f"--{name.replace('_', '-')}"))
        else:
            options[name] = value
    try:
        return benchmark.Options(**options)
    except EthobenchError as error:
        raise typer.BadParameter(str(error)) from None


def _parse_elements(text: str, convert: Callable[[str], Any], hint: str) -> Sequence[Any]:
    try:
        return [convert(element) for element in _split(text)]
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be integers, separated by commas", param_hint=hint) from None


def _split(text: str | None) -> list[str]:
    return [element.strip() for element in text.split(",") if element.strip()] if text else []
