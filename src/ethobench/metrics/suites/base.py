"""The contract of a suite, and the registry that finds them."""

from __future__ import annotations

from typing import ClassVar

from ethobench.core.registry import Registry
from ethobench.metrics.measures import Measure


class Suite:
    """What a benchmark measures; its name is the module's name.

    Attributes
    ----------
    title : str
        Whose definitions these are, in one line.
    measures : tuple of Measure
        In the order in which they are shown.
    headline : tuple of str
        The measures that a short table shows.
    lengths : bool
        Whether prediction and truth may differ in length.
    labels : bool
        Whether they may differ in their behaviors.
    fill_background : bool
        Whether frames without any bout are the named background.
    exclusive : bool, optional
        Whether one behavior excludes the others by definition; None where each prediction says so itself.
    """

    name: str = ""
    title: ClassVar[str] = ""
    measures: ClassVar[tuple[Measure, ...]] = ()
    headline: ClassVar[tuple[str, ...]] = ()
    lengths: ClassVar[bool] = False
    labels: ClassVar[bool] = False
    fill_background: ClassVar[bool] = True
    exclusive: ClassVar[bool | None] = None


MODULES = {
    name: f"ethobench.metrics.suites.{name}"
    for name in (
        "banos",
        "bebe",
        "calms21",
        "ethobench",
        "rodentbench",
    )
}

suites: Registry[Suite] = Registry("suite", MODULES)
register_suite = suites.register
