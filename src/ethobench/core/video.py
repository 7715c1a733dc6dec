"""Video files: frame rate, size and streams, presentation times, and the pictures displayed at given times; read with PyAV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import EthobenchError, FormatError

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".ogv", ".avi")
TIME_TOLERANCE = 1e-6
MAX_DAMAGED = 10_000
"""Number of damaged packets after which a video is taken to end."""
MAX_DEVIATION = 0.5
"""Maximum deviation of a picture from a constant frame rate, in frames. With less, the middle of each frame shows the right picture."""


@dataclass(frozen=True)
class Camera:
    """A video of a recording.

    Attributes
    ----------
    path : Path
    offset : float
        Time in the video at which the recording starts, in seconds. Negative if the camera was started later.

    Examples
    --------
    >>> Camera(Path("side.mp4"), offset=-0.4).offset
    -0.4
    """

    path: Path
    offset: float = 0.0


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
    codec : str
        FFmpeg's name of the video codec, such as ``"h264"``.
    """

    path: Path
    duration: float
    rate: float
    n_frames: int
    width: int
    height: int
    size: int
    has_audio: bool
    codec: str = ""


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
        return VideoInfo(path, duration, rate, n_frames, stream.width, stream.height, path.stat().st_size, audio, stream.codec_context.name)


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
                if container.streams.audio:
                    raise FormatError(path, "not a video: the file has only sound")
                raise FormatError(path, "not a video: the file has neither pictures nor sound")
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


def presentation_times(path: str | Path) -> NDArray[np.float64]:
    """Return the time of each picture of a video in seconds from its first, in the order in which they are displayed.

    Nothing is decoded. If the index of the file shows a constant frame rate, the file is not read further; otherwise all packets are.

    Raises
    ------
    FormatError
        If the file is missing, damaged, or has no pictures.
    """
    path = Path(path)
    with open_video(path) as (container, stream):
        times = _times_from_index(stream)
        if times is None:
            stamps = [p.pts if p.pts is not None else p.dts for p in container.demux(stream) if p.pts is not None or p.dts is not None]
            times = np.sort(np.array(stamps, dtype=np.float64)) * float(stream.time_base)
    if not len(times):
        raise FormatError(path, "the video has no pictures")
    return np.asarray(times - times[0], dtype=np.float64)


def _times_from_index(stream: Any) -> NDArray[np.float64] | None:
    """Return the times of a video with a constant frame rate from the index of its file; None if there is no complete index.

    The index has decoding times. They are regular if and only if presentation times are, apart from the order of the pictures.
    """
    index = getattr(stream, "index_entries", ())  # PyAV < 16 has none
    if not stream.frames or len(index) != stream.frames:
        return None
    times = np.array([entry.timestamp for entry in index], dtype=np.float64) * float(stream.time_base)
    return times if constant_rate(times) is not None else None


def constant_rate(times: NDArray[np.float64]) -> float | None:
    """Return the frame rate if pictures at these times are displayed at a constant rate; None if the rate varies.

    Examples
    --------
    >>> constant_rate(np.arange(100) / 25)
    25.0
    >>> constant_rate(np.concatenate((np.arange(50), np.arange(52, 100))) / 25) is None  # two dropped frames
    True
    """
    n = len(times)
    if n < 2 or times[-1] <= times[0]:
        return None
    rate = float((n - 1) / (times[-1] - times[0]))
    deviation = np.abs((times - times[0]) * rate - np.arange(n))
    return rate if float(deviation.max()) < MAX_DEVIATION else None


@dataclass
class Pictures:
    """The pictures of a video at increasing times, decoded one after the other.

    Attributes
    ----------
    path : Path
    damaged : int
        Number of packets so far that could not be decoded. They are skipped, and the picture before is displayed longer.
    """

    path: Path
    damaged: int = 0

    def __iter__(self) -> Iterator[tuple[float, Any]]:
        """Yield all pictures with their time in seconds from the first."""
        with open_video(self.path) as (container, stream):
            yield from self._decode(container, stream, 0.0)

    def at(self, times: Iterable[float]) -> Iterator[Any]:
        """Yield the picture that is displayed at each time, as a PyAV frame; None before the first and after the last picture.

        Parameters
        ----------
        times : iterable of float
            Seconds from the first picture, in increasing order.
        """
        pending = iter(times)
        time = next(pending, None)
        if time is None:
            return
        with open_video(self.path) as (container, stream):
            displayed, shown_from = None, 0.0
            for start, picture in self._decode(container, stream, time):
                while time is not None and time < start - TIME_TOLERANCE:
                    yield displayed
                    time = next(pending, None)
                if time is None:
                    return
                displayed, shown_from = picture, start
            if displayed is None and self.damaged:
                raise FormatError(self.path, f"the video is damaged: nothing can be decoded after {time:g} s")
            end = shown_from + 1 / float(stream.average_rate or stream.guessed_rate or 25)
            while time is not None:
                yield displayed if time < end - TIME_TOLERANCE else None
                time = next(pending, None)

    def _decode(self, container: Any, stream: Any, start: float) -> Iterator[tuple[float, Any]]:
        """Yield decoded pictures with their time, from the last key frame at or before `start`."""
        import av

        origin = stream.start_time or 0
        if start > 0:
            container.seek(int(start / stream.time_base) + origin, stream=stream)
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
                pictures = packet.decode()
            except StopIteration:
                return
            except av.error.EOFError:
                return
            except av.error.FFmpegError:
                self.damaged += 1
                if self.damaged > MAX_DAMAGED:
                    return
                continue
            for picture in pictures:
                stamp = picture.pts if picture.pts is not None else picture.dts
                if stamp is not None:
                    yield float((stamp - origin) * stream.time_base), picture
