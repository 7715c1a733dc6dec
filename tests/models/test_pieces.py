"""Long recordings are annotated in pieces: context, places to cut, and joined annotations."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench import Annotation, Ethogram, Recording, Signals, create_model, load_dataset
from ethobench.models import pieces
from ethobench.models.pieces import Pieces, join_pieces

ETHOGRAM = Ethogram(["rest", "run"])


@pytest.mark.parametrize("seed", range(8))
def test_joined_pieces_equal_the_annotation(seed):
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(-1, 2, 30), random.integers(1, 8, 30))
    both = np.repeat(random.random((len(codes) // 2, 2)) < 0.5, 2, axis=0)
    annotations = (Annotation.from_frames(codes, ETHOGRAM, 10.0, unobserved=-1), Annotation.from_frames(both, ETHOGRAM, 10.0))
    for annotation in annotations:
        cuts = np.unique([0, *random.integers(1, annotation.n_frames, 5), annotation.n_frames]).tolist()
        cropped = [annotation.crop(start, stop) for start, stop in itertools.pairwise(cuts)]
        assert join_pieces(cropped) == dataclasses.replace(annotation, order=np.arange(len(annotation)))


@given(st.integers(0, 500), st.integers(1, 40), st.integers(1, 12), st.integers(0, 30))
def test_pieces_with_context_cover_every_frame_once(n_frames, size, stride, context):
    values = np.arange(n_frames, dtype=np.float64)[:, None]
    recording = Recording("r", signals=Signals(values, ("frame",), 10.0), annotations={})
    plan = Pieces(pieces.round_up(size, stride), pieces.round_up(context, stride))
    starts = []

    def annotate(piece: Recording) -> Annotation:
        frames = piece.signals.values[:, 0].astype(int)
        assert len(frames) <= plan.frames + 2 * plan.context
        starts.append(frames[0])
        return Annotation.from_frames(frames // 3 % 2, ETHOGRAM, 10.0)

    if n_frames:
        annotation = plan.annotate(recording, recording.signals, annotate)
        assert np.array_equal(annotation.to_codes(), np.arange(n_frames) // 3 % 2)
        assert all(start % stride == 0 for start in starts)


def test_context_covers_the_longest_gap_that_is_bridged():
    gap = pieces.max_gap_frames(pieces.MAX_GAP_SECONDS, 30.0)
    assert Pieces.plan(0, 30.0).context == gap + 1
    assert Pieces.plan(10 * gap, 30.0).context == 10 * gap
    plan = Pieces.plan(10 * gap + 1, 30.0, stride=7)
    assert plan.context % 7 == plan.frames % 7 == 0
    assert plan.context > 10 * gap
    assert plan.frames >= pieces.MAX_PIECE_FRAMES


def test_pieces_of_poses_use_the_scene_of_the_entire_recording(monkeypatch):
    data = load_dataset("synthetic/pose", individuals=2, seconds=60)
    model = create_model("rf", trees=5, seconds=0.5).fit(data)
    entire = model.predict(data.recordings[0]).annotation.to_codes()
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 300)
    assert (model.annotate(data.recordings[0]).to_codes() == entire).mean() > 0.995
