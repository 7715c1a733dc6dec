"""Planes between classes: scikit-learn's where it converges, and the best ones where it does not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ethobench import Annotation, Dataset, Ethogram, Recording, Signals, create_model
from ethobench.core.errors import EthobenchError
from ethobench.models import linear_svm as planes
from ethobench.models.linear import _overlapping_sides, _sides
from ethobench.models.linear_svm import fit_planes, liblinear_planes


def draw(classes: int, rows: int, columns: int, seed: int = 0):
    random = np.random.default_rng(seed)
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    codes = random.choice(classes, rows, p=shares)
    return random.normal(size=(classes, columns))[codes] + random.normal(size=(rows, columns)), codes


def objective(x, sides, costs, directions, offsets) -> np.ndarray:
    short = np.maximum(1 - np.where(sides, 1, -1) * (x @ directions.T + offsets), 0)
    return (np.square(directions).sum(axis=1) + offsets**2) / 2 + (np.where(sides, costs[:, 1], costs[:, 0]) * short**2).sum(axis=0)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_planes_are_those_of_scikit_learn(classes, monkeypatch):
    monkeypatch.setattr(planes, "BLOCK", 170)
    x, codes = draw(classes, 1000, 6)
    theirs = LinearSVC(dual=False, class_weight="balanced", tol=1e-10, max_iter=100_000).fit(x, codes)
    directions, offsets = fit_planes(x, *_sides(codes, np.arange(classes)))
    np.testing.assert_allclose(directions, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(offsets, theirs.intercept_, atol=1e-6)


def test_overlapping_behaviors_are_weighed_each_on_its_own():
    x, codes = draw(3, 600, 4)
    going = np.stack([codes == 1, codes > 0], axis=1)
    directions, offsets = fit_planes(x, *_overlapping_sides(going))
    for column in range(2):
        theirs = LinearSVC(dual=False, class_weight="balanced", tol=1e-10, max_iter=100_000).fit(x, going[:, column])
        np.testing.assert_allclose(directions[column], theirs.coef_[0], atol=1e-6)
        np.testing.assert_allclose(offsets[column], theirs.intercept_[0], atol=1e-6)


def test_columns_of_very_different_size_are_solved_to_the_end():
    x, codes = draw(3, 2000, 6)
    x *= 10.0 ** np.arange(-2, 4)
    sides, costs = _sides(codes, np.arange(3))
    ours = objective(x, sides, costs, *fit_planes(x, sides, costs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = objective(x, sides, costs, *liblinear_planes(x, sides, costs))
    assert (ours <= theirs * (1 + 1e-9)).all()
    scaled = objective(x, sides, costs, *fit_planes(x.astype(np.float32), sides, costs))
    np.testing.assert_allclose(scaled, ours, rtol=1e-5)


def test_both_solvers_agree_where_both_arrive():
    x, codes = draw(4, 800, 5)
    sides, costs = _sides(codes, np.arange(4))
    ours, theirs = fit_planes(x, sides, costs), liblinear_planes(x, sides, costs)
    np.testing.assert_allclose(ours[0], theirs[0], atol=0.01)
    np.testing.assert_allclose(ours[1], theirs[1], atol=0.01)


@pytest.mark.parametrize("find", [fit_planes, liblinear_planes])
def test_a_side_without_rows(find):
    x = np.random.default_rng(0).normal(size=(50, 3))
    sides = np.stack([np.ones(50, dtype=bool), np.zeros(50, dtype=bool)], axis=1)
    directions, offsets = find(x, sides, np.ones((2, 2)))
    far = x @ directions.T + offsets
    assert (far[:, 0] > 0.9).all()
    assert (far[:, 1] < -0.9).all()


def test_constant_columns_and_columns_of_nothing():
    x, codes = draw(2, 200, 3)
    wide = np.concatenate([x, np.zeros((200, 1)), np.full((200, 1), 5.0)], axis=1)
    directions, offsets = fit_planes(wide, *_sides(codes, np.arange(2)))
    assert directions[0, 3] == 0
    assert np.isfinite(directions).all()
    plain = fit_planes(x, *_sides(codes, np.arange(2)))
    agree = (wide @ directions[0] + offsets[0] > 0) == (x @ plain[0][0] + plain[1][0] > 0)
    assert agree.mean() > 0.99


@pytest.mark.parametrize("solver", ["newton", "liblinear"])
def test_machines_with_either_solver(solver):
    random = np.random.default_rng(0)
    ethogram = Ethogram(["rest", "walk", "run"])
    codes = np.repeat(random.integers(0, 3, 60), 25)
    values = np.stack([codes + random.normal(0, 0.2, 1500), random.normal(0, 1, 1500)], axis=1)
    one = Recording("r", signals=Signals(values, ("a", "b"), 10.0), annotations={"me": Annotation.from_frames(codes, ethogram, 10.0)})
    told = create_model("svm", seconds=0.5, cutoff=0.0, solver=solver).fit(Dataset((one,), ethogram)).predict(one)
    assert (told.annotation.to_codes() == codes).mean() > 0.9
    np.testing.assert_allclose(told.probabilities.sum(axis=1), 1, atol=1e-5)


def test_an_unknown_solver_is_refused():
    with pytest.raises(EthobenchError, match="no solver 'magic'; there are newton, liblinear"):
        create_model("svm", solver="magic")
