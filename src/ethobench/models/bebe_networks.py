"""The networks of BEBE: `cnn`, `crnn`, `rnn`, `wavelet_rnn` and `harnet`. They predict sequences from windows of channels.

Reference: Hoffman et al., "A benchmark for computational analysis of animal behavior, using animal-borne tags", Movement Ecology 2024.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ethobench.core import Annotation, Dataset, Poses, Prediction, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, ParameterError
from ethobench.core.folds import assign_folds, default_grouping
from ethobench.features.filters import axis_triples, interpolate_missing
from ethobench.features.wavelets import wavelet_features
from ethobench.models.adapt import has_rate, restore_rate
from ethobench.models.hyperparameters import Count, hyperparameters
from ethobench.models.inputs import select_inputs
from ethobench.models.network_base import LearningRate, NetworkModel
from ethobench.models.pieces import join_pieces
from ethobench.models.registry import register_model
from ethobench.training.channel_inputs import ChannelReader, acceleration_factors, open_channels
from ethobench.training.inference import predict_windows
from ethobench.training.loop import TrainingSettings
from ethobench.training.losses import class_weights, exclusive_loss, overlapping_loss
from ethobench.training.weight_files import CHECKPOINTS_URL, ENCODER_FRAMES, read_encoder
from ethobench.training.windows import WindowSampler, sample_sequences

if TYPE_CHECKING:
    import torch

    from ethobench.models.bebe_modules import EncodedNetwork

PIECE_FRAMES = 1 << 18  # frames that are annotated at a time
MAX_WINDOW = 10_000_000  # frames; a damaged file could otherwise request any amount of memory
PUBLISHED_WINDOW = 2048  # frames
LEARNING_RATES = (0.01, 0.003, 0.001)
CONVOLUTION_GRID = {"learning_rate": LEARNING_RATES, "dilation": (1, 3, 5), "cutoff": (0.0, 0.1, 0.4, 1.6, 6.4)}


@hyperparameters
class BebeParams:
    """Hyper-parameters of all networks of BEBE.

    Attributes
    ----------
    learning_rate : float
        Initial learning rate; it falls along a half cosine.
    cutoff : float
        Split accelerations into a low-pass and a high-pass part at this frequency (Hz); 0 does not split them.
    window : int, optional
        Frames of a window. By default the published length, or half the median recording if that is shorter.
    epochs : int
    batch : int
        Windows of a batch.
    patience : int, optional
        Hold out a fifth of the individuals, and stop after this many epochs without a lower loss on them.
    """

    learning_rate: LearningRate = 0.003
    cutoff: Annotated[float, Field(ge=0)] = 0.0
    window: Count | None = None
    epochs: Count = 100
    batch: Count = 32
    patience: Count | None = None


class BebeNetwork(NetworkModel):
    """A network that maps windows of channels (batch, frames, inputs) to scores of every frame (batch, frames, outputs).

    Attributes
    ----------
    window : int
        Frames of a window.
    """

    Params = BebeParams
    published_window = PUBLISHED_WINDOW
    window: int
    _n_inputs: int

    @property
    def n_inputs(self) -> int:
        """Number of channels that the network reads."""
        return self._n_inputs

    def _initialize(self, sampler: WindowSampler) -> None:
        """Initialize the network from the training data or from pre-trained weights."""
        self.module.set_input_statistics(*sampler.recordings.statistics())

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        readers = {recording.id: self.read_channels(recording) for recording in data}
        median_length = int(np.median([len(reader) for reader in readers.values()]))
        self.window = self.params.window or max(min(self.published_window, median_length // 2), 1)
        held_out = self._held_out(data)
        sampler = self.sample_windows({name: reader for name, reader in readers.items() if name not in held_out}, truths)
        self._n_inputs = sampler.recordings.values.shape[1]
        self.module = self._build_seeded()
        self._initialize(sampler)
        weights = class_weights(sampler.recordings.targets, self.n_outputs, "inverse") if self.exclusive else None
        self.histories = []
        self._train(
            sampler,
            overlapping_loss() if weights is None else exclusive_loss(weights),
            TrainingSettings(self.params.epochs, self.params.learning_rate, patience=self.params.patience, seed=self.seed),
            identity={"data": sampler.recordings.checksum, "window": self.window},
            validation=self.sample_windows({name: readers[name] for name in held_out}, truths) if held_out else None,
        )
        if self.params.patience is None:
            self.note_epochs(len(self.history.losses), self.params.epochs)

    def _held_out(self, data: Dataset) -> list[str]:
        """Return the recordings for early stopping."""
        folds = {} if self.params.patience is None else assign_folds(data, by=default_grouping(data))
        return [name for name, fold in folds.items() if fold == 0]

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        reader = self._open(recording)
        probabilities = predict_windows(self.module, reader, self.window, exclusive=self.exclusive)
        prediction = Prediction(probabilities, ethogram, reader.rate, exclusive=self.exclusive)
        return prediction if has_rate(recording, reader.rate) else restore_rate(prediction, recording)

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one several windows at a time, so that memory does not grow with its length."""
        if self.decoder is not None or self.directed is not None or self.ethogram is None:
            return super().annotate(recording)
        self._check_inputs(recording)
        reader = self._open(recording) if has_rate(recording, self.rate) else None
        if reader is None or not has_rate(recording, reader.rate):
            return super().annotate(recording)
        size = max(PIECE_FRAMES // self.window, 1) * self.window
        missing, pieces = ~self.predictable_frames(recording), []
        for start in range(0, max(len(reader), 1), size):
            probabilities = predict_windows(self.module, reader, self.window, exclusive=self.exclusive, first=start, last=start + size)
            prediction = Prediction(probabilities, self.ethogram, reader.rate, exclusive=self.exclusive)
            pieces.append(prediction.without_frames(missing[start : start + size]).annotation)
        return join_pieces(pieces)

    def _open(self, recording: Recording) -> ChannelReader:
        """Open the channels of a recording, and check their number."""
        reader = self.read_channels(recording)
        if reader.n_channels != self.n_inputs:
            raise MismatchError(f"recording {recording.id!r} has {reader.n_channels} input channels, the network needs {self.n_inputs}")
        return reader

    def read_channels(self, recording: Recording) -> ChannelReader:
        """Open the channels of a recording."""
        if recording.signals is None:
            raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
        return open_channels(recording.signals, self.inputs, self.rate_of(recording), self.params.cutoff)

    def sample_windows(self, readers: Mapping[str, ChannelReader], truths: Mapping[str, Annotation]) -> WindowSampler:
        """Return a sampler of windows; annotations are resampled to the rate of the inputs."""
        targets = []
        for name, reader in readers.items():
            truth = truths[name]
            targets.append(self._targets(truth if truth.rate == reader.rate else truth.resample(reader.rate)))
        return sample_sequences(list(readers.values()), targets, self.window, self.params.batch)

    def _describe(self) -> dict[str, Any]:
        return {"window": self.window, "n_inputs": self.n_inputs}

    def _restore(self, description: Mapping[str, Any]) -> None:
        self.window, self._n_inputs = int(description["window"]), int(description["n_inputs"])
        if not 1 <= self.window <= MAX_WINDOW:
            raise ValueError


@hyperparameters
class CnnParams(BebeParams):
    """Hyper-parameters of `cnn`, in addition to `BebeParams`.

    Attributes
    ----------
    dilation : int
        Frames between the taps of a convolution.
    """

    learning_rate: LearningRate = 0.01
    dilation: Count = 5


@register_model("cnn")
class Cnn(BebeNetwork):
    """BEBE's convolutional network: two dilated convolutions, which see about a second around each frame."""

    title = "convolutional network on signals (BEBE)"
    Params = CnnParams
    grid = CONVOLUTION_GRID

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.models.bebe_modules import FrameNetwork

        return FrameNetwork(n_inputs, n_outputs, convolutions=2, cell=None, dilation=self.params.dilation)


@hyperparameters
class CrnnParams(CnnParams):
    """Hyper-parameters of `crnn`, in addition to `CnnParams`.

    Attributes
    ----------
    cell : {"gru", "lstm"}
        ``gru`` as published; ``lstm`` is faster on a CPU.
    pool : int
        Frames that are averaged before the recurrent layer: 1 as published. With n frames, it is n times faster and coarser.
    """

    learning_rate: LearningRate = 0.003
    cell: Literal["gru", "lstm"] = "gru"
    pool: Count = 1


@register_model("crnn")
class Crnn(BebeNetwork):
    """BEBE's convolutional recurrent network: two dilated convolutions, then a bidirectional recurrent layer."""

    title = "convolutional recurrent network on signals (BEBE)"
    Params = CrnnParams
    grid = CONVOLUTION_GRID

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.models.bebe_modules import FrameNetwork

        params = self.params
        return FrameNetwork(n_inputs, n_outputs, convolutions=2, cell=params.cell, dilation=params.dilation, pool=params.pool)


@hyperparameters
class RnnParams(BebeParams):
    """Hyper-parameters of `rnn`: those of `BebeParams`."""

    learning_rate: LearningRate = 0.01


@register_model("rnn")
class Rnn(BebeNetwork):
    """BEBE's recurrent network: `crnn` without the convolutions."""

    title = "recurrent network on signals (BEBE)"
    Params: ClassVar[type[BebeParams]] = RnnParams
    grid = {"learning_rate": LEARNING_RATES}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network."""
        from ethobench.models.bebe_modules import FrameNetwork

        return FrameNetwork(n_inputs, n_outputs, convolutions=0, cell="gru")


@hyperparameters
class WaveletRnnParams(BebeParams):
    """Hyper-parameters of `wavelet_rnn`, in addition to `BebeParams`.

    Attributes
    ----------
    omega : float
        Approximate number of oscillations of a wavelet.
    longest : float
        Longest wavelength in seconds.
    """

    learning_rate: LearningRate = 0.003
    omega: float = 5.0
    longest: float = 10.0


@register_model("wavelet_rnn")
class WaveletRnn(Rnn):
    """BEBE's recurrent network on wavelet coefficients."""

    title = "recurrent network on wavelets (BEBE)"
    Params = WaveletRnnParams
    grid = {"learning_rate": LEARNING_RATES, "omega": (5.0, 10.0, 20.0), "longest": (1.0, 10.0, 100.0, 1000.0)}  # noqa: RUF012

    def read_channels(self, recording: Recording) -> ChannelReader:
        """Open the wavelet coefficients of a recording."""
        data = select_inputs(recording, self.inputs)
        if isinstance(data, Poses):
            signals = data.to_signals()
            data = Signals(interpolate_missing(np.asarray(signals.values, dtype=np.float64))[0], signals.channels, signals.rate)
        rate, params = self.rate_of(recording), self.params
        values, names = wavelet_features(data.values, data.channels, rate, params.omega, params.longest, dtype=np.float32)
        return open_channels(Signals(values, names, rate), names, rate, 0.0)


@hyperparameters
class HarnetParams(BebeParams):
    """Hyper-parameters of `harnet`, in addition to `BebeParams`.

    Attributes
    ----------
    config : {"harnet30", "harnet10", "harnet5", "small"}
        Size of the encoder, and with it the default window: 900, 300, 150 or 900 frames.
    mode : {"frozen", "unfrozen", "random"}
        ``frozen``: the pre-trained encoder is not changed; ``unfrozen``: it is fine-tuned; ``random``: it is trained from random weights.
    rate : float, optional
        Resample signals to this rate (Hz) first, e.g. to the 30 Hz of the pre-training. As published, they are not resampled.
    weights : str
        Path of the pre-trained weights: your own download of a published checkpoint, or a folder made by ``ethobench pretrain``.
    """

    config: Literal["harnet30", "harnet10", "harnet5", "small"] = "harnet30"
    mode: Literal["frozen", "unfrozen", "random"] = "frozen"
    rate: Annotated[float, Field(gt=0)] | None = None
    weights: str = ""

    def __post_init__(self) -> None:
        if self.cutoff:
            raise ParameterError(f"`cutoff` must be 0 for harnet, which does not split accelerations, got {self.cutoff}")
        if self.mode == "random" and self.weights:
            raise ParameterError("`weights` cannot be used with mode='random'; mode='unfrozen' fine-tunes them")


@register_model("harnet")
class Harnet(BebeNetwork):
    """BEBE's harnet: a pre-trained encoder of acceleration, then a recurrent layer.

    Unlike in BEBE's code, an encoder that is not frozen is really trained.
    """

    title = "encoder pre-trained on people's acceleration, then a recurrent layer (harnet, BEBE)"
    Params = HarnetParams
    grid = {"learning_rate": LEARNING_RATES}  # noqa: RUF012
    module: EncodedNetwork

    def build(self, n_inputs: int, n_outputs: int) -> EncodedNetwork:
        """Build the network; the encoder reads each three axes of a sensor."""
        from ethobench.models.bebe_modules import EncodedNetwork

        triples = list(axis_triples(self.inputs).values()) if len(self.inputs) == n_inputs else []
        return EncodedNetwork(self.params.config, triples, n_inputs, n_outputs, frozen=self.params.mode == "frozen")

    @property
    def published_window(self) -> int:  # type: ignore[override]
        """Frames of a window of the published encoder."""
        return ENCODER_FRAMES[self.params.config]

    def _initialize(self, sampler: WindowSampler) -> None:
        if self.params.mode == "random":
            return
        if not self.params.weights:
            raise EthobenchError(
                f"harnet needs pre-trained weights: download a checkpoint from {CHECKPOINTS_URL} (check its licence), or make your own "
                "with `ethobench pretrain`, and pass its path as weights=; mode='random' needs none"
            )
        self.module.encoder.load(read_encoder(self.params.weights), self.params.weights)

    def read_channels(self, recording: Recording) -> ChannelReader:
        """Open the channels of a recording, resampled and with accelerations scaled."""
        reader = super().read_channels(recording)
        if self.params.rate and self.params.rate != reader.rate:
            reader = reader.resampled(self.params.rate)
        return reader.scaled(acceleration_factors(reader))
