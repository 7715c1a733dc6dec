"""Windows of long videos, and what their answers say together."""

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
def test_windows_cover_the_video_and_share_enough(duration, length, overlap):
    found = split_into_windows(duration, length, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == pytest.approx(duration)
    assert all(stop - start <= length + 1e-6 for start, stop in found)
    for (_, before), (after, _) in pairwise(found):
        assert before - after >= overlap - 1e-6


def test_no_windows_unless_asked():
    assert split_into_windows(1000) == [(0.0, 1000.0)]
    with pytest.raises(EthobenchError, match="above their overlap"):
        split_into_windows(100, 10, 10)


def frames(text: str) -> Annotation:
    return Annotation.from_frames(["ab".index(c) if c in "ab" else -1 for c in text], ETHOGRAM, 1, unobserved=-1)


def shown(annotation: Annotation) -> str:
    return "".join("-ab"[code + 1] for code in annotation.to_codes())


def test_each_window_speaks_for_its_half_of_the_overlap():
    parts = [((0.0, 6.0), frames("aaaaaa")), ((4.0, 10.0), frames("bbbbbb"))]
    assert shown(merge_windows(parts, ETHOGRAM, 1, 10)) == "aaaaabbbbb"


def test_a_behavior_across_the_seam_is_one_bout():
    parts = [((0.0, 6.0), frames("bbbaaa")), ((4.0, 10.0), frames("aaabbb"))]
    merged = merge_windows(parts, ETHOGRAM, 1, 10)
    assert shown(merged) == "bbbaaaabbb"
    assert merged.start[merged.behavior == 0].tolist() == [3]
    touching = merge_windows([((0.0, 5.0), frames("aaaaa")), ((5.0, 9.0), frames("aabb"))], ETHOGRAM, 1, 9)
    assert (touching.start.tolist(), touching.stop.tolist()) == ([0, 7], [7, 9])


def test_where_one_window_failed_the_other_speaks_and_the_rest_is_unobserved():
    parts = [((0.0, 6.0), None), ((4.0, 10.0), frames("aaabbb")), ((8.0, 14.0), None)]
    assert shown(merge_windows(parts, ETHOGRAM, 1, 14)) == "----aaabbb----"
    assert shown(merge_windows([((0.0, 6.0), None)], ETHOGRAM, 1, 6)) == "------"
    assert shown(merge_windows([((0.0, 6.0), frames("aa----")), ((4.0, 10.0), frames("bbbbbb"))], ETHOGRAM, 1, 10)) == "aa---bbbbb"


@given(st.lists(st.sampled_from([0, 1]), min_size=30, max_size=80), st.integers(5, 20), st.integers(0, 4))
def test_windows_of_one_truth_give_the_truth(codes, length, overlap):
    truth = Annotation.from_frames(codes, ETHOGRAM, 1)
    parts = [(w, truth.crop(round(w[0]), round(w[1]))) for w in split_into_windows(len(codes), length, overlap)]
    merged = merge_windows(parts, ETHOGRAM, 1, len(codes))
    assert np.array_equal(merged.to_codes(), truth.to_codes())
    assert len(merged) == len(truth)
