"""What is done: a folder in which a finished job appears whole or not at all.

``jobs/ab/abcdef.../`` holds ``job.json``, ``scores.json``, ``predictions.parquet``, ``timing.json`` and ``log.txt`` of a finished job;
``failed/`` the tracebacks of those that failed; ``claims/`` who is working on what; ``quarantine/`` what was found damaged.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError
from ethobench.runs.plan import Job, Result

LEASE = 120.0
LAYOUT = 1


class StoreError(EthobenchError):
    """The store cannot be used: no space, no permission, or another layout."""


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
            for name in ("jobs", "failed", "claims", "quarantine", "tmp"):
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
            raise StoreError(f"{self.root} has layout {layout}, this version knows {LAYOUT}; update ethobench")

    def folder(self, key: str) -> Path:
        """Return where a finished job lies or would lie."""
        return self.root / "jobs" / key[:2] / key

    def has(self, key: str) -> bool:
        """Whether a job is finished."""
        return self.folder(key).is_dir()

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
        self._write(
            self.root / "failed" / f"{job.key}.json", json.dumps({"job": job.to_dict(), "error": error, "traceback": log}, indent=1)
        )

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return what is known of failed jobs."""
        return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((self.root / "failed").glob("*.json"))}

    def read(self, key: str) -> dict[str, Any] | None:
        """Return a finished job's ``job`` and ``scores``; a damaged one is put into quarantine, and None returned."""
        folder = self.folder(key)
        try:
            job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
            scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
            if Job.from_dict(job).key != key or not isinstance(scores["suites"], dict):
                raise ValueError("it does not fit its name")
        except (OSError, ValueError, KeyError, TypeError):
            self._quarantine(folder)
            return None
        return {"job": job, "scores": scores}

    def result(self, job: Job) -> Result | None:
        """Return the figures of a finished job; None if it is not finished, or was damaged."""
        found = self.read(job.key) if self.has(job.key) else None
        return None if found is None else Result(job, {name: suite["overall"] for name, suite in found["scores"]["suites"].items()})

    def claim(self, key: str) -> bool:
        """Take a job for this process; False if a living process has it."""
        path = self.root / "claims" / key
        mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())})
        for _ in range(2):
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(mine)
            except FileExistsError:
                if self._is_alive(path):
                    return False
                path.unlink(missing_ok=True)
                continue
            return True
        return False

    def renew(self, key: str) -> None:
        """Prolong the lease of a claim."""
        (self.root / "claims" / key).touch(exist_ok=True)

    def release(self, key: str) -> None:
        """Give a claim back."""
        (self.root / "claims" / key).unlink(missing_ok=True)

    def claimed(self) -> list[str]:
        """List the jobs that living processes work on."""
        return sorted(path.name for path in (self.root / "claims").iterdir() if self._is_alive(path))

    def _is_alive(self, path: Path) -> bool:
        """Whether a claim's owner lives: by its process on this machine, by its lease elsewhere."""
        try:
            owner = json.loads(path.read_text(encoding="utf-8"))
            host, pid, started = owner["host"], int(owner["pid"]), owner["started"]
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError):
            host, pid, started = "", 0, None
        if host == socket.gethostname():
            return _started(pid) == started if started is not None else _is_running(pid)
        return self._now() - path.stat().st_mtime < LEASE

    def _now(self) -> float:
        """Return the time by the clock that also stamps the claims, so that clocks may differ or jump."""
        handle, name = tempfile.mkstemp(dir=self.root / "tmp")
        os.close(handle)
        now = Path(name).stat().st_mtime
        Path(name).unlink()
        return now

    def _quarantine(self, folder: Path) -> None:
        if folder.exists():
            target = self.root / "quarantine" / f"{folder.name}-{time.time_ns()}"
            folder.replace(target)

    def _write(self, path: Path, text: str) -> None:
        """Write a small file whole or not at all."""
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
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


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _started(pid: int) -> str | None:
    """Return when a process began, so that a reused number is not taken for it; None where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
