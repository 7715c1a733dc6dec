"""Annotations in MATLAB files (versions 5 to 7.3).

- BehaviorDEPOT: a struct (``hBehavior``, ``Behavior``) with a field per behavior, each with ``Bouts`` (first and last frame, from 1) and
  ``Vector`` (0 and 1 per frame); optionally ``FrameRate``, ``TotalFrames`` and ``VideoName``.
- JAABA: ``allScores`` with a cell per animal in ``postprocessed`` (1, 0 or NaN per frame), and ``behaviorName``.
- Bouts: a struct, or an array of structs, with fields such as start, stop and behavior; or a matrix of first and last frames per behavior.
- Frames: vectors of 0 and 1, one per behavior; a matrix of them, or a vector of codes (from 1), with a cell of names; a cell of labels.

Frames are counted from 1, and the last frame belongs to the bout, as usual in MATLAB. NaN and negative values are unobserved frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError, Note
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats import per_frame
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.bouts import BoutRows, frames_rate, named_ethogram
from ethobench.formats.interval_tables import find_columns
from ethobench.formats.labels import decode_words
from ethobench.formats.mat_files import MatValue, as_numbers, as_struct, as_texts, is_mat, read_mat
from ethobench.formats.size_limits import MAX_BEHAVIORS
from ethobench.formats.tables import normalize_name
from ethobench.formats.text import Head

MAX_SNIFFED = 1 << 24  # bytes
MIN_FRAMES = 3
MAX_FRAME = 1e9
RATES = ("framerate", "fps", "rate", "samplingrate", "sr")
LENGTHS = ("totalframes", "nframes", "numframes", "frames", "duration frames")
NAMES = (
    "behaviors",
    "behaviours",
    "behaviornames",
    "behaviournames",
    "behaviorlabels",
    "names",
    "labelnames",
    "labels",
    "classes",
    "vocab",
)
VIDEOS = ("videoname", "video", "moviename", "media")
Names = Sequence[str] | str | None


@register_format("matlab")
class Matlab(Format):
    """Annotations in a MATLAB file.

    Options for reading: ``rate``, the frame rate, if the file does not state it; ``behaviors``, the names of codes or columns;
    ``inclusive``, whether the last frame belongs to a bout (default: yes).
    """

    title = "MATLAB file"
    suffixes = (".mat",)
    keeps = ("subjects", "overlaps", "observed", "length")

    def sniff(self, path: Path, head: Head) -> float:
        if head.is_dir or not is_mat(head.raw[:128]) or path.stat().st_size > MAX_SNIFFED:
            return 0.0
        return 0.7 if _find(read_mat(path)) else 0.0

    def entries(self, path: Path) -> list[str]:
        return list(_named(path, _find(read_mat(path))))

    def read(
        self,
        path: Path,
        entry: str | None = None,
        *,
        rate: float | None = None,
        behaviors: Names = None,
        inclusive: bool = True,
    ) -> list[Recording]:
        variables = read_mat(path)
        entries = _named(path, _find(variables))
        if not entries:
            names = ", ".join(variables) or "none (tables and other objects cannot be read; save structs, cells and arrays)"
            raise FormatError(path, f"no annotation: expected bouts, or a value per frame; variables: {names}")
        reader = _Reader(path, variables, rate, None if behaviors is None else per_frame.behavior_names(behaviors), inclusive)
        return [reader.recording(name, *entries[name]) for name in select_entries(path, entry, list(entries))]


def _named(path: Path, entries: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Return the annotations of a file by entry: by variable, or by the name of the file if there is only one."""
    return {path.stem: next(iter(entries.values()))} if len(entries) == 1 else dict(entries)


def _find(variables: Mapping[str, MatValue]) -> dict[str, tuple[str, Any]]:
    """Return kind and content of the annotations among variables, by name."""
    structs = {name: struct for name, value in variables.items() if (struct := as_struct(value)) is not None}
    entries: dict[str, tuple[str, Any]] = {}
    for name, struct in structs.items():
        if "postprocessed" in struct and isinstance(variables[name], dict):
            entries[name] = "jaaba", struct
        elif any(_is_behavior(field) for field in struct.values()):
            entries[name] = "depot", struct
        elif {"start", "stop", "behavior"} <= {*_roles(struct)}:
            entries[name] = "bouts", struct
        elif content := _frames(struct):
            entries[name] = "frames", content
    if content := _frames(variables):
        entries["frames"] = "frames", content
    if not entries:
        tables = {name: numbers for name, value in variables.items() if (numbers := _bout_matrix(value)) is not None}
        if tables:
            entries["bouts"] = "matrices", tables
    return entries


