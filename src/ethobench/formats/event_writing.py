"""Annotations as the starts, stops and points that coding programs log, and what such a log cannot hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ethobench.core import Annotation, Ethogram
from ethobench.core.errors import EthobenchError, Note
from ethobench.core.ethogram import guess_background
from ethobench.formats.event_tables import POINT, START, STOP, Event, joined

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
