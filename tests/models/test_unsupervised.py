"""Unsupervised models: names of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench import Annotation, Dataset, Ethogram, Recording, Signals, create_model
from ethobench.models.unsupervised import name_clusters

ETHOGRAM = Ethogram(["rest", "run"])


def recording(codes, values, unobserved=None, rate: float = 10.0) -> Recording:
    truth = Annotation.from_frames(codes, ETHOGRAM, rate, unobserved=unobserved)
    channels = tuple(f"c{k}" for k in range(values.shape[1]))
    return Recording("r", signals=Signals(values, channels, rate), annotations={"me": truth})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kmeans", "gmm", "hmm"])
def test_clusters_are_named_after_their_most_frequent_label(name):
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 60), 20)
    values = np.stack([3 * codes, 2 * codes, 0 * codes], axis=1) + random.normal(0, 0.3, (1200, 3))
    unobserved = np.arange(1200) % 3 > 0  # a third of the labels is enough
    model = create_model(name, clusters=20, **({"window": 256} if name == "hmm" else {"every": 1}))
    model.fit(Dataset((recording(codes, values, unobserved),), ETHOGRAM))
    assert (model.predict(recording(codes, values)).annotation.to_codes() == codes).mean() > 0.97


def test_clusters_without_labels_have_no_name():
    names, shares = name_clusters(np.array([[2.0, 2.0], [0.0, 0.0], [0.0, 5.0]]))
    assert names.tolist() == [0, -1, 1]  # of a tie the first; none without labels
    assert shares[1].tolist() == [0.5, 0.5]
