"""Leases: one holder at a time, whichever process dies and whatever the clocks show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.core import processes
from ethobench.core.files import remove_stale_temporaries
from ethobench.runs import leases as module
from ethobench.runs.leases import Leases


@pytest.fixture
def leases(tmp_path) -> Leases:
    return Leases(tmp_path)


def elsewhere(leases: Leases, key: str = "k", **more) -> None:
    """Write the lease of a process on another machine."""
    holder = {"host": "elsewhere", "pid": 1, "started": "1", "run": "r", "crashes": 0, **more}
    (leases.folder / key).write_text(json.dumps(holder), encoding="utf-8")


def other_process(leases: Leases, run: str = "") -> subprocess.Popen[str]:
    """Start a process that acquires a job and holds it."""
    script = (
        "import sys, time; from pathlib import Path; from ethobench.runs.leases import Leases; "
        f"print(Leases(Path({str(leases.folder)!r})).acquire('k', {run!r}), flush=True); time.sleep(60)"
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def test_one_at_a_time(leases):
    assert leases.acquire("k") == 0
    assert leases.acquire("k") is None
    assert leases.active() == ["k"]
    leases.release("k")
    assert leases.acquire("k") == 0


@pytest.mark.slow
def test_the_lease_of_a_living_process_is_valid_and_that_of_a_dead_one_is_not(leases):
    for crashes, run in enumerate(("r", "r", "r")):
        with other_process(leases, run) as other:
            assert other.stdout.readline().strip() == str(crashes)
            assert leases.acquire("k", "r") is None
            other.send_signal(signal.SIGKILL)
            other.wait()
            assert leases.active() == []
    assert leases.acquire("k", "another run") == 0  # crashes in another run may have had other reasons


@pytest.mark.slow
def test_only_one_process_takes_over_an_expired_lease(leases, monkeypatch):
    monkeypatch.setattr(module, "LEASE_SECONDS", 0.3)
    keys = [f"k{n}" for n in range(20)]
    for key in keys:
        elsewhere(leases, key)
        assert leases.acquire(key) is None  # starts to observe it
    time.sleep(0.4)
    for key in keys:
        with ThreadPoolExecutor(8) as pool:
            acquired = list(pool.map(lambda _, k=key: leases.acquire(k, "r"), range(8)))
        # all threads are one process, so the first that succeeds holds a valid lease for the others
        assert [t for t in acquired if t is not None] == [1]


TAKE_AND_DIE = """
import os, sys
from pathlib import Path
from ethobench.core import processes
from ethobench.runs.leases import Leases

if sys.argv[2] == "without locks":
    processes.fcntl = None
Path.replace = lambda *_: os._exit(9)  # in the middle of a take-over
Leases(Path(sys.argv[1])).acquire("k")
os._exit(9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["with locks", "without locks"])
def test_a_killed_take_over_blocks_no_other_process(leases, monkeypatch, system):
    for _ in range(2):  # the second process takes over from the first
        subprocess.run([sys.executable, "-c", TAKE_AND_DIE, str(leases.folder), system], check=False)
    assert len([*leases.folder.iterdir()]) == 3
    if system == "without locks":
        monkeypatch.setattr(processes, "fcntl", None)
        assert leases.acquire("k") is None  # removes the lock that the dead process left
    assert leases.acquire("k") == 0
    leases.release("k")
    remove_stale_temporaries(leases.folder)
    assert [*leases.folder.iterdir()] == []


@pytest.mark.parametrize("jump", [-1e6, 0.0, 1e6])
def test_leases_of_other_machines_expire_by_the_clock_of_this_process_only(leases, monkeypatch, jump):
    elsewhere(leases)
    stamp = time.time() + jump
    os.utime(leases.folder / "k", (stamp, stamp))
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    assert leases.acquire("k") is None
    now[0] += module.LEASE_SECONDS - 1
    assert leases.acquire("k") is None
    os.utime(leases.folder / "k", (stamp - 5, stamp - 5))  # renewed, while that machine's clock went back
    now[0] += module.LEASE_SECONDS - 1
    assert leases.acquire("k") is None
    now[0] += module.LEASE_SECONDS + 1
    assert leases.acquire("k") == 0


def test_a_damaged_lease_expires(leases, monkeypatch):
    (leases.folder / "k").write_text("{", encoding="utf-8")
    assert leases.acquire("k") is None
    monkeypatch.setattr(module, "LEASE_SECONDS", 0.0)
    assert leases.acquire("k") == 0
