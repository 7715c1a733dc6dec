"""A mixture of Gaussians on single frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.models.base import register_model
from ethobench.models.clusters import Array, Arrays, ClusterModel
from ethobench.models.hidden_markov import log_densities

CHUNK = 100_000


@register_model("gmm")
class Mixture(ClusterModel):
    """Groups with a shape of their own."""

    title = "mixture of Gaussians on single frames, groups named by their labels (BEBE)"
    shapes = {"means": ("states", "channels"), "covariances": ("states", "channels", "channels"), "weights": ("states",)}  # noqa: RUF012

    def find(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Fit the mixture."""
        from sklearn.mixture import GaussianMixture

        frames = np.concatenate(recordings)[:: self.params.every]
        fitted = GaussianMixture(
            min(n_clusters, len(frames)), covariance_type="full", max_iter=self.params.iterations, random_state=self.seed
        ).fit(frames)
        return {"means": fitted.means_, "covariances": fitted.covariances_, "weights": np.log(fitted.weights_)}

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Take the most probable part."""
        groups = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), CHUNK):
            likely = log_densities(values[start : start + CHUNK], self.learnt["means"], self.learnt["covariances"])
            groups[start : start + CHUNK] = (likely + self.learnt["weights"]).argmax(axis=1)
        return groups
