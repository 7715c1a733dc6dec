"""A recurrent layer in both directions on wavelets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core import Poses, Recording, Signals
from ethobench.models.base import register_model
from ethobench.models.frame_classifiers import WAVELET_GRID
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.inputs import known_signals
from ethobench.models.network import NetworkModel, NetworkParams
from ethobench.training.streams import Stream, open_stream

if TYPE_CHECKING:
    import torch


@hyperparameters
class Params(NetworkParams):
    """Hyper-parameters, beside those of every network.

    Attributes
    ----------
    omega : float
        About how many waves a wavelet has.
    longest : float
        The longest wavelength in seconds.
    """

    learning_rate: float = 0.003
    omega: float = 5.0
    longest: float = 10.0


@register_model("wavelet_rnn")
class WaveletRnn(NetworkModel):
    """BEBE's recurrent network on wavelets."""

    title = "recurrent network on wavelets (BEBE)"
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001), **WAVELET_GRID}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.training.layers import FrameNetwork

        return FrameNetwork(n_inputs, n_outputs, convolutions=0, cell="gru")

    def context(self, rate: float) -> None:
        """Tell that the whole recording decides: channels are scaled by it."""

    def _stream(self, recording: Recording) -> Stream:
        import numpy as np

        from ethobench.features.filters import interpolate_missing
        from ethobench.features.wavelets import wavelet_features

        data = known_signals(recording, self.inputs)
        if isinstance(data, Poses):  # where the tracker lost a keypoint, it is taken to move straight
            plain = data.to_signals()
            data = Signals(interpolate_missing(np.asarray(plain.values, dtype=np.float64))[0], plain.channels, plain.rate)
        rate = self.rate_of(recording)
        values, names = wavelet_features(data.values, data.channels, rate, self.params.omega, self.params.longest, dtype=np.float32)
        return open_stream(Signals(values, names, rate), names, rate, 0.0)
