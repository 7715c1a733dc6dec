"""Kinds of errors: a partition of the wrong frames, checked against an oracle that looks at one frame at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram, score
from ethobench.core import intervals as iv
from ethobench.reports.errors import KINDS, subject_errors, track_errors

ETHOGRAM = Ethogram(["a", "b", "other"], "other")
LETTERS = {"a": 0, "b": 1, ".": 2}


def case_of(pred: str, truth: str):
    sides = [Annotation.from_frames([LETTERS[c] for c in text], ETHOGRAM, 10) for text in (pred, truth)]
    return score(*sides, resamples=0).pairs[0]


def spelled(kinds, n_frames: int) -> str:
    """Write the kind of each frame as its first letter."""
    text = ["."] * n_frames
    for kind, frames in kinds.items():
        for k in np.flatnonzero(iv.to_mask(frames, n_frames)):
            assert text[k] == ".", f"frame {k} has two kinds"
            text[k] = kind[0]
    return "".join(text)


@pytest.mark.parametrize(
    ("truth", "pred", "frames"),
    [
        ("..aaaa..", "...aaaa.", "..b...b."),  # late at both ends
        ("..aaaa..", "........", "..mmmm.."),
        ("........", "..aaaa..", "..iiii.."),
        ("..aaaa..", "..bbbb..", "..cccc.."),
        (".aaaaaa.", ".aa..aa.", "...ff..."),  # broken up
        (".aa..aa.", ".aaaaaa.", "...ff..."),  # run together
        (".aaaaaa.", ".aabbaa.", "...ff..."),  # broken up by another behavior
        ("aaaaaa..", "a.......", ".mmmmm.."),  # an end longer than what is right is no matter of borders
        ("a.......", "aaaaaa..", ".iiiii.."),
        ("aaaabbbb", "aaaaaabb", "....bb.."),  # the change comes too late
        ("..aaaa..", "bb......", "iimmmm.."),
        ("aaaa....", "aabbbb..", "..bbii.."),  # boundary goes before confusion
    ],
)
def test_kinds_of_frames(truth, pred, frames):
    found = subject_errors(track_errors(case_of(pred, truth)))
    assert spelled(found[None], len(truth)) == frames


def test_a_frame_may_be_of_one_kind_for_one_behavior_and_of_another_for_the_other():
    a, b = track_errors(case_of(".aabbaa.", ".aaaaaa."))
    assert spelled(a.kinds, 8) == "...ff..."
    assert spelled(b.kinds, 8) == "...cc..."


def runs(mask):
    found = iv.from_mask(mask)
    return list(zip(found.start.tolist(), found.stop.tolist(), strict=True))


def oracle(truth: np.ndarray, pred: np.ndarray) -> np.ndarray:
    """Tell the kind of every (frame, behavior) literally; -1 where nothing is wrong."""
    kinds = np.full(truth.shape, -1)
    unfound, unfounded = (truth & ~pred).any(axis=1), (pred & ~truth).any(axis=1)
    for column in range(truth.shape[1]):
        for mine, other, elsewhere, alone in ((truth, pred, unfounded, "missed"), (pred, truth, unfound, "invented")):
            for first, last in runs(mine[:, column]):
                right = int(other[first:last, column].sum())
                for start, stop in runs(mine[:, column] & ~other[:, column]):
                    if not first <= start < last:
                        continue
                    for frame in range(start, stop):
                        if first < start and stop < last:
                            kind = "fragmentation"
                        elif stop - start <= right:
                            kind = "boundary"
                        else:
                            kind = "confusion" if elsewhere[frame] else alone
                        assert kinds[frame, column] == -1
                        kinds[frame, column] = KINDS.index(kind)
    return kinds


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 3, 8]))
def test_kinds_divide_the_wrong_frames_of_overlapping_behaviors(seed, n_frames, length):
    generator = np.random.default_rng(seed)
    sides = [np.repeat(generator.random((n_frames // length + 1, 3)) < 0.4, length, axis=0)[:n_frames] for _ in range(2)]
    truth, pred = (Annotation.from_frames(side, ["a", "b", "c"], 10) for side in sides)
    tracks = track_errors(score(pred, truth, resamples=0).pairs[0])
    expected = oracle(*sides)
    for track in tracks:
        masks = np.stack([iv.to_mask(track.kinds[kind], n_frames) for kind in KINDS], axis=1)
        assert (masks.sum(axis=1) == (sides[0] != sides[1])[:, track.behavior]).all()
        assert (np.where(masks.any(axis=1), masks.argmax(axis=1), -1) == expected[:, track.behavior]).all()
    by_frame = subject_errors(tracks)[None]
    masks = np.stack([iv.to_mask(by_frame[kind], n_frames) for kind in KINDS], axis=1)
    assert (masks.sum(axis=1) == (sides[0] != sides[1]).any(axis=1)).all()
    first = np.where(expected < 0, len(KINDS), expected).min(axis=1)
    assert (np.where(masks.any(axis=1), masks.argmax(axis=1), len(KINDS)) == first).all()


def test_only_frames_that_the_truth_looked_at_count():
    seen = np.array([True] * 4 + [False] * 4)
    truth = Annotation.from_frames([2] * 8, ETHOGRAM, 10, unobserved=~seen)
    pred = Annotation.from_frames([2, 2, 0, 0, 0, 0, 2, 2], ETHOGRAM, 10)
    found = subject_errors(track_errors(score(pred, truth, resamples=0).pairs[0]))
    assert spelled(found[None], 8) == "..ii...."


def test_subjects_are_divided_apart_and_points_have_no_frames():
    ethogram = Ethogram(["a", "b", Behavior("bite", point=True)])
    truth = Annotation.from_bouts([0, 2], [4, 2], ["a", "bite"], ethogram, 10, 8, subject=["x", "x"], subjects=["y"])
    pred = Annotation.from_bouts([0, 0], [4, 4], ["b", "a"], ethogram, 10, 8, subject=["x", "y"])
    found = subject_errors(track_errors(score(pred, truth, resamples=0).pairs[0]))
    assert spelled(found["x"], 8) == "cccc...."
    assert spelled(found["y"], 8) == "iiii...."
