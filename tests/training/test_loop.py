"""The training loop: published schedule, reproducible, and unchanged by an interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.clock import Clock

import ethobench as eb
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.training.device import choose_device, isolated_seed
from ethobench.training.loop import Progress, TrainingSettings, train

pytestmark = pytest.mark.slow

SETTINGS = TrainingSettings(epochs=4, learning_rate=0.01, seed=3)


class Lines:
    """Points of a line with noise, in batches of 8."""

    def __init__(self, n: int = 64, slope: float = 2.0, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.x = generator.normal(size=(n, 3)).astype(np.float32)
        self.y = (self.x[:, :1] * slope + generator.normal(0, 0.1, (n, 1))).astype(np.float32)

    def draw(self, generator: np.random.Generator) -> list[np.ndarray]:
        return np.split(generator.permutation(len(self.x)), len(self.x) // 8)

    def gather(self, plan: np.ndarray, /) -> tuple[np.ndarray, np.ndarray]:
        return self.x[plan], self.y[plan]


def network() -> torch.nn.Module:
    with isolated_seed(7):
        return torch.nn.Sequential(
            torch.nn.Linear(3, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1)
        )


def weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))


loss = torch.nn.functional.mse_loss


def test_the_loss_falls_and_the_history_has_every_epoch():
    module = network()
    history = train(module, Lines(), loss, replace(SETTINGS, epochs=30))
    assert len(history.losses) == 30
    assert history.losses[-1] < 0.2 * history.losses[0]
    assert history.best_epoch == 29
    assert not module.training


def test_steps_are_those_of_plain_torch():
    """Adam with amsgrad and the cosine schedule, written out; without dropout, which would need the same random numbers."""
    with isolated_seed(1):
        module, other = (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)) for _ in range(2))
    other.load_state_dict(module.state_dict())
    lines = Lines()
    history = train(module, lines, loss, SETTINGS)
    optimizer = torch.optim.Adam(other.parameters(), lr=0.01, amsgrad=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4, eta_min=0)
    for epoch in range(4):
        losses = []
        for plan in lines.draw(np.random.default_rng([3, epoch])):
            x, y = (torch.from_numpy(array) for array in lines.gather(plan))
            value = loss(other(x), y)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
        schedule.step()
        assert history.losses[epoch] == pytest.approx(np.mean(losses), rel=1e-6)
    for a, b in zip(weights(module).values(), weights(other).values(), strict=True):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-7)


def test_the_learning_rate_stays_without_a_schedule():
    assert [TrainingSettings(epochs=4, learning_rate=0.1, schedule="none").learning_rate_at(e) for e in range(4)] == [0.1] * 4
    assert [TrainingSettings(epochs=4, learning_rate=2.0).learning_rate_at(e) for e in range(4)] == pytest.approx(
        [2, 1 + 0.5**0.5, 1, 1 - 0.5**0.5]
    )


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    first, again, other = network(), network(), network()
    for module, seed in ((first, 1), (again, 1), (other, 2)):
        train(module, Lines(), loss, replace(SETTINGS, seed=seed))
    assert same(first, again)
    assert not same(first, other)


def test_global_random_states_are_not_changed():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global state is tested
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    train(network(), Lines(), loss, SETTINGS)
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


def test_statistics_of_batch_normalization_are_those_of_the_present_weights():
    """The running means lag behind; recomputed on all batches, they are the means over the data, and the weights are the same."""
    lagging, recomputed, lines = network(), network(), Lines()
    train(lagging, lines, loss, SETTINGS)
    train(recomputed, lines, loss, SETTINGS, statistics_batches=8)
    first, normalization = recomputed[0], recomputed[1]
    expected = first(torch.from_numpy(lines.x)).detach().mean(dim=0)
    assert normalization.running_mean.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert lagging[1].running_mean.numpy() != pytest.approx(expected.numpy(), abs=1e-3)
    assert normalization.momentum == 0.1
    assert not recomputed.training
    for (name, before), after in zip(lagging.named_parameters(), recomputed.parameters(), strict=True):
        assert torch.equal(before, after), name


def test_parameters_that_require_no_gradient_are_not_changed():
    module = network()
    for parameter in module[0].parameters():
        parameter.requires_grad_(False)
    before = weights(module)
    train(module, Lines(), loss, SETTINGS)
    after = weights(module)
    assert np.array_equal(before["0.weight"], after["0.weight"])
    assert not np.array_equal(before["4.weight"], after["4.weight"])


def test_progress_is_reported_after_every_step():
    reports: list[Progress] = []
    history = train(network(), Lines(), loss, SETTINGS, progress=reports.append)
    assert [(p.epoch, p.step, p.steps) for p in reports] == [(e, s, 8) for e in range(4) for s in range(1, 9)]
    assert np.mean([p.loss for p in reports if p.epoch == 2]) == pytest.approx(history.losses[2])
    assert all(p.frames_per_second > 0 for p in reports)


class InterruptedTrainingError(Exception):
    pass


def interrupt_after(steps: int):
    step = 0

    def progress(_: Progress) -> None:
        nonlocal step
        step += 1
        if step == steps:
            raise InterruptedTrainingError

    return progress


@pytest.mark.parametrize("steps", [1, 8, 13, 22])
@pytest.mark.parametrize("patience", [None, 2])
def test_an_interrupted_training_is_resumed_exactly(tmp_path, steps, patience):
    settings = replace(SETTINGS, patience=patience)
    validation_lines = Lines(16, slope=-1, seed=1)
    complete, interrupted = network(), network()
    expected = train(complete, Lines(), loss, settings, validation=validation_lines)
    with pytest.raises(InterruptedTrainingError):
        train(
            interrupted,
            Lines(),
            loss,
            settings,
            validation=validation_lines,
            checkpoint=tmp_path / "c",
            every=0,
            progress=interrupt_after(steps),
        )
    resumed = network()
    with isolated_seed(99):  # other random numbers than the first time
        history = train(resumed, Lines(), loss, settings, validation=validation_lines, checkpoint=tmp_path / "c", every=0)
    assert history == expected
    assert same(resumed, complete)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_finished_training_is_not_repeated(tmp_path):
    first, again = network(), network()
    history = train(first, Lines(), loss, SETTINGS, checkpoint=tmp_path / "c")
    assert train(again, Lines(), loss, SETTINGS, checkpoint=tmp_path / "c", progress=interrupt_after(1)) == history
    assert same(first, again)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    train(network(), Lines(), loss, SETTINGS, checkpoint=tmp_path / "c", identity={"data": 1})
    with pytest.raises(MismatchError, match=r"another training \(learning_rate differ\)"):
        train(network(), Lines(), loss, replace(SETTINGS, learning_rate=0.5), checkpoint=tmp_path / "c", identity={"data": 1})
    with pytest.raises(MismatchError, match=r"\(data differ\)"):
        train(network(), Lines(), loss, SETTINGS, checkpoint=tmp_path / "c", identity={"data": 2})
    with pytest.raises(MismatchError, match=r"\(data, shapes differ\)"):
        train(torch.nn.Linear(3, 1), Lines(), loss, SETTINGS, checkpoint=tmp_path / "c")


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "c").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        train(network(), Lines(), loss, SETTINGS, checkpoint=tmp_path / "c")
    for metadata, problem in (
        ({"training": "[]"}, "its description is missing or damaged"),
        ({"description": "[]"}, "format version None is not supported"),
        ({"description": '{"format_version": 99}'}, "format version 99 is not supported; this version of ethobench reads 1"),
        ({"description": '{"format_version": 1}'}, "not a training checkpoint"),
    ):
        header = json.dumps({"__metadata__": metadata}).encode()
        (tmp_path / "c").write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(FormatError, match=problem):
            train(network(), Lines(), loss, SETTINGS, checkpoint=tmp_path / "c")


def test_early_stopping_keeps_the_best_weights():
    validation_lines = Lines(16, slope=-2, seed=1)  # training makes these worse
    settings = replace(SETTINGS, epochs=50, patience=3)
    module = network()
    history = train(module, Lines(), loss, settings, validation=validation_lines)
    assert len(history.losses) == len(history.validation) == history.best_epoch + 4 < 50
    assert history.validation[history.best_epoch] == min(history.validation)
    with torch.inference_mode():
        kept = np.mean([loss(module(torch.from_numpy(x)), torch.from_numpy(y)).item() for x, y in batches_of(validation_lines)])
    assert kept == pytest.approx(min(history.validation), rel=1e-5)


def batches_of(lines: Lines):
    return [lines.gather(plan) for plan in lines.draw(np.random.default_rng(SETTINGS.seed))]


def test_invalid_settings_are_refused():
    with pytest.raises(EthobenchError, match="cosine or none"):
        TrainingSettings(schedule="linear")
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"patience": 0}):
        with pytest.raises(EthobenchError, match="must be >"):
            TrainingSettings(**wrong)
    with pytest.raises(EthobenchError, match="needs validation data"):
        train(network(), Lines(), loss, replace(SETTINGS, patience=1))


def test_a_loss_that_is_not_finite_is_an_error():
    lines = Lines()
    lines.y[5] = np.nan
    with pytest.raises(EthobenchError, match=r"not finite: use a learning rate below 0\.01"):
        train(network(), lines, loss, SETTINGS)


def test_the_device_can_be_named(monkeypatch):
    monkeypatch.setenv("ETHOBENCH_DEVICE", "cpu")
    assert choose_device() == torch.device("cpu")
    monkeypatch.setenv("ETHOBENCH_DEVICE", "abacus")
    with pytest.raises(EthobenchError, match="ETHOBENCH_DEVICE is 'abacus'"):
        choose_device()


VICTIM = """
import os, signal, sys
import ethobench as eb

