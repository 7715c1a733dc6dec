"""Agreement coefficients of several annotators: Fleiss' kappa, Krippendorff's alpha and the intraclass correlation.

Fleiss' kappa and Krippendorff's alpha are computed from sums over frames (``*_sums``), which add up over recordings, so that resamples of
recordings need no frames. Cohen's kappa of two annotators is in `ethobench.metrics.frames`.

References
----------
Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76, 378-382. Krippendorff (2019), Content
Analysis, 4th edition. McGraw and Wong (1996), Forming inferences about some intraclass correlation coefficients, Psychological Methods 1,
30-46. Shrout and Fleiss (1979), Intraclass correlations: uses in assessing rater reliability, Psychological Bulletin 86, 420-428.
"""

from __future__ import annotations

import numpy as np

from ethobench.metrics.base import Array, ratio
from ethobench.metrics.bootstrap import LEVEL, too_few


def fleiss(lengths: Array, counts: Array) -> float:
    """Return Fleiss' kappa of the frames that all annotators observed.

    Parameters
    ----------
    lengths : array (n,)
        Number of frames in each interval of constant labels.
    counts : array (n, n_categories)
        Number of annotators who chose each category there.
    """
    most = int(counts.sum(axis=1).max(initial=0))
    return float(fleiss_value(fleiss_sums(lengths, counts, most), most))


def fleiss_sums(lengths: Array, counts: Array, most: int) -> Array:
    """Return frames, agreeing shares summed over frames, and choices of each category, where `most` annotators observed."""
    keep = (counts.sum(axis=1) == most) & (most > 1)
    lengths, counts = lengths[keep], counts[keep]
    agreed = ((counts**2).sum(axis=1) - most) / max(most * (most - 1), 1)
    return np.array([lengths.sum(), (lengths * agreed).sum(), *(lengths[:, None] * counts).sum(axis=0)])


def fleiss_value(s: Array, most: int) -> Array:
    """Return Fleiss' kappa of the sums that `fleiss_sums` returns; leading axes are samples."""
    total = s[..., 0]
    chance = (ratio(s[..., 2:], (total * most)[..., None]) ** 2).sum(axis=-1)
    return ratio(ratio(s[..., 1], total) - chance, 1 - chance)


def krippendorff(lengths: Array, counts: Array) -> float:
    """Return Krippendorff's alpha (nominal) of the frames that at least two annotators observed; parameters as in `fleiss`."""
    return float(alpha_value(alpha_sums(lengths, counts)))


def alpha_sums(lengths: Array, counts: Array) -> Array:
    """Return agreeing pairs of values, and values of each category."""
    raters = counts.sum(axis=1)
    keep = raters > 1
    lengths, counts, raters = lengths[keep], counts[keep], raters[keep]
    agreeing = (lengths * (counts * (counts - 1)).sum(axis=1) / (raters - 1)).sum()
    return np.array([agreeing, *(lengths[:, None] * counts).sum(axis=0)])


def alpha_value(s: Array) -> Array:
    """Return Krippendorff's alpha of the sums that `alpha_sums` returns; leading axes are samples."""
    values, total = s[..., 1:], s[..., 1:].sum(axis=-1)
    expected = ratio(total**2 - (values**2).sum(axis=-1), total - 1)
    return np.where(total > 0, 1 - ratio(total - s[..., 0], expected), np.nan)


def icc(table: Array) -> float:
    """Return ICC(2,1) of a table of recordings by annotators; NaN with fewer than two of either, or no variation at all."""
    n, k, rows, columns, error = _mean_squares(table)
    if np.isnan(error):
        return float("nan")
    return float(ratio(np.asarray(rows - error), np.asarray(rows + (k - 1) * error + k * (columns - error) / n)))


def icc_interval(table: Array) -> tuple[float, float] | None:
    """Return the 95 % interval of ICC(2,1) over recordings by the F distribution (McGraw and Wong 1996); None if it is withheld.

    >>> ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> low, high = icc_interval(ratings.astype(float))
    >>> round(icc(ratings.astype(float)), 2), round(low, 2), round(high, 2)
    (0.29, 0.02, 0.76)
    """
    from scipy.special import fdtri

    n, k, rows, columns, error = _mean_squares(table)
    value = icc(table)
    if too_few(n) or not np.isfinite(value) or value >= 1 or error <= 0:
        return None
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    freedom = (a * columns + b * error) ** 2 / ((a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1)))
    lower, upper = fdtri(n - 1, freedom, (1 + LEVEL) / 2), fdtri(freedom, n - 1, (1 + LEVEL) / 2)
    others = k * columns + (k * n - k - n) * error
    low = n * (rows - lower * error) / (lower * others + n * rows)
    high = n * (upper * rows - error) / (others + n * upper * rows)
    return (float(low), float(high)) if low <= high else None


def _mean_squares(table: Array) -> tuple[int, int, float, float, float]:
    """Return the number of rows and columns, and the mean squares between rows, between columns and of the error."""
    table = table[~np.isnan(table).any(axis=1)]
    n, k = table.shape
    if n < 2 or k < 2:
        return n, k, np.nan, np.nan, np.nan
    grand = table.mean()
    rows = k * ((table.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    columns = n * ((table.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + grand
    return n, k, float(rows), float(columns), float((residuals**2).sum() / ((n - 1) * (k - 1)))
