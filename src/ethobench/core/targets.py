"""Per-frame class labels of an annotation: what models are trained on and calibrated against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.core import intervals as iv
from ethobench.core.annotation import UNOBSERVED, Annotation


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
    return annotation.without_subjects().to_codes().astype(np.int16)


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
    merged = annotation.without_subjects()
    targets = merged.to_frames().astype(np.int16)
    for code, behavior in enumerate(merged.ethogram):
        targets[~iv.to_mask(merged.observed.of(behavior.name), merged.n_frames), code] = UNOBSERVED
    return targets
