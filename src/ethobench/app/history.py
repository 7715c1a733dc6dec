"""A correction under way: its present state, and the way back and forth."""

from __future__ import annotations

from collections import deque

from ethobench.core import Annotation

REMEMBERED = 2_000_000  # bouts over all steps: about 100 MB


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
    """

    def __init__(self, annotation: Annotation) -> None:
        self.annotation, self.revision = annotation, 0
        self._before: deque[Annotation] = deque()
        self._after: list[Annotation] = []

    @property
    def previous(self) -> Annotation | None:
        """What `undo` goes back to, if there is something."""
        return self._before[-1] if self._before else None

    @property
    def following(self) -> Annotation | None:
        """What `redo` goes forth to, if something was taken back."""
        return self._after[-1] if self._after else None

    def change(self, annotation: Annotation) -> None:
        """Go on to a new state; what had been taken back is forgotten."""
        self._before.append(self.annotation)
        self._after.clear()
        self.annotation, self.revision = annotation, self.revision + 1
        while len(self._before) > 1 and sum(len(a) for a in self._before) > REMEMBERED:
            self._before.popleft()

    def undo(self) -> None:
        """Go back one step, if there is one."""
        if self._before:
            self._after.append(self.annotation)
            self.annotation, self.revision = self._before.pop(), self.revision + 1

    def redo(self) -> None:
        """Go forth one step, if one was taken back."""
        if self._after:
            self._before.append(self.annotation)
            self.annotation, self.revision = self._after.pop(), self.revision + 1
