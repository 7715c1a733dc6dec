"""Means of groups and their contrasts, from human labels alone or from few human labels and many model labels.

The unit is the individual: each contributes one value of a measure, such as the share of time that it grooms.

Human labels alone
------------------
Least squares with one intercept for each group, and slopes of covariates if there are any. Variances are heteroscedasticity-consistent
(HC2), and degrees of freedom are those of Satterthwaite, with the residual variance of each group. Without covariates, the interval of
a difference is exactly Welch's.

Human and model labels
----------------------
Prediction-powered inference: the mean of the model's values of all individuals, plus the mean error of the model on the labeled ones (the
rectifier)::

    estimate = lambda * mean(model, all individuals) + mean(human - lambda * model, labeled individuals)

Whatever the bias of the model, this estimates the mean of what a person would have labeled, if the labeled individuals are a random
sample. The weight `lambda` is tuned as in PPI++, so that a useless model has a weight near 0; it is 0 if
the model's values do not reduce the residual variance of the labeled individuals (adjusted R squared), unless there are too few of them
to choose. For a mean, the tuned estimator is the regression estimator of double sampling: the model's value is a covariate of the labeled
individuals, evaluated at its mean over all individuals. That gives intervals for small samples: the estimation of `lambda` is in the
leverages of HC2 and in the degrees of freedom, and the variance of the model's mean over all individuals is added. The model's value of a
labeled individual is computed from the same frames that a person labeled; that of the mean is computed from all its recordings.

References
----------
Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Prediction-powered inference, Science 382, 669-674. Angelopoulos, Duchi and
Zrnic (2023), PPI++: efficient prediction-powered inference, arXiv:2311.01453. Cochran (1977), Sampling Techniques, 3rd edition, Wiley,
chapter 12: double sampling. MacKinnon and White (1985), Journal of Econometrics 29, 305-325: HC2. Bell and McCaffrey (2002), Survey
Methodology 28, 169-181: degrees of freedom. Welch (1947), Biometrika 34, 28-35. Fieller (1954), Journal of the Royal Statistical
Society B 16, 175-185: ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
LEVEL = 0.95
NO_SPREAD = 1e-12
"""Relative standard error below which all individuals have the same value, but for rounding."""
MIN_RESIDUAL_DF = 2
MIN_DF_TO_CHOOSE = 5
"""With fewer residual degrees of freedom, a choice between using the model or not would make intervals too narrow; it is used."""


@dataclass(frozen=True)
class Estimate:
    """A mean, difference or other contrast of group means.

    Attributes
    ----------
    value, variance : float
        The estimate and the square of its standard error.
    df : float
        Degrees of freedom of the variance.
    labeled_variance : float
        The share of `variance` that more human labels reduce.
    weight : float
        Weight of the model labels, `lambda`; 0 without them.
    scale : float
        Largest absolute value of an individual, to which rounding errors are relative.

    Examples
    --------
    >>> low, high = Estimate(0.2, 0.01, 8.0).interval()
    >>> round(low, 3), round(high, 3)
    (-0.031, 0.431)
    """

    value: float
    variance: float
    df: float
    labeled_variance: float = np.nan
    weight: float = 0.0
    scale: float = 0.0

    @property
    def has_spread(self) -> bool:
        """Whether there is any variation between individuals, without which there is no interval."""
        return bool(self.df > 0 and self.variance > (NO_SPREAD * max(abs(self.value), self.scale, 1e-9)) ** 2)

    def half_width(self, level: float = LEVEL) -> float:
        """Return half of the width of the t interval; NaN without variation."""
        from scipy.special import stdtrit

        return float(stdtrit(self.df, 0.5 + level / 2) * np.sqrt(self.variance)) if self.has_spread else np.nan

    def interval(self, bounds: tuple[float, float] = (-np.inf, np.inf), level: float = LEVEL) -> tuple[float, float]:
        """Return the t interval, cut at the bounds of the quantity; NaN without variation."""
        half = self.half_width(level)
        if np.isnan(half):
            return np.nan, np.nan
        return max(self.value - half, bounds[0]), min(self.value + half, bounds[1])

    def p_value(self) -> float:
        """Return the two-sided p value of the t test that the true value is 0."""
        from scipy.special import stdtr

        if not self.has_spread:
            return 1.0 if abs(self.value) <= NO_SPREAD * max(self.scale, 1e-9) else 0.0
        return float(2 * stdtr(self.df, -abs(self.value) / np.sqrt(self.variance)))


Estimator = Callable[[ArrayLike], Estimate]
"""Returns the estimate of a contrast: weights of the group means, such as ``(-1, 1)`` for the difference of the second and the first."""


class IndependentGroups:
    """Means of groups of different individuals.

    Parameters
    ----------
    codes : array of int (n_individuals,)
        The group of each individual, from 0.
    values : array (n_individuals,)
        The value of each individual from human labels; NaN for those without.
    covariates : array (n_individuals, n_covariates), optional
        Means are adjusted to the mean of the covariates over all individuals.
    model : array (n_individuals,), optional
        The value from model labels, over all recordings of the individual.
    model_labeled : array (n_individuals,), optional
        The value from model labels in the frames that have human labels. Default: `model`. Individuals without count with human labels
        alone only; the model is not used if a group has no others.

    Examples
    --------
    >>> groups = IndependentGroups([0, 0, 0, 1, 1, 1], [1.0, 2.0, 3.0, 2.0, 4.0, 6.0])
    >>> difference = groups.estimate([-1, 1])
    >>> round(difference.value, 2), round(difference.df, 2)
    (2.0, 2.94)
    """

    def __init__(
        self,
        codes: ArrayLike,
        values: ArrayLike,
        covariates: ArrayLike | None = None,
        model: ArrayLike | None = None,
        model_labeled: ArrayLike | None = None,
    ) -> None:
        self.codes = np.asarray(codes, dtype=np.int64)
        values = np.asarray(values, dtype=float)
        self.n_groups = int(self.codes.max()) + 1
        adjusted = np.zeros((len(values), 0)) if covariates is None else np.asarray(covariates, dtype=float).reshape(len(values), -1)
        self.model = None if model is None else np.asarray(model, dtype=float)
        rectified = self.model if model_labeled is None else np.asarray(model_labeled, dtype=float)
        usable = ~np.isnan(values) & ~np.isnan(adjusted).any(axis=1)
        self.labeled = usable
        at = np.repeat(adjusted.mean(axis=0)[None], self.n_groups, axis=0) if len(values) else np.zeros((self.n_groups, 0))
        self.fit = _GroupRegression(self.codes[usable], values[usable], self.n_groups, adjusted[usable], at)
        self.has_model = False
        if self.model is None or rectified is None:
            return
        both = usable & ~np.isnan(rectified)
        has_model_values = np.bincount(self.codes[~np.isnan(self.model)], minlength=self.n_groups) > 1
        keeps_groups = np.array_equal(np.unique(self.codes[both]), np.unique(self.codes[usable]))
        if keeps_groups and has_model_values[self.codes[both]].all() and self._is_informative(rectified[both], self.codes[both]):
            means = [np.nanmean(self.model[self.codes == k]) if has_model_values[k] else 0.0 for k in range(self.n_groups)]
            columns, at = np.column_stack([adjusted[both], rectified[both]]), np.column_stack([at, means])
            powered = _GroupRegression(self.codes[both], values[both], self.n_groups, columns, at)
            self.has_model = powered.residual_df < MIN_DF_TO_CHOOSE or powered.residual_variance < self.fit.residual_variance
            if self.has_model:
                self.fit, self.labeled = powered, both

    @staticmethod
    def _is_informative(model: Array, codes: NDArray[np.int64]) -> bool:
        """Whether the model's values vary within groups, and there are enough individuals to estimate their weight."""
        counts = np.bincount(codes)
        means = np.bincount(codes, model) / np.maximum(counts, 1)
        varies = (np.abs(model - means[codes]) > NO_SPREAD * np.abs(model).max(initial=0)).any()
        return len(model) - int((counts > 0).sum()) - 1 >= MIN_RESIDUAL_DF and bool(varies)

    def estimate(self, weights: ArrayLike) -> Estimate:
        """Return the estimate of a contrast of the group means."""
        weights = np.asarray(weights, dtype=float)
        human = self.fit.estimate(weights)
        if not self.has_model or self.model is None:
            return human
        slope = float(self.fit.coefficients[-1])
        parts = [(human.variance, human.df)]
        cross = 0.0
        for k in np.flatnonzero(weights):
            model = self.model[self.codes == k]
            model = model[~np.isnan(model)]
            n = len(model)
            parts.append(((slope * weights[k]) ** 2 * float(model.var(ddof=1)) / n, n - 1))
            rows = self.labeled & (self.codes == k)
            influence = self.fit.influence(weights)[self.codes[self.labeled] == k]
            cross += 2 * float(influence @ (self.model[rows] - model.mean())) * slope * float(weights[k]) / n
        variance = sum(component for component, _ in parts)
        df = variance**2 / sum(component**2 / freedom for component, freedom in parts) if variance > 0 else human.df
        return Estimate(human.value, variance + max(cross, 0.0), df, human.variance, slope, human.scale)


