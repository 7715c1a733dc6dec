"""Statistics as plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from ethobench.metrics.base import Array, Statistics


def statistics_name(function: Statistics) -> str:
    """Return a name for a function that makes statistics."""
    return f"{function.__module__.removeprefix('ethobench.metrics.')}.{function.__qualname__}"


def pack(table: Array) -> dict[str, Any]:
    """Write an array as its shape and the places and values that are not zero."""
    flat = table.reshape(-1)
    places = np.flatnonzero(flat)
    values = [int(v) if v == int(v) else float(v) for v in flat[places] if np.isfinite(v)] if np.isfinite(flat).all() else None
    return {"shape": list(table.shape), "places": places.tolist() if values is not None else None, "values": values}


def unpack(packed: Sequence[Mapping[str, Any]]) -> Array:
    """Read tables that `pack` wrote, one below the other; all at once, because there may be many small ones."""
    sizes = np.array([prod(one["shape"]) for one in packed])
    offsets = np.cumsum(sizes) - sizes
    table = np.zeros(int(sizes.sum()))
    known = [one["places"] or () for one in packed]
    places = np.fromiter(chain.from_iterable(known), dtype=np.int64) + np.repeat(offsets, [len(one) for one in known])
    table[places] = np.fromiter(chain.from_iterable(one["values"] or () for one in packed), dtype=np.float64)
    for one, offset, size in zip(packed, offsets, sizes, strict=True):
        if one["places"] is None:
            table[offset : offset + size] = np.nan
    return table.reshape(-1, *packed[0]["shape"][1:])
