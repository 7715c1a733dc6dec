"""Statistics as plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ethobench.metrics._base import Array, Statistics


def statistics_name(function: Statistics) -> str:
    """Return a name for a function that makes statistics."""
    return f"{function.__module__.removeprefix('ethobench.metrics.')}.{function.__qualname__}"


def pack(table: Array) -> dict[str, Any]:
    """Write an array as its shape and the places and values that are not zero."""
    flat = table.reshape(-1)
    places = np.flatnonzero(flat)
    values = [int(v) if v == int(v) else float(v) for v in flat[places] if np.isfinite(v)] if np.isfinite(flat).all() else None
    return {"shape": list(table.shape), "places": places.tolist() if values is not None else None, "values": values}


def unpack(packed: Mapping[str, Any]) -> Array:
    """Read what `pack` wrote."""
    table = np.zeros(int(np.prod(packed["shape"])))
    if packed["places"] is None:
        table[:] = np.nan
    else:
        table[packed["places"]] = packed["values"]
    return table.reshape(packed["shape"])
