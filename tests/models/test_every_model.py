"""Checks that every registered model must pass; a new model is included automatically."""

from __future__ import annotations

import dataclasses
import json
from functools import cache

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, NotFittedError, NotFoundError
from ethobench.datasets.synthetic import ANNOTATORS
from ethobench.models import Model, models

pytestmark = [
    pytest.mark.filterwarnings("ignore:Liblinear failed to converge"),  # features are not scaled, as published
    pytest.mark.filterwarnings("ignore:Best performing initialization did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
]
SMALL = {
    "rf": {"trees": 10},
    "wavelet_rf": {"trees": 10},
    "svm": {"iterations": 20},
    "wavelet_svm": {"iterations": 20},
    "gmm": {"iterations": 10},
    "hmm": {"iterations": 3, "window": 256},
    "cnn": {"epochs": 3, "window": 64},
    "crnn": {"epochs": 2, "window": 64},
    "rnn": {"epochs": 2, "window": 64},
    "wavelet_rnn": {"epochs": 2, "window": 64},
    "harnet": {"config": "harnet5", "mode": "random", "epochs": 1, "window": 64, "batch": 8},
    "conv1d": {"past": 8, "future": 8, "frame_stride": 1, "layers": (8,), "epochs": 1, "samples_per_epoch": 256},
    "dense": {"past": 4, "future": 4, "frame_stride": 1, "layers": (8,), "epochs": 1, "samples_per_epoch": 256},
    "lstm": {"past": 4, "future": 4, "frame_stride": 1, "hidden": 8, "layers": (8,), "epochs": 1, "samples_per_epoch": 256},
    "attention": {"past": 8, "future": 8, "frame_stride": 1, "layers": (8,), "epochs": 1, "samples_per_epoch": 256},
    "boost": {"rounds": 20},
    "tcn": {"updates": 25, "width": 16, "levels": 4},
    "auto": {"budget": 0.001},
}


QUICK = ("chance", "rf", "kmeans")
"""Models that are also checked by the fast tests."""


LEARNING = [each for each in models.names() if each not in ("chance", "mllm")]
"""Models that use their input; `mllm` needs a provider."""
LONGER = {each: {"epochs": 6, "samples_per_epoch": None, "batch": 32} for each in ("attention", "conv1d", "dense", "lstm")}
SECONDS = 20
MIN_BALANCED_ACCURACY = 0.8  # 0.5 by chance; the lowest score, of gmm, is 0.89


@pytest.fixture(params=[each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in models.names()])
def name(request) -> str:
    return request.param


@pytest.fixture(params=["tag", "pose"])
def kind(request) -> str:
    return request.param


def make(name: str, **params) -> Model:
    return eb.create_model(name, **{**SMALL.get(name, {}), **params})


@cache
def fitted(name: str, kind: str) -> Model:
    """Return a model fitted on all individuals but the last; several tests share it, so none may change it."""
    return make(name, seed=3).fit(load(kind).select(fold=[0, 1, 2]))


@cache
def load(kind: str) -> Dataset:
    return eb.load_dataset(f"synthetic/{kind}", individuals=4, seconds=SECONDS, folds=4)


@pytest.fixture
def data(kind) -> Dataset:
    return load(kind)


@pytest.fixture
def model(name, kind) -> Model:
    return fitted(name, kind)


def test_fit_predict_save_and_load(model, data, tmp_path):
    recording = data.select(fold=3).recordings[0]
    prediction = model.predict(recording)
    assert prediction.n_frames == recording.n_frames
    assert prediction.ethogram == data.ethogram
    assert prediction.probabilities.sum(axis=1) == pytest.approx(np.ones(recording.n_frames), abs=1e-4)
    model.save(tmp_path / "saved")
    loaded = eb.load_model(tmp_path / "saved")
    again = loaded.predict(recording)
    assert np.array_equal(again.probabilities, prediction.probabilities)
    assert again.annotation == prediction.annotation
    check_training_recordings_are_recognized(loaded, data)
    with pytest.raises(EthobenchError, match="already exists"):
        model.save(tmp_path / "saved")
    assert not [p for p in (tmp_path / "saved").rglob("*") if p.suffix in (".pkl", ".pickle")]


def check_training_recordings_are_recognized(model: Model, data: Dataset) -> None:
    """Also when renamed; new recordings, and other ones of the same name, are not."""
    for recording in data.select(fold=[0, 1, 2]):
        assert model.was_trained_on(recording)
        match = model.match_training(recording.copy(id="renamed", individual="renamed"))
        assert (match.level, match.training_id) == ("recording", recording.id)
    (new,) = data.select(fold=3)
    assert model.match_training(new).level == "new"
    namesake = new.copy(id=data.recordings[0].id, individual="somebody else")
    assert not model.was_trained_on(namesake)


def test_same_seed_gives_the_same_predictions(model, name, data):
    recording = data.recordings[0]
    first = model.predict(recording)
    again = make(name, seed=3).fit(data.select(fold=[0, 1, 2])).predict(recording)
    assert np.array_equal(first.probabilities, again.probabilities)
    assert first.annotation == again.annotation
    if name in ("rf", "wavelet_rf", "cnn", "crnn", "rnn"):
        other = make(name, seed=4).fit(data.select(fold=[0, 1, 2])).predict(recording)
        assert not np.array_equal(other.probabilities, first.probabilities)


def easy_recording(seed: int) -> Recording:
    """Return a recording in which running has another mean and another frequency than resting."""
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(0, 2, 24), 25)
    strides = 3 * np.sin(2 * np.pi * 2.5 * np.arange(600) / 10.0)
    values = np.where(codes == 1, 2.0 + strides, -2.0)[:, None] + random.normal(0, 0.5, (600, 3))
    truth = Annotation.from_frames(codes, Ethogram(["rest", "run"]), 10.0)
    return Recording(f"r{seed}", f"animal{seed}", signals=Signals(values, ("AccX", "AccY", "AccZ"), 10.0), annotations={"me": truth})


