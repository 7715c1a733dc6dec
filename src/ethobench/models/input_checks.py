"""Checks of a model's input: frames whose input is missing, and recordings that are unlike the training data.

A frame of a tag has input if any of its channels was recorded, an animal if any of its keypoints is tracked. With per-frame features,
frames that have features have input. Gaps of up to `MAX_GAP_SECONDS` are interpolated. In longer gaps, the required input is missing: a
frame of a tag has none, nor has a frame in which animals are not tracked, unless the training data have frames with the same combination
of tracked animals.

Such a gap is bridged, that is, predicted from the frames around it, if it is no longer than `RequiredInput.bridged_seconds`. This limit is
fitted: up to it, the behavior inside the gaps of the training data is that before or after them. On the rats, this holds for 98 % of the
frames in gaps of up to 10 s, since both animals are lost while they hide or rest; leaving such frames out would cut bouts in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.recording import Data
from ethobench.features.missing_data import MAX_GAP_SECONDS, MIN_CONFIDENCE, max_gap_frames, zeros_are_missing
from ethobench.features.multiscale import Baseline

Mask = NDArray[np.bool_]
BRIDGED_SECONDS = (1.0, 2.0, 5.0, 10.0)  # without the required input, within which frames may be predicted; the first without evidence
MIN_BRIDGED_GAPS = 10  # of the training data, of a length, that are needed as evidence
MIN_BRIDGED_SHARE = 0.95  # of the frames in these gaps whose behavior must be that of the nearest frame outside
MIN_SHARE = 0.01  # of the training frames that a combination of tracked animals needs
CHUNK_FRAMES = 1 << 14  # frames examined at a time, so that long recordings need little memory
MAX_DISTANCE = 3.0  # beyond the training range, in widths of that range
MIN_RANGE = 0.02  # of the smallest range of a training recording, below which a signal hardly changes
MAX_UNUSUAL_SHARE = 0.1  # of the signals, above which a recording counts as out of distribution
MAX_NAMED = 5  # signals named in a warning


def input_present(data: Data, rate: float) -> Mask:
    """Return which frames have input, with gaps of up to `MAX_GAP_SECONDS` closed.

    Parameters
    ----------
    data : Signals or Poses
    rate : float
        Frames per second.

    Returns
    -------
    array of bool (n_frames, n_sources)
        One column for a tag; one column per animal for poses.
    """
    n_sources = len(data.individuals) if isinstance(data, Poses) else 1
    present = np.zeros((len(data), n_sources), dtype=bool)
    zeros_missing = isinstance(data, Poses) and zeros_are_missing(data.positions)
    for start in range(0, len(data), CHUNK_FRAMES):
        chunk = data[start : start + CHUNK_FRAMES]
        if isinstance(chunk, Poses):
            present[start : start + len(chunk)] = _tracked_animals(chunk, zeros_missing)
        else:
            present[start : start + len(chunk), 0] = np.isfinite(chunk.values).any(axis=1)
        if chunk.extra is not None:  # a frame with features has input, even if nothing is tracked
            present[start : start + len(chunk)] |= np.isfinite(chunk.extra.values).any(axis=1, keepdims=True)
    for source in range(n_sources):
        present[:, source] = close_gaps(present[:, source], max(1, max_gap_frames(MAX_GAP_SECONDS, rate)))
    return present


def _tracked_animals(poses: Poses, zeros_missing: bool) -> Mask:
    """Return of which animals any keypoint is tracked (n_frames, n_individuals); short axes are fast one at a time."""
    tracked = ~(poses.confidence < MIN_CONFIDENCE)
    for axis in range(poses.positions.shape[3]):
        tracked &= np.isfinite(poses.positions[..., axis])
    if zeros_missing:
        tracked &= (poses.positions[..., 0] != 0) | (poses.positions[..., 1] != 0)
    animals = np.zeros(tracked.shape[:2], dtype=bool)
    for keypoint in range(tracked.shape[2]):
        animals |= tracked[:, :, keypoint]
    return animals


def close_gaps(mask: Mask, max_frames: int) -> Mask:
    """Return a mask (n_frames,) in which runs of at most `max_frames` False values are True."""
    gaps = iv.from_mask(~mask)
    short = gaps.stop - gaps.start <= max_frames
    return np.asarray(mask | iv.to_mask(iv.Intervals(gaps.start[short], gaps.stop[short]), len(mask)))


@dataclass(frozen=True)
class RequiredInput:
    """Which input a model needs to predict a frame.

    Attributes
    ----------
    n_animals : int, optional
        How many of the animals matter, from the first; None for all. Models of directed behavior need the subject and the target.
    combinations : tuple of tuple of bool
        Combinations of tracked (True) and missing (False) animals in the training data, beside all tracked.
    any_animal : bool
        Whether one tracked animal is enough, whichever it is.
    bridged_seconds : float
        Longest gap that is predicted from the frames around it.
    """

    n_animals: int | None = None
    combinations: tuple[tuple[bool, ...], ...] = ()
    any_animal: bool = False
    bridged_seconds: float = BRIDGED_SECONDS[0]

    @classmethod
    def fit(cls, examples: Iterable[tuple[Mask, Mask]], n_animals: int | None = None) -> Self:
        """Find the combinations of tracked animals that are common in the training data.

        Parameters
        ----------
        examples : iterable of (array (n_frames, n_sources), array (n_frames,))
            `input_present` of each recording, and its annotated frames.
        n_animals : int, optional
        """
        counts: Counter[tuple[bool, ...]] = Counter()
        for present, annotated in examples:
            rows, frequencies = np.unique(present[annotated, :n_animals], axis=0, return_counts=True)
            counts.update({tuple(map(bool, row)): int(n) for row, n in zip(rows, frequencies, strict=True)})
        enough = MIN_SHARE * sum(counts.values())
        common = sorted(row for row, n in counts.items() if any(row) and not all(row) and n >= enough)
        return cls(n_animals, tuple(common))

    def met(self, present: Mask) -> Mask:
        """Return which frames have the input that the model needs (n_frames,), from `input_present`."""
        needed = present[:, : self.n_animals]
        if self.any_animal:
            return np.asarray(needed.any(axis=1))
        met = needed.all(axis=1)
        for combination in self.combinations:
            met |= (needed == np.array(combination)).all(axis=1)
        return np.asarray(met)

    def fit_bridge(self, examples: Iterable[tuple[Mask, NDArray[np.int16], float]]) -> Self:
        """Return a copy that bridges gaps as long as the labels of the training data justify.

        Parameters
        ----------
        examples : iterable of (array (n_frames, n_sources), array (n_frames, n_behaviors), float)
            `input_present` of each recording, its labels (-1 where unobserved), and its frames per second.
        """
        gaps = np.array([gap for example in examples for gap in self._labeled_gaps(*example)]).reshape(-1, 3)
        bridged = shorter = BRIDGED_SECONDS[0]
        for seconds in BRIDGED_SECONDS[1:]:
            _, n_frames, n_equal = gaps[(gaps[:, 0] > shorter) & (gaps[:, 0] <= seconds)].T
            if len(n_frames) < MIN_BRIDGED_GAPS or n_equal.sum() < MIN_BRIDGED_SHARE * n_frames.sum():
                break
            bridged = shorter = seconds
        return replace(self, bridged_seconds=bridged)

    def _labeled_gaps(self, present: Mask, labels: NDArray[np.int16], rate: float) -> Iterator[tuple[float, int, int]]:
        """Yield the seconds of each labeled gap, its frames, and how many of these have the label of the nearest frame outside."""
        gaps = iv.from_mask(~self.met(present)[: len(labels)])
        for start, stop in zip(gaps.start.tolist(), gaps.stop.tolist(), strict=True):
            if start and stop < len(labels) and (labels[start - 1 : stop + 1] >= 0).all():
                middle = (start + stop) // 2
                n_equal = (labels[start:middle] == labels[start - 1]).all(axis=1).sum()
                n_equal += (labels[middle:stop] == labels[stop]).all(axis=1).sum()
                yield (stop - start) / rate, stop - start, int(n_equal)

    def predictable(self, present: Mask, rate: float) -> Mask:
        """Return which frames can be predicted (n_frames,): those that have the required input, and gaps between them that are bridged.

        Parameters
        ----------
        present : array of bool (n_frames, n_sources)
            From `input_present`.
        rate : float
            Frames per second.
        """
        met = self.met(present)
        return close_gaps(met, max_gap_frames(self.bridged_seconds, rate)) if met.any() else met

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create one from the result of `dataclasses.asdict` after a round trip through JSON."""
        n_animals = values["n_animals"]
        combinations = tuple(tuple(bool(tracked) for tracked in row) for row in values["combinations"])
        any_animal, bridged = bool(values.get("any_animal", False)), float(values.get("bridged_seconds", BRIDGED_SECONDS[0]))
        if not 0 <= bridged <= BRIDGED_SECONDS[-1]:
            raise ValueError(f"gaps of {bridged} s cannot be bridged")
        return cls(None if n_animals is None else int(n_animals), combinations, any_animal, bridged)


