"""Starts, stops and points as coding programs log them, joined to bouts.

MERGED: Annotations as the starts, stops and points that coding programs log, and what such a log cannot hold.
"""

from __future__ import annotations

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
from ethobench.formats.bouts import BoutRows, to_clock

START, STOP, POINT = "START", "STOP", "POINT"
MILLISECOND = 0.001
LATEST = 1e12


@dataclass(frozen=True)
class Event:
    """One line of a log.

    Attributes
    ----------
    time : float
        Seconds or frames, as the file has them.
    kind : str
        ``START``, ``STOP`` or ``POINT``; empty where the file leaves it to `in_turns`.
    layer : int
        Tells simultaneous bouts of one track apart, where the file does.
    location : str
        Where it stands in the file.
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
        """Whatever must agree for a start and a stop to belong together."""
        return self.subject, self.behavior, self.modifiers, self.layer


class Gap(NamedTuple):
    """A stretch in which a behavior of a subject was not followed; without a behavior, none was."""

    behavior: str
    subject: str
    start: float
    stop: float


@dataclass
class Observation:
    """What the events of one observation come to.

    Attributes
    ----------
    bouts : BoutRows
        In the order of their starts in the file.
    gaps : list of Gap
        Where events that have no partner leave things open.
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
        """Put the bouts on a clock; gaps become unobserved.

        Parameters
        ----------
        ethogram : Ethogram
        rate : float
            Frames per second of the clock.
        seconds : bool
            Whether times are seconds (else frames).
        length : float, optional
            Length of the recording, in the same unit; the last event ends it where not given.
        window : pair of float, optional
            The only stretch that was looked at.
        subjects : sequence of str
            Animals that may be named though no bout does.
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


def in_turns(events: Iterable[Event]) -> list[Event]:
    """Tell starts from stops where a file does not: in each track they take turns, in the order of time."""
    running: set[tuple[str, str, str, int]] = set()
    result = []
    for event in sorted(events, key=lambda e: e.time):
        if event.kind == POINT:
            result.append(event)
        else:
            result.append(replace(event, kind=STOP if event.track in running else START))
            running ^= {event.track}
    return result


def pair(path: Path, events: Sequence[Event]) -> Observation:
    """Join starts and stops to bouts, in the order given.

    A start without a stop is dropped, and its behavior counts as not looked at from there to the next start. A stop without
    a start is dropped, and its behavior counts as not looked at from the stop before it. What has no name hides its stretch.
    """
    running: dict[tuple[str, str, str, int], tuple[int, Event]] = {}
    settled: dict[tuple[str, str, str, int], float] = {}
    found: list[tuple[int, Event, float, str]] = []
    gaps: list[Gap] = []
    unstopped: list[Event] = []
    unstarted: list[Event] = []
    for i, event in enumerate(events):
        check_time(path, event)
        if event.kind == POINT:
            found.append((i, event, event.time, event.comment))
        elif event.kind == START:
            if event.track in running:
                earlier = running[event.track][1]
                unstopped.append(earlier)
                gaps.append(Gap(event.behavior, event.subject, earlier.time, event.time))
            running[event.track] = i, event
        elif event.kind == STOP:
            if event.track in running:
                j, start = running.pop(event.track)
                found.append((j, start, event.time, joined(start.comment, event.comment)))
            else:
                unstarted.append(event)
                gaps.append(Gap(event.behavior, event.subject, settled.get(event.track, 0.0), event.time))
            settled[event.track] = event.time
        else:
            raise FormatError(path, f"{event.kind!r} is neither START, STOP nor POINT (is the file cut off?)", event.location)
    for _, start in running.values():
        unstopped.append(start)
        gaps.append(Gap(start.behavior, start.subject, start.time, inf))
    observation = Observation(BoutRows(path), gaps, end=max((e.time for e in events), default=0.0))
    observation.notes += _notes(unstopped, "starts without a stop; dropped, and taken as not looked at from there on")
    observation.notes += _notes(unstarted, "stops without a start; dropped, and taken as not looked at before")
    _collect(observation, found)
    return observation


def _collect(observation: Observation, found: list[tuple[int, Event, float, str]]) -> None:
    """Add the bouts that have a name; the others leave a gap."""
    nameless_bouts: list[Event] = []
    nameless_points: list[Event] = []
    for _, event, stop, comment in sorted(found, key=lambda f: f[0]):
        if event.behavior.strip():
            observation.bouts.add(
                event.time, stop, event.behavior, subject=event.subject, modifiers=event.modifiers, comment=comment, location=event.location
            )
        elif event.kind == POINT:
            nameless_points.append(event)
        else:
            nameless_bouts.append(event)
            observation.gaps.append(Gap("", "", event.time, stop))
    observation.notes += _notes(nameless_points, "is a point event that names no behavior; dropped")
    observation.notes += _notes(nameless_bouts, "is a bout that names no behavior; its time is taken as not looked at")


def without_offset(times: Sequence[float], offset: float, length: float | None) -> tuple[list[float], list[Note]]:
    """Take the time offset out of event times, which then count from the beginning of the media.

    BORIS adds the offset when an event is scored, so a change of it afterwards leaves times that never had it.
    """
    moved = [round(time - offset, 6) for time in times]
    if not offset:
        return list(times), []
    if _inside(moved, length) or not _inside(times, length):
        return [0.0 if -MILLISECOND <= time < 0 else time for time in moved], []
    return list(times), [Note(f"the time offset of {offset:g} s is not in the event times, so it was not taken out")]


def check_time(path: Path, event: Event) -> None:
    """Refuse an event without a time, or with one that no clock can hold."""
    if np.isnan(event.time):
        raise FormatError(path, f"an event of {event.behavior!r} has no time", event.location)
    if abs(event.time) > LATEST:
        raise FormatError(path, f"{event.time:g} is no time that {event.behavior!r} can have", event.location)


def ethogram_of(events: Sequence[Event]) -> Ethogram:
    """Return the behaviors that occur, in the order of the file; those that only ever are points are declared so."""
    lasting = {e.behavior for e in events if e.kind != POINT}
    names = dict.fromkeys(e.behavior for e in events if e.behavior.strip())
    return Ethogram([Behavior(name, point=name not in lasting) for name in names], guess_background(names))


def joined(first: str, second: str) -> str:
    """Join the comments of a start and a stop."""
    return " / ".join(dict.fromkeys(text for text in (first, second) if text))


def _notes(events: Sequence[Event], what: str) -> list[Note]:
    """One note per kind of trouble: the first place, and how many there are."""
    if not events:
        return []
    first = events[0]
    more = f" ({len(events)} such events)" if len(events) > 1 else ""
    name = repr(first.behavior) if first.behavior.strip() else "this"
    return [Note(f"{name} {what}{more}", first.location)]


def _observed(frames: iv.Intervals, gaps: Sequence[Gap], rate: float, seconds: bool, n_frames: int) -> Observed:
    hidden: dict[tuple[str, str], list[iv.Intervals]] = {}
    for gap in gaps:
        track = (gap.behavior, gap.subject) if gap.behavior.strip() else ("", "")
        hidden.setdefault(track, []).append(_span(gap.start, gap.stop, rate, seconds, n_frames))
    frames = iv.difference(frames, iv.union_all(hidden.pop(("", ""), [])))
    tracks: dict[Track, iv.Intervals] = {}
    for (behavior, subject), spans in hidden.items():
        left = iv.difference(frames, iv.union_all(spans))
        if iv.total(left) < iv.total(frames):
            tracks[Track(behavior, subject or None)] = left
    return Observed(frames, tracks)


def _span(start: float, stop: float, rate: float, seconds: bool, n_frames: int) -> iv.Intervals:
    first = min(max(_frame(start, rate, seconds), 0), n_frames)
    last = n_frames if stop == inf else min(_frame(stop, rate, seconds), n_frames)
    return iv.intervals([first], [max(first, last)])


def _frame(time: float, rate: float, seconds: bool) -> int:
    return int(to_clock([time], rate, seconds)[0])


def _inside(times: Sequence[float], length: float | None) -> bool:
    last = inf if length is None else length + MILLISECOND
    return all(-MILLISECOND <= time <= last for time in times if not np.isnan(time))


FASTEST = 500_000.0


def point_behaviors(annotations: Iterable[Annotation]) -> set[str]:
    """Return the behaviors declared as points of which no bout has a duration."""
    declared: set[str] = set()
    lasting: set[str] = set()
    for a in annotations:
        declared |= {b.name for b in a.ethogram if b.point}
        lasting |= {a.ethogram[int(c)].name for c in np.unique(a.behavior[a.stop > a.start])}
    return declared - lasting


def events_of(a: Annotation, points: set[str], *, layers: bool = False) -> tuple[list[Event], list[Note]]:
    """List the starts, stops and points of an annotation in the order of time, which is counted in frames.

    Parameters
    ----------
    a : Annotation
    points : set of str
        Behaviors to be written as points.
    layers : bool
        Keep bouts of one track that overlap apart. Otherwise they become one, since their stops could not be told apart.
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
            bouts[-1] = [replace(start, comment=joined(start.comment, comment)), replace(stop, time=max(stop.time, float(a.stop[i])))]
            merged += 1
        else:
            bouts.append([first, replace(first, time=float(a.stop[i]), kind=STOP, comment="")])
    events = [event for bouts in tracks.values() for bout in bouts for event in bout]
    notes = [Note(f"{merged} bouts overlap another one of the same behavior and subject; they become one")] if merged else []
    return sorted(events, key=lambda e: e.time), notes


