"""CalMS21 and files with the same layout, as JSON or NPY: two mice, seven keypoints, 30 Hz.

The file nests group, sequence and record: ``{"annotator-id_0": {"task1/train/mouse001_task1_annotator1": {"keypoints": ...}}}`` with
``keypoints`` (frames, mice, 2, keypoints), ``scores`` (frames, mice, keypoints), ``annotations`` (frames), ``features`` (frames, n) and
``metadata`` with the ``vocab``; all are optional. A sequence is a recording, and its group is the annotator (in task 3, the annotated
behavior). A sequence that is in several groups is one recording with several annotators if its arrays are equal; otherwise it is one
recording per group, called ``group/sequence``.

Files are parsed once, in chunks. The cache holds one flat array for each field, and an index with the offset and shape of the field in
each sequence. Later, the arrays are memory-mapped.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, ClockOrigin, Ethogram, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError, Note
from ethobench.core.ethogram import guess_background
from ethobench.core.messages import Message, rate_option
from ethobench.core.recording import match_length
from ethobench.core.wording import join_names
from ethobench.formats.base import Format, ignored_columns, register_format, select_entries
from ethobench.formats.json_arrays import JsonScanner
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.safe_pickle import load_plain, read_npy_header
from ethobench.formats.text import Head

LABELS = "annotations"
FIELDS = {"keypoints": 4, "scores": 3, LABELS: 1, "features": 2}
CACHED_AS = "calms21-2"
NPY_MAGIC = b"\x93NUMPY"
RATE = 30.0
MICE = ("resident", "intruder")
KEYPOINTS = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
_START = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*\{\s*"(keypoints|scores|annotations|features|metadata)"\s*:')


@register_format("calms21")
class CalMS21(Format):
    """Pairs of mice with frame-by-frame labels."""

    title = "CalMS21"
    suffixes = (".calms21.json", ".json")
    contents = ("annotations", "poses", "signals")
    keeps = ("length",)
    multiple_recordings = True
    multiple_annotators = True

    def sniff(self, path: Path, head: Head) -> float:
        if head.raw.startswith(NPY_MAGIC):
            is_object = b"'|O'" in head.raw[:128] and b"()" in head.raw[:128]
            has_field = any(name.encode() in head.raw for name in FIELDS)
            return 0.0 if not is_object else 0.95 if has_field else 0.3
        return 0.95 if _START.match(head.raw.removeprefix(b"\xef\xbb\xbf")) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [*_by_id(*load(path))]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        arrays, index = load(path)
        records = _by_id(arrays, index)
        return [_recording(path, name, records[name], arrays, rate or RATE) for name in select_entries(path, entry, [*records])]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        if path.suffix.lower() != ".json":
            raise EthobenchError("CalMS21 files are written as JSON; choose a file name that ends in .json")
        groups: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {}
        notes: list[Note] = []
        for recording in recordings:
            annotations: Mapping[str, Annotation | None] = recording.annotations or {
                str(recording.metadata.get("group", "unlabeled")): None
            }
            for group, annotation in annotations.items():
                records = groups.setdefault(group, {})
                if recording.id in records:
                    raise EthobenchError(f"duplicate recording {recording.id!r}; CalMS21 files identify recordings by name")
                records[recording.id] = lambda r=recording, a=annotation: _record(r, a)  # type: ignore[misc]
            if recording.rate not in (None, RATE):
                problem = f"CalMS21 files do not store the rate and are read at {RATE:g} Hz; read this one with "
                message = Message(problem, rate_option(recording.rate))
                notes.append(Note(message, code="lost-rate"))
        with path.open("w", encoding="utf-8") as file:
            _write_groups(file, groups)
        return notes


def load(path: Path) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """Return one flat array for each field of a file, and the index of the sequences."""
    with path.open("rb") as file:
        is_npy = file.read(len(NPY_MAGIC)) == NPY_MAGIC
    arrays = cached_arrays(path, CACHED_AS, lambda: (parse_npy if is_npy else parse_json)(path))
    return arrays, json.loads(arrays["index"].tobytes())


def values_of(arrays: Mapping[str, NDArray[Any]], record: dict[str, Any], field: str) -> NDArray[Any] | None:
    """Return the array of one field of a sequence; None if it does not have the field."""
    entry = record["fields"].get(field)
    if entry is None:
        return None
    return arrays[field][entry["at"] : entry["at"] + int(np.prod(entry["shape"]))].reshape(entry["shape"])


class _SequenceCollector:
    """Collector of the sequences of a file during parsing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chunks: dict[str, list[NDArray[np.float64]]] = {field: [] for field in FIELDS}
        self.lengths = dict.fromkeys(FIELDS, 0)
        self.index: list[dict[str, Any]] = []
        self.names: set[tuple[str, str]] = set()

    def begin(self, group: str, sequence: str) -> dict[str, Any]:
        if (group, sequence) in self.names:
            raise FormatError(self.path, f"duplicate sequence {sequence!r} in group {group!r}")
        self.names.add((group, sequence))
        entry: dict[str, Any] = {"group": group, "id": sequence, "fields": {}, "metadata": {}, "ignored": []}
        self.index.append(entry)
        return entry

    def add(self, entry: dict[str, Any], field: str, chunks: list[NDArray[np.float64]]) -> None:
        shape = (sum(len(chunk) for chunk in chunks), *chunks[0].shape[1:])
        if len(shape) != FIELDS[field] and shape[0]:
            raise FormatError(self.path, f"expected {FIELDS[field]} axes in {field}, got shape {shape}", f"sequence {entry['id']!r}")
        entry["fields"][field] = {"at": self.lengths[field], "shape": shape}
        self.chunks[field] += [chunk.reshape(-1) for chunk in chunks]
        self.lengths[field] += int(np.prod(shape))

    def arrays(self) -> dict[str, NDArray[Any]]:
        if not self.index:
            raise FormatError(self.path, "no sequences")
        arrays: dict[str, NDArray[Any]] = {"index": np.frombuffer(json.dumps(self.index).encode(), dtype=np.uint8)}
        for field in FIELDS:
            chunks = self.chunks.pop(field)
            arrays[field] = np.concatenate(chunks) if chunks else np.empty(0)
        return arrays


