"""Windows to learn from: every frame once, zeros beyond the ends, nothing of what was not observed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ethobench import Recording, Signals
from ethobench.core.errors import EthobenchError
from ethobench.training.augmentation import Layout
from ethobench.training.trajectories import Reach, Trajectories, check_weight, lay_out, shares_of, weigh_classes, weighted_loss
from ethobench.training.trajectory_inputs import learn_preparation

pytestmark = pytest.mark.slow


def opened_of(*lengths: int):
    random = np.random.default_rng(0)
    recordings = [Recording(f"r{i}", signals=Signals(random.normal(size=(n, 2)), ("a", "b"), 10.0)) for i, n in enumerate(lengths)]
    how = learn_preparation(recordings, "coordinates", 10.0, causal=False)
    return [how.open(recording) for recording in recordings]


def window(values: np.ndarray, frame: int, past: int, future: int, gap: int) -> np.ndarray:
    """Gather one window by a plain loop over its frames."""
    rows = []
    for step in range(-past, future + 1):
        at = frame + step * gap
        rows.append(values[at] if 0 <= at < len(values) else np.zeros(values.shape[1]))
    return np.array(rows)


@settings(max_examples=25)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_windows_agree_with_a_plain_loop(past, future, gap, lengths):
    opened, reach = opened_of(*lengths), Reach(past, future, gap)
    targets = [np.arange(n, dtype=np.int16) % 3 for n in lengths]
    values, centers, known, owners = lay_out(opened, targets, reach)
    batches = Trajectories(values, centers, known, reach, batch=4)
    seen = []
    for plan in batches.draw(np.random.default_rng(1)):
        windows, wanted = batches.gather(plan)
        for example, found, target in zip(plan.examples, windows, wanted, strict=True):
            place = int(owners[example])
            frame = int(np.sum(owners[:example] == place))
            assert target == frame % 3
            assert np.array_equal(found, window(opened[place].read(0, lengths[place]), frame, past, future, gap).astype(np.float32))
            seen.append((place, frame))
    assert sorted(seen) == [(i, f) for i, n in enumerate(lengths) for f in range(n)]


def test_unobserved_frames_are_seen_but_are_no_examples():
    opened = opened_of(6)
    values, centers, known, _ = lay_out(opened, [np.array([0, -1, 1, -1], dtype=np.int16)], Reach(1, 1))
    assert known.tolist() == [0, 1]
    windows, _ = Trajectories(values, centers, known, Reach(1, 1), batch=2).gather(
        next(iter(Trajectories(values, centers, known, Reach(1, 1), batch=2).draw(np.random.default_rng(0))))
    )
    whole = opened[0].read(0, 6)
    assert {tuple(w[1]) for w in windows} == {tuple(whole[0]), tuple(whole[2])}
    assert tuple(whole[3]) in {tuple(w[2]) for w in windows}
    with pytest.raises(EthobenchError, match="no frame was observed"):
        lay_out(opened, [np.full(6, -1, dtype=np.int16)], Reach(1, 1))


def test_an_epoch_takes_at_most_so_many_and_others_in_the_next():
    values = np.zeros((50, 1), dtype=np.float32)
    batches = Trajectories(values, np.arange(50), np.zeros(50, dtype=np.int16), Reach(0, 0), batch=8, samples=20)
    first, again, second = (batches.draw(np.random.default_rng([3, epoch])) for epoch in (0, 0, 1))
    assert [len(plan.examples) for plan in first] == [8, 8, 4]
    assert all(np.array_equal(a.examples, b.examples) and a.seed == b.seed for a, b in zip(first, again, strict=True))
    joined = np.concatenate([plan.examples for plan in first])
    assert len(set(joined.tolist())) == 20
    assert set(joined.tolist()) != {*np.concatenate([plan.examples for plan in second]).tolist()}


def test_no_batch_has_one_example_alone():
    values = np.zeros((17, 1), dtype=np.float32)
    batches = Trajectories(values, np.arange(17), np.zeros(17, dtype=np.int16), Reach(0, 0), batch=8)
    assert [len(plan.examples) for plan in batches.draw(np.random.default_rng(0))] == [8, 9]


def test_augmented_windows_are_the_same_for_the_same_plan():
    values = np.random.default_rng(0).random((30, 2)).astype(np.float32)
    layout = Layout(("a/nose/x", "a/nose/y"), ("a",), ("nose",))
    batches = Trajectories(values, np.arange(5, 25), np.zeros(20, dtype=np.int16), Reach(2, 2), 4, augment=("rotation",), layout=layout)
    one, two, *_ = batches.draw(np.random.default_rng(0))
    assert np.array_equal(batches.gather(one)[0], batches.gather(one)[0])
    assert one.seed != two.seed
    plain = Trajectories(values, batches.centers, batches.targets, Reach(2, 2), 4).gather(one)[0]
    assert not np.allclose(batches.gather(one)[0], plain)
    assert np.linalg.norm(batches.gather(one)[0] - 0.5, axis=2) == pytest.approx(np.linalg.norm(plain - 0.5, axis=2), abs=1e-5)


def test_annotators_are_channels_of_their_own():
    values = np.ones((10, 2), dtype=np.float32)
    batches = Trajectories(
        values, np.arange(10), np.zeros(10, dtype=np.int16), Reach(0, 0), 10, styles=np.arange(10, dtype=np.int16) % 3, n_styles=3
    )
    (plan,) = batches.draw(np.random.default_rng(0))
    windows, _ = batches.gather(plan)
    assert windows.shape == (10, 1, 5)
    assert np.array_equal(windows[:, 0, 2:].argmax(axis=1), plan.examples % 3)
    assert shares_of(None, ("x", "y")) == [0.5, 0.5]
    assert shares_of("y", ("x", "y")) == [0.0, 1.0]
    with pytest.raises(EthobenchError, match="no annotator 'z'; it did from: x, y"):
        shares_of("z", ("x", "y"))


def test_class_weights():
    codes = np.array([0] * 6 + [1] * 2 + [-1] * 5, dtype=np.int16)
    assert weigh_classes(codes, 3, 0, "none").tolist() == [1, 1, 1]
    assert weigh_classes(codes, 3, 0, "balanced") == pytest.approx([8 / 12, 2, 1])
    assert weigh_classes(codes, 3, 0, 20).tolist() == [1, 20, 20]
    several = np.array([[1, 0], [0, 0], [0, -1], [0, 0]], dtype=np.int16)
    assert weigh_classes(several, 2, 1, "balanced") == pytest.approx([3, 1])
    assert weigh_classes(several, 2, 1, 5.0).tolist() == [5, 5]
    for wrong in ("even", 0, -1.0):
        with pytest.raises(EthobenchError, match="a class weight is"):
            check_weight(wrong)


def test_losses_divide_by_the_number_of_examples_as_keras_does():
    scores = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    loss = weighted_loss(np.array([1.0, 20.0], dtype=np.float32), exclusive=True)(scores, torch.tensor([1, 0], dtype=torch.int16))
    assert loss.item() == pytest.approx((20 * np.log(2) + np.log(1 + np.exp(-2))) / 2, rel=1e-5)
    several = weighted_loss(np.array([3.0, 1.0], dtype=np.float32), exclusive=False)
    loss = several(scores, torch.tensor([[1, -1], [0, 0]], dtype=torch.int16))
    assert loss.item() == pytest.approx((3 * np.log(2) + np.log(1 + np.e) + np.log(1 + np.exp(-1))) / 3, rel=1e-5)


def test_impossible_windows_are_refused():
    for wrong in ((-1, 0, 1), (0, -1, 1), (0, 0, 0)):
        with pytest.raises(EthobenchError, match="a window has"):
            Reach(*wrong)
