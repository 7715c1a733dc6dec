"""Per-frame features as inputs of models: alone, with poses, and what is refused."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import ethobench as eb
from ethobench.core import Dataset, Poses, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.features.multiscale import compute_baseline, multiscale_features
from ethobench.models.adapt import match_skeleton
from ethobench.models.input_checks import input_present
from ethobench.models.inputs import check_inputs, input_names, select_inputs

WIDTH = 3


def make_features(recording: Recording, seed: int = 0, names: tuple[str, ...] = ()) -> Signals:
    """Return noisy indicators of the behaviors."""
    codes = recording.annotation().to_codes()
    values = np.eye(WIDTH)[np.minimum(codes, WIDTH - 1)] + np.random.default_rng(seed).normal(size=(len(codes), WIDTH))
    return Signals(values, names or tuple(f"features/{i}" for i in range(WIDTH)), float(recording.rate or 1))


def map_recordings(data: Dataset, change: Callable[[Recording], Recording]) -> Dataset:
    return dataclasses.replace(data, recordings=tuple(map(change, data.recordings)))


@pytest.fixture(scope="module")
def poses() -> Dataset:
    return eb.load_dataset("synthetic/pose", individuals=3, seconds=30)


@pytest.fixture(scope="module")
def both(poses: Dataset) -> Dataset:
    return map_recordings(poses, lambda r: r.copy(features=make_features(r)))


@pytest.fixture(scope="module")
def alone(poses: Dataset) -> Dataset:
    return map_recordings(poses, lambda r: r.copy(signals=make_features(r)))


def test_inputs_list_features_after_keypoints_and_select_them(both: Dataset) -> None:
    recording = both.recordings[0]
    names = input_names(recording)
    assert names[-WIDTH:] == ("features/0", "features/1", "features/2")
    data = select_inputs(recording, names)
    assert isinstance(data, Poses)
    assert data.extra is recording.features
    assert select_inputs(recording, names[:-WIDTH]).extra is None
    piece = data[10:20]
    assert piece.extra is not None
    assert np.array_equal(piece.extra.values, recording.features.values[10:20])


def test_features_from_the_reader_of_a_format_are_not_used(poses: Dataset) -> None:
    recording = poses.recordings[0]
    other = recording.copy(features=make_features(recording, names=("a", "b", "c")))
    assert input_names(other) == input_names(recording)


def test_multiscale_features_of_both_are_those_of_each(both: Dataset) -> None:
    recording = both.recordings[0]
    rate = float(recording.rate or 1)
    features = recording.features
    assert features is not None
    assert recording.signals is not None
    joined, names = multiscale_features(select_inputs(recording, input_names(recording)), rate, every=5)
    of_poses, pose_names = multiscale_features(recording.signals, rate, every=5)
    of_features, feature_names = multiscale_features(features, rate, every=5)
    assert {*names} == {*pose_names, *feature_names}
    assert len(names) == len(pose_names) + len(feature_names)
    columns = [names.index(name) for name in (*pose_names, *feature_names)]
    assert np.array_equal(joined[:, columns], np.hstack([of_poses, of_features]), equal_nan=True)
    assert compute_baseline(features, rate).orientations == {}


def test_a_frame_with_features_has_input_where_nothing_is_tracked() -> None:
    positions = np.zeros((100, 1, 1, 2)) + 5.0
    positions[20:80] = np.nan
    values = np.ones((100, 1))
    values[40:100] = np.nan
    poses = Poses(positions, np.ones((100, 1, 1)), ("m",), ("nose",), 10.0)
    present = input_present(dataclasses.replace(poses, extra=Signals(values, ("features/0",), 10.0)), 10.0)[:, 0]
    assert present[:40].all()
    assert not present[40:80].any()
    assert present[80:].all()
    assert not input_present(poses, 10.0)[20:80].any()


@pytest.mark.parametrize("change", ["missing", "width", "order", "names"])
def test_other_features_are_refused(both: Dataset, poses: Dataset, change: str) -> None:
    recording, inputs = both.recordings[0], input_names(both.recordings[0])
    features = make_features(recording)
    other = {
        "missing": None,
        "width": Signals(features.values[:, :2], features.channels[:2], features.rate),
        "order": Signals(features.values, features.channels[::-1], features.rate),
        "names": Signals(features.values, ("features/x", *features.channels[1:]), features.rate),
    }[change]
    message = {
        "missing": "has no per-frame features, but the model was trained on 3",
        "width": "has 2 features, but the model was trained on 3",
        "order": "in another order .* column 1 is '2', not '0'",
        "names": "are not those .* column 1 is 'x', not '0'",
    }[change]
    check_inputs(recording, inputs)
    with pytest.raises(MismatchError, match=message):
        check_inputs(recording.copy(features=other), inputs)


def test_training_refuses_recordings_of_which_some_have_features(both: Dataset, poses: Dataset) -> None:
    mixed = dataclasses.replace(both, recordings=(both.recordings[0], *poses.recordings[1:]))
    with pytest.raises(MismatchError, match="2 of 3 recordings have no per-frame features, such as 'animal02'"):
        eb.create_model("boost", rounds=2).fit(mixed)


def test_boost_learns_from_features_alone_and_with_poses_and_is_saved(both: Dataset, alone: Dataset, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name, data in (("both", both), ("alone", alone)):
        model = eb.create_model("boost", rounds=5).fit(data.select(recordings=["animal01", "animal02"]))
        assert model.inputs[-WIDTH:] == ("features/0", "features/1", "features/2")
        model.save(tmp_path / name)
        loaded = eb.load_model(tmp_path / name)
        recording = data["animal03"]
        assert np.array_equal(loaded.predict(recording).probabilities, model.predict(recording).probabilities)
        slower = map_recordings(data, lambda r: r.copy(signals=partial_rate(r.signals), features=partial_rate(r.features), rate=15.0))
        with pytest.warns(UserWarning, match="resampled"):
            assert len(loaded.predict(slower["animal03"].copy(annotations={}, n_frames=None)).annotation) >= 0
    with pytest.raises(MismatchError, match="no per-frame features"):
        eb.load_model(tmp_path / "both").predict(both["animal03"].copy(features=None))


def test_a_model_of_features_alone_uses_those_of_recordings_with_poses(both: Dataset, alone: Dataset, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = eb.create_model("boost", rounds=5).fit(alone.select(recordings=["animal01", "animal02"]))
    assert np.array_equal(model.predict(both["animal03"]).probabilities, model.predict(alone["animal03"]).probabilities)
    model.save(tmp_path / "model")
    card = (tmp_path / "model" / "CARD.md").read_text(encoding="utf-8")
    assert "inputs: features/0, features/1, features/2 at 30.0 Hz" in card
    assert "features in another order or number, or with other names, are refused" in card


def test_animals_are_not_matched_for_a_model_of_channels(poses: Dataset) -> None:
    with pytest.raises(MismatchError, match=r"has poses, but the model was trained on channels \(AccX, AccY\)"):
        match_skeleton(poses.recordings[0], ["AccX", "AccY", "features/0"], {}, {})
    assert match_skeleton(poses.recordings[0], ["features/0"], {}, {}) is poses.recordings[0]


def partial_rate(data: Signals | Poses | None) -> Signals | Poses | None:
    """Return every second frame."""
    return None if data is None else dataclasses.replace(data[::2], rate=15.0)


@pytest.mark.slow
def test_tcn_learns_from_features(both: Dataset, alone: Dataset) -> None:
    for data in (both, alone):
        model = eb.create_model("tcn", updates=25, width=8, levels=3).fit(data)
        assert model.predict(data.recordings[0]).n_frames == data.recordings[0].n_frames
    with pytest.raises(EthobenchError, match="causal=True uses poses or channels only"):
        eb.create_model("tcn", updates=1, causal=True).fit(both)


def test_long_gaps_of_features_alone_are_not_predicted(alone: Dataset) -> None:
    recording = alone.recordings[2]
    values = np.array(recording.signals.values)  # type: ignore[union-attr]
    values[300:600] = np.nan
    model = eb.create_model("boost", rounds=2).fit(alone.select(recordings=["animal01", "animal02"]))
    gap = recording.copy(signals=Signals(values, recording.signals.channels, 30.0))  # type: ignore[union-attr]
    observed = ~np.isnan(model.predict(gap).probabilities).any(axis=1)
    assert not observed[300:600].any()
    assert observed[:300].all()
    assert observed[600:].all()


def test_models_without_features_warn(both: Dataset) -> None:
    with pytest.warns(UserWarning, match="'dt' uses poses or channels only, so the features of 3 recordings are not used"):
        model = eb.create_model("dt").fit(both)
    assert not [name for name in model.inputs if name.startswith("features/")]
