"""Directed behavior: examples per subject or pair, and predictions that name subjects and targets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram, Observed, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.observed import Track
from ethobench.models.directed import DirectedExamples

pytestmark = pytest.mark.slow

RATE, POINTS, RATS = 10.0, ("nose", "tail_base"), ("ada", "bea", "cleo")
ETHOGRAM = Ethogram(["sniff", "groom", "other"], "other")
TINY = {"past": 4, "future": 4, "frame_stride": 1, "layers": (8,), "kernel": 3, "epochs": 1, "samples_per_epoch": 256}


def scene(seed: int, seconds: int = 60, animals: int = 3, grooming: bool = True) -> Recording:
    """Let rats wander; one that sniffs has its nose at the other's tail, one that grooms curls up."""
    random = np.random.default_rng(seed)
    n = round(seconds * RATE)
    middle = 500 + np.cumsum(random.normal(0, 15, (n, animals, 2)), axis=0)
    heading = np.cumsum(random.normal(0, 0.2, (n, animals)), axis=0)
    along = 40 * np.stack([np.cos(heading), np.sin(heading)], axis=2)
    bouts = []
    for start in range(10, n - 30, 40):
        who, whom = random.permutation(animals)[:2]
        if grooming and random.random() < 0.4:
            along[start : start + 20, who] *= 0.2
            bouts.append((start, start + 20, "groom", RATS[who], None))
        else:
            middle[start : start + 20, who] = (middle - along)[start : start + 20, whom] - along[start : start + 20, who]
            bouts.append((start, start + 20, "sniff", RATS[who], RATS[whom]))
    positions = np.stack([middle + along, middle - along], axis=2) + random.normal(0, 1, (n, animals, 2, 2))
    start, stop, behavior, subject, target = (list(column) for column in zip(*bouts, strict=True))
    truth = Annotation.from_bouts(start, stop, behavior, ETHOGRAM, RATE, n, subject=subject, target=target, subjects=RATS[:animals])
    poses = Poses(positions, np.full(positions.shape[:3], np.nan), RATS[:animals], POINTS, RATE)
    return Recording(f"r{seed}", individual=f"cage{seed}", signals=poses, annotations={"me": truth})


@pytest.fixture(scope="module")
def rats() -> Dataset:
    return Dataset(tuple(scene(seed) for seed in range(5)), ETHOGRAM, "rats")


def test_every_ordered_pair_is_an_example(rats):
    truths = {r.id: r.annotation() for r in rats}
    examples = DirectedExamples.from_annotations(rats, truths)
    assert examples == DirectedExamples(("sniff",))
    expanded, expanded_truths = examples.expand(rats, truths)
    assert len(expanded) == 5 * 6
    view = expanded["r0|bea>cleo"]
    assert view.signals.individuals == ("subject", "target", "other1")
    assert np.array_equal(view.signals.positions, rats["r0"].signals.positions[:, [1, 2, 0]])
    assert view.individual == "cage0"
    truth, entire = expanded_truths["r0|bea>cleo"], truths["r0"]
    assert truth.spans("sniff").start.tolist() == entire.spans("sniff", "bea", "cleo").start.tolist()
    assert truth.spans("groom").start.tolist() == entire.spans("groom", "bea").start.tolist()
    assert not truth.subjects
    n_bouts = [
        sum(len(t.spans("sniff").start) for t in expanded_truths.values()),
        sum(len(t.spans("sniff").start) for t in truths.values()),
    ]
    assert n_bouts[0] == n_bouts[1] > 0


def test_without_targets_every_subject_is_an_example():
    lone = scene(1, grooming=True)
    truth = lone.annotation()
    only = truth.take(np.isin(truth.behavior, [ETHOGRAM.code("groom")]))
    data = Dataset((lone.copy(annotations={"me": only}),), ETHOGRAM)
    examples = DirectedExamples.from_annotations(data, {lone.id: only})
    assert examples == DirectedExamples(())
    assert [r.id for r in examples.expand(data, {lone.id: only})[0]] == ["r1|ada", "r1|bea", "r1|cleo"]


def test_bouts_without_names_or_of_unknown_animals_stay_undirected(rats):
    truths = {r.id: r.annotation() for r in rats}
    assert DirectedExamples.from_annotations(rats, {name: t.without_subjects() for name, t in truths.items()}) is None
    stranger = Annotation.from_bouts([0], [9], ["groom"], ETHOGRAM, RATE, 600, subject=["dora"])
    with pytest.warns(UserWarning, match="bouts of 'r0' name dora, which its poses lack"):
        assert DirectedExamples.from_annotations(rats, {**truths, "r0": stranger}) is None
    aimed = Annotation.from_bouts([0], [9], ["sniff"], ETHOGRAM, RATE, 600, subject=["ada"], target=["dora"])
    with pytest.warns(UserWarning, match="subjects and targets are ignored"):
        assert DirectedExamples.from_annotations(rats, {**truths, "r0": aimed}) is None


def test_unobserved_behaviors_of_a_pair_are_not_trained_on(rats):
    truth = rats["r0"].annotation()
    looked = Observed(iv.full(600), {Track("sniff", "ada", "bea"): iv.Intervals(np.array([0]), np.array([100]))})
    truths = {r.id: r.annotation() for r in rats} | {"r0": truth.with_observed(looked)}
    _, expanded_truths = DirectedExamples(("sniff",)).expand(rats, truths)
    assert iv.total(expanded_truths["r0|ada>bea"].observed.of("sniff")) == 100
    assert iv.total(expanded_truths["r0|ada>cleo"].observed.of("sniff")) == 600