def _is_behavior(value: Any) -> bool:
    return isinstance(value, dict) and ("Vector" in value or "Bouts" in value)


def _roles(struct: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields with start, stop and behavior of bouts, and the unit of times."""
    roles = find_columns(list(struct))
    start, stop = (as_numbers(struct.get(roles.get(role, ""))) for role in ("start", "stop"))
    texts = as_texts(struct.get(roles.get("behavior", "")))
    if start is None or stop is None or texts is None or not start.size == stop.size == len(texts):
        return {}
    return roles


def _frames(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a mapping says per frame: ``columns`` of 0 and 1 by behavior, ``codes`` and ``names``, or ``words``."""
    normal = {normalize_name(name): name for name in variables}
    names = next((texts for key in NAMES if key in normal and (texts := as_texts(variables[normal[key]])) is not None), None)
    vectors = {name: _vector(value) for name, value in variables.items() if normalize_name(name) not in (*RATES, *LENGTHS)}
    binary = {name: vector for name, vector in vectors.items() if vector is not None and _is_binary(vector)}
    if names is not None and len(names) <= MAX_BEHAVIORS:
        for value in variables.values():
            matrix = as_numbers(value)
            if (
                matrix is not None
                and matrix.ndim == 2
                and len(names) in matrix.shape
                and max(matrix.shape) >= MIN_FRAMES
                and _is_binary(matrix)
            ):
                matrix = matrix if matrix.shape[1] == len(names) else matrix.T
                return {"columns": dict(zip(names, matrix.T, strict=True))} if len({*names}) == len(names) else {}
        for vector in vectors.values():
            if vector is not None and vector.size >= MIN_FRAMES and _is_codes(vector, len(names)):
                return {"codes": vector, "names": names}
    for value in variables.values():
        words = as_texts(value)
        if words is not None and len(words) > 2 * len({*words}) and len(words) >= MIN_FRAMES:
            return {"words": words}
    lengths = {vector.size for vector in binary.values()}
    return {"columns": binary} if len(lengths) == 1 and lengths.pop() >= MIN_FRAMES else {}


def _vector(value: Any) -> NDArray[np.float64] | None:
    numbers = as_numbers(value) if isinstance(value, np.ndarray) else None
    return numbers.reshape(-1) if numbers is not None and numbers.size >= 2 and max(numbers.shape) == numbers.size else None


def _is_binary(values: NDArray[np.float64]) -> bool:
    return bool((np.isnan(values) | np.isin(values, (-1, 0, 1))).all() and (values == 1).any())


def _is_codes(values: NDArray[np.float64], n_names: int) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite) and (finite == np.floor(finite)).all() and finite.max() <= n_names and finite.max() >= 1)


def _bout_matrix(value: Any) -> NDArray[np.float64] | None:
    """Return a matrix of first and last frames (n_bouts, 2); None for anything else."""
    numbers = as_numbers(value) if isinstance(value, np.ndarray) else None
    if numbers is None or numbers.size < 2 or numbers.size % 2 or (numbers.ndim == 2 and numbers.shape[1] != 2):
        return None
    pairs = numbers.reshape(-1, 2) if numbers.ndim == 2 or numbers.size == 2 else None
    if pairs is None or not np.isfinite(pairs).all() or (pairs != np.floor(pairs)).any():
        return None
    is_ordered = (pairs[:, 0] >= 1).all() and (pairs[:, 1] >= pairs[:, 0]).all() and (np.diff(pairs[:, 0]) > 0).all()
    return pairs if is_ordered and pairs.max() < MAX_FRAME else None


