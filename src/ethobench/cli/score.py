"""`ethobench score`: score annotations against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import EntryOption, MatchOption, RenameOption
from ethobench.cli.output import echo_json, make_console, print_notes, secho

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ethobench.metrics import Scores
    from ethobench.models.audit import TrainingAudit

MAX_COLUMNS = 9  # measures beside each other; more are printed below each other


def run(
    pred: Annotated[Path, typer.Argument(help="Predictions: a file, or a folder of files.", metavar="PRED")],
    truth: Annotated[
        Path,
        typer.Argument(help="Reference annotations: a file, a folder, a recordings.csv, or a dataset such as bebe/HAR.", metavar="TRUTH"),
    ],
    suite: Annotated[str, typer.Option(help="Suite of metrics: ethobench, banos, bebe, calms21, rodentbench.")] = "ethobench",
    behaviors: Annotated[
        str | None, typer.Option(help="Score only these behaviors, separated by commas; 'all': every behavior of either side.")
    ] = None,
    annotator: Annotated[str | None, typer.Option(help="Reference annotator, if there are several: a name, 'consensus' or 'all'.")] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    per: Annotated[str | None, typer.Option(help="Show scores per recording, individual or behavior.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Measures to show, separated by commas; 'all': every measure of the suite.")] = None,
    merge: Annotated[bool, typer.Option("--merge-subjects", help="Pool subjects even if both sides name them.")] = False,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all scores to this CSV file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with tables and figures.", metavar="FILE.html")] = None,
    model_card: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the model that predicted PRED: marks the recordings it was trained on, and scores the others separately. "
            "Not needed for files that `predict` wrote.",
            metavar="MODEL_DIR",
        ),
    ] = None,
) -> None:
    """Score annotations against reference annotations.

    Example: [bold]ethobench score model.csv human.boris --suite banos[/bold]

    Example: [bold]ethobench score predictions/ my_study/ --report report.html[/bold]

    Example: [bold]ethobench score predictions/ annotations/ --match names.csv[/bold]

    Example: [bold]ethobench score predictions/ my_study/ --model-card models/first[/bold]
    """
    from ethobench.cli.options import parse_renames
    from ethobench.cli.output import print_note
    from ethobench.core.files import check_new_path
    from ethobench.metrics import score
    from ethobench.metrics.scoring import read_score_files
    from ethobench.models.audit import audit_scores, read_log

    if per not in (None, "recording", "individual", "behavior"):
        raise typer.BadParameter(f"must be recording, individual or behavior, got {per!r}", param_hint="--per")
    for path in (csv, report):
        if path is not None:
            check_new_path(path)
    chosen = [name.strip() for name in behaviors.split(",")] if behaviors and behaviors != "all" else behaviors or None
    files = read_score_files(pred, truth, annotator=annotator, rate=rate, rename=parse_renames(rename), match=match, entry=entry)
    print_notes(files.notes)
    tracks = "merge" if merge else "auto"
    scores = score(files.predictions, files.dataset, suite=suite, annotator=annotator, behaviors=chosen, tracks=tracks)
    audit = audit_scores(scores, model=model_card, log=read_log(pred), data=files.dataset)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
        scores.table().to_csv(csv, index=False)
    if report is not None:
        from ethobench.datasets.loose_files import recording_name
        from ethobench.reports import summarize_scores, write_report

        named = {recording_name(pred): scores}
        write_report(report, summarize_scores(named, truth=annotator or recording_name(truth), annotations=files.dataset, training=audit))
    if as_json:
        training = {} if audit is None else {"training": audit.to_dict(scores)}
        echo_json({**scores.to_dict(), **training})
        return
    for note in scores.notes:
        print_note(str(note))
    _print_all(scores, audit, per, _measures_to_show(scores, metrics))


def _measures_to_show(scores: Scores, metrics: str | None) -> list[str]:
    from ethobench.core.errors import NotFoundError

    available = [m.name for m in scores.suite.measures]
    if metrics is None:
        return list(scores.suite.headline)
    chosen = available if metrics == "all" else [name.strip() for name in metrics.split(",")]
    unknown = [name for name in chosen if name not in available]
    if unknown:
        raise NotFoundError(f"suite {scores.suite.name!r} has no measure {', '.join(unknown)}. Available: {', '.join(available)}")
    return chosen


def _print_all(scores: Scores, audit: TrainingAudit | None, per: str | None, measures: list[str]) -> None:
    """Print the scores; if some recordings were used in training, warn and print the scores of the others too."""
    if audit is None:
        return _print(scores, per, measures)
    for message in audit.messages():
        secho(f"{'warning' if audit.in_sample else 'note'}: {message}", err=True, fg=typer.colors.YELLOW)
    _print(scores, per, measures, f"; {len(audit.in_sample)} recordings SEEN IN TRAINING" if audit.in_sample else "")
    if audit.in_sample and audit.held_out:
        _print(scores.select(audit.held_out), per, measures, "; not seen in training")
    return None


def _print(scores: Scores, per: str | None, measures: list[str], title_suffix: str = "") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ethobench.cli.output import print_lines

    of_individuals = "" if scores.unit == "recordings" else f" of {len(scores.individuals)} individuals"
    n = len(scores.recordings)
    title = f"{scores.suite.title}; {n} recording{'s' if n != 1 else ''}{of_individuals}{title_suffix}"
    rows: list[tuple[str, Mapping[str, float], Mapping[str, Any]]] = [("all", scores.overall, scores.intervals["overall"])]
    if per in (None, "behavior"):
        occurring = {name: values for name, values in scores.behaviors.items() if name not in scores.undefined_behaviors}
        rows += [(name, values, scores.intervals["behaviors"][name]) for name, values in occurring.items()]
    else:
        rows += [(name, result["overall"], {}) for name, result in scores.per(per).items()]
    if len(measures) > MAX_COLUMNS:
        table = Table("measure", *(name for name, *_ in rows), title=title, box=SIMPLE_HEAD, title_justify="left")
        for measure in measures:
            table.add_row(measure, *(_cell(values, intervals, measure) for _, values, intervals in rows))
    else:
        table = Table(per or "behavior", *measures, title=title, box=SIMPLE_HEAD, title_justify="left")
        for name, values, intervals in rows:
            table.add_row(name, *(_cell(values, intervals, measure) for measure in measures))
    make_console(plain_width=210).print(table)
    if per in (None, "behavior"):
        print_lines(scores.occurrence_lines())
    print_lines([scores.interval_note])


def _cell(values: Mapping[str, float], intervals: Mapping[str, Any], measure: str) -> str:
    from ethobench.metrics.scores import format_value

    return format_value(values.get(measure), intervals.get(measure))
