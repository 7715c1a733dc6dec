"""What models share that learn each frame on its own: features in, one estimator of scikit-learn, probabilities out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Poses, Prediction, Recording, Signals
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.processes import usable_cores
from ethobench.core.signals import Keypoint
from ethobench.models.base import Model
from ethobench.models.inputs import known_signals, stated_keypoints

ESTIMATOR = "estimator.skops"
BLOCK = 200_000
Features = NDArray[np.float32]


class FrameModel(Model):
    """Learns frame by frame.

    Subclasses write `features_of` and `make_estimator`; features are computed and predicted a block at a time, with so much
    context that blocks do not show.
    """

    estimator: Any
    keypoints: Mapping[str, Keypoint]

    def features_of(self, data: Signals | Poses, rate: float, usual: Any = None) -> Features:
        """Return one row of features for each frame; `usual` is what `usual_of` the whole recording told."""
        raise NotImplementedError

    def usual_of(self, data: Signals | Poses) -> Any:
        """Return what features of a stretch must know of the whole recording, if anything."""
        return None

    def every(self, data: Signals | Poses, rate: float) -> int:
        """Return which frames are learnt: all (1), every second (2), ..."""
        return 1

    def make_estimator(self) -> Any:
        """Make what learns."""
        raise NotImplementedError

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = data.keypoints
        merged = {name: truth.without_subjects() for name, truth in truths.items()}
        rows, targets = [], []
        for recording in data:
            target, known = _targets(merged[recording.id], self.exclusive)
            signals = known_signals(recording, self.inputs)
            features = self.features_of(signals, self.rate_of(recording), self.usual_of(signals))
            places = np.flatnonzero(known[: len(features)])[:: self.every(signals, self.rate_of(recording))]
            rows.append(features[places])
            targets.append(target[places])
        x, y = np.concatenate(rows), np.concatenate(targets)
        del rows, features
        if not len(y):
            raise EthobenchError("there is nothing to learn from: no frame was observed")
        self._learn(x, y)

    def _learn(self, x: Features, y: NDArray[Any]) -> None:
        """Fit the estimator; features that are missing throughout teach nothing and are 0."""
        x[:, np.isnan(x).all(axis=0)] = 0
        self.estimator = self.make_estimator().fit(x, y)

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram, data, rate = self.check_is_fitted(), known_signals(recording, self.inputs), self.rate_of(recording)
        size = self.n_outputs
        probabilities = np.zeros((len(data), size), dtype=np.float32)
        for start, stop, features in self._blocks(data, rate, baseline):
            probabilities[start:stop] = self._probabilities(features, size)
        return Prediction(probabilities, ethogram, rate, exclusive=self.exclusive)

    def _baseline_of(self, recording: Recording) -> Any:
        return self.usual_of(known_signals(recording, self.inputs))

    def _blocks(self, data: Signals | Poses, rate: float, usual: Any) -> Any:
        """Yield the features of a few frames at a time."""
        context = self.context(rate)
        if context is None or len(data) <= BLOCK + 2 * context:
            features = self.features_of(data, rate, usual)
            for start in range(0, len(data), BLOCK):
                yield start, min(start + BLOCK, len(data)), features[start : start + BLOCK]
            return
        for start in range(0, len(data), BLOCK):
            stop, first = min(start + BLOCK, len(data)), max(start - context, 0)
            features = self.features_of(data[first : stop + context], rate, usual)
            yield start, stop, features[start - first : stop - first]

    def _probabilities(self, features: Features, size: int) -> Features:
        if features.shape[1] != self.estimator.n_features_in_:
            raise MismatchError(f"the model takes {self.estimator.n_features_in_} features, and these signals give {features.shape[1]}")
        found = self._score(features)
        if not self.exclusive:
            return np.stack([self._chance_of(k, part) for k, part in enumerate(found)], axis=1).astype(np.float32)
        probabilities = np.zeros((len(features), size), dtype=np.float32)
        probabilities[:, self.estimator.classes_] = found
        return probabilities

    def _chance_of(self, behavior: int, found: NDArray[Any]) -> NDArray[Any]:
        """Return how probable a behavior is; one that was always the same in training stays so."""
        return found[:, -1] if found.shape[1] > 1 else np.full(len(found), float(self.estimator.classes_[behavior][0]))

    def _score(self, features: Features) -> Any:
        """Return probabilities of the classes learnt."""
        return self.estimator.predict_proba(features)

    def _save(self, folder: Path) -> None:
        import skops.io

        self.estimator.exclusive_ = self.exclusive
        self.estimator.keypoints_ = {name: [point.role, point.mirror] for name, point in self.keypoints.items()}
        skops.io.dump(self.estimator, folder / ESTIMATOR)

    def _load(self, folder: Path) -> None:
        from ethobench.models.estimator_files import read_estimator, restore

        loaded = read_estimator(folder / ESTIMATOR)
        try:
            self.exclusive, self.keypoints = bool(loaded.exclusive_), stated_keypoints(loaded.keypoints_)
            self.estimator = restore(self.make_estimator(), loaded, self.n_outputs, exclusive=self.exclusive)
        except EthobenchError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise FormatError(folder / ESTIMATOR, f"refused: {error}") from None


def cores() -> int:
    """Return how many cores this process may use; workers of a run are told to share them."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdigit() and int(told) else usable_cores()


def filled(features: Features, means: NDArray[np.floating]) -> Features:
    """Put the training's means where features are missing, for estimators that cannot do without."""
    gaps = np.isnan(features)
    return np.where(gaps, means.astype(np.float32), features) if gaps.any() else features


def _targets(truth: Annotation, exclusive: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return what to learn of each frame, and which frames are known for all behaviors."""
    if exclusive:
        codes = truth.to_codes()
        return codes, codes >= 0
    from ethobench.core import intervals as iv

    known = np.ones(truth.n_frames, dtype=bool)
    for behavior in truth.ethogram:
        known &= iv.to_mask(truth.observed.of(behavior.name), truth.n_frames)
    return truth.to_frames().astype(np.int8), known
