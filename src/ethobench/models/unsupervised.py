"""Unsupervised models, as in BEBE: k-means, a Gaussian mixture and a hidden Markov model.

They cluster the frames without labels. Each cluster is then named after the behavior that most of its annotated frames show.
"""

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
from ethobench.models.hidden_markov import Array, fit_hmm, log_densities, most_likely_states
from ethobench.models.hyperparameters import Count, hyperparameters
from ethobench.models.inputs import select_inputs
from ethobench.models.registry import register_model

CLUSTERS = "clusters.npz"
MIN_CLUSTERS = 20
CHUNK_FRAMES = 100_000  # frames assigned to clusters at a time
SHAPES = {"names": ("clusters",), "shares": ("clusters", "codes"), "mean": ("channels",), "std": ("channels",)}
"""The dimensions of the arrays that all of these models save. Dimensions with the same name have the same length."""
Arrays = dict[str, NDArray[Any]]


@hyperparameters
class ClusterParams:
    """Hyper-parameters of a clustering.

    Attributes
    ----------
    clusters : int, optional
        Number of clusters; by default four times the number of behaviors, at least 20.
    every : int
        Use every n-th frame for training.
    iterations : int
        Maximum number of iterations.
    """

    clusters: Count | None = None
    every: Count = 4
    iterations: Count = 1000


class ClusterModel(Model):
    """Assigns each frame to a cluster, and each cluster to the behavior that most of its annotated frames show.

    Subclasses implement `fit_clusters` and `assign`, and state the dimensions of the arrays that `fit_clusters` returns in `shapes`.
    Frames of a cluster without annotated frames are unobserved.
    """

    Params = ClusterParams
    shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    arrays: Arrays
    names: NDArray[np.int64]
    shares: Array

    def fit_clusters(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Find clusters in standardized channels, one array (n_frames, n_channels) per recording; return what `assign` needs."""
        raise NotImplementedError

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Return the cluster of each frame of a recording."""
        raise NotImplementedError

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        merged = {name: truth.without_subjects() for name, truth in truths.items()}
        if not all(truth.is_exclusive for truth in merged.values()):
            raise EthobenchError(f"model {self.name!r} cannot be fitted to behaviors that overlap")
        values = {recording.id: self._channels(recording) for recording in data}
        frames = np.concatenate(list(values.values()))
        mean, std = np.nanmean(frames, axis=0), np.nanstd(frames, axis=0)
        self.arrays = {"mean": mean, "std": np.where(std > 0, std, 1.0)}
        del frames
        n_clusters = self.params.clusters or max(MIN_CLUSTERS, 4 * len(data.ethogram))
        standardized = {name: self._standardize(channels) for name, channels in values.items()}
        self.arrays |= self.fit_clusters(list(standardized.values()), n_clusters)
        counts = np.zeros((n_clusters, self.n_outputs))
        for name, channels in standardized.items():
            codes, clusters = merged[name].to_codes(), self.assign(channels)
            n_frames = min(len(codes), len(clusters))
            observed = codes[:n_frames] >= 0
            np.add.at(counts, (clusters[:n_frames][observed], codes[:n_frames][observed]), 1)
        if not counts.sum():
            raise EthobenchError("cannot fit a model: no frame is observed")
        self.names, self.shares = name_clusters(counts)

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram, rate = self.check_is_fitted(), self.rate_of(recording)
        clusters = self.assign(self._standardize(self._channels(recording)))
        annotation = Annotation.from_frames(self.names[clusters], ethogram, rate, unobserved=-1)
        return Prediction(self.shares[clusters], ethogram, rate, annotation=annotation, exclusive=True)

    def _channels(self, recording: Recording) -> Array:
        """Return the channels of the model (n_frames, n_channels)."""
        data = select_inputs(recording, self.inputs)
        return np.asarray((data.to_signals() if isinstance(data, Poses) else data).values, dtype=np.float64)

    def _standardize(self, values: Array) -> Array:
        """Standardize channels; missing values become the mean."""
        n_channels = len(self.arrays["mean"])
        if values.shape[1] != n_channels:
            raise MismatchError(f"{values.shape[1]} channels, but the clusters have {n_channels}; the saved model is damaged")
        return np.nan_to_num((values - self.arrays["mean"]) / self.arrays["std"])

    def _save(self, folder: Path) -> None:
        arrays: dict[str, Any] = {**self.arrays, "names": self.names, "shares": self.shares}
        np.savez(folder / CLUSTERS, **arrays)

    def _load(self, folder: Path) -> None:
        try:
            arrays = _read_arrays(folder / CLUSTERS)
            self._check_arrays(arrays)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, zlib.error) as error:
            raise FormatError(folder / CLUSTERS, f"the clusters are missing or damaged ({error})") from None
        self.names, self.shares = arrays.pop("names"), arrays.pop("shares")
        self.arrays = arrays

    def _check_arrays(self, arrays: Arrays) -> None:
        """Refuse arrays whose shapes differ from what `assign` expects."""
        lengths: dict[str, int] = {"codes": self.n_outputs}
        for name, dimensions in {**SHAPES, **self.shapes}.items():
            shape = arrays[name].shape
            agree = len(shape) == len(dimensions)
            if not agree or any(lengths.setdefault(d, n) != n for d, n in zip(dimensions, shape, strict=True)):
                raise ValueError(f"{name} has the shape {shape}")
        if lengths.get("states", 0) > lengths["clusters"]:
            raise ValueError("there are more states than clusters")
        if "covariances" in arrays:
            np.linalg.cholesky(arrays["covariances"])  # a LinAlgError, which is a ValueError, where they are not positive definite
        names = arrays["names"]
        if names.dtype.kind != "i" or (len(names) and not -1 <= names.min() <= names.max() < self.n_outputs):
            raise ValueError("a cluster has the code of a behavior that does not exist")


