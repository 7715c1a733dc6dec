"""Annotation of long recordings piece by piece, so that memory does not grow with their length."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ethobench.core import Annotation, Recording
from ethobench.core.recording import Data
from ethobench.features.missing_data import MAX_GAP_SECONDS, max_gap_frames

MAX_PIECE_FRAMES = 1_000_000  # longer recordings are annotated piece by piece


@dataclasses.dataclass(frozen=True)
class Pieces:
    """How a recording is cut into pieces.

    Attributes
    ----------
    frames : int
        Frames of a piece.
    context : int
        Frames before and after a piece that influence its predictions.
    """

    frames: int
    context: int

    @classmethod
    def plan(cls, context: int, rate: float, stride: int = 1) -> Pieces:
        """Plan pieces for a model.

        Parameters
        ----------
        context : int
            Frames before and after a frame that influence its prediction.
        rate : float
            Frames per second.
        stride : int
            Number of frames at whose multiples a recording may be cut.
        """
        context = max(context, max_gap_frames(MAX_GAP_SECONDS, rate) + 1)  # else the edge of a piece would shorten a gap
        return cls(round_up(MAX_PIECE_FRAMES, stride), round_up(context, stride))

    def annotate(self, recording: Recording, data: Data, annotate: Callable[[Recording], Annotation]) -> Annotation:
        """Annotate each piece of a recording, with its context, and join the annotations.

        Parameters
        ----------
        recording : Recording
        data : Signals or Poses
            Its signals.
        annotate : callable
            Annotates a piece with its context, which is a recording.
        """
        annotations = []
        for start in range(0, len(data), self.frames):
            stop, first = min(start + self.frames, len(data)), max(start - self.context, 0)
            signals = data[first : stop + self.context]
            features = None if recording.features is None else recording.features[first : stop + self.context]
            piece = recording.copy(signals=signals, n_frames=len(signals), annotations={}, features=features)
            annotations.append(annotate(piece).crop(start - first, stop - first))
        return join_pieces(annotations)


def round_up(frames: int, stride: int) -> int:
    """Return the smallest multiple of a stride that is not less than a number of frames."""
    return -(-frames // stride) * stride


def join_pieces(pieces: Sequence[Annotation]) -> Annotation:
    """Concatenate the annotations of consecutive pieces of a recording; bouts that were cut between two pieces are joined."""
    joined = pieces[0].concatenate(*pieces[1:])
    columns = (joined.behavior, joined.subject, joined.target)
    stop, keep = joined.stop.copy(), np.ones(len(joined), dtype=bool)
    for seam in np.cumsum([piece.n_frames for piece in pieces[:-1]]):
        ending = {tuple(int(column[i]) for column in columns): i for i in np.flatnonzero((stop == seam) & keep)}
        for j in np.flatnonzero(joined.start == seam):
            i = ending.get(tuple(int(column[j]) for column in columns))
            if i is not None:
                stop[i], keep[j] = stop[j], False
    bouts = dataclasses.replace(joined, stop=stop).take(keep)
    return dataclasses.replace(bouts, order=np.arange(len(bouts)))
