"""A model that is taught while recordings are labeled: label a little, train, see its predictions, correct them.

`Teacher` computes the features of all recordings once and keeps them on disk. Each training then takes seconds: it fits boosted trees to
the frames that were labeled so far and predicts all recordings. Frames that nobody observed are never used, neither as examples of a
behavior nor of its absence. The result is a model like any other, which can be saved.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from ethobench.core import Annotation, Dataset, Poses, Prediction, Recording
from ethobench.core import intervals as iv
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, NotFittedError
from ethobench.core.ethogram import join_ethograms
from ethobench.core.folds import default_grouping
from ethobench.core.processes import idle_cores, limited_threads
from ethobench.core.progress import Listener, progress_listener, progress_range, report_progress
from ethobench.core.targets import merge_subjects
from ethobench.decoding.decoder import Decoder
from ethobench.features.cache import feature_cache
from ethobench.formats.parse_cache import cache_folder
from ethobench.models.base import Model
from ethobench.models.boost import Boost
from ethobench.models.directed import DirectedExamples, DirectedPrediction
from ethobench.models.discovery import Cluster, Segment, SegmentIndex, View, short_features
from ethobench.models.inputs import input_names
from ethobench.models.registry import create_model
from ethobench.models.review import Candidate, find_candidates, rank_candidates
from ethobench.models.teaching_quality import Quality, measure_quality
from ethobench.models.training_examples import TrainingExamples, prepare_examples

ANNOTATOR = "labels"
SETTINGS: dict[str, Any] = {"rounds": 60, "leaves": 7, "learning_rate": 0.12, "rows": 5000, "class_weight_exponent": 1.0}
"""Hyper-parameters of model `boost`: fast, and balanced classes, since few labels say little about how frequent behaviors are."""
ROW_RATE = 10.0  # rows per second; fewer where the recordings are long
MAX_TOTAL_ROWS = 400_000  # over all recordings, so that features fit on disk and predictions take seconds
MIN_ROW_RATE = 0.5
FALLBACK = "rf"  # where LightGBM is not installed
FALLBACK_SETTINGS: Mapping[str, Any] = {"trees": 50}
SMOOTHING_SHARE = 0.3  # of a typical bout
MAX_SMOOTHING_SECONDS = 1.0
MIN_BOUT_SHARE = 0.5  # of the shorter bouts of a behavior
SHORT_QUANTILE = 0.1
MAX_PREPARED_ANIMALS = 4  # per recording, whose views as subjects are prepared in advance


class TrainingCancelledError(EthobenchError):
    """A training was cancelled."""


class Teacher:
    """Trains on what is labeled so far, predicts all recordings, and suggests what to label next.

    Parameters
    ----------
    data : Dataset
        The recordings. Annotations of the dataset are not used; `fit` takes the labels.
    cache : path, optional
        Folder for features, which are kept from one session to the next. Default: the user's cache folder.
    seed : int
        Random seed.
    row_rate : float, optional
        Frames per second that are used for training and prediction. Default: 10, or fewer where the recordings are long.

    Attributes
    ----------
    model : Model, optional
        The model of the last training.
    predictions : dict of recording id to Prediction
        Of the last training, for all recordings with signals. Bouts have a confidence: the mean probability of their frames.
    quality : Quality, optional
        Held-out quality of the last training; see `evaluate`.
    history : list of Quality
        Of all trainings that were evaluated.
    notes : list of str
        What was left out of the last training, and why.
    n_trainings : int
    unreadable : dict of recording id to str
        Recordings whose signals cannot be read, and why.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/tag", individuals=3, seconds=60)
    >>> teacher = Teacher(data, cache=folder / "features")
    >>> labels = {"animal01": data["animal01"].annotation().mark_unobserved(iv.intervals([500], [1500]))}  # the first 20 s
    >>> teacher.fit(labels).predictions["animal03"].n_frames
    1500
    >>> teacher.evaluate().withheld
    'labels of at least 2 recordings are needed to measure quality on recordings that the model was not trained on'
    >>> [candidate.recording for candidate in teacher.suggest(2)]  # doctest: +SKIP
    ['animal02', 'animal03']
    """

    def __init__(self, data: Dataset, *, cache: str | Path | None = None, seed: int = 0, row_rate: float | None = None) -> None:
        self.data, self.seed = data, seed
        self.cache = Path(cache) if cache is not None else cache_folder() / "features"
        self.model: Model | None = None
        self.predictions: dict[str, Prediction] = {}
        self.quality: Quality | None = None
        self.history: list[Quality] = []
        self.notes: list[str] = []
        self.n_trainings = 0
        self.unreadable: dict[str, str] = {}
        self._labels: dict[str, Annotation] = {}
        self._examples: TrainingExamples | None = None
        self._usable: tuple[Recording, ...] | None = None
        self._indices: dict[bool, SegmentIndex] = {}
        self._clusters: dict[tuple[int, bool], list[Cluster]] = {}
        self._row_rate = row_rate
        self._lock = threading.Lock()

    # Features

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """The recordings with signals or poses; reads them on first access."""
        if self._usable is None:
            self._usable = tuple(recording for recording in self.data if self._has_signals(recording))
        return self._usable

    def _has_signals(self, recording: Recording) -> bool:
        try:
            return recording.signals is not None and len(recording.signals) > 0
        except (EthobenchError, OSError) as error:
            self.unreadable[recording.id] = str(error)
            return False

    @property
    def row_rate(self) -> float:
        """Frames per second that are used for training and prediction."""
        if self._row_rate is None:
            seconds = sum(len(_signals(r)) / _rate(r) for r in self.recordings)
            self._row_rate = float(np.clip(MAX_TOTAL_ROWS / max(seconds, 1e-9), MIN_ROW_RATE, ROW_RATE))
        return self._row_rate

    def prepare(self, progress: Listener | None = None) -> None:
        """Compute the features of all recordings and keep them on disk. Those that are on disk already are not computed again.

        Parameters
        ----------
        progress : callable, optional
            Called with the stage and the fraction that is done. It may raise an error to interrupt; what was computed remains.
        """
        if not self.recordings:
            raise EthobenchError(NO_SIGNALS)
        with _reporting(progress), self._caching():
            views = [View(recording, None, recording) for recording in self.recordings]
            if not self._labels or self._names_subjects(self._labels):
                views += [view for recording in self.recordings for view in _subject_views(recording, self.data)]
            for number, view in enumerate(views):
                report_progress("features", number / len(views))
                with progress_range(number / len(views), (number + 1) / len(views)):
                    self._feature_model(view.example).prepare(_dataset(self.data, [view.example]), Deadline())

    # Training

    def fit(self, annotations: Mapping[str, Annotation], progress: Listener | None = None) -> Self:
        """Fit to the labels so far, and predict all recordings. If it fails, the former model and predictions remain.

        Parameters
        ----------
        annotations : mapping of recording id to Annotation
            The labels. Only observed frames are used.
        progress : callable, optional
            Called with the stage and the fraction that is done. It may raise an error to cancel the training.

        Raises
        ------
        EthobenchError
            If there is nothing to learn from.

        Returns
        -------
        Teacher
            The teacher itself.
        """
        notes: list[str] = []
        with _reporting(progress), self._caching(), _collected_warnings(notes), limited_threads(idle_cores()):
            labels = self._usable_labels(annotations, notes)
            data = self._labeled_dataset(labels)
            examples = prepare_examples(data, None)
            if examples.directed is None and self._names_subjects(labels):
                notes.append(_why_without_subjects(data, labels))
            examples = self._complete_rejections(examples)
            _check_variety(examples)
            model = self._create_model(notes)
            with progress_range(0.0, 0.6):
                model.fit_examples(data, examples)
            model.decoder = fit_duration_decoder(examples.truths)
            with progress_range(0.6, 1.0):
                predictions = self._predict_all(model, notes)
        notes += [str(note) for note in model.fit_report.get("notes", [])]
        self.model, self.predictions, self.notes = model, predictions, list(dict.fromkeys(notes))
        self._labels, self._examples, self.quality = labels, examples, None
        self.n_trainings += 1
        return self

    def evaluate(self, progress: Listener | None = None) -> Quality:
        """Measure the quality on held-out recordings by cross-validation, and whether more labels would help.

        Parameters
        ----------
        progress : callable, optional
            Called with the stage and the fraction that is done. It may raise an error to cancel.
        """
        model, examples = self._fitted()
        with _reporting(progress), self._caching(), _collected_warnings([]), limited_threads(idle_cores()):
            by = default_grouping(examples.data)
            quality = measure_quality(model, examples, by=by, training=self.n_trainings, seed=self.seed)
        self.quality = quality
        self.history.append(quality)
        return quality

    def save(self, path: str | Path) -> None:
        """Save the model of the last training to a new folder, with its held-out scores; see `Model.save`."""
        model, _ = self._fitted()
        if self.quality is not None:
            model.evaluation = self.quality.to_evaluation()
            model.out_of_fold = self.quality.out_of_fold
        model.save(path)

    # Suggestions

    def suggest(
        self, n: int = 10, *, annotations: Mapping[str, Annotation] | None = None, exclude: Sequence[Candidate] = ()
    ) -> list[Candidate]:
        """Return the bouts whose review is expected to improve the model most, best first.

        Parameters
        ----------
        n : int
            Maximum number.
        annotations : mapping of recording id to Annotation, optional
            The labels now, if they changed since the last training. Frames that are observed in them are not suggested.
        exclude : sequence of Candidate
            Bouts that were reviewed already.
        """
        _, examples = self._fitted()
        labels = self._labels if annotations is None else self._usable_labels(annotations, [])
        candidates = [
            candidate
            for recording, prediction in self.predictions.items()
            for candidate in find_candidates(recording, prediction, labels.get(recording))
        ]
        reviewed = {candidate.key for candidate in exclude}
        candidates = [candidate for candidate in candidates if candidate.key not in reviewed]
        with self._caching():
            index = self._index(examples.directed is not None)
            return rank_candidates(candidates, index, examples.truths, n)

    # Discovery

    def find_similar(self, recording: str, start: int, stop: int, n: int = 20, *, subject: str | None = None) -> list[Segment]:
        """Return the segments of all recordings that are most similar to a marked one, nearest first. They do not overlap.

        Parameters
        ----------
        recording : str
        start, stop : int
            The marked frames, half-open.
        n : int
            Maximum number.
        subject : str, optional
            The animal that is compared; results are segments of single animals then. By default all animals together.
        """
        with self._caching():
            return self._index(subject is not None).nearest(recording, start, stop, n, subject=subject)

    def clusters(self, n: int = 12, *, by_subject: bool = False, progress: Listener | None = None) -> list[Cluster]:
        """Group the segments of all recordings into clusters, as candidates for behaviors; largest first.

        Parameters
        ----------
        n : int
            Number of clusters.
        by_subject : bool
            Whether to cluster segments of single animals; by default, all animals together.
        progress : callable, optional
            Called with the stage and the fraction that is done.
        """
        key = n, by_subject
        if key not in self._clusters:
            with _reporting(progress), self._caching():
                self._clusters[key] = self._index(by_subject).cluster(n, seed=self.seed)
        return self._clusters[key]

    # Internals

    def _fitted(self) -> tuple[Model, TrainingExamples]:
        if self.model is None or self._examples is None:
            raise NotFittedError("the teacher is not trained yet: label some bouts and train it first")
        return self.model, self._examples

    @contextmanager
    def _caching(self) -> Iterator[None]:
        with feature_cache(self.cache):
            yield

    def _feature_model(self, example: Recording) -> Boost:
        return Boost(seed=self.seed, row_rate=self.row_rate).unfitted(_dataset(self.data, [example]))

    def _usable_labels(self, annotations: Mapping[str, Annotation], notes: list[str]) -> dict[str, Annotation]:
        """Return the labels with observed frames, on the clock of the signals; note what cannot be used."""
        if not self.recordings:
            raise EthobenchError(NO_SIGNALS)
        by_id = {recording.id: recording for recording in self.recordings}
        labels: dict[str, Annotation] = {}
        for name, annotation in annotations.items():
            if not iv.total(annotation.observed.of_any()):
                continue
            if name not in by_id:
                notes.append(f"labels of {name!r} are not used: it has no poses or signals")
                continue
            n_frames = len(_signals(by_id[name]))
            cropped = annotation.crop(0, n_frames) if annotation.n_frames > n_frames else annotation
            labels[name] = cropped.extend(n_frames)
        return labels

    def _labeled_dataset(self, labels: Mapping[str, Annotation]) -> Dataset:
        """Return the labeled recordings, without those whose inputs differ from the others."""
        if not labels:
            raise EthobenchError("nothing is labeled yet: mark some bouts, and watch some time without them")
        ethogram = join_ethograms([self.data.ethogram, *(annotation.ethogram for annotation in labels.values())])
        labeled = [recording for recording in self.recordings if recording.id in labels]
        inputs = [input_names(recording) for recording in labeled]
        common = max(inputs, key=inputs.count)
        usable = [r for r, names in zip(labeled, inputs, strict=True) if {*common} <= {*names}]
        for recording in labeled:
            if recording not in usable:
                warnings.warn(f"labels of {recording.id!r} are not used: its inputs differ from those of the others", stacklevel=2)
        named = [r.copy(annotations={ANNOTATOR: labels[r.id].with_ethogram(ethogram)}) for r in usable]
        named.sort(key=lambda r: input_names(r) != common)
        return replace(_dataset(self.data, named), ethogram=ethogram)

    def _create_model(self, notes: list[str]) -> Model:
        if find_spec("lightgbm") is None:
            notes.append("LightGBM is not installed, so a slower and weaker random forest is used: pip install 'ethobench[boost]'")
            return create_model(FALLBACK, seed=self.seed, **FALLBACK_SETTINGS)
        return create_model("boost", seed=self.seed, row_rate=self.row_rate, **SETTINGS)

    def _predict_all(self, model: Model, notes: list[str]) -> dict[str, Prediction]:
        predictions: dict[str, Prediction] = {}
        for number, recording in enumerate(self.recordings):
            report_progress("predictions", number / len(self.recordings))
            try:
                predictions[recording.id] = model.predict(model.adapt(recording, self.data.keypoints))
            except TrainingCancelledError:
                raise
            except EthobenchError as error:
                notes.append(f"{recording.id!r} cannot be predicted: {error}")
        if not predictions:
            raise EthobenchError(f"no recording can be predicted: {notes[-1]}")
        report_progress("predictions", 1.0)
        return predictions

    def _complete_rejections(self, examples: TrainingExamples) -> TrainingExamples:
        """Give frames in which a reviewer rejected a behavior the most probable other one, where behaviors exclude each other.

        A reviewer who rejects a bout says what the animal does not do. One classifier of exclusive behaviors cannot be told that
        directly, so such frames count as the behavior (or none) that the last model finds most probable among the others.
        """
        if not examples.exclusive:
            return examples
        truths = dict(examples.truths)
        for name, truth in truths.items():
            prediction = self._prediction_of_view(name)
            if truth.observed.tracks and prediction is not None and prediction.ethogram.names == truth.ethogram.names:
                truths[name] = complete_rejections(truth, prediction)
        return replace(examples, truths=truths)

    def _prediction_of_view(self, view: str) -> Prediction | None:
        """Return the last prediction of an example, which is a recording or a view of it as one subject and target."""
        for name, prediction in self.predictions.items():
            if name == view:
                return prediction
            if isinstance(prediction, DirectedPrediction) and view.startswith(f"{name}|"):
                for actors, of_actors in prediction.by_actors.items():
                    if view == f"{name}|{'>'.join(animal for animal in actors if animal)}":
                        return of_actors
        return None

    def _names_subjects(self, labels: Mapping[str, Annotation]) -> bool:
        return any((annotation.subject >= 0).any() for annotation in labels.values())

    def _index(self, by_subject: bool) -> SegmentIndex:
        """Return the index of all recordings, or of all animals in them."""
        with self._lock:
            if by_subject not in self._indices:
                self._indices[by_subject] = self._build_index(by_subject)
            return self._indices[by_subject]

    def _build_index(self, by_subject: bool) -> SegmentIndex:
        if not self.recordings:
            raise EthobenchError(NO_SIGNALS)
        views = [View(r, None, r) for r in self.recordings]
        if by_subject:
            views = [view for r in self.recordings for view in _subject_views(r, self.data, limit=None)]
        if not views:
            raise EthobenchError("segments of single animals need poses of several animals")
        inputs = [input_names(view.example) for view in views]
        common = max(inputs, key=inputs.count)
        views = [view for view, names in zip(views, inputs, strict=True) if names == common]
        features, steps = [], []
        for number, view in enumerate(views):
            report_progress("features", number / len(views))
            model = self._feature_model(view.example)
            features.append(model.recording_features(view.example))
            steps.append(model.row_step(_rate(view.recording)))
        columns = short_features(self._feature_model(views[0].example).feature_names(views[0].example))
        return SegmentIndex.build(views, features, steps, columns=columns, seed=self.seed)


NO_SIGNALS = "the teacher needs poses, signals or features, and no recording has any; `ethobench embed` computes features of videos"


def complete_rejections(truth: Annotation, prediction: Prediction) -> Annotation:
    """Return an annotation in which frames observed for some behaviors only have the most probable of the other behaviors.

    Parameters
    ----------
    truth : Annotation
        Exclusive behaviors. A frame that is observed for a behavior, and has no bout of it, does not show that behavior.
    prediction : Prediction
        Of the same frames.

    Returns
    -------
    Annotation
        Without subjects. Equal to `truth` where all behaviors were observed.
    """
    merged = merge_subjects(truth)
    codes, ethogram = merged.to_codes(), merged.ethogram
    excluded = np.zeros((merged.n_frames, len(ethogram) + (ethogram.background is None)), dtype=bool)
    for code, behavior in enumerate(ethogram):
        excluded[:, code] = iv.to_mask(merged.observed.of(behavior.name), merged.n_frames)
    open_frames = np.flatnonzero((codes < 0) & excluded.any(axis=1) & prediction.predictable[: merged.n_frames])
    if not open_frames.size:
        return truth
    probabilities = np.zeros(excluded.shape, dtype=np.float64)
    values = prediction.probabilities[: merged.n_frames]
    probabilities[: len(values), : values.shape[1]] = values
    allowed = np.where(excluded, -1.0, probabilities)
    codes[open_frames] = allowed[open_frames].argmax(axis=1)
    return Annotation.from_frames(codes, ethogram, merged.rate, unobserved=-1)


def fit_duration_decoder(truths: Mapping[str, Annotation]) -> Decoder:
    """Return a decoder that smooths probabilities over a share of a typical bout, and removes bouts shorter than the labeled ones.

    Parameters
    ----------
    truths : mapping of recording id to Annotation
        The labels. Bouts that were only partly observed count with their observed duration.
    """
    durations: dict[str, list[float]] = {}
    for truth in truths.values():
        for code, behavior in enumerate(truth.ethogram):
            spans = truth.spans(code)
            if code != truth.ethogram.background and not behavior.point and len(spans.start):
                durations.setdefault(behavior.name, []).extend(((spans.stop - spans.start) / truth.rate).tolist())
    if not durations:
        return Decoder()
    typical = float(np.exp(np.mean([np.log(max(np.median(seconds), 1e-3)) for seconds in durations.values()])))
    shortest = {name: MIN_BOUT_SHARE * float(np.quantile(seconds, SHORT_QUANTILE)) for name, seconds in durations.items()}
    return Decoder(
        smoothing="mean",
        smoothing_seconds=min(SMOOTHING_SHARE * typical, MAX_SMOOTHING_SECONDS),
        min_gap_seconds=shortest,
        min_bout_seconds=shortest,
    )


def _check_variety(examples: TrainingExamples) -> None:
    """Refuse labels from which no behavior can be distinguished from another, or from its absence."""
    labeled: set[str] = set()
    without = False
    for truth in examples.truths.values():
        merged = truth.without_subjects()
        states = merged.stop > merged.start
        labeled |= {merged.ethogram[int(code)].name for code in np.unique(merged.behavior[states])}
        bouts = iv.union(iv.Intervals(merged.start[states], merged.stop[states]))
        without = without or iv.total(iv.difference(merged.observed.of_any(), bouts)) > 0
    if not labeled:
        raise EthobenchError("no bout is labeled yet: mark at least one bout")
    if len(labeled) < 2 and not without:
        raise EthobenchError(
            f"only {labeled.pop()!r} is labeled, and no time without it: watch some time without it, or mark another behavior"
        )


def _why_without_subjects(data: Dataset, labels: Mapping[str, Annotation]) -> str:
    """Return why the subjects of bouts are not used."""
    if not all(isinstance(recording.signals, Poses) for recording in data):
        return "subjects are not predicted: the signals do not say which animal is which"
    if any((a.subject[a.behavior != (-1 if a.ethogram.background is None else a.ethogram.background)] < 0).any() for a in labels.values()):
        return "subjects are not predicted: some bouts name a subject and others do not"
    return "subjects are not predicted: the poses do not have the animals that bouts name"


def _subject_views(recording: Recording, data: Dataset, limit: int | None = MAX_PREPARED_ANIMALS) -> list[View]:
    """Return a view of a recording for each animal as the subject; none for a single animal or a tag."""
    poses = recording.signals
    if not isinstance(poses, Poses) or len(poses.individuals) < 2 or (limit is not None and len(poses.individuals) > limit):
        return []
    directed = DirectedExamples(())
    return [View(recording, subject, directed.view(recording, (subject, target))) for subject, target in directed.actors(recording)]


def _dataset(data: Dataset, recordings: Sequence[Recording]) -> Dataset:
    return replace(data, recordings=tuple(recordings), folds={}, splits={})


def _signals(recording: Recording) -> Any:
    return recording.signals


def _rate(recording: Recording) -> float:
    return float(recording.rate or 1.0)


@contextmanager
def _reporting(progress: Listener | None) -> Iterator[None]:
    if progress is None:
        yield
    else:
        with progress_listener(progress):
            yield


@contextmanager
def _collected_warnings(notes: list[str]) -> Iterator[None]:
    """Add warnings to notes instead of printing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
