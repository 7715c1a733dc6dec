"""Measure speed and memory of bio-logger features relative to BEBE's loops, as ratios of CPU time in one run.

    ETHOBENCH_DATA=... python benchmarks/features.py

BEBE's loops are re-implemented: Nathan's features window by window for each sample, wavelets by direct convolution. They are timed on a
subset of the samples and extrapolated; ours are timed on the complete longest clip of HAR, or on noise if HAR is missing. `--quick` times
fewer samples.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from speed import cpu

from ethobench import load_dataset
from ethobench.core.errors import EthobenchError
from ethobench.features.filters import high_pass
from ethobench.features.nathan import half_window, nathan_features
from ethobench.features.wavelets import wavelet_features

CHANNELS = ("AccX", "AccY", "AccZ", "GyrX", "GyrY", "GyrZ")
RATE, CUTOFF = 50.0, 1.6
PER = 10_000


def longest_clip() -> tuple[str, np.ndarray]:
    try:
        recording = max(load_dataset("bebe/HAR"), key=lambda recording: recording.n_frames or 0)
    except EthobenchError:
        return "noise", np.random.default_rng(0).normal(size=(32_089, 6))
    return recording.id, np.array(recording.signals.values)


def basics(window: np.ndarray) -> list[np.ndarray]:
    mean = window.mean(axis=0)
    centered = window - mean
    std = window.std(axis=0, ddof=1)
    z = centered / (std + 1e-12)
    index = np.arange(len(window))
    return [
        mean,
        std,
        (z**3).mean(axis=0),
        (z**4).mean(axis=0) - 3,
        window.max(axis=0),
        window.min(axis=0),
        (centered[1:] * centered[:-1]).mean(axis=0) / (std**2 + 1e-12),
        ((index - index.mean())[:, None] * centered).sum(axis=0),
    ]


def correlations(window: np.ndarray) -> list[float]:
    centered = window - window.mean(axis=0)
    pairs = ((centered[:, a], centered[:, b]) for a, b in ((0, 1), (0, 2), (1, 2)))
    return [(a * b).sum() / (np.sqrt((a**2).sum() * (b**2).sum()) + 1e-12) for a, b in pairs]


def circular_variance(angles: np.ndarray) -> float:
    return 1 - abs(np.exp(1j * angles).mean())


def nathan_of_one_sample(values: np.ndarray, fast: np.ndarray, t: int, half: int) -> np.ndarray:
    """Compute all features of one sample from its window."""
    window = slice(max(0, t - half), t + half + 1)
    acc, gyr = values[window, :3], values[window, 3:]
    length = np.sqrt((acc**2).sum(axis=1, keepdims=True))
    inclination = np.arccos(acc[:, 2] / (length[:, 0] + 1e-12))
    azimuth = np.arctan(acc[:, 1] / (acc[:, 2] + 1e-12))
    return np.concatenate(
        [
            *basics(np.concatenate([acc, length], axis=1)),
            correlations(acc),
            [circular_variance(inclination), circular_variance(azimuth), np.abs(fast[window]).sum(axis=1).mean()],
            *basics(gyr),
            correlations(gyr),
        ]
    )


def wavelets_of_one_channel(signal: np.ndarray, omega: float, c_max: float) -> np.ndarray:
    z = (signal - signal.mean()) / (signal.std() + 1e-6)
    rows = []
    for k in range(15):
        wavelength = 2 / RATE * (c_max * RATE / 2) ** (k / 14)
        s = RATE * wavelength * (omega + math.sqrt(2 + omega**2)) / (4 * math.pi)
        length = min(10 * s, len(z))
        x = (np.arange(length) - (length - 1) / 2) / s
        wave = math.pi**-0.25 * s**-0.5 * np.exp(1j * omega * x) * np.exp(-(x**2) / 2)
        rows.append(np.abs(np.convolve(z, wave.conj()[::-1], mode="same")))
    return np.array(rows).T


def nathan(values: np.ndarray, samples: int) -> None:
    print(f"{'Nathan, window':>16} {'ours':>12} {'BEBE':>12} {'ratio':>8} {'largest error':>14}   CPU s per {PER} samples; >= 300x, flat")
    fast = high_pass(values[:, :3], RATE, CUTOFF)
    scale = PER / len(values)
    for seconds in (0.5, 1, 2, 4, 8, 16):
        half = half_window(seconds, RATE)
        chosen = np.linspace(0, len(values) - 1, samples).astype(int)
        mine = cpu(lambda seconds=seconds: nathan_features(values, CHANNELS, RATE, seconds, CUTOFF), 10) * scale
        theirs = cpu(lambda half=half, chosen=chosen: [nathan_of_one_sample(values, fast, t, half) for t in chosen], 3) * PER / samples
        expected = np.array([nathan_of_one_sample(values, fast, t, half) for t in chosen])
        computed = nathan_features(values, CHANNELS, RATE, seconds, CUTOFF)[0][chosen]
        error = (np.abs(computed - expected) / np.maximum(1, np.abs(expected))).max()
        print(f"{seconds:14g} s {mine:10.4f} s {theirs:10.2f} s {theirs / mine:7,.0f}x {error:14.0e}", flush=True)


def wavelets(values: np.ndarray) -> None:
    print(f"{'omega, longest':>16} {'ours':>12} {'direct':>12} {'ratio':>8} {'largest error':>14}   wavelets, the same units; >= 5x")
    scale = PER / len(values)
    for omega, c_max in ((5, 1), (20, 1), (5, 10), (10, 100), (20, 1000)):
        mine = cpu(lambda omega=omega, c_max=c_max: wavelet_features(values, CHANNELS, RATE, omega, c_max), 3) * scale
        theirs = cpu(lambda omega=omega, c_max=c_max: wavelets_of_one_channel(values[:, 0], omega, c_max), 2) * scale * len(CHANNELS)
        computed = wavelet_features(values[:, :1], CHANNELS[:1], RATE, omega, c_max)[0]
        error = np.abs(computed - wavelets_of_one_channel(values[:, 0], omega, c_max)).max()
        print(f"{omega:6d}, {c_max:6d} s {mine:10.4f} s {theirs:10.3f} s {theirs / mine:7,.0f}x {error:14.0e}", flush=True)


MEMORY = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
import features

def peak():  # of this process; ru_maxrss starts with that of the parent
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

_, values = features.longest_clip()
features.{function}(values[:2000], features.CHANNELS, features.RATE, *{options})
open("/proc/self/clear_refs", "w").write("5")
before = peak()
table, _ = features.{function}(values, features.CHANNELS, features.RATE, *{options}, dtype=np.{dtype})
print(values.nbytes, table.nbytes, peak() - before)
"""


def memory() -> None:
    for function, options, dtype in (("nathan_features", (16, CUTOFF), "float64"), ("wavelet_features", (5, 10), "float32")):
        code = MEMORY.format(here=str(Path(__file__).parent), function=function, options=options, dtype=dtype)
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        clip, table, added = (int(number) / 1e6 for number in done.stdout.split())
        print(
            f"memory: {function} adds {added:.0f} MB at its peak, {table:.0f} MB of it the features ({dtype}), for a clip of {clip:.1f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use a tenth of the samples for BEBE's loops")
    samples = 30 if parser.parse_args().quick else 300
    name, values = longest_clip()
    print(f"{name}: {len(values)} samples of {len(CHANNELS)} channels at {RATE:g} Hz")
    nathan(values, samples)
    wavelets(values)
    memory()


if __name__ == "__main__":
    main()
