"""The contract of a model: hyper-parameters, `fit`, `predict`, `annotate`; and the registry of models."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Ethogram, Poses, Prediction, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, MismatchError, NotFittedError
from ethobench.core.occurrence import Occurrence
from ethobench.core.processes import usable_cores
from ethobench.core.progress import progress_range
from ethobench.core.recording import match_length
from ethobench.core.registry import Registry
from ethobench.core.signals import Keypoint
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import check_metric
from ethobench.features.missing_data import MAX_GAP_SECONDS, max_gap_frames
from ethobench.metrics import consensus
from ethobench.models.adapt import has_rate, match_skeleton, resample_recording, restore_rate, split_by_annotator
from ethobench.models.cross_validation import DECODED_PROGRESS, fit_decoder_out_of_fold
from ethobench.models.directed import DirectedExamples
from ethobench.models.held_out import Predicted
from ethobench.models.hyperparameters import hyperparameters, make_params, parameter_names
from ethobench.models.input_checks import RequiredInput, input_present
from ethobench.models.network_use import NetworkUse
from ethobench.models.provenance import UNKNOWN, TrainingData, TrainingMatch, initial_training_data
from ethobench.models.streaming import PredictionStream

MAX_PIECE_FRAMES = 1_000_000  # longer recordings are annotated piece by piece
CONSENSUS, ALL = "consensus", "all"


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
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    Params: ClassVar[type] = NoParams
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    revision: ClassVar[int] = 2
    needs_signals: ClassVar[bool] = True
    packages: ClassVar[Mapping[str, str]] = {}
    supports_deadline: ClassVar[bool] = False
    exclusive: bool = True
    external_params: ClassVar[tuple[str, ...]] = ()
    allow_network: bool = True

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        self.params = make_params(self.name, self.Params, params)
        self.seed = seed
        self.decode = decode
        if decode:
            check_metric(decode)
        self.decoder: Decoder | None = None
        self.directed: DirectedExamples | None = None
        self.required_input = RequiredInput()
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

    def get_params(self) -> dict[str, Any]:
        """Return the hyper-parameters, the seed and the metric of decoding.

        Examples
        --------
        >>> create_model("dt", seconds=1.0).get_params()
        {'seconds': 1.0, 'cutoff': 1.6, 'exact': True, 'seed': 0, 'decode': ''}
        """
        values = {name: getattr(self.params, name) for name in parameter_names(self.Params)}
        return {**values, "seed": self.seed, "decode": self.decode}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters, the seed or the metric of decoding; return the model.

        Examples
        --------
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

    def note_epochs(self, done: int, planned: int) -> None:
        """Note that a network was trained for fewer epochs than planned because of a deadline."""
        if self.deadline.is_limited and done < planned:
            self.note(f"the network was trained for {done} of {planned} epochs, to keep the time budget")

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
        self.trained_on, self.licence = f"{data.name} ({len(data)} recordings, version {data.version})", data.licence
        training = self._describe_training(data, annotator)
        data, truths = self._prepare_training(data, annotator)
        self.exclusive = all(truth.without_subjects().is_exclusive for truth in truths.values())
        if self.decode:
            self.decoder, trials = fit_decoder_out_of_fold(self, data, truths, self.decode)
            self.fit_report["decoding"] = [dataclasses.asdict(trial) for trial in trials]
        with progress_range(DECODED_PROGRESS if self.decode else 0.0, 1.0):
            self._fit(data, truths)
        self.training, self.out_of_fold = training.select(self._training_ids(training)), {}
        if (initial := initial_training_data(self.params)) is not None:
            self.training = self.training.initialized_from(initial[1], initial[0])
        return self

    def match_training(self, recording: Recording) -> TrainingMatch:
        """Return whether this model was trained on a recording, on its individual, or on neither.

        The content of the signals decides, so a renamed copy of a training recording is recognized.

        Examples
        --------
        >>> from ethobench import load_dataset
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

    def held_out_prediction(self, recording: Recording, match: TrainingMatch | None = None) -> Predicted | None:
        """Return the out-of-fold prediction of a training recording; None if there is none.

        Parameters
        ----------
        recording : Recording
        match : TrainingMatch, optional
            The result of `match_training`, to avoid computing it again.
        """
        match = match or self.match_training(recording)
        predicted = self.out_of_fold.get(match.training_id) if match.is_training_recording else None
        if predicted is None or not has_rate(recording, predicted.rate):
            return None
        lengths = {recording.n_frames, None if recording.signals is None else len(recording.signals)}
        return predicted if predicted.n_frames in lengths else None

    def predict(self, recording: Recording) -> Prediction:
        """Predict one recording. One with another rate is resampled, and the prediction is converted back to its rate."""
        self.check_is_fitted()
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
        return self.required_input.met(self._input_present(recording))

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
        if not self.needs_signals or {*self.inputs} <= {*input_names(recording)}:
            return recording
        keep_names = self.directed is not None  # predictions name the animals
        return match_skeleton(recording, self.inputs, getattr(self, "keypoints", {}), keypoints or {}, keep_names=keep_names)

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one piece by piece, so that memory does not grow with its length."""
        data, context = recording.signals, self._piece_context(recording)
        if data is None or context is None:
            return self.predict(recording).annotation
        baseline = None
        if self.directed is None:
            self._check_inputs(recording)
            baseline = self._baseline_of(recording)
            self._warn_if_unlike_training(recording, baseline)
        size = -(-MAX_PIECE_FRAMES // self._stride()) * self._stride()
        annotations = []
        for start in range(0, len(data), size):
            stop, first = min(start + size, len(data)), max(start - context, 0)
            signals = data[first : stop + context]
            piece = recording.copy(signals=signals, n_frames=len(signals), annotations={}, features=None)
            prediction = self.predict(piece) if self.directed is not None else self._decode(self._predict_observed(piece, baseline))
            annotations.append(prediction.annotation.crop(start - first, stop - first))
        return join_pieces(annotations)

    def context(self, rate: float) -> int | None:
        """Return how many frames before and after a frame influence its prediction; None if the entire recording does."""
        return None

    def save(self, path: str | Path) -> None:
        """Save the fitted model to a new folder, atomically and without pickles; see `load_model`."""
        from ethobench.models.saving import save_model

        save_model(self, path)

    def _prepare_training(self, data: Dataset, annotator: str | None) -> tuple[Dataset, dict[str, Annotation]]:
        """Return the examples to fit to and the annotation of each: one rate, one annotator, one subject where bouts name subjects."""
        if annotator == ALL:
            data, annotator = split_by_annotator(data), None
        self.ethogram, self.rate = data.ethogram, data.recordings[0].rate
        if not all(has_rate(recording, self.rate) for recording in data):
            resampled = tuple(r if has_rate(r, self.rate) else resample_recording(r, float(self.rate or 1.0)) for r in data)
            data = dataclasses.replace(data, recordings=resampled)
        truths = {recording.id: reference_annotation(recording, annotator).with_ethogram(data.ethogram) for recording in data}
        self.never_annotated = Occurrence.count(data.ethogram, truths.values()).never_annotated
        self.inputs, self.directed = (), None
        if not self.needs_signals:
            return data, truths
        truths = {recording.id: _fit_to_signals(recording, truths[recording.id]) for recording in data}
        self.directed = DirectedExamples.from_annotations(data, truths)
        if self.directed is not None:
            data, truths = self.directed.expand(data, truths)
        self.inputs = input_names(data.recordings[0])
        for recording in data:
            self._check_inputs(recording)
        truths = self._fit_required_input(data, truths)
        _warn_of_point_events(data.ethogram, truths)
        return data, truths

    def _piece_context(self, recording: Recording) -> int | None:
        """Return the frames of context on both sides of a piece; None for a recording that is predicted in one piece."""
        data, stride = recording.signals, self._stride()
        if data is None or self.rate is None or not has_rate(recording, self.rate) or len(data) <= -(-MAX_PIECE_FRAMES // stride) * stride:
            return None
        context = self.context(self.rate)
        if context is None:
            return None
        context += 0 if self.decoder is None else int(self.decoder.context_seconds * self.rate)
        context = max(context, max_gap_frames(MAX_GAP_SECONDS, self.rate) + 1)  # else the edge of a piece would shorten a gap
        return -(-context // stride) * stride

    def _predict_decoded(self, recording: Recording) -> Prediction:
        """Predict and decode a recording of the model's rate."""
        if self.directed is not None:
            return self.directed.predict(recording, self._predict_observed, self._decode)
        return self._decode(self._predict_observed(recording))

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

    def _input_present(self, recording: Recording) -> NDArray[np.bool_]:
        """Return which frames have input, by animal, from the channels or keypoints that the model uses."""
        from ethobench.models.inputs import select_inputs

        data = select_inputs(recording, self.inputs or input_names(recording))
        return input_present(data, self.rate_of(recording))

    def _fit_required_input(self, data: Dataset, truths: Mapping[str, Annotation]) -> dict[str, Annotation]:
        """Determine which input predictions need; return the annotations with frames that lack it unobserved."""
        present = {recording.id: self._input_present(recording)[: truths[recording.id].n_frames] for recording in data}
        annotated = {name: iv.to_mask(truth.observed.of_any(), truth.n_frames) for name, truth in truths.items()}
        n_animals = None if self.directed is None else 1 + bool(self.directed.targeted)
        examples = [(mask, annotated[name][: len(mask)]) for name, mask in present.items()]
        self.required_input = RequiredInput.fit(examples, n_animals)
        missing = {name: ~self.required_input.met(mask) for name, mask in present.items()}
        unused_seconds = {name: (mask & annotated[name][: len(mask)]).sum() / truths[name].rate for name, mask in missing.items()}
        if total := sum(unused_seconds.values()):
            affected = sum(seconds > 0 for seconds in unused_seconds.values())
            warnings.warn(
                f"{total:.1f} s of annotations in {affected} of {len(unused_seconds)} recordings are not used for training: "
                "the input is missing there (a gap in the signals, or animals that are not tracked)",
                stacklevel=3,
            )
        padded = {name: np.pad(mask, (0, truths[name].n_frames - len(mask))) for name, mask in missing.items()}
        return {name: truth.mark_unobserved(padded[name]) if padded[name].any() else truth for name, truth in truths.items()}

    def _decode(self, prediction: Prediction) -> Prediction:
        return prediction if self.decoder is None else self.decoder.apply(prediction)

    def _stride(self) -> int:
        """Return the number of frames at whose multiples a recording may be cut into pieces."""
        return 1

    def _check_inputs(self, recording: Recording) -> None:
        """Refuse a recording that lacks inputs of the model."""
        if self.needs_signals:
            available = input_names(recording)
            missing = [name for name in self.inputs if name not in available]
            if missing:
                raise MismatchError(f"recording {recording.id!r} lacks {', '.join(missing)}, which the model needs")

    def _describe_training(self, data: Dataset, annotator: str | None) -> TrainingData:
        """Hash the training recordings."""
        extra = [reference_annotation(recording, annotator) for recording in data] if annotator == CONSENSUS else []
        return TrainingData.from_dataset(data, signals=self.needs_signals, extra=extra)

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


