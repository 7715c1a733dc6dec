"""Which frames to learn from, where all of them would be more of the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ethobench.core.annotation import UNOBSERVED

Targets = NDArray[np.int16]
Places = NDArray[np.int64]


def choose_rows(targets: Mapping[str, Targets], most: int) -> dict[str, Places]:
    """Choose at most so many known frames, evenly; of common behaviors fewer, so that rare ones stay.

    Parameters
    ----------
    targets : mapping of recording to array (n_frames,) or (n_frames, n_behaviors)
        Codes, or 0 and 1 for each behavior; -1 where nothing is known.
    most : int

    Returns
    -------
    dict of recording to array of int
        Frames in order.
    """
    kinds = {name: _kinds(own) for name, own in targets.items()}
    joined = np.concatenate(list(kinds.values()))
    share = _shares(np.bincount(joined[joined >= 0]), most)
    chosen = np.zeros(len(joined), dtype=bool)
    for kind, part in enumerate(share):
        places = np.flatnonzero(joined == kind)
        count = round(part * len(places))
        chosen[places[(np.arange(count) * (len(places) / max(count, 1))).astype(np.int64)]] = True
    result, first = {}, 0
    for name, own in kinds.items():
        result[name] = np.flatnonzero(chosen[first : first + len(own)])
        first += len(own)
    return result


def row_weights(target: NDArray[np.integer], counts: NDArray[np.integer], temper: float) -> NDArray[np.float64]:
    """Weigh rows so that a behavior counts by its share of all frames, to the power of ``1 - temper``.

    Parameters
    ----------
    target : array of int
        Codes of the rows chosen.
    counts : array of int
        How many frames there were of each code before any were left out.
    temper : float
        0: as frequent as they are; 1: all behaviors the same.
    """
    rows = np.bincount(target, minlength=len(counts))
    wanted = np.where(counts > 0, counts, 1.0) ** (1 - temper)
    weights = np.where(rows > 0, wanted / np.maximum(rows, 1), 0.0)[target]
    return np.asarray(weights * (len(target) / weights.sum()))


def _kinds(target: Targets) -> Places:
    """Return a number for what goes on in each frame, -1 where nothing is known."""
    if target.ndim == 1:
        return target.astype(np.int64)
    known = (target != UNOBSERVED).any(axis=1)
    going = (target == 1).any(axis=1)
    return np.where(known, going.astype(np.int64), UNOBSERVED)


def _shares(counts: NDArray[np.integer], most: int) -> NDArray[np.float64]:
    """Return the share of each kind that is kept: all of the rare ones, the same number of the common ones."""
    if counts.sum() <= most:
        return np.ones(len(counts))
    level, room = 0.0, float(most)
    for place, count in enumerate(np.sort(counts)):
        level = room / (len(counts) - place)
        if count > level:
            break
        room -= float(count)
    return np.asarray(np.minimum(1.0, level / np.maximum(counts, 1)))
