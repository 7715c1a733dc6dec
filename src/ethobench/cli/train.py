"""`ethobench train`: how good a model would be on new individuals, then the model itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._files import RenameOption
from ethobench.core.cores import usable_cores

if TYPE_CHECKING:
    from ethobench.benchmarks.own import CrossValidation
    from ethobench.models import Model


def run(
    dataset: Annotated[
        str, typer.Argument(help="A dataset's name, or a folder with a recordings.csv: recording, individual, rate, signals, annotations.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the model; its cross-validation goes beside it, into OUT-cv.")],
    model: Annotated[
        str, typer.Option(help="Model to train; the default, auto, needs no tuning. All: ethobench models.", show_default="auto")
    ] = "",
    param: Annotated[list[str] | None, typer.Option(help="A hyper-parameter, such as trees=200; may be repeated.")] = None,
    decode: Annotated[str, typer.Option(help="Choose how probabilities become bouts, for: f1, bout_f1, balanced, ...")] = "",
    init: Annotated[Path | None, typer.Option(help="Begin with what was learnt there, by pretrain or train.")] = None,
    annotator: Annotated[
        str | None,
        typer.Option(
            help="Whom to learn from, where there are several; 'carla,anna': carla where she annotated, else anna; or 'consensus'."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="What is never split between training and test: individual or recording.")] = "individual",
    corrections: Annotated[
        Path | None,
        typer.Option(help="Folder of corrections from `ethobench view`, where they are not beside your recordings.csv.", metavar="DIR"),
    ] = None,
    rename: RenameOption = None,
    budget: Annotated[
        str,
        typer.Option(
            help="Model auto: how long one training may take, such as 10m, 90s or 2h; cross-validation has several.", metavar="TIME"
        ),
    ] = "",
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Whether to cross-validate first, and to keep the out-of-fold predictions.")
    ] = True,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Also train on parts of the data, to tell whether more labels would help.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; one for each core unless given.", min=1)] = usable_cores(),
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Train a model on annotated recordings; first tell by grouped cross-validation how good it is on new individuals.

    Example: [bold]ethobench train my_study/ --out models/first --budget 10m[/bold]
    """
    from ethobench.benchmarks.own import annotated
    from ethobench.cli._files import read_renames
    from ethobench.cli._params import read_params
    from ethobench.core.errors import EthobenchError, ReadWarning
    from ethobench.datasets import load_dataset
    from ethobench.models import create_model
    from ethobench.models._card import tried_in_words
    from ethobench.models._default import default_model

    if learning_curve and not evaluate:
        raise typer.BadParameter("a learning curve is part of the cross-validation; leave out --no-evaluate", param_hint="--learning-curve")
    if out.exists():
        raise EthobenchError(f"{out} exists and is left alone; choose another name")
    default = default_model()
    if default.note and model in ("", default.name):
        typer.secho(f"note: {default.note}", err=True, fg=typer.colors.YELLOW)
    if not model:
        model, decode = default.name, decode or default.decode
    params = read_params(param or [], [model], decode)[model]
    if init is not None:
        params = {**_shape_of(init, model), **params, _place_for(init, model): str(init.resolve())}
    if budget:
        params["budget"] = _seconds(budget)
    fresh = create_model(model, seed=seed, **params)
    options: dict[str, Any] = {} if corrections is None else {"corrections": str(corrections.resolve())}
    if rename:
        options["rename"] = read_renames(rename)
    if evaluate:
        shared = {"params": params, "options": options, "annotator": annotator, "by": split, "seed": seed}
        fresh.evaluation, cross_validation = _cross_validate(dataset, model, Path(f"{out}-cv"), shared, workers, learning_curve)
    with warnings.catch_warnings():  # what is left out was told before
        warnings.simplefilter("ignore" if evaluate else "default", ReadWarning)
        data = annotated(load_dataset(dataset, **options), annotator)
    typer.echo(f"learning from all {len(data)} recordings", err=True)
    fresh.fit(data, annotator=annotator)
    for line in tried_in_words(fresh.account):
        typer.echo(line, err=True)
    _keep_out_of_fold(fresh, cross_validation if evaluate else None)
    fresh.save(out)
    typer.echo(f"{out}: {fresh!r}")
    typer.echo(f"next: ethobench predict {out} RECORDING... --out annotations/")


