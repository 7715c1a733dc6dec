"""Edits of an annotation. Each function returns a new annotation.

`mark` and `clear` make the edited frames observed; `hide` makes them unobserved. `add_observed` and `remove_observed` change the observed
frames only, not the bouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Observed
from ethobench.core import Track as ObservedTrack
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.intervals import BoolArray, IntArray, Intervals

Edit: TypeAlias = Mapping[str, Any]
KINDS = ("mark", "clear", "hide", "observe", "unobserve")


def apply_edits(annotation: Annotation, edits: Iterable[Edit]) -> Annotation:
    """Apply the edits of a request in order.

    Parameters
    ----------
    annotation : Annotation
    edits : iterable of mapping
        ``kind`` (mark, clear, hide, observe, unobserve), ``start``, ``stop``; to mark: ``behavior`` (a name), ``subject``,
        ``target``, ``exclusive``; to clear: optionally ``behavior`` and ``subject``; to observe or unobserve: optionally
        ``subject``.
    """
    for edit in edits:
        kind, (start, stop) = edit.get("kind"), _frames(edit, annotation)
        subject, target, behavior = (_text(edit, name) for name in ("subject", "target", "behavior"))
        if kind == "mark":
            if behavior is None:
                raise EthobenchError("a mark needs a behavior")
            exclusive = edit.get("exclusive") is not False
            annotation = mark(annotation, start, stop, behavior, subject=subject, target=target, exclusive=exclusive)
        elif kind == "clear":
            annotation = clear(annotation, start, stop, behavior=behavior, subject=subject)
        elif kind == "hide":
            annotation = hide(annotation, start, stop)
        elif kind == "observe":
            annotation = add_observed(annotation, iv.intervals([start], [stop]), subject)
        elif kind == "unobserve":
            annotation = remove_observed(annotation, iv.intervals([start], [stop]), subject)
        else:
            raise EthobenchError(f"the kind of an edit must be one of {', '.join(KINDS)}, got {kind!r}")
    return annotation


def mark(
    annotation: Annotation,
    start: int,
    stop: int,
    behavior: str,
    *,
    subject: str | None = None,
    target: str | None = None,
    exclusive: bool = True,
) -> Annotation:
    """Mark a behavior in ``[start, stop)``. The new bout is merged with touching bouts of the same track.

    Parameters
    ----------
    annotation : Annotation
    start, stop : int
        For a point behavior, only `start` is used.
    behavior : str
    subject, target : str, optional
        Who does it, and to whom.
    exclusive : bool
        Remove other behaviors of the subject in these frames.

    Examples
    --------
    >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest", "run"], rate=10, n_frames=20)
    >>> b = mark(a, 4, 15, "run")
    >>> b.start.tolist(), b.stop.tolist(), b.behavior.tolist()
    ([0, 4], [4, 15], [0, 1])
    """
    code = annotation.ethogram.code(behavior)
    if annotation.ethogram[code].point:
        return _add(_observe(annotation, start, start + 1), start, start, code, subject, target)
    if stop <= start:
        raise EthobenchError(f"a bout must end after it starts, got frames {start} to {stop}")
    observed = _observe(annotation, start, stop)
    same_subject = observed.subject == _subject_code(observed, subject)
    same_track = same_subject & (observed.target == _subject_code(observed, target)) & (observed.behavior == code) & _has_duration(observed)
    touching = np.flatnonzero(same_track & (observed.start <= stop) & (observed.stop >= start))
    kept = np.ones(len(observed), dtype=bool)
    kept[touching] = False
    others = _has_duration(observed) & same_subject & ~same_track if exclusive else np.zeros(len(observed), dtype=bool)
    if touching.size:
        first, last = min(start, int(observed.start[touching].min())), max(stop, int(observed.stop[touching].max()))
        return _rebuild(observed, _Pieces.cut(observed, start, stop, others, kept).plus(touching[:1], first, last))
    return _add(_rebuild(observed, _Pieces.cut(observed, start, stop, others)), start, stop, code, subject, target)


def clear(annotation: Annotation, start: int, stop: int, *, behavior: str | None = None, subject: str | None = None) -> Annotation:
    """Remove bouts (optionally of one behavior or subject) from ``[start, stop)``; longer bouts are cut."""
    chosen = np.ones(len(annotation), dtype=bool)
    if behavior is not None:
        chosen &= annotation.behavior == annotation.ethogram.code(behavior)
    if subject is not None:
        chosen &= annotation.subject == _subject_code(annotation, subject)
    observed = _observe(annotation, start, stop)
    return _rebuild(observed, _Pieces.cut(observed, start, stop, chosen))


def hide(annotation: Annotation, start: int, stop: int) -> Annotation:
    """Mark ``[start, stop)`` as unobserved, and remove its bouts."""
    blank = iv.intervals([start], [stop])
    cut = _rebuild(annotation, _Pieces.cut(annotation, start, stop, np.ones(len(annotation), dtype=bool)))
    return cut.with_observed(cut.observed.apply(lambda frames: iv.difference(frames, blank)))


def add_observed(annotation: Annotation, frames: Intervals, subject: str | None = None) -> Annotation:
    """Mark frames as observed, for one subject or for all.

    Parameters
    ----------
    annotation : Annotation
    frames : Intervals
        In any order; they may overlap.
    subject : str, optional
        Mark them for this subject only; for all subjects if None.

    Examples
    --------
    >>> a = Annotation.from_bouts([20], [30], ["rest"], ["rest"], rate=10, n_frames=60, observed=iv.intervals([20], [30]))
    >>> add_observed(a, iv.intervals([0, 25], [10, 60])).observed.frames
    Intervals(start=array([ 0, 20]), stop=array([10, 60]))
    """
    frames = iv.union(iv.clip(frames, 0, annotation.n_frames))
    if all(iv.overlap(frames, where) == iv.total(frames) for where in _observed_sets(annotation, subject)):
        return annotation
    return _change_observed(annotation, lambda observed: iv.union_all([observed, frames]), subject)


def remove_observed(annotation: Annotation, frames: Intervals, subject: str | None = None) -> Annotation:
    """Mark frames as unobserved, for one subject or for all. Frames with bouts remain observed."""
    chosen = np.ones(len(annotation), dtype=bool) if subject is None else annotation.subject == _subject_code(annotation, subject)
    start, stop = annotation.start[chosen], np.maximum(annotation.stop, annotation.start + 1)[chosen]
    removed = iv.difference(iv.union(frames), iv.union(iv.Intervals(start, stop)))
    if not any(iv.overlap(removed, where) for where in _observed_sets(annotation, subject)):
        return annotation
    return _change_observed(annotation, lambda observed: iv.difference(observed, removed), subject)


def _observed_sets(annotation: Annotation, subject: str | None) -> list[Intervals]:
    """Return the observed frames of each behavior of a subject; of all tracks if `subject` is None."""
    observed = annotation.observed
    if subject is None or not observed.tracks:
        return [observed.frames, *observed.tracks.values()]
    return [observed.of(behavior.name, subject) for behavior in annotation.ethogram] or [observed.frames]


def _change_observed(annotation: Annotation, change: Callable[[Intervals], Intervals], subject: str | None) -> Annotation:
    """Change the observed frames of one subject, or of all if `subject` is None."""
    observed = annotation.observed
    if subject is None:
        return annotation.with_observed(observed.apply(change))
    tracks = {track: change(where) if track.subject == subject else where for track, where in observed.tracks.items()}
    for track, where in {ObservedTrack(): observed.frames, **observed.tracks}.items():
        if track.subject is None and track.target is None:
            tracks.setdefault(track._replace(subject=subject), change(where))
    per_subject = [Observed(tracks[key]) for name in annotation.subjects if (key := ObservedTrack(None, name)) in tracks]
    if len(per_subject) == len(annotation.subjects) == len(tracks) and all(other == per_subject[0] for other in per_subject):
        return annotation.with_observed(per_subject[0])
    return annotation.with_observed(Observed(observed.frames, tracks))


def _observe(annotation: Annotation, start: int, stop: int) -> Annotation:
    return add_observed(annotation, iv.intervals([start], [stop]))


@dataclass(frozen=True)
class _Pieces:
    """Bouts with new frames; all other details are those of the bouts at `indices` of an annotation."""

    indices: IntArray
    start: IntArray
    stop: IntArray

    @classmethod
    def cut(cls, a: Annotation, start: int, stop: int, chosen: BoolArray, kept: BoolArray | None = None) -> _Pieces:
        """Cut ``[start, stop)`` out of the chosen bouts; a bout that extends beyond both ends becomes two. Drop bouts that are not kept."""
        point = a.start == a.stop
        hit = chosen & np.where(point, (a.start >= start) & (a.start < stop), (a.start < stop) & (a.stop > start))
        rest = np.flatnonzero(~hit if kept is None else ~hit & kept)
        before, after = (np.flatnonzero(hit & ~point & outside) for outside in (a.start < start, a.stop > stop))
        return cls(
            np.concatenate((rest, before, after)),
            np.concatenate((a.start[rest], a.start[before], np.full(len(after), stop))),
            np.concatenate((a.stop[rest], np.full(len(before), start), a.stop[after])),
        )

    def plus(self, indices: IntArray, start: int, stop: int) -> _Pieces:
        """Add bouts like those at `indices`, from `start` to `stop`."""
        frames = (np.full(len(indices), edge) for edge in (start, stop))
        return _Pieces(*(np.concatenate(pair) for pair in zip((self.indices, self.start, self.stop), (indices, *frames), strict=True)))


def _rebuild(a: Annotation, pieces: _Pieces) -> Annotation:
    """Return an annotation made of pieces of another one, sorted by time."""
    order = np.lexsort((pieces.stop, pieces.start))
    indices = pieces.indices[order]
    return Annotation.from_bouts(
        pieces.start[order],
        pieces.stop[order],
        a.behavior[indices],
        a.ethogram,
        a.rate,
        a.n_frames,
        subject=a.names(a.subject[indices]) if a.subjects else None,
        target=a.names(a.target[indices]) if a.subjects else None,
        observed=a.observed,
        confidence=None if a.confidence is None else a.confidence[indices],
        modifiers=None if a.modifiers is None else a.modifiers[indices].tolist(),
        comment=None if a.comment is None else a.comment[indices].tolist(),
        subjects=a.subjects,
    )


def _add(a: Annotation, start: int, stop: int, code: int, subject: str | None, target: str | None) -> Annotation:
    """Add a bout without confidence, modifiers or comment."""
    index = int(np.searchsorted(a.start, start, side="right"))
    has_subjects = bool(a.subjects or subject or target)
    return Annotation.from_bouts(
        np.insert(a.start, index, start),
        np.insert(a.stop, index, stop),
        np.insert(a.behavior, index, code),
        a.ethogram,
        a.rate,
        a.n_frames,
        subject=_inserted(a.names(a.subject), index, subject) if has_subjects else None,
        target=_inserted(a.names(a.target), index, target) if has_subjects else None,
        observed=a.observed,
        confidence=None if a.confidence is None else np.insert(a.confidence, index, np.nan),
        modifiers=None if a.modifiers is None else _inserted(a.modifiers.tolist(), index, ""),
        comment=None if a.comment is None else _inserted(a.comment.tolist(), index, ""),
        subjects=a.subjects,
    )


def _inserted(values: list[Any], index: int, value: Any) -> list[Any]:
    return [*values[:index], value, *values[index:]]


def _has_duration(annotation: Annotation) -> BoolArray:
    """Return which bouts have a duration; point events do not."""
    return np.asarray(annotation.stop > annotation.start)


def _subject_code(annotation: Annotation, subject: str | None) -> int:
    """Return the code of a subject; -1 for no subject, -2 (which no bout has) for a subject that is not in the annotation."""
    if not subject:
        return -1
    return annotation.subjects.index(subject) if subject in annotation.subjects else -2


def _frames(edit: Edit, annotation: Annotation) -> tuple[int, int]:
    start, stop = edit.get("start"), edit.get("stop")
    if type(start) is not int or type(stop) is not int or not 0 <= start <= stop <= annotation.n_frames:
        raise MismatchError(f"an edit must have 0 <= start <= stop <= {annotation.n_frames}, got start {start!r} and stop {stop!r}")
    return start, stop


def _text(edit: Edit, name: str) -> str | None:
    value = edit.get(name)
    if value is not None and not isinstance(value, str):
        raise EthobenchError(f"the {name} of an edit must be text, got {value!r}")
    return value
