"""Prompts and worked examples. The same task, video and examples always give the same prompt, character by character."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import ParameterError
from ethobench.mllm.request import Clip, Part, Text
from ethobench.mllm.task import Task, format_time

SYSTEM_PROMPT = (
    "You are an experienced ethologist. You annotate videos of animals carefully and completely, from the first second to the last."
)
TIME_DESCRIPTIONS = {
    "MM:SS": "minutes and seconds, such as 02:05 (minutes may exceed 59)",
    "HH:MM:SS": "hours, minutes and seconds, such as 00:02:05",
    "seconds": "seconds as a number, such as 125.5",
}
EXAMPLE_KINDS = ("text", "clips", "excerpts")
Segment = tuple[float, float, str]
ClipMaker = Callable[[Recording, float, float], Clip]


@dataclass(frozen=True)
class Example:
    """A worked example: an annotation, with or without the video.

    Attributes
    ----------
    segments : tuple of (start, stop, behavior)
        Times in seconds from the start of the example.
    duration : float
        Seconds.
    clip : Clip, optional
        The video; without it only the annotation is part of the prompt.
    behavior : str
        The behavior, for an example of a single one.
    """

    segments: tuple[Segment, ...]
    duration: float
    clip: Clip | None = None
    behavior: str = ""


def select_examples(
    recordings: Sequence[Recording], truths: Mapping[str, Annotation], make_clip: ClipMaker, *, kind: str, shots: int, seconds: float
) -> tuple[Example, ...]:
    """Select worked examples from annotated recordings. The selection is deterministic.

    Parameters
    ----------
    recordings : sequence of Recording
    truths : mapping of str to Annotation
        Reference annotations by recording id.
    make_clip : callable
        Makes the clip of a recording between two times in seconds.
    kind : {"text", "clips", "excerpts"}
        Annotations of `shots` recordings without video; `shots` clips of each behavior; or annotated excerpts of `shots` videos.
    shots : int
    seconds : float
        Maximum duration of an example.
    """
    if kind not in EXAMPLE_KINDS:
        raise ParameterError(f"the kind of examples must be one of {', '.join(EXAMPLE_KINDS)}, got {kind!r}")
    if shots <= 0:
        return ()
    if kind == "clips":
        return tuple(_select_clips(recordings, truths, make_clip, shots, seconds))
    examples = []
    for recording in recordings[:shots]:
        truth = truths[recording.id]
        start, stop = _richest_excerpt(truth, seconds)
        segments = annotation_segments(truth.crop(start, stop), truth.ethogram)
        clip = make_clip(recording, start / truth.rate, stop / truth.rate) if kind == "excerpts" else None
        examples.append(Example(tuple(segments), (stop - start) / truth.rate, clip))
    return tuple(examples)


def annotation_segments(annotation: Annotation, ethogram: Ethogram) -> list[Segment]:
    """Return the segments of an annotation's observed frames, with times in seconds, in order of time.

    If one behavior excludes the others, frames without any are segments of the background; without a background they are omitted.
    """
    pooled = annotation.without_subjects().with_ethogram(ethogram)
    if pooled.is_exclusive:
        runs = iv.encode_runs(pooled.to_codes())
        has_behavior = (runs.values >= 0) & (runs.values < len(ethogram))  # type: ignore[operator]
        columns = (runs.start[has_behavior], runs.stop[has_behavior], runs.values[has_behavior])
    else:
        columns = (pooled.start, pooled.stop, pooled.behavior)
    return [(float(a / pooled.rate), float(b / pooled.rate), ethogram[int(code)].name) for a, b, code in zip(*columns, strict=True)]


def _richest_excerpt(truth: Annotation, seconds: float) -> tuple[int, int]:
    """Return start and stop frame of the excerpt with the most behaviors, then the most observed frames; the first one of equals."""
    length = min(truth.n_frames, max(1, int(seconds * truth.rate)))
    best, best_rank = (0, length), (-1, -1.0)
    for start in range(0, truth.n_frames - length + 1, max(1, length // 2)):
        excerpt = truth.crop(start, start + length)
        rank = (len(np.unique(excerpt.behavior)), float(iv.total(excerpt.observed.of_any())))
        if rank > best_rank:
            best, best_rank = (start, start + length), rank
    return best


def _select_clips(
    recordings: Sequence[Recording], truths: Mapping[str, Annotation], make_clip: ClipMaker, shots: int, seconds: float
) -> list[Example]:
    """Select the longest bouts of each behavior."""
    examples = []
    for behavior in truths[recordings[0].id].ethogram if recordings else ():
        bouts = []
        for index, recording in enumerate(recordings):
            truth = truths[recording.id]
            spans = truth.spans(behavior.name)
            for start, stop in zip(spans.start.tolist(), spans.stop.tolist(), strict=True):
                end = min(stop, start + max(1, int(seconds * truth.rate)))
                bouts.append((-(end - start) / truth.rate, index, start, end))
        for _, index, start, end in sorted(bouts)[:shots]:
            if end > start:
                rate = truths[recordings[index].id].rate
                clip = make_clip(recordings[index], start / rate, end / rate)
                duration = (end - start) / rate
                examples.append(Example(((0.0, duration, behavior.name),), duration, clip, behavior.name))
    return examples


def build_prompt(
    task: Task, clip: Clip, *, time_format: str = "MM:SS", examples: Sequence[Example] = (), initial: Annotation | None = None
) -> tuple[str, tuple[Part, ...]]:
    """Return the system prompt and the parts of the user prompt.

    Parameters
    ----------
    task : Task
    clip : Clip
        The video to annotate.
    time_format : {"MM:SS", "HH:MM:SS", "seconds"}
    examples : sequence of Example
        Worked examples.
    initial : Annotation, optional
        A person's annotation of the beginning of the clip.
    """
    parts: list[Part] = [Text(_instructions(task, clip, time_format))]
    for number, example in enumerate(examples, start=1):
        parts.append(Text(_introduction(example, number, len(examples), time_format)))
        if example.clip is not None:
            parts.append(example.clip)
        parts.append(Text(f"Its annotation:\n{_segments_as_json(example.segments, time_format)}"))
    if initial is not None:
        until = format_time(_last_observed_frame(initial) / initial.rate, time_format)
        segments = _segments_as_json(annotation_segments(initial, task.ethogram), time_format)
        parts.append(
            Text(f"A person has annotated the beginning of this video, until {until}:\n{segments}\nAnnotate all of it in that manner.")
        )
    only = " Annotate only this one, not the examples." if examples else ""
    parts += [Text(f"This is the video to annotate.{only}"), clip]
    return SYSTEM_PROMPT, tuple(parts)


def _instructions(task: Task, clip: Clip, time_format: str) -> str:
    end = format_time(clip.duration, time_format)
    lines = [f"Annotate the behavior in a video of {task.animals}{', seen ' + task.view if task.view else ''}. It ends at {end}."]
    lines += ["", "Behaviors, with the labels to use exactly as written here:"]
    lines += [f"- {b.name}: {b.definition}" if b.definition else f"- {b.name}" for b in task.ethogram]
    lines += ["", "Rules:"]
    if task.exclusive:
        beginning = format_time(0, time_format)
        lines.append(f"- Exactly one behavior goes on at any time: segments follow each other without gaps from {beginning} to {end}.")
    else:
        lines.append("- Several behaviors may go on at once: segments may overlap, and times without any of them are left out.")
    lines += [
        "- A new segment begins whenever the behavior changes, however short it is.",
        f"- Times count from the beginning of the video, in {TIME_DESCRIPTIONS[time_format]}.",
        *(["- The time is written in the upper left corner of the picture."] if clip.timestamps else []),
        *(["- The video is given as single pictures, each after its time."] if clip.input_type == "frames" else []),
        "- Use no other labels, and answer with JSON alone: no other words, no Markdown.",
        "",
        "Fields of a segment: segment_number (counts from 1), start_time, end_time, behavior.",
        "The form of an answer (the values are invented):",
        _sample_answer(task, time_format),
    ]
    return "\n".join(lines)


def _sample_answer(task: Task, time_format: str) -> str:
    names = task.ethogram.names
    return _segments_as_json([(0.0, 7.0, names[0]), (7.0, 12.0, names[1 % len(names)])], time_format)


def _introduction(example: Example, number: int, count: int, time_format: str) -> str:
    shows = f"shows {example.behavior}" if example.behavior else f"is annotated in full, until {format_time(example.duration, time_format)}"
    video = "Another video" if example.clip is None else "The video that follows"
    return f"Example {number} of {count}. {video} {shows}."


def _segments_as_json(segments: Sequence[Segment], time_format: str) -> str:
    """Write segments in the form of an answer, one per line."""
    rows = [
        json.dumps(
            {
                "segment_number": number,
                "start_time": format_time(start, time_format),
                "end_time": format_time(stop, time_format),
                "behavior": name,
            },
            ensure_ascii=False,
        )
        for number, (start, stop, name) in enumerate(segments, start=1)
    ]
    return '{"segments": [\n' + ",\n".join(rows) + "\n]}"


def _last_observed_frame(annotation: Annotation) -> int:
    observed = annotation.observed.of_any()
    return int(observed.stop.max()) if len(observed.stop) else 0
