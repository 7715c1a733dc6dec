"""Recordings, datasets, signals, predictions and the registry."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.core import Annotation, Dataset, Ethogram, Poses, Prediction, Recording, Signals
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.registry import Registry
from ethobench.formats import Format, formats

ETHOGRAM = Ethogram(["rest", "walk"])


def annotation(n: int = 20) -> Annotation:
    return Annotation.from_frames(np.arange(n) // 5 % 2, ETHOGRAM, 10)


def test_signals_are_loaded_once_and_only_when_used():
    calls = []

    def load() -> Signals:
        calls.append(1)
        return Signals(np.zeros((20, 3)), ("x", "y", "z"), 10)

    recording = Recording("r", signals=load, annotations={"me": annotation()})
    copy = recording.copy(individual="b")
    assert not calls
    assert recording.signals is recording.signals
    assert len(calls) == 1
    assert copy.individual == "b"
    assert len(copy.signals) == 20
    assert len(calls) == 2


def test_rate_and_length_come_from_what_is_known():
    assert Recording("r", annotations={"me": annotation()}).n_frames == 20
    poses = Poses(np.zeros((7, 1, 2, 2)), np.ones((7, 1, 2)), ("m",), ("nose", "tail"), 25)
    recording = Recording("r", signals=poses)
    assert (recording.rate, recording.n_frames, recording.individual) == (25, 7, "r")


def test_several_annotators_must_be_named():
    recording = Recording("r", annotations={"ann1": annotation(), "ann2": annotation()})
    with pytest.raises(EthobenchError, match="choose one of: ann1, ann2"):
        recording.annotation()
    assert recording.annotation("ann2") is recording.annotations["ann2"]
    with pytest.raises(NotFoundError, match="no annotator 'x'"):
        recording.annotation("x")
    with pytest.raises(NotFoundError, match="has no annotation"):
        Recording("r").annotation()


def dataset() -> Dataset:
    recordings = [
        Recording(f"r{i}", individual=who, annotations={"me": annotation()}) for i, who in enumerate(["a", "b;c", "c;d", "e", "a"])
    ]
    return Dataset(tuple(recordings), ETHOGRAM, "toy", folds={f"r{i}": i % 2 for i in range(5)}, splits={"r0": "test"})


def test_select_by_everything():
    data = dataset()
    assert [r.id for r in data.select(fold=1)] == ["r1", "r3"]
    assert [r.id for r in data.select(fold=[0, 1], individual="a")] == ["r0", "r4"]
    assert [r.id for r in data.select(split="test")] == ["r0"]
    assert data.select(fold=0).folds == {"r0": 0, "r2": 0, "r4": 0}
    one = data.select(behaviors=["walk"])
    assert one.ethogram.names == ("walk",)
    assert one["r0"].annotation().to_frames().shape == (20, 1)
    assert data["r0"].annotation().to_frames().shape == (20, 2)
    for wrong in ({"fold": 9}, {"individual": "zz"}, {"annotator": "nobody"}, {"split": "train"}):
        with pytest.raises(NotFoundError):
            data.select(**wrong)


def test_recordings_that_share_an_animal_form_one_group():
    groups = dataset().groups()
    assert groups["r1"] == groups["r2"]
    assert groups["r0"] == groups["r4"]
    assert len(set(groups.values())) == 3


def test_datasets_find_recordings_and_refuse_doubles():
    data = dataset()
    assert data["r3"].individual == "e"
    assert (len(data), data.n_frames, data.individuals) == (5, 100, ("a", "b;c", "c;d", "e"))
    with pytest.raises(NotFoundError, match="no recording 'x' in toy"):
        data["x"]
    with pytest.raises(EthobenchError, match="duplicates: r"):
        Dataset((Recording("r"), Recording("r")), ETHOGRAM)


def test_signals_and_poses_check_their_shapes():
    with pytest.raises(MismatchError):
        Signals(np.zeros((5, 2)), ("x",), 10)
    with pytest.raises(MismatchError):
        Poses(np.zeros((5, 1, 2, 4)), np.zeros((5, 1, 2)), ("m",), ("a", "b"))
    poses = Poses(np.full((4, 1, 2, 3), np.nan), np.zeros((4, 1, 2)), ("m",), ("a", "b"), 10)
    assert poses.missing == 1
    assert poses.to_signals().channels == ("m/a/x", "m/a/y", "m/a/z", "m/b/x", "m/b/y", "m/b/z")
    with pytest.raises(NotFoundError, match="no channel 'q'"):
        Signals(np.zeros((5, 1)), ("x",), 10).channel("q")


def test_predictions_decode():
    exclusive = Prediction([[0.6, 0.4], [0.2, 0.3], [np.nan, np.nan]], ETHOGRAM, 10)
    assert exclusive.exclusive
    assert exclusive.annotation.to_codes().tolist() == [0, 2, -1]
    overlapping = Prediction([[0.9, 0.8], [0.1, 0.6]], ETHOGRAM, 10)
    assert not overlapping.exclusive
    assert overlapping.annotation.to_frames().tolist() == [[True, True], [False, True]]
    implicit = Prediction([[0.1, 0.2, 0.7]], ETHOGRAM, 10)
    assert implicit.annotation.to_codes().tolist() == [2]
    with pytest.raises(EthobenchError, match="between 0 and 1"):
        Prediction([[2.0, 0.0]], ETHOGRAM, 10)
    with pytest.raises(MismatchError):
        Prediction([[0.5]], ETHOGRAM, 10)
    with pytest.raises(MismatchError, match="frames"):
        Prediction([[0.5, 0.5]], ETHOGRAM, 10, annotation=annotation())


def test_registry_lists_without_importing_and_suggests():
    assert "tidy" in formats
    assert isinstance(formats["tidy"], Format)
    with pytest.raises(NotFoundError, match="did you mean 'tidy'"):
        formats["tidi"]
    registry: Registry[object] = Registry("thing", {"ethogram": "ethobench.core.ethogram"})
    assert registry.names() == ("ethogram",)
    with pytest.raises(EthobenchError, match="does not register a thing"):
        registry["ethogram"]


def test_annotators_in_order_of_preference():
    ethogram = Ethogram(["a", "b"])
    anna, carla = (Annotation.from_frames(codes, ethogram, 1) for codes in ([0, 1], [1, 1]))
    both, one = Recording("1", annotations={"anna": anna, "carla": carla}), Recording("2", annotations={"anna": anna})
    assert both.annotation("carla, anna") is carla
    assert one.annotation("carla,anna") is anna
    with pytest.raises(NotFoundError, match="no annotator 'ben,dora'"):
        one.annotation("ben,dora")


def test_individuals_with_similar_names_are_different_groups():
    data = Dataset((Recording("r1", individual="a;"), Recording("r2", individual="b;")), Ethogram(["x"]))
    assert len({*data.groups().values()}) == 2
    assert len(Dataset((Recording("r1"),), Ethogram(["x"]), folds={"r1": 1}).select(fold=np.int64(1))) == 1


def test_probabilities_must_be_numbers():
    with pytest.raises(EthobenchError, match="numbers"):
        Prediction([["a"]], Ethogram(["x"]), 10)
