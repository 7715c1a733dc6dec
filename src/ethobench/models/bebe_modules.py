"""Networks of the BEBE models. Importing this module imports torch; the models import it when they build a network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ethobench.core.errors import MismatchError
from ethobench.training.weight_files import ENCODER_PREFIX

N_DIRECTIONS = 2
GRU_BLOCK = 32  # steps whose inputs are multiplied at once, so that they stay in the processor's cache
ENCODER_KERNEL = 5
N_AXES = 3
USED_STAGES = 2  # of the encoder in EncodedNetwork


class FrameNetwork(nn.Module):
    """Batch normalization, convolutions, a bidirectional recurrent layer, and one linear output layer for every frame.

    Parameters
    ----------
    n_inputs, n_outputs : int
    convolutions : int
        Number of blocks of a convolution, batch normalization and ReLU.
    cell : {"gru", "lstm"} or None
        The recurrent layer, if any.
    width, kernel, dilation : int
        Of the convolutions.
    hidden : int
        Units of the recurrent layer in each direction.
    pool : int
        Frames that are averaged before the recurrent layer; its output is repeated for all of them.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        *,
        convolutions: int,
        cell: str | None,
        width: int = 64,
        kernel: int = 7,
        dilation: int = 1,
        hidden: int = 64,
        pool: int = 1,
    ) -> None:
        super().__init__()
        self.normalize = nn.BatchNorm1d(n_inputs)
        layers: list[nn.Module] = []
        size = n_inputs
        for _ in range(convolutions):
            layers += [nn.Conv1d(size, width, kernel, dilation=dilation, padding="same", bias=False), nn.BatchNorm1d(width), nn.ReLU()]
            size = width
        self.convolve = nn.Sequential(*layers)
        self.pool = pool
        self.recur: nn.Module | None = None
        if cell is not None:
            self.recur = BidirectionalGru(size, hidden) if cell == "gru" else nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(size if cell is None else 2 * hidden, n_outputs)

    def set_input_statistics(self, mean: NDArray[np.float64], variance: NDArray[np.float64]) -> None:
        """Initialize the running statistics of the input normalization with those of the training data.

        They do not influence the training. After a short one, statistics that start at 0 and 1 would still be far off.
        """
        for buffer, values in ((self.normalize.running_mean, mean), (self.normalize.running_var, variance)):
            if buffer is not None:
                buffer.copy_(torch.from_numpy(values))

    def forward(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, channels) to (batch, frames, outputs)."""
        signals = self.convolve(self.normalize(windows.transpose(1, 2)))
        if self.recur is None:
            return torch.as_tensor(self.head(signals.transpose(1, 2)))
        if self.pool > 1:
            signals = nn.functional.avg_pool1d(signals, self.pool, ceil_mode=True)
        scores = self.head(self.recur(signals.transpose(1, 2))[0])
        return torch.as_tensor(scores if self.pool == 1 else scores.repeat_interleave(self.pool, dim=1)[:, : windows.shape[1]])


class BidirectionalGru(nn.GRU):
    """``torch.nn.GRU`` with one layer, batch first and both directions, about twice as fast to train on a CPU.

    Weights and outputs are those of ``torch.nn.GRU``. Both directions are one batch, and everything that does not depend on the
    previous step is computed for all steps at once: the inputs in the forward pass, the slopes of the gates and the gradients of the
    weights in the backward pass.
    """

    def __init__(self, n_inputs: int, hidden: int) -> None:
        super().__init__(n_inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, windows: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Map (batch, steps, inputs) to (batch, steps, 2 * hidden), and return the last states as well."""
        if start is not None or windows.device.type != "cpu" or windows.dtype != torch.float32:
            return super().forward(windows, start)
        series, parameters, needs_gradient = windows.transpose(0, 1), [*self.parameters()], torch.is_grad_enabled()
        weights = [torch.stack([forward, backward]) for forward, backward in zip(parameters[:4], parameters[4:], strict=True)]
        states = _GruFunction.apply(torch.stack([series, series.flip(0)]), *weights, needs_gradient)  # type: ignore[no-untyped-call]
        return torch.cat([states[0], states[1].flip(0)], dim=-1).transpose(0, 1), states[:, -1]


