"""Corrections saved by the viewer, as further annotators of a dataset."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ethobench.core import Annotation, Dataset
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.datasets.manifest_tables import MANIFEST
from ethobench.formats import read_recordings
from ethobench.formats.tables import read_table


def with_corrections(data: Dataset, folder: Path, rename: Mapping[str, str]) -> Dataset:
    """Add the corrections in a folder as further annotators; a correction that cannot be read is skipped with a warning.

    Parameters
    ----------
    data : Dataset
    folder : Path
        Written by the viewer: a ``recordings.csv`` with the columns recording, annotations and annotator, and the files it lists.
    rename : mapping of str to str
        Behaviors to rename, old name to new name.

    Raises
    ------
    FormatError
        If the folder has no manifest, or none of its corrections can be added.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise FormatError(folder, f"not a folder of corrections: it has no {MANIFEST}")
    digest = hashlib.blake2b(data.version.encode(), digest_size=8)
    corrections: dict[str, dict[str, Annotation]] = {}
    errors: list[Exception] = []
    table = read_table(manifest)
    for cells, line in zip(table.rows, table.row_numbers, strict=True):
        row = dict(zip(table.header, cells, strict=True))
        name, annotator, path = row.get("recording", ""), row.get("annotator", ""), folder / row.get("annotations", "")
        try:
            if annotator in corrections.get(name, {}):
                raise FormatError(manifest, f"duplicate correction of {name!r} by {annotator!r}", f"row {line}")
            annotation = _read_correction(data, manifest, path, name, annotator, f"row {line}")
            corrections.setdefault(name, {})[annotator] = annotation.rename_existing(rename).with_ethogram(data.ethogram)
            digest.update(f"{name}\0{annotator}\0".encode() + path.read_bytes())
        except (EthobenchError, OSError) as error:
            errors.append(error)
    if errors and not corrections:
        raise errors[0]
    for reason in errors:
        warnings.warn(f"a correction is skipped: {reason}", ReadWarning, stacklevel=3)
    recordings = tuple(r.copy(annotations={**r.annotations, **corrections[r.id]}) if r.id in corrections else r for r in data)
    return replace(data, recordings=recordings, version=digest.hexdigest())


def _read_correction(data: Dataset, manifest: Path, path: Path, name: str, annotator: str, location: str) -> Annotation:
    folder = manifest.parent
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(manifest, f"{path.name!r} is not a file in {folder}", location)
    annotation = {r.id: r.annotations.get(annotator) for r in read_recordings(path, warn=False)}.get(name)
    if annotation is None or not any(recording.id == name for recording in data):
        raise FormatError(manifest, f"no annotation of {name!r} by {annotator!r} to add to {data.name}", location)
    return annotation
