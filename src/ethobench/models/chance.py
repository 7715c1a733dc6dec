"""Model `chance`: baselines that do not use the input, for comparison."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import read_json
from ethobench.models.base import Model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.registry import register_model

Kind = Literal["majority", "random", "renewal"]
STATE = "chance.json"


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    kind : {"renewal", "majority", "random"}
        ``majority``: always the most frequent behavior. ``random``: a random behavior in each frame, by frequency.
        ``renewal``: random bouts, with the frequencies and durations of the training bouts.
    """

    kind: Kind = "renewal"


@register_model("chance")
class Chance(Model):
    """Random annotations with the frequencies, or the bouts, of the training data."""

    title = "chance: the most frequent behavior, random frames, or random bouts"
    Params = Params
    grid = {"kind": get_args(Kind)}  # noqa: RUF012
    needs_signals = False

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        size = len(data.ethogram) + (data.ethogram.background is None)
        self.seconds = np.zeros(size)
        self.lengths: list[list[float]] = [[] for _ in range(size)]
        for truth in truths.values():
            merged = truth.without_subjects()
            if not merged.is_exclusive:
                raise EthobenchError("model 'chance' cannot be fitted to behaviors that overlap")
            bouts = Annotation.from_frames(merged.to_codes(), _with_background(data.ethogram), truth.rate, unobserved=-1)
            for code, start, stop in zip(bouts.behavior, bouts.start, bouts.stop, strict=True):
                self.seconds[code] += (stop - start) / truth.rate
                self.lengths[code].append(float((stop - start) / truth.rate))
        if not self.seconds.sum():
            raise EthobenchError("cannot fit a model: no frame is observed")

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        if recording.n_frames is None or recording.rate is None:
            raise EthobenchError(f"recording {recording.id!r} has no length or no rate")
        generator = np.random.default_rng([self.seed, zlib.crc32(recording.id.encode())])
        shares = self.seconds / self.seconds.sum()
        n, size = recording.n_frames, len(shares)
        if self.params.kind == "majority":
            codes = np.full(n, int(np.argmax(shares)))
        elif self.params.kind == "random":
            codes = generator.choice(size, n, p=shares)
        else:
            codes = self._draw_bouts(generator, n, recording.rate)
        probabilities = np.tile(shares, (n, 1))
        annotation = Annotation.from_frames(codes, ethogram, recording.rate)
        return Prediction(probabilities, ethogram, recording.rate, annotation=annotation, exclusive=True)

    def _draw_bouts(self, generator: np.random.Generator, n: int, rate: float) -> np.ndarray:
        counts = np.array([len(lengths) for lengths in self.lengths], dtype=float)
        bouts, filled = [], 0
        while filled < n:
            code = int(generator.choice(len(counts), p=counts / counts.sum()))
            length = max(1, round(float(generator.choice(self.lengths[code])) * rate))
            bouts.append(np.full(length, code))
            filled += length
        return np.concatenate(bouts)[:n] if bouts else np.zeros(0, dtype=np.int64)

    def _save(self, folder: Path) -> None:
        (folder / STATE).write_text(json.dumps({"seconds": self.seconds.tolist(), "lengths": self.lengths}), encoding="utf-8")

    def _load(self, folder: Path) -> None:
        state = read_json(folder / STATE)
        try:
            self.seconds = np.array(state["seconds"], dtype=float)
            self.lengths = [[float(length) for length in lengths] for lengths in state["lengths"]]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(folder / STATE, f"the state of the model is damaged ({error})") from None
        if self.seed < 0:
            raise FormatError(folder, f"`seed` must be >= 0, got {self.seed}")
        if self.ethogram is None or not len(self.seconds) == len(self.lengths) == len(_with_background(self.ethogram)):
            raise FormatError(folder / STATE, "the bouts do not match the behaviors of the model")
        values = np.concatenate([self.seconds, *self.lengths])
        if not np.isfinite(values).all() or (values < 0).any() or not self.seconds.sum() or not any(self.lengths):
            raise FormatError(folder / STATE, "the durations of the bouts are not valid")


def _with_background(ethogram: Ethogram) -> Ethogram:
    """Return the ethogram with a background, if it has none."""
    return ethogram if ethogram.background is not None else Ethogram([*ethogram, "(nothing)"])
