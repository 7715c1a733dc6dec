from __future__ import annotations

import pytest

from ethobench import Annotation
from ethobench.core.errors import MismatchError
from ethobench.core.recording import match_length


@pytest.mark.parametrize(("labels", "frames"), [(100, 100), (101, 100), (1010, 1000), (2, 1)])
def test_labels_up_to_a_hundredth_or_a_frame_longer_are_cut(labels, frames):
    fitted, told = match_length(Annotation.from_frames([0] * labels, ["rest"], rate=10), frames)
    assert fitted.n_frames == frames
    assert bool(told) == (labels > frames)
    assert fitted.stop.tolist() == [frames]


@pytest.mark.parametrize(("labels", "frames"), [(102, 100), (1011, 1000), (3, 1)])
def test_longer_ones_are_refused(labels, frames):
    with pytest.raises(MismatchError, match=f"labels for {labels} frames, but signals for {frames}"):
        match_length(Annotation.from_frames([0] * labels, ["rest"], rate=10), frames)


def test_signals_that_go_on_were_not_observed():
    fitted, told = match_length(Annotation.from_frames([0] * 8, ["rest"], rate=10), 10)
    assert fitted.to_codes().tolist() == [0] * 8 + [-1] * 2
    assert told == "labels end 2 frames before the signals; the remaining frames are unobserved"
