"""Answers read as Rodent-Bench's own code reads them, so that its figures can be reproduced.

A fence is taken off, the rest must be valid JSON: ``segments`` or a bare list. A missing time is 0, a missing behavior "".
Times are numbers or have colons, of which all but the first two parts are ignored. Labels count as they are written, segments
may overlap and run past the end. What cannot be read is left out, and so is that video from all means.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram
from ethobench.core import intervals as iv
from ethobench.mllm.find_json import MAX_CHARS
from ethobench.mllm.repair import Answer

LONGEST = 24 * 3600.0
UNNAMED = "(no behavior)"


def parse_published(text: str, ethogram: Ethogram, duration: float, rate: float) -> Answer:
    """Read an answer by the published rules; parameters as for `parse_answer`."""
    n_frames = max(1, int(duration * rate + 0.5))
    try:
        rows = [_row(segment) for segment in _segments(text)]
        if any(not 0 <= time <= LONGEST for row in rows for time in row[:2]):
            raise ValueError("a time is negative or beyond a day")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        nothing = Annotation.from_bouts([], [], [], ethogram, rate, n_frames, observed=iv.empty())
        return Answer(nothing, failed=True, reason=f"left out by the published rule ({' '.join(str(error).split())[:80]})")
    labels = dict.fromkeys(label for _, _, label in rows)
    joined = ethogram.join(Ethogram([label for label in labels if label not in ethogram]))
    start, stop = (np.floor(np.array([row[k] for row in rows], dtype=float) * rate + 0.5).astype(np.int64) for k in (0, 1))
    stop = np.maximum(start, stop)
    length = max(n_frames, int(stop.max())) if rows else n_frames
    return Answer(Annotation.from_bouts(start, stop, [row[2] for row in rows], joined, rate, length))


def _segments(text: str) -> list[Any]:
    text = text.strip()
    if len(text) > MAX_CHARS:
        raise ValueError("too long")
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    value = json.loads(text)
    segments = value["segments"] if isinstance(value, dict) and "segments" in value else value
    if not isinstance(segments, list):
        raise ValueError("no list of segments")
    return segments


def _row(segment: Any) -> tuple[float, float, str]:
    label = segment.get("behavior", "")
    return _seconds(segment.get("start_time", 0)), _seconds(segment.get("end_time", 0)), str(label)[:100] or UNNAMED


def _seconds(value: Any) -> float:
    if isinstance(value, str) and ":" in value:
        minutes, seconds = value.split(":")[:2]
        return 60 * float(minutes) + float(seconds)
    return float(value)