class RepeatedMeasures:
    """Means of several conditions of the same individuals, or of matched individuals.

    Parameters
    ----------
    values : array (n_individuals, n_groups)
        From human labels; NaN in individuals without.
    model, model_labeled : array (n_individuals, n_groups), optional
        As for `IndependentGroups`.

    Examples
    --------
    >>> groups = RepeatedMeasures([[1.0, 2.0], [2.0, 3.5], [3.0, 3.5]])
    >>> difference = groups.estimate([-1, 1])
    >>> round(difference.value, 6), round(difference.df, 6)
    (1.0, 2.0)
    """

    def __init__(self, values: ArrayLike, model: ArrayLike | None = None, model_labeled: ArrayLike | None = None) -> None:
        self.values = np.asarray(values, dtype=float)
        self.n_groups = self.values.shape[1]
        self.model = None if model is None else np.asarray(model, dtype=float)
        self.model_labeled = self.model if model_labeled is None else np.asarray(model_labeled, dtype=float)

    def estimate(self, weights: ArrayLike) -> Estimate:
        """Return the estimate of a contrast of the group means."""
        weights = np.asarray(weights, dtype=float)
        used = np.flatnonzero(weights)

        models = [None if table is None else table[:, used] @ weights[used] for table in (self.model, self.model_labeled)]
        return IndependentGroups(np.zeros(len(self.values), dtype=int), self.values[:, used] @ weights[used], None, *models).estimate([1.0])


