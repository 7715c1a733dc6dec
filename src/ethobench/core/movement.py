"""Poses to and from `movement`'s xarray datasets.

The layout is that of movement's poses: dimensions time, space, keypoints and individuals; variables ``position`` and
``confidence``; attributes ``fps`` (where known), ``time_unit``, ``source_software`` and ``ds_type``. Only xarray is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.recording import Recording
from ethobench.core.signals import Poses

if TYPE_CHECKING:
    import xarray

DIMENSIONS = ("time", "space", "keypoints", "individuals")


def to_movement(recording: Recording) -> xarray.Dataset:
    """Return a recording's poses as a dataset that `movement` takes.

    Parameters
    ----------
    recording : Recording
        With poses as its signals.

    Returns
    -------
    xarray.Dataset
        Time is in seconds where the rate is known, else in frames.
    """
    poses = recording.signals
    if not isinstance(poses, Poses):
        raise EthobenchError(f"recording {recording.id!r} has no poses to hand to movement")
    n_frames = len(poses)
    rate = poses.rate or recording.rate
    attributes: dict[str, Any] = {
        "source_software": str(recording.metadata.get("source_software", "ethobench")),
        "ds_type": "poses",
        **({"fps": float(rate)} if rate else {}),
        "time_unit": "seconds" if rate else "frames",
        "recording": recording.id,
    }
    dataset: xarray.Dataset = _xarray().Dataset(
        data_vars={
            "position": (DIMENSIONS, np.ascontiguousarray(poses.positions.transpose(0, 3, 2, 1))),
            "confidence": ((DIMENSIONS[0], *DIMENSIONS[2:]), np.ascontiguousarray(poses.confidence.transpose(0, 2, 1))),
        },
        coords={
            "time": np.arange(n_frames) / rate if rate else np.arange(n_frames),
            "space": list("xyz")[: poses.positions.shape[3]],
            "keypoints": list(poses.keypoints),
            "individuals": list(poses.individuals),
        },
        attrs=attributes,
    )
    return dataset


def from_movement(dataset: xarray.Dataset, id: str) -> Recording:
    """Make a recording from a poses dataset of `movement`.

    Parameters
    ----------
    dataset : xarray.Dataset
        With the variable ``position``, and ``confidence`` where there is one; dimensions in any order.
    id : str
        What to call the recording.
    """
    if "position" not in getattr(dataset, "data_vars", {}):
        raise MismatchError("this is no poses dataset of movement: it has no variable 'position'")
    position = dataset["position"]
    missing = [name for name in DIMENSIONS if name not in position.dims]
    if missing or len(position.dims) != len(DIMENSIONS):
        raise MismatchError(f"a poses dataset has the dimensions {', '.join(DIMENSIONS)}, this one: {', '.join(map(str, position.dims))}")
    axes = [str(axis) for axis in position["space"].values] if "space" in position.coords else list("xyz")[: position.sizes["space"]]
    if axes not in (["x", "y"], ["x", "y", "z"]):
        raise MismatchError(f"positions are given as x, y or x, y, z, not as {', '.join(axes)}")
    positions = np.ascontiguousarray(position.transpose("time", "individuals", "keypoints", "space").values, dtype=np.float64)
    confidence = np.full(positions.shape[:3], np.nan)
    if "confidence" in dataset.data_vars:
        confidence = np.ascontiguousarray(dataset["confidence"].transpose("time", "individuals", "keypoints").values, dtype=np.float64)
    individuals, keypoints = _names(position, "individuals"), _names(position, "keypoints")
    rate = dataset.attrs.get("fps")
    poses = Poses(positions, confidence, individuals, keypoints, float(rate) if rate else None)
    metadata = {"source_software": str(dataset.attrs["source_software"])} if dataset.attrs.get("source_software") else {}
    return Recording(id, subjects=individuals if len(individuals) > 1 else (), signals=poses, metadata=metadata)


def _names(position: Any, dimension: str) -> tuple[str, ...]:
    if dimension in position.coords:
        return tuple(str(name) for name in position[dimension].values)
    return tuple(f"{dimension.removesuffix('s')}{i}" for i in range(position.sizes[dimension]))


def _xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise EthobenchError("handing poses to movement needs xarray: pip install ethobench[movement]") from None
    return xarray
