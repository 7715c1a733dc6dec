"""Measure the speed of the networks on HAR, as ratios in one run.

    python benchmarks/networks.py

Ratios are of CPU time on one thread, unless a row says otherwise; `--quick` uses fewer steps.
The references are re-implementations of BEBE's loops. Needs `$ETHOBENCH_DATA` with bebe/HAR.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import ethobench as eb
from ethobench.core.targets import exclusive_targets
from ethobench.training.channel_inputs import ChannelReader, open_channels
from ethobench.training.inference import predict_windows
from ethobench.training.losses import class_weights, exclusive_loss
from ethobench.training.windows import Plan, WindowSampler, sample_sequences

WINDOW, BATCH, CLASSES = 2048, 32, 7
PUBLISHED = ("torch's gru", 1)
VARIANTS = (PUBLISHED, ("gru", 1), ("lstm", 1), ("gru", 4), ("lstm", 4))


def row(name: str, mine: float, theirs: float | None, target: str, unit: str = "s") -> None:
    ratio = "" if theirs is None else f"{theirs / mine:,.1f}x"
    peer = "" if theirs is None else f"{theirs:9.3f} {unit}"
    print(f"{name:82} {mine:10.4f} {unit}  {peer:>11}  {ratio:>8}  {target}", flush=True)


def least(function: Callable[[], object], repeats: int, clock: Callable[[], float] = time.process_time) -> float:
    spent = []
    for _ in range(repeats):
        start = clock()
        function()
        spent.append(clock() - start)
    return min(spent)


def har() -> tuple[list[ChannelReader], list[np.ndarray]]:
    data = eb.load_dataset("bebe/HAR").select(fold=[0, 2, 3, 4])
    readers = [open_channels(r.signals, r.signals.channels, r.rate) for r in data]
    return readers, [exclusive_targets(r.annotation()) for r in data]


def item_by_item(signals: list[np.ndarray], labels: list[np.ndarray], chosen: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Assemble a batch as a data loader does: find the clip of each window, slice it, convert it to tensors, stack them."""
    first = np.cumsum([0, *(len(x) - WINDOW for x in signals)])[:-1]
    items = []
    for index in chosen:
        clip = np.where(index >= first)[0][-1]
        start = index - first[clip]
        items.append((torch.from_numpy(signals[clip][start : start + WINDOW]), torch.from_numpy(labels[clip][start : start + WINDOW])))
    return torch.stack([x for x, _ in items]).float(), torch.stack([y for _, y in items]).long()


def build(cell: str, pool: int, n_inputs: int) -> torch.nn.Module:
    """Build a crnn; the published one with torch's recurrent layer, whose weights and outputs are the same as ours."""
    network = eb.create_model("crnn", cell="gru" if (cell, pool) == PUBLISHED else cell, pool=pool).build(n_inputs, CLASSES)
    if (cell, pool) == PUBLISHED:
        network.recur = torch.nn.GRU(64, 64, batch_first=True, bidirectional=True)
    return network


def training_step(cell: str, pool: int, sampler: WindowSampler) -> Callable[[Plan], None]:
    network = build(cell, pool, sampler.recordings.values.shape[1]).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003, amsgrad=True)
    loss = exclusive_loss(class_weights(sampler.recordings.targets, CLASSES, "inverse"))

    def step(plan: Plan) -> None:
        inputs, targets = (torch.from_numpy(array) for array in sampler.gather(plan))
        optimizer.zero_grad()
        loss(network(inputs), targets).backward()
        optimizer.step()

    return step


def training(repeats: int) -> None:
    readers, labels = har()
    sampler = sample_sequences(readers, labels, WINDOW, BATCH)
    plans = sampler.draw(np.random.default_rng(0))
    signals = [reader.read(0, len(reader)).values.astype(np.float64) for reader in readers]
    targets = [codes.astype(np.int64) for codes in labels]
    chosen = np.random.default_rng(0).integers(0, sum(len(x) - WINDOW for x in signals), BATCH)
    gather = least(lambda: [sampler.gather(plan) for plan in plans], repeats) / len(plans)
    reference = least(lambda: item_by_item(signals, targets, chosen), repeats)
    row("a batch of 32 x 2048 frames (theirs: window by window)", gather, reference, "")
    steps = {variant: training_step(*variant, sampler) for variant in VARIANTS}
    for step in steps.values():
        step(plans[0])
    spent = {variant: least(lambda step=step: step(plans[1]), repeats) for variant, step in steps.items()}
    published = spent[PUBLISHED]
    print(f"{'  share of a published training step':82} {gather / published:10.2%}{'':27}  < 1 %")
    for cell, pool in VARIANTS[1:]:
        row(f"a training step of crnn with cell='{cell}', pool={pool} (theirs: torch's gru)", spent[cell, pool], published, ">= 1.5x")


