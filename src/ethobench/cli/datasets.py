"""`ethobench datasets`: list, show and fetch named datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ethobench.cli.output import echo, echo_json, secho

if TYPE_CHECKING:
    from ethobench.core import Dataset

app = typer.Typer(help="List, show and fetch datasets.", no_args_is_help=True)


@app.command("list")
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
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        echo(f"{row['name']:{width}}  {'here ' if row['here'] else 'fetch'}  {row['title']}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A dataset's name, a folder, or a recordings.csv.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show a dataset: recordings, individuals, annotators, and how much of the time each behavior takes.

    Example: [bold]ethobench datasets show bebe/HAR[/bold]
    """
    from ethobench.cli.output import print_never_annotated
    from ethobench.datasets import load_dataset

    facts = summarize(load_dataset(name))
    if as_json:
        echo_json(facts, ensure_ascii=True)
        return
    secho(facts["name"], bold=True)
    for key in ("source", "licence", "citation"):
        if facts[key]:
            echo(f"  {key}: {facts[key]}")
    echo(f"  {facts['recordings']} recordings of {facts['individuals']} individuals, {facts['frames']:,} frames, {facts['hours']:.2f} h")
    echo(f"  folds: {facts['folds'] or 'none'}; splits: {facts['splits'] or 'none'}; version {facts['version']}")
    for annotator, share in facts["shares"].items():
        echo(f"  {annotator}: {facts['observed'][annotator]:.1%} of the time observed; of that")
        for behavior, part in share.items():
            if behavior not in facts["never_annotated"]:
                echo(f"    {behavior:24} {part:7.2%}")
    print_never_annotated(facts["never_annotated"])


@app.command()
def fetch(names: Annotated[list[str], typer.Argument(help="Names of datasets.", metavar="NAME...")]) -> None:
    """Download datasets into $ETHOBENCH_DATA; what is there is not fetched again.

    Example: [bold]ethobench datasets fetch bebe/HAR calms21/task1[/bold]
    """
    from ethobench.datasets import split_name

    for name in names:
        family, variant = split_name(name)
        if family.is_here(variant):
            echo(f"{name}: already here ({family.folder(variant) or 'made on the spot'})")
            continue
        family.fetch(variant)
        echo(f"{name}: fetched into {family.folder(variant)}")


def summarize(data: Dataset) -> dict[str, Any]:
    """Collect the figures of a dataset."""
    from ethobench.core import intervals as iv
    from ethobench.core.occurrence import Occurrence

    seconds: dict[str, dict[str, float]] = {}
    seen: dict[str, float] = {}
    length: dict[str, float] = {}
    for recording in data:
        for annotator, a in recording.annotations.items():
            seen[annotator] = seen.get(annotator, 0) + iv.total(a.observed.of_any()) / a.rate
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
        "observed": {name: seen[name] / length[name] if length[name] else 0.0 for name in seen},
        "shares": {name: {b: t / seen[name] if seen[name] else 0.0 for b, t in times.items()} for name, times in seconds.items()},
    }
