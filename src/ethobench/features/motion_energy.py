"""Motion energy of a video: how much consecutive pictures differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core.progress import report_progress
from ethobench.core.video import Pictures

WIDTH, HEIGHT = 64, 48
REPORT_EVERY = 100


def motion_energy(path: Path, times: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the mean absolute difference of the gray levels (0 to 255) of a frame and the frame before, in pictures of 64 x 48 pixels.

    Parameters
    ----------
    path : Path
        The video.
    times : array of float64 (n_frames,)
        Time of each frame in the video, in seconds, increasing; see `ethobench.datasets.frame_times`.

    Returns
    -------
    array of float32 (n_frames,)
        0 in the first frame; NaN where the video has no picture.
    """
    energy = np.full(len(times), np.nan, dtype=np.float32)
    before, gray_before, current = None, None, np.float32(0)
    for frame, picture in enumerate(Pictures(path).at(times.tolist())):
        if frame % REPORT_EVERY == 0:
            report_progress("motion energy", frame / len(times))
        if picture is None:
            before = gray_before = None
            continue
        if picture is not before:
            gray = picture.reformat(width=WIDTH, height=HEIGHT, format="gray").to_ndarray().astype(np.float32)
            current = np.float32(0) if gray_before is None else np.abs(gray - gray_before).mean()
            before, gray_before = picture, gray
            energy[frame] = current
        else:
            energy[frame] = 0  # the same picture is displayed for several frames
    return energy
