"""One recording: metadata, signals or poses, and the annotations of each annotator; conversion from and to `movement`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from ethobench.core.annotation import Annotation
from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError
from ethobench.core.ethogram import join_ethograms
from ethobench.core.notebook_html import html_table, raster_svg
from ethobench.core.occurrence import Occurrence
from ethobench.core.signals import Poses, Signals
from ethobench.core.video import Camera

if TYPE_CHECKING:
    import xarray

Data: TypeAlias = Signals | Poses
DEFAULT_ANNOTATOR = "annotator"

MOVEMENT_DIMENSIONS = ("time", "space", "keypoints", "individuals")
"""Dimensions of the positions in a poses dataset of `movement`. Its other variable is ``confidence``, without ``space``."""

MAX_EXCESS = 0.01
MAX_RASTERS = 4
"""Maximum excess length of labels, relative to the signals. More suggests another recording or another frame rate."""


class ClockOrigin(StrEnum):
    """Origin of a recording's frame rate.

    Attributes
    ----------
    STATED
        The file states it, or has a time for each frame.
    ASSUMED
        The file does not state it; the reader assumed one (30 Hz for frame numbers, 1000 Hz for times in seconds).
    GIVEN
        The user set it (``rate=``, column ``rate`` of a manifest).

    Examples
    --------
    >>> from ethobench import Recording
    >>> Recording("m1", rate=30).clock_origin
    <ClockOrigin.STATED: 'stated'>
    """

    STATED = "stated"
    ASSUMED = "assumed"
    GIVEN = "given"


class Recording:
    """A continuous recording of one individual (or pair, or cage).

    Parameters
    ----------
    id : str
        Unique within a dataset.
    individual : str
        The unit that is never split between training and test: animal, pair or cage. ``"a;b"`` names several animals.
    rate : float, optional
        Frames per second.
    n_frames : int, optional
        Length in frames. Inferred from the signals or the annotations if omitted.
    subjects : tuple of str
        The animals that annotations may name.
    signals : Signals, Poses or a function that loads them, optional
        Loaded on first access.
    features : Signals or a function that loads them, optional
        Per-frame features in addition to the signals, one row per frame. Models use those whose channels begin with ``features/``,
        as in a study with a column ``features``.
    annotations : mapping of str to Annotation
        By annotator name.
    video : Path, optional
        The first camera's video.
    start_time : datetime, optional
    metadata : mapping
        All other information from the file.
    notes : tuple of Note
        What the reader repaired, dropped or could not match.
    clock_origin : ClockOrigin
        Whether `rate` is stated by the file, assumed by the reader or set by the user. Meaningless if `rate` is None.
    source_id : str
        Id of the recording that this is a view of, such as the view of one annotator or one subject. The recording's `id` if omitted.
    cameras : tuple of Camera
        All videos, that of `video` first, with their offsets. Only `video`, without an offset, if omitted.

    Examples
    --------
    >>> labels = Annotation.from_frames([0, 0, 1, 1], ["rest", "walk"], rate=2)
    >>> recording = Recording("day1", individual="mouse3", annotations={"ann": labels})
    >>> recording
    Recording('day1', 4 frames at 2 Hz, annotators: ann)
    >>> recording.annotation("ann").duration
    2.0
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
        source_id: str = "",
        cameras: tuple[Camera, ...] = (),
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
        self.source_id = source_id or id
        has_cameras = bool(cameras) and cameras[0].path == video  # a copy with another video has other cameras
        self.cameras = cameras if has_cameras else () if video is None else (Camera(video),)
        self._signals, self._features = signals, features
        for source in (*self.annotations.values(), signals):
            if isinstance(source, (Annotation, Signals, Poses)):
                self.rate = source.rate if self.rate is None else self.rate
                length = source.n_frames if isinstance(source, Annotation) else len(source)
                self.n_frames = length if self.n_frames is None else self.n_frames

    @property
    def signals(self) -> Data | None:
        """Signals or poses; loaded on first access."""
        if callable(self._signals):
            self._signals = self._signals()
        return self._signals

    @property
    def has_signals(self) -> bool:
        """Whether there are signals or poses, loaded or not."""
        return self._signals is not None

    @property
    def features(self) -> Signals | None:
        """Per-frame features that came with the data; loaded on first access."""
        if callable(self._features):
            self._features = self._features()
        return self._features

    def __repr__(self) -> str:
        frames = "unknown length" if self.n_frames is None else f"{self.n_frames} frames"
        rate = "unknown rate" if self.rate is None else f"{self.rate:g} Hz"
        return f"Recording({self.id!r}, {frames} at {rate}, annotators: {', '.join(self.annotations) or 'none'})"

    def _repr_html_(self) -> str:
        """Return a table of the fields, and small rasters of the first annotators, for notebooks."""
        rows = [("individual", self.individual), ("length", f"{self.n_frames} frames"), ("rate", f"{self.rate} Hz ({self.clock_origin})")]
        signals = "none" if self._signals is None else "not loaded yet" if callable(self._signals) else repr(self._signals)
        rows += [("signals", signals), ("video", str(self.video or "none"))]
        rows += [(f"annotator {name}", repr(a)) for name, a in self.annotations.items()]
        rows += [(str(name), str(value)) for name, value in self.metadata.items()]
        shown = dict(list(self.annotations.items())[:MAX_RASTERS])
        colors = Occurrence.count(join_ethograms(a.ethogram for a in shown.values()), list(shown.values())).color_indices()
        rasters = "".join(f"{f'<p>{escape(name)}</p>' if len(shown) > 1 else ''}{raster_svg(a, colors)}" for name, a in shown.items())
        return html_table(("field", "value"), rows, f"Recording {self.id}") + rasters

    @property
    def animals(self) -> frozenset[str]:
        """The animals named by `individual`."""
        names = (name.strip() for name in self.individual.split(";"))
        return frozenset(name for name in names if name) or frozenset([self.individual])

    def annotation(self, annotator: str | None = None) -> Annotation:
        """Return the annotation of one annotator.

        Parameters
        ----------
        annotator : str, optional
            May be omitted if there is only one. Of several names, separated by commas, the first who annotated this recording.

        Raises
        ------
        NotFoundError
            If there is no annotation, or none by this annotator.
        """
        if not self.annotations:
            raise NotFoundError(f"recording {self.id!r} has no annotation")
        if annotator is None:
            if len(self.annotations) > 1:
                raise EthobenchError(f"recording {self.id!r} has several annotators; choose one of: {', '.join(self.annotations)}")
            return next(iter(self.annotations.values()))
        if annotator not in self.annotations:
            for name in annotator.split(","):
                if name.strip() in self.annotations:
                    return self.annotations[name.strip()]
            raise NotFoundError(f"recording {self.id!r} has no annotator {annotator!r}; available: {', '.join(self.annotations)}")
        return self.annotations[annotator]

    def copy(self, **changes: Any) -> Self:
        """Return a copy with changed fields; signals that are not loaded yet are not loaded."""
        fields = {name.lstrip("_"): value for name, value in vars(self).items()}
        if self.source_id == self.id:
            fields["source_id"] = ""  # a copy with another id is a separate recording
        return type(self)(**{**fields, **changes})

    def to_movement(self) -> xarray.Dataset:
        """Convert the poses to a dataset of `movement`.

        Returns
        -------
        xarray.Dataset
            Variables ``position`` (time, space, keypoints, individuals) and ``confidence`` (time, keypoints, individuals). Time is in
            seconds if the rate is known, else in frames.

        Raises
        ------
        EthobenchError
            If the recording has no poses, or xarray is not installed.
        """
        poses = self.signals
        if not isinstance(poses, Poses):
            raise EthobenchError(f"recording {self.id!r} has no poses to convert to movement")
        try:
            import xarray
        except ImportError:
            raise EthobenchError('converting poses to movement needs xarray: pip install "ethobench[movement]"') from None
        n_frames = len(poses)
        rate = poses.rate or self.rate
        attributes: dict[str, Any] = {
            "source_software": str(self.metadata.get("source_software", "ethobench")),
            "ds_type": "poses",
            **({"fps": float(rate)} if rate else {}),
            "time_unit": "seconds" if rate else "frames",
            "recording": self.id,
        }
        time, _, *others = MOVEMENT_DIMENSIONS
        return xarray.Dataset(
            data_vars={
                "position": (MOVEMENT_DIMENSIONS, np.ascontiguousarray(poses.positions.transpose(0, 3, 2, 1))),
                "confidence": ((time, *others), np.ascontiguousarray(poses.confidence.transpose(0, 2, 1))),
            },
            coords={
                "time": np.arange(n_frames) / rate if rate else np.arange(n_frames),
                "space": list("xyz")[: poses.positions.shape[3]],
                "keypoints": list(poses.keypoints),
                "individuals": list(poses.individuals),
            },
            attrs=attributes,
        )

    @classmethod
    def from_movement(cls, dataset: xarray.Dataset, id: str) -> Recording:
        """Create a recording from a poses dataset of `movement`.

        Parameters
        ----------
        dataset : xarray.Dataset
            With the variable ``position``, optionally ``confidence``; dimensions in any order.
        id : str
            Id of the recording.

        Raises
        ------
        MismatchError
            If the dataset does not have the variables and dimensions of poses.
        """
        if "position" not in getattr(dataset, "data_vars", {}):
            raise MismatchError("not a poses dataset of movement: it has no variable 'position'")
        position = dataset["position"]
        dimensions = tuple(map(str, position.dims))
        if sorted(dimensions) != sorted(MOVEMENT_DIMENSIONS):
            expected = ", ".join(MOVEMENT_DIMENSIONS)
            raise MismatchError(f"a poses dataset has the dimensions {expected}, this one has: {', '.join(dimensions)}")
        axes = [str(axis) for axis in position["space"].values] if "space" in position.coords else list("xyz")[: position.sizes["space"]]
        if axes not in (["x", "y"], ["x", "y", "z"]):
            raise MismatchError(f"positions must have the axes x, y or x, y, z, got {', '.join(axes)}")
        positions = np.ascontiguousarray(position.transpose("time", "individuals", "keypoints", "space").values, dtype=np.float64)
        confidence = np.full(positions.shape[:3], np.nan)
        if "confidence" in dataset.data_vars:
            confidence = np.ascontiguousarray(dataset["confidence"].transpose("time", "individuals", "keypoints").values, dtype=np.float64)
        individuals, keypoints = _coordinate_names(position, "individuals"), _coordinate_names(position, "keypoints")
        rate = dataset.attrs.get("fps")
        poses = Poses(positions, confidence, individuals, keypoints, float(rate) if rate else None)
        metadata = {"source_software": str(dataset.attrs["source_software"])} if dataset.attrs.get("source_software") else {}
        return cls(id, subjects=individuals if len(individuals) > 1 else (), signals=poses, metadata=metadata)


