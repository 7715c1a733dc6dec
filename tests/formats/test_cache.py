"""The cache of parsed arrays: keyed by content, whole or not at all, never in the way."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.formats._cache import cached_arrays, content_hash


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_built_once_and_keyed_by_content(tmp_path, cache):
    calls = []

    def build():
        calls.append(1)
        return {"a": np.arange(5), "names": np.array(["x", "y"])}

    first, copy = tmp_path / "a.bin", tmp_path / "b.bin"
    first.write_bytes(b"same")
    copy.write_bytes(b"same")
    assert cached_arrays(first, "k", build)["a"].tolist() == [0, 1, 2, 3, 4]
    assert cached_arrays(copy, "k", build)["names"].tolist() == ["x", "y"]
    assert len(calls) == 1
    cached_arrays(copy, "other", build)
    copy.write_bytes(b"changed")
    cached_arrays(copy, "k", build)
    assert len(calls) == 3


def test_a_failure_leaves_nothing_behind(tmp_path, cache):
    path = tmp_path / "a.bin"
    path.write_bytes(b"x")

    def broken():
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        cached_arrays(path, "k", broken)
    assert not [p for p in (cache / "arrays").glob("*") if p.name != "known"]


def test_no_cache_is_no_obstacle(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the cache folder should be", encoding="utf-8")
    monkeypatch.setenv("ETHOBENCH_CACHE", str(blocked))
    path = tmp_path / "a.bin"
    path.write_bytes(b"x")
    assert cached_arrays(path, "k", lambda: {"a": np.arange(3)})["a"].tolist() == [0, 1, 2]


def test_hash_follows_the_content(tmp_path, cache):
    path = tmp_path / "a.bin"
    path.write_bytes(b"one")
    before = content_hash(path, cache)
    assert content_hash(path, cache) == before
    path.write_bytes(b"two!")
    assert content_hash(path, cache) != before
