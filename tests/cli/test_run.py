"""The commands run, status and results, with a kill -9 in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from ethobench.benchmarks import benchmarks
from ethobench.cli import app
from ethobench.runs import worker
from tests.cli.running import ethobench


def finished(store) -> int:
    return sum(1 for _ in (store / "jobs").glob("*/*")) if store.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_is_resumed_and_runs_only_missing_jobs(tmp_path):
    store, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    arguments = ("run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=20", "--workers", "2")
    command = [sys.executable, "-c", "from ethobench.cli import main; main()", *arguments, "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        deadline = time.monotonic() + 120
        while finished(store) < 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGKILL)
    done = {p.name: (p / "timing.json").read_bytes() for p in (store / "jobs").glob("*/*")}
    assert 1 <= len(done) < 8
    resumed = ethobench(*arguments, "--store", store)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{8 - len(done)} jobs done, {len(done)} reused, 0 failed" in resumed.stdout
    assert all((store / "jobs" / key[:2] / key / "timing.json").read_bytes() == stamp for key, stamp in done.items())
    assert ethobench(*arguments, "--store", undisturbed).returncode == 0
    assert ethobench("results", store, "--json").stdout == ethobench("results", undisturbed, "--json").stdout
    summary = json.loads(ethobench("status", store, "--json").stdout)
    assert summary == {"done": 8, "running": [], "failed": {}, "quarantined": [], "damaged": []}
    assert "rf" in ethobench("results", store).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="this system cannot send SIGINT to a process group")
def test_ctrl_c_stops_cleanly(tmp_path):
    store = tmp_path / "s"
    arguments = ("run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=20", "--workers", "2")
    arguments += ("--store", str(store))
    restore_handler = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a process started in the background ignores SIGINT
    )
    command = [sys.executable, "-c", f"{restore_handler}; from ethobench.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        deadline = time.monotonic() + 120
        while finished(store) < 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=120)
    assert run.returncode == 130, err
    assert "stopping after" in out
    assert "Traceback" not in err
    assert not list((store / "leases").iterdir())
    assert not list((store / "tmp").iterdir())
    assert ethobench(*arguments).returncode == 0
    assert finished(store) == 8


@pytest.mark.slow
def test_wrong_usage(tmp_path):
    unknown = ethobench("run", "nope", "--store", tmp_path / "s")
    assert unknown.returncode == 2
    assert "No such command 'nope'" in unknown.stderr
    former = ethobench("run", tmp_path, "--store", tmp_path / "s")
    assert former.returncode == 2
    assert "To run models on your study: ethobench run study" in " ".join(former.stderr.replace("│", "").split())
    assert "is not the store of a run" in ethobench("results", tmp_path).stderr
    assert "is not the store of a run" in ethobench("status", tmp_path).stderr
    assert ethobench("run", "synthetic").returncode == 2
    assert "no model 'rrf'" in ethobench("run", "synthetic", "--models", "rrf", "--store", tmp_path / "s").stderr


@pytest.mark.slow
def test_variations_are_distinguished_in_the_results(tmp_path):
    store = tmp_path / "s"
    done = ethobench("run", "synthetic", "--datasets", "tag", "--models", "chance", "--vary", "kind=majority,random", "--store", store)
    assert done.returncode == 0, done.stderr
    assert "8 jobs done" in done.stdout
    rows = json.loads(ethobench("results", store, "--json").stdout)
    assert {row["setting"] for row in rows} == {"full, kind majority", "full, kind random"}
    pytest.importorskip("duckdb")
    query = "select setting, count(*) as n from results where metric = 'f1' group by setting order by setting"
    answer = ethobench("results", store, "--sql", query, "--json", "--csv", tmp_path / "answer.csv")
    assert json.loads(answer.stdout) == [{"setting": f"full, kind {kind}", "n": 1} for kind in ("majority", "random")]
    assert (tmp_path / "answer.csv").read_text(encoding="utf-8").startswith("setting,n")


@pytest.mark.slow
def test_single_folds_and_the_others_later(tmp_path):
    arguments = ("run", "synthetic", "--datasets", "tag", "--models", "chance", "--store", tmp_path / "s")
    assert "2 jobs done, 0 reused" in ethobench(*arguments, "--folds", "1,3").stdout
    assert "2 jobs done, 2 reused" in ethobench(*arguments).stdout
    refused = ethobench(*arguments, "--folds", "7")
    assert refused.returncode == 1
    assert "none of the folds 7 is tested; folds of this benchmark: 0, 1, 2, 3" in refused.stderr
    assert ethobench("run", "calms21", "--folds", "1", "--store", tmp_path / "s").returncode == 2


@pytest.mark.slow
def test_workers_import_the_models_of_unfinished_jobs_once(tmp_path, monkeypatch):
    preloaded = []
    monkeypatch.setattr(worker, "preload_workers", preloaded.append)
    arguments = ("run", "synthetic", "--datasets", "tag", "--models", "chance", "--store", tmp_path / "s")
    for _ in range(2):
        assert ethobench(*arguments).returncode == 0
    ((*common, model),) = preloaded  # the second command has no jobs to run
    assert model == "ethobench.models.chance"
    assert "ethobench.runs.worker" in common
    assert all(find_spec(name) for name in common)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("synthetic", "--vary", "kind"), "'kind' is not name=value,value"),
        (("synthetic", "--vary", "kind="), "'kind=' is not name=value,value"),
        (("calms21", "--vary", "frame_stride=1,2"), "No such option: --vary"),
        (("synthetic", "--tasks", "1"), "No such option: --tasks"),
        (("bebe", "--provider", "gemini"), "No such option: --provider"),
        (("study", "{folder}", "--published"), "No such option: --published"),
        (("rodentbench", "--shots", "3"), "need a `provider`"),
        (("calms21", "--recipe", "luck"), "`recipe` must be code, paper or fast, got luck"),
        (("calms21", "--seeds", "a,b"), "'a,b' must be integers, separated by commas"),
        (("synthetic", "--keep", "all"), "must be probabilities or model, got all"),
        (("study",), "Missing argument"),
    ],
)
def test_options_that_do_not_belong_to_a_benchmark_are_refused(tmp_path, arguments, message):
    refused = CliRunner().invoke(app, ["run", *(a.format(folder=tmp_path) for a in arguments), "--store", str(tmp_path / "s")])
    assert refused.exit_code == 2
    text = " ".join(refused.output.replace("│", "").split())
    assert message in text or message.replace(": --", " '--") in text  # as newer and older versions of click write it


@pytest.mark.parametrize("name", benchmarks.names())
def test_every_benchmark_has_a_subcommand_with_an_example(name):
    help_text = CliRunner().invoke(app, ["run", name, "--help"], env={"COLUMNS": "200"})
    assert help_text.exit_code == 0, help_text.output
    assert f"Example: ethobench run {name}" in help_text.output
    assert benchmarks[name].title in CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).output
    options = {item.metadata["name"] or item.name for item in fields(benchmarks[name].Options) if not item.metadata["is_hidden"]}
    for option in options - {"path"}:
        assert f"--{option.replace('_', '-')}" in help_text.output
