"""Writing annotations to NWB: a table of bouts for each annotator, and one beside them with what bouts cannot tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, Note
from ethobench.formats.nwb_content import OURS, UNKNOWN_START


def write_session(recording: Recording, path: Path) -> list[Note]:
    """Write the annotations of a recording as a session of its own; return what got lost."""
    try:
        import pynwb
    except ImportError:
        raise EthobenchError("writing NWB files needs pynwb (pip install ethobench[nwb])") from None
    notes = [] if recording.signals is None else [Note("poses and signals are not written to NWB: they are lost")]
    start = recording.start_time
    if start is not None and start.tzinfo is None:
        notes.append(Note("the start time tells no time zone; written as UTC"))
        start = start.replace(tzinfo=UTC)
    nwb = pynwb.NWBFile(
        session_description=f"behavior annotations of {recording.id}",
        identifier=recording.id,
        session_start_time=start or UNKNOWN_START,
        subject=pynwb.file.Subject(subject_id=recording.individual),
    )
    try:
        _write_annotations(nwb, recording)
        with pynwb.NWBHDF5IO(str(path), "w") as io:
            io.write(nwb)
    except OSError:
        raise
    except Exception as error:
        raise EthobenchError(f"pynwb cannot write {recording.id!r} ({_reason(error)})") from error
    return notes


def _reason(error: BaseException) -> str:
    """Return the first line of what was wrong at the bottom: HDF5 text cannot hold NUL, for instance."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0]


def _write_annotations(nwb: Any, recording: Recording) -> None:
    from hdmf.common import DynamicTable

    home = nwb.create_processing_module("behavior", "behavior annotations")
    columns: dict[str, list[Any]] = {
        n: [] for n in ("bouts", "annotator", "rate", "n_frames", "subjects", "ethogram", "observed", "observed_tracks")
    }
    for i, (annotator, a) in enumerate(recording.annotations.items()):
        name = f"bouts{i or ''}"
        catalogue, looked, tracks = _catalogue(f"ethogram{i or ''}", a.ethogram), None, None
        home.add(catalogue)
        if not (a.observed.is_complete(a.n_frames) and not a.observed.tracks):
            looked = _time_table(f"{name}_observed", "stretches that were looked at", _times(a.observed.frames, a.rate))
            home.add(looked)
        if a.observed.tracks:
            tracks = _time_table(f"{name}_observed_tracks", "exceptions: what was looked at for single tracks", _track_columns(a))
            home.add(tracks)
        home.add(_bouts_table(name, annotator, a, catalogue, looked))
        row = (name, annotator, a.rate, a.n_frames, json.dumps(a.subjects), catalogue.name)
        for key, value in zip(columns, (*row, "" if looked is None else looked.name, "" if tracks is None else tracks.name), strict=True):
            columns[key].append(value)
    home.add(DynamicTable(name=OURS, description="what the bouts of each annotator cannot tell", columns=_vectors(columns)))


def _bouts_table(name: str, annotator: str, a: Annotation, catalogue: Any, looked: Any) -> Any:
    order = np.argsort(a.order, kind="stable")
    label = "behavior"
    who = {"subject": a.names(a.subject[order]), "target": a.names(a.target[order])}
    columns: dict[str, Any] = {
        **_times(iv.Intervals(a.start[order], a.stop[order]), a.rate),
        label: [a.ethogram[int(code)].name for code in a.behavior[order]],
        **{key: [n or "" for n in names] for key, names in who.items()},
        **{key: values[order].tolist() for key in ("confidence", "modifiers", "comment") if (values := getattr(a, key)) is not None},
    }
    if (a.stop > a.start).all() and type(catalogue).__name__ == "Ethogram" and len(a):
        from ndx_ethogram import EthogramBouts

        columns["label"] = columns.pop(label)
        links = {"ethogram": catalogue, **({} if looked is None else {"observation_intervals": looked})}
        told = {"description": "bouts", "labeling_method": "manual", "annotator": annotator, **links}
        return EthogramBouts(name=name, columns=_vectors(columns), colnames=[*columns], **told)
    return _time_table(name, f"bouts by {annotator}", columns)


def _catalogue(name: str, ethogram: Ethogram) -> Any:
    """Make the table of behaviors: of ndx-ethogram's own kind where that is installed."""
    from hdmf.common import DynamicTable

    kind: Any = DynamicTable
    try:
        from ndx_ethogram import Ethogram as Catalogue

        kind = Catalogue
    except ImportError:
        pass
    listed = [asdict(b) for b in ethogram]
    columns = {
        "behavior": [b["name"] for b in listed],
        "definition": [b["definition"] for b in listed],
        "behavior_type": ["point" if b["point"] else "state" for b in listed],
        "key": [b["key"] for b in listed],
        "channel": [b["channel"] for b in listed],
        "background": [str(b["name"] == ethogram.background_name) for b in listed],
    }
    return kind(name=name, description="behaviors that may occur", columns=_vectors(columns), colnames=[*columns])


def _time_table(name: str, description: str, columns: Mapping[str, Any]) -> Any:
    from pynwb.epoch import TimeIntervals

    return TimeIntervals(name=name, description=description, columns=_vectors(columns), colnames=[*columns])


def _vectors(columns: Mapping[str, Any]) -> list[Any]:
    from hdmf.common import VectorData

    text_if_empty = {
        name: values if len(values) or isinstance(values, np.ndarray) else np.empty(0, "U1") for name, values in columns.items()
    }
    return [VectorData(name=name, description=name, data=values) for name, values in text_if_empty.items()]


def _times(spans: iv.Intervals, rate: float) -> dict[str, Any]:
    return {"start_time": spans.start / rate, "stop_time": spans.stop / rate}


def _track_columns(a: Annotation) -> dict[str, Any]:
    """List what was looked at for single tracks; a track that was never looked at has an empty stretch."""
    rows = [
        (start / a.rate, stop / a.rate, *(part or "" for part in track))
        for track, where in a.observed.tracks.items()
        for start, stop in zip(where.start.tolist() or [0], where.stop.tolist() or [0], strict=True)
    ]
    return dict(zip(("start_time", "stop_time", "behavior", "subject", "target"), map(list, zip(*rows, strict=True)), strict=True))
