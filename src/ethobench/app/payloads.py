"""JSON payloads of the viewer's API."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethobench.app.blinding import blind_annotator
from ethobench.app.disagreement import least_certain
from ethobench.app.ethograms import Entry
from ethobench.app.project import Project
from ethobench.app.recordings import CORRECTION, OpenRecording, Track
from ethobench.app.traces import pose_payload
from ethobench.core import Annotation, Ethogram, Poses
from ethobench.core import intervals as iv
from ethobench.core.errors import NotFoundError
from ethobench.core.intervals import Intervals
from ethobench.formats import formats

MAX_UNCERTAIN_BOUTS = 100
MAX_SPANS = 2000  # of observed frames; more are merged for display


def project_payload(project: Project) -> dict[str, Any]:
    """Return the payload of the project: recordings, ethograms, formats and notes."""
    ethograms = list(dict.fromkeys(recording.ethogram for recording in project.recordings))
    return {
        "name": project.name,
        "corrections": str(project.corrections.folder.resolve()),
        "ethograms": [_ethogram_payload(ethogram, project) for ethogram in ethograms],
        "blind": project.blind,  # all pages are; a page may also be blind by itself
        "subset": subset_payload(project),
        "annotators": list(dict.fromkeys(track.name for recording in project.recordings for track in recording.tracks)),
        "recordings": [
            {
                "id": recording.recording.id,
                "individual": recording.recording.individual,
                "rate": recording.rate,
                "n_frames": recording.n_frames,
                "ethogram": ethograms.index(recording.ethogram),
                "tracks": len(recording.tracks),
                "corrected": len(recording.shown_corrections),
                "observed": _most_observed(recording),
                "observed_by": _observed_by(recording),
                "disagreement": recording.disagreement,
            }
            for recording in project.recordings
        ],
        "formats": [
            {"name": f.name, "title": f.title, "suffix": f.suffixes[0], "several": f.multiple_recordings}
            for f in formats
            if f.can_write and "annotations" in f.contents
        ],
        "notes": project.notes,
    }


def recording_payload(project: Project, index: int) -> dict[str, Any]:
    """Return the payload of one recording, without reading its signals."""
    recording = project.recording(index)
    video = recording.recording.video
    has_video = project.video(index) is not None
    cameras = [] if video is None else [camera for camera in recording.recording.cameras if project.can_show(camera.path)]
    return {
        "index": index,
        "id": recording.recording.id,
        "individual": recording.recording.individual,
        "rate": recording.rate,
        "n_frames": recording.n_frames,
        "subjects": list(recording.subjects),
        "behaviors": list(recording.ethogram.names),
        "tracks": [track_payload(recording, track) for track in recording.tracks],
        "video": has_video,
        "cameras": [{"name": camera.path.name, "offset": camera.offset} for camera in cameras],
        "video_note": "" if video is None or has_video else f"{video.name} is missing, not a video, or outside the opened folders",
        "disagreement": recording.disagreement,
        "locked": recording.locked,
        "notes": recording.shown_notes[:50],
    }


def track_payload(recording: OpenRecording, track: Track) -> dict[str, Any]:
    """Return the payload of one track."""
    history = recording.corrections.get(track.name) if track.kind == CORRECTION else None
    annotation = track.annotation
    used = {int(code) for code in annotation.behavior[annotation.stop > annotation.start]}
    return {
        "name": track.name,
        "kind": track.kind,
        "revision": track.revision,
        "watches": track.watches,
        "observed": None if history is None else observed_payload(recording, annotation),
        "bouts": len(annotation),
        "exclusive": annotation.is_exclusive,
        "used": sorted(used),
        "occurring": sorted({int(code) for code in annotation.behavior}),
        "subjects": [name for name in annotation.subjects if (annotation.subject == annotation.subjects.index(name)).any()],
        "named": list(annotation.subjects),
        "unnamed": bool((annotation.subject < 0).any()) or not len(annotation),
        "probabilities": track.prediction is not None,
        "certain": track.prediction is not None or annotation.confidence is not None,
        "overlapping": track.prediction is not None and not track.prediction.exclusive,
        "undo": history is not None and history.can_undo,
        "redo": history is not None and history.can_redo,
    }


def observed_payload(recording: OpenRecording, annotation: Annotation) -> dict[str, Any]:
    """Return the share and the spans of observed frames, for all subjects and, if they differ, for each subject."""
    observed, names = annotation.observed, annotation.ethogram.names
    subjects = recording.subjects if any(track.subject is not None for track in observed.tracks) else ()
    return {
        **_spans_payload(observed.of_all(names), recording.n_frames),
        "subjects": {name: _spans_payload(observed.of_all(names, name), recording.n_frames) for name in subjects},
    }


def _spans_payload(spans: Intervals, n_frames: int) -> dict[str, Any]:
    share = iv.total(spans) / max(n_frames, 1)
    merged = spans if len(spans.start) <= MAX_SPANS else iv.fill_gaps(spans, n_frames // MAX_SPANS)
    return {"share": share, "spans": np.stack(merged, axis=1).tolist()}


def _observed_by(recording: OpenRecording) -> dict[str, float]:
    """Return the observed share of each correction."""
    annotations = {name: history.annotation for name, history in recording.shown_corrections.items()}
    return {name: iv.total(a.observed.of_all(a.ethogram.names)) / max(recording.n_frames, 1) for name, a in annotations.items()}


def _most_observed(recording: OpenRecording) -> float | None:
    """Return the observed share of the most complete correction; None without corrections."""
    return max(_observed_by(recording).values(), default=None)


def subset_payload(project: Project) -> dict[str, Any] | None:
    """Return the recordings or segments that were drawn last for agreement; None if none were drawn."""
    index_of = {recording.recording.id: index for index, recording in enumerate(project.recordings)}
    segments = project.subset.segments
    if not segments:
        return None
    shown = [
        {"recording": index_of[s.recording], "start": round(s.start * rate), "stop": round(s.stop * rate)}
        for s in segments
        if s.recording in index_of and (rate := project.recordings[index_of[s.recording]].rate)
    ]
    return {"seed": segments[0].seed, "file": project.subset.path.name, "segments": shown}


def ethogram_editor_payload(project: Project) -> dict[str, Any]:
    """Return the behaviors of the session for the ethogram editor."""
    editor = project.ethograms
    counts, fixed = editor.counts(shown=True), editor.fixed
    return {
        "revision": editor.revision,
        "undo": editor.can_undo,
        "file": str(editor.path.resolve()),
        "behaviors": [
            {
                **entry_payload(entry),
                "bouts": counts[entry.name][0],
                "fixed": entry.name in fixed,
                "fixed_bouts": counts[entry.name][1],
                "palette": project.colors.get(entry.name),
            }
            for entry in editor.entries
        ],
    }


def entry_payload(entry: Entry) -> dict[str, Any]:
    """Return the editable fields of a behavior."""
    b = entry.behavior
    return {
        "name": b.name,
        "key": b.key,
        "definition": b.definition,
        "point": b.point,
        "background": entry.background,
        "group": entry.group,
        "color": entry.color,
        "hidden": entry.hidden,
    }


def signal_payload(recording: OpenRecording) -> dict[str, Any]:
    """Return the signal lanes and the skeleton of a recording; reads its signals."""
    poses = recording.signals if isinstance(recording.signals, Poses) else None
    motion = None if recording.motion is None else recording.motion.payload()
    payload: dict[str, Any] = {"lanes": [lane.payload() for lane in recording.lanes], "poses": None, "motion": motion}
    if poses is not None:
        payload["poses"] = pose_payload(poses)
        width, height = (recording.recording.metadata.get(name) for name in ("width", "height"))
        if isinstance(width, (int, float)) and isinstance(height, (int, float)):
            payload["poses"]["box"] = [0, 0, width, height]
    return payload


def moment_payload(recording: OpenRecording, frame: int) -> dict[str, list[dict[str, Any]] | None]:
    """Return the bouts of each track at a frame, without the background; None if the frame is unobserved."""
    bouts_by_track: dict[str, list[dict[str, Any]] | None] = {}
    for track in recording.tracks:
        a = track.annotation
        rows = np.flatnonzero(
            (a.start <= frame) & (a.stop > frame) & (a.behavior != (-1 if a.ethogram.background is None else a.ethogram.background))
        )
        observed_before = iv.covered_before(a.observed.of_any(), [frame, frame + 1])
        bouts = [
            {"start": int(a.start[i]), "stop": int(a.stop[i]), "behavior": int(a.behavior[i]), "subject": subject, "target": target}
            for i, subject, target in zip(rows, a.names(a.subject[rows]), a.names(a.target[rows]), strict=True)
        ]
        bouts_by_track[track.name] = bouts if bouts or observed_before[1] > observed_before[0] else None
    return bouts_by_track


def bout_payload(recording: OpenRecording, track: str, index: int) -> dict[str, Any]:
    """Return all details of one bout."""
    a = recording.track(track).annotation
    if index >= len(a):
        raise NotFoundError(f"{track!r} has no bout {index}")
    (subject,), (target,) = a.names(a.subject[[index]]), a.names(a.target[[index]])
    return {
        "index": index,
        "start": int(a.start[index]),
        "stop": int(a.stop[index]),
        "behavior": int(a.behavior[index]),
        "subject": subject,
        "target": target,
        "modifiers": "" if a.modifiers is None else str(a.modifiers[index]),
        "comment": "" if a.comment is None else str(a.comment[index]),
        "confidence": None if a.confidence is None or np.isnan(a.confidence[index]) else float(a.confidence[index]),
    }


def find_bout(recording: OpenRecording, track: str, start: int, stop: int, behavior: int, subject: str) -> dict[str, Any] | None:
    """Return all details of the bout with these frames and behavior; None if there is none."""
    a = recording.track(track).annotation
    is_match = (a.start == start) & (a.stop == stop) & (a.behavior == behavior)
    matches = np.flatnonzero(is_match)
    names = a.names(a.subject[matches])
    chosen = [index for index, name in zip(matches.tolist(), names, strict=True) if (name or "") == subject]
    return bout_payload(recording, track, chosen[0]) if chosen else None


def uncertain_payload(recording: OpenRecording) -> list[dict[str, Any]]:
    """Return the bouts with the lowest certainty over all tracks."""
    rows = []
    for track in recording.tracks:
        bouts = least_certain(track.annotation, track.prediction)
        for bout, certainty in zip(
            bouts.indices[:MAX_UNCERTAIN_BOUTS].tolist(), bouts.certainty[:MAX_UNCERTAIN_BOUTS].tolist(), strict=True
        ):
            a = track.annotation
            rows.append(
                {
                    "track": track.name,
                    "start": int(a.start[bout]),
                    "stop": int(a.stop[bout]),
                    "behavior": int(a.behavior[bout]),
                    "certainty": round(certainty, 4),
                }
            )
    return sorted(rows, key=lambda row: (row["certainty"], row["start"]))[:MAX_UNCERTAIN_BOUTS]


def _ethogram_payload(ethogram: Ethogram, project: Project) -> list[dict[str, Any]]:
    """Describe behaviors: ``color`` is an index into the palette, ``occurs`` is whether any track has it (true for a blind page)."""
    colors, never = project.colors, {*project.occurrence.never_annotated}
    new = {entry.name for entry in project.ethograms.entries} - {*project.occurrence.ethogram.names}
    entries = {entry.name: entry for entry in project.ethograms.entries}
    is_blind = blind_annotator() is not None
    return [
        {
            "name": b.name,
            "definition": b.definition,
            "key": b.key,
            "point": b.point,
            "background": code == ethogram.background,
            "color": None if code == ethogram.background else colors[b.name],
            "custom": entries[b.name].color,
            "group": entries[b.name].group,
            "hidden": entries[b.name].hidden,
            "occurs": is_blind or code == ethogram.background or (b.name not in never and b.name not in new),
        }
        for code, b in enumerate(ethogram)
    ]
