"""Submissions to the MABe 2025 challenge: at most one action of an agent towards a target in each frame, as its scorer requires.

Where a prediction has several actions of a pair in one frame, the bout with the highest confidence keeps the frame. Among bouts of equal or
no confidence the shortest one does, because a short action within a long one would be lost otherwise; then the one that starts first, then
the first in the ethogram.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Prediction, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError, Note, NotFoundError
from ethobench.core.files import write_text
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.formats.mabe2025_tables import BOUT_COLUMNS, SELF, VideoMetadata, mouse_name, read_metadata

SUBMISSION = "mabe2025_submission"
HEADER = ("row_id", "video_id", *BOUT_COLUMNS)
Bout = tuple[str, str, str, int, int]


def write_submission(
    predictions: Mapping[str, Annotation | Prediction], path: str | Path, *, metadata: Any = None, overwrite: bool = False
) -> list[Note]:
    """Write predictions as a submission that the scorer of the MABe 2025 challenge accepts.

    Parameters
    ----------
    predictions : mapping of str to Annotation or Prediction
        By video. Every bout needs a subject; one without a target is an action on oneself.
    path : str or Path
        CSV file to write.
    metadata : path or DataFrame, optional
        With ``video_id, lab_id, behaviors_labeled``: bouts that are not labeled in their video, which the scorer ignores, are omitted.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    list of Note
        How many bouts were omitted, and in how many frames one of several actions was chosen.

    Raises
    ------
    MismatchError
        If a bout has no subject.

    Examples
    --------
    >>> from ethobench import Annotation
    >>> pred = Annotation.from_bouts([0, 40], [100, 60], ["sniff", "attack"], ["sniff", "attack"], 30, 100,
    ...     subject=["mouse1"] * 2, target=["mouse2"] * 2, confidence=[0.6, 0.9])
    >>> write_submission({"101": pred}, folder / "submission.csv")[0].message
    'chose one of several actions of a pair in 20 frames'
    >>> print((folder / "submission.csv").read_text(), end="")
    row_id,video_id,agent_id,target_id,action,start_frame,stop_frame
    0,101,mouse1,mouse2,sniff,0,40
    1,101,mouse1,mouse2,attack,40,60
    2,101,mouse1,mouse2,sniff,60,100
    """
    videos = None if metadata is None else read_metadata(metadata)
    rows: list[tuple[str, *Bout]] = []
    omitted = resolved = 0
    for video, prediction in predictions.items():
        annotation = prediction.annotation if isinstance(prediction, Prediction) else prediction
        bouts, n_omitted, n_resolved = select_actions(annotation, _labeled(video, videos), video)
        rows += [(video, *bout) for bout in bouts]
        omitted, resolved = omitted + n_omitted, resolved + n_resolved
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows((number, *row) for number, row in enumerate(rows))
    write_text(path, text.getvalue(), overwrite=overwrite)
    notes = [Note(f"omitted {omitted} bouts that are not labeled in their video", code="omitted-bouts")] if omitted else []
    return notes + ([Note(f"chose one of several actions of a pair in {resolved} frames", code="chosen-actions")] if resolved else [])


def select_actions(annotation: Annotation, labeled: Sequence[Track] | None = None, video: str = "") -> tuple[list[Bout], int, int]:
    """Return the bouts of an annotation with at most one action of a pair in each frame.

    Parameters
    ----------
    annotation : Annotation
    labeled : sequence of Track, optional
        Labeled behaviors; bouts of all others are omitted.
    video : str
        Named in errors.

    Returns
    -------
    bouts : list of tuple
        Agent, target ("self" for an action on oneself), action, first frame and first frame after the bout; sorted by frame.
    n_omitted : int
        Bouts that are not labeled.
    n_resolved : int
        Frames in which one of several actions was chosen.
    """
    a = annotation
    _check_subjects(a, np.arange(len(a)), video)
    agents = [mouse_name(name) for name in a.names(a.subject)]
    targets = [
        SELF if not name or mouse_name(name) in (SELF, agent_name) else mouse_name(name)
        for agent_name, name in zip(agents, a.names(a.target), strict=True)
    ]
    actions = a.ethogram.names
    background = a.ethogram.background_name
    chosen = np.array([actions[int(code)] != background for code in a.behavior], dtype=bool) & (a.stop > a.start)
    if labeled is not None:
        listed = {(str(t.subject), t.target or SELF, t.behavior) for t in labeled}
        keep = np.array([key in listed for key in zip(agents, targets, (actions[int(c)] for c in a.behavior), strict=True)], dtype=bool)
    else:
        keep = np.ones(len(a), dtype=bool)
    n_omitted = int((chosen & ~keep).sum())
    groups: dict[tuple[str, str], list[int]] = {}
    for i in np.flatnonzero(chosen & keep):
        groups.setdefault((agents[i], targets[i]), []).append(int(i))
    bouts: list[Bout] = []
    resolved = 0
    for (agent, target), indices in groups.items():
        start, stop, behavior, frames = _exclusive(a, np.array(indices))
        resolved += frames
        bouts += [(agent, target, actions[int(b)], int(s), int(e)) for s, e, b in zip(start, stop, behavior, strict=True)]
    return sorted(bouts, key=lambda bout: (bout[3], bout[:3])), n_omitted, resolved


def exclusive_actions(annotation: Annotation, labeled: Sequence[Track] | None = None) -> Annotation:
    """Return an annotation with at most one action of a pair in each frame, by the rule of `write_submission`.

    Parameters
    ----------
    annotation : Annotation
    labeled : sequence of Track, optional
        Labeled behaviors; bouts of all others are omitted. A track without a subject is a behavior that is labeled for all animals.

    Raises
    ------
    MismatchError
        If a bout has no subject.

    Examples
    --------
    >>> pred = Annotation.from_bouts([0, 40], [100, 60], ["sniff", "attack"], ["sniff", "attack"], 30, 100,
    ...     subject=["mouse1"] * 2, target=["mouse2"] * 2)
    >>> one = exclusive_actions(pred)
    >>> list(zip(one.start.tolist(), one.stop.tolist(), one.behavior.tolist()))
    [(0, 40, 0), (40, 60, 1), (60, 100, 0)]
    """
    a = annotation
    background = -1 if a.ethogram.background is None else a.ethogram.background
    indices = np.flatnonzero((a.behavior != background) & (a.stop > a.start))
    _check_subjects(a, indices)
    subject, target = a.names(a.subject), a.names(a.target)
    listed = None if labeled is None else {*labeled}
    groups: dict[tuple[str, str | None], list[int]] = {}
    for i in indices:
        agent, on = str(subject[i]), None if target[i] in (None, SELF, subject[i]) else target[i]
        name = a.ethogram[int(a.behavior[i])].name
        if listed is None or Track(name) in listed or Track(name, agent, on) in listed:
            groups.setdefault((agent, on), []).append(int(i))
    columns: dict[str, list[Any]] = {"start": [], "stop": [], "behavior": [], "subject": [], "target": []}
    for (agent, on), members in groups.items():
        start, stop, behavior, _ = _exclusive(a, np.array(members))
        for name, values in (("start", start), ("stop", stop), ("behavior", behavior)):
            columns[name] += values.tolist()
        columns["subject"] += [agent] * len(start)
        columns["target"] += [on] * len(start)
    return Annotation.from_bouts(**columns, ethogram=a.ethogram, rate=a.rate, n_frames=a.n_frames, subjects=a.subjects, observed=a.observed)


def _check_subjects(a: Annotation, indices: IntArray, video: str = "") -> None:
    """Raise an error if one of these bouts has no subject."""
    nameless = indices[a.subject[indices] < 0]
    if nameless.size:
        frame, name = int(a.start[nameless[0]]), a.ethogram[int(a.behavior[nameless[0]])].name
        prefix = f"recording {video!r}: " if video else ""
        raise MismatchError(f"{prefix}the bout of {name!r} in frame {frame} has no subject; a submission names the agent")


def _exclusive(a: Annotation, indices: IntArray) -> tuple[IntArray, IntArray, IntArray, int]:
    """Return starts, stops and actions of the bouts of one pair without overlaps, and the number of frames that had several actions."""
    start, stop, behavior = a.start[indices], a.stop[indices], a.behavior[indices]
    bounds = iv.boundaries(start, stop)
    first, last = np.searchsorted(bounds, start), np.searchsorted(bounds, stop)
    overlaps = _several_actions(first, last, behavior, len(bounds) - 1)
    n_resolved = int(np.diff(bounds)[overlaps].sum())
    if not n_resolved:
        return start, stop, behavior, 0
    confidence = np.full(len(indices), -1.0) if a.confidence is None else np.nan_to_num(a.confidence[indices], nan=-1.0)
    owner = np.full(len(bounds) - 1, -1)
    for k in np.lexsort((behavior, start, stop - start, -confidence))[::-1]:  # the best last, so that it covers the others
        owner[first[k] : last[k]] = behavior[k]
    runs = iv.encode_runs(owner)
    codes = np.asarray(runs.values, dtype=np.int64)
    kept = codes >= 0
    spans = Intervals(bounds[runs.start[kept]], bounds[runs.stop[kept]])
    return spans.start, spans.stop, codes[kept], n_resolved


def _several_actions(first: IntArray, last: IntArray, behavior: IntArray, n: int) -> BoolArray:
    """Return in which of n segments between bounds more than one action occurs."""
    count = np.zeros(n, dtype=np.int64)
    for code in np.unique(behavior):
        count += iv.to_mask(Intervals(first[behavior == code], last[behavior == code]), n)
    return np.asarray(count > 1)


def _labeled(video: str, videos: Mapping[str, VideoMetadata] | None) -> Sequence[Track] | None:
    if videos is None:
        return None
    if video not in videos:
        raise NotFoundError(f"the metadata have no video {video!r}")
    return videos[video].labeled
