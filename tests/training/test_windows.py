"""The window sampler, against plain loops and against the published code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hypothesis_limits import at_most
from tests.training.readers import reader_of

from ethobench import Recording, Signals
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import EthobenchError
from ethobench.training.augmentation import Layout
from ethobench.training.channel_inputs import ChannelReader
from ethobench.training.trajectory_inputs import fit_input_transform
from ethobench.training.windows import Plan, RandomBatches, WindowSpan, sample_frames, sample_sequences, select_rows

SPAN = WindowSpan(6, 4, 2)


def sequences_of(labels: list[list[int]], window: int, batch_size: int = 4):
    targets = [np.array(codes, dtype=np.int16) for codes in labels]
    offsets = np.cumsum([0, *map(len, targets)])
    readers = [reader_of(np.arange(len(target)) + offset) for target, offset in zip(targets, offsets[:-1], strict=True)]
    return sample_sequences(readers, targets, window, batch_size)


def all_anchors(sampler) -> list[int]:
    return select_rows(sampler.anchors, np.arange(len(sampler))).tolist()


def plan_of(*anchors: int) -> Plan:
    return Plan(np.array(anchors))


@given(st.lists(st.lists(st.sampled_from([-1, -1, -1, 0, 1]), min_size=6, max_size=25), min_size=1, max_size=4), st.integers(1, 5))
def test_windows_start_where_published(labels, window):
    published, offset = [], 0
    for codes in labels:
        possible = range(len(codes) - window)  # one fewer than there are
        published += [offset + start for start in possible if any(code != -1 for code in codes[start : start + window])]
        offset += len(codes)
    if not published:
        with pytest.raises(EthobenchError, match="no frame was observed"):
            sequences_of(labels, window)
        return
    sampler = sequences_of(labels, window)
    assert all_anchors(sampler) == published
    assert len(sampler) == len(published)


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(2, 40))
def test_an_epoch_is_as_long_as_published(n_windows, batch_size, window):
    sampler = sequences_of([[0] * (n_windows + window)], window, batch_size)
    assert len(sampler) == n_windows
    plans = sampler.draw(np.random.default_rng(0))
    if n_windows < batch_size:  # published: no batch at all
        assert [len(plan.anchors) for plan in plans] == [n_windows]
        return
    in_loader = n_windows // batch_size  # the last batch is dropped
    assert len(plans) == min(in_loader, 1 + in_loader // (window // 2))
    assert {len(plan.anchors) for plan in plans} == {batch_size}


def test_an_epoch_draws_windows_without_repeats_and_evenly():
    sampler = sequences_of([[0] * 30 + [-1] * 40 + [1] * 30, [-1] * 10 + [0] * 50], window=8, batch_size=4)
    generator = np.random.default_rng(0)
    allowed = all_anchors(sampler)
    counts = dict.fromkeys(allowed, 0)
    for _ in range(2000):
        plans = sampler.draw(generator)
        drawn = np.concatenate([plan.anchors for plan in plans]).tolist()
        assert len(set(drawn)) == len(drawn)
        for start in drawn:
            counts[start] += 1
    share = np.array(list(counts.values())) / 2000
    expected = len(plans) * 4 / len(allowed)
    assert share == pytest.approx(np.full(len(allowed), expected), abs=6 * np.sqrt(expected / 2000))


def test_a_batch_contains_the_windows_and_their_labels():
    sampler = sequences_of([[0, 1, 0, 1, 0, -1], [1, 1, 0, 0, 1, 1, 0]], window=3)
    inputs, targets = sampler.gather(plan_of(1, 8))
    assert inputs[..., 0].tolist() == [[1, 2, 3], [8, 9, 10]]
    assert targets.tolist() == [[1, 0, 1], [0, 0, 1]]
    assert inputs.dtype == np.float32


def test_a_recording_shorter_than_the_window_is_padded_without_labels():
    readers = [reader_of([1.0, 2.0, 6.0]), reader_of(np.arange(20))]
    targets = [np.array([0, 1, 1], dtype=np.int16), np.zeros(20, dtype=np.int16)]
    with pytest.warns(UserWarning, match="1 of 2 recordings are shorter than a window of 5 frames"):
        sampler = sample_sequences(readers, targets, 5, 4)
    inputs, labels = sampler.gather(plan_of(0))
    assert inputs[0, :, 0].tolist() == [1, 2, 6, 3, 3]
    assert labels[0].tolist() == [0, 1, 1, -1, -1]
    assert all_anchors(sampler) == [0, *range(6, 21)]


def test_missing_channels_give_a_warning():
    values = np.ones((10, 2))
    values[3:5, 0] = np.nan
    with pytest.warns(UserWarning, match="2 of 10 annotated frames lack a channel"):
        sample_sequences([reader_of(values)], [np.zeros(10, np.int16)], 3, 4)


@pytest.mark.slow
def test_random_batches_are_the_same_for_the_same_seed():
    values = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    channels = ("AccX", "AccY", "AccZ")
    sampler = sample_sequences(
        [ChannelReader(values, range(3), channels, 10.0)],
        [np.zeros(400, dtype=np.int16)],
        60,
        4,
        epoch=RandomBatches(25),
        target_stride=3,
        augmentations=("rotate_axes", "scale"),
        layout=Layout(channels),
    )
    plans = sampler.draw(np.random.default_rng(1))
    assert len(plans) == 25
    first, again, other = sampler.gather(plans[0]), sampler.gather(plans[0]), sampler.gather(plans[1])
    assert first[0].shape == (4, 60, 3)
    assert first[1].shape == (4, 20)
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def transformed_of(*lengths: int):
    random = np.random.default_rng(0)
    recordings = [Recording(f"r{i}", signals=Signals(random.normal(size=(n, 2)), ("a", "b"), 10.0)) for i, n in enumerate(lengths)]
    transform = fit_input_transform(recordings, "coordinates", 10.0, causal=False)
    return [transform.open(recording) for recording in recordings]


def window_at(values: np.ndarray, frame: int, past: int, future: int, stride: int) -> np.ndarray:
    """Gather one window by a plain loop over its frames."""
    rows = []
    for step in range(-past, future + 1):
        position = frame + step * stride
        rows.append(values[position] if 0 <= position < len(values) else np.zeros(values.shape[1]))
    return np.array(rows)


@pytest.mark.slow
@at_most(25)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_windows_around_frames_agree_with_a_plain_loop(past, future, stride, lengths):
    readers, span = transformed_of(*lengths), WindowSpan(past, future, stride)
    sampler = sample_frames(readers, [np.arange(n, dtype=np.int16) % 3 for n in lengths], span, batch_size=4)
    first_rows = sampler.recordings.first_rows
    frames = []
    for plan in sampler.draw(np.random.default_rng(1)):
        for anchor, window, target in zip(plan.anchors, *sampler.gather(plan), strict=True):
            index = int(np.searchsorted(first_rows, anchor, side="right")) - 1
            frame = int(anchor - first_rows[index])
            assert target == frame % 3
            expected = window_at(readers[index].read(0, lengths[index]), frame, past, future, stride)
            assert np.array_equal(window, expected.astype(np.float32))
            frames.append((index, frame))
    assert sorted(frames) == [(i, f) for i, n in enumerate(lengths) for f in range(n)]


def test_unobserved_frames_are_inputs_but_not_examples():
    readers = transformed_of(6)
    sampler = sample_frames(readers, [np.array([0, -1, 1, -1], dtype=np.int16)], WindowSpan(1, 1), batch_size=2)
    (plan,) = sampler.draw(np.random.default_rng(0))
    windows, targets = sampler.gather(plan)
    assert sorted(targets.tolist()) == [0, 1]
    values = readers[0].read(0, 6)
    assert {tuple(window[1]) for window in windows} == {tuple(values[0]), tuple(values[2])}
    assert tuple(values[3]) in {tuple(window[2]) for window in windows}
    with pytest.raises(EthobenchError, match="no frame was observed"):
        sample_frames(readers, [np.full(6, -1, dtype=np.int16)], WindowSpan(1, 1), batch_size=2)


def frames_of(n: int, **options):
    span = options.pop("span", WindowSpan(0, 0))
    return sample_frames([reader_of(np.zeros(n))], [np.zeros(n, dtype=np.int16)], span, options.pop("batch_size", 8), **options)


def test_an_epoch_has_at_most_so_many_samples_and_others_in_the_next():
    sampler = frames_of(50, samples=20)
    first, again, second = (sampler.draw(np.random.default_rng([3, epoch])) for epoch in (0, 0, 1))
    assert [len(plan.anchors) for plan in first] == [8, 8, 4]
    assert all(np.array_equal(a.anchors, b.anchors) and a.seed == b.seed for a, b in zip(first, again, strict=True))
    joined = np.concatenate([plan.anchors for plan in first]).tolist()
    assert len(set(joined)) == 20
    assert set(joined) != {*np.concatenate([plan.anchors for plan in second]).tolist()}


def test_no_batch_has_a_single_window():
    assert [len(plan.anchors) for plan in frames_of(17).draw(np.random.default_rng(0))] == [8, 9]


@pytest.mark.slow
def test_augmented_windows_are_the_same_for_the_same_plan():
    values = np.random.default_rng(0).random((30, 2)).astype(np.float32)
    layout = Layout(("a/nose/x", "a/nose/y"), ("a",), ("nose",))
    targets = np.full(30, UNOBSERVED, dtype=np.int16)
    targets[5:25] = 0
    augmented, plain = (
        sample_frames([reader_of(values)], [targets], WindowSpan(2, 2), 4, augmentations=names, layout=layout)
        for names in (("rotation",), ())
    )
    one, two, *_ = augmented.draw(np.random.default_rng(0))
    assert np.array_equal(augmented.gather(one)[0], augmented.gather(one)[0])
    assert one.seed != two.seed
    before, after = plain.gather(one)[0], augmented.gather(one)[0]
    assert not np.allclose(after, before)
    assert np.linalg.norm(after - 0.5, axis=2) == pytest.approx(np.linalg.norm(before - 0.5, axis=2), abs=1e-5)


def test_annotators_are_one_hot_channels():
    readers, targets = [reader_of(np.ones((3, 2)))] * 3, [np.zeros(3, dtype=np.int16)] * 3
    sampler = sample_frames(readers, targets, WindowSpan(1, 2), 9, annotators=[2, 0, 1], n_annotators=3)
    (plan,) = sampler.draw(np.random.default_rng(0))
    windows, _ = sampler.gather(plan)
    assert windows.shape == (9, 4, 5)
    recordings = np.searchsorted(sampler.recordings.first_rows, plan.anchors, side="right") - 1
    assert np.array_equal(windows[:, 0, 2:].argmax(axis=1), np.array([2, 0, 1])[recordings])


def runs_of(length: int, lengths=(90, 55), unobserved=range(20, 33), **options):
    random = np.random.default_rng(0)
    readers = [reader_of(random.normal(size=(n, 3))) for n in lengths]
    targets = []
    for n in lengths:
        target = random.integers(0, 2, n).astype(np.int16)
        target[list(unobserved)] = UNOBSERVED
        targets.append(target)
    return sample_frames(readers, targets, SPAN, 4, frames_per_example=length, **options)


@pytest.mark.parametrize("length", [2, 7, 16, 200])
def test_every_frame_is_in_about_one_run_of_an_epoch(length):
    sampler = runs_of(length)
    length = sampler.epoch.length
    labeled = all_anchors(sampler)
    for seed in range(5):
        counts = np.zeros(len(sampler.recordings.values), dtype=int)
        for plan in sampler.draw(np.random.default_rng(seed)):
            windows, targets = sampler.gather(plan)
            assert windows.shape[1] == length + SPAN.before + SPAN.after
            rows = plan.anchors[:, None] + np.arange(length)
            np.add.at(counts, rows[targets != UNOBSERVED], 1)
        assert (counts[labeled] >= 1).all()
        assert counts[labeled].mean() < 1.5
        assert counts.sum() == counts[labeled].sum()


def test_samples_of_runs_count_frames():
    assert sum(len(plan.anchors) for plan in runs_of(8, samples=24).draw(np.random.default_rng(0))) == 3


def test_invalid_spans_are_refused():
    for wrong, name in (((-1, 0, 1), "past"), ((0, -1, 1), "future"), ((0, 0, 0), "stride")):
        with pytest.raises(EthobenchError, match=f"`{name}` must be >= "):
            WindowSpan(*wrong)
