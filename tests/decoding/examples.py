"""Ethograms, probabilities and annotations that the tests of decoding share."""

from __future__ import annotations

import math

import numpy as np

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.datasets.synthetic import State, sample_codes

AB = Ethogram(["a", "b"])
ETHOGRAM = Ethogram(["rest", "walk", "other"], background="other")
WITH_OTHER = Ethogram(["a", "b", "other"], background="other")


def as_text(annotation):
    """Write an annotation as one letter per frame: a dot is unobserved, a dash is no behavior."""
    names = [*(b.name[0] for b in annotation.ethogram), "-", "."]
    codes = annotation.to_codes()
    return "".join(names[code] for code in codes)


def confident(text, names="ab", p=0.8):
    """Return probabilities of `p` for the named behavior, the others sharing the rest; NaN for a dot."""
    rows = []
    for letter in text:
        row = [(1 - p) / (len(names) - 1)] * len(names) if letter != "." else [math.nan] * len(names)
        if letter in names:
            row[names.index(letter)] = p
        rows.append(row)
    return np.array(rows)


def truth_of(text, ethogram=AB, rate=1.0):
    """Return the annotation that `as_text` writes as this text."""
    codes = [".ab-".index(letter) - 1 for letter in text]
    return Annotation.from_frames(codes, ethogram, rate, unobserved=-1)


def draw_noisy_prediction(seed, exclusive=True, n=3000, strength=2.0):
    """Draw an annotation and probabilities that are mostly correct, with noise that is correlated over a few frames."""
    random = np.random.default_rng(seed)
    states = (State("a", 1.5, 3.0, 0.3), State("b", 4.0, 2.0, 0.4), State("other", 5.0, 1.5, 1.0))
    codes = sample_codes(states, n, 30.0, random)
    noise = random.normal(size=(n, 3))
    for t in range(1, n):
        noise[t] = 0.7 * noise[t - 1] + 0.7 * noise[t]
    logits = strength * np.eye(3)[codes] + noise
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) if exclusive else 1 / (1 + np.exp(1 - logits))
    ethogram = WITH_OTHER if exclusive else AB
    return Prediction(values[:, : len(ethogram)], ethogram, 30.0, exclusive=exclusive), Annotation.from_frames(codes, ethogram, 30.0)


def draw_world(seed: int, n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Draw true probabilities, and codes with these probabilities."""
    random = np.random.default_rng(seed)
    logits = random.normal([0, -1, 1], 1.5, (n, 3))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (probabilities.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)
    return probabilities, codes


def draw_predictions(seeds, change=lambda p: p):
    """Draw calibrated predictions, changed by a function, and annotations, by recording."""
    predictions, truths = {}, {}
    for seed in seeds:
        probabilities, codes = draw_world(seed)
        predictions[f"r{seed}"] = Prediction(change(probabilities), ETHOGRAM, 10.0, exclusive=True)
        truths[f"r{seed}"] = Annotation.from_frames(codes, ETHOGRAM, 10.0)
    return predictions, truths
