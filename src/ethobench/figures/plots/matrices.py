"""Matrices of shares as colored cells with numbers, for transitions and confusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.figures.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STOPS = ("#ffffff", "#d5e1f4", "#8db2e3", "#3c74c4", "#26466f", "#14263f")
"""From white to dark blue; lightness falls evenly, so it also works in gray and for all kinds of color blindness."""


def sequential() -> Any:
    """Return the color map of shares and occupancy."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ethobench", list(STOPS)).with_extremes(bad="#eef0f2")


def draw_matrix(
    ax: Axes,
    values: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    numbers: bool = True,
    right: Sequence[str] = (),
    right_title: str = "",
) -> None:
    """Draw shares (n_rows, n_columns) between 0 and 1 as cells, in percent; NaN cells stay gray. `right` has a text for each row."""
    ax.imshow(np.ma.masked_invalid(values), cmap=sequential(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(len(columns)), [style.label(name, 16) for name in columns], rotation=35, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(len(rows)), [style.label(name, 16) for name in rows])
    ax.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=0.8)
    ax.tick_params(which="both", length=0)
    if numbers and len(columns) <= 12:
        for i in range(len(rows)):
            for j in range(len(columns)):
                value = values[i, j]
                if np.isfinite(value) and value >= 0.005:
                    ink = "white" if value > 0.5 else style.INK
                    ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color=ink, fontsize=style.text_size(ax, 0.5))
        ax.set_title("% of row", loc="right", color=style.MUTED, fontsize=style.text_size(ax, 0.5), pad=2)
    for i, text in enumerate(right):
        ax.text(len(columns) - 0.35, i, text, ha="left", va="center", color=style.MUTED, fontsize=style.text_size(ax, 0.5))
    if right_title:
        ax.text(len(columns) - 0.35, -0.62, right_title, ha="left", va="bottom", color=style.MUTED, fontsize=style.text_size(ax, 0.5))
