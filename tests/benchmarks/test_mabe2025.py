"""The MABe 2025 benchmark: protocols, submissions, results by lab and action. Models are replaced by shifted truth, which takes no time."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ethobench as eb
from ethobench.benchmarks.mabe2025 import Mabe2025, Mabe2025Options, action_table, lab_table, load_videos, with_protocol
from ethobench.benchmarks.results import results_table
from ethobench.cli import app
from ethobench.core.errors import EthobenchError, MissingDataError, NotFoundError
from ethobench.models import models
from ethobench.runs import Engine, Store

LABS = ("CRIM13", "LyricalHare", "NiftyGoldfinch")
SMALL = {"dataset": "synthetic/labs", "labs": LABS, "videos": 3, "seconds": 12.0, "n_folds": 2}


def shifted_truth(self, recording: eb.Recording) -> eb.Prediction:
    """Predict the bouts of the annotator, a few frames later, of all pairs and with overlaps that a submission must not have."""
    truth = recording.annotation()
    truth = truth.with_observed(eb.core.Observed.full(truth.n_frames))
    late = truth.shift(3).with_observed(truth.observed)
    overlapping = late.overlay(truth.shift(6).with_observed(truth.observed))
    return eb.Prediction(
        np.zeros((truth.n_frames, len(truth.ethogram))), truth.ethogram, truth.rate, annotation=overlapping, exclusive=False
    )


@pytest.fixture
def fast_model(monkeypatch):
    """Model boost, which learns nothing and predicts shifted truth."""
    monkeypatch.setattr(models["boost"], "fit", lambda self, data, annotator=None: self)
    monkeypatch.setattr(models["boost"], "predict", shifted_truth)


def run(store: Store, **options) -> Mabe2025:
    benchmark = Mabe2025(Mabe2025Options(models=("boost",), **{**SMALL, **options}))
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(benchmark.jobs(store))
    assert not summary.failed, summary.failed
    return benchmark


def jobs(**options) -> list:
    plans = Mabe2025(Mabe2025Options(models=("boost",), **{**SMALL, **options})).jobs()
    return [job for plan in plans for job in next(plan)]


def test_folds_are_by_video_and_stratified_by_lab():
    planned = jobs()
    assert len(planned) == 2
    tested = [name for job in planned for name in job.test]
    labs = {r.id: r.metadata["lab"] for r in load_videos(Mabe2025Options(**SMALL))}
    assert sorted(tested) == sorted(labs)
    for job in planned:
        assert not {*job.train} & {*job.test}
        assert {*Counter(labs[name] for name in job.test).values()} <= {1, 2}  # of 3 videos of each lab
        assert {labs[name] for name in job.test} == {*LABS}
        assert {labs[name] for name in job.train} == {*LABS}
        assert (job.suites[0], str(job.setting), job.dataset) == ("mabe2025", "folds by video", "synthetic/labs")


def test_each_lab_is_left_out_once():
    planned = jobs(protocol="leave_one_lab_out")
    labs = {r.id: r.metadata["lab"] for r in load_videos(Mabe2025Options(**SMALL))}
    assert [{labs[name] for name in job.test} for job in planned] == [{lab} for lab in sorted(LABS)]
    for job in planned:
        assert {labs[name] for name in job.train} == {*LABS} - {labs[job.test[0]]}
        assert str(job.setting) == "leave one lab out"
    with pytest.raises(NotFoundError, match="needs at least two labs, got CRIM13"):
        jobs(protocol="leave_one_lab_out", labs=("CRIM13",))


def test_a_lab_with_one_video_is_tested_and_named():
    options = Mabe2025Options(**SMALL)
    data = load_videos(options)
    first = next(r.id for r in data if r.metadata["lab"] == "LyricalHare")
    data = data.select(recordings=[r.id for r in data if r.metadata["lab"] != "LyricalHare" or r.id == first])
    folded, remarks = with_protocol(data, options)
    assert remarks == ["1 lab has one recording, which is tested by a model of other labs: LyricalHare"]
    assert {*folded.folds} == {r.id for r in data}


def test_folds_by_individual_split_none():
    data, _ = with_protocol(load_videos(Mabe2025Options(**SMALL)), Mabe2025Options(**SMALL, split="individual"))
    folds: dict[str, set[int]] = {}
    for name, group in data.groups().items():
        folds.setdefault(group, set()).add(data.folds[name])
    assert all(len(each) == 1 for each in folds.values())


@pytest.mark.slow
def test_submission_results_and_tables_agree(tmp_path, fast_model):
    store = Store(tmp_path / "store")
    for protocol in ("folds", "leave_one_lab_out"):
        benchmark = run(store, protocol=protocol)
    lines: list[str] = []
    benchmark.finish(store, lines.append)
    assert len(lines) == 2
    assert all(line.startswith("submission of 9 videos: ") for line in lines)
    rows = {(row["setting"], row["metric"]): row for row in results_table(store) if row["suite"] == "mabe2025"}
    by_lab, by_action = (pd.DataFrame(table(store)) for table in (lab_table, action_table))
    for setting, folder in (("folds by video", "folds_by_video"), ("leave one lab out", "leave_one_lab_out")):
        files = store.root / "submissions" / f"synthetic_labs_boost_{folder}"
        scores = eb.score(files / "submission.csv", files / "solution.csv", suite="mabe2025", metadata=files / "metadata.csv", resamples=0)
        assert 0 < scores.overall["f1"] < 1
        row = rows[setting, "f1"]
        assert row["mean"] == pytest.approx(scores.overall["f1"])
        assert rows[setting, "f1_labeled"]["mean"] == pytest.approx(scores.overall["f1_labeled"])
        assert (row["n"], row["over"], row["published"]) == (3, "labs", None)
        labs = by_lab[by_lab["setting"] == setting].set_index("lab")
        assert labs["videos"].to_dict() == dict.fromkeys(LABS, 3)
        assert labs["f1"].mean() == pytest.approx(row["mean"])
        actions = by_action[by_action["setting"] == setting]
        assert actions.groupby("lab")["f1"].mean().to_dict() == pytest.approx(labs["f1"].to_dict())
        assert {*actions["lab"]} == {*LABS}
    for arguments in ([], ["--table", "labs"], ["--table", "lab-actions"], ["--json"]):
        printed = CliRunner().invoke(app, ["results", str(store.root), *arguments])
        assert printed.exit_code == 0, printed.output
    assert {row["over"] for row in json.loads(printed.stdout)} == {"labs", "individuals"}
    report = CliRunner().invoke(app, ["report", str(store.root), "--out", str(tmp_path / "report.html")])
    assert report.exit_code == 0, report.output
    page = (tmp_path / "report.html").read_text()
    assert all(text in page for text in ("synthetic/labs", "folds by video", "leave one lab out"))


@pytest.mark.slow
def test_the_command_writes_the_submission(tmp_path, fast_model, monkeypatch):
    monkeypatch.setattr("ethobench.cli.workers.ClusterOptions.pool", in_this_process)
    store = tmp_path / "store"
    arguments = ["--dataset", "synthetic/labs", "--labs", "CRIM13", "--videos", "2", "--seconds", "6", "--n-folds", "2", "--folds", "1"]
    done = CliRunner().invoke(app, ["run", "mabe2025", *arguments, "--models", "boost", "--workers", "1", "--store", str(store)])
    assert done.exit_code == 0, done.output
    assert "submission of 1 videos" in done.output.replace("\n", "")
    (path,) = store.glob("submissions/*/submission.csv")
    assert len({*pd.read_csv(path)["video_id"]}) == 1  # one of two folds


def in_this_process(self, workers: int, certificates: Path):
    from contextlib import nullcontext
    from types import SimpleNamespace

    return nullcontext(SimpleNamespace(make_executor=lambda: ThreadPoolExecutor(1), count=1))


def test_metadata_without_videos_are_refused_with_what_to_do(tmp_path, monkeypatch):
    folder = tmp_path / "mabe2025"
    folder.mkdir()
    header = "lab_id,video_id,frames_per_second,behaviors_labeled\n"
    (folder / "train.csv").write_text(header + 'Owl,1,30,"[""mouse1,self,rear""]"\n')
    monkeypatch.setenv("ETHOBENCH_DATA", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MissingDataError, match=r"no video of mabe2025 has both tracking and annotation.*dataset='synthetic/labs'"):
            load_videos(Mabe2025Options())


def test_options_of_the_simulation_are_not_ignored():
    with pytest.raises(EthobenchError, match="`size` applies to the dataset synthetic/labs only"):
        Mabe2025Options(size="small")
    assert Mabe2025Options(dataset="synthetic/labs", size="medium", labs=("CRIM13",)).dataset_options == {
        "labs": ["CRIM13"],
        "size": "medium",
    }


def test_published_scores_are_marked_as_reported_by_participants():
    scores = eb.published("mabe2025")
    assert scores.set_index("model")["value"]["best of the challenge"] == 0.575
    assert scores["source"].str.contains("reported by participants").all()
