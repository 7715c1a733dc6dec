"""X"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ethobench.mllm.providers import ProviderError


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after what waits a question is asked again.

    Attributes
    ----------
    attempts : int
        In all.
    first, longest : float
        Seconds of the first wait, and of any that the provider does not ask for; waits double from one to the next.
    most : float
        Longest wait that the provider may ask for; beyond that the question is given up.
    """

    attempts: int = 6
    first: float = 1.0
    longest: float = 60.0
    most: float = 600.0

    def delay(self, failures: int, asked: float | None, draw: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after so many failures: half to all of a wait that doubles, and at least what is asked for.

        >>> RetryPolicy().delay(3, None, draw=lambda: 1.0), RetryPolicy().delay(1, 7.0, draw=lambda: 0.0)
        (4.0, 7.0)
        """
        ceiling = min(self.longest, self.first * 2.0 ** (failures - 1))
        return max(asked or 0.0, ceiling * (0.5 + 0.5 * draw()))


class RateLimiter:
    """Lets questions go at most so often, and holds all of them back when the provider asks for it."""

    def __init__(self, max_per_minute: float | None = None) -> None:
        self._gap = 60.0 / max_per_minute if max_per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait for this question's turn."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        time.sleep(max(0.0, turn - now))

    def hold(self, seconds: float) -> None:
        """Let nobody go for some seconds."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


def call_with_retries(policy: RetryPolicy, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; after a transient `ProviderError`, wait and call it again."""
    for failures in range(1, policy.attempts + 1):
        try:
            return function(*arguments)
        except ProviderError as error:
            if not error.transient or failures == policy.attempts:
                raise
            time.sleep(policy.delay(failures, error.retry_after))
    raise AssertionError("unreachable")