@pytest.mark.slow
def test_a_forest_predicts_subject_and_target_among_three_animals(rats, tmp_path):
    train, test = rats.select(recordings=["r0", "r1", "r2", "r3"]), rats["r4"]
    model = eb.create_model("rf", trees=30, max_samples=0.5, seconds=0.5).fit(train)
    prediction, truth = model.predict(test), test.annotation()
    assert set(prediction.annotation.subjects) == set(RATS)
    for who in RATS:
        for whom in RATS:
            if who != whom and len(truth.spans("sniff", who, whom).start):
                predicted, annotated = (iv.to_mask(a.spans("sniff", who, whom), 600) for a in (prediction.annotation, truth))
                assert 2 * (predicted & annotated).sum() / (predicted.sum() + annotated.sum()) > 0.6
    grooms = prediction.annotation.take(prediction.annotation.behavior == ETHOGRAM.code("groom"))
    assert len(grooms)
    assert set(grooms.names(grooms.target)) == {None}
    assert set(prediction.by_actors) == {(a, b) for a in RATS for b in RATS if a != b}
    sniff = np.max([p.probabilities[:, 0] for p in prediction.by_actors.values()], axis=0)
    assert prediction.probabilities[:, 0] == pytest.approx(sniff)
    model.save(tmp_path / "model")
    assert eb.load_model(tmp_path / "model").predict(test).annotation == prediction.annotation
    scores = eb.score({"r4": prediction}, rats).to_dict()
    assert scores["behaviors"]["sniff"]["f1"] > 0.5


def test_predictions_follow_the_animals_when_their_order_changes(rats):
    model = eb.create_model("conv1d", **TINY).fit(rats)
    recording = rats["r0"]
    poses, order = recording.signals, [2, 0, 1]
    mixed = dataclasses.replace(
        poses, positions=poses.positions[:, order], confidence=poses.confidence[:, order], individuals=("cleo", "ada", "bea")
    )
    prediction, again = model.predict(recording), model.predict(recording.copy(signals=mixed))
    for actors, by_actor in prediction.by_actors.items():
        assert again.by_actors[actors].probabilities == pytest.approx(by_actor.probabilities, abs=1e-5)
    assert model.inputs[0] == "subject/nose"


def test_names_of_other_animals_do_not_matter(rats):
    model = eb.create_model("conv1d", **TINY).fit(rats)
    renamed = dataclasses.replace(rats["r0"].signals, individuals=("x", "y", "z"))
    prediction = model.predict(rats["r0"].copy(signals=renamed, annotations={}))
    assert ("x", "z") in prediction.by_actors
    alone = dataclasses.replace(renamed, positions=renamed.positions[:, :1], confidence=renamed.confidence[:, :1], individuals=("x",))
    with pytest.raises(MismatchError, match="one animal"):
        model.predict(rats["r0"].copy(signals=alone, annotations={}))


@pytest.mark.slow
def test_a_decoder_is_chosen_on_the_examples():
    few = Dataset(tuple(scene(seed, seconds=20, animals=2, grooming=False) for seed in range(2)), ETHOGRAM)
    model = eb.create_model("conv1d", decode="f1", **TINY).fit(few)
    assert model.decoder is not None
    assert model.predict(few.recordings[0]).annotation.n_frames == 200


def test_animals_of_another_lab_keep_their_names(rats, tmp_path):
    model = eb.create_model("rf", trees=3, seconds=0.5).fit(rats)
    other = rats.recordings[0]
    poses = dataclasses.replace(other.signals, individuals=("x", "y", "z"), keypoints=("snout", "tailbase"))
    strange = Recording("s", signals=poses, rate=RATE)
    adapted = model.adapt(strange)
    assert adapted.signals.individuals == ("x", "y", "z")
    assert set(model.annotate(adapted).subjects) <= {"x", "y", "z"}
    few = dataclasses.replace(poses, individuals=("x", "y"), positions=poses.positions[:, :2], confidence=poses.confidence[:, :2])
    with pytest.raises(MismatchError, match="2 animals"):
        model.adapt(Recording("t", signals=few, rate=RATE))


def test_other_rates_keep_subject_and_target(rats):
    model = eb.create_model("rf", trees=5, seconds=0.5).fit(rats)
    recording = rats.recordings[0]
    fast = dataclasses.replace(
        recording.signals,
        positions=np.repeat(recording.signals.positions, 2, axis=0),
        confidence=np.repeat(recording.signals.confidence, 2, axis=0),
        rate=2 * RATE,
    )
    with pytest.warns(UserWarning, match="resampled to 10 Hz"):
        prediction = model.predict(Recording("f", signals=fast, rate=2 * RATE, n_frames=len(fast)))
    assert prediction.annotation.n_frames == len(fast) == prediction.n_frames
    assert {*prediction.annotation.names(prediction.annotation.subject)} <= {*RATS}
    assert all(each.n_frames == len(fast) for each in prediction.by_actors.values())


def test_swap_augmentation_is_refused_for_directed_behaviors(rats):
    with pytest.raises(eb.EthobenchError, match="cannot be swapped"):
        eb.create_model("conv1d", augment=("swap",), **TINY).fit(rats)
