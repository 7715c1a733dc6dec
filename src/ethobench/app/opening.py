"""Open a project from command-line arguments: a dataset, the store of a run, or files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.app.corrections import Corrections
from ethobench.app.ethograms import read_entries
from ethobench.app.project import Project
from ethobench.app.recordings import STATE_RATE, OpenRecording
from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, summarize_notes
from ethobench.core.messages import Message, Option
from ethobench.core.names import file_stem
from ethobench.core.signals import Keypoint
from ethobench.datasets import load_dataset
from ethobench.datasets.collate import collate_files, select_annotators
from ethobench.datasets.loose_files import check_source, is_dataset
from ethobench.datasets.manifest_tables import CORRECTIONS, ETHOGRAM, MANIFEST
from ethobench.datasets.match_file import Match
from ethobench.datasets.video_clock import with_video_clock
from ethobench.formats import detect
from ethobench.models.held_out import PREDICTIONS, read_predictions

if TYPE_CHECKING:
    from ethobench.models import Model
    from ethobench.runs import Job

ASSUMED_RATE = 30.0


@dataclass
class _Source:
    """A recording, the ethogram of its dataset, predictions by model, and the behaviors that the user's files list."""

    ethogram: Ethogram
    recording: Recording
    predictions: dict[str, Prediction | Annotation] = field(default_factory=dict)
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    listed: Sequence[str] | None = None


@dataclass
class _Opened:
    """What was opened. Corrections are saved next to `manifest`; videos are shown from inside `roots`."""

    name: str
    sources: list[_Source]
    roots: tuple[Path, ...] = ()
    manifest: Path | None = None


