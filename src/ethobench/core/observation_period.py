"""Observation periods: every recording was labeled for the same time from its first bout on, although it goes on afterwards.

Annotators often label a fixed time, such as the ten minutes after an animal is introduced. If their file says nothing about the rest of
the recording, its frames look as if no behavior, or the background, had been seen there. Models then learn wrong labels, and time budgets
count time that nobody watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ethobench.core import intervals as iv
from ethobench.core.annotation import Annotation
from ethobench.core.errors import Note
from ethobench.core.intervals import Intervals

MIN_RECORDINGS = 5  # fewer could end alike by chance
MIN_SHARE = 0.9  # of the recordings that must be labeled for this time
MIN_BOUTS = 3  # in a recording (median); fewer could be stimuli of a fixed duration
MIN_COVERAGE = 0.8  # of the time up to the last bout that bouts fill (median); only then is it clear that labeling stopped
TOLERANCE = 0.002  # of the duration, by which recordings may differ
MIN_REMAINDER = 0.01  # of the duration, that recordings must go on for (median)
CODE = "observation-period"
OBSERVED_TO = "observed_to"
"""In the metadata of a recording, the end of the labeled time in seconds if the study states it. No period is inferred then."""
STATE_PERIOD = (
    "These frames count as observed, without behavior. If nobody watched them, state the labeled time in the columns observed_from and "
    "observed_to of recordings.csv"
)
MAX_LENGTHENING = 1.1  # relative to the longest recording that was labeled, up to which another recording is of the same kind


@dataclass(frozen=True)
class ObservationPeriod:
    """A fixed time from the first bout on, for which all recordings were labeled.

    Attributes
    ----------
    seconds : float
        Time from the beginning of the first bout to the end of the last one.
    longest_seconds : float
        Duration of the longest recording.
    n_recordings : int
        Recordings that were labeled for this time.
    remainder : float
        Share of the recordings' time that comes after it.
    delay : float
        Seconds by which the labels begin after the predicted behavior, where that is known.
    """

    seconds: float
    longest_seconds: float
    n_recordings: int
    remainder: float
    delay: float = 0.0

    @classmethod
    def fit(cls, annotations: Iterable[Annotation]) -> Self | None:
        """Find the observation period of a study; None if recordings were labeled for different times, or to their end.

        Examples
        --------
        >>> annotations = [
        ...     Annotation.from_bouts([a, a + 30, a + 70], [a + 30, a + 70, a + 100], [0, 1, 0], ["run", "rest"], 1, n_frames=150)
        ...     for a in (0, 5, 10, 20, 30)
        ... ]
        >>> ObservationPeriod.fit(annotations).seconds
        100.0
        """
        labeled = [row for annotation in annotations if (row := _labeled_time(annotation)) is not None]
        if len(labeled) < MIN_RECORDINGS:
            return None
        seconds, duration, remaining, coverage, n_bouts = np.array(labeled).T
        period = float(np.median(seconds))
        alike = np.abs(seconds - period) <= TOLERANCE * period
        is_exhaustive = np.median(coverage) >= MIN_COVERAGE and np.median(n_bouts) >= MIN_BOUTS
        if not is_exhaustive or alike.mean() < MIN_SHARE or np.median(remaining[alike]) < MIN_REMAINDER * period:
            return None
        return cls(period, float(duration.max()), int(alike.sum()), float(remaining[alike].sum() / duration[alike].sum()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create one from the result of `dataclasses.asdict` after a round trip through JSON."""
        seconds, longest, delay = (float(values[name]) for name in ("seconds", "longest_seconds", "delay"))
        if not (np.isfinite([seconds, longest, delay]).all() and 0 < seconds <= longest):
            raise ValueError(f"an observation period of {seconds} s in recordings of {longest} s is not possible")
        return cls(seconds, longest, int(values["n_recordings"]), float(values["remainder"]), delay)

    @property
    def description(self) -> str:
        """Describe the period, for notes and model cards."""
        return (
            f"{self.n_recordings} recordings have labels for {self.seconds:g} s from the first bout, and none in the "
            f"{100 * self.remainder:.0f} % of their time that follows"
        )

    def exclude_rest(self, annotation: Annotation) -> Annotation:
        """Mark the frames after the observation period as unobserved, in a reference annotation; later bouts end it."""
        is_bout = _is_labeled(annotation)
        if not is_bout.any():
            return annotation
        end = round((int(annotation.start[is_bout].min()) / annotation.rate + self.seconds) * annotation.rate)
        end = max(end, int(annotation.stop[is_bout].max()))
        return annotation.mark_unobserved(iv.clip(iv.full(annotation.n_frames), end, annotation.n_frames))

    def applies_to(self, annotation: Annotation) -> bool:
        """Return whether a recording is as long as those that were labeled, so that its observation period can be found."""
        duration = annotation.n_frames / annotation.rate
        return self.seconds < duration <= MAX_LENGTHENING * self.longest_seconds

    def find(self, annotation: Annotation) -> Intervals:
        """Return the observation period of a predicted annotation, as one interval of frames.

        It begins at the frame that best separates the frames without a bout before it from the frames with a bout after it, plus the
        delay.
        """
        length = min(round(self.seconds * annotation.rate), annotation.n_frames)
        is_bout = _is_labeled(annotation)
        occupied = iv.to_mask(iv.union(Intervals(annotation.start[is_bout], annotation.stop[is_bout])), annotation.n_frames)
        balance = np.concatenate([[0], np.cumsum(np.where(occupied, -1, 1))])
        latest = annotation.n_frames - length
        start = int(balance[: latest + 1].argmax()) + round(self.delay * annotation.rate)
        start = min(max(start, 0), latest)
        return iv.intervals([start], [start + length])

    def with_delay(self, pairs: Iterable[tuple[Annotation, Annotation]]) -> Self:
        """Return a copy with the median delay of labels in recordings of such length.

        Parameters
        ----------
        pairs : iterable of (Annotation, Annotation)
            The prediction of a recording by a model that was not fitted to it, and its labels.
        """
        delays = []
        for predicted, truth in pairs:
            is_bout = _is_labeled(truth)
            if is_bout.any() and self.applies_to(predicted):
                begin = int(replace(self, delay=0.0).find(predicted).start[0])
                delays.append((int(truth.start[is_bout].min()) - begin) / truth.rate)
        return replace(self, delay=float(np.median(delays))) if delays else self

    def limit(self, annotation: Annotation) -> Annotation:
        """Remove predicted bouts outside of the observation period; the background takes their place."""
        outside = iv.complement(self.find(annotation), annotation.n_frames)
        limited = replace(annotation.mark_unobserved(outside), observed=annotation.observed)
        background = annotation.ethogram.background
        if background is None or annotation.subjects:
            return limited
        added = iv.intersection(outside, annotation.observed.of_any())
        names = [background] * len(added.start)
        confidence = None if annotation.confidence is None else np.full(len(names), np.nan)
        bouts = Annotation.from_bouts(
            *added, names, annotation.ethogram, annotation.rate, annotation.n_frames, observed=annotation.observed, confidence=confidence
        )
        return limited.overlay(bouts)


