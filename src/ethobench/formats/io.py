"""Detection, reading and writing of files in any format."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, ClockOrigin, Prediction, Recording
from ethobench.core.errors import (
    EthobenchError,
    FormatError,
    MismatchError,
    Note,
    NotFoundError,
    ParameterError,
    ReadWarning,
    describe_exception,
)
from ethobench.core.files import atomic_path, check_new_path
from ethobench.core.messages import Message, Option
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, formats
from ethobench.formats.reader_options import check_options, options_for, reader_options
from ethobench.formats.recording_checks import check_measurements, check_read_back, check_recordings, repair_recordings
from ethobench.formats.text import Head

MIN_MARGIN = 0.05
"""Smallest difference in confidence between the best format and the next one."""
UNREADABLE = "the file is damaged, or of a version that is not supported (if other software opens it, please report it)"
_LOSSES = {
    "subjects": "{title} does not store subjects; they are lost",
    "targets": "{title} does not store targets; they are lost",
    "points": "{title} does not store point events; they are lost",
    "modifiers": "{title} does not store modifiers; they are lost",
    "comments": "{title} does not store comments; they are lost",
    "confidence": "{title} does not store confidence; it is lost",
    "observed": "{title} does not store which frames are unobserved; they will be read as frames without behavior",
    "touching": "{title} stores frames: adjacent or overlapping bouts of one behavior are merged",
    "length": "{title} does not store the length of the recording; it will be read as ending with the last bout",
}


class UnknownFormatError(FormatError):
    """A file that no format recognizes."""


def detect(path: str | Path) -> Format:
    """Return the format of a file or folder, detected from its content.

    Raises
    ------
    UnknownFormatError
        If no format recognizes the file.
    FormatError
        If the file does not exist, is empty, or fits several formats equally well.
    """
    path = _existing_path(path)
    head = Head(path)
    if not head.is_dir and not head.raw:
        raise FormatError(path, "the file is empty (0 bytes)")
    reasons: dict[str, str] = {}
    confidences = sorted(((_sniff(f, path, head, reasons), f.name) for f in formats), reverse=True)
    (best, name), (second, rival) = confidences[0], confidences[1]
    if best <= 0 and head.is_hdf5 and find_spec("h5py") is None:
        raise FormatError(path, 'reading HDF5 files requires h5py (pip install "ethobench[pose]")')
    if best <= 0:
        message = "unknown format; if you know the format, specify it (`ethobench formats` lists all)"
        damage = "; the file may be damaged: " + "; ".join(dict.fromkeys(reasons.values())) if reasons else ""
        raise UnknownFormatError(path, message + damage)
    if best - second < MIN_MARGIN and second > 0:
        raise FormatError(path, Message(f"the format could be {name} or {rival}; specify it with ", Option("format", flag="--from")))
    return formats[name]


def _sniff(format: Format, path: Path, head: Head, reasons: dict[str, str]) -> float:
    """Return the confidence of one format; 0 if it raises, with the reason added to `reasons`."""
    try:
        return format.sniff(path, head)
    except MemoryError:
        raise
    except FormatError as error:
        reasons[format.name] = str(error).removeprefix(f"{path}: ")
    except Exception as error:
        reasons[format.name] = describe_exception(error)
    return 0.0


def read_recordings(
    path: str | Path, format: str | None = None, *, entry: str | None = None, warn: bool = True, **options: Any
) -> list[Recording]:
    """Read all recordings in a file or folder.

    Parameters
    ----------
    path : str or Path
    format : str, optional
        Name of the format. Detected from the content by default.
    entry : str, optional
        Read only this observation, channel or recording.
    warn : bool
        Issue each note of the reader as a `ReadWarning`.
    **options
        Options of the format, such as ``rate=30`` for files that do not state a frame rate.

    Returns
    -------
    list of Recording
        The `notes` of each say what the reader repaired, dropped or assumed.

    See Also
    --------
    read_annotation : Read a file that holds a single annotation.
    read_at_rate : Pass a rate to the formats that accept one.

    Examples
    --------
    >>> path = folder / "two.csv"
    >>> _ = write_recordings([Recording("a", annotations={"me": annotation})], path)
    >>> [r.id for r in read_recordings(path)]
    ['a']
    """
    path = _existing_path(path)
    reader = formats[format] if format else detect(path)
    check_options([reader], options)
    options = options_for(reader, options)
    try:
        recordings = reader.read(path, entry, **options)
    except EthobenchError as error:
        if type(error) in (EthobenchError, ParameterError) and str(path) not in str(error):  # from the core, which knows no files
            raise FormatError(path, str(error)) from error
        raise
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise FormatError(path, f"could not be read as {reader.title}: {describe_exception(error)}; {UNREADABLE}") from error
    repair_recordings(recordings)
    check_measurements(recordings)
    if options.get("rate") is not None:
        for recording in recordings:
            recording.clock_origin = ClockOrigin.GIVEN
    if warn:
        for recording in recordings:
            for note in recording.notes:
                warnings.warn(Message(path, ": ", note), ReadWarning, stacklevel=2)
    return recordings


def read_at_rate(
    path: str | Path, rate: float | None, format: str | None = None, *, entry: str | None = None, **options: Any
) -> list[Recording]:
    """Read as `read_recordings` does without warnings, with `rate` for the formats that have such an option.

    Parameters
    ----------
    path : str or Path
    rate : float or None
        Frames per second. Ignored for formats whose files always state their rate.
    format, entry, **options
        See `read_recordings`.
    """
    reader = formats[format] if format else detect(path)
    takes_rate = rate is not None and options.get("rate") is None and "rate" in reader_options(reader)
    return read_recordings(path, reader.name, entry=entry, **options, **({"rate": rate} if takes_rate else {}), warn=False)


def read_annotation(
    path: str | Path, format: str | None = None, *, entry: str | None = None, annotator: str | None = None, **options: Any
) -> Annotation:
    """Read the only annotation in a file, or one selected by `entry` and `annotator`.

    Parameters
    ----------
    path : str or Path
    format : str, optional
        Name of the format. Detected from the content by default.
    entry : str, optional
        Observation, channel or recording to read. Required if the file holds several.
    annotator : str, optional
        Annotator to read. Required if the recording has several; any name fits a file that names no annotator.
    **options
        Options of the format, such as ``rate=30``.

    Examples
    --------
    >>> _ = write_annotation(annotation, folder / "mouse1.csv")
    >>> read_annotation(folder / "mouse1.csv")
    Annotation(2 bouts of 2 behaviors, 100 frames at 30 Hz = 3.33333 s)
    """
    annotated = [r for r in read_recordings(path, format, entry=entry, **options) if r.annotations]
    if not annotated:
        raise NotFoundError(f"{path} contains no annotation")
    if len(annotated) > 1:
        listed = ", ".join(r.id for r in annotated)
        raise EthobenchError(Message(f"{path} contains {len(annotated)} annotations; select one with ", Option("entry"), f": {listed}"))
    only = next(iter(annotated[0].annotations))
    is_unnamed = len(annotated[0].annotations) == 1 and only in (DEFAULT_ANNOTATOR, annotated[0].id)
    return annotated[0].annotation(None if is_unnamed else annotator)


def write_annotation(
    annotation: Annotation | Prediction,
    path: str | Path,
    format: str | None = None,
    *,
    recording: str | None = None,
    overwrite: bool = False,
    **options: Any,
) -> list[Note]:
    """Write an annotation to a file.

    Parameters
    ----------
    annotation : Annotation or Prediction
    path : str or Path
    format : str, optional
        Name of the format. By default the suffix of `path` determines it.
    recording : str, optional
        Name of the recording in the file. By default the name of the file.
    overwrite : bool
        Replace an existing file. Otherwise an existing file is an error.
    **options
        Options of the format.

    Returns
    -------
    list of Note
        What the format could not store.

    Examples
    --------
    >>> write_annotation(annotation, folder / "model.csv")
    []
    """
    if isinstance(annotation, Prediction):
        annotation = annotation.annotation
    path = Path(path)
    single = Recording(recording or path.name.split(".")[0], annotations={"annotator": annotation})
    return write_recordings([single], path, format, overwrite=overwrite, **options)


def write_recordings(
    recordings: Sequence[Recording], path: str | Path, format: str | None = None, *, overwrite: bool = False, **options: Any
) -> list[Note]:
    """Write recordings to one file atomically.

    Parameters
    ----------
    recordings : sequence of Recording
    path, format, overwrite, **options
        See `write_annotation`.

    Returns
    -------
    list of Note
        What the format could not store.

    Examples
    --------
    >>> from ethobench import Recording, read_recordings, write_recordings
    >>> recordings = [Recording(name, annotations={"anna": annotation}) for name in ("day1", "day2")]
    >>> write_recordings(recordings, folder / "days.csv", "tidy")
    []
    >>> [recording.id for recording in read_recordings(folder / "days.csv")]
    ['day1', 'day2']
    """
    path = Path(path)
    writer = formats[format] if format else format_for(path)
    if not writer.can_write:
        raise EthobenchError(f"{writer.title} files cannot be written; formats that can: {', '.join(writable_formats())}")
    check_new_path(path, overwrite=overwrite)
    _check_write_options(writer, options)
    if len(recordings) != 1 and not writer.multiple_recordings:
        raise EthobenchError(f"a {writer.title} file stores one recording, got {len(recordings)}; write one file for each")
    check_recordings(recordings)
    notes: list[Note] = []
    for recording in recordings:
        if len(recording.annotations) > 1 and not writer.multiple_annotators and "annotations" in writer.contents:
            names = ", ".join(recording.annotations)
            raise EthobenchError(f"a {writer.title} file stores one annotator, but {recording.id!r} has several: {names}")
        for annotation in recording.annotations.values():
            notes += losses(annotation, writer)
    try:
        with atomic_path(path, overwrite=overwrite) as temporary:
            notes += writer.write(recordings, temporary, **options)
            check_read_back(writer, temporary, recordings)
    except (EthobenchError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EthobenchError(f"{path}: could not be written as {writer.title} ({reason}); please report this") from error
    return list(dict.fromkeys(notes))


def format_for(path: Path) -> Format:
    """Return the format to write for a file name; formats that hold annotations take precedence."""
    name = path.name.lower()
    fitting = [f for f in formats if f.can_write and name.endswith(f.suffixes)]
    if not fitting:
        raise EthobenchError(f"no format has the suffix of {path.name!r}; specify one: {', '.join(writable_formats())}")
    fitting = [f for f in fitting if "annotations" in f.contents] or fitting
    best = max((suffix for f in fitting for suffix in f.suffixes if name.endswith(suffix)), key=len)
    chosen = [f for f in fitting if best in f.suffixes]
    first = [f for f in chosen if f.suffixes[0] == best]
    preferred = [f for f in first if f.name.startswith("tidy")] or first or chosen
    return preferred[0]


def writable_formats() -> list[str]:
    """Return the names of the formats that can be written."""
    return [f.name for f in formats if f.can_write]


def losses(annotation: Annotation, writer: Format) -> list[Note]:
    """Return a note for each detail of an annotation that a format cannot store.

    Formats that hold no annotations at all report that themselves.

    Raises
    ------
    MismatchError
        If behaviors overlap and the format stores one behavior at a time.
    """
    if "annotations" not in writer.contents:
        return []
    state = annotation.stop > annotation.start
    touching = len(annotation.merge_touching()) != len(annotation)
    present = {
        "subjects": bool((annotation.subject >= 0).any()),
        "targets": bool((annotation.target >= 0).any()),
        "points": bool((~state).any()),
        "modifiers": annotation.modifiers is not None and any(annotation.modifiers),
        "comments": annotation.comment is not None and any(annotation.comment),
        "confidence": annotation.confidence is not None and bool(np.isfinite(annotation.confidence).any()),
        "observed": not annotation.observed.is_complete(annotation.n_frames),
        "touching": touching,
        "length": bool(annotation.n_frames > (annotation.stop.max() if len(annotation) else 0)),
    }
    lost = [name for name, is_present in present.items() if is_present and name not in writer.keeps]
    if "overlaps" not in writer.keeps:
        pooled = annotation if "subjects" in writer.keeps else annotation.without_subjects()
        if not pooled.is_exclusive:
            raise MismatchError(
                f"{writer.title} stores one behavior at a time, but behaviors overlap here; use a format that stores overlaps"
            )
    return [Note(_LOSSES[name].format(title=writer.title), code=f"lost-{name}") for name in lost]


def _existing_path(path: str | Path) -> Path:
    path = Path(path)
    if not path.exists():
        raise FormatError(path, "no such file or folder")
    return path


def _check_write_options(owner: Format, options: dict[str, Any]) -> None:
    allowed = [n for n, p in inspect.signature(owner.write).parameters.items() if p.kind is p.KEYWORD_ONLY]
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise EthobenchError(f"{owner.title} has no option {', '.join(unknown)}; options: {', '.join(allowed) or 'none'}")
