"""`ethobench embed`: per-frame features of videos, to train and predict without poses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.output import echo, echo_json, make_console, make_visible, secho

if TYPE_CHECKING:
    from ethobench.core.progress import Listener
    from ethobench.training.video_embedding import EmbeddedVideo


def run(
    videos: Annotated[list[str], typer.Argument(help="Videos, or folders of videos.", metavar="VIDEO")],
    out: Annotated[Path, typer.Option(help="Folder for the features, one file per video.", metavar="DIR")],
    encoder: Annotated[
        str, typer.Option(help="motion (needs no weights), or an .onnx or .pt file with a .toml file beside it.", metavar="NAME|FILE")
    ] = "motion",
    trust_encoder: Annotated[
        bool,
        typer.Option(
            "--trust-encoder", help="Run a .pt file. TorchScript is a program: it can do whatever its author wrote. ONNX needs no trust."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace features of another encoder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Compute per-frame features of videos, so that models can be trained and used without poses.

    Writes one NPY file per video, and a recordings.csv that lists them. Run the same command again to resume: finished videos are kept.
    A video that cannot be read does not stop the others.

    Example: [bold]ethobench embed videos/ --out features/[/bold]

    A network of your own, whose dino.toml states size, mean, std and stride of its input:
    [bold]ethobench embed videos/ --encoder dino.onnx --out features/[/bold]
    """
    from ethobench.core.progress import progress_listener
    from ethobench.training.video_embedding import embed_videos, find_videos, write_embedding_manifest

    sources = find_videos(videos)
    results: list[EmbeddedVideo] = []
    start = time.perf_counter()
    with _show_progress() as listener, progress_listener(listener):
        for result in embed_videos(sources, out, encoder, trust_encoder=trust_encoder, overwrite=overwrite):
            results.append(result)
            if not as_json:
                echo(f"{len(results)} of {len(sources)}: {_describe(result, time.perf_counter() - start)}")
            start = time.perf_counter()
    manifest = write_embedding_manifest(results, out)
    if as_json:
        paths = ("video", "features")
        echo_json([{name: str(value) if name in paths else value for name, value in asdict(result).items()} for result in results])
    else:
        _print_next(results, out, manifest)
    failures = [result for result in results if result.status == "failed"]
    for result in failures:
        secho(f"failed: {result.video}: {result.error.removeprefix(f'{result.video}: ')}", err=True, fg=typer.colors.RED)
    if failures:
        raise typer.Exit(1)


def _describe(result: EmbeddedVideo, seconds: float) -> str:
    if result.status != "computed":
        return f"{result.video.name} {result.status}"
    missing = f"; {result.n_missing:,} rows missing (no picture)" if result.n_missing else ""
    speed = f"{result.n_samples / max(seconds, 1e-3):,.0f} rows/s"
    return f"{result.video.name}, {result.n_samples:,} rows in {seconds:.1f} s ({speed}){missing}"


def _print_next(results: list[EmbeddedVideo], out: Path, manifest: Path | None) -> None:
    """Print how to use the features."""
    embedded = [result for result in results if result.status != "failed"]
    if not embedded:
        return
    echo(f"{len(embedded)} of {len(results)} videos have features in {out}")
    if manifest is not None:
        echo(f"wrote {manifest}; predict with: ethobench predict MODEL_DIR {out} --out annotations")
        echo("to train, add the columns annotations and annotator, and state the animal in column individual")
    else:
        echo(f"{out / 'recordings.csv'} is kept as it is")
    echo(f"in a recordings.csv of your own: column features, such as {embedded[0].features.name} (a path relative to it)")


@contextmanager
def _show_progress() -> Iterator[Listener]:
    """Yield a listener that shows a bar on a terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda stage, fraction: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(stage: str, fraction: float) -> None:
            if progress.tasks[0].description != stage:
                progress.reset(task)
            progress.update(task, completed=fraction, description=make_visible(stage))

        yield show
