"""Going on from what another network learnt."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ethobench as eb
from ethobench import Annotation, Dataset, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.training.fine_tuning import Phase, plan_phases, take_over
from ethobench.training.trajectory_networks import convolutional

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
    """Ask for one behavior against all others, as task 3 does."""
    ethogram = Ethogram(["other", behavior], "other")
    recordings = []
    for recording in data:
        truth = recording.annotation()
        codes = (truth.to_codes() == truth.ethogram.code(behavior)).astype(int)
        recordings.append(recording.copy(annotations={"me": Annotation.from_frames(codes, ethogram, truth.rate)}))
    return Dataset(tuple(recordings), ethogram, behavior)


def test_the_papers_recipe_learns_the_read_out_first():
    assert plan_phases("paper", **RATES) == [Phase(30, 1e-3, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **RATES, kept=7e-3) == [Phase(30, 1e-3, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **{**RATES, "head_learning_rate": None}) == [Phase(30, 5e-5, head_only=True), Phase(20, 5e-5)]
    assert plan_phases("paper", **{**RATES, "head_epochs": 0}) == [Phase(20, 5e-5)]


def test_the_codes_recipe_freezes_nothing_and_keeps_the_rate_of_a_whole_network():
    assert plan_phases("code", **RATES, kept=1e-3) == [Phase(30, 1e-3), Phase(20, 1e-3)]
    assert plan_phases("code", **RATES) == [Phase(30, 1e-3), Phase(20, 5e-5)]
    with pytest.raises(EthobenchError, match="paper or code, not 'mine'"):
        plan_phases("mine", **RATES)


def test_a_new_read_out_begins_anew_and_all_else_is_copied():
    old, new = convolutional(13, 4, 4, (8, 4), 3, 0.5), convolutional(13, 4, 2, (8, 4), 3, 0.5)
    before = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    take_over(new, old.state_dict(), read_out=False, whose="old")
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, before[name] if name.startswith("head") else old.state_dict()[name]), name
    with pytest.raises(MismatchError, match="old has other layers"):
        take_over(convolutional(13, 5, 4, (8, 4), 3, 0.5), old.state_dict(), read_out=False, whose="old")
    with pytest.raises(MismatchError, match="other layers"):
        take_over(convolutional(30, 4, 4, (8, 4, 2), 3, 0.5), old.state_dict(), read_out=False, whose="old")


def test_without_epochs_it_is_the_model_it_began_with(mice, saved):
    again = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0).fit(mice)
    recording = mice.recordings[0]
    assert np.array_equal(again.predict(recording).probabilities, eb.load_model(saved).predict(recording).probabilities)
    assert again.histories == []


def test_the_first_phase_changes_nothing_but_the_read_out(mice, saved):
    before = eb.load_model(saved).module.state_dict()
    probe = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0, head_epochs=2).fit(mice)
    for name, tensor in probe.module.state_dict().items():
        assert torch.equal(tensor, before[name]) is not name.startswith("head"), name
    assert all(p.requires_grad for p in probe.module.parameters())
    coded = eb.create_model("conv1d", **TINY, init=str(saved), epochs=0, head_epochs=2, recipe="code").fit(mice)
    assert not torch.equal(coded.module.body[0].weight, before["body.0.weight"])


def test_a_new_behavior_from_a_model_of_four(mice, saved, tmp_path):
    data = only(mice, "mount")
    model = eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=1, epochs=1, class_weight=20.0).fit(data)
    found = model.predict(data.recordings[0])
    assert found.probabilities.shape == (600, 2)
    assert len(model.histories) == 2
    plain = eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=1, epochs=1).fit(data).predict(data.recordings[0])
    assert found.probabilities[:, 1].mean() > plain.probabilities[:, 1].mean()
    model.save(tmp_path / "mount")
    assert np.array_equal(eb.load_model(tmp_path / "mount").predict(data.recordings[0]).probabilities, found.probabilities)


def test_phases_go_on_after_being_killed(mice, saved, tmp_path):
    def fresh():
        return eb.create_model("conv1d", **TINY, init=str(saved), head_epochs=2, epochs=2, seed=1)

    whole = fresh().fit(mice).predict(mice.recordings[0]).probabilities
    seen = []

    def stop(progress):
        seen.append(progress.epoch)
        if seen.count(1) == 2 * progress.steps:
            raise KeyboardInterrupt  # in the last step of the second phase

    killed = fresh()
    killed.checkpoint, killed.progress = tmp_path, stop
    with pytest.raises(KeyboardInterrupt):
        killed.fit(mice)
    again, epochs = fresh(), []
    again.checkpoint, again.progress = tmp_path, lambda progress: epochs.append(progress.epoch)
    assert np.array_equal(again.fit(mice).predict(mice.recordings[0]).probabilities, whole)
    assert set(epochs) == {1}


def test_statistics_are_those_of_the_model_it_began_with(mice, tmp_path):
    tiny = {**TINY, "inputs": "features", "epochs": 1}
    eb.create_model("conv1d", **tiny).fit(mice.select(fold=0)).save(tmp_path / "first")
    again = eb.create_model("conv1d", **tiny, init=str(tmp_path / "first")).fit(mice.select(fold=1))
    assert again.preparation == eb.load_model(tmp_path / "first").preparation


def test_models_that_do_not_fit_are_refused(mice, saved, tmp_path):
    with pytest.raises(MismatchError, match=r"has past=6, this one 8: give past=6"):
        eb.create_model("conv1d", **{**TINY, "past": 8}, init=str(saved)).fit(mice)
    with pytest.raises(MismatchError, match="begins only with its own kind"):
        eb.create_model("dense", layers=(8, 4), init=str(saved)).fit(mice)
    with pytest.raises(FormatError, match="no saved model"):
        eb.create_model("conv1d", **TINY, init=str(tmp_path)).fit(mice)
    tags = eb.load_dataset("synthetic/tag", individuals=2, seconds=20)
    with pytest.raises(MismatchError, match="other animals, keypoints or channels"):
        eb.create_model("conv1d", **TINY, init=str(saved)).fit(tags)
    slow = eb.load_dataset("synthetic/pose", individuals=2, seconds=10, rate=20.0)
    with pytest.raises(MismatchError, match="learnt at 30 Hz, these recordings run at 20 Hz"):
        eb.create_model("conv1d", **TINY, init=str(saved)).fit(slow)
