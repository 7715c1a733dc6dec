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
from ethobench.decoding.search import DecoderConfig, fit_decoder


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
    assert chosen[0].value >= max(trial.value for trial in trials) - 1e-3
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
    assert unlimited[3].config.min_score is None
    assert {trial.config for trial in unlimited if trial.config.min_score} == {trial.config for trial in trials if trial.config.min_score}
