"""Synthetic datasets: a semi-Markov process generates behavior, simulated animals perform it, simulated people annotate it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Recording
from ethobench.core.errors import ParameterError
from ethobench.core.recording import Data
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.synthetic_signals import (
    BACKGROUND,
    HEIGHT,
    PAIR,
    POSE_STATES,
    TAG_STATES,
    TRIO,
    TRIO_STATES,
    WIDTH,
    State,
    annotate_trio,
    draw_pairs,
    simulate_pair,
    simulate_tag,
    simulate_trio,
)

REVISION = 1
"""Increased when the same arguments give other data."""

TRUTH = "truth"
"""Annotator of recordings without simulated annotators: the true behavior."""


@dataclass(frozen=True)
class Annotator:
    """Parameters of a simulated annotator.

    Attributes
    ----------
    name : str
    delay : float
        Mean reaction time in seconds, for starts and stops alike.
    jitter : float
        Standard deviation of each boundary in seconds.
    missed : float
        Probability that a bout of one second is missed; longer bouts are missed less.
    shortest : float
        Minimum duration in seconds of a bout to be annotated.
    generous : float
        Seconds by which bouts start earlier and stop later.
    """

    name: str
    delay: float = 0.2
    jitter: float = 0.1
    missed: float = 0.05
    shortest: float = 0.0
    generous: float = 0.0


ANNOTATORS = (Annotator("ann1", delay=0.15, jitter=0.08, missed=0.03), Annotator("ann2", delay=0.3, jitter=0.15, missed=0.1))
KINDS = {"pose": (POSE_STATES, BACKGROUND, 30.0), "tag": (TAG_STATES, None, 25.0), "trio": (TRIO_STATES, BACKGROUND, 30.0)}
"""States, background and default rate of each kind of dataset."""


@register_dataset("synthetic")
class Synthetic(Family):
    """Simulated animals.

    ``pose``: two mice seen from above; ``trio``: three, with subjects and targets; ``tag``: an accelerometer and gyroscope; ``labs``: two
    to four mice in the recording conditions of 19 labs, annotated in the style of each lab.
    """

    title = "simulated: behavior known exactly, individuals that differ, simulated annotators"
    licence = "MIT"
    variants = ("labs", "pose", "tag", "trio")

    def load(self, variant: str, **options: Any) -> Dataset:
        if variant == "labs":
            from ethobench.datasets.synthetic_labs import make_labs

            return make_labs(**options)
        return make_dataset(variant, **options)


def make_dataset(
    kind: str,
    *,
    individuals: int = 8,
    recordings: int = 1,
    seconds: float = 300.0,
    rate: float | None = None,
    seed: int = 0,
    missing: float = 0.02,
    spread: float = 0.25,
    folds: int = 4,
    annotators: Sequence[Annotator] = (),
) -> Dataset:
    """Simulate a dataset; the same arguments give the same data.

    Parameters
    ----------
    kind : {"pose", "tag", "trio"}
    individuals : int
        Number of animals (or pairs); each differs in body, pace and habits.
    recordings : int
        Number of recordings of each individual.
    seconds : float
        Length of a recording.
    rate : float, optional
        Frames per second. Default: 30 Hz for poses, 25 Hz for tags.
    seed : int
        Random seed.
    missing : float
        Share of keypoints that the tracker misses.
    spread : float
        How much individuals differ.
    folds : int
        Number of folds that individuals are assigned to.
    annotators : sequence of Annotator
        Simulated annotators. Without any, recordings have the true behavior only, by annotator ``truth``.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> make_dataset("tag", individuals=2, seconds=10)
    Dataset('synthetic/tag', 2 recordings of 2 individuals, 500 frames)
    """
    if kind not in KINDS:
        raise ParameterError(f"`kind` must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    if kind == "trio" and annotators:
        raise ParameterError("`annotators` must be empty for synthetic/trio: simulated annotators do not record subjects and targets")
    for name, value in (("individuals", individuals), ("recordings", recordings)):
        if value < 1:
            raise ParameterError(f"`{name}` must be >= 1, got {value}")
    if seconds <= 0:
        raise ParameterError(f"`seconds` must be > 0, got {seconds:g}")
    states, background, default_rate = KINDS[kind]
    rate = rate or default_rate
    ethogram = Ethogram([state.name for state in states], background)
    simulated, fold_of = [], {}
    for animal in range(individuals):
        habits = vary_states(states, np.random.default_rng([seed, animal]), spread)
        for number in range(recordings):
            name = f"animal{animal + 1:02d}" + (f"_{number + 1}" if recordings > 1 else "")
            behavior_seed, signal_seed, *annotator_seeds = np.random.SeedSequence([seed, animal, number]).spawn(2 + len(annotators))
            codes = sample_codes(habits, round(seconds * rate), rate, np.random.default_rng(behavior_seed))
            pairs = draw_pairs(codes, np.random.default_rng([seed, animal, number, 2]))
            truth = annotate_trio(codes, pairs, ethogram, rate) if kind == "trio" else Annotation.from_frames(codes, ethogram, rate)
            annotations = {
                annotator.name: annotate(truth, annotator, np.random.default_rng(annotator_seed))
                for annotator, annotator_seed in zip(annotators, annotator_seeds, strict=True)
            }
            simulated.append(
                Recording(
                    name,
                    individual=f"animal{animal + 1:02d}",
                    rate=rate,
                    n_frames=len(codes),
                    signals=partial(_signals, kind, codes, pairs, rate, [seed, animal], signal_seed, missing),
                    annotations=annotations or {TRUTH: truth},
                    subjects={"pose": PAIR, "trio": TRIO}.get(kind, ()),
                    metadata={"width": WIDTH, "height": HEIGHT} if kind != "tag" else {},
                )
            )
            fold_of[name] = animal % folds
    options = f"{individuals}-{recordings}-{seconds:g}-{rate:g}-{seed}-{missing:g}-{spread:g}-{'+'.join(map(str, annotators))}"
    return Dataset(
        recordings=tuple(simulated),
        ethogram=ethogram,
        name=f"synthetic/{kind}",
        folds=fold_of,
        source="made by ethobench",
        licence="MIT",
        version=f"{REVISION}-{options}",
    )


def sample_codes(states: tuple[State, ...], n_frames: int, rate: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Sample a semi-Markov process: one code per frame (n_frames,). No behavior follows itself."""
    share = np.array([state.share for state in states])
    transitions = np.tile(share, (len(states), 1)) * (1 - np.eye(len(states)))
    cumulative = np.cumsum(transitions / transitions.sum(axis=1, keepdims=True), axis=1)
    mean = np.array([state.duration for state in states])
    shape = np.array([state.shape for state in states])
    count = int(2 * n_frames / rate / mean.min()) + 10
    draws = generator.random(count)
    order = np.empty(count, dtype=np.int64)
    code = int(np.argmax(share))
    for i, draw in enumerate(draws):
        order[i] = code
        code = int(np.searchsorted(cumulative[code], draw, side="right"))
    lengths = np.maximum(1, np.round(rate * generator.gamma(shape[order], mean[order] / shape[order]))).astype(np.int64)
    needed = int(np.searchsorted(np.cumsum(lengths), n_frames)) + 1
    return np.repeat(order[:needed], lengths[:needed])[:n_frames]


