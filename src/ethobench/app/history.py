"""Undo and redo for a correction.

Edits can be undone. Watched frames cannot: they are added to the current state and to every state that undo and redo lead to, so undoing
an edit never makes watched frames unobserved, and watching never blocks undo or redo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ethobench.app.editing import add_observed
from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals

MAX_BOUTS = 2_000_000  # bouts over all steps: about 100 MB


@dataclass(frozen=True)
class _Step:
    """A state to return to, and the number of reports of watched frames that it includes."""

    annotation: Annotation
    reports: int


@dataclass(frozen=True)
class HistorySnapshot:
    """All states of a correction, and its revision."""

    current: _Step
    before: tuple[_Step, ...]
    after: tuple[_Step, ...]
    revision: int


class History:
    """An annotation with undo and redo.

    Parameters
    ----------
    annotation : Annotation
        The initial state.

    Attributes
    ----------
    annotation : Annotation
        The current state.
    revision : int
        Incremented by every edit, undo and redo.
    watches : int
        Incremented when watching adds observed frames.
    """

    def __init__(self, annotation: Annotation) -> None:
        self.annotation, self.revision, self.watches = annotation, 0, 0
        self._before: deque[_Step] = deque()
        self._after: list[_Step] = []
        self._reports: list[tuple[Intervals, str | None]] = []
        self._included = 0  # number of reports that a step includes; these cannot be extended

    @property
    def can_undo(self) -> bool:
        """Whether an edit can be undone."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether an edit can be redone."""
        return bool(self._after)

    @property
    def previous(self) -> Annotation | None:
        """The state that `undo` returns to, if any."""
        return self._with_watched(self._before[-1]) if self._before else None

    @property
    def following(self) -> Annotation | None:
        """The state that `redo` returns to, if any."""
        return self._with_watched(self._after[-1]) if self._after else None

    def change(self, annotation: Annotation) -> None:
        """Set a new state; undone edits are discarded."""
        self._before.append(self._step())
        self._after.clear()
        self.annotation, self.revision = annotation, self.revision + 1
        while len(self._before) > 1 and sum(len(step.annotation) for step in self._before) > MAX_BOUTS:
            self._before.popleft()

    def watch(self, frames: Intervals, subject: str | None = None) -> None:
        """Mark frames as observed in this and every other state; this is not an edit.

        Parameters
        ----------
        frames : Intervals
            Reports may arrive in any order, and more than once.
        subject : str, optional
            The subject that was being labeled; all subjects if None.
        """
        if len(self._reports) > self._included and self._reports[-1][1] == subject:
            self._reports[-1] = (iv.union_all([self._reports[-1][0], frames]), subject)
        else:
            self._reports.append((frames, subject))
        annotation = add_observed(self.annotation, frames, subject)
        self.watches += annotation is not self.annotation
        self.annotation = annotation

    def snapshot(self) -> HistorySnapshot:
        """Return all states, to `restore` them later."""
        return HistorySnapshot(self._step(), tuple(self._before), tuple(self._after), self.revision)

    def restore(self, snapshot: HistorySnapshot, change: Callable[[Annotation], Annotation]) -> None:
        """Return to a snapshot, with the frames watched since; `change` is applied to each state."""
        self._before, self._after = deque(snapshot.before), list(snapshot.after)
        self.annotation = self._with_watched(snapshot.current)
        self.convert(change)

    def convert(self, change: Callable[[Annotation], Annotation]) -> None:
        """Apply a change to this state and to every state that undo and redo lead to; it is not an edit."""
        self._before = deque(_Step(change(step.annotation), step.reports) for step in self._before)
        self._after = [_Step(change(step.annotation), step.reports) for step in self._after]
        self.annotation, self.revision = change(self.annotation), self.revision + 1

    def undo(self) -> None:
        """Undo the last edit, if any."""
        if self._before:
            step = self._before.pop()
            self._after.append(self._step())
            self.annotation, self.revision = self._with_watched(step), self.revision + 1

    def redo(self) -> None:
        """Redo the last undone edit, if any."""
        if self._after:
            step = self._after.pop()
            self._before.append(self._step())
            self.annotation, self.revision = self._with_watched(step), self.revision + 1

    def _step(self) -> _Step:
        self._included = len(self._reports)
        return _Step(self.annotation, self._included)

    def _with_watched(self, step: _Step) -> Annotation:
        """Return the annotation of a step with the frames watched since."""
        annotation = step.annotation
        for frames, subject in self._reports[step.reports :]:
            annotation = add_observed(annotation, frames, subject)
        return annotation
