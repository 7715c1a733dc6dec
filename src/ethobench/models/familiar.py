"""Whether a recording looks like those that a model learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ethobench.core.errors import MismatchError
from ethobench.features.multiscale import Baseline

FAR = 3.0  # times the range of the training beyond it
STILL = 0.02  # of the smallest range in the training
SHARE = 0.1  # of the signals that must be strange before anything is said
FEW = 5  # signals that are named


@dataclass(frozen=True)
class Familiar:
    """The range of every signal in the training, between the 1st and 99th percentiles of its recordings.

    Attributes
    ----------
    names : tuple of str
    low, high : tuple of float
        The lowest and the highest over all recordings.
    narrowest : tuple of float
        The smallest range that a single recording had.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    narrowest: tuple[float, ...]

    @classmethod
    def of(cls, baselines: Sequence[Baseline]) -> Self:
        """Learn from what is usual in each recording of the training."""
        low, high = (np.array([getattr(each, side) for each in baselines]) for side in ("low", "high"))
        some = ~np.isnan(low).all(axis=0)
        least, most = np.where(np.isnan(low), np.inf, low).min(axis=0), np.where(np.isnan(high), -np.inf, high).max(axis=0)
        range_ = np.where(np.isnan(high - low), np.inf, high - low).min(axis=0)
        told = (tuple(float(v) for v in np.where(some, row, 0.0)) for row in (least, most, range_))
        return cls(baselines[0].names, *told)

    def strange(self, baseline: Baseline) -> list[str]:
        """Return the signals of a recording that are far from all of the training: other values, or hardly any change."""
        if len(baseline.low) != len(self.names):
            raise MismatchError(f"the model was trained on {len(self.names)} signals, and these are {len(baseline.low)}")
        low, high, narrowest = np.array(self.low), np.array(self.high), np.array(self.narrowest)
        margin = FAR * np.maximum(high - low, 1e-6 + 1e-3 * np.maximum(np.abs(low), np.abs(high)))
        own_low, own_high = np.array(baseline.low), np.array(baseline.high)
        with np.errstate(invalid="ignore"):
            outside = (own_high > high + margin) | (own_low < low - margin) | (own_low > high) | (own_high < low)
            still = own_high - own_low < STILL * narrowest
        missing = np.isnan(own_low) & (high > low)
        return [name for name, odd in zip(self.names, outside | still | missing, strict=True) if odd]

    def complaint(self, baseline: Baseline) -> str:
        """Return what to tell a user of a recording; nothing where it looks familiar."""
        odd = self.strange(baseline)
        if len(odd) <= SHARE * len(self.names):
            return ""
        named = ", ".join(odd[:FEW]) + (", ..." if len(odd) > FEW else "")
        return f"looks unlike the training data in {len(odd)} of {len(self.names)} signals ({named}): mind what is predicted of it"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make one from what `dataclasses.asdict` gave, after it was written and read as JSON."""
        names = tuple(map(str, plain["names"]))
        numbers = [tuple(map(float, plain[side])) for side in ("low", "high", "narrowest")]
        if any(len(values) != len(names) or np.isnan(values).any() for values in numbers):
            raise ValueError("the ranges of the training signals are incomplete")
        return cls(names, *numbers)
