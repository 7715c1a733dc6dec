"""Small scores that the tests of reports share."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Ethogram, Prediction, score
from ethobench.metrics import Scores

ETHOGRAM = Ethogram(["rest", "run", "other"], "other")
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "=1+1",
    "line\u2028end & <b>",
)


def make_truth(seed: int, ethogram: Ethogram = ETHOGRAM, n_frames: int = 600, rate: float = 10) -> Annotation:
    generator = np.random.default_rng(seed)
    codes = np.repeat(generator.integers(0, len(ethogram), n_frames // 15), 15)
    return Annotation.from_frames(codes, ethogram, rate)


def make_prediction(truth: Annotation, seed: int, certainty: float = 3.0) -> Prediction:
    """Guess with probabilities: a noisy and late copy of the truth."""
    generator = np.random.default_rng(seed)
    late = np.roll(truth.to_frames(), 2, axis=0)
    scores = np.exp(certainty * late + generator.normal(size=late.shape))
    return Prediction(scores / scores.sum(axis=1, keepdims=True), truth.ethogram, truth.rate)


def make_scores(n: int = 4, certainty: float = 3.0, ethogram: Ethogram = ETHOGRAM) -> Scores:
    truths = {f"rec{k}": make_truth(k, ethogram) for k in range(n)}
    guesses = {name: make_prediction(truth, 100 + k, certainty) for k, (name, truth) in enumerate(truths.items())}
    return score(guesses, truths, individuals={name: f"mouse{k // 2}" for k, name in enumerate(truths)}, resamples=100)


@pytest.fixture(scope="session")
def scores() -> Scores:
    """Scores of a model with probabilities on four recordings of two individuals."""
    return make_scores()


@pytest.fixture(scope="session")
def hostile_scores() -> Scores:
    """Scores in which every name tries to break out of the page."""
    ethogram = Ethogram([*HOSTILE, "other"], "other")
    truths = {name: make_truth(k, ethogram) for k, name in enumerate(HOSTILE)}
    guesses = {name: make_prediction(truth, k) for k, (name, truth) in enumerate(truths.items())}
    return score(guesses, truths, individuals={name: f"{name}!" for name in truths}, resamples=20)
