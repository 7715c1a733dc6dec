"""Video without poses: motion features against poses and both, on videos drawn from synthetic poses; and the speed of embedding.

Run with: python benchmarks/video.py --out benchmarks/results/video.md
"""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ethobench as eb
from ethobench.core import Annotation, Dataset, Poses, Recording
from ethobench.core.folds import assign_folds
from ethobench.core.video import probe
from ethobench.datasets.fetch import data_folder
from ethobench.datasets.frame_features import open_features
from ethobench.training.video_embedding import embed_videos

SIZE, MARGIN = 240, 30  # pixels
BODY = ("nose", "neck", "tail_base")
CLIP = "video/EGS8X2MN4SSUGFWAV976.mp4"
FOLDS, RESAMPLES = 4, 2000


def draw_video(recording: Recording, path: Path, seed: int) -> Path:
    """Draw the animals of a recording as dark and gray bodies on a textured floor, with sensor noise, and encode the video."""
    import av

    poses = recording.signals
    assert isinstance(poses, Poses)
    positions = np.array(poses.positions, dtype=np.float64)
    for column in positions.reshape(len(positions), -1).T:  # a camera sees the animal also where the tracker lost it
        gap = np.isnan(column)
        if gap.any() and not gap.all():
            column[gap] = np.interp(np.flatnonzero(gap), np.flatnonzero(~gap), column[~gap])
    low, high = np.nanmin(positions, axis=(0, 1, 2)), np.nanmax(positions, axis=(0, 1, 2))
    scale = (SIZE - 2 * MARGIN) / float((high - low).max())
    pixels = (positions - low) * scale + MARGIN
    rng = np.random.default_rng(seed)
    floor = 150 + 12 * rng.normal(size=(SIZE, SIZE)) + 20 * np.linspace(0, 1, SIZE)[:, None]
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    order = [poses.keypoints.index(name) for name in BODY]
    sides = [k for k, name in enumerate(poses.keypoints) if name not in BODY]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=round(float(recording.rate or 30)))
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = SIZE, SIZE, "yuv420p", 1_500_000
        for points in pixels:
            picture = floor + rng.normal(scale=3.0, size=floor.shape)
            for animal, body in enumerate(points):
                length = float(np.linalg.norm(body[order[0]] - body[order[-1]])) or 10.0
                _draw_body(picture, (x, y), body[order], body[sides], 0.17 * max(length, 8.0), 30.0 + 50 * animal)
            rgb = np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())
    return path


def _draw_body(
    picture: NDArray[np.float64],
    grid: tuple[NDArray[np.float32], NDArray[np.float32]],
    axis: NDArray[np.float64],
    sides: NDArray[np.float64],
    radius: float,
    gray: float,
) -> None:
    """Draw a body: thick lines from nose to tail base, and a disk at each other keypoint."""
    points = np.concatenate([axis, sides])
    low, high = (
        np.maximum(points.min(axis=0) - 2 * radius, 0).astype(int),
        np.minimum(points.max(axis=0) + 2 * radius, SIZE).astype(int) + 1,
    )
    area = (slice(low[1], high[1]), slice(low[0], high[0]))
    x, y = grid[0][area], grid[1][area]
    inside = np.zeros(x.shape, dtype=bool)
    for start, stop in pairwise(axis):
        step = stop - start
        share = np.clip(((x - start[0]) * step[0] + (y - start[1]) * step[1]) / max(float(step @ step), 1e-6), 0, 1)
        inside |= np.hypot(x - start[0] - share * step[0], y - start[1] - share * step[1]) < radius
    for point in sides:
        inside |= np.hypot(x - point[0], y - point[1]) < 0.6 * radius
    picture[area][inside] = gray


def make_variants(data: Dataset, folder: Path) -> tuple[dict[str, Dataset], float]:
    """Return the dataset with poses, motion features and both, and the frames per second of embedding (processor time)."""
    videos = {r.id: draw_video(r, folder / f"{r.id}.mp4", seed) for seed, r in enumerate(data)}
    start = time.process_time()
    results = {result.video.stem: result for result in embed_videos(list(videos.values()), folder / "features")}
    speed = sum(r.n_frames or 0 for r in data) / (time.process_time() - start)
    motion, both = [], []
    for recording in data:
        features, _ = open_features([results[recording.id].features], recording.rate, recording.n_frames)
        motion.append(recording.copy(signals=features))
        both.append(recording.copy(features=features))
    return {
        "motion features": dataclasses.replace(data, recordings=tuple(motion)),
        "poses": data,
        "both": dataclasses.replace(data, recordings=tuple(both)),
    }, speed


