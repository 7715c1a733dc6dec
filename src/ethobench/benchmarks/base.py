"""The benchmark contract: options, jobs, tables and published scores; and the registry of benchmarks.

A benchmark is one class in one module. Its options are a dataclass, from which the options of ``ethobench run NAME`` are generated. Its
jobs are plans for the engine. Its tables are shown by ``ethobench results STORE --table NAME`` and in reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from ethobench.benchmarks.published import PublishedScore, published_scores
from ethobench.core import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.registry import Registry
from ethobench.core.wording import join_names
from ethobench.models import models
from ethobench.runs import GridSearch, Job, JobPlan, OptunaSearch, Search, Store, hash_files

Row: TypeAlias = dict[str, Any]
Params: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Hyper-parameters by model."""
SEARCHES = ("none", "grid", "optuna")
INITIAL_MODEL_PARAMS = ("init", "weights")
"""Hyper-parameters that name files from which a model is initialized."""


def option(
    default: Any,
    help: str,
    *,
    choices: Sequence[str | None] = (),
    minimum: float | None = None,
    name: str = "",
    is_argument: bool = False,
    is_hidden: bool = False,
) -> Any:
    """Declare a field of an options dataclass.

    Parameters
    ----------
    default : Any
    help : str
        One sentence for ``--help``.
    choices : sequence of str
        Allowed values, of each element for a tuple; any if empty.
    minimum : float, optional
        Smallest allowed value.
    name : str
        Name on the command line, where it is not the field's name with dashes.
    is_argument : bool
        Whether it is a positional argument on the command line.
    is_hidden : bool
        Whether the command line does not have it.
    """
    metadata = {
        "help": help,
        "choices": tuple(choices),
        "minimum": minimum,
        "name": name,
        "is_argument": is_argument,
        "is_hidden": is_hidden,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Base of the options of all benchmarks; checks values against the choices and minima of their fields."""

    def __post_init__(self) -> None:
        for item in fields(self):
            choices, minimum, value = item.metadata["choices"], item.metadata["minimum"], getattr(self, item.name)
            if minimum is not None and value is not None and value < minimum:
                raise EthobenchError(f"`{item.name}` must be >= {minimum}, got {value}")
            wrong = [each for each in (value if isinstance(value, tuple) else (value,)) if choices and each not in choices]
            if wrong:
                allowed = join_names((choice for choice in choices if choice is not None), "or")
                raise EthobenchError(f"`{item.name}` must be {allowed}, got {', '.join(map(str, wrong))}")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(BenchmarkOptions):
    """Options of benchmarks that train models."""

    models: tuple[str, ...] = option((), "Models to run, separated by commas.")
    params: Params | None = option(  # noqa: RUF009
        None, "Hyper-parameter: trees=200 for all models that have it, rf.trees=200 for one model; may be repeated.", name="param"
    )
    decode: str = option("", "Metric for which the decoder is chosen, within the training data: f1, bout_f1, balanced, ...")

    def params_of(self, model: str) -> dict[str, Any]:
        """Return the hyper-parameters of a model."""
        return {**({"decode": self.decode} if self.decode else {}), **(self.params or {}).get(model, {})}


@dataclass(frozen=True, kw_only=True)
class CrossValidationOptions(ModelOptions):
    """Options of benchmarks that cross-validate models on folds."""

    variations: tuple[Params, ...] = option(
        (),
        "Run every value of a hyper-parameter: frame_stride=1,2,4, or past+future=50,100 to vary two together; may be repeated.",
        name="vary",
    )
    search: str = option("none", "Choose hyper-parameters on the first fold: grid (the model's grid), optuna, or none.", choices=SEARCHES)
    trials: int = option(50, "Number of candidates that the search with optuna evaluates.", minimum=1)
    folds: tuple[int, ...] = option((), "Test only these folds, separated by commas; the others can be run later.")
    seed: int = option(0, "Random seed of the first fold; fold k has seed + k.")

    def combinations(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield hyper-parameters by model: one mapping for each variation, or one if nothing varies."""
        for variation in self.variations or ({},):
            names = {*(self.params or {}), *variation, *self.models}
            yield {model: {**self.params_of(model), **variation.get(model, {})} for model in names}

    def make_search(self, store: Store | None, n_parallel: int = 1) -> Search | None:
        """Create the search for hyper-parameters; None if there is none.

        Parameters
        ----------
        store : Store, optional
            Keeps the state of a search with Optuna.
        n_parallel : int
            Number of candidates that Optuna proposes at a time.
        """
        if self.search == "grid":
            return GridSearch()
        if self.search == "none":
            return None
        if store is None:
            raise EthobenchError("a search with optuna needs a store, in which it keeps its state")
        return OptunaSearch(store.root / "search", self.trials, n_parallel, seed=self.seed)


@dataclass(frozen=True)
class TableOptions:
    """Options of a table.

    Attributes
    ----------
    metrics : tuple of str
        Metrics to show; the table's default if empty.
    against : str
        Model that others are compared with; the best if empty.
    """

    metrics: tuple[str, ...] = ()
    against: str = ""


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes
    ----------
    name : str
        As in ``ethobench results STORE --table NAME``.
    title : str
        What it shows, in one line.
    make : callable
        Returns the rows of a store.
    layout : callable, optional
        Returns column names and cells of rows for display; one column for each key of the rows if None.
    summarize : callable, optional
        Returns a second, smaller table of the rows.
    per_behavior : bool
        Whether rows are about single behaviors; those of behaviors that never occur are not displayed.
    """

    name: str
    title: str
    make: Callable[[Store, TableOptions], list[Row]]
    layout: Callable[[Sequence[Row]], tuple[list[str], list[list[Any]]]] | None = None
    summarize: Callable[[Sequence[Row]], list[Row]] | None = None
    per_behavior: bool = False


class Benchmark:
    """A benchmark.

    Parameters
    ----------
    options : BenchmarkOptions, optional
        An instance of `Options` of the class; the defaults if not given.

    Attributes
    ----------
    name : str
        Name of the subcommand of ``ethobench run``.
    label : str
        Value of the column ``benchmark`` in results; the name unless set.
    title : str
        What it is, in one line.
    description : str
        Help text of the subcommand, with an example.
    Options : type
        The dataclass of the options, a subclass of `BenchmarkOptions`.
    models : tuple of str
        Models that are run by default.
    tables : tuple of Table
    averaged_over : {"individuals", "seeds"}
        What means and standard deviations in results are computed over.
    tests_repeatedly : bool
        Whether a recording is tested several times within a setting, with different seeds, so that settings cannot be compared pairwise.
    varies_by_model : bool
        Whether variations of a model are distinguished by the model's label rather than by the setting.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    title: ClassVar[str] = ""
    description: ClassVar[str] = ""
    Options: ClassVar[type[Any]] = BenchmarkOptions
    models: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[Table, ...]] = ()
    averaged_over: ClassVar[str] = "individuals"
    tests_repeatedly: ClassVar[bool] = False
    varies_by_model: ClassVar[bool] = False

    def __init__(self, options: Any = None) -> None:
        self.options: Any = self.Options() if options is None else options

    def jobs(self, store: Store | None = None, *, n_workers: int = 1, report: Callable[[str], None] = lambda _: None) -> Iterable[JobPlan]:
        """Return the jobs as plans, which yield them in stages.

        Parameters
        ----------
        store : Store, optional
            Keeps the state of searches.
        n_workers : int
            Number of workers, which is how many candidates a search evaluates at a time.
        report : callable
            Called with lines of text on work that is done while planning.
        """
        raise NotImplementedError

    def finish(self, store: Store, report: Callable[[str], None] = lambda _: None) -> None:
        """Write what a run adds to its store beside the jobs, such as files for an external scorer; nothing by default.

        Parameters
        ----------
        store : Store
        report : callable
            Called with lines of text on what was written.
        """

    @classmethod
    def published(cls) -> Mapping[tuple[str, ...], PublishedScore]:
        """Return published scores by dataset, model, setting (as text), suite and metric."""
        return published_scores(cls.label or cls.name)


