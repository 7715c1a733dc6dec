"""`train`, `predict`, `models`: from annotated recordings to annotations of new ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import load_dataset, load_model, read_recordings
from tests.cli.test_cli import ethobench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Signals and labels of four animals as a biologist would keep them."""
    from ethobench import write_annotation

    root = tmp_path_factory.mktemp("study")
    lines = ["recording,individual,rate,signals,annotations,annotator"]
    for r in load_dataset("synthetic/tag", individuals=4, seconds=60):
        table = np.column_stack([np.arange(r.n_frames) / r.rate, r.signals.values])
        header = ",".join(["time", *r.signals.channels])
        np.savetxt(root / f"{r.id}.csv", table, delimiter=",", header=header, comments="", fmt="%.6f")
        write_annotation(next(iter(r.annotations.values())), root / f"{r.id}_labels.csv", "tidy", recording=r.id)
        lines.append(f"{r.id},{r.individual},{r.rate:g},{r.id}.csv,{r.id}_labels.csv,me")
    (root / "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def test_train_then_predict(study, tmp_path):
    made = ethobench("train", study, "--model", "rf", "--param", "trees=10", "--out", tmp_path / "model")
    assert made.returncode == 0, made.stderr
    assert "f1" in made.stdout
    card = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert 0.3 < card["evaluation"]["figures"]["f1"] <= 1
    assert card["params"]["trees"] == 10
    first = load_dataset(study).recordings[0]
    done = ethobench("predict", tmp_path / "model", study / f"{first.id}.csv", "--in-sample", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").glob("*.csv")
    (found,) = read_recordings(written, rate=first.rate)
    truth = next(iter(first.annotations.values()))
    agreed = next(iter(found.annotations.values())).with_ethogram(truth.ethogram).to_codes() == truth.to_codes()
    assert agreed.mean() > 0.9
    again = ethobench("predict", tmp_path / "model", study / f"{first.id}.csv", "--out", tmp_path / "out")
    assert again.returncode == 1
    assert "left alone" in again.stderr
    again = ethobench("train", study, "--out", tmp_path / "model")
    assert again.returncode == 1
    assert "left alone" in again.stderr


def test_mistakes_are_told_in_one_line(study, tmp_path):
    for arguments, told in (
        (("train", study, "--model", "rff", "--out", tmp_path / "x"), "did you mean 'rf'"),
        (("train", study, "--param", "colour=red", "--out", tmp_path / "x"), "takes no colour"),
        (("train", study, "--init", tmp_path, "--out", tmp_path / "x"), "cannot begin with"),
        (("predict", tmp_path, study, "--out", tmp_path / "y"), "no saved model"),
    ):
        done = ethobench(*arguments)
        assert done.returncode == 1
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_models_are_listed():
    listed = ethobench("models").stdout
    assert all(f"{name} " in listed for name in ("rf", "crnn", "harnet", "kmeans"))
    assert "grid: 0.01, 0.003, 0.001" in ethobench("models", "crnn").stdout


def test_folders_datasets_and_rates_to_predict(study, tmp_path):
    made = ethobench("train", study, "--model", "dt", "--no-evaluate", "--out", tmp_path / "model")
    assert made.returncode == 0, made.stderr
    loose = tmp_path / "new"
    loose.mkdir()
    names = sorted(path.stem for path in study.glob("animal*.csv") if not path.stem.endswith("_labels"))
    for name in names:
        (loose / f"{name}.csv").write_bytes((study / f"{name}.csv").read_bytes())
    for place, out in ((loose, "a"), (study, "b")):
        done = ethobench("predict", tmp_path / "model", place, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        assert sorted(path.stem for path in (tmp_path / out).glob("*.csv")) == names
    assert (tmp_path / "a" / f"{names[0]}.csv").read_text(encoding="utf-8").splitlines()[-1] == (
        (tmp_path / "b" / f"{names[0]}.csv").read_text(encoding="utf-8").splitlines()[-1]
    )
    refused = ethobench("predict", tmp_path / "model", study, "--rate", 77, "--out", tmp_path / "c")
    assert refused.returncode == 1
    assert "says otherwise" in refused.stderr


def test_options_that_exclude_each_other(study, tmp_path):
    curve = ethobench("train", study, "--model", "rf", "--no-evaluate", "--learning-curve", "--out", tmp_path / "m")
    assert curve.returncode == 2
    assert "part of the cross-validation" in " ".join(curve.stderr.split())
    both = ethobench("run", "bebe", "--published", "--search", "optuna", "--store", tmp_path / "s")
    assert both.returncode == 2


def test_a_recording_without_labels_does_not_stop_training(study, tmp_path):
    for path in study.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (study / "recordings.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[-1].split(",")
    cells[4] = cells[5] = ""
    (tmp_path / "recordings.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n", encoding="utf-8")
    made = ethobench("train", tmp_path, "--model", "dt", "--out", tmp_path / "m")
    assert made.returncode == 0, made.stderr
    assert f"1 recordings without annotations to learn from are left out: {cells[0]}" in " ".join(made.stderr.split())
    assert "learning from all 3 recordings" in made.stderr


def test_auto_tells_what_it_tried_and_leaves_frames_open(study, tmp_path):
    made = ethobench("train", study, "--no-evaluate", "--budget", "1s", "--out", tmp_path / "model")
    assert made.returncode == 0, made.stderr
    assert "tried boost, 2 times" in made.stderr
    assert "note: 240 s of annotated recordings are too few to train a network on" in made.stderr
    assert "decoded for: balanced" in (tmp_path / "model" / "CARD.md").read_text(encoding="utf-8")
    first = load_dataset(study).recordings[0]
    told = ("predict", tmp_path / "model", study / f"{first.id}.csv")
    shares = []
    for level, out in (("0", "all"), ("0.999", "sure")):
        done = ethobench(*told, "--unknown", level, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        (found,) = read_recordings(tmp_path / out / f"{first.id}.csv", rate=first.rate)
        annotation = next(iter(found.annotations.values()))
        shares.append(float((annotation.to_codes() >= 0).mean()))
    assert shares[1] < shares[0] == 1
    refused = ethobench(*told, "--style", "anna", "--out", tmp_path / "z")
    assert refused.returncode == 1
    assert "cannot annotate like 'anna': it learnt no styles" in refused.stderr


def test_poses_without_labels_are_learnt_from_first(tmp_path):
    done = ethobench("pretrain", "synthetic/pose", "--tasks", "masked", "--epochs", "1", "--out", tmp_path / "first")
    assert done.returncode == 0, done.stderr
    command = done.stdout.partition("use it with: ethobench ")[2].split()
    assert command[:4] == ["train", "DATASET", "--model", "conv1d"]
    quick = ("--param", "epochs=1", "--param", "samples=256", "--no-evaluate")
    asked = [{"DATASET": "synthetic/pose", "MODEL_DIR": str(tmp_path / "m")}.get(part, part) for part in command]
    made = ethobench(*asked, *quick)
    assert made.returncode == 0, made.stderr
    card = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    assert [card["params"][name] for name in ("past", "future", "gap")] == [50, 50, 1]  # as what it began with


def test_behaviors_can_be_renamed_for_training(study, tmp_path):
    old, *others = load_dataset(study).ethogram.names
    options = ("--model", "chance", "--out", tmp_path / "model", "--workers", 1)
    done = ethobench("train", study, *options, "--rename", f"{old}=renamed")
    assert done.returncode == 0, done.stderr
    assert load_model(tmp_path / "model").ethogram.names == ("renamed", *others)
    unknown = ethobench("train", study, "--model", "chance", "--out", tmp_path / "other", "--rename", "nothing=renamed")
    assert unknown.returncode == 1
    assert "no behaviour 'nothing' in the ethogram" in unknown.stderr


@pytest.mark.parametrize("model", ["rf", "boost"])
def test_a_gap_in_a_tag_is_not_labelled(study, tmp_path, model):
    made = ethobench("train", study, "--model", model, "--no-evaluate", "--out", tmp_path / "model")
    assert made.returncode == 0, made.stderr
    first = load_dataset(study).recordings[0]
    header, *rows = (study / f"{first.id}.csv").read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if not 20 <= float(row.split(",")[0]) < 40]
    (tmp_path / "gap.csv").write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
    done = ethobench("predict", tmp_path / "model", tmp_path / "gap.csv", "--rate", first.rate, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "20.0 s (33.3%) not predicted and left unobserved" in done.stdout
    budget = json.loads(ethobench("budget", tmp_path / "out" / "gap.csv", "--json").stdout)
    rows = budget["rows"] if isinstance(budget, dict) else budget
    assert sum(row["seconds"] for row in rows) == pytest.approx(40, abs=0.2)
