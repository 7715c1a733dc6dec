"""Motion features of a video without trained weights: what moves, how, and where relative to the animal.

Pictures are reduced to 160 pixels. The background is the median of key frames, and the animal (or animals) is what differs from it. A
window follows its center and scale. Inside it, differences from earlier pictures (the last one, 0.2 s and 0.8 s before), coarse optical
flow (Lucas and Kanade 1981, on a grid of cells and on a coarser picture over 0.2 s) and orientations of edges (Dalal and Triggs 2005) are
summarized so that they do not depend on the direction in which the animal faces: along and across its axis, by rings around its center,
and quarters in order of their motion. Lengths are relative to the window, times in seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from ethobench.core.video import Pictures, open_video

Gray = NDArray[np.float32]
WIDTH = 160  # of the longer side of pictures, in pixels
MAX_RATE = 30.0  # samples per second
WINDOW, CELL = 48, 8  # sides of the resampled window and of a cell of its optical flow
LAGS = (0.0, 0.2, 0.8)  # seconds; 0 for the picture before
SPEED_LAGS = (0.1, 0.5, 2.0)
MIN_CONTRAST = 10.0  # gray levels by which an animal differs from the background
MIN_SIDE, MAX_SHARE = 24.0, 0.7  # of the window: in pixels, and of the picture
FOLLOW, SCALE_SECONDS = 0.5, 5.0  # weight of a new center; time constant of the window's side
KEY_FRAMES, MIN_KEY_FRAMES = 31, 8
BINS = 8  # of orientations of edges
EPSILON = 1e-6

NAMES = (
    *(f"speed_{lag:g}s" for lag in SPEED_LAGS),
    *("area", "area_change", "contrast", "elongation", "length", "bimodality", "turning", "wall_distance", "picture_change"),
    *(f"change_{lag:g}s_{region}" for lag in LAGS for region in ("mean", "inner", "outer", "most_quarter", "least_quarter")),
    *(
        f"flow_{statistic}"
        for statistic in ("mean", "deviation", "maximum", "coherence", "divergence", "curl", "along", "across", "forward", "sideward")
    ),
    *(f"flow_quarter{i + 1}" for i in range(4)),
    *(f"coarse_flow_{statistic}" for statistic in ("mean", "maximum", "divergence")),
    *(f"ring{i + 1}" for i in range(3)),
    *(f"edges{i + 1}" for i in range(BINS)),
    "edge_energy",
)
"""Names of the motion features."""


class MotionEncoder:
    """Computes motion features of the pictures of one video, one after the other.

    Parameters
    ----------
    background : array (height, width)
        Gray levels without the animal, from `estimate_background`.
    rate : float
        Pictures per second.

    Examples
    --------
    >>> pictures = np.zeros((20, 60, 80), dtype=np.float32)
    >>> for i, picture in enumerate(pictures):
    ...     picture[20:30, 10 + 2 * i : 20 + 2 * i] = 200
    >>> encoder = MotionEncoder(np.zeros((60, 80), dtype=np.float32), rate=10.0)
    >>> rows = [encoder.encode(picture) for picture in pictures]
    >>> len(rows[0]) == len(NAMES), bool(rows[-1][NAMES.index("speed_0.5s")] > 0.2), float(rows[0][0])
    (True, True, 0.0)
    """

    def __init__(self, background: Gray, rate: float) -> None:
        self.background, self.rate = background, rate
        height, width = background.shape
        self.y_powers = np.stack([np.ones(height), np.arange(height)])
        self.x_powers = np.stack([np.ones(width), np.arange(width)], axis=1)
        self.side = np.clip(0.35 * min(height, width), MIN_SIDE, None)
        self.center = np.array([height / 2, width / 2])
        self.has_center = False
        longest = max(*LAGS, *SPEED_LAGS)
        self.earlier: deque[Gray] = deque(maxlen=max(2, self._steps(max(LAGS)) + 1))
        self.bodies: deque[tuple[NDArray[np.float64], float, float]] = deque(maxlen=max(2, self._steps(longest) + 1))
        ring = np.hypot(*np.meshgrid(*[np.linspace(-1, 1, WINDOW)] * 2)).astype(np.float32)
        self.rings = [(ring >= low) & (ring < high) for low, high in ((0.0, 0.4), (0.4, 0.7), (0.7, 1.0))]

    def _steps(self, seconds: float) -> int:
        return max(1, round(seconds * self.rate))

    def encode(self, gray: Gray) -> NDArray[np.float32]:
        """Return the features of the next picture (len(NAMES),)."""
        difference = gray - self.background
        difference -= np.median(difference[::4, ::4])  # a change of light
        foreground = np.abs(difference)
        noise = 1.4826 * float(np.median(foreground[::4, ::4]))
        weights = np.maximum(foreground - max(MIN_CONTRAST, 4 * noise), 0)
        elongation, length, bimodality, angle = self._follow(weights)
        side = float(self.side)
        area = float((weights > 0).sum()) / side**2
        self.bodies.append((self.center.copy(), angle, area))
        lagged = [self._body_before(lag) for lag in SPEED_LAGS]
        steps = [min(self._steps(lag), len(self.bodies) - 1) for lag in SPEED_LAGS]
        speeds = [
            float(np.hypot(*(self.center - before[0]))) / side * self.rate / max(n, 1) for before, n in zip(lagged, steps, strict=True)
        ]
        turning = abs((angle - lagged[0][1] + np.pi / 2) % np.pi - np.pi / 2)
        edge = np.minimum(self.center, np.array(gray.shape) - self.center).min() / side
        rows, columns = self._window(gray.shape)
        window = gray[np.ix_(rows, columns)]
        previous = self.earlier[-1] if self.earlier else gray
        changes: list[float] = []
        for lag in LAGS:
            changes += self._changes(window, self._gray_before(lag, gray)[np.ix_(rows, columns)])
        shift = self.center - lagged[0][0]
        flow = _flow_features(window, previous[np.ix_(rows, columns)], CELL, angle, shift)
        coarse = _coarse_flow(window, self._gray_before(0.2, gray)[np.ix_(rows, columns)])
        inside = foreground[np.ix_(rows, columns)]
        contrast = float(inside.mean())
        rings = [float(inside[ring].mean()) for ring in self.rings]
        picture_change = float(np.abs(gray - previous).mean())
        self.earlier.append(gray)
        body = [area, area - lagged[0][2], contrast, elongation, length / side, bimodality, turning, float(edge), picture_change]
        return np.array([*speeds, *body, *changes, *flow, *coarse, *rings, *_edges(window, angle)], dtype=np.float32)

    def _follow(self, weights: Gray) -> tuple[float, float, float, float]:
        """Move the window to the foreground; return its elongation, length, bimodality along its axis, and angle, from its moments."""
        total = float(weights.sum())
        if total < MIN_CONTRAST * 4:
            return 1.0, 0.0, 0.0, self.bodies[-1][1] if self.bodies else 0.0
        moments = (self.y_powers[:2] @ weights @ self.x_powers[:, :2]) / total
        center = np.array([moments[1, 0], moments[0, 1]])
        self.center = FOLLOW * center + (1 - FOLLOW) * self.center if self.has_center else center
        y, x = self.y_powers[1] - center[0], self.x_powers[:, 1] - center[1]
        powers = np.arange(5)
        moments = ((y ** powers[:, None]) @ weights @ (x[:, None] ** powers)) / total
        yy, xx, xy = moments[2, 0], moments[0, 2], moments[1, 1]
        spread = np.hypot((xx - yy) / 2, xy)
        major, minor = np.sqrt(max((xx + yy) / 2 + spread, EPSILON)), np.sqrt(max((xx + yy) / 2 - spread, EPSILON))
        angle = 0.5 * float(np.arctan2(2 * xy, xx - yy))
        cos, sin = np.cos(angle), np.sin(angle)
        fourth = sum(comb(4, k) * cos**k * sin ** (4 - k) * moments[4 - k, k] for k in range(5))
        kurtosis = float(fourth / major**4)
        side = np.clip(6 * major, MIN_SIDE, MAX_SHARE * min(weights.shape))
        weight = 1.0 if not self.has_center else 1 / (SCALE_SECONDS * self.rate + 1)
        self.side += weight * (side - self.side)
        self.has_center = True
        return float(minor / major), float(4 * major), 1 / max(kurtosis, EPSILON), angle

    def _window(self, shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of the window; those outside the picture repeat its edge."""
        offsets = (np.arange(WINDOW) + 0.5) / WINDOW * self.side - self.side / 2
        rows, columns = (np.clip(np.rint(c + offsets), 0, n - 1).astype(np.intp) for c, n in zip(self.center, shape, strict=True))
        return rows, columns

    def _gray_before(self, seconds: float, current: Gray) -> Gray:
        """Return the picture that was displayed some time before; the oldest one at the start of the video."""
        return self.earlier[-min(self._steps(seconds), len(self.earlier))] if self.earlier else current

    def _body_before(self, seconds: float) -> tuple[NDArray[np.float64], float, float]:
        return self.bodies[-1 - min(self._steps(seconds), len(self.bodies) - 1)]

    def _changes(self, window: Gray, before: Gray) -> list[float]:
        """Return the mean change of gray levels: in the window, near its center, at its edge, in its quarters with most and least."""
        change = np.abs(window - before)
        half = WINDOW // 2
        quarters = change.reshape(2, half, 2, half).mean(axis=(1, 3))
        return [
            float(change.mean()),
            float(change[self.rings[0]].mean()),
            float(change[self.rings[2]].mean()),
            float(quarters.max()),
            float(quarters.min()),
        ]


