"""How many cores there are to use."""

from __future__ import annotations

import os


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
