"""The clock of a video: frame rate and length of recordings for which no other file states them.

Clocks are cached until the video file changes (`cached_text`), so that a manifest of hundreds of videos is slow to load only once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ethobench.core import Annotation, Observed, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import MAX_EXCESS
from ethobench.core.video import probe
from ethobench.formats.parse_cache import cache_folder, cached_text

SAME_RATE = 1e-4  # relative difference below which two frame rates are the same: 29.97 and 30000/1001


@dataclass(frozen=True)
class VideoClock:
    """Rate and length of a video.

    Attributes
    ----------
    name : str
        Name of the video in the manifest.
    rate : float
        Frames per second.
    n_frames : int
        Length in frames.
    duration : float
        Length in seconds.
    """

    name: str
    rate: float
    n_frames: int
    duration: float

    def frames_at(self, rate: float) -> int:
        """Return the length in frames at another rate."""
        return self.n_frames if _same_rate(rate, self.rate) else max(1, round(self.duration * rate))

    def is_as_long_as(self, n_frames: int | None) -> bool:
        """Whether the video has this number of frames, within 1 %."""
        return n_frames is not None and abs(self.n_frames - n_frames) <= max(1, MAX_EXCESS * n_frames)

    def note_on_rate(self, rate: float) -> list[Note]:
        """Return a note if the rate of a recording differs from that of the video."""
        if _same_rate(rate, self.rate):
            return []
        length = f"{self.frames_at(rate)} frames in {self.duration:g} s"
        message = f"the video has {self.rate:g} frames per second, but the recording is read at {rate:g} Hz: {length}"
        return [Note(message, self.name, "rates-differ")]


def read_video_clock(path: Path, name: str) -> tuple[VideoClock | None, list[Note]]:
    """Read the clock of a video; return None and a note if it cannot be read.

    Parameters
    ----------
    path : Path
    name : str
        Name of the video in notes.
    """
    try:
        return VideoClock(name, *_cached_clock(path)), []
    except EthobenchError as error:
        return None, [Note(f"{error}; so frame rate and length of the video are unknown", code="video-not-read")]


def _cached_clock(path: Path) -> tuple[float, int, float]:
    """Return rate, length in frames and duration of a video file, from the cache if possible."""
    if not path.is_file():
        raise FormatError(path, "no such video file")
    text = cached_text(path, cache_folder() / "videos", lambda: _probe_clock(path))
    rate, n_frames, duration = json.loads(text)
    return float(rate), int(n_frames), float(duration)


def _probe_clock(path: Path) -> str:
    video = probe(path)
    return json.dumps((video.rate, video.n_frames, video.duration))


def with_video_clock(recording: Recording) -> Recording:
    """Set the rate of a recording to that of its video if unknown and, if there are no signals, its length to that of the video."""
    if recording.video is None or not recording.video.is_file() or (recording.signals is not None and recording.rate is not None):
        return recording
    clock, notes = read_video_clock(recording.video, recording.video.name)
    if clock is None:
        return recording.copy(notes=(*recording.notes, *notes))
    if recording.signals is not None:
        return recording.copy(rate=clock.rate) if clock.is_as_long_as(recording.n_frames) else recording
    rate, annotations = recording.rate or clock.rate, {}
    for name, annotation in recording.annotations.items():
        annotations[name], more_notes = fit_to_video(annotation, clock, name)
        notes += more_notes
    length = max([clock.frames_at(rate), *(a.n_frames for a in annotations.values() if a.rate == rate)])
    return recording.copy(rate=rate, n_frames=length, annotations=annotations, notes=(*recording.notes, *notes))


def fit_to_video(annotation: Annotation, clock: VideoClock, name: str) -> tuple[Annotation, list[Note]]:
    """Crop or extend an annotation to the length of its video.

    Many files state no length, so that an annotation ends with its last bout although the video continues. Such an annotation is taken
    as observed to the end of the video, unless it labels every frame: then the remaining frames are unobserved.

    Parameters
    ----------
    annotation : Annotation
    clock : VideoClock
    name : str
        Name of the annotation in notes.

    Examples
    --------
    >>> clock = VideoClock("m1.mp4", 10.0, 600, 60.0)
    >>> labels = Annotation.from_bouts([100], [200], ["groom"], ["groom"], rate=10, n_frames=200)
    >>> fitted, notes = fit_to_video(labels, clock, "m1.csv")
    >>> fitted.n_frames, fitted.observed
    (600, Observed(600 frames in 1 intervals))
    >>> str(notes[0])
    'm1.csv: ends with its last bout at 20 s; taken as observed to the end of the video at 60 s'
    """
    length, end = clock.frames_at(annotation.rate), annotation.n_frames
    if end > length:
        if end - length <= max(1, MAX_EXCESS * length):
            return annotation.crop(0, length), [Note(f"labels end {end - length} frames after the video; cropped", name, "length")]
        return annotation, [Note(f"labels end at {end / annotation.rate:g} s, but the video at {clock.duration:g} s", name, "length")]
    if end == length:
        return annotation, []
    n_labeled = iv.total(iv.union(iv.Intervals(annotation.start, annotation.stop)))
    ends_with_bout = len(annotation) > 0 and int(annotation.stop.max()) == end and n_labeled < end
    extended = annotation.extend(length)
    if ends_with_bout and annotation.observed.is_complete(end):
        message = f"ends with its last bout at {end / annotation.rate:g} s; taken as observed to the end of the video"
        return extended.with_observed(Observed.full(length)), [Note(f"{message} at {clock.duration:g} s", name, "length")]
    return extended, [Note(f"labels end {length - end} frames before the video; the remaining frames are unobserved", name, "length")]


def _same_rate(a: float, b: float) -> bool:
    return abs(a - b) <= SAME_RATE * b
