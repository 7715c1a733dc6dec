"""Annotations: the bouts that one annotator scored in one recording, and the frames that were observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ethobench.core import intervals as iv
from ethobench.core.bouts import (
    NO_SUBJECT,
    Bouts,
    as_frames,
    as_observed,
    behavior_codes,
    bouts_from_codes,
    bouts_from_one_hot,
    check_bounds,
    check_clock,
    optional_numbers,
    optional_texts,
    scale_frames,
    sort_columns,
    subject_codes,
    subject_names,
    unobserved_mask,
)
from ethobench.core.errors import MismatchError, NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, Intervals
from ethobench.core.notebook_html import html_table, raster_svg
from ethobench.core.observed import Observed, Track

UNOBSERVED = -1
"""Code of unobserved frames in `Annotation.to_codes`."""


@dataclass(frozen=True, eq=False, repr=False)
class Annotation(Bouts):
    """Bouts on a frame clock, and the frames that were observed.

    Bouts are columns, sorted by start: half-open frames ``[start, stop)``, a behavior code, and optional subject and target codes (-1 for
    none). Created by `from_bouts` or `from_frames`; immutable.

    Attributes
    ----------
    ethogram : Ethogram
        Defines the codes in `behavior`.
    rate : float
        Frames per second.
    n_frames : int
        Length of the recording.
    start, stop, behavior, subject, target : arrays of int64 (n_bouts,)
    order : array of int64 (n_bouts,)
        Position of each bout in its source file.
    subjects : tuple of str
        Defines the codes in `subject` and `target`.
    observed : Observed
        The frames that were observed.
    confidence : array of float64 (n_bouts,), optional
    modifiers, comment : arrays of str (n_bouts,), optional

    Examples
    --------
    >>> a = Annotation.from_bouts([0, 10], [5, 20], ["attack", "mount"], ["attack", "mount"], rate=30, n_frames=90)
    >>> a
    Annotation(2 bouts of 2 behaviors, 90 frames at 30 Hz = 3 s)
    >>> a.spans("mount")
    Intervals(start=array([10]), stop=array([20]))
    """

    @classmethod
    def from_bouts(
        cls,
        start: ArrayLike,
        stop: ArrayLike,
        behavior: Sequence[str] | ArrayLike,
        ethogram: Ethogram | Iterable[str],
        rate: float,
        n_frames: int,
        *,
        subject: Sequence[str | None] | None = None,
        target: Sequence[str | None] | None = None,
        observed: Observed | Intervals | BoolArray | None = None,
        confidence: ArrayLike | None = None,
        modifiers: Sequence[str] | None = None,
        comment: Sequence[str] | None = None,
        subjects: Iterable[str] = (),
        order: ArrayLike | None = None,
    ) -> Annotation:
        """Create an annotation from columns of bouts, in any order.

        Parameters
        ----------
        start, stop : array-like of int (n_bouts,)
            Half-open frames.
        behavior : sequence of str or array-like of int (n_bouts,)
            Names or codes.
        ethogram : Ethogram or iterable of str
        rate : float
            Frames per second.
        n_frames : int
            Length of the recording. Bouts must not exceed it.
        subject, target : sequence of str or None, optional
            The acting animal and the animal acted on. None or "" for none.
        observed : Observed, Intervals or mask (n_frames,), optional
            Observed frames. Default: all.
        confidence : array-like of float, optional
        modifiers, comment : sequence of str, optional
        subjects : iterable of str, optional
            Animals that the annotation may name, in addition to those that bouts name.
        order : array-like of int, optional
            Positions in the source file. Default: the order of the arguments.

        Raises
        ------
        MismatchError
            If columns differ in length, or a bout exceeds the recording.

        Examples
        --------
        >>> a = Annotation.from_bouts([10, 0], [20, 5], ["mount", "attack"], ["attack", "mount"], rate=30, n_frames=100)
        >>> a.start.tolist(), a.behavior.tolist()
        ([0, 10], [0, 1])
        """
        ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
        start_, stop_ = as_frames(start, "start"), as_frames(stop, "stop")
        n = len(start_)
        names = subject_names(subjects, subject, target)
        columns: dict[str, Any] = {
            "start": start_,
            "stop": stop_,
            "behavior": behavior_codes(behavior, ethogram),
            "subject": subject_codes(subject, names, n),
            "target": subject_codes(target, names, n),
            "order": np.arange(n) if order is None else np.array(order, dtype=np.int64),
            "confidence": optional_numbers(confidence),
            "modifiers": optional_texts(modifiers),
            "comment": optional_texts(comment),
        }
        arguments = {"confidence": confidence, "modifiers": modifiers, "comment": comment}  # which may be empty, and then are None above
        for name, column in {**columns, **arguments}.items():
            if column is not None and len(column) != n:
                raise MismatchError(f"{n} bouts, but {len(column)} values of `{name}`")
        check_clock(rate, n_frames)
        check_bounds(start_, stop_, n_frames)
        return cls(
            ethogram=ethogram,
            rate=float(rate),
            n_frames=int(n_frames),
            subjects=names,
            observed=as_observed(observed, n_frames),
            **sort_columns(columns),
        )

    @classmethod
    def from_frames(
        cls,
        frames: ArrayLike,
        ethogram: Ethogram | Iterable[str],
        rate: float,
        *,
        unobserved: int | ArrayLike | None = None,
        subject: str | None = None,
        target: str | None = None,
    ) -> Annotation:
        """Create an annotation from a frame array.

        Parameters
        ----------
        frames : array-like
            Codes (n_frames,), where ``len(ethogram)`` means "none of these"; or 0 and 1 (n_frames, len(ethogram)).
        ethogram : Ethogram or iterable of str
        rate : float
            Frames per second.
        unobserved : int or mask (n_frames,), optional
            The value that marks unobserved frames, or the mask of unobserved frames.
        subject, target : str, optional
            Subject and target of all bouts.

        Raises
        ------
        MismatchError
            If `frames` are not numbers, or do not have one column per behavior.

        Examples
        --------
        >>> a = Annotation.from_frames([0, 0, -1, 1], ["attack", "mount"], rate=30, unobserved=-1)
        >>> a.stop.tolist(), a.observed
        ([2, 4], Observed(3 frames in 2 intervals))
        """
        ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
        frames = np.asarray(frames)
        if frames.dtype.kind not in "iubf":
            raise MismatchError("`frames` must be numbers: codes, or 0 and 1; convert text to codes first")
        if frames.ndim not in (1, 2):
            raise MismatchError(f"`frames` must have 1 axis (codes) or 2 axes (one-hot), got {frames.ndim}")
        if frames.ndim == 2 and frames.shape[1] != len(ethogram):
            raise MismatchError(f"`frames` has {frames.shape[1]} columns for {len(ethogram)} behaviors")
        mask = unobserved_mask(frames, unobserved)
        start, stop, behavior = bouts_from_codes(frames, mask, len(ethogram)) if frames.ndim == 1 else bouts_from_one_hot(frames, mask)
        return cls.from_bouts(
            start,
            stop,
            behavior,
            ethogram,
            rate,
            len(frames),
            subject=None if subject is None else [subject] * len(start),
            target=None if target is None else [target] * len(start),
            observed=None if mask is None else iv.from_mask(~mask),
            subjects=[name for name in (subject, target) if name],
        )

    def __repr__(self) -> str:
        return (
            f"Annotation({len(self)} bouts of {len(self.ethogram)} behaviors, "
            f"{self.n_frames} frames at {self.rate:g} Hz = {self.duration:.6g} s)"
        )

    def _repr_html_(self) -> str:
        """Return a small raster, and a table of the behaviors with number of bouts and time, for notebooks."""
        from ethobench.core.occurrence import Occurrence

        rows = []
        for code, behavior in enumerate(self.ethogram):
            spans = self.spans(code)
            seconds = iv.total(iv.union(spans)) / self.rate
            share = f"{seconds / self.duration:.1%}" if self.duration else "-"
            rows.append((behavior.name, len(spans.start), f"{seconds:.6g}", share))
        raster = raster_svg(self, Occurrence.count(self.ethogram, [self]).color_indices())
        return raster + html_table(("behavior", "bouts", "seconds", "share of time"), rows, repr(self))

    def to_frames(self, subject: str | None = None, target: str | None = None) -> BoolArray:
        """Return which behaviors occur in each frame (n_frames, n_behaviors).

        If the ethogram has a background, it occurs in observed frames without any bout. Point events cover no frame.

        Parameters
        ----------
        subject, target : str, optional
            Only bouts of this subject, or towards this target; "" selects bouts without one. Default: all bouts.
        """
        frames = np.zeros((self.n_frames, len(self.ethogram)), dtype=bool)
        selection = self._select(subject, target)
        for code in np.unique(self.behavior[selection]):
            frames[:, code] = iv.to_mask(self._spans(selection & (self.behavior == code)), self.n_frames)
        if self.ethogram.background is not None:
            observed = iv.to_mask(self.observed.of_all(self.ethogram.names, subject or None), self.n_frames)
            frames[:, self.ethogram.background] |= observed & ~frames.any(axis=1)
        return frames

    def to_codes(self, subject: str | None = None, target: str | None = None) -> NDArray[np.int64]:
        """Return one code per frame (n_frames,); behaviors must not overlap for the selected subjects.

        Observed frames without a bout have the code of the background, or ``len(ethogram)`` if there is none. Unobserved frames have -1.

        Raises
        ------
        MismatchError
            If two behaviors overlap.
        """
        selection = self._select(subject, target) & (self.stop > self.start)
        no_bout = len(self.ethogram) if self.ethogram.background is None else self.ethogram.background
        codes = np.full(self.n_frames, UNOBSERVED, dtype=np.int64)
        codes[iv.to_mask(self.observed.of_all(self.ethogram.names, subject or None), self.n_frames)] = no_bout
        covered = np.zeros(self.n_frames, dtype=bool)
        for code in np.unique(self.behavior[selection]):
            mask = iv.to_mask(self._spans(selection & (self.behavior == code)), self.n_frames)
            overlapping = np.flatnonzero(mask & covered)
            if overlapping.size:
                raise MismatchError(
                    f"{overlapping.size} frames have two behaviors (first: frame {overlapping[0]}), so no single code; use to_frames"
                )
            mask &= iv.to_mask(self.observed.of(self.ethogram[int(code)].name, subject or None, target or None), self.n_frames)
            codes[mask] = code
            covered |= mask
        return codes

    def crop(self, start: int, stop: int) -> Annotation:
        """Keep the frames ``[start, stop)``, which become frames 0 to ``stop - start``."""
        if int(start) != start or int(stop) != stop or not 0 <= start <= stop <= self.n_frames:
            raise MismatchError(f"cannot crop frames {start} to {stop} from {self.n_frames}")
        overlaps = (self.start < stop) & (self.stop > start) & (stop > start)
        is_point = (self.start == self.stop) & (self.start >= start) & ((self.start < stop) | (stop == self.n_frames))
        kept = self.take(overlaps | is_point)
        observed = self.observed.apply(lambda a: iv.shift(iv.clip(a, start, stop), -start))
        moved = {"start": np.clip(kept.start, start, stop) - start, "stop": np.clip(kept.stop, start, stop) - start}
        return replace(kept._with_columns({**kept._columns(), **moved}), n_frames=stop - start, observed=observed)

    def extend(self, n_frames: int) -> Annotation:
        """Lengthen the recording to `n_frames`; the added frames are unobserved."""
        if n_frames < self.n_frames:
            raise MismatchError(f"cannot extend {self.n_frames} frames to {n_frames}; use crop")
        return replace(self, n_frames=int(n_frames))

    def shift(self, n_frames: int) -> Annotation:
        """Move all bouts later (earlier if negative). Bouts are cropped at the ends; frames that move in are unobserved."""
        later, n = max(n_frames, 0), self.n_frames
        moved = self._with_columns({**self._columns(), "start": self.start + later, "stop": self.stop + later})
        moved = replace(moved, n_frames=n + later, observed=self.observed.apply(lambda a: iv.shift(a, later)))
        return moved.crop(0, n) if n_frames >= 0 else moved.crop(min(-n_frames, n), n).extend(n)

    def resample(self, rate: float) -> Annotation:
        """Convert to another frame rate; every boundary is rounded to the nearest frame.

        Examples
        --------
        >>> a = Annotation.from_bouts([10], [25], ["rest"], ["rest"], rate=30, n_frames=90)
        >>> a.resample(10).spans("rest")
        Intervals(start=array([3]), stop=array([8]))
        """
        check_clock(rate, self.n_frames)
        ratio = rate / self.rate
        scaled = {name: scale_frames(getattr(self, name), ratio) for name in ("start", "stop")}
        observed = self.observed.apply(lambda a: Intervals(scale_frames(a.start, ratio), scale_frames(a.stop, ratio)))
        n_frames = int(scale_frames(np.array([self.n_frames]), ratio)[0])
        return replace(self._with_columns({**self._columns(), **scaled}), rate=float(rate), n_frames=n_frames, observed=observed)

    def concatenate(self, *others: Annotation) -> Annotation:
        """Append annotations of the same rate; ethograms and subjects are joined by name."""
        result = self
        for other in others:
            result = result._append(other, at=result.n_frames)
        return result

    def overlay(self, other: Annotation) -> Annotation:
        """Add the bouts of another annotation of the same frames; observed frames are kept separate by behavior and subject."""
        if (other.rate, other.n_frames) != (self.rate, self.n_frames):
            raise MismatchError(f"cannot overlay {other!r} on {self!r}: they differ in length or rate")
        joined = self._append(other, at=0)
        observed = self.observed
        if other.observed != self.observed:
            tracks: dict[Track, Intervals] = {}
            for first, second in ((self, other), (other, self)):
                only_here: list[str | None] = [s for s in first.subjects if s not in second.subjects]
                for behavior in first.ethogram:
                    for subject in only_here or [None]:
                        key = Track(behavior.name, subject)
                        tracks[key] = iv.union_all([tracks.get(key, iv.empty()), first.observed.of(behavior.name, subject)])
            observed = Observed(iv.union_all([self.observed.of_any(), other.observed.of_any()]), tracks)
        return replace(joined, observed=observed)

    def restrict(self, behaviors: Iterable[str]) -> Annotation:
        """Keep only these behaviors, in this order."""
        names = [behaviors] if isinstance(behaviors, str) else list(behaviors)
        ethogram = self.ethogram.restrict(names)
        kept = self.take(np.isin(self.behavior, [self.ethogram.code(n) for n in names]))
        return replace(kept._recode(ethogram, {}), observed=self.observed.restrict(names))

    def select_subject(self, subject: str) -> Annotation:
        """Keep only the bouts of one subject, and what was observed of it.

        Parameters
        ----------
        subject : str
            Name of the animal that performs the behavior. Targets of its bouts are kept.

        Raises
        ------
        NotFoundError
            If the annotation has no such subject.

        Examples
        --------
        >>> bouts = {"start": [0, 5], "stop": [4, 9], "behavior": ["rest", "run"], "subject": ["bella", "teiko"]}
        >>> a = Annotation.from_bouts(**bouts, ethogram=["rest", "run"], rate=1, n_frames=10)
        >>> b = a.select_subject("teiko")
        >>> b.subjects, b.start.tolist(), b.stop.tolist()
        (('teiko',), [5], [9])
        """
        if subject not in self.subjects:
            raise NotFoundError(f"no bout is of subject {subject!r}; subjects: {', '.join(map(repr, self.subjects)) or 'none'}")
        kept = self.take(self.subject == self.subjects.index(subject))
        targets = {self.subjects[code] for code in np.unique(kept.target[kept.target != NO_SUBJECT])}
        names = tuple(name for name in self.subjects if name == subject or name in targets)
        codes = np.array([*(names.index(s) if s in names else NO_SUBJECT for s in self.subjects), NO_SUBJECT], dtype=np.int64)
        columns = {**kept._columns(), "subject": codes[kept.subject], "target": codes[kept.target]}
        tracks = {track: frames for track, frames in self.observed.tracks.items() if track.subject in (None, subject)}
        return replace(replace(kept, subjects=names)._with_columns(columns), observed=Observed(self.observed.frames, tracks))

    def rename(self, names: Mapping[str, str]) -> Annotation:
        """Rename behaviors, old name to new name; behaviors with the same new name are merged."""
        observed = self.observed.rename(names, self.ethogram.names)
        return replace(self._recode(self.ethogram.rename(names), names), observed=observed)

    def rename_existing(self, names: Mapping[str, str]) -> Annotation:
        """Rename behaviors, ignoring old names that the ethogram does not have."""
        return self.rename({old: new for old, new in names.items() if old in self.ethogram})

    def with_ethogram(self, ethogram: Ethogram) -> Annotation:
        """Express the bouts in another ethogram, which must have the behaviors that occur; behaviors are matched by name.

        Raises
        ------
        NotFoundError
            If a behavior that occurs is not in `ethogram`.
        """
        used = [self.ethogram[int(c)].name for c in np.unique(self.behavior)]
        missing = [name for name in used if name not in ethogram]
        if missing:
            raise NotFoundError(f"the annotation uses {', '.join(map(repr, missing))}, not in the ethogram ({', '.join(ethogram.names)})")
        return self._recode(ethogram, {})

    def with_observed(self, observed: Observed | Intervals | BoolArray) -> Annotation:
        """Replace the observed frames."""
        return replace(self, observed=as_observed(observed, self.n_frames))

    def mark_unobserved(self, frames: Intervals | BoolArray) -> Annotation:
        """Mark frames as unobserved, given as intervals or as a mask (n_frames,); bouts are cut there.

        Examples
        --------
        >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest"], rate=1, n_frames=10)
        >>> marked = a.mark_unobserved(iv.intervals([4], [6]))
        >>> marked.start.tolist(), marked.stop.tolist(), marked.observed
        ([0, 6], [4, 10], Observed(8 frames in 2 intervals))
        """
        unobserved = iv.union(frames) if isinstance(frames, Intervals) else iv.from_mask(frames)
        kept = iv.complement(unobserved, self.n_frames)
        states = np.flatnonzero(self.stop > self.start)
        bout, piece = iv.overlapping_pairs(Intervals(self.start[states], self.stop[states]), kept)
        bout = states[bout]
        frame = np.minimum(self.start, max(self.n_frames - 1, 0))  # an event at the very end belongs to the last frame
        is_kept = iv.covered_before(kept, frame + 1) > iv.covered_before(kept, frame)
        points = np.flatnonzero((self.start == self.stop) & is_kept)
        source = np.concatenate((bout, points))
        start = np.concatenate((np.maximum(self.start[bout], kept.start[piece]), self.start[points]))
        stop = np.concatenate((np.minimum(self.stop[bout], kept.stop[piece]), self.stop[points]))
        columns = {name: column[source] for name, column in self._columns().items()}
        observed = self.observed.apply(lambda a: iv.intersection(a, kept))
        return replace(self._with_columns({**columns, "start": start, "stop": stop}), observed=observed)

    def _recode(self, ethogram: Ethogram, names: Mapping[str, str]) -> Annotation:
        """Express the bouts in another ethogram, in which behaviors have the names that `names` maps to."""
        codes = [ethogram.code(new) if (new := names.get(b.name, b.name)) in ethogram else -1 for b in self.ethogram]
        behavior = np.array(codes, dtype=np.int64)[self.behavior] if len(self) else self.behavior
        return replace(self._with_columns({**self._columns(), "behavior": behavior}), ethogram=ethogram)

    def _append(self, other: Annotation, at: int) -> Annotation:
        """Add the bouts of another annotation, `at` frames later."""
        if other.rate != self.rate:
            raise MismatchError(f"cannot append {other.rate:g} Hz to {self.rate:g} Hz; resample first")
        ethogram = self.ethogram.join(other.ethogram)
        names = tuple(dict.fromkeys([*self.subjects, *other.subjects]))
        a, b = self._recode(ethogram, {}), other._recode(ethogram, {})
        new_code = np.array([*(names.index(s) for s in b.subjects), NO_SUBJECT], dtype=np.int64)
        first, second = a._columns(), b._columns()
        second.update(start=b.start + at, stop=b.stop + at, subject=new_code[b.subject], target=new_code[b.target])
        second["order"] = b.order + (int(a.order.max()) + 1 if len(a) else 0)
        blank = {"confidence": np.nan, "modifiers": "", "comment": ""}
        for name in {*first, *second} & {*blank}:
            dtype = (first if name in first else second)[name].dtype
            for columns, size in ((first, len(a)), (second, len(b))):
                if name not in columns:
                    columns[name] = np.full(size, blank[name], dtype=dtype)
        columns = {name: np.concatenate((first[name], second[name])) for name in first}
        observed = self.observed.join(other.observed, at)
        merged = replace(a, ethogram=ethogram, subjects=names, n_frames=at + other.n_frames, observed=observed)
        return merged._with_columns(columns)
