"""`ethobench budget`: time budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.options import AnnotatorsOption, EntryOption, ReadOption, RenameOption
from ethobench.cli.output import echo_json
from ethobench.cli.tables import Number, format_number, format_percent, print_table, print_wrapped
from ethobench.core.errors import EthobenchError, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ethobench.analysis.zones import ZoneOptions
    from ethobench.cli.output import Row
    from ethobench.core import Recording

PER = ("recording", "individual")
NAMES = ("recording", "individual", "annotator", "subject")
"""Columns of text; those that are the same in all rows are above the table."""
KEYS = {
    "n_bouts": "bouts",
    "total_s": "seconds",
    "mean_duration_s": "mean",
    "median_duration_s": "median",
    "latency_s": "latency",
}
"""Columns whose names in JSON and CSV differ from those of `ethobench.budgets`."""
FIRST = ("zone", "bin", "bin_start", "bin_stop", "behavior", "bouts", "seconds", "share", "mean", "median", "latency")
HEADERS = {
    "n_individuals": "n",
    "bouts": "bouts",
    "seconds": "total s",
    "share": "% of time",
    "share_sd": "SD",
    "rate_per_min": "bouts / min",
    "mean": "mean s",
    "median": "median s",
    "latency": "latency s",
    "inter_bout_s": "between s",
    "corrected": "corrected %",
    "interval": "95 % interval",
    "coverage": "observed %",
}
NO_GROUP = "(none)"
COMPACT = ("n_individuals", "bouts", "seconds", "share", "share_sd", "median", "latency", "coverage")
CORRECTED = ("bouts", "seconds", "share", "corrected", "interval", "coverage")
TRANSITIONS = {"n_transitions": "transitions", "probability": "%", "coverage": "observed %"}


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Annotation files, folders of them, a recordings.csv, or a dataset such as banos.", metavar="FILE"),
    ],
    confusion: Annotated[
        Path | None,
        typer.Option(help="Output of `ethobench score --json`: correct the shares by its confusion matrix.", metavar="SCORES.json"),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Frames per second of files that do not state it.", metavar="HZ")] = None,
    annotator: AnnotatorsOption = None,
    rename: RenameOption = None,
    entry: EntryOption = None,
    option: ReadOption = None,
    per: Annotated[str, typer.Option(help="One budget per recording, or per individual over all its recordings.")] = "recording",
    by: Annotated[
        str | None, typer.Option(help="Mean over the individuals of each group: columns of recordings.csv.", metavar="COLUMN,...")
    ] = None,
    bin: Annotated[
        str | None,
        typer.Option(
            help="Time bins: 5m; thirds; parts:6; clock:1h (time of day); event:BEHAVIOR:5m (since its first bout).", metavar="BINS"
        ),
    ] = None,
    zones: Annotated[bool, typer.Option("--zones", help="Separate budgets for the zones in zones.csv of the study.")] = False,
    point: Annotated[str | None, typer.Option(help="With --zones: a keypoint. Default: centroid.", metavar="KEYPOINT")] = None,
    animal: Annotated[
        str | None, typer.Option(help="With --zones: the tracked animal that bouts without a subject belong to.", metavar="NAME")
    ] = None,
    transitions: Annotated[bool, typer.Option("--transitions", help="Show which behavior follows which instead.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns. Can be wider than 80 columns.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show time budgets: bouts, seconds, share of the observed time, bout durations, latency to the first bout.

    Example: [bold]ethobench budget annotations/ --csv budget.csv[/bold]

    Of each animal: [bold]ethobench budget my_study/ --per individual[/bold]

    Of groups, in bins of five minutes: [bold]ethobench budget my_study/ --by treatment,sex --bin 5m[/bold]
    """
    from ethobench.cli.options import parse_options, parse_renames
    from ethobench.cli.output import drop_empty_rows, print_never_annotated
    from ethobench.core.files import check_new_path

    if csv is not None:
        check_new_path(csv)
    if per not in PER:
        raise typer.BadParameter(f"{per!r} is neither {' nor '.join(PER)}", param_hint="--per")
    groups = [name.strip() for name in by.split(",") if name.strip()] if by else []
    _check_combination(confusion, groups, bin, zones, transitions)
    if not zones and (point or animal):
        raise typer.BadParameter("needs --zones", param_hint="--point" if point else "--animal")
    matrices = _read_confusion(confusion) if confusion else None
    recordings = _collate(paths, rate=rate, rename=parse_renames(rename), entry=entry, annotators=annotator, options=parse_options(option))
    pooled = ["individual", *groups] if groups else ["individual"] if per == "individual" else None
    rows = (
        _transition_rows(recordings, paths, pooled)
        if transitions
        else _budget_rows(recordings, paths, pooled, groups, bin, make_zone_options(point, animal) if zones else None)
    )
    if not rows:
        raise EthobenchError(f"{', '.join(map(str, paths))}: no behavior is annotated, so there is no time budget")
    if matrices is not None:
        rows = _correct(rows, matrices)
    if csv is not None:
        from ethobench.formats.tables import write_table

        write_table(csv, list(rows[0]), [list(row.values()) for row in rows])
    if as_json:
        echo_json(rows)
        return
    names = [*groups, "annotator"] if groups else [*NAMES]
    if transitions:
        _print_transitions(rows, names, wide=wide)
        return
    occurring, never = drop_empty_rows(rows, lambda row: not row["bouts"] and not row.get("corrected"))
    if bin or zones:
        occurring = [row for row in rows if row["behavior"] not in never]
    _print(occurring or rows, names, columns=CORRECTED if matrices is not None else COMPACT, clock=bool(bin), wide=wide)
    print_never_annotated(never)


