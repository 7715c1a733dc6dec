"""Per-frame features from other tools as inputs of models, beside the signals computed from tags and poses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Recording, Signals
from ethobench.features.filters import resample


def feature_signals(features: Signals) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return per-frame features as rows, of which models compute statistics in windows.

    Parameters
    ----------
    features : Signals
        A recording, or a slice of it.

    Returns
    -------
    values : array (n_features, n_frames)
        NaN where a value is missing.
    names : tuple of str

    Examples
    --------
    >>> values, names = feature_signals(Signals(np.array([[1.0, np.inf]]), ("features/0", "features/1"), 30.0))
    >>> values.tolist(), names
    ([[1.0], [nan]], ('features/0', 'features/1'))
    """
    values = np.ascontiguousarray(np.asarray(features.values, dtype=np.float64).T)
    values[~np.isfinite(values)] = np.nan
    return values, features.channels


def resample_features(recording: Recording, rate: float, n_frames: int) -> Signals | None:
    """Return the per-frame features of a recording at another rate, cut or padded with NaN to a length; None if it has none.

    Parameters
    ----------
    recording : Recording
    rate : float
        Frames per second.
    n_frames : int
        Length of the resampled signals.
    """
    features = recording.features
    if features is None or not features.is_features:
        return None
    values = resample(features.values, float(recording.rate or rate), rate)[:n_frames]
    padded = np.pad(values, ((0, n_frames - len(values)), (0, 0)), constant_values=np.nan)
    return Signals(padded, features.channels, rate)
