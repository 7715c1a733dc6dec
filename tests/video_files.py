"""Small videos for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest


def write_video(path: Path, n_frames: int, rate: int, codec: str = "libvpx") -> Path:
    """Write a video that grows brighter; the test is skipped without PyAV."""
    av = pytest.importorskip("av", reason="making a video needs av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for i in range(n_frames):
            picture = np.full((32, 32, 3), i * 255 // n_frames, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def write_numbered_video(
    path: Path, times: Sequence[float], codec: str = "libx264", size: tuple[int, int] = (64, 48), gop: int = 12
) -> Path:
    """Write a video with a picture at each time in seconds; the brightness of a picture is its number (see `picture_number`)."""
    av = pytest.importorskip("av", reason="making a video needs av")
    from fractions import Fraction

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(round(1 / (times[-1] - times[-2]))))  # and so the last picture is as long
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000 if codec != "mpeg4" else 30)
        stream.codec_context.gop_size = gop
        for number, time in enumerate(times):
            picture = np.full((size[1], size[0], 3), brightness(number), np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.time_base = stream.codec_context.time_base
            frame.pts = round(time / float(frame.time_base))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def brightness(number: int) -> int:
    """Return the gray level of a numbered picture; neighbors differ by much more than compression changes."""
    return 20 + number * 37 % 216


def picture_number(gray: float, near: int) -> int:
    """Return the number of the picture with this gray level, of those near a number."""
    return min(range(max(near - 2, 0), near + 3), key=lambda number: abs(brightness(number) - gray))


def decode(path: Path) -> list[np.ndarray]:
    """Return all pictures of a video as RGB arrays."""
    av = pytest.importorskip("av")
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
