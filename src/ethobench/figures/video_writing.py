"""Writing of MP4 files, picture by picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import atomic_path
from ethobench.core.progress import report_progress
from ethobench.core.video import Pictures, probe

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


TIME_BASE = Fraction(1, 90_000)
KEY_FRAME_EVERY = 30  # pictures; so that the browser reaches every frame quickly
BROWSER_OPTIONS = {"preset": "veryfast", "crf": "20", "bf": "0"}
REPORT_EVERY = 20


def transcode(source: str | Path, target: str | Path, *, overwrite: bool = False) -> int:
    """Convert a video to H.264 in MP4, which all browsers play. Presentation times and size are kept; sound is dropped.

    Parameters
    ----------
    source : str or Path
    target : str or Path
        Appears when it is complete.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    int
        Number of damaged packets that were skipped.

    Raises
    ------
    FormatError
        If nothing can be decoded.
    EthobenchError
        If PyAV is missing, or has no H.264 encoder.
    """
    source = Path(source)
    duration = probe(source).duration
    import av

    if "libx264" not in av.codecs_available:
        raise EthobenchError(f"{source}: this PyAV has no H.264 encoder; convert the video with another program")
    pictures = Pictures(source)
    options = {"movflags": "+faststart"}
    with atomic_path(target, overwrite=overwrite) as temporary, av.open(str(temporary), "w", format="mp4", options=options) as container:
        stream: Any = container.add_stream("libx264", options=BROWSER_OPTIONS)
        stream.pix_fmt, stream.codec_context.time_base, stream.codec_context.gop_size = "yuv420p", TIME_BASE, KEY_FRAME_EVERY
        last = -1
        for number, (time, picture) in enumerate(pictures):
            if last < 0:
                stream.width, stream.height = picture.width - picture.width % 2, picture.height - picture.height % 2
            frame = picture.reformat(width=stream.width, height=stream.height, format="yuv420p")
            last = max(round(time / TIME_BASE), last + 1)
            frame.pts, frame.time_base = last, TIME_BASE
            frame.pict_type = 0  # the types of the source would force its key frames
            container.mux(stream.encode(frame))
            if number % REPORT_EVERY == 0:
                report_progress(f"converting {source.name}", time / duration)
        if last < 0:
            raise FormatError(source, "no picture can be decoded")
        container.mux(stream.encode(None))
    return pictures.damaged
