"""A gated recurrent layer in both directions that learns about twice as fast on a processor, with the same weights and outputs.

Both directions are one batch, and what does not wait for the step before is done for all steps at once: the inputs before, the slopes
of the gates and the weights' gradients after. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

DIRECTIONS = 2
BLOCK = 32


class Gru(nn.GRU):
    """``torch.nn.GRU`` with one layer, batches first and both directions."""

    def __init__(self, n_inputs: int, hidden: int) -> None:
        super().__init__(n_inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, windows: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Turn (batch, steps, inputs) into (batch, steps, 2 * hidden), and return the last states as well."""
        if start is not None or windows.device.type != "cpu" or windows.dtype != torch.float32:
            return super().forward(windows, start)
        series, parameters, learning = windows.transpose(0, 1), [*self.parameters()], torch.is_grad_enabled()
        weights = [torch.stack([own, turned]) for own, turned in zip(parameters[:4], parameters[4:], strict=True)]
        states = _Recurrence.apply(torch.stack([series, series.flip(0)]), *weights, learning)  # type: ignore[no-untyped-call]
        return torch.cat([states[0], states[1].flip(0)], dim=-1).transpose(0, 1), states[:, -1]


class _Recurrence(torch.autograd.Function):
    """The states of all steps (directions, steps, batch, hidden), and how errors flow back through them.

    A step does ``r, z = sigmoid(x_rz + h @ w_rz)``, ``n = tanh(x_n + r * (h @ w_n + b_n))``, ``h = n + z * (h - n)``.
    """

    @staticmethod
    def forward(ctx: Any, series: Tensor, w_input: Tensor, w_state: Tensor, b_input: Tensor, b_state: Tensor, learning: bool) -> Tensor:
        _, steps, batch, _ = series.shape
        hidden = w_state.shape[2]
        gates, rest = slice(2 * hidden), slice(2 * hidden, None)
        x_rz, x_n, w_rz, w_n = (w[:, part].transpose(1, 2).contiguous() for w in (w_input, w_state) for part in (gates, rest))
        b_rz, b_x = (b_input + b_state)[:, None, gates], b_input[:, None, rest]
        b_n = b_state[:, None, rest].expand(-1, batch, -1).contiguous()
        kept = steps if learning else min(steps, BLOCK)
        rz = series.new_empty(DIRECTIONS, kept, batch, 2 * hidden)
        n, inner = (series.new_empty(DIRECTIONS, kept, batch, hidden) for _ in range(2))
        states = series.new_empty(DIRECTIONS, steps + 1, batch, hidden)
        h = states[:, 0].zero_()
        for block in _blocks(steps):
            place = block if learning else slice(block.stop - block.start)
            inputs, own_rz, own_n = series[:, block].flatten(1, 2), rz[:, place], n[:, place]
            torch.baddbmm(b_rz, inputs, x_rz, out=own_rz.flatten(1, 2))
            torch.baddbmm(b_x, inputs, x_n, out=own_n.flatten(1, 2))
            parts = (own_rz, own_rz[..., :hidden], own_rz[..., hidden:], own_n, inner[:, place], states[:, 1:][:, block])
            for rz_t, r_t, z_t, n_t, inner_t, h_t in zip(*(part.unbind(1) for part in parts), strict=True):
                rz_t.baddbmm_(h, w_rz).sigmoid_()
                torch.baddbmm(b_n, h, w_n, out=inner_t)
                n_t.addcmul_(r_t, inner_t).tanh_()
                h = torch.lerp(n_t, h, z_t, out=h_t)
        if learning:
            ctx.save_for_backward(series, w_input, w_state, rz, n, inner, states)
        return states[:, 1:]

    @staticmethod
    def backward(ctx: Any, *errors: Tensor) -> Any:
        series, w_input, w_state, rz, n, inner, states = ctx.saved_tensors
        steps, hidden = n.shape[1], n.shape[3]
        back = torch.zeros_like(n[:, 0])
        to_series = torch.empty_like(series)
        to_w_input, to_w_state = torch.zeros_like(w_input), torch.zeros_like(w_state)
        to_b_input, to_b_state = (series.new_zeros(DIRECTIONS, 3 * hidden) for _ in range(2))
        for block in reversed([*_blocks(steps)]):
            r, z = rz[:, block, :, :hidden], rz[:, block, :, hidden:].contiguous()
            own_n, before = n[:, block], states[:, block]
            into_n = (1 - z) * (1 - own_n * own_n)
            slopes = series.new_empty(*z.shape[:3], 3, hidden)
            slopes[..., 0, :] = into_n * inner[:, block] * r * (1 - r)
            slopes[..., 1, :] = (before - own_n) * z * (1 - z)
            slopes[..., 2, :] = into_n * r
            into_state, flow = slopes.flatten(3), torch.empty_like(z)
            parts = (errors[0][:, block], flow, flow[:, :, :, None], slopes, into_state, z)
            for error_t, flow_t, wide_t, slopes_t, into_t, z_t in reversed([*zip(*(part.unbind(1) for part in parts), strict=True)]):
                torch.add(error_t, back, out=flow_t)
                slopes_t.mul_(wide_t)
                torch.mul(flow_t, z_t, out=back).baddbmm_(into_t, w_state)
            into_input = into_state.clone()
            into_input[..., 2 * hidden :] = flow.mul_(into_n)
            torch.bmm(into_input.flatten(1, 2), w_input, out=to_series[:, block].flatten(1, 2))
            for into, came, weights, bias in (
                (into_input, series[:, block], to_w_input, to_b_input),
                (into_state, before, to_w_state, to_b_state),
            ):
                weights.baddbmm_(into.flatten(1, 2).transpose(1, 2), came.flatten(1, 2))
                bias.add_(into.flatten(1, 2).sum(dim=1))
        return to_series, to_w_input, to_w_state, to_b_input, to_b_state, None


def _blocks(steps: int) -> Iterator[slice]:
    """Yield as many steps at a time as stay near the processor."""
    for start in range(0, steps, BLOCK):
        yield slice(start, min(start + BLOCK, steps))
