"""Units of analysis: the annotations of a dataset with the columns that identify them.

Every table of this package starts with the same columns: ``recording``, ``individual``, ``annotator``, ``subject``, and the metadata of the
recording (every column of a manifest, such as ``treatment``). Rows of several recordings are pooled by any of these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from ethobench.core import Annotation, Dataset, Recording
from ethobench.core.errors import NotFoundError, ParameterError
from ethobench.core.recording import DEFAULT_ANNOTATOR
from ethobench.metrics.budgets import budget_subjects

Annotated: TypeAlias = Dataset | Recording | Annotation | Mapping[str, Annotation] | Iterable[Recording] | Iterable[Annotation]

NAMES = ("recording", "individual", "annotator", "subject")
RESERVED = frozenset(
    {
        *(
            "n_recordings",
            "n_individuals",
            "zone",
            "bin",
            "bin_start",
            "bin_stop",
            "behavior",
            "next_behavior",
            "n_bouts",
            "total_s",
            "share",
        ),
        *("rate_per_min", "median_duration_s", "mean_duration_s", "latency_s", "inter_bout_s", "observed_s", "coverage", "n_transitions"),
        *("probability", "start_s", "stop_s", "duration_s", "unit", "distance", "time_s", "tracked_s", "mean_speed"),
        *("bouts", "seconds", "mean", "median", "latency", "corrected", "low", "high"),
    }
)
"""Columns of the tables of this package, and of the time budgets of the command line."""

ALWAYS = ("annotator", "subject")
"""Columns that are never pooled: annotations of the same frames must not be counted twice."""


class HasColumns(Protocol):
    """Something of a recording that has identifying columns."""

    @property
    def recording(self) -> Recording:
        """The recording."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """Identifying columns."""


Pooled = TypeVar("Pooled", bound=HasColumns)


@dataclass(frozen=True)
class Unit:
    """The bouts of one subject by one annotator in one recording, and its columns."""

    recording: Recording
    annotation: Annotation
    subject: str
    columns: Mapping[str, Any]


def as_recordings(data: Annotated) -> list[Recording]:
    """Return the recordings of a dataset, of annotations by name, or of single annotations.

    Raises
    ------
    ParameterError
        If `data` is nothing of the kind.

    Examples
    --------
    >>> [recording.id for recording in as_recordings({"day1": annotation})]
    ['day1']
    """
    if isinstance(data, Annotation):
        data = {"recording": data}
    if isinstance(data, Mapping):
        return [Recording(str(name), annotations={DEFAULT_ANNOTATOR: annotation}) for name, annotation in data.items()]
    items: list[Any] = [data] if isinstance(data, Recording) else list(data)
    recordings = []
    for k, item in enumerate(items, start=1):
        if not isinstance(item, (Recording, Annotation)):
            raise ParameterError(f"a Dataset, recordings or annotations are needed, got {type(item).__name__}")
        recordings.append(item if isinstance(item, Recording) else Recording(str(k), annotations={DEFAULT_ANNOTATOR: item}))
    return recordings


def metadata_columns(recordings: Iterable[Recording]) -> list[str]:
    """Return the columns of scalar metadata of recordings, in order of first appearance.

    Metadata with the name of another column of the tables, such as ``share``, have an underscore at the end.
    """
    names = {_column_name(name): None for r in recordings for name, value in r.metadata.items() if is_scalar(value)}
    return [name for name in names if name not in NAMES]


def _column_name(name: Any) -> str:
    return f"{name}_" if str(name) in RESERVED else str(name)


def is_scalar(value: Any) -> bool:
    """Whether a value fits into a cell of a table."""
    return isinstance(value, (str, int, float, bool, np.number, np.bool_))


def recording_columns(recording: Recording, metadata: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a recording; metadata that it lacks are empty."""
    values = {_column_name(name): value for name, value in recording.metadata.items() if is_scalar(value)}
    return {"recording": recording.id, "individual": recording.individual, **{name: values.get(name, "") for name in metadata}}


def list_units(recordings: Sequence[Recording], annotator: str | None = None) -> list[Unit]:
    """Return one unit for each recording, annotator and subject.

    Parameters
    ----------
    recordings : sequence of Recording
    annotator : str, optional
        Only this annotator; of several names, separated by commas, the first who annotated a recording. Recordings without are skipped.

    Raises
    ------
    NotFoundError
        If no recording has an annotation by this annotator.
    """
    metadata = metadata_columns(recordings)
    units = []
    for recording in recordings:
        if annotator is None:
            annotations = dict(recording.annotations)
        else:
            names = [
                name for name in (annotator, *(component.strip() for component in annotator.split(","))) if name in recording.annotations
            ]
            annotations = {name: recording.annotations[name] for name in names[:1]}
        columns = recording_columns(recording, metadata)
        for name, annotation in annotations.items():
            subjects = budget_subjects(annotation)
            units += [Unit(recording, annotation, subject, {**columns, "annotator": name, "subject": subject}) for subject in subjects]
    if annotator is not None and not units and recordings:
        available = ", ".join(dict.fromkeys(name for r in recordings for name in r.annotations)) or "none"
        raise NotFoundError(f"no annotator {annotator!r}; available: {available}")
    return units


def pooled_by(units: Sequence[Pooled], by: Sequence[str] | str | None) -> tuple[list[str], dict[tuple[Any, ...], list[Pooled]]]:
    """Return the names of the identifying columns, and the units by their values.

    Parameters
    ----------
    units : sequence
        Each with ``columns``, as `Unit`.
    by : str or sequence of str, optional
        Columns by which recordings are pooled. Default: each recording is a unit. Annotators and subjects are never pooled.

    Raises
    ------
    NotFoundError
        If no recording has such a column.
    """
    available = list(units[0].columns) if units else list(NAMES)
    chosen = ["recording"] if by is None else [by] if isinstance(by, str) else list(by)
    unknown = [name for name in chosen if name not in available]
    if unknown:
        raise NotFoundError(f"no column {', '.join(map(repr, unknown))}; available: {', '.join(available)}")
    names = [*chosen, *(name for name in ALWAYS if name in available and name not in chosen)]
    groups: dict[tuple[Any, ...], list[Pooled]] = {}
    for unit in units:
        groups.setdefault(tuple(unit.columns[name] for name in names), []).append(unit)
    return names, groups


def shared_columns(units: Sequence[HasColumns]) -> dict[str, Any]:
    """Return the columns of pooled units: their common value, or an empty text where they differ; and the number of recordings."""
    first = units[0].columns
    columns = {name: value if all(unit.columns[name] == value for unit in units) else "" for name, value in first.items()}
    ordered = {name: columns[name] for name in NAMES if name in columns} | columns
    return {**ordered, "n_recordings": len({unit.recording.id for unit in units})}
