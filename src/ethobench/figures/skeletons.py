"""The skeleton of an animal and the area that animals move in, estimated from their poses."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def arena(positions: Floats) -> tuple[float, float, float, float]:
    """Return the bounding box of nearly all positions: left, top, right, bottom.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2)

    Examples
    --------
    >>> arena(np.array([[[[0.0, 2.0], [np.nan, np.nan]]], [[[0.0, 2.0], [0.0, 2.0]]]]))
    (0.0, 2.0, 0.0, 2.0)
    """
    edges = []
    for axis in range(2):
        finite = positions[..., axis][np.isfinite(positions[..., axis])]
        edges.append(np.percentile(finite, [0.2, 99.8]) if finite.size else np.array([0.0, 1.0]))
    return float(edges[0][0]), float(edges[1][0]), float(edges[0][1]), float(edges[1][1])


def bones(positions: Floats) -> list[list[int]]:
    """Connect keypoints by the minimum spanning tree of their median distances, because files rarely contain a skeleton.

    Parameters
    ----------
    positions : array (n_frames, n_individuals, n_keypoints, 2)

    Returns
    -------
    list of [int, int]
        Pairs of keypoints; keypoints that never occur together are not connected.
    """
    count = positions.shape[2]
    distances = np.full((count, count), np.inf)
    for i, j in combinations(range(count), 2):
        distance = np.linalg.norm(positions[:, :, i] - positions[:, :, j], axis=2)
        finite = distance[np.isfinite(distance)]
        if finite.size:
            distances[i, j] = distances[j, i] = np.median(finite)
    connected, edges = {0} if count else set(), []
    while len(connected) < count:
        best = min((distances[i, j], i, j) for i in sorted(connected) for j in range(count) if j not in connected)
        if np.isfinite(best[0]):
            edges.append([best[1], best[2]])
        connected.add(best[2])
    return edges
