"""A correction under way: its present state, and the way back and forth.

Edits are steps that can be undone. What is watched while labelling is not: it is added to the present state and to every state
that undo and redo lead to, so that undoing an edit never takes back what was watched since, and watching never blocks undo or redo.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ethobench.app.editing import add_observed
from ethobench.core import Annotation
from ethobench.core import intervals as iv
from ethobench.core.intervals import Intervals

REMEMBERED = 2_000_000  # bouts over all steps: about 100 MB


@dataclass(frozen=True)
class _Step:
    """A state to go back or forth to, and how many reports of watched frames it includes."""

    annotation: Annotation
    reports: int


class History:
    """An annotation with undo and redo.

    Parameters
    ----------
    annotation : Annotation
        Where it begins.

    Attributes
    ----------
    annotation : Annotation
        As it is now.
    revision : int
        Grows with every change, undo and redo.
    watches : int
        Grows when watching adds observed frames.
    """

    def __init__(self, annotation: Annotation) -> None:
        self.annotation, self.revision, self.watches = annotation, 0, 0
        self._before: deque[_Step] = deque()
        self._after: list[_Step] = []
        self._reports: list[tuple[Intervals, str | None]] = []
        self._included = 0  # reports that some step includes, so that they cannot be extended

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to go back."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether a step was taken back."""
        return bool(self._after)

    @property
    def previous(self) -> Annotation | None:
        """What `undo` goes back to, if there is something."""
        return self._with_watched(self._before[-1]) if self._before else None

    @property
    def following(self) -> Annotation | None:
        """What `redo` goes forth to, if something was taken back."""
        return self._with_watched(self._after[-1]) if self._after else None

    def change(self, annotation: Annotation) -> None:
        """Go on to a new state; what had been taken back is forgotten."""
        self._before.append(self._step())
        self._after.clear()
        self.annotation, self.revision = annotation, self.revision + 1
        while len(self._before) > 1 and sum(len(step.annotation) for step in self._before) > REMEMBERED:
            self._before.popleft()

    def watch(self, frames: Intervals, subject: str | None = None) -> None:
        """Count frames as observed in this and every other state; no step of its own.

        Parameters
        ----------
        frames : Intervals
            The order in which reports come does not matter, and neither do reports that come twice.
        subject : str, optional
            The subject that was labelled meanwhile; all unless given.
        """
        if len(self._reports) > self._included and self._reports[-1][1] == subject:
            self._reports[-1] = (iv.union_all([self._reports[-1][0], frames]), subject)
        else:
            self._reports.append((frames, subject))
        annotation = add_observed(self.annotation, frames, subject)
        self.watches += annotation is not self.annotation
        self.annotation = annotation

    def undo(self) -> None:
        """Go back one step, if there is one."""
        if self._before:
            step = self._before.pop()
            self._after.append(self._step())
            self.annotation, self.revision = self._with_watched(step), self.revision + 1

    def redo(self) -> None:
        """Go forth one step, if one was taken back."""
        if self._after:
            step = self._after.pop()
            self._before.append(self._step())
            self.annotation, self.revision = self._with_watched(step), self.revision + 1

    def _step(self) -> _Step:
        self._included = len(self._reports)
        return _Step(self.annotation, self._included)

    def _with_watched(self, step: _Step) -> Annotation:
        """Return a step's annotation with what was watched since."""
        annotation = step.annotation
        for frames, subject in self._reports[step.reports :]:
            annotation = add_observed(annotation, frames, subject)
        return annotation
