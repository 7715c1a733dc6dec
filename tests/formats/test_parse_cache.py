"""The cache of parsed arrays: keyed by content, written atomically, and optional."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from ethobench import read_annotation
from ethobench.formats.parse_cache import cached_arrays, content_hash


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


def test_a_failure_leaves_no_file(tmp_path, cache):
    path = tmp_path / "a.bin"
    path.write_bytes(b"x")

    def broken():
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        cached_arrays(path, "k", broken)
    assert not [p for p in (cache / "arrays").glob("*") if p.name != "known"]


def test_the_cache_is_optional(tmp_path, monkeypatch):
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


def _damages():
    def cut(entry):
        file = entry / "a.npy"
        file.write_bytes(file.read_bytes()[:-8])

    def empty(entry):
        for file in entry.iterdir():
            file.write_bytes(b"")

    def flip(entry):
        file = entry / "a.npy"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)

    def lose_an_array(entry):
        (entry / "a.npy").unlink()

    def lose_the_checksums(entry):
        (entry / "entry.json").unlink()

    def nest(entry):
        (entry / "entry.json").write_text("[]", encoding="utf-8")

    return [cut, empty, flip, lose_an_array, lose_the_checksums, nest]


@pytest.mark.parametrize("damage", _damages(), ids=lambda damage: damage.__name__)
def test_a_damaged_entry_is_built_again(tmp_path, cache, damage):
    path = tmp_path / "a.bin"
    path.write_bytes(b"sound")
    calls = []

    def build():
        calls.append(1)
        return {"a": np.arange(5)}

    cached_arrays(path, "k", build)
    (entry,) = (cache / "arrays").iterdir()
    damage(entry)
    assert cached_arrays(path, "k", build)["a"].tolist() == [0, 1, 2, 3, 4]
    assert len(calls) == 2
    assert cached_arrays(path, "k", build)["a"].tolist() == [0, 1, 2, 3, 4]
    assert len(calls) == 2
    assert list((cache / "arrays").iterdir()) == [entry]


@pytest.mark.parametrize("content", [b"", b"\0" * 32, b"0" * 32], ids=["empty", "null bytes", "zeros"])
def test_damaged_hashes_do_not_confuse_two_files(tmp_path, cache, content, monkeypatch):
    monkeypatch.setattr("ethobench.formats.parse_cache.CLOCK_GRAIN", 0)
    first, second = tmp_path / "a.bin", tmp_path / "b.bin"
    first.write_bytes(bytes(3 << 20) + b"1")
    second.write_bytes(bytes(3 << 20) + b"2")
    hashes = content_hash(first, cache), content_hash(second, cache)
    memos = list((cache / "hashes").iterdir())
    assert len(memos) == 2
    for memo in memos:
        memo.write_bytes(content)
    assert (content_hash(first, cache), content_hash(second, cache)) == hashes
    assert hashes[0] != hashes[1]
    assert (content_hash(first, cache), content_hash(second, cache)) == hashes


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_size_and_time_stamps_are_not_identity(tmp_path, cache, size):
    path = tmp_path / "a.bin"
    path.write_bytes(b"1" * size)
    os.utime(path, ns=(10**18, 10**18))
    before = content_hash(path, cache)
    path.write_bytes(b"1" * (size // 2) + b"2" + b"1" * (size - size // 2 - 1))
    os.utime(path, ns=(10**18, 10**18))
    assert content_hash(path, cache) != before


def test_a_file_that_changes_while_it_is_parsed_is_not_cached(tmp_path, cache):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def build():
        path.write_bytes(b"new and longer")
        return {"a": np.arange(2)}

    cached_arrays(path, "k", build)
    path.write_bytes(b"old")
    assert cached_arrays(path, "k", lambda: {"a": np.arange(3)})["a"].tolist() == [0, 1, 2]


def test_a_damaged_cache_is_not_blamed_on_the_source(tmp_path, cache):
    """Through the public face: the reader of CalMS21 gives the same labels whatever happened to the cache."""
    path = tmp_path / "a.json"
    vocabulary = {"attack": 0, "investigation": 1, "mount": 2, "other": 3}
    sequence = {"keypoints": [[[[0.0] * 7] * 2] * 2] * 4, "scores": [[[1.0] * 7] * 2] * 4, "annotations": [0, 0, 3, 3]}
    path.write_text(json.dumps({"annotator-id_0": {"one": {**sequence, "metadata": {"vocab": vocabulary}}}}), encoding="utf-8")
    before = read_annotation(path).to_frames().tolist()
    arrays = list((cache / "arrays").rglob("*.npy"))
    assert arrays
    for file in arrays:
        file.write_bytes(b"")
    assert read_annotation(path).to_frames().tolist() == before