def cross_validate(data: Dataset, model: str, params: dict[str, object]) -> tuple[dict[str, Annotation], float]:
    """Return out-of-fold predictions by groups of individuals, and the processor seconds of a fit."""
    folds = assign_folds(data, FOLDS)
    predictions: dict[str, Annotation] = {}
    seconds = []
    for fold in sorted({*folds.values()}):
        held_out = [r.id for r in data if folds[r.id] == fold]
        start = time.process_time()
        fitted = eb.create_model(model, **params).fit(data.select(recordings=[r.id for r in data if r.id not in held_out]))
        seconds.append(time.process_time() - start)
        predictions |= {name: fitted.annotate(data[name]) for name in held_out}
    return predictions, float(np.mean(seconds))


def score_each(predictions: dict[str, Annotation], data: Dataset) -> dict[str, dict[str, float]]:
    """Return frame F1 and bout F1 (means over behaviors) of each recording."""
    scores = {}
    for name, predicted in predictions.items():
        overall = eb.score(predicted, data[name].annotation(), resamples=0).overall
        scores[name] = {metric: float(getattr(overall[metric], "value", overall[metric])) for metric in ("f1", "bout_f1")}
    return scores


def interval(values: NDArray[np.float64]) -> str:
    """Return a mean with its 95 % bootstrap interval over recordings."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, size=(RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def time_clip(path: Path) -> list[str]:
    """Return the speed of embedding a real clip."""
    info = probe(path)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        result = next(iter(embed_videos([path], folder)))
        seconds = time.process_time() - start
    size = f"{info.width} x {info.height}, {info.codec}, {info.rate:g} frames/s, {info.duration:.0f} s"
    return [f"| {path.name} ({size}) | {result.n_samples:,} | {seconds:.1f} | {result.n_samples / seconds:.0f} |"]


def main() -> None:
    """Run the comparison and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--individuals", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--models", default="boost")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = eb.load_dataset("synthetic/pose", individuals=options.individuals, seconds=options.seconds)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        variants, speed = make_variants(data, Path(folder))
        for model in options.models.split(","):
            scores = {}
            for name, variant in variants.items():
                predictions, seconds = cross_validate(variant, model, {})
                scores[name] = score_each(predictions, variant)
                columns = [interval(np.array([s[metric] for s in scores[name].values()])) for metric in ("f1", "bout_f1")]
                lines.append(f"| {model} | {name} | {columns[0]} | {columns[1]} | {seconds:.0f} |")
                print(lines[-1], flush=True)
            for first, second in (("motion features", "poses"), ("both", "poses")):
                columns = [
                    interval(np.array([scores[first][r.id][metric] - scores[second][r.id][metric] for r in data]))
                    for metric in ("f1", "bout_f1")
                ]
                lines.append(f"| {model} | {first} minus {second} | {columns[0]} | {columns[1]} | |")
                print(lines[-1], flush=True)
    clip = data_folder() / CLIP
    timing = time_clip(clip) if clip.is_file() else [f"| {CLIP} is not on this machine | | | |"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    command = f"python benchmarks/video.py --individuals {options.individuals} --seconds {options.seconds:g} --models {options.models}"
    text = [
        "# Video without poses",
        "",
        f"`{command} --out {options.out.as_posix()}`, commit {commit}.",
        "",
        f"Videos of {SIZE} x {SIZE} pixels drawn from the poses of `synthetic/pose` (two animals, {options.individuals} recordings of "
        f"{options.seconds:g} s, each of another individual): bodies on a textured floor with noise, MPEG-4. `ethobench embed` with the",
        f"encoder `motion`; {FOLDS} folds by individual; means over recordings with 95 % bootstrap intervals over recordings; processor",
        "seconds of one fit. Poses have 2 % missing keypoints and jitter, as `synthetic/pose` has them; labels are known exactly.",
        "",
        "| model | input | frame F1 | bout F1 | seconds |",
        "|---|---|---|---|---|",
        *lines,
        "",
        "## Speed of `motion`, one core, processor time, decoding included",
        "",
        "| video | frames | seconds | frames/s |",
        "|---|---|---|---|",
        *timing,
        f"| synthetic, {SIZE} x {SIZE}, MPEG-4 | {sum(r.n_frames or 0 for r in data):,} | | {speed:.0f} |",
        "",
    ]
    options.out.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