class _GruFunction(torch.autograd.Function):
    """The states of all steps (directions, steps, batch, hidden), and their gradients.

    A step computes ``r, z = sigmoid(x_rz + h @ w_rz)``, ``n = tanh(x_n + r * (h @ w_n + b_n))``, ``h = n + z * (h - n)``.
    """

    @staticmethod
    def forward(
        ctx: Any, series: Tensor, w_input: Tensor, w_state: Tensor, b_input: Tensor, b_state: Tensor, needs_gradient: bool
    ) -> Tensor:
        _, steps, batch, _ = series.shape
        hidden = w_state.shape[2]
        gates, rest = slice(2 * hidden), slice(2 * hidden, None)
        x_rz, x_n, w_rz, w_n = (w[:, rows].transpose(1, 2).contiguous() for w in (w_input, w_state) for rows in (gates, rest))
        b_rz, b_x = (b_input + b_state)[:, None, gates], b_input[:, None, rest]
        b_n = b_state[:, None, rest].expand(-1, batch, -1).contiguous()
        kept = steps if needs_gradient else min(steps, GRU_BLOCK)
        rz = series.new_empty(N_DIRECTIONS, kept, batch, 2 * hidden)
        n, inner = (series.new_empty(N_DIRECTIONS, kept, batch, hidden) for _ in range(2))
        states = series.new_empty(N_DIRECTIONS, steps + 1, batch, hidden)
        h = states[:, 0].zero_()
        for block in _blocks(steps):
            kept_block = block if needs_gradient else slice(block.stop - block.start)
            inputs, block_rz, block_n = series[:, block].flatten(1, 2), rz[:, kept_block], n[:, kept_block]
            torch.baddbmm(b_rz, inputs, x_rz, out=block_rz.flatten(1, 2))
            torch.baddbmm(b_x, inputs, x_n, out=block_n.flatten(1, 2))
            tensors = (
                block_rz,
                block_rz[..., :hidden],
                block_rz[..., hidden:],
                block_n,
                inner[:, kept_block],
                states[:, 1:][:, block],
            )
            for rz_t, r_t, z_t, n_t, inner_t, h_t in zip(*(tensor.unbind(1) for tensor in tensors), strict=True):
                rz_t.baddbmm_(h, w_rz).sigmoid_()
                torch.baddbmm(b_n, h, w_n, out=inner_t)
                n_t.addcmul_(r_t, inner_t).tanh_()
                h = torch.lerp(n_t, h, z_t, out=h_t)
        if needs_gradient:
            ctx.save_for_backward(series, w_input, w_state, rz, n, inner, states)
        return states[:, 1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        series, w_input, w_state, rz, n, inner, states = ctx.saved_tensors
        steps, hidden = n.shape[1], n.shape[3]
        carried = torch.zeros_like(n[:, 0])
        d_series = torch.empty_like(series)
        d_w_input, d_w_state = torch.zeros_like(w_input), torch.zeros_like(w_state)
        d_b_input, d_b_state = (series.new_zeros(N_DIRECTIONS, 3 * hidden) for _ in range(2))
        for block in reversed([*_blocks(steps)]):
            r, z = rz[:, block, :, :hidden], rz[:, block, :, hidden:].contiguous()
            block_n, previous = n[:, block], states[:, block]
            into_n = (1 - z) * (1 - block_n * block_n)
            slopes = series.new_empty(*z.shape[:3], 3, hidden)
            slopes[..., 0, :] = into_n * inner[:, block] * r * (1 - r)
            slopes[..., 1, :] = (previous - block_n) * z * (1 - z)
            slopes[..., 2, :] = into_n * r
            into_state, flow = slopes.flatten(3), torch.empty_like(z)
            tensors = (gradients[0][:, block], flow, flow[:, :, :, None], slopes, into_state, z)
            unbound = zip(*(tensor.unbind(1) for tensor in tensors), strict=True)
            for gradient_t, flow_t, wide_t, slopes_t, into_t, z_t in reversed([*unbound]):
                torch.add(gradient_t, carried, out=flow_t)
                slopes_t.mul_(wide_t)
                torch.mul(flow_t, z_t, out=carried).baddbmm_(into_t, w_state)
            into_input = into_state.clone()
            into_input[..., 2 * hidden :] = flow.mul_(into_n)
            torch.bmm(into_input.flatten(1, 2), w_input, out=d_series[:, block].flatten(1, 2))
            for into, source, d_weights, d_bias in (
                (into_input, series[:, block], d_w_input, d_b_input),
                (into_state, previous, d_w_state, d_b_state),
            ):
                d_weights.baddbmm_(into.flatten(1, 2).transpose(1, 2), source.flatten(1, 2))
                d_bias.add_(into.flatten(1, 2).sum(dim=1))
        return d_series, d_w_input, d_w_state, d_b_input, d_b_state, None


def _blocks(steps: int) -> Iterator[slice]:
    """Yield blocks of `GRU_BLOCK` steps."""
    for start in range(0, steps, GRU_BLOCK):
        yield slice(start, min(start + GRU_BLOCK, steps))


class Stage(NamedTuple):
    """One stage of an encoder: number of channels, number of residual blocks, downsampling factor, order of its smoothing filter."""

    width: int
    blocks: int
    factor: int
    order: int


STAGES = {
    "harnet5": (Stage(64, 2, 2, 2), Stage(128, 2, 2, 2), Stage(256, 2, 3, 1), Stage(256, 2, 3, 1), Stage(512, 0, 3, 1)),
    "harnet10": (Stage(64, 2, 2, 2), Stage(128, 2, 2, 2), Stage(256, 2, 5, 1), Stage(512, 2, 5, 1), Stage(1024, 0, 3, 1)),
    "harnet30": (Stage(64, 2, 3, 1), Stage(128, 2, 3, 1), Stage(256, 2, 5, 1), Stage(512, 2, 5, 1), Stage(1024, 0, 4, 0)),
    "small": (Stage(64, 2, 3, 1), Stage(64, 2, 3, 1), Stage(128, 2, 5, 1), Stage(128, 2, 5, 1), Stage(256, 2, 4, 0)),
}
"""Stages of each encoder: those of the published harnets, and of a small one."""


class ResidualBlock(nn.Module):
    """Two convolutions, each after batch normalization and ReLU, added to the input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.conv1, self.conv2 = _convolution(width, width), _convolution(width, width)

    def forward(self, signals: Tensor) -> Tensor:
        """Keep the shape (batch, width, frames)."""
        inner = self.conv1(torch.relu(self.bn1(signals)))
        return signals + torch.as_tensor(self.conv2(torch.relu(self.bn2(inner))))


class Downsample(nn.Module):
    """Every n-th frame of a signal after smoothing with a box filter, convolved with itself `order` times against aliasing."""

    kernel: Tensor

    def __init__(self, width: int, factor: int, order: int) -> None:
        super().__init__()
        box = smooth = np.ones(factor)
        for _ in range(order):
            smooth = np.convolve(smooth, box)
        self.factor, self.padding = factor, order * (factor - 1) // 2
        self.register_buffer("kernel", torch.tensor(smooth / smooth.sum(), dtype=torch.float32).expand(width, 1, -1).clone())

    def forward(self, signals: Tensor) -> Tensor:
        """Downsample (batch, width, frames)."""
        return nn.functional.conv1d(signals, self.kernel, stride=self.factor, padding=self.padding, groups=len(self.kernel))


class Encoder(nn.Module):
    """A stack of stages over three axes; parameters have the names of the published checkpoints.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    stages : int, optional
        Number of stages; all by default.
    """

    def __init__(self, config: str, stages: int | None = None) -> None:
        super().__init__()
        layers, inputs = OrderedDict[str, nn.Module](), N_AXES
        for number, stage in enumerate(STAGES[config][:stages], start=1):
            blocks = [ResidualBlock(stage.width) for _ in range(stage.blocks)]
            layers[f"layer{number}"] = nn.Sequential(
                _convolution(inputs, stage.width),
                *blocks,
                nn.BatchNorm1d(stage.width),
                nn.ReLU(),
                Downsample(stage.width, stage.factor, stage.order),
            )
            inputs = stage.width
        self.feature_extractor = nn.Sequential(layers)
        self.width = inputs
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, signals: Tensor) -> Tensor:
        """Map (batch, 3, frames) to (batch, width, fewer frames)."""
        return torch.as_tensor(self.feature_extractor(signals))

    def load(self, tensors: Mapping[str, Tensor], source: str) -> None:
        """Load the weights of another encoder; stages that this one lacks are skipped.

        Parameters
        ----------
        tensors : mapping of str to Tensor
            By the names of the published checkpoints, with any prefix before ``feature_extractor.``.
        source : str
            Origin of the weights, for error messages.
        """
        weights = {ENCODER_PREFIX + name.partition(ENCODER_PREFIX)[2]: tensor for name, tensor in tensors.items() if ENCODER_PREFIX in name}
        expected = self.state_dict()
        missing = [name for name in expected if name not in weights]
        if missing:
            raise MismatchError(f"{source} lacks {missing[0]} and {len(missing) - 1} other weights of the encoder: check `config`")
        for name, tensor in expected.items():
            if tensor.shape != weights[name].shape:
                shapes = f"{tuple(weights[name].shape)}, but the encoder needs {tuple(tensor.shape)}"
                raise MismatchError(f"{source} does not fit: {name} has shape {shapes}; check `config`")
        self.load_state_dict({name: weights[name] for name in expected})


class PretextNetwork(nn.Module):
    """An encoder with a pair of scores for every pretext task.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    tasks : sequence of str
    """

    def __init__(self, config: str, tasks: Sequence[str]) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict({task: nn.Linear(self.encoder.width, 2) for task in tasks})

    def forward(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, 3) to (batch, tasks, 2)."""
        features = self.encoder(windows.transpose(1, 2)).mean(dim=-1)
        return torch.stack([head(features) for head in self.heads.values()], dim=1)


class EncodedNetwork(nn.Module):
    """The first stages of an encoder over every three axes, upsampled to every frame, then a recurrent layer and a linear output layer.

    Parameters
    ----------
    config : str
        A name in `STAGES`.
    triples : sequence of sequences of int
        The channels of each three axes; other channels are direct inputs of the recurrent layer.
    n_inputs, n_outputs : int
    frozen : bool
        Do not train the encoder, nor update its batch normalization.
    hidden : int
        Units of the recurrent layer in each direction.
    """

    def __init__(
        self, config: str, triples: Sequence[Sequence[int]], n_inputs: int, n_outputs: int, *, frozen: bool, hidden: int = 64
    ) -> None:
        super().__init__()
        self.encoder, self.frozen = Encoder(config, USED_STAGES), frozen
        self.encoder.requires_grad_(not frozen)
        self.triples = [list(channels) for channels in triples]
        self.others = [channel for channel in range(n_inputs) if not any(channel in channels for channels in self.triples)]
        size = self.encoder.width * len(self.triples) + len(self.others)
        self.recur = BidirectionalGru(size, hidden)
        self.head = nn.Linear(2 * hidden, n_outputs)

    def train(self, mode: bool = True) -> EncodedNetwork:
        """Set the training mode; a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def forward(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, channels) to (batch, frames, outputs)."""
        count, frames, _ = windows.shape
        features = [windows[:, :, self.others]]
        if self.triples:
            axes = windows[:, :, self.triples].permute(0, 2, 3, 1).flatten(0, 1)
            upsampled = nn.functional.interpolate(self.encoder(axes), size=frames)
            features.insert(0, upsampled.reshape(count, -1, frames).transpose(1, 2))
        states, _ = self.recur(torch.cat(features, dim=-1))
        return torch.as_tensor(self.head(states))


def _convolution(inputs: int, outputs: int) -> nn.Conv1d:
    return nn.Conv1d(inputs, outputs, ENCODER_KERNEL, padding=ENCODER_KERNEL // 2, padding_mode="circular", bias=False)
