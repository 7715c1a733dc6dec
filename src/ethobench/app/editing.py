"""Edits of an annotation. Each function returns a new annotation.

`mark` and `clear` make the edited frames observed for their subject; `hide` makes them unobserved. `add_observed` and `remove_observed`
change the observed frames only, not the bouts. `change_bout`, `split_bout` and `merge_bouts` edit single bouts and keep their modifiers
and comments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Observed
from ethobench.core import Track as ObservedTrack
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.intervals import BoolArray, IntArray, Intervals

Edit: TypeAlias = Mapping[str, Any]
MAX_TEXT = 2000  # characters of a modifier or comment
MAX_SUBJECTS = 100
MAX_SUBJECT_NAME = 60  # characters


def apply_edits(annotation: Annotation, edits: Iterable[Edit]) -> Annotation:
    """Apply the edits of a request in order.

    Parameters
    ----------
    annotation : Annotation
    edits : iterable of mapping
        ``kind`` and, except for subjects, ``start`` and ``stop``. By kind:

        - mark: ``behavior`` (a name), ``subject``, ``target``, ``exclusive`` (true, false, or a list of the behaviors to remove),
          ``modifiers``, ``comment``
        - clear: optionally ``behavior`` and ``subject``
        - hide
        - observe, unobserve: optionally ``subject``
        - change: the bout (``start``, ``stop``, ``behavior``, ``subject``, ``target``), ``to`` (new values of these fields, and of
          ``modifiers`` and ``comment``) and ``exclusive``
        - split: the bout, and the frame ``at``
        - merge: the bout, ``forward`` (with the next or the previous bout of its track), and ``exclusive``
        - subject: ``subject`` (None to add one) and ``name`` (None to remove it)
    """
    for edit in edits:
        kind = edit.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise EthobenchError(f"the kind of an edit must be one of {', '.join(_KINDS)}, got {kind!r}")
        annotation = _KINDS[kind](annotation, edit)
    return annotation


def _apply_mark(annotation: Annotation, edit: Edit) -> Annotation:
    start, stop = _frames(edit, annotation)
    subject, target, behavior, modifiers, comment = (_text(edit, n) for n in ("subject", "target", "behavior", "modifiers", "comment"))
    if behavior is None:
        raise EthobenchError("a mark needs a behavior")
    details = (modifiers or "", comment or "")
    return mark(annotation, start, stop, behavior, subject=subject, target=target, exclusive=_exclusive(edit), details=details)


def _apply_clear(annotation: Annotation, edit: Edit) -> Annotation:
    return clear(annotation, *_frames(edit, annotation), behavior=_text(edit, "behavior"), subject=_text(edit, "subject"))


def _apply_hide(annotation: Annotation, edit: Edit) -> Annotation:
    return hide(annotation, *_frames(edit, annotation))


def _apply_observe(annotation: Annotation, edit: Edit) -> Annotation:
    start, stop = _frames(edit, annotation)
    change = add_observed if edit["kind"] == "observe" else remove_observed
    return change(annotation, iv.intervals([start], [stop]), _text(edit, "subject"))


def _apply_change(annotation: Annotation, edit: Edit) -> Annotation:
    to = edit.get("to")
    if not isinstance(to, Mapping):
        raise EthobenchError("a change of a bout needs its new values, `to`")
    index = _find_bout(annotation, edit)
    values: dict[str, Any] = {name: _text(to, name) for name in ("behavior", "subject", "target", "modifiers", "comment") if name in to}
    if "start" in to or "stop" in to:
        values["start"], values["stop"] = _frames({"start": edit.get("start"), "stop": edit.get("stop"), **to}, annotation)
    return change_bout(annotation, index, exclusive=_exclusive(edit), **values)


def _apply_split(annotation: Annotation, edit: Edit) -> Annotation:
    return split_bout(annotation, _find_bout(annotation, edit), _frame(edit, "at"))


def _apply_merge(annotation: Annotation, edit: Edit) -> Annotation:
    index = _find_bout(annotation, edit)
    return merge_bouts(annotation, index, forward=edit.get("forward") is not False, exclusive=_exclusive(edit))


def _apply_subject(annotation: Annotation, edit: Edit) -> Annotation:
    return change_subject(annotation, _text(edit, "subject"), _text(edit, "name"))


_KINDS: dict[str, Callable[[Annotation, Edit], Annotation]] = {
    "mark": _apply_mark,
    "clear": _apply_clear,
    "hide": _apply_hide,
    "observe": _apply_observe,
    "unobserve": _apply_observe,
    "change": _apply_change,
    "split": _apply_split,
    "merge": _apply_merge,
    "subject": _apply_subject,
}


def mark(
    annotation: Annotation,
    start: int,
    stop: int,
    behavior: str,
    *,
    subject: str | None = None,
    target: str | None = None,
    exclusive: bool | Collection[str] = True,
    details: tuple[str, str] = ("", ""),
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
    exclusive : bool or collection of str
        Remove other behaviors of the subject in these frames: all, none, or those with these names.
    details : tuple of str
        Modifiers and comment of the new bout.

    Examples
    --------
    >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest", "run"], rate=10, n_frames=20)
    >>> b = mark(a, 4, 15, "run")
    >>> b.start.tolist(), b.stop.tolist(), b.behavior.tolist()
    ([0, 4], [4, 15], [0, 1])
    """
    code = annotation.ethogram.code(behavior)
    if annotation.ethogram[code].point:
        return _add(_observe(annotation, start, start + 1, subject), start, start, code, subject, target, details)
    if stop <= start:
        raise EthobenchError(f"a bout must end after it starts, got frames {start} to {stop}")
    observed = _observe(annotation, start, stop, subject)
    same_subject = observed.subject == _subject_code(observed, subject)
    same_track = same_subject & (observed.target == _subject_code(observed, target)) & (observed.behavior == code) & _has_duration(observed)
    touching = np.flatnonzero(same_track & (observed.start <= stop) & (observed.stop >= start))
    kept = np.ones(len(observed), dtype=bool)
    kept[touching] = False
    others = _has_duration(observed) & same_subject & ~same_track & _excluded(observed, exclusive)
    if touching.size:
        first, last = min(start, int(observed.start[touching].min())), max(stop, int(observed.stop[touching].max()))
        return _rebuild(observed, _Pieces.cut(observed, start, stop, others, kept).plus(touching[:1], first, last))
    return _add(_rebuild(observed, _Pieces.cut(observed, start, stop, others)), start, stop, code, subject, target, details)


