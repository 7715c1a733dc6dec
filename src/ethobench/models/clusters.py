"""What models share that find groups without looking at labels, and name them afterwards as BEBE does."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Poses, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.models.base import Model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.inputs import known_signals

LEARNT = "clusters.npz"
LEAST_CLUSTERS = 20
SHAPES = {"names": ("clusters",), "shares": ("clusters", "codes"), "mean": ("channels",), "std": ("channels",)}
"""The dimensions of the arrays that all of these models save; those of the same name are equally long."""
Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@hyperparameters
class ClusterParams:
    """Hyper-parameters.

    Attributes
    ----------
    clusters : int, optional
        Four times the behaviors, at least 20, unless given.
    every : int
        Learn from every so many frames.
    iterations : int
        At most.
    """

    clusters: int | None = None
    every: int = 4
    iterations: int = 1000


class ClusterModel(Model):
    """Finds groups of frames; each group is then named after the behavior that most of its annotated frames show.

    Subclasses write `find` and `assign`, and name the dimensions of the arrays that `find` returns in `shapes`. Groups without an
    annotated frame stay without a name, and so do their frames.
    """

    Params = ClusterParams
    shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    learnt: Arrays
    names: NDArray[np.int64]
    shares: Array

    def find(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Find groups in standardised channels, recording by recording; return what `assign` needs."""
        raise NotImplementedError

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Tell the group of each frame of a recording."""
        raise NotImplementedError

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        merged = {name: truth.without_subjects() for name, truth in truths.items()}
        if not all(truth.is_exclusive for truth in merged.values()):
            raise EthobenchError(f"{self.name} names one behavior at a time, but here some overlap")
        values = {recording.id: self._values(recording) for recording in data}
        frames = np.concatenate(list(values.values()))
        mean, std = np.nanmean(frames, axis=0), np.nanstd(frames, axis=0)
        self.learnt = {"mean": mean, "std": np.where(std > 0, std, 1.0)}
        del frames
        n_clusters = self.params.clusters or max(LEAST_CLUSTERS, 4 * len(data.ethogram))
        scaled = {name: self._scaled(part) for name, part in values.items()}
        self.learnt |= self.find(list(scaled.values()), n_clusters)
        size = len(data.ethogram) + (data.ethogram.background is None)
        counts = np.zeros((n_clusters, size))
        for name, part in scaled.items():
            codes, groups = merged[name].to_codes(), self.assign(part)
            n = min(len(codes), len(groups))
            known = codes[:n] >= 0
            np.add.at(counts, (groups[:n][known], codes[:n][known]), 1)
        if not counts.sum():
            raise EthobenchError("there is nothing to learn from: no frame was observed")
        self._name(counts)

    def _name(self, counts: Array) -> None:
        total = counts.sum(axis=1, keepdims=True)
        self.shares = np.where(total > 0, counts / np.maximum(total, 1), 1 / counts.shape[1])
        self.names = np.where(total[:, 0] > 0, counts.argmax(axis=1), -1)

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram = self.check_is_fitted()
        groups = self.assign(self._scaled(self._values(recording)))
        rate = self.rate_of(recording)
        annotation = Annotation.from_frames(self.names[groups], ethogram, rate, unobserved=-1)
        return Prediction(self.shares[groups], ethogram, rate, annotation=annotation, exclusive=True)

    def _values(self, recording: Recording) -> Array:
        """Return the channels that were learnt, in their order."""
        data = known_signals(recording, self.inputs)
        return np.asarray((data.to_signals() if isinstance(data, Poses) else data).values, dtype=np.float64)

    def _scaled(self, values: Array) -> Array:
        """Standardise channels; what is missing is their mean."""
        if values.shape[1] != len(self.learnt["mean"]):
            raise MismatchError(
                f"{self.name}: {values.shape[1]} channels, but the groups have {len(self.learnt['mean'])}; the saved model is damaged"
            )
        return np.nan_to_num((values - self.learnt["mean"]) / self.learnt["std"])

    def _save(self, folder: Path) -> None:
        arrays: dict[str, Any] = {**self.learnt, "names": self.names, "shares": self.shares}
        np.savez(folder / LEARNT, **arrays)

    def _load(self, folder: Path) -> None:
        try:
            arrays = _read_arrays(folder / LEARNT)
            self._check_arrays(arrays)
        except EthobenchError:
            raise
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, zlib.error) as error:
            raise FormatError(folder / LEARNT, f"the groups are missing or damaged ({error})") from None
        self.names, self.shares = arrays.pop("names"), arrays.pop("shares")
        self.learnt = arrays

    def _check_arrays(self, arrays: Arrays) -> None:
        """Refuse arrays whose shapes differ from what `assign` expects."""
        size = 0 if self.ethogram is None else len(self.ethogram) + (self.ethogram.background is None)
        lengths: dict[str, int] = {"codes": size}
        for name, dimensions in {**SHAPES, **self.shapes}.items():
            shape = arrays[name].shape
            agree = len(shape) == len(dimensions)
            if not agree or any(lengths.setdefault(d, n) != n for d, n in zip(dimensions, shape, strict=True)):
                raise ValueError(f"{name} has the shape {shape}")
        if lengths.get("states", 0) > lengths["clusters"]:
            raise ValueError("there are more states than groups")
        if "covariances" in arrays:
            np.linalg.cholesky(arrays["covariances"])  # a LinAlgError, which is a ValueError, where they are not positive definite
        names = arrays["names"]
        if names.dtype.kind != "i" or (len(names) and not -1 <= names.min() <= names.max() < size):
            raise ValueError("a group is named after a behavior that there is not")


def _read_arrays(path: Path) -> Arrays:
    """Read arrays of numbers; each must be as long as its file says.

    Log probabilities may be minus infinity, and the mean of a channel that was never recorded is not a number.
    """
    arrays: Arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed, which those saved here are not")
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read_header(file)
            if dtype.kind not in "fi" or math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} holds no numbers, or fewer than it says")
            with archive.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            if (member.filename != "mean.npy" and np.isnan(array).any()) or np.isposinf(array).any():
                raise ValueError(f"{member.filename} has values that are not numbers")
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays
