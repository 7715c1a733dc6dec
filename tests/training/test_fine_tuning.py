"""Fine-tuning of a saved network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.models.calms21_modules import convolutional
from ethobench.training.fine_tuning import Phase, copy_weights, plan_phases

pytestmark = pytest.mark.slow

TINY = {"past": 6, "future": 6, "frame_stride": 1, "layers": (8, 4), "kernel": 3, "samples_per_epoch": 200}
RATES = {"epochs": 20, "learning_rate": 5e-5, "head_epochs": 30, "head_learning_rate": 1e-3}


@pytest.fixture(scope="module")
def mice() -> Dataset:
    return eb.load_dataset("synthetic/pose", individuals=2, seconds=20)


@pytest.fixture(scope="module")
def saved(mice, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "task1"
    eb.create_model("conv1d", **TINY, epochs=2, learning_rate=2e-3).fit(mice).save(folder)
    return folder


def only(data: Dataset, behavior: str) -> Dataset:
    """Annotate one behavior against all others, as task 3 does."""
    ethogram = Ethogram(["other", behavior], "other")
    recordings = []
    for recording in data:
        truth = recording.annotation()
        codes = (truth.to_codes() == truth.ethogram.code(behavior)).astype(int)
        recordings.append(recording.copy(annotations={"me": Annotation.from_frames(codes, ethogram, truth.rate)}))
    return Dataset(tuple(recordings), ethogram, behavior)


def test_the_papers_recipe_trains_the_output_layer_first():
    assert plan_phases("paper", **RATES) == [Phase(30, 1e-3, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **RATES, initial_learning_rate=7e-3) == [Phase(30, 1e-3, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **{**RATES, "head_learning_rate": None}) == [Phase(30, 5e-5, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **{**RATES, "head_epochs": 0}) == [Phase(20, 5e-5)]


def test_the_codes_recipe_freezes_nothing_and_keeps_the_initial_learning_rate():
    assert plan_phases("code", **RATES, initial_learning_rate=1e-3) == [Phase(30, 1e-3), Phase(20, 1e-3)]
    assert plan_phases("code", **RATES) == [Phase(30, 1e-3), Phase(20, 5e-5)]
    with pytest.raises(EthobenchError, match="paper or code, got 'mine'"):
        plan_phases("mine", **RATES)


def test_all_layers_but_a_new_output_layer_are_copied():
    old, new = convolutional(13, 4, 4, (8, 4), 3, 0.5), convolutional(13, 4, 2, (8, 4), 3, 0.5)
    before = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    copy_weights(new, old.state_dict(), head=False, source="old")
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, before[name] if name.startswith("head") else old.state_dict()[name]), name
    with pytest.raises(MismatchError, match="old has other layers"):
        copy_weights(convolutional(13, 5, 4, (8, 4), 3, 0.5), old.state_dict(), head=False, source="old")
    with pytest.raises(MismatchError, match="other layers"):
        copy_weights(convolutional(30, 4, 4, (8, 4, 2), 3, 0.5), old.state_dict(), head=False, source="old")


def test_without_epochs_it_equals_the_initial_model(mice, saved):
    resumed = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0).fit(mice)
    recording = mice.recordings[0]
    assert np.array_equal(resumed.predict(recording).probabilities, eb.load_model(saved).predict(recording).probabilities)
    assert resumed.histories == []


def test_the_first_phase_changes_only_the_output_layer(mice, saved):
    before = eb.load_model(saved).module.state_dict()
    probe = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0, head_epochs=2).fit(mice)
    for name, tensor in probe.module.state_dict().items():
        assert torch.equal(tensor, before[name]) is not name.startswith("head"), name
    assert all(p.requires_grad for p in probe.module.parameters())
    with_code_recipe = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0, head_epochs=2, recipe="code").fit(mice)
    assert not torch.equal(with_code_recipe.module.body[0].weight, before["body.0.weight"])


def test_a_new_behavior_from_a_model_of_four(mice, saved, tmp_path):
    data = only(mice, "mount")
    model = eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=1, epochs=1, class_weight=20.0).fit(data)
    prediction = model.predict(data.recordings[0])
    assert prediction.probabilities.shape == (600, 2)
    assert len(model.histories) == 2
    plain = eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=1, epochs=1).fit(data).predict(data.recordings[0])
    assert prediction.probabilities[:, 1].mean() > plain.probabilities[:, 1].mean()
    model.save(tmp_path / "mount")
    assert np.array_equal(eb.load_model(tmp_path / "mount").predict(data.recordings[0]).probabilities, prediction.probabilities)


def test_phases_are_resumed_after_an_interruption(mice, saved, tmp_path):
    def create():
        return eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=2, epochs=2, seed=1)

    complete = create().fit(mice).predict(mice.recordings[0]).probabilities
    epochs_reported = []

    def stop(progress):
        epochs_reported.append(progress.epoch)
        if epochs_reported.count(1) == 2 * progress.steps:
            raise KeyboardInterrupt  # in the last step of the second phase

    interrupted = create()
    interrupted.checkpoint, interrupted.progress = tmp_path, stop
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(mice)
    resumed, epochs = create(), []
    resumed.checkpoint, resumed.progress = tmp_path, lambda progress: epochs.append(progress.epoch)
    assert np.array_equal(resumed.fit(mice).predict(mice.recordings[0]).probabilities, complete)
    assert set(epochs) == {1}


def test_statistics_are_those_of_the_initial_model(mice, tmp_path):
    tiny = {**TINY, "inputs": "features", "epochs": 1}
    eb.create_model("conv1d", **tiny).fit(mice.select(fold=0)).save(tmp_path / "first")
    resumed = eb.create_model("conv1d", **tiny, init=str(tmp_path / "first")).fit(mice.select(fold=1))
    assert resumed.transform == eb.load_model(tmp_path / "first").transform


def test_models_that_do_not_fit_are_refused(mice, saved, tmp_path):
    with pytest.raises(MismatchError, match=r"`past` must be 6, as in the model in .*, got 8"):
        eb.create_model("conv1d", **{**TINY, "past": 8}, init=str(saved)).fit(mice)
    with pytest.raises(MismatchError, match="can only be initialized from its own kind"):
        eb.create_model("dense", layers=(8, 4), init=str(saved)).fit(mice)
    with pytest.raises(FormatError, match="not a saved model"):
        eb.create_model("conv1d", **TINY, init=str(tmp_path)).fit(mice)
    tags = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    with pytest.raises(MismatchError, match="other animals, keypoints or channels"):
        eb.create_model("conv1d", **TINY, init=str(saved)).fit(tags)
    slow = eb.load_dataset("synthetic/pose", individuals=2, seconds=10, rate=20.0)
    with pytest.raises(MismatchError, match="trained at 30 Hz, these recordings have 20 Hz"):
        eb.create_model("conv1d", **TINY, init=str(saved)).fit(slow)
