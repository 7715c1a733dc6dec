"""Times of day style: "MM:SS", "HH:MM:SS", with or without a fraction of a second."""

from __future__ import annotations

import re

CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:[.,]\d*)?)", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


def seconds_of(text: str) -> float | None:
    """Return the seconds that a clock time or a number stands for, or None.

    >>> seconds_of("61:05"), seconds_of("1:02:03.5"), seconds_of("7.25"), seconds_of("soon")
    (3665.0, 3723.5, 7.25, None)
    """
    text = text.strip()
    clock = CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = clock.groups(default="0")
        rest = float(seconds.replace(",", "."))
        if rest >= 60 or (clock[1] is not None and int(minutes) >= 60):
            return None
        return 3600.0 * int(hours) + 60.0 * int(minutes) + rest
    return float(text.replace(",", ".")) if NUMBER.fullmatch(text) else None


def clock_text(seconds: float, *, hours: bool = False) -> str:
    """Write seconds, to the nearest whole one, as "MM:SS" or "HH:MM:SS".

    >>> clock_text(3665.4), clock_text(3665.4, hours=True)
    ('61:05', '01:01:05')
    """
    minutes, rest = divmod(int(seconds + 0.5), 60)
    if not hours:
        return f"{minutes:02d}:{rest:02d}"
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"
