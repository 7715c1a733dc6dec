"""Recordings laid end to end: labels, padding, memory-mapped arrays, statistics."""

from __future__ import annotations

import numpy as np
import pytest
from tests.training.readers import reader_of

from ethobench.training import joined_recordings
from ethobench.training.joined_recordings import JoinedRecordings, join_recordings


def join(*labels: list[int]) -> JoinedRecordings:
    targets = [np.array(codes, dtype=np.int16) for codes in labels]
    return join_recordings([reader_of(np.arange(len(target)) ** 2) for target in targets], targets)[0]


def test_padding_is_zero_around_recordings_and_the_mean_in_short_ones():
    readers = [reader_of([1.0, 2.0, 6.0]), reader_of(np.arange(5) + 10)]
    targets = [np.array([0, 1, 1], dtype=np.int16), np.zeros(5, dtype=np.int16)]
    joined, n_masked = join_recordings(readers, targets, before=1, after=2, min_length=4)
    assert joined.values[:, 0].tolist() == [0, 1, 2, 6, 3, 0, 0, 0, 10, 11, 12, 13, 14, 0, 0]
    assert joined.targets.tolist() == [-1, 0, 1, 1, -1, -1, -1, -1, 0, 0, 0, 0, 0, -1, -1]
    assert (joined.first_rows.tolist(), joined.lengths.tolist(), n_masked) == ([1, 8], [4, 5], 0)
    assert [side.tolist() for side in joined.labeled()] == [[1, 8], [4, 13]]


def test_frames_with_a_missing_channel_have_no_labels():
    values = np.ones((10, 2))
    values[3:5, 0] = np.nan
    values[8, 1] = np.nan
    labels = np.array([0, 0, 0, 0, 1, 1, 1, -1, -1, 1], dtype=np.int16)
    joined, n_masked = join_recordings([reader_of(values)], [labels])
    assert n_masked == 2
    assert joined.targets.tolist() == [0, 0, 0, -1, -1, 1, 1, -1, -1, 1]
    assert np.isfinite(joined.values).all()


def test_labels_may_be_shorter_or_longer_than_the_signals():
    readers = [reader_of(np.arange(10)), reader_of(np.arange(6))]
    joined, _ = join_recordings(readers, [np.zeros(7, np.int16), np.ones(9, np.int16)])
    assert joined.targets.tolist() == [0] * 7 + [-1] * 3 + [1] * 6


def test_large_data_are_memory_mapped_and_the_same(monkeypatch):
    small = join([0, 1] * 10, [1] * 15)
    monkeypatch.setattr(joined_recordings, "MAX_BYTES_IN_MEMORY", 8)
    large = join([0, 1] * 10, [1] * 15)
    assert isinstance(large.values, np.memmap)
    assert not isinstance(small.values, np.memmap)
    assert np.array_equal(small.values, large.values)
    assert small.checksum == large.checksum


def test_statistics_are_those_of_all_frames(monkeypatch):
    monkeypatch.setattr(joined_recordings, "STATISTICS_ROWS", 7)
    values = np.random.default_rng(0).normal([1e3, 0], [0.1, 5], (50, 2))
    values[:, 1] = 3.0
    mean, variance = join_recordings([reader_of(values)], [np.zeros(50, np.int16)])[0].statistics()
    assert mean == pytest.approx(values.mean(axis=0), rel=1e-6)
    assert variance == pytest.approx(values.var(axis=0), rel=1e-2)
    assert variance[1] == 0


def test_the_checksum_changes_with_the_data():
    first, again, other = (join(codes).checksum for codes in ([0, 1] * 10, [0, 1] * 10, [1, 0] * 10))
    assert first == again != other
