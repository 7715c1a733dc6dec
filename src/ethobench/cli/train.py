"""`ethobench train`: cross-validate a model by individual, then train it on all recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import RenameOption
from ethobench.cli.output import echo, secho
from ethobench.cli.tables import Number, format_number, format_score, format_with_interval, print_table, print_wrapped
from ethobench.core.deadline import Deadline, format_seconds, seconds_since_start
from ethobench.core.processes import idle_cores, usable_cores
from ethobench.core.wording import join_names

if TYPE_CHECKING:
    from ethobench.benchmarks.study import CrossValidationPredictions
    from ethobench.cli.progress import TrainingProgress
    from ethobench.core import Dataset
    from ethobench.models import Model

MEASURES = ("f1", "bout_f1", "precision", "recall")
NO_BEHAVIOR = "no behavior"


def run(
    dataset: Annotated[
        str, typer.Argument(help="Name of a dataset, or a folder with a recordings.csv: recording, individual, rate, signals, annotations.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the model. The cross-validation is saved beside it, in OUT-cv.")],
    model: Annotated[
        str, typer.Option(help="Model; the default, auto, needs no tuning. List: ethobench models.", show_default="auto")
    ] = "",
    param: Annotated[
        list[str] | None,
        typer.Option(help="Hyper-parameter, such as trees=200; may be repeated. List: ethobench models MODEL.", metavar="NAME=VALUE"),
    ] = None,
    decode: Annotated[str, typer.Option(help="Metric for which bouts are decoded: f1, bout_f1, balanced, ...", metavar="METRIC")] = "",
    init: Annotated[Path | None, typer.Option(help="Initialize from a pre-trained or trained model in this folder.")] = None,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="Adapt the model of --init to a new laboratory from a few labeled recordings, in seconds.")
    ] = False,
    annotator: Annotated[
        str | None,
        typer.Option(
            help="Annotator to train on, where there are several; 'carla,anna' prefers carla; 'consensus' is the majority.", metavar="NAME"
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Unit that is never split between training and test: individual or recording.")] = "individual",
    corrections: Annotated[
        Path | None,
        typer.Option(help="Folder with corrections from `ethobench view`, if not beside recordings.csv.", metavar="DIR"),
    ] = None,
    rename: RenameOption = None,
    budget: Annotated[
        str,
        typer.Option(help="Maximum duration, including cross-validation, such as 90s, 10m or 2h; no limit by default.", metavar="TIME"),
    ] = "",
    no_evaluate: Annotated[bool, typer.Option("--no-evaluate", help="Skip cross-validation and out-of-fold predictions.")] = False,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Also train on subsets of the data, to see whether more labels would help.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Number of processes; one per core by default.", min=1, metavar="N")] = usable_cores(),
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Train a model. Cross-validates by individual first, so you know how well it generalizes to animals it has not seen.

    Example: [bold]ethobench train my_study/ --out models/first --budget 10m[/bold]

    A new laboratory: [bold]ethobench train new_lab/ --init models/many_labs --adapt --out models/new_lab[/bold]

    Another model: [bold]ethobench train my_study/ --model rf --param trees=200 --decode bout_f1 --out models/forest[/bold]
    """
    from ethobench.benchmarks.folds import select_annotated
    from ethobench.benchmarks.time_budget import describe_plan, warn_of_final_training
    from ethobench.cli.options import parse_renames
    from ethobench.cli.progress import TrainingProgress
    from ethobench.core.files import check_new_path
    from ethobench.datasets import load_dataset
    from ethobench.models.saving import describe_fit

    _check_learning_curve(learning_curve, no_evaluate, budget)
    deadline = Deadline(_parse_budget(budget) if budget else None, elapsed=seconds_since_start())
    check_new_path(out)
    if adapt:
        unused = {"--model": model, "--param": param, "--decode": decode, "--budget": budget, "--learning-curve": learning_curve}
        _adapt(dataset, init, out, annotator, corrections, rename, [name for name, value in unused.items() if value])
        return
    new_model, params = _create(model, param or [], decode, init, seed)
    options: dict[str, Any] = {} if corrections is None else {"corrections": str(corrections.resolve())}
    if rename:
        options["rename"] = parse_renames(rename)
    cross_validation = None
    try:
        with TrainingProgress(deadline) as progress, _shared_features():
            data = select_annotated(load_dataset(dataset, **options), annotator)
            if not no_evaluate:
                shared = {"params": params, "options": options, "annotator": annotator, "split": split, "seed": seed}
                folder = Path(f"{out}-cv")
                new_model.evaluation, cross_validation = _cross_validate(
                    dataset, new_model, data, folder, shared, workers, learning_curve, progress
                )
            else:
                progress.say(describe_plan(new_model, 0, 0, workers, deadline))
                progress.warn(warn_of_final_training(deadline, 0.0))
            _fit_all(new_model, data, annotator, workers, progress)
    except KeyboardInterrupt:
        secho("stopped; run the same command again to resume", err=True, fg=typer.colors.YELLOW)
        raise typer.Exit(130) from None
    if not no_evaluate and not new_model.evaluation:
        new_model.note("there was no time for cross-validation, so it is not known how well the model generalizes to new individuals")
    for line in describe_fit(new_model.fit_report):
        echo(line, err=True)
    _keep_out_of_fold(new_model, cross_validation)
    new_model.save(out)
    if new_model.evaluation:
        _print_evaluation(new_model.evaluation)
    _print_saved(out, new_model)
    echo("next:")
    echo(f"  ethobench predict {out} RECORDING... --out annotations/")
    if new_model.evaluation:
        echo(f"  ethobench report {out}-cv --out {out}-cv.html")
    if deadline.is_limited:
        echo(f"took {format_seconds(deadline.elapsed)} of a budget of {format_seconds(deadline.end - deadline.start)}", err=True)


