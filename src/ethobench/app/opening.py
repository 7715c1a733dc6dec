"""From what stands on the command line to a project: a dataset, the store of a run, or files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ethobench.app.corrections import Corrections
from ethobench.app.entries import Entry
from ethobench.app.project import Project
from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, summarize_notes
from ethobench.core.names import file_stem
from ethobench.core.signals import Keypoint
from ethobench.datasets import load_dataset
from ethobench.datasets.collate import collate_quietly
from ethobench.datasets.manifest import CORRECTIONS, MANIFEST
from ethobench.datasets.video_clock import with_video_clock
from ethobench.formats import detect

if TYPE_CHECKING:
    from ethobench.models import Model

ASSUMED_RATE = 30.0
BEBE_METADATA = "dataset_metadata.yaml"


@dataclass
class _Part:
    """A recording, the ethogram of its dataset, and what models say of it."""

    ethogram: Ethogram
    recording: Recording
    said: dict[str, Prediction | Annotation] = field(default_factory=dict)
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Opened:
    """What a command line stands for; `manifest` where corrections can go beside one, `roots` where videos may lie."""

    name: str
    parts: list[_Part]
    roots: tuple[Path, ...] = ()
    manifest: Path | None = None


def open_project(
    sources: Sequence[str],
    *,
    corrections: Path | None = None,
    rate: float | None = None,
    behaviors: Sequence[str] = (),
    models: Sequence[Path] | Mapping[Path, Model] = (),
    videos: Sequence[Path] = (),
    tell: Callable[[str], None] = lambda _: None,
    before_predicting: Callable[[str, Model, int], None] = lambda *_: None,
) -> Project:
    """Open a dataset, the store of a run, or files.

    Parameters
    ----------
    sources : sequence of str
        A dataset's name, folder or manifest; a store; or any files and folders of files.
    corrections : Path, optional
        Where corrections go. Beside the manifest unless given, or to ``corrections/<name>`` in the working folder where
        there is none that can be written to.
    rate : float, optional
        Frames per second, where files do not tell.
    behaviors : sequence of str
        Behaviors to label with, beside those that the data name.
    models : sequence of Path, or mapping of Path to Model
        Saved models whose predictions are shown too; those of a sequence are loaded, and may not use the network.
    videos : sequence of Path
        Folders outside the data from which videos may be shown.
    tell : callable
        Told what a user should know while this goes on.
    before_predicting : callable
        Called with the name of a model, the model, and the number of recordings that it is about to predict.
    """
    if not sources:
        raise EthobenchError("name a dataset, the store of a run, or files to look at")
    opened = _open(sources, rate, tell)
    for path in models:
        model = models[path] if isinstance(models, Mapping) else _load_model(path)
        _add_predictions(path.resolve().name, model, opened.parts, tell, before_predicting)
    return Project(
        opened.name,
        [_entry(part, behaviors, rate) for part in opened.parts],
        _place(opened.name, opened.manifest, corrections, tell),
        (*opened.roots, *videos),
    )


def _open(sources: Sequence[str], rate: float | None, tell: Callable[[str], None]) -> _Opened:
    path = Path(sources[0])
    if len(sources) == 1:
        if (path / "store.json").is_file():
            return _Opened(path.resolve().name, _parts_of_store(path, tell))
        manifest = _manifest(path)
        if manifest is not None:
            data = load_dataset(manifest)
            return _Opened(data.name, _parts(data), (manifest.parent,), manifest)
        if not path.exists() or (path / BEBE_METADATA).is_file():
            data = load_dataset(sources[0])
            return _Opened(data.name, _parts(data), (path,) if path.exists() else ())
    paths = [Path(source) for source in sources]
    recordings = _collate(paths, rate, tell)
    roots = tuple(p if p.is_dir() else p.parent for p in paths)
    name = path.stem if len(paths) == 1 else Path(os.path.commonpath([root.resolve() for root in roots])).name or path.stem
    return _Opened(name, _parts(Dataset(tuple(map(with_video_clock, recordings)), Ethogram([]))), roots)


def _collate(paths: Sequence[Path], rate: float | None, tell: Callable[[str], None]) -> list[Recording]:
    """Match loose files by recording."""
    collation = collate_quietly(paths, rate=rate, name_by_file=True)
    for line in summarize_notes(collation.notes):
        tell(line)
    if not collation.recordings:
        raise EthobenchError("there is nothing to look at: no file of a known format, and no video")
    return list(collation.recordings)


def _parts(data: Dataset) -> list[_Part]:
    return [_Part(data.ethogram, recording, keypoints=data.keypoints) for recording in data]


def _manifest(path: Path) -> Path | None:
    """Return the list of recordings that a path stands for, if it stands for one."""
    if (path / MANIFEST).is_file():
        return path / MANIFEST
    if path.suffix != ".csv" or not path.is_file():
        return None
    try:
        detect(path)
    except FormatError:
        return path
    return None


def _place(name: str, manifest: Path | None, wanted: Path | None, tell: Callable[[str], None]) -> Corrections:
    """Choose the folder of corrections, and say so where it is not the usual one."""
    if wanted is not None:
        return Corrections(wanted)
    if manifest is not None:
        folder, root = manifest.parent / CORRECTIONS, manifest.parent.resolve()
        if folder.exists() and not folder.resolve().is_relative_to(root):
            raise EthobenchError(f"{folder} leads out of {root}; name the folder for corrections with --corrections")
        if os.access(folder if folder.exists() else root, os.W_OK):
            return Corrections(folder, manifest.name)
    folder = Path(CORRECTIONS) / file_stem(name)
    tell(f"corrections will be saved to {folder.resolve()}")
    return Corrections(folder)


def _entry(part: _Part, behaviors: Sequence[str], stated: float | None) -> Entry:
    recording, notes, missing = part.recording, [*part.notes], []
    rate = recording.rate or stated
    if rate is None:
        rate = ASSUMED_RATE
        missing.append("frame rate")
        notes.append(f"the frame rate is unknown; shown at {rate:g} Hz (state it in column 'rate' of recordings.csv, or with --rate)")
    said = [*recording.annotations.values(), *part.said.values()]
    length = max([recording.n_frames or 0, *(round(a.n_frames / a.rate * rate) for a in said)])
    if not length and recording.signals is not None:
        length = len(recording.signals)
    if not length:
        missing.append("length")
    return Entry(recording, part.ethogram.join(Ethogram(behaviors)), part.said, rate, length, notes, missing)


def _load_model(path: Path) -> Model:
    from ethobench.models import load_model

    return load_model(path)


def _add_predictions(
    name: str,
    model: Model,
    parts: Sequence[_Part],
    tell: Callable[[str], None],
    before_predicting: Callable[[str, Model, int], None],
) -> None:
    """Add the predictions of a saved model to every recording with signals: the out-of-fold ones for its training recordings."""
    from ethobench.models.held_out import Origin, describe_origins, predict_or_held_out

    before_predicting(name, model, sum(part.recording.signals is not None for part in parts))

    def predict(part: _Part, number: int) -> Prediction:
        tell(f"{name} predicts {part.recording.id} ({number} of {len(parts)})")
        return model.predict(model.adapt(part.recording, part.keypoints))

    origins: dict[str, Origin] = {}
    for number, part in enumerate(parts, start=1):
        if part.recording.signals is not None:
            predicted, origin = predict_or_held_out(model, part.recording, partial(predict, part, number))
            part.said[f"{name} ({origin.label})" if origin.label else name] = predicted
            part.notes += describe_origins(name, {part.recording.id: origin})
            origins[part.recording.id] = origin
    for message in describe_origins(name, origins):
        tell(message)


def _parts_of_store(path: Path, tell: Callable[[str], None]) -> list[_Part]:
    """Return the recordings of a run's datasets with what its final jobs predicted of them."""
    from ethobench.app.stored import predictions_of
    from ethobench.runs import Job, Store

    store = Store(path)
    jobs: dict[tuple[str, str], list[tuple[Job, Path]]] = {}
    for key in store.finished():
        found = store.read(key) if store.verify(key) else None
        if found is not None and (job := Job.from_dict(found["job"])).stage == "final":
            data_key = (job.source or job.dataset, json.dumps(dict(job.options), sort_keys=True))
            jobs.setdefault(data_key, []).append((job, store.folder(key)))
    for message in store.describe_damage():
        tell(message)
    if not jobs:
        raise EthobenchError(f"{path}: no job of this run is finished yet; `ethobench status {path}` tells how far it is")
    parts = []
    for (source, options), done in jobs.items():
        data = load_dataset(source, **json.loads(options))
        said = predictions_of(done)
        for recording in data:
            if recording.id in said:
                shown = recording if len(jobs) == 1 else recording.copy(id=f"{data.name}/{recording.id}")
                parts.append(_Part(data.ethogram, shown, said[recording.id]))
    return parts
