"""The summary dict of a report: plain values for JSON.

A report has groups, a group has figures, and a figure has its numbers as columns and rows. The same rows are drawn and
offered for download; `encode` maps visual channels to columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from math import isfinite
from typing import Any, NotRequired, TypeAlias, TypedDict

from ethobench.core import Ethogram
from ethobench.core.occurrence import Occurrence

MAX_PANELS = 4
Cell: TypeAlias = str | float | int | bool | None


class Figure(TypedDict):
    """A figure or table of the page.

    ``kind`` is how it is drawn: pivot and table (by the template), raster, bars, dots, curves, histograms, matrix (by the
    script of the page). ``encode`` maps visual channels to columns: ``choose`` (a list; one value at a time is shown), ``facet``
    (one panel for each value), ``x``, ``y``, ``low``, ``high``, ``series``, and so on.
    """

    id: str
    kind: str
    title: str
    definition: str
    columns: list[str]
    rows: list[list[Cell]]
    encode: dict[str, Any]
    options: dict[str, Any]
    recordings: NotRequired[list[dict[str, Any]]]


class Group(TypedDict):
    """Figures that share their behaviors; ``absent`` has lines of text that name behaviors which never occur."""

    id: str
    title: str
    behaviors: list[dict[str, Any]]
    figures: list[Figure]
    absent: NotRequired[list[str]]


class Fact(TypedDict):
    """A key number at the top of the page."""

    label: str
    value: str
    details: list[str]


class Methods(TypedDict):
    """Text for a methods section, and the references that it cites."""

    paragraphs: list[str]
    references: list[str]


class Report(TypedDict):
    """The contents of a page."""

    title: str
    lead: str
    warning: NotRequired[str]
    facts: list[Fact]
    notes: list[str]
    groups: list[Group]
    methods: NotRequired[Methods]
    version: str


def make_figure(
    id: str,
    kind: str,
    title: str,
    definition: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    encode: Mapping[str, Any] | None = None,
    **options: Any,
) -> Figure:
    """Return a figure; numbers are rounded to six digits, undefined ones become None."""
    return {
        "id": id,
        "kind": kind,
        "title": title,
        "definition": definition,
        "columns": list(columns),
        "rows": [[plain(cell) for cell in row] for row in rows],
        "encode": dict(encode or {}),
        "options": options,
    }


def too_many_panels(models: Sized) -> bool:
    """Return whether there are too many models to be shown side by side, so that one is chosen at a time."""
    return len(models) > MAX_PANELS


def per_model(models: Sized, *choose: str) -> dict[str, Any]:
    """Return the entries of `encode` that show models side by side, or let one be chosen, after other choices."""
    return {"choose": [*choose, "model"]} if too_many_panels(models) else {"choose": list(choose), "facet": "model"}


def describe_behaviors(ethogram: Ethogram, occurrence: Occurrence | None = None) -> list[dict[str, Any]]:
    """Return the behaviors in order, each with its index in the palette (``color``) and whether it occurs (``occurs``).

    Parameters
    ----------
    ethogram : Ethogram
    occurrence : Occurrence, optional
        How often they occur; by default, all equally often.
    """
    colors = (occurrence or Occurrence(ethogram, {})).color_indices()
    never = () if occurrence is None else occurrence.never_annotated
    return [
        {
            "name": b.name,
            "definition": b.definition,
            "background": code == ethogram.background,
            "point": b.point,
            "color": colors[b.name],
            "occurs": b.name not in never,
        }
        for code, b in enumerate(ethogram)
    ]


def without_behaviors(figure: Figure, names: Collection[str]) -> Figure:
    """Return a figure without the rows of some behaviors; a confusion matrix also without the columns."""
    columns = ("truth", "prediction") if figure["kind"] == "matrix" else ("behavior",)
    indices = [index for index, column in enumerate(figure["columns"]) if column in columns]
    return {**figure, "rows": [row for row in figure["rows"] if not any(row[index] in names for index in indices)]}


def plain(value: Any) -> Cell:
    """Return a number rounded to six digits as a plain value for JSON, None for NaN and infinity; other values unchanged."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return int(value)
    number = float(value)
    return float(f"{number:.6g}") if isfinite(number) else None
