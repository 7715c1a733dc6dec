"""Decoders of models: chosen by cross-validation, saved with the model, reported in results."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ethobench import create_model, load_dataset, load_model, score
from ethobench.benchmarks import results_table
from ethobench.benchmarks.folds import fold_plan
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.decoding.decoder import Decoder
from ethobench.runs import Engine, Store

SMALL = {"trees": 5, "seconds": 0.5}


@pytest.fixture(scope="module")
def data():
    return load_dataset("synthetic/pose", individuals=5, seconds=60.0)


@pytest.fixture(scope="module")
def model(data):
    return create_model("rf", decode="bout_f1", **SMALL).fit(data.select(recordings=[r.id for r in data][:4]))


@pytest.mark.slow
def test_a_decoded_model_has_better_bouts(data, model):
    test = data.recordings[4]
    plain = create_model("rf", **SMALL).fit(data.select(recordings=[r.id for r in data][:4]))
    before, after = plain.predict(test), model.predict(test)
    np.testing.assert_array_equal(before.probabilities, after.probabilities)
    truth = test.annotation()
    scores = [score(p.annotation, truth, resamples=0).overall["bout_f1"] for p in (before, after)]
    assert scores[1] > scores[0] + 0.05
    assert model.fit_report["decoding"][0]["config"]["smoothing"] == "none"
    assert sum(trial["chosen"] for trial in model.fit_report["decoding"]) == 1


@pytest.mark.slow
def test_the_decoder_is_saved_with_the_model(data, model, tmp_path):
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.decode == "bout_f1"
    assert again.decoder == model.decoder
    assert again.predict(data.recordings[4]).annotation == model.predict(data.recordings[4]).annotation
    assert again.fit_report == model.fit_report


def test_metrics_without_a_decoder_are_refused():
    with pytest.raises(NotFoundError, match="no metric 'luck'"):
        create_model("rf", decode="luck")
    with pytest.raises(EthobenchError, match="computed from probabilities"):
        create_model("rf", decode="auroc")


def test_one_recording_gives_the_default_decoder(data):
    model = create_model("rf", decode="f1", **SMALL).fit(data.select(recordings=[data.recordings[0].id]))
    assert model.decoder == Decoder()


@pytest.mark.slow
def test_recordings_of_one_individual_are_compared_with_each_other(data):
    same = dataclasses.replace(data, recordings=tuple(r.copy(individual="m1") for r in data.recordings[:3]))
    model = create_model("rf", decode="f1", **SMALL).fit(same)
    assert sum(trial["chosen"] for trial in model.fit_report["decoding"]) == 1


@pytest.mark.slow
def test_results_compare_decoded_and_undecoded(tmp_path):
    options = {"individuals": 4, "seconds": 30.0, "folds": 2}
    data = load_dataset("synthetic/tag", **options)
    plan = fold_plan("own", data, "rf", dataset="synthetic/tag", options=options, params={**SMALL, "decode": "balanced"})
    outcome = Engine(Store(tmp_path / "s"), lambda: ThreadPoolExecutor(1), 1).run([plan])
    assert (outcome.done, outcome.failed) == (2, {})
    rows = {(r["setting"], r["metric"]): r["mean"] for r in results_table(Store(tmp_path / "s"))}
    assert rows["full, undecoded", "bout_f1"] < rows["full", "bout_f1"]
    assert {setting for setting, _ in rows} == {"full", "full, undecoded"}


@pytest.mark.slow
def test_pieces_are_decoded_like_the_entire_recording(monkeypatch):
    data = load_dataset("synthetic/tag", individuals=3, seconds=120.0)
    model = create_model("rf", decode="balanced", **SMALL).fit(data)
    long = load_dataset("synthetic/tag", individuals=1, seconds=400.0, seed=5).recordings[0]
    entire = model.annotate(long).to_codes()
    monkeypatch.setattr("ethobench.models.pieces.MAX_PIECE_FRAMES", 1500)
    pieces = model.annotate(long).to_codes()
    assert model.decoder.transition_models or model.decoder.smoothing != "none"
    assert (pieces == entire).mean() > 0.999


@pytest.mark.slow
def test_other_rates_are_decoded_at_the_rate_of_the_training():
    from ethobench.decoding.viterbi import fit_transition_models

    data = load_dataset("synthetic/tag", individuals=3, seconds=120.0)
    model = create_model("rf", **SMALL).fit(data)
    truths = [r.annotation() for r in data]
    model.decoder = Decoder(transition_models=fit_transition_models(truths, exclusive=True), emission_weight=0.03)
    expected = len(model.predict(data.recordings[0]).annotation)
    fast = load_dataset("synthetic/tag", individuals=3, seconds=120.0, rate=100.0).recordings[0]
    with pytest.warns(UserWarning, match="resampled to 25 Hz"):
        n_bouts = len(model.predict(fast).annotation)
    assert 0.5 * expected <= n_bouts <= 2 * expected


def test_point_events_give_a_warning(data):
    from ethobench import Annotation, Behavior, Ethogram

    ethogram = Ethogram([*data.ethogram, Behavior("bite", point=True)], data.ethogram.background_name)
    first = data.recordings[0]
    truth = first.annotation()
    columns = (np.append(truth.start, 30), np.append(truth.stop, 30), np.append(truth.behavior, len(ethogram) - 1))
    bitten = Annotation.from_bouts(*columns, ethogram, truth.rate, truth.n_frames)
    study = dataclasses.replace(data, recordings=(first.copy(annotations={"truth": bitten}),), ethogram=ethogram)
    with pytest.warns(UserWarning, match="are not predicted: bite"):
        create_model("rf", **SMALL).fit(study)
