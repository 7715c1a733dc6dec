"""`ethobench compare`: statistics between groups of individuals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, ReadOption, RenameOption
from ethobench.cli.output import echo_json, print_note, print_notes
from ethobench.cli.tables import Number, print_table, print_wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ethobench.analysis.comparison import Comparison
    from ethobench.cli.output import Row
    from ethobench.core import Annotation, Recording

UNITS = {
    "share": "% of observed time",
    "total_s": "seconds per recording",
    "n_bouts": "bouts per recording",
    "rate_per_min": "bouts per minute",
    "rate_per_hour": "bouts per hour",
    "mean_duration_s": "mean bout duration, s",
    "median_duration_s": "median bout duration, s",
    "latency_s": "latency to the first bout, s",
    "inter_bout_s": "time between bouts, s",
    "distance": "distance per recording",
    "mean_speed": "mean speed",
    "immobile_share": "% of tracked time immobile",
    "nearest_animal": "distance to the nearest animal",
}
OF_POSES = ("distance", "mean_speed", "immobile_share", "nearest_animal")
PERCENT = ("share", "immobile_share")


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(help="A study (folder with a recordings.csv), or a dataset such as synthetic/labs.", metavar="STUDY"),
    ],
    groups: Annotated[
        str, typer.Option(help="Column of recordings.csv that names the group, such as treatment; or bin, or zone.", metavar="COLUMN")
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            help="Measures, separated by commas: share, rate_per_min, rate_per_hour, n_bouts, total_s, mean_duration_s, median_duration_s, "
            "latency_s, inter_bout_s; with poses distance, mean_speed, immobile_share, nearest_animal. Default: share, rate_per_min, "
            "mean_duration_s.",
            metavar="NAME,...",
        ),
    ] = None,
    behaviors: Annotated[str | None, typer.Option(help="Only these behaviors, separated by commas.", metavar="NAME,...")] = None,
    by: Annotated[
        str | None, typer.Option(help="Compare within each value of these columns, such as sex, or bin with --bin.", metavar="COLUMN,...")
    ] = None,
    reference: Annotated[str | None, typer.Option(help="The group that others are compared with.", metavar="GROUP")] = None,
    pair: Annotated[
        str | None, typer.Option(help="Column that names matched individuals, such as litter: compare within it.", metavar="COLUMN")
    ] = None,
    covariates: Annotated[str | None, typer.Option(help="Columns to adjust for, such as age,sex.", metavar="COLUMN,...")] = None,
    correct: Annotated[str, typer.Option(help="Correction of p values over behaviors: holm, fdr or none.")] = "holm",
    labels: Annotated[
        str | None,
        typer.Option(help="Human labels of some recordings: files, a folder, or an annotator of the study.", metavar="PATH|NAME"),
    ] = None,
    model_labels: Annotated[
        str | None,
        typer.Option(
            help="Model labels of all recordings, which the human labels correct: files, a folder, or an annotator.", metavar="PATH|NAME"
        ),
    ] = None,
    bin: Annotated[str | None, typer.Option(help="Time bins, such as 5m or thirds; with --groups bin or --by bin.", metavar="BINS")] = None,
    zones: Annotated[bool, typer.Option("--zones", help="Behavior in the zones of zones.csv; with --groups zone or --by zone.")] = False,
    point: Annotated[str | None, typer.Option(help="With --zones: a keypoint. Default: centroid.", metavar="KEYPOINT")] = None,
    animal: Annotated[
        str | None, typer.Option(help="With --zones: the tracked animal that bouts without a subject belong to.", metavar="NAME")
    ] = None,
    mixed: Annotated[bool, typer.Option("--mixed", help="Also fit mixed models of recordings within individuals (statsmodels).")] = False,
    annotator: AnnotatorsOption = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    rename: RenameOption = None,
    option: ReadOption = None,
    seed: Annotated[int, typer.Option(help="Random seed of permutations.")] = 0,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns. Can be wider than 80 columns.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.", metavar="FILE.csv")] = None,
    out: Annotated[Path | None, typer.Option(help="Draw the first measure: SVG, PDF or PNG file.", metavar="FILE")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML report with budgets, zones and the comparison.", metavar="FILE.html")
    ] = None,
) -> None:
    """Compare groups: means, differences and effect sizes with 95 % intervals, permutation tests by individual, corrected over behaviors.

    The individual is the unit of analysis; its recordings are pooled. Individuals in several groups are compared within themselves.

    Example: [bold]ethobench compare my_study/ --groups treatment[/bold]

    With labels of a model, corrected by hand labels of a few animals:
    [bold]ethobench compare my_study/ --groups treatment --labels human/ --model-labels predicted/[/bold]
    """
    from ethobench.analysis.group_values import DEFAULT_MEASURES
    from ethobench.analysis.groups import compare_groups
    from ethobench.cli.budget import make_zone_options
    from ethobench.cli.options import parse_options, parse_renames
    from ethobench.core.files import check_new_path
    from ethobench.reports import summarize_comparison, write_report

    for path in (csv, out, report):
        if path is not None:
            check_new_path(path)
    if labels is not None and model_labels is None:
        raise typer.BadParameter("needs --model-labels; to choose an annotator, use --annotator", param_hint="--labels")
    if (point or animal) and not zones and report is None:
        raise typer.BadParameter("needs --zones", param_hint="--point" if point else "--animal")
    zone_options = make_zone_options(point, animal)
    reading: dict[str, Any] = {"rate": rate, "rename": parse_renames(rename), "options": parse_options(option)}
    names = [name.strip() for name in measure.split(",") if name.strip()] if measure else list(DEFAULT_MEASURES)
    recordings = _read_study(
        paths, reading, annotator, needs_signals=zones or report is not None or model_labels is not None or bool({*names} & {*OF_POSES})
    )
    sources = [None if value is None else _read_labels(value, recordings, reading) for value in (labels, model_labels)]
    result = compare_groups(
        recordings,
        groups,
        measures=names,
        behaviors=behaviors,
        by=by,
        reference=reference,
        pair=pair,
        covariates=covariates,
        correct=correct,
        labels=sources[0],
        model_labels=sources[1],
        trained_on=_training_recordings(model_labels) if sources[1] is not None and not isinstance(sources[1], str) else (),
        bin=bin,
        zones=zones or None,
        zone_options=zone_options,
        mixed=mixed,
        seed=seed,
    )
    _write(result, csv, out)
    if report is not None:
        write_report(report, summarize_comparison(result, recordings, zone_options=zone_options))
    if as_json:
        echo_json(result)
        return
    _print(result, wide=wide)


def _read_study(
    paths: Sequence[Path], reading: Mapping[str, Any], annotator: list[str] | None, *, needs_signals: bool
) -> Sequence[Recording]:
    from ethobench.datasets.collate import collate_files

    collation = collate_files(paths, same_recording=False, annotations_only=not needs_signals, annotators=annotator, **reading)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    return collation.recordings


def _read_labels(value: str, recordings: Sequence[Recording], reading: Mapping[str, Any]) -> str | dict[str, Annotation]:
    """Return an annotator of the study, or the annotations of files by recording of the study."""
    from ethobench.core.errors import NotFoundError
    from ethobench.datasets.collate import collate_files
    from ethobench.datasets.label_files import labels_by_recording

    annotators = dict.fromkeys(name for r in recordings for name in r.annotations)
    if value in annotators:
        return value
    if not Path(value).exists():
        raise NotFoundError(f"{value!r} is neither a file or folder nor an annotator of the study ({', '.join(annotators) or 'none'})")
    collation = collate_files([value], annotations_only=True, **reading)
    print_notes(collation.notes)
    return labels_by_recording(collation.recordings, recordings, value)


def _training_recordings(path: str | None) -> set[str]:
    """Return the recordings that the model was trained on, as the log of `ethobench predict` beside its files states."""
    from ethobench.models.audit import read_log

    if path is None:
        return set()
    return {entry.recording for entry in read_log(Path(path)) if entry.origin.match.is_training_recording and not entry.out_of_fold}


def _write(result: Comparison, csv: Path | None, out: Path | None) -> None:
    if csv is not None:
        from ethobench.formats.tables import write_table

        table = result.table()
        rows = [["" if value != value or value is None else value for value in row] for row in table.itertuples(index=False)]  # noqa: PLR0124
        write_table(csv, list(table.columns), rows)
    if out is not None:
        from ethobench import plot

        plot.save(plot.group_comparison(result, measure=result["rows"][0]["measure"]), out)


def _print(result: Comparison, *, wide: bool) -> None:
    counts = ", ".join(f"{name} {_count_text(count)}" for name, count in result["n"].items())
    print_wrapped([f"{result['column']}: {counts}; {result['design']}; unit of analysis: {result['unit']}"], indent="")
    for line in result["warnings"]:
        print_wrapped([f"warning: {line}"], indent="", err=True, fg="yellow")
    for measure in dict.fromkeys(row["measure"] for row in result["rows"]):
        _print_measure(result, measure, wide=wide)
    _print_legend(result, wide=wide)
    for line in result["notes"]:
        print_note(line)


def _count_text(count: Mapping[str, int]) -> str:
    return f"{count['labeled']} labeled of {count['individuals']}" if "labeled" in count else f"{count['individuals']}"


def _print_measure(result: Comparison, measure: str, *, wide: bool) -> None:
    rows = [row for row in result["rows"] if row["measure"] == measure]
    strata = list(rows[0].get("by", {}))
    has_several_groups = len(result["groups"]) > 2
    has_model = "relative_width" in rows[0]["pairs"][0]
    has_mixed = any("mixed_model" in pair for row in rows for pair in row["pairs"])
    scale = 100.0 if measure in PERCENT else 1.0
    headers = [*strata, "behavior", *(["groups"] if has_several_groups else result["groups"]), "difference"]
    shows_effect = wide or not (has_model or has_mixed)
    headers += ["ratio", *(["g"] if shows_effect else []), *(["width"] if has_model else []), *(["mixed model"] if has_mixed else []), "p"]
    cells = []
    for row in rows:
        for pair in row["pairs"]:
            means = (
                [f"{pair['groups'][1]} - {pair['groups'][0]}"]
                if has_several_groups
                else [_mean(row["groups"][g], scale) for g in result["groups"]]
            )
            cells.append(
                [
                    *row.get("by", {}).values(),
                    row["behavior"],
                    *means,
                    _with_interval(pair, "difference", "low", "high", scale),
                    _with_interval(pair, "ratio", "ratio_low", "ratio_high", 1.0, open_end=True),
                    *([_with_interval(pair, "effect_size", "effect_low", "effect_high", 1.0)] if shows_effect else []),
                    *([_percent(pair.get("relative_width"))] if has_model else []),
                    *([_with_interval(pair.get("mixed_model") or {}, "difference", "low", "high", scale)] if has_mixed else []),
                    _p_cell(pair),
                ]
            )
    print_table(headers, cells, title=f"{UNITS[measure]}", wide=wide, n_groups=len(strata))
    if has_several_groups:
        _print_means(result, rows, scale, wide=wide)


def _print_means(result: Comparison, rows: Sequence[Row], scale: float, *, wide: bool) -> None:
    """Print the means of several groups, and the test of all together."""
    strata = list(rows[0].get("by", {}))
    cells = [
        [*row.get("by", {}).values(), row["behavior"], *(_mean(row["groups"][g], scale) for g in result["groups"]), _p_cell(row)]
        for row in rows
    ]
    print_table([*strata, "behavior", *result["groups"], "p of all groups"], cells, wide=wide, n_groups=len(strata))


def _print_legend(result: Comparison, *, wide: bool) -> None:
    pairs = [pair for row in result["rows"] for pair in row["pairs"]]
    tests = dict.fromkeys(f"{pair['test']['method']}{' (exact)' if pair['test'].get('exact') else ''}" for pair in pairs if pair["test"])
    is_compact = not wide and any("relative_width" in pair or "mixed_model" in pair for pair in pairs)
    effect = "" if is_compact else "g: Hedges' effect size; "
    correction = {"holm": "corrected over behaviors (Holm)", "fdr": "corrected over behaviors (false discovery rate)"}
    lines = [
        f"95 % intervals below; difference and ratio: to {result['groups'][0]}; {effect}"
        f"p: {', '.join(tests)}, {correction.get(result['correction'], 'not corrected')}"
    ]
    if any("relative_width" in pair for pair in pairs):
        lines.append("width: of the interval of the difference, in % of that with human labels alone")
        lines += _halving_lines(result)
    if result["never_annotated"]:
        lines.append(f"never annotated: {', '.join(result['never_annotated'])}")
    print_wrapped(lines)


def _halving_lines(result: Comparison) -> list[str]:
    """Say how many more labels would halve the intervals of the first measure."""
    measure = result["rows"][0]["measure"]
    lines = []
    for row in (row for row in result["rows"] if row["measure"] == measure):
        for pair in row["pairs"]:
            halve = pair.get("labels_to_halve")
            if halve is None or halve["width_if_all_labeled"] is None:
                continue
            name = ", ".join([row["behavior"], *map(str, row.get("by", {}).values())])
            name += f" ({pair['groups'][1]} - {pair['groups'][0]})" if len(row["pairs"]) > 1 else ""
            if halve["individuals"] is None:
                share = 100 * halve["width_if_all_labeled"]
                lines.append(
                    f"{name}: hand labels of all individuals would narrow the interval to {share:.0f} %; half needs more individuals"
                )
            else:
                lines.append(
                    f"{name}: hand labels of {halve['individuals']} more individuals (about {halve['recordings']} recordings) "
                    "would halve the interval"
                )
    return lines


def _mean(group: Row, scale: float) -> Number:
    return _with_interval(group, "mean", "low", "high", scale)


def _with_interval(entry: Row, value: str, low: str, high: str, scale: float, *, open_end: bool = False) -> Number:
    if entry.get(value) is None:
        return Number("-")
    ends = [_significant(None if entry[name] is None else scale * entry[name]) for name in (low, high)]
    if entry[low] is None:
        return _significant(scale * entry[value])
    if entry[high] is None:
        ends[1] = Number("inf" if open_end else "-")
    joined = f"{ends[0]} to {ends[1]}" if "-" in "".join(ends) else f"{ends[0]}-{ends[1]}"
    return Number(f"{_significant(scale * entry[value])}\n{joined}")


def _significant(value: float | None) -> Number:
    """Return a number with about three digits.

    >>> _significant(0.01234), _significant(12.34), _significant(1234.5), _significant(None)
    ('0.012', '12.3', '1,234', '-')
    """
    if value is None:
        return Number("-")
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 3
    return Number(f"{value:,.{digits}f}")


def _percent(value: float | None) -> Number:
    return Number("-" if value is None else f"{100 * value:.0f} %")


def _p_cell(entry: Row) -> Number:
    p = entry.get("p_corrected")
    return Number("-" if p is None else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0") if p < 1 else "1")
