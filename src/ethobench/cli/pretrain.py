"""`ethobench pretrain`: pre-train a network on recordings without annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethobench.cli.output import echo

CONFIG, TASKS = "small", "masked,attributes"


def run(
    dataset: Annotated[str, typer.Argument(help="Name of a dataset, a folder, or a recordings.csv; annotations are not used.")],
    out: Annotated[Path, typer.Option(help="Folder for the pre-trained weights.")],
    config: Annotated[
        str | None, typer.Option(help="Size of the encoder, for tags: small, harnet5, harnet10 or harnet30.", show_default=CONFIG)
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            help="Self-supervised tasks, for poses: masked (predict masked frames), arrow (direction of time), attributes.",
            show_default=TASKS,
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(help="Maximum number of epochs; stops early when the loss on held-out individuals stalls.", min=1)
    ] = 50,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Pre-train a network on recordings without annotations, to initialize models with `train --init`.

    Tags: the encoder of model harnet is trained to detect transformed windows of acceleration. Poses: the convolutions of model conv1d are
    trained on self-supervised tasks. Held-out individuals decide when to stop, and how well they are predicted is printed. Pre-training
    helps where labels are few, and not always: compare with a model without it.

    Example: [bold]ethobench pretrain my_tags/ --out models/encoder[/bold]
    """
    from ethobench.core import Poses
    from ethobench.core.files import check_new_path
    from ethobench.datasets import load_dataset
    from ethobench.models.pretraining import pretrain, pretrain_poses

    check_new_path(out)
    data = load_dataset(dataset)
    has_poses = any(isinstance(recording.signals, Poses) for recording in data.recordings[:1])
    if has_poses and config is not None:
        raise typer.BadParameter(f"applies to tags only, but {dataset} has poses", param_hint="--config")
    if not has_poses and tasks is not None:
        raise typer.BadParameter(f"applies to poses only, but {dataset} has no poses", param_hint="--tasks")
    model = "conv1d" if has_poses else "harnet"
    if has_poses:
        names = [name.strip() for name in (tasks or TASKS).split(",")]
        card = pretrain_poses(data, out, tasks=names, epochs=epochs, seed=seed, progress=_EpochPrinter())
    else:
        card = pretrain(data, out, config=config or CONFIG, epochs=epochs, seed=seed, progress=_EpochPrinter())
    echo("On held-out individuals:", err=True)
    for task, held_out in card["held_out"].items():
        echo(f"  {task}: {held_out['metric']} {held_out['value']:.2f} (chance {held_out['chance']:.2f})", err=True)
    echo(f"{out}: use it with: ethobench train DATASET --model {model} --init {out} --out MODEL_DIR")


class _EpochPrinter:
    """Prints the loss once per epoch."""

    def __init__(self) -> None:
        self.epoch = -1

    def __call__(self, progress: object) -> None:
        epoch, loss = getattr(progress, "epoch", 0), getattr(progress, "loss", float("nan"))
        if epoch != self.epoch:
            self.epoch = epoch
            echo(f"epoch {epoch}: loss {loss:.4f}", err=True)