def vary_states(states: tuple[State, ...], generator: np.random.Generator, spread: float) -> tuple[State, ...]:
    """Vary the durations and frequencies of behaviors for one individual."""
    factors = np.exp(generator.normal(0, spread, (len(states), 2)))
    return tuple(State(s.name, s.duration * f[0], s.shape, s.share * f[1]) for s, f in zip(states, factors, strict=True))


def annotate(truth: Annotation, annotator: Annotator, generator: np.random.Generator) -> Annotation:
    """Simulate how an annotator annotates the true behavior, which must be exclusive."""
    background = truth.ethogram.background
    bouts = truth if background is None else truth.take(truth.behavior != background)
    seconds = (bouts.stop - bouts.start) / truth.rate
    noticed = (generator.random(len(bouts)) > annotator.missed ** np.maximum(seconds, 0.1)) & (seconds >= annotator.shortest)
    bouts = bouts.take(noticed)
    widening = np.array([[-annotator.generous], [annotator.generous]])
    shift = (generator.normal(annotator.delay, annotator.jitter, (2, len(bouts))) + widening) * truth.rate
    start = np.clip(np.round(bouts.start + shift[0]), 0, truth.n_frames).astype(np.int64)
    stop = np.clip(np.round(bouts.stop + shift[1]), 0, truth.n_frames).astype(np.int64)
    codes = np.full(truth.n_frames, len(truth.ethogram) if background is None else background, dtype=np.int64)
    for first, last, code in zip(start, stop, bouts.behavior, strict=True):
        codes[first:last] = code
    return Annotation.from_frames(codes, truth.ethogram, truth.rate)


def _signals(
    kind: str,
    codes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    rate: float,
    individual_seed: list[int],
    signal_seed: np.random.SeedSequence,
    missing: float,
) -> Data:
    """Simulate the signals of a recording: body size and pace of the individual, movement of the recording."""
    generator, individual = np.random.default_rng(signal_seed), np.random.default_rng([*individual_seed, 1])
    if kind == "pose":
        return simulate_pair(codes, rate, generator, individual, missing)
    if kind == "trio":
        return simulate_trio(codes, pairs, rate, generator, individual, missing)
    return simulate_tag(codes, rate, generator, individual)