def parse_npy(path: Path) -> dict[str, NDArray[Any]]:
    """Parse a file in NPY form, a pickled dictionary of arrays and plain values."""
    with path.open("rb") as file:
        shape, dtype = read_npy_header(path, file)
        if not dtype.hasobject or shape != ():
            raise FormatError(path, f"expected a dictionary, as in the NPY form of CalMS21, got an array of shape {shape} and type {dtype}")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            memory.seek(file.tell())
            content = load_plain(path, memory)  # type: ignore[arg-type]
    content = content[()] if isinstance(content, np.ndarray) and content.shape == () else content
    collected = _SequenceCollector(path)
    for group, sequences in _items(path, content, "the file"):
        for sequence, record in _items(path, sequences, f"group {group!r}"):
            entry = collected.begin(group, sequence)
            for field, value in _items(path, record, f"sequence {sequence!r}"):
                if field in FIELDS:
                    try:
                        collected.add(entry, field, [np.asarray(value, dtype=np.float64)])
                    except FormatError:
                        raise
                    except ValueError as error:
                        raise FormatError(path, f"{field} is not an array of numbers ({error})", f"sequence {sequence!r}") from None
                elif field == "metadata":
                    entry["metadata"] = _jsonable(value)
                else:
                    entry["ignored"].append(field)
    return collected.arrays()