def clear(annotation: Annotation, start: int, stop: int, *, behavior: str | None = None, subject: str | None = None) -> Annotation:
    """Remove bouts (optionally of one behavior or subject) from ``[start, stop)``; longer bouts are cut."""
    chosen = np.ones(len(annotation), dtype=bool)
    if behavior is not None:
        chosen &= annotation.behavior == annotation.ethogram.code(behavior)
    if subject is not None:
        chosen &= annotation.subject == _subject_code(annotation, subject)
    observed = _observe(annotation, start, stop, subject)
    return _rebuild(observed, _Pieces.cut(observed, start, stop, chosen))


def hide(annotation: Annotation, start: int, stop: int) -> Annotation:
    """Mark ``[start, stop)`` as unobserved, and remove its bouts."""
    blank = iv.intervals([start], [stop])
    cut = _rebuild(annotation, _Pieces.cut(annotation, start, stop, np.ones(len(annotation), dtype=bool)))
    return cut.with_observed(cut.observed.apply(lambda frames: iv.difference(frames, blank)))


def change_bout(annotation: Annotation, index: int, *, exclusive: bool | Collection[str] = True, **values: Any) -> Annotation:
    """Change values of one bout; the others are kept.

    Parameters
    ----------
    annotation : Annotation
    index : int
    exclusive : bool or collection of str
        Remove other behaviors of the subject in the frames of the changed bout; see `mark`.
    **values
        ``start``, ``stop``, ``behavior``, ``subject``, ``target``, ``modifiers``, ``comment``.

    Examples
    --------
    >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest", "run"], rate=10, n_frames=20, comment=["calm"])
    >>> b = change_bout(a, 0, stop=5, behavior="run")
    >>> b.start.tolist(), b.stop.tolist(), b.behavior.tolist(), b.comment.tolist()
    ([0], [5], [1], ['calm'])
    """
    a = annotation
    subject, target = (values.get(name, a.names(getattr(a, name)[[index]])[0]) or None for name in ("subject", "target"))
    code = a.ethogram.code(values["behavior"]) if values.get("behavior") else int(a.behavior[index])
    start, stop = values.get("start", int(a.start[index])), values.get("stop", int(a.stop[index]))
    point = a.ethogram[code].point
    if point != bool(a.start[index] == a.stop[index]):
        raise EthobenchError("a state cannot become a point event, nor a point event a state")
    stop = start if point else stop
    if stop <= start and not point:
        raise EthobenchError(f"a bout must end after it starts, got frames {start} to {stop}")
    texts = [values.get(name) if name in values else _detail(a, index, name) for name in ("modifiers", "comment")]
    confidence = np.nan if a.confidence is None else float(a.confidence[index])
    kept = np.arange(len(a)) != index
    others = kept & _has_duration(a) & (a.subject == _subject_code(a, subject)) & _excluded(a, exclusive)
    rest = _rebuild(a, _Pieces.cut(a, start, stop, others & (stop > start), kept))
    observed = _observe(rest, start, max(stop, start + 1), subject)
    return _add(observed, start, stop, code, subject, target, (texts[0] or "", texts[1] or ""), confidence)


