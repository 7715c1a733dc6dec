"""Video frames at given times, and clips cut from a video, scaled and with timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError
from ethobench.core.files import atomic_path
from ethobench.core.video import open_video, probe
from ethobench.formats.text import format_clock

MIME = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/mov",
    ".avi": "video/avi",
    ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg",
    ".webm": "video/webm",
    ".wmv": "video/wmv",
}
SIGNATURES = {
    0: (b"\x1aE\xdf\xa3", b"RIFF", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3", b"\x30\x26\xb2\x75"),  # Matroska, AVI, MPEG, MPEG, WMV
    4: (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"),  # MP4, QuickTime
}
"""First bytes of files of the types in `MIME`, by their offset."""
JPEG_QUANTIZER = 4  # 2 is best, 31 worst
ENCODER_OPTIONS = {"libx264": {"preset": "veryfast", "crf": "23"}, "mpeg4": {"qscale": "4"}}
GLYPHS = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "01110 10001 00001 00110 00001 10001 01110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "01110 10000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00001 01110",
    ":": "00000 00100 00100 00000 00100 00100 00000",
}
"""Bitmaps of digits, 7 rows of 5 pixels. A font renderer would give other pixels on other machines for the same request."""
ROWS_PER_GLYPH_SCALE = 120


def is_video(path: Path) -> bool:
    """Whether a file begins with the signature of a video file. Text, playlists and other documents do not."""
    with path.open("rb") as file:
        head = file.read(16)
    return any(head.startswith(signatures, offset) for offset, signatures in SIGNATURES.items())


def read_frames(
    path: str | Path,
    start: float = 0.0,
    stop: float | None = None,
    *,
    fps: float | None = None,
    height: int | None = None,
    timestamps: bool = False,
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Yield the frames of a section of a video, each with its time in seconds from `start`.

    Parameters
    ----------
    path : str or Path
    start, stop : float
        Section in seconds; `stop` defaults to the end of the video.
    fps : float, optional
        Frames per second: the frame that is displayed at each of these times. Default: all frames.
    height : int, optional
        Maximum height in pixels. Larger frames are scaled down; the aspect ratio is kept.
    timestamps : bool
        Draw the time from `start` into the upper left corner.

    Yields
    ------
    time : float
    frame : array of uint8 (height, width, 3)
        RGB.
    """
    path = Path(path)
    with open_video(path) as (container, stream):
        width, height = _scaled_size(stream, height)
        for time, decoded in _sample(_decode(path, container, stream, start), start, stop, fps):
            frame = decoded.reformat(width=width, height=height, format="rgb24").to_ndarray()
            if timestamps:
                draw_timestamp(frame, time)
            yield time, frame


def write_clip(
    path: str | Path,
    target: str | Path,
    start: float = 0.0,
    stop: float | None = None,
    *,
    fps: float | None = None,
    height: int | None = None,
    timestamps: bool = False,
) -> None:
    """Write a section of a video to a new MP4 file without sound; parameters as for `read_frames`."""
    import av

    rate = Fraction(fps or probe(path).rate).limit_denominator(1001)
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    with atomic_path(Path(target), overwrite=True) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream: Any = None
        for number, (_, frame) in enumerate(read_frames(path, start, stop, fps=float(rate), height=height, timestamps=timestamps)):
            if stream is None:
                stream = container.add_stream(codec, rate=rate, options=ENCODER_OPTIONS[codec])
                stream.height, stream.width, stream.pix_fmt = frame.shape[0], frame.shape[1], "yuv420p"
            encoded = av.VideoFrame.from_ndarray(frame, format="rgb24")
            encoded.pts, encoded.time_base = number, 1 / rate
            container.mux(stream.encode(encoded))
        if stream is None:
            raise FormatError(path, f"no frames after {start:g} s" if stop is None else f"no frames between {start:g} s and {stop:g} s")
        container.mux(stream.encode(None))


def encode_jpeg(frame: NDArray[np.uint8]) -> bytes:
    """Encode an RGB frame as JPEG."""
    import av

    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.height, encoder.width, encoder.pix_fmt, encoder.time_base = *frame.shape[:2], "yuvj420p", Fraction(1)
    encoder.options = {"qmin": str(JPEG_QUANTIZER), "qmax": str(JPEG_QUANTIZER)}
    packets = [*encoder.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")), *encoder.encode(None)]
    return b"".join(bytes(packet) for packet in packets)


def draw_timestamp(frame: NDArray[np.uint8], seconds: float) -> None:
    """Draw a time, truncated to seconds, in white on black into the upper left corner.

    Parameters
    ----------
    frame : array of uint8 (height, width, 3)
        Changed in place.
    seconds : float
    """
    scale = max(1, frame.shape[0] // ROWS_PER_GLYPH_SCALE)
    text = render_text(format_clock(int(seconds)))
    box = np.kron(np.pad(text, 2), np.ones((scale, scale), dtype=np.uint8)) * 255
    height, width = min(box.shape[0], frame.shape[0]), min(box.shape[1], frame.shape[1])
    frame[:height, :width] = box[:height, :width, None]


def render_text(text: str) -> NDArray[np.uint8]:
    """Return digits and colons as a bitmap of zeros and ones, 7 rows high."""
    glyphs = [np.array([[int(c) for c in row] for row in GLYPHS[character].split()], dtype=np.uint8) for character in text]
    return np.concatenate([np.pad(glyph, ((0, 0), (0, 1))) for glyph in glyphs], axis=1)


def _decode(path: Path, container: Any, stream: Any, start: float) -> Iterator[tuple[float, Any]]:
    """Yield decoded frames with their time in the file, from the last key frame at or before `start`."""
    origin = stream.start_time or 0
    if start > 0:
        container.seek(int(start / stream.time_base) + origin, stream=stream)
    count = 0
    for frame in container.decode(stream):
        if frame.pts is None:
            continue
        count += 1
        yield float((frame.pts - origin) * stream.time_base), frame
    if not count:
        raise FormatError(path, f"no frame can be decoded after {start:g} s")


def _sample(frames: Iterator[tuple[float, Any]], start: float, stop: float | None, fps: float | None) -> Iterator[tuple[float, Any]]:
    """Yield frames with their time from `start`: all frames of the section, or the one displayed at each time of a regular clock."""
    end = float("inf") if stop is None else stop
    tolerance = 1e-6
    if fps is None:
        yield from ((t - start, frame) for t, frame in _before(frames, end - tolerance) if t >= start - tolerance)
        return
    number, displayed, last, step = 0, None, 0.0, 0.0
    for t, frame in _before(frames, end - tolerance):
        while displayed is not None and start + number / fps < t - tolerance:
            yield number / fps, displayed
            number += 1
        step, last, displayed = (t - last if displayed is not None else 1 / fps), t, frame
    while displayed is not None and start + number / fps < min(end, last + step) - tolerance:
        yield number / fps, displayed
        number += 1


def _before(frames: Iterator[tuple[float, Any]], end: float) -> Iterator[tuple[float, Any]]:
    for t, frame in frames:
        if t >= end:
            return
        yield t, frame


def _scaled_size(stream: Any, max_height: int | None) -> tuple[int, int]:
    """Return width and height: even, as most codecs require, and at most `max_height` high."""
    scale = min(1.0, (max_height or stream.height) / stream.height)
    width, height = (max(2, 2 * round(side * scale / 2)) for side in (stream.width, stream.height))
    return width, height
