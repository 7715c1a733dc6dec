"""From tidy rows to the tables that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethobench.reports.measures import ALL
from ethobench.reports.shape import Cell, Figure, Group

MINUS = "\u2212"
DASH = "–"
USUAL = "full"


def pivot(figure: Figure, group: Group) -> list[dict[str, Any]]:
    """Spread the rows of a figure over tables: one for each group, with rows, columns and cells as `encode` says."""
    part = _Parts(figure)
    tables: dict[tuple[Cell, ...], dict[tuple[Cell, ...], dict[Cell, Mapping[str, Cell]]]] = {}
    for cells in figure["rows"]:
        row = dict(zip(figure["columns"], cells, strict=True))
        here = tables.setdefault(part.key(row, "group"), {}).setdefault(part.key(row, "row"), {})
        here[row[part.column]] = row
    colors = {b["name"]: b["color"] for b in group["behaviors"]}
    background = {b["name"] for b in group["behaviors"] if b["background"]}
    shown = []
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for found in rows.values() for column in found))
        shown.append(
            {
                "gauged": part.column == "measure",
                "caption": " · ".join(map(str, name)) if len(tables) > 1 or len(name) > 1 else "",
                "columns": [part.label(part.column, column) for column in columns],
                "rows": [
                    {
                        **_row_label(part, key),
                        "color": colors.get(str(key[0])) if part.names("row")[0] == "behavior" else None,
                        "style": "whole" if key[0] == ALL else "quiet" if key[0] in background else "",
                        "cells": [_cell(part, found.get(column)) for column in columns],
                    }
                    for key, found in rows.items()
                ],
            }
        )
    return shown


class _Parts:
    """Which column plays which part in a table."""

    def __init__(self, figure: Figure) -> None:
        self.encode = figure["encode"]
        self.column = self.encode["column"]
        self.reference = figure["options"].get("reference", "")
        self.measures = {m["name"]: m for m in figure["options"].get("measures", [])}

    def names(self, part: str) -> Sequence[str]:
        named = self.encode[part]
        return [named] if isinstance(named, str) else named

    def key(self, row: Mapping[str, Cell], part: str) -> tuple[Cell, ...]:
        return tuple(row[name] for name in self.names(part))

    def label(self, name: str, value: Cell) -> str:
        if name == "measure":
            return str(self.measures[value]["label"]) if value in self.measures else str(value)
        return "all behaviors" if name == "behavior" and value == ALL else str(value)

    def value(self, row: Mapping[str, Cell], part: str) -> float | None:
        value = row[self.encode[part]] if part in self.encode else None
        return None if value is None else float(value)


def _row_label(part: _Parts, key: tuple[Cell, ...]) -> dict[str, str]:
    first, *rest = (part.label(name, value) for name, value in zip(part.names("row"), key, strict=True))
    return {"label": first, "detail": ", ".join(text for text in rest if text != USUAL)}


def _cell(part: _Parts, row: Mapping[str, Cell] | None) -> dict[str, Any]:
    value = None if row is None else part.value(row, "value")
    if row is None or value is None:
        return {"value": DASH, "gauge": None, "details": []}
    low, high, spread, reference, difference = (part.value(row, name) for name in ("low", "high", "spread", "reference", "difference"))
    details = []
    if low is not None and high is not None:
        details.append(f"[{number(low, 2)}, {number(high, 2)}]")
    if spread is not None:
        details.append(f"± {number(spread)}")
    if reference is not None:
        beside = "" if difference is None else f" ({'+' if difference > 0 else ''}{number(difference)})"
        details.append(f"{part.reference} {number(reference)}{beside}")
    bounded = part.measures.get(row.get("measure"), {}).get("range")
    return {"value": number(value), "gauge": _gauge(value, low, high, reference) if bounded else None, "details": details}


def _gauge(value: float, low: float | None, high: float | None, reference: float | None) -> dict[str, Any]:
    """Place a value between 0 and 1, its interval and what it is compared with on a line of 100 units."""
    span = None if low is None or high is None else (round(100 * low, 1), round(100 * (high - low), 1))
    return {"at": round(100 * value, 1), "span": span, "reference": None if reference is None else round(100 * reference, 1)}


def number(value: float, digits: int = 3) -> str:
    """Write a number as the page's script does.

    >>> number(-0.12345), number(1234.5)
    ('−0.123', '1,234')
    """
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else digits
    return f"{value:,.{digits}f}".replace("-", MINUS)
