"""Folds keep individuals together and share behaviors out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ethobench import Annotation, Dataset, Ethogram, Recording, load_dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.folds import assign_folds


def test_individuals_are_never_split():
    data = load_dataset("synthetic/tag", individuals=7, recordings=3, seconds=10)
    folds = assign_folds(data, 3)
    assert len(folds) == 21
    folds_of = {r.individual: {folds[q.id] for q in data if q.individual == r.individual} for r in data}
    assert all(len(numbers) == 1 for numbers in folds_of.values())
    assert sorted(np.unique(list(folds.values()), return_counts=True)[1]) == [6, 6, 9]
    assert assign_folds(data, 3) == folds


def test_rare_behaviors_are_spread():
    ethogram = Ethogram(["common", "rare"])

    def recording(k: int) -> Recording:
        codes = np.zeros(100, dtype=int)
        codes[: 10 * (k < 4)] = 1
        return Recording(f"r{k}", f"animal{k}", annotations={"a": Annotation.from_frames(codes, ethogram, 10)})

    folds = assign_folds(Dataset(tuple(recording(k) for k in range(8)), ethogram), 4)
    assert {folds[f"r{k}"] for k in range(4)} == {0, 1, 2, 3}


def test_one_individual_cannot_be_cross_validated():
    data = load_dataset("synthetic/tag", individuals=1, recordings=4, seconds=10)
    with pytest.raises(EthobenchError, match=r"only one individual.*by='recording'"):
        assign_folds(data)
    assert sorted(assign_folds(data, 2, by="recording").values()) == [0, 0, 1, 1]
    with pytest.raises(EthobenchError, match=r"only one recording, so cross-validation is not possible$"):
        assign_folds(replace(data, recordings=data.recordings[:1], folds={}), by="recording")
    with pytest.raises(EthobenchError, match=r"must be .individual. or .recording., got .moon."):
        assign_folds(data, by="moon")


def test_behaviors_that_the_dataset_lacks_are_ignored():
    """Annotations with a third behavior have the folds of annotations without it."""

    def dataset(*names: str) -> Dataset:
        rng = np.random.default_rng(0)
        recordings = []
        for k in range(6):
            codes = rng.integers(0, 3, 50)
            annotation = Annotation.from_frames(codes, ["a", "b", "c"], 10).restrict(names)
            recordings.append(Recording(f"r{k}", f"animal{k}", annotations={"x": annotation}))
        return Dataset(tuple(recordings), Ethogram(["a", "b"]))

    assert assign_folds(dataset("a", "b", "c"), 3) == assign_folds(dataset("a", "b"), 3)


def test_one_recording_has_no_others_to_test_on():
    data = load_dataset("synthetic/tag", individuals=1, recordings=1, seconds=10)
    with pytest.raises(EthobenchError, match=r"only one individual, so cross-validation is not possible$"):
        assign_folds(data)
