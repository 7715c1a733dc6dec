"""Frames counted for agreement: time is split wherever any annotator changes, and each piece counts with its number of frames.

A frame counts if both (pairs), all or several annotators observed it; with a tolerance, frames near any annotator's start or stop of the
behavior do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals
from ethobench.metrics.annotator_inputs import Recordings
from ethobench.metrics.base import Array


def pair_counts(
    groups: Recordings, recordings: Sequence[str], first: str, second: str, scored: Sequence[int], tolerance: float
) -> dict[int | None, Array] | None:
    """Count the frames of two annotators by recording; None if they share no recording.

    Returns
    -------
    dict
        Codes of behaviors to arrays (n_recordings, 4): both, second only, first only, neither. None, all behaviors together, to
        arrays (n_recordings, n, n) of frames by behavior, if behaviors exclude each other and there is no tolerance. Zeros where one of the
        annotators is missing.
    """
    both = {k: groups[name] for k, name in enumerate(recordings) if first in groups[name] and second in groups[name]}
    if not both:
        return None
    counts: dict[int | None, Array] = {}
    for code in scored:
        counts[code] = np.zeros((len(recordings), 4))
        for k, group in both.items():
            lengths, cells = _pair_cells(group[first], group[second], code, tolerance)
            counts[code][k] = (lengths[:, None] * cells).sum(axis=0)
    if tolerance == 0 and all(group[name].without_subjects().is_exclusive for group in both.values() for name in (first, second)):
        size = len(next(iter(both.values()))[first].ethogram) + 1
        counts[None] = np.zeros((len(recordings), size, size))
        for k, group in both.items():
            lengths, codes, observed = _codes([group[first], group[second]])
            shared = observed.all(axis=1)
            np.add.at(counts[None][k], (codes[shared, 0], codes[shared, 1]), lengths[shared])
    return counts


def _spans_and_observed(annotations: Sequence[Annotation], code: int, tolerance: float) -> tuple[list[Intervals], list[Intervals]]:
    """Return the frames with the behavior and the observed frames of each annotator, the latter without those near starts and stops."""
    name = annotations[0].ethogram[code].name
    spans = [_spans(a, code) for a in annotations]
    observed = [a.observed.of(name) for a in annotations]
    if tolerance > 0:
        width = round(tolerance * annotations[0].rate)
        boundaries = np.concatenate([np.concatenate((s.start, s.stop)) for s in spans])
        excluded = iv.union(iv.clip(iv.intervals(boundaries - width, boundaries + width), 0, annotations[0].n_frames))
        observed = [iv.difference(o, excluded) for o in observed]
    return spans, observed


def _spans(annotation: Annotation, code: int) -> Intervals:
    """Return the frames of a behavior; frames without any bout are background."""
    spans = iv.union(annotation.spans(code))
    if code == annotation.ethogram.background:
        covered = iv.union(Intervals(annotation.start, annotation.stop))
        spans = iv.union_all([spans, iv.complement(covered, annotation.n_frames)])
    return spans


def binary_cells(annotations: Sequence[Annotation], code: int, tolerance: float) -> tuple[Array, Array]:
    """Split time wherever any annotator changes; count the annotators with the behavior, and those who observed and lack it."""
    spans, observed = _spans_and_observed(annotations, code, tolerance)
    lengths, inside = _split(annotations[0].n_frames, [*spans, *observed])
    k = len(annotations)
    positive = (inside[:, :k] & inside[:, k:]).sum(axis=1)
    return lengths, np.stack([positive, inside[:, k:].sum(axis=1) - positive], axis=1).astype(float)


def _pair_cells(a: Annotation, b: Annotation, code: int, tolerance: float) -> tuple[Array, Array]:
    """Split time for two annotators; mark both, second only, first only, neither, in frames that both observed."""
    spans, observed = _spans_and_observed([a, b], code, tolerance)
    lengths, inside = _split(a.n_frames, [*spans, *observed])
    first, second, by_both = inside[:, 0], inside[:, 1], inside[:, 2] & inside[:, 3]
    kinds = [first & second, ~first & second, first & ~second, ~first & ~second]
    return lengths, np.stack([kind & by_both for kind in kinds], axis=1).astype(float)


def nominal_cells(annotations: Sequence[Annotation]) -> tuple[Array, Array]:
    """Split time wherever any annotator changes; count the annotators who chose each behavior, or none (last column)."""
    lengths, codes, observed = _codes(annotations)
    size = len(annotations[0].ethogram) + 1
    counts = np.zeros((len(lengths), size))
    for column in range(codes.shape[1]):
        np.add.at(counts, (np.flatnonzero(observed[:, column]), codes[observed[:, column], column]), 1)
    return lengths, counts


def _codes(annotations: Sequence[Annotation]) -> tuple[Array, Any, Any]:
    """Split time wherever any annotator changes; return the lengths, each annotator's code, and whether each observed."""
    ethogram = annotations[0].ethogram
    spans = [[_spans(a, code) for code in range(len(ethogram))] for a in annotations]
    observed = [a.observed.of_all(ethogram.names) for a in annotations]
    lengths, inside = _split(annotations[0].n_frames, [*chain.from_iterable(spans), *observed])
    k, size = len(annotations), len(ethogram)
    active = inside[:, : k * size].reshape(-1, k, size)
    codes = np.where(active.any(axis=2), active.argmax(axis=2), size)
    return lengths, codes, inside[:, k * size :]


def _split(n_frames: int, sets: Sequence[Intervals]) -> tuple[Array, Any]:
    """Split time at all starts and stops; return the lengths of the pieces, and which of the sets cover each."""
    bounds = iv.boundaries(np.array([0, n_frames]), *(b for s in sets for b in s))
    bounds = bounds[(bounds >= 0) & (bounds <= n_frames)]
    inside = np.stack([np.diff(iv.covered_before(s, bounds)) > 0 for s in sets], axis=1)
    return np.diff(bounds).astype(float), inside


def stack_cells(cells: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Concatenate the lengths and counts of several recordings."""
    if not cells:
        return np.zeros(0), np.zeros((0, 2))
    return np.concatenate([lengths for lengths, _ in cells]), np.concatenate([counts for _, counts in cells])


def recording_totals(groups: Sequence[Mapping[str, Annotation]], names: Sequence[str], code: int, *, durations: bool) -> Array:
    """Return bout counts or total durations (seconds) of recordings (rows) by annotator (columns), in frames that all observed."""
    rows = []
    for group in groups:
        row = []
        observed = iv.full(next(iter(group.values())).n_frames)
        for side in group.values():
            observed = iv.intersection(observed, side.observed.of(side.ethogram[code].name))
        for name in names:
            spans = iv.intersection(_spans(group[name], code), observed) if name in group else None
            value = np.nan if spans is None else iv.total(spans) / group[name].rate if durations else len(spans.start)
            row.append(value)
        rows.append(row)
    return np.array(rows, dtype=float).reshape(-1, len(names))
