"""Files of the benchmark BEBE: dataset folders (``bebe``) and predictions (``bebe_predictions``).

A folder contains ``dataset_metadata.yaml`` and ``clip_data/<clip>.csv``. Clips have no header; the last two columns are the individual
and an integer label. Label 0 is unknown and read as unobserved. A single clip can be read by its path.

Predictions have one integer per sample and row, and no header: 0 is unknown, 1 is the first behavior.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from ethobench.core import Annotation, ClockOrigin, Ethogram, Observed, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.messages import Message, ReaderOption
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.formats.base import Format, register_format, select_entries
from ethobench.formats.bouts import frames_rate
from ethobench.formats.parse_cache import cached_arrays
from ethobench.formats.size_limits import check_label, check_table
from ethobench.formats.text import Head, guess_delimiter, parse_integer, read_text, split_rows, without_empty_end

METADATA = "dataset_metadata.yaml"
CLIPS = "clip_data"
MAX_CLIP_ID = 200  # bytes; file systems allow 255, with the suffix
PARSER = "bebe-1"
SNIFFED_ROWS = 50


@register_format("bebe")
class Bebe(Format):
    """A folder of labeled bio-logger recordings, as published by BEBE."""

    title = "BEBE folder"
    contents = ("annotations", "signals")

    def sniff(self, path: Path, head: Head) -> float:
        return 1.0 if (_root(path) / METADATA).is_file() else 0.0

    def entries(self, path: Path) -> list[str]:
        return _clips(path, read_metadata(_root(path)))

    def read(self, path: Path, entry: str | None = None) -> list[Recording]:
        root = _root(path)
        metadata = read_metadata(root)
        return [read_clip(root, metadata, clip) for clip in select_entries(path, entry, _clips(path, metadata))]


@register_format("bebe_predictions")
class BebePredictions(Format):
    """One integer per sample, as written by the models of BEBE and read by its evaluation.

    Options for reading: ``behaviors``, the names of the behaviors; ``rate``. The file states neither.
    """

    title = "BEBE predictions"
    suffixes = (".bebe.csv",)
    keeps = ("length", "observed")
    names_behaviors = False

    def sniff(self, path: Path, head: Head) -> float:
        if path.parent.name != "predictions" and not path.name.endswith(self.suffixes):
            return 0.0
        cells = [cell for row in head.rows[:SNIFFED_ROWS] for cell in without_empty_end(row)]
        return 0.95 if cells and all(cell.isdecimal() for cell in cells) else 0.0

    def read(
        self, path: Path, entry: str | None = None, *, behaviors: Sequence[str] | None = None, rate: float | None = None
    ) -> list[Recording]:
        text = read_text(path)
        try:
            cells = [cell for _, row in split_rows(text, guess_delimiter(text)) for cell in without_empty_end(row)]
        except csv.Error as error:
            raise FormatError(path, str(error)) from None
        try:
            codes = np.array([parse_integer(cell) for cell in cells])
        except ValueError as error:
            raise FormatError(path, f"expected one integer per row ({error})") from None
        if not codes.size:
            raise FormatError(path, "no labels; expected one integer per row")
        if behaviors is None:
            check_label(path, int(codes.max()), f"row {int(codes.argmax()) + 1}")
        names = list(behaviors) if behaviors is not None else [f"class_{i}" for i in range(1, int(codes.max()) + 1)]
        if codes.min() < 0 or codes.max() > len(names):
            problem = f"codes from {codes.min()} to {codes.max()}, but {len(names)} behaviors in "
            raise FormatError(path, Message(problem, ReaderOption("behaviors")))
        clock, notes = frames_rate(rate)
        if behaviors is None:
            unnamed = "no names of behaviors in the file; using class_1, class_2, ... (name them with "
            message = Message(unnamed, ReaderOption("behaviors"), ")")
            notes.append(Note(message, code="numeric-labels"))
        annotation = Annotation.from_frames(codes - 1, Ethogram(names), clock, unobserved=-1)
        name = path.name.split(".")[0]
        return [Recording(name, annotations={DEFAULT_ANNOTATOR: annotation}, notes=tuple(notes), clock_origin=ClockOrigin.ASSUMED)]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:
        annotation = recordings[0].annotation()
        codes = annotation.to_codes()
        no_behavior = codes == len(annotation.ethogram)
        if no_behavior.any() and annotation.ethogram.background is None:
            raise EthobenchError(f"BEBE predictions need a behavior for each observed frame, but {int(no_behavior.sum())} have none")
        path.write_text("\n".join(map(str, codes + 1)) + "\n", encoding="utf-8", newline="\n")
        names = ", ".join(f"{i} {b.name}" for i, b in enumerate(annotation.ethogram, start=1))
        return [Note(f"BEBE predictions store neither names of behaviors nor the rate; 0 is unknown, {names}", code="lost-names")]


class Metadata(BaseModel):
    """The fields of ``dataset_metadata.yaml`` that are used; others are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    clip_column_names: list[str]
    clip_ids: list[str]
    clip_id_to_individual_id: dict[str, str]
    clip_ids_per_fold: dict[int, list[str]] = {}
    label_names: list[str]
    sr: float
    dataset_name: str = ""
    mean_overall_dur_sec: float | None = None
    dynamic_acc_only: bool = False


