"""Classifiers of single frames, as in BEBE: a random forest, a decision tree or a linear SVM on window statistics or wavelets.

Hoffman et al. (2024), "A benchmark for computational analysis of animal behavior, using animal-borne tags", use window statistics after
Nathan et al. (2012), here called Nathan features, and wavelets. Poses get window statistics of pose features instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ethobench.core import Annotation, Dataset, Poses, Prediction, Recording, Signals
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.processes import thread_count
from ethobench.core.signals import Keypoint
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.features.body import estimate_scene
from ethobench.features.nathan import half_window, nathan_context, nathan_features
from ethobench.features.pose import pose_context, windowed_pose_features
from ethobench.features.wavelets import wavelet_features
from ethobench.models.base import Model
from ethobench.models.estimator_files import read_estimator, restore_estimator
from ethobench.models.hyperparameters import Count, hyperparameters
from ethobench.models.inputs import keypoints_from_json, keypoints_to_json, select_inputs
from ethobench.models.linear_svm import fit_linear_svm, fit_linear_svm_with_liblinear, one_against_rest, overlapping_classes
from ethobench.models.registry import register_model

Features = NDArray[np.float32]
ESTIMATOR = "estimator.skops"
BLOCK_FRAMES = 200_000  # frames whose features are in memory at a time
POSE_WINDOWS = (0.5, 1.0)  # lengths of the windows of pose features, as shares of `seconds`
POSE_ROWS_PER_SECOND = 10.0  # frames of poses used for training
NATHAN_GRID = {"seconds": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0), "cutoff": (0.1, 0.4, 1.6, 6.4)}
WAVELET_GRID = {"omega": (5.0, 10.0, 20.0), "longest": (1.0, 10.0, 100.0, 1000.0)}


class FrameClassifier(Model):
    """Classifies each frame from its features with an estimator of scikit-learn.

    Subclasses implement `compute_features` and `make_estimator`. Long recordings are processed in blocks with enough context that the
    features are the same as those of the entire recording.
    """

    estimator: Any
    keypoints: Mapping[str, Keypoint]

    def compute_features(self, data: Signals | Poses, rate: float, baseline: Any) -> Features:
        """Return the features of each frame (n_frames, n_features); `baseline` is that of the entire recording."""
        raise NotImplementedError

    def training_stride(self, data: Signals | Poses, rate: float) -> int:
        """Return which frames are used for training: all (1), every second (2), ..."""
        return 1

    def make_estimator(self) -> Any:
        """Return an unfitted estimator."""
        raise NotImplementedError

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = data.keypoints
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        rows, targets = [], []
        for recording in data:
            target = targets_of(truths[recording.id])
            observed = target != UNOBSERVED if self.exclusive else (target != UNOBSERVED).all(axis=1)
            signals, rate = select_inputs(recording, self.inputs), self.rate_of(recording)
            features = self.compute_features(signals, rate, self._baseline_of(recording))
            frames = np.flatnonzero(observed[: len(features)])[:: self.training_stride(signals, rate)]
            rows.append(features[frames])
            targets.append(target[frames])
        x, y = np.concatenate(rows), np.concatenate(targets)
        del rows, features
        if not len(y):
            raise EthobenchError("cannot fit a model: no frame is observed")
        self._fit_estimator(x, y)

    def _fit_estimator(self, x: Features, y: NDArray[Any]) -> None:
        """Fit the estimator; features that are missing in all rows become 0."""
        x[:, np.isnan(x).all(axis=0)] = 0
        self.estimator = self.make_estimator().fit(x, y)

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        data, rate = select_inputs(recording, self.inputs), self.rate_of(recording)
        probabilities = np.zeros((len(data), self.n_outputs), dtype=np.float32)
        for start, stop, features in self._feature_blocks(data, rate, baseline):
            probabilities[start:stop] = self._probabilities(features)
        return Prediction(probabilities, self.check_is_fitted(), rate, exclusive=self.exclusive)

    def _feature_blocks(self, data: Signals | Poses, rate: float, baseline: Any) -> Iterator[tuple[int, int, Features]]:
        """Yield first frame, last frame (exclusive) and features of one block at a time."""
        context = self.context(rate)
        if context is None or len(data) <= BLOCK_FRAMES + 2 * context:
            features = self.compute_features(data, rate, baseline)
            for start in range(0, len(data), BLOCK_FRAMES):
                yield start, min(start + BLOCK_FRAMES, len(data)), features[start : start + BLOCK_FRAMES]
            return
        for start in range(0, len(data), BLOCK_FRAMES):
            stop, first = min(start + BLOCK_FRAMES, len(data)), max(start - context, 0)
            features = self.compute_features(data[first : stop + context], rate, baseline)
            yield start, stop, features[start - first : stop - first]

    def _probabilities(self, features: Features) -> Features:
        """Return the probabilities of each behavior (n_rows, n_outputs)."""
        if features.shape[1] != self.estimator.n_features_in_:
            raise MismatchError(f"the model needs {self.estimator.n_features_in_} features, but these signals have {features.shape[1]}")
        by_class = self._predict_classes(features)
        if not self.exclusive:
            return np.stack([self._probability_of(k, columns) for k, columns in enumerate(by_class)], axis=1).astype(np.float32)
        probabilities = np.zeros((len(features), self.n_outputs), dtype=np.float32)
        probabilities[:, self.estimator.classes_] = by_class
        return probabilities

    def _probability_of(self, behavior: int, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the probability of one of several overlapping behaviors; one that never varied in training stays constant."""
        return columns[:, -1] if columns.shape[1] > 1 else np.full(len(columns), float(self.estimator.classes_[behavior][0]))

    def _predict_classes(self, features: Features) -> Any:
        """Return the probabilities of the classes of the estimator; a list of arrays where behaviors overlap."""
        return self.estimator.predict_proba(features)

    def _save(self, folder: Path) -> None:
        from ethobench.models.skops_files import skops_io

        self.estimator.exclusive_ = self.exclusive
        self.estimator.keypoints_ = keypoints_to_json(self.keypoints)
        skops_io.dump(self.estimator, folder / ESTIMATOR)

    def _load(self, folder: Path) -> None:
        loaded = read_estimator(folder / ESTIMATOR)
        try:
            self.exclusive, self.keypoints = bool(loaded.exclusive_), keypoints_from_json(loaded.keypoints_)
            self.estimator = restore_estimator(self.make_estimator(), loaded, self.n_outputs, exclusive=self.exclusive)
        except (ValueError, TypeError, AttributeError) as error:
            raise FormatError(folder / ESTIMATOR, f"refused: {error}") from None


