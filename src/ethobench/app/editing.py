"""Changes that a person makes to an annotation; each returns a new one and leaves the old one alone.

What is marked or cleared has been looked at, so its frames become observed; `hide` takes that back. `add_observed` and
`remove_observed` change what counts as observed and leave the bouts alone.
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
    """Apply edits as they come from the page, one after the other.

    Parameters
    ----------
    annotation : Annotation
    edits : iterable of mapping
        ``kind`` (mark, clear, hide, observe, unobserve), ``start``, ``stop``; to mark: ``behavior`` (a name), ``subject``,
        ``target``, ``exclusive``; to clear: ``behavior`` and ``subject``, where only these are meant; to observe or unobserve:
        ``subject``, where only one is meant.
    """
    for edit in edits:
        kind, (start, stop) = edit.get("kind"), _frames(edit, annotation)
        subject, target, behavior = (_text(edit, name) for name in ("subject", "target", "behavior"))
        if kind == "mark":
            if behavior is None:
                raise EthobenchError("to mark frames, a behavior must be named")
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
            raise EthobenchError(f"an edit is one of {', '.join(KINDS)}, not {kind!r}")
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
    """Say that a behavior goes on in ``[start, stop)``; it becomes one bout with those of its track that it meets.

    Parameters
    ----------
    annotation : Annotation
    start, stop : int
        Of a point behavior only `start` counts.
    behavior : str
    subject, target : str, optional
        Who does it to whom.
    exclusive : bool
        End what else the subject does in these frames.

    Examples
    --------
    >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest", "run"], rate=10, n_frames=20)
    >>> b = mark(a, 4, 15, "run")
    >>> b.start.tolist(), b.stop.tolist(), b.behavior.tolist()
    ([0, 4], [4, 15], [0, 1])
    """
    code = annotation.ethogram.code(behavior)
    if annotation.ethogram[code].point:
        return _add(_seen(annotation, start, start + 1), start, start, code, subject, target)
    if stop <= start:
        raise EthobenchError(f"a bout ends after it starts, but frames {start} to {stop} were given")
    seen = _seen(annotation, start, stop)
    whose = seen.subject == _place(seen, subject)
    same = whose & (seen.target == _place(seen, target)) & (seen.behavior == code) & _states(seen)
    met = np.flatnonzero(same & (seen.start <= stop) & (seen.stop >= start))
    rest = np.ones(len(seen), dtype=bool)
    rest[met] = False
    others = _states(seen) & whose & ~same if exclusive else np.zeros(len(seen), dtype=bool)
    if met.size:
        first, last = min(start, int(seen.start[met].min())), max(stop, int(seen.stop[met].max()))
        return _rebuilt(seen, _Pieces.cut(seen, start, stop, others, rest).plus(met[:1], first, last))
    return _add(_rebuilt(seen, _Pieces.cut(seen, start, stop, others)), start, stop, code, subject, target)


def clear(annotation: Annotation, start: int, stop: int, *, behavior: str | None = None, subject: str | None = None) -> Annotation:
    """Say that nothing (or not this behavior, or nothing by this subject) goes on in ``[start, stop)``; bouts are cut there."""
    chosen = np.ones(len(annotation), dtype=bool)
    if behavior is not None:
        chosen &= annotation.behavior == annotation.ethogram.code(behavior)
    if subject is not None:
        chosen &= annotation.subject == _place(annotation, subject)
    seen = _seen(annotation, start, stop)
    return _rebuilt(seen, _Pieces.cut(seen, start, stop, chosen))


def hide(annotation: Annotation, start: int, stop: int) -> Annotation:
    """Say that ``[start, stop)`` was not looked at."""
    blank = iv.intervals([start], [stop])
    cut = _rebuilt(annotation, _Pieces.cut(annotation, start, stop, np.ones(len(annotation), dtype=bool)))
    return cut.with_observed(cut.observed.apply(lambda seen: iv.difference(seen, blank)))


def add_observed(annotation: Annotation, frames: Intervals, subject: str | None = None) -> Annotation:
    """Count frames as observed, for one subject or for all.

    Parameters
    ----------
    annotation : Annotation
    frames : Intervals
        In any order; they may overlap.
    subject : str, optional
        Count them for this subject alone; for everyone unless given.

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
    """Count frames as not observed, for one subject or for all; frames with bouts stay observed, and the bouts stay as they are."""
    chosen = np.ones(len(annotation), dtype=bool) if subject is None else annotation.subject == _place(annotation, subject)
    start, stop = annotation.start[chosen], np.maximum(annotation.stop, annotation.start + 1)[chosen]
    removed = iv.difference(iv.union(frames), iv.union(iv.Intervals(start, stop)))
    if not any(iv.overlap(removed, where) for where in _observed_sets(annotation, subject)):
        return annotation
    return _change_observed(annotation, lambda observed: iv.difference(observed, removed), subject)


def _observed_sets(annotation: Annotation, subject: str | None) -> list[Intervals]:
    """Return what was observed of each behavior of one subject; of everything without a subject."""
    observed = annotation.observed
    if subject is None or not observed.tracks:
        return [observed.frames, *observed.tracks.values()]
    return [observed.of(behavior.name, subject) for behavior in annotation.ethogram] or [observed.frames]


