"""Where packages of the default model are not installed, commands say what that costs and how to install them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from ethobench import load_dataset, read_recordings, write_annotation

pytestmark = pytest.mark.slow  # each command starts a process

WITHOUT = """
import sys
from importlib.machinery import PathFinder

hidden = set(sys.argv.pop(1).split(","))


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else PathFinder.find_spec(name, path, target)


sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
from ethobench.cli import demo, main
demo.SECONDS = 20.0  # the results do not matter here
main()
"""
ALL_EXTRAS, NETWORK = 'pip install "ethobench[boost,nn]"', 'pip install "ethobench[nn]"'


def ethobench_without(packages: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command as if packages, separated by commas, were not installed."""
    command = [sys.executable, "-c", WITHOUT, packages, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Tags of three animals."""
    root = tmp_path_factory.mktemp("study")
    lines = ["recording,individual,rate,signals,annotations,annotator"]
    for r in load_dataset("synthetic/tag", individuals=3, seconds=20):
        table = np.column_stack([np.arange(r.n_frames) / r.rate, r.signals.values])
        np.savetxt(root / f"{r.id}.csv", table, delimiter=",", header=",".join(["time", *r.signals.channels]), comments="", fmt="%.5f")
        write_annotation(next(iter(r.annotations.values())), root / f"{r.id}_labels.csv", "tidy", recording=r.id)
        lines.append(f"{r.id},{r.individual},{r.rate:g},{r.id}.csv,{r.id}_labels.csv,me")
    (root / "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def test_without_lightgbm_a_forest_is_trained_and_decoded(study, tmp_path):
    done = ethobench_without("lightgbm,torch", "train", study, "--no-evaluate", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    note = done.stderr.splitlines()[0]
    assert note.startswith("note: lightgbm is not installed, so the model is rf")
    assert "BANOS F1 is .69 instead of .75" in note
    assert note.endswith(ALL_EXTRAS)
    card = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    assert (card["model"], card["decode"]) == ("rf", "balanced")
    assert card["decoder"] is not None


def test_without_torch_a_warning_is_printed_first_and_stored_in_the_card(study, tmp_path):
    done = ethobench_without("torch", "train", study, "--no-evaluate", "--budget", "1s", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    note = done.stderr.splitlines()[0]
    assert note.startswith("note: torch is not installed, so auto uses boosted trees without a network")
    assert note.endswith(NETWORK)
    assert note.removeprefix("note: ") in (tmp_path / "m" / "CARD.md").read_text(encoding="utf-8")


def test_a_model_that_is_named_is_not_replaced(study, tmp_path):
    refused = ethobench_without("lightgbm", "train", study, "--model", "auto", "--no-evaluate", "--out", tmp_path / "m")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == "error: model 'auto' needs lightgbm: pip install \"ethobench[boost]\""
    named = ethobench_without("lightgbm,torch", "train", study, "--model", "dt", "--no-evaluate", "--out", tmp_path / "n")
    assert named.returncode == 0, named.stderr
    assert "not installed" not in named.stderr


@pytest.mark.parametrize(
    ("hidden", "default", "note"),
    [("nothing", "auto", ""), ("torch", "auto", NETWORK), ("lightgbm,torch", "rf", ALL_EXTRAS), ("lightgbm", "rf", ALL_EXTRAS)],
)
def test_models_shows_the_default_and_missing_packages(hidden, default, note):
    listed = ethobench_without(hidden, "models").stdout
    assert f"Without --model, ethobench train uses {default}." in listed
    assert ("Note:" in listed) == bool(note)
    assert note in " ".join(listed.rpartition("Note:")[2].split())
    rows = {line.split()[0]: line for line in listed.splitlines() if line}
    assert rows["auto"].endswith('[pip install "ethobench[boost]"]' if "lightgbm" in hidden else "(default)")
    assert rows["crnn"].endswith(f"[{NETWORK}]") == ("torch" in hidden)


def test_the_demo_runs_on_the_core_and_recommends_extras(tmp_path):
    done = ethobench_without("lightgbm,torch", "demo", "--out", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert "rf against ann1" in done.stdout
    for command in ("study make my_study/", "train my_study/ --out models/first"):
        assert f"ethobench {command}" in done.stdout
    text = " ".join(done.stdout.split())
    assert "BANOS F1 is .69 instead of .75" in text
    assert text.endswith(ALL_EXTRAS)
    assert len(read_recordings(tmp_path / "demo" / "rf.csv")) == 6
    assert {".csv", ".boris", ".annot", ".html"} == {path.suffix for path in (tmp_path / "demo").iterdir()}
