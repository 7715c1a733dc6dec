"""Multiscale features: statistics of windows of several lengths around each frame, for tags and for poses.

Windows are centered on the frame. The shortest is half a second long, each further one four times as long. Every signal (`tag_signals`,
`pose_features`) has its mean, standard deviation, extremes and rise in each window; tags also have skewness, spectra and correlations of
axes. Means of a tag's signals are also standardized by the whole recording (`Baseline`), so that differences between individuals, tags and
attachments matter less. Poses of animals without identities are described by the minimum and maximum over all animals. Frames may be
subsampled; one block at a time is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Signals
from ethobench.core.recording import Data
from ethobench.core.signals import Keypoint
from ethobench.features.biologging import TagOrientation, axis_rows, change_frames, estimate_orientations, posture_frames, tag_signals
from ethobench.features.body import Scene, estimate_scene
from ethobench.features.frame_features import feature_signals
from ethobench.features.pose import pose_context, pose_features
from ethobench.features.shared import shared
from ethobench.features.spectral import spectral_features
from ethobench.features.windows import axis_correlations, standardize, window_extremes, window_lengths, window_statistics

Array = NDArray[np.float64]
Features = NDArray[np.float32]
Columns = NDArray[np.float32]
BLOCK_FRAMES = 1 << 14
TRANSPOSED_COLUMNS = 128  # at a time, three times faster than all at once
SCALES = 4
DETAILED_SCALES = (1, 2)  # at which tags also have skewness, spectra, correlations and standardized means
SAMPLE_PIECES, SAMPLE_PIECE_FRAMES = 16, 1024  # of a recording, from which its baseline is computed
MAX_WHOLE_FRAMES = 1 << 17  # of a recording whose pose signals are computed at once; they have 33 MB for two animals without identities


@dataclass(frozen=True)
class Baseline:
    """Statistics of the signals of a whole recording.

    Attributes
    ----------
    orientations : mapping of str to TagOrientation
        Of the accelerometers of a tag.
    scene : Scene, optional
        Of poses.
    names : tuple of str
        Of the signals.
    median, half_range : tuple of float
        Median of each signal, and half the distance between its 10th and 90th percentiles.
    low, high : tuple of float
        1st and 99th percentiles; NaN for a signal that is missing in all frames.
    """

    orientations: Mapping[str, TagOrientation]
    scene: Scene | None
    names: tuple[str, ...] = ()
    median: tuple[float, ...] = ()
    half_range: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def compute_baseline(
    data: Data, rate: float, *, keypoints: Mapping[str, Keypoint] | None = None, body_length: float | None = None
) -> Baseline:
    """Compute the statistics of a recording from pieces spread over it.

    Parameters
    ----------
    data : Signals or Poses
    rate : float
        Frames per second.
    keypoints : mapping of name to Keypoint, optional
        Stated roles of poses; guessed from the names by default.
    body_length : float, optional
        Unit of lengths of poses; the median body length of the recording by default.
    """
    orientations = estimate_orientations(data) if isinstance(data, Signals) and not data.is_features else {}
    scene = estimate_scene(data, keypoints=keypoints) if isinstance(data, Poses) else None
    if scene is not None and body_length is not None:
        scene = replace(scene, body_length=body_length)
    reader, margin = SignalReader(data, rate, Baseline(orientations, scene), keypoints), signal_context(rate)
    count = min(SAMPLE_PIECES, -(-len(data) // SAMPLE_PIECE_FRAMES))
    pieces = []
    for start in np.linspace(0, max(len(data) - SAMPLE_PIECE_FRAMES, 0), max(count, 1)).astype(int).tolist():
        first = max(start - margin, 0)
        values, names = reader.read(first, start + SAMPLE_PIECE_FRAMES + margin)
        pieces.append(values[:, start - first :][:, :SAMPLE_PIECE_FRAMES])
    p1, p10, median, p90, p99 = _percentiles(np.concatenate(pieces, axis=1))
    half_range = np.where(p90 > p10, (p90 - p10) / 2, 1.0)
    statistics = (tuple(map(float, row)) for row in (np.nan_to_num(median), half_range, p1, p99))
    return Baseline(orientations, scene, names, *statistics)


def base_signals(
    data: Data, rate: float, baseline: Baseline, keypoints: Mapping[str, Keypoint] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Compute the signals that multiscale features are statistics of; those at the ends of the data depend on one side only.

    Parameters
    ----------
    data : Signals or Poses
        A recording, or a slice of it.
    rate : float
        Frames per second.
    baseline : Baseline
        Of the whole recording.
    keypoints : mapping of name to Keypoint, optional
        Stated roles of poses; guessed from the names by default.

    Returns
    -------
    values : array (n_signals, n_frames)
    names : tuple of str
    """
    if data.extra is not None:
        signals, signal_names = base_signals(replace(data, extra=None), rate, baseline, keypoints)
        features, feature_names = feature_signals(data.extra)
        return np.concatenate([signals, features]), (*signal_names, *feature_names)
    if isinstance(data, Signals):
        return feature_signals(data) if data.is_features else tag_signals(data, rate, dict(baseline.orientations))
    values, names = _pose_signals(data, rate, baseline, keypoints)
    return values.astype(np.float64), names


