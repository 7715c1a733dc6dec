"""Folds keep individuals together and share behaviors out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Dataset, Ethogram, Recording, load_dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.folds import assign_folds, assign_stratified_folds, count_groups


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


def folds_by_definition(data: Dataset, n_folds: int, by: str) -> dict[str, int]:
    """Deal groups one by one, that with the largest share of anything first, to the fold where the squares of shares grow least."""
    group_of = data.groups(by)
    names = list(dict.fromkeys(group_of[r.id] for r in data))
    n_folds = min(n_folds, len(names))
    amounts = {name: [0.0] * (len(data.ethogram) + 1) for name in names}
    for recording in data:
        amount = amounts[group_of[recording.id]]
        amount[-1] += recording.n_frames / recording.rate if recording.n_frames is not None else 0
        for annotation in recording.annotations.values():
            for code in annotation.to_codes():
                amount[code] += 1 / annotation.rate
    totals = [sum(amount[k] for amount in amounts.values()) for k in range(len(data.ethogram) + 1)]
    shares = {name: [x / total if total else 0.0 for x, total in zip(amounts[name], totals, strict=True)] for name in names}
    dealt: list[list[str]] = [[] for _ in range(n_folds)]

    def squares(members: list[str]) -> float:
        return sum(sum(shares[name][k] for name in members) ** 2 for k in range(len(totals)))

    for name in sorted(names, key=lambda name: -max(shares[name])):
        free = [fold for fold in dealt if len(fold) < int(np.ceil(len(names) / n_folds))]
        min(free, key=lambda fold: (round(squares([*fold, name]) - squares(fold), 9), len(fold))).append(name)
    return {recording.id: k for recording in data for k, fold in enumerate(dealt) if group_of[recording.id] in fold}


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("by", ["individual", "recording"])
def test_folds_equal_their_definition(by, scale):
    """Recordings differ in rate and length, which may be unknown; also if all of them together last less than a second."""
    rng = np.random.default_rng(scale)
    for n_folds in (2, 3, 4, 20):
        recordings = []
        for k in range(9):
            rate = float(rng.choice([10.0, 25.0])) * scale
            codes = np.repeat(rng.choice(3, 8, p=[0.7, 0.25, 0.05]), rng.integers(1, 9))
            recordings.append(Recording(f"r{k}", f"animal{k % 6}", annotations={"x": Annotation.from_frames(codes, ["a", "b", "c"], rate)}))
        recordings += [Recording(f"video{k}", f"animal{k + 5}") for k in range(3)]  # of unknown length
        data = Dataset(tuple(recordings), Ethogram(["a", "b", "c"]))
        assert assign_folds(data, n_folds, by=by) == folds_by_definition(data, n_folds, by)


def labs_dataset(counts: dict[str, int], animals: int = 0) -> Dataset:
    """Recordings of each lab; those with the same number modulo `animals` are of one animal, if it is not 0."""
    ethogram = Ethogram(["rest", "run"])
    recordings = []
    for lab, count in counts.items():
        for k in range(count):
            codes = np.arange(20) // (k + 2) % 2
            individual = f"{lab}/{k % animals}" if animals else ""
            annotations = {"a": Annotation.from_frames(codes, ethogram, rate=1)}
            recordings.append(Recording(f"{lab}-{k}", individual, annotations=annotations, metadata={"lab": lab}))
    return Dataset(tuple(recordings), ethogram)


lab_counts = st.dictionaries(st.sampled_from("ABCDEFG"), st.integers(1, 12), min_size=1).filter(lambda counts: sum(counts.values()) > 1)


@given(lab_counts, st.integers(2, 6))
def test_every_lab_is_spread_over_the_folds(counts, n_folds):
    data = labs_dataset(counts)
    folds = assign_stratified_folds(data, n_folds)
    assert folds == assign_stratified_folds(data, n_folds)  # deterministic
    assert {*folds} == {r.id for r in data}
    n_folds = min(n_folds, len(data))
    sizes = np.bincount(list(folds.values()), minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1
    for lab in counts:
        of_lab = np.bincount([fold for name, fold in folds.items() if name.startswith(lab)], minlength=n_folds)
        assert np.ptp(of_lab) <= 1
    assert count_groups(data) == counts


@given(lab_counts, st.integers(2, 4), st.integers(1, 5))
def test_stratified_folds_by_individual_split_none(counts, n_folds, animals):
    data = labs_dataset(counts, animals)
    if len(data.individuals) < 2:
        with pytest.raises(EthobenchError, match="only one individual"):
            assign_stratified_folds(data, n_folds, by="individual")
        return
    folds = assign_stratified_folds(data, n_folds, by="individual")
    for name in data.individuals:
        assert len({folds[r.id] for r in data if r.individual == name}) == 1
    assert count_groups(data, "individual") == {lab: min(count, animals) for lab, count in counts.items()}


def test_stratified_folds_need_the_column():
    data = labs_dataset({"A": 3})
    data.recordings[1].metadata = {}
    with pytest.raises(EthobenchError, match="recording 'A-1' has no lab, by which folds are stratified"):
        assign_stratified_folds(data)
    with pytest.raises(EthobenchError, match="has no treatment"):
        assign_stratified_folds(data, column="treatment")


def test_two_individuals_are_enough():
    data = load_dataset("synthetic/tag", individuals=2, seconds=10)
    assert sorted(assign_folds(data).values()) == [0, 1]