def _check_combination(confusion: Path | None, groups: Sequence[str], bin: str | None, zones: bool, transitions: bool) -> None:
    """Refuse options that would have no effect."""
    if confusion and groups:
        raise typer.BadParameter("cannot be combined with --by; use `ethobench compare` for groups", param_hint="--confusion")
    if transitions and (confusion or bin or zones or groups):
        raise typer.BadParameter("cannot be combined with --confusion, --by, --bin or --zones", param_hint="--transitions")


def make_zone_options(point: str | None, animal: str | None) -> ZoneOptions:
    """Return the options of zones from those of the command line."""
    from ethobench.analysis.zones import ZoneOptions

    return ZoneOptions(animal=animal or "") if point is None else ZoneOptions(point, animal=animal or "")


def _budget_rows(
    recordings: Sequence[Recording],
    paths: Sequence[Path],
    pooled: list[str] | None,
    groups: list[str],
    bin: str | None,
    zones: ZoneOptions | None,
) -> list[dict[str, Any]]:
    from ethobench.analysis.budgets import budgets, mean_budgets
    from ethobench.cli.output import print_note

    table = budgets(recordings, by=pooled, bin=bin, zones=None if zones is None else True, zone_options=zones)
    if bin and bin.startswith("event:"):
        n_missing = sum(bool(r.annotations) for r in recordings) - len({*table["recording"]} - {""}) if pooled is None else 0
        if n_missing:
            print_note(f"{n_missing} recordings have no bout of the event, so they have no budget")
    if zones:
        _note_empty_zones(table)
    if groups:
        _note_empty_groups(recordings, table, groups)
    table = mean_budgets(table, groups) if groups else _name_individuals(table, recordings, paths, per_individual=pooled is not None)
    table = table.rename(columns=KEYS)
    unused = [*([] if zones else ["zone"]), *([] if bin else ["bin", "bin_start", "bin_stop"])]
    first = [name for name in [*groups, *NAMES, *FIRST] if name in table]
    columns = [name for name in dict.fromkeys([*first, *table.columns]) if name not in unused]
    return records(table[columns])


