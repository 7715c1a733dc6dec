"""`ethobench pretrain`: learn from recordings that nobody has annotated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    dataset: Annotated[str, typer.Argument(help="A dataset's name, a folder, or a recordings.csv; labels are not looked at.")],
    out: Annotated[Path, typer.Option(help="Folder for what was learnt.")],
    config: Annotated[str, typer.Option(help="Size of the encoder: small, or harnet5, harnet10, harnet30.")] = "small",
    epochs: Annotated[int, typer.Option(help="At most; it stops when held-out individuals gain nothing.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Learn an encoder of acceleration by telling tampered windows from true ones; individuals are held out to know when to stop.

    Example: [bold]ethobench pretrain my_tags/ --out models/encoder[/bold]
    """
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.learning.pretrain import pretrain

    if out.exists():
        raise EthobenchError(f"{out} exists and is left alone; choose another name")
    pretrain(load_dataset(dataset), out, config=config, epochs=epochs, seed=seed, progress=_Teller())
    typer.echo(f"{out}: use it with: ethobench train DATASET --model harnet --init {out} --out MODEL_DIR")


class _Teller:
    """Tells the loss once an epoch."""

    def __init__(self) -> None:
        self.epoch = -1

    def __call__(self, progress: object) -> None:
        epoch, loss = getattr(progress, "epoch", 0), getattr(progress, "loss", float("nan"))
        if epoch != self.epoch:
            self.epoch = epoch
            typer.echo(f"epoch {epoch}: loss {loss:.4f}", err=True)
