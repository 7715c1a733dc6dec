"""The networks of the MABe 2021 baselines, with Keras' defaults. Needs torch, so it is imported only where a network is built."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ethobench.core.errors import EthobenchError
from ethobench.training.sliding import stretch_scores
from ethobench.training.trajectories import Reach

KEEP, EPSILON = 0.99, 1e-3  # Keras' batch normalisation; torch counts the share that is new
POOL = 2


class TrajectoryNetwork(nn.Module):
    """Channels of a window, normalised, then a body, then one linear read-out.

    With several annotators each has a read-out of its own on top of the common one, which begins at nothing: at first all are
    the same. Windows then carry one channel more for each annotator, the share of their read-out.

    Parameters
    ----------
    normalize : Module
        Takes (batch, channels, frames).
    body : Module
        Takes what `normalize` gives.
    n_features : int
        What is left of a window after the body, in numbers.
    n_outputs : int
    styles : int
        How many annotators; 0 for no difference between them.
    """

    def __init__(self, normalize: nn.Module, body: nn.Module, n_features: int, n_outputs: int, styles: int = 0) -> None:
        super().__init__()
        self.normalize, self.body = normalize, body
        self.head = nn.Linear(n_features, n_outputs)
        self.styles = nn.Linear(n_features, styles * n_outputs) if styles else None
        self.n_styles = styles
        self.frozen = False
        self.apply(_initialize)
        if self.styles is not None:
            nn.init.zeros_(self.styles.weight)

    def forward(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, channels) into (batch, outputs)."""
        if self.styles is None:
            return torch.as_tensor(self.head(self.features(windows)))
        channels = windows.shape[2] - self.n_styles
        features = self.features(windows[..., :channels])
        own = self.styles(features).reshape(len(windows), self.n_styles, -1)
        return torch.as_tensor(self.head(features) + (windows[:, 0, channels:, None] * own).sum(dim=1))

    def features(self, windows: Tensor) -> Tensor:
        """Turn (batch, frames, channels) into (batch, features)."""
        return torch.as_tensor(self.body(self.normalize(windows.transpose(1, 2)))).flatten(1)

    def train(self, mode: bool = True) -> TrajectoryNetwork:
        """Switch between learning and telling; a frozen body only tells."""
        super().train(mode)
        if self.frozen:
            self.normalize.eval()
            self.body.eval()
        return self

    def freeze(self, frozen: bool) -> None:
        """Let nothing but the read-out learn, or everything."""
        self.frozen = frozen
        for part in (self.normalize, self.body):
            part.requires_grad_(not frozen)

    def of_style(self, shares: Sequence[float]) -> TrajectoryNetwork:
        """Return the network of one annotator, or of a mixture of them, as one that knows no annotators."""
        network = copy.deepcopy(self)
        if network.styles is not None:
            share = torch.tensor(shares, dtype=torch.float32, device=self.head.weight.device)
            with torch.no_grad():
                own = network.styles.weight.reshape(self.n_styles, *self.head.weight.shape)
                network.head.weight.add_(torch.einsum("s,sof->of", share, own))
                network.head.bias.add_(share @ network.styles.bias.reshape(self.n_styles, -1))
        network.styles, network.n_styles = None, 0
        return network.eval()


class StretchNetwork(nn.Module):
    """A convolutional network that is handed stretches, and scores every frame of them."""

    def __init__(self, network: TrajectoryNetwork, reach: Reach) -> None:
        super().__init__()
        self.network, self.reach = network, reach

    def forward(self, stretches: Tensor) -> Tensor:
        """Turn (stretches, frames and what windows reach beyond them, channels) into (stretches, frames, outputs)."""
        return stretch_scores(self.network, stretches, self.reach)


def convolutional(
    frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], kernel: int, dropout: float, styles: int = 0
) -> TrajectoryNetwork:
    """Build convolutions over time, each followed by max pooling: what the baselines call 1D CNN."""
    body, size, left = nn.Sequential(), n_inputs, frames
    for channels in layers:
        body.append(nn.Conv1d(size, channels, kernel))
        body.extend([_norm(channels), nn.ReLU(), nn.MaxPool1d(POOL), nn.Dropout(dropout)])
        size, left = channels, _after(left - kernel + 1, frames)
    return TrajectoryNetwork(_norm(n_inputs), body, size * left, n_outputs, styles)


