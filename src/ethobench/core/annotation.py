"""What one annotator says happened in one recording."""

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
    bouts_of_codes,
    bouts_of_columns,
    check_bounds,
    check_clock,
    hidden_codes,
    hidden_rows,
    names_of,
    optional_numbers,
    optional_texts,
    scale,
    sort_columns,
    subject_codes,
)
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.ethogram import Ethogram
from ethobench.core.intervals import BoolArray, Intervals
from ethobench.core.observed import Observed, Track

UNOBSERVED = -1


@dataclass(frozen=True, eq=False, repr=False)
class Annotation(Bouts):
    """Bouts on a frame clock, plus what was observed.

    Bouts are columns, sorted by start: half-open frames ``[start, stop)``, a behavior code, optional subject and
    target codes (-1 where none is named). Made by `from_bouts` or `from_frames`, never changed afterwards.

    Attributes
    ----------
    ethogram : Ethogram
        What the codes in `behavior` mean.
    rate : float
        Frames per second.
    n_frames : int
        Length of the recording.
    start, stop, behavior, subject, target : arrays of int64
        One entry per bout.
    order : array of int64
        The place of each bout in its source file.
    subjects : tuple of str
        What the codes in `subject` and `target` mean.
    observed : Observed
        The frames that were looked at.
    confidence : array of float64, optional
    modifiers, comment : arrays of str, optional
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
        """Make an annotation from columns of bouts, in any order.

        Parameters
        ----------
        start, stop : array-like of int
            Half-open frames.
        behavior : sequence of str or array-like of int
            Names or codes.
        ethogram : Ethogram or iterable of str
        rate : float
            Frames per second.
        n_frames : int
            Length of the recording; no bout may reach beyond it.
        subject, target : sequence of str or None, optional
            Who did it, to whom. None or "" where nobody is named.
        observed : Observed, Intervals or mask of frames, optional
            Which frames were looked at; all of them unless told.
        confidence : array-like of float, optional
        modifiers, comment : sequence of str, optional
        subjects : iterable of str, optional
            Animals that may be named though no bout names them.
        order : array-like of int, optional
            Places in the source file; the order given here unless told.

        Examples
        --------
        >>> a = Annotation.from_bouts([10, 0], [20, 5], ["mount", "attack"], ["attack", "mount"], rate=30, n_frames=100)
        >>> a.start.tolist(), a.behavior.tolist()
        ([0, 10], [0, 1])
        """
        ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
        start_, stop_ = as_frames(start, "start"), as_frames(stop, "stop")
        n = len(start_)
        codes = behavior_codes(behavior, ethogram, n)
        names = names_of(subjects, subject, target)
        columns: dict[str, Any] = {
            "start": start_,
            "stop": stop_,
            "behavior": codes,
            "subject": subject_codes(subject, names, n),
            "target": subject_codes(target, names, n),
            "order": np.arange(n) if order is None else np.array(order, dtype=np.int64),
            "confidence": optional_numbers(confidence),
            "modifiers": optional_texts(modifiers),
            "comment": optional_texts(comment),
        }
        given = {"confidence": confidence, "modifiers": modifiers, "comment": comment}
        for name, column in {**columns, **given}.items():
            if column is not None and len(column) != n:
                raise MismatchError(f"{n} bouts, but {len(column)} entries of {name!r}")
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
        """Make an annotation from a frame array.

        Parameters
        ----------
        frames : array-like
            Codes of shape (n_frames,), where ``len(ethogram)`` stands for "none of these";
            or 0/1 of shape (n_frames, len(ethogram)).
        ethogram : Ethogram or iterable of str
        rate : float
            Frames per second.
        unobserved : int or mask of frames, optional
            The code that means "not looked at", or where that was so.
        subject, target : str, optional
            Who did all this, to whom.

        Examples
        --------
        >>> a = Annotation.from_frames([0, 0, -1, 1], ["attack", "mount"], rate=30, unobserved=-1)
        >>> a.stop.tolist(), a.observed
        ([2, 4], Observed(3 frames in 2 intervals))
        """
        ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
        frames = np.asarray(frames)
        if frames.dtype.kind not in "iubf":
            raise EthobenchError("frames are numbers: codes, or 0 and 1; text is turned into numbers first")
        n_frames = len(frames)
        if frames.ndim == 1:
            hidden = hidden_codes(frames, unobserved)
            found = bouts_of_codes(frames, hidden, len(ethogram))
        elif frames.ndim == 2:
            if frames.shape[1] != len(ethogram):
                raise MismatchError(f"{frames.shape[1]} columns of frames for {len(ethogram)} behaviors")
            hidden = hidden_rows(frames, unobserved)
            found = bouts_of_columns(frames, hidden)
        else:
            raise MismatchError(f"frames are codes (1 axis) or one-hot (2 axes), not {frames.ndim} axes")
        start, stop, behavior = found
        return cls.from_bouts(
            start,
            stop,
            behavior,
            ethogram,
            rate,
            n_frames,
            subject=None if subject is None else [subject] * len(start),
            target=None if target is None else [target] * len(start),
            observed=None if hidden is None else iv.from_mask(~hidden),
            subjects=[name for name in (subject, target) if name],
        )

    def __repr__(self) -> str:
        return (
            f"Annotation({len(self)} bouts of {len(self.ethogram)} behaviors, "
            f"{self.n_frames} frames at {self.rate:g} Hz = {self.duration:.6g} s)"
        )

    def to_frames(self, subject: str | None = None, target: str | None = None) -> BoolArray:
        """Return a (n_frames, n_behaviors) array: which behaviors go on in each frame.

        With a named background, observed frames without any bout are background. Point events hold no frame.

        Parameters
        ----------
        subject, target : str, optional
            Only what this animal does, or what is done to it. All pooled unless named; "" picks the bouts without one.
        """
        frames = np.zeros((self.n_frames, len(self.ethogram)), dtype=bool)
        chosen = self._chosen(subject, target)
        for code in np.unique(self.behavior[chosen]):
            frames[:, code] = iv.to_mask(self._spans(chosen & (self.behavior == code)), self.n_frames)
        if self.ethogram.background is not None:
            seen = iv.to_mask(self.observed.of_all(self.ethogram.names, subject or None), self.n_frames)
            frames[:, self.ethogram.background] |= seen & ~frames.any(axis=1)
        return frames

    def to_codes(self, subject: str | None = None, target: str | None = None) -> NDArray[np.int64]:
        """Return one code per frame; the ethogram must be exclusive for the subjects chosen.

        Observed frames without a bout have the background's code, or ``len(ethogram)`` where none is named;
        frames that were not looked at have -1.
        """
        chosen = self._chosen(subject, target) & (self.stop > self.start)
        nothing = len(self.ethogram) if self.ethogram.background is None else self.ethogram.background
        codes = np.full(self.n_frames, UNOBSERVED, dtype=np.int64)
        codes[iv.to_mask(self.observed.of_all(self.ethogram.names, subject or None), self.n_frames)] = nothing
        covered = np.zeros(self.n_frames, dtype=bool)
        for code in np.unique(self.behavior[chosen]):
            mask = iv.to_mask(self._spans(chosen & (self.behavior == code)), self.n_frames)
            clash = np.flatnonzero(mask & covered)
            if clash.size:
                raise MismatchError(
                    f"{clash.size} frames carry two behaviors (first: frame {clash[0]}), so they have no single code; use to_frames"
                )
            mask &= iv.to_mask(self.observed.of(self.ethogram[int(code)].name, subject or None, target or None), self.n_frames)
            codes[mask] = code
            covered |= mask
        return codes

    def crop(self, start: int, stop: int) -> Annotation:
        """Keep the frames ``[start, stop)``, which become frames 0 to ``stop - start``."""
        if int(start) != start or int(stop) != stop or not 0 <= start <= stop <= self.n_frames:
            raise MismatchError(f"cannot crop frames {start} to {stop} from {self.n_frames}")
        inside = (self.start < stop) & (self.stop > start)
        within = (self.start < stop) | (stop == self.n_frames)
        empty = (self.start == self.stop) & (self.start >= start) & within
        kept = self.take(inside | empty)
        observed = self.observed.apply(lambda a: iv.shift(iv.clip(a, start, stop), -start))
        moved = {"start": np.clip(kept.start, start, stop) - start, "stop": np.clip(kept.stop, start, stop) - start}
        return replace(kept._with_columns({**kept._columns(), **moved}), n_frames=stop - start, observed=observed)

    def extend(self, n_frames: int) -> Annotation:
        """Lengthen the recording; the frames added were not observed."""
        if n_frames < self.n_frames:
            raise MismatchError(f"cannot extend {self.n_frames} frames to {n_frames}; use crop")
        return replace(self, n_frames=int(n_frames))

    def shift(self, n_frames: int) -> Annotation:
        """Move everything later (or earlier, if negative). What leaves the recording is cut, what enters was not observed."""
        later, n = max(n_frames, 0), self.n_frames
        moved = self._with_columns({**self._columns(), "start": self.start + later, "stop": self.stop + later})
        moved = replace(moved, n_frames=n + later, observed=self.observed.apply(lambda a: iv.shift(a, later)))
        return moved.crop(0, n) if n_frames >= 0 else moved.crop(min(-n_frames, n), n).extend(n)

    def resample(self, rate: float) -> Annotation:
        """Express the annotation on another clock; every boundary goes to the nearest frame."""
        check_clock(rate, self.n_frames)
        ratio = rate / self.rate
        scaled = {name: scale(getattr(self, name), ratio) for name in ("start", "stop")}
        observed = self.observed.apply(lambda a: Intervals(scale(a.start, ratio), scale(a.stop, ratio)))
        n_frames = int(scale(np.array([self.n_frames]), ratio)[0])
        return replace(self._with_columns({**self._columns(), **scaled}), rate=float(rate), n_frames=n_frames, observed=observed)

    def concatenate(self, *others: Annotation) -> Annotation:
        """Append annotations of the same rate; ethograms and subjects are joined by name."""
        result = self
        for other in others:
            result = result._append(other, at=result.n_frames)
        return result

    def overlay(self, other: Annotation) -> Annotation:
        """Add the bouts of another annotation of the same stretch; what each looked at is kept apart by behavior and subject."""
        if (other.rate, other.n_frames) != (self.rate, self.n_frames):
            raise MismatchError(f"cannot overlay {other!r} on {self!r}: they differ in length or rate")
        joined = self._append(other, at=0)
        observed = self.observed
        if other.observed != self.observed:
            tracks: dict[Track, Intervals] = {}
            for part, rest in ((self, other), (other, self)):
                own: list[str | None] = [s for s in part.subjects if s not in rest.subjects]
                for behavior in part.ethogram:
                    for who in own or [None]:
                        key = Track(behavior.name, who)
                        tracks[key] = iv.union_all([tracks.get(key, iv.empty()), part.observed.of(behavior.name, who)])
            observed = Observed(iv.union_all([self.observed.of_any(), other.observed.of_any()]), tracks)
        return replace(joined, observed=observed)

    def restrict(self, behaviors: Iterable[str]) -> Annotation:
        """Keep only these behaviors, in this order."""
        names = [behaviors] if isinstance(behaviors, str) else list(behaviors)
        ethogram = self.ethogram.restrict(names)
        kept = self.take(np.isin(self.behavior, [self.ethogram.code(n) for n in names]))
        return replace(kept._recode(ethogram, {}), observed=self.observed.restrict(names))

    def rename(self, names: Mapping[str, str]) -> Annotation:
        """Rename behaviors; those given the same name become one."""
        observed = self.observed.rename(names, self.ethogram.names)
        return replace(self._recode(self.ethogram.rename(names), names), observed=observed)

    def rename_existing(self, names: Mapping[str, str]) -> Annotation:
        """Rename behaviors, ignoring old names that the ethogram does not have."""
        return self.rename({old: new for old, new in names.items() if old in self.ethogram})

    def with_ethogram(self, ethogram: Ethogram) -> Annotation:
        """Express the same bouts in an ethogram that has (at least) the behaviors used here, found by name."""
        used = [self.ethogram[int(c)].name for c in np.unique(self.behavior)]
        missing = [name for name in used if name not in ethogram]
        if missing:
            raise NotFoundError(f"the annotation uses {', '.join(map(repr, missing))}, not in the ethogram ({', '.join(ethogram.names)})")
        return self._recode(ethogram, {})

    def with_observed(self, observed: Observed | Intervals | BoolArray) -> Annotation:
        """Replace what was observed."""
        return replace(self, observed=as_observed(observed, self.n_frames))

    def mark_unobserved(self, frames: Intervals | BoolArray) -> Annotation:
        """Mark frames as unobserved, given as intervals or as a mask (n_frames,); bouts are cut there.

        Examples
        --------
        >>> a = Annotation.from_bouts([0], [10], ["rest"], ["rest"], rate=1, n_frames=10)
        >>> hidden = a.mark_unobserved(iv.intervals([4], [6]))
        >>> hidden.start.tolist(), hidden.stop.tolist(), hidden.observed
        ([0, 6], [4, 10], Observed(8 frames in 2 intervals))
        """
        hidden = iv.union(frames) if isinstance(frames, Intervals) else iv.from_mask(frames)
        shown = iv.complement(hidden, self.n_frames)
        lasting = np.flatnonzero(self.stop > self.start)
        bout, piece = iv.overlapping_pairs(Intervals(self.start[lasting], self.stop[lasting]), shown)
        bout = lasting[bout]
        frame = np.minimum(self.start, max(self.n_frames - 1, 0))  # an event at the very end belongs to the last frame
        visible = iv.covered_before(shown, frame + 1) > iv.covered_before(shown, frame)
        points = np.flatnonzero((self.start == self.stop) & visible)
        source = np.concatenate((bout, points))
        start = np.concatenate((np.maximum(self.start[bout], shown.start[piece]), self.start[points]))
        stop = np.concatenate((np.minimum(self.stop[bout], shown.stop[piece]), self.stop[points]))
        columns = {name: column[source] for name, column in self._columns().items()}
        observed = self.observed.apply(lambda a: iv.intersection(a, shown))
        return replace(self._with_columns({**columns, "start": start, "stop": stop}), observed=observed)

    def _recode(self, ethogram: Ethogram, names: Mapping[str, str]) -> Annotation:
        """Express the bouts in another ethogram, where behaviors may have other names."""
        codes = [ethogram.code(new) if (new := names.get(b.name, b.name)) in ethogram else -1 for b in self.ethogram]
        behavior = np.array(codes, dtype=np.int64)[self.behavior] if len(self) else self.behavior
        return replace(self._with_columns({**self._columns(), "behavior": behavior}), ethogram=ethogram)

    def _append(self, other: Annotation, at: int) -> Annotation:
        if other.rate != self.rate:
            raise MismatchError(f"cannot append {other.rate:g} Hz to {self.rate:g} Hz; resample first")
        ethogram = self.ethogram.join(other.ethogram)
        names = tuple(dict.fromkeys([*self.subjects, *other.subjects]))
        a, b = self._recode(ethogram, {}), other._recode(ethogram, {})
        place = np.array([*(names.index(s) for s in b.subjects), NO_SUBJECT], dtype=np.int64)
        mine, theirs = a._columns(), b._columns()
        theirs.update(start=b.start + at, stop=b.stop + at, subject=place[b.subject], target=place[b.target])
        theirs["order"] = b.order + (int(a.order.max()) + 1 if len(a) else 0)
        blank = {"confidence": np.nan, "modifiers": "", "comment": ""}
        for name in {*mine, *theirs} & {*blank}:
            kind = (mine if name in mine else theirs)[name].dtype
            for columns, size in ((mine, len(a)), (theirs, len(b))):
                if name not in columns:
                    columns[name] = np.full(size, blank[name], dtype=kind)
        columns = {name: np.concatenate((mine[name], theirs[name])) for name in mine}
        observed = self.observed.join(other.observed, at)
        merged = replace(a, ethogram=ethogram, subjects=names, n_frames=at + other.n_frames, observed=observed)
        return merged._with_columns(columns)
