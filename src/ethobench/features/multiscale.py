"""Features of the surroundings of a frame at several scales, before and after it, for tags and for poses.

Windows are centred on the frame and grow fourfold, from half a second on. Of every signal (`tag_signals`, `pose_features`) there are
the mean, deviation, extremes and rise in each window; of tags also shapes, spectra and how axes go together. What is usual in the
recording itself is known throughout (`Baseline`), so that a tag's signals are also told relative to it: another animal, another tag
or another way to fasten it then matter less. Where it means nothing which animal is which, poses are told by the least and the most
of all animals. Frames may be thinned; a block at a time is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Signals
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.biologging import TagOrientation, axis_rows, change_frames, estimate_orientations, posture_frames, tag_signals
from ethobench.features.body import Scene, estimate_scene
from ethobench.features.pose import pose_context, pose_features
from ethobench.features.spectral import spectral_features
from ethobench.features.windows import axis_correlations, standardize, window_lengths, window_statistics

Array = NDArray[np.float64]
Features = NDArray[np.float32]
BLOCK = 1 << 14  # frames
SCALES = 4
MIDDLE = (1, 2)  # scales at which tags are also told by shapes and spectra, and relative to the recording
PIECES, PIECE = 16, 1024  # of a recording that tell what is usual in it


@dataclass(frozen=True)
class Baseline:
    """What is usual in a recording.

    Attributes
    ----------
    orientations : mapping of str to TagOrientation
        Of the accelerometers of a tag.
    scene : Scene, optional
        Of poses.
    names : tuple of str
        The signals.
    median, half_range : tuple of float
        The median of each signal, and half the distance between its 10th and 90th percentiles.
    low, high : tuple of float
        Their 1st and 99th percentiles; NaN for one that is missing throughout.
    """

    orientations: Mapping[str, TagOrientation]
    scene: Scene | None
    names: tuple[str, ...] = ()
    median: tuple[float, ...] = ()
    half_range: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def compute_baseline(data: Data, rate: float, *, keypoints: Mapping[str, Keypoint] | None = None) -> Baseline:
    """Measure what is usual in a recording, from pieces all over it."""
    frames = estimate_orientations(data) if isinstance(data, Signals) else {}
    scene = estimate_scene(data, keypoints=keypoints) if isinstance(data, Poses) else None
    rough = Baseline(frames, scene)
    margin = signal_context(rate)
    count = min(PIECES, -(-len(data) // PIECE))
    starts = np.linspace(0, max(len(data) - PIECE, 0), max(count, 1)).astype(int)
    parts = []
    for start in starts:
        first = max(int(start) - margin, 0)
        values, names = base_signals(data[first : int(start) + PIECE + margin], rate, rough, keypoints)
        parts.append(values[:, int(start) - first :][:, :PIECE])
    quantiles = _quantiles(np.concatenate(parts, axis=1))
    lowest, low, middle, high, highest = quantiles
    spread = np.where(high > low, (high - low) / 2, 1.0)
    told = (tuple(map(float, row)) for row in (np.nan_to_num(middle), spread, lowest, highest))
    return Baseline(frames, scene, names, *told)


def base_signals(
    data: Data, rate: float, baseline: Baseline, keypoints: Mapping[str, Keypoint] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Return the signals of a stretch, as rows; those at its ends know one side only."""
    if isinstance(data, Signals):
        return tag_signals(data, rate, dict(baseline.orientations))
    pooled = are_interchangeable(data.individuals)
    values, names = pose_features(data, rate, scene=baseline.scene, keypoints=keypoints, points=False, pooled=pooled)
    return np.ascontiguousarray(values.T, dtype=np.float64), names


def are_interchangeable(individuals: Sequence[str]) -> bool:
    """Tell by their names whether it means nothing which animal is which: they differ in a number or letter at the end only.

    Then trackers give identities at will, and change them.

    Examples
    --------
    >>> are_interchangeable(["mouse1", "mouse2"]), are_interchangeable(["resident", "intruder"])
    (True, False)
    """
    stems = {re.sub(r"([\W_]+[A-Za-z]|[\W_]*\d+)$", "", name) for name in individuals}
    return len(individuals) > 1 and len(stems) == 1


