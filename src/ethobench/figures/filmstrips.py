"""Filmstrips: a few pictures of a segment side by side, for galleries of examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.figures.colors import ANIMALS, rgb
from ethobench.figures.scenes import GROUND, LANE, ClipStyle, Scene

PICTURE_SIZE = (132, 99)
N_PICTURES = 8
MAX_PICTURES = 64
MAX_CHANNELS = 6
MIN_SHARE = 0.22  # of the height of the scene, that a picture shows at least
MARGIN = 0.35  # around the animals, as a share of their extent
MIN_MARGIN = 0.06  # of the height of the scene
VIDEO_HEIGHT, PLAIN_HEIGHT = 480, 240  # of the scenes from which pictures are cropped; lines of poses are thicker in low ones


class Filmstrips:
    """Draws segments of a recording as filmstrips.

    The pictures show the video or, without one, the poses, cropped to where the animals are; of other signals a plot.

    Parameters
    ----------
    recording : Recording
    size : tuple of int
        Width and height of a picture.

    Examples
    --------
    >>> from ethobench.datasets.synthetic import make_dataset
    >>> recording = make_dataset("pose", individuals=1, seconds=20).recordings[0]
    >>> Filmstrips(recording).draw(30, 60, n=4).size
    (528, 99)
    """

    def __init__(self, recording: Recording, size: tuple[int, int] = PICTURE_SIZE) -> None:
        self.recording, self.size = recording, size
        style = ClipStyle(poses=True, labels=False, time=False, height=VIDEO_HEIGHT if recording.cameras else PLAIN_HEIGHT)
        self.scene: Scene | None = None
        if recording.cameras or isinstance(recording.signals, Poses):
            try:
                self.scene = Scene(recording, [], style)
            except EthobenchError:  # the video cannot be read
                without = Recording(recording.id, rate=recording.rate, n_frames=recording.n_frames, signals=recording.signals)
                self.scene = Scene(without, [], replace(style, height=PLAIN_HEIGHT)) if isinstance(recording.signals, Poses) else None
        if self.scene is None and recording.signals is None:
            raise EthobenchError(f"recording {recording.id!r} has no video that can be read, no poses and no signals to show")

    def draw(self, start: int, stop: int, *, n: int = N_PICTURES, individual: str | None = None) -> Any:
        """Draw a segment.

        Parameters
        ----------
        start, stop : int
            Half-open frames.
        n : int
            Number of pictures; a signal is plotted in one.
        individual : str, optional
            The animal to which pictures are cropped; all by default.

        Returns
        -------
        PIL.Image.Image
        """
        from PIL import Image

        if not 0 <= start < stop:
            raise ParameterError(f"a segment must have 0 <= start < stop, got {start} to {stop}")
        if not 1 <= n <= MAX_PICTURES:
            raise ParameterError(f"`n` must be between 1 and {MAX_PICTURES}, got {n}")
        width, height = self.size
        if self.scene is None:
            return self._plot(start, stop)
        strip = Image.new("RGB", (n * width, height), GROUND)
        frames = np.minimum(start + ((np.arange(n) + 0.5) * (stop - start) / n).astype(np.int64), max(self.scene.n_frames - 1, 0))
        boxes = self._boxes(self.scene, frames, individual)
        for k, (picture, box) in enumerate(zip(self.scene.draw(frames), boxes, strict=True)):
            x, y, x_end, y_end = box
            cropped = Image.new("RGB", (x_end - x, y_end - y), GROUND)
            cropped.paste(picture, (-x, -y))
            strip.paste(cropped.resize(self.size, Image.Resampling.BILINEAR), (k * width, 0))
        return strip

    def _boxes(self, scene: Scene, frames: NDArray[np.int64], individual: str | None) -> list[tuple[int, int, int, int]]:
        """Return the part of each picture to show, in pixels: it follows the animals and has one size; it may extend over the edge."""
        full = np.array(scene.picture_size, dtype=float)
        aspect = self.size[0] / self.size[1]
        centers, height = [], MIN_SHARE * full[1]
        for frame in frames:
            points = scene.keypoint_pixels(np.array([frame]), individual)
            if len(points):
                low, high = points.min(axis=0), points.max(axis=0)
                margin = np.maximum(MARGIN * (high - low), MIN_MARGIN * full[1])
                extent = high - low + 2 * margin
                height = max(height, extent[1], extent[0] / aspect)
                centers.append((low + high) / 2)
            else:
                centers.append(centers[-1] if centers else full / 2)
        if scene.poses is None or height >= full[1]:
            height, centers = max(full[1], full[0] / aspect), [full / 2] * len(frames)
        corners = [(round(x - height * aspect / 2), round(y - height / 2)) for x, y in centers]
        return [(x, y, x + round(height * aspect), y + round(height)) for x, y in corners]

    def _plot(self, start: int, stop: int) -> Any:
        """Plot the first channels of a signal, with half of the segment's length before and after it."""
        from PIL import Image, ImageDraw

        width, height = self.size
        around = (stop - start) // 2 + 1
        values = np.asarray(getattr(self.recording.signals, "values", np.zeros((0, 1))), dtype=np.float64)[:, :MAX_CHANNELS]
        first, last = max(start - around, 0), min(stop + around, len(values))
        image = Image.new("RGB", (width, height), GROUND)
        draw = ImageDraw.Draw(image)
        scale = width / max(last - first, 1)
        draw.rectangle([(start - first) * scale, 0, (stop - first) * scale, height], LANE)
        window = values[first:last]
        finite = window[np.isfinite(window)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        for channel in range(window.shape[1]):
            rows = np.flatnonzero(np.isfinite(window[:, channel]))
            rows = rows[:: max(len(rows) // (2 * width), 1)]
            y = height - 5 - (window[rows, channel] - low) / max(high - low, 1e-12) * (height - 10)
            if len(rows) > 1:
                draw.line(list(zip(((rows + 0.5) * scale).tolist(), y.tolist(), strict=True)), rgb(ANIMALS[channel % len(ANIMALS)]))
        return image
