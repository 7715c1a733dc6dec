"""K-means on single frames, whitened: BEBE's simplest way to find behavior without labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.models.base import register_model
from ethobench.models.clusters import Array, Arrays, ClusterModel

CHUNK = 100_000


@register_model("kmeans")
class KMeans(ClusterModel):
    """Groups around means."""

    title = "k-means on single frames, groups named by their labels (BEBE)"
    shapes = {"axes": ("channels", "components"), "middle": ("channels",), "centers": ("states", "components")}  # noqa: RUF012

    def find(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Whiten and group."""
        from sklearn.cluster import KMeans as Means
        from sklearn.decomposition import PCA

        frames = np.concatenate(recordings)[:: self.params.every]
        whitening = PCA(n_components=_components(frames), whiten=True, random_state=self.seed).fit(frames)
        means = Means(n_clusters, n_init=10, max_iter=self.params.iterations, random_state=self.seed).fit(whitening.transform(frames))
        scale = np.sqrt(np.maximum(whitening.explained_variance_, 1e-12))
        return {"axes": (whitening.components_ / scale[:, None]).T, "middle": whitening.mean_, "centers": means.cluster_centers_}

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Take the nearest mean."""
        centers = self.learnt["centers"]
        half = (centers**2).sum(axis=1) / 2
        groups = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), CHUNK):
            turned = (values[start : start + CHUNK] - self.learnt["middle"]) @ self.learnt["axes"]
            groups[start : start + CHUNK] = (turned @ centers.T - half).argmax(axis=1)
        return groups


def _components(frames: Array) -> str | int:
    """Let the data tell how many components there are, where they can."""
    return "mle" if len(frames) > frames.shape[1] > 1 and np.linalg.matrix_rank(frames[:10_000]) == frames.shape[1] else min(frames.shape)
