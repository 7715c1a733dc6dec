"""What models on wavelets share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethobench.core import Poses, Signals
from ethobench.features.wavelets import wavelet_features
from ethobench.models.frames import Features, FrameModel
from ethobench.models.hyperparameters import hyperparameters

GRID = {"omega": (5.0, 10.0, 20.0), "longest": (1.0, 10.0, 100.0, 1000.0)}


@hyperparameters
class WaveletParams:
    """Hyper-parameters of the features.

    Attributes
    ----------
    omega : float
        About how many waves a wavelet has.
    longest : float
        The longest wavelength in seconds.
    """

    omega: float = 5.0
    longest: float = 10.0


class WaveletModel(FrameModel):
    """Learns from how much each channel resembles waves of several lengths; channels are scaled by the whole recording."""

    Params = WaveletParams

    def features_of(self, data: Signals | Poses, rate: float, usual: Any = None) -> Features:
        """Return the magnitudes of the wavelets."""
        signals = data if isinstance(data, Signals) else data.to_signals()
        found, _ = wavelet_features(signals.values, signals.channels, rate, self.params.omega, self.params.longest, dtype=np.float32)
        return np.asarray(found, dtype=np.float32)
