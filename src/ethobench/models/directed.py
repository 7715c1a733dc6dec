"""Who did it to whom: one example for each animal, or each ordered pair, with that animal first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
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
from ethobench.features.missing_data import nan_mean

Actors: TypeAlias = "tuple[str, str | None]"
SUBJECT, TARGET, OTHER = "subject", "target", "other{}"


class DirectedPrediction(Prediction):
    """What a model says of several animals at once.

    Its `annotation` names subjects and targets. Its `probabilities` are that anybody does it to anybody: the highest of all.

    Attributes
    ----------
    by_actors : mapping of (subject, target) to Prediction
        What is said of each; the target is None where behaviors have none.
    """

    by_actors: Mapping[Actors, Prediction]


@dataclass(frozen=True)
class DirectedExamples:
    """How recordings of several animals become examples of one who acts.

    In an example the animals are called ``subject``, ``target`` and ``other1``, ``other2``, ...: what they are, not who.

    Attributes
    ----------
    targeted : tuple of str
        The behaviors that are done to somebody. Without any there is one example for each subject, else one for each ordered
        pair; what a subject does to nobody is then learnt from all of its pairs, and told by their mean.
    """

    targeted: tuple[str, ...]

    @classmethod
    def from_annotations(cls, data: Dataset, truths: Mapping[str, Annotation]) -> DirectedExamples | None:
        """Tell how a dataset is directed; None unless every bout (but the background's) names an animal of the poses."""
        targeted: set[str] = set()
        for recording in data:
            acts = _acts(truths[recording.id])
            if not len(acts):
                continue
            if (acts.subject < 0).any() or not isinstance(recording.signals, Poses):
                return None
            others = (acts.target >= 0) & (acts.target != acts.subject)
            strangers = {*acts.names(acts.subject), *acts.names(acts.target[others])} - {*recording.signals.individuals}
            if strangers:
                told = ", ".join(sorted(map(str, strangers)))
                warnings.warn(f"bouts of {recording.id!r} name {told}, whom its poses lack: who did what is not learnt", stacklevel=3)
                return None
            targeted |= {acts.ethogram[int(code)].name for code in np.unique(acts.behavior[others])}
        if not any(len(_acts(truth)) for truth in truths.values()):
            return None
        return cls(tuple(name for name in data.ethogram.names if name in targeted))

    def actors(self, recording: Recording) -> list[Actors]:
        """List who may act, and targeted whom."""
        if not isinstance(recording.signals, Poses):
            raise MismatchError(f"recording {recording.id!r} has no poses, and the model learnt who of several animals acts")
        who = recording.signals.individuals
        return [*permutations(who, 2)] if self.targeted else [(name, None) for name in who]

    def view(self, recording: Recording, actors: Actors) -> Recording:
        """Return a recording as one example sees it; poses are turned round when they are asked for."""
        name = ">".join(who for who in actors if who)
        seen = {"signals": partial(_seen_by, recording, *actors), "source_id": recording.source_id}
        return recording.copy(id=f"{recording.id}|{name}", annotations={}, subjects=(), **seen)

    def expand(self, data: Dataset, truths: Mapping[str, Annotation]) -> tuple[Dataset, dict[str, Annotation]]:
        """Return a dataset with one recording for each example, and what is to be learnt of each."""
        recordings, told = [], {}
        for recording in data:
            for actors in self.actors(recording):
                view, truth = self.view(recording, actors), self._truth(truths[recording.id], actors)
                annotator = next(iter(recording.annotations)) if len(recording.annotations) == 1 else "truth"
                recordings.append(view.copy(annotations={annotator: truth}))
                told[view.id] = truth
        return replace(data, recordings=tuple(recordings), folds={}, splits={}), told

    def predict(
        self, recording: Recording, tell: Callable[[Recording], Prediction], decode: Callable[[Prediction], Prediction]
    ) -> DirectedPrediction:
        """Predict every example of a recording, and join what is said of them.

        Parameters
        ----------
        recording : Recording
        tell : callable
            Predicts one example.
        decode : callable
            Gives a prediction the annotation it deserves.
        """
        actors = self.actors(recording)
        if not actors:
            raise MismatchError(f"recording {recording.id!r} has one animal, and the model learnt what animals do to each other")
        found = {each: decode(tell(self.view(recording, each))) for each in actors}
        bouts = [(each, self._told(p.annotation, each)) for each, p in found.items()]
        if self.targeted:
            for subject in dict.fromkeys(subject for subject, _ in actors):
                alike = [p for (who, _), p in found.items() if who == subject]
                mean = Prediction(
                    nan_mean(np.stack([p.probabilities for p in alike]), axis=0),
                    alike[0].ethogram,
                    alike[0].rate,
                    exclusive=alike[0].exclusive,
                )
                bouts.append(((subject, None), self._told(decode(mean).annotation, (subject, None))))
        return _join(found, bouts, self._observed(bouts))

    def _observed(self, bouts: list[tuple[Actors, Annotation]]) -> Observed:
        """Return what could be predicted for each subject and target; where that is the same for all, without tracks of their own."""
        frames = [part.observed.of_any() for _, part in bouts]
        everywhere = frames[0]
        for other in frames[1:]:
            everywhere = iv.intersection(everywhere, other)
        if all(iv.total(part) == iv.total(everywhere) for part in frames):
            return Observed(everywhere)
        tracks: dict[Track, iv.Intervals] = {}
        for ((subject, target), part), where in zip(bouts, frames, strict=True):
            names = [b.name for b in part.ethogram if (b.name in self.targeted) == (target is not None)]
            tracks |= {Track(name, subject, target): where for name in names}
        return Observed(everywhere, tracks)

    def _truth(self, truth: Annotation, actors: Actors) -> Annotation:
        """Return what an example is to be taught: all that the subject does to the target, or to nobody."""
        subject, target = actors
        acts = _acts(truth)
        names, whom = acts.names(acts.subject), acts.names(acts.target)
        mine = [s == subject and (t in (None, subject) or target is None or t == target) for s, t in zip(names, whom, strict=True)]
        plain = acts.take(np.array(mine, dtype=bool)).without_subjects()
        if not truth.observed.tracks:
            return plain
        looked = {Track(b.name): truth.observed.of(b.name, subject, target) for b in truth.ethogram}
        return plain.with_observed(Observed(truth.observed.frames, looked))

    def _told(self, annotation: Annotation, actors: Actors) -> Annotation:
        """Keep the bouts that this example is asked for: those done to the target, or those done to nobody."""
        directed = [i for i, b in enumerate(annotation.ethogram) if b.name in self.targeted]
        acts = _acts(annotation)
        return acts.take(np.isin(acts.behavior, directed) == (actors[1] is not None))


def _acts(annotation: Annotation) -> Annotation:
    """Leave the background out."""
    background = annotation.ethogram.background
    return annotation if background is None else annotation.take(annotation.behavior != background)


def _seen_by(recording: Recording, subject: str, target: str | None) -> Poses:
    if not isinstance(recording.signals, Poses):
        raise MismatchError(f"recording {recording.id!r} has no poses")
    seen = with_subject_first(recording.signals, subject, target)
    first = (SUBJECT,) if target is None else (SUBJECT, TARGET)
    others = (OTHER.format(i + 1) for i in range(len(seen.individuals) - len(first)))
    return replace(seen, individuals=(*first, *others))


def _join(found: Mapping[Actors, Prediction], bouts: list[tuple[Actors, Annotation]], observed: Observed) -> DirectedPrediction:
    some = next(iter(found.values()))
    annotation = Annotation.from_bouts(
        np.concatenate([part.start for _, part in bouts]),
        np.concatenate([part.stop for _, part in bouts]),
        np.concatenate([part.behavior for _, part in bouts]),
        some.ethogram,
        some.rate,
        some.n_frames,
        subject=[subject for (subject, _), part in bouts for _ in range(len(part))],
        target=[target for (_, target), part in bouts for _ in range(len(part))],
        observed=observed,
        subjects=dict.fromkeys(subject for subject, _ in found),
    )
    joined = DirectedPrediction(_anybody(found), some.ethogram, some.rate, annotation=annotation, exclusive=False)
    joined.by_actors = dict(found)
    return joined


def _anybody(found: Mapping[Actors, Prediction]) -> NDArray[np.floating]:
    """Return the chance that anybody does it to anybody, and that nobody does anything."""
    every = np.stack([p.probabilities for p in found.values()])
    highest = np.fmax.reduce(every, axis=0)  # of the pairs that could be predicted; NaN where none could
    ethogram = next(iter(found.values())).ethogram
    nothing = ethogram.background if ethogram.background is not None else len(ethogram)
    if nothing < highest.shape[1]:
        highest[:, nothing] = np.fmin.reduce(every[..., nothing], axis=0)
    return np.asarray(highest)
