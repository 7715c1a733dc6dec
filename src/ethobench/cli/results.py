"""`ethobench results`: the figures of a run in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli._output import echo, echo_json, make_console

if TYPE_CHECKING:
    from ethobench.benchmarks.results import Row
    from ethobench.runs import Store

TABLES = (
    "results", "comparison", "behaviors", "settings", "claims", "rodentbench", "calms21", "difficulty", "styles", "curve", "few-shot"
)  # fmt: skip


def run(
    store: Annotated[Path, typer.Argument(help="The store of a run.", metavar="STORE")],
    table: Annotated[str, typer.Option(help=f"Which table: {', '.join(TABLES)}.")] = "results",
    against: Annotated[str, typer.Option(help="For the comparison: with which model; with the best unless told.")] = "",
    metrics: Annotated[str | None, typer.Option(help="Show these measures, separated by commas; 'all' for every one.")] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Also tell jobs, seconds and hosts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only: a list of rows.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs) of the headline measures.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
    sql: Annotated[
        str | None, typer.Option(help="Ask the table 'results' (and 'jobs') in SQL, by DuckDB.", metavar="QUERY", show_default=False)
    ] = None,
) -> None:
    """Show the figures of the final jobs: the suite's own figure, and its standard deviation over individuals.

    Other tables: [bold]comparison[/bold], whether one model is better than another, with intervals over individuals;
    [bold]behaviors[/bold], each on its own; [bold]settings[/bold], each behavior with little and with all data;
    [bold]claims[/bold], what papers say beside what this store shows; [bold]rodentbench[/bold], with failures, repairs and people;
    [bold]calms21[/bold], over seeds, annotators and behaviors; [bold]difficulty[/bold], its new behaviors by frequency and length;
    [bold]styles[/bold], where its annotators differ;
    [bold]curve[/bold], whether more labels would help; [bold]few-shot[/bold], new behaviors from few recordings.

    For example:

    [bold]ethobench results runs/first[/bold]

    [bold]ethobench results runs/first --table comparison --against rf[/bold]

    [bold]ethobench results runs/first --sql "select model, max(mean) from results where metric = 'f1' group by model"[/bold]
    """
    from ethobench.benchmarks.results import COLUMNS, TIMINGS, results_table
    from ethobench.cli._options import open_store
    from ethobench.cli._output import print_note
    from ethobench.core.errors import NotFoundError
    from ethobench.metrics.suites import suites

    if table not in TABLES:
        raise typer.BadParameter(f"{table!r} is none of {', '.join(TABLES)}", param_hint="--table")
    place = open_store(store)
    wanted = [name.strip() for name in metrics.split(",")] if metrics else []
    rows = results_table(place, timings=timings) if table == "results" else _other_table(place, table, wanted, against)
    if not rows and table != "results":
        for message in place.describe_damage():
            print_note(message)
        raise NotFoundError(f"{store} holds nothing for the table {table!r}; without --table, it shows all that there is")
    columns = (*COLUMNS, *(TIMINGS if timings else ())) if table == "results" else tuple(dict.fromkeys(c for row in rows for c in row))
    if sql is not None:
        from ethobench.benchmarks.query import ask

        names, answers = ask(place, rows, sql)
        columns = tuple(names)
        rows = [dict(zip(columns, answer, strict=True)) for answer in answers]
    for message in place.describe_damage():
        print_note(message)
    if csv is not None:
        _write(csv, columns, rows)
    if as_json:
        echo_json(rows, ensure_ascii=True, default=str)
        return
    if sql is not None:
        print_table(columns, [list(row.values()) for row in rows])
        return
    if table in ("rodentbench", "calms21"):
        from ethobench.benchmarks import calms21_summary, rodentbench_summary

        print_table(*(rodentbench_summary if table == "rodentbench" else calms21_summary).laid_out(rows))
        return
    if table in ("behaviors", "curve"):
        print_behaviors(place, columns, rows)
        return
    if table != "results":
        shown_columns = [c for c in columns if table != "comparison" or c != "reason"]
        print_table(shown_columns, [[row.get(c) for c in shown_columns] for row in rows])
        if table == "comparison":
            for n, reason in sorted({(row["n"], row["reason"]) for row in rows if row["reason"]}):
                echo(f"n = {n}: {reason}")
        if table == "settings":
            from ethobench.benchmarks.behaviors import summarize_comparison

            summary = summarize_comparison(rows)
            print_table(list(summary[0]), [list(row.values()) for row in summary])
        return
    shown = [r for r in rows if metrics == "all" or r["metric"] in (wanted or suites[r["suite"]].headline)]
    if latex:
        echo(_latex(shown))
        return
    told = [c for c in columns if c != "over" and any(row[c] is not None for row in shown)]
    print_table(told, [[row[c] for c in told] for row in shown])


def print_behaviors(store: Store, columns: Sequence[str], rows: Sequence[Row], only: Collection[str] | None = None) -> None:
    """Print a table of behaviors; those that never occur in a dataset, and have no value, share one line below it."""
    from ethobench.benchmarks.behaviors import occurrences
    from ethobench.cli._output import print_lines

    found = occurrences(store, only)
    never = {(dataset, name) for dataset, occurrence in found.items() for name in occurrence.never_annotated}

    def empty(row: Row) -> bool:
        return (row["dataset"], row["behavior"]) in never and not any(isinstance(value, float) for value in row.values())

    print_table(columns, [[row.get(c) for c in columns] for row in rows if not empty(row)])
    datasets = {row["dataset"] for row in rows}
    for dataset, occurrence in found.items():
        if dataset in datasets:
            print_lines(f"{dataset}: {line}" if len(datasets) > 1 else line for line in occurrence.lines())


def _other_table(store: Store, table: str, metrics: Sequence[str], against: str) -> list[Row]:
    """Make one of the tables besides the results."""
    from ethobench.benchmarks import (
        behaviors,
        calms21_summary,
        claims,
        comparison,
        few_shot,
        learning_curve,
        rodentbench_summary,
        styles,
    )

    tables: dict[str, Callable[[], list[Row]]] = {
        "comparison": lambda: comparison.comparison_table(store, against, metrics),
        "behaviors": lambda: behaviors.behaviors_table(store, metrics),
        "settings": lambda: behaviors.compare_settings(store, metric=metrics[0] if metrics else "f1"),
        "claims": lambda: claims.claims_table(store),
        "rodentbench": lambda: rodentbench_summary.summary(store),
        "calms21": lambda: calms21_summary.summary(store),
        "difficulty": lambda: calms21_summary.difficulty(store),
        "styles": lambda: styles.styles_table(store),
        "curve": lambda: learning_curve.curve_table(store),
        "few-shot": lambda: few_shot.curves_table(store, metrics),
    }
    return tables[table]()


def _write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    from ethobench.core.files import check_new_path
    from ethobench.formats.tables import write_table

    check_new_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, columns, [["" if row.get(c) is None else row[c] for c in columns] for row in rows])


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table to the terminal, or as wide as it needs to be."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(*names, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("-" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    make_console(plain_width=180).print(table)


def _latex(rows: Sequence[Row]) -> str:
    """Lay figures out for a paper: one line per dataset, model and setting, one column per measure."""
    measures = list(dict.fromkeys((row["suite"], row["metric"]) for row in rows))
    lines: dict[tuple[str, str, str], dict[tuple[str, str], str]] = {}
    for row in rows:
        mean, std, theirs = ("--" if row[c] is None else f"{row[c]:.3f}" for c in ("mean", "std", "published"))
        cell = f"${mean} \\pm {std}$" if row["std"] is not None else mean
        cell += f" ({theirs})" if row["published"] is not None else ""
        lines.setdefault((row["dataset"], row["model"], row["setting"]), {})[row["suite"], row["metric"]] = cell
    head = ["dataset", "model", "setting", *(metric for _, metric in measures)]
    body = [[*(_escaped(n) for n in name), *(cells.get(m, "--") for m in measures)] for name, cells in lines.items()]
    table = [r"\begin{tabular}{lll" + "r" * len(measures) + "}", r"\toprule", " & ".join(_escaped(h) for h in head) + r" \\", r"\midrule"]
    return "\n".join([*table, *(" & ".join(line) + r" \\" for line in body), r"\bottomrule", r"\end{tabular}"])


def _escaped(text: str) -> str:
    """Take from LaTeX's own characters their meaning."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
