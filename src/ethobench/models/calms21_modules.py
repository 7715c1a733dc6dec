"""Networks of the CalMS21 (MABe 2021) baselines, with the defaults of Keras.

Importing this module imports torch; the models import it when they build a network.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ethobench.core.errors import EthobenchError
from ethobench.training.windows import WindowSpan

MOMENTUM, EPSILON = 0.99, 1e-3  # of Keras' batch normalization; torch's momentum is 1 - MOMENTUM
POOL = 2
WINDOWS_PER_BATCH = 512  # in prediction


class TrajectoryNetwork(nn.Module):
    """Normalization of the channels of a window, hidden layers, and one linear output layer.

    With several annotators, each has an output layer of its own that is added to the common one and starts at zero. Windows then
    have one more channel for each annotator, the weight of their output layer.

    Parameters
    ----------
    normalize : Module
        Takes (batch, channels, frames).
    body : Module
        The hidden layers.
    n_features : int
        Size of the flattened output of `body`.
    n_outputs : int
    n_annotators : int
        0 for one output layer alone.
    """

    def __init__(self, normalize: nn.Module, body: nn.Module, n_features: int, n_outputs: int, n_annotators: int = 0) -> None:
        super().__init__()
        self.normalize, self.body = normalize, body
        self.head = nn.Linear(n_features, n_outputs)
        self.annotator_heads = nn.Linear(n_features, n_annotators * n_outputs) if n_annotators else None
        self.n_annotators = n_annotators
        self.frozen = False
        self.apply(_initialize)
        if self.annotator_heads is not None:
            nn.init.zeros_(self.annotator_heads.weight)

    def forward(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, channels) to (batch, outputs)."""
        if self.annotator_heads is None:
            return torch.as_tensor(self.head(self.features(windows)))
        channels = windows.shape[2] - self.n_annotators
        features = self.features(windows[..., :channels])
        scores = self.annotator_heads(features).reshape(len(windows), self.n_annotators, -1)
        return torch.as_tensor(self.head(features) + (windows[:, 0, channels:, None] * scores).sum(dim=1))

    def features(self, windows: Tensor) -> Tensor:
        """Map (batch, frames, channels) to (batch, features)."""
        return torch.as_tensor(self.body(self.normalize(windows.transpose(1, 2)))).flatten(1)

    def train(self, mode: bool = True) -> TrajectoryNetwork:
        """Set the training mode; frozen layers stay in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.normalize.eval()
            self.body.eval()
        return self

    def freeze(self, frozen: bool) -> None:
        """Freeze all layers but the output layer, or unfreeze them."""
        self.frozen = frozen
        for layers in (self.normalize, self.body):
            layers.requires_grad_(not frozen)

    def for_annotators(self, weights: Sequence[float]) -> TrajectoryNetwork:
        """Return an equivalent network with a single output layer, for one annotator or a weighted mean of several."""
        network = copy.deepcopy(self)
        if network.annotator_heads is not None:
            weight = torch.tensor(weights, dtype=torch.float32, device=self.head.weight.device)
            with torch.no_grad():
                heads = network.annotator_heads.weight.reshape(self.n_annotators, *self.head.weight.shape)
                network.head.weight.add_(torch.einsum("s,sof->of", weight, heads))
                network.head.bias.add_(weight @ network.annotator_heads.bias.reshape(self.n_annotators, -1))
        network.annotator_heads, network.n_annotators = None, 0
        return network.eval()

    @property
    def is_convolutional(self) -> bool:
        """Whether the hidden layers are only convolutions, their normalization, pooling and dropout."""
        layers = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.MaxPool1d, nn.Dropout)
        is_sequential = isinstance(self.body, nn.Sequential) and isinstance(self.normalize, nn.BatchNorm1d)
        return is_sequential and all(isinstance(layer, layers) for layer in self.body.children())

    def score_frames(self, values: Tensor, span: WindowSpan) -> Tensor:
        """Score every frame from the window around it, by the fastest method that the layers allow.

        Parameters
        ----------
        values : Tensor (n_frames + span.before + span.after, n_channels)
        span : WindowSpan

        Returns
        -------
        Tensor (n_frames, n_outputs)
        """
        return self.score_densely(values[None], span)[0] if self.is_convolutional else self.score_windows(values, span)

    def score_windows(self, values: Tensor, span: WindowSpan) -> Tensor:
        """Score every frame as in `score_frames`, by cutting out each window."""
        n_frames = len(values) - span.before - span.after
        offsets = torch.from_numpy(span.offsets + span.before).to(values.device)
        starts = torch.arange(n_frames, device=values.device)
        return torch.cat([self(values[batch[:, None] + offsets]) for batch in torch.split(starts, WINDOWS_PER_BATCH)])

    def score_densely(self, sequences: Tensor, span: WindowSpan) -> Tensor:
        """Score every frame of sequences in one pass with dilated convolutions; only for convolutional networks.

        Where a window keeps every second value after a pooling, this keeps all of them, since the next window needs the others, and
        doubles the dilation of the following layers. The scores are those of `score_windows`.

        Parameters
        ----------
        sequences : Tensor (n_sequences, n_frames + span.before + span.after, n_channels)
        span : WindowSpan

        Returns
        -------
        Tensor (n_sequences, n_frames, n_outputs)
        """
        n_frames = sequences.shape[1] - span.before - span.after
        dilation = span.stride
        signals: Any = self.normalize(sequences.transpose(1, 2))
        for layer in self.body.children():
            if isinstance(layer, nn.Conv1d):
                signals = nn.functional.conv1d(signals, layer.weight, layer.bias, dilation=dilation)
            elif isinstance(layer, nn.MaxPool1d):
                signals = torch.maximum(signals[..., :-dilation], signals[..., dilation:])
                dilation *= 2
            else:
                signals = layer(signals)
        taps = self.head.in_features // signals.shape[1]
        weight = self.head.weight.reshape(self.head.out_features, signals.shape[1], taps)
        scores = nn.functional.conv1d(signals, weight, self.head.bias, dilation=dilation)
        return torch.as_tensor(scores[..., :n_frames].transpose(1, 2))


class DenseScoring(nn.Module):
    """A convolutional network that scores every frame of the sequences it is given."""

    def __init__(self, network: TrajectoryNetwork, span: WindowSpan) -> None:
        super().__init__()
        self.network, self.span = network, span

    def forward(self, sequences: Tensor) -> Tensor:
        """Map sequences as in `TrajectoryNetwork.score_densely`."""
        return self.network.score_densely(sequences, self.span)


def convolutional(
    frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], kernel: int, dropout: float, n_annotators: int = 0
) -> TrajectoryNetwork:
    """Build convolutions over time, each followed by max pooling (the baselines' "1D CNN")."""
    body, size, length = nn.Sequential(), n_inputs, frames
    for channels in layers:
        body.append(nn.Conv1d(size, channels, kernel))
        body.extend([_batch_norm(channels), nn.ReLU(), nn.MaxPool1d(POOL), nn.Dropout(dropout)])
        size, length = channels, _pooled_length(length - kernel + 1, frames)
    return TrajectoryNetwork(_batch_norm(n_inputs), body, size * length, n_outputs, n_annotators)


def fully_connected(
    frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], dropout: float, n_annotators: int = 0
) -> TrajectoryNetwork:
    """Build fully connected layers on all values of a window."""
    normalize = nn.Sequential(nn.Flatten(), _batch_norm(frames * n_inputs))
    return TrajectoryNetwork(normalize, _dense(frames * n_inputs, layers, dropout), layers[-1], n_outputs, n_annotators)