@pytest.mark.parametrize("name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in LEARNING])
def test_balanced_accuracy_on_a_new_individual_is_above_chance(name):
    *training, test = (easy_recording(seed) for seed in range(4))
    model = make(name, **LONGER.get(name, {})).fit(Dataset(tuple(training), training[0].annotation().ethogram))
    predicted, truth = model.predict(test).annotation.to_codes(), test.annotation().to_codes()
    recalls = [(predicted[truth == code] == code).mean() for code in (0, 1)]
    assert np.mean(recalls) > MIN_BALANCED_ACCURACY


def test_unobserved_frames_are_not_used(name):
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 2, 60), 10)
    values = np.stack([codes + rng.normal(0, 0.1, 600), rng.normal(0, 1, 600)], axis=1)
    ethogram = Ethogram(["rest", "run"])
    hidden = np.arange(600) >= 300
    lies = np.where(hidden, 1 - codes, codes)
    predictions = []
    for labels in (codes, lies):
        truth = Annotation.from_frames(labels, ethogram, 10, unobserved=hidden)
        recording = Recording("r", signals=Signals(values, ("AccX", "AccY"), 10), annotations={"me": truth})
        predictions.append(make(name).fit(Dataset((recording,), ethogram)).predict(recording))
    assert np.array_equal(predictions[0].probabilities, predictions[1].probabilities)


def test_mismatches_are_refused(model, name, data):
    new = make(name)
    for use in (new.predict, new.annotate, getattr(new, "requests", new.predict)):
        with pytest.raises(NotFittedError, match="is not fitted"):
            use(data.recordings[0])
    if model.needs_signals:
        with pytest.raises(MismatchError, match="no signals"):
            model.predict(data.recordings[0].copy(signals=None))
        other = Signals(np.zeros((10, 1)), ("Depth",), data.recordings[0].rate)
        with pytest.raises(MismatchError, match="lacks"):
            model.predict(data.recordings[0].copy(signals=other, n_frames=10))
    with pytest.raises(EthobenchError, match="without recordings"):
        make(name).fit(Dataset((), data.ethogram))
    with pytest.raises(EthobenchError, match="has no parameter `colour`"):
        eb.create_model(name, colour="red")


def test_damaged_cards_are_refused(model, tmp_path):
    model.save(tmp_path / "m")
    card = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    (tmp_path / "m" / "model.json").write_text(json.dumps({**card, "revision": 99}), encoding="utf-8")
    with pytest.raises(FormatError, match="revision 99"):
        eb.load_model(tmp_path / "m")
    (tmp_path / "m" / "model.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FormatError, match="format version None is not supported"):
        eb.load_model(tmp_path / "m")
    (tmp_path / "m" / "model.json").write_text(json.dumps({**card, "params": 3}), encoding="utf-8")
    with pytest.raises(FormatError, match="damaged"):
        eb.load_model(tmp_path / "m")
    with pytest.raises(FormatError, match="not a saved model"):
        eb.load_model(tmp_path)


def test_other_rates_are_resampled_with_a_warning(model, name, data):
    recording = data.recordings[0]
    signals = recording.signals
    half = dataclasses.replace(signals[::2], rate=recording.rate / 2)
    slower = recording.copy(signals=half, rate=recording.rate / 2, n_frames=len(half), annotations={})
    with pytest.warns(UserWarning, match="is resampled to"):
        prediction = model.predict(slower)
    assert (prediction.rate, prediction.n_frames) == (slower.rate, len(half))
    assert prediction.annotation.n_frames == len(half)
    if name in ("rf", "wavelet_rf"):
        entire = model.predict(recording).annotation.to_codes()[::2]
        assert (entire == prediction.annotation.to_codes()).mean() > 0.8


def test_several_annotators_must_be_named(name):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30, annotators=ANNOTATORS)
    with pytest.raises(EthobenchError, match="choose one of: ann1, ann2"):
        make(name).fit(data)
    make(name).fit(data, annotator="ann2")
    make(name).fit(data, annotator="consensus")


def test_unknown_models_are_refused():
    with pytest.raises(NotFoundError, match="did you mean 'rf'"):
        eb.create_model("rff")


@pytest.mark.parametrize(
    ("name", "params", "why"),
    [
        ("rf", {"trees": "many"}, "`trees` must be an integer, got 'many'"),
        ("rf", {"trees": True}, "`trees` must be an integer, got True"),
        ("rf", {"seconds": "long"}, "`seconds` must be a number, got 'long'"),
        ("rf", {"exact": 1}, "`exact` must be true or false, got 1"),
        ("crnn", {"window": 2.5}, "`window` must be an integer, got 2.5"),
        ("chance", {"kind": 3}, "`kind` must be one of 'majority', 'random' or 'renewal', got 3"),
    ],
)
def test_hyper_parameters_of_the_wrong_type_are_refused(name, params, why):
    with pytest.raises(EthobenchError, match=why):
        eb.create_model(name, **params)


def test_numpy_numbers_are_accepted():
    assert eb.create_model("rf", trees=np.int64(7), seconds=np.float32(2)).params.trees == 7
