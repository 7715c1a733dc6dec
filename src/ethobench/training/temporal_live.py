"""A causal temporal network fed one frame at a time: only what the new frame adds to each layer is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from ethobench.training.temporal import TemporalNetwork

Values = NDArray[np.float32]


class LiveSteps:
    """Scores frames as they come; those between two steps have the scores of the last one.

    Parameters
    ----------
    network : TemporalNetwork
        A causal one.
    """

    def __init__(self, network: TemporalNetwork) -> None:
        network.eval()
        self._stride = network.stride
        self._stem = _Taps(network.stem, network.settle, apart=1)
        self._layers = []
        layers: Any = network.layers
        for layer in layers:
            taps = _Taps(layer.gather, layer.settle, apart=layer.gather.dilation[0])
            self._layers.append((taps, _array(layer.mix.weight[:, :, 0]), _array(layer.mix.bias)))
        self._head, self._head_bias = _array(network.read_out.weight[:, :, 0]), _array(network.read_out.bias)  # type: ignore[arg-type]
        self.reset()

    def reset(self) -> None:
        """Forget all frames; those before the first are zeros to every layer, as in a batch."""
        self._stem.reset()
        for taps, _, _ in self._layers:
            taps.reset()
        self._time, self._scores = 0, np.zeros(len(self._head_bias), dtype=np.float32)

    def push(self, inputs: Values) -> Values:
        """Take the inputs of the next frame, and return its scores."""
        self._stem.keep(inputs)
        if self._time % self._stride == 0:
            value = self._stem.read()
            for taps, mix, bias in self._layers:
                taps.keep(value)
                value = value + mix @ taps.read() + bias
            self._scores = self._head @ value + self._head_bias
        self._time += 1
        return self._scores


class _Taps:
    """A convolution with its normalisation and rectifier, and the values it still needs."""

    def __init__(self, convolution: Any, norm: Any, apart: int) -> None:
        scale = norm.weight / (norm.running_var + norm.eps) ** 0.5
        weight = convolution.weight * scale[:, None, None]
        self._weight = _array(weight.transpose(1, 2).flatten(1))
        self._bias = _array(norm.bias - norm.running_mean * scale)
        self._channels, count = weight.shape[1], weight.shape[2]
        self._length = (count - 1) * apart + 1
        self._places = np.arange(1 - count, 1) * apart
        self.reset()

    def reset(self) -> None:
        self._kept = np.zeros((self._length, self._channels), dtype=np.float32)
        self._at = -1

    def keep(self, value: Values) -> None:
        self._at = (self._at + 1) % self._length
        self._kept[self._at] = value

    def read(self) -> Values:
        window = self._kept[(self._at + self._places) % self._length].ravel()
        return np.asarray(np.maximum(self._weight @ window + self._bias, 0))


def _array(tensor: Tensor) -> Values:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
