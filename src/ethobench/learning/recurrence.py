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
        series, parameters = windows.transpose(0, 1), [*self.parameters()]
        weights = [torch.stack([own, turned]) for own, turned in zip(parameters[:4], parameters[4:], strict=True)]
        learning = torch.is_grad_enabled()
        states = _Recurrence.apply(torch.stack([series, series.flip(0)], dim=1), *weights, learning)  # type: ignore[no-untyped-call]
        return torch.cat([states[:, 0], states[:, 1].flip(0)], dim=-1).transpose(0, 1), states[-1]


class _Recurrence(torch.autograd.Function):
    """The states of all steps (steps, directions, batch, hidden), and how errors flow back through them.

    A step does ``r, z = sigmoid(x_rz + h @ w_rz)``, ``n = tanh(x_n + r * (h @ w_n + b_n))``, ``h = n + z * (h - n)``.
    """

    @staticmethod
    def forward(ctx: Any, series: Tensor, w_input: Tensor, w_state: Tensor, b_input: Tensor, b_state: Tensor, learning: bool) -> Tensor:
        steps, _, batch, _ = series.shape
        hidden = w_state.shape[2]
        x_rz, x_n = (w_input[:, part].transpose(1, 2) for part in (slice(2 * hidden), slice(2 * hidden, None)))
        w_rz, w_n = (w_state[:, part].transpose(1, 2).contiguous() for part in (slice(2 * hidden), slice(2 * hidden, None)))
        b_rz, b_x = (b_input + b_state)[:, None, : 2 * hidden], b_input[:, None, 2 * hidden :]
        b_n = b_state[:, None, 2 * hidden :].expand(-1, batch, -1).contiguous()
        shape = (DIRECTIONS, batch, hidden)
        kept = steps if learning else min(steps, BLOCK)
        rz, n, inner = series.new_empty(kept, *shape[:2], 2 * hidden), series.new_empty(kept, *shape), series.new_empty(kept, *shape)
        states = series.new_empty(steps + 1, *shape)
        h = states[0].zero_()
        for block in _blocks(steps):
            place = block if learning else slice(block.stop - block.start)
            own_rz = torch.matmul(series[block], x_rz, out=rz[place]).add_(b_rz)
            own_n = torch.matmul(series[block], x_n, out=n[place]).add_(b_x)
            r, z = own_rz[..., :hidden].unbind(), own_rz[..., hidden:].unbind()
            for k, (rz_t, n_t, inner_t, h_t) in enumerate(zip(own_rz, own_n, inner[place], states[1:][block], strict=True)):
                rz_t.baddbmm_(h, w_rz).sigmoid_()
                torch.baddbmm(b_n, h, w_n, out=inner_t)
                n_t.addcmul_(r[k], inner_t).tanh_()
                h = torch.lerp(n_t, h, z[k], out=h_t)
        if learning:
            ctx.save_for_backward(series, w_input, w_state, rz, n, inner, states)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *errors: Tensor) -> Any:
        series, w_input, w_state, rz, n, inner, states = ctx.saved_tensors
        steps, _, batch, hidden = n.shape
        back = torch.zeros_like(n[0])
        to_series = torch.empty_like(series)
        to_w_input, to_w_state = torch.zeros_like(w_input), torch.zeros_like(w_state)
        to_b_input, to_b_state = (series.new_zeros(DIRECTIONS, 3 * hidden) for _ in range(2))
        for block in reversed([*_blocks(steps)]):
            r, z = rz[block][..., :hidden], rz[block][..., hidden:].contiguous()
            own_n, before = n[block], states[:-1][block]
            into_n = (1 - z) * (1 - own_n * own_n)
            slopes = series.new_empty(len(z), DIRECTIONS, batch, 3, hidden)
            slopes[..., 0, :] = into_n * inner[block] * r * (1 - r)
            slopes[..., 1, :] = (before - own_n) * z * (1 - z)
            slopes[..., 2, :] = into_n * r
            into_state = slopes.view(len(z), DIRECTIONS, batch, 3 * hidden)
            own_errors, flow = errors[0][block], torch.empty_like(z)
            for k in reversed(range(len(z))):
                flow_t = torch.add(own_errors[k], back, out=flow[k])
                slopes[k].mul_(flow_t[:, :, None])
                back = torch.mul(flow_t, z[k], out=back).baddbmm_(into_state[k], w_state)
            into_input = into_state.clone()
            into_input[..., 2 * hidden :] = flow.mul_(into_n)
            torch.matmul(into_input, w_input, out=to_series[block])
            for into, came, weights, bias in (
                (into_input, series[block], to_w_input, to_b_input),
                (into_state, before, to_w_state, to_b_state),
            ):
                flat, from_where = (part.transpose(0, 1).reshape(DIRECTIONS, len(z) * batch, -1) for part in (into, came))
                weights.baddbmm_(flat.transpose(1, 2), from_where)
                bias.add_(flat.sum(dim=1))
        return to_series, to_w_input, to_w_state, to_b_input, to_b_state, None


def _blocks(steps: int) -> Iterator[slice]:
    """Yield as many steps at a time as stay near the processor."""
    for start in range(0, steps, BLOCK):
        yield slice(start, min(start + BLOCK, steps))