# Features


@hyperparameters
class NathanParams:
    """Hyper-parameters of Nathan features.

    Attributes
    ----------
    seconds : float
        Length of the window.
    cutoff : float
        Cutoff frequency in Hz between static and dynamic acceleration (tags). 0 for accelerations without gravity.
    exact : bool
        Whether to reproduce the errors of BEBE's code (tags).
    """

    seconds: float = 2.0
    cutoff: float = 1.6
    exact: bool = True


class NathanModel(FrameClassifier):
    """Classifies each frame from statistics of the window around it."""

    Params = NathanParams
    grid = NATHAN_GRID

    def compute_features(self, data: Signals | Poses, rate: float, baseline: Any) -> Features:
        """Return Nathan features of a tag, or pose features and their window statistics."""
        seconds, cutoff = self.params.seconds, self.params.cutoff
        if isinstance(data, Poses):
            lengths = [share * seconds for share in POSE_WINDOWS]
            return windowed_pose_features(data, rate, lengths, keypoints=self.keypoints, scene=baseline)[0]
        features, _ = nathan_features(
            data.values, data.channels, rate, seconds, cutoff, exact=self.params.exact, dynamic_only=cutoff == 0, dtype=np.float32
        )
        return np.asarray(features, dtype=np.float32)

    def training_stride(self, data: Signals | Poses, rate: float) -> int:
        """Return 1 for tags, as published; for poses about ten frames per second are used, since neighboring frames hardly differ."""
        return max(1, round(rate / POSE_ROWS_PER_SECOND)) if isinstance(data, Poses) else 1

    def _baseline_of(self, recording: Recording) -> Any:
        """Return the scene of poses: the length of the animals and the bounds of the arena."""
        data = select_inputs(recording, self.inputs)
        return estimate_scene(data, keypoints=self.keypoints) if isinstance(data, Poses) else None

    def context(self, rate: float) -> int:
        """Return how many frames before and after a block influence its features."""
        half = half_window(self.params.seconds, rate)
        return pose_context(rate) + (half if self.params.cutoff == 0 else nathan_context(self.params.seconds, rate, self.params.cutoff))


@hyperparameters
class WaveletParams:
    """Hyper-parameters of wavelet features.

    Attributes
    ----------
    omega : float
        Number of oscillations of a wavelet, approximately.
    longest : float
        Longest wavelength in seconds.
    """

    omega: float = 5.0
    longest: float = 10.0


class WaveletModel(FrameClassifier):
    """Classifies each frame from the amplitudes of wavelets; channels are standardized over the entire recording."""

    Params = WaveletParams
    grid = WAVELET_GRID

    def compute_features(self, data: Signals | Poses, rate: float, baseline: Any) -> Features:
        """Return the amplitudes of the wavelets."""
        signals = data if isinstance(data, Signals) else data.to_signals()
        features, _ = wavelet_features(signals.values, signals.channels, rate, self.params.omega, self.params.longest, dtype=np.float32)
        return np.asarray(features, dtype=np.float32)


# Estimators


