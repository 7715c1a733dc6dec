"""How often behaviors occur, which of them never do, and which color each one gets in reports and in the viewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ethobench.core.annotation import Annotation
from ethobench.core.ethogram import Ethogram


class Amount(NamedTuple):
    """How much of a behavior there is: total duration in seconds, and number of bouts or point events."""

    seconds: float = 0.0
    bouts: int = 0

    def __add__(self, other: object) -> Amount:
        """Add durations and counts."""
        if not isinstance(other, Amount):
            return NotImplemented
        return Amount(self.seconds + other.seconds, self.bouts + other.bouts)


@dataclass(frozen=True)
class Occurrence:
    """How often each behavior of an ethogram was annotated, and how often it was predicted.

    Attributes
    ----------
    ethogram : Ethogram
    annotated, predicted : mapping of str to Amount
        By name; a behavior that is missing, or has no bouts, does not occur.

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
        """Count the bouts of some annotations and predictions.

        Parameters
        ----------
        ethogram : Ethogram
        annotated, predicted : iterable of Annotation
            Their ethograms may differ; behaviors are matched by name.
        """
        return cls(ethogram, _amounts(annotated), _amounts(predicted))

    def join(self, other: Occurrence) -> Occurrence:
        """Add up two occurrences; behaviors that only the other has come last."""
        sides = []
        for mine, theirs in ((self.annotated, other.annotated), (self.predicted, other.predicted)):
            sides.append({name: mine.get(name, Amount()) + theirs.get(name, Amount()) for name in {**mine, **theirs}})
        return Occurrence(self.ethogram.join(other.ethogram), *sides)

    @property
    def never_annotated(self) -> tuple[str, ...]:
        """The behaviors, other than the background, that are in no annotation and in no prediction."""
        return tuple(name for name in self._foreground if not self.total(name).bouts)

    @property
    def only_predicted(self) -> tuple[str, ...]:
        """The behaviors, other than the background, that are in a prediction but in no annotation."""
        return tuple(n for n in self._foreground if self.total(n).bouts and not self.annotated.get(n, Amount()).bouts)

    def total(self, name: str) -> Amount:
        """Return the amount of a behavior in all annotations and predictions."""
        return self.annotated.get(name, Amount()) + self.predicted.get(name, Amount())

    def lines(self, remark: str = "") -> list[str]:
        """Name the behaviors that never occur, and those that are false alarms only: one line each, none where there are none.

        Parameters
        ----------
        remark : str
            What to add about the behaviors that never occur.
        """
        groups = {"never annotated": self.never_annotated, "predicted but never annotated": self.only_predicted}
        lines = {text: f"{text}: {', '.join(names)}" for text, names in groups.items() if names}
        return [line + (f" ({remark})" if remark and text == "never annotated" else "") for text, line in lines.items()]

    def color_indices(self) -> dict[str, int | None]:
        """Assign a place in the color palette to each behavior; the background has none, it is gray.

        The first colors of the palette differ most, so they go to the behaviors with the longest total duration (then the most
        bouts, then the order of the ethogram). Behaviors that never occur get what is left.
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
