"""SLEAP projects with events (``.slp`` since format 2.6): bouts of subjects and targets beside the poses.

The last frame of an event belongs to it; here, bouts are half-open. The source of an event is its annotator. Events without a source belong
to ``user`` or ``predicted``. The score of a predicted event is its confidence. Subjects and targets are tracks or identities, and the
catalog of event types is the ethogram.

What events have no field for is stored where sleap-io keeps it: modifiers, comments and events without duration in the metadata of the
event, keys and background in the metadata of its type, the length of the recording and the observed frames in the provenance of the
project, and the frame rate in the metadata of the video. Poses are read, not written.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Behavior, ClockOrigin, Ethogram, Observed, Recording, Track
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.intervals import Intervals
from ethobench.formats import hdf5
from ethobench.formats.base import Format, register_format
from ethobench.formats.bouts import BoutRows, frames_rate
from ethobench.formats.sleap import EVENT_GROUPS, load_slp, select_videos, video_names, video_poses
from ethobench.formats.text import Head

USER, PREDICTED = "user", "predicted"
PROVENANCE = "ethobench"
"""Key of the provenance of a project under which length, annotators and observed frames are stored."""
EVENT_KEYS = ("comment", "modifiers", "point")
TRUE = "true"


@register_format("sleap_events")
class SleapEvents(Format):
    """Events with subject and target, and the poses of the project.

    Option for reading: ``rate``, if the project does not state the frame rate of its video.
    """

    title = "SLEAP project with events"
    suffixes = (".slp",)
    contents = ("annotations", "poses")
    keeps = ("subjects", "targets", "overlaps", "touching", "points", "modifiers", "comments", "confidence", "observed", "length")
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        if not head.is_hdf5:
            return 0.0
        names = hdf5.top_names(head)
        return 1.0 if {"frames", "instances", "metadata"} <= names and {*EVENT_GROUPS} & names else 0.0

    def entries(self, path: Path) -> list[str]:
        names = video_names(load_slp(path))
        return names if len(names) > 1 else [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        if not Head(path).is_hdf5:
            raise FormatError(path, "not a valid HDF5 file")
        labels = load_slp(path)
        if not hasattr(labels, "events"):
            raise EthobenchError(f"{path}: reading events requires sleap-io >= 0.9 (pip install -U sleap-io)")
        lost = sum(event.video is None for event in labels.events)
        shared = [Note(f"{lost} of {len(labels.events)} events belong to no video; dropped", code="dropped-bouts")] if lost else []
        return [_read_video(path, labels, video, name, rate, shared) for name, video in select_videos(path, labels, entry)]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        try:
            import sleap_io
        except ImportError:
            raise EthobenchError(f'{path}: writing .slp files requires sleap-io (pip install "ethobench[pose]")') from None
        (recording,) = recordings
        names = dict.fromkeys([*recording.subjects, *(name for a in recording.annotations.values() for name in a.subjects)])
        tracks = {name: sleap_io.Track(name) for name in names}
        types = {b.name: _event_type(sleap_io, a.ethogram, b) for a in recording.annotations.values() for b in a.ethogram}
        rate = next(iter(recording.annotations.values())).rate
        file_name = str(recording.metadata.get("video") or recording.video or f"{recording.id}.mp4")
        video = sleap_io.Video(filename=file_name, open_backend=False, backend_metadata={"fps": rate})
        events = [
            event for annotator, a in recording.annotations.items() for event in _events(sleap_io, a, annotator, video, tracks, types)
        ]
        stored = {
            "n_frames": max(a.n_frames for a in recording.annotations.values()),
            "annotators": {annotator: {"observed": _stored_observed(a)} for annotator, a in recording.annotations.items()},
        }
        labels = sleap_io.Labels(
            videos=[video],
            tracks=list(tracks.values()),
            events=events,
            event_types=list(types.values()),
            provenance={PROVENANCE: stored},
        )
        with tempfile.TemporaryDirectory() as folder:  # sleap-io replaces an existing file, and `path` must stay the same file
            saved = Path(folder) / f"events{self.suffixes[0]}"
            sleap_io.save_slp(labels, str(saved), verbose=False)
            path.write_bytes(saved.read_bytes())
        return []


# Reading


def _read_video(path: Path, labels: Any, video: Any, name: str | None, rate: float | None, notes: Sequence[Note]) -> Recording:
    stated = _positive(video.backend_metadata.get("fps"))
    clock, clock_notes = (rate or stated, []) if rate or stated else frames_rate(None)
    recording = video_poses(path, labels, video, name, rate or stated)
    if not any(frame.video is video for frame in labels.labeled_frames):
        recording = recording.copy(signals=None, n_frames=recording.n_frames or None, subjects=())
    stored = labels.provenance.get(PROVENANCE) if name is None else None
    stored = stored if isinstance(stored, dict) else {}
    length = _positive(stored.get("n_frames"))
    n_frames = int(length) if length else recording.n_frames
    events = [event for event in labels.events if event.video is video]
    annotations, event_notes = _annotations(path, labels, events, float(clock or 1), n_frames, stored)
    if annotations:
        recording.rate = clock
        recording.n_frames = recording.n_frames or max(a.n_frames for a in annotations.values())
        recording.subjects = tuple(dict.fromkeys([*recording.subjects, *next(iter(annotations.values())).subjects]))
    recording.annotations = annotations
    recording.clock_origin = ClockOrigin.STATED if stated else ClockOrigin.ASSUMED
    recording.notes = (*recording.notes, *notes, *(clock_notes if annotations else ()), *event_notes)
    return recording


def _annotations(
    path: Path, labels: Any, events: Sequence[Any], rate: float, n_frames: int | None, stored: dict[str, Any]
) -> tuple[dict[str, Annotation], list[Note]]:
    """Return the annotation of each annotator of a video, and notes."""
    notes: list[Note] = []
    tables = {str(annotator): BoutRows(path) for annotator in _mapping(stored.get("annotators"))}
    sources = {(event.source, event.is_predicted) for event in events}
    ignored: dict[str, None] = {}
    n_traces = 0
    for number, event in enumerate(events, 1):
        location = f"event {number}"
        if not event.type.name:
            raise FormatError(path, "the event has no type", location)
        source = event.source or (PREDICTED if event.is_predicted else USER)
        if event.is_predicted and (event.source, False) in sources and event.source:
            source = f"{source} ({PREDICTED})"
        is_point = event.metadata.get("point") == TRUE and event.is_instantaneous
        n_traces += getattr(event, "scores", None) is not None
        ignored |= dict.fromkeys(key for key in event.metadata if key not in EVENT_KEYS)
        tables.setdefault(source, BoutRows(path)).add(
            event.start_frame,
            event.end_frame + (0 if is_point else 1),
            event.type.name,
            subject="" if event.subject is None else event.subject.name,
            target="" if event.target is None else event.target.name,
            modifiers=event.metadata.get("modifiers", ""),
            comment=event.metadata.get("comment", event.name),
            confidence=_confidence(event),
            location=location,
        )
    if ignored:
        notes.append(Note(f"ignored metadata of events: {', '.join(ignored)}", code="ignored-columns"))
    if n_traces:
        message = f"{n_traces} events have a score for each frame; only one score is read, the mean if the event has no other"
        notes.append(Note(message, code="ignored-scores"))
    ethogram = _ethogram(labels, events)
    subjects = list(dict.fromkeys(item.name for item in (*labels.tracks, *labels.identities) if item.name))
    end = max((stop for rows in tables.values() for stop in rows.stop), default=0)
    length = int(end) if n_frames is None else n_frames
    annotations = {}
    for annotator, rows in tables.items():
        observed = _observed(path, _mapping(_mapping(stored.get("annotators")).get(annotator)).get("observed"))
        annotations[annotator], more_notes = rows.to_annotation(
            ethogram, rate, seconds=False, n_frames=length, observed=observed, subjects=subjects
        )
        notes += more_notes
    return annotations, notes


def _confidence(event: Any) -> float:
    """Return the score of a predicted event, else the mean of its scores, else NaN."""
    if getattr(event, "score", None) is not None:
        return float(event.score)
    scores = getattr(event, "scores", None)
    return float(np.mean(scores)) if scores is not None and len(scores) else math.nan


def _ethogram(labels: Any, events: Sequence[Any]) -> Ethogram:
    """Return the ethogram of the catalog and the events; types of the same name are one behavior."""
    types = {kind.name: kind for kind in [*(event.type for event in events), *reversed(labels.event_types)] if kind.name}
    order = dict.fromkeys([*(kind.name for kind in labels.event_types if kind.name), *types])
    background = [name for name in order if types[name].metadata.get("background") == TRUE]
    behaviors = [
        Behavior(
            name,
            definition=types[name].description,
            point=types[name].metadata.get("point") == TRUE,
            key=types[name].metadata.get("key", ""),
            channel=types[name].metadata.get("channel", ""),
        )
        for name in order
    ]
    return Ethogram(behaviors, background[0] if background else None)


def _observed(path: Path, stored: Any) -> Observed | None:
    """Return observed frames from the provenance of a project; None if all frames were observed."""
    if stored is None:
        return None
    try:
        frames = _intervals(stored["frames"])
        tracks = {Track(*(None if name is None else str(name) for name in names)): _intervals(spans) for names, spans in stored["tracks"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FormatError(path, f"invalid observed frames ({type(error).__name__})", "provenance") from None
    return Observed(frames, tracks)


def _intervals(spans: Any) -> Intervals:
    """Return intervals from a list of [start, stop]."""
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    if (bounds < 0).any() or (bounds[:, 1] < bounds[:, 0]).any():
        raise ValueError("bounds")
    return Intervals(bounds[:, 0].copy(), bounds[:, 1].copy())


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _positive(value: Any) -> float | None:
    """Return a finite number above 0; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value > 0 else None


