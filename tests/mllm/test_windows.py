"""Windows of long videos, and merging their annotations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Ethogram
from ethobench.core.errors import EthobenchError
from ethobench.mllm.windows import merge_windows, split_into_windows

ETHOGRAM = Ethogram(["a", "b"], "b")


@given(st.floats(1, 5000), st.floats(2, 600), st.floats(0, 1.9))
def test_windows_cover_the_video_and_overlap(duration, length, overlap):
    windows = split_into_windows(duration, length, overlap)
    assert windows[0][0] == 0
    assert windows[-1][1] == pytest.approx(duration)
    assert all(stop - start <= length + 1e-6 for start, stop in windows)
    for (_, before), (after, _) in pairwise(windows):
        assert before - after >= overlap - 1e-6


def test_one_window_by_default():
    assert split_into_windows(1000) == [(0.0, 1000.0)]
    with pytest.raises(EthobenchError, match="`window` must be > `overlap`"):
        split_into_windows(100, 10, 10)


def from_text(text: str) -> Annotation:
    return Annotation.from_frames(["ab".index(c) if c in "ab" else -1 for c in text], ETHOGRAM, 1, unobserved=-1)


def to_text(annotation: Annotation) -> str:
    return "".join("-ab"[code + 1] for code in annotation.to_codes())


def test_each_window_is_used_for_its_half_of_the_overlap():
    windows = [((0.0, 6.0), from_text("aaaaaa")), ((4.0, 10.0), from_text("bbbbbb"))]
    assert to_text(merge_windows(windows, ETHOGRAM, 1, 10)) == "aaaaabbbbb"


def test_bouts_on_both_sides_of_a_cut_are_joined():
    windows = [((0.0, 6.0), from_text("bbbaaa")), ((4.0, 10.0), from_text("aaabbb"))]
    merged = merge_windows(windows, ETHOGRAM, 1, 10)
    assert to_text(merged) == "bbbaaaabbb"
    assert merged.start[merged.behavior == 0].tolist() == [3]
    touching = merge_windows([((0.0, 5.0), from_text("aaaaa")), ((5.0, 9.0), from_text("aabb"))], ETHOGRAM, 1, 9)
    assert (touching.start.tolist(), touching.stop.tolist()) == ([0, 7], [7, 9])


def test_the_neighbor_replaces_a_failed_window_and_the_rest_is_unobserved():
    windows = [((0.0, 6.0), None), ((4.0, 10.0), from_text("aaabbb")), ((8.0, 14.0), None)]
    assert to_text(merge_windows(windows, ETHOGRAM, 1, 14)) == "----aaabbb----"
    assert to_text(merge_windows([((0.0, 6.0), None)], ETHOGRAM, 1, 6)) == "------"
    assert to_text(merge_windows([((0.0, 6.0), from_text("aa----")), ((4.0, 10.0), from_text("bbbbbb"))], ETHOGRAM, 1, 10)) == "aa---bbbbb"


@given(st.lists(st.sampled_from([0, 1]), min_size=30, max_size=80), st.integers(5, 20), st.integers(0, 4))
def test_splitting_and_merging_changes_nothing(codes, length, overlap):
    truth = Annotation.from_frames(codes, ETHOGRAM, 1)
    windows = [(w, truth.crop(round(w[0]), round(w[1]))) for w in split_into_windows(len(codes), length, overlap)]
    merged = merge_windows(windows, ETHOGRAM, 1, len(codes))
    assert np.array_equal(merged.to_codes(), truth.to_codes())
    assert len(merged) == len(truth)
