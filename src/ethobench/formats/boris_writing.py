"""Recordings as the JSON of a BORIS project."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ethobench.core import Annotation, Behavior, Ethogram, Recording
from ethobench.core.errors import Note
from ethobench.formats import event_writing
from ethobench.formats.boris_reading import PLAYERS, mapping

TITLE = "BORIS project"


def project_of(recordings: Sequence[Recording]) -> tuple[dict[str, Any], list[Note]]:
    """Return the project that holds these recordings as its observations, and what it cannot hold."""
    event_writing.check_ids(TITLE, [r.id for r in recordings])
    annotations = [r.annotation() for r in recordings]
    ethogram = Ethogram([])
    for annotation in annotations:
        ethogram = ethogram.join(annotation.ethogram)
    points = event_writing.point_behaviors(annotations)
    notes = event_writing.background_losses(TITLE, ethogram)
    lasting = [b.name for b in ethogram if b.point and b.name not in points]
    if lasting:
        notes.append(Note(f"point behaviors that have bouts with a duration become states: {', '.join(lasting)}"))
    observations = {}
    for recording, annotation in zip(recordings, annotations, strict=True):
        observations[recording.id], more = _observation(recording, annotation, points)
        notes += more
    subjects = dict.fromkeys(name for a in annotations for name in a.subjects)
    project = {
        "time_format": "hh:mm:ss",
        "project_date": datetime.now().isoformat(timespec="seconds"),
        "project_name": "",
        "project_description": "",
        "project_format_version": "7.0",
        "subjects_conf": {str(i): {"key": "", "name": name, "description": ""} for i, name in enumerate(subjects)},
        "behaviors_conf": {str(i): _behavior(b, points) for i, b in enumerate(ethogram)},
        "observations": observations,
        "behavioral_categories": [],
        "behavioral_categories_config": {},
        "independent_variables": {},
        "coding_map": {},
        "behaviors_coding_map": [],
        "converters": {},
    }
    return project, notes


def _observation(recording: Recording, a: Annotation, points: set[str]) -> tuple[dict[str, Any], list[Note]]:
    event_writing.check_rate(TITLE, a.rate)
    events, notes = event_writing.events_of(a, points)
    media, lengths = _media_of(recording, a)
    interval, more = _interval(recording, a)
    date = recording.metadata.get("date")
    stated = {
        "file": {player: media if player == "1" else [] for player in PLAYERS},
        "type": "MEDIA",
        "date": date if isinstance(date, str) else (recording.start_time or datetime.now()).isoformat(timespec="seconds"),
        "description": str(recording.metadata.get("description") or ""),
        "time offset": 0.0,
        "events": [[event_writing.seconds_of(e, a.rate), e.subject, e.behavior, e.modifiers, e.comment, int(e.time)] for e in events],
        "observation time interval": interval,
        "independent_variables": dict(mapping(recording.metadata.get("independent_variables"))),
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "media_creation_date_as_offset": False,
        "media_scan_sampling_duration": 0,
        "image_display_duration": 1,
        "close_behaviors_between_videos": False,
        "media_info": {
            "length": dict(zip(media, lengths, strict=True)),
            "fps": dict.fromkeys(media, a.rate),
            "hasVideo": dict.fromkeys(media, True),
            "hasAudio": dict.fromkeys(media, False),
            "offset": {"1": 0.0},
        },
    }
    return stated, notes + more


def _media_of(recording: Recording, a: Annotation) -> tuple[list[str], list[float]]:
    """Return media files and lengths: those that were read, the video, or else a name that only stands for them."""
    media: list[str] = list(recording.metadata.get("media") or ())
    lengths: list[float] = list(recording.metadata.get("media_lengths") or ())
    if len({*media}) == len(media) == len(lengths) > 0 and abs(sum(lengths) * a.rate - a.n_frames) < 0.5:
        return media, lengths
    if len(media) == 1:
        return media, [round(a.n_frames / a.rate, 6)]
    name = recording.video.as_posix() if recording.video else recording.id
    return [name], [round(a.n_frames / a.rate, 6)]


def _interval(recording: Recording, a: Annotation) -> tuple[list[float], list[Note]]:
    """Return the one interval that a project can state as observed, and what of `observed` it cannot hold."""
    seen = a.observed.frames
    notes = []
    if a.observed.tracks or len(seen.start) > 1:
        notes.append(
            Note(f"a {TITLE} states one observed interval: other frames not looked at will read as without behavior", recording.id)
        )
    if not len(seen.start):
        if len(a):
            notes.append(Note(f"a {TITLE} cannot say that nothing was looked at", recording.id))
        return [0, 0], notes
    start, stop = int(seen.start[0]), int(seen.stop[-1])
    if (start, stop) == (0, a.n_frames) and len(a):
        return [0, 0], notes
    return [round(start / a.rate, 6), round(stop / a.rate, 6)], notes


def _behavior(behavior: Behavior, points: set[str]) -> dict[str, Any]:
    return {
        "type": "Point event" if behavior.name in points else "State event",
        "key": behavior.key,
        "code": behavior.name,
        "description": behavior.definition,
        "color": "",
        "category": "",
        "modifiers": {},
        "excluded": "",
        "coding map": "",
    }
