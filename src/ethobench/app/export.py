"""A track as a file in any format that can hold it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ethobench.app.project import Project
from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.core.names import file_stem
from ethobench.formats import formats, write_recordings


@dataclass(frozen=True)
class Exported:
    """A file to download, and what its format could not hold."""

    name: str
    content: bytes
    notes: list[str]


def export(project: Project, places: list[int], track: str, format: str) -> Exported:
    """Write what one annotator says of some recordings.

    Parameters
    ----------
    project : Project
    places : list of int
        Which recordings; those that the annotator has not seen are left out. Several only where the format holds several.
    track : str
    format : str
        One that can be written.
    """
    writer = formats[format]
    entries = [entry for entry in map(project.entry, places) if any(t.name == track for t in entry.tracks)]
    if not entries:
        raise EthobenchError(f"{track!r} has annotated none of these recordings")
    with_poses = "poses" in writer.contents
    recordings = [
        Recording(
            entry.recording.id,
            individual=entry.recording.individual,
            rate=entry.rate,
            signals=entry.signals if with_poses else None,
            annotations={track: entry.track(track).annotation},
            video=entry.recording.video,
            start_time=entry.recording.start_time,
            metadata=entry.recording.metadata,
        )
        for entry in entries
    ]
    base = file_stem(recordings[0].id) if len(recordings) == 1 else file_stem(project.name)
    name = f"{base}.{file_stem(track)}{writer.suffixes[0] if writer.suffixes else ''}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        notes = write_recordings(recordings, path, format)
        return Exported(name, path.read_bytes(), [str(note) for note in notes])
