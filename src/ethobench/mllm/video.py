"""X"""

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
HEADS = {
    0: (b"\x1aE\xdf\xa3", b"RIFF", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3", b"\x30\x26\xb2\x75"),  # Matroska, AVI, MPEG, MPEG, WMV
    4: (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"),  # MP4, QuickTime
}
"""How files of the types in `MIME` begin, by the offset of the bytes."""
JPEG_QUALITY = 4  # quantiser: 2 is best, 31 worst
SPEEDS = {"libx264": {"preset": "veryfast", "crf": "23"}, "mpeg4": {"qscale": "4"}}


def is_video(path: Path) -> bool:
    """Whether a file begins as a video file does; text, playlists and other documents do not."""
    with path.open("rb") as file:
        head = file.read(16)
    return any(head.startswith(marks, offset) for offset, marks in HEADS.items())


def read_frames(
    path: str | Path,
    start: float = 0.0,
    stop: float | None = None,
    *,
    fps: float | None = None,
    height: int | None = None,
    timestamps: bool = False,
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Yield the pictures of a stretch, each with its time since `start`.

    Parameters
    ----------
    path : str or Path
    start, stop : float
        Seconds; to the end unless told.
    fps : float, optional
        How many pictures for each second: the one shown at each of these times. All there are unless told.
    height : int, optional
        Make larger pictures as small as this, keeping their proportions.
    timestamps : bool
        Write the time since `start` into the upper left corner.
    """
    path = Path(path)
    with open_video(path) as (container, stream):
        size = _size(stream, height)
        for at, frame in _timed(_decoded(path, container, stream, start), start, stop, fps):
            shown = frame.reformat(width=size[0], height=size[1], format="rgb24").to_ndarray()
            if timestamps:
                draw_timestamp(shown, at)
            yield at, shown


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
    """Write a stretch of a video to a new MP4 file without sound; parameters as for `pictures`."""
    import av

    rate = Fraction(fps or probe(path).rate).limit_denominator(1001)
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    with atomic_path(Path(target), overwrite=True) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream: Any = None
        for number, (_, shown) in enumerate(read_frames(path, start, stop, fps=float(rate), height=height, timestamps=timestamps)):
            if stream is None:
                stream = container.add_stream(codec, rate=rate, options=SPEEDS[codec])
                stream.height, stream.width, stream.pix_fmt = shown.shape[0], shown.shape[1], "yuv420p"
            frame = av.VideoFrame.from_ndarray(shown, format="rgb24")
            frame.pts, frame.time_base = number, 1 / rate
            container.mux(stream.encode(frame))
        if stream is None:
            raise FormatError(path, f"there are no pictures between {start:g} s and {'the end' if stop is None else f'{stop:g} s'}")
        container.mux(stream.encode(None))


def encode_jpeg(picture: NDArray[np.uint8]) -> bytes:
    """Encode a picture as JPEG."""
    import av

    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.height, encoder.width, encoder.pix_fmt, encoder.time_base = *picture.shape[:2], "yuvj420p", Fraction(1)
    encoder.options = {"qmin": str(JPEG_QUALITY), "qmax": str(JPEG_QUALITY)}
    packets = [*encoder.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")), *encoder.encode(None)]
    return b"".join(bytes(packet) for packet in packets)


def _decoded(path: Path, container: Any, stream: Any, start: float) -> Iterator[tuple[float, Any]]:
    """Yield decoded frames and their times from the beginning of the file, from a key frame at or before `start`."""
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
        raise FormatError(path, f"no picture can be decoded after {start:g} s")


def _timed(frames: Iterator[tuple[float, Any]], start: float, stop: float | None, fps: float | None) -> Iterator[tuple[float, Any]]:
    """Yield frames with their times since `start`: those inside the stretch, or the one shown at each time of a regular clock."""
    end = float("inf") if stop is None else stop
    slack = 1e-6
    if fps is None:
        yield from ((t - start, frame) for t, frame in _until(frames, end - slack) if t >= start - slack)
        return
    number, shown, last, step = 0, None, 0.0, 0.0
    for t, frame in _until(frames, end - slack):
        while shown is not None and start + number / fps < t - slack:
            yield number / fps, shown
            number += 1
        step, last, shown = (t - last if shown is not None else 1 / fps), t, frame
    while shown is not None and start + number / fps < min(end, last + step) - slack:
        yield number / fps, shown
        number += 1


def _until(frames: Iterator[tuple[float, Any]], end: float) -> Iterator[tuple[float, Any]]:
    for t, frame in frames:
        if t >= end:
            return
        yield t, frame


def _size(stream: Any, height: int | None) -> tuple[int, int]:
    """Return width and height, both even as most codecs need it, and not above `height`."""
    scale = min(1.0, (height or stream.height) / stream.height)
    width, rows = (max(2, 2 * round(side * scale / 2)) for side in (stream.width, stream.height))
    return width, rows


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
ROWS_PER_PICTURE = 120


def draw_timestamp(picture: NDArray[np.uint8], seconds: float) -> None:
    """Write a time, as whole seconds that have passed, white on black into the upper left corner.

    Parameters
    ----------
    picture : array of uint8 (height, width, 3)
        Changed in place.
    seconds : float
    """
    scale = max(1, picture.shape[0] // ROWS_PER_PICTURE)
    text = render_text(format_clock(int(seconds)))
    box = np.kron(np.pad(text, 2), np.ones((scale, scale), dtype=np.uint8)) * 255
    height, width = min(box.shape[0], picture.shape[0]), min(box.shape[1], picture.shape[1])
    picture[:height, :width] = box[:height, :width, None]


def render_text(text: str) -> NDArray[np.uint8]:
    """Return a text as seven rows of zeros and ones."""
    glyphs = [np.array([[int(c) for c in row] for row in GLYPHS[character].split()], dtype=np.uint8) for character in text]
    return np.concatenate([np.pad(glyph, ((0, 0), (0, 1))) for glyph in glyphs], axis=1)
