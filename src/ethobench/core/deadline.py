"""Deadlines of long computations, and parsing and formatting of durations."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ethobench.core.errors import EthobenchError, ParameterError

Clock = Callable[[], float]
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class OutOfTimeError(EthobenchError, TimeoutError):
    """The remaining time is too short for a computation."""


class Deadline:
    """A time by which a computation must end.

    Parameters
    ----------
    seconds : float, optional
        Time limit from now on. Default: no limit.
    clock : callable
        Returns seconds, as `time.monotonic` does, which is the same for all processes of a machine.
    elapsed : float
        Seconds of the limit that have passed already.

    Attributes
    ----------
    start, end : float
        Start and end on the clock; `end` is infinite without a limit.

    Examples
    --------
    >>> now = 100.0
    >>> deadline = Deadline(60, clock=lambda: now)
    >>> now = 120.0
    >>> deadline.elapsed, deadline.remaining, deadline.share(0.5).remaining
    (20.0, 40.0, 20.0)
    >>> Deadline().remaining
    inf
    """

    def __init__(self, seconds: float | None = None, *, clock: Clock = time.monotonic, elapsed: float = 0.0) -> None:
        self.clock = clock
        self.start = clock() - elapsed
        self.end = math.inf if seconds is None else self.start + seconds

    def __repr__(self) -> str:
        return f"Deadline({format_seconds(self.remaining)} left)" if self.is_limited else "Deadline()"

    @property
    def is_limited(self) -> bool:
        """Whether there is a time limit."""
        return math.isfinite(self.end)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @property
    def remaining(self) -> float:
        """Seconds until the end; negative once it has passed."""
        return self.end - self.clock()

    @property
    def has_passed(self) -> bool:
        """Whether the end has passed."""
        return self.remaining <= 0

    @property
    def fraction_elapsed(self) -> float:
        """Fraction of the time that has passed, from 0 to 1; 0 without a limit."""
        return min(1.0, self.elapsed / max(self.end - self.start, 1e-9)) if self.is_limited else 0.0

    def until(self, end: float) -> Deadline:
        """Return a deadline from now until a time on the same clock, or until the end of this one if that is earlier."""
        deadline = Deadline(clock=self.clock)
        deadline.end = min(end, self.end)
        return deadline

    def share(self, fraction: float) -> Deadline:
        """Return a deadline for a fraction of the remaining time, from now on."""
        now = self.clock()
        return self.until(now + fraction * max(self.end - now, 0.0) if self.is_limited else math.inf)

    def before(self, seconds: float) -> Deadline:
        """Return a deadline that ends some seconds before this one."""
        return self.until(self.end - seconds)


def seconds_since_start() -> float:
    """Return for how many seconds this process has been running, including imports; 0 if the system does not provide it."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # seconds since boot, like CLOCK_BOOTTIME
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, AttributeError, IndexError, ValueError):
        return 0.0


def parse_seconds(text: str) -> float:
    """Parse a duration such as 90s, 10m, 1.5h or 1h30m, in seconds.

    Examples
    --------
    >>> parse_seconds("1m30s"), parse_seconds("2h")
    (90.0, 7200.0)
    """
    components = re.findall(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not components or "".join(number + unit for number, unit in components) != text.strip():
        raise ParameterError(f"{text!r} is not a duration; write 90s, 10m or 2h")
    seconds = sum(float(number) * UNITS[unit] for number, unit in components)
    if not seconds > 0:
        raise ParameterError(f"{text!r} is not a duration; it must be > 0")
    return seconds


def format_seconds(seconds: float) -> str:
    """Format a duration: 45 s, 2 min, 1 min 30 s, 1 h 5 min.

    Examples
    --------
    >>> format_seconds(44.6), format_seconds(90), format_seconds(120), format_seconds(3900)
    ('45 s', '1 min 30 s', '2 min', '1 h 5 min')
    """
    total = max(round(seconds), 0)
    if total >= 3600:
        hours, minutes = divmod(round(total / 60), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    minutes, rest = divmod(total, 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
