"""Long videos in windows that overlap, and what the answers say together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import IntArray


def windows(duration: float, length: float = 0.0, overlap: float = 0.0) -> list[tuple[float, float]]:
    """Divide a video into windows of one length that share `overlap` seconds; the last ones share more where it must fit.

    A length of 0 means one window.

    >>> windows(100, 40, 10), windows(75, 40, 10)
    ([(0.0, 40.0), (30.0, 70.0), (60.0, 100.0)], [(0.0, 40.0), (30.0, 70.0), (35.0, 75.0)])
    """
    if length < 0 or overlap < 0 or (length and overlap >= length):
        raise EthobenchError(f"windows need a length above their overlap, not {length:g} s and {overlap:g} s")
    if not length or length >= duration:
        return [(0.0, float(duration))]
    count = int(np.ceil((duration - length) / (length - overlap) - 1e-9)) + 1
    starts = [min(k * (length - overlap), duration - length) for k in range(count)]
    return [(float(start), float(start + length)) for start in starts]


def merge_windows(
    parts: Sequence[tuple[tuple[float, float], Annotation | None]], ethogram: Ethogram, rate: float, n_frames: int
) -> Annotation:
    """Bring the annotations of windows together.

    Where two windows overlap, each speaks for its own half; if one of them has no annotation, the other speaks for all of
    it. A behavior that goes on at both sides of the seam is one bout. What no window speaks for was not observed.

    Parameters
    ----------
    parts : sequence of (window, annotation)
        In order of time; annotations count frames from their window's start, None where there is none.
    ethogram : Ethogram
    rate : float
    n_frames : int
        Of the whole recording.
    """
    spans = [[min(n_frames, int(edge * rate + 0.5)) for edge in window] for window, _ in parts]
    there = [(span, annotation) for span, (_, annotation) in zip(spans, parts, strict=True) if annotation is not None]
    start, stop, behavior = [_NONE], [_NONE], [_NONE]
    seen, seams = [iv.empty()], []
    for k, ((first, last), own) in enumerate(there):
        begin, end = first, min(last, first + own.n_frames)
        if k and there[k - 1][0][1] >= first:
            begin = (first + there[k - 1][0][1]) // 2
            seams.append(begin)
        if k + 1 < len(there) and there[k + 1][0][0] <= last:
            end = min(end, (there[k + 1][0][0] + last) // 2)
        part = own.crop(begin - first, max(begin, end) - first)
        start.append(part.start + begin)
        stop.append(part.stop + begin)
        behavior.append(part.behavior)
        seen.append(iv.shift(part.observed.of_any(), begin))
    columns = _join_at(seams, *(np.concatenate(column) for column in (start, stop, behavior)))
    return Annotation.from_bouts(*columns, ethogram, rate, n_frames, observed=Observed(iv.union_all(seen)))


_NONE = np.zeros(0, dtype=np.int64)


def _join_at(seams: Sequence[int], start: IntArray, stop: IntArray, behavior: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Join bouts of one behavior of which one ends at a seam and another begins there."""
    kept = np.ones(len(start), dtype=bool)
    for seam in seams:
        for late in np.flatnonzero(kept & (start == seam) & (stop > start)):
            early = np.flatnonzero(kept & (stop == seam) & (start < seam) & (behavior == behavior[late]))
            if early.size:
                stop[early[0]] = stop[late]
                kept[late] = False
    return start[kept], stop[kept], behavior[kept]
