"""One recording: who, when, what was measured, and what annotators say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from ethobench.core.annotation import Annotation
from ethobench.core.errors import EthobenchError, Note, NotFoundError
from ethobench.core.signals import Poses, Signals

Data: TypeAlias = Signals | Poses
DEFAULT_ANNOTATOR = "annotator"


@dataclass(eq=False)
class Recording:
    """A stretch of data of one individual (or pair, or cage).

    Parameters
    ----------
    id : str
    individual : str
        What must never be split between training and test: animal, pair or cage. ``"a;b"`` names several animals.
    rate : float, optional
        Frames per second.
    n_frames : int, optional
        Length; taken from the signals or the annotations where not given.
    subjects : tuple of str
        The animals that annotations may name.
    signals : Signals, Poses or a function that loads them, optional
        Loaded when first used.
    features : Signals or a function that loads them, optional
        Features that came with the data, beside the signals.
    annotations : mapping of str to Annotation
        By annotator name.
    video : Path, optional
    start_time : datetime, optional
    metadata : mapping
        Anything else that the file tells.
    notes : tuple of Note
        What the reader repaired, dropped or could not match.
    """

    id: str
    individual: str = ""
    rate: float | None = None
    n_frames: int | None = None
    subjects: tuple[str, ...] = ()
    signals: Data | Callable[[], Data] | None = None
    features: Signals | Callable[[], Signals] | None = None
    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    video: Path | None = None
    start_time: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        self.individual = self.individual or self.id
        self.annotations = dict(self.annotations)
        first = next(iter(self.annotations.values()), None)
        if first is not None:
            self.rate = self.rate or first.rate
            self.n_frames = first.n_frames if self.n_frames is None else self.n_frames
        if isinstance(self.signals, (Signals, Poses)):
            self.rate = self.rate or self.signals.rate
            self.n_frames = len(self.signals) if self.n_frames is None else self.n_frames

    def __getattribute__(self, name: str) -> Any:
        """Load signals and features on first use."""
        value = object.__getattribute__(self, name)
        if name in ("signals", "features") and callable(value) and not isinstance(value, (Signals, Poses)):
            value = value()
            object.__setattr__(self, name, value)
        return value

    def __repr__(self) -> str:
        frames = "unknown length" if self.n_frames is None else f"{self.n_frames} frames"
        rate = "unknown rate" if self.rate is None else f"{self.rate:g} Hz"
        return f"Recording({self.id!r}, {frames} at {rate}, annotators: {', '.join(self.annotations) or 'none'})"

    @property
    def animals(self) -> frozenset[str]:
        """The animals that `individual` names."""
        return frozenset(part.strip() for part in self.individual.split(";"))

    def annotation(self, annotator: str | None = None) -> Annotation:
        """Return what one annotator says; the name may be left out where there is only one."""
        if not self.annotations:
            raise NotFoundError(f"recording {self.id!r} has no annotation")
        if annotator is None:
            if len(self.annotations) > 1:
                raise EthobenchError(f"recording {self.id!r} has several annotators, so name one: {', '.join(self.annotations)}")
            return next(iter(self.annotations.values()))
        if annotator not in self.annotations:
            raise NotFoundError(f"recording {self.id!r} has no annotator {annotator!r}; there are: {', '.join(self.annotations)}")
        return self.annotations[annotator]

    def copy(self, **changes: Any) -> Recording:
        """Return a copy with some fields changed; signals that are not loaded yet stay so."""
        lazy = {name: object.__getattribute__(self, name) for name in ("signals", "features")}
        return replace(self, **{**lazy, **changes})