class _GroupRegression:
    """Least squares with an intercept for each group and common slopes; HC2 variances."""

    def __init__(self, codes: NDArray[np.int64], values: Array, n_groups: int, columns: Array, at: Array) -> None:
        design = np.column_stack([np.eye(n_groups)[codes], columns])
        self.codes, self.at, self.n_groups = codes, at, n_groups
        self.largest = float(np.abs(values).max(initial=0.0))
        left, singular, right = np.linalg.svd(design, full_matrices=False)
        kept = singular > 1e-10 * singular.max(initial=0.0)
        self.basis = left[:, kept]  # orthonormal columns that span the design
        self.pseudo_inverse = (right[kept].T / singular[kept]) @ self.basis.T  # (n_coefficients, n_individuals)
        self.coefficients = self.pseudo_inverse @ values
        leverage = np.clip((self.basis**2).sum(axis=1), 0.0, 1.0)
        residuals = values - self.basis @ (self.basis.T @ values)
        self.is_determined = leverage < 1 - 1e-9
        with np.errstate(divide="ignore", invalid="ignore"):
            self.scale = np.where(self.is_determined, 1 / (1 - leverage), 0.0)
        self.residuals = np.where(self.is_determined, residuals, 0.0)
        squares = self.residuals**2 * self.scale
        counts = np.maximum(np.bincount(codes, minlength=n_groups), 1)
        self.group_variances = np.bincount(codes, squares, minlength=n_groups) / counts
        self.residual_df = len(values) - self.basis.shape[1]
        self.residual_variance = float(np.sum(residuals**2)) / self.residual_df if self.residual_df > 0 else np.inf

    def _row_weights(self, weights: Array) -> Array:
        """Return the weight of each individual's value in the estimate."""
        return np.asarray(np.concatenate([weights, weights @ self.at]) @ self.pseudo_inverse)

    def influence(self, weights: Array) -> Array:
        """Return the contribution of each individual's residual to the estimate."""
        return self._row_weights(weights) * self.residuals * np.sqrt(self.scale)

    def estimate(self, weights: Array) -> Estimate:
        value = float(np.concatenate([weights, weights @ self.at]) @ self.coefficients)
        rows = self._row_weights(weights)
        if np.any((np.abs(rows) > 1e-12) & ~self.is_determined):  # an individual that alone determines a group mean
            return Estimate(value, np.nan, 0.0, np.nan, scale=self.largest)
        variance = float(np.sum(rows**2 * self.residuals**2 * self.scale))
        df = self._degrees_of_freedom(rows**2 * self.scale)
        return Estimate(value, variance, df, variance, scale=self.largest)

    def _degrees_of_freedom(self, weights: Array) -> float:
        """Return Satterthwaite's degrees of freedom of the sum of squared residuals with these weights.

        The sum is a quadratic form of the values with the matrix M D M, where D has the weights on its diagonal and M projects on the
        residuals. With the variances O of the values, the degrees of freedom are tr(M D M O)**2 / tr((M D M O)**2). The matrix is
        D + L K L', with L = [Q, D Q] of few columns, so that no matrix of individuals by individuals is needed.
        """
        basis, spread = self.basis, self.group_variances[self.codes]
        weighted = weights[:, None] * basis
        inner = basis.T @ weighted
        size = inner.shape[0]
        low_rank = np.column_stack([basis, weighted])
        middle = np.block([[inner, -np.eye(size)], [-np.eye(size), np.zeros((size, size))]])
        product = middle @ (low_rank.T @ (spread[:, None] * low_rank))
        crossed = middle @ (low_rank.T @ ((spread**2 * weights)[:, None] * low_rank))
        trace = float(np.sum(weights * spread) + np.trace(product))
        trace_of_square = float(np.sum((weights * spread) ** 2) + 2 * np.trace(crossed) + np.sum(product * product.T))
        return trace**2 / trace_of_square if trace_of_square > 0 else float(len(weights) - self.n_groups)


