"""Small videos for tests."""

from __future__ import annotations

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
