"""Model `chance` has the frequencies and bouts of the training data; a random forest scores higher."""

from __future__ import annotations

import numpy as np
import pytest

import ethobench as eb
from ethobench.core.errors import EthobenchError


def test_frequencies_and_bouts_are_those_of_the_training_data():
    data = eb.load_dataset("synthetic/tag", individuals=4, seconds=600)
    truth = np.concatenate([r.annotation().to_codes() for r in data])
    shares = np.bincount(truth, minlength=5) / len(truth)
    for kind in ("random", "renewal"):
        model = eb.create_model("chance", kind=kind).fit(data)
        codes = np.concatenate([model.predict(r).annotation.to_codes() for r in data])
        assert np.bincount(codes, minlength=5)[:5] / len(codes) == pytest.approx(shares, abs=0.02 if kind == "random" else 0.15)
    renewal = sum(len(eb.create_model("chance").fit(data).predict(r).annotation) for r in data)
    assert renewal == pytest.approx(sum(len(r.annotation()) for r in data), rel=0.3)
    majority = eb.create_model("chance", kind="majority").fit(data).predict(data.recordings[0])
    assert set(majority.annotation.to_codes()) == {int(np.argmax(shares))}
    with pytest.raises(EthobenchError, match="got 'luck'"):
        eb.create_model("chance", kind="luck").fit(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tag", "pose"])
def test_random_forest_beats_chance_on_new_individuals(kind):
    data = eb.load_dataset(f"synthetic/{kind}", individuals=6, seconds=120, folds=3)
    scores = {}
    for name in ("chance", "rf"):
        model = eb.create_model(name, **({"trees": 20} if name == "rf" else {})).fit(data.select(fold=[1, 2]))
        scores[name] = eb.score({r.id: model.predict(r) for r in data.select(fold=0)}, data).overall["f1"]
    assert scores["rf"] > 0.6
    assert scores["chance"] < 0.4
