"""The MATLAB toolbox, run in GNU Octave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import ethobench as eb

pytestmark = pytest.mark.slow

TOOLBOX = Path(__file__).parent.parent / "matlab"
MEASURES = ("precision", "recall", "f1_score", "so", "tp", "ic")


@pytest.fixture
def octave(tmp_path):
    """Run a script in Octave with the toolbox on its path, and return what it prints."""
    program = shutil.which("octave-cli")
    if program is None:
        pytest.skip("the MATLAB toolbox: GNU Octave is not installed")
    command = tmp_path / "ethobench"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ethobench "$@"\n')
    command.chmod(0o755)

    def run(script: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "script.m"
        file.write_text(f"addpath('{TOOLBOX}');\n{script}\n")
        environment = {**os.environ, "ETHOBENCH_COMMAND": str(command)}
        return subprocess.run(
            [program, "--quiet", "--norc", str(file)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def cell_array(frames: pd.DataFrame) -> str:
    names = ", ".join(f"'{name}'" for name in frames.columns)
    rows = "; ".join(" ".join(map(str, row)) for row in frames.to_numpy())
    return f"[{{{names}}}; num2cell([{rows}])]"


def test_scores_of_one_recording_equal_those_of_python(octave):
    truth = pd.DataFrame({"attack": [0, 1, 1, 1, 0, 0, 1, 1], "mount": [1, 0, 0, 0, 0, 0, 0, 0]})
    pred = pd.DataFrame({"mount": [0, 0, 0, 0, 0, 0, 0, 0], "attack": [0, 0, 1, 0, 1, 0, 1, 1]})
    output = octave(f"disp(jsonencode(BANOS_score({cell_array(pred)}, {cell_array(truth)})))")
    assert output.returncode == 0, output.stderr
    expected = eb.banos.score(pred, truth)
    scores = json.loads(output.stdout)
    for behavior, values in expected.items():
        for measure in MEASURES:
            value = scores[behavior][measure]
            assert (float("nan") if value is None else value) == pytest.approx(values[measure], nan_ok=True)


@pytest.mark.data
def test_scores_of_ten_recordings_equal_those_of_python(octave, data):
    pairs = {}
    lines = ["recordings = struct();"]
    for number in range(1, 11):
        folder = data / "banos" / f"Recording_{number}"
        pairs[folder.name] = tuple(pd.read_csv(folder / f"humanAnnotation_{annotator}.csv") for annotator in (2, 1))
        for variable, annotator in (("pred", 2), ("truth", 1)):
            file = folder / f"humanAnnotation_{annotator}.csv"
            lines.append(f"{variable} = [{{'attack', 'investigation', 'mount', 'other'}}; num2cell(csvread('{file}', 1, 0))];")
        lines.append(f"recordings.{folder.name} = {{pred, truth}};")
    lines.append("[groups, overall] = BANOS_score(recordings); disp(jsonencode(struct('groups', groups, 'overall', overall)))")
    output = octave("\n".join(lines))
    assert output.returncode == 0, output.stderr
    scores = json.loads(output.stdout)
    groups, overall = eb.banos.score(pairs)
    assert scores["overall"] == pytest.approx({name: overall[name] for name in MEASURES}, rel=1e-12)
    for behavior, values in groups.items():
        assert scores["groups"][behavior] == pytest.approx({name: values[name] for name in MEASURES}, rel=1e-12)


def test_columns_that_are_not_binary_are_dropped_with_a_warning(octave):
    frames = pd.DataFrame({"attack": [0, 1, 1], "speed": [2, 3, 4]})
    output = octave(f"disp(jsonencode(BANOS_score({cell_array(frames)}, {cell_array(frames)})))")
    assert set(json.loads(output.stdout)) == {"attack"}
    assert "dropped columns with other values than 0 and 1: speed" in output.stderr


def test_errors_of_the_command_are_errors(octave):
    output = octave("ethobench_score('missing.csv', 'missing too.csv')")
    assert output.returncode != 0
    assert "missing.csv: no such file, folder or dataset" in output.stderr


def test_budgets_and_predictions(octave, tmp_path):
    study = eb.load_dataset("synthetic/tag", individuals=2, seconds=60)
    model = eb.create_model("dt").fit(study)
    model.save(tmp_path / "model's folder")
    annotation = study.recordings[0].annotation()
    eb.write_annotation(annotation, tmp_path / "labels.csv", format="tidy")
    for recording in study.recordings:
        frame = pd.DataFrame(recording.signals.values, columns=recording.signals.channels)
        frame.to_csv(tmp_path / f"{recording.id}.csv", index=False)
    files = ", ".join(f"'{recording.id}.csv'" for recording in study.recordings)
    output = octave(
        f"ethobench_predict('model''s folder', {{{files}}}, 'annotations', 'rate', {study.recordings[0].rate});\n"
        "budget = ethobench_budget('labels.csv'); fprintf('\\n%s\\n', jsonencode(budget))"
    )
    assert output.returncode == 0, output.stderr
    assert len(list((tmp_path / "annotations").glob("*.csv"))) == 2
    budget = json.loads(output.stdout.splitlines()[-1])
    assert {row["behavior"]: row["bouts"] for row in budget} == {
        behavior.name: int((annotation.behavior == code).sum()) for code, behavior in enumerate(annotation.ethogram)
    }