def read_metadata(root: Path) -> Metadata:
    """Read and check ``dataset_metadata.yaml``."""
    import yaml

    path = root / METADATA
    if not path.is_file():
        raise FormatError(root, f"not a BEBE folder: no {METADATA}")
    try:
        fields = yaml.load(read_text(path), Loader=_yaml_loader())  # noqa: S506 - a SafeLoader, compiled if available
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(path, "not valid YAML", f"line {mark.line + 1}" if mark else "") from None
    if not isinstance(fields, dict):
        raise FormatError(path, "expected a mapping that describes a dataset")
    try:
        metadata = Metadata(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, first["msg"], ".".join(map(str, first["loc"]))) from None
    if metadata.clip_column_names[-2:] != ["individual_id", "label"]:
        raise FormatError(path, "the last two columns must be individual_id and label", "clip_column_names")
    return metadata


def read_clip(root: Path, metadata: Metadata, clip: str) -> Recording:
    """Read one clip; its signals are loaded lazily."""
    if not clip or Path(clip).name != clip:
        raise FormatError(root / METADATA, f"a clip id must be a file name without folders, got {clip!r}", "clip_ids")
    if len(clip.encode("utf-8", "replace")) > MAX_CLIP_ID:
        raise FormatError(root / METADATA, f"the clip id {clip[:30]!r}... is too long for a file name", "clip_ids")
    path = root / CLIPS / f"{clip}.csv"
    if not path.is_file():
        raise FormatError(path, f"missing file of a clip that is listed in {METADATA}")
    arrays = _arrays(path, metadata)
    n_frames = int(arrays["stop"][-1]) if len(arrays["stop"]) else 0
    labeled = arrays["label"] > 0
    ethogram = Ethogram(metadata.label_names[1:], exclusive=True)
    annotation = Annotation.from_bouts(
        arrays["start"][labeled],
        arrays["stop"][labeled],
        arrays["label"][labeled] - 1,
        ethogram,
        metadata.sr,
        n_frames,
        observed=Observed(iv.intervals(arrays["start"][labeled], arrays["stop"][labeled])),
    )
    return Recording(
        clip,
        individual=metadata.clip_id_to_individual_id.get(clip, clip),
        rate=metadata.sr,
        n_frames=n_frames,
        signals=partial(_signals, path, metadata),
        annotations={"bebe": annotation},
        metadata=_recording_metadata(metadata),
    )


def _recording_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a recording that features and scores use."""
    values = {"dynamic_acc_only": metadata.dynamic_acc_only, "mean_overall_dur_sec": metadata.mean_overall_dur_sec}
    return {name: value for name, value in values.items() if value}


def _signals(path: Path, metadata: Metadata) -> Signals:
    return Signals(_arrays(path, metadata)["values"], tuple(metadata.clip_column_names[:-2]), metadata.sr)


def _arrays(path: Path, metadata: Metadata) -> Mapping[str, NDArray[Any]]:
    width, labels = len(metadata.clip_column_names), len(metadata.label_names)
    return cached_arrays(path, f"{PARSER}-{width}-{labels}", partial(_parse, path, width, labels))  # the key includes what is checked


def _parse(path: Path, width: int, n_labels: int) -> dict[str, NDArray[Any]]:
    """Return the values of a clip and the runs of its labels."""
    import pandas as pd

    if path.stat().st_size == 0:
        raise FormatError(path, "the file is empty (0 bytes)")
    with path.open("rb") as file:
        check_table(path, 1 + sum(1 for _ in file), width, path.stat().st_size)
    try:
        table = pd.read_csv(path, header=None, dtype=np.float64)
    except (ValueError, pd.errors.ParserError) as error:
        raise FormatError(path, f"a clip must contain only numbers, one sample per row ({error})") from None
    if table.shape[1] != width:
        raise FormatError(path, f"{table.shape[1]} columns, but {METADATA} lists {width}")
    cells = table.to_numpy()
    label = cells[:, -1]
    bad = ~np.isfinite(label) | (label < 0) | (label >= n_labels) | (label != np.floor(label))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise FormatError(path, f"label {label[row]:g} is not one of the {n_labels} in {METADATA}", f"row {row + 1}")
    runs = iv.encode_runs(label.astype(np.int64))
    return {"values": np.ascontiguousarray(cells[:, :-2]), "start": runs.start, "stop": runs.stop, "label": runs.values}


def _root(path: Path) -> Path:
    """Return the folder of the dataset for the folder itself, its metadata file, or one of its clips."""
    if path.is_dir():
        return path
    return path.parent if path.name == METADATA else path.parent.parent if path.parent.name == CLIPS else path


def _clips(path: Path, metadata: Metadata) -> list[str]:
    return [path.stem] if path.is_file() and path.name != METADATA else metadata.clip_ids


def _yaml_loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
