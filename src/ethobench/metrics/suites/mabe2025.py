"""MABe 2025 as its scorer computes it, including its quirks, and a reading without them.

Frames are counted for each (video, agent, target, action) and summed by action within a lab. The F1 score of a lab is the mean over its
actions, and the score is the mean over labs. The scorer has these quirks, which the measure `f1` keeps:

1. Predictions for videos without any truth row are dropped.
2. Predictions outside the labeled behaviors of a video (``behaviors_labeled``) are ignored, but truth rows outside them count.
3. Frames that are predicted twice for one agent, target and action count once. Two different actions of one agent towards one target in
   one frame are an error.
4. An action that is listed and predicted in a lab but never occurs in its truth has an F1 of 0: the code looks the action up in a
   ``defaultdict``, which creates an entry, and takes the mean over all entries. This holds even for a predicted bout of no frames.

The measure `f1_labeled` scores exactly what was labeled: truth outside ``behaviors_labeled`` is ignored, and predictions for a video that
was labeled count although it has no truth row (for annotations; a table cannot tell such a video from one that is not part of the test).

References
----------
Multi-Agent Behavior Challenge, "Social Action Recognition in Mice" (Kaggle 2025), scorer "MABe F-Beta".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Observed, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError
from ethobench.core.intervals import BoolArray, IntArray, Intervals
from ethobench.core.wording import join_names
from ethobench.formats.mabe2025_submission import exclusive_actions
from ethobench.formats.mabe2025_tables import SELF, BoutTable, Names, VideoMetadata, parse_labeled, read_bouts, read_metadata
from ethobench.metrics.base import Array, Measure, ratio, register_metric, sum_tracks
from ethobench.metrics.bootstrap import RESAMPLES
from ethobench.metrics.pairs import AlignedPair, TrackPair
from ethobench.metrics.suites import Suite, register_suite, suites

if TYPE_CHECKING:
    import pandas as pd

    from ethobench.metrics.alignment import Unaligned
    from ethobench.metrics.scores import Scores

LAB_KEYS = ("lab", "lab_id")
LABELED_KEY = "behaviors_labeled"
MAX_NAMES = 5
MAX_TABLE = 1 << 22
"""Most codes that are looked up in a table; more are sorted and searched."""
Videos: TypeAlias = "Mapping[str, Any] | str | Path | pd.DataFrame"


def counts(pair: AlignedPair) -> Array:
    """Count true positive, false positive and false negative frames and the bouts of either side by behavior, as the scorer does."""
    listed, dropped = _listed(pair), not len(pair.truth)

    def count(track: TrackPair) -> list[float]:
        pred = track.pred if listed(track) and not dropped else iv.empty()
        return [*_frame_counts(track.truth, pred), float(len(track.truth.start) + len(pred.start))]

    return sum_tracks(pair, 4, count)


def labeled_counts(pair: AlignedPair) -> Array:
    """Count true positive, false positive and false negative frames of the labeled behaviors."""
    listed = _listed(pair)
    return sum_tracks(pair, 3, lambda track: _frame_counts(track.truth, track.pred) if listed(track) else [0.0, 0.0, 0.0])


def _frame_counts(truth: Intervals, pred: Intervals) -> list[float]:
    shared = iv.overlap(truth, pred)
    return [float(shared), float(iv.total(pred) - shared), float(iv.total(truth) - shared)]


def _listed(pair: AlignedPair) -> Callable[[TrackPair], bool]:
    """Return a function that tells whether a track is among the labeled behaviors of the recording."""
    labeled = pair.metadata.get(LABELED_KEY)
    if labeled is None:
        return lambda track: True
    tracks = {*parse_labeled(labeled, LABELED_KEY, plain_names=True)}
    behaviors = {track.behavior for track in tracks}

    def is_listed(track: TrackPair) -> bool:
        name = pair.ethogram[track.behavior].name
        target = None if track.target in (SELF, track.subject) else track.target
        if pair.pool_subjects or Track(name) in tracks:
            return name in behaviors
        return Track(name, track.subject, target) in tracks

    return is_listed


@register_metric(counts)
def f1(s: Array) -> Array:
    """Frame F1 of the actions that occur or are predicted; 0 if neither side has a frame (MABe 2025)."""
    value = 2 * s[..., 0] / np.maximum(2 * s[..., 0] + s[..., 1] + s[..., 2], 1)
    return np.asarray(np.where(s[..., 3] > 0, value, np.nan))


@register_metric(counts)
def precision(s: Array) -> Array:
    """Share of predicted frames that are true (MABe 2025)."""
    return ratio(s[..., 0], s[..., 0] + s[..., 1])


@register_metric(counts)
def recall(s: Array) -> Array:
    """Share of true frames that are predicted (MABe 2025)."""
    return ratio(s[..., 0], s[..., 0] + s[..., 2])


@register_metric(labeled_counts, symmetric=True)
def f1_labeled(s: Array) -> Array:
    """Frame F1 of the labeled actions that occur or are predicted; truth outside the labeled behaviors is ignored (MABe 2025)."""
    return ratio(2 * s[..., 0], 2 * s[..., 0] + s[..., 1] + s[..., 2])


@register_suite("mabe2025")
class Mabe2025(Suite):
    """Frame F1 by action within labs, as the scorer of the challenge computes it; `f1_labeled` is the same without its quirks."""

    title = "MABe 2025: frames by action within labs, averaged over labs"
    measures = (
        Measure("f1", "mabe2025.f1", over="individuals", background=True),
        Measure("f1_labeled", "mabe2025.f1_labeled", over="individuals", background=True),
        Measure("precision", "mabe2025.precision", over="individuals", background=True),
        Measure("recall", "mabe2025.recall", over="individuals", background=True),
    )
    headline = ("f1", "f1_labeled", "precision", "recall")
    lengths = True
    labels = True
    fill_background = False
    separate_subjects = True
    unit = "lab"

    def prepare(self, recording: Unaligned) -> Unaligned:
        """Return the recording with its lab as individual; the labeled behaviors are taken from the metadata, not the observed frames.

        Raises
        ------
        MismatchError
            If the prediction has two actions of one pair in one frame.
        """
        metadata = dict(recording.metadata)
        lab = next((str(metadata[key]) for key in LAB_KEYS if metadata.get(key)), "")
        truth = recording.truth
        if metadata.get(LABELED_KEY) is not None:
            truth = truth.with_observed(Observed.full(truth.n_frames))
            if isinstance(recording.pred, Annotation):
                check_exclusive(annotation_table({recording.id: recording.pred}), {recording.id: metadata[LABELED_KEY]})
        return replace(recording, individual=lab or recording.individual, truth=truth, metadata=metadata)

    def admissible(self, prediction: Annotation, metadata: Mapping[str, Any]) -> Annotation:
        """Return a prediction with at most one action of a pair in each frame, by the rule of `write_submission`."""
        labeled = metadata.get(LABELED_KEY)
        tracks = None if labeled is None else parse_labeled(labeled, LABELED_KEY, plain_names=True)
        return exclusive_actions(prediction, tracks)

    def notes(self, recordings: Iterable[Unaligned]) -> list[Note]:
        """Note recordings whose metadata lack the lab or the labeled behaviors."""
        unknown = {
            "no lab, so each individual counts as one": [r.id for r in recordings if not any(r.metadata.get(key) for key in LAB_KEYS)],
            f"no {LABELED_KEY}, so every behavior counts as labeled": [r.id for r in recordings if r.metadata.get(LABELED_KEY) is None],
        }
        return [Note(f"{problem}: {_few(names)}") for problem, names in unknown.items() if names]


def annotation_table(annotations: Mapping[str, Annotation], name: str = "prediction", labs: Mapping[str, Any] | None = None) -> BoutTable:
    """Return the bouts of annotations by video as one table.

    Parameters
    ----------
    annotations : mapping of str to Annotation
        By video.
    name : str
        What the table is, for messages.
    labs : mapping of str to VideoMetadata, optional
        Lab and labeled behaviors by video.
    """
    cells: dict[str, list[str]] = {"video": [], "agent": [], "target": [], "action": []}
    start, stop = [], []
    for video, a in annotations.items():
        agents = [agent or "" for agent in a.names(a.subject)]
        cells["video"] += [video] * len(a)
        cells["agent"] += agents
        cells["target"] += [
            SELF if not receiver or receiver == performer else receiver
            for performer, receiver in zip(agents, a.names(a.target), strict=True)
        ]
        cells["action"] += [a.ethogram[int(code)].name for code in a.behavior]
        start.append(a.start)
        stop.append(a.stop)
    columns = {key: _names(values) for key, values in cells.items()}
    frames = [np.concatenate(side) if side else np.empty(0, dtype=np.int64) for side in (start, stop)]
    return BoutTable(name, **columns, start=frames[0], stop=frames[1], metadata=labs or {})


def _names(values: list[str]) -> Names:
    codes = {name: code for code, name in enumerate(dict.fromkeys(values))}
    return Names(np.array([codes[value] for value in values], dtype=np.int64), tuple(codes))


@dataclass(frozen=True)
class _Keys:
    """Codes shared by truth and prediction: one for each video, agent and target, and one for each action."""

    videos: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    actions: tuple[str, ...]

    def pair_code(self, video: IntArray, pair: IntArray) -> IntArray:
        return video * len(self.pairs) + pair

    def code(self, columns: _Columns) -> IntArray:
        return self.pair_code(columns.video, columns.pair) * len(self.actions) + columns.action


@dataclass(frozen=True)
class _Columns:
    """Bouts as codes of `_Keys`."""

    video: IntArray
    pair: IntArray
    action: IntArray
    start: IntArray
    stop: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def take(self, chosen: BoolArray) -> _Columns:
        return _Columns(*(column[chosen] for column in (self.video, self.pair, self.action, self.start, self.stop)))


def _share_codes(*tables: BoutTable) -> tuple[_Keys, list[_Columns]]:
    """Express tables in shared codes."""
    videos = tuple(dict.fromkeys(name for table in tables for name in table.video.values))
    actions = tuple(dict.fromkeys(name for table in tables for name in table.action.values))
    mice = tuple(dict.fromkeys(name for table in tables for column in (table.agent, table.target) for name in column.values))
    columns = []
    for table in tables:
        agent, target = _recode(table.agent, mice), _recode(table.target, mice)
        columns.append((_recode(table.video, videos), agent * len(mice) + target, _recode(table.action, actions), table.start, table.stop))
    pairs = tuple((agent, target) for agent in mice for target in mice)
    return _Keys(videos, pairs, actions), [_Columns(*column) for column in columns]


def _recode(column: Names, names: tuple[str, ...]) -> IntArray:
    if column.values == names[: len(column.values)]:
        return column.codes
    codes = {name: code for code, name in enumerate(names)}
    return np.array([codes[name] for name in column.values], dtype=np.int64)[column.codes]


class _Listed:
    """Which bouts are among the labeled behaviors of their videos; behaviors of videos without a list all are."""

    def __init__(self, keys: _Keys, labeled: Mapping[str, tuple[Track, ...] | None]) -> None:
        self.keys = keys
        self.has_no_list = np.zeros(len(keys.videos), dtype=bool)
        self.size = len(keys.pairs) * len(keys.actions)
        pairs = {pair: code for code, pair in enumerate(keys.pairs)}
        actions = {action: code for code, action in enumerate(keys.actions)}
        lists: dict[int, IntArray] = {}  # by identity: videos of one lab share a list, and hashing it takes longer than the rest
        codes = [np.empty(0, dtype=np.int64)]
        for video, name in enumerate(keys.videos):
            tracks = labeled.get(name)
            if tracks is None:
                self.has_no_list[video] = True
                continue
            if id(tracks) not in lists:
                named = [(pairs.get((t.subject, t.target or SELF)), actions.get(str(t.behavior))) for t in tracks if t.subject is not None]
                named += [(pair, actions.get(str(t.behavior))) for t in tracks if t.subject is None for pair in pairs.values()]
                matches = [p * len(actions) + a for p, a in named if p is not None and a is not None]
                lists[id(tracks)] = np.array(matches, dtype=np.int64)
            codes.append(lists[id(tracks)] + video * self.size)
        self.codes = np.concatenate(codes)

    def of(self, columns: _Columns) -> BoolArray:
        codes, n = self.keys.code(columns), self.size * len(self.keys.videos)
        if n <= MAX_TABLE:
            table = np.zeros(n, dtype=bool)
            table[self.codes] = True
            among = table[codes]
        else:
            among = np.isin(codes, self.codes)
        return np.asarray(among | self.has_no_list[columns.video])


@dataclass(frozen=True)
class _Timeline:
    """Frames of all keys on one axis: each key has a section of its own, so that one union or overlap serves all of them."""

    first: int
    length: int

    @classmethod
    def spanning(cls, *columns: _Columns) -> _Timeline:
        starts, stops = (np.concatenate([getattr(c, side) for c in columns]) for side in ("start", "stop"))
        first, last = (int(starts.min()), int(stops.max())) if starts.size else (0, 0)
        return cls(first, last - first + 1)

    def place(self, keys: IntArray, columns: _Columns) -> Intervals:
        offset = keys * self.length - self.first
        return Intervals(columns.start + offset, columns.stop + offset)

    def keys(self, spans: Intervals) -> IntArray:
        return spans.start // self.length

    def frame(self, position: int) -> int:
        return position % self.length + self.first


def _dense(*codes: IntArray) -> tuple[IntArray, list[IntArray]]:
    """Return the different codes, sorted, and each array as indices into them."""
    highest = max((int(one.max()) for one in codes if one.size), default=-1)
    if highest >= MAX_TABLE:
        different = iv.boundaries(*codes)
        return different, [np.searchsorted(different, one) for one in codes]
    occurs = np.zeros(highest + 1, dtype=bool)
    for one in codes:
        occurs[one] = True
    index = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), [index[one] for one in codes]


def _count(keys: _Keys, truth: _Columns, pred: _Columns) -> Array:
    """Count true positive, false positive and false negative frames; shape (n_videos, n_actions, 3)."""
    different, indices = _dense(keys.code(truth), keys.code(pred))
    timeline = _Timeline.spanning(truth, pred)
    true, predicted = (iv.union(timeline.place(index, side)) for index, side in zip(indices, (truth, pred), strict=True))
    n = len(different)
    shared = np.bincount(timeline.keys(predicted), weights=iv.overlap_with(predicted, true), minlength=n)
    lengths = [np.bincount(timeline.keys(spans), weights=spans.stop - spans.start, minlength=n) for spans in (true, predicted)]
    n_actions = len(keys.actions)
    cell = different // (len(keys.pairs) * n_actions) * n_actions + different % n_actions
    sums = [
        np.bincount(cell, weights=w, minlength=len(keys.videos) * n_actions) for w in (shared, lengths[1] - shared, lengths[0] - shared)
    ]
    return np.stack(sums, axis=-1).reshape(len(keys.videos), n_actions, 3).astype(np.float64)


def _check_exclusive(name: str, keys: _Keys, pred: _Columns) -> None:
    different, (index,) = _dense(keys.code(pred))
    timeline = _Timeline.spanning(pred)
    spans = iv.union(timeline.place(index, pred))
    of_span = different[timeline.keys(spans)]
    pairs, (pair,) = _dense(of_span // len(keys.actions))
    offset = (pair - timeline.keys(spans)) * timeline.length  # from the section of the action to the section of the pair
    start, stop = spans.start + offset, spans.stop + offset
    order = np.lexsort((stop, start))
    reach = np.maximum.accumulate(stop[order])
    overlapping = np.flatnonzero(start[order][1:] < reach[:-1])
    if not overlapping.size:
        return
    second = int(order[overlapping[0] + 1])
    first = int(order[: overlapping[0] + 1][np.argmax(stop[order][: overlapping[0] + 1] > start[second])])
    code = int(pairs[pair[second]])
    video, (agent, target) = keys.videos[code // len(keys.pairs)], keys.pairs[code % len(keys.pairs)]
    actions = [keys.actions[int(of_span[k] % len(keys.actions))] for k in (first, second)]
    raise MismatchError(
        f"{name}: video {video}: {agent} has two actions towards {target} in frame {timeline.frame(int(start[second]))}, "
        f"{join_names(actions)}; the scorer of MABe 2025 rejects submissions with more than one action of a pair in a frame"
    )


def check_exclusive(table: BoutTable, labeled: Mapping[str, Any] | None = None) -> None:
    """Raise an error if an agent has two actions towards one target in one frame; behaviors that are not labeled are ignored.

    Parameters
    ----------
    table : BoutTable
    labeled : mapping of str to list of str or str, optional
        Labeled behaviors by video; by default all behaviors count.

    Raises
    ------
    MismatchError
        The message names the video, the pair, the first frame and the actions.
    """
    if not len(table):
        return
    keys, (columns,) = _share_codes(table)
    lists = {video: parse_labeled(one, LABELED_KEY, plain_names=True) for video, one in (labeled or {}).items() if one is not None}
    _check_exclusive(table.name, keys, columns.take(_Listed(keys, lists).of(columns)))


def score_tables(
    pred: BoutTable, truth: BoutTable, metadata: Mapping[str, VideoMetadata] | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Scores:
    """Score a submission against a solution by the rules of the scorer of MABe 2025.

    Parameters
    ----------
    pred, truth : BoutTable
        As `read_bouts` returns them.
    metadata : mapping of str to VideoMetadata, optional
        Lab and labeled behaviors by video, as `read_metadata` returns them; by default those of the solution.
    resamples, seed : int
        Number of bootstrap resamples of labs, and the seed of their random draw.

    Returns
    -------
    Scores
        Individuals are labs: ``scores.per("lab")`` has the scores of each lab and, within it, of each action.

    Raises
    ------
    MismatchError
        If two actions of one pair are predicted in one frame.
    NotFoundError
        If a video of the solution is not in the metadata.

    Examples
    --------
    >>> import pandas as pd
    >>> truth = pd.DataFrame({"video_id": 1, "agent_id": 1, "target_id": 2, "action": "sniff",
    ...     "start_frame": [0, 30], "stop_frame": [10, 40], "lab_id": "A", "behaviors_labeled": '["mouse1,mouse2,sniff"]'})
    >>> pred = truth.iloc[:1].assign(stop_frame=40)
    >>> round(score_tables(read_bouts(pred), read_bouts(truth)).overall["f1"], 3)
    0.667
    """
    from ethobench.metrics.scores import Scores

    videos = {**truth.metadata, **(metadata or {})}
    if not len(truth):
        raise EthobenchError(f"{truth.name}: nothing to score: the solution has no rows")
    if not videos:
        raise EthobenchError(f"{truth.name} has no columns lab_id and behaviors_labeled: pass the metadata of the challenge (train.csv)")
    missing = [video for video in truth.video.values if video not in videos]
    if missing:
        raise NotFoundError(f"the metadata have no video {_few(missing)} of {truth.name}")
    keys, (true, predicted) = _share_codes(truth, pred)
    n_videos, n_actions = len(truth.video.values), len(keys.actions)
    in_truth = np.bincount(true.video, minlength=len(keys.videos)) > 0
    labeled = {video: videos[video].labeled for video in keys.videos[:n_videos]}
    among_listed = _Listed(keys, labeled)
    listed_truth, listed = among_listed.of(true), among_listed.of(predicted)
    scored = listed & in_truth[predicted.video]
    kept = predicted.take(scored)
    _check_exclusive(pred.name, keys, kept)
    published = _count(keys, true, kept)[:n_videos]
    cells = np.concatenate([side.video * n_actions + side.action for side in (true, kept)])
    rows = np.bincount(cells, minlength=n_videos * n_actions).reshape(n_videos, n_actions, 1)
    without_unlisted = published if listed_truth.all() else _count(keys, true.take(listed_truth), kept)[:n_videos]
    labs = {video: videos[video].lab for video in keys.videos[:n_videos]}
    scores = Scores(suites["mabe2025"], Ethogram(keys.actions), labs, resamples=resamples, seed=seed)
    scores.set_statistics(counts, np.concatenate([published, rows], axis=-1))
    scores.set_statistics(labeled_counts, without_unlisted)
    scores.notes = _quirk_notes(scores, pred, keys, predicted, in_truth, listed, listed_truth)
    return scores


def _quirk_notes(
    scores: Scores, pred: BoutTable, keys: _Keys, predicted: _Columns, in_truth: BoolArray, listed: BoolArray, listed_truth: BoolArray
) -> list[Note]:
    """Note what the rules of the scorer drop or count although one would not expect it."""
    notes = []
    dropped = ~in_truth[predicted.video]
    if dropped.any():
        names = [keys.videos[code] for code in np.unique(predicted.video[dropped])]
        notes.append(Note(f"dropped {dropped.sum()} of {len(pred)} predicted bouts, of videos without truth: {_few(names)}"))
    ignored = ~listed & ~dropped
    if ignored.any():
        names = [keys.actions[code] for code in np.unique(predicted.action[ignored])]
        notes.append(Note(f"ignored {ignored.sum()} of {len(pred)} predicted bouts, not among the labeled behaviors: {_few(names)}"))
    if not listed_truth.all():
        count = int((~listed_truth).sum())
        notes.append(Note(f"{count} true bouts are not among the labeled behaviors: f1 counts them as misses, f1_labeled ignores them"))
    table = np.tensordot(scores.grouping.membership, scores.statistics(scores.suite.measures[0]), axes=1)
    never_true = (table[..., 3] > 0) & (table[..., 0] + table[..., 2] == 0)
    if never_true.any():
        cells = [f"{scores.individuals[lab]} {keys.actions[action]}" for lab, action in zip(*np.nonzero(never_true), strict=True)]
        notes.append(Note(f"actions that are predicted in a lab but never occur in its truth have an F1 of 0: {_few(cells)}"))
    return notes


def score_submission(pred: Any, truth: Any, metadata: Videos | None = None, *, resamples: int = RESAMPLES, seed: int = 0) -> Scores:
    """Score a submission file or table against a solution file or table, or against a dataset.

    Parameters
    ----------
    pred : path or DataFrame
    truth : path, DataFrame or Dataset
        A dataset states labs and labeled behaviors in the metadata of its recordings.
    metadata : path, DataFrame or mapping, optional
        With ``video_id, lab_id, behaviors_labeled``; not needed if the solution has these columns.
    resamples, seed : int
        Number of bootstrap resamples of labs, and the seed of their random draw.
    """
    solution = _dataset_table(truth) if isinstance(truth, Dataset) else read_bouts(truth, "solution")
    videos = None if metadata is None else video_metadata(metadata)
    return score_tables(read_bouts(pred, "submission"), solution, videos, resamples=resamples, seed=seed)


def video_metadata(metadata: Videos) -> dict[str, VideoMetadata]:
    """Return lab and labeled behaviors by video from a file, a table, or a mapping of videos to mappings."""
    if not isinstance(metadata, Mapping):
        return read_metadata(metadata)
    videos = {}
    for name, one in metadata.items():
        if isinstance(one, VideoMetadata):
            videos[str(name)] = one
            continue
        lab = next((str(one[key]) for key in LAB_KEYS if one.get(key)), "")
        if not lab:
            raise EthobenchError(f"metadata of video {name!r} have no lab")
        labeled = one.get(LABELED_KEY)
        videos[str(name)] = VideoMetadata(lab, None if labeled is None else parse_labeled(labeled, f"{LABELED_KEY} of video {name}"))
    return videos


def _dataset_table(data: Dataset) -> BoutTable:
    annotated = {r.id: r for r in data if r.annotations}
    labs = video_metadata({name: r.metadata for name, r in annotated.items()})
    return annotation_table({name: r.annotation() for name, r in annotated.items()}, data.name or "solution", labs)


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:MAX_NAMES]) + (f", ... ({len(listed)} in all)" if len(listed) > MAX_NAMES else "")
