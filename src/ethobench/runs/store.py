"""What is done: a folder in which a finished job appears whole or not at all.

``jobs/ab/abcdef.../`` holds ``job.json``, ``scores.json``, ``predictions.parquet``, ``timing.json`` and ``log.txt`` of a finished job;
``failed/`` the tracebacks of those that failed; ``claims/`` who is working on what; ``quarantine/`` what was found damaged;
``logs/`` what each run did, line by line; ``search/`` what searches of hyper-parameters have learnt; ``checkpoints/`` trainings under way.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ethobench.runs.claims import Claims, StoreError
from ethobench.runs.plan import Job, Result

LAYOUT = 2


class Store:
    """The folder of a run; many processes may use it at once.

    Parameters
    ----------
    root : Path
        Made if it is not there.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        try:
            for name in ("jobs", "failed", "claims", "quarantine", "tmp", "logs", "search", "checkpoints"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            mark = self.root / "store.json"
            if not mark.exists():
                self._write(mark, json.dumps({"layout": LAYOUT}))
            layout = json.loads(mark.read_text(encoding="utf-8"))["layout"]
        except OSError as error:
            raise StoreError(f"{self.root}: the store cannot be written ({error.strerror})") from None
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{self.root} is no store: its store.json is damaged") from None
        if layout != LAYOUT:
            raise StoreError(f"{self.root} has layout {layout}, this version knows {LAYOUT}; use the version of ethobench that made it")
        self.claims = Claims(self.root / "claims")
        self.damaged: list[str] = []

    def check_writable(self) -> None:
        """Refuse a store that can only be read."""
        try:
            handle, name = tempfile.mkstemp(dir=self.root / "tmp")
            os.close(handle)
            Path(name).unlink()
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
        """Yield the keys of finished jobs, sorted."""
        for shard in sorted((self.root / "jobs").iterdir()):
            yield from sorted(path.name for path in shard.iterdir())

    def finish(self, job: Job, fill: Callable[[Path], None]) -> bool:
        """Let `fill` write a job's files into a folder, which then appears at once; False if somebody else was faster."""
        temporary = Path(tempfile.mkdtemp(dir=self.root / "tmp", prefix=f"{job.key}."))
        try:
            self._write(temporary / "job.json", json.dumps(job.to_dict(), indent=1, sort_keys=True))
            fill(temporary)
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
            target = self.folder(job.key)
            target.parent.mkdir(exist_ok=True)
            if target.exists():
                return False
            temporary.chmod(0o755)
            temporary.replace(target)
            _sync(target.parent)
            (self.root / "failed" / f"{job.key}.json").unlink(missing_ok=True)
        except OSError as error:
            if self.has(job.key):
                return False
            raise StoreError(f"{self.root}: job {job.key} could not be stored ({error.strerror})") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return True

    def fail(self, job: Job, error: str, log: str = "") -> None:
        """Keep why a job failed."""
        told = json.dumps({"job": job.to_dict(), "error": error, "traceback": log}, indent=1)
        try:
            self._write(self.root / "failed" / f"{job.key}.json", told)
        except OSError as problem:
            raise StoreError(f"{self.root}: the store cannot be written ({problem.strerror}), so this is lost: {job}: {error}") from None

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return what is known of failed jobs."""
        return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((self.root / "failed").glob("*.json"))}

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

    def _read(self, key: str, name: str, fits: Callable[[Any], bool]) -> dict[str, Any] | None:
        path = os.path.join(self.root, "jobs", key[:2], key, name)  # noqa: PTH118 - paths as objects would cost more than reading
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                found = from_json(file.read())
            if not fits(found):
                raise ValueError("it does not fit its name")
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._quarantine(self.folder(key), f"{name}: {error}")
            return None
        except OSError as error:  # it may be sound, and not ours to read
            raise StoreError(f"{path} cannot be read ({error.strerror})") from None
        return found if isinstance(found, dict) else None

    def _quarantine(self, folder: Path, error: str) -> None:
        if not folder.exists():
            return
        target = self.root / "quarantine" / f"{folder.name}-{time.time_ns()}"
        try:
            folder.replace(target)
            where = f"put aside into {target}"
        except OSError as problem:
            where = f"it cannot be put aside ({problem.strerror})"
        self.damaged.append(f"{folder} is damaged ({error}); {where}, and not counted until it is done again")

    def _write(self, path: Path, text: str) -> None:
        """Write a small file whole or not at all."""
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # mkstemp's own mode would hide it from colleagues
        Path(name).replace(path)


def _sync(path: Path) -> None:
    """Make sure that a file or folder is on the disk; folders cannot be synced everywhere."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
