"""`ethobench predict`: annotate recordings with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ethobench.core import Recording


def run(
    model: Annotated[Path, typer.Argument(help="Folder of a model that `train` made.", metavar="MODEL_DIR")],
    inputs: Annotated[list[str], typer.Argument(help="Files with signals or poses, folders of them, or datasets.", metavar="INPUT...")],
    out: Annotated[Path, typer.Option(help="Folder for the annotations.")],
    to: Annotated[str, typer.Option(help="Their format; see: ethobench formats.")] = "tidy",
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Annotate recordings with a trained model; long ones are read and predicted a piece at a time.

    Example: [bold]ethobench predict models/rf new/*.csv --rate 30 --out annotations --to boris[/bold]
    """
    from ethobench.cli._files import Notes
    from ethobench.cli.convert import file_names
    from ethobench.core.errors import EthobenchError
    from ethobench.formats import formats, write_recordings
    from ethobench.models import load_model

    writer = formats[to]
    if not writer.can_write:
        raise EthobenchError(f"{writer.title} cannot be written; see: ethobench formats")
    trained = load_model(model)
    notes = Notes()
    recordings = [r for source in inputs for r in _recordings(source, rate, notes)]
    paths = [out / f"{name}{writer.suffixes[0]}" for name in file_names(r.id for r in recordings)]
    if (there := [path for path in paths if path.exists()]) and not overwrite:
        raise EthobenchError(f"{there[0]} exists and is left alone; choose another folder, or give --overwrite")
    out.mkdir(parents=True, exist_ok=True)
    for found, path in zip(recordings, paths, strict=True):
        recording = trained.adapt(found)
        notes.add(recording.notes[len(found.notes) :], path)
        annotation = trained.annotate(recording)
        made = recording.copy(annotations={trained.name: annotation}, signals=None, features=None)
        notes.add(write_recordings([made], path, writer.name, overwrite=overwrite), path)
        typer.echo(f"{path}: {len(annotation)} bouts in {annotation.n_frames / annotation.rate:.1f} s")
    notes.tell()


def _recordings(source: str, rate: float | None, notes: object) -> list[Recording]:
    """Read what has signals from a file, the files of a folder, or a dataset."""
    from ethobench.cli._files import Notes
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.formats import read_at

    path = Path(source)
    if path.is_file() and path.name != "recordings.csv":
        found = read_at(path, rate)
        if isinstance(notes, Notes):
            for recording in found:
                notes.add(recording.notes, recording.id)
    else:
        found = list(load_dataset(source))
    seen = [recording for recording in found if recording.signals is not None]
    if not seen:
        raise EthobenchError(f"{source} holds neither signals nor poses to predict from")
    return seen