def one_at_a_time(network: torch.nn.Module, values: np.ndarray) -> np.ndarray:
    """Predict one window after the other, as published."""
    labels = []
    for start in range(0, len(values), WINDOW):
        piece = values[start : start + WINDOW]
        padded = np.pad(piece, ((0, WINDOW - len(piece)), (0, 0)), mode="mean")
        with torch.no_grad():
            scores = network(torch.from_numpy(padded[None]).float())[0, : len(piece)]
        labels.append(scores.numpy().argmax(axis=1))
    return np.concatenate(labels)


def inference(repeats: int) -> None:
    readers, _ = har()
    values = np.concatenate([reader.read(0, len(reader)).values for reader in readers])[: 64 * WINDOW]
    reader = ChannelReader(values, range(values.shape[1]), [f"c{k}" for k in range(values.shape[1])], 50.0)
    for cell, pool in VARIANTS:
        network = build(cell, pool, values.shape[1]).eval()

        def ours(network: torch.nn.Module = network) -> np.ndarray:
            return predict_windows(network, reader, WINDOW, exclusive=True)

        mine, theirs = least(ours, repeats), least(lambda network=network: one_at_a_time(network, values), 1)
        row(f"prediction of {len(values):,} frames, cell='{cell}', pool={pool} (theirs: window by window)", mine, theirs, "")
        print(f"{'  frames per second, one thread':82} {len(values) / mine:10,.0f}")
        torch.set_num_threads(os.cpu_count() or 1)
        print(
            f"{'  frames per second, wall time, all cores':82} {len(values) / least(ours, repeats, time.perf_counter):10,.0f}  >= 200,000"
        )
        torch.set_num_threads(1)


MEMORY = """
import sys
import numpy as np
import ethobench as eb
from ethobench import Recording, Signals

values = np.load(sys.argv[1], mmap_mode="r")
data = eb.load_dataset("synthetic/tag", individuals=2, seconds=60, rate=100.0)
doubled = [r.copy(signals=Signals(np.tile(r.signals.values, (1, 2)), tuple(f"c{k}" for k in range(12)), 100.0)) for r in data]
model = eb.create_model("cnn", epochs=1, window=2048, batch=2).fit(eb.Dataset(tuple(doubled), data.ethogram))
day = Recording("day", rate=100.0, n_frames=len(values), signals=Signals(values, tuple(f"c{k}" for k in range(12)), 100.0))

def peak(field):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(field))

open("/proc/self/clear_refs", "w").write("5")
before, mapped = peak("VmHWM"), peak("RssFile")
result = model.predict(day).probabilities
print(peak("VmHWM") - before - (peak("RssFile") - mapped), result.nbytes)  # without memory-mapped pages, which can be dropped at any time
"""


def memory(hours: int) -> None:
    frames = hours * 3600 * 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "day.npy"
        day = np.lib.format.open_memmap(path, "w+", np.float32, (frames, 12))
        for start in range(0, frames, 1 << 18):
            day[start : start + (1 << 18)] = np.random.default_rng(start).normal(size=day[start : start + (1 << 18)].shape)
        del day
        done = subprocess.run([sys.executable, "-c", MEMORY, str(path)], check=True, capture_output=True, text=True)
        grown, result = map(int, done.stdout.split())
        name = f"memory: added by predicting {hours} h x 100 Hz x 12 channels adds (file {path.stat().st_size / 1e6:.0f} MB)"
    print(f"{name:82} {grown / 1e6:8.0f} MB, of which {result / 1e6:.0f} MB are the probabilities")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a shorter recording")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    if not (Path(os.environ.get("ETHOBENCH_DATA", "")) / "bebe" / "HAR").is_dir():
        print("networks on HAR: skipped, since $ETHOBENCH_DATA has no bebe/HAR")
        return
    print(f"{'case':82} {'ours':>12}  {'theirs':>11}  {'ratio':>8}  target")
    training(1 if quick else 3)
    inference(1 if quick else 3)
    memory(2 if quick else 24)


if __name__ == "__main__":
    main()
