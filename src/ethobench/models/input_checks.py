"""Checks of a model's input: frames whose input is missing, and recordings that are unlike the training data.

A frame of a tag has input if any of its channels was recorded, an animal if any of its keypoints is tracked. With per-frame features,
frames that have features have input. Gaps of up to
`MAX_GAP_SECONDS` are bridged. In longer gaps, a frame of a tag cannot be predicted, nor can a frame in which animals are not tracked,
unless the training data have frames with the same combination of tracked animals. A frame without any input is never predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
            tracked = np.isfinite(chunk.positions).all(axis=3) & ~(chunk.confidence < MIN_CONFIDENCE)
            if zeros_missing:
                tracked &= ~(chunk.positions[..., :2] == 0).all(axis=3)
            present[start : start + len(chunk)] = tracked.any(axis=2)
        else:
            present[start : start + len(chunk), 0] = np.isfinite(chunk.values).any(axis=1)
        if chunk.extra is not None:  # a frame with features has input, even if nothing is tracked
            present[start : start + len(chunk)] |= np.isfinite(chunk.extra.values).any(axis=1, keepdims=True)
    longest = max(1, max_gap_frames(MAX_GAP_SECONDS, rate))
    for source in range(n_sources):
        gaps = iv.from_mask(~present[:, source])
        short = gaps.stop - gaps.start <= longest
        present[:, source] |= iv.to_mask(iv.Intervals(gaps.start[short], gaps.stop[short]), len(present))
    return present


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
    """

    n_animals: int | None = None
    combinations: tuple[tuple[bool, ...], ...] = ()
    any_animal: bool = False

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create one from the result of `dataclasses.asdict` after a round trip through JSON."""
        n_animals = values["n_animals"]
        combinations = tuple(tuple(bool(tracked) for tracked in row) for row in values["combinations"])
        return cls(None if n_animals is None else int(n_animals), combinations, bool(values.get("any_animal", False)))


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
