"""Baselines that look at nothing: what chance alone would score."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError
from ethobench.models.base import Model, register_model
from ethobench.models.hyperparameters import hyperparameters

KINDS = ("majority", "random", "renewal")
LEARNT = "chance.json"


@hyperparameters
class Params:
    """How chance plays.

    Attributes
    ----------
    kind : {"renewal", "majority", "random"}
        ``majority``: always the most frequent behavior. ``random``: each frame drawn by the behaviors' shares.
        ``renewal``: bouts drawn by the behaviors' counts, with lengths drawn from theirs.
    """

    kind: str = "renewal"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise EthobenchError(f"chance plays {', '.join(KINDS)}, not {self.kind!r}")


@register_model("chance")
class Chance(Model):
    """Draws annotations that have the right shares, or the right bouts, and nothing else."""

    title = "chance: the most frequent behavior, random frames, or random bouts"
    Params = Params
    grid = {"kind": KINDS}  # noqa: RUF012
    needs_signals = False

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        size = len(data.ethogram) + (data.ethogram.background is None)
        self.seconds = np.zeros(size)
        self.lengths: list[list[float]] = [[] for _ in range(size)]
        for truth in truths.values():
            codes = truth.without_subjects().to_codes() if truth.without_subjects().is_exclusive else None
            if codes is None:
                raise EthobenchError("chance learns one behavior at a time, but here some overlap")
            whole = Annotation.from_frames(codes, _with_nothing(data.ethogram), truth.rate, unobserved=-1)
            for code, start, stop in zip(whole.behavior, whole.start, whole.stop, strict=True):
                self.seconds[code] += (stop - start) / truth.rate
                self.lengths[code].append(float((stop - start) / truth.rate))
        if not self.seconds.sum():
            raise EthobenchError("there is nothing to learn from: no frame was observed")

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        if recording.n_frames is None or recording.rate is None or self.ethogram is None:
            raise EthobenchError(f"recording {recording.id!r} tells neither length nor rate")
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
        annotation = Annotation.from_frames(codes, self.ethogram, recording.rate)
        return Prediction(probabilities, self.ethogram, recording.rate, annotation=annotation, exclusive=True)

    def _draw_bouts(self, generator: np.random.Generator, n: int, rate: float) -> np.ndarray:
        counts = np.array([len(lengths) for lengths in self.lengths], dtype=float)
        parts, filled = [], 0
        while filled < n:
            code = int(generator.choice(len(counts), p=counts / counts.sum()))
            length = max(1, round(float(generator.choice(self.lengths[code])) * rate))
            parts.append(np.full(length, code))
            filled += length
        return np.concatenate(parts)[:n] if parts else np.zeros(0, dtype=np.int64)

    def _save(self, folder: Path) -> None:
        (folder / LEARNT).write_text(json.dumps({"seconds": self.seconds.tolist(), "lengths": self.lengths}), encoding="utf-8")

    def _load(self, folder: Path) -> None:
        from ethobench.core.files import read_json

        learnt = read_json(folder / LEARNT)
        try:
            self.seconds = np.array(learnt["seconds"], dtype=float)
            self.lengths = [[float(length) for length in lengths] for lengths in learnt["lengths"]]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(folder / LEARNT, f"the bouts are damaged ({error})") from None
        if self.seed < 0:
            raise FormatError(folder, f"the seed of chance is 0 or more, not {self.seed}")
        if self.ethogram is None or not len(self.seconds) == len(self.lengths) == len(_with_nothing(self.ethogram)):
            raise FormatError(folder / LEARNT, "the bouts are not those of the model's behaviors")
        values = np.concatenate([self.seconds, *self.lengths])
        if not np.isfinite(values).all() or (values < 0).any() or not self.seconds.sum() or not any(self.lengths):
            raise FormatError(folder / LEARNT, "the bouts have lengths that are no seconds")


def _with_nothing(ethogram: Ethogram) -> Ethogram:
    """Add the implicit background where none is named."""
    return ethogram if ethogram.background is not None else Ethogram([*ethogram, "(nothing)"])