def multiscale_features(
    data: Data,
    rate: float,
    *,
    every: int = 1,
    baseline: Baseline | None = None,
    keypoints: Mapping[str, Keypoint] | None = None,
    rows: NDArray[np.int64] | None = None,
) -> tuple[Features, tuple[str, ...]]:
    """Return features of every n-th frame, from the first on.

    Parameters
    ----------
    data : Signals or Poses
    rate : float
        Frames per second.
    every : int
        Leave out the frames between; their values still count.
    baseline : Baseline, optional
        Of the whole recording, where `data` is a stretch of it.
    keypoints : mapping of name to Keypoint, optional
        Stated roles of poses; guessed from the names unless given.
    rows : array of int, optional
        Which rows of the result are wanted, in order; all unless given. Where they lie close together, the rest costs nothing.

    Returns
    -------
    features : array of float32 (ceil(n_frames / every), n_features), or as many rows as are wanted
        NaN where nothing is known.
    names : tuple of str

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> recording = load_dataset("synthetic/tag", individuals=1, seconds=60).recordings[0]
    >>> features, names = multiscale_features(recording.signals, recording.rate, every=5)
    >>> features.shape == (recording.n_frames // 5, len(names)), names[3], names[-1]
    (True, 'Acc|norm', 'Gyr|along/center/8.04s')
    """
    baseline = baseline or compute_baseline(data, rate, keypoints=keypoints)
    margin = multiscale_context(rate)
    size = max(BLOCK, 2 * margin) // every * every + every
    wanted = np.arange(-(-len(data) // every)) if rows is None else rows
    result: Features | None = None
    names: tuple[str, ...] = ()
    for start in range(0, len(data), size):
        first, stop = max(start - margin, 0), min(start + size, len(data))
        here = slice(*np.searchsorted(wanted, [start // every, -(-stop // every)]))
        if here.start == here.stop:
            continue
        found, names = _block(data[first : stop + margin], rate, slice(start - first, stop - first, every), baseline, keypoints)
        if result is None:
            result = np.empty((len(wanted), len(found)), dtype=np.float32)
        result[here] = found.T[wanted[here] - start // every]
    return (np.empty((0, 0), dtype=np.float32) if result is None else result), names


def signal_context(rate: float) -> int:
    """Return how many frames to both sides a frame's signals depend on at most."""
    return max(posture_frames(rate) // 2 + change_frames(rate) + 1, pose_context(rate))


def multiscale_context(rate: float) -> int:
    """Return how many frames to both sides a frame's features depend on at most, beside the baseline."""
    return signal_context(rate) + window_lengths(rate, SCALES)[-1] // 2 + 1


def _block(
    data: Data, rate: float, kept: slice, baseline: Baseline, keypoints: Mapping[str, Keypoint] | None
) -> tuple[Features, tuple[str, ...]]:
    """Compute the features of some frames of a stretch, as rows."""
    signals, names = base_signals(data, rate, baseline, keypoints)
    columns, labels = list(_thin(signals, kept)), list(names)
    tag = isinstance(data, Signals)
    triples = axis_rows(names, data.channels) if isinstance(data, Signals) else {}
    lengths = window_lengths(rate, SCALES)
    for scale, length in enumerate(lengths):
        seconds = f"{length / rate:.3g}s"
        more = tag and scale in MIDDLE
        for statistic, found in window_statistics(signals, length, kept, shape=more):
            columns += list(found)
            labels += [f"{name}/{statistic}/{seconds}" for name in names]
            if statistic == "mean" and more:
                columns += list(standardize(found, baseline.median, baseline.half_range))
                labels += [f"{name}/own/{seconds}" for name in names]
        for sensor, places in triples.items() if more else ():
            for pair, found in axis_correlations(signals[places], length, kept):
                columns.append(found)
                labels.append(f"{sensor}/{pair}/{seconds}")
    if tag:
        groups = [(sensor, signals[places]) for sensor, places in triples.items()]
        groups += [(name, signals[[row]]) for row, name in enumerate(names) if name.endswith(("|norm", "|along"))]
        frames = np.arange(signals.shape[1])[kept]
        found_columns, found_labels = spectral_features(groups, rate, frames, [lengths[scale] for scale in MIDDLE])
        columns += found_columns
        labels += found_labels
    return np.stack(columns), tuple(labels)


def _thin(signals: Array, kept: slice) -> Features:
    return signals[:, kept].astype(np.float32)


def _quantiles(values: Array) -> Array:
    """Return the 1st, 10th, 50th, 90th and 99th percentiles of each row's known values; NaN where there are none."""
    result = np.full((5, len(values)), np.nan)
    for row, signal in enumerate(values):
        known = signal[np.isfinite(signal)]
        if len(known):
            result[:, row] = np.quantile(known, [0.01, 0.1, 0.5, 0.9, 0.99])
    return result