def _pose_signals(
    poses: Poses, rate: float, baseline: Baseline, keypoints: Mapping[str, Keypoint] | None
) -> tuple[Columns, tuple[str, ...]]:
    pooled = are_interchangeable(poses.individuals)
    values, names = pose_features(poses, rate, scene=baseline.scene, keypoints=keypoints, points=False, pooled=pooled)
    return np.ascontiguousarray(values.T), names


class SignalReader:
    """Reads the base signals of ranges of frames of a recording.

    The signals of poses are computed once for all ranges, unless the recording is very long, and once for all readers of the same poses
    inside `share_values`.

    Parameters
    ----------
    data : Signals or Poses
        A recording.
    rate : float
        Frames per second.
    baseline : Baseline
        Of the whole recording.
    keypoints : mapping of name to Keypoint, optional
        Stated roles of poses; guessed from the names by default.
    """

    def __init__(self, data: Data, rate: float, baseline: Baseline, keypoints: Mapping[str, Keypoint] | None = None) -> None:
        self.data, self.rate, self.baseline, self.keypoints = data, rate, baseline, keypoints
        self._at_once: tuple[Columns, tuple[str, ...]] | None = None  # pose signals of all frames, which are 32-bit numbers

    def read(self, start: int, stop: int) -> tuple[Array, tuple[str, ...]]:
        """Return the `base_signals` of the frames ``[start, stop)``; those at both ends may depend on one side only."""
        if not isinstance(self.data, Poses) or len(self.data) > MAX_WHOLE_FRAMES:
            return base_signals(self.data[start:stop], self.rate, self.baseline, self.keypoints)
        values, names = self._pose_signals(self.data)
        signals = values[:, start:stop].astype(np.float64)
        if self.data.extra is None:
            return signals, names
        features, feature_names = feature_signals(self.data.extra[start:stop])
        return np.concatenate([signals, features]), (*names, *feature_names)

    def _pose_signals(self, poses: Poses) -> tuple[Columns, tuple[str, ...]]:
        if self._at_once is None:
            rate, baseline, keypoints = self.rate, self.baseline, self.keypoints
            settings = rate, baseline.scene, keypoints
            self._at_once = shared("pose signals", (poses,), settings, lambda: _pose_signals(poses, rate, baseline, keypoints))
        return self._at_once


