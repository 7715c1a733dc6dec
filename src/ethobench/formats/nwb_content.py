"""What of an NWB session concerns us: its tables of intervals, its epochs and its tracked points."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core.errors import FormatError, Note
from ethobench.formats import hdf5

if TYPE_CHECKING:
    import h5py

OURS = "ethobench_annotations"
UNKNOWN_START = datetime(1970, 1, 1, tzinfo=UTC)
MOST_NODES = 200_000


class Content:
    """The parts of a session that concern us; links to other files are noted, never followed."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self.file = path, file
        self.notes: list[Note] = []
        self.tables: list[h5py.Group] = []
        self.epochs: list[h5py.Group] = []
        self.poses: list[h5py.Group] = []
        self.spatial: list[h5py.Group] = []
        self._seen: set[int] = set()
        for name in ("intervals", "processing", "acquisition", "analysis", "scratch"):
            if name in {*file}:
                self._look(file, name)
        self.ours = hdf5.member(path, file, f"processing/behavior/{OURS}")

    def _look(self, parent: h5py.Group, name: str) -> None:
        import h5py

        link = parent.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            self.notes.append(Note("a link to another file is not followed", f"{parent.name}/{name}"))
        if not isinstance(link, h5py.HardLink):
            return
        node = parent[name]
        address = h5py.h5o.get_info(node.id).addr
        if not isinstance(node, h5py.Group) or address in self._seen:
            return
        self._seen.add(address)
        if len(self._seen) > MOST_NODES:
            raise FormatError(self.path, f"refused: more than {MOST_NODES:,} groups")
        kind = kind_of(node)
        if kind == "PoseEstimation":
            self.poses.append(node)
        elif kind == "SpatialSeries":
            self.spatial.append(node)
        elif kind == "BehavioralEpochs":
            self.epochs.append(node)
        elif kind in ("TimeIntervals", "EthogramBouts") or {"start_time", "stop_time"} <= {*node}:
            self.tables.append(node)
        else:
            for inner in hdf5.names(node):
                self._look(node, inner)


def kind_of(node: Any) -> str:
    """Return the NWB type that a node states; empty if none."""
    return "" if node is None else hdf5.plain_text(node.attrs.get("neurodata_type", ""))


def last_name(node: Any) -> str:
    """Return the name of a node without the groups that it lies in."""
    return str(node.name.rpartition("/")[2])
