"""`ethobench predict`: annotate recordings with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli._options import AllowNetworkOption, ExternalOption, announce_network, parse_external
from ethobench.cli._output import echo, secho

if TYPE_CHECKING:
    from ethobench.core import Annotation, Recording
    from ethobench.core.signals import Keypoint
    from ethobench.models import Model
    from ethobench.models.audit import LoggedPrediction
    from ethobench.models.held_out import Origin


def run(
    model: Annotated[Path, typer.Argument(help="Folder of a model that `train` made.", metavar="MODEL_DIR")],
    inputs: Annotated[list[str], typer.Argument(help="Files with signals or poses, folders of them, or datasets.", metavar="INPUT...")],
    out: Annotated[Path, typer.Option(help="Folder for the annotations.")],
    to: Annotated[str, typer.Option(help="Their format; see: ethobench formats.")] = "tidy",
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    style: Annotated[
        str, typer.Option(help="Whom to annotate like, for a model that learnt from several annotators (condition=annotator).")
    ] = "",
    unknown: Annotated[
        float | None,
        typer.Option(help="Model auto: leave frames open whose most probable behavior is less probable than this.", min=0, max=0.999),
    ] = None,
    in_sample: Annotated[
        bool,
        typer.Option("--in-sample", help="Training recordings: write the final model's own predictions, not the out-of-fold ones."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    allow_network: AllowNetworkOption = False,
    param: ExternalOption = None,
) -> None:
    """Annotate recordings with a trained model; long ones are read and predicted a piece at a time.

    For recordings that the model was trained on, its out-of-fold predictions are written where `train` kept them: those of models
    that had not seen the recording. Scores on them are honest, those of the model's own predictions are not.

    Example: [bold]ethobench predict models/first new/*.csv --rate 30 --out annotations --to boris[/bold]
    """
    from ethobench.cli._output import NoteCollector, print_note
    from ethobench.core import Prediction
    from ethobench.core.errors import EthobenchError
    from ethobench.core.files import check_new_path
    from ethobench.core.names import file_stems
    from ethobench.features.identity_swaps import identity_swap_notes
    from ethobench.formats import formats, write_recordings
    from ethobench.models import load_model
    from ethobench.models.audit import log_prediction, write_log
    from ethobench.models.held_out import describe_origins, predict_or_held_out

    writer = formats[to]
    if not writer.can_write:
        raise EthobenchError(f"{writer.title} cannot be written; see: ethobench formats")
    trained = _adjusted(load_model(model, allow_network=allow_network, **parse_external(param)), style, unknown)
    notes = NoteCollector()
    sources = [found for source in inputs for found in _sources(source, rate)]
    names = file_stems(found.name for found in sources)
    paths = [out / f"{name}{writer.suffixes[0]}" for name in names]
    for path in paths:
        check_new_path(path, overwrite=overwrite)
    announce_network(str(model), trained, len(sources))
    out.mkdir(parents=True, exist_ok=True)
    use_out_of_fold = not in_sample and not style and unknown is None
    origins: dict[str, Origin] = {}
    logged: list[LoggedPrediction] = []
    try:
        for source, path in zip(sources, paths, strict=True):
            found = source.read()
            recording = trained.adapt(found, source.keypoints)
            predict = partial(trained.annotate, recording)
            predicted, origin = predict_or_held_out(trained, found, predict, use_out_of_fold=use_out_of_fold)
            annotation = predicted.annotation if isinstance(predicted, Prediction) else predicted
            origins[found.id] = origin
            notes.add((*recording.notes, *identity_swap_notes(found)), path)
            made = recording.copy(annotations={trained.name: annotation}, signals=None, features=None)
            notes.add(write_recordings([made], path, writer.name, overwrite=overwrite), path)
            logged.append(log_prediction(path, found.id, model, origin))
            label = f" ({origin.label})" if origin.label else ""
            seconds = annotation.n_frames / annotation.rate
            echo(f"{path}: {len(annotation)} bouts in {seconds:.1f} s{label}{_unobserved(annotation)}")
    finally:
        write_log(out, logged)
    notes.print()
    for message in describe_origins(str(model), origins):
        secho(f"warning: {message}", err=True, fg=typer.colors.YELLOW)
    if (style or unknown is not None) and trained.out_of_fold and any(origin.match.is_training_recording for origin in origins.values()):
        print_note("--style and --unknown change the final model's predictions, so the out-of-fold ones are not used")


def _unobserved(annotation: Annotation) -> str:
    """Say how much of a recording is unobserved in a prediction, if anything is."""
    from ethobench.core import intervals as iv

    frames = annotation.n_frames - iv.total(annotation.observed.of_any())
    if not frames:
        return ""
    return f"; {frames / annotation.rate:.1f} s ({frames / annotation.n_frames:.1%}) not predicted and left unobserved"


def _adjusted(trained: Model, style: str, unknown: float | None) -> Model:
    """Tell a model how to predict."""
    from dataclasses import replace

    from ethobench.core.errors import EthobenchError

    if style:
        known = getattr(trained, "styles", ())
        if style not in known:
            told = (
                f"it learnt the styles of {', '.join(known)}" if known else "it learnt no styles (train with --param condition=annotator)"
            )
            raise EthobenchError(f"this model cannot annotate like {style!r}: {told}")
        trained.style = style
    if unknown is not None:
        if not hasattr(trained.params, "unknown"):
            raise EthobenchError(f"model {trained.name!r} does not leave frames open; --unknown belongs to auto")
        trained.params = replace(trained.params, unknown=unknown)
    return trained


@dataclass(frozen=True)
class _Source:
    """A recording that is read when its turn comes."""

    name: str
    read: Callable[[], Recording]
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)


def _sources(source: str, rate: float | None) -> list[_Source]:
    """Find what has signals in a file, the files of a folder, or a dataset."""
    from ethobench.cli._output import print_notes
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.datasets.loose_files import is_dataset, list_files

    path = Path(source)
    if path.exists() and not is_dataset(path):
        files, notes = list_files(path)
        print_notes(notes)
        found = [own for file in files for own in _in_file(file, rate, alone=path.is_file())]
    else:
        data = load_dataset(source)
        if rate is not None and (other := [r.id for r in data if r.rate not in (None, rate)]):
            raise EthobenchError(f"--rate {rate:g} belongs to files that tell none; {source} says otherwise of {other[0]!r}")
        found = [_Source(r.id, partial(_same, r), data.keypoints) for r in data if r.signals is not None]
    if not found:
        raise EthobenchError(f"{source} holds neither signals nor poses to predict from")
    return found


def _in_file(path: Path, rate: float | None, *, alone: bool) -> list[_Source]:
    """Find the recordings with signals of a file; one of many is read again when its turn comes."""
    from ethobench.formats import read_at_rate

    seen = [recording for recording in read_at_rate(path, rate) if recording.signals is not None]
    return [_Source(r.id, partial(_same, r) if alone else partial(_again, path, rate, r.id)) for r in seen]


def _again(path: Path, rate: float | None, name: str) -> Recording:
    from ethobench.formats import read_at_rate

    return next(r for r in read_at_rate(path, rate) if r.id == name)


def _same(recording: Recording) -> Recording:
    return recording