@dataclass(frozen=True)
class _Selection:
    """What to read, and how; see `ethobench.collate`."""

    rate: float | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    match: Match | None = None
    entry: str | None = None
    annotators: Sequence[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def check_nothing_stated(self, source: Path, kind: str, *names: str) -> None:
        """Refuse options that would be ignored."""
        for name in names:
            if getattr(self, name):
                flag = {"annotators": "--annotator", "options": "--option"}.get(name, "")
                raise EthobenchError(Message(f"{source} is {kind}, for which ", Option(name, flag=flag), " has no meaning; omit it"))

    def load(self, name: str | Path) -> Dataset:
        """Load a dataset, and select what is stated."""
        self.check_nothing_stated(Path(name), "a dataset", "match", "options")
        data = load_dataset(name, rename=self.rename or None)
        data = data if self.entry is None else data.select(recordings=[self.entry])
        return replace(data, recordings=tuple(select_annotators(data, self.annotators))) if self.annotators else data


def open_project(
    sources: Sequence[str],
    *,
    corrections: Path | None = None,
    rate: float | None = None,
    behaviors: Sequence[str] = (),
    models: Sequence[Path] | Mapping[Path, Model] = (),
    videos: Sequence[Path] = (),
    rename: Mapping[str, str] | None = None,
    match: Match | None = None,
    entry: str | None = None,
    annotators: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    blind: bool = False,
    notify: Callable[[str], None] = lambda _: None,
    before_predicting: Callable[[str, Model, int], None] = lambda *_: None,
) -> Project:
    """Open a dataset, the store of a run, or files.

    Parameters
    ----------
    sources : sequence of str
        A dataset's name, folder or manifest; a store; or any files and folders of files.
    corrections : Path, optional
        Folder to save corrections in. By default ``corrections`` next to the manifest, or ``corrections/<name>`` in the working folder if
        that is not writable.
    rate : float, optional
        Frames per second, for files that do not state it.
    behaviors : sequence of str
        Behaviors to label, in addition to those of the data.
    models : sequence of Path, or mapping of Path to Model
        Saved models whose predictions are shown. Models given as paths are loaded and may not use the network.
    videos : sequence of Path
        Further folders from which videos may be shown.
    rename, match, entry, annotators, options
        See `ethobench.collate`. For a dataset, `entry` is a recording, and `match` and `options` have no meaning; the store of a
        run takes none of them.
    blind : bool
        Show neither other annotators nor models.
    notify : callable
        Called with progress messages and notes.
    before_predicting : callable
        Called with the name of a model, the model, and the number of recordings that it is about to predict.
    """
    if not sources:
        raise EthobenchError("name a dataset, the store of a run, or files to view")
    opened = _open(sources, _Selection(rate, dict(rename or {}), match, entry, annotators, dict(options or {})), notify)
    for path in models:
        model = models[path] if isinstance(models, Mapping) else _load_model(path)
        _add_predictions(path.resolve().name, model, opened.sources, notify, before_predicting)
    return Project(
        opened.name,
        [_open_recording(source, behaviors, rate, blind=blind) for source in opened.sources],
        _corrections_folder(opened.name, opened.manifest, corrections, notify),
        (*opened.roots, *videos),
        keypoints={name: keypoint for source in opened.sources for name, keypoint in source.keypoints.items()},
        blind=blind,
    )


def _open(sources: Sequence[str], selection: _Selection, notify: Callable[[str], None]) -> _Opened:
    path = Path(sources[0])
    if len(sources) == 1:
        if (path / "store.json").is_file():
            selection.check_nothing_stated(path, "the store of a run", "rename", "match", "entry", "annotators", "options")
            return _Opened(path.resolve().name, _sources_of_store(path, notify))
        manifest = _manifest(path)
        if manifest is not None:
            data = selection.load(manifest)
            return _Opened(data.name, _sources(data, _listed(manifest)), (manifest.parent,), manifest)
        check_source(path)
        if is_dataset(path):
            data = selection.load(sources[0])
            return _Opened(data.name, _sources(data), (path,) if path.exists() else ())
    paths = [Path(source) for source in sources]
    recordings = _collate(paths, selection, notify)
    roots = tuple(p if p.is_dir() else p.parent for p in paths)
    name = path.stem if len(paths) == 1 else Path(os.path.commonpath([root.resolve() for root in roots])).name or path.stem
    return _Opened(name, _sources(Dataset(tuple(map(with_video_clock, recordings)), Ethogram([]))), roots)


def _collate(paths: Sequence[Path], selection: _Selection, notify: Callable[[str], None]) -> list[Recording]:
    """Match loose files by recording."""
    collation = collate_files(
        paths,
        rate=selection.rate,
        rename=selection.rename,
        match=selection.match,
        entry=selection.entry,
        annotators=selection.annotators,
        options=selection.options,
        name_by_file=True,
    )
    for line in summarize_notes(collation.notes):
        notify(line)
    if not collation.recordings:
        raise EthobenchError("nothing to view: no file of a known format, and no video")
    return list(collation.recordings)


def _sources(data: Dataset, listed: Sequence[str] | None = None) -> list[_Source]:
    return [_Source(data.ethogram, recording, keypoints=data.keypoints, listed=listed) for recording in data]


def _listed(manifest: Path) -> Sequence[str]:
    """Return the behaviors in the user's ``ethogram.csv``; the ethogram of the dataset also has those of the corrections."""
    path = manifest.parent / ETHOGRAM
    return [entry.name for entry in read_entries(path)] if path.is_file() else []


def _manifest(path: Path) -> Path | None:
    """Return the manifest that a path refers to, if any."""
    if (path / MANIFEST).is_file():
        return path / MANIFEST
    if path.suffix != ".csv" or not path.is_file():
        return None
    try:
        detect(path)
    except FormatError:
        return path
    return None


def _corrections_folder(name: str, manifest: Path | None, stated: Path | None, notify: Callable[[str], None]) -> Corrections:
    """Choose the folder for corrections; notify the user if it is not the default."""
    if stated is not None:
        return Corrections(stated)
    if manifest is not None:
        folder, root = manifest.parent / CORRECTIONS, manifest.parent.resolve()
        if folder.exists() and not folder.resolve().is_relative_to(root):
            raise EthobenchError(Message(f"{folder} points outside {root}; state the folder for corrections with ", Option("corrections")))
        if os.access(folder if folder.exists() else root, os.W_OK):
            return Corrections(folder, manifest.name)
    folder = Path(CORRECTIONS) / file_stem(name)
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if os.access(parent, os.W_OK):
        notify(f"corrections will be saved to {folder.resolve()}")
    else:
        notify(Message(f"{parent} is read-only, so labels cannot be saved; state another folder with ", Option("corrections")))
    return Corrections(folder)


def _open_recording(source: _Source, behaviors: Sequence[str], stated_rate: float | None, *, blind: bool) -> OpenRecording:
    recording, notes, missing = source.recording, [*source.notes], []
    rate = recording.rate or stated_rate
    if rate is None:
        rate = ASSUMED_RATE
        missing.append("frame rate")
        notes.append(f"the frame rate is unknown; shown at {rate:g} Hz ({STATE_RATE})")
    tracks = [*recording.annotations.values(), *source.predictions.values()]
    length = max([recording.n_frames or 0, *(round(a.n_frames / a.rate * rate) for a in tracks)])
    if not length and recording.signals is not None:
        length = len(recording.signals)
    if not length:
        missing.append("length")
    ethogram = source.ethogram.join(Ethogram(behaviors))
    return OpenRecording(recording, ethogram, source.predictions, rate, length, notes, missing, source.listed, blind=blind)


def _load_model(path: Path) -> Model:
    from ethobench.models import load_model

    return load_model(path)


def _add_predictions(
    name: str,
    model: Model,
    sources: Sequence[_Source],
    notify: Callable[[str], None],
    before_predicting: Callable[[str, Model, int], None],
) -> None:
    """Add the predictions of a saved model to every recording with signals: the out-of-fold ones for its training recordings."""
    from ethobench.models.held_out import Origin, describe_origins, predict_or_held_out

    before_predicting(name, model, sum(source.recording.signals is not None for source in sources))

    def predict(source: _Source, number: int) -> Prediction:
        notify(f"{name} predicts {source.recording.id} ({number} of {len(sources)})")
        return model.predict(model.adapt(source.recording, source.keypoints))

    origins: dict[str, Origin] = {}
    for number, source in enumerate(sources, start=1):
        if source.recording.signals is not None:
            predicted, origin = predict_or_held_out(model, source.recording, partial(predict, source, number))
            source.predictions[f"{name} ({origin.label})" if origin.label else name] = predicted
            source.notes += describe_origins(name, {source.recording.id: origin})
            origins[source.recording.id] = origin
    for message in describe_origins(name, origins):
        notify(message)


def _sources_of_store(path: Path, notify: Callable[[str], None]) -> list[_Source]:
    """Return the recordings of a run's datasets with the predictions of its final jobs."""
    from ethobench.runs import Store

    store = Store.open(path)
    jobs: dict[tuple[str, str], list[tuple[Job, Path]]] = {}
    for key in store.finished():
        job = store.job(key) if store.verify(key) else None
        if job is not None and job.stage == "final":
            data_key = (job.source or job.dataset, json.dumps(dict(job.options), sort_keys=True))
            jobs.setdefault(data_key, []).append((job, store.folder(key)))
    for message in store.describe_damage():
        notify(message)
    if not jobs:
        raise EthobenchError(f"{path}: no job of this run is finished yet; see `ethobench status {path}`")
    sources = []
    for (dataset, options), finished in jobs.items():
        data = load_dataset(dataset, **json.loads(options))
        predictions = _read_job_predictions(finished)
        for recording in data:
            if recording.id in predictions:
                named = recording if len(jobs) == 1 else recording.copy(id=f"{data.name}/{recording.id}")
                sources.append(_Source(data.ethogram, named, predictions[recording.id]))
    return sources


def _read_job_predictions(jobs: Sequence[tuple[Job, Path]]) -> dict[str, dict[str, Prediction | Annotation]]:
    """Read the predictions of finished jobs of one dataset, by recording and model name.

    The setting is appended to a model's name unless it is ``full``, and the job's key if two jobs would have the same name.
    """
    predictions: dict[str, dict[str, Prediction | Annotation]] = {}
    for job, folder in jobs:
        if not (folder / PREDICTIONS).is_file():
            continue
        name = job.model if str(job.setting) == "full" else f"{job.model} ({job.setting})"
        for recording, predicted in read_predictions(folder).items():
            models = predictions.setdefault(recording, {})
            models[name if name not in models else f"{name} {job.key[:6]}"] = predicted
    return predictions
