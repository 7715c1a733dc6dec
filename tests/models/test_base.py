"""The contract of a model, apart from what `test_every_model` tests of each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ethobench import load_dataset
from ethobench.core import Annotation, Dataset
from ethobench.core.errors import NotFittedError
from ethobench.models.frame_classifiers import NathanTree


class FailsOnRequest(NathanTree):
    """A tree whose second fit fails."""

    fails = False

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        if self.fails:
            raise KeyboardInterrupt
        super()._fit(data, truths)


def test_a_fit_that_fails_leaves_a_model_that_is_not_fitted() -> None:
    data = load_dataset("synthetic/tag", individuals=2, seconds=20)
    model = FailsOnRequest().fit(data)
    model.predict(data.recordings[0])
    model.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.fit(data)
    with pytest.raises(NotFittedError, match="is not fitted"):
        model.predict(data.recordings[0])
