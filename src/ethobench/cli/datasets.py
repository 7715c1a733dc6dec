"""`ethobench datasets`: list, show and download datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import VisibleCommand, VisibleGroup, echo, echo_json, secho
from ethobench.cli.tables import format_percent, print_table, print_wrapped

if TYPE_CHECKING:
    from ethobench.core import Dataset

app = typer.Typer(cls=VisibleGroup, help="List, show and download datasets.", no_args_is_help=True)


@app.command("list", cls=VisibleCommand)
def list_names(as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False) -> None:
    """List the named datasets, and which of them are on this machine.

    Example: [bold]ethobench datasets list[/bold]
    """
    from ethobench.datasets import families

    rows = [
        {"name": name, "here": family.is_here(name.partition("/")[2]), "title": family.title}
        for family in families
        for name in family.names()
    ]
    if as_json:
        echo_json(rows, ensure_ascii=True)
        return
    print_table(["name", "", "content"], [[row["name"], "here" if row["here"] else "fetch", row["title"]] for row in rows])


@app.command(cls=VisibleCommand)
def show(
    name: Annotated[str, typer.Argument(help="Name of a dataset, folder, or recordings.csv.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show recordings, individuals and annotators of a dataset, and the share of time of each behavior.

    Example: [bold]ethobench datasets show bebe/HAR[/bold]
    """
    from ethobench.cli.output import print_never_annotated
    from ethobench.datasets import load_dataset

    summary = summarize(load_dataset(name))
    if as_json:
        echo_json(summary, ensure_ascii=True)
        return
    secho(summary["name"], bold=True)
    for key in ("source", "licence", "citation"):
        if summary[key]:
            print_wrapped([f"{key}: {summary[key]}"])
    counts = f"{summary['recordings']} recordings of {summary['individuals']} individuals"
    print_wrapped([f"{counts}, {summary['frames']:,} frames, {summary['hours']:.2f} h"])
    print_wrapped([f"folds: {summary['folds'] or 'none'}; splits: {summary['splits'] or 'none'}; version {summary['version']}"])
    names = [name for name in summary["behaviors"] if name not in summary["never_annotated"]]
    echo()
    for annotator, shares in summary["shares"].items():
        title = f"{annotator}: {summary['observed'][annotator]:.1%} of the time observed"
        print_table(["behavior", "% of the observed time"], [[name, format_percent(shares.get(name))] for name in names], title=title)
    print_never_annotated(summary["never_annotated"])


@app.command(cls=VisibleCommand)
def fetch(names: Annotated[list[str], typer.Argument(help="Names of datasets; see: ethobench datasets list", metavar="NAME")]) -> None:
    """Download datasets into $ETHOBENCH_DATA, unless they are on this machine.

    Example: [bold]ethobench datasets fetch bebe/HAR calms21/task1[/bold]
    """
    from ethobench.datasets import split_name

    for name in names:
        family, variant = split_name(name)
        if family.is_here(variant):
            echo(f"{name}: already on this machine ({family.folder(variant) or 'simulated'})")
            continue
        family.fetch(variant)
        echo(f"{name}: downloaded into {family.folder(variant)}")


def summarize(data: Dataset) -> dict[str, Any]:
    """Count recordings, individuals and frames of a dataset, and compute the share of time of each behavior."""
    from ethobench.core import intervals as iv
    from ethobench.core.occurrence import Occurrence

    seconds: dict[str, dict[str, float]] = {}
    observed: dict[str, float] = {}
    length: dict[str, float] = {}
    for recording in data:
        for annotator, a in recording.annotations.items():
            observed[annotator] = observed.get(annotator, 0) + iv.total(a.observed.of_any()) / a.rate
            length[annotator] = length.get(annotator, 0) + a.duration
            times = seconds.setdefault(annotator, dict.fromkeys(data.ethogram.names, 0.0))
            for code, behavior in enumerate(a.ethogram):
                times[behavior.name] = times.get(behavior.name, 0) + iv.total(iv.union(a.spans(code))) / a.rate
    return {
        "name": data.name,
        "source": data.source,
        "licence": data.licence,
        "citation": data.citation,
        "version": data.version,
        "recordings": len(data),
        "individuals": len(data.individuals),
        "frames": data.n_frames,
        "hours": sum((r.n_frames or 0) / (r.rate or 1) for r in data) / 3600,
        "behaviors": list(data.ethogram.names),
        "never_annotated": list(Occurrence.count(data.ethogram, (a for r in data for a in r.annotations.values())).never_annotated),
        "folds": len(set(data.folds.values())),
        "splits": ", ".join(dict.fromkeys(data.splits.values())),
        "observed": {name: observed[name] / length[name] if length[name] else 0.0 for name in observed},
        "shares": {name: {b: t / observed[name] if observed[name] else 0.0 for b, t in times.items()} for name, times in seconds.items()},
    }
