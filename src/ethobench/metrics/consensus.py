"""What most annotators say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ethobench.core import Annotation, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError


def consensus(annotations: Mapping[str, Annotation]) -> Annotation:
    """Return the frames in which more than half of the annotators that looked see a behaviour.

    Frames at which only one annotator looked follow that one; frames at which nobody looked are unobserved. Subjects are
    not told apart. With two annotators a behaviour counts where both see it.

    Examples
    --------
    >>> a, b, c = (Annotation.from_frames(f, ["rest", "run"], 10) for f in ([0, 0, 1], [0, 1, 1], [1, 1, 1]))
    >>> consensus({"a": a, "b": b, "c": c}).to_codes().tolist()
    [0, 1, 1]
    """
    sides = list(annotations.values())
    if not sides:
        raise EthobenchError("a consensus needs at least one annotator")
    first = sides[0]
    for name, side in annotations.items():
        if (side.rate, side.n_frames) != (first.rate, first.n_frames):
            raise MismatchError(f"annotator {name!r} has {side!r}, others {first!r}")
    ethogram = first.ethogram
    for side in sides[1:]:
        ethogram = ethogram.join(side.ethogram)
    looked = np.zeros((first.n_frames, len(ethogram)), dtype=np.int32)
    seen = np.zeros_like(looked)
    for side in sides:
        frames = side.with_ethogram(ethogram).to_frames()
        for code, behavior in enumerate(ethogram):
            there = iv.to_mask(side.observed.of(behavior.name), first.n_frames)
            looked[:, code] += there
            seen[:, code] += frames[:, code] & there
    on = 2 * seen > looked
    if ethogram.background is not None:
        others = np.delete(on, ethogram.background, axis=1).any(axis=1)
        on[:, ethogram.background] = ~others & looked.any(axis=1)
    joint = Observed(iv.from_mask(looked.all(axis=1)))
    return Annotation.from_frames(on, ethogram, first.rate).with_observed(joint)
