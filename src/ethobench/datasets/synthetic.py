"""Datasets made on the spot: a hidden semi-Markov process moves animals, simulated people watch them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Dataset, Ethogram, Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.recording import Data
from ethobench.datasets import synthetic_pose as pose
from ethobench.datasets import synthetic_tag as tag
from ethobench.datasets import synthetic_trio as trio
from ethobench.datasets.annotators import Annotator, annotate
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.semi_markov import sample_codes, to_annotation, vary

REVISION = 1
TRUTH = "truth"
ANNOTATORS = (Annotator("ann1", delay=0.15, jitter=0.08, missed=0.03), Annotator("ann2", delay=0.3, jitter=0.15, missed=0.1))
KINDS = {"pose": (pose.STATES, pose.BACKGROUND, 30.0), "tag": (tag.STATES, None, 25.0), "trio": (trio.STATES, trio.BACKGROUND, 30.0)}


@register_dataset("synthetic")
class Synthetic(Family):
    """``pose``: two mice seen from above; ``trio``: three, and who does what to whom; ``tag``: an accelerometer and gyroscope."""

    title = "made on the spot: behavior known exactly, individuals that differ, simulated annotators"
    licence = "MIT"
    variants = ("pose", "tag", "trio")

    def load(self, variant: str, **options: Any) -> Dataset:
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
    """Make a synthetic dataset; the same arguments give the same data.

    Parameters
    ----------
    kind : {"pose", "tag", "trio"}
    individuals : int
        Animals (or pairs), each with a body, pace and habits of its own.
    recordings : int
        Recordings of each individual.
    seconds : float
        Length of a recording.
    rate : float, optional
        30 Hz for poses and 25 Hz for tags unless given.
    seed : int
    missing : float
        Share of keypoints that the tracker loses.
    spread : float
        How much individuals differ.
    folds : int
        Individuals are dealt into that many folds.
    annotators : sequence of Annotator
        Simulated people. Without any, recordings carry the truth alone, as annotator ``truth``.
    """
    if kind not in KINDS:
        raise EthobenchError(f"synthetic data are of kind {' or '.join(KINDS)}, not {kind!r}")
    if kind == "trio" and annotators:
        raise EthobenchError("simulated annotators do not tell who does what to whom: synthetic/trio carries the truth alone")
    if individuals < 1 or recordings < 1 or seconds <= 0:
        raise EthobenchError("synthetic data need at least one individual, one recording and a length above zero")
    states, background, usual = KINDS[kind]
    rate = rate or usual
    ethogram = Ethogram([state.name for state in states], background)
    made, dealt = [], {}
    for animal in range(individuals):
        habits = vary(states, np.random.default_rng([seed, animal]), spread)
        for number in range(recordings):
            source = np.random.SeedSequence([seed, animal, number])
            process, body, *eyes = source.spawn(2 + len(annotators))
            codes = sample_codes(habits, round(seconds * rate), rate, np.random.default_rng(process))
            pairs = trio.draw_pairs(codes, np.random.default_rng([seed, animal, number, 2]))
            truth = trio.to_annotation(codes, pairs, ethogram, rate) if kind == "trio" else to_annotation(codes, ethogram, rate)
            seen = {a.name: annotate(truth, a, np.random.default_rng(eye)) for a, eye in zip(annotators, eyes, strict=True)}
            load = partial(_signals, kind, codes, pairs, rate, [seed, animal], body, missing)
            name = f"animal{animal + 1:02d}" + (f"_{number + 1}" if recordings > 1 else "")
            made.append(
                Recording(
                    name,
                    individual=f"animal{animal + 1:02d}",
                    rate=rate,
                    n_frames=len(codes),
                    signals=load,
                    annotations=seen or {TRUTH: truth},
                    subjects={"pose": pose.ANIMALS, "trio": trio.ANIMALS}.get(kind, ()),
                    metadata={"width": pose.WIDTH, "height": pose.HEIGHT} if kind != "tag" else {},
                )
            )
            dealt[name] = animal % folds
    options = f"{individuals}-{recordings}-{seconds:g}-{rate:g}-{seed}-{missing:g}-{spread:g}-{'+'.join(map(str, annotators))}"
    return Dataset(
        recordings=tuple(made),
        ethogram=ethogram,
        name=f"synthetic/{kind}",
        folds=dealt,
        source="made by ethobench",
        licence="MIT",
        version=f"{REVISION}-{options}",
    )


def _signals(
    kind: str,
    codes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    rate: float,
    animal: list[int],
    source: np.random.SeedSequence,
    missing: float,
) -> Data:
    """Make a recording's signals; the body is the individual's, the movement the recording's own."""
    generator, traits = np.random.default_rng(source), np.random.default_rng([*animal, 1])
    if kind == "pose":
        return pose.make_poses(codes, rate, generator, traits, missing)
    if kind == "trio":
        return trio.make_poses(codes, pairs, rate, generator, traits, missing)
    return tag.make_signals(codes, rate, generator, traits)
