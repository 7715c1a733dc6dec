"""Figures of space: where an animal was (occupancy) and which way it took (trajectory)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.figures.colors import Color, behavior_colors
from ethobench.figures.plots import style, tables
from ethobench.figures.plots.matrices import sequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 20_000
"""Points of a path that are drawn; of longer ones, every second, third, ... point."""
Outlines = Mapping[str, ArrayLike]


def occupancy(
    source: Recording | Poses | Mapping[str, Any],
    ax: Axes | None = None,
    *,
    individual: str | None = None,
    keypoint: str | None = None,
    bins: int = 40,
    zones: Outlines | None = None,
    unit: str = "pixels",
) -> Axes:
    """Draw where an animal was: the share of the tracked time in each cell of a grid.

    Parameters
    ----------
    source : Recording, Poses, or mapping
        A mapping has ``x`` and ``y`` (n_frames,).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    individual : str, optional
        Which animal; the first by default.
    keypoint : str, optional
        Which body point; by default the centroid, the mean of the tracked keypoints.
    bins : int
        Number of cells along the longer side.
    zones : mapping of names to arrays (n_corners, 2), optional
        Outlines to draw on top.
    unit : str
        Unit of the coordinates.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/pose", individuals=1, seconds=30)
    >>> eb.plot.occupancy(data["animal01"]).get_xlabel()
    'x (pixels)'
    """
    from matplotlib.colors import PowerNorm

    if bins < 2:
        raise ParameterError(f"`bins` must be at least 2, got {bins}")
    path, (low, high) = _path(source, individual, keypoint, zones)
    cell = float((high - low).max()) / bins
    counts_per_axis = np.maximum(np.ceil((high - low) / cell).astype(np.int64), 1)
    edges = [low[k] + cell * np.arange(counts_per_axis[k] + 1) for k in range(2)]
    tracked = path[~np.isnan(path).any(axis=1)]
    counts, *_ = np.histogram2d(tracked[:, 0], tracked[:, 1], bins=edges)
    share = 100 * counts.T / max(len(tracked), 1)
    ax = style.get_axes(ax, height_mm=_height(low, high, 60))
    most = float(np.quantile(share[share > 0], 0.99)) if (share > 0).any() else 1.0
    shown = np.ma.masked_equal(share, 0.0)
    image = ax.pcolormesh(
        edges[0],
        edges[1],
        shown,
        cmap=sequential().with_extremes(bad="white"),
        norm=PowerNorm(0.5, 0.0, most),
        linewidth=0,
        rasterized=True,
    )
    _outline(ax, zones)
    _frame(ax, low, high, unit)
    bar = style.figure_of(ax).colorbar(image, ax=ax, shrink=0.75, pad=0.02, aspect=18, extend="max" if share.max() > most else "neither")
    bar.set_label("tracked time (%)", fontsize=style.text_size(ax))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=style.text_size(ax, 0.5), width=0.6, length=2)
    bar.ax.minorticks_off()
    bar.ax.locator_params(nbins=4)
    return style.finish(ax, spines=("left", "bottom"))


def trajectory(
    source: Recording | Poses | Mapping[str, Any],
    ax: Axes | None = None,
    *,
    individual: str | None = None,
    keypoint: str | None = None,
    annotator: str | None = None,
    behaviors: Sequence[str] | None = None,
    zones: Outlines | None = None,
    unit: str = "pixels",
    colors: Mapping[str, Color | str] | None = None,
) -> Axes:
    """Draw the path of an animal: gray, with chosen behaviors in their colors; or from light (start) to dark (end).

    Gaps in the tracking interrupt the path.

    Parameters
    ----------
    source : Recording, Poses, or mapping
        A mapping has ``x`` and ``y`` (n_frames,).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default those of a new figure, 89 mm wide.
    individual : str, optional
        Which animal; the first by default.
    keypoint : str, optional
        Which body point; by default the centroid, the mean of the tracked keypoints.
    annotator : str, optional
        Whose labels of a recording are drawn.
    behaviors : sequence of str, optional
        Behaviors to color; a recording must have labels of them.
    zones : mapping of names to arrays (n_corners, 2), optional
        Outlines to draw on top.
    unit : str
        Unit of the coordinates.
    colors : mapping, optional
        Color of each behavior.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/pose", individuals=1, seconds=30)
    >>> eb.plot.trajectory(data["animal01"], behaviors=["attack"]).get_ylabel()
    'y (pixels)'
    """
    from matplotlib.collections import LineCollection

    path, (low, high) = _path(source, individual, keypoint, zones)
    step = max(1, -(-len(path) // MAX_POINTS))
    points = path[::step]
    segments = np.stack((points[:-1], points[1:]), axis=1)
    full_range = ~np.isnan(segments).any(axis=(1, 2))
    ax = style.get_axes(ax, height_mm=_height(low, high, 76) + 5)
    legend = None
    if behaviors is None:
        lines = LineCollection(list(segments[full_range]), array=np.linspace(0.18, 1, max(len(segments), 1))[full_range], cmap=sequential())
        lines.set(clim=(0, 1), linewidth=0.6, rasterized=len(segments) > 5000)
        ax.add_collection(lines)
        tracked = points[~np.isnan(points).any(axis=1)]
        for position, mark, text in ((tracked[0], "o", "start"), (tracked[-1], "s", "end")):
            ax.scatter(
                position[0], position[1], s=18, marker=mark, color="#b1491a", edgecolors="white", linewidths=0.5, zorder=4, label=text
            )
        legend = style.add_legend(ax, ax.get_legend_handles_labels()[0])
    else:
        ax.add_collection(LineCollection(list(segments[full_range]), colors="#c3c9cf", linewidth=0.5, rasterized=len(segments) > 5000))
        shades = _draw_behaviors(ax, source, segments, full_range, step, behaviors, annotator, colors)
        legend = style.add_legend(ax, style.patches(shades))
    _outline(ax, zones)
    _frame(ax, low, high, unit)
    return style.finish(ax, spines=("left", "bottom"), legend=legend)


def _draw_behaviors(
    ax: Axes, source: Any, segments: Any, full_range: Any, step: int, behaviors: Sequence[str], annotator: str | None, colors: Any
) -> dict[str, str]:
    from matplotlib.collections import LineCollection

    if not isinstance(source, Recording):
        raise ParameterError("behaviors are drawn on the path of a Recording with labels; omit `behaviors` for poses alone")
    labels = source.annotation(annotator)
    rate = source.rate or labels.rate
    shades = {name: style.hex_color(color) for name, color in {**behavior_colors([labels], "light"), **(colors or {})}.items()}
    for name in behaviors:
        spans = labels.spans(name)
        at = (np.arange(len(segments)) * step + 0.5) / rate * labels.rate
        inside = np.searchsorted(spans.start, at, side="right") - 1
        stop = np.maximum.accumulate(spans.stop) if len(spans.stop) else spans.stop
        chosen = (inside >= 0) & (at < stop[np.maximum(inside, 0)]) if len(stop) else np.zeros(len(segments), dtype=bool)
        ax.add_collection(
            LineCollection(
                list(segments[full_range & chosen]), colors=shades[name], linewidth=1.1, zorder=3, rasterized=len(segments) > 5000
            )
        )
    return {name: shades[name] for name in behaviors}


def _path(source: Any, individual: str | None, keypoint: str | None, zones: Outlines | None) -> tuple[Any, tuple[Any, Any]]:
    """Return the path (n_frames, 2), and the corners of what is shown: path and zones, with a margin."""
    track = source if isinstance(source, Mapping) else tables.position_table(source, individual=individual, keypoint=keypoint)
    path = np.stack((np.asarray(track["x"], dtype=float), np.asarray(track["y"], dtype=float)), axis=1)
    path[~np.isfinite(path).all(axis=1)] = np.nan
    tracked = path[~np.isnan(path).any(axis=1)]
    if not len(tracked):
        raise EthobenchError("the animal was never tracked, so there is no path to draw")
    corners = np.concatenate([tracked, *(np.asarray(outline, dtype=float).reshape(-1, 2) for outline in (zones or {}).values())])
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = 0.03 * max(float((high - low).max()), 1e-9)
    return path, (low - margin, high + margin)


def _height(low: Any, high: Any, width_mm: float) -> float:
    """Return the height of a figure whose axes are `width_mm` wide, so that equal scales leave no margins."""
    return float(np.clip(13 + width_mm * (high[1] - low[1]) / max(high[0] - low[0], 1e-9), 35, 160))


def _outline(ax: Axes, zones: Outlines | None) -> None:
    for name, outline in (zones or {}).items():
        corners = np.asarray(outline, dtype=float).reshape(-1, 2)
        closed = np.concatenate((corners, corners[:1]))
        ax.plot(closed[:, 0], closed[:, 1], color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=5)
        top = corners[np.argmin(corners.sum(axis=1))]
        ax.text(
            top[0], top[1], f" {style.label(name)}", ha="left", va="top", fontsize=style.text_size(ax, 0.5), color=style.INK, zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
        )  # fmt: skip


def _frame(ax: Axes, low: Any, high: Any, unit: str) -> None:
    """Set equal scales, with the origin at the top left as in videos."""
    ax.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), aspect="equal", xlabel=f"x ({unit})", ylabel=f"y ({unit})")
    ax.locator_params(nbins=5)
