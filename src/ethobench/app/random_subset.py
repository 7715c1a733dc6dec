"""A random subset of a project for inter-rater agreement: recordings or segments that two annotators label independently.

Every draw is appended to ``agreement.csv`` in the folder of corrections (draw, seed, recording, start and stop in seconds), so that all
annotators label the same frames. The last draw applies.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethobench.app.corrections import Corrections
from ethobench.app.recordings import OpenRecording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import atomic_path
from ethobench.formats.tables import read_table, write_table

FILE = "agreement.csv"
COLUMNS = ("draw", "seed", "recording", "start", "stop")
MAX_SEGMENTS = 1000


@dataclass(frozen=True)
class Segment:
    """A range of a recording, in seconds, and the draw that it belongs to."""

    draw: int
    seed: int
    recording: str
    start: float
    stop: float


class RandomSubset:
    """The segments that were drawn, as listed in ``agreement.csv``.

    Parameters
    ----------
    corrections : Corrections
        The folder of the file.
    """

    def __init__(self, corrections: Corrections) -> None:
        self._corrections = corrections
        self.path: Path = corrections.folder / FILE

    @property
    def segments(self) -> list[Segment]:
        """The segments of the last draw."""
        try:
            rows = self._read()
        except (EthobenchError, OSError):
            return []
        last = max((segment.draw for segment in rows), default=0)
        return [segment for segment in rows if segment.draw == last]

    def draw(self, recordings: Sequence[OpenRecording], count: int, seconds: float | None, seed: int) -> list[Segment]:
        """Draw recordings, or segments of equal length, and append them to the file.

        Parameters
        ----------
        recordings : sequence of OpenRecording
        count : int
            How many to draw; fewer if there are not that many.
        seconds : float, optional
            Length of a segment. None draws entire recordings.
        seed : int
            The same seed draws the same segments of the same recordings.
        """
        if not 1 <= count <= MAX_SEGMENTS:
            raise EthobenchError(f"between 1 and {MAX_SEGMENTS} segments can be drawn, got {count}")
        if seconds is not None and not 1 <= seconds <= 1e6:
            raise EthobenchError(f"a segment must have at least 1 second, got {seconds:g}")
        candidates: list[tuple[str, float, float]] = []
        for recording in sorted(recordings, key=lambda r: r.recording.id):
            length = recording.n_frames / recording.rate
            step = min(seconds or length, length)
            candidates += [(recording.recording.id, i * step, (i + 1) * step) for i in range(int(length / step + 1e-9) if step else 0)]
        chosen = sorted(random.Random(seed).sample(candidates, min(count, len(candidates))))  # noqa: S311 - not a secret
        with self._corrections.locked():
            rows = self._read()
            draw = max((segment.draw for segment in rows), default=0) + 1
            rows += [Segment(draw, seed, *segment) for segment in chosen]
            with atomic_path(self.path, overwrite=self.path.is_file()) as temporary:
                cells = [[s.draw, s.seed, s.recording, f"{s.start:.6f}", f"{s.stop:.6f}"] for s in rows]
                write_table(temporary, COLUMNS, cells)
        return [segment for segment in rows if segment.draw == draw]

    def _read(self) -> list[Segment]:
        if not self.path.is_file():
            return []
        table = read_table(self.path, delimiter=",")
        if [*table.header] != [*COLUMNS]:
            raise FormatError(self.path, f"the columns must be {', '.join(COLUMNS)}", "header")
        try:
            return [Segment(int(d), int(seed), name, float(start), float(stop)) for d, seed, name, start, stop in table.rows]
        except ValueError as error:
            raise FormatError(self.path, f"not a list of segments ({error})") from None
