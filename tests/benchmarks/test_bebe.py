"""BEBE's protocol: its folds, settings and hyper-parameters."""

from __future__ import annotations

import pytest

from ethobench.benchmarks.bebe import Bebe, BebeOptions, fixed_params, published_params, search_grid
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.runs import Setting


def plan(**options):
    """Plan one model on one dataset."""
    (only,) = Bebe(BebeOptions(**options)).jobs()
    return only


def test_published_hyper_parameters():
    assert published_params("rf", "HAR") == {"seconds": 16.0, "cutoff": 1.6}
    assert published_params("crnn", "HAR", Setting("reduced")) == {"learning_rate": 0.01, "dilation": 5, "cutoff": 0.0}
    assert published_params("crnn", "ladds_seals", Setting(gyroscope=False)) == {"learning_rate": 0.01, "dilation": 1, "cutoff": 1.6}
    assert published_params("wavelet_svm", "desantis_rattlesnakes") == {"omega": 20.0, "longest": 1000.0}
    assert published_params("chance", "HAR") == {}


@pytest.mark.slow
@pytest.mark.data
def test_final_folds_are_one_to_four_with_fold_zero_in_training(data):
    jobs = next(plan(datasets=("HAR",), models=("crnn",), published=True))
    assert [job.fold for job in jobs] == [1, 2, 3, 4]
    assert [job.seed for job in jobs] == [1, 2, 3, 4]
    assert all(len(job.train) + len(job.test) == 61 and not {*job.train} & {*job.test} for job in jobs)
    assert jobs[0].params == {"learning_rate": 0.003, "dilation": 5, "cutoff": 0.0, "window": 2048}


@pytest.mark.slow
@pytest.mark.data
def test_reduced_data_train_on_the_fold_before(data):
    jobs = next(plan(datasets=("HAR",), models=("rf",), settings=("reduced",), published=True))
    from ethobench import load_dataset

    folds = load_dataset("bebe/HAR").folds
    assert [{folds[r] for r in job.train} for job in jobs] == [{0}, {1}, {2}, {3}]
    assert jobs[0].params == {"seconds": 4.0, "cutoff": 1.6}
    assert jobs[0].setting == Setting("reduced")


@pytest.mark.slow
@pytest.mark.data
def test_the_grid_is_searched_on_fold_zero(data):
    jobs = next(plan(datasets=("HAR",), models=("rf",)))
    assert len(jobs) == 24
    assert {(job.fold, job.stage, job.seed) for job in jobs} == {(0, "search", 0)}
    reduced = next(plan(datasets=("HAR",), models=("rf",), settings=("reduced",), search="grid"))
    assert {job.params["cutoff"] for job in reduced} == {1.6}


@pytest.mark.slow
@pytest.mark.data
def test_without_gyroscope(data):
    from ethobench import load_dataset

    job = next(plan(datasets=("HAR",), models=("rf",), gyroscope=False, published=True))[0]
    assert str(job.setting) == "full, no gyroscope"
    assert load_dataset(job.dataset, **job.options).recordings[0].signals.channels == ("AccX", "AccY", "AccZ")


def test_unknown_datasets_and_settings_are_refused():
    with pytest.raises(NotFoundError, match="no dataset moths"):
        plan(datasets=("moths",))
    with pytest.raises(EthobenchError, match="`settings` must be full or reduced, got tiny"):
        BebeOptions(settings=("tiny",))
    with pytest.raises(EthobenchError, match="give only one of them"):
        BebeOptions(published=True, search="grid")
    with pytest.raises(EthobenchError, match="`trials` must be >= 1, got 0"):
        BebeOptions(trials=0)


def test_searches_follow_the_protocol_of_each_dataset():
    assert fixed_params("rf", "desantis_rattlesnakes", "full") == {"cutoff": 0.0}
    assert fixed_params("crnn", "desantis_rattlesnakes", "full") == {"cutoff": 0.0}
    assert fixed_params("rf", "HAR", "full") == {}
    assert 16.0 not in search_grid("rf", "vehkaoja_dogs")["seconds"]
    assert 16.0 in search_grid("rf", "HAR")["seconds"]
