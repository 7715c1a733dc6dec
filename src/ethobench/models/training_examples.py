"""The examples that a model is fitted to: recordings with one rate, one annotation and, where bouts name subjects, one subject each."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.occurrence import Occurrence
from ethobench.core.recording import match_length
from ethobench.metrics import consensus
from ethobench.models.adapt import has_rate, resample_recording, split_by_annotator
from ethobench.models.directed import DirectedExamples
from ethobench.models.input_checks import RequiredInput, input_present
from ethobench.models.inputs import check_inputs, input_names, select_inputs
from ethobench.models.provenance import TrainingData

CONSENSUS, ALL = "consensus", "all"


@dataclass(frozen=True)
class TrainingExamples:
    """Recordings to fit a model to, and what all of them share.

    Attributes
    ----------
    data : Dataset
        One recording per example.
    truths : dict of recording id to Annotation
        The annotation of each; frames without input are unobserved.
    training : TrainingData
        Ids and hashes of the recordings before preparation.
    rate : float, optional
        Frames per second.
    never_annotated : tuple of str
        Behaviors of the ethogram that do not occur.
    inputs : tuple of str
        Channels, or ``individual/keypoint``; empty without signals.
    directed : DirectedExamples, optional
        How recordings were split into examples, where annotations name subjects and targets.
    required_input : RequiredInput
        Which animals must be tracked for a frame to be predicted.
    """

    data: Dataset
    truths: dict[str, Annotation]
    training: TrainingData
    rate: float | None
    never_annotated: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    directed: DirectedExamples | None = None
    required_input: RequiredInput = dataclasses.field(default_factory=RequiredInput)

    @property
    def exclusive(self) -> bool:
        """Whether at most one behavior at a time occurs."""
        return all(truth.without_subjects().is_exclusive for truth in self.truths.values())


def prepare_examples(data: Dataset, annotator: str | None, *, needs_signals: bool = True) -> TrainingExamples:
    """Prepare annotated recordings for a fit.

    Parameters
    ----------
    data : Dataset
        Recordings of another rate than the first one are resampled.
    annotator : str, optional
        Whose annotations to use; ``"consensus"`` for the majority, ``"all"`` for one example per annotator.
    needs_signals : bool
        Whether the model uses signals, which all recordings must have then.
    """
    consensuses = [reference_annotation(recording, annotator) for recording in data] if annotator == CONSENSUS else []
    training = TrainingData.from_dataset(data, signals=needs_signals, extra=consensuses)
    if annotator == ALL:
        data, annotator = split_by_annotator(data), None
    rate = data.recordings[0].rate
    if not all(has_rate(recording, rate) for recording in data):
        resampled = tuple(r if has_rate(r, rate) else resample_recording(r, float(rate or 1.0)) for r in data)
        data = dataclasses.replace(data, recordings=resampled)
    truths = {recording.id: reference_annotation(recording, annotator).with_ethogram(data.ethogram) for recording in data}
    never_annotated = Occurrence.count(data.ethogram, truths.values()).never_annotated
    if not needs_signals:
        return TrainingExamples(data, truths, training, rate, never_annotated)
    truths = {recording.id: _fit_to_signals(recording, truths[recording.id]) for recording in data}
    directed = DirectedExamples.from_annotations(data, truths)
    if directed is not None:
        data, truths = directed.expand(data, truths)
    inputs = input_names(data.recordings[0])
    for recording in data:
        check_inputs(recording, inputs)
    examples = _fit_required_input(TrainingExamples(data, truths, training, rate, never_annotated, inputs, directed))
    _warn_of_point_events(data.ethogram, examples.truths)
    return examples


def reference_annotation(recording: Recording, annotator: str | None) -> Annotation:
    """Return the annotation that models are trained on and compared with; the majority for ``"consensus"``."""
    return consensus(recording.annotations) if annotator == CONSENSUS else recording.annotation(annotator)


def _fit_required_input(examples: TrainingExamples) -> TrainingExamples:
    """Determine which input predictions need, and mark frames that lack it as unobserved."""
    truths, directed = examples.truths, examples.directed
    present = {}
    for recording in examples.data:
        data = select_inputs(recording, examples.inputs)
        present[recording.id] = input_present(data, float(recording.rate or examples.rate or 1.0))[: truths[recording.id].n_frames]
    annotated = {name: iv.to_mask(truth.observed.of_any(), truth.n_frames) for name, truth in truths.items()}
    n_animals = None if directed is None else 1 + bool(directed.targeted)
    required = RequiredInput.fit([(mask, annotated[name][: len(mask)]) for name, mask in present.items()], n_animals)
    missing = {name: ~required.met(mask) for name, mask in present.items()}
    unused_seconds = {name: (mask & annotated[name][: len(mask)]).sum() / truths[name].rate for name, mask in missing.items()}
    if total := sum(unused_seconds.values()):
        affected = sum(seconds > 0 for seconds in unused_seconds.values())
        warnings.warn(
            f"{total:.1f} s of annotations in {affected} of {len(unused_seconds)} recordings are not used for training: "
            "the input is missing there (a gap in the signals, or animals that are not tracked)",
            stacklevel=3,
        )
    padded = {name: np.pad(mask, (0, truths[name].n_frames - len(mask))) for name, mask in missing.items()}
    truths = {name: truth.mark_unobserved(padded[name]) if padded[name].any() else truth for name, truth in truths.items()}
    return dataclasses.replace(examples, truths=truths, required_input=required)


def _fit_to_signals(recording: Recording, truth: Annotation) -> Annotation:
    """Crop an annotation that is slightly longer than the signals, with a warning; refuse one that is much longer."""
    if recording.signals is None:
        return truth
    try:
        fitted, message = match_length(truth, len(recording.signals))
    except MismatchError as error:
        raise MismatchError(f"recording {recording.id!r}: {error}") from None
    if len(recording.signals) < truth.n_frames:
        warnings.warn(f"recording {recording.id!r}: {message}", stacklevel=3)
    return fitted


def _warn_of_point_events(ethogram: Ethogram, truths: Mapping[str, Annotation]) -> None:
    """Warn about point events, which have no frames to train on."""
    annotated = {int(code) for truth in truths.values() for code in np.unique(truth.behavior)}
    if points := [b.name for code, b in enumerate(ethogram) if b.point and code in annotated]:
        warnings.warn(f"point events are not used for training and are not predicted: {', '.join(points)}", stacklevel=4)
