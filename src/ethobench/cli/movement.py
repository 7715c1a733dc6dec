"""`ethobench movement`: distance, speed, immobility and the use of zones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo_json
from ethobench.cli.tables import Number, format_number, format_percent, print_table, print_wrapped

if TYPE_CHECKING:
    import pandas as pd

MOVEMENT = {
    "distance": "distance",
    "mean_speed": "mean speed",
    "max_speed": "max speed",
    "immobile_share": "immobile %",
    "nearest_animal": "nearest animal",
    "coverage": "tracked %",
}
ZONES = {
    "n_entries": "entries",
    "n_exits": "exits",
    "time_s": "time s",
    "share": "% of time",
    "latency_s": "latency s",
    "distance": "distance",
    "mean_speed": "mean speed",
    "coverage": "tracked %",
}
NAMES = ("recording", "individual", "subject", "zone")


def run(
    source: Annotated[str, typer.Argument(help="A study with poses, or a dataset such as synthetic/labs.", metavar="STUDY")],
    zones: Annotated[bool, typer.Option("--zones", help="Show entries, time and distance in the zones of zones.csv instead.")] = False,
    by: Annotated[
        str | None, typer.Option(help="Pool recordings by columns of recordings.csv, such as individual.", metavar="COLUMN,...")
    ] = None,
    bin: Annotated[str | None, typer.Option(help="Time bins, such as 5m, thirds or clock:1h.", metavar="BINS")] = None,
    point: Annotated[str, typer.Option(help="A keypoint, or centroid.", metavar="KEYPOINT")] = "centroid",
    immobile_speed: Annotated[
        float | None,
        typer.Option(help="Speed below which an animal is immobile. Default: 2 cm/s where the scale is known.", metavar="SPEED"),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="An animal has left a zone when it is this far outside, in the unit of the zone. Default: 2.5 % of its size.",
            metavar="LENGTH",
        ),
    ] = None,
    min_dwell: Annotated[
        float | None, typer.Option(help="Shortest visit of a zone, and shortest absence, in seconds. Default: 0.25.", metavar="SECONDS")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Show distance, speed, immobility and distances between animals; with --zones, how animals use zones.

    Example: [bold]ethobench movement my_study/ --bin 5m --csv movement.csv[/bold]

    Entries and time in zones: [bold]ethobench movement my_study/ --zones --point nose[/bold]
    """
    from ethobench.analysis.movement import movement
    from ethobench.analysis.zones import MIN_DWELL, ZoneOptions, zone_occupancy
    from ethobench.cli.budget import records
    from ethobench.core.files import check_new_path
    from ethobench.datasets import load_dataset
    from ethobench.formats.tables import write_table

    if csv is not None:
        check_new_path(csv)
    if zones and immobile_speed is not None:
        raise typer.BadParameter("has no effect with --zones", param_hint="--immobile-speed")
    if not zones and (margin is not None or min_dwell is not None):
        raise typer.BadParameter("needs --zones", param_hint="--margin" if margin is not None else "--min-dwell")
    data = load_dataset(source)
    pooled = [name.strip() for name in by.split(",") if name.strip()] if by else None
    if zones:
        options = ZoneOptions(point, margin, MIN_DWELL if min_dwell is None else min_dwell)
        table = zone_occupancy(data, by=pooled, bin=bin, options=options)
    else:
        table = movement(data, by=pooled, bin=bin, point=point, immobile_speed=immobile_speed)
    rows = records(table)
    if csv is not None:
        write_table(csv, list(table.columns), [list(row.values()) for row in rows])
    if as_json:
        echo_json(rows)
        return
    _print(table, rows, ZONES if zones else MOVEMENT, pooled or [])


def _print(table: pd.DataFrame, rows: list[dict[str, Any]], headers: dict[str, str], pooled: list[str]) -> None:
    from ethobench.cli.budget import time_text

    shown = [name for name in dict.fromkeys([*pooled, *NAMES]) if name in table and len({*table[name]}) > 1]
    is_binned = bool(table["bin"].notna().any())
    columns = [name for name in headers if table[name].notna().any()]
    if len({*table["unit"]}) > 1:
        shown.append("unit")
    cells = [
        [*(row[name] for name in shown), *([time_text(row)] if is_binned else []), *(_cell(name, row[name]) for name in columns)]
        for row in rows
    ]
    names = [*shown, *(["time"] if is_binned else []), *(headers[name] for name in columns)]
    print_table(names, cells, n_groups=max(len(shown) + is_binned - 1, 0))
    units = ", ".join(dict.fromkeys(table["unit"]))
    scale = "" if units == "cm" else "; for cm, add the column pixels_per_cm to recordings.csv"
    speed = f"; speeds are in {units}/s" if "mean_speed" in columns else ""
    print_wrapped([f"distances are in {units}{speed}{scale}"])


def _cell(name: str, value: Any) -> Number:
    if name in ("n_entries", "n_exits"):
        return Number(f"{value:,}")
    return format_percent(value) if name in ("share", "immobile_share", "coverage") else format_number(value, 1)