def ethogram_losses(title: str, annotations: Sequence[Annotation]) -> list[Note]:
    """Tell what of the ethograms gets lost in a file that only lists what occurs."""
    ethogram = Ethogram([])
    used: set[str] = set()
    for a in annotations:
        ethogram = ethogram.join(a.ethogram)
        used |= {a.ethogram[int(c)].name for c in np.unique(a.behavior)}
    unused = [b.name for b in ethogram if b.name not in used]
    notes = []
    if unused:
        notes.append(Note(f"{title} lists only what occurs: behaviors without bouts are lost ({', '.join(unused)})"))
    if any(b.definition or b.key for b in ethogram):
        notes.append(Note(f"{title} holds no definitions or keys of behaviors: they are lost"))
    return notes + background_losses(title, ethogram.restrict([b.name for b in ethogram if b.name in used]))


def background_losses(title: str, ethogram: Ethogram) -> list[Note]:
    """Tell if the background will not be recognised when the file is read."""
    guess = guess_background(ethogram.names)
    if guess == ethogram.background_name:
        return []
    if guess:
        return [Note(f"{title} does not say which behavior is background: {guess!r} will be taken for it")]
    return [Note(f"{title} does not say which behavior is background: {ethogram.background_name!r} will read as any other")]


def check_rate(title: str, rate: float) -> None:
    """Refuse a clock that is too fast for times with six decimals."""
    if rate > FASTEST:
        raise EthobenchError(f"{title} holds times in microseconds, too coarse for a clock of {rate:g} Hz; resample first")


def check_ids(title: str, ids: Iterable[str]) -> None:
    """Refuse to write two recordings under one name."""
    names = list(ids)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise EthobenchError(f"a {title} tells recordings apart by name, but several are called {', '.join(map(repr, twice))}")


def seconds_of(event: Event, rate: float) -> float:
    """Return the time of an event that counts in frames, to the microsecond."""
    return round(event.time / rate, 6)
