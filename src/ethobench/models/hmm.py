"""A hidden Markov model: states that last, found without labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ethobench.models.base import register_model
from ethobench.models.clusters import Array, Arrays, ClusterModel, ClusterParams
from ethobench.models.hidden_markov import learn_hmm, log_densities, most_likely_states
from ethobench.models.hyperparameters import hyperparameters


@hyperparameters
class Params(ClusterParams):
    """Hyper-parameters.

    Attributes
    ----------
    window : int
        Frames of a stretch to learn from; shorter where recordings are.
    full : bool
        Whether the channels of a state may vary together.
    """

    every: int = 1
    iterations: int = 50
    window: int = 2048
    full: bool = True


@register_model("hmm")
class HiddenMarkov(ClusterModel):
    """Gaussian states with transitions between them."""

    title = "hidden Markov model with Gaussian states, named by their labels (BEBE)"
    Params = Params
    shapes = {  # noqa: RUF012
        "means": ("states", "channels"),
        "covariances": ("states", "channels", "channels"),
        "start": ("states",),
        "transitions": ("states", "states"),
    }
    grid = {"full": (True, False)}  # noqa: RUF012

    def find(self, recordings: list[Array], n_clusters: int) -> Arrays:
        """Begin with k-means, then learn states and transitions."""
        from sklearn.cluster import KMeans

        thin = [values[:: self.params.every] for values in recordings]
        length = min(self.params.window, *(len(values) for values in thin)) if len(thin) > 1 else min(self.params.window, len(thin[0]))
        windows = [values[i : i + length] for values in thin for i in range(0, len(values) - length + 1, length)]
        frames = np.concatenate(windows)
        begin = KMeans(min(n_clusters, len(frames)), n_init=1, random_state=self.seed).fit(frames[:: max(1, len(frames) // 100_000)])
        return learn_hmm(windows, begin.cluster_centers_, iterations=self.params.iterations, full=self.params.full)

    def assign(self, values: Array) -> NDArray[np.int64]:
        """Take the most likely way through the states."""
        likely = log_densities(values, self.learnt["means"], self.learnt["covariances"])
        return most_likely_states(likely, self.learnt["start"], self.learnt["transitions"])
