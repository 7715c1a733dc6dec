"""Bootstrap confidence intervals over individuals: one rule for every score, difference and corrected time budget.

Frames of one animal are not independent, so intervals describe how scores vary between animals, and the number of animals determines
their width. The standard error of a score is the larger of the bootstrap's (individuals drawn with replacement) and the jackknife's
(each individual omitted in turn). The interval is a t interval with n - 1 degrees of freedom for n individuals. The percentile interval
of the same draws is too narrow: with two individuals it contains the true value in about half of all studies, with five in about four
of five. Below `MIN_GROUPS` individuals an interval with the stated coverage spans most of the scale, so it is withheld.
``benchmarks/coverage.py`` measures the coverage.

- Scores with a bounded range (F1, kappa) have their interval on the logit scale of that range, so it stays inside and is longer on
  the side away from the nearer end. Absolute differences, whose true value may be 0, and unbounded scores have it on their original
  scale.
- The standard error of the bootstrap is multiplied by sqrt(n / (n - 1)), because the draws are from n individuals and not from the
  population.
- Individuals in whom a score is undefined (a behavior that they never show) do not count towards n.

References
----------
DiCiccio and Efron (1996), Bootstrap confidence intervals, Statistical Science 11, 189-228: percentile intervals are correct to
first order only. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69, 371-386: they
are too narrow in small samples by sqrt((n - 1) / n) and by the normal in place of the t quantile. Field and Welsh (2007),
Bootstrapping clustered data, Journal of the Royal Statistical Society B 69, 369-390: draw complete clusters. Efron and Stein (1981), The
jackknife estimate of variance, Annals of Statistics 9, 586-596: it is conservative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ethobench.core.intervals import BoolArray
from ethobench.metrics.base import Array

RESAMPLES = 10_000
HISTOGRAM_RESAMPLES = 1_000
LEVEL = 0.95
MIN_GROUPS = 5
"""Smallest number of individuals (or recordings, if each counts as an individual) for which an interval is reported."""
MAX_PROBABILITY = 0.999
"""Upper limit of `probability_higher`, for any number of individuals; the lower limit is one minus this."""
NO_SPREAD = 1e-12  # relative standard error below which all individuals have the same value, but for rounding
UNBOUNDED = (-np.inf, np.inf)


def too_few(n: int, unit: str = "individuals") -> str:
    """Return why there is no interval for `n` groups; empty if there are enough.

    >>> too_few(2), too_few(5)
    ('no interval below 5 individuals', '')
    """
    return f"no interval below {MIN_GROUPS} {unit}" if n < MIN_GROUPS else ""


def resampling_weights(n_individuals: int, resamples: int, seed: int = 0) -> Array:
    """Draw individuals with replacement; return how often each was drawn, shape (resamples, n_individuals)."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, n_individuals, (resamples, n_individuals))
    flat = drawn + n_individuals * np.arange(resamples)[:, None]
    return np.bincount(flat.ravel(), minlength=resamples * n_individuals).reshape(resamples, n_individuals).astype(float)


def sample_weights(n_individuals: int, resamples: int, seed: int = 0) -> Array:
    """Return the weights of individuals in bootstrap resamples, followed by those in which each is omitted in turn (jackknife)."""
    return np.concatenate([resampling_weights(n_individuals, resamples, seed), 1 - np.eye(n_individuals)])


@dataclass(frozen=True)
class Resampled:
    """Values of a score in resamples of the same individuals.

    Attributes
    ----------
    bootstrap : array (n_resamples, ...)
        Individuals drawn with replacement.
    jackknife : array (n_individuals, ...)
        Each individual omitted in turn.
    """

    bootstrap: Array
    jackknife: Array

    @classmethod
    def evaluate(cls, score: Callable[[Array], Array], n_individuals: int, resamples: int, seed: int = 0) -> Resampled:
        """Evaluate `score`, a function of weights (n_samples, n_individuals) that returns values (n_samples, ...)."""
        values = score(sample_weights(n_individuals, resamples, seed))
        return cls(values[:resamples], values[resamples:])

    @classmethod
    def mean(cls, scores: Sequence[Resampled]) -> Resampled:
        """Return the mean of several scores in the same resamples."""
        return cls(np.mean([s.bootstrap for s in scores], axis=0), np.mean([s.jackknife for s in scores], axis=0))

    def column(self, index: int) -> Resampled:
        """Return the values of one column."""
        return Resampled(self.bootstrap[:, index], self.jackknife[:, index])

    def __sub__(self, other: Resampled) -> Resampled:
        """Subtract another score in the same resamples."""
        return Resampled(self.bootstrap - other.bootstrap, self.jackknife - other.jackknife)

    def standard_error(self, n: ArrayLike) -> Array:
        """Return the standard error over the `n` individuals with a value; NaN if fewer than half of the resamples have one."""
        n = np.asarray(n, dtype=float)
        mean, defined = _nanmean(self.bootstrap), np.isfinite(self.bootstrap)
        with np.errstate(divide="ignore", invalid="ignore"):
            bootstrap = np.sqrt(_nanmean((self.bootstrap - mean) ** 2) * n / (n - 1))
            squares = np.where(np.isfinite(self.jackknife), (self.jackknife - _nanmean(self.jackknife)) ** 2, 0)
            jackknife = np.sqrt(squares.sum(axis=0) * (len(squares) - 1) / len(squares))
            return np.where(2 * defined.sum(axis=0) >= len(self.bootstrap), np.maximum(bootstrap, jackknife), np.nan)