def name_clusters(counts: Array) -> tuple[NDArray[np.int64], Array]:
    """Name clusters after the most frequent behavior of their annotated frames.

    Parameters
    ----------
    counts : array (n_clusters, n_codes)
        Annotated frames of each cluster and behavior.

    Returns
    -------
    names : array of int (n_clusters,)
        Codes; -1 for a cluster without annotated frames.
    shares : array (n_clusters, n_codes)
        Shares of the behaviors in each cluster.
    """
    total = counts.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, counts / np.maximum(total, 1), 1 / counts.shape[1])
    return np.where(total[:, 0] > 0, counts.argmax(axis=1), -1), shares


def _read_arrays(path: Path) -> Arrays:
    """Read arrays of numbers from an uncompressed file; each must be as long as its header states.

    Log probabilities may be minus infinity. The mean of a channel that was never recorded is NaN.
    """
    arrays: Arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("the file is compressed, unlike those that ethobench saves")
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read_header(file)
            if dtype.kind not in "fi" or math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} does not hold numbers, or fewer than it states")
            with archive.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            if (member.filename != "mean.npy" and np.isnan(array).any()) or np.isposinf(array).any():
                raise ValueError(f"{member.filename} has values that are not finite")
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays


@register_model("kmeans")
class KMeans(ClusterModel):
    """K-means on whitened frames."""

    title = "k-means on single frames, clusters named by their labels (BEBE)"
    shapes = {"axes": ("channels", "components"), "center": ("channels",), "centroids": ("states", "components")}  # noqa: RUF012

    def fit_clusters(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Whiten the channels, and cluster the frames."""
        from sklearn import cluster
        from sklearn.decomposition import PCA

        frames = np.concatenate(recordings)[:: self.params.every]
        pca = PCA(n_components=_n_components(frames), whiten=True, random_state=self.seed).fit(frames)
        kmeans = cluster.KMeans(n_clusters, n_init=10, max_iter=self.params.iterations, random_state=self.seed).fit(pca.transform(frames))
        scale = np.sqrt(np.maximum(pca.explained_variance_, 1e-12))
        return {"axes": (pca.components_ / scale[:, None]).T, "center": pca.mean_, "centroids": kmeans.cluster_centers_}

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Return the nearest centroid of each frame."""
        centroids = self.arrays["centroids"]
        half_squares = (centroids**2).sum(axis=1) / 2
        clusters = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), CHUNK_FRAMES):
            whitened = (values[start : start + CHUNK_FRAMES] - self.arrays["center"]) @ self.arrays["axes"]
            clusters[start : start + CHUNK_FRAMES] = (whitened @ centroids.T - half_squares).argmax(axis=1)
        return clusters


