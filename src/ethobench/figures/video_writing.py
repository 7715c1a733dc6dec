"""Writing of MP4 files, picture by picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import atomic_path

ENCODERS = {"libx264": {"preset": "veryfast", "crf": "23"}, "mpeg4": {"qscale": "4"}}
"""Encoders by preference, and their options. Not every build of FFmpeg has an H.264 encoder."""


@contextmanager
def video_writer(path: str | Path, rate: float, *, overwrite: bool = False) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends a picture (a PIL image, or a PyAV frame) to a new MP4 file without sound.

    The file appears when the block ends without an error. All pictures must have the size of the first, which must be even.

    Parameters
    ----------
    path : str or Path
    rate : float
        Pictures per second.
    overwrite : bool
        Whether to replace an existing file.

    Raises
    ------
    PathExistsError
        If the file exists and `overwrite` is False.
    EthobenchError
        If PyAV is not installed.
    """
    try:
        import av
    except ImportError:
        raise EthobenchError(f"{path}: writing a video needs PyAV; install it with: pip install 'ethobench[video]'") from None
    fraction = Fraction(rate).limit_denominator(1001)
    codec = next(name for name in ENCODERS if name in av.codecs_available)
    options = {"movflags": "+faststart"}
    with atomic_path(path, overwrite=overwrite) as temporary, av.open(str(temporary), "w", format="mp4", options=options) as container:
        stream: Any = container.add_stream(codec, rate=fraction, options=ENCODERS[codec])
        stream.pix_fmt = "yuv420p"
        count = 0

        def append(picture: Any) -> None:
            nonlocal count
            frame: Any = picture if isinstance(picture, av.VideoFrame) else av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
            if not count:
                stream.width, stream.height = frame.width, frame.height
            frame.pts, frame.time_base = count, 1 / fraction
            container.mux(stream.encode(frame))
            count += 1

        yield append
        if not count:
            raise FormatError(path, "no picture was written")
        container.mux(stream.encode(None))
