"""The lines below a table that name behaviors which never occur; such behaviors have no rows of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ethobench.cli._output import echo

Row = Mapping[str, Any]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines below a table, aligned with its cells."""
    for line in lines:
        echo(f"  {line}")


def print_never_annotated(names: Collection[str], only_predicted: Collection[str] = ()) -> None:
    """Print which behaviors were never annotated, and which were predicted but never annotated, if there are any."""
    groups = {"never annotated": names, "predicted but never annotated": only_predicted}
    print_lines(f"{text}: {', '.join(group)}" for text, group in groups.items() if group)


def without_empty_rows(rows: Sequence[Row], is_empty: Callable[[Row], bool]) -> tuple[list[Row], list[str]]:
    """Leave out the behaviors whose rows are all empty.

    Parameters
    ----------
    rows : sequence of mappings
        Each with a ``behavior``.
    is_empty : callable
        Whether a row has nothing to show.

    Returns
    -------
    list of mappings, list of str
        The rows of the other behaviors, and the names of those left out, in order.
    """
    used = {row["behavior"] for row in rows if not is_empty(row)}
    return [row for row in rows if row["behavior"] in used], list(dict.fromkeys(r["behavior"] for r in rows if r["behavior"] not in used))
