"""A hidden behavior process: which behavior, for how long, what next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram


@dataclass(frozen=True)
class State:
    """One behavior of the process.

    Attributes
    ----------
    name : str
    duration : float
        Mean length of a bout in seconds.
    shape : float
        Of the gamma distribution of lengths; the larger, the more regular.
    share : float
        How often it follows other behaviors, relative to the others.
    """

    name: str
    duration: float
    shape: float
    share: float


def sample_codes(states: tuple[State, ...], n_frames: int, rate: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw one behavior code per frame; no behavior follows itself."""
    share = np.array([state.share for state in states])
    follow = np.tile(share, (len(states), 1)) * (1 - np.eye(len(states)))
    cumulative = np.cumsum(follow / follow.sum(axis=1, keepdims=True), axis=1)
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


def vary(states: tuple[State, ...], generator: np.random.Generator, spread: float) -> tuple[State, ...]:
    """Give an individual durations and preferences of its own."""
    factors = np.exp(generator.normal(0, spread, (len(states), 2)))
    return tuple(State(s.name, s.duration * f[0], s.shape, s.share * f[1]) for s, f in zip(states, factors, strict=True))


def to_annotation(codes: NDArray[np.int64], ethogram: Ethogram, rate: float) -> Annotation:
    """Make the annotation that the process itself would give."""
    return Annotation.from_frames(codes, ethogram, rate)