def split_bout(annotation: Annotation, index: int, frame: int) -> Annotation:
    """Split a bout in two; the second begins at `frame`. Both keep the modifiers and the comment."""
    start, stop = int(annotation.start[index]), int(annotation.stop[index])
    if not start < frame < stop:
        raise EthobenchError(f"a bout of frames {start} to {stop} cannot be split at frame {frame}")
    kept = np.flatnonzero(np.arange(len(annotation)) != index)
    pieces = _Pieces(kept, annotation.start[kept], annotation.stop[kept])
    return _rebuild(annotation, pieces.plus(np.array([index]), start, frame).plus(np.array([index]), frame, stop))


def merge_bouts(annotation: Annotation, index: int, *, forward: bool = True, exclusive: bool | Collection[str] = True) -> Annotation:
    """Merge a bout with the next (or previous) bout of the same behavior, subject and target; the gap between them is filled.

    Modifiers and comments of both are joined.
    """
    a = annotation
    same = (a.behavior == a.behavior[index]) & (a.subject == a.subject[index]) & (a.target == a.target[index]) & _has_duration(a)
    track = np.flatnonzero(same)
    position = int(np.searchsorted(track, index)) + (1 if forward else -1)
    if index not in track or not 0 <= position < len(track):
        if forward:
            raise EthobenchError("there is no next bout of this behavior to merge with")
        raise EthobenchError("there is no previous bout of this behavior to merge with")
    first, second = sorted((index, int(track[position])))
    texts = {}
    for name in ("modifiers", "comment"):
        details = dict.fromkeys(filter(None, (_detail(a, first, name), _detail(a, second, name))))
        texts[name] = "; ".join(details)
    start, stop = int(a.start[first]), max(int(a.stop[first]), int(a.stop[second]))
    kept = np.flatnonzero(np.arange(len(a)) != second)
    rest = _rebuild(a, _Pieces(kept, a.start[kept], a.stop[kept]))
    position = int(np.searchsorted(kept, first))
    return change_bout(rest, position, start=start, stop=stop, exclusive=exclusive, **texts)


def change_subject(annotation: Annotation, subject: str | None, name: str | None) -> Annotation:
    """Add a subject (`subject` is None), rename it, or remove one without bouts (`name` is None)."""
    new = None if name is None else " ".join(name.split())
    if new is not None and (not new or len(new) > MAX_SUBJECT_NAME):
        raise EthobenchError(f"the name of an animal must have 1 to {MAX_SUBJECT_NAME} characters")
    if new in annotation.subjects:
        if subject in (None, new):
            return annotation
        raise EthobenchError(f"there is already an animal with the name {new!r}")
    if subject is not None and subject not in annotation.subjects:
        raise MismatchError(f"no animal has the name {subject!r} in this correction")
    if subject is None:
        if len(annotation.subjects) >= MAX_SUBJECTS:
            raise EthobenchError(f"a recording can have at most {MAX_SUBJECTS} animals")
        return replace(annotation, subjects=(*annotation.subjects, *([new] if new else [])))
    tracks = annotation.observed.tracks
    if new is not None:
        renamed = {
            t._replace(subject=_renamed(t.subject, subject, new), target=_renamed(t.target, subject, new)): w for t, w in tracks.items()
        }
        subjects = tuple(_renamed(old, subject, new) or "" for old in annotation.subjects)
        return replace(annotation, subjects=subjects, observed=Observed(annotation.observed.frames, renamed))
    code = annotation.subjects.index(subject)
    if ((annotation.subject == code) | (annotation.target == code)).any():
        raise EthobenchError(f"{subject!r} has bouts and cannot be removed; clear or rename them first")
    codes = {
        column: np.where(getattr(annotation, column) > code, getattr(annotation, column) - 1, getattr(annotation, column))
        for column in ("subject", "target")
    }
    remaining = {track: frames_of_track for track, frames_of_track in tracks.items() if subject not in (track.subject, track.target)}
    subjects = tuple(old for old in annotation.subjects if old != subject)
    return replace(annotation, subjects=subjects, observed=Observed(annotation.observed.frames, remaining), **codes)


def _renamed(name: str | None, old: str, new: str) -> str | None:
    return new if name == old else name


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
    if all(iv.overlap(frames, observed_frames) == iv.total(frames) for observed_frames in _observed_sets(annotation, subject)):
        return annotation
    return _change_observed(annotation, lambda observed: iv.union_all([observed, frames]), subject)


