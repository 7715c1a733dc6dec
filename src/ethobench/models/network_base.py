"""What all network models share: channels in, one set of scores for every frame out."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.folds import assign_folds, default_grouping
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.models.adapt import has_rate, restore_rate
from ethobench.models.base import Model, join_pieces
from ethobench.models.hyperparameters import hyperparameters
from ethobench.training.clips import Clips, make_clips
from ethobench.training.device import PACKAGES, choose_device, own_random_state
from ethobench.training.inference import predict_windows
from ethobench.training.loop import History, Progress, Training, train
from ethobench.training.losses import class_weights, exclusive_loss, overlapping_loss
from ethobench.training.streams import Stream, open_stream
from ethobench.training.tensors import load_weights, read_tensors, write_tensors

if TYPE_CHECKING:
    import torch

WEIGHTS, CHECKPOINT = "weights.safetensors", "training.safetensors"
PIECE = 1 << 18  # frames that are annotated at a time
MOST_FRAMES = 10_000_000  # of a window
ENTRY = "network"


@hyperparameters
class NetworkParams:
    """Hyper-parameters of every network.

    Attributes
    ----------
    learning_rate : float
        At the beginning; it falls along a cosine.
    cutoff : float
        Split accelerations into slow and fast parts at this frequency (Hz); 0 leaves them whole.
    window : int, optional
        Frames of a window. Unless given, as long as published, or half the usual recording if that is shorter.
    epochs : int
    batch : int
        Windows of a batch.
    patience : int, optional
        Hold out a fifth of the individuals, and stop after so many epochs in which they are not told better.
    """

    learning_rate: float = 0.003
    cutoff: float = 0.0
    window: int | None = None
    epochs: int = 100
    batch: int = 32
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise EthobenchError(f"a window has at least one frame, not {self.window}")
        if self.batch < 1:
            raise EthobenchError(f"a batch has at least one window, not {self.batch}")
        if not 0 <= self.cutoff < math.inf:
            raise EthobenchError(f"a cutoff is a frequency of 0 Hz or more, not {self.cutoff}")


class NetworkModel(Model):
    """A network that reads windows of channels; subclasses write `build`.

    If `checkpoint` names a folder, the training keeps its state there, and goes on from what is there.

    Attributes
    ----------
    progress : callable, optional
        Told after every step of a training.
    history : History
        What came of the training.
    """

    Params = NetworkParams
    packages = PACKAGES
    supports_deadline = True
    progress: Callable[[Progress], None] | None = None
    history: History
    module: torch.nn.Module
    window: int
    n_inputs: int

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network: (batch, frames, inputs) to (batch, frames, outputs)."""
        raise NotImplementedError

    def _initialize(self, module: torch.nn.Module, clips: Clips) -> None:
        """Tell a new network what it cannot know from random weights."""
        from ethobench.training.layers import FrameNetwork

        if isinstance(module, FrameNetwork):
            module.expect(*clips.statistics())

    def _usual_window(self) -> int:
        """Return the frames of a window, as published."""
        return 2048

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        streams = {recording.id: self._stream(recording) for recording in data}
        usual = int(np.median([len(stream) for stream in streams.values()]))
        self.window = self.params.window or max(min(self._usual_window(), usual // 2), 1)
        held_out = self._held_out(data)
        clips = self._clips({name: stream for name, stream in streams.items() if name not in held_out}, truths)
        self.n_inputs = clips.values.shape[1]
        with own_random_state(self.seed):
            self.module = self.build(self.n_inputs, self.n_outputs)
        self._initialize(self.module, clips)
        identity = {"model": self.name, "revision": self.revision, "data": clips.checksum, "window": self.window}
        self.history = train(
            self.module,
            clips,
            exclusive_loss(class_weights(clips.targets, self.n_outputs)) if self.exclusive else overlapping_loss(),
            Training(self.params.epochs, self.params.learning_rate, patience=self.params.patience, seed=self.seed),
            validation=self._clips({name: streams[name] for name in held_out}, truths) if held_out else None,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint) / CHECKPOINT,
            identity={**dataclasses.asdict(self.params), **identity},
            progress=self.progress,
            deadline=self.deadline,
        )
        if self.params.patience is None:
            self.note_epochs(len(self.history.losses), self.params.epochs)

    def _held_out(self, data: Dataset) -> list[str]:
        """Return the recordings of the individuals that tell when to stop."""
        folds = {} if self.params.patience is None else assign_folds(data, by=default_grouping(data))
        return [name for name, fold in folds.items() if fold == 0]

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        stream = self._open(recording)
        probabilities = predict_windows(self.module, stream, self.window, exclusive=self.exclusive)
        prediction = Prediction(probabilities, ethogram, stream.rate, exclusive=self.exclusive)
        return prediction if has_rate(recording, stream.rate) else restore_rate(prediction, recording)

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one some windows at a time, so that memory does not grow with its length."""
        if self.decoder is not None or self.directed is not None or self.ethogram is None:
            return super().annotate(recording)
        self._check_inputs(recording)
        stream = self._open(recording) if has_rate(recording, self.rate) else None
        if stream is None or not has_rate(recording, stream.rate):
            return super().annotate(recording)
        size = max(PIECE // self.window, 1) * self.window
        missing, parts = ~self.predictable_frames(recording), []
        for start in range(0, max(len(stream), 1), size):
            probabilities = predict_windows(self.module, stream, self.window, exclusive=self.exclusive, first=start, last=start + size)
            prediction = Prediction(probabilities, self.ethogram, stream.rate, exclusive=self.exclusive)
            parts.append(prediction.without_frames(missing[start : start + size]).annotation)
        return join_pieces(parts)

    def _open(self, recording: Recording) -> Stream:
        """Open what the network sees, and see whether it fits."""
        stream = self._stream(recording)
        if stream.n_channels != self.n_inputs:
            raise MismatchError(f"recording {recording.id!r} gives {stream.n_channels} channels, the network takes {self.n_inputs}")
        return stream

    def _stream(self, recording: Recording) -> Stream:
        """Open what the network sees of a recording."""
        if recording.signals is None:
            raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
        return open_stream(recording.signals, self.inputs, self.rate_of(recording), self.params.cutoff)

    def _clips(self, streams: Mapping[str, Stream], truths: Mapping[str, Annotation]) -> Clips:
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        targets = [targets_of(_at_rate(truths[name], stream.rate)) for name, stream in streams.items()]
        return make_clips(list(streams.values()), targets, self.window, self.params.batch)

    def _save(self, folder: Path) -> None:
        facts: dict[str, Any] = {"window": self.window, "n_inputs": self.n_inputs, "exclusive": self.exclusive}
        write_tensors(folder / WEIGHTS, self.module.state_dict(), {ENTRY: json.dumps(facts)})

    def _load(self, folder: Path) -> None:
        weights, notes = read_tensors(folder / WEIGHTS)
        try:
            facts = json.loads(notes[ENTRY])
            self.window, self.n_inputs, self.exclusive = int(facts["window"]), int(facts["n_inputs"]), bool(facts["exclusive"])
            if not 1 <= self.window <= MOST_FRAMES:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise FormatError(folder / WEIGHTS, "these are not the weights of a saved model") from None
        self.module = load_weights(lambda: self.build(self.n_inputs, self.n_outputs), weights, folder / WEIGHTS)
        self.module.to(choose_device()).eval()


def _at_rate(truth: Annotation, rate: float) -> Annotation:
    return truth if truth.rate == rate else truth.resample(rate)