MODULES = {
    "bebe": "ethobench.benchmarks.bebe",
    "calms21": "ethobench.benchmarks.calms21",
    "few-shot": "ethobench.benchmarks.learning_curves",
    "mabe2025": "ethobench.benchmarks.mabe2025",
    "rodentbench": "ethobench.benchmarks.rodentbench",
    "study": "ethobench.benchmarks.study",
    "synthetic": "ethobench.benchmarks.synthetic",
}
"""Modules that register the benchmarks."""
STUDY_LABEL = "own"
"""Value of the column ``benchmark`` in the results of a study."""
LABELS = {STUDY_LABEL: "study"}
"""Benchmarks whose label in results is not their name."""

benchmarks: Registry[type[Benchmark]] = Registry("benchmark", MODULES, classes=True)
register_benchmark = benchmarks.register


def find_benchmark(label: str) -> type[Benchmark]:
    """Return the benchmark with a label in results; the base class for jobs that belong to no registered benchmark."""
    name = LABELS.get(label, label)
    return benchmarks[name] if name in benchmarks.names() else Benchmark


def benchmark_tables() -> dict[str, Table]:
    """Return the tables of all benchmarks by name."""
    return {table.name: table for benchmark in benchmarks for table in benchmark.tables}


def make_job(
    benchmark: str,
    data: Dataset,
    model: str,
    train: Iterable[str],
    test: Iterable[str],
    params: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Job:
    """Create a job for a loaded dataset.

    Parameters
    ----------
    benchmark : str
    data : Dataset
    model : str
    train, test : iterable of str
        Ids of the recordings.
    params : mapping, optional
        Hyper-parameters that differ from the defaults. The content of files that they name is part of the job's key.
    **fields
        Other fields of `Job`.
    """
    hyper_parameters = dict(params or {})
    initial_models = [Path(hyper_parameters[name]) for name in INITIAL_MODEL_PARAMS if hyper_parameters.get(name)]
    defaults: dict[str, Any] = {
        "dataset": data.name,
        "version": data.version,
        "revision": models[model].revision,
        "files_digest": hash_files(*initial_models),
    }
    return Job(benchmark, model=model, train=tuple(train), test=tuple(test), params=hyper_parameters, **{**defaults, **fields})
