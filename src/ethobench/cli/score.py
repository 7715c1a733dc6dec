"""`ethobench score`: how good an annotation is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ethobench.core import Dataset
    from ethobench.metrics import Scores
    from ethobench.models.audit import TrainingAudit


def run(
    pred: Annotated[Path, typer.Argument(help="What is scored: a file, or a folder of files.", metavar="PRED")],
    truth: Annotated[
        Path, typer.Argument(help="What is true: a file, a folder with the same names, or a recordings.csv.", metavar="TRUTH")
    ],
    suite: Annotated[str, typer.Option(help="Whose definitions: ethobench, banos, bebe, calms21, rodentbench.")] = "ethobench",
    behaviors: Annotated[str | None, typer.Option(help="Score only these, separated by commas; 'all': every one on either side.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Whose annotation is true, where there are several (or: consensus, all).")] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    per: Annotated[str | None, typer.Option(help="Break down: recording, individual or behavior.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Show these measures, separated by commas; 'all' for every one.")] = None,
    merge: Annotated[bool, typer.Option("--merge-subjects", help="Pool subjects even where both sides name them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all figures to this CSV file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page with tables and figures to this file.", metavar="FILE.html")] = None,
    model_card: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the model that made PRED: marks recordings that it was trained on, and scores the others separately. "
            "Not needed for files that `predict` wrote.",
            metavar="MODEL_DIR",
        ),
    ] = None,
) -> None:
    """Say how good annotations are, against a truth.

    For example:

    [bold]ethobench score model.csv human.boris --suite banos[/bold]

    [bold]ethobench score predictions/ my_study/ --report report.html[/bold]

    [bold]ethobench score predictions/ my_study/ --model-card models/first[/bold]
    """
    from ethobench.cli._files import is_dataset, read_pair, tell_line
    from ethobench.core.errors import EthobenchError
    from ethobench.metrics import score
    from ethobench.models.audit import audit_scores, read_log

    if per not in (None, "recording", "individual", "behavior"):
        raise typer.BadParameter(f"figures are broken down per recording, individual or behavior, not {per!r}", param_hint="--per")
    options: dict[str, Any] = {"suite": suite, "tracks": "merge" if merge else "auto"}
    if behaviors:
        options["behaviors"] = "all" if behaviors == "all" else [name.strip() for name in behaviors.split(",")]
    if report is not None and report.exists():
        raise EthobenchError(f"{report} exists and is left alone; choose another name")
    data = None
    if is_dataset(truth):
        data, scores = _against_dataset(pred, truth, rate, annotator, options)
    else:
        scores = score(read_pair(pred, truth, rate, annotator), **options)
    audit = audit_scores(scores, model=model_card, log=read_log(pred), data=data)
    if csv is not None:
        if csv.exists():
            raise EthobenchError(f"{csv} exists and is left alone; choose another name")
        csv.parent.mkdir(parents=True, exist_ok=True)
        scores.table().to_csv(csv, index=False)
    if report is not None:
        from ethobench.cli._files import stem
        from ethobench.reports import summarize_scores, write_report

        write_report(report, summarize_scores({stem(pred): scores}, truth=annotator or stem(truth), annotations=data, training=audit))
    if as_json:
        training = {} if audit is None else {"training": audit.to_dict(scores)}
        typer.echo(json.dumps({**scores.to_dict(), **training}, indent=1, ensure_ascii=False))
        return
    for note in scores.notes:
        tell_line(str(note))
    _print_all(scores, audit, per, _shown(scores, metrics))


def _against_dataset(pred: Path, truth: Path, rate: float | None, annotator: str | None, options: dict[str, Any]) -> tuple[Dataset, Scores]:
    from ethobench.cli._files import read_annotations, same_length
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.metrics import score
    from ethobench.models import truth_of

    data = load_dataset(truth)
    rates = {r.rate for r in data if r.rate}
    clock = rate or (rates.pop() if len(rates) == 1 else None)
    guesses = {}
    for name, group in read_annotations(pred, clock).items():
        if len(group) > 1:
            raise EthobenchError(f"{name!r} has several annotators on the side that is scored: {', '.join(group)}")
        guess = next(iter(group.values()))[0]
        known = [own for own in data if own.id == name and own.annotations]
        truths = [] if annotator in ("all", "consensus") or not known else [truth_of(known[0], annotator)]
        guesses[name] = same_length(guess, truths[0], name)[0] if truths and truths[0].n_frames > guess.n_frames else guess
    return data, score(guesses, data, annotator=annotator, **options)


def _shown(scores: Scores, metrics: str | None) -> list[str]:
    from ethobench.core.errors import NotFoundError

    known = [m.name for m in scores.suite.measures]
    if metrics is None:
        return list(scores.suite.headline)
    chosen = known if metrics == "all" else [name.strip() for name in metrics.split(",")]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise NotFoundError(f"suite {scores.suite.name!r} has no measure {', '.join(unknown)}; it has: {', '.join(known)}")
    return chosen


def _print_all(scores: Scores, audit: TrainingAudit | None, per: str | None, shown: list[str]) -> None:
    """Print the scores; where some recordings were seen in training, say so and print those of the others too."""
    if audit is None:
        return _print(scores, per, shown)
    for message in audit.messages():
        typer.secho(f"{'warning' if audit.seen else 'note'}: {message}", err=True, fg=typer.colors.YELLOW)
    _print(scores, per, shown, f"; {len(audit.seen)} recordings SEEN IN TRAINING" if audit.seen else "")
    if audit.seen and audit.unseen:
        _print(scores.select(audit.unseen), per, shown, "; not seen in training")
    return None


def _print(scores: Scores, per: str | None, shown: list[str], mark: str = "") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from ethobench.cli._occurrence import print_lines

    of_individuals = "" if scores.unit == "recordings" else f" of {len(scores.individuals)} individuals"
    title = f"{scores.suite.title}; {len(scores.recordings)} recordings{of_individuals}{mark}"
    console = Console(markup=False, width=None if Console().is_terminal else 210)
    rows: list[tuple[str, dict[str, float], dict[str, Any]]] = [("all", scores.overall, scores.intervals["overall"])]
    if per in (None, "behavior"):
        shown_behaviors = {name: figures for name, figures in scores.behaviors.items() if name not in scores.undefined_behaviors}
        rows += [(name, figures, scores.intervals["behaviors"][name]) for name, figures in shown_behaviors.items()]
    else:
        rows += [(name, part["overall"], {}) for name, part in scores.per(per).items()]
    if len(shown) > 9:
        table = Table("measure", *(name for name, *_ in rows), title=title, box=SIMPLE_HEAD, title_justify="left")
        for measure in shown:
            table.add_row(measure, *(_cell(figures, between, measure) for _, figures, between in rows))
    else:
        table = Table(per or "behavior", *shown, title=title, box=SIMPLE_HEAD, title_justify="left")
        for name, figures, between in rows:
            table.add_row(name, *(_cell(figures, between, measure) for measure in shown))
    console.print(table)
    if per in (None, "behavior"):
        print_lines(scores.occurrence_lines())
    print_lines([scores.interval_note])


def _cell(figures: dict[str, float], between: dict[str, Any], measure: str) -> str:
    from math import isnan

    value = figures.get(measure)
    if value is None or isnan(value):
        return "-"
    interval = between.get(measure)
    return f"{value:.3f}" if interval is None else f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"
