"""Datasets: collections of recordings with one ethogram."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, cast

from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.notebook_html import html_table
from ethobench.core.recording import Recording
from ethobench.core.signals import Keypoint

GROUPINGS = ("individual", "recording")
"""Units that are never split between training and test."""

MAX_ROWS = 20
"""Recordings listed in a notebook."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Recordings, an ethogram, splits, folds and provenance.

    Attributes
    ----------
    recordings : tuple of Recording
    ethogram : Ethogram
    name : str
    folds : mapping of recording id to int
    splits : mapping of recording id to str
    source, licence, citation : str
    version : str
        Changes when the data change; enters the hash of every job.
    keypoints : mapping of name to Keypoint
        Roles and mirror partners, if known.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/tag", individuals=3, seconds=60)
    >>> data
    Dataset('synthetic/tag', 3 recordings of 3 individuals, 4500 frames)
    >>> "animal01" in data, data["animal01"].rate
    (True, 25.0)
    """

    recordings: tuple[Recording, ...]
    ethogram: Ethogram
    name: str = ""
    folds: Mapping[str, int] = field(default_factory=dict)
    splits: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    licence: str = ""
    citation: str = ""
    version: str = ""
    keypoints: Mapping[str, Keypoint] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recordings", tuple(self.recordings))
        ids = [r.id for r in self.recordings]
        duplicates = sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []
        if duplicates:
            raise EthobenchError(f"recording ids must be unique; duplicates: {', '.join(duplicates)}")
        object.__setattr__(self, "_by_id", dict(zip(ids, self.recordings, strict=True)))

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)

    def __getitem__(self, recording_id: str) -> Recording:
        by_id: dict[str, Recording] = self._by_id  # type: ignore[attr-defined]
        if recording_id not in by_id:
            ids = ", ".join(list(by_id)[:5]) + (", ..." if len(by_id) > 5 else "")
            raise NotFoundError(f"no recording {recording_id!r} in {self.name or 'the dataset'} ({len(self)} recordings: {ids})")
        return by_id[recording_id]

    def __contains__(self, item: object) -> bool:
        """Whether a recording, or one with this id, is in the dataset."""
        by_id: dict[str, Recording] = self._by_id  # type: ignore[attr-defined]
        return item in by_id if isinstance(item, str) else item in self.recordings

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} recordings of {len(self.individuals)} individuals, {self.n_frames} frames)"

    def _repr_html_(self) -> str:
        """Return a table of the first recordings, for notebooks."""
        rows = [
            (r.id, r.individual, r.n_frames, r.rate, ", ".join(r.annotations), self.splits.get(r.id, ""), self.folds.get(r.id, ""))
            for r in self.recordings[:MAX_ROWS]
        ]
        more = f" (the first {MAX_ROWS})" if len(self) > MAX_ROWS else ""
        return html_table(("recording", "individual", "frames", "rate (Hz)", "annotators", "split", "fold"), rows, f"{self!r}{more}")

    @property
    def individuals(self) -> tuple[str, ...]:
        """Individuals, in order of first appearance."""
        return tuple(dict.fromkeys(r.individual for r in self.recordings))

    @property
    def annotators(self) -> tuple[str, ...]:
        """Annotators, in order of first appearance."""
        return tuple(dict.fromkeys(name for r in self.recordings for name in r.annotations))

    @property
    def n_frames(self) -> int:
        """Total length of all recordings in frames."""
        return sum(r.n_frames or 0 for r in self.recordings)

    def groups(self, by: str = "individual") -> dict[str, str]:
        """Map recording ids to the groups that must not be split between training and test.

        Parameters
        ----------
        by : {"individual", "recording"}
            With "individual", recordings that share an animal are one group, named after its first individual. With "recording", views
            of one recording (see `Recording.source_id`) are one group.
        """
        if by == "recording":
            return {r.id: r.source_id for r in self.recordings}
        parent: dict[str, str] = {}  # of each animal, in a union-find forest

        def root(animal: str) -> str:
            while parent.setdefault(animal, animal) != animal:
                animal = parent[animal]
            return animal

        for recording in self.recordings:
            first, *rest = sorted(recording.animals)
            for animal in rest:
                parent[root(animal)] = root(first)
        names: dict[str, str] = {}
        return {r.id: names.setdefault(root(min(r.animals)), r.individual) for r in self.recordings}

    def rename(self, names: Mapping[str, str]) -> Dataset:
        """Rename behaviors in the ethogram and in all annotations; behaviors with the same new name are merged.

        Parameters
        ----------
        names : mapping of str to str
            Old name to new name; unknown old names are ignored.
        """
        recordings = tuple(
            r.copy(annotations={annotator: a.rename_existing(names) for annotator, a in r.annotations.items()}) for r in self.recordings
        )
        ethogram = self.ethogram.rename({old: new for old, new in names.items() if old in self.ethogram})
        return replace(self, recordings=recordings, ethogram=ethogram)

    def select(
        self,
        *,
        fold: int | Iterable[int] | None = None,
        split: str | Iterable[str] | None = None,
        individual: str | Iterable[str] | None = None,
        annotator: str | None = None,
        behaviors: Iterable[str] | None = None,
        recordings: Iterable[str] | None = None,
    ) -> Dataset:
        """Return the recordings that meet all conditions.

        Parameters
        ----------
        fold : int or iterable of int
        split, individual : str or iterable of str
        annotator : str
            Keep only this annotator, and only recordings with annotations by them.
        behaviors : iterable of str
            Keep only these behaviors, in this order.
        recordings : iterable of str
            Ids of recordings to keep.

        Raises
        ------
        NotFoundError
            If no recording has one of the values.

        Examples
        --------
        >>> from ethobench import load_dataset
        >>> data = load_dataset("synthetic/tag", individuals=3, seconds=60)
        >>> len(data.select(individual="animal01"))
        1
        """
        selected = list(self.recordings)
        for name, condition, value_of in (
            ("fold", fold, lambda r: self.folds.get(r.id)),
            ("split", split, lambda r: self.splits.get(r.id)),
            ("individual", individual, lambda r: r.individual),
            ("recording", recordings, lambda r: r.id),
        ):
            if condition is not None:
                values: set[Any] = {condition} if isinstance(condition, (Integral, str)) else {*cast(Iterable[Any], condition)}
                available = {value_of(r) for r in self.recordings} - {None}
                missing = ", ".join(map(str, sorted(values - available, key=str)))
                if missing:
                    names = ", ".join(map(str, sorted(available, key=str))) or "none"
                    raise NotFoundError(f"no {name} {missing} in {self.name or 'the dataset'}; available: {names}")
                selected = [r for r in selected if value_of(r) in values]
        if annotator is not None:
            if annotator not in self.annotators:
                raise NotFoundError(f"no annotator {annotator!r}; available: {', '.join(self.annotators) or 'none'}")
            selected = [r.copy(annotations={annotator: r.annotations[annotator]}) for r in selected if annotator in r.annotations]
        ethogram = self.ethogram
        if behaviors is not None:
            restricted = list(behaviors)
            ethogram = self.ethogram.restrict(restricted)
            selected = [
                r.copy(annotations={k: a.with_ethogram(self.ethogram).restrict(restricted) for k, a in r.annotations.items()})
                for r in selected
            ]
        ids = {r.id for r in selected}
        return replace(
            self,
            recordings=tuple(selected),
            ethogram=ethogram,
            folds={i: f for i, f in self.folds.items() if i in ids},
            splits={i: s for i, s in self.splits.items() if i in ids},
        )
