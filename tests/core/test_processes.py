"""Processes, locks between them, and cores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from ethobench.core import processes
from ethobench.core.processes import LockError, idle_cores, is_alive, start_time, system_lock, thread_count, usable_cores


def test_a_process_is_alive_until_it_ends():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = start_time(process.pid)
    try:
        assert is_alive(process.pid, started)
        assert is_alive(process.pid, None)
        if started is not None:
            assert not is_alive(process.pid, f"{started}0")
            assert int(started) >= int(start_time(os.getpid()))
    finally:
        process.communicate(b"\n")
    assert not is_alive(process.pid, started or "1")
    assert not is_alive(process.pid, None)
    assert start_time(process.pid) is None


@pytest.mark.skipif(processes.fcntl is None, reason="the system has no file locks")
def test_one_thread_at_a_time_holds_a_lock(tmp_path):
    path = tmp_path / "a.lock"
    inside, most = [], []

    def work():
        for _ in range(20):
            with system_lock(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80
    assert not path.exists()


def test_systems_and_folders_without_locks(tmp_path, monkeypatch):
    if processes.fcntl is not None:
        monkeypatch.setattr(processes.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(95, "not supported")))
        with pytest.raises(LockError, match="not supported"), system_lock(tmp_path / "a.lock"):
            pass
        assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(processes, "fcntl", None)
    with pytest.raises(LockError, match="does not support"), system_lock(tmp_path / "a.lock"):
        pass


@pytest.mark.parametrize(("variable", "threads"), [("3", 3), ("1", 1), ("0", 6), ("", 6), ("2,4", 6), (None, 6)])
def test_the_number_of_threads_is_that_of_the_environment_or_of_the_cores(monkeypatch, variable, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert usable_cores() == 6
    assert thread_count() == threads


@pytest.mark.parametrize(("load", "idle"), [(0.0, 6), (2.2, 4), (4.6, 1), (5.2, 1), (40.0, 1)])
def test_busy_cores_are_not_idle(monkeypatch, load, idle):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0), raising=False)
    assert idle_cores() == idle


@pytest.mark.parametrize(("count", "cores"), [(8, 8), (1, 1), (None, 1)])
def test_systems_that_cannot_restrict_the_cores_of_a_process(monkeypatch, count, cores):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("error", "is_running"), [(None, True), (PermissionError, True), (ProcessLookupError, False), (OverflowError, False)]
)
def test_a_process_of_another_user_is_running(error, is_running, monkeypatch):
    """Signal 0 only asks whether the process exists."""
    signals = []

    def kill(pid, number):
        signals.append((pid, number))
        if error is not None:
            raise error

    monkeypatch.setattr(processes.os, "kill", kill)
    assert is_alive(4321, None) is is_running
    assert signals == [(4321, 0)]


def test_the_digest_of_the_machine_is_eight_hexadecimal_digits():
    """Names of temporary files contain it, and are recognized by it."""
    assert len(processes.machine_digest()) == 8
    assert int(processes.machine_digest(), 16) >= 0
