"""The choice of a decoder on recordings with added noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.clock import Clock
from tests.decoding.examples import WITH_OTHER, draw_noisy_prediction

from ethobench import score
from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.decoding.decoder import Decoder, prior_factors
from ethobench.decoding.search import MAX_BEHAVIOR_LOSS, DecoderConfig, Search, Trial, fit_decoder
from ethobench.decoding.training_data import DecoderTrainingData


def frame_and_bout_f1(predictions, truths, decoder):
    decoded = {name: decoder.apply(p).annotation for name, p in predictions.items()}
    overall = score(decoded, truths, resamples=0).overall
    return overall["f1"], overall["bout_f1"]


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [True, False])
def test_the_chosen_decoder_improves_bouts_of_new_recordings(exclusive):
    training = {str(seed): draw_noisy_prediction(seed, exclusive, n=2400) for seed in range(3)}
    new = {str(seed): draw_noisy_prediction(seed, exclusive) for seed in range(10, 12)}
    decoder, trials = fit_decoder({k: p for k, (p, _) in training.items()}, {k: t for k, (_, t) in training.items()})
    predictions, truths = ({k: pair[i] for k, pair in new.items()} for i in (0, 1))
    before, after = frame_and_bout_f1(predictions, truths, Decoder()), frame_and_bout_f1(predictions, truths, decoder)
    assert after[1] > before[1] + 0.3
    assert after[0] > before[0] - 0.005
    chosen = [trial for trial in trials if trial.chosen]
    assert len(chosen) == 1
    assert chosen[0].value == pytest.approx((chosen[0].f1 + chosen[0].bout_f1) / 2)
    assert chosen[0].value >= max(trial.value for trial in trials) - 0.006
    assert trials[0].config == DecoderConfig()


def test_without_sequences_only_smoothing_is_tried():
    examples = {str(seed): draw_noisy_prediction(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in examples.items()} for i in (0, 1))
    decoder, trials = fit_decoder(predictions, truths, sequences=False)
    assert not decoder.transition_models
    assert {trial.config.max_stages for trial in trials} == {0}
    assert frame_and_bout_f1(predictions, truths, decoder)[1] > frame_and_bout_f1(predictions, truths, Decoder())[1]


def test_the_default_decoder_is_chosen_where_no_score_is_defined():
    prediction = Prediction(np.tile([0.1, 0.1, 0.8], (100, 1)), WITH_OTHER, 10.0)
    truths = {name: Annotation.from_frames(np.full(100, 2), WITH_OTHER, 10.0) for name in "xy"}
    decoder, trials = fit_decoder(dict.fromkeys("xy", prediction), truths)
    assert all(math.isnan(trial.value) for trial in trials)
    assert decoder == Decoder()


@pytest.mark.slow
def test_the_choice_is_deterministic():
    examples = {str(seed): draw_noisy_prediction(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in examples.items()} for i in (0, 1))
    first = fit_decoder(predictions, truths, metric="f1")
    again = fit_decoder(predictions, truths, metric="f1")
    assert first == again


@pytest.mark.slow
def test_errors_are_minimized():
    examples = {str(seed): draw_noisy_prediction(seed, n=600) for seed in range(2)}
    predictions, truths = ({k: pair[i] for k, pair in examples.items()} for i in (0, 1))
    _, trials = fit_decoder(predictions, truths, metric="onset_distance")
    assert all(trial.value <= 0 for trial in trials)
    assert next(trial for trial in trials if trial.chosen).value >= max(trial.value for trial in trials) - 1e-3


@pytest.mark.parametrize(("metric", "error"), [("f2", NotFoundError), ("map", EthobenchError), ("auroc", EthobenchError)])
def test_metrics_that_do_not_depend_on_decoding_are_refused(metric, error):
    prediction, truth = draw_noisy_prediction(0, n=100)
    with pytest.raises(error, match=metric):
        fit_decoder({"r": prediction}, {"r": truth}, metric=metric)


def test_mismatched_inputs_are_refused():
    prediction, truth = draw_noisy_prediction(0, n=100)
    with pytest.raises(MismatchError, match="'r' has a prediction but no reference annotation"):
        fit_decoder({"r": prediction}, {})
    with pytest.raises(MismatchError, match="the prediction has 100 frames at 30 Hz, the reference annotation 99"):
        fit_decoder({"r": prediction}, {"r": truth.crop(0, 99)})
    with pytest.raises(MismatchError, match="at least one prediction"):
        fit_decoder({}, {})
    overlapping, overlapping_truth = draw_noisy_prediction(0, exclusive=False, n=100)
    with pytest.raises(MismatchError, match="same ethogram"):
        fit_decoder({"r": prediction, "s": overlapping}, {"r": truth, "s": overlapping_truth})
    with pytest.raises(EthobenchError, match="shares"):
        prior_factors({"a": 0.0}, {"a": 0.5})


@pytest.mark.slow
def test_behaviors_with_one_bout_or_none():
    ethogram = Ethogram(["a", "b", "c", "other"], background="other")
    codes = np.full(300, 3)
    codes[100:140], codes[200:210] = 0, 1
    values = np.full((300, 4), 0.1)
    values[np.arange(300), codes] = 0.7
    truths = {name: Annotation.from_frames(codes, ethogram, 10) for name in "xy"}
    decoder, _ = fit_decoder({name: Prediction(values, ethogram, 10) for name in "xy"}, truths)
    np.testing.assert_array_equal(decoder.decode(values, ethogram, 10).to_codes(), codes)


def test_a_deadline_ends_the_search_with_the_best_so_far():
    training = {str(seed): draw_noisy_prediction(seed) for seed in range(3)}
    predictions, truths = {k: p for k, (p, _) in training.items()}, {k: t for k, (_, t) in training.items()}
    clock = Clock()
    late = Deadline(1, clock=clock)
    clock.now += 2
    decoder, trials = fit_decoder(predictions, truths, deadline=late)
    assert [trial.config for trial in trials] == [DecoderConfig(), DecoderConfig(smoothing="mean", smoothing_window=1 / 4)]
    assert sum(trial.chosen for trial in trials) == 1
    assert decoder.apply(predictions["0"]).annotation.n_frames == truths["0"].n_frames


@pytest.mark.slow
def test_with_a_deadline_segment_scoring_is_tried_early():
    training = {str(seed): draw_noisy_prediction(seed, n=1000) for seed in range(3)}
    predictions, truths = {k: p for k, (p, _) in training.items()}, {k: t for k, (_, t) in training.items()}
    _, trials = fit_decoder(predictions, truths, deadline=Deadline(1e9))
    assert trials[3].config.min_score is not None
    _, unlimited = fit_decoder(predictions, truths)
    assert {trial.config for trial in unlimited if trial.config.min_score} == {trial.config for trial in trials if trial.config.min_score}


def draw_rare(seed, n=4500):
    """Draw probabilities of a common behavior with long bouts, and of a rare one with short bouts that are predicted well."""
    random = np.random.default_rng(seed)
    codes = np.repeat(random.permutation(np.arange(n // 150) % 2) * 2, 150)  # "a" or "other", for five seconds each
    for start in random.choice(np.arange(50, n - 50, 60), 6, replace=False):
        codes[start : start + 9] = 1  # "b", for 0.3 s
    noise = random.normal(size=(n, 3))
    logits = 2.2 * np.eye(3)[codes] + noise + [0, -0.5, 0]
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return Prediction(values, WITH_OTHER, 30.0, exclusive=True), Annotation.from_frames(codes, WITH_OTHER, 30.0)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["balanced", "bout_f1"])
def test_a_rare_short_behavior_is_not_erased(metric):
    training, new = ({str(seed): draw_rare(seed) for seed in seeds} for seeds in (range(4), range(10, 14)))
    decoder, trials = fit_decoder({k: p for k, (p, _) in training.items()}, {k: t for k, (_, t) in training.items()}, metric=metric)
    chosen = next(trial for trial in trials if trial.chosen)
    for name, f1 in trials[0].behavior_f1.items():
        assert chosen.behavior_f1[name] >= (1 - MAX_BEHAVIOR_LOSS) * f1
    predictions, truths = ({k: pair[i] for k, pair in new.items()} for i in (0, 1))
    f1_of = []
    for each in (Decoder(), decoder):
        decoded = {name: each.apply(p).annotation for name, p in predictions.items()}
        f1_of.append(score(decoded, truths, resamples=0).behaviors["b"]["f1"])
    assert f1_of[1] > 0.75 * f1_of[0]


def test_a_configuration_that_erases_a_behavior_is_not_chosen():
    examples = {str(seed): draw_noisy_prediction(seed, n=600) for seed in range(2)}
    data = DecoderTrainingData({k: p for k, (p, _) in examples.items()}, {k: t for k, (_, t) in examples.items()}, {})
    search = Search(data, [([*examples], [*examples])], "balanced", Deadline())
    config = DecoderConfig()
    search.trials = [
        Trial(config, 0.5, 0.6, 0.4, {"a": 0.6, "b": 0.6}),
        Trial(config, 0.8, 0.7, 0.9, {"a": 0.9, "b": 0.5}),  # "b" loses a sixth of its F1
        Trial(config, 0.7, 0.57, 0.9, {"a": 0.6, "b": 0.6}),  # the mean F1 falls by .03
        Trial(config, 0.6, 0.6, 0.6, {"a": 0.68, "b": 0.52}),
    ]
    assert search.best is search.trials[3]
