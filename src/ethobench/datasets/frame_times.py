"""Which moment of a video belongs to which frame of a recording.

A recording has a regular clock: frame `k` is at ``k / rate`` seconds. Poses have one row per picture of the video that they were tracked
in, so with poses frame `k` is the `k`-th picture, also if the frame rate of the video varies. Without poses, frame `k` is the
picture that is displayed in the middle of the frame.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import Poses, Recording
from ethobench.core.recording import MAX_EXCESS
from ethobench.core.video import Camera, constant_rate, presentation_times
from ethobench.formats.parse_cache import cache_folder, cached_text

DEFAULT_RATE = 30.0


@dataclass(frozen=True)
class VideoTimes:
    """Times of the pictures of a video.

    Attributes
    ----------
    n_pictures : int
    rate : float or None
        Pictures per second; None if it varies.
    times : array of float64 (n_pictures,) or None
        Seconds from the first picture; None if the rate is constant.
    """

    n_pictures: int
    rate: float | None
    times: NDArray[np.float64] | None = None


def read_video_times(path: Path) -> VideoTimes:
    """Read the times of the pictures of a video, from the cache if the file has not changed.

    Raises
    ------
    FormatError
        If the video cannot be read.
    """
    n_pictures, rate, times = json.loads(cached_text(path, cache_folder() / "video_times", lambda: _compute(path)))
    return VideoTimes(n_pictures, rate, None if times is None else np.array(times, dtype=np.float64))


def _compute(path: Path) -> str:
    times = presentation_times(path)
    rate = constant_rate(times) if len(times) > 1 else DEFAULT_RATE
    return json.dumps((len(times), rate, None if rate is not None else np.round(times, 6).tolist()))


@dataclass(frozen=True)
class FrameTimes:
    """Time of each frame of a recording in its videos.

    Attributes
    ----------
    rate : float
        Frames per second.
    times : array of float64 or None
        Time of each picture of a video with a variable frame rate, if frames are pictures; None if frames are regular.

    Examples
    --------
    >>> FrameTimes(10.0).middles([0, 5]).tolist()
    [0.05, 0.55]
    >>> FrameTimes(10.0, np.array([0.0, 0.1, 0.5])).middles([1, 2]).tolist()
    [0.3, 0.55]
    """

    rate: float
    times: NDArray[np.float64] | None = None

    def middles(self, frames: ArrayLike) -> NDArray[np.float64]:
        """Return the time of the middle of each frame, in seconds; frames may be fractional if the clock is regular."""
        frames = np.asarray(frames)
        if self.times is None:
            return np.asarray((frames + 0.5) / self.rate, dtype=np.float64)
        index = np.asarray(frames, dtype=np.int64)
        edges = np.append(self.times, self.times[-1] + 1 / self.rate)
        last = len(self.times) - 1
        inside = np.clip(index, 0, last)
        beyond = np.maximum(index - last, 0) / self.rate
        return np.asarray((edges[inside] + edges[inside + 1]) / 2 + beyond, dtype=np.float64)


def frame_times(recording: Recording) -> FrameTimes:
    """Return the time of each frame of a recording in its first video, without the offset of the camera.

    Raises
    ------
    FormatError
        If the video cannot be read.
    """
    rate = recording.rate or DEFAULT_RATE
    poses = recording.signals
    if recording.video is None or not isinstance(poses, Poses):
        return FrameTimes(rate)
    video = read_video_times(recording.video)
    if abs(video.n_pictures - len(poses)) > max(1, MAX_EXCESS * len(poses)):
        return FrameTimes(rate)  # poses of another video, or of every n-th picture
    return FrameTimes(video.rate or rate, video.times)


def camera_times(times: FrameTimes, camera: Camera, frames: ArrayLike) -> NDArray[np.float64]:
    """Return the time in a camera's video of the middle of each frame, in seconds."""
    return times.middles(frames) + camera.offset