def fully_connected(
    frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], dropout: float, styles: int = 0
) -> TrajectoryNetwork:
    """Build fully connected layers on all numbers of a window at once."""
    normalize = nn.Sequential(nn.Flatten(), _norm(frames * n_inputs))
    return TrajectoryNetwork(normalize, _dense(frames * n_inputs, layers, dropout), layers[-1], n_outputs, styles)


def recurrent(n_inputs: int, n_outputs: int, hidden: int, layers: Sequence[int], dropout: float, styles: int = 0) -> TrajectoryNetwork:
    """Build an LSTM whose last state fully connected layers read."""
    body = nn.Sequential(LastState(n_inputs, hidden), _dense(hidden, layers, dropout))
    return TrajectoryNetwork(_norm(n_inputs), body, layers[-1] if layers else hidden, n_outputs, styles)


def attentive(frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], dropout: float, styles: int = 0) -> TrajectoryNetwork:
    """Build layers in which every frame of a window attends to all, each followed by max pooling."""
    body, size, left = nn.Sequential(), n_inputs, frames
    for channels in layers:
        body.append(Attention(size, channels))
        body.extend([_norm(channels), nn.ReLU(), nn.MaxPool1d(POOL), nn.Dropout(dropout)])
        size, left = channels, _after(left, frames)
    return TrajectoryNetwork(_norm(n_inputs), body, size * left, n_outputs, styles)


class LastState(nn.Module):
    """An LSTM of which only the last state is kept."""

    def __init__(self, n_inputs: int, hidden: int) -> None:
        super().__init__()
        self.recur = nn.LSTM(n_inputs, hidden, batch_first=True)

    def forward(self, signals: Tensor) -> Tensor:
        """Turn (batch, channels, frames) into (batch, hidden)."""
        return torch.as_tensor(self.recur(signals.transpose(1, 2))[0][:, -1])


class Attention(nn.Module):
    """Dot products that are not scaled, of queries with keys that are the values too, as in the published code."""

    def __init__(self, n_inputs: int, channels: int) -> None:
        super().__init__()
        self.query = nn.Conv1d(n_inputs, channels, 1)
        self.value = nn.Conv1d(n_inputs, channels, 1)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, signals: Tensor) -> Tensor:
        """Turn (batch, channels, frames) into the same, with other channels."""
        query, value = self.query(signals), self.value(signals)
        weights = (query.transpose(1, 2) @ value).softmax(dim=-1)
        return torch.as_tensor(self.mix(value @ weights.transpose(1, 2)))


def _dense(size: int, layers: Sequence[int], dropout: float) -> nn.Sequential:
    blocks = nn.Sequential()
    for width in layers:
        blocks.extend([nn.Linear(size, width), _norm(width), nn.ReLU(), nn.Dropout(dropout)])
        size = width
    return blocks


def _norm(channels: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(channels, eps=EPSILON, momentum=1 - KEEP)


def _after(left: int, frames: int) -> int:
    if left < POOL:
        raise EthobenchError(f"a window of {frames} frames is too short for so many layers: give more past or future, or fewer layers")
    return left // POOL


def _initialize(module: nn.Module) -> None:
    """Begin where Keras does: Glorot's uniform weights, no biases; an LSTM remembers, and has one bias, not two."""
    if isinstance(module, (nn.Linear, nn.Conv1d)):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LSTM):
        own = dict(module.named_parameters())
        nn.init.xavier_uniform_(own["weight_ih_l0"])
        nn.init.orthogonal_(own["weight_hh_l0"])
        nn.init.zeros_(own["bias_ih_l0"])
        nn.init.zeros_(own["bias_hh_l0"]).requires_grad_(False)
        nn.init.ones_(own["bias_ih_l0"][module.hidden_size : 2 * module.hidden_size])
