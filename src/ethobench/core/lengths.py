"""Labels that are longer or shorter than what they are labels of."""

from __future__ import annotations

from ethobench.core.annotation import Annotation
from ethobench.core.errors import MismatchError

MOST_LONGER = 0.01  # a few frames are usual, more are another recording or another rate


def fit_length(annotation: Annotation, frames: int) -> tuple[Annotation, str]:
    """Cut labels that go on a little after the signals; where signals go on after the labels, they are unobserved.

    Parameters
    ----------
    annotation : Annotation
    frames : int
        Of the signals.

    Returns
    -------
    annotation : Annotation
        With so many frames.
    told : str
        What was done; empty if nothing.

    Raises
    ------
    MismatchError
        If the labels are more than 1 % (and a frame) longer.

    Examples
    --------
    >>> labels = Annotation.from_frames([0] * 1005, ["rest"], rate=10)
    >>> fit_length(labels, 1000)[1]
    'labels end 5 frames after the signals; cut'
    """
    longer = annotation.n_frames - frames
    if longer > max(1, MOST_LONGER * frames):
        both = f"labels for {annotation.n_frames} frames, but signals for {frames}"
        raise MismatchError(f"there are {both}: are they of another recording, or at another rate?")
    if longer > 0:
        return annotation.crop(0, frames), f"labels end {longer} frames after the signals; cut"
    if longer < 0:
        return annotation.extend(frames), f"labels end {-longer} frames before the signals; the rest is unobserved"
    return annotation, ""
