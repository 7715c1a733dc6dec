"""Per-frame class labels of an annotation: what models are trained on and calibrated against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import UNOBSERVED, Annotation
from ethobench.core.observed import Observed, Track


def merge_subjects(annotation: Annotation) -> Annotation:
    """Return an annotation without subjects in which a bout is observed although other subjects were not watched meanwhile.

    If only one of two animals was watched, the behavior of its bouts occurs, whatever the other one does. Frames without a bout show no
    behavior only where all animals were watched. Bouts that are not observed for their own subject, such as those of a behavior that is
    not in the list of labeled ones, remain unobserved.

    Examples
    --------
    >>> from ethobench.core.observed import Track
    >>> only_a = Observed(iv.empty(), {Track(subject="a"): iv.intervals([0], [6]), Track(subject="b"): iv.empty()})
    >>> labels = Annotation.from_bouts([2], [4], ["run"], ["run"], rate=10, n_frames=8, subject=["a"], subjects=["a", "b"], observed=only_a)
    >>> merge_subjects(labels).to_codes().tolist()
    [-1, -1, 0, 0, -1, -1, -1, -1]
    """
    merged = annotation.without_subjects()
    if not any(track.subject for track in merged.observed.tracks):
        return merged
    observed = annotation.observed
    tracks = {Track(name): observed.of(name) for name in annotation.ethogram.names}
    for behavior, subject, target in annotation.tracks():
        bouts = iv.union(annotation.spans(behavior, subject or "", target or ""))
        watched = iv.intersection(bouts, observed.of(behavior, subject, target))
        tracks[Track(behavior)] = iv.union_all([tracks[Track(behavior)], watched])
    return merged.with_observed(Observed(merged.observed.frames, tracks))


def exclusive_targets(annotation: Annotation) -> NDArray[np.int16]:
    """Return one class label per frame, for behaviors that exclude each other.

    Parameters
    ----------
    annotation : Annotation
        Bouts of all subjects are merged. No frame may have two behaviors.

    Returns
    -------
    array of int16 (n_frames,)
        The index of the behavior, ``len(ethogram)`` for none of them, -1 where unobserved.
    """
    return merge_subjects(annotation).to_codes().astype(np.int16)


def overlapping_targets(annotation: Annotation) -> NDArray[np.int16]:
    """Return a binary label per frame and behavior, for behaviors that may overlap.

    Parameters
    ----------
    annotation : Annotation
        Bouts of all subjects are merged.

    Returns
    -------
    array of int16 (n_frames, n_behaviors)
        1 where the behavior occurs, 0 where it does not, -1 where it is unobserved.
    """
    merged = merge_subjects(annotation)
    targets = merged.to_frames().astype(np.int16)
    for code, behavior in enumerate(merged.ethogram):
        targets[~iv.to_mask(merged.observed.of(behavior.name), merged.n_frames), code] = UNOBSERVED
    return targets