def _items(path: Path, value: Any, container: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise FormatError(path, f"expected a dictionary in {container}, got {type(value).__name__}")
    return ((str(name), inner) for name, inner in value.items())


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _jsonable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _jsonable(value.tolist())
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def parse_json(path: Path) -> dict[str, NDArray[Any]]:
    """Parse a file in JSON form, in chunks."""
    if path.stat().st_size == 0:
        raise FormatError(path, "the file is empty (0 bytes)")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        scanner = JsonScanner(path, memory, "CalMS21 JSON")
        collected = _SequenceCollector(path)
        for group in scanner.members():
            for sequence in scanner.members():
                entry = collected.begin(group, sequence)
                for field in scanner.members():
                    scanner.context = f"sequence {sequence!r}, {field}"
                    if field in FIELDS:
                        collected.add(entry, field, scanner.numbers())
                    elif field == "metadata":
                        entry["metadata"] = scanner.value()
                    else:
                        entry["ignored"].append(field)
                        scanner.skip()
                scanner.forget()
        scanner.finish()
        return collected.arrays()


def _by_id(arrays: Mapping[str, NDArray[Any]], index: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each recording; records with the same name and different arrays become one recording per group."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for record in index:
        by_name.setdefault(record["id"], []).append(record)
    by_id: dict[str, list[dict[str, Any]]] = {}
    for name, records in by_name.items():
        same = all(_have_equal_arrays(arrays, records[0], other) for other in records[1:])
        for record in records:
            by_id.setdefault(name if same else f"{record['group']}/{name}", []).append(record)
    return by_id


def _have_equal_arrays(arrays: Mapping[str, NDArray[Any]], a: dict[str, Any], b: dict[str, Any]) -> bool:
    lengths = {entry["shape"][0] for record in (a, b) for entry in record["fields"].values()}
    shared = [field for field in FIELDS if field != LABELS and field in a["fields"] and field in b["fields"]]
    pairs = [(values_of(arrays, a, field), values_of(arrays, b, field)) for field in shared]
    return len(lengths) <= 1 and all(x is not None and y is not None and np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def _recording(path: Path, name: str, records: list[dict[str, Any]], arrays: Mapping[str, NDArray[Any]], rate: float) -> Recording:
    location = f"sequence {records[0]['id']!r}"
    values = {field: next((v for r in records if (v := values_of(arrays, r, field)) is not None), None) for field in FIELDS}
    lengths = {field: len(v) for field, v in values.items() if v is not None}
    frames = {n for field, n in lengths.items() if field != LABELS} or {*lengths.values()}
    if len(frames) != 1 or lengths.get(LABELS, np.inf) < max(frames):
        counts = ", ".join(f"{n} frames of {field}" for field, n in lengths.items()) or "no frames"
        raise FormatError(path, f"the fields differ in length: {counts}", location)
    (n_frames,) = frames
    notes = [note for r in records for note in ignored_columns(r["ignored"], "fields", location)]
    poses = None if values["keypoints"] is None else _poses(path, location, values["keypoints"], values["scores"], rate)
    annotations = {}
    for record in records:
        codes = values_of(arrays, record, LABELS)
        if codes is not None:
            annotation, more_notes = _annotation(path, location, codes, record["metadata"], rate)
            try:
                annotations[record["group"]], message = match_length(annotation, n_frames)
            except MismatchError as error:
                raise FormatError(path, str(error), location) from None
            notes += [*more_notes, *([Note(message, location, "different-length")] if message else [])]
    mouse = re.search(r"mouse\d+", name)
    extra = values["features"]
    channels = () if extra is None else tuple(f"feature{i}" for i in range(extra.shape[1]))
    return Recording(
        name,
        individual=mouse[0] if mouse else name,
        rate=rate,
        n_frames=n_frames,
        subjects=() if poses is None else poses().individuals,
        signals=poses,
        features=None if extra is None else lambda: Signals(extra, channels, rate),
        annotations=annotations,
        metadata=_metadata(records),
        notes=tuple(notes),
        clock_origin=ClockOrigin.ASSUMED,
    )


def _poses(path: Path, location: str, keypoints: NDArray[Any], scores: NDArray[Any] | None, rate: float) -> Callable[[], Poses]:
    n_frames, n_mice, n_axes, n_keypoints = keypoints.shape
    if n_axes != 2 or (scores is not None and scores.shape != (n_frames, n_mice, n_keypoints)):
        shape = "none" if scores is None else scores.shape
        raise FormatError(path, f"keypoints of shape {keypoints.shape} with scores of shape {shape}", location)
    mice = MICE if n_mice == len(MICE) else tuple(f"mouse{i}" for i in range(n_mice))
    names = KEYPOINTS if n_keypoints == len(KEYPOINTS) else tuple(f"keypoint{i}" for i in range(n_keypoints))
    confidence = np.broadcast_to(np.nan, (n_frames, n_mice, n_keypoints)) if scores is None else scores
    return lambda: Poses(keypoints.transpose(0, 1, 3, 2), confidence, mice, names, rate)


def _annotation(path: Path, location: str, codes: NDArray[Any], metadata: dict[str, Any], rate: float) -> tuple[Annotation, list[Note]]:
    vocab = metadata.get("vocab") if isinstance(metadata, dict) else None
    labeled = np.isfinite(codes)
    notes = []
    if not labeled.all():
        notes.append(Note(f"{int((~labeled).sum())} frames have no label; read as unobserved", location, "missing-labels"))
    if not isinstance(vocab, dict):
        vocab = {f"behavior{int(code)}": code for code in np.unique(codes[labeled])}
        notes.append(Note("no vocab; behaviors are named by their codes", location, "numeric-labels"))
    names = sorted(vocab, key=lambda name: vocab[name])
    numbers = np.array([vocab[name] for name in names], dtype=float)
    if len(np.unique(numbers)) != len(numbers):
        raise FormatError(path, "duplicate code in the vocab", location)
    indices = np.searchsorted(numbers, codes)
    wrong = np.flatnonzero(labeled & (numbers[np.minimum(indices, len(numbers) - 1)] != codes) if len(numbers) else labeled)
    if wrong.size:
        raise FormatError(path, f"label {codes[wrong[0]]:g} is not in the vocab ({', '.join(names)})", f"{location}, frame {wrong[0]}")
    ethogram = Ethogram(names, guess_background(names), exclusive=True)
    unobserved = None if labeled.all() else ~labeled
    return Annotation.from_frames(np.where(labeled, indices, 0), ethogram, rate, unobserved=unobserved), notes


def _metadata(records: list[dict[str, Any]]) -> dict[str, Any]:
    stated = records[0]["metadata"] if isinstance(records[0]["metadata"], dict) else {}
    task = re.search(r"task\d+", records[0]["id"])
    split = re.search(r"(?:^|/|_)(train|test|val|validation)(?:/|_|$)", records[0]["id"])
    return {
        **{name: value for name, value in stated.items() if name != "vocab"},
        **({"task": task[0]} if task else {}),
        **({"split": split[1]} if split else {}),
        "group": records[0]["group"],
    }


def _record(recording: Recording, annotation: Annotation | None) -> dict[str, Any]:
    record: dict[str, Any] = {}
    poses, features = recording.signals, recording.features
    lengths = {len(p) for p in (poses, features) if p is not None} | ({annotation.n_frames} if annotation is not None else set())
    if len(lengths) > 1:
        counts = join_names(sorted(lengths))
        raise MismatchError(f"the poses, features and labels of {recording.id!r} have {counts} frames; crop or extend them first")
    if isinstance(poses, Poses):
        if poses.positions.shape[3] != 2:
            raise EthobenchError(f"CalMS21 files store 2-D poses, but those of {recording.id!r} are 3-D")
        record["keypoints"] = poses.positions.transpose(0, 1, 3, 2).tolist()
        record["scores"] = poses.confidence.tolist()
    derived = ("task", "split", "group")
    metadata: dict[str, Any] = {
        name: value for name, value in recording.metadata.items() if isinstance(value, (str, int, float)) and name not in derived
    }
    if annotation is not None:
        names, codes = list(annotation.ethogram.names), annotation.to_codes()
        background = annotation.ethogram.background_name or "other"
        if background not in names:
            names.append(background)
        record["annotations"] = np.where((codes < 0) | (codes >= len(annotation.ethogram)), names.index(background), codes).tolist()
        metadata["vocab"] = {name: code for code, name in enumerate(names)}
    if features is not None:
        record["features"] = features.values.tolist()
    return {**record, "metadata": {"annotator-id": 0, **metadata}}


def _write_groups(file: IO[str], groups: Mapping[str, Mapping[str, Callable[[], dict[str, Any]]]]) -> None:
    """Write record by record, so that only one record is in memory as text."""
    file.write("{")
    for i, (group, records) in enumerate(groups.items()):
        file.write(f"{', ' if i else ''}{json.dumps(group)}: {{")
        for j, (sequence, record) in enumerate(records.items()):
            file.write(f"{', ' if j else ''}{json.dumps(sequence)}: {json.dumps(record())}")
        file.write("}")
    file.write("}\n")