def _n_components(frames: Array) -> str | int:
    """Return how PCA chooses the number of components: by maximum likelihood where the frames have full rank."""
    has_full_rank = len(frames) > frames.shape[1] > 1 and np.linalg.matrix_rank(frames[:10_000]) == frames.shape[1]
    return "mle" if has_full_rank else min(frames.shape)


@register_model("gmm")
class Mixture(ClusterModel):
    """A mixture of Gaussians with full covariances."""

    title = "mixture of Gaussians on single frames, clusters named by their labels (BEBE)"
    shapes = {"means": ("states", "channels"), "covariances": ("states", "channels", "channels"), "weights": ("states",)}  # noqa: RUF012

    def fit_clusters(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Fit the mixture."""
        from sklearn.mixture import GaussianMixture

        frames = np.concatenate(recordings)[:: self.params.every]
        mixture = GaussianMixture(
            min(n_clusters, len(frames)), covariance_type="full", max_iter=self.params.iterations, random_state=self.seed
        ).fit(frames)
        return {"means": mixture.means_, "covariances": mixture.covariances_, "weights": np.log(mixture.weights_)}

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Return the most probable component of each frame."""
        clusters = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), CHUNK_FRAMES):
            densities = log_densities(values[start : start + CHUNK_FRAMES], self.arrays["means"], self.arrays["covariances"])
            clusters[start : start + CHUNK_FRAMES] = (densities + self.arrays["weights"]).argmax(axis=1)
        return clusters


@hyperparameters
class HmmParams(ClusterParams):
    """Hyper-parameters of a hidden Markov model.

    Attributes
    ----------
    window : int
        Frames of a training window; fewer where recordings are shorter.
    full : bool
        Whether states have full covariances, else diagonal ones.
    """

    every: Count = 1
    iterations: Count = 50
    window: Count = 2048
    full: bool = True


@register_model("hmm")
class HiddenMarkov(ClusterModel):
    """A hidden Markov model with Gaussian states."""

    title = "hidden Markov model with Gaussian states, named by their labels (BEBE)"
    Params = HmmParams
    shapes = {  # noqa: RUF012
        "means": ("states", "channels"),
        "covariances": ("states", "channels", "channels"),
        "start": ("states",),
        "transitions": ("states", "states"),
    }
    grid = {"full": (True, False)}  # noqa: RUF012

    def fit_clusters(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Initialize the means with k-means, then fit states and transitions."""
        from sklearn.cluster import KMeans

        sampled = [values[:: self.params.every] for values in recordings]
        length = min(self.params.window, *(len(values) for values in sampled))
        windows = [values[i : i + length] for values in sampled for i in range(0, len(values) - length + 1, length)]
        frames = np.concatenate(windows)
        kmeans = KMeans(min(n_clusters, len(frames)), n_init=1, random_state=self.seed).fit(frames[:: max(1, len(frames) // 100_000)])
        return fit_hmm(windows, kmeans.cluster_centers_, iterations=self.params.iterations, full=self.params.full)

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Return the most likely sequence of states."""
        densities = log_densities(values, self.arrays["means"], self.arrays["covariances"])
        return most_likely_states(densities, self.arrays["start"], self.arrays["transitions"])
