"""`ethobench predict`: annotate recordings with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ethobench.cli.options import AllowNetworkOption, ExternalOption, announce_network, parse_external
from ethobench.cli.output import echo, secho

if TYPE_CHECKING:
    from ethobench.core import Annotation, Recording
    from ethobench.core.signals import Keypoint
    from ethobench.models import Model
    from ethobench.models.audit import LoggedPrediction
    from ethobench.models.held_out import Origin


def run(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model, from `ethobench train`.", metavar="MODEL_DIR")],
    inputs: Annotated[list[str], typer.Argument(help="Files with signals or poses, folders of files, or datasets.", metavar="INPUT...")],
    out: Annotated[Path, typer.Option(help="Folder for the annotations, one file per recording.")],
    to: Annotated[str, typer.Option(help="Format of the annotations; list: ethobench formats.")] = "tidy",
    rate: Annotated[float | None, typer.Option(help="Frames per second, for files that do not state it.", metavar="HZ")] = None,
    style: Annotated[
        str, typer.Option(help="Annotator whose style to predict, for a model trained with --param condition=annotator.", metavar="NAME")
    ] = "",
    min_confidence: Annotated[
        float | None,
        typer.Option(help="Abstain where the most probable behavior has a lower probability (model auto).", min=0, max=0.999, metavar="P"),
    ] = None,
    in_sample: Annotated[
        bool,
        typer.Option("--in-sample", help="For training recordings, write in-sample predictions instead of out-of-fold ones."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    allow_network: AllowNetworkOption = False,
    param: ExternalOption = None,
) -> None:
    """Annotate recordings with a trained model.

    For recordings that the model was trained on, the out-of-fold predictions of its cross-validation are written, if it has any:
    they come from models that were not trained on the recording, so their scores are not too optimistic.

    Example: [bold]ethobench predict models/first new/*.csv --rate 30 --out annotations[/bold]

    With another format: [bold]ethobench predict models/first my_study/ --out annotations --to boris --min-confidence 0.6[/bold]
    """
    from ethobench.cli.output import NoteCollector, print_note
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
    trained = _with_options(load_model(model, allow_network=allow_network, **parse_external(param)), style, min_confidence)
    notes = NoteCollector()
    sources = [source for text in inputs for source in _find_sources(text, rate)]
    names = file_stems(source.name for source in sources)
    paths = [out / f"{name}{writer.suffixes[0]}" for name in names]
    for path in paths:
        check_new_path(path, overwrite=overwrite)
    announce_network(str(model), trained, len(sources))
    out.mkdir(parents=True, exist_ok=True)
    use_out_of_fold = not in_sample and not style and min_confidence is None
    origins: dict[str, Origin] = {}
    logged: list[LoggedPrediction] = []
    try:
        for source, path in zip(sources, paths, strict=True):
            original = source.read()
            recording = trained.adapt(original, source.keypoints)
            predict = partial(trained.annotate, recording)
            predicted, origin = predict_or_held_out(trained, original, predict, use_out_of_fold=use_out_of_fold)
            annotation = predicted.annotation if isinstance(predicted, Prediction) else predicted
            origins[original.id] = origin
            notes.add((*recording.notes, *identity_swap_notes(original)), path)
            annotated = recording.copy(annotations={trained.name: annotation}, signals=None, features=None)
            notes.add(write_recordings([annotated], path, writer.name, overwrite=overwrite), path)
            logged.append(log_prediction(path, original.id, model, origin))
            label = f" ({origin.label})" if origin.label else ""
            seconds = annotation.n_frames / annotation.rate
            echo(f"{path}: {len(annotation)} bouts in {seconds:.1f} s{label}{_describe_unobserved(annotation)}")
    finally:
        write_log(out, logged)
    notes.print()
    for message in describe_origins(str(model), origins):
        secho(f"warning: {message}", err=True, fg=typer.colors.YELLOW)
    changed = style or min_confidence is not None
    if changed and trained.out_of_fold and any(origin.match.is_training_recording for origin in origins.values()):
        print_note("with --style or --min-confidence, in-sample predictions are written instead of out-of-fold ones")


def _describe_unobserved(annotation: Annotation) -> str:
    """Return how much of a recording was not predicted; empty if all was."""
    from ethobench.core import intervals as iv

    frames = annotation.n_frames - iv.total(annotation.observed.of_any())
    if not frames:
        return ""
    return f"; {frames / annotation.rate:.1f} s ({frames / annotation.n_frames:.1%}) unobserved (not predicted)"


def _with_options(trained: Model, style: str, min_confidence: float | None) -> Model:
    """Set the annotator style and the confidence below which a model abstains; refuse what the model does not support."""
    from ethobench.core.errors import EthobenchError

    if style:
        styles = getattr(trained, "styles", ())
        if style not in styles:
            available = f"it has the styles of {', '.join(styles)}" if styles else "it has no styles (train with condition=annotator)"
            raise EthobenchError(f"this model cannot annotate in the style of {style!r}: {available}")
        trained.style = style
    if min_confidence is not None:
        if trained.name != "auto":
            raise EthobenchError(f"--min-confidence needs model 'auto'; model {trained.name!r} does not abstain")
        trained.set_params(min_confidence=min_confidence)
    return trained


@dataclass(frozen=True)
class _Source:
    """A recording that is read when it is predicted."""

    name: str
    read: Callable[[], Recording]
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)


def _find_sources(text: str, rate: float | None) -> list[_Source]:
    """Find the recordings with signals in a file, the files of a folder, or a dataset."""
    from ethobench.cli.output import print_notes
    from ethobench.core.errors import EthobenchError
    from ethobench.datasets import load_dataset
    from ethobench.datasets.loose_files import is_dataset, list_files

    path = Path(text)
    if path.exists() and not is_dataset(path):
        files, notes = list_files(path)
        print_notes(notes)
        sources = [source for file in files for source in _sources_in_file(file, rate, single=path.is_file())]
    else:
        data = load_dataset(text)
        if rate is not None and (other := [r for r in data if r.rate not in (None, rate)]):
            raise EthobenchError(
                f"--rate {rate:g} applies to files without a rate, but recording {other[0].id!r} of {text} has {other[0].rate:g} Hz"
            )
        sources = [_Source(r.id, partial(_return, r), data.keypoints) for r in data if r.signals is not None]
    if not sources:
        raise EthobenchError(f"{text} has no signals or poses")
    return sources


def _sources_in_file(path: Path, rate: float | None, *, single: bool) -> list[_Source]:
    """Find the recordings with signals of a file; those of one of many files are read again later, to save memory."""
    from ethobench.formats import read_at_rate

    recordings = [recording for recording in read_at_rate(path, rate) if recording.signals is not None]
    return [_Source(r.id, partial(_return, r) if single else partial(_read_again, path, rate, r.id)) for r in recordings]


def _read_again(path: Path, rate: float | None, name: str) -> Recording:
    from ethobench.formats import read_at_rate

    return next(r for r in read_at_rate(path, rate) if r.id == name)


def _return(recording: Recording) -> Recording:
    return recording
