"""The folder that corrections are saved to: one file for each recording and annotator, and a manifest that lists them.

``recordings.csv`` has the columns of any manifest, so `load_dataset` merges a folder ``corrections`` that lies beside a
dataset's own manifest. Files appear whole or not at all, and only files that this folder's manifest lists are ever replaced.

Several viewers may save to one folder. Each save holds a lock file, which is void when its process is dead, and reads the manifest
again before adding a row. The row of a new file is first kept in a small file of its own, so that a viewer that is killed in between
leaves no file that the manifest does not list.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.files import atomic_path, remove_stale_temporaries, write_text
from ethobench.core.names import file_stem, normalize_file_name
from ethobench.datasets.manifest import MANIFEST
from ethobench.formats import read_recordings, write_recordings
from ethobench.formats.tables import read_table, write_table
from ethobench.runs.claims import LEASE, Claims, StoreError

COLUMNS = ("recording", "individual", "annotations", "annotator")
RESERVED = ("all", "consensus")  # names that `score` and `train` take for something else
LONGEST = 60
LOCK = ".ethobench-lock"
LOCK_PATIENCE = LEASE + 5.0  # seconds; a lock from another machine is given up after its lease
PENDING = ".ethobench-pending-"
CSV_BOUTS = 20_000  # beyond that Parquet, which is written fast enough to be saved with every key


@dataclass
class _Saved:
    """A file that is ours, and what it looked like when we last read or wrote it."""

    path: Path
    stamp: tuple[int, ...] = field(default=())


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
        """Read all corrections that were saved here, by recording and annotator; what cannot be read or edited is noted."""
        found: dict[tuple[str, str], Annotation] = {}
        remove_stale_temporaries(self.folder)
        try:
            if self._pending():
                with self._locked():
                    self._recover()
            _, rows = self._rows()
        except (EthobenchError, OSError) as error:
            self.notes.append(f"the corrections are not shown, and none can be saved: {error}")
            return found
        for row in rows:
            key, path = (row["recording"], row["annotator"]), self.folder / row["annotations"]
            if key in found:
                self.notes.append(f"{self.manifest}: lists {key[1]!r} of {key[0]!r} more than once; {path.name} is not shown")
                continue
            try:
                annotation = self._read(path, key)
            except (EthobenchError, OSError) as error:
                self.notes.append(f"{self.manifest}: {key[1]!r} of {key[0]!r} is not shown: {error}")
                continue
            if annotation is None:
                self.notes.append(f"{self.manifest}: {key[1]!r} of {key[0]!r} was not saved by the viewer and cannot be edited in it")
            else:
                found[key] = annotation
        return found

    def _read(self, path: Path, key: tuple[str, str]) -> Annotation | None:
        """Read a correction and remember its file as one that this folder may replace; None if it is not one of the viewer's."""
        if not _is_inside(path, self.folder):
            return None
        stamp = _stamp(path)
        for recording in read_recordings(path, warn=False):
            if recording.id == key[0] and key[1] in recording.annotations:
                self._saved[key] = _Saved(path, stamp)
                return recording.annotations[key[1]]
        return None

    def save(self, recording: Recording, annotator: str, annotation: Annotation) -> Path:
        """Save what an annotator says of a recording; when this returns, it is on the disk.

        Raises
        ------
        EthobenchError
            If the annotation has no frames: the length of the recording is unknown.
        MismatchError
            If somebody else changed the file since it was last read or written here, or saved the same annotator's correction first.
        """
        if annotation.n_frames < 1:
            raise EthobenchError(
                f"nothing is saved for {recording.id!r}: its length is unknown (no signals, and no video that can be read)"
            )
        key = (recording.id, annotator)
        single = Recording(recording.id, individual=recording.individual, annotations={annotator: annotation})
        with self._locked():
            saved = self._saved.get(key)
            if saved is None:
                saved = self._saved[key] = self._add(single, annotator)
            elif not saved.path.exists() or _stamp(saved.path) != saved.stamp:
                raise MismatchError(f"{saved.path} was changed by another program and is left alone; start the viewer again to see it")
            else:
                write_recordings([single], saved.path, _format(saved.path), overwrite=True)
                saved.stamp = _stamp(saved.path)
        return saved.path

    def _add(self, recording: Recording, annotator: str) -> _Saved:
        """Write a new correction and list it in the manifest."""
        self._recover()
        _, rows = self._rows()
        if any(row["recording"] == recording.id and row["annotator"].lower() == annotator.lower() for row in rows):
            raise MismatchError(
                f"{annotator!r} has a correction of {recording.id!r} already, perhaps from another viewer; "
                "choose another name, or start the viewer again to see it"
            )
        path = self._free_name(recording.id, annotator, recording.annotations[annotator])
        individual = "" if recording.individual == recording.id else recording.individual
        row = {"recording": recording.id, "individual": individual, "annotations": path.name, "annotator": annotator}
        pending = self.folder / f"{PENDING}{secrets.token_hex(8)}.json"
        write_text(pending, json.dumps(row))
        try:
            write_recordings([recording], path, _format(path))
            saved = _Saved(path, _stamp(path))
            self._enter(row)
        except BaseException:
            with suppress(OSError, EthobenchError):
                self._recover()
            raise
        pending.unlink()
        return saved

    def _enter(self, row: dict[str, str]) -> None:
        """Add a row to the manifest; all others stay as they are."""
        header, rows = self._rows()
        rows.append(row)
        with atomic_path(self.manifest, overwrite=True) as temporary:
            write_table(temporary, header, [[row.get(name, "") for name in header] for row in rows])

    def _recover(self) -> None:
        """List the files of saves that were interrupted before the manifest was written; the caller holds the lock."""
        for pending in self._pending():
            try:
                row = {str(name): str(value) for name, value in json.loads(pending.read_text(encoding="utf-8")).items()}
                path = self.folder / row["annotations"]
            except (ValueError, KeyError, AttributeError) as error:
                self.notes.append(f"{pending}: this row of an interrupted save is damaged ({error}); delete the file")
                continue
            listed = {other["annotations"] for other in self._rows()[1]}
            if _is_inside(path, self.folder) and path.name not in listed:
                self._enter(row)
                self.notes.append(f"{path.name} was saved when a viewer was interrupted; {self.manifest.name} lists it now")
            pending.unlink(missing_ok=True)

    def _pending(self) -> list[Path]:
        return sorted(self.folder.glob(f"{PENDING}*.json"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other viewers from saving to this folder meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        claims, deadline = Claims(self.folder), time.monotonic() + LOCK_PATIENCE
        while not _take(claims):
            if time.monotonic() > deadline:
                raise EthobenchError(f"{self.folder / LOCK}: another viewer is saving for too long; if none is open, delete this file")
            time.sleep(0.005)
        try:
            yield
        finally:
            claims.release(LOCK)

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
        base = f"{file_stem(recording)}.{file_stem(annotator)}"
        used = {normalize_file_name(path.name) for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        used.add(normalize_file_name(self.manifest.name))
        names = (f"{base}{'' if number == 1 else f'_{number}'}{suffix}" for number in range(1, len(used) + 2))
        return self.folder / next(name for name in names if normalize_file_name(name) not in used)


def _take(claims: Claims) -> bool:
    try:
        return claims.take(LOCK) is not None
    except StoreError as error:
        raise EthobenchError(f"corrections cannot be saved: the folder {claims.folder} cannot be written") from error


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


def _format(path: Path) -> str:
    return "tidy_parquet" if path.suffix == ".parquet" else "tidy"


def _stamp(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads to a file in a folder, links included."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())