def _change_observed(annotation: Annotation, change: Callable[[Intervals], Intervals], subject: str | None) -> Annotation:
    """Change what was observed of one subject, or of all; what was observed of the other subjects stays as it is."""
    observed = annotation.observed
    if subject is None:
        return annotation.with_observed(observed.apply(change))
    tracks = {track: change(where) if track.subject == subject else where for track, where in observed.tracks.items()}
    for track, where in {ObservedTrack(): observed.frames, **observed.tracks}.items():
        if track.subject is None and track.target is None:
            tracks.setdefault(track._replace(subject=subject), change(where))
    alike = [Observed(tracks[key]) for name in annotation.subjects if (key := ObservedTrack(None, name)) in tracks]
    if len(alike) == len(annotation.subjects) == len(tracks) and all(other == alike[0] for other in alike):
        return annotation.with_observed(alike[0])
    return annotation.with_observed(Observed(observed.frames, tracks))


def _seen(annotation: Annotation, start: int, stop: int) -> Annotation:
    return add_observed(annotation, iv.intervals([start], [stop]))


@dataclass(frozen=True)
class _Pieces:
    """Bouts that have all details of the bouts at `places` of an annotation, but frames of their own."""

    places: IntArray
    start: IntArray
    stop: IntArray

    @classmethod
    def cut(cls, a: Annotation, start: int, stop: int, chosen: BoolArray, kept: BoolArray | None = None) -> _Pieces:
        """Take ``[start, stop)`` out of the chosen bouts, where one that reaches over both ends becomes two; leave out what is not kept."""
        point = a.start == a.stop
        hit = chosen & np.where(point, (a.start >= start) & (a.start < stop), (a.start < stop) & (a.stop > start))
        rest = np.flatnonzero(~hit if kept is None else ~hit & kept)
        left, right = (np.flatnonzero(hit & ~point & beyond) for beyond in (a.start < start, a.stop > stop))
        return cls(
            np.concatenate((rest, left, right)),
            np.concatenate((a.start[rest], a.start[left], np.full(len(right), stop))),
            np.concatenate((a.stop[rest], np.full(len(left), start), a.stop[right])),
        )

    def plus(self, places: IntArray, start: int, stop: int) -> _Pieces:
        """Add bouts like those at `places`, from `start` to `stop`."""
        frames = (np.full(len(places), edge) for edge in (start, stop))
        return _Pieces(*(np.concatenate(pair) for pair in zip((self.places, self.start, self.stop), (places, *frames), strict=True)))


def _rebuilt(a: Annotation, pieces: _Pieces) -> Annotation:
    """Make an annotation of pieces of another one, listed by time."""
    sorted_ = np.lexsort((pieces.stop, pieces.start))
    places = pieces.places[sorted_]
    return Annotation.from_bouts(
        pieces.start[sorted_],
        pieces.stop[sorted_],
        a.behavior[places],
        a.ethogram,
        a.rate,
        a.n_frames,
        subject=a.names(a.subject[places]) if a.subjects else None,
        target=a.names(a.target[places]) if a.subjects else None,
        observed=a.observed,
        confidence=None if a.confidence is None else a.confidence[places],
        modifiers=None if a.modifiers is None else a.modifiers[places].tolist(),
        comment=None if a.comment is None else a.comment[places].tolist(),
        subjects=a.subjects,
    )


def _add(a: Annotation, start: int, stop: int, code: int, subject: str | None, target: str | None) -> Annotation:
    """Add a bout that nothing else is known of."""
    place = int(np.searchsorted(a.start, start, side="right"))
    named = bool(a.subjects or subject or target)
    return Annotation.from_bouts(
        np.insert(a.start, place, start),
        np.insert(a.stop, place, stop),
        np.insert(a.behavior, place, code),
        a.ethogram,
        a.rate,
        a.n_frames,
        subject=_inserted(a.names(a.subject), place, subject) if named else None,
        target=_inserted(a.names(a.target), place, target) if named else None,
        observed=a.observed,
        confidence=None if a.confidence is None else np.insert(a.confidence, place, np.nan),
        modifiers=None if a.modifiers is None else _inserted(a.modifiers.tolist(), place, ""),
        comment=None if a.comment is None else _inserted(a.comment.tolist(), place, ""),
        subjects=a.subjects,
    )


def _inserted(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place:]]


def _states(annotation: Annotation) -> BoolArray:
    """Tell which bouts have a duration; point events exclude nothing."""
    return np.asarray(annotation.stop > annotation.start)


def _place(annotation: Annotation, subject: str | None) -> int:
    """Return a subject's code; -1 for nobody, -2 (which no bout has) for one that the annotation does not know yet."""
    if not subject:
        return -1
    return annotation.subjects.index(subject) if subject in annotation.subjects else -2


def _frames(edit: Edit, annotation: Annotation) -> tuple[int, int]:
    start, stop = edit.get("start"), edit.get("stop")
    if type(start) is not int or type(stop) is not int or not 0 <= start <= stop <= annotation.n_frames:
        raise MismatchError(f"an edit is from one of {annotation.n_frames} frames to a later one, not from {start!r} to {stop!r}")
    return start, stop


def _text(edit: Edit, name: str) -> str | None:
    value = edit.get(name)
    if value is not None and not isinstance(value, str):
        raise EthobenchError(f"the {name} of an edit is a name, not {value!r}")
    return value
