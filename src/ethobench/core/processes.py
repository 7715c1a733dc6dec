"""Which process something belongs to, and whether that process is still alive."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import lru_cache
from pathlib import Path


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
