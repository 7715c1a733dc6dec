"""The contract of a model."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Behavior, Dataset, Ethogram, Poses, Prediction, Recording, Signals
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.explanations import explain_exception
from ethobench.core.files import atomic_folder
from ethobench.core.folders import check_folder
from ethobench.core.lengths import fit_length
from ethobench.core.occurrence import Occurrence
from ethobench.core.registry import Registry
from ethobench.core.signals import Keypoint
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import check_metric
from ethobench.features.missing_data import MAX_GAP_SECONDS, max_gap_frames
from ethobench.metrics import consensus
from ethobench.models.card import CARD, WORDS, check_files, digest_files, hash_files, in_words
from ethobench.models.checked import checked
from ethobench.models.clock import at_rate, back_at_rate, is_rate
from ethobench.models.default import install_command
from ethobench.models.directed import Directions
from ethobench.models.held_out import OUT_OF_FOLD, OutOfFoldPredictions, Predicted, write_predictions
from ethobench.models.live import Live
from ethobench.models.missing_input import RequiredInput, input_present
from ethobench.models.network_use import Consent, ConsentError, NetworkUse
from ethobench.models.out_of_fold import fit_decoder_out_of_fold
from ethobench.models.pieces import seamless
from ethobench.models.provenance import UNKNOWN, TrainingData, TrainingMatch, initial_training_data
from ethobench.models.skeleton import as_known
from ethobench.models.styles import by_annotator

PIECE = 1_000_000
HIGHEST_RATE = 100_000.0  # Hz; a damaged card could otherwise have recordings resampled to any length
CONSENSUS, ALL = "consensus", "all"


@dataclass(frozen=True)
class NoParams:
    """A model without hyper-parameters."""


class Model:
    """Learns what behavior looks like from annotated recordings; its name is the module's name.

    Subclasses write `_fit` and `_predict`, and `_save` and `_load` for what they have learnt.

    Attributes
    ----------
    title : str
        What it is, in one line.
    Params : type
        A frozen dataclass of hyper-parameters with the published defaults.
    grid : mapping
        The published grid: names of hyper-parameters to the values tried.
    revision : int
        Raised when the model's output changes; part of every job's hash.
    needs_signals : bool
        Whether recordings must have signals.
    packages : mapping of str to str
        What must be installed, and which extra of ethobench brings it.
    never_annotated : tuple of str
        The behaviors of the ethogram that the training data never show, so that the model cannot predict them.
    keeps_deadline : bool
        Whether `fit` can be shortened: it then ends by `deadline`, with a model that has learnt less.
    deadline : Deadline
        When `fit` should have ended; no limit unless set. What is learnt then depends on the speed of the machine.
    evaluation : dict
        How it did in cross-validation, where that was asked: figures by suite.
    decode : str
        The metric for which probabilities are turned into bouts (`ethobench.decoding.search.fit_decoder`), chosen by cross-validation
        within the training data; empty for the most probable behavior of each frame.
    decoder : Decoder, optional
        What was chosen.
    directions : Directions, optional
        Who acts towards whom, where the bouts it learnt from name the animals of the poses: then each animal, or ordered pair, is
        an example of its own, and predictions name subjects and targets.
    style : str, optional
        The annotator to predict like, for models that learnt to tell them apart.
    account : dict
        What is worth keeping of how it went about it, in plain values; stored with every job.
    exclusive : bool
        Whether one behavior goes on at a time in all that it learnt from.
    required_input : RequiredInput
        Which animals must be tracked for a frame to be predicted.
    training : TrainingData, optional
        The recordings that it was trained on, by id and by hashes of their content; None before it is fitted, and for models
        saved before this was kept.
    out_of_fold : mapping of recording id to Prediction or Annotation
        What the cross-validation of `ethobench train` predicts of the training recordings, by models that had not seen them;
        `predict` gives the answer of this model instead, which did see them.
    external_params : tuple of str
        Hyper-parameters that refer to something outside the folder of a saved model and are used to predict: addresses, names of
        environment variables, paths. They are never taken from the folder; whoever loads the model states them.
    allow_network : bool
        Whether it may send data over the network. False for a model from a folder, unless `load_model` was told otherwise.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    Params: ClassVar[type] = NoParams
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    revision: ClassVar[int] = 2
    needs_signals: ClassVar[bool] = True
    packages: ClassVar[Mapping[str, str]] = {}
    keeps_deadline: ClassVar[bool] = False
    exclusive: bool = True
    external_params: ClassVar[tuple[str, ...]] = ()
    allow_network: bool = True

    def __init__(self, *, seed: int = 0, decode: str = "", **params: Any) -> None:
        known = [f.name for f in dataclasses.fields(self.Params)]
        unknown = [name for name in params if name not in known]
        if unknown:
            raise EthobenchError(f"model {self.name!r} takes no {', '.join(unknown)}; it takes: {', '.join(known) or 'nothing'}")
        self.params = checked(self.Params, params)
        self.seed = seed
        self.decode = decode
        self.decoder: Decoder | None = None
        self.directions: Directions | None = None
        self.required_input = RequiredInput()
        self.style: str | None = None
        if decode:
            check_metric(decode)
        self.ethogram: Ethogram | None = None
        self.rate: float | None = None
        self.inputs: tuple[str, ...] = ()
        self.trained_on, self.licence = "", ""
        self.never_annotated: tuple[str, ...] = ()
        self.evaluation: dict[str, Any] = {}
        self.account: dict[str, Any] = {}
        self.training: TrainingData | None = None
        self.out_of_fold: Mapping[str, Predicted] = {}
        self.deadline = Deadline()
        self.checkpoint: Path | None = None  # where a long training may keep what it has, to go on after it was killed

    def __repr__(self) -> str:
        told = ", ".join(f"{f.name}={getattr(self.params, f.name)!r}" for f in dataclasses.fields(self.params))
        return f"{self.name}({told})" if not self.decode else f"{self.name}({told}, decode={self.decode!r})"

    def fresh(self) -> Model:
        """Return one like this that has not learnt anything, and does not decode."""
        params = {f.name: getattr(self.params, f.name) for f in dataclasses.fields(self.params)}
        return type(self)(seed=self.seed, **params)

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds of what all trainings on parts of a dataset share, such as features; 0 where they share nothing."""
        return 0.0

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute what all trainings on parts of a dataset share, until a deadline, and keep it (`features.cache`)."""

    def note(self, text: str) -> None:
        """Keep something that a user should know about the fit; `train` prints it, and the card has it."""
        self.account.setdefault("notes", []).append(text)

    def note_epochs(self, done: int, planned: int) -> None:
        """Note that a network was trained for fewer epochs than planned, where a deadline is the reason."""
        if self.deadline.is_limited and done < planned:
            self.note(f"the network was trained for {done} of {planned} epochs, to keep the time budget")

    def fit(self, data: Dataset, *, annotator: str | None = None) -> Model:
        """Learn from a dataset.

        Parameters
        ----------
        data : Dataset
            Recordings without an annotation (or without signals, where the model needs them) are an error.
        annotator : str, optional
            Whose annotations, where recordings have several; ``"consensus"`` for what most say, ``"all"`` for each of them in turn.
        """
        if not len(data):
            raise EthobenchError("there is nothing to learn from: the dataset has no recordings")
        self.trained_on, self.licence = f"{data.name} ({len(data)} recordings, version {data.version})", data.licence
        training = self._describe_training(data, annotator)
        if annotator == ALL:
            data, annotator = by_annotator(data), None
        self.ethogram, self.rate = data.ethogram, data.recordings[0].rate
        if not all(is_rate(recording, self.rate) for recording in data):
            same = tuple(r if is_rate(r, self.rate) else at_rate(r, float(self.rate or 1.0)) for r in data)
            data = dataclasses.replace(data, recordings=same)
        truths = {recording.id: truth_of(recording, annotator).with_ethogram(data.ethogram) for recording in data}
        self.never_annotated = Occurrence.count(data.ethogram, truths.values()).never_annotated
        if self.needs_signals:
            truths = {recording.id: _as_long_as_signals(recording, truths[recording.id]) for recording in data}
        self.directions = Directions.of(data, truths) if self.needs_signals else None
        if self.directions is not None:
            data, truths = self.directions.expand(data, truths)
        self.inputs = input_names(data.recordings[0]) if self.needs_signals else ()
        for recording in data:
            self._check(recording)
        if self.needs_signals:
            truths = self._learn_required_input(data, truths)
            _tell_of_points(data.ethogram, truths)
        self.exclusive = all(truth.without_subjects().is_exclusive for truth in truths.values())
        if self.decode:
            self.decoder, trials = fit_decoder_out_of_fold(self, data, truths, self.decode)
            self.account["decoding"] = [dataclasses.asdict(trial) for trial in trials]
        self._fit(data, truths)
        self.training, self.out_of_fold = training.select(self._training_ids(training)), {}
        if (initial := initial_training_data(self.params)) is not None:
            self.training = self.training.initialised_from(initial[1], initial[0])
        return self

    def match_training(self, recording: Recording) -> TrainingMatch:
        """Tell whether this model was trained on a recording, on its individual, or on neither.

        The content of the signals decides, so a renamed copy of a training recording is recognised.

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
        """Whether this model was trained on a recording; see `match_training`."""
        return self.match_training(recording).seen

    def held_out_prediction(self, recording: Recording, match: TrainingMatch | None = None) -> Predicted | None:
        """Return the out-of-fold prediction of a training recording; None where there is none.

        Parameters
        ----------
        recording : Recording
        match : TrainingMatch, optional
            From `match_training`, where that is known already.
        """
        match = match or self.match_training(recording)
        predicted = self.out_of_fold.get(match.training_id) if match.seen else None
        if predicted is None or not is_rate(recording, predicted.rate):
            return None
        lengths = {recording.n_frames, None if recording.signals is None else len(recording.signals)}
        return predicted if predicted.n_frames in lengths else None

    def predict(self, recording: Recording) -> Prediction:
        """Predict one recording; one of another rate is resampled, predicted, and the prediction brought back to its clock."""
        if self.ethogram is None:
            raise EthobenchError(f"{self!r} has not learnt anything yet: call fit, or load a model")
        if self.directions is None:
            self._check(recording)
        if is_rate(recording, self.rate):
            return self._predict_decoded(recording)
        return back_at_rate(self._predict_decoded(at_rate(recording, float(self.rate or 1.0))), recording)

    def predictable_frames(self, recording: Recording) -> NDArray[np.bool_]:
        """Return which frames have the input that the model needs (n_frames,); the others are unobserved in its predictions.

        Parameters
        ----------
        recording : Recording
            With the channels, or animals and keypoints, of the model. One without signals has no input that could be missing.
        """
        if recording.signals is None:
            return np.ones(recording.n_frames or 0, dtype=bool)
        return self.required_input.met(self._input_present(recording))

    def network_use(self) -> NetworkUse | None:
        """Return what predicting sends over the network, and where to; None for a model that sends nothing."""
        return None

    def stream(self) -> Live:
        """Follow along frame by frame, where the model looks at nothing to come."""
        raise EthobenchError(f"model {self.name!r} cannot follow along: it looks at whole recordings, or at frames to come")

    def adapt(self, recording: Recording, keypoints: Mapping[str, Keypoint] | None = None) -> Recording:
        """Return a recording as this model knows it: another lab's animals and keypoints are matched, and its notes say how.

        Parameters
        ----------
        recording : Recording
        keypoints : mapping of name to Keypoint, optional
            Stated roles of its keypoints; guessed from the names unless given.
        """
        if not self.needs_signals or {*self.inputs} <= {*input_names(recording)}:
            return recording
        named = self.directions is not None  # whose names are those of the animals, to be told with what they do
        return as_known(recording, self.inputs, getattr(self, "keypoints", {}), keypoints or {}, keep_names=named)

    def annotate(self, recording: Recording) -> Annotation:
        """Annotate one recording; a long one a piece at a time, so that memory does not grow with its length."""
        return self._annotate_in_pieces(recording, self.predict)

    def _annotate_in_pieces(self, recording: Recording, predict: Callable[[Recording], Prediction]) -> Annotation:
        """Annotate a recording; a long one is cut into pieces of `PIECE` frames and their context, which `predict` predicts."""
        data, step = recording.signals, -(-PIECE // self._step()) * self._step()
        if data is None or len(data) <= step or self.rate is None or not is_rate(recording, self.rate):
            return predict(recording).annotation
        context = self.context(self.rate)
        if context is None:
            return predict(recording).annotation
        context += 0 if self.decoder is None else int(self.decoder.context_seconds * self.rate)
        context = max(context, max_gap_frames(MAX_GAP_SECONDS, self.rate) + 1)  # a gap cut by a piece's edge is no short gap
        context = -(-context // self._step()) * self._step()
        parts = []
        for start in range(0, len(data), step):
            stop, first = min(start + step, len(data)), max(start - context, 0)
            piece = data[first : stop + context]
            part = recording.copy(signals=piece, n_frames=len(piece), annotations={}, features=None)
            parts.append(predict(part).annotation.crop(start - first, stop - first))
        return seamless(parts)

    def context(self, rate: float) -> int | None:
        """Return how many frames beside a stretch decide what is predicted in it; None if all of the recording do."""
        return None

    def _predict_decoded(self, recording: Recording) -> Prediction:
        """Predict a recording of the model's own rate, for which its decoder was chosen."""
        if self.directions is not None:
            return self.directions.predict(recording, self._predict_noticed, self._decode)
        return self._decode(self._predict_noticed(recording))

    def _predict_noticed(self, recording: Recording) -> Prediction:
        self._check(recording)
        self._notice(recording)
        return self._predict(recording).without_frames(~self.predictable_frames(recording))

    def _input_present(self, recording: Recording) -> NDArray[np.bool_]:
        """Return which frames have input, by animal, from the channels or keypoints that the model uses."""
        from ethobench.models.inputs import known_signals

        data = known_signals(recording, self.inputs or input_names(recording))
        return input_present(data, float(recording.rate or self.rate or 1.0))

    def _learn_required_input(self, data: Dataset, truths: Mapping[str, Annotation]) -> dict[str, Annotation]:
        """Learn which input predictions need; return the annotations without the frames that lack it."""
        present = {recording.id: self._input_present(recording)[: truths[recording.id].n_frames] for recording in data}
        annotated = {name: iv.to_mask(truth.observed.anywhere(), truth.n_frames) for name, truth in truths.items()}
        n_animals = None if self.directions is None else 1 + bool(self.directions.towards)
        examples = [(part, annotated[name][: len(part)]) for name, part in present.items()]
        self.required_input = RequiredInput.learn(examples, n_animals)
        missing = {name: ~self.required_input.met(part) for name, part in present.items()}
        lost = {name: (mask & annotated[name][: len(mask)]).sum() / truths[name].rate for name, mask in missing.items()}
        if total := sum(lost.values()):
            affected = sum(seconds > 0 for seconds in lost.values())
            warnings.warn(
                f"{total:.1f} s of annotations in {affected} of {len(lost)} recordings are not learnt from: "
                "there the input is missing (a gap in the signals, or animals that are not tracked)",
                stacklevel=3,
            )
        padded = {name: np.pad(mask, (0, truths[name].n_frames - len(mask))) for name, mask in missing.items()}
        return {name: truth.hide(padded[name]) if padded[name].any() else truth for name, truth in truths.items()}

    def _notice(self, recording: Recording) -> None:
        """Say what is strange about a recording, if anything."""

    def _decode(self, prediction: Prediction) -> Prediction:
        return prediction if self.decoder is None else self.decoder.apply(prediction)

    def _step(self) -> int:
        """Return the number of frames at whose multiples a recording may be cut."""
        return 1

    def save(self, path: str | Path) -> None:
        """Save to a new folder, which appears whole or not at all; nothing in it is a pickle."""
        path = Path(path)
        if path.exists():
            raise EthobenchError(f"{path} exists and is left alone; choose another name")
        if self.ethogram is None:
            raise EthobenchError(f"{self!r} has not learnt anything yet")
        with atomic_folder(path) as temporary:
            self._save(temporary)
            if self.training is not None:
                self.training.write(temporary)
            if self.out_of_fold:
                write_predictions(temporary / OUT_OF_FOLD, self.out_of_fold, self.name)
            card = {**self._card(), "digest": digest_files(temporary), "files": hash_files(temporary)}
            (temporary / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
            (temporary / WORDS).write_text(in_words(card), encoding="utf-8")

    def _check(self, recording: Recording) -> None:
        """Refuse a recording that differs from what the model learnt from."""
        if self.needs_signals:
            found = input_names(recording)
            missing = [name for name in self.inputs if name not in found]
            if missing:
                raise MismatchError(f"recording {recording.id!r} lacks {', '.join(missing)}, which the model needs")

    def _describe_training(self, data: Dataset, annotator: str | None) -> TrainingData:
        """Hash the training recordings as they were given."""
        extra = [truth_of(recording, annotator) for recording in data] if annotator == CONSENSUS else []
        return TrainingData.of(data, signals=self.needs_signals, extra=extra)

    def _training_ids(self, training: TrainingData) -> Collection[str]:
        """Return the ids of the recordings that the model learned from: all of those it was given, unless overridden."""
        return [recording.id for recording in training.recordings]

    def _card(self) -> dict[str, Any]:
        ethogram = self.ethogram or Ethogram([])
        return {
            "model": self.name,
            "revision": self.revision,
            "ethobench": version("ethobench"),
            "params": dataclasses.asdict(self.params),
            "seed": self.seed,
            "behaviors": [dataclasses.asdict(b) for b in ethogram],
            "background": ethogram.background_name,
            "never_annotated": list(self.never_annotated),
            "rate": self.rate,
            "inputs": list(self.inputs),
            "trained_on": self.trained_on,
            "licence": self.licence,
            "evaluation": self.evaluation,
            "decode": self.decode,
            "decoder": None if self.decoder is None else self.decoder.to_dict(),
            "account": self.account,
            "required_input": dataclasses.asdict(self.required_input),
            "directions": None if self.directions is None else {"towards": list(self.directions.towards)},
            "training_recordings": None if self.training is None else len(self.training.recordings),
            "out_of_fold": len(self.out_of_fold),
        }

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        raise NotImplementedError

    def _predict(self, recording: Recording) -> Prediction:
        raise NotImplementedError

    def _save(self, folder: Path) -> None:
        """Write what was learnt into a folder."""

    def _load(self, folder: Path) -> None:
        """Read what `_save` wrote."""


MODULES = {
    "attention": "ethobench.models.attention",
    "auto": "ethobench.models.auto",
    "boost": "ethobench.models.boost",
    "chance": "ethobench.models.chance",
    "cnn": "ethobench.models.cnn",
    "conv1d": "ethobench.models.conv1d",
    "crnn": "ethobench.models.crnn",
    "dense": "ethobench.models.dense",
    "dt": "ethobench.models.dt",
    "gmm": "ethobench.models.gmm",
    "harnet": "ethobench.models.harnet",
    "hmm": "ethobench.models.hmm",
    "kmeans": "ethobench.models.kmeans",
    "lstm": "ethobench.models.lstm",
    "mllm": "ethobench.mllm.model",
    "rf": "ethobench.models.rf",
    "rnn": "ethobench.models.rnn",
    "svm": "ethobench.models.svm",
    "tcn": "ethobench.models.tcn",
    "wavelet_dt": "ethobench.models.wavelet_dt",
    "wavelet_rf": "ethobench.models.wavelet_rf",
    "wavelet_rnn": "ethobench.models.wavelet_rnn",
    "wavelet_svm": "ethobench.models.wavelet_svm",
}

models: Registry[type[Model]] = Registry("model", MODULES, classes=True)
register_model = models.register


def create_model(name: str, *, seed: int = 0, decode: str = "", **params: Any) -> Model:
    """Make a model that has not learnt yet.

    Parameters
    ----------
    name : str
        ``"auto"`` (the default of `ethobench train`), ``"boost"``, ``"rf"``, ...
    seed : int
    decode : str
        The metric for which probabilities become bouts: ``"f1"``, ``"bout_f1"``, ``"balanced"``, ...; none unless given.
    **params
        Hyper-parameters; the published defaults unless given.

    Examples
    --------
    >>> create_model("auto", metric="bout_f1")
    auto(metric='bout_f1', ...)
    """
    kind = models[name]
    if missing := [package for package in kind.packages if find_spec(package) is None]:
        raise EthobenchError(f"model {name!r} needs {' and '.join(missing)}: {install_command(kind.packages)}")
    return kind(seed=seed, decode=decode, **params)


def load_model(path: str | Path, *, allow_network: bool = False, **external: str) -> Model:
    """Load a saved model. A folder from elsewhere can neither send data nor have files outside it read.

    Parameters
    ----------
    path : path
        The folder. Links that lead out of it are refused.
    allow_network : bool
        Whether the model may contact the provider that it names (model ``mllm``); `Model.network_use` tells whom.
    **external : str
        Settings that are never taken from the folder: for model ``mllm`` ``base_url``, ``key_variable``, ``answers`` and ``address``.

    Raises
    ------
    FormatError
        If the folder holds no saved model, or a damaged one.
    ConsentError
        If the folder has one of the external settings and it is not stated here.
    """
    from ethobench.formats.text import read_json

    path = Path(path)
    if not (path / CARD).is_file():
        raise FormatError(path, f"this is no saved model: it has no {CARD}")
    check_folder(path)
    card = read_json(path / CARD)
    if not isinstance(card, dict):
        raise FormatError(path / CARD, "the model's card is damaged")
    check_files(path, card)  # before any of them is parsed
    model = _model_of_card(path, card, Consent(allow_network, external))
    model.allow_network = allow_network
    try:
        model._load(path)
    except (FormatError, ConsentError):
        raise
    except EthobenchError as error:
        raise FormatError(path, str(error)) from None
    except Exception as error:
        raise FormatError(path, f"a file of the model is damaged: {explain_exception(error)}") from None
    model.training = TrainingData.read(path)
    model.out_of_fold = OutOfFoldPredictions(path / OUT_OF_FOLD, model.ethogram or Ethogram([]))
    return model


def _model_of_card(path: Path, card: Mapping[str, Any], consent: Consent) -> Model:
    """Create a model with what its card says, as yet without what was learnt."""
    try:
        params = {key: tuple(value) if isinstance(value, list) else value for key, value in card["params"].items()}
        params = consent.apply(path, params, models[card["model"]].external_params)
        model = create_model(card["model"], seed=_seed_of(card), decode=card.get("decode", ""), **params)
        model.ethogram = Ethogram([Behavior(**b) for b in card["behaviors"]], card["background"])
        model.rate, model.inputs, model.trained_on = _rate_of(card), tuple(map(str, card["inputs"])), str(card["trained_on"])
        model.licence, model.never_annotated = card.get("licence", ""), tuple(card.get("never_annotated", ()))
        model.evaluation, model.account = dict(card.get("evaluation", {})), dict(card.get("account", {}))
        model.decoder = Decoder.from_dict(card["decoder"]) if card.get("decoder") else None
        model.required_input = RequiredInput.from_dict(card["required_input"])
        model.directions = Directions(tuple(card["directions"]["towards"])) if card.get("directions") else None
        revision = card["revision"]
    except (FormatError, ConsentError):
        raise
    except EthobenchError as error:
        raise FormatError(path / CARD, str(error)) from None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
        raise FormatError(path / CARD, f"the model's card is damaged ({error})") from None
    if revision != model.revision:
        raise FormatError(path / CARD, f"saved by revision {revision} of {model.name!r}, this one is {model.revision}; train it again")
    return model


def _seed_of(card: Mapping[str, Any]) -> int:
    seed = card["seed"]
    if type(seed) is not int:
        raise ValueError(f"the seed is {seed!r}")
    return seed


def _rate_of(card: Mapping[str, Any]) -> float | None:
    rate = card["rate"]
    if rate is not None and not (isinstance(rate, (int, float)) and 0 < rate <= HIGHEST_RATE):
        raise ValueError(f"the rate is {rate!r}")
    return rate


def truth_of(recording: Recording, annotator: str | None) -> Annotation:
    """Return what a model should learn of a recording."""
    return consensus(recording.annotations) if annotator == CONSENSUS else recording.annotation(annotator)


def _tell_of_points(ethogram: Ethogram, truths: Mapping[str, Annotation]) -> None:
    """Say which behaviors are not learnt, since they have no frames."""
    shown = {int(code) for truth in truths.values() for code in np.unique(truth.behavior)}
    if points := [b.name for code, b in enumerate(ethogram) if b.point and code in shown]:
        warnings.warn(f"events without a duration are not learnt, and not predicted: {', '.join(points)}", stacklevel=4)


def _as_long_as_signals(recording: Recording, truth: Annotation) -> Annotation:
    """Cut labels that are a little longer than the signals, and say so; refuse what is far longer."""
    if recording.signals is None:
        return truth
    try:
        fitted, told = fit_length(truth, len(recording.signals))
    except MismatchError as error:
        raise MismatchError(f"recording {recording.id!r}: {error}") from None
    if len(recording.signals) < truth.n_frames:
        warnings.warn(f"recording {recording.id!r}: {told}", stacklevel=3)
    return fitted


def input_names(recording: Recording) -> tuple[str, ...]:
    """Return the channels, or individuals and keypoints, of a recording."""
    data = recording.signals
    if isinstance(data, Signals):
        return data.channels
    if isinstance(data, Poses):
        return tuple(f"{who}/{point}" for who in data.individuals for point in data.keypoints)
    raise MismatchError(f"recording {recording.id!r} has no signals to learn from or predict")
