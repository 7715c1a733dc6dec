"""Stores: folders of finished jobs, each of which appears complete or not at all.

``jobs/ab/abcdef.../`` holds ``job.json``, ``scores.json``, ``predictions.parquet``, ``timing.json`` and ``log.txt`` of a finished job, and
``manifest.json`` with the size and SHA-256 of each of them, which are verified whenever a file is read. ``failed/`` holds the tracebacks of
failed jobs, ``leases/`` the jobs in progress, ``quarantine/`` damaged jobs, ``logs/`` the log of each run, ``search/`` the state of
hyper-parameter searches, and ``checkpoints/`` trainings in progress.

Reading never changes a store. Damage is recorded in `Store.damage`; `Store.repair` moves damaged jobs to quarantine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import from_json

from ethobench.core.errors import NotFoundError
from ethobench.core.files import (
    remove_stale_temporaries,
    sha256_of,
    sync_folder,
    sync_tree,
    temporary_folder,
    temporary_name,
    write_text,
)
from ethobench.runs.executors import CERTIFICATE_SECONDS, CERTIFICATES
from ethobench.runs.leases import Leases, StoreError
from ethobench.runs.plan import Job, Result
from ethobench.runs.quarantine import JOB_KEY, Damage, Quarantine

T = TypeVar("T")
FORMAT_VERSION = 3
"""Version of the files of a store: ``store.json``, and ``manifest.json`` of each job."""
FOLDERS = ("jobs", "failed", "leases", "quarantine", "tmp", "logs", "search", "checkpoints")
MANIFEST = "manifest.json"
INFORMATIVE = ("timing.json", "log.txt")
"""Files that no score depends on: damage to them is reported, but the job is not repeated."""
INVALID = (ValueError, KeyError, TypeError, AttributeError)
"""Errors raised by reading a file whose content is not what it should be."""


@dataclass(frozen=True)
class Failure:
    """The record of a failed job.

    Attributes
    ----------
    job : Job
    error : str
    traceback : str
    """

    job: Job
    error: str
    traceback: str = ""


class Store:
    """The folder of a run; many processes may use it at the same time.

    Parameters
    ----------
    root : Path
        Created if it does not exist; `Store.open` opens an existing store.

    Attributes
    ----------
    leases : Leases
    quarantine : Quarantine
    damage : list of Damage
        Damage detected while reading.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        try:
            for name in FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            if not (self.root / "store.json").exists():
                write_text(self.root / "store.json", json.dumps({"format_version": FORMAT_VERSION}), overwrite=True)
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be written ({error.strerror})") from None
        self._open()

    @classmethod
    def open(cls, root: str | Path) -> Store:
        """Open an existing store, without changing anything.

        Raises
        ------
        NotFoundError
            If the folder is not a store.
        """
        if not (Path(root) / "store.json").is_file():
            raise NotFoundError(f"{root} is not the store of a run: it has no store.json")
        store = cls.__new__(cls)
        store.root = Path(root)
        store._open()
        return store

    def _open(self) -> None:
        try:
            version = json.loads((self.root / "store.json").read_text(encoding="utf-8")).get("format_version")
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be read ({error.strerror})") from None
        except INVALID:
            raise StoreError(f"{self.root} is not a store: its store.json is damaged") from None
        _check_version(version, self.root)
        self.leases = Leases(self.root / "leases")
        self.quarantine = Quarantine(self.root / "quarantine")
        self.damage: list[Damage] = []

    @property
    def logs(self) -> Path:
        """Folder for the log of each run."""
        return self.root / "logs"

    def check_writable(self) -> None:
        """Raise `StoreError` if the store is read-only."""
        try:
            probe = self.root / "tmp" / temporary_name()
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be written ({error.strerror})") from None

    def folder(self, key: str) -> Path:
        """Return the folder of a job, finished or not."""
        return self.root / "jobs" / key[:2] / key

    def progress_file(self, key: str) -> Path:
        """Return the file in which a worker reports its progress on a job."""
        return self.root / "tmp" / f"{key}.progress"

    def progress(self, key: str) -> tuple[str, float] | None:
        """Return the stage of a job in progress and the finished fraction, from 0 to 1; None if nothing has been reported."""
        try:
            report = from_json(self.progress_file(key).read_bytes())
            return str(report["stage"]), float(report["fraction"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def has(self, key: str) -> bool:
        """Return whether a job is finished."""
        return os.path.isdir(os.path.join(self.root, "jobs", key[:2], key))  # noqa: PTH112, PTH118 - called for every job

    def finished(self) -> Iterator[str]:
        """Yield the keys of finished jobs, sorted; other files and folders, such as ``.DS_Store``, are ignored."""
        for shard in sorted(_folders(self.root / "jobs")):
            for key in sorted(_folders(self.root / "jobs" / shard)):
                if JOB_KEY.fullmatch(key) and key.startswith(shard):
                    yield key

    def finish(self, job: Job, fill: Callable[[Path], None]) -> bool:
        """Store a finished job: `fill` writes its files to a temporary folder, which is then renamed.

        Returns
        -------
        bool
            False if another process has finished the job before.
        """
        try:
            with temporary_folder(self.root / "tmp") as temporary:
                (temporary / "job.json").write_text(json.dumps(job.to_dict(), indent=1, sort_keys=True), encoding="utf-8")
                fill(temporary)
                manifest = {"format_version": FORMAT_VERSION, "files": _describe_files(temporary)}
                (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
                sync_tree(temporary)
                target = self.folder(job.key)
                target.parent.mkdir(exist_ok=True)
                if target.exists():
                    return False
                temporary.replace(target)
                sync_folder(target.parent)
            (self.root / "failed" / f"{job.key}.json").unlink(missing_ok=True)
        except OSError as error:
            if self.has(job.key):
                return False
            raise StoreError(f"{self.root}: job {job.key} could not be stored ({error.strerror})") from error
        return True

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left: temporary files, certificates of clusters, and leases and progress of ended jobs."""
        for name in ("", "tmp", "leases", "failed", "checkpoints"):
            remove_stale_temporaries(self.root / name)
        remove_stale_temporaries(self.root / CERTIFICATES, CERTIFICATE_SECONDS)
        for path in (self.root / "leases").iterdir():
            if JOB_KEY.fullmatch(path.name) and self.has(path.name) and self.leases.acquire(path.name) is not None:
                self.leases.release(path.name)
        progress_files = [*(self.root / "tmp").glob("*.progress")]
        active = {*self.leases.active()}
        for path in progress_files:
            if JOB_KEY.fullmatch(path.stem) and path.stem not in active:
                path.unlink(missing_ok=True)

    def fail(self, job: Job, error: str, traceback: str = "") -> None:
        """Record the failure of a job."""
        record = {"format_version": FORMAT_VERSION, "job": job.to_dict(), "error": error, "traceback": traceback}
        try:
            write_text(self.root / "failed" / f"{job.key}.json", json.dumps(record, indent=1), overwrite=True)
        except OSError as problem:
            raise StoreError(
                f"{self.root}: the store cannot be written ({problem.strerror}), so this failure is not recorded: {job}: {error}"
            ) from None

    def failures(self) -> dict[str, Failure]:
        """Return the records of failed jobs, by key; damaged records are skipped and added to `damage`."""
        records = {}
        for path in sorted((self.root / "failed").glob("*.json")):
            if not JOB_KEY.fullmatch(path.stem):
                continue
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if not (isinstance(record["error"], str) and isinstance(record["traceback"], str)):
                    raise ValueError("not the record of a failed job")
                _check_version(record["format_version"], path)
                failure = Failure(Job.from_dict(record["job"]), record["error"], record["traceback"])
                if failure.job.key != path.stem:
                    raise ValueError("the job does not match the file name")
                records[path.stem] = failure
            except FileNotFoundError:  # finished in the meantime
                continue
            except INVALID as error:
                self._add_damage(path, str(error))
        return records

    def job(self, key: str) -> Job | None:
        """Return a finished job; None if it is damaged, which is added to `damage`."""

        def parse(content: Any) -> Job:
            job = Job.from_dict(content)
            if job.key != key:
                raise ValueError("the job does not match the name of its folder")
            return job

        return self._read(key, "job.json", parse)

    def scores(self, key: str) -> dict[str, Any] | None:
        """Return the scores of a finished job; None if they are damaged, which is added to `damage`."""

        def parse(content: Any) -> dict[str, Any]:
            if not isinstance(content["suites"], dict):
                raise ValueError("not the scores of a job")
            return dict(content)

        return self._read(key, "scores.json", parse)

    def result(self, job: Job) -> Result | None:
        """Return the metric values of a finished job; None if it is not finished, or damaged."""
        scores = self.scores(job.key) if self.has(job.key) else None
        return None if scores is None else Result(job, {name: suite["overall"] for name, suite in scores["suites"].items()})

    def timing(self, key: str) -> dict[str, Any]:
        """Return the duration of each step of a finished job in seconds; empty if the file is damaged, which is added to `damage`."""
        path = self.folder(key) / "timing.json"
        try:
            content = path.read_bytes()
            self._check_content(key, "timing.json", content)
            timing = from_json(content)
            if not isinstance(timing["host"], str) or not all(isinstance(timing[step], int | float) for step in ("fit", "predict")):
                raise ValueError("not the durations of a job")
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._add_damage(path, str(error), is_excluded=False)
            return {}
        return dict(timing)

    def path(self, key: str, name: str) -> Path | None:
        """Return a file or folder of a finished job after verifying its checksums.

        Parameters
        ----------
        key : str
        name : str
            Such as ``"predictions.parquet"`` or ``"model"``.

        Returns
        -------
        Path or None
            None if the job has no such file, or if it is damaged, which is added to `damage`.
        """
        try:
            manifest = self._manifest(key)
            files = [file for file in manifest if file == name or file.startswith(f"{name}/")]
            for file in files:
                self._check_file(key, file, manifest[file])
        except INVALID as error:
            self._add_damage(self.folder(key), str(error))
            return None
        return self.folder(key) / name if files else None

    def verify(self, key: str, *, thorough: bool = True) -> bool:
        """Return whether a finished job is undamaged; damage is added to `damage`.

        Parameters
        ----------
        key : str
        thorough : bool
            Verify the checksums of all files. Otherwise those of ``job.json`` and ``scores.json``, and the sizes of all others.
        """
        if self.job(key) is None or self.scores(key) is None:
            return False
        try:
            for name, expected in self._manifest(key).items():
                if name not in INFORMATIVE:
                    self._check_file(key, name, expected, thorough=thorough)
        except INVALID as error:
            self._add_damage(self.folder(key), str(error))
            return False
        return True

    def repair(self) -> list[str]:
        """Move all jobs in `damage` to quarantine, so that the next run repeats them; return one message for each."""
        messages = [
            f"{damage.path} is damaged ({damage.reason}); moved to {target}"
            for damage in self.damage
            if damage.is_excluded and (target := self.quarantine.move(damage)) is not None
        ]
        self.damage = [damage for damage in self.damage if not damage.is_excluded]
        return messages

    def describe_damage(self) -> list[str]:
        """Return one message for each damaged file or job detected while reading."""
        messages = []
        for damage in self.damage:
            advice = (
                f"the job is excluded until a run repeats it (`ethobench status {self.root} --repair` moves it to quarantine)"
                if damage.is_excluded
                else "the durations of this job are excluded"
            )
            messages.append(f"{damage.path} is damaged ({damage.reason}); {advice}")
        return messages

    def _read(self, key: str, name: str, parse: Callable[[Any], T]) -> T | None:
        """Read a JSON file of a finished job: first its checksum is verified, then it is parsed."""
        path = os.path.join(self.root, "jobs", key[:2], key, name)  # noqa: PTH118 - building Path objects takes longer than reading
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                content = file.read()
            self._check_content(key, name, content)
            return parse(from_json(content))
        except (FileNotFoundError, NotADirectoryError, *INVALID) as error:
            self._add_damage(self.folder(key), str(error) if ".json" in str(error) else f"{name}: {error}")
            return None
        except OSError as error:  # not damaged: this user may not read it
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None

    def _manifest(self, key: str) -> dict[str, dict[str, Any]]:
        """Return the expected size and SHA-256 of each file of a job."""
        path = os.path.join(self.root, "jobs", key[:2], key, MANIFEST)  # noqa: PTH118 - read for every job
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                content = from_json(file.read())
            version, files = content["format_version"], content["files"]
        except FileNotFoundError:
            raise ValueError(f"{MANIFEST} is missing") from None
        except INVALID as error:
            raise ValueError(f"{MANIFEST}: {error}") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None
        _check_version(version, path)
        return dict(files)

    def _check_content(self, key: str, name: str, content: bytes) -> None:
        if hashlib.sha256(content).hexdigest() != self._manifest(key)[name]["sha256"]:
            raise ValueError(f"{name} does not match its checksum")

    def _check_file(self, key: str, name: str, expected: Mapping[str, Any], *, thorough: bool = True) -> None:
        path = self.folder(key) / name
        try:
            if path.stat().st_size != expected["size"] or (thorough and sha256_of(path) != expected["sha256"]):
                raise ValueError(f"{name} does not match its checksum")
        except FileNotFoundError:
            raise ValueError(f"{name} is missing") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None

    def _add_damage(self, path: Path, reason: str, *, is_excluded: bool = True) -> None:
        damage = Damage(path, reason, is_excluded)
        if damage not in self.damage and (path.exists() or not is_excluded):  # a job may have been moved by another process
            self.damage.append(damage)


def _check_version(version: Any, path: str | Path) -> None:
    """Refuse files of an unknown version; they are not damaged, and stay where they are."""
    if version != FORMAT_VERSION:
        raise StoreError(
            f"{path} has format_version {version}, but this version of ethobench reads {FORMAT_VERSION}; "
            "use the version of ethobench that wrote it, or another store"
        )


def _folders(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    with os.scandir(path) as entries:
        return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]


def _describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of all files in a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": sha256_of(path)} for path in files}
