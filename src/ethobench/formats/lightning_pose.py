"""Lightning Pose predictions: DeepLabCut's table with the scorer ``heatmap_tracker`` or the like.

Several views are several files, one for each camera; views that one (mirrored) video shows stay one individual, whose
keypoints have the view in their names. The ``set`` column of predictions on labelled frames is kept in the metadata.
"""

from __future__ import annotations

from pathlib import Path

from ethobench.core import Recording
from ethobench.formats.base import Format, pick_entry, register_format
from ethobench.formats.deeplabcut import TRACKER, read_table, scorer_of
from ethobench.formats.text import Head


@register_format("lightning_pose")
class LightningPose(Format):
    """Rows of x, y, likelihood for every keypoint."""

    title = "Lightning Pose"
    suffixes = (".csv",)
    contents = ("poses",)

    def sniff(self, path: Path, head: Head) -> float:
        scorer = scorer_of(head)
        return 1.0 if scorer is not None and scorer.endswith(TRACKER) else 0.0

    def entries(self, path: Path) -> list[str]:
        return [path.stem]

    def read(self, path: Path, entry: str | None = None, *, rate: float | None = None) -> list[Recording]:
        pick_entry(path, entry, [path.stem])
        return [read_table(path, rate, "LightningPose")]
