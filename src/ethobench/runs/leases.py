"""Leases on jobs: one small file for each job in progress, so that no two processes run the same job.

A lease held on this machine is valid as long as its process lives. A lease held on another machine is valid as long as it is
renewed: it expires when its file has not changed for `LEASE_SECONDS` by the monotonic clock of this process, so that clocks of
different machines may differ or jump.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ethobench.core.errors import EthobenchError
from ethobench.core.files import temporary_name
from ethobench.core.processes import LockError, is_alive, machine_name, start_time, system_lock

LEASE_SECONDS = 60.0
_last_changes: dict[str, tuple[int, float]] = {}
"""Modification time of each lease of another machine, and when this process first read it."""


class StoreError(EthobenchError):
    """The store cannot be used: no space, no permission, or an unknown format version."""


@dataclass(frozen=True)
class LeaseHolder:
    """The process that holds a lease.

    Attributes
    ----------
    host : str
        Unique name of the machine.
    pid : int
    started : str, optional
        Start time of the process, which distinguishes it from a later process with the same number.
    run : str
        The run that the process works for.
    crashes : int
        Number of workers of this run that have crashed on the job before.
    """

    host: str = ""
    pid: int = 0
    started: str | None = None
    run: str = ""
    crashes: int = 0


class Leases:
    """A folder of leases.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def acquire(self, key: str, run: str = "") -> int | None:
        """Acquire the lease on a job for this process.

        Returns
        -------
        int or None
            Number of workers of the same run that have crashed on the job; None if another process holds the lease.
        """
        path = self.folder / key
        try:
            if _create(path, _this_process(run, 0)):
                return 0
            if self._is_valid(path):
                return None
            return self._take_over(path, run)
        except OSError as error:
            raise StoreError(f"{self.folder.parent}: the store cannot be written ({error.strerror})") from None

    def _take_over(self, path: Path, run: str) -> int | None:
        """Take over an expired lease; a lock ensures that only one process does."""
        with self._take_over_lock(path) as is_locked:
            if not is_locked or not path.exists() or self._is_valid(path):
                return None
            previous = _read_holder(path)
            crashes = previous.crashes + 1 if run and previous.run == run else 0
            new = path.with_name(temporary_name())
            new.write_text(json.dumps(asdict(_this_process(run, crashes))), encoding="utf-8")
            new.replace(path)
            return crashes

    @contextmanager
    def _take_over_lock(self, path: Path) -> Iterator[bool]:
        """Lock a lease while it is taken over; yields whether the lock was acquired.

        A lock of the operating system is released whenever its process dies. Where there are no such locks, a file is used, and a file
        left by a dead process must be removed first.
        """
        with suppress(LockError), system_lock(path.with_name(f"{path.name}.takeover")):
            yield True
            return
        lock = path.with_name(f"{path.name}.lock")
        if not _create(lock, _this_process("", 0)):
            if not self._is_valid(lock):
                lock.unlink(missing_ok=True)
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)

    def renew(self, key: str) -> None:
        """Renew the lease on a job."""
        (self.folder / key).touch(exist_ok=True)

    def release(self, key: str) -> None:
        """Release the lease on a job."""
        (self.folder / key).unlink(missing_ok=True)

    def active(self) -> list[str]:
        """Return the keys of all jobs with a valid lease."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path.name for path in paths if "." not in path.name and self._is_valid(path))

    def exists(self, key: str) -> bool:
        """Return whether a process has started a job, be it alive or dead."""
        return (self.folder / key).exists()

    def _is_valid(self, path: Path) -> bool:
        """Return whether the holder of a lease is alive."""
        holder = _read_holder(path)
        if holder.host == machine_name():
            return is_alive(holder.pid, holder.started)
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        now = time.monotonic()
        last_change, since = _last_changes.get(str(path), (None, now))
        if last_change != changed:
            _last_changes[str(path)] = (changed, now)
            return True
        return now - since < LEASE_SECONDS


def _create(path: Path, holder: LeaseHolder) -> bool:
    """Create a lease unless it exists; file and content appear together, so that a killed process leaves no lease without a holder."""
    if path.exists():
        return False
    content = json.dumps(asdict(holder))
    temporary = path.with_name(temporary_name())
    temporary.write_text(content, encoding="utf-8")
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        return _create_in_place(path, content)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _create_in_place(path: Path, content: str) -> bool:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _read_holder(path: Path) -> LeaseHolder:
    """Read the holder of a lease; a lease that is damaged or just being written has an unknown holder."""
    try:
        return LeaseHolder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return LeaseHolder()


def _this_process(run: str, crashes: int) -> LeaseHolder:
    return LeaseHolder(machine_name(), os.getpid(), start_time(os.getpid()), run, crashes)
