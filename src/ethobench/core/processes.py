"""Processes of this machine: which are alive, locks between them, and how many cores this one may use."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from ethobench.core.errors import EthobenchError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LockError(EthobenchError):
    """The system or the file system has no locks."""


@lru_cache(maxsize=1)
def machine_name() -> str:
    """Name this machine, this boot of it, and this container: within it process numbers are unique."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:  # systems without /proc
        pass
    return " ".join(parts)


@lru_cache(maxsize=1)
def machine_digest() -> str:
    """Return eight hexadecimal digits that stand for `machine_name` in file names."""
    return hashlib.blake2b(machine_name().encode(), digest_size=4).hexdigest()


def is_alive(pid: int, started: str | None) -> bool:
    """Whether a process of this machine is alive.

    Parameters
    ----------
    pid : int
    started : str, optional
        When it began, from `start_time`, so that another process that was given the same number is not taken for it.
    """
    return start_time(pid) == started if started is not None else _is_running(pid)


@contextmanager
def system_lock(path: Path) -> Iterator[None]:
    """Keep other processes and threads out that lock the same file; the lock is free again when this process dies.

    Parameters
    ----------
    path : Path
        Made for the lock, and removed afterwards.

    Raises
    ------
    LockError
        Where the system or the file system has no locks.
    """
    handle = _locked_file(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while the lock is held, so that nobody else's file is removed
        os.close(handle)


def _locked_file(path: Path) -> int:
    """Open and lock the file that has this name once it is locked: the owner before may have removed the one that was opened."""
    if fcntl is None:
        raise LockError("this system has no locks of files")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(handle)
            path.unlink(missing_ok=True)
            raise LockError(f"{path}: {error.strerror}") from error
        os.close(handle)


def start_time(pid: int) -> str | None:
    """Return when a process began; None if it is dead (also if nobody has noticed yet), or where the system does not tell."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return None if state in "ZX" else rest[18]
    except (OSError, ValueError, IndexError):
        return None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def usable_cores() -> int:
    """Return how many cores this process may use; a batch system or ``taskset`` may have given it fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def idle_cores() -> int:
    """Return how many cores other programs leave to this process, one at least.

    Threads that wait for each other are slowed down by every core that is busy with something else.
    """
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(usable_cores(), round(usable_cores() - busy)))