def ratio_interval(estimator: Estimator, top: ArrayLike, bottom: ArrayLike, level: float = LEVEL) -> tuple[float, float, float]:
    """Return the ratio of two non-negative means and its interval by Fieller's theorem.

    Parameters
    ----------
    estimator : callable
        Such as `IndependentGroups.estimate`.
    top, bottom : array (n_groups,)
        Weights of the two means.
    level : float

    Returns
    -------
    ratio, low, high : float
        NaN where undefined. `high` is infinite if the lower mean may be 0.

    Examples
    --------
    >>> groups = IndependentGroups([0, 0, 0, 0, 1, 1, 1, 1], [1.0, 1.1, 0.9, 1.0, 2.0, 2.2, 1.8, 2.0])
    >>> [round(value, 2) for value in ratio_interval(groups.estimate, [0, 1], [1, 0])]
    [2.0, 1.74, 2.3]
    """
    from scipy.special import stdtrit

    top, bottom = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
    a, b = estimator(top), estimator(bottom)
    if not b.value > 0:
        return np.nan, np.nan, np.nan
    ratio = a.value / b.value
    both, contrast = estimator(top - bottom), estimator(top - ratio * bottom)
    if not contrast.has_spread:
        return ratio, np.nan, np.nan
    square = float(stdtrit(contrast.df, 0.5 + level / 2)) ** 2
    covariance = (a.variance + b.variance - both.variance) / 2
    p, q, r = b.value**2 - square * b.variance, a.value * b.value - square * covariance, a.value**2 - square * a.variance
    discriminant = q**2 - p * r
    if p > 0:
        root = float(np.sqrt(max(discriminant, 0.0)))
        return ratio, max((q - root) / p, 0.0), max((q + root) / p, 0.0)
    if discriminant < 0:
        return ratio, 0.0, np.inf
    roots = sorted(((q - np.sqrt(discriminant)) / p, (q + np.sqrt(discriminant)) / p)) if p < 0 else [-np.inf, np.inf]
    return ratio, max(roots[1], 0.0) if roots[0] < 0 and roots[1] <= ratio else 0.0, np.inf


@dataclass(frozen=True)
class LabelsToHalve:
    """How many more individuals would have to be labeled by hand to halve an interval.

    Attributes
    ----------
    individuals : int or None
        In addition to those that are labeled. None if labeling all that have model labels is not enough.
    relative_width : float
        Width after labeling all that have model labels, relative to the present one.
    """

    individuals: int | None
    relative_width: float


def labels_to_halve(estimate: Estimate, n_labeled: int, n_available: int | None, n_groups: int = 2) -> LabelsToHalve:
    """Return how many more individuals to label by hand, so that the interval has half of its width.

    Parameters
    ----------
    estimate : Estimate
        Of a contrast.
    n_labeled : int
        Number of individuals with human labels in its groups.
    n_available : int, optional
        Number of individuals with model labels in its groups. None: without model labels, any number of individuals.
    n_groups : int
        Number of groups of the contrast.

    Examples
    --------
    >>> estimate = IndependentGroups([0] * 4 + [1] * 4, [1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0]).estimate([-1, 1])
    >>> labels_to_halve(estimate, 8, None).individuals
    16
    """
    present = estimate.half_width()
    if np.isnan(present) or n_labeled <= n_groups:
        return LabelsToHalve(None, np.nan)
    rest = max(estimate.variance - estimate.labeled_variance, 0.0)
    per_label = estimate.df / max(n_labeled - n_groups, 1)

    def relative_width(n: int) -> float:
        variance = estimate.labeled_variance * n_labeled / n + rest
        freedom = max(estimate.df + per_label * (n - n_labeled), 1.0)
        return Estimate(estimate.value, variance, freedom).half_width() / present

    limit = n_available if n_available is not None else 100 * n_labeled
    low, high = n_labeled, max(limit, n_labeled)
    share_of_width = relative_width(high)
    if share_of_width > 0.5:
        return LabelsToHalve(None, share_of_width)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if relative_width(middle) <= 0.5 else (middle, high)
    return LabelsToHalve(high - n_labeled, share_of_width)
