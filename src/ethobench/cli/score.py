"""`ethobench score`: how good an annotation is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._options import RenameOption
from ethobench.cli._output import echo_json, make_console, print_notes, secho

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ethobench.core import Annotation, Dataset
    from ethobench.core.errors import Note
    from ethobench.datasets.collate import CollatedPairs, RecordingPair
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
    rename: RenameOption = None,
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
    from ethobench.cli._options import parse_renames
    from ethobench.cli._output import print_note
    from ethobench.core.files import check_new_path
    from ethobench.datasets.collate import is_dataset
    from ethobench.models.audit import audit_scores, read_log

    names = parse_renames(rename)
    if per not in (None, "recording", "individual", "behavior"):
        raise typer.BadParameter(f"figures are broken down per recording, individual or behavior, not {per!r}", param_hint="--per")
    options: dict[str, Any] = {"suite": suite, "tracks": "merge" if merge else "auto"}
    if behaviors:
        options["behaviors"] = "all" if behaviors == "all" else [name.strip() for name in behaviors.split(",")]
    if report is not None:
        check_new_path(report)
    data = None
    if is_dataset(truth):
        data, scores = _score_dataset(pred, truth, rate, annotator, names, options)
    else:
        scores = _score_files(pred, truth, rate, annotator, names, options)
    audit = audit_scores(scores, model=model_card, log=read_log(pred), data=data)
    if csv is not None:
        check_new_path(csv)
        csv.parent.mkdir(parents=True, exist_ok=True)
        scores.table().to_csv(csv, index=False)
    if report is not None:
        from ethobench.datasets.collate import recording_name
        from ethobench.reports import summarize_scores, write_report

        sides = {recording_name(pred): scores}
        write_report(report, summarize_scores(sides, truth=annotator or recording_name(truth), annotations=data, training=audit))
    if as_json:
        training = {} if audit is None else {"training": audit.to_dict(scores)}
        echo_json({**scores.to_dict(), **training})
        return
    for note in scores.notes:
        print_note(str(note))
    _print_all(scores, audit, per, _shown(scores, metrics))


def _score_dataset(
    pred: Path, truth: Path, rate: float | None, annotator: str | None, rename: dict[str, str], options: dict[str, Any]
) -> tuple[Dataset, Scores]:
    """Score files against the recordings of a study."""
    from ethobench.core.errors import NotFoundError
    from ethobench.datasets import load_dataset
    from ethobench.datasets.collate import equalize_lengths
    from ethobench.metrics import score
    from ethobench.models import reference_annotation

    data = load_dataset(truth, rename=rename, check_rename=False)
    matched = _matched(pred, data, rate, rename, check_rename=False)
    if missing := {old: new for old, new in rename.items() if old not in matched.labels}:
        load_dataset(truth, rename=missing)  # an error, if the study does not have them either
    if matched.only_predictions:
        raise NotFoundError(f"{truth} has no annotated recording {', '.join(matched.only_predictions[:5])}; it has: {_some_ids(data)}")
    guesses: dict[str, Annotation] = {}
    notes: list[Note] = []
    for name, pair in matched.pairs.items():
        guesses[name] = _only(pair.predictions, name, scored=True)
        if annotator not in ("all", "consensus"):
            reference = reference_annotation(data[name], annotator)
            if reference.rate == guesses[name].rate and reference.n_frames > guesses[name].n_frames:
                both = {"the prediction": guesses[name], "the truth": reference}
                equal, more = equalize_lengths(both, name, stated=_stated(pair), any_difference=False)
                guesses[name] = equal["the prediction"]
                notes += more
    print_notes(notes)
    return data, score(guesses, data, annotator=annotator, **options)


def _score_files(
    pred: Path, truth: Path, rate: float | None, annotator: str | None, rename: dict[str, str], options: dict[str, Any]
) -> Scores:
    """Score files against other files."""
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets.collate import equalize_lengths
    from ethobench.metrics import score

    matched = _matched(pred, truth, rate, rename)
    if matched.only_predictions or matched.only_references:
        sides = ((pred, matched.only_predictions), (truth, matched.only_references))
        lacking = "; ".join(f"only in {path}: {', '.join(names[:5])}" for path, names in sides if names)
        raise EthobenchError(f"names do not match ({lacking})")
    pairs, notes = {}, []
    for name, pair in matched.pairs.items():
        prediction = _only(pair.predictions, name, scored=True)
        for key, reference in _references(pair.references, annotator, name).items():
            both = {"the prediction": prediction, "the truth": reference}
            if prediction.rate == reference.rate:
                both, more = equalize_lengths(both, name, stated=_stated(pair), any_difference=False)
                notes += more
            pairs[f"{name}@{key}" if key else name] = (both["the prediction"], both["the truth"])
    print_notes(notes)
    return score(pairs, **options)


def _stated(pair: RecordingPair) -> list[str]:
    """Return the sides whose files state the length of the recording."""
    return [side for side, stated in zip(("the prediction", "the truth"), pair.stated_lengths, strict=True) if stated]


def _matched(pred: Path, truth: Path | Dataset, rate: float | None, rename: dict[str, str], *, check_rename: bool = True) -> CollatedPairs:
    from ethobench.datasets.collate import collate_pairs

    matched = collate_pairs(pred, truth, rate=rate, rename=rename, check_rename=check_rename)
    print_notes(matched.reader_notes)
    print_notes(matched.notes)
    return matched


def _references(annotations: Mapping[str, Annotation], annotator: str | None, name: str) -> dict[str, Annotation]:
    """Choose the reference annotations of a recording: all, the consensus, the annotator named, or the only one there is."""
    from ethobench.core import Recording
    from ethobench.metrics import consensus

    if annotator == "all":
        return dict(annotations)
    if annotator == "consensus":
        return {"": consensus(annotations)}
    if annotator is not None:
        return {"": Recording(name, annotations=annotations).annotation(annotator)}
    return {"": _only(annotations, name)}


def _only(annotations: Mapping[str, Annotation], name: str, *, scored: bool = False) -> Annotation:
    from ethobench.core.errors import EthobenchError

    if len(annotations) > 1:
        advice = "score them one at a time, from files of their own (ethobench convert)" if scored else "name one with --annotator"
        raise EthobenchError(f"{name!r} has several annotators ({', '.join(annotations)}); {advice}")
    return next(iter(annotations.values()))


def _some_ids(data: Dataset) -> str:
    ids = [recording.id for recording in data if recording.annotations]
    return ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")


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
        secho(f"{'warning' if audit.seen else 'note'}: {message}", err=True, fg=typer.colors.YELLOW)
    _print(scores, per, shown, f"; {len(audit.seen)} recordings SEEN IN TRAINING" if audit.seen else "")
    if audit.seen and audit.unseen:
        _print(scores.select(audit.unseen), per, shown, "; not seen in training")
    return None


def _print(scores: Scores, per: str | None, shown: list[str], mark: str = "") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ethobench.cli._output import print_lines

    of_individuals = "" if scores.unit == "recordings" else f" of {len(scores.individuals)} individuals"
    n = len(scores.recordings)
    title = f"{scores.suite.title}; {n} recording{'s' if n != 1 else ''}{of_individuals}{mark}"
    console = make_console(plain_width=210)
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
