"""BORIS projects (``.boris``): several observations, subjects, modifiers, point and state events, in JSON.

An entry is an observation. Its clock has the frame rate of the video; observations without one count in milliseconds.
State events have no sign of their own: in each track (subject, behavior, modifiers) they start and stop in turns. Event
times count from the beginning of the first media file, the time offset taken out. An observation without any event may
not have been coded yet, so it counts as not looked at, unless it states a time interval. In observations of images the
frames are the images.

Written observations name the video they belong to; where none is known, the recording's name stands in its place, so that
rate and length are kept.

MERGED: One observation of a BORIS project, as the JSON states it, read as a recording.

MERGED: Recordings as the JSON of a BORIS project.
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
from ethobench.core.errors import Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_logs
from ethobench.formats.base import Format, not_understood, pick_entry, register_format
from ethobench.formats.boris_tables import NO_FOCAL_SUBJECT
from ethobench.formats.bouts import SECONDS_RATE, frames_rate, origin_of
from ethobench.formats.event_logs import POINT, Event
from ethobench.formats.text import Head, encoding_of, parse_number, read_json

PLAYERS = tuple(str(i) for i in range(1, 9))
LIVE, IMAGES = "LIVE", "IMAGES"
CLOCK_TIMES = ("start_from_current_time", "start_from_current_epoch_time")


@dataclass
class ObservationReader:
    """Reads one observation."""

    path: Path
    name: str
    stated: Mapping[str, Any]
    behaviors: Mapping[str, Behavior]
    subjects: Sequence[str]
    notes: list[Note] = field(default_factory=list)

    def read(self, rate: float | None) -> Recording:
        """Read it on the clock of its video, or on the one wanted."""
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
            events, window = self._from_zero(events, window, length)
            if self.stated.get("type") != LIVE and not fps and rate is None:
                self._note(f"no frame rate is stated; read on a clock of {clock:g} Hz (give rate= to change that)")
        if not events and window is None:
            window = (0.0, 0.0)
            self._note("there is no event; taken as not looked at")
        observation = event_logs.pair(self.path, event_logs.in_turns(events))
        annotation, notes = observation.to_annotation(
            ethogram, clock, seconds=not images, length=length, window=window, subjects=self.subjects
        )
        notes = [replace(note, location=note.location or self._location()) for note in notes]
        if rate is not None and rate != annotation.rate:
            annotation = annotation.resample(rate)
            self._note(f"resampled from {clock:g} Hz to {rate:g} Hz")
        details = {key: self.stated[key] for key in ("type", "date", "description", "independent_variables") if self.stated.get(key)}
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
        """List the events, and the images that they are about (none if times tell that, or not all name an image)."""
        rows = self.stated.get("events") or []
        if not isinstance(rows, list):
            not_understood(self.path, "its events are no list", self._location())
        events, images = [], []
        for i, row in enumerate(rows, start=1):
            location = self._location(f"event {i}")
            if not isinstance(row, list) or len(row) < 3:
                not_understood(self.path, "an event is a list of time, subject, behavior, modifiers and comment", location)
            subject, code, modifiers, comment = ("" if cell is None else str(cell) for cell in [*row[1:5], "", ""][:4])
            subject = "" if subject == NO_FOCAL_SUBJECT else subject
            kind = "" if code in self.behaviors and not self.behaviors[code].point else POINT
            time = _number(row[0])
            image = _number(row[5]) if self.stated.get("type") == IMAGES and len(row) > 5 else None
            if image is not None:
                images.append(int(image))
            elif time is None:
                not_understood(self.path, f"an event of {code!r} has no time", location)
            events.append(Event(time or 0.0, kind, code, subject, modifiers, comment, location=location))
        if images and len(images) < len(events):
            not_understood(self.path, "some of its events name an image and some do not", self._location())
        return events, images

    def _ethogram(self, events: Sequence[Event]) -> Ethogram:
        strange = dict.fromkeys(e.behavior for e in events if e.behavior.strip() and e.behavior not in self.behaviors)
        if strange:
            self._note(f"scored, but not in the project's ethogram: {', '.join(strange)}; read as point events, as BORIS takes them")
        found = [*self.behaviors.values(), *(Behavior(name, point=True) for name in strange)]
        return Ethogram(found, guess_background(b.name for b in found))

    def _media(self) -> tuple[list[str], list[float], float | None]:
        """Return the files of the first player that has any, their lengths (none if not all are known) and their frame rate."""
        players = mapping(self.stated.get("file"))
        media = next(([str(f) for f in files] for n in PLAYERS if isinstance(files := players.get(n), list) and files), [])
        info = mapping(self.stated.get("media_info"))
        lengths = [_positive(mapping(info.get("length")).get(file)) for file in media]
        rates = [_positive(mapping(info.get("fps")).get(file)) for file in media]
        known = list(dict.fromkeys(fps for fps in rates if fps))
        if len(known) > 1:
            self._note(f"the media files have several frame rates ({', '.join(f'{fps:g}' for fps in known)}); the first is used")
        unknown = [file for file, length in zip(media, lengths, strict=True) if length is None]
        if unknown or (not media and self.stated.get("type") not in (LIVE, IMAGES)):
            self._note(f"the length of {unknown[0] if unknown else 'the media'} is not stated, so the recording ends with the last event")
        return media, [] if unknown else [length for length in lengths if length], known[0] if known else None

    def _window(self) -> tuple[float, float] | None:
        """Return the only interval observed; an end of 0 stands for the end of the recording."""
        interval = self.stated.get("observation time interval") or [0, 0]
        numbers = [_number(value) for value in interval] if isinstance(interval, list) else []
        if len(numbers) != 2 or None in numbers:
            not_understood(self.path, f"its time interval is two numbers, not {interval!r}", self._location())
        start, stop = (number or 0.0 for number in numbers)
        return (start, stop or inf) if start or stop else None

    def _rate_of_images(self) -> float | None:
        """Return the rate at which the images were taken, where the observation states it."""
        delay = _positive(self.stated.get("time_lapse_delay"))
        return 1 / delay if delay else None

    def _assumed_rate_of_images(self, rate: float | None) -> float:
        clock, notes = frames_rate(rate)
        self.notes += [replace(note, location=self._location()) for note in notes]
        return clock

    def _from_zero(
        self, events: list[Event], window: tuple[float, float] | None, length: float | None
    ) -> tuple[list[Event], tuple[float, float] | None]:
        """Count times from the beginning of the recording."""
        offset = _number(self.stated.get("time offset") or 0)
        if offset is None:
            not_understood(self.path, f"its time offset is a number, not {self.stated['time offset']!r}", self._location())
        if self.stated.get("media_creation_date_as_offset"):
            created = numbered_values(mapping(self.stated.get("media_info")).get("media_creation_time"))
            if len(created) != 1 or (date := _number(created[0])) is None:
                not_understood(self.path, "its times count from the creation dates of several media files, or of none", self._location())
            offset += date
        times, notes = event_logs.without_offset([event.time for event in events], offset, length)
        self.notes += [replace(note, location=self._location()) for note in notes]
        if times and self.stated.get("type") == LIVE and any(self.stated.get(key) for key in CLOCK_TIMES):
            first = min(times)
            self._note(f"times are times of the clock, so they were counted from the first event, at {first:.3f} s")
            times = [round(time - first, 6) for time in times]
            window = None if window is None else (max(window[0] - first, 0.0), window[1] - first)
        return [replace(event, time=time) for event, time in zip(events, times, strict=True)], window

    def _location(self, detail: str = "") -> str:
        return f"observation {self.name!r}{', ' + detail if detail else ''}"

    def _note(self, message: str) -> None:
        self.notes.append(Note(message, self._location()))


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object of the JSON as it is; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def numbered_values(numbered: Any) -> list[Any]:
    """Return the values of ``{"0": ..., "1": ...}`` in the order of the numbers."""
    keys = sorted(mapping(numbered), key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0))
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


TITLE = "BORIS project"


def project_of(recordings: Sequence[Recording]) -> tuple[dict[str, Any], list[Note]]:
    """Return the project that holds these recordings as its observations, and what it cannot hold."""
    event_logs.check_ids(TITLE, [r.id for r in recordings])
    annotations = [r.annotation() for r in recordings]
    ethogram = Ethogram([])
    for annotation in annotations:
        ethogram = ethogram.join(annotation.ethogram)
    points = event_logs.point_behaviors(annotations)
    notes = event_logs.background_losses(TITLE, ethogram)
    lasting = [b.name for b in ethogram if b.point and b.name not in points]
    if lasting:
        notes.append(Note(f"point behaviors that have bouts with a duration become states: {', '.join(lasting)}"))
    observations = {}
    for recording, annotation in zip(recordings, annotations, strict=True):
        observations[recording.id], more = _observation(recording, annotation, points)
        notes += more
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
    interval, more = _interval(recording, a)
    date = recording.metadata.get("date")
    stated = {
        "file": {player: media if player == "1" else [] for player in PLAYERS},
        "type": "MEDIA",
        "date": date if isinstance(date, str) else (recording.start_time or datetime.now()).isoformat(timespec="seconds"),
        "description": str(recording.metadata.get("description") or ""),
        "time offset": 0.0,
        "events": [[event_logs.seconds_of(e, a.rate), e.subject, e.behavior, e.modifiers, e.comment, int(e.time)] for e in events],
        "observation time interval": interval,
        "independent_variables": dict(mapping(recording.metadata.get("independent_variables"))),
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
    return stated, notes + more


def _media_of(recording: Recording, a: Annotation) -> tuple[list[str], list[float]]:
    """Return media files and lengths: those that were read, the video, or else a name that only stands for them."""
    media: list[str] = list(recording.metadata.get("media") or ())
    lengths: list[float] = list(recording.metadata.get("media_lengths") or ())
    if len({*media}) == len(media) == len(lengths) > 0 and abs(sum(lengths) * a.rate - a.n_frames) < 0.5:
        return media, lengths
    if len(media) == 1:
        return media, [round(a.n_frames / a.rate, 6)]
    name = recording.video.as_posix() if recording.video else recording.id
    return [name], [round(a.n_frames / a.rate, 6)]


def _interval(recording: Recording, a: Annotation) -> tuple[list[float], list[Note]]:
    """Return the one interval that a project can state as observed, and what of `observed` it cannot hold."""
    seen = a.observed.frames
    notes = []
    if a.observed.tracks or len(seen.start) > 1:
        notes.append(
            Note(f"a {TITLE} states one observed interval: other frames not looked at will read as without behavior", recording.id)
        )
    if not len(seen.start):
        if len(a):
            notes.append(Note(f"a {TITLE} cannot say that nothing was looked at", recording.id))
        return [0, 0], notes
    start, stop = int(seen.start[0]), int(seen.stop[-1])
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


KEYS = ("behaviors_conf", "subjects_conf", "project_format_version", "behavioral_categories", "coding_map", "time_format")


@register_format("boris")
class Boris(Format):
    """A project with its observations."""

    title = TITLE
    suffixes = (".boris",)
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "observed", "length")
    several = True

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
        subjects = [name for s in numbered_values(project.get("subjects_conf")) if (name := str(mapping(s).get("name") or ""))]
        found = []
        for name in pick_entry(path, entry, list(project["observations"])):
            stated = project["observations"][name]
            if not isinstance(stated, dict):
                not_understood(path, "this is no observation", f"observation {name!r}")
            recording = ObservationReader(path, name, stated, behaviors, subjects).read(rate)
            recording.notes = (*notes, *recording.notes)
            found.append(recording)
        return found

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        project, notes = project_of(recordings)
        path.write_text(json.dumps(project, ensure_ascii=False), encoding="utf-8")
        return notes


def _project(path: Path) -> dict[str, Any]:
    project = read_json(path)
    if not isinstance(project, dict) or not isinstance(project.get("observations"), dict):
        not_understood(path, "this is no BORIS project: it has no observations")
    return project


def _behaviors(project: Mapping[str, Any]) -> tuple[dict[str, Behavior], list[Note]]:
    found: dict[str, Behavior] = {}
    notes = []
    for stated in map(mapping, numbered_values(project.get("behaviors_conf"))):
        code, kind = str(stated.get("code") or ""), str(stated.get("type") or "")
        if code in found:
            notes.append(Note(f"the ethogram lists {code!r} twice; the first counts"))
        elif code:
            found[code] = Behavior(
                code, str(stated.get("description") or ""), kind.lower().startswith("point"), str(stated.get("key") or "")
            )
    return found, notes
