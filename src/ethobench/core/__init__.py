"""The data model: ethograms, annotations, recordings, datasets and predictions; interval functions, errors and files."""

from ethobench.core.annotation import Annotation
from ethobench.core.dataset import Dataset
from ethobench.core.ethogram import Behavior, Ethogram
from ethobench.core.observed import Observed, Track
from ethobench.core.prediction import Prediction
from ethobench.core.recording import ClockOrigin, Recording
from ethobench.core.signals import Keypoint, Poses, Signals

__all__ = [
    "Annotation",
    "Behavior",
    "ClockOrigin",
    "Dataset",
    "Ethogram",
    "Keypoint",
    "Observed",
    "Poses",
    "Prediction",
    "Recording",
    "Signals",
    "Track",
]
