"""Windows are those that BEBE takes, restated literally."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import EthobenchError
from ethobench.training import clips as clips_module
from ethobench.training.clips import make_clips
from ethobench.training.streams import Stream


def stream_of(values) -> Stream:
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    return Stream(values, range(values.shape[1]), [f"c{k}" for k in range(values.shape[1])], 10.0)


def clips_of(labels: list[list[int]], window: int, batch: int = 4):
    targets = [np.array(codes, dtype=np.int16) for codes in labels]
    offsets = np.cumsum([0, *map(len, targets)])
    streams = [stream_of(np.arange(len(t)) + offset) for t, offset in zip(targets, offsets[:-1], strict=True)]
    return make_clips(streams, targets, window, batch)


def all_starts(clips) -> list[int]:
    return [frame for a, b in zip(clips.starts.start, clips.starts.stop, strict=True) for frame in range(a, b)]


@given(st.lists(st.lists(st.sampled_from([-1, -1, -1, 0, 1]), min_size=6, max_size=25), min_size=1, max_size=4), st.integers(1, 5))
def test_windows_begin_where_published(labels, window):
    published, offset = [], 0
    for codes in labels:
        possible = range(len(codes) - window)  # one fewer than there are
        published += [offset + start for start in possible if any(code != -1 for code in codes[start : start + window])]
        offset += len(codes)
    if not published:
        with pytest.raises(EthobenchError, match="no frame was observed"):
            clips_of(labels, window)
        return
    clips = clips_of(labels, window)
    assert all_starts(clips) == published
    assert clips.n_starts == len(published)


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(2, 40))
def test_an_epoch_is_as_long_as_published(n_windows, batch, window):
    clips = clips_of([[0] * (n_windows + window)], window, batch)
    assert clips.n_starts == n_windows
    plans = clips.draw(np.random.default_rng(0))
    assert len(plans) == clips.steps
    if n_windows < batch:  # published: nothing would be learnt
        assert [len(plan) for plan in plans] == [n_windows]
        return
    in_loader = n_windows // batch  # the last batch is dropped
    assert len(plans) == min(in_loader, 1 + in_loader // (window // 2))
    assert {len(plan) for plan in plans} == {batch}


def test_an_epoch_draws_windows_without_repeats_and_evenly():
    clips = clips_of([[0] * 30 + [-1] * 40 + [1] * 30, [-1] * 10 + [0] * 50], window=8, batch=4)
    generator = np.random.default_rng(0)
    allowed = all_starts(clips)
    counts = dict.fromkeys(allowed, 0)
    for _ in range(2000):
        chosen = np.concatenate(clips.draw(generator)).tolist()
        assert len(set(chosen)) == len(chosen)
        for start in chosen:
            counts[start] += 1
    share = np.array(list(counts.values())) / 2000
    expected = clips.steps * 4 / len(allowed)
    assert share == pytest.approx(np.full(len(allowed), expected), abs=6 * np.sqrt(expected / 2000))


def test_a_batch_holds_the_windows_and_their_labels():
    clips = clips_of([[0, 1, 0, 1, 0, -1], [1, 1, 0, 0, 1, 1, 0]], window=3)
    inputs, targets = clips.gather(np.array([1, 8]))
    assert inputs[..., 0].tolist() == [[1, 2, 3], [8, 9, 10]]
    assert targets.tolist() == [[1, 0, 1], [0, 0, 1]]
    assert inputs.dtype == np.float32


def test_a_recording_shorter_than_the_window_is_padded_unknown_and_told():
    streams = [stream_of([1.0, 2.0, 6.0]), stream_of(np.arange(20))]
    targets = [np.array([0, 1, 1], dtype=np.int16), np.zeros(20, dtype=np.int16)]
    with pytest.warns(UserWarning, match="1 of 2 recordings are shorter than a window of 5 frames"):
        clips = make_clips(streams, targets, 5, 4)
    inputs, labels = clips.gather(np.array([0]))
    assert inputs[0, :, 0].tolist() == [1, 2, 6, 3, 3]
    assert labels[0].tolist() == [0, 1, 1, -1, -1]
    assert all_starts(clips) == [0, *range(6, 21)]


def test_missing_channels_are_masked_and_told():
    values = np.ones((10, 2))
    values[3:5, 0] = np.nan
    values[8, 1] = np.nan
    labels = np.array([0, 0, 0, 0, 1, 1, 1, -1, -1, 1], dtype=np.int16)
    with pytest.warns(UserWarning, match="2 annotated frames of 8 lack some channel"):
        clips = make_clips([stream_of(values)], [labels], 3, 4)
    assert clips.targets.tolist() == [0, 0, 0, -1, -1, 1, 1, -1, -1, 1]
    assert np.isfinite(clips.values).all()


def test_labels_may_be_shorter_or_longer_than_the_signals():
    clips = make_clips([stream_of(np.arange(10)), stream_of(np.arange(6))], [np.zeros(7, np.int16), np.ones(9, np.int16)], 2, 4)
    assert clips.targets.tolist() == [0] * 7 + [-1] * 3 + [1] * 6


def test_large_data_lie_on_disk_and_are_the_same(monkeypatch):
    labels = [[0, 1] * 10, [1] * 15]
    small = clips_of(labels, 4)
    monkeypatch.setattr(clips_module, "IN_MEMORY", 8)
    large = clips_of(labels, 4)
    assert isinstance(large.values, np.memmap)
    plan = np.array([0, 7, 22])
    for a, b in zip(small.gather(plan), large.gather(plan), strict=True):
        assert np.array_equal(a, b)
        assert type(a) is type(b)


def test_statistics_are_those_of_all_frames(monkeypatch):
    monkeypatch.setattr(clips_module, "PIECE", 7)
    values = np.random.default_rng(0).normal([1e3, 0], [0.1, 5], (50, 2))
    values[:, 1] = 3.0
    clips = make_clips([stream_of(values)], [np.zeros(50, np.int16)], 5, 4)
    mean, variance = clips.statistics()
    assert mean == pytest.approx(values.mean(axis=0), rel=1e-6)
    assert variance == pytest.approx(values.var(axis=0), rel=1e-2)
    assert variance[1] == 0


def test_the_checksum_changes_with_the_data():
    labels = [[0, 1] * 10]
    first, again, other = clips_of(labels, 4), clips_of(labels, 4), clips_of([[1, 0] * 10], 4)
    assert first.checksum == again.checksum != other.checksum
