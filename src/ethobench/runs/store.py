"""What is done: a folder in which a finished job appears whole or not at all.

``jobs/ab/abcdef.../`` holds ``job.json``, ``scores.json``, ``predictions.parquet``, ``timing.json`` and ``log.txt`` of a finished job, and
``manifest.json`` with the size and SHA-256 of each of them, which are verified when a file is used;
``failed/`` the tracebacks of those that failed; ``claims/`` who is working on what; ``quarantine/`` what was found damaged;
``logs/`` what each run did, line by line; ``search/`` what searches of hyper-parameters have learnt; ``checkpoints/`` trainings under way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ethobench.core.files import (
    remove_stale_temporaries,
    sha256_of,
    sync_folder,
    sync_tree,
    temporary_folder,
    temporary_name,
    write_text,
)
from ethobench.runs.claims import Claims, StoreError
from ethobench.runs.plan import Job, Result
from ethobench.runs.workers import CERTIFICATE_SECONDS, CERTIFICATES

LAYOUT = 2
MANIFEST = "manifest.json"
INFORMATIVE = ("timing.json", "log.txt")
"""Files that no score depends on: damage to them is reported, but the job is not done again for it."""

_KEY = re.compile(r"[0-9a-f]{24}")


class Store:
    """The folder of a run; many processes may use it at once.

    Parameters
    ----------
    root : Path
        Made if it is not there.

    Attributes
    ----------
    damaged : list of str
        What was found damaged while reading, and what became of it.
    unverified : set of str
        Keys of jobs that were read and have no manifest, because an earlier version stored them: their files cannot be verified.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        try:
            for name in ("jobs", "failed", "claims", "quarantine", "tmp", "logs", "search", "checkpoints"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            mark = self.root / "store.json"
            if not mark.exists():
                write_text(mark, json.dumps({"layout": LAYOUT}), overwrite=True)
            layout = json.loads(mark.read_text(encoding="utf-8"))["layout"]
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be written ({error.strerror})") from None
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{self.root} is no store: its store.json is damaged") from None
        if layout != LAYOUT:
            raise StoreError(f"{self.root} has layout {layout}, this version knows {LAYOUT}; use the version of ethobench that made it")
        self.claims = Claims(self.root / "claims")
        self.damaged: list[str] = []
        self.unverified: set[str] = set()

    def check_writable(self) -> None:
        """Refuse a store that can only be read."""
        try:
            probe = self.root / "tmp" / temporary_name()
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be written ({error.strerror})") from None

    def folder(self, key: str) -> Path:
        """Return where a finished job lies or would lie."""
        return self.root / "jobs" / key[:2] / key

    def progress_file(self, key: str) -> Path:
        """Return where a worker keeps how far it is with a job."""
        return self.root / "tmp" / f"{key}.progress"

    def progress(self, key: str) -> tuple[str, float] | None:
        """Return the stage of a job under way, and the part of it that is done, from 0 to 1; None if nothing was reported yet."""
        try:
            found = from_json(self.progress_file(key).read_bytes())
            return str(found["stage"]), float(found["fraction"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def has(self, key: str) -> bool:
        """Whether a job is finished."""
        return os.path.isdir(os.path.join(self.root, "jobs", key[:2], key))  # noqa: PTH112, PTH118 - asked for every job

    def finished(self) -> Iterator[str]:
        """Yield the keys of finished jobs, sorted; other files and folders, such as ``.DS_Store``, are ignored."""
        for shard in sorted(_folders(self.root / "jobs")):
            for key in sorted(_folders(self.root / "jobs" / shard)):
                if _KEY.fullmatch(key) and key.startswith(shard):
                    yield key

    def quarantined(self) -> list[str]:
        """List what was put aside because it was damaged."""
        return sorted(path.name for path in (self.root / "quarantine").iterdir() if _KEY.match(path.name))

    def finish(self, job: Job, fill: Callable[[Path], None]) -> bool:
        """Let `fill` write a job's files into a folder, which then appears at once; False if somebody else was faster."""
        try:
            with temporary_folder(self.root / "tmp") as temporary:
                (temporary / "job.json").write_text(json.dumps(job.to_dict(), indent=1, sort_keys=True), encoding="utf-8")
                fill(temporary)
                (temporary / MANIFEST).write_text(json.dumps({"files": _describe_files(temporary)}, indent=1), encoding="utf-8")
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
        """Remove what killed processes left: temporary files, certificates of clusters, and traces of jobs that nobody works on."""
        for name in ("", "tmp", "claims", "failed", "checkpoints"):
            remove_stale_temporaries(self.root / name)
        remove_stale_temporaries(self.root / CERTIFICATES, CERTIFICATE_SECONDS)
        for path in (self.root / "claims").iterdir():
            if _KEY.fullmatch(path.name) and self.has(path.name) and self.claims.take(path.name) is not None:
                self.claims.release(path.name)
        progress_files = [*(self.root / "tmp").glob("*.progress")]
        living = {*self.claims.living()}
        for path in progress_files:
            if _KEY.fullmatch(path.stem) and path.stem not in living:
                path.unlink(missing_ok=True)

    def fail(self, job: Job, error: str, log: str = "") -> None:
        """Keep why a job failed."""
        told = json.dumps({"job": job.to_dict(), "error": error, "traceback": log}, indent=1)
        try:
            write_text(self.root / "failed" / f"{job.key}.json", told, overwrite=True)
        except OSError as problem:
            raise StoreError(f"{self.root}: the store cannot be written ({problem.strerror}), so this is lost: {job}: {error}") from None

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return the records of failed jobs, by key; a damaged record is put into quarantine and named in `damaged`."""
        records = {}
        for path in sorted((self.root / "failed").glob("*.json")):
            if not _KEY.fullmatch(path.stem):
                continue
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if not (isinstance(record["error"], str) and isinstance(record["traceback"], str)):
                    raise ValueError("it is not a record of a failure")
                if Job.from_dict(record["job"]).key != path.stem:
                    raise ValueError("the job does not match the file name")
                records[path.stem] = record
            except FileNotFoundError:  # done in the meantime
                continue
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self._quarantine(path, str(error))
        return records

    def job(self, key: str) -> dict[str, Any] | None:
        """Return the job of a finished one; None for a damaged one, put into quarantine and named in `damaged`."""
        return self._read(key, "job.json", lambda found: Job.from_dict(found).key == key)

    def scores(self, key: str) -> dict[str, Any] | None:
        """Return the scores of a finished job; None for a damaged one, put into quarantine and named in `damaged`."""
        return self._read(key, "scores.json", lambda found: isinstance(found["suites"], dict))

    def read(self, key: str) -> dict[str, Any] | None:
        """Return a finished job's ``job`` and ``scores``; None if either is damaged."""
        job = self.job(key)
        scores = self.scores(key) if job is not None else None
        return None if scores is None else {"job": job, "scores": scores}

    def result(self, job: Job) -> Result | None:
        """Return the figures of a finished job; None if it is not finished, or was damaged."""
        found = self.scores(job.key) if self.has(job.key) else None
        return None if found is None else Result(job, {name: suite["overall"] for name, suite in found["suites"].items()})

    def timing(self, key: str) -> dict[str, Any]:
        """Return how long the steps of a finished job took, in seconds; empty, and named in `damaged`, if the file is damaged."""
        path = self.folder(key) / "timing.json"
        try:
            content = path.read_bytes()
            timing = from_json(content)
            self._check_content(key, "timing.json", content)
            if not isinstance(timing["host"], str) or not all(isinstance(timing[step], int | float) for step in ("fit", "predict")):
                raise ValueError("not the times of a job")
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._report_damage(f"{path} is damaged ({error}); the times of this job are left out")
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
            None if the job has no such file, or if it is damaged: then the job is put into quarantine and named in `damaged`.
        """
        path = self.folder(key) / name
        try:
            manifest = self._manifest(key)
            if manifest is not None:
                parts = [part for part in manifest if part == name or part.startswith(f"{name}/")]
                for part in parts:
                    self._check_file(key, part, manifest[part])
                return path if parts else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._quarantine(self.folder(key), str(error))
            return None
        return path if path.exists() else None

    def verify(self, key: str, *, thorough: bool = True) -> bool:
        """Return whether a finished job is undamaged; otherwise it is put into quarantine and named in `damaged`.

        Parameters
        ----------
        key : str
        thorough : bool
            Verify the checksums of all files. Otherwise those of ``job.json`` and ``scores.json``, and the sizes of all others.
        """
        if self.job(key) is None or self.scores(key) is None:
            return False
        try:
            manifest = self._manifest(key) or {}
            for name, expected in manifest.items():
                if name not in INFORMATIVE:
                    self._check_file(key, name, expected, thorough=thorough)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._quarantine(self.folder(key), str(error))
            return False
        return True

    def _read(self, key: str, name: str, fits: Callable[[Any], bool]) -> dict[str, Any] | None:
        path = os.path.join(self.root, "jobs", key[:2], key, name)  # noqa: PTH118 - paths as objects would cost more than reading
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                content = file.read()
            found = from_json(content)
            if not fits(found):
                raise ValueError(f"{name} does not fit its name")
            self._check_content(key, name, content)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._quarantine(self.folder(key), str(error) if name in str(error) else f"{name}: {error}")
            return None
        except OSError as error:  # it may be sound, and not ours to read
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None
        return found if isinstance(found, dict) else None

    def _manifest(self, key: str) -> dict[str, dict[str, Any]] | None:
        """Return the expected size and SHA-256 of each file of a job; None for a job that was stored without."""
        path = os.path.join(self.root, "jobs", key[:2], key, MANIFEST)  # noqa: PTH118 - read for every job
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                files: dict[str, dict[str, Any]] = from_json(file.read())["files"]
        except FileNotFoundError:
            self.unverified.add(key)
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{MANIFEST}: {error}") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None
        return files

    def _check_content(self, key: str, name: str, content: bytes) -> None:
        manifest = self._manifest(key)
        if manifest is not None and hashlib.sha256(content).hexdigest() != manifest[name]["sha256"]:
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

    def _quarantine(self, path: Path, error: str) -> None:
        """Put a damaged job, or a damaged record of a failure, aside; the next run does the job again."""
        if not path.exists():
            return
        target = self.root / "quarantine" / f"{path.name}-{time.time_ns()}"
        try:
            path.replace(target)
            where = f"put aside into {target}"
        except OSError as problem:
            where = f"it cannot be put aside ({problem.strerror})"
        self._report_damage(f"{path} is damaged ({error}); {where}, and not counted until it is done again")

    def describe_damage(self) -> list[str]:
        """Say what was found damaged while reading, and how many jobs cannot be verified."""
        messages = list(self.damaged)
        if self.unverified:
            jobs = "1 job was" if len(self.unverified) == 1 else f"{len(self.unverified)} jobs were"
            messages.append(f"{self.root}: {jobs} stored without checksums by an earlier version, so damage to them may go unnoticed")
        return messages

    def _report_damage(self, message: str) -> None:
        if message not in self.damaged:
            self.damaged.append(message)


def _folders(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]


def _describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of all files in a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": sha256_of(path)} for path in files}