class _Reader:
    """Builds recordings from the annotations of a MATLAB file."""

    def __init__(
        self, path: Path, variables: Mapping[str, MatValue], rate: float | None, behaviors: list[str] | None, inclusive: bool
    ) -> None:
        self.path, self.variables, self.rate, self.behaviors, self.inclusive = path, variables, rate, behaviors, inclusive

    def recording(self, name: str, kind: str, content: Any) -> Recording:
        """Return the recording of one entry."""
        fields = {**self.variables, **(content if isinstance(content, Mapping) else {})}
        stated = _number(fields, RATES)
        rate, notes = (stated, []) if self.rate is None and stated else frames_rate(self.rate)
        annotation, more_notes = getattr(self, f"_read_{kind}")(content, rate)
        video = next((text for key, value in fields.items() if normalize_name(key) in VIDEOS and isinstance(text := value, str)), "")
        return Recording(
            name,
            subjects=annotation.subjects,
            annotations={DEFAULT_ANNOTATOR: annotation},
            metadata={"media": [video]} if video else {},
            notes=(*notes, *more_notes),
            clock_origin=ClockOrigin.STATED if stated and self.rate is None else ClockOrigin.ASSUMED,
        )

    def _read_depot(self, struct: Mapping[str, Any], rate: float) -> tuple[Annotation, list[Note]]:
        behaviors = {name: field for name, field in struct.items() if _is_behavior(field)}
        length = _number(struct, LENGTHS)
        vectors = {name: _vector(field.get("Vector")) for name, field in behaviors.items()}
        sizes = [vector.size for vector in vectors.values() if vector is not None]
        n_frames = max([int(length or 0), *sizes], default=0)
        rows = BoutRows(self.path)
        notes: list[Note] = []
        for name, field in behaviors.items():
            pairs = self._pairs(name, field.get("Bouts"))
            vector = vectors[name]
            if vector is not None and _differ(pairs, vector):
                notes.append(Note("Bouts and Vector differ; Vector is read", name, "bouts-differ"))
                spans = iv.from_mask(vector == 1)
                pairs = np.stack([spans.start + 1, spans.stop], axis=1)
            for start, stop in pairs.tolist():
                rows.add(start - 1, stop, name, location=name)
        annotation, more_notes = rows.to_annotation(named_ethogram(list(behaviors)), rate, seconds=False, n_frames=n_frames or None)
        skipped = [n for n in struct if n not in behaviors and normalize_name(n) not in (*RATES, *LENGTHS, *VIDEOS)]
        return annotation, [*notes, *more_notes, *ignored_columns(skipped, "fields")]

    def _pairs(self, name: str, value: Any) -> NDArray[np.float64]:
        numbers = as_numbers(value)
        if numbers is None or not numbers.size:
            return np.zeros((0, 2))
        if numbers.size % 2 or (numbers.ndim == 2 and numbers.shape[1] != 2) or (numbers.ndim == 1 and numbers.size != 2):
            raise FormatError(self.path, f"Bouts must have two columns, got shape {numbers.shape}", name)
        pairs = numbers.reshape(-1, 2)
        if not np.isfinite(pairs).all() or (np.abs(pairs) > MAX_FRAME).any() or (pairs < 1).any():
            raise FormatError(self.path, "Bouts must be frame numbers, counted from 1", name)
        return pairs

    def _read_jaaba(self, scores: Mapping[str, Any], rate: float) -> tuple[Annotation, list[Note]]:
        names = as_texts(self.variables.get("behaviorName", "")) or []
        behavior = next((name for name in names if name), self.path.stem.removeprefix("scores_"))
        cells = scores["postprocessed"]
        cells = cells if isinstance(cells, list) else [cells]
        vectors = [np.zeros(0) if (v := as_numbers(cell)) is None else v.reshape(-1) for cell in cells]
        n_frames = max((v.size for v in vectors), default=0)
        if not n_frames:
            raise FormatError(self.path, "no frames in allScores.postprocessed")
        subjects = [f"animal{number}" for number in range(1, len(vectors) + 1)]
        rows, tracks = BoutRows(self.path), {}
        for subject, vector in zip(subjects, vectors, strict=True):
            spans = iv.from_mask(vector == 1)
            for start, stop in zip(spans.start.tolist(), spans.stop.tolist(), strict=True):
                rows.add(start, stop, behavior, subject=subject, location=subject)
            tracks[Track(behavior, subject)] = iv.from_mask(np.isfinite(vector))
        all_bouts = iv.union_all(list(tracks.values()))
        is_partial = any(iv.total(track) < n_frames for track in tracks.values())
        observed = Observed(all_bouts, tracks) if is_partial else None
        return rows.to_annotation(Ethogram([behavior]), rate, seconds=False, n_frames=n_frames, observed=observed, subjects=subjects)

    def _read_bouts(self, struct: Mapping[str, Any], rate: float) -> tuple[Annotation, list[Note]]:
        roles = _roles(struct)
        start, stop = (as_numbers(struct[roles[role]]) for role in ("start", "stop"))
        names = as_texts(struct[roles["behavior"]]) or []
        if start is None or stop is None:
            raise FormatError(self.path, "start and stop must be numbers")
        start, stop = start.reshape(-1), stop.reshape(-1)
        times = np.concatenate((start, stop))
        seconds = roles.get("unit") != "frames" and bool((times != np.floor(times)).any())
        notes = []
        if not seconds:
            start, stop = start - 1, stop if self.inclusive else stop - 1
            if roles.get("unit") != "frames":
                message = "integers without a unit are read as frames, counted from 1 as in MATLAB"
                notes.append(Note(message, code="assumed-unit"))
        rows = BoutRows(self.path)
        subjects = as_texts(struct.get(roles.get("subject", ""))) or [""] * len(names)
        for number, (a, b, name) in enumerate(zip(start.tolist(), stop.tolist(), names, strict=True)):
            subject = subjects[number] if len(subjects) == len(names) else ""
            rows.add(a, b, name.strip() or "unnamed", subject=subject, location=f"bout {number + 1}")
        length = _number({**self.variables, **struct}, LENGTHS)
        ethogram = named_ethogram(list(dict.fromkeys(rows.behavior)))
        annotation, more_notes = rows.to_annotation(ethogram, rate, seconds=seconds, n_frames=int(length) if length else None)
        return annotation, [*notes, *more_notes]

    def _read_matrices(self, tables: Mapping[str, NDArray[np.float64]], rate: float) -> tuple[Annotation, list[Note]]:
        rows = BoutRows(self.path)
        for name, pairs in tables.items():
            for number, (start, stop) in enumerate(pairs.tolist(), start=1):
                rows.add(start - 1, stop if self.inclusive else stop - 1, name, location=f"{name}, row {number}")
        length = _number(self.variables, LENGTHS)
        return rows.to_annotation(named_ethogram(list(tables)), rate, seconds=False, n_frames=int(length) if length else None)

    def _read_frames(self, content: Mapping[str, Any], rate: float) -> tuple[Annotation, list[Note]]:
        if "columns" in content:
            columns: dict[str, NDArray[np.float64]] = content["columns"]
            names = self.behaviors or list(columns)
            if len(names) != len(columns):
                message = Message(f"{len(columns)} columns of behaviors, but {len(names)} names in ", ReaderOption("behaviors"))
                raise FormatError(self.path, message)
            values = np.stack([np.where(np.isnan(c), per_frame.UNOBSERVED, c) for c in columns.values()], axis=1).astype(np.int8)
            return per_frame.annotation_of(values, named_ethogram(names), rate)
        if "codes" in content:
            names, codes = content["names"], content["codes"]
            unobserved = ~np.isfinite(codes) | (codes < 0)
            numbers = np.where(unobserved, 0, codes).astype(np.int64)
            frames = np.where(numbers == 0, len(names), numbers - 1)  # 0 is no behavior
            notes = [Note("codes are counted from 1; 0 is no behavior", code="one-based-codes")]
            return Annotation.from_frames(frames, named_ethogram(names), rate, unobserved=unobserved), notes
        words = list(dict.fromkeys(content["words"]))
        lookup, ethogram, notes = decode_words(self.path, words, self.behaviors, lambda word: f"label {words[word]!r}")
        code_of = dict(zip(words, lookup.tolist(), strict=True))
        frames = np.array([code_of[word] for word in content["words"]])
        return Annotation.from_frames(frames, ethogram, rate, unobserved=frames == per_frame.UNOBSERVED), notes


def _number(fields: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """Return the first positive number among fields of these names."""
    for name, value in fields.items():
        if normalize_name(name) in names:
            number = as_numbers(value)
            if number is not None and number.size == 1 and 0 < float(number.reshape(-1)[0]) < MAX_FRAME:
                return float(number.reshape(-1)[0])
    return None


def _differ(pairs: NDArray[np.float64], vector: NDArray[np.float64]) -> bool:
    """Return whether bouts of first and last frames differ from 0 and 1 per frame."""
    mask = np.zeros(vector.size, dtype=bool)
    for start, stop in pairs.astype(np.int64).tolist():
        mask[start - 1 : stop] = True
    return bool((mask != (vector == 1)).any() or (len(pairs) and pairs.max() > vector.size))
