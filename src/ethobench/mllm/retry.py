"""Retries and rate limits for requests to a provider."""

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
    """How often a request is repeated, and the delays between attempts.

    Attributes
    ----------
    attempts : int
        Maximum number of attempts, including the first.
    initial_delay : float
        Seconds before the second attempt. The delay doubles with each failure.
    max_delay : float
        Upper limit of that delay, in seconds.
    max_server_delay : float
        Longest delay in seconds that a provider may request. A longer one ends the attempts.
    """

    attempts: int = 6
    initial_delay: float = 1.0
    max_delay: float = 60.0
    max_server_delay: float = 600.0

    def delay(self, failures: int, server_delay: float | None, draw: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after `failures` failed attempts.

        The delay is random (jitter): between half and all of the exponential backoff, and at least what the server requested.

        Parameters
        ----------
        failures : int
        server_delay : float, optional
            Seconds that the server requested.
        draw : callable
            Returns a random number in [0, 1).

        Examples
        --------
        >>> RetryPolicy().delay(3, None, draw=lambda: 1.0), RetryPolicy().delay(1, 7.0, draw=lambda: 0.0)
        (4.0, 7.0)
        """
        backoff = min(self.max_delay, self.initial_delay * 2.0 ** (failures - 1))
        return max(server_delay or 0.0, backoff * (0.5 + 0.5 * draw()))

    def is_final(self, error: ProviderError, failures: int) -> bool:
        """Whether no further attempt is made after this error."""
        return not error.transient or failures >= self.attempts or (error.retry_after or 0.0) > self.max_server_delay


class RateLimiter:
    """Limits how many requests start per minute, for all threads together.

    Parameters
    ----------
    per_minute : float, optional
        Maximum number of requests per minute; no limit by default.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self._interval = 60.0 / per_minute if per_minute else 0.0
        self._next_start = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Block until the next request may start."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next_start)
            self._next_start = start + self._interval
        time.sleep(max(0.0, start - now))

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds."""
        with self._lock:
            self._next_start = max(self._next_start, time.monotonic() + seconds)


def call_with_retries(policy: RetryPolicy, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, and call it again after a delay if it raises a transient `ProviderError`."""
    for failures in range(1, policy.attempts + 1):
        try:
            return function(*arguments)
        except ProviderError as error:
            if not error.transient or failures == policy.attempts:
                raise
            time.sleep(policy.delay(failures, error.retry_after))
    raise AssertionError("unreachable")
