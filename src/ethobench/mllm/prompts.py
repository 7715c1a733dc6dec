"""X"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.mllm.request import Clip, Part, Text
from ethobench.mllm.task import Task, format_time

EXAMPLE_KINDS = ("text", "clips", "excerpts")
Segment = tuple[float, float, str]
ClipMaker = Callable[[Recording, float, float], Clip]


@dataclass(frozen=True)
class Example:
    """One worked example.

    Attributes
    ----------
    segments : tuple of (start, stop, behavior)
        In seconds from the example's start.
    duration : float
    clip : Clip, optional
        The video; without it the annotation alone is shown.
    behavior : str
        Where the example shows one behavior only.
    """

    segments: tuple[Segment, ...]
    duration: float
    clip: Clip | None = None
    behavior: str = ""


def select_examples(
    recordings: Sequence[Recording], truths: Mapping[str, Annotation], make_clip: ClipMaker, *, kind: str, shots: int, seconds: float
) -> tuple[Example, ...]:
    """Choose worked examples from annotated recordings; the same ones for the same recordings.

    Parameters
    ----------
    recordings : sequence of Recording
    truths : mapping of recordings' ids to Annotation
    make_clip : callable
        Makes the clip of a recording between two times.
    kind : {"text", "clips", "excerpts"}
        The annotations of `shots` recordings without video; `shots` clips of every behavior; or `shots` stretches of video
        with their annotation.
    shots : int
    seconds : float
        How long an example may be.
    """
    if kind not in EXAMPLE_KINDS:
        raise EthobenchError(f"examples are {', '.join(EXAMPLE_KINDS)}, not {kind!r}")
    if shots <= 0:
        return ()
    if kind == "clips":
        return tuple(_clips(recordings, truths, make_clip, shots, seconds))
    made = []
    for recording in recordings[:shots]:
        truth = truths[recording.id]
        start, stop = _richest(truth, seconds)
        segments = annotation_segments(truth.crop(start, stop), truth.ethogram)
        clip = make_clip(recording, start / truth.rate, stop / truth.rate) if kind == "excerpts" else None
        made.append(Example(tuple(segments), (stop - start) / truth.rate, clip))
    return tuple(made)


def annotation_segments(annotation: Annotation, ethogram: Ethogram) -> list[Segment]:
    """Return what goes on in the observed frames, in seconds and in order of time.

    Where one behavior goes on at a time, frames without any are the named background; without such a name they are left out.
    """
    pooled = annotation.without_subjects().with_ethogram(ethogram)
    if pooled.is_exclusive:
        runs = iv.encode_runs(pooled.to_codes())
        kept = (runs.values >= 0) & (runs.values < len(ethogram))  # type: ignore[operator]
        columns = (runs.start[kept], runs.stop[kept], runs.values[kept])
    else:
        columns = (pooled.start, pooled.stop, pooled.behavior)
    return [(float(a / pooled.rate), float(b / pooled.rate), ethogram[int(code)].name) for a, b, code in zip(*columns, strict=True)]


def _richest(truth: Annotation, seconds: float) -> tuple[int, int]:
    """Return the stretch that shows most behaviors among those observed in full; the first of equals."""
    length = min(truth.n_frames, max(1, int(seconds * truth.rate)))
    best, most = (0, length), (-1, -1.0)
    for start in range(0, truth.n_frames - length + 1, max(1, length // 2)):
        part = truth.crop(start, start + length)
        shown = (len(np.unique(part.behavior)), float(iv.total(part.observed.of_any())))
        if shown > most:
            best, most = (start, start + length), shown
    return best


def _clips(
    recordings: Sequence[Recording], truths: Mapping[str, Annotation], make_clip: ClipMaker, shots: int, seconds: float
) -> list[Example]:
    made = []
    for behavior in truths[recordings[0].id].ethogram if recordings else ():
        bouts = []
        for place, recording in enumerate(recordings):
            truth = truths[recording.id]
            spans = truth.spans(behavior.name)
            for start, stop in zip(spans.start.tolist(), spans.stop.tolist(), strict=True):
                end = min(stop, start + max(1, int(seconds * truth.rate)))
                bouts.append((-(end - start) / truth.rate, place, start, end))
        for _, place, start, end in sorted(bouts)[:shots]:
            if end > start:
                rate = truths[recordings[place].id].rate
                clip = make_clip(recordings[place], start / rate, end / rate)
                duration = (end - start) / rate
                made.append(Example(((0.0, duration, behavior.name),), duration, clip, behavior.name))
    return made


ROLE = "You are an experienced ethologist. You annotate videos of animals carefully and completely, from the first second to the last."
CLOCKS = {
    "MM:SS": "minutes and seconds, such as 02:05 (minutes may exceed 59)",
    "HH:MM:SS": "hours, minutes and seconds, such as 00:02:05",
    "seconds": "seconds as a number, such as 125.5",
}


def build_prompt(
    task: Task, clip: Clip, *, time_format: str = "MM:SS", examples: Sequence[Example] = (), given: Annotation | None = None
) -> tuple[str, tuple[Part, ...]]:
    """Return the role, and the parts of the question in order.

    Parameters
    ----------
    task : Task
    clip : Clip
        The stretch to annotate.
    times : {"MM:SS", "HH:MM:SS", "seconds"}
    examples : sequence of Example
        Worked examples.
    given : Annotation, optional
        What a person has annotated of the beginning of this stretch.
    """
    parts: list[Part] = [Text(_question(task, clip, times))]
    for number, example in enumerate(examples, start=1):
        parts.append(Text(_introduction(example, number, len(examples), times)))
        if example.clip is not None:
            parts.append(example.clip)
        parts.append(Text(f"Its annotation:\n{segments_text(example.segments, times)}"))
    if given is not None:
        until = format_time(_observed_until(given) / given.rate, times)
        known = segments_text(annotation_segments(given, task.ethogram), times)
        parts.append(
            Text(f"A person has annotated the beginning of this video, until {until}:\n{known}\nAnnotate all of it in that manner.")
        )
    only = " Annotate only this one, not the examples." if examples else ""
    parts += [Text(f"This is the video to annotate.{only}"), clip]
    return ROLE, tuple(parts)


def _question(task: Task, clip: Clip, time_format: str) -> str:
    end = format_time(clip.duration, times)
    lines = [f"Annotate the behavior in a video of {task.animals}{', seen ' + task.view if task.view else ''}. It ends at {end}."]
    lines += ["", "Behaviors, with the labels to use exactly as written here:"]
    lines += [f"- {b.name}: {b.definition}" if b.definition else f"- {b.name}" for b in task.ethogram]
    lines += ["", "Rules:"]
    if task.exclusive:
        lines.append(
            f"- Exactly one behavior goes on at any time: segments follow each other without gaps from {format_time(0, times)} to {end}."
        )
    else:
        lines.append("- Several behaviors may go on at once: segments may overlap, and times without any of them are left out.")
    lines += [
        "- A new segment begins whenever the behavior changes, however short it is.",
        f"- Times count from the beginning of the video, in {CLOCKS[times]}.",
        *(["- The time is written in the upper left corner of the picture."] if clip.timestamps else []),
        *(["- The video is given as single pictures, each after its time."] if clip.input_type == "frames" else []),
        "- Use no other labels, and answer with JSON alone: no other words, no Markdown.",
        "",
        "Fields of a segment: segment_number (counts from 1), start_time, end_time, behavior.",
        "The form of an answer (the values are invented):",
        _form(task, times),
    ]
    return "\n".join(lines)


def _form(task: Task, time_format: str) -> str:
    names = task.ethogram.names
    return segments_text([(0.0, 7.0, names[0]), (7.0, 12.0, names[1 % len(names)])], times)


def _introduction(example: Example, number: int, count: int, time_format: str) -> str:
    shown = f"shows {example.behavior}" if example.behavior else f"is annotated in full, until {format_time(example.duration, times)}"
    what = "Another video" if example.clip is None else "The video that follows"
    return f"Example {number} of {count}. {what} {shown}."


def segments_text(segments: Sequence[tuple[float, float, str]], time_format: str) -> str:
    """Write segments as an answer has them, one on each line."""
    rows = [
        json.dumps(
            {"segment_number": k, "start_time": format_time(start, times), "end_time": format_time(stop, times), "behavior": name},
            ensure_ascii=False,
        )
        for k, (start, stop, name) in enumerate(segments, start=1)
    ]
    return '{"segments": [\n' + ",\n".join(rows) + "\n]}"


def _observed_until(annotation: Annotation) -> int:
    seen = annotation.observed.of_any()
    return int(seen.stop.max()) if len(seen.stop) else 0
