"""Signals of a study, parsed once, cached, and memory-mapped afterwards."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses, Signals
from ethobench.core.errors import FormatError, Note, ReadWarning
from ethobench.core.recording import Data
from ethobench.formats import detect, read_at_rate
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.reader_options import entries_with, options_for

PARSER = "signals-3"


@dataclass(frozen=True)
class OpenedSignals:
    """Signals of a recording that are not loaded yet.

    Attributes
    ----------
    n_frames : int
    load : callable
        Returns the signals.
    notes : list of Note
        Notes of the reader.
    rate : float or None
        Frames per second; None if the file does not state it and the user has not set it.
    start_time : datetime or None
        Date and time of the first frame.
    units : mapping of str to str
        Units of channels, as far as they are known.
    individuals : tuple of str
        Tracked animals of poses; empty for the channels of a tag, which are of one animal.
    """

    n_frames: int
    load: Callable[[], Data]
    notes: list[Note]
    rate: float | None
    start_time: datetime | None
    units: Mapping[str, str]
    individuals: tuple[str, ...] = ()


def open_signals(
    path: Path, recording: str, rate: float | None, *, entry: str = "", options: Mapping[str, Any] | None = None
) -> OpenedSignals:
    """Return the length and other facts of the signals in a file, and a function that loads them.

    Parameters
    ----------
    path : Path
        File with poses or signals, of any format.
    recording : str
        Id of the recording, if the file has several.
    rate : float or None
        Frames per second, if set by the user.
    entry : str
        Id of the recording in the file, if it has several and none of them is named `recording`.
    options : mapping of str to object, optional
        Options of the reader.
    """
    names, options = (recording, entry), dict(options or {})
    texts = (*names, json.dumps(options, sort_keys=True)) if options else names
    kind = f"{PARSER}-{'' if rate is None else format(rate, 'g')}-{_safe(texts)}"
    arrays = cached_arrays(path, kind, partial(_parse, path, names, rate, options))
    notes = [Note(*fields) for fields in json.loads(str(arrays["notes"]))]
    stated, start = float(arrays["rate"][0]), str(arrays["start"])
    return OpenedSignals(
        len(arrays["values"]),
        partial(_load, path, kind, names, rate, options),
        notes,
        rate or (None if np.isnan(stated) else stated),
        datetime.fromisoformat(start) if start else None,
        json.loads(str(arrays["units"])),
        tuple(map(str, arrays.get("individuals", ()))),
    )


def _parse(path: Path, names: tuple[str, str], rate: float | None, options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)  # the notes have the same text
        reader = detect(path)
        available = entries_with(reader, path, options) if reader.multiple_recordings and "signals" in reader.contents else []
        entry = next((name for name in reversed(names) if name in available), None)
        recordings = read_at_rate(path, rate, reader.name, entry=entry, **options_for(reader, options))
        candidates = [(r, r.signals) for r in recordings if r.signals is not None]
    if not candidates:
        raise FormatError(path, "the file has neither poses nor signals")
    if len(candidates) > 1:
        ids = [recording.id for recording, _ in candidates]
        candidates = [pair for name in names for pair in candidates if pair[0].id == name]
        if not candidates:
            raise FormatError(
                path, f"the file has several recordings, but none named {names[0]!r}; name one in column 'entry': {', '.join(ids)}"
            )
    selected, data = candidates[0]
    notes = np.array(json.dumps([(note.message, note.location, note.code) for note in selected.notes]))
    stated = np.array([data.rate or selected.rate or np.nan])
    start = "" if selected.start_time is None else selected.start_time.isoformat()
    facts = {"start": np.array(start), "units": np.array(json.dumps(selected.metadata.get("units", {})))}
    if isinstance(data, Poses):
        labels = {"individuals": np.array(data.individuals), "keypoints": np.array(data.keypoints)}
        return {"values": data.positions, "confidence": data.confidence, "rate": stated, "notes": notes, **facts, **labels}
    return {"values": data.values, "channels": np.array(data.channels), "rate": stated, "notes": notes, **facts}


def _load(path: Path, kind: str, names: tuple[str, str], rate: float | None, options: Mapping[str, Any]) -> Data:
    arrays = cached_arrays(path, kind, partial(_parse, path, names, rate, options))
    stated = float(arrays["rate"][0])
    clock = rate or (None if np.isnan(stated) else stated)
    if "keypoints" in arrays:
        individuals, keypoints = (tuple(str(name) for name in arrays[key]) for key in ("individuals", "keypoints"))
        return Poses(arrays["values"], arrays["confidence"], individuals, keypoints, clock)
    return Signals(arrays["values"], tuple(str(name) for name in arrays["channels"]), clock or 1.0)


def _safe(names: tuple[str, ...]) -> str:
    """Return a short folder name for any texts."""
    import hashlib

    return hashlib.blake2b("\0".join(filter(None, names)).encode(), digest_size=6).hexdigest()
