"""`ethobench score`: score annotations against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ethobench.cli.options import EntryOption, MatchOption, ReadOption, RenameOption
from ethobench.cli.output import echo_json, print_notes, secho
from ethobench.cli.tables import Number, format_number, format_with_interval, print_table, print_wrapped
from ethobench.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ethobench.metrics import Scores
    from ethobench.models.audit import TrainingAudit

MAX_COLUMNS = 9  # measures beside each other; more are printed below each other
MAX_COLUMNS_BESIDE_AMOUNTS = 5  # measures that leave room for the number of bouts and seconds in 80 columns
Rows: TypeAlias = "list[tuple[str, Mapping[str, float], Mapping[str, Any]]]"  # names, values and intervals


def run(
    pred: Annotated[Path, typer.Argument(help="Predictions: a file, or a folder of files.", metavar="PRED")],
    truth: Annotated[
        Path,
        typer.Argument(help="Reference annotations: a file, a folder, a recordings.csv, or a dataset such as bebe/HAR.", metavar="TRUTH"),
    ],
    suite: Annotated[str, typer.Option(help="Suite of metrics: ethobench, banos, bebe, calms21, mabe2025, rodentbench.")] = "ethobench",
    behaviors: Annotated[
        str | None, typer.Option(help="Score only these behaviors, separated by commas; 'all': every behavior of either side.")
    ] = None,
    annotator: Annotated[
        str | None,
        typer.Option(help="Reference annotator, if there are several: a name, 'consensus' or 'all'. If TRUTH names none, the name to use."),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    per: Annotated[str | None, typer.Option(help="Show scores per recording, individual, lab or behavior.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Measures to show, separated by commas; 'all': every measure of the suite.")] = None,
    merge: Annotated[bool, typer.Option("--merge-subjects", help="Pool subjects even if both sides name them.")] = False,
    metadata: Annotated[
        Path | None,
        typer.Option(
            help="Suite mabe2025: table with video_id, lab_id and behaviors_labeled, such as train.csv of the challenge.",
            metavar="FILE.csv",
        ),
    ] = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    option: ReadOption = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Show all headline measures with three digits, and intervals beside them. Wider than 80 columns.")
    ] = False,
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

    Example: [bold]ethobench score submission.csv solution.csv --suite mabe2025 --metadata train.csv[/bold]
    """
    from ethobench.cli.options import parse_options, parse_renames
    from ethobench.cli.output import print_note
    from ethobench.core.files import check_new_path
    from ethobench.metrics import score
    from ethobench.metrics.scoring import MABE2025, is_submission, read_score_files
    from ethobench.models.audit import audit_scores, read_log

    if per not in (None, "recording", "individual", "lab", "behavior"):
        raise typer.BadParameter(f"must be recording, individual, lab or behavior, got {per!r}", param_hint="--per")
    for path in (csv, report):
        if path is not None:
            check_new_path(path)
    chosen = [name.strip() for name in behaviors.split(",")] if behaviors and behaviors != "all" else behaviors or None
    reading: dict[str, Any] = {"annotator": annotator, "rate": rate, "rename": parse_renames(rename), "match": match, "entry": entry}
    reading["options"] = parse_options(option)
    scoring: dict[str, Any] = {"suite": suite, "behaviors": chosen, "tracks": "merge" if merge else "auto", "metadata": metadata}
    data = None
    if suite == MABE2025 and is_submission(pred, truth):
        scores = score(pred, truth, **reading, **scoring)
    else:
        files = read_score_files(pred, truth, **reading)
        print_notes(files.notes)
        data = files.dataset
        scores = score(files.predictions, data, annotator=annotator, **scoring)
    audit = audit_scores(scores, model=model_card, log=read_log(pred), data=data)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
        scores.table().to_csv(csv, index=False)
    if report is not None:
        from ethobench.datasets.loose_files import recording_name
        from ethobench.reports import summarize_scores, write_report

        named = {recording_name(pred): scores}
        write_report(report, summarize_scores(named, truth=annotator or recording_name(truth), annotations=data, training=audit))
    if as_json:
        training = {} if audit is None else {"training": audit.to_dict(scores)}
        echo_json({**scores.to_dict(), **training})
        return
    for note in scores.notes:
        print_note(str(note))
    _print_all(scores, audit, per, _measures_to_show(scores, metrics, wide=wide), wide=wide)


