"""Intervals over individuals: one rule for every score, difference and corrected time budget.

Frames of one animal are not independent, so intervals are about further animals, and the number of animals is what counts.
The standard error of a score comes from individuals drawn with replacement (bootstrap) and left out in turn (jackknife), whichever
is larger. The interval is a t interval with as many degrees of freedom as there are individuals minus one. The percentile interval of the
same draws is too narrow: with two individuals it holds the true value in about half of all studies, with five in about four of
five. Below `MIN_GROUPS` individuals an interval that keeps its promise spans most of the scale, so none is given.
``benchmarks/coverage.py`` measures all this.

- Scores between two ends (F1, kappa) have their interval on the logit scale of that range, so it stays inside and is longer on
  the side away from the nearer end. Absolute differences, which may truly be 0, and unbounded scores have it on their own scale.
- The bootstrap's standard error is widened by sqrt(n / (n - 1)), because the draws are from n individuals and not from the population.
- Individuals in whom a score is undefined (a behavior that they never show) do not count towards n.

References
----------
DiCiccio and Efron (1996), Bootstrap confidence intervals, Statistical Science 11, 189-228: percentile intervals are correct to
first order only. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69, 371-386: they
are too narrow in small samples by sqrt((n - 1) / n) and by the normal in place of the t quantile. Field and Welsh (2007),
Bootstrapping clustered data, Journal of the Royal Statistical Society B 69, 369-390: draw whole clusters. Efron and Stein (1981), The
jackknife estimate of variance, Annals of Statistics 9, 586-596: it errs on the safe side.
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
"""Fewest individuals (or recordings, where each is taken as an individual) from which an interval is given."""
SURE = 0.999
"""No number of individuals makes `probability_higher` say more than this, or less than one minus it."""
NO_SPREAD = 1e-12
UNBOUNDED = (-np.inf, np.inf)


def too_few(n: int, unit: str = "individuals") -> str:
    """Return why `n` groups have no interval; empty where they are enough.

    >>> too_few(2), too_few(5)
    ('no interval below 5 individuals', '')
    """
    return f"no interval below {MIN_GROUPS} {unit}" if n < MIN_GROUPS else ""


def resampling_weights(n_individuals: int, resamples: int, seed: int = 0) -> Array:
    """Draw individuals with replacement; return how often each was drawn in each resample."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, n_individuals, (resamples, n_individuals))
    places = drawn + n_individuals * np.arange(resamples)[:, None]
    return np.bincount(places.ravel(), minlength=resamples * n_individuals).reshape(resamples, n_individuals).astype(float)


def sample_weights(n_individuals: int, resamples: int, seed: int = 0) -> Array:
    """Return the weights of individuals in other samples: drawn with replacement, then each left out in turn."""
    return np.concatenate([resampling_weights(n_individuals, resamples, seed), 1 - np.eye(n_individuals)])


