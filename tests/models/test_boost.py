"""Model `boost`: row sampling, missing values, pieces of long recordings, saving and time budgets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.clock import Clock
from tests.models.damage import renew_digests

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Observed, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.observed import Track
from ethobench.features.cache import feature_cache
from ethobench.models import pieces
from ethobench.models.inputs import input_names, interpolate_steps, order_inputs
from ethobench.models.row_sampling import choose_rows, row_weights

pytestmark = pytest.mark.slow

ETHOGRAM = Ethogram(["rest", "run"])
QUICK = {"rounds": 15, "leaves": 7}


def recording(codes, values, name: str = "r", rate: float = 10.0, unobserved=None) -> Recording:
    truth = Annotation.from_frames(codes, ETHOGRAM, rate, unobserved=unobserved)
    channels = tuple(f"c{k}" for k in range(values.shape[1]))
    return Recording(name, signals=Signals(values, channels, rate), annotations={"me": truth})


@pytest.mark.slow
def test_predicts_new_individuals():
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=120, folds=4)
    model = eb.create_model("boost", **QUICK).fit(data.select(fold=[0, 1, 2]))
    test = data.select(fold=3)
    assert eb.score({r.id: model.predict(r) for r in test}, test, resamples=0).overall["f1"] > 0.85


def test_overlapping_behaviors():
    random = np.random.default_rng(0)
    both = np.repeat(random.integers(0, 2, (40, 2)), 25, axis=0).astype(bool)
    values = both + random.normal(0, 0.2, (1000, 2))
    observed = Observed(iv.full(1000), {Track("run"): iv.intervals([0], [600])})
    lies = both.copy()
    lies[600:, 1] = ~lies[600:, 1]
    predictions = []
    for labels in (both, lies):
        one = recording(labels, values)
        one = one.copy(annotations={"me": one.annotations["me"].with_observed(observed)})
        predictions.append(eb.create_model("boost", **QUICK).fit(Dataset((one,), ETHOGRAM)).predict(one))
    assert not predictions[0].exclusive
    assert (predictions[0].annotation.to_frames()[:600] == both[:600]).mean() > 0.9
    assert np.array_equal(predictions[0].probabilities, predictions[1].probabilities)  # unobserved labels are not used


def test_missing_values_are_unobserved():
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 40), 25)
    values = np.stack([codes + random.normal(0, 0.2, 1000), random.normal(0, 1, 1000)], axis=1)
    values[200:260] = np.nan
    values[600:, 1] = np.nan
    one = recording(codes, values)
    with pytest.warns(UserWarning, match=r"6.0 s of annotations in 1 of 1 recordings are not used for training"):
        prediction = eb.create_model("boost", **QUICK).fit(Dataset((one,), ETHOGRAM)).predict(one)
    assert np.flatnonzero(~prediction.predictable).tolist() == [*range(200, 260)]
    assert (prediction.annotation.to_codes() == codes)[prediction.predictable].mean() > 0.9


def test_single_behavior():
    one = recording(np.zeros(300, dtype=int), np.random.default_rng(0).normal(size=(300, 2)))
    prediction = eb.create_model("boost").fit(Dataset((one,), ETHOGRAM)).predict(one)
    assert (prediction.annotation.to_codes() == 0).all()


@pytest.mark.slow
def test_pieces_give_the_same_predictions(monkeypatch):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=240)
    model = eb.create_model("boost", **QUICK).fit(data)
    entire = model.predict(data.recordings[0]).annotation
    context = model.context(data.recordings[0].rate)
    assert len(data.recordings[0].signals) > 2 * context
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 1500)
    joined = model.annotate(data.recordings[0])
    assert (joined.to_codes() == entire.to_codes()).mean() > 0.998


def test_channels_are_matched_by_name():
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=60)
    one = data.recordings[0]
    model = eb.create_model("boost", **QUICK).fit(data)
    order = [3, 0, 5, 1, 4, 2]
    shuffled = Signals(
        np.column_stack([one.signals.values[:, order], np.zeros(len(one.signals))]),
        (*(one.signals.channels[k] for k in order), "Extra"),
        one.rate,
    )
    assert np.array_equal(model.predict(one.copy(signals=shuffled)).probabilities, model.predict(one).probabilities)


def test_keypoints_are_matched_by_name():
    poses = eb.load_dataset("synthetic/pose", individuals=1, seconds=10).recordings[0].signals
    inputs = input_names(Recording("r", signals=poses))
    back = dataclasses.replace(
        poses,
        positions=poses.positions[:, ::-1, ::-1],
        confidence=poses.confidence[:, ::-1, ::-1],
        individuals=poses.individuals[::-1],
        keypoints=poses.keypoints[::-1],
    )
    ordered = order_inputs(back, inputs)
    assert (ordered.individuals, ordered.keypoints) == (poses.individuals, poses.keypoints)
    assert np.array_equal(ordered.positions, poses.positions, equal_nan=True)


def test_sampling_keeps_rare_behaviors():
    targets = {
        "a": np.repeat(np.array([0, 1, -1], dtype=np.int16), [9000, 50, 500]),
        "b": np.repeat(np.array([0, 2], np.int16), [5000, 950]),
    }
    chosen = choose_rows(targets, 2000)
    codes = np.concatenate([targets[name][frames] for name, frames in chosen.items()])
    assert np.bincount(codes).tolist() == [1000, 50, 950]
    assert np.diff(chosen["a"][:100]).std() < 1  # evenly
    weights = row_weights(codes, np.array([14000, 50, 950]), 0.5)
    shares = np.array([weights[codes == code].sum() for code in range(3)])
    assert shares / shares.sum() == pytest.approx(np.sqrt([14000, 50, 950]) / np.sqrt([14000, 50, 950]).sum())
    assert weights.mean() == pytest.approx(1.0)


def test_interpolation_between_rows():
    values = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    assert interpolate_steps(values, 2, 6)[:, 0].tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]
    assert interpolate_steps(values, 1, 3)[:, 0].tolist() == [0.0, 1.0, 3.0]


def test_saved_files_are_plain_text(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=30)
    eb.create_model("boost", **QUICK).fit(data).save(tmp_path / "m")
    assert {"boost.json", "trees-0.txt"} < {p.name for p in (tmp_path / "m").iterdir()}
    assert {p.suffix for p in (tmp_path / "m").iterdir()} <= {".json", ".txt", ".md"}
    (tmp_path / "m" / "trees-0.txt").write_text("no trees", encoding="utf-8")
    renew_digests(tmp_path / "m")
    with pytest.raises(FormatError, match="not the trees"):
        eb.load_model(tmp_path / "m")
    (tmp_path / "m" / "boost.json").write_text("{}", encoding="utf-8")
    renew_digests(tmp_path / "m")
    with pytest.raises(FormatError, match="damaged"):
        eb.load_model(tmp_path / "m")


def test_invalid_parameters_are_refused():
    with pytest.raises(EthobenchError, match="`leaves` must be >= 2, got 1"):
        eb.create_model("boost", leaves=1)
    with pytest.raises(EthobenchError, match=r"`class_weight_exponent` must be <= 1, got 2\.0"):
        eb.create_model("boost", class_weight_exponent=2.0)


def test_annotate_at_another_rate_equals_predict():
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=60)
    model = eb.create_model("boost", **QUICK).fit(data)
    fast = eb.load_dataset("synthetic/tag", individuals=1, seconds=60, rate=100.0).recordings[0]
    assert fast.rate != model.rate
    with pytest.warns(UserWarning, match="resampled to 25 Hz"):
        assert model.annotate(fast) == model.predict(fast).annotation


def test_deadline_limits_the_number_of_trees():
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=300)
    clock = Clock()
    model = eb.create_model("boost", rounds=40)
    model.deadline = Deadline(10, clock=clock)
    clock.now += 11
    model.fit(data)
    trees = model.boosters[0].num_trees() / len(model.classes[0])
    assert trees == 20
    note = model.fit_report["notes"][-1]
    assert note.startswith("boosted trees: 20 of 40 rounds on ")
    assert eb.score({r.id: model.predict(r) for r in data}, data, resamples=0).overall["f1"] > 0.5


def test_deadline_limits_the_rows_but_not_the_classes():
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 800), 25)
    one = recording(codes, codes[:, None] + random.normal(0, 0.2, (len(codes), 1)))
    model = eb.create_model("boost", **QUICK)
    model.deadline = Deadline(1.0, clock=Clock(step=0.05))
    model.fit(Dataset((one,), ETHOGRAM))
    assert model.classes == [[0, 1]]
    assert "to keep the time budget" in model.fit_report["notes"][-1]


def test_cached_features_give_the_same_model(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=60)
    plain = eb.create_model("boost", **QUICK).fit(data)
    for _ in range(2):  # computed, then read
        with feature_cache(tmp_path):
            cached = eb.create_model("boost", **QUICK).fit(data)
            predicted = cached.predict(data.recordings[0])
        assert [b.model_to_string() for b in cached.boosters] == [b.model_to_string() for b in plain.boosters]
        assert np.array_equal(predicted.probabilities, plain.predict(data.recordings[0]).probabilities)
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("multiscale")]) == 3


def test_deadline_limits_the_recordings(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=8, seconds=30)
    model, clock = eb.create_model("boost", **QUICK), Clock()
    model.deadline = Deadline(10, clock=clock)
    clock.now += 11
    with feature_cache(tmp_path):
        model.fit(data)
    assert "trained on 4 of 8 recordings, to keep the time budget" in model.fit_report["notes"]


def test_prepare_caches_the_features_of_all_recordings(tmp_path):
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=30)
    with feature_cache(tmp_path):
        for model in (eb.create_model("boost"), eb.create_model("auto")):
            model.prepare(data, Deadline())
    kept = {path.name: path.stat().st_ino for path in tmp_path.iterdir() if path.name.startswith("multiscale")}
    assert len(kept) == 3
    with feature_cache(tmp_path):
        eb.create_model("boost", **QUICK).fit(data).predict(data.recordings[0])
    assert kept == {path.name: path.stat().st_ino for path in tmp_path.iterdir() if path.name.startswith("multiscale")}
