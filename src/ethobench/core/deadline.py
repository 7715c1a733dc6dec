"""A time by which work must end, measured with the clock while the work goes on."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ethobench.core.errors import EthobenchError

Clock = Callable[[], float]
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class OutOfTimeError(EthobenchError):
    """There is not enough time left for a piece of work."""


class Deadline:
    """A time by which work must end; stages ask how much of it is left, and take shares of it.

    Parameters
    ----------
    seconds : float, optional
        From now on; without it there is no limit.
    clock : callable
        Returns seconds, as `time.monotonic` does. That clock is the same for all processes of a machine.
    elapsed : float
        Seconds of it that have passed already.

    Attributes
    ----------
    start, end : float
        When it was set and when it comes, on the clock; `end` is infinite without a limit.

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
        """Whether there is a limit at all."""
        return math.isfinite(self.end)

    @property
    def elapsed(self) -> float:
        """Seconds since it was set."""
        return self.clock() - self.start

    @property
    def remaining(self) -> float:
        """Seconds until it comes; negative once it has passed."""
        return self.end - self.clock()

    @property
    def has_passed(self) -> bool:
        """Whether it has passed."""
        return self.remaining <= 0

    @property
    def fraction_elapsed(self) -> float:
        """The part of the time, from 0 to 1, that has passed; 0 without a limit."""
        return min(1.0, self.elapsed / max(self.end - self.start, 1e-9)) if self.is_limited else 0.0

    def until(self, end: float) -> Deadline:
        """Return a deadline from now until a time on the same clock, or until this one if that is earlier."""
        deadline = Deadline(clock=self.clock)
        deadline.end = min(end, self.end)
        return deadline

    def share(self, fraction: float) -> Deadline:
        """Return a deadline from now until a fraction of the time left has passed."""
        now = self.clock()
        return self.until(now + fraction * max(self.end - now, 0.0) if self.is_limited else math.inf)

    def before(self, seconds: float) -> Deadline:
        """Return a deadline from now until some seconds before this one."""
        return self.until(self.end - seconds)


def seconds_since_start() -> float:
    """Return how long this process has been running, imports included; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # after the machine was started, as CLOCK_BOOTTIME has it
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, AttributeError, IndexError, ValueError):
        return 0.0


def parse_seconds(text: str) -> float:
    """Read a duration such as 90s, 10m, 1.5h, or 1h30m, in seconds.

    Examples
    --------
    >>> parse_seconds("1m30s"), parse_seconds("2h")
    (90.0, 7200.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise EthobenchError(f"{text!r} is not a duration: give 90s, 10m or 2h")
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not seconds > 0:
        raise EthobenchError(f"{text!r} is not a duration: it must be longer than 0")
    return seconds


def format_seconds(seconds: float) -> str:
    """Write a duration for people: 45 s, 2 min, 1 min 30 s, 1 h 5 min.

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
