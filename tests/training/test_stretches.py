"""Learning from frames in a row: every example about once an epoch, the same loss as window by window."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ethobench as eb  # noqa: E402
from ethobench.core.errors import EthobenchError  # noqa: E402
from ethobench.training.clips import UNKNOWN  # noqa: E402
from ethobench.training.stretches import Stretches, longest_stretch, of_known_frames  # noqa: E402
from ethobench.training.trajectories import Reach, Trajectories, weighted_loss  # noqa: E402
from ethobench.training.trajectory_networks import StretchNetwork, convolutional  # noqa: E402

REACH = Reach(6, 4, 2)


def examples(lengths=(90, 55), gone=range(20, 33), samples=None, batch=4, overlapping=False) -> Trajectories:
    random = np.random.default_rng(0)
    rows = sum(REACH.before + n + REACH.after for n in lengths)
    values, centers, first = np.zeros((rows, 3), dtype=np.float32), [], REACH.before
    for n in lengths:
        values[first : first + n] = random.normal(size=(n, 3))
        centers.append(first + np.array([k for k in range(n) if k not in gone]))
        first += n + REACH.after + REACH.before
    centers = np.concatenate(centers)
    targets = random.integers(0, 2, (len(centers), 2) if overlapping else len(centers)).astype(np.int16)
    return Trajectories(values, centers, targets, REACH, batch, samples)


@pytest.mark.parametrize("length", [2, 7, 16, 200])
def test_every_example_is_seen_about_once_an_epoch(length):
    source = examples()
    stretches = Stretches(source, longest_stretch(source, length))
    for seed in range(5):
        seen = np.zeros(len(source.values), dtype=int)
        for plan in stretches.draw(np.random.default_rng(seed)):
            windows, targets = stretches.gather(plan)
            assert windows.shape[1] == stretches.length + REACH.before + REACH.after
            rows = plan.examples[:, None] + np.arange(stretches.length)
            np.add.at(seen, rows[targets != UNKNOWN], 1)
        assert (seen[source.centers] >= 1).all()
        assert seen[source.centers].mean() < 1.5
        assert seen.sum() == seen[source.centers].sum()


def test_samples_count_frames():
    source = examples(samples=24)
    assert sum(len(plan.examples) for plan in Stretches(source, 8).draw(np.random.default_rng(0))) == 3


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_loss_and_its_slope_are_those_of_the_windows(overlapping):
    source = examples(overlapping=overlapping)
    torch.manual_seed(0)
    network = convolutional(REACH.frames, 3, 2, (5, 4), 3, 0.0).eval()
    loss = weighted_loss(np.array([1.0, 3.0], dtype=np.float32), exclusive=not overlapping)
    stretches = Stretches(source, 9)
    plan = stretches.draw(np.random.default_rng(1))[0]
    inputs, targets = (torch.from_numpy(part) for part in stretches.gather(plan))
    found = of_known_frames(loss)(StretchNetwork(network, REACH)(inputs), targets)
    found.backward()
    slopes = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    place = {row: k for k, row in enumerate(source.centers)}
    chosen = [place[row] for start in plan.examples for row in range(start, start + 9) if row in place]
    windows = torch.from_numpy(source.values[source.centers[chosen][:, None] + REACH.offsets])
    expected = loss(network(windows), torch.from_numpy(source.targets[chosen]))
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    for mine, p in zip(slopes, network.parameters(), strict=True):
        torch.testing.assert_close(mine, p.grad, atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def mice():
    return eb.load_dataset("synthetic/pose", individuals=3, seconds=60.0)


@pytest.mark.slow
def test_a_network_learns_from_stretches_and_goes_on_after_it_was_stopped(mice, tmp_path):
    settings = {"past": 10, "future": 10, "gap": 1, "layers": (16, 8), "dropout": 0.1, "epochs": 6, "together": 50, "batch": 8}
    data = mice.select(recordings=[r.id for r in mice][:2])
    whole = eb.create_model("conv1d", **settings).fit(data)
    assert whole.histories[0].losses[-1] < 0.8 * whole.histories[0].losses[0]
    stopped = eb.create_model("conv1d", **settings)
    stopped.checkpoint = tmp_path

    def stop(progress) -> None:
        if progress.epoch == 3:
            raise KeyboardInterrupt

    stopped.progress = stop
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(data)
    stopped.progress = None
    again = stopped.fit(data).predict(mice.recordings[2]).probabilities
    np.testing.assert_array_equal(again, whole.predict(mice.recordings[2]).probabilities)


def test_other_networks_take_one_frame_at_a_time(mice):
    with pytest.raises(EthobenchError, match="only convolutions for one annotator"):
        eb.create_model("dense", past=2, future=2, epochs=1, together=10).fit(mice)
    with pytest.raises(EthobenchError, match="at least one frame"):
        eb.create_model("conv1d", together=0)
