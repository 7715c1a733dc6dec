"""Folds that never split an individual, and give each fold its share of every behavior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core.dataset import Dataset
from ethobench.core.errors import EthobenchError
from ethobench.core.recording import Recording

BY = ("individual", "recording")
ORIGIN = "ethobench.origin"  # under this name, metadata of one of several views of a recording keep its id


def original_id(recording: Recording) -> str:
    """Return the id of the recording that this is a view of, such as that of one annotator or one subject; else its own."""
    return str(recording.metadata.get(ORIGIN, recording.id))


def usual_split(data: Dataset) -> str:
    """Return what to keep together: individuals, or recordings where all are of one individual."""
    return BY[len({*data.groups().values()}) < 2]


def kept_together(data: Dataset, by: str | None = None) -> dict[str, str]:
    """Map recording ids to what is never split: individuals, or recordings; several views of a recording are one.

    Parameters
    ----------
    data : Dataset
    by : {"individual", "recording"}, optional
        As `usual_split` tells unless given.
    """
    by = by or usual_split(data)
    return data.groups() if by == "individual" else {r.id: original_id(r) for r in data}


def deal_folds(data: Dataset, n_folds: int = 5, by: str = "individual") -> dict[str, int]:
    """Deal recordings to folds, the rarest behaviors first, each to the fold that lacks it most.

    Parameters
    ----------
    data : Dataset
    n_folds : int
        At most; there are no more folds than individuals.
    by : {"individual", "recording"}
        What is kept together. Recordings of one individual are alike, so scores by recording tell nothing about new individuals.

    Returns
    -------
    dict of str to int
        Folds by recording id; the same for the same data.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> folds = deal_folds(load_dataset("synthetic/tag", individuals=4, seconds=20), n_folds=2)
    >>> sorted(folds.values())
    [0, 0, 1, 1]
    """
    if by not in BY:
        raise EthobenchError(f"folds keep together what is of one {' or '.join(BY)}, not {by!r}")
    group_of = kept_together(data, by)
    groups: dict[str, list[Recording]] = {}
    for recording in data:
        groups.setdefault(group_of[recording.id], []).append(recording)
    if len(groups) < 2:
        way_out = "" if by == "recording" or len(data) < 2 else "; --split recording compares recordings of the same individual instead"
        raise EthobenchError(f"{data.name or 'the dataset'} has one {by} only, so no honest test is possible{way_out}")
    n_folds = min(n_folds, len(groups))
    content = np.array([sum(_content(r, len(data.ethogram)) for r in members) for members in groups.values()])
    total = content.sum(axis=0)
    shares = content / np.where(total > 0, total, 1.0)
    order = sorted(range(len(groups)), key=lambda g: (-float(shares[g].max()), g))
    filled, sizes = np.zeros((n_folds, content.shape[1])), np.zeros(n_folds)
    dealt: dict[int, int] = {}
    for g in order:
        room = sizes < -(-len(groups) // n_folds)
        added = np.square(filled + shares[g]).sum(axis=1) - np.square(filled).sum(axis=1)
        fold = min((f for f in range(n_folds) if room[f]), key=lambda f: (float(added[f]), sizes[f], f))
        dealt[g] = fold
        filled[fold] += shares[g]
        sizes[fold] += 1
    names = list(groups)
    return {recording.id: fold for g, fold in sorted(dealt.items()) for recording in groups[names[g]]}


def _content(recording: Recording, n_behaviors: int) -> NDArray[np.float64]:
    """Return seconds of each behavior and of the recording."""
    content = np.zeros(n_behaviors + 1)
    content[-1] = (recording.n_frames or 0) / (recording.rate or 1.0)
    for annotation in recording.annotations.values():
        codes = annotation.behavior
        np.add.at(content, codes[codes < n_behaviors], ((annotation.stop - annotation.start) / annotation.rate)[codes < n_behaviors])
    return content