def _note_empty_zones(table: pd.DataFrame) -> None:
    """Print a note about zones in which no animal ever is."""
    from ethobench.cli.output import print_note

    seconds = table.groupby("zone", sort=False)["observed_s"].sum()
    if empty := [str(name) for name in seconds.index[seconds == 0]]:
        print_note(f"no animal is ever in zone {', '.join(empty)}; if that is unexpected, check its coordinates and their unit")


def _note_empty_groups(recordings: Sequence[Recording], table: pd.DataFrame, groups: Sequence[str]) -> None:
    """Print a note about recordings without a group, and name their group in the table."""
    from ethobench.cli.output import print_note

    for name in groups:
        if (table[name] == "").any():
            without = [r.id for r in recordings if r.annotations and r.metadata.get(name, "") in ("", None)]
            print_note(f"{len(without)} recordings have no {name!r}{f', such as {without[0]!r}' if without else ''}; group: {NO_GROUP}")
            table[name] = table[name].replace("", NO_GROUP)


def _transition_rows(recordings: Sequence[Recording], paths: Sequence[Path], pooled: list[str] | None) -> list[dict[str, Any]]:
    from ethobench.analysis.transitions import transitions

    table = transitions(recordings, by=pooled)
    return records(_name_individuals(table, recordings, paths, per_individual=pooled is not None))


