"""Occurrence of behaviors: how much of each there is, which never occur, and their colors in reports and the viewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ethobench.core.annotation import Annotation
from ethobench.core.ethogram import Ethogram


class Amount(NamedTuple):
    """Amount of a behavior: total duration in seconds, and number of bouts or point events."""

    seconds: float = 0.0
    bouts: int = 0

    def __add__(self, other: object) -> Amount:
        """Add durations and counts."""
        if not isinstance(other, Amount):
            return NotImplemented
        return Amount(self.seconds + other.seconds, self.bouts + other.bouts)


@dataclass(frozen=True)
class Occurrence:
    """Amount of each behavior of an ethogram in annotations and in predictions.

    Attributes
    ----------
    ethogram : Ethogram
    annotated, predicted : mapping of str to Amount
        By behavior; one that is missing, or has no bouts, does not occur.

    Examples
    --------
    >>> ethogram = Ethogram(["rest", "run", "bite", "other"], background="other")
    >>> truth = Annotation.from_frames([3, 1, 1, 1], ethogram, rate=1)
    >>> model = Annotation.from_frames([0, 1, 1, 3], ethogram, rate=1)
    >>> occurrence = Occurrence.count(ethogram, [truth], [model])
    >>> occurrence.never_annotated, occurrence.only_predicted
    (('bite',), ('rest',))
    >>> occurrence.color_indices()
    {'rest': 1, 'run': 0, 'bite': 2, 'other': None}
    """

    ethogram: Ethogram
    annotated: Mapping[str, Amount]
    predicted: Mapping[str, Amount] = field(default_factory=dict)

    @classmethod
    def count(cls, ethogram: Ethogram, annotated: Iterable[Annotation], predicted: Iterable[Annotation] = ()) -> Occurrence:
        """Count the bouts of annotations and predictions.

        Parameters
        ----------
        ethogram : Ethogram
        annotated, predicted : iterable of Annotation
            Ethograms may differ; behaviors are matched by name.
        """
        return cls(ethogram, _amounts(annotated), _amounts(predicted))

    def join(self, other: Occurrence) -> Occurrence:
        """Add two occurrences; behaviors that only the other has come last."""
        sides = []
        for first, second in ((self.annotated, other.annotated), (self.predicted, other.predicted)):
            sides.append({name: first.get(name, Amount()) + second.get(name, Amount()) for name in {**first, **second}})
        return Occurrence(self.ethogram.join(other.ethogram), *sides)

    @property
    def never_annotated(self) -> tuple[str, ...]:
        """Behaviors, except the background, that are in no annotation and in no prediction."""
        return tuple(name for name in self._foreground if not self.total(name).bouts)

    @property
    def only_predicted(self) -> tuple[str, ...]:
        """Behaviors, except the background, that are in a prediction but in no annotation."""
        return tuple(n for n in self._foreground if self.total(n).bouts and not self.annotated.get(n, Amount()).bouts)

    def total(self, name: str) -> Amount:
        """Return the amount of a behavior in all annotations and predictions."""
        return self.annotated.get(name, Amount()) + self.predicted.get(name, Amount())

    def lines(self, remark: str = "") -> list[str]:
        """Return one line each that lists the behaviors that never occur, and those that were only predicted; none if there are none.

        Parameters
        ----------
        remark : str
            Added in parentheses after the behaviors that never occur.
        """
        groups = {"never annotated": self.never_annotated, "predicted but never annotated": self.only_predicted}
        lines = {text: f"{text}: {', '.join(names)}" for text, names in groups.items() if names}
        return [line + (f" ({remark})" if remark and text == "never annotated" else "") for text, line in lines.items()]

    def color_indices(self) -> dict[str, int | None]:
        """Assign an index into the color palette to each behavior; None for the background, which is gray.

        The first colors of the palette differ most, so they go to the behaviors with the longest total duration (then the most
        bouts, then the order of the ethogram). Behaviors that never occur come last.
        """

        def rank(name: str) -> tuple[bool, float, int]:
            amount = self.total(name)
            return not amount.bouts, -round(amount.seconds, 6), -amount.bouts

        order = sorted(self._foreground, key=rank)
        return {name: order.index(name) if name in order else None for name in self.ethogram.names}

    @property
    def _foreground(self) -> list[str]:
        return [name for name in self.ethogram.names if name != self.ethogram.background_name]


def _amounts(annotations: Iterable[Annotation]) -> dict[str, Amount]:
    """Sum the durations and bouts of each behavior that occurs."""
    amounts: dict[str, Amount] = {}
    for annotation in annotations:
        bouts = np.bincount(annotation.behavior, minlength=len(annotation.ethogram))
        frames = np.bincount(annotation.behavior, weights=annotation.stop - annotation.start, minlength=len(annotation.ethogram))
        for code in np.flatnonzero(bouts):
            name = annotation.ethogram[int(code)].name
            amounts[name] = amounts.get(name, Amount()) + Amount(float(frames[code]) / annotation.rate, int(bouts[code]))
    return amounts
