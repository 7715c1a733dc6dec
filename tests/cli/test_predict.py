"""Command `predict`: output, exit codes and options; `tests/runs/test_batch_prediction.py` has the rest."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from ethobench import create_model, load_dataset

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]


def predict(*arguments: object) -> Result:
    """Run the command in this process, which spares the start of another."""
    from ethobench.cli import app

    return CliRunner().invoke(app, ["predict", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("lab")
    *training, unseen = load_dataset("synthetic/tag", individuals=3, seconds=40)
    create_model("dt").fit(load_dataset("synthetic/tag", individuals=3, seconds=40).select(recordings=[r.id for r in training])).save(
        root / "model"
    )
    (root / "new").mkdir()
    for name in ("m1", "m2", "m3"):
        table = np.column_stack([np.arange(unseen.n_frames) / unseen.rate, unseen.signals.values])
        header = ",".join(["time", *unseen.signals.channels])
        np.savetxt(root / "new" / f"{name}.csv", table, delimiter=",", header=header, comments="", fmt="%.6f")
    return root


def test_a_line_for_each_recording_and_a_summary(lab, tmp_path):
    done = predict(lab / "model", lab / "new", "--out", tmp_path / "p")
    *lines, summary = done.stdout.splitlines()
    assert done.exit_code == 0
    assert [re.sub(r"\d+ bouts", "N bouts", line) for line in lines] == [f"{k} of 3: m{k}.csv, N bouts in 40.0 s" for k in (1, 2, 3)]
    assert summary == f"3 recordings predicted, 0 failed; annotations: {tmp_path / 'p'}"


def test_failures_are_listed_with_reasons_and_give_exit_code_1(lab, tmp_path):
    shutil.copytree(lab / "new", tmp_path / "new")
    (tmp_path / "new" / "m2.csv").write_bytes(b"")
    done = predict(lab / "model", tmp_path / "new", tmp_path / "new" / "m1.csv", "--out", tmp_path / "p")
    assert done.exit_code == 1
    assert "2 recordings predicted, 1 failed" in done.stdout
    assert done.stderr.splitlines() == ["failed: m2.csv: the file is empty (0 bytes)"]
    assert sorted(path.name for path in (tmp_path / "p").glob("*.csv")) == ["m1.csv", "m3.csv"]


def test_json_alone_is_printed(lab, tmp_path):
    shutil.copytree(lab / "new", tmp_path / "new")
    (tmp_path / "new" / "m2.csv").write_bytes(b"")
    done = predict(lab / "model", tmp_path / "new", "--out", tmp_path / "p", "--json")
    content = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (content["recordings"], [entry["file"] for entry in content["annotations"]]) == (3, ["m1.csv", "m3.csv"])
    assert content["failures"] == [{"input": "m2.csv", "error": "the file is empty (0 bytes)"}]
    assert content["annotations"][0]["seconds"] == 40.0
    assert not content["annotations"][0]["reused"]


def test_a_terminal_shows_a_bar_with_the_remaining_time(lab, tmp_path):
    main, terminal = pty.openpty()
    call = [sys.executable, "-m", "ethobench", "predict", str(lab / "model"), str(lab / "new"), "--out", str(tmp_path / "p")]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=terminal, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}) as process:
        os.close(terminal)
        shown = b""
        try:
            while data := os.read(main, 4096):
                shown += data
        except OSError:  # the terminal was closed
            pass
        output = process.stdout.read().decode()
    os.close(main)
    assert process.returncode == 0
    assert b"3/3" in shown
    assert b"left" in shown
    assert output.startswith("3 recordings predicted, 0 failed")


def test_the_script_of_a_batch_system(lab, tmp_path):
    arguments = (lab / "model", lab / "new", "--out", tmp_path / "p", "--show-script")
    script = predict(*arguments, "--cluster", "slurm", "--queue", "short", "--cores", 4)
    assert "#SBATCH -p short" in script.stdout
    assert str(tmp_path / "p" / ".ethobench-predictions" / "certificates") in script.stdout
    assert not (tmp_path / "p").exists()
    assert predict(*arguments).exit_code == 2
    both = predict(*arguments[:-1], "--cluster", "local", "--scheduler", "tls://127.0.0.1:9")
    assert both.exit_code == 2
