"""`ethobench published`: published scores of benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ethobench.cli.output import echo, echo_json
from ethobench.cli.tables import Number, format_score, print_table

SHOWN = ("dataset", "model", "setting", "metric")


def run(
    benchmark: Annotated[str | None, typer.Argument(help="bebe, calms21, ...; all benchmarks by default.", metavar="BENCHMARK")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only: a list of rows.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.", metavar="FILE")] = None,
) -> None:
    """Show published scores with their sources. `ethobench results` shows them beside your own.

    Example: [bold]ethobench published calms21[/bold]
    """
    from ethobench.benchmarks.published import published
    from ethobench.core.files import check_new_path
    from ethobench.formats.tables import write_table

    if csv is not None:
        check_new_path(csv)
    scores = published(benchmark)
    rows: list[dict[str, Any]] = [{str(k): None if v != v else v for k, v in row.items()} for row in scores.to_dict("records")]  # noqa: PLR0124 (NaN)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
        write_table(csv, list(scores.columns), [["" if v is None else v for v in row.values()] for row in rows])
    if as_json:
        echo_json(rows, ensure_ascii=True)
        return
    if not rows:
        echo(f"no scores are published as numbers for {benchmark}")
        return
    for source in dict.fromkeys(row["source"] for row in rows):
        of_source = [row for row in rows if row["source"] == source]
        columns = [name for name in SHOWN if any(row[name] for row in of_source)]
        cells = [[*(row[name] for name in columns), _score(row["value"], row["std"])] for row in of_source]
        print_table([*columns, "score"], cells, title=source)


def _score(value: float, std: float | None) -> Number:
    score = format_score(value, 3)
    return score if std is None else Number(f"{score} ± {format_score(std, 3)}")