MODULES = {
    "attention": "ethobench.models.calms21_networks",
    "auto": "ethobench.models.auto",
    "boost": "ethobench.models.boost",
    "chance": "ethobench.models.chance",
    "cnn": "ethobench.models.bebe_networks",
    "conv1d": "ethobench.models.calms21_networks",
    "crnn": "ethobench.models.bebe_networks",
    "dense": "ethobench.models.calms21_networks",
    "dt": "ethobench.models.frame_classifiers",
    "gmm": "ethobench.models.unsupervised",
    "harnet": "ethobench.models.bebe_networks",
    "hmm": "ethobench.models.unsupervised",
    "kmeans": "ethobench.models.unsupervised",
    "lstm": "ethobench.models.calms21_networks",
    "mllm": "ethobench.mllm.model",
    "rf": "ethobench.models.frame_classifiers",
    "rnn": "ethobench.models.bebe_networks",
    "svm": "ethobench.models.frame_classifiers",
    "tcn": "ethobench.models.tcn",
    "wavelet_dt": "ethobench.models.frame_classifiers",
    "wavelet_rf": "ethobench.models.frame_classifiers",
    "wavelet_rnn": "ethobench.models.bebe_networks",
    "wavelet_svm": "ethobench.models.frame_classifiers",
}

models: Registry[type[Model]] = Registry("model", MODULES, classes=True)
register_model = models.register


