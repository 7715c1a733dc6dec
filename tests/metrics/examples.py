"""Random annotations, and kinds of arrays, that several tests of metrics use."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ethobench import Annotation, Ethogram

ETHOGRAM = Ethogram(["a", "b", "other"], "other")
NAMES = ["rest", "walk", "groom"]


def random_annotation(seed: int, n: int = 300) -> Annotation:
    """Return an annotation at 10 Hz whose behavior changes at most once per second."""
    generator = np.random.default_rng(seed)
    return Annotation.from_frames(np.repeat(generator.integers(0, 3, n // 10), 10), ETHOGRAM, 10)


def random_pairs(k: int = 6) -> dict[str, tuple[Annotation, Annotation]]:
    """Return predictions that are late by up to two frames, and truths, by recording."""
    truths = [random_annotation(seed) for seed in range(k)]
    return {f"r{i}": (truth.shift(i % 3), truth) for i, truth in enumerate(truths)}


def one_hot(frames: np.ndarray, dtype: type) -> np.ndarray:
    """Return columns of 0 and 1; unobserved rows are NaN, or -1 for integers."""
    columns = (frames[:, None] == np.arange(3)).astype(dtype)
    columns[frames < 0] = -1 if dtype is int else np.nan
    return columns


FRAME_KINDS = {
    "codes": lambda frames: frames,
    "list of codes": lambda frames: frames.tolist(),
    "codes with NaN": lambda frames: np.where(frames < 0, np.nan, frames),
    "codes with None": lambda frames: [None if code < 0 else code for code in frames.tolist()],
    "int8": lambda frames: frames.astype(np.int8),
    "labels": lambda frames: [None if code < 0 else NAMES[code] for code in frames.tolist()],
    "label array": lambda frames: np.array([np.nan if code < 0 else NAMES[code] for code in frames.tolist()], dtype=object),
    "one-hot": lambda frames: one_hot(frames, float),
    "integer one-hot": lambda frames: one_hot(frames, int),
    "Series of codes": lambda frames: pd.Series(frames).astype("Int64").mask(frames < 0),
    "Series of labels": lambda frames: pd.Series([None if code < 0 else NAMES[code] for code in frames.tolist()], dtype="string"),
    "categories": lambda frames: pd.Series(pd.Categorical.from_codes(frames, NAMES)),
    "DataFrame": lambda frames: pd.DataFrame(one_hot(frames, float), columns=NAMES)[NAMES[::-1]],
    "one column of labels": lambda frames: pd.DataFrame({"label": [None if code < 0 else NAMES[code] for code in frames.tolist()]}),
}
"""Arrays of codes, -1 where unobserved, as other kinds of arrays."""
