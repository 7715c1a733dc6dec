"""Networks that look back, fed one frame at a time: what they say of it before the next one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ethobench.training.sliding import is_convolutional
from ethobench.training.trajectories import Reach

if TYPE_CHECKING:
    from torch import Tensor

    from ethobench.training.trajectory_networks import TrajectoryNetwork

Values = NDArray[np.float32]


class Scorer(Protocol):
    """Takes frames one after the other, and scores each."""

    def push(self, inputs: Values) -> Values:
        """Take the inputs of the next frame, and return its scores."""

    def reset(self) -> None:
        """Forget all frames."""


def live_scorer(network: TrajectoryNetwork, reach: Reach) -> Scorer:
    """Make the fastest scorer that a network allows.

    Parameters
    ----------
    network : TrajectoryNetwork
        Without annotators.
    reach : Reach
        That looks at nothing to come.
    """
    network.eval()
    return LiveConvolutions(network, reach) if is_convolutional(network) else LiveWindows(network, reach)


class LiveWindows:
    """The last frames are kept, and scored anew with every one that comes."""

    def __init__(self, network: TrajectoryNetwork, reach: Reach) -> None:
        import torch

        self.network, self.reach = network, reach
        self._length, self._device = reach.before + 1, network.head.weight.device
        self._n_inputs = _n_inputs(network, reach)
        self._torch = torch
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._kept = np.zeros((2 * self._length, self._n_inputs), dtype=np.float32)
        self._at = 0

    def push(self, inputs: Values) -> Values:
        """Take the inputs of the next frame, and return its scores."""
        # every frame is written twice, a window's length apart, so that the last ones always lie in one piece
        self._kept[self._at] = self._kept[self._at + self._length] = inputs
        self._at = (self._at + 1) % self._length
        window = self._torch.from_numpy(self._kept[self._at : self._at + self._length : self.reach.gap][None])
        with self._torch.inference_mode():
            return np.asarray(self.network(window.to(self._device))[0].cpu().numpy())


class LiveConvolutions:
    """Only what the new frame adds to each layer is computed; what the layers said of the frames before is kept.

    The layers' taps lie as far apart as in `dense_scores`. A value is kept under the first frame that it depends on.
    """

    def __init__(self, network: TrajectoryNetwork, reach: Reach) -> None:
        layers: list[Any] = [layer for layer in network.body.children() if layer.__class__.__name__ in ("Conv1d", "BatchNorm1d")]
        scale, shift = _affine(network.normalize)
        self._scale, self._shift = _array(scale), _array(shift)
        self._weights, self._biases, self._taps, self._apart = [], [], [], []
        apart = reach.gap
        for convolution, norm in zip(layers[::2], layers[1::2], strict=True):
            scale, shift = _affine(norm)
            weight = convolution.weight * scale[:, None, None]
            self._weights.append(_array(weight.transpose(1, 2).flatten(1)))
            self._biases.append(_array(convolution.bias * scale + shift))
            self._taps.append(np.arange(weight.shape[2]) * apart)
            self._apart.append(apart)
            apart *= 2
        channels = len(self._biases[-1])
        head = network.head.weight.reshape(network.head.out_features, channels, -1)
        self._head, self._head_bias = _array(head.transpose(1, 2).flatten(1)), _array(network.head.bias)
        self._read = np.arange(head.shape[2]) * apart - reach.before
        self._length = reach.before + 1
        self.reset()

    def reset(self) -> None:
        """Forget all frames; those before the first are zeros, and the layers hold what they make of them."""
        value, self._time = self._shift, 0
        self._inputs, self._before, self._after = [np.tile(value, (self._length, 1))], [], []
        for weight, bias, taps in zip(self._weights, self._biases, self._taps, strict=True):
            value = np.maximum(weight @ np.tile(value, len(taps)) + bias, 0)
            self._before.append(np.tile(value, (self._length, 1)))
            self._after.append(np.tile(value, (self._length, 1)))
        self._inputs += self._after

    def push(self, inputs: Values) -> Values:
        """Take the inputs of the next frame, and return its scores."""
        length, at = self._length, self._time
        self._inputs[0][at % length] = inputs * self._scale + self._shift
        for layer, (weight, bias, taps) in enumerate(zip(self._weights, self._biases, self._taps, strict=True)):
            at -= int(taps[-1])
            value = np.maximum(weight @ self._inputs[layer][(at + taps) % length].ravel() + bias, 0)
            self._before[layer][at % length] = value
            at -= self._apart[layer]
            self._after[layer][at % length] = np.maximum(self._before[layer][at % length], value)
        scores = self._head @ self._inputs[-1][(self._time + self._read) % length].ravel() + self._head_bias
        self._time += 1
        return np.asarray(scores)


def _affine(norm: Any) -> tuple[Tensor, Tensor]:
    """Return what a normalisation multiplies by, and what it adds."""
    scale = norm.weight / (norm.running_var + norm.eps) ** 0.5
    return scale, norm.bias - norm.running_mean * scale


def _array(tensor: Tensor) -> Values:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)


def _n_inputs(network: TrajectoryNetwork, reach: Reach) -> int:
    """Return how many channels a network takes: as many as it normalises, or so many for each frame."""
    size = next(tensor.numel() for name, tensor in network.normalize.named_buffers() if name.endswith("running_mean"))
    per_frame = sum(1 for _ in network.normalize.children()) > 0  # a network on the flattened window normalises every frame's own
    return size // reach.frames if per_frame else size
