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
    import numpy as np
    from sklearn.metrics import cohen_kappa_score

    from ethobench.datasets.synthetic import ANNOTATORS, make_dataset
    from ethobench.formats import write_recordings

    data = make_dataset("pose", individuals=8, seconds=300, seed=seed, annotators=ANNOTATORS)
    first, second = (a.name for a in ANNOTATORS)
    typer.echo(f"{data.name}: {len(data)} recordings of {len(data.individuals)} pairs of mice, {data.n_frames:,} frames at 30 Hz")
    codes = [np.concatenate([r.annotations[name].to_codes() for r in data]) for name in (first, second)]
    typer.echo(f"\nHow well do {first} and {second} agree?")
    typer.echo(f"  frames with the same behaviour {np.mean(codes[0] == codes[1]):7.1%}")
    typer.echo(f"  Cohen's kappa                  {cohen_kappa_score(*codes):7.3f}")
    for code, behavior in enumerate(data.ethogram):
        kappa = cohen_kappa_score(codes[0] == code, codes[1] == code)
        bouts = [sum(len(r.annotations[name].spans(code).start) for r in data) for name in (first, second)]
        typer.echo(f"  {behavior.name:16} kappa {kappa:5.3f}   bouts {bouts[0]:4} and {bouts[1]:4}")

    path = out / "annotations.csv"
    write_recordings(list(data), path, "tidy", overwrite=True)
    typer.echo(f"\nAll annotations: {path}")
    typer.echo("Next:")
    typer.echo(f"  ethobench inspect {path}")
    typer.echo(f"  ethobench convert {path} {out / 'bento'} --to bento")
    typer.echo("  ethobench datasets list")
