"""Caltech Behavior Annotator text: streams (S1, S2, ...) that give every frame one label.

Frames are counted from 1 and the end frame belongs to the bout, so ``1  535  base`` reads as frames [0, 535). A frame
that a stream leaves out was not labelled, so it was not observed. The configuration lists the behaviors of all streams.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ethobench.core import Behavior, ClockOrigin, Ethogram, Observed, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.bouts import BoutRows, frames_rate
from ethobench.formats.per_frame import background_notes, rate_notes
from ethobench.formats.text import Head, count_blank_lines, parse_integer, read_text

MAGIC = "Caltech Behavior Annotator - Annotation File"
STREAM = re.compile(r"(S\d+)\s*:")
NOTHING = "other"
MOST_FRAMES = 10**12


@dataclass
class _File:
    keys: dict[str, str] = field(default_factory=dict)
    streams: dict[str, list[tuple[int, int, str, int]]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


@register_format("caltech")
class CaltechAnnotator(Format):
    """Streams of labels, one per frame; streams are entries.

    Option for reading: ``rate``, since the file tells none.
    """

    title = "Caltech Behavior Annotator"
    suffixes = (".txt",)
    keeps = ("observed", "length")
    several = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if head.text.lstrip().lower().startswith(MAGIC.lower()[:26]) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_parse(path).streams)

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        file = _parse(path)
        clock, notes = frames_rate(rate)
        length = max((end for rows in file.streams.values() for _, end, *_ in rows), default=0)
        behaviors = [Behavior(name, key=key) for name, key in file.keys.items()]
        ethogram = Ethogram(behaviors, guess_background(file.keys))
        recordings = []
        for name in pick_entry(path, entry, list(file.streams)):
            rows = BoutRows(path)
            for start, end, label, line in file.streams[name]:
                rows.add(start - 1, end if end >= start else start - 2, label, location=f"line {line}")
            seen = iv.union(iv.intervals([int(s) for s in rows.start], [int(s) for s in rows.stop]))
            annotation, more = rows.to_annotation(ethogram, clock, seconds=False, n_frames=length, observed=Observed(seen))
            more += _cover_notes(name, rows, seen, length)
            id = path.stem if len(file.streams) == 1 else f"{path.stem}/{name}"
            recordings.append(
                Recording(
                    id,
                    individual=path.stem,
                    annotations={DEFAULT_ANNOTATOR: annotation},
                    metadata={"channel": name},
                    notes=(*notes, *file.notes, *more),
                    clock_origin=ClockOrigin.ASSUMED,
                )
            )
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotations = [r.annotation() for r in recordings]
        if len({a.n_frames for a in annotations}) > 1:
            raise EthobenchError("the streams of a Caltech file have one length, but these recordings differ")
        ethogram = annotations[0].ethogram
        notes = rate_notes(self.title, "none", annotations[0].rate)
        for annotation in annotations[1:]:
            ethogram = ethogram.join(annotation.ethogram)
        streams, filled = [], False
        for number, annotation in enumerate(annotations, start=1):
            codes = annotation.without_subjects().to_codes()
            runs = iv.encode_runs(codes)
            words = [*annotation.ethogram.names, NOTHING]
            streams.append([f"S{number}:\tstart\tend\ttype", "-" * 29])
            for start, stop, code in zip(runs.start.tolist(), runs.stop.tolist(), runs.values.tolist(), strict=True):
                filled |= code == len(annotation.ethogram)
                if code >= 0:
                    streams[-1].append(f"   \t{start + 1}\t{stop}\t{words[code]}")
            if annotation.n_frames and codes[-1] < 0:
                notes.append(Note("the last frames were not observed and are left out, so the recording will read as shorter"))
            if annotation.observed.tracks:
                notes.append(Note(f"{self.title} cannot say what was not observed of single behaviors, only of all"))
        if filled:
            notes.append(Note(f"frames without a behavior are written as {NOTHING!r}"))
            ethogram = ethogram if NOTHING in ethogram else Ethogram([*ethogram, NOTHING], NOTHING)
        for name in ethogram.names:
            if not re.fullmatch(r"\S+", name):
                raise EthobenchError(f"{self.title} splits names at blanks, so it cannot hold {name!r}; rename it first")
        lines = [MAGIC, "", "Configuration file:", *_configuration(ethogram), ""]
        for stream in streams:
            lines += [*stream, ""]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\r\n")
        return [*notes, *background_notes(self.title, ethogram)]


def _parse(path: Path) -> _File:
    file = _File()
    text = read_text(path)
    lines, top = text.split("\n"), count_blank_lines(text)[0]
    if not lines[top].strip().lower().startswith(MAGIC.lower()[:26]):
        raise FormatError(path, f"the first line is not {MAGIC!r}", f"line {top + 1}")
    section = stream = ""
    for number, raw in enumerate(lines[top + 1 :], start=top + 2):
        line = raw.strip()
        heading = STREAM.match(line)
        if not line or set(line) == {"-"}:
            continue
        if line.lower().startswith("configuration file"):
            section = "configuration"
        elif heading:
            section, stream = "stream", heading[1]
            if stream in file.streams:
                raise FormatError(path, f"stream {stream} stands twice", f"line {number}")
            file.streams[stream] = []
        elif section == "configuration":
            name, key = _name_and_key(line)
            if name in file.keys:
                file.notes.append(Note(f"{name!r} stands twice in the configuration", f"line {number}"))
            file.keys.setdefault(name, key)
        elif section == "stream":
            start, end, label = _row(path, line, number)
            if label not in file.keys:
                file.notes.append(Note(f"{label!r} is not in the configuration; added", f"line {number}"))
                file.keys[label] = ""
            file.streams[stream].append((start, end, label, number))
        else:
            file.notes.append(Note(f"not understood and left out: {line[:60]!r}", f"line {number}"))
    if not file.streams:
        raise FormatError(path, "no stream (S1:, S2:, ...) was found; is the file cut off?")
    return file


def _row(path: Path, line: str, number: int) -> tuple[int, int, str]:
    cells = line.split(None, 2)
    try:
        start, end, label = parse_integer(cells[0]), parse_integer(cells[1]), cells[2]
    except (ValueError, IndexError):
        raise FormatError(path, f"a row has start, end and type, but here is {line!r}; is the file cut off?", f"line {number}") from None
    if start < 1:
        raise FormatError(path, f"frames are counted from 1, but here is {start}", f"line {number}")
    if max(start, end) > MOST_FRAMES:
        raise FormatError(path, f"no recording has {max(start, end)} frames", f"line {number}")
    return start, end, label


def _name_and_key(line: str) -> tuple[str, str]:
    name, tab, key = line.partition("\t")
    if not tab:
        head, _, last = line.rpartition(" ")
        name, key = (head, last) if head and len(last) == 1 else (line, "")
    return name.strip(), key.strip()


def _cover_notes(stream: str, rows: BoutRows, seen: iv.Intervals, length: int) -> list[Note]:
    """Note frames with no label or with two, since a stream gives each frame one."""
    notes = []
    free = length - iv.total(seen)
    if free:
        notes.append(Note(f"stream {stream} gives no label to {free} of {length} frames; they count as not observed"))
    order = np.argsort(rows.start, kind="stable")
    stop = np.array(rows.stop)[order]
    over = np.flatnonzero(np.array(rows.start)[order][1:] < np.maximum.accumulate(stop)[:-1]) if len(rows) else np.zeros(0, dtype=int)
    if over.size:
        location = rows.location[int(order[over[0] + 1])]
        notes.append(Note(f"stream {stream} gives some frames two labels ({over.size} overlaps); both are kept", location))
    return notes


def _configuration(ethogram: Ethogram) -> list[str]:
    """List the behaviors, each with a key of its own."""
    taken = {b.key for b in ethogram if len(b.key) == 1}
    lines = []
    for behavior in ethogram:
        key = behavior.key if len(behavior.key) == 1 else ""
        if not key:
            letters = [*behavior.name.lower(), *"abcdefghijklmnopqrstuvwxyz0123456789"]
            key = next((c for c in letters if c.isalnum() and c.isascii() and c not in taken), "")
            taken.add(key)
        lines.append(f"{behavior.name}\t{key}".rstrip("\t"))
    return lines
