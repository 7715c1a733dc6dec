"""BORIS projects (``.boris``): several observations, subjects, modifiers, point and state events, in JSON.

An entry is an observation. Its clock has the frame rate of the video; observations without one count in milliseconds.
State events have no sign of their own: in each track (subject, behavior, modifiers) they start and stop in turns. Event
times count from the beginning of the first media file, the time offset taken out. An observation without any event may
not have been coded yet, so it counts as not looked at, unless it states a time interval. In observations of images the
frames are the images.

Written observations name the video they belong to; where none is known, the recording's name stands in its place, so that
rate and length are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ethobench.core import Behavior, Recording
from ethobench.core.errors import Note
from ethobench.formats.base import Format, not_understood, pick_entry, register_format
from ethobench.formats.boris_reading import ObservationReader, mapping, numbered_values
from ethobench.formats.boris_writing import TITLE, project_of
from ethobench.formats.text import Head, encoding_of, read_json

KEYS = ("behaviors_conf", "subjects_conf", "project_format_version", "behavioral_categories", "coding_map", "time_format")


@register_format("boris")
class Boris(Format):
    """A project with its observations."""

    title = TITLE
    suffixes = (".boris",)
    keeps = ("subjects", "overlaps", "touching", "points", "modifiers", "comments", "observed", "length")
    several = True

    def sniff(self, path: Path, head: Head) -> float:
        # Projects are one long line, which `head.text` would cut off.
        text = head.raw.decode(encoding_of(head.raw), errors="replace").lstrip("\ufeff \r\n\t")
        if not text.startswith("{"):
            return 0.0
        if sum(f'"{key}"' in text for key in KEYS) >= 2:
            return 1.0
        return 0.8 if path.suffix.lower() == ".boris" else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_project(path)["observations"])

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        project = _project(path)
        behaviors, notes = _behaviors(project)
        subjects = [name for s in numbered_values(project.get("subjects_conf")) if (name := str(mapping(s).get("name") or ""))]
        found = []
        for name in pick_entry(path, entry, list(project["observations"])):
            stated = project["observations"][name]
            if not isinstance(stated, dict):
                not_understood(path, "this is no observation", f"observation {name!r}")
            recording = ObservationReader(path, name, stated, behaviors, subjects).read(rate)
            recording.notes = (*notes, *recording.notes)
            found.append(recording)
        return found

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        project, notes = project_of(recordings)
        path.write_text(json.dumps(project, ensure_ascii=False), encoding="utf-8")
        return notes


def _project(path: Path) -> dict[str, Any]:
    project = read_json(path)
    if not isinstance(project, dict) or not isinstance(project.get("observations"), dict):
        not_understood(path, "this is no BORIS project: it has no observations")
    return project


def _behaviors(project: Mapping[str, Any]) -> tuple[dict[str, Behavior], list[Note]]:
    found: dict[str, Behavior] = {}
    notes = []
    for stated in map(mapping, numbered_values(project.get("behaviors_conf"))):
        code, kind = str(stated.get("code") or ""), str(stated.get("type") or "")
        if code in found:
            notes.append(Note(f"the ethogram lists {code!r} twice; the first counts"))
        elif code:
            found[code] = Behavior(
                code, str(stated.get("description") or ""), kind.lower().startswith("point"), str(stated.get("key") or "")
            )
    return found, notes
