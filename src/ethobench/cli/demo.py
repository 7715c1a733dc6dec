"""`ethobench demo`: the whole way on data made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    out: Annotated[Path, typer.Option(help="Folder for what the demo writes.")] = Path("ethobench-demo"),
    seed: Annotated[int, typer.Option(help="Another seed makes other animals.")] = 0,
) -> None:
    """Make recordings of two mice, let two simulated people score them, and show how well they agree.

    Example: [bold]ethobench demo[/bold]
    """
    from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
    from ethobench.formats import write_recordings
    from ethobench.metrics import agreement, score

    data = make_dataset("pose", individuals=8, seconds=300, seed=seed, annotators=ANNOTATORS)
    first, second = (a.name for a in ANNOTATORS)
    typer.echo(f"{data.name}: {len(data)} recordings of {len(data.individuals)} pairs of mice, {data.n_frames:,} frames at 30 Hz")
    together = agreement(data)
    scores = score({r.id: r.annotations[second] for r in data}, data, annotator=first)
    typer.echo(f"\nHow well do {first} and {second} agree? (95 % intervals over individuals)")
    typer.echo(f"  {'':14}  kappa  frame F1              bout F1               starts late by")
    for behavior, figures in scores.behaviors.items():
        between = scores.intervals["behaviors"][behavior]
        cells = [f"{figures[m]:.3f} ({between[m][0]:.3f}-{between[m][1]:.3f})" for m in ("f1", "bout_f1")]
        kappa = together.kappa(first, second, behavior)
        typer.echo(f"  {behavior:14}  {kappa:.3f}  {cells[0]}  {cells[1]}  {figures['onset_error']:6.3f} s")
    typer.echo(f"  all together: kappa {together.kappa(first, second):.3f}, bout F1 {scores.overall['bout_f1']:.3f} (background left out)")

    for name in (first, second):
        path = out / f"{name}.csv"
        write_recordings([r.copy(annotations={name: r.annotations[name]}) for r in data], path, "tidy", overwrite=True)
    typer.echo(f"\nAnnotations: {out / f'{first}.csv'} and {out / f'{second}.csv'}")
    typer.echo("Next:")
    typer.echo(f"  ethobench inspect {out / f'{first}.csv'}")
    typer.echo(f"  ethobench score {out / f'{second}.csv'} {out / f'{first}.csv'}")
    typer.echo(f"  ethobench convert {out / f'{first}.csv'} {out / 'bento'} --to bento")