def _create(name: str, param: list[str], decode: str, init: Path | None, seed: int) -> tuple[Model, dict[str, Any]]:
    """Create a model, or the default one; return it with the hyper-parameters that differ from the defaults."""
    from ethobench.cli.options import parse_params
    from ethobench.models import create_model
    from ethobench.models.auto import default_model

    default = default_model()
    if default.note and name in ("", default.name):
        secho(f"note: {default.note}", err=True, fg=typer.colors.YELLOW)
    if not name:
        name, decode = default.name, decode or default.decode
    params = parse_params(param, [name], decode)[name]
    if init is not None:
        params = {**_shared_params(init, name), **params, _init_param(init, name): str(init.resolve())}
    return create_model(name, seed=seed, **params), params


def _check_learning_curve(learning_curve: bool, no_evaluate: bool, budget: str) -> None:
    """Refuse options that exclude each other."""
    if learning_curve and no_evaluate:
        raise typer.BadParameter("a learning curve is part of the cross-validation: remove --no-evaluate", param_hint="--learning-curve")
    if learning_curve and budget:
        raise typer.BadParameter("a learning curve has no time budget: remove --learning-curve or --budget", param_hint="--budget")


def _adapt(
    dataset: str, init: Path | None, out: Path, annotator: str | None, corrections: Path | None, rename: list[str] | None, unused: list[str]
) -> None:
    """Adapt a saved model to a new laboratory, save it, and print its scores before and after."""
    from ethobench.benchmarks.folds import select_annotated
    from ethobench.cli.options import parse_renames
    from ethobench.datasets import load_dataset
    from ethobench.models.adaptation import adapt_saved_model

    if init is None or unused:
        problem = "needs --init MODEL" if init is None else f"keeps the kind of the model: remove {', '.join(unused)}"
        raise typer.BadParameter(problem, param_hint="--adapt")
    options: dict[str, Any] = {} if corrections is None else {"corrections": str(corrections.resolve())}
    options |= {"rename": parse_renames(rename)} if rename else {}
    data = select_annotated(load_dataset(dataset, **options), annotator)
    adapted, scores = adapt_saved_model(init, data, annotator)
    adapted.save(out)
    echo(f"F1 on the {len(data)} recordings before adaptation (zero-shot): {format_score(scores['zero_shot'])}")
    if "adapted" in scores:
        echo(f"F1 on each recording after adaptation to the others: {format_score(scores['adapted'])}")
    _print_saved(out, adapted)
    echo("next:")
    echo(f"  ethobench predict {out} RECORDING... --out annotations/")


def _print_saved(out: Path, model: Model) -> None:
    print_wrapped([f"wrote {out}, a model of kind {model.name}; {out / 'CARD.md'} has its settings, training data and scores"], "")


def _fit_all(model: Model, data: Dataset, annotator: str | None, workers: int, progress: TrainingProgress) -> None:
    """Train on all recordings in the remaining time."""
    from ethobench.benchmarks.time_budget import final_deadline
    from ethobench.core.progress import progress_listener
    from ethobench.runs.executors import limit_threads

    progress.start_phase("final training")
    progress.say(f"training on all {len(data)} recordings")
    if progress.deadline.is_limited:
        model.deadline = final_deadline(progress.deadline)
        limit_threads(min(workers, idle_cores()))
    with progress_listener(progress.show_training):
        model.fit(data, annotator=annotator)


