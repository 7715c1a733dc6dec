"""Commands `train`, `predict`, `models` and `pretrain`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ethobench import load_dataset, load_model, read_recordings, write_annotation, write_recordings
from ethobench.cli.progress import TrainingProgress
from ethobench.core.deadline import Deadline
from ethobench.runs import Job, RunSummary, Store
from tests.cli.running import ethobench, ethobench_process
from tests.clock import Clock

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Signals and labels of four animals as a biologist would keep them."""
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
    trained = ethobench_process("train", study, "--model", "rf", "--param", "trees=10", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    assert "frame F1" in trained.stdout
    card = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert 0.3 < card["evaluation"]["scores"]["f1"] <= 1
    assert card["params"]["trees"] == 10
    first = load_dataset(study).recordings[0]
    done = ethobench("predict", tmp_path / "model", study / f"{first.id}.csv", "--in-sample", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").glob("*.csv")
    (predicted,) = read_recordings(written, rate=first.rate)
    truth = next(iter(first.annotations.values()))
    agreed = next(iter(predicted.annotations.values())).with_ethogram(truth.ethogram).to_codes() == truth.to_codes()
    assert agreed.mean() > 0.9
    again = ethobench("predict", tmp_path / "model", study / f"{first.id}.csv", "--in-sample", "--out", tmp_path / "out")
    assert again.returncode == 0
    assert "0 recordings predicted, 1 finished before, 0 failed" in again.stdout
    again = ethobench("predict", tmp_path / "model", study / f"{first.id}.csv", "--out", tmp_path / "out")
    assert again.returncode == 1
    assert "already exist in" in again.stderr
    again = ethobench("train", study, "--out", tmp_path / "model")
    assert again.returncode == 1
    assert "already exists" in again.stderr


def test_mistakes_give_one_line(study, tmp_path):
    for arguments, message in (
        (("train", study, "--model", "rff", "--out", tmp_path / "x"), "did you mean 'rf'"),
        (("train", study, "--param", "colour=red", "--out", tmp_path / "x"), "has no parameter `colour`"),
        (("train", study, "--init", tmp_path, "--out", tmp_path / "x"), "cannot be initialized from"),
        (("predict", tmp_path, study, "--out", tmp_path / "y"), "not a saved model"),
    ):
        done = ethobench(*arguments)
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_models_are_listed():
    listed = ethobench("models").stdout
    assert all(f"{name} " in listed for name in ("rf", "crnn", "harnet", "kmeans"))
    assert "grid: 0.01, 0.003, 0.001" in ethobench("models", "crnn").stdout


def test_folders_datasets_and_rates_to_predict(study, tmp_path):
    trained = ethobench("train", study, "--model", "dt", "--no-evaluate", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    loose = tmp_path / "new"
    loose.mkdir()
    names = sorted(path.stem for path in study.glob("animal*.csv") if not path.stem.endswith("_labels"))
    for name in names:
        (loose / f"{name}.csv").write_bytes((study / f"{name}.csv").read_bytes())
    for source, out in ((loose, "a"), (study, "b")):
        done = ethobench("predict", tmp_path / "model", source, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        assert sorted(path.stem for path in (tmp_path / out).glob("*.csv")) == names
    assert (tmp_path / "a" / f"{names[0]}.csv").read_text(encoding="utf-8").splitlines()[-1] == (
        (tmp_path / "b" / f"{names[0]}.csv").read_text(encoding="utf-8").splitlines()[-1]
    )
    refused = ethobench("predict", tmp_path / "model", study, "--rate", 77, "--out", tmp_path / "c")
    assert refused.returncode == 1
    assert "has 25 Hz" in refused.stderr


def test_options_that_exclude_each_other(study, tmp_path):
    curve = ethobench("train", study, "--model", "rf", "--no-evaluate", "--learning-curve", "--out", tmp_path / "m")
    assert curve.returncode == 2
    assert "part of the cross-validation" in " ".join(curve.stderr.split())
    both = ethobench("run", "bebe", "--published", "--search", "optuna", "--store", tmp_path / "s")
    assert both.returncode == 2


def test_recordings_without_annotations_are_skipped(study, tmp_path):
    for path in study.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (study / "recordings.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[-1].split(",")
    cells[4] = cells[5] = ""
    (tmp_path / "recordings.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n", encoding="utf-8")
    trained = ethobench("train", tmp_path, "--model", "dt", "--out", tmp_path / "m")
    assert trained.returncode == 0, trained.stderr
    assert f"1 recordings without annotations are skipped: {cells[0]}" in " ".join(trained.stderr.split())
    assert "training on all 3 recordings" in trained.stderr


def test_auto_reports_its_candidates_and_abstains(study, tmp_path):
    trained = ethobench("train", study, "--no-evaluate", "--budget", "1s", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    assert "candidate boost: 2 folds" in trained.stderr
    assert "note: no network: 240 s of annotated recordings are not enough to train one" in trained.stderr
    assert "decoded for: balanced" in (tmp_path / "model" / "CARD.md").read_text(encoding="utf-8")
    first = load_dataset(study).recordings[0]
    command = ("predict", tmp_path / "model", study / f"{first.id}.csv")
    shares = []
    for level, out in (("0", "all"), ("0.999", "sure")):
        done = ethobench(*command, "--min-confidence", level, "--out", tmp_path / out)
        assert done.returncode == 0, done.stderr
        (predicted,) = read_recordings(tmp_path / out / f"{first.id}.csv", rate=first.rate)
        annotation = next(iter(predicted.annotations.values()))
        shares.append(float((annotation.to_codes() >= 0).mean()))
    assert shares[1] < shares[0] == 1
    refused = ethobench(*command, "--style", "anna", "--out", tmp_path / "z")
    assert refused.returncode == 1
    assert "cannot annotate in the style of 'anna': it has no styles" in refused.stderr


@pytest.fixture(scope="module")
def mice(tmp_path_factory):
    """Poses and labels of three pairs of mice."""
    root = tmp_path_factory.mktemp("mice")
    lines = ["recording,individual,rate,signals,annotations,annotator"]
    for r in load_dataset("synthetic/pose", individuals=3, seconds=10):
        write_recordings([r.copy(id=f"task1/train/{r.id}")], root / f"{r.id}.json", "calms21")
        write_annotation(r.annotation(), root / f"{r.id}_labels.csv", "tidy", recording=r.id)
        lines.append(f"{r.id},{r.individual},{r.rate:g},{r.id}.json,{r.id}_labels.csv,me")
    (root / "recordings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def test_pretrain_on_poses_then_train(mice, tmp_path):
    done = ethobench("pretrain", mice, "--tasks", "masked", "--epochs", "1", "--out", tmp_path / "first")
    assert done.returncode == 0, done.stderr
    command = done.stdout.partition("use it with: ethobench ")[2].split()
    assert command[:4] == ["train", "DATASET", "--model", "conv1d"]
    quick = ("--param", "epochs=1", "--param", "samples_per_epoch=256", "--no-evaluate")
    arguments = [{"DATASET": mice, "MODEL_DIR": str(tmp_path / "m")}.get(word, word) for word in command]
    trained = ethobench(*arguments, *quick)
    assert trained.returncode == 0, trained.stderr
    card = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    assert [card["params"][name] for name in ("past", "future", "frame_stride")] == [50, 50, 1]  # as the pre-trained network


def test_pretrain_refuses_options_of_the_other_kind_of_data(tmp_path):
    for dataset, option, value in (("synthetic/pose", "--config", "small"), ("synthetic/tag", "--tasks", "masked")):
        done = ethobench("pretrain", dataset, option, value, "--out", tmp_path / "x")
        assert done.returncode == 2
        assert f"Invalid value for {option}: applies to" in " ".join(done.stderr.replace("│", " ").split())


def test_behaviors_can_be_renamed_for_training(study, tmp_path):
    old, *others = load_dataset(study).ethogram.names
    options = ("--model", "chance", "--out", tmp_path / "model", "--workers", 1)
    done = ethobench("train", study, *options, "--rename", f"{old}=renamed")
    assert done.returncode == 0, done.stderr
    assert load_model(tmp_path / "model").ethogram.names == ("renamed", *others)
    unknown = ethobench("train", study, "--model", "chance", "--out", tmp_path / "other", "--rename", "nothing=renamed")
    assert unknown.returncode == 1
    assert "no behavior 'nothing' in the ethogram" in unknown.stderr


@pytest.mark.parametrize("model", ["rf", "boost"])
def test_gap_in_a_tag_is_unobserved(study, tmp_path, model):
    trained = ethobench("train", study, "--model", model, "--no-evaluate", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    first = load_dataset(study).recordings[0]
    header, *rows = (study / f"{first.id}.csv").read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if not 20 <= float(row.split(",")[0]) < 40]
    (tmp_path / "gap.csv").write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
    done = ethobench("predict", tmp_path / "model", tmp_path / "gap.csv", "--rate", first.rate, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "20.0 s (33.3%) unobserved (not predicted)" in done.stdout
    budget = json.loads(ethobench("budget", tmp_path / "out" / "gap.csv", "--json").stdout)
    rows = budget["rows"] if isinstance(budget, dict) else budget
    assert sum(row["seconds"] for row in rows) == pytest.approx(40, abs=0.2)


def test_budget_includes_cross_validation(study, tmp_path):
    """Far too short a budget: the model is small, works, and is marked as not evaluated."""
    trained = ethobench("train", study, "--out", tmp_path / "model", "--budget", "1s", "--workers", 1)
    assert trained.returncode == 0, trained.stderr
    messages = " ".join(trained.stderr.split())
    assert "plan: no time for cross-validation; final training only = 1 training of auto on 1 core, about 1 s (budget 1 s)" in messages
    assert "there was no time for cross-validation, so it is not known how well the model generalizes to new individuals" in messages
    assert "to keep the time budget" in messages
    assert "the final training takes at least a few seconds, but only 0 s of the budget remain; it is completed anyway" in messages
    assert "of a budget of 1 s" in messages
    card = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert card["evaluation"] == {}
    assert "Not evaluated" in (tmp_path / "model" / "CARD.md").read_text(encoding="utf-8")
    first = load_dataset(study).recordings[0]
    assert load_model(tmp_path / "model").predict(first).n_frames == first.n_frames
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model-cv"]  # shared features are gone


def test_enough_time_runs_all_folds(study, tmp_path):
    trained = ethobench("train", study, "--model", "boost", "--param", "rounds=5", "--out", tmp_path / "model", "--budget", "10m")
    assert trained.returncode == 0, trained.stderr
    assert "plan: 4-fold cross-validation + final training = 5 trainings of boost" in " ".join(trained.stderr.split())
    card = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert (card["evaluation"]["folds"], card["evaluation"]["folds_planned"]) == (4, 4)
    assert "notes" not in card["fit_report"]


def test_budget_of_a_model_that_does_not_support_deadlines(study, tmp_path):
    trained = ethobench("train", study, "--model", "rf", "--param", "trees=5", "--out", tmp_path / "model", "--budget", "5m")
    assert trained.returncode == 0, trained.stderr
    assert "a training of rf cannot be shortened: folds are skipped if they take too long" in " ".join(trained.stderr.split())
    short = ethobench("train", study, "--model", "rf", "--param", "trees=5", "--out", tmp_path / "short", "--budget", "1s")
    assert short.returncode == 0, short.stderr
    assert "no time for cross-validation" in short.stderr
    assert json.loads((tmp_path / "short" / "model.json").read_text(encoding="utf-8"))["evaluation"] == {}


def test_the_plan_and_progress_without_a_budget(study, tmp_path):
    trained = ethobench("train", study, "--model", "dt", "--out", tmp_path / "m", "--workers", 2)
    assert "plan: 4-fold cross-validation + final training = 5 trainings of dt on 2 cores; estimating" in " ".join(trained.stderr.split())
    wrong = ethobench("train", study, "--out", tmp_path / "n", "--budget", "10 minutes")
    assert wrong.returncode == 2
    assert "is not a duration" in " ".join(wrong.stderr.split())
    both = ethobench("train", study, "--learning-curve", "--budget", "1h", "--out", tmp_path / "n")
    assert both.returncode == 2
    assert "a learning curve has no time budget" in " ".join(both.stderr.split())


def test_progress_lines_have_stage_and_remaining_time(tmp_path):
    clock = Clock()
    store, summary = Store(tmp_path / "s"), RunSummary(done=1)
    jobs = [Job("own", "d", "", ("a",), (str(fold),), "rf", fold=fold) for fold in range(4)]
    store.progress_file(jobs[1].key).write_text('{"stage": "boosted trees", "fraction": 0.5}', encoding="utf-8")
    limited, free = (TrainingProgress(Deadline(seconds, clock=clock)) for seconds in (300, None))
    for progress in (limited, free):
        progress.start_phase("cross-validation")
        assert progress.line().startswith("0 s | cross-validation | ")
    assert free.line().endswith("estimating the time left")
    clock.now += 60
    for progress in (limited, free):
        progress.show_folds(store, jobs[1:3], summary, 4, 2)
    state = "1 min | cross-validation | 1 of 4 folds done, fold 2: boosted trees (50%), fold 3: starting"
    assert limited.line() == f"{state} | 4 min of the budget left"
    assert free.line() == f"{state} | about 3 min left"  # 40 s a fold, 2.5 to go; a training takes 80 s when two share the machine
    free.start_phase("final training")
    free.show_training("features", 0.0)
    assert free.line() == "1 min | final training | features (0%) | about 1 min 20 s left"
    clock.now += 30
    free.show_training("network", 0.75)
    assert free.line() == "1 min 30 s | final training | network (75%) | about 10 s left"
    clock.now += 300
    assert limited.line().endswith("the budget is used up")