data = eb.load_dataset("synthetic/tag", individuals=3, seconds=60)
model = eb.create_model("crnn", epochs=3, window=50, batch=8, seed=1)
steps = 0

def progress(_):
    global steps
    steps += 1
    if steps == 30:
        os.kill(os.getpid(), signal.SIGKILL)

model.progress, model.checkpoint = progress, sys.argv[1]
model.fit(data)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_process_can_be_resumed(tmp_path):
    done = subprocess.run([sys.executable, "-c", VICTIM, str(tmp_path / "c")], check=False)
    assert done.returncode == -signal.SIGKILL
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=60)
    complete, resumed = (eb.create_model("crnn", epochs=3, window=50, batch=8, seed=1) for _ in range(2))
    reports: list[Progress] = []
    resumed.checkpoint, resumed.progress = tmp_path / "c", reports.append
    resumed.fit(data)
    assert reports[0].epoch > 0
    assert same(resumed.module, complete.fit(data).module)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["training.safetensors"]


def test_a_deadline_ends_a_training_with_a_low_learning_rate():
    """A step takes 1 s, and there are 20 s for what would be 240 steps."""
    clock, rates = Clock(), []
    module = network()
    hook = torch.optim.Adam.step

    def step(optimizer, *arguments, **named):
        rates.append(optimizer.param_groups[0]["lr"])
        clock.now += 1
        return hook(optimizer, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        history = train(module, Lines(), loss, replace(SETTINGS, epochs=30), deadline=Deadline(20, clock=clock))
    assert len(rates) == 20
    assert len(history.losses) == 3  # the last of them is cut short
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(0.01)
    assert rates[-1] < 0.001


def test_a_deadline_that_has_passed_leaves_one_step():
    clock = Clock()
    deadline = Deadline(1, clock=clock)
    clock.now += 5
    assert len(train(network(), Lines(), loss, SETTINGS, deadline=deadline).losses) == 1


def test_without_a_limit_a_deadline_changes_nothing():
    one, other = network(), network()
    train(one, Lines(), loss, SETTINGS)
    train(other, Lines(), loss, SETTINGS, deadline=Deadline())
    assert same(one, other)
