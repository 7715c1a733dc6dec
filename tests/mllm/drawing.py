"""Videos of drawn poses with exact annotations."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from ethobench import Recording, load_dataset
from ethobench.datasets.synthetic_signals import HEIGHT, WIDTH

ROWS, COLUMNS = 180, 320
COLORS = ((230, 80, 60), (70, 120, 230))


def social_recordings(count: int = 1, seconds: float = 180.0, rate: float = 10.0, seed: int = 4, **options) -> list[Recording]:
    """Make recordings of two mice with the behaviors of CalMS21."""
    return list(load_dataset("synthetic/pose", individuals=count, seconds=seconds, rate=rate, seed=seed, missing=0.0, **options))


def draw_video(recording: Recording, path: Path) -> Path:
    """Draw a recording's poses as dots and encode them."""
    positions = np.nan_to_num(recording.signals.positions)
    pixels = (positions * np.array([COLUMNS / WIDTH, ROWS / HEIGHT])).astype(int)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(recording.rate), options={"preset": "ultrafast", "crf": "30"})
        stream.width, stream.height, stream.pix_fmt = COLUMNS, ROWS, "yuv420p"
        for number, animals in enumerate(pixels):
            image = np.full((ROWS, COLUMNS, 3), 200, dtype=np.uint8)
            for points, color in zip(animals, COLORS, strict=True):
                for x, y in points:
                    image[max(0, y - 3) : y + 4, max(0, x - 3) : x + 4] = color
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, 1 / Fraction(recording.rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def plain_video(path: Path, seconds: float = 6.0, rate: int = 10, rows: int = 64, columns: int = 96) -> Path:
    """Encode a video that becomes brighter: at t seconds the gray value is 20 + 30 t."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "crf": "10"})
        stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
        for number in range(int(seconds * rate)):
            gray = np.full((rows, columns, 3), min(255, int(20 + 30 * number / rate)), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(gray, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
