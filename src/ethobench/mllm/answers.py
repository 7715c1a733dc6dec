"""Parsing of a model's answer: text in, annotation and a log of the repairs out.

`parse_answer` repairs what can be repaired. `parse_answer_as_published` follows the evaluation code of Rodent-Bench, so that its published
scores can be reproduced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import Note, ParameterError
from ethobench.formats.bouts import SECONDS_RATE
from ethobench.mllm.answer_repair import repair_segments
from ethobench.mllm.answer_segments import MAX_SEGMENTS, LabelMatcher, find_segments
from ethobench.mllm.json_extraction import MAX_CHARS, extract_json
from ethobench.mllm.repair_log import RepairLog, shorten

MAX_SECONDS = 24 * 3600.0
NO_LABEL = "(no behavior)"


@dataclass(frozen=True)
class Answer:
    """A parsed answer of a model.

    Attributes
    ----------
    annotation : Annotation
        Without bouts and unobserved if the answer cannot be read.
    repairs : dict of str to int
        Number of repairs by kind; empty for a well-formed answer.
    failed : bool
        Whether the answer cannot be read.
    reason : str
        Why it failed.
    notes : tuple of Note
        One note per kind of repair.
    """

    annotation: Annotation
    repairs: Mapping[str, int] = field(default_factory=dict)
    failed: bool = False
    reason: str = ""
    notes: tuple[Note, ...] = ()


def parse_answer(
    text: str,
    ethogram: Ethogram | Iterable[str],
    duration: float = 180,
    rate: float = SECONDS_RATE,
    *,
    aliases: Mapping[str, str] | None = None,
    exclusive: bool = True,
    truncated: bool = False,
) -> Answer:
    r"""Parse the answer of a language model, and repair it where needed.

    Any text is parsed or refused in bounded time and memory. Nothing in it is executed or used as a path.

    Parameters
    ----------
    text : str
        The raw answer.
    ethogram : Ethogram or iterable of str
        The behaviors of the task.
    duration : float
        Duration of the video in seconds.
    rate : float
        Frame rate of the annotation in Hz.
    aliases : mapping of str to str, optional
        Other names of behaviors.
    exclusive : bool
        Whether one behavior excludes the others. Where segments overlap, the one listed first keeps the time.
    truncated : bool
        Whether the provider reports that the answer is cut off. The time after the last segment is then unobserved.

    Returns
    -------
    Answer

    Examples
    --------
    >>> text = 'Sure! ```json\n{"segments": [{"start_time": "00:05", "end_long_time": "00:09", "behavior": "Grooming"}]}```'
    >>> answer = parse_answer(text, Ethogram(["grooming", "other"], "other"), duration=60, rate=1)
    >>> answer.failed, answer.repairs, answer.annotation.start.tolist(), answer.annotation.stop.tolist()
    (False, {'fence': 1, 'prose': 1, 'key': 1, 'label': 1}, [5], [9])
    """
    if not isinstance(text, str):
        raise ParameterError(f"`text` must be a string, got {type(text).__name__}")
    for name, value in (("duration", duration), ("rate", rate)):
        if not value > 0:
            raise ParameterError(f"`{name}` must be > 0, got {value:g}")
    ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
    n_frames = max(1, int(duration * rate + 0.5))
    log, labels = RepairLog(), LabelMatcher(ethogram, aliases)

    def failure(reason: str) -> Answer:
        return Answer(_unobserved(ethogram, rate, n_frames), log.by_kind(), True, reason, log.notes())

    segments = _extract_segments(text, labels, log)
    if isinstance(segments, str):
        return failure(segments)
    bouts = repair_segments(segments, labels, duration, rate, n_frames, log, exclusive=exclusive)
    is_cut_off = truncated or "truncated" in log.counts
    if is_cut_off and not segments:
        return failure("the answer is cut off before its first complete segment")
    if segments and not len(bouts.start):
        repairs = ", ".join(f"{kind} {count}" for kind, count in log.by_kind().items())
        return failure(f"none of the {len(segments)} segments can be used ({repairs})")
    observed = Observed.full(n_frames)
    if is_cut_off:
        log.add("truncated", count=int("truncated" not in log.counts))
        observed = Observed(iv.intervals([0], [int(bouts.stop.max())]))
    annotation = Annotation.from_bouts(
        bouts.start, bouts.stop, bouts.behavior, ethogram, rate, n_frames, order=bouts.order, observed=observed
    )
    return Answer(annotation, log.by_kind(), notes=log.notes())


def _extract_segments(text: str, labels: LabelMatcher, log: RepairLog) -> list[Any] | str:
    """Return the segments of an answer, or the reason why there are none."""
    if not text.strip():
        return "the answer is empty"
    if len(text) > MAX_CHARS:
        return f"the answer has {len(text):,} characters, more than the limit of {MAX_CHARS:,}"
    values = extract_json(text, log)
    if len(values) == 1 and isinstance(values[0], str):
        log.add("shape")
        values = extract_json(values[0], log)
    if not values:
        return f"no JSON in the answer, which begins with {shorten(text.strip())}"
    segments = find_segments(values, labels, log)
    if segments is None:
        return f"no segments in the answer, which begins with {shorten(text.strip())}"
    if len(segments) > MAX_SEGMENTS:
        return f"the answer has {len(segments):,} segments, more than the limit of {MAX_SEGMENTS:,}"
    return segments


def _unobserved(ethogram: Ethogram, rate: float, n_frames: int) -> Annotation:
    return Annotation.from_bouts([], [], [], ethogram, rate, n_frames, observed=iv.empty())


def parse_answer_as_published(text: str, ethogram: Ethogram, duration: float, rate: float) -> Answer:
    """Parse an answer as the evaluation code of Rodent-Bench does; parameters as for `parse_answer`.

    A code fence is removed; the rest must be valid JSON, either an object with ``segments`` or a bare list. A missing time is 0, a missing
    behavior is "". Times are numbers, or have colons, of which only the first two numbers are used. Labels are not changed. Segments may
    overlap and may end after the video. An answer that cannot be read fails, and its video is excluded from all means.
    """
    n_frames = max(1, int(duration * rate + 0.5))
    try:
        rows = [_read_strict_segment(segment) for segment in _parse_strict_json(text)]
        if any(not 0 <= time <= MAX_SECONDS for row in rows for time in row[:2]):
            raise ValueError("a time is negative or longer than a day")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = f"excluded by the published rule ({' '.join(str(error).split())[:80]})"
        return Answer(_unobserved(ethogram, rate, n_frames), failed=True, reason=reason)
    labels = dict.fromkeys(label for _, _, label in rows)
    joined = ethogram.join(Ethogram([label for label in labels if label not in ethogram]))
    start, stop = (np.floor(np.array([row[k] for row in rows], dtype=float) * rate + 0.5).astype(np.int64) for k in (0, 1))
    stop = np.maximum(start, stop)
    length = max(n_frames, int(stop.max())) if rows else n_frames
    return Answer(Annotation.from_bouts(start, stop, [row[2] for row in rows], joined, rate, length))


def _parse_strict_json(text: str) -> list[Any]:
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


def _read_strict_segment(segment: Any) -> tuple[float, float, str]:
    """Return start and stop in seconds, and the label."""
    label = segment.get("behavior", "")
    start, stop = (_parse_strict_time(segment.get(name, 0)) for name in ("start_time", "end_time"))
    return start, stop, str(label)[:100] or NO_LABEL


def _parse_strict_time(value: Any) -> float:
    if isinstance(value, str) and ":" in value:
        minutes, seconds = value.split(":")[:2]
        return 60 * float(minutes) + float(seconds)
    return float(value)
