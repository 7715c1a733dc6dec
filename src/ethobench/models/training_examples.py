"""The examples that a model is fitted to: recordings with one rate, one annotation and, where bouts name subjects, one subject each."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Observed, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import MismatchError
from ethobench.core.observation_period import OBSERVED_TO, ObservationPeriod
from ethobench.core.occurrence import Occurrence
from ethobench.core.recording import match_length
from ethobench.core.targets import overlapping_targets
from ethobench.features.roles import RoleInputs, needs_roles
from ethobench.metrics import consensus
from ethobench.models.adapt import has_rate, resample_recording, split_by_annotator
from ethobench.models.directed import DirectedExamples
from ethobench.models.input_checks import RequiredInput, input_present
from ethobench.models.inputs import check_features, check_inputs, frame_features, input_names, select_inputs
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
    role_inputs : RoleInputs, optional
        How poses were converted to inputs by role.
    observation_period : ObservationPeriod, optional
        The fixed time for which all recordings were labeled; frames after it are unobserved.
    """

    data: Dataset
    truths: dict[str, Annotation]
    training: TrainingData
    rate: float | None
    never_annotated: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    directed: DirectedExamples | None = None
    required_input: RequiredInput = dataclasses.field(default_factory=RequiredInput)
    role_inputs: RoleInputs | None = None
    observation_period: ObservationPeriod | None = None

    @property
    def exclusive(self) -> bool:
        """Whether at most one behavior at a time occurs, and all behaviors were observed in the same frames."""
        if not all(truth.without_subjects().is_exclusive for truth in self.truths.values()):
            return False
        masked = [truth.observed for truth in self.truths.values() if truth.observed.tracks]
        if not masked:
            return True
        names = next(iter(self.truths.values())).ethogram.names
        jointly = [iv.total(observed.of_all(names)) for observed in masked]
        if self.role_inputs is not None:
            return all(n == iv.total(observed.of_any()) for n, observed in zip(jointly, masked, strict=True))
        return len(masked) < len(self.truths) or any(jointly)


AUTO, BY_ROLE = "auto", "roles"


def prepare_examples(
    data: Dataset, annotator: str | None, *, needs_signals: bool = True, inputs: str = "", condition: str = ""
) -> TrainingExamples:
    """Prepare annotated recordings for a fit.

    Parameters
    ----------
    data : Dataset
        Recordings of another rate than the first one are resampled.
    annotator : str, optional
        Whose annotations to use; ``"consensus"`` for the majority, ``"all"`` for one example per annotator.
    needs_signals : bool
        Whether the model uses signals, which all recordings must have then.
    inputs : str
        ``"roles"`` to convert poses to one skeleton, rate and unit (`RoleInputs`); ``"auto"`` to do so where recordings differ.
    condition : str
        Metadata column that conditions the model. Recordings that differ in it are converted, too.
    """
    if needs_signals:
        _check_same_features(data)
    consensuses = [reference_annotation(recording, annotator) for recording in data] if annotator == CONSENSUS else []
    training = TrainingData.from_dataset(data, signals=needs_signals, extra=consensuses)
    if annotator == ALL:
        data, annotator = split_by_annotator(data), None
    role_inputs = None
    if needs_signals and (inputs == BY_ROLE or (inputs == AUTO and needs_roles(data.recordings, condition))):
        role_inputs = RoleInputs.fit(data.recordings, data.keypoints)
        data = dataclasses.replace(data, recordings=tuple(map(role_inputs.convert, data.recordings)), keypoints={})
    rate = data.recordings[0].rate
    if not all(has_rate(recording, rate) for recording in data):
        resampled = tuple(r if has_rate(r, rate) else resample_recording(r, float(rate or 1.0)) for r in data)
        data = dataclasses.replace(data, recordings=resampled)
    truths = {recording.id: reference_annotation(recording, annotator).with_ethogram(data.ethogram) for recording in data}
    never_annotated = Occurrence.count(data.ethogram, truths.values()).never_annotated
    if not needs_signals:
        return TrainingExamples(data, truths, training, rate, never_annotated)
    truths = {recording.id: _fit_to_signals(recording, truths[recording.id]) for recording in data}
    unstated = {recording.id: truths[recording.id] for recording in data if OBSERVED_TO not in recording.metadata}
    period = ObservationPeriod.fit(unstated.values())
    if period is not None:
        truths |= {name: period.exclude_rest(truth) for name, truth in unstated.items()}
    directed = DirectedExamples.from_annotations(data, truths)
    if directed is not None:
        directed = dataclasses.replace(directed, by_role=role_inputs is not None)
        data, truths = directed.expand(data, truths)
    elif role_inputs is not None:
        data = dataclasses.replace(data, recordings=tuple(map(role_inputs.with_animals, data.recordings)))
        inputs_differ = len({input_names(recording) for recording in data}) > 1
        names = input_names(data.recordings[0]) if not inputs_differ else ()
        return _finish(
            TrainingExamples(
                data, truths, training, rate, never_annotated, names, None, RequiredInput(any_animal=True), role_inputs, period
            )
        )
    names = input_names(data.recordings[0])
    for recording in data:
        check_inputs(recording, names)
    required = RequiredInput(1) if role_inputs is not None else RequiredInput()
    return _finish(TrainingExamples(data, truths, training, rate, never_annotated, names, directed, required, role_inputs, period))


