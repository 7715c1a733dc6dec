"""Checks of recordings at the boundary of the package: texts and measurements after reading, texts before and after writing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Observed, Poses, Recording, Signals, Track
from ethobench.core.errors import EthobenchError, Note, ReadWarning
from ethobench.core.names import check_name, check_text, repair_name, repair_text
from ethobench.core.recording import Data
from ethobench.formats.base import Format

IMPOSSIBLE = "impossible-values"
UNNAMED = "unnamed"
MAX_COORDINATE = 1e7  # a video is at most some 10,000 pixels wide, and an arena of 10 m is 1e7 micrometres
MAX_CONFIDENCE = 100.0  # heat maps of SLEAP and JABS peak at 1 to 6, and some trackers write percent
PLACEHOLDERS = frozenset({"na", "nan", "n.a.", "null", "none", "no focal subject", "self"})


def check_recordings(recordings: Iterable[Recording]) -> None:
    """Check that names, comments, modifiers and metadata contain only characters that files can store.

    Raises
    ------
    EthobenchError
        Names the text and the character.
    """
    for recording in recordings:
        check_name(recording.id, "name of the recording")
        check_name(recording.individual, "individual")
        for value in _strings(recording.metadata):
            check_text(value, "metadata")
        for annotator, annotation in recording.annotations.items():
            check_name(annotator, "annotator")
            _check_annotation(annotation)
        for subject in recording.subjects:
            check_name(subject, "subject")


def _check_annotation(annotation: Annotation) -> None:
    for behavior in annotation.ethogram:
        check_name(behavior.name, "behavior")
        check_text(behavior.definition, "definition")
        check_text(behavior.key, "key")
        check_name(behavior.channel, "channel")
    for subject in annotation.subjects:
        check_name(subject, "subject")
    for kind, column in (("modifier", annotation.modifiers), ("comment", annotation.comment)):
        for text in dict.fromkeys([] if column is None else column.tolist()):
            check_text(str(text), kind)


def repair_recordings(recordings: Sequence[Recording]) -> None:
    """Replace characters that files cannot store in the texts of recordings that were read, and add a note.

    A comment with a carriage return, as other programs write it, can then be read, displayed and written again.
    """
    for recording in recordings:
        changed: dict[str, str] = {}
        name, text = _recording_changes(repair_name, changed), _recording_changes(repair_text, changed)
        recording.id = name(recording.id) or UNNAMED
        recording.individual = name(recording.individual) or recording.id
        recording.subjects = tuple(dict.fromkeys(name(subject) for subject in recording.subjects))
        annotations = {name(annotator) or UNNAMED: annotation for annotator, annotation in recording.annotations.items()}
        if len(annotations) == len(recording.annotations):
            recording.annotations = annotations
        recording.annotations = {annotator: _repaired(a, name, text) for annotator, a in recording.annotations.items()}
        recording.metadata = _repaired_values(recording.metadata, text)
        if changed:
            old, new = next(iter(changed.items()))
            more = f" ({len(changed)} such texts)" if len(changed) > 1 else ""
            message = f"{old[:60]!r} is read as {new[:60]!r} because files cannot store all of its characters{more}"
            recording.notes = (*recording.notes, Note(message, code="repaired-text"))


def _recording_changes(repair: Callable[[str], str], changed: dict[str, str]) -> Callable[[str], str]:
    """Return a function that repairs texts and adds each change to `changed`."""

    def repaired(text: str) -> str:
        result = repair(text)
        if result != text:
            changed[text] = result
        return result

    return repaired


def _repaired(a: Annotation, name: Callable[[str], str], text: Callable[[str], str]) -> Annotation:
    """Return an annotation with repaired texts; the same object if nothing needs repair."""
    names = {b.name: name(b.name) or UNNAMED for b in a.ethogram}
    subjects = {subject: name(subject) or UNNAMED for subject in a.subjects}
    if any(old != new for old, new in names.items()):
        a = a.rename(names)
    if any(old != new for old, new in subjects.items()) and len({*subjects.values()}) == len(subjects):
        tracks = {
            Track(t.behavior, subjects.get(t.subject or "", t.subject), subjects.get(t.target or "", t.target)): frames
            for t, frames in a.observed.tracks.items()
        }
        a = replace(a, subjects=tuple(subjects.values()), observed=Observed(a.observed.frames, tracks))
    described = [replace(b, definition=text(b.definition), key=text(b.key), channel=name(b.channel)) for b in a.ethogram]
    if described != [*a.ethogram]:
        a = replace(a, ethogram=Ethogram(described, a.ethogram.background_name, exclusive=a.ethogram.exclusive))
    modifiers, comment = _repaired_column(a.modifiers, text), _repaired_column(a.comment, text)
    if modifiers is not a.modifiers or comment is not a.comment:
        a = replace(a, modifiers=modifiers, comment=comment)
    return a


def _repaired_column(column: NDArray[Any] | None, text: Callable[[str], str]) -> NDArray[Any] | None:
    if column is None:
        return None
    values = column.tolist()
    texts = {value: text(str(value)) for value in dict.fromkeys(values)}
    changed = any(old != new for old, new in texts.items())
    return np.array([texts[value] for value in values], dtype=object) if changed else column


def _strings(value: Any) -> Iterable[str]:
    """Yield the strings in nested metadata."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def _repaired_values(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {_repaired_values(key, text): _repaired_values(item, text) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_repaired_values(item, text) for item in value)
    return value