@dataclass(frozen=True)
class TrainingRange:
    """The range of every signal in the training data, for an out-of-distribution check.

    Ranges reach from the 1st to the 99th percentile of a recording.

    Attributes
    ----------
    names : tuple of str
        The signals.
    low, high : tuple of float
        The lowest and highest percentile over all recordings.
    narrowest : tuple of float
        The smallest range of a single recording.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    narrowest: tuple[float, ...]

    @classmethod
    def fit(cls, baselines: Sequence[Baseline]) -> Self:
        """Compute the ranges from the baselines of the training recordings."""
        low, high = (np.array([getattr(baseline, side) for baseline in baselines]) for side in ("low", "high"))
        recorded = ~np.isnan(low).all(axis=0)
        lowest, highest = np.where(np.isnan(low), np.inf, low).min(axis=0), np.where(np.isnan(high), -np.inf, high).max(axis=0)
        narrowest = np.where(np.isnan(high - low), np.inf, high - low).min(axis=0)
        columns = (tuple(float(v) for v in np.where(recorded, row, 0.0)) for row in (lowest, highest, narrowest))
        return cls(baselines[0].names, *columns)

    def unusual_signals(self, baseline: Baseline) -> list[str]:
        """Return the signals of a recording that are far from the training range, missing, or hardly change."""
        if len(baseline.low) != len(self.names):
            raise MismatchError(f"the model was trained on {len(self.names)} signals, but the recording has {len(baseline.low)}")
        low, high, narrowest = np.array(self.low), np.array(self.high), np.array(self.narrowest)
        margin = MAX_DISTANCE * np.maximum(high - low, 1e-6 + 1e-3 * np.maximum(np.abs(low), np.abs(high)))
        new_low, new_high = np.array(baseline.low), np.array(baseline.high)
        with np.errstate(invalid="ignore"):
            outside = (new_high > high + margin) | (new_low < low - margin) | (new_low > high) | (new_high < low)
            still = new_high - new_low < MIN_RANGE * narrowest
        missing = np.isnan(new_low) & (high > low)
        return [name for name, unusual in zip(self.names, outside | still | missing, strict=True) if unusual]

    def warning(self, baseline: Baseline) -> str:
        """Return a warning about a recording that is out of distribution; an empty text for one that is not."""
        unusual = self.unusual_signals(baseline)
        if len(unusual) <= MAX_UNUSUAL_SHARE * len(self.names):
            return ""
        listed = ", ".join(unusual[:MAX_NAMED]) + (", ..." if len(unusual) > MAX_NAMED else "")
        return (
            f"is unlike the training data in {len(unusual)} of {len(self.names)} signals ({listed}): "
            "its predictions may be unreliable; check them before use"
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create one from the result of `dataclasses.asdict` after a round trip through JSON."""
        names = tuple(map(str, values["names"]))
        numbers = [tuple(map(float, values[side])) for side in ("low", "high", "narrowest")]
        if any(len(column) != len(names) or np.isnan(column).any() for column in numbers):
            raise ValueError("the ranges of the training signals are incomplete")
        return cls(names, *numbers)
