"""Clean files of poses: each is read, cleaned and written to another folder; the files themselves are never changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, Note
from ethobench.core.files import check_new_path
from ethobench.core.messages import Message, Option
from ethobench.features.cleaning import CleanOptions, CleanReport, clean_poses
from ethobench.formats import detect, formats, read_at_rate, write_recordings
from ethobench.formats.base import Format

FALLBACK = "deeplabcut"
SAME_LAYOUT = {"lightning_pose": FALLBACK}
"""Formats whose files another format writes in the same layout."""


@dataclass(frozen=True)
class CleanedFile:
    """One cleaned recording.

    Attributes
    ----------
    source, path : Path
        The file that was read, and the file that was written.
    recording : str
    report : CleanReport
    notes : tuple of Note
        Warnings from the reader and the writer.
    """

    source: Path
    path: Path
    recording: str
    report: CleanReport
    notes: tuple[Note, ...] = ()


def clean_files(
    paths: Iterable[str | Path], out: str | Path, options: CleanOptions | None = None, *, rate: float | None = None
) -> list[CleanedFile]:
    """Clean files of poses and write copies in the same format to a folder.

    Formats that cannot be written (SLEAP, JABS, Anipose, H5 of DeepLabCut) become CSV in the layout of DeepLabCut, with a note.

    Parameters
    ----------
    paths : iterable of path
        Files of poses. Those of a folder are all its files with poses.
    out : path
        Folder for the copies, which have the names of the originals. Existing files are never replaced.
    options : CleanOptions, optional
    rate : float, optional
        Frames per second of files that do not state it.

    Raises
    ------
    PathExistsError
        If a copy exists already, before anything is written.
    EthobenchError
        If a file has no poses, or no frame rate is known.

    Examples
    --------
    >>> import ethobench as eb
    >>> recording = eb.load_dataset("synthetic/pose", individuals=1, seconds=20)["animal01"]
    >>> _ = eb.write_recordings([recording.copy(annotations={})], folder / "m1.csv", "deeplabcut")
    >>> (cleaned,) = eb.clean_files([folder / "m1.csv"], folder / "cleaned", rate=30)
    >>> cleaned.path.name
    'm1.csv'
    """
    sources = [file for path in paths for file in _files(Path(path))]
    if not sources:
        raise EthobenchError("no files of poses to clean")
    planned: dict[Path, Path] = {}
    for source in sources:
        target = Path(out) / f"{source.stem}{_suffix(source)}"
        if target in planned:
            raise EthobenchError(f"{planned[target]} and {source} would both become {target}; clean them into different folders")
        check_new_path(target)
        planned[target] = source
    return [_clean_file(source, target, options or CleanOptions(), rate) for target, source in planned.items()]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = []
    for file in sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")):
        try:
            if "poses" in detect(file).contents:
                files.append(file)
        except EthobenchError:  # not a file that Ethobench reads
            continue
    return files


def _writer(reader: Format, source: Path) -> Format:
    """Return the format of a copy: that of the file, if it can be written."""
    name = SAME_LAYOUT.get(reader.name, reader.name)
    writer = formats[name]
    is_written = writer.can_write and "poses" in writer.contents
    if not is_written or (name == FALLBACK and source.suffix.lower() != ".csv") or name == "sleap_events":
        return formats[FALLBACK]
    return writer


def _suffix(source: Path) -> str:
    reader = detect(source)
    writer = _writer(reader, source)
    return source.suffix if writer.name == SAME_LAYOUT.get(reader.name, reader.name) else ".csv"


def _clean_file(source: Path, target: Path, options: CleanOptions, rate: float | None) -> CleanedFile:
    reader = detect(source)
    writer = _writer(reader, source)
    recordings = read_at_rate(source, rate, reader.name)
    if len(recordings) > 1 and not writer.multiple_recordings:
        raise EthobenchError(f"{source} has {len(recordings)} recordings; split it into one file for each first")
    cleaned = [_clean(source, recording, options, rate) for recording in recordings]
    notes = [note for recording in recordings for note in recording.notes]
    if writer.name != SAME_LAYOUT.get(reader.name, reader.name) or (writer.name == FALLBACK and source.suffix != target.suffix):
        notes.append(Note(f"{reader.title} files cannot be written; the copy is a CSV file in the layout of DeepLabCut", source.name))
    kept = [r if "annotations" in writer.contents else r.copy(annotations={}, features=None) for r, _ in cleaned]
    notes += [note for note in write_recordings(kept, target, writer.name) if note.code != "lost-rate"]
    return CleanedFile(source, target, ", ".join(r.id for r in recordings), _joined([report for _, report in cleaned]), tuple(notes))


def _clean(source: Path, recording: Recording, options: CleanOptions, rate: float | None) -> tuple[Recording, CleanReport]:
    poses = recording.signals
    if not isinstance(poses, Poses):
        raise EthobenchError(f"{source} has no poses to clean")
    used = poses.rate or recording.rate or rate
    if used is None:
        raise EthobenchError(Message(f"{source} does not state its frame rate (set it with ", Option("rate"), ")"))
    cleaned, report = clean_poses(poses, options, rate=used)
    return recording.copy(signals=cleaned), report


def _joined(reports: Sequence[CleanReport]) -> CleanReport:
    """Return the sum of the reports of several recordings."""
    counts: dict[str, dict[str, int]] = {}
    for report in reports:
        for keypoint, steps in report.counts.items():
            total = counts.setdefault(keypoint, dict.fromkeys(steps, 0))
            for step, n in steps.items():
                total[step] += n
    return CleanReport(sum(report.n_points for report in reports), counts)
