"""BENTO ``.annot`` files: channels of bouts, grouped by behavior.

BENTO counts frames from 1, writes frame f as f / rate seconds (older files: as f), and the stop frame belongs to the bout. A bout from
frame 1 to frame 3 is therefore read as frames [0, 3). Some programs write the end of the bout instead of its last frame; then the
Duration column is stop - start, and a note says so. Frames before "Annotation start frame" are unobserved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ethobench.core import Annotation, Ethogram, Observed, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import BoutRows, background_notes, frames_rate, origin_of
from ethobench.formats.frame_clock import at_rate
from ethobench.formats.text import Head, count_blank_lines, duplicates, parse_number, read_text

MAGIC = "bento annotation file"
FIELD = re.compile(r"annotation (start frame|stop frame|start time|stop time|framerate):\s*(\S+)", re.IGNORECASE)
RULE = "-" * 5  # at the end of the heading of a channel
TOLERANCE = 0.25  # frames
MAX_TIME = 1e12


@register_format("bento")
class BentoAnnot(Format):
    """Bouts by channel and behavior; entries are channels.

    Option for reading: ``rate``, the frame rate if the file does not state it; otherwise the result is resampled to it.
    """

    title = "BENTO annot"
    suffixes = (".annot",)
    keeps = ("overlaps", "touching", "length")
    multiple_recordings = True

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if head.text.lstrip().lower().startswith(MAGIC) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_parse(path).channels)

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        file = _parse(path)
        stated_rate = file.fields.get("framerate")
        clock, notes = (stated_rate, []) if stated_rate else frames_rate(rate)
        return [_recording(path, file, name, clock, rate, notes) for name in select_entries(path, entry, list(file.channels))]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotations = {_channel_name(r, len(recordings)): r.annotation() for r in recordings}
        first = next(iter(annotations.values()))
        if len(annotations) < len(recordings):
            raise EthobenchError("the channels of a BENTO file need different names, but several recordings have the same")
        if any((a.rate, a.n_frames) != (first.rate, first.n_frames) for a in annotations.values()):
            raise EthobenchError("the channels of a BENTO file share one clock, but these recordings differ in rate or length")
        ethogram = first.ethogram
        for annotation in annotations.values():
            ethogram = ethogram.join(annotation.ethogram)
        for name in (*ethogram.names, *annotations):
            if name != name.strip() or "\n" in name or "\r" in name or (name in annotations and name.endswith("-")):
                raise EthobenchError(
                    f"a BENTO file cannot store the name {name!r} (spaces or a dash at its end, or line breaks); rename it"
                )
        lines = ["Bento annotation file", "Movie file(s): ", "", "Stimulus name: ", "Annotation start frame: 1"]
        lines += [f"Annotation stop frame: {first.n_frames}", f"Annotation framerate: {first.rate!r}", ""]
        lines += ["List of channels:", *annotations, "", "List of annotations:", *ethogram.names, ""]
        for name, annotation in annotations.items():
            lines += [f"{name}----------", *_channel_lines(annotation), ""]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        return background_notes(self.title, ethogram)


@dataclass
class _Row:
    behavior: str
    start: float
    stop: float
    duration: float
    line: int


@dataclass
class _File:
    """Content of a file, in the units of the file; `channel` and `behavior` are those of the line that is parsed."""

    fields: dict[str, float] = field(default_factory=dict)
    movies: str = ""
    behaviors: list[str] = field(default_factory=list)
    channels: dict[str, list[_Row]] = field(default_factory=dict)
    in_seconds: bool = False
    channel: str = ""
    behavior: str = ""
    listed: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)


def _parse(path: Path) -> _File:
    text = read_text(path)
    lines, top = text.split("\n"), count_blank_lines(text)[0]
    if not lines[top].strip().lower().startswith(MAGIC):
        raise FormatError(path, "not a BENTO file: the first line must be 'Bento annotation file'", f"line {top + 1}")
    file = _File()
    section = ""
    for number, raw in enumerate(lines[top + 1 :], start=top + 2):
        line = raw.strip()
        field_match = FIELD.match(line)
        if not line:
            section = ""
        elif line.lower().startswith("movie file"):
            file.movies = line.partition(":")[2].strip()
        elif field_match:
            file.fields[field_match[1].lower()] = _number(path, field_match[2], number)
        elif line.lower() in ("list of channels:", "list of annotations:"):
            section = line.lower()
        elif section == "list of channels:":
            file.channels[line] = []
        elif section == "list of annotations:":
            file.behaviors.append(line)
            file.listed.add(line)
        else:
            _parse_channel_line(path, file, line, number)
    repeated = sorted(duplicates(file.behaviors))
    if repeated:
        message = f"duplicate behaviors in the list of annotations; read as one: {', '.join(repeated)}"
        file.notes.append(Note(message, code="duplicate-behavior"))
        file.behaviors = list(dict.fromkeys(file.behaviors))
    return file


def _parse_channel_line(path: Path, file: _File, line: str, number: int) -> None:
    """Parse the heading of a channel or of a behavior, or a bout."""
    location = f"line {number}"
    heading = line.rstrip("-") if line.endswith(RULE) else ""
    if heading:
        file.channel, file.behavior = heading, ""
        if heading not in file.channels:
            file.notes.append(Note(f"channel {heading!r} is not in the list of channels; added", location, "unlisted-channel"))
        file.channels.setdefault(heading, [])
    elif line.startswith(">"):
        file.behavior = line[1:].strip()
        if file.behavior not in file.listed:
            message = f"{file.behavior!r} is not in the list of annotations; added"
            file.notes.append(Note(message, location, "unknown-behaviors"))
            file.behaviors.append(file.behavior)
            file.listed.add(file.behavior)
    elif file.channel and file.behavior and not line.lower().startswith("start"):
        cells = line.split()
        if len(cells) < 2:
            raise FormatError(path, f"expected a start and a stop, got {line!r} (is the file truncated?)", location)
        start, stop, duration, *_ = [*(_number(path, cell, number) for cell in cells[:3]), np.nan]
        file.channels[file.channel].append(_Row(file.behavior, start, stop, duration, number))
        file.in_seconds |= any("." in cell for cell in cells[:3])


def _recording(path: Path, file: _File, channel: str, rate: float, requested_rate: float | None, first_notes: list[Note]) -> Recording:
    notes = [*first_notes, *file.notes]
    scale = rate if file.in_seconds else 1.0
    all_rows = [row for rows in file.channels.values() for row in rows]
    first = file.fields.get("start frame", np.round(file.fields.get("start time", 1 / rate) * rate))
    last = file.fields.get("stop frame", np.round(file.fields.get("stop time", 0) * rate))
    base = 0 if first < 1 or any(row.start * scale < 1 - TOLERANCE for row in all_rows) else 1
    if base == 0:
        notes.append(Note("bouts begin at 0, so frames are counted from 0, not from 1 as in BENTO", code="frames-from-zero"))
    longer = np.array([(row.duration - (row.stop - row.start)) * scale for row in all_rows])
    ends = bool(all_rows) and bool((np.abs(longer) < TOLERANCE).mean() > 0.5)
    if ends:
        message = "Duration is stop - start, so the stop is read as the end of the bout, not as its last frame"
        notes.append(Note(message, code="exclusive-stop"))
    table = BoutRows(path)
    for row in file.channels[channel]:
        start, stop = (round(time * scale - base, 6) for time in (row.start, row.stop))
        table.add(start, stop + (0 if ends or row.stop < row.start else 1), row.behavior, location=f"line {row.line}")
    length = int(last) + (1 if first < 1 else 0) if last > 0 else None
    observed = None
    if first > 1:
        end = max([length or 0, *(int(np.floor(stop + 0.5)) for stop in table.stop)])
        observed = Observed(iv.intervals([int(first) - 1], [end]))
    ethogram = Ethogram(file.behaviors, guess_background(file.behaviors))
    annotation, more_notes = table.to_annotation(ethogram, rate, seconds=False, n_frames=length, observed=observed)
    annotation, last_notes = at_rate(annotation, requested_rate)
    name = path.stem if len(file.channels) == 1 else f"{path.stem}/{channel}"
    metadata = {"channel": channel, **({"movies": file.movies} if file.movies else {})}
    notes += [*more_notes, *last_notes]
    return Recording(
        name,
        individual=path.stem,
        annotations={DEFAULT_ANNOTATOR: annotation},
        metadata=metadata,
        notes=tuple(notes),
        clock_origin=origin_of(file.fields.get("framerate")),
    )


def _channel_name(recording: Recording, count: int) -> str:
    channel = recording.metadata.get("channel")
    return str(channel) if channel else "Ch1" if count == 1 else recording.id.rpartition("/")[2]


def _channel_lines(annotation: Annotation) -> list[str]:
    lines = []
    for code, name in enumerate(annotation.ethogram.names):
        chosen = np.flatnonzero((annotation.behavior == code) & (annotation.stop > annotation.start))
        if chosen.size:
            lines += [f">{name}", "Start\t Stop\t Duration "]
            for i in chosen:
                start, stop = int(annotation.start[i]), int(annotation.stop[i])
                lines.append("\t".join(_seconds(frames, annotation.rate) for frames in (start + 1, stop, stop - start)))
            lines.append("")
    return lines


def _seconds(frames: int, rate: float) -> str:
    """Return frames as seconds with a decimal point, which distinguishes them from frame numbers."""
    text = f"{frames / rate:.12g}"
    return text if "." in text or "e" in text else f"{text}.0"


def _number(path: Path, text: str, line: int) -> float:
    try:
        value = parse_number(text)
    except ValueError:
        raise FormatError(path, f"{text!r} is not a number", f"line {line}") from None
    if not abs(value) < MAX_TIME:
        raise FormatError(path, f"implausible time {text!r}", f"line {line}")
    return value