def observation_period_notes(recordings: Iterable[Mapping[str, Annotation]]) -> list[Note]:
    """Return a note for each annotator whose labels end after the same time in all recordings, although these go on.

    Parameters
    ----------
    recordings : iterable of (mapping of annotator to Annotation)
    """
    by_annotator: dict[str, list[Annotation]] = {}
    for recording in recordings:
        for annotator, annotation in recording.items():
            by_annotator.setdefault(annotator, []).append(annotation)
    periods = {annotator: ObservationPeriod.fit(each) for annotator, each in by_annotator.items()}
    return [Note(f"{period.description}. {STATE_PERIOD}", annotator, CODE) for annotator, period in periods.items() if period is not None]


def _is_labeled(annotation: Annotation) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which bouts are of a behavior with a duration other than the background (n_bouts,)."""
    background = annotation.ethogram.background
    return np.asarray((annotation.behavior != (-1 if background is None else background)) & (annotation.stop > annotation.start))


def _labeled_time(annotation: Annotation) -> tuple[float, float, float, float, int] | None:
    """Return seconds from the first to the last bout, of the recording, observed after the last; covered share; number of bouts."""
    is_bout = _is_labeled(annotation)
    if not is_bout.any():
        return None
    start, stop = annotation.start[is_bout], annotation.stop[is_bout]
    first, last = int(start.min()), int(stop.max())
    remaining = iv.total(iv.clip(annotation.observed.of_any(), last, annotation.n_frames))
    covered = iv.total(iv.union(Intervals(start, stop))) / max(last - first, 1)
    rate = annotation.rate
    return (last - first) / rate, annotation.n_frames / rate, remaining / rate, covered, len(start)
