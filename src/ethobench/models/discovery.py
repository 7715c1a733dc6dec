"""Find segments that resemble each other: more examples of a marked bout, and clusters as candidates for behaviors.

The multiscale features of all frames are standardized and reduced to a few principal components. A segment is described by the mean and
the standard deviation of these components over its frames. Similar segments have a small Euclidean distance. Clusters are found with
k-means among segments of equal length; neighboring segments of one cluster are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.progress import report_progress

Array = NDArray[np.float64]
Embedding = NDArray[np.float32]
N_COMPONENTS = 24
SAMPLE_ROWS = 5000  # from which the principal components are computed
MAX_DEVIATION = 4.0  # standard deviations; features are clipped there, so that tracking errors do not dominate
MAX_MISSING = 0.5  # share of missing features above which a frame is not described
SPREAD_WEIGHT = 0.5  # of the standard deviations within a segment, relative to its means
OFFSETS_PER_LENGTH = 4  # candidate segments start at every quarter of their length
CLUSTER_SECONDS = 1.0
MAX_CLUSTERED = 20_000  # segments that k-means is fitted to; all others are assigned to the nearest center
N_EXAMPLES = 6
MAX_SECONDS = 2.5  # of the windows whose features describe segments


@dataclass(frozen=True)
class View:
    """A recording as a model sees it.

    Attributes
    ----------
    recording : Recording
    subject : str, optional
        The animal that is described; None for all animals together.
    example : Recording
        The recording, or the view of it with the subject first.
    """

    recording: Recording
    subject: str | None
    example: Recording


@dataclass(frozen=True)
class Segment:
    """Frames of a recording, and how much they resemble what was searched.

    Attributes
    ----------
    recording : str
    start, stop : int
        Half-open frames.
    subject : str, optional
    distance : float
        To the marked segment, or to the center of the cluster.
    similarity : float
        From 1 (equal) to 0; 0.5 for a distance that is typical of two random segments.
    """

    recording: str
    start: int
    stop: int
    subject: str | None = None
    distance: float = 0.0
    similarity: float = 1.0


@dataclass(frozen=True)
class Cluster:
    """Segments that resemble each other.

    Attributes
    ----------
    number : int
        From 0 for the largest.
    share : float
        Of the time of all recordings.
    n_recordings : int
        Recordings in which it occurs.
    examples : tuple of Segment
        The most typical ones, from different recordings where possible.
    segments : tuple of Segment
        All of them.
    """

    number: int
    share: float
    n_recordings: int
    examples: tuple[Segment, ...]
    segments: tuple[Segment, ...] = field(repr=False)


class SegmentIndex:
    """The principal components of all recordings, by which segments are compared.

    Parameters
    ----------
    views : sequence of View
    components : sequence of array (n_rows, n_components)
        NaN in rows that are not described, because most of their features are missing.
    steps : sequence of int
        Frames from one row to the next.
    """

    def __init__(self, views: Sequence[View], components: Sequence[Embedding], steps: Sequence[int]) -> None:
        self.views, self.components, self.steps = list(views), list(components), list(steps)
        self._number = {(view.recording.id, view.subject): number for number, view in enumerate(self.views)}
        self._sums = [_cumulative(each) for each in self.components]
        self._typical: dict[int, float] = {}

    @classmethod
    def build(
        cls,
        views: Sequence[View],
        features: Sequence[NDArray[np.float32]],
        steps: Sequence[int],
        *,
        columns: NDArray[np.bool_] | None = None,
        seed: int = 0,
    ) -> SegmentIndex:
        """Compute the principal components of features.

        Parameters
        ----------
        views : sequence of View
        features : sequence of array (n_rows, n_features)
            One per view.
        steps : sequence of int
            Frames from one row to the next.
        columns : array of bool (n_features,), optional
            The features that are compared; see `short_features`. Default: all.
        seed : int
            Random seed.
        """
        from sklearn.decomposition import PCA

        share = min(1.0, SAMPLE_ROWS / max(sum(map(len, features)), 1))
        sample = np.concatenate([_spread(each, share) for each in features]).astype(np.float64)
        sample = sample[np.isnan(sample).mean(axis=1) <= MAX_MISSING]
        if len(sample) < 2:
            raise EthobenchError("segments cannot be compared: the recordings have almost no tracked frames")
        usable = np.isfinite(sample).mean(axis=0) > 1 - MAX_MISSING
        if columns is not None:
            usable &= columns
        sample = sample[:, usable]
        mean, std = np.nanmean(sample, axis=0), np.nanstd(sample, axis=0)
        std[std < 1e-9] = np.inf  # constant features have no weight
        scaled = np.nan_to_num(np.clip((sample - mean) / std, -MAX_DEVIATION, MAX_DEVIATION))
        n_components = min(N_COMPONENTS, *scaled.shape)
        reduction = PCA(n_components, svd_solver="randomized", random_state=seed).fit(scaled)
        weights = reduction.components_.T / np.sqrt(np.maximum(reduction.explained_variance_, 1e-12)) ** 0.5
        weights, mean32, std32 = weights.astype(np.float32), mean.astype(np.float32), std.astype(np.float32)
        components = []
        for number, each in enumerate(features):
            report_progress("components", number / len(features))
            components.append(_project(each, usable, mean32, std32, weights))
        return cls(views, components, steps)

    def describe(self, recording: str, start: int, stop: int, subject: str | None = None) -> Array | None:
        """Return the description of a segment (2 * n_components,); None if it cannot be described."""
        number = self._number.get((recording, subject), self._number.get((recording, None)))
        if number is None:
            return None
        first, last = self._rows(number, start, stop)
        described = self._describe(number, np.array([first]), last - first)
        return None if np.isnan(described[0, 0]) else np.asarray(described[0])

    def nearest(self, recording: str, start: int, stop: int, n: int, *, subject: str | None = None) -> list[Segment]:
        """Return the segments of the same length that are nearest to a marked one; see `Teacher.find_similar`."""
        number = self._number.get((recording, subject))
        if number is None:
            if subject:
                raise NotFoundError(f"recording {recording!r} has no poses or signals of {subject!r} to compare")
            raise NotFoundError(f"recording {recording!r} has no poses or signals to compare")
        n_frames = self._n_frames(number)
        if not 0 <= start < stop <= n_frames:
            raise MismatchError(f"a segment must have 0 <= start < stop <= {n_frames}, got {start} to {stop}")
        query = self.describe(recording, start, stop, subject)
        if query is None:
            raise EthobenchError("this segment cannot be compared: its poses or signals are missing")
        seconds = (stop - start) / _rate(self.views[number].recording)
        rows: list[tuple[float, int, int, int]] = []
        for other, view in enumerate(self.views):
            length = max(1, round(seconds * _rate(view.recording) / self.steps[other]))
            offsets = np.arange(0, max(len(self.components[other]) - length, 0) + 1, max(1, length // OFFSETS_PER_LENGTH))
            distance = np.linalg.norm(self._describe(other, offsets, length) - query, axis=1)
            candidates = np.flatnonzero(np.isfinite(distance))
            best = candidates[np.argsort(distance[candidates], kind="stable")[: 4 * OFFSETS_PER_LENGTH * (n + 1)]]
            rows += [(float(distance[i]), other, int(offsets[i]), int(offsets[i]) + length) for i in best]
        used_spans: dict[int, list[tuple[int, int]]] = {number: [self._rows(number, start, stop)]}
        results: list[Segment] = []
        for distance_, other, first, last in sorted(rows):
            if len(results) == n:
                break
            spans = used_spans.setdefault(other, [])
            if all(last <= a or first >= b for a, b in spans):
                spans.append((first, last))
                results.append(self._segment(other, first, last, distance_, last - first))
        return results

    def cluster(self, n: int, *, seconds: float = CLUSTER_SECONDS, seed: int = 0) -> list[Cluster]:
        """Group segments of equal length into clusters with k-means; see `Teacher.clusters`."""
        from sklearn.cluster import KMeans

        owner, first, described = self._equal_segments(seconds)
        if n < 2 or len(owner) < n:
            raise EthobenchError(f"the number of clusters must be between 2 and {max(len(owner), 2)}, the number of segments, got {n}")
        sample = described[:: max(1, -(-len(described) // MAX_CLUSTERED))]
        report_progress("clusters", 0.5)
        kmeans = KMeans(n, n_init=3, random_state=seed).fit(sample)
        distances = kmeans.transform(described)
        assigned, distance = distances.argmin(axis=1), distances.min(axis=1)
        order = np.argsort(-np.bincount(assigned, minlength=n), kind="stable")
        return [self._cluster(number, code, assigned, distance, owner, first, seconds) for number, code in enumerate(order)]

    def typical_distance(self, length: int) -> float:
        """Return the median distance of random segments with this many rows."""
        if length not in self._typical:
            random = np.random.default_rng(0)
            numbers = random.integers(len(self.views), size=400)
            offsets = [random.integers(max(len(self.components[number]) - length, 0) + 1) for number in numbers]
            described = np.concatenate(
                [self._describe(number, np.array([offset]), length) for number, offset in zip(numbers, offsets, strict=True)]
            )
            described = described[np.isfinite(described).all(axis=1)]
            half = len(described) // 2
            distances = np.linalg.norm(described[:half] - described[half : 2 * half], axis=1)
            self._typical[length] = float(np.median(distances)) if half else 1.0
        return max(self._typical[length], 1e-9)

    def _equal_segments(self, seconds: float) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Return the view, the first row and the description of consecutive segments of all recordings."""
        owners, firsts, descriptions = [], [], []
        for number, view in enumerate(self.views):
            length = max(1, round(seconds * _rate(view.recording) / self.steps[number]))
            offsets = np.arange(0, len(self.components[number]) - length + 1, length)
            described = self._describe(number, offsets, length)
            usable = np.isfinite(described).all(axis=1)
            owners.append(np.full(int(usable.sum()), number))
            firsts.append(offsets[usable])
            descriptions.append(described[usable])
        return np.concatenate(owners), np.concatenate(firsts), np.concatenate(descriptions)

    def _cluster(
        self,
        number: int,
        code: int,
        assigned: NDArray[np.int64],
        distance: Array,
        owner: NDArray[np.int64],
        first: NDArray[np.int64],
        seconds: float,
    ) -> Cluster:
        """Join neighboring segments of one cluster, and choose examples."""
        members = np.flatnonzero(assigned == code)
        segments: list[Segment] = []
        for view_number in np.unique(owner[members]):
            chosen = members[owner[members] == view_number]
            length = max(1, round(seconds * _rate(self.views[view_number].recording) / self.steps[view_number]))
            spans = iv.union(iv.Intervals(first[chosen], first[chosen] + length))
            index = np.searchsorted(spans.start, first[chosen], side="right") - 1
            mean = np.bincount(index, distance[chosen]) / np.bincount(index)
            segments += [
                self._segment(int(view_number), int(a), int(b), float(d), length)
                for a, b, d in zip(spans.start, spans.stop, mean, strict=True)
            ]
        return Cluster(
            number,
            len(members) / max(len(assigned), 1),
            len({segment.recording for segment in segments}),
            tuple(choose_examples(segments, N_EXAMPLES)),
            tuple(segments),
        )

    def _describe(self, number: int, offsets: NDArray[np.integer], length: int) -> Array:
        """Return the description of segments that start at rows `offsets` (n_segments, 2 * n_components)."""
        count, total, squares = self._sums[number]
        last = np.minimum(offsets + length, len(count) - 1)
        described = count[last] - count[offsets]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (total[last] - total[offsets]) / described[:, None]
            variance = (squares[last] - squares[offsets]) / described[:, None] - mean**2
        result = np.concatenate([mean, SPREAD_WEIGHT * np.sqrt(np.maximum(variance, 0.0))], axis=1)
        result[described < (1 - MAX_MISSING) * np.maximum(last - offsets, 1)] = np.nan
        return np.asarray(result)

    def _rows(self, number: int, start: int, stop: int) -> tuple[int, int]:
        """Return the rows of frames, at least one."""
        step, n_rows = self.steps[number], len(self.components[number])
        first = min(start // step, max(n_rows - 1, 0))
        return first, max(first + 1, min(-(-stop // step), n_rows))

    def _segment(self, number: int, first: int, last: int, distance: float, length: int) -> Segment:
        view, step = self.views[number], self.steps[number]
        similarity = 0.5 ** (distance / self.typical_distance(length))
        return Segment(view.recording.id, first * step, min(last * step, self._n_frames(number)), view.subject, distance, similarity)

    def _n_frames(self, number: int) -> int:
        data = self.views[number].recording.signals
        return 0 if data is None else len(data)


def short_features(names: Sequence[str], max_seconds: float = MAX_SECONDS) -> NDArray[np.bool_]:
    """Return which features describe at most this many seconds around a frame.

    Features of longer windows say more about what happens before and after a segment than about the segment.

    Examples
    --------
    >>> short_features(["speed", "speed/mean/0.5s", "speed/mean/32s"]).tolist()
    [True, True, False]
    """
    ends = (name.rpartition("/")[2] for name in names)
    return np.array([not re.fullmatch(r"[\d.e+]+s", end) or float(end[:-1]) <= max_seconds for end in ends], dtype=bool)


def choose_examples(segments: Iterable[Segment], n: int) -> list[Segment]:
    """Return the most typical segments, at most one per recording while there are other recordings."""
    remaining = sorted(segments, key=lambda segment: segment.distance)
    chosen: list[Segment] = []
    while remaining and len(chosen) < n:
        recordings: set[str] = set()
        later = []
        for segment in remaining:
            if segment.recording not in recordings and len(chosen) < n:
                recordings.add(segment.recording)
                chosen.append(segment)
            else:
                later.append(segment)
        remaining = later
    return chosen


def _rate(recording: Recording) -> float:
    return float(recording.rate or 1.0)


def _spread(features: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Return evenly spaced rows."""
    count = max(1, round(share * len(features))) if len(features) else 0
    return np.asarray(features[(np.arange(count) * (len(features) / max(count, 1))).astype(np.int64)])


def _project(
    features: NDArray[np.float32], usable: NDArray[np.bool_], mean: Embedding, std: Embedding, weights: Embedding, block: int = 4096
) -> Embedding:
    """Return the principal components of all rows; NaN where most features are missing."""
    result = np.empty((len(features), weights.shape[1]), dtype=np.float32)
    for start in range(0, len(features), block):
        values = np.asarray(features[start : start + block])[:, usable]
        missing = np.isnan(values)
        scaled = np.clip((values - mean) / std, -MAX_DEVIATION, MAX_DEVIATION)
        scaled[missing] = 0.0
        projected = scaled @ weights
        projected[missing.mean(axis=1) > MAX_MISSING] = np.nan
        result[start : start + block] = projected
    return result


def _cumulative(components: Embedding) -> tuple[Array, Array, Array]:
    """Return cumulative counts of described rows (n_rows + 1,), and sums and sums of squares (n_rows + 1, n_components)."""
    described = ~np.isnan(components[:, 0]) if components.shape[1] else np.zeros(len(components), dtype=bool)
    values = np.where(described[:, None], components, 0.0).astype(np.float64)
    zero = np.zeros((1, values.shape[1]))
    count = np.concatenate([[0.0], np.cumsum(described, dtype=np.float64)])
    return count, np.concatenate([zero, np.cumsum(values, axis=0)]), np.concatenate([zero, np.cumsum(values**2, axis=0)])
