"""The folder that corrections are saved to: one file for each recording and annotator, and a manifest that lists them.

``recordings.csv`` has the columns of any manifest, so `load_dataset` merges a folder ``corrections`` that lies beside a
dataset's own manifest. Files appear whole or not at all, and only files that this folder's manifest lists are ever replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.datasets.manifest import MANIFEST
from ethobench.formats import read_quietly, write_recordings
from ethobench.formats._tables import read_table, write_table
from ethobench.formats._verbs import appearing

COLUMNS = ("recording", "individual", "annotations", "annotator")
RESERVED = ("all", "consensus")  # names that `score` and `train` take for something else
LONGEST = 60
CSV_BOUTS = 20_000  # beyond that Parquet, which is written fast enough to be saved with every key


@dataclass
class _Saved:
    """A file that is ours, and what it looked like when we last read or wrote it."""

    path: Path
    stamp: tuple[int, int] = field(default=(0, 0))


class Corrections:
    """A folder of corrections; made when the first one is saved.

    Parameters
    ----------
    folder : Path
    manifest : str
        The manifest's name.
    """

    def __init__(self, folder: Path, manifest: str = MANIFEST) -> None:
        self.folder = folder
        self.manifest = folder / manifest
        self.notes: list[str] = []
        self._saved: dict[tuple[str, str], _Saved] = {}

    def load(self) -> dict[tuple[str, str], Annotation]:
        """Read all corrections that were saved here, by recording and annotator; lines that others wrote are passed over, and noted."""
        found = {}
        _, rows = self._rows()
        for row in rows:
            key, path = (row["recording"], row["annotator"]), self.folder / row["annotations"]
            if _is_inside(path, self.folder):
                for recording in read_quietly(path):
                    if recording.id == key[0] and key[1] in recording.annotations:
                        found[key] = recording.annotations[key[1]]
                        self._saved[key] = _Saved(path, _stamp(path))
            if key not in found:
                self.notes.append(f"{self.manifest}: {key[1]!r} of {key[0]!r} was not saved by the viewer and cannot be edited in it")
        return found

    def save(self, recording: Recording, annotator: str, annotation: Annotation) -> Path:
        """Save what an annotator says of a recording; when this returns, it is on the disk.

        Raises
        ------
        EthobenchError
            If the annotation has no frames: the length of the recording is unknown.
        MismatchError
            If somebody else changed the file since it was last read or written here.
        """
        if annotation.n_frames < 1:
            raise EthobenchError(
                f"nothing is saved for {recording.id!r}: its length is unknown (no signals, and no video that can be read)"
            )
        key = (recording.id, annotator)
        known = self._saved.get(key)
        if known is None:
            known = _Saved(self._free_name(recording.id, annotator, annotation))
        elif not known.path.exists() or _stamp(known.path) != known.stamp:
            raise MismatchError(f"{known.path} was changed by another program and is left alone; start the viewer again to see it")
        single = Recording(recording.id, individual=recording.individual, annotations={annotator: annotation})
        write_recordings([single], known.path, _format(known.path), overwrite=key in self._saved)
        known.stamp = _stamp(known.path)
        if key not in self._saved:
            self._enter(recording, annotator, known.path)
            self._saved[key] = known
        return known.path

    def _enter(self, recording: Recording, annotator: str, path: Path) -> None:
        """Add a line to the manifest; all others stay as they are."""
        header, rows = self._rows()
        individual = "" if recording.individual == recording.id else recording.individual
        rows.append({"recording": recording.id, "individual": individual, "annotations": path.name, "annotator": annotator})
        with appearing(self.manifest) as temporary:
            write_table(temporary, header, [[row.get(name, "") for name in header] for row in rows])

    def _rows(self) -> tuple[list[str], list[dict[str, str]]]:
        if not self.manifest.is_file():
            return list(COLUMNS), []
        table = read_table(self.manifest, delimiter=",")
        header = [name.strip().lower() for name in table.header]
        missing = [name for name in COLUMNS if name not in header and name != "individual"]
        if missing:
            raise FormatError(self.manifest, f"this manifest of corrections has no column {', '.join(missing)}", "header")
        return header, [dict(zip(header, cells, strict=True)) for cells in table.rows]

    def _free_name(self, recording: str, annotator: str, annotation: Annotation) -> Path:
        suffix = ".csv" if len(annotation) <= CSV_BOUTS else ".parquet"
        base = f"{plain(recording)}.{plain(annotator)}"
        there = {path.name.lower() for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        names = (f"{base}{'' if number == 1 else f'_{number}'}{suffix}" for number in range(1, len(there) + 2))
        return self.folder / next(name for name in names if name.lower() not in {*there, self.manifest.name.lower()})


def check_annotator(name: object, taken: set[str]) -> str:
    """Return a new annotator's name without blanks around it, or raise an error that says what is wrong with it."""
    text = name.strip() if isinstance(name, str) else ""
    if not text or len(text) > LONGEST or not text.isprintable():
        raise EthobenchError(f"an annotator's name has 1 to {LONGEST} ordinary characters")
    if text.lower() in RESERVED:
        raise EthobenchError(f"{text!r} means something else to ethobench; choose another name")
    if text.lower() in {other.lower() for other in taken}:
        raise EthobenchError(f"{text!r} is already an annotator here, whose work stays as it is; choose another name")
    return text


def plain(text: str) -> str:
    """Make a harmless part of a file name out of any text."""
    return re.sub(r"[^\w-]+", "_", text).strip("_")[:60] or "recording"


def _format(path: Path) -> str:
    return "tidy_parquet" if path.suffix == ".parquet" else "tidy"


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads to a file in a folder, links included."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())