def _keep_out_of_fold(model: Model, cross_validation: CrossValidation | None) -> None:
    """Keep the out-of-fold predictions with a model, and say where there are none."""
    from ethobench.cli._files import tell_line

    if cross_validation is None:
        tell_line(
            "without cross-validation there are no out-of-fold predictions: what this model predicts of its training recordings "
            "says nothing about new animals, and will be marked as seen in training"
        )
        return
    left_out = cross_validation.keep_with(model)
    if left_out:
        tell_line(
            f"{len(left_out)} of {len(cross_validation.predictions)} recordings, or their individuals, were seen in the training of the "
            f"model given by --init, so the cross-validation scores are too high and their out-of-fold predictions are not kept: "
            f"{', '.join(left_out[:5])}{', ...' if len(left_out) > 5 else ''}"
        )


def _place_for(init: Path, model: str) -> str:
    """Return the hyper-parameter by which a model takes what was learnt before."""
    import dataclasses

    from ethobench.core.errors import EthobenchError
    from ethobench.models import models

    known = [field.name for field in dataclasses.fields(models[model].Params)]
    for name in ("init", "weights"):
        if name in known:
            return name
    able = [each for each in models.names() if {"init", "weights"} & {f.name for f in dataclasses.fields(models[each].Params)}]
    raise EthobenchError(f"model {model!r} cannot begin with {init}; these can: {', '.join(able)}")


def _shape_of(init: Path, model: str) -> dict[str, Any]:
    """Return the hyper-parameters that a network must have in common with the one it begins with, where there are such."""
    import dataclasses

    from ethobench.formats._text import read_json
    from ethobench.learning.encoder_files import CARD as ENCODER
    from ethobench.models import models
    from ethobench.models._card import CARD
    from ethobench.models._trajectory_params import SHAPE

    known = {field.name for field in dataclasses.fields(models[model].Params)}
    card: Any = next((read_json(path) for path in (init / CARD, init / ENCODER) if path.is_file()), {})
    found: Any = card.get("params", {}) if isinstance(card, dict) else {}
    return {name: found[name] for name in SHAPE if name in known and name in found}


def _seconds(text: str) -> float:
    """Read a time such as 10m."""
    number, unit = text.strip()[:-1], text.strip()[-1:]
    try:
        return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
    except (KeyError, ValueError):
        raise typer.BadParameter(f"{text!r} is no time: give 90s, 10m or 2h", param_hint="--budget") from None


def _cross_validate(
    dataset: str, model: str, place: Path, shared: dict[str, Any], workers: int, curve: bool
) -> tuple[dict[str, Any], CrossValidation]:
    """Score the model on individuals it has not seen, and show it; return the scores and the out-of-fold predictions."""
    from ethobench.benchmarks import learning_curve, own, results_table
    from ethobench.cli._occurrence import print_never_annotated
    from ethobench.cli._progress import shown_progress
    from ethobench.cli.results import print_behaviors, print_table
    from ethobench.core.errors import EthobenchError
    from ethobench.metrics import suites
    from ethobench.runs import Engine, Store
    from ethobench.runs.perform import How
    from ethobench.runs.workers import local_workers

    store = Store(place)
    plans = list(own.plans(dataset, [model], **{**shared, "params": {model: shared["params"]}}))
    if curve:
        plans += learning_curve.plans(dataset, model, **shared)
    with local_workers(workers) as staff, shown_progress() as watch:
        outcome = Engine(store, staff.make_executor, staff.count, watch, How(keep=("probabilities",))).run(plans)
    if outcome.failed or outcome.broken:
        raise EthobenchError(f"cross-validation failed: {next(iter((*outcome.broken, *outcome.failed.values())))}")
    rows = [row for row in results_table(store, only=outcome.keys) if row["setting"] in own.WHOLE]
    shown = [row for row in rows if row["metric"] in suites[row["suite"]].headline]
    print_table(("metric", "mean", "std", "n"), [[row[c] for c in ("metric", "mean", "std", "n")] for row in shown])
    if curve:
        told = learning_curve.curve_table(store, outcome.keys)
        columns = list(dict.fromkeys(c for row in told for c in row if c not in ("dataset", "model")))
        print_behaviors(store, columns, told, outcome.keys)
    evaluation = own.evaluation(store, model, outcome.keys)
    if not curve:
        print_never_annotated(evaluation["never_annotated"], evaluation["only_predicted"])
    return evaluation, own.out_of_fold(store, model, outcome.keys)