def prepare_adaptation(
    data: Dataset,
    annotator: str | None,
    ethogram: Ethogram,
    role_inputs: RoleInputs,
    directed: DirectedExamples | None,
    required_input: RequiredInput,
) -> TrainingExamples:
    """Prepare annotated recordings for a model that was trained before on recordings by role.

    Behaviors that the dataset does not have are unobserved. Those that the model does not have are dropped, with a warning.

    Parameters
    ----------
    data : Dataset
    annotator : str, optional
    ethogram : Ethogram
        Behaviors of the model.
    role_inputs, directed, required_input
        Of the model.

    Raises
    ------
    MismatchError
        If the model has none of the behaviors.
    """
    shared = [name for name in data.ethogram.names if name in ethogram]
    if not shared:
        raise MismatchError(
            f"the model has none of the behaviors {', '.join(data.ethogram.names)}; it has {', '.join(ethogram.names)}. Rename behaviors, "
            "or train a new model"
        )
    if unknown := [name for name in data.ethogram.names if name not in ethogram]:
        warnings.warn(f"the model was not trained on {', '.join(unknown)}, which it will not predict", stacklevel=3)
    training = TrainingData.from_dataset(data)
    absent = {Track(name): iv.empty() for name in ethogram.names if name not in shared}
    truths, converted = {}, tuple(map(role_inputs.convert, data.recordings))
    for recording in converted:
        truth = reference_annotation(recording, annotator).with_ethogram(data.ethogram).restrict(shared).with_ethogram(ethogram)
        truth = truth.with_observed(Observed(truth.observed.frames, {**truth.observed.tracks, **absent}))
        truths[recording.id] = _fit_to_signals(recording, truth)
    data = dataclasses.replace(data, recordings=converted, keypoints={}, ethogram=ethogram)
    if directed is not None:
        data, truths = directed.expand(data, truths)
    else:
        data = dataclasses.replace(data, recordings=tuple(map(role_inputs.with_animals, data.recordings)))
    names = input_names(data.recordings[0])
    examples = TrainingExamples(data, truths, training, role_inputs.rate, (), names, directed, required_input, role_inputs)
    return _finish(examples, fit_bridge=False)


def _check_same_features(data: Dataset) -> None:
    """Refuse recordings of which only some have per-frame features, or that have different ones."""
    features = {recording.id: frame_features(recording) for recording in data if recording.has_signals}
    present = [each for each in features.values() if each is not None]
    if not present:
        return
    if missing := [name for name, each in features.items() if each is None]:
        raise MismatchError(
            f"{len(missing)} of {len(features)} recordings have no per-frame features, such as {missing[0]!r}: "
            "fill in column 'features' for all recordings, or for none"
        )
    for recording in data:
        check_features(recording, present[0].channels)


def without_features(data: Dataset, model: str) -> Dataset:
    """Return recordings without per-frame features, with a warning, for a model that uses poses or channels only."""
    affected = [r for r in data if r.has_signals and frame_features(r) not in (None, r.signals)]
    if not affected:
        return data
    warnings.warn(
        f"model {model!r} uses poses or channels only, so the features of {len(affected)} recordings are not used; "
        "boost, tcn and auto use them",
        stacklevel=4,
    )
    return dataclasses.replace(data, recordings=tuple(r.copy(features=None) if r in affected else r for r in data))


def _finish(examples: TrainingExamples, *, fit_bridge: bool = True) -> TrainingExamples:
    """Mark frames without input as unobserved, and warn about what is not used for training."""
    examples = _fit_required_input(examples, fit_bridge=fit_bridge)
    _warn_of_point_events(examples.data.ethogram, examples.truths)
    return examples


def reference_annotation(recording: Recording, annotator: str | None) -> Annotation:
    """Return the annotation that models are trained on and compared with; the majority for ``"consensus"``."""
    return consensus(recording.annotations) if annotator == CONSENSUS else recording.annotation(annotator)


def _fit_required_input(examples: TrainingExamples, *, fit_bridge: bool) -> TrainingExamples:
    """Determine which input predictions need, and mark frames that lack it as unobserved."""
    truths, directed = examples.truths, examples.directed
    present = {}
    rates = {recording.id: float(recording.rate or examples.rate or 1.0) for recording in examples.data}
    for recording in examples.data:
        data = select_inputs(recording, examples.inputs or input_names(recording))
        present[recording.id] = input_present(data, rates[recording.id])[: truths[recording.id].n_frames]
    annotated = {name: iv.to_mask(truth.observed.of_any(), truth.n_frames) for name, truth in truths.items()}
    n_animals = None if directed is None else 1 + bool(directed.targeted)
    required = examples.required_input
    if examples.role_inputs is None:
        required = RequiredInput.fit([(mask, annotated[name][: len(mask)]) for name, mask in present.items()], n_animals)
    if fit_bridge:
        long_gaps = [name for name, mask in present.items() if not required.predictable(mask, rates[name]).all()]
        required = required.fit_bridge((present[name], overlapping_targets(truths[name]), rates[name]) for name in long_gaps)
    missing = {name: ~required.predictable(mask, rates[name]) for name, mask in present.items()}
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
