"""Datasets: selection, groups that must not be split, and lookup."""

from __future__ import annotations

import numpy as np
import pytest

from ethobench.core import Annotation, Dataset, Ethogram, Recording
from ethobench.core.errors import EthobenchError, NotFoundError

ETHOGRAM = Ethogram(["rest", "walk"])


def annotation(n: int = 20) -> Annotation:
    return Annotation.from_frames(np.arange(n) // 5 % 2, ETHOGRAM, 10)


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


def test_datasets_look_up_recordings_and_refuse_duplicates():
    data = dataset()
    assert data["r3"].individual == "e"
    assert (len(data), data.n_frames, data.individuals) == (5, 100, ("a", "b;c", "c;d", "e"))
    with pytest.raises(NotFoundError, match="no recording 'x' in toy"):
        data["x"]
    with pytest.raises(EthobenchError, match="duplicates: r"):
        Dataset((Recording("r"), Recording("r")), ETHOGRAM)


def test_individuals_with_similar_names_are_different_groups():
    data = Dataset((Recording("r1", individual="a;"), Recording("r2", individual="b;")), Ethogram(["x"]))
    assert len({*data.groups().values()}) == 2
    assert len(Dataset((Recording("r1"),), Ethogram(["x"]), folds={"r1": 1}).select(fold=np.int64(1))) == 1


def test_recordings_are_found_by_id_and_by_identity():
    data = dataset()
    assert "r3" in data
    assert "x" not in data
    assert data["r3"] in data
    assert Recording("r3") not in data


def test_views_of_one_recording_are_one_group():
    views = tuple(Recording(f"r|{name}", individual="a", source_id="r") for name in ("ann", "ben"))
    data = Dataset((*views, Recording("s", individual="a")), ETHOGRAM)
    assert data.groups("recording") == {"r|ann": "r", "r|ben": "r", "s": "s"}
    assert {*data.groups().values()} == {"a"}


def test_notebooks_show_the_first_recordings():
    html = dataset()._repr_html_()
    assert html.count("<tr>") == 6
    assert "<td>b;c</td>" in html
    many = Dataset(tuple(Recording(f"r{i}") for i in range(50)), ETHOGRAM)
    assert many._repr_html_().count("<tr>") == 21
    assert "(the first 20)" in many._repr_html_()


def test_behaviors_are_renamed_in_all_annotations():
    data = dataset().rename({"walk": "run", "fly": "swim"})
    assert data.ethogram.names == ("rest", "run")
    assert all(r.annotation().ethogram.names == ("rest", "run") for r in data)
    assert data["r3"].annotation().spans("run").start.tolist() == [5, 15]


def test_one_annotator_is_selected_with_the_recordings_that_have_it():
    recordings = [
        Recording("both", annotations={"me": annotation(), "you": annotation(10)}),
        Recording("one", annotations={"me": annotation()}),
    ]
    selected = Dataset(tuple(recordings), ETHOGRAM).select(annotator="you")
    assert [r.id for r in selected] == ["both"]
    assert [*selected["both"].annotations] == ["you"]


@pytest.mark.parametrize(("n", "listed"), [(1, "r0"), (5, "r0, r1, r2, r3, r4"), (6, "r0, r1, r2, r3, r4, ...")])
def test_an_unknown_recording_is_refused_with_the_first_five(n, listed):
    data = Dataset(tuple(Recording(f"r{k}") for k in range(n)), Ethogram([]), "study")
    with pytest.raises(NotFoundError) as error:
        data["x"]
    assert str(error.value) == f"no recording 'x' in study ({n} recordings: {listed})"
    with pytest.raises(NotFoundError, match="no recording y in the dataset; available: none"):
        Dataset((), Ethogram([])).select(recordings="y")
