"""The contract of a model: hyper-parameters, `fit`, `predict`, `annotate`."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, NotFittedError
from ethobench.core.notebook_html import html_table
from ethobench.core.observation_period import ObservationPeriod
from ethobench.core.progress import progress_range
from ethobench.core.signals import Keypoint
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import check_metric
from ethobench.features.roles import ESTIMATED_SCALE, RoleInputs
from ethobench.features.zone_inputs import ZONE_PREFIX, with_zone_features
from ethobench.models.adapt import has_rate, match_skeleton, name_by_role, resample_recording, restore_rate
from ethobench.models.cross_validation import DECODED_PROGRESS, fit_decoder_out_of_fold
from ethobench.models.directed import DirectedExamples
from ethobench.models.held_out import Predicted
from ethobench.models.hyperparameters import hyperparameters, make_params, parameter_names
from ethobench.models.input_checks import RequiredInput, input_present
from ethobench.models.inputs import check_inputs, input_names, select_inputs
from ethobench.models.network_use import NetworkUse
from ethobench.models.pieces import Pieces
from ethobench.models.provenance import UNKNOWN, TrainingData, TrainingMatch, initial_training_data
from ethobench.models.streaming import PredictionStream
from ethobench.models.training_examples import TrainingExamples, prepare_adaptation, prepare_examples, without_features

LIMITED = (
    "These frames are not used for training, and predictions of recordings of such length have the same observation period. To predict "
    "recordings completely, state the labeled time in the columns observed_from and observed_to of recordings.csv"
)


@hyperparameters
class NoParams:
    """The hyper-parameters of a model that has none."""


class Model:
    """A model that predicts behavior from recordings, with the conventions of scikit-learn's estimators.

    Subclasses implement `_fit` and `_predict`, and `_save` and `_load` for their fitted state. They are registered by name with
    `register_model`.

    Parameters
    ----------
    seed : int
        Random seed.
    decode : str
        The metric for which probabilities are decoded into bouts. The decoder is chosen by cross-validation within the training
        data. Empty: the most probable behavior of each frame.
    **params
        Hyper-parameters; see `Params`.

    Attributes
    ----------
    title : str
        One line for lists of models.
    Params : type
        Dataclass of the hyper-parameters (`hyperparameters`), with the published defaults.
    grid : mapping of str to sequence
        The published grid: hyper-parameters and the values that were tried.
    revision : int
        Raised when the model's output changes. Part of every job's hash.
    needs_signals : bool
        Whether recordings must have signals.
    uses_features : bool
        Whether it uses per-frame features together with poses or channels. Features alone are signals, which every model can use.
    packages : mapping of str to str
        Packages that must be installed, and the extra of ethobench that installs each.
    supports_deadline : bool
        Whether `fit` can be shortened so that it ends by `deadline`.
    deadline : Deadline
        When `fit` should end; no limit by default. With a limit, the fitted model depends on the speed of the machine.
    params : Params
        The values of the hyper-parameters.
    ethogram : Ethogram, optional
        The behaviors it predicts; None before it is fitted.
    rate : float, optional
        Frames per second of the training data. Recordings with another rate are resampled.
    inputs : tuple of str
        The channels, or ``individual/keypoint``, that it uses.
    exclusive : bool
        Whether at most one behavior at a time occurs in the training data.
    never_annotated : tuple of str
        Behaviors of the ethogram that do not occur in the training data, and that it therefore never predicts.
    decoder : Decoder, optional
        The decoder that was chosen.
    directed : DirectedExamples, optional
        How recordings are split into one example per animal or ordered pair, where annotations name subjects and targets.
    style : str, optional
        The annotator whose style is predicted, for models trained on several annotators (``condition="annotator"``).
    required_input : RequiredInput
        Which animals must be tracked for a frame to be predicted.
    observation_period : ObservationPeriod, optional
        The fixed time for which all training recordings were labeled. Predictions of recordings of such length are limited to it.
    evaluation : dict
        Scores from cross-validation; empty without.
    fit_report : dict
        How the fit went, as plain values: candidates, decoders, notes. Saved with the model and with every job.
    training : TrainingData, optional
        The training recordings, by id and by hashes of their content; None before `fit`.
    out_of_fold : mapping of recording id to Prediction or Annotation
        Predictions of the training recordings from the cross-validation of `ethobench train`, by models not trained on them.
    external_params : tuple of str
        Hyper-parameters that refer to something outside the folder of a saved model: addresses, environment variables, paths. They
        are never read from the folder; the user of `load_model` states them.
    allow_network : bool
        Whether it may send data over the network. False for a loaded model unless `load_model` allows it.
    checkpoint : Path, optional
        Folder in which a long training saves its state, so that it can be resumed.

    Examples
    --------
    >>> from ethobench import create_model, load_dataset
    >>> model = create_model("rf", trees=10).fit(load_dataset("synthetic/tag", individuals=2, seconds=30))
    >>> recording = load_dataset("synthetic/tag", individuals=1, seconds=30, seed=1)["animal01"]
    >>> prediction = model.predict(recording)
    >>> prediction.annotation.n_frames == recording.n_frames
    True
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    Params: ClassVar[type] = NoParams
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    revision: ClassVar[int] = 2
    needs_signals: ClassVar[bool] = True
    uses_features: ClassVar[bool] = False
    packages: ClassVar[Mapping[str, str]] = {}
    supports_deadline: ClassVar[bool] = False
    exclusive: bool = True
    external_params: ClassVar[tuple[str, ...]] = ()
    allow_network: bool = True

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        self.params = make_params(self.name, self.Params, params)
        self.seed, self.decode = seed, decode
        if decode:
            check_metric(decode)
        self.decoder: Decoder | None = None
        self.directed: DirectedExamples | None = None
        self.required_input = RequiredInput()
        self.observation_period: ObservationPeriod | None = None
        self.role_inputs: RoleInputs | None = None
        self.condition_thresholds: dict[str, dict[str, float]] = {}
        self.style: str | None = None
        self.ethogram: Ethogram | None = None
        self.rate: float | None = None
        self.inputs: tuple[str, ...] = ()
        self.trained_on, self.licence = "", ""
        self.never_annotated: tuple[str, ...] = ()
        self.evaluation: dict[str, Any] = {}
        self.fit_report: dict[str, Any] = {}
        self.training: TrainingData | None = None
        self.out_of_fold: Mapping[str, Predicted] = {}
        self.deadline = Deadline()
        self.checkpoint: Path | None = None

    def __repr__(self) -> str:
        values = [f"{name}={getattr(self.params, name)!r}" for name in parameter_names(self.Params)]
        return f"{self.name}({', '.join([*values, *([f'decode={self.decode!r}'] if self.decode else [])])})"

    def _repr_html_(self) -> str:
        """Return a table of what the model is, what it was fitted to, and its hyper-parameters, for notebooks."""
        rows: list[tuple[str, object]] = [("model", f"{self.name}: {self.title}")]
        if self.ethogram is None:
            rows.append(("fitted", "no"))
        else:
            recordings = "" if self.training is None else f"{len(self.training.recordings)} recordings"
            rows += [("behaviors", ", ".join(self.ethogram.names)), ("trained on", " ".join(filter(None, (self.trained_on, recordings))))]
            rows += [("rate", f"{self.rate} Hz"), ("inputs", ", ".join(self.inputs))]
        rows += [(f"parameter {name}", value) for name, value in self.get_params().items()]
        return html_table(("field", "value"), rows, f"Model {self.name}")

    def get_params(self) -> dict[str, Any]:
        """Return the hyper-parameters, the seed and the metric of decoding.

        Examples
        --------
        >>> from ethobench import create_model
        >>> create_model("dt", seconds=1.0).get_params()
        {'seconds': 1.0, 'cutoff': 1.6, 'exact': True, 'seed': 0, 'decode': ''}
        """
        values = {name: getattr(self.params, name) for name in parameter_names(self.Params)}
        return {**values, "seed": self.seed, "decode": self.decode}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters, the seed or the metric of decoding; return the model.

        Examples
        --------
        >>> from ethobench import create_model
        >>> create_model("dt").set_params(seconds=0.5, seed=3).get_params()["seconds"]
        0.5
        """
        changed = type(self)(**{**self.get_params(), **params})
        self.params, self.seed, self.decode = changed.params, changed.seed, changed.decode
        return self

    def clone(self) -> Self:
        """Return an unfitted model with the same parameters."""
        return type(self)(**self.get_params())

    def check_is_fitted(self) -> Ethogram:
        """Return the ethogram of a fitted model.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        if self.ethogram is None:
            raise NotFittedError(f"{self!r} is not fitted: call `fit`, or load a saved model")
        return self.ethogram

    @property
    def n_outputs(self) -> int:
        """Number of columns of the probabilities: one per behavior, and one for an implicit background."""
        ethogram = self.check_is_fitted()
        return len(ethogram) + (self.exclusive and ethogram.background is None)

    def rate_of(self, recording: Recording) -> float:
        """Return the frames per second of a recording; the rate of the training data where the recording does not state one."""
        return float(recording.rate or self.rate or 1.0)

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds needed to compute what all fits on parts of a dataset share, such as features."""
        return 0.0

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute what all fits on parts of a dataset share, until a deadline, and cache it (`features.cache`)."""

    def note(self, text: str) -> None:
        """Add a note about the fit to the report; `train` prints it, and the model card contains it."""
        self.fit_report.setdefault("notes", []).append(text)

    def fit(self, data: Dataset, *, annotator: str | None = None) -> Self:
        """Fit the model to annotated recordings.

        Parameters
        ----------
        data : Dataset
            All recordings need an annotation, and signals where the model needs them.
        annotator : str, optional
            Whose annotations to use where recordings have several; ``"consensus"`` for the majority, ``"all"`` for one example per
            annotator.

        Returns
        -------
        Model
            The fitted model itself.
        """
        if not len(data):
            raise EthobenchError("cannot fit a model to a dataset without recordings")
        if self.needs_signals and not self.uses_features:
            data = without_features(data, self.name)
        data = self._add_zones(data)
        inputs, condition = getattr(self.params, "inputs", ""), getattr(self.params, "condition", "")
        examples = prepare_examples(data, annotator, needs_signals=self.needs_signals, inputs=inputs, condition=condition)
        return self.fit_examples(data, examples)

    def fit_examples(self, data: Dataset, examples: TrainingExamples) -> Self:
        """Fit the model to examples that were prepared before; return it.

        Parameters
        ----------
        data : Dataset
            The recordings before preparation.
        examples : TrainingExamples
            From `prepare_examples`.
        """
        self.trained_on, self.licence = f"{data.name} ({len(data)} recordings, version {data.version})", data.licence
        self.ethogram, self.rate, self.inputs = data.ethogram, examples.rate, examples.inputs
        self.directed, self.required_input = examples.directed, examples.required_input
        self.role_inputs, self.condition_thresholds = examples.role_inputs, {}
        self.observation_period = examples.observation_period
        self.never_annotated, self.exclusive = examples.never_annotated, examples.exclusive
        try:
            if self.decode:
                self.decoder, trials = fit_decoder_out_of_fold(self, examples.data, examples.truths, self.decode)
                self.fit_report["decoding"] = json.loads(json.dumps([dataclasses.asdict(trial) for trial in trials]))  # as it is saved
            with progress_range(DECODED_PROGRESS if self.decode else 0.0, 1.0):
                self._fit(examples.data, examples.truths)
        except BaseException:
            self.ethogram = None  # not fitted
            raise
        if self.role_inputs is not None:
            self.note(self.role_inputs.description)
        if self.observation_period is not None:
            self.note(f"{self.observation_period.description}. {LIMITED}")
        self.training, self.out_of_fold = examples.training.select(self._training_ids(examples.training)), {}
        if (initial := initial_training_data(self.params)) is not None:
            self.training = self.training.initialized_from(initial[1], initial[0])
        return self

    def adapt_to(self, data: Dataset, *, annotator: str | None = None) -> Self:
        """Adapt a fitted model to a new laboratory from a few annotated recordings; return it.

        What it learned from other laboratories stays the same. Recordings with the same value of the condition (by default ``lab`` in
        their metadata) are then predicted by the adapted part.

        Parameters
        ----------
        data : Dataset
            One or two recordings are enough.
        annotator : str, optional
            Whose annotations to use where recordings have several.

        Raises
        ------
        EthobenchError
            If the model cannot be adapted: it is not fitted, or its inputs are not by role.
        """
        ethogram = self.check_is_fitted()
        if self.role_inputs is None or self.exclusive:
            raise EthobenchError(
                f"model {self.name!r} cannot be adapted: it was trained on one skeleton or one laboratory. "
                "Train it on recordings of several laboratories, with `inputs='roles'`"
            )
        data = self._add_zones(data)
        examples = prepare_adaptation(data, annotator, ethogram, self.role_inputs, self.directed, self.required_input)
        self._adapt(examples.data, examples.truths)
        if self.training is not None:
            self.training = dataclasses.replace(self.training, recordings=(*self.training.recordings, *examples.training.recordings))
        values = ", ".join(sorted({self.condition_of(recording) or "recordings without one" for recording in data}))
        self.note(f"adapted to {len(data)} recordings of {getattr(self.params, 'condition', '')}: {values}")
        return self

    def _adapt(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        raise EthobenchError(f"model {self.name!r} cannot be adapted to a new laboratory; use boost or auto")

    def match_training(self, recording: Recording) -> TrainingMatch:
        """Return whether this model was trained on a recording, on its individual, or on neither.

        The content of the signals decides, so a renamed copy of a training recording is recognized.

        Examples
        --------
        >>> from ethobench import create_model, load_dataset
        >>> data = load_dataset("synthetic/tag", individuals=3, seconds=20)
        >>> model = create_model("dt").fit(data.select(individual=["animal01", "animal02"]))
        >>> model.match_training(data["animal01"].copy(id="renamed"))
        TrainingMatch(level='recording', training_id='animal01', matched_by='signals')
        >>> model.was_trained_on(data["animal03"])
        False
        """
        return TrainingMatch(UNKNOWN) if self.training is None else self.training.match(recording)

    def was_trained_on(self, recording: Recording) -> bool:
        """Return whether this model was trained on a recording; see `match_training`."""
        return self.match_training(recording).is_training_recording

    def predict(self, recording: Recording) -> Prediction:
        """Predict one recording. One with another rate is resampled, and the prediction is converted back to its rate."""
        self.check_is_fitted()
        prediction = self._predict_complete(self._with_zones(recording))
        if self.observation_period is None:
            return prediction
        annotation = self._limit_to_period(prediction.annotation)
        return Prediction(
            prediction.probabilities, prediction.ethogram, prediction.rate, annotation=annotation, exclusive=prediction.exclusive
        )

    def _limit_to_period(self, annotation: Annotation) -> Annotation:
        """Remove bouts outside of the observation period, in a recording as long as the training recordings."""
        period = self.observation_period
        return annotation if period is None or not period.applies_to(annotation) else period.limit(annotation)

    def _predict_complete(self, recording: Recording) -> Prediction:
        """Predict a recording or a piece of one, without regard to the observation period."""
        if self.role_inputs is not None:
            converted = self.role_inputs.convert(recording)
            for note in converted.notes[len(recording.notes) :]:
                if note.code == ESTIMATED_SCALE:
                    warnings.warn(f"recording {recording.id!r}: {note}", stacklevel=2)
            converted = converted if self.directed is not None else self.role_inputs.with_animals(converted)
            n_frames = None if recording.signals is None else len(recording.signals)
            return restore_rate(self._predict_decoded(converted), recording.copy(n_frames=n_frames))
        if self.directed is None:
            self._check_inputs(recording)
        if has_rate(recording, self.rate):
            return self._predict_decoded(recording)
        return restore_rate(self._predict_decoded(resample_recording(recording, float(self.rate or 1.0))), recording)

    def predict_probabilities(self, recording: Recording, baseline: Any = None) -> Prediction:
        """Predict one recording of the model's rate and inputs, without a decoder and without checks of the input.

        Parameters
        ----------
        recording : Recording
        baseline : optional
            Statistics of the entire recording of which this is a piece; computed from `recording` by default.
        """
        return self._predict(recording, self._baseline_of(recording) if baseline is None else baseline)

    def predictable_frames(self, recording: Recording) -> NDArray[np.bool_]:
        """Return which frames have the input that the model needs (n_frames,). Predictions are unobserved in the others.

        Parameters
        ----------
        recording : Recording
            With the channels, or animals and keypoints, of the model. Without signals, all frames are predictable.
        """
        if recording.signals is None:
            return np.ones(recording.n_frames or 0, dtype=bool)
        data = select_inputs(recording, self.inputs or input_names(recording))
        rate = self.rate_of(recording)
        return self.required_input.predictable(input_present(data, rate), rate)

    def network_use(self) -> NetworkUse | None:
        """Return what predicting sends over the network, and where to; None for a model that sends nothing."""
        return None

    def stream(self) -> PredictionStream:
        """Predict frame by frame as frames arrive; only for causal models."""
        raise EthobenchError(f"model {self.name!r} does not support streaming: it is not causal")

    def adapt(self, recording: Recording, keypoints: Mapping[str, Keypoint] | None = None) -> Recording:
        """Return a recording with the animals and keypoints of the model, matched by role and name; its notes say how.

        Parameters
        ----------
        recording : Recording
        keypoints : mapping of name to Keypoint, optional
            Roles of its keypoints; guessed from the names by default.
        """
        if self.role_inputs is not None:
            return name_by_role(recording, keypoints or {})
        inputs = tuple(name for name in self.inputs if not name.startswith(ZONE_PREFIX))  # those are added later
        if not self.needs_signals or {*inputs} <= {*input_names(recording)}:
            return recording
        keep_names = self.directed is not None  # predictions name the animals
        return match_skeleton(recording, inputs, getattr(self, "keypoints", {}), keypoints or {}, keep_names=keep_names)

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one piece by piece, so that memory does not grow with its length."""
        recording = self._with_zones(recording)
        data, pieces = recording.signals, self._plan_pieces(recording)
        if data is None or pieces is None or len(data) <= pieces.frames:
            return self.predict(recording).annotation
        if self.directed is not None:
            return self._limit_to_period(pieces.annotate(recording, data, lambda piece: self._predict_complete(piece).annotation))
        self._check_inputs(recording)
        baseline = self._baseline_of(recording)
        self._warn_if_unlike_training(recording, baseline)
        annotation = pieces.annotate(recording, data, lambda piece: self._decode(self._predict_observed(piece, baseline)).annotation)
        return self._limit_to_period(annotation)

    def context(self, rate: float) -> int | None:
        """Return how many frames before and after a frame influence its prediction; None if the entire recording does."""
        return None

    def save(self, path: str | Path) -> None:
        """Save the fitted model to a new folder, atomically and without pickles; see `load_model`."""
        from ethobench.models.saving import save_model

        save_model(self, path)

    def _plan_pieces(self, recording: Recording) -> Pieces | None:
        """Return how to cut a long recording; None if its predictions depend on the entire recording, or it must be resampled."""
        context = (
            None if self.rate is None or self.role_inputs is not None or not has_rate(recording, self.rate) else self.context(self.rate)
        )
        if self.rate is None or context is None:
            return None
        context += 0 if self.decoder is None else int(self.decoder.context_seconds * self.rate)
        context += int(self.required_input.bridged_seconds * self.rate) + 1  # so that a piece does not shorten a gap
        return Pieces.plan(context, self.rate, self._stride())

    def _predict_decoded(self, recording: Recording) -> Prediction:
        """Predict and decode a recording of the model's rate."""
        if self.directed is not None:
            return self.directed.predict(recording, self._predict_observed, partial(self._decode, condition=self.condition_of(recording)))
        return self._decode(self._predict_observed(recording), condition=self.condition_of(recording))

    def _predict_observed(self, recording: Recording, baseline: Any = None) -> Prediction:
        """Predict the frames that have input; the others are unobserved.

        `baseline` is that of the entire recording of which this is a piece; such a piece was checked before.
        """
        self._check_inputs(recording)
        if baseline is None:
            baseline = self._baseline_of(recording)
            self._warn_if_unlike_training(recording, baseline)
        return self._predict(recording, baseline).without_frames(~self.predictable_frames(recording))

    def _baseline_of(self, recording: Recording) -> Any:
        """Return statistics of an entire recording that its features are relative to; None for models that need none."""
        return None

    def _warn_if_unlike_training(self, recording: Recording, baseline: Any) -> None:
        """Warn if a recording is out of the distribution of the training data."""

    def _with_zones(self, recording: Recording) -> Recording:
        """Return a recording with its zones as features, where the model uses them."""
        return with_zone_features(recording, getattr(self, "keypoints", {})) if getattr(self.params, "zones", False) else recording

    def _add_zones(self, data: Dataset) -> Dataset:
        if not getattr(self.params, "zones", False):
            return data
        return dataclasses.replace(data, recordings=tuple(with_zone_features(recording, data.keypoints) for recording in data))

    def condition_of(self, recording: Recording) -> str:
        """Return the value of the column that conditions the model, such as the laboratory; empty where it is missing."""
        return str(recording.metadata.get(getattr(self.params, "condition", ""), ""))

    def _decode(self, prediction: Prediction, condition: str = "") -> Prediction:
        """Decode probabilities into bouts, with the thresholds of a condition; the shared ones where it is unknown."""
        decoder, thresholds = self.decoder, self.condition_thresholds.get(condition, {})
        if thresholds:
            decoder = decoder or Decoder()
            decoder = dataclasses.replace(decoder, thresholds={**decoder.thresholds, **thresholds})
        return prediction if decoder is None else decoder.apply(prediction)

    def _stride(self) -> int:
        """Return the number of frames at whose multiples a recording may be cut into pieces."""
        return 1

    def _check_inputs(self, recording: Recording) -> None:
        """Refuse a recording that lacks inputs of the model."""
        if self.needs_signals:
            check_inputs(recording, self.inputs)

    def _training_ids(self, training: TrainingData) -> Collection[str]:
        """Return the ids of the recordings that the fit used; all by default."""
        return [recording.id for recording in training.recordings]

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        raise NotImplementedError

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        """Predict one recording; `baseline` is what `_baseline_of` returned for the entire recording."""
        raise NotImplementedError

    def _save(self, folder: Path) -> None:
        """Write the fitted state to a folder."""

    def _load(self, folder: Path) -> None:
        """Read what `_save` wrote."""
