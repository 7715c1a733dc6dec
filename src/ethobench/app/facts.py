"""What the page is told, as plain values that JSON can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethobench.app.disagreement import least_certain
from ethobench.app.entries import CORRECTION, Entry, Track
from ethobench.app.project import Project
from ethobench.app.traces import pose_facts
from ethobench.core import Annotation, Ethogram, Poses
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals
from ethobench.core.occurrence import Occurrence
from ethobench.formats import formats

LEAST_CERTAIN = 100
MOST_SPANS = 2000  # of observed frames; more are drawn coarser


def project_facts(project: Project) -> dict[str, Any]:
    """Return everything that does not belong to one recording alone."""
    ethograms = list(dict.fromkeys(entry.ethogram for entry in project.entries))
    return {
        "name": project.name,
        "corrections": str(project.corrections.folder.resolve()),
        "ethograms": [_ethogram_facts(ethogram, project.occurrence) for ethogram in ethograms],
        "recordings": [
            {
                "id": entry.recording.id,
                "individual": entry.recording.individual,
                "rate": entry.rate,
                "n_frames": entry.n_frames,
                "ethogram": ethograms.index(entry.ethogram),
                "tracks": len(entry.tracks),
                "corrected": len(entry.corrections),
                "observed": _most_observed(entry),
                "disagreement": entry.disagreement,
            }
            for entry in project.entries
        ],
        "formats": [
            {"name": f.name, "title": f.title, "suffix": f.suffixes[0], "several": f.several}
            for f in formats
            if f.can_write and "annotations" in f.contents
        ],
        "notes": project.notes,
    }


def recording_facts(project: Project, place: int) -> dict[str, Any]:
    """Return what one recording has, without reading its signals."""
    entry = project.entry(place)
    video = entry.recording.video
    shown = project.video(place) is not None
    return {
        "place": place,
        "id": entry.recording.id,
        "individual": entry.recording.individual,
        "rate": entry.rate,
        "n_frames": entry.n_frames,
        "subjects": list(entry.subjects),
        "tracks": [track_facts(entry, track) for track in entry.tracks],
        "video": shown,
        "video_note": "" if video is None or shown else f"{video.name} is missing, no video, or outside the opened folders (see --videos)",
        "disagreement": entry.disagreement,
        "locked": entry.locked,
        "notes": entry.notes[:50],
    }


def track_facts(entry: Entry, track: Track) -> dict[str, Any]:
    """Return what one track is like."""
    history = entry.corrections.get(track.name) if track.kind == CORRECTION else None
    annotation = track.annotation
    used = {int(code) for code in annotation.behavior[annotation.stop > annotation.start]}
    return {
        "name": track.name,
        "kind": track.kind,
        "revision": track.revision,
        "watches": track.watches,
        "observed": None if history is None else observed_facts(entry, annotation),
        "bouts": len(annotation),
        "exclusive": annotation.is_exclusive,
        "used": sorted(used),
        "occurring": sorted({int(code) for code in annotation.behavior}),
        "subjects": [name for name in annotation.subjects if (annotation.subject == annotation.subjects.index(name)).any()],
        "unnamed": bool((annotation.subject < 0).any()) or not len(annotation),
        "probabilities": track.prediction is not None,
        "certain": track.prediction is not None or annotation.confidence is not None,
        "overlapping": track.prediction is not None and not track.prediction.exclusive,
        "undo": history is not None and history.can_undo,
        "redo": history is not None and history.can_redo,
    }


def observed_facts(entry: Entry, annotation: Annotation) -> dict[str, Any]:
    """Return the share and the spans of the observed frames, of all subjects and, where they differ, of each."""
    observed, names = annotation.observed, annotation.ethogram.names
    named = entry.subjects if any(track.subject is not None for track in observed.tracks) else ()
    return {
        **_spans_facts(observed.of_all(names), entry.n_frames),
        "subjects": {name: _spans_facts(observed.of_all(names, name), entry.n_frames) for name in named},
    }


def _spans_facts(spans: Intervals, n_frames: int) -> dict[str, Any]:
    share = iv.total(spans) / max(n_frames, 1)
    shown = spans if len(spans.start) <= MOST_SPANS else iv.fill_gaps(spans, n_frames // MOST_SPANS)
    return {"share": share, "spans": np.stack(shown, axis=1).tolist()}


def _most_observed(entry: Entry) -> float | None:
    """Return the share of a recording that its most complete correction covers; None without corrections."""
    annotations = [history.annotation for history in entry.corrections.values()]
    shares = [iv.total(a.observed.of_all(a.ethogram.names)) / max(entry.n_frames, 1) for a in annotations]
    return max(shares, default=None)


def signal_facts(entry: Entry) -> dict[str, Any]:
    """Return the lanes of a recording's signals and how to draw its poses; reads them."""
    poses = entry.signals if isinstance(entry.signals, Poses) else None
    facts: dict[str, Any] = {"lanes": [lane.facts() for lane in entry.lanes], "poses": None}
    if poses is not None:
        facts["poses"] = pose_facts(poses)
        width, height = (entry.recording.metadata.get(name) for name in ("width", "height"))
        if isinstance(width, (int, float)) and isinstance(height, (int, float)):
            facts["poses"]["box"] = [0, 0, width, height]
    return facts


def moment_facts(entry: Entry, frame: int) -> dict[str, list[dict[str, Any]] | None]:
    """Return the bouts that each track has at a frame, the background's left out; None where a track did not look."""
    found: dict[str, list[dict[str, Any]] | None] = {}
    for track in entry.tracks:
        a = track.annotation
        places = np.flatnonzero(
            (a.start <= frame) & (a.stop > frame) & (a.behavior != (-1 if a.ethogram.background is None else a.ethogram.background))
        )
        seen = iv.covered_before(a.observed.of_any(), [frame, frame + 1])
        said = [
            {"start": int(a.start[i]), "stop": int(a.stop[i]), "behavior": int(a.behavior[i]), "subject": who}
            for i, who in zip(places, a.names(a.subject[places]), strict=True)
        ]
        found[track.name] = said if said or seen[1] > seen[0] else None
    return found


def uncertain_facts(entry: Entry) -> list[dict[str, Any]]:
    """Return the bouts that models are least certain of, over all tracks."""
    found = []
    for track in entry.tracks:
        bouts = least_certain(track.annotation, track.prediction)
        for place, certainty in zip(bouts.places[:LEAST_CERTAIN].tolist(), bouts.certainty[:LEAST_CERTAIN].tolist(), strict=True):
            a = track.annotation
            found.append(
                {
                    "track": track.name,
                    "start": int(a.start[place]),
                    "stop": int(a.stop[place]),
                    "behavior": int(a.behavior[place]),
                    "certainty": round(certainty, 4),
                }
            )
    return sorted(found, key=lambda bout: (bout["certainty"], bout["start"]))[:LEAST_CERTAIN]


def _ethogram_facts(ethogram: Ethogram, occurrence: Occurrence) -> list[dict[str, Any]]:
    """Describe behaviors; ``color`` is the place in the palette, ``occurs`` whether any track of any recording had it at opening."""
    colors, never = occurrence.color_indices(), occurrence.never_annotated
    return [
        {
            "name": b.name,
            "definition": b.definition,
            "key": b.key,
            "point": b.point,
            "background": code == ethogram.background,
            "color": None if code == ethogram.background else colors[b.name],
            "occurs": code == ethogram.background or b.name not in never,
        }
        for code, b in enumerate(ethogram)
    ]
