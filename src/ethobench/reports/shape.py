"""What a report is made of: plain values that JSON can hold.

A report has groups, a group has figures, and a figure has its numbers as columns and rows. What is drawn and what is
downloaded are the same rows; `encode` says which column plays which part in the drawing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from math import isfinite
from typing import Any, NotRequired, TypeAlias, TypedDict

from ethobench.core import Ethogram
from ethobench.core.occurrence import Occurrence

MOST_PANELS = 4
Cell: TypeAlias = str | float | int | bool | None


class Figure(TypedDict):
    """One figure.

    ``kind`` is how it is drawn: pivot and table (by the template), raster, bars, dots, curves, histograms, matrix (by the
    page's script). ``encode`` names the columns that play a part: ``choose`` (a list: one value at a time is shown), ``facet``
    (a panel for each value), ``x``, ``y``, ``low``, ``high``, ``series``, and so on.
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
    """Figures that belong together and share their behaviors; ``absent`` are lines that name behaviors which never occur."""

    id: str
    title: str
    behaviors: list[dict[str, Any]]
    figures: list[Figure]
    absent: NotRequired[list[str]]


class Fact(TypedDict):
    """A large figure at the top of the page."""

    label: str
    value: str
    details: list[str]


class Report(TypedDict):
    """Everything that a page shows."""

    title: str
    lead: str
    warning: NotRequired[str]
    facts: list[Fact]
    notes: list[str]
    groups: list[Group]
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
    """Make a figure; numbers are rounded to six digits, undefined ones become None."""
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


def crowded(models: Sized) -> bool:
    """Tell whether there are too many models to be shown side by side, so that one is chosen at a time."""
    return len(models) > MOST_PANELS


def per_model(models: Sized, *choose: str) -> dict[str, Any]:
    """Return the part of `encode` that sets models side by side, or lets one be chosen, after other choices."""
    return {"choose": [*choose, "model"]} if crowded(models) else {"choose": list(choose), "facet": "model"}


def describe_behaviors(ethogram: Ethogram, occurrence: Occurrence | None = None) -> list[dict[str, Any]]:
    """List the behaviors in their order, each with its place in the palette (``color``) and whether it occurs (``occurs``).

    Parameters
    ----------
    ethogram : Ethogram
    occurrence : Occurrence, optional
        How often they occur; unless given, all are taken to occur equally often.
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
    """Leave out the rows of some behaviors, of a confusion matrix also the columns."""
    columns = ("truth", "prediction") if figure["kind"] == "matrix" else ("behavior",)
    places = [place for place, column in enumerate(figure["columns"]) if column in columns]
    return {**figure, "rows": [row for row in figure["rows"] if not any(row[place] in names for place in places)]}


def plain(value: Any) -> Cell:
    """Return a number as JSON can hold it and a reader needs it; other things as they are."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return int(value)
    number = float(value)
    return float(f"{number:.6g}") if isfinite(number) else None
