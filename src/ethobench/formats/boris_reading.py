"""One observation of a BORIS project, as the JSON states it, read as a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

from ethobench.core import Behavior, Ethogram, Recording
from ethobench.core.errors import Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import event_tables
from ethobench.formats.base import not_understood
from ethobench.formats.boris_tables import NO_FOCAL_SUBJECT
from ethobench.formats.bouts import SECONDS_RATE, frames_rate, origin_of
from ethobench.formats.event_tables import POINT, Event
from ethobench.formats.numbers import parse_number

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
        observation = event_tables.pair(self.path, event_tables.in_turns(events))
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
        times, notes = event_tables.without_offset([event.time for event in events], offset, length)
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