@contextmanager
def _shared_features() -> Iterator[None]:
    """Cache features for all trainings of this command, and for later ones."""
    from ethobench.features.cache import feature_cache
    from ethobench.formats.parse_cache import cache_folder

    with feature_cache(cache_folder() / "features"):
        yield


def _keep_out_of_fold(model: Model, cross_validation: CrossValidationPredictions | None) -> None:
    """Add the out-of-fold predictions to a model; print a note if there are none."""
    from ethobench.cli.output import print_note

    if cross_validation is None:
        print_note(
            "without cross-validation there are no out-of-fold predictions. Predictions of the training recordings will be in-sample, "
            "which says nothing about new animals, and marked as such"
        )
        return
    skipped = cross_validation.attach_to(model)
    if skipped:
        print_note(
            f"the model of --init was trained on {len(skipped)} of {len(cross_validation.predictions)} recordings or on their individuals, "
            f"so the cross-validation scores are too high and their out-of-fold predictions are not saved: "
            f"{', '.join(skipped[:5])}{', ...' if len(skipped) > 5 else ''}"
        )


def _init_param(init: Path, model: str) -> str:
    """Return the hyper-parameter that names the model to initialize from."""
    from ethobench.core.errors import EthobenchError
    from ethobench.models import models
    from ethobench.models.hyperparameters import parameter_names

    supported = [each for each in models.names() if {"init", "weights"} & {*parameter_names(models[each].Params)}]
    saved = _saved_model(init)
    if saved in models.names() and saved not in supported:
        raise EthobenchError(
            f"{init} is a saved {saved!r}, which has no weights to start from; train on its labels instead: those of the viewer and its "
            f"teacher are in the folder of corrections, and are used by `ethobench train` on the study"
        )
    for name in ("init", "weights"):
        if name in parameter_names(models[model].Params):
            return name
    raise EthobenchError(f"model {model!r} cannot be initialized from {init}; use one of: {', '.join(supported)}")


def _saved_model(init: Path) -> str | None:
    """Return the name of the model that a folder contains; None if it has no card, as folders of pre-trained encoders."""
    from ethobench.core.files import read_json
    from ethobench.models.saving import CARD

    card: Any = read_json(init / CARD) if (init / CARD).is_file() else {}
    return card.get("model") if isinstance(card, dict) else None


def _shared_params(init: Path, model: str) -> dict[str, Any]:
    """Return the hyper-parameters that a network must share with the one it is initialized from."""
    from ethobench.core.files import read_json
    from ethobench.models import models
    from ethobench.models.calms21_networks import ARCHITECTURE
    from ethobench.models.hyperparameters import parameter_names
    from ethobench.models.saving import CARD
    from ethobench.training.weight_files import ENCODER_CARD

    names = parameter_names(models[model].Params)
    card: Any = next((read_json(path) for path in (init / CARD, init / ENCODER_CARD) if path.is_file()), {})
    saved: Any = card.get("params", {}) if isinstance(card, dict) else {}
    return {name: saved[name] for name in ARCHITECTURE if name in names and name in saved}


def _parse_budget(text: str) -> float:
    """Return the seconds of a duration such as 10m."""
    from ethobench.core.deadline import parse_seconds
    from ethobench.core.errors import EthobenchError

    try:
        return parse_seconds(text)
    except EthobenchError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from None


