"""What models on Nathan's features share; poses get window statistics of their geometry instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethobench.core import Poses, Signals
from ethobench.features.body import estimate_scene
from ethobench.features.nathan import half_window, nathan_context, nathan_features
from ethobench.features.pose import pose_context, windowed_pose_features
from ethobench.models.frames import Features, FrameModel
from ethobench.models.hyperparameters import hyperparameters

GRID = {"seconds": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0), "cutoff": (0.1, 0.4, 1.6, 6.4)}
POSE_WINDOWS = (0.5, 1.0)  # in parts of `seconds`
POSE_ROWS = 10.0  # frames per second that are learnt


@hyperparameters
class NathanParams:
    """Hyper-parameters of the features.

    Attributes
    ----------
    seconds : float
        Length of the window.
    cutoff : float
        In Hz: what is faster counts as movement (tags). 0 for accelerations without gravity.
    exact : bool
        Keep the slips of BEBE's code in the features (tags).
    """

    seconds: float = 2.0
    cutoff: float = 1.6
    exact: bool = True


class NathanModel(FrameModel):
    """Learns from the statistics of the window around each frame."""

    Params = NathanParams

    def features_of(self, data: Signals | Poses, rate: float, usual: Any = None) -> Features:
        """Return Nathan's features of a tag's channels, or pose features and their window statistics."""
        seconds, cutoff = self.params.seconds, self.params.cutoff
        if isinstance(data, Poses):
            lengths = [part * seconds for part in POSE_WINDOWS]
            return windowed_pose_features(data, rate, lengths, keypoints=self.keypoints, scene=usual)[0]
        found, _ = nathan_features(
            data.values, data.channels, rate, seconds, cutoff, exact=self.params.exact, dynamic_only=cutoff == 0, dtype=np.float32
        )
        return np.asarray(found, dtype=np.float32)

    def every(self, data: Signals | Poses, rate: float) -> int:
        """Learn all frames of a tag, as published; of poses a few a second, as neighbours hardly differ."""
        return max(1, round(rate / POSE_ROWS)) if isinstance(data, Poses) else 1

    def usual_of(self, data: Signals | Poses) -> Any:
        """Return the scene of poses: how long the animals are, and where they may go."""
        return estimate_scene(data, keypoints=self.keypoints) if isinstance(data, Poses) else None

    def context(self, rate: float) -> int:
        """Return how many frames beside a block decide its features."""
        half = half_window(self.params.seconds, rate)
        return pose_context(rate) + (half if self.params.cutoff == 0 else nathan_context(self.params.seconds, rate, self.params.cutoff))
