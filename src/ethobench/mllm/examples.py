"""Worked examples: annotated videos, or annotations alone, that show a model what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.mllm.request import Clip

KINDS = ("text", "clips", "stretches")
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


def pick_examples(
    recordings: Sequence[Recording], truths: Mapping[str, Annotation], make_clip: ClipMaker, *, kind: str, shots: int, seconds: float
) -> tuple[Example, ...]:
    """Choose worked examples from annotated recordings; the same ones for the same recordings.

    Parameters
    ----------
    recordings : sequence of Recording
    truths : mapping of recordings' ids to Annotation
    make_clip : callable
        Makes the clip of a recording between two times.
    kind : {"text", "clips", "stretches"}
        The annotations of `shots` recordings without video; `shots` clips of every behavior; or `shots` stretches of video
        with their annotation.
    shots : int
    seconds : float
        How long an example may be.
    """
    if kind not in KINDS:
        raise EthobenchError(f"examples are {', '.join(KINDS)}, not {kind!r}")
    if shots <= 0:
        return ()
    if kind == "clips":
        return tuple(_clips(recordings, truths, make_clip, shots, seconds))
    made = []
    for recording in recordings[:shots]:
        truth = truths[recording.id]
        start, stop = _richest(truth, seconds)
        segments = segments_of(truth.crop(start, stop), truth.ethogram)
        clip = make_clip(recording, start / truth.rate, stop / truth.rate) if kind == "stretches" else None
        made.append(Example(tuple(segments), (stop - start) / truth.rate, clip))
    return tuple(made)


def segments_of(annotation: Annotation, ethogram: Ethogram) -> list[Segment]:
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
