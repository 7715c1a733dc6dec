"""Reports of runs, and the command that writes them."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from ethobench import load_dataset
from ethobench.benchmarks import results_table
from ethobench.benchmarks.learning_curves import learning_curve_table
from ethobench.cli import report as command
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.reports import load_available_datasets, render_report, summarize_store
from ethobench.reports.run_figures import coverage, results
from ethobench.reports.tables import pivot
from ethobench.runs import Job, Setting, Store
from ethobench.runs.worker import run_job
from tests.reports.test_score_report import figures_of, one, rows_of

pytestmark = pytest.mark.slow
OPTIONS = {"individuals": 4, "seconds": 40.0, "folds": 2}


def job(data, fold: int, model: str = "chance", setting: str = "full", train: int = 2, **changes) -> Job:
    others = [r.id for r in data if data.folds[r.id] != fold]
    test = tuple(r.id for r in data if data.folds[r.id] == fold)
    fields = {"seed": fold, "fold": fold, "options": OPTIONS, "setting": Setting(setting), **changes}
    return Job("synthetic", "synthetic/tag", data.version, tuple(others[:train]), test, model, **fields)


@pytest.fixture(scope="module")
def data():
    return load_dataset("synthetic/tag", **OPTIONS)


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    run_store = Store(tmp_path_factory.mktemp("runs") / "store")
    for fold in (0, 1):
        assert run_job(job(data, fold).to_dict(), str(run_store.root)) == ("done", "")
        assert run_job(job(data, fold, setting="reduced", train=1).to_dict(), str(run_store.root)) == ("done", "")
    assert run_job(job(data, 0, stage="search", seed=9).to_dict(), str(run_store.root)) == ("done", "")
    run_store.fail(job(data, 0, model="rf"), "<script>alert(1)</script>")
    return run_store


@pytest.fixture(scope="module")
def report(store):
    return summarize_store(store, datasets=load_available_datasets(store))


def test_accuracy_and_coverage_of_models_that_abstain(data):
    points = [{"confidence": c, "coverage": 1 - c, "accuracy": 0.5 + c / 2, "f1": 0.5} for c in (0.0, 0.5)]
    unknown = [{"confidence": 0.9, "coverage": 0.0, "accuracy": float("nan"), "f1": 0.5}]
    figure = coverage([(job(data, 0), {"coverage": points}), (job(data, 1), {"coverage": [*points, *unknown]})])
    assert rows_of(figure) == [
        {"dataset": "synthetic/tag", "model": "chance", "confidence": c, "coverage": 1 - c, "accuracy": 0.5 + c / 2} for c in (0.0, 0.5)
    ]
    assert coverage([(job(data, 0), {})]) is None


def test_a_report_of_a_store_is_plain_json_and_becomes_a_page(report):
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    page = render_report(report)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page


def test_results_are_those_of_the_results_table(report, store):
    figure = figures_of(report)["results"]
    for row in results_table(store):
        if row["metric"] in ("f1", "bout_f1"):
            shown = one(figure, measure=row["metric"], setting=row["setting"])
            assert shown["mean"] == pytest.approx(row["mean"], rel=1e-5)
            assert shown["std"] == pytest.approx(row["std"], rel=1e-5)
            assert shown["n"] == row["n"]


def test_settings_timings_and_failures(report):
    figures = figures_of(report)
    assert list(figures) == ["results", "settings", "timings", "failures"]
    assert {row["setting"] for row in rows_of(figures["settings"])} == {"full", "reduced"}
    assert {row["step"] for row in rows_of(figures["timings"])} == {"load", "fit", "predict", "score"}
    assert {row["jobs"] for row in rows_of(figures["timings"])} == {4}
    assert [row["error"] for row in rows_of(figures["failures"])] == ["<script>alert(1)</script>"]
    assert {fact["label"]: fact["value"] for fact in report["facts"]}["failed jobs"] == "1"


def test_a_dataset_has_the_figures_of_its_scores(report, store):
    group = report["groups"][1]
    assert group["title"] == "synthetic/tag"
    figures = figures_of(report, 1)
    assert {"scores", "ethograms", "errors", "confusion", "individuals", "durations", "precision-recall", "reliability"} <= {*figures}
    assert len(figures["ethograms"]["recordings"]) == 4
    f1 = next(row["mean"] for row in results_table(store) if (row["metric"], row["setting"]) == ("f1", "full"))
    assert one(figures["scores"], behavior="", measure="f1")["value"] == pytest.approx(f1, rel=1e-5)


def test_missing_datasets_are_noted_and_have_no_ethograms(store):
    report = summarize_store(store)
    assert not {"ethograms", "errors"} & {*figures_of(report, 1)}
    assert report["notes"] == ["synthetic/tag: ethograms and kinds of errors are omitted, because the dataset is not available"]


def test_data_that_have_changed_are_not_drawn(store):
    other = load_dataset("synthetic/tag", **{**OPTIONS, "seed": 7})
    report = summarize_store(store, datasets={"synthetic/tag": other})
    assert "ethograms" not in figures_of(report, 1)
    assert "because the dataset has changed" in report["notes"][0]


def test_learning_curves_take_three_sizes(data, store, tmp_path):
    run_store = Store(tmp_path / "store")
    for train, setting in ((n, Setting("", n_recordings=n)) for n in (1, 2, 3)):
        fields = {"train": tuple(r.id for r in data)[:train], "test": (data.recordings[3].id,), "model": "chance", "setting": setting}
        plain = Job("own", "synthetic/tag", data.version, options=OPTIONS, **fields).to_dict()
        assert run_job(plain, str(run_store.root)) == ("done", "")
    figure = figures_of(summarize_store(run_store))["learning-curves"]
    points = [row for row in rows_of(figure) if row["measure"] == "f1"]
    assert [row["recordings"] for row in points] == [1, 2, 3]
    assert "learning-curves" not in figures_of(summarize_store(store))


def test_table_of_behaviors_for_which_more_labels_would_help(data, store, tmp_path):
    run_store = Store(tmp_path / "store")
    for train, setting in ((1, Setting("", train_share=1 / 3)), (3, Setting())):
        fields = {"train": tuple(r.id for r in data)[:train], "test": (data.recordings[3].id,), "model": "chance", "setting": setting}
        plain = Job("own", "synthetic/tag", data.version, options=OPTIONS, **fields).to_dict()
        assert run_job(plain, str(run_store.root)) == ("done", "")
    report = summarize_store(run_store)
    rows = {row["behavior"]: row for row in rows_of(figures_of(report)["more-labels"])}
    curves = {row["behavior"]: row for row in learning_curve_table(run_store)}
    assert {*rows} == {name for name, row in curves.items() if row["more_labels"]} != set()
    for name, row in rows.items():
        assert row["F1 at 33.3%"] == pytest.approx(curves[name]["f1_33.3%"], abs=5e-4)
        assert row["F1 at 100%"] == pytest.approx(curves[name]["f1_100%"], abs=5e-4)
        assert row["more labels"] == ("would help" if curves[name]["gained"] >= 0.02 else "would hardly help")
    assert "Would more labels help?" in render_report(report)
    assert "more-labels" not in figures_of(summarize_store(store))


def test_published_values_are_shown_below_ours():
    base = {
        "benchmark": "bebe",
        "dataset": "HAR",
        "model": "rf",
        "setting": "full",
        "suite": "bebe",
        "std": 0.01,
        "n": 3,
        "over": "individuals",
    }
    rows = [
        {**base, "metric": "f1", "mean": 0.93, "published": 0.925, "difference": 0.005},
        {**base, "metric": "precision", "mean": 0.9, "published": None, "difference": None},
    ]
    figure = results(rows)
    (table,) = pivot(figure, {"id": "", "title": "", "behaviors": [], "figures": []})
    assert table["caption"] == "HAR · bebe"
    assert table["rows"][0]["cells"][0]["details"] == ["± 0.010", "published 0.925 (+0.005)"]
    assert table["rows"][0]["cells"][1]["details"] == ["± 0.010"]
    assert "published" in figure["definition"]
    assert results([{k: v for k, v in rows[0].items() if k not in ("published", "difference")}])["rows"][0][-2:] == [None, None]


def test_an_empty_store_is_refused(tmp_path):
    with pytest.raises(EthobenchError, match="no finished job"):
        summarize_store(Store(tmp_path / "s"))


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(command.run)
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


def test_command_writes_a_page_and_does_not_overwrite_by_default(run, store, tmp_path):
    page = tmp_path / "page.html"
    done = run(store.root, "--out", page, "--title", "First <run>")
    assert done.exit_code == 0, done.output
    assert "page.html" in done.output
    assert "<h1>First &lt;run&gt;</h1>" in page.read_text(encoding="utf-8")
    again = run(store.root, "--out", page)
    assert isinstance(again.exception, EthobenchError)
    assert "already exists" in str(again.exception)
    assert run(store.root, "--out", page, "--overwrite", "--recordings", 0).exit_code == 0
    assert "ethograms and kinds of errors are omitted" in page.read_text(encoding="utf-8")


def test_a_folder_without_a_store_is_refused(run, tmp_path):
    assert isinstance(run(tmp_path, "--out", tmp_path / "page.html").exception, NotFoundError)
    assert list(tmp_path.iterdir()) == []
