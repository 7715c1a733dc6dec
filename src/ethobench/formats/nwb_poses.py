"""Tracked points in NWB: ndx-pose's ``PoseEstimation`` and plain ``SpatialSeries``, grouped by the clock they lie on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Poses
from ethobench.core.errors import FormatError, Note
from ethobench.formats import hdf5, pose_arrays
from ethobench.formats.nwb_content import Content, kind_of, last_name
from ethobench.formats.size_limits import check_size

if TYPE_CHECKING:
    import h5py


@dataclass
class Series:
    """One tracked point: when, where and how sure."""

    who: str
    point: str
    times: NDArray[np.float64]
    rate: float | None
    positions: NDArray[np.float64]
    confidence: NDArray[np.float64]


@dataclass
class PoseSet:
    """Points on one clock."""

    name: str
    series: list[Series]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def longest(self) -> Series:
        """The point with the most samples."""
        return max(self.series, key=lambda s: len(s.times))

    def fits(self, other: Series) -> bool:
        """Tell whether all times of another point lie on this clock."""
        mine = self.longest
        if len(other.times) == 0 or np.array_equal(mine.times, other.times):
            return True
        if len(mine.times) < 2:
            return False
        steps_from_start = (other.times - mine.times[0]) / float(np.median(np.diff(mine.times)))
        return bool((np.abs(steps_from_start - np.rint(steps_from_start)) < 0.001).all())

    def to_poses(self, path: Path, rate: float | None) -> tuple[Poses, float, list[Note]]:
        """Return the poses on an even clock, the time of their first frame, and notes."""
        first = self.longest
        times, rows = first.times, {id(s): np.arange(len(s.times)) for s in self.series}
        if not all(np.array_equal(s.times, times) for s in self.series):
            step = float(np.median(np.diff(times)))
            steps_from_start = {id(s): np.rint((s.times - times[0]) / step) for s in self.series}
            there = np.unique(np.concatenate([*steps_from_start.values()]))
            times, rows = times[0] + there * step, {key: np.searchsorted(there, where) for key, where in steps_from_start.items()}
        chosen, clock, notes = pose_arrays.even_clock(path, times, first.rate, rate, self.name)
        individuals = tuple(dict.fromkeys(s.who for s in self.series))
        keypoints = tuple(dict.fromkeys(s.point for s in self.series))
        n_axes = max(s.positions.shape[1] for s in self.series)
        shape = (len(times), len(individuals), len(keypoints), n_axes + 1)
        check_size(path, int(np.prod(shape, dtype=float)) * 8, path.stat().st_size)
        cells = np.full(shape, np.nan)
        for s in self.series:
            cell_index = (individuals.index(s.who), keypoints.index(s.point))
            cells[rows[id(s)], *cell_index, : s.positions.shape[1]] = s.positions
            cells[rows[id(s)], *cell_index, n_axes] = s.confidence
        even = np.where((chosen >= 0)[:, None, None, None], cells[chosen], np.nan)
        positions, confidence = np.ascontiguousarray(even[..., :n_axes]), np.ascontiguousarray(even[..., n_axes])
        return Poses(positions, confidence, individuals, keypoints, clock), float(times[0]) if clock and len(times) else 0.0, notes


def find_poses(path: Path, content: Content) -> list[PoseSet]:
    """Group the points of a session by processing module and clock."""
    modules: dict[str, list[Series | None]] = {}
    told: dict[str, dict[str, Any]] = {}
    for group in content.poses:
        module = last_name(group.parent)
        alone = sum(other.parent == group.parent for other in content.poses) == 1
        individual = pose_arrays.ONLY_INDIVIDUAL if alone else last_name(group).removeprefix("track=")
        order = hdf5.texts(path, group, "nodes") or hdf5.texts(path, group, "skeleton/nodes")
        series = [s for name in hdf5.names(group) if kind_of(s := hdf5.member(path, group, name)) == "PoseEstimationSeries"]
        if {*order} >= {*map(last_name, series)}:
            series.sort(key=lambda s: order.index(last_name(s)))
        modules.setdefault(module, []).extend(_read_series(path, content, s, *_whose(s, individual)) for s in series)
        told[module] = {key: texts[0] for key in ("scorer", "source_software") if (texts := hdf5.texts(path, group, key))}
    for one in content.spatial:
        above = one.parent if kind_of(one.parent) == "Position" else one
        modules.setdefault(last_name(above.parent), []).append(
            _read_series(path, content, one, pose_arrays.ONLY_INDIVIDUAL, last_name(one))
        )
    sets: list[PoseSet] = []
    for module, found in modules.items():
        mine: list[PoseSet] = []
        usable = [s for s in found if s is not None]
        for s in sorted(usable, key=lambda s: -len(s.times)):
            home = next((m for m in mine if m.fits(s) and (s.who, s.point) not in [(t.who, t.point) for t in m.series]), None)
            if home is None:
                home = PoseSet(f"{module}-{len(mine)}" if mine else module, [], told.get(module, {}))
                mine.append(home)
            home.series.append(s)
        for home in mine:
            home.series.sort(key=lambda s: next(i for i, other in enumerate(usable) if other is s))
        sets += mine
    return sets


def _whose(series: h5py.Group, individual: str) -> tuple[str, str]:
    """Tell individual and keypoint; DeepLabCut's converter has both in the description and joined in the name."""
    name = last_name(series)
    told = hdf5.plain_text(series.attrs.get("description", "")).removesuffix(".")
    point, between, who = told.removeprefix("Keypoint ").partition(" from individual ")
    if between and told.startswith("Keypoint ") and name == f"{who}_{point}":
        return who, point
    return individual, name.removeprefix("PoseEstimationSeries") or name


def _read_series(path: Path, content: Content, series: h5py.Group, who: str, point: str) -> Series | None:
    """Read one point; None, with a note, where its numbers or times are of no use."""
    data = hdf5.member(path, series, "data")
    if data is None or data.ndim != 2 or data.shape[1] not in (2, 3):
        content.notes.append(Note("positions that are not in a plane or in space are left out", series.name))
        return None
    positions = hdf5.array(path, series, "data", 2).astype(np.float64)
    positions = positions * float(data.attrs.get("conversion", 1.0)) + float(data.attrs.get("offset", 0.0))
    n = len(positions)
    names = {*series}
    sure = hdf5.array(path, series, "confidence", 1).astype(np.float64) if "confidence" in names else np.full(n, np.nan)
    rate: float | None = None
    if "timestamps" in names:
        times = hdf5.array(path, series, "timestamps", 1).astype(np.float64)
    else:
        begin = float(hdf5.array(path, series, "starting_time", 0))
        rate = float(series["starting_time"].attrs.get("rate", 0.0))
        if not rate > 0 and n > 1:
            content.notes.append(Note(f"{n} positions without timestamps or a rate are left out", series.name))
            return None
        times = begin + np.arange(n) / (rate or 1.0)
        if rate == 1.0 and kind_of(series) == "PoseEstimationSeries":
            rate = None  # what converters write for videos of unknown rate
    if not len(times) == len(sure) == n:
        raise FormatError(path, f"{n} positions, {len(sure)} confidences and {len(times)} timestamps", series.name)
    return Series(who, point, times, rate or None, positions, sure)
