"""Suites: which metrics a benchmark reports, under which names, and how it aggregates them. One module each.

`ethobench` is the default. The others follow published definitions exactly, including their quirks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ethobench.core.errors import Note
from ethobench.core.registry import Registry
from ethobench.metrics.base import Measure

if TYPE_CHECKING:
    from ethobench.core import Annotation
    from ethobench.metrics.alignment import Unaligned

MODULES = {name: f"ethobench.metrics.suites.{name}" for name in ("banos", "bebe", "calms21", "ethobench", "mabe2025", "rodentbench")}


class Suite:
    """The scores that a benchmark reports.

    Attributes
    ----------
    title : str
        Source of the definitions, in one line.
    measures : tuple of Measure
        In the order of tables.
    headline : tuple of str
        Names of the measures in tables of reports and papers.
    compact : tuple of str
        Names of the measures in tables of 80 columns; those of `headline` if empty.
    lengths : bool
        Whether prediction and truth may differ in length.
    labels : bool
        Whether they may differ in their behaviors.
    fill_background : bool
        Whether frames without any bout count as the named background.
    exclusive : bool, optional
        Whether one behavior excludes the others by definition; None if each prediction states it.
    separate_subjects : bool
        Whether subjects are scored separately even if one side has no bouts.
    unit : str
        What recordings are grouped by: ``"individual"``, or another unit that takes its place.

    Examples
    --------
    >>> suites["banos"].headline
    ('precision', 'recall', 'f1_score', 'so', 'tp', 'ic')
    """

    name: str = ""
    title: ClassVar[str] = ""
    measures: ClassVar[tuple[Measure, ...]] = ()
    headline: ClassVar[tuple[str, ...]] = ()
    compact: ClassVar[tuple[str, ...]] = ()
    lengths: ClassVar[bool] = False
    labels: ClassVar[bool] = False
    fill_background: ClassVar[bool] = True
    exclusive: ClassVar[bool | None] = None
    separate_subjects: ClassVar[bool] = False
    unit: ClassVar[str] = "individual"

    def prepare(self, recording: Unaligned) -> Unaligned:
        """Return a recording as the suite scores it, before it is aligned."""
        return recording

    def admissible(self, prediction: Annotation, metadata: Mapping[str, Any]) -> Annotation:
        """Return the prediction of a model in the form that the suite accepts; the same by default.

        Parameters
        ----------
        prediction : Annotation
        metadata : mapping
            Of the recording.
        """
        return prediction

    def notes(self, recordings: Iterable[Unaligned]) -> list[Note]:
        """Return what the suite lacks or assumes about the recordings."""
        return []


suites: Registry[Suite] = Registry("suite", MODULES)
register_suite = suites.register