def are_interchangeable(individuals: Sequence[str]) -> bool:
    """Return whether animals have no identities: their names differ only in a number or letter at the end.

    Trackers assign such identities arbitrarily, and exchange them.

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
    """Compute features of every n-th frame, beginning with the first.

    Parameters
    ----------
    data : Signals or Poses
    rate : float
        Frames per second.
    every : int
        Step between the frames of the result. The frames between still count in the windows.
    baseline : Baseline, optional
        Of the whole recording, where `data` is a slice of it.
    keypoints : mapping of name to Keypoint, optional
        Stated roles of poses; guessed from the names by default.
    rows : array of int, optional
        The rows of the result to return, sorted; all by default. Blocks without such rows are not computed.

    Returns
    -------
    features : array of float32 (ceil(n_frames / every), n_features), or (len(rows), n_features)
        NaN where all values of a window are missing.
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
    reader, margin = SignalReader(data, rate, baseline, keypoints), multiscale_context(rate)
    size = max(BLOCK_FRAMES, 2 * margin) // every * every + every
    rows = np.arange(-(-len(data) // every)) if rows is None else rows
    result: Features | None = None
    names: tuple[str, ...] = ()
    for start in range(0, len(data), size):
        first, stop = max(start - margin, 0), min(start + size, len(data))
        in_block = slice(*np.searchsorted(rows, [start // every, -(-stop // every)]))
        if in_block.start == in_block.stop:
            continue
        kept = slice(start - first, stop - first, every)
        columns, names = compute_block(reader, first, stop + margin, kept)
        if result is None:
            result = np.empty((len(rows), len(columns)), dtype=np.float32)
        chosen = rows[in_block] - start // every
        for column in range(0, len(columns), TRANSPOSED_COLUMNS):
            few = slice(column, column + TRANSPOSED_COLUMNS)
            values = np.stack(columns[few])
            result[in_block, few] = (values if len(chosen) == values.shape[1] else values[:, chosen]).T
    return (np.empty((0, 0), dtype=np.float32) if result is None else result), names


def signal_context(rate: float) -> int:
    """Return the number of frames to each side that a frame's `base_signals` depend on, at most."""
    return max(posture_frames(rate) // 2 + change_frames(rate) + 1, pose_context(rate))


def multiscale_context(rate: float) -> int:
    """Return the number of frames to each side that a frame's features depend on, at most, beside the baseline."""
    return signal_context(rate) + window_lengths(rate, SCALES)[-1] // 2 + 1


def compute_block(reader: SignalReader, first: int, stop: int, kept: slice) -> tuple[list[Columns], tuple[str, ...]]:
    """Compute the features of chosen frames of the block ``[first, stop)``, each an array (n_kept_frames,)."""
    data, rate, baseline = reader.data[first:stop], reader.rate, reader.baseline
    signals, names = reader.read(first, stop)
    columns, labels = list(signals[:, kept].astype(np.float32)), list(names)
    is_tag = isinstance(data, Signals) and not data.is_features
    sensors = axis_rows(names, data.channels) if isinstance(data, Signals) and is_tag else {}
    lengths = window_lengths(rate, SCALES)
    extremes = window_extremes(signals, lengths, kept)
    for scale, length in enumerate(lengths):
        seconds = f"{length / rate:.3g}s"
        detailed = is_tag and scale in DETAILED_SCALES
        for statistic, values in window_statistics(signals, length, kept, shape=detailed, extremes=extremes[scale]):
            columns += list(values)
            labels += [f"{name}/{statistic}/{seconds}" for name in names]
            if statistic == "mean" and detailed:
                columns += list(standardize(values, baseline.median, baseline.half_range))
                labels += [f"{name}/standardized/{seconds}" for name in names]
        for sensor, rows in sensors.items() if detailed else ():
            for pair, correlation in axis_correlations(signals[rows], length, kept):
                columns.append(correlation)
                labels.append(f"{sensor}/{pair}/{seconds}")
    if is_tag:
        groups = [(sensor, signals[rows]) for sensor, rows in sensors.items()]
        groups += [(name, signals[[row]]) for row, name in enumerate(names) if name.endswith(("|norm", "|along"))]
        frames = np.arange(signals.shape[1])[kept]
        spectral_columns, spectral_names = spectral_features(groups, rate, frames, [lengths[scale] for scale in DETAILED_SCALES])
        columns += spectral_columns
        labels += spectral_names
    return columns, tuple(labels)


def _percentiles(values: Array) -> Array:
    """Return the 1st, 10th, 50th, 90th and 99th percentiles of each row's finite values; NaN where there are none."""
    result = np.full((5, len(values)), np.nan)
    for row, signal in enumerate(values):
        finite = np.sort(signal[np.isfinite(signal)])  # quantiles of sorted values are faster
        if len(finite):
            result[:, row] = np.quantile(finite, [0.01, 0.1, 0.5, 0.9, 0.99])
    return result
