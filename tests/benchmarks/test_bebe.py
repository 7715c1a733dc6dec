"""BEBE's protocol: its folds, settings and hyper-parameters."""

from __future__ import annotations

import pytest

from ethobench.benchmarks import bebe
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.runs import GridSearch


def test_published_hyper_parameters():
    assert bebe.published_params("rf", "HAR") == {"seconds": 16.0, "cutoff": 1.6}
    assert bebe.published_params("crnn", "HAR", "reduced") == {"learning_rate": 0.01, "dilation": 5, "cutoff": 0.0}
    assert bebe.published_params("crnn", "ladds_seals", "full, no gyroscope") == {"learning_rate": 0.01, "dilation": 1, "cutoff": 1.6}
    assert bebe.published_params("wavelet_svm", "desantis_rattlesnakes") == {"omega": 20.0, "longest": 1000.0}
    assert bebe.published_params("chance", "HAR") == {}


@pytest.mark.data
def test_final_folds_are_one_to_four_with_fold_zero_in_training(data):
    (plan,) = bebe.plans(["HAR"], ["crnn"])
    jobs = next(plan)
    assert [job.fold for job in jobs] == [1, 2, 3, 4]
    assert [job.seed for job in jobs] == [1, 2, 3, 4]
    assert all(len(job.train) + len(job.test) == 61 and not {*job.train} & {*job.test} for job in jobs)
    assert jobs[0].params == {"learning_rate": 0.003, "dilation": 5, "cutoff": 0.0, "window": 2048}


@pytest.mark.data
def test_reduced_data_train_on_the_fold_before(data):
    (plan,) = bebe.plans(["HAR"], ["rf"], settings=["reduced"])
    jobs = next(plan)
    from ethobench import load_dataset

    folds = load_dataset("bebe/HAR").folds
    assert [{folds[r] for r in job.train} for job in jobs] == [{0}, {1}, {2}, {3}]
    assert jobs[0].params == {"seconds": 4.0, "cutoff": 1.6}
    assert jobs[0].setting == "reduced"


@pytest.mark.data
def test_the_grid_is_searched_on_fold_zero(data):
    (plan,) = bebe.plans(["HAR"], ["rf"], search=GridSearch())
    jobs = next(plan)
    assert len(jobs) == 24
    assert {(job.fold, job.stage, job.seed) for job in jobs} == {(0, "search", 0)}
    (plan,) = bebe.plans(["HAR"], ["rf"], search=GridSearch(), settings=["reduced"])
    assert {job.params["cutoff"] for job in next(plan)} == {1.6}


@pytest.mark.data
def test_without_gyroscope(data):
    from ethobench import load_dataset

    (plan,) = bebe.plans(["HAR"], ["rf"], without_gyroscope=True)
    job = next(plan)[0]
    assert job.setting == "full, no gyroscope"
    assert load_dataset(job.dataset, **job.options).recordings[0].signals.channels == ("AccX", "AccY", "AccZ")


def test_what_bebe_does_not_have_is_said():
    with pytest.raises(NotFoundError, match="no dataset moths"):
        next(iter(bebe.plans(["moths"])))
    with pytest.raises(EthobenchError, match="settings are full and reduced"):
        next(iter(bebe.plans(["HAR"], settings=["tiny"])))


def test_searches_follow_the_protocol_of_each_dataset():
    assert bebe._fixed("rf", "desantis_rattlesnakes", "full") == {"cutoff": 0.0}
    assert bebe._fixed("crnn", "desantis_rattlesnakes", "full") == {"cutoff": 0.0}
    assert bebe._fixed("rf", "HAR", "full") == {}
    assert 16.0 not in bebe._grid("rf", "vehkaoja_dogs")["seconds"]
    assert 16.0 in bebe._grid("rf", "HAR")["seconds"]
