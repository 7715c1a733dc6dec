"""Figures for papers, available as ``ethobench.plot``.

Every function takes annotations, recordings, poses or scores (or a table of the numbers) and matplotlib axes, and returns the axes. Without
axes it creates a figure 89 mm wide. The numbers come from `ethobench.figures.plots.tables`, which can be used alone.
"""

from __future__ import annotations

from ethobench.figures.plots.behavior import budget, durations, ethogram, raster, transitions
from ethobench.figures.plots.groups import group_comparison
from ethobench.figures.plots.quality import agreement, confusion, learning_curve, reliability
from ethobench.figures.plots.space import occupancy, trajectory
from ethobench.figures.plots.style import WIDTHS_MM, figure, save

__all__ = [
    "WIDTHS_MM",
    "agreement",
    "budget",
    "confusion",
    "durations",
    "ethogram",
    "figure",
    "group_comparison",
    "learning_curve",
    "occupancy",
    "raster",
    "reliability",
    "save",
    "trajectory",
    "transitions",
]
