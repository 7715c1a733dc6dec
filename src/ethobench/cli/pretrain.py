"""`ethobench pretrain`: learn from recordings that nobody has annotated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli._output import echo


def run(
    dataset: Annotated[str, typer.Argument(help="A dataset's name, a folder, or a recordings.csv; labels are not looked at.")],
    out: Annotated[Path, typer.Option(help="Folder for what was learnt.")],
    config: Annotated[str, typer.Option(help="Tags: size of the encoder: small, or harnet5, harnet10, harnet30.")] = "small",
    tasks: Annotated[
        str, typer.Option(help="Poses: some of masked (tell what was hidden), arrow (which way time runs), attributes (programmed ones).")
    ] = "masked,attributes",
    epochs: Annotated[int, typer.Option(help="At most; it stops when held-out individuals gain nothing.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Learn from recordings that nobody has annotated, tags or poses, for models to begin with.

    Tags: an encoder of acceleration learns to tell tampered windows from true ones. Poses: the convolutions of conv1d learn to tell
    what was hidden. Individuals are held out to know when to stop.

    Example: [bold]ethobench pretrain my_tags/ --out models/encoder[/bold]
    """
    from ethobench.core import Poses
    from ethobench.core.files import check_new_path
    from ethobench.datasets import load_dataset
    from ethobench.models.pretraining import pretrain, pretrain_poses

    check_new_path(out)
    data, model = load_dataset(dataset), "harnet"
    if any(isinstance(recording.signals, Poses) for recording in data.recordings[:1]):
        model = "conv1d"
        pretrain_poses(data, out, tasks=[t.strip() for t in tasks.split(",")], epochs=epochs, seed=seed, progress=_Teller())
    else:
        pretrain(data, out, config=config, epochs=epochs, seed=seed, progress=_Teller())
    echo(f"{out}: use it with: ethobench train DATASET --model {model} --init {out} --out MODEL_DIR")


class _Teller:
    """Tells the loss once an epoch."""

    def __init__(self) -> None:
        self.epoch = -1

    def __call__(self, progress: object) -> None:
        epoch, loss = getattr(progress, "epoch", 0), getattr(progress, "loss", float("nan"))
        if epoch != self.epoch:
            self.epoch = epoch
            echo(f"epoch {epoch}: loss {loss:.4f}", err=True)