def confidence_interval(
    value: ArrayLike,
    resampled: Resampled,
    n: ArrayLike,
    bounds: tuple[float, float] = UNBOUNDED,
    *,
    on_logit: bool = False,
    level: float = LEVEL,
    min_groups: int = MIN_GROUPS,
) -> tuple[Array, Array]:
    """Return the lower and upper ends of t intervals over individuals; NaN where an interval is withheld.

    An interval is withheld with fewer than `min_groups` individuals, and if all individuals have the same value, from which
    the spread cannot be estimated.

    Parameters
    ----------
    value : array (...)
    resampled : Resampled
        The same scores in resamples.
    n : int or array (...)
        Number of individuals in whom the score is defined.
    bounds : (float, float)
        Smallest and largest possible value; the interval is clipped there.
    on_logit : bool
        Compute the interval on the logit scale of `bounds`.
    level : float
        Confidence level.
    min_groups : int
        Minimum number of individuals.

    Examples
    --------
    >>> individuals = np.array([0.61, 0.70, 0.74, 0.55, 0.80])
    >>> means = Resampled.evaluate(lambda weights: weights @ individuals / weights.sum(axis=1), 5, 1000)
    >>> low, high = confidence_interval(individuals.mean(), means, 5, (0, 1), on_logit=True)
    >>> float(low.round(2)), float(high.round(2))
    (0.54, 0.79)
    """
    from scipy.special import expit, logit, stdtrit

    value, n = np.asarray(value, dtype=float), np.asarray(n)
    error = resampled.standard_error(n)
    reach = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * error
    low, high = value - reach, value + reach
    if on_logit:
        width = bounds[1] - bounds[0]
        # an exact score and its resamples from bins differ slightly; the standard error is that of the latter
        share, middle = (value - bounds[0]) / width, (_nanmean(resampled.bootstrap) - bounds[0]) / width
        inside = (share > 0) & (share < 1) & (middle > 0) & (middle < 1)
        with np.errstate(all="ignore"):
            shift = reach / width / (middle * (1 - middle))
            low = np.where(inside, bounds[0] + width * expit(logit(share) - shift), low)
            high = np.where(inside, bounds[0] + width * expit(logit(share) + shift), high)
    estimable = has_spread(value, error) & (n >= min_groups)
    return np.where(estimable, np.clip(low, *bounds), np.nan), np.where(estimable, np.clip(high, *bounds), np.nan)


def probability_higher(difference: float, resampled: Resampled, n: int) -> float:
    """Return the probability that the first of two scores is higher in the population, from their paired difference.

    It is one minus the one-sided p value of a t test; NaN if the interval is withheld. It is at least ``2 ** -n`` away from 0 and 1,
    because `n` individuals all favor the same one of two equal models with that probability, and at most `MAX_PROBABILITY`.

    Parameters
    ----------
    difference : float
    resampled : Resampled
        The difference in resamples, the same ones for both scores.
    n : int
        Number of individuals in whom both scores are defined.
    """
    from scipy.special import stdtr

    error = resampled.standard_error(n)
    if n < MIN_GROUPS or not has_spread(difference, error):
        return float("nan")
    margin = max(2.0**-n, 1 - MAX_PROBABILITY)
    return float(np.clip(stdtr(n - 1, difference / error), margin, 1 - margin))


def has_spread(value: ArrayLike, error: ArrayLike) -> BoolArray:
    """Return whether a standard error is defined and larger than rounding errors."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.asarray(error) > NO_SPREAD * np.maximum(np.abs(value), 1))


def _nanmean(values: Array) -> Array:
    defined = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0))