def align_start(annotation: Annotation, start: datetime, reference: datetime, n_frames: int) -> tuple[Annotation, str]:
    """Shift labels so that their first frame is the first frame of the signals; frames of the signals before the labels are unobserved.

    Parameters
    ----------
    annotation : Annotation
    start, reference : datetime
        Date and time of the first frame of the labels and of the signals. A date without time zone is taken as UTC.
    n_frames : int
        Length of the signals. Labels after their end are cropped.

    Returns
    -------
    annotation : Annotation
    change : str
        What was changed; empty if nothing.

    Raises
    ------
    MismatchError
        If the labels end before the signals start, or start after their end.

    Examples
    --------
    >>> labels = Annotation.from_frames([0] * 20, ["rest"], rate=10)
    >>> shifted, change = align_start(labels, datetime(2024, 5, 1, 12, 0, 3), datetime(2024, 5, 1, 12), 100)
    >>> shifted.start.tolist(), change
    ([30], 'labels start 3 s after the signals; aligned by their dates')
    """
    first, second = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (start, reference))
    seconds = (first - second).total_seconds()
    offset = round(seconds * annotation.rate)
    if offset >= n_frames or -offset >= annotation.n_frames:
        raise MismatchError(f"the labels start at {start}, the signals at {reference}: they do not overlap; are they of another recording?")
    if offset > 0:
        annotation = annotation.extend(annotation.n_frames + offset).shift(offset)
    elif offset < 0:
        annotation = annotation.crop(-offset, annotation.n_frames)
    change = ""
    if offset > 0:
        change = f"labels start {seconds:g} s after the signals; aligned by their dates"
    elif offset < 0:
        change = f"labels start {-seconds:g} s before the signals; aligned by their dates"
    if annotation.n_frames > n_frames:
        change = f"{change}; " * bool(change) + f"labels end {annotation.n_frames - n_frames} frames after the signals; cropped"
        annotation = annotation.crop(0, n_frames)
    return annotation, change