# Writing


def _event_type(sleap_io: Any, ethogram: Ethogram, behavior: Behavior) -> Any:
    metadata = {
        "key": behavior.key,
        "channel": behavior.channel,
        "point": TRUE if behavior.point else "",
        "background": TRUE if behavior.name == ethogram.background_name else "",
    }
    return sleap_io.EventType(behavior.name, behavior.definition, {key: value for key, value in metadata.items() if value})


def _events(sleap_io: Any, a: Annotation, annotator: str, video: Any, tracks: dict[str, Any], types: dict[str, Any]) -> list[Any]:
    """Return the bouts of an annotation as events, in the order of their source."""
    subject, target = a.names(a.subject), a.names(a.target)
    events = []
    for i in np.argsort(a.order, kind="stable").tolist():
        start, stop = int(a.start[i]), int(a.stop[i])
        metadata = {
            "modifiers": "" if a.modifiers is None else str(a.modifiers[i]),
            "comment": "" if a.comment is None else str(a.comment[i]),
            "point": TRUE if stop == start else "",
        }
        fields: dict[str, Any] = {
            "type": types[a.ethogram[int(a.behavior[i])].name],
            "video": video,
            "start_frame": start,
            "end_frame": max(start, stop - 1),
            "subject": tracks.get(subject[i] or ""),
            "target": tracks.get(target[i] or ""),
            "source": annotator,
            "metadata": {key: value for key, value in metadata.items() if value},
        }
        if a.confidence is None:
            events.append(sleap_io.UserEvent(**fields))
        else:
            score = float(a.confidence[i])
            events.append(sleap_io.PredictedEvent(score=None if math.isnan(score) else score, **fields))
    return events


def _stored_observed(a: Annotation) -> dict[str, Any] | None:
    """Return observed frames for the provenance of a project; None if all frames were observed."""
    if a.observed.is_complete(a.n_frames):
        return None
    tracks = [[list(track), _stored_intervals(spans)] for track, spans in a.observed.tracks.items()]
    return {"frames": _stored_intervals(a.observed.frames), "tracks": tracks}


def _stored_intervals(spans: Intervals) -> list[list[int]]:
    return [[start, stop] for start, stop in zip(spans.start.tolist(), spans.stop.tolist(), strict=True)]
