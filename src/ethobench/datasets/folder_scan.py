"""Scan a folder for the files of a study: which are videos, poses, signals or annotations, and which cannot be used and why.

Files with only poses or signals are recognized by their first bytes and not parsed. Annotation files are read, since what is in them (the
observations, raters, behaviors and frame rates) is what the draft of a study needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import TEMPORARY_PREFIX
from ethobench.core.messages import Message
from ethobench.core.recording import Data
from ethobench.core.video import VIDEO_SUFFIXES
from ethobench.datasets.frame_features import embedded_video
from ethobench.datasets.loose_files import Item, items_of_recordings, recording_name
from ethobench.datasets.manifest_tables import CORRECTIONS, ETHOGRAM, KEYPOINTS, MANIFEST
from ethobench.formats import Format, detect, formats, read_at_rate
from ethobench.formats.io import UnknownFormatError
from ethobench.formats.reader_options import check_options, entries_with, options_for

NOT_SCANNED = {
    MANIFEST: "a study of its own",
    "dataset_metadata.yaml": "a BEBE dataset",
    "model.json": "a saved model",
    "store.json": "the results of a run",
}
"""Files that mark a folder as something else than files of this study."""

STUDY_TABLES = (MANIFEST, ETHOGRAM, KEYPOINTS, "zones.csv")
HEADER_BYTES = 4096
SIGNATURE_LINES = 12


@dataclass(frozen=True)
class UnusedFile:
    """A file or folder that is not part of the draft, and why.

    Attributes
    ----------
    path : Path
        Relative to the folder that was scanned.
    reason : str
    """

    path: Path
    reason: str

    def __str__(self) -> str:
        return Message(f"{self.path.as_posix()}: ", self.reason)


@dataclass
class Scan:
    """What was found in a folder.

    Attributes
    ----------
    folder : Path
    items : list of Item
        Videos, files with poses or signals, and the recordings in each annotation file.
    unused : list of UnusedFile
    formats : dict of Path to str
        Name of the format of each file, except videos.
    n_recordings : dict of Path to int
        Number of recordings (observations, streams, ...) in each file, except videos.
    n_files : int
        Number of files, used or not.
    features : dict of str to list of Path
        Files of features from `ethobench embed`, by the name of their video without its suffix.
    """

    folder: Path
    items: list[Item] = field(default_factory=list)
    unused: list[UnusedFile] = field(default_factory=list)
    formats: dict[Path, str] = field(default_factory=dict)
    n_recordings: dict[Path, int] = field(default_factory=dict)
    n_files: int = 0
    features: dict[str, list[Path]] = field(default_factory=dict)

    def skip(self, path: Path, reason: object) -> None:
        """Add a file that is not used."""
        if isinstance(reason, FormatError) and reason.path == path:
            reason = Message(f"{reason.location}: " if reason.location else "", reason.message)
        text = str(reason)
        self.unused.append(UnusedFile(path.relative_to(self.folder), text))

    def relative(self, item: Item) -> Path:
        """Return the path of an item relative to the folder."""
        return item.path.relative_to(self.folder)

    def entry(self, item: Item) -> str:
        """Return the name of an item within its file; empty if the file has only one recording."""
        if item.recording is None or self.n_recordings.get(item.path, 1) < 2:
            return ""
        return str(item.recording.metadata.get("channel") or item.recording.id)

    def folders(self, item: Item) -> tuple[str, ...]:
        """Return the folders of an item, outermost first."""
        return item.path.parent.relative_to(self.folder).parts


def scan_folder(folder: Path, *, rate: float | None = None, exclude: Iterable[str] = (), options: Mapping[str, Any] | None = None) -> Scan:
    """Scan a folder and the folders below it.

    Parameters
    ----------
    folder : Path
    rate : float, optional
        Frames per second of files that do not state it.
    exclude : iterable of str
        Patterns of files to skip, such as ``"*_old*"``; compared with the name and with the path relative to the folder.
    options : mapping of str to object, optional
        Options of the readers. Each is passed to the formats that have it; one that no file's format has is an error.
    """
    scan = Scan(folder)
    patterns = tuple(exclude)
    detector = _Detector()
    for path in _walk(scan):
        relative = path.relative_to(folder).as_posix()
        scan.n_files += 1
        if any(fnmatch(path.name, pattern) or fnmatch(relative, pattern) for pattern in patterns):
            scan.skip(path, "excluded")
            continue
        try:
            scan.items += _items(scan, path, rate, detector, options or {})
        except UnknownFormatError:
            scan.skip(path, "format not recognized")
        except EthobenchError as error:
            scan.skip(path, error)
        except OSError as error:
            scan.skip(path, error.strerror or error)
    check_options([formats[name] for name in scan.formats.values()], options)
    return scan


def _walk(scan: Scan) -> Iterator[Path]:
    """Yield the files below a folder, sorted; hidden files, and folders that are something else, are skipped."""
    for name, subfolders, files in os.walk(scan.folder, onerror=partial(_skip_folder, scan)):
        folder = Path(name)
        marker = next((file for file in NOT_SCANNED if file in files), None)
        if marker == MANIFEST and folder != scan.folder and _is_embedding(folder, files):
            files.remove(MANIFEST)
        elif marker is not None and folder != scan.folder:
            scan.skip(folder, f"not scanned, since it is {NOT_SCANNED[marker]} ({marker})")
            subfolders.clear()
            continue
        subfolders[:] = sorted(s for s in subfolders if not s.startswith((".", "__")) and not (folder == scan.folder and s == CORRECTIONS))
        for file in sorted(files):
            if not file.startswith((".", "~$", TEMPORARY_PREFIX)) and not (folder == scan.folder and file in STUDY_TABLES):
                yield folder / file


def _is_embedding(folder: Path, files: Sequence[str]) -> bool:
    """Return whether a folder with a ``recordings.csv`` is the output of `ethobench embed`, to which no annotations were added."""
    if not any(file.endswith(".npy") and embedded_video(folder / file) is not None for file in files):
        return False
    with (folder / MANIFEST).open(encoding="utf-8-sig", errors="replace") as file:
        return "annotations" not in file.readline()


def _skip_folder(scan: Scan, error: OSError) -> None:
    scan.skip(Path(error.filename), f"not scanned: {error.strerror}")


def _items(scan: Scan, path: Path, rate: float | None, detector: _Detector, options: Mapping[str, Any]) -> list[Item]:
    """Return the items of one file."""
    if path.suffix.lower() in VIDEO_SUFFIXES:
        return [Item(0, path, recording_name(path))]
    if path.name.endswith(".npy.json") and path.with_suffix("").is_file():
        return []  # states what the features are
    if (video := embedded_video(path)) is not None:
        scan.features.setdefault(recording_name(Path(video)), []).append(path)
        return []
    reader = detector.detect(path)
    scan.formats[path] = reader.name
    if "annotations" in reader.contents:
        try:
            recordings = read_at_rate(path, rate, reader.name, **options_for(reader, options))
        except FormatError:
            reader = detect(path)  # the detector only compares the first lines
            recordings = read_at_rate(path, rate, reader.name, **options_for(reader, options))
            scan.formats[path] = reader.name
        scan.n_recordings[path] = len(recordings)
        items = [item for item in items_of_recordings(0, path, recordings, reader) if item.annotations or item.has_signals]
        for item in items:
            item.options = options_for(reader, options)
        if not items:
            scan.skip(path, "no observations or annotations in it")
        return items
    chosen = options_for(reader, options)
    entries = entries_with(reader, path, chosen) if reader.multiple_recordings else [path.stem]
    has_several_entries = len(entries) > 1
    scan.n_recordings[path] = len(entries)
    return [
        Item(0, path, name, _not_loaded(path, entry, reader, chosen), i, named_inside=has_several_entries, options=chosen)
        for i, entry in enumerate(entries)
        for name in [entry if has_several_entries else recording_name(path)]
    ]


def _not_loaded(path: Path, entry: str, reader: Format, options: Mapping[str, Any]) -> Recording:
    """Return a recording whose signals are read when they are needed."""

    def load() -> Data:
        signals = read_at_rate(path, None, reader.name, entry=entry, **options)[0].signals
        if signals is None:
            raise FormatError(path, "the file has neither poses nor signals")
        return signals

    return Recording(entry, signals=load)


class _Detector:
    """Detects formats; text files that begin alike are detected once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}

    def detect(self, path: Path) -> Format:
        """Return the format of a file."""
        with path.open("rb") as file:
            raw = file.read(HEADER_BYTES)
        return detect(path) if not raw or b"\0" in raw else self._detect_text(path, raw)

    def _detect_text(self, path: Path, raw: bytes) -> Format:
        key = (path.suffix.lower(), *_signature(raw))
        if key not in self._names:
            self._names[key] = detect(path).name
        return formats[self._names[key]]


def _signature(raw: bytes) -> list[str]:
    """Return the header of a table, and the first cell of each of the next lines without its digits."""
    signature = []
    for i, line in enumerate(raw.decode("utf-8", errors="replace").splitlines()[:SIGNATURE_LINES]):
        cells = [cell for cell in re.split("[,;\t|]", line) if cell.strip()]
        signature.append(line if i == 0 and len(cells) > 2 else re.sub(r"\d+", "#", cells[0]) if cells else "")
    return signature
