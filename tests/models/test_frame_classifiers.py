"""Frame classifiers: overlapping behaviors, missing values, blocks and pieces of long recordings, order of channels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ethobench import Annotation, Dataset, Ethogram, Recording, Signals, create_model, load_dataset
from ethobench.models import frame_classifiers, pieces

ETHOGRAM = Ethogram(["rest", "run"])


def recording(codes, values, unobserved=None, rate: float = 10.0) -> Recording:
    truth = Annotation.from_frames(codes, ETHOGRAM, rate, unobserved=unobserved)
    channels = tuple(f"c{k}" for k in range(values.shape[1]))
    return Recording("r", signals=Signals(values, channels, rate), annotations={"me": truth})


def test_blocks_and_pieces_give_the_same_predictions(monkeypatch):
    data = load_dataset("synthetic/tag", individuals=2, seconds=120)
    model = create_model("rf", trees=5, seconds=2.0).fit(data)
    entire = model.predict(data.recordings[0])
    monkeypatch.setattr(frame_classifiers, "BLOCK_FRAMES", 700)
    in_blocks = model.predict(data.recordings[0])
    assert np.allclose(in_blocks.probabilities, entire.probabilities, atol=0.21)
    assert (in_blocks.annotation.to_codes() == entire.annotation.to_codes()).mean() > 0.999
    monkeypatch.setattr(pieces, "MAX_PIECE_FRAMES", 900)
    assert (model.annotate(data.recordings[0]).to_codes() == entire.annotation.to_codes()).mean() > 0.999


@pytest.mark.parametrize("name", ["rf", "dt", "svm"])
def test_overlapping_behaviors(name):
    random = np.random.default_rng(0)
    both = np.repeat(random.integers(0, 2, (40, 2)), 25, axis=0).astype(bool)
    values = both + random.normal(0, 0.2, (1000, 2))
    one = recording(both, values)
    assert not one.annotations["me"].is_exclusive
    prediction = create_model(name, seconds=0.5, cutoff=0.0).fit(Dataset((one,), ETHOGRAM)).predict(one)
    assert (prediction.annotation.to_frames() == both).mean() > 0.9


@pytest.mark.parametrize("name", ["rf", "dt", "svm"])
def test_missing_values_are_unobserved(name):
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 40), 25)
    values = np.stack([codes + random.normal(0, 0.2, 1000), random.normal(0, 1, 1000)], axis=1)
    values[200:260] = np.nan
    values[600:, 1] = np.nan
    one = recording(codes, values)
    with pytest.warns(UserWarning, match=r"s of annotations in 1 of 1 recordings are not used for training"):
        prediction = create_model(name, seconds=0.5, cutoff=0.0).fit(Dataset((one,), ETHOGRAM)).predict(one)
    assert np.flatnonzero(~prediction.predictable).tolist() == [*range(200, 260)]
    assert (prediction.annotation.to_codes() == codes)[prediction.predictable].mean() > 0.85


def test_poses_are_subsampled_for_training_and_tags_are_not(monkeypatch):
    shapes = []
    monkeypatch.setattr(frame_classifiers.FrameClassifier, "_fit_estimator", lambda model, x, y: shapes.append((len(x), len(y))))
    poses = load_dataset("synthetic/pose", individuals=1, seconds=30)
    tags = load_dataset("synthetic/tag", individuals=1, seconds=30)
    for data in (poses, tags):
        create_model("rf").fit(data)
    rate = poses.recordings[0].rate
    assert rate == 30
    assert shapes[0] == (300, 300)
    assert shapes[1] == (tags.recordings[0].n_frames,) * 2


@pytest.mark.parametrize("name", ["rf", "dt", "svm", "kmeans", "wavelet_dt"])
def test_channels_are_matched_by_name(name):
    random = np.random.default_rng(0)
    codes = np.repeat(random.integers(0, 2, 40), 25)
    values = np.stack([codes + random.normal(0, 0.2, 1000), random.normal(0, 1, 1000)], axis=1)
    one = recording(codes, values)
    params = {"seconds": 0.5, "cutoff": 0.0} if name in ("rf", "dt", "svm") else {}
    model = create_model(name, **params).fit(Dataset((one,), ETHOGRAM))
    turned = one.copy(signals=Signals(np.column_stack([values[:, ::-1], random.normal(size=1000)]), ("c1", "c0", "extra"), 10.0))
    np.testing.assert_allclose(model.predict(turned).probabilities, model.predict(one).probabilities, atol=1e-5)


def test_behavior_that_never_stops_is_always_predicted():
    random = np.random.default_rng(0)
    both = np.stack([np.ones(500, dtype=bool), np.repeat(random.integers(0, 2, 20), 25).astype(bool)], axis=1)
    one = recording(both, both + random.normal(0, 0.2, (500, 2)))
    for name in ("rf", "dt"):
        prediction = create_model(name, seconds=0.5, cutoff=0.0).fit(Dataset((one,), ETHOGRAM)).predict(one)
        assert (prediction.probabilities[:, 0] == 1).all()


@pytest.mark.slow
def test_loading_imports_no_library_that_the_model_does_not_need(tmp_path):
    create_model("dt").fit(load_dataset("synthetic/tag", individuals=2, seconds=10)).save(tmp_path / "model")
    code = (
        f"import sys, ethobench; ethobench.load_model({str(tmp_path / 'model')!r}); "
        "print([name for name in ('torch', 'dask') if name in sys.modules]); import sklearn.externals.array_api_compat.numpy"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
