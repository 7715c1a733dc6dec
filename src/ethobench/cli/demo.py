"""`ethobench demo`: all steps on generated recordings."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.output import echo

if TYPE_CHECKING:
    from ethobench.core import Dataset, Prediction
    from ethobench.metrics import Scores

N_FOLDS = 4
SECONDS = 150.0
TREES = 40
USES_AUTO = "ethobench train uses the model auto by default, which is better: bout F1 0.67 instead of 0.64 on the rats dataset."


def run(
    out: Annotated[Path, typer.Option(help="Folder for the files that the demo writes.")] = Path("ethobench-demo"),
    seed: Annotated[int, typer.Option(help="Random seed of the generated recordings.")] = 0,
) -> None:
    """Generate recordings of two mice with annotations by two people, train a model, and compare it with the people.

    Example: [bold]ethobench demo[/bold]
    """
    from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
    from ethobench.metrics import ceiling, score
    from ethobench.models.auto import default_model

    data = make_dataset("pose", individuals=8, seconds=SECONDS, seed=seed, folds=N_FOLDS, annotators=ANNOTATORS)
    first, second = (a.name for a in ANNOTATORS)
    echo(f"{data.name}: {len(data)} recordings of {len(data.individuals)} pairs of mice, {data.n_frames:,} frames at 30 Hz")
    predictions = _cross_validate(data, first, seed)
    comparisons = {
        f"{second} against {first}": score({r.id: r.annotations[second] for r in data}, data, annotator=first),
        f"rf against {first}": score(predictions, data, annotator=first),
        f"rf against {second}": score(predictions, data, annotator=second),
    }
    _print_scores(comparisons)
    limit = ceiling(data, predictions).of("f1", annotator=first)
    agrees = "as well" if limit["reached"] else "not yet as well"
    echo(f"\nThe model agrees with {first} {agrees} as {second} does (frame F1).")
    _write(data, predictions, comparisons[f"rf against {first}"], first, out)
    echo("Next:")
    echo(f"  open {out / 'report.html'} in a browser")
    echo(f"  ethobench score {out / 'rf.csv'} {out / f'{first}.csv'}")
    echo(f"  ethobench convert {out / 'rf.csv'} {out / 'segments'} --to segments")
    echo("  ethobench train my_study/ --out models/first      # your own recordings: see docs/guides/train.md")
    default = default_model()
    echo("\nThe demo always uses rf, a random forest, so that it runs on the core installation.")
    echo(fill(f"Note: {default.note}" if default.note else USES_AUTO, 100, break_long_words=False, break_on_hyphens=False))


def _cross_validate(data: Dataset, annotator: str, seed: int) -> dict[str, Prediction]:
    """Return out-of-fold predictions: each by a model that was trained on other animals."""
    from ethobench.models import create_model

    predictions = {}
    folds = sorted(set(data.folds.values()))
    for fold in folds:
        others = [other for other in folds if other != fold]
        model = create_model("rf", seed=seed, decode="balanced", seconds=1.0, trees=TREES)
        model.fit(data.select(fold=others), annotator=annotator)
        predictions.update({recording.id: model.predict(recording) for recording in data.select(fold=fold)})
        echo(f"  fold {fold + 1} of {len(folds)}: trained on {annotator}'s labels of the other folds", err=True)
    return predictions


def _print_scores(comparisons: dict[str, Scores]) -> None:
    echo(f"\nScores ({next(iter(comparisons.values())).interval_note})")
    echo(f"  {'':22}  {'frame F1':<21} {'bout F1':<21} onset error")
    for name, scores in comparisons.items():
        intervals = scores.intervals["overall"]
        cells = []
        for metric in ("f1", "bout_f1"):
            interval = " [{:.3f}, {:.3f}]".format(*intervals[metric]) if intervals[metric] else ""
            cells.append(f"{scores.overall[metric]:.3f}{interval}")
        echo(f"  {name:22}  {cells[0]:<21} {cells[1]:<21} {scores.overall['onset_error']:.3f} s")


def _write(data: Dataset, predictions: dict[str, Prediction], scores: Scores, truth: str, out: Path) -> None:
    """Write annotations in three formats, and the report."""
    from ethobench.formats import write_annotation, write_recordings
    from ethobench.reports import summarize_scores, write_report

    out.mkdir(parents=True, exist_ok=True)
    annotations = {name: {r.id: r.annotations[name] for r in data} for name in data.annotators}
    annotations["rf"] = {name: prediction.annotation for name, prediction in predictions.items()}
    for name, by_recording in annotations.items():
        write_recordings(
            [data[i].copy(annotations={name: a}) for i, a in by_recording.items()], out / f"{name}.csv", "tidy", overwrite=True
        )
    example = data.recordings[0].id
    for ending, format in ((".boris", "boris"), (".annot", "bento")):
        write_annotation(predictions[example], out / f"{example}{ending}", format, recording=example, overwrite=True)
    write_report(out / "report.html", summarize_scores({"rf": scores}, truth=truth, annotations=data), overwrite=True)
    echo(f"\nAnnotations: {', '.join(str(out / f'{name}.csv') for name in annotations)}; {example} also as .boris and .annot")
    echo(f"Report:      {out / 'report.html'}")
