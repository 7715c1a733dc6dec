"""Rodent-Bench segment JSON: a list of segments, bare or under the key ``segments``.

A segment has ``segment_number``, ``start_time``, ``end_time`` and ``behavior``. Times are "MM:SS" (minutes may exceed
59), "HH:MM:SS" or seconds as a number. Segments are kept in the file's order (`Annotation.order`), since Rodent-Bench
lets the first one win where some overlap. This reader is strict; answers of language models are mended elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import ClockOrigin, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.bouts import SECONDS_RATE, BoutRows
from ethobench.formats.clock_text import clock_text, seconds_of
from ethobench.formats.per_frame import background_notes, named_ethogram
from ethobench.formats.text import Head, read_json

KEYS = ("start_time", "end_time", "behavior")
START = re.compile(r'\s*(\{\s*"segments"\s*:\s*\[|\[\s*\{)')
STYLES = ("seconds", "MM:SS", "HH:MM:SS")


@register_format("segments")
class SegmentJson(Format):
    """A list of segments with start, end and behavior.

    Option for reading: ``rate``, the clock to read on (1000 Hz unless given).
    Option for writing: ``times``, "seconds" (exact), "MM:SS" or "HH:MM:SS" (to the nearest second, as the prompts ask).
    """

    title = "segment JSON"
    suffixes = (".json",)
    keeps = ("overlaps", "touching")

    def sniff(self, path: Path, head: Head) -> float:
        text = head.text or head.raw.decode("utf-8", errors="replace")
        start = START.match(text.lstrip("\ufeff"))
        if not start:
            return 0.0
        if all(f'"{key}"' in text[:4000] for key in KEYS):
            return 0.95
        return 0.9 if re.fullmatch(r'\s*\{\s*"segments"\s*:\s*\[\s*\]\s*\}\s*', text) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        content = read_json(path)
        segments = content.get("segments") if isinstance(content, dict) else content
        if not isinstance(segments, list):
            raise FormatError(path, "a list of segments was expected, bare or under the key 'segments'")
        rows = BoutRows(path)
        extra = {str(key) for key in content if key != "segments"} if isinstance(content, dict) else set()
        for location, segment in enumerate(segments, start=1):
            _add(rows, segment, location)
            extra |= {str(key) for key in segment if key not in (*KEYS, "segment_number")}
        ethogram = named_ethogram(list(dict.fromkeys(rows.behavior)))
        annotation, notes = rows.to_annotation(ethogram, rate or SECONDS_RATE, seconds=True)
        if extra:
            notes.append(Note(f"keys not understood and left out: {', '.join(sorted(extra))}"))
        return [Recording(path.stem, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=ClockOrigin.ASSUMED)]

    def write(self, recordings: Sequence[Recording], path: Path, *, times: str = "seconds") -> list[Note]:
        if times not in STYLES:
            raise EthobenchError(f"times are one of {', '.join(STYLES)}, not {times!r}")
        a = recordings[0].annotation()
        segments = []
        rounded = 0
        lasting = [i for i in np.argsort(a.order, kind="stable") if a.stop[i] > a.start[i]]
        for number, i in enumerate(lasting, start=1):
            seconds = [round(int(frame) / a.rate, 6) for frame in (a.start[i], a.stop[i])]
            rounded += sum(s != int(s) for s in seconds) if times != "seconds" else 0
            start, stop = seconds if times == "seconds" else [clock_text(s, hours=times == "HH:MM:SS") for s in seconds]
            segments.append(
                {"segment_number": number, "start_time": start, "end_time": stop, "behavior": a.ethogram[int(a.behavior[i])].name}
            )
        path.write_text(json.dumps({"segments": segments}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        notes = [Note(f"{rounded} of {2 * len(lasting)} times are rounded to whole seconds")] if rounded else []
        unused = [name for code, name in enumerate(a.ethogram.names) if not (a.behavior == code).any()]
        if unused:
            notes.append(Note(f"{self.title} names only what occurs: {', '.join(unused)} will be unknown"))
        return [*notes, *background_notes(self.title, a.ethogram)]


def _add(rows: BoutRows, segment: Any, location: int) -> None:
    where = f"segment {location}"
    if not isinstance(segment, dict):
        raise FormatError(rows.path, f"a segment is an object with {', '.join(KEYS)}, not {json.dumps(segment)[:40]}", where)
    missing = [key for key in KEYS if key not in segment]
    if missing:
        raise FormatError(rows.path, f"no {', '.join(missing)}; there are: {', '.join(map(str, segment)) or 'no keys at all'}", where)
    if not isinstance(segment["behavior"], str) or not segment["behavior"].strip():
        raise FormatError(rows.path, f"behavior is the name of one, not {json.dumps(segment['behavior'])[:40]}", where)
    start, stop = (_time(rows.path, segment[key], f"{where}, {key}") for key in KEYS[:2])
    rows.add(start, stop, segment["behavior"].strip(), location=where)


def _time(path: Path, value: Any, where: str) -> float:
    seconds = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        seconds = seconds_of(value)
    if seconds is None or not np.isfinite(seconds):
        raise FormatError(path, f"{json.dumps(value)[:40]} is no time; write MM:SS, HH:MM:SS or seconds", where)
    return seconds
