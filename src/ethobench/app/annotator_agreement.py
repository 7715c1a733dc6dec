"""Agreement of two annotators over the recordings of a project, on frames that both observed."""

from __future__ import annotations

import math
from typing import Any

from ethobench.app.project import Project
from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError
from ethobench.core.intervals import Intervals
from ethobench.metrics import agreement


def agreement_payload(project: Project, first: str, second: str, *, subset: bool = False) -> dict[str, Any]:
    """Return Cohen's kappa of two tracks for each behavior.

    Parameters
    ----------
    project : Project
    first, second : str
        Names of tracks.
    subset : bool
        Only the segments that were drawn for agreement.
    """
    if first == second:
        raise EthobenchError("choose two different annotators")
    segments = {s.recording: [t for t in project.subset.segments if t.recording == s.recording] for s in project.subset.segments}
    pairs: dict[str, dict[str, Annotation]] = {}
    for recording in project.recordings:
        tracks = {track.name: track.annotation for track in recording.tracks if track.name in (first, second)}
        if len(tracks) < 2 or (subset and recording.recording.id not in segments):
            continue
        frames = iv.full(recording.n_frames)
        if subset:
            chosen = segments[recording.recording.id]
            rate = recording.rate
            frames = iv.union(iv.intervals([round(s.start * rate) for s in chosen], [round(s.stop * rate) for s in chosen]))
        for annotation in tracks.values():
            frames = iv.intersection(frames, annotation.observed.of_all(annotation.ethogram.names))
        if iv.total(frames):
            pairs[recording.recording.id] = {name: _within(annotation, frames) for name, annotation in tracks.items()}
    if not pairs:
        return {"recordings": 0, "frames": 0, "rows": []}
    result = agreement(pairs, resamples=0)
    rows = [
        {"behavior": row["behavior"], "kappa": _number(row["kappa"]), "agreement": _number(row["agreement"]), "frames": int(row["frames"])}
        for row in result.pairs
        if row["behavior"] not in result.never_annotated
    ]
    return {"recordings": len(pairs), "frames": max((row["frames"] for row in rows), default=0), "rows": rows}


def _within(annotation: Annotation, frames: Intervals) -> Annotation:
    """Return an annotation that is observed in these frames only."""
    return annotation.mark_unobserved(iv.complement(frames, annotation.n_frames))


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else round(float(value), 4)