@dataclass(frozen=True)
class Resampled:
    """Scores of other samples of the same individuals.

    Attributes
    ----------
    drawn : array (n_resamples, ...)
        Individuals drawn with replacement.
    without : array (n_individuals, ...)
        Each individual left out in turn.
    """

    drawn: Array
    without: Array

    @classmethod
    def by(cls, score: Callable[[Array], Array], n_individuals: int, resamples: int, seed: int = 0) -> Resampled:
        """Evaluate `score`, a function of weights (n_samples, n_individuals) that returns values (n_samples, ...)."""
        values = score(sample_weights(n_individuals, resamples, seed))
        return cls(values[:resamples], values[resamples:])

    @classmethod
    def mean(cls, parts: Sequence[Resampled]) -> Resampled:
        """Average scores over the same samples."""
        return cls(np.mean([part.drawn for part in parts], axis=0), np.mean([part.without for part in parts], axis=0))

    def of(self, column: int) -> Resampled:
        """Return one column."""
        return Resampled(self.drawn[:, column], self.without[:, column])

    def __sub__(self, other: Resampled) -> Resampled:
        """Subtract scores of the same samples."""
        return Resampled(self.drawn - other.drawn, self.without - other.without)

    def standard_error(self, n: ArrayLike) -> Array:
        """Return the standard error over the `n` individuals in whom the score is defined; NaN where fewer than half of the draws are."""
        n = np.asarray(n, dtype=float)
        mean, defined = _nanmean(self.drawn), np.isfinite(self.drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            bootstrap = np.sqrt(_nanmean((self.drawn - mean) ** 2) * n / (n - 1))
            squares = np.where(np.isfinite(self.without), (self.without - _nanmean(self.without)) ** 2, 0)
            jackknife = np.sqrt(squares.sum(axis=0) * (len(squares) - 1) / len(squares))
            return np.where(2 * defined.sum(axis=0) >= len(self.drawn), np.maximum(bootstrap, jackknife), np.nan)


def confidence_interval(
    value: ArrayLike,
    resampled: Resampled,
    n: ArrayLike,
    bounds: tuple[float, float] = UNBOUNDED,
    *,
    on_logit: bool = False,
    level: float = LEVEL,
) -> tuple[Array, Array]:
    """Return the ends of t intervals over individuals; NaN where an interval is withheld.

    An interval is withheld with fewer than `MIN_GROUPS` individuals, and where all individuals have the same value, from which
    no spread can be told.

    Parameters
    ----------
    value : array (...)
    resampled : Resampled
        The same scores of other samples.
    n : int or array (...)
        Individuals in whom the score is defined.
    bounds : (float, float)
        Smallest and largest possible value; the interval is cut there.
    on_logit : bool
        Make the interval on the logit scale of `bounds`.
    level : float

    Examples
    --------
    >>> individuals = np.array([0.61, 0.70, 0.74, 0.55, 0.80])
    >>> means = Resampled.by(lambda weights: weights @ individuals / weights.sum(axis=1), 5, 1000)
    >>> low, high = confidence_interval(individuals.mean(), means, 5, (0, 1), on_logit=True)
    >>> float(low.round(2)), float(high.round(2))
    (0.54, 0.79)
    """
    given = np.asarray(n) >= MIN_GROUPS
    low, high = t_interval(value, resampled, n, bounds, on_logit=on_logit, level=level)
    return np.where(given, low, np.nan), np.where(given, high, np.nan)


def t_interval(
    value: ArrayLike,
    resampled: Resampled,
    n: ArrayLike,
    bounds: tuple[float, float] = UNBOUNDED,
    *,
    on_logit: bool = False,
    level: float = LEVEL,
) -> tuple[Array, Array]:
    """Return the ends of t intervals, with however few individuals; as `confidence_interval` else."""
    from scipy.special import expit, logit, stdtrit

    value, n = np.asarray(value, dtype=float), np.asarray(n)
    error = resampled.standard_error(n)
    reach = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * error
    low, high = value - reach, value + reach
    if on_logit:
        width = bounds[1] - bounds[0]
        # where a score is exact but its resamples come from bins, the two differ, and the spread belongs to the latter
        share, middle = (value - bounds[0]) / width, (_nanmean(resampled.drawn) - bounds[0]) / width
        inside = (share > 0) & (share < 1) & (middle > 0) & (middle < 1)
        with np.errstate(all="ignore"):
            shift = reach / width / (middle * (1 - middle))
            low = np.where(inside, bounds[0] + width * expit(logit(share) - shift), low)
            high = np.where(inside, bounds[0] + width * expit(logit(share) + shift), high)
    given = has_spread(value, error)
    return np.where(given, np.clip(low, *bounds), np.nan), np.where(given, np.clip(high, *bounds), np.nan)


def probability_higher(difference: float, resampled: Resampled, n: int) -> float:
    """Return how probable it is that the first of two scores is higher in the population, from their paired difference.

    It is one minus the one-sided p value of a t test, NaN where no interval is given. It stays within ``2 ** -n`` of 0 and 1, because
    `n` individuals all favor the same one of two equal models with that probability, and within `SURE`.

    Parameters
    ----------
    difference : float
    resampled : Resampled
        The difference over other samples, the same ones for both scores.
    n : int
        Individuals in whom both scores are defined.
    """
    from scipy.special import stdtr

    error = resampled.standard_error(n)
    if n < MIN_GROUPS or not has_spread(difference, error):
        return float("nan")
    doubt = max(2.0**-n, 1 - SURE)
    return float(np.clip(stdtr(n - 1, difference / error), doubt, 1 - doubt))


def has_spread(value: ArrayLike, error: ArrayLike) -> BoolArray:
    """Tell whether a standard error is known and more than rounding."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.asarray(error) > NO_SPREAD * np.maximum(np.abs(value), 1))


def _nanmean(values: Array) -> Array:
    defined = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0))
