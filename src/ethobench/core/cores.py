"""How many cores there are to use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use; a batch system or ``taskset`` may have given it fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
