"""Learning curves over shares of the training individuals, and over few training recordings of a behavior."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ethobench.benchmarks import results_table
from ethobench.benchmarks.learning_curves import (
    FROM_SCRATCH,
    PRETRAINED,
    FewShot,
    FewShotOptions,
    few_shot_table,
    learning_curve_jobs,
    learning_curve_table,
    summarize_curve,
)
from ethobench.benchmarks.study import study_plan
from ethobench.benchmarks.tables import behaviors_table
from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.datasets import load_dataset
from ethobench.formats import write_recordings
from ethobench.runs import Engine, Store
from ethobench.runs.plan import plan_at_once

PARAMS = {"trees": 5, "seconds": 1.0}
TINY = {
    "conv1d": {
        "past": 8,
        "future": 8,
        "frame_stride": 2,
        "epochs": 1,
        "layers": [8, 4],
        "kernel": 3,
        "batch": 64,
        "class_weight": "balanced",
    }
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Write poses and labels of eight recordings as a folder of one's own."""
    folder = tmp_path_factory.mktemp("study")
    data = load_dataset("synthetic/pose", individuals=8, seconds=40.0)
    lines = ["recording,individual,rate,signals,annotations"]
    for recording in data:
        write_recordings([recording.copy(annotations={})], folder / f"{recording.id}.json", "calms21")
        write_recordings([recording], folder / f"{recording.id}.csv", "tidy")
        lines.append(f"{recording.id},{recording.id},30,{recording.id}.json,{recording.id}.csv")
    (folder / "recordings.csv").write_text("\n".join(lines), encoding="utf-8")
    names = data.ethogram.names
    rows = "\n".join(f"{name},{'yes' if name == data.ethogram.background_name else ''}" for name in names)
    (folder / "ethogram.csv").write_text(f"behavior,background\n{rows}\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_few_shot_curves_from_scratch_and_from_a_pretrained_network(study, tmp_path):
    store = Store(tmp_path / "s")
    data = load_dataset(str(study))
    rare = next(name for name in data.ethogram.names if name != "other")
    options = FewShotOptions(
        path=str(study), counts=(1, 2, 8), behaviors=(rare,), pretrain_on=str(study), params=TINY, pretrain_params=TINY, folds=(0,)
    )
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(FewShot(options).jobs())
    assert (summary.failed, summary.failed_plans) == ({}, [])
    jobs = {key: store.job(key) for key in store.finished()}
    final = [job for job in jobs.values() if job.stage == "final"]
    settings = {f"{rare}, {n} recordings, {transfer}" for n in (1, 2) for transfer in (FROM_SCRATCH, PRETRAINED)}
    assert {str(job.setting) for job in final} == settings
    (pretraining,) = (key for key, job in jobs.items() if job.stage == "pretraining")
    for job in final:
        assert job.initial_job == (pretraining if job.setting.transfer == PRETRAINED else "")
        assert not {*job.train} & {*job.test}
    assert not {*jobs[pretraining].train} & {*jobs[pretraining].test}
    one, two = (next(job.train for job in final if (job.setting.n_recordings, job.setting.transfer) == (n, FROM_SCRATCH)) for n in (1, 2))
    assert two[:1] == one
    rows = few_shot_table(store)
    assert [(row["way"], row["metric"]) for row in rows] == [(t, m) for t in (FROM_SCRATCH, PRETRAINED) for m in ("macro_f1", "map")]
    assert all({"1", "2"} < {*row} for row in rows)
    name = f"{rare}, 2 recordings, {FROM_SCRATCH}"
    value = next(r["mean"] for r in results_table(store) if (r["setting"], r["metric"]) == (name, "macro_f1"))
    assert rows[2]["2"] == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [({"behaviors": ("flying",)}, "has no behavior flying"), ({"folds": (0, 9)}, "has no fold 9. Available: 0, 1")],
)
def test_unknown_behaviors_and_folds_are_refused(study, options, message):
    with pytest.raises(NotFoundError, match=message):
        list(FewShot(FewShotOptions(path=str(study), **options)).jobs())


def test_data_without_background_are_refused():
    with pytest.raises(EthobenchError, match="has no background behavior"):
        list(FewShot(FewShotOptions(path="synthetic/tag")).jobs())


@pytest.mark.slow
def test_learning_curves_grow_by_individuals_and_end_with_all_data(tmp_path):
    store = Store(tmp_path / "s")
    curve = learning_curve_jobs("synthetic/tag", "rf", params=PARAMS, shares=(0.2, 0.5))  # a fifth of six individuals is one
    plans = [study_plan("synthetic/tag", "rf", params=PARAMS), plan_at_once(curve)]
    summary = Engine(store, lambda: ThreadPoolExecutor(1), 1).run(plans)
    assert (summary.done, summary.failed) == (3 * 4, {})
    jobs = [store.job(key) for key in store.finished()]
    for fold in range(4):
        few, half, complete = (
            next({*job.train} for job in jobs if job.fold == fold and str(job.setting).startswith(start))
            for start in ("16.7%", "50.0%", "full")
        )
        assert few < half < complete
    rows = learning_curve_table(store)
    full = {r["behavior"]: r["value"] for r in behaviors_table(store, ["f1"]) if r["setting"] == "full"}
    assert {r["behavior"]: r["f1_100%"] for r in rows} == full
    assert {"f1_16.7%", "f1_50%", "gained", "more_labels"} < {*rows[0]}


def test_a_flat_curve_needs_no_more_labels():
    rising = summarize_curve("d", "m", "b", {0.25: 0.5, 0.5: 0.6, 1.0: 0.7})
    flat = summarize_curve("d", "m", "b", {0.25: 0.7, 0.5: 0.7, 1.0: 0.701})
    assert rising["gained"] == pytest.approx(0.1)
    assert (rising["more_labels"], flat["more_labels"]) == ("would help", "would hardly help")
    assert summarize_curve("d", "m", "b", {1.0: 0.7})["more_labels"] is None
