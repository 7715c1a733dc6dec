"""Who works on what: one small file per job that is under way.

A claim on this machine lives as long as its process. One of another machine lives as long as it is renewed: it is given up when
its file has not changed for `LEASE` seconds by this process's own steady clock, so clocks may differ or jump.
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

LEASE = 60.0
_seen: dict[str, tuple[int, float]] = {}


class StoreError(EthobenchError):
    """The store cannot be used: no space, no permission, or another layout."""


@dataclass(frozen=True)
class Owner:
    """Whose a claim is.

    Attributes
    ----------
    host : str
        The machine, told apart from its namesakes.
    pid : int
    started : str, optional
        When the process began, so that a reused number is not taken for it.
    run : str
        The run for which it works.
    deaths : int
        How many workers of this run have died at the job before.
    """

    host: str = ""
    pid: int = 0
    started: str | None = None
    run: str = ""
    deaths: int = 0


class Claims:
    """The folder of claims.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, key: str, run: str = "") -> int | None:
        """Take a job for this process.

        Returns
        -------
        int or None
            How many workers of the same run have died at it; None if somebody has it.
        """
        path = self.folder / key
        try:
            if _create(path, _myself(run, 0)):
                return 0
            if self._is_alive(path):
                return None
            return self._take_over(path, run)
        except OSError as error:
            raise StoreError(f"{self.folder.parent}: the store cannot be written ({error.strerror})") from None

    def _take_over(self, path: Path, run: str) -> int | None:
        """Take the claim of a dead owner; a lock makes sure that only one process does."""
        with self._take_over_lock(path) as is_mine:
            if not is_mine or not path.exists() or self._is_alive(path):
                return None
            dead = _owner(path)
            deaths = dead.deaths + 1 if run and dead.run == run else 0
            new = path.with_name(temporary_name())
            new.write_text(json.dumps(asdict(_myself(run, deaths))), encoding="utf-8")
            new.replace(path)
            return deaths

    @contextmanager
    def _take_over_lock(self, path: Path) -> Iterator[bool]:
        """Lock a claim for the time of a take-over; tells whether that succeeded.

        The system's lock is free again when its process dies, at whatever moment. Where there is none, the lock is a file, and one that
        a dead process left must be removed first.
        """
        with suppress(LockError), system_lock(path.with_name(f"{path.name}.takeover")):
            yield True
            return
        lock = path.with_name(f"{path.name}.lock")
        if not _create(lock, _myself("", 0)):
            if not self._is_alive(lock):
                lock.unlink(missing_ok=True)
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)

    def renew(self, key: str) -> None:
        """Prolong the lease of a claim."""
        (self.folder / key).touch(exist_ok=True)

    def release(self, key: str) -> None:
        """Give a claim back."""
        (self.folder / key).unlink(missing_ok=True)

    def living(self) -> list[str]:
        """List the jobs that processes work on."""
        return sorted(path.name for path in self.folder.iterdir() if "." not in path.name and self._is_alive(path))

    def begun(self, key: str) -> bool:
        """Whether somebody has begun a job, alive or not."""
        return (self.folder / key).exists()

    def _is_alive(self, path: Path) -> bool:
        """Whether a claim's owner lives."""
        owner = _owner(path)
        if owner.host == machine_name():
            return is_alive(owner.pid, owner.started)
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        now = time.monotonic()
        known, since = _seen.get(str(path), (None, now))
        if known != changed:
            _seen[str(path)] = (changed, now)
            return True
        return now - since < LEASE


def _create(path: Path, owner: Owner) -> bool:
    """Make a claim unless there is one; it appears together with its owner, so that a kill leaves none whose owner is unknown."""
    if path.exists():
        return False
    content = json.dumps(asdict(owner))
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


def _owner(path: Path) -> Owner:
    """Read whose a claim is; one that is just being written, or damaged, is nobody's we know."""
    try:
        return Owner(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Owner()


def _myself(run: str, deaths: int) -> Owner:
    return Owner(machine_name(), os.getpid(), start_time(os.getpid()), run, deaths)