def create_model(name: str, *, seed: int = 0, decode: str = "", **params: Any) -> Model:
    """Create an unfitted model.

    Parameters
    ----------
    name : str
        ``"auto"`` (the default of `ethobench train`), ``"boost"``, ``"rf"``, ...
    seed : int
        Random seed.
    decode : str
        The metric for which probabilities are decoded into bouts: ``"f1"``, ``"bout_f1"``, ``"balanced"``, ...; empty for the most
        probable behavior of each frame.
    **params
        Hyper-parameters. The published values are the defaults.

    Examples
    --------
    >>> create_model("auto", metric="bout_f1")
    auto(metric='bout_f1', ...)
    """
    kind = models[name]
    if missing := [package for package in kind.packages if find_spec(package) is None]:
        raise EthobenchError(f"model {name!r} needs {' and '.join(missing)}: {install_command(kind.packages)}")
    return kind(seed=seed, decode=decode, **params)


def install_command(packages: Mapping[str, str]) -> str:
    """Return the command that installs the missing packages of a model; empty if none is missing.

    Parameters
    ----------
    packages : mapping of str to str
        Packages, and the extra of ethobench that installs each (`Model.packages`).
    """
    extras = sorted({extra for package, extra in packages.items() if find_spec(package) is None})
    return f'pip install "ethobench[{",".join(extras)}]"' if extras else ""


