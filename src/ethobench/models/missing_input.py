"""Frames whose input is missing: they cannot be predicted, and nothing is learnt from them.

A tag's frame has input while any of its channels was recorded, an animal while any of its keypoints is tracked. Gaps of up to
`MAX_GAP_SECONDS` are bridged. Beyond that, a frame of a tag cannot be predicted, nor can a frame in which animals are not tracked,
unless the model learnt from frames with the same combination of animals tracked. A frame without any input is never predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses
from ethobench.core import intervals as iv
from ethobench.core.recording import Data
from ethobench.features.missing_data import MAX_GAP_SECONDS, MIN_CONFIDENCE, max_gap_frames, zeros_are_missing

Mask = NDArray[np.bool_]
MIN_SHARE = 0.01  # of the training frames that a combination of tracked animals needs to count as learnt
CHUNK = 1 << 14  # frames examined at a time, so that long recordings need little memory


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
    sources = len(data.individuals) if isinstance(data, Poses) else 1
    present = np.zeros((len(data), sources), dtype=bool)
    zeros_missing = isinstance(data, Poses) and zeros_are_missing(data.positions)
    for start in range(0, len(data), CHUNK):
        part = data[start : start + CHUNK]
        if isinstance(part, Poses):
            tracked = np.isfinite(part.positions).all(axis=3) & ~(part.confidence < MIN_CONFIDENCE)
            if zeros_missing:
                tracked &= ~(part.positions[..., :2] == 0).all(axis=3)
            present[start : start + len(part)] = tracked.any(axis=2)
        else:
            present[start : start + len(part), 0] = np.isfinite(part.values).any(axis=1)
    longest = max(1, max_gap_frames(MAX_GAP_SECONDS, rate))
    for source in range(sources):
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
        How many of the animals count, from the first; None for all. Models of who does what to whom need the subject and the target.
    combinations : tuple of tuple of bool
        Combinations of tracked (True) and missing (False) animals that the model learnt from, beside all tracked.
    """

    n_animals: int | None = None
    combinations: tuple[tuple[bool, ...], ...] = ()

    @classmethod
    def learn(cls, examples: Iterable[tuple[Mask, Mask]], n_animals: int | None = None) -> Self:
        """Learn which combinations of tracked animals are common in the training data.

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
        kept = sorted(row for row, n in counts.items() if any(row) and not all(row) and n >= enough)
        return cls(n_animals, tuple(kept))

    def met(self, present: Mask) -> Mask:
        """Return which frames have the input that the model needs (n_frames,), from `input_present`."""
        needed = present[:, : self.n_animals]
        met = needed.all(axis=1)
        for combination in self.combinations:
            met |= (needed == np.array(combination)).all(axis=1)
        return np.asarray(met)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make one from what `dataclasses.asdict` returned, after it was written and read as JSON."""
        n_animals = plain["n_animals"]
        combinations = tuple(tuple(bool(tracked) for tracked in row) for row in plain["combinations"])
        return cls(None if n_animals is None else int(n_animals), combinations)
