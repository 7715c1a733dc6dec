"""Frames whose input is missing are unobserved in every model's predictions, and teach nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.models.test_every_model import QUICK, SMALL

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Poses, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.models import models
from ethobench.models.input_checks import BRIDGED_SECONDS, RequiredInput, input_present

pytestmark = [
    pytest.mark.filterwarnings("ignore:Liblinear failed to converge"),
    pytest.mark.filterwarnings("ignore:Best performing initialization did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:recording .* looks unlike the training data"),
]
GAP = slice(400, 700)
NO_SIGNALS = ("mllm",)  # their input is the video


def blanked(recording: Recording, frames: slice, animals: slice = slice(None)) -> Recording:
    """Return a recording without the input of a few frames."""
    data = recording.signals
    if isinstance(data, Signals):
        values = np.array(data.values, dtype=np.float64)
        values[frames] = np.nan
        return recording.copy(signals=dataclasses.replace(data, values=values))
    positions, confidence = np.array(data.positions), np.array(data.confidence)
    positions[frames, animals] = np.nan
    confidence[frames, animals] = np.nan
    return recording.copy(signals=dataclasses.replace(data, positions=positions, confidence=confidence))


def observed(annotation: Annotation) -> np.ndarray:
    return iv.to_mask(annotation.observed.of_any(), annotation.n_frames)


@pytest.fixture(scope="module", params=["tag", "pose"])
def data(request) -> Dataset:
    return eb.load_dataset(f"synthetic/{request.param}", individuals=4, seconds=60, folds=4)


@pytest.fixture(scope="module")
def tree(data):
    """A decision tree trained on three of the four animals."""
    return eb.create_model("dt").fit(data.select(fold=[0, 1, 2]))


@pytest.fixture(
    params=[each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in models.names() if each not in NO_SIGNALS]
)
def name(request) -> str:
    return request.param


def test_a_gap_is_unobserved_and_other_frames_are_unchanged(name, data, tmp_path):
    model = eb.create_model(name, **SMALL.get(name, {})).fit(data.select(fold=[0, 1, 2]))
    recording = data.select(fold=3).recordings[0]
    intact, gap = model.predict(recording), model.predict(blanked(recording, GAP))
    expected = np.ones(recording.n_frames, dtype=bool)
    expected[GAP] = False
    assert intact.predictable.all()
    assert np.array_equal(gap.predictable, expected)
    assert np.isnan(gap.probabilities[GAP]).all()
    assert not np.isnan(gap.probabilities[expected]).any()
    assert np.array_equal(observed(gap.annotation), expected)
    assert not iv.to_mask(iv.union(iv.intervals(gap.annotation.start, gap.annotation.stop)), recording.n_frames)[GAP].any()
    far = expected.copy()
    far[max(GAP.start - 200, 0) : GAP.stop + 200] = False  # features and networks look that far to each side
    before, after = (p.annotation.to_codes()[far] for p in (intact, gap))
    assert (before == after).mean() > 0.9
    assert np.array_equal(observed(model.annotate(blanked(recording, GAP))), expected)
    model.save(tmp_path / "model")
    assert np.array_equal(eb.load_model(tmp_path / "model").predict(blanked(recording, GAP)).predictable, expected)


@pytest.mark.slow
def test_short_gaps_are_predicted(data, tree):
    recording = data.select(fold=3).recordings[0]
    frames = int(BRIDGED_SECONDS[0] * recording.rate)
    assert tree.predict(blanked(recording, slice(400, 400 + frames))).predictable.all()
    assert (~tree.predict(blanked(recording, slice(400, 401 + frames))).predictable).sum() == frames + 1


@pytest.mark.slow
def test_budgets_and_scores_exclude_the_gap(data, tree):
    recording = data.select(fold=3).recordings[0]
    prediction = tree.predict(blanked(recording, GAP))
    scores = eb.score(prediction, recording.annotation())
    n_frames = recording.n_frames
    assert scores.coverage == pytest.approx((n_frames - 300) / n_frames)
    intact = tree.predict(recording).annotation
    cut = intact.mark_unobserved(iv.intervals([GAP.start], [GAP.stop]))
    for behavior in data.ethogram.names:
        seconds = [iv.total(iv.union(a.spans(behavior))) / recording.rate for a in (cut, prediction.annotation)]
        assert seconds[1] == pytest.approx(seconds[0], abs=2.0)  # frames beside the gap may change


@pytest.mark.slow
def test_another_rate_keeps_the_gap(data, tree):
    recording = blanked(data.select(fold=3).recordings[0], GAP)
    half = dataclasses.replace(recording.signals[::2], rate=recording.rate / 2)
    with pytest.warns(UserWarning, match="resampled"):
        prediction = tree.predict(recording.copy(signals=half, rate=recording.rate / 2, n_frames=len(half), annotations={}))
    missing = np.flatnonzero(~prediction.predictable)
    assert abs(missing[0] - GAP.start // 2) <= 1
    assert abs(missing[-1] + 1 - GAP.stop // 2) <= 1
    assert len(missing) == missing[-1] - missing[0] + 1


def test_labels_without_input_are_not_trained_on():
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 2, 40), 10)
    values = (codes + rng.normal(0, 0.1, 400))[:, None].repeat(3, axis=1)
    values[200:300] = np.nan
    ethogram = Ethogram(["rest", "run"])
    predictions = []
    for labels in (codes, np.where((np.arange(400) >= 200) & (np.arange(400) < 300), 1 - codes, codes)):
        truth = Annotation.from_frames(labels, ethogram, 10)
        recording = Recording("r", signals=Signals(values, ("AccX", "AccY", "AccZ"), 10), annotations={"me": truth})
        with pytest.warns(UserWarning, match=r"10.0 s of annotations in 1 of 1 recordings are not used for training"):
            predictions.append(eb.create_model("rf", trees=5).fit(Dataset((recording,), ethogram)).predict(recording))
    assert np.array_equal(predictions[0].probabilities, predictions[1].probabilities, equal_nan=True)


@pytest.mark.slow
def test_an_animal_that_was_missing_in_training_may_be_missing():
    data = eb.load_dataset("synthetic/pose", individuals=4, seconds=60, folds=4)
    recording = data.recordings[3]
    one_missing = blanked(recording, GAP, animals=slice(1, 2))
    strict = eb.create_model("dt").fit(data.select(fold=[0, 1, 2]))
    assert not strict.predict(one_missing).predictable[GAP].any()
    often = tuple(blanked(r, slice(100, 400), animals=slice(1, 2)) for r in data.select(fold=[0, 1, 2]))
    lenient = eb.create_model("dt").fit(dataclasses.replace(data, recordings=often, folds={}, splits={}))
    assert lenient.predict(one_missing).predictable.all()
    assert not lenient.predict(blanked(recording, GAP)).predictable[GAP].any()


@pytest.mark.slow
def test_directed_predictions_exclude_only_the_pairs_of_the_missing_animal():
    data = eb.load_dataset("synthetic/trio", individuals=2, seconds=60)
    model = eb.create_model("rf", trees=5).fit(data)
    recording = blanked(data.recordings[0], GAP, animals=slice(2, 3))
    names = recording.signals.individuals
    prediction = model.predict(recording)
    for actors, by_actor in prediction.by_actors.items():
        assert by_actor.predictable[GAP].any() == (names[2] not in actors)
    behavior = model.directed.targeted[0]
    observed = prediction.annotation.observed
    assert iv.total(observed.of(behavior, names[0], names[1])) == recording.n_frames
    assert iv.total(observed.of(behavior, names[0], names[2])) == recording.n_frames - 300
    assert prediction.predictable.all()


@pytest.mark.slow
def test_a_stream_stops_predicting_in_a_gap():
    data = eb.load_dataset("synthetic/tag", individuals=2, seconds=40)
    model = eb.create_model("tcn", causal=True, updates=5, width=8, levels=2).fit(data)
    values = np.array(data.recordings[0].signals.values)[:200]
    values[100:150] = np.nan
    stream = model.stream()
    missing = np.array([np.isnan(stream.push(frame)).all() for frame in values])
    bridged = int(0.5 * data.recordings[0].rate)
    assert not missing[: 100 + bridged].any()
    assert missing[100 + bridged : 150].all()
    assert not missing[150:].any()


def test_input_is_missing_where_no_keypoint_is_tracked():
    positions = np.random.default_rng(0).uniform(50, 100, (100, 2, 3, 2))
    confidence = np.ones((100, 2, 3))
    positions[10:40, 0] = np.nan
    positions[50:80, 0, 1:] = np.nan  # one keypoint is left
    confidence[20:60, 1] = 0.05
    positions[70:90, 1] = 0.0  # many trackers write (0, 0) for missing keypoints
    present = input_present(Poses(positions, confidence, ("a", "b"), ("nose", "hip", "tail"), 10), 10)
    assert np.flatnonzero(~present[:, 0]).tolist() == [*range(10, 40)]
    assert np.flatnonzero(~present[:, 1]).tolist() == [*range(20, 60), *range(70, 90)]


def test_rare_combinations_do_not_count_as_trained():
    present = np.ones((1000, 2), dtype=bool)
    present[:5, 0] = False
    present[500:600, 1] = False
    present[700:900] = False
    required = RequiredInput.fit([(present, np.ones(1000, dtype=bool))])
    assert required.combinations == ((True, False),)
    assert required.met(np.array([[True, True], [True, False], [False, True], [False, False]])).tolist() == [True, True, False, False]


def test_short_losses_of_all_animals_are_bridged_and_long_ones_are_not():
    rate = 30.0
    present = np.ones((600, 2), dtype=bool)
    present[100:160, 0] = present[130:190, 1] = False  # both are missing for one second
    present[300:360, 0] = present[325:390, 1] = False  # and for longer than that
    required = RequiredInput(None, ((False, True), (True, False)))
    assert np.flatnonzero(~required.met(present)).tolist() == [*range(130, 160), *range(325, 360)]
    assert np.flatnonzero(~required.predictable(present, rate)).tolist() == [*range(325, 360)]


@pytest.mark.parametrize(("behavior_inside", "bridged"), [("same", 5.0), ("other", 1.0), ("unobserved", 1.0)])
def test_longer_gaps_are_bridged_if_the_labels_of_training_gaps_justify_it(behavior_inside, bridged):
    rate, present, labels = 10.0, np.ones((4000, 1), dtype=bool), np.zeros((4000, 2), dtype=np.int16)
    for number, start in enumerate(range(50, 3950, 100)):
        inside = slice(start, start + (15, 40)[number % 2])  # 1.5 s and 4 s; longer ones do not occur
        present[inside] = False
        labels[inside] = {"same": 0, "other": 1, "unobserved": -1}[behavior_inside]
    required = RequiredInput().fit_bridge([(present, labels, rate)])
    assert required.bridged_seconds == bridged
    assert RequiredInput.from_dict(dataclasses.asdict(required)) == required
    assert required.predictable(present, rate).all() == (bridged == 5.0)
    assert not required.predictable(np.zeros((20, 1), dtype=bool), rate).any()