def thread_count() -> int:
    """Return the number of threads that a fit may use: ``OMP_NUM_THREADS``, which workers of a run set, or all usable cores."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdigit() and int(limit) else usable_cores()


def reference_annotation(recording: Recording, annotator: str | None) -> Annotation:
    """Return the annotation that models are trained on and compared with; the majority for ``"consensus"``."""
    return consensus(recording.annotations) if annotator == CONSENSUS else recording.annotation(annotator)


def input_names(recording: Recording) -> tuple[str, ...]:
    """Return the channels of a recording, or ``individual/keypoint`` for poses."""
    data = recording.signals
    if isinstance(data, Signals):
        return data.channels
    if isinstance(data, Poses):
        return tuple(f"{individual}/{keypoint}" for individual in data.individuals for keypoint in data.keypoints)
    raise MismatchError(f"recording {recording.id!r} has no signals")


def join_pieces(pieces: Sequence[Annotation]) -> Annotation:
    """Concatenate the annotations of consecutive pieces of a recording; bouts that were cut between two pieces are joined."""
    joined = pieces[0].concatenate(*pieces[1:])
    columns = (joined.behavior, joined.subject, joined.target)
    stop, keep = joined.stop.copy(), np.ones(len(joined), dtype=bool)
    for seam in np.cumsum([piece.n_frames for piece in pieces[:-1]]):
        ending = {tuple(int(column[i]) for column in columns): i for i in np.flatnonzero((stop == seam) & keep)}
        for j in np.flatnonzero(joined.start == seam):
            i = ending.get(tuple(int(column[j]) for column in columns))
            if i is not None:
                stop[i], keep[j] = stop[j], False
    bouts = dataclasses.replace(joined, stop=stop).take(keep)
    return dataclasses.replace(bouts, order=np.arange(len(bouts)))


def _warn_of_point_events(ethogram: Ethogram, truths: Mapping[str, Annotation]) -> None:
    """Warn about point events, which have no frames to train on."""
    annotated = {int(code) for truth in truths.values() for code in np.unique(truth.behavior)}
    if points := [b.name for code, b in enumerate(ethogram) if b.point and code in annotated]:
        warnings.warn(f"point events are not used for training and are not predicted: {', '.join(points)}", stacklevel=4)


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
