"""Similar segments and clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.models.discovery import Segment, SegmentIndex, View, choose_examples

RATE, STEP = 10, 2


def _index(n_recordings: int = 3, seed: int = 0) -> tuple[SegmentIndex, dict[str, np.ndarray]]:
    """Recordings whose features have one of three levels for 4 s at a time."""
    random = np.random.default_rng(seed)
    views, features, codes = [], [], {}
    for number in range(n_recordings):
        name = f"r{number}"
        codes[name] = random.permutation(np.arange(15) % 3).repeat(4 * RATE)
        recording = Recording(name, rate=RATE, signals=Signals(codes[name][:, None].astype(float), ("x",), RATE))
        centers = np.array([[0, 0, 0, 0], [5, 0, 5, 0], [0, 5, 0, -5]])
        features.append((centers[codes[name][::STEP]] + random.normal(0, 0.3, (len(codes[name]) // STEP, 4))).astype(np.float32))
        views.append(View(recording, None, recording))
    return SegmentIndex.build(views, features, [STEP] * n_recordings), codes


def test_nearest_segments_have_the_same_level_and_do_not_overlap():
    index, codes = _index()
    start = int(np.flatnonzero(np.diff(codes["r0"], prepend=-1) != 0)[3])
    segments = index.nearest("r0", start, start + 20, 10)
    assert len(segments) == 10
    assert all((codes[s.recording][s.start : s.stop] == codes["r0"][start]).mean() > 0.7 for s in segments)
    assert [s.distance for s in segments] == sorted(s.distance for s in segments)
    spans = [("r0", start, start + 20), *((s.recording, s.start, s.stop) for s in segments)]
    assert not any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for i, a in enumerate(spans) for b in spans[:i])
    assert all(0 < s.similarity <= 1 and s.stop - s.start == 20 for s in segments)


def test_a_description_is_the_mean_and_spread_of_the_components():
    index, _ = _index()
    described = index.describe("r1", 40, 60)
    rows = index.components[1][20:30].astype(np.float64)
    np.testing.assert_allclose(described, [*rows.mean(axis=0), *(0.5 * rows.std(axis=0))], atol=1e-5)
    assert index.describe("nobody", 0, 10) is None


def test_clusters_are_the_levels():
    index, codes = _index()
    clusters = index.cluster(3)
    assert sum(c.share for c in clusters) == pytest.approx(1)
    for cluster in clusters:
        labels = np.concatenate([codes[s.recording][s.start : s.stop] for s in cluster.segments])
        assert np.bincount(labels).max() / len(labels) > 0.9
        assert cluster.n_recordings == 3
        assert len({s.recording for s in cluster.examples[:3]}) == 3


def test_frames_without_features_are_not_described():
    random = np.random.default_rng(0)
    values = random.normal(0, 1, (100, 4)).astype(np.float32)
    values[20:60] = np.nan
    recording = Recording("a", rate=RATE, signals=Signals(np.zeros((100, 1)), ("x",), RATE))
    index = SegmentIndex.build([View(recording, None, recording)], [values], [1])
    assert index.describe("a", 25, 50) is None
    assert all(s.stop <= 25 or s.start >= 55 for s in index.nearest("a", 0, 10, 20))
    with pytest.raises(EthobenchError, match="its poses or signals are missing"):
        index.nearest("a", 25, 50, 3)
    with pytest.raises(EthobenchError, match="almost no tracked frames"):
        SegmentIndex.build([View(recording, None, recording)], [np.full((100, 4), np.nan, np.float32)], [1])


def test_bad_segments_are_refused():
    index, _ = _index()
    with pytest.raises(MismatchError, match="0 <= start < stop <= 600"):
        index.nearest("r0", 10, 601, 3)
    with pytest.raises(NotFoundError, match="has no poses or signals of 'x'"):
        index.nearest("r0", 0, 10, 3, subject="x")
    with pytest.raises(EthobenchError, match="number of clusters"):
        index.cluster(10_000)


def test_constant_features_have_no_weight():
    recording = Recording("a", rate=RATE, signals=Signals(np.zeros((50, 1)), ("x",), RATE))
    values = np.column_stack([np.full(50, 7.0), np.arange(50.0)]).astype(np.float32)
    index = SegmentIndex.build([View(recording, None, recording)], [values], [1])
    assert np.isfinite(index.components[0]).all()


def test_examples_are_from_different_recordings_first():
    segments = [Segment("a", i, i + 1, distance=i) for i in range(4)] + [Segment("b", 0, 1, distance=9)]
    assert [(s.recording, s.start) for s in choose_examples(segments, 3)] == [("a", 0), ("b", 0), ("a", 1)]
