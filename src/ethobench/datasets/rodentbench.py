"""Rodent-Bench: videos of rodents with annotated segments, for video models."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, MissingDataError, NotFoundError, ParameterError
from ethobench.core.recording import DEFAULT_ANNOTATOR, Data
from ethobench.core.wording import join_names
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.fetch import data_folder
from ethobench.datasets.frame_features import open_features
from ethobench.datasets.manifest import load_manifest
from ethobench.datasets.manifest_tables import MANIFEST
from ethobench.formats import read_at_rate
from ethobench.formats.parse_cache import cache_folder, content_hash

SHORT_SECONDS = 599.0
VERSIONS = ("long", "short")
VIDEOS, ANNOTATIONS = "videos", "annotations"
SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mpg", ".mpeg", ".webm", ".wmv", ".mkv")


@dataclass(frozen=True)
class Source:
    """One dataset of the benchmark: labels in the order of its prompts, frame rate, and synonyms of the labels."""

    labels: tuple[str, ...]
    background: str
    rate: float
    synonyms: Mapping[str, str]


_VENTRAL = {"scratching": "scratch", "licking": "lick", "grooming": "groom", "digging": "dig"}
SETS = {
    "calms21": Source(("attack", "investigation", "mount", "other"), "other", 30.0, {}),
    "freezing": Source(("Freezing", "Not Freezing"), "Not Freezing", 30.0, {"background": "Not Freezing"}),
    "grooming": Source(("grooming", "other"), "other", 30.0, {"not grooming": "other", "background": "other"}),
    "mouse_ventral1": Source(("groom", "dig", "background", "scratch", "lick"), "background", 60.0, _VENTRAL),
    "mouse_ventral2": Source(("background", "scratch", "lick"), "background", 30.0, _VENTRAL),
    "scratch_aid": Source(("scratching", "not scratching"), "not scratching", 30.0, {"scratch": "scratching", "other": "not scratching"}),
}


@register_dataset("rodentbench")
class Rodentbench(Family):
    """``rodentbench/<name>/videos/<video>.mp4`` and ``rodentbench/<name>/annotations/<video>.json``.

    Annotations are segment JSON or any other format. Those of several people are in one folder per person:
    ``annotations/<person>/<video>.json``. A ``recordings.csv`` works instead of these folders. Option ``version``: ``"long"``, or
    ``"short"`` for the first 599 seconds. Option ``features``: ``"motion"`` for the motion features that the benchmark computed before
    (`features_folder`), as signals.
    """

    title = "videos of rodents, six datasets (Rodent-Bench, 2026)"
    licence = "each source's own terms"
    citation = "Rodent-Bench, arXiv:2602.18540"
    variants = tuple(SETS)

    def folder(self, variant: str) -> Path:
        return data_folder() / "rodentbench" / variant

    def is_here(self, variant: str) -> bool:
        folder = self.folder(variant)
        return (folder / MANIFEST).is_file() or bool(_annotation_files(folder))

    def fetch(self, variant: str) -> None:
        if not self.is_here(variant):
            folder = self.folder(variant)
            raise MissingDataError(
                f"rodentbench/{variant} is not on this machine and cannot be downloaded automatically; "
                f"put videos into {folder / VIDEOS} and annotations into {folder / ANNOTATIONS}"
            )

    def load(self, variant: str, **options: Any) -> Dataset:
        version = options.pop("version", "long")
        features = options.pop("features", "")
        if options or version not in VERSIONS or features not in ("", "motion"):
            versions = join_names(map(repr, VERSIONS), "or")
            raise ParameterError(
                f"rodentbench has the options `version` ({versions}) and `features` ('motion'), got {options or features!r}"
            )
        self.fetch(variant)
        folder, source = self.folder(variant), SETS[variant]
        ethogram = Ethogram(source.labels, source.background)
        if (folder / MANIFEST).is_file():
            listed = load_manifest(folder / MANIFEST)
            recordings, digest = listed.recordings, listed.version
            recordings = tuple(
                r.copy(annotations={annotator: _with_labels_of(a, source, ethogram, r.id) for annotator, a in r.annotations.items()})
                for r in recordings
            )
        else:
            recordings, digest = _read_folders(folder, source, ethogram)
        if features:
            folder = features_folder(variant, digest)
            recordings = tuple(r.copy(signals=partial(_features_of, folder, r.id, r.rate, r.n_frames)) for r in recordings)
        data = Dataset(
            recordings=recordings,
            ethogram=ethogram,
            name=f"{self.name}/{variant}",
            source="files of the user's own",
            licence=self.licence,
            citation=self.citation,
            version=f"{digest}-{version}" + (f"-{features}" if features else ""),
        )
        return shortened(data, SHORT_SECONDS) if version == "short" else data


def features_folder(variant: str, digest: str) -> Path:
    """Return the cache folder for features of the videos of a dataset with this content."""
    return cache_folder() / "embeddings" / f"{variant}-{digest}"


def _features_of(folder: Path, name: str, rate: float | None, n_frames: int | None) -> Signals:
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise MissingDataError(f"{path} does not exist; compute motion features with: ethobench run rodentbench --supervised boost")
    return open_features([path], rate, n_frames)[0]


def shortened(data: Dataset, seconds: float) -> Dataset:
    """Keep the first seconds of each recording; video files are unchanged, but read only that far."""
    return replace(data, recordings=tuple(_shortened(recording, seconds) for recording in data))


def label_shares(data: Dataset) -> dict[str, float]:
    """Return the share of the observed time of each behavior, of all annotators; time without a bout is background."""
    seconds = dict.fromkeys(data.ethogram.names, 0.0)
    for recording in data:
        for original in recording.annotations.values():
            annotation = original.with_ethogram(data.ethogram)
            observed = annotation.observed.of_any()
            without_bout = iv.total(observed) / annotation.rate
            for name in seconds:
                if name != data.ethogram.background_name:
                    of_behavior = iv.overlap(iv.union(annotation.spans(name)), observed) / annotation.rate
                    seconds[name] += of_behavior
                    without_bout -= of_behavior
            if data.ethogram.background_name is not None:
                seconds[data.ethogram.background_name] += max(0.0, without_bout)
    total = sum(seconds.values())
    return {name: time / total if total else 0.0 for name, time in seconds.items()}


def _annotation_files(folder: Path) -> list[tuple[str, Path]]:
    """Return annotators and their files; subfolders are named after annotators."""
    root = folder / ANNOTATIONS
    if not root.is_dir():
        return []
    flat = [(DEFAULT_ANNOTATOR, path) for path in sorted(root.iterdir()) if path.is_file() and not path.name.startswith(".")]
    nested = [
        (person.name, path)
        for person in sorted(p for p in root.iterdir() if p.is_dir())
        for path in sorted(person.iterdir())
        if path.is_file() and not path.name.startswith(".")
    ]
    return flat + nested


def _read_folders(folder: Path, source: Source, ethogram: Ethogram) -> tuple[tuple[Recording, ...], str]:
    cache, digest = cache_folder() / "arrays", hashlib.blake2b(digest_size=8)
    videos = {path.stem: path for path in sorted((folder / VIDEOS).glob("*")) if path.suffix.lower() in SUFFIXES}
    annotations: dict[str, dict[str, Annotation]] = {}
    for annotator, path in _annotation_files(folder):
        digest.update(f"{annotator}/{path.stem}/{content_hash(path, cache)}".encode())
        annotated = [r for r in read_at_rate(path, source.rate) if r.annotations]
        if len(annotated) != 1:
            raise FormatError(path, f"expected one annotation of the video {path.stem!r}, got {len(annotated)}")
        annotations.setdefault(path.stem, {})[annotator] = _with_labels_of(annotated[0].annotation(), source, ethogram, str(path))
    recordings = []
    for name, group in sorted(annotations.items()):
        video = videos.get(name)
        seconds = None if video is None else _video_seconds(video)
        if video is not None:
            digest.update(content_hash(video, cache).encode())
        length = max(int((seconds or 0) * source.rate), *(a.n_frames for a in group.values()))
        extended = {rater: a.extend(length) for rater, a in group.items()}
        recordings.append(Recording(name, rate=source.rate, n_frames=length, annotations=extended, video=video))
    return tuple(recordings), digest.hexdigest()


def _with_labels_of(annotation: Annotation, source: Source, ethogram: Ethogram, recording_id: str) -> Annotation:
    """Rename labels to those of the dataset, and resample to its frame rate."""
    labels = {name.lower(): name for name in source.labels}
    names = {}
    for name in annotation.ethogram.names:
        label = name.strip().lower()
        names[name] = labels.get(label) or source.synonyms.get(label) or ""
    used = {annotation.ethogram[int(code)].name for code in set(annotation.behavior.tolist())}
    unknown = sorted(name for name in used if not names[name])
    if unknown:
        raise NotFoundError(
            f"{recording_id}: {', '.join(map(repr, unknown))} is not one of the behaviors of this task: {', '.join(source.labels)}"
        )
    kept = annotation.restrict([name for name in annotation.ethogram.names if names[name]])
    renamed = kept.rename({name: new for name, new in names.items() if new and new != name}).with_ethogram(ethogram)
    return renamed if renamed.rate == source.rate else renamed.resample(source.rate)


def _shortened(recording: Recording, seconds: float) -> Recording:
    if recording.rate is None or recording.n_frames is None:
        return recording
    length = int(seconds * recording.rate)
    cropped = {annotator: a.crop(0, min(length, a.n_frames)) for annotator, a in recording.annotations.items()}
    signals = partial(_first_frames, recording, length) if recording.has_signals else None
    return recording.copy(n_frames=min(length, recording.n_frames), annotations=cropped, signals=signals)


def _first_frames(recording: Recording, length: int) -> Data:
    if recording.signals is None:
        raise MissingDataError(f"recording {recording.id!r} has no signals")
    return recording.signals[:length]


def _video_seconds(path: Path) -> float | None:
    """Return the length of a video in seconds; None if PyAV is not installed."""
    try:
        import av
    except ImportError:
        return None
    try:
        with av.open(str(path)) as container:
            return None if container.duration is None else float(container.duration / av.time_base)
    except av.error.FFmpegError as error:
        raise FormatError(path, f"the video is damaged or its codec is unknown ({error.strerror})") from None
