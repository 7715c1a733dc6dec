"""Kinds of errors: a partition of the wrong frames, checked frame by frame against a literal implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Behavior, Ethogram, score
from ethobench.core import intervals as iv
from ethobench.reports.error_kinds import KINDS, subject_errors, track_errors

ETHOGRAM = Ethogram(["a", "b", "other"], "other")
LETTERS = {"a": 0, "b": 1, ".": 2}


def pair_of(pred: str, truth: str):
    sides = [Annotation.from_frames([LETTERS[c] for c in text], ETHOGRAM, 10) for text in (pred, truth)]
    return score(*sides, resamples=0).pairs[0]


def to_letters(kinds, n_frames: int) -> str:
    """Return the first letter of the kind of each frame."""
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
        (".aaaaaa.", ".aa..aa.", "...ff..."),  # split
        (".aa..aa.", ".aaaaaa.", "...ff..."),  # merged
        (".aaaaaa.", ".aabbaa.", "...ff..."),  # split by another behavior
        ("aaaaaa..", "a.......", ".mmmmm.."),  # an end longer than the correct frames is not a boundary error
        ("a.......", "aaaaaa..", ".iiiii.."),
        ("aaaabbbb", "aaaaaabb", "....bb.."),  # the change comes too late
        ("..aaaa..", "bb......", "iimmmm.."),
        ("aaaa....", "aabbbb..", "..bbii.."),  # boundary goes before confusion
    ],
)
def test_kinds_of_frames(truth, pred, frames):
    errors = subject_errors(track_errors(pair_of(pred, truth)))
    assert to_letters(errors[None], len(truth)) == frames


def test_a_frame_may_be_of_one_kind_for_one_behavior_and_of_another_for_the_other():
    a, b = track_errors(pair_of(".aabbaa.", ".aaaaaa."))
    assert to_letters(a.kinds, 8) == "...ff..."
    assert to_letters(b.kinds, 8) == "...cc..."


def runs(mask):
    spans = iv.from_mask(mask)
    return list(zip(spans.start.tolist(), spans.stop.tolist(), strict=True))


def oracle(truth: np.ndarray, pred: np.ndarray) -> np.ndarray:
    """Return the kind of every (frame, behavior); -1 for correct frames."""
    kinds = np.full(truth.shape, -1)
    only_true, only_pred = (truth & ~pred).any(axis=1), (pred & ~truth).any(axis=1)
    for column in range(truth.shape[1]):
        for side, other, confused, alone in ((truth, pred, only_pred, "missed"), (pred, truth, only_true, "invented")):
            for first, last in runs(side[:, column]):
                n_correct = int(other[first:last, column].sum())
                for start, stop in runs(side[:, column] & ~other[:, column]):
                    if not first <= start < last:
                        continue
                    for frame in range(start, stop):
                        if first < start and stop < last:
                            kind = "fragmentation"
                        elif stop - start <= n_correct:
                            kind = "boundary"
                        else:
                            kind = "confusion" if confused[frame] else alone
                        assert kinds[frame, column] == -1
                        kinds[frame, column] = KINDS.index(kind)
    return kinds


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 3, 8]))
def test_kinds_partition_the_wrong_frames_of_overlapping_behaviors(seed, n_frames, length):
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


def test_only_frames_observed_by_the_truth_count():
    observed = np.array([True] * 4 + [False] * 4)
    truth = Annotation.from_frames([2] * 8, ETHOGRAM, 10, unobserved=~observed)
    pred = Annotation.from_frames([2, 2, 0, 0, 0, 0, 2, 2], ETHOGRAM, 10)
    errors = subject_errors(track_errors(score(pred, truth, resamples=0).pairs[0]))
    assert to_letters(errors[None], 8) == "..ii...."


def test_subjects_are_separate_and_points_have_no_frames():
    ethogram = Ethogram(["a", "b", Behavior("bite", point=True)])
    truth = Annotation.from_bouts([0, 2], [4, 2], ["a", "bite"], ethogram, 10, 8, subject=["x", "x"], subjects=["y"])
    pred = Annotation.from_bouts([0, 0], [4, 4], ["b", "a"], ethogram, 10, 8, subject=["x", "y"])
    errors = subject_errors(track_errors(score(pred, truth, resamples=0).pairs[0]))
    assert to_letters(errors["x"], 8) == "cccc...."
    assert to_letters(errors["y"], 8) == "iiii...."
