"""Caltech Behavior Annotator text: streams (S1, S2, ...) with one label per frame.

Frames are counted from 1 and the end frame belongs to the bout, so ``1  535  base`` is read as frames [0, 535). Frames without a label
are unobserved. The configuration lists the behaviors of all streams.
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
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import BoutRows, background_notes, frames_rate
from ethobench.formats.per_frame import rate_notes
from ethobench.formats.text import Head, count_blank_lines, parse_integer, read_text

MAGIC = "Caltech Behavior Annotator - Annotation File"
STREAM = re.compile(r"(S\d+)\s*:")
NO_BEHAVIOR = "other"
MAX_FRAMES = 10**12


@register_format("caltech")
class CaltechAnnotator(Format):
    """Streams with one label per frame; entries are streams.

    Option for reading: ``rate``, because the file does not state it.
    """

    title = "Caltech Behavior Annotator"
    suffixes = (".txt",)
    keeps = ("observed", "length")
    multiple_recordings = True

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
        for name in select_entries(path, entry, list(file.streams)):
            rows = BoutRows(path)
            for start, end, label, line in file.streams[name]:
                rows.add(start - 1, end if end >= start else start - 2, label, location=f"line {line}")
            labeled = iv.union(iv.intervals([int(s) for s in rows.start], [int(s) for s in rows.stop]))
            annotation, more_notes = rows.to_annotation(ethogram, clock, seconds=False, n_frames=length, observed=Observed(labeled))
            more_notes += _coverage_notes(name, rows, labeled, length)
            id = path.stem if len(file.streams) == 1 else f"{path.stem}/{name}"
            recordings.append(
                Recording(
                    id,
                    individual=path.stem,
                    annotations={DEFAULT_ANNOTATOR: annotation},
                    metadata={"channel": name},
                    notes=(*notes, *file.notes, *more_notes),
                    clock_origin=ClockOrigin.ASSUMED,
                )
            )
        return recordings

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotations = [r.annotation() for r in recordings]
        if len({a.n_frames for a in annotations}) > 1:
            raise EthobenchError("the streams of a Caltech file share one length, but these recordings differ")
        ethogram = annotations[0].ethogram
        notes = rate_notes(self.title, "none", annotations[0].rate)
        for annotation in annotations[1:]:
            ethogram = ethogram.join(annotation.ethogram)
        streams, filled = [], False
        for number, annotation in enumerate(annotations, start=1):
            codes = annotation.without_subjects().to_codes()
            runs = iv.encode_runs(codes)
            words = [*annotation.ethogram.names, NO_BEHAVIOR]
            streams.append([f"S{number}:\tstart\tend\ttype", "-" * 29])
            for start, stop, code in zip(runs.start.tolist(), runs.stop.tolist(), runs.values.tolist(), strict=True):
                filled |= code == len(annotation.ethogram)
                if code >= 0:
                    streams[-1].append(f"   \t{start + 1}\t{stop}\t{words[code]}")
            if annotation.n_frames and codes[-1] < 0:
                message = "unobserved frames at the end are not stored; the recording will be read as shorter"
                notes.append(Note(message, code="lost-length"))
            if annotation.observed.tracks:
                message = f"{self.title} does not store frames that are unobserved for some behaviors only"
                notes.append(Note(message, code="lost-observed"))
        if filled:
            notes.append(Note(f"frames without a behavior are written as {NO_BEHAVIOR!r}", code="renamed-background"))
            ethogram = ethogram if NO_BEHAVIOR in ethogram else Ethogram([*ethogram, NO_BEHAVIOR], NO_BEHAVIOR)
        for name in ethogram.names:
            if not re.fullmatch(r"\S+", name):
                raise EthobenchError(f"{self.title} cannot store names with spaces such as {name!r}; rename it first")
        lines = [MAGIC, "", "Configuration file:", *_configuration(ethogram), ""]
        for stream in streams:
            lines += [*stream, ""]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\r\n")
        return [*notes, *background_notes(self.title, ethogram)]


@dataclass
class _File:
    keys: dict[str, str] = field(default_factory=dict)
    streams: dict[str, list[tuple[int, int, str, int]]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def _parse(path: Path) -> _File:
    file = _File()
    text = read_text(path)
    lines, top = text.split("\n"), count_blank_lines(text)[0]
    if not lines[top].strip().lower().startswith(MAGIC.lower()[:26]):
        raise FormatError(path, f"not a {CaltechAnnotator.title} file: the first line must be {MAGIC!r}", f"line {top + 1}")
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
                raise FormatError(path, f"duplicate stream {stream}", f"line {number}")
            file.streams[stream] = []
        elif section == "configuration":
            name, key = _name_and_key(line)
            if name in file.keys:
                file.notes.append(Note(f"duplicate behavior {name!r} in the configuration", f"line {number}", "duplicate-behavior"))
            file.keys.setdefault(name, key)
        elif section == "stream":
            start, end, label = _row(path, line, number)
            if label not in file.keys:
                file.notes.append(Note(f"{label!r} is not in the configuration; added", f"line {number}", "unknown-behaviors"))
                file.keys[label] = ""
            file.streams[stream].append((start, end, label, number))
        else:
            file.notes.append(Note(f"ignored unknown line {line[:60]!r}", f"line {number}", "ignored-lines"))
    if not file.streams:
        raise FormatError(path, "no stream (S1:, S2:, ...); is the file truncated?")
    return file


def _row(path: Path, line: str, number: int) -> tuple[int, int, str]:
    cells = line.split(None, 2)
    try:
        start, end, label = parse_integer(cells[0]), parse_integer(cells[1]), cells[2]
    except (ValueError, IndexError):
        raise FormatError(path, f"expected start, end and type, got {line!r} (is the file truncated?)", f"line {number}") from None
    if start < 1:
        raise FormatError(path, f"frames are counted from 1, got {start}", f"line {number}")
    if max(start, end) > MAX_FRAMES:
        raise FormatError(path, f"implausible frame number {max(start, end)}", f"line {number}")
    return start, end, label


def _name_and_key(line: str) -> tuple[str, str]:
    name, tab, key = line.partition("\t")
    if not tab:
        head, _, last = line.rpartition(" ")
        name, key = (head, last) if head and len(last) == 1 else (line, "")
    return name.strip(), key.strip()


def _coverage_notes(stream: str, rows: BoutRows, labeled: iv.Intervals, length: int) -> list[Note]:
    """Return notes on frames with no label or with two, since a stream should have one label per frame."""
    notes = []
    free = length - iv.total(labeled)
    if free:
        message = f"stream {stream} has no label for {free} of {length} frames; read as unobserved"
        notes.append(Note(message, code="missing-labels"))
    order = np.argsort(rows.start, kind="stable")
    stop = np.array(rows.stop)[order]
    over = np.flatnonzero(np.array(rows.start)[order][1:] < np.maximum.accumulate(stop)[:-1]) if len(rows) else np.zeros(0, dtype=int)
    if over.size:
        location = rows.location[int(order[over[0] + 1])]
        message = f"stream {stream} has two labels for some frames ({over.size} overlaps); both are kept"
        notes.append(Note(message, location, "overlapping-labels"))
    return notes


def _configuration(ethogram: Ethogram) -> list[str]:
    """Return the lines that list the behaviors, each with a different key."""
    used_keys = {b.key for b in ethogram if len(b.key) == 1}
    lines = []
    for behavior in ethogram:
        key = behavior.key if len(behavior.key) == 1 else ""
        if not key:
            letters = [*behavior.name.lower(), *"abcdefghijklmnopqrstuvwxyz0123456789"]
            key = next((c for c in letters if c.isalnum() and c.isascii() and c not in used_keys), "")
            used_keys.add(key)
        lines.append(f"{behavior.name}\t{key}".rstrip("\t"))
    return lines
