"""Directed behavior: who does what to whom. One example per animal, or per ordered pair of animals, with the subject first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Observed, Poses, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.observed import Track
from ethobench.features.body import with_subject_first
from ethobench.features.missing_data import MAX_GAP_SECONDS, max_gap_frames, nan_mean
from ethobench.features.roles import pad_animals

Actors: TypeAlias = "tuple[str, str | None]"
"""Subject and target; the target is None for behaviors without a target."""
SUBJECT, TARGET, OTHER = "subject", "target", "other{}"


class DirectedPrediction(Prediction):
    """A prediction of several animals.

    Its `annotation` names subjects and targets. Its `probabilities` are the highest of all subjects and targets.

    Attributes
    ----------
    by_actors : mapping of (subject, target) to Prediction
    targeted : tuple of str
        Behaviors with a target.
    """

    by_actors: Mapping[Actors, Prediction]
    targeted: tuple[str, ...] = ()


@dataclass(frozen=True)
class DirectedExamples:
    """Splits recordings of several animals into examples with one subject each.

    The animals of an example are named by their roles: ``subject``, ``target``, ``other1``, ``other2``, ...

    Attributes
    ----------
    targeted : tuple of str
        Behaviors with a target. If there are any, each ordered pair of animals is an example, else each animal. Behaviors without a
        target are then trained on all pairs of a subject, and their prediction is the mean over these pairs.
    by_role : bool
        Whether examples contain the subject and the target only, whatever the number of animals; the target of a single animal is
        missing. A behavior towards an animal that is not tracked is not predicted.
    """

    targeted: tuple[str, ...]
    by_role: bool = False

    @classmethod
    def from_annotations(cls, data: Dataset, truths: Mapping[str, Annotation]) -> DirectedExamples | None:
        """Return how to split a dataset; None unless all bouts except background name an animal of the poses."""
        targeted: set[str] = set()
        for recording in data:
            bouts = _without_background(truths[recording.id])
            if not len(bouts):
                continue
            if (bouts.subject < 0).any() or not isinstance(recording.signals, Poses):
                return None
            has_target = (bouts.target >= 0) & (bouts.target != bouts.subject)
            missing = {*bouts.names(bouts.subject), *bouts.names(bouts.target[has_target])} - {*recording.signals.individuals}
            if missing:
                names = ", ".join(sorted(map(str, missing)))
                warnings.warn(
                    f"bouts of {recording.id!r} name {names}, which its poses lack: subjects and targets are ignored", stacklevel=3
                )
                return None
            targeted |= {bouts.ethogram[int(code)].name for code in np.unique(bouts.behavior[has_target])}
        if not any(len(_without_background(truth)) for truth in truths.values()):
            return None
        return cls(tuple(name for name in data.ethogram.names if name in targeted))

    def actors(self, recording: Recording) -> list[Actors]:
        """Return the subjects and targets of the examples of a recording."""
        if not isinstance(recording.signals, Poses):
            raise MismatchError(f"recording {recording.id!r} has no poses, but the model predicts which of several animals acts")
        animals = recording.signals.individuals
        pairs = [*permutations(animals, 2)] if self.targeted else []
        return [*pairs] if self.targeted and (pairs or not self.by_role) else [(name, None) for name in animals]

    def view(self, recording: Recording, actors: Actors) -> Recording:
        """Return one example of a recording; its poses are computed when they are used."""
        name = ">".join(animal for animal in actors if animal)
        signals = partial(_subject_and_target if self.by_role else _poses_by_role, recording, *actors)
        return recording.copy(id=f"{recording.id}|{name}", source_id=recording.source_id, signals=signals, annotations={}, subjects=())

    def expand(self, data: Dataset, truths: Mapping[str, Annotation]) -> tuple[Dataset, dict[str, Annotation]]:
        """Return a dataset with one recording per example, and the annotation of each."""
        recordings, expanded = [], {}
        for recording in data:
            for actors in self.actors(recording):
                view, truth = self.view(recording, actors), self._truth_of(truths[recording.id], actors)
                annotator = next(iter(recording.annotations)) if len(recording.annotations) == 1 else "truth"
                recordings.append(view.copy(annotations={annotator: truth}))
                expanded[view.id] = truth
        return replace(data, recordings=tuple(recordings), folds={}, splits={}), expanded

    def predict(
        self, recording: Recording, predict: Callable[[Recording], Prediction], decode: Callable[[Prediction], Prediction]
    ) -> DirectedPrediction:
        """Predict every example of a recording, and join the predictions.

        Parameters
        ----------
        recording : Recording
        predict : callable
            Predicts one example.
        decode : callable
            Decodes a prediction.
        """
        all_actors = self.actors(recording)
        if not all_actors:
            raise MismatchError(f"recording {recording.id!r} has one animal, but the model predicts what animals do to each other")
        raw = {actors: predict(self.view(recording, actors)) for actors in all_actors}
        predictions = {actors: decode(self._without_target_gaps(recording, actors, prediction)) for actors, prediction in raw.items()}
        bouts = [(actors, self._bouts_of(prediction.annotation, actors)) for actors, prediction in predictions.items()]
        if self.targeted:
            for subject in dict.fromkeys(subject for subject, _ in all_actors):
                of_subject = [prediction for (animal, _), prediction in raw.items() if animal == subject]
                if (subject, None) in raw:
                    continue  # a single animal
                first = of_subject[0]
                probabilities = nan_mean(np.stack([prediction.probabilities for prediction in of_subject]), axis=0)
                edges = [prediction.boundaries for prediction in of_subject if prediction.boundaries is not None]
                boundaries = np.mean(edges, axis=0) if edges else None
                mean = Prediction(probabilities, first.ethogram, first.rate, exclusive=first.exclusive, boundaries=boundaries)
                bouts.append(((subject, None), self._bouts_of(decode(mean).annotation, (subject, None))))
        joined = _join(predictions, bouts, self._observed(bouts), raw)
        joined.targeted = self.targeted
        return joined

    def _observed(self, bouts: list[tuple[Actors, Annotation]]) -> Observed:
        """Return what was predicted for each subject and target; without tracks if it is the same for all."""
        predicted = [annotation.observed.of_any() for _, annotation in bouts]
        everywhere = predicted[0]
        for frames in predicted[1:]:
            everywhere = iv.intersection(everywhere, frames)
        if all(iv.total(frames) == iv.total(everywhere) for frames in predicted):
            return Observed(everywhere)
        tracks: dict[Track, iv.Intervals] = {}
        for ((subject, target), annotation), frames in zip(bouts, predicted, strict=True):
            names = [b.name for b in annotation.ethogram if (b.name in self.targeted) == (target is not None)]
            tracks |= {Track(name, subject, target): frames for name in names}
        return Observed(everywhere, tracks)

    def _without_target_gaps(self, recording: Recording, actors: Actors, prediction: Prediction) -> Prediction:
        """Return the prediction of a pair without the frames in which the target is not tracked."""
        poses, target = recording.signals, actors[1]
        if not self.by_role or target is None or not isinstance(poses, Poses):
            return prediction
        tracked = np.isfinite(poses.positions[:, poses.individuals.index(target), :, 0]).any(axis=1)
        gaps = iv.from_mask(~tracked)
        long = gaps.stop - gaps.start > max(1, max_gap_frames(MAX_GAP_SECONDS, prediction.rate))
        missing = iv.to_mask(iv.Intervals(gaps.start[long], gaps.stop[long]), len(poses))
        return prediction.without_frames(missing)

    def _truth_of(self, truth: Annotation, actors: Actors) -> Annotation:
        """Return the annotation of an example: what the subject does to the target, or without a target."""
        subject, target = actors
        bouts = _without_background(truth)
        pairs = zip(bouts.names(bouts.subject), bouts.names(bouts.target), strict=True)
        chosen = [s == subject and (t in (None, subject) or target is None or t == target) for s, t in pairs]
        of_actors = bouts.take(np.array(chosen, dtype=bool)).without_subjects()
        if not truth.observed.tracks:
            return of_actors
        tracks = {Track(b.name): truth.observed.of(b.name, subject, target) for b in truth.ethogram}
        return of_actors.with_observed(Observed(truth.observed.frames, tracks))

    def _bouts_of(self, annotation: Annotation, actors: Actors) -> Annotation:
        """Return the bouts that belong to actors: of behaviors with a target, or of those without."""
        targeted = [i for i, b in enumerate(annotation.ethogram) if b.name in self.targeted]
        bouts = _without_background(annotation)
        return bouts.take(np.isin(bouts.behavior, targeted) == (actors[1] is not None))


def _without_background(annotation: Annotation) -> Annotation:
    background = annotation.ethogram.background
    return annotation if background is None else annotation.take(annotation.behavior != background)


def _poses_by_role(recording: Recording, subject: str, target: str | None) -> Poses:
    """Return poses with the subject and the target first, and the animals named by their roles."""
    if not isinstance(recording.signals, Poses):
        raise MismatchError(f"recording {recording.id!r} has no poses")
    poses = with_subject_first(recording.signals, subject, target)
    roles = (SUBJECT,) if target is None else (SUBJECT, TARGET)
    others = (OTHER.format(i + 1) for i in range(len(poses.individuals) - len(roles)))
    return replace(poses, individuals=(*roles, *others))


def _subject_and_target(recording: Recording, subject: str, target: str | None) -> Poses:
    """Return poses of the subject and the target only; a target that is None is missing in all frames."""
    if not isinstance(recording.signals, Poses):
        raise MismatchError(f"recording {recording.id!r} has no poses")
    poses = recording.signals
    chosen = [poses.individuals.index(name) for name in (subject, target) if name is not None]
    names = tuple(poses.individuals[i] for i in chosen)
    return replace(
        pad_animals(Poses(poses.positions[:, chosen], poses.confidence[:, chosen], names, poses.keypoints, poses.rate), 2),
        individuals=(SUBJECT, TARGET),
    )


def _join(
    predictions: Mapping[Actors, Prediction], bouts: list[tuple[Actors, Annotation]], observed: Observed, raw: Mapping[Actors, Prediction]
) -> DirectedPrediction:
    """Join the predictions of all examples of a recording; `raw` are those before frames without target were removed."""
    first = next(iter(predictions.values()))
    annotation = Annotation.from_bouts(
        np.concatenate([each.start for _, each in bouts]),
        np.concatenate([each.stop for _, each in bouts]),
        np.concatenate([each.behavior for _, each in bouts]),
        first.ethogram,
        first.rate,
        first.n_frames,
        subject=[subject for (subject, _), each in bouts for _ in range(len(each))],
        target=[target for (_, target), each in bouts for _ in range(len(each))],
        observed=observed,
        confidence=_confidence([each for _, each in bouts]),
        subjects=dict.fromkeys(subject for subject, _ in predictions),
    )
    joined = DirectedPrediction(_highest(raw), first.ethogram, first.rate, annotation=annotation, exclusive=False)
    joined.by_actors = dict(predictions)
    return joined


def _confidence(annotations: Sequence[Annotation]) -> NDArray[np.float64] | None:
    """Return the confidence of all bouts; None if decoding gave none."""
    if all(each.confidence is None for each in annotations):
        return None
    return np.concatenate([np.full(len(each), np.nan) if each.confidence is None else each.confidence for each in annotations])


def _highest(predictions: Mapping[Actors, Prediction]) -> NDArray[np.floating]:
    """Return the highest probability of each behavior over all actors (n_frames, n_outputs), and the lowest of the background."""
    stacked = np.stack([prediction.probabilities for prediction in predictions.values()])
    highest = np.fmax.reduce(stacked, axis=0)  # of the pairs that were predicted; NaN where none was
    ethogram = next(iter(predictions.values())).ethogram
    background = ethogram.background if ethogram.background is not None else len(ethogram)
    if background < highest.shape[1]:
        highest[:, background] = np.fmin.reduce(stacked[..., background], axis=0)
    return np.asarray(highest)
