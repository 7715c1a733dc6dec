"""The command `agreement`: its table, CSV and JSON have the values of `eb.agreement`."""

from __future__ import annotations

import csv
import json
import math

import pytest

import ethobench as eb
from tests.cli.running import ethobench
from tests.metrics.examples import random_annotation

LONG_NAMES = {"a": "investigation of the novel object with nose contact", "b": "locomotion_along_the_wall_of_the_open_field_arena"}
NAMES = ("anna", "ben", "carla_the_second_observer_of_the_lab")


@pytest.fixture(scope="module")
def annotations() -> dict[str, dict[str, eb.Annotation]]:
    """Return six recordings by three annotators who are late by 1, 2 and 3 frames."""
    truths = {f"mouse{k}_day1_open_field_camera2": random_annotation(k).rename(LONG_NAMES) for k in range(6)}
    return {name: {who: truth.shift(k + 1) for k, who in enumerate(NAMES)} for name, truth in truths.items()}


@pytest.fixture(scope="module")
def folders(annotations, tmp_path_factory):
    root = tmp_path_factory.mktemp("annotators")
    for recording, group in annotations.items():
        for who, annotation in group.items():
            eb.write_annotation(annotation, root / who / f"{recording}.csv")
    return [root / who for who in NAMES]


@pytest.mark.slow
def test_the_csv_file_has_every_pair_and_recording(folders, annotations, tmp_path):
    path = tmp_path / "new folder" / "agreement.csv"
    done = ethobench("agreement", *folders, "--csv", path)
    assert done.returncode == 0, done.stderr
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = eb.agreement(annotations)
    assert len(rows) == len(expected.pairs) + len(expected.recordings) == 3 * 4 * (1 + 6)
    for row, values in zip(rows, [*expected.pairs, *expected.recordings], strict=True):
        assert row["recording"] == values.get("recording", "")
        assert [row[key] for key in ("annotator_1", "annotator_2", "behavior")] == [
            values[key] for key in ("annotator_1", "annotator_2", "behavior")
        ]
        assert int(row["frames"]) == values["frames"]
        for key in ("kappa", "f1", "agreement", "kappa_low", "kappa_high"):
            value = values.get(key)
            assert (float(row[key]) if row[key] else None) == (None if value is None or math.isnan(value) else pytest.approx(value))


def test_an_existing_csv_file_is_not_overwritten(folders, tmp_path):
    path = tmp_path / "agreement.csv"
    path.write_text("mine", encoding="utf-8")
    done = ethobench("agreement", *folders, "--csv", path)
    assert done.returncode == 1
    assert "exists" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"


def test_json_has_the_values_of_python(folders, annotations):
    done = ethobench("agreement", *folders, "--json", "--behaviors", LONG_NAMES["a"])
    assert json.loads(done.stdout) == json.loads(json.dumps(eb.agreement(annotations, behaviors=[LONG_NAMES["a"]]).to_dict()))


@pytest.mark.parametrize("per", ["behavior", "pair", "recording"])
def test_long_names_fit_80_columns(folders, per):
    done = ethobench("agreement", *folders, "--per", per, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "kappa" in done.stdout