@hyperparameters
class ForestParams:
    """Hyper-parameters of a random forest.

    Attributes
    ----------
    trees : int
        Number of trees.
    max_samples : float
        Share of the frames that each tree is fitted to.
    """

    trees: Count = 100
    max_samples: Annotated[float, Field(gt=0, le=1)] = 0.1


class ForestModel(FrameClassifier):
    """A random forest with balanced classes."""

    def make_estimator(self) -> Any:
        """Return an unfitted random forest."""
        from sklearn.ensemble import RandomForestClassifier

        params = self.params
        return RandomForestClassifier(
            params.trees, max_samples=params.max_samples, class_weight="balanced", random_state=self.seed, n_jobs=thread_count()
        )


class TreeModel(FrameClassifier):
    """A decision tree with balanced classes."""

    def make_estimator(self) -> Any:
        """Return an unfitted decision tree."""
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(class_weight="balanced", random_state=self.seed)


@hyperparameters
class SvmParams:
    """Hyper-parameters of a linear SVM.

    Attributes
    ----------
    solver : {"newton", "liblinear"}
        ``newton`` converges in seconds. ``liblinear``, as published, takes minutes and may stop before it converges, since the features
        are not scaled.
    iterations : int
        Maximum number of iterations.
    """

    solver: Literal["newton", "liblinear"] = "newton"
    iterations: Count = 1000


class SvmModel(FrameClassifier):
    """A linear SVM, one against the rest. Its probabilities are softmax or sigmoid of the decision values, not calibrated."""

    revision: ClassVar[int] = 3

    def make_estimator(self) -> Any:
        """Return an unfitted estimator, which holds the coefficients."""
        from sklearn.svm import LinearSVC

        return LinearSVC(dual=False, max_iter=self.params.iterations, class_weight="balanced")

    def _fit_estimator(self, x: Features, y: NDArray[Any]) -> None:
        present = ~np.isnan(x)
        means = np.where(present, x, 0).sum(axis=0, dtype=np.float64) / np.maximum(present.sum(axis=0), 1)
        self.estimator = estimator = self.make_estimator()
        estimator.means_, estimator.n_features_in_ = means, x.shape[1]
        estimator.classes_ = np.unique(y) if self.exclusive else np.arange(y.shape[1])
        positive, costs = one_against_rest(y, estimator.classes_) if self.exclusive else overlapping_classes(y)
        fit = fit_linear_svm if self.params.solver == "newton" else fit_linear_svm_with_liblinear
        estimator.coef_, estimator.intercept_ = fit(_impute(x, means), positive, costs, estimator.max_iter)

    def _predict_classes(self, features: Features) -> Any:
        estimator = self.estimator
        decision = _impute(features, estimator.means_) @ estimator.coef_.T + estimator.intercept_
        if not self.exclusive:
            return [np.stack([1 - p, p], axis=1) for p in (1 / (1 + np.exp(-np.clip(decision, -50, 50)))).T]
        if len(estimator.classes_) == 2:
            decision = np.concatenate([-decision, decision], axis=1) / 2
        exponentials = np.exp(decision - decision.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)


def _impute(features: Features, means: NDArray[np.floating]) -> Features:
    """Replace missing features by the means of the training data."""
    missing = np.isnan(features)
    return np.where(missing, means.astype(np.float32), features) if missing.any() else features


# The six models


@hyperparameters
class NathanForestParams(ForestParams, NathanParams):
    """Hyper-parameters of the forest and of the features."""


@register_model("rf")
class NathanForest(ForestModel, NathanModel):
    """A random forest on window statistics."""

    title = "random forest on window statistics (BEBE); poses too"
    Params = NathanForestParams
    revision = 3


@register_model("dt")
class NathanTree(TreeModel, NathanModel):
    """A decision tree on window statistics."""

    title = "decision tree on window statistics (BEBE)"


@hyperparameters
class NathanSvmParams(SvmParams, NathanParams):
    """Hyper-parameters of the SVM and of the features."""


@register_model("svm")
class NathanSvm(SvmModel, NathanModel):
    """A linear SVM on window statistics."""

    title = "linear support vector machine on window statistics (BEBE)"
    Params = NathanSvmParams


@hyperparameters
class WaveletForestParams(ForestParams, WaveletParams):
    """Hyper-parameters of the forest and of the features."""


@register_model("wavelet_rf")
class WaveletForest(ForestModel, WaveletModel):
    """A random forest on wavelets."""

    title = "random forest on wavelets (BEBE)"
    Params = WaveletForestParams


@register_model("wavelet_dt")
class WaveletTree(TreeModel, WaveletModel):
    """A decision tree on wavelets."""

    title = "decision tree on wavelets (BEBE)"


@hyperparameters
class WaveletSvmParams(SvmParams, WaveletParams):
    """Hyper-parameters of the SVM and of the features."""


@register_model("wavelet_svm")
class WaveletSvm(SvmModel, WaveletModel):
    """A linear SVM on wavelets."""

    title = "linear support vector machine on wavelets (BEBE)"
    Params = WaveletSvmParams
