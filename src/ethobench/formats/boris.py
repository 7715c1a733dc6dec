"""BORIS projects (``.boris``): JSON with several observations, subjects, modifiers, point and state events.

Entries are observations. The frame rate is that of the video; observations without one are read at 1000 Hz. The file does not mark
state events as start or stop: in each track (subject, behavior, modifiers) they alternate. Event times count from the beginning of the
first media file, without the time offset. An observation without events may not have been coded yet, so it is unobserved, unless it
states a time interval. In observations of images, the frames are the images.

Written observations name their video, or else the recording as a placeholder, because BORIS stores the rate and the length by media file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf, isfinite
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, Behavior, Ethogram, Recording
from ethobench.core.errors import FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, Option
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_logs
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.boris_tables import NO_FOCAL_SUBJECT
from ethobench.formats.bouts import SECONDS_RATE, background_notes, frames_rate, origin_of
from ethobench.formats.event_logs import POINT, Event
from ethobench.formats.text import Head, encoding_of, parse_number, read_json

PLAYERS = tuple(str(i) for i in range(1, 9))
LIVE, IMAGES = "LIVE", "IMAGES"
CLOCK_TIMES = ("start_from_current_time", "start_from_current_epoch_time")
TITLE = "BORIS project"
KEYS = ("behaviors_conf", "subjects_conf", "project_format_version", "behavioral_categories", "coding_map", "time_format")


@register_format("boris")
class Boris(Format):
    """A project with its observations."""

    title = TITLE
    suffixes = (".boris",)
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "observed", "length")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        # Projects are one long line, which `head.text` would cut off.
        text = head.raw.decode(encoding_of(head.raw), errors="replace").lstrip("\ufeff \r\n\t")
        if not text.startswith("{"):
            return 0.0
        if sum(f'"{key}"' in text for key in KEYS) >= 2:
            return 1.0
        return 0.8 if path.suffix.lower() == ".boris" else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_project(path)["observations"])

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        project = _project(path)
        behaviors, notes = _behaviors(project)
        subjects = [name for s in _numbered_values(project.get("subjects_conf")) if (name := str(_mapping(s).get("name") or ""))]
        recordings = []
        for name in select_entries(path, entry, list(project["observations"])):
            fields = project["observations"][name]
            if not isinstance(fields, dict):
                raise FormatError(path, "an observation must be a JSON object", f"observation {name!r}")
            recording = _ObservationReader(path, name, fields, behaviors, subjects).read(rate)
            recording.notes = (*notes, *recording.notes)
            recordings.append(recording)
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        project, notes = _project_of(recordings)
        path.write_text(json.dumps(project, ensure_ascii=False), encoding="utf-8")
        return notes


@dataclass
class _ObservationReader:
    """Reader of one observation.

    Attributes
    ----------
    path : Path
    name : str
        Observation id.
    fields : mapping
        JSON object of the observation.
    behaviors : mapping of str to Behavior
        Ethogram of the project, by code.
    subjects : sequence of str
        Subjects of the project.
    """

    path: Path
    name: str
    fields: Mapping[str, Any]
    behaviors: Mapping[str, Behavior]
    subjects: Sequence[str]
    notes: list[Note] = field(default_factory=list)

    def read(self, rate: float | None) -> Recording:
        """Return the observation at the frame rate of its video, or at `rate`."""
        events, images = self._events()
        ethogram = self._ethogram(events)
        media, lengths, fps = self._media()
        length = sum(lengths) if lengths else None
        window = self._window()
        if images:
            events = [replace(event, time=float(image)) for event, image in zip(events, images, strict=True)]
            fps = self._rate_of_images()
            clock, length = fps or self._assumed_rate_of_images(rate), max(images) + 1.0
        else:
            clock = rate or fps or SECONDS_RATE
            events, window = self._times_from_start(events, window, length)
            if self.fields.get("type") != LIVE and not fps and rate is None:
                self._note(Message(f"no frame rate in the file; assuming {clock:g} Hz (set it with ", Option("rate"), ")"), "assumed-rate")
        if not events and window is None:
            window = (0.0, 0.0)
            self._note("no events; read as unobserved", "no-events")
        observation = event_logs.pair_events(self.path, event_logs.alternate_starts_and_stops(events))
        annotation, notes = observation.to_annotation(
            ethogram, clock, seconds=not images, length=length, window=window, subjects=self.subjects
        )
        notes = [replace(note, location=note.location or self._location()) for note in notes]
        if rate is not None and rate != annotation.rate:
            annotation = annotation.resample(rate)
            self._note(f"resampled from {clock:g} Hz to {rate:g} Hz", "resampled")
        details = {key: self.fields[key] for key in ("type", "date", "description", "independent_variables") if self.fields.get(key)}
        if media:
            details |= {"media": media, "media_lengths": lengths}
        return Recording(
            self.name,
            annotations={DEFAULT_ANNOTATOR: annotation},
            subjects=annotation.subjects,
            metadata=details,
            notes=(*self.notes, *notes),
            clock_origin=origin_of(fps),
        )

    def _events(self) -> tuple[list[Event], list[int]]:
        """Return the events, and for observations of images the image index of each event."""
        rows = self.fields.get("events") or []
        if not isinstance(rows, list):
            raise FormatError(self.path, "the events must be a list", self._location())
        events, images = [], []
        for i, row in enumerate(rows, start=1):
            location = self._location(f"event {i}")
            if not isinstance(row, list) or len(row) < 3:
                raise FormatError(self.path, "an event must be a list of time, subject, behavior, modifiers and comment", location)
            subject, code, modifiers, comment = ("" if cell is None else str(cell) for cell in [*row[1:5], "", ""][:4])
            subject = "" if subject == NO_FOCAL_SUBJECT else subject
            kind = "" if code in self.behaviors and not self.behaviors[code].point else POINT
            time = _number(row[0])
            image = _number(row[5]) if self.fields.get("type") == IMAGES and len(row) > 5 else None
            if image is not None:
                images.append(int(image))
            elif time is None:
                raise FormatError(self.path, f"an event of {code!r} has no time", location)
            events.append(Event(time or 0.0, kind, code, subject, modifiers, comment, location=location))
        if images and len(images) < len(events):
            raise FormatError(self.path, "only some of the events have an image index", self._location())
        return events, images

    def _ethogram(self, events: Sequence[Event]) -> Ethogram:
        unknown = dict.fromkeys(e.behavior for e in events if e.behavior.strip() and e.behavior not in self.behaviors)
        if unknown:
            message = f"behaviors not in the ethogram of the project, read as point events as in BORIS: {', '.join(unknown)}"
            self._note(message, "unknown-behaviors")
        behaviors = [*self.behaviors.values(), *(Behavior(name, point=True) for name in unknown)]
        return Ethogram(behaviors, guess_background(b.name for b in behaviors))

    def _media(self) -> tuple[list[str], list[float], float | None]:
        """Return the media files of the first player that has any, their lengths (empty unless all are stated) and their frame rate."""
        players = _mapping(self.fields.get("file"))
        media = next(([str(f) for f in files] for n in PLAYERS if isinstance(files := players.get(n), list) and files), [])
        info = _mapping(self.fields.get("media_info"))
        lengths = [_positive(_mapping(info.get("length")).get(file)) for file in media]
        rates = [_positive(_mapping(info.get("fps")).get(file)) for file in media]
        stated_rates = list(dict.fromkeys(fps for fps in rates if fps))
        if len(stated_rates) > 1:
            values = ", ".join(f"{fps:g}" for fps in stated_rates)
            self._note(f"the media files have several frame rates ({values}); using the first", "several-rates")
        unknown = [file for file, length in zip(media, lengths, strict=True) if length is None]
        if unknown or (not media and self.fields.get("type") not in (LIVE, IMAGES)):
            file = unknown[0] if unknown else "the media"
            self._note(f"the length of {file} is not stated; the recording ends with the last event", "unknown-length")
        return media, [] if unknown else [length for length in lengths if length], stated_rates[0] if stated_rates else None

    def _window(self) -> tuple[float, float] | None:
        """Return start and stop of the observed period in seconds; None if all is observed. A stop of 0 means the end."""
        interval = self.fields.get("observation time interval") or [0, 0]
        numbers = [_number(value) for value in interval] if isinstance(interval, list) else []
        if len(numbers) != 2 or None in numbers:
            raise FormatError(self.path, f"the observation time interval must be two numbers, got {interval!r}", self._location())
        start, stop = (number or 0.0 for number in numbers)
        return (start, stop or inf) if start or stop else None

    def _rate_of_images(self) -> float | None:
        """Return the rate at which the images were taken, if the observation states it."""
        delay = _positive(self.fields.get("time_lapse_delay"))
        return 1 / delay if delay else None

    def _assumed_rate_of_images(self, rate: float | None) -> float:
        clock, notes = frames_rate(rate)
        self.notes += [replace(note, location=self._location()) for note in notes]
        return clock

    def _times_from_start(
        self, events: list[Event], window: tuple[float, float] | None, length: float | None
    ) -> tuple[list[Event], tuple[float, float] | None]:
        """Return events and observed period with times in seconds from the beginning of the recording."""
        offset = _number(self.fields.get("time offset") or 0)
        if offset is None:
            raise FormatError(self.path, f"the time offset must be a number, got {self.fields['time offset']!r}", self._location())
        if self.fields.get("media_creation_date_as_offset"):
            created = _numbered_values(_mapping(self.fields.get("media_info")).get("media_creation_time"))
            if len(created) != 1 or (date := _number(created[0])) is None:
                raise FormatError(self.path, "times relative to media creation dates need exactly one media file", self._location())
            offset += date
        times, notes = event_logs.without_offset([event.time for event in events], offset, length)
        self.notes += [replace(note, location=self._location()) for note in notes]
        if times and self.fields.get("type") == LIVE and any(self.fields.get(key) for key in CLOCK_TIMES):
            first = min(times)
            self._note(f"times are times of day; counted from the first event, at {first:.3f} s", "clock-times")
            times = [round(time - first, 6) for time in times]
            window = None if window is None else (max(window[0] - first, 0.0), window[1] - first)
        return [replace(event, time=time) for event, time in zip(events, times, strict=True)], window

    def _location(self, detail: str = "") -> str:
        return f"observation {self.name!r}{', ' + detail if detail else ''}"

    def _note(self, message: str, code: str) -> None:
        self.notes.append(Note(message, self._location(), code))


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if the value is not an object."""
    return value if isinstance(value, dict) else {}


