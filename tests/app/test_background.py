"""Jobs in the background: progress, failures, cancelling."""

from __future__ import annotations

import threading

import pytest

from ethobench.app.background import MAX_KEPT, MAX_UNFINISHED, BackgroundJobs, JobResult, JobState
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.progress import report_progress


def test_a_job_reports_progress_and_keeps_its_file():
    jobs, reported, go = BackgroundJobs(), threading.Event(), threading.Event()

    def work(folder):
        report_progress("clip 1 of 2", 0.5)
        reported.set()
        go.wait(10)
        (folder / "a.txt").write_text("a")
        return JobResult(folder / "a.txt", "a.txt", ["a note"])

    job = jobs.start(work)
    reported.wait(10)
    assert job.payload() == {
        "job": 1,
        "state": "running",
        "stage": "clip 1 of 2",
        "fraction": 0.5,
        "error": "",
        "notes": [],
        "name": "",
    }
    go.set()
    done = jobs.wait(job.number, 90)
    assert done.state is JobState.DONE
    assert done.result.path.read_text() == "a"


def test_a_cancelled_job_ends_at_its_next_report():
    jobs, started, go, ended = BackgroundJobs(), threading.Event(), threading.Event(), []

    def work(folder):
        started.set()
        go.wait(10)
        report_progress("x", 0.1)
        ended.append(True)
        return JobResult()

    job = jobs.start(work)
    waiting = jobs.start(work)
    started.wait(10)
    jobs.cancel(waiting.number)
    jobs.cancel(job.number)
    go.set()
    assert jobs.wait(job.number, 90).state is JobState.CANCELLED
    assert jobs.wait(waiting.number, 90).state is JobState.CANCELLED
    assert not ended


def test_errors_are_reported():
    jobs = BackgroundJobs()

    def fail(error):
        def work(folder):
            raise error

        return jobs.wait(jobs.start(work).number, 90)

    assert fail(EthobenchError("no video")).error == "no video"
    assert "unexpected error (ValueError: x)" in fail(ValueError("x")).error
    with pytest.raises(NotFoundError):
        jobs.job(99)


def test_the_number_of_jobs_is_bounded():
    jobs, go = BackgroundJobs(), threading.Event()

    def work(folder):
        go.wait(10)
        return JobResult()

    first = jobs.start(work, "same")
    assert jobs.start(work, "same") is first
    others = [jobs.start(work) for _ in range(MAX_UNFINISHED - 1)]
    with pytest.raises(MismatchError, match="unfinished"):
        jobs.start(work)
    go.set()
    for job in others:
        jobs.wait(job.number, 90)
    for _ in range(MAX_KEPT + 2):
        last = jobs.start(work)
        jobs.wait(last.number, 90)
    with pytest.raises(NotFoundError):
        jobs.job(first.number)
    assert jobs.job(last.number).state is JobState.DONE
