"""A clock for tests: time passes only when the test says so, or by a fixed amount each time somebody looks."""

from __future__ import annotations


class Clock:
    """A clock that is set by hand.

    Parameters
    ----------
    step : float
        Seconds that pass each time somebody looks at it.
    """

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 1000.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now
