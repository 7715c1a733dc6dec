"""The linear SVM agrees with scikit-learn where it converges, and has a lower objective where it does not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ethobench import Annotation, Dataset, Ethogram, Recording, Signals, create_model
from ethobench.core.errors import EthobenchError
from ethobench.models import linear_svm
from ethobench.models.linear_svm import fit_linear_svm, fit_linear_svm_with_liblinear, one_against_rest, overlapping_classes


def draw(classes: int, rows: int, columns: int, seed: int = 0):
    random = np.random.default_rng(seed)
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    codes = random.choice(classes, rows, p=shares)
    return random.normal(size=(classes, columns))[codes] + random.normal(size=(rows, columns)), codes


def objective(x, positive, costs, coefficients, intercepts) -> np.ndarray:
    hinge = np.maximum(1 - np.where(positive, 1, -1) * (x @ coefficients.T + intercepts), 0)
    return (np.square(coefficients).sum(axis=1) + intercepts**2) / 2 + (np.where(positive, costs[:, 1], costs[:, 0]) * hinge**2).sum(axis=0)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_solution_agrees_with_scikit_learn(classes, monkeypatch):
    monkeypatch.setattr(linear_svm, "BLOCK_ROWS", 170)
    x, codes = draw(classes, 1000, 6)
    theirs = LinearSVC(dual=False, class_weight="balanced", tol=1e-10, max_iter=100_000).fit(x, codes)
    coefficients, intercepts = fit_linear_svm(x, *one_against_rest(codes, np.arange(classes)))
    np.testing.assert_allclose(coefficients, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(intercepts, theirs.intercept_, atol=1e-6)


def test_overlapping_behaviors_have_balanced_weights():
    x, codes = draw(3, 600, 4)
    targets = np.stack([codes == 1, codes > 0], axis=1)
    coefficients, intercepts = fit_linear_svm(x, *overlapping_classes(targets))
    for column in range(2):
        theirs = LinearSVC(dual=False, class_weight="balanced", tol=1e-10, max_iter=100_000).fit(x, targets[:, column])
        np.testing.assert_allclose(coefficients[column], theirs.coef_[0], atol=1e-6)
        np.testing.assert_allclose(intercepts[column], theirs.intercept_[0], atol=1e-6)


def test_unscaled_columns_converge():
    x, codes = draw(3, 2000, 6)
    x *= 10.0 ** np.arange(-2, 4)
    positive, costs = one_against_rest(codes, np.arange(3))
    ours = objective(x, positive, costs, *fit_linear_svm(x, positive, costs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = objective(x, positive, costs, *fit_linear_svm_with_liblinear(x, positive, costs))
    assert (ours <= theirs * (1 + 1e-9)).all()
    scaled = objective(x, positive, costs, *fit_linear_svm(x.astype(np.float32), positive, costs))
    np.testing.assert_allclose(scaled, ours, rtol=1e-5)


def test_both_solvers_agree_where_both_converge():
    x, codes = draw(4, 800, 5)
    positive, costs = one_against_rest(codes, np.arange(4))
    ours, theirs = fit_linear_svm(x, positive, costs), fit_linear_svm_with_liblinear(x, positive, costs)
    np.testing.assert_allclose(ours[0], theirs[0], atol=0.01)
    np.testing.assert_allclose(ours[1], theirs[1], atol=0.01)


@pytest.mark.parametrize("fit", [fit_linear_svm, fit_linear_svm_with_liblinear])
def test_class_without_negative_or_positive_rows(fit):
    x = np.random.default_rng(0).normal(size=(50, 3))
    positive = np.stack([np.ones(50, dtype=bool), np.zeros(50, dtype=bool)], axis=1)
    coefficients, intercepts = fit(x, positive, np.ones((2, 2)))
    decision = x @ coefficients.T + intercepts
    assert (decision[:, 0] > 0.9).all()
    assert (decision[:, 1] < -0.9).all()


def test_constant_columns_and_columns_of_zeros():
    x, codes = draw(2, 200, 3)
    with_constants = np.concatenate([x, np.zeros((200, 1)), np.full((200, 1), 5.0)], axis=1)
    coefficients, intercepts = fit_linear_svm(with_constants, *one_against_rest(codes, np.arange(2)))
    assert coefficients[0, 3] == 0
    assert np.isfinite(coefficients).all()
    plain = fit_linear_svm(x, *one_against_rest(codes, np.arange(2)))
    agree = (with_constants @ coefficients[0] + intercepts[0] > 0) == (x @ plain[0][0] + plain[1][0] > 0)
    assert agree.mean() > 0.99


@pytest.mark.parametrize("solver", ["newton", "liblinear"])
def test_model_svm_with_either_solver(solver):
    random = np.random.default_rng(0)
    ethogram = Ethogram(["rest", "walk", "run"])
    codes = np.repeat(random.integers(0, 3, 60), 25)
    values = np.stack([codes + random.normal(0, 0.2, 1500), random.normal(0, 1, 1500)], axis=1)
    recording = Recording("r", signals=Signals(values, ("a", "b"), 10.0), annotations={"me": Annotation.from_frames(codes, ethogram, 10.0)})
    prediction = create_model("svm", seconds=0.5, cutoff=0.0, solver=solver).fit(Dataset((recording,), ethogram)).predict(recording)
    assert (prediction.annotation.to_codes() == codes).mean() > 0.9
    np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1, atol=1e-5)


def test_unknown_solver_is_refused():
    with pytest.raises(EthobenchError, match="`solver` must be one of 'newton' or 'liblinear', got 'magic'"):
        create_model("svm", solver="magic")
