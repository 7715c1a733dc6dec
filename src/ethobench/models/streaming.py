"""Models that follow along: one frame in, its probabilities out, before the next one comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core.errors import MismatchError
from ethobench.features.body import Scene
from ethobench.features.missing_data import MAX_GAP_SECONDS, max_gap_frames
from ethobench.models.input_checks import RequiredInput
from ethobench.training.live import Scorer
from ethobench.training.trajectory_inputs import CHANNELS, Preparation

Probabilities = NDArray[np.float32]


class Live(Protocol):
    """What `Model.stream` gives.

    Frames come one after the other at the model's rate. What is said of each is what `predict` would say of it in the whole
    recording, to 1e-5, but for gaps: probabilities become NaN once input has been missing for longer than gaps are bridged, whereas
    `predict`, which knows how long a gap will be, leaves out all of it.
    """

    def push(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Probabilities:
        """Take the next frame, and return its probabilities.

        Parameters
        ----------
        frame : array (n_animals, n_keypoints, 2) or (n_channels,)
            In the order of the model's inputs; NaN where something is missing.
        confidence : array (n_animals, n_keypoints), optional
            The tracker's.
        """

    def reset(self) -> None:
        """Forget all frames, for the beginning of another recording."""


class LiveFrames:
    """Single frames as a network is fed with them: a keypoint that is lost stays where it was for a while.

    Parameters
    ----------
    how : Preparation
        Of a causal model.
    scene : Scene
        The arena; that of the training unless it is known better.
    """

    def __init__(self, how: Preparation, scene: Scene) -> None:
        self.how, self.scene = how, scene
        self.shape = (how.n_inputs,) if how.kind == CHANNELS else (len(how.individuals), len(how.keypoints), 2)
        self.reset()

    def reset(self) -> None:
        """Forget where keypoints were."""
        self._last = np.full(self.shape, np.nan)
        self._age = np.zeros(self.shape[:2], dtype=np.int64)
        self._frames_without = np.zeros(1 if self.how.kind == CHANNELS else self.shape[0], dtype=np.int64)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which sources (the tag, or each animal) have input in the last frame, or had it so recently that the gap is bridged."""
        return np.asarray(self._frames_without <= max(1, max_gap_frames(MAX_GAP_SECONDS, self.how.rate)))

    def prepare(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Probabilities:
        """Return the inputs of the next frame."""
        values = np.asarray(frame, dtype=np.float64)
        if values.shape != self.shape:
            raise MismatchError(f"a frame of shape {values.shape}, where the model takes {self.shape}")
        if self.how.kind == CHANNELS:
            self._frames_without = np.where(np.isfinite(values).any(), 0, self._frames_without + 1)
            return self.how.frame(values, self.scene)
        lost = np.asarray(~np.isfinite(values).all(axis=2))
        if confidence is not None and self.how.min_confidence > 0:
            lost |= np.asarray(confidence) < self.how.min_confidence
        if self.scene.zeros_missing:
            lost |= (values == 0).all(axis=2)
        self._age = np.where(lost, self._age + 1, 0)
        self._frames_without = np.where(lost.all(axis=1), self._frames_without + 1, 0)
        self._last = np.where(lost[..., None], self._last, values)
        return self.how.frame(np.where(self._age[..., None] <= self.how.most_frames, self._last, np.nan), self.scene)


class LiveNetwork:
    """A network that follows along.

    Parameters
    ----------
    scorer : Scorer
    frames : LiveFrames
    exclusive : bool
        One behavior at a time (softmax), or each on its own (sigmoid).
    required_input : RequiredInput
        Without it a frame has probabilities of NaN.
    """

    def __init__(self, scorer: Scorer, frames: LiveFrames, *, exclusive: bool, required_input: RequiredInput) -> None:
        self.scorer, self.frames, self.exclusive, self.required_input = scorer, frames, exclusive, required_input

    def reset(self) -> None:
        """Forget all frames."""
        self.scorer.reset()
        self.frames.reset()

    def push(self, frame: ArrayLike, confidence: ArrayLike | None = None) -> Probabilities:
        """Take the next frame, and return its probabilities."""
        scores = self.scorer.push(self.frames.prepare(frame, confidence))
        if not self.required_input.met(self.frames.present[None])[0]:
            return np.full(len(scores), np.nan, dtype=np.float32)
        powers = np.exp(scores - scores.max()) if self.exclusive else np.exp(-np.maximum(scores, -80.0))
        return np.asarray(powers / powers.sum() if self.exclusive else 1 / (1 + powers), dtype=np.float32)


def corners_of(arena: Sequence[float] | None) -> tuple[float, float, float, float] | None:
    """Return the corners of an arena of some width and height."""
    return None if arena is None else (0.0, 0.0, float(arena[0]), float(arena[1]))
