"""BEBE folders and predictions."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, load_dataset, read_annotation, write_annotation
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError
from ethobench.formats import detect, read_recordings

METADATA = """\
clip_column_names: [AccX, AccY, AccZ, Depth, individual_id, label]
clip_ids: [one, two]
clip_id_to_individual_id: {one: 7, two: 8}
clip_ids_per_fold: {0: [one], 1: [two]}
individuals_per_fold: {0: [7], 1: [8]}
label_names: [unknown, rest, run]
sr: 25
dataset_name: toy
mean_overall_dur_sec: 3.5
n_folds: 2
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    root = tmp_path / "toy"
    (root / "clip_data").mkdir(parents=True)
    (root / "dataset_metadata.yaml").write_text(METADATA, encoding="utf-8")
    labels = [0, 0, 1, 1, 1, 2, 0, 2]
    for clip, who in (("one", 7), ("two", 8)):
        rows = [f"0.{i},1.5,-2,{i},{who},{label}" for i, label in enumerate(labels)]
        (root / "clip_data" / f"{clip}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return root


def test_folder_clip_and_metadata_file_are_all_recognized(folder):
    for path in (folder, folder / "dataset_metadata.yaml", folder / "clip_data" / "two.csv"):
        assert detect(path).name == "bebe"
    assert [r.id for r in read_recordings(folder, warn=False)] == ["one", "two"]
    assert [r.id for r in read_recordings(folder / "clip_data" / "two.csv", warn=False)] == ["two"]
    assert [r.id for r in read_recordings(folder, entry="one", warn=False)] == ["one"]
    with pytest.raises(NotFoundError):
        read_recordings(folder, entry="three", warn=False)


def test_unknown_is_unobserved(folder):
    recording = read_recordings(folder, warn=False)[0]
    annotation = recording.annotation()
    assert annotation.ethogram.names == ("rest", "run")
    assert annotation.to_codes().tolist() == [-1, -1, 0, 0, 0, 1, -1, 1]
    assert (recording.individual, recording.rate) == ("7", 25)
    assert recording.signals.channels == ("AccX", "AccY", "AccZ", "Depth")
    assert recording.signals.values[3].tolist() == [0.3, 1.5, -2, 3]


def test_recordings_can_be_pickled_before_their_signals_are_loaded(folder):
    recording = pickle.loads(pickle.dumps(read_recordings(folder, warn=False)[0]))
    assert recording.signals.values[3].tolist() == [0.3, 1.5, -2, 3]


def test_the_second_reading_comes_from_the_cache(folder, monkeypatch):
    first = read_recordings(folder, warn=False)[0]
    from ethobench.formats import bebe

    monkeypatch.setattr(bebe, "_parse", lambda *_: pytest.fail("parsed again"))
    again = read_recordings(folder, warn=False)[0]
    assert again.annotation() == first.annotation()
    assert np.array_equal(again.signals.values, first.signals.values)
    assert isinstance(again.signals.values, np.memmap)


def test_a_changed_file_is_parsed_again(folder):
    read_recordings(folder, warn=False)
    path = folder / "clip_data" / "one.csv"
    path.write_text(path.read_text(encoding="utf-8") + "9,9,9,9,7,2\n", encoding="utf-8")
    assert read_recordings(folder, warn=False)[0].n_frames == 9


def test_dataset_has_folds(folder):
    data = load_dataset(folder)
    assert data.folds == {"one": 0, "two": 1}
    assert data.individuals == ("7", "8")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "clip_data" / "two.csv").unlink(), "missing: two|the file is missing"),
        (lambda f: (f / "clip_data" / "three.csv").write_text("1,2,3,4,5,1\n"), "not listed: three"),
        (lambda f: (f / "clip_data" / "one.csv").write_text("1,2,3\n"), "3 columns"),
        (lambda f: (f / "clip_data" / "one.csv").write_text("a,b,c,d,e,f\n"), "only numbers"),
        (lambda f: (f / "clip_data" / "one.csv").write_text("1,2,3,4,7,9\n"), "label 9 is not one of the 3"),
        (lambda f: (f / "clip_data" / "one.csv").write_text(""), "empty"),
        (lambda f: (f / "dataset_metadata.yaml").write_text("a: [1\n"), "not valid YAML"),
        (lambda f: (f / "dataset_metadata.yaml").write_text("sr: 25\n"), "clip_column_names"),
        (lambda f: (f / "dataset_metadata.yaml").write_text("hello"), "expected a mapping"),
        (lambda f: (f / "dataset_metadata.yaml").write_text(METADATA.replace("[one, two]", "[../x, two]")), "plain name|differ"),
        (lambda f: (f / "dataset_metadata.yaml").write_text(METADATA.replace("1: [two]", "1: []")), "without a fold: two"),
        (lambda f: (f / "dataset_metadata.yaml").write_text("!!python/object/apply:os.system ['true']"), "YAML|described"),
    ],
)
def test_damage_is_reported(folder, break_it, message):
    break_it(folder)
    with pytest.raises(FormatError, match=message):
        load_dataset(folder)


def test_a_clip_id_that_is_not_a_file_name_is_refused(folder):
    (folder / "dataset_metadata.yaml").write_text(METADATA.replace("one", "a" * 300), encoding="utf-8")
    with pytest.raises(FormatError, match=r"dataset_metadata.yaml, clip_ids: the clip id 'aaa.*too long"):
        read_recordings(folder, "bebe", warn=False)


def test_round_trip_of_predictions(tmp_path):
    truth = Annotation.from_frames([0, 0, 1, 1, -1, 1], ["rest", "run"], 25, unobserved=-1)
    path = tmp_path / "predictions" / "one.csv"
    notes = write_annotation(truth, path, "bebe_predictions")
    assert path.read_text(encoding="utf-8").split() == ["1", "1", "2", "2", "0", "2"]
    assert "1 rest, 2 run" in str(notes[-1])
    assert detect(path).name == "bebe_predictions"
    assert read_annotation(path, rate=25, behaviors=["rest", "run"]) == truth
    (plain,) = read_recordings(path, warn=False)
    assert plain.annotation().ethogram.names == ("class_1", "class_2")
    with pytest.raises(FormatError, match="codes from"):
        read_recordings(path, behaviors=["rest"], warn=False)
    with pytest.raises(EthobenchError, match="observed frame, but 4 have none"):
        write_annotation(Annotation.from_bouts([0], [2], ["rest"], ["rest", "run"], 25, 6), tmp_path / "x.bebe.csv")
