"""Annotations of long recordings, made a piece at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ethobench.core import Annotation


def seamless(parts: Sequence[Annotation]) -> Annotation:
    """Put the pieces of an annotation together again: a bout that was cut between two of them is one."""
    whole = parts[0].concatenate(*parts[1:])
    columns = (whole.behavior, whole.subject, whole.target)
    stop, kept = whole.stop.copy(), np.ones(len(whole), dtype=bool)
    for seam in np.cumsum([part.n_frames for part in parts[:-1]]):
        before = {tuple(int(column[i]) for column in columns): i for i in np.flatnonzero((stop == seam) & kept)}
        for j in np.flatnonzero(whole.start == seam):
            i = before.get(tuple(int(column[j]) for column in columns))
            if i is not None:
                stop[i], kept[j] = stop[j], False
    joined = dataclasses.replace(whole, stop=stop).take(kept)
    return dataclasses.replace(joined, order=np.arange(len(joined)))
