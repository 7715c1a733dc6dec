"""Cross-validation folds that never split an individual, stratified by behavior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core.dataset import GROUPINGS, Dataset
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.recording import Recording


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
    if by not in GROUPINGS:
        raise ParameterError(f"`by` must be {' or '.join(map(repr, GROUPINGS))}, got {by!r}")
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
    n_folds = min(n_folds, len(members))
    seconds = np.array([sum(_behavior_seconds(r, len(data.ethogram)) for r in recordings) for recordings in members.values()])
    total = seconds.sum(axis=0)
    shares = seconds / np.where(total > 0, total, 1.0)
    order = sorted(range(len(members)), key=lambda group: (-float(shares[group].max()), group))
    fold_shares, fold_sizes = np.zeros((n_folds, seconds.shape[1])), np.zeros(n_folds)
    fold_of_group: dict[int, int] = {}
    for group in order:
        has_room = fold_sizes < -(-len(members) // n_folds)
        cost = np.square(fold_shares + shares[group]).sum(axis=1) - np.square(fold_shares).sum(axis=1)
        fold = min((f for f in range(n_folds) if has_room[f]), key=lambda f: (float(cost[f]), fold_sizes[f], f))
        fold_of_group[group] = fold
        fold_shares[fold] += shares[group]
        fold_sizes[fold] += 1
    names = list(members)
    return {recording.id: fold for group, fold in sorted(fold_of_group.items()) for recording in members[names[group]]}


def _behavior_seconds(recording: Recording, n_behaviors: int) -> NDArray[np.float64]:
    """Return the seconds of each behavior, and last the length of the recording (n_behaviors + 1,)."""
    seconds = np.zeros(n_behaviors + 1)
    seconds[-1] = (recording.n_frames or 0) / (recording.rate or 1.0)
    for annotation in recording.annotations.values():
        codes = annotation.behavior
        durations = (annotation.stop - annotation.start) / annotation.rate
        np.add.at(seconds, codes[codes < n_behaviors], durations[codes < n_behaviors])
    return seconds
