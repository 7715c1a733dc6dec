"""A time budget for cross-validation and the final training: which folds are run, with a clock that is set by hand."""

from __future__ import annotations

import pytest
from tests.clock import Clock

import ethobench as eb
from ethobench.benchmarks.study import study_plan
from ethobench.benchmarks.time_budget import (
    CompleteTrainings,
    ShortenedTrainings,
    describe_plan,
    final_deadline,
    limit_cross_validation,
    make_schedule,
)
from ethobench.core.deadline import Deadline
from ethobench.runs import RunControl, RunSummary, StopRun

DATASET = "synthetic/tag"
OPTIONS = {"individuals": 5, "seconds": 20, "folds": 5}


@pytest.fixture(scope="module")
def data():
    return eb.load_dataset(DATASET, **OPTIONS)


@pytest.fixture
def clock():
    return Clock()


def jobs_of(model: str, data):
    return next(study_plan(DATASET, model, options=OPTIONS, data=data))


def test_more_time_means_more_folds_and_longer_trainings(clock):
    schedules = [make_schedule(Deadline(s, clock=clock), 5, 2, start_up=10, preparation=30) for s in range(10, 1200, 10)]
    folds = [schedule.folds for schedule in schedules]
    assert folds == sorted(folds)
    assert {*folds} == {0, 2, 4, 5}  # half a round of two workers takes as long as a whole one
    for schedule in schedules:
        if schedule.folds:
            assert schedule.training >= 0.5 * 30


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_the_final_training_keeps_its_time(clock, workers):
    deadline = Deadline(600, clock=clock)
    schedule = make_schedule(deadline, 5, workers, start_up=10, preparation=20)
    ends = [schedule.end_of(index) for index in range(schedule.folds)]
    assert ends == sorted(ends)
    assert max(ends) == pytest.approx(schedule.end)
    assert final_deadline(deadline).end - schedule.end >= schedule.training
    assert final_deadline(deadline).end < deadline.end  # saving takes time, too


def test_scheduled_folds_start_only_while_there_is_time_for_them(clock, data):
    deadline = Deadline(200, clock=clock)
    model = eb.create_model("tcn")
    limited = limit_cross_validation(model, jobs_of("tcn", data), data, deadline, workers=2)
    control = limited.control
    assert isinstance(control, ShortenedTrainings)
    assert limited.folds == len(limited.deadlines) == 5
    first, last = limited.jobs[0], limited.jobs[-1]
    assert control.admits(first, RunSummary())
    control.observe([first], RunSummary())
    clock.now = limited.deadlines[first.key] - 0.1 * control.schedule.training
    assert not control.admits(first, RunSummary())
    assert control.admits(last, RunSummary())
    clock.now = control.schedule.end + control.schedule.training
    with pytest.raises(StopRun):
        control.observe([last], RunSummary())


def test_time_of_completed_folds_is_given_to_the_others(clock, data):
    deadline, model = Deadline(60, clock=clock), eb.create_model("tcn")
    fresh = limit_cross_validation(model, jobs_of("tcn", data), data, deadline, workers=1)
    done = {job.key for job in fresh.jobs[:3]}
    resumed = limit_cross_validation(model, jobs_of("tcn", data), data, deadline, workers=1, finished=done)
    assert resumed.folds == 5
    assert not done & {*resumed.deadlines}
    assert resumed.control.schedule.training > fresh.control.schedule.training


def test_models_that_cannot_be_shortened_leave_out_folds(clock, data):
    deadline, model = Deadline(100, clock=clock), eb.create_model("rf")
    limited = limit_cross_validation(model, jobs_of("rf", data), data, deadline, workers=1)
    assert isinstance(limited.control, CompleteTrainings)
    assert not limited.deadlines
    first, second, third, *_ = limited.jobs
    control, summary = limited.control, RunSummary()
    assert control.admits(first, summary)
    clock.now += 25
    control.observe([first], summary)
    control.observe([], summary)  # it has ended: 25 s
    assert control.admits(second, summary)  # 25 + 25 + some 31 s for the final training
    clock.now += 25
    control.observe([], summary)
    assert not control.admits(third, summary)


def test_a_training_that_takes_half_of_the_time_is_given_up_for_the_final_one(clock, data):
    deadline = Deadline(100, clock=clock)
    control = limit_cross_validation(eb.create_model("rf"), jobs_of("rf", data), data, deadline, workers=1).control
    first = jobs_of("rf", data)[0]
    assert control.admits(first, RunSummary())
    clock.now += 40
    control.observe([first], RunSummary())
    clock.now += 10
    with pytest.raises(StopRun):
        control.observe([first], RunSummary())


def test_a_budget_is_part_of_a_job_only_where_it_changes_the_result(clock, data):
    keys = {model: [job.key for job in jobs_of(model, data)] for model in ("rf", "tcn")}
    for model, expected in keys.items():
        unlimited = limit_cross_validation(eb.create_model(model), jobs_of(model, data), data, Deadline(), workers=2)
        assert [job.key for job in unlimited.jobs] == expected
        assert type(unlimited.control) is RunControl
    one, two = (
        [
            job.key
            for job in limit_cross_validation(eb.create_model(model), jobs_of(model, data), data, Deadline(90, clock=clock), workers=2).jobs
        ]
        for model in ("rf", "tcn")
    )
    assert one == keys["rf"]
    assert not {*two} & {*keys["tcn"]}


def test_the_plan_lists_the_jobs(clock):
    deadline = Deadline(120, clock=clock)
    forest, network = eb.create_model("rf"), eb.create_model("tcn")
    assert describe_plan(network, 5, 5, 2, Deadline()) == (
        "plan: 5-fold cross-validation + final training = 6 trainings of tcn on 2 cores; estimating the time while it runs"
    )
    assert describe_plan(network, 2, 5, 2, deadline) == (
        "plan: 2 of 5 folds of cross-validation (limited time) + final training = 3 trainings of tcn on 2 cores, about 2 min (budget 2 min)"
    )
    assert "no time for cross-validation; final training only" in describe_plan(network, 0, 5, 1, deadline)
    assert "a training of rf cannot be shortened" in describe_plan(forest, 5, 5, 2, deadline)
