"""Pivot tables: tidy rows of a figure spread over rows and columns, as the template prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethobench.reports.report_data import Cell, Figure, Group
from ethobench.reports.score_tables import ALL

MINUS = "\u2212"
DASH = "–"
DEFAULT_SETTING = "full"


def pivot(figure: Figure, group: Group) -> list[dict[str, Any]]:
    """Return the tables of a figure: one for each group, with rows, columns and cells as `encode` maps them."""
    channels = _Channels(figure)
    tables: dict[tuple[Cell, ...], dict[tuple[Cell, ...], dict[Cell, Mapping[str, Cell]]]] = {}
    for cells in figure["rows"]:
        row = dict(zip(figure["columns"], cells, strict=True))
        by_column = tables.setdefault(channels.key(row, "group"), {}).setdefault(channels.key(row, "row"), {})
        by_column[row[channels.column]] = row
    colors = {b["name"]: b["color"] for b in group["behaviors"]}
    background = {b["name"] for b in group["behaviors"] if b["background"]}
    result = []
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
        result.append(
            {
                "gauged": channels.column == "measure",
                "caption": " · ".join(map(str, name)) if len(tables) > 1 or len(name) > 1 else "",
                "columns": [channels.label(channels.column, column) for column in columns],
                "rows": [
                    {
                        **_row_label(channels, key),
                        "color": colors.get(str(key[0])) if channels.names("row")[0] == "behavior" else None,
                        "style": "total" if key[0] == ALL else "quiet" if key[0] in background else "",
                        "cells": [_cell(channels, cells.get(column)) for column in columns],
                    }
                    for key, cells in rows.items()
                ],
            }
        )
    return result


class _Channels:
    """The mapping of rows, columns and values of a table to columns of a figure."""

    def __init__(self, figure: Figure) -> None:
        self.encode = figure["encode"]
        self.column = self.encode["column"]
        self.reference = figure["options"].get("reference", "")
        self.measures = {m["name"]: m for m in figure["options"].get("measures", [])}

    def names(self, channel: str) -> Sequence[str]:
        columns = self.encode[channel]
        return [columns] if isinstance(columns, str) else columns

    def key(self, row: Mapping[str, Cell], channel: str) -> tuple[Cell, ...]:
        return tuple(row[name] for name in self.names(channel))

    def label(self, name: str, value: Cell) -> str:
        if name == "measure":
            return str(self.measures[value]["label"]) if value in self.measures else str(value)
        return "all behaviors" if name == "behavior" and value == ALL else str(value)

    def value(self, row: Mapping[str, Cell], channel: str) -> float | None:
        value = row[self.encode[channel]] if channel in self.encode else None
        return None if value is None else float(value)


def _row_label(channels: _Channels, key: tuple[Cell, ...]) -> dict[str, str]:
    first, *rest = (channels.label(name, value) for name, value in zip(channels.names("row"), key, strict=True))
    return {"label": first, "detail": ", ".join(text for text in rest if text != DEFAULT_SETTING)}


def _cell(channels: _Channels, row: Mapping[str, Cell] | None) -> dict[str, Any]:
    value = None if row is None else channels.value(row, "value")
    if row is None or value is None:
        return {"value": DASH, "gauge": None, "details": []}
    low, high, spread, reference, difference = (channels.value(row, name) for name in ("low", "high", "spread", "reference", "difference"))
    details = []
    if low is not None and high is not None:
        details.append(f"[{number(low, 2)}, {number(high, 2)}]")
    if spread is not None:
        details.append(f"± {number(spread)}")
    if reference is not None:
        comparison = "" if difference is None else f" ({'+' if difference > 0 else ''}{number(difference)})"
        details.append(f"{channels.reference} {number(reference)}{comparison}")
    bounded = channels.measures.get(row.get("measure"), {}).get("range")
    return {"value": number(value), "gauge": _gauge(value, low, high, reference) if bounded else None, "details": details}


def _gauge(value: float, low: float | None, high: float | None, reference: float | None) -> dict[str, Any]:
    """Return the positions of a value between 0 and 1, its interval and its reference on an axis of 100 units."""
    span = None if low is None or high is None else (round(100 * low, 1), round(100 * (high - low), 1))
    return {"at": round(100 * value, 1), "span": span, "reference": None if reference is None else round(100 * reference, 1)}


def number(value: float, digits: int = 3) -> str:
    """Return a number as text, formatted as by the script of the page.

    >>> number(-0.12345), number(1234.5)
    ('−0.123', '1,234')
    """
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else digits
    return f"{value:,.{digits}f}".replace("-", MINUS)