def _measures_to_show(scores: Scores, metrics: str | None, *, wide: bool) -> list[str]:
    from ethobench.core.errors import NotFoundError

    available = [m.name for m in scores.suite.measures]
    if metrics is None:
        return list(scores.suite.headline if wide else scores.suite.compact or scores.suite.headline)
    chosen = available if metrics == "all" else [name.strip() for name in metrics.split(",")]
    unknown = [name for name in chosen if name not in available]
    if unknown:
        raise NotFoundError(f"suite {scores.suite.name!r} has no measure {', '.join(unknown)}. Available: {', '.join(available)}")
    return chosen


def _print_all(scores: Scores, audit: TrainingAudit | None, per: str | None, measures: list[str], *, wide: bool) -> None:
    """Print the scores; if some recordings were used in training, warn and print the scores of the others too."""
    if audit is None:
        return print_scores(scores, per, measures, wide=wide)
    for message in audit.messages():
        secho(f"{'warning' if audit.in_sample else 'note'}: {message}", err=True, fg=typer.colors.YELLOW)
    print_scores(scores, per, measures, f"; {len(audit.in_sample)} recordings SEEN IN TRAINING" if audit.in_sample else "", wide=wide)
    if audit.in_sample and audit.held_out:
        print_scores(scores.select(audit.held_out), per, measures, "; not seen in training", wide=wide)
    return None


def print_scores(
    scores: Scores, per: str | None, measures: list[str], title_suffix: str = "", *, wide: bool = False, hint: bool = True
) -> None:
    """Print a table of scores by behavior, recording or individual; `hint` names the options of the command that show more."""
    of_individuals = "" if scores.unit == "recordings" else f" of {len(scores.individuals)} {scores.unit}"
    recordings = plural(len(scores.recordings), "{n} recording", "{n} recordings")
    title = f"{scores.suite.title}; {recordings}{of_individuals}{title_suffix}"
    rows: Rows = [("all", scores.overall, scores.intervals["overall"])]
    by_behavior = per in (None, "behavior")
    if by_behavior:
        occurring = {name: values for name, values in scores.behaviors.items() if name not in scores.undefined_behaviors}
        rows += [(name, values, scores.intervals["behaviors"][name]) for name, values in occurring.items()]
    else:
        rows += [(name, result["overall"], {}) for name, result in scores.per(str(per)).items()]
    is_list = len(measures) > MAX_COLUMNS
    if is_list:
        _print_list(rows, measures, title, wide=wide)
    else:
        _print_columns(scores, rows, measures, title, per or "behavior", wide=wide)
    note = scores.describe_intervals("in brackets" if wide else "below each score" if not is_list else "with --wide")
    print_wrapped([*(scores.occurrence_lines() if by_behavior else ()), note])
    if hint and measures == [*scores.suite.compact]:
        print_wrapped(["more: --wide, --metrics all, --per recording, --report FILE.html"])


def _print_columns(scores: Scores, rows: Rows, measures: list[str], title: str, unit: str, *, wide: bool) -> None:
    """Print one column for each measure; for behaviors also how much of each is annotated."""
    from ethobench.core.occurrence import Amount
    from ethobench.metrics.base import measure_label

    columns = [unit, *map(measure_label, measures)]
    cells: list[list[str]] = []
    for name, values, intervals in rows:
        cells.append([name, *(format_with_interval(values.get(m), intervals.get(m), wide=wide) for m in measures)])
    if unit == "behavior" and scores.occurrence is not None and scores.pairs and (wide or len(measures) <= MAX_COLUMNS_BESIDE_AMOUNTS):
        annotated = scores.occurrence.annotated
        columns += ["bouts", "seconds"]
        for row in cells[1:]:
            amount = annotated.get(row[0], Amount())
            row += [Number(f"{amount.bouts:,}"), format_number(amount.seconds)]
        cells[0] += ["", ""]
    print_table(columns, cells, title=title, wide=wide)


def _print_list(rows: Rows, measures: list[str], title: str, *, wide: bool) -> None:
    """Print one line for each measure, and one column for each behavior, recording or individual."""
    cells = []
    for measure in measures:
        pairs = [(values.get(measure), intervals.get(measure) if wide else None) for _, values, intervals in rows]
        cells.append([measure, *(format_with_interval(*pair, wide=True) for pair in pairs)])
    print_table(["measure", *(name for name, *_ in rows)], cells, title=title, wide=wide)