def check_read_back(format: Format, path: Path, recordings: Sequence[Recording]) -> None:
    """Check that unusual names, comments and modifiers survive in a file that was just written.

    A behavior called "nan" or "# x" may be read as something else. Files with ordinary texts only are not read back.

    Raises
    ------
    EthobenchError
        Names the text.
    """
    written = _texts_of(recordings, format)
    unusual = {kind: {text for text in texts if not _is_ordinary(text)} for kind, texts in written.items()}
    if "annotations" not in format.contents or not any(unusual.values()):
        return
    try:
        read = _texts_of(format.read(path), format)
    except Exception as error:
        kind, text = next((kind, min(texts)) for kind, texts in unusual.items() if texts)
        raise EthobenchError(f"{format.title} cannot store the {kind} {text!r}: the file could not be read back; rename it") from error
    for kind, texts in unusual.items():
        lost = sorted(texts - read[kind])
        if lost:
            raise EthobenchError(f"{format.title} cannot store the {kind} {lost[0]!r}: it would be read as something else; rename it")


def _texts_of(recordings: Sequence[Recording], format: Format) -> dict[str, set[str]]:
    """Return the texts that the format stores for bouts, by kind."""
    texts: dict[str, set[str]] = {"behavior": set(), "subject": set(), "modifier": set(), "comment": set(), "annotator": set()}
    for recording in recordings:
        for annotator, a in recording.annotations.items():
            if format.names_behaviors:
                texts["behavior"] |= {a.ethogram[int(code)].name for code in np.unique(a.behavior[a.stop > a.start])}
            if "subjects" in format.keeps:
                texts["subject"] |= {name for name in a.names(a.subject) if name}
            for kind, detail, column in (("modifier", "modifiers", a.modifiers), ("comment", "comments", a.comment)):
                if detail in format.keeps and column is not None:
                    texts[kind] |= {str(text).strip() for text in column.tolist()} - {""}
            if format.multiple_annotators:
                texts["annotator"].add(annotator)
    return texts


def _is_ordinary(text: str) -> bool:
    return re.fullmatch(r"\w[\w .-]*", text) is not None and text.strip().lower() not in PLACEHOLDERS


def check_measurements(recordings: Sequence[Recording]) -> None:
    """Replace impossible measurements by NaN and add notes. Signals that are loaded lazily are checked when they are loaded.

    Impossible are infinite values, coordinates beyond `MAX_COORDINATE`, and confidences that are negative or above `MAX_CONFIDENCE`.
    """
    for recording in recordings:
        if callable(recording._signals):
            recording._signals = partial(_load_checked, recording, recording._signals)  # unlike a closure, it can be pickled
        elif recording._signals is not None:
            recording._signals, notes = without_impossible_values(recording._signals)
            recording.notes = (*recording.notes, *notes)


def _load_checked(recording: Recording, load: Callable[[], Data]) -> Data:
    data, notes = without_impossible_values(load())
    recording.notes = (*recording.notes, *notes)
    for note in notes:
        warnings.warn(f"{recording.id}: {note}", ReadWarning, stacklevel=3)
    return data


def without_impossible_values(data: Data) -> tuple[Data, list[Note]]:
    """Return signals or poses with NaN for impossible values, and notes; the same object if there are none."""
    if isinstance(data, Signals):
        bad = _outside(data.values, -np.finfo(np.float64).max, np.finfo(np.float64).max)
        if bad is None:
            return data, []
        frame, channel = (int(i) for i in np.argwhere(bad)[0])
        first = f"the first: frame {frame}, channel {data.channels[channel]!r}"
        values = np.where(bad, np.nan, data.values)
        return replace(data, values=values), [Note(f"{_count(bad)} values are infinite; read as missing ({first})", code=IMPOSSIBLE)]
    notes = []
    bad = _outside(data.positions, -MAX_COORDINATE, MAX_COORDINATE)
    if bad is not None:
        points: NDArray[np.bool_] = np.logical_or.reduce(bad, axis=-1)
        problem = f"infinite or beyond {MAX_COORDINATE:g}"
        message = f"{_count(points)} points have a coordinate that is {problem}; read as missing ({_first(data, points)})"
        notes.append(Note(message, code=IMPOSSIBLE))
        data = replace(data, positions=np.where(points[..., None], np.nan, data.positions))
    bad = _outside(data.confidence, 0.0, MAX_CONFIDENCE)
    if bad is not None:
        problem = f"negative, infinite or above {MAX_CONFIDENCE:g}"
        notes.append(Note(f"{_count(bad)} confidences are {problem}; read as missing ({_first(data, bad)})", code=IMPOSSIBLE))
        data = replace(data, confidence=np.where(bad, np.nan, data.confidence))
    return data, notes


def _outside(values: NDArray[np.float64], least: float, most: float) -> NDArray[np.bool_] | None:
    """Return a mask of the values outside the bounds, or None if all are within; NaN counts as within."""
    if values.size == 0 or values.dtype.kind != "f":
        return None
    lowest, highest = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if not (lowest < least or highest > most):
        return None
    outside: NDArray[np.bool_] = (values < least) | (values > most)
    return outside


def _count(bad: NDArray[np.bool_]) -> str:
    return f"{int(bad.sum())} of {bad.size}"


def _first(poses: Poses, bad: NDArray[np.bool_]) -> str:
    frame, individual, keypoint = (int(i) for i in np.argwhere(bad)[0])
    return f"the first: frame {frame}, {poses.individuals[individual]!r}, {poses.keypoints[keypoint]!r}"
