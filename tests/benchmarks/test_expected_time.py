"""The expected time of a run: from finished jobs, and from the speed of networks."""

from __future__ import annotations

import pytest

from ethobench.benchmarks.base import make_job
from ethobench.benchmarks.expected_time import ExpectedTime, estimate_time, peek, peek_all
from ethobench.core.errors import EthobenchError
from ethobench.datasets import load_dataset
from ethobench.runs import Store

DATA = {"individuals": 2, "seconds": 20}


def plan(log):
    log.append((yield ["first"]))
    log.append((yield ["second"]))


def test_a_plan_runs_as_before_after_a_look_at_its_first_jobs():
    log = []
    first, again = peek(plan(log))
    assert first == ["first"]
    assert next(again) == ["first"]
    assert again.send("a") == ["second"]
    with pytest.raises(StopIteration):
        again.send("b")
    assert log == ["a", "b"]
    empty = (jobs for jobs in ())
    assert peek(empty)[0] == []


def test_a_plan_that_fails_fails_when_it_is_run():
    def failing():
        raise EthobenchError("no data")
        yield []

    jobs, (again,) = peek_all([failing()])
    assert jobs == []
    with pytest.raises(EthobenchError, match="no data"):
        next(again)


@pytest.mark.parametrize(
    ("seconds", "workers", "text"), [(40, 1, "about 40 s"), (7200, 1, "about 2 h"), (7200, 2, "about 60 min"), (10 * 86400, 2, "5.0 days")]
)
def test_durations_are_readable(seconds, workers, text):
    assert text in ExpectedTime(seconds, 3, 3).describe(workers)
    assert ExpectedTime(0.0, 0, 3).describe(workers) == ""


@pytest.mark.slow
def test_networks_are_measured_and_frames_in_a_row_are_faster(tmp_path):
    data = load_dataset("synthetic/pose", **DATA)
    names = [recording.id for recording in data]
    shared = {"past": 20, "future": 20, "frame_stride": 1}

    def job(params, model="conv1d"):
        return make_job("own", data, model, names[:1], names[1:], params, options=DATA)

    one, row = ({**shared}, {**shared, "frames_per_example": 20, "batch": 64})
    store = Store(tmp_path / "store")
    published, fast = (estimate_time([job(params)], store) for params in (one, row))
    assert published.n_estimated == fast.n_estimated == 1
    assert fast.seconds < published.seconds / 2
    assert published.speed is published.published_speed is None
    assert fast.speed > 2 * fast.published_speed
    text = f"networks learn about {fast.speed:,.0f} windows/s from frames in a row, {fast.published_speed:,.0f} as published"
    assert fast.describe(1).splitlines()[1] == text
    assert len(published.describe(1).splitlines()) == 1
    longer = estimate_time([job({**one, "epochs": 150})], store)
    assert longer.seconds > 3 * published.seconds
    assert estimate_time([job({}, "chance")], store) == ExpectedTime(0.0, 0, 1)