def match_length(annotation: Annotation, n_frames: int) -> tuple[Annotation, str]:
    """Crop labels that end slightly after the signals; extend shorter labels with unobserved frames.

    Parameters
    ----------
    annotation : Annotation
    n_frames : int
        Length of the signals.

    Returns
    -------
    annotation : Annotation
        With `n_frames` frames.
    change : str
        What was changed; empty if nothing.

    Raises
    ------
    MismatchError
        If the labels are more than 1 % (and more than one frame) longer than the signals.

    Examples
    --------
    >>> labels = Annotation.from_frames([0] * 1005, ["rest"], rate=10)
    >>> match_length(labels, 1000)[1]
    'labels end 5 frames after the signals; cropped'
    """
    excess = annotation.n_frames - n_frames
    if excess > max(1, MAX_EXCESS * n_frames):
        raise MismatchError(
            f"labels for {annotation.n_frames} frames, but signals for {n_frames}: are they from another recording, or at another rate?"
        )
    if excess > 0:
        return annotation.crop(0, n_frames), f"labels end {excess} frames after the signals; cropped"
    if excess < 0:
        return annotation.extend(n_frames), f"labels end {-excess} frames before the signals; the remaining frames are unobserved"
    return annotation, ""


def _coordinate_names(position: Any, dimension: str) -> tuple[str, ...]:
    """Return the names along a dimension; numbered names if it has no coordinates."""
    if dimension in position.coords:
        return tuple(str(name) for name in position[dimension].values)
    return tuple(f"{dimension.removesuffix('s')}{i}" for i in range(position.sizes[dimension]))
