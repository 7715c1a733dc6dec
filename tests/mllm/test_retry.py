"""Delays between attempts, and the rate limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.mllm import retry
from ethobench.mllm.providers import ProviderError
from ethobench.mllm.retry import RateLimiter, RetryPolicy, call_with_retries


@given(st.integers(1, 20), st.none() | st.floats(0, 100), st.floats(0, 1))
def test_delays_are_within_their_bounds(failures, server_delay, random_number):
    delay = RetryPolicy(initial_delay=0.5, max_delay=30).delay(failures, server_delay, lambda: random_number)
    assert delay >= (server_delay or 0)
    assert delay <= max(server_delay or 0, 30)


def test_the_rate_limit_is_kept(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retry.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    limiter = RateLimiter(per_minute=30)
    times = []
    for _ in range(4):
        limiter.wait()
        times.append(now[0])
    assert times == pytest.approx([100, 102, 104, 106])
    limiter.pause(10)
    limiter.wait()
    assert now[0] == pytest.approx(116)


@pytest.mark.parametrize(("transient", "n_calls"), [(True, 3), (False, 1)])
def test_only_transient_errors_are_retried(transient, n_calls, monkeypatch):
    monkeypatch.setattr(retry.time, "sleep", lambda _: None)
    calls = []

    def fail(value: int) -> None:
        calls.append(value)
        raise ProviderError("busy", transient=transient)

    with pytest.raises(ProviderError, match="busy"):
        call_with_retries(RetryPolicy(attempts=3), fail, 7)
    assert calls == [7] * n_calls