def _numbered_values(numbered: Any) -> list[Any]:
    """Return the values of ``{"0": ..., "1": ...}`` in the order of the numbers."""
    keys = sorted(_mapping(numbered), key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0))
    return [numbered[key] for key in keys]


def _number(value: Any) -> float | None:
    try:
        number = parse_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def _positive(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _project_of(recordings: Sequence[Recording]) -> tuple[dict[str, Any], list[Note]]:
    """Return a project with the recordings as observations, and notes on what it cannot store."""
    event_logs.check_ids(TITLE, [r.id for r in recordings])
    annotations = [r.annotation() for r in recordings]
    ethogram = Ethogram([])
    for annotation in annotations:
        ethogram = ethogram.join(annotation.ethogram)
    points = event_logs.point_behaviors(annotations)
    notes = background_notes(TITLE, ethogram)
    lasting = [b.name for b in ethogram if b.point and b.name not in points]
    if lasting:
        message = f"point behaviors with bouts that have a duration are written as state behaviors: {', '.join(lasting)}"
        notes.append(Note(message, code="changed-type"))
    observations = {}
    for recording, annotation in zip(recordings, annotations, strict=True):
        observations[recording.id], more_notes = _observation(recording, annotation, points)
        notes += more_notes
    subjects = dict.fromkeys(name for a in annotations for name in a.subjects)
    project = {
        "time_format": "hh:mm:ss",
        "project_date": datetime.now().isoformat(timespec="seconds"),
        "project_name": "",
        "project_description": "",
        "project_format_version": "7.0",
        "subjects_conf": {str(i): {"key": "", "name": name, "description": ""} for i, name in enumerate(subjects)},
        "behaviors_conf": {str(i): _behavior(b, points) for i, b in enumerate(ethogram)},
        "observations": observations,
        "behavioral_categories": [],
        "behavioral_categories_config": {},
        "independent_variables": {},
        "coding_map": {},
        "behaviors_coding_map": [],
        "converters": {},
    }
    return project, notes


def _observation(recording: Recording, a: Annotation, points: set[str]) -> tuple[dict[str, Any], list[Note]]:
    event_logs.check_rate(TITLE, a.rate)
    events, notes = event_logs.events_of(a, points)
    media, lengths = _media_of(recording, a)
    interval, more_notes = _interval(recording, a)
    date = recording.metadata.get("date")
    fields = {
        "file": {player: media if player == "1" else [] for player in PLAYERS},
        "type": "MEDIA",
        "date": date if isinstance(date, str) else (recording.start_time or datetime.now()).isoformat(timespec="seconds"),
        "description": str(recording.metadata.get("description") or ""),
        "time offset": 0.0,
        "events": [[event_logs.event_seconds(e, a.rate), e.subject, e.behavior, e.modifiers, e.comment, int(e.time)] for e in events],
        "observation time interval": interval,
        "independent_variables": dict(_mapping(recording.metadata.get("independent_variables"))),
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "media_creation_date_as_offset": False,
        "media_scan_sampling_duration": 0,
        "image_display_duration": 1,
        "close_behaviors_between_videos": False,
        "media_info": {
            "length": dict(zip(media, lengths, strict=True)),
            "fps": dict.fromkeys(media, a.rate),
            "hasVideo": dict.fromkeys(media, True),
            "hasAudio": dict.fromkeys(media, False),
            "offset": {"1": 0.0},
        },
    }
    return fields, notes + more_notes


def _media_of(recording: Recording, a: Annotation) -> tuple[list[str], list[float]]:
    """Return media files and their lengths: those of the source file, the video, or the recording's name as a placeholder."""
    media: list[str] = list(recording.metadata.get("media") or ())
    lengths: list[float] = list(recording.metadata.get("media_lengths") or ())
    if len({*media}) == len(media) == len(lengths) > 0 and abs(sum(lengths) * a.rate - a.n_frames) < 0.5:
        return media, lengths
    if len(media) == 1:
        return media, [round(a.n_frames / a.rate, 6)]
    name = recording.video.as_posix() if recording.video else recording.id
    return [name], [round(a.n_frames / a.rate, 6)]


def _interval(recording: Recording, a: Annotation) -> tuple[list[float], list[Note]]:
    """Return the single observed interval that a project can state, in seconds, and notes on what is lost of `observed`."""
    frames = a.observed.frames
    notes = []
    if a.observed.tracks or len(frames.start) > 1:
        message = f"a {TITLE} stores one observed interval; other unobserved frames will be read as frames without behavior"
        notes.append(Note(message, recording.id, "lost-observed"))
    if not len(frames.start):
        if len(a):
            notes.append(Note(f"a {TITLE} cannot store that no frame is observed", recording.id, "lost-observed"))
        return [0, 0], notes
    start, stop = int(frames.start[0]), int(frames.stop[-1])
    if (start, stop) == (0, a.n_frames) and len(a):
        return [0, 0], notes
    return [round(start / a.rate, 6), round(stop / a.rate, 6)], notes


def _behavior(behavior: Behavior, points: set[str]) -> dict[str, Any]:
    return {
        "type": "Point event" if behavior.name in points else "State event",
        "key": behavior.key,
        "code": behavior.name,
        "description": behavior.definition,
        "color": "",
        "category": "",
        "modifiers": {},
        "excluded": "",
        "coding map": "",
    }


def read_boris_ethogram(path: str | Path) -> Ethogram:
    """Read the ethogram of a BORIS project, also of one without observations."""
    behaviors, _ = _behaviors(_project(Path(path)))
    return Ethogram(behaviors.values(), guess_background(behaviors))


def _project(path: Path) -> dict[str, Any]:
    project = read_json(path)
    if not isinstance(project, dict) or not isinstance(project.get("observations"), dict):
        raise FormatError(path, "not a BORIS project: no observations")
    return project


def _behaviors(project: Mapping[str, Any]) -> tuple[dict[str, Behavior], list[Note]]:
    behaviors: dict[str, Behavior] = {}
    notes = []
    for fields in map(_mapping, _numbered_values(project.get("behaviors_conf"))):
        code, kind = str(fields.get("code") or ""), str(fields.get("type") or "")
        if code in behaviors:
            notes.append(Note(f"duplicate behavior {code!r} in the ethogram; using the first", code="duplicate-behavior"))
        elif code:
            behaviors[code] = Behavior(
                code, str(fields.get("description") or ""), kind.lower().startswith("point"), str(fields.get("key") or "")
            )
    return behaviors, notes
