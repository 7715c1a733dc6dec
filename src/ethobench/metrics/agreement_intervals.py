"""Confidence intervals of agreement: resampling the individuals, or recordings, that several annotators annotated.

Intervals are defined in `ethobench.metrics.bootstrap`. That of the intraclass correlation follows from its mean squares
(`ethobench.metrics.agreement_coefficients.icc_interval`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ethobench.metrics.agreement_coefficients import alpha_sums, alpha_value, fleiss_sums, fleiss_value
from ethobench.metrics.base import Array
from ethobench.metrics.bootstrap import Resampled, confidence_interval, sample_weights, too_few


@dataclass(frozen=True)
class AnnotatedSample:
    """The recordings with several annotators, and resamples of their individuals.

    Attributes
    ----------
    recordings : tuple of str
    membership : array (n_individuals, n_recordings)
    weights : array (n_samples, n_individuals)
        Bootstrap resamples, then the jackknife; empty if there are too few individuals.
    unit : {"individuals", "recordings"}
    """

    recordings: tuple[str, ...]
    membership: Array
    weights: Array
    unit: str

    @classmethod
    def of(cls, individuals: Mapping[str, str], resamples: int, seed: int) -> AnnotatedSample:
        """Return the sample of recordings, given the individual of each."""
        names = list(dict.fromkeys(individuals.values()))
        membership = np.zeros((len(names), len(individuals)))
        for column, owner in enumerate(individuals.values()):
            membership[names.index(owner), column] = 1
        is_resampled = resamples > 0 and not too_few(len(names))
        weights = sample_weights(len(names), resamples, seed) if is_resampled else np.empty((0, len(names)))
        unit = "recordings" if all(name == owner for name, owner in individuals.items()) else "individuals"
        return cls(tuple(individuals), membership, weights, unit)

    @property
    def are_independent(self) -> bool:
        """Whether each recording is of another individual."""
        return len(self.recordings) == len(self.membership)

    @property
    def reason(self) -> str:
        """Why there are no intervals; empty if there are."""
        return too_few(len(self.membership), self.unit) or ("" if len(self.weights) else "computed without resampling")

    def interval(
        self, value: Callable[[Array], Array], statistics: Array, bounds: tuple[float, float] = (-1.0, 1.0)
    ) -> tuple[float, float] | None:
        """Return the interval of a statistic, a function of sums over recordings; None if it is withheld.

        Parameters
        ----------
        value : callable
            Returns values (n_samples,) of sums (n_samples, ...).
        statistics : array (n_recordings, ...)
        bounds : (float, float)
            Smallest and largest possible value.
        """
        if not len(self.weights):
            return None
        flat = self.membership @ statistics.reshape(len(statistics), -1)
        shape = statistics.shape[1:]
        n = int(np.isfinite(value(flat.reshape(-1, *shape))).sum())
        resampled = value((self.weights @ flat).reshape(-1, *shape))
        n_bootstrap = len(self.weights) - len(self.membership)
        low, high = confidence_interval(
            value(flat.sum(axis=0).reshape(1, *shape))[0],
            Resampled(resampled[:n_bootstrap], resampled[n_bootstrap:]),
            n,
            bounds,
            on_logit=True,
        )
        return (float(low), float(high)) if low <= high else None


def fleiss_interval(pieces: Sequence[tuple[Array, Array]], sample: AnnotatedSample) -> tuple[float, float] | None:
    """Return the interval of Fleiss' kappa; None if it is withheld. `pieces` are lengths and counts of each recording."""
    most = max((int(counts.sum(axis=1).max(initial=0)) for _, counts in pieces), default=0)
    statistics = np.stack([fleiss_sums(lengths, counts, most) for lengths, counts in pieces]) if pieces else np.zeros((0, 4))
    return sample.interval(lambda sums: fleiss_value(sums, most), statistics)


def alpha_interval(pieces: Sequence[tuple[Array, Array]], sample: AnnotatedSample) -> tuple[float, float] | None:
    """Return the interval of Krippendorff's alpha; parameters as in `fleiss_interval`."""
    statistics = np.stack([alpha_sums(lengths, counts) for lengths, counts in pieces]) if pieces else np.zeros((0, 3))
    return sample.interval(alpha_value, statistics)
