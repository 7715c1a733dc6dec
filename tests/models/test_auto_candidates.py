"""Model `auto` is not worse than its candidates, on recordings with one rare and short behavior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Prediction, Recording, Signals
from ethobench.core.folds import default_grouping
from ethobench.decoding.blending import fit_blend
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import MAX_BEHAVIOR_LOSS
from ethobench.models import auto, candidates
from ethobench.models.auto import Auto, candidate_name, fit_decoder_on_subsample, mean_prediction
from ethobench.models.candidates import Comparison, compare_candidates

pytestmark = pytest.mark.slow

RATE, SECONDS = 10.0, 60
ETHOGRAM = Ethogram(["rest", "walk", "scratch"], exclusive=True)
RARE = "scratch"  # 2 to 3 % of the frames, in bouts of 0.4 to 0.8 s
TRAINED, HELD_OUT = 6, 8


def make_recording(name: str, seed: int) -> Recording:
    """Return noisy acceleration: long bouts of rest and walk, and short shakes, which are as strong as walking but faster."""
    random = np.random.default_rng(seed)
    n_frames = round(SECONDS * RATE)
    codes = np.zeros(n_frames, dtype=np.int64)
    frame, code = 0, 0
    while frame < n_frames:
        length = int(random.integers(40, 120))
        codes[frame : frame + length] = code
        frame, code = frame + length, 1 - code
    for start in random.choice(np.arange(10, n_frames - 20, 40), size=3, replace=False):
        codes[start : start + int(random.integers(4, 9))] = 2
    phase = np.cumsum(np.where(codes == 2, random.uniform(2.0, 3.0), random.uniform(0.9, 1.4)))
    strength = np.array([0.1, 0.7, 0.8])[codes] * random.lognormal(0, 0.25, n_frames)
    directions = random.normal(0.6, 0.25, 3)
    values = strength[:, None] * np.sin(phase)[:, None] * directions + random.normal(0, 0.22, (n_frames, 3))
    signals = Signals(values.astype(np.float32), ("AccX", "AccY", "AccZ"), RATE)
    annotation = Annotation.from_frames(codes, ETHOGRAM, RATE)
    return Recording(name, signals=signals, rate=RATE, n_frames=n_frames, individual=name, annotations={"": annotation})


class Fitted(NamedTuple):
    """A fitted model, and the candidates that it was chosen from."""

    model: Auto
    comparison: Comparison
    held_out: Dataset


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """Fit auto with small candidates that are both used."""
    training, held_out = (
        Dataset(tuple(make_recording(f"animal{seed}", seed) for seed in seeds), ETHOGRAM)
        for seeds in (range(TRAINED), range(100, 100 + HELD_OUT))
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    boost, tcn = candidates.Boost, candidates.Tcn
    small = {"width": 16, "levels": 4, "batch": 8, "updates": 60, "passes": 20}
    compared = []

    def record(*arguments: object) -> Comparison:
        compared.append(compare_candidates(*arguments))  # type: ignore[arg-type]
        return compared[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "Boost", lambda seed, **params: boost(seed=seed, rounds=25, leaves=7, **params))
        patch.setattr(candidates, "Tcn", lambda seed=0, **params: tcn(seed=seed, **{**params, **small}))
        patch.setattr(candidates, "MIN_NETWORK_GAIN", -1.0)
        patch.setattr(auto, "compare_candidates", record)
        model = eb.create_model("auto").fit(training)
    torch.set_num_threads(threads)
    assert isinstance(model, Auto)
    return Fitted(model, compared[0], held_out)


def decode_candidate(fitted: Fitted, name: str) -> dict[str, Prediction]:
    """Calibrate and decode one candidate alone, as `auto` does with the blend, and predict the held-out recordings."""
    comparison, model = fitted.comparison, fitted.model
    candidate = next(each for each in comparison.candidates if each.name == name)
    groups = comparison.data.groups(default_grouping(comparison.data))
    blend, calibrated = fit_blend({name: candidate.predictions}, comparison.truths, groups)
    decoder, _ = fit_decoder_on_subsample(calibrated, comparison.truths, "balanced", groups, blend.priors(ETHOGRAM))
    members = [member for key, member in model.members.items() if candidate_name(key) == name]
    raw = {r.id: mean_prediction([member.predict_probabilities(r) for member in members]) for r in fitted.held_out}
    return {key: decoder.apply(blend.apply({name: prediction})) for key, prediction in raw.items()}


def decode_by_frame(fitted: Fitted, name: str) -> dict[str, Prediction]:
    """Return the most probable behavior of each frame by one candidate."""
    members = [member for key, member in fitted.model.members.items() if candidate_name(key) == name]
    raw = {r.id: mean_prediction([member.predict_probabilities(r) for member in members]) for r in fitted.held_out}
    return {key: Decoder().apply(prediction) for key, prediction in raw.items()}


def evaluate(predictions: dict[str, Prediction], data: Dataset) -> tuple[np.ndarray, float]:
    """Return the mean of frame F1 and bout F1 of each recording, and the frame F1 of the rare behavior in all of them."""
    result = eb.score({key: each.annotation for key, each in predictions.items()}, {r.id: r.annotation() for r in data}, resamples=0)
    by_recording = result.per("recording")
    values = [np.mean([by_recording[r.id]["overall"][metric] for metric in ("f1", "bout_f1")]) for r in data]
    return np.array(values), result.behaviors[RARE]["f1"]


@pytest.fixture(scope="module")
def held_out_scores(fitted: Fitted) -> dict[str, tuple[np.ndarray, float]]:
    """Evaluate auto, and its candidates alone."""
    names = [candidate.name for candidate in fitted.comparison.candidates]
    predictions = {"auto": {r.id: fitted.model.predict(r) for r in fitted.held_out}}
    predictions |= {name: decode_candidate(fitted, name) for name in names}
    predictions |= {f"{name} by frame": decode_by_frame(fitted, name) for name in names}
    return {name: evaluate(each, fitted.held_out) for name, each in predictions.items()}


def test_auto_is_never_below_its_best_candidate_by_more_than_noise(fitted, held_out_scores):
    """Frame and bout F1 of held-out recordings; noise is two standard errors of the paired difference."""
    assert min(fitted.model.blend.weights.values()) > 0
    assert set(fitted.model.blend.weights) == {"boost", "tcn"}
    for name in ("boost", "tcn"):
        difference = held_out_scores["auto"][0] - held_out_scores[name][0]
        assert difference.mean() > -2 * difference.std(ddof=1) / np.sqrt(len(difference)), name


def test_a_rare_short_behavior_keeps_its_frame_f1(held_out_scores):
    """Neither decoding nor blending may cost it more than the decoder is allowed to."""
    best = max(held_out_scores[f"{name} by frame"][1] for name in ("boost", "tcn"))
    assert best > 0.3
    assert held_out_scores["auto"][1] >= (1 - MAX_BEHAVIOR_LOSS) * best
    assert held_out_scores["auto"][1] >= (1 - MAX_BEHAVIOR_LOSS) * max(held_out_scores[name][1] for name in ("boost", "tcn"))
