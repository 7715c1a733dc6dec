"""The persistent cache of features."""

from __future__ import annotations

import errno
import os

import numpy as np

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
        with feature_cache(tmp_path / "new" / "folder", persistent=True):
            value = cached("kind", _signals(1), "settings", compute)
    assert compute.count == 1
    assert isinstance(value, np.memmap)
    assert not value.flags.writeable
    np.testing.assert_array_equal(value, compute.value)


def test_content_and_settings_are_the_key(tmp_path):
    compute = Counter(np.zeros(1))
    with feature_cache(tmp_path, persistent=True):
        for value, settings in ((1, "a"), (2, "a"), (1, "b"), (1, "a")):
            cached("kind", _signals(value), settings, compute)
    assert compute.count == 3


def test_precompute_adds_what_is_missing(tmp_path):
    compute = Counter(np.zeros(1))
    with feature_cache(tmp_path, persistent=True):
        precompute("kind", _signals(1), "a", compute)
        precompute("kind", _signals(1), "a", compute)
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 1


def test_values_other_than_arrays_stay_in_memory(tmp_path):
    compute = Counter({"median": 1.0})
    with feature_cache(tmp_path, persistent=True):
        for _ in range(2):
            assert cached("baseline", _signals(41), "a", compute) == {"median": 1.0}
    assert compute.count == 1
    assert [*tmp_path.iterdir()] == []


def test_pickles_are_never_read(tmp_path):
    compute = Counter(np.zeros(3))
    with feature_cache(tmp_path, persistent=True):
        cached("kind", _signals(1), "a", compute)
        (path,) = tmp_path.glob("*.npy")
        with path.open("wb") as file:
            np.save(file, np.array([{"an": "object"}]), allow_pickle=True)
        np.testing.assert_array_equal(cached("kind", _signals(1), "a", compute), np.zeros(3))
    assert compute.count == 2


def test_the_least_recently_used_arrays_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 3500)
    compute = Counter(np.zeros(150))  # 1200 bytes and a header
    with feature_cache(tmp_path, persistent=True):
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
    with feature_cache(tmp_path / "features", persistent=True):
        cached("kind", _signals(1), "a", compute)
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 2


def test_a_folder_that_cannot_be_created_raises_nothing(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    compute = Counter(np.zeros(3))
    with feature_cache(tmp_path / "file" / "features", persistent=True):
        cached("kind", _signals(1), "a", compute)
    assert compute.count == 1
