"""Windows of long videos: splitting a video, and merging the annotations of its windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import ParameterError
from ethobench.core.intervals import IntArray

_EMPTY = np.zeros(0, dtype=np.int64)


def split_into_windows(duration: float, length: float = 0.0, overlap: float = 0.0) -> list[tuple[float, float]]:
    """Split a video into windows of equal length.

    Parameters
    ----------
    duration : float
        Duration of the video in seconds.
    length : float
        Length of a window in seconds; 0 for a single window.
    overlap : float
        Overlap of neighboring windows in seconds. The last two windows overlap more if needed, so that all have the same length.

    Examples
    --------
    >>> split_into_windows(100, 40, 10), split_into_windows(75, 40, 10)
    ([(0.0, 40.0), (30.0, 70.0), (60.0, 100.0)], [(0.0, 40.0), (30.0, 70.0), (35.0, 75.0)])
    """
    if length < 0 or overlap < 0 or (length and overlap >= length):
        raise ParameterError(f"`window` must be > `overlap` and both >= 0, got {length:g} s and {overlap:g} s")
    if not length or length >= duration:
        return [(0.0, float(duration))]
    count = int(np.ceil((duration - length) / (length - overlap) - 1e-9)) + 1
    starts = [min(k * (length - overlap), duration - length) for k in range(count)]
    return [(float(start), float(start + length)) for start in starts]


def merge_windows(
    windows: Sequence[tuple[tuple[float, float], Annotation | None]], ethogram: Ethogram, rate: float, n_frames: int
) -> Annotation:
    """Merge the annotations of windows.

    Where two windows overlap, each is used for its half of the overlap; if one has no annotation, the other is used for all of it. Bouts of
    one behavior on both sides of the cut are joined. Frames without an annotated window are unobserved.

    Parameters
    ----------
    windows : sequence of ((start, stop), annotation)
        Times in seconds, in order. The annotation starts at the window's start; None for a window without one.
    ethogram : Ethogram
    rate : float
    n_frames : int
        Length of the recording.
    """
    spans = [[min(n_frames, int(edge * rate + 0.5)) for edge in window] for window, _ in windows]
    annotated = [(span, annotation) for span, (_, annotation) in zip(spans, windows, strict=True) if annotation is not None]
    start, stop, behavior = [_EMPTY], [_EMPTY], [_EMPTY]
    observed, cuts = [iv.empty()], []
    for k, ((first, last), annotation) in enumerate(annotated):
        begin, end = first, min(last, first + annotation.n_frames)
        if k and annotated[k - 1][0][1] >= first:
            begin = (first + annotated[k - 1][0][1]) // 2
            cuts.append(begin)
        if k + 1 < len(annotated) and annotated[k + 1][0][0] <= last:
            end = min(end, (annotated[k + 1][0][0] + last) // 2)
        section = annotation.crop(begin - first, max(begin, end) - first)
        start.append(section.start + begin)
        stop.append(section.stop + begin)
        behavior.append(section.behavior)
        observed.append(iv.shift(section.observed.of_any(), begin))
    columns = _join_at_cuts(cuts, *(np.concatenate(column) for column in (start, stop, behavior)))
    return Annotation.from_bouts(*columns, ethogram, rate, n_frames, observed=Observed(iv.union_all(observed)))


def _join_at_cuts(cuts: Sequence[int], start: IntArray, stop: IntArray, behavior: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Join a bout that ends at a cut and one of the same behavior that starts there."""
    remaining = np.ones(len(start), dtype=bool)
    for cut in cuts:
        for late in np.flatnonzero(remaining & (start == cut) & (stop > start)):
            early = np.flatnonzero(remaining & (stop == cut) & (start < cut) & (behavior == behavior[late]))
            if early.size:
                stop[early[0]] = stop[late]
                remaining[late] = False
    return start[remaining], stop[remaining], behavior[remaining]
