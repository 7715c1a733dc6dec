"""Tiles against counts of frames."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram, Prediction
from ethobench.app.tiles import BINS, BLOCK_FRAMES, MAX_BOUTS, ProbabilityTiles, Summary, TraceTiles, TrackTiles, share_tile, tile_edges
from ethobench.core import intervals as iv
from ethobench.core.errors import NotFoundError
from tests.hypothesis_limits import at_most

NAMES = ("rest", "run")


def decoded(text: str, columns: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(BINS, columns)


def busy(n: int, seed: int = 0) -> Annotation:
    """Change behavior in nearly every frame; some frames are unobserved."""
    codes = np.random.default_rng(seed).integers(-1, 3, n)
    return Annotation.from_frames(codes, NAMES, 10, unobserved=-1)


def test_edges_end_with_the_recording():
    edges = tile_edges(2, 1, 3000)
    assert edges[0] == 2048
    assert edges[1] == 2052
    assert edges[-1] == 3000
    assert len(edges) == BINS + 1


@pytest.mark.parametrize(("level", "index"), [(0, 6), (-1, 0), (60, 0), (3, 1), (0, 10**12)])
def test_tiles_outside_the_recording_are_refused(level, index):
    with pytest.raises(NotFoundError, match="no tile"):
        tile_edges(level, index, 3000)


@pytest.mark.parametrize("level", [0, 1, 3])
def test_shares_are_shares_of_frames(level, monkeypatch):
    monkeypatch.setattr("ethobench.app.tiles.MAX_BOUTS", 100)
    n = 5000
    annotation = busy(n)
    edges = tile_edges(level, 0, n)
    shares = decoded(TrackTiles(annotation).tile(edges)["shares"], 3)
    codes = annotation.to_codes()
    for i in range(0, BINS, 37):
        bin_codes = codes[edges[i] : edges[i + 1]]
        expected = [np.ceil((bin_codes == value).mean() * 254) if len(bin_codes) else 0 for value in (0, 1, -1)]
        assert shares[i].tolist() == expected


def test_a_single_frame_is_visible_among_a_million():
    n = 1_000_000
    noise = busy(20_000).extend(n).with_observed(iv.full(n))
    rare = Annotation.from_bouts([777_777], [777_778], ["run"], NAMES, 10, n, observed=noise.observed)
    level = 11
    shares = decoded(TrackTiles(noise.overlay(rare)).tile(tile_edges(level, 0, n))["shares"], 3)
    assert shares[777_777 >> level, 1] == 1


@example(spans=[(724, 300), (725, 0)], index=2)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 300)), max_size=30), st.integers(0, 3))
def test_few_bouts_are_sent_without_aggregation(spans, index):
    """Those that reach into the tile, long or nested ones included, and no others."""
    n = 2500
    start = [s for s, _ in spans]
    stop = [s + length for s, length in spans]
    ethogram = Ethogram(["rest", Behavior("bite", point=True)])
    codes = [1 if length == 0 else 0 for _, length in spans]
    annotation = Annotation.from_bouts(start, stop, codes, ethogram, 10, n)
    edges = tile_edges(0, index, n)
    first, last = int(edges[0]), int(edges[-1])
    rows = sorted(tuple(row[1:4]) for row in TrackTiles(annotation).tile(edges)["bouts"])
    expected = sorted(
        (s, e, c)
        for s, e, c in zip(start, stop, codes, strict=True)
        if (s < last and e > first) or (s == e and first <= s <= last) or (s == last and s < e)
    )
    inside = [row for row in expected if row[0] < last]
    assert {*inside} <= {*rows} <= {*expected}
    for bout, s, e, c, _ in TrackTiles(annotation).tile(edges)["bouts"]:
        assert (annotation.start[bout], annotation.stop[bout], annotation.behavior[bout]) == (s, e, c)


def test_unobserved_frames_are_hidden():
    annotation = Annotation.from_bouts([10], [20], ["run"], NAMES, 10, 100, observed=iv.intervals([5], [60]))
    tile = TrackTiles(annotation).tile(tile_edges(0, 0, 100))
    assert tile == {"bouts": [[0, 10, 20, 1, -1]], "hidden": [[0, 5], [60, 100]]}


def test_subjects_have_separate_tiles():
    annotation = Annotation.from_bouts([0, 5, 9], [5, 9, 12], ["run"] * 3, NAMES, 10, 20, subject=["a", "b", None])
    edges = tile_edges(0, 0, 20)
    starts = {subject: [row[1] for row in TrackTiles(annotation, subject).tile(edges)["bouts"]] for subject in ("a", "b", "", None, "c")}
    assert starts == {"a": [0], "b": [5], "": [9], None: [0, 5, 9], "c": []}
    assert TrackTiles(annotation, "b").tile(edges)["bouts"][0][0] == 1


def test_points_survive_summaries():
    ethogram = Ethogram([Behavior("bite", point=True), "rest"])
    n = 100_000
    start = np.arange(0, n, 100)
    crowd = Annotation.from_bouts(start, start, np.zeros(len(start), int), ethogram, 10, n)
    tile = TrackTiles(crowd).tile(tile_edges(8, 0, n))
    assert len(crowd) > MAX_BOUTS
    assert [stretch for stretch, _ in tile["points"]] == sorted({int(s) >> 8 for s in start})


@at_most(40)
@given(st.integers(1, 1500), st.integers(0, 10), st.integers(0, 2**32 - 1))
def test_summaries_are_minimum_maximum_and_mean(n, level, seed):
    values = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    values[np.random.default_rng(seed + 1).random((n, 2)) < 0.3] = np.nan
    edges = tile_edges(level, 0, n)
    bins = Summary(values).between(edges)
    for i in range(BINS):
        for channel in range(2):
            bin_values = values[edges[i] : edges[i + 1], channel]
            bin_values = bin_values[~np.isnan(bin_values)]
            if not len(bin_values):
                assert np.isnan([bins.low[i, channel], bins.high[i, channel], bins.mean[i, channel]]).all()
                continue
            assert (bins.low[i, channel], bins.high[i, channel]) == (bin_values.min(), bin_values.max())
            # a mean of blocks' means weighs blocks with gaps a little differently
            tolerance = 1e-5 if 1 << level <= BLOCK_FRAMES else np.ptp(bin_values) + 1e-5
            assert abs(bins.mean[i, channel] - bin_values.mean()) <= tolerance


def test_summaries_take_chunks_one_by_one(monkeypatch):
    monkeypatch.setattr("ethobench.app.tiles.CHUNK_ROWS", 256)
    values = np.arange(2000, dtype=np.float32)[:, None]
    bins = Summary(values).between(tile_edges(7, 0, 2000))
    assert bins.low[:16, 0].tolist() == [128.0 * i for i in range(16)]
    assert bins.high[15, 0] == 1999


def test_probabilities_are_averaged():
    probabilities = np.zeros((4000, 2))
    probabilities[:, 0] = np.arange(4000) / 4000
    probabilities[:, 1] = 1 - probabilities[:, 0]
    probabilities[100:110] = np.nan
    tiles = ProbabilityTiles(Prediction(probabilities, Ethogram(["run", "rest"]), 10), ("rest", "run", "fly"))
    shares = decoded(tiles.tile(tile_edges(1, 0, 4000))["shares"], 3)
    assert shares[0].tolist() == [254, 0, 0]
    assert shares[52].tolist() == [255] * 3
    assert shares[511].tolist() == [round((1 - 1022.5 / 4000) * 254), round(1022.5 / 4000 * 254), 0]


def test_traces_are_scaled_to_their_range_and_end_where_they_end():
    values = np.stack((np.linspace(-1, 1, 300), np.full(300, 5.0)), axis=1)
    tile = TraceTiles(Summary(values), [0, 1], -1, 1).tile(tile_edges(0, 0, 400))
    low = decoded(tile["low"], 2)
    assert (low[0, 0], low[299, 0], low[300, 0]) == (0, 254, 255)
    assert (low[:300, 1] == 254).all()


def test_shares_of_disagreement():
    spans = iv.intervals([0, 1000], [1, 1004])
    shares = decoded(share_tile(spans, tile_edges(2, 0, 4000))["shares"], 1)[:, 0]
    assert shares[0] == 64
    assert shares[250] == 254
    assert shares.astype(bool).sum() == 2
