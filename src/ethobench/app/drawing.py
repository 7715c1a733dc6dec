"""Lanes by name: which tiles belong to which, kept until a track changes."""

from __future__ import annotations

import threading
from typing import Any

from ethobench.app.entries import Entry, Track
from ethobench.app.tiles import ProbabilityTiles, TrackTiles, share_tile, tile_edges
from ethobench.core.errors import EthobenchError, NotFoundError

KEPT = 64


class Drawing:
    """The lanes of one recording.

    A lane is asked for as ``track:2`` (all subjects pooled), ``track:2:0`` (the first subject), ``track:2:-1`` (nobody named),
    ``probability:3`` (the track's), ``trace:0``, or ``disagreement:0,1,3`` (of these tracks).
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._kept: dict[tuple[str, str, tuple[int, int]], TrackTiles | ProbabilityTiles] = {}
        self._lock = threading.Lock()

    def tile(self, lane: str, level: int, index: int) -> dict[str, Any]:
        """Return one tile of one lane."""
        edges = tile_edges(level, index, self.entry.n_frames)
        kind, *places = lane.split(":")
        try:
            if kind == "trace":
                return self.entry.lanes[_number(places[0])].tiles.tile(edges)
            tracks = self.entry.tracks
            if kind == "disagreement":
                names = [tracks[_number(place)].name for place in places[0].split(",") if place]
                return share_tile(self.entry.differences(names), edges)
            track = tracks[_number(places[0])]
            subject = None
            if kind == "track" and len(places) > 1:
                subject = "" if places[1] == "-1" else self.entry.subjects[_number(places[1])]
        except EthobenchError:
            raise
        except (IndexError, ValueError):
            raise NotFoundError(f"recording {self.entry.recording.id!r} has no lane {lane!r}") from None
        tiles = self._tiles(kind, track, subject)
        if tiles is None:
            raise NotFoundError(f"recording {self.entry.recording.id!r} has no lane {lane!r}")
        return tiles.tile(edges)

    def _tiles(self, kind: str, track: Track, subject: str | None) -> TrackTiles | ProbabilityTiles | None:
        key = (kind, f"{track.name}\n{subject}", track.version)
        with self._lock:
            if key not in self._kept:
                if kind == "track":
                    self._kept[key] = TrackTiles(track.annotation, subject)
                elif kind == "probability" and track.prediction is not None:
                    self._kept[key] = ProbabilityTiles(track.prediction, self.entry.ethogram.names)
                while len(self._kept) > KEPT:
                    self._kept.pop(next(iter(self._kept)))
            return self._kept.get(key)


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
