"""Claims: one owner at a time, whoever dies and whatever the clocks show."""

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
from ethobench.runs import claims as module
from ethobench.runs.claims import Claims


@pytest.fixture
def claims(tmp_path) -> Claims:
    return Claims(tmp_path)


def elsewhere(claims: Claims, key: str = "k", **more) -> None:
    """Leave the claim of a process on another machine."""
    told = {"host": "elsewhere", "pid": 1, "started": "1", "run": "r", "deaths": 0, **more}
    (claims.folder / key).write_text(json.dumps(told), encoding="utf-8")


def other_process(claims: Claims, run: str = "") -> subprocess.Popen[str]:
    """Start a process that takes a job and holds it."""
    script = (
        "import sys, time; from pathlib import Path; from ethobench.runs.claims import Claims; "
        f"print(Claims(Path({str(claims.folder)!r})).take('k', {run!r}), flush=True); time.sleep(60)"
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def test_one_at_a_time(claims):
    assert claims.take("k") == 0
    assert claims.take("k") is None
    assert claims.living() == ["k"]
    claims.release("k")
    assert claims.take("k") == 0


@pytest.mark.slow
def test_a_living_owner_is_respected_and_a_dead_one_is_not(claims):
    for deaths, run in enumerate(("r", "r", "r")):
        with other_process(claims, run) as other:
            assert other.stdout.readline().strip() == str(deaths)
            assert claims.take("k", "r") is None
            other.send_signal(signal.SIGKILL)
            other.wait()
            assert claims.living() == []
    assert claims.take("k", "another run") == 0  # deaths in another run may have had other reasons


def test_only_one_takes_over_from_the_dead(claims, monkeypatch):
    monkeypatch.setattr(module, "LEASE", 0.3)
    keys = [f"k{n}" for n in range(20)]
    for key in keys:
        elsewhere(claims, key)
        assert claims.take(key) is None  # begins to watch it
    time.sleep(0.4)
    for key in keys:
        with ThreadPoolExecutor(8) as pool:
            taken = list(pool.map(lambda _, k=key: claims.take(k, "r"), range(8)))
        # all threads are one process, so the first that succeeds is a living owner for the others
        assert [t for t in taken if t is not None] == [1]


TAKE_AND_DIE = """
import os, sys
from pathlib import Path
from ethobench.core import processes
from ethobench.runs.claims import Claims

if sys.argv[2] == "without locks":
    processes.fcntl = None
Path.replace = lambda *_: os._exit(9)  # in the middle of a take-over
Claims(Path(sys.argv[1])).take("k")
os._exit(9)
"""


@pytest.mark.parametrize("system", ["with locks", "without locks"])
def test_a_take_over_that_is_killed_blocks_nobody(claims, monkeypatch, system):
    for _ in range(2):  # the second process takes over from the first
        subprocess.run([sys.executable, "-c", TAKE_AND_DIE, str(claims.folder), system], check=False)
    assert len([*claims.folder.iterdir()]) == 3
    if system == "without locks":
        monkeypatch.setattr(processes, "fcntl", None)
        assert claims.take("k") is None  # removes the lock that the dead process left
    assert claims.take("k") == 0
    claims.release("k")
    remove_stale_temporaries(claims.folder)
    assert [*claims.folder.iterdir()] == []


@pytest.mark.parametrize("jump", [-1e6, 0.0, 1e6])
def test_leases_elsewhere_run_out_by_our_own_clock_only(claims, monkeypatch, jump):
    elsewhere(claims)
    stamp = time.time() + jump
    os.utime(claims.folder / "k", (stamp, stamp))
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    assert claims.take("k") is None
    now[0] += module.LEASE - 1
    assert claims.take("k") is None
    os.utime(claims.folder / "k", (stamp - 5, stamp - 5))  # renewed, while that machine's clock went back
    now[0] += module.LEASE - 1
    assert claims.take("k") is None
    now[0] += module.LEASE + 1
    assert claims.take("k") == 0


def test_a_damaged_claim_blocks_no_longer_than_a_lease(claims, monkeypatch):
    (claims.folder / "k").write_text("{", encoding="utf-8")
    assert claims.take("k") is None
    monkeypatch.setattr(module, "LEASE", 0.0)
    assert claims.take("k") == 0
