"""One recording: who, when, what was measured, and what annotators say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ethobench.core.annotation import Annotation
from ethobench.core.errors import EthobenchError, Note, NotFoundError
from ethobench.core.signals import Poses, Signals

if TYPE_CHECKING:
    import xarray

Data: TypeAlias = Signals | Poses
DEFAULT_ANNOTATOR = "annotator"


class ClockOrigin(StrEnum):
    """Where the frame rate of a recording comes from.

    Attributes
    ----------
    STATED
        The file states it, or has a time for each frame.
    ASSUMED
        The file does not state it; the reader assumed one (30 Hz for frame numbers, 1000 Hz for times in seconds).
    GIVEN
        The user gave it (``rate=``, ``--rate``, column ``rate`` of a manifest).
    """

    STATED = "stated"
    ASSUMED = "assumed"
    GIVEN = "given"


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
    clock_origin : ClockOrigin
        Whether `rate` is stated by the file, assumed by the reader or given by the user. Without meaning where `rate` is None.
    """

    def __init__(
        self,
        id: str,
        individual: str = "",
        rate: float | None = None,
        n_frames: int | None = None,
        subjects: tuple[str, ...] = (),
        signals: Data | Callable[[], Data] | None = None,
        features: Signals | Callable[[], Signals] | None = None,
        annotations: Mapping[str, Annotation] | None = None,
        video: Path | None = None,
        start_time: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        notes: tuple[Note, ...] = (),
        clock_origin: ClockOrigin = ClockOrigin.STATED,
    ) -> None:
        self.id = id
        self.individual = individual or id
        self.rate, self.n_frames = rate, n_frames
        self.subjects = subjects
        self.annotations: Mapping[str, Annotation] = dict(annotations or {})
        self.video, self.start_time = video, start_time
        self.metadata: Mapping[str, Any] = dict(metadata or {})
        self.notes = notes
        self.clock_origin = clock_origin
        self._signals, self._features = signals, features
        for known in (*self.annotations.values(), signals):
            if isinstance(known, (Annotation, Signals, Poses)):
                self.rate = known.rate if self.rate is None else self.rate
                length = known.n_frames if isinstance(known, Annotation) else len(known)
                self.n_frames = length if self.n_frames is None else self.n_frames

    @property
    def signals(self) -> Data | None:
        """What was measured; loaded when first asked for."""
        if callable(self._signals):
            self._signals = self._signals()
        return self._signals

    @property
    def has_signals(self) -> bool:
        """Whether there are signals or poses, loaded or not."""
        return self._signals is not None

    @property
    def features(self) -> Signals | None:
        """Features that came with the data; loaded when first asked for."""
        if callable(self._features):
            self._features = self._features()
        return self._features

    def __repr__(self) -> str:
        frames = "unknown length" if self.n_frames is None else f"{self.n_frames} frames"
        rate = "unknown rate" if self.rate is None else f"{self.rate:g} Hz"
        return f"Recording({self.id!r}, {frames} at {rate}, annotators: {', '.join(self.annotations) or 'none'})"

    @property
    def animals(self) -> frozenset[str]:
        """The animals that `individual` names."""
        return frozenset(part.strip() for part in self.individual.split(";") if part.strip()) or frozenset([self.individual])

    def annotation(self, annotator: str | None = None) -> Annotation:
        """Return what one annotator says.

        Parameters
        ----------
        annotator : str, optional
            May be left out where there is only one. Of several names, separated by commas, the first who annotated this recording.
        """
        if not self.annotations:
            raise NotFoundError(f"recording {self.id!r} has no annotation")
        if annotator is None:
            if len(self.annotations) > 1:
                raise EthobenchError(f"recording {self.id!r} has several annotators, so name one: {', '.join(self.annotations)}")
            return next(iter(self.annotations.values()))
        if annotator not in self.annotations:
            for name in annotator.split(","):
                if name.strip() in self.annotations:
                    return self.annotations[name.strip()]
            raise NotFoundError(f"recording {self.id!r} has no annotator {annotator!r}; there are: {', '.join(self.annotations)}")
        return self.annotations[annotator]

    def copy(self, **changes: Any) -> Recording:
        """Return a copy with some fields changed; signals that are not loaded yet stay so."""
        own = {name.lstrip("_"): value for name, value in vars(self).items()}
        return Recording(**{**own, **changes})

    def to_movement(self) -> xarray.Dataset:
        """Return the poses as a dataset that `movement` takes; time is in seconds where the rate is known, else in frames."""
        from ethobench.core.movement import to_movement

        return to_movement(self)

    @classmethod
    def from_movement(cls, dataset: xarray.Dataset, id: str) -> Recording:
        """Make a recording from a poses dataset of `movement`.

        Parameters
        ----------
        dataset : xarray.Dataset
            With the variable ``position``, and ``confidence`` where there is one; dimensions in any order.
        id : str
            What to call the recording.
        """
        from ethobench.core.movement import from_movement

        return from_movement(dataset, id)
