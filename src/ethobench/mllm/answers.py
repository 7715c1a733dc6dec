"""X"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, Note
from ethobench.formats.bouts import SECONDS_RATE
from ethobench.mllm.answer_repair import mend
from ethobench.mllm.answer_segments import MAX_SEGMENTS, LabelMatcher, find_segments
from ethobench.mllm.json_extraction import MAX_CHARS, extract_json
from ethobench.mllm.repair_log import RepairLog, shorten


@dataclass(frozen=True)
class Answer:
    """What a model's answer says.

    Attributes
    ----------
    annotation : Annotation
        Without bouts, and with nothing observed, where the answer could not be read.
    repairs : dict of str to int
        How often what was mended, by kind; empty for a well-formed answer.
    failed : bool
        Whether nothing could be made of the answer.
    reason : str
        Why it failed.
    notes : tuple of Note
        The repairs in words.
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
    r"""Read a language model's answer; mend what can be mended and tell what was.

    Any text at all is parsed or refused in bounded time and memory. Nothing in it is executed or taken for a path.

    Parameters
    ----------
    text : str
        The answer as it came.
    ethogram : Ethogram or iterable of str
        The behaviors that were asked for.
    duration : float
        Length of the video in seconds.
    rate : float
        Frames per second of the annotation's clock.
    aliases : mapping of str to str, optional
        Other words for behaviors.
    exclusive : bool
        One behavior at a time: where segments overlap, the one listed first keeps the time.
    truncated : bool
        Whether the model is known to have been stopped; what follows the last segment is then not observed.

    Examples
    --------
    >>> text = 'Sure! ```json\n{"segments": [{"start_time": "00:05", "end_long_time": "00:09", "behavior": "Grooming"}]}```'
    >>> answer = parse_answer(text, Ethogram(["grooming", "other"], "other"), duration=60, rate=1)
    >>> answer.failed, answer.repairs, answer.annotation.start.tolist(), answer.annotation.stop.tolist()
    (False, {'fence': 1, 'prose': 1, 'key': 1, 'label': 1}, [5], [9])
    """
    if not isinstance(text, str):
        raise EthobenchError(f"an answer is text, not {type(text).__name__}")
    if not duration > 0 or not rate > 0:
        raise EthobenchError(f"a video has a length and a rate above zero, not {duration:g} s at {rate:g} Hz")
    ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
    n_frames = max(1, int(duration * rate + 0.5))
    log, labels = RepairLog(), LabelMatcher(ethogram, aliases)

    def failure(reason: str) -> Answer:
        nothing = Annotation.from_bouts([], [], [], ethogram, rate, n_frames, observed=iv.empty())
        return Answer(nothing, log.by_kind(), True, reason, log.notes())

    if not text.strip():
        return failure("the answer is empty")
    if len(text) > MAX_CHARS:
        return failure(f"the answer has {len(text):,} characters; {MAX_CHARS:,} are read at most")
    values = extract_json(text, log)
    if len(values) == 1 and isinstance(values[0], str):
        log.add("shape")
        values = extract_json(values[0], log)
    if not values:
        return failure(f"there is no JSON in the answer; it begins {shorten(text.strip())}")
    segments = find_segments(values, labels, log)
    if segments is None:
        return failure(f"there are no segments in the answer; it begins {shorten(text.strip())}")
    if len(segments) > MAX_SEGMENTS:
        return failure(f"the answer has {len(segments):,} segments; {MAX_SEGMENTS:,} are read at most")
    bouts = mend(segments, labels, duration, rate, n_frames, log, exclusive=exclusive)
    cut = truncated or "truncated" in log.counts
    if cut and not segments:
        return failure("the answer breaks off before its first complete segment")
    if segments and not len(bouts.start):
        told = ", ".join(f"{kind} {count}" for kind, count in log.by_kind().items())
        return failure(f"none of the {len(segments)} segments can be used ({told})")
    observed = Observed.full(n_frames)
    if cut:
        log.add("truncated", count=int("truncated" not in log.counts))
        observed = Observed(iv.intervals([0], [int(bouts.stop.max())]))
    annotation = Annotation.from_bouts(
        bouts.start, bouts.stop, bouts.behavior, ethogram, rate, n_frames, order=bouts.order, observed=observed
    )
    return Answer(annotation, log.by_kind(), notes=log.notes())


MAX_SECONDS = 24 * 3600.0
UNNAMED = "(no behavior)"


def parse_answer_as_published(text: str, ethogram: Ethogram, duration: float, rate: float) -> Answer:
    """Read an answer by the published rules; parameters as for `parse_answer`."""
    n_frames = max(1, int(duration * rate + 0.5))
    try:
        rows = [_strict_row(segment) for segment in _strict_segments(text)]
        if any(not 0 <= time <= MAX_SECONDS for row in rows for time in row[:2]):
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


def _strict_segments(text: str) -> list[Any]:
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


def _strict_row(segment: Any) -> tuple[float, float, str]:
    label = segment.get("behavior", "")
    return _strict_seconds(segment.get("start_time", 0)), _strict_seconds(segment.get("end_time", 0)), str(label)[:100] or UNNAMED


def _strict_seconds(value: Any) -> float:
    if isinstance(value, str) and ":" in value:
        minutes, seconds = value.split(":")[:2]
        return 60 * float(minutes) + float(seconds)
    return float(value)