def remove_observed(annotation: Annotation, frames: Intervals, subject: str | None = None) -> Annotation:
    """Mark frames as unobserved, for one subject or for all. Frames with bouts remain observed."""
    chosen = np.ones(len(annotation), dtype=bool) if subject is None else annotation.subject == _subject_code(annotation, subject)
    start, stop = annotation.start[chosen], np.maximum(annotation.stop, annotation.start + 1)[chosen]
    removed = iv.difference(iv.union(frames), iv.union(iv.Intervals(start, stop)))
    if not any(iv.overlap(removed, observed_frames) for observed_frames in _observed_sets(annotation, subject)):
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
    tracks = {track: change(frames) if track.subject == subject else frames for track, frames in observed.tracks.items()}
    for track, frames in {ObservedTrack(): observed.frames, **observed.tracks}.items():
        if track.subject is None and track.target is None:
            tracks.setdefault(track._replace(subject=subject), change(frames))
    per_subject = [Observed(tracks[key]) for name in annotation.subjects if (key := ObservedTrack(None, name)) in tracks]
    if len(per_subject) == len(annotation.subjects) == len(tracks) and all(other == per_subject[0] for other in per_subject):
        return annotation.with_observed(per_subject[0])
    return annotation.with_observed(Observed(observed.frames, tracks))


def _observe(annotation: Annotation, start: int, stop: int, subject: str | None = None) -> Annotation:
    """Mark the frames of a bout as observed, for its subject only: what others did meanwhile is not known."""
    return add_observed(annotation, iv.intervals([start], [stop]), subject or None)


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


def _add(
    a: Annotation,
    start: int,
    stop: int,
    code: int,
    subject: str | None,
    target: str | None,
    details: tuple[str, str] = ("", ""),
    confidence: float = np.nan,
) -> Annotation:
    """Add a bout; `details` are its modifiers and its comment."""
    modifiers, comment = (
        [""] * len(a) if column is None and text else column if column is None else column.tolist()
        for column, text in zip((a.modifiers, a.comment), details, strict=True)
    )
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
        confidence=None if a.confidence is None else np.insert(a.confidence, index, confidence),
        modifiers=None if modifiers is None else _inserted(modifiers, index, details[0]),
        comment=None if comment is None else _inserted(comment, index, details[1]),
        subjects=a.subjects,
    )


def _inserted(values: list[Any], index: int, value: Any) -> list[Any]:
    return [*values[:index], value, *values[index:]]


def _excluded(annotation: Annotation, exclusive: bool | Collection[str]) -> BoolArray:
    """Return which bouts have a behavior that a new bout removes."""
    if isinstance(exclusive, bool):
        return np.full(len(annotation), exclusive)
    codes = [code for code, behavior in enumerate(annotation.ethogram) if behavior.name in exclusive]
    return np.isin(annotation.behavior, codes)


def _exclusive(edit: Edit) -> bool | Collection[str]:
    value = edit.get("exclusive")
    if isinstance(value, list):
        if not all(isinstance(name, str) for name in value):
            raise EthobenchError("`exclusive` must be true, false or a list of names")
        return frozenset(value)
    return value is not False


def _find_bout(annotation: Annotation, edit: Edit) -> int:
    """Return the index of the bout that an edit describes."""
    start, stop = _frames(edit, annotation)
    behavior, subject, target = (_text(edit, name) for name in ("behavior", "subject", "target"))
    if behavior is None:
        raise EthobenchError("an edit of a bout needs its behavior")
    code = annotation.ethogram.code(behavior)
    is_match = (annotation.start == start) & (annotation.stop == stop) & (annotation.behavior == code)
    is_match &= (annotation.subject == _subject_code(annotation, subject)) & (annotation.target == _subject_code(annotation, target))
    indices = np.flatnonzero(is_match)
    if not indices.size:
        raise MismatchError(f"there is no bout of {behavior!r} at frames {start} to {stop}; it was changed in the meantime")
    return int(indices[0])


def _detail(annotation: Annotation, index: int, name: str) -> str:
    column = getattr(annotation, name)
    return "" if column is None else str(column[index])


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


def _frame(edit: Edit, name: str) -> int:
    frame = edit.get(name)
    if type(frame) is not int:
        raise MismatchError(f"`{name}` must be a frame, got {frame!r}")
    return frame


def _text(edit: Edit, name: str) -> str | None:
    value = edit.get(name)
    if value is not None and not isinstance(value, str):
        raise EthobenchError(f"the {name} of an edit must be text, got {value!r}")
    if value is not None and len(value) > MAX_TEXT:
        raise EthobenchError(f"the {name} of a bout can have at most {MAX_TEXT} characters, got {len(value)}")
    return value
