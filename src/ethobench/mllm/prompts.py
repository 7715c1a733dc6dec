"""The words that a model is asked with: the same for the same task, video and examples, to the last character."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ethobench.core import Annotation
from ethobench.mllm.examples import Example, segments_of
from ethobench.mllm.request import Clip, Part, Text
from ethobench.mllm.schema import time_text
from ethobench.mllm.task import Task

ROLE = "You are an experienced ethologist. You annotate videos of animals carefully and completely, from the first second to the last."
CLOCKS = {
    "MM:SS": "minutes and seconds, such as 02:05 (minutes may exceed 59)",
    "HH:MM:SS": "hours, minutes and seconds, such as 00:02:05",
    "seconds": "seconds as a number, such as 125.5",
}


def build_prompt(
    task: Task, clip: Clip, *, times: str = "MM:SS", examples: Sequence[Example] = (), given: Annotation | None = None
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
        until = time_text(_observed_until(given) / given.rate, times)
        known = segments_text(segments_of(given, task.ethogram), times)
        parts.append(
            Text(f"A person has annotated the beginning of this video, until {until}:\n{known}\nAnnotate all of it in that manner.")
        )
    only = " Annotate only this one, not the examples." if examples else ""
    parts += [Text(f"This is the video to annotate.{only}"), clip]
    return ROLE, tuple(parts)


def _question(task: Task, clip: Clip, times: str) -> str:
    end = time_text(clip.duration, times)
    lines = [f"Annotate the behavior in a video of {task.animals}{', seen ' + task.view if task.view else ''}. It ends at {end}."]
    lines += ["", "Behaviors, with the labels to use exactly as written here:"]
    lines += [f"- {b.name}: {b.definition}" if b.definition else f"- {b.name}" for b in task.ethogram]
    lines += ["", "Rules:"]
    if task.exclusive:
        lines.append(
            f"- Exactly one behavior goes on at any time: segments follow each other without gaps from {time_text(0, times)} to {end}."
        )
    else:
        lines.append("- Several behaviors may go on at once: segments may overlap, and times without any of them are left out.")
    lines += [
        "- A new segment begins whenever the behavior changes, however short it is.",
        f"- Times count from the beginning of the video, in {CLOCKS[times]}.",
        *(["- The time is written in the upper left corner of the picture."] if clip.timestamps else []),
        *(["- The video is given as single pictures, each after its time."] if clip.form == "frames" else []),
        "- Use no other labels, and answer with JSON alone: no other words, no Markdown.",
        "",
        "Fields of a segment: segment_number (counts from 1), start_time, end_time, behavior.",
        "The form of an answer (the values are invented):",
        _form(task, times),
    ]
    return "\n".join(lines)


def _form(task: Task, times: str) -> str:
    names = task.ethogram.names
    return segments_text([(0.0, 7.0, names[0]), (7.0, 12.0, names[1 % len(names)])], times)


def _introduction(example: Example, number: int, count: int, times: str) -> str:
    shown = f"shows {example.behavior}" if example.behavior else f"is annotated in full, until {time_text(example.duration, times)}"
    what = "Another video" if example.clip is None else "The video that follows"
    return f"Example {number} of {count}. {what} {shown}."


def segments_text(segments: Sequence[tuple[float, float, str]], times: str) -> str:
    """Write segments as an answer has them, one on each line."""
    rows = [
        json.dumps(
            {"segment_number": k, "start_time": time_text(start, times), "end_time": time_text(stop, times), "behavior": name},
            ensure_ascii=False,
        )
        for k, (start, stop, name) in enumerate(segments, start=1)
    ]
    return '{"segments": [\n' + ",\n".join(rows) + "\n]}"


def _observed_until(annotation: Annotation) -> int:
    seen = annotation.observed.of_any()
    return int(seen.stop.max()) if len(seen.stop) else 0
