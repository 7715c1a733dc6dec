"""Video files: frame rate, size and streams, read with PyAV."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, FormatError

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".ogv", ".avi")


@dataclass(frozen=True)
class VideoInfo:
    """Properties of a video file.

    Attributes
    ----------
    path : Path
    duration : float
        Length in seconds.
    rate : float
        Frames per second; the average if the frame rate varies.
    n_frames : int
        Length in frames at `rate`, as stated by the file, else computed from `duration`.
    width, height : int
        Size in pixels.
    size : int
        Size of the file in bytes.
    has_audio : bool
    """

    path: Path
    duration: float
    rate: float
    n_frames: int
    width: int
    height: int
    size: int
    has_audio: bool


def probe(path: str | Path) -> VideoInfo:
    """Read frame rate, length and size of a video file.

    Raises
    ------
    FormatError
        If the file is missing, damaged, or has no video stream.
    EthobenchError
        If PyAV is not installed.
    """
    path = Path(path)
    with open_video(path) as (container, stream):
        duration = _duration(path, container, stream)
        average = stream.average_rate or stream.guessed_rate
        if not average or duration <= 0:
            raise FormatError(path, "the video has no length or no frame rate; is the file complete?")
        rate = float(average)
        n_frames = int(stream.frames) or max(1, round(duration * rate))
        audio = bool(container.streams.audio)
        return VideoInfo(path, duration, rate, n_frames, stream.width, stream.height, path.stat().st_size, audio)


@contextmanager
def open_video(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a video file; yield its PyAV container and its first video stream. Errors of PyAV become a `FormatError` that names the file."""
    try:
        import av
    except ImportError:
        raise EthobenchError(f"{path}: reading a video needs PyAV; install it with: pip install 'ethobench[video]'") from None
    if not path.is_file():
        raise FormatError(path, "no such video file")
    try:
        with av.open(str(path)) as container:
            moving = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
            if not moving:
                content = "only sound" if container.streams.audio else "neither pictures nor sound"
                raise FormatError(path, f"not a video: the file has {content}")
            moving[0].thread_type = "AUTO"
            yield container, moving[0]
    except av.error.FFmpegError as error:
        raise FormatError(path, f"the video is damaged or its codec is unknown ({error.strerror})") from None


def _duration(path: Path, container: Any, stream: Any) -> float:
    """Return the length in seconds, as stated by the file or computed from its packets."""
    import av

    if stream.duration:
        return float(stream.duration * stream.time_base)
    if container.duration:
        return float(container.duration / av.time_base)
    ends = [p.pts + (p.duration or 0) for p in container.demux(stream) if p.pts is not None]
    if not ends:
        raise FormatError(path, "the video has no frames")
    return float((max(ends) - (stream.start_time or 0)) * stream.time_base)
