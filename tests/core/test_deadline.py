"""Deadlines, and parsing and formatting of durations."""

from __future__ import annotations

import math
import sys
import time

import pytest
from tests.clock import Clock

from ethobench.core.deadline import Deadline, format_seconds, parse_seconds, seconds_since_start
from ethobench.core.errors import EthobenchError


def test_time_passes_and_is_shared():
    clock = Clock()
    deadline = Deadline(100, clock=clock)
    clock.now += 20
    half, early = deadline.share(0.5), deadline.before(30)
    assert (deadline.elapsed, deadline.remaining, half.remaining, early.remaining) == (20, 80, 40, 50)
    clock.now += 20
    assert (half.fraction_elapsed, half.remaining, deadline.fraction_elapsed) == (0.5, 20, 0.4)
    assert deadline.until(math.inf).end == deadline.end  # never later than the original
    clock.now += 100
    assert deadline.has_passed
    assert deadline.remaining == -40
    assert deadline.share(0.5).has_passed


def test_without_a_limit_no_deadline_passes():
    deadline = Deadline()
    for each in (deadline, deadline.share(0.1), deadline.before(1000)):
        assert not each.is_limited
        assert not each.has_passed
        assert (each.remaining, each.fraction_elapsed) == (math.inf, 0.0)


def test_durations_are_parsed_and_formatted():
    assert [parse_seconds(text) for text in ("90s", "10m", "1.5h", "1h30m", " 2m ")] == [90, 600, 5400, 5400, 120]
    for wrong in ("", "10", "m", "10 min", "-5m", "0s", "1m30", "1d"):
        with pytest.raises(EthobenchError, match="is not a duration"):
            parse_seconds(wrong)
    assert [format_seconds(s) for s in (-3, 0.4, 59.6, 61, 3599.7, 5400)] == ["0 s", "0 s", "1 min", "1 min 1 s", "1 h", "1 h 30 min"]


@pytest.mark.skipif(sys.platform != "linux", reason="the start time is read from /proc")
def test_the_process_started_before_now_and_after_the_system():
    assert 0 < seconds_since_start() < time.clock_gettime(time.CLOCK_BOOTTIME)


def test_representation_has_the_remaining_time():
    assert repr(Deadline()) == "Deadline()"
    assert repr(Deadline(90, clock=Clock(), elapsed=30)) == f"Deadline({format_seconds(60)} left)"


@pytest.mark.parametrize(("remaining", "share"), [(8, 2), (0.5, 0.125), (0, 0), (-3, -3)])
def test_a_share_is_a_fraction_of_the_remaining_time(remaining, share):
    assert Deadline(10, clock=Clock(), elapsed=10 - remaining).share(0.25).remaining == pytest.approx(share)


def test_a_deadline_has_passed_when_nothing_remains():
    assert Deadline(5.0, clock=Clock(step=0.0)).has_passed is False
    assert Deadline(0.0, clock=Clock(step=0.0)).has_passed is True
    assert Deadline(5.0, clock=Clock(step=0.0), elapsed=5.0).has_passed is True


def test_the_elapsed_fraction_is_at_most_one():
    for elapsed, fraction in ((0.0, 0.0), (1.0, 0.25), (4.0, 1.0), (6.0, 1.0)):
        assert Deadline(4.0, clock=Clock(step=0.0), elapsed=elapsed).fraction_elapsed == fraction
    assert Deadline(clock=Clock(step=0.0), elapsed=5.0).fraction_elapsed == 0.0
