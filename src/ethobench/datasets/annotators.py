"""Simulated people: late, imprecise, and sometimes looking away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation


@dataclass(frozen=True)
class Annotator:
    """How a simulated annotator scores.

    Attributes
    ----------
    name : str
    delay : float
        Mean reaction time in seconds, at starts and stops alike.
    jitter : float
        Standard deviation of each boundary in seconds.
    missed : float
        Probability that a bout of one second is not noticed; longer ones are missed less.
    shortest : float
        Seconds below which a bout is not worth writing down.
    generous : float
        Seconds by which bouts begin earlier and end later than others would say.
    """

    name: str
    delay: float = 0.2
    jitter: float = 0.1
    missed: float = 0.05
    shortest: float = 0.0
    generous: float = 0.0


def annotate(truth: Annotation, annotator: Annotator, generator: np.random.Generator) -> Annotation:
    """Return what the annotator would write down of an exclusive annotation with a background."""
    background = truth.ethogram.background
    bouts = truth if background is None else truth.take(truth.behavior != background)
    seconds = (bouts.stop - bouts.start) / truth.rate
    noticed = (generator.random(len(bouts)) > annotator.missed ** np.maximum(seconds, 0.1)) & (seconds >= annotator.shortest)
    bouts = bouts.take(noticed)
    wider = np.array([[-annotator.generous], [annotator.generous]])
    shift = (generator.normal(annotator.delay, annotator.jitter, (2, len(bouts))) + wider) * truth.rate
    start = np.clip(np.round(bouts.start + shift[0]), 0, truth.n_frames).astype(np.int64)
    stop = np.clip(np.round(bouts.stop + shift[1]), 0, truth.n_frames).astype(np.int64)
    nothing = len(truth.ethogram) if background is None else background
    codes = np.full(truth.n_frames, nothing, dtype=np.int64)
    for first, last, code in zip(start, stop, bouts.behavior, strict=True):
        codes[first:last] = code
    return Annotation.from_frames(codes, truth.ethogram, truth.rate)
