"""Event logs of coding programs: START, STOP and POINT events, paired to bouts when reading and derived from bouts when writing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ethobench.core import Annotation, Behavior, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.formats.bouts import BoutRows, background_notes, to_clock
from ethobench.formats.text import duplicates

START, STOP, POINT = "START", "STOP", "POINT"
MILLISECOND = 0.001
MAX_TIME = 1e12
MAX_RATE = 500_000.0  # Hz; times have six decimals


@dataclass(frozen=True)
class Event:
    """One row of an event log.

    Attributes
    ----------
    time : float
        Seconds or frames, as in the file.
    kind : str
        ``START``, ``STOP`` or ``POINT``; empty if the file does not state it (see `alternate_starts_and_stops`).
    layer : int
        Distinguishes simultaneous bouts of one track, if the file does.
    location : str
        Where in the file the event is, such as ``"row 12"``.
    """

    time: float
    kind: str
    behavior: str
    subject: str = ""
    modifiers: str = ""
    comment: str = ""
    layer: int = 0
    location: str = ""

    @property
    def track(self) -> tuple[str, str, str, int]:
        """The fields that a start and a stop of one bout share."""
        return self.subject, self.behavior, self.modifiers, self.layer


class Gap(NamedTuple):
    """A period in which a behavior of a subject is unobserved; an empty behavior means all behaviors."""

    behavior: str
    subject: str
    start: float
    stop: float


@dataclass
class Observation:
    """Bouts and gaps from the events of one observation.

    Attributes
    ----------
    bouts : BoutRows
        In the order of their starts in the file.
    gaps : list of Gap
        Unobserved periods that follow from starts without a stop and stops without a start.
    notes : list of Note
    end : float
        Time of the last event.
    """

    bouts: BoutRows
    gaps: list[Gap] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    end: float = 0.0

    def to_annotation(
        self,
        ethogram: Ethogram,
        rate: float,
        *,
        seconds: bool = True,
        length: float | None = None,
        window: tuple[float, float] | None = None,
        subjects: Sequence[str] = (),
    ) -> tuple[Annotation, list[Note]]:
        """Convert the bouts to an annotation in which gaps are unobserved.

        Parameters
        ----------
        ethogram : Ethogram
        rate : float
            Frames per second of the clock.
        seconds : bool
            Whether times are in seconds; otherwise they are frames.
        length : float, optional
            Length of the recording, in the same unit. By default the last event ends it.
        window : pair of float, optional
            Start and stop of the observed period.
        subjects : sequence of str
            Animals of the recording, including those without bouts.
        """
        end = _frame(self.end, rate, seconds)
        n_frames = end if length is None else _frame(length, rate, seconds)
        observed = None
        if self.gaps or window is not None:
            reach = max(n_frames, end)
            frames = iv.full(reach) if window is None else _span(window[0], window[1], rate, seconds, reach)
            observed = _observed(frames, self.gaps, rate, seconds, reach)
        annotation, notes = self.bouts.to_annotation(
            ethogram, rate, seconds=seconds, n_frames=n_frames, observed=observed, subjects=subjects
        )
        return annotation, [*self.notes, *notes]


def alternate_starts_and_stops(events: Iterable[Event]) -> list[Event]:
    """Return state events with their kind, for files that do not state it: in each track, starts and stops alternate in time."""
    running: set[tuple[str, str, str, int]] = set()
    result = []
    for event in sorted(events, key=lambda e: e.time):
        if event.kind == POINT:
            result.append(event)
        else:
            result.append(replace(event, kind=STOP if event.track in running else START))
            running ^= {event.track}
    return result


def pair_events(path: Path, events: Sequence[Event]) -> Observation:
    """Pair starts and stops to bouts, in the order of the events.

    A start without a stop is dropped, and its behavior is unobserved from there to the next start. A stop without a start is
    dropped, and its behavior is unobserved since the previous stop. A bout without a behavior makes its frames unobserved.
    """
    running: dict[tuple[str, str, str, int], tuple[int, Event]] = {}
    last_stop: dict[tuple[str, str, str, int], float] = {}
    bouts: list[tuple[int, Event, float, str]] = []
    gaps: list[Gap] = []
    unstopped: list[Event] = []
    unstarted: list[Event] = []
    for i, event in enumerate(events):
        check_time(path, event)
        if event.kind == POINT:
            bouts.append((i, event, event.time, event.comment))
        elif event.kind == START:
            if event.track in running:
                earlier = running[event.track][1]
                unstopped.append(earlier)
                gaps.append(Gap(event.behavior, event.subject, earlier.time, event.time))
            running[event.track] = i, event
        elif event.kind == STOP:
            if event.track in running:
                j, start = running.pop(event.track)
                bouts.append((j, start, event.time, join_comments(start.comment, event.comment)))
            else:
                unstarted.append(event)
                gaps.append(Gap(event.behavior, event.subject, last_stop.get(event.track, 0.0), event.time))
            last_stop[event.track] = event.time
        else:
            raise FormatError(path, f"expected START, STOP or POINT, got {event.kind!r} (is the file truncated?)", event.location)
    for _, start in running.values():
        unstopped.append(start)
        gaps.append(Gap(start.behavior, start.subject, start.time, inf))
    observation = Observation(BoutRows(path), gaps, end=max((e.time for e in events), default=0.0))
    observation.notes += _notes(unstopped, "{name} starts without a stop; dropped, and read as unobserved from there on", "unpaired-events")
    observation.notes += _notes(unstarted, "{name} stops without a start; dropped, and read as unobserved until there", "unpaired-events")
    _add_bouts(observation, bouts)
    return observation


def _add_bouts(observation: Observation, bouts: list[tuple[int, Event, float, str]]) -> None:
    """Add the bouts that name a behavior to an observation; the others become gaps."""
    nameless_bouts: list[Event] = []
    nameless_points: list[Event] = []
    for _, event, stop, comment in sorted(bouts, key=lambda bout: bout[0]):
        if event.behavior.strip():
            observation.bouts.add(
                event.time, stop, event.behavior, subject=event.subject, modifiers=event.modifiers, comment=comment, location=event.location
            )
        elif event.kind == POINT:
            nameless_points.append(event)
        else:
            nameless_bouts.append(event)
            observation.gaps.append(Gap("", "", event.time, stop))
    observation.notes += _notes(nameless_points, "point event without a behavior; dropped", "no-behavior")
    observation.notes += _notes(nameless_bouts, "bout without a behavior; its frames are read as unobserved", "no-behavior")


def without_offset(times: Sequence[float], offset: float, length: float | None) -> tuple[list[float], list[Note]]:
    """Return event times minus the time offset, so that they count from the beginning of the media.

    BORIS adds the offset when an event is scored. If the offset was changed afterwards, times may not contain it.
    """
    if not offset:
        return list(times), []
    moved = [round(time - offset, 6) for time in times]
    if _all_within(moved, length) or not _all_within(times, length):
        return [0.0 if -MILLISECOND <= time < 0 else time for time in moved], []
    return list(times), [Note(f"the event times do not contain the time offset of {offset:g} s; not subtracted", code="ignored-offset")]


def check_time(path: Path, event: Event) -> None:
    """Raise `FormatError` for an event with a missing or implausible time."""
    if math.isnan(event.time):
        raise FormatError(path, f"an event of {event.behavior!r} has no time", event.location)
    if abs(event.time) > MAX_TIME:
        raise FormatError(path, f"implausible time {event.time:g} of {event.behavior!r}", event.location)


def ethogram_of(events: Sequence[Event]) -> Ethogram:
    """Return an ethogram of the behaviors that occur, in the order of the file; those with point events only are point behaviors."""
    lasting = {e.behavior for e in events if e.kind != POINT}
    names = dict.fromkeys(e.behavior for e in events if e.behavior.strip())
    return Ethogram([Behavior(name, point=name not in lasting) for name in names], guess_background(names))


def join_comments(first: str, second: str) -> str:
    """Return the comments of a start and a stop as one text."""
    return " / ".join(dict.fromkeys(text for text in (first, second) if text))


def _notes(events: Sequence[Event], message: str, code: str) -> list[Note]:
    """Return one note with the name and location of the first event and the number of events; none if there are none."""
    if not events:
        return []
    first = events[0]
    more = f" ({len(events)} such events)" if len(events) > 1 else ""
    return [Note(f"{message.format(name=repr(first.behavior))}{more}", first.location, code)]


def _observed(frames: iv.Intervals, gaps: Sequence[Gap], rate: float, seconds: bool, n_frames: int) -> Observed:
    unobserved: dict[tuple[str, str], list[iv.Intervals]] = {}
    for gap in gaps:
        track = (gap.behavior, gap.subject) if gap.behavior.strip() else ("", "")
        unobserved.setdefault(track, []).append(_span(gap.start, gap.stop, rate, seconds, n_frames))
    frames = iv.difference(frames, iv.union_all(unobserved.pop(("", ""), [])))
    tracks: dict[Track, iv.Intervals] = {}
    for (behavior, subject), spans in unobserved.items():
        observed_frames = iv.difference(frames, iv.union_all(spans))
        if iv.total(observed_frames) < iv.total(frames):
            tracks[Track(behavior, subject or None)] = observed_frames
    return Observed(frames, tracks)


def _span(start: float, stop: float, rate: float, seconds: bool, n_frames: int) -> iv.Intervals:
    first = min(max(_frame(start, rate, seconds), 0), n_frames)
    last = n_frames if stop == inf else min(_frame(stop, rate, seconds), n_frames)
    return iv.intervals([first], [max(first, last)])


def _frame(time: float, rate: float, seconds: bool) -> int:
    return int(to_clock([time], rate, seconds)[0])


def _all_within(times: Sequence[float], length: float | None) -> bool:
    last = inf if length is None else length + MILLISECOND
    return all(-MILLISECOND <= time <= last for time in times if not np.isnan(time))


def point_behaviors(annotations: Iterable[Annotation]) -> set[str]:
    """Return the behaviors that are declared as point behaviors and have no bout with a duration."""
    declared: set[str] = set()
    lasting: set[str] = set()
    for a in annotations:
        declared |= {b.name for b in a.ethogram if b.point}
        lasting |= {a.ethogram[int(c)].name for c in np.unique(a.behavior[a.stop > a.start])}
    return declared - lasting


def events_of(a: Annotation, points: set[str], *, layers: bool = False) -> tuple[list[Event], list[Note]]:
    """Return the starts, stops and points of an annotation in temporal order, with times in frames.

    Parameters
    ----------
    a : Annotation
    points : set of str
        Behaviors to write as point events.
    layers : bool
        Keep overlapping bouts of one track separate. Otherwise they are merged, because their stops could not be distinguished.
    """
    tracks: dict[tuple[str, str, str, int], list[list[Event]]] = {}
    merged = 0
    subject = a.names(a.subject)
    for i in range(len(a)):
        name = a.ethogram[int(a.behavior[i])].name
        modifiers = "" if a.modifiers is None else a.modifiers[i]
        comment = "" if a.comment is None else a.comment[i]
        kind = POINT if name in points else START
        first = Event(float(a.start[i]), kind, name, subject[i] or "", modifiers, comment, layer=i + 1 if layers else 0)
        bouts = tracks.setdefault(first.track, [])
        if kind == POINT:
            bouts.append([first])
        elif bouts and a.start[i] < bouts[-1][1].time:
            start, stop = bouts[-1]
            bouts[-1] = [
                replace(start, comment=join_comments(start.comment, comment)),
                replace(stop, time=max(stop.time, float(a.stop[i]))),
            ]
            merged += 1
        else:
            bouts.append([first, replace(first, time=float(a.stop[i]), kind=STOP, comment="")])
    events = [event for bouts in tracks.values() for bout in bouts for event in bout]
    message = f"{merged} bouts overlap another bout of the same behavior and subject; merged"
    return sorted(events, key=lambda e: e.time), [Note(message, code="merged-bouts")] if merged else []


def ethogram_losses(title: str, annotations: Sequence[Annotation]) -> list[Note]:
    """Return notes on what a file that lists only occurring behaviors loses of the ethograms."""
    ethogram = Ethogram([])
    used: set[str] = set()
    for a in annotations:
        ethogram = ethogram.join(a.ethogram)
        used |= {a.ethogram[int(c)].name for c in np.unique(a.behavior)}
    unused = [b.name for b in ethogram if b.name not in used]
    notes = []
    if unused:
        notes.append(Note(f"{title} stores only behaviors with bouts; lost: {', '.join(unused)}", code="lost-behaviors"))
    if any(b.definition or b.key for b in ethogram):
        notes.append(Note(f"{title} does not store definitions or keys of behaviors; they are lost", code="lost-definitions"))
    return notes + background_notes(title, ethogram.restrict([b.name for b in ethogram if b.name in used]))


def check_rate(title: str, rate: float) -> None:
    """Raise an error if the rate is too high for times with six decimals."""
    if rate > MAX_RATE:
        raise EthobenchError(f"{title} stores times in microseconds, too coarse for a rate of {rate:g} Hz; resample first")


def check_ids(title: str, ids: Iterable[str]) -> None:
    """Raise an error if two recordings have the same name."""
    repeated = duplicates(ids)
    if repeated:
        raise EthobenchError(
            f"a {title} identifies recordings by name, but several are called {', '.join(map(repr, repeated))}; rename them"
        )


def event_seconds(event: Event, rate: float) -> float:
    """Return the time of an event, which is in frames, in seconds rounded to microseconds."""
    return round(event.time / rate, 6)
