"""`ethobench agreement`: agreement of annotators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, MatchOption, ReadOption, RenameOption
from ethobench.cli.output import echo_json, print_never_annotated, print_note, print_notes
from ethobench.cli.tables import Number, format_with_interval, print_table, print_wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ethobench.core import Recording
    from ethobench.metrics import Agreement

PER = ("behavior", "pair", "recording")
HEADERS = {"kappa": "kappa", "f1": "frame F1", "agreement": "equal frames"}
STATISTICS = {"fleiss": "Fleiss' kappa", "alpha": "alpha", "icc_count": "ICC of counts", "icc_duration": "ICC of durations"}


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(help="A file or folder for each annotator, files with several, or a dataset such as banos.", metavar="FILE"),
    ],
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    tolerance: Annotated[float, typer.Option(help="Exclude frames within this many seconds of a start or stop.", metavar="SECONDS")] = 0.0,
    behaviors: Annotated[
        str | None, typer.Option(help="Only these behaviors, separated by commas; frames with others count as without behavior.")
    ] = None,
    per: Annotated[str, typer.Option(help="Show agreement per behavior, per pair of annotators, or per recording.")] = "behavior",
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    match: MatchOption = None,
    entry: EntryOption = None,
    option: ReadOption = None,
    wide: Annotated[bool, typer.Option("--wide", help="Show intervals beside values. Can be wider than 80 columns.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the agreement of each pair, also by recording, to this CSV file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with tables and figures.", metavar="FILE.html")] = None,
) -> None:
    """Measure agreement of annotators: Cohen's kappa and F1 of each pair, Fleiss' kappa, Krippendorff's alpha, ICC.

    Intervals are over individuals, or over recordings where individuals are not known; with fewer than five there are none.

    Example: [bold]ethobench agreement anna.boris ben.boris[/bold]

    Example: [bold]ethobench agreement anna/ ben/ carla/ --rename i=interact --report agreement.html[/bold]
    """
    from ethobench.cli.options import parse_options, parse_renames
    from ethobench.core.files import check_new_path
    from ethobench.metrics import agreement

    if per not in PER:
        raise typer.BadParameter(f"must be {', '.join(PER[:-1])} or {PER[-1]}, got {per!r}", param_hint="--per")
    for path in (csv, report):
        if path is not None:
            check_new_path(path)
    recordings = _collate(
        paths, rate=rate, rename=parse_renames(rename), match=match, entry=entry, annotators=annotator, options=parse_options(option)
    )
    annotations = {recording.id: dict(recording.annotations) for recording in recordings}
    individuals = {recording.id: recording.individual for recording in recordings}
    chosen = [name.strip() for name in behaviors.split(",")] if behaviors else None
    result = agreement(annotations, tolerance=tolerance, behaviors=chosen, individuals=individuals)
    print_notes(result.notes)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
        result.table(recordings=True).to_csv(csv, index=False)
    if report is not None:
        from ethobench.reports import summarize_agreement, write_report

        write_report(report, summarize_agreement(result, annotations))
    if as_json:
        echo_json(result.to_dict())
        return
    _print(result, per, wide=wide)


def _print(result: Agreement, per: str, *, wide: bool) -> None:
    rows = [row for row in (result.recordings if per == "recording" else result.pairs) if row["behavior"] not in result.never_annotated]
    names = [name for name in result.fleiss if name not in result.never_annotated]
    if len(names) == 2:  # one behavior: all behaviors together are the same
        names, rows = names[:1], [row for row in rows if row["behavior"]]
    elif per == "pair":
        rows = [row for row in rows if not row["behavior"]] or rows
    _print_pairs(result, rows, is_per_recording=per == "recording", wide=wide)
    if per == "behavior":
        cells = [[name or "all", *(_statistic(result, key, name, wide=wide) for key in STATISTICS)] for name in names]
        print_table(["behavior", *STATISTICS.values()], cells, title="All annotators", wide=wide)
    print_never_annotated(result.never_annotated)
    position = "" if result.intervals["reason"] else " in brackets" if wide else " below each value"
    print_wrapped([] if per == "recording" else [f"{result.interval_note}{position}"])
    print_wrapped(["kappa, alpha: agreement beyond chance (1: perfect, 0: chance)"])


def _print_pairs(result: Agreement, rows: Sequence[Mapping[str, Any]], *, is_per_recording: bool, wide: bool) -> None:
    """Print the agreement of pairs of annotators; the names of a single pair are above the table."""
    is_single = len(result.annotators) == 2
    names = ["recording"] * is_per_recording + ["annotators"] * (not is_single) + ["behavior"]
    cells = []
    for row in rows:
        label = {"recording": row.get("recording"), "annotators": _pair(row), "behavior": row["behavior"] or "all"}
        values = [format_with_interval(row[key], _ends(row, key), wide=wide) for key in HEADERS]
        cells.append([*(label[name] for name in names), *values, row["frames"]])
    title = f"Agreement of {_pair(rows[0])}" if is_single and rows else "Each pair of annotators"
    print_table([*names, *HEADERS.values(), "frames"], cells, title=title, wide=wide, n_groups=len(names) - 1)


def _pair(row: Mapping[str, Any]) -> str:
    return f"{row['annotator_1']} and {row['annotator_2']}"


def _ends(row: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return None if low is None or high is None else (low, high)


def _statistic(result: Agreement, key: str, behavior: str, *, wide: bool) -> Number:
    return format_with_interval(getattr(result, key).get(behavior), result.intervals[key].get(behavior), wide=wide)


def _collate(paths: list[Path], **options: Any) -> list[Recording]:
    """Match the recordings of annotators (one path each, or several in a file); return those with several annotators."""
    from ethobench.core.errors import EthobenchError
    from ethobench.core.messages import Message
    from ethobench.datasets.collate import collate_files
    from ethobench.datasets.match_file import describe_unmatched

    collation = collate_files(paths, same_recording=True, annotations_only=True, **options)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    single = [recording.id for recording in collation.recordings if len(recording.annotations) == 1]
    if len(single) == len(collation.recordings) and len(paths) > 1:
        raise EthobenchError(Message("no recording has two annotators: ", describe_unmatched(collation.names_by_source(paths))))
    if single:
        print_note(f"{len(single)} recordings have only one annotator and are skipped: {', '.join(single[:5])}")
    return [recording for recording in collation.recordings if len(recording.annotations) > 1]
