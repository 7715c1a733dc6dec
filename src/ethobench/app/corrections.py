"""The folder of corrections: one file for each recording and annotator, and a manifest that lists them.

``recordings.csv`` has the columns of a manifest, so `load_dataset` merges a folder ``corrections`` next to the manifest of a study. Files
are written atomically, and only files that the manifest of this folder lists are ever replaced.

Several viewers may save to one folder. Each save holds a lock file, which expires when its process is dead, and re-reads the manifest
before adding a row. The row of a new file is first written to a separate pending file, so that a viewer that is killed in between leaves
no file that the manifest does not list.
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
from ethobench.datasets.manifest_tables import MANIFEST
from ethobench.formats import read_recordings, write_recordings
from ethobench.formats.tables import read_table, write_table
from ethobench.runs.leases import LEASE_SECONDS, Leases, StoreError

COLUMNS = ("recording", "individual", "annotations", "annotator")
RESERVED = ("all", "consensus")  # names with a special meaning in `score` and `train`
MAX_NAME_LENGTH = 60
LOCK = ".ethobench-lock"
LOCK_PATIENCE = LEASE_SECONDS + 5.0  # seconds; a lock from another machine expires after its lease
PENDING = ".ethobench-pending-"
CSV_BOUTS = 20_000  # more bouts are saved as Parquet, which is fast enough to save after every key press


class ChangedOnDiskError(MismatchError):
    """A correction was changed by another program since it was read."""


@dataclass
class _Saved:
    """A correction file, and its state when it was last read or written here."""

    path: Path
    stamp: tuple[int, ...] = field(default=())


class Corrections:
    """A folder of corrections; created when the first one is saved.

    Parameters
    ----------
    folder : Path
    manifest : str
        File name of the manifest.
    """

    def __init__(self, folder: Path, manifest: str = MANIFEST) -> None:
        self.folder = folder
        self.manifest = folder / manifest
        self.notes: list[str] = []
        self._saved: dict[tuple[str, str], _Saved] = {}

    def load(self) -> dict[tuple[str, str], Annotation]:
        """Read all corrections in the folder, by recording and annotator. Those that cannot be read or edited are skipped with a note."""
        corrections: dict[tuple[str, str], Annotation] = {}
        remove_stale_temporaries(self.folder)
        try:
            if self._pending():
                with self.locked():
                    self._recover()
            _, rows = self._rows()
        except (EthobenchError, OSError) as error:
            self.notes.append(f"corrections cannot be read or saved: {error}")
            return corrections
        for row in rows:
            key, path = (row["recording"], row["annotator"]), self.folder / row["annotations"]
            if key in corrections:
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
                corrections[key] = annotation
        return corrections

    def _read(self, path: Path, key: tuple[str, str]) -> Annotation | None:
        """Read a correction and register its file as replaceable; return None if it was not saved by the viewer."""
        if not _is_inside(path, self.folder):
            return None
        stamp = file_stamp(path)
        for recording in read_recordings(path, warn=False):
            if recording.id == key[0] and key[1] in recording.annotations:
                self._saved[key] = _Saved(path, stamp)
                return recording.annotations[key[1]]
        return None

    def save(self, recording: Recording, annotator: str, annotation: Annotation) -> Path:
        """Save the annotation of a recording; it is on disk when this returns.

        Raises
        ------
        EthobenchError
            If the annotation has no frames, because the length of the recording is unknown.
        ChangedOnDiskError
            If the file was changed since it was last read or written here.
        MismatchError
            If another viewer saved a correction under the same name.
        """
        if annotation.n_frames < 1:
            raise EthobenchError(f"cannot save a correction of {recording.id!r}: its length is unknown (no signals, and no readable video)")
        key = (recording.id, annotator)
        single = Recording(recording.id, individual=recording.individual, annotations={annotator: annotation})
        with self.locked():
            saved = self._saved.get(key)
            if saved is None:
                saved = self._saved[key] = self._add(single, annotator)
            elif not saved.path.exists() or file_stamp(saved.path) != saved.stamp:
                raise ChangedOnDiskError(f"{saved.path} was changed by another program and is not overwritten")
            else:
                write_recordings([single], saved.path, _format(saved.path), overwrite=True)
                saved.stamp = file_stamp(saved.path)
        return saved.path

    def reload(self, recording: str, annotator: str) -> Annotation:
        """Read a correction again that another viewer changed; from now on it can be saved.

        Raises
        ------
        EthobenchError
            If the file was deleted, or cannot be read.
        """
        saved = self._saved[recording, annotator]
        annotation = self._read(saved.path, (recording, annotator)) if saved.path.is_file() else None
        if annotation is None:
            raise EthobenchError(f"{saved.path} was deleted or replaced by another program; restart the viewer")
        return annotation

    def _add(self, recording: Recording, annotator: str) -> _Saved:
        """Write a new correction and add it to the manifest."""
        self._recover()
        _, rows = self._rows()
        if any(row["recording"] == recording.id and row["annotator"].lower() == annotator.lower() for row in rows):
            raise MismatchError(
                f"{annotator!r} already has a correction of {recording.id!r}, perhaps from another viewer; "
                "choose another name, or restart the viewer to load it"
            )
        path = self._free_name(recording.id, annotator, recording.annotations[annotator])
        individual = "" if recording.individual == recording.id else recording.individual
        row = {"recording": recording.id, "individual": individual, "annotations": path.name, "annotator": annotator}
        pending = self.folder / f"{PENDING}{secrets.token_hex(8)}.json"
        write_text(pending, json.dumps(row))
        try:
            write_recordings([recording], path, _format(path))
            saved = _Saved(path, file_stamp(path))
            self._append_row(row)
        except BaseException:
            with suppress(OSError, EthobenchError):
                self._recover()
            raise
        pending.unlink()
        return saved

    def _append_row(self, row: dict[str, str]) -> None:
        """Add a row to the manifest."""
        header, rows = self._rows()
        rows.append(row)
        with atomic_path(self.manifest, overwrite=True) as temporary:
            write_table(temporary, header, [[row.get(name, "") for name in header] for row in rows])

    def _recover(self) -> None:
        """Add the files of interrupted saves to the manifest; the caller holds the lock."""
        for pending in self._pending():
            try:
                row = {str(name): str(value) for name, value in json.loads(pending.read_text(encoding="utf-8")).items()}
                path = self.folder / row["annotations"]
            except (ValueError, KeyError, AttributeError) as error:
                self.notes.append(f"{pending}: the row of an interrupted save is damaged ({error}); delete this file")
                continue
            listed = {other["annotations"] for other in self._rows()[1]}
            if _is_inside(path, self.folder) and path.name not in listed:
                self._append_row(row)
                self.notes.append(f"{path.name} was saved when a viewer was interrupted; it has been added to {self.manifest.name}")
            pending.unlink(missing_ok=True)

    def _pending(self) -> list[Path]:
        return sorted(self.folder.glob(f"{PENDING}*.json"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that prevents other viewers from saving."""
        self.folder.mkdir(parents=True, exist_ok=True)
        leases, deadline = Leases(self.folder), time.monotonic() + LOCK_PATIENCE
        while not _acquire(leases):
            if time.monotonic() > deadline:
                raise EthobenchError(
                    f"{self.folder / LOCK}: another viewer has held the lock for too long; if none is open, delete this file"
                )
            time.sleep(0.005)
        try:
            yield
        finally:
            leases.release(LOCK)

    def _rows(self) -> tuple[list[str], list[dict[str, str]]]:
        if not self.manifest.is_file():
            return list(COLUMNS), []
        table = read_table(self.manifest, delimiter=",")
        header = [name.strip().lower() for name in table.header]
        missing = [name for name in COLUMNS if name not in header and name != "individual"]
        if missing:
            raise FormatError(self.manifest, f"the manifest of corrections has no column {', '.join(missing)}", "header")
        return header, [dict(zip(header, cells, strict=True)) for cells in table.rows]

    def _free_name(self, recording: str, annotator: str, annotation: Annotation) -> Path:
        suffix = ".csv" if len(annotation) <= CSV_BOUTS else ".parquet"
        base = f"{file_stem(recording)}.{file_stem(annotator)}"
        used = {normalize_file_name(path.name) for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        used.add(normalize_file_name(self.manifest.name))
        names = (f"{base}{'' if number == 1 else f'_{number}'}{suffix}" for number in range(1, len(used) + 2))
        return self.folder / next(name for name in names if normalize_file_name(name) not in used)


def _acquire(leases: Leases) -> bool:
    try:
        return leases.acquire(LOCK) is not None
    except StoreError as error:
        raise EthobenchError(f"corrections cannot be saved: the folder {leases.folder} cannot be written") from error


def check_annotator(name: object, used: set[str]) -> str:
    """Return a valid new annotator name without surrounding whitespace, or raise an error."""
    text = name.strip() if isinstance(name, str) else ""
    if not text or len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise EthobenchError(f"an annotator name must have 1 to {MAX_NAME_LENGTH} printable characters")
    if text.lower() in RESERVED:
        raise EthobenchError(f"{text!r} is a reserved name; choose another one")
    if text.lower() in {other.lower() for other in used}:
        raise EthobenchError(f"{text!r} is already an annotator; choose another name")
    return text


def _format(path: Path) -> str:
    return "tidy_parquet" if path.suffix == ".parquet" else "tidy"


def file_stamp(path: Path) -> tuple[int, ...]:
    """Return a value that changes when a file is written or replaced."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path, with links resolved, is a file inside a folder."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())
