"""MABe 2025: poses and social actions of two to four mice, from 19 labs with nine skeletons.

The folder is that of the challenge: ``train.csv`` with one row per video, ``train_tracking/{lab_id}/{video_id}.parquet`` with one row per
frame, mouse and body part, and ``train_annotation/{lab_id}/{video_id}.parquet`` with one row per bout; ``test.csv`` and ``test_tracking``
are read if they exist. What is not in ``behaviors_labeled`` of a video was not looked for there, so it is unobserved.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Observed, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, MissingDataError, Note, NotFoundError, ReadWarning
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.fetch import data_folder
from ethobench.formats import read_recordings
from ethobench.formats.mabe2025_tables import LAB, LABELED, id_text, last_frame, parse_labeled, read_tracking
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.formats.tables import Table, read_table

SOURCE = "https://www.kaggle.com/competitions/MABe-mouse-behavior-detection"
SPLITS = ("train", "test")
REQUIRED = ("video_id", LAB, "frames_per_second", LABELED)
MOUSE_FIELDS = ("strain", "color", "sex", "id", "age", "condition")
MAX_MICE = 4
PARTS = "body_parts_tracked"
SCALE = "pix_per_cm_approx"
NUMBERS = ("video_duration_sec", "video_width_pix", "video_height_pix", "arena_width_cm", "arena_height_cm")


@register_dataset("mabe2025")
class Mabe2025(Family):
    """``mabe2025/train.csv``, ``mabe2025/train_tracking/`` and ``mabe2025/train_annotation/``, as the challenge distributes them."""

    title = "poses and social actions of two to four mice, 19 labs (MABe 2025)"
    licence = "terms of the challenge (data)"
    citation = "MABe Challenge - Social Action Recognition in Mice, Kaggle 2025"

    def folder(self, variant: str) -> Path:
        return data_folder() / "mabe2025"

    def is_here(self, variant: str) -> bool:
        return (self.folder(variant) / "train.csv").is_file()

    def fetch(self, variant: str) -> None:
        if not self.is_here(variant):
            raise MissingDataError(
                f"{self.folder(variant)} has no train.csv. MABe 2025 needs an account: download it from {SOURCE} and put train.csv, "
                "train_tracking/ and train_annotation/ into this folder"
            )

    def load(self, variant: str, *, labs: str | list[str] | None = None, **options: Any) -> Dataset:
        """Load the dataset.

        Parameters
        ----------
        variant : str
            Empty.
        labs : str or list of str, optional
            Load only the videos of these labs.
        """
        self.fetch(variant)
        return load_folder(self.folder(variant), labs=labs, **options)


def load_folder(folder: Path, *, labs: str | list[str] | None = None) -> Dataset:
    """Load the dataset from a folder with the layout of the challenge.

    Poses are read on first access. Files that are missing are named in one `ReadWarning`; their recordings have the metadata of
    ``train.csv`` but no poses or no annotation.

    Parameters
    ----------
    folder : Path
        With ``train.csv``.
    labs : str or list of str, optional
        Load only the videos of these labs.
    """
    recordings: list[Recording] = []
    splits: dict[str, str] = {}
    digest = hashlib.blake2b(digest_size=8)
    missing: dict[str, list[Path]] = {}
    for split in SPLITS:
        path = folder / f"{split}.csv"
        if not path.is_file():
            continue
        digest.update(content_hash(path, cache_folder() / "arrays").encode())
        table = read_table(path)
        absent = [column for column in REQUIRED if column not in table and not (split == "test" and column == LABELED)]
        if absent:
            raise FormatError(path, f"no column {', '.join(absent)}; columns: {', '.join(table.header)}", "header")
        for row in _select_labs(path, table, labs):
            recording, files = _recording(folder, split, table, row)
            for kind, file in files.items():
                if file.is_file():
                    digest.update(f"{file.name}:{file.stat().st_size}".encode())
                else:
                    missing.setdefault(kind, []).append(file)
            recordings.append(recording)
            splits[recording.id] = split
    ethogram = Ethogram([])
    for recording in recordings:
        for annotation in recording.annotations.values():
            ethogram = ethogram.join(annotation.ethogram)
    for kind, files_of_kind in missing.items():
        message = f"{len(files_of_kind)} of {len(recordings)} videos have no {kind}: {files_of_kind[0]} and so on do not exist"
        warnings.warn(f"{message}; download {files_of_kind[0].parent.parent.name}/ from {SOURCE} into {folder}", ReadWarning, stacklevel=3)
    return Dataset(
        recordings=tuple(recordings),
        ethogram=ethogram,
        name="mabe2025",
        splits=splits,
        source=SOURCE,
        licence=Mabe2025.licence,
        citation=Mabe2025.citation,
        version=digest.hexdigest(),
    )


def _select_labs(path: Path, table: Table, labs: str | list[str] | None) -> list[int]:
    """Return the rows of the chosen labs."""
    available = table.column(LAB)
    chosen = {labs} if isinstance(labs, str) else None if labs is None else {*labs}
    if chosen is not None and (unknown := sorted(chosen - {*available})):
        raise NotFoundError(f"{path} has no lab {', '.join(unknown)}. Available: {', '.join(sorted({*available}))}")
    return [row for row, lab in enumerate(available) if chosen is None or lab in chosen]


def _recording(folder: Path, split: str, table: Table, row: int) -> tuple[Recording, dict[str, Path]]:
    """Return the recording of one row of the metadata, and the files that it should have by kind."""
    cells = dict(zip(table.header, table.rows[row], strict=True))
    location = f"row {table.row_numbers[row]}"
    video, lab = id_text(cells["video_id"]), cells[LAB].strip()
    for column, name in (("video_id", video), (LAB, lab)):
        if not name or "/" in name or "\\" in name or name.startswith("."):
            raise FormatError(table.path, f"{column} {name!r} cannot be the name of a file or folder", location)
    rate = _number(cells["frames_per_second"])
    if rate is None or not rate > 0:
        raise FormatError(table.path, f"frames_per_second {cells['frames_per_second']!r} is not a frame rate", location)
    tracking = folder / f"{split}_tracking" / lab / f"{video}.parquet"
    labels = folder / f"{split}_annotation" / lab / f"{video}.parquet"
    try:
        tracks = parse_labeled(cells.get(LABELED, ""), LABELED)
        parts = [str(name) for name in json.loads(cells.get(PARTS) or "[]")]
    except (EthobenchError, ValueError) as error:
        raise FormatError(table.path, str(error), location) from None
    mice = {f"mouse{k}" for k in range(1, MAX_MICE + 1) if any(cells.get(f"mouse{k}_{field}") for field in MOUSE_FIELDS)}
    mice |= {name for track in tracks for name in (track.subject, track.target) if name}
    subjects = tuple(sorted(mice))
    scale = _number(cells.get(SCALE, ""))
    notes = []
    if scale is None or not scale > 0:
        notes.append(Note(f"no scale: {SCALE} is {cells.get(SCALE, '') or 'blank'}, so distances are in pixels", code="no-scale"))
    n_frames = last_frame(tracking) + 1 if tracking.is_file() else None
    annotations: dict[str, Annotation] = {}
    files = {"tracking": tracking}
    if tracks:
        files["annotation"] = labels
        if labels.is_file():
            source = read_recordings(labels, "mabe2025", warn=False, rate=rate, labeled=cells[LABELED])[0]
            notes += [note for note in source.notes if note.code == "unlabeled-bouts"]
            annotation = source.annotation()
            n_frames = max(n_frames or 0, annotation.n_frames)
            observed = Observed(iv.empty(), dict.fromkeys(tracks, iv.full(n_frames)))
            annotations[DEFAULT_ANNOTATOR] = annotation.extend(n_frames).with_observed(observed)
    duration = _number(cells.get("video_duration_sec", ""))
    poses = partial(read_poses, tracking, rate, subjects, tuple(parts), n_frames) if tracking.is_file() else None
    recording = Recording(
        video,
        individual=_individual(lab, cells) or video,
        rate=rate,
        n_frames=n_frames if n_frames is not None or duration is None else round(duration * rate),
        subjects=subjects,
        signals=poses,
        annotations=annotations,
        metadata=_metadata(cells, lab, parts, scale),
        notes=tuple(notes),
    )
    return recording, files


def read_poses(path: Path, rate: float, subjects: tuple[str, ...], parts: tuple[str, ...], n_frames: int | None = None) -> Poses:
    """Read a tracking file; keypoints without a row in a frame are not tracked there (NaN).

    Parameters
    ----------
    path : Path
        Long table with ``video_frame, mouse_id, bodypart, x, y``.
    rate : float
        Frames per second.
    subjects, parts : tuple of str
        Mice and body parts to expect; those that only the file names follow them.
    n_frames : int, optional
        Length of the recording; by default the last tracked frame ends it.
    """
    positions, mice, keypoints = read_tracking(path, subjects=subjects, parts=parts, n_frames=n_frames)
    return Poses(positions, np.full(positions.shape[:3], np.nan), mice, keypoints, rate)


def _individual(lab: str, cells: dict[str, str]) -> str:
    """Return the animals of a video, which no split separates; empty if the metadata do not identify any."""
    ids = [id_text(cells.get(f"mouse{k}_id", "")) for k in range(1, MAX_MICE + 1)]
    return ";".join(f"{lab}/{name}" for name in ids if name)


def _metadata(cells: dict[str, str], lab: str, parts: list[str], scale: float | None) -> dict[str, Any]:
    handled = {"video_id", LAB, "frames_per_second", SCALE, LABELED, PARTS}
    others: dict[str, Any] = {name: cell for name, cell in cells.items() if name not in handled and cell.strip()}
    for name in NUMBERS:
        if name in others and (value := _number(others[name])) is not None:
            others[name] = value
    tracks = parse_labeled(cells.get(LABELED, ""), LABELED)
    labeled = [f"{t.subject},{t.target or 'self'},{t.behavior}" for t in tracks]
    scale_entry = {"pixels_per_cm": scale} if scale is not None and scale > 0 else {}
    return {"lab": lab, **scale_entry, LABELED: labeled, PARTS: parts, **others}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
