"""Measure the speed of pose features, of the network of `tcn` and of decoding, and the memory of features.

    python benchmarks/pose.py [--minutes 60] [--animals 2] [--keypoints 7] [--decode 1000000]

Times are processor times, the best of three runs, so that other processes on the machine matter little. Memory is the peak that Python
allocates beside the recording. All recordings are generated.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from ethobench.core import Ethogram, Poses
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.segments import fit_segment_scorer
from ethobench.decoding.viterbi import NO_BEHAVIOR, TransitionModel
from ethobench.features.identity_swaps import find_identity_swaps
from ethobench.features.missing_data import interpolate_poses
from ethobench.features.pose import pose_context, pose_feature_blocks, pose_features, windowed_pose_features

RATE = 30.0
NAMES = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base", "center", "tail_mid", "tail_tip")


def best_time(work: Callable[[], Any], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak_memory(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def make_poses(frames: int, animals: int, keypoints: int) -> Poses:
    """Generate walking animals, with a tenth of their keypoints missing for a few frames at a time."""
    random = np.random.default_rng(0)
    names = tuple(NAMES[k] if k < len(NAMES) else f"point{k}" for k in range(keypoints))
    body = np.stack([np.linspace(50, -50, keypoints), random.uniform(-20, 20, keypoints)], axis=1)
    middle = 500 + np.cumsum(random.normal(0, 2, (frames, animals, 2)), axis=0) % 400
    positions = middle[:, :, None] + body + random.normal(0, 1, (frames, animals, keypoints, 2))
    hidden = np.repeat(random.random((-(-frames // 5), animals, keypoints)) < 0.1, 5, axis=0)[:frames]
    positions[hidden] = np.nan
    return Poses(positions, random.uniform(0.5, 1, positions.shape[:3]), tuple(f"animal{a}" for a in range(animals)), names, RATE)


def measure_features(minutes: float, animals: int, keypoints: int) -> None:
    frames = int(minutes * 60 * RATE)
    poses = make_poses(frames, animals, keypoints)
    print(f"\n{frames} frames of {animals} animals with {keypoints} keypoints, a tenth of them missing")
    work: dict[str, Callable[[], Any]] = {
        "interpolate_poses": lambda: interpolate_poses(poses),
        "find_identity_swaps": lambda: find_identity_swaps(poses),
        "pose_features(points=False)": lambda: pose_features(poses, points=False)[0],
        "pose_features": lambda: pose_features(poses)[0],
        "pose_features(pooled=True)": lambda: pose_features(poses, pooled=True)[0],
        "windowed_pose_features": lambda: windowed_pose_features(poses)[0],
        "pose_feature_blocks(seconds)": lambda: sum(len(b[1]) for b in pose_feature_blocks(poses, seconds=(0.5, 2.0, 6.0), points=False)),
    }
    print(f"{'':32}{'frames/s':>12}{'columns':>9}{'peak MB':>9}")
    for name, run in work.items():
        seconds, result = best_time(run), run()
        columns = str(result.shape[1]) if isinstance(result, np.ndarray) else ""
        del result
        print(f"{name:32}{frames / seconds:12,.0f}{columns:>9}{peak_memory(run):9.0f}")
    print(f"context of a slice: {pose_context(RATE)} frames, with windows of up to 6 s {pose_context(RATE, (6.0,))}")


def measure_decoding(frames: int, behaviors: int = 5) -> None:
    random = np.random.default_rng(0)
    names = [f"b{k}" for k in range(behaviors - 1)] + ["other"]
    ethogram = Ethogram(names, background="other")
    truth = np.repeat(random.integers(0, behaviors, frames // 50 + 1), 50)[:frames]
    values = 0.7 * random.dirichlet(np.full(behaviors, 0.7), frames) + 0.3 * np.eye(behaviors)[truth]
    follow = (1 - np.eye(behaviors)) / (behaviors - 1)

    def transition_models(stages: int) -> dict[str, TransitionModel]:
        return {NO_BEHAVIOR: TransitionModel(tuple(names), (1.7,) * behaviors, (stages,) * behaviors, tuple(map(tuple, follow)))}

    lengths = dict.fromkeys(names[:-1], 0.2)
    scorer = fit_segment_scorer([(values[:50_000], truth[:50_000], RATE)], tuple(names), 1.7)
    decoders = {
        "frame by frame": Decoder(),
        "mean over 1 s": Decoder(smoothing="mean", smoothing_seconds=1.0),
        "median over 1 s": Decoder(smoothing="median", smoothing_seconds=1.0),
        "minimum durations": Decoder(smoothing="mean", smoothing_seconds=0.2, min_bout_seconds=lengths, min_gap_seconds=lengths),
        "Viterbi": Decoder(transition_models=transition_models(1), emission_weight=0.3),
        "Viterbi, 4 stages": Decoder(transition_models=transition_models(4), emission_weight=0.3),
        "segment rescoring": Decoder(segment_scorers={NO_BEHAVIOR: scorer} if scorer else {}),
    }
    print(f"\n{frames} frames of {behaviors} behaviors")
    print(f"{'':32}{'seconds':>12}{'accuracy':>9}{'bouts':>9}")
    for name, decoder in decoders.items():
        seconds = best_time(lambda decoder=decoder: decoder.decode(values, ethogram, RATE))
        annotation = decoder.decode(values, ethogram, RATE)
        print(f"{name:32}{seconds:12.2f}{(annotation.to_codes() == truth).mean():9.3f}{len(annotation):9}")


def measure_network(inputs: int = 127, behaviors: int = 4, frames: int = 16_384) -> None:
    import torch

    from ethobench.models.tcn_modules import TemporalNetwork

    network = TemporalNetwork(inputs, behaviors, stride=round(RATE / 12.5)).eval()
    windows = torch.randn(1, frames, inputs)
    with torch.inference_mode():
        seconds = best_time(lambda: network(windows), 5)
    print(f"\nthe network of tcn alone, {inputs} inputs at {RATE:g} Hz: {frames / seconds:,.0f} frames/s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--animals", type=int, default=2)
    parser.add_argument("--keypoints", type=int, default=7)
    parser.add_argument("--decode", type=int, default=1_000_000, metavar="FRAMES")
    arguments = parser.parse_args()
    measure_features(arguments.minutes, arguments.animals, arguments.keypoints)
    measure_network()
    measure_decoding(arguments.decode)


if __name__ == "__main__":
    main()
