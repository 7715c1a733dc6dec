"""Processes of this machine: which are alive, locks between them, and how many cores this one may use."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from ethobench.core.errors import EthobenchError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


_max_threads: ContextVar[int | None] = ContextVar("max_threads", default=None)


class LockError(EthobenchError):
    """The system or the file system does not support file locks."""


@lru_cache(maxsize=1)
def machine_name() -> str:
    """Return a name for this machine, boot and container, within which process ids are unique."""
    names = [socket.gethostname()]
    try:
        names.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        names.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:  # systems without /proc
        pass
    return " ".join(names)


@lru_cache(maxsize=1)
def machine_digest() -> str:
    """Return a digest of `machine_name` for file names, eight hexadecimal digits."""
    return hashlib.blake2b(machine_name().encode(), digest_size=4).hexdigest()


def is_alive(pid: int, started: str | None) -> bool:
    """Whether a process of this machine is alive.

    Parameters
    ----------
    pid : int
    started : str, optional
        Its start time, from `start_time`, to distinguish it from a later process with the same id.
    """
    return start_time(pid) == started if started is not None else _is_running(pid)


@contextmanager
def system_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes and threads; the system releases it when this process dies.

    Parameters
    ----------
    path : Path
        Lock file; created, and removed afterwards.

    Raises
    ------
    LockError
        If the system or the file system does not support file locks.
    """
    handle = _locked_file(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while the lock is held, so that no file of another process is removed
        os.close(handle)


def _locked_file(path: Path) -> int:
    """Open and lock a file; try again if its previous owner removed it between the two steps."""
    if fcntl is None:
        raise LockError("this system does not support file locks")
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
    """Return the start time of a process; None if it is dead (or a zombie), or if the system does not provide it."""
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
    """Return the number of cores this process may use; a batch system or ``taskset`` may restrict it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Return the number of threads that a fit may use: ``OMP_NUM_THREADS``, which workers of a run set, or all usable cores.

    In a block of `limited_threads`, at most its number.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "")
    count = int(setting) if setting.isdigit() and int(setting) else usable_cores()
    return min(count, _max_threads.get() or count)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Let fits in the block use at most this many threads.

    Examples
    --------
    >>> with limited_threads(1):
    ...     thread_count()
    1
    """
    token = _max_threads.set(max(count, 1))
    try:
        yield
    finally:
        _max_threads.reset(token)


def idle_cores() -> int:
    """Return the number of cores that other programs do not use, at least one.

    Threads that wait for each other are slowed down by every core that is busy with another program.
    """
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(usable_cores(), round(usable_cores() - busy)))
