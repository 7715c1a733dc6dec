"""Cross-validation folds that never split an individual, stratified by behavior, or by a column such as the lab and by behavior."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ethobench.core.dataset import GROUPINGS, Dataset
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.recording import Recording
from ethobench.core.wording import join_names


def default_grouping(data: Dataset) -> str:
    """Return the unit that folds keep together: "individual", or "recording" if all recordings are of one individual."""
    return "individual" if len({*data.groups().values()}) > 1 else "recording"


def assign_folds(data: Dataset, n_folds: int = 5, by: str = "individual") -> dict[str, int]:
    """Assign recordings to folds: groups with the rarest behaviors first, each to the fold that lacks its behaviors most.

    Parameters
    ----------
    data : Dataset
    n_folds : int
        Maximum number of folds; never more than there are groups.
    by : {"individual", "recording"}
        The unit that is kept in one fold. Recordings of one individual are alike, so folds by recording do not measure how well a model
        generalizes to new individuals.

    Returns
    -------
    dict of str to int
        Fold of each recording id. Deterministic.

    Raises
    ------
    EthobenchError
        If there is only one group.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> folds = assign_folds(load_dataset("synthetic/tag", individuals=4, seconds=20), n_folds=2)
    >>> sorted(folds.values())
    [0, 0, 1, 1]
    """
    members = _members(data, by)
    n_folds = min(n_folds, len(members))
    shares = _behavior_shares(data, members.values())
    folds = _assign(shares, np.full(n_folds, -(-len(members) // n_folds)))
    return {recording.id: fold for fold, recordings in zip(folds, members.values(), strict=True) for recording in recordings}


def assign_stratified_folds(data: Dataset, n_folds: int = 5, by: str = "recording", column: str = "lab") -> dict[str, int]:
    """Assign recordings to folds so that the groups of every lab are spread over the folds; within a lab as `assign_folds` does.

    The numbers of groups of one lab in two folds differ by one at most, and so do the numbers of all groups. A lab with one group is
    in one fold, so that it is tested by a model that was trained on other labs only (see `count_groups`).

    Parameters
    ----------
    data : Dataset
    n_folds : int
        Maximum number of folds; never more than there are groups.
    by : {"recording", "individual"}
        The unit that is kept in one fold.
    column : str
        Metadata of the recordings to stratify by.

    Returns
    -------
    dict of str to int
        Fold of each recording id. Deterministic.

    Raises
    ------
    EthobenchError
        If there is only one group, or a recording has no value of the column.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> labs = load_dataset("synthetic/labs", videos=2, seconds=5, labs=["CRIM13", "LyricalHare"], metadata=False)
    >>> assign_stratified_folds(labs, n_folds=2)
    {'CRIM13-001': 1, 'CRIM13-002': 0, 'LyricalHare-001': 1, 'LyricalHare-002': 0}
    """
    members = _members(data, by)
    n_folds = min(n_folds, len(members))
    strata = _strata(members, column)
    group_lists = list(members.values())
    sizes = np.zeros(n_folds, dtype=np.int64)
    fold_of_group: dict[int, int] = {}
    for groups in strata.values():
        quota = np.full(n_folds, len(groups) // n_folds)
        quota[np.argsort(sizes, kind="stable")[: len(groups) % n_folds]] += 1
        sizes += quota
        fold_of_group |= dict(zip(groups, _assign(_behavior_shares(data, [group_lists[g] for g in groups]), quota), strict=True))
    return {recording.id: fold for group, fold in sorted(fold_of_group.items()) for recording in group_lists[group]}


def count_groups(data: Dataset, by: str = "recording", column: str = "lab") -> dict[str, int]:
    """Return the number of recordings or individuals of each lab, or of each value of another column of the metadata."""
    return {name: len(groups) for name, groups in _strata(_members(data, by), column).items()}


def _members(data: Dataset, by: str) -> dict[str, list[Recording]]:
    """Return the recordings of each group; an error if there is only one."""
    if by not in GROUPINGS:
        raise ParameterError(f"`by` must be {join_names(map(repr, GROUPINGS), 'or')}, got {by!r}")
    members: dict[str, list[Recording]] = {}
    group_of = data.groups(by)
    for recording in data:
        members.setdefault(group_of[recording.id], []).append(recording)
    if len(members) < 2:
        message = f"{data.name or 'the dataset'} has only one {by}, so cross-validation is not possible"
        if by == "recording" or len(data) < 2:
            raise EthobenchError(message)
        recordings = Option("by", "recording", flag="--split")
        raise EthobenchError(Message(message, "; use ", recordings, " to test on other recordings of the same individual"))
    return members


def _strata(members: Mapping[str, Sequence[Recording]], column: str) -> dict[str, list[int]]:
    """Return the indices of the groups with each value of a column, sorted by value; that of a group's first recording counts."""
    strata: dict[str, list[int]] = {}
    for index, recordings in enumerate(members.values()):
        missing = [recording.id for recording in recordings if not recording.metadata.get(column)]
        if missing:
            raise EthobenchError(f"recording {missing[0]!r} has no {column}, by which folds are stratified")
        strata.setdefault(str(recordings[0].metadata[column]), []).append(index)
    return dict(sorted(strata.items()))


def _behavior_shares(data: Dataset, groups: Collection[Sequence[Recording]]) -> NDArray[np.float64]:
    """Return the share of each group in the time of each behavior, and last in the recorded time (n_groups, n_behaviors + 1)."""
    seconds = np.array([sum(_behavior_seconds(r, len(data.ethogram)) for r in recordings) for recordings in groups])
    total = seconds.sum(axis=0)
    return np.asarray(seconds / np.where(total > 0, total, 1.0))


def _assign(shares: NDArray[np.float64], capacity: NDArray[np.int64]) -> list[int]:
    """Assign groups to folds of limited capacity: those with the rarest behaviors first, each to the fold that lacks its behaviors most."""
    n_folds = len(capacity)
    order = sorted(range(len(shares)), key=lambda group: (-float(shares[group].max()), group))
    fold_shares, fold_sizes = np.zeros((n_folds, shares.shape[1])), np.zeros(n_folds)
    folds = [0] * len(shares)
    for group in order:
        cost = np.square(fold_shares + shares[group]).sum(axis=1) - np.square(fold_shares).sum(axis=1)
        fold = min((f for f in range(n_folds) if fold_sizes[f] < capacity[f]), key=lambda f: (float(cost[f]), fold_sizes[f], f))
        folds[group] = fold
        fold_shares[fold] += shares[group]
        fold_sizes[fold] += 1
    return folds


def _behavior_seconds(recording: Recording, n_behaviors: int) -> NDArray[np.float64]:
    """Return the seconds of each behavior, and last the length of the recording (n_behaviors + 1,)."""
    seconds = np.zeros(n_behaviors + 1)
    seconds[-1] = (recording.n_frames or 0) / (recording.rate or 1.0)
    for annotation in recording.annotations.values():
        codes = annotation.behavior
        durations = (annotation.stop - annotation.start) / annotation.rate
        np.add.at(seconds, codes[codes < n_behaviors], durations[codes < n_behaviors])
    return seconds