def _flow(window: Gray, before: Gray, cell: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the optical flow of each cell (n, n) to the right and down, in shares of the window, by least squares within the cell."""
    smooth, earlier = uniform_filter(window, 3), uniform_filter(before, 3)
    gy, gx = np.gradient((smooth + earlier) / 2)
    gt = smooth - earlier
    n = len(window) // cell

    def total(values: Gray) -> Gray:
        return np.asarray(values.reshape(n, cell, n, cell).sum(axis=(1, 3)))

    xx, yy, xy, xt, yt = total(gx * gx), total(gy * gy), total(gx * gy), total(gx * gt), total(gy * gt)
    xx, yy = xx + np.float32(4.0 * cell), yy + np.float32(4.0 * cell)  # no flow where there is no texture
    determinant = xx * yy - xy * xy
    u, v = (xy * yt - yy * xt) / determinant, (xy * xt - xx * yt) / determinant
    size = np.float32(len(window))
    return np.clip(u / size, -0.25, 0.25), np.clip(v / size, -0.25, 0.25)


def _flow_features(window: Gray, before: Gray, cell: int, angle: float, shift: NDArray[np.float64]) -> list[float]:
    """Summarize the flow of all cells relative to the axis of the animal and to the direction in which it moves."""
    u, v = _flow(window, before, cell)
    magnitude = np.hypot(u, v)
    mean_u, mean_v = float(u.mean()), float(v.mean())
    mean = float(magnitude.mean())
    du, dv = np.gradient(u), np.gradient(v)
    cos, sin = np.cos(angle), np.sin(angle)
    speed = float(np.hypot(*shift))
    direction = shift / speed if speed > 0.5 else np.zeros(2)
    half = len(u) // 2
    quarters = np.sort(magnitude.reshape(2, half, 2, half).mean(axis=(1, 3)).ravel())[::-1]
    return [
        mean,
        float(magnitude.std()),
        float(magnitude.max()),
        float(np.hypot(mean_u, mean_v)) / (mean + EPSILON),
        float((du[1] + dv[0]).mean()),
        abs(float((dv[1] - du[0]).mean())),
        float(np.abs(u * cos + v * sin).mean()),
        float(np.abs(v * cos - u * sin).mean()),
        float(mean_u * direction[1] + mean_v * direction[0]),
        abs(float(mean_u * direction[0] - mean_v * direction[1])),
        *map(float, quarters),
    ]


def _coarse_flow(window: Gray, before: Gray) -> list[float]:
    """Return mean, maximum and divergence of the flow over a longer time, in a picture of a quarter of the size."""
    n = WINDOW // 4
    small, earlier = (picture.reshape(n, 4, n, 4).mean(axis=(1, 3)) for picture in (window, before))
    u, v = _flow(small, earlier, 4)
    magnitude = np.hypot(u, v)
    return [float(magnitude.mean()), float(magnitude.max()), float((np.gradient(u)[1] + np.gradient(v)[0]).mean())]


def _edges(window: Gray, angle: float) -> list[float]:
    """Return the share of edges in each orientation relative to the axis of the animal, and their mean strength."""
    gy, gx = np.gradient(window)
    strength = np.hypot(gx, gy)
    orientation = (np.arctan2(gy, gx) - angle) % np.pi
    bins = np.minimum((orientation * (BINS / np.pi)).astype(np.intp), BINS - 1)
    histogram = np.bincount(bins.ravel(), weights=strength.ravel(), minlength=BINS)
    return [*(histogram / (histogram.sum() + EPSILON)).tolist(), float(strength.mean())]


def reduced_size(width: int, height: int) -> tuple[int, int]:
    """Return width and height of the reduced pictures, which are even."""
    factor = min(1.0, WIDTH / max(width, height))
    return max(2, round(width * factor / 2) * 2), max(2, round(height * factor / 2) * 2)


def to_gray(picture: Any, size: tuple[int, int]) -> Gray:
    """Return a picture of PyAV as gray levels (height, width)."""
    return np.asarray(picture.reformat(width=size[0], height=size[1], format="gray").to_ndarray(), dtype=np.float32)


def estimate_background(path: Path, duration: float, size: tuple[int, int]) -> Gray:
    """Return the median of pictures spread over a video: of its key frames, or of other pictures if it has few.

    Parameters
    ----------
    path : Path
    duration : float
        Length in seconds.
    size : tuple of int
        Width and height of the result.
    """
    with open_video(path) as (container, stream):
        stream.codec_context.skip_frame = "NONKEY"
        pictures = [to_gray(picture, size) for picture in _spread(_decoded(container, stream), stream.frames)]
    if len(pictures) < MIN_KEY_FRAMES:
        times = (np.arange(MIN_KEY_FRAMES) + 0.5) / MIN_KEY_FRAMES * duration
        shown = (next(Pictures(path).at([float(time)]), None) for time in times)
        pictures += [to_gray(picture, size) for picture in shown if picture is not None]
    if not pictures:
        return np.zeros((size[1], size[0]), dtype=np.float32)
    return np.median(np.stack(pictures[: 4 * KEY_FRAMES]), axis=0).astype(np.float32)


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the key frames that can be decoded."""
    import av

    for packet in container.demux(stream):
        if packet.is_keyframe:
            try:
                yield from packet.decode()
            except av.error.FFmpegError:
                continue


def _spread(pictures: Iterable[Any], n_frames: int) -> Iterator[Any]:
    """Yield pictures that are far enough apart for about `KEY_FRAMES` of them."""
    last = None
    for picture in pictures:
        stamp = picture.pts
        if last is None or stamp is None or not picture.time_base or not n_frames or float((stamp - last) * picture.time_base) >= 1.0:
            last = stamp
            yield picture
