"""Random annotations that several tests of metrics use."""

from __future__ import annotations

import numpy as np

from ethobench import Annotation, Ethogram

ETHOGRAM = Ethogram(["a", "b", "other"], "other")


def random_annotation(seed: int, n: int = 300) -> Annotation:
    """Return an annotation at 10 Hz whose behavior changes at most once per second."""
    generator = np.random.default_rng(seed)
    return Annotation.from_frames(np.repeat(generator.integers(0, 3, n // 10), 10), ETHOGRAM, 10)


def random_pairs(k: int = 6) -> dict[str, tuple[Annotation, Annotation]]:
    """Return predictions that are late by up to two frames, and truths, by recording."""
    truths = [random_annotation(seed) for seed in range(k)]
    return {f"r{i}": (truth.shift(i % 3), truth) for i, truth in enumerate(truths)}
