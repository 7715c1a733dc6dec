"""`ethobench demo`: all steps on generated recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.output import echo
from ethobench.cli.tables import format_score, format_with_interval, print_table, print_wrapped

if TYPE_CHECKING:
    from ethobench.core import Dataset, Prediction
    from ethobench.metrics import Scores
    from ethobench.models import Model

N_TRAIN, N_TEST = 6, 6
SECONDS = 60.0
TREES = 40
TRAIN_SECONDS = 12.0  # the time budget of auto, so that the demo takes less than a minute on two cores
MEASURES = ("f1", "bout_f1", "kappa", "onset_error")


def run(
    out: Annotated[Path, typer.Option(help="Folder for the files that the demo writes.")] = Path("ethobench-demo"),
    seed: Annotated[int, typer.Option(help="Random seed of the generated recordings.")] = 0,
) -> None:
    """Generate recordings of two mice with annotations by two people, train a model, and compare it with the people.

    Example: [bold]ethobench demo[/bold]
    """
    from ethobench.cli.score import print_scores
    from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
    from ethobench.metrics import ceiling, score
    from ethobench.models.auto import default_model

    default = default_model()
    data = make_dataset("pose", individuals=N_TRAIN + N_TEST, seconds=SECONDS, seed=seed, annotators=ANNOTATORS)
    first, second = (a.name for a in ANNOTATORS)
    names = [recording.id for recording in data]
    train, test = data.select(recordings=names[:N_TRAIN]), data.select(recordings=names[N_TRAIN:])
    _print_step(
        f"1. Data: {len(data)} generated recordings of two mice, {SECONDS:g} s each, with tracked poses. Two simulated people, {first} and "
        f"{second}, annotated all of them: {', '.join(data.ethogram.names)}."
    )
    _print_step(f"2. Train: the model {default.name} on {first}'s annotations of {len(train)} recordings. This takes up to half a minute.")
    model = _fit(default.name, train, first, seed)
    _print_step(f"3. Predict: the other {len(test)} recordings, of animals that the model has not seen.")
    predictions = {recording.id: model.predict(recording) for recording in test}
    comparisons = {
        f"{second} against {first}": score({r.id: r.annotations[second] for r in test}, test, annotator=first),
        f"{default.name} against {first}": score(predictions, test, annotator=first),
        f"{default.name} against {second}": score(predictions, test, annotator=second),
    }
    scores = comparisons[f"{default.name} against {first}"]
    _print_step(f"4. Score: how well does {default.name} reproduce {first}'s annotations? 1 is perfect. As `ethobench score` prints it:")
    echo()
    print_scores(scores, None, list(scores.suite.compact), hint=False)
    _print_step(f"5. Compare: {first} and {second} do not agree perfectly either. Does the model agree with them as well as they do?")
    _print_comparisons(comparisons)
    limit = ceiling(test, predictions).of("f1", annotator=first)
    if limit["reached"]:
        comparison = f"In frame F1, {default.name} agrees with {first} as well as {second} does"
    else:
        comparison = f"In frame F1, {default.name} does not agree with {first} as well as {second} does"
    _print_step(f"{comparison}: {format_score(limit['model'])}, {second} {format_score(limit['human'])}.")
    _write(test, predictions, scores, default.name, first, out)
    _print_next(default.name, first, out)
    if default.note:
        _print_step(f"Note: {default.note}")


def _fit(name: str, data: Dataset, annotator: str, seed: int) -> Model:
    """Train the best model that is installed, in a short time."""
    from ethobench.models import create_model
    from ethobench.models.auto import DEFAULT

    quick = {"budget": TRAIN_SECONDS} if name == DEFAULT else {"seconds": 1.0, "trees": TREES}
    return create_model(name, seed=seed, decode="balanced", **quick).fit(data, annotator=annotator)


def _print_step(text: str) -> None:
    echo()
    print_wrapped([text], "")


def _print_comparisons(comparisons: dict[str, Scores]) -> None:
    """Print one row for each comparison, in the layout of `ethobench score`."""
    from ethobench.metrics.base import measure_label

    cells = []
    for name, scores in comparisons.items():
        intervals = scores.intervals["overall"]
        cells.append([name, *(format_with_interval(scores.overall[m], intervals[m]) for m in MEASURES)])
    echo()
    print_table(["", *map(measure_label, MEASURES)], cells)
    print_wrapped(["95 % intervals over recordings below each score"])


def _print_next(model: str, annotator: str, out: Path) -> None:
    steps = {
        f"open {out / 'report.html'} in a browser": "",
        f"ethobench score {out / f'{model}.csv'} {out / f'{annotator}.csv'}": "the table of step 4",
        f"ethobench convert {out / f'{model}.csv'} {out / 'segments'} --to segments": "one of many formats",
    }
    study_commands = {
        "ethobench study make my_study/": "lists poses, videos and annotations in a folder",
        "ethobench study check my_study/": "checks the list",
        "ethobench train my_study/ --out models/first": "trains and cross-validates",
        "ethobench predict models/first new/*.csv --out predictions": "annotates new recordings",
    }
    for title, commands in (("Next:", steps), ("With your own files:", study_commands)):
        echo(title)
        for command, comment in commands.items():
            if comment:
                echo(f"  # {comment}")
            echo(f"  {command}")
        echo()


def _write(data: Dataset, predictions: dict[str, Prediction], scores: Scores, model: str, truth: str, out: Path) -> None:
    """Write annotations in three formats, and the report."""
    from ethobench.formats import write_annotation, write_recordings
    from ethobench.reports import summarize_scores, write_report

    out.mkdir(parents=True, exist_ok=True)
    annotations = {name: {r.id: r.annotations[name] for r in data} for name in data.annotators}
    annotations[model] = {name: prediction.annotation for name, prediction in predictions.items()}
    for name, by_recording in annotations.items():
        write_recordings(
            [data[i].copy(annotations={name: a}) for i, a in by_recording.items()], out / f"{name}.csv", "tidy", overwrite=True
        )
    example = data.recordings[0].id
    for ending, format in ((".boris", "boris"), (".annot", "bento")):
        write_annotation(predictions[example], out / f"{example}{ending}", format, recording=example, overwrite=True)
    write_report(out / "report.html", summarize_scores({model: scores}, truth=truth, annotations=data), overwrite=True)
    echo()
    files = ", ".join(f"{name}.csv" for name in annotations)
    print_wrapped(
        [f"Written to {out}: annotations ({files}; {example} also for BORIS and BENTO: .boris, .annot) and a report (report.html)"], ""
    )
    echo()