def recurrent(
    n_inputs: int, n_outputs: int, hidden: int, layers: Sequence[int], dropout: float, n_annotators: int = 0
) -> TrajectoryNetwork:
    """Build an LSTM, and fully connected layers on its last state."""
    body = nn.Sequential(LastState(n_inputs, hidden), _dense(hidden, layers, dropout))
    return TrajectoryNetwork(_batch_norm(n_inputs), body, layers[-1] if layers else hidden, n_outputs, n_annotators)


def attentive(
    frames: int, n_inputs: int, n_outputs: int, layers: Sequence[int], dropout: float, n_annotators: int = 0
) -> TrajectoryNetwork:
    """Build self-attention layers over the frames of a window, each followed by max pooling."""
    body, size, length = nn.Sequential(), n_inputs, frames
    for channels in layers:
        body.append(SelfAttentionLayer(size, channels))
        body.extend([_batch_norm(channels), nn.ReLU(), nn.MaxPool1d(POOL), nn.Dropout(dropout)])
        size, length = channels, _pooled_length(length, frames)
    return TrajectoryNetwork(_batch_norm(n_inputs), body, size * length, n_outputs, n_annotators)


class LastState(nn.Module):
    """The last state of an LSTM."""

    def __init__(self, n_inputs: int, hidden: int) -> None:
        super().__init__()
        self.recur = nn.LSTM(n_inputs, hidden, batch_first=True)

    def forward(self, signals: Tensor) -> Tensor:
        """Map (batch, channels, frames) to (batch, hidden)."""
        return torch.as_tensor(self.recur(signals.transpose(1, 2))[0][:, -1])


class SelfAttentionLayer(nn.Module):
    """Unscaled dot-product attention in which the values are the keys, as in the published code."""

    def __init__(self, n_inputs: int, channels: int) -> None:
        super().__init__()
        self.query = nn.Conv1d(n_inputs, channels, 1)
        self.value = nn.Conv1d(n_inputs, channels, 1)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, signals: Tensor) -> Tensor:
        """Map (batch, inputs, frames) to (batch, channels, frames)."""
        query, value = self.query(signals), self.value(signals)
        weights = (query.transpose(1, 2) @ value).softmax(dim=-1)
        return torch.as_tensor(self.mix(value @ weights.transpose(1, 2)))


def _dense(size: int, layers: Sequence[int], dropout: float) -> nn.Sequential:
    blocks = nn.Sequential()
    for width in layers:
        blocks.extend([nn.Linear(size, width), _batch_norm(width), nn.ReLU(), nn.Dropout(dropout)])
        size = width
    return blocks


def _batch_norm(channels: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(channels, eps=EPSILON, momentum=1 - MOMENTUM)


def _pooled_length(length: int, frames: int) -> int:
    if length < POOL:
        raise EthobenchError(f"a window of {frames} frames is too short for the layers: increase `past` or `future`, or use fewer layers")
    return length // POOL


def _initialize(module: nn.Module) -> None:
    """Initialize as Keras does: Glorot uniform weights, zero biases; an LSTM has a single bias, with ones for the forget gate."""
    if isinstance(module, (nn.Linear, nn.Conv1d)):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LSTM):
        parameters = dict(module.named_parameters())
        nn.init.xavier_uniform_(parameters["weight_ih_l0"])
        nn.init.orthogonal_(parameters["weight_hh_l0"])
        nn.init.zeros_(parameters["bias_ih_l0"])
        nn.init.zeros_(parameters["bias_hh_l0"]).requires_grad_(False)
        nn.init.ones_(parameters["bias_ih_l0"][module.hidden_size : 2 * module.hidden_size])
