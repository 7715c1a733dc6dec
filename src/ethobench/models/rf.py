"""A random forest on window statistics: fast, robust, and hard to get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.features.channels import channels_of
from ethobench.features.windows import window_features
from ethobench.models._base import Model, register_model

FOREST = "forest.skops"
TRUSTED = ("numpy.dtype", "sklearn.tree._tree.Tree")


@dataclass(frozen=True)
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    trees : int
    seconds : tuple of float
        Lengths of the windows.
    max_samples : float
        Share of the frames that each tree sees.
    min_leaf : int
        Fewest frames in a leaf.
    most_frames : int
        Frames to learn from, drawn evenly; more add little.
    """

    trees: int = 100
    seconds: tuple[float, ...] = (0.5, 2.0)
    max_samples: float = 0.1
    min_leaf: int = 5
    most_frames: int = 200_000


@register_model
class RandomForest(Model):
    """Trees with balanced classes on the signals' window statistics."""

    title = "random forest on window statistics of signals or poses"
    Params = Params

    def _features(self, recording: Recording) -> NDArray[np.float32]:
        rate = float(recording.rate or self.rate or 1.0)
        values, names = channels_of(recording.signals, rate)
        features, _ = window_features(values, names, rate, self.params.seconds)
        return features.astype(np.float32)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        from sklearn.ensemble import RandomForestClassifier

        rows, labels = [], []
        generator = np.random.default_rng(self.seed)
        known = sum(r.n_frames or 0 for r in data)
        share = min(1.0, self.params.most_frames / max(known, 1))
        for recording in data:
            codes = truths[recording.id].without_subjects().to_codes()
            features = self._features(recording)
            n = min(len(features), len(codes))
            keep = (codes[:n] >= 0) & (generator.random(n) < share)
            rows.append(features[:n][keep])
            labels.append(codes[:n][keep])
        x, y = np.concatenate(rows), np.concatenate(labels)
        if not len(y):
            raise EthobenchError("there is nothing to learn from: no frame was observed")
        self.forest = RandomForestClassifier(
            self.params.trees,
            max_samples=self.params.max_samples if len(y) * self.params.max_samples >= 1000 else None,
            min_samples_leaf=self.params.min_leaf,
            class_weight="balanced",
            random_state=self.seed,
            n_jobs=1,
        ).fit(x, y)

    def _predict(self, recording: Recording) -> Prediction:
        if self.ethogram is None:
            raise EthobenchError("this model has not learnt anything yet")
        found = self.forest.predict_proba(self._features(recording))
        size = len(self.ethogram) + (self.ethogram.background is None)
        probabilities = np.zeros((len(found), size), dtype=np.float32)
        probabilities[:, self.forest.classes_] = found
        return Prediction(probabilities, self.ethogram, float(recording.rate or self.rate or 1.0), exclusive=True)

    def _save(self, folder: Path) -> None:
        import skops.io

        skops.io.dump(self.forest, folder / FOREST)

    def _load(self, folder: Path) -> None:
        import skops.io

        unknown = [name for name in skops.io.get_untrusted_types(file=folder / FOREST) if name not in TRUSTED]
        if unknown:
            raise FormatError(folder / FOREST, f"refused: it holds {', '.join(unknown)}")
        self.forest = skops.io.load(folder / FOREST, trusted=list(TRUSTED))
