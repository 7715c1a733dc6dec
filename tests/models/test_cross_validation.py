"""The cross-validation loop within the training data: groups, time limits and early stops."""

from __future__ import annotations

import numpy as np
import pytest
from tests.clock import Clock

from ethobench import Dataset, Model, Prediction, load_dataset
from ethobench.core.deadline import Deadline
from ethobench.core.progress import progress_listener, report_progress
from ethobench.models.cross_validation import cross_validate, inner_folds, predict_out_of_fold

FOLDS = [["animal01"], ["animal02"], ["animal03"], ["animal04"]]


class Uniform(Model):
    """Predicts the same probability for all behaviors; knows its training recordings."""

    name = "uniform"
    fitted: list[Uniform] = []  # noqa: RUF012

    def _fit(self, data, truths):
        self.trained = {r.id for r in data}
        Uniform.fitted.append(self)

    def _predict(self, recording, baseline):
        n_outputs = len(self.ethogram)
        prediction = Prediction(np.full((recording.n_frames, n_outputs), 1 / n_outputs), self.ethogram, recording.rate)
        self.predicted = {*getattr(self, "predicted", set()), recording.id}
        return prediction


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("synthetic/tag", individuals=4, seconds=4.0)


def recorded_fit(data, clock, durations):
    """Return a `fit` that takes so many seconds for each fold, and the list of its time limits."""
    time_limits = []

    def fit(held_out, deadline):
        time_limits.append(deadline.remaining)
        clock.now += durations[len(time_limits) - 1]
        model = Uniform()
        model.ethogram, model.exclusive = data.ethogram, False
        return model

    return fit, time_limits


def test_predictions_are_by_models_not_trained_on_the_individual(data):
    Uniform.fitted.clear()
    uniform = Uniform()
    uniform.ethogram, uniform.exclusive = data.ethogram, False
    predictions = predict_out_of_fold(uniform, data, {r.id: r.annotation() for r in data}, 3)
    assert list(predictions) == [r.id for r in data]
    groups = data.groups()
    assert len(Uniform.fitted) == 3
    for model in Uniform.fitted:
        assert not {groups[name] for name in model.trained} & {groups[name] for name in model.predicted}
        assert model.trained | model.predicted == {r.id for r in data}


def test_recordings_of_one_individual_or_without_annotation(data):
    truths = {r.id: r.annotation() for r in data}
    assert sorted(name for fold in inner_folds(data, truths, 2) for name in fold) == sorted(truths)
    first, *others = truths
    unobserved = {name: truths[name].with_observed(np.zeros(truths[name].n_frames, dtype=bool)) for name in others}
    assert inner_folds(data, {first: truths[first], **unobserved}) == []


def test_each_fold_gets_the_same_share_of_the_remaining_time(data):
    clock = Clock()
    fit, time_limits = recorded_fit(data, clock, [10, 0, 20, 20])
    results = list(cross_validate(fit, data, FOLDS, Deadline(120, clock=clock), reserved_fits=2))
    assert time_limits == pytest.approx([120 / 6, 110 / 5, 110 / 4, 90 / 3])
    assert [result.seconds for result in results] == [10, 0, 20, 20]
    assert [[*result.predictions] for result in results] == FOLDS


@pytest.mark.parametrize(("first", "n_folds"), [(1.0, 4), (20.0, 4), (22.0, 3), (30.0, 2), (99.0, 2)])
def test_the_duration_of_the_first_fold_decides_how_many_there_are(data, first, n_folds):
    """100 s for the folds and one more fit: with 20 s each there is time for four folds, with 22 s for three."""
    clock = Clock()
    fit, time_limits = recorded_fit(data, clock, [first, 1, 1, 1])
    results = list(cross_validate(fit, data, FOLDS, Deadline(100, clock=clock), reserved_fits=1, min_folds=2))
    assert len(results) == n_folds
    assert time_limits[0] == pytest.approx(100 / 3)  # two folds and the reserved fit: there may be no more
    assert time_limits[1] == pytest.approx((100 - first) / n_folds)


def test_all_folds_are_used_without_a_time_limit(data):
    clock = Clock()
    fit, time_limits = recorded_fit(data, clock, [1e6] * 4)
    assert len(list(cross_validate(fit, data, FOLDS, Deadline(clock=clock), reserved_fits=1, min_folds=2))) == 4
    assert time_limits == [np.inf] * 4


def test_the_caller_may_stop_after_any_fold(data):
    fit, time_limits = recorded_fit(data, Clock(), [0] * 4)
    folds = cross_validate(fit, data, FOLDS, Deadline(), reserved_fits=1)
    assert [*next(folds).predictions] == FOLDS[0]
    folds.close()
    assert len(time_limits) == 1


def test_progress_of_a_fold_is_its_share_of_the_total(data):
    reported = []

    def fit(held_out, deadline):
        report_progress("training", 0.5)
        return recorded_fit(data, Clock(), [0])[0](held_out, deadline)

    with progress_listener(lambda stage, fraction: reported.append((stage, fraction))):
        list(cross_validate(fit, data, FOLDS[:2], Deadline(), reserved_fits=1))
    assert reported == [("inner fold 1 of 2: training", 0.25), ("inner fold 2 of 2: training", 0.75)]


@pytest.mark.slow
def test_progress_of_a_decoded_fit_only_grows(data):
    class Reporting(Uniform):
        name = "reporting"

        def _fit(self, data, truths):
            super()._fit(data, truths)
            for fraction in (0.0, 0.5, 1.0):
                report_progress("training", fraction)

    fractions = []
    with progress_listener(lambda stage, fraction: fractions.append(fraction)):
        Reporting(decode="f1").fit(data)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
