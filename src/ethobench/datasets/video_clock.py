"""The clock of a recording's video: frame rate and length where no other file states them.

Clocks are cached for each state of the video file (`cached_text`), so that a manifest of hundreds of videos is slow to load once only.
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
        The video as the manifest names it.
    rate : float
        Frames per second.
    n_frames : int
        Length in frames of the video.
    duration : float
        Length in seconds.
    """

    name: str
    rate: float
    n_frames: int
    duration: float

    def frames_at(self, rate: float) -> int:
        """Return the length in frames of a recording that counts `rate` frames per second."""
        return self.n_frames if _same_rate(rate, self.rate) else max(1, round(self.duration * rate))

    def is_as_long_as(self, n_frames: int | None) -> bool:
        """Whether the video has so many frames, give or take 1 %."""
        return n_frames is not None and abs(self.n_frames - n_frames) <= max(1, MAX_EXCESS * n_frames)

    def note_on_rate(self, rate: float) -> list[Note]:
        """Return a note where a recording counts frames at another rate than the video has."""
        if _same_rate(rate, self.rate):
            return []
        length = f"{self.frames_at(rate)} frames in {self.duration:g} s"
        return [Note(f"the video has {self.rate:g} frames per second, but the recording is read at {rate:g} Hz: {length}", self.name)]


def read_video_clock(path: Path, name: str) -> tuple[VideoClock | None, list[Note]]:
    """Read the clock of a video; where it cannot be read, None and a note that says why.

    Parameters
    ----------
    path : Path
    name : str
        What to call the video in notes.
    """
    try:
        return VideoClock(name, *_cached_clock(path)), []
    except EthobenchError as error:
        return None, [Note(f"{error}; so the video gives neither frame rate nor length")]


def _cached_clock(path: Path) -> tuple[float, int, float]:
    """Return rate, length in frames and duration of a video file, from the cache where they have been read before."""
    if not path.is_file():
        raise FormatError(path, "there is no such video file")
    text = cached_text(path, cache_folder() / "videos", lambda: _probe_clock(path))
    rate, n_frames, duration = json.loads(text)
    return float(rate), int(n_frames), float(duration)


def _probe_clock(path: Path) -> str:
    video = probe(path)
    return json.dumps((video.rate, video.n_frames, video.duration))


def with_video_clock(recording: Recording) -> Recording:
    """Give a recording the rate of its video where none is known and, where there are no signals, the length of its video."""
    if recording.video is None or not recording.video.is_file() or (recording.signals is not None and recording.rate is not None):
        return recording
    clock, notes = read_video_clock(recording.video, recording.video.name)
    if clock is None:
        return recording.copy(notes=(*recording.notes, *notes))
    if recording.signals is not None:
        return recording.copy(rate=clock.rate) if clock.is_as_long_as(recording.n_frames) else recording
    rate, annotations = recording.rate or clock.rate, {}
    for name, annotation in recording.annotations.items():
        annotations[name], more = fit_to_video(annotation, clock, name)
        notes += more
    length = max([clock.frames_at(rate), *(a.n_frames for a in annotations.values() if a.rate == rate)])
    return recording.copy(rate=rate, n_frames=length, annotations=annotations, notes=(*recording.notes, *notes))


def fit_to_video(annotation: Annotation, clock: VideoClock, name: str) -> tuple[Annotation, list[Note]]:
    """Give an annotation the length of its video.

    Many files state no length, so that an annotation ends with its last bout although the video goes on. Such an annotation is
    taken as observed to the end of the video, unless it labels every frame: then the labels ended early, and the rest is unobserved.

    Parameters
    ----------
    annotation : Annotation
    clock : VideoClock
    name : str
        What to call the annotation in notes.

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
            return annotation.crop(0, length), [Note(f"labels end {end - length} frames after the video; cut", name)]
        return annotation, [Note(f"labels go on to {end / annotation.rate:g} s, but the video ends at {clock.duration:g} s", name)]
    if end == length:
        return annotation, []
    labelled = iv.total(iv.union(iv.Intervals(annotation.start, annotation.stop)))
    ends_with_bout = len(annotation) > 0 and int(annotation.stop.max()) == end and labelled < end
    longer = annotation.extend(length)
    if ends_with_bout and annotation.observed.is_complete(end):
        message = f"ends with its last bout at {end / annotation.rate:g} s; taken as observed to the end of the video"
        return longer.with_observed(Observed.full(length)), [Note(f"{message} at {clock.duration:g} s", name)]
    return longer, [Note(f"labels end {length - end} frames before the video; the rest is unobserved", name)]


def _same_rate(a: float, b: float) -> bool:
    return abs(a - b) <= SAME_RATE * b