def _cross_validate(
    dataset: str,
    model: Model,
    data: Dataset,
    folder: Path,
    shared: dict[str, Any],
    workers: int,
    curve: bool,
    progress: TrainingProgress,
) -> tuple[dict[str, Any], CrossValidationPredictions | None]:
    """Cross-validate a model, and print its learning curve; return the scores and the out-of-fold predictions.

    Both are empty if there is no time for any fold.
    """
    from ethobench.benchmarks.learning_curves import learning_curve_jobs, learning_curve_table
    from ethobench.benchmarks.study import read_out_of_fold, study_plan, summarize_cross_validation
    from ethobench.benchmarks.time_budget import describe_plan, limit_cross_validation, warn_of_final_training
    from ethobench.cli.progress import ShowFolds
    from ethobench.cli.results import print_behaviors
    from ethobench.core.errors import EthobenchError
    from ethobench.features.cache import cache_folder
    from ethobench.runs import Engine, Store, WorkerOptions
    from ethobench.runs.executors import local_pool
    from ethobench.runs.worker import preload_for_training

    preload_for_training([model.name])
    store = Store(folder)
    plan = study_plan(dataset, model.name, data=data, **shared)
    limited = limit_cross_validation(model, next(plan), data, progress.deadline, workers=workers, finished={*store.finished()})
    n_folds = len(limited.jobs)
    curve_jobs = learning_curve_jobs(dataset, model.name, **shared) if curve else []
    progress.say(describe_plan(model, limited.folds, n_folds, workers, progress.deadline, curve=len(curve_jobs)))
    progress.start_phase("cross-validation")
    options = WorkerOptions(
        keep=("probabilities",), deadlines=limited.deadlines, features=str(cache_folder() or ""), prepare_until=limited.prepare_until
    )
    control = ShowFolds(progress, limited.control, store, limited.folds + len(curve_jobs), workers)
    with local_pool(workers) as pool:
        summary = Engine(store, pool.make_executor, pool.count, control.report, options, control).run([limited.plan(curve_jobs)])
    if summary.failed or summary.failed_plans:
        raise EthobenchError(f"cross-validation failed: {next(iter((*summary.failed_plans, *summary.failed.values())))}")
    done = sum(store.has(job.key) for job in limited.jobs)
    if done < n_folds:
        progress.say(f"cross-validated on {done} of {n_folds} folds because of the time budget" if done else "no time for cross-validation")
    progress.warn(warn_of_final_training(progress.deadline, limited.final_seconds))
    if not done:
        return {}, None
    if curve:
        curve_rows = learning_curve_table(store, summary.keys)
        columns = list(dict.fromkeys(c for row in curve_rows for c in row if c not in ("dataset", "model")))
        print_behaviors(store, columns, curve_rows, summary.keys, list_never=False)
    evaluation = summarize_cross_validation(store, model.name, summary.keys, data=data, annotator=shared["annotator"])
    return {**evaluation, "folds_planned": n_folds}, read_out_of_fold(store, model.name, summary.keys)


def _print_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the scores of a cross-validation by behavior, those of people, and the most frequent confusions."""
    from ethobench.cli.output import print_never_annotated
    from ethobench.metrics.base import measure_label

    human = evaluation["human"]
    never = evaluation["never_annotated"]
    behaviors = {
        name: scores for name, scores in evaluation["behaviors"].items() if name not in never or any(m in scores for m in MEASURES)
    }
    intervals = {"all": evaluation["intervals"], **evaluation["behavior_intervals"]}
    cells = []
    for name, scores in {"all": evaluation["scores"], **behaviors}.items():
        row = [name, *(format_with_interval(scores.get(m), intervals.get(name, {}).get(m)) for m in MEASURES)]
        if human:
            row.insert(2, format_score((human["scores"] if name == "all" else human["behaviors"].get(name, {})).get("f1")))
        amount = evaluation["amounts"].get(name)
        is_total = name == "all" or amount is None
        cells.append([*row, *([Number(""), Number("")] if is_total else [amount["bouts"], format_number(amount["seconds"])])])
    columns = ["behavior", *map(measure_label, MEASURES), "bouts", "seconds"]
    if human:
        columns.insert(2, "humans' F1")
    title = "Cross-validation on recordings that the model has not seen"
    if evaluation["split"] == "individual":
        title = "Cross-validation on animals that the model has not seen"
    is_complete = evaluation["folds"] == evaluation["folds_planned"]
    title = f"{title} ({evaluation['folds']} folds)" if is_complete else f"{title} (some of the folds)"
    print_table(columns, cells, title=title)
    print_never_annotated(never, evaluation["only_predicted"])
    print_wrapped([f"n = {evaluation['n']} {evaluation['unit']}; {evaluation['reason'] or 'below each score 95 % intervals'}"])
    if human:
        names = join_names(human["annotators"])
        print_wrapped([f"humans' F1: agreement of {names} in {human['recordings']} recordings with several annotators"])
    if evaluation["confusions"]:
        echo()
        print_wrapped(["most frequent confusions:"])
        print_wrapped(
            (
                f"{row['behavior'] or NO_BEHAVIOR} predicted as {row['predicted'] or NO_BEHAVIOR}: {row['share']:.0%} of its frames"
                for row in evaluation["confusions"]
            ),
            "    ",
        )
    echo()