def _name_individuals(table: pd.DataFrame, recordings: Sequence[Recording], paths: Sequence[Path], *, per_individual: bool) -> pd.DataFrame:
    """Clear individuals that files do not name, and recordings where individuals are pooled."""
    from ethobench.cli.output import print_note
    from ethobench.datasets.loose_files import is_dataset

    in_study = any(is_dataset(path) for path in paths)
    named = {r.individual for r in recordings if in_study or r.individual != r.id}
    is_named = table["individual"].isin(named)
    if per_individual:
        table.loc[is_named, "recording"] = ""
        if not is_named.all():
            print_note("some files do not name the individual; their budgets are per recording")
    table.loc[~is_named, "individual"] = ""
    return table


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, with None for undefined values."""
    rows = table.to_dict("records")
    return [{str(name): None if value != value else value for name, value in row.items()} for row in rows]  # noqa: PLR0124


def _correct(rows: list[dict[str, Any]], matrices: tuple[list[str], Any]) -> list[dict[str, Any]]:
    from ethobench.metrics.budgets import correct_time_budget

    names = ("recording", "individual", "annotator", "zone", "bin")
    units: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        units.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return [corrected for unit in units.values() for corrected in correct_time_budget(unit, *matrices)]


def _print(rows: Sequence[Row], names: Sequence[str], *, columns: Sequence[str], clock: bool, wide: bool) -> None:
    """Print time budgets. Names that are the same in all rows are above the table."""
    names = [*names, *(["zone"] if "zone" in rows[0] else [])]
    constant = [name for name in names if len({row[name] for row in rows}) == 1]
    varying = [name for name in names if name not in constant]
    is_complete = all(row["coverage"] == 1 for row in rows)
    columns = [c for c in (HEADERS if wide else columns) if (c in rows[0] or (c == "interval" and "low" in rows[0]))]
    columns = [c for c in columns if c != "coverage" or not is_complete]
    title = ", ".join(f"{name} {rows[0][name]}" for name in constant if rows[0][name] not in ("", None, name))
    headers = [*varying, *(["time"] if clock else []), "behavior", *(HEADERS[name] for name in columns)]
    cells = [
        [
            *(row[name] or "" for name in varying),
            *([time_text(row)] if clock else []),
            row["behavior"],
            *(_cell(name, row) for name in columns),
        ]
        for row in rows
    ]
    print_table(headers, cells, title=title, wide=wide, n_groups=len(varying) + clock)
    latency = "; latency: to the first bout" if "latency" in columns else ""
    means = "; means over n individuals, SD of their % of time" if "n_individuals" in columns else ""
    observed = "; 100 % of the time is observed" if is_complete else ""
    print_wrapped([f"s: seconds; % of time: of the observed time{latency}{means}{observed}"])


def _print_transitions(rows: Sequence[Row], names: Sequence[str], *, wide: bool) -> None:
    occurring = [row for row in rows if row["n_transitions"]]
    varying = [name for name in names if len({row[name] for row in rows}) > 1]
    title = ", ".join(f"{name} {rows[0][name]}" for name in names if name not in varying and rows[0][name] not in ("", None, name))
    cells = [
        [
            *(row[name] or "" for name in varying),
            row["behavior"],
            row["next_behavior"],
            Number(f"{row['n_transitions']:,}"),
            format_percent(row["probability"]),
            format_percent(row["coverage"]),
        ]
        for row in occurring
    ]
    print_table([*varying, "behavior", "followed by", *TRANSITIONS.values()], cells, title=title, wide=wide, n_groups=len(varying))
    print_wrapped(["%: of the transitions from a behavior; transitions across unobserved frames are not counted"])


def time_text(row: Row) -> str:
    """Return the edges of a time bin as hours, minutes and seconds.

    >>> time_text({"bin_start": 300.0, "bin_stop": 600.0})
    '0:05:00-0:10:00'
    >>> time_text({"bin_start": -5.0, "bin_stop": 0.0})
    '-0:00:05 to 0:00:00'
    """
    texts = []
    for seconds in (row["bin_start"], row["bin_stop"]):
        minutes, rest = divmod(abs(seconds), 60)
        text = f"{rest:05.2f}".removesuffix(".00")
        texts.append(f"{'-' if seconds < 0 else ''}{int(minutes // 60)}:{int(minutes % 60):02d}:{text}")
    return " to ".join(texts) if row["bin_start"] < 0 else "-".join(texts)


def _collate(paths: list[Path], **options: Any) -> Sequence[Recording]:
    """Read the recordings of files, folders and studies; print notes of the readers, and labels that may mean the same behavior."""
    from ethobench.cli.output import print_notes
    from ethobench.datasets.collate import collate_files
    from ethobench.metrics.label_mismatches import find_label_mismatches, similar_label_notes

    collation = collate_files(paths, same_recording=False, annotations_only=True, **options)
    print_notes(note for recording in collation.recordings for note in recording.notes)
    print_notes(collation.notes)
    mismatches = [m for m in find_label_mismatches({r.id: r.annotations for r in collation.recordings}) if m.counterpart]
    similar = similar_label_notes(a for r in collation.recordings for a in r.annotations.values())
    print_notes([Note(str(m)) for m in mismatches] or similar)
    return collation.recordings


def _read_confusion(path: Path) -> tuple[list[str], Any]:
    """Return the labels and the confusion matrices by individual from the output of `ethobench score --json`."""
    import numpy as np

    from ethobench.cli.output import print_note
    from ethobench.core.errors import FormatError
    from ethobench.core.files import read_json
    from ethobench.metrics.bootstrap import too_few

    content = read_json(path)
    confusion = content.get("confusion") if isinstance(content, dict) else None
    if not isinstance(confusion, dict):
        raise FormatError(path, "no confusion matrix; write one with `ethobench score PRED TRUTH --json`")
    try:
        labels, matrices = list(confusion["labels"]), np.array(list(confusion["individuals"].values()), dtype=float)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(path, "the confusion matrix is damaged") from None
    if reason := too_few(len(matrices)):
        print_note(f"{path}: n = {len(matrices)} individuals; {reason}")
    return labels, matrices


def _cell(column: str, row: Row) -> Number:
    if column in ("bouts", "n_individuals"):
        return Number(f"{row[column]:,}" if isinstance(row[column], int) else f"{row[column]:,.1f}")
    if column == "interval":
        low, high = row["low"], row["high"]
        return Number("-" if low is None else f"{format_percent(low)} to {format_percent(high)}")
    if column in ("share", "share_sd", "corrected", "coverage"):
        return format_percent(row[column])
    return format_number(row[column], 1 if column == "seconds" else 2)
