"""The persistent cache of features."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ethobench import Signals
from ethobench.features import cache
from ethobench.features.cache import cached, feature_cache, precompute


def _signals(value: float) -> Signals:
    return Signals(np.full((5, 1), value), ("x",), 10)


class Counter:
    """Counts how often an array is computed."""

    def __init__(self, value: object) -> None:
        self.value, self.count = value, 0

    def __call__(self) -> object:
        self.count += 1
        return self.value


def test_arrays_are_computed_once_and_memory_mapped(tmp_path):
    compute = Counter(np.arange(6.0).reshape(2, 3))
    for _ in range(3):
        with feature_cache(tmp_path / "new" / "folder"):
            value = cached("kind", _signals(1), "settings", compute)
    assert compute.count == 1
    assert isinstance(value, np.memmap)
    assert not value.flags.writeable
    np.testing.assert_array_equal(value, compute.value)


def test_content_and_settings_are_the_key(tmp_path):
    compute = Counter(np.zeros(1))
    with feature_cache(tmp_path):
        for value, settings in ((1, "a"), (2, "a"), (1, "b"), (1, "a")):
            cached("kind", _signals(value), settings, compute)
    assert compute.count == 3


def test_precompute_adds_what_is_missing(tmp_path):
    compute = Counter(np.zeros(1))
    with feature_cache(tmp_path):
        precompute("kind", _signals(1), "a", compute)
        precompute("kind", _signals(1), "a", compute)
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 1


def test_values_other_than_arrays_stay_in_memory(tmp_path):
    compute = Counter({"median": 1.0})
    with feature_cache(tmp_path):
        for _ in range(2):
            assert cached("baseline", _signals(41), "a", compute) == {"median": 1.0}
    assert compute.count == 1
    assert [*tmp_path.iterdir()] == []


def test_pickles_are_never_read(tmp_path):
    compute = Counter(np.zeros(3))
    with feature_cache(tmp_path):
        cached("kind", _signals(1), "a", compute)
        (path,) = tmp_path.glob("*.npy")
        with path.open("wb") as file:
            np.save(file, np.array([{"an": "object"}]), allow_pickle=True)
        np.testing.assert_array_equal(cached("kind", _signals(1), "a", compute), np.zeros(3))
    assert compute.count == 2


def test_the_least_recently_used_arrays_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 3500)
    compute = Counter(np.zeros(150))  # 1200 bytes and a header
    with feature_cache(tmp_path):
        for age, number in ((30, 1), (20, 2)):
            cached("kind", _signals(number), "a", compute)
            newest = max(tmp_path.glob("*.npy"), key=lambda path: path.stat().st_mtime_ns)
            os.utime(newest, (1e9 - age, 1e9 - age))
        cached("kind", _signals(1), "a", compute)  # used now
        cached("kind", _signals(3), "a", compute)
        assert compute.count == 3
        cached("kind", _signals(1), "a", compute)
        assert compute.count == 3
        cached("kind", _signals(2), "a", compute)
        assert compute.count == 4


def test_a_read_only_folder_raises_nothing(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("ethobench.features.cache.atomic_path", refuse)
    compute = Counter(np.zeros(3))
    with feature_cache(tmp_path / "features"):
        cached("kind", _signals(1), "a", compute)
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 2


def test_a_folder_that_cannot_be_created_raises_nothing(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    compute = Counter(np.zeros(3))
    with feature_cache(tmp_path / "file" / "features"):
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 1


def test_entries_in_use_are_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 2500)
    compute = Counter(np.zeros(150))
    with feature_cache(tmp_path):
        for number in (1, 2, 1, 2):
            cached("kind", _signals(number), "a", compute)
    assert compute.count == 3  # the second does not fit, and does not push out the first
    assert len([*tmp_path.glob("*.npy")]) == 1


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"not an array", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'sh"]
)
def test_a_damaged_entry_is_computed_again(tmp_path, content):
    compute = Counter(np.arange(3.0))
    with feature_cache(tmp_path):
        cached("kind", _signals(1), "a", compute)
        (path,) = tmp_path.glob("*.npy")
        path.write_bytes(content)
        np.testing.assert_array_equal(cached("kind", _signals(1), "a", compute), np.arange(3.0))
        np.testing.assert_array_equal(np.load(path), np.arange(3.0))  # repaired
    assert compute.count == 2


def test_a_truncated_entry_is_computed_again(tmp_path):
    compute = Counter(np.arange(1000.0))
    with feature_cache(tmp_path):
        cached("kind", _signals(1), "a", compute)
        (path,) = tmp_path.glob("*.npy")
        path.write_bytes(path.read_bytes()[:-8])
        np.testing.assert_array_equal(cached("kind", _signals(1), "a", compute), np.arange(1000.0))
    assert compute.count == 2


def test_the_folder_may_be_deleted_while_it_is_used(tmp_path):
    compute = Counter(np.arange(3.0))
    folder = tmp_path / "features"
    with feature_cache(folder):
        mapped = cached("kind", _signals(1), "a", compute)
        mapped = cached("kind", _signals(1), "a", compute)
        shutil.rmtree(folder)
        np.testing.assert_array_equal(mapped, np.arange(3.0))
        np.testing.assert_array_equal(cached("kind", _signals(1), "a", compute), np.arange(3.0))
    assert compute.count == 2


WRITER = """
import sys
import numpy as np
import pytest
from ethobench import Signals
from ethobench.features.cache import cached, feature_cache
for _ in range(20):
    for number in range(5):
        signals = Signals(np.full((5, 1), float(number)), ("x",), 10)
        with feature_cache(sys.argv[1]):
            value = cached("kind", signals, "a", lambda: np.full(20_000, float(number)))
        assert value.shape == (20_000,) and (value == number).all()
"""


@pytest.mark.slow
def test_two_processes_share_a_folder(tmp_path):
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)]) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert len([*tmp_path.iterdir()]) == 5
