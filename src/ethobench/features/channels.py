"""Channels that belong together."""

from __future__ import annotations

import re


def axis_triples(channels: tuple[str, ...]) -> dict[str, list[int]]:
    """Find channels that differ only in an X, Y or Z: ``AccX, AccY, AccZ`` or ``AccX_Back, AccY_Back, AccZ_Back``."""
    found: dict[str, dict[str, int]] = {}
    for place, name in enumerate(channels):
        match = re.fullmatch(r"(.*?)([XYZxyz])(_.*)?", name)
        if match:
            found.setdefault(match.group(1) + (match.group(3) or ""), {})[match.group(2).upper()] = place
    return {name: [axes[a] for a in "XYZ"] for name, axes in found.items() if len(axes) == 3}
